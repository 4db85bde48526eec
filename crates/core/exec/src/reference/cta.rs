//! A cluster in flight: its CTAs with their warps and windows, and the rounds in which they run.

use super::step::matrix::{abandoned, let_go};
use super::{
    Memories, ReferenceKernel,
    code::{BarrierKind, Code, NOWHERE},
    ctx::{Ctx, Windows, make_fault, write},
    pause::Pauses,
    polling::Polling,
    schedule::{Random, SPINS, pick},
    state::{CtaState, Group, Wait, Warp},
    step::warp::{Witness, recheck},
    step::watch::{MOST_CALLERS, callers},
};
use crate::{
    Actor, BarrierEvent, Count, Cta, CtaEvent, FaultKind, Grid, LANES, Progress, Row, Slice, Snapshot, Stop, SyncEvent,
    SyncKind,
    barrier::{BARRIERS, Barrier},
    deadlock::{Waiter, deadlock},
    mem::{self, Allocation, Kind, Lookaside, Reach},
};
use margay_ir::BlockId;
use std::{
    cell::Cell,
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Arc, Mutex},
};

/// Ops that a warp executes in one turn.
const QUANTUM: u64 = 1 << 14;
/// Rounds in which all warps only polled before the caller is told, since they may wait for another cluster.
const IDLE_ROUNDS: u32 = 16;
/// Rows of scratch space for results, enough for any instruction.
const SCRATCH: usize = 256;

/// One CTA of the cluster.
pub(super) struct Member {
    pub state: CtaState,
    pub warps: Vec<Warp>,
}

/// A cluster in flight.
pub struct Cluster<'a> {
    pub(super) kernel: Arc<ReferenceKernel>,
    pub(super) grid: &'a Grid<'a>,
    windows: Windows,
    pub(super) members: Vec<Member>,
    pub(super) random: Option<Random>,
    idle: u32,
    polling: Polling,
    pub(super) pauses: Pauses,
}

/// The outcome of a round.
#[derive(Default)]
pub(super) struct Round {
    /// Some group ran.
    pub ran: bool,
    /// Some group did more than poll memory.
    pub advanced: bool,
    /// Warp instructions.
    pub executed: u64,
}

/// The outcome of a warp's turn.
#[derive(PartialEq, Eq)]
enum Turn {
    /// No group was runnable.
    Nothing,
    /// It ran.
    Ran,
    /// It ran, but only polled memory.
    Polled,
}

impl<'a> Cluster<'a> {
    /// Creates the cluster whose first CTA is `first`, with its windows and warps.
    pub fn new(kernel: Arc<ReferenceKernel>, grid: &'a Grid<'a>, first: [u32; 3]) -> Result<Cluster<'a>, Stop> {
        let launch = grid.launch;
        let size = launch.shape.cluster_size();
        let code = &kernel.code;
        let threads = launch.shape.threads();
        let warps = threads.div_ceil(LANES as u32);
        let Some(entry) = code.funcs.get(code.kernel.0 as usize).and_then(Option::as_ref) else {
            let name = code.image.ir.func(code.kernel).name.to_string();
            return Err(Stop::Bug(crate::Bug(format!("the kernel `{name}` has no body"))));
        };
        let places = &code.image.ir.stage.funcs[code.kernel.0 as usize];
        let start = places.base;
        let local_size = if code.local { places.local_size(launch.stack_limit) } else { 0 };
        // An odd multiple of 256, so that equal addresses of different lanes map to different cache sets.
        let stride = (u64::from(local_size).div_ceil(256) | 1) * 256;
        let shared_size = grid.shared_size();
        let reach = Reach::of(code.image.ir.address_size);
        let mut members = Vec::new();
        let mut shared = Vec::new();
        for rank in 0..size.iter().product::<u32>() {
            let offset = [rank % size[0], rank / size[0] % size[1], rank / (size[0] * size[1])];
            let id = std::array::from_fn(|d| first[d] + offset[d]);
            let mut memories = kernel.take(shared_size, stride, warps as usize);
            let window = match memories.shared.take() {
                Some(window) => {
                    mem::fill(&window.block, window.block.base(), &[0], window.block.len());
                    window
                }
                None => Allocation::new(reach, shared_size, 1024, Kind::Shared, "").map_err(Stop::Exhausted)?,
            };
            shared.push(window.clone());
            let barriers = vec![Barrier::new(warps as usize); BARRIERS];
            let state = CtaState {
                id,
                rank,
                shared: window,
                barriers,
                dirty: false,
                effects: Cell::new(0),
                freed: false,
                clock: 0,
                visits: Vec::new(),
            };
            let mut list = Vec::with_capacity(warps as usize);
            for index in 0..warps {
                let mut warp = memories.warps.pop().unwrap_or_else(new_warp);
                if code.local && warp.local.is_none() {
                    let bytes = stride * LANES as u64;
                    warp.local = Some(Allocation::new(reach, bytes, 256, Kind::Local, "").map_err(Stop::Exhausted)?);
                }
                let end = u64::from(start) + u64::from(entry.frame_size);
                begin(&mut warp, index, launch.shape.block, code, start, end as u32);
                list.push(warp);
            }
            members.push(Member { state, warps: list });
        }
        let windows = Windows {
            tensor: shared.iter().map(|_| Mutex::default()).collect(),
            shared,
            local_size,
            stride,
            first_local: 0,
            params: grid.params().block.base(),
            cluster: std::array::from_fn(|d| first[d] / size[d]),
            cluster_size: size,
        };
        if let Some(observer) = grid.observer {
            let extent = |a: &Arc<Allocation>| (a.block.base(), a.block.len() as u64);
            for m in &members {
                let locals: Vec<_> = m.warps.iter().filter_map(|w| w.local.as_ref()).map(extent).collect();
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

    fn turn(&mut self, member: usize, warp: usize, quantum: u64) -> Result<(Turn, u64), Stop> {
        let code = &self.kernel.code;
        let Member { state, warps } = &mut self.members[member];
        let warp = &mut warps[warp];
        let mut stop = None;
        let (mut ran, mut executed, mut lanes) = (false, 0, 0);
        loop {
            if warp.ended {
                warp.ended = false;
                let_go(code, warp);
                recheck(code, warp, Witness::of(self.grid, state.id));
            }
            let Some(group) = pick(warp, &mut self.random) else {
                let within = |(_, why): &(Group, Wait)| matches!(why, Wait::Lanes { .. } | Wait::Warp);
                match incomplete(code, state, warp) {
                    // The warp's lanes wait for each other: no other thread can release them.
                    Some(stop) if warp.blocked.iter().all(within) => return Err(stop),
                    _ => break,
                }
            };
            let top = warp.frames[group.frame as usize].depth == 0;
            let counted = top && !state.visits.is_empty();
            let stop_at = if top { self.pauses.stop_at() } else { NOWHERE };
            if group.pc == stop_at {
                warp.blocked.push((group, Wait::Pause));
                continue;
            }
            ran = true;
            let Some(mut ctx) = Ctx::new(code, self.grid, &self.windows, state, warp, &group) else { break };
            (ctx.random, ctx.top, ctx.stop_at) = (self.random.is_some(), counted, stop_at);
            (ctx.executed, ctx.lanes) = (executed, lanes);
            ctx.run(quantum);
            (executed, lanes) = (ctx.executed, ctx.lanes);
            stop = ctx.stop.take();
            // Barriers are released between two groups of the warp, before any continues.
            if stop.is_some() || executed >= quantum || state.dirty || warp.spins >= SPINS || warp.slept {
                break;
            }
        }
        state.clock += executed;
        if let Some(counts) = self.grid.counts {
            counts.add(Count::Instructions, executed);
            counts.add(Count::Lanes, lanes);
        }
        // A warp that sleeps without polling memory does not wait for another one.
        let polled = warp.spins >= SPINS || warp.slept && warp.spins > 0;
        if (polled || warp.slept) && warp.ready.len() < 2 {
            (warp.spins, warp.slept) = (0, false);
        }
        match stop {
            Some(stop) => Err(stop),
            None if polled => Ok((Turn::Polled, executed)),
            None => Ok((if ran { Turn::Ran } else { Turn::Nothing }, executed)),
        }
    }

    /// Gives every warp a turn of at most about `most` ops.
    pub(super) fn round(&mut self, most: u64) -> Result<Round, Stop> {
        let mut round = Round::default();
        for member in 0..self.members.len() {
            let count = self.members[member].warps.len();
            let (skip, quantum) = match &mut self.random {
                Some(random) => (random.below(count as u64) as usize, 1 + random.below(512)),
                None => (0, QUANTUM.min(most)),
            };
            for i in 0..count {
                let warp = (i + skip) % count;
                if self.members[member].warps[warp].ready.is_empty() && !self.members[member].warps[warp].ended {
                    continue;
                }
                // Lanes that a barrier does not hold have the rest of the warp's turn, unless it opens for others.
                let mut left = quantum;
                loop {
                    let (turn, executed) = self.turn(member, warp, left)?;
                    round.executed += executed;
                    left = left.saturating_sub(executed);
                    round.ran |= turn != Turn::Nothing;
                    round.advanced |= turn == Turn::Ran;
                    let met = self.members[member].state.dirty;
                    let opened = met && self.settle(member);
                    if !met || opened || turn != Turn::Ran || left == 0 || self.random.is_some() {
                        break;
                    }
                }
            }
        }
        Ok(round)
    }

    /// Releases the barriers of a CTA that are complete; whether one is, or the cluster's.
    pub(super) fn settle(&mut self, member: usize) -> bool {
        let mut opened = false;
        let code = &self.kernel.code;
        let Member { state, warps } = &mut self.members[member];
        state.dirty = false;
        if std::mem::take(&mut state.freed) {
            warps.iter_mut().for_each(retry);
        }
        for id in 0..state.barriers.len() {
            if !state.barriers[id].is_complete(warps.iter().map(|w| w.live)) {
                continue;
            }
            opened = true;
            let barrier = &mut state.barriers[id];
            if let Some(observer) = self.grid.observer {
                let waited = |w: &Warp| {
                    let here = w.blocked.iter().filter(|(_, why)| *why == Wait::Barrier(id as u32));
                    here.fold(0, |m, (g, _)| m | g.mask)
                };
                let (arrived, all) = barrier.participants();
                let waited: Vec<u32> = warps.iter().map(waited).collect();
                let live: Vec<u32> = warps.iter().map(|w| w.live).collect();
                let id = id as u32;
                observer.barrier(&BarrierEvent { cta: state.id, id, all, arrived, waited: &waited, live: &live });
            }
            for warp in warps.iter_mut() {
                release(code, warp, Wait::Barrier(id as u32), Some(barrier));
            }
            barrier.reset();
        }
        self.settle_cluster() || opened
    }

    /// Completes the phase of the cluster barrier when all threads that have not exited have arrived; whether they had.
    fn settle_cluster(&mut self) -> bool {
        let warps = || self.members.iter().flat_map(|m| &m.warps);
        if warps().all(|w| w.cluster_arrived == 0) || warps().any(|w| w.live & !w.cluster_arrived != 0) {
            return false;
        }
        let code = &self.kernel.code;
        for Member { state, warps } in &mut self.members {
            for warp in warps {
                warp.cluster_arrived = 0;
                if let Some(observer) = self.grid.observer {
                    let passed = warp.blocked.iter().filter(|(_, why)| *why == Wait::Cluster);
                    for (g, _) in passed {
                        let Some(func) = code.funcs[warp.frames[g.frame as usize].func as usize].as_ref() else {
                            continue;
                        };
                        let (at, callers) =
                            ((func.id, func.place(g.pc)), callers(&code.funcs, warp, g.frame, MOST_CALLERS));
                        let actor = Actor { cta: state.id, warp: warp.index, lanes: g.mask, at, callers: &callers };
                        observer.sync(&SyncEvent { actor, kind: SyncKind::ClusterPassed });
                    }
                }
                release(code, warp, Wait::Cluster, None);
            }
        }
        true
    }

    /// Number of side effects so far.
    fn effects(&self) -> u64 {
        self.members.iter().map(|m| m.state.effects.get()).sum()
    }

    /// A round whose turns are in order, as without a seed.
    fn round_in_order(&mut self) -> Result<Round, Stop> {
        let random = self.random.take();
        let round = self.round(QUANTUM);
        self.random = random;
        round
    }

    fn is_done(&self) -> bool {
        self.members.iter().all(|m| m.warps.iter().all(|w| w.live == 0))
    }

    /// A hash of what decides how the cluster goes on, except for memory.
    fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for w in self.members.iter().flat_map(|m| &m.warps) {
            w.live.hash(&mut hasher);
            let groups = w.ready.iter().chain(w.blocked.iter().map(|(g, _)| g));
            let mut places: Vec<(u32, u32, u32)> = groups.map(|g| (g.frame, g.pc, g.mask)).collect();
            places.sort_unstable();
            places.hash(&mut hasher);
            for frame in w.frames.iter().filter(|f| f.lanes != 0) {
                hasher.write(bytemuck::cast_slice(&frame.regs));
            }
        }
        hasher.finish()
    }

    /// The fault of threads that all wait: a matrix instruction that not all lanes of a warp execute, or a deadlock.
    fn deadlock(&self) -> Stop {
        let code = &self.kernel.code;
        let mut waiters = Vec::new();
        for m in &self.members {
            for w in &m.warps {
                if let Some(stop) = incomplete(code, &m.state, w) {
                    return stop;
                }
                let blocked = w.blocked.iter().map(|(g, why)| (g, Some(*why)));
                waiters.extend(blocked.chain(w.ready.iter().map(|g| (g, None))).map(|(g, why)| Waiter {
                    cta: m.state.id,
                    warp: w.index,
                    lanes: g.mask,
                    what: waits_for(code, m, w, (g.frame, g.pc), why),
                    source: (m, w, g),
                }));
            }
        }
        let (kind, notes, first) = deadlock(waiters);
        let Some(Waiter { lanes, source: (m, w, g), .. }) = first else {
            return Stop::Bug(crate::Bug("no lane runs and no lane waits".into()));
        };
        let lane = lanes.trailing_zeros() as usize;
        Stop::Fault(Box::new(make_fault(code, &m.state, w, (g.frame, g.pc), lane, kind, notes)))
    }

    /// Returns the memory of the CTAs to the kernel's pool.
    fn recycle(&mut self) {
        for m in self.members.drain(..) {
            self.kernel.give(Memories { warps: m.warps, shared: Some(m.state.shared), stride: self.windows.stride });
        }
    }
}

/// The fault of a warp of which some lanes wait for the rest at a matrix instruction, if that never comes.
fn incomplete(code: &Code, state: &CtaState, warp: &Warp) -> Option<Stop> {
    let (g, what) = abandoned(code, warp)?;
    let lane = g.mask.trailing_zeros() as usize;
    let fault = make_fault(code, state, warp, (g.frame, g.pc), lane, FaultKind::Barrier(what), Vec::new());
    Some(Stop::Fault(Box::new(fault)))
}

/// What a group waits for, and where.
fn waits_for(code: &Code, m: &Member, w: &Warp, (frame, pc): (u32, u32), why: Option<Wait>) -> String {
    let what = match why {
        None => return format!("poll memory{}", position(code, w, frame, pc)),
        Some(Wait::Lanes { members, .. }) => format!("for the other lanes of member mask {members:#010x}"),
        Some(Wait::Warp) => "for the other lanes of the warp".to_owned(),
        Some(Wait::TensorMemory) => "for free columns of tensor memory".to_owned(),
        Some(Wait::Barrier(id)) => m.state.barriers[id as usize].describe(id as usize),
        Some(Wait::Cluster) => "at the cluster barrier".to_owned(),
        Some(Wait::Pause) => "for the other threads of the CTA".to_owned(),
    };
    format!("wait {what}{}", position(code, w, frame, pc))
}

fn position(code: &Code, w: &Warp, frame: u32, pc: u32) -> String {
    let func = w.frames.get(frame as usize).and_then(|f| code.funcs.get(f.func as usize)?.as_ref());
    func.map_or(String::new(), |func| {
        let line = func.func.source.lines.line(func.place(pc).span.start);
        format!(" in `{}`, line {line}", func.func.name)
    })
}

/// Makes groups that wait for tensor memory ready again, since columns were freed.
fn retry(warp: &mut Warp) {
    for (g, why) in std::mem::take(&mut warp.blocked) {
        match why {
            Wait::TensorMemory => warp.ready.push(g),
            _ => warp.blocked.push((g, why)),
        }
    }
}

/// Releases the groups that wait for `what`.
fn release(code: &Code, warp: &mut Warp, what: Wait, barrier: Option<&Barrier>) {
    for (mut g, why) in std::mem::take(&mut warp.blocked) {
        if why != what {
            warp.blocked.push((g, why));
            continue;
        }
        let frame = &mut warp.frames[g.frame as usize];
        let func = code.funcs.get(frame.func as usize).and_then(Option::as_ref);
        if let (Some(b), Some(func)) = (barrier, func)
            && let Some(op) = func.ops.get(g.pc as usize)
            && let Some(table) = func.barriers.get(op.x as usize)
            && let (BarrierKind::Red(mode), Some(d)) = (table.kind, table.dst)
        {
            let value = b.reduction(mode);
            write(&mut frame.regs, &mut warp.select, d, &[value.into(); LANES], g.mask);
        }
        g.pc += 1;
        g.since = warp.turn;
        warp.ready.push(g);
    }
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
        select: super::state::Select::default(),
        lookaside: Lookaside::default(),
    }
}

/// Initializes a warp at the kernel's entry.
fn begin(warp: &mut Warp, index: u32, block: [u32; 3], code: &Code, base: u32, top: u32) {
    let threads = block.iter().product::<u32>();
    let left = threads - index * LANES as u32;
    let live = if left >= LANES as u32 { u32::MAX } else { (1 << left) - 1 };
    for lane in 0..LANES {
        let t = index * LANES as u32 + lane as u32;
        warp.tid[0].0[lane] = t % block[0];
        warp.tid[1].0[lane] = t / block[0] % block[1];
        warp.tid[2].0[lane] = t / (block[0] * block[1]);
    }
    (warp.index, warp.live, warp.turn, warp.spins, warp.favored) = (index, live, 0, 0, (0, 0));
    warp.local_high = top;
    warp.registers.resize(code.registers as usize, Row::ZERO);
    let rows = code.funcs[code.kernel.0 as usize].as_ref().map_or(0, |f| f.rows);
    let frame = warp.new_frame(code.kernel.0, rows, live);
    let f = &mut warp.frames[frame as usize];
    (f.base, f.top) = (Row([base; LANES]), Row([top; LANES]));
    warp.ready.push(Group { mask: live, frame, pc: 0, since: 0 });
}

impl Cta for Cluster<'_> {
    fn stuck(&mut self) -> Stop {
        self.deadlock()
    }

    fn pause(&mut self, fuel: u64, header: Option<BlockId>) -> Result<Option<Snapshot>, Stop> {
        self.stop_at_loop(fuel, header)
    }

    fn run(&mut self, fuel: u64) -> Result<Slice, Stop> {
        let mut spent = 0;
        let progress = loop {
            let in_order = self.random.is_some() && self.polling.is_quiet();
            let round = if in_order { self.round_in_order() } else { self.round(fuel) };
            let Round { ran, advanced, executed } = round?;
            spent += executed;
            self.polling.ran(self.effects(), executed);
            if self.is_done() {
                self.recycle();
                break Progress::Done;
            }
            if !ran {
                for member in 0..self.members.len() {
                    self.settle(member);
                }
                if self.members.iter().all(|m| m.warps.iter().all(|w| w.ready.is_empty())) {
                    return Err(self.deadlock());
                }
            }
            self.idle = if advanced { 0 } else { self.idle + 1 };
            if self.idle >= IDLE_ROUNDS {
                self.idle = 0;
                break match self.polling.only_polls() {
                    false => Progress::More,
                    true => Progress::Waiting(self.polling.repeats(self.fingerprint())),
                };
            }
            // Rounds in which all warps only poll are counted to the end.
            if spent >= fuel && (self.idle == 0 || !in_order) {
                break Progress::More;
            }
        };
        Ok(Slice { progress, executed: spent.min(fuel) })
    }
}

/// Cleans a warp for reuse: zeroes its local memory and frees its frames.
pub fn clean(warp: &mut Warp, stride: u64) {
    if let Some(local) = &warp.local {
        for lane in 0..LANES as u64 {
            mem::fill(&local.block, local.block.base() + lane * stride, &[0], warp.local_high as usize);
        }
    }
    warp.free = (0..warp.frames.len() as u32).collect();
    warp.frames.iter_mut().for_each(|f| f.lanes = 0);
    warp.ready.clear();
    warp.blocked.clear();
    (warp.cluster_arrived, warp.ended, warp.slept) = (0, false, false);
    warp.lookaside = Lookaside::default();
}
