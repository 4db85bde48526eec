//! Races: overlapping accesses, at least one of them a write, that are neither ordered nor morally strong (manual,
//! section 8.7).
//!
//! Two stores of the same value are not reported (compute-sanitizer lists them as information): programs set a flag
//! from many threads. Volatile accesses are strong and do not race (section 8.4.2). Yet a volatile write and read in
//! shared memory by lanes of one warp are reported if they are unordered and no fence makes the location a flag: such
//! code relies on warps executing in lockstep.

use crate::{
    Checks, Sanitizer, State,
    clock::Time,
    deferred::{By, Deferral},
    form::{Form, Strided, same_address},
    inferred::Inferred,
    lanes,
    row::Row,
    site::{Kind, Site},
    threads::{CtaThreads, Same, Threads, WarpMask},
    ticket,
    unshared::Ignored,
};
use margay_exec::{
    AccessKind, Actor, MemoryEvent, ObjectStep, Ordering, RowEvent, RowLoad, RowLoads, Scope, Semantics, SyncEvent,
    Tensor,
};
use margay_ir::pass::Decision;

/// How a read follows what was released: whether no instruction uses the value, whether threads repeat it until they find what they wait for,
/// and what it decides, if that is all that it does.
#[derive(Clone, Copy)]
struct Reading<'r> {
    sanitizer: &'r Sanitizer,
    discarded: bool,
    waits: bool,
    decision: Option<&'r Decision>,
}

/// Applies release and acquire patterns at a location.
fn follow_order(
    threads: &mut Threads,
    cta: &mut CtaThreads,
    e: &MemoryEvent<'_>,
    (group, address): (u32, u64),
    Reading { sanitizer, discarded, waits, decision }: Reading<'_>,
) {
    let place = (e.actor.at, e.actor.callers.is_empty());
    let strong = e.order.semantics != Semantics::Weak && !e.order.asynchronous;
    let mut held = if threads.keeps_histories() { held(e, address) } else { None };
    for lane in lanes(group) {
        let at = (e.actor.warp, lane);
        if strong && e.access != AccessKind::Store && !e.order.reduction {
            let same = decision.zip(held).and_then(|(decision, value)| sanitizer.goes_on(decision, e, (lane, value)));
            let same = same.as_ref().map(|same| same as Same<'_>);
            threads.read(cta, at, (address, held), e.order, (place, (discarded, waits), same));
        }
        if e.access.writes() {
            // What the next lane finds is known when the instruction is over.
            threads.write(cta, at, (address, held.take()), e.order, e.access == AccessKind::Atomic);
        }
    }
}

/// What a location of at most 8 bytes holds before an access.
fn held(e: &MemoryEvent<'_>, address: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    let known = e.size as usize <= bytes.len() && (e.peek)(address, &mut bytes[..e.size as usize]);
    known.then_some(u64::from_le_bytes(bytes))
}

/// Notes who stores flags, and who reads what.
fn note_flags(threads: &mut Threads, cta: &mut CtaThreads, e: &MemoryEvent<'_>) {
    for lane in lanes(e.actor.lanes) {
        let (at, address) = ((e.actor.warp, lane), e.addresses[lane as usize]);
        match e.access {
            AccessKind::Store => threads.hint(cta, at, address),
            _ => threads.take_hint(cta, at, address),
        }
    }
}

/// Applies release and acquire patterns at each location of an access; lanes at one location are one access if it is `shared`. If it stands for
/// one of a part of a word, loads may look at the word's second half.
fn follow_orders(
    threads: &mut Threads,
    cta: &mut CtaThreads,
    e: &MemoryEvent<'_>,
    (shared, part): (bool, bool),
    reading: Reading<'_>,
) {
    let strong = e.order.semantics != Semantics::Weak && !e.order.asynchronous;
    let mut left = e.actor.lanes;
    while left != 0 {
        let lane = left.trailing_zeros();
        let address = e.addresses[lane as usize];
        let group = if shared { same_address(e.addresses, left, lane) } else { 1 << lane };
        left &= !group;
        let is_local = address.wrapping_sub(e.local.0) < e.local.1;
        if !is_local && (strong || threads.is_released(address)) {
            follow_order(threads, cta, e, (group, address), reading);
            if part && e.access.writes() && e.size == 4 {
                let half = (address + 2, None);
                lanes(group).for_each(|lane| threads.write(cta, (e.actor.warp, lane), half, e.order, true));
            }
        }
    }
}

/// Whether an access lies in memory in which accesses of its site cannot race.
#[inline(always)]
fn is_within(ignored: &[Option<Ignored>], site: u32, access: Strided) -> bool {
    let (from, to) = access.range();
    let within = |(low, high): (u64, u64)| low <= from && from <= to && to <= high;
    ignored.get(site as usize).copied().flatten().flatten().is_some_and(within)
}

impl Sanitizer {
    pub(crate) fn look_for_races(&self, state: &mut State, e: &MemoryEvent<'_>) {
        let site = self.site_of(state, e);
        if self.is_ignored(state, e, site) {
            return;
        }
        match self.lanes_that_choose(state, e, site) {
            lanes if lanes == e.actor.lanes => self.compare(state, e, site),
            0 => {}
            lanes => {
                let actor = Actor { lanes, ..e.actor };
                self.compare(state, &MemoryEvent { actor, ..*e }, site);
            }
        }
    }

    /// The number of the site of an access, which the event remembers, unless it is one that is looked at as a whole each time.
    fn site_of(&self, state: &mut State, e: &MemoryEvent<'_>) -> u32 {
        if let Some(known) = e.memo.get().checked_sub(1) {
            return known;
        }
        let site = state.sites.number(&e.actor, e.access, e.order, e.element);
        if !self.may_choose(state, site) {
            e.memo.set(site + 1);
        }
        site
    }

    /// Records an access, and compares it with earlier ones.
    fn compare(&self, state: &mut State, e: &MemoryEvent<'_>, site: u32) {
        let form = Form::of(e);
        let weak = e.order.semantics == Semantics::Weak;
        let alone = e.actor.lanes.is_power_of_two() || matches!(form, Form::Row(..));
        if !state.clashes.is_empty() {
            Sanitizer::look_for_clashes(state, e);
        }
        if e.access == AccessKind::Store && weak && !alone {
            self.compare_lanes(state, e);
        }
        // Stores get a time of their own.
        if e.access.writes() {
            state.advance();
        }
        let strong = !weak && !e.order.asynchronous;
        let discarded = strong && e.access != AccessKind::Store && !ticket::is_used(state, site);
        if strong && !discarded && ticket::is_noted(e) {
            ticket::note(state, self.index(e.actor.cta), e.actor.warp, (e.addresses, e.actor.lanes), site);
        }
        self.look_for_lost_updates(state, e, site);
        self.look_for_incidental_order(state, e, site);
        let deferred = self.defer(state, e, form, site);
        let decision = if strong { Sanitizer::decision(state, site) } else { None };
        let waits = strong && !discarded && Sanitizer::awaits(state, site);
        let State { shadow, ctas, sites, threads, buffer, hits, .. } = state;
        let Some(cta) = ctas.get_mut(self.index(e.actor.cta)) else { return };
        let who = (e.actor.warp, e.actor.lanes, e.order.asynchronous);
        let mut kind = sites.kinds[site as usize];
        let in_global = |address: u64| !e.windows.iter().any(|(base, size)| address.wrapping_sub(*base) < *size);
        // Volatile accesses by lanes of a warp are looked at in shared memory only.
        kind.volatile = kind.volatile && !lanes(e.actor.lanes).all(|lane| in_global(e.addresses[lane as usize]));
        let mut row = self.row(&mut cta.threads, (site, kind), who, threads.now);
        row.shared = kind.proxy && !in_global(e.addresses[e.actor.lanes.trailing_zeros() as usize & 31]);
        let context = (&cta.threads, &sites.kinds[..]);
        let shared = form.is_shared(e.access);
        let passes_on = e.order.semantics.releases() || !cta.threads.are_alike(e.actor.warp);
        // What a location held before anything was released there is an earlier value, too.
        let kept = e.access.writes() && threads.keeps_histories();
        let follows = strong && (passes_on || kept) || (strong || e.access.writes()) && threads.any_released();
        let flags = strong
            && (e.access == AccessKind::Store || threads.any_hints())
            && in_global(e.addresses[e.actor.lanes.trailing_zeros() as usize & 31]);
        if !deferred {
            row.access_all((shadow, buffer), context, (e, form), hits);
        }
        if flags {
            note_flags(threads, &mut cta.threads, e);
        }
        if follows {
            let part = strong && sites.get(site).stands_for_part(&self.image);
            let reading = Reading { sanitizer: self, discarded, waits, decision: decision.as_deref() };
            follow_orders(threads, &mut cta.threads, e, (shared, part), reading);
        }
        if e.windows.len() > 1 {
            self.look_for_ended(state, e, site);
        }
        self.judge_all(state, e);
        // What is released here must be distinguishable from what follows.
        if e.access.writes() && e.order.semantics != Semantics::Weak {
            state.advance();
        }
    }

    /// An access in short: whether that is all there is to do. If not, nothing was done that the whole event would not do again.
    #[inline]
    pub(crate) fn see_row(&self, state: &mut State, e: &RowEvent<'_>) -> bool {
        let Checks { init, races, sync, unused, .. } = self.what;
        let Some(site) = e.memo.get().checked_sub(1).filter(|_| !init && state.clashes.is_empty()) else {
            return false;
        };
        if state.over {
            return true;
        }
        let index = self.index(e.actor.cta);
        let State { ctas, sites, threads, footprint, ignored, .. } = state;
        let Some(cta) = ctas.get_mut(index) else { return false };
        if sync {
            cta.arrivals.touch(&e.actor);
        }
        if !races {
            return !unused;
        }
        let kind = sites.kinds[site as usize];
        if kind.strong {
            let Site { access, order, .. } = *sites.get(site);
            return access == AccessKind::Atomic && self.see_updates(state, e, order);
        }
        let access = Strided { base: e.row.0, stride: e.row.1, size: e.size, lanes: e.actor.lanes };
        if !access.has_spans(kind) || kind.writes && threads.any_released() || cta.threads.uncertain(e.actor.warp) != 0
        {
            return false;
        }
        let first = access.first();
        if first.wrapping_sub(e.local.0) < e.local.1 {
            return true;
        }
        if first.wrapping_sub(cta.shared.0) >= cta.shared.1 {
            if self.footprints {
                let Some(bytes) = access.adjoining() else { return false };
                footprint.add(first, bytes, kind.writes);
            }
        } else if !kind.writes || self.proxies {
            return false;
        }
        if !index.is_multiple_of(self.sample) || is_within(ignored, site, access) {
            return true;
        }
        if kind.writes && !threads.advance() {
            return false;
        }
        if first.wrapping_sub(cta.shared.0) < cta.shared.1 {
            match cta.deferred.row(access, true, By { warp: e.actor.warp, site, now: threads.now }) {
                Deferral::Noted => return true,
                Deferral::Due => {}
                Deferral::Last => self.settle(state, index),
            }
        }
        let State { shadow, ctas, sites, threads, .. } = state;
        let Some(cta) = ctas.get_mut(index) else { return false };
        let row = self.row(&mut cta.threads, (site, kind), (e.actor.warp, e.actor.lanes, false), threads.now);
        row.try_strided(shadow, &sites.kinds, access)
    }

    /// Loads in short: how many of them need no more, from the first on.
    pub(crate) fn see_loads(&self, state: &mut State, e: &RowLoads<'_>) -> usize {
        let Checks { init, races, sync, unused, .. } = self.what;
        if state.over {
            return e.list.len();
        }
        let index = self.index(e.cta);
        let sampled = index.is_multiple_of(self.sample);
        let State { shadow, ctas, sites, threads, footprint, clashes, ignored, .. } = state;
        let Some(cta) = ctas.get_mut(index).filter(|_| !init && clashes.is_empty()) else { return 0 };
        let mut row: Option<Row> = None;
        let mut group = (0, 0);
        let notes = races && sampled;
        for (i, load) in e.list.iter().enumerate() {
            let RowLoad { first, place, lanes, warp } = load.get();
            if lanes == 0 {
                continue;
            }
            if races && cta.threads.uncertain(warp) != 0 {
                return i;
            }
            let place = &e.places[place as usize];
            if sync {
                cta.arrivals.pass((warp, lanes), place.at);
            }
            let known = place.memo.get();
            // Most of what lies in shared memory is deferred.
            let access = Strided { base: first, stride: place.stride, size: place.size, lanes };
            let start = access.first();
            if known != 0 && notes && start.wrapping_sub(cta.shared.0) < cta.shared.1 {
                match cta.deferred.row(access, false, By { warp, site: known - 1, now: threads.now }) {
                    Deferral::Noted => continue,
                    Deferral::Due => {}
                    Deferral::Last => return i,
                }
            }
            if !races && !unused {
                continue;
            }
            let Some(site) = known.checked_sub(1).filter(|_| races) else { return i };
            let kind = sites.kinds[site as usize];
            if !access.has_spans(kind) {
                return i;
            }
            let local = e.local.0 + u64::from(warp) * e.local.1;
            if start.wrapping_sub(local) < e.local.1 {
                continue;
            }
            if self.footprints && start.wrapping_sub(cta.shared.0) >= cta.shared.1 {
                let Some(bytes) = access.adjoining() else { return i };
                footprint.add(start, bytes, false);
            }
            if !sampled || is_within(ignored, site, access) {
                continue;
            }
            let row = match &mut row {
                Some(row) if group == (warp, lanes) => {
                    (row.site, row.kind) = (site, kind);
                    row
                }
                _ => {
                    group = (warp, lanes);
                    row.insert(self.row(&mut cta.threads, (site, kind), (warp, lanes, false), threads.now))
                }
            };
            if !row.try_strided(shadow, &sites.kinds, access) {
                return i;
            }
        }
        e.list.len()
    }

    pub(crate) fn row(
        &self,
        cta: &mut CtaThreads,
        (site, kind): (u32, Kind),
        (warp, lanes, agent): (u32, u32, bool),
        now: Time,
    ) -> Row {
        let warps = self.warps;
        Row {
            cta: cta.index,
            first: cta.index * warps,
            warps,
            warp,
            site,
            kind,
            agent,
            shared: false,
            now,
            begun: cta.begun,
            seen: cta.seen(WarpMask { warp, lanes }),
            published: cta.published(warp),
        }
    }

    /// Operations on a barrier object are strong accesses to it; its initialization is a plain write. Its invalidation is none:
    /// the last warp that uses a `cuda::pipeline` knows of the others by an atomic of one lane of each, after a
    /// `match.sync`, which orders no memory but shows that all lanes have come.
    pub(crate) fn access_object(
        &self,
        state: &mut State,
        e: &SyncEvent<'_>,
        at: u64,
        done: ObjectStep,
        order: Ordering,
    ) {
        let weak = done == ObjectStep::Initialize;
        if weak {
            state.marks.mark(at, 8);
        }
        if !self.what.races {
            return;
        }
        let order = Ordering {
            semantics: if weak { Semantics::Weak } else { Semantics::Relaxed },
            scope: Scope::Sys,
            volatile: false,
            asynchronous: false,
            proxy: false,
            tensor: Tensor::No,
            ..order
        };
        let access = if weak { AccessKind::Store } else { AccessKind::Atomic };
        let site = state.sites.number(&e.actor, access, order, 8);
        let windows = state.ctas.iter().map(|c| c.shared).find(|(base, size)| at.wrapping_sub(*base) < *size);
        let window = windows.map(|w| [w]);
        let inferred = Inferred::at(at);
        let windows = window.as_ref().map_or(&[][..], |w| &w[..]);
        let event = MemoryEvent { windows, ..inferred.event(e.actor, access, order, 8) };
        state.advance();
        let index = self.index(e.actor.cta);
        self.mix(state, index, (at, at + 7));
        let State { shadow, ctas, sites, threads, buffer, hits, .. } = state;
        let Some(cta) = ctas.get_mut(index) else { return };
        let who = (e.actor.warp, e.actor.lanes, order.asynchronous);
        let row = self.row(&mut cta.threads, (site, sites.kinds[site as usize]), who, threads.now);
        for lane in lanes(e.actor.lanes) {
            row.access((shadow, buffer), (&cta.threads, &sites.kinds), 1 << lane, (at, event.size), hits);
        }
        self.judge_all(state, &event);
    }
}
