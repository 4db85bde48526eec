//! Calling compiled kernels, on this stack or on another one. One of the four files of this crate that may use `unsafe`.
#![allow(unsafe_code)]

use crate::{code::compile::Compiled, ctx::WarpCtx, run::fiber::Call};
use corosensei::{
    Coroutine as Switch, CoroutineResult, Yielder,
    stack::{DefaultStack, Stack as _},
};

type Entry = extern "C" fn(*mut WarpCtx) -> u32;
/// With lanes, frame, arguments and results.
type Function = extern "C" fn(*mut WarpCtx, u32, u32, usize, usize) -> u32;

fn entry(compiled: &Compiled) -> Entry {
    // SAFETY: `entry` is the address of a function of this very signature in code that `compiled` keeps mapped.
    unsafe { std::mem::transmute::<usize, Entry>(compiled.entry) }
}

/// Runs generated code to its end; gives the status.
pub fn enter(compiled: &Compiled, ctx: &mut WarpCtx) -> u32 {
    // The code touches only what `ctx` points to, which the caller keeps alive for the call.
    entry(compiled)(ctx)
}

/// An address near the top of the native stack in use.
pub fn stack_pointer() -> u64 {
    let here = 0u8;
    std::ptr::from_ref(std::hint::black_box(&here)).expose_provenance() as u64
}

/// A stack for a warp, with a guard page.
pub struct Stack(DefaultStack);

impl Stack {
    /// Of so many bytes.
    pub fn new(bytes: usize) -> std::io::Result<Stack> {
        DefaultStack::new(bytes).map(Stack)
    }

    /// Its size in bytes.
    pub fn size(&self) -> usize {
        self.0.base().get() - self.0.limit().get()
    }

    /// Its lowest address.
    pub fn end(&self) -> u64 {
        self.0.limit().get() as u64
    }
}

/// A warp on a stack of its own.
pub struct Coroutine {
    coroutine: Switch<(), (), u32, DefaultStack>,
    /// The highest address of the stack.
    base: u64,
}

impl Coroutine {
    /// A warp that has not begun. `ctx` and `compiled` must outlive it at their addresses.
    pub fn new(stack: Stack, compiled: &Compiled, ctx: &mut WarpCtx) -> Coroutine {
        let code = entry(compiled);
        Coroutine::begin(stack, ctx, move |ctx| code(ctx))
    }

    /// A call of a device function that another fiber of the warp wants. What `call` points to is on that one's stack, which
    /// stays where it is until the call is over.
    pub fn call(stack: Stack, ctx: &mut WarpCtx, call: Call) -> Coroutine {
        // SAFETY: generated code took `entry` from its table of functions of this very signature.
        let code = unsafe { std::mem::transmute::<usize, Function>(call.entry) };
        Coroutine::begin(stack, ctx, move |ctx| code(ctx, call.lanes, call.frame, call.args, call.rets))
    }

    fn begin(stack: Stack, ctx: &mut WarpCtx, code: impl FnOnce(*mut WarpCtx) -> u32 + 'static) -> Coroutine {
        let ctx = std::ptr::from_mut(ctx).expose_provenance();
        let base = stack.0.base().get() as u64;
        let coroutine = Switch::with_stack(stack.0, move |yielder: &Yielder<(), ()>, ()| {
            let ctx = std::ptr::with_exposed_provenance_mut::<WarpCtx>(ctx);
            // SAFETY: the owner keeps the context alive and lends it to this warp while it runs.
            unsafe { (*ctx).yielder = std::ptr::from_ref(yielder).expose_provenance() as u64 };
            code(ctx)
        });
        Coroutine { coroutine, base }
    }

    /// A number for everything on the stack of a warp that waits, from `parked` up.
    pub fn fingerprint(&self, parked: u64) -> u64 {
        let words = self.base.saturating_sub(parked) as usize / 8;
        let start = std::ptr::with_exposed_provenance::<u64>(parked as usize & !7);
        // SAFETY: the warp does not run, and its stack is mapped from where it stopped to its base.
        let word = |i| unsafe { start.add(i).read_volatile() };
        (0..words).fold(parked, |h, i| (h ^ word(i)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29))
    }

    /// Lets it run; its status when it has ended.
    pub fn resume(&mut self) -> Option<u32> {
        match self.coroutine.resume(()) {
            CoroutineResult::Yield(()) => None,
            CoroutineResult::Return(status) => Some(status),
        }
    }

    /// Its stack, for another warp. A warp that has not ended is forgotten where it stands.
    pub fn into_stack(mut self) -> Stack {
        if !self.coroutine.done() {
            // SAFETY: what is on the stack are frames of generated code and of helpers that own nothing while they wait.
            unsafe { self.coroutine.force_reset() };
        }
        Stack(self.coroutine.into_stack())
    }
}

/// Gives control back to whoever resumed the warp.
pub fn suspend(ctx: *mut WarpCtx) {
    let parked = stack_pointer();
    // SAFETY: as below; nobody else uses the context while its warp runs.
    unsafe { (*ctx).parked = parked };
    // SAFETY: a warp that has a stack has set `yielder` in `Coroutine::new`, and only its own code comes here.
    unsafe { (*std::ptr::with_exposed_provenance::<Yielder<(), ()>>((*ctx).yielder as usize)).suspend(()) }
}
