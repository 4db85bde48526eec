//! The vocabulary of a row: slots for modifiers, roles for operands, availability, effect.
//!
//! A *form* is one line of the manual's grammar, read left to right:
//! `add{.rnd}{.ftz}{.sat}.f32 d, a, b` is
//! `form(&[opt(&RND), opt(&FTZ), opt(&SAT), T.of(F32)], &[d(T), a(T), a(T)])`.

use crate::{Class, Mod, Need, Since, Target, Type, Until, Version};

/// A type variable of a form: bound by a type slot, used by operands. `cvt.T.U`, `mma....T.U.V.W`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Var {
    T,
    U,
    V,
    W,
    X,
    Y,
}

/// How many type variables a form can have.
pub const VARS: usize = 6;

impl Var {
    /// A slot that takes one of these types and binds the variable.
    pub const fn of(self, types: &'static [Type]) -> Slot {
        Slot::Type(self, types)
    }
}

/// One place in the sequence of modifiers of a form.
#[derive(Clone, Copy, Debug)]
pub enum Slot {
    /// This very word.
    One(Mod),
    /// One of a class, or nothing.
    Opt(&'static Class),
    /// One of a class.
    Req(&'static Class),
    /// A type; binds a variable.
    Type(Var, &'static [Type]),
    /// A type that may be left out.
    OptType(Var, &'static [Type]),
}

/// The type that an operand must have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ty {
    /// The type bound to a variable.
    Of(Var),
    /// Always this type.
    Is(Type),
    /// Twice the width of the variable's type, same kind (`mul.wide`).
    Wide(Var),
    /// Bits of the variable's size: any register of that width will do.
    Size(Var),
    /// A signed or unsigned integer or bits, of the variable's width.
    Int(Var),
    /// This type of bits, in a register that was declared with it and no other of its size.
    Untyped(Type),
    /// An integer or bits of 32 or 64 bits, as addresses are.
    Pointer,
    /// Anything: a named [`Rule`] decides.
    Any,
}

/// How many registers an operand holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Count {
    /// A scalar.
    One,
    /// As many as `.v2`, `.v4`, `.v8` on the instruction say; a scalar without one.
    ByVec,
    /// Exactly so many, in braces.
    Exactly(u8),
    /// A scalar or any vector: a named [`Rule`] decides (`mov.b64 {a,b}, c`).
    Free,
    /// The product of the numbers of those modifiers in the table that were written: a fragment's registers by its shape.
    /// In braces, even a single one.
    Table(&'static [(Mod, u8)]),
    /// As [`Count::Table`], but a scalar will do for one, and what a vector of two or four holds beyond is ignored: the
    /// coordinates of a texel.
    AtLeast(&'static [(Mod, u8)]),
}

/// What an operand is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// A register that is written.
    Dst,
    /// A value that is read: register, immediate, special register where the row allows it.
    Src,
    /// A constant expression.
    Imm,
    /// A bracketed address `[a+4]` in the instruction's space.
    Addr,
    /// The name of a variable with or without an offset, or a register with its address; no brackets (`cvta`, `mapa`).
    Var,
    /// A bracketed list: `[tex, sampler, {x, y}]`, `[map, {c0, c1}]`.
    Group(&'static [Opnd]),
    /// A label.
    Label,
    /// A function name, or a register that holds a function's address.
    Callee,
    /// The parenthesised list of return arguments.
    Rets,
    /// The parenthesised list of arguments.
    Args,
    /// The label of a `.branchtargets`, `.calltargets` or `.callprototype`.
    Table,
    /// The name of a `.texref`, `.samplerref` or `.surfref` variable (or formal), or a 64-bit register that holds its handle.
    Handle(Type),
}

/// Which parts of a 32-bit register an operand of a video instruction may select after a dot (section 9.7.18).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Parts {
    /// One byte or half: `.b0` to `.b3`, `.h0`, `.h1`.
    One,
    /// Two halves out of the four of `a` and `b`: `.h00` to `.h33`, higher first.
    Halves,
    /// Four bytes out of the eight of `a` and `b`: `.b0000` to `.b7777`, highest first.
    Bytes,
    /// Halves that are written: `.h0`, `.h1`, `.h10`.
    HalfMask,
    /// Bytes that are written: `.b0` to `.b3210`, in falling order.
    ByteMask,
}

/// A selection that [`Parts::parse`] understood.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Part {
    /// Bits of an element: 8 or 16.
    pub bits: u8,
    /// How many elements are selected.
    pub len: u8,
    /// Their indices, lowest place first (the text has the highest first).
    pub index: [u8; 4],
}

impl Parts {
    /// Reads a selector without its dot: `b0`, `h32`, `b3210`.
    pub fn parse(self, text: &str) -> Option<Part> {
        let (unit, digits) = (text.as_bytes().first()?, text.as_bytes().get(1..)?);
        let bits = match unit {
            b'b' => 8,
            b'h' => 16,
            _ => return None,
        };
        let (bits_wanted, lengths, limit) = match self {
            Parts::One => (bits, 1..=1, if bits == 8 { 4 } else { 2 }),
            Parts::Halves => (16, 2..=2, 4),
            Parts::Bytes => (8, 4..=4, 8),
            Parts::HalfMask => (16, 1..=2, 2),
            Parts::ByteMask => (8, 1..=4, 4),
        };
        if bits != bits_wanted || !lengths.contains(&digits.len()) {
            return None;
        }
        let mut part = Part { bits, len: digits.len() as u8, index: [0; 4] };
        for (slot, digit) in part.index.iter_mut().zip(digits.iter().rev()) {
            *slot = digit.wrapping_sub(b'0');
            if *slot >= limit {
                return None;
            }
        }
        let falling = part.index[..digits.len()].windows(2).all(|w| w[0] < w[1]);
        (falling || !matches!(self, Parts::HalfMask | Parts::ByteMask)).then_some(part)
    }
}

impl Part {
    /// The selection in one word, for stages that carry it as a constant operand: nibble `i` is the index of element `i` plus 1
    /// (0 where nothing is selected), bit 16 tells halves from bytes. A register without selector is 0.
    pub const fn code(self) -> u32 {
        let mut code = if self.bits == 16 { 1 << 16 } else { 0 };
        let mut i = 0;
        while i < self.len {
            code |= (self.index[i as usize] as u32 + 1) << (4 * i);
            i += 1;
        }
        code
    }
}

/// One operand of a form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Opnd {
    /// The manual's name for it: `d`, `a`, `b`.
    pub name: &'static str,
    /// What it is for.
    pub role: Role,
    /// Its type.
    pub ty: Ty,
    /// How many registers.
    pub count: Count,
    /// Type of the partner after `|` (`p|q`, `d|p`), if one may stand there.
    pub pair: Option<Ty>,
    /// The partner may not be left out.
    pub paired: bool,
    /// May be left out (together with everything behind it).
    pub optional: bool,
    /// `_` may stand here.
    pub sink: bool,
    /// `!` may stand before it.
    pub not: bool,
    /// A register wider than the type is allowed (section 9.4.1).
    pub wider: bool,
    /// Immediates are allowed ([`Role::Src`] only).
    pub imm: bool,
    /// Stands there exactly when one of these modifiers is written (`.L2::cache_hint` and its policy). Empty: always.
    pub when: &'static [Mod],
    /// The only constants allowed; empty for no such limit.
    pub values: &'static [i64],
    /// For addresses: in this space, whatever the instruction's own space is.
    pub space: Option<Mod>,
    /// A part of the register may be selected (video instructions).
    pub parts: Option<Parts>,
    /// `-` may stand before the register (`vmad`).
    pub neg: bool,
    /// Type of the first element of a vector, where it is another than that of the rest: the layer before coordinates.
    pub lead: Option<Ty>,
    /// Special registers are allowed (`mov`).
    pub special: bool,
    /// `.unified` may follow the bracket (`ld`, section 9.7.9.8).
    pub unified: bool,
    /// Smallest and largest value of a constant, where ptxas checks it.
    pub range: Option<(i64, i64)>,
    /// A constant must be a multiple of this.
    pub step: i64,
}

impl Opnd {
    const fn new(name: &'static str, role: Role, ty: Ty) -> Opnd {
        let imm = matches!(role, Role::Src | Role::Imm);
        Opnd {
            name,
            role,
            ty,
            count: Count::One,
            pair: None,
            paired: false,
            optional: false,
            sink: false,
            not: false,
            wider: false,
            imm,
            when: &[],
            values: &[],
            space: None,
            parts: None,
            neg: false,
            lead: None,
            special: false,
            unified: false,
            range: None,
            step: 1,
        }
    }

    /// May be left out.
    pub const fn opt(mut self) -> Opnd {
        self.optional = true;
        self
    }

    /// `_` may stand here.
    pub const fn sink(mut self) -> Opnd {
        self.sink = true;
        self
    }

    /// Has the manual's name `name`.
    pub const fn named(mut self, name: &'static str) -> Opnd {
        self.name = name;
        self
    }

    /// May have a partner of type `ty` after `|`.
    pub const fn pair(mut self, ty: Ty) -> Opnd {
        self.pair = Some(ty);
        self
    }

    /// Must have a partner of type `ty` after `|`.
    pub const fn paired(mut self, ty: Ty) -> Opnd {
        self.pair = Some(ty);
        self.paired = true;
        self
    }

    /// Registers only, no immediate.
    pub const fn reg(mut self) -> Opnd {
        self.imm = false;
        self
    }

    /// Registers may be wider than the type.
    pub const fn wider(mut self) -> Opnd {
        self.wider = true;
        self
    }

    /// Stands there exactly when one of these modifiers is written.
    pub const fn when(mut self, mods: &'static [Mod]) -> Opnd {
        self.when = mods;
        self
    }

    /// Takes only these constants.
    pub const fn values(mut self, values: &'static [i64]) -> Opnd {
        self.values = values;
        self
    }

    /// An address in that space.
    pub const fn space(mut self, space: Mod) -> Opnd {
        self.space = Some(space);
        self
    }

    /// A part may be selected.
    pub const fn parts(mut self, parts: Parts) -> Opnd {
        self.parts = Some(parts);
        self
    }

    /// May be negated.
    pub const fn neg(mut self) -> Opnd {
        self.neg = true;
        self
    }

    /// Its first element has that type.
    pub const fn lead(mut self, ty: Ty) -> Opnd {
        self.lead = Some(ty);
        self
    }

    /// Special registers are allowed.
    pub const fn special(mut self) -> Opnd {
        self.special = true;
        self
    }

    /// `.unified` may follow.
    pub const fn unified(mut self) -> Opnd {
        self.unified = true;
        self
    }

    /// A constant must lie between `low` and `high`.
    pub const fn range(mut self, low: i64, high: i64) -> Opnd {
        self.range = Some((low, high));
        self
    }

    /// A constant must be a multiple of `step`.
    pub const fn step(mut self, step: i64) -> Opnd {
        self.step = step;
        self
    }

    /// `!` may stand before it.
    pub const fn not(mut self) -> Opnd {
        self.not = true;
        self
    }

    /// Holds `count` registers.
    pub const fn count(mut self, count: Count) -> Opnd {
        self.count = count;
        self
    }
}

/// A destination of the variable's type.
pub const fn d(v: Var) -> Opnd {
    Opnd::new("d", Role::Dst, Ty::Of(v))
}

/// A source of the variable's type.
pub const fn a(v: Var) -> Opnd {
    Opnd::new("a", Role::Src, Ty::Of(v))
}

/// A second source of the variable's type.
pub const fn b(v: Var) -> Opnd {
    a(v).named("b")
}

/// A third source of the variable's type.
pub const fn c(v: Var) -> Opnd {
    a(v).named("c")
}

/// A destination of a type expression.
pub const fn dst(ty: Ty) -> Opnd {
    Opnd::new("d", Role::Dst, ty)
}

/// A source of a type expression.
pub const fn src(ty: Ty) -> Opnd {
    Opnd::new("a", Role::Src, ty)
}

/// A predicate that is read, `!p` allowed.
pub const fn p_in() -> Opnd {
    let mut o = Opnd::new("c", Role::Src, Ty::Is(Type::Pred));
    o.not = true;
    o
}

/// A predicate that is written.
pub const fn p_out() -> Opnd {
    Opnd::new("p", Role::Dst, Ty::Is(Type::Pred))
}

/// An address in brackets.
pub const fn addr() -> Opnd {
    Opnd::new("a", Role::Addr, Ty::Pointer)
}

/// A constant.
pub const fn imm(ty: Ty) -> Opnd {
    Opnd::new("imm", Role::Imm, ty)
}

/// An operand of any other role.
pub const fn operand(name: &'static str, role: Role, ty: Ty) -> Opnd {
    Opnd::new(name, role, ty)
}

/// Named rules that a row asks for; `check` holds their code, one file each.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Rule {
    /// `mov`: packing and unpacking of vectors, addresses of variables, labels and functions.
    MovOperand,
    /// `st.param`, `ld.param`: which parameter may be read or written where.
    ParamWindow,
    /// `call`: arguments against the callee's signature or prototype.
    CallSignature,
    /// Vectors hold at most 128 bits in all, or, in generic or global memory, 256 bits as `.v8.b32` or `.v4.b64`.
    VectorWidth,
    /// Vectors hold at most 128 bits in all.
    NarrowVector,
    /// Cache hints, eviction priorities and prefetch sizes are for generic and global addresses.
    GlobalHint,
    /// An L2 eviction priority needs an access of 256 bits.
    WideEviction,
    /// `cp.async`: a constant `src-size` is at most `cp-size`.
    CopySourceSize,
    /// Without a space word the address is generic, but a variable that is named must lie in `.shared`.
    SharedVariable,
    /// The destination must be `_`: an arrival at another CTA's barrier has no state.
    SinkOnly,
    /// `mma` with block scaling: of a constant selector `{byte-id, thread-id}` the byte is 0 to 3 with `.scale_vec::1X` (the
    /// default of `.kind::mxf8f6f4`), 0 or 2 with `::2X`, 0 with `::4X`; the thread is 0 or 1 for A, 0 to 3 for B.
    ScaleSelector,
    /// `alloca`: the alignment is a power of two, at most 2^23.
    StackAlignment,
    /// A register as a handle of a texture, sampler or surface needs PTX ISA 3.1 and `sm_20`.
    HandleRegister,
    /// A predicate after `|` (is the texel resident?) needs PTX ISA 7.1 and `sm_60`.
    ResidentPredicate,
    /// No sampler is named: the module must be in unified texturing mode.
    UnifiedMode,
    /// A sampler is named: the module must be in independent texturing mode.
    IndependentMode,
    /// `tensormap.replace`: `.elemtype` 13 to 15 need PTX ISA 8.7 and `sm_100` or later families, `.swizzle_mode` 4 needs 8.8
    /// and `sm_103a`.
    TensorMapValue,
    /// `vmad`: the product is negated when exactly one of `a` and `b` is; not both the product and `c` may be negated.
    VmadNegation,
}

/// Who executes a row.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Effect {
    /// A function of its operands' bits, lane by lane.
    Pure,
    /// Reads or writes memory, or orders accesses.
    Memory,
    /// Changes which instruction comes next.
    Control,
    /// Calls a function.
    Call,
    /// Needs the other lanes of the warp, or the CTA, or reads machine state.
    Warp,
}

/// How far the result of an approximate form may be from the exact one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Accuracy {
    /// Units in the last place.
    Ulp(f32),
    /// Relative error at most 2 to this power.
    Relative(f32),
    /// Absolute error at most 2 to this power.
    Absolute(f32),
}

/// One form of an instruction: a row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// Modifiers in the manual's order.
    pub slots: &'static [Slot],
    /// How many of the first slots ptxas reads as part of the opcode: they stand first, in this order (`mul.lo`, `cvta.to`).
    pub fixed: u8,
    /// Operands in order.
    pub operands: &'static [Opnd],
    /// Since when.
    pub since: Since,
    /// From which version and target on it is refused (`shfl` without `.sync`).
    pub until: Option<Until>,
    /// Alternatives that came later.
    pub needs: &'static [Need],
    /// Cross-instruction rules.
    pub rules: &'static [Rule],
    /// Error bound of an approximate form.
    pub accuracy: Option<Accuracy>,
    /// The manual's section, where it is another than the opcode's ([`Op::section`]).
    pub section: Option<&'static str>,
}

/// A form available everywhere; the methods below narrow it.
pub const fn form(slots: &'static [Slot], operands: &'static [Opnd]) -> Form {
    Form {
        slots,
        fixed: 0,
        operands,
        since: Since::ALWAYS,
        until: None,
        needs: &[],
        rules: &[],
        accuracy: None,
        section: None,
    }
}

impl Form {
    /// Exists since PTX ISA `major.minor`.
    pub const fn ptx(mut self, major: u16, minor: u16) -> Form {
        self.since.ptx = Version::new(major, minor);
        self
    }

    /// Needs `sm_NN` or higher.
    pub const fn sm(mut self, sm: u16) -> Form {
        self.since.sm = sm;
        self
    }

    /// Needs one of these specific targets.
    pub const fn targets(mut self, only: &'static [Target]) -> Form {
        self.since.only = only;
        self
    }

    /// Exists under another pair of version and target too.
    pub const fn or(mut self, or: &'static [Since]) -> Form {
        self.since.or = or;
        self
    }

    /// Refused from PTX ISA `major.minor` on for targets from `sm_NN` on.
    pub const fn until(mut self, major: u16, minor: u16, sm: u16) -> Form {
        self.until = Some(Until { ptx: Version::new(major, minor), sm });
        self
    }

    /// The first `slots` slots belong to the opcode.
    pub const fn fixed(mut self, slots: u8) -> Form {
        self.fixed = slots;
        self
    }

    /// Alternatives with needs of their own.
    pub const fn only(mut self, needs: &'static [Need]) -> Form {
        self.needs = needs;
        self
    }

    /// Named rules.
    pub const fn rules(mut self, rules: &'static [Rule]) -> Form {
        self.rules = rules;
        self
    }

    /// Is described in another section than the opcode.
    pub const fn section(mut self, section: &'static str) -> Form {
        self.section = Some(section);
        self
    }

    /// Largest error in units of the last place.
    pub const fn ulp(mut self, ulp: f32) -> Form {
        self.accuracy = Some(Accuracy::Ulp(ulp));
        self
    }

    /// Largest relative error, as its base-2 logarithm.
    pub const fn relative(mut self, log2: f32) -> Form {
        self.accuracy = Some(Accuracy::Relative(log2));
        self
    }

    /// Largest absolute error, as its base-2 logarithm; over which range is the section's matter.
    pub const fn absolute(mut self, log2: f32) -> Form {
        self.accuracy = Some(Accuracy::Absolute(log2));
        self
    }
}

/// The forms of an opcode that one section of the manual describes.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    /// The section.
    pub section: &'static str,
    /// Its forms.
    pub forms: &'static [Form],
}

/// Forms of one section; `joined!` joins those of an opcode.
pub const fn rows(section: &'static str, forms: &'static [Form]) -> Rows {
    Rows { section, forms }
}

/// How many forms there are in all these sections.
pub const fn total(sections: &[Rows]) -> usize {
    let (mut n, mut i) = (0, 0);
    while i < sections.len() {
        n += sections[i].forms.len();
        i += 1;
    }
    n
}

/// The forms of all these sections in order, each with its section. `N` is their [`total`].
pub const fn flatten<const N: usize>(sections: &[Rows]) -> [Form; N] {
    let mut all = [form(&[], &[]); N];
    let (mut n, mut i) = (0, 0);
    while i < sections.len() {
        let mut j = 0;
        while j < sections[i].forms.len() {
            all[n] = sections[i].forms[j].section(sections[i].section);
            n += 1;
            j += 1;
        }
        i += 1;
    }
    all
}

/// `joined!("add", Pure, "`d = a + b`", integer::ADD, float::ADD)`: an opcode whose forms stand in several sections.
macro_rules! joined {
    ($name:literal, $effect:expr, $doc:literal, $($rows:expr),+ $(,)?) => {{
        static ROWS: &[$crate::Rows] = &[$($rows),+];
        static FORMS: [$crate::Form; $crate::total(ROWS)] = $crate::flatten(ROWS);
        $crate::op($name, ROWS[0].section, $effect, $doc, &FORMS)
    }};
}
pub(crate) use joined;

/// One opcode with its forms.
#[derive(Debug)]
pub struct Op {
    /// The word before the first dot.
    pub name: &'static str,
    /// The manual's section, e.g. `9.7.1.1`.
    pub section: &'static str,
    /// Who executes it.
    pub effect: Effect,
    /// One sentence.
    pub doc: &'static str,
    /// The forms, at least one.
    pub forms: &'static [Form],
}

/// An opcode; one without forms is a mistake in the table and does not compile.
pub const fn op(
    name: &'static str,
    section: &'static str,
    effect: Effect,
    doc: &'static str,
    forms: &'static [Form],
) -> Op {
    assert!(!forms.is_empty(), "an opcode has at least one form");
    Op { name, section, effect, doc, forms }
}

/// Shorthand for a [`Slot::One`].
pub const fn one(m: Mod) -> Slot {
    Slot::One(m)
}

/// Shorthand for a [`Slot::Opt`].
pub const fn opt(class: &'static Class) -> Slot {
    Slot::Opt(class)
}

/// Shorthand for a [`Slot::Req`].
pub const fn req(class: &'static Class) -> Slot {
    Slot::Req(class)
}
