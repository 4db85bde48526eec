//! Launches that wait in vain: CTAs that do the same again and again.

use std::collections::HashSet;

/// Finds out that a CTA does the same again and again: then it waits for what it cannot bring about itself.
#[derive(Default)]
pub struct Watch {
    /// Rounds since something came about.
    idle: u32,
    /// What the CTA looked like since.
    seen: HashSet<u64>,
    /// The last look found nothing new.
    recurred: bool,
    /// Some look since the last report found something new: memory that others write let it get on.
    moved: bool,
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
        self.recurred = known;
        self.moved |= !known;
        known
    }

    /// Whether all looks since the last report found it do the same again and again, and nothing has come about since.
    pub fn report(&mut self) -> bool {
        !std::mem::take(&mut self.moved) && self.recurred
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_gets_on_now_and_then_does_not_wait() {
        let mut watch = Watch::default();
        for state in 0..5 {
            // It polls in a loop of two states until others let it get on.
            for _ in 0..3 {
                watch.recurs(2 * state);
                watch.recurs(2 * state + 1);
            }
            assert!(!watch.report(), "it has got on since the last report");
            assert!(watch.recurs(2 * state));
            assert!(watch.report(), "it polls");
        }
        watch.recurs(0);
        assert!(watch.report());
    }

    #[test]
    fn news_forget_what_was_seen() {
        let mut watch = Watch::default();
        while !watch.is_due() {}
        watch.recurs(1);
        assert!(watch.recurs(1) && !watch.report() && watch.report());
        watch.news();
        assert!(!watch.report() && !watch.recurs(1) && !watch.report());
    }
}
