//! Single instructions for other engines: an engine without native code for an instruction passes the rows of the
//! registers that it reads and receives the rows that it writes.
//!
//! Available for every instruction that needs only registers and non-local memory: matrix fragments and products,
//! asynchronous copies, barrier objects, tensor memory, atomics of every type, textures, warp-wide comparisons and
//! reductions.

pub use super::step::address::OTHER_THREAD;
use super::{
    cluster::{new_warp, set_thread_indices},
    code::{Code, Flow, FuncCode, Shape},
    ctx::{Ctx, Windows, make_fault},
    decode,
    rendezvous::Rendezvous,
    state::{CtaState, Group, LocalWindows, Wait, Warp, Yielding},
    step::matrix::abandoned,
};
use crate::{
    Bug, FaultKind, Grid, Image, LANES, Row, Stop,
    barrier::{BARRIERS, Barrier},
    mem::Allocation,
};
use margay_ir::{Func, FuncId, Inst, MemBase, MemSpace, Operand, VReg, pass::liveness};
use margay_isa::{Mod, Opcode, Type};
use parking_lot::Mutex;
use std::{
    cell::Cell,
    ops::Range,
    sync::{Arc, OnceLock},
};

/// Whether an instruction can be executed in isolation.
pub fn executes_alone(func: &Func, inst: &Inst) -> bool {
    use Opcode::{Alloca, Bar, Barrier, Call, Stackrestore, Stacksave};
    let variant = func.variant(inst);
    let refused = match variant.op {
        Bar | Barrier => !variant.has(Mod::Warp),
        op => matches!(op, Call | Alloca | Stackrestore | Stacksave),
    };
    let own = |o: &Operand| matches!(o, Operand::Mem(MemBase::Frame(_), _) | Operand::FrameAddr(..));
    !refused && inst.space != Some(MemSpace::Local) && !func.operands(inst.srcs).iter().any(own)
}

/// The registers that an instruction reads (including its guard) and those that it writes, each once and sorted.
pub fn registers(func: &Func, inst: &Inst) -> (Vec<VReg>, Vec<VReg>) {
    let (mut reads, mut writes) = (Vec::new(), Vec::new());
    liveness::inst_reads(func, inst, &mut |r| reads.push(r));
    liveness::inst_writes(func, inst, &mut |r| writes.push(r));
    for list in [&mut reads, &mut writes] {
        list.sort();
        list.dedup();
    }
    (reads, writes)
}

/// Number of rows of a register of type `ty`.
pub fn rows_of(ty: Type) -> usize {
    Shape::of(ty).rows()
}

/// A decoded kernel whose instructions can be executed one at a time.
pub struct SingleStep {
    pub(super) code: Code,
    /// Per function and instruction: its plan, computed on first use.
    plans: Vec<Vec<OnceLock<Plan>>>,
}

/// An instruction that lanes of a warp execute.
#[derive(Clone, Copy)]
pub struct Step {
    /// Index of the CTA in the grid.
    pub cta: [u32; 3],
    /// Index of the warp in its CTA.
    pub warp: u32,
    /// Lanes of the warp that have not exited.
    pub live: u32,
    /// Lanes that reach the instruction.
    pub mask: u32,
    /// The function, and the index of the instruction in it.
    pub at: (FuncId, u32),
}

/// The state of one CTA for single steps.
pub struct Machine {
    pub(super) cta: CtaState,
    warps: Vec<Option<Warp>>,
    pub(super) windows: Windows,
    /// The local windows of the CTA's threads, warp by warp.
    pub(super) local: Arc<Allocation>,
    /// Per warp: lanes blocked in warp operations.
    pub(super) rendezvous: Vec<Option<Rendezvous>>,
}

pub(super) fn bug(what: &str) -> Stop {
    Stop::Bug(Bug(what.into()))
}

/// A step names an instruction that the code lacks.
pub(super) fn missing() -> Stop {
    bug("an instruction of a function that is not there")
}

/// A warp outside any function.
pub(super) fn standing(code: &Code, block: [u32; 3], index: u32) -> Warp {
    let mut warp = new_warp();
    warp.index = index;
    warp.registers.resize(code.registers as usize, Row::ZERO);
    set_thread_indices(&mut warp, block);
    warp
}

/// Where an instruction's registers are: in the caller's row buffers, and in a frame.
#[derive(Default)]
pub(super) struct Plan {
    reads: Vec<(usize, Range<usize>)>,
    writes: Vec<(usize, Range<usize>)>,
    /// Number of rows written.
    pub written: usize,
}

impl Plan {
    fn new(func: &FuncCode, inst: u32) -> Plan {
        let Some(inst) = func.func.insts.get(inst as usize) else { return Plan::default() };
        let rows = |r: &VReg| rows_of(func.func.regs[r.0 as usize]);
        let copies = |list: &[VReg]| {
            let (mut at, mut copies) = (0, Vec::new());
            for r in list {
                copies.extend(func.rows_of(*r).map(|own| (at, own)));
                at += rows(r);
            }
            copies
        };
        let (reads, writes) = registers(&func.func, inst);
        Plan { reads: copies(&reads), writes: copies(&writes), written: writes.iter().map(rows).sum() }
    }

    /// Copies the rows read into a frame's registers.
    pub fn put(&self, regs: &mut [Row], input: &[Row]) {
        for (at, to) in &self.reads {
            regs[to.clone()].copy_from_slice(&input[*at..at + to.len()]);
        }
    }

    /// Copies the rows written out of a frame's registers.
    pub fn take(&self, regs: &[Row], output: &mut [Row]) {
        for (at, from) in &self.writes {
            output[*at..at + from.len()].copy_from_slice(&regs[from.clone()]);
        }
    }
}

impl Machine {
    /// Prepares for an instruction of CTA `cta`; resets the state if the CTA has changed.
    pub(super) fn enter(&mut self, cta: [u32; 3]) {
        if self.cta.id != cta {
            self.windows.tensor = self.windows.shared.iter().map(|_| Mutex::default()).collect();
            self.windows.cluster = std::array::from_fn(|d| cta[d] / self.windows.cluster_size[d]);
            self.rendezvous.iter_mut().for_each(|m| *m = None);
        }
        (self.cta.id, self.cta.dirty) = (cta, false);
    }

    /// Number of side effects so far.
    pub fn effects(&self) -> u64 {
        self.cta.effects.get().all
    }
}

impl SingleStep {
    /// Decodes a kernel with all functions that it may call.
    pub fn new(image: Arc<Image>, kernel: FuncId) -> Result<SingleStep, Stop> {
        let code = decode::decode(image, kernel)?;
        let empty = |f: &FuncCode| f.func.insts.iter().map(|_| OnceLock::new()).collect();
        let plans = code.funcs.iter().map(|f| f.as_deref().map_or(Vec::new(), empty)).collect();
        Ok(SingleStep { code, plans })
    }

    /// The function of an instruction, its first op and the one after its last, and its plan.
    pub(super) fn plan(&self, (id, inst): (FuncId, u32)) -> Option<(&FuncCode, [u32; 2], &Plan)> {
        let func = self.code.funcs.get(id.0 as usize)?.as_ref()?;
        let (start, end) = func.by_inst.get(inst as usize).copied()?;
        let plan = self.plans.get(id.0 as usize)?.get(inst as usize)?;
        Some((func, [start, end], plan.get_or_init(|| Plan::new(func, inst))))
    }

    /// Creates the state for one CTA of a cluster, or for one CTA after another without clusters; `windows` are the
    /// shared windows of the cluster by rank, `local` those of the CTA's threads with their distance and size in bytes.
    pub fn machine(
        &self,
        grid: &Grid<'_>,
        (windows, rank): (Vec<Arc<Allocation>>, u32),
        (local, stride, local_size): (Arc<Allocation>, u64, u32),
    ) -> Machine {
        let shared = windows[rank as usize].clone();
        let warps = grid.launch.shape.threads().div_ceil(LANES as u32) as usize;
        let windows = Windows {
            tensor: windows.iter().map(|_| Mutex::default()).collect(),
            shared: windows,
            local_size,
            stride,
            params: grid.params().block.base(),
            cluster: [0; 3],
            cluster_size: grid.launch.shape.cluster_size(),
        };
        let cta = CtaState {
            id: [u32::MAX; 3],
            rank,
            shared,
            barriers: vec![Barrier::new(warps); BARRIERS],
            dirty: false,
            effects: Cell::default(),
            freed: false,
            clock: 0,
            visits: Vec::new(),
            yielding: Yielding::default(),
        };
        let rendezvous = (0..warps).map(|_| None).collect();
        Machine { cta, warps: (0..warps).map(|_| None).collect(), windows, local, rendezvous }
    }

    /// Executes an instruction, subject to its guard. `input` holds the rows of the registers read, in the order of
    /// [`registers`]; `output` receives the rows of the registers written, valid in lanes that executed. Returns false if
    /// the instruction waits for another warp and must be executed again.
    pub fn execute(
        &self,
        machine: &mut Machine,
        grid: &Grid<'_>,
        step: Step,
        input: &[Row],
        output: &mut [Row],
    ) -> Result<bool, Stop> {
        let code = &self.code;
        let (func, [start, end], plan) = self.plan(step.at).ok_or_else(missing)?;
        machine.enter(step.cta);
        let Machine { cta, warps, windows, local, .. } = machine;
        let warp = warps[step.warp as usize].get_or_insert_with(|| {
            let mut warp = standing(code, grid.launch.shape.block, step.warp);
            warp.local = Some(LocalWindows::of(local.clone(), step.warp, windows.stride));
            warp.new_frame(step.at.0.0, func.rows, step.live);
            warp
        });
        warp.live = step.live;
        let frame = &mut warp.frames[0];
        (frame.func, frame.lanes) = (step.at.0.0, step.live);
        if frame.regs.len() < func.rows as usize {
            frame.regs.resize(func.rows as usize, Row::ZERO);
        }
        plan.put(&mut frame.regs, input);
        let group = Group { mask: step.mask, frame: 0, pc: start, since: 0 };
        let mut ctx = Ctx::new(code, grid, windows, cta, warp, &group).ok_or_else(missing)?;
        let done = run_ops(&mut ctx, end);
        ctx.give_back();
        if done? {
            plan.take(&warp.frames[0].regs, output);
            return Ok(true);
        }
        Ok(false)
    }
}

/// Runs the ops of one instruction, up to `end`; false if it waits for another warp.
fn run_ops(ctx: &mut Ctx<'_>, end: u32) -> Result<bool, Stop> {
    let func = ctx.func;
    while ctx.pc < end {
        let op = &func.ops[ctx.pc as usize];
        ctx.active = ctx.guarded(op);
        if ctx.active == 0 {
            ctx.pc += 1;
            continue;
        }
        match (op.run)(ctx, op) {
            Flow::Next => ctx.pc += 1,
            Flow::Jump(_) | Flow::Stop => {
                return Err(ctx.stop.take().unwrap_or_else(|| bug("a single instruction jumps")));
            }
            Flow::Park => return parked(ctx),
        }
    }
    Ok(true)
}

/// The outcome of an op at which lanes parked: all lanes that execute an instruction alone come together, so that none
/// may be left waiting for others of its warp.
fn parked(ctx: &mut Ctx<'_>) -> Result<bool, Stop> {
    let warp = &mut *ctx.warp;
    if matches!(warp.blocked[..], [(_, Wait::TensorMemory)]) {
        warp.blocked.clear();
        return Ok(false);
    }
    let stop = ctx.stop.take().or_else(|| match abandoned(ctx.code, warp) {
        Some((group, what)) => {
            let (lane, kind) = (group.mask.trailing_zeros() as usize, FaultKind::Barrier(what));
            let at = (group.frame, group.pc);
            let fault = make_fault(ctx.code, ctx.cta, warp, at, lane, kind, Vec::new());
            Some(Stop::Fault(Box::new(fault)))
        }
        None if warp.blocked.is_empty() => None,
        None => Some(bug("lanes wait for others at an instruction where all have come")),
    });
    warp.ready.clear();
    warp.blocked.clear();
    stop.map_or(Ok(true), Err)
}
