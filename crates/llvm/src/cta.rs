//! A CTA in flight: its warps, windows and barriers, and what its helpers find when code comes back to the host.

use crate::{
    compile::Compiled,
    ctx::{WarpCtx, status},
    emit::SiteKind,
    enter, thunk,
};
use margay_exec::{
    Access, Bug, Cta, Fault, FaultKind, Grid, LANES, Progress, Row, Stop, lanes,
    mem::{Allocation, Kind},
};
use margay_ir::FuncId;
use std::{cell::RefCell, sync::Arc};

/// Host stack that device calls may use, in bytes; the engine runs CTAs on threads that have it.
pub const HOST_STACK: u64 = 1 << 20;

/// The host's side of a CTA.
pub struct Host<'a> {
    pub grid: &'a Grid<'a>,
    pub compiled: Arc<Compiled>,
    pub cta: [u32; 3],
    pub shared: Arc<Allocation>,
    pub local: Arc<Allocation>,
    stopped: RefCell<Option<Stop>>,
}

/// A CTA in flight.
pub struct SimdCta<'a> {
    host: Box<Host<'a>>,
    warps: Vec<Warp>,
    helpers: [usize; 4],
    sites: Vec<[u64; 2]>,
}

struct Warp {
    ctx: Box<WarpCtx>,
    /// Registers across barriers; kept here, pointed to by `ctx`.
    _save: Vec<Row>,
    done: bool,
    waiting: bool,
}

impl<'a> SimdCta<'a> {
    /// Begins a CTA.
    pub fn new(compiled: Arc<Compiled>, grid: &'a Grid<'a>, cta: [u32; 3]) -> Result<SimdCta<'a>, Stop> {
        let launch = grid.launch;
        let threads = launch.block.iter().product::<u32>();
        let warps = threads.div_ceil(32);
        let dynamic_at = grid.image.static_shared.next_multiple_of(16);
        let shared_size = u64::from(if launch.dynamic_shared > 0 {
            dynamic_at + launch.dynamic_shared
        } else {
            grid.image.static_shared
        });
        let shared = Allocation::new(shared_size, 1024, Kind::Shared, "").map_err(Stop::Exhausted)?;
        let stride = u64::from(launch.stack_limit.next_multiple_of(64));
        let local = Allocation::new(stride * 32 * u64::from(warps), 256, Kind::Local, "").map_err(Stop::Exhausted)?;
        let host = Box::new(Host { grid, compiled: compiled.clone(), cta, shared, local, stopped: RefCell::new(None) });
        let mut this =
            SimdCta { host, warps: Vec::new(), helpers: thunk::table(), sites: vec![[1, 0]; compiled.sites.len()] };
        for w in 0..warps {
            this.add_warp(w, threads, stride);
        }
        Ok(this)
    }

    fn add_warp(&mut self, w: u32, threads: u32, stride: u64) {
        let launch = self.host.grid.launch;
        let [x, y, _] = launch.block;
        let mut tid = [[0; LANES]; 3];
        for lane in 0..32 {
            let t = w * 32 + lane;
            tid[0][lane as usize] = t % x;
            tid[1][lane as usize] = t / x % y;
            tid[2][lane as usize] = t / (x * y);
        }
        let mut save = vec![Row::ZERO; (self.host.compiled.save_size as usize).div_ceil(128) + 1];
        let left = threads - w * 32;
        let ctx = WarpCtx {
            tid,
            host: 0,
            helpers: 0,
            shared: self.host.shared.block.base(),
            shared_size: self.host.shared.block.len() as u64,
            local: self.host.local.block.base() + u64::from(w) * 32 * stride,
            local_stride: stride,
            params: self.host.grid.params().block.base(),
            sites: 0,
            functions: self.host.compiled.functions.as_ptr().expose_provenance() as u64,
            save: save.as_mut_ptr().expose_provenance() as u64,
            stack_end: 0,
            globals: self.host.grid.image.addresses.as_ptr().expose_provenance() as u64,
            block: launch.block,
            grid: launch.grid,
            cta: self.host.cta,
            resume: 0,
            alive: if left >= 32 { u32::MAX } else { (1 << left) - 1 },
            warp: w,
            dynamic_shared: launch.dynamic_shared,
            exited: 0,
            barrier: [0; 2],
            barrier_result: 0,
        };
        self.warps.push(Warp { ctx: Box::new(ctx), _save: save, done: false, waiting: false });
    }

    /// Opens barriers at which enough threads wait. Returns whether any opened.
    fn open_barriers(&mut self) -> bool {
        let mut opened = false;
        for id in 0..16 {
            let at = |w: &Warp| w.waiting && w.ctx.barrier[0] == id;
            let Some(expected) = self.warps.iter().find(|w| at(w)).map(|w| w.ctx.barrier[1]) else { continue };
            let arrived: u32 = self.warps.iter().filter(|w| at(w)).count() as u32 * 32;
            let complete = match expected {
                0 => self.warps.iter().all(|w| w.done || at(w)),
                n => arrived >= n,
            };
            if complete {
                self.warps.iter_mut().filter(|w| w.waiting && w.ctx.barrier[0] == id).for_each(|w| w.waiting = false);
                opened = true;
            }
        }
        opened
    }
}

impl Cta for SimdCta<'_> {
    fn run(&mut self, fuel: u64) -> Result<Progress, Stop> {
        let mut rounds = 0;
        let stack_end = enter::stack_pointer() - HOST_STACK;
        loop {
            for i in 0..self.warps.len() {
                if self.warps[i].done || self.warps[i].waiting {
                    continue;
                }
                let host = std::ptr::from_ref::<Host<'_>>(&self.host).expose_provenance() as u64;
                let helpers = self.helpers.as_ptr().expose_provenance() as u64;
                let sites = self.sites.as_mut_ptr().expose_provenance() as u64;
                let warp = &mut self.warps[i];
                let ctx = &mut *warp.ctx;
                (ctx.host, ctx.helpers, ctx.sites, ctx.stack_end) = (host, helpers, sites, stack_end);
                match enter::enter(&self.host.compiled, ctx) {
                    status::DONE => warp.done = true,
                    status::BARRIER => warp.waiting = true,
                    status::YIELD => {}
                    _ => {
                        let stop = self.host.stopped.borrow_mut().take();
                        return Err(stop.unwrap_or_else(|| Stop::Bug(Bug("code stopped without a reason".into()))));
                    }
                }
            }
            if self.warps.iter().all(|w| w.done) {
                return Ok(Progress::Done);
            }
            rounds += 1;
            if rounds > fuel {
                return Ok(Progress::More);
            }
            if !self.open_barriers() && self.warps.iter().all(|w| w.done || w.waiting) {
                let stuck = self
                    .warps
                    .iter()
                    .filter(|w| w.waiting)
                    .map(|w| format!("warp {} at barrier {}", w.ctx.warp, w.ctx.barrier[0]));
                let who = stuck.collect::<Vec<_>>().join(", ");
                return Err(Stop::Fault(Box::new(Fault {
                    kind: FaultKind::Deadlock(who),
                    thread: [0; 3],
                    cta: self.host.cta,
                    at: None,
                    stack: Vec::new(),
                    notes: Vec::new(),
                })));
            }
        }
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
            w if w.contains("barrier") || w.contains("warp operation") => FaultKind::Barrier(w.into()),
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
        let SiteKind::Access { size, write, space } = self.compiled.sites[site].kind else {
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
            if address % align != 0 {
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
