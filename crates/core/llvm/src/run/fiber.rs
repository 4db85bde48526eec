//! Control flows of a warp. It begins with one. A call in which lanes may wait for others of their warp that do not take part, or
//! from which they come back at different times, is another one with a stack of its own: the caller goes on with its other
//! lanes, and lanes that come back leave the call one group after the other.

use crate::{
    code::compile::Compiled,
    ctx::WarpCtx,
    run::enter::{Coroutine, Stack},
};

/// Fibers that a warp may have at a time.
pub const MOST: usize = 1 << 11;

/// A call that begins: the function's entry and its arguments, and the site.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    pub entry: usize,
    pub lanes: u32,
    pub frame: u32,
    pub args: usize,
    pub rets: usize,
    pub site: usize,
}

/// What the fibers of a CTA and their scheduler tell each other.
#[derive(Default)]
pub struct PendingCalls {
    /// The fiber that runs, by its number in its warp.
    pub running: usize,
    /// Calls that it wants to begin.
    pub calls: Vec<Call>,
    /// Lanes that have come to the end of its function.
    pub finished: u32,
    /// Lanes that came back from calls: warp, fiber that called, lanes.
    returned: Vec<(usize, usize, u32)>,
    /// How often lanes went on that had waited.
    pub woken: u64,
}

impl PendingCalls {
    /// Lanes come back to a fiber.
    pub fn give_back(&mut self, warp: usize, fiber: usize, lanes: u32) {
        if lanes != 0 {
            self.returned.push((warp, fiber, lanes));
        }
    }

    /// Lanes that came back to the fiber that runs.
    pub fn take_returned(&mut self, warp: usize) -> Option<u32> {
        let found = self.returned.iter().position(|r| (r.0, r.1) == (warp, self.running))?;
        Some(self.returned.swap_remove(found).2)
    }
}

/// One control flow.
pub struct Fiber {
    pub fiber: Coroutine,
    /// The fiber that called and the site where it did; none for the kernel itself.
    pub caller: Option<(usize, usize)>,
    /// Lanes that have not come back yet.
    pub left: u32,
    /// It waits until lanes are released.
    pub waits: bool,
    /// The warp's count of events when it ran last.
    pub seen: u64,
    /// As in [`WarpCtx`], while others run.
    pub parked: u64,
    pub polls: u32,
    pub polled: u32,
    yielder: u64,
    stack_end: u64,
}

impl Fiber {
    fn new(fiber: Coroutine, stack_end: u64) -> Fiber {
        let (polls, polled) = (0, 0);
        Fiber { fiber, caller: None, left: 0, waits: false, seen: 0, parked: 0, polls, polled, yielder: 0, stack_end }
    }

    /// A warp from its beginning; `reserve` bytes of the stack are for helpers.
    pub fn warp(stack: Stack, reserve: u64, compiled: &Compiled, ctx: &mut WarpCtx) -> Fiber {
        let end = stack.end() + reserve;
        Fiber::new(Coroutine::new(stack, compiled, ctx), end)
    }

    /// A call that another fiber makes.
    pub fn call(stack: Stack, reserve: u64, ctx: &mut WarpCtx, caller: usize, call: Call) -> Fiber {
        let end = stack.end() + reserve;
        let fiber = Fiber::new(Coroutine::call(stack, ctx, call), end);
        Fiber { caller: Some((caller, call.site)), left: call.lanes, ..fiber }
    }

    /// Its turn begins: the warp's context becomes its own. (No borrow of the context lasts while generated code runs.)
    pub fn enter(&self, ctx: &mut WarpCtx) {
        (ctx.yielder, ctx.stack_end, ctx.waits, ctx.parked) = (self.yielder, self.stack_end, 0, self.parked);
        (ctx.polls, ctx.polled) = (self.polls, self.polled);
    }

    /// Its turn is over.
    pub fn leave(&mut self, ctx: &WarpCtx) {
        (self.yielder, self.waits, self.parked) = (ctx.yielder, ctx.waits != 0, ctx.parked);
        (self.polls, self.polled) = (ctx.polls, ctx.polled);
    }
}
