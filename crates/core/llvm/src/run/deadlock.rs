//! Launches that wait in vain: CTAs that do the same again and again.

use std::collections::HashSet;

/// Finds out that a CTA does the same again and again: then it waits for what it cannot bring about itself.
#[derive(Default)]
pub struct Watch {
    /// Rounds since something came about.
    idle: u32,
    /// What the CTA looked like since.
    seen: HashSet<u64>,
    /// One of them has come back since.
    recurred: bool,
}

/// Rounds without news before a CTA is looked at, and from one look to the next.
const IDLE_ROUNDS: u32 = 64;
const LOOKS: u32 = 16;
/// States that are remembered: those of longer cycles go undetected.
const MOST_SEEN: usize = 1 << 12;

impl Watch {
    /// Something has come about.
    pub fn news(&mut self) {
        if self.idle > 0 {
            *self = Watch::default();
        }
    }

    /// A round is over; whether it is time to look at the CTA.
    pub fn is_due(&mut self) -> bool {
        self.idle += 1;
        self.idle >= IDLE_ROUNDS && self.idle.is_multiple_of(LOOKS)
    }

    /// Whether the CTA has looked like that before.
    pub fn recurs(&mut self, state: u64) -> bool {
        if self.seen.len() >= MOST_SEEN {
            self.seen.clear();
        }
        let known = !self.seen.insert(state);
        self.recurred |= known;
        known
    }

    /// Whether it has been found to do the same again and again, and nothing has come about since.
    pub fn waits(&self) -> bool {
        self.recurred
    }
}
