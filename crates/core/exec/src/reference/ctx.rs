//! What a handler sees while a group of lanes runs.

use super::{
    code::{Code, Dst, Flow, FuncCode, NEGATED, NOWHERE, Op, Shape, Src, UNGUARDED},
    schedule::SPINS,
    state::{CtaState, FrameIndex, Group, NO_FRAME, Select, Wait, Warp, lanes},
    tensor_memory::TensorMemory,
};
use crate::{
    Bug, Exhausted, Fault, FaultKind, Grid, LANES, Row, Stop, Unsupported,
    lanes::{u32s, u32s_mut, u64s, u64s_mut, u128s},
    mem::Allocation,
};
use std::sync::{Arc, Mutex};

/// Memory of registers that the calls of one warp may take, in rows of 128 bytes: 1 GiB.
const MOST_ROWS: usize = 1 << 23;

/// Windows and shape of a launch, as the lanes of one CTA see them.
pub struct Windows {
    /// Shared windows of the cluster's CTAs, by rank.
    pub shared: Vec<Arc<Allocation>>,
    /// Tensor memories of the cluster's CTAs, by rank.
    pub tensor: Vec<Mutex<TensorMemory>>,
    /// Bytes of a local window.
    pub local_size: u32,
    /// From one lane's local window to the next.
    pub stride: u64,
    /// Host address of the parameter block.
    pub params: u64,
    /// Cluster index in the grid.
    pub cluster: [u32; 3],
    /// CTAs of the cluster.
    pub cluster_size: [u32; 3],
}

/// The machine as a handler sees it: one group of lanes at one op.
pub struct Ctx<'a> {
    /// The kernel.
    pub code: &'a Code,
    /// The launch.
    pub grid: &'a Grid<'a>,
    /// Windows.
    pub windows: &'a Windows,
    /// What the CTA shares.
    pub cta: &'a mut CtaState,
    /// The warp.
    pub warp: &'a mut Warp,
    /// The function of the current frame.
    pub func: &'a FuncCode,
    /// Registers of the current frame, borrowed from it.
    pub regs: Vec<Row>,
    /// The current frame.
    pub frame: FrameIndex,
    /// Lanes of the group.
    pub mask: u32,
    /// Lanes that execute this op.
    pub active: u32,
    /// Lanes of the frame: when all of them are active, nobody minds what is written to the others.
    pub full: u32,
    /// The op.
    pub pc: u32,
    /// The schedule is a random one.
    pub random: bool,
    /// Ops executed since the group began to run.
    pub executed: u64,
    /// Lanes that were active in them, if somebody counts.
    pub lanes: u64,
    /// Why the execution stops.
    pub stop: Option<Stop>,
}

impl<'a> Ctx<'a> {
    /// Runs the group until it is put away, or has jumped after `fuel` ops.
    pub fn run(&mut self, fuel: u64) {
        // What costs time, and nobody wants usually.
        let told = self.grid.counts.is_some() || self.grid.observer.is_some();
        loop {
            let op: &'a Op = &self.func.ops[self.pc as usize];
            self.executed += 1;
            self.active = match op.guard {
                UNGUARDED => self.mask,
                guard => {
                    let truth = self.regs[(guard & !NEGATED) as usize].0[0];
                    self.mask & if guard & NEGATED != 0 { !truth } else { truth }
                }
            };
            if told {
                self.lanes += u64::from(self.active.count_ones());
                if self.grid.observer.is_some() {
                    super::uninitialised::look(self);
                }
            }
            if self.active == 0 {
                self.pc += 1;
                continue;
            }
            match (op.run)(self, op) {
                Flow::Next => self.pc += 1,
                Flow::Jump(to) => {
                    self.pc = to;
                    if self.executed >= fuel || self.warp.spins >= SPINS || self.must_yield(to) {
                        self.put_away();
                        return;
                    }
                }
                Flow::Park | Flow::Stop => return,
            }
        }
    }

    /// Whether another group goes first, or stands where this one arrives. What [`super::schedule::pick`] decides, for the
    /// common case that it would choose this group again.
    #[inline]
    fn must_yield(&mut self, to: u32) -> bool {
        if self.warp.ready.is_empty() {
            return false;
        }
        self.warp.turn += 1;
        if self.random || self.warp.turn.is_multiple_of(64) || self.warp.favoured.1 > 0 {
            return true;
        }
        let depth = self.warp.frames[self.frame as usize].depth;
        self.warp.ready.iter().any(|g| match g.frame == self.frame {
            true => g.pc <= to,
            false => self.warp.frames[g.frame as usize].depth >= depth,
        })
    }

    /// Puts the group away as one that can run.
    pub fn put_away(&mut self) {
        self.put_ready(self.mask, self.pc);
        self.give_back();
    }

    /// Adds a ready group in the current frame.
    pub fn put_ready(&mut self, mask: u32, pc: u32) {
        let since = self.warp.turn;
        self.warp.ready.push(Group { mask, frame: self.frame, pc, since });
    }

    /// Puts lanes of the current frame away as waiting at the current op.
    pub fn block(&mut self, mask: u32, why: Wait) {
        let group = Group { mask, frame: self.frame, pc: self.pc, since: self.warp.turn };
        self.warp.blocked.push((group, why));
    }

    /// Gives the registers back to their frame.
    pub fn give_back(&mut self) {
        if self.frame != NO_FRAME {
            self.warp.frames[self.frame as usize].regs = std::mem::take(&mut self.regs);
            self.frame = NO_FRAME;
        }
    }

    /// Makes a frame the current one.
    pub fn enter(&mut self, frame: FrameIndex) {
        let f = &mut self.warp.frames[frame as usize];
        self.regs = std::mem::take(&mut f.regs);
        self.full = f.lanes;
        self.frame = frame;
        if let Some(func) = self.code.funcs.get(f.func as usize).and_then(Option::as_ref) {
            self.func = func;
        }
    }

    /// Refuses to hold more registers than a host has memory for.
    pub fn check_registers(&mut self) -> Result<(), Flow> {
        if self.warp.register_rows() <= MOST_ROWS {
            return Ok(());
        }
        Err(self.exhausted("registers of nested calls take more than 1 GiB for one warp"))
    }

    /// Rows of a source.
    #[inline(always)]
    pub fn src(&self, s: Src) -> &[Row] {
        s.of(&self.regs, &self.func.consts)
    }

    /// A source as 32-bit lanes; the low half of wider ones.
    pub fn words(&self, s: Src) -> [u32; LANES] {
        match s.shape() {
            Shape::Word | Shape::Pred => *u32s(self.src(s)),
            Shape::Double => u64s(self.src(s)).map(|v| v as u32),
            Shape::Quad => u128s(self.src(s)).map(|v| v as u32),
        }
    }

    /// A source as 64-bit lanes, zero-extended or cut.
    pub fn doubles(&self, s: Src) -> [u64; LANES] {
        match s.shape() {
            Shape::Word | Shape::Pred => u32s(self.src(s)).map(u64::from),
            Shape::Double => *u64s(self.src(s)),
            Shape::Quad => u128s(self.src(s)).map(|v| v as u64),
        }
    }

    /// A source as 128-bit lanes, zero-extended.
    pub fn quads(&self, s: Src) -> [u128; LANES] {
        match s.shape() {
            Shape::Word | Shape::Pred => u32s(self.src(s)).map(u128::from),
            Shape::Double => u64s(self.src(s)).map(u128::from),
            Shape::Quad => u128s(self.src(s)),
        }
    }

    /// The mask of a predicate.
    #[inline(always)]
    pub fn pred(&self, s: Src) -> u32 {
        self.src(s)[0].0[0]
    }

    /// Writes lanes of a register, cut to its width or zero-extended.
    pub fn write(&mut self, d: Dst, values: &[u64; LANES], mask: u32) {
        write(&mut self.regs, &mut self.warp.select, d, values, mask);
    }

    /// Writes a predicate.
    pub fn write_pred(&mut self, d: Dst, truth: u32, mask: u32) {
        if d.row != NOWHERE {
            let word = &mut self.regs[d.row as usize].0[0];
            *word = *word & !mask | truth & mask;
        }
    }

    /// Stops with a fault of the program, committed by a lane.
    pub fn fault(&mut self, lane: usize, kind: FaultKind, notes: Vec<String>) -> Flow {
        let fault = make_fault(self.code, self.cta, self.warp, (self.frame, self.pc), lane, kind, notes);
        self.stop.get_or_insert(Stop::Fault(Box::new(fault)));
        Flow::Stop
    }

    /// Notes that a lane does what PTX leaves undefined, and that the launch goes on.
    pub fn note_undefined(&self, lane: usize, what: impl FnOnce() -> FaultKind) {
        let fault = || make_fault(self.code, self.cta, self.warp, (self.frame, self.pc), lane, what(), Vec::new());
        self.grid.note_undefined(fault);
    }

    /// Stops since the host has no more of something.
    pub fn exhausted(&mut self, what: &str) -> Flow {
        self.stop.get_or_insert(Stop::Exhausted(Exhausted(what.into())));
        Flow::Stop
    }

    /// Stops since margay lacks something.
    pub fn unsupported(&mut self, what: String) -> Flow {
        let lacks = Unsupported { what, func: Some(self.func.id), at: Some(self.func.place(self.pc)) };
        self.stop.get_or_insert(Stop::Unsupported(lacks));
        Flow::Stop
    }

    /// Stops since margay is wrong.
    pub fn bug(&mut self, what: &str) -> Flow {
        self.stop.get_or_insert(Stop::Bug(Bug(what.into())));
        Flow::Stop
    }

    /// The first active lane.
    pub fn first(&self) -> usize {
        self.active.trailing_zeros() as usize & 31
    }
}

/// Writes lanes of a register, cut to its width or zero-extended.
pub fn write(regs: &mut [Row], select: &mut Select, d: Dst, values: &[u64; LANES], mask: u32) {
    if d.row == NOWHERE {
        return;
    }
    let to = &mut regs[d.row as usize..d.row as usize + d.shape.rows()];
    match d.shape {
        Shape::Word => {
            let cut = if d.bits < 32 { (1u32 << d.bits) - 1 } else { u32::MAX };
            select.merge_words(u32s_mut(to), &values.map(|v| v as u32 & cut), mask);
        }
        Shape::Double => select.merge_doubles(u64s_mut(to), values, mask),
        Shape::Quad => {
            let mut all = u128s(to);
            lanes(mask).for_each(|i| all[i] = values[i].into());
            crate::lanes::set_u128s(to, &all);
        }
        Shape::Pred => {
            let truth = (0..LANES).fold(0, |m, i| m | u32::from(values[i] != 0) << i);
            to[0].0[0] = to[0].0[0] & !mask | truth & mask;
        }
    }
}

/// A fault with everything around it.
pub fn make_fault(
    code: &Code,
    cta: &CtaState,
    warp: &Warp,
    (frame, pc): (FrameIndex, u32),
    lane: usize,
    kind: FaultKind,
    notes: Vec<String>,
) -> Fault {
    let place = |frame: FrameIndex, pc: u32| {
        let f = warp.frames.get(frame as usize)?;
        let func = code.funcs.get(f.func as usize)?.as_ref()?;
        Some((func.id, func.place(pc)))
    };
    let stack = super::step::watch::callers(&code.funcs, warp, frame);
    let thread = std::array::from_fn(|d| warp.tid[d].0[lane & 31]);
    Fault { kind, thread, cta: cta.id, at: place(frame, pc), stack, notes }
}
