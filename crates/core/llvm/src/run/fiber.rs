//! Control flows of a warp. It begins with one. A call in which lanes may wait for others of their warp that do not take part, or
//! from which they come back at different times, is another one with a stack of its own: the caller goes on with its other
//! lanes, and lanes that come back leave the call one group after the other.

use crate::{
    ctx::WarpCtx,
    run::enter::{Call, Context, Coroutine, Stack},
};

/// Fibers that a warp may have at a time.
pub const MOST: usize = 1 << 11;

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
pub struct Fiber<'a> {
    pub fiber: Coroutine<'a>,
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

impl<'a> Fiber<'a> {
    fn new(fiber: Coroutine<'a>, stack_end: u64) -> Fiber<'a> {
        let (polls, polled) = (0, 0);
        Fiber { fiber, caller: None, left: 0, waits: false, seen: 0, parked: 0, polls, polled, yielder: 0, stack_end }
    }

    /// A warp from its beginning; `reserve` bytes of the stack are for helpers.
    pub fn warp(stack: Stack, reserve: u64, context: &Context<'a>) -> Fiber<'a> {
        let end = stack.end() + reserve;
        Fiber::new(Coroutine::new(stack, context), end)
    }

    /// A call that another fiber makes.
    pub fn call(stack: Stack, reserve: u64, context: &Context<'a>, caller: usize, call: Call) -> Fiber<'a> {
        let end = stack.end() + reserve;
        let fiber = Fiber::new(Coroutine::call(stack, context, call), end);
        Fiber { caller: Some((caller, call.site)), left: call.lanes, ..fiber }
    }

    /// Its turn begins: the warp's context becomes its own.
    pub fn enter(&self, ctx: &WarpCtx) {
        ctx.yielder.set(self.yielder);
        ctx.stack_end.set(self.stack_end);
        ctx.waits.set(0);
        ctx.parked.set(self.parked);
        ctx.polls.set(self.polls);
        ctx.polled.set(self.polled);
    }

    /// Its turn is over.
    pub fn leave(&mut self, ctx: &WarpCtx) {
        (self.yielder, self.waits, self.parked) = (ctx.yielder.get(), ctx.waits.get() != 0, ctx.parked.get());
        (self.polls, self.polled) = (ctx.polls.get(), ctx.polled.get());
    }
}
