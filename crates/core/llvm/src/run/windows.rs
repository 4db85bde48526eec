//! What one CTA after another uses: windows, arrays over warps, the table of thread indices.

use crate::{code::compile::Compiled, ctx::WarpCtx, emit::PERIOD, run::host::thread};
use margay_exec::{
    Grid, Row, Stop,
    mem::{Allocation, Kind, Ranges},
};
use std::{
    cell::Cell,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Windows and tables for one CTA at a time.
pub struct Windows {
    /// The shared window.
    pub shared: Arc<Allocation>,
    /// The local windows of all threads.
    pub local: Arc<Allocation>,
    stride: u64,
    /// By access site, the range that was found valid last.
    pub ranges: Arc<Ranges>,
    /// What warps keep across barriers.
    spills: Vec<Cell<Row>>,
    alive: Vec<Cell<u32>>,
    tids: Vec<Row>,
    /// The memory in which `ranges` are valid, and its epoch.
    memory: Option<(usize, u64)>,
    /// The launch that keeps them so.
    launch: u64,
}

/// Windows that nobody uses at the moment.
#[derive(Default)]
pub struct Pool(Mutex<Vec<Windows>>);

impl Pool {
    fn lock(&self) -> MutexGuard<'_, Vec<Windows>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Windows for a launch.
    pub fn take(&self, compiled: &Compiled, grid: &Grid<'_>) -> Result<Windows, Stop> {
        let (shared, stride) = sizes(compiled, grid);
        let found = {
            let mut pool = self.lock();
            pool.retain(|w| w.shared.block.len() as u64 == shared && w.stride == stride);
            pool.pop()
        };
        match found {
            Some(mut windows) => {
                windows.enter(grid);
                Ok(windows)
            }
            None => {
                let mut windows = Windows::new(compiled, grid)?;
                windows.enter(grid);
                Ok(windows)
            }
        }
    }

    /// Gives windows back.
    pub fn give(&self, windows: Windows) {
        let mut pool = self.lock();
        if pool.len() < 64 {
            pool.push(windows);
        }
    }
}

/// Tells memories apart, and whether anything in one was freed.
fn memory(grid: &Grid<'_>) -> Option<(usize, u64)> {
    Some((std::ptr::from_ref(grid.memory).addr(), grid.memory.epoch()))
}

/// Bytes of a thread's local window, whether or not it is ever used.
fn local_size(compiled: &Compiled, grid: &Grid<'_>) -> u32 {
    grid.image.ir.stage.funcs[compiled.kernel.0 as usize].local_size(grid.launch.stack_limit)
}

/// Bytes of the shared window, and from one local window to the next.
fn sizes(compiled: &Compiled, grid: &Grid<'_>) -> (u64, u64) {
    let (fixed, dynamic) = (grid.image.static_shared, grid.launch.dynamic_shared);
    let shared = if dynamic > 0 { fixed.next_multiple_of(16) + dynamic } else { fixed };
    let stride = if compiled.uses_local { u64::from(local_size(compiled, grid)).next_multiple_of(64) } else { 0 };
    (shared.into(), stride)
}

impl Windows {
    fn new(compiled: &Compiled, grid: &Grid<'_>) -> Result<Windows, Stop> {
        let (shared, stride) = sizes(compiled, grid);
        let block = grid.launch.block;
        let warps = block.iter().product::<u32>().div_ceil(32);
        let shared = Allocation::new(shared, 1024, Kind::Shared, "").map_err(Stop::Exhausted)?;
        let local = Allocation::new(stride * 32 * u64::from(warps), 256, Kind::Local, "").map_err(Stop::Exhausted)?;
        let mut tids = vec![Row::ZERO; 3 * warps as usize];
        for warp in 0..warps {
            for lane in 0..32 {
                let id = thread(block, warp, lane);
                (0..3).for_each(|d| tids[warp as usize * 3 + d].0[lane as usize] = id[d]);
            }
        }
        Ok(Windows {
            shared,
            local,
            stride,
            ranges: Arc::new(Ranges::new(compiled.sites.len())),
            spills: vec![Cell::new(Row::ZERO); (compiled.spill_size as usize).div_ceil(128) + 1],
            alive: vec![Cell::new(0); warps as usize],
            tids,
            memory: None,
            launch: 0,
        })
    }

    /// A launch uses them from now on.
    fn enter(&mut self, grid: &Grid<'_>) {
        let launch = grid.running().number();
        if std::mem::replace(&mut self.launch, launch) != launch {
            grid.running().watch(&self.ranges);
        }
        // After that: what is freed from here on empties the ranges by itself.
        let memory = memory(grid);
        if std::mem::replace(&mut self.memory, memory) != memory {
            self.ranges.clear();
        }
    }

    /// What was found valid is so no longer.
    pub fn forget(&mut self) {
        self.memory = None;
    }

    /// The context of a warp of a CTA, for code that runs with these windows; the rest is the host's side's.
    pub fn context(&self, compiled: &Compiled, grid: &Grid<'_>, cta: [u32; 3], warp: u32) -> WarpCtx {
        let launch = grid.launch;
        let locals = self.local.block.base();
        WarpCtx {
            host: 0,
            helpers: 0,
            shared: self.shared.block.base(),
            shared_size: self.shared.block.len() as u64,
            local: Cell::new(locals + u64::from(warp) * 32 * self.stride),
            local_stride: self.stride,
            locals,
            params: grid.params().block.base(),
            sites: self.ranges.address(),
            local_size: local_size(compiled, grid).into(),
            spills: self.spills.as_ptr().expose_provenance() as u64,
            alive_lanes: self.alive.as_ptr().expose_provenance() as u64,
            stack_end: Cell::new(0),
            globals: grid.image.addresses.as_ptr().expose_provenance() as u64,
            tids: self.tids.as_ptr().expose_provenance() as u64,
            first: Cell::new(0),
            end: Cell::new(0),
            yielder: Cell::new(0),
            counts: 0,
            block: launch.block,
            grid: launch.grid,
            environment: [1, 2].map(|i| grid.environment(i)),
            cta: Cell::new(cta),
            alive: Cell::new(alive(warp, launch.block.iter().product())),
            warp: Cell::new(warp),
            dynamic_shared: launch.dynamic_shared,
            calls: Cell::new(PERIOD),
            reduced: Cell::new(0),
            waits: Cell::new(0),
            polls: Cell::new(0),
            polled: Cell::new(0),
            parked: Cell::new(0),
        }
    }
}

/// Lanes of a warp that exist.
fn alive(warp: u32, threads: u32) -> u32 {
    match threads.saturating_sub(warp * 32) {
        left if left >= 32 => u32::MAX,
        left => (1 << left) - 1,
    }
}
