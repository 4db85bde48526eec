//! Shadow memory: per word, the accesses that a later one may race with.
//!
//! A word has two inline records of 16 bytes: 8 bytes of shadow per checked byte. If more accesses are mutually
//! unordered (reads, atomics), they spill to a list of bounded length: [`MOST`]. The same access by several warps of a
//! CTA is one record ([`Record::join`]): tiles that a whole CTA reads, bins that all threads update.
//!
//! Most accesses are rows: lane after lane accesses element after element. A line of 8 words that was accessed by such
//! rows only has the records of its first word; those of the others differ by their lanes ([`Rowed`]). The first access
//! of another kind gives the line a cell for each word.

use crate::{clock::Time, hash::Map};
use margay_exec::LANES;

/// Limit of records per word. Beyond it a read is evicted, and a race is missed only if that was the only unordered
/// access.
const MOST: usize = 32;
/// Size of a page of shadow memory, in bytes of device memory.
const PAGE: u64 = 4096;
/// Size of a word in bytes.
pub const WORD: u64 = 4;
/// Words of a line.
pub const LINE: usize = 8;
/// Size of a line in bytes.
pub const LINE_BYTES: u64 = LINE as u64 * WORD;
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

    /// The record of a line's word whose lanes are by `step` higher than those of this record of its first word.
    fn at(self, step: u32) -> Record {
        match self.is_joined() {
            true => Record { who: self.who + (step << 24), ..self },
            false => Record { lanes: self.lanes << step, ..self },
        }
    }

    /// A record of an access to the bytes in a mask.
    #[inline]
    pub fn new((who, lanes): (u32, u32), time: Time, site: u32, bytes: u32) -> Record {
        Record { who, lanes, time, site: site | bytes << 28 }
    }

    /// Number of the site.
    #[inline]
    pub fn site(self) -> u32 {
        self.site & ((1 << 28) - 1)
    }

    /// Mask of the bytes accessed.
    #[inline]
    pub fn bytes(self) -> u32 {
        self.site >> 28
    }

    /// Whether the accesses are by agents.
    #[inline]
    pub fn is_agent(self) -> bool {
        self.who & AGENT != 0
    }

    #[inline]
    fn is_joined(self) -> bool {
        self.who & JOINED != 0
    }

    /// The CTA, in a launch with `warps` warps per CTA.
    #[inline]
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
    #[inline]
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
    #[inline]
    pub const fn none() -> Record {
        Record::NONE
    }
}

/// The records of a line.
#[derive(Clone, Copy)]
struct Line {
    /// Those of the first word, which represent all words.
    cell: Cell,
    form: Form,
}

/// How a line's records are kept.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// By one cell, for accesses of so many words a lane, as a power of two.
    Rows(u8),
    /// By a cell for each word, in this place of the pool.
    Words(u32),
}

impl Line {
    const NONE: Line = Line { cell: Cell::NONE, form: Form::Rows(0) };

    fn is_empty(&self) -> bool {
        !self.cell.0[0].is_some() && !self.cell.0[1].is_some()
    }
}

/// The cells of a line that a row of lanes accesses.
pub enum Rowed<'s> {
    /// One for all words.
    One(&'s mut Cell),
    /// One for each.
    Each(&'s mut [Cell; LINE]),
}

/// Shadow memory of the device.
#[derive(Default)]
pub struct Shadow {
    pages: Map<u64, u32>,
    lines: Vec<Box<[Line]>>,
    /// The page that was looked up last.
    last: Option<(u64, u32)>,
    /// Cells of lines with one for each word, and those that are free.
    wide: Vec<[Cell; LINE]>,
    free: Vec<u32>,
    lists: Vec<Vec<Record>>,
    spare: Vec<u32>,
}

impl Shadow {
    /// Page and index of the line at an address.
    #[inline(always)]
    fn line(&mut self, address: u64) -> (u32, usize) {
        let page = address / PAGE;
        let index = match self.last {
            Some((known, index)) if known == page => index,
            _ => self.page(page),
        };
        (index, (address % PAGE / LINE_BYTES) as usize)
    }

    fn page(&mut self, page: u64) -> u32 {
        let lines = &mut self.lines;
        let index = *self.pages.entry(page).or_insert_with(|| {
            lines.push(vec![Line::NONE; (PAGE / LINE_BYTES) as usize].into_boxed_slice());
            lines.len() as u32 - 1
        });
        self.last = Some((page, index));
        index
    }

    /// The cell of the word at an address.
    #[inline(always)]
    pub fn cell(&mut self, address: u64) -> &mut Cell {
        let (page, line) = self.line(address);
        let place = match self.lines[page as usize][line].form {
            Form::Words(place) => place,
            Form::Rows(_) => self.widen(page, line),
        };
        &mut self.wide[place as usize][(address / WORD) as usize % LINE]
    }

    /// The cells of the line at an address, for a row of accesses of `1 << shift` words each.
    #[inline(always)]
    pub fn row(&mut self, address: u64, shift: u8) -> Rowed<'_> {
        let (page, index) = self.line(address);
        let line = &mut self.lines[page as usize][index];
        let place = match line.form {
            Form::Words(place) => place,
            Form::Rows(same) if same == shift => return Rowed::One(&mut self.lines[page as usize][index].cell),
            Form::Rows(_) if line.is_empty() => {
                line.form = Form::Rows(shift);
                return Rowed::One(&mut self.lines[page as usize][index].cell);
            }
            Form::Rows(_) => self.widen(page, index),
        };
        Rowed::Each(&mut self.wide[place as usize])
    }

    /// Gives a line a cell for each word.
    fn widen(&mut self, page: u32, index: usize) -> u32 {
        let Line { cell, form } = self.lines[page as usize][index];
        let Form::Rows(shift) = form else { return 0 };
        let cells = std::array::from_fn(|k| match k {
            0 => cell,
            _ => self.at(cell, k as u32 >> shift),
        });
        let place = match self.free.pop() {
            Some(place) => {
                self.wide[place as usize] = cells;
                place
            }
            None => {
                self.wide.push(cells);
                self.wide.len() as u32 - 1
            }
        };
        self.lines[page as usize][index] = Line { cell: Cell::NONE, form: Form::Words(place) };
        place
    }

    /// Lets one cell represent all words of a line, whose cells have just become equal by a row of accesses of
    /// `1 << shift` words each.
    pub fn narrow(&mut self, address: u64, shift: u8) {
        let (page, index) = self.line(address);
        let line = &mut self.lines[page as usize][index];
        if let Form::Words(place) = line.form {
            *line = Line { cell: self.wide[place as usize][0], form: Form::Rows(shift) };
            self.free.push(place);
        }
    }

    /// Lets `change` update the records of the word at an address.
    pub fn update(&mut self, address: u64, change: impl FnOnce(&mut Vec<Record>), buffer: &mut Vec<Record>) {
        let cell = *self.cell(address);
        *self.cell(address) = self.changed(address, cell, change, buffer);
    }

    /// Lets `change` update the records of all words of the line at an address, which are kept by one cell: it gets those
    /// of the first word.
    pub fn update_row(&mut self, address: u64, change: impl FnOnce(&mut Vec<Record>), buffer: &mut Vec<Record>) {
        let (page, line) = self.line(address);
        let cell = self.lines[page as usize][line].cell;
        self.lines[page as usize][line].cell = self.changed(address, cell, change, buffer);
    }

    /// Whether all records of a cell are such.
    pub fn all(&self, cell: &Cell, is_such: impl Fn(&Record) -> bool) -> bool {
        let [first, second] = cell.0;
        let more = if second.who == SPILLED { &self.lists[second.time as usize][..] } else { &cell.0[1..] };
        [first].iter().chain(more).filter(|r| r.is_some()).all(is_such)
    }

    fn changed(
        &mut self,
        address: u64,
        cell: Cell,
        change: impl FnOnce(&mut Vec<Record>),
        buffer: &mut Vec<Record>,
    ) -> Cell {
        let [first, second] = cell.0;
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
            return Cell([at(0), at(1)]);
        }
        let list = list.or_else(|| self.spare.pop()).unwrap_or_else(|| {
            self.lists.push(Vec::new());
            self.lists.len() as u32 - 1
        });
        let kept = &mut self.lists[list as usize];
        kept.clear();
        kept.extend_from_slice(&buffer[1..]);
        let first = buffer[0];
        Cell([first, Record { who: SPILLED, lanes: 1, time: list, site: 0 }])
    }

    /// The cell of a word whose lanes are by `step` higher than those of a line's first word, which has this cell.
    fn at(&mut self, cell: Cell, step: u32) -> Cell {
        let [first, second] = cell.0;
        if second.who != SPILLED {
            return Cell([first.at(step), second.at(step)]);
        }
        let list: Vec<Record> = self.lists[second.time as usize].iter().map(|r| r.at(step)).collect();
        let place = match self.spare.pop() {
            Some(place) => {
                self.lists[place as usize] = list;
                place
            }
            None => {
                self.lists.push(list);
                self.lists.len() as u32 - 1
            }
        };
        Cell([first.at(step), Record { time: place, ..second }])
    }

    /// Drops what a cell keeps elsewhere.
    fn drop_list(&mut self, cell: Cell) {
        let second = cell.0[1];
        if second.who == SPILLED {
            self.lists[second.time as usize].clear();
            self.spare.push(second.time);
        }
    }

    /// Drops the records of a range that was reallocated.
    pub fn forget(&mut self, base: u64, size: u64) {
        let end = base.saturating_add(size);
        for page in base / PAGE..end.div_ceil(PAGE) {
            let Some(page_index) = self.pages.get(&page).copied() else { continue };
            let from = base.max(page * PAGE);
            let to = end.min((page + 1) * PAGE);
            for at in (from / LINE_BYTES..to.div_ceil(LINE_BYTES)).map(|line| line * LINE_BYTES) {
                let index = (at % PAGE / LINE_BYTES) as usize;
                let line = &self.lines[page_index as usize][index];
                if matches!(line.form, Form::Rows(_)) && (line.is_empty() || from <= at && at + LINE_BYTES <= to) {
                    let line = std::mem::replace(&mut self.lines[page_index as usize][index], Line::NONE);
                    self.drop_list(line.cell);
                    continue;
                }
                let mut word = from.max(at) / WORD * WORD;
                while word < to.min(at + LINE_BYTES) {
                    let cell = std::mem::replace(self.cell(word), Cell::NONE);
                    self.drop_list(cell);
                    word += WORD;
                }
                if from <= at && at + LINE_BYTES <= to {
                    self.narrow(at, 0);
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
    fn a_row_of_lanes_has_one_cell_until_a_word_is_accessed_alone() {
        let mut shadow = Shadow::default();
        let (a, b) = (Record::new((5, 1 << 8), 3, 1, 0xf), Record::new((JOINED | 8 << 24 | 2, 0b11), 4, 2, 0xf));
        // Two words a lane: lane 8 has the first two.
        let Rowed::One(cell) = shadow.row(4096 + 64, 1) else { panic!("a new line has one cell") };
        cell.0 = [a, b];
        assert!(matches!(shadow.row(4096 + 64, 1), Rowed::One(_)));
        let cell = shadow.cell(4096 + 64 + 5 * 4).0;
        assert_eq!((cell[0].lanes, cell[1].who), (1 << 10, JOINED | 10 << 24 | 2), "lane 10 has the sixth");
        assert!(matches!(shadow.row(4096 + 64, 1), Rowed::Each(cells) if cells[0].0 == [a, b]));
        shadow.narrow(4096 + 64, 1);
        assert!(matches!(shadow.row(4096 + 64, 1), Rowed::One(cell) if cell.0 == [a, b]));
        assert!(matches!(shadow.row(4096 + 64, 0), Rowed::Each(cells) if cells[7].0[0].lanes == 1 << 11), "other rows");
        shadow.forget(4096, 4096);
        assert!(matches!(shadow.row(4096 + 64, 2), Rowed::One(cell) if cell.0 == Cell::NONE.0));
    }
}
