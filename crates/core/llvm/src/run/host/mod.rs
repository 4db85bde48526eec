//! The host's state during a call of generated code, on which helpers work.

mod check;

use crate::{
    code::callable::Code,
    ctx::{WarpCtx, status},
    emit::{Site, SiteKind},
    run::barrier_state::BarrierState,
    run::cta::CtaPosition,
    run::fiber::PendingCalls,
    run::observe::Observation,
    run::thunk,
    run::windows::Windows,
};
use margay_exec::{
    Access, Bug, COUNTS, Fault, FaultKind, Frame, Grid, Initiator, LANES, Meter, Row, Stop, alloca_beyond, builtin,
    jump_beyond, lanes, left_out,
    mem::{Allocation, Path},
    parameter_beyond, restore_beyond, returned,
    single_step::{self, Step},
    stack_note,
};
use margay_ir::{Builtin, FuncId, Operand};
use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    sync::Arc,
};

/// The largest number of callers that are noted of a fault. Where a stack is deeper, its outermost callers are missing.
const MAX_CALLERS: usize = 1 << 16;

/// The largest number of source registers of a pure row: `wmma.mma` has three fragments of eight.
const MAX_SOURCES: usize = 24;

/// The state of the helpers of one CTA or worker.
pub struct Host<'a> {
    pub grid: &'a Grid<'a>,
    pub code: Arc<Code>,
    /// Checks that found small allocations.
    small: Cell<u32>,
    /// Returned to the pool on drop; `None` only then.
    windows: Option<Box<Windows>>,
    counts: [Cell<u64>; COUNTS],
    /// Shared windows of the cluster's CTAs by rank; empty without clusters.
    cluster: Arc<[Arc<Allocation>]>,
    rank: u32,
    /// `%ctaid`, where it does not change.
    cta: [u32; 3],
    /// Charged by code that loops; `None` on fibers, whose scheduler counts fuel.
    pub meter: Option<&'a dyn Meter>,
    /// Barriers of the CTA, where warps run on fibers.
    pub barriers: RefCell<BarrierState>,
    /// Messages between fibers and scheduler.
    pub fibers: RefCell<PendingCalls>,
    /// What was reported to the launch's observer, if it has one.
    pub observation: Option<Box<Observation<'a>>>,
    /// State of the reference engine, for instructions that it executes.
    machine: RefCell<Option<single_step::Machine>>,
    /// A range came from a parameter block or a cluster, which the next launch places elsewhere: the ranges must not be
    /// reused.
    transient: Cell<bool>,
    /// Size of a thread's stack that has overflowed; the note of the fault needs the depth, which is counted while
    /// calls unwind.
    overflow: Cell<Option<u32>>,
    /// Calls unwound because of the stop.
    unwound: Cell<u32>,
    stopped: RefCell<Option<Stop>>,
}

impl<'a> Host<'a> {
    /// Creates the state of a worker that runs one CTA after another, with a meter that may stop it.
    pub fn of_worker(grid: &'a Grid<'a>, code: Arc<Code>, windows: Box<Windows>, meter: &'a dyn Meter) -> Rc<Host<'a>> {
        let place = CtaPosition { cta: [0; 3], rank: 0, cluster: Arc::default() };
        Host::new(grid, code, windows, Some(meter), BarrierState::default(), place)
    }

    /// Creates the state of a CTA whose warps run on fibers.
    pub fn of_cta(grid: &'a Grid<'a>, code: Arc<Code>, windows: Box<Windows>, place: CtaPosition) -> Rc<Host<'a>> {
        Host::new(grid, code, windows, None, BarrierState::new(grid.launch.shape.block), place)
    }

    fn new(
        grid: &'a Grid<'a>,
        code: Arc<Code>,
        windows: Box<Windows>,
        meter: Option<&'a dyn Meter>,
        barriers: BarrierState,
        place: CtaPosition,
    ) -> Rc<Host<'a>> {
        let observation = Observation::new(grid, &code.compiled.sites);
        // Behind a pointer from the beginning, since contexts hold its address.
        Rc::new(Host {
            grid,
            code,
            small: Cell::new(0),
            windows: Some(windows),
            counts: std::array::from_fn(|_| Cell::new(0)),
            cta: place.cta,
            cluster: place.cluster,
            rank: place.rank,
            meter,
            barriers: RefCell::new(barriers),
            fibers: RefCell::default(),
            observation,
            machine: RefCell::new(None),
            transient: Cell::new(false),
            overflow: Cell::new(None),
            unwound: Cell::new(0),
            stopped: RefCell::new(None),
        })
    }

    /// The memory that the CTA uses.
    pub fn windows(&self) -> &Windows {
        let Some(windows) = &self.windows else { unreachable!("they go when the host's side does") };
        windows
    }

    /// Creates the context of a warp. It points into what `this` owns and borrows, and must not outlive it
    /// ([`crate::run::enter::Context`]).
    pub fn context(this: &Rc<Host<'a>>, warp: u32) -> WarpCtx {
        let mut ctx = this.windows().context(&this.code.compiled, this.grid, this.cta, warp);
        ctx.host = Rc::as_ptr(this).expose_provenance() as u64;
        ctx.helpers = thunk::table().as_ptr().expose_provenance() as u64;
        if let Some(observation) = &this.observation {
            observation.give_buffers(&mut ctx);
        }
        ctx.counts = this.counts.as_ptr().expose_provenance() as u64;
        ctx
    }

    /// Takes the reason why code stopped.
    pub fn reason(&self) -> Stop {
        let mut stop = self.stopped.borrow_mut().take();
        if let (Some(Stop::Fault(fault)), Some(size)) = (&mut stop, self.overflow.take()) {
            fault.notes.push(stack_note(size, self.unwound.get()));
        }
        stop.unwrap_or_else(|| Stop::Bug(Bug("code stopped without a reason".into())))
    }
}

impl Drop for Host<'_> {
    fn drop(&mut self) {
        if let Some(counts) = self.grid.counts {
            counts.add_all(&self.counts.each_ref().map(Cell::get));
        }
        if let Some(mut windows) = self.windows.take() {
            if self.transient.get() {
                windows.forget();
            }
            self.code.pool.put(windows);
        }
    }
}

impl Host<'_> {
    /// Records the reason of a stop, unless there is one already.
    pub fn stop(&self, stop: Stop) -> u32 {
        self.stopped.borrow_mut().get_or_insert(stop);
        status::STOP
    }

    /// Whether a stop was recorded.
    pub fn is_stopped(&self) -> bool {
        self.stopped.borrow().is_some()
    }

    /// Adds the caller at `site` to the call stack of the fault: the function it called has stopped.
    pub fn unwind(&self, site: usize) {
        let site = &self.code.compiled.sites[site];
        let places = &self.grid.image.ir.funcs[site.func as usize].places;
        self.unwound.set(self.unwound.get() + 1);
        if let Some(Stop::Fault(fault)) = &mut *self.stopped.borrow_mut()
            && fault.stack.len() < MAX_CALLERS
        {
            let at = places.get(site.at as usize).copied().unwrap_or_default();
            fault.stack.push(Frame { func: FuncId(site.func), at });
        }
    }

    /// Function and line of a site, for messages.
    pub fn position(&self, site: usize) -> String {
        let Some(site) = self.code.compiled.sites.get(site) else { return String::new() };
        let func = &self.grid.image.ir.funcs[site.func as usize];
        let line = func.places.get(site.at as usize).map(|p| func.source.lines().line(p.span.start));
        line.map_or(String::new(), |line| format!(" in `{}`, line {line}", func.name))
    }

    /// Number of side effects of instructions executed by the reference engine: its growth is progress.
    pub fn effects(&self) -> u64 {
        self.machine.borrow().as_ref().map_or(0, single_step::Machine::effects)
    }

    pub fn fault_at(&self, ctx: &WarpCtx, site: usize, lane: u32, kind: FaultKind, notes: Vec<String>) -> Stop {
        Stop::Fault(Box::new(self.facts(ctx, site, lane, kind, notes)))
    }

    fn facts(&self, ctx: &WarpCtx, site: usize, lane: u32, kind: FaultKind, notes: Vec<String>) -> Fault {
        let site = &self.code.compiled.sites[site];
        let func = &self.grid.image.ir.funcs[site.func as usize];
        let place = func.places.get(site.at as usize).copied().unwrap_or_default();
        Fault {
            kind,
            thread: self.code.compiled.thread_index(self.grid.launch.shape.block, ctx.warp.get(), lane),
            cta: ctx.cta.get(),
            at: Some((FuncId(site.func), place)),
            stack: Vec::new(),
            notes,
        }
    }

    /// Notes that a lane executes a warp operation whose member mask leaves it out, or returns from a function with `.noreturn`.
    pub fn note_undefined(&self, ctx: &WarpCtx, site: usize, lane: u32) {
        self.grid.note_undefined(|| {
            let Site { func, inst, ref kind, .. } = self.code.compiled.sites[site];
            let func = &self.grid.image.ir.funcs[func as usize];
            let kind = match kind {
                SiteKind::Returned => returned(&func.name),
                _ => left_out(lane as usize, func.variant(&func.insts[inst as usize])),
            };
            self.facts(ctx, site, lane, kind, Vec::new())
        });
    }

    /// The fault of a site, detected by generated code.
    pub fn fault(&self, ctx: &WarpCtx, site: usize, lane: u32) -> Stop {
        let what = match &self.code.compiled.sites[site].kind {
            SiteKind::Fault(what) => &**what,
            SiteKind::Fails(kind) => return self.fault_at(ctx, site, lane, kind.clone(), Vec::new()),
            _ => "an effect",
        };
        let kind = match what {
            "trap" => FaultKind::Trap,
            "native stack" => FaultKind::Stack("the host's stack for device calls is full".into()),
            w if w.contains("barrier") || w.contains("warp operation") => {
                FaultKind::Barrier(format!("lane {lane}: {w}"))
            }
            w => FaultKind::BadTarget(w.into()),
        };
        self.fault_at(ctx, site, lane, kind, Vec::new())
    }

    /// The fault of a failed guard; [`crate::ctx::Helper::Refuse`] documents the numbers.
    pub fn refusal(&self, ctx: &WarpCtx, site: usize, lane: u32, [a, b, c]: [u64; 3]) -> Stop {
        let place = &self.code.compiled.sites[site];
        let (address, known) = match place.kind {
            SiteKind::Parameter { size, write, passed } => {
                let access = Access { write, address: a, size, space: ".param" };
                (a, Some(parameter_beyond(access, b as u32, passed)))
            }
            SiteKind::Alloca => (a, Some(alloca_beyond(a, b, ctx.local_size as u32))),
            SiteKind::Restore => (a, Some(restore_beyond(a, b, c))),
            SiteKind::Jump => return self.fault_at(ctx, site, lane, jump_beyond(a as u32, b as usize), Vec::new()),
            _ => (a, None),
        };
        if let Some((kind, note)) = known {
            return self.fault_at(ctx, site, lane, kind, vec![note]);
        }
        let (image, func) = (self.grid.image, self.grid.image.ir.func(FuncId(place.func)));
        let operands = func.insts.get(place.inst as usize).map(|i| func.operands(i.srcs));
        let Some(Some(Operand::Call(call))) = operands.map(|o| o.last()) else {
            return Stop::Bug(Bug("a call was refused at a site without a call".into()));
        };
        let kind = match image.target(&func.calls[*call as usize], address) {
            Err(kind) => kind,
            Ok(id) => {
                self.overflow.set(Some(ctx.local_size as u32));
                image.stack_full(id)
            }
        };
        self.fault_at(ctx, site, lane, kind, Vec::new())
    }

    /// The reference engine executes the instruction of a site; false if it must be retried after other warps have run.
    pub fn effect(
        &self,
        ctx: &WarpCtx,
        site: usize,
        lanes: (u32, u32),
        input: &[Row],
        output: &mut [Row],
    ) -> Result<bool, Box<Stop>> {
        let place = &self.code.compiled.sites[site];
        let Some(single_step) = &self.code.single_step else {
            return Err(Box::new(Stop::Bug(Bug("effects cannot be executed here".into()))));
        };
        self.release_observer(ctx);
        let mut machine = self.machine.borrow_mut();
        let machine = machine.get_or_insert_with(|| self.new_machine(single_step, ctx));
        single_step.execute(machine, self.grid, step(ctx, place, lanes), input, output).map_err(Box::new)
    }

    fn new_machine(&self, single_step: &single_step::SingleStep, ctx: &WarpCtx) -> single_step::Machine {
        let shared = match &*self.cluster {
            [] => (vec![self.windows().shared.clone()], 0),
            cluster => (cluster.to_vec(), self.rank),
        };
        let size = ctx.local_size.min(ctx.local_stride) as u32;
        single_step.machine(self.grid, shared, (self.windows().local.clone(), ctx.local_stride, size))
    }

    /// Lanes arrive at a warp operation whose other members have not arrived.
    pub fn park(&self, ctx: &WarpCtx, site: usize, lanes: (u32, u32), input: &[Row]) -> Result<(), Box<Stop>> {
        let place = &self.code.compiled.sites[site];
        let Some(single_step) = &self.code.single_step else {
            return Err(Box::new(Stop::Bug(Bug("effects cannot be executed here".into()))));
        };
        let mut machine = self.machine.borrow_mut();
        let machine = machine.get_or_insert_with(|| self.new_machine(single_step, ctx));
        single_step.arrive(machine, self.grid, step(ctx, place, lanes), input).map_err(Box::new)
    }

    /// Takes lanes of a warp that their rendezvous has released, and the number of result rows written to `output`.
    pub fn take_released(&self, warp: u32, lanes: u32, live: u32, output: &mut [Row]) -> Option<(u32, usize)> {
        self.code.single_step.as_ref()?.released(self.machine.borrow_mut().as_mut()?, (warp, lanes), live, output)
    }

    /// Lanes of a warp that wait in a rendezvous: lanes, site, description.
    pub fn waiters(&self, warp: u32) -> Vec<(u32, usize, String)> {
        let machine = self.machine.borrow();
        let waiters = machine.as_ref().map_or(Vec::new(), |m| m.waiters(warp));
        let sites = &self.code.compiled.sites;
        let site = |(f, i): (FuncId, u32)| sites.iter().position(|s| (s.func, s.inst) == (f.0, i)).unwrap_or(0);
        waiters.into_iter().map(|w| (w.lanes, site(w.at), w.what)).collect()
    }

    /// Calls a function of the device library for the lanes of `mask`.
    pub fn builtin(
        &self,
        ctx: &WarpCtx,
        site: usize,
        builtin: Builtin,
        mask: u32,
        args: &[[u64; LANES]],
    ) -> Result<[u64; LANES], Box<Stop>> {
        self.release_observer(ctx);
        let mut byte = |address: u64, lane: usize| self.byte(ctx, lane as u32, address);
        let thread = |lane: usize| {
            let block = self.grid.launch.shape.block;
            Initiator::Thread(self.code.compiled.thread_index(block, ctx.warp.get(), lane as u32), ctx.cta.get())
        };
        let path = || {
            let place = &self.code.compiled.sites[site];
            let func = &self.grid.image.ir.funcs[place.func as usize];
            let at = func.places.get(place.at as usize).copied().unwrap_or_default();
            Path(vec![(func.source.clone(), at)])
        };
        let call = builtin::Call { grid: self.grid, args, byte: &mut byte, thread: &thread, path: &path };
        builtin::call(builtin, mask, call)
            .map_err(|f| Box::new(self.fault_at(ctx, site, f.lane as u32, f.kind, f.notes)))
    }

    /// Evaluates a pure row by its semantic function.
    pub fn pure(&self, site: usize, mask: u32, input: &[Row], output: &mut [Row]) {
        let site_data = &self.code.compiled.sites[site];
        let (SiteKind::Pure { srcs, .. }, Some(f)) = (&site_data.kind, self.code.compiled.pure[site]) else { return };
        let func = &self.grid.image.ir.funcs[site_data.func as usize];
        let variant = func.variant(&func.insts[site_data.inst as usize]);
        let mut slices: [&[Row]; MAX_SOURCES] = [&[]; MAX_SOURCES];
        let mut at = 0;
        for (slice, bits) in slices.iter_mut().zip(srcs) {
            *slice = &input[at..at + lanes::rows(*bits)];
            at += lanes::rows(*bits);
        }
        f(variant, mask, &slices[..srcs.len().min(MAX_SOURCES)], output);
    }
}

/// The instruction of a site, reached by lanes of the context's warp: those that live, and those that execute it.
fn step(ctx: &WarpCtx, site: &Site, (live, mask): (u32, u32)) -> Step {
    Step { cta: ctx.cta.get(), warp: ctx.warp.get(), live, mask, at: (FuncId(site.func), site.inst) }
}
