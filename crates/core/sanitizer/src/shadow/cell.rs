//! Records word by word.

use super::{LINE, Record, pool::Pool, span::Span};

/// Marks a second record as the index of a list.
const SPILLED: u32 = u32::MAX;
/// No place in a pool.
const NOWHERE: u32 = u32::MAX;

/// The records of a word.
#[derive(Clone, Copy)]
pub struct Cell(pub(super) [Record; 2]);

impl Cell {
    pub(super) const NONE: Cell = Cell([Record::NONE; 2]);

    /// One whose records but the first are in a list.
    pub(super) fn spilled(first: Record, list: u32) -> Cell {
        Cell([first, Record { who: SPILLED, lanes: 1, time: list, site: 0 }])
    }

    /// Its list.
    #[inline(always)]
    pub(super) fn list(&self) -> Option<u32> {
        let [_, second] = self.0;
        (second.who == SPILLED).then_some(second.time)
    }

    /// Both records, unless there is a list.
    #[inline(always)]
    pub fn records(&mut self) -> Option<&mut [Record; 2]> {
        (self.0[1].who != SPILLED).then_some(&mut self.0)
    }
}

/// A record for each word of a line.
pub(super) type Records = [Record; LINE];

/// Where the records of a line's words are. What was not written since the line is kept so is not cleared, but left out.
#[derive(Clone, Copy)]
pub(super) struct Wide {
    /// The place of the first ones, and that of the second ones if there are any.
    places: [u32; 2],
    /// The words that have them.
    present: [u32; 2],
}

impl Wide {
    /// With a place for the first records, none of which is present.
    pub fn new(pool: &mut Pool<Records>) -> Wide {
        Wide { places: [pool.place(), NOWHERE], present: [0; 2] }
    }

    /// Gives its places back.
    pub fn free(self, pool: &mut Pool<Records>) {
        pool.free.extend(self.places.iter().filter(|place| **place != NOWHERE));
    }

    /// The first record of a word, if there is any.
    #[inline(always)]
    pub fn first<'p>(&self, pool: &'p mut Pool<Records>, word: usize) -> Option<&'p mut Record> {
        (self.present[0] >> word & 1 == 1).then(|| &mut pool.all[self.places[0] as usize][word])
    }

    /// The list of a word.
    #[inline(always)]
    pub fn list(&self, pool: &Pool<Records>, word: usize) -> Option<u32> {
        let second = (self.present[1] >> word & 1 == 1).then(|| pool.all[self.places[1] as usize][word])?;
        (second.who == SPILLED).then_some(second.time)
    }

    /// What a word has.
    #[inline(always)]
    pub fn get(&self, pool: &Pool<Records>, word: usize) -> Cell {
        let at = |i: usize| match self.present[i] >> word & 1 == 1 {
            true => pool.all[self.places[i] as usize][word],
            false => Record::NONE,
        };
        Cell([at(0), at(1)])
    }

    #[inline(always)]
    pub fn set(&mut self, pool: &mut Pool<Records>, word: usize, cell: Cell) {
        let [first, second] = cell.0;
        pool.all[self.places[0] as usize][word] = first;
        self.present[0] = self.present[0] & !(1 << word) | u32::from(first.is_some()) << word;
        self.present[1] &= !(1 << word);
        if second.is_some() {
            self.set_second(pool, word, second);
        }
    }

    fn set_second(&mut self, pool: &mut Pool<Records>, word: usize, second: Record) {
        if self.places[1] == NOWHERE {
            self.places[1] = pool.place();
        }
        pool.all[self.places[1] as usize][word] = second;
        self.present[1] |= 1 << word;
    }
}

/// The words of a line, with what each of them has.
pub struct Words<'s> {
    pub(super) wide: &'s mut Wide,
    pub(super) pool: &'s mut Pool<Records>,
}

impl Words<'_> {
    /// What a word has.
    #[inline(always)]
    pub fn get(&self, word: u32) -> Cell {
        self.wide.get(self.pool, word as usize % LINE)
    }

    /// Gives a word other records.
    #[inline(always)]
    pub fn set(&mut self, word: u32, cell: Cell) {
        self.wide.set(self.pool, word as usize % LINE, cell);
    }

    /// Gives a word that has none a record; whether that was so.
    #[inline(always)]
    pub fn begin(&mut self, word: u32, record: Record) -> bool {
        let word = word as usize % LINE;
        let none = (self.wide.present[0] | self.wide.present[1]) >> word & 1 == 0;
        if none {
            self.wide.present[0] |= 1 << word;
            self.pool.all[self.wide.places[0] as usize][word] = record;
        }
        none
    }

    /// Adds the records of spans; returns the words that have more than a cell holds.
    pub(super) fn fill(&mut self, spans: &[Span]) -> u32 {
        let mut more = 0;
        for span in spans {
            for k in super::words(span.bytes) {
                for record in span.records(k) {
                    let Cell([first, second]) = self.get(k);
                    match (first.is_some(), second.is_some()) {
                        (false, _) => self.set(k, Cell([record, Record::NONE])),
                        (true, false) => self.set(k, Cell([first, record])),
                        _ => more |= 1 << k,
                    }
                }
            }
        }
        more
    }
}
