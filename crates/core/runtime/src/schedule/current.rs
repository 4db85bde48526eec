//! The code that a worker runs, and the sizes of the ranges of CTAs that it runs at once.

use super::{Ended, Shared, guarded};
use crate::tiers::Tier;
use margay_exec::{Batch, Kernel, Stop};
use std::{
    sync::{Arc, atomic::Ordering::Relaxed},
    time::{Duration, Instant},
};

/// Limit of the first range of a batch in CTAs, and how long it should take: the worker cannot switch to better code meanwhile.
const FIRST_RANGE: u64 = 64;
const FIRST: Duration = Duration::from_micros(500);
/// Limit of the first range of one worker if the whole grid took less than [`SHORT`] before.
const FIRST_RANGE_ALONE: u64 = 1024;
/// Shorter ranges are followed by longer ones.
const SHORT: Duration = Duration::from_micros(200);
/// Longer ranges are followed by shorter ones.
const LONG: Duration = Duration::from_millis(2);
/// Amount of work for which another thread is woken.
const WORTH_WAKING: Duration = Duration::from_micros(20);

/// The code that a worker runs.
pub(super) struct CurrentCode<'a> {
    pub kernel: Arc<dyn Kernel>,
    pub tier: Tier,
    pub version: u32,
    /// Runs ranges of CTAs, if the code does.
    pub batch: Option<Box<dyn Batch + 'a>>,
    /// Size of the next range in CTAs.
    size: u64,
    /// When the last range ended, at first when this code was chosen: clocks are read once a range, since ranges may be short.
    now: Instant,
}

impl<'a> CurrentCode<'a> {
    /// The best code at the moment, which is `now`.
    pub fn new(shared: &'a Shared<'a>, now: Instant) -> Result<CurrentCode<'a>, Stop> {
        let version = shared.code.version();
        let (kernel, tier) = shared.code.best();
        let batch = match kernel.by_range() {
            true => kernel.clone().batch(shared.grid, shared)?,
            false => None,
        };
        let size = match shared.workers == 1 && known_cost(shared) < SHORT {
            true => shared.units().clamp(1, FIRST_RANGE_ALONE),
            false => (shared.units() / (shared.workers as u64 * 4)).clamp(1, first_range(shared)),
        };
        Ok(CurrentCode { kernel, tier, version, batch, size, now })
    }

    /// Whether a grid that runs in ranges is too small to be worth waking other threads: probably as cheap as before,
    /// which the first range confirms.
    pub fn suffices_alone(&mut self, shared: &Shared<'_>) -> Result<bool, Ended> {
        if self.batch.is_none() || known_cost(shared) >= WORTH_WAKING {
            return Ok(false);
        }
        let (start, size) = (self.now, self.size);
        if !self.next_range(shared, 0, 1)? {
            return Ok(true);
        }
        let left = shared.left();
        self.size = size;
        Ok((self.now - start).saturating_mul((left / size).min(1 << 16) as u32) < WORTH_WAKING)
    }

    /// Runs the next range as worker `index` of `workers`; returns whether there was one. Ranges grow while they are
    /// short, but stay a fraction of the remaining units.
    pub fn next_range(&mut self, shared: &Shared<'_>, index: usize, workers: usize) -> Result<bool, Ended> {
        let Some(batch) = &mut self.batch else { return Ok(false) };
        let range = shared.grid.units.take(self.size);
        if range.is_empty() || shared.is_over()? {
            return Ok(false);
        }
        let (first, ctas) = (range.start, range.end - range.start);
        guarded(|| batch.run(range))?;
        let started = std::mem::replace(&mut self.now, Instant::now());
        let took = self.now - started;
        shared.ran(self.tier, ctas, took);
        shared.span(index, first, ctas, started);
        shared.units_done(ctas);
        // Compiled code charges for its loops; every warp has executed an instruction.
        shared.charge(ctas * shared.warps_of_cta())?;
        let left = shared.left();
        let fair = if workers == 1 { left } else { left / (2 * workers as u64) };
        let grown = if took < SHORT { self.size * 2 } else { self.size };
        self.size = grown.min(fair).max(1);
        if took > LONG {
            self.size = (self.size / 2).max(1);
        }
        Ok(true)
    }
}

/// The maximum number of CTAs of a first range: one if nothing is known of their cost.
fn first_range(shared: &Shared<'_>) -> u64 {
    let each = shared.schedule.cost.0.load(Relaxed);
    (FIRST.as_nanos() as u64).checked_div(each).unwrap_or(FIRST_RANGE).clamp(1, FIRST_RANGE)
}

/// What the grid takes on one thread if its CTAs cost as much as those of the kernel's last launch.
fn known_cost(shared: &Shared<'_>) -> Duration {
    Duration::from_nanos(shared.schedule.cost.0.load(Relaxed).saturating_mul(shared.units()))
}
