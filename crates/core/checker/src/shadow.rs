//! Shadow memory: per word, the accesses that a later one may race with; and which bytes were written.
//!
//! A word has two inline records of 16 bytes: 8 bytes of shadow per checked byte. If more accesses are mutually
//! unordered (reads, atomics), they spill to a list of bounded length: [`MOST`]. The same access by several warps of a
//! CTA is one record ([`Record::join`]): tiles that a whole CTA reads, bins that all threads update.

use crate::{clock::Time, hash::Map};
use margay_exec::LANES;

/// Limit of records per word. Beyond it a read is evicted, and a race is missed only if that was the only unordered
/// access.
const MOST: usize = 32;
/// Size of a page of shadow memory, in bytes of device memory.
const PAGE: u64 = 4096;
/// Size of a word in bytes.
pub const WORD: u64 = 4;
/// Marks a second record as the index of a list.
const SPILLED: u32 = u32::MAX;
/// Limit of distinct sites.
pub const MOST_SITES: u32 = (1 << 28) - 2;
/// Set in [`Record::who`] for the agents of a warp's threads.
pub const AGENT: u32 = 1 << 31;
/// Set in [`Record::who`] for several warps of a CTA; the bits below hold the lanes of each (6 bits) and the CTA (24
/// bits).
const JOINED: u32 = 1 << 30;
/// The limit of warps of a launch that can be distinguished.
pub const MOST_WARPS: u64 = (1 << 30) - 64;
/// The limit of CTAs whose warps can share a record.
const MOST_CTAS: u32 = 1 << 24;

/// Accesses of some lanes of one warp (or of their agents), or of several warps of a CTA, by one instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record {
    /// The warp in the launch, or a CTA; with the flags [`AGENT`] and [`JOINED`].
    pub who: u32,
    /// The lanes (none in an empty record); in a joined record, the warps.
    pub lanes: u32,
    /// The time of the access, or a later one that no thread can distinguish from it.
    pub time: Time,
    /// The site, and in the upper four bits the mask of accessed bytes.
    site: u32,
}

/// Lanes of a warp of a launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Crew {
    /// Linear index of the CTA.
    pub cta: u32,
    /// Warp in the CTA.
    pub warp: u32,
    /// Lanes.
    pub lanes: u32,
}

/// The encoding of a set of lanes in a joined record: one lane, or all.
fn pattern(lanes: u32) -> Option<u32> {
    match lanes {
        u32::MAX => Some(LANES as u32),
        _ if lanes.is_power_of_two() => Some(lanes.trailing_zeros()),
        _ => None,
    }
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

    /// Mask of the bytes accessed.
    pub fn bytes(self) -> u32 {
        self.site >> 28
    }

    /// Whether the accesses are by agents.
    pub fn is_agent(self) -> bool {
        self.who & AGENT != 0
    }

    fn is_joined(self) -> bool {
        self.who & JOINED != 0
    }

    /// The CTA, in a launch with `warps` warps per CTA.
    pub fn cta(self, warps: u32) -> u32 {
        if self.is_joined() { self.who & (MOST_CTAS - 1) } else { (self.who & !AGENT) / warps }
    }

    /// The warps and lanes of the accesses.
    pub fn crews(self, warps: u32) -> impl Iterator<Item = Crew> {
        let cta = self.cta(warps);
        let (mut left, lanes) = match self.is_joined() {
            true => {
                let pattern = self.who >> 24 & 0x3f;
                (self.lanes, if pattern == LANES as u32 { u32::MAX } else { 1 << pattern })
            }
            false => (1 << ((self.who & !AGENT) % warps), self.lanes),
        };
        std::iter::from_fn(move || {
            let warp = (left != 0).then(|| left.trailing_zeros())?;
            left &= left - 1;
            Some(Crew { cta, warp, lanes })
        })
    }

    /// Merges an access of other lanes by the same instruction; false if they cannot share a record. They must not have
    /// released anything since the time of this record, and must not be agents.
    pub fn join(&mut self, crew: Crew, warps: u32) -> bool {
        let own = crew.cta * warps + crew.warp;
        if self.who == own {
            self.lanes |= crew.lanes;
            return true;
        }
        let (Some(pattern), true) = (pattern(crew.lanes), crew.cta < MOST_CTAS && !self.is_agent()) else {
            return false;
        };
        let joined = JOINED | pattern << 24 | crew.cta;
        if self.who == joined {
            self.lanes |= 1 << crew.warp;
            return true;
        }
        if !self.is_joined() && self.lanes == crew.lanes && self.who / warps == crew.cta {
            (self.who, self.lanes) = (joined, 1 << (self.who % warps) | 1 << crew.warp);
            return true;
        }
        false
    }
}

/// The records of a word.
#[derive(Clone, Copy)]
pub struct Cell([Record; 2]);

impl Cell {
    const NONE: Cell = Cell([Record::NONE; 2]);

    /// Both records, unless there is a list.
    #[inline(always)]
    pub fn records(&mut self) -> Option<&mut [Record; 2]> {
        (self.0[1].who != SPILLED).then_some(&mut self.0)
    }
}

impl Record {
    /// Whether the record is not empty.
    #[inline(always)]
    pub fn is_some(self) -> bool {
        self.lanes != 0
    }

    /// The empty record.
    pub const fn none() -> Record {
        Record::NONE
    }
}

/// Shadow memory of the device.
#[derive(Default)]
pub struct Shadow {
    pages: Map<u64, u32>,
    cells: Vec<Box<[Cell]>>,
    /// The page that was looked up last.
    last: Option<(u64, u32)>,
    lists: Vec<Vec<Record>>,
    spare: Vec<u32>,
}

impl Shadow {
    /// The cell of the word at an address.
    #[inline(always)]
    pub fn cell(&mut self, address: u64) -> &mut Cell {
        let page = address / PAGE;
        let index = match self.last {
            Some((known, index)) if known == page => index,
            _ => self.page(page),
        };
        &mut self.cells[index as usize][(address % PAGE / WORD) as usize]
    }

    fn page(&mut self, page: u64) -> u32 {
        let cells = &mut self.cells;
        let index = *self.pages.entry(page).or_insert_with(|| {
            cells.push(vec![Cell::NONE; (PAGE / WORD) as usize].into_boxed_slice());
            cells.len() as u32 - 1
        });
        self.last = Some((page, index));
        index
    }

    /// Lets `change` update the records of the word at an address.
    pub fn update(&mut self, address: u64, change: impl FnOnce(&mut Vec<Record>), buffer: &mut Vec<Record>) {
        let [first, second] = self.cell(address).0;
        buffer.clear();
        let mut list = None;
        if first.is_some() {
            buffer.push(first);
        }
        if second.who == SPILLED {
            list = Some(second.time);
            buffer.extend_from_slice(&self.lists[second.time as usize]);
        } else if second.is_some() {
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
            self.cell(address).0 = [at(0), at(1)];
            return;
        }
        let list = list.or_else(|| self.spare.pop()).unwrap_or_else(|| {
            self.lists.push(Vec::new());
            self.lists.len() as u32 - 1
        });
        let kept = &mut self.lists[list as usize];
        kept.clear();
        kept.extend_from_slice(&buffer[1..]);
        let first = buffer[0];
        self.cell(address).0 = [first, Record { who: SPILLED, lanes: 1, time: list, site: 0 }];
    }

    /// Drops the records of a range that was reallocated.
    pub fn forget(&mut self, base: u64, size: u64) {
        let end = base.saturating_add(size);
        for page in base / PAGE..end.div_ceil(PAGE) {
            let Some(index) = self.pages.get(&page) else { continue };
            let from = base.max(page * PAGE) % PAGE / WORD;
            let to = (end.min((page + 1) * PAGE) - page * PAGE).div_ceil(WORD);
            for cell in &mut self.cells[*index as usize][from as usize..to as usize] {
                let second = cell.0[1];
                if second.who == SPILLED {
                    self.lists[second.time as usize].clear();
                    self.spare.push(second.time);
                }
                *cell = Cell::NONE;
            }
        }
    }
}

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
    fn warps_that_do_the_same_share_a_record() {
        let crew = |cta, warp, lanes| Crew { cta, warp, lanes };
        let of = |r: Record| r.crews(8).collect::<Vec<_>>();
        // Warp 3 of CTA 2, of CTAs of 8 warps.
        let mut record = Record::new((2 * 8 + 3, 1 << 5), 9, 1, 0xf);
        assert_eq!(of(record), [crew(2, 3, 1 << 5)]);
        assert!(record.join(crew(2, 6, 1 << 5), 8) && record.join(crew(2, 0, 1 << 5), 8));
        assert_eq!(of(record), [crew(2, 0, 1 << 5), crew(2, 3, 1 << 5), crew(2, 6, 1 << 5)]);
        let before = record;
        assert!(!record.join(crew(2, 1, 1 << 6), 8), "other lanes");
        assert!(!record.join(crew(1, 1, 1 << 5), 8), "another CTA");
        assert!(!record.join(crew(2, 1, 0b11), 8), "lanes that have no number");
        assert_eq!(record, before);
        let mut own = Record::new((7, 0b11), 9, 1, 0xf);
        assert!(own.join(crew(0, 7, 0b100), 8));
        assert_eq!(of(own), [crew(0, 7, 0b111)]);
        let mut agent = Record::new((7 | AGENT, 1), 9, 1, 0xf);
        assert!(!agent.join(crew(0, 6, 1), 8) && !agent.join(crew(0, 7, 1), 8));
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
