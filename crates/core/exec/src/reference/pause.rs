//! Stops a CTA where another engine can take it over: all its threads at the header of one loop.
//!
//! From the first request on, the CTA counts how often each loop of the kernel is repeated. Later ones choose the outermost loop around
//! a warp's position that all warps repeat often, and stop every group of lanes that arrives at its header, until none can run. If some
//! lanes are elsewhere then, because they wait for those that were stopped, all continue.

use super::{
    cluster::Cluster,
    code::{Code, FuncCode, NOWHERE},
    state::{Group, Wait, Warp},
};
use crate::{CtaWindows, LiveRegister, Row, Snapshot, Stop, StoppedWarp};
use margay_ir::{
    BlockId, FrameRole, FrameVar, Inst, Operand, VReg,
    pass::{Cfg, Liveness, live_frame, spins, written_from},
};
use margay_isa::Opcode;

/// Jumps back to a loop's header, on average over the warps, after which it is worth stopping there.
const OFTEN: u64 = 3;

/// A loop of the kernel.
struct Loop {
    header: BlockId,
    /// Its first op, and the one after its last.
    ops: [u32; 2],
    /// The ops of the blocks from which a thread can arrive at the header.
    before: Vec<[u32; 2]>,
    /// Registers live at the header.
    live: Vec<LiveRegister>,
}

/// A cluster's knowledge of its kernel's loops.
#[derive(Default)]
pub(super) struct Pauses {
    /// `None` before the first request; outer loops come first. Empty if no other engine can continue the kernel.
    loops: Option<Vec<Loop>>,
    /// Where groups of lanes are stopped.
    stop_at: Option<u32>,
}

impl Pauses {
    /// The op where groups are stopped, or [`NOWHERE`].
    pub fn stop_at(&self) -> u32 {
        self.stop_at.unwrap_or(NOWHERE)
    }
}

impl Cluster<'_> {
    /// See [`crate::Cta::pause`].
    pub(super) fn stop_at_loop(&mut self, fuel: u64, header: Option<BlockId>) -> Result<Option<Snapshot>, Stop> {
        let Some(loops) = &self.pauses.loops else {
            self.count_loops();
            return Ok(None);
        };
        let chosen = match header {
            Some(header) => loops.iter().position(|l| l.header == header),
            None => self.choose(loops),
        };
        let Some(chosen) = chosen else { return Ok(None) };
        self.pauses.stop_at = Some(self.pauses.loops.as_ref().map_or(NOWHERE, |l| l[chosen].ops[0]));
        let quiet = self.run_until_quiet(fuel);
        self.pauses.stop_at = None;
        let snapshot = match quiet {
            Ok(true) => self.snapshot(chosen),
            Ok(false) | Err(_) => None,
        };
        for warp in self.members.iter_mut().flat_map(|m| &mut m.warps) {
            let ready = &mut warp.ready;
            warp.blocked.retain(|(group, why)| {
                let stopped = *why == Wait::Pause;
                if stopped {
                    ready.push(*group);
                }
                !stopped
            });
        }
        quiet.map(|_| snapshot)
    }

    /// Finds the loops and has them counted from now on.
    fn count_loops(&mut self) {
        let code = &self.kernel.code;
        let alone = self.members.len() == 1 && self.random.is_none();
        let observed = self.grid.observer.is_some() || self.grid.counts.is_some();
        let loops = match code.funcs.get(code.kernel.0 as usize).and_then(Option::as_ref) {
            Some(kernel) if alone && !observed && can_move(code, kernel) => loops(kernel),
            _ => Vec::new(),
        };
        if !loops.is_empty() {
            let ops = code.funcs[code.kernel.0 as usize].as_ref().map_or(0, |f| f.ops.len());
            self.members[0].state.visits = vec![0; ops];
        }
        self.pauses.loops = Some(loops);
    }

    /// The outermost loop that all warps repeat often and in which one is.
    fn choose(&self, loops: &[Loop]) -> Option<usize> {
        let member = self.members.first()?;
        let live = || member.warps.iter().filter(|w| w.live != 0);
        let enough = OFTEN * live().count() as u64;
        let warp = live().next()?;
        let at = warp.ready.iter().chain(warp.blocked.iter().map(|(g, _)| g)).map(|g| in_kernel(warp, g)).min()?;
        let fits = |l: &Loop| {
            let visits = member.state.visits.get(l.ops[0] as usize).copied().unwrap_or(0);
            l.ops[0] <= at && at < l.ops[1] && u64::from(visits) >= enough
        };
        loops.iter().position(fits)
    }

    /// See [`crate::Cta::cannot_reach`].
    pub(super) fn is_out_of_reach(&mut self, header: BlockId) -> bool {
        if self.pauses.loops.is_none() {
            self.count_loops();
        }
        let (Some(loops), Some(member)) = (&self.pauses.loops, self.members.first()) else { return false };
        let Some(chosen) = loops.iter().find(|l| l.header == header) else { return true };
        let leads = |at: u32| chosen.before.iter().any(|ops| (ops[0]..ops[1]).contains(&at));
        let mut live = member.warps.iter().filter(|w| w.live != 0);
        live.any(|warp| {
            let blocked = warp.blocked.iter().map(|(group, _)| group);
            warp.ready.iter().chain(blocked).any(|group| !leads(in_kernel(warp, group)))
        })
    }

    /// Runs until no group can; false if fuel ran out before.
    fn run_until_quiet(&mut self, fuel: u64) -> Result<bool, Stop> {
        let mut spent = 0;
        while spent < fuel {
            let round = self.round(fuel)?;
            spent += round.executed;
            if !round.ran {
                let opened = (0..self.members.len()).any(|member| self.release_barriers(member));
                if !opened {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// The state of the CTA, if all its lanes have been stopped.
    fn snapshot(&self, chosen: usize) -> Option<Snapshot> {
        let Loop { header, live, .. } = &self.pauses.loops.as_ref()?[chosen];
        let member = self.members.first()?;
        let code = &self.kernel.code;
        let kernel = code.funcs.get(code.kernel.0 as usize)?.as_ref()?;
        if member.state.barriers.iter().any(|b| b.open) {
            return None;
        }
        let local = member.warps.first().and_then(|w| w.local.as_ref());
        let mut warps = Vec::new();
        for warp in &member.warps {
            let stopped = warp.blocked.iter().filter(|(_, why)| *why == Wait::Pause);
            if stopped.clone().fold(0, |m, (g, _)| m | g.mask) != warp.live {
                return None;
            }
            let frame = stopped.clone().next().map(|(g, _)| &warp.frames[g.frame as usize]);
            let rows = live.iter().map(|LiveRegister { register, ty, .. }| match (frame, kernel.rows_of(*register)) {
                (Some(frame), Some(rows)) => frame.regs[rows].to_vec(),
                _ => vec![Row::ZERO; super::single_step::rows_of(*ty)],
            });
            warps.push(StoppedWarp { alive: warp.live, rows: rows.collect() });
        }
        warps.iter().any(|w| w.alive != 0).then(|| Snapshot {
            header: *header,
            block: self.grid.launch.shape.block,
            registers: live.clone(),
            warps,
            windows: CtaWindows {
                shared: member.state.shared.clone(),
                local: local.map(|l| (l.memory.clone(), self.windows.stride)),
            },
        })
    }
}

/// The op at which a group is in the kernel: the one after the call if it is in another function.
fn in_kernel(warp: &Warp, group: &Group) -> u32 {
    let (mut frame, mut pc) = (&warp.frames[group.frame as usize], group.pc);
    while frame.depth > 0 {
        (pc, frame) = (frame.ret, &warp.frames[frame.parent as usize]);
    }
    pc
}

/// Whether all state of the kernel's threads is in registers, the shared window and the variables of local windows.
fn can_move(code: &Code, kernel: &FuncCode) -> bool {
    let func = &kernel.func;
    let address = |o: &Operand| matches!(o, Operand::ParamAddr(_));
    let stack = |i: &Inst| matches!(func.variant(i).op, Opcode::Alloca | Opcode::Stacksave | Opcode::Stackrestore);
    let elsewhere = code.image.ir.thread_block > 0 || !kernel.tcgen05s.is_empty();
    !elsewhere && !func.operands.iter().any(address) && !func.insts.iter().any(stack)
}

/// The loops at which the kernel can be continued; none if its threads may wait for those of other CTAs.
fn loops(kernel: &FuncCode) -> Vec<Loop> {
    let func = &kernel.func;
    let cfg = Cfg::new(func, |_, _| false);
    if spins(func, &cfg) {
        return Vec::new();
    }
    let live = Liveness::new(func, &cfg).live_in;
    let first_op = |position: u32| match cfg.order.get(position as usize) {
        Some(b) => match func.blocks[b.0 as usize].insts.range().next() {
            Some(inst) => kernel.by_inst[inst].0,
            None => kernel.by_term[b.0 as usize],
        },
        None => kernel.ops.len() as u32,
    };
    // Values on their way into a call or out of it, which engines keep in places of their own.
    let frames = live_frame(func, &cfg);
    let in_call = |header: &BlockId| {
        let passed =
            |(f, var): (usize, &FrameVar)| var.role != FrameRole::Local && frames[header.0 as usize].has(f as u32);
        func.frame.iter().enumerate().any(passed)
    };
    let found = cfg.loops.iter().filter(|l| !l.irreducible).filter_map(|l| {
        let header = cfg.order[l.first as usize];
        if in_call(&header) {
            return None;
        }
        let written = written_from(func, header);
        let live = live[header.0 as usize].iter().map(|r| {
            let register = VReg(r);
            LiveRegister { register, ty: func.regs[r as usize], keeps: !written.contains(&register) }
        });
        let before = leading_to(&cfg, header).map(|p| [first_op(p), first_op(p + 1)]).collect();
        Some(Loop { header, ops: [first_op(l.first), first_op(l.last + 1)], before, live: live.collect() })
    });
    found.collect()
}

/// The positions in layout order of the blocks from which a path leads to this one, which itself is one of them.
fn leading_to(cfg: &Cfg, target: BlockId) -> impl Iterator<Item = u32> {
    let mut leads = vec![false; cfg.position.len()];
    leads[target.0 as usize] = true;
    let mut left = vec![target];
    while let Some(block) = left.pop() {
        for before in &cfg.preds[block.0 as usize] {
            if !std::mem::replace(&mut leads[before.0 as usize], true) {
                left.push(*before);
            }
        }
    }
    (0..).zip(&cfg.order).filter(move |(_, block)| leads[block.0 as usize]).map(|(position, _)| position)
}
