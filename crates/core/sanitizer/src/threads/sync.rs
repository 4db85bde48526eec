//! How accesses and synchronization change the clocks of threads.

use super::{
    CLASSES, Change, CtaThreads, Fence, Gathered, MAX_RELEASES, Object, Read, Release, Same, Seen, Thread, Threads,
    WarpMask, class, join_shared, lanes, pending::Pending, uncertain::Polled,
};
use crate::{
    clock::{Clock, Copies, Side, Time},
    hash::forget,
    programmatic::{BEFORE, DONE},
    site::Place,
};
use margay_exec::{Grouped, ObjectStep, Ordering, Scope, Semantics, SyncKind};
use std::sync::Arc;

/// Locations of which it is known what was released there in too narrow a scope.
const MAX_NARROW: usize = 1 << 10;

impl Threads {
    /// Starts at time 1.
    pub fn new() -> Threads {
        Threads { now: 1, ..Threads::default() }
    }

    /// Advances time; false if it has overflowed.
    pub fn advance(&mut self) -> bool {
        self.now = self.now.saturating_add(1);
        self.now < Time::MAX
    }

    /// Drops the state of memory that was reallocated.
    pub fn forget(&mut self, base: u64, size: u64) {
        forget(&mut self.released, base, size);
        forget(&mut self.releasing, base, size);
        forget(&mut self.objects, base, size);
        forget(&mut self.hints, base, size);
        forget(&mut self.narrow, base, size);
        self.histories.forget(base, size);
    }

    /// Whether the current value of a location was written by a release pattern.
    pub fn is_released(&self, at: u64) -> bool {
        self.released.contains_key(&at)
    }

    /// Whether something was released there, in whatever scope, that comes after a thread's access.
    pub fn has_released(&self, at: u64, other: (u32, u32, u32), time: Time) -> bool {
        let after = |r: &Release| r.clock.get(other, Side::Program) >= time;
        let narrow = self.narrow.get(&at).is_some_and(|clock| clock.get(other, Side::Program) >= time);
        narrow || self.released.get(&at).is_some_and(|list| list.iter().any(after))
    }

    /// Whether any location has such a value.
    pub fn any_released(&self) -> bool {
        !self.released.is_empty()
    }

    /// Whether flags signal reads.
    pub fn any_hints(&self) -> bool {
        !self.hints.is_empty()
    }

    /// A lane sets a flag by a strong store. What a barrier has ordered before it has been read by then: the load has returned
    /// its value, and a write that is issued only because the flag was seen cannot change it (it would be a value out of thin air;
    /// manual, section 8.10.4). Writes may still be under way.
    pub fn hint(&mut self, cta: &CtaThreads, (warp, lane): (u32, u32), at: u64) {
        let t = cta.look(warp, lane);
        let mut known = Some(t.clock.clone());
        join_shared(&mut known, t.reads.as_ref());
        self.hints.extend(known.map(|clock| (at, clock)));
    }

    /// A lane reads a flag.
    pub fn take_hint(&self, cta: &mut CtaThreads, (warp, lane): (u32, u32), at: u64) {
        if let Some(clock) = self.hints.get(&at) {
            join_shared(&mut cta.thread(warp, lane).reads, Some(clock));
        }
    }

    /// Records a lane's write to a location, which replaces or extends what can be acquired there; `held` is what the location held before, if
    /// that is known.
    pub fn write(
        &mut self,
        cta: &mut CtaThreads,
        (warp, lane): (u32, u32),
        (at, held): (u64, Option<u64>),
        order: Ordering,
        modifies: bool,
    ) {
        let strong = order.semantics != Semantics::Weak;
        let me = (cta.index, cta.cluster);
        let published = strong && order.semantics.releases();
        let mut made = self.releases_of(cta, (warp, lane), order);
        if strong {
            self.continue_release((cta.index, (warp, lane)), at, (order.scope, published), &mut made);
        }
        if published {
            cta.published[warp as usize] = self.now;
        }
        let mut change = Change::Appended;
        match self.released.get_mut(&at) {
            Some(list) if modifies => {
                let strong = |r: &Release| r.is_morally_strong_with(me, order.scope);
                if self.histories.has(at) && !(list.iter().all(strong) && list.len() + made.len() <= MAX_RELEASES) {
                    change = Change::Replaced(list.clone());
                }
                if self.narrow.len() < MAX_NARROW {
                    let narrow = list.iter().filter(|r| !strong(r));
                    narrow.for_each(|r| Clock::join_into(self.narrow.entry(at).or_default(), &r.clock));
                }
                list.retain(strong);
                made.retain(|new| !list.iter().any(|r| new.repeats(r)));
                list.extend(made);
                if list.len() > MAX_RELEASES {
                    collapse(list);
                }
                if list.is_empty() {
                    self.released.remove(&at);
                }
            }
            Some(_) if made.is_empty() => change = self.released.remove(&at).map_or(change, Change::Replaced),
            _ if made.is_empty() => {}
            _ => {
                let old = self.released.insert(at, made);
                change = old.map_or(change, Change::Replaced);
            }
        }
        if self.keeps_histories() {
            let count = self.released.get(&at).map_or(0, Vec::len);
            self.histories.write(at, ((cta.index, warp, lane), self.now), held, change, count);
        }
    }

    /// What an observer of a lane's write acquires, by the write itself and by the fences before it.
    fn releases_of(&self, cta: &CtaThreads, (warp, lane): (u32, u32), order: Ordering) -> Vec<Release> {
        let mut made = Vec::new();
        if order.semantics == Semantics::Weak {
            return made;
        }
        let t = cta.look(warp, lane);
        let mut make = |fence: &Fence, scope: Scope| {
            let mut clock = (*fence.clock).clone();
            clock.raise((cta.index, warp, 1 << lane), Side::Program, fence.time);
            clock.raise_copies((cta.index, warp, lane), fence.copies);
            let (clock, fence) = (Arc::new(clock), fence.clone());
            made.push(Release { cta: cta.index, cluster: cta.cluster, scope, clock, by: (warp, lane), fence });
        };
        if order.semantics.releases() {
            make(&Fence { clock: t.clock.clone(), copies: t.copies, time: self.now }, order.scope);
        }
        let mut last: Option<&Fence> = None;
        for (class, fence) in t.fences.iter().enumerate().rev() {
            // A fence of a wider scope counts for narrower ones too.
            if let Some(fence) = fence.as_ref().filter(|f| !last.is_some_and(|last| last.is(f))) {
                make(fence, CLASSES[class].min(order.scope));
                last = Some(fence);
            }
        }
        made
    }

    /// A strong write continues what the thread has released there before by a releasing operation (section 8.8); one that is
    /// `published` releases itself, first in `made`.
    fn continue_release(
        &mut self,
        (cta, by): (u32, (u32, u32)),
        at: u64,
        (scope, published): (Scope, bool),
        made: &mut Vec<Release>,
    ) {
        let mine = |r: &Release| (r.cta, r.by) == (cta, by);
        match self.releasing.get_mut(&at) {
            Some(list) if !published => {
                let first = list.iter().rev().find(|r| mine(r));
                made.extend(first.map(|r| Release { scope: r.scope.min(scope), ..r.clone() }));
            }
            Some(list) => {
                list.retain(|r| !mine(r));
                if list.len() >= MAX_RELEASES {
                    list.remove(0);
                }
                list.extend(made.first().cloned());
            }
            None if published => drop(self.releasing.insert(at, made.first().cloned().into_iter().collect())),
            None => {}
        }
    }

    /// Records a lane's strong read of a location, which holds a value, if that is known; where it is, and whether that is in the kernel itself;
    /// `discarded` if no instruction uses the value, `awaited` if threads repeat the read until they find what they wait for; and which values would
    /// have made no difference to the thread.
    pub fn read(
        &mut self,
        cta: &mut CtaThreads,
        (warp, lane): (u32, u32),
        (at, held): (u64, Option<u64>),
        order: Ordering,
        ((place, in_kernel), (discarded, awaited), same): ((Place, bool), (bool, bool), Option<Same<'_>>),
    ) {
        let earlier = self.releases_at_earliest((cta, warp, lane), (at, held), (same, place));
        let Some(list) = earlier.as_ref().or(self.released.get(&at)) else { return };
        let polls = order.semantics.acquires() && !discarded && earlier.is_none();
        if polls && cta.polls_again((warp, lane), Polled::new(at, place, order.scope, list)) {
            return;
        }
        self.reads += 1;
        let read = in_kernel.then_some(Read { place, number: self.reads, discarded });
        let me = (cta.index, cta.cluster);
        for release in list.iter().filter(|r| r.is_morally_strong_with(me, order.scope)) {
            // What an earlier read of the location has found, this one finds in any execution, or what came later.
            let known = |p: &&Pending| Arc::ptr_eq(&p.release.clock, &release.clock);
            let before = cta.look(warp, lane).pending.iter().find(known).and_then(|p| p.read);
            let read = if discarded { before.or(read) } else { read };
            if order.semantics.acquires() {
                cta.acquire_clock(warp, lane, &release.clock, read);
            } else {
                let new = Pending { release: release.clone(), scope: order.scope, read, awaited };
                cta.thread(warp, lane).pending.push(new);
            }
        }
    }

    fn fence(&mut self, cta: &mut CtaThreads, who: WarpMask, semantics: Semantics, scope: Scope) {
        let (now, me) = (self.now, (cta.index, cta.cluster));
        for lane in lanes(who.lanes) {
            self.histories.fence((cta.index, who.warp, lane), now);
            if semantics.acquires() {
                let t = cta.thread(who.warp, lane);
                let mut uncertain = false;
                for p in std::mem::take(&mut t.pending).iter() {
                    if p.release.is_morally_strong_with(me, scope.min(p.scope)) {
                        t.join(&p.release.clock, p.read);
                        uncertain |= p.read.is_some();
                    } else {
                        t.pending.push(p.clone());
                    }
                }
                cta.uncertain[who.warp as usize] |= u32::from(uncertain) << lane;
                cta.any_uncertain |= uncertain;
            }
            if semantics.releases() {
                let t = cta.thread(who.warp, lane);
                let fence = Fence { clock: t.clock.clone(), copies: t.copies, time: now };
                t.fences[..=class(scope)].fill(Some(fence));
            }
        }
    }

    /// What precedes what a lane does next.
    pub fn knowledge(&self, cta: &CtaThreads, (warp, lane): (u32, u32)) -> Clock {
        let mut clock = Clock::default();
        cta.gather(WarpMask { warp, lanes: 1 << lane }, self.now, &mut clock);
        clock
    }

    /// Applies a synchronization, at that place if it is in the kernel itself.
    pub fn sync(&mut self, cta: &mut CtaThreads, who: WarpMask, kind: SyncKind, at: Option<Place>) {
        if !matches!(kind, SyncKind::Exchange) {
            cta.published[who.warp as usize] = self.now;
        }
        match kind {
            SyncKind::Barrier { id, .. } => {
                cta.acquire_pending(who);
                cta.arrive(who, id, self.now);
            }
            SyncKind::ClusterArrive(semantics) => self.arrive_at_cluster(cta, who, semantics),
            SyncKind::ClusterPassed => self.pass_cluster(cta, who),
            SyncKind::Warp => {
                cta.pass_pending(who);
                let mut clock = Clock::default();
                cta.gather(who, self.now, &mut clock);
                let reads = cta.reads_of(who);
                let mut fences = [const { None }; 3];
                cta.gather_fences(who, &mut fences);
                cta.give(who, &Arc::new(clock), reads.as_ref());
                cta.propagate_fences(who, &fences.map(made_visible));
            }
            SyncKind::Exchange => exchange(cta, who),
            SyncKind::Object { at: object, done, completes, order } => {
                self.object(cta, who, object, (done, completes), (order, at));
            }
            SyncKind::Fence(semantics, scope) => self.fence(cta, who, semantics, scope),
            SyncKind::FenceProxy { shared, global } => {
                for (lane, shared) in lanes(who.lanes).flat_map(|lane| {
                    let spaces = [shared.then_some(true), global.then_some(false)];
                    spaces.into_iter().flatten().map(move |shared| (lane, shared))
                }) {
                    let (me, now) = ((cta.index, who.warp, 1 << lane), self.now);
                    let clock = Arc::make_mut(&mut cta.thread(who.warp, lane).clock);
                    clock.pass_proxy_fence(shared);
                    clock.raise(me, Side::Proxied { shared }, now);
                }
            }
            SyncKind::FenceObjects => self.fence(cta, who, Semantics::Release, Scope::Cluster),
            SyncKind::Commit { of } => {
                let now = self.now;
                lanes(who.lanes).for_each(|lane| cta.thread(who.warp, lane).groups[of as usize].push_back(now));
            }
            SyncKind::Wait { of: Grouped::Products, pending, .. } => {
                let everyone = (cta.index, who.warp, u32::MAX);
                for lane in lanes(who.lanes) {
                    wait_for_products(cta.thread(who.warp, lane), everyone, pending.unwrap_or(0));
                }
            }
            SyncKind::Wait { of, pending, read } => {
                for lane in lanes(who.lanes) {
                    wait_for_copies(cta.thread(who.warp, lane), self.now, of, pending, read);
                }
            }
            SyncKind::WaitTensor { .. } => {
                let (everyone, now) = ((cta.index, who.warp, u32::MAX), self.now);
                for lane in lanes(who.lanes) {
                    Arc::make_mut(&mut cta.thread(who.warp, lane).clock).raise(everyone, Side::Moves, now);
                }
            }
            SyncKind::WaitPrerequisites => {
                let (cta_before, warp_before, lane_before) = BEFORE;
                for lane in lanes(who.lanes) {
                    let clock = Arc::make_mut(&mut cta.thread(who.warp, lane).clock);
                    clock.raise((cta_before, warp_before, 1 << lane_before), Side::Program, DONE);
                }
            }
            SyncKind::Queue | SyncKind::LaunchDependents | SyncKind::Exit => {}
        }
    }

    fn object(
        &mut self,
        cta: &mut CtaThreads,
        who: WarpMask,
        at: u64,
        (done, completes): (ObjectStep, bool),
        (order, read): (Ordering, Option<Place>),
    ) {
        self.reads += 1;
        let read = read.map(|place| Read { place, number: self.reads, discarded: false });
        let object = self.objects.entry(at).or_default();
        match done {
            ObjectStep::Initialize | ObjectStep::Invalidate => *object = Object::default(),
            ObjectStep::Arrive if order.semantics.releases() => cta.gather(who, self.now, &mut object.arrived),
            // The products come after what the thread knew when it started them.
            ObjectStep::ArriveAfterProducts => {
                cta.gather(who, self.now, &mut object.arrived);
                object.arrived.raise((cta.index, who.warp, who.lanes), Side::Products, self.now);
            }
            ObjectStep::Arrive => {
                for lane in lanes(who.lanes) {
                    let t = cta.look(who.warp, lane);
                    if let Some(fence) = &t.fences[class(order.scope)] {
                        object.arrived.join(&fence.clock);
                        object.arrived.raise((cta.index, who.warp, 1 << lane), Side::Program, fence.time);
                    }
                }
            }
            ObjectStep::ArriveAfterCopies | ObjectStep::Complete => {
                object.arrived.raise((cta.index, who.warp, who.lanes), Side::Agent, self.now);
            }
            ObjectStep::Waited { .. } => {
                let clock = object.done.clone();
                for lane in lanes(who.lanes) {
                    if order.semantics.acquires() {
                        cta.acquire_clock(who.warp, lane, &clock, read);
                    } else {
                        let (index, cluster) = (cta.index, cta.cluster);
                        let fence = Fence { clock: clock.clone(), copies: Copies::default(), time: self.now };
                        let (by, scope) = ((who.warp, lane), Scope::Sys);
                        let release = Release { cta: index, cluster, scope, clock: clock.clone(), by, fence };
                        let new = Pending { release, scope: order.scope, read, awaited: false };
                        cta.thread(who.warp, lane).pending.push(new);
                    }
                }
            }
            ObjectStep::Expect | ObjectStep::Pending { .. } => {}
        }
        if completes {
            // Waits name these.
            let side = match done {
                ObjectStep::Arrive if order.semantics.releases() => Some(Side::Program),
                ObjectStep::ArriveAfterCopies | ObjectStep::Complete => Some(Side::Agent),
                ObjectStep::ArriveAfterProducts => Some(Side::Products),
                _ => None,
            };
            object.before = std::mem::take(&mut object.last);
            object.last = side.map(|side| ((cta.index, who.warp, who.lanes), side, self.now));
            let mut clock = std::mem::take(&mut object.arrived);
            clock.join(&object.done);
            object.done = Arc::new(clock);
        }
    }

    /// The thread whose arrival has completed the phase before the one that lanes wait for, if they do not know of that.
    pub fn unknown_phase(
        &self,
        cta: &CtaThreads,
        who: WarpMask,
        (at, done): (u64, ObjectStep),
    ) -> Option<(u32, u32, u32)> {
        let object = self.objects.get(&at)?;
        let (by, side, time) = match done {
            ObjectStep::Pending { parity: true } => object.last?,
            ObjectStep::Waited { parity: true } => object.before?,
            _ => return None,
        };
        let awaits_fence = lanes(who.lanes).any(|lane| !cta.look(who.warp, lane).pending.is_empty());
        cta.unseen(who, by, side, time).filter(|_| !awaits_fence).map(|_| by)
    }

    /// A CTA barrier completed: the waiting threads have seen what all participants did before they arrived.
    pub fn complete(&mut self, cta: &mut CtaThreads, id: u32, all: bool, (arrived, waited): (&[u32], &[u32])) {
        let reported = cta.barriers.iter().any(|(known, _)| *known == id);
        if all && !reported && arrived == waited && cta.meet(waited, self.now) {
            return;
        }
        if all && !reported {
            cta.arrive_all(arrived, id, self.now);
        }
        let Some(place) = cta.barriers.iter().position(|(known, _)| *known == id) else { return };
        let (_, Gathered { mut clock, fences, seen: _, mut arrivals, reads, pending }) =
            cta.barriers.swap_remove(place);
        let gone = |warp: usize| arrived.get(warp).map_or(0, |a| a & !waited.get(warp).copied().unwrap_or(0));
        let together = all && (0..arrived.len()).all(|warp| gone(warp) == 0);
        if !together {
            let raise =
                |(who, time): &(WarpMask, _)| clock.raise((cta.index, who.warp, who.lanes), Side::Program, *time);
            arrivals.iter().for_each(raise);
        }
        if all {
            // All threads of the CTA have arrived or exited. Those that did not wait (`bar.arrive`) have continued since.
            if together {
                clock.raise_all(cta.index, self.now);
            } else {
                let raise = |warp| clock.raise((cta.index, warp, !gone(warp as usize)), Side::Program, self.now);
                (0..cta.published.len() as u32).for_each(raise);
            }
            cta.published.fill(self.now);
        }
        if all {
            arrivals.clear();
            cta.spare = arrivals;
        } else {
            cta.ended.retain(|(known, _)| *known != id);
            cta.ended.push((id, arrivals));
        }
        let clock = Arc::new(clock);
        let fences = fences.map(made_visible);
        let whole = together && waited.len() == cta.published.len() && waited.iter().all(|mask| *mask == u32::MAX);
        if whole && pending.is_empty() && fences.iter().all(Option::is_none) && cta.give_all(&clock, reads.as_ref()) {
            return cta.seen.fill(Some((0, Seen { cta: self.now, warp: self.now })));
        }
        for (warp, mask) in waited.iter().enumerate().filter(|(_, mask)| **mask != 0) {
            cta.give(WarpMask { warp: warp as u32, lanes: *mask }, &clock, reads.as_ref());
            if together && cta.are_alike(warp as u32) && *mask == u32::MAX {
                cta.seen[warp] = Some((0, Seen { cta: self.now, warp: self.now }));
            }
            cta.propagate_fences(WarpMask { warp: warp as u32, lanes: *mask }, &fences);
            for lane in lanes(if pending.is_empty() { 0 } else { *mask }) {
                cta.thread(warp as u32, lane).pending.extend(&pending);
            }
        }
    }
}

/// A `.sync` instruction other than `bar.warp.sync`: each lane learns what the others knew, but not what they have done since.
fn exchange(cta: &mut CtaThreads, who: WarpMask) {
    cta.pass_pending(who);
    let mut seen: Vec<Arc<Clock>> = Vec::new();
    let mut reads: Vec<*const Clock> = Vec::new();
    for lane in lanes(cta.warp(who.warp).differing(who.lanes)) {
        let t = cta.look(who.warp, lane);
        let clock = t.passes_on().unwrap_or_else(|| t.clock.clone());
        if !seen.iter().any(|c| Arc::ptr_eq(c, &clock)) {
            seen.push(clock);
        }
        let known = t.reads.as_ref().map_or(std::ptr::null(), Arc::as_ptr);
        if !reads.contains(&known) {
            reads.push(known);
        }
    }
    cta.settle(who);
    if seen.len() > 1 || reads.len() > 1 {
        let mut clock = (*seen[0]).clone();
        seen[1..].iter().for_each(|c| clock.join(c));
        let reads = cta.reads_of(who);
        cta.give(who, &Arc::new(clock), reads.as_ref());
    }
}

/// A thread has waited until at most `pending` groups of its copies are under way, or all its copies have completed.
fn wait_for_copies(t: &mut Thread, now: Time, of: Grouped, pending: Option<u32>, read: bool) {
    let groups = &mut t.groups[of as usize];
    let Some(pending) = pending else {
        groups.clear();
        t.copies.complete = now;
        return;
    };
    if read {
        let over = groups.len().checked_sub(pending as usize + 1).map_or(0, |last| groups[last]);
        t.copies.read = t.copies.read.max(over);
        return;
    }
    while groups.len() > pending as usize {
        t.copies.complete = t.copies.complete.max(groups.pop_front().unwrap_or(0));
    }
}

/// A lane of a warp has waited until at most `pending` groups of the warp's products are under way.
fn wait_for_products(t: &mut Thread, warp: (u32, u32, u32), pending: u32) {
    let groups = &mut t.groups[Grouped::Products as usize];
    let mut over = 0;
    while groups.len() > pending as usize {
        over = groups.pop_front().unwrap_or(over);
    }
    if over > 0 {
        Arc::make_mut(&mut t.clock).raise(warp, Side::Products, over);
    }
}

/// A fence that stands for those of all participants of a barrier.
fn made_visible(clock: Option<Clock>) -> Option<Fence> {
    clock.map(|clock| Fence { clock: Arc::new(clock), copies: Copies::default(), time: 0 })
}

/// Merges the releases at a location that are acquired together, and if many are left, all of the device.
fn collapse(list: &mut Vec<Release>) {
    merge(list, |r| (r.scope.min(Scope::Gpu), Some(r.cta)));
    if list.len() > MAX_RELEASES / 2 {
        // Too much order only hides races, and never invents any.
        merge(list, |r| (r.scope.min(Scope::Gpu), Some(r.cta).filter(|_| r.scope < Scope::Gpu)));
    }
}

/// Merges the releases with the same key.
fn merge<K: PartialEq>(list: &mut Vec<Release>, key: impl Fn(&Release) -> K) {
    let mut merged: Vec<Release> = Vec::new();
    for release in list.drain(..) {
        match merged.iter_mut().find(|m| key(m) == key(&release)) {
            Some(all) => Arc::make_mut(&mut all.clock).join(&release.clock),
            None => merged.push(release),
        }
    }
    *list = merged;
}
