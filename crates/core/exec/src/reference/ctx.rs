//! The execution context of handlers: one group of lanes at one op.

use super::{
    code::{Code, Dst, Flow, FuncCode, NEGATED, NOWHERE, Op, Shape, Src, UNGUARDED},
    schedule::SPINS,
    state::{CtaState, FrameIndex, Group, NO_FRAME, Select, Wait, Warp, lanes},
    tensor_memory::TensorMemory,
};
use crate::{
    Bug, Exhausted, Fault, FaultKind, Grid, LANES, Row, Stop, Undefined, Unsupported,
    lanes::{each, u32s, u32s_mut, u64s, u64s_mut, u128s},
    mem::Allocation,
};
use parking_lot::Mutex;
use std::{cell::Cell, sync::Arc};

/// Limit of register rows (128 bytes each) of one warp's frames: 1 GiB.
const MAX_ROWS: usize = 1 << 23;

/// Windows and cluster shape of a launch, shared by the CTAs of a cluster.
pub struct Windows {
    /// Shared windows of the cluster's CTAs, by rank.
    pub shared: Vec<Arc<Allocation>>,
    /// Tensor memories of the cluster's CTAs, by rank.
    pub tensor: Vec<Mutex<TensorMemory>>,
    /// Size of a local window in bytes.
    pub local_size: u32,
    /// Distance between two lanes' local windows in bytes.
    pub stride: u64,
    /// Host address of the parameter block.
    pub params: u64,
    /// Cluster index in the grid.
    pub cluster: [u32; 3],
    /// CTAs of the cluster.
    pub cluster_size: [u32; 3],
}

/// The state that a handler works on.
pub struct Ctx<'a> {
    /// The kernel.
    pub code: &'a Code,
    /// The launch.
    pub grid: &'a Grid<'a>,
    /// Windows.
    pub windows: &'a Windows,
    /// State shared by the warps of the CTA.
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
    /// Lanes that execute the op, after the guard.
    pub active: u32,
    /// Lanes of the frame: if all of them are active, whole rows may be overwritten.
    pub full: u32,
    /// Index of the op.
    pub pc: u32,
    /// Whether the schedule is randomized.
    pub random: bool,
    /// Whether the frame is the kernel's.
    top: bool,
    /// Whether the kernel's jumps back are counted.
    pub counted: bool,
    /// The kernel's op at which the group stops, if it jumps there; [`NOWHERE`] if there is none.
    pub stop_at: u32,
    /// Ops executed since the group was picked.
    pub executed: u64,
    /// Active lanes summed over these ops, if the launch counts.
    pub lanes: u64,
    /// Lanes for which the op has loaded undefined values, in observed launches, and whether from the thread's own memory.
    pub undefined_lanes: Cell<(Undefined, bool)>,
    /// Why the execution stops.
    pub stop: Option<Stop>,
}

impl<'a> Ctx<'a> {
    /// A context for a group of lanes at its op, in its frame; none if the code lacks the frame's function.
    pub fn new(
        code: &'a Code,
        grid: &'a Grid<'a>,
        windows: &'a Windows,
        cta: &'a mut CtaState,
        warp: &'a mut Warp,
        group: &Group,
    ) -> Option<Ctx<'a>> {
        let id = warp.frames[group.frame as usize].func;
        let func = code.funcs.get(id as usize)?.as_ref()?;
        let mut ctx = Ctx {
            code,
            grid,
            windows,
            cta,
            warp,
            func,
            regs: Vec::new(),
            frame: NO_FRAME,
            mask: group.mask,
            active: group.mask,
            full: 0,
            pc: group.pc,
            random: false,
            top: false,
            counted: false,
            stop_at: NOWHERE,
            executed: 0,
            lanes: 0,
            undefined_lanes: Default::default(),
            stop: None,
        };
        ctx.enter(group.frame);
        Some(ctx)
    }

    /// The lanes of the group that execute an op, after its guard.
    #[inline(always)]
    pub fn guarded(&self, op: &Op) -> u32 {
        match op.guard {
            UNGUARDED => self.mask,
            guard => {
                let truth = self.regs[(guard & !NEGATED) as usize].0[0];
                self.mask & if guard & NEGATED != 0 { !truth } else { truth }
            }
        }
    }

    /// Runs the group until it is put away, or jumps after `fuel` ops.
    pub fn run(&mut self, fuel: u64) {
        // Counting and observing cost time and are rarely requested.
        let observed = self.grid.counts.is_some() || self.grid.observer.is_some();
        loop {
            let op: &'a Op = &self.func.ops[self.pc as usize];
            self.executed += 1;
            self.active = self.guarded(op);
            if observed {
                self.lanes += u64::from(self.active.count_ones());
                if self.grid.observer.is_some() {
                    super::uninitialized::check_uses(self);
                }
            }
            if self.active == 0 {
                self.pc += 1;
                continue;
            }
            match (op.run)(self, op) {
                Flow::Next => {
                    if observed && self.undefined_lanes.get().0 != Undefined::default() {
                        super::uninitialized::note_loaded(self);
                    }
                    self.pc += 1;
                    if observed && self.cta.yielding.warp.get() {
                        // It continues where it is, whatever other groups the warp has.
                        self.warp.favored = (self.mask.trailing_zeros(), 1);
                        self.requeue();
                        return;
                    }
                }
                Flow::Jump(to) => {
                    if self.counted && self.top && to <= self.pc {
                        self.cta.visits[to as usize] += 1;
                    }
                    self.pc = to;
                    let stops = to == self.stop_at && self.top;
                    let put_away = self.executed >= fuel || self.warp.spins >= SPINS || stops;
                    if put_away || self.must_yield(to) {
                        self.requeue();
                        return;
                    }
                }
                Flow::Park | Flow::Stop => return,
            }
        }
    }

    /// Whether the scheduler must choose again: another group goes first or is at `to`, where this one arrives. A fast
    /// path of [`super::schedule::pick`].
    #[inline]
    fn must_yield(&mut self, to: u32) -> bool {
        if self.warp.ready.is_empty() {
            return false;
        }
        self.warp.turn += 1;
        if self.random || self.warp.turn.is_multiple_of(64) || self.warp.favored.1 > 0 {
            return true;
        }
        let depth = self.warp.frames[self.frame as usize].depth;
        self.warp.ready.iter().any(|g| match g.frame == self.frame {
            true => g.pc <= to,
            false => self.warp.frames[g.frame as usize].depth >= depth,
        })
    }

    /// Puts the group away as ready.
    pub fn requeue(&mut self) {
        self.put_ready(self.mask, self.pc);
        self.give_back();
    }

    /// Adds a ready group in the current frame.
    pub fn put_ready(&mut self, mask: u32, pc: u32) {
        let since = self.warp.turn;
        self.warp.ready.push(Group { mask, frame: self.frame, pc, since });
    }

    /// Blocks lanes of the current frame at the current op.
    pub fn block(&mut self, mask: u32, why: Wait) {
        let group = Group { mask, frame: self.frame, pc: self.pc, since: self.warp.turn };
        self.warp.blocked.push((group, why));
    }

    /// Returns the registers to their frame.
    pub fn give_back(&mut self) {
        if self.frame != NO_FRAME {
            self.warp.frames[self.frame as usize].regs = std::mem::take(&mut self.regs);
            self.frame = NO_FRAME;
        }
    }

    /// Makes `frame` the current frame.
    pub fn enter(&mut self, frame: FrameIndex) {
        let f = &mut self.warp.frames[frame as usize];
        self.regs = std::mem::take(&mut f.regs);
        (self.full, self.top) = (f.lanes, f.depth == 0);
        self.frame = frame;
        if let Some(func) = self.code.funcs.get(f.func as usize).and_then(Option::as_ref) {
            self.func = func;
        }
    }

    /// Stops if the frames of the warp exceed the limit on registers.
    pub fn check_registers(&mut self) -> Result<(), Flow> {
        if self.warp.register_rows() <= MAX_ROWS {
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
            Shape::Double => each(u64s(self.src(s)), |v| v as u32),
            Shape::Quad => each(&u128s(self.src(s)), |v| v as u32),
        }
    }

    /// A source as 64-bit lanes, zero-extended or truncated.
    pub fn doubles(&self, s: Src) -> [u64; LANES] {
        match s.shape() {
            Shape::Word | Shape::Pred => each(u32s(self.src(s)), u64::from),
            Shape::Double => *u64s(self.src(s)),
            Shape::Quad => each(&u128s(self.src(s)), |v| v as u64),
        }
    }

    /// A source as 128-bit lanes, zero-extended.
    pub fn quads(&self, s: Src) -> [u128; LANES] {
        match s.shape() {
            Shape::Word | Shape::Pred => each(u32s(self.src(s)), u128::from),
            Shape::Double => each(u64s(self.src(s)), u128::from),
            Shape::Quad => u128s(self.src(s)),
        }
    }

    /// The mask of a predicate.
    #[inline(always)]
    pub fn pred(&self, s: Src) -> u32 {
        self.src(s)[0].0[0]
    }

    /// Writes lanes of a register, truncated to its width or zero-extended.
    pub fn write(&mut self, d: Dst, values: &[u64; LANES], mask: u32) {
        write(&mut self.regs, &mut self.warp.select, d, values, mask);
    }

    /// The same with words.
    pub fn write_words(&mut self, d: Dst, values: &[u32; LANES], mask: u32) {
        if d.row == NOWHERE {
            return;
        }
        if matches!(d.shape, Shape::Word) && d.bits >= 32 {
            self.warp.select.merge_words(u32s_mut(&mut self.regs[d.row as usize..=d.row as usize]), values, mask);
        } else {
            self.write(d, &each(values, u64::from), mask);
        }
    }

    /// Writes a predicate.
    pub fn write_pred(&mut self, d: Dst, truth: u32, mask: u32) {
        if d.row != NOWHERE {
            let word = &mut self.regs[d.row as usize].0[0];
            *word = *word & !mask | truth & mask;
        }
    }

    /// Stops with a fault of the program in `lane`.
    pub fn fault(&mut self, lane: usize, kind: FaultKind, notes: Vec<String>) -> Flow {
        let fault = make_fault(self.code, self.cta, self.warp, (self.frame, self.pc), lane, kind, notes);
        self.stop.get_or_insert(Stop::Fault(Box::new(fault)));
        Flow::Stop
    }

    /// Notes that a lane does what PTX leaves undefined; the launch continues.
    pub fn note_undefined(&self, lane: usize, what: impl FnOnce() -> FaultKind) {
        let fault = || make_fault(self.code, self.cta, self.warp, (self.frame, self.pc), lane, what(), Vec::new());
        self.grid.note_undefined(fault);
    }

    /// Stops because the host ran out of a resource.
    pub fn exhausted(&mut self, what: &str) -> Flow {
        self.stop.get_or_insert(Stop::Exhausted(Exhausted(what.into())));
        Flow::Stop
    }

    /// Stops because margay lacks something.
    pub fn unsupported(&mut self, what: String) -> Flow {
        let lacks = Unsupported { what, func: Some(self.func.id), at: Some(self.func.place(self.pc)) };
        self.stop.get_or_insert(Stop::Unsupported(lacks));
        Flow::Stop
    }

    /// Stops because of a bug in margay.
    pub fn bug(&mut self, what: &str) -> Flow {
        self.stop.get_or_insert(Stop::Bug(Bug(what.into())));
        Flow::Stop
    }

    /// The first active lane.
    pub fn first(&self) -> usize {
        self.active.trailing_zeros() as usize & 31
    }
}

/// Writes lanes of a register, truncated to its width or zero-extended.
pub fn write(regs: &mut [Row], select: &mut Select, d: Dst, values: &[u64; LANES], mask: u32) {
    if d.row == NOWHERE {
        return;
    }
    let to = &mut regs[d.row as usize..d.row as usize + d.shape.rows()];
    match d.shape {
        Shape::Word => {
            let cut = if d.bits < 32 { (1u32 << d.bits) - 1 } else { u32::MAX };
            select.merge_words(u32s_mut(to), &each(values, |v| v as u32 & cut), mask);
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

/// Creates a fault with place, thread and call stack.
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
    let stack = super::step::watch::callers(&code.funcs, warp, frame, usize::MAX);
    let thread = std::array::from_fn(|d| warp.tid[d].0[lane & 31]);
    Fault { kind, thread, cta: cta.id, at: place(frame, pc), stack, notes }
}
