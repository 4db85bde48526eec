//! Calling compiled kernels, on this stack or on another one. One of the three files of this crate that may use `unsafe`.
#![allow(unsafe_code)]

use crate::{compile::Compiled, ctx::WarpCtx};
use corosensei::{
    Coroutine, CoroutineResult, Yielder,
    stack::{DefaultStack, Stack as _},
};

type Entry = extern "C" fn(*mut WarpCtx) -> u32;

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
    std::ptr::from_ref(&here) as u64
}

/// A stack for a warp, with a guard page.
pub struct Stack(DefaultStack);

impl Stack {
    /// Of so many bytes.
    pub fn new(bytes: usize) -> std::io::Result<Stack> {
        DefaultStack::new(bytes).map(Stack)
    }

    /// Its lowest address.
    pub fn end(&self) -> u64 {
        self.0.limit().get() as u64
    }
}

/// A warp on a stack of its own.
pub struct Fiber(Coroutine<(), (), u32, DefaultStack>);

impl Fiber {
    /// A warp that has not begun. `ctx` and `compiled` must outlive it at their addresses.
    pub fn new(stack: Stack, compiled: &Compiled, ctx: &mut WarpCtx) -> Fiber {
        let (code, ctx) = (entry(compiled), std::ptr::from_mut(ctx).expose_provenance());
        Fiber(Coroutine::with_stack(stack.0, move |yielder: &Yielder<(), ()>, ()| {
            let ctx = std::ptr::with_exposed_provenance_mut::<WarpCtx>(ctx);
            // SAFETY: the owner keeps the context alive and lends it to this warp while it runs.
            unsafe { (*ctx).yielder = std::ptr::from_ref(yielder).expose_provenance() as u64 };
            code(ctx)
        }))
    }

    /// Lets it run; its status when it has ended.
    pub fn resume(&mut self) -> Option<u32> {
        match self.0.resume(()) {
            CoroutineResult::Yield(()) => None,
            CoroutineResult::Return(status) => Some(status),
        }
    }

    /// Its stack, for another warp. A warp that has not ended is forgotten where it stands.
    pub fn into_stack(mut self) -> Stack {
        if !self.0.done() {
            // SAFETY: what is on the stack are frames of generated code and of helpers that own nothing while they wait.
            unsafe { self.0.force_reset() };
        }
        Stack(self.0.into_stack())
    }
}

/// Gives control back to whoever resumed the warp.
pub fn suspend(ctx: *mut WarpCtx) {
    // SAFETY: a warp that has a stack has set `yielder` in `Fiber::new`, and only its own code comes here.
    unsafe { (*std::ptr::with_exposed_provenance::<Yielder<(), ()>>((*ctx).yielder as usize)).suspend(()) }
}
