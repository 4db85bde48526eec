//! Entry to compiled kernels, on this stack or on a fiber's. One of the five files of this crate that may use `unsafe`.
//!
//! The types guarantee what generated code relies on: a [`Context`] owns, or borrows for its lifetime, everything that
//! its [`WarpCtx`] points to, and a [`Coroutine`] owns its context. That generated code stays within that is up to
//! `emit`.
#![allow(unsafe_code)]

use crate::{code::compile::Compiled, ctx::WarpCtx, run::host::Host};
use corosensei::{
    Coroutine as Switch, CoroutineResult, Yielder,
    stack::{DefaultStack, Stack as _},
};
use std::{ops::Deref, rc::Rc};

type KernelFn = extern "C" fn(*mut WarpCtx) -> u32;
/// A device function: context, lanes, offset of the frame, address of the arguments, address of the results.
type DeviceFn = extern "C" fn(*mut WarpCtx, u32, u32, usize, usize) -> u32;

/// A warp's context together with everything that it points to: windows, code, launch.
#[derive(Clone)]
pub struct Context<'a> {
    /// The contexts of all warps of the CTA, in one allocation.
    all: Rc<[WarpCtx]>,
    index: usize,
    host: Rc<Host<'a>>,
}

impl<'a> Context<'a> {
    /// Creates the context of warp 0, for code that loops over warps itself.
    pub fn new(host: &Rc<Host<'a>>) -> Context<'a> {
        Context { all: Rc::new([Host::context(host, 0)]), index: 0, host: host.clone() }
    }

    /// Creates the contexts of the first `warps` warps of a CTA.
    pub fn of_warps(host: &Rc<Host<'a>>, warps: u32) -> Vec<Context<'a>> {
        let all: Rc<[_]> = (0..warps).map(|warp| Host::context(host, warp)).collect();
        (0..all.len()).map(|index| Context { all: all.clone(), index, host: host.clone() }).collect()
    }

    /// Runs the kernel to its end on the current stack, with at most `stack` bytes of it; returns its status.
    pub fn enter(&self, stack: usize) -> u32 {
        self.stack_end.set(stack_pointer() - stack as u64);
        entry(&self.host.code.compiled)(self.address())
    }

    /// The pointer passed to generated code, which writes only to fields that are cells.
    fn address(&self) -> *mut WarpCtx {
        self.all.as_ptr().wrapping_add(self.index).cast_mut()
    }
}

impl Deref for Context<'_> {
    type Target = WarpCtx;

    fn deref(&self) -> &WarpCtx {
        &self.all[self.index]
    }
}

fn entry(compiled: &Compiled) -> KernelFn {
    // SAFETY: `entry` is the address of a function of this very signature in code that `compiled` keeps mapped.
    unsafe { std::mem::transmute::<usize, KernelFn>(compiled.entry) }
}

/// The current stack pointer, approximately.
fn stack_pointer() -> u64 {
    let here = 0u8;
    std::ptr::from_ref(std::hint::black_box(&here)).expose_provenance() as u64
}

/// A fiber's stack with a guard page.
pub struct Stack(DefaultStack);

impl Stack {
    /// Allocates a stack of `bytes` bytes.
    pub fn new(bytes: usize) -> std::io::Result<Stack> {
        DefaultStack::new(bytes).map(Stack)
    }

    /// Size in bytes.
    pub fn size(&self) -> usize {
        self.0.base().get() - self.0.limit().get()
    }

    /// Calls a function on this stack.
    pub fn run<T>(&mut self, work: impl FnOnce() -> T) -> T {
        corosensei::on_stack(&mut self.0, work)
    }

    /// Lowest address.
    pub fn end(&self) -> u64 {
        self.0.limit().get() as u64
    }
}

/// A call to be started on a fiber of its own.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    entry: usize,
    pub lanes: u32,
    frame: u32,
    args: usize,
    rets: usize,
    pub site: usize,
}

impl Call {
    /// Describes a call that generated code requests.
    ///
    /// # Safety
    /// `entry` is a function of the kernel's code that takes these arguments, and what `args` and `rets` point to stays where it is until
    /// the call is over or has been forgotten: it lies on the stack of a fiber that waits for the call.
    pub unsafe fn new(entry: usize, (lanes, frame): (u32, u32), (args, rets): (usize, usize), site: usize) -> Call {
        Call { entry, lanes, frame, args, rets, site }
    }
}

/// Generated code on a stack of its own: a kernel or a device function.
pub struct Coroutine<'a> {
    /// `None` only after [`Coroutine::into_stack`].
    coroutine: Option<Switch<(), (), u32, DefaultStack>>,
    /// The lowest and the highest address of the stack.
    bounds: (u64, u64),
    /// Keeps alive everything that the code accesses.
    _context: Context<'a>,
}

impl<'a> Coroutine<'a> {
    /// A warp at the kernel's entry.
    pub fn new(stack: Stack, context: &Context<'a>) -> Coroutine<'a> {
        let code = entry(&context.host.code.compiled);
        Coroutine::begin(stack, context, move |ctx| code(ctx))
    }

    /// A device function called by another fiber of the warp.
    pub fn call(stack: Stack, context: &Context<'a>, call: Call) -> Coroutine<'a> {
        // SAFETY: generated code took `entry` from its table of functions of this very signature (`Call::new`).
        let code = unsafe { std::mem::transmute::<usize, DeviceFn>(call.entry) };
        Coroutine::begin(stack, context, move |ctx| code(ctx, call.lanes, call.frame, call.args, call.rets))
    }

    fn begin(stack: Stack, context: &Context<'a>, code: impl FnOnce(*mut WarpCtx) -> u32 + 'static) -> Coroutine<'a> {
        let ctx = context.address().expose_provenance();
        let bounds = (stack.end(), stack.0.base().get() as u64);
        let coroutine = Switch::with_stack(stack.0, move |yielder: &Yielder<(), ()>, ()| {
            let ctx = std::ptr::with_exposed_provenance_mut::<WarpCtx>(ctx);
            // SAFETY: the coroutine keeps the context alive, and code on its stack runs only while it is resumed.
            unsafe { &*ctx }.yielder.set(std::ptr::from_ref(yielder).expose_provenance() as u64);
            code(ctx)
        });
        Coroutine { coroutine: Some(coroutine), bounds, _context: context.clone() }
    }

    /// A hash of the stack of a parked fiber, from `parked` up.
    pub fn fingerprint(&self, parked: u64) -> u64 {
        let (end, base) = self.bounds;
        let parked = parked.clamp(end, base);
        let start = std::ptr::with_exposed_provenance::<u64>(parked.next_multiple_of(8) as usize);
        let words = (base - parked) as usize / 8;
        // SAFETY: the warp does not run, and its stack is mapped from its lowest address to its base, which is a multiple of 16.
        let word = |i| unsafe { stack_word(start.add(i)) };
        (0..words).fold(parked, |h, i| (h ^ word(i)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29))
    }

    /// Runs the code until it suspends or ends; returns its status if it has ended.
    pub fn resume(&mut self) -> Option<u32> {
        match self.coroutine.as_mut()?.resume(()) {
            CoroutineResult::Yield(()) => None,
            CoroutineResult::Return(status) => Some(status),
        }
    }

    /// Returns the stack for reuse. Unfinished code is abandoned.
    pub fn into_stack(mut self) -> Option<Stack> {
        self.stop();
        Some(Stack(self.coroutine.take()?.into_stack()))
    }

    fn stop(&mut self) {
        if let Some(coroutine) = self.coroutine.as_mut().filter(|c| !c.done()) {
            // SAFETY: what is on the stack are frames of generated code and of helpers that own nothing while they wait.
            unsafe { coroutine.force_reset() };
        }
    }
}

impl Drop for Coroutine<'_> {
    fn drop(&mut self) {
        // The coroutine's own drop would unwind the stack, which must not pass through generated code.
        self.stop();
    }
}

/// A word of a fiber's stack, which may lie in a variable that is out of scope or was never written. Rust's own reads must not see such
/// a word (and AddressSanitizer reports it), so this one is in assembly.
///
/// # Safety
/// The address is aligned and mapped, and no other thread writes to it.
#[cfg(target_arch = "x86_64")]
unsafe fn stack_word(address: *const u64) -> u64 {
    let word: u64;
    // SAFETY: the caller's promise.
    unsafe {
        std::arch::asm!("mov {}, qword ptr [{}]", lateout(reg) word, in(reg) address, options(nostack, preserves_flags, readonly))
    };
    word
}

/// As above, by a volatile read.
///
/// # Safety
/// The address is aligned and mapped, and no other thread writes to it.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn stack_word(address: *const u64) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { address.read_volatile() }
}

/// Suspends the current fiber: control returns to its resumer.
///
/// # Safety
/// The caller is a helper that was called by code on the stack of a [`Coroutine`] with this context, and owns nothing.
pub unsafe fn suspend(ctx: &WarpCtx) {
    ctx.parked.set(stack_pointer());
    let yielder = std::ptr::with_exposed_provenance::<Yielder<(), ()>>(ctx.yielder.get() as usize);
    // SAFETY: `Coroutine::begin` has set it to what lies on the stack that this runs on, and turns of fibers keep it so.
    unsafe { &*yielder }.suspend(());
}
