//! Warp operations at which lanes arrive one group after another, for other engines: the counterpart of
//! [`super::single_step`] for instructions at which lanes wait for each other.

use super::{
    code::Flow,
    ctx::Ctx,
    single_step::{Machine, SingleStep, Step, bug, missing, standing},
    state::{FrameIndex, Group, Wait, Warp},
    step::warp::recheck,
};
use crate::{Grid, Row, Stop};
use margay_ir::FuncId;
use std::collections::HashMap;

/// The lanes of one warp that are blocked in or were released from warp operations.
pub struct Rendezvous {
    warp: Warp,
    /// By frame: the instruction at which its lanes arrived.
    at: HashMap<FrameIndex, (FuncId, u32)>,
}

/// Blocked lanes, for deadlock reports.
pub struct Waiter {
    /// The lanes.
    pub lanes: u32,
    /// The instruction.
    pub at: (FuncId, u32),
    /// A description of what they wait for.
    pub what: String,
}

impl SingleStep {
    /// The lanes of a step arrive at its instruction, with the rows of the registers that it reads; they are blocked
    /// until [`SingleStep::released`].
    pub fn arrive(&self, machine: &mut Machine, grid: &Grid<'_>, step: Step, input: &[Row]) -> Result<(), Stop> {
        let code = &self.code;
        let (func, [start, end], plan) = self.plan(step.at).ok_or_else(missing)?;
        machine.enter(step.cta);
        let Machine { cta, windows, rendezvous, .. } = machine;
        let new = || Rendezvous { warp: standing(code, grid.launch.shape.block, step.warp), at: HashMap::new() };
        let rendezvous = rendezvous[step.warp as usize].get_or_insert_with(new);
        rendezvous.update_live(self, step.live);
        let warp = &mut rendezvous.warp;
        let frame = warp.new_frame(step.at.0.0, func.rows, step.mask);
        rendezvous.at.insert(frame, step.at);
        plan.put(&mut warp.frames[frame as usize].regs, input);
        let group = Group { mask: step.mask, frame, pc: start, since: 0 };
        let mut ctx = Ctx::new(code, grid, windows, cta, warp, &group).ok_or_else(missing)?;
        while ctx.pc < end {
            let op = &func.ops[ctx.pc as usize];
            match (op.run)(&mut ctx, op) {
                Flow::Next => ctx.pc += 1,
                Flow::Park => return ctx.stop.take().map_or(Ok(()), Err),
                Flow::Jump(_) | Flow::Stop => {
                    let stop = ctx.stop.take();
                    ctx.give_back();
                    return Err(stop.unwrap_or_else(|| bug("an instruction at which lanes meet jumps")));
                }
            }
        }
        ctx.requeue();
        Ok(())
    }

    /// Takes lanes out of `lanes` that were released, all from one instruction, and writes the rows of its destination
    /// registers to `output`; returns the lanes and the number of rows.
    pub fn released(
        &self,
        machine: &mut Machine,
        (warp, lanes): (u32, u32),
        live: u32,
        output: &mut [Row],
    ) -> Option<(u32, usize)> {
        let rendezvous = machine.rendezvous.get_mut(warp as usize)?.as_mut()?;
        rendezvous.update_live(self, live);
        let found = rendezvous.warp.ready.iter().position(|g| g.mask & lanes != 0)?;
        let group = rendezvous.warp.ready.remove(found);
        let (_, _, plan) = self.plan(rendezvous.at.get(&group.frame).copied()?)?;
        plan.take(&rendezvous.warp.frames[group.frame as usize].regs, output);
        rendezvous.warp.leave(group.frame, group.mask);
        Some((group.mask, plan.written))
    }
}

impl Rendezvous {
    fn update_live(&mut self, single_step: &SingleStep, live: u32) {
        if self.warp.live != live {
            self.warp.live = live;
            recheck(&single_step.code, &mut self.warp, None);
        }
    }
}

impl Machine {
    /// The blocked lanes of a warp.
    pub fn waiters(&self, warp: u32) -> Vec<Waiter> {
        let Some(Some(rendezvous)) = self.rendezvous.get(warp as usize) else { return Vec::new() };
        let waiter = |(g, why): &(Group, Wait)| {
            let at = rendezvous.at.get(&g.frame).copied()?;
            let what = match why {
                Wait::Lanes { members, .. } => format!("wait for the other lanes of member mask {members:#010x}"),
                _ => "wait for the other lanes of the warp".into(),
            };
            Some(Waiter { lanes: g.mask, at, what })
        };
        rendezvous.warp.blocked.iter().filter_map(waiter).collect()
    }
}
