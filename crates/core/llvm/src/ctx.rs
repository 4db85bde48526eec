//! The layout that generated code and the host share: one [`WarpCtx`] per call of generated code in flight, and the
//! helpers.

use std::{cell::Cell, mem::offset_of};

/// The state of one call of generated code. Pointers are held as addresses; their provenance is exposed where they are
/// made. The field offsets are compiled into code that is cached on disk. Fields that change while code runs are cells,
/// because generated code and the host access the context alternately on one thread.
///
/// A kernel that loops over CTAs and warps itself keeps `cta`, `warp` and `local` up to date for helpers and device
/// functions; for a kernel that is called once per warp the host sets them.
#[repr(C)]
pub struct WarpCtx {
    /// Address of the [`crate::run::host::Host`], which helpers get back.
    pub host: u64,
    /// Address of the table of helper functions, in the order of [`Helper`].
    pub helpers: u64,
    /// Host address of the CTA's shared window.
    pub shared: u64,
    /// Size of the shared window in bytes.
    pub shared_size: u64,
    /// Bytes of the shared window to zero where a CTA begins: all, or none for a CTA that is taken over with its window.
    pub zeroed: u64,
    /// Host address of the local window of the warp's lane 0.
    pub local: Cell<u64>,
    /// Distance from one lane's local window to the next, in bytes.
    pub local_stride: u64,
    /// `local` of warp 0.
    pub locals: u64,
    /// Host address of the kernel's parameter block.
    pub params: u64,
    /// Per access site, the address range that the last slow check found valid: [`margay_exec::mem::Ranges`].
    pub sites: u64,
    /// Size of one thread's local window in bytes.
    pub local_size: u64,
    /// The device heap's small objects ([`margay_exec::mem::Arena`]): address, size in bytes (0 if there are none yet), and the table of
    /// what lies where.
    pub heap: u64,
    pub heap_size: u64,
    pub heap_table: u64,
    /// Spill area: values that stay live across barriers, per warp.
    pub spills: u64,
    /// Per warp: lanes that have not exited.
    pub alive_lanes: u64,
    /// Lowest address that the native stack may reach when a device function is called.
    pub stack_end: Cell<u64>,
    /// Addresses of module variables, by id.
    pub globals: u64,
    /// Per warp: `%tid.x`, `.y`, `.z` of its 32 lanes.
    pub tids: u64,
    /// Linear index of the first CTA to run.
    pub first: Cell<u64>,
    /// Linear index after the last CTA to run.
    pub end: Cell<u64>,
    /// The yielder of the fiber in execution; only where warps run on fibers.
    pub yielder: Cell<u64>,
    /// Address of the counters, for code compiled to count.
    pub counts: u64,
    /// `%current_graph_exec`
    pub graph: u64,
    /// The buffer of loads for the launch's observer ([`margay_exec::RowLoad`]): its next entry, its start and its end.
    pub loads: Cell<u64>,
    pub loads_begin: u64,
    pub loads_end: u64,
    /// Nonzero if one of them may be from shared memory.
    pub loads_shared: Cell<u32>,
    /// The buffer of accesses that are noted instead of reported: its next entry, its start and its end. Then the uses of the lines of
    /// shared memory that decide which are ([`margay_exec::LineUses`]): their address, the number of the first line, the number of lines
    /// (0 if every access must be reported), and the value for loads since the last barrier.
    pub notes: Cell<u64>,
    pub notes_begin: u64,
    pub notes_end: u64,
    pub uses: Cell<u64>,
    pub first_line: Cell<u64>,
    pub line_count: Cell<u64>,
    pub line_read: Cell<u64>,
    /// Barriers of the whole CTA that have completed since one was last reported to the launch's observer.
    pub met: Cell<u32>,
    /// `%ntid`
    pub block: [u32; 3],
    /// `%nctaid`
    pub grid: [u32; 3],
    /// `%envreg1`, `%envreg2`
    pub environment: [u32; 2],
    /// `%ctaid`
    pub cta: Cell<[u32; 3]>,
    /// Lanes that have not exited. The host reads it in kernels called once per warp, device functions read it in all
    /// kernels.
    pub alive: Cell<u32>,
    /// `%warpid`
    pub warp: Cell<u32>,
    /// Bytes of dynamic shared memory.
    pub dynamic_shared: u32,
    /// Calls of device functions left until [`Helper::Tick`] is due.
    pub calls: Cell<u32>,
    /// Result of the `.red` of the barrier that released lanes last.
    pub reduced: Cell<u32>,
    /// Nonzero while the warp is blocked until a barrier releases some of its lanes.
    pub waits: Cell<u32>,
    /// The site at which the warp last polled memory, plus one; 0 if it has not.
    pub polls: Cell<u32>,
    /// Nonzero if the warp has stored since it was resumed, or changed memory by an atomic operation; only code whose loops may wait for
    /// others keeps it.
    pub changed: Cell<u32>,
    /// One more than the site at which the lowest held lane waits for the rest of its warp; 0 if no lane is held.
    pub held: Cell<u32>,
    /// The lanes that wait at `held`.
    pub held_lanes: Cell<u32>,
    /// The held lanes at instructions that only wait: they continue once other lanes of the warp have ended.
    pub gathered: Cell<u32>,
    /// Stack pointer at the last suspension: the stack below it holds no state while the fiber is parked.
    pub parked: Cell<u64>,
    /// By lane: the site at which it has polled memory last, plus one; 0 if it has not.
    pub polled: [Cell<u32>; 32],
    /// What sections that lanes may run one after another have taken in this launch, in the order of `Past` in `emit/function/serial`.
    pub sections: [[Cell<u64>; SECTION_SUMS]; SECTIONS],
}

/// Such sections of a kernel, and sums of each.
pub const SECTIONS: usize = 4;
pub const SECTION_SUMS: usize = 9;

/// Offsets of the fields that generated code accesses.
#[allow(missing_docs)]
pub mod at {
    use super::*;
    pub const HELPERS: u64 = offset_of!(WarpCtx, helpers) as u64;
    pub const SHARED: u64 = offset_of!(WarpCtx, shared) as u64;
    pub const SHARED_SIZE: u64 = offset_of!(WarpCtx, shared_size) as u64;
    pub const ZEROED: u64 = offset_of!(WarpCtx, zeroed) as u64;
    pub const LOCAL: u64 = offset_of!(WarpCtx, local) as u64;
    pub const LOCAL_STRIDE: u64 = offset_of!(WarpCtx, local_stride) as u64;
    pub const LOCALS: u64 = offset_of!(WarpCtx, locals) as u64;
    pub const PARAMS: u64 = offset_of!(WarpCtx, params) as u64;
    pub const SITES: u64 = offset_of!(WarpCtx, sites) as u64;
    pub const LOCAL_SIZE: u64 = offset_of!(WarpCtx, local_size) as u64;
    pub const HEAP: u64 = offset_of!(WarpCtx, heap) as u64;
    pub const HEAP_SIZE: u64 = offset_of!(WarpCtx, heap_size) as u64;
    pub const HEAP_TABLE: u64 = offset_of!(WarpCtx, heap_table) as u64;
    pub const SPILLS: u64 = offset_of!(WarpCtx, spills) as u64;
    pub const ALIVE_LANES: u64 = offset_of!(WarpCtx, alive_lanes) as u64;
    pub const STACK_END: u64 = offset_of!(WarpCtx, stack_end) as u64;
    pub const GLOBALS: u64 = offset_of!(WarpCtx, globals) as u64;
    pub const TIDS: u64 = offset_of!(WarpCtx, tids) as u64;
    pub const FIRST: u64 = offset_of!(WarpCtx, first) as u64;
    pub const END: u64 = offset_of!(WarpCtx, end) as u64;
    pub const COUNTS: u64 = offset_of!(WarpCtx, counts) as u64;
    pub const LOADS: u64 = offset_of!(WarpCtx, loads) as u64;
    pub const LOADS_BEGIN: u64 = offset_of!(WarpCtx, loads_begin) as u64;
    pub const LOADS_END: u64 = offset_of!(WarpCtx, loads_end) as u64;
    pub const LOADS_SHARED: u64 = offset_of!(WarpCtx, loads_shared) as u64;
    pub const NOTES: u64 = offset_of!(WarpCtx, notes) as u64;
    pub const NOTES_BEGIN: u64 = offset_of!(WarpCtx, notes_begin) as u64;
    pub const NOTES_END: u64 = offset_of!(WarpCtx, notes_end) as u64;
    pub const USES: u64 = offset_of!(WarpCtx, uses) as u64;
    pub const FIRST_LINE: u64 = offset_of!(WarpCtx, first_line) as u64;
    pub const LINE_COUNT: u64 = offset_of!(WarpCtx, line_count) as u64;
    pub const LINE_READ: u64 = offset_of!(WarpCtx, line_read) as u64;
    pub const MET: u64 = offset_of!(WarpCtx, met) as u64;
    pub const GRAPH: u64 = offset_of!(WarpCtx, graph) as u64;
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
    pub const CHANGED: u64 = offset_of!(WarpCtx, changed) as u64;
    pub const HELD: u64 = offset_of!(WarpCtx, held) as u64;
    pub const HELD_LANES: u64 = offset_of!(WarpCtx, held_lanes) as u64;
    pub const GATHERED: u64 = offset_of!(WarpCtx, gathered) as u64;
    pub const REDUCED: u64 = offset_of!(WarpCtx, reduced) as u64;
    pub const SECTIONS: u64 = offset_of!(WarpCtx, sections) as u64;

    /// Whether the field at `offset` keeps its value during a whole call of generated code, and so may be loaded once.
    pub const fn is_constant(offset: u64) -> bool {
        matches!(
            offset,
            SHARED
                | SHARED_SIZE
                | ZEROED
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
                | GRAPH
                | LOADS_BEGIN
                | LOADS_END
                | NOTES_BEGIN
                | NOTES_END
                | DYNAMIC_SHARED
        ) || offset >= BLOCK && offset < CTA
    }
}

/// Helpers that generated code calls through [`WarpCtx::helpers`], with their signatures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum Helper {
    /// `(ctx, site, mask, 64-bit addresses by lane) -> status`: slow path of a bounds check.
    Check,
    /// `(ctx, site, mask, 64-bit addresses by lane) -> status`: checks an access that precedes, in program order, one whose check has
    /// failed; if it fails too, its fault replaces the recorded one.
    CheckEarlier,
    /// `(ctx, site, mask, 64-bit addresses by lane, bytes) -> status`: whether the accesses of a group, `bytes` in all, are all in one
    /// allocation or in a lane's own window; records no fault.
    CheckTogether,
    /// `(ctx, site, mask, 64-bit addresses by lane) -> number`: checks accesses one after another; returns the number of the one that
    /// fails, from 1 on, or 0.
    CheckGroup,
    /// `(ctx, site, mask, sources, destination)`: evaluates a pure row by its semantic function.
    Pure,
    /// `(ctx, site, mask) -> status`: generated code detected a trap or another fault, or an undefined use that is only
    /// noted.
    Fault,
    /// `(ctx) -> status`: safepoint of a loop or of recursion: charges fuel, and suspends a warp that runs on a fiber.
    Tick,
    /// `(ctx) -> status`: the warp polls memory that other warps write: suspends it. Fibers only.
    Yield,
    /// `(ctx, site, mask, ids, counts, predicates) -> status`: lanes arrive at a CTA barrier. Fibers only.
    Arrive,
    /// `(ctx, lanes, released, results, park) -> status`: stores to `released` a set of lanes that can be resumed:
    /// lanes released by a barrier or a warp operation (with the results of the latter), or lanes that returned from a
    /// call. If there are none, the fiber parks if `park`, else 0 is stored. Fibers only.
    Wait,
    /// `(ctx, site, live, mask, rows read, rows written) -> status`: the reference engine executes one instruction.
    Effect,
    /// `(ctx, site, mask, arguments, results) -> status`: calls a function of the device library.
    Builtin,
    /// `(ctx, site, live, mask, rows read) -> status`: parks lanes that arrive at a warp operation before its other
    /// members.
    Park,
    /// `(ctx, site)`: the function called at the site has stopped; adds its caller to the fault's call stack.
    Unwind,
    /// `(ctx, site, lanes, frame, arguments, results, entry) -> status`: starts a call on a fiber of its own.
    Spawn,
    /// `(ctx, lanes)`: lanes return from a function that runs on a fiber of its own.
    Finish,
    /// `(ctx, site, lanes) -> status`: lanes arrive at the cluster's barrier, or wait at it. Fibers only.
    Cluster,
    /// `(ctx, site, lanes, a, b, c) -> status`: a guard of a call or of the stack failed. The three numbers depend on
    /// the site: the address of the function called; the address of an access and the bytes passed; the bytes and the
    /// address of an `alloca`; the value of a `stackrestore` and its bounds. Never returns 0.
    Refuse,
    /// `(ctx, site, mask, 64-bit addresses by lane, stored elements by row)`: an access, for the launch's observer.
    Observe,
    /// `(ctx, site, mask, address of lane 0, bytes from lane to lane, stored elements by row)`: the same.
    ObserveRow,
    /// `(ctx)`: the buffer of loads is full.
    Loads,
    /// `(ctx)`: the buffer of what is not reported is full.
    Notes,
    /// `(ctx, site, mask, 64-bit addresses by lane)`: an access outside the range of its site.
    Strays,
    /// `(ctx, site, mask)`: something else, for the launch's observer.
    Event,
    /// `(ctx, time)`: stores what `%globaltimer` is ([`margay_exec::unix_time`]).
    Time,
}

impl Helper {
    /// Whether it returns a status.
    pub fn has_status(self) -> bool {
        use Helper::{Event, Finish, Loads, Notes, Observe, ObserveRow, Pure, Strays, Time, Unwind};
        !matches!(self, Pure | Unwind | Finish | Observe | ObserveRow | Loads | Notes | Strays | Event | Time)
    }
}

/// Number of helpers.
pub const HELPERS: usize = Helper::Time as usize + 1;

/// How a call of a compiled function ended.
#[allow(missing_docs)]
pub mod status {
    /// It ran to its end.
    pub const DONE: u32 = 0;
    /// A helper recorded a stop, which the caller must propagate.
    pub const STOP: u32 = 1;
}
