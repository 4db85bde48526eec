//! The events of a launch, and who looks at them.

use crate::{
    Checks, Sanitizer,
    barrier::Arrivals,
    deferred::Deferred,
    ended,
    facts::Facts,
    family,
    finding::{Finding, FindingKind, Party},
    hash::forget,
    lanes, shadow,
    site::Place,
    state::{Cta, State},
    threads::CtaThreads,
    who,
};
use margay_exec::{
    BarrierEvent, Concern, CtaEvent, Image, Interest, LineUses, LockedObserver, MemoryEvent, Observer, RowEvent,
    RowLoads, Scope, SpreadEvent, SyncEvent, SyncKind, TensorEvent, Undefined, UndefinedEvent,
};
use margay_ir::{FuncId, MemSpace};
use parking_lot::MutexGuard;

/// A sanitizer that one thread has locked.
struct Locked<'c> {
    sanitizer: &'c Sanitizer,
    state: MutexGuard<'c, State>,
}

impl LockedObserver for Locked<'_> {
    fn row(&mut self, e: &RowEvent<'_>) -> bool {
        self.sanitizer.see_row(&mut self.state, e)
    }

    fn spread(&mut self, e: &SpreadEvent<'_>) -> bool {
        self.sanitizer.see_spread(&mut self.state, e)
    }

    fn loads(&mut self, e: &RowLoads<'_>) -> usize {
        self.sanitizer.see_loads(&mut self.state, e)
    }

    fn uses(&self, cta: [u32; 3]) -> Option<&LineUses> {
        self.sanitizer.uses(&self.state, cta)
    }

    fn noted(&mut self, e: &RowLoads<'_>) {
        self.sanitizer.see_noted(&mut self.state, e);
    }

    fn memory(&mut self, e: &MemoryEvent<'_>) {
        self.sanitizer.see(&mut self.state, e, false);
    }

    fn strays(&mut self, e: &MemoryEvent<'_>) -> (u64, u64) {
        self.sanitizer.look_for_strays(&mut self.state, e)
    }

    fn ignored(&self, memo: u32) -> (u64, u64) {
        self.sanitizer.ignored_range(&self.state, memo)
    }

    fn sync(&mut self, e: &SyncEvent<'_>) {
        self.sanitizer.synchronize(&mut self.state, e);
    }

    fn barrier(&mut self, e: &BarrierEvent<'_>) {
        self.sanitizer.complete(&mut self.state, e);
    }

    fn met(&mut self, cta: [u32; 3], live: &[u32], times: u32) {
        self.sanitizer.meet(&mut self.state, cta, live, times);
    }

    fn cta(&mut self, e: &CtaEvent<'_>) {
        self.sanitizer.begin(&mut self.state, e);
    }

    fn exit(&mut self, cta: [u32; 3]) {
        self.state.ctas.remove(self.sanitizer.index(cta));
    }
}

impl Sanitizer {
    /// Looks at an access; also for what it strays to, unless the engine reports that apart.
    fn see(&self, state: &mut State, e: &MemoryEvent<'_>, strays: bool) {
        if e.space == MemSpace::KernelParam || e.actor.lanes == 0 || e.size == 0 {
            return;
        }
        state.whole = false;
        if state.over {
            return;
        }
        let own = matches!(e.space, MemSpace::Shared | MemSpace::SharedCluster | MemSpace::Local);
        if self.footprints && (self.what.races || self.what.unused) && !own {
            state.footprint.note(e);
        }
        if self.overlaps && self.what.races && !own {
            self.note_early(state, e);
        }
        if self.what.sync
            && let Some(cta) = state.ctas.get_mut(self.index(e.actor.cta))
        {
            cta.arrivals.touch(&e.actor);
        }
        if self.what.memory && strays {
            self.look_for_strays(state, e);
        }
        // Constants have initial values.
        if self.what.init && e.space != MemSpace::Const {
            self.look_for_uninitialized(state, e);
            state.passed.clear();
        }
        if self.what.races && self.index(e.actor.cta).is_multiple_of(self.sample) {
            self.look_for_races(state, e);
        }
    }

    /// Whether lanes exchange something that all of them know.
    fn changes_nothing(&self, state: &mut State, e: &SyncEvent<'_>) -> bool {
        let cta = state.ctas.get_mut(self.index(e.actor.cta));
        e.kind == SyncKind::Exchange && cta.is_none_or(|cta| cta.threads.are_alike(e.actor.warp))
    }

    fn synchronize(&self, state: &mut State, e: &SyncEvent<'_>) {
        if state.over || self.changes_nothing(state, e) {
            return;
        }
        if let SyncKind::Object { at, done, order, .. } = e.kind {
            self.access_object(state, e, at, done, order);
        }
        // What is noted came before all that changes what a warp has seen, except for what ends the interval.
        if self.what.races && !matches!(e.kind, SyncKind::Barrier { counted: false, .. } | SyncKind::Exit) {
            self.settle(state, self.index(e.actor.cta));
        }
        if self.what.races && self.what.sync {
            self.look_for_mixed_phases(state, e);
        }
        let Some(cta) = state.ctas.get_mut(self.index(e.actor.cta)) else { return };
        let apart = match e.kind {
            SyncKind::Barrier { id, aligned, counted } if self.what.sync => {
                cta.arrivals.arrive(&e.actor, id, (aligned, counted))
            }
            _ => None,
        };
        if e.kind == SyncKind::Exit {
            cta.live = cta.live.saturating_sub(e.actor.lanes.count_ones());
            let last = cta.live == 0;
            if self.what.races && self.cluster != [1; 3] {
                self.end(state, &e.actor, last);
            }
            if last {
                state.ctas.remove(self.index(e.actor.cta));
            }
            return;
        }
        // Only races need the order.
        if self.what.races {
            if self.footprints && matches!(e.kind, SyncKind::Fence(_, Scope::Sys)) {
                state.footprint.note_system();
            }
            if e.kind == SyncKind::LaunchDependents {
                self.trigger(state, e);
            }
            let Some(cta) = state.ctas.get_mut(self.index(e.actor.cta)) else { return };
            if e.kind == SyncKind::Queue {
                for lane in lanes(e.actor.lanes) {
                    let clock = state.threads.knowledge(&cta.threads, (e.actor.warp, lane));
                    let thread = family::thread(cta.threads.index, self.warps, (e.actor.warp, lane));
                    let at = e.actor.callers.last().map_or(e.actor.at, |frame| (frame.func, frame.at));
                    state.queued.entry(thread).or_default().push(family::Queued { clock, at });
                }
            }
            let at = e.actor.callers.is_empty().then_some(e.actor.at);
            state.threads.sync(&mut cta.threads, who(&e.actor), e.kind, at);
            state.advance();
        }
        if let Some(apart) = apart {
            self.report_apart(state, &e.actor, &apart);
        }
    }

    /// A barrier of a CTA has completed.
    fn complete(&self, state: &mut State, e: &BarrierEvent<'_>) {
        if self.what.races && !(e.all && e.arrived == e.waited) {
            self.settle(state, self.index(e.cta));
        }
        let Some(cta) = state.ctas.get_mut(self.index(e.cta)) else { return };
        if self.what.races {
            if e.all && e.arrived == e.waited {
                cta.deferred.end(1);
            }
            state.threads.complete(&mut cta.threads, e.id, e.all, (e.arrived, e.waited));
        }
        if self.what.sync {
            let arrived = cta.arrivals.complete(e.id);
            if e.all {
                self.look_for_skipped(state, e, &arrived);
            }
            if let Some(cta) = state.ctas.get_mut(self.index(e.cta)) {
                cta.arrivals.recycle(e.id, arrived);
            }
        }
        if self.what.races {
            state.advance();
        }
    }

    /// All threads of a CTA have met so often, and done nothing else of interest meanwhile.
    fn meet(&self, state: &mut State, cta: [u32; 3], live: &[u32], times: u32) {
        if let Some(cta) = state.ctas.get_mut(self.index(cta)).filter(|_| self.what.races) {
            cta.deferred.end(times);
            state.threads.complete(&mut cta.threads, 0, true, (live, live));
            state.advance();
        }
    }

    /// A CTA starts.
    fn begin(&self, state: &mut State, e: &CtaEvent<'_>) {
        if self.what.init {
            e.locals.iter().chain([&e.shared]).for_each(|(base, size)| state.marks.forget(*base, *size));
            // The part reserved by the system is initialized.
            state.marks.mark(e.shared.0, self.image.reserved_shared.into());
        }
        let within = |at: &u64| at.wrapping_sub(e.shared.0) < e.shared.1;
        state.clashes.retain(|clash| !within(&clash.address));
        state.shadow.forget(e.shared.0, e.shared.1);
        self.forget_tensor_memory(state, e.cta);
        state.threads.forget(e.shared.0, e.shared.1);
        forget(&mut state.tickets, e.shared.0, e.shared.1);
        state.updates.forget(e.shared.0, e.shared.1);
        forget(&mut state.copied, e.shared.0, e.shared.1);
        let (index, cluster) = (self.index(e.cta), self.cluster_of(e.cta));
        // Records cannot distinguish more warps.
        state.over |= u64::from(index) * u64::from(self.warps) >= shadow::MAX_WARPS;
        let live = self.block.iter().product();
        let mut cta = match state.ctas.spare(e.shared) {
            Some(mut spare) => {
                spare.restart(index, cluster, live);
                spare
            }
            None => Box::new(Cta {
                threads: CtaThreads::new(index, cluster, if self.what.races { self.warps } else { 0 }),
                arrivals: Arrivals::new(self.warps),
                shared: e.shared,
                locals: (0, 0),
                live,
                end: ended::End::default(),
                deferred: Deferred::new(e.shared, self.defers && self.what.races && self.cluster == [1; 3]),
            }),
        };
        let first = e.locals.iter().map(|(base, _)| *base).min().unwrap_or(0);
        let end = e.locals.iter().map(|(base, size)| base + size).max().unwrap_or(first);
        cta.locals = (first, end - first);
        cta.threads.begun = state.threads.now;
        state.ctas.insert(index, cta);
        if self.cluster != [1; 3] {
            state.windows.insert(e.shared.0, index);
            state.remotes.remove(&index);
        }
        state.advance();
    }
}

impl Observer for Sanitizer {
    fn accepts_compiled_code(&self, image: &Image, kernel: FuncId) -> bool {
        let kept;
        let facts = match std::ptr::eq(image, &*self.image) {
            true => &*self.facts,
            false => {
                kept = Facts::default();
                &kept
            }
        };
        let Checks { races, sync, memory, init, .. } = self.what;
        // Compiled code does not report what registers hold, on which depends which values decide alike. Nor does it report all that it
        // accesses before it waits for the grids before it.
        !(init
            || races && self.overlaps
            // Where a frame that grows ends, only the reference engine knows.
            || memory && facts.grows(image, kernel)
            || self.decides
            // What waits for products does nothing in compiled code.
            || (races || sync) && facts.multiplies(image, kernel)
            // Who takes which work, or finds a place free, is to differ from who comes first, for which only the reference engine provides.
            || races && facts.shares(image, kernel)
            // What quiet functions read is not reported: it must be tables of the program.
            || races && !facts.tables(image, kernel))
    }

    fn interest(&self) -> Interest {
        let Checks { races, unused, sync, memory, .. } = self.what;
        Interest { order: races || unused, progress: sync, bounds: memory }
    }

    fn locked(&self) -> Option<Box<dyn LockedObserver + '_>> {
        Some(Box::new(Locked { sanitizer: self, state: self.state.lock() }))
    }

    fn memory(&self, e: &MemoryEvent<'_>) {
        self.see(&mut self.state.lock(), e, true);
    }

    fn tensor(&self, e: &TensorEvent<'_>) {
        if self.what.races && self.index(e.actor.cta).is_multiple_of(self.sample) {
            self.look_at_tensor_memory(&mut self.state.lock(), e);
        }
    }

    fn passes_on(&self, element: usize, origin: Place) {
        if self.what.init {
            self.state.lock().passed.push((element, origin));
        }
    }

    fn undefined_lanes(&self, e: &MemoryEvent<'_>) -> Undefined {
        if !self.what.init {
            return Undefined::default();
        }
        let mut state = self.state.lock();
        self.find_undefined(&mut state, e)
    }

    fn undefined(&self, e: UndefinedEvent<'_>) {
        let (kind, wanted) = match e.concern {
            Concern::Uninitialized => (FindingKind::Uninitialized, self.what.init),
            Concern::InFlight => (FindingKind::Race, self.what.races),
            Concern::Participants => (FindingKind::Synchronization, self.what.sync),
            Concern::Bounds => (FindingKind::Bounds, self.what.memory),
        };
        if !wanted {
            return;
        }
        let mut state = self.state.lock();
        let lane = e.actor.lanes.trailing_zeros();
        if let Some(origin) = e.origin.filter(|_| e.concern == Concern::Uninitialized) {
            return self.report_use(&mut state, &e, origin);
        }
        if e.concern == Concern::InFlight {
            return self.report_in_flight(&mut state, &e);
        }
        let at = e.origin.unwrap_or(e.actor.at);
        let user = e.origin.map(|_| self.party(&e.actor, lane, "uses the value"));
        state.report(kind, (at, None), || Finding {
            kind,
            title: format!("{}: {}", kind.name(), e.what),
            parties: std::iter::once(Party { at, ..self.party(&e.actor, lane, "executes") }).chain(user).collect(),
            notes: e.usage.into_iter().collect(),
            help: None,
            times: 1,
        });
    }

    fn sync(&self, e: &SyncEvent<'_>) {
        self.synchronize(&mut self.state.lock(), e);
    }

    fn barrier(&self, e: &BarrierEvent<'_>) {
        self.complete(&mut self.state.lock(), e);
    }

    fn cta(&self, e: &CtaEvent<'_>) {
        self.begin(&mut self.state.lock(), e);
    }

    fn allocated(&self, at: u64, size: u64) {
        let mut state = self.state.lock();
        state.shadow.forget(at, size);
        state.threads.forget(at, size);
        forget(&mut state.tickets, at, size);
        state.updates.forget(at, size);
        state.written = None;
        if self.what.races {
            state.allocated.mark(at, size);
        }
    }
}
