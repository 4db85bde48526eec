//! The units of a grid, which are its clusters (single CTAs without clusters), and how many of them have been handed out: to workers of
//! the scheduler, which run them, or to running CTAs that cancel them (`clusterlaunchcontrol.try_cancel`). Both take them from one
//! counter, so no unit is both run and canceled.

use crate::{LaunchShape, coordinates};
use std::{
    ops::Range,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

/// The units of a grid.
#[derive(Debug)]
pub struct Units {
    /// CTAs of a unit in x, y, z.
    size: [u32; 3],
    /// Number of units in x, y, z.
    counts: [u32; 3],
    all: u64,
    next: AtomicU64,
    canceled: AtomicU64,
    /// Those of cooperative grids all start at once, so there is none to cancel.
    cancelable: bool,
}

impl Units {
    /// The units of a grid of this shape, all of them still to be handed out.
    pub fn new(shape: &LaunchShape) -> Units {
        let size = shape.cluster_size();
        let counts: [u32; 3] = std::array::from_fn(|i| shape.grid[i] / size[i]);
        let all = counts.iter().map(|n| u64::from(*n)).product();
        let cancelable = !shape.cooperative;
        Units { size, counts, all, next: AtomicU64::new(0), canceled: AtomicU64::new(0), cancelable }
    }

    /// The number of units.
    pub fn all(&self) -> u64 {
        self.all
    }

    /// The number of units that have not been handed out.
    pub fn left(&self) -> u64 {
        self.all.saturating_sub(self.next.load(Relaxed))
    }

    /// The number of units that were canceled.
    pub fn canceled(&self) -> u64 {
        self.canceled.load(Relaxed)
    }

    /// CTAs of a unit.
    pub fn ctas(&self) -> u64 {
        u64::from(self.size.iter().product::<u32>())
    }

    /// Hands out the next units to run, at most `most`.
    pub fn take(&self, most: u64) -> Range<u64> {
        // A counter of 64 bits does not overflow by workers that ask when none is left: each does so at most once for every unit that it has started.
        let first = self.next.fetch_add(most, Relaxed).min(self.all);
        first..first.saturating_add(most).min(self.all)
    }

    /// Cancels the next unit, which will not run; returns the coordinates of its first CTA, or `None` if all units have been handed out.
    pub fn cancel(&self) -> Option<[u32; 3]> {
        let next = |n| (self.cancelable && n < self.all).then_some(n + 1);
        let index = self.next.fetch_update(Relaxed, Relaxed, next).ok()?;
        self.canceled.fetch_add(1, Relaxed);
        Some(self.first_cta(index))
    }

    /// The coordinates of the first CTA of a unit.
    pub fn first_cta(&self, index: u64) -> [u32; 3] {
        let at = coordinates(index, self.counts);
        std::array::from_fn(|i| at[i] * self.size[i])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(cooperative: bool) -> LaunchShape {
        LaunchShape { cluster: Some([2, 1, 1]), cooperative, ..LaunchShape::new([4, 3, 1], [32, 1, 1]) }
    }

    #[test]
    fn a_unit_is_run_or_canceled() {
        let units = Units::new(&shape(false));
        assert_eq!((units.all(), units.ctas()), (6, 2));
        assert_eq!(units.take(2), 0..2);
        assert_eq!(units.cancel(), Some([0, 1, 0]));
        assert_eq!(units.take(1), 3..4);
        assert_eq!(units.cancel(), Some([0, 2, 0]));
        assert_eq!((units.left(), units.canceled()), (1, 2));
        assert_eq!(units.take(9), 5..6);
        assert_eq!((units.cancel(), units.take(1)), (None, 6..6));
        assert_eq!((units.left(), units.canceled()), (0, 2));
    }

    #[test]
    fn nothing_of_a_cooperative_grid_is_canceled() {
        let units = Units::new(&shape(true));
        assert_eq!((units.cancel(), units.left()), (None, 6));
    }
}
