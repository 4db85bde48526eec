//! Events of compiled code for the observer of a launch (`emit/observe.rs`).

mod frame;
mod noted;

use crate::{
    ctx::WarpCtx,
    emit::{Moment, Site, SiteKind},
    run::{host::Host, windows::alive},
};
use margay_exec::{
    AccessKind, Actor, BarrierEvent, CtaEvent, Grid, LANES, LineUses, LockedObserver, MemoryEvent, Observer, Ordering,
    RowEvent, RowLoad, RowLoads, RowPlace, SpreadEvent, SyncEvent, SyncKind, Undefined, barrier::Operands, mem,
};
use margay_ir::{FuncId, MemSpace, Operand, SourcePlace};
use std::cell::{Cell, RefCell, RefMut};

/// What is known of a site before it is executed.
#[derive(Clone, Copy)]
struct Known {
    at: (FuncId, SourcePlace),
    access: AccessKind,
    order: Ordering,
    space: MemSpace,
    size: u32,
    element: u32,
}

/// The addresses of an access.
pub enum Addresses<'a> {
    /// By lane.
    Lanes(&'a [u64; LANES]),
    /// The one of lane 0, and bytes from one lane to the next.
    Row(u64, u64),
}

impl Addresses<'_> {
    fn each(&self) -> [u64; LANES] {
        match self {
            Addresses::Lanes(list) => **list,
            Addresses::Row(first, stride) => {
                std::array::from_fn(|lane| first.wrapping_add(stride.wrapping_mul(lane as u64)))
            }
        }
    }
}

/// The barrier that a site belongs to.
#[derive(Clone, Copy, Default)]
struct Barrier {
    id: u32,
    aligned: bool,
    /// The instruction says how many threads participate.
    counted: bool,
}

impl Barrier {
    fn of(grid: &Grid<'_>, site: &Site) -> Barrier {
        let SiteKind::Moment(Moment::Arrive | Moment::Complete) = site.kind else { return Barrier::default() };
        let func = &grid.image.ir.funcs[site.func as usize];
        let inst = &func.insts[site.inst as usize];
        let operands = Operands::of(func.variant(inst), func.operands(inst.srcs));
        let Some(Operands { id, count, aligned, .. }) = operands else { return Barrier::default() };
        // Only kernels whose barriers have constant numbers are observed.
        let id = if let Operand::Imm(id) = id { id as u32 } else { 0 };
        Barrier { id, aligned, counted: count.is_some() }
    }
}

/// Loads that are noted before the host looks at them.
const LOADS: usize = 256;

/// What the host remembers for the launch's observer.
pub struct Observation<'a> {
    observer: &'a dyn Observer,
    /// Set while generated code runs and nothing else reports.
    locked: RefCell<Option<Box<dyn LockedObserver + 'a>>>,
    /// By site, filled when it is reached first.
    known: RefCell<Vec<Option<Known>>>,
    /// By site: where it is, and what the observer remembers.
    places: Vec<RowPlace>,
    /// By site.
    barriers: Vec<Barrier>,
    /// Loads that generated code has noted.
    loads: Vec<Cell<RowLoad>>,
    /// Accesses that it has noted instead of reporting them.
    notes: Vec<Cell<RowLoad>>,
    /// The uses that generated code has the address of.
    uses: RefCell<Option<LineUses>>,
    /// By warp: the lanes that have arrived at the barrier at which the CTA's region ends.
    arrived: RefCell<Vec<u32>>,
    /// By warp: the lanes that exist.
    born: Vec<u32>,
    /// Whether the observer learns of a CTA only when the CTA has something to report. Without barriers, many CTAs have nothing to report.
    lazy: bool,
    /// Whether the observer knows of the CTA that runs.
    announced: Cell<bool>,
}

impl<'a> Observation<'a> {
    /// For CTAs of a launch; `None` if nothing observes it.
    pub fn new(grid: &Grid<'a>, sites: &[Site]) -> Option<Box<Observation<'a>>> {
        let observer = grid.observer?;
        let threads = grid.launch.shape.threads();
        let born: Vec<u32> = (0..threads.div_ceil(LANES as u32)).map(|warp| alive(warp, threads)).collect();
        let place = |site: &Site| {
            let func = &grid.image.ir.funcs[site.func as usize];
            let at = func.places.get(site.at as usize).copied().unwrap_or_default();
            let (size, stride, access) = match site.kind {
                SiteKind::Observed { bytes, access, stride } => {
                    let variant = func.variant(&func.insts[site.inst as usize]);
                    (bytes, stride, Some((access, Ordering::of(variant, access), variant.t().bytes())))
                }
                _ => (0, 0, None),
            };
            RowPlace { at: (FuncId(site.func), at), access, size, stride, memo: Cell::new(0) }
        };
        Some(Box::new(Observation {
            observer,
            locked: RefCell::default(),
            known: RefCell::default(),
            places: sites.iter().map(place).collect(),
            barriers: sites.iter().map(|site| Barrier::of(grid, site)).collect(),
            loads: vec![Cell::default(); LOADS],
            notes: vec![Cell::default(); noted::LIMIT],
            uses: RefCell::default(),
            arrived: RefCell::new(vec![0; born.len()]),
            born,
            lazy: !sites.iter().any(|s| matches!(s.kind, SiteKind::Moment(Moment::Arrive | Moment::Complete))),
            announced: Cell::new(false),
        }))
    }

    /// The observer, which others cannot report to until it is released.
    fn lock(&self) -> RefMut<'_, Option<Box<dyn LockedObserver + 'a>>> {
        let mut locked = self.locked.borrow_mut();
        if locked.is_none() {
            *locked = self.observer.locked();
        }
        locked
    }
}

impl<'a> Host<'a> {
    fn known(&self, site: usize) -> Option<Known> {
        let observation = self.observation.as_deref()?;
        let mut all = observation.known.borrow_mut();
        if all.len() <= site {
            all.resize(self.code.compiled.sites.len(), None);
        }
        if let Some(known) = all[site] {
            return Some(known);
        }
        let place = &self.code.compiled.sites[site];
        let (SiteKind::Observed { bytes, access, .. } | SiteKind::Bounded { bytes, access, .. }) = place.kind else {
            return None;
        };
        let func = &self.grid.image.ir.funcs[place.func as usize];
        let inst = &func.insts[place.inst as usize];
        let variant = func.variant(inst);
        let known = Known {
            at: observation.places[site].at,
            access,
            order: Ordering::of(variant, access),
            space: inst.space.unwrap_or(MemSpace::Generic),
            size: bytes,
            element: variant.t().bytes(),
        };
        all[site] = Some(known);
        Some(known)
    }

    /// Bytes that an access at a site stores per lane, if the values stored are reported.
    pub fn stored(&self, site: usize) -> Option<usize> {
        match self.code.compiled.sites[site].kind {
            SiteKind::Observed { bytes, access: AccessKind::Store, .. } => Some(bytes as usize),
            _ => None,
        }
    }

    /// Lets others report to the observer.
    pub fn release_observer(&self, ctx: &WarpCtx) {
        let Some(observation) = self.observation.as_deref() else { return };
        self.announce(ctx);
        self.flush(ctx);
        self.report_noted(ctx);
        ctx.line_count.set(0);
        *observation.locked.borrow_mut() = None;
    }

    /// Host address and size of the local windows of a warp.
    fn local_of(&self, ctx: &WarpCtx, warp: u32) -> (u64, u64) {
        let size = ctx.local_stride * LANES as u64;
        (ctx.locals + u64::from(warp) * size, size)
    }

    /// Reports the loads that generated code has noted.
    pub fn flush(&self, ctx: &WarpCtx) {
        let Some(observation) = self.observation.as_deref() else { return };
        let Observation { loads, places, .. } = observation;
        self.report_met(ctx);
        let mut left = Observation::take(loads, &ctx.loads, ctx.loads_end);
        ctx.loads_shared.set(0);
        if !left.is_empty() {
            self.announce(ctx);
            self.report_noted(ctx);
        }
        while !left.is_empty() {
            let event = RowLoads { cta: ctx.cta.get(), list: left, places, local: self.local_of(ctx, 0) };
            let done = observation.lock().as_mut().map_or(0, |locked| locked.loads(&event));
            let Some(next) = left.get(done).map(Cell::get) else { return };
            if next.lanes != 0 {
                let row = Addresses::Row(next.first, places[next.place as usize].stride);
                self.report(ctx, next.place as usize, (next.warp, next.lanes), row, None);
            }
            left = &left[done + 1..];
        }
    }

    /// Reports an access; `values` are the elements stored, each a row of lanes.
    pub fn observe(&self, ctx: &WarpCtx, site: usize, mask: u32, addresses: Addresses<'_>, values: Option<&[u8]>) {
        let Some(observation) = self.observation.as_deref().filter(|_| mask != 0) else { return };
        self.announce(ctx);
        if !self.nothing_is_noted(ctx) {
            self.flush(ctx);
            self.report_noted(ctx);
        }
        let place = &observation.places[site];
        let warp = ctx.warp.get();
        let mut locked = observation.lock();
        let actor = Actor { cta: ctx.cta.get(), warp, lanes: mask, at: place.at, callers: &[] };
        let (size, memo) = (place.size, &place.memo);
        let done = match (&addresses, &mut *locked, place.access) {
            (Addresses::Row(first, stride), Some(locked), _) => {
                let (row, local) = ((*first, *stride), self.local_of(ctx, warp));
                locked.row(&RowEvent { actor, row, size, local, memo })
            }
            (Addresses::Lanes(addresses), Some(locked), Some((access, order, _))) => {
                locked.spread(&SpreadEvent { actor, addresses, size, access, order, memo })
            }
            _ => false,
        };
        if done {
            return;
        }
        drop(locked);
        self.report(ctx, site, (warp, mask), addresses, values);
    }

    /// Reports an access in full.
    fn report(&self, ctx: &WarpCtx, site: usize, who: (u32, u32), addresses: Addresses<'_>, values: Option<&[u8]>) {
        let Some(observation) = self.observation.as_deref() else { return };
        let memo = &observation.places[site].memo;
        let is_new = memo.get() == 0;
        self.report_noted(ctx);
        self.with_event(ctx, site, who, addresses, values, |event| {
            let Some(locked) = &mut *observation.locked.borrow_mut() else { return observation.observer.memory(event) };
            locked.memory(event);
            if let SiteKind::Observed { bytes, access, stride } = self.code.compiled.sites[site].kind
                && is_new
                && access != AccessKind::Atomic
            {
                let reach = 31 * (stride as i64).unsigned_abs();
                let ((first, last), span) = (locked.ignored(memo.get()), reach + u64::from(bytes));
                self.windows().ranges.set(site, first, last.wrapping_sub(first).wrapping_add(2).saturating_sub(span));
            }
        });
        self.allow_notes(ctx, false);
    }

    /// Reports an access that leaves the range of its site, and lets the observer name the next range; or one that leaves the kernel's
    /// frame, of which the addresses are offsets in the lanes' windows.
    pub fn strays(&self, ctx: &WarpCtx, site: usize, mask: u32, addresses: &[u64; LANES]) {
        let (bytes, span) = match self.code.compiled.sites[site].kind {
            SiteKind::Bounded { bytes, span, .. } => (bytes, span),
            SiteKind::Overrun { bytes, access, bottom, top } => {
                return self.overrun(ctx, site, (mask, addresses), (bytes, access, bottom..top));
            }
            _ => return,
        };
        let Some(observation) = self.observation.as_deref().filter(|_| mask != 0) else { return };
        // Often only lanes that are not active have left the range.
        let (low, starts) = self.windows().ranges.get(site);
        let places = starts.saturating_add(span - u64::from(bytes));
        let within = |lane: &usize| addresses[*lane].wrapping_sub(low) < places;
        if starts > 0 && (0..LANES).filter(|lane| mask >> lane & 1 == 1).all(|lane| within(&lane)) {
            return;
        }
        self.flush(ctx);
        let who = (ctx.warp.get(), mask);
        self.with_event(ctx, site, who, Addresses::Lanes(addresses), None, |event| {
            let Some(locked) = &mut *observation.lock() else { return };
            let (first, last) = locked.strays(event);
            self.windows().ranges.set(site, first, (last - first).saturating_add(2).saturating_sub(span));
        });
    }

    /// Makes the event of an access by lanes of a warp.
    fn with_event(
        &self,
        ctx: &WarpCtx,
        site: usize,
        (warp, lanes): (u32, u32),
        addresses: Addresses<'_>,
        values: Option<&[u8]>,
        f: impl FnOnce(&MemoryEvent<'_>),
    ) {
        let Some(observation) = self.observation.as_deref() else { return };
        let Some(Known { at, access, order, space, size, element }) = self.known(site) else { return };
        self.announce(ctx);
        let each = element as usize;
        let value = |lane: usize, byte: usize| {
            let at = (byte / each * LANES + lane) * each + byte % each;
            values.and_then(|v| v.get(at)).copied().unwrap_or(0)
        };
        let peek = |host: u64, to: &mut [u8]| match [&self.windows().shared, &self.windows().local]
            .into_iter()
            .find(|w| w.block.contains(host, to.len()))
        {
            Some(w) => mem::load_bytes(&w.block, host, to).is_some(),
            None => self.grid.memory.read(host, to).is_ok(),
        };
        f(&MemoryEvent {
            actor: Actor { cta: ctx.cta.get(), warp, lanes, at, callers: &[] },
            addresses: &addresses.each(),
            size,
            element,
            space,
            access,
            order,
            windows: &[(self.windows().shared.block.base(), self.windows().shared.block.len() as u64)],
            local: self.local_of(ctx, warp),
            values: values.is_some().then_some(&value as &dyn Fn(usize, usize) -> u8),
            undefined: Undefined::default(),
            peek: &peek,
            memory: self.grid.memory,
            tracked: false,
            row: match addresses {
                Addresses::Row(first, stride) => Some((first, stride)),
                Addresses::Lanes(_) => None,
            },
            memo: &observation.places[site].memo,
            registers: None,
        });
    }

    /// Reports what the lanes of a mask do at a site, or what happens to the CTA.
    pub fn report_moment(&self, ctx: &WarpCtx, site: usize, mask: u32) {
        let Some(observation) = self.observation.as_deref() else { return };
        let place = &self.code.compiled.sites[site];
        let SiteKind::Moment(moment) = place.kind else { return };
        self.flush(ctx);
        if !matches!(moment, Moment::Begin | Moment::End) {
            self.announce(ctx);
        }
        match moment {
            // What a CTA has done since its last barrier concerns nobody any more.
            Moment::Complete | Moment::End => self.drop_noted(ctx),
            _ => self.report_noted(ctx),
        }
        let (cta, warp) = (ctx.cta.get(), ctx.warp.get());
        let func = &self.grid.image.ir.funcs[place.func as usize];
        let at = (FuncId(place.func), func.places.get(place.at as usize).copied().unwrap_or_default());
        let sync = |warp: u32, lanes: u32, kind: SyncKind| {
            let event = SyncEvent { actor: Actor { cta, warp, lanes, at, callers: &[] }, kind };
            match &mut *observation.locked.borrow_mut() {
                _ if lanes == 0 => {}
                Some(locked) => locked.sync(&event),
                None => observation.observer.sync(&event),
            }
        };
        match moment {
            Moment::Begin => {
                observation.announced.set(false);
                ctx.line_count.set(0);
                if !observation.lazy {
                    self.announce(ctx);
                }
            }
            Moment::Warp => sync(warp, mask, SyncKind::Warp),
            Moment::Exchange => sync(warp, mask, SyncKind::Exchange),
            Moment::Arrive => {
                let Barrier { id, aligned, counted } = observation.barriers[site];
                observation.arrived.borrow_mut()[warp as usize] |= mask;
                sync(warp, mask, SyncKind::Barrier { id, aligned, counted });
            }
            Moment::Complete => {
                let Barrier { id, .. } = observation.barriers[site];
                let mut arrived = observation.arrived.borrow_mut();
                // A region ends when all threads have arrived or ended. Arrivals are not reported where all threads come.
                let lanes = if arrived.iter().all(|lanes| *lanes == 0) { &observation.born } else { &*arrived };
                let event = BarrierEvent { cta, id, all: true, arrived: lanes, waited: lanes, live: lanes };
                match &mut *observation.lock() {
                    Some(locked) => locked.barrier(&event),
                    None => observation.observer.barrier(&event),
                }
                arrived.fill(0);
            }
            Moment::End if !observation.announced.get() => {}
            Moment::End => {
                let reported = observation.lock().as_mut().map(|locked| locked.exit(cta)).is_some();
                for (warp, lanes) in observation.born.iter().enumerate().filter(|_| !reported) {
                    sync(warp as u32, *lanes, SyncKind::Exit);
                }
            }
        }
        if moment != Moment::Begin {
            self.allow_notes(ctx, false);
        }
    }

    /// Tells the observer that the CTA has begun, if it does not know yet.
    fn announce(&self, ctx: &WarpCtx) {
        if let Some(observation) = self.observation.as_deref()
            && !observation.announced.replace(true)
        {
            self.begin(ctx, observation);
            self.allow_notes(ctx, true);
        }
    }

    fn begin(&self, ctx: &WarpCtx, observation: &Observation<'_>) {
        let cta = ctx.cta.get();
        observation.arrived.borrow_mut().fill(0);
        let (base, warps) = (self.windows().local.block.base(), observation.born.len() as u64);
        let each = self.windows().local.block.len() as u64 / warps.max(1);
        let locals: Vec<_> = (0..warps).filter(|_| each > 0).map(|w| (base + w * each, each)).collect();
        let shared = (self.windows().shared.block.base(), self.windows().shared.block.len() as u64);
        let event = CtaEvent { cta, shared, locals: &locals };
        match &mut *observation.lock() {
            Some(locked) => locked.cta(&event),
            None => observation.observer.cta(&event),
        }
    }
}
