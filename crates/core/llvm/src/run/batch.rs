//! Ranges of CTAs in one call of generated code.

use crate::{code::callable::Code, code::compile::Frames, ctx::status, run::enter::Context, run::host::Host};
use margay_exec::{Batch, Grid, Meter, Stop};
use std::{ops::Range, rc::Rc, sync::Arc};

/// Host stack that calls of device functions may use beside their frames, in bytes: in general, and where they recurse.
const HOST_STACK: [usize; 2] = [256 << 10, 256 << 20];
/// What helpers may use on top of that.
const HELPERS_STACK: usize = 256 << 10;

/// A thread of the host that runs CTAs.
pub struct Worker<'a> {
    host: Rc<Host<'a>>,
    context: Context<'a>,
    code: Arc<Code>,
}

impl<'a> Worker<'a> {
    /// A worker for a launch.
    pub fn new(code: Arc<Code>, grid: &'a Grid<'a>, meter: &'a dyn Meter) -> Result<Worker<'a>, Stop> {
        let windows = code.pool.take(&code.compiled, grid)?;
        let host = Host::of_worker(grid, code.clone(), windows, meter);
        Ok(Worker { context: Context::new(&host, 0), host, code })
    }

    fn go(&self, stack: usize) -> Result<(), Stop> {
        match self.context.enter(stack) {
            status::DONE if !self.host.is_stopped() => Ok(()),
            _ => Err(self.host.reason()),
        }
    }
}

impl Batch for Worker<'_> {
    fn run(&mut self, ctas: Range<u64>) -> Result<(), Stop> {
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
