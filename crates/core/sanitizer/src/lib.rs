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
mod clash;
mod clock;
mod ended;
mod family;
mod finding;
mod flag;
mod footprint;
mod form;
mod hash;
mod incidental;
mod init;
mod judge;
mod marks;
mod name;
mod phase;
mod phases;
mod provenance;
mod race;
mod row;
mod shadow;
mod site;
mod threads;
mod ticket;
mod unused;
mod unwritten;

pub use family::Family;
pub use finding::{Finding, FindingKind, Party, What};
pub use footprint::{Conflict, Footprint};

use barrier::Arrivals;
use hash::Map;
use margay_exec::{
    Actor, BarrierEvent, Concern, CtaEvent, Image, Interest, LANES, LaunchShape, LockedObserver, MemoryEvent, Observer,
    RowEvent, RowLoads, SyncEvent, SyncKind, Undefined, UndefinedEvent,
};
use margay_ir::{FrameRole, FuncId, MemSpace};
use margay_isa::Opcode;
use marks::Marks;
use shadow::{Record, Shadow};
use site::{Place, Sites};
use std::{
    collections::BTreeMap,
    hash::{Hash, Hasher},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use threads::{CtaThreads, Threads, Who};

/// How a name of the program is shown: C++ names are mangled.
pub type Names = fn(&str) -> String;

/// Observes one launch and collects findings.
pub struct Sanitizer {
    what: What,
    image: Arc<Image>,
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
    /// Whether accesses to shared memory may be put off.
    puts_off: bool,
    /// The parameter block; empty if unknown.
    params: Vec<u8>,
    state: Mutex<State>,
}

/// A CTA in flight.
struct Cta {
    threads: CtaThreads,
    arrivals: Arrivals,
    /// Host address and size of its shared memory.
    shared: (u64, u64),
    /// Number of threads that have not exited.
    live: u32,
    /// What those knew that have.
    end: ended::End,
    phase: phase::Phase,
}

/// The CTAs in flight, by linear index.
#[derive(Default)]
struct Ctas {
    list: Vec<(u32, Cta)>,
    /// Where in the list the one stands that was looked up last.
    recent: usize,
}

impl Ctas {
    fn place(&self, index: u32) -> Option<usize> {
        match self.list.get(self.recent) {
            Some((known, _)) if *known == index => Some(self.recent),
            _ => self.list.iter().position(|(known, _)| *known == index),
        }
    }

    fn get(&self, index: u32) -> Option<&Cta> {
        Some(&self.list[self.place(index)?].1)
    }

    #[inline]
    fn get_mut(&mut self, index: u32) -> Option<&mut Cta> {
        self.recent = self.place(index)?;
        Some(&mut self.list[self.recent].1)
    }

    fn insert(&mut self, index: u32, cta: Cta) {
        self.remove(index);
        self.list.push((index, cta));
    }

    fn remove(&mut self, index: u32) {
        if let Some(place) = self.place(index) {
            self.list.swap_remove(place);
        }
    }

    fn iter(&self) -> impl Iterator<Item = &Cta> {
        self.list.iter().map(|(_, cta)| cta)
    }
}

/// Identifies a finding: its kind and two [line keys](line_key).
type Key = (FindingKind, u64, u64);

#[derive(Default)]
struct State {
    threads: Threads,
    ctas: Ctas,
    shadow: Shadow,
    /// Bytes of shared and local memory that were written.
    marks: Marks,
    /// The CTAs of clusters by the host address of their shared memory, and the accesses of others to it.
    windows: Map<u64, u32>,
    remotes: Map<u32, Vec<ended::Remote>>,
    /// What loads have read that was undefined.
    loaded: init::Loaded,
    /// Where undefined values were stored in shared memory.
    copied: Map<u64, Arc<init::Source>>,
    /// What the next access stores of these, by element: where it was loaded.
    passed: Vec<(usize, Place)>,
    runs: init::Runs,
    sites: Sites,
    /// The program, once the launch is known, and the line key of each place.
    image: Option<Arc<Image>>,
    lines: Map<(u32, u32), u64>,
    barriers: barrier::Reach,
    found: BTreeMap<Key, Finding>,
    /// The keys in the order of their first occurrence.
    order: Vec<Key>,
    /// All that the latest access spans was written before it.
    whole: bool,
    /// Bitmap of the allocation looked up last.
    written: Option<Arc<margay_exec::mem::Written>>,
    buffer: Vec<Record>,
    arguments: provenance::Arguments,
    /// By site, once it is known: where its loads are part of no race.
    ignored: Vec<Option<unwritten::Ignored>>,
    hits: Vec<row::Hit>,
    /// Stores of different values to shared memory that nobody has read or overwritten since.
    clashes: Vec<clash::Clash>,
    /// What is missing between two sites, for these.
    helps: Map<(u32, u32, u8), String>,
    footprint: Footprint,
    /// By address: who has read what a location holds by strong operations.
    tickets: Map<u64, ticket::Tickets>,
    /// By site: whether what it yields is used.
    yields: Vec<Option<bool>>,
    /// Whether an access hinges on what was read, by the positions of the read and the access in the kernel.
    needs: Map<(u32, u32), bool>,
    /// By function, position of a load and warp: the lanes that do not use its value.
    unused: Map<(u32, u32, u32), u32>,
    /// What was queued, by thread (linear index in the grid): what precedes it, and where.
    queued: Map<u64, Vec<family::Queued>>,
    /// What this grid has allocated on the heap.
    allocated: Marks,
    /// Time has overflowed, so that nothing more is checked.
    over: bool,
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

fn lanes(mask: u32) -> impl Iterator<Item = u32> {
    (0..LANES as u32).filter(move |l| mask >> l & 1 == 1)
}

fn who(actor: &Actor<'_>) -> Who {
    Who { warp: actor.warp, lanes: actor.lanes }
}

impl Sanitizer {
    /// Creates a sanitizer for a launch of that shape (clusters of one CTA if there are none).
    pub fn new(what: What, image: Arc<Image>, names: Names, shape: LaunchShape) -> Sanitizer {
        let state = Mutex::new(State { threads: Threads::new(), image: Some(image.clone()), ..State::default() });
        let LaunchShape { grid, block, .. } = shape;
        let warps = shape.threads().div_ceil(LANES as u32);
        Sanitizer {
            what,
            image,
            names,
            grid,
            block,
            cluster: shape.cluster_size(),
            warps,
            sample: 1,
            footprints: false,
            puts_off: true,
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
        Sanitizer { puts_off: false, ..self }
    }

    /// Restricts the checks to one in so many CTAs.
    pub fn sampled(self, one_in: u32) -> Sanitizer {
        Sanitizer { sample: one_in.max(1), ..self }
    }

    /// The findings in the order of their first occurrence, one per pair of places.
    pub fn findings(&self) -> Vec<Finding> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<Finding> = state.order.iter().map(|key| state.found[key].clone()).collect();
        if state.over
            && let Some(last) = all.last_mut()
        {
            last.notes.push("the launch is too large or synchronizes too often; part of it was not checked".into());
        }
        all
    }

    /// What the launch has accessed in device memory, if races or unused memory are looked for and [`Sanitizer::with_footprint`] asks for it.
    pub fn footprint(&self) -> Footprint {
        std::mem::take(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner).footprint)
    }

    /// Linear index of a CTA.
    fn index(&self, [x, y, z]: [u32; 3]) -> u32 {
        x + self.grid[0] * (y + self.grid[1] * z)
    }

    fn cta_of(&self, index: u32) -> [u32; 3] {
        let [x, y, _] = self.grid.map(|n| n.max(1));
        [index % x, index / x % y, index / x / y]
    }

    fn cluster_of(&self, id: [u32; 3]) -> u32 {
        self.index(std::array::from_fn(|d| id[d] / self.cluster[d]))
    }

    fn thread(&self, warp: u32, lane: u32) -> [u32; 3] {
        let (t, [x, y, _]) = (warp * LANES as u32 + lane, self.block.map(|n| n.max(1)));
        [t % x, t / x % y, t / x / y]
    }

    /// The acting thread, as a party of a finding.
    fn party(&self, actor: &Actor<'_>, lane: u32, verb: &str) -> Party {
        let thread = self.thread(actor.warp, lane);
        Party { verb: verb.into(), thread, cta: actor.cta, at: actor.at, callers: actor.callers.to_vec() }
    }

    fn line(&self, (func, at): Place) -> String {
        let source = &self.image.ir.func(func).source;
        match source.tree.origins(at.span.start).last() {
            Some(origin) => format!("{}:{}", origin.file.rsplit('/').next().unwrap_or(""), origin.line),
            None => format!("line {} of the PTX", source.lines.line(at.span.start)),
        }
    }
}

impl State {
    fn key(&mut self, kind: FindingKind, (a, b): (Place, Option<Place>)) -> Key {
        let State { image, lines, .. } = self;
        let mut of = |place: Place| {
            let make = || image.as_ref().map_or(0, |image| line_key(image, place));
            *lines.entry((place.0.0, place.1.span.start)).or_insert_with(make)
        };
        let (a, b) = (of(a), b.map_or(u64::MAX, of));
        (kind, a.min(b), a.max(b))
    }

    /// Adds a finding, or counts another occurrence of it.
    fn report(&mut self, kind: FindingKind, places: (Place, Option<Place>), make: impl FnOnce() -> Finding) {
        let key = self.key(kind, places);
        match self.found.get_mut(&key) {
            Some(finding) => finding.times += 1,
            None => {
                self.found.insert(key, make());
                self.order.push(key);
            }
        }
    }

    /// Whether a finding exists already.
    fn is_known(&mut self, kind: FindingKind, places: (Place, Option<Place>)) -> bool {
        let key = self.key(kind, places);
        self.found.contains_key(&key)
    }

    /// Counts one more of a finding that is there.
    fn count(&mut self, kind: FindingKind, places: (Place, Option<Place>)) {
        let key = self.key(kind, places);
        if let Some(finding) = self.found.get_mut(&key) {
            finding.times += 1;
        }
    }

    fn advance(&mut self) {
        self.over |= !self.threads.advance();
    }
}

/// A sanitizer that one thread has locked.
struct Locked<'c> {
    sanitizer: &'c Sanitizer,
    state: MutexGuard<'c, State>,
}

impl LockedObserver for Locked<'_> {
    fn row(&mut self, e: &RowEvent<'_>) -> bool {
        self.sanitizer.see_row(&mut self.state, e)
    }

    fn loads(&mut self, e: &RowLoads<'_>) -> usize {
        self.sanitizer.see_loads(&mut self.state, e)
    }

    fn memory(&mut self, e: &MemoryEvent<'_>) {
        self.sanitizer.see(&mut self.state, e, false);
    }

    fn strays(&mut self, e: &MemoryEvent<'_>) -> (u64, u64) {
        self.sanitizer.look_for_strays(&mut self.state, e)
    }

    fn ignored(&self, memo: u32) -> (u64, u64) {
        self.sanitizer.ignored_range(&self.state, memo)
    }

    fn sync(&mut self, e: &SyncEvent<'_>) {
        self.sanitizer.synchronize(&mut self.state, e);
    }

    fn barrier(&mut self, e: &BarrierEvent<'_>) {
        self.sanitizer.complete(&mut self.state, e);
    }

    fn cta(&mut self, e: &CtaEvent<'_>) {
        self.sanitizer.begin(&mut self.state, e);
    }
}

impl Sanitizer {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at an access; also for what it strays to, unless the engine reports that apart.
    fn see(&self, state: &mut State, e: &MemoryEvent<'_>, strays: bool) {
        if e.space == MemSpace::KernelParam || e.actor.lanes == 0 || e.size == 0 {
            return;
        }
        state.whole = false;
        if state.over {
            return;
        }
        let own = matches!(e.space, MemSpace::Shared | MemSpace::SharedCluster | MemSpace::Local);
        if self.footprints && (self.what.races || self.what.unused) && !own {
            state.footprint.note(e);
        }
        if self.what.sync
            && let Some(cta) = state.ctas.get_mut(self.index(e.actor.cta))
        {
            cta.arrivals.touch(&e.actor);
        }
        if self.what.memory && strays {
            self.look_for_strays(state, e);
        }
        // Constants have initial values.
        if self.what.init && e.space != MemSpace::Const {
            self.look_for_uninitialized(state, e);
            state.passed.clear();
        }
        if self.what.races && self.index(e.actor.cta).is_multiple_of(self.sample) {
            self.look_for_races(state, e);
        }
    }

    /// Whether lanes tell each other something that all of them know.
    fn changes_nothing(&self, state: &mut State, e: &SyncEvent<'_>) -> bool {
        let cta = state.ctas.get_mut(self.index(e.actor.cta));
        e.kind == SyncKind::Exchange && cta.is_none_or(|cta| cta.threads.are_alike(e.actor.warp))
    }

    fn synchronize(&self, state: &mut State, e: &SyncEvent<'_>) {
        if state.over || self.changes_nothing(state, e) {
            return;
        }
        if let SyncKind::Object { at, done, order, .. } = e.kind {
            self.access_object(state, e, at, done, order);
        }
        // What is noted came before all that changes what a warp has seen, except for what ends the phase.
        if self.what.races && !matches!(e.kind, SyncKind::Barrier { counted: false, .. } | SyncKind::Exit) {
            self.settle(state, self.index(e.actor.cta));
        }
        if self.what.races && self.what.sync {
            self.look_for_mixed_phases(state, e);
        }
        let Some(cta) = state.ctas.get_mut(self.index(e.actor.cta)) else { return };
        let apart = match e.kind {
            SyncKind::Barrier { id, aligned, counted } if self.what.sync => {
                cta.arrivals.arrive(&e.actor, id, (aligned, counted))
            }
            _ => None,
        };
        if e.kind == SyncKind::Exit {
            cta.live = cta.live.saturating_sub(e.actor.lanes.count_ones());
            let last = cta.live == 0;
            if self.what.races && self.cluster != [1; 3] {
                self.end(state, &e.actor, last);
            }
            if last {
                state.ctas.remove(self.index(e.actor.cta));
            }
            return;
        }
        // Only races need the order.
        if self.what.races {
            if e.kind == SyncKind::Queue {
                for lane in lanes(e.actor.lanes) {
                    let clock = state.threads.knowledge(&cta.threads, (e.actor.warp, lane));
                    let thread = family::thread(cta.threads.index, self.warps, (e.actor.warp, lane));
                    let at = e.actor.callers.last().map_or(e.actor.at, |frame| (frame.func, frame.at));
                    state.queued.entry(thread).or_default().push(family::Queued { clock, at });
                }
            }
            let at = e.actor.callers.is_empty().then_some(e.actor.at);
            state.threads.sync(&mut cta.threads, who(&e.actor), e.kind, at);
            state.advance();
        }
        if let Some(apart) = apart {
            self.report_apart(state, &e.actor, &apart);
        }
    }

    /// A barrier of a CTA has completed.
    fn complete(&self, state: &mut State, e: &BarrierEvent<'_>) {
        if self.what.races && !(e.all && e.arrived == e.waited) {
            self.settle(state, self.index(e.cta));
        }
        let Some(cta) = state.ctas.get_mut(self.index(e.cta)) else { return };
        if self.what.races {
            if e.all && e.arrived == e.waited {
                cta.phase.end();
            }
            state.threads.complete(&mut cta.threads, e.id, e.all, (e.arrived, e.waited));
        }
        if self.what.sync {
            let arrived = cta.arrivals.complete(e.id);
            if e.all {
                self.look_for_skipped(state, e, &arrived);
            }
            if let Some(cta) = state.ctas.get_mut(self.index(e.cta)) {
                cta.arrivals.recycle(e.id, arrived);
            }
        }
        if self.what.races {
            state.advance();
        }
    }

    /// A CTA starts.
    fn begin(&self, state: &mut State, e: &CtaEvent<'_>) {
        for (base, size) in e.locals.iter().chain([&e.shared]) {
            state.marks.forget(*base, *size);
        }
        let within = |at: &u64| at.wrapping_sub(e.shared.0) < e.shared.1;
        state.copied.retain(|at, _| !within(at));
        state.clashes.retain(|clash| !within(&clash.address));
        state.shadow.forget(e.shared.0, e.shared.1);
        // The part reserved by the system is initialized.
        state.marks.mark(e.shared.0, self.image.reserved_shared.into());
        state.threads.forget(e.shared.0, e.shared.1);
        state.tickets.retain(|at, _| !within(at));
        let (index, cluster) = (self.index(e.cta), self.cluster_of(e.cta));
        // Records cannot tell more warps apart.
        state.over |= u64::from(index) * u64::from(self.warps) >= shadow::MOST_WARPS;
        let threads = CtaThreads::new(index, cluster, if self.what.races { self.warps } else { 0 });
        let (arrivals, live) = (Arrivals::new(self.warps), self.block.iter().product());
        let phase = phase::Phase::new(e.shared, self.puts_off && self.what.races && self.cluster == [1; 3]);
        state.ctas.insert(index, Cta { threads, arrivals, shared: e.shared, live, end: ended::End::default(), phase });
        if self.cluster != [1; 3] {
            state.windows.insert(e.shared.0, index);
            state.remotes.remove(&index);
        }
        state.advance();
    }
}

impl Observer for Sanitizer {
    fn accepts_compiled_code(&self, image: &Image, kernel: FuncId) -> bool {
        let func = image.ir.func(kernel);
        // Whether an access leaves the frame, only the reference engine knows.
        let frames = func.frame.iter().any(|v| v.role == FrameRole::Local)
            || func.insts.iter().any(|i| func.variant(i).op == Opcode::Alloca);
        !(self.what.init || self.what.memory && frames)
    }

    fn interest(&self) -> Interest {
        let What { races, unused, sync, memory, .. } = self.what;
        Interest { order: races || unused, progress: sync, bounds: memory }
    }

    fn locked(&self) -> Option<Box<dyn LockedObserver + '_>> {
        Some(Box::new(Locked { sanitizer: self, state: self.lock() }))
    }

    fn memory(&self, e: &MemoryEvent<'_>) {
        self.see(&mut self.lock(), e, true);
    }

    fn passes_on(&self, element: usize, origin: Place) {
        if self.what.init {
            self.state.lock().unwrap_or_else(PoisonError::into_inner).passed.push((element, origin));
        }
    }

    fn undefined_lanes(&self, e: &MemoryEvent<'_>) -> Undefined {
        if !self.what.init {
            return Undefined::default();
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.find_undefined(&mut state, e)
    }

    fn undefined(&self, e: UndefinedEvent<'_>) {
        let (kind, wanted) = match e.concern {
            Concern::Uninitialized => (FindingKind::Uninitialized, self.what.init),
            Concern::Participants => (FindingKind::Synchronization, self.what.sync),
            Concern::Bounds => (FindingKind::Bounds, self.what.memory),
        };
        if !wanted {
            return;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let lane = e.actor.lanes.trailing_zeros();
        if let Some(origin) = e.origin.filter(|_| e.concern == Concern::Uninitialized) {
            return self.report_use(&mut state, &e, origin);
        }
        let at = e.origin.unwrap_or(e.actor.at);
        let user = e.origin.map(|_| self.party(&e.actor, lane, "uses the value"));
        state.report(kind, (at, None), || Finding {
            kind,
            title: format!("{}: {}", kind.name(), e.what),
            parties: std::iter::once(Party { at, ..self.party(&e.actor, lane, "executes") }).chain(user).collect(),
            notes: e.usage.into_iter().collect(),
            help: None,
            times: 1,
        });
    }

    fn sync(&self, e: &SyncEvent<'_>) {
        self.synchronize(&mut self.lock(), e);
    }

    fn barrier(&self, e: &BarrierEvent<'_>) {
        self.complete(&mut self.lock(), e);
    }

    fn cta(&self, e: &CtaEvent<'_>) {
        self.begin(&mut self.lock(), e);
    }

    fn allocated(&self, at: u64, size: u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.shadow.forget(at, size);
        state.threads.forget(at, size);
        state.tickets.retain(|place, _| place.wrapping_sub(at) >= size);
        state.written = None;
        if self.what.races {
            state.allocated.mark(at, size);
        }
    }
}
