//! What threads know of others by reads that may have found something by chance ([`crate::incidental`]).

use super::{CtaThreads, Thread, Who, lanes};
use crate::{clock::Clock, site::Place};
use std::sync::Arc;

/// Limit of places whose reads are told apart, per thread.
const MOST_CHANCES: usize = 4;

/// One execution of a read at a place of the kernel.
#[derive(Clone, Copy)]
pub struct Read {
    pub place: Place,
    /// Tells it from other executions.
    pub number: u64,
    /// No instruction uses the value, so nothing can depend on it.
    pub vain: bool,
}

/// A clock that a thread has acquired from what it read at a place of the kernel.
#[derive(Clone)]
pub struct Chance {
    pub read: Read,
    pub clock: Arc<Clock>,
}

impl Thread {
    /// Joins a clock; if it comes from a read at one place of the kernel, the thread may have read that by chance.
    pub(super) fn join(&mut self, clock: &Arc<Clock>, read: Option<Read>) {
        match read {
            Some(read) => {
                let sure = self.sure.get_or_insert_with(|| self.clock.clone());
                let at = |c: &Chance| (c.read.place.0, c.read.place.1.span.start);
                let old = self.chances.iter().position(|c| at(c) == (read.place.0, read.place.1.span.start));
                match old.map(|old| &mut self.chances[old]) {
                    // One value may tell of several releases.
                    Some(chance) if chance.read.number == read.number || read.vain => {
                        Arc::make_mut(&mut chance.clock).join(clock);
                    }
                    _ => {
                        // What is read at a place hinges on what was read there before, such as in a loop.
                        if let Some(old) = old.or((self.chances.len() >= MOST_CHANCES).then_some(0)) {
                            let old = self.chances.remove(old);
                            if !old.read.vain {
                                Arc::make_mut(sure).join(&old.clock);
                            }
                        }
                        self.chances.push(Chance { read, clock: clock.clone() });
                    }
                }
            }
            None => self.sure.iter_mut().for_each(|sure| Arc::make_mut(sure).join(clock)),
        }
        Arc::make_mut(&mut self.clock).join(clock);
    }

    /// What others learn from it at a barrier: not what it has only read in vain. `None` if that is all it knows.
    pub(super) fn passes_on(&self) -> Option<Arc<Clock>> {
        let sure = self.sure.as_ref().filter(|_| self.chances.iter().any(|c| c.read.vain))?;
        let mut clock = (**sure).clone();
        self.chances.iter().filter(|c| !c.read.vain).for_each(|c| clock.join(&c.clock));
        Some(Arc::new(clock))
    }

    /// All that it knows is sure.
    pub(super) fn settle(&mut self) {
        self.chances.clear();
        self.sure = None;
    }
}

impl CtaThreads {
    pub(super) fn learn(&mut self, warp: u32, lane: u32, clock: &Arc<Clock>, read: Option<Read>) {
        self.thread(warp, lane).join(clock, read);
        if read.is_some() {
            self.loose[warp as usize] |= 1 << lane;
            self.any_loose = true;
        }
    }

    /// The lanes of a warp that may know of others by chance.
    #[inline]
    pub fn loose(&self, warp: u32) -> u32 {
        self.loose[warp as usize]
    }

    /// Whether lanes of any warp did at some time.
    pub fn any_loose(&self) -> bool {
        self.any_loose
    }

    /// What a lane knows, what of that for sure, and what it has read by chance.
    pub fn chances(&self, warp: u32, lane: u32) -> Option<(&Clock, &Clock, &[Chance])> {
        let Thread { clock, sure, chances, .. } = self.look(warp, lane);
        Some((clock, sure.as_ref()?, chances))
    }

    /// Lanes have told each other what they know: it counts as sure.
    pub(super) fn settle(&mut self, who: Who) {
        for lane in lanes(self.loose[who.warp as usize] & who.lanes) {
            self.thread(who.warp, lane).settle();
        }
        self.loose[who.warp as usize] &= !who.lanes;
    }
}
