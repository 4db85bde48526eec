//! A cluster in flight: its CTAs with their warps and windows, and the rounds in which they run.

mod create;
mod waits;

pub(super) use create::set_thread_indices;
pub use create::{clean, new_warp};

use super::{
    ReferenceKernel,
    code::{BarrierKind, Code},
    ctx::{Ctx, Windows, write},
    pause::Pauses,
    polling::{Effects, Polling},
    schedule::{Random, SPINS, pick},
    state::{CtaState, Group, Wait, Warp},
    step::matrix::release_converging,
    step::warp::{Witness, recheck},
    step::watch::{MAX_CALLERS, callers},
};
use crate::{
    Actor, BarrierEvent, Count, Cta, Grid, LANES, Progress, Slice, Snapshot, Stop, SyncEvent, SyncKind,
    barrier::Barrier,
};
use margay_ir::BlockId;
use std::sync::Arc;
use waits::incomplete;

/// Ops that a warp executes in one turn.
const QUANTUM: u64 = 1 << 14;
/// The limit of a random turn is a power of two with an exponent below this.
const RANDOM_MAGNITUDES: u64 = 10;
/// Rounds in which all warps only polled before control returns to the caller, since they may wait for another cluster, and those of random turns.
const IDLE_ROUNDS: u32 = 16;
const IDLE_RANDOM_ROUNDS: u32 = 2;

/// One CTA of the cluster.
pub(super) struct Member {
    pub state: CtaState,
    pub warps: Vec<Warp>,
}

/// A cluster in flight.
pub struct Cluster<'a> {
    pub(super) kernel: Arc<ReferenceKernel>,
    pub(super) grid: &'a Grid<'a>,
    pub(super) windows: Windows,
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
    /// Some group polled memory for as long as one does that waits.
    polled: bool,
    /// Some group neither polled memory nor slept.
    awake: bool,
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
    /// The same, in a random turn that was too short to decide it.
    Looked,
    /// It ran until it slept.
    Slept,
}

impl<'a> Cluster<'a> {
    fn turn(&mut self, member: usize, warp: usize, quantum: u64) -> Result<(Turn, u64), Stop> {
        let code = &self.kernel.code;
        let Member { state, warps } = &mut self.members[member];
        let warp = &mut warps[warp];
        let (before, effects) = (warp.spins, state.effects.get());
        let mut stop = None;
        let (mut ran, mut executed, mut lanes) = (false, 0, 0);
        loop {
            if warp.ended {
                warp.ended = false;
                release_converging(code, warp);
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
            let (counted, stop_at) = (!state.visits.is_empty(), self.pauses.stop_at());
            if group.pc == stop_at && warp.frames[group.frame as usize].depth == 0 {
                warp.blocked.push((group, Wait::Pause));
                continue;
            }
            ran = true;
            let Some(mut ctx) = Ctx::new(code, self.grid, &self.windows, state, warp, &group) else { break };
            (ctx.random, ctx.counted, ctx.stop_at) = (self.random.is_some(), counted, stop_at);
            (ctx.executed, ctx.lanes) = (executed, lanes);
            ctx.run(quantum);
            (executed, lanes) = (ctx.executed, ctx.lanes);
            stop = ctx.stop.take();
            // Barriers are released between two groups of the warp, before any continues.
            let yields = state.yielding.warp.take();
            if stop.is_some() || executed >= quantum || state.dirty || warp.spins >= SPINS || warp.slept || yields {
                break;
            }
        }
        state.clock += executed;
        if let Some(counts) = self.grid.counts {
            counts.add(Count::Instructions, executed);
            counts.add(Count::Lanes, lanes);
        }
        // A warp that sleeps without polling memory may wait for another one, by weak loads, or just for time to pass.
        let slept = warp.slept;
        let polled = warp.spins >= SPINS || slept && warp.spins > 0;
        let looked = self.random.is_some() && warp.spins > before && state.effects.get() == effects;
        if (polled || slept) && warp.ready.len() < 2 {
            (warp.spins, warp.slept) = (0, false);
        }
        match stop {
            Some(stop) => Err(stop),
            None if polled => Ok((Turn::Polled, executed)),
            None if looked => Ok((Turn::Looked, executed)),
            None if slept => Ok((Turn::Slept, executed)),
            None => Ok((if ran { Turn::Ran } else { Turn::Nothing }, executed)),
        }
    }

    /// Gives every warp a turn of at most about `most` ops.
    pub(super) fn round(&mut self, most: u64) -> Result<Round, Stop> {
        let mut round = Round::default();
        for member in 0..self.members.len() {
            let count = self.members[member].warps.len();
            let next = self.members[member].state.yielding.next.take();
            let skip = self.random.as_mut().map_or(next, |random| random.below(count as u64) as usize);
            for i in 0..count {
                let warp = (i + skip) % count;
                if self.members[member].warps[warp].ready.is_empty() && !self.members[member].warps[warp].ended {
                    continue;
                }
                // Lanes that a barrier does not hold have the rest of the warp's turn, unless it opens for others.
                let mut left = match &mut self.random {
                    Some(random) => random.slice(RANDOM_MAGNITUDES),
                    None => QUANTUM.min(most),
                };
                loop {
                    let (turn, executed) = self.turn(member, warp, left)?;
                    round.executed += executed;
                    left = left.saturating_sub(executed);
                    round.ran |= turn != Turn::Nothing;
                    round.advanced |= matches!(turn, Turn::Ran | Turn::Slept);
                    round.awake |= turn == Turn::Ran;
                    round.polled |= turn == Turn::Polled;
                    let met = self.members[member].state.dirty;
                    let opened = met && self.release_barriers(member);
                    if !met || opened || turn != Turn::Ran || left == 0 || self.random.is_some() {
                        break;
                    }
                }
                let yielding = &self.members[member].state.yielding;
                if yielding.cta.get() {
                    yielding.next.set((warp + 1) % count);
                    return Ok(round);
                }
            }
        }
        Ok(round)
    }

    /// Releases the barriers of a CTA that are complete; whether one is, or the cluster's.
    pub(super) fn release_barriers(&mut self, member: usize) -> bool {
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
        self.complete_cluster_phase() || opened
    }

    /// Completes the phase of the cluster barrier when all threads that have not exited have arrived; whether they had.
    fn complete_cluster_phase(&mut self) -> bool {
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
                            ((func.id, func.place(g.pc)), callers(&code.funcs, warp, g.frame, MAX_CALLERS));
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
    fn effects(&self) -> Effects {
        self.members
            .iter()
            .map(|m| m.state.effects.get())
            .fold(Effects::default(), |sum, of| Effects { all: sum.all + of.all, outside: sum.outside + of.outside })
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

impl Cta for Cluster<'_> {
    fn stuck(&mut self) -> Stop {
        self.deadlock()
    }

    fn cannot_reach(&mut self, header: BlockId) -> bool {
        self.is_out_of_reach(header)
    }

    fn pause(&mut self, fuel: u64, header: Option<BlockId>) -> Result<Option<Snapshot>, Stop> {
        self.stop_at_loop(fuel, header)
    }

    fn run(&mut self, fuel: u64) -> Result<Slice, Stop> {
        let (mut spent, mut awake) = (0, false);
        let progress = loop {
            let in_order = self.random.is_some() && self.polling.is_quiet();
            let round = if in_order { self.round_in_order() } else { self.round(fuel) };
            let Round { ran, advanced, polled, awake: woke, executed } = round?;
            spent += executed;
            awake |= woke;
            self.polling.ran(self.effects(), executed);
            if self.is_done() {
                self.recycle();
                break Progress::Done;
            }
            if !ran {
                for member in 0..self.members.len() {
                    self.release_barriers(member);
                }
                if self.members.iter().all(|m| m.warps.iter().all(|w| w.ready.is_empty())) {
                    return Err(self.deadlock());
                }
            }
            let mut yielded = false;
            self.members.iter().for_each(|m| yielded |= m.state.yielding.cta.take());
            if yielded && ran {
                self.idle = 0;
                self.polling.advanced();
                break Progress::Yielded;
            }
            if advanced {
                self.idle = 0;
                self.polling.advanced();
            } else if polled || !ran {
                self.idle += 1;
            }
            let random = self.random.is_some() && !in_order;
            if self.idle >= if random { IDLE_RANDOM_ROUNDS } else { IDLE_ROUNDS } {
                self.idle = 0;
                break match self.polling.only_polls() {
                    false => Progress::More,
                    true => Progress::Waiting { repeats: self.polling.repeats(self.fingerprint()) },
                };
            }
            // Rounds in which all warps only poll are counted to the end.
            if spent >= fuel && (self.idle == 0 || !in_order) {
                break match self.polling.still_polls() {
                    Some(repeats) => Progress::Waiting { repeats },
                    // Others should begin that a sleeping one may wait for.
                    None if self.is_cycling() || !awake => Progress::Circling,
                    None => Progress::More,
                };
            }
        };
        Ok(Slice { progress, executed: spent.min(fuel) })
    }
}
