//! Records accesses of a warp in shadow memory, and finds the earlier ones that they are unordered with.

mod compare;
mod event;
mod repeated;
mod scattered;
mod spans;
mod words;

pub use scattered::Scattered;

use crate::{
    clock::{Side, Time},
    shadow::{AGENT, Record, WarpLanes},
    site::{Kind, Place},
    threads::Seen,
};

/// A group of lanes that access memory now.
pub struct Row {
    /// Its CTA, and the number of the CTA's first warp in the launch.
    pub cta: u32,
    pub first: u32,
    /// Warps of a CTA.
    pub warps: u32,
    pub warp: u32,
    pub site: u32,
    pub kind: Kind,
    pub agent: bool,
    /// It accesses shared memory; known of accesses in the async proxy.
    pub shared: bool,
    pub now: Time,
    /// When the CTA began.
    pub begun: Time,
    /// What all of its lanes have seen.
    pub seen: Seen,
    /// The time of the last release by the warp.
    pub published: Time,
}

/// An earlier access by one lane that is unordered with the present one.
pub struct Hit {
    pub earlier: Record,
    pub other: WarpLanes,
    pub lane: u32,
    pub word: u64,
    pub mask: u32,
    pub missing: Missing,
}

/// What two accesses lack.
#[derive(Clone, Copy)]
pub enum Missing {
    /// Order.
    Order,
    /// Order that is not only due to what the later thread has read here by chance.
    Wait(Place),
    /// A proxy fence.
    Proxy,
    /// A cache that notices what is written.
    Coherence,
}

impl Row {
    fn who(&self) -> u32 {
        (self.first + self.warp) | if self.agent { AGENT } else { 0 }
    }

    /// Whether lanes certainly have seen an earlier access; if not, [`compare::WordAccess`] decides.
    #[inline(always)]
    fn has_seen(&self, r: Record, lanes: u32) -> bool {
        let warp = r.who.wrapping_sub(self.first);
        if warp < self.warps {
            // A lane has seen what it did itself, and not what the lanes beside it did.
            let own = warp == self.warp && (r.time <= self.seen.warp || r.lanes == lanes && lanes.is_power_of_two());
            return r.time <= self.seen.cta || own;
        }
        !r.is_agent() && r.time <= self.seen.cta && r.cta(self.warps) == self.cta
    }
}

/// Whose access a record is.
pub fn side(earlier: &Record, kind: Kind) -> Side {
    match earlier.is_agent() {
        true if kind.tensor.is_product() => Side::Products,
        true if kind.tensor.is_move() => Side::Moves,
        true if kind.writes => Side::Agent,
        true => Side::AgentReads,
        false => Side::Program,
    }
}
