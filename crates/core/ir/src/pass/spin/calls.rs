//! Calls of functions whose results may show whether other threads have made progress, such as one that tries to take a lock: a loop that
//! calls it again until it succeeds waits for those threads.

use super::{observes_others, update::retries};
use crate::{BlockId, Callee, FrameRole, Func, Inst, Ir, MemBase, Operand, Stage, pass::Cfg};
use margay_check::FuncKind;
use margay_isa::{Mod, Opcode};
use std::sync::Arc;

/// Notes the call sites whose callees observe other threads ([`crate::CallSite::observes`]).
pub fn mark_observing_calls<S: Stage>(ir: &mut Ir<S>) {
    let device = |f: &Func| f.kind == FuncKind::Device && !f.blocks.is_empty();
    let mut observing: Vec<bool> = ir.funcs.iter().map(|f| device(f) && shows_progress(f)).collect();
    if !observing.contains(&true) {
        return;
    }
    let may = |callee: &Callee, observing: &[bool]| match callee {
        Callee::Direct(f) => observing[f.0 as usize],
        Callee::Indirect(_, list) => {
            list.as_deref().unwrap_or(&ir.address_taken).iter().any(|f| observing[f.0 as usize])
        }
    };
    let mut changed = true;
    while changed {
        changed = false;
        for (i, func) in ir.funcs.iter().enumerate() {
            if !observing[i] && func.calls.iter().any(|c| may(&c.callee, &observing)) {
                (observing[i], changed) = (true, true);
            }
        }
    }
    let marks: Vec<Vec<bool>> =
        ir.funcs.iter().map(|f| f.calls.iter().map(|c| may(&c.callee, &observing)).collect()).collect();
    for (func, marks) in ir.funcs.iter_mut().zip(marks).filter(|(_, marks)| marks.contains(&true)) {
        let sites = &mut Arc::make_mut(func).calls;
        sites.iter_mut().zip(marks).for_each(|(site, mark)| site.observes = mark);
    }
}

/// Whether an instruction is a call in which a thread may observe others.
pub(super) fn observes(func: &Func, inst: &Inst) -> bool {
    matches!(func.operands(inst.srcs), [Operand::Call(site)] if func.calls[*site as usize].observes)
}

/// Whether an instruction stores an argument of a call, or loads its result.
pub(super) fn is_passed(func: &Func, inst: &Inst) -> bool {
    let framed = |o: &Operand| match o {
        Operand::Mem(MemBase::Frame(id), _) => func.frame[id.0 as usize].role != FrameRole::Local,
        _ => false,
    };
    matches!(func.variant(inst).op, Opcode::Ld | Opcode::St) && func.operands(inst.srcs).first().is_some_and(framed)
}

/// Whether a function looks at what others do, other than in loops that try an update again.
fn shows_progress(func: &Func) -> bool {
    let looks = |inst: &Inst| observes_others(func, inst) || tests_phase(func, inst);
    if !func.insts.iter().any(looks) {
        return false;
    }
    let cfg = Cfg::new(func, |_, _| false);
    let updates = |b: &BlockId| {
        let around = cfg.innermost(cfg.position[b.0 as usize]);
        around.is_some_and(|l| retries(func, &cfg, &cfg.loops[l]))
    };
    cfg.order.iter().any(|b| func.insts(&func.blocks[b.0 as usize]).iter().any(looks) && !updates(b))
}

/// Whether an instruction tests the phase of a barrier object.
fn tests_phase(func: &Func, inst: &Inst) -> bool {
    let v = func.variant(inst);
    v.op == Opcode::Mbarrier && (v.has(Mod::TestWait) || v.has(Mod::TryWait))
}
