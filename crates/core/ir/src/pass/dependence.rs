//! Control dependence: whether values decide if an instruction is executed. See `hinge.rs` for what orders a read before an access.

use crate::{
    BlockId, Func, Inst, MemSpace,
    pass::{
        BitSet, Cfg,
        liveness::{inst_reads, inst_writes, term_reads},
    },
};
use margay_isa::{Effect, Opcode};

/// Whether the values that the instructions at `sources` yield may decide whether the one at `target` is executed: by a branch or a guard
/// that is computed from them, or from what was stored where threads of a CTA can pass it on (in shared or local memory) depending
/// on them. Both are numbers in [`Func::insts`].
pub fn decides(func: &Func, sources: &[u32], target: u32) -> bool {
    let cfg = Cfg::new(func, |_, _| false);
    let mut all = Dependence {
        func,
        cfg: &cfg,
        regs: BitSet::new(func.regs.len()),
        blocks: BitSet::new(func.blocks.len()),
        memory: false,
    };
    while all.extend(sources) {}
    all.blocks.iter().any(|b| func.blocks[b as usize].insts.range().contains(&(target as usize)))
        || func.insts[target as usize].guard.is_some_and(|(p, _)| all.regs.has(p.0))
}

/// What depends on some values, as far as it is known.
struct Dependence<'a> {
    func: &'a Func,
    cfg: &'a Cfg,
    regs: BitSet,
    /// Blocks that are executed depending on them.
    blocks: BitSet,
    /// Something in shared or local memory does.
    memory: bool,
}

/// Memory in which threads of a CTA keep or exchange what they compute.
fn is_near(inst: &Inst) -> bool {
    matches!(inst.space, Some(MemSpace::Shared | MemSpace::SharedCluster | MemSpace::Local))
}

impl Dependence<'_> {
    /// One pass over the function; whether it has found more.
    fn extend(&mut self, sources: &[u32]) -> bool {
        let mut more = false;
        for b in &self.cfg.order {
            let block = &self.func.blocks[b.0 as usize];
            for i in block.insts.range() {
                more |= self.step(*b, &self.func.insts[i], sources.contains(&(i as u32)));
            }
            let mut depends = self.blocks.has(b.0);
            term_reads(self.func, &block.term, &mut |r| depends |= self.regs.has(r.0));
            if depends {
                more |= self.mark_controlled(*b);
            }
        }
        more
    }

    fn step(&mut self, b: BlockId, inst: &Inst, is_source: bool) -> bool {
        let variant = self.func.variant(inst);
        let calls = variant.op.row().effect == Effect::Call;
        let loads = self.memory && (calls || is_near(inst));
        let mut depends = is_source || loads || self.blocks.has(b.0);
        inst_reads(self.func, inst, &mut |r| depends |= self.regs.has(r.0));
        if !depends {
            return false;
        }
        let mut more = false;
        inst_writes(self.func, inst, &mut |r| {
            more |= !self.regs.has(r.0);
            self.regs.insert(r.0);
        });
        if calls || variant.op != Opcode::Ld && is_near(inst) {
            more |= !std::mem::replace(&mut self.memory, true);
        }
        more
    }

    /// Marks the blocks whose execution the branch at the end of a block decides: those between it and where its sides meet.
    fn mark_controlled(&mut self, branch: BlockId) -> bool {
        let meet = self.cfg.ipdom[branch.0 as usize];
        let mut more = false;
        for side in &self.cfg.succs[branch.0 as usize] {
            let mut next = Some(*side);
            while let Some(b) = next.filter(|b| Some(*b) != meet) {
                more |= !self.blocks.has(b.0);
                self.blocks.insert(b.0);
                next = self.cfg.ipdom[b.0 as usize].filter(|n| *n != b);
            }
        }
        more
    }
}
