//! Ranges of CTAs in one call of generated code.

use crate::{
    code::compile::Frames,
    code::tier::{Code, Tier},
    ctx::status,
    run::enter::Context,
    run::host::Host,
};
use margay_exec::{Batch, Grid, Meter, Stop};
use std::{ops::Range, rc::Rc, sync::Arc, time::Instant};

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
    host: Rc<Host<'a>>,
    context: Context<'a>,
    code: Arc<Code>,
}

impl<'a> Desk<'a> {
    fn new(code: Arc<Code>, grid: &'a Grid<'a>, meter: &'a dyn Meter) -> Result<Desk<'a>, Stop> {
        let windows = code.pool.take(&code.compiled, grid)?;
        let host = Host::of_worker(grid, code.clone(), windows, meter);
        Ok(Desk { context: Context::new(&host, 0), host, code })
    }

    fn go(&self, stack: usize) -> Result<(), Stop> {
        match self.context.enter(stack) {
            status::DONE if !self.host.is_stopped() => Ok(()),
            _ => Err(self.host.reason()),
        }
    }

    fn run(&self, ctas: Range<u64>) -> Result<(), Stop> {
        self.context.first.set(ctas.start);
        self.context.end.set(ctas.end);
        let compiled = &self.code.compiled;
        let Frames { sum, largest } = compiled.frames;
        let stack = HOST_STACK[usize::from(compiled.recursive)] + sum;
        // A function is called if its caller begins above the end: both may lie below.
        let beyond = 2 * largest + HELPERS_STACK;
        stacker::maybe_grow(stack + beyond, stack + beyond + HELPERS_STACK, || self.go(stack))
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
