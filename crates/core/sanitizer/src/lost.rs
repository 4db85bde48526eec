//! Lost updates: a thread loads a word, computes a new value and stores it (`*p = *p + 1`), and what another thread writes in between is lost.
//!
//! If the accesses are plain, the two threads race. Strong ones (volatile, relaxed) do not, in the sense of the memory model, but nothing makes
//! the load and the store one operation. So such an update and another thread's write are reported if nothing orders the two. An access that
//! is executed because of what the word held after the other write comes after it, by coherence: a thread may wait for its turn and then pass it
//! on (`while (*turn != me); *turn = *turn + 1`).
//!
//! An atomic operation that leaves the word as it is (a lock that is taken already) is no write here: there is nothing to lose.
//!
//! Not reported are stores under a condition (`if (!*taken) *taken = 1`, `if (d < *best) *best = d`): programs set flags in this way from many
//! threads, and repeat such steps until nothing changes. Where the threads then do what only one of them may do, their plain accesses race.

use crate::{
    Finding, FindingKind, Sanitizer, State,
    clock::{Side, Time},
    hash::Map,
    incidental::is_needed,
    instructions, lanes, name,
    shadow::WarpLanes,
    site::{Site, of_site},
    threads::WarpMask,
    unchanged::{Atomics, changes_nothing},
};
use margay_exec::{AccessKind, Image, MemoryEvent, Semantics};
use margay_ir::pass::recomputes;

/// Threads whose latest write of a location is kept.
const LIMIT: usize = 8;
/// Reads of a location that are kept.
const MAX_READS: usize = 64;
/// Locations of which they are.
const MAX_LOCATIONS: usize = 1 << 16;

/// A strong write.
#[derive(Clone, Copy)]
struct Write {
    cta: u32,
    warp: u32,
    lane: u32,
    time: Time,
    site: u32,
}

/// Strong reads by lanes of a warp.
#[derive(Clone, Copy)]
struct Read {
    cta: u32,
    warp: u32,
    lanes: u32,
    time: Time,
    site: u32,
}

/// The strong reads of a location.
#[derive(Default)]
struct Reads {
    /// The latest ones by each thread at each site.
    list: Vec<Read>,
    /// The time of the latest one that was dropped.
    dropped: Time,
}

impl Reads {
    fn add(&mut self, new: Read) {
        self.list.retain_mut(|r| {
            if (r.cta, r.warp, r.site) == (new.cta, new.warp, new.site) {
                r.lanes &= !new.lanes;
            }
            r.lanes != 0
        });
        if self.list.len() >= MAX_READS {
            self.dropped = self.list.remove(0).time;
        }
        self.list.push(new);
    }
}

/// What is known of updates by a load and a store.
#[derive(Default)]
pub struct Updates {
    /// By site, once it is known: whether it stores what was computed from a load of the same place.
    sites: Vec<Option<bool>>,
    /// By location: its latest strong writes, one of each thread.
    writes: Map<u64, Vec<Write>>,
    reads: Map<u64, Reads>,
    atomics: Atomics,
}

impl Updates {
    pub fn forget(&mut self, base: u64, size: u64) {
        crate::hash::forget(&mut self.writes, base, size);
        crate::hash::forget(&mut self.reads, base, size);
    }
}

/// Whether a program contains such updates.
pub fn has_updates(image: &Image) -> bool {
    image.ir.funcs.iter().any(|func| (0..func.insts.len() as u32).any(|i| recomputes(func, i).is_some()))
}

/// Whether a site stores what was computed from a load of the same place.
fn is_update(state: &mut State, site: u32) -> bool {
    let State { updates: Updates { sites: looked, .. }, sites, image, .. } = state;
    let of = || {
        let (site, Some(image)) = (sites.get(site), image.as_ref()) else { return false };
        let func = image.ir.func(site.at.0);
        site.access == AccessKind::Store && instructions(func, site.at.1).any(|i| recomputes(func, i).is_some())
    };
    *of_site(looked, site).get_or_insert_with(of)
}

impl Sanitizer {
    /// Notes a strong access, and compares a write with those of other threads, if one of the two is part of such an update.
    pub(crate) fn look_for_lost_updates(&self, state: &mut State, e: &MemoryEvent<'_>, site: u32) {
        if !self.updates || e.order.semantics == Semantics::Weak || e.order.asynchronous {
            return;
        }
        let cta = self.index(e.actor.cta);
        let (warp, time) = (e.actor.warp, state.threads.now);
        if e.access != AccessKind::Store && !e.order.reduction {
            for lane in lanes(e.actor.lanes) {
                let (at, reads) = (e.addresses[lane as usize], &mut state.updates.reads);
                if reads.len() < MAX_LOCATIONS || reads.contains_key(&at) {
                    reads.entry(at).or_default().add(Read { cta, warp, lanes: 1 << lane, time, site });
                }
            }
        }
        if !e.access.writes() {
            return;
        }
        for lane in lanes(e.actor.lanes) {
            let at = e.addresses[lane as usize];
            let atomics = &mut state.updates.atomics;
            if at.wrapping_sub(e.local.0) < e.local.1 || changes_nothing(atomics, &self.image, (e, lane), site) {
                continue;
            }
            let known = state.updates.writes.get(&at).cloned().unwrap_or_default();
            if let Some(other) = known.iter().find(|w| self.loses(state, (w, site), (e, lane))) {
                self.report_lost(state, e, (lane, site), other);
            }
            if known.is_empty() && state.updates.writes.len() >= MAX_LOCATIONS {
                continue;
            }
            let writes = state.updates.writes.entry(at).or_default();
            writes.retain(|w| (w.cta, w.warp, w.lane) != (cta, warp, lane));
            if writes.len() >= LIMIT {
                writes.remove(0);
            }
            writes.push(Write { cta, warp, lane, time, site });
        }
    }

    /// Whether one of two writes may lose the other: an earlier one, and that of a lane of an event.
    fn loses(&self, state: &mut State, (w, site): (&Write, u32), (e, lane): (&MemoryEvent<'_>, u32)) -> bool {
        if !is_update(state, w.site) && !is_update(state, site) {
            return false;
        }
        let State { ctas, sites, needs, image, updates, .. } = state;
        let (Some(cta), Some(image)) = (ctas.get(self.index(e.actor.cta)), image) else { return false };
        let now = WarpMask { warp: e.actor.warp, lanes: 1 << lane };
        if cta.threads.unseen(now, (w.cta, w.warp, 1 << w.lane), Side::Program, w.time).is_none() {
            return false;
        }
        let (earlier, later) = (sites.get(w.site), sites.get(site));
        let other = WarpLanes { cta: w.cta, warp: w.warp, lanes: 1 << w.lane };
        let at = e.addresses[lane as usize];
        // Volatile accesses by lanes of one warp to shared memory are a race anyway.
        let shared = e.windows.iter().any(|(base, size)| at.wrapping_sub(*base) < *size);
        let one_warp = (w.cta, w.warp) == (cta.threads.index, e.actor.warp);
        if !self.are_morally_strong((earlier, later), (other, e.actor.cta, e.actor.warp, lane)) || shared && one_warp {
            return false;
        }
        // Without its reads, nothing is known of why the thread stores.
        let Some(reads) = updates.reads.get(&at).filter(|reads| reads.dropped < w.time) else { return false };
        let access = later.in_kernel();
        let precedes = |r: &Read| {
            let seen = |lane: u32| cta.threads.unseen(now, (r.cta, r.warp, 1 << lane), Side::Program, r.time).is_none();
            r.time >= w.time && lanes(r.lanes).any(seen)
        };
        !reads.list.iter().filter(|r| precedes(r)).any(|r| {
            let read = sites.get(r.site).in_kernel();
            let key = (read.1.span.start, access.1.span.start);
            *needs.entry(key).or_insert_with(|| is_needed(image, read, access))
        })
    }

    fn report_lost(&self, state: &mut State, e: &MemoryEvent<'_>, (lane, site): (u32, u32), other: &Write) {
        let torn = is_update(state, site);
        let (earlier, later): (&Site, &Site) = (state.sites.get(other.site), state.sites.get(site));
        let at = e.addresses[lane as usize];
        let window = e.windows.iter().find(|(base, size)| at.wrapping_sub(*base) < *size);
        let what = match window {
            Some((base, _)) => name::shared(&self.image, self.names, at - base, e.element),
            None => name::global(e.memory, self.names, at, e.element),
        };
        let verb = |access| if access == AccessKind::Atomic { "updates atomically" } else { "writes" };
        let second = self.party(&e.actor, lane, verb(e.access));
        let mut first = self.party(&e.actor, lane, verb(earlier.access));
        (first.thread, first.cta) = (self.thread(other.warp, other.lane), self.cta_of(other.cta));
        (first.at, first.callers) = (earlier.at, earlier.callers.clone());
        let update = self.line(if torn { later } else { earlier }.in_kernel());
        let places = (earlier.at, Some(e.actor.at));
        state.report(FindingKind::Race, places, || Finding {
            kind: FindingKind::Race,
            title: format!(
                "race: an update of {what} by a read and a write, and another thread's write that it may lose"
            ),
            parties: vec![second, first],
            notes: vec![format!(
                "{update} reads, changes and writes it in several steps; the other write may come in between"
            )],
            help: Some(format!("use an atomic operation at {update} (`atomicAdd()`, `fetch_add()`, ...)")),
            times: 1,
        });
    }
}
