//! Properties of the device functions that a kernel reaches: whether they wait for other threads, and whether threads
//! exit in them.

use crate::emit::{
    function::Options,
    function::prepare::{Prepared, waits_in_warp},
};
use margay_check::FuncKind;
use margay_ir::{
    BlockId, Callee, Func, FuncId, Inst, Ir, MemSpace, Operand, Placed, Terminator, VReg,
    pass::{Cfg, Liveness, Loop, cfg::successors, is_cta_barrier, liveness},
};
use margay_isa::{Effect, Mod, Opcode};
use std::collections::HashSet;

/// How a function waits for other threads; if it does, warps of kernels that call it run on fibers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Waits {
    /// Not at all.
    Never,
    /// In loops.
    Spinning,
    /// At barriers.
    AtBarriers,
}

/// What the device functions that a kernel calls may do.
pub struct Reached {
    /// The strongest way in which any of them waits.
    pub waits: Waits,
    /// Per function: whether it is compiled.
    pub compiled: Vec<bool>,
    /// Some calls run on fibers of their own.
    pub fibers: bool,
    /// Per function: threads may exit in it or in its callees.
    exits: Vec<bool>,
    /// Threads may exit in some of them.
    some_exit: bool,
    /// Per function: lanes may wait, in it or in its callees, for lanes that have not called it.
    holds: Vec<bool>,
    /// Lanes may so wait in some of them.
    some_hold: bool,
    /// Per function: lanes of a warp may return from it at different times.
    parts: Vec<bool>,
}

impl Reached {
    /// Analyses `functions`, one of which is `kernel`.
    pub fn new(ir: &Ir<Placed>, functions: &[FuncId], kernel: FuncId, options: &Options) -> Reached {
        let callees = || functions.iter().copied().filter(|f| *f != kernel);
        let n = ir.funcs.len();
        let waits = callees().map(|f| waits(ir.func(f))).max().unwrap_or(Waits::Never);
        let ends = |f: &Func| f.kind != FuncKind::Kernel && f.blocks.iter().any(|b| b.term == Terminator::Exit);
        let exits = ir.funcs.iter().map(|f| ends(f)).collect();
        let (holds, parts) = (vec![false; n], vec![false; n]);
        let mut compiled = vec![false; n];
        functions.iter().for_each(|f| compiled[f.0 as usize] = true);
        let mut reached =
            Reached { waits, compiled, exits, some_exit: false, fibers: false, holds, some_hold: false, parts };
        reached.some_exit = callees().any(|f| reached.exits[f.0 as usize]);
        let mut changed = reached.some_exit;
        while changed {
            changed = false;
            for f in callees() {
                let calls = ir.func(f).calls.iter().any(|c| reached.may_end(&c.callee));
                changed |= calls && !std::mem::replace(&mut reached.exits[f.0 as usize], true);
            }
        }
        reached.find_fibers(ir, functions, kernel, options);
        reached
    }

    /// Finds the functions in which lanes wait for others, and whether calls of them need fibers.
    fn find_fibers(&mut self, ir: &Ir<Placed>, functions: &[FuncId], kernel: FuncId, options: &Options) {
        let callees = || functions.iter().copied().filter(|f| *f != kernel);
        let waits = |func: &Func| func.insts.iter().any(|i| waits_in_warp(func, i) || waits_at_barrier(func, i));
        let may_wait =
            |func: &Func| waits(func) || func.insts.iter().any(|i| observes_others(func, i) || polls(func, i));
        if self.waits == Waits::Never && !callees().any(|f| may_wait(ir.func(f))) {
            return;
        }
        let mut prepared: Vec<Option<Prepared>> = ir.funcs.iter().map(|_| None).collect();
        for f in functions {
            prepared[f.0 as usize] = Some(Prepared::new(*f, ir.func(*f), options, self));
        }
        let made = |f: FuncId| prepared[f.0 as usize].as_ref();
        for f in callees() {
            self.holds[f.0 as usize] = waits(ir.func(f)) || made(f).is_some_and(|p| p.spins);
        }
        self.some_hold = callees().any(|f| self.holds[f.0 as usize]);
        let mut changed = self.some_hold;
        while changed {
            changed = false;
            for f in callees() {
                let calls = ir.func(f).calls.iter().any(|c| self.may_block(&c.callee));
                changed |= calls && !std::mem::replace(&mut self.holds[f.0 as usize], true);
            }
        }
        changed = self.some_hold;
        while changed {
            changed = false;
            for f in callees().filter(|f| self.holds[f.0 as usize]) {
                let parts = made(f).is_some_and(|p| p.returns_divergent(self));
                changed |= parts && !std::mem::replace(&mut self.parts[f.0 as usize], true);
            }
        }
        self.fibers = functions.iter().any(|f| made(*f).is_some_and(|p| p.calls_apart(self)));
        if self.fibers {
            self.waits = self.waits.max(Waits::Spinning);
        }
    }

    /// Whether lanes may wait in a callee for lanes that have not called it.
    pub fn may_block(&self, callee: &Callee) -> bool {
        match callee {
            Callee::Direct(f) => self.holds[f.0 as usize],
            Callee::Indirect(..) => self.some_hold,
        }
    }

    /// Whether lanes of a warp may return from a function at different times.
    pub fn returns_divergent(&self, f: FuncId) -> bool {
        self.parts[f.0 as usize]
    }

    /// Whether lanes of a warp may return from a callee at different times.
    pub fn may_diverge(&self, callee: &Callee) -> bool {
        match callee {
            Callee::Direct(f) => self.returns_divergent(*f),
            Callee::Indirect(..) => true,
        }
    }

    /// Whether lanes may leave a function, or calls in it, group by group, so that the sweep passes blocks more than
    /// once.
    pub fn is_apart(&self, id: FuncId, func: &Func) -> bool {
        self.fibers && (self.holds[id.0 as usize] || func.calls.iter().any(|c| self.may_block(&c.callee)))
    }

    fn may_end(&self, callee: &Callee) -> bool {
        match callee {
            Callee::Direct(f) => self.exits[f.0 as usize],
            Callee::Indirect(..) => self.some_exit,
        }
    }

    /// Whether an instruction is a call in which threads may exit.
    pub fn may_exit(&self, func: &Func, inst: &Inst) -> bool {
        match (func.variant(inst).op, func.operands(inst.srcs).last()) {
            (Opcode::Call, Some(Operand::Call(site))) => self.may_end(&func.calls[*site as usize].callee),
            _ => false,
        }
    }
}

/// How a function waits for other threads.
fn waits(func: &Func) -> Waits {
    match () {
        _ if func.insts.iter().any(|i| waits_at_barrier(func, i)) => Waits::AtBarriers,
        _ if func.insts.iter().any(|i| polls(func, i)) => Waits::Spinning,
        _ if spins(func, &Cfg::new(func, |_, _| false)) => Waits::Spinning,
        _ => Waits::Never,
    }
}

/// Whether an instruction arrives or waits at the cluster's barrier.
pub fn is_cluster_barrier(func: &Func, inst: &Inst) -> bool {
    let v = func.variant(inst);
    v.op == Opcode::Barrier && v.has(Mod::Cluster)
}

/// Whether an instruction waits at the cluster's barrier.
pub fn waits_in_cluster(func: &Func, inst: &Inst) -> bool {
    is_cluster_barrier(func, inst) && func.variant(inst).has(Mod::Wait)
}

/// Whether an instruction waits at a barrier of the CTA or of the cluster.
pub fn waits_at_barrier(func: &Func, inst: &Inst) -> bool {
    is_cta_barrier(func, inst) || waits_in_cluster(func, inst)
}

/// Whether an instruction observes other threads: a lock taken by `atom.cas` or `atom.exch`, a strong load of a flag,
/// or an atomic that stands for one.
pub fn observes_others(func: &Func, inst: &Inst) -> bool {
    let v = func.variant(inst);
    let has = |mods: &[Mod]| mods.iter().any(|m| v.has(*m));
    v.op == Opcode::Atom && (has(&[Mod::Cas, Mod::Exch]) || changes_nothing(func, inst))
        || v.op == Opcode::Ld && has(&[Mod::Volatile, Mod::Acquire, Mod::Relaxed, Mod::Mmio])
}

/// Whether an atomic leaves memory unchanged whatever it reads: `atom.add` of 0 and the like.
fn changes_nothing(func: &Func, inst: &Inst) -> bool {
    let v = func.variant(inst);
    let (bits, signed) = (v.t().bits(), v.t().is_signed());
    let all = if bits >= 64 { u64::MAX } else { (1 << bits) - 1 };
    let neutral = match () {
        _ if v.t().is_float() || v.vec() > 1 => return false,
        _ if v.has(Mod::Add) || v.has(Mod::Or) || v.has(Mod::Xor) => 0,
        _ if v.has(Mod::And) => all,
        _ if v.has(Mod::Max) => {
            if signed {
                1 << (bits - 1)
            } else {
                0
            }
        }
        _ if v.has(Mod::Min) => {
            if signed {
                all >> 1
            } else {
                all
            }
        }
        _ => return false,
    };
    let is = |o: &Operand| matches!(o, Operand::Imm(value) if value & all == neutral);
    match func.operands(inst.srcs).get(1) {
        Some(Operand::Reg(r)) => {
            let (mut some, mut every) = (false, true);
            for other in &func.insts {
                liveness::inst_writes(func, other, &mut |w| {
                    if w == *r {
                        let srcs = func.operands(other.srcs);
                        some = true;
                        every &= func.variant(other).op == Opcode::Mov && srcs.len() == 1 && is(&srcs[0]);
                    }
                });
            }
            some && every
        }
        Some(o) => is(o),
        None => false,
    }
}

/// Whether some loop polls by atomics: its exit depends on what an atomic has read, and it has no other effect that
/// threads could see.
fn polls_by_atomics(func: &Func, cfg: &Cfg) -> bool {
    let insts = |b: BlockId| func.insts(&func.blocks[b.0 as usize]);
    let is_atom = |inst: &&Inst| func.variant(inst).op == Opcode::Atom;
    let acts = |inst: &Inst| {
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
    };
    let ends_by_what_it_finds = |l: &Loop| {
        let blocks = &cfg.order[l.first as usize..=l.last as usize];
        if blocks.iter().any(|b| insts(*b).iter().any(acts)) {
            return false;
        }
        let mut found: HashSet<VReg> = HashSet::new();
        for b in blocks {
            for inst in insts(*b).iter().filter(is_atom) {
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
    cfg.loops.iter().filter(holds_atom).any(ends_by_what_it_finds)
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
    polls_by_observing(func, cfg) || polls_by_loads(func, cfg) || polls_by_atomics(func, cfg) || never_ends(func, cfg)
}

/// Whether some loop has no exit, or does nothing that could change whether it ends: it has no effects, and carries no register
/// from one iteration to the next. Threads in it must not keep the others from what they do.
fn never_ends(func: &Func, cfg: &Cfg) -> bool {
    let blocks = |l: &Loop| &cfg.order[l.first as usize..=l.last as usize];
    let stays = |l: &Loop| {
        let leaves = |to: &BlockId| !blocks(l).contains(to);
        !blocks(l).iter().any(|b| successors(&func.blocks[b.0 as usize].term).iter().any(leaves))
    };
    let inert = |l: &&Loop| {
        let acts = |i: &Inst| !matches!(func.variant(i).op.row().effect, Effect::Pure | Effect::Control);
        !blocks(l).iter().any(|b| func.insts(&func.blocks[b.0 as usize]).iter().any(acts))
    };
    if cfg.loops.iter().any(stays) {
        return true;
    }
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

/// Whether some loop observes other threads, and some branch in it depends on memory. The others end whatever is observed.
fn polls_by_observing(func: &Func, cfg: &Cfg) -> bool {
    let insts = |b: &BlockId| func.insts(&func.blocks[b.0 as usize]).iter();
    let watched = |b: &BlockId| insts(b).any(|i| observes_others(func, i));
    if !cfg.reducible {
        let looped = |b: &&BlockId| cfg.innermost(cfg.position[b.0 as usize]).is_some();
        return cfg.order.iter().filter(looped).any(watched);
    }
    let blocks = |l: &Loop| &cfg.order[l.first as usize..=l.last as usize];
    cfg.loops.iter().map(blocks).filter(|blocks| blocks.iter().any(watched)).any(|blocks| {
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
/// write can end it, even if its loads are weak.
fn polls_by_loads(func: &Func, cfg: &Cfg) -> bool {
    let reads = |b: &BlockId| {
        let loads = |i: &Inst| {
            let constant = matches!(i.space, Some(MemSpace::KernelParam | MemSpace::Const | MemSpace::Local));
            func.variant(i).op == Opcode::Ld && !constant
        };
        func.insts(&func.blocks[b.0 as usize]).iter().any(loads)
    };
    let blocks = |l: &Loop| &cfg.order[l.first as usize..=l.last as usize];
    let candidates: Vec<&Loop> = cfg.loops.iter().filter(|l| blocks(l).iter().any(reads)).collect();
    if candidates.is_empty() {
        return false;
    }
    let live = Liveness::new(func, cfg);
    !candidates.into_iter().all(|l| carries(func, cfg, &live, l))
}

/// Whether an instruction tests for progress of other threads, so that the warp yields after a failed test: phases of
/// barrier objects, columns of tensor memory.
pub fn polls(func: &Func, inst: &Inst) -> bool {
    let v = func.variant(inst);
    match v.op {
        Opcode::Mbarrier => v.has(Mod::TestWait) || v.has(Mod::TryWait),
        Opcode::Tcgen05 => v.has(Mod::Alloc),
        _ => false,
    }
}
