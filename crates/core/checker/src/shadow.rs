//! Shadow memory: per word, the accesses that a later one may race with; and which bytes were written.
//!
//! A word has two records of 16 bytes in place, that is 8 bytes per byte checked. If more accesses are mutually
//! unordered (readers, atomics), they move to a list of at most [`MOST`].

use crate::clock::Time;
use std::collections::HashMap;

/// Limit of records per word. Beyond it a read is evicted, and a race is missed only if that was the only unordered
/// access.
const MOST: usize = 64;
/// Size of a page of shadow memory, in bytes of device memory.
const PAGE: u64 = 4096;
/// Size of a word in bytes.
pub const WORD: u64 = 4;
/// Marks a second record as the index of a list.
const SPILLED: u32 = u32::MAX;
/// Limit of distinct sites.
pub const MOST_SITES: u32 = (1 << 28) - 2;

/// Accesses of lanes of one warp (or of their agents) by one instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record {
    /// Warp in the launch; the highest bit marks agents.
    pub who: u32,
    /// Lanes; zero in an empty record.
    pub lanes: u32,
    /// Time of the access.
    pub time: Time,
    /// Site, and in the upper four bits the mask of the bytes accessed.
    site: u32,
}

impl Record {
    const NONE: Record = Record { who: 0, lanes: 0, time: 0, site: 0 };

    /// A record of an access to the bytes in a mask.
    pub fn new((who, lanes): (u32, u32), time: Time, site: u32, bytes: u32) -> Record {
        Record { who, lanes, time, site: site | bytes << 28 }
    }

    /// Number of the site.
    pub fn site(self) -> u32 {
        self.site & ((1 << 28) - 1)
    }

    /// The record restricted to one lane.
    pub fn of_lane(self, lane: u32) -> Record {
        Record { lanes: 1 << lane, ..self }
    }

    /// Mask of the bytes accessed.
    pub fn bytes(self) -> u32 {
        self.site >> 28
    }
}

/// The records of a word.
#[derive(Clone, Copy)]
struct Cell([Record; 2]);

/// Shadow memory of the device.
#[derive(Default)]
pub struct Shadow {
    pages: HashMap<u64, Box<[Cell]>>,
    lists: Vec<Vec<Record>>,
    spare: Vec<u32>,
}

impl Shadow {
    /// Lets `change` update the records of the word at an address.
    pub fn update(&mut self, address: u64, change: impl FnOnce(&mut Vec<Record>), buffer: &mut Vec<Record>) {
        let cells = self
            .pages
            .entry(address / PAGE)
            .or_insert_with(|| vec![Cell([Record::NONE; 2]); (PAGE / WORD) as usize].into_boxed_slice());
        let cell = &mut cells[(address % PAGE / WORD) as usize];
        buffer.clear();
        let mut list = None;
        let [first, second] = cell.0;
        if first.lanes != 0 {
            buffer.push(first);
        }
        if second.lanes != 0 && second.who == SPILLED {
            list = Some(second.time);
            buffer.extend_from_slice(&self.lists[second.time as usize]);
        } else if second.lanes != 0 {
            buffer.push(second);
        }
        change(buffer);
        if buffer.len() > MOST {
            // Pseudo-random, and reproducible for the same launch.
            let victim = 1 + (address / WORD + u64::from(buffer[MOST].time)) as usize % (MOST - 1);
            buffer.swap_remove(victim);
        }
        if buffer.len() <= 2 {
            if let Some(list) = list {
                self.lists[list as usize].clear();
                self.spare.push(list);
            }
            let at = |i: usize| buffer.get(i).copied().unwrap_or(Record::NONE);
            cell.0 = [at(0), at(1)];
            return;
        }
        let list = list.or_else(|| self.spare.pop()).unwrap_or_else(|| {
            self.lists.push(Vec::new());
            self.lists.len() as u32 - 1
        });
        let kept = &mut self.lists[list as usize];
        kept.clear();
        kept.extend_from_slice(&buffer[1..]);
        cell.0 = [buffer[0], Record { who: SPILLED, lanes: 1, time: list, site: 0 }];
    }

    /// Drops the records of a range that was reallocated.
    pub fn forget(&mut self, base: u64, size: u64) {
        let end = base.saturating_add(size);
        for page in base / PAGE..end.div_ceil(PAGE) {
            let Some(cells) = self.pages.get_mut(&page) else { continue };
            let from = base.max(page * PAGE) % PAGE / WORD;
            let to = (end.min((page + 1) * PAGE) - page * PAGE).div_ceil(WORD);
            for cell in &mut cells[from as usize..to as usize] {
                let second = cell.0[1];
                if second.lanes != 0 && second.who == SPILLED {
                    self.lists[second.time as usize].clear();
                    self.spare.push(second.time);
                }
                *cell = Cell([Record::NONE; 2]);
            }
        }
    }
}

/// Which bytes of windows were written: a bitmap in pages allocated on demand.
#[derive(Default)]
pub struct Marks(HashMap<u64, Box<[u64; (PAGE / 64) as usize]>>);

impl Marks {
    fn bits(address: u64, size: u64) -> impl Iterator<Item = (u64, usize, u64)> {
        (address..address.saturating_add(size)).map(|a| (a / PAGE, (a % PAGE / 64) as usize, 1 << (a % 64)))
    }

    /// Marks bytes as written.
    pub fn mark(&mut self, address: u64, size: u64) {
        for (page, word, bit) in Marks::bits(address, size) {
            self.0.entry(page).or_insert_with(|| Box::new([0; (PAGE / 64) as usize]))[word] |= bit;
        }
    }

    /// Whether none of the bytes was written.
    pub fn is_blank(&self, address: u64, size: u64) -> bool {
        Marks::bits(address, size).all(|(page, word, bit)| self.0.get(&page).is_none_or(|p| p[word] & bit == 0))
    }

    /// Marks a range as unwritten.
    pub fn forget(&mut self, base: u64, size: u64) {
        let end = base.saturating_add(size);
        for page in base / PAGE..end.div_ceil(PAGE) {
            if base <= page * PAGE && (page + 1) * PAGE <= end {
                self.0.remove(&page);
            } else if let Some(p) = self.0.get_mut(&page) {
                for a in base.max(page * PAGE)..end.min((page + 1) * PAGE) {
                    p[(a % PAGE / 64) as usize] &= !(1 << (a % 64));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_a_word_come_back_and_lists_end() {
        let (mut shadow, mut buffer) = (Shadow::default(), Vec::new());
        for i in 0..200u32 {
            shadow.update(4096 + 8, |r| r.push(Record::new((i, 1), i + 1, 7, 0xf)), &mut buffer);
        }
        shadow.update(
            4096 + 8,
            |r| {
                assert_eq!(r.len(), MOST);
                assert_eq!((r[0].who, r[0].site(), r[0].bytes()), (0, 7, 0xf), "the first one stays");
                r.truncate(1);
            },
            &mut buffer,
        );
        shadow.update(4096 + 12, |r| assert!(r.is_empty()), &mut buffer);
        shadow.forget(4096 + 8, 4);
        shadow.update(4096 + 8, |r| assert!(r.is_empty()), &mut buffer);
    }

    #[test]
    fn marks_know_bytes() {
        let mut marks = Marks::default();
        marks.mark(4094, 4);
        assert!(
            marks.is_blank(4090, 4) && !marks.is_blank(4090, 5) && !marks.is_blank(4097, 8) && marks.is_blank(4098, 8)
        );
        marks.forget(4096, 1);
        assert!(marks.is_blank(4096, 1) && !marks.is_blank(4095, 1) && !marks.is_blank(4097, 1));
    }
}
