//! How a CTA uses its shared memory between two barriers, line by line: kept by the observer, and by compiled code, which need not
//! report what it does to lines that are used in one way only.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

/// Bytes of a line.
pub const LINE_BYTES: u64 = 128;

/// How a line was used last: the number of the interval between barriers in the upper half, the way in the lower one, so that uses in earlier
/// intervals are less.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct LineUse(pub u64);

impl LineUse {
    /// Only loads. No way is less.
    pub const READ: u32 = 0;
    /// One row of lanes has stored to it.
    pub const WRITTEN: u32 = 1;

    /// A use in an interval.
    #[inline(always)]
    pub const fn new(interval: u32, way: u32) -> LineUse {
        LineUse((interval as u64) << 32 | way as u64)
    }

    /// The interval.
    #[inline(always)]
    pub const fn interval(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// The way.
    #[inline(always)]
    pub const fn way(self) -> u32 {
        self.0 as u32
    }
}

/// The uses of the lines of a CTA's shared memory. One thread accesses them at a time.
#[derive(Clone, Debug)]
pub struct LineUses {
    /// The number of the first line.
    pub first: u64,
    /// By line.
    pub lines: Arc<[AtomicU64]>,
    /// The current interval, from 1 on.
    pub interval: u32,
}

impl LineUses {
    /// Of shared memory that nobody has used.
    pub fn new((base, size): (u64, u64)) -> LineUses {
        let first = base / LINE_BYTES;
        let count = (base + size).div_ceil(LINE_BYTES) - first;
        LineUses { first, lines: (0..count).map(|_| AtomicU64::new(0)).collect(), interval: 1 }
    }

    /// The use of a line, by its index.
    #[inline(always)]
    pub fn get(&self, line: usize) -> Option<LineUse> {
        self.lines.get(line).map(|line| LineUse(line.load(Relaxed)))
    }

    /// Changes the use of a line, by its index.
    #[inline(always)]
    pub fn set(&self, line: usize, to: LineUse) {
        if let Some(line) = self.lines.get(line) {
            line.store(to.0, Relaxed);
        }
    }
}
