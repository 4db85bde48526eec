//! The sweep: the masked versions of a region's blocks run in layout order for the lanes that are pending at them, and a loop is repeated
//! while lanes are pending at its header. Back edges consume the budget until the next yield or safepoint.

use crate::ctx::Helper;
use crate::emit::{
    function::{Emitter, Result},
    text::{Elem, Ty, Val, int},
};
use margay_ir::{BlockId, pass::Loop};

impl Emitter<'_> {
    /// Label of the full version of a block.
    pub fn full_label(&self, b: BlockId) -> String {
        format!("{}b{}.full", self.region.tag, b.0)
    }

    /// Label of the masked version of a block.
    pub fn masked_label(&self, b: BlockId) -> String {
        format!("{}b{}.masked", self.region.tag, b.0)
    }

    /// Label reached when all lanes of the warp have exited.
    pub fn done_label(&self) -> String {
        format!("{}done", self.region.tag)
    }

    /// Label at the end of a sweep of the masked version.
    pub fn swept_label(&self) -> String {
        format!("{}swept", self.region.tag)
    }

    /// Index in the region of the first block at or after a layout position.
    fn place_in_region(&self, position: u32) -> usize {
        self.region.blocks.partition_point(|b| self.prepared.cfg.position[b.0 as usize] < position)
    }

    /// Continues the sweep after the block at a layout position: back to the header of a loop that ends here while
    /// lanes are pending there, else to the next block.
    pub fn next(&mut self, position: u32) {
        let following = self.following_label(position);
        let ending = self.ending_loops(position);
        if ending.is_empty() {
            return self.w.jump(&following);
        }
        for (i, l) in ending.iter().enumerate() {
            let header = self.prepared.cfg.order[l.first as usize];
            let mut any = self.waits_in(*l);
            let last = i + 1 == ending.len();
            let on = if last { following.clone() } else { self.w.label("left") };
            let back = self.masked_label(header);
            let mark = self.w.mark();
            if self.prepared.spins {
                let fuel_left = self.spend();
                any = self.w.op("and", &any, &fuel_left);
                self.w.branch(&any, &back, &on);
            } else {
                let tick = self.w.label("back");
                self.w.branch(&any, &tick, &on);
                self.w.follow(&tick);
                self.count_back_edge(&back);
            }
            if !last {
                self.w.join(&on, mark);
            }
        }
    }

    /// The loops that end with the block at a layout position, innermost first.
    pub(super) fn ending_loops(&self, position: u32) -> Vec<Loop> {
        let following = self.region.blocks.get(self.place_in_region(position) + 1);
        let after = following.map_or(u32::MAX, |b| self.prepared.cfg.position[b.0 as usize]);
        // The loop's last block within the region: the next block is outside it.
        let ends = |l: &&Loop| l.first <= position && l.last >= position && l.last < after;
        let begins_here = |l: &Loop| self.region.blocks.contains(&self.prepared.cfg.order[l.first as usize]);
        let mut ending: Vec<Loop> = self.prepared.cfg.loops.iter().filter(ends).copied().filter(begins_here).collect();
        ending.sort_by_key(|l| std::cmp::Reverse(l.first));
        ending
    }

    /// Label of what follows the block at a layout position in the sweep.
    pub(super) fn following_label(&self, position: u32) -> String {
        match self.region.blocks.get(self.place_in_region(position) + 1) {
            Some(b) => self.masked_label(*b),
            None => self.swept_label(),
        }
    }

    /// Whether lanes are pending for another iteration of a loop: at its header, or anywhere in a loop with several
    /// entries.
    fn waits_in(&mut self, l: Loop) -> Val {
        let last = if l.irreducible { l.last } else { l.first };
        let mut waiting = int(Elem::I1, 0);
        for position in l.first..=last {
            let block = self.prepared.cfg.order[position as usize];
            if self.region.blocks.contains(&block) {
                let any = self.may_continue(block);
                waiting = self.w.op("or", &waiting, &any);
            }
        }
        waiting
    }

    /// After the last block: done, unless lanes are parked, or are pending after the sweep in an irreducible graph.
    pub fn finish_sweep(&mut self) -> Result<()> {
        let done = self.done_label();
        let first = self.masked_label(self.region.blocks[0]);
        if !self.prepared.cfg.reducible || self.prepared.spins {
            let mut waiting = int(Elem::I1, 0);
            for b in self.region.blocks.clone() {
                let any = self.may_continue(b);
                waiting = self.w.op("or", &waiting, &any);
            }
            let on = self.w.label("left");
            if self.prepared.spins {
                self.w.branch(&waiting, "overtake", &on);
            } else {
                let again = self.w.label("again");
                self.w.branch(&waiting, &again, &on);
                self.w.block(&again);
                self.count_back_edge(&first);
            }
            self.w.block(&on);
        }
        self.await_barriers(&first, &done)
    }

    /// Consumes one unit of the back-edge budget; whether there was one left. After the last, every back edge is refused until the
    /// function yields ([`Emitter::refill`]), since the sweep in which it was spent may end with all lanes parked.
    pub(super) fn spend(&mut self) -> Val {
        let Some(fuel) = self.fuel.clone() else { return int(Elem::I1, 1) };
        let left = self.w.load(Ty::scalar(Elem::I32), &fuel, 4);
        let less = self.w.op_const("sub", &left, 1);
        let some = self.w.cmp("icmp ne", &less, &int(Elem::I32, 0));
        let kept = self.w.select(&some, &less, &int(Elem::I32, 1));
        self.w.store(&kept, &fuel, 4);
        some
    }

    /// Has a function whose loops may wait for others yield to them at the next back edge.
    pub fn let_others_run(&mut self) {
        if let Some(fuel) = self.fuel.clone().filter(|_| self.prepared.spins) {
            self.w.store(&int(Elem::I32, 1), &fuel, 4);
        }
    }

    /// Refills the back-edge budget.
    pub fn refill(&mut self) {
        if let Some(fuel) = self.fuel.clone() {
            self.w.store(&int(Elem::I32, i128::from(self.period())), &fuel, 4);
        }
    }

    /// Emits a back edge with a safepoint every so often.
    pub(super) fn count_back_edge(&mut self, target: &str) {
        let Some(fuel) = self.fuel.clone() else { return self.w.jump(target) };
        let left = self.w.load(Ty::scalar(Elem::I32), &fuel, 4);
        let less = self.w.op_const("sub", &left, 1);
        self.w.store(&less, &fuel, 4);
        let spent = self.w.cmp("icmp eq", &less, &int(Elem::I32, 0));
        let tired = self.w.label("tired");
        self.w.branch_unlikely(&spent, &tired, target);
        self.w.block(&tired);
        self.refill();
        let status = self.helper_status(Helper::Tick, &[]);
        let stops = self.w.cmp("icmp ne", &status, &int(Elem::I32, 0));
        self.w.branch_unlikely(&stops, "stop", target);
    }
}
