//! Tracks which bytes of device memory were ever written, for the sanitizer ([`super::Memory::track_writes`]).

use parking_lot::RwLock;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
};

/// A bitmap with one bit per byte of an allocation.
#[derive(Debug)]
pub struct Written {
    base: u64,
    len: u64,
    bits: Box<[AtomicU64]>,
    /// Where fills and copies by the host have ended that did not end at a multiple of [`WORD`].
    ends: RwLock<BTreeSet<u64>>,
}

/// Elements of at least this size have their ends at its multiples.
const WORD: u64 = 4;
/// The ends that are remembered.
const MAX_ENDS: usize = 1024;

impl Written {
    fn new(base: u64, len: u64) -> Written {
        let words = (0..len.div_ceil(64)).map(|_| AtomicU64::new(0));
        Written { base, len, bits: words.collect(), ends: RwLock::default() }
    }

    /// Whether an address lies inside.
    pub fn contains(&self, address: u64) -> bool {
        address.wrapping_sub(self.base) < self.len
    }

    /// The words of the bitmap that cover `size` bytes at an address, each with a mask.
    fn words(&self, address: u64, size: u64) -> impl Iterator<Item = (&AtomicU64, u64)> {
        let start = address.saturating_sub(self.base).min(self.len);
        let end = address.saturating_add(size).saturating_sub(self.base).min(self.len);
        (start / 64..end.div_ceil(64)).filter_map(move |word| {
            let (low, high) = (start.max(word * 64) - word * 64, end.min(word * 64 + 64) - word * 64);
            let mask = (u64::MAX >> (64 - (high - low).clamp(1, 64))) << low;
            (low < high).then(|| (&self.bits[word as usize], mask))
        })
    }

    /// Marks bytes as written.
    pub fn mark(&self, address: u64, size: u64) {
        for (word, mask) in self.words(address, size) {
            if word.load(Relaxed) & mask != mask {
                word.fetch_or(mask, Relaxed);
            }
        }
    }

    /// Marks bytes as written by a fill or copy of the host.
    fn mark_until_end(&self, address: u64, size: u64) {
        self.mark(address, size);
        let end = address.saturating_add(size);
        if !end.is_multiple_of(WORD) && self.contains(end) {
            let mut ends = self.ends.write();
            if ends.len() < MAX_ENDS {
                ends.insert(end);
            }
        }
    }

    /// Whether a fill or copy by the host has ended within some bytes, and nobody has written those behind its end. That cannot be
    /// the padding of a structure, which the host writes as a whole.
    pub fn is_cut(&self, address: u64, size: u64) -> bool {
        let ends = self.ends.read();
        let mut within = ends.range(address.saturating_add(size.min(1))..address.saturating_add(size));
        within.any(|end| self.is_whole(address, end - address) && self.is_blank(*end, address + size - end))
    }

    /// Whether none of the bytes was ever written.
    pub fn is_blank(&self, address: u64, size: u64) -> bool {
        self.words(address, size).all(|(word, mask)| word.load(Relaxed) & mask == 0)
    }

    /// Whether all of the bytes were written.
    pub fn is_whole(&self, address: u64, size: u64) -> bool {
        self.words(address, size).all(|(word, mask)| word.load(Relaxed) & mask == mask)
    }
}

/// The tracked allocations, by address.
#[derive(Debug, Default)]
pub struct Writes {
    on: AtomicBool,
    maps: RwLock<BTreeMap<u64, Arc<Written>>>,
}

impl Writes {
    /// Starts tracking new allocations.
    pub(super) fn start(&self) {
        self.on.store(true, Relaxed);
    }

    /// Whether tracking is on.
    pub fn is_on(&self) -> bool {
        self.on.load(Relaxed)
    }

    pub(super) fn allocated(&self, base: u64, len: u64) {
        if self.is_on() {
            let map = Arc::new(Written::new(base, len));
            self.maps.write().insert(base, map);
        }
    }

    pub(super) fn freed(&self, base: u64) {
        if self.is_on() {
            self.maps.write().remove(&base);
        }
    }

    /// The bitmap of the allocation that contains an address; `None` if it is not tracked.
    pub fn find(&self, address: u64) -> Option<Arc<Written>> {
        if !self.is_on() {
            return None;
        }
        let maps = self.maps.read();
        maps.range(..=address).next_back().map(|(_, m)| m).filter(|m| m.contains(address)).cloned()
    }

    /// Marks bytes as written by the host or a kernel.
    pub fn mark(&self, address: u64, size: u64) {
        if let Some(map) = self.find(address) {
            map.mark(address, size);
        }
    }

    /// Marks bytes as written by a fill or copy of the host.
    pub(super) fn mark_until_end(&self, address: u64, size: u64) {
        if let Some(map) = self.find(address) {
            map.mark_until_end(address, size);
        }
    }

    /// A copy within the device: bytes unwritten in the source remain unwritten in the target.
    pub(super) fn copy(&self, to: u64, from: u64, size: u64) {
        let Some(target) = self.find(to) else { return };
        match self.find(from) {
            Some(source) if !source.is_whole(from, size) => {
                (0..size).filter(|i| source.is_whole(from + i, 1)).for_each(|i| target.mark(to + i, 1));
            }
            _ => target.mark(to, size),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_marked_one_by_one() {
        let w = Written::new(1000, 200);
        assert!(w.is_blank(1000, 200));
        w.mark(1060, 70);
        assert!(w.is_blank(1000, 60) && w.is_whole(1060, 70) && w.is_blank(1130, 70));
        assert!(!w.is_blank(1059, 2) && !w.is_whole(1059, 2));
        w.mark(1199, 100);
        assert!(w.is_whole(1199, 1) && w.is_blank(1130, 69));
    }

    #[test]
    fn fills_that_end_within_an_element_are_remembered_until_the_rest_is_written() {
        let w = Written::new(4096, 64);
        w.mark_until_end(4096, 7);
        assert!(w.is_cut(4100, 4) && w.is_cut(4096, 8) && !w.is_cut(4096, 4) && !w.is_cut(4104, 4));
        w.mark(4103, 1);
        assert!(!w.is_cut(4100, 4));
        w.mark(4108, 1);
        assert!(!w.is_cut(4108, 4), "what a kernel has written may be a member before padding");
        w.mark_until_end(4112, 8);
        assert!(!w.is_cut(4116, 8), "the next element is unwritten as a whole");
    }
}
