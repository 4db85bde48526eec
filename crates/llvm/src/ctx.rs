//! What generated code and the host share: one [`WarpCtx`] for each warp in flight.

use std::mem::offset_of;

/// State of a warp as generated code sees it. Pointers are held as addresses (their provenance is exposed where they are made), so
/// that a warp may move between threads. Field offsets are part of the code that is cached on disk.
#[repr(C, align(64))]
pub struct WarpCtx {
    /// `%tid.x`, `.y`, `.z` by lane.
    pub tid: [[u32; 32]; 3],
    /// The host's side of this CTA, handed back to helpers.
    pub host: u64,
    /// Helper functions, in the order of [`Helper`].
    pub helpers: u64,
    /// Host address of the CTA's shared window.
    pub shared: u64,
    /// Bytes of it.
    pub shared_size: u64,
    /// Host address of the local window of lane 0.
    pub local: u64,
    /// Bytes from one lane's local window to the next.
    pub local_stride: u64,
    /// Host address of the kernel's parameter block.
    pub params: u64,
    /// For each access site, the range of addresses that was found valid last.
    pub sites: u64,
    /// Compiled device functions by id; null where there is none.
    pub functions: u64,
    /// Registers that live across barriers.
    pub save: u64,
    /// Lowest native stack address that device calls may reach.
    pub stack_end: u64,
    /// Addresses of module variables, by id.
    pub globals: u64,
    /// `%ntid`
    pub block: [u32; 3],
    /// `%nctaid`
    pub grid: [u32; 3],
    /// `%ctaid`
    pub cta: [u32; 3],
    /// Where to go on: 0 at the beginning.
    pub resume: u32,
    /// Mask of the lanes that exist.
    pub alive: u32,
    /// `%warpid`
    pub warp: u32,
    /// Bytes of dynamic shared memory.
    pub dynamic_shared: u32,
    /// The barrier that the warp waits at: id and number of threads (0: all).
    pub barrier: [u32; 2],
}

/// Offsets that emission needs.
#[allow(missing_docs)]
pub mod at {
    use super::*;
    pub const TID: u64 = offset_of!(WarpCtx, tid) as u64;
    pub const HELPERS: u64 = offset_of!(WarpCtx, helpers) as u64;
    pub const SHARED: u64 = offset_of!(WarpCtx, shared) as u64;
    pub const SHARED_SIZE: u64 = offset_of!(WarpCtx, shared_size) as u64;
    pub const LOCAL: u64 = offset_of!(WarpCtx, local) as u64;
    pub const LOCAL_STRIDE: u64 = offset_of!(WarpCtx, local_stride) as u64;
    pub const PARAMS: u64 = offset_of!(WarpCtx, params) as u64;
    pub const SITES: u64 = offset_of!(WarpCtx, sites) as u64;
    pub const FUNCTIONS: u64 = offset_of!(WarpCtx, functions) as u64;
    pub const SAVE: u64 = offset_of!(WarpCtx, save) as u64;
    pub const STACK_END: u64 = offset_of!(WarpCtx, stack_end) as u64;
    pub const GLOBALS: u64 = offset_of!(WarpCtx, globals) as u64;
    pub const BLOCK: u64 = offset_of!(WarpCtx, block) as u64;
    pub const GRID: u64 = offset_of!(WarpCtx, grid) as u64;
    pub const CTA: u64 = offset_of!(WarpCtx, cta) as u64;
    pub const RESUME: u64 = offset_of!(WarpCtx, resume) as u64;
    pub const ALIVE: u64 = offset_of!(WarpCtx, alive) as u64;
    pub const WARP: u64 = offset_of!(WarpCtx, warp) as u64;
    pub const DYNAMIC_SHARED: u64 = offset_of!(WarpCtx, dynamic_shared) as u64;
    pub const BARRIER: u64 = offset_of!(WarpCtx, barrier) as u64;
}

/// Helpers that generated code calls through [`WarpCtx::helpers`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum Helper {
    /// `(ctx, site, mask, lanes' 64-bit addresses, size, write) -> status`: slow path of a bounds check.
    Check,
    /// `(ctx, site, mask, sources, destination)`: a pure row.
    Pure,
    /// `(ctx, site, mask) -> status`: a trap or another fault that the code found itself.
    Fault,
}

/// How a compiled function ended.
#[allow(missing_docs)]
pub mod status {
    /// All lanes are done.
    pub const DONE: u32 = 0;
    /// The warp waits at a barrier; call again to go on.
    pub const BARRIER: u32 = 1;
    /// A helper recorded a stop.
    pub const STOP: u32 = 2;
    /// The warp spins on something that another warp must do; call again to go on.
    pub const YIELD: u32 = 3;
}
