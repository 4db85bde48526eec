//! A CTA in flight: its warps, windows and barriers, and what its helpers find when code comes back to the host.

use crate::{
    compile::Compiled,
    ctx::{WarpCtx, status},
    emit::SiteKind,
    enter, thunk,
};
use margay_exec::{
    Access, Bug, Cta, Fault, FaultKind, Grid, LANES, Progress, Row, Stop, lanes,
    mem::{self, Allocation, Kind},
};
use margay_ir::FuncId;
use std::{
    cell::RefCell,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

/// Host stack that calls of device functions may use, in bytes: what every thread has, and what kernels that recurse are given.
const HOST_STACK: [usize; 2] = [1 << 20, 256 << 20];

/// The host's side of a CTA.
pub struct Host<'a> {
    pub grid: &'a Grid<'a>,
    pub compiled: Arc<Compiled>,
    pub cta: [u32; 3],
    pub shared: Arc<Allocation>,
    pub local: Arc<Allocation>,
    stopped: RefCell<Option<Stop>>,
}

/// What one CTA after another can use: windows and warps.
pub struct Windows {
    shared: Arc<Allocation>,
    local: Arc<Allocation>,
    warps: Vec<Warp>,
    sites: Vec<[u64; 2]>,
    /// The launch that they were made for; nothing is reused across launches, for memory may have been freed.
    launch: Instant,
}

/// Windows of CTAs that are done.
pub type Pool = Mutex<Vec<Windows>>;

/// A CTA in flight.
pub struct SimdCta<'a> {
    host: Box<Host<'a>>,
    windows: Option<Windows>,
    pool: &'a Pool,
    helpers: [usize; 3],
}

struct Warp {
    ctx: Box<WarpCtx>,
    /// Registers across barriers; kept here, pointed to by `ctx`.
    _save: Vec<Row>,
    done: bool,
    waiting: bool,
}

fn lock(pool: &Pool) -> MutexGuard<'_, Vec<Windows>> {
    pool.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Windows {
    fn new(compiled: &Compiled, grid: &Grid<'_>) -> Result<Windows, Stop> {
        let (launch, fixed) = (grid.launch, grid.image.static_shared);
        let dynamic = launch.dynamic_shared;
        let shared = if dynamic > 0 { fixed.next_multiple_of(16) + dynamic } else { fixed };
        let shared = Allocation::new(u64::from(shared), 1024, Kind::Shared, "").map_err(Stop::Exhausted)?;
        let threads = launch.block.iter().product::<u32>();
        let warps = threads.div_ceil(32);
        let stride = if compiled.uses_local { u64::from(launch.stack_limit.next_multiple_of(64)) } else { 0 };
        let local = Allocation::new(stride * 32 * u64::from(warps), 256, Kind::Local, "").map_err(Stop::Exhausted)?;
        let mut this = Windows {
            shared,
            local,
            warps: Vec::new(),
            sites: vec![[1, 0]; compiled.sites.len()],
            launch: grid.started,
        };
        for w in 0..warps {
            this.add_warp(compiled, grid, w, threads, stride);
        }
        Ok(this)
    }

    fn add_warp(&mut self, compiled: &Compiled, grid: &Grid<'_>, w: u32, threads: u32, stride: u64) {
        let launch = grid.launch;
        let [x, y, _] = launch.block;
        let mut tid = [[0; LANES]; 3];
        for lane in 0..32 {
            let t = w * 32 + lane;
            tid[0][lane as usize] = t % x;
            tid[1][lane as usize] = t / x % y;
            tid[2][lane as usize] = t / (x * y);
        }
        let mut save = vec![Row::ZERO; (compiled.save_size as usize).div_ceil(128) + 1];
        let ctx = WarpCtx {
            tid,
            host: 0,
            helpers: 0,
            shared: self.shared.block.base(),
            shared_size: self.shared.block.len() as u64,
            local: self.local.block.base() + u64::from(w) * 32 * stride,
            local_stride: stride,
            params: grid.params().block.base(),
            sites: 0,
            functions: compiled.functions.as_ptr().expose_provenance() as u64,
            save: save.as_mut_ptr().expose_provenance() as u64,
            stack_end: 0,
            globals: grid.image.addresses.as_ptr().expose_provenance() as u64,
            block: launch.block,
            grid: launch.grid,
            cta: [0; 3],
            resume: 0,
            alive: alive(w, threads),
            warp: w,
            dynamic_shared: launch.dynamic_shared,
            barrier: [0; 2],
        };
        self.warps.push(Warp { ctx: Box::new(ctx), _save: save, done: false, waiting: false });
    }

    /// Makes them fit for another CTA: shared memory begins as zeros.
    fn renew(&mut self, cta: [u32; 3], threads: u32) {
        let size = self.shared.block.len();
        if size > 0 {
            mem::fill(&self.shared.block, self.shared.block.base(), &[0], size);
        }
        for (w, warp) in self.warps.iter_mut().enumerate() {
            (warp.done, warp.waiting) = (false, false);
            let ctx = &mut *warp.ctx;
            (ctx.cta, ctx.resume, ctx.alive) = (cta, 0, alive(w as u32, threads));
        }
    }
}

/// Lanes of a warp that exist.
fn alive(warp: u32, threads: u32) -> u32 {
    match threads - warp * 32 {
        left if left >= 32 => u32::MAX,
        left => (1 << left) - 1,
    }
}

impl<'a> SimdCta<'a> {
    /// Begins a CTA.
    pub fn new(
        compiled: Arc<Compiled>,
        grid: &'a Grid<'a>,
        pool: &'a Pool,
        cta: [u32; 3],
    ) -> Result<SimdCta<'a>, Stop> {
        let launch = grid.started;
        let found = {
            let mut pool = lock(pool);
            pool.retain(|w| w.launch == launch);
            pool.pop()
        };
        let mut windows = match found {
            Some(windows) => windows,
            None => Windows::new(&compiled, grid)?,
        };
        windows.renew(cta, grid.launch.block.iter().product());
        let (shared, local) = (windows.shared.clone(), windows.local.clone());
        let host = Box::new(Host { grid, compiled, cta, shared, local, stopped: RefCell::new(None) });
        Ok(SimdCta { host, windows: Some(windows), pool, helpers: thunk::table() })
    }

    fn warps(&mut self) -> &mut [Warp] {
        self.windows.as_mut().map_or(&mut [], |w| &mut w.warps)
    }

    /// Opens barriers at which enough threads wait. Returns whether any opened.
    fn open_barriers(&mut self) -> bool {
        let mut opened = false;
        for id in 0..16 {
            let at = |w: &Warp| w.waiting && w.ctx.barrier[0] == id;
            let warps = self.warps();
            let Some(expected) = warps.iter().find(|w| at(w)).map(|w| w.ctx.barrier[1]) else { continue };
            let arrived: u32 = warps.iter().filter(|w| at(w)).count() as u32 * 32;
            let complete = match expected {
                0 => warps.iter().all(|w| w.done || at(w)),
                n => arrived >= n,
            };
            if complete {
                warps.iter_mut().filter(|w| w.waiting && w.ctx.barrier[0] == id).for_each(|w| w.waiting = false);
                opened = true;
            }
        }
        opened
    }
}

impl Cta for SimdCta<'_> {
    fn run(&mut self, fuel: u64) -> Result<Progress, Stop> {
        if self.host.compiled.recursive {
            return stacker::grow(HOST_STACK[1] + (1 << 20), || self.rounds(fuel, HOST_STACK[1]));
        }
        self.rounds(fuel, HOST_STACK[0])
    }
}

impl Drop for SimdCta<'_> {
    fn drop(&mut self) {
        // Windows of a CTA that was stopped in the middle are not fit for another.
        let done = self.warps().iter().all(|w| w.done);
        if let Some(windows) = self.windows.take().filter(|_| done) {
            lock(self.pool).push(windows);
        }
    }
}

impl SimdCta<'_> {
    /// Lets every warp run until it waits, opens barriers, and so on.
    fn rounds(&mut self, fuel: u64, stack: usize) -> Result<Progress, Stop> {
        let stack_end = enter::stack_pointer() - stack as u64;
        let host = std::ptr::from_ref::<Host<'_>>(&self.host).expose_provenance() as u64;
        let helpers = self.helpers.as_ptr().expose_provenance() as u64;
        let Some(windows) = &mut self.windows else { return Ok(Progress::Done) };
        let sites = windows.sites.as_mut_ptr().expose_provenance() as u64;
        for warp in &mut windows.warps {
            let ctx = &mut *warp.ctx;
            (ctx.host, ctx.helpers, ctx.sites, ctx.stack_end) = (host, helpers, sites, stack_end);
        }
        for _ in 0..=fuel {
            for i in 0..self.warps().len() {
                let warp = &mut self.warps()[i];
                if warp.done || warp.waiting {
                    continue;
                }
                let compiled = self.host.compiled.clone();
                let warp = &mut self.warps()[i];
                match enter::enter(&compiled, &mut warp.ctx) {
                    status::DONE => warp.done = true,
                    status::BARRIER => warp.waiting = true,
                    status::YIELD => {}
                    _ => {
                        let stop = self.host.stopped.borrow_mut().take();
                        return Err(stop.unwrap_or_else(|| Stop::Bug(Bug("code stopped without a reason".into()))));
                    }
                }
            }
            if self.warps().iter().all(|w| w.done) {
                return Ok(Progress::Done);
            }
            if !self.open_barriers() && self.warps().iter().all(|w| w.done || w.waiting) {
                return Err(self.deadlock());
            }
        }
        Ok(Progress::More)
    }

    fn deadlock(&mut self) -> Stop {
        let threads: u32 = self.host.grid.launch.block.iter().product();
        let cta = self.host.cta;
        let fault = |kind| {
            Stop::Fault(Box::new(Fault { kind, thread: [0; 3], cta, at: None, stack: Vec::new(), notes: Vec::new() }))
        };
        if let Some(w) = self.warps().iter().find(|w| w.waiting && w.ctx.barrier[1] > threads) {
            let [id, expected] = w.ctx.barrier;
            return fault(FaultKind::Barrier(format!(
                "barrier {id} waits for {expected} threads in a CTA of {threads}"
            )));
        }
        let waiting = self.warps().iter().filter(|w| w.waiting);
        let who: Vec<String> =
            waiting.map(|w| format!("warp {} at barrier {}", w.ctx.warp, w.ctx.barrier[0])).collect();
        fault(FaultKind::Deadlock(who.join(", ")))
    }
}

impl Host<'_> {
    /// Keeps the reason for a stop.
    pub fn stop(&self, stop: Stop) -> u32 {
        self.stopped.borrow_mut().get_or_insert(stop);
        status::STOP
    }

    fn fault_at(&self, ctx: &WarpCtx, site: usize, lane: u32, kind: FaultKind, notes: Vec<String>) -> Stop {
        let site = &self.compiled.sites[site];
        let func = &self.grid.image.ir.funcs[site.func as usize];
        let place = func.places.get(site.at as usize).copied().unwrap_or_default();
        Stop::Fault(Box::new(Fault {
            kind,
            thread: [0, 1, 2].map(|d| ctx.tid[d][lane as usize]),
            cta: self.cta,
            at: Some((FuncId(site.func), place)),
            stack: Vec::new(),
            notes,
        }))
    }

    /// The fault of a site that the code found itself.
    pub fn fault(&self, ctx: &WarpCtx, site: usize, lane: u32) -> Stop {
        let what = match &self.compiled.sites[site].kind {
            SiteKind::Fault(what) => *what,
            _ => "an effect",
        };
        let kind = match what {
            "trap" => FaultKind::Trap,
            "stack overflow" => FaultKind::Stack("the host's stack for device calls is full".into()),
            w if w.contains("barrier") || w.contains("warp operation") => {
                FaultKind::Barrier(format!("lane {lane}: {w}"))
            }
            w => FaultKind::BadTarget(w.into()),
        };
        self.fault_at(ctx, site, lane, kind, Vec::new())
    }

    /// Checks every active lane's access; gives the range (start, length) that the first one lies in.
    pub fn check(
        &self,
        ctx: &WarpCtx,
        site: usize,
        mask: u32,
        addresses: &[u64; LANES],
    ) -> Result<[u64; 2], Box<Stop>> {
        let SiteKind::Access { size, write, space, .. } = self.compiled.sites[site].kind else {
            return Err(Box::new(Stop::Bug(Bug("a check at a site without an access".into()))));
        };
        let mut range = [1, 0];
        for lane in (0..32).filter(|l| mask >> l & 1 == 1) {
            let address = addresses[lane as usize];
            let access = |address| Access { write, address, size, space };
            let align = u64::from(size.next_power_of_two().min(32));
            let found = self.window(ctx, lane, address, space);
            let Some((start, length, writable)) =
                found.filter(|(s, l, _)| address - s <= *l && u64::from(size) <= l - (address - s))
            else {
                let relative = match space {
                    ".shared" => address.wrapping_sub(self.shared.block.base()),
                    ".local" => address.wrapping_sub(ctx.local + u64::from(lane) * ctx.local_stride),
                    _ => address,
                };
                let notes = vec![self.grid.memory.describe(address)];
                return Err(Box::new(self.fault_at(ctx, site, lane, FaultKind::OutOfBounds(access(relative)), notes)));
            };
            if !address.is_multiple_of(align) {
                return Err(Box::new(self.fault_at(
                    ctx,
                    site,
                    lane,
                    FaultKind::Misaligned(access(address)),
                    Vec::new(),
                )));
            }
            if write && !writable {
                return Err(Box::new(self.fault_at(ctx, site, lane, FaultKind::ReadOnly(access(address)), Vec::new())));
            }
            if range[1] == 0 {
                range = [start, length];
            }
        }
        Ok(range)
    }

    /// The memory around an address: start, length, writable.
    fn window(&self, ctx: &WarpCtx, lane: u32, address: u64, space: &str) -> Option<(u64, u64, bool)> {
        let inside = |a: &Allocation| a.block.contains(address, 1);
        match space {
            ".shared" => {
                return Some((self.shared.block.base(), self.shared.block.len() as u64, true))
                    .filter(|(s, ..)| address >= *s);
            }
            ".local" => {
                let start = ctx.local + u64::from(lane) * ctx.local_stride;
                return (address >= start && address < start + ctx.local_stride)
                    .then(|| (ctx.local, 32 * ctx.local_stride, true));
            }
            _ => {}
        }
        if space == "generic" {
            for a in [&self.shared, &self.local] {
                if inside(a) {
                    return Some((a.block.base(), a.block.len() as u64, true));
                }
            }
        }
        let a = self.grid.memory.find(address)?;
        Some((a.block.base(), a.block.len() as u64, a.kind.writable()))
    }

    /// A pure row by its semantic function.
    pub fn pure(&self, site: usize, mask: u32, input: &[Row], output: &mut [Row]) {
        let site_data = &self.compiled.sites[site];
        let (SiteKind::Pure { srcs, .. }, Some(f)) = (&site_data.kind, self.compiled.pure[site]) else { return };
        let func = &self.grid.image.ir.funcs[site_data.func as usize];
        let variant = func.variant(&func.insts[site_data.inst as usize]);
        let mut slices: [&[Row]; 12] = [&[]; 12];
        let mut at = 0;
        for (slice, bits) in slices.iter_mut().zip(srcs) {
            *slice = &input[at..at + lanes::rows(*bits)];
            at += lanes::rows(*bits);
        }
        f(variant, mask, &slices[..srcs.len().min(12)], output);
    }
}
