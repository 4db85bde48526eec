//! Finds errors of a launch that do not stop it: races, uses of uninitialized values, barriers that only a part of a
//! CTA reaches. `docs/checker.md` says what is checked, and what is not.
//!
//! ```text
//!  engine ── events ──> Sanitizer ─┬─ threads: who has seen what (clocks)      ─┐
//!                                ├─ shadow:  who accessed each word            ├─ race ─┐
//!                                ├─ shadow:  which bytes were written          ─ init  ├─> findings, one for each pair of places
//!                                └─ barrier: who arrived from where            ─────────┘
//! ```
//!
//! Order is exactly what the memory consistency model defines (manual, chapter 8): happens-before, computed by vector
//! clocks that follow program order, barriers and release and acquire patterns with their scopes. The verdict depends
//! on the branches taken and the values read, not on the timing of threads.
#![forbid(unsafe_code)]

mod barrier;
mod chosen;
mod clash;
mod clock;
mod decision;
mod deferred;
mod ended;
mod facts;
mod family;
mod finding;
mod flag;
mod footprint;
mod form;
mod hash;
mod incidental;
mod inferred;
mod init;
mod judge;
mod lines;
mod lost;
mod marks;
mod mixed_phases;
mod name;
mod observer;
mod programmatic;
mod provenance;
mod race;
mod rounding;
mod row;
mod shadow;
mod site;
mod spread;
mod state;
mod tensor;
mod threads;
mod ticket;
mod unchanged;
mod unshared;
mod unused;

pub use family::Family;
pub use finding::{Checks, Finding, FindingKind, Party};
pub use footprint::{Conflict, Footprint};
pub use programmatic::Overlap;

use facts::Facts;
use margay_exec::{Actor, Image, LANES, LaunchShape, coordinates, thread_index};
use margay_ir::{Func, SourcePlace};
use parking_lot::Mutex;
use site::Place;
use state::State;
use std::{
    hash::{Hash, Hasher},
    sync::Arc,
};
use threads::{Threads, WarpMask};

/// How a name of the program is shown: C++ names are mangled.
pub type Names = fn(&str) -> String;

/// Observes one launch and collects findings.
pub struct Sanitizer {
    what: Checks,
    image: Arc<Image>,
    facts: Arc<Facts>,
    names: Names,
    grid: [u32; 3],
    block: [u32; 3],
    cluster: [u32; 3],
    /// Number of warps of a CTA.
    warps: u32,
    /// One in this many CTAs is checked.
    sample: u32,
    /// Whether anybody asks what the launch has touched.
    footprints: bool,
    /// It may begin before the grids before it in its stream have ended.
    overlaps: bool,
    /// Whether accesses to shared memory may be deferred.
    defers: bool,
    /// Whether some instruction accesses memory in the async proxy: for that, a barrier does not settle what was stored before it.
    proxies: bool,
    /// Some instruction stores what was computed from a strong load of the same place.
    updates: bool,
    /// Some strong load decides a branch, so that earlier values matter, and something is released.
    decides: bool,
    /// The parameter block; empty if unknown.
    params: Vec<u8>,
    state: Mutex<State>,
}

/// Equal for places with the same file, line and column of the source, in the same inlined frames: what the compiler
/// makes by unrolling is one place. Without `.loc`, each instruction has its own.
pub fn line_key(image: &Image, (func, at): Place) -> u64 {
    let origins = image.ir.func(func).source.tree.origins(at.span.start);
    let mut h = hash::Mix::default();
    if origins.is_empty() {
        (func.0, at.span.start).hash(&mut h);
    }
    origins.iter().for_each(|o| (o.file, o.line, o.column).hash(&mut h));
    h.finish() & !1 | u64::from(!origins.is_empty())
}

/// Whether `.loc` says where a [line key](line_key) is in the source.
fn has_lines(key: u64) -> bool {
    key & 1 == 1
}

/// The instructions of a function at a place, by index.
fn instructions(func: &Func, place: SourcePlace) -> impl Iterator<Item = u32> {
    let here = move |i: &u32| func.places[func.insts[*i as usize].at as usize].span.start == place.span.start;
    (0..func.insts.len() as u32).filter(here)
}

/// The lanes of a mask.
#[inline(always)]
fn lanes(mask: u32) -> impl Iterator<Item = u32> {
    let mut left = mask;
    std::iter::from_fn(move || {
        let lane = left.trailing_zeros();
        left &= left.wrapping_sub(1);
        (lane < u32::BITS).then_some(lane)
    })
}

fn who(actor: &Actor<'_>) -> WarpMask {
    WarpMask { warp: actor.warp, lanes: actor.lanes }
}

impl Sanitizer {
    /// Creates a sanitizer for a launch of that shape (clusters of one CTA if there are none).
    pub fn new(what: Checks, image: Arc<Image>, names: Names, shape: LaunchShape) -> Sanitizer {
        let mut threads = Threads::new();
        let facts = Facts::of(&image);
        let decides = what.races && facts.decides(&image);
        if decides {
            threads.keep_histories();
        }
        let state = Mutex::new(State { threads, image: Some(image.clone()), ..State::default() });
        let LaunchShape { grid, block, .. } = shape;
        let warps = shape.threads().div_ceil(LANES as u32);
        let proxies = facts.proxies(&image);
        let updates = what.races && facts.updates(&image);
        Sanitizer {
            what,
            image,
            facts,
            names,
            grid,
            block,
            cluster: shape.cluster_size(),
            warps,
            sample: 1,
            footprints: false,
            overlaps: false,
            defers: true,
            proxies,
            updates,
            decides,
            params: Vec::new(),
            state,
        }
    }

    /// Sets the parameter block, from which the targets of pointer arguments are known.
    pub fn with_params(self, params: &[u8]) -> Sanitizer {
        Sanitizer { params: params.to_vec(), ..self }
    }

    /// Notes what the launch touches in device memory: [`Sanitizer::footprint`].
    pub fn with_footprint(self) -> Sanitizer {
        Sanitizer { footprints: true, ..self }
    }

    /// Compares all accesses when they happen, which takes longer and finds the same: for tests.
    pub fn at_once(self) -> Sanitizer {
        Sanitizer { defers: false, ..self }
    }

    /// Restricts the checks to one in so many CTAs.
    pub fn sampled(self, one_in: u32) -> Sanitizer {
        Sanitizer { sample: one_in.max(1), ..self }
    }

    /// The findings in the order of their first occurrence, one per pair of places. A read of what nobody has written yet that races with
    /// a write is one finding: the race.
    pub fn findings(&self) -> Vec<Finding> {
        let state = self.state.lock();
        let races = || state.order.iter().filter(|key| key.0 == FindingKind::Race);
        let raced = |place: u64| races().any(|(_, a, b)| *a == place || *b == place);
        let shown = state.order.iter().filter(|key| key.0 != FindingKind::Uninitialized || !raced(key.1));
        let mut all: Vec<Finding> = shown.map(|key| state.found[key].clone()).collect();
        if state.over
            && let Some(last) = all.last_mut()
        {
            last.notes.push("the launch is too large or synchronizes too often; part of it was not checked".into());
        }
        all
    }

    /// What the launch has accessed in device memory, if races or unused memory are looked for and [`Sanitizer::with_footprint`] asks for it.
    pub fn footprint(&self) -> Footprint {
        std::mem::take(&mut self.state.lock().footprint)
    }

    /// Linear index of a CTA.
    fn index(&self, [x, y, z]: [u32; 3]) -> u32 {
        x + self.grid[0] * (y + self.grid[1] * z)
    }

    fn cta_of(&self, index: u32) -> [u32; 3] {
        coordinates(index.into(), self.grid)
    }

    fn cluster_of(&self, id: [u32; 3]) -> u32 {
        self.index(std::array::from_fn(|d| id[d] / self.cluster[d]))
    }

    fn thread(&self, warp: u32, lane: u32) -> [u32; 3] {
        thread_index(self.block, warp, lane)
    }

    /// The acting thread, as a party of a finding.
    fn party(&self, actor: &Actor<'_>, lane: u32, verb: &str) -> Party {
        let thread = self.thread(actor.warp, lane);
        Party { verb: verb.into(), thread, cta: actor.cta, at: actor.at, callers: actor.callers.to_vec() }
    }

    fn line(&self, (func, at): Place) -> String {
        let source = &self.image.ir.func(func).source;
        // Line 0 is of code that belongs to no line.
        match source.tree.origins(at.span.start).last().filter(|origin| origin.line > 0) {
            Some(origin) => format!("{}:{}", origin.file.rsplit('/').next().unwrap_or(""), origin.line),
            None => format!("line {} of the PTX", source.lines().line(at.span.start)),
        }
    }
}
