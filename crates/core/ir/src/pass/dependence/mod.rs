//! Dependences of an instruction on the values that others yield, by forward slicing.
//!
//! * `control.rs`: whether the values decide if the instruction is executed at all.
//! * `chosen.rs`: under which conditions the value of a speculative load is used.
//! * `decision.rs`: reads whose value decides a branch and nothing else.
//! * `order.rs`: whether address and control dependences order reads before an access.
//! * `test_and_set.rs`: tests of a place that decide whether it is set, in two steps.
//! * `update.rs`: updates in several steps, in which another thread may come in between.

mod chosen;
mod control;
mod decision;
mod order;
mod test_and_set;
mod update;

pub use chosen::conditions_of_use;
pub use control::controls;
pub use decision::Decision;
pub use order::depends_on_reads;
pub use test_and_set::tests_and_sets;
pub use update::recomputes;

use crate::{
    BlockId, Func, Inst, MemSpace,
    pass::{
        BitSet, Cfg,
        liveness::{inst_reads, inst_writes, term_reads},
    },
};
use margay_isa::{Effect, Opcode};

/// The forward slice of some instructions: everything computed from their results, through registers, and through the memory in which threads
/// of a CTA keep or exchange values (shared and local memory, each as a whole).
struct Slice<'a> {
    func: &'a Func,
    cfg: &'a Cfg,
    /// The instructions it starts from: indices into [`Func::insts`].
    sources: &'a [u32],
    /// Blocks that are executed depending on the values. What such a block writes belongs to the slice.
    controlled: BitSet,
    regs: BitSet,
    /// It includes values in shared or local memory.
    memory: bool,
}

impl<'a> Slice<'a> {
    fn new(func: &'a Func, cfg: &'a Cfg, sources: &'a [u32]) -> Slice<'a> {
        let (controlled, regs) = (BitSet::new(func.blocks.len()), BitSet::new(func.regs.len()));
        Slice { func, cfg, sources, controlled, regs, memory: false }
    }

    /// Completes the slice for the blocks in `controlled`.
    fn extend(&mut self) {
        let mut more = true;
        while std::mem::take(&mut more) {
            for b in &self.cfg.order {
                for i in self.func.blocks[b.0 as usize].insts.range() {
                    more |= self.step(*b, i);
                }
            }
        }
    }

    /// Adds what an instruction writes if it belongs to the slice; whether that was new.
    fn step(&mut self, b: BlockId, i: usize) -> bool {
        let (func, inst) = (self.func, &self.func.insts[i]);
        let op = func.variant(inst).op;
        let calls = op.row().effect == Effect::Call;
        let loads = self.memory && (calls || is_cta_memory(inst));
        let mut depends = self.sources.contains(&(i as u32)) || loads || self.controlled.has(b.0);
        inst_reads(func, inst, &mut |r| depends |= self.regs.has(r.0));
        if !depends {
            return false;
        }
        let mut more = false;
        inst_writes(func, inst, &mut |r| {
            more |= !self.regs.has(r.0);
            self.regs.insert(r.0);
        });
        if calls || op != Opcode::Ld && is_cta_memory(inst) {
            more |= !std::mem::replace(&mut self.memory, true);
        }
        more
    }

    /// Whether the branch at the end of a block tests what belongs to the slice.
    fn has_branch(&self, b: BlockId) -> bool {
        let mut depends = false;
        term_reads(self.func, &self.func.blocks[b.0 as usize].term, &mut |r| depends |= self.regs.has(r.0));
        depends
    }
}

/// Whether an instruction accesses memory in which threads of a CTA keep or exchange values.
fn is_cta_memory(inst: &Inst) -> bool {
    matches!(inst.space, Some(MemSpace::Shared | MemSpace::SharedCluster | MemSpace::Local))
}
