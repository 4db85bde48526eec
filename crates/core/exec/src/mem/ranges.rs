//! Valid address ranges cached by compiled code: one per access site.

use super::RED_ZONE;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A table of ranges. Generated code of one thread reads it (by plain 64-bit loads, which are atomic on every host);
/// that thread updates it between accesses, and freeing memory empties its ranges.
///
/// An entry is the lowest address at which an access may start, and the number of such addresses. Other threads only
/// ever set that number to zero, so no mixture of two entries is ever valid.
#[derive(Debug)]
pub struct Ranges(Box<[[AtomicU64; 2]]>);

impl Ranges {
    /// A table of `count` empty ranges.
    pub fn new(count: usize) -> Ranges {
        Ranges((0..count).map(|_| Default::default()).collect())
    }

    /// Address of the table, for generated code.
    pub fn address(&self) -> u64 {
        self.0.as_ptr().expose_provenance() as u64
    }

    /// Stores a range.
    pub fn set(&self, at: usize, low: u64, places: u64) {
        let [first, count] = &self.0[at];
        count.store(0, Relaxed);
        first.store(low, Relaxed);
        count.store(places, Relaxed);
    }

    /// A range as it was stored.
    pub fn get(&self, at: usize) -> (u64, u64) {
        (self.0[at][0].load(Relaxed), self.places(at))
    }

    /// The number of addresses at which an access may start.
    pub fn places(&self, at: usize) -> u64 {
        self.0[at][1].load(Relaxed)
    }

    /// Empties a range.
    pub fn empty(&self, at: usize) {
        self.0[at][1].store(0, Relaxed);
    }

    /// Empties all ranges.
    pub fn clear(&self) {
        self.0.iter().for_each(|[_, count]| count.store(0, Relaxed));
    }

    /// Empties the ranges in the allocation that begins at `base`: they start there or at the next aligned address.
    pub fn forget(&self, base: u64) {
        for [low, count] in &self.0 {
            if low.load(Relaxed).wrapping_sub(base) < RED_ZONE as u64 {
                count.store(0, Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_in_a_freed_allocation_are_forgotten() {
        let ranges = Ranges::new(3);
        let all = || [0, 1, 2].map(|at| ranges.places(at));
        ranges.set(0, 0x1000, 8);
        ranges.set(1, 0x1010, 4);
        ranges.set(2, 0x2000, 4);
        ranges.forget(0x1000);
        assert_eq!(all(), [0, 0, 4]);
        ranges.forget(0x2010);
        assert_eq!(all(), [0, 0, 4], "another allocation");
        ranges.clear();
        assert_eq!(all(), [0, 0, 0]);
    }
}
