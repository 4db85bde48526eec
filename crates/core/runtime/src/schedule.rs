//! The grid scheduler: which CTA runs where and when.
//!
//! The unit of work is a *cluster* (one CTA without clusters), since CTAs of a cluster wait for each other. Every
//! worker takes units from a shared counter and keeps a queue of *live* units. The unit in front runs for a
//! slice and goes to the back if it is not done. A worker starts another unit when its queue is empty, or once per
//! round when the unit in front has had many slices: so a CTA that polls for a later one makes progress, although no
//! GPU guarantees that. Cooperative grids start all units at once. With a seed, one worker picks units and slice
//! lengths at random, reproducibly.
//!
//! A kernel whose CTAs never wait for each other runs ranges of them ([`margay_exec::Batch`]). Ranges grow until one
//! takes about a millisecond, so that handing them out is cheap and the end of a grid is balanced. Other threads are
//! woken at once if earlier launches of the kernel suggest that there is work for them, or when the first range shows
//! it.
//!
//! Code may improve while a grid runs ([`CodeSource`]). A worker switches to the best code when it has nothing in flight, and compiled
//! code may take over a CTA that the reference engine has run for long. So units and ranges of one grid may run side by side, on the same
//! memory.

use crate::tiers::{Attempt, CodeSource, Tier};
use margay_exec::{Batch, Bug, Cta, Exhausted, Grid, Kernel, Meter, Progress as Step, Stop};
use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{
            AtomicBool, AtomicU64,
            Ordering::{Relaxed, SeqCst},
        },
    },
    time::{Duration, Instant},
};

/// Fuel of a slice in warp instructions: a few milliseconds.
const SLICE: u64 = 1 << 16;
/// The same for the first slices of CTAs that are to be taken over early, and their number.
const SHORT_SLICE: u64 = 1 << 8;
const MANY_SLICES: u32 = 64;
/// Slices after which a unit is suspected to wait for another one.
const PATIENCE: u32 = 16;
/// Live units of a worker beyond which it waits for units that run on other workers, and for how long, before it starts yet
/// another one.
const FEW_LIVE: usize = 3;
const LENIENCE: Duration = Duration::from_micros(500);
/// Limit of a worker's live units, except for cooperative grids.
const MAX_LIVE: usize = 256;

/// Limit of the first range of a batch, in CTAs.
const FIRST_RANGE: u64 = 64;
/// Limit of the first range of one worker if the whole grid took less than [`SHORT`] before.
const FIRST_RANGE_ALONE: u64 = 1024;
/// Shorter ranges are followed by longer ones.
const SHORT: Duration = Duration::from_micros(200);
/// Longer ranges are followed by shorter ones.
const LONG: Duration = Duration::from_millis(2);
/// Amount of work for which another thread is woken.
const WORTH_WAKING: Duration = Duration::from_micros(20);

/// A cancellation flag for launches; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Cancels the launches with this flag, soon.
    pub fn cancel(&self) {
        self.0.store(true, Relaxed);
    }

    /// Whether it was canceled.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Relaxed)
    }
}

/// Called from any thread whenever a unit is done, with the number of CTAs done and of all CTAs.
pub type Progress<'a> = &'a (dyn Fn(u64, u64) + Sync);

/// A time span in which a host thread ran CTAs.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// Index of the worker in the launch; 0 is the caller.
    pub worker: usize,
    /// Linear index of the first CTA.
    pub first: u64,
    /// Number of CTAs.
    pub ctas: u64,
    /// Start of the span.
    pub started: Instant,
    /// Length of the span.
    pub time: Duration,
}

/// Called with spans, from any thread.
pub type Spans<'a> = &'a (dyn Fn(Span) + Sync);

/// Average time of a CTA in earlier launches of a kernel, in nanoseconds.
pub(crate) struct Cost(AtomicU64);

impl Default for Cost {
    /// A kernel that was never launched may deserve any number of threads: its first launch has compiled code, compared
    /// to which waking them is cheap.
    fn default() -> Cost {
        Cost(AtomicU64::new(u64::MAX))
    }
}

/// Parameters of running a grid.
pub(crate) struct Schedule<'a> {
    /// The threads that run CTAs.
    pub pool: &'a rayon::ThreadPool,
    /// Limit of threads to use.
    pub workers: usize,
    /// Limit of warp instructions of all CTAs together, exact to a slice per live unit.
    pub instructions: Option<u64>,
    /// How long all units may only poll before that is a deadlock; twenty times as long if their state still changes (a
    /// counter, a clock), unless `instructions` ends them: a limit ends what changes, and deadlocks what does not, whichever engine
    /// polls how fast.
    pub stall: Duration,
    /// Cancels the launch.
    pub cancel: Option<&'a Cancel>,
    /// Receives progress.
    pub progress: Option<Progress<'a>>,
    /// Receives time spans.
    pub spans: Option<Spans<'a>>,
    /// The cost of a CTA of the kernel.
    pub cost: &'a Cost,
}

/// Why a grid ended early.
pub(crate) enum Ended {
    Stopped(Stop),
    Cancelled,
}

/// State shared by the workers of a launch.
struct Shared<'a> {
    code: &'a dyn CodeSource,
    grid: &'a Grid<'a>,
    schedule: &'a Schedule<'a>,
    clusters: [u32; 3],
    units: u64,
    workers: usize,
    next: AtomicU64,
    done: AtomicU64,
    /// Time that ranges took, in nanoseconds.
    nanoseconds: AtomicU64,
    spent: AtomicU64,
    /// Workers in a slice of a unit that did not wait in its last one.
    running: AtomicU64,
    /// Number of slices in which some unit made progress.
    epoch: AtomicU64,
    /// Per worker: [`IDLE`], [`RUNS`], or [`POLLS`] plus the epoch in which all of its units have only polled for too
    /// long.
    waits: Box<[AtomicU64]>,
    over: AtomicBool,
    ended: Mutex<Option<Ended>>,
}

/// The worker has no unit.
const IDLE: u64 = 0;
/// The worker may make progress.
const RUNS: u64 = 1;
/// All units of the worker have only polled for too long, in epoch 0.
const POLLS: u64 = 2;

/// For how long a worker has seen no progress.
struct Idle {
    epoch: u64,
    /// Every unit repeats its state, as far as one has looked since the second instant.
    certain: bool,
    /// Slices since then.
    slices: usize,
    /// When it began, and when the units were looked at anew.
    since: (Instant, Instant),
}

/// Slices of each unit in which it cannot know yet whether its state repeats.
const FIRST_SLICES: usize = 8;
/// Slices of each unit after which one judges.
const LOOK_SLICES: usize = 64;

impl Default for Idle {
    fn default() -> Idle {
        let now = Instant::now();
        Idle { epoch: 0, certain: true, slices: 0, since: (now, now) }
    }
}

impl Idle {
    /// A unit has only polled; returns whether that is true of all units of the worker, for too long. If the launch has a limit of
    /// instructions, units whose state changes wait for that.
    fn waited(&mut self, epoch: u64, certain: bool, units: usize, (stall, limited): (Duration, bool)) -> bool {
        if epoch != self.epoch {
            *self = Idle { epoch, ..Idle::default() };
        }
        self.slices += 1;
        if self.slices > LOOK_SLICES * units && !self.certain {
            // They may repeat their state by now.
            let since = (self.since.0, Instant::now());
            *self = Idle { epoch, slices: FIRST_SLICES * units, since, ..Idle::default() };
        }
        self.certain &= certain || self.slices <= FIRST_SLICES * units;
        let (all, last) = (self.since.0.elapsed(), self.since.1.elapsed());
        let repeats = self.certain && self.slices > LOOK_SLICES * units && last > stall;
        repeats || !limited && self.slices > FIRST_SLICES * units && all > stall * 20
    }
}

/// A cluster in flight.
struct Unit<'a> {
    cta: Box<dyn Cta + 'a>,
    /// Linear index of its first CTA.
    first: u64,
    slices: u32,
    /// It only polled in its last slice.
    waits: bool,
    tier: Tier,
    /// The attempts to have compiled code take it over.
    attempt: Attempt,
}

/// The code that a worker uses.
struct Tool<'a> {
    kernel: Arc<dyn Kernel>,
    tier: Tier,
    version: u32,
    /// Runs ranges of CTAs, if the code does.
    batch: Option<Box<dyn Batch + 'a>>,
    /// Size of the next range in CTAs.
    size: u64,
}

/// Runs all CTAs of a grid.
pub(crate) fn run(code: &dyn CodeSource, grid: &Grid<'_>, schedule: &Schedule<'_>) -> Result<(), Ended> {
    let launch = grid.launch;
    let size = launch.shape.cluster_size();
    let clusters: [u32; 3] = std::array::from_fn(|i| launch.shape.grid[i] / size[i]);
    let units = clusters.iter().map(|n| u64::from(*n)).product();
    let workers = match launch.seed {
        0 => schedule.workers.clamp(1, usize::try_from(units).unwrap_or(usize::MAX).max(1)),
        _ => 1,
    };
    let shared = Shared {
        code,
        grid,
        schedule,
        clusters,
        units,
        workers,
        next: AtomicU64::new(0),
        done: AtomicU64::new(0),
        nanoseconds: AtomicU64::new(0),
        spent: AtomicU64::new(0),
        running: AtomicU64::new(0),
        epoch: AtomicU64::new(0),
        waits: (0..workers).map(|_| AtomicU64::new(IDLE)).collect(),
        over: AtomicBool::new(false),
        ended: Mutex::new(None),
    };
    let mut tool = shared.tool().map_err(Ended::Stopped)?;
    if workers == 1 || shared.is_small(&mut tool) {
        shared.work(0, tool, 1);
    } else {
        let shared = &shared;
        schedule.pool.in_place_scope(|scope| {
            for worker in 1..workers {
                scope.spawn(move |_| match shared.tool() {
                    Ok(tool) => shared.work(worker, tool, workers),
                    Err(stop) => shared.end(Ended::Stopped(stop)),
                });
            }
            shared.work(0, tool, workers);
        });
    }
    schedule.cost.0.store(shared.nanoseconds.load(Relaxed) / units.max(1), Relaxed);
    let ended = shared.ended.lock().unwrap_or_else(PoisonError::into_inner).take();
    match ended {
        Some(ended) => Err(ended),
        None => Ok(()),
    }
}

impl<'a> Shared<'a> {
    /// The best code at the moment, for a worker.
    fn tool(&'a self) -> Result<Tool<'a>, Stop> {
        let version = self.code.version();
        let (kernel, tier) = self.code.best();
        let batch = match kernel.by_range() {
            true => kernel.clone().batch(self.grid, self)?,
            false => None,
        };
        let size = match self.workers == 1 && self.known_cost() < SHORT {
            true => self.units.clamp(1, FIRST_RANGE_ALONE),
            false => (self.units / (self.workers as u64 * 4)).clamp(1, FIRST_RANGE),
        };
        Ok(Tool { kernel, tier, version, batch, size })
    }

    /// Runs units and ranges until none are left, as one of `workers` workers.
    fn work(&'a self, worker: usize, tool: Tool<'a>, workers: usize) {
        self.waits[worker].store(RUNS, SeqCst);
        self.work_units(worker, tool, workers);
        self.waits[worker].store(IDLE, SeqCst);
    }

    fn work_units(&'a self, worker: usize, mut tool: Tool<'a>, workers: usize) {
        let mut random = Random(self.grid.launch.seed);
        let mut live = VecDeque::new();
        let mut waiting_since = None;
        let mut idle = None;
        let max_live = if self.grid.launch.shape.cooperative { usize::MAX } else { MAX_LIVE };
        let eager = self.grid.launch.shape.cooperative || random.0 != 0;
        loop {
            if live.is_empty() {
                if tool.version != self.code.version() {
                    match self.tool() {
                        Ok(better) => tool = better,
                        Err(stop) => return self.end(Ended::Stopped(stop)),
                    }
                }
                if tool.batch.is_some() {
                    if !self.next_range(&mut tool, workers, worker) {
                        return;
                    }
                    continue;
                }
                let last = worker > 0 && worker + 1 == workers;
                if last && tool.tier == Tier::Reference && self.hold_back(&tool, workers) {
                    continue;
                }
            }
            let front_waits = live.front().is_some_and(|u: &Unit<'_>| u.slices >= PATIENCE);
            let front_waits = front_waits && self.should_start(&live, waiting_since);
            let room = live.len() < max_live.min(if random.0 != 0 { 8 } else { usize::MAX });
            if live.is_empty() || (room && (eager || front_waits)) {
                match self.start(&tool) {
                    Ok(Some(unit)) => live.push_front(unit),
                    Ok(None) if live.is_empty() => return,
                    Ok(None) => {}
                    Err(stop) => return self.end(Ended::Stopped(stop)),
                }
                if eager && live.len() < max_live && self.left() > 0 && random.0 == 0 {
                    continue; // a cooperative grid starts as a whole
                }
            }
            if self.over.load(Relaxed) {
                return;
            }
            if self.schedule.cancel.is_some_and(Cancel::is_cancelled) {
                return self.end(Ended::Cancelled);
            }
            if random.0 != 0 {
                let pick = random.below(live.len() as u64) as usize;
                live.swap(0, pick);
            }
            let Some(mut unit) = live.pop_front() else { return };
            let limit = self.schedule.instructions.unwrap_or(u64::MAX);
            let mut fuel = match random.0 {
                0 if unit.slices < MANY_SLICES && self.code.in_short_slices() => SHORT_SLICE.min(limit),
                0 => SLICE.min(limit),
                _ => 1 + random.below(1000),
            };
            let started = Instant::now();
            let runs = u64::from(!unit.waits);
            self.running.fetch_add(runs, Relaxed);
            let step = guarded(|| unit.cta.run(fuel));
            self.running.fetch_sub(runs, Relaxed);
            unit.waits = matches!(step, Ok(Step::Waiting(_)));
            match unit.waits {
                true => _ = waiting_since.get_or_insert(started),
                false => waiting_since = None,
            }
            let ended = u64::from(matches!(step, Ok(Step::Done)));
            self.ran(unit.tier, ended, started.elapsed());
            self.span(worker, unit.first, self.ctas_of_unit(), started);
            match step {
                Ok(Step::Done) => {
                    self.epoch.fetch_add(1, Relaxed);
                    self.units_done(1);
                }
                Ok(step) => {
                    match self.take_over(&mut unit, step, started.elapsed(), worker) {
                        Ok(true) => continue,
                        Ok(false) => {}
                        Err(stop) => return self.end(Ended::Stopped(stop)),
                    }
                    match step {
                        Step::Waiting(certain) => {
                            let all_started = self.left() == 0;
                            let epoch = self.epoch.load(Relaxed);
                            let patience = (self.schedule.stall, self.schedule.instructions.is_some());
                            let idle = idle.get_or_insert_with(Idle::default);
                            let too_long = idle.waited(epoch, certain, live.len() + 1, patience);
                            // A polling unit has executed next to nothing, and nothing that counts if its state repeats.
                            fuel = if idle.certain { 0 } else { fuel / 64 };
                            if too_long && all_started && self.all_wait(worker, epoch) {
                                return self.end(Ended::Stopped(unit.cta.stuck()));
                            }
                        }
                        _ => drop(self.epoch.fetch_add(1, Relaxed)),
                    }
                    unit.slices = unit.slices.saturating_add(1);
                    if unit.waits && unit.slices >= PATIENCE {
                        // The unit that it waits for may need the processor.
                        std::thread::yield_now();
                    }
                    live.push_back(unit);
                    if self.spent.fetch_add(fuel, Relaxed) + fuel > limit {
                        return self.end(Ended::Stopped(Stop::Exhausted(exhausted(limit))));
                    }
                }
                Err(stop) => return self.end(Ended::Stopped(stop)),
            }
        }
    }

    /// Has compiled code run the rest of a unit that has just run for a slice, if it can; returns whether it did.
    fn take_over(&self, unit: &mut Unit<'a>, step: Step, took: Duration, worker: usize) -> Result<bool, Stop> {
        if unit.tier != Tier::Reference || step != Step::More {
            return Ok(false);
        }
        unit.attempt.ran += took;
        let Some(rest) = guarded(|| self.code.take_over(&mut unit.attempt, unit.cta.as_mut()))? else {
            return Ok(false);
        };
        let started = Instant::now();
        guarded(|| rest.run(self.grid, self, unit.first))?;
        self.ran(Tier::Light, 1, started.elapsed());
        self.span(worker, unit.first, 1, started);
        self.epoch.fetch_add(1, Relaxed);
        self.units_done(1);
        Ok(true)
    }

    /// Whether a worker whose units wait should start another one. The unit that they wait for may have started already, on
    /// another worker.
    fn should_start(&self, live: &VecDeque<Unit<'_>>, waiting_since: Option<Instant>) -> bool {
        let Some(since) = waiting_since else { return true };
        live.len() < FEW_LIVE || self.running.load(Relaxed) == 0 || since.elapsed() > LENIENCE
    }

    /// Notes that a worker's units only poll; returns whether that is true of all workers. A worker whose thread the
    /// host has preempted in a slice has not noted it, and may still make progress.
    fn all_wait(&self, worker: usize, epoch: u64) -> bool {
        self.waits[worker].store(POLLS + epoch, SeqCst);
        self.waits.iter().all(|w| matches!(w.load(SeqCst), w if w == IDLE || w == POLLS + epoch))
    }

    /// Accounts for CTAs run on a tier.
    fn ran(&self, tier: Tier, units: u64, time: Duration) {
        self.nanoseconds.fetch_add(time.as_nanos() as u64, Relaxed);
        self.code.ran(tier, units, time, self.left(), self.workers);
    }

    /// Units that have not been started.
    fn left(&self) -> u64 {
        self.units.saturating_sub(self.next.load(Relaxed))
    }

    /// Leaves the processor to the compiler while the launch gains by that; returns whether it did.
    fn hold_back(&self, tool: &Tool<'_>, workers: usize) -> bool {
        let saturated = workers >= self.schedule.pool.current_num_threads();
        let stays = || tool.version == self.code.version() && !self.over.load(Relaxed);
        let mut held = false;
        while saturated && self.code.holds_back(self.left(), workers) && stays() {
            std::thread::sleep(Duration::from_millis(1));
            held = true;
        }
        held
    }

    /// What the grid takes on one thread if its CTAs cost as much as those of the kernel's last launch.
    fn known_cost(&self) -> Duration {
        Duration::from_nanos(self.schedule.cost.0.load(Relaxed).saturating_mul(self.units))
    }

    /// Whether a grid that runs in ranges is too small to be worth waking other threads: probably as cheap as before,
    /// which the first range confirms.
    fn is_small(&'a self, tool: &mut Tool<'a>) -> bool {
        if tool.batch.is_none() || self.known_cost() >= WORTH_WAKING {
            return false;
        }
        let (start, size) = (Instant::now(), tool.size);
        if !self.next_range(tool, 1, 0) {
            return true;
        }
        let left = self.left();
        tool.size = size;
        start.elapsed().saturating_mul((left / size).min(1 << 16) as u32) < WORTH_WAKING
    }

    /// Runs the next range; returns whether there was one and no error. Ranges grow while they
    /// are short, but stay a fraction of what is left.
    fn next_range(&self, tool: &mut Tool<'_>, workers: usize, worker: usize) -> bool {
        let Some(batch) = &mut tool.batch else { return false };
        let first = self.next.fetch_add(tool.size, Relaxed).min(self.units);
        let range = first..first.saturating_add(tool.size).min(self.units);
        if range.is_empty() || self.spend(0).is_err() {
            return false;
        }
        let (first, ctas) = (range.start, range.end - range.start);
        let started = Instant::now();
        if let Err(stop) = guarded(|| batch.run(range)) {
            self.end(Ended::Stopped(stop));
            return false;
        }
        let took = started.elapsed();
        self.ran(tool.tier, ctas, took);
        self.span(worker, first, ctas, started);
        self.units_done(ctas);
        let left = self.left();
        let fair = if workers == 1 { left } else { left / (2 * workers as u64) };
        let grown = if took < SHORT { tool.size * 2 } else { tool.size };
        tool.size = grown.min(fair).max(1);
        if took > LONG {
            tool.size = (tool.size / 2).max(1);
        }
        true
    }

    /// Starts the next unit; `None` if all were started. Workers take them one by one, since units may wait for those before them
    /// (decoupled look-back), which should be under way then.
    fn start(&self, tool: &Tool<'_>) -> Result<Option<Unit<'a>>, Stop> {
        let index = self.next.fetch_add(1, Relaxed);
        if index >= self.units {
            return Ok(None);
        }
        let [x, y, _] = self.clusters.map(u64::from);
        let (at, size) = ([index % x, index / x % y, index / (x * y)], self.grid.launch.shape.cluster_size());
        let first: [u32; 3] = std::array::from_fn(|i| at[i] as u32 * size[i]);
        let cta = tool.kernel.clone().start(self.grid, first)?;
        let [x, y, z] = first.map(u64::from);
        let [width, height, _] = self.grid.launch.shape.grid.map(u64::from);
        Ok(Some(Unit {
            cta,
            first: x + width * (y + height * z),
            slices: 0,
            waits: false,
            tier: tool.tier,
            attempt: Attempt::default(),
        }))
    }

    fn ctas_of_unit(&self) -> u64 {
        u64::from(self.grid.launch.shape.cluster_size().iter().product::<u32>())
    }

    /// Reports a time span.
    fn span(&self, worker: usize, first: u64, ctas: u64, started: Instant) {
        if let Some(spans) = self.schedule.spans {
            spans(Span { worker, first, ctas, started, time: started.elapsed() });
        }
    }

    fn units_done(&self, units: u64) {
        let ctas = units * self.ctas_of_unit();
        let done = self.done.fetch_add(ctas, Relaxed) + ctas;
        if let Some(progress) = self.schedule.progress {
            progress(done, self.units * self.ctas_of_unit());
        }
    }

    /// Ends the grid; the first reason counts.
    fn end(&self, ended: Ended) {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(ended);
        self.over.store(true, Relaxed);
    }
}

impl Meter for Shared<'_> {
    fn spend(&self, instructions: u64) -> Result<(), Stop> {
        let spent = self.spent.fetch_add(instructions, Relaxed) + instructions;
        if self.schedule.cancel.is_some_and(Cancel::is_cancelled) {
            self.end(Ended::Cancelled);
        }
        let limit = self.schedule.instructions.unwrap_or(u64::MAX);
        if spent > limit {
            self.end(Ended::Stopped(Stop::Exhausted(exhausted(limit))));
        }
        match self.over.load(Relaxed) {
            true => Err(Stop::Exhausted(Exhausted("the launch has ended".into()))),
            false => Ok(()),
        }
    }
}

fn exhausted(limit: u64) -> Exhausted {
    Exhausted(format!("the launch executed more than {limit} warp instructions"))
}

/// Runs a piece of a launch. A panic ends the launch, but not a thread that others wait for.
fn guarded<T>(piece: impl FnOnce() -> Result<T, Stop>) -> Result<T, Stop> {
    catch_unwind(AssertUnwindSafe(piece)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Err(Stop::Bug(Bug(format!("an engine panicked: {}", text.unwrap_or("no message")))))
    })
}

/// SplitMix64; state 0 means "no seed" and is never used.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15).max(1);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ z >> 31) % n.max(1)
    }
}

#[cfg(test)]
mod tests;
