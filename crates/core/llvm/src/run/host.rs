//! The host's side of generated code: what helpers find when code comes back.

use crate::{
    code::callable::Code,
    ctx::{WarpCtx, status},
    emit::{Site, SiteKind},
    run::barrier_state::BarrierState,
    run::cta::Place,
    run::fiber::PendingCalls,
    run::thunk,
    run::windows::Windows,
};
use margay_exec::{
    Access, Bug, COUNTS, Fault, FaultKind, Frame, Freer, Grid, LANES, Meter, Row, Stop, alloca_beyond, builtin, lanes,
    left_out,
    mem::{self, Allocation, Ranges},
    restore_beyond,
    single_step::{self, OTHER_THREAD},
    stack_note,
};
use margay_ir::{Builtin, FuncId, Operand};
use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    sync::{
        Arc,
        atomic::{Ordering::SeqCst, fence},
    },
};

/// Callers that a fault names at most.
const MOST_CALLERS: usize = 64;

/// Sources that a pure row has at most: `wmma.mma` has three fragments of eight registers.
const MOST_SOURCES: usize = 24;

/// Memory around an address.
struct Window {
    start: u64,
    length: u64,
    writable: bool,
    /// It belongs to one lane, so that it is nothing for others.
    of_lane: bool,
}

/// What helpers need to know about the code that calls them.
pub struct Host<'a> {
    pub grid: &'a Grid<'a>,
    pub code: Arc<Code>,
    pub shared: Arc<Allocation>,
    pub local: Arc<Allocation>,
    /// By access site, what was found valid last.
    ranges: Arc<Ranges>,
    /// The windows that these belong to; given back in the end.
    windows: Option<Windows>,
    counts: [Cell<u64>; COUNTS],
    /// Shared windows of the cluster's CTAs, by rank; none without clusters.
    cluster: Arc<[Arc<Allocation>]>,
    rank: u32,
    /// `%ctaid`, where it is always the same.
    cta: [u32; 3],
    /// Asked by code that loops.
    pub meter: Option<&'a dyn Meter>,
    /// Who waits where, for warps with stacks.
    pub barriers: RefCell<BarrierState>,
    /// What the fibers of the CTA's warps tell.
    pub fibers: RefCell<PendingCalls>,
    /// State of the reference engine, for instructions that it executes.
    machine: RefCell<Option<single_step::Machine>>,
    /// Code came by a parameter block: where that lies is nothing to be remembered for the next launch.
    fleeting: Cell<bool>,
    /// A thread's stack is full: what the fault says of it wants the number of calls, which are counted while they end.
    overflow: Cell<Option<u32>>,
    /// Calls that ended because of the stop.
    unwound: Cell<u32>,
    stopped: RefCell<Option<Stop>>,
}

/// Index of a thread in its CTA.
pub fn thread(block: [u32; 3], warp: u32, lane: u32) -> [u32; 3] {
    let (t, [x, y, _]) = (warp * 32 + lane, block);
    [t % x, t / x % y, t / (x * y)]
}

impl<'a> Host<'a> {
    /// The host's side of one worker, that takes CTA after CTA and asks a meter whether to go on.
    pub fn of_worker(grid: &'a Grid<'a>, code: Arc<Code>, windows: Windows, meter: &'a dyn Meter) -> Rc<Host<'a>> {
        let place = Place { cta: [0; 3], rank: 0, cluster: Arc::default() };
        Host::new(grid, code, windows, Some(meter), BarrierState::default(), place)
    }

    /// The host's side of one CTA, whose warps have stacks.
    pub fn of_cta(grid: &'a Grid<'a>, code: Arc<Code>, windows: Windows, place: Place) -> Rc<Host<'a>> {
        Host::new(grid, code, windows, None, BarrierState::new(grid.launch.block), place)
    }

    fn new(
        grid: &'a Grid<'a>,
        code: Arc<Code>,
        windows: Windows,
        meter: Option<&'a dyn Meter>,
        barriers: BarrierState,
        place: Place,
    ) -> Rc<Host<'a>> {
        // Behind a pointer from the beginning: contexts hold its address.
        Rc::new(Host {
            grid,
            code,
            shared: windows.shared.clone(),
            local: windows.local.clone(),
            ranges: windows.ranges.clone(),
            windows: Some(windows),
            counts: std::array::from_fn(|_| Cell::new(0)),
            cta: place.cta,
            cluster: place.cluster,
            rank: place.rank,
            meter,
            barriers: RefCell::new(barriers),
            fibers: RefCell::default(),
            machine: RefCell::new(None),
            fleeting: Cell::new(false),
            overflow: Cell::new(None),
            unwound: Cell::new(0),
            stopped: RefCell::new(None),
        })
    }

    /// A context for code that comes back to this. It points into what the host's side owns and what it borrows, and lives no longer than
    /// that ([`crate::run::enter::Context`]).
    pub fn context(this: &Rc<Host<'a>>, warp: u32) -> WarpCtx {
        let Some(windows) = &this.windows else { unreachable!("they go when the host's side does") };
        let mut ctx = windows.context(&this.code.compiled, this.grid, this.cta, warp);
        ctx.host = Rc::as_ptr(this).expose_provenance() as u64;
        ctx.helpers = thunk::table().as_ptr().expose_provenance() as u64;
        ctx.counts = this.counts.as_ptr().expose_provenance() as u64;
        ctx
    }

    /// Why code stopped.
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
            if self.fleeting.get() {
                windows.forget();
            }
            self.code.pool.give(windows);
        }
    }
}

impl Host<'_> {
    /// Keeps the reason for a stop.
    pub fn stop(&self, stop: Stop) -> u32 {
        self.stopped.borrow_mut().get_or_insert(stop);
        status::STOP
    }

    /// Whether code has stopped.
    pub fn is_stopped(&self) -> bool {
        self.stopped.borrow().is_some()
    }

    /// A function that was called at a site has stopped: its caller belongs to the fault.
    pub fn unwind(&self, site: usize) {
        let site = &self.code.compiled.sites[site];
        let places = &self.grid.image.ir.funcs[site.func as usize].places;
        self.unwound.set(self.unwound.get() + 1);
        if let Some(Stop::Fault(fault)) = &mut *self.stopped.borrow_mut()
            && fault.stack.len() < MOST_CALLERS
        {
            let at = places.get(site.at as usize).copied().unwrap_or_default();
            fault.stack.push(Frame { func: FuncId(site.func), at });
        }
    }

    /// Where a site is, for messages.
    pub fn position(&self, site: usize) -> String {
        let Some(site) = self.code.compiled.sites.get(site) else { return String::new() };
        let func = &self.grid.image.ir.funcs[site.func as usize];
        let line = func.places.get(site.at as usize).map(|p| func.source.lines.line(p.span.start));
        line.map_or(String::new(), |line| format!(" in `{}`, line {line}", func.name))
    }

    /// Counts what instructions left to the reference engine did that others can see.
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
            thread: thread(self.grid.launch.block, ctx.warp.get(), lane),
            cta: ctx.cta.get(),
            at: Some((FuncId(site.func), place)),
            stack: Vec::new(),
            notes,
        }
    }

    /// Notes that a lane executes a warp operation whose member mask leaves it out.
    pub fn left_out(&self, ctx: &WarpCtx, site: usize, lane: u32) {
        self.grid.note_undefined(|| {
            let Site { func, inst, .. } = self.code.compiled.sites[site];
            let func = &self.grid.image.ir.funcs[func as usize];
            let kind = left_out(lane as usize, func.variant(&func.insts[inst as usize]));
            self.facts(ctx, site, lane, kind, Vec::new())
        });
    }

    /// The fault of a site that the code found itself.
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

    /// Why a guard of a call or of the stack says no; [`crate::ctx::Helper::Refuse`] tells what the numbers are.
    pub fn refusal(&self, ctx: &WarpCtx, site: usize, lane: u32, [a, b, c]: [u64; 3]) -> Stop {
        let place = &self.code.compiled.sites[site];
        let (address, known) = match place.kind {
            SiteKind::Passed { size } => {
                let access = Access { write: false, address: a, size, space: ".param" };
                let note = format!("the call passed {b} bytes through the unsized parameter");
                (a, Some((FaultKind::OutOfBounds(access), note)))
            }
            SiteKind::Alloca => (a, Some(alloca_beyond(a, b, ctx.local_size as u32))),
            SiteKind::Restore => (a, Some(restore_beyond(a, b, c))),
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

    /// Checks every active lane's access, and remembers the range that the first one lies in.
    pub fn check(&self, ctx: &WarpCtx, site: usize, mask: u32, addresses: &[u64; LANES]) -> Result<(), Box<Stop>> {
        let epoch = self.grid.memory.epoch();
        let [start, length] = self.find_range(ctx, site, mask, addresses)?;
        let SiteKind::Access { size, span, shift, .. } = self.code.compiled.sites[site].kind else { return Ok(()) };
        // The place of a whole row, and behind it the one of single lanes.
        for (at, span, shift) in [(site, span, shift), (site + 1, u64::from(size), 0)] {
            let low = start.next_multiple_of(1 << shift);
            let places = (length + 1).saturating_sub(span).saturating_sub(low - start);
            self.ranges.set(at, low, places.div_ceil(1 << shift));
        }
        // Whoever freed the memory meanwhile has emptied the range before it was written down, or changed the epoch before this
        // line.
        fence(SeqCst);
        if self.grid.memory.epoch() != epoch {
            [site, site + 1].iter().for_each(|at| self.ranges.empty(*at));
        }
        Ok(())
    }

    /// Checks every active lane's access; gives the range (start, length) that the first one lies in.
    fn find_range(
        &self,
        ctx: &WarpCtx,
        site: usize,
        mask: u32,
        addresses: &[u64; LANES],
    ) -> Result<[u64; 2], Box<Stop>> {
        let SiteKind::Access { size, write, space, .. } = self.code.compiled.sites[site].kind else {
            return Err(Box::new(Stop::Bug(Bug("a check at a site without an access".into()))));
        };
        let mut range = [0, 0];
        for lane in (0..32).filter(|l| mask >> l & 1 == 1) {
            let address = addresses[lane as usize];
            let align = u64::from(size.next_power_of_two().min(32));
            let found = self.window(ctx, lane, address, space);
            let within = |w: &Window| {
                let offset = address.checked_sub(w.start).filter(|o| *o <= w.length);
                offset.is_some_and(|o| u64::from(size) <= w.length - o)
            };
            let relative = address.wrapping_sub(self.start(ctx, lane, space));
            // Offsets in the windows have 32 bits.
            let relative =
                if matches!(space, ".shared" | ".local") { relative & u64::from(u32::MAX) } else { relative };
            let access = Access { write, address: relative, size, space };
            let (kind, note) = match found.filter(within) {
                None => (FaultKind::OutOfBounds(access), self.note(ctx, address, space)),
                Some(_) if !address.is_multiple_of(align) => {
                    (FaultKind::Misaligned(access), format!("{align}-byte alignment is needed"))
                }
                Some(w) if write && !w.writable => (FaultKind::ReadOnly(access), self.grid.memory.describe(address)),
                Some(w) => {
                    if range[1] == 0 && !w.of_lane {
                        range = [w.start, w.length];
                    }
                    continue;
                }
            };
            return Err(Box::new(self.fault_at(ctx, site, lane, kind, vec![note])));
        }
        Ok(range)
    }

    /// Where the addresses of a space begin.
    fn start(&self, ctx: &WarpCtx, lane: u32, space: &str) -> u64 {
        match space {
            ".shared" => self.shared.block.base(),
            ".local" => ctx.local.get() + u64::from(lane) * ctx.local_stride,
            ".param" => self.grid.params().block.base(),
            _ => 0,
        }
    }

    /// What is said of an address outside of everything.
    fn note(&self, ctx: &WarpCtx, address: u64, space: &str) -> String {
        let own = std::slice::from_ref(&self.shared);
        match space {
            ".shared" => format!("the CTA's shared window has {} bytes", self.shared.block.len()),
            ".local" => format!("the thread's local window has {} bytes", ctx.local_size),
            ".param" => format!("the parameter block has {} bytes", self.grid.params().block.len()),
            "generic" if self.local.block.contains(address, 1) => OTHER_THREAD.to_owned(),
            "generic" if self.cluster.is_empty() => self.grid.memory.describe_among(address, own),
            "generic" => self.grid.memory.describe_among(address, &self.cluster),
            _ => self.grid.memory.describe(address),
        }
    }

    /// The memory around an address.
    fn window(&self, ctx: &WarpCtx, lane: u32, address: u64, space: &str) -> Option<Window> {
        let inside = |a: &Allocation| a.block.contains(address, 1);
        let all = |a: &Allocation| Window {
            start: a.block.base(),
            length: a.block.len() as u64,
            writable: a.kind.writable(),
            of_lane: false,
        };
        let own = || Window {
            start: self.start(ctx, lane, ".local"),
            length: ctx.local_size.min(ctx.local_stride),
            writable: true,
            of_lane: true,
        };
        match space {
            ".shared" => return Some(all(&self.shared)),
            ".local" => return Some(own()),
            ".param" => {
                self.fleeting.set(true);
                return Some(all(self.grid.params()));
            }
            "generic" if inside(&self.shared) => return Some(all(&self.shared)),
            // Of local memory a thread has its own only.
            "generic" if inside(&self.local) => return Some(own()),
            "generic" => {
                if let Some(a) = self.cluster.iter().find(|a| inside(a)) {
                    // Another CTA has another cluster.
                    self.fleeting.set(true);
                    return Some(all(a));
                }
            }
            _ => {}
        }
        let a = self.grid.memory.remember(address, self.grid.params())?;
        if Arc::ptr_eq(&a, self.grid.params()) {
            self.fleeting.set(true);
        }
        Some(all(&a))
    }

    /// An instruction by the reference engine; false if it must be tried again when others have had their turn.
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
            return Err(Box::new(Stop::Bug(Bug("nobody executes effects here".into()))));
        };
        let mut machine = self.machine.borrow_mut();
        let machine = machine.get_or_insert_with(|| self.new_machine(single_step));
        let at = (FuncId(place.func), place.inst);
        single_step
            .execute(machine, self.grid, (ctx.cta.get(), ctx.warp.get()), lanes, at, input, output)
            .map_err(Box::new)
    }

    fn new_machine(&self, single_step: &single_step::SingleStep) -> single_step::Machine {
        match &*self.cluster {
            [] => single_step.machine(self.grid, vec![self.shared.clone()], 0),
            cluster => single_step.machine(self.grid, cluster.to_vec(), self.rank),
        }
    }

    /// Lanes come to a warp operation without its other members.
    pub fn park(&self, ctx: &WarpCtx, site: usize, lanes: (u32, u32), input: &[Row]) -> Result<(), Box<Stop>> {
        let place = &self.code.compiled.sites[site];
        let Some(single_step) = &self.code.single_step else {
            return Err(Box::new(Stop::Bug(Bug("nobody executes effects here".into()))));
        };
        let mut machine = self.machine.borrow_mut();
        let machine = machine.get_or_insert_with(|| self.new_machine(single_step));
        let at = (FuncId(place.func), place.inst);
        single_step.arrive(machine, self.grid, (ctx.cta.get(), ctx.warp.get()), lanes, at, input).map_err(Box::new)
    }

    /// Some of the lanes of a warp that need not wait for others any more, and how many rows of results they got.
    pub fn met(&self, warp: u32, lanes: u32, live: u32, output: &mut [Row]) -> Option<(u32, usize)> {
        self.code.single_step.as_ref()?.released(self.machine.borrow_mut().as_mut()?, (warp, lanes), live, output)
    }

    /// The lanes of a warp that wait for others of it: which, at which site, what for.
    pub fn waiters(&self, warp: u32) -> Vec<(u32, usize, String)> {
        let machine = self.machine.borrow();
        let waiters = machine.as_ref().map_or(Vec::new(), |m| m.waiters(warp));
        let sites = &self.code.compiled.sites;
        let site = |(f, i): (FuncId, u32)| sites.iter().position(|s| (s.func, s.inst) == (f.0, i)).unwrap_or(0);
        waiters.into_iter().map(|w| (w.lanes, site(w.at), w.what)).collect()
    }

    /// A function of the device library.
    pub fn builtin(
        &self,
        ctx: &WarpCtx,
        site: usize,
        builtin: Builtin,
        mask: u32,
        args: &[[u64; LANES]],
    ) -> Result<[u64; LANES], Box<Stop>> {
        let mut byte = |address: u64, lane: usize| {
            let w = self
                .window(ctx, lane as u32, address, "generic")
                .filter(|w| address.wrapping_sub(w.start) < w.length)?;
            let windows = [&self.shared, &self.local].into_iter().chain(&*self.cluster);
            match windows.into_iter().find(|a| w.start >= a.block.base() && w.start < a.end()) {
                Some(a) => mem::load::<u8>(&a.block, address),
                None => mem::load::<u8>(&self.grid.memory.find(address)?.block, address),
            }
        };
        let thread =
            |lane: usize| Freer::Thread(thread(self.grid.launch.block, ctx.warp.get(), lane as u32), ctx.cta.get());
        builtin::call(builtin, self.grid, mask, args, &mut byte, &thread)
            .map_err(|f| Box::new(self.fault_at(ctx, site, f.lane as u32, f.kind, f.notes)))
    }

    /// A pure row by its semantic function.
    pub fn pure(&self, site: usize, mask: u32, input: &[Row], output: &mut [Row]) {
        let site_data = &self.code.compiled.sites[site];
        let (SiteKind::Pure { srcs, .. }, Some(f)) = (&site_data.kind, self.code.compiled.pure[site]) else { return };
        let func = &self.grid.image.ir.funcs[site_data.func as usize];
        let variant = func.variant(&func.insts[site_data.inst as usize]);
        let mut slices: [&[Row]; MOST_SOURCES] = [&[]; MOST_SOURCES];
        let mut at = 0;
        for (slice, bits) in slices.iter_mut().zip(srcs) {
            *slice = &input[at..at + lanes::rows(*bits)];
            at += lanes::rows(*bits);
        }
        f(variant, mask, &slices[..srcs.len().min(MOST_SOURCES)], output);
    }
}
