//! Accesses of a line's bytes in rows of lanes, or by all lanes at one address.

use super::{
    LIMIT, Record,
    record::{JOINED, MAX_CTAS, pattern},
};
use crate::clock::Time;

/// How lanes access the bytes of a span.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pattern {
    /// All of its lanes access all of its bytes.
    Same,
    /// Each byte is accessed by one lane: byte `k` of the line by lane `(k + phase) / stride`, or, where addresses decrease from lane to lane, by
    /// lane `(phase - k) / -stride`.
    Row { phase: i32, stride: i16, size: u8 },
}

impl Pattern {
    /// That of a row whose lane 0 begins `offset` bytes after the line. The stride is no less than the size, and shorter than a line.
    #[inline(always)]
    pub fn row(offset: i64, stride: i64, size: u32) -> Pattern {
        let phase = if stride > 0 { -offset } else { offset - stride - 1 };
        Pattern::Row { phase: phase as i32, stride: stride as i16, size: size as u8 }
    }

    /// The lane that accesses a byte of the line, in a row.
    #[inline(always)]
    fn lane(phase: i32, stride: i16, byte: u32) -> u32 {
        let (byte, stride) = (byte as i32, i32::from(stride));
        (if stride > 0 { (phase + byte) / stride } else { (phase - byte) / -stride }) as u32 & 31
    }

    /// Whether each byte that two accesses of a line have in common certainly belongs to the same lane in both of these rows.
    #[inline(always)]
    pub fn agrees(self, other: Pattern) -> bool {
        match (self, other) {
            (Pattern::Row { phase, stride, size }, Pattern::Row { phase: phase2, stride: stride2, size: size2 }) => {
                let apart = phase.abs_diff(phase2);
                // Parts of the same structure.
                let inside = || apart + u32::from(size.max(size2)) <= u32::from(stride.unsigned_abs());
                stride == stride2 && (apart == 0 || inside())
            }
            _ => false,
        }
    }
}

/// Accesses of bytes of a line by a warp, or by several warps of a CTA, by one instruction.
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
    /// The bytes; none in an empty span.
    pub bytes: u128,
    /// How lanes access them.
    pub pattern: Pattern,
}

/// The words that have some of these bytes of a line.
pub fn words(mut bytes: u128) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let word = (bytes != 0).then(|| bytes.trailing_zeros() / 4)?;
        bytes &= !(0xf << (4 * word));
        Some(word)
    })
}

impl Span {
    /// An empty one.
    pub const NONE: Span = Span { who: 0, lanes: 0, time: 0, site: 0, bytes: 0, pattern: Pattern::Same };

    /// The records of one of its words: one for each lane, or for all that access the same bytes.
    pub fn records(&self, word: u32) -> impl Iterator<Item = Record> + use<> {
        let Span { who, lanes, time, site, bytes, pattern } = *self;
        let mut left = (bytes >> (4 * word)) as u32 & 0xf;
        std::iter::from_fn(move || {
            let byte = 4 * word + (left != 0).then(|| left.trailing_zeros())?;
            let (who, lanes, mask) = match pattern {
                Pattern::Same => (who, lanes, left),
                Pattern::Row { phase, stride, size } => {
                    let lane = Pattern::lane(phase, stride, byte);
                    let whole = size >= 4 || left.is_power_of_two();
                    let same = |k: &u32| Pattern::lane(phase, stride, 4 * word + k) == lane;
                    let mask =
                        if whole { left } else { crate::lanes(left).filter(same).fold(0, |all, k| all | 1 << k) };
                    if who & JOINED != 0 { (who | lane << 24, lanes, mask) } else { (who, 1 << lane, mask) }
                }
            };
            left &= !mask;
            Some(Record::new((who, lanes), time, site, mask))
        })
    }

    /// Whether it is an access by one lane, other than one of a row.
    #[inline(always)]
    pub fn is_of_lane(&self) -> bool {
        self.pattern == Pattern::Same && self.lanes.is_power_of_two() && self.who & JOINED == 0
    }

    /// Lets it stand for an access of more bytes of the line by the same lane and instruction, if nothing was released since.
    #[inline(always)]
    pub fn grow(&mut self, new: &Span, published: Time) -> bool {
        let same = (self.site, self.who, self.lanes, self.pattern) == (new.site, new.who, new.lanes, new.pattern);
        let grows = new.is_of_lane() && same && self.time > published;
        self.bytes |= if grows { new.bytes } else { 0 };
        grows
    }

    /// The CTA, in a launch with `warps` warps per CTA.
    #[inline]
    pub fn cta(&self, warps: u32) -> u32 {
        if self.who & JOINED != 0 { self.who & (MAX_CTAS - 1) } else { self.who / warps }
    }

    /// Merges an access of the same bytes by the same instruction, by another warp or by other lanes; false if they cannot share
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

/// The maximum number of spans of a line: [`LIMIT`] for each half of it, since rows of 16 threads are common, and others beside them.
pub(super) const SPANS: usize = 3 * LIMIT;

/// The spans of a line that are not empty.
#[derive(Default)]
pub struct Spans {
    pub(super) list: Vec<Span>,
    /// Whether some may be of writes.
    written: bool,
    /// The time of the latest one.
    latest: Time,
    /// Which were added last.
    recent: [u8; 4],
    /// Bytes that at least [`LIMIT`] of them have.
    crowded: [u128; 2],
}

impl Spans {
    /// This one alone, unless it is empty.
    pub(super) fn set(&mut self, span: Span, written: bool) {
        self.list.clear();
        self.list.extend(Some(span).filter(|span| span.bytes != 0));
        (self.written, self.latest, self.recent, self.crowded) = (written, span.time, [0; 4], [0; 2]);
    }

    /// The time of the latest one.
    #[inline(always)]
    pub fn latest(&self) -> Time {
        self.latest
    }

    /// Those that were added last.
    #[inline(always)]
    pub fn recent(&mut self, mut of: impl FnMut(&mut Span) -> bool) -> bool {
        self.recent.iter().any(|place| self.list.get_mut(usize::from(*place)).is_some_and(&mut of))
    }

    #[inline(always)]
    fn note(&mut self, place: usize, time: Time) {
        self.recent.rotate_right(1);
        self.recent[0] = place as u8;
        self.latest = self.latest.max(time);
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

    /// Whether there are not many of single lanes. Scattered accesses make them, and cells are faster for those.
    #[inline(always)]
    pub fn has_few_lanes(&self) -> bool {
        const MANY: usize = 2;
        self.list.len() < MANY || self.list.iter().filter(|span| span.is_of_lane()).count() < MANY
    }

    /// See [`Span::grow`]; whether one of them does.
    #[inline(always)]
    pub fn grow(&mut self, new: &Span, published: Time) -> bool {
        self.list.iter_mut().any(|span| span.grow(new, published))
    }

    /// Adds one of a read or a write; false if there is no room.
    #[inline(always)]
    pub fn push(&mut self, span: Span, writes: bool) -> bool {
        let fits = self.list.len() < SPANS;
        if fits {
            self.note(self.list.len(), span.time);
            self.list.push(span);
            self.written |= writes;
        }
        fits
    }

    /// Adds one of a read, and drops another read if there are too many of each byte, as [`super::Shadow::update`] does; false if there is no
    /// room.
    #[inline(always)]
    pub fn push_read(&mut self, span: Span) -> bool {
        if self.push(span, false) {
            return true;
        }
        let same = |s: &Span| s.bytes & span.bytes == span.bytes;
        let known = self.crowded.contains(&span.bytes);
        if self.written || !known && self.list.iter().filter(|s| same(s)).count() < LIMIT {
            return false;
        }
        // Pseudo-random, and reproducible for the same launch.
        let start = span.time.wrapping_add(span.who) as usize % SPANS;
        if let Some(victim) = (start..SPANS).chain(0..start).find(|i| same(&self.list[*i])) {
            if !known {
                self.crowded = [span.bytes, self.crowded[0]];
            }
            let before = std::mem::replace(&mut self.list[victim], span).bytes;
            // What it had may have become rarer.
            let rarer = |bytes: u128| before & bytes == bytes && span.bytes & bytes != bytes;
            self.crowded.iter_mut().filter(|bytes| rarer(**bytes)).for_each(|bytes| *bytes = 0);
            self.note(victim, span.time);
        }
        true
    }

    /// Removes bytes from all spans.
    #[inline(always)]
    pub fn clear(&mut self, bytes: u128) {
        self.list.retain_mut(|span| {
            span.bytes &= !bytes;
            span.bytes != 0
        });
        self.written &= !self.list.is_empty();
        self.crowded = [0; 2];
    }
}

/// The records of a word.
pub(super) fn records(spans: &[Span], word: u32) -> Vec<Record> {
    spans.iter().flat_map(|span| span.records(word)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lanes and bytes of the records of a word.
    fn parts(span: Span, word: u32) -> Vec<(u32, u32)> {
        span.records(word).map(|r| (r.lanes.trailing_zeros(), r.bytes())).collect()
    }

    #[test]
    fn lanes_follow_from_bytes() {
        let span = |bytes, pattern| Span { who: 5, lanes: 1, time: 3, site: 1, bytes, pattern };
        // Lane 0 has the byte before the line.
        let bytes = span(u128::MAX >> 97, Pattern::row(-1, 1, 1));
        assert_eq!(parts(bytes, 0), [(1, 1), (2, 2), (3, 4), (4, 8)]);
        assert_eq!(parts(bytes, 7), [(29, 1), (30, 2), (31, 4)]);
        // Pixels of three bytes: lane 1 has bytes 3 to 5.
        let pixels = span(0b1001_0010, Pattern::row(1, 3, 1));
        assert_eq!((parts(pixels, 0), parts(pixels, 1)), (vec![(0, 2)], vec![(1, 1), (2, 8)]));
        // Halves, down from lane 0 at byte 62.
        let down = span(u128::from(u64::MAX), Pattern::row(62, -2, 2));
        assert_eq!((parts(down, 0), parts(down, 15)), (vec![(31, 3), (30, 12)], vec![(1, 3), (0, 12)]));
    }

    #[test]
    fn members_of_a_structure_belong_to_the_same_lane() {
        let at = |offset, size| Pattern::row(offset, 24, size);
        assert!(at(-48, 8).agrees(at(-44, 4)) && at(-44, 4).agrees(at(-48, 8)) && at(-48, 4).agrees(at(-28, 4)));
        assert!(!at(-48, 8).agrees(at(-24, 8)), "the next structure");
        assert!(!Pattern::row(0, 8, 8).agrees(Pattern::row(4, 8, 8)), "the first half of one, the second of the other");
        assert!(!Pattern::row(0, 4, 4).agrees(Pattern::row(124, -4, 4)) && !Pattern::Same.agrees(Pattern::Same));
    }
}
