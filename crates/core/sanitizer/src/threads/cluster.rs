//! Barriers at which the threads of a cluster meet.

use super::{CtaThreads, Threads, WarpMask, lanes};
use crate::clock::Side;
use margay_exec::Semantics;
use std::sync::Arc;

impl Threads {
    /// `barrier.cluster.arrive`: a release makes what the threads know part of the phase, and without one what they fenced before.
    pub(super) fn arrive_at_cluster(&mut self, cta: &mut CtaThreads, who: WarpMask, semantics: Semantics) {
        for lane in lanes(who.lanes) {
            let t = cta.thread(who.warp, lane);
            t.phase += 1;
            let key = (cta.cluster, cta.look(who.warp, lane).phase);
            let to = self.clusters.entry(key).or_default();
            let one = WarpMask { lanes: 1 << lane, ..who };
            if semantics.releases() {
                cta.gather(one, self.now, to);
            } else if let Some(fence) = &cta.look(who.warp, lane).fences[1] {
                to.join(&fence.clock);
                to.raise((cta.index, who.warp, 1 << lane), Side::Program, fence.time);
            }
        }
    }

    /// `barrier.cluster.wait` has ended: the threads learn what is part of the phase.
    pub(super) fn pass_cluster(&mut self, cta: &mut CtaThreads, who: WarpMask) {
        for lane in lanes(who.lanes) {
            let t = cta.thread(who.warp, lane);
            t.passed = t.phase;
            let phase = t.phase;
            if let Some(clock) = self.clusters.get(&(cta.cluster, phase)) {
                cta.acquire_clock(who.warp, lane, &Arc::new(clock.clone()), None);
            }
            // All threads have arrived at this phase, so none waits for the one before the previous.
            if phase > 2 {
                self.clusters.remove(&(cta.cluster, phase - 2));
            }
        }
    }
}
