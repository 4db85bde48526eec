//! Functions that are called through pointers get their parameters from callers unknown to the analysis of interfaces. Most of them are methods
//! that all lanes call for one object, so that loads of its members and calls of further methods are the same for all lanes. Such a function
//! has two bodies, one of which assumes that the first parameter is uniform; its entry selects one of them.

use crate::emit::{
    call::signature,
    function::{Emitted, Options, prepare::Prepared, reach::Reached, symbol},
    text::{Elem, Ty},
};
use margay_check::FuncKind;
use margay_ir::{
    FormalHome, Func, FuncId, Ir, Placed,
    abi::Place,
    explicit::{Carrier, Carries, Interface},
};
use margay_isa::Opcode;
use std::fmt::Write;

/// The suffix of the body for lanes whose first arguments may differ.
pub(in crate::emit) const APART: &str = ".apart";

/// The suffix of the body for lanes with one first argument.
pub(in crate::emit) const ALIKE: &str = ".alike";

/// Instructions beyond which a second body costs more compile time than it saves.
const LIMIT: usize = 400;

/// The function prepared for lanes with one first argument, if it has a body for them, and what carries that argument.
pub(in crate::emit) fn prepare<'a>(
    ir: &'a Ir<Placed>,
    id: FuncId,
    options: &Options,
    reached: &Reached,
) -> Option<(Prepared, &'a Carrier)> {
    let func = ir.func(id);
    let called = func.kind == FuncKind::Device && ir.address_taken.contains(&id);
    let loads = func.insts.iter().any(|i| func.variant(i).op == Opcode::Ld);
    // Where lanes wait for each other, few values stay uniform.
    let simple = !options.lean && options.observe.is_none() && !reached.fibers;
    if !called || !simple || !loads || func.insts.len() > LIMIT {
        return None;
    }
    let first = carrier(func, &ir.stage.funcs[id.0 as usize].interface)?;
    let mut func = func.clone();
    let mut sig = (*func.sig).clone();
    sig.params[0].varying = false;
    func.sig = sig.into();
    let prepared = Prepared::new(id, &func, options, reached);
    (!prepared.divergent && !prepared.spins).then_some((prepared, first))
}

/// What carries the first parameter, if that is a pointer which each lane passes in the same register of the plan.
fn carrier<'a>(func: &Func, interface: &'a Interface) -> Option<&'a Carrier> {
    let (value, home) = (func.sig.params.first()?, func.params.first()?);
    let whole = match home {
        FormalHome::Regs(regs) => regs.len() == 1,
        FormalHome::Frame(id) => !func.frame[id.0 as usize].address_taken,
        FormalHome::Kernel(_) => false,
    };
    if !whole || !value.varying || value.size != 8 {
        return None;
    }
    let [piece] = &interface.args.first()?.pieces[..] else { return None };
    let Place::Reg(reg) = piece.at else { return None };
    interface.carriers.inputs.iter().find(|c| c.reg == reg && c.bytes == 8 && c.carries == Carries::Lanes)
}

/// The function, whose entry calls the one body or the other, by what `first` carries.
pub(in crate::emit) fn join(
    ir: &Ir<Placed>,
    id: FuncId,
    first: &Carrier,
    (apart, alike): (Emitted, Emitted),
) -> Emitted {
    let carriers = &ir.stage.funcs[id.0 as usize].interface.carriers;
    let name = symbol(id);
    let result = signature::result(carriers, false);
    let all = signature::parameters(ir, carriers);
    let mut text = apart.text + &alike.text;
    let mut line = |l: String| {
        let _ = writeln!(text, "{l}");
    };
    line(format!("define {result} @{name}(ptr %ctx, i32 %mask, i32 %frame{all}) #0 {{\nentry:"));
    let (given, lanes) = (signature::argument(ir, first), Ty::lanes(Elem::I64));
    line("  %lane = call i32 @llvm.cttz.i32(i32 %mask, i1 false)\n  %leads = and i32 %lane, 31".into());
    line(format!("  %one = extractelement {lanes} {given}, i32 %leads"));
    line(format!("  %lead = insertelement {lanes} poison, i64 %one, i32 0"));
    line(format!("  %leads.all = shufflevector {lanes} %lead, {lanes} poison, <32 x i32> zeroinitializer"));
    line(format!("  %differ = icmp ne {lanes} {given}, %leads.all"));
    line("  %bits = bitcast <32 x i1> %differ to i32\n  %others = and i32 %bits, %mask".into());
    line("  %same = icmp eq i32 %others, 0\n  br i1 %same, label %alike, label %apart".into());
    for (label, suffix) in [("alike", ALIKE), ("apart", APART)] {
        line(format!(
            "{label}:\n  %{label}.result = call {result} @{name}{suffix}(ptr %ctx, i32 %mask, i32 %frame{all})"
        ));
        line(format!("  ret {result} %{label}.result"));
    }
    line("}".into());
    let mut declared = apart.declared;
    declared.extend(alike.declared);
    declared.insert("declare i32 @llvm.cttz.i32(i32, i1)".into());
    Emitted {
        text,
        declared,
        spill_size: apart.spill_size.max(alike.spill_size),
        uses_local: apart.uses_local || alike.uses_local,
        interleaved: apart.interleaved.or(alike.interleaved),
        by_warp: apart.by_warp || alike.by_warp,
    }
}
