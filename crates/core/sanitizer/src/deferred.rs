//! Accesses to shared memory that need not be compared with others at once.
//!
//! A barrier of the whole CTA orders everything before it with everything behind it. In between, a line of shared memory that is only
//! read, or only updated by relaxed atomics of one size, sees no race. So such accesses are noted, and a barrier forgets them all at once.
//! An access of another kind lets the notes be looked at first, one after the other, as if nothing had been deferred.

use crate::{
    Sanitizer, State,
    clock::Time,
    form::{Form, RowForm},
    lanes,
    shadow::LINE_BYTES,
    site::Kind,
};
use margay_exec::{AccessKind, LANES, MemoryEvent, Semantics};

/// The most notes of an interval.
const MOST: usize = 1 << 14;
/// How a line is used in an interval: in several ways, read only, by one store, or by atomics of elements of `size` bytes ([`ATOMICS`]` +
/// size`).
const MIXED: u32 = 0;
const READ: u32 = 1;
/// Stored to once.
const WRITTEN: u32 = 2;
const ATOMICS: u32 = 3;
/// The interval of lines that asynchronous copies access, which no barrier ends: they are always mixed.
const ALWAYS: u32 = u32::MAX;

/// What becomes of an access that may be deferred.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It is noted.
    Noted,
    /// It must be looked at.
    Due,
    /// It must be looked at after what was noted before.
    Last,
}

/// An access by lanes whose addresses increase, or decrease, evenly.
#[derive(Clone, Copy)]
pub struct Even {
    /// The address of lane 0, active or not, and the bytes from one lane to the next.
    pub base: u64,
    pub stride: u64,
    pub size: u32,
    pub lanes: u32,
}

impl Even {
    /// The first and the last byte. Addresses may decrease from lane to lane.
    #[inline(always)]
    fn range(&self) -> (u64, u64) {
        let Even { base, stride, size, lanes } = *self;
        let at = |lane: u32| base.wrapping_add(stride.wrapping_mul(lane.into()));
        let (one, other) = match lanes {
            u32::MAX => (base, at(31)),
            _ => (at(lanes.trailing_zeros()), at(31 - lanes.leading_zeros())),
        };
        (one.min(other), one.max(other).wrapping_add(u64::from(size) - 1))
    }
}

/// Lanes that load from, or update, addresses of any kind.
struct Scattered {
    addresses: [u64; LANES],
    size: u32,
    lanes: u32,
    who: By,
}

/// Who, by which instruction, and when.
#[derive(Clone, Copy)]
pub struct By {
    pub warp: u32,
    pub site: u32,
    pub now: Time,
}

/// How a line was used last: the number of the interval in the upper half, the way in the lower one, so that uses in earlier intervals are less.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Use(u64);

impl Use {
    #[inline(always)]
    const fn new(interval: u32, way: u32) -> Use {
        Use((interval as u64) << 32 | way as u64)
    }

    #[inline(always)]
    fn interval(self) -> u32 {
        (self.0 >> 32) as u32
    }

    #[inline(always)]
    fn way(self) -> u32 {
        self.0 as u32
    }
}

/// What a CTA has done since its last barrier.
pub struct Deferred {
    /// Its number, of which lines tell when they were used.
    number: u32,
    /// The first line's number, and how each line was used last.
    first: u64,
    lines: Vec<Use>,
    rows: Vec<(Even, By)>,
    scattered: Vec<Scattered>,
}

impl Deferred {
    /// The first one of a CTA with that shared memory; nothing is deferred if it shares the memory with other CTAs.
    pub fn new((base, size): (u64, u64), alone: bool) -> Deferred {
        let first = base / LINE_BYTES;
        let count = (base + size).div_ceil(LINE_BYTES) - first;
        let lines = vec![Use::new(0, MIXED); if alone { count as usize } else { 0 }];
        Deferred { number: 1, first, lines, rows: Vec::new(), scattered: Vec::new() }
    }

    fn has_notes(&self) -> bool {
        !self.rows.is_empty() || !self.scattered.is_empty()
    }

    /// All threads of the CTA have met: what is noted concerns nobody any more.
    pub fn end(&mut self) {
        self.rows.clear();
        self.scattered.clear();
        self.number += 1;
        if self.number == ALWAYS {
            self.lines.clear();
        }
    }

    /// The index of the line of a byte.
    #[inline(always)]
    fn line_of(&self, address: u64) -> usize {
        (address / LINE_BYTES).wrapping_sub(self.first) as usize
    }

    /// The lines of the bytes from `first` to `last`; none if not all are in the CTA's shared memory.
    #[inline(always)]
    fn lines_of(&mut self, (first, last): (u64, u64)) -> Option<&mut [Use]> {
        let (from, to) = (self.line_of(first), self.line_of(last).wrapping_add(1));
        self.lines.get_mut(from..to)
    }

    /// Whether an access of these bytes, the first and the last, may be deferred, if it uses them in this way.
    #[inline(always)]
    fn fate(&mut self, bytes: (u64, u64), way: u32) -> Fate {
        let number = self.number;
        let Some(lines) = self.lines_of(bytes) else { return Fate::Due };
        let mut fate = Fate::Noted;
        for line in lines {
            match (line.interval(), line.way()) {
                (interval, known) if interval == number && known == way => {}
                (interval, known) if interval == number && known != MIXED => return Fate::Last,
                (interval, _) if interval >= number => fate = Fate::Due,
                _ => *line = Use::new(number, way),
            }
        }
        fate
    }

    /// Notes an access by lanes whose addresses increase evenly, if it can be deferred.
    #[inline(always)]
    pub fn row(&mut self, access: Even, writes: bool, who: By) -> Fate {
        let (first, last) = access.range();
        // Most lie in one line, which was only read in this interval, or not used at all.
        let at = self.line_of(first);
        if at == self.line_of(last)
            && self.rows.len() < MOST
            && let Some(line) = self.lines.get_mut(at)
        {
            let now = Use::new(self.number, if writes { WRITTEN } else { READ });
            if *line < Use::new(self.number, 0) || *line == now && !writes {
                *line = now;
                self.rows.push((access, who));
                return Fate::Noted;
            }
        }
        let fate = match writes {
            false => self.fate((first, last), READ),
            true => self.written((first, last)),
        };
        match fate {
            Fate::Noted if self.rows.len() >= MOST => Fate::Due,
            Fate::Noted => {
                self.rows.push((access, who));
                fate
            }
            _ => fate,
        }
    }

    /// As [`Deferred::fate`], for a store: it must be the first access of all lines.
    #[inline(always)]
    fn written(&mut self, bytes: (u64, u64)) -> Fate {
        let number = self.number;
        let Some(lines) = self.lines_of(bytes) else { return Fate::Due };
        if lines.iter().all(|line| line.interval() < number) {
            lines.fill(Use::new(number, WRITTEN));
            return Fate::Noted;
        }
        // From now on, its lines are looked at as they come.
        if self.mix(bytes, (false, false)) { Fate::Last } else { Fate::Due }
    }

    /// Notes an access whose addresses are those of the event, all of them in shared memory, if it can be deferred.
    fn scatter(&mut self, e: &MemoryEvent<'_>, kind: Kind, who: By) -> bool {
        let way = match e.access {
            AccessKind::Load if !kind.strong => READ,
            AccessKind::Atomic if !kind.volatile && kind.element == e.size => ATOMICS + e.size,
            _ => return false,
        };
        let full = self.scattered.len() >= MOST / 4;
        // Most lines were used in this way before. An aligned access that is no longer than a line lies in one.
        let known = Use::new(self.number, way);
        let within = |at: u64| at.is_multiple_of(e.size.into()) && self.lines.get(self.line_of(at)) == Some(&known);
        let repeated = e.size.is_power_of_two()
            && (0..LANES).all(|lane| e.actor.lanes >> lane & 1 == 0 || within(e.addresses[lane]));
        let deferred = |lane: u32| {
            let at = e.addresses[lane as usize];
            let whole = way == READ || at.is_multiple_of(u64::from(e.size));
            whole && self.fate((at, at + u64::from(e.size) - 1), way) == Fate::Noted
        };
        if full || !repeated && !lanes(e.actor.lanes).all(deferred) {
            return false;
        }
        self.scattered.push(Scattered { addresses: *e.addresses, size: e.size, lanes: e.actor.lanes, who });
        true
    }

    /// Bytes are now accessed in other ways, only read, or by asynchronous copies. Whether that concerns what is noted.
    #[inline(always)]
    fn mix(&mut self, (first, last): (u64, u64), (reads, asynchronous): (bool, bool)) -> bool {
        // Copies may go past its end, which is a fault.
        let (from, to) = (self.line_of(first), self.line_of(last).saturating_add(1).min(self.lines.len()));
        let mut concerned = false;
        for line in self.lines.get_mut(from..to).into_iter().flatten() {
            let way = if line.interval() == self.number { line.way() } else { MIXED };
            concerned |= way != MIXED && !(reads && way == READ);
            match line.interval() {
                _ if asynchronous => *line = Use::new(ALWAYS, MIXED),
                ALWAYS => {}
                interval if reads && interval != self.number => *line = Use::new(self.number, READ),
                // Reads disturb no reads.
                _ if reads && way == READ => {}
                _ => *line = Use::new(self.number, MIXED),
            }
        }
        concerned
    }
}

impl Sanitizer {
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
                let all = lanes(e.actor.lanes).all(own);
                let who = By { warp: e.actor.warp, site, now };
                if all && plain && !e.order.asynchronous && cta.deferred.scatter(e, kind, who) {
                    return true;
                }
                let reads = e.access == AccessKind::Load && plain && !kind.strong && !e.order.asynchronous;
                let mut concerned = false;
                for lane in lanes(e.actor.lanes).filter(|lane| all || own(*lane)) {
                    let at = e.addresses[lane as usize];
                    concerned |= cta.deferred.mix((at, at + bytes - 1), (reads, e.order.asynchronous));
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
            && cta.deferred.mix(range, (false, false))
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
        for (Even { base, stride, size, lanes: mask }, who) in rows.drain(..) {
            let kind = sites.kinds[who.site as usize];
            let row = self.row(&mut cta.threads, (who.site, kind), (who.warp, mask, false), who.now);
            let context = (&cta.threads, &sites.kinds[..]);
            match RowForm::of((base, stride), (size, mask), kind) {
                Some(form) if row.try_form(shadow, &sites.kinds, &form) => {}
                Some(RowForm { shift: Some(shift), .. }) => {
                    row.access_row((shadow, buffer), context, (mask, shift), base, hits);
                }
                Some(RowForm { first, .. }) => {
                    row.access_same((shadow, buffer), context, mask, (first, size), hits);
                }
                None if stride == 0 => row.access((shadow, buffer), context, mask, (base, size), hits),
                None => {
                    let at = |lane: u32| base.wrapping_add(stride.wrapping_mul(lane.into()));
                    lanes(mask)
                        .for_each(|lane| row.access((shadow, buffer), context, 1 << lane, (at(lane), size), hits));
                }
            }
        }
        for Scattered { addresses, size, lanes: mask, who } in scattered.drain(..) {
            let kind = sites.kinds[who.site as usize];
            let row = self.row(&mut cta.threads, (who.site, kind), (who.warp, mask, false), who.now);
            let context = (&cta.threads, &sites.kinds[..]);
            let mut left = mask;
            while left != 0 {
                let at = addresses[left.trailing_zeros() as usize];
                let same = |lane: &u32| addresses[*lane as usize] == at;
                let group = lanes(left).take_while(same).fold(0, |group, lane| group | 1 << lane);
                left &= !group;
                row.access((shadow, buffer), context, group, (at, size), hits);
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

    fn row(line: u64) -> Even {
        Even { base: 4096 + line * LINE_BYTES, stride: 4, size: 4, lanes: u32::MAX }
    }

    const WHO: By = By { warp: 0, site: 0, now: 1 };

    #[test]
    fn lines_used_in_one_way_are_deferred() {
        let mut deferred = Deferred::new((4096, 8 * LINE_BYTES), true);
        assert_eq!([deferred.row(row(0), false, WHO), deferred.row(row(0), false, WHO)], [Fate::Noted; 2]);
        assert_eq!(deferred.row(row(0), true, WHO), Fate::Last, "stored to after it was read");
        assert_eq!(deferred.row(row(0), false, WHO), Fate::Due, "from then on, nothing is deferred");
        assert_eq!(deferred.row(row(1), true, WHO), Fate::Noted);
        assert_eq!(deferred.row(row(1), false, WHO), Fate::Last, "read after it was stored to");
        assert_eq!(deferred.row(row(2), true, WHO), Fate::Noted);
        assert_eq!(deferred.row(Even { base: 4096 + 3 * LINE_BYTES - 4, ..row(0) }, true, WHO), Fate::Last, "in part");
        assert_eq!(deferred.row(row(3), true, WHO), Fate::Due);
        deferred.end();
        assert!(!deferred.has_notes());
        assert_eq!(deferred.row(row(0), true, WHO), Fate::Noted, "a barrier forgets");
    }

    #[test]
    fn what_was_looked_at_at_once_counts_too() {
        let mut deferred = Deferred::new((4096, 8 * LINE_BYTES), true);
        assert!(!deferred.mix((4096, 4099), (true, false)));
        assert_eq!(deferred.row(row(0), false, WHO), Fate::Noted, "two reads");
        assert!(!deferred.mix((4096, 4099), (true, false)));
        assert_eq!(deferred.row(row(0), true, WHO), Fate::Last);
        assert!(!deferred.mix((4096 + LINE_BYTES, 4099 + LINE_BYTES), (true, false)));
        assert_eq!(deferred.row(row(1), true, WHO), Fate::Last, "a store after a read that was not noted");
        assert!(!deferred.mix((4096 + 2 * LINE_BYTES, 4099 + 2 * LINE_BYTES), (false, true)));
        deferred.end();
        assert_eq!(deferred.row(row(2), false, WHO), Fate::Due, "no barrier ends an asynchronous copy");
        let down = Even { base: 4096 + 4 * LINE_BYTES, stride: 0u64.wrapping_sub(4), ..row(0) };
        assert_eq!(deferred.row(row(3), true, WHO), Fate::Noted);
        assert_eq!(deferred.row(down, false, WHO), Fate::Last, "from lane to lane down, into the line before");
        let mut shared = Deferred::new((4096, 8 * LINE_BYTES), false);
        assert_eq!(shared.row(row(0), false, WHO), Fate::Due, "memory of a cluster");
    }
}
