//! Loops in which threads take work from a counter: `while ((i = atomicAdd(&next, 1)) < n) ...`

use super::{body::Body, changes_nothing};
use crate::{
    Func, Inst, MemSpace, Operand,
    pass::{Cfg, Loop},
};
use margay_isa::{Mod, Opcode};

/// Whether threads share work out among themselves at run time: some loop ends because of what an atomic sum in it has returned. Which thread
/// does what then depends on who is first.
pub fn shares_work(func: &Func, cfg: &Cfg) -> bool {
    cfg.loops.iter().any(|l| takes_work(func, cfg, l))
}

fn takes_work(func: &Func, cfg: &Cfg, l: &Loop) -> bool {
    let body = Body::new(func, cfg, l);
    let counts = |i: &Inst| {
        let v = func.variant(i);
        v.op == Opcode::Atom && [Mod::Add, Mod::Inc, Mod::Dec].iter().any(|m| v.has(*m)) && !changes_nothing(func, i)
    };
    if !body.any(counts) {
        return false;
    }
    // One thread takes work for its warp or its CTA, and passes it to the others by shuffles or memory of their own.
    let own = |i: &Inst| matches!(i.space, Some(MemSpace::Shared | MemSpace::Local));
    let taken = body.affected_by(counts);
    let is_taken = |o: &Operand| matches!(o, Operand::Reg(r) if taken.contains(r));
    let passed = |space| {
        body.any(|i| {
            let stores = func.variant(i).op == Opcode::St && own(i) && i.space == space;
            stores && func.operands(i.srcs).iter().skip(1).any(is_taken)
        })
    };
    let (shared, local) = (passed(Some(MemSpace::Shared)), passed(Some(MemSpace::Local)));
    let receives = |i: &Inst| {
        let here = i.space == Some(MemSpace::Shared) && shared || i.space == Some(MemSpace::Local) && local;
        func.variant(i).op == Opcode::Ld && here
    };
    body.leaves_on(&taken) || (shared || local) && body.leaves_on(&body.affected_by(|i| counts(i) || receives(i)))
}
