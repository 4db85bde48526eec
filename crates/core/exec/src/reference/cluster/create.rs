//! Creates a cluster with its windows and warps, from the memory of earlier ones if there is some, and returns it.

use super::super::{
    ReferenceKernel,
    code::Code,
    ctx::Windows,
    in_flight::InFlight,
    pause::Pauses,
    polling::Polling,
    schedule::Random,
    spare::CtaMemory,
    state::{CtaState, Group, LocalWindows, Select, Warp, Yielding, Yields},
};
use super::{Cluster, Member};
use crate::{
    Bug, CtaEvent, Grid, LANES, Row, Stop,
    barrier::{BARRIERS, Barrier},
    coordinates,
    mem::{self, Allocation, Kind, Lookaside, Reach},
    thread_index,
};
use parking_lot::Mutex;
use std::{cell::Cell, sync::Arc};

/// Rows of scratch space for results, enough for any instruction.
const SCRATCH: usize = 256;

impl<'a> Cluster<'a> {
    /// Creates the cluster whose first CTA is `first`, with its windows and warps.
    pub fn new(kernel: Arc<ReferenceKernel>, grid: &'a Grid<'a>, first: [u32; 3]) -> Result<Cluster<'a>, Stop> {
        let launch = grid.launch;
        let size = launch.shape.cluster_size();
        let code = &kernel.code;
        let places = &code.image.ir.stage.funcs[code.kernel.0 as usize];
        let local_size = if code.local { places.local_size(launch.stack_limit) } else { 0 };
        // An odd multiple of 256, so that equal addresses of different lanes map to different cache sets.
        let stride = (u64::from(local_size).div_ceil(256) | 1) * 256;
        let mut members = Vec::new();
        for rank in 0..size.iter().product::<u32>() {
            let offset = coordinates(rank.into(), size);
            let id = std::array::from_fn(|d| first[d] + offset[d]);
            members.push(member(&kernel, grid, (id, rank), stride)?);
        }
        let shared: Vec<_> = members.iter().map(|m| m.state.shared.clone()).collect();
        let windows = Windows {
            tensor: shared.iter().map(|_| Mutex::default()).collect(),
            shared,
            local_size,
            stride,
            params: grid.params().block.base(),
            cluster: std::array::from_fn(|d| first[d] / size[d]),
            cluster_size: size,
        };
        if let Some(observer) = grid.observer {
            let extent = |a: &Arc<Allocation>| (a.block.base(), a.block.len() as u64);
            for m in &members {
                let each = LANES as u64 * stride;
                let locals: Vec<_> = m.warps.iter().filter_map(|w| Some((w.local.as_ref()?.base, each))).collect();
                observer.cta(&CtaEvent { cta: m.state.id, shared: extent(&m.state.shared), locals: &locals });
            }
        }
        let stream = u64::from(first[0]) | u64::from(first[1]) << 32 ^ u64::from(first[2]) << 48;
        Ok(Cluster {
            kernel,
            grid,
            windows,
            members,
            random: Random::new(launch.seed, stream),
            idle: 0,
            polling: Polling::default(),
            pauses: Pauses::default(),
        })
    }

    /// Returns the memory of the CTAs to the kernel's pool.
    pub(super) fn recycle(&mut self) {
        for m in self.members.drain(..) {
            let local = m.warps.first().and_then(|w| w.local.as_ref()).map(|l| l.memory.clone());
            let shared = Some(m.state.shared);
            self.kernel.spare.give(CtaMemory { warps: m.warps, shared, local, stride: self.windows.stride });
        }
    }
}

/// A CTA at the kernel's entry; the lanes' windows of local memory are `stride` bytes apart.
fn member(kernel: &ReferenceKernel, grid: &Grid<'_>, (id, rank): ([u32; 3], u32), stride: u64) -> Result<Member, Stop> {
    let (code, launch) = (&kernel.code, grid.launch);
    let shape = &launch.shape;
    let Some(entry) = code.funcs.get(code.kernel.0 as usize).and_then(Option::as_ref) else {
        let name = code.image.ir.func(code.kernel).name.to_string();
        return Err(Stop::Bug(Bug(format!("the kernel `{name}` has no body"))));
    };
    let reach = Reach::of(code.image.ir.address_size);
    let count = shape.threads().div_ceil(LANES as u32);
    let mut memories = kernel.spare.take(grid.shared_size(), stride, count as usize);
    let shared = match memories.shared.take() {
        Some(window) => {
            mem::fill(&window.block, window.block.base(), &[0], window.block.len());
            window
        }
        None => Allocation::new(reach, grid.shared_size(), 1024, Kind::Shared, "").map_err(Stop::Exhausted)?,
    };
    let local = match memories.local.take() {
        None if code.local => {
            let bytes = stride * LANES as u64 * u64::from(count);
            Some(Allocation::new(reach, bytes, 256, Kind::Local, "").map_err(Stop::Exhausted)?)
        }
        local => local,
    };
    let start = code.image.ir.stage.funcs[code.kernel.0 as usize].base;
    let end = u64::from(start) + u64::from(entry.frame_size);
    let mut warps = Vec::with_capacity(count as usize);
    for index in 0..count {
        let mut warp = memories.warps.pop().unwrap_or_else(new_warp);
        warp.local = local.clone().map(|memory| LocalWindows::of(memory, index, stride));
        begin(&mut warp, index, shape.block, code, start, end as u32);
        warps.push(warp);
    }
    let observed = launch.seed == 0 && launch.observe.is_some_and(|interest| interest.order);
    let yields = if observed { kernel.yields() } else { Yields::default() };
    let state = CtaState {
        id,
        rank,
        shared,
        barriers: vec![Barrier::new(count as usize); BARRIERS],
        dirty: false,
        effects: Cell::default(),
        freed: false,
        clock: 0,
        visits: Vec::new(),
        yielding: Yielding::new(yields, id),
    };
    Ok(Member { state, warps })
}

/// An unused warp.
pub fn new_warp() -> Warp {
    Warp {
        index: 0,
        tid: [Row::ZERO; 3],
        live: 0,
        frames: Vec::new(),
        free: Vec::new(),
        ready: Vec::new(),
        blocked: Vec::new(),
        cluster_arrived: 0,
        ended: false,
        turn: 0,
        spins: 0,
        slept: false,
        favored: (0, 0),
        local: None,
        local_high: 0,
        registers: Vec::new(),
        space: Vec::new(),
        stage: Vec::new(),
        scratch: vec![Row::ZERO; SCRATCH],
        select: Select::default(),
        lookaside: Lookaside::default(),
        in_flight: InFlight::default(),
    }
}

/// Sets `%tid` of a warp's lanes.
pub(in crate::reference) fn set_thread_indices(warp: &mut Warp, block: [u32; 3]) {
    for lane in 0..LANES {
        for (row, index) in warp.tid.iter_mut().zip(thread_index(block, warp.index, lane as u32)) {
            row.0[lane] = index;
        }
    }
}

/// Initializes a warp at the kernel's entry.
fn begin(warp: &mut Warp, index: u32, block: [u32; 3], code: &Code, base: u32, top: u32) {
    let threads = block.iter().product::<u32>();
    let left = threads - index * LANES as u32;
    let live = if left >= LANES as u32 { u32::MAX } else { (1 << left) - 1 };
    warp.index = index;
    set_thread_indices(warp, block);
    (warp.live, warp.turn, warp.spins, warp.favored) = (live, 0, 0, (0, 0));
    warp.local_high = top;
    warp.registers.resize(code.registers as usize, Row::ZERO);
    let rows = code.funcs[code.kernel.0 as usize].as_ref().map_or(0, |f| f.rows);
    let frame = warp.new_frame(code.kernel.0, rows, live);
    let f = &mut warp.frames[frame as usize];
    (f.base, f.top) = (Row([base; LANES]), Row([top; LANES]));
    warp.ready.push(Group { mask: live, frame, pc: 0, since: 0 });
}

/// Cleans a warp for reuse: zeroes its local memory and frees its frames.
pub fn clean(warp: &mut Warp, stride: u64) {
    if let Some(local) = &warp.local {
        for lane in 0..LANES as u64 {
            mem::fill(&local.memory.block, local.base + lane * stride, &[0], warp.local_high as usize);
        }
    }
    warp.free = (0..warp.frames.len() as u32).collect();
    warp.frames.iter_mut().for_each(|f| f.lanes = 0);
    warp.ready.clear();
    warp.blocked.clear();
    (warp.cluster_arrived, warp.ended, warp.slept) = (0, false, false);
    warp.lookaside = Lookaside::default();
}
