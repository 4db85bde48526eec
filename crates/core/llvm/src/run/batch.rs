//! Ranges of CTAs in one call of generated code.

use crate::{
    code::compile::Frames,
    code::tier::{Code, Tier},
    ctx::{WarpCtx, status},
    run::barrier_state::BarrierState,
    run::enter,
    run::host::Host,
    run::thunk,
    run::windows::Windows,
};
use margay_exec::{Batch, COUNTS, Grid, Meter, Stop};
use std::{ops::Range, sync::Arc, time::Instant};

/// Host stack that calls of device functions may use beside their frames, in bytes: in general, and where they recurse.
const HOST_STACK: [usize; 2] = [256 << 10, 256 << 20];
/// What helpers may use on top of that.
const HELPERS_STACK: usize = 256 << 10;

/// A thread of the host that runs CTAs.
pub struct Worker<'a> {
    tier: Arc<Tier>,
    grid: &'a Grid<'a>,
    meter: &'a dyn Meter,
    desk: Desk<'a>,
    /// Better code may come while the worker works.
    hopes: bool,
}

/// What a worker needs to run one version of the code.
struct Desk<'a> {
    host: Box<Host<'a>>,
    ctx: Box<WarpCtx>,
    windows: Option<Windows>,
    counts: Box<[u64; COUNTS]>,
    code: Arc<Code>,
}

impl<'a> Desk<'a> {
    fn new(code: Arc<Code>, grid: &'a Grid<'a>, meter: &'a dyn Meter) -> Result<Desk<'a>, Stop> {
        let mut windows = code.pool.take(&code.compiled, grid)?;
        let mut ctx = Box::new(windows.context(&code.compiled, grid, 0));
        let both = [windows.shared.clone(), windows.local.clone()];
        let host = Box::new(Host::new(grid, code.clone(), both, Some(meter), BarrierState::default()));
        ctx.host = std::ptr::from_ref::<Host<'_>>(&host).expose_provenance() as u64;
        ctx.helpers = thunk::table().as_ptr().expose_provenance() as u64;
        let mut counts = Box::new([0; COUNTS]);
        ctx.counts = counts.as_mut_ptr().expose_provenance() as u64;
        Ok(Desk { host, ctx, counts, windows: Some(windows), code })
    }

    fn go(&mut self, stack: usize) -> Result<(), Stop> {
        self.ctx.stack_end = enter::stack_pointer() - stack as u64;
        match enter::enter(&self.code.compiled, &mut self.ctx) {
            status::DONE => Ok(()),
            _ => Err(self.host.reason()),
        }
    }

    fn run(&mut self, ctas: Range<u64>) -> Result<(), Stop> {
        (self.ctx.first, self.ctx.end) = (ctas.start, ctas.end);
        let compiled = &self.code.compiled;
        let Frames { sum, largest } = compiled.frames;
        let stack = HOST_STACK[usize::from(compiled.recursive)] + sum;
        // A function is called if its caller begins above the end: both may lie below.
        let beyond = 2 * largest + HELPERS_STACK;
        stacker::maybe_grow(stack + beyond, stack + beyond + HELPERS_STACK, || self.go(stack))
    }
}

impl Drop for Desk<'_> {
    fn drop(&mut self) {
        if let Some(counts) = self.host.grid.counts {
            counts.add_all(&self.counts);
        }
        if let Some(windows) = self.windows.take() {
            self.host.give(windows);
        }
    }
}

impl<'a> Worker<'a> {
    /// A worker for a launch.
    pub fn new(tier: Arc<Tier>, grid: &'a Grid<'a>, meter: &'a dyn Meter) -> Result<Worker<'a>, Stop> {
        let (hopes, desk) = (tier.may_improve(), Desk::new(tier.code(), grid, meter)?);
        Ok(Worker { tier, grid, meter, desk, hopes })
    }
}

impl Batch for Worker<'_> {
    fn run(&mut self, ctas: Range<u64>) -> Result<(), Stop> {
        if !self.hopes {
            return self.desk.run(ctas);
        }
        let best = self.tier.code();
        if !Arc::ptr_eq(&best, &self.desk.code) {
            self.desk = Desk::new(best, self.grid, self.meter)?;
            self.hopes = false;
        }
        let start = Instant::now();
        let result = self.desk.run(ctas);
        self.tier.ran(start.elapsed());
        result
    }
}
