//! Decides which registers stay in memory.
//!
//! LLVM promotes the variables of registers to values, with phis in every block that has several predecessors. In a sweep that is every block,
//! and a value of 32 lanes is several vectors of the host, so the phis of a large function outnumber its instructions by far, and most of
//! these values are spilled again. So there is a budget of phis: beyond it, the masks of pending lanes (one per block) stay in memory, and
//! then registers that live through many blocks but are rarely used.

use crate::emit::{
    function::{Emitter, elem_of},
    text::Elem,
};
use margay_ir::{
    VReg,
    pass::{Shape, liveness},
};

/// Phis beyond which registers stay in memory.
const MAX_PHIS: usize = 20_000;

/// What is pinned in memory.
pub(super) struct Pinned {
    /// By register.
    pub registers: Vec<bool>,
    /// The masks of pending lanes, one per block.
    pub masks: bool,
}

impl Emitter<'_> {
    /// What to pin in memory, where promoting all of it would cost too much.
    pub(super) fn find_pinned(&self) -> Pinned {
        let count = self.func.regs.len();
        let mut pinned = Pinned { registers: vec![false; count], masks: false };
        if !self.masks {
            return pinned;
        }
        let order = &self.prepared.cfg.order;
        let phis = self.phis_by_register();
        let masks = order.len() * (order.len() + self.prepared.barriers.len());
        let mut total = masks + phis.iter().sum::<usize>();
        if total <= MAX_PHIS {
            return pinned;
        }
        (pinned.masks, total) = (true, total - masks);
        let uses = self.uses_by_register();
        let mut candidates: Vec<usize> = (0..count).filter(|r| phis[*r] > 0).collect();
        // Most phis for a use first.
        candidates.sort_by(|a, b| (phis[*b] as u64 * uses[*a]).cmp(&(phis[*a] as u64 * uses[*b])));
        for r in candidates {
            if total <= MAX_PHIS {
                break;
            }
            pinned.registers[r] = true;
            total -= phis[r];
        }
        pinned
    }

    /// The vectors of the host that a register's variable takes, times the blocks where it is live.
    fn phis_by_register(&self) -> Vec<usize> {
        let vector = if self.options.mask_registers { 512 } else { 256 };
        let mut phis = vec![0; self.func.regs.len()];
        for b in &self.prepared.cfg.order {
            self.live.live_in[b.0 as usize].iter().for_each(|r| phis[r as usize] += 1);
        }
        for (r, phis) in phis.iter_mut().enumerate() {
            let elem = elem_of(self.func.regs[r]);
            if self.prepared.uniformity.shapes[r] == Shape::Varying && elem != Elem::I1 {
                *phis *= (32 * elem.bits()).div_ceil(vector) as usize;
            }
        }
        phis
    }

    /// How often registers are used, by a guess of how often blocks are executed.
    fn uses_by_register(&self) -> Vec<u64> {
        let cfg = &self.prepared.cfg;
        let mut uses = vec![1; self.func.regs.len()];
        for (position, b) in (0..).zip(&cfg.order) {
            let weight = cfg.frequency(position);
            let block = &self.func.blocks[b.0 as usize];
            let mut count = |r: VReg| uses[r.0 as usize] += weight;
            for inst in self.func.insts(block) {
                liveness::inst_reads(self.func, inst, &mut count);
                liveness::inst_writes(self.func, inst, &mut count);
            }
            liveness::term_reads(self.func, &block.term, &mut count);
        }
        uses
    }
}
