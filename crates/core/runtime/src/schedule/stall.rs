//! Detection of stalls: a worker's units have only polled memory for too long.

use std::time::{Duration, Instant};

/// Slices of each unit at the start, which are too few to recognize a repeated state.
const FIRST_SLICES: usize = 8;
/// Slices of each unit after which the worker decides whether their states repeat.
const LOOK_SLICES: usize = 64;

/// A period in which all units of a worker have only polled.
pub(super) struct Stall {
    epoch: u64,
    /// Every unit has repeated its state in all slices since the second instant.
    pub repeats: bool,
    /// Slices since then.
    slices: usize,
    /// When the period began, and when the states were last compared from the start.
    since: (Instant, Instant),
}

/// How long a stall may last.
#[derive(Clone, Copy)]
pub(super) struct StallLimits {
    /// How long units may repeat their state; twenty times as long if it changes.
    pub stall: Duration,
    /// The launch has a limit of instructions, which ends units whose state changes.
    pub limited: bool,
}

impl Default for Stall {
    fn default() -> Stall {
        let now = Instant::now();
        Stall { epoch: 0, repeats: true, slices: 0, since: (now, now) }
    }
}

impl Stall {
    /// A unit has only polled in a slice, and its state repeats or not; returns whether all `units` of the worker have stalled for too
    /// long.
    pub fn waited(&mut self, epoch: u64, repeats: bool, units: usize, limits: StallLimits) -> bool {
        if epoch != self.epoch {
            *self = Stall { epoch, ..Stall::default() };
        }
        self.slices += 1;
        if self.slices > LOOK_SLICES * units && !self.repeats {
            // By now the states may repeat.
            let since = (self.since.0, Instant::now());
            *self = Stall { epoch, slices: FIRST_SLICES * units, since, ..Stall::default() };
        }
        self.repeats &= repeats || self.slices <= FIRST_SLICES * units;
        let (all, last) = (self.since.0.elapsed(), self.since.1.elapsed());
        let StallLimits { stall, limited } = limits;
        let repeats = self.repeats && self.slices > LOOK_SLICES * units && last > stall;
        repeats || !limited && self.slices > FIRST_SLICES * units && all > stall * 20
    }
}
