//! The fibers of a warp. A warp starts with one. A call in which lanes may wait for lanes of their warp that do not
//! participate, or from which lanes return at different times, runs on another fiber: the caller continues with its other
//! lanes, and lanes leave the callee group by group.

use crate::{
    ctx::WarpCtx,
    run::enter::{Call, Context, Coroutine, Stack},
};

/// The largest number of fibers per warp.
pub const LIMIT: usize = 1 << 11;

/// Messages between the running fibers of a CTA and their scheduler.
#[derive(Default)]
pub struct PendingCalls {
    /// Index in its warp of the fiber that runs.
    pub running: usize,
    /// Calls that it has requested.
    pub calls: Vec<Call>,
    /// Lanes that have returned from its function.
    pub finished: u32,
    /// Lanes that returned from calls and were not resumed yet: warp, calling fiber, lanes.
    returned: Vec<(usize, usize, u32)>,
    /// How often waiting lanes were resumed.
    pub woken: u64,
    /// It needs to know whether the phase of the cluster's barrier has completed.
    pub asks_for_phase: bool,
}

impl PendingCalls {
    /// Notes that lanes have returned to a fiber.
    pub fn return_lanes(&mut self, warp: usize, fiber: usize, lanes: u32) {
        if lanes != 0 {
            self.returned.push((warp, fiber, lanes));
        }
    }

    /// Takes lanes that have returned to the running fiber.
    pub fn take_returned(&mut self, warp: usize) -> Option<u32> {
        let found = self.returned.iter().position(|r| (r.0, r.1) == (warp, self.running))?;
        Some(self.returned.swap_remove(found).2)
    }
}

/// A fiber of a warp.
pub struct Fiber<'a> {
    pub fiber: Coroutine<'a>,
    /// The calling fiber and the site of the call; `None` for the kernel itself.
    pub caller: Option<(usize, usize)>,
    /// Lanes that have not returned yet.
    pub left: u32,
    /// Whether it is parked until lanes are released.
    pub waits: bool,
    /// The warp's count of events when it ran last.
    pub seen: u64,
    /// The fields of that name in [`WarpCtx`], while another fiber runs.
    pub parked: u64,
    /// Turns since it polled memory.
    pub quiet: u32,
    /// The site where it did last, or 0.
    pub polls: u32,
    /// Lanes that wait for the rest of their warp: where the lowest of them is, or 0, and those there.
    pub held: u32,
    pub held_lanes: u32,
    yielder: u64,
    stack_end: u64,
}

impl<'a> Fiber<'a> {
    fn new(fiber: Coroutine<'a>, stack_end: u64) -> Fiber<'a> {
        Fiber {
            fiber,
            caller: None,
            left: 0,
            waits: false,
            seen: 0,
            parked: 0,
            quiet: 0,
            polls: 0,
            held: 0,
            held_lanes: 0,
            yielder: 0,
            stack_end,
        }
    }

    /// A warp at the kernel's entry; `reserve` bytes of the stack are kept for helpers.
    pub fn warp(stack: Stack, reserve: u64, context: &Context<'a>) -> Fiber<'a> {
        let end = stack.end() + reserve;
        Fiber::new(Coroutine::new(stack, context), end)
    }

    /// A call requested by the fiber `caller`.
    pub fn call(stack: Stack, reserve: u64, context: &Context<'a>, caller: usize, call: Call) -> Fiber<'a> {
        let end = stack.end() + reserve;
        let fiber = Fiber::new(Coroutine::call(stack, context, call), end);
        Fiber { caller: Some((caller, call.site)), left: call.lanes, ..fiber }
    }

    /// Loads the fiber's registers into the warp's context, before it is resumed.
    pub fn enter(&self, ctx: &WarpCtx) {
        ctx.yielder.set(self.yielder);
        ctx.stack_end.set(self.stack_end);
        ctx.waits.set(0);
        ctx.parked.set(self.parked);
        ctx.polls.set(0);
        ctx.changed.set(0);
        ctx.held.set(0);
        ctx.held_lanes.set(0);
        ctx.gathered.set(0);
    }

    /// Saves the fiber's registers from the warp's context, after it was suspended.
    pub fn leave(&mut self, ctx: &WarpCtx) {
        (self.yielder, self.waits, self.parked) = (ctx.yielder.get(), ctx.waits.get() != 0, ctx.parked.get());
        (self.held, self.held_lanes) = (ctx.held.get(), ctx.held_lanes.get());
        self.quiet = self.quiet.saturating_add(1);
        if ctx.polls.get() != 0 {
            (self.quiet, self.polls) = (0, ctx.polls.get());
        }
    }
}
