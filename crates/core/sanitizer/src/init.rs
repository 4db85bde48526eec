//! Reads of uninitialized memory: shared, local, global and the device heap.
//!
//! An element counts as uninitialized if none of its bytes was written, since compilers copy structures with their
//! padding. An element of a vector, or of several that are loaded together, may be padding as a whole. Host writes,
//! copies and fills count as writes ([`margay_exec::mem::Writes`]), and so do initial values of variables; an element within which
//! the last of them ended is uninitialized too, unless it is one of several. Each memory location is reported once.
//!
//! Loads of shared and local memory, and of global memory that was written in part, yield undefined values, which the
//! engine follows: they are reported if they are used.

use crate::{Finding, FindingKind, Sanitizer, State, hash::Map, instructions, lanes, name, site::Place};
use margay_exec::{AccessKind, Actor, Image, LANES, MemoryEvent, Undefined, UndefinedEvent};
use margay_ir::{FrameRole, MemBase, Operand, pass::adjacent};
use std::sync::Arc;

/// Limit of the loads that are remembered.
const MAX_LOADED: usize = 1 << 18;

/// What a thread has read at a place that was undefined. The thread is the CTA's linear index, its warp and lane.
pub type Loaded = Map<(u32, u32, u64), Subject>;

/// Where the undefined value of a copy was loaded.
pub struct Source {
    place: Place,
    thread: u64,
    what: Subject,
}

/// What was read, to be named.
#[derive(Clone)]
pub enum Subject {
    /// An offset in shared memory, and the element's size.
    Shared(u64, u32),
    /// A copy in shared memory.
    Copied(Arc<Source>),
    /// Local memory.
    Local,
    /// Shared memory, where too much was loaded to remember.
    Unknown,
    /// A name.
    Global(String),
}

/// Runs of loads that adjoin, by function and position.
#[derive(Default)]
pub struct Runs(Map<u32, Map<u32, (i64, i64)>>);

impl Runs {
    /// Start and size of what a load reads together with those that it adjoins.
    fn around(&mut self, image: &Image, actor: &Actor<'_>, (address, size): (u64, u64)) -> (u64, u64) {
        let (id, place) = actor.at;
        let known = self.0.entry(id.0).or_insert_with(|| {
            let func = image.ir.func(id);
            let position = |index: u32| func.places[func.insts[index as usize].at as usize].span.start;
            adjacent(func).into_iter().map(|(index, run)| (position(index), (run.from, run.to))).collect()
        });
        match known.get(&place.span.start) {
            Some((from, to)) => (address.wrapping_add_signed(*from), to.abs_diff(*from)),
            None => (address, size),
        }
    }
}

/// The memory that an address belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Home {
    Shared(u64),
    Local,
    Global,
}

fn home(e: &MemoryEvent<'_>, address: u64) -> Home {
    if let Some((base, _)) = e.windows.iter().find(|(base, size)| address.wrapping_sub(*base) < *size) {
        return Home::Shared(*base);
    }
    if address.wrapping_sub(e.local.0) < e.local.1 { Home::Local } else { Home::Global }
}

impl Sanitizer {
    pub(crate) fn look_for_uninitialized(&self, state: &mut State, e: &MemoryEvent<'_>) {
        let size = u64::from(e.size);
        state.whole = e.undefined == Undefined::default() && self.is_whole_row(state, e);
        if state.whole {
            return;
        }
        for lane in lanes(e.actor.lanes) {
            let address = e.addresses[lane as usize];
            let home = home(e, address);
            if home == Home::Global && state.written.as_ref().is_none_or(|w| !w.contains(address)) {
                state.written = e.memory.writes().find(address);
                if state.written.is_none() {
                    continue;
                }
            }
            if e.tracked && home != Home::Global {
                continue;
            }
            let mut reported = false;
            if matches!(e.access, AccessKind::Load | AccessKind::Atomic) {
                let step = u64::from(e.element.clamp(1, 8)).min(size);
                let elements = (0..size.div_ceil(step)).map(|i| (address + i * step, step.min(size - i * step)));
                let mut blank = |(at, bytes): &(u64, u64)| match home {
                    Home::Global => state.written.as_ref().is_some_and(|w| w.is_blank(*at, *bytes)),
                    _ => state.marks.is_blank(*at, *bytes),
                };
                // An access of several elements, or one that adjoins others, may copy a structure with padding: it is
                // initialized if any element was written. What is loaded is followed.
                let cut = |(at, bytes): (u64, u64)| {
                    home == Home::Global && step == size && state.written.as_ref().is_some_and(|w| w.is_cut(at, bytes))
                };
                let missing = match home {
                    _ if cut((address, size)) => Some((address, size)),
                    Home::Global if !e.tracked => elements.clone().find(|x| blank(x)),
                    Home::Global => {
                        let (from, bytes) = state.runs.around(&self.image, &e.actor, (address, size));
                        blank(&(from, bytes)).then_some((address, step))
                    }
                    Home::Local => elements.clone().all(|x| blank(&x)).then_some((address, step)),
                    _ => elements.clone().find(|x| blank(x)),
                };
                if let Some((at, _)) = missing {
                    self.report_uninitialized(state, e, lane, (home, at));
                    reported = true;
                }
            }
            let undefined = e.undefined.iter().any(|lanes| lanes >> lane & 1 == 1);
            match (&state.written, home) {
                _ if undefined => self.store_undefined(state, e, lane, home),
                // The parts that are missing are to be found again.
                (Some(written), Home::Global) if e.tracked && !reported && !written.is_whole(address, size) => {}
                (Some(written), Home::Global) => written.mark(address, size),
                (None, Home::Global) => {}
                _ => state.marks.mark(address, size),
            }
        }
    }

    /// Marks what a lane stores of a partly undefined value: the undefined elements count as not written.
    fn store_undefined(&self, state: &mut State, e: &MemoryEvent<'_>, lane: u32, home: Home) {
        let step = u64::from(e.element.max(1));
        for (i, lanes) in e.undefined.iter().enumerate().take((u64::from(e.size) / step) as usize) {
            let at = e.addresses[lane as usize] + i as u64 * step;
            match (&state.written, home) {
                (_, Home::Local) if lanes >> lane & 1 == 1 => state.marks.forget(at, step),
                (_, Home::Shared(_)) if lanes >> lane & 1 == 1 => {
                    state.marks.forget(at, step);
                    let number = self.number(e.actor.cta, e.actor.warp, lane);
                    if let Some((_, origin)) = state.passed.iter().find(|(element, _)| *element == i) {
                        state.copied.insert(at, self.source(&state.loaded, *origin, number));
                    }
                }
                (_, Home::Global) if lanes >> lane & 1 == 1 => {}
                (Some(written), Home::Global) => written.mark(at, step),
                (None, Home::Global) => {}
                _ => state.marks.mark(at, step),
            }
        }
    }

    /// The lanes that load undefined values, by element.
    pub(crate) fn find_undefined(&self, state: &mut State, e: &MemoryEvent<'_>) -> Undefined {
        let mut all = Undefined::default();
        if state.whole {
            return all;
        }
        let step = e.element.max(1);
        for lane in lanes(e.actor.lanes) {
            let address = e.addresses[lane as usize];
            let home = home(e, address);
            let written = state.written.as_ref().filter(|w| home == Home::Global && w.contains(address));
            match home {
                Home::Shared(_) | Home::Local => {}
                // What was reported is marked now.
                Home::Global if written.is_some() => {}
                Home::Global => continue,
            }
            for (i, lanes) in all.iter_mut().enumerate().take((e.size / step) as usize) {
                let at = address + i as u64 * u64::from(step);
                let blank = match written {
                    Some(written) => written.is_blank(at, step.into()),
                    None => state.marks.is_blank(at, step.into()),
                };
                if blank {
                    *lanes |= 1 << lane;
                    let (func, place) = e.actor.at;
                    let key = (func.0, place.span.start, self.number(e.actor.cta, e.actor.warp, lane));
                    if state.loaded.len() < MAX_LOADED || state.loaded.contains_key(&key) {
                        let what = match home {
                            Home::Shared(_) if state.copied.contains_key(&at) => {
                                Subject::Copied(state.copied[&at].clone())
                            }
                            Home::Shared(base) => Subject::Shared(at - base, e.element),
                            Home::Local => Subject::Local,
                            Home::Global => Subject::Global(name::global(e.memory, self.names, at, e.element)),
                        };
                        state.loaded.insert(key, what);
                    }
                }
            }
        }
        all
    }

    fn number(&self, cta: [u32; 3], warp: u32, lane: u32) -> u64 {
        (u64::from(self.index(cta)) * u64::from(self.warps) + u64::from(warp)) * LANES as u64 + u64::from(lane)
    }

    /// The origin of an undefined value that a thread has loaded: of a copy, where the copied value was loaded.
    fn source(&self, loaded: &Loaded, place: Place, thread: u64) -> Arc<Source> {
        match loaded.get(&(place.0.0, place.1.span.start, thread)) {
            Some(Subject::Copied(source)) => source.clone(),
            Some(what) => Arc::new(Source { place, thread, what: what.clone() }),
            None => Arc::new(Source { place, thread, what: Subject::Unknown }),
        }
    }

    /// What an instruction loads, if that is an argument or the result of a call, and who has not written it.
    fn passed(&self, (id, place): Place) -> Option<(String, &'static str)> {
        let func = self.image.ir.func(id);
        let load = &func.insts[instructions(func, place).next()? as usize];
        let (var, offset) = func.operands(load.srcs).iter().find_map(|o| match o {
            Operand::Mem(MemBase::Frame(var), offset) => Some((&func.frame[var.0 as usize], *offset)),
            _ => None,
        })?;
        let part = if offset == 0 { String::new() } else { format!("byte {offset} of ") };
        match var.role {
            FrameRole::Formal(number) => {
                Some((format!("{part}argument {number} of `{}`", (self.names)(&func.name)), "the caller has not"))
            }
            FrameRole::Param => Some((format!("{part}the result of a call"), "the function has not")),
            FrameRole::Local | FrameRole::Return(_) => None,
        }
    }

    /// Reports the use of an undefined value that was loaded at `origin`.
    pub(crate) fn report_use(&self, state: &mut State, e: &UndefinedEvent<'_>, origin: Place) {
        let lane = e.actor.lanes.trailing_zeros();
        let number = self.number(e.actor.cta, e.actor.warp, lane);
        let source = self.source(&state.loaded, origin, number);
        let (what, why) = match &source.what {
            Subject::Shared(offset, element) => {
                (name::shared(&self.image, self.names, *offset, *element), "no thread of the CTA has")
            }
            Subject::Local => match self.passed(source.place) {
                Some(what) => what,
                None => ("local memory".to_owned(), "the thread has not"),
            },
            Subject::Global(name) => (name.clone(), "neither the host nor the kernel has"),
            Subject::Copied(_) | Subject::Unknown => ("shared memory".to_owned(), "no thread of the CTA has"),
        };
        let kind = FindingKind::Uninitialized;
        state.report(kind, (source.place, None), || {
            let mut load = crate::Party { at: source.place, ..self.party(&e.actor, lane, "reads") };
            if source.thread != number {
                let (warps, lanes) = (u64::from(self.warps), LANES as u64);
                let (warp, lane) = (source.thread / lanes % warps, source.thread % lanes);
                load.thread = self.thread(warp as u32, lane as u32);
                load.cta = self.cta_of((source.thread / lanes / warps) as u32);
                load.callers.clear();
            }
            Finding {
                kind,
                title: format!("uninitialized: reads {what}, which {why} written"),
                parties: vec![load, self.party(&e.actor, lane, "uses the value")],
                notes: vec![e.what.replace(", whose value is undefined", ", which depends on it")],
                help: (what != "local memory").then(|| format!("{what} must be written before this access")),
                times: 1,
            }
        });
    }

    /// Whether all bytes between the first and the last byte of an access by a row of lanes were written: the usual case of lanes
    /// that are neighbors.
    fn is_whole_row(&self, state: &mut State, e: &MemoryEvent<'_>) -> bool {
        /// Bytes at most, that this is less work than to look at each lane.
        const LIMIT: u64 = 8192;
        let (mut low, mut high) = (u64::MAX, 0);
        for lane in lanes(e.actor.lanes) {
            let address = e.addresses[lane as usize];
            (low, high) = (low.min(address), high.max(address));
        }
        let end = high.saturating_add(e.size.into());
        if end - low > LIMIT {
            return false;
        }
        match home(e, low) {
            Home::Shared(base) => {
                let within = e.windows.iter().any(|(b, size)| *b == base && end - base <= *size);
                within && state.marks.is_whole(low, end - low)
            }
            Home::Local => end - e.local.0 <= e.local.1 && state.marks.is_whole(low, end - low),
            Home::Global => {
                let written = state.written.as_ref().filter(|w| w.contains(low) && w.contains(end - 1));
                written.is_some_and(|w| w.is_whole(low, end - low))
            }
        }
    }

    fn report_uninitialized(&self, state: &mut State, e: &MemoryEvent<'_>, lane: u32, (home, at): (Home, u64)) {
        let (what, whose) = match home {
            Home::Shared(base) => {
                (name::shared(&self.image, self.names, at - base, e.element), "no thread of the CTA has")
            }
            Home::Local => ("local memory".to_owned(), "the thread has not"),
            Home::Global => (name::global(e.memory, self.names, at, e.element), "neither the host nor the kernel has"),
        };
        let verb = if e.access == AccessKind::Atomic { "updates" } else { "reads" };
        let kind = FindingKind::Uninitialized;
        state.report(kind, (e.actor.at, None), || Finding {
            kind,
            title: format!("uninitialized: {verb} {what}, which {whose} written"),
            parties: vec![self.party(&e.actor, lane, verb)],
            notes: Vec::new(),
            help: (home != Home::Local).then(|| format!("{what} must be written before this access")),
            times: 1,
        });
    }
}
