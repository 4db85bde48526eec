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
    /// Only loads, by any lanes: the weakest use.
    pub const READ: u32 = 0;
    /// Set in ways that are not only loads.
    pub const CHANGED: u32 = 1;
    /// One store.
    pub const WRITTEN: u32 = LineUse::other(1);

    /// Accesses of another kind than loads and rows of lanes, by number: no two of them are of the same threads alone.
    pub const fn other(number: u32) -> u32 {
        number << 3 | LineUse::CHANGED
    }

    /// Accesses by lanes of one warp, each to words of its own, which are parts of a row with 4, 8 or 16 bytes per lane. In that row, `origin` is
    /// the address of lane 0, active or not. Only loads, unless it is [`LineUse::CHANGED`] as well.
    #[inline(always)]
    pub const fn own(origin: u64, warp: u32, bytes: u32) -> u32 {
        (origin << LineUse::ORIGIN) as u32 & !0xff | LineUse::threads(bytes) | warp << LineUse::WARP
    }

    /// Where the origin and the warp of [`LineUse::own`] begin; the origin is a multiple of 4.
    pub const ORIGIN: u32 = 6;
    /// See [`LineUse::ORIGIN`].
    pub const WARP: u32 = 3;

    /// Distinguishes [`LineUse::own`] from other uses, and rows with different elements.
    pub const fn threads(bytes: u32) -> u32 {
        (bytes.trailing_zeros() - 1) << 1
    }

    /// Whether lanes with that many bytes each, and that many from one to the next, have words of their own.
    #[inline(always)]
    pub const fn are_apart(stride: u64, bytes: u32) -> bool {
        stride == bytes as u64 && matches!(bytes, 4 | 8 | 16)
    }

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
