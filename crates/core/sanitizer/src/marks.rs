//! Which bytes of memory were written.

use crate::hash::Map;
use std::hash::BuildHasherDefault;

/// Size of a page of the bitmap, in bytes of device memory.
const PAGE: u64 = 4096;
/// Pages that are found at once.
const RECENT: usize = 1024;

/// A set of bytes: a bitmap in pages allocated on demand.
#[derive(Default)]
pub struct Marks {
    pages: Map<u64, u32>,
    bits: Vec<Bits>,
    /// Pages that were looked up last and their places, by the lower bits of their numbers: kernels access memory anywhere. Empty at first.
    recent: Vec<(u64, u32)>,
}

type Bits = Box<[u64; (PAGE / 64) as usize]>;

/// The parts of a range that lie in one bitmap word each: page, word, mask.
fn words(address: u64, size: u64) -> impl Iterator<Item = (u64, usize, u64)> {
    let end = address.saturating_add(size);
    let mut at = address;
    std::iter::from_fn(move || {
        let count = Some((end - at).min(64 - at % 64)).filter(|n| *n > 0)?;
        let mask = (u64::MAX >> (64 - count)) << (at % 64);
        let part = (at / PAGE, (at % PAGE / 64) as usize, mask);
        at += count;
        Some(part)
    })
}

/// The runs of ones in a word of the bitmap: addresses and sizes.
fn runs(mut word: u64, at: u64) -> impl Iterator<Item = (u64, u64)> {
    std::iter::from_fn(move || {
        let first = word.trailing_zeros();
        let size = word.checked_shr(first)?.trailing_ones();
        word &= !(u64::MAX.checked_shr(64 - size)? << first);
        Some((at + u64::from(first), size.into()))
    })
}

impl Marks {
    #[inline(always)]
    fn find(&mut self, page: u64) -> Option<u32> {
        match self.recent.get(page as usize % RECENT) {
            Some((known, index)) if *known == page => Some(*index),
            _ => self.look_up(page),
        }
    }

    fn look_up(&mut self, page: u64) -> Option<u32> {
        let index = *self.pages.get(&page)?;
        if self.recent.is_empty() {
            self.recent = vec![(u64::MAX, 0); RECENT];
        }
        self.recent[page as usize % RECENT] = (page, index);
        Some(index)
    }

    fn add(&mut self, page: u64) -> u32 {
        self.bits.push(Box::new([0; (PAGE / 64) as usize]));
        let index = self.bits.len() as u32 - 1;
        self.pages.insert(page, index);
        index
    }

    /// Marks bytes as written.
    pub fn mark(&mut self, address: u64, size: u64) {
        words(address, size).for_each(|(page, word, mask)| self.mark_word(page, word, mask));
    }

    /// Marks ranges: addresses and sizes. It is fastest if neighbors follow each other.
    pub fn mark_all(&mut self, ranges: impl Iterator<Item = (u64, u64)>) {
        // What lies in one word of the bitmap is marked at once.
        let mut last: Option<(u64, usize, u64)> = None;
        for (page, word, mask) in ranges.flat_map(|(at, size)| words(at, size)) {
            match &mut last {
                Some((p, w, bits)) if (*p, *w) == (page, word) => *bits |= mask,
                _ => {
                    let done = last.replace((page, word, mask));
                    done.into_iter().for_each(|(page, word, mask)| self.mark_word(page, word, mask));
                }
            }
        }
        last.into_iter().for_each(|(page, word, mask)| self.mark_word(page, word, mask));
    }

    fn mark_word(&mut self, page: u64, word: usize, mask: u64) {
        let index = self.find(page).unwrap_or_else(|| self.add(page));
        self.bits[index as usize][word] |= mask;
    }

    /// Whether none of the bytes was written.
    pub fn is_blank(&mut self, address: u64, size: u64) -> bool {
        words(address, size)
            .all(|(page, word, mask)| self.find(page).is_none_or(|index| self.bits[index as usize][word] & mask == 0))
    }

    /// Whether all bytes were written.
    pub fn is_whole(&mut self, address: u64, size: u64) -> bool {
        words(address, size).all(|(page, word, mask)| {
            self.find(page).is_some_and(|index| self.bits[index as usize][word] & mask == mask)
        })
    }

    /// Nothing.
    pub const fn new() -> Marks {
        Marks { pages: Map::with_hasher(BuildHasherDefault::new()), bits: Vec::new(), recent: Vec::new() }
    }

    /// How many bytes of a range are marked in one of these.
    pub fn count(all: &[&Marks], base: u64, size: u64) -> u64 {
        let word =
            |marks: &Marks, page, word: usize| marks.pages.get(&page).map_or(0, |i| marks.bits[*i as usize][word]);
        let marked = |(page, at, mask)| all.iter().fold(0, |sum, marks| sum | word(marks, page, at)) & mask;
        words(base, size).map(|part| u64::from(marked(part).count_ones())).sum()
    }

    /// Marks everything that is marked in another bitmap.
    pub fn join(&mut self, other: &Marks) {
        for (page, index) in &other.pages {
            let theirs = &other.bits[*index as usize];
            match self.find(*page) {
                Some(own) => self.bits[own as usize].iter_mut().zip(theirs.iter()).for_each(|(a, b)| *a |= b),
                None => {
                    self.bits.push(theirs.clone());
                    self.pages.insert(*page, self.bits.len() as u32 - 1);
                }
            }
        }
    }

    /// The first range of bytes that are marked in both: address and size.
    pub fn common(&self, other: &Marks) -> Option<(u64, u64)> {
        let both = |page: u64| {
            let (a, b) = (self.pages.get(&page)?, other.pages.get(&page)?);
            Some((&self.bits[*a as usize], &other.bits[*b as usize]))
        };
        let word =
            |at: u64| both(at / PAGE).map_or(0, |(a, b)| a[(at % PAGE / 64) as usize] & b[(at % PAGE / 64) as usize]);
        let small = if self.pages.len() < other.pages.len() { self } else { other };
        let meets = |page: &u64| both(*page).is_some_and(|(a, b)| a.iter().zip(b.iter()).any(|(a, b)| a & b != 0));
        let page = *small.pages.keys().filter(|page| meets(page)).min()?;
        let mut at = (page * PAGE..(page + 1) * PAGE).step_by(64).find(|at| word(*at) != 0)?;
        let first = at + u64::from(word(at).trailing_zeros());
        let mut end = first;
        loop {
            let ones = u64::from((word(at) >> (end - at)).trailing_ones());
            end += ones;
            if end < at + 64 {
                return Some((first, end - first));
            }
            at += 64;
        }
    }

    /// The ranges of marked bytes, none of which is longer than a word of the bitmap.
    pub fn ranges(&self) -> impl Iterator<Item = (u64, u64)> {
        let mut pages: Vec<(u64, u32)> = self.pages.iter().map(|(page, index)| (*page, *index)).collect();
        pages.sort_unstable();
        let words = move |(page, index): (u64, u32)| {
            let bits = &self.bits[index as usize];
            bits.iter().zip((page * PAGE..).step_by(64)).flat_map(|(word, at)| runs(*word, at))
        };
        pages.into_iter().flat_map(words)
    }

    /// Calls `visit` with the ranges of bytes that are marked in both, in ascending order.
    pub fn common_ranges(&self, other: &Marks, visit: &mut dyn FnMut(u64, u64)) {
        let small = if self.pages.len() < other.pages.len() { self } else { other };
        let mut pages: Vec<u64> = small.pages.keys().copied().collect();
        pages.sort_unstable();
        for page in pages {
            let (Some(a), Some(b)) = (self.pages.get(&page), other.pages.get(&page)) else { continue };
            let (a, b) = (&self.bits[*a as usize], &other.bits[*b as usize]);
            for ((a, b), at) in a.iter().zip(b.iter()).zip((page * PAGE..).step_by(64)) {
                runs(a & b, at).for_each(|(at, size)| visit(at, size));
            }
        }
    }

    /// Marks a range as unwritten.
    pub fn forget(&mut self, base: u64, size: u64) {
        for (page, word, mask) in words(base, size) {
            if let Some(index) = self.find(page) {
                self.bits[index as usize][word] &= !mask;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_marked_together_as_one_by_one() {
        let ranges = [4090, 4094, 64, 8, 16, 130, 124, 8].map(|at| (at, 6));
        let (mut together, mut each) = (Marks::default(), Marks::default());
        together.mark_all(ranges.into_iter());
        ranges.into_iter().for_each(|(at, size)| each.mark(at, size));
        assert!(together.ranges().eq(each.ranges()));
        assert!(together.is_whole(4090, 10) && together.is_whole(124, 12) && together.is_blank(136, 100));
    }

    #[test]
    fn wild_ranges_end_with_the_address_space() {
        let mut marks = Marks::default();
        marks.mark(u64::MAX - 7, 16);
        assert!(marks.is_whole(u64::MAX - 7, 7) && marks.is_blank(u64::MAX - 15, 8));
    }

    #[test]
    fn marks_know_bytes() {
        let mut marks = Marks::default();
        marks.mark(4094, 4);
        assert!(
            marks.is_blank(4090, 4) && !marks.is_blank(4090, 5) && !marks.is_blank(4097, 8) && marks.is_blank(4098, 8)
        );
        assert!(marks.is_whole(4094, 4) && !marks.is_whole(4093, 4) && !marks.is_whole(4095, 4));
        marks.forget(4096, 1);
        assert!(marks.is_blank(4096, 1) && !marks.is_blank(4095, 1) && !marks.is_blank(4097, 1));
    }
}
