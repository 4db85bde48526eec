//! A writer of LLVM IR text: typed values, and the operations that lowering uses.
//!
//! Emission writes text that LLVM's parser reads: it can be inspected, compared and cached, and LLVM's verifier locates
//! every type error. Values are scalars or vectors of 32 lanes; an operation on a scalar and a vector splats the
//! scalar.

mod template;
mod value;

#[cfg(test)]
pub(in crate::emit) use template::assert_names;
pub(in crate::emit) use template::{elements, fill};
pub(in crate::emit) use value::Name;
pub use value::{Elem, Ty, Val, constant, int, mangle, named, per_lane};

use super::{
    known::{Known, Mark, is_pure},
    mask::{Masks, Origin},
};
use std::{
    collections::{BTreeSet, HashMap},
    fmt::{self, Write},
};
use value::{compared, folded, signed};

/// The text of a function under construction, and the declarations that it needs.
#[derive(Default, Debug)]
pub struct Writer {
    /// Instructions written so far.
    pub body: String,
    /// The entry block: `alloca`s, and values computed once.
    pub entry: String,
    /// Declarations and definitions that the function refers to.
    pub declared: BTreeSet<String>,
    pub(super) masks: Masks,
    /// How masks and addresses were computed, by the number of their temporary, for [`Masks::Calls`].
    pub(super) origins: HashMap<u32, Origin>,
    pub(super) known: Known,
    /// Results of operations in the entry block, by their text.
    once: HashMap<String, Val>,
    next: u32,
}

impl Writer {
    /// A function without instructions.
    pub fn new(masks: Masks) -> Writer {
        Writer { masks, ..Writer::default() }
    }

    fn fresh(&mut self, ty: Ty) -> Val {
        self.next += 1;
        Val { ty, name: Name::Temp(self.next) }
    }

    /// Creates a unique label.
    pub fn label(&mut self, hint: &str) -> String {
        self.next += 1;
        format!("{hint}.{}", self.next)
    }

    /// Writes an instruction without a result.
    pub fn line(&mut self, text: fmt::Arguments<'_>) {
        let _ = writeln!(self.body, "  {text}");
    }

    /// Begins a block with arbitrary predecessors.
    pub fn block(&mut self, label: &str) {
        self.known.forget();
        let _ = writeln!(self.body, "{label}:");
    }

    /// Begins a block whose only predecessor is the code just emitted.
    pub fn follow(&mut self, label: &str) {
        let _ = writeln!(self.body, "{label}:");
    }

    /// The insertion point, for [`Writer::join`].
    pub fn mark(&self) -> Mark {
        self.known.mark()
    }

    /// Begins a block that a point dominates; all code since was emitted after that point.
    pub fn join(&mut self, label: &str, mark: Mark) {
        self.known.back_to(mark);
        let _ = writeln!(self.body, "{label}:");
    }

    /// Emits an instruction with a result, unless the same pure operation was emitted before.
    pub fn value(&mut self, ty: Ty, text: fmt::Arguments<'_>) -> Val {
        let text = text.to_string();
        let pure = text.split(' ').next().is_some_and(is_pure);
        if pure && let Some(known) = self.known.result(&text) {
            return Val { ty, name: known.name.clone() };
        }
        let v = self.fresh(ty);
        let _ = writeln!(self.body, "  {v} = {text}");
        if pure {
            self.known.computed(&text, &v);
        }
        v
    }

    /// Records that an operation would compute an existing value.
    pub fn same(&mut self, text: fmt::Arguments<'_>, v: &Val) {
        self.known.computed(&text.to_string(), v);
    }

    /// Whether a buffer is known to have the content that [`Writer::fill`] recorded.
    pub fn holds(&self, buffer: &Val, content: &str) -> bool {
        let Name::Temp(number) = buffer.name else { return false };
        let filled = self.known.result(content);
        filled.is_some() && self.known.variable(number, 0) == filled
    }

    /// Records the content of a buffer from here on, as a description that is equal only for equal content.
    pub fn fill(&mut self, buffer: &Val, content: &str) {
        let Name::Temp(number) = buffer.name else { return };
        let token = self.fresh(buffer.ty);
        self.known.computed(content, &token);
        self.known.holds(number, 0, &token);
    }

    /// Reads a part of a variable, `offset` bytes from its start. Only [`Writer::set`] may change it.
    pub fn get(&mut self, ty: Ty, variable: &Val, offset: u64, align: u32) -> Val {
        match self.known_part(variable, offset).filter(|v| v.ty == ty) {
            Some(known) => known.clone(),
            None => self.get_changed(ty, variable, offset, align),
        }
    }

    /// Reads a part of a variable that something else has changed.
    pub fn get_changed(&mut self, ty: Ty, variable: &Val, offset: u64, align: u32) -> Val {
        let p = self.offset_const(variable, offset);
        let v = self.load(ty, &p, align);
        if let Name::Temp(number) = variable.name {
            self.known.holds(number, offset, &v);
        }
        v
    }

    /// The value that a part of a variable is known to have.
    pub fn known_part(&self, variable: &Val, offset: u64) -> Option<&Val> {
        let Name::Temp(number) = variable.name else { return None };
        self.known.variable(number, offset)
    }

    /// Writes a part of a variable.
    pub fn set(&mut self, v: &Val, variable: &Val, offset: u64, align: u32) {
        let p = self.offset_const(variable, offset);
        self.store(v, &p, align);
        if let Name::Temp(number) = variable.name {
            self.known.holds(number, offset, v);
        }
    }

    /// A variable of the function's frame.
    pub fn alloca(&mut self, ty: &str, align: u32) -> Val {
        let v = self.fresh(Ty::scalar(Elem::Ptr));
        let _ = writeln!(self.entry, "  {v} = alloca {ty}, align {align}");
        v
    }

    /// Writes an instruction with a result into the entry block.
    pub fn at_entry(&mut self, ty: Ty, text: fmt::Arguments<'_>) -> Val {
        let v = self.fresh(ty);
        let _ = writeln!(self.entry, "  {v} = {text}");
        v
    }

    /// The result of a pure operation on values of the entry block, which computes it once.
    pub fn once(&mut self, ty: Ty, text: fmt::Arguments<'_>) -> Val {
        let text = text.to_string();
        if let Some(known) = self.once.get(&text) {
            return known.clone();
        }
        let v = self.at_entry(ty, format_args!("{text}"));
        self.once.insert(text, v.clone());
        v
    }

    /// Broadcasts a scalar to all lanes; a vector is returned as it is.
    pub fn splat(&mut self, v: &Val) -> Val {
        if v.ty.vector {
            return v.clone();
        }
        let ty = Ty::lanes(v.ty.elem);
        if let Name::Text(t) = &v.name
            && !t.starts_with(['%', '@'])
        {
            return named(ty, format!("splat ({} {t})", v.ty));
        }
        if v.ty.elem == Elem::I1 && self.masks != Masks::Vectors {
            // A move from a general register; LLVM makes three vector instructions of a shuffle.
            let word = self.value(Ty::scalar(Elem::I32), format_args!("sext i1 {v} to i32"));
            return match self.masks {
                Masks::Calls => self.mask(&word),
                _ => self.value(ty, format_args!("bitcast i32 {word} to {ty}")),
            };
        }
        let one = self.value(ty, format_args!("insertelement {ty} poison, {} {v}, i32 0", v.ty));
        let all = self.value(ty, format_args!("shufflevector {ty} {one}, {ty} poison, <32 x i32> zeroinitializer"));
        if v.ty.elem == Elem::I64 {
            self.note(&all, Origin::Splat(v.clone()));
        }
        all
    }

    /// Splats one operand if the other one is a vector.
    pub fn agree(&mut self, a: &Val, b: &Val) -> (Val, Val) {
        if a.ty.vector == b.ty.vector { (a.clone(), b.clone()) } else { (self.splat(a), self.splat(b)) }
    }

    /// A binary operation: `add`, `fmul`, `lshr`.
    pub fn op(&mut self, name: &str, a: &Val, b: &Val) -> Val {
        if let Some(v) = folded(name, a, b) {
            return v;
        }
        let (a, b) = self.agree(a, b);
        let v = self.value(a.ty, format_args!("{name} {} {a}, {b}", a.ty));
        let origin = match (v.ty.elem, name) {
            (Elem::I1, "and") => Origin::And(a, b),
            (Elem::I1, "or") => Origin::Or(a, b),
            (Elem::I1, "xor") => Origin::Xor(a, b),
            (Elem::I64, "add") => Origin::Add(a, b),
            (Elem::I64, "shl") if let Some(by) = b.unsigned() => Origin::Shifted(a, by as u32),
            (Elem::I64, "mul") if let Some(factor) = b.unsigned().filter(|f| f.is_power_of_two()) => {
                Origin::Shifted(a, factor.trailing_zeros())
            }
            _ => return v,
        };
        self.note(&v, origin);
        v
    }

    /// A binary operation with a constant.
    pub fn op_const(&mut self, name: &str, a: &Val, b: i128) -> Val {
        let b = constant(a.ty, b);
        self.op(name, a, &b)
    }

    /// A comparison: `icmp eq`, `fcmp olt`.
    pub fn cmp(&mut self, name: &str, a: &Val, b: &Val) -> Val {
        if let (Some(x), Some(y)) = (a.unsigned(), b.unsigned())
            && let Some(holds) = compared(name, x, y)
        {
            return constant(Ty { elem: Elem::I1, vector: a.ty.vector || b.ty.vector }, holds.into());
        }
        let (a, b) = self.agree(a, b);
        self.value(a.ty.with(Elem::I1), format_args!("{name} {} {a}, {b}", a.ty))
    }

    /// `c ? a : b`; a scalar condition may select between vectors.
    pub fn select(&mut self, c: &Val, a: &Val, b: &Val) -> Val {
        let as_wide = a.ty.vector == (a.ty.vector || b.ty.vector || c.ty.vector);
        match c.unsigned() {
            Some(1) if as_wide => return a.clone(),
            Some(0) if b.ty.vector == (a.ty.vector || b.ty.vector || c.ty.vector) => return b.clone(),
            _ if a == b && as_wide => return a.clone(),
            _ => {}
        }
        let (mut a, mut b) = self.agree(a, b);
        if c.ty.vector {
            (a, b) = (self.splat(&a), self.splat(&b));
        }
        self.value(a.ty, format_args!("select {} {c}, {} {a}, {} {b}", c.ty, a.ty, b.ty))
    }

    /// A conversion such as `zext`, `bitcast` or `fptosi`; a no-op if the element type is right already.
    pub fn cast(&mut self, name: &str, v: &Val, elem: Elem) -> Val {
        if v.ty.elem == elem {
            return v.clone();
        }
        let ty = v.ty.with(elem);
        if let Some(bits) = v.unsigned().filter(|_| ty.is_integer()) {
            match name {
                "zext" | "trunc" => return constant(ty, bits as i128),
                "sext" => return constant(ty, signed(bits, v.ty.elem.bits())),
                _ => {}
            }
        }
        let wide = self.value(ty, format_args!("{name} {} {v} to {ty}", v.ty));
        if name == "bitcast" {
            self.same(format_args!("bitcast {ty} {wide} to {}", v.ty), v);
        }
        match (name, v.ty.elem, elem) {
            ("zext", Elem::I32, Elem::I64) => self.note(&wide, Origin::Widened(v.clone())),
            ("sext", Elem::I32, Elem::I64) => self.note(&wide, Origin::Signed(v.clone())),
            _ => {}
        }
        wide
    }

    /// Resizes an integer: truncates it, or extends it by `zext` or `sext`.
    pub fn resize(&mut self, v: &Val, elem: Elem, signed: bool) -> Val {
        let name = match elem.bits().cmp(&v.ty.elem.bits()) {
            std::cmp::Ordering::Less => "trunc",
            std::cmp::Ordering::Equal => "bitcast",
            std::cmp::Ordering::Greater if signed => "sext",
            std::cmp::Ordering::Greater => "zext",
        };
        self.cast(name, v, elem)
    }

    /// The first of two results of an instruction, which has this type.
    pub fn first_result(&mut self, ty: Ty, text: &str) -> Val {
        let pair = self.fresh(ty);
        self.line(format_args!("{pair} = {text}"));
        self.value(ty, format_args!("extractvalue {{ {ty}, i1 }} {pair}, 0"))
    }

    /// Calls an intrinsic that is overloaded on the type of its first argument.
    pub fn intrinsic(&mut self, name: &str, result: Ty, args: &[&Val]) -> Val {
        let full = args.first().map_or(name.to_string(), |a| format!("{name}.{}", mangle(a.ty)));
        self.intrinsic_named(&full, result, args)
    }

    /// Calls an intrinsic by its mangled name.
    pub fn intrinsic_named(&mut self, full: &str, result: Ty, args: &[&Val]) -> Val {
        let types: Vec<String> = args.iter().map(|a| a.ty.to_string()).collect();
        self.declared.insert(format!("declare {result} @{full}({})", types.join(", ")));
        let list: Vec<String> = args.iter().map(|a| format!("{} {a}", a.ty)).collect();
        self.value(result, format_args!("call {result} @{full}({})", list.join(", ")))
    }

    /// Loads from a pointer.
    pub fn load(&mut self, ty: Ty, pointer: &Val, align: u32) -> Val {
        self.value(ty, format_args!("load {ty}, ptr {pointer}, align {align}"))
    }

    /// Loads a value that is constant while generated code runs (`!invariant.load`).
    pub fn fixed_load(&mut self, ty: Ty, pointer: &Val, align: u32) -> Val {
        self.value(ty, format_args!("load {ty}, ptr {pointer}, align {align}, !invariant.load !4"))
    }

    /// Stores through a pointer.
    pub fn store(&mut self, v: &Val, pointer: &Val, align: u32) {
        self.line(format_args!("store {} {v}, ptr {pointer}, align {align}", v.ty));
    }

    /// `pointer + bytes`
    pub fn offset(&mut self, pointer: &Val, bytes: &Val) -> Val {
        self.value(Ty::scalar(Elem::Ptr), format_args!("getelementptr i8, ptr {pointer}, {} {bytes}", bytes.ty))
    }

    /// `pointer + bytes` for a constant.
    pub fn offset_const(&mut self, pointer: &Val, bytes: u64) -> Val {
        if bytes == 0 { pointer.clone() } else { self.offset(pointer, &int(Elem::I64, i128::from(bytes))) }
    }

    /// Extracts an element of a vector.
    pub fn extract(&mut self, v: &Val, index: &Val) -> Val {
        let ty = Ty::scalar(v.ty.elem);
        self.value(ty, format_args!("extractelement {} {v}, {} {index}", v.ty, index.ty))
    }

    /// An unconditional branch.
    pub fn jump(&mut self, label: &str) {
        self.line(format_args!("br label %{label}"));
    }

    /// A conditional branch on a scalar.
    pub fn branch(&mut self, c: &Val, yes: &str, no: &str) {
        self.line(format_args!("br i1 {c}, label %{yes}, label %{no}"));
    }

    /// A conditional branch that is almost never taken.
    pub fn branch_unlikely(&mut self, c: &Val, yes: &str, no: &str) {
        self.line(format_args!("br i1 {c}, label %{yes}, label %{no}, !prof !0"));
    }
}
