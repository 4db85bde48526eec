//! The memory that CTAs use one after another: shared and local windows, spill area, per-warp arrays, thread indices.

use crate::{
    code::compile::Compiled,
    ctx::{SECTION_SUMS, SECTIONS, WarpCtx},
    emit::{Interleaved, PERIOD},
};
use margay_exec::{
    CtaWindows, Grid, LANES, Row, Stop,
    mem::{self, Allocation, Arena, Kind, Lookaside, Ranges},
    thread_index,
};
use parking_lot::Mutex;
use std::{
    cell::{Cell, RefCell},
    sync::Arc,
};

/// Windows and tables of one CTA at a time.
pub struct Windows {
    /// The shared window.
    pub shared: Arc<Allocation>,
    /// Its contents, and those of the local windows, are those of a CTA that is taken over.
    pub brought: bool,
    /// The local windows of all threads.
    pub local: Arc<Allocation>,
    stride: u64,
    /// Bytes of the interleaved frames that follow the windows of each warp.
    rows: u64,
    /// Per access site, the range found valid last.
    pub ranges: Arc<Ranges>,
    /// Spill area: values that stay live across barriers.
    spills: Vec<Cell<Row>>,
    alive: Vec<Cell<u32>>,
    tids: Vec<Row>,
    /// Allocations that helpers have looked up.
    pub lookaside: RefCell<Lookaside>,
    /// The memory for which `ranges` hold, and its epoch.
    memory: Option<(usize, u64)>,
    /// Number of the launch that empties `ranges` when memory is freed.
    launch: u64,
}

/// Windows that are not in use. Launches hand them on without copies.
#[derive(Default)]
pub struct Pool(Mutex<Free>);

#[allow(clippy::vec_box, reason = "a launch takes one out and puts it back")]
type Free = Vec<Box<Windows>>;

impl Pool {
    /// Takes windows of the right sizes for a launch, or allocates them.
    pub fn take(&self, compiled: &Compiled, grid: &Grid<'_>) -> Result<Box<Windows>, Stop> {
        let (shared, stride, rows) = sizes(compiled, grid);
        let found = {
            let mut pool = self.0.lock();
            pool.retain(|w| w.shared.block.len() as u64 == shared && (w.stride, w.rows) == (stride, rows));
            pool.pop()
        };
        match found {
            Some(mut windows) => {
                windows.enter(grid);
                Ok(windows)
            }
            None => {
                let (reach, shared) = (grid.reach(), sizes(compiled, grid).0);
                let shared = Allocation::new(reach, shared, 1024, Kind::Shared, "").map_err(Stop::Exhausted)?;
                Windows::of(compiled, grid, CtaWindows { shared, local: None }, false)
            }
        }
    }

    /// Returns windows to the pool.
    pub fn put(&self, windows: Box<Windows>) {
        let mut pool = self.0.lock();
        if pool.len() < 64 && !windows.brought {
            pool.push(windows);
        }
    }
}

/// Identity and epoch of a grid's memory: equal if nothing in it was freed in between.
fn memory(grid: &Grid<'_>) -> Option<(usize, u64)> {
    Some((std::ptr::from_ref(grid.memory).addr(), grid.memory.epoch()))
}

/// Size in bytes of a thread's local window, used or not.
fn local_size(compiled: &Compiled, grid: &Grid<'_>) -> u32 {
    grid.image.ir.stage.funcs[compiled.kernel.0 as usize].local_size(grid.launch.stack_limit)
}

/// Bytes of a cache line.
const LINE: u64 = 64;

/// Distance between two local windows of this size: whole cache lines, and an odd number of them if the window is large. A power of two
/// would put what all lanes keep at one offset of their stacks into few sets of the first-level cache. Small windows are mostly used as a
/// whole, so that adjacent ones share the sets evenly.
fn local_stride(size: u64) -> u64 {
    let lines = size.div_ceil(LINE);
    (if lines < 8 { lines } else { lines | 1 }) * LINE
}

/// Size of the shared window, distance between two local windows, and bytes of a warp's interleaved frames.
fn sizes(compiled: &Compiled, grid: &Grid<'_>) -> (u64, u64, u64) {
    let stride = if compiled.uses_local { local_stride(u64::from(local_size(compiled, grid))) } else { 0 };
    (grid.shared_size(), stride, compiled.interleaved.map_or(0, |frame| u64::from(frame.size) * LANES as u64))
}

/// Allocates the local windows of `warps` warps.
fn allocate(grid: &Grid<'_>, warps: u32, (stride, rows): (u64, u64)) -> Result<Arc<Allocation>, Stop> {
    let bytes = (stride * LANES as u64 + rows) * u64::from(warps);
    Allocation::new(grid.reach(), bytes, 256, Kind::Local, "").map_err(Stop::Exhausted)
}

/// Copies windows that hold the lanes' frames one after the other to windows that interleave them.
fn interleave(from: &Allocation, to: &Allocation, warps: u32, (stride, rows): (u64, u64), frame: Interleaved) {
    let (old, new) = (stride * LANES as u64, stride * LANES as u64 + rows);
    for warp in 0..u64::from(warps) {
        let (source, target) = (from.block.base() + warp * old, to.block.base() + warp * new);
        // The copies lie within both allocations.
        let copy = |at: u64, place: u64, bytes: u64| {
            mem::copy(&to.block, target + place, &from.block, source + at, bytes as usize)
        };
        copy(0, 0, old);
        for lane in 0..LANES as u32 {
            for offset in (frame.start..frame.start + frame.size).step_by(frame.unit as usize) {
                let place = old + frame.place(lane, offset);
                copy(u64::from(lane) * stride + u64::from(offset), place, frame.unit.into());
            }
        }
    }
}

impl Windows {
    /// Allocates what is missing; a CTA may have `brought` windows along.
    pub fn of(
        compiled: &Compiled,
        grid: &Grid<'_>,
        CtaWindows { shared, local }: CtaWindows,
        brought: bool,
    ) -> Result<Box<Windows>, Stop> {
        let block = compiled.block(grid.launch.shape.block);
        let warps = block.iter().product::<u32>().div_ceil(32);
        let (_, stride, rows) = sizes(compiled, grid);
        let (local, stride) = match (local, compiled.interleaved) {
            (Some((local, stride)), Some(frame)) => {
                let interleaved = allocate(grid, warps, (stride, rows))?;
                interleave(&local, &interleaved, warps, (stride, rows), frame);
                (interleaved, stride)
            }
            (Some(local), None) => local,
            (None, _) => (allocate(grid, warps, (stride, rows))?, stride),
        };
        let mut tids = vec![Row::ZERO; 3 * warps as usize];
        for warp in 0..warps {
            for lane in 0..32 {
                let id = thread_index(block, warp, lane);
                (0..3).for_each(|d| tids[warp as usize * 3 + d].0[lane as usize] = id[d]);
            }
        }
        let mut windows = Box::new(Windows {
            shared,
            brought,
            local,
            stride,
            rows,
            ranges: Arc::new(Ranges::new(compiled.sites.len())),
            spills: vec![Cell::new(Row::ZERO); (compiled.spill_size as usize).div_ceil(128) + 1],
            alive: vec![Cell::new(0); warps as usize],
            tids,
            lookaside: RefCell::default(),
            memory: None,
            launch: 0,
        });
        windows.enter(grid);
        Ok(windows)
    }

    /// Prepares the windows for a launch: registers `ranges` with it, and clears them if they may be stale.
    fn enter(&mut self, grid: &Grid<'_>) {
        let launch = grid.running().number();
        if std::mem::replace(&mut self.launch, launch) != launch {
            grid.running().watch(&self.ranges);
            // What an observer need not see depends on the launch's arguments.
            if grid.observer.is_some() {
                self.memory = None;
            }
        }
        // Only after registering: from there on, freeing memory empties the ranges.
        let memory = memory(grid);
        if std::mem::replace(&mut self.memory, memory) != memory {
            self.ranges.clear();
            self.lookaside = RefCell::default();
        }
    }

    /// Marks the cached ranges as stale.
    pub fn forget(&mut self) {
        self.memory = None;
    }

    /// Creates the context of a warp; the caller fills in host, helpers and counters.
    pub fn context(&self, compiled: &Compiled, grid: &Grid<'_>, cta: [u32; 3], warp: u32) -> WarpCtx {
        let launch = grid.launch;
        let locals = self.local.block.base();
        let [heap, heap_size, heap_table] = grid.memory.heap_objects().map_or([0; 3], Arena::place);
        WarpCtx {
            host: 0,
            helpers: 0,
            shared: self.shared.block.base(),
            shared_size: self.shared.block.len() as u64,
            zeroed: if self.brought { 0 } else { self.shared.block.len() as u64 },
            local: Cell::new(locals + u64::from(warp) * (LANES as u64 * self.stride + self.rows)),
            local_stride: self.stride,
            locals,
            params: grid.params().block.base(),
            sites: self.ranges.address(),
            local_size: local_size(compiled, grid).into(),
            heap,
            heap_size,
            heap_table,
            spills: self.spills.as_ptr().expose_provenance() as u64,
            alive_lanes: self.alive.as_ptr().expose_provenance() as u64,
            stack_end: Cell::new(0),
            globals: grid.image.addresses.as_ptr().expose_provenance() as u64,
            tids: self.tids.as_ptr().expose_provenance() as u64,
            first: Cell::new(0),
            end: Cell::new(0),
            yielder: Cell::new(0),
            counts: 0,
            graph: launch.graph,
            loads: Cell::new(0),
            loads_begin: 0,
            loads_end: 0,
            loads_shared: Cell::new(0),
            notes: Cell::new(0),
            notes_begin: 0,
            notes_end: 0,
            uses: Cell::new(0),
            first_line: Cell::new(0),
            line_count: Cell::new(0),
            line_read: Cell::new(0),
            met: Cell::new(0),
            block: compiled.block(launch.shape.block),
            grid: launch.shape.grid,
            environment: [1, 2].map(|i| grid.environment(i)),
            cta: Cell::new(cta),
            alive: Cell::new(alive(warp, launch.shape.threads())),
            warp: Cell::new(warp),
            dynamic_shared: launch.shape.shared,
            calls: Cell::new(PERIOD),
            reduced: Cell::new(0),
            waits: Cell::new(0),
            polls: Cell::new(0),
            changed: Cell::new(0),
            held: Cell::new(0),
            held_lanes: Cell::new(0),
            gathered: Cell::new(0),
            parked: Cell::new(0),
            polled: [const { Cell::new(0) }; 32],
            sections: [const { [const { Cell::new(0) }; SECTION_SUMS] }; SECTIONS],
        }
    }
}

/// Mask of the lanes of a warp that exist.
pub fn alive(warp: u32, threads: u32) -> u32 {
    match threads.saturating_sub(warp * 32) {
        left if left >= 32 => u32::MAX,
        left => (1 << left) - 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_share_no_set_of_the_cache_with_many() {
        const SETS: usize = 64;
        for size in (16..10_000).step_by(16).chain([1 << 14, 1 << 16, 1 << 20]) {
            let stride = local_stride(size);
            assert!(stride >= size && stride.is_multiple_of(LINE), "{size}: {stride}");
            let mut lanes = [0; SETS];
            (0..LANES as u64).for_each(|lane| lanes[(lane * stride / LINE) as usize % SETS] += 1);
            assert!(lanes.iter().all(|&of_set| of_set <= 2), "{size}: {stride}");
        }
    }
}
