//! Which bytes of memory were written.

use crate::hash::Map;

/// Size of a page of the bitmap, in bytes of device memory.
const PAGE: u64 = 4096;

/// Which bytes of windows were written: a bitmap in pages allocated on demand.
#[derive(Default)]
pub struct Marks {
    pages: Map<u64, u32>,
    bits: Vec<Bits>,
    last: Option<(u64, u32)>,
}

type Bits = Box<[u64; (PAGE / 64) as usize]>;

/// The parts of a range that lie in one bitmap word each: page, word, mask.
fn words(address: u64, size: u64) -> impl Iterator<Item = (u64, usize, u64)> {
    let end = address.saturating_add(size);
    let mut at = address;
    std::iter::from_fn(move || {
        let next = ((at / 64 + 1) * 64).min(end);
        let count = next.checked_sub(at).filter(|n| *n > 0)?;
        let mask = (u64::MAX >> (64 - count)) << (at % 64);
        let part = (at / PAGE, (at % PAGE / 64) as usize, mask);
        at = next;
        Some(part)
    })
}

impl Marks {
    fn find(&mut self, page: u64) -> Option<u32> {
        match self.last {
            Some((known, index)) if known == page => Some(index),
            _ => {
                let index = *self.pages.get(&page)?;
                self.last = Some((page, index));
                Some(index)
            }
        }
    }

    /// Marks bytes as written.
    pub fn mark(&mut self, address: u64, size: u64) {
        for (page, word, mask) in words(address, size) {
            let index = self.find(page).unwrap_or_else(|| {
                self.bits.push(Box::new([0; (PAGE / 64) as usize]));
                let index = self.bits.len() as u32 - 1;
                self.pages.insert(page, index);
                self.last = Some((page, index));
                index
            });
            self.bits[index as usize][word] |= mask;
        }
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
