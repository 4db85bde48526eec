//! Instructions that all lanes of a warp execute together (`.sync.aligned`: matrices, tensor memory, fences of both), in code where
//! lanes of a warp may come to them one after the other.
//!
//! Such an instruction begins a block. Lanes that come before the rest are held: they stay pending at the block while the sweep
//! continues for the others, until all 32 are pending there. If the others end, the block runs for the lanes that have come if the
//! instruction only waits ([`only_converges`]). If all others wait, have ended or left the function, the fiber suspends, and the host
//! judges (`run/cta.rs`): held lanes are a fault when no other lane of their warp can go on, so that the fault does not depend on the
//! order in which lanes come.

use crate::ctx::at;
use crate::emit::{
    function::Emitter,
    site::SiteKind,
    text::{Elem, Ty, Val, int},
};
use margay_exec::only_converges;
use margay_ir::BlockId;

/// Variables of 32 bits about held lanes.
#[derive(Clone)]
pub(in crate::emit) struct Held {
    /// All lanes that are held.
    lanes: Val,
    /// Those at the block where the lowest of them is.
    first: Val,
    /// The site of that block plus one.
    site: Val,
    /// Lanes at instructions that only wait, which go on once others have ended.
    gathered: Val,
}

impl Emitter<'_> {
    /// Makes the variables, if lanes may be held.
    pub fn allocate_held(&mut self) {
        if !self.prepared.holds.contains(&true) {
            return;
        }
        let [lanes, first, site, gathered] = std::array::from_fn(|_| self.w.alloca("i32", 4));
        for p in [&lanes, &first, &site, &gathered] {
            self.pin_if_many(p);
            self.w.entry.push_str(&format!("  store i32 0, ptr {p}, align 4\n"));
        }
        self.lane_sets.held = Some(Held { lanes, first, site, gathered });
    }

    /// The masked version of a block that begins with such an instruction: goes on for `waiting` if they are all lanes, or if others have
    /// ended and the instruction only waits; else keeps them pending and continues the sweep.
    pub fn hold(&mut self, b: BlockId, waiting: &Val) {
        let Some(held) = self.lane_sets.held.clone() else { return };
        let position = self.prepared.cfg.position[b.0 as usize];
        let first_inst = self.func.blocks[b.0 as usize].insts.start;
        let gathers = only_converges(self.func.variant(&self.func.insts[first_inst as usize]));
        let bits = self.bits(waiting);
        let all = int(Elem::I32, -1);
        let mut early = self.w.cmp("icmp ne", &bits, &all);
        if gathers {
            let alive = self.alive_bits();
            let whole = self.w.cmp("icmp eq", &alive, &all);
            early = self.w.op("and", &early, &whole);
        }
        let (keep, go) = (self.w.label("hold"), self.w.label("whole"));
        self.w.branch(&early, &keep, &go);
        let mark = self.w.mark();
        self.w.follow(&keep);
        let some = |e: &mut Self, p: &Val| e.w.load(Ty::scalar(Elem::I32), p, 4);
        let (lanes, first, site) = (some(self, &held.lanes), some(self, &held.first), some(self, &held.site));
        let lanes = self.w.op("or", &lanes, &bits);
        self.w.store(&lanes, &held.lanes, 4);
        if gathers {
            let gathered = some(self, &held.gathered);
            let gathered = self.w.op("or", &gathered, &bits);
            self.w.store(&gathered, &held.gathered, 4);
        }
        // The bits below the lowest lane; all for no lane.
        let below = |e: &mut Self, lanes: &Val| {
            let less = e.w.op_const("sub", lanes, 1);
            let not = e.w.op_const("xor", lanes, -1);
            e.w.op("and", &less, &not)
        };
        let (own, other) = (below(self, &bits), below(self, &first));
        let lower = self.w.cmp("icmp ule", &own, &other);
        (self.inst, self.at) = (first_inst, self.func.insts[first_inst as usize].at);
        let number = self.site(SiteKind::Held) as i128 + 1;
        let first = self.w.select(&lower, &bits, &first);
        self.w.store(&first, &held.first, 4);
        let site = self.w.select(&lower, &int(Elem::I32, number), &site);
        self.w.store(&site, &held.site, 4);
        self.next(position);
        self.w.join(&go, mark);
        for p in [&held.lanes, &held.first, &held.site, &held.gathered] {
            self.w.store(&int(Elem::I32, 0), p, 4);
        }
    }

    /// All lanes that are held, if lanes may be.
    pub fn held_lanes(&mut self) -> Option<Val> {
        let held = self.lane_sets.held.clone()?;
        Some(self.w.load(Ty::scalar(Elem::I32), &held.lanes, 4))
    }

    /// Reports held lanes to the host, before the fiber suspends.
    pub fn report_held(&mut self) {
        let Some(held) = self.lane_sets.held.clone() else { return };
        for (from, to) in [(&held.site, at::HELD), (&held.first, at::HELD_LANES), (&held.gathered, at::GATHERED)] {
            let v = self.w.load(Ty::scalar(Elem::I32), from, 4);
            let p = self.ctx_pointer(to);
            self.w.store(&v, &p, 4);
        }
    }

    /// Whether lanes are pending at a block that the sweep has not passed since they came: `i1`.
    pub fn may_continue(&mut self, b: BlockId) -> Val {
        let mask = self.get_pending(b.0);
        match self.held_lanes().filter(|_| self.prepared.holds[b.0 as usize]) {
            None => self.any(&mask),
            Some(held) => {
                let bits = self.bits(&mask);
                let rest = self.w.op_const("xor", &held, -1);
                let new = self.w.op("and", &bits, &rest);
                self.w.cmp("icmp ne", &new, &int(Elem::I32, 0))
            }
        }
    }
}
