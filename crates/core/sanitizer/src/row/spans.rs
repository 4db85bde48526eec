//! Accesses of lanes in a row, or of one address by all lanes, line by line.

use super::{Hit, Row};
use crate::{
    form::Strided,
    lanes as bits,
    shadow::{Kept, LINE_BYTES, Pattern, Place, Record, Shadow, Span, Spans, WORD, Words, words},
    site::Kind,
    threads::CtaThreads,
};

impl Row {
    /// Whether lanes certainly have seen an earlier access of bytes that both have in common.
    #[inline(always)]
    fn has_seen_span(&self, span: &Span, new: &Span) -> bool {
        let warp = span.who.wrapping_sub(self.first);
        if warp < self.warps {
            // A lane has seen what it did itself.
            let alone = || match span.pattern {
                Pattern::Same => span.pattern == new.pattern && span.lanes == new.lanes && span.lanes.is_power_of_two(),
                row => row.agrees(new.pattern),
            };
            let own = warp == self.warp && (span.time <= self.seen.warp || alone());
            return span.time <= self.seen.cta || own;
        }
        span.time <= self.seen.cta && span.cta(self.warps) == self.cta
    }

    /// As [`Row::fast_span`], of a line that has one span at most; `None` if it needs another one.
    #[inline(always)]
    fn fast_single(&self, one: &mut Span, kinds: &[Kind], new: &Span) -> Option<bool> {
        let common = one.bytes & new.bytes;
        let repeated = || one.site == new.site && one.bytes == new.bytes && one.pattern == new.pattern;
        if one.bytes == 0 {
        } else if self.kind.writes {
            if common != 0 && !self.has_seen_span(one, new) {
                return Some(false);
            }
            if one.bytes & !new.bytes != 0 {
                return one.grow(new, self.published).then_some(true);
            }
        } else if common != 0 && repeated() {
            if one.time > self.published && one.join(new, (self.cta, self.warp, self.warps)) {
                return Some(true);
            }
            if !(one.who == new.who && one.lanes & !new.lanes == 0 || self.has_seen_span(one, new)) {
                return None;
            }
        } else {
            let unseen =
                common != 0 && kinds[one.site as usize].writes && (self.kind.cached || !self.has_seen_span(one, new));
            return match unseen {
                true => Some(false),
                false => one.grow(new, self.published).then_some(true),
            };
        }
        *one = *new;
        Some(true)
    }

    /// Records an access of a line's bytes among its spans, if there is no race and there is room for it. If not, it has changed
    /// nothing that [`Row::access`] would not change too.
    #[inline(always)]
    fn fast_span(&self, spans: &mut Spans, kinds: &[Kind], new: &Span) -> bool {
        let lone = new.is_of_lane();
        if self.kind.writes {
            if spans.all().iter().any(|s| s.bytes & new.bytes != 0 && !self.has_seen_span(s, new)) {
                return false;
            }
            spans.clear(new.bytes);
            return lone && spans.grow(new, self.published)
                || (!lone || spans.has_few_lanes()) && spans.push(*new, true);
        }
        let races = |s: &Span| {
            let meets = s.bytes & new.bytes != 0 && kinds[s.site as usize].writes;
            meets && (self.kind.cached || !self.has_seen_span(s, new))
        };
        if spans.is_written() && spans.all().iter().any(races) {
            return false;
        }
        let repeated = |s: &Span| s.site == new.site && s.bytes == new.bytes && s.pattern == new.pattern;
        let cta = (self.cta, self.warp, self.warps);
        let joins = |s: &mut Span| repeated(s) && s.time > self.published && s.join(new, cta);
        // Most CTAs come after those whose accesses these are, and share no span with them.
        let shares = spans.latest() >= self.begun;
        if shares && spans.recent(joins) {
            return true;
        }
        if shares && let Some(i) = spans.all().iter().rposition(repeated) {
            let s = &mut spans.all()[i];
            if s.time > self.published && s.join(new, cta) {
                return true;
            }
            if s.who == new.who && s.lanes & !new.lanes == 0 || self.has_seen_span(s, new) {
                *s = *new;
                return true;
            }
        }
        lone && spans.grow(new, self.published) || (!lone || spans.has_few_lanes()) && spans.push_read(*new)
    }

    /// A new span of this access.
    #[inline(always)]
    pub(super) fn span(&self, bytes: u128, lanes: u32, pattern: Pattern) -> Span {
        Span { who: self.who(), lanes, time: self.now, site: self.site, bytes, pattern }
    }

    /// The spans, line by line, of a row.
    #[inline(always)]
    fn spans(&self, row: Strided) -> impl Iterator<Item = (u64, Span)> {
        let Strided { base, stride, size, lanes } = row;
        let step = stride.min(stride.wrapping_neg());
        let (short, whole) = (step < LINE_BYTES, row.has_no_gaps());
        let (first, last) = row.range();
        // Distances from the first byte, as wild addresses may wrap around.
        let (mut next, end) = (0, last.wrapping_sub(first));
        let teeth = if short && whole { comb(step, size) } else { 0 };
        let mut left = lanes;
        let pattern = move |line: u64| Pattern::row(base.wrapping_sub(line) as i64, stride as i64, size);
        std::iter::from_fn(move || {
            if short && whole {
                let address = (next <= end).then(|| first.wrapping_add(next))?;
                let within = address % LINE_BYTES;
                let all = u128::MAX >> (LINE_BYTES - 1 - (within + end - next).min(LINE_BYTES - 1));
                next += (LINE_BYTES - within).div_ceil(step) * step;
                let line = address - within;
                return Some((line, self.span(teeth << within & all, 1, pattern(line))));
            }
            let lane = (left != 0).then(|| left.trailing_zeros())?;
            let line = row.at(lane) / LINE_BYTES * LINE_BYTES;
            if !short {
                left &= left - 1;
                return Some((line, self.span(part(row.at(lane) - line, size.into()), 1 << lane, Pattern::Same)));
            }
            let mut bytes = 0;
            while left != 0 && row.at(left.trailing_zeros()).wrapping_sub(line) < LINE_BYTES {
                bytes |= part(row.at(left.trailing_zeros()) - line, size.into());
                left &= left - 1;
            }
            Some((line, self.span(bytes, 1, pattern(line))))
        })
    }

    /// The span of accesses of the same bytes by all lanes of a mask, which lie in one line.
    #[inline(always)]
    fn same(&self, lanes: u32, (address, size): (u64, u32)) -> (u64, Span) {
        let line = address / LINE_BYTES * LINE_BYTES;
        (line, self.span(part(address - line, size.into()), lanes, Pattern::Same))
    }

    /// An access that [has spans](Strided::has_spans).
    #[inline(always)]
    pub fn access_strided(
        &self,
        (shadow, buffer): (&mut Shadow, &mut Vec<Record>),
        context: (&CtaThreads, &[Kind]),
        access: Strided,
        hits: &mut Vec<Hit>,
    ) {
        if access.stride == 0 {
            return self.access_same((shadow, buffer), context, access.lanes, (access.base, access.size), hits);
        }
        self.spans(access).for_each(|(line, span)| self.access_span((shadow, buffer), context, span, line, hits));
    }

    /// Accesses of the same bytes of a line by all lanes of a mask.
    #[inline(always)]
    pub fn access_same(
        &self,
        shadow: (&mut Shadow, &mut Vec<Record>),
        context: (&CtaThreads, &[Kind]),
        lanes: u32,
        access: (u64, u32),
        hits: &mut Vec<Hit>,
    ) {
        let (line, span) = self.same(lanes, access);
        self.access_span(shadow, context, span, line, hits);
    }

    /// As [`Row::access_strided`], if there is no race and no list is needed. If not, returns false, and the access must be done in full.
    #[inline(always)]
    pub fn try_strided(&self, shadow: &mut Shadow, kinds: &[Kind], access: Strided) -> bool {
        let Strided { base, stride, size, lanes } = access;
        match stride {
            0 => {
                let (line, span) = self.same(lanes, (base, size));
                self.try_span(shadow, kinds, span, line)
            }
            // A row that fills one line.
            4 if size == 4 && lanes == u32::MAX && base.is_multiple_of(LINE_BYTES) => {
                let span = self.span(u128::MAX, 1, Pattern::row(0, 4, 4));
                self.try_span(shadow, kinds, span, base)
            }
            // Lanes beside each other in one line, such as rows of 16 threads.
            _ if stride == u64::from(size) && stride < LINE_BYTES && access.has_no_gaps() => {
                let (first, last) = access.range();
                let (line, within) = (first / LINE_BYTES * LINE_BYTES, first % LINE_BYTES);
                if last.wrapping_sub(line) >= LINE_BYTES {
                    return self.spans(access).all(|(line, span)| self.try_span(shadow, kinds, span, line));
                }
                let pattern = Pattern::row(base.wrapping_sub(line) as i64, stride as i64, size);
                self.try_span(shadow, kinds, self.span(part(within, last - first + 1), 1, pattern), line)
            }
            _ => self.spans(access).all(|(line, span)| self.try_span(shadow, kinds, span, line)),
        }
    }

    #[inline(always)]
    fn try_span(&self, shadow: &mut Shadow, kinds: &[Kind], span: Span, line: u64) -> bool {
        let place = shadow.place(line);
        self.try_span_at(shadow, kinds, &span, (place, line))
    }

    /// As [`Row::try_strided`], of a span of the line at a place.
    #[inline(always)]
    pub(super) fn try_span_at(
        &self,
        shadow: &mut Shadow,
        kinds: &[Kind],
        span: &Span,
        (place, line): (Place, u64),
    ) -> bool {
        let widens = match shadow.kept(place) {
            Kept::One(one) => match self.fast_single(one, kinds, span) {
                Some(done) => return done,
                None => one.is_of_lane() && span.is_of_lane(),
            },
            Kept::Spans(spans) => {
                if self.fast_span(spans, kinds, span) {
                    return true;
                }
                if !span.is_of_lane() || spans.has_few_lanes() {
                    return false;
                }
                true
            }
            Kept::Words(_) => return self.try_words(shadow, kinds, span, (place, line)),
        };
        if widens {
            shadow.widen(place);
            return self.try_words(shadow, kinds, span, (place, line));
        }
        let spans = shadow.spans(place, |s| kinds[s.site as usize].writes);
        spans.is_some_and(|spans| self.fast_span(spans, kinds, span))
    }

    /// As [`Row::try_strided`], of a span of a line whose words are kept one by one.
    fn try_words(&self, shadow: &mut Shadow, kinds: &[Kind], span: &Span, (place, line): (Place, u64)) -> bool {
        let Kept::Words(mut cells) = shadow.kept(place) else { return false };
        let slow = self.fast_words(&mut cells, kinds, span);
        if slow == 0 {
            self.narrow(shadow, span, place);
        }
        bits(slow).all(|k| {
            let word = (place, line + u64::from(k) * WORD);
            span.records(k).all(|r| self.repeats(shadow, kinds, word, (r.lanes, r.bytes())))
        })
    }

    /// Lets a line that was written whole keep one span: each word has this access alone.
    #[inline(always)]
    fn narrow(&self, shadow: &mut Shadow, span: &Span, place: Place) {
        if self.kind.writes && span.bytes == u128::MAX {
            shadow.narrow(place, Some(*span));
        }
    }

    /// Takes the fast path for each of a span's words, and returns those that have none.
    #[inline(always)]
    fn fast_words(&self, cells: &mut Words<'_>, kinds: &[Kind], span: &Span) -> u32 {
        let mut fast = |k: u32| {
            let mut cell = cells.get(k);
            let fast = span.records(k).all(|r| self.fast_word(&mut cell, kinds, r.lanes, r.bytes()));
            cells.set(k, cell);
            fast
        };
        words(span.bytes).map(|k| u32::from(!fast(k)) << k).fold(0, |slow, word| slow | word)
    }

    #[inline(always)]
    fn access_span(
        &self,
        (shadow, buffer): (&mut Shadow, &mut Vec<Record>),
        context: (&CtaThreads, &[Kind]),
        span: Span,
        line: u64,
        hits: &mut Vec<Hit>,
    ) {
        let mut slow = u32::MAX;
        let place = shadow.place(line);
        match shadow.kept(place) {
            Kept::One(_) | Kept::Spans(_) => {
                if self.try_span_at(shadow, context.1, &span, (place, line)) {
                    return;
                }
            }
            Kept::Words(mut cells) => {
                slow = self.fast_words(&mut cells, context.1, &span);
                if slow == 0 {
                    return self.narrow(shadow, &span, place);
                }
            }
        }
        for k in words(span.bytes).filter(|k| slow >> k & 1 == 1) {
            for r in span.records(k) {
                let word = line + u64::from(k) * WORD;
                self.access_word((shadow, buffer), context, r.lanes, (word, r.bytes()), hits);
            }
        }
    }
}

/// Bytes of a line, the first of which has this number.
#[inline(always)]
pub(super) fn part(first: u64, count: u64) -> u128 {
    (u128::MAX >> (LINE_BYTES - count)) << first
}

/// The bytes of elements of a size, `step` bytes apart, of which the first begins with the line.
#[inline(always)]
fn comb(step: u64, size: u32) -> u128 {
    if step == u64::from(size) {
        return u128::MAX;
    }
    let (mut teeth, mut reach) = (part(0, size.into()), step);
    while reach < LINE_BYTES {
        teeth |= teeth << reach;
        reach *= 2;
    }
    teeth
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::{Threads, WarpMask};
    use margay_exec::{Scope, SyncKind};

    const WARPS: u32 = 2;

    /// Rows and single addresses find the same races as spans as word by word, also at wild addresses that wrap around.
    #[test]
    fn spans_are_like_words() {
        let mut state = 7u64;
        let mut random = |below: u32| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as u32 % below
        };
        let kind = |writes, element| Kind {
            writes,
            strong: false,
            volatile: false,
            proxy: false,
            cached: false,
            tensor: margay_exec::Tensor::No,
            scope: Scope::Cta,
            element,
        };
        let sizes = [4, 4, 8, 8, 4, 4, 1, 1, 2, 16];
        let kinds: Vec<Kind> = (0..).zip(sizes).map(|(site, size)| kind(site % 2 == 1, size)).collect();
        let mut threads = Threads::new();
        let mut ctas = [0, 1].map(|index| CtaThreads::new(index, index, WARPS));
        let (mut spans, mut words, mut buffer) = (Shadow::default(), Shadow::default(), Vec::new());
        let (mut compact, mut races) = (0, 0);
        // Warps that share a record of a word may have spans of their own, of different words.
        let found = |hits: &[Hit]| {
            let mut all: Vec<_> = hits.iter().map(|h| (h.word, h.lane, h.earlier.site())).collect();
            all.sort_unstable();
            all.dedup();
            all
        };
        const LINES: u64 = 256;
        // In elements; the last one leaves whole lines out.
        const STRIDES: [i64; 10] = [1, 1, 1, 1, 2, 3, 6, -1, -3, 40];
        for _ in 0..40_000 {
            threads.advance();
            let (index, warp) = (random(2), random(WARPS));
            let cta = &mut ctas[index as usize];
            if random(3) == 0 {
                let barrier = SyncKind::Barrier { id: 0, aligned: true, counted: false };
                (0..WARPS).for_each(|warp| threads.sync(cta, WarpMask { warp, lanes: u32::MAX }, barrier, None));
                threads.complete(cta, 0, true, (&[u32::MAX; WARPS as usize], &[u32::MAX; WARPS as usize]));
                continue;
            }
            if random(20) == 0 {
                for shadow in [&mut spans, &mut words] {
                    shadow.forget(4096, LINES * LINE_BYTES);
                }
            }
            let site = random(sizes.len() as u32);
            let size = sizes[site as usize];
            let mask = [u32::MAX, u32::MAX >> random(32), 1 << random(32)][random(3) as usize];
            let row = Row {
                cta: index,
                first: index * WARPS,
                warps: WARPS,
                warp,
                site,
                kind: kinds[site as usize],
                agent: false,
                shared: false,
                now: threads.now,
                begun: 0,
                seen: cta.seen(WarpMask { warp, lanes: mask }),
                published: cta.published(warp),
            };
            let (mut one, mut each) = (Vec::new(), Vec::new());
            let origin = if random(4) == 0 { LINE_BYTES.wrapping_neg() } else { 4096 };
            let address = origin + u64::from(random(128 / size) * size);
            let context = (&*cta, &kinds[..]);
            if site / 2 == 2 {
                let group = if kinds[site as usize].writes { mask & mask.wrapping_neg() } else { mask };
                row.access_same((&mut spans, &mut buffer), context, group, (address, 4), &mut one);
                row.access((&mut words, &mut buffer), context, group, (address, 4), &mut each);
            } else {
                let stride = STRIDES[random(STRIDES.len() as u32) as usize] * i64::from(size);
                let start = address.wrapping_add(31 * stride.min(0).unsigned_abs());
                let access = Strided { base: start, stride: stride as u64, size, lanes: mask };
                if random(2) == 0 || !row.try_strided(&mut spans, context.1, access) {
                    row.access_strided((&mut spans, &mut buffer), context, access, &mut one);
                }
                for lane in bits(mask) {
                    row.access((&mut words, &mut buffer), context, 1 << lane, (access.at(lane), size), &mut each);
                }
            }
            assert_eq!(found(&one), found(&each));
            races += one.len();
            let place = spans.place(address);
            compact += u32::from(!matches!(spans.kept(place), Kept::Words(_)));
        }
        assert!(compact > 2000 && races > 1000, "{compact} lines kept as spans, {races} races");
    }
}
