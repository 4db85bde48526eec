//! Writes of flags and counters that a thread might have read in place of the last one.
//!
//! A thread waits until a counter is at least 3, and finds 4. It comes after all four threads that have raised it, but only because it looked
//! late: in another execution it finds 3, continues in the same way, and the fourth is still at work. So what it learns is what the earliest
//! write with which it takes the same branch has released, of those that it may read: it must not know of a later one, nor have read one
//! (coherence, manual, section 8.10), and `fence.sc` of both threads in between order the two as well (section 8.10.3).

use super::{CtaThreads, Release, Threads};
use crate::{
    clock::{Clock, Side, Time},
    hash::Map,
    site::Place,
};
use std::{collections::VecDeque, sync::Arc};

/// Writes of a location that are kept.
const MAX_WRITES: usize = 64;
/// Locations of which they are: flags and counters that threads wait for are few.
const MAX_LOCATIONS: usize = 1 << 16;
/// How many of them there may be when one is added where nothing was released yet.
const MAX_UNRELEASED: usize = 1 << 12;
/// Reads of an earlier value that are kept for reports.
const MAX_EARLY_READS: usize = 64;

/// A thread: its CTA, warp and lane.
type Thread = (u32, u32, u32);

/// A write of a location.
struct Write {
    /// `None` for whatever the location held before the first one.
    by: Option<Thread>,
    time: Time,
    /// What the location held afterwards, once that is known.
    value: Option<u64>,
    /// How many releases could be acquired then, of a list.
    count: usize,
    list: List,
}

/// A list of releases, to which updates append.
#[derive(Clone)]
enum List {
    /// That of the location.
    Present,
    /// What was the location's before it was replaced.
    Past(Arc<Vec<Release>>),
}

/// What a write has made of a location's list of releases.
pub(super) enum Change {
    /// It has appended to it.
    Appended,
    /// It has replaced it; this was there before.
    Replaced(Vec<Release>),
}

/// The last writes of a location in coherence order.
#[derive(Default)]
pub(super) struct History {
    /// How many came before these.
    dropped: u64,
    writes: VecDeque<Write>,
    /// By thread: when it read last, and which of all writes.
    reads: Map<Thread, (Time, u64)>,
}

/// A read that might have found an earlier value.
struct EarlyRead {
    cta: u32,
    place: Place,
    /// What it would not have acquired then.
    clocks: Vec<Arc<Clock>>,
}

/// What is known of all locations.
#[derive(Default)]
pub(super) struct Histories {
    /// Whether any instruction reads in a way that makes earlier values matter.
    wanted: bool,
    by_location: Map<u64, History>,
    /// By thread: when it last executed a fence.
    fences: Map<Thread, Time>,
    early_reads: VecDeque<EarlyRead>,
}

/// Whether a value makes a thread leave a loop, as the one that it has read does.
pub type Same<'a> = &'a dyn Fn(u64) -> bool;

impl Histories {
    pub(super) fn forget(&mut self, base: u64, size: u64) {
        crate::hash::forget(&mut self.by_location, base, size);
    }

    pub(super) fn fence(&mut self, by: Thread, now: Time) {
        if self.wanted {
            self.fences.insert(by, now);
        }
    }

    /// A location that held a value is written, which leaves `count` releases there.
    pub(super) fn write(
        &mut self,
        at: u64,
        (by, time): (Thread, Time),
        held: Option<u64>,
        change: Change,
        count: usize,
    ) {
        let most = if count == 0 { MAX_UNRELEASED } else { MAX_LOCATIONS };
        if self.by_location.len() >= most && !self.by_location.contains_key(&at) {
            return;
        }
        let history = self.by_location.entry(at).or_default();
        if let Change::Replaced(old) = change {
            let past = List::Past(Arc::new(old));
            let present = |w: &&mut Write| matches!(w.list, List::Present);
            history.writes.iter_mut().filter(present).for_each(|w| w.list = past.clone());
        }
        match history.writes.back_mut() {
            Some(last) => last.value = last.value.or(held),
            None => history.writes.push_back(Write { by: None, time: 0, value: held, count: 0, list: List::Present }),
        }
        if history.writes.len() >= MAX_WRITES {
            history.writes.pop_front();
            history.dropped += 1;
        }
        history.writes.push_back(Write { by: Some(by), time, value: None, count, list: List::Present });
    }

    /// Whether the history of a location is kept.
    pub(super) fn has(&self, at: u64) -> bool {
        self.by_location.contains_key(&at)
    }

    /// What a thread would have found in a location that holds a value if it had read the earliest one with which it takes the same branch:
    /// a list, and how many of it; `None` if that is the last one.
    fn earliest(
        &mut self,
        (cta, warp, lane): (&CtaThreads, u32, u32),
        (at, held): (u64, Option<u64>),
        (same, now): (Option<Same<'_>>, Time),
    ) -> Option<(List, usize)> {
        let me = (cta.index, warp, lane);
        let History { dropped, writes, reads } = self.by_location.get_mut(&at)?;
        let last = writes.len().checked_sub(1)?;
        writes[last].value = writes[last].value.or(held);
        let clock = &cta.look(warp, lane).clock;
        // Lanes inform each other of what they have done by shuffles, on which programs rely.
        let knows = |by: Thread, time: Time| (by.0, by.1) == (me.0, me.1) || clock.get(by, Side::Program) >= time;
        let fenced = |by: Thread| self.fences.get(&by).copied().unwrap_or(0);
        let mine = fenced(me);
        let precedes = |w: &Write| w.by.is_some_and(|by| knows(by, w.time) || mine > w.time && fenced(by) > w.time);
        let found = same.and_then(|same| {
            let known = (0..=last).rev().find(|i| precedes(&writes[*i])).unwrap_or(0);
            let read = reads.iter().filter(|(by, (time, _))| knows(**by, *time)).map(|(_, (_, read))| *read).max();
            let first = known.max(read.unwrap_or(0).saturating_sub(*dropped) as usize);
            (first..last).find(|i| writes[*i].value.is_some_and(same))
        });
        reads.insert(me, (now, *dropped + last as u64));
        found.map(|found| (writes[found].list.clone(), writes[found].count))
    }
}

impl Threads {
    /// From now on, histories are kept: some instruction reads in a way that makes earlier values matter.
    pub fn keep_histories(&mut self) {
        self.histories.wanted = true;
    }

    /// Whether they are.
    pub fn keeps_histories(&self) -> bool {
        self.histories.wanted
    }

    /// Where a thread of a CTA has read a value that signaled another one's access, but might have read an earlier one that did not.
    pub fn early_read(&self, cta: u32, other: Thread, time: Time) -> Option<Place> {
        let signals = |h: &&EarlyRead| h.cta == cta && h.clocks.iter().any(|c| c.get(other, Side::Program) >= time);
        self.histories.early_reads.iter().find(signals).map(|h| h.place)
    }

    /// What a thread would have acquired from a location that holds a value, if it had read the earliest one with which it takes the same
    /// branch; `None` if that is the last one.
    pub(super) fn releases_at_earliest(
        &mut self,
        who: (&CtaThreads, u32, u32),
        (at, held): (u64, Option<u64>),
        (same, place): (Option<Same<'_>>, Place),
    ) -> Option<Vec<Release>> {
        let cta = who.0.index;
        let (list, count) = self.histories.earliest(who, (at, held), (same, self.now))?;
        self.note_early_read(cta, at, place);
        let all = match &list {
            List::Present => self.released.get(&at).map_or(&[][..], Vec::as_slice),
            List::Past(all) => all.as_slice(),
        };
        Some(all.get(..count)?.to_vec())
    }

    /// Keeps for reports what a read would not have acquired.
    fn note_early_read(&mut self, cta: u32, at: u64, place: Place) {
        let Some(list) = self.released.get(&at) else { return };
        let early_reads = &mut self.histories.early_reads;
        if early_reads.len() >= MAX_EARLY_READS {
            early_reads.pop_front();
        }
        early_reads.push_back(EarlyRead { cta, place, clocks: list.iter().map(|r| r.clock.clone()).collect() });
    }
}
