//! Loops in which threads may wait for others: an engine must let other threads overtake those inside.

mod calls;
mod claim;

pub use calls::mark_observing_calls;

use crate::{
    AtomicOp, BlockId, Func, Inst, MemBase, MemSpace, Operand, Terminator, VReg,
    pass::{
        Cfg, Liveness, Loop,
        cfg::successors,
        is_cta_barrier,
        liveness::{self, defines},
        shape::is_weak,
        termination::{Ends, Termination},
    },
};
use margay_isa::{Effect, Mod, Opcode};
use std::{cell::LazyCell, collections::HashSet};

/// Whether an instruction observes other threads: a lock taken by `atom.cas` or `atom.exch`, a strong load of a flag,
/// or an equivalent atomic.
pub fn observes_others(func: &Func, inst: &Inst) -> bool {
    let v = func.variant(inst);
    v.op == Opcode::Atom && (v.has(Mod::Cas) || v.has(Mod::Exch) || changes_nothing(func, inst))
        || v.op == Opcode::Ld && !is_weak(v)
}

/// Whether an atomic never changes memory, such as `atom.add` of 0.
fn changes_nothing(func: &Func, inst: &Inst) -> bool {
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
    let insts = |b: BlockId| func.insts(&func.blocks[b.0 as usize]);
    let is_atom = |inst: &&Inst| func.variant(inst).op == Opcode::Atom;
    let ends_by_what_it_finds = |l: &Loop| {
        let blocks = &cfg.order[l.first as usize..=l.last as usize];
        let works = blocks.iter().any(|b| insts(*b).iter().any(|i| acts(func, i)));
        let mut found: HashSet<VReg> = HashSet::new();
        for b in blocks {
            for inst in insts(*b).iter().filter(is_atom).filter(|i| !works || waits_by(func, blocks, i)) {
                liveness::inst_writes(func, inst, &mut |r| {
                    found.insert(r);
                });
            }
        }
        spread(func, blocks, &mut found);
        blocks.iter().any(|b| {
            let leaves = successors(&func.blocks[b.0 as usize].term).iter().any(|to| !blocks.contains(to));
            leaves && branches_on(func, *b, &found)
        })
    };
    let holds_atom =
        |l: &&Loop| cfg.order[l.first as usize..=l.last as usize].iter().any(|b| insts(*b).iter().any(|i| is_atom(&i)));
    cfg.loops.iter().filter(holds_atom).any(|l| ends_by_what_it_finds(l) && !alone(l) && !retries(func, cfg, l))
}

/// Whether an atomic in a loop that also works may wait for other threads: all iterations update one word, such as a bit that is set until
/// the thread that set it clears it. Sums are the numbers of pieces of work, unless the loop takes back what it has added.
fn waits_by(func: &Func, blocks: &[BlockId], inst: &Inst) -> bool {
    let sum = [Mod::Add, Mod::Inc, Mod::Dec].iter().any(|m| func.variant(inst).has(*m));
    let word = |i: &Inst| func.operands(i.srcs).first().copied();
    let updates = |i: &&Inst| matches!(func.variant(i).op, Opcode::Atom | Opcode::Red) && word(i) == word(inst);
    let all = blocks.iter().flat_map(|b| func.insts(&func.blocks[b.0 as usize]));
    stays(func, blocks, inst) && (!sum || all.filter(updates).count() > 1)
}

/// Whether an instruction accesses one place in all iterations of a loop.
fn stays(func: &Func, blocks: &[BlockId], inst: &Inst) -> bool {
    let mut all = blocks.iter().flat_map(|b| func.insts(&func.blocks[b.0 as usize]));
    match func.operands(inst.srcs).first() {
        Some(Operand::Mem(MemBase::Reg(base), _)) => !all.any(|i| defines(func, i, *base)),
        _ => true,
    }
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

/// The most instructions of a loop that only looks. Longer ones work in between, such as searches that end when another thread has found
/// something.
const MOST_LOOKING: usize = 32;

/// Whether a loop does nothing but look in one place for what another thread does there. Even if it gives up after a number of attempts,
/// that thread should come first.
fn only_looks(func: &Func, cfg: &Cfg, l: &Loop) -> bool {
    let blocks = &cfg.order[l.first as usize..=l.last as usize];
    let insts = || blocks.iter().flat_map(|b| func.insts(&func.blocks[b.0 as usize]));
    let idle = |i: &Inst| calls::observes(func, i) || calls::is_passed(func, i) || !acts(func, i);
    if insts().count() > MOST_LOOKING || !insts().all(idle) {
        return false;
    }
    let calls = insts().any(|i| calls::observes(func, i));
    let looks = |i: &&Inst| match func.variant(i).op {
        Opcode::Atom => stays(func, blocks, i),
        Opcode::Ld => observes_others(func, i) && stays(func, blocks, i) || calls && calls::is_passed(func, i),
        _ => calls::observes(func, i),
    };
    let mut found: HashSet<VReg> = HashSet::new();
    for inst in insts().filter(looks) {
        liveness::inst_writes(func, inst, &mut |r| _ = found.insert(r));
    }
    spread(func, blocks, &mut found);
    blocks.iter().any(|b| {
        let leaves = successors(&func.blocks[b.0 as usize].term).iter().any(|to| !blocks.contains(to));
        leaves && branches_on(func, *b, &found)
    })
}

/// Whether a loop tries an update again that another thread's has overtaken: it is repeated only if an `atom.cas` of this iteration has found
/// another value than the word held when this thread looked last. Some thread's update succeeds each time, so none waits for another.
fn retries(func: &Func, cfg: &Cfg, l: &Loop) -> bool {
    let blocks = &cfg.order[l.first as usize..=l.last as usize];
    let header = blocks[0];
    let mut latches =
        blocks.iter().filter(|b| successors(&func.blocks[b.0 as usize].term).contains(&header)).peekable();
    latches.peek().is_some() && latches.all(|b| repeats_if_overtaken(func, cfg, *b, l))
}

/// Whether a block branches back to the header of a loop only if its own `atom.cas` has found another value than it expected, which is what
/// the word held before.
fn repeats_if_overtaken(func: &Func, cfg: &Cfg, b: BlockId, l: &Loop) -> bool {
    let header = cfg.order[l.first as usize];
    let block = &func.blocks[b.0 as usize];
    let Terminator::Branch { pred, negated, then, other, .. } = block.term else { return false };
    let insts = func.insts(block);
    let last_write = |r: VReg| insts.iter().rposition(|i| defines(func, i, r));
    let Some(test) = last_write(pred).filter(|_| then != other) else { return false };
    let variant = func.variant(&insts[test]);
    let unequal = variant.has(Mod::Ne);
    let compares = variant.op == Opcode::Setp && (unequal || variant.has(Mod::Eq)) && !variant.t().is_float();
    let repeats = (then == header) != negated;
    let ([Operand::Reg(x), Operand::Reg(y)], None) = (func.operands(insts[test].srcs), insts[test].guard) else {
        return false;
    };
    compares
        && repeats == unequal
        && insts[..test].iter().enumerate().any(|(at, inst)| {
            let v = func.variant(inst);
            let cas = v.op == Opcode::Atom && v.has(Mod::Cas) && inst.guard.is_none();
            let (dsts, srcs) = (func.operands(inst.dsts), func.operands(inst.srcs));
            let ([Operand::Reg(found)], [word, Operand::Reg(expected), _]) = (dsts, srcs) else { return false };
            let pair = [(x, y), (y, x)].contains(&(found, expected));
            let kept = |r: VReg| !insts[at + 1..test].iter().any(|i| defines(func, i, r));
            cas && pair && kept(*found) && kept(*expected) && looks_again(func, cfg, (*word, *expected, *found), l)
        })
}

/// Whether each iteration of a loop loads the expected value from the word that `atom.cas` updates, or takes what that has found.
fn looks_again(func: &Func, cfg: &Cfg, (word, expected, found): (Operand, VReg, VReg), l: &Loop) -> bool {
    let blocks = &cfg.order[l.first as usize..=l.last as usize];
    let insts = || blocks.iter().flat_map(|b| func.insts(&func.blocks[b.0 as usize]));
    if let Operand::Mem(MemBase::Reg(base), _) = word
        && insts().any(|i| defines(func, i, base))
    {
        return false;
    }
    let renews = |b: BlockId| func.insts(&func.blocks[b.0 as usize]).iter().any(|i| defines(func, i, expected));
    !cfg.repeats_without(l, renews)
        && insts().filter(|i| defines(func, i, expected)).all(|i| {
            let from = func.operands(i.srcs).first();
            i.guard.is_none()
                && match func.variant(i).op {
                    Opcode::Mov => from == Some(&Operand::Reg(found)),
                    Opcode::Ld => from == Some(&word),
                    _ => false,
                }
        })
}

/// Whether a loop waits for no threads but those of its CTA, which it awaits at a barrier in every iteration: whether it goes on depends on
/// shared memory and the barriers' results alone, as in `do { changed = 0; ... } while (changed)`. What it finds in global memory it changes,
/// by weak accesses, and does not hand on, as it would a flag of another CTA.
fn in_step(func: &Func, cfg: &Cfg, l: &Loop) -> bool {
    let blocks = &cfg.order[l.first as usize..=l.last as usize];
    let insts = |b: BlockId| func.insts(&func.blocks[b.0 as usize]).iter();
    let all = || blocks.iter().flat_map(|b| insts(*b));
    let own = |i: &Inst| i.space == Some(MemSpace::Shared);
    let effect = |i: &Inst| func.variant(i).op.row().effect;
    let foreign = |i: &Inst| matches!(effect(i), Effect::Call | Effect::Machine) || observes_others(func, i) && !own(i);
    if l.irreducible || all().any(foreign) {
        return false;
    }
    let reads =
        |i: &Inst| func.variant(i).op == Opcode::Ld && matches!(i.space, Some(MemSpace::Global | MemSpace::Generic));
    let writes = |i: &Inst| func.variant(i).op == Opcode::St && i.space == Some(MemSpace::Global);
    if all().any(reads) && !all().any(writes) {
        return false;
    }
    let meets = |i: &Inst| {
        let (v, srcs) = (func.variant(i), func.operands(i.srcs));
        // Without a number of threads.
        let given = if v.has(Mod::Red) { 2 } else { 1 };
        let plain = srcs.len() <= given && srcs.first().is_none_or(|id| matches!(id, Operand::Imm(_)));
        is_cta_barrier(func, i) && !v.has(Mod::Arrive) && i.guard.is_none() && plain
    };
    if cfg.repeats_without(l, |b| insts(b).any(meets)) {
        return false;
    }
    let mut found: HashSet<VReg> = HashSet::new();
    for inst in all().filter(|i| effect(i) == Effect::Memory && !own(i)) {
        liveness::inst_writes(func, inst, &mut |r| _ = found.insert(r));
    }
    spread(func, blocks, &mut found);
    let inside = |to: &BlockId| l.holds(cfg.position[to.0 as usize]);
    let leaves = |b: &BlockId| !successors(&func.blocks[b.0 as usize].term).iter().all(inside);
    let hands_on = |i: &Inst| {
        let given = |o: &Operand| matches!(o, Operand::Reg(r) if found.contains(r));
        effect(i) == Effect::Memory && own(i) && func.operands(i.srcs).iter().skip(1).any(given)
    };
    if all().any(hands_on) || blocks.iter().any(|b| leaves(b) && branches_on(func, *b, &found)) {
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

/// Adds the registers of some blocks that depend on registers of a set, transitively.
fn spread(func: &Func, blocks: &[BlockId], found: &mut HashSet<VReg>) {
    let mut before = 0;
    while before != found.len() {
        before = found.len();
        for inst in blocks.iter().flat_map(|b| func.insts(&func.blocks[b.0 as usize])) {
            let mut follows = false;
            liveness::inst_reads(func, inst, &mut |r| follows |= found.contains(&r));
            if follows {
                liveness::inst_writes(func, inst, &mut |r| {
                    found.insert(r);
                });
            }
        }
    }
}

/// Whether the end of a block depends on a register of a set.
fn branches_on(func: &Func, b: BlockId, found: &HashSet<VReg>) -> bool {
    let mut follows = false;
    liveness::term_reads(func, &func.blocks[b.0 as usize].term, &mut |r| follows |= found.contains(&r));
    follows
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
        termination.counts(l) && !only_looks(func, cfg, l) || claim::claims_free_words(func, cfg, l, &termination)
    };
    polls_by_observing(func, cfg, alone)
        || polls_by_loads(func, cfg)
        || polls_by_atomics(func, cfg, alone)
        || sleeps(func, cfg)
        || never_ends(func, cfg, |l| termination.of(l))
}

/// Whether some loop sleeps (`nanosleep`), which gives other threads time for what it waits for, however it learns of that: by weak loads
/// between which it doubles the time, say.
fn sleeps(func: &Func, cfg: &Cfg) -> bool {
    let sleeps =
        |b: &BlockId| func.insts(&func.blocks[b.0 as usize]).iter().any(|i| func.variant(i).op == Opcode::Nanosleep);
    cfg.loops.iter().any(|l| cfg.order[l.first as usize..=l.last as usize].iter().any(sleeps))
}

/// Whether some loop has no exit, or none that is taken as far as one can see ([`Ends::Never`]), or repeats
/// itself: it accesses no memory except in what it calls, and carries no register from one iteration to the next. Threads in it must not
/// keep the others from what they do.
fn never_ends(func: &Func, cfg: &Cfg, ends: impl Fn(&Loop) -> Ends) -> bool {
    let blocks = |l: &Loop| &cfg.order[l.first as usize..=l.last as usize];
    let stays = |l: &Loop| {
        let leaves = |to: &BlockId| !blocks(l).contains(to);
        !blocks(l).iter().any(|b| successors(&func.blocks[b.0 as usize].term).iter().any(leaves))
    };
    if cfg.loops.iter().any(|l| stays(l) || ends(l) == Ends::Never) {
        return true;
    }
    let inert = |l: &&Loop| {
        // Arguments and results lie in the frame.
        let framed = |i: &Inst| func.operands(i.srcs).iter().any(|o| matches!(o, Operand::Mem(MemBase::Frame(_), _)));
        let acts = |i: &Inst| func.variant(i).op.row().effect == Effect::Memory && !framed(i);
        ends(l) != Ends::Always && !blocks(l).iter().any(|b| func.insts(&func.blocks[b.0 as usize]).iter().any(acts))
    };
    let inert: Vec<&Loop> = cfg.loops.iter().filter(inert).collect();
    if inert.is_empty() {
        return false;
    }
    let live = Liveness::new(func, cfg);
    !inert.into_iter().all(|l| carries(func, cfg, &live, l))
}

/// Whether a loop carries a register from one iteration to the next.
fn carries(func: &Func, cfg: &Cfg, live: &Liveness, l: &Loop) -> bool {
    let entry = &live.live_in[cfg.order[l.first as usize].0 as usize];
    let blocks = &cfg.order[l.first as usize..=l.last as usize];
    blocks.iter().flat_map(|b| func.insts(&func.blocks[b.0 as usize])).any(|inst| {
        let mut kept = false;
        liveness::inst_writes(func, inst, &mut |r| kept |= entry.has(r.0));
        kept
    })
}

/// Whether a loop counts by an atomic and stores what it got where it loads from: a thread takes the number of the next piece of work for its
/// CTA, and each iteration takes another one.
fn takes_numbers(func: &Func, blocks: &[BlockId]) -> bool {
    let insts = || blocks.iter().flat_map(|b| func.insts(&func.blocks[b.0 as usize]));
    let mut numbers: HashSet<VReg> = HashSet::new();
    for inst in insts() {
        let v = func.variant(inst);
        if v.op == Opcode::Atom && (v.has(Mod::Add) || v.has(Mod::Inc)) && !changes_nothing(func, inst) {
            liveness::inst_writes(func, inst, &mut |r| _ = numbers.insert(r));
        }
    }
    spread(func, blocks, &mut numbers);
    let loads = |space| insts().any(|i| func.variant(i).op == Opcode::Ld && i.space == space);
    let passes_on = |i: &Inst| {
        let is_number = |o: &Operand| matches!(o, Operand::Reg(r) if numbers.contains(r));
        func.variant(i).op == Opcode::St && func.operands(i.srcs).iter().skip(1).any(is_number) && loads(i.space)
    };
    !numbers.is_empty() && insts().any(passes_on)
}

/// Whether some loop observes other threads, itself or by a call, some branch in it depends on memory, and it does not end `alone`.
fn polls_by_observing(func: &Func, cfg: &Cfg, alone: impl Fn(&Loop) -> bool) -> bool {
    let insts = |b: &BlockId| func.insts(&func.blocks[b.0 as usize]).iter();
    let watched = |b: &BlockId| insts(b).any(|i| observes_others(func, i) || calls::observes(func, i));
    if !cfg.reducible {
        let looped = |b: &&BlockId| cfg.innermost(cfg.position[b.0 as usize]).is_some();
        return cfg.order.iter().filter(looped).any(watched);
    }
    let blocks = |l: &Loop| &cfg.order[l.first as usize..=l.last as usize];
    let watching = cfg.loops.iter().filter(|l| blocks(l).iter().any(watched));
    watching.filter(|l| !alone(l) && !retries(func, cfg, l) && !in_step(func, cfg, l)).map(blocks).any(|blocks| {
        let effect = |i: &Inst| func.variant(i).op.row().effect;
        if blocks.iter().flat_map(insts).any(|i| effect(i) == Effect::Call) {
            return true;
        }
        let mut found: HashSet<VReg> = HashSet::new();
        for inst in blocks.iter().flat_map(insts).filter(|i| matches!(effect(i), Effect::Memory | Effect::Machine)) {
            liveness::inst_writes(func, inst, &mut |r| {
                found.insert(r);
            });
        }
        spread(func, blocks, &mut found);
        blocks.iter().any(|b| branches_on(func, *b, &found))
    })
}

/// Whether some loop loads from memory and carries no register from one iteration to the next: only another thread's
/// write can end it, even if its loads are weak. Except in loops that take numbers, try an update again, or go in step with their CTA.
fn polls_by_loads(func: &Func, cfg: &Cfg) -> bool {
    let reads = |b: &BlockId| {
        let loads = |i: &Inst| {
            let constant = matches!(i.space, Some(MemSpace::KernelParam | MemSpace::Const | MemSpace::Local));
            func.variant(i).op == Opcode::Ld && !constant
        };
        func.insts(&func.blocks[b.0 as usize]).iter().any(loads)
    };
    let blocks = |l: &Loop| &cfg.order[l.first as usize..=l.last as usize];
    let free = |l: &Loop| takes_numbers(func, blocks(l)) || retries(func, cfg, l) || in_step(func, cfg, l);
    let waits = |l: &&Loop| blocks(l).iter().any(reads) && !free(l);
    let candidates: Vec<&Loop> = cfg.loops.iter().filter(waits).collect();
    if candidates.is_empty() {
        return false;
    }
    let live = Liveness::new(func, cfg);
    !candidates.into_iter().all(|l| carries(func, cfg, &live, l))
}
