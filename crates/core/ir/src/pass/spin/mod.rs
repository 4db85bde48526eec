//! Loops in which threads may wait for others: an engine must let other threads overtake those inside.

mod awaits;
mod body;
mod calls;
mod claim;
mod update;
mod work;

pub use awaits::{awaits, awaits_result};
pub use calls::mark_observing_calls;
pub use work::shares_work;

use crate::{
    AtomicOp, BlockId, Func, Inst, MemSpace, Operand,
    pass::{
        Cfg, Liveness, Loop, is_cta_barrier,
        liveness::defines,
        shape::is_weak,
        termination::{Ends, Termination},
    },
};
use body::Body;
use margay_isa::{Effect, Mod, Opcode};
use std::cell::LazyCell;
use update::retries;

/// Whether an instruction observes other threads: a lock taken by `atom.cas` or `atom.exch`, a strong load of a flag,
/// or an equivalent atomic.
pub fn observes_others(func: &Func, inst: &Inst) -> bool {
    let v = func.variant(inst);
    v.op == Opcode::Atom && (v.has(Mod::Cas) || v.has(Mod::Exch) || changes_nothing(func, inst))
        || v.op == Opcode::Ld && !is_weak(v)
}

/// Whether an atomic never changes memory, such as `atom.add` of 0.
pub fn changes_nothing(func: &Func, inst: &Inst) -> bool {
    let v = func.variant(inst);
    let Some(neutral) = AtomicOp::of(v).filter(|_| v.vec() == 1).and_then(|op| op.neutral(v.t())) else { return false };
    let all = u64::MAX >> (64 - v.t().bits());
    let is = |o: &Operand| matches!(o, Operand::Imm(value) if value & all == neutral);
    match func.operands(inst.srcs).get(1) {
        Some(Operand::Reg(r)) => {
            let (mut some, mut every) = (false, true);
            for other in func.insts.iter().filter(|other| defines(func, other, *r)) {
                let srcs = func.operands(other.srcs);
                some = true;
                every &= func.variant(other).op == Opcode::Mov && srcs.len() == 1 && is(&srcs[0]);
            }
            some && every
        }
        Some(o) => is(o),
        None => false,
    }
}

/// Whether some loop polls by atomics: its exit depends on what an atomic has read, and it has no other effect that
/// threads could see; or on what one has read that others have to undo, whatever else it does until then.
/// Loops that end `alone` do not.
fn polls_by_atomics(func: &Func, cfg: &Cfg, alone: impl Fn(&Loop) -> bool) -> bool {
    let is_atom = |inst: &Inst| func.variant(inst).op == Opcode::Atom;
    cfg.loops.iter().any(|l| {
        let body = Body::new(func, cfg, l);
        let works = LazyCell::new(|| body.any(|i| acts(func, i)));
        let looks = |i: &Inst| is_atom(i) && (!*works || waits_by(body, i));
        body.any(is_atom) && body.leaves_on(&body.affected_by(looks)) && !alone(l) && !retries(func, cfg, l)
    })
}

/// Whether an atomic in a loop that also does work may wait for other threads: all iterations update one word, such as a bit that is set until
/// the thread that set it clears it. Sums are taken for numbers of pieces of work, unless the loop subtracts what it has added.
fn waits_by(body: Body<'_>, inst: &Inst) -> bool {
    let func = body.func;
    let sum = [Mod::Add, Mod::Inc, Mod::Dec].iter().any(|m| func.variant(inst).has(*m));
    let word = |i: &Inst| func.operands(i.srcs).first().copied();
    let updates = |i: &&Inst| matches!(func.variant(i).op, Opcode::Atom | Opcode::Red) && word(i) == word(inst);
    body.stays(inst) && (!sum || body.insts().filter(updates).count() > 1)
}

/// Whether an instruction has an effect that threads could see, other than that of an atomic.
fn acts(func: &Func, inst: &Inst) -> bool {
    let v = func.variant(inst);
    match v.op.row().effect {
        Effect::Memory => !matches!(
            v.op,
            Opcode::Atom
                | Opcode::Ld
                | Opcode::Ldu
                | Opcode::Fence
                | Opcode::Membar
                | Opcode::Prefetch
                | Opcode::Prefetchu
        ),
        Effect::Call => true,
        Effect::Pure | Effect::Machine | Effect::Control | Effect::Warp => false,
    }
}

/// The maximum number of instructions of a loop that only polls. Longer loops do work in between, such as searches that end when another thread
/// has found a result.
const MAX_LOOKING: usize = 32;

/// Whether a loop does nothing but read one place that another thread writes. Even if the loop gives up after a number of attempts, that thread
/// should run first.
fn only_looks(body: Body<'_>) -> bool {
    let func = body.func;
    let idle = |i: &Inst| calls::observes(func, i) || calls::is_passed(func, i) || !acts(func, i);
    if body.insts().count() > MAX_LOOKING || !body.insts().all(idle) {
        return false;
    }
    let calls = body.any(|i| calls::observes(func, i));
    let looks = |i: &Inst| match func.variant(i).op {
        Opcode::Atom => body.stays(i),
        Opcode::Ld => observes_others(func, i) && body.stays(i) || calls && calls::is_passed(func, i),
        _ => calls::observes(func, i),
    };
    body.leaves_on(&body.affected_by(looks))
}

/// Whether a loop waits for no threads but those of its CTA, which it awaits at a barrier in every iteration: whether it continues depends on
/// shared memory and the barriers' results alone, as in `do { changed = 0; ... } while (changed)`. What it finds in global memory it changes,
/// by weak accesses, and does not hand on, as it would a flag of another CTA.
fn in_step(func: &Func, cfg: &Cfg, l: &Loop) -> bool {
    let body = Body::new(func, cfg, l);
    let own = |i: &Inst| i.space == Some(MemSpace::Shared);
    let effect = |i: &Inst| func.variant(i).op.row().effect;
    let foreign = |i: &Inst| matches!(effect(i), Effect::Call | Effect::Machine) || observes_others(func, i) && !own(i);
    if l.irreducible || body.any(foreign) {
        return false;
    }
    let reads =
        |i: &Inst| func.variant(i).op == Opcode::Ld && matches!(i.space, Some(MemSpace::Global | MemSpace::Generic));
    let writes = |i: &Inst| func.variant(i).op == Opcode::St && i.space == Some(MemSpace::Global);
    if body.any(reads) && !body.any(writes) {
        return false;
    }
    let meets = |i: &Inst| {
        let (v, srcs) = (func.variant(i), func.operands(i.srcs));
        // Without a number of threads.
        let given = if v.has(Mod::Red) { 2 } else { 1 };
        let plain = srcs.len() <= given && srcs.first().is_none_or(|id| matches!(id, Operand::Imm(_)));
        is_cta_barrier(func, i) && !v.has(Mod::Arrive) && i.guard.is_none() && plain
    };
    if cfg.repeats_without(l, |b, _| func.insts(&func.blocks[b.0 as usize]).iter().any(meets)) {
        return false;
    }
    let found = body.affected_by(|i| effect(i) == Effect::Memory && !own(i));
    let hands_on = |i: &Inst| {
        let given = |o: &Operand| matches!(o, Operand::Reg(r) if found.contains(r));
        effect(i) == Effect::Memory && own(i) && func.operands(i.srcs).iter().skip(1).any(given)
    };
    if body.any(hands_on) || body.leaves_on(&found) {
        return false;
    }
    // Other CTAs of a cluster may write the shared window.
    let of_cluster = |i: &Inst| {
        let v = func.variant(i);
        let words = [Mod::Cluster, Mod::SharedCluster, Mod::MulticastCluster, Mod::MulticastClusterAll];
        v.op == Opcode::Mapa || effect(i) == Effect::Call || words.iter().any(|m| v.has(*m))
    };
    !func.insts.iter().any(of_cluster)
}

/// Whether lanes in loops of a function must let others overtake them: loops that may wait for other threads, and loops that never
/// end.
pub fn spins(func: &Func, cfg: &Cfg) -> bool {
    if func.never_spins {
        return false;
    }
    let termination = LazyCell::new(|| Termination::new(func, cfg));
    // Another thread should come first where one only looks, even a number of times.
    let alone = |l: &Loop| {
        termination.counts(l) && !only_looks(Body::new(func, cfg, l))
            || claim::claims_free_words(func, cfg, l, &termination)
    };
    polls_by_observing(func, cfg, alone)
        || polls_by_loads(func, cfg)
        || polls_by_atomics(func, cfg, alone)
        || sleeps(func, cfg)
        || never_ends(func, cfg, |l| termination.of(l))
}

/// Whether some loop sleeps (`nanosleep`): it gives other threads time for the step that it waits for, in whatever way it observes that step,
/// even by weak loads.
fn sleeps(func: &Func, cfg: &Cfg) -> bool {
    let sleeps = |inst: &Inst| func.variant(inst).op == Opcode::Nanosleep;
    cfg.loops.iter().any(|l| Body::new(func, cfg, l).any(sleeps))
}

/// Whether some loop has no exit, or apparently never takes one ([`Ends::Never`]), or repeats itself: it accesses no memory except in its
/// callees, and carries no register from one iteration to the next. Threads in such a loop must not block the others.
fn never_ends(func: &Func, cfg: &Cfg, ends: impl Fn(&Loop) -> Ends) -> bool {
    let body = |l: &Loop| Body::new(func, cfg, l);
    if cfg.loops.iter().any(|l| !body(l).has_exit() || ends(l) == Ends::Never) {
        return true;
    }
    let accesses = |i: &Inst| func.variant(i).op.row().effect == Effect::Memory && !calls::is_passed(func, i);
    let inert = cfg.loops.iter().filter(|l| ends(l) != Ends::Always && !body(l).any(accesses));
    some_carry_nothing(func, cfg, inert)
}

/// Whether one of some loops carries no register from one iteration to the next.
fn some_carry_nothing<'a>(func: &Func, cfg: &Cfg, some: impl Iterator<Item = &'a Loop>) -> bool {
    let live = LazyCell::new(|| Liveness::new(func, cfg));
    some.into_iter().any(|l| !Body::new(func, cfg, l).carries(&live))
}

/// Whether a loop counts by an atomic and stores the result where it also loads from: a thread takes the number of the next piece of work for its
/// CTA, and each iteration takes another one.
fn takes_numbers(body: Body<'_>) -> bool {
    let func = body.func;
    let numbers = body.affected_by(|i| {
        let v = func.variant(i);
        v.op == Opcode::Atom && (v.has(Mod::Add) || v.has(Mod::Inc)) && !changes_nothing(func, i)
    });
    let loads = |space| body.any(|i| func.variant(i).op == Opcode::Ld && i.space == space);
    body.any(|i| {
        let is_number = |o: &Operand| matches!(o, Operand::Reg(r) if numbers.contains(r));
        func.variant(i).op == Opcode::St && func.operands(i.srcs).iter().skip(1).any(is_number) && loads(i.space)
    })
}

/// Whether some loop observes other threads, itself or by a call, some branch in it depends on memory, and it does not end `alone`.
fn polls_by_observing(func: &Func, cfg: &Cfg, alone: impl Fn(&Loop) -> bool) -> bool {
    let watches = |i: &Inst| observes_others(func, i) || calls::observes(func, i);
    if !cfg.reducible {
        let looped = |b: &&BlockId| cfg.innermost(cfg.position[b.0 as usize]).is_some();
        return cfg.order.iter().filter(looped).any(|b| func.insts(&func.blocks[b.0 as usize]).iter().any(watches));
    }
    let effect = |i: &Inst| func.variant(i).op.row().effect;
    cfg.loops.iter().any(|l| {
        let body = Body::new(func, cfg, l);
        if !body.any(watches) || alone(l) || retries(func, cfg, l) || in_step(func, cfg, l) {
            return false;
        }
        let observed = |i: &Inst| matches!(effect(i), Effect::Memory | Effect::Machine);
        body.any(|i| effect(i) == Effect::Call) || body.branches_on(&body.affected_by(observed))
    })
}

/// Whether some loop loads from memory and carries no register from one iteration to the next: only another thread's
/// write can end it, even if its loads are weak. Except in loops that take numbers, try an update again, or go in step with their CTA.
fn polls_by_loads(func: &Func, cfg: &Cfg) -> bool {
    let loads = |i: &Inst| {
        let constant = matches!(i.space, Some(MemSpace::KernelParam | MemSpace::Const | MemSpace::Local));
        func.variant(i).op == Opcode::Ld && !constant
    };
    let waits = |l: &&Loop| {
        let body = Body::new(func, cfg, l);
        body.any(loads) && !takes_numbers(body) && !retries(func, cfg, l) && !in_step(func, cfg, l)
    };
    some_carry_nothing(func, cfg, cfg.loops.iter().filter(waits))
}
