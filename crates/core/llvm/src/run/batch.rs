//! Execution of kernels that loop over CTAs themselves: one call of generated code runs a range of CTAs.

use crate::{
    code::{callable::Code, compile::Frames},
    ctx::status,
    run::{
        enter::{Context, Stack},
        host::Host,
        windows::Windows,
    },
};
use margay_exec::{Batch, CtaWindows, Exhausted, Grid, Meter, Stop};
use std::{ops::Range, rc::Rc, sync::Arc};

/// Native stack in bytes that device functions may use beyond the frames computed: without recursion, and with it.
const HOST_STACK: [usize; 2] = [256 << 10, 256 << 20];
/// Native stack in bytes for helpers, on top of [`HOST_STACK`].
const HELPERS_STACK: usize = 256 << 10;

/// The state with which one host thread runs CTAs of a launch.
pub struct Worker<'a> {
    host: Rc<Host<'a>>,
    context: Context<'a>,
    /// Created when the thread's own stack does not suffice, and kept for all ranges: the host takes long to map one, and while it
    /// does so, other threads of the process wait.
    stack: Option<Stack>,
}

impl<'a> Worker<'a> {
    /// Creates a worker for a launch, with windows from the pool of `code`.
    pub fn new(code: Arc<Code>, grid: &'a Grid<'a>, meter: &'a dyn Meter) -> Result<Worker<'a>, Stop> {
        let windows = code.pool.take(&code.compiled, grid)?;
        Ok(Worker::of(code, grid, meter, windows))
    }

    /// Creates a worker for one CTA whose windows exist already.
    pub fn with_windows(
        code: Arc<Code>,
        grid: &'a Grid<'a>,
        meter: &'a dyn Meter,
        windows: CtaWindows,
    ) -> Result<Worker<'a>, Stop> {
        let windows = Windows::of(&code.compiled, grid, windows, true)?;
        Ok(Worker::of(code, grid, meter, windows))
    }

    fn of(code: Arc<Code>, grid: &'a Grid<'a>, meter: &'a dyn Meter, windows: Box<Windows>) -> Worker<'a> {
        let host = Host::of_worker(grid, code, windows, meter);
        Worker { context: Context::new(&host), host, stack: None }
    }

    /// Runs what the context says with at most `limit` bytes of stack in generated code, and `beyond` for what it calls.
    fn enter(&mut self, limit: usize, beyond: usize) -> Result<u32, Stop> {
        if stacker::remaining_stack().is_some_and(|left| left >= limit + beyond) {
            return Ok(self.context.enter(limit));
        }
        let error = |e| Stop::Exhausted(Exhausted(format!("the host has no stack for device functions: {e}")));
        let stack = match &mut self.stack {
            Some(stack) => stack,
            none => none.insert(Stack::new(limit + beyond + HELPERS_STACK).map_err(error)?),
        };
        Ok(stack.run(|| self.context.enter(limit)))
    }
}

impl Batch for Worker<'_> {
    fn run(&mut self, ctas: Range<u64>) -> Result<(), Stop> {
        self.context.first.set(ctas.start);
        self.context.end.set(ctas.end);
        let compiled = &self.host.code.compiled;
        let Frames { sum, largest } = compiled.frames;
        let stack = HOST_STACK[usize::from(compiled.recursive)] + sum;
        // A call's stack check only asks whether the caller's frame begins above the end: both caller's and callee's
        // frame may lie below.
        let beyond = 2 * largest + HELPERS_STACK;
        let status = self.enter(stack, beyond)?;
        self.host.release_observer(&self.context);
        match status {
            status::DONE if !self.host.is_stopped() => Ok(()),
            _ => Err(self.host.reason()),
        }
    }
}
