//! A CTA whose warps synchronize with each other: every warp runs on a fiber, and the fibers take turns on one thread.

use crate::{
    code::callable::Code,
    ctx::status,
    emit::SiteKind,
    run::deadlock::Watch,
    run::enter::{Call, Context, Stack},
    run::fiber::{self, Fiber},
    run::host::Host,
    run::windows::Windows,
};
use margay_exec::{
    Exhausted, FaultKind, Grid, Stop, incomplete,
    mem::{self, Allocation},
};
use margay_ir::FuncId;
use parking_lot::Mutex;
use std::{rc::Rc, sync::Arc};

/// Stack of a warp in bytes beyond the frames of the kernel's functions: without recursion, and with it. Pages that are
/// never touched cost nothing.
const STACK: [usize; 2] = [1 << 20, 15 << 20];
const RESERVE: usize = 256 << 10;
/// Turns without a poll after which a fiber no longer counts as polling: a polling loop may yield in several places.
const QUIET: u32 = 4;

/// Pool of fiber stacks that are not in use.
#[derive(Default)]
pub struct Stacks(Mutex<Vec<Stack>>);

impl Stacks {
    /// Takes at most `most` stacks.
    fn take(&self, most: usize) -> Vec<Stack> {
        let mut stacks = self.0.lock();
        let kept = stacks.len().saturating_sub(most);
        stacks.split_off(kept)
    }

    /// Returns stacks to the pool.
    fn put(&self, stacks: impl IntoIterator<Item = Stack>) {
        self.0.lock().extend(stacks);
    }
}

/// The fibers of a warp; the first runs the kernel itself, the others run device functions.
#[derive(Default)]
struct Warp<'a> {
    fibers: Vec<Option<Fiber<'a>>>,
    /// Counts events that may make a parked fiber of the warp runnable.
    events: u64,
}

/// A CTA in flight.
pub struct SimdCta<'a> {
    warps: Vec<Warp<'a>>,
    /// One context per warp.
    contexts: Vec<Context<'a>>,
    /// Stacks for its fibers that are not in use.
    stacks: Vec<Stack>,
    host: Rc<Host<'a>>,
}

/// The position of a CTA in the grid and in its cluster, and the shared windows of the cluster by rank.
#[derive(Clone)]
pub struct CtaPosition {
    pub cta: [u32; 3],
    pub rank: u32,
    pub cluster: Arc<[Arc<Allocation>]>,
}

/// Lanes that wait for the rest of their warp at one instruction.
#[derive(Clone, Copy)]
struct HeldLanes {
    warp: usize,
    fiber: usize,
    site: usize,
    lanes: u32,
}

/// Lanes of a warp that wait: warp, lanes, site, and a description of what they wait for.
pub type Waiter = (usize, u32, usize, String);

impl<'a> SimdCta<'a> {
    /// Clears the shared window, unless the CTA has brought it along, and creates a fiber per warp.
    pub fn new(
        code: Arc<Code>,
        grid: &'a Grid<'a>,
        windows: Box<Windows>,
        place: CtaPosition,
    ) -> Result<SimdCta<'a>, Stop> {
        if !windows.brought {
            let shared = &windows.shared.block;
            mem::fill(shared, shared.base(), &[0], shared.len());
        }
        let warps = grid.launch.shape.threads().div_ceil(32);
        let host = Host::of_cta(grid, code, windows, place);
        let contexts = Context::of_warps(&host, warps);
        let stacks = host.code.stacks.take(warps as usize);
        let mut this = SimdCta { warps: Vec::with_capacity(warps as usize), contexts, stacks, host };
        for warp in 0..warps as usize {
            let fiber = Fiber::warp(this.stack()?, this.reserve(), &this.contexts[warp]);
            this.warps.push(Warp { fibers: vec![Some(fiber)], events: 0 });
        }
        this.release_barriers();
        Ok(this)
    }

    fn stack(&mut self) -> Result<Stack, Stop> {
        let compiled = &self.host.code.compiled;
        let size = STACK[usize::from(compiled.recursive)] + compiled.frames.sum + self.reserve() as usize;
        let size = size.next_multiple_of(1 << 18);
        let pooled = self.stacks.pop().or_else(|| self.host.code.stacks.take(1).pop());
        if let Some(stack) = pooled.filter(|s| s.size() >= size) {
            return Ok(stack);
        }
        Stack::new(size).map_err(|e| Stop::Exhausted(Exhausted(format!("the host has no stack for a warp: {e}"))))
    }

    /// Bytes at the end of a stack reserved for helpers, and for a callee whose caller began just above the end.
    fn reserve(&self) -> u64 {
        (RESERVE + 2 * self.host.code.compiled.frames.largest) as u64
    }

    /// The number of its warps.
    pub fn warps(&self) -> usize {
        self.warps.len()
    }

    /// Per warp: the lanes that have not exited.
    fn live(&self) -> impl Iterator<Item = u32> {
        let lanes = |(w, c): (&Warp<'_>, &Context<'_>)| if w.fibers[0].is_some() { c.alive.get() } else { 0 };
        self.warps.iter().zip(&self.contexts).map(lanes)
    }

    /// Releases every barrier that is complete.
    fn release_barriers(&self) {
        self.host.barriers.borrow_mut().release_complete(self.live());
    }

    /// Runs every fiber, beginning with the one of `from`, until it parks or yields; returns whether any was runnable. Reports progress
    /// to `watch`. The round is interrupted if a fiber asks for the phase of the cluster's barrier: `from` then holds that fiber, and
    /// else `None`.
    pub fn round(&mut self, from: &mut Option<(usize, usize)>, watch: &mut Watch) -> Result<bool, Stop> {
        let mut ran = false;
        let effects = self.host.effects();
        let (first, mut s) = from.take().unwrap_or_default();
        'fibers: for warp in first..self.warps.len() {
            // Fibers of calls that start in this round run in it too.
            while s < self.warps[warp].fibers.len() {
                ran |= self.run_fiber(warp, s, watch)?;
                if std::mem::take(&mut self.host.fibers.borrow_mut().asks_for_phase) {
                    *from = Some((warp, s));
                    break 'fibers;
                }
                s += 1;
            }
            s = 0;
            if let Some(held) = self.held(warp).filter(|_| self.only_waits_within(warp)) {
                return Err(self.incomplete(held));
            }
        }
        if effects != self.host.effects() {
            watch.progress();
        }
        Ok(ran)
    }

    /// Resumes a fiber unless it is parked and nothing has happened since; returns whether it ran.
    fn run_fiber(&mut self, warp: usize, s: usize, watch: &mut Watch) -> Result<bool, Stop> {
        let Warp { fibers, events } = &mut self.warps[warp];
        let Some(fiber) = &mut fibers[s] else { return Ok(false) };
        let (waited, events) = (fiber.waits, *events);
        if waited && fiber.seen == events && !self.host.barriers.borrow().has_released(warp) {
            return Ok(false);
        }
        let woken = {
            let mut pending = self.host.fibers.borrow_mut();
            pending.running = s;
            pending.woken
        };
        fiber.enter(&self.contexts[warp]);
        let status = fiber.fiber.resume();
        fiber.leave(&self.contexts[warp]);
        let changed = self.contexts[warp].changed.get() != 0;
        let (calls, finished, woke) = {
            let mut pending = self.host.fibers.borrow_mut();
            (std::mem::take(&mut pending.calls), std::mem::take(&mut pending.finished), pending.woken != woken)
        };
        let back = match status {
            None => finished & fiber.left,
            Some(status::DONE) if !self.host.is_stopped() => fiber.left,
            Some(_) => return Err(self.unwind(warp, s)),
        };
        fiber.left &= !back;
        if let Some((caller, _)) = fiber.caller {
            self.host.fibers.borrow_mut().return_lanes(warp, caller, back);
        }
        let ran = !waited || woke;
        fiber.seen = events + u64::from(ran);
        self.warps[warp].events = fiber.seen;
        if status.is_some() {
            let stack = self.warps[warp].fibers[s].take().and_then(|s| s.fiber.into_stack());
            match s {
                // At most one per warp stays with the CTA.
                0 => self.stacks.extend(stack),
                _ => self.host.code.stacks.put(stack),
            }
        }
        if status.is_some() && s == 0 || woke || changed {
            watch.progress();
        }
        for call in calls {
            self.start_call(warp, s, call)?;
        }
        self.release_barriers();
        Ok(ran)
    }

    /// Starts a call on a fiber of its own.
    fn start_call(&mut self, warp: usize, caller: usize, call: Call) -> Result<(), Stop> {
        let free = self.warps[warp].fibers.iter().position(Option::is_none);
        if free.is_none() && self.warps[warp].fibers.len() == fiber::LIMIT {
            let (ctx, lane) = (&self.contexts[warp], call.lanes.trailing_zeros() & 31);
            let kind = FaultKind::Stack("the host's stacks for device calls are full".into());
            let stop = self.host.fault_at(ctx, call.site, lane, kind, Vec::new());
            self.host.stop(stop);
            return Err(self.unwind(warp, caller));
        }
        let stack = self.stack()?;
        let fiber = Some(Fiber::call(stack, self.reserve(), &self.contexts[warp], caller, call));
        match free {
            Some(at) => self.warps[warp].fibers[at] = fiber,
            None => self.warps[warp].fibers.push(fiber),
        }
        Ok(())
    }

    /// Unwinds the callers of a fiber that has stopped; each adds itself to the fault's call stack.
    fn unwind(&mut self, warp: usize, mut s: usize) -> Stop {
        while let Some((caller, site)) = self.warps[warp].fibers[s].as_ref().and_then(|s| s.caller) {
            self.host.unwind(site);
            self.resume_stopped(warp, caller);
            s = caller;
        }
        self.host.reason()
    }

    /// All fibers that have not ended, with their warps.
    fn fibers(&self) -> impl Iterator<Item = (usize, &Fiber<'a>)> {
        self.warps.iter().enumerate().flat_map(|(w, warp)| warp.fibers.iter().flatten().map(move |s| (w, s)))
    }

    /// Mixes into `all` a hash of the CTA's whole state except global memory.
    pub fn fingerprint(&self, all: u64) -> u64 {
        let shared = &self.host.windows().shared.block;
        let word = |i: u64| mem::load::<u64>(shared, shared.base() + 8 * i).unwrap_or(0);
        let mut all = (0..shared.len() as u64 / 8).map(word).fold(all, mix);
        for ctx in &self.contexts {
            all = mix(all, u64::from(ctx.alive.get()));
        }
        self.fibers().fold(all, |all, (warp, fiber)| {
            let all = mix(all, (warp as u64) << 1 | u64::from(fiber.waits));
            mix(all, fiber.fiber.fingerprint(fiber.parked))
        })
    }

    /// Whether all threads have exited.
    pub fn is_done(&self) -> bool {
        self.fibers().next().is_none()
    }

    /// Whether every fiber waits or has polled memory in one of its last turns; any other fiber makes progress by
    /// itself.
    pub fn only_waits(&self) -> bool {
        self.fibers().all(|(_, s)| s.waits || s.polls != 0 && s.quiet < QUIET)
    }

    /// `%ctaid`
    pub fn index(&self) -> [u32; 3] {
        self.contexts.first().map_or([0; 3], |c| c.cta.get())
    }

    /// Returns whether any thread has arrived at the cluster's barrier, and whether all that have not exited have.
    pub fn cluster_arrivals(&self) -> (bool, bool) {
        self.host.barriers.borrow().cluster_arrivals(self.live())
    }

    /// Releases the threads that wait at the cluster's barrier.
    pub fn open_cluster_barrier(&self) {
        self.host.barriers.borrow_mut().open_cluster_barrier();
    }

    /// All groups of lanes that wait at barriers, in warp operations or by polling memory.
    pub fn waiters(&self) -> Vec<Waiter> {
        let mut waiters = self.host.barriers.borrow().waiters();
        for warp in 0..self.contexts.len() {
            let lanes = self.host.waiters(warp as u32).into_iter();
            waiters.extend(lanes.map(|(lanes, site, what)| (warp, lanes, site, what)));
        }
        for warp in 0..self.warps.len() {
            let waiting = waiters.iter().filter(|w| w.0 == warp).fold(0, |all, w| all | w.1);
            let pollers = self.pollers(warp, self.contexts[warp].alive.get() & !waiting);
            waiters.extend(pollers);
        }
        waiters
    }

    /// The groups of some lanes of a warp that poll, each at the site where it has done so last.
    fn pollers(&self, warp: usize, lanes: u32) -> Vec<Waiter> {
        let mut groups: Vec<Waiter> = Vec::new();
        for lane in (0..32).filter(|lane| lanes >> lane & 1 == 1) {
            let fiber = self.warps[warp].fibers[self.fiber_of(warp, lane)].as_ref().filter(|f| !f.waits);
            let polled = self.contexts[warp].polled[lane as usize].get() as usize;
            let Some(site) = fiber.and_then(|_| polled.checked_sub(1)) else { continue };
            match groups.iter_mut().find(|g| g.2 == site) {
                Some(group) => group.1 |= 1 << lane,
                None => groups.push((warp, 1 << lane, site, self.polling_at(site).to_owned())),
            }
        }
        groups
    }

    /// What lanes do that poll at a site.
    fn polling_at(&self, site: usize) -> &'static str {
        match self.host.code.compiled.sites[site].kind {
            SiteKind::Effect { .. } => "wait for free columns of tensor memory",
            _ => "poll memory",
        }
    }

    /// The lanes that wait for the rest of a warp at one instruction, those of them with the lowest lane.
    fn held(&self, warp: usize) -> Option<HeldLanes> {
        let of = |(fiber, f): (usize, &Option<Fiber<'a>>)| {
            let f = f.as_ref().filter(|f| f.held != 0)?;
            Some(HeldLanes { warp, fiber, site: f.held as usize - 1, lanes: f.held_lanes })
        };
        self.warps[warp].fibers.iter().enumerate().filter_map(of).min_by_key(|h| h.lanes.trailing_zeros())
    }

    /// Whether all lanes of a warp wait for others of it, so that no other thread can release them.
    fn only_waits_within(&self, warp: usize) -> bool {
        let Warp { fibers, events } = &self.warps[warp];
        let barriers = self.host.barriers.borrow();
        !barriers.has_waiting(warp)
            && !barriers.has_released(warp)
            && fibers.iter().flatten().all(|f| f.waits && f.seen == *events)
    }

    /// The fault of lanes that wait for the rest of their warp, which does not come, if there are any.
    pub fn abandoned(&mut self) -> Option<Stop> {
        let held = (0..self.warps.len()).find_map(|warp| self.held(warp))?;
        Some(self.incomplete(held))
    }

    /// The fault of lanes whose warp does not come.
    fn incomplete(&mut self, held: HeldLanes) -> Stop {
        let HeldLanes { warp, fiber, site, lanes } = held;
        let place = &self.host.code.compiled.sites[site];
        let func = self.host.grid.image.ir.func(FuncId(place.func));
        let what = incomplete(func.variant(&func.insts[place.inst as usize]), !lanes);
        let kind = FaultKind::Barrier(what);
        let stop = self.host.fault_at(&self.contexts[warp], site, lanes.trailing_zeros() & 31, kind, Vec::new());
        self.stop_at(warp, fiber, stop)
    }

    /// Stops the launch where a suspended fiber is; gives the stop with the fault's call stack.
    fn stop_at(&mut self, warp: usize, fiber: usize, stop: Stop) -> Stop {
        self.host.stop(stop);
        self.resume_stopped(warp, fiber);
        self.unwind(warp, fiber)
    }

    /// The fiber that a lane of a warp is on: the last of the calls that it has not returned from.
    fn fiber_of(&self, warp: usize, lane: u32) -> usize {
        let holds = |f: &Fiber<'a>| f.left >> lane & 1 == 1;
        let fibers = &self.warps[warp].fibers;
        let calls = |s: usize| fibers.iter().flatten().any(|f| holds(f) && f.caller.is_some_and(|c| c.0 == s));
        let at = |s: &usize| fibers[*s].as_ref().is_some_and(holds) && !calls(*s);
        (0..fibers.len()).find(at).unwrap_or(0)
    }

    /// Lets a suspended fiber end after a stop; the functions on its stack add themselves to the fault's call stack.
    fn resume_stopped(&mut self, warp: usize, s: usize) {
        if let Some(fiber) = &mut self.warps[warp].fibers[s] {
            fiber.enter(&self.contexts[warp]);
            fiber.fiber.resume();
        }
    }

    /// What a waiter waits for, and where, for a note of a fault.
    pub fn describe(&self, (.., site, what): &Waiter) -> String {
        format!("{what}{}", self.host.position(*site))
    }

    /// The fault `kind` at the place of a waiter.
    pub fn fault_of(&mut self, (warp, _, site, _): &Waiter, lanes: u32, kind: FaultKind, notes: Vec<String>) -> Stop {
        let lane = lanes.trailing_zeros() & 31;
        let stop = self.host.fault_at(&self.contexts[*warp], *site, lane, kind, notes);
        self.stop_at(*warp, self.fiber_of(*warp, lane), stop)
    }
}

fn mix(h: u64, word: u64) -> u64 {
    (h ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}

impl Drop for SimdCta<'_> {
    fn drop(&mut self) {
        let fibers = self.warps.drain(..).flat_map(|w| w.fibers).flatten();
        let stacks = self.stacks.drain(..).chain(fibers.filter_map(|s| s.fiber.into_stack()));
        self.host.code.stacks.put(stacks);
    }
}
