//! Records accesses of a warp in shadow memory, and finds the earlier ones that they are unordered with.

use crate::{
    clock::{Side, Time},
    form::RowForm,
    shadow::{AGENT, Cell, Crew, Kept, LINE, LINE_BYTES, MOST, Pattern, Record, Shadow, Span, Spans, WORD},
    site::{Kind, Place},
    threads::{CtaThreads, Seen, Who},
};
use margay_exec::Scope;

/// A group of lanes that access memory now.
pub struct Row {
    /// Its CTA, and the number of the CTA's first warp in the launch.
    pub cta: u32,
    pub first: u32,
    /// Warps of a CTA.
    pub warps: u32,
    pub warp: u32,
    pub site: u32,
    pub kind: Kind,
    pub agent: bool,
    pub now: Time,
    /// What all of its lanes have seen.
    pub seen: Seen,
    /// The time of the last release by the warp.
    pub published: Time,
}

/// An earlier access by one lane that is unordered with the present one.
pub struct Hit {
    pub earlier: Record,
    pub other: Crew,
    pub lane: u32,
    pub word: u64,
    pub mask: u32,
    pub lack: Lack,
}

/// What two accesses lack.
#[derive(Clone, Copy)]
pub enum Lack {
    /// Order.
    Order,
    /// Order that is not only due to what the later thread has read here by chance.
    Wait(Place),
    /// A proxy fence.
    Proxy,
}

impl Row {
    fn who(&self) -> u32 {
        (self.first + self.warp) | if self.agent { AGENT } else { 0 }
    }

    /// Whether lanes certainly have seen an earlier access; if not, [`unordered`] decides.
    #[inline(always)]
    fn has_seen(&self, r: Record, lanes: u32) -> bool {
        let warp = r.who.wrapping_sub(self.first);
        if warp < self.warps {
            // A lane has seen what it did itself, and not what the lanes beside it did.
            let own = warp == self.warp && (r.time <= self.seen.warp || r.lanes == lanes && lanes.is_power_of_two());
            return r.time <= self.seen.cta || own;
        }
        !r.is_agent() && r.time <= self.seen.cta && r.cta(self.warps) == self.cta
    }

    /// The fast path: records an access of a word with at most two earlier records, if there is no race and no list is
    /// needed. False if the slow path must run.
    #[inline(always)]
    fn quick(&self, cell: &mut Cell, kinds: &[Kind], lanes: u32, mask: u32) -> bool {
        if self.agent {
            return false;
        }
        let Some(records) = cell.records() else { return false };
        if self.kind.strong {
            return self.quick_strong(records, kinds, lanes, mask);
        }
        let new = Record::new((self.who(), lanes), self.now, self.site, mask);
        if self.kind.writes {
            let passed = |r: &Record| !r.is_some() || r.bytes() & !mask == 0 && self.has_seen(*r, lanes);
            let passed = passed(&records[0]) && passed(&records[1]);
            if passed {
                *records = [new, Record::none()];
            }
            return passed;
        }
        for r in records.iter().filter(|r| r.is_some() && r.bytes() & mask != 0) {
            if kinds[r.site() as usize].writes && !self.has_seen(*r, lanes) {
                return false;
            }
        }
        let crew = Crew { cta: self.cta, warp: self.warp, lanes };
        for r in records.iter_mut().filter(|r| r.is_some() && r.site() == self.site && r.bytes() == mask) {
            if r.time > self.published && r.join(crew, self.warps) {
                return true;
            }
            // What is unordered with the earlier read of this instruction is so with the present one.
            if r.who == new.who && r.lanes & !lanes == 0 || self.has_seen(*r, lanes) {
                *r = new;
                return true;
            }
        }
        match records.iter_mut().find(|r| !r.is_some()) {
            Some(free) => {
                *free = new;
                true
            }
            None => false,
        }
    }

    /// The fast path for strong accesses: one that repeats an earlier one beside which there is no more than one record, and
    /// that stays as it is.
    #[inline(always)]
    fn quick_strong(&self, records: &mut [Record; 2], kinds: &[Kind], lanes: u32, mask: u32) -> bool {
        let Kind { volatile, scope, element, .. } = self.kind;
        let same = |r: &Record| r.is_some() && r.site() == self.site && r.bytes() == mask && r.time > self.published;
        let [first, second] = records;
        let (mine, other) = if same(first) { (first, second) } else { (second, first) };
        if !same(mine) {
            return false;
        }
        let earlier = kinds[other.site() as usize];
        let stays = match earlier.strong {
            true => {
                let device = scope >= Scope::Gpu && earlier.scope >= Scope::Gpu && element == earlier.element;
                device && !(volatile && earlier.volatile) && other.site() != self.site
            }
            false => self.has_seen(*other, lanes) || !self.kind.writes && !earlier.writes && other.site() != self.site,
        };
        let crew = Crew { cta: self.cta, warp: self.warp, lanes };
        (!other.is_some() || other.bytes() & mask == 0 || stays) && mine.join(crew, self.warps)
    }

    /// Whether an atomic access is one more of many by the same instruction, which do not race, and beside them there are only plain
    /// accesses that all have seen: one of their records may stand for it, or there are as many as are kept.
    #[inline(always)]
    fn repeats(&self, shadow: &mut Shadow, kinds: &[Kind], word: u64, (lanes, mask): (u32, u32)) -> bool {
        let Kind { strong, volatile, scope, .. } = self.kind;
        if !strong || volatile || scope < Scope::Gpu || self.agent {
            return false;
        }
        let Some((first, rest)) = shadow.spilled(word) else { return false };
        let same = |r: &Record| r.site() == self.site && r.bytes() == mask && r.time > self.published;
        let apart = |r: &Record| !kinds[r.site() as usize].strong && self.has_seen(*r, lanes);
        let fits = |r: &Record| same(r) || apart(r);
        if !fits(first) || !rest.iter().all(fits) {
            return false;
        }
        let crew = Crew { cta: self.cta, warp: self.warp, lanes };
        let full = rest.len() + 1 >= MOST;
        std::iter::once(first).chain(rest).any(|r| same(r) && r.join(crew, self.warps)) || full
    }

    /// An access of some lanes at one address, word by word.
    #[inline(always)]
    pub fn access(
        &self,
        (shadow, buffer): (&mut Shadow, &mut Vec<Record>),
        (cta, kinds): (&CtaThreads, &[Kind]),
        group: u32,
        (address, size): (u64, u32),
        hits: &mut Vec<Hit>,
    ) {
        let end = address + u64::from(size);
        let mut word = address & !(WORD - 1);
        while word < end {
            let (from, to) = (address.max(word) - word, end.min(word + WORD) - word);
            let mask = (1u32 << to) - (1 << from);
            if !self.quick(shadow.cell(word), kinds, group, mask) && !self.repeats(shadow, kinds, word, (group, mask)) {
                let change = |list: &mut Vec<Record>| access_word(self, (cta, kinds), group, (word, mask), list, hits);
                shadow.update(word, change, buffer);
            }
            word += WORD;
        }
    }

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

    /// As [`Row::quick_span`], of a line that has one span at most; `None` if it needs another one.
    #[inline(always)]
    fn quick_one(&self, one: &mut Span, kinds: &[Kind], new: &Span) -> Option<bool> {
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
            let unseen = common != 0 && kinds[one.site as usize].writes && !self.has_seen_span(one, new);
            return unseen.then_some(false);
        }
        *one = *new;
        Some(true)
    }

    /// Records an access of a line's words among its spans, if there is no race and room for it. What it may have changed if
    /// not is nothing that [`Row::access`] would not change.
    #[inline(always)]
    fn quick_span(&self, spans: &mut Spans, kinds: &[Kind], new: &Span) -> bool {
        if self.kind.writes {
            if spans.all().iter().any(|s| s.words & new.words != 0 && !self.has_seen_span(s, new)) {
                return false;
            }
            spans.clear(new.words);
            return spans.push(*new);
        }
        let mut place = None;
        for (i, s) in spans.all().iter().enumerate() {
            if s.words & new.words == 0 {
                continue;
            }
            if s.site == new.site && s.words == new.words && s.pattern == new.pattern {
                place = place.or(Some(i));
            } else if kinds[s.site as usize].writes && !self.has_seen_span(s, new) {
                return false;
            }
        }
        if let Some(i) = place {
            let s = &mut spans.all()[i];
            if s.time > self.published && s.join(new, (self.cta, self.warp, self.warps)) {
                return true;
            }
            if s.who == new.who && s.lanes & !new.lanes == 0 || self.has_seen_span(s, new) {
                *s = *new;
                return true;
            }
        }
        spans.push(*new)
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
            Kept::One(one) => self
                .quick_one(one, kinds, &span)
                .unwrap_or_else(|| shadow.spans(line).is_some_and(|spans| self.quick_span(spans, kinds, &span))),
            Kept::Spans(spans) => self.quick_span(spans, kinds, &span),
            // A line that is written whole becomes one span.
            Kept::Words(_) if self.kind.writes => false,
            Kept::Words(cells) => {
                let mut left = span.words;
                while left != 0 {
                    let k = left.trailing_zeros();
                    left &= left - 1;
                    if !self.quick(&mut cells[k as usize], kinds, span.record(k).lanes, 0xf) {
                        return false;
                    }
                }
                true
            }
        }
    }

    #[inline(always)]
    fn access_span(
        &self,
        (shadow, buffer): (&mut Shadow, &mut Vec<Record>),
        (cta, kinds): (&CtaThreads, &[Kind]),
        span: Span,
        line: u64,
        hits: &mut Vec<Hit>,
    ) {
        const ALL: u32 = 0xf;
        let mut slow = span.words;
        match shadow.kept(line) {
            Kept::One(_) | Kept::Spans(_) => {
                if self.try_span(shadow, kinds, span, line) {
                    return;
                }
            }
            Kept::Words(cells) => {
                let mut left = span.words;
                while left != 0 {
                    let k = left.trailing_zeros();
                    left &= left - 1;
                    if self.quick(&mut cells[k as usize], kinds, span.record(k).lanes, ALL) {
                        slow &= !(1 << k);
                    }
                }
                if slow == 0 && self.kind.writes && span.words == u32::MAX {
                    // Each cell holds this access alone.
                    return shadow.narrow(line, Some(span));
                }
            }
        }
        while slow != 0 {
            let k = slow.trailing_zeros();
            slow &= slow - 1;
            let (word, lanes) = (line + u64::from(k) * WORD, span.record(k).lanes);
            if !self.quick(shadow.cell(word), kinds, lanes, ALL) {
                shadow.update(word, |list| access_word(self, (cta, kinds), lanes, (word, ALL), list, hits), buffer);
            }
        }
    }

    /// Removes from an earlier record the lanes that now repeat the access by the same instruction; whether any are
    /// left.
    fn supersede(&self, r: &mut Record, lanes: u32, mask: u32) -> bool {
        if r.site() != self.site || r.bytes() != mask {
            return true;
        }
        if r.who == self.who() {
            r.lanes &= !lanes;
        } else if !self.agent
            && !r.is_agent()
            && r.crews(self.warps).any(|c| (c.cta, c.warp) == (self.cta, self.warp) && c.lanes & !lanes == 0)
        {
            r.lanes &= !(1 << self.warp);
        }
        r.is_some()
    }
}

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

/// Whose access a record is.
pub fn side(earlier: &Record, wrote: bool) -> Side {
    match earlier.is_agent() {
        true if wrote => Side::Agent,
        true => Side::AgentReads,
        false => Side::Program,
    }
}

/// A lane that did not see an earlier access by one of its lanes: the two, if there are any.
fn unordered(
    cta: &CtaThreads,
    (earlier, wrote): (&Record, bool),
    (warp, lanes, warps): (u32, u32, u32),
) -> Option<(u32, Crew)> {
    let side = side(earlier, wrote);
    earlier.crews(warps).find_map(|crew| {
        let found = cta.unseen(Who { warp, lanes }, (crew.cta, crew.warp, crew.lanes), side, earlier.time);
        found.map(|(lane, other)| (lane, Crew { lanes: 1 << other, ..crew }))
    })
}

/// A lane whose copy comes after an access of a program, without a proxy fence in between: the two, if there are any.
fn unproxied(cta: &CtaThreads, earlier: &Record, (warp, lanes, warps): (u32, u32, u32)) -> Option<(u32, Crew)> {
    earlier.crews(warps).find_map(|crew| {
        let others = (crew.cta, crew.warp, crew.lanes);
        let found = cta.unproxied(Who { warp, lanes }, others, earlier.time);
        found.map(|(lane, other)| (lane, Crew { lanes: 1 << other, ..crew }))
    })
}

/// Compares an access of a word with the records in `list`, and updates the list to what later accesses must be
/// compared with.
fn access_word(
    row: &Row,
    (cta, kinds): (&CtaThreads, &[Kind]),
    group: u32,
    (word, mask): (u64, u32),
    list: &mut Vec<Record>,
    hits: &mut Vec<Hit>,
) {
    let Kind { writes, strong, volatile, scope, element, .. } = row.kind;
    let crew = Crew { cta: row.cta, warp: row.warp, lanes: group };
    // Most earlier accesses lie before a barrier, which one comparison shows.
    let find = |r: &Record| match row.has_seen(*r, group) {
        true => None,
        false => unordered(cta, (r, kinds[r.site() as usize].writes), (row.warp, group, row.warps)),
    };
    let crowded = list.len() > 8 && list.len().is_power_of_two();
    let (mut joined, mut kept) = (false, 0);
    for i in 0..list.len() {
        let mut r = list[i];
        let keep = 'keep: {
            if r.bytes() & mask == 0 {
                break 'keep true;
            }
            let same = r.site() == row.site && r.bytes() == mask && (!writes || strong);
            if same && !joined && !row.agent && r.time > row.published && r.join(crew, row.warps) {
                joined = true;
                break 'keep true;
            }
            let earlier = kinds[r.site() as usize];
            if !writes && !earlier.writes {
                // Two reads: one of them may stand for both.
                let repeated = || r.site() == row.site && r.bytes() == mask && !row.agent && row.has_seen(r, group);
                if strong == earlier.strong && !r.is_agent() && (repeated() || crowded && find(&r).is_none()) {
                    break 'keep false;
                }
                break 'keep row.agent || row.supersede(&mut r, group, mask);
            }
            // Whoever these are, they do not race.
            let device = scope >= Scope::Gpu && earlier.scope >= Scope::Gpu && element == earlier.element;
            if strong && earlier.strong && device && !(volatile && earlier.volatile) {
                break 'keep !same || row.agent || row.supersede(&mut r, group, mask);
            }
            // A later access that races with the earlier one races with this one too.
            let like = earlier.strong && scope <= earlier.scope && element == earlier.element;
            let narrower = like && r.cta(row.warps) == row.cta;
            let covers = (writes || !earlier.writes) && (!strong || narrower) && r.bytes() & !mask == 0;
            let before = find(&r);
            if let Some((lane, other)) = before {
                hits.push(Hit { earlier: r, other, lane, word, mask, lack: Lack::Order });
            }
            if before.is_none()
                && row.kind.proxy
                && earlier.writes
                && !r.is_agent()
                && let Some((lane, other)) = unproxied(cta, &r, (row.warp, group, row.warps))
            {
                hits.push(Hit { earlier: r, other, lane, word, mask, lack: Lack::Proxy });
            }
            let told = !strong && !earlier.strong && writes;
            !(covers && (before.is_none() || told))
        };
        if keep {
            list[kept] = r;
            kept += 1;
        }
    }
    list.truncate(kept);
    if !joined {
        list.push(Record::new((row.who(), group), row.now, row.site, mask));
        if writes {
            // The last write comes first: it is never dropped.
            list.swap(0, kept);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::Threads;
    use margay_exec::SyncKind;

    const WARPS: u32 = 2;

    /// Rows and single addresses find the same races, and leave the same records, as spans as word by word.
    #[test]
    fn spans_are_like_words() {
        let mut state = 7u64;
        let mut random = |below: u32| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as u32 % below
        };
        let kind =
            |writes, element| Kind { writes, strong: false, volatile: false, proxy: false, scope: Scope::Cta, element };
        let kinds = [kind(false, 4), kind(true, 4), kind(false, 8), kind(true, 8), kind(false, 4), kind(true, 4)];
        let mut threads = Threads::new();
        let mut ctas = [0, 1].map(|index| CtaThreads::new(index, index, WARPS));
        let (mut spans, mut words, mut buffer) = (Shadow::default(), Shadow::default(), Vec::new());
        let (mut compact, mut races) = (0, 0);
        // Warps that share a record of a word may have spans of their own, of different words.
        let told = |hits: &[Hit]| {
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
                (0..WARPS).for_each(|warp| threads.sync(cta, Who { warp, lanes: u32::MAX }, barrier, None));
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
                now: threads.now,
                seen: cta.seen(Who { warp, lanes: mask }),
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
            assert_eq!(told(&one), told(&each));
            races += one.len();
            compact += u32::from(!matches!(spans.kept(address), Kept::Words(_)));
        }
        assert!(compact > 2000 && races > 1000, "{compact} lines kept as spans, {races} races");
    }
}
