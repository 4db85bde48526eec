//! Barriers at which threads of a CTA meet.

use super::{CtaThreads, Seen, Thread, Warp, WarpMask, join_shared, pending::Unacquired};
use crate::clock::{Clock, Side, Time};
use std::sync::Arc;

/// The clocks gathered at a barrier, and what fences of its participants have made visible.
#[derive(Default)]
pub(super) struct Gathered {
    /// What the participants had seen, without what they did themselves.
    pub(super) clock: Clock,
    /// The clock that was joined last.
    pub(super) seen: Option<Arc<Clock>>,
    /// Who has arrived, and when.
    pub(super) arrivals: Vec<(WarpMask, Time)>,
    /// Whose reads the participants knew to be over.
    pub(super) reads: Option<Arc<Clock>>,
    pub(super) fences: [Option<Clock>; 3],
    /// What they have waited for, and no fence has acquired.
    pub(super) pending: Unacquired,
}

impl CtaThreads {
    /// Gives all threads a clock and what is known of reads, if they then have nothing else.
    pub(super) fn give_all(&mut self, clock: &Arc<Clock>, reads: Option<&Arc<Clock>>) -> bool {
        if self.common.is_none() && !self.warps.iter().all(Warp::becomes_plain) {
            return false;
        }
        self.common = Some(Warp::Alike(Thread { clock: clock.clone(), reads: reads.cloned(), ..Thread::default() }));
        self.uncertain.fill(0);
        true
    }

    /// All threads meet at a barrier, if they have all seen the same and have nothing else: then the clock that they get is the one that they
    /// have, raised. False if more is to be done.
    pub(super) fn meet(&mut self, waited: &[u32], now: Time) -> bool {
        let Some(Warp::Alike(thread)) = &mut self.common else { return false };
        if waited.len() != self.published.len() || waited.iter().any(|mask| *mask != u32::MAX) {
            return false;
        }
        Arc::make_mut(&mut thread.clock).raise_all(self.index, now);
        // What it has seen by chance comes by the barrier now.
        thread.uncertain_clocks.clear();
        thread.certain = None;
        self.uncertain.fill(0);
        self.published.fill(now);
        self.seen.fill(Some((0, Seen { cta: now, warp: now })));
        true
    }

    /// Whether lanes could have arrived at a barrier of a given number of threads before it has completed the last time: a warp of those
    /// that did, of whose arrival they do not know.
    pub fn could_have_joined(&self, now: WarpMask, id: u32) -> Option<WarpMask> {
        let (_, arrivals) = self.ended.iter().find(|(known, _)| *known == id)?;
        let unknown = |(who, time): &&(WarpMask, Time)| {
            who.warp != now.warp && self.unseen(now, (self.index, who.warp, who.lanes), Side::Program, *time).is_some()
        };
        arrivals.iter().find(unknown).map(|(who, _)| *who)
    }

    /// Threads arrive at a barrier.
    pub(super) fn arrive(&mut self, who: WarpMask, id: u32, time: Time) {
        let place = self.barriers.iter().position(|(known, _)| *known == id).unwrap_or_else(|| {
            let arrivals = std::mem::take(&mut self.spare);
            self.barriers.push((id, Gathered { arrivals, ..Gathered::default() }));
            self.barriers.len() - 1
        });
        let gathered = &mut self.barriers[place].1;
        gathered.arrivals.push((who, time));
        if let Warp::Alike(thread) = self.common.as_ref().unwrap_or_else(|| &self.warps[who.warp as usize]) {
            // Most have seen what the warp before them has.
            if gathered.seen.as_ref().is_none_or(|seen| !Arc::ptr_eq(seen, &thread.clock)) {
                gathered.clock.join(&thread.clock);
                gathered.seen = Some(thread.clock.clone());
            }
            return join_shared(&mut gathered.reads, thread.reads.as_ref());
        }
        let mut gathered = std::mem::take(gathered);
        self.gather_seen(who, &mut gathered.clock);
        self.gather_fences(who, &mut gathered.fences);
        self.gather_pending(who, &mut gathered.pending);
        join_shared(&mut gathered.reads, self.reads_of(who).as_ref());
        self.barriers[place].1 = gathered;
    }

    /// Threads whose arrivals were not reported one by one have arrived at a barrier.
    pub(super) fn arrive_all(&mut self, arrived: &[u32], id: u32, time: Time) {
        // One warp stands for those that have all seen the same.
        let count = if self.common.is_some() { 1 } else { arrived.len() };
        let warps = arrived.iter().enumerate().filter(|(_, lanes)| **lanes != 0).take(count);
        for (warp, lanes) in warps {
            let who = WarpMask { warp: warp as u32, lanes: *lanes };
            self.acquire_pending(who);
            self.arrive(who, id, time);
        }
    }
}
