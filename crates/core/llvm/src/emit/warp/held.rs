//! Instructions that all lanes of a warp execute together (`.sync.aligned`: matrices, tensor memory, fences of both), in code where
//! lanes of a warp may arrive one after the other.
//!
//! Such an instruction begins a block. Lanes that arrive before the rest are *held*: they stay pending at the block while the sweep
//! continues for the others, until all 32 are pending there. If the others exit, the block runs for the lanes that have arrived if the
//! instruction only waits ([`only_converges`]). If all others wait, or have exited or returned, the fiber suspends and the host decides
//! (`run/cta.rs`): held lanes are a fault once no other lane of their warp can continue, so the fault does not depend on the order of
//! arrival.

use crate::ctx::at;
use crate::emit::{
    function::Emitter,
    site::SiteKind,
    text::{Elem, Ty, Val, fill, int},
};
use margay_exec::only_converges;
use margay_ir::BlockId;

/// The state of held lanes: four words in memory.
#[derive(Clone)]
pub(in crate::emit) struct Held(Val);

/// All lanes that are held.
const LANES: u64 = 0;
/// The lanes at the block where the lowest held lane is.
const FIRST: u64 = 4;
/// The site of that block plus one.
const SITE: u64 = 8;
/// Lanes at instructions that only wait, which continue once others have ended.
const GATHERED: u64 = 12;

impl Emitter<'_> {
    /// Makes the variables, if lanes may be held.
    pub fn allocate_held(&mut self) {
        if !self.prepared.holds.contains(&true) {
            return;
        }
        let words = self.w.alloca("<4 x i32>", 16);
        self.w.entry.push_str(&format!("  store <4 x i32> zeroinitializer, ptr {words}, align 16\n"));
        self.w.declared.insert(fill(include_str!("held/hold.ll"), &[]));
        self.lane_sets.held = Some(Held(words));
    }

    /// The masked version of a block that begins with such an instruction: continues for `waiting` if they are all lanes, or if others have
    /// ended and the instruction only waits; else keeps them pending and continues the sweep. Returns whether only all lanes continue.
    pub fn hold(&mut self, b: BlockId, waiting: &Val) -> bool {
        let Some(Held(words)) = self.lane_sets.held.clone() else { return false };
        let position = self.prepared.cfg.position[b.0 as usize];
        let first_inst = self.func.blocks[b.0 as usize].insts.start;
        let gathers = only_converges(self.func.variant(&self.func.insts[first_inst as usize]));
        let bits = self.bits(waiting);
        let (none, all) = (int(Elem::I32, 0), int(Elem::I32, -1));
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
        (self.inst, self.at) = (first_inst, self.func.insts[first_inst as usize].at);
        let number = self.site(SiteKind::Held) as i128 + 1;
        let gathered = if gathers { &bits } else { &none };
        self.w.line(format_args!("call void @margay.hold(ptr {words}, i32 {bits}, i32 {gathered}, i32 {number})"));
        self.next(position);
        self.w.join(&go, mark);
        self.w.line(format_args!("store <4 x i32> zeroinitializer, ptr {words}, align 16"));
        !gathers
    }

    fn held_word(&mut self, Held(words): &Held, at: u64) -> Val {
        let p = self.w.offset_const(words, at);
        self.w.load(Ty::scalar(Elem::I32), &p, 4)
    }

    /// All lanes that are held, if lanes may be.
    pub fn held_lanes(&mut self) -> Option<Val> {
        let held = self.lane_sets.held.clone()?;
        Some(self.held_word(&held, LANES))
    }

    /// Reports held lanes to the host, before the fiber suspends.
    pub fn report_held(&mut self) {
        let Some(held) = self.lane_sets.held.clone() else { return };
        for (from, to) in [(SITE, at::HELD), (FIRST, at::HELD_LANES), (GATHERED, at::GATHERED)] {
            let v = self.held_word(&held, from);
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
