//! Accesses to shared memory that need not be compared with others at once.
//!
//! A barrier of the whole CTA orders everything before it with everything behind it. In between, a line of shared memory that is only
//! read, only updated by relaxed atomics of one size, or whose words each have one thread, sees no race. So such accesses are noted, and a
//! barrier forgets them all at once. An access of another kind lets the notes be looked at first, one after the other, as if nothing had been
//! deferred.

use crate::{
    Checks, Sanitizer, State,
    clock::Time,
    form::{Form, Strided, same_address},
    lanes,
    site::Kind,
};
use margay_exec::{
    AccessKind, Actor, LANES, LINE_BYTES, LineUse, LineUses, MemoryEvent, RowLoad, RowLoads, RowPlace, Semantics,
};
use std::{cell::Cell, ops::Range};

/// The maximum number of notes of an interval.
const LIMIT: usize = 1 << 14;
/// The way of lines that are used in several ways.
const MIXED: u32 = LineUse::other(2);

/// The way of lines that only atomics of elements of `size` bytes access.
const fn atomics(size: u32) -> u32 {
    LineUse::other(2 + size)
}

/// The interval of lines that asynchronous copies access, which no barrier ends: they are always mixed.
const ALWAYS: u32 = u32::MAX;

/// What becomes of an access that may be deferred.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deferral {
    /// It is noted.
    Noted,
    /// It must be looked at.
    Due,
    /// It must be looked at after what was noted before.
    Last,
}

/// How an access uses a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum UseKind {
    /// Loads.
    Load,
    /// Loads by lanes that have [words of their own](LineUse::own).
    OwnLoad(u32),
    /// Stores by such lanes.
    OwnStore(u32),
    /// An access that must be the only use.
    Once(u32),
    /// Something that any thread may repeat.
    Same(u32),
}

impl UseKind {
    /// The use of a line after an access, in an interval; `None` if the access may race with what was done before.
    #[inline(always)]
    fn after(self, line: LineUse, interval: u32) -> Option<LineUse> {
        let now = |way: u32| Some(LineUse::new(interval, way));
        if line.interval() < interval {
            return match self {
                UseKind::Load => now(LineUse::READ),
                UseKind::OwnStore(way) => now(way | LineUse::CHANGED),
                UseKind::OwnLoad(way) | UseKind::Once(way) | UseKind::Same(way) => now(way),
            };
        }
        if line.interval() > interval {
            return None;
        }
        let known = line.way();
        let mine = |way: u32| known | LineUse::CHANGED == way | LineUse::CHANGED;
        match self {
            UseKind::OwnLoad(way) if mine(way) => Some(line),
            UseKind::OwnStore(way) if mine(way) => now(way | LineUse::CHANGED),
            UseKind::Load | UseKind::OwnLoad(_) if known & LineUse::CHANGED == 0 => now(LineUse::READ),
            UseKind::Same(way) if known == way => Some(line),
            _ => None,
        }
    }
}

/// An access that is recorded at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Direct {
    /// A plain load, or another one that is like it.
    Read,
    /// One of any other kind.
    Change,
    /// One by an asynchronous copy.
    Copy,
}

/// Lanes that load from, or update, addresses of any kind.
struct Scattered {
    addresses: [u64; LANES],
    size: u32,
    lanes: u32,
    who: By,
}

/// An access by lanes at addresses of any kind.
pub struct Spread<'a> {
    pub addresses: &'a [u64; LANES],
    pub size: u32,
    pub lanes: u32,
    pub access: AccessKind,
}

impl Spread<'_> {
    /// In which way it uses lines, if it can be deferred wherever its lanes access them.
    fn way(&self, kind: Kind) -> Option<UseKind> {
        match self.access {
            AccessKind::Load if !kind.strong => Some(UseKind::Load),
            AccessKind::Atomic if !kind.volatile && kind.element == self.size => {
                Some(UseKind::Same(atomics(self.size)))
            }
            _ => None,
        }
    }
}

/// Who, by which instruction, and when.
#[derive(Clone, Copy)]
pub struct By {
    pub warp: u32,
    pub site: u32,
    pub now: Time,
}

/// What a CTA has done since its last barrier.
pub struct Deferred {
    /// How lines are used since then.
    uses: LineUses,
    rows: Vec<(Strided, By)>,
    scattered: Vec<Scattered>,
    /// Whether asynchronous copies access some of the lines.
    copies: bool,
}

impl Deferred {
    /// The first one of a CTA with that shared memory; nothing is deferred if it shares the memory with other CTAs.
    pub fn new(shared: (u64, u64), alone: bool) -> Deferred {
        let uses = LineUses::new(if alone { shared } else { (0, 0) });
        Deferred { uses, rows: Vec::new(), scattered: Vec::new(), copies: false }
    }

    /// That of another CTA in the same memory, which begins when this one has ended.
    pub fn restart(&mut self) {
        self.end(1);
        if std::mem::take(&mut self.copies) {
            let always = |i| self.uses.get(i).is_some_and(|line| line.interval() == ALWAYS);
            (0..self.uses.lines.len()).filter(|i| always(*i)).for_each(|i| self.uses.set(i, LineUse::new(0, MIXED)));
        }
    }

    /// How lines are used, if anything may be deferred.
    pub fn uses(&self) -> Option<&LineUses> {
        Some(&self.uses).filter(|uses| !uses.lines.is_empty())
    }

    fn has_notes(&self) -> bool {
        !self.rows.is_empty() || !self.scattered.is_empty()
    }

    /// All threads of the CTA have met so often: what is noted concerns nobody any more.
    pub fn end(&mut self, times: u32) {
        self.rows.clear();
        self.scattered.clear();
        self.uses.interval = self.uses.interval.saturating_add(times);
        // Compiled code counts on for a while before it reports.
        if self.uses.interval >= ALWAYS / 2 {
            self.uses = LineUses::new((0, 0));
        }
    }

    /// The index of the line of a byte.
    #[inline(always)]
    fn line_of(&self, address: u64) -> usize {
        (address / LINE_BYTES).wrapping_sub(self.uses.first) as usize
    }

    /// The lines of the bytes from `first` to `last`; none if not all are in the CTA's shared memory.
    #[inline(always)]
    fn lines_of(&self, (first, last): (u64, u64)) -> Option<Range<usize>> {
        let (from, to) = (self.line_of(first), self.line_of(last).wrapping_add(1));
        (from <= to && to <= self.uses.lines.len()).then_some(from..to)
    }

    /// Whether an access of these bytes, the first and the last, can be deferred. If so, their lines are used in its way too.
    #[inline(always)]
    fn fits(&mut self, bytes: (u64, u64), way: UseKind) -> bool {
        let number = self.uses.interval;
        let Some(mut lines) = self.lines_of(bytes) else { return false };
        lines.all(|i| match self.uses.get(i).and_then(|line| way.after(line, number)) {
            Some(line) => {
                self.uses.set(i, line);
                true
            }
            None => false,
        })
    }

    /// Notes an access by lanes whose addresses increase or decrease evenly, if it can be deferred.
    #[inline(always)]
    pub fn row(&mut self, access: Strided, writes: bool, who: By) -> Deferral {
        let (first, last) = access.range();
        let own =
            LineUse::are_apart(access.stride, access.size).then(|| LineUse::own(access.base, who.warp, access.size));
        let way = match (writes, own) {
            (false, Some(own)) => UseKind::OwnLoad(own),
            (false, None) => UseKind::Load,
            (true, Some(own)) => UseKind::OwnStore(own),
            (true, None) => UseKind::Once(LineUse::WRITTEN),
        };
        if self.rows.len() < LIMIT && self.fits((first, last), way) {
            self.rows.push((access, who));
            return Deferral::Noted;
        }
        // From now on, its lines are looked at as they come. Loads that come last are reported in full, which sees to that.
        let last = match writes {
            true => self.mix((first, last), Direct::Change),
            false => self.rows.len() >= LIMIT || self.concerns((first, last)),
        };
        if last { Deferral::Last } else { Deferral::Due }
    }

    /// Whether lines of these bytes, the first and the last, are used in one way only since the last barrier.
    fn concerns(&self, bytes: (u64, u64)) -> bool {
        let number = self.uses.interval;
        let known = |i| self.uses.get(i).is_some_and(|line| line.interval() == number && line.way() != MIXED);
        self.lines_of(bytes).is_some_and(|mut lines| lines.any(known))
    }

    /// Notes an access if it can be deferred because all lines were used in its way before.
    pub fn repeat(&mut self, e: &Spread<'_>, kind: Kind, who: By) -> bool {
        let Some(way) = e.way(kind).filter(|_| e.size.is_power_of_two()) else { return false };
        let known = match way {
            UseKind::Same(way) => LineUse::new(self.uses.interval, way),
            _ => LineUse::new(self.uses.interval, LineUse::READ),
        };
        // An aligned access that is no longer than a line lies in one. A division for each lane would take most of the time.
        let odd = u64::from(e.size) - 1;
        let within = |at: u64| at & odd == 0 && self.uses.get(self.line_of(at)) == Some(known);
        if self.scattered.len() >= LIMIT / 4
            || !(0..LANES).all(|lane| e.lanes >> lane & 1 == 0 || within(e.addresses[lane]))
        {
            return false;
        }
        self.scattered.push(Scattered { addresses: *e.addresses, size: e.size, lanes: e.lanes, who });
        true
    }

    /// Notes an access, all of it in shared memory, if it can be deferred.
    fn scatter(&mut self, e: &Spread<'_>, kind: Kind, who: By) -> bool {
        let Some(way) = e.way(kind).filter(|_| self.scattered.len() < LIMIT / 4) else { return false };
        let deferred = |lane: u32| {
            let at = e.addresses[lane as usize];
            let whole = way == UseKind::Load || at.is_multiple_of(u64::from(e.size));
            whole && self.fits((at, at + u64::from(e.size) - 1), way)
        };
        if !lanes(e.lanes).all(deferred) {
            return false;
        }
        self.scattered.push(Scattered { addresses: *e.addresses, size: e.size, lanes: e.lanes, who });
        true
    }

    /// Bytes, the first and the last, are accessed by what is recorded at once. Whether that concerns what is noted.
    #[inline(always)]
    fn mix(&mut self, (first, last): (u64, u64), access: Direct) -> bool {
        let (reads, asynchronous) = (access == Direct::Read, access == Direct::Copy);
        // Copies may go past the end of shared memory, which is a fault.
        let (from, to) = (self.line_of(first), self.line_of(last).saturating_add(1).min(self.uses.lines.len()));
        let (number, mut concerned) = (self.uses.interval, false);
        self.copies |= asynchronous;
        for (i, line) in (from..to).filter_map(|i| Some((i, self.uses.get(i)?))) {
            let way = if line.interval() == number { line.way() } else { MIXED };
            let only_read = way & LineUse::CHANGED == 0;
            concerned |= way != MIXED && !(reads && only_read);
            match line.interval() {
                _ if asynchronous => self.uses.set(i, LineUse::new(ALWAYS, MIXED)),
                ALWAYS => {}
                interval if reads && interval != number => self.uses.set(i, LineUse::new(number, LineUse::READ)),
                // Reads disturb no reads.
                _ if reads && only_read => self.uses.set(i, LineUse::new(number, LineUse::READ)),
                _ => self.uses.set(i, LineUse::new(number, MIXED)),
            }
        }
        concerned
    }
}

impl Sanitizer {
    /// How a CTA uses its shared memory, if nothing happens to an access there that is deferred but that.
    pub(crate) fn uses<'s>(&self, state: &'s State, cta: [u32; 3]) -> Option<&'s LineUses> {
        let Checks { races, init, .. } = self.what;
        let cta =
            state.ctas.get(self.index(cta)).filter(|_| races && !init && !self.proxies && state.clashes.is_empty())?;
        let deferred = cta.deferred.uses().filter(|_| !state.threads.any_released());
        deferred.filter(|_| !cta.threads.any_uncertain())
    }

    /// Takes over what compiled code has deferred.
    pub(crate) fn see_noted(&self, state: &mut State, e: &RowLoads<'_>) {
        let index = self.index(e.cta);
        for RowLoad { first, place, lanes, warp } in e.list.iter().map(Cell::get).filter(|noted| noted.lanes != 0) {
            let RowPlace { at, access, size, stride, ref memo } = e.places[place as usize];
            let Some((access, order, element)) = access else { continue };
            if memo.get() == 0 {
                let actor = Actor { cta: e.cta, warp, lanes, at, callers: &[] };
                memo.set(1 + state.sites.number(&actor, access, order, element));
            }
            // Stores get a time of their own.
            if access.writes() {
                state.advance();
            }
            let Some(cta) = state.ctas.get_mut(index) else { return };
            let who = By { warp, site: memo.get() - 1, now: state.threads.now };
            cta.deferred.rows.push((Strided { base: first, stride, size, lanes }, who));
            if cta.deferred.rows.len() >= LIMIT {
                self.settle(state, index);
            }
        }
    }

    /// Notes an access to shared memory if it can be deferred; else looks at what was noted, if the access concerns it.
    pub(crate) fn defer(&self, state: &mut State, e: &MemoryEvent<'_>, form: Form, site: u32) -> bool {
        let now = state.threads.now;
        let kind = state.sites.kinds[site as usize];
        let index = self.index(e.actor.cta);
        let Some(cta) = state.ctas.get_mut(index) else { return false };
        let plain = matches!(e.order.semantics, Semantics::Weak | Semantics::Relaxed);
        // The order of what is noted must not change.
        let ordering = !plain && cta.deferred.has_notes();
        let (base, size) = cta.shared;
        let bytes = u64::from(e.size);
        let own = |lane: u32| {
            let offset = e.addresses[lane as usize].wrapping_sub(base);
            offset < size && offset + bytes <= size
        };
        let first = e.actor.lanes.trailing_zeros();
        let concerned = match form {
            Form::Same(_) | Form::Row(..) if !own(first) => false,
            _ => {
                let who = By { warp: e.actor.warp, site, now };
                let deferrable = plain && !e.order.asynchronous;
                let spread = Spread { addresses: e.addresses, size: e.size, lanes: e.actor.lanes, access: e.access };
                if deferrable && cta.deferred.repeat(&spread, kind, who) {
                    return true;
                }
                let all = lanes(e.actor.lanes).all(own);
                if all && deferrable && cta.deferred.scatter(&spread, kind, who) {
                    return true;
                }
                let direct = match e.access {
                    _ if e.order.asynchronous => Direct::Copy,
                    AccessKind::Load if plain && !kind.strong => Direct::Read,
                    _ => Direct::Change,
                };
                let mut concerned = false;
                for lane in lanes(e.actor.lanes).filter(|lane| all || own(*lane)) {
                    let at = e.addresses[lane as usize];
                    concerned |= cta.deferred.mix((at, at + bytes - 1), direct);
                }
                concerned
            }
        };
        if concerned || ordering {
            self.settle(state, index);
        }
        false
    }

    /// Bytes of shared memory are accessed in other ways than by loads: looks at what was noted, if that concerns it.
    #[inline(always)]
    pub(crate) fn mix(&self, state: &mut State, index: u32, range: (u64, u64)) {
        if let Some(cta) = state.ctas.get_mut(index)
            && cta.deferred.mix(range, Direct::Change)
        {
            self.settle(state, index);
        }
    }

    /// Looks at everything that was noted of a CTA.
    pub(crate) fn settle(&self, state: &mut State, index: u32) {
        let State { shadow, ctas, sites, buffer, hits, .. } = state;
        let Some(cta) = ctas.get_mut(index).filter(|cta| cta.deferred.has_notes()) else { return };
        let (mut rows, mut scattered) =
            (std::mem::take(&mut cta.deferred.rows), std::mem::take(&mut cta.deferred.scattered));
        for (access, who) in rows.drain(..) {
            let Strided { base, stride, size, lanes: mask } = access;
            let kind = sites.kinds[who.site as usize];
            let row = self.row(&mut cta.threads, (who.site, kind), (who.warp, mask, false), who.now);
            let context = (&cta.threads, &sites.kinds[..]);
            match stride {
                _ if access.has_spans(kind) => row.access_strided((shadow, buffer), context, access, hits),
                0 => row.access((shadow, buffer), context, mask, (base, size), hits),
                _ => lanes(mask).for_each(|lane| {
                    row.access((shadow, buffer), context, 1 << lane, (access.at(lane), size), hits);
                }),
            }
        }
        for Scattered { addresses, size, lanes: mask, who } in scattered.drain(..) {
            let kind = sites.kinds[who.site as usize];
            let row = self.row(&mut cta.threads, (who.site, kind), (who.warp, mask, false), who.now);
            let context = (&cta.threads, &sites.kinds[..]);
            let mut left = mask;
            while left != 0 {
                let first = left.trailing_zeros();
                let group = same_address(&addresses, left, first);
                left &= !group;
                row.access((shadow, buffer), context, group, (addresses[first as usize], size), hits);
            }
        }
        // Nothing that was deferred races with what came before it.
        hits.clear();
        (cta.deferred.rows, cta.deferred.scattered) = (rows, scattered);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(line: u64) -> Strided {
        Strided { base: 4096 + line * LINE_BYTES, stride: 4, size: 4, lanes: u32::MAX }
    }

    const WHO: By = By { warp: 0, site: 0, now: 1 };
    const OTHER: By = By { warp: 1, ..WHO };

    #[test]
    fn words_of_one_thread_each_are_deferred() {
        let mut deferred = Deferred::new((4096, 8 * LINE_BYTES), true);
        for writes in [false, true, false] {
            assert_eq!(deferred.row(row(0), writes, WHO), Deferral::Noted);
        }
        let half = Strided { lanes: 0xffff, ..row(0) };
        assert_eq!(deferred.row(half, true, WHO), Deferral::Noted, "some of the same lanes");
        let shifted = Strided { base: row(0).base + 4, lanes: u32::MAX >> 1, ..row(0) };
        assert_eq!(deferred.row(shifted, false, WHO), Deferral::Last, "other lanes");
        assert_eq!(deferred.row(shifted, true, WHO), Deferral::Last, "other lanes");
        assert_eq!(deferred.row(row(0), true, WHO), Deferral::Due, "from then on, nothing is deferred");
        assert_eq!(deferred.row(row(1), false, WHO), Deferral::Noted);
        assert_eq!(deferred.row(row(1), false, OTHER), Deferral::Noted, "only loads");
        assert_eq!(deferred.row(row(1), true, WHO), Deferral::Last, "stored to after another warp has read it");
        let pairs = Strided { base: row(2).base, stride: 8, size: 8, lanes: 0xffff };
        assert_eq!(deferred.row(pairs, true, WHO), Deferral::Noted);
        assert_eq!(deferred.row(row(2), false, WHO), Deferral::Last, "lanes that have twice as much");
        let same = Strided { stride: 0, lanes: 1, ..row(3) };
        assert_eq!(deferred.row(same, false, WHO), Deferral::Noted);
        assert_eq!(deferred.row(row(3), true, WHO), Deferral::Last, "a lane may have read what another one stores");
    }

    #[test]
    fn lines_used_in_one_way_are_deferred() {
        let mut deferred = Deferred::new((4096, 8 * LINE_BYTES), true);
        assert_eq!([deferred.row(row(0), false, WHO), deferred.row(row(0), false, OTHER)], [Deferral::Noted; 2]);
        assert_eq!(deferred.row(row(0), true, WHO), Deferral::Last, "stored to after another warp has read it");
        assert_eq!(deferred.row(row(0), false, WHO), Deferral::Due, "from then on, nothing is deferred");
        assert_eq!(deferred.row(row(1), true, WHO), Deferral::Noted);
        assert_eq!(deferred.row(row(1), false, OTHER), Deferral::Last, "read after another warp has stored to it");
        assert_eq!(deferred.row(row(2), true, WHO), Deferral::Noted);
        assert_eq!(
            deferred.row(Strided { base: 4096 + 3 * LINE_BYTES - 4, ..row(0) }, true, WHO),
            Deferral::Last,
            "in part"
        );
        assert_eq!(deferred.row(row(3), true, WHO), Deferral::Due);
        deferred.end(1);
        assert!(!deferred.has_notes());
        assert_eq!(deferred.row(row(0), true, WHO), Deferral::Noted, "a barrier forgets");
    }

    #[test]
    fn what_was_looked_at_at_once_counts_too() {
        let mut deferred = Deferred::new((4096, 8 * LINE_BYTES), true);
        assert!(!deferred.mix((4096, 4099), Direct::Read));
        assert_eq!(deferred.row(row(0), false, WHO), Deferral::Noted, "two reads");
        assert!(!deferred.mix((4096, 4099), Direct::Read));
        assert_eq!(deferred.row(row(0), true, WHO), Deferral::Last);
        assert!(!deferred.mix((4096 + LINE_BYTES, 4099 + LINE_BYTES), Direct::Read));
        assert_eq!(deferred.row(row(1), true, WHO), Deferral::Last, "a store after a read that was not noted");
        assert!(!deferred.mix((4096 + 2 * LINE_BYTES, 4099 + 2 * LINE_BYTES), Direct::Copy));
        deferred.end(1);
        assert_eq!(deferred.row(row(2), false, WHO), Deferral::Due, "no barrier ends an asynchronous copy");
        let down = Strided { base: 4096 + 4 * LINE_BYTES, stride: 0u64.wrapping_sub(4), ..row(0) };
        assert_eq!(deferred.row(row(3), true, WHO), Deferral::Noted);
        assert_eq!(deferred.row(down, false, WHO), Deferral::Last, "from lane to lane down, into the line before");
        let mut shared = Deferred::new((4096, 8 * LINE_BYTES), false);
        assert_eq!(shared.row(row(0), false, WHO), Deferral::Due, "memory of a cluster");
    }
}
