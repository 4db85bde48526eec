//! Races: overlapping accesses, at least one of them a write, that are neither ordered nor morally strong (manual,
//! section 8.7).
//!
//! Two stores of the same value are not reported (compute-sanitizer lists them as information): programs set a flag
//! from many threads. Volatile accesses are strong and do not race (section 8.4.2). Yet a volatile write and read in
//! shared memory by lanes of one warp are reported if they are unordered and no fence makes the location a flag: such
//! code relies on warps executing in lockstep.

use crate::{
    Checker, Finding, FindingKind, Party, State, What,
    clash::Clash,
    clock::Time,
    form::{Form, RowForm},
    lanes, name,
    phase::{By, Even, Fate},
    row::{Hit, Row},
    shadow::{AGENT, Crew, WORD},
    site::{Kind, Site},
    threads::{CtaThreads, Threads, Who},
};
use margay_exec::{
    AccessKind, LANES, MemoryEvent, ObjectStep, Ordering, RowEvent, RowLoad, RowLoads, Scope, Semantics, SyncEvent,
};
use std::cell::Cell;

/// What is missing between two accesses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cause {
    /// A wait for an asynchronous copy.
    Copy,
    /// A scope that includes the other thread.
    Scope,
    /// Equal sizes: both accesses are strong.
    Size,
    /// Strength of one of the accesses.
    Plain,
    /// A barrier between volatile accesses of a warp.
    Volatile,
    /// A barrier.
    Order,
}

/// The narrowest group that contains two threads.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Distance {
    Thread,
    Warp,
    Cta,
    Cluster,
    Grid,
}

/// Applies release and acquire patterns at a location.
fn follow_order(threads: &mut Threads, cta: &mut CtaThreads, e: &MemoryEvent<'_>, group: u32, address: u64) {
    let strong = e.order.semantics != Semantics::Weak && !e.order.asynchronous;
    for lane in lanes(group) {
        let at = (e.actor.warp, lane);
        if strong && e.access != AccessKind::Store && !e.order.reduction {
            threads.read(cta, at, address, e.order);
        }
        if e.access.writes() {
            threads.write(cta, at, address, e.order, e.access == AccessKind::Atomic);
        }
    }
}

/// The lanes from `first` on, of those in a mask, that access the same address.
fn same_address(e: &MemoryEvent<'_>, mask: u32, first: u32) -> u32 {
    let address = e.addresses[first as usize];
    let same = |lane: &u32| e.addresses[*lane as usize] == address;
    lanes(mask).skip_while(|lane| *lane < first).take_while(same).fold(0, |group, lane| group | 1 << lane)
}

impl Checker {
    fn distance(&self, other: Crew, (cta, warp): ([u32; 3], u32), lane: u32) -> Distance {
        let id = self.cta_of(other.cta);
        match () {
            _ if id == cta && other.warp == warp && other.lanes == 1 << lane => Distance::Thread,
            _ if id == cta && other.warp == warp => Distance::Warp,
            _ if id == cta => Distance::Cta,
            _ if self.cluster_of(id) == self.cluster_of(cta) => Distance::Cluster,
            _ => Distance::Grid,
        }
    }

    /// Whether two accesses are morally strong: both strong, in each other's scopes, and completely overlapping
    /// (section 8.7).
    pub(crate) fn morally_strong(&self, (a, b): (&Site, &Site), distance: Distance) -> Result<(), Cause> {
        match (a.is_strong(), b.is_strong()) {
            (true, true) => {}
            (false, false) => return Err(Cause::Order),
            _ => return Err(Cause::Plain),
        }
        let needed = match distance {
            Distance::Thread | Distance::Warp | Distance::Cta => Scope::Cta,
            Distance::Cluster => Scope::Cluster,
            Distance::Grid => Scope::Gpu,
        };
        if a.order.scope.min(b.order.scope) < needed {
            return Err(Cause::Scope);
        }
        if a.element != b.element { Err(Cause::Size) } else { Ok(()) }
    }

    pub(crate) fn look_for_races(&self, state: &mut State, e: &MemoryEvent<'_>) {
        let site = match e.memo.get().checked_sub(1) {
            Some(known) => known,
            None => {
                let site = state.sites.number(&e.actor, e.access, e.order, e.element);
                e.memo.set(site + 1);
                site
            }
        };
        let form = Form::of(e);
        let weak = e.order.semantics == Semantics::Weak;
        let alone = e.actor.lanes.is_power_of_two() || matches!(form, Form::Row(..));
        if !state.clashes.is_empty() {
            Checker::look_for_clashes(state, e);
        }
        if e.access == AccessKind::Store && weak && !alone {
            self.compare_lanes(state, e);
        }
        // Stores get a time of their own.
        if e.access.writes() {
            state.advance();
        }
        let strong = !weak && !e.order.asynchronous;
        let put_off = self.put_off(state, e, form, site);
        let State { shadow, ctas, sites, threads, buffer, hits, .. } = state;
        let Some(cta) = ctas.get_mut(self.index(e.actor.cta)) else { return };
        let who = (e.actor.warp, e.actor.lanes, e.order.asynchronous);
        let row = self.row(&mut cta.threads, (site, sites.kinds[site as usize]), who, threads.now);
        let context = (&cta.threads, &sites.kinds[..]);
        let is_local = |address: u64| address.wrapping_sub(e.local.0) < e.local.1;
        let plain = weak && !e.order.asynchronous;
        let whole = |address: u64| plain && matches!(e.size, 4 | 8 | 16) && address.is_multiple_of(u64::from(e.size));
        // Lanes that load the same address are one access, and so are lanes of one atomic; stores are performed one after
        // another.
        let shared = e.access == AccessKind::Load || matches!(form, Form::Same(_)) && e.access != AccessKind::Store;
        let passes_on = e.order.semantics.releases() || !cta.threads.are_alike(e.actor.warp);
        let follows = strong && passes_on || (strong || e.access.writes()) && threads.any_released();
        let in_global = |address: u64| !e.windows.iter().any(|(base, size)| address.wrapping_sub(*base) < *size);
        let flags = strong
            && (e.access == AccessKind::Store || threads.any_hints())
            && in_global(e.addresses[e.actor.lanes.trailing_zeros() as usize & 31]);
        match form {
            _ if put_off => {}
            Form::Row(address, shift) if plain => {
                if !is_local(e.addresses[e.actor.lanes.trailing_zeros() as usize & 31]) {
                    row.access_row((shadow, buffer), context, (e.actor.lanes, shift), address, hits);
                }
            }
            _ => {
                let mut left = e.actor.lanes;
                while left != 0 {
                    let lane = left.trailing_zeros();
                    let address = e.addresses[lane as usize];
                    let group = match form {
                        Form::Same(_) if shared => left,
                        _ if shared => same_address(e, left, lane),
                        _ => 1 << lane,
                    };
                    left &= !group;
                    match is_local(address) {
                        true => {}
                        false if whole(address) => {
                            row.access_same((shadow, buffer), context, group, (address, e.size), hits);
                        }
                        false => row.access((shadow, buffer), context, group, (address, e.size), hits),
                    }
                }
            }
        }
        if flags {
            for lane in lanes(e.actor.lanes) {
                let (at, address) = ((e.actor.warp, lane), e.addresses[lane as usize]);
                match e.access {
                    AccessKind::Store => threads.hint(&cta.threads, at, address),
                    _ => threads.take_hint(&mut cta.threads, at, address),
                }
            }
        }
        if follows {
            let mut left = e.actor.lanes;
            while left != 0 {
                let lane = left.trailing_zeros();
                let address = e.addresses[lane as usize];
                let group = if shared { same_address(e, left, lane) } else { 1 << lane };
                left &= !group;
                if !is_local(address) && (strong || threads.is_released(address)) {
                    follow_order(threads, &mut cta.threads, e, group, address);
                }
            }
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
        let What { init, races, sync, unused, .. } = self.what;
        let Some(site) = e.memo.get().checked_sub(1).filter(|_| !init && state.clashes.is_empty()) else {
            return false;
        };
        if state.over {
            return true;
        }
        let index = self.index(e.actor.cta);
        let State { ctas, sites, threads, footprint, .. } = state;
        let Some(cta) = ctas.get_mut(index) else { return false };
        if sync {
            cta.arrivals.touch(&e.actor);
        }
        if !races {
            return !unused;
        }
        let kind = sites.kinds[site as usize];
        let Some(line) = RowForm::of(e.row, (e.size, e.actor.lanes), kind) else { return false };
        if kind.writes && threads.any_released() {
            return false;
        }
        if line.first.wrapping_sub(e.local.0) < e.local.1 {
            return true;
        }
        if line.first.wrapping_sub(cta.shared.0) >= cta.shared.1 {
            if self.footprints {
                let Some(bytes) = line.bytes else { return false };
                footprint.add(line.first, bytes, kind.writes);
            }
        } else if !kind.writes {
            return false;
        }
        if !index.is_multiple_of(self.sample) {
            return true;
        }
        if kind.writes && !threads.advance() {
            return false;
        }
        if line.first.wrapping_sub(cta.shared.0) < cta.shared.1 {
            let access = Even { base: e.row.0, stride: e.row.1, size: e.size, lanes: e.actor.lanes };
            match cta.phase.row(access, true, By { warp: e.actor.warp, site, now: threads.now }) {
                Fate::Noted => return true,
                Fate::Due => {}
                Fate::Last => self.settle(state, index),
            }
        }
        let State { shadow, ctas, sites, threads, .. } = state;
        let Some(cta) = ctas.get_mut(index) else { return false };
        let row = self.row(&mut cta.threads, (site, kind), (e.actor.warp, e.actor.lanes, false), threads.now);
        row.try_form(shadow, &sites.kinds, &line)
    }

    /// Loads in short: how many of them need no more, from the first on.
    pub(crate) fn see_loads(&self, state: &mut State, e: &RowLoads<'_>) -> usize {
        let What { init, races, sync, unused, .. } = self.what;
        if state.over {
            return e.list.len();
        }
        let index = self.index(e.cta);
        let sampled = index.is_multiple_of(self.sample);
        let State { shadow, ctas, sites, threads, footprint, clashes, .. } = state;
        let Some(cta) = ctas.get_mut(index).filter(|_| !init && clashes.is_empty()) else { return 0 };
        let mut row: Option<Row> = None;
        let mut group = (0, 0);
        let notes = races && sampled;
        for (i, load) in e.list.iter().enumerate() {
            let RowLoad { first, place, lanes, warp } = load.get();
            if lanes == 0 {
                continue;
            }
            let place = &e.places[place as usize];
            if sync {
                cta.arrivals.pass((warp, lanes), place.at);
            }
            let known = place.memo.get();
            // Most of what lies in shared memory is put off.
            let start = first.wrapping_add(place.stride.wrapping_mul(lanes.trailing_zeros().into()));
            if known != 0 && notes && start.wrapping_sub(cta.shared.0) < cta.shared.1 {
                let access = Even { base: first, stride: place.stride, size: place.size, lanes };
                match cta.phase.row(access, false, By { warp, site: known - 1, now: threads.now }) {
                    Fate::Noted => continue,
                    Fate::Due => {}
                    Fate::Last => return i,
                }
            }
            if !races && !unused {
                continue;
            }
            let Some(site) = known.checked_sub(1).filter(|_| races) else { return i };
            let kind = sites.kinds[site as usize];
            let Some(line) = RowForm::of((first, place.stride), (place.size, lanes), kind) else { return i };
            let local = e.local.0 + u64::from(warp) * e.local.1;
            if line.first.wrapping_sub(local) < e.local.1 {
                continue;
            }
            if self.footprints && line.first.wrapping_sub(cta.shared.0) >= cta.shared.1 {
                let Some(bytes) = line.bytes else { return i };
                footprint.add(line.first, bytes, false);
            }
            if !sampled {
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
            if !row.try_form(shadow, &sites.kinds, &line) {
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
            now,
            seen: cta.seen(Who { warp, lanes }),
            published: cta.published(warp),
        }
    }

    fn judge_all(&self, state: &mut State, e: &MemoryEvent<'_>) {
        if state.hits.is_empty() {
            return;
        }
        let mut hits = std::mem::take(&mut state.hits);
        hits.drain(..).for_each(|hit| self.judge(state, e, &hit));
        state.hits = hits;
    }

    /// Reports a race between unordered accesses, unless they are morally strong or store the same value.
    fn judge(&self, state: &mut State, e: &MemoryEvent<'_>, hit: &Hit) {
        let Hit { earlier, other, lane, word, mask } = *hit;
        let site = state.sites.number(&e.actor, e.access, e.order, e.element);
        // Lanes of the same instruction are compared by `compare_lanes`.
        let here = (self.index(e.actor.cta), e.actor.warp);
        if earlier.time == state.threads.now && (other.cta, other.warp) == here && earlier.site() == site {
            return;
        }
        let (a, b) = (state.sites.get(earlier.site()), state.sites.get(site));
        let flagged = || {
            let threads = state.ctas.get(here.0).map(|cta| &cta.threads);
            let crew = (other.cta, other.warp, other.lanes);
            threads.is_some_and(|threads| threads.knows_read((e.actor.warp, lane), crew, earlier.time))
        };
        let reads = a.access == AccessKind::Load && !earlier.is_agent() && !e.order.asynchronous;
        if reads && state.threads.any_hints() && flagged() {
            return;
        }
        let distance = self.distance(other, (e.actor.cta, e.actor.warp), lane);
        let copies = earlier.is_agent() || e.order.asynchronous;
        let cause = match self.morally_strong((a, b), distance) {
            _ if copies && !(a.is_strong() && b.is_strong()) => Cause::Copy,
            Err(cause) => cause,
            Ok(()) => {
                let address = e.addresses[lane as usize];
                let in_shared = e.windows.iter().any(|(base, size)| address.wrapping_sub(*base) < *size);
                let read = !a.access.writes() || !b.access.writes();
                let flag = !in_shared || state.threads.is_released(word);
                if !(a.order.volatile && b.order.volatile && read && distance == Distance::Warp) || flag {
                    return;
                }
                Cause::Volatile
            }
        };
        let address = e.addresses[lane as usize];
        let size = e.size.min(16) as usize;
        let mut present = vec![0; size];
        let known = (e.peek)(address, &mut present);
        let incoming: Option<Vec<u8>> = e.values.map(|v| (0..size).map(|i| v(lane as usize, i)).collect());
        if cause == Cause::Order
            && (a.access, b.access) == (AccessKind::Store, AccessKind::Store)
            && known
            && let Some(new) = &incoming
        {
            let here = (word..word + WORD).enumerate().filter(|(i, _)| (mask & earlier.bytes()) >> i & 1 == 1);
            let mut offsets = here.filter_map(|(_, at)| at.checked_sub(address)).map(|at| at as usize);
            if e.size <= 16 && offsets.all(|at| new.get(at) == present.get(at)) {
                return;
            }
        }
        let places = (a.at, Some(e.actor.at));
        if state.is_known(FindingKind::Race, places) {
            return state.count(FindingKind::Race, places);
        }
        let (_, from, to) = state.key(FindingKind::Race, places);
        let own = e.windows.first().is_some_and(|(base, size)| word.wrapping_sub(*base) < *size);
        let waits = own && distance <= Distance::Cta && cause == Cause::Order && from == to;
        let (a, b) = (state.sites.get(earlier.site()), state.sites.get(site));
        let element = e.element.max(1);
        let at = word.max(address);
        let at = address + (at - address) / u64::from(element) * u64::from(element);
        let what = match e.windows.iter().find(|(base, size)| at.wrapping_sub(*base) < *size) {
            Some((base, _)) => name::shared(&self.image, self.names, at - base, element),
            None => name::global(e.memory, self.names, at, element),
        };
        let verb = |site: &Site, agent: bool| match (site.access, agent) {
            (AccessKind::Load, false) => "reads",
            (AccessKind::Store, false) => "writes",
            (AccessKind::Atomic, false) => "updates atomically",
            (AccessKind::Free, _) => "frees",
            (AccessKind::Load, true) => "reads by an asynchronous copy",
            (_, true) => "writes by an asynchronous copy",
        };
        let first = Party {
            verb: verb(a, earlier.is_agent()).into(),
            thread: self.thread(other.warp, other.lanes.trailing_zeros()),
            cta: self.cta_of(other.cta),
            at: a.at,
            callers: a.callers.clone(),
        };
        let second = self.party(&e.actor, lane, verb(b, e.order.asynchronous));
        let mut notes = Vec::new();
        if known && size <= 8 {
            let hex = |bytes: &[u8]| bytes.iter().rev().fold(String::from("0x"), |s, b| s + &format!("{b:02x}"));
            let then = incoming.map(|new| format!(", and the write stores {}", hex(&new))).unwrap_or_default();
            notes.push(format!("memory holds {}{then}", hex(&present)));
        }
        let stores = (a.access, b.access) == (AccessKind::Store, AccessKind::Store);
        let waits = waits && stores;
        // What waits for a reader may come often, and looking for lines takes long.
        let help = match waits {
            false => self.missing(cause, distance, (a, b)),
            true => {
                let text = state.helps.entry((earlier.site(), site, distance as u8));
                text.or_insert_with(|| self.missing(cause, distance, (a, b))).clone()
            }
        };
        let (x, y) = (short(a.access), short(b.access));
        let title = match cause {
            Cause::Copy => format!(
                "race: an asynchronous copy and {} of {what} without a wait in between",
                article(if earlier.who & AGENT != 0 { y } else { x })
            ),
            Cause::Scope => format!(
                "race: {} and {} of {what}, with a scope that does not include the other thread",
                article(x),
                article(y)
            ),
            Cause::Size => format!("race: {} and {} of {what} of different sizes", article(x), article(y)),
            Cause::Plain => {
                format!("race: {} and {} of {what}, one of them plain, are not ordered", article(x), article(y))
            }
            Cause::Volatile => {
                format!("race: volatile {x} and {y} of {what} by lanes of one warp without `__syncwarp()`")
            }
            Cause::Order => format!("race: {} and {} of {what} are not ordered", article(x), article(y)),
        };
        let places = (first.at, Some(second.at));
        let finding =
            Finding { kind: FindingKind::Race, title, parties: vec![second, first], notes, help: Some(help), times: 1 };
        if waits {
            return state.await_reader(Clash { address: at, bytes: element.into(), places, finding });
        }
        state.report(FindingKind::Race, places, || finding);
    }

    /// The synchronization that would order two accesses, and where to add it.
    fn missing(&self, cause: Cause, distance: Distance, (first, second): (&Site, &Site)) -> String {
        let (from, to) = (self.line(first.in_kernel()), self.line(second.in_kernel()));
        let between =
            if from == to { format!("between two iterations of {from}") } else { format!("between {from} and {to}") };
        match cause {
            Cause::Copy => format!(
                "a wait for the copy is missing {between}: `cp.async.wait_group`, `__pipeline_wait_prior`, `pipeline.consumer_wait()` \
                 or a wait at its mbarrier, and then a barrier for other threads"
            ),
            Cause::Scope => match distance {
                Distance::Cluster => "both sides need scope `.cluster` or wider".into(),
                _ => "both sides need scope `.gpu` or wider (`atomicAdd` instead of `atomicAdd_block`, \
                      `cuda::thread_scope_device`)"
                    .into(),
            },
            Cause::Size => "strong accesses order each other only if they overlap completely".into(),
            Cause::Volatile => {
                format!("`__syncwarp()` is missing {between}: since Volta, lanes of a warp do not execute in lockstep")
            }
            _ => {
                let plain = if cause == Cause::Plain { "; or make the plain access atomic" } else { "" };
                match distance {
                    Distance::Thread | Distance::Warp => {
                        format!("`__syncwarp()` (or `__syncthreads()`) is missing {between}{plain}")
                    }
                    Distance::Cta => format!(
                        "`__syncthreads()` is missing {between}, or a flag with release and acquire (`__threadfence_block()`){plain}"
                    ),
                    Distance::Cluster => format!("`cluster.sync()` is missing {between}{plain}"),
                    Distance::Grid => format!(
                        "nothing orders the two CTAs; use a flag with release and acquire (`__threadfence()` before it is set \
                         and after it is read), `grid.sync()`, or two kernels{plain}"
                    ),
                }
            }
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
            ..order
        };
        let access = if weak { AccessKind::Store } else { AccessKind::Atomic };
        let site = state.sites.number(&e.actor, access, order, 8);
        let windows = state.ctas.iter().map(|c| c.shared).find(|(base, size)| at.wrapping_sub(*base) < *size);
        let window = windows.map(|w| [w]);
        let memory = margay_exec::Memory::new(0);
        let event = MemoryEvent {
            actor: e.actor,
            addresses: &[at; LANES],
            size: 8,
            element: 8,
            space: margay_ir::MemSpace::Shared,
            access,
            order,
            windows: window.as_ref().map_or(&[], |w| &w[..]),
            local: (0, 0),
            values: None,
            undefined: Default::default(),
            peek: &|_, _| false,
            memory: &memory,
            tracked: false,
            row: None,
            memo: &Cell::new(0),
        };
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

fn short(access: AccessKind) -> &'static str {
    match access {
        AccessKind::Load => "read",
        AccessKind::Store => "write",
        AccessKind::Atomic => "atomic update",
        AccessKind::Free => "`free()`",
    }
}

fn article(word: &str) -> String {
    format!("{} {word}", if word.starts_with('a') { "an" } else { "a" })
}
