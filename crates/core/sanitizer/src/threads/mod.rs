//! The vector clock of each thread, and how synchronization changes it (manual, sections 8.8 and 8.9).
//!
//! * A barrier orders what its participants did before they arrived before what the waiting ones do afterwards:
//!   arrivals gather a clock, which the waiting threads receive when the barrier completes.
//! * A release pattern leaves the releasing thread's clock at the location that it writes; read-modify-writes pass it
//!   on, and so do strong writes of the thread itself after a releasing operation; other writes remove it. An acquire
//!   pattern joins it if the first operation of the one and the last of the other are morally strong: each has a scope
//!   that includes the other's thread.
//! * Relaxed accesses and atomics order nothing. `fence.sc` counts as release and acquire: its total order is the
//!   schedule's, on which a program must not depend.
//! * A barrier of a CTA or a warp passes on what fences of its participants have made visible: "all write and fence,
//!   barrier, one sets the flag".
//! * A shuffle or vote passes on what its lanes have seen of others, but nothing of what they did: one lane acquires
//!   and informs the warp, or one lane reads a flag and informs the warp, whose lanes then acquire it by fences.
//! * A flag that is set and read without release and acquire orders nothing, except that what threads have read before a barrier
//!   that came before the flag was set is read before what they write who have seen the flag: [`Threads::hint`].
//! * A CTA barrier counts as an acquire fence for what its threads have read before, unless they have waited for it in a loop. The manual
//!   promises less, but programs in which "the last CTA adds up" rely on it, and hardware guarantees it. What a thread has waited for is
//!   acquired by a fence of any thread that has passed the barrier.

mod barrier;
mod cluster;
mod history;
mod pending;
mod sync;
mod uncertain;

use barrier::Gathered;
pub use history::Same;
use history::{Change, Histories};
use pending::Unacquired;
use uncertain::{Polled, Read, UncertainClock};

use crate::{
    clock::{Clock, Copies, Side, Time},
    hash::Map,
    lanes,
};
use margay_exec::{LANES, Scope};
use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

/// Limit of clocks released at one location.
const MAX_RELEASES: usize = 128;

/// A clock released at a location.
#[derive(Clone)]
struct Release {
    cta: u32,
    cluster: u32,
    scope: Scope,
    clock: Arc<Clock>,
    /// Warp and lane of the thread that released it, or of one of them if several were merged.
    by: (u32, u32),
    /// The thread's fence, or what its releasing operation was as one.
    fence: Fence,
}

/// A fence of a thread: its clock and time.
#[derive(Clone)]
struct Fence {
    clock: Arc<Clock>,
    copies: Copies,
    time: Time,
}

/// The state of a thread.
#[derive(Clone, Default)]
struct Thread {
    clock: Arc<Clock>,
    /// The parts of the clock that come from reads of single places, which may be by chance, and the clock without them; empty and
    /// `None` if there are none.
    uncertain_clocks: Vec<UncertainClock>,
    certain: Option<Arc<Clock>>,
    /// Up to when its own asynchronous copies are over.
    copies: Copies,
    /// The last releasing fence by scope: `.cta`, `.cluster`, `.gpu` or wider.
    fences: [Option<Fence>; 3],
    /// Whose reads are over, because of flags that were read: see [`Threads::hint`].
    reads: Option<Arc<Clock>>,
    pending: Unacquired,
    /// What it acquired last, if it has read that twice.
    polled: Option<Polled>,
    /// Commit times of groups, by [`margay_exec::Grouped`].
    groups: [VecDeque<Time>; 3],
    /// Number of arrivals at the cluster barrier, and of those when it last returned from waiting there.
    phase: u64,
    passed: u64,
}

impl Thread {
    /// Whether it has nothing but clocks, and what it knows of reads.
    fn is_plain(&self) -> bool {
        let Thread {
            clock: _,
            reads: _,
            uncertain_clocks: _,
            certain: _,
            polled: _,
            copies,
            fences,
            pending,
            groups,
            phase,
            passed,
        } = self;
        let nothing = pending.is_empty() && groups.iter().all(VecDeque::is_empty) && fences.iter().all(Option::is_none);
        nothing && (*copies, *phase, *passed) == (Copies::default(), 0, 0)
    }
}

/// The threads of a warp.
#[allow(clippy::large_enum_variant, reason = "most warps are alike")]
enum Warp {
    /// All have this clock, know of these reads and have nothing else: as long as they only synchronize together.
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

    /// Whether all threads have nothing but a clock once they get one.
    fn becomes_plain(&self) -> bool {
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
    /// When it began.
    pub begun: Time,
    /// The threads of all warps, if they are alike: then `warps` is out of date, or empty.
    common: Option<Warp>,
    warps: Vec<Warp>,
    /// By number: the barriers at which some have arrived.
    barriers: Vec<(u32, Gathered)>,
    /// By number: the arrivals at the last completion of barriers of a given number of threads.
    ended: Vec<(u32, Vec<(WarpMask, Time)>)>,
    /// An empty list for the next one's arrivals.
    spare: Vec<(WarpMask, Time)>,
    /// By warp: the time of the last release by its threads.
    published: Vec<Time>,
    /// By warp: the lanes that may know of others by chance; whether there have been any.
    uncertain: Vec<u32>,
    any_uncertain: bool,
    /// By warp: the lanes of the last query (0: any) and what they have all seen, until it changes.
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

/// The clocks of a barrier object.
#[derive(Default)]
struct Object {
    arrived: Clock,
    done: Arc<Clock>,
    /// Who has completed the last phase and the one before it, and when.
    last: Option<((u32, u32, u32), Side, Time)>,
    before: Option<((u32, u32, u32), Side, Time)>,
}

/// The state of happens-before that threads share.
#[derive(Default)]
pub struct Threads {
    /// The current time.
    pub now: Time,
    /// Strong reads and waits so far.
    reads: u64,
    released: Map<u64, Vec<Release>>,
    /// By location: what each thread has last released there by an operation, not by a fence, whoever has written it since.
    releasing: Map<u64, Vec<Release>>,
    /// By location: what had been released there in a scope that did not include a thread that updated it. For reports.
    narrow: Map<u64, Arc<Clock>>,
    histories: Histories,
    /// By location of a flag: whose reads were over when it was set.
    hints: Map<u64, Arc<Clock>>,
    objects: HashMap<u64, Object>,
    /// By cluster and phase.
    clusters: HashMap<(u32, u64), Clock>,
}

/// Lanes of a warp of a CTA.
#[derive(Clone, Copy)]
pub struct WarpMask {
    /// Warp in the CTA.
    pub warp: u32,
    /// The lanes.
    pub lanes: u32,
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

    /// Whether it releases the same once more: a thread that polls by `atomicAdd(p, 0)` releases what its last fence has made visible
    /// over and over.
    fn repeats(&self, other: &Release) -> bool {
        (self.cta, self.by, self.scope) == (other.cta, other.by, other.scope) && self.fence.is(&other.fence)
    }
}

impl Fence {
    /// Whether it is the same fence.
    fn is(&self, other: &Fence) -> bool {
        self.time == other.time && Arc::ptr_eq(&self.clock, &other.clock)
    }
}

/// Joins clocks, of which most are the same.
fn join_shared(to: &mut Option<Arc<Clock>>, other: Option<&Arc<Clock>>) {
    match (to, other) {
        (_, None) => {}
        (Some(to), Some(other)) if Arc::ptr_eq(to, other) => {}
        (Some(to), Some(other)) => Arc::make_mut(to).join(other),
        (none, Some(other)) => *none = Some(other.clone()),
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
        let all = warps as usize;
        let common = Some(Warp::Alike(Thread::default()));
        let (barriers, ended, spare, warps) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (published, uncertain, seen) = (vec![0; all], vec![0; all], vec![None; all]);
        let (begun, any_uncertain) = (0, false);
        CtaThreads {
            index,
            cluster,
            begun,
            common,
            warps,
            barriers,
            ended,
            spare,
            published,
            uncertain,
            any_uncertain,
            seen,
        }
    }

    /// The threads of another CTA, which begins when this one has ended.
    pub fn restart(&mut self, index: u32, cluster: u32) {
        (self.index, self.cluster, self.any_uncertain) = (index, cluster, false);
        match &mut self.common {
            Some(Warp::Alike(thread)) if thread.is_plain() => {
                thread.clock = Arc::default();
                thread.uncertain_clocks.clear();
                (thread.certain, thread.reads) = (None, None);
            }
            common => *common = Some(Warp::Alike(Thread::default())),
        }
        self.warps.clear();
        self.barriers.clear();
        self.ended.clear();
        self.published.fill(0);
        self.uncertain.fill(0);
        self.seen.fill(None);
    }

    /// The time of the last release by threads of a warp: later accesses cannot be distinguished by other threads.
    pub fn published(&self, warp: u32) -> Time {
        self.published[warp as usize]
    }

    /// Lower bounds of the times up to which all these lanes have seen the accesses of their CTA and warp.
    pub fn seen(&mut self, who: WarpMask) -> Seen {
        if let Some((lanes, seen)) = self.seen[who.warp as usize]
            && (lanes == who.lanes || lanes == 0)
        {
            return seen;
        }
        let mut all = Seen { cta: Time::MAX, warp: Time::MAX };
        let mut last: Option<&Arc<Clock>> = None;
        let warp = self.warp(who.warp);
        for lane in lanes(warp.differing(who.lanes)) {
            let clock = &warp.thread(lane).clock;
            if last.is_none_or(|l| !Arc::ptr_eq(l, clock)) {
                let (cta, warp) = clock.floors(self.index, who.warp);
                all = Seen { cta: all.cta.min(cta), warp: all.warp.min(warp.max(cta)) };
                last = Some(clock);
            }
        }
        let any = if self.are_alike(who.warp) { 0 } else { who.lanes };
        self.seen[who.warp as usize] = Some((any, all));
        all
    }

    /// Lets lanes acquire what they have read of release patterns, except what they have waited for.
    fn acquire_pending(&mut self, who: WarpMask) {
        if self.are_alike(who.warp) {
            return;
        }
        for lane in lanes(who.lanes) {
            if self.look(who.warp, lane).pending.is_empty() {
                continue;
            }
            let t = self.thread(who.warp, lane);
            for p in std::mem::take(&mut t.pending).iter().filter(|p| !p.is_vain()) {
                match p.awaited {
                    true => t.pending.push(p.clone()),
                    false => t.join(&p.release.clock, None),
                }
            }
        }
    }

    fn thread(&mut self, warp: u32, lane: u32) -> &mut Thread {
        self.seen[warp as usize] = None;
        let warp = self.warp_mut(warp);
        if let Warp::Alike(thread) = warp {
            *warp = Warp::Apart(Box::new(std::array::from_fn(|_| thread.clone())));
        }
        let Warp::Apart(threads) = warp else { unreachable!("they have just been separated") };
        &mut threads[lane as usize]
    }

    fn warp(&self, warp: u32) -> &Warp {
        self.common.as_ref().unwrap_or_else(|| &self.warps[warp as usize])
    }

    fn warp_mut(&mut self, warp: u32) -> &mut Warp {
        if let Some(Warp::Alike(common)) = self.common.take() {
            self.warps.clear();
            self.warps.resize_with(self.published.len(), || Warp::Alike(common.clone()));
        }
        &mut self.warps[warp as usize]
    }

    /// Whether the threads of a warp have nothing but one common clock: no fence that an access could end, nothing read that a
    /// fence could acquire.
    pub fn are_alike(&self, warp: u32) -> bool {
        matches!(self.warp(warp), Warp::Alike(_))
    }

    fn look(&self, warp: u32, lane: u32) -> &Thread {
        self.warp(warp).thread(lane)
    }

    /// A lane of `now` that has not seen what some lane of `others` in warp (`cta`, `warp`) did at `time`, and that
    /// lane. A thread's own accesses are in program order.
    pub fn unseen(
        &self,
        now: WarpMask,
        (cta, warp, others): (u32, u32, u32),
        side: Side,
        time: Time,
    ) -> Option<(u32, u32)> {
        let mut known: Option<(&Arc<Clock>, u32)> = None;
        for lane in lanes(now.lanes) {
            let t = self.look(now.warp, lane);
            let missing = match known {
                Some((clock, missing)) if Arc::ptr_eq(clock, &t.clock) => missing,
                _ => lanes(others).filter(|o| t.clock.get((cta, warp, *o), side) < time).fold(0, |m, o| m | 1 << o),
            };
            known = Some((&t.clock, missing));
            let same = (cta, warp) == (self.index, now.warp) && t.copies.cover(side, time);
            let missing = if same { missing & !(1 << lane) } else { missing };
            if missing != 0 {
                return Some((lane, missing.trailing_zeros()));
            }
        }
        None
    }

    /// Some lane of `others` of which no lane of `now` has seen what it did at `time`. What a warp executes together comes after what any of
    /// its lanes knows.
    pub fn unseen_together(
        &self,
        now: WarpMask,
        (cta, warp, others): (u32, u32, u32),
        side: Side,
        time: Time,
    ) -> Option<u32> {
        let mut missing = others;
        let mut last: Option<&Arc<Clock>> = None;
        for lane in lanes(now.lanes) {
            let t = self.look(now.warp, lane);
            if (cta, warp) == (self.index, now.warp) && t.copies.cover(side, time) {
                missing &= !(1 << lane);
            }
            if missing != 0 && last.is_none_or(|l| !Arc::ptr_eq(l, &t.clock)) {
                missing =
                    lanes(missing).filter(|o| t.clock.get((cta, warp, *o), side) < time).fold(0, |m, o| m | 1 << o);
                last = Some(&t.clock);
            }
        }
        (missing != 0).then(|| missing.trailing_zeros())
    }

    /// A lane of `now` whose copies do not see what some lane of `others` did at `time`, on the side of a proxy, and that lane.
    pub fn unproxied(
        &self,
        now: WarpMask,
        (cta, warp, others): (u32, u32, u32),
        (side, time): (Side, Time),
    ) -> Option<(u32, u32)> {
        lanes(now.lanes).find_map(|lane| {
            let clock = &self.look(now.warp, lane).clock;
            let unseen = |o: &u32| clock.get((cta, warp, *o), side) < time;
            lanes(others).find(unseen).map(|other| (lane, other))
        })
    }

    /// How often a thread has arrived at the cluster's barrier.
    pub fn phase(&self, warp: u32, lane: u32) -> u64 {
        self.look(warp, lane).phase
    }

    /// The phase of the cluster's barrier that a thread has last waited for.
    pub fn passed(&self, warp: u32, lane: u32) -> u64 {
        self.look(warp, lane).passed
    }

    /// Whether a thread has seen what another one did at a time.
    pub fn knows(&self, (warp, lane): (u32, u32), other: (u32, u32, u32), time: Time) -> bool {
        self.look(warp, lane).clock.get(other, Side::Program) >= time
    }

    /// Whose reads lanes know to be over.
    fn reads_of(&self, who: WarpMask) -> Option<Arc<Clock>> {
        let warp = self.warp(who.warp);
        let mut all = None;
        lanes(warp.differing(who.lanes)).for_each(|lane| join_shared(&mut all, warp.thread(lane).reads.as_ref()));
        all
    }

    /// Whether a lane knows by a flag that reads of others were over.
    pub fn knows_read(&self, (warp, lane): (u32, u32), (cta, other, others): (u32, u32, u32), time: Time) -> bool {
        let known = self.look(warp, lane).reads.as_ref();
        known.is_some_and(|c| lanes(others).all(|lane| c.get((cta, other, lane), Side::Program) >= time))
    }

    /// Joins everything that lanes have seen and done into a clock.
    pub fn gather(&self, who: WarpMask, time: Time, to: &mut Clock) {
        self.gather_seen(who, to);
        to.raise((self.index, who.warp, who.lanes), Side::Program, time);
    }

    /// Joins everything that lanes have seen into a clock, and which of their copies are complete.
    fn gather_seen(&self, who: WarpMask, to: &mut Clock) {
        let mut last: Option<&Arc<Clock>> = None;
        let warp = self.warp(who.warp);
        for lane in lanes(warp.differing(who.lanes)) {
            let t = warp.thread(lane);
            if let Some(clock) = t.passes_on() {
                to.join(&clock);
            } else if last.is_none_or(|l| !Arc::ptr_eq(l, &t.clock)) {
                to.join(&t.clock);
                last = Some(&t.clock);
            }
            to.raise_copies((self.index, who.warp, lane), t.copies);
        }
    }

    /// Joins what the fences of lanes have made visible.
    fn gather_fences(&self, who: WarpMask, to: &mut [Option<Clock>; 3]) {
        let mut last: [Option<&Arc<Clock>>; 3] = [None; 3];
        let warp = self.warp(who.warp);
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
                    clock.raise_copies((self.index, who.warp, lane), fence.copies);
                }
            }
        }
    }

    fn give(&mut self, who: WarpMask, clock: &Arc<Clock>, reads: Option<&Arc<Clock>>) {
        self.uncertain[who.warp as usize] &= !who.lanes;
        let warp = self.warp_mut(who.warp);
        if let (Warp::Alike(thread), u32::MAX) = (&mut *warp, who.lanes) {
            thread.clock = clock.clone();
            thread.reads = reads.cloned();
            self.seen[who.warp as usize] = None;
            return;
        }
        if who.lanes == u32::MAX && warp.becomes_plain() {
            *warp = Warp::Alike(Thread { clock: clock.clone(), reads: reads.cloned(), ..Thread::default() });
            self.seen[who.warp as usize] = None;
            return;
        }
        for lane in lanes(who.lanes) {
            let t = self.thread(who.warp, lane);
            (t.clock, t.reads) = (clock.clone(), reads.cloned());
            t.settle();
        }
    }

    /// Whether a lane has read what was released after a thread's access, and no fence has acquired it.
    pub fn awaits_fence(&self, (warp, lane): (u32, u32), other: (u32, u32, u32), time: Time) -> bool {
        let pending = &self.look(warp, lane).pending;
        pending.iter().any(|p| p.release.clock.get(other, Side::Program) >= time)
    }

    /// Passes on what fences have made visible.
    fn propagate_fences(&mut self, who: WarpMask, fences: &[Option<Fence>; 3]) {
        if fences.iter().any(Option::is_some) {
            lanes(who.lanes).for_each(|lane| self.thread(who.warp, lane).fences = fences.clone());
        }
    }
}
