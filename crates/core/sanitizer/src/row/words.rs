//! Accesses at single addresses, word by word.

use super::{Hit, Row, compare::WordAccess};
use crate::{
    shadow::{Cell, Record, Shadow, WORD, WarpLanes},
    site::Kind,
    threads::CtaThreads,
};

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
        let (place, k) = (shadow.place(word), (word / WORD) as u32);
        let mut cells = shadow.words(word);
        let mut cell = cells.get(k);
        if self.fast_word(&mut cell, kinds, lanes, mask) {
            return cells.set(k, cell);
        }
        if !self.repeats(shadow, kinds, (place, word), (lanes, mask)) {
            let access = WordAccess { row: self, cta, kinds, lanes, word, mask };
            shadow.update(word, |list| access.record(list, hits), buffer);
        }
    }
}
