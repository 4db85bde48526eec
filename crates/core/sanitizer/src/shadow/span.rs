//! Accesses of a line's words in rows of lanes, or by all lanes at one address.

use super::{
    Cell, LIMIT, LINE, Record,
    record::{JOINED, MAX_CTAS, pattern},
};
use crate::clock::Time;

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
    /// An empty one.
    pub const NONE: Span = Span { who: 0, lanes: 0, time: 0, site: 0, words: 0, pattern: Pattern::Same };

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
        if self.who & JOINED != 0 { self.who & (MAX_CTAS - 1) } else { self.who / warps }
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
        if cta >= MAX_CTAS {
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

/// The maximum number of spans of a line: [`LIMIT`] for each half of it, since rows of 16 threads are common.
pub(super) const SPANS: usize = 2 * LIMIT;

/// The spans of a line that are not empty.
#[derive(Default)]
pub struct Spans {
    pub(super) list: Vec<Span>,
    /// Whether some may be of writes.
    written: bool,
}

impl Spans {
    /// This one alone, unless it is empty.
    pub(super) fn set(&mut self, span: Span, written: bool) {
        self.list.clear();
        self.list.extend(Some(span).filter(|span| span.words != 0));
        self.written = written;
    }

    /// All of them.
    #[inline(always)]
    pub fn all(&mut self) -> &mut [Span] {
        &mut self.list
    }

    /// Whether some may be of writes.
    #[inline(always)]
    pub fn is_written(&self) -> bool {
        self.written
    }

    /// Adds one of a read or a write; false if there is no room.
    #[inline(always)]
    pub fn push(&mut self, span: Span, writes: bool) -> bool {
        let fits = self.list.len() < SPANS;
        if fits {
            self.list.push(span);
            self.written |= writes;
        }
        fits
    }

    /// Adds one of a read, and drops another read if there are too many of each word, as [`super::Shadow::update`] does; false if there is no
    /// room.
    #[inline(always)]
    pub fn push_read(&mut self, span: Span) -> bool {
        if self.push(span, false) {
            return true;
        }
        let same = |s: &Span| s.words & span.words == span.words;
        if self.written || self.list.iter().filter(|s| same(s)).count() < LIMIT {
            return false;
        }
        // Pseudo-random, and reproducible for the same launch.
        let start = span.time.wrapping_add(span.who) as usize % SPANS;
        let victim = (start..SPANS).chain(0..start).find(|i| same(&self.list[*i]));
        victim.into_iter().for_each(|i| self.list[i] = span);
        true
    }

    /// Removes words from all spans.
    #[inline(always)]
    pub fn clear(&mut self, words: u32) {
        self.list.retain_mut(|span| {
            span.words &= !words;
            span.words != 0
        });
        self.written &= !self.list.is_empty();
    }
}

/// Fills the cells of a line; returns the words with more records than a cell holds.
pub(super) fn fill(spans: &[Span], cells: &mut [Cell; LINE]) -> u32 {
    let (mut one, mut two, mut more) = (0, 0, 0);
    for span in spans {
        let fresh = span.words & !one;
        let second = span.words & one & !two;
        more |= span.words & two;
        (one, two) = (one | span.words, two | second);
        for (words, at) in [(fresh, 0), (second, 1)] {
            let mut left = words;
            while left != 0 {
                let k = left.trailing_zeros();
                left &= left - 1;
                cells[k as usize].0[at] = span.record(k);
            }
        }
    }
    more
}

/// The records of a word.
pub(super) fn records(spans: &[Span], word: u32) -> Vec<Record> {
    spans.iter().filter(|s| s.words >> word & 1 == 1).map(|s| s.record(word)).collect()
}
