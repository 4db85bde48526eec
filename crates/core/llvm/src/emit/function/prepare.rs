//! Preparation of a function: a copy whose blocks end where lanes may wait or exit, with the results of analyses.

use crate::emit::{
    call::call_site,
    call::stack::moves_stack,
    exchange::exchange,
    function::Options,
    function::members::Members,
    function::reach::{Reached, polls, waits_at_barrier},
};
use margay_exec::Convergence;
use margay_ir::{
    Block, BlockId, Func, FuncId, Inst, Operand, Terminator,
    pass::{
        Cfg, Cut, Shape, Uniformity, WarpShape, branch_around, cfg::successors, is_cta_barrier, propagate_constants,
        spins, split_after, split_before,
    },
};
use margay_isa::{Effect, Mod, Opcode};

/// The prepared copy of a function, and its analyses.
pub(in crate::emit) struct Prepared {
    pub func: Func,
    pub cfg: Cfg,
    pub uniformity: Uniformity,
    /// Barriers and other instructions at which lanes may wait for others; each ends a block.
    pub barriers: Vec<Cut>,
    /// Per block: the index in `barriers` of the cut with which it ends.
    pub barrier_at: Vec<Option<u32>>,
    /// Lanes of a warp may wait for each other, so the sweep may pass a block more than once.
    pub divergent: bool,
    /// Per block: it ends with a call in which threads may exit.
    pub exits_in_call: Vec<bool>,
    /// Loops may wait for other threads, so lanes in loops must yield to them.
    pub spins: bool,
    /// Per block: it begins with an instruction that the whole warp executes together, and lanes that come earlier are held there.
    pub holds: Vec<bool>,
    /// Some instruction tests whether other threads have made progress.
    pub polls: bool,
}

/// Whether a block does nothing but end the thread or return: lanes that branch to it finish at once. Not in functions
/// with results, which must be stored first, and not in those that should not return, which is noted.
pub(in crate::emit) fn trivial_exit(func: &Func, b: BlockId) -> bool {
    let block = &func.blocks[b.0 as usize];
    block.insts.is_empty()
        && match block.term {
            Terminator::Ret => func.rets.is_empty() && !func.noreturn,
            Terminator::Exit => func.kind == margay_check::FuncKind::Kernel,
            _ => false,
        }
}

/// The control-flow graph, in which trivial exits are not join points.
pub(in crate::emit) fn graph(func: &Func) -> Cfg {
    Cfg::new(func, |from, to| {
        trivial_exit(func, to) && matches!(func.blocks[from.0 as usize].term, Terminator::Branch { .. })
    })
}

/// Instructions whose code ignores their guard, so that a branch around them is needed.
fn unguarded(func: &Func, inst: &Inst) -> bool {
    let op = func.variant(inst).op;
    op.row().effect == Effect::Call
        || moves_stack(func, inst)
        || op == Opcode::Barrier && func.variant(inst).has(Mod::Cluster)
        || matches!(op, Opcode::Shfl | Opcode::Vote | Opcode::Activemask)
        || needs_warp(func, inst)
        || op == Opcode::Elect
        || op == Opcode::Redux && !func.variant(inst).t().is_float()
}

/// Whether an instruction waits for the lanes of a member mask.
pub(in crate::emit) fn is_rendezvous(func: &Func, inst: &Inst) -> bool {
    Convergence::of(func.variant(inst)) == Convergence::Members
}

/// Whether all lanes of a warp must execute an instruction together.
fn needs_warp(func: &Func, inst: &Inst) -> bool {
    Convergence::of(func.variant(inst)) == Convergence::Warp
}

/// Whether lanes may have to wait at an instruction for others of their warp.
pub(in crate::emit) fn waits_in_warp(func: &Func, inst: &Inst) -> bool {
    is_rendezvous(func, inst) || needs_warp(func, inst)
}

impl Prepared {
    /// Prepares a function; assumes divergence within warps if the code may cause it.
    pub fn new(id: FuncId, original: &Func, options: &Options, reached: &Reached) -> Prepared {
        let mut func = original.clone();
        if options.exchanged {
            exchange(&mut func);
        }
        let plain = Prepared::with(func.clone(), options.warp, reached);
        if !plain.may_diverge() && !reached.is_blocking(id, original) {
            return plain;
        }
        Prepared::with(func, WarpShape { divergent: true, ..options.warp }, reached)
    }

    fn with(mut func: Func, warp: WarpShape, reached: &Reached) -> Prepared {
        let divergent = warp.divergent;
        branch_around(&mut func, |f, i| unguarded(f, i) || is_rendezvous(f, i));
        if divergent {
            split_before(&mut func, needs_warp);
        }
        let on_fiber =
            |f: &Func, i: &Inst| reached.fibers && call_site(f, i).is_some_and(|c| reached.may_block(&c.callee));
        let waits = |f: &Func, i: &Inst| waits_at_barrier(f, i) || divergent && is_rendezvous(f, i) || on_fiber(f, i);
        let cuts = split_after(&mut func, |f, i| waits(f, i) || reached.may_exit(f, i));
        propagate_constants(&mut func);
        let last = |c: &Cut| func.insts(&func.blocks[c.block.0 as usize]).last();
        let (barriers, calls): (Vec<Cut>, Vec<Cut>) =
            cuts.into_iter().partition(|c| last(c).is_some_and(|i| waits(&func, i)));
        let mut barrier_at = vec![None; func.blocks.len()];
        barriers.iter().enumerate().for_each(|(k, b)| barrier_at[b.block.0 as usize] = Some(k as u32));
        let mut exits_in_call = vec![false; func.blocks.len()];
        calls.iter().for_each(|c| exits_in_call[c.block.0 as usize] = true);
        let begins = |b: &Block| func.insts(b).first().is_some_and(|i| divergent && needs_warp(&func, i));
        let holds = func.blocks.iter().map(begins).collect();
        let cfg = graph(&func);
        let polls = func.insts.iter().any(|i| polls(&func, i));
        let mut spins = spins(&func, &cfg);
        let analyze = |interleaved| Uniformity::new(&func, &cfg, WarpShape { interleaved, ..warp });
        let mut uniformity = analyze(spins);
        if polls && !spins && diverges_while_polling(&func, &cfg, &uniformity) {
            spins = true;
            uniformity = analyze(true);
        }
        Prepared { cfg, uniformity, barriers, barrier_at, divergent, exits_in_call, holds, spins, polls, func }
    }

    /// Whether lanes on different sides of a branch may participate in one warp operation, wait at different barriers, or
    /// exit while others wait for them. A plain sweep would run one side to its end before the other.
    fn may_diverge(&self) -> bool {
        let divergent = |a: &BlockId| self.uniformity.divergent[a.0 as usize];
        if self.barriers.iter().any(|c| divergent(&c.block)) {
            return true;
        }
        let insts = |b: &BlockId| self.func.insts(&self.func.blocks[b.0 as usize]).iter();
        let members = Members::new(&self.func, &self.cfg, &self.uniformity);
        let waits = |b: &BlockId| {
            let mut all = self.func.blocks[b.0 as usize].insts.range();
            all.any(|i| match &self.func.insts[i] {
                inst if needs_warp(&self.func, inst) => divergent(b),
                inst => is_rendezvous(&self.func, inst) && !members.come_together(*b, i),
            })
        };
        if self.cfg.order.iter().any(waits) {
            return true;
        }
        let has = |b: &&BlockId| insts(b).any(|i| waits_in_warp(&self.func, i));
        let found: Vec<BlockId> = self.cfg.order.iter().filter(has).copied().collect();
        // Lanes that poll are overtaken by the others, which may be anywhere.
        if self.spins && !found.is_empty() {
            return true;
        }
        found.iter().enumerate().any(|(i, a)| found[..i].iter().any(|b| self.uniformity.may_diverge_between(*a, *b)))
    }
}

impl Prepared {
    /// Whether lanes of a warp that call the function together may return at different times.
    pub fn returns_divergent(&self, reached: &Reached) -> bool {
        let func = &self.func;
        let holds = |i: &Inst| call_site(func, i).is_some_and(|c| reached.may_block(&c.callee));
        let varies =
            |o: &Operand| matches!(o, Operand::Reg(r) if self.uniformity.shapes[r.0 as usize] != Shape::Uniform);
        let chosen = |i: &Inst| {
            let guard = i.guard.map(|(r, _)| Operand::Reg(r));
            is_cta_barrier(func, i) && func.operands(i.srcs).iter().chain(&guard).any(varies)
        };
        // The analysis does not count lanes that return early as divergent.
        let leaves = |b: &BlockId| {
            let out = successors(&func.blocks[b.0 as usize].term).into_iter().any(|to| trivial_exit(func, to));
            self.uniformity.branches[b.0 as usize] && out
        };
        let waits = |b: &BlockId| {
            let divergent = self.uniformity.divergent[b.0 as usize];
            let waits = |i: &Inst| waits_in_warp(func, i) || waits_at_barrier(func, i) || holds(i);
            func.insts(&func.blocks[b.0 as usize]).iter().any(|i| divergent && waits(i) || chosen(i))
        };
        self.spins
            || self.divergent
            || self.cfg.order.iter().any(|b| leaves(b) || waits(b))
            || func.calls.iter().any(|c| reached.may_block(&c.callee) && reached.may_diverge(&c.callee))
    }

    /// Whether some call must run on a fiber of its own.
    pub fn needs_call_fibers(&self, reached: &Reached) -> bool {
        let func = &self.func;
        let on_fiber = |b: &BlockId| {
            let divergent = self.divergent || self.spins || self.uniformity.divergent[b.0 as usize];
            let insts = func.insts(&func.blocks[b.0 as usize]);
            insts
                .iter()
                .filter_map(|i| call_site(func, i))
                .any(|c| reached.may_block(&c.callee) && (divergent || reached.may_diverge(&c.callee)))
        };
        self.cfg.order.iter().any(on_fiber)
    }
}

/// Whether lanes of a warp may be divergent while some of them poll in a loop.
fn diverges_while_polling(func: &Func, cfg: &Cfg, uniformity: &Uniformity) -> bool {
    let varies = |o: &Operand| matches!(o, Operand::Reg(r) if uniformity.shapes[r.0 as usize] != Shape::Uniform);
    cfg.order.iter().any(|b| {
        let looped = cfg.innermost(cfg.position[b.0 as usize]).is_some();
        let mut insts = func.insts(&func.blocks[b.0 as usize]).iter().filter(|i| polls(func, i));
        let divergent = uniformity.divergent[b.0 as usize];
        insts.any(|i| looped && (divergent || func.operands(i.dsts).iter().any(varies)))
    })
}
