//! Ranges of CTAs in one call of generated code.

use crate::{
    Shaped,
    barriers::Crowd,
    ctx::{WarpCtx, status},
    enter,
    host::Host,
    thunk,
    windows::Windows,
};
use margay_exec::{Batch, Grid, Meter, Stop};
use std::{ops::Range, sync::Arc};

/// Host stack that calls of device functions may use, in bytes: what every thread has, and what kernels that recurse are given.
const HOST_STACK: [usize; 2] = [1 << 20, 256 << 20];

/// A thread of the host that runs CTAs.
pub struct Worker<'a> {
    host: Box<Host<'a>>,
    ctx: Box<WarpCtx>,
    windows: Option<Windows>,
    code: Arc<Shaped>,
}

impl<'a> Worker<'a> {
    /// A worker for a launch.
    pub fn new(code: Arc<Shaped>, grid: &'a Grid<'a>, meter: &'a dyn Meter) -> Result<Worker<'a>, Stop> {
        let compiled = code.compiled.clone();
        let mut windows = code.pool.take(&compiled, grid)?;
        let mut ctx = Box::new(windows.context(&compiled, grid, 0));
        let both = [windows.shared.clone(), windows.local.clone()];
        let host = Box::new(Host::new(grid, compiled, both, Some(meter), Crowd::default()));
        ctx.host = std::ptr::from_ref::<Host<'_>>(&host).expose_provenance() as u64;
        ctx.helpers = thunk::table().as_ptr().expose_provenance() as u64;
        Ok(Worker { host, ctx, windows: Some(windows), code })
    }

    fn go(&mut self, stack: usize) -> Result<(), Stop> {
        self.ctx.stack_end = enter::stack_pointer() - stack as u64;
        match enter::enter(&self.host.compiled, &mut self.ctx) {
            status::DONE => Ok(()),
            _ => Err(self.host.reason()),
        }
    }
}

impl Batch for Worker<'_> {
    fn run(&mut self, ctas: Range<u64>) -> Result<(), Stop> {
        (self.ctx.first, self.ctx.end) = (ctas.start, ctas.end);
        if self.host.compiled.recursive {
            return stacker::grow(HOST_STACK[1] + (1 << 20), || self.go(HOST_STACK[1]));
        }
        self.go(HOST_STACK[0])
    }
}

impl Drop for Worker<'_> {
    fn drop(&mut self) {
        if let Some(windows) = self.windows.take() {
            self.code.pool.give(windows);
        }
    }
}
