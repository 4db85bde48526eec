//! Calling compiled kernels. One of the three files of this crate that may use `unsafe`.
#![allow(unsafe_code)]

use crate::{compile::Compiled, ctx::WarpCtx};

/// Runs a warp until it is done, waits at a barrier, or stops; gives the status.
pub fn enter(compiled: &Compiled, ctx: &mut WarpCtx) -> u32 {
    // SAFETY: `entry` is the address of a function of this very signature in code that `compiled` keeps mapped; the code
    // touches only what `ctx` points to, which the caller keeps alive for the call.
    let f = unsafe { std::mem::transmute::<usize, extern "C" fn(*mut WarpCtx) -> u32>(compiled.entry) };
    f(ctx)
}

/// An address near the top of the native stack in use.
pub fn stack_pointer() -> u64 {
    let here = 0u8;
    std::ptr::from_ref(&here) as u64
}
