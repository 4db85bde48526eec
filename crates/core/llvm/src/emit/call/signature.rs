//! The calling convention of compiled functions: the carriers of a plan as LLVM arguments and results.
//!
//! `status @f(ptr %ctx, i32 %mask, i32 %frame, registers, areas)`: the plan's argument registers, under their names in
//! the ABI (`<32 x iN>` for a varying value, `iN` for a uniform one, `ptr` to the area of a large value); then, where
//! the plan uses them, `ptr %stack` and `ptr %space`: areas (see [`super::area`]). A function with an unsized parameter
//! also gets `i32 %incoming, i32 %passed`: the offset of its caller's outgoing area in the local window, and the number
//! of bytes there. Result registers follow the status, `iN` where all lanes get the same value: `{ i32, <32 x iN>, … }`.

use crate::ctx::status;
use crate::emit::{
    function::{Emitter, symbol},
    text::{Elem, Ty, Val, named},
};
use margay_ir::{
    Ir, Placed, abi,
    explicit::{Carrier, Carriers, Carries},
};
use std::fmt::Write;

/// LLVM type of a carrier's value.
pub(in crate::emit) fn carried(c: &Carrier) -> Ty {
    let elem = integer(c.bytes);
    match c.carries {
        Carries::Lanes => Ty::lanes(elem),
        Carries::Uniform => Ty::scalar(elem),
        Carries::Pointer => Ty::scalar(Elem::Ptr),
    }
}

/// LLVM type of a carrier's value in an argument or result block: lanes that share it may be of several calls.
pub(in crate::emit) fn stored(c: &Carrier) -> Ty {
    match c.carries {
        Carries::Lanes | Carries::Uniform => Ty::lanes(integer(c.bytes)),
        Carries::Pointer => carried(c),
    }
}

/// The smallest integer type that holds `bytes` bytes.
pub(in crate::emit) fn integer(bytes: u32) -> Elem {
    Elem::int(bytes.next_power_of_two().clamp(1, 16) * 8)
}

/// A carrier's register as an LLVM argument.
pub(in crate::emit) fn argument(ir: &Ir<Placed>, c: &Carrier) -> Val {
    let name = match abi::by_name(ir.stage.abi) {
        Some(abi) => abi.register_name(c.reg),
        None => format!("{}{}", c.reg.class, c.reg.index),
    };
    named(carried(c), format!("%{name}"))
}

/// Types and names of all parameters after `%frame`, each preceded by a comma.
pub(in crate::emit) fn parameters(ir: &Ir<Placed>, c: &Carriers) -> String {
    let mut text = String::new();
    for c in &c.inputs {
        let v = argument(ir, c);
        let _ = write!(text, ", {} {v}", v.ty);
    }
    for (name, there) in [("stack", c.stack > 0), ("space", c.space > 0)] {
        if there {
            let _ = write!(text, ", ptr %{name}");
        }
    }
    if c.passes {
        text.push_str(", i32 %incoming, i32 %passed");
    }
    text
}

/// LLVM return type of a function; just the status if it stores its results in memory.
pub(in crate::emit) fn result(c: &Carriers, stores: bool) -> String {
    if c.outputs.is_empty() || stores {
        return "i32".into();
    }
    let types: Vec<String> = c.outputs.iter().map(|c| carried(c).to_string()).collect();
    format!("{{ i32, {} }}", types.join(", "))
}

/// Offsets of carriers in an argument or result block, and the block's size: 64 bytes for a pointer, else a vector.
/// Uniform values are stored per lane, since groups of lanes in several calls may share the block.
pub(in crate::emit) fn slots(carriers: &[Carrier]) -> (Vec<u64>, u64) {
    let mut end = 0;
    let mut next = |c: &Carrier| {
        let at = end;
        end += match c.carries {
            Carries::Pointer => 64,
            Carries::Lanes | Carries::Uniform => u64::from(carried(c).elem.bits()) * 4,
        };
        end = end.next_multiple_of(64);
        at
    };
    (carriers.iter().map(&mut next).collect(), end)
}

impl Emitter<'_> {
    /// Returns with a status and, if that is [`status::DONE`], the values stored for the results.
    pub fn return_status(&mut self, status: u32) {
        let carriers = &self.interface().carriers;
        let ty = result(carriers, self.stores_results());
        if ty == "i32" {
            return self.w.line(format_args!("ret i32 {status}"));
        }
        let mut last = format!("insertvalue {ty} poison, i32 {status}, 0");
        for (i, slot) in self.calls.results.clone().iter().enumerate().filter(|_| status == status::DONE) {
            let whole = self.w.value(Ty::scalar(Elem::Ptr), format_args!("{last}"));
            let v = self.w.load(slot.0, &slot.1, 64);
            last = format!("insertvalue {ty} {whole}, {} {v}, {}", v.ty, i + 1);
        }
        let whole = self.w.value(Ty::scalar(Elem::Ptr), format_args!("{last}"));
        self.w.line(format_args!("ret {ty} {whole}"));
    }

    /// Whether results are returned in memory, since lanes return at different times.
    pub fn stores_results(&self) -> bool {
        self.reached.fibers && self.reached.returns_divergent(self.id)
    }

    /// The function's own interface: what its callers must pass and expect.
    pub fn interface(&self) -> &margay_ir::explicit::Interface {
        &self.ir.stage.funcs[self.id.0 as usize].interface
    }

    /// The function's entry for calls on a fiber, with arguments and results in blocks in memory.
    pub fn trampoline(&self) -> String {
        let (carriers, name) = (&self.interface().carriers, symbol(self.id));
        let stores = self.stores_results();
        let mut text =
            format!("define i32 @{name}.fiber(ptr %ctx, i32 %mask, i32 %frame, ptr %args, ptr %rets) #0 {{\n");
        let mut line = |l: String| {
            let _ = writeln!(text, "  {l}");
        };
        line("%first = call i32 @llvm.cttz.i32(i32 %mask, i1 true)".into());
        line("%lanes = bitcast i32 %mask to <32 x i1>".into());
        let mut list = String::new();
        let (offsets, end) = slots(&carriers.inputs);
        for (i, (c, at)) in carriers.inputs.iter().zip(offsets).enumerate() {
            let (ty, wide) = (carried(c), stored(c));
            line(format!("%p{i} = getelementptr i8, ptr %args, i64 {at}"));
            line(format!("%v{i} = load {wide}, ptr %p{i}, align 8"));
            match c.carries {
                Carries::Uniform => {
                    line(format!("%u{i} = extractelement {wide} %v{i}, i32 %first"));
                    let _ = write!(list, ", {ty} %u{i}");
                }
                Carries::Lanes | Carries::Pointer => {
                    let _ = write!(list, ", {ty} %v{i}");
                }
            }
        }
        for (i, (ty, name)) in beside(carriers).into_iter().enumerate() {
            line(format!("%{name}.p = getelementptr i8, ptr %args, i64 {}", end + 64 * i as u64));
            line(format!("%{name} = load {ty}, ptr %{name}.p, align 8"));
            let _ = write!(list, ", {ty} %{name}");
        }
        if stores {
            list.push_str(", ptr %rets");
        }
        let ty = result(carriers, stores);
        line(format!("%result = call {ty} @{name}(ptr %ctx, i32 %mask, i32 %frame{list})"));
        if ty == "i32" {
            line("ret i32 %result".into());
        } else {
            let (offsets, _) = slots(&carriers.outputs);
            for (i, (c, at)) in carriers.outputs.iter().zip(offsets).enumerate() {
                let (one, ty) = (carried(c), stored(c));
                let got = if one.vector { "new" } else { "got" };
                line(format!("%{got}{i} = extractvalue {} %result, {}", result(carriers, false), i + 1));
                if !one.vector {
                    line(format!("%one{i} = insertelement {ty} poison, {one} %got{i}, i32 0"));
                    line(format!("%new{i} = shufflevector {ty} %one{i}, {ty} poison, <32 x i32> zeroinitializer"));
                }
                line(format!("%to{i} = getelementptr i8, ptr %rets, i64 {at}"));
                line(format!("%old{i} = load {ty}, ptr %to{i}, align 64"));
                line(format!("%mix{i} = select <32 x i1> %lanes, {ty} %new{i}, {ty} %old{i}"));
                line(format!("store {ty} %mix{i}, ptr %to{i}, align 64"));
            }
            line(format!("%status = extractvalue {ty} %result, 0"));
            line("ret i32 %status".into());
        }
        text.push_str("}\n");
        text
    }
}

/// Types and names of the parameters after the registers.
pub(in crate::emit) fn beside(c: &Carriers) -> Vec<(&'static str, &'static str)> {
    let areas = [("ptr", "stack", c.stack > 0), ("ptr", "space", c.space > 0)];
    let passed = [("i32", "incoming", c.passes), ("i32", "passed", c.passes)];
    areas.into_iter().chain(passed).filter(|a| a.2).map(|a| (a.0, a.1)).collect()
}
