//! Accesses that are like others of the same word: strong ones of one size, or plain reads.

use super::Row;
use crate::{
    shadow::{LIMIT, List, Place, Record, Shadow, WORD, WarpLanes},
    site::Kind,
};
use margay_exec::Scope;

/// [`List::alike`] of plain reads. Strong accesses have a smaller number.
const PLAIN_READS: u32 = 1 << 16;

impl Row {
    /// The fast path for strong accesses of a word with at most two records: one that repeats an earlier one, or one more beside another that
    /// stays as it is.
    #[inline(always)]
    pub(super) fn fast_strong(&self, records: &mut [Record; 2], kinds: &[Kind], lanes: u32, mask: u32) -> bool {
        let new = Record::new((self.who(), lanes), self.now, self.site, mask);
        let same = |r: &Record| r.is_some() && r.form() == new.form() && r.time > self.published;
        let stays = |r: &Record| {
            let earlier = kinds[r.site() as usize];
            let apart = match earlier.strong {
                true => self.kind.is_morally_strong_with(earlier) && r.site() != self.site,
                false => self.has_seen(*r, lanes) || !self.kind.writes && !earlier.writes && r.site() != self.site,
            };
            !r.is_some() || r.bytes() & mask == 0 || apart
        };
        let beside = |r: &Record| stays(r) || self.kind.writes && self.is_beside(r, kinds, &new);
        let group = WarpLanes { cta: self.cta, warp: self.warp, lanes };
        for mine in 0..2 {
            if same(&records[mine]) && beside(&records[1 - mine]) && records[mine].join(group, self.warps) {
                return true;
            }
        }
        let [first, second] = *records;
        let fits = !second.is_some() && beside(&first);
        if fits {
            // The last write comes first.
            *records = if self.kind.writes || !first.is_some() { [new, first] } else { [first, new] };
        }
        fits
    }

    /// Whether a strong write and an earlier one by the same instruction do not race, and the earlier one is not by some of the same threads.
    fn is_beside(&self, r: &Record, kinds: &[Kind], new: &Record) -> bool {
        r.form() == new.form()
            && self.kind.is_morally_strong_with(kinds[r.site() as usize])
            && !self.repeats_part(r, new)
    }

    /// Whether threads of an earlier access by the same instruction now repeat it.
    fn repeats_part(&self, r: &Record, new: &Record) -> bool {
        let by_warp = |r: &Record| r.warp_lanes(self.warps).any(|c| c.warp == self.warp && c.lanes & !new.lanes == 0);
        match r.is_joined() {
            true => r.cta(self.warps) == self.cta && by_warp(r),
            false => r.who == new.who && r.lanes & new.lanes != 0,
        }
    }

    /// Whether an access is one more of many that do not race with each other (plain reads, or strong accesses), and beside them there is
    /// nothing that it could race with: one of their records may stand for it, or it becomes one of them.
    #[inline(always)]
    pub(super) fn repeats(
        &self,
        shadow: &mut Shadow,
        kinds: &[Kind],
        (place, word): (Place, u64),
        (lanes, mask): (u32, u32),
    ) -> bool {
        let Kind { writes, strong, volatile, scope, element, cached, .. } = self.kind;
        let races = if strong { volatile || scope < Scope::Gpu } else { writes || cached };
        if races || self.agent {
            return false;
        }
        let Some((first, list)) = shadow.spilled(place, (word / WORD) as u32) else { return false };
        let new = Record::new((self.who(), lanes), self.now, self.site, mask);
        let class = if strong { element << 4 | mask } else { PLAIN_READS };
        if list.alike != class && !self.find_class((first, list), kinds, &new, class) {
            return false;
        }
        if strong && list.alike == class && list.owner == (self.cta, new.form()) {
            if self.rejoins(first, list, &new) {
                return true;
            }
        } else {
            // Most CTAs come after those whose accesses these are.
            if list.latest >= self.begun
                && let Some(done) = self.joins_any(first, list, &new)
            {
                return done;
            }
            if strong {
                self.own(list, new.form());
            }
        }
        self.push((first, list), new, word);
        true
    }

    /// Finds out what the records of a list have in common. False if there may be one that an access like those of a class races with, or
    /// replaces.
    #[cold]
    fn find_class(&self, (first, list): (&Record, &mut List), kinds: &[Kind], new: &Record, class: u32) -> bool {
        let strong = self.kind.strong;
        let alike = |r: &Record| {
            let kind = kinds[r.site() as usize];
            let alike = match strong {
                true => self.kind.is_morally_strong_with(kind) && r.bytes() == new.bytes(),
                false => !kind.writes,
            };
            kind.strong == strong && !r.is_agent() && alike
        };
        let apart = |r: &Record| {
            let kind = kinds[r.site() as usize];
            let seen = || self.has_seen(*r, new.lanes);
            if strong { !kind.strong && seen() } else { !kind.writes || seen() }
        };
        let mut all = true;
        for r in std::iter::once(first).chain(&list.records) {
            let same = alike(r);
            all &= same;
            if !same && !apart(r) {
                return false;
            }
        }
        list.alike = if all { class } else { 0 };
        list.latest = list.records.iter().fold(first.time, |latest, r| latest.max(r.time));
        true
    }

    /// Lets some record of a list stand for the access too. If none can, and the access must replace one, that is false.
    fn joins_any(&self, first: &mut Record, list: &mut List, new: &Record) -> Option<bool> {
        let List { records: rest, recent, .. } = list;
        let (strong, lanes) = (self.kind.strong, new.lanes);
        let same = |r: &Record| r.form() == new.form();
        let group = WarpLanes { cta: self.cta, warp: self.warp, lanes };
        let joins = |r: &mut Record| same(r) && r.time > self.published && r.join(group, self.warps);
        let recently = recent.iter().any(|place| rest.get_mut(usize::from(*place)).is_some_and(joins));
        if recently || std::iter::once(&mut *first).chain(&mut *rest).any(joins) {
            return Some(true);
        }
        // What the same CTA has done by this instruction may have to go.
        let mine = |r: &Record| r.warp_lanes(self.warps).any(|c| c.warp == self.warp && c.lanes & !lanes == 0);
        let goes = |r: &Record| match strong {
            true => self.repeats_part(r, new),
            false => self.has_seen(*r, lanes) || mine(r),
        };
        let own = |r: &Record| same(r) && r.cta(self.warps) == self.cta && goes(r);
        std::iter::once(&*first).chain(&*rest).any(own).then_some(false)
    }

    /// Notes where a list of strong accesses has those of the CTA's warps by an instruction.
    fn own(&self, list: &mut List, form: u32) {
        list.owner = (self.cta, form);
        list.places.fill(u8::MAX);
        if list.latest < self.begun {
            return;
        }
        for (place, r) in list.records.iter().enumerate().filter(|(_, r)| r.form() == form) {
            let warp = r.who.wrapping_sub(self.first);
            if warp < self.warps && !r.is_agent() {
                list.places[warp as usize % 32] = place as u8;
            }
        }
    }

    /// Lets the record of the warp in its CTA's list stand for the access too, or one of the latest of several warps; if there is none, returns
    /// false.
    #[inline(always)]
    fn rejoins(&self, first: &mut Record, list: &mut List, new: &Record) -> bool {
        let List { records: rest, places, recent, .. } = list;
        let mine = |r: &Record| r.who == new.who && r.form() == new.form();
        let place = usize::from(places[self.warp as usize % 32]);
        let own = if mine(first) { Some(&mut *first) } else { rest.get_mut(place).filter(|r| mine(r)) };
        if let Some(r) = own {
            if r.time > self.published {
                r.lanes |= new.lanes;
                return true;
            }
            // What follows a release is another access, which replaces the same by the same lanes.
            if r.lanes & !new.lanes == 0 {
                (r.time, r.lanes) = (new.time, new.lanes);
                list.latest = new.time;
                return true;
            }
            r.lanes &= !new.lanes;
            return false;
        }
        let group = WarpLanes { cta: self.cta, warp: self.warp, lanes: new.lanes };
        let joins = |r: &mut Record| r.form() == new.form() && r.time > self.published && r.join(group, self.warps);
        recent.iter().any(|place| rest.get_mut(usize::from(*place)).is_some_and(joins)) || joins(first)
    }

    /// Adds a record to a list, in which it may replace another one.
    fn push(&self, (first, list): (&mut Record, &mut List), new: Record, word: u64) {
        let rest = &mut list.records;
        // The last write comes first. Which one goes is pseudo-random, as in `Shadow::update`.
        let victim = (word / WORD + u64::from(self.now) + u64::from(self.who())) as usize % rest.len();
        let before = if self.kind.writes { std::mem::replace(first, new) } else { new };
        let place = if rest.len() + 1 >= LIMIT { victim } else { rest.len() };
        match rest.get_mut(place) {
            Some(victim) => *victim = before,
            None => rest.push(before),
        }
        let warp = before.who.wrapping_sub(self.first);
        if warp < self.warps && before.form() == new.form() {
            list.places[warp as usize % 32] = place as u8;
        }
        list.recent.rotate_right(1);
        list.recent[0] = place as u8;
        list.latest = self.now;
    }
}
