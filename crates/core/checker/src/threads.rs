//! The vector clock of each thread, and how synchronization changes it (manual, sections 8.8 and 8.9).
//!
//! * A barrier orders what its participants did before they arrived before what the waiting ones do afterwards:
//!   arrivals gather a clock, which the waiting threads receive when the barrier completes.
//! * A release pattern leaves the releasing thread's clock at the location that it writes; read-modify-writes pass it
//!   on, other writes remove it. An acquire pattern joins it if the first operation of the one and the last of the
//!   other are morally strong: each has a scope that includes the other's thread.
//! * Relaxed accesses and atomics order nothing. `fence.sc` counts as release and acquire: its total order is the
//!   schedule's, on which a program must not depend.
//! * A barrier passes on what fences of its participants have made visible: "all write and fence, barrier, one sets the
//!   flag".
//! * A shuffle or vote passes on what its lanes have seen of others, but nothing of what they did: one lane acquires
//!   and tells the warp.
//! * A CTA barrier counts as an acquire fence for what its threads have read before. The manual promises less, but
//!   programs in which "the last CTA adds up" rely on it, and hardware guarantees it.

use crate::{
    clock::{Clock, Side, Time},
    hash::Map,
};
use margay_exec::{LANES, ObjectStep, Ordering, Scope, Semantics, SyncKind};
use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

/// Limit of clocks that wait for an acquire fence, per thread.
const MOST_PENDING: usize = 64;
/// Limit of clocks released at one location.
const MOST_RELEASES: usize = 128;

/// A clock released at a location.
#[derive(Clone)]
struct Release {
    cta: u32,
    cluster: u32,
    scope: Scope,
    clock: Arc<Clock>,
}

/// A fence of a thread: its clock and time.
#[derive(Clone)]
struct Fence {
    clock: Arc<Clock>,
    agent: Time,
    time: Time,
}

/// The state of a thread.
#[derive(Clone, Default)]
struct Thread {
    clock: Arc<Clock>,
    /// Time up to which its own asynchronous copies are complete.
    agent: Time,
    /// The last releasing fence by scope: `.cta`, `.cluster`, `.gpu` or wider.
    fences: [Option<Fence>; 3],
    /// Clocks read from release patterns, with the scope of the read, that await an acquire fence.
    pending: Vec<(Release, Scope)>,
    /// Commit times of groups of copies: small ones, bulk ones.
    groups: [VecDeque<Time>; 2],
    /// Number of arrivals at the cluster barrier, and of those when it last returned from waiting there.
    phase: u64,
    passed: u64,
}

impl Thread {
    /// Whether it has nothing but a clock.
    fn is_plain(&self) -> bool {
        let Thread { clock: _, agent, fences, pending, groups, phase, passed } = self;
        let nothing = pending.is_empty() && groups.iter().all(VecDeque::is_empty) && fences.iter().all(Option::is_none);
        nothing && (*agent, *phase, *passed) == (0, 0, 0)
    }
}

/// The threads of a warp.
enum Warp {
    /// All have this clock and nothing else: as long as they only synchronise together.
    Alike(Thread),
    /// By lane.
    Apart(Box<[Thread; LANES]>),
}

impl Warp {
    #[inline]
    fn thread(&self, lane: u32) -> &Thread {
        match self {
            Warp::Alike(thread) => thread,
            Warp::Apart(threads) => &threads[lane as usize],
        }
    }

    /// The lanes of a mask to look at: one stands for all that are alike.
    #[inline]
    fn differing(&self, mask: u32) -> u32 {
        match self {
            Warp::Alike(_) => mask & mask.wrapping_neg(),
            Warp::Apart(_) => mask,
        }
    }

    fn is_plain(&self) -> bool {
        match self {
            Warp::Alike(_) => true,
            Warp::Apart(threads) => threads.iter().all(Thread::is_plain),
        }
    }
}

/// The threads of a CTA.
pub struct CtaThreads {
    /// Linear index in the grid.
    pub index: u32,
    cluster: u32,
    warps: Vec<Warp>,
    barriers: Map<u32, Gathered>,
    /// By warp: the time of the last release by its threads.
    published: Vec<Time>,
    /// By warp: the lanes of the last query and what they have all seen, until it changes.
    seen: Vec<Option<(u32, Seen)>>,
}

/// The times up to which all of some lanes have seen other threads' accesses.
#[derive(Clone, Copy, Default, Debug)]
pub struct Seen {
    /// Those of all threads of their CTA.
    pub cta: Time,
    /// Those of all lanes of their warp.
    pub warp: Time,
}

/// The clocks gathered at a barrier, and what fences of its participants have made visible.
#[derive(Default)]
struct Gathered {
    clock: Clock,
    fences: [Option<Clock>; 3],
}

/// The clocks of a barrier object.
#[derive(Default)]
struct Object {
    arrived: Clock,
    done: Arc<Clock>,
}

/// The state of happens-before that threads share.
#[derive(Default)]
pub struct Threads {
    /// The current time.
    pub now: Time,
    released: Map<u64, Vec<Release>>,
    objects: HashMap<u64, Object>,
    /// By cluster and phase.
    clusters: HashMap<(u32, u64), Clock>,
}

/// Lanes of a warp of a CTA.
#[derive(Clone, Copy)]
pub struct Who {
    /// Warp in the CTA.
    pub warp: u32,
    /// The lanes.
    pub lanes: u32,
}

fn lanes(mask: u32) -> impl Iterator<Item = u32> {
    (0..LANES as u32).filter(move |l| mask >> l & 1 == 1)
}

impl Release {
    /// Whether the release and an operation of that scope in that CTA are morally strong.
    fn is_morally_strong_with(&self, (cta, cluster): (u32, u32), scope: Scope) -> bool {
        let needed = match () {
            _ if self.cta == cta => Scope::Cta,
            _ if self.cluster == cluster => Scope::Cluster,
            _ => Scope::Gpu,
        };
        self.scope >= needed && scope >= needed
    }
}

fn class(scope: Scope) -> usize {
    match scope {
        Scope::Cta => 0,
        Scope::Cluster => 1,
        Scope::Gpu | Scope::Sys => 2,
    }
}

const CLASSES: [Scope; 3] = [Scope::Cta, Scope::Cluster, Scope::Sys];

impl CtaThreads {
    /// Threads that have seen nothing but the launch.
    pub fn new(index: u32, cluster: u32, warps: u32) -> CtaThreads {
        let clock = Arc::new(Clock::default());
        let alike = |_| Warp::Alike(Thread { clock: clock.clone(), ..Thread::default() });
        let all = (0..warps).map(alike).collect();
        let (published, seen) = (vec![0; warps as usize], vec![None; warps as usize]);
        CtaThreads { index, cluster, warps: all, barriers: Map::default(), published, seen }
    }

    /// The time of the last release by threads of a warp: later accesses cannot be distinguished by other threads.
    pub fn published(&self, warp: u32) -> Time {
        self.published[warp as usize]
    }

    /// Lower bounds of the times up to which all these lanes have seen the accesses of their CTA and warp.
    pub fn seen(&mut self, who: Who) -> Seen {
        if let Some((lanes, seen)) = self.seen[who.warp as usize]
            && lanes == who.lanes
        {
            return seen;
        }
        let mut all = Seen { cta: Time::MAX, warp: Time::MAX };
        let mut last: Option<&Arc<Clock>> = None;
        let warp = &self.warps[who.warp as usize];
        for lane in lanes(warp.differing(who.lanes)) {
            let clock = &warp.thread(lane).clock;
            if last.is_none_or(|l| !Arc::ptr_eq(l, clock)) {
                let (cta, warp) = clock.floors(self.index, who.warp);
                all = Seen { cta: all.cta.min(cta), warp: all.warp.min(warp.max(cta)) };
                last = Some(clock);
            }
        }
        self.seen[who.warp as usize] = Some((who.lanes, all));
        all
    }

    fn thread(&mut self, warp: u32, lane: u32) -> &mut Thread {
        self.seen[warp as usize] = None;
        let warp = &mut self.warps[warp as usize];
        if let Warp::Alike(thread) = warp {
            *warp = Warp::Apart(Box::new(std::array::from_fn(|_| thread.clone())));
        }
        let Warp::Apart(threads) = warp else { unreachable!("they have just been told apart") };
        &mut threads[lane as usize]
    }

    /// Whether the threads of a warp have nothing but one common clock: no fence that an access could end, nothing read that a
    /// fence could acquire.
    pub fn are_alike(&self, warp: u32) -> bool {
        matches!(self.warps[warp as usize], Warp::Alike(_))
    }

    fn look(&self, warp: u32, lane: u32) -> &Thread {
        self.warps[warp as usize].thread(lane)
    }

    /// A lane of `now` that has not seen what some lane of `others` in warp (`cta`, `warp`) did at `time`, and that
    /// lane. A thread's own accesses are in program order.
    pub fn unseen(&self, now: Who, (cta, warp, others): (u32, u32, u32), side: Side, time: Time) -> Option<(u32, u32)> {
        let mut known: Option<(&Arc<Clock>, u32)> = None;
        for lane in lanes(now.lanes) {
            let t = self.look(now.warp, lane);
            let missing = match known {
                Some((clock, missing)) if Arc::ptr_eq(clock, &t.clock) => missing,
                _ => lanes(others).filter(|o| t.clock.get((cta, warp, *o), side) < time).fold(0, |m, o| m | 1 << o),
            };
            known = Some((&t.clock, missing));
            let same = (cta, warp) == (self.index, now.warp) && (side == Side::Program || t.agent >= time);
            let missing = if same { missing & !(1 << lane) } else { missing };
            if missing != 0 {
                return Some((lane, missing.trailing_zeros()));
            }
        }
        None
    }

    /// How often a thread has arrived at the cluster's barrier.
    pub fn phase(&self, warp: u32, lane: u32) -> u64 {
        self.look(warp, lane).phase
    }

    /// The phase of the cluster's barrier that a thread has last waited for.
    pub fn passed(&self, warp: u32, lane: u32) -> u64 {
        self.look(warp, lane).passed
    }

    /// Joins everything that lanes have seen and done into a clock.
    pub fn gather(&self, who: Who, time: Time, to: &mut Clock) {
        let mut last: Option<&Arc<Clock>> = None;
        let warp = &self.warps[who.warp as usize];
        for lane in lanes(warp.differing(who.lanes)) {
            let t = warp.thread(lane);
            if last.is_none_or(|l| !Arc::ptr_eq(l, &t.clock)) {
                to.join(&t.clock);
                last = Some(&t.clock);
            }
            if t.agent > 0 {
                to.raise((self.index, who.warp, 1 << lane), Side::Agent, t.agent);
            }
        }
        to.raise((self.index, who.warp, who.lanes), Side::Program, time);
    }

    /// Joins what the fences of lanes have made visible.
    fn gather_fences(&self, who: Who, to: &mut [Option<Clock>; 3]) {
        let mut last: [Option<&Arc<Clock>>; 3] = [None; 3];
        let warp = &self.warps[who.warp as usize];
        for lane in lanes(warp.differing(who.lanes)) {
            let t = warp.thread(lane);
            for class in 0..3 {
                let Some(fence) = &t.fences[class] else { continue };
                let clock = to[class].get_or_insert_default();
                if last[class].is_none_or(|l| !Arc::ptr_eq(l, &fence.clock)) {
                    clock.join(&fence.clock);
                    last[class] = Some(&fence.clock);
                }
                if fence.time > 0 {
                    clock.raise((self.index, who.warp, 1 << lane), Side::Program, fence.time);
                    clock.raise((self.index, who.warp, 1 << lane), Side::Agent, fence.agent);
                }
            }
        }
    }

    fn give(&mut self, who: Who, clock: &Arc<Clock>) {
        let warp = &mut self.warps[who.warp as usize];
        if who.lanes == u32::MAX && warp.is_plain() {
            *warp = Warp::Alike(Thread { clock: clock.clone(), ..Thread::default() });
            self.seen[who.warp as usize] = None;
            return;
        }
        lanes(who.lanes).for_each(|lane| self.thread(who.warp, lane).clock = clock.clone());
    }

    fn learn(&mut self, warp: u32, lane: u32, clock: &Clock) {
        Arc::make_mut(&mut self.thread(warp, lane).clock).join(clock);
    }
}

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
        let outside = |at: &u64| at.wrapping_sub(base) >= size;
        self.released.retain(|at, _| outside(at));
        self.objects.retain(|at, _| outside(at));
    }

    /// Whether the current value of a location was written by a release pattern.
    pub fn is_released(&self, at: u64) -> bool {
        self.released.contains_key(&at)
    }

    /// Whether any location has such a value.
    pub fn any_released(&self) -> bool {
        !self.released.is_empty()
    }

    /// Records a lane's write to a location, which replaces or extends what can be acquired there.
    pub fn write(&mut self, cta: &mut CtaThreads, (warp, lane): (u32, u32), at: u64, order: Ordering, modifies: bool) {
        let strong = order.semantics != Semantics::Weak;
        let me = (cta.index, cta.cluster);
        let t = cta.look(warp, lane);
        let (mut made, mut published) = (Vec::new(), false);
        let mut make = |fence: &Fence, scope: Scope| {
            let mut clock = (*fence.clock).clone();
            clock.raise((cta.index, warp, 1 << lane), Side::Program, fence.time);
            clock.raise((cta.index, warp, 1 << lane), Side::Agent, fence.agent);
            made.push(Release { cta: cta.index, cluster: cta.cluster, scope, clock: Arc::new(clock) });
        };
        if strong && order.semantics.releases() {
            published = true;
            make(&Fence { clock: t.clock.clone(), agent: t.agent, time: self.now }, order.scope);
        }
        if strong {
            let mut last: Option<&Fence> = None;
            for (class, fence) in t.fences.iter().enumerate().rev() {
                // A fence of a wider scope counts for narrower ones too.
                let same = |f: &Fence| last.is_some_and(|l| l.time == f.time && Arc::ptr_eq(&l.clock, &f.clock));
                if let Some(fence) = fence.as_ref().filter(|f| !same(f)) {
                    make(fence, CLASSES[class].min(order.scope));
                    last = Some(fence);
                }
            }
        }
        if published {
            cta.published[warp as usize] = self.now;
        }
        match self.released.get_mut(&at) {
            Some(list) if modifies => {
                list.retain(|r| r.is_morally_strong_with(me, order.scope));
                list.extend(made);
                if list.len() > MOST_RELEASES {
                    collapse(list);
                }
                if list.is_empty() {
                    self.released.remove(&at);
                }
            }
            Some(_) if made.is_empty() => drop(self.released.remove(&at)),
            _ if made.is_empty() => {}
            _ => drop(self.released.insert(at, made)),
        }
    }

    /// Records a lane's strong read of a location.
    pub fn read(&mut self, cta: &mut CtaThreads, (warp, lane): (u32, u32), at: u64, order: Ordering) {
        let Some(list) = self.released.get(&at) else { return };
        let me = (cta.index, cta.cluster);
        for release in list.iter().filter(|r| r.is_morally_strong_with(me, order.scope)) {
            if order.semantics.acquires() {
                cta.learn(warp, lane, &release.clock);
            } else {
                push_pending(cta.thread(warp, lane), release.clone(), order.scope);
            }
        }
    }

    fn fence(&mut self, cta: &mut CtaThreads, who: Who, semantics: Semantics, scope: Scope) {
        let (now, me) = (self.now, (cta.index, cta.cluster));
        for lane in lanes(who.lanes) {
            let t = cta.thread(who.warp, lane);
            if semantics.acquires() {
                let mut kept = Vec::new();
                for (release, read) in std::mem::take(&mut t.pending) {
                    if release.is_morally_strong_with(me, scope.min(read)) {
                        Arc::make_mut(&mut t.clock).join(&release.clock);
                    } else {
                        kept.push((release, read));
                    }
                }
                t.pending = kept;
            }
            if semantics.releases() {
                let fence = Fence { clock: t.clock.clone(), agent: t.agent, time: now };
                t.fences[..=class(scope)].fill(Some(fence));
            }
        }
    }

    /// Applies a synchronization.
    pub fn sync(&mut self, cta: &mut CtaThreads, who: Who, kind: SyncKind) {
        if !matches!(kind, SyncKind::Exchange) {
            cta.published[who.warp as usize] = self.now;
        }
        match kind {
            SyncKind::Barrier { id, .. } => {
                let waits = |lane: &u32| !cta.look(who.warp, *lane).pending.is_empty();
                let waiting = lanes(who.lanes).filter(waits).fold(0, |mask, lane| mask | 1 << lane);
                for lane in lanes(waiting) {
                    let t = cta.thread(who.warp, lane);
                    for (release, _) in std::mem::take(&mut t.pending) {
                        Arc::make_mut(&mut t.clock).join(&release.clock);
                    }
                }
                let mut gathered = cta.barriers.remove(&id).unwrap_or_default();
                cta.gather(who, self.now, &mut gathered.clock);
                cta.gather_fences(who, &mut gathered.fences);
                cta.barriers.insert(id, gathered);
            }
            SyncKind::ClusterArrive(semantics) => {
                for lane in lanes(who.lanes) {
                    let t = cta.thread(who.warp, lane);
                    t.phase += 1;
                    let key = (cta.cluster, cta.look(who.warp, lane).phase);
                    let to = self.clusters.entry(key).or_default();
                    let one = Who { lanes: 1 << lane, ..who };
                    if semantics.releases() {
                        cta.gather(one, self.now, to);
                    } else if let Some(fence) = &cta.look(who.warp, lane).fences[1] {
                        to.join(&fence.clock);
                        to.raise((cta.index, who.warp, 1 << lane), Side::Program, fence.time);
                    }
                }
            }
            SyncKind::ClusterPassed => {
                for lane in lanes(who.lanes) {
                    let t = cta.thread(who.warp, lane);
                    t.passed = t.phase;
                    let phase = t.phase;
                    if let Some(clock) = self.clusters.get(&(cta.cluster, phase)) {
                        cta.learn(who.warp, lane, clock);
                    }
                    // All threads have arrived at this phase, so none waits for the one before the previous.
                    if phase > 2 {
                        self.clusters.remove(&(cta.cluster, phase - 2));
                    }
                }
            }
            SyncKind::Warp => {
                let mut clock = Clock::default();
                cta.gather(who, self.now, &mut clock);
                cta.give(who, &Arc::new(clock));
            }
            SyncKind::Exchange => {
                let mut seen: Vec<Arc<Clock>> = Vec::new();
                for lane in lanes(cta.warps[who.warp as usize].differing(who.lanes)) {
                    let clock = &cta.look(who.warp, lane).clock;
                    if !seen.iter().any(|c| Arc::ptr_eq(c, clock)) {
                        seen.push(clock.clone());
                    }
                }
                if let [first, rest @ ..] = &seen[..]
                    && !rest.is_empty()
                {
                    let mut clock = (**first).clone();
                    rest.iter().for_each(|c| clock.join(c));
                    cta.give(who, &Arc::new(clock));
                }
            }
            SyncKind::Object { at, done, completes, order } => self.object(cta, who, at, (done, completes), order),
            SyncKind::Fence(semantics, scope) => self.fence(cta, who, semantics, scope),
            SyncKind::FenceObjects => self.fence(cta, who, Semantics::Release, Scope::Cluster),
            SyncKind::Commit { bulk } => {
                let now = self.now;
                lanes(who.lanes).for_each(|lane| cta.thread(who.warp, lane).groups[usize::from(bulk)].push_back(now));
            }
            SyncKind::Wait { bulk, pending } => {
                for lane in lanes(who.lanes) {
                    let now = self.now;
                    let t = cta.thread(who.warp, lane);
                    let groups = &mut t.groups[usize::from(bulk)];
                    let Some(pending) = pending else {
                        groups.clear();
                        t.agent = now;
                        continue;
                    };
                    while groups.len() > pending as usize {
                        t.agent = t.agent.max(groups.pop_front().unwrap_or(0));
                    }
                }
            }
            SyncKind::Exit => {}
        }
    }

    fn object(
        &mut self,
        cta: &mut CtaThreads,
        who: Who,
        at: u64,
        (done, completes): (ObjectStep, bool),
        order: Ordering,
    ) {
        let object = self.objects.entry(at).or_default();
        match done {
            ObjectStep::Initialise | ObjectStep::Invalidate => *object = Object::default(),
            ObjectStep::Arrive if order.semantics.releases() => cta.gather(who, self.now, &mut object.arrived),
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
            ObjectStep::Waited => {
                let clock = object.done.clone();
                for lane in lanes(who.lanes) {
                    if order.semantics.acquires() {
                        cta.learn(who.warp, lane, &clock);
                    } else {
                        let (index, cluster) = (cta.index, cta.cluster);
                        let release = Release { cta: index, cluster, scope: Scope::Sys, clock: clock.clone() };
                        push_pending(cta.thread(who.warp, lane), release, order.scope);
                    }
                }
            }
            ObjectStep::Expect | ObjectStep::Pending => {}
        }
        if completes {
            let mut clock = std::mem::take(&mut object.arrived);
            clock.join(&object.done);
            object.done = Arc::new(clock);
        }
    }

    /// A CTA barrier completed: the waiting threads have seen what all participants did before they arrived.
    pub fn complete(&mut self, cta: &mut CtaThreads, id: u32, all: bool, (arrived, waited): (&[u32], &[u32])) {
        let Some(Gathered { mut clock, fences }) = cta.barriers.remove(&id) else { return };
        if all {
            // All threads of the CTA have arrived or exited. Those that did not wait (`bar.arrive`) have gone on since.
            let gone = |warp: usize| arrived.get(warp).map_or(0, |a| a & !waited.get(warp).copied().unwrap_or(0));
            if (0..arrived.len()).all(|warp| gone(warp) == 0) {
                clock.raise_all(cta.index, self.now);
            } else {
                let raise = |warp| clock.raise((cta.index, warp, !gone(warp as usize)), Side::Program, self.now);
                (0..cta.published.len() as u32).for_each(raise);
            }
            cta.published.fill(self.now);
        }
        let clock = Arc::new(clock);
        let fence = |clock: Clock| Fence { clock: Arc::new(clock), agent: 0, time: 0 };
        let fences = fences.map(|clock| clock.map(fence));
        for (warp, mask) in waited.iter().enumerate().filter(|(_, mask)| **mask != 0) {
            cta.give(Who { warp: warp as u32, lanes: *mask }, &clock);
            if fences.iter().any(Option::is_some) {
                lanes(*mask).for_each(|lane| cta.thread(warp as u32, lane).fences = fences.clone());
            }
        }
    }
}

fn push_pending(t: &mut Thread, release: Release, scope: Scope) {
    if t.pending.iter().any(|(r, s)| Arc::ptr_eq(&r.clock, &release.clock) && *s == scope) {
        return;
    }
    if t.pending.len() >= MOST_PENDING {
        // Merged: too much order only hides races, and never invents any.
        let (first, _) = &mut t.pending[0];
        Arc::make_mut(&mut first.clock).join(&release.clock);
        return;
    }
    t.pending.push((release, scope));
}

/// Merges all releases at a location whose scope is the device or wider.
fn collapse(list: &mut Vec<Release>) {
    let Some(at) = list.iter().position(|r| r.scope >= Scope::Gpu) else { return };
    let mut all = list.swap_remove(at);
    let clock = Arc::make_mut(&mut all.clock);
    list.retain(|r| {
        let wide = r.scope >= Scope::Gpu;
        if wide {
            clock.join(&r.clock);
        }
        !wide
    });
    list.push(all);
}
