//! How a worker tells that its units wait in vain.

use std::time::{Duration, Instant};

/// Slices of each unit in which it cannot know yet whether its state repeats.
const FIRST_SLICES: usize = 8;
/// Slices of each unit after which one judges.
const LOOK_SLICES: usize = 64;

/// For how long a worker has seen no progress.
pub(super) struct Idle {
    epoch: u64,
    /// Every unit repeats its state, as far as one has looked since the second instant.
    pub certain: bool,
    /// Slices since then.
    slices: usize,
    /// When it began, and when the units were looked at anew.
    since: (Instant, Instant),
}

/// When waiting counts as waiting in vain.
#[derive(Clone, Copy)]
pub(super) struct Patience {
    /// How long units may repeat their state; twenty times as long if it changes.
    pub stall: Duration,
    /// The launch has a limit of instructions, which ends units whose state changes.
    pub limited: bool,
}

impl Default for Idle {
    fn default() -> Idle {
        let now = Instant::now();
        Idle { epoch: 0, certain: true, slices: 0, since: (now, now) }
    }
}

impl Idle {
    /// A unit has only polled, repeating its state for `certain`; returns whether all `units` of the worker have, for too
    /// long.
    pub fn waited(&mut self, epoch: u64, certain: bool, units: usize, patience: Patience) -> bool {
        if epoch != self.epoch {
            *self = Idle { epoch, ..Idle::default() };
        }
        self.slices += 1;
        if self.slices > LOOK_SLICES * units && !self.certain {
            // They may repeat their state by now.
            let since = (self.since.0, Instant::now());
            *self = Idle { epoch, slices: FIRST_SLICES * units, since, ..Idle::default() };
        }
        self.certain &= certain || self.slices <= FIRST_SLICES * units;
        let (all, last) = (self.since.0.elapsed(), self.since.1.elapsed());
        let Patience { stall, limited } = patience;
        let repeats = self.certain && self.slices > LOOK_SLICES * units && last > stall;
        repeats || !limited && self.slices > FIRST_SLICES * units && all > stall * 20
    }
}
