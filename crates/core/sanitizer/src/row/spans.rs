//! Accesses of lanes in a row, or of one address by all lanes, line by line.

use super::{Hit, Row};
use crate::{
    form::RowForm,
    lanes as bits,
    shadow::{Cell, Kept, LINE, LINE_BYTES, Pattern, Record, Shadow, Span, Spans, WORD},
    site::Kind,
    threads::CtaThreads,
};

impl Row {
    /// Whether lanes certainly have seen an earlier access of words that both have in common.
    #[inline(always)]
    fn has_seen_span(&self, span: &Span, new: &Span) -> bool {
        let warp = span.who.wrapping_sub(self.first);
        if warp < self.warps {
            // Of equal rows, each word has the same lane.
            let alone = || match span.pattern {
                Pattern::Same => span.lanes == new.lanes && span.lanes.is_power_of_two(),
                Pattern::Row { .. } => true,
            };
            let own = warp == self.warp && (span.time <= self.seen.warp || span.pattern == new.pattern && alone());
            return span.time <= self.seen.cta || own;
        }
        span.time <= self.seen.cta && span.cta(self.warps) == self.cta
    }

    /// As [`Row::fast_span`], of a line that has one span at most; `None` if it needs another one.
    #[inline(always)]
    fn fast_single(&self, one: &mut Span, kinds: &[Kind], new: &Span) -> Option<bool> {
        let common = one.words & new.words;
        let repeated = || one.site == new.site && one.words == new.words && one.pattern == new.pattern;
        if one.words == 0 {
        } else if self.kind.writes {
            if common != 0 && !self.has_seen_span(one, new) {
                return Some(false);
            }
            if one.words & !new.words != 0 {
                return None;
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
            return unseen.then_some(false);
        }
        *one = *new;
        Some(true)
    }

    /// Records an access of a line's words among its spans, if there is no race and room for it. What it may have changed if
    /// not is nothing that [`Row::access`] would not change.
    #[inline(always)]
    fn fast_span(&self, spans: &mut Spans, kinds: &[Kind], new: &Span) -> bool {
        if self.kind.writes {
            if spans.all().iter().any(|s| s.words & new.words != 0 && !self.has_seen_span(s, new)) {
                return false;
            }
            spans.clear(new.words);
            return spans.push(*new, true);
        }
        let races = |s: &Span| {
            let meets = s.words & new.words != 0 && kinds[s.site as usize].writes;
            meets && (self.kind.cached || !self.has_seen_span(s, new))
        };
        if spans.is_written() && spans.all().iter().any(races) {
            return false;
        }
        let repeated = |s: &Span| s.site == new.site && s.words == new.words && s.pattern == new.pattern;
        if let Some(i) = spans.all().iter().rposition(repeated) {
            let s = &mut spans.all()[i];
            if s.time > self.published && s.join(new, (self.cta, self.warp, self.warps)) {
                return true;
            }
            if s.who == new.who && s.lanes & !new.lanes == 0 || self.has_seen_span(s, new) {
                *s = *new;
                return true;
            }
        }
        spans.push_read(*new)
    }

    /// A new span of this access.
    #[inline(always)]
    fn span(&self, words: u32, lanes: u32, pattern: Pattern) -> Span {
        Span { who: self.who(), lanes, time: self.now, site: self.site, words, pattern }
    }

    /// The spans, line by line, of accesses of whole words in the order of the lanes: lane 0 begins at `address`, and each of
    /// `mask` has `1 << shift` words.
    #[inline(always)]
    fn spans(&self, (mask, shift): (u32, u8), address: u64) -> impl Iterator<Item = (u64, Span)> {
        let words = spread(mask, shift);
        let mut line = address / LINE_BYTES * LINE_BYTES;
        // The number in the row of the line's first word.
        let mut phase = -((address / WORD % LINE as u64) as i32);
        std::iter::from_fn(move || {
            while phase < (LINE as i32) << shift {
                let here = if phase < 0 { (words << -phase) as u32 } else { (words >> phase) as u32 };
                let span = self.span(here, 1, Pattern::Row { phase: phase as i16, shift });
                let at = line;
                line = line.wrapping_add(LINE_BYTES);
                phase += LINE as i32;
                if here != 0 {
                    return Some((at, span));
                }
            }
            None
        })
    }

    /// The span of accesses of the same whole words by all lanes of a mask, which lie in one line.
    #[inline(always)]
    fn same(&self, lanes: u32, (address, size): (u64, u32)) -> (u64, Span) {
        let words = ((1u32 << (size / WORD as u32)) - 1) << (address / WORD % LINE as u64);
        (address / LINE_BYTES * LINE_BYTES, self.span(words, lanes, Pattern::Same))
    }

    /// Accesses of whole words in the order of the lanes.
    #[inline(always)]
    pub fn access_row(
        &self,
        (shadow, buffer): (&mut Shadow, &mut Vec<Record>),
        context: (&CtaThreads, &[Kind]),
        row: (u32, u8),
        address: u64,
        hits: &mut Vec<Hit>,
    ) {
        self.spans(row, address).for_each(|(line, span)| self.access_span((shadow, buffer), context, span, line, hits));
    }

    /// Accesses of the same whole words by all lanes of a mask.
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

    /// As [`Row::access_row`] or [`Row::access_same`], if there is no race and no list is needed; else false, and it must be done in
    /// full.
    #[inline(always)]
    pub fn try_form(&self, shadow: &mut Shadow, kinds: &[Kind], form: &RowForm) -> bool {
        let RowForm { base, lanes, shift, size, .. } = *form;
        match shift {
            None => {
                let (line, span) = self.same(lanes, (base, size));
                self.try_span(shadow, kinds, span, line)
            }
            // A row that fills one line.
            Some(0) if lanes == u32::MAX && base.is_multiple_of(LINE_BYTES) => {
                let span = self.span(u32::MAX, 1, Pattern::Row { phase: 0, shift: 0 });
                self.try_span(shadow, kinds, span, base)
            }
            Some(shift) => {
                self.spans((lanes, shift), base).all(|(line, span)| self.try_span(shadow, kinds, span, line))
            }
        }
    }

    #[inline(always)]
    fn try_span(&self, shadow: &mut Shadow, kinds: &[Kind], span: Span, line: u64) -> bool {
        match shadow.kept(line) {
            Kept::One(one) => self.fast_single(one, kinds, &span).unwrap_or_else(|| {
                shadow
                    .spans(line, |s| kinds[s.site as usize].writes)
                    .is_some_and(|spans| self.fast_span(spans, kinds, &span))
            }),
            Kept::Spans(spans) => self.fast_span(spans, kinds, &span),
            // A line that is written whole becomes one span.
            Kept::Words(_) if self.kind.writes => false,
            Kept::Words(cells) => {
                let slow = self.fast_words(cells, kinds, &span);
                bits(slow).all(|k| self.repeats(shadow, kinds, line + u64::from(k) * WORD, (span.record(k).lanes, ALL)))
            }
        }
    }

    /// Takes the fast path for each of a span's words, and returns those that have none.
    #[inline(always)]
    fn fast_words(&self, cells: &mut [Cell; LINE], kinds: &[Kind], span: &Span) -> u32 {
        let slow = |k: &u32| !self.quick(&mut cells[*k as usize], kinds, span.record(*k).lanes, ALL);
        bits(span.words).filter(slow).fold(0, |slow, k| slow | 1 << k)
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
        let mut slow = span.words;
        match shadow.kept(line) {
            Kept::One(_) | Kept::Spans(_) => {
                if self.try_span(shadow, context.1, span, line) {
                    return;
                }
            }
            Kept::Words(cells) => {
                slow = self.fast_words(cells, context.1, &span);
                if slow == 0 && self.kind.writes && span.words == u32::MAX {
                    // Each cell holds this access alone.
                    return shadow.narrow(line, Some(span));
                }
            }
        }
        for k in bits(slow) {
            let (word, lanes) = (line + u64::from(k) * WORD, span.record(k).lanes);
            self.access_word((shadow, buffer), context, lanes, (word, ALL), hits);
        }
    }
}

/// All bytes of a word.
const ALL: u32 = 0xf;

/// The words of the lanes of a mask, `1 << shift` of each.
#[inline(always)]
fn spread(mask: u32, shift: u8) -> u128 {
    let mut words = u128::from(mask);
    if shift == 0 {
        return words;
    }
    if mask == u32::MAX {
        return u128::MAX >> (128 - (32 << shift));
    }
    words = 0;
    let mut left = mask;
    while left != 0 {
        words |= ((1 << (1 << shift)) - 1) << (left.trailing_zeros() << shift);
        left &= left - 1;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::{Threads, WarpMask};
    use margay_exec::{Scope, SyncKind};

    const WARPS: u32 = 2;

    /// Rows and single addresses find the same races, and leave the same records, as spans as word by word.
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
        let kinds = [kind(false, 4), kind(true, 4), kind(false, 8), kind(true, 8), kind(false, 4), kind(true, 4)];
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
        const LINES: u32 = 3;
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
                    shadow.forget(4096, u64::from(LINES) * LINE_BYTES);
                }
            }
            let site = random(6);
            let shift = (site % 4 / 2) as u8;
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
            let size = 4 << shift;
            let address = 4096 + u64::from(random((LINES - 2) * LINE as u32) >> shift) * u64::from(size);
            let context = (&*cta, &kinds[..]);
            if site >= 4 {
                let group = if kinds[site as usize].writes { mask & mask.wrapping_neg() } else { mask };
                row.access_same((&mut spans, &mut buffer), context, group, (address, 4), &mut one);
                row.access((&mut words, &mut buffer), context, group, (address, 4), &mut each);
            } else {
                row.access_row((&mut spans, &mut buffer), context, (mask, shift), address, &mut one);
                for lane in (0..32).filter(|l| mask >> l & 1 == 1) {
                    let access = (address + u64::from(lane * size), size);
                    row.access((&mut words, &mut buffer), context, 1 << lane, access, &mut each);
                }
            }
            assert_eq!(found(&one), found(&each));
            races += one.len();
            compact += u32::from(!matches!(spans.kept(address), Kept::Words(_)));
        }
        assert!(compact > 2000 && races > 1000, "{compact} lines kept as spans, {races} races");
    }
}
