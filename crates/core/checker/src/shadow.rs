//! Shadow memory: per word, the accesses that a later one may race with.
//!
//! Most accesses are rows (lane after lane accesses element after element) or go to one address for all lanes. A line of 32
//! words that was accessed so keeps [`Span`]s: an access of some of its words, with the rule by which the lane follows from
//! the word. When it has too many of them, or is accessed in another way, it gets a cell for each word: two inline records of
//! 16 bytes, 8 bytes of shadow per checked byte. If more accesses of a word are mutually unordered (reads, atomics), they spill
//! to a list of bounded length: [`MOST`]. The same access by several warps of a CTA is one span or record ([`Record::join`]):
//! tiles that a whole CTA reads, bins that all threads update.

use crate::{clock::Time, hash::Map};
use margay_exec::LANES;

/// Limit of records per word. Beyond it a read is evicted, and a race is missed only if that was the only unordered
/// access.
const MOST: usize = 32;
/// Size of a page of shadow memory, in bytes of device memory.
const PAGE: u64 = 4096;
/// Size of a word in bytes.
pub const WORD: u64 = 4;
/// Pages that are found at once.
const RECENT: usize = 16;
/// Words of a line.
pub const LINE: usize = 32;
/// Spans of a line.
const SPANS: usize = 8;
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

/// How lanes access the words of a span.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pattern {
    /// All of its lanes access all of its words.
    Same,
    /// Word `k` of the line is accessed by lane `(k + phase) >> shift`.
    Row {
        /// The number of the line's first word in the row of lanes.
        phase: i16,
        /// Words of a lane, as a power of two.
        shift: u8,
    },
}

/// Accesses of words of a line by a warp, or by several warps of a CTA, by one instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// As in a [`Record`], but of no agent. In a joined span of a row no lane is encoded.
    pub who: u32,
    /// [`Pattern::Same`]: the lanes. In a joined span: the warps.
    pub lanes: u32,
    /// The time of the access, or a later one that no thread can distinguish from it.
    pub time: Time,
    /// The site.
    pub site: u32,
    /// The words; none in an empty span.
    pub words: u32,
    /// How lanes access them.
    pub pattern: Pattern,
}

impl Span {
    const NONE: Span = Span { who: 0, lanes: 0, time: 0, site: 0, words: 0, pattern: Pattern::Same };

    /// The record of one of its words.
    pub fn record(&self, word: u32) -> Record {
        let Span { who, lanes, time, site, .. } = *self;
        let (who, lanes) = match self.pattern {
            Pattern::Same => (who, lanes),
            Pattern::Row { phase, shift } => {
                let lane = ((word as i32 + i32::from(phase)) >> shift) as u32 & 31;
                if who & JOINED != 0 { (who | lane << 24, lanes) } else { (who, 1 << lane) }
            }
        };
        Record::new((who, lanes), time, site, 0xf)
    }

    /// The CTA, in a launch with `warps` warps per CTA.
    #[inline]
    pub fn cta(&self, warps: u32) -> u32 {
        if self.who & JOINED != 0 { self.who & (MOST_CTAS - 1) } else { self.who / warps }
    }

    /// Merges an access of the same words by the same instruction, by another warp or by other lanes; false if they cannot share
    /// a span. As in [`Record::join`], nothing must have been released since.
    #[inline]
    pub fn join(&mut self, new: &Span, (cta, warp, warps): (u32, u32, u32)) -> bool {
        if self.who == new.who {
            self.lanes |= new.lanes;
            return true;
        }
        let encoded = match self.pattern {
            Pattern::Row { .. } => 0,
            Pattern::Same => match pattern(new.lanes) {
                Some(pattern) => pattern << 24,
                None => return false,
            },
        };
        if cta >= MOST_CTAS {
            return false;
        }
        let joined = JOINED | encoded | cta;
        if self.who == joined {
            self.lanes |= 1 << warp;
            return true;
        }
        if self.who & JOINED == 0 && self.lanes == new.lanes && self.who / warps == cta {
            (self.who, self.lanes) = (joined, 1 << (self.who % warps) | 1 << warp);
            return true;
        }
        false
    }
}

/// The spans of a line; those that are not empty stand in front.
#[derive(Clone, Copy)]
pub struct Spans {
    list: [Span; SPANS],
    count: u8,
}

impl Spans {
    const NONE: Spans = Spans { list: [Span::NONE; SPANS], count: 0 };

    /// Those that are not empty.
    #[inline(always)]
    pub fn all(&mut self) -> &mut [Span] {
        &mut self.list[..usize::from(self.count)]
    }

    /// Adds one; false if there is no room.
    #[inline(always)]
    pub fn push(&mut self, span: Span) -> bool {
        let Some(free) = self.list.get_mut(usize::from(self.count)) else { return false };
        *free = span;
        self.count += 1;
        true
    }

    /// Removes words from all spans.
    #[inline(always)]
    pub fn clear(&mut self, words: u32) {
        let mut kept = 0;
        for i in 0..usize::from(self.count) {
            let mut span = self.list[i];
            span.words &= !words;
            if span.words != 0 {
                self.list[kept] = span;
                kept += 1;
            }
        }
        self.count = kept as u8;
    }

    /// The records of a word; `None` if there are more than a cell holds.
    fn cell(&self, word: u32) -> Result<Cell, Vec<Record>> {
        let here = self.list[..usize::from(self.count)].iter().filter(|s| s.words >> word & 1 == 1);
        let mut cell = Cell::NONE;
        for (i, span) in here.clone().enumerate() {
            match cell.0.get_mut(i) {
                Some(record) => *record = span.record(word),
                None => return Err(here.map(|s| s.record(word)).collect()),
            }
        }
        Ok(cell)
    }
}

/// How a line's records are kept.
#[derive(Clone, Copy)]
enum Line {
    /// There are none.
    Empty,
    /// As spans, in this place of the pool.
    Spans(u32),
    /// By a cell for each word, in this place of the pool.
    Words(u32),
}

/// What a line keeps.
pub enum Kept<'s> {
    /// Spans.
    Spans(&'s mut Spans),
    /// The cells of its words.
    Words(&'s mut [Cell; LINE]),
}

/// What lines keep, by place.
struct Pool<T> {
    all: Vec<T>,
    free: Vec<u32>,
}

impl<T> Default for Pool<T> {
    fn default() -> Pool<T> {
        Pool { all: Vec::new(), free: Vec::new() }
    }
}

impl<T> Pool<T> {
    fn add(&mut self, new: T) -> u32 {
        match self.free.pop() {
            Some(place) => {
                self.all[place as usize] = new;
                place
            }
            None => {
                self.all.push(new);
                self.all.len() as u32 - 1
            }
        }
    }
}

/// Shadow memory of the device.
#[derive(Default)]
pub struct Shadow {
    pages: Map<u64, u32>,
    lines: Vec<Box<[Line]>>,
    /// Pages that were looked up last, by the lower bits of their numbers; number 0 is none, which nothing is allocated in.
    recent: [(u64, u32); RECENT],
    /// Spans of lines, and those that are free.
    spans: Pool<Spans>,
    /// Cells of lines with one for each word, and those that are free.
    wide: Pool<[Cell; LINE]>,
    lists: Vec<Vec<Record>>,
    spare: Vec<u32>,
}

impl Shadow {
    /// Page and index of the line at an address.
    #[inline(always)]
    fn line(&mut self, address: u64) -> (u32, usize) {
        let page = address / PAGE;
        let (known, index) = self.recent[page as usize % RECENT];
        let index = if known == page { index } else { self.page(page) };
        (index, (address % PAGE / LINE_BYTES) as usize)
    }

    fn page(&mut self, page: u64) -> u32 {
        let lines = &mut self.lines;
        let index = *self.pages.entry(page).or_insert_with(|| {
            lines.push(vec![Line::Empty; (PAGE / LINE_BYTES) as usize].into_boxed_slice());
            lines.len() as u32 - 1
        });
        self.recent[page as usize % RECENT] = (page, index);
        index
    }

    /// The cell of the word at an address.
    #[inline(always)]
    pub fn cell(&mut self, address: u64) -> &mut Cell {
        let (page, line) = self.line(address);
        let place = match self.lines[page as usize][line] {
            Line::Words(place) => place,
            Line::Empty | Line::Spans(_) => self.widen(page, line),
        };
        &mut self.wide.all[place as usize][(address / WORD) as usize % LINE]
    }

    /// What the line at an address keeps.
    #[inline(always)]
    pub fn kept(&mut self, address: u64) -> Kept<'_> {
        let (page, index) = self.line(address);
        let line = &mut self.lines[page as usize][index];
        match *line {
            Line::Words(place) => Kept::Words(&mut self.wide.all[place as usize]),
            Line::Spans(place) => Kept::Spans(&mut self.spans.all[place as usize]),
            Line::Empty => {
                let place = self.spans.add(Spans::NONE);
                *line = Line::Spans(place);
                Kept::Spans(&mut self.spans.all[place as usize])
            }
        }
    }

    /// Gives a line a cell for each word.
    fn widen(&mut self, page: u32, index: usize) -> u32 {
        let mut cells = [Cell::NONE; LINE];
        match self.lines[page as usize][index] {
            Line::Empty => {}
            Line::Words(place) => return place,
            Line::Spans(place) => {
                let spans = self.spans.all[place as usize];
                self.spans.free.push(place);
                for (k, cell) in cells.iter_mut().enumerate() {
                    *cell = match spans.cell(k as u32) {
                        Ok(cell) => cell,
                        Err(records) => self.list(Cell::NONE, &records),
                    };
                }
            }
        }
        let place = self.wide.add(cells);
        self.lines[page as usize][index] = Line::Words(place);
        place
    }

    /// Lets a line keep spans again: this one alone, of all its words, whose records are equal to those in the cells.
    pub fn narrow(&mut self, address: u64, span: Option<Span>) {
        let (page, index) = self.line(address);
        let line = &mut self.lines[page as usize][index];
        if let Line::Words(place) = *line {
            self.wide.free.push(place);
            *line = Line::Empty;
            if let Some(span) = span {
                let mut spans = Spans::NONE;
                spans.push(span);
                *line = Line::Spans(self.spans.add(spans));
            }
        }
    }

    /// Lets `change` update the records of the word at an address.
    pub fn update(&mut self, address: u64, change: impl FnOnce(&mut Vec<Record>), buffer: &mut Vec<Record>) {
        let cell = *self.cell(address);
        *self.cell(address) = self.changed(address, cell, change, buffer);
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
        let list = (second.who == SPILLED).then_some(second.time);
        if first.is_some() {
            buffer.push(first);
        }
        if let Some(list) = list {
            buffer.extend_from_slice(&self.lists[list as usize]);
        } else if second.is_some() {
            buffer.push(second);
        }
        change(buffer);
        if buffer.len() > MOST {
            // Pseudo-random, and reproducible for the same launch.
            let victim = 1 + (address / WORD + u64::from(buffer[MOST].time)) as usize % (MOST - 1);
            buffer.swap_remove(victim);
        }
        if list.is_some() && buffer.len() <= 2 {
            self.drop_list(cell);
        }
        let records = std::mem::take(buffer);
        let cell = self.list(if records.len() > 2 { cell } else { Cell::NONE }, &records);
        *buffer = records;
        cell
    }

    /// A cell with these records; the list of `cell` is used again, if it has one.
    fn list(&mut self, cell: Cell, records: &[Record]) -> Cell {
        if records.len() <= 2 {
            let at = |i: usize| records.get(i).copied().unwrap_or(Record::NONE);
            return Cell([at(0), at(1)]);
        }
        let known = (cell.0[1].who == SPILLED).then_some(cell.0[1].time);
        let list = known.or_else(|| self.spare.pop()).unwrap_or_else(|| {
            self.lists.push(Vec::new());
            self.lists.len() as u32 - 1
        });
        let kept = &mut self.lists[list as usize];
        kept.clear();
        kept.extend_from_slice(&records[1..]);
        Cell([records[0], Record { who: SPILLED, lanes: 1, time: list, site: 0 }])
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
                let whole = from <= at && at + LINE_BYTES <= to;
                match self.lines[page_index as usize][index] {
                    Line::Words(_) => {}
                    Line::Empty => continue,
                    Line::Spans(place) => {
                        let words =
                            |bytes: u64| 1u32.checked_shl((bytes / WORD) as u32).map_or(u32::MAX, |bit| bit - 1);
                        let (first, last) = (from.max(at) - at, to.min(at + LINE_BYTES) - at);
                        let spans = &mut self.spans.all[place as usize];
                        spans.clear(words(last.next_multiple_of(WORD)) & !words(first));
                        if spans.count == 0 {
                            self.spans.free.push(place);
                            self.lines[page_index as usize][index] = Line::Empty;
                        }
                        continue;
                    }
                }
                let mut word = from.max(at) / WORD * WORD;
                while word < to.min(at + LINE_BYTES) {
                    let cell = std::mem::replace(self.cell(word), Cell::NONE);
                    self.drop_list(cell);
                    word += WORD;
                }
                if whole {
                    self.narrow(at, None);
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
    fn rows_of_lanes_are_spans_until_there_are_too_many() {
        let mut shadow = Shadow::default();
        let spans = |shadow: &mut Shadow, at: u64| match shadow.kept(at) {
            Kept::Spans(spans) => spans.all().to_vec(),
            Kept::Words(_) => panic!("a line with cells"),
        };
        let base = 4096 + LINE_BYTES;
        // Two words a lane: lane 8 has the first two.
        let row = Pattern::Row { phase: 16, shift: 1 };
        let a = Span { who: 5, lanes: 1, time: 3, site: 1, words: 0xff, pattern: row };
        let b = Span { who: JOINED | 2, lanes: 0b11, time: 4, site: 2, words: u32::MAX, pattern: row };
        let Kept::Spans(list) = shadow.kept(base) else { panic!("a new line has spans") };
        assert!(list.push(a) && list.push(b));
        let cell = shadow.cell(base + 5 * 4).0;
        assert_eq!((cell[0].lanes, cell[1].who), (1 << 10, JOINED | 10 << 24 | 2), "lane 10 has the sixth");
        assert_eq!(shadow.cell(base + 8 * 4).0[0].who, JOINED | 12 << 24 | 2, "the first ends with the eighth");
        assert!(matches!(shadow.kept(base), Kept::Words(_)));
        shadow.narrow(base, Some(b));
        assert_eq!(spans(&mut shadow, base), [b]);
        shadow.forget(base + 4, 8);
        assert_eq!(spans(&mut shadow, base)[0].words, !0b110);
        shadow.forget(4096, 4096);
        assert_eq!(spans(&mut shadow, base), []);
        let Kept::Spans(list) = shadow.kept(base) else { panic!("it has no cells") };
        assert!((0..SPANS).all(|k| list.push(Span { site: k as u32, ..a })) && !list.push(a));
        let mut buffer = Vec::new();
        let all = |records: &mut Vec<Record>| {
            assert_eq!(records.len(), SPANS);
            assert!(records.iter().all(|r| (r.who, r.lanes) == (5, 1 << 8)));
        };
        shadow.update(base, all, &mut buffer);
    }
}
