//! Single instructions for other engines: an engine without native code for an instruction passes the rows of the
//! registers that it reads and receives the rows that it writes.
//!
//! Available for every instruction that needs only registers and non-local memory: matrix fragments and products,
//! asynchronous copies, barrier objects, tensor memory, atomics of every type, textures, warp-wide comparisons and
//! reductions.

pub use super::step::address::OTHER_THREAD;
use super::{
    code::{Code, Flow, FuncCode, NEGATED, NOWHERE, Shape, UNGUARDED},
    cta::new_warp,
    ctx::{Ctx, Windows, make_fault},
    decode,
    rendezvous::Rendezvous,
    state::{CtaState, NO_FRAME, Wait, Warp},
    step::matrix::abandoned,
};
use crate::{
    Bug, FaultKind, Grid, Image, LANES, Row, Stop,
    barrier::{BARRIERS, Barrier},
    mem::Allocation,
};
use margay_ir::{Func, FuncId, Inst, MemBase, MemSpace, Operand, VReg, pass::liveness};
use margay_isa::{Mod, Opcode, Type};
use std::{
    cell::Cell,
    ops::Range,
    sync::{Arc, Mutex, OnceLock},
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

/// A warp outside any function.
pub(super) fn standing(code: &Code, block: [u32; 3], index: u32) -> Warp {
    let mut warp = new_warp();
    warp.index = index;
    warp.registers.resize(code.registers as usize, Row::ZERO);
    for lane in 0..LANES {
        let t = index * LANES as u32 + lane as u32;
        warp.tid[0].0[lane] = t % block[0];
        warp.tid[1].0[lane] = t / block[0] % block[1];
        warp.tid[2].0[lane] = t / (block[0] * block[1]);
    }
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
                let first = func.row_of.get(r.0 as usize).copied().filter(|row| *row != u32::MAX);
                copies.extend(first.map(|first| (at, first as usize..first as usize + rows(r))));
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
    /// Prepares for an instruction of a warp of CTA `cta`; resets the state if the CTA has changed.
    pub(super) fn enter(&mut self, cta: [u32; 3], warp: u32) {
        self.windows.first_local = u64::from(warp) * LANES as u64 * self.windows.stride;
        if self.cta.id != cta {
            self.windows.tensor = self.windows.shared.iter().map(|_| Mutex::default()).collect();
            self.windows.cluster = std::array::from_fn(|d| cta[d] / self.windows.cluster_size[d]);
            self.rendezvous.iter_mut().for_each(|m| *m = None);
        }
        (self.cta.id, self.cta.dirty) = (cta, false);
    }

    /// Number of side effects so far.
    pub fn effects(&self) -> u64 {
        self.cta.effects.get()
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
            first_local: 0,
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
            effects: Cell::new(0),
            freed: false,
            clock: 0,
            visits: Vec::new(),
        };
        let rendezvous = (0..warps).map(|_| None).collect();
        Machine { cta, warps: (0..warps).map(|_| None).collect(), windows, local, rendezvous }
    }

    /// Executes an instruction for the lanes of `mask`, subject to its guard. `input` holds the rows of the registers
    /// read, in the order of [`registers`]; `output` receives the rows of the registers written, valid in lanes that
    /// executed. Returns false if the instruction waits for another warp and must be executed again.
    #[allow(clippy::too_many_arguments)]
    pub fn execute(
        &self,
        machine: &mut Machine,
        grid: &Grid<'_>,
        (cta, warp_index): ([u32; 3], u32),
        (live, mask): (u32, u32),
        (id, inst): (FuncId, u32),
        input: &[Row],
        output: &mut [Row],
    ) -> Result<bool, Stop> {
        let bug = |what: &str| Stop::Bug(Bug(what.into()));
        let Some((func, [start, end], plan)) = self.plan((id, inst)) else {
            return Err(bug("an instruction of a function that is not there"));
        };
        let (block, code) = (grid.launch.shape.block, &self.code);
        machine.enter(cta, warp_index);
        let Machine { cta: state, warps, windows, local, .. } = machine;
        let warp = warps[warp_index as usize].get_or_insert_with(|| {
            let mut warp = standing(code, block, warp_index);
            warp.local = Some(local.clone());
            warp.new_frame(id.0, func.rows, live);
            warp
        });
        warp.live = live;
        let frame = &mut warp.frames[0];
        (frame.func, frame.lanes) = (id.0, live);
        if frame.regs.len() < func.rows as usize {
            frame.regs.resize(func.rows as usize, Row::ZERO);
        }
        plan.put(&mut frame.regs, input);
        let mut ctx = Ctx {
            code,
            grid,
            windows,
            cta: state,
            warp,
            func,
            regs: Vec::new(),
            frame: NO_FRAME,
            mask,
            active: mask,
            full: 0,
            pc: start,
            random: false,
            executed: 0,
            lanes: 0,
            top: false,
            stop_at: NOWHERE,
            unwritten: Default::default(),
            stop: None,
        };
        ctx.enter(0);
        while ctx.pc < end {
            let op = &func.ops[ctx.pc as usize];
            ctx.active = match op.guard {
                UNGUARDED => mask,
                guard => {
                    let truth = ctx.regs[(guard & !NEGATED) as usize].0[0];
                    mask & if guard & NEGATED != 0 { !truth } else { truth }
                }
            };
            if ctx.active == 0 {
                ctx.pc += 1;
                continue;
            }
            match (op.run)(&mut ctx, op) {
                Flow::Next => ctx.pc += 1,
                Flow::Jump(_) | Flow::Stop => {
                    let stop = ctx.stop.take();
                    ctx.give_back();
                    return Err(stop.unwrap_or_else(|| bug("an instruction single_step that jumps")));
                }
                Flow::Park => {
                    let later = matches!(ctx.warp.blocked[..], [(_, Wait::TensorMemory)]);
                    if later {
                        ctx.warp.blocked.clear();
                        return Ok(false);
                    }
                    let stop = ctx.stop.take().or_else(|| match abandoned(ctx.code, ctx.warp) {
                        Some((group, what)) => {
                            let (lane, kind) = (group.mask.trailing_zeros() as usize, FaultKind::Barrier(what));
                            let at = (group.frame, group.pc);
                            let fault = make_fault(ctx.code, ctx.cta, ctx.warp, at, lane, kind, Vec::new());
                            Some(Stop::Fault(Box::new(fault)))
                        }
                        None if ctx.warp.blocked.is_empty() => None,
                        None => Some(bug("lanes wait for others at an instruction where all have come")),
                    });
                    ctx.warp.ready.clear();
                    ctx.warp.blocked.clear();
                    match stop {
                        Some(stop) => return Err(stop),
                        None => break,
                    }
                }
            }
        }
        ctx.give_back();
        let frame = &machine.warps[warp_index as usize].as_ref().map(|w| &w.frames[0]);
        let Some(frame) = frame else { return Err(bug("a warp is gone")) };
        plan.take(&frame.regs, output);
        Ok(true)
    }
}
