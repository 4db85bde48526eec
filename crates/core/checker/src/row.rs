//! Records accesses of a warp in shadow memory, and finds the earlier ones that they are unordered with.

use crate::{
    clock::{Side, Time},
    shadow::{AGENT, Cell, Crew, LINE, LINE_BYTES, Record, Rowed, Shadow, WORD},
    site::Kind,
    threads::{CtaThreads, Seen, Who},
};
use margay_exec::{MemoryEvent, Scope};

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
        if self.kind.strong || self.agent {
            return false;
        }
        let Some(records) = cell.records() else { return false };
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
            if r.who == new.who && r.lanes & !lanes == 0 {
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
            if !self.quick(shadow.cell(word), kinds, group, mask) {
                shadow.update(
                    word,
                    |list| access_word(self, (cta, kinds), (group, false), (word, mask), list, hits),
                    buffer,
                );
            }
            word += WORD;
        }
    }

    /// Whether lanes of `mask` from `first` on, which accesses `address`, access all of a line in their order: these
    /// lanes, and how many words each accesses as a power of two.
    #[inline(always)]
    pub fn line(&self, e: &MemoryEvent<'_>, (mask, first): (u32, u32), address: u64) -> Option<(u32, u8)> {
        let shift = match e.size {
            4 => 0,
            8 => 1,
            16 => 2,
            _ => return None,
        };
        let count = LINE >> shift;
        let lanes = ((1u32 << count) - 1).checked_shl(first)?;
        if self.kind.strong || self.agent || !address.is_multiple_of(LINE_BYTES) || mask & lanes != lanes {
            return None;
        }
        let here = e.addresses.get(first as usize..first as usize + count)?;
        let apart = |i: usize| here[i] ^ address.wrapping_add(i as u64 * u64::from(e.size));
        ((1..count).fold(0, |all, i| all | apart(i)) == 0).then_some((lanes, shift))
    }

    /// An access of a line by lanes from `first` on, of `1 << shift` words each.
    #[inline(always)]
    pub fn access_line(
        &self,
        (shadow, buffer): (&mut Shadow, &mut Vec<Record>),
        (cta, kinds): (&CtaThreads, &[Kind]),
        (first, shift): (u32, u8),
        address: u64,
        hits: &mut Vec<Hit>,
    ) {
        const ALL: u32 = 0xf;
        let lanes = |k: usize| 1 << (first + (k as u32 >> shift));
        let mut slow = u32::MAX >> (u32::BITS - LINE as u32);
        match shadow.row(address, shift) {
            // What holds for the first word holds for the others, whose lanes differ by the same.
            Rowed::One(cell) => {
                if self.quick(cell, kinds, lanes(0), ALL) {
                    return;
                }
                // Many readers: still the same for all words, if there is no write that they might race with.
                let cell = *cell;
                let is_harmless = |r: &Record| !kinds[r.site() as usize].writes || self.has_seen(*r, lanes(0));
                if !self.kind.writes && shadow.all(&cell, is_harmless) {
                    let change = |list: &mut Vec<Record>| {
                        access_word(self, (cta, kinds), (lanes(0), true), (address, ALL), list, hits)
                    };
                    return shadow.update_row(address, change, buffer);
                }
            }
            Rowed::Each(cells) => {
                for (k, cell) in cells.iter_mut().enumerate() {
                    if self.quick(cell, kinds, lanes(k), ALL) {
                        slow &= !(1 << k);
                    }
                }
                if slow == 0 && self.kind.writes {
                    // Each cell holds this access alone.
                    return shadow.narrow(address, shift);
                }
            }
        }
        for k in (0..LINE).filter(|k| slow >> k & 1 == 1) {
            let word = address + k as u64 * WORD;
            shadow.update(
                word,
                |list| access_word(self, (cta, kinds), (lanes(k), false), (word, ALL), list, hits),
                buffer,
            );
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

/// A lane that did not see an earlier access by one of its lanes: the two, if there are any.
fn unordered(cta: &CtaThreads, earlier: &Record, (warp, lanes, warps): (u32, u32, u32)) -> Option<(u32, Crew)> {
    let side = if earlier.is_agent() { Side::Agent } else { Side::Program };
    earlier.crews(warps).find_map(|crew| {
        let found = cta.unseen(Who { warp, lanes }, (crew.cta, crew.warp, crew.lanes), side, earlier.time);
        found.map(|(lane, other)| (lane, Crew { lanes: 1 << other, ..crew }))
    })
}

/// Compares an access of a word with the records in `list`, and updates the list to what later accesses must be
/// compared with. If `alike`, the outcome must be the same for the other words of the line, each with the next lanes.
fn access_word(
    row: &Row,
    (cta, kinds): (&CtaThreads, &[Kind]),
    (group, alike): (u32, bool),
    (word, mask): (u64, u32),
    list: &mut Vec<Record>,
    hits: &mut Vec<Hit>,
) {
    let Kind { writes, strong, volatile, scope, element } = row.kind;
    let crew = Crew { cta: row.cta, warp: row.warp, lanes: group };
    // Most earlier accesses lie before a barrier, which one comparison shows.
    let find = |r: &Record| match row.has_seen(*r, group) {
        true => None,
        false => unordered(cta, r, (row.warp, group, row.warps)),
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
                // Two reads: one of them may represent both.
                let covered = || match alike {
                    true => row.has_seen(r, group),
                    false => find(&r).is_none(),
                };
                if crowded && strong == earlier.strong && !r.is_agent() && covered() {
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
            let narrower = earlier.strong && scope <= earlier.scope && r.cta(row.warps) == row.cta;
            let covers = (writes || !earlier.writes) && (!strong || narrower) && r.bytes() & !mask == 0;
            let before = find(&r);
            if let Some((lane, other)) = before {
                hits.push(Hit { earlier: r, other, lane, word, mask });
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

    /// A row of lanes leaves the same records, and finds the same races, line by line as word by word.
    #[test]
    fn lines_are_like_words() {
        let mut state = 7u64;
        let mut random = |below: u32| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as u32 % below
        };
        let kind = |writes, element| Kind { writes, strong: false, volatile: false, scope: Scope::Cta, element };
        let kinds = [kind(false, 4), kind(true, 4), kind(false, 8), kind(true, 8)];
        let mut threads = Threads::new();
        let mut ctas = [0, 1].map(|index| CtaThreads::new(index, index, WARPS));
        let (mut lines, mut words, mut buffer) = (Shadow::default(), Shadow::default(), Vec::new());
        let (mut compact, mut races) = (0, 0);
        let told = |hits: &[Hit]| hits.iter().map(|h| (h.earlier, h.other, h.lane, h.word)).collect::<Vec<_>>();
        for _ in 0..20_000 {
            threads.advance();
            let (index, warp, address) = (random(2), random(WARPS), 4096 + u64::from(random(3)) * LINE_BYTES);
            let cta = &mut ctas[index as usize];
            if random(3) == 0 {
                let barrier = SyncKind::Barrier { id: 0, aligned: true, counted: false };
                (0..WARPS).for_each(|warp| threads.sync(cta, Who { warp, lanes: u32::MAX }, barrier));
                threads.complete(cta, 0, true, (&[u32::MAX; WARPS as usize], &[u32::MAX; WARPS as usize]));
                continue;
            }
            let site = random(4);
            let shift = site / 2;
            let count = LINE as u32 >> shift;
            let first = random(32 / count) * count;
            let lanes = ((1 << count) - 1) << first;
            let row = Row {
                cta: index,
                first: index * WARPS,
                warps: WARPS,
                warp,
                site,
                kind: kinds[site as usize],
                agent: false,
                now: threads.now,
                seen: cta.seen(Who { warp, lanes: if random(2) == 0 { lanes } else { u32::MAX } }),
                published: cta.published(warp),
            };
            let (mut one, mut each) = (Vec::new(), Vec::new());
            let size = 4 << shift;
            let at = |lane: u32| address + u64::from(lane * size);
            if random(12) == 0 {
                let word = random(count);
                for (shadow, hits) in [(&mut lines, &mut one), (&mut words, &mut each)] {
                    row.access((shadow, &mut buffer), (cta, &kinds), 1 << first, (at(word), size), hits);
                }
            } else {
                row.access_line((&mut lines, &mut buffer), (cta, &kinds), (first, shift as u8), address, &mut one);
                for lane in 0..count {
                    let access = (at(lane), size);
                    row.access((&mut words, &mut buffer), (cta, &kinds), 1 << (first + lane), access, &mut each);
                }
                compact += u32::from(matches!(lines.row(address, shift as u8), Rowed::One(_)));
            }
            assert_eq!(told(&one), told(&each));
            races += one.len();
        }
        assert!(compact > 500 && races > 1000, "{compact} rows kept as such, {races} races");
        for word in (0..3 * LINE as u64).map(|k| 4096 + k * WORD) {
            let (mut one, mut each) = (Vec::new(), Vec::new());
            lines.update(word, |list| one.clone_from(list), &mut buffer);
            words.update(word, |list| each.clone_from(list), &mut buffer);
            assert_eq!(one, each);
        }
    }
}
