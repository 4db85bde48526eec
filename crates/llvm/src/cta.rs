//! A CTA whose warps wait for each other: each has a stack of its own, and they take turns.

use crate::{
    barriers::Crowd,
    ctx::{WarpCtx, status},
    emit::SiteKind,
    enter::{Fiber, Stack},
    host::Host,
    thunk,
    tier::Tier,
    watch::Watch,
    windows::Windows,
};
use margay_exec::{COUNTS, Cta, Exhausted, Fault, FaultKind, Grid, Progress, Stop, mem};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Bytes of a warp's stack beside the frames of the kernel's functions, of one whose device functions recurse, and of what is kept
/// free for helpers. Pages that nobody touches cost nothing.
const STACK: [usize; 2] = [2 << 20, 15 << 20];
const RESERVE: u64 = 128 << 10;
/// Time after which another CTA gets its turn.
const SLICE: Duration = Duration::from_millis(5);

/// Stacks that nobody uses at the moment.
#[derive(Default)]
pub struct Stacks(Mutex<Vec<Stack>>);

impl Stacks {
    /// One that has a size at least.
    fn take(&self, size: usize) -> Option<Stack> {
        let mut stacks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        stacks.pop().filter(|s| s.size() >= size)
    }
}

/// A CTA in flight.
pub struct SimdCta<'a> {
    // Fibers go first: they use the rest.
    fibers: Vec<Option<Fiber>>,
    /// One a warp; never moved, for fibers hold their addresses.
    contexts: Vec<WarpCtx>,
    host: Box<Host<'a>>,
    watch: Watch,
    windows: Option<Windows>,
    counts: Box<[u64; COUNTS]>,
    tier: Arc<Tier>,
    stacks: &'a Stacks,
}

impl<'a> SimdCta<'a> {
    /// Begins a CTA.
    pub fn new(tier: Arc<Tier>, grid: &'a Grid<'a>, stacks: &'a Stacks, cta: [u32; 3]) -> Result<SimdCta<'a>, Stop> {
        let code = tier.code();
        let compiled = &code.compiled;
        let mut windows = code.pool.take(compiled, grid)?;
        let shared = windows.shared.clone();
        mem::fill(&shared.block, shared.block.base(), &[0], shared.block.len());
        let warps = grid.launch.block.iter().product::<u32>().div_ceil(32);
        let both = [shared, windows.local.clone()];
        let host = Box::new(Host::new(grid, code.clone(), both, None, Crowd::new(grid.launch.block)));
        let address = std::ptr::from_ref::<Host<'_>>(&host).expose_provenance() as u64;
        let mut this = SimdCta {
            fibers: Vec::new(),
            contexts: Vec::new(),
            host,
            watch: Watch::default(),
            windows: None,
            counts: Box::new([0; COUNTS]),
            tier,
            stacks,
        };
        for warp in 0..warps {
            let mut ctx = windows.context(compiled, grid, warp);
            (ctx.host, ctx.cta) = (address, cta);
            ctx.counts = this.counts.as_mut_ptr().expose_provenance() as u64;
            ctx.helpers = thunk::table().as_ptr().expose_provenance() as u64;
            this.contexts.push(ctx);
        }
        for ctx in &mut this.contexts {
            let size = (STACK[usize::from(compiled.recursive)] + compiled.frames).next_power_of_two();
            let stack = match stacks.take(size) {
                Some(stack) => stack,
                None => Stack::new(size)
                    .map_err(|e| Stop::Exhausted(Exhausted(format!("the host has no stack for a warp: {e}"))))?,
            };
            ctx.stack_end = stack.end() + RESERVE;
            this.fibers.push(Some(Fiber::new(stack, compiled, ctx)));
        }
        this.windows = Some(windows);
        Ok(this)
    }

    fn live(&self) -> Vec<u32> {
        let lanes = |(f, c): (&Option<Fiber>, &WarpCtx)| if f.is_some() { c.alive } else { 0 };
        self.fibers.iter().zip(&self.contexts).map(lanes).collect()
    }

    /// Lets every warp run until it waits or lets others go on; whether any could run. Notes when something has come about.
    fn round(&mut self) -> Result<bool, Stop> {
        let mut ran = false;
        let effects = self.host.effects();
        for warp in 0..self.fibers.len() {
            let waits = self.contexts[warp].waits != 0;
            let Some(fiber) = &mut self.fibers[warp] else { continue };
            if waits {
                if !self.host.crowd.borrow().can_go_on(warp) {
                    continue;
                }
                self.watch.news();
            }
            ran = true;
            match fiber.resume() {
                None => {}
                Some(status::DONE) => {
                    self.watch.news();
                    let stack = self.fibers[warp].take().map(Fiber::into_stack);
                    self.stacks.0.lock().unwrap_or_else(PoisonError::into_inner).extend(stack);
                }
                Some(_) => return Err(self.host.reason()),
            }
            let live = self.live();
            self.host.crowd.borrow_mut().settle(&live);
        }
        if effects != self.host.effects() {
            self.watch.news();
        }
        Ok(ran)
    }

    /// A number for all that the CTA can change but global memory.
    fn fingerprint(&self) -> u64 {
        let shared = &self.host.shared.block;
        let word = |i: u64| mem::load::<u64>(shared, shared.base() + 8 * i).unwrap_or(0);
        let mut all = (0..shared.len() as u64 / 8).map(word).fold(0, mix);
        for (fiber, ctx) in self.fibers.iter().zip(&self.contexts) {
            all = mix(all, u64::from(ctx.alive) << 32 | u64::from(ctx.waits));
            all = mix(all, fiber.as_ref().map_or(0, |f| f.fingerprint(ctx.parked)));
        }
        all
    }

    /// Everybody waits: who, and where.
    fn deadlock(&self) -> Stop {
        let cta = self.contexts.first().map_or([0; 3], |c| c.cta);
        let mut waiters = self.host.crowd.borrow().waiters();
        let polls = |(warp, c): (usize, &WarpCtx)| {
            let runs = self.fibers[warp].is_some() && c.waits == 0;
            let site = (c.polls as usize).checked_sub(1).filter(|_| runs)?;
            let what = match self.host.code.compiled.sites[site].kind {
                SiteKind::Effect { .. } => "wait for columns of tensor memory that are free",
                _ => "poll memory",
            };
            Some((warp, c.polled & c.alive, site, what.to_owned()))
        };
        waiters.extend(self.contexts.iter().enumerate().filter_map(polls));
        for warp in 0..self.contexts.len() {
            let lanes = self.host.waiters(warp as u32).into_iter();
            waiters.extend(lanes.map(|(lanes, site, what)| (warp, lanes, site, what)));
        }
        let [x, y, z] = cta;
        let note = |(warp, lanes, site, what): &(usize, u32, usize, String)| {
            let place = self.host.position(*site);
            format!("CTA ({x}, {y}, {z}), warp {warp}, lanes {lanes:#010x}: {what}{place}")
        };
        let mut notes: Vec<String> = waiters.iter().map(note).collect();
        let kind = FaultKind::Deadlock(format!("all {} groups of threads wait for others", notes.len()));
        notes.truncate(64);
        match waiters.first() {
            Some((warp, lanes, site, _)) => {
                self.host.fault_at(&self.contexts[*warp], *site, lanes.trailing_zeros() & 31, kind, notes)
            }
            None => Stop::Fault(Box::new(Fault { kind, thread: [0; 3], cta, at: None, stack: Vec::new(), notes })),
        }
    }
}

fn mix(h: u64, word: u64) -> u64 {
    (h ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}

impl Cta for SimdCta<'_> {
    fn stuck(&self) -> Stop {
        self.deadlock()
    }

    fn run(&mut self, fuel: u64) -> Result<Progress, Stop> {
        let start = Instant::now();
        let result = self.rounds(fuel, start);
        self.tier.ran(start.elapsed());
        result
    }
}

impl SimdCta<'_> {
    fn rounds(&mut self, fuel: u64, start: Instant) -> Result<Progress, Stop> {
        // A round is at least one loop's patience of every warp.
        for _ in 0..=fuel / 1024 {
            if !self.round()? {
                return if self.fibers.iter().all(Option::is_none) { Ok(Progress::Done) } else { Err(self.deadlock()) };
            }
            if self.watch.is_due() {
                let state = self.fingerprint();
                if self.watch.recurs(state) {
                    return Ok(Progress::Waiting(true));
                }
            }
            if start.elapsed() > SLICE {
                break;
            }
        }
        // Time also goes by while the host runs somebody else: a CTA that waits has not got on for that.
        Ok(if self.watch.waits() { Progress::Waiting(true) } else { Progress::More })
    }
}

impl Drop for SimdCta<'_> {
    fn drop(&mut self) {
        let stacks = self.fibers.iter_mut().filter_map(|f| f.take().map(Fiber::into_stack));
        self.stacks.0.lock().unwrap_or_else(PoisonError::into_inner).extend(stacks);
        if let Some(counts) = self.host.grid.counts {
            counts.add_all(&self.counts);
        }
        if let Some(windows) = self.windows.take() {
            self.host.give(windows);
        }
    }
}
