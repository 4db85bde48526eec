//! Registers of warpgroup products in flight, in observed launches (manual, section 9.7.15.7).
//!
//! From `wgmma.mma_async` until a `wgmma.wait_group` that waits for its group, only other products may access the accumulator. Registers that
//! other instructions have written may be accessed by products only after a `wgmma.fence`. A `mov` does not count as an access: compilers
//! copy registers to rename them, and ptxas removes the copies.

use super::{ctx::Ctx, state::FrameIndex, step::watch, uninitialized::inst_at};
use margay_ir::{
    Func, Operand, VReg,
    pass::liveness::{inst_reads, inst_writes, reads},
};
use margay_isa::{Opcode, name};
use std::collections::{HashMap, HashSet};

/// Registers of a fragment of A, which come first among the sources.
const A_REGISTERS: usize = 4;

/// The registers of a warp's products in flight.
#[derive(Default)]
pub struct InFlight {
    /// By register: the number of the group that will write it, and the op.
    results: HashMap<(FrameIndex, VReg), (u64, u32)>,
    /// Registers that other instructions have written since the last fence, and the op.
    unfenced: HashMap<(FrameIndex, VReg), u32>,
    /// Number of groups committed.
    committed: u64,
    fenced: bool,
    /// Places that were reported.
    reported: HashSet<u32>,
}

impl InFlight {
    /// `wgmma.fence`
    pub fn fence(&mut self) {
        self.fenced = true;
        self.unfenced.clear();
    }

    /// `wgmma.commit_group`
    pub fn commit(&mut self) {
        self.committed += 1;
    }

    /// `wgmma.wait_group`
    pub fn wait(&mut self, pending: u64) {
        let over = self.committed.saturating_sub(pending);
        self.results.retain(|_, (group, _)| *group >= over);
    }
}

/// Registers of operands.
fn registers(operands: &[Operand]) -> Vec<VReg> {
    let mut all = Vec::new();
    operands.iter().for_each(|o| reads(o, &mut |r| all.push(r)));
    all
}

fn register_name(func: &Func, r: VReg) -> &str {
    func.reg_names.get(r.0 as usize).map_or("a register", |n| n)
}

/// A product starts.
pub fn start(ctx: &mut Ctx<'_>) {
    let Some(inst) = inst_at(ctx) else { return };
    let (func, frame, pc): (&Func, _, _) = (&ctx.func.func, ctx.frame, ctx.pc);
    let results = registers(func.operands(inst.dsts));
    let mut flight = std::mem::take(&mut ctx.warp.in_flight);
    // Fragments of A are registers, descriptors and predicates no fragments.
    let sources = registers(func.operands(inst.srcs));
    let in_registers = func.variant(inst).operands().any(|o| o.name == name::A);
    let sources = &sources[..if in_registers { sources.len().min(A_REGISTERS) } else { 0 }];
    let unfenced = results.iter().chain(sources).find_map(|r| Some((*r, *flight.unfenced.get(&(frame, *r))?)));
    if (!flight.fenced || unfenced.is_some()) && flight.reported.insert(pc) {
        let (what, origin) = match unfenced {
            Some((r, at)) => {
                (format!("accesses `{}` without `wgmma.fence` since it was written", register_name(func, r)), Some(at))
            }
            None => ("a product of a warpgroup without `wgmma.fence` before it".into(), None),
        };
        watch::unfenced(ctx, what, origin);
    }
    for r in results {
        flight.results.insert((frame, r), (flight.committed, pc));
        flight.unfenced.remove(&(frame, r));
    }
    ctx.warp.in_flight = flight;
}

/// Looks at the op that a group is about to execute.
pub fn check(ctx: &mut Ctx<'_>) {
    let Some(inst) = inst_at(ctx).filter(|_| ctx.active != 0) else { return };
    let func: &Func = &ctx.func.func;
    let variant = func.variant(inst);
    if variant.op == Opcode::Wgmma {
        return;
    }
    let (frame, pc) = (ctx.frame, ctx.pc);
    let mut flight = std::mem::take(&mut ctx.warp.in_flight);
    let copies = variant.op == Opcode::Mov;
    let (mut awaited, mut unfenced) = (None, None);
    inst_reads(func, inst, &mut |r| {
        awaited = awaited.or(flight.results.get(&(frame, r)).map(|(group, at)| (*group, *at, r)));
        unfenced = unfenced.or(flight.unfenced.get(&(frame, r)).copied());
    });
    if let Some((_, at, r)) = awaited.filter(|_| !copies)
        && flight.reported.insert(pc)
    {
        watch::in_flight(ctx, format!("reads `{}`", register_name(func, r)), at);
    }
    inst_writes(func, inst, &mut |r| {
        let key = (frame, r);
        match awaited.filter(|_| copies) {
            Some((group, at, _)) => drop(flight.results.insert(key, (group, at))),
            None => drop(flight.results.remove(&key)),
        }
        match if copies { unfenced } else { Some(pc) } {
            Some(at) => drop(flight.unfenced.insert(key, at)),
            None => drop(flight.unfenced.remove(&key)),
        }
    });
    ctx.warp.in_flight = flight;
}
