//! What generated code and the host share: one [`WarpCtx`] for each call of generated code in flight.

use std::{cell::Cell, mem::offset_of};

/// State as generated code sees it. Pointers are held as addresses (their provenance is exposed where they are made). Field
/// offsets are part of the code that is cached on disk. What changes while code runs is in cells: generated code and the host have it at
/// the same time, on one thread.
///
/// A kernel that loops over CTAs and warps itself keeps `cta`, `warp`, `local` up to date, for helpers and device functions; for
/// one that is called warp by warp the host sets them.
#[repr(C, align(64))]
pub struct WarpCtx {
    /// The host's side, handed back to helpers.
    pub host: u64,
    /// Helper functions, in the order of [`Helper`].
    pub helpers: u64,
    /// Host address of the CTA's shared window.
    pub shared: u64,
    /// Bytes of it.
    pub shared_size: u64,
    /// Host address of the local window of the warp's lane 0.
    pub local: Cell<u64>,
    /// Bytes from one lane's local window to the next.
    pub local_stride: u64,
    /// `local` of warp 0.
    pub locals: u64,
    /// Host address of the kernel's parameter block.
    pub params: u64,
    /// For each access site, the range of addresses that was found valid last: [`margay_exec::mem::Ranges`].
    pub sites: u64,
    /// Bytes of a thread's local window.
    pub local_size: u64,
    /// What warps keep across barriers.
    pub spills: u64,
    /// By warp: lanes that have not ended.
    pub alive_lanes: u64,
    /// Lowest native stack address that device calls may reach.
    pub stack_end: Cell<u64>,
    /// Addresses of module variables, by id.
    pub globals: u64,
    /// By warp: `%tid.x`, `.y`, `.z` of its 32 lanes.
    pub tids: u64,
    /// Linear indices of the CTAs to run: from here ...
    pub first: Cell<u64>,
    /// ... to before this.
    pub end: Cell<u64>,
    /// Where control goes when the warp waits, for warps with stacks.
    pub yielder: Cell<u64>,
    /// Cells of counts, for code that counts.
    pub counts: u64,
    /// `%ntid`
    pub block: [u32; 3],
    /// `%nctaid`
    pub grid: [u32; 3],
    /// `%envreg1`, `%envreg2`
    pub environment: [u32; 2],
    /// `%ctaid`
    pub cta: Cell<[u32; 3]>,
    /// Lanes that have not ended: for the host in kernels that are called warp by warp, for device functions in all.
    pub alive: Cell<u32>,
    /// `%warpid`
    pub warp: Cell<u32>,
    /// Bytes of dynamic shared memory.
    pub dynamic_shared: u32,
    /// Calls of device functions until [`Helper::Tick`] is due.
    pub calls: Cell<u32>,
    /// Result of a barrier's `.red` for the lanes that were released last.
    pub reduced: Cell<u32>,
    /// The warp waits for a barrier to release some of its lanes.
    pub waits: Cell<u32>,
    /// Where the warp looked last for what others do: a site plus one, and the lanes that did.
    pub polls: Cell<u32>,
    /// See `polls`.
    pub polled: Cell<u32>,
    /// Native stack address below which nothing counts while others have their turn.
    pub parked: Cell<u64>,
}

/// Offsets that emission needs.
#[allow(missing_docs)]
pub mod at {
    use super::*;
    pub const HELPERS: u64 = offset_of!(WarpCtx, helpers) as u64;
    pub const SHARED: u64 = offset_of!(WarpCtx, shared) as u64;
    pub const SHARED_SIZE: u64 = offset_of!(WarpCtx, shared_size) as u64;
    pub const LOCAL: u64 = offset_of!(WarpCtx, local) as u64;
    pub const LOCAL_STRIDE: u64 = offset_of!(WarpCtx, local_stride) as u64;
    pub const LOCALS: u64 = offset_of!(WarpCtx, locals) as u64;
    pub const PARAMS: u64 = offset_of!(WarpCtx, params) as u64;
    pub const SITES: u64 = offset_of!(WarpCtx, sites) as u64;
    pub const LOCAL_SIZE: u64 = offset_of!(WarpCtx, local_size) as u64;
    pub const SPILLS: u64 = offset_of!(WarpCtx, spills) as u64;
    pub const ALIVE_LANES: u64 = offset_of!(WarpCtx, alive_lanes) as u64;
    pub const STACK_END: u64 = offset_of!(WarpCtx, stack_end) as u64;
    pub const GLOBALS: u64 = offset_of!(WarpCtx, globals) as u64;
    pub const TIDS: u64 = offset_of!(WarpCtx, tids) as u64;
    pub const FIRST: u64 = offset_of!(WarpCtx, first) as u64;
    pub const END: u64 = offset_of!(WarpCtx, end) as u64;
    pub const COUNTS: u64 = offset_of!(WarpCtx, counts) as u64;
    pub const BLOCK: u64 = offset_of!(WarpCtx, block) as u64;
    pub const GRID: u64 = offset_of!(WarpCtx, grid) as u64;
    pub const ENVIRONMENT: u64 = offset_of!(WarpCtx, environment) as u64;
    pub const CTA: u64 = offset_of!(WarpCtx, cta) as u64;
    pub const ALIVE: u64 = offset_of!(WarpCtx, alive) as u64;
    pub const WARP: u64 = offset_of!(WarpCtx, warp) as u64;
    pub const DYNAMIC_SHARED: u64 = offset_of!(WarpCtx, dynamic_shared) as u64;
    pub const CALLS: u64 = offset_of!(WarpCtx, calls) as u64;
    pub const POLLS: u64 = offset_of!(WarpCtx, polls) as u64;
    pub const POLLED: u64 = offset_of!(WarpCtx, polled) as u64;
    pub const REDUCED: u64 = offset_of!(WarpCtx, reduced) as u64;

    /// Whether a field stays the same from the beginning of a call of generated code to its end, whoever calls.
    pub const fn is_constant(offset: u64) -> bool {
        matches!(
            offset,
            SHARED
                | SHARED_SIZE
                | LOCAL_STRIDE
                | LOCALS
                | PARAMS
                | SITES
                | LOCAL_SIZE
                | SPILLS
                | ALIVE_LANES
                | STACK_END
                | GLOBALS
                | TIDS
                | FIRST
                | END
                | COUNTS
                | DYNAMIC_SHARED
        ) || offset >= BLOCK && offset < CTA
    }
}

/// Helpers that generated code calls through [`WarpCtx::helpers`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum Helper {
    /// `(ctx, site, mask, lanes' 64-bit addresses, size, write) -> status`: slow path of a bounds check.
    Check,
    /// `(ctx, site, mask, sources, destination)`: a pure row.
    Pure,
    /// `(ctx, site, mask) -> status`: a trap or another fault that the code found itself, or a use that is only noted.
    Fault,
    /// `(ctx) -> status`: the code has looped for a while; may it go on?
    Tick,
    /// `(ctx) -> status`: the warp spins on something that others must do; lets them. Only where warps have stacks.
    Yield,
    /// `(ctx, site, mask, ids, counts, truth) -> status`: lanes arrive at a barrier. Only where warps have stacks.
    Arrive,
    /// `(ctx, lanes, released, results, patient) -> status`: stores lanes that are released: some of those that wait at
    /// barriers and warp operations, with the results of these, or some that come back from calls. If none are, one that is patient
    /// waits. Only where warps have stacks.
    Wait,
    /// `(ctx, site, live, mask, rows read, rows written) -> status`: an instruction by the reference engine.
    Effect,
    /// `(ctx, site, mask, arguments, results) -> status`: a function of the device library.
    Builtin,
    /// `(ctx, site, live, mask, rows read) -> status`: lanes come to a warp operation without its other members.
    Park,
    /// `(ctx, site)`: a function that was called at the site has stopped.
    Unwind,
    /// `(ctx, site, lanes, frame, arguments, results, entry) -> status`: begins a call on a stack of its own.
    Spawn,
    /// `(ctx, lanes)`: lanes have come to the end of a function that has a stack of its own.
    Finish,
    /// `(ctx, site, lanes) -> status`: lanes arrive at the cluster's barrier, or wait there. Only where warps have stacks.
    Cluster,
    /// `(ctx, site, lanes, three numbers) -> status`: a guard of a call or of the stack says no, with what the fault tells of it: the
    /// address of a function; the address of an access and the bytes passed; the bytes and the place of an `alloca`; the value of a
    /// `stackrestore` and its bounds. Never 0.
    Refuse,
}

/// Number of helpers.
pub const HELPERS: usize = Helper::Refuse as usize + 1;

/// How a compiled function ended.
#[allow(missing_docs)]
pub mod status {
    /// All is done.
    pub const DONE: u32 = 0;
    /// A helper recorded a stop.
    pub const STOP: u32 = 1;
}
