//! What threads know of others by reads that may have found something by chance ([`crate::incidental`]).

use super::{CtaThreads, Release, Thread, WarpMask, lanes};
use crate::{clock::Clock, site::Place};
use margay_exec::Scope;
use std::sync::Arc;

/// Limit of places whose reads are distinguished, per thread.
const MAX_UNCERTAIN: usize = 4;

/// One execution of a read at a place of the kernel.
#[derive(Clone, Copy)]
pub struct Read {
    pub place: Place,
    /// Distinguishes it from other executions.
    pub number: u64,
    /// No instruction uses the value, so nothing can depend on it.
    pub discarded: bool,
}

/// A clock that a thread has acquired from what it read at a place of the kernel.
#[derive(Clone)]
pub struct UncertainClock {
    pub read: Read,
    pub clock: Arc<Clock>,
}

/// What an acquiring read has found.
#[derive(Clone)]
pub(super) struct Polled {
    at: u64,
    place: Place,
    scope: Scope,
    /// The first and the last release at the location, and their number.
    ends: Option<[Arc<Clock>; 2]>,
    count: usize,
    /// Whether it was read twice: then it is certain that the thread has read it.
    twice: bool,
}

impl Polled {
    pub(super) fn new(at: u64, place: Place, scope: Scope, releases: &[Release]) -> Polled {
        let ends = releases.first().zip(releases.last()).map(|(a, b)| [a.clock.clone(), b.clock.clone()]);
        Polled { at, place, scope, ends, count: releases.len(), twice: false }
    }

    fn is(&self, other: &Polled) -> bool {
        let [mine, theirs] = [self, other].map(|p| (p.at, p.place.0, p.place.1.span.start, p.scope, p.count));
        let same = |(a, b): (&[Arc<Clock>; 2], &[Arc<Clock>; 2])| a.iter().zip(b).all(|(a, b)| Arc::ptr_eq(a, b));
        mine == theirs && self.ends.as_ref().zip(other.ends.as_ref()).is_some_and(same)
    }
}

impl Thread {
    /// Joins a clock; if it comes from a read at one place of the kernel, the thread may have read that by chance.
    pub(super) fn join(&mut self, clock: &Arc<Clock>, read: Option<Read>) {
        match read {
            Some(read) => {
                let certain = self.certain.get_or_insert_with(|| self.clock.clone());
                let at = |c: &UncertainClock| (c.read.place.0, c.read.place.1.span.start);
                let old = self.uncertain_clocks.iter().position(|c| at(c) == (read.place.0, read.place.1.span.start));
                match old.map(|old| &mut self.uncertain_clocks[old]) {
                    // One value may show several releases.
                    Some(chance) if chance.read.number == read.number || read.discarded => {
                        Clock::join_into(&mut chance.clock, clock);
                    }
                    _ => {
                        // What is read at a place depends on what was read there before, such as in a loop.
                        if let Some(old) = old.or((self.uncertain_clocks.len() >= MAX_UNCERTAIN).then_some(0)) {
                            let old = self.uncertain_clocks.remove(old);
                            if !old.read.discarded {
                                Clock::join_into(certain, &old.clock);
                            }
                        }
                        self.uncertain_clocks.push(UncertainClock { read, clock: clock.clone() });
                    }
                }
            }
            None => self.certain.iter_mut().for_each(|certain| Clock::join_into(certain, clock)),
        }
        Clock::join_into(&mut self.clock, clock);
    }

    /// What others learn from it at a barrier: not what it has only read and discarded. `None` if that is all it knows.
    pub(super) fn passes_on(&self) -> Option<Arc<Clock>> {
        let certain = self.certain.as_ref().filter(|_| self.uncertain_clocks.iter().any(|c| c.read.discarded))?;
        let mut clock = (**certain).clone();
        self.uncertain_clocks.iter().filter(|c| !c.read.discarded).for_each(|c| clock.join(&c.clock));
        Some(Arc::new(clock))
    }

    /// All that it knows is certain.
    pub(super) fn settle(&mut self) {
        self.uncertain_clocks.clear();
        self.certain = None;
    }
}

impl CtaThreads {
    /// Whether a lane that waits finds what it has found twice before: it learns nothing.
    pub(super) fn polls_again(&mut self, (warp, lane): (u32, u32), now: Polled) -> bool {
        let before = self.look(warp, lane).polled.as_ref().filter(|before| before.is(&now));
        match before.map(|before| before.twice) {
            Some(true) => return true,
            again => self.thread(warp, lane).polled = Some(Polled { twice: again.is_some(), ..now }),
        }
        false
    }

    pub(super) fn acquire_clock(&mut self, warp: u32, lane: u32, clock: &Arc<Clock>, read: Option<Read>) {
        self.thread(warp, lane).join(clock, read);
        if read.is_some() {
            self.uncertain[warp as usize] |= 1 << lane;
            self.any_uncertain = true;
        }
    }

    /// The lanes of a warp that may know of others by chance.
    #[inline]
    pub fn uncertain(&self, warp: u32) -> u32 {
        self.uncertain[warp as usize]
    }

    /// Whether lanes of any warp did at some time.
    pub fn any_uncertain(&self) -> bool {
        self.any_uncertain
    }

    /// What a lane knows, what of that for certain, and what it has read by chance.
    pub fn uncertain_clocks(&self, warp: u32, lane: u32) -> Option<(&Clock, &Clock, &[UncertainClock])> {
        let Thread { clock, certain, uncertain_clocks, .. } = self.look(warp, lane);
        Some((clock, certain.as_ref()?, uncertain_clocks))
    }

    /// Lanes have exchanged what they know: it counts as certain.
    pub(super) fn settle(&mut self, who: WarpMask) {
        for lane in lanes(self.uncertain[who.warp as usize] & who.lanes) {
            self.thread(who.warp, lane).settle();
        }
        self.uncertain[who.warp as usize] &= !who.lanes;
    }
}
