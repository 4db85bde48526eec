//! Shadow memory: per word, the accesses that a later one may race with.
//!
//! Most accesses are rows (lane after lane accesses element after element) or go to one address for all lanes. A line of 32
//! words that was accessed so keeps [`Span`]s: an access of some of its bytes, with the rule by which the lane follows from
//! the byte. One stands in the line itself, which is enough for most memory, several in a list. When it has too many of them, or is
//! accessed in another way, it gets a cell for each word: two inline records of 16 bytes, 8 bytes of shadow per checked byte. If more
//! accesses of a word are mutually unordered (reads, atomics), they spill to a list of bounded length: [`LIMIT`]. The same access by several
//! warps of a CTA is one span or record ([`Record::join`]): tiles that a whole CTA reads, bins that all threads update.

mod record;
mod span;

pub use record::{AGENT, MAX_SITES, MAX_WARPS, Record, WarpLanes};
pub use span::{Pattern, Span, Spans, words};

use crate::{clock::Time, hash::Map};
use parking_lot::Mutex;

/// Limit of records per word. Beyond it a read is evicted, and a race is missed only if that was the only unordered
/// access.
pub const LIMIT: usize = 32;
/// Size of a page of shadow memory, in bytes of device memory.
const PAGE: u64 = 4096;
/// Size of a word in bytes.
pub const WORD: u64 = 4;
/// Pages that are found at once.
const RECENT: usize = 2048;
/// No address is in this page.
const NO_PAGE: u64 = u64::MAX;
/// Words of a line.
pub const LINE: usize = 32;
/// Size of a line in bytes.
pub const LINE_BYTES: u64 = LINE as u64 * WORD;
/// Marks a second record as the index of a list.
const SPILLED: u32 = u32::MAX;

/// The records of a word.
#[derive(Clone, Copy)]
pub struct Cell([Record; 2]);

impl Default for Cell {
    fn default() -> Cell {
        Cell::NONE
    }
}

impl Cell {
    const NONE: Cell = Cell([Record::NONE; 2]);

    /// Both records, unless there is a list.
    #[inline(always)]
    pub fn records(&mut self) -> Option<&mut [Record; 2]> {
        (self.0[1].who != SPILLED).then_some(&mut self.0)
    }
}

/// The records of a word but the first one.
#[derive(Default)]
pub struct List {
    pub records: Vec<Record>,
    /// Tells what all records of the word have in common, the first one included, if it is known that they do not race; else 0.
    pub alike: u32,
    /// The time of the latest one, if that is known.
    pub latest: Time,
    /// Which of the records were added last, if that is known.
    pub recent: [u8; 4],
}

/// How a line's records are kept.
#[derive(Clone, Copy)]
enum Line {
    /// As one span, or as an empty one.
    One(Span),
    /// As spans, in this place of the pool.
    Spans(u32),
    /// By a cell for each word, in this place of the pool.
    Words(u32),
}

impl Line {
    const NONE: Line = Line::One(Span::NONE);
}

/// What a line keeps.
pub enum Kept<'s> {
    /// One span, or an empty one.
    One(&'s mut Span),
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

impl<T: Default> Pool<T> {
    /// A free place, where there may be something from before.
    fn place(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.all.push(T::default());
            self.all.len() as u32 - 1
        })
    }

    /// Makes all places free.
    fn clear(&mut self) {
        self.free.clear();
        self.free.extend((0..self.all.len() as u32).rev());
    }
}

/// What makes up shadow memory.
#[derive(Default)]
struct Storage {
    /// The lines of pages.
    lines: Pool<Box<[Line]>>,
    /// Spans of lines.
    spans: Pool<Spans>,
    /// Cells of lines with one for each word.
    wide: Pool<[Cell; LINE]>,
    /// Records of words.
    lists: Pool<List>,
}

impl Storage {
    /// Bytes that it takes at least.
    fn size(&self) -> usize {
        let lines = self.lines.all.len() * (PAGE / LINE_BYTES) as usize * size_of::<Line>();
        lines + self.wide.all.len() * size_of::<[Cell; LINE]>() + self.spans.all.len() * size_of::<Spans>()
    }
}

/// Storage that launches have left for later ones, since the host takes long to provide memory.
static LEFT: Mutex<Vec<Storage>> = Mutex::new(Vec::new());
/// The most that is kept: of so many launches, each of so many bytes.
const MAX_LEFT: usize = 2;
const MAX_BYTES: usize = 64 << 20;

/// Shadow memory of the device.
pub struct Shadow {
    pages: Map<u64, u32>,
    /// Pages that were looked up last, by the lower bits of their numbers; [`NO_PAGE`] is none. Null pointers come here, too.
    recent: Box<[(u64, u32)]>,
    storage: Storage,
}

impl Default for Shadow {
    fn default() -> Shadow {
        let storage = LEFT.lock().pop().unwrap_or_default();
        Shadow { pages: Map::default(), recent: vec![(NO_PAGE, 0); RECENT].into(), storage }
    }
}

impl Drop for Shadow {
    fn drop(&mut self) {
        let mut storage = std::mem::take(&mut self.storage);
        let Storage { lines, spans, wide, lists } = &mut storage;
        lines.clear();
        spans.clear();
        wide.clear();
        lists.clear();
        let mut left = LEFT.lock();
        if left.len() < MAX_LEFT && storage.size() <= MAX_BYTES {
            left.push(storage);
        }
    }
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
        let pool = &mut self.storage.lines;
        let index = *self.pages.entry(page).or_insert_with(|| {
            let place = pool.place();
            match &mut *pool.all[place as usize] {
                [] => pool.all[place as usize] = vec![Line::NONE; (PAGE / LINE_BYTES) as usize].into(),
                lines => lines.fill(Line::NONE),
            }
            place
        });
        self.recent[page as usize % RECENT] = (page, index);
        index
    }

    /// The cell of the word at an address.
    #[inline(always)]
    pub fn cell(&mut self, address: u64) -> &mut Cell {
        let (page, line) = self.line(address);
        let place = match self.storage.lines.all[page as usize][line] {
            Line::Words(place) => place,
            Line::One(_) | Line::Spans(_) => self.widen(page, line),
        };
        &mut self.storage.wide.all[place as usize][(address / WORD) as usize % LINE]
    }

    /// Loads what is kept of words that will be looked at one after the other, so that the processor need not wait for each of them.
    pub fn warm(&mut self, addresses: impl Iterator<Item = u64>) {
        let warmth = addresses.fold(0, |sum: u32, address| {
            let (page, index) = self.line(address);
            sum.wrapping_add(match &self.storage.lines.all[page as usize][index] {
                Line::One(span) => span.time,
                Line::Spans(place) => self.storage.spans.all[*place as usize].list.len() as u32,
                Line::Words(place) => {
                    self.storage.wide.all[*place as usize][(address / WORD) as usize % LINE].0[0].time
                }
            })
        });
        std::hint::black_box(warmth);
    }

    /// What the line at an address keeps.
    #[inline(always)]
    pub fn kept(&mut self, address: u64) -> Kept<'_> {
        let (page, index) = self.line(address);
        match &mut self.storage.lines.all[page as usize][index] {
            Line::One(span) => Kept::One(span),
            Line::Spans(place) => Kept::Spans(&mut self.storage.spans.all[*place as usize]),
            Line::Words(place) => Kept::Words(&mut self.storage.wide.all[*place as usize]),
        }
    }

    /// The records of the word at an address.
    pub fn records(&self, address: u64) -> Vec<Record> {
        let Some(page) = self.pages.get(&(address / PAGE)) else { return Vec::new() };
        let word = (address / WORD) as usize % LINE;
        match self.storage.lines.all[*page as usize][(address % PAGE / LINE_BYTES) as usize] {
            Line::One(span) => span::records(&[span], word as u32),
            Line::Spans(place) => span::records(&self.storage.spans.all[place as usize].list, word as u32),
            Line::Words(place) => {
                let Cell([first, second]) = self.storage.wide.all[place as usize][word];
                let more: &[Record] = match second.who == SPILLED {
                    true => &self.storage.lists.all[second.time as usize].records,
                    false => &[second],
                };
                std::iter::once(&first).chain(more).filter(|r| r.is_some()).copied().collect()
            }
        }
    }

    /// Gives a line with one span a list of them; `writes` says whether that one is of a write.
    pub fn spans(&mut self, address: u64, writes: impl Fn(&Span) -> bool) -> Option<&mut Spans> {
        let (page, index) = self.line(address);
        let line = &mut self.storage.lines.all[page as usize][index];
        let place = match *line {
            Line::One(span) => {
                let place = self.storage.spans.place();
                self.storage.spans.all[place as usize].set(span, writes(&span));
                *line = Line::Spans(place);
                place
            }
            Line::Spans(place) => place,
            Line::Words(_) => return None,
        };
        Some(&mut self.storage.spans.all[place as usize])
    }

    /// Gives a line a cell for each word.
    fn widen(&mut self, page: u32, index: usize) -> u32 {
        let mut cells = [Cell::NONE; LINE];
        let (mut one, mut several) = (None, None);
        match self.storage.lines.all[page as usize][index] {
            Line::Words(place) => return place,
            Line::One(span) => one = Some(span),
            Line::Spans(place) => several = Some((place, std::mem::take(&mut self.storage.spans.all[place as usize]))),
        }
        let spans = several.as_ref().map_or(one.as_slice(), |(_, spans)| &spans.list);
        for k in crate::lanes(span::fill(spans, &mut cells)) {
            cells[k as usize] = self.list(Cell::NONE, &span::records(spans, k));
        }
        if let Some((place, spans)) = several {
            self.storage.spans.all[place as usize] = spans;
            self.storage.spans.free.push(place);
        }
        let place = self.storage.wide.place();
        self.storage.wide.all[place as usize] = cells;
        self.storage.lines.all[page as usize][index] = Line::Words(place);
        place
    }

    /// Lets a line keep spans again: this one alone, of all its words, whose records are equal to those in the cells.
    pub fn narrow(&mut self, address: u64, span: Option<Span>) {
        let (page, index) = self.line(address);
        let line = &mut self.storage.lines.all[page as usize][index];
        if let Line::Words(place) = *line {
            self.storage.wide.free.push(place);
            *line = Line::One(span.unwrap_or(Span::NONE));
        }
    }

    /// The records of the word at an address, if they are in a list.
    #[inline(always)]
    pub fn spilled(&mut self, address: u64) -> Option<(&mut Record, &mut List)> {
        let (page, line) = self.line(address);
        let Line::Words(place) = self.storage.lines.all[page as usize][line] else { return None };
        let [first, second] = &mut self.storage.wide.all[place as usize][(address / WORD) as usize % LINE].0;
        (second.who == SPILLED).then(|| (first, &mut self.storage.lists.all[second.time as usize]))
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
            buffer.extend_from_slice(&self.storage.lists.all[list as usize].records);
        } else if second.is_some() {
            buffer.push(second);
        }
        change(buffer);
        if buffer.len() > LIMIT {
            // Pseudo-random, and reproducible for the same launch.
            let victim = 1 + (address / WORD + u64::from(buffer[LIMIT].time)) as usize % (LIMIT - 1);
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
        let list = known.unwrap_or_else(|| self.storage.lists.place());
        let kept = &mut self.storage.lists.all[list as usize];
        kept.records.clear();
        kept.records.extend_from_slice(&records[1..]);
        kept.alike = 0;
        Cell([records[0], Record { who: SPILLED, lanes: 1, time: list, site: 0 }])
    }

    /// Drops what a cell keeps elsewhere.
    fn drop_list(&mut self, cell: Cell) {
        let second = cell.0[1];
        if second.who == SPILLED {
            self.storage.lists.all[second.time as usize].records.clear();
            self.storage.lists.free.push(second.time);
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
                let below = |bytes: u64| 1u128.checked_shl(bytes as u32).map_or(u128::MAX, |bit| bit - 1);
                let (first, last) = (from.max(at) - at, to.min(at + LINE_BYTES) - at);
                let gone = below(last) & !below(first);
                let line = &mut self.storage.lines.all[page_index as usize][index];
                match line {
                    Line::Words(_) => {}
                    Line::One(span) => {
                        span.bytes &= !gone;
                        continue;
                    }
                    Line::Spans(place) => {
                        let spans = &mut self.storage.spans.all[*place as usize];
                        spans.clear(gone);
                        if spans.list.is_empty() {
                            self.storage.spans.free.push(*place);
                            *line = Line::NONE;
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
    use super::{record::JOINED, span::SPANS, *};

    #[test]
    fn the_first_access_may_be_one_through_a_null_pointer() {
        let mut shadow = Shadow::default();
        assert!(shadow.cell(0).records().is_some());
        assert!(shadow.records(0).is_empty());
    }

    #[test]
    fn records_of_a_word_come_back_and_lists_end() {
        let (mut shadow, mut buffer) = (Shadow::default(), Vec::new());
        for i in 0..200u32 {
            shadow.update(4096 + 8, |r| r.push(Record::new((i, 1), i + 1, 7, 0xf)), &mut buffer);
        }
        shadow.update(
            4096 + 8,
            |r| {
                assert_eq!(r.len(), LIMIT);
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
        let group = |cta, warp, lanes| WarpLanes { cta, warp, lanes };
        let of = |r: Record| r.warp_lanes(8).collect::<Vec<_>>();
        // Warp 3 of CTA 2, of CTAs of 8 warps.
        let mut record = Record::new((2 * 8 + 3, 1 << 5), 9, 1, 0xf);
        assert_eq!(of(record), [group(2, 3, 1 << 5)]);
        assert!(record.join(group(2, 6, 1 << 5), 8) && record.join(group(2, 0, 1 << 5), 8));
        assert_eq!(of(record), [group(2, 0, 1 << 5), group(2, 3, 1 << 5), group(2, 6, 1 << 5)]);
        let before = record;
        assert!(!record.join(group(2, 1, 1 << 6), 8), "other lanes");
        assert!(!record.join(group(1, 1, 1 << 5), 8), "another CTA");
        assert!(!record.join(group(2, 1, 0b11), 8), "lanes that have no number");
        assert_eq!(record, before);
        let mut own = Record::new((7, 0b11), 9, 1, 0xf);
        assert!(own.join(group(0, 7, 0b100), 8));
        assert_eq!(of(own), [group(0, 7, 0b111)]);
        let mut agent = Record::new((7 | AGENT, 1), 9, 1, 0xf);
        assert!(!agent.join(group(0, 6, 1), 8) && !agent.join(group(0, 7, 1), 8));
    }

    #[test]
    fn rows_of_lanes_are_spans_until_there_are_too_many() {
        let mut shadow = Shadow::default();
        let spans = |shadow: &mut Shadow, at: u64| match shadow.kept(at) {
            Kept::One(span) => [*span].into_iter().filter(|span| span.bytes != 0).collect(),
            Kept::Spans(spans) => spans.all().to_vec(),
            Kept::Words(_) => panic!("a line with cells"),
        };
        let base = 4096 + LINE_BYTES;
        // Two words a lane: lane 8 has the first two.
        let row = Pattern::row(-64, 8, 8);
        let a = Span { who: 5, lanes: 1, time: 3, site: 1, bytes: u128::from(u32::MAX), pattern: row };
        let b = Span { who: JOINED | 2, lanes: 0b11, time: 4, site: 2, bytes: u128::MAX, pattern: row };
        let list = shadow.spans(base, |_| false).expect("a new line has spans");
        assert!(list.push(a, false) && list.push(b, true));
        let cell = shadow.cell(base + 5 * 4).0;
        assert_eq!((cell[0].lanes, cell[1].who), (1 << 10, JOINED | 10 << 24 | 2), "lane 10 has the sixth");
        assert_eq!(shadow.cell(base + 8 * 4).0[0].who, JOINED | 12 << 24 | 2, "the first ends with the eighth");
        assert!(matches!(shadow.kept(base), Kept::Words(_)));
        shadow.narrow(base, Some(b));
        assert_eq!(spans(&mut shadow, base), [b]);
        shadow.forget(base + 4, 8);
        assert_eq!(spans(&mut shadow, base)[0].bytes, !0xff0);
        shadow.forget(4096, 4096);
        assert_eq!(spans(&mut shadow, base), []);
        let list = shadow.spans(base, |_| false).expect("it has no cells");
        assert!((0..SPANS).all(|k| list.push(Span { site: k as u32, ..a }, true)) && !list.push(a, true));
        let mut buffer = Vec::new();
        let all = |records: &mut Vec<Record>| {
            assert_eq!(records.len(), SPANS);
            assert!(records.iter().all(|r| (r.who, r.lanes) == (5, 1 << 8)));
        };
        shadow.update(base, all, &mut buffer);
    }
}
