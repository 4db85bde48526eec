//! What compiled functions look like to each other: the carriers of a plan as LLVM arguments and results.
//!
//! `status @f(ptr %ctx, i32 %mask, i32 %frame, registers, areas)`: the registers of the plan that carry inputs, under their names
//! in the ABI (`<32 x iN>` for a value of each lane, `iN` for one that all lanes share, `ptr` in front of a large value), then, where
//! the plan uses them, `ptr %stack` and `ptr %space`: blocks of lanes (see [`super::area`]). A function with a formal without
//! size gets `i32 %incoming, i32 %passed`: where its caller's outgoing area lies in the thread's local window, and how many
//! bytes are there. The registers of the returns follow the status: `{ i32, <32 x iN>, … }`.

use crate::emit::{
    function::Emitter,
    text::{Elem, Ty, Val, named},
};
use margay_ir::{
    Ir, Placed, abi,
    explicit::{Carrier, Carriers, Carries},
};
use std::fmt::Write;

/// Type of what a register carries.
pub(in crate::emit) fn carried(c: &Carrier) -> Ty {
    let elem = integer(c.bytes);
    match c.carries {
        Carries::Lanes => Ty::lanes(elem),
        Carries::Uniform => Ty::scalar(elem),
        Carries::Pointer => Ty::scalar(Elem::Ptr),
    }
}

/// The integer that holds so many bytes.
pub(in crate::emit) fn integer(bytes: u32) -> Elem {
    Elem::int(bytes.next_power_of_two().clamp(1, 16) * 8)
}

/// The name of a register as an argument.
pub(in crate::emit) fn argument(ir: &Ir<Placed>, c: &Carrier) -> Val {
    let name = match abi::by_name(ir.stage.abi) {
        Some(abi) => abi.register_name(c.reg),
        None => format!("{}{}", c.reg.class, c.reg.index),
    };
    named(carried(c), format!("%{name}"))
}

/// The types and names of all that follows `%frame`, each behind a comma.
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

/// What a function returns. One from which lanes come back at different times stores its results instead.
pub(in crate::emit) fn result(c: &Carriers, stores: bool) -> String {
    if c.outputs.is_empty() || stores {
        return "i32".into();
    }
    let types: Vec<String> = c.outputs.iter().map(|c| carried(c).to_string()).collect();
    format!("{{ i32, {} }}", types.join(", "))
}

/// Offsets of a call's registers in a block in memory, and the block's size: 64 bytes or a vector each. Values that all lanes share
/// stand there for each lane, since calls of several groups of lanes may wait in one block.
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
    /// Ends the function with a status: its results are what was stored for them.
    pub fn return_status(&mut self, status: u32, results: bool) {
        let carriers = &self.interface().carriers;
        let ty = result(carriers, self.stores_results());
        if ty == "i32" {
            return self.w.line(format_args!("ret i32 {status}"));
        }
        let mut last = format!("insertvalue {ty} poison, i32 {status}, 0");
        for (i, slot) in self.outputs.clone().iter().enumerate().filter(|_| results) {
            let whole = self.w.value(Ty::scalar(Elem::Ptr), format_args!("{last}"));
            let v = self.w.load(slot.0, &slot.1, 64);
            last = format!("insertvalue {ty} {whole}, {} {v}, {}", v.ty, i + 1);
        }
        let whole = self.w.value(Ty::scalar(Elem::Ptr), format_args!("{last}"));
        self.w.line(format_args!("ret {ty} {whole}"));
    }

    /// Whether the function's results go to memory, since lanes come back from it at different times.
    pub fn stores_results(&self) -> bool {
        self.reached.fibers && self.reached.parts(self.id)
    }

    /// The function's own side of its calls.
    pub fn interface(&self) -> &margay_ir::explicit::Interface {
        &self.ir.stage.funcs[self.id.0 as usize].interface
    }

    /// The code that enters the function on a stack of its own, with registers and results in blocks in memory.
    pub fn trampoline(&self) -> String {
        let (carriers, name) = (&self.interface().carriers, super::super::function::symbol(self.id));
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
            let ty = carried(c);
            let wide = if c.carries == Carries::Uniform { Ty::lanes(ty.elem) } else { ty };
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
                let ty = carried(c);
                line(format!("%new{i} = extractvalue {} %result, {}", result(carriers, false), i + 1));
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

/// Arguments beside the registers: types and names.
pub(in crate::emit) fn beside(c: &Carriers) -> Vec<(&'static str, &'static str)> {
    let areas = [("ptr", "stack", c.stack > 0), ("ptr", "space", c.space > 0)];
    let passed = [("i32", "incoming", c.passes), ("i32", "passed", c.passes)];
    areas.into_iter().chain(passed).filter(|a| a.2).map(|a| (a.0, a.1)).collect()
}
