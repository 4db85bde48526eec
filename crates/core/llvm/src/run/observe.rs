//! Events of compiled code for the observer of a launch (`emit/observe.rs`).

use crate::{
    ctx::WarpCtx,
    emit::{Moment, SiteKind},
    run::{host::Host, windows::alive},
};
use margay_exec::{
    AccessKind, Actor, Attendant, BarrierEvent, CtaEvent, LANES, MemoryEvent, Observer, Ordering, RowEvent, SyncEvent,
    SyncKind, Undefined, mem,
};
use margay_ir::{FuncId, MemSpace, Operand, SourcePlace};
use margay_isa::{Mod, Opcode};
use std::cell::{Cell, RefCell};

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

/// What the host remembers for the observer.
pub struct Observation<'a> {
    /// Set while generated code runs and nobody else has anything to report.
    attendant: RefCell<Option<Box<dyn Attendant + 'a>>>,
    /// By site, filled when it is reached first.
    known: RefCell<Vec<Option<Known>>>,
    /// By site: what the observer remembers.
    memos: Vec<Cell<u32>>,
    /// By warp: the lanes that have arrived at the barrier at which the CTA's region ends.
    arrived: RefCell<Vec<u32>>,
    /// By warp: the lanes that exist.
    born: Vec<u32>,
}

impl Observation<'_> {
    /// For CTAs of a launch.
    pub fn new(block: [u32; 3], sites: usize) -> Self {
        let threads = block.iter().product::<u32>();
        let born: Vec<u32> = (0..threads.div_ceil(LANES as u32)).map(|warp| alive(warp, threads)).collect();
        let memos = vec![Cell::new(0); sites];
        let arrived = RefCell::new(vec![0; born.len()]);
        Observation { attendant: RefCell::default(), known: RefCell::default(), memos, arrived, born }
    }

    /// Lets others report to the observer.
    pub fn release(&self) {
        *self.attendant.borrow_mut() = None;
    }
}

impl Host<'_> {
    fn known(&self, site: usize) -> Option<Known> {
        let mut all = self.observation.known.borrow_mut();
        if all.len() <= site {
            all.resize(self.code.compiled.sites.len(), None);
        }
        if let Some(known) = all[site] {
            return Some(known);
        }
        let place = &self.code.compiled.sites[site];
        let SiteKind::Observed { bytes, access } = place.kind else { return None };
        let func = &self.grid.image.ir.funcs[place.func as usize];
        let inst = &func.insts[place.inst as usize];
        let variant = func.variant(inst);
        let known = Known {
            at: (FuncId(place.func), func.places.get(place.at as usize).copied().unwrap_or_default()),
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
            SiteKind::Observed { bytes, access: AccessKind::Store } => Some(bytes as usize),
            _ => None,
        }
    }

    /// Reports an access; `values` are the elements stored, each a row of lanes.
    pub fn observe(&self, ctx: &WarpCtx, site: usize, mask: u32, addresses: Addresses<'_>, values: Option<&[u8]>) {
        let Some(observer) = self.grid.observer.filter(|_| mask != 0) else { return };
        let mut attendant = self.observation.attendant.borrow_mut();
        if attendant.is_none() {
            *attendant = observer.attend();
        }
        let Some(known) = self.known(site) else { return };
        let Known { at, access, order, space, size, element } = known;
        let actor = Actor { cta: ctx.cta.get(), warp: ctx.warp.get(), lanes: mask, at, callers: &[] };
        let local = (ctx.local.get(), ctx.local_stride * LANES as u64);
        let memo = &self.observation.memos[site];
        let (row, list) = match addresses {
            Addresses::Lanes(list) => (None, *list),
            Addresses::Row(first, stride) => {
                let row = (first, stride);
                if let Some(attendant) = &mut *attendant
                    && attendant.row(&RowEvent { actor, row, size, local, memo })
                {
                    return;
                }
                let mut list = [0; LANES];
                let mut at = first;
                for address in &mut list {
                    *address = at;
                    at = at.wrapping_add(stride);
                }
                (Some(row), list)
            }
        };
        let each = element as usize;
        let value = |lane: usize, byte: usize| {
            let at = (byte / each * LANES + lane) * each + byte % each;
            values.and_then(|v| v.get(at)).copied().unwrap_or(0)
        };
        let peek = |host: u64, to: &mut [u8]| match [&self.shared, &self.local]
            .into_iter()
            .find(|w| w.block.contains(host, to.len()))
        {
            Some(w) => mem::load_bytes(&w.block, host, to).is_some(),
            None => self.grid.memory.read(host, to).is_ok(),
        };
        let event = MemoryEvent {
            actor,
            addresses: &list,
            size,
            element,
            space,
            access,
            order,
            windows: &[(self.shared.block.base(), self.shared.block.len() as u64)],
            local,
            values: values.is_some().then_some(&value as &dyn Fn(usize, usize) -> u8),
            undefined: Undefined::default(),
            peek: &peek,
            memory: self.grid.memory,
            tracked: false,
            row,
            memo,
        };
        match &mut *attendant {
            Some(attendant) => attendant.memory(&event),
            None => observer.memory(&event),
        }
    }

    /// Reports what the lanes of a mask do at a site, or what happens to the CTA.
    pub fn tell(&self, ctx: &WarpCtx, site: usize, mask: u32) {
        let Some(observer) = self.grid.observer else { return };
        let place = &self.code.compiled.sites[site];
        let SiteKind::Moment(moment) = place.kind else { return };
        let (cta, warp) = (ctx.cta.get(), ctx.warp.get());
        let func = &self.grid.image.ir.funcs[place.func as usize];
        let at = (FuncId(place.func), func.places.get(place.at as usize).copied().unwrap_or_default());
        let sync = |warp: u32, lanes: u32, kind: SyncKind| {
            let event = SyncEvent { actor: Actor { cta, warp, lanes, at, callers: &[] }, kind };
            match &mut *self.observation.attendant.borrow_mut() {
                _ if lanes == 0 => {}
                Some(attendant) => attendant.sync(&event),
                None => observer.sync(&event),
            }
        };
        match moment {
            Moment::Begin => self.begin(observer, cta),
            Moment::Warp => sync(warp, mask, SyncKind::Warp),
            Moment::Exchange => sync(warp, mask, SyncKind::Exchange),
            Moment::Arrive => {
                let (id, aligned, counted) = self.barrier(site);
                self.observation.arrived.borrow_mut()[warp as usize] |= mask;
                sync(warp, mask, SyncKind::Barrier { id, aligned, counted });
            }
            Moment::Complete => {
                let (id, ..) = self.barrier(site);
                self.observation.release();
                let mut arrived = self.observation.arrived.borrow_mut();
                // A region ends when all threads have arrived or ended.
                let lanes = &arrived[..];
                observer.barrier(&BarrierEvent { cta, id, all: true, arrived: lanes, waited: lanes, live: lanes });
                arrived.fill(0);
            }
            Moment::End => {
                for (warp, lanes) in self.observation.born.iter().enumerate() {
                    sync(warp as u32, *lanes, SyncKind::Exit);
                }
            }
        }
    }

    fn begin(&self, observer: &dyn Observer, cta: [u32; 3]) {
        self.observation.release();
        self.observation.arrived.borrow_mut().fill(0);
        let (base, warps) = (self.local.block.base(), self.observation.born.len() as u64);
        let each = self.local.block.len() as u64 / warps.max(1);
        let locals: Vec<_> = (0..warps).filter(|_| each > 0).map(|w| (base + w * each, each)).collect();
        let shared = (self.shared.block.base(), self.shared.block.len() as u64);
        observer.cta(&CtaEvent { cta, shared, locals: &locals });
    }

    /// Number of the barrier at a site, whether it is aligned, and whether the instruction says how many threads participate.
    fn barrier(&self, site: usize) -> (u32, bool, bool) {
        let place = &self.code.compiled.sites[site];
        let func = &self.grid.image.ir.funcs[place.func as usize];
        let inst = &func.insts[place.inst as usize];
        let (variant, srcs) = (func.variant(inst), func.operands(inst.srcs));
        let numbers = if variant.has(Mod::Red) { &srcs[..srcs.len().saturating_sub(1)] } else { srcs };
        let id = match numbers.first() {
            Some(Operand::Imm(id)) => *id as u32,
            _ => 0,
        };
        let counted = matches!(numbers.get(1), Some(Operand::Imm(_) | Operand::Reg(_)));
        (id, variant.op == Opcode::Bar || variant.has(Mod::Aligned), counted)
    }
}
