//! Accesses at single addresses, word by word.

use super::{Hit, Row, compare::WordAccess};
use crate::{
    shadow::{Cell, LIMIT, Record, Shadow, WORD, WarpLanes},
    site::Kind,
    threads::CtaThreads,
};
use margay_exec::Scope;

/// [`crate::shadow::List::alike`] of plain reads. Strong accesses have a smaller number.
const PLAIN_READS: u32 = 1 << 16;

impl Row {
    /// The fast path: records an access of a word with at most two earlier records, if there is no race and no list is
    /// needed. False if the slow path must run.
    #[inline(always)]
    pub(super) fn fast_word(&self, cell: &mut Cell, kinds: &[Kind], lanes: u32, mask: u32) -> bool {
        if self.agent {
            return false;
        }
        let Some(records) = cell.records() else { return false };
        if self.kind.strong {
            return self.fast_strong(records, kinds, lanes, mask);
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
            if kinds[r.site() as usize].writes && (self.kind.cached || !self.has_seen(*r, lanes)) {
                return false;
            }
        }
        let group = WarpLanes { cta: self.cta, warp: self.warp, lanes };
        for r in records.iter_mut().filter(|r| r.is_some() && r.site() == self.site && r.bytes() == mask) {
            if r.time > self.published && r.join(group, self.warps) {
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
    fn fast_strong(&self, records: &mut [Record; 2], kinds: &[Kind], lanes: u32, mask: u32) -> bool {
        let same = |r: &Record| r.is_some() && r.site() == self.site && r.bytes() == mask && r.time > self.published;
        let [first, second] = records;
        let (mine, other) = if same(first) { (first, second) } else { (second, first) };
        if !same(mine) {
            return false;
        }
        let earlier = kinds[other.site() as usize];
        let stays = match earlier.strong {
            true => self.kind.is_morally_strong_with(earlier) && other.site() != self.site,
            false => self.has_seen(*other, lanes) || !self.kind.writes && !earlier.writes && other.site() != self.site,
        };
        let group = WarpLanes { cta: self.cta, warp: self.warp, lanes };
        (!other.is_some() || other.bytes() & mask == 0 || stays) && mine.join(group, self.warps)
    }

    /// Whether an access is one more of many that do not race with each other (plain reads, or strong accesses), and beside them there is
    /// nothing that it could race with: one of their records may stand for it, or it becomes one of them.
    #[inline(always)]
    pub(super) fn repeats(&self, shadow: &mut Shadow, kinds: &[Kind], word: u64, (lanes, mask): (u32, u32)) -> bool {
        let Kind { writes, strong, volatile, scope, element, cached, .. } = self.kind;
        let races = if strong { volatile || scope < Scope::Gpu } else { writes || cached };
        if races || self.agent {
            return false;
        }
        let Some((first, list)) = shadow.spilled(word) else { return false };
        let new = Record::new((self.who(), lanes), self.now, self.site, mask);
        let class = if strong { element << 4 | mask } else { PLAIN_READS };
        if list.alike != class {
            let alike = |r: &Record| {
                let kind = kinds[r.site() as usize];
                let alike =
                    if strong { self.kind.is_morally_strong_with(kind) && r.bytes() == mask } else { !kind.writes };
                kind.strong == strong && !r.is_agent() && alike
            };
            let apart = |r: &Record| {
                let kind = kinds[r.site() as usize];
                if strong { !kind.strong && self.has_seen(*r, lanes) } else { !kind.writes || self.has_seen(*r, lanes) }
            };
            let mut all = true;
            for r in std::iter::once(&*first).chain(&list.records) {
                let same = alike(r);
                all &= same;
                if !same && !apart(r) {
                    return false;
                }
            }
            list.alike = if all { class } else { 0 };
            list.latest = list.records.iter().fold(first.time, |latest, r| latest.max(r.time));
        }
        let rest = &mut list.records;
        // Most CTAs come after those whose accesses these are.
        if list.latest >= self.begun {
            let same = |r: &Record| r.form() == new.form();
            let group = WarpLanes { cta: self.cta, warp: self.warp, lanes };
            let joins = |r: &mut Record| same(r) && r.time > self.published && r.join(group, self.warps);
            let recently = list.recent.iter().any(|place| rest.get_mut(usize::from(*place)).is_some_and(joins));
            if recently || std::iter::once(&mut *first).chain(&mut *rest).any(joins) {
                return true;
            }
            // What the same CTA has done by this instruction may have to go.
            let mine = |r: &Record| r.warp_lanes(self.warps).any(|c| c.warp == self.warp && c.lanes & !lanes == 0);
            let goes = |r: &Record| strong || self.has_seen(*r, lanes) || mine(r);
            let own = |r: &Record| same(r) && r.cta(self.warps) == self.cta && goes(r);
            if std::iter::once(&*first).chain(&*rest).any(own) {
                return false;
            }
        }
        // The last write comes first. Which one goes is pseudo-random, as in `Shadow::update`.
        let victim = (word / WORD + u64::from(self.now) + u64::from(self.who())) as usize % rest.len();
        let before = if writes { std::mem::replace(first, new) } else { new };
        let place = if rest.len() + 1 >= LIMIT { victim } else { rest.len() };
        match rest.get_mut(place) {
            Some(victim) => *victim = before,
            None => rest.push(before),
        }
        list.recent.rotate_right(1);
        list.recent[0] = place as u8;
        list.latest = self.now;
        true
    }

    /// An access of some lanes at one address, word by word.
    #[inline(always)]
    pub fn access(
        &self,
        (shadow, buffer): (&mut Shadow, &mut Vec<Record>),
        context: (&CtaThreads, &[Kind]),
        group: u32,
        (address, size): (u64, u32),
        hits: &mut Vec<Hit>,
    ) {
        let mut from = address % WORD;
        let (mut word, mut to) = (address - from, from + u64::from(size));
        while to > 0 {
            let mask = (1u32 << to.min(WORD)) - (1 << from);
            self.access_word((shadow, buffer), context, group, (word, mask), hits);
            (word, from, to) = (word.wrapping_add(WORD), 0, to.saturating_sub(WORD));
        }
    }

    /// An access of bytes of a word by some lanes.
    #[inline(always)]
    pub(super) fn access_word(
        &self,
        (shadow, buffer): (&mut Shadow, &mut Vec<Record>),
        (cta, kinds): (&CtaThreads, &[Kind]),
        lanes: u32,
        (word, mask): (u64, u32),
        hits: &mut Vec<Hit>,
    ) {
        if !self.fast_word(shadow.cell(word), kinds, lanes, mask) && !self.repeats(shadow, kinds, word, (lanes, mask)) {
            let access = WordAccess { row: self, cta, kinds, lanes, word, mask };
            shadow.update(word, |list| access.record(list, hits), buffer);
        }
    }
}
