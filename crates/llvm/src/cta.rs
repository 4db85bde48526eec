//! A CTA whose warps wait for each other: each has a stack of its own, and they take turns.

use crate::{
    barriers::Crowd,
    ctx::{WarpCtx, status},
    enter::{Fiber, Stack},
    host::Host,
    thunk,
    tier::{Code, Tier},
    windows::Windows,
};
use margay_exec::{Cta, Exhausted, Fault, FaultKind, Grid, Progress, Stop, mem};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

/// Bytes of a warp's stack, of one whose device functions recurse, and of what is kept free for helpers. Pages that nobody
/// touches cost nothing; a large kernel's own frame may take more than half a megabyte.
const STACK: [usize; 2] = [4 << 20, 16 << 20];
const RESERVE: u64 = 128 << 10;

/// Stacks that nobody uses at the moment.
#[derive(Default)]
pub struct Stacks(Mutex<Vec<Stack>>);

/// A CTA in flight.
pub struct SimdCta<'a> {
    // Fibers go first: they use the rest.
    fibers: Vec<Option<Fiber>>,
    /// One a warp; never moved, for fibers hold their addresses.
    contexts: Vec<WarpCtx>,
    host: Box<Host<'a>>,
    windows: Option<Windows>,
    code: Arc<Code>,
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
        let mut this =
            SimdCta { fibers: Vec::new(), contexts: Vec::new(), host, windows: None, code: code.clone(), tier, stacks };
        for warp in 0..warps {
            let mut ctx = windows.context(compiled, grid, warp);
            (ctx.host, ctx.cta) = (address, cta);
            ctx.helpers = thunk::table().as_ptr().expose_provenance() as u64;
            this.contexts.push(ctx);
        }
        for ctx in &mut this.contexts {
            let stack = match stacks.0.lock().unwrap_or_else(PoisonError::into_inner).pop() {
                Some(stack) => stack,
                None => Stack::new(STACK[usize::from(compiled.recursive)])
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

    /// Lets every warp run until it waits or lets others go on; whether any could run.
    fn round(&mut self) -> Result<bool, Stop> {
        let mut ran = false;
        for warp in 0..self.fibers.len() {
            let waits = self.contexts[warp].waits != 0;
            let Some(fiber) = &mut self.fibers[warp] else { continue };
            if waits && !self.host.crowd.borrow().can_go_on(warp) {
                continue;
            }
            ran = true;
            match fiber.resume() {
                None => {}
                Some(status::DONE) => {
                    let stack = self.fibers[warp].take().map(Fiber::into_stack);
                    self.stacks.0.lock().unwrap_or_else(PoisonError::into_inner).extend(stack);
                }
                Some(_) => return Err(self.host.reason()),
            }
            let live = self.live();
            self.host.crowd.borrow_mut().settle(&live);
        }
        Ok(ran)
    }

    fn deadlock(&self) -> Stop {
        let cta = self.contexts.first().map_or([0; 3], |c| c.cta);
        let notes = self.host.crowd.borrow().waiters();
        let kind = FaultKind::Deadlock(format!("all {} groups of threads wait for others", notes.len()));
        Stop::Fault(Box::new(Fault { kind, thread: [0; 3], cta, at: None, stack: Vec::new(), notes }))
    }
}

impl Cta for SimdCta<'_> {
    fn run(&mut self, fuel: u64) -> Result<Progress, Stop> {
        let start = Instant::now();
        let result = self.rounds(fuel);
        self.tier.ran(start.elapsed());
        result
    }
}

impl SimdCta<'_> {
    fn rounds(&mut self, fuel: u64) -> Result<Progress, Stop> {
        // A round is at least one loop's patience of every warp.
        for _ in 0..=fuel / 1024 {
            if !self.round()? {
                return if self.fibers.iter().all(Option::is_none) { Ok(Progress::Done) } else { Err(self.deadlock()) };
            }
        }
        Ok(Progress::More)
    }
}

impl Drop for SimdCta<'_> {
    fn drop(&mut self) {
        let stacks = self.fibers.iter_mut().filter_map(|f| f.take().map(Fiber::into_stack));
        self.stacks.0.lock().unwrap_or_else(PoisonError::into_inner).extend(stacks);
        if let Some(windows) = self.windows.take() {
            self.code.pool.give(windows);
        }
    }
}
