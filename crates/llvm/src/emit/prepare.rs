//! A function made ready for emission: a copy whose blocks end where lanes may wait or be lost, and what analyses say of it.

use super::{
    func::Options,
    reach::{Reached, polls, spins},
};
use margay_ir::{
    BlockId, Func, Inst, Operand, Terminator,
    pass::{Cfg, Cut, Shape, Uniformity, WarpShape, branch_around, is_cta_barrier, propagate_constants, split_after},
};
use margay_isa::{Effect, Opcode};

/// The copy, and what is known of it.
pub(super) struct Prepared {
    pub func: Func,
    pub cfg: Cfg,
    pub uniformity: Uniformity,
    /// Barriers, which end blocks.
    pub barriers: Vec<Cut>,
    /// By block: it ends with a call from which lanes may not come back.
    pub loses: Vec<bool>,
    /// Loops may wait for other threads, so lanes that loop must let others go on.
    pub spins: bool,
    /// The warp must let others go on at some instruction.
    pub polls: bool,
}

/// A block that does nothing but end the thread: lanes that branch to it are done at once. Not in functions that return
/// registers, where the values must be kept.
pub(super) fn trivial_exit(func: &Func, b: BlockId) -> bool {
    let block = &func.blocks[b.0 as usize];
    block.insts.is_empty()
        && match block.term {
            Terminator::Ret => func.rets.is_empty(),
            Terminator::Exit => func.kind == margay_check::FuncKind::Kernel,
            _ => false,
        }
}

/// The control-flow graph; exits that do nothing join no paths.
pub(super) fn graph(func: &Func) -> Cfg {
    Cfg::new(func, |from, to| {
        trivial_exit(func, to) && matches!(func.blocks[from.0 as usize].term, Terminator::Branch { .. })
    })
}

/// Instructions whose code knows no guard.
fn unguarded(func: &Func, inst: &Inst) -> bool {
    let op = func.variant(inst).op;
    op.row().effect == Effect::Call
        || matches!(op, Opcode::Shfl | Opcode::Vote | Opcode::Activemask)
        || op == Opcode::Redux && !func.variant(inst).t().is_float()
}

impl Prepared {
    pub fn new(original: &Func, options: &Options, reached: &Reached) -> Prepared {
        let mut func = original.clone();
        branch_around(&mut func, unguarded);
        let cuts = split_after(&mut func, |f, i| is_cta_barrier(f, i) || reached.may_exit(f, i));
        propagate_constants(&mut func);
        let last = |c: &Cut| func.insts(&func.blocks[c.block.0 as usize]).last();
        let is_barrier = |c: &Cut| last(c).is_some_and(|i| is_cta_barrier(&func, i));
        let (barriers, calls): (Vec<Cut>, Vec<Cut>) = cuts.into_iter().partition(is_barrier);
        let mut loses = vec![false; func.blocks.len()];
        calls.iter().for_each(|c| loses[c.block.0 as usize] = true);
        let cfg = graph(&func);
        let polls = func.insts.iter().any(|i| polls(&func, i));
        let mut spins = spins(&func, &cfg);
        let analyse = |interleaved| Uniformity::new(&func, &cfg, WarpShape { interleaved, ..options.warp });
        let mut uniformity = analyse(spins);
        if polls && !spins && parts_while_polling(&func, &cfg, &uniformity) {
            spins = true;
            uniformity = analyse(true);
        }
        Prepared { cfg, uniformity, barriers, loses, spins, polls, func }
    }
}

/// Whether lanes of one warp may be apart while some of them poll in a loop.
fn parts_while_polling(func: &Func, cfg: &Cfg, uniformity: &Uniformity) -> bool {
    let varies = |o: &Operand| matches!(o, Operand::Reg(r) if uniformity.shapes[r.0 as usize] != Shape::Uniform);
    cfg.order.iter().any(|b| {
        let looped = cfg.innermost(cfg.position[b.0 as usize]).is_some();
        let mut insts = func.insts(&func.blocks[b.0 as usize]).iter().filter(|i| polls(func, i));
        let apart = uniformity.divergent[b.0 as usize];
        insts.any(|i| looped && (apart || func.operands(i.dsts).iter().any(varies)))
    })
}
