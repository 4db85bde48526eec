//! Detection of deadlocks among polling warps: a CTA that returns to an earlier state waits for other CTAs.

use std::collections::HashSet;

/// Records hashes of the states of a cluster to find that it repeats one.
#[derive(Default)]
pub struct Watch {
    /// Rounds since the last visible progress.
    idle: u32,
    /// Hashes of the states since then.
    seen: HashSet<u64>,
    /// The last state recorded was a repeated one.
    repeated: bool,
    /// Some state since the last report was new: memory written by others allowed progress.
    moved: bool,
}

/// Rounds without progress before a state is recorded, and between two records.
const IDLE_ROUNDS: u32 = 64;
const LOOKS: u32 = 16;
/// States that are kept; longer cycles go undetected.
const MAX_SEEN: usize = 1 << 12;

impl Watch {
    /// Notes visible progress and forgets the states recorded.
    pub fn progress(&mut self) {
        if self.idle > 0 {
            *self = Watch::default();
        }
    }

    /// Counts a round; returns whether the state should be recorded now.
    pub fn is_due(&mut self) -> bool {
        self.idle += 1;
        self.idle >= IDLE_ROUNDS && self.idle.is_multiple_of(LOOKS)
    }

    /// Records a state; returns whether it was recorded before.
    pub fn repeats(&mut self, state: u64) -> bool {
        if self.seen.len() >= MAX_SEEN {
            self.seen.clear();
        }
        let repeated = !self.seen.insert(state);
        self.repeated = repeated;
        self.moved |= !repeated;
        repeated
    }

    /// Whether every state since the last report was a repeated one.
    pub fn report(&mut self) -> bool {
        !std::mem::take(&mut self.moved) && self.repeated
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn occasional_progress_is_not_a_deadlock() {
        let mut watch = Watch::default();
        for state in 0..5 {
            // Polls in a loop of two states until another thread's write allows progress.
            for _ in 0..3 {
                watch.repeats(2 * state);
                watch.repeats(2 * state + 1);
            }
            assert!(!watch.report(), "it has got on since the last report");
            assert!(watch.repeats(2 * state));
            assert!(watch.report(), "it polls");
        }
        watch.repeats(0);
        assert!(watch.report());
    }

    #[test]
    fn progress_clears_the_recorded_states() {
        let mut watch = Watch::default();
        while !watch.is_due() {}
        watch.repeats(1);
        assert!(watch.repeats(1) && !watch.report() && watch.report());
        watch.progress();
        assert!(!watch.report() && !watch.repeats(1) && !watch.report());
    }
}
