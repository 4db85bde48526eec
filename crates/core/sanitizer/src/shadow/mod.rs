//! Shadow memory: per word, the accesses that a later one may race with.
//!
//! Most accesses are rows (lane after lane accesses element after element) or go to one address for all lanes. A line of 32
//! words that was accessed so keeps [`Span`]s: an access of some of its bytes, with the rule by which the lane follows from
//! the byte. One stands in the line itself, which is enough for most memory, several in a list. When it has too many of them, or is
//! accessed in another way, it gets a cell for each word: two inline records of 16 bytes, 8 bytes of shadow per checked byte. If more
//! accesses of a word are mutually unordered (reads, atomics), they spill to a list of bounded length: [`LIMIT`]. The same access by several
//! warps of a CTA is one span or record ([`Record::join`]): tiles that a whole CTA reads, bins that all threads update.

mod cell;
mod pool;
mod record;
mod span;

pub use cell::{Cell, Words};
pub use record::{AGENT, MAX_SITES, MAX_WARPS, Record, WarpLanes};
pub use span::{Pattern, Span, Spans, words};

use crate::{clock::Time, hash::Map};
use cell::{Records, Wide};
use parking_lot::Mutex;
use pool::Pool;

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
/// Lines of a page.
const LINES: usize = (PAGE / LINE_BYTES) as usize;
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
    /// A CTA and the form of its accesses: `places` says which of the records are those of its warps, but for shared ones.
    pub owner: (u32, u32),
    pub places: [u8; 32],
}

/// How a line's records are kept.
#[derive(Clone, Copy)]
enum Line {
    /// As one span, or as an empty one.
    One(Span),
    /// As spans, in this place of the pool.
    Spans(u32),
    /// Word by word.
    Words(Wide),
}

impl Line {
    const NONE: Line = Line::One(Span::NONE);
}

/// The lines of a page.
struct Page(Box<[Line; LINES]>);

impl Default for Page {
    fn default() -> Page {
        Page(Box::new([Line::NONE; LINES]))
    }
}

/// Where a line is kept.
#[derive(Clone, Copy, Default)]
pub struct Place {
    page: u32,
    line: u32,
}

/// What a line keeps.
pub enum Kept<'s> {
    /// One span, or an empty one.
    One(&'s mut Span),
    /// Spans.
    Spans(&'s mut Spans),
    /// Records word by word.
    Words(Words<'s>),
}

/// What makes up shadow memory.
#[derive(Default)]
struct Storage {
    /// The lines of pages.
    lines: Pool<Page>,
    /// Spans of lines.
    spans: Pool<Spans>,
    /// The records of lines that are kept word by word, the first and the second ones.
    wide: Pool<Records>,
    /// Records of words.
    lists: Pool<List>,
}

impl Storage {
    /// Bytes that it takes at least.
    fn size(&self) -> usize {
        let lines = self.lines.all.len() * LINES * size_of::<Line>();
        lines + self.wide.all.len() * size_of::<Records>() + self.spans.all.len() * size_of::<Spans>()
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
    /// The place of the line at an address.
    #[inline(always)]
    pub fn place(&mut self, address: u64) -> Place {
        let page = address / PAGE;
        let (known, index) = self.recent[page as usize % RECENT];
        let page = if known == page { index } else { self.page(page) };
        Place { page, line: (address % PAGE / LINE_BYTES) as u32 }
    }

    #[cold]
    fn page(&mut self, page: u64) -> u32 {
        let pool = &mut self.storage.lines;
        let index = *self.pages.entry(page).or_insert_with(|| {
            let known = pool.all.len();
            let place = pool.place();
            if (place as usize) < known {
                pool.all[place as usize].0.fill(Line::NONE);
            }
            place
        });
        self.recent[page as usize % RECENT] = (page, index);
        index
    }

    #[inline(always)]
    fn line(&mut self, Place { page, line }: Place) -> &mut Line {
        &mut self.storage.lines.all[page as usize].0[line as usize % LINES]
    }

    /// The words of the line at an address, from now on kept one by one.
    #[inline(always)]
    pub fn words(&mut self, address: u64) -> Words<'_> {
        let place = self.place(address);
        if !matches!(self.line(place), Line::Words(_)) {
            self.widen(place);
        }
        let Storage { lines, wide: pool, .. } = &mut self.storage;
        match &mut lines.all[place.page as usize].0[place.line as usize % LINES] {
            Line::Words(wide) => Words { wide, pool },
            _ => unreachable!("they have just become so"),
        }
    }

    /// The cell of the word at an address.
    #[inline(always)]
    pub fn cell(&mut self, address: u64) -> Cell {
        self.words(address).get((address / WORD) as u32)
    }

    /// Gives the word at an address other records.
    #[inline(always)]
    pub fn set(&mut self, address: u64, cell: Cell) {
        self.words(address).set((address / WORD) as u32, cell);
    }

    /// Loads what is kept of words that will be looked at one after the other, so that the processor need not wait for each of them.
    pub fn warm(&mut self, addresses: impl Iterator<Item = u64>) {
        let mut warmth = 0u32;
        for address in addresses {
            let place = self.place(address);
            warmth = warmth.wrapping_add(self.touch(place, address));
        }
        std::hint::black_box(warmth);
    }

    /// Something of what is kept of the word at an address, in the line at that place.
    #[inline(always)]
    pub fn touch(&mut self, place: Place, address: u64) -> u32 {
        let Storage { lines, spans, wide: pool, .. } = &mut self.storage;
        match &lines.all[place.page as usize].0[place.line as usize % LINES] {
            Line::One(span) => span.time,
            Line::Spans(place) => spans.all[*place as usize].list.len() as u32,
            Line::Words(wide) => wide.first(pool, (address / WORD) as usize % LINE).map_or(0, |r| r.time),
        }
    }

    /// What the line at a place keeps.
    #[inline(always)]
    pub fn kept(&mut self, place: Place) -> Kept<'_> {
        let Storage { lines, spans, wide: pool, .. } = &mut self.storage;
        match &mut lines.all[place.page as usize].0[place.line as usize % LINES] {
            Line::One(span) => Kept::One(span),
            Line::Spans(place) => Kept::Spans(&mut spans.all[*place as usize]),
            Line::Words(wide) => Kept::Words(Words { wide, pool }),
        }
    }

    /// The records of the word at an address.
    pub fn records(&self, address: u64) -> Vec<Record> {
        let Some(page) = self.pages.get(&(address / PAGE)) else { return Vec::new() };
        let word = (address / WORD) as usize % LINE;
        match self.storage.lines.all[*page as usize].0[(address % PAGE / LINE_BYTES) as usize] {
            Line::One(span) => span::records(&[span], word as u32),
            Line::Spans(place) => span::records(&self.storage.spans.all[place as usize].list, word as u32),
            Line::Words(wide) => {
                let cell = wide.get(&self.storage.wide, word);
                let Cell([first, second]) = cell;
                let more: &[Record] = match cell.list() {
                    Some(list) => &self.storage.lists.all[list as usize].records,
                    None => &[second],
                };
                std::iter::once(&first).chain(more).filter(|r| r.is_some()).copied().collect()
            }
        }
    }

    /// Gives a line with one span a list of them; `writes` says whether that one is of a write.
    pub fn spans(&mut self, place: Place, writes: impl Fn(&Span) -> bool) -> Option<&mut Spans> {
        let Storage { lines, spans, .. } = &mut self.storage;
        let line = &mut lines.all[place.page as usize].0[place.line as usize % LINES];
        let place = match *line {
            Line::One(span) => {
                let place = spans.place();
                spans.all[place as usize].set(span, writes(&span));
                *line = Line::Spans(place);
                place
            }
            Line::Spans(place) => place,
            Line::Words(_) => return None,
        };
        Some(&mut spans.all[place as usize])
    }

    /// Lets a line keep records word by word.
    pub fn widen(&mut self, place: Place) {
        let (mut one, mut several) = (Span::NONE, None);
        let line = *self.line(place);
        match line {
            Line::Words(_) => return,
            Line::One(span) => one = span,
            Line::Spans(at) => several = Some((at, std::mem::take(&mut self.storage.spans.all[at as usize]))),
        }
        let spans = several.as_ref().map_or(std::slice::from_ref(&one), |(_, spans)| &spans.list);
        let mut wide = Wide::new(&mut self.storage.wide);
        let more = Words { wide: &mut wide, pool: &mut self.storage.wide }.fill(spans);
        for k in crate::lanes(more) {
            let cell = self.list(Cell::NONE, &span::records(spans, k));
            wide.set(&mut self.storage.wide, k as usize, cell);
        }
        if let Some((place, spans)) = several {
            self.storage.spans.all[place as usize] = spans;
            self.storage.spans.free.push(place);
        }
        *self.line(place) = Line::Words(wide);
    }

    /// Lets a line keep spans again: this one alone, of all its words, whose records are equal to those that it has word by word.
    pub fn narrow(&mut self, place: Place, span: Option<Span>) {
        if let Line::Words(wide) = *self.line(place) {
            wide.free(&mut self.storage.wide);
            *self.line(place) = Line::One(span.unwrap_or(Span::NONE));
        }
    }

    /// The records of a word of the line at a place, if they are in a list.
    #[inline(always)]
    pub fn spilled(&mut self, place: Place, word: u32) -> Option<(&mut Record, &mut List)> {
        let Storage { lines, wide: pool, lists, .. } = &mut self.storage;
        let Line::Words(wide) = &lines.all[place.page as usize].0[place.line as usize % LINES] else { return None };
        let list = wide.list(pool, word as usize % LINE)?;
        Some((wide.first(pool, word as usize % LINE)?, &mut lists.all[list as usize]))
    }

    /// Lets `change` update the records of the word at an address.
    pub fn update(&mut self, address: u64, change: impl FnOnce(&mut Vec<Record>), buffer: &mut Vec<Record>) {
        let cell = self.cell(address);
        let cell = self.changed(address, cell, change, buffer);
        self.set(address, cell);
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
        let list = cell.list();
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
        let list = cell.list().unwrap_or_else(|| self.storage.lists.place());
        let kept = &mut self.storage.lists.all[list as usize];
        kept.records.clear();
        kept.records.extend_from_slice(&records[1..]);
        (kept.alike, kept.owner) = (0, (0, 0));
        Cell::spilled(records[0], list)
    }

    /// Drops what a cell keeps elsewhere.
    fn drop_list(&mut self, cell: Cell) {
        if let Some(list) = cell.list() {
            self.storage.lists.all[list as usize].records.clear();
            self.storage.lists.free.push(list);
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
                let line = &mut self.storage.lines.all[page_index as usize].0[index];
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
                    let cell = self.cell(word);
                    self.drop_list(cell);
                    self.set(word, Cell::NONE);
                    word += WORD;
                }
                if whole {
                    self.narrow(Place { page: page_index, line: index as u32 }, None);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{record::JOINED, span::SPANS, *};

    fn kept(shadow: &mut Shadow, at: u64) -> Kept<'_> {
        let place = shadow.place(at);
        shadow.kept(place)
    }

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
        let spans = |shadow: &mut Shadow, at: u64| match kept(shadow, at) {
            Kept::One(span) => [*span].into_iter().filter(|span| span.bytes != 0).collect(),
            Kept::Spans(spans) => spans.all().to_vec(),
            Kept::Words(_) => panic!("a line with cells"),
        };
        let base = 4096 + LINE_BYTES;
        // Two words a lane: lane 8 has the first two.
        let row = Pattern::row(-64, 8, 8);
        let a = Span { who: 5, lanes: 1, time: 3, site: 1, bytes: u128::from(u32::MAX), pattern: row };
        let b = Span { who: JOINED | 2, lanes: 0b11, time: 4, site: 2, bytes: u128::MAX, pattern: row };
        let place = shadow.place(base);
        let list = shadow.spans(place, |_| false).expect("a new line has spans");
        assert!(list.push(a, false) && list.push(b, true));
        let cell = shadow.cell(base + 5 * 4).0;
        assert_eq!((cell[0].lanes, cell[1].who), (1 << 10, JOINED | 10 << 24 | 2), "lane 10 has the sixth");
        assert_eq!(shadow.cell(base + 8 * 4).0[0].who, JOINED | 12 << 24 | 2, "the first ends with the eighth");
        assert!(matches!(kept(&mut shadow, base), Kept::Words(_)));
        shadow.narrow(place, Some(b));
        assert_eq!(spans(&mut shadow, base), [b]);
        shadow.forget(base + 4, 8);
        assert_eq!(spans(&mut shadow, base)[0].bytes, !0xff0);
        shadow.forget(4096, 4096);
        assert_eq!(spans(&mut shadow, base), []);
        let list = shadow.spans(place, |_| false).expect("it keeps no words");
        assert!((0..SPANS).all(|k| list.push(Span { site: k as u32, ..a }, true)) && !list.push(a, true));
        let mut buffer = Vec::new();
        let all = |records: &mut Vec<Record>| {
            assert_eq!(records.len(), SPANS);
            assert!(records.iter().all(|r| (r.who, r.lanes) == (5, 1 << 8)));
        };
        shadow.update(base, all, &mut buffer);
    }
}
