//! The grid scheduler: which CTA runs where and when.
//!
//! The unit of work is a *cluster* (one CTA without clusters), since CTAs of a cluster wait for each other. Every
//! worker takes units from a shared counter and keeps a queue of *live* units. The unit in front runs for a
//! slice and goes to the back if it is not done. A worker starts another unit when its queue is empty, or once per
//! round when the unit in front has had many slices: so a CTA that polls for a later one makes progress, although no
//! GPU guarantees that. Cooperative grids start all units at once. With a seed, one worker picks units and slice
//! lengths at random, reproducibly; it has a few units, and starts others once all of these wait.
//!
//! A kernel whose CTAs never wait for each other runs ranges of them ([`margay_exec::Batch`]). Ranges grow until one
//! takes about a millisecond, so that handing them out is cheap and the end of a grid is balanced. Other threads are
//! woken at once if earlier launches of the kernel suggest that there is work for them, or when the first range shows
//! it.
//!
//! Code may improve while a grid runs ([`CodeSource`]). A worker switches to the best code when it has nothing in flight, and compiled
//! code may take over a CTA that the reference engine has run for long. So units and ranges of one grid may run side by side, on the same
//! memory.

mod current;
mod stall;
#[cfg(test)]
mod tests;
mod worker;

use crate::tiers::{CodeSource, Tier};
use current::CurrentCode;
use margay_exec::{Bug, Exhausted, Grid, LANES, Meter, Stop};
use parking_lot::Mutex;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{
            AtomicBool, AtomicU64,
            Ordering::{Relaxed, SeqCst},
        },
    },
    time::{Duration, Instant},
};
use worker::Worker;

/// A cancellation flag for launches; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Cancels the launches with this flag, soon.
    pub fn cancel(&self) {
        self.0.store(true, Relaxed);
    }

    /// Whether it was canceled.
    pub fn is_canceled(&self) -> bool {
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
    /// How long all units may do nothing but poll before that counts as a deadlock: this time if their state no longer changes,
    /// twenty times as long if it does (a counter, a clock). If there is a limit of `instructions`, units whose state changes end at
    /// that limit instead, so that the outcome does not depend on how fast an engine polls.
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
    Canceled,
}

impl From<Stop> for Ended {
    fn from(stop: Stop) -> Ended {
        Ended::Stopped(stop)
    }
}

/// State shared by the workers of a launch.
struct Shared<'a> {
    code: &'a dyn CodeSource,
    grid: &'a Grid<'a>,
    schedule: &'a Schedule<'a>,
    workers: usize,
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

/// Runs all CTAs of a grid.
pub(crate) fn run(code: &dyn CodeSource, grid: &Grid<'_>, schedule: &Schedule<'_>) -> Result<(), Ended> {
    let launch = grid.launch;
    let units = grid.units.all();
    let workers = match launch.seed {
        0 => schedule.workers.clamp(1, usize::try_from(units).unwrap_or(usize::MAX).max(1)),
        _ => 1,
    };
    let shared = Shared {
        code,
        grid,
        schedule,
        workers,
        done: AtomicU64::new(0),
        nanoseconds: AtomicU64::new(0),
        spent: AtomicU64::new(0),
        running: AtomicU64::new(0),
        epoch: AtomicU64::new(0),
        waits: (0..workers).map(|_| AtomicU64::new(IDLE)).collect(),
        over: AtomicBool::new(false),
        ended: Mutex::new(None),
    };
    let shared = &shared;
    let mut current = CurrentCode::new(shared, grid.started)?;
    if workers == 1 || current.suffices_alone(shared)? {
        Worker::new(shared, current, 0, 1).run();
    } else {
        schedule.pool.in_place_scope(|scope| {
            for index in 1..workers {
                scope.spawn(move |_| match CurrentCode::new(shared, Instant::now()) {
                    Ok(current) => Worker::new(shared, current, index, workers).run(),
                    Err(stop) => shared.end(stop.into()),
                });
            }
            Worker::new(shared, current, 0, workers).run();
        });
    }
    schedule.cost.0.store(shared.nanoseconds.load(Relaxed) / (units - grid.units.canceled()).max(1), Relaxed);
    let ended = shared.ended.lock().take();
    match ended {
        Some(ended) => Err(ended),
        None => Ok(()),
    }
}

impl Shared<'_> {
    /// Whether another worker has ended the launch.
    fn is_over(&self) -> Result<bool, Ended> {
        match self.schedule.cancel {
            Some(cancel) if cancel.is_canceled() => Err(Ended::Canceled),
            _ => Ok(self.over.load(Relaxed)),
        }
    }

    /// Adds executed warp instructions.
    fn charge(&self, instructions: u64) -> Result<(), Ended> {
        let spent = self.spent.fetch_add(instructions, Relaxed) + instructions;
        let limit = self.schedule.instructions.unwrap_or(u64::MAX);
        match spent > limit {
            true => Err(Ended::Stopped(Stop::Exhausted(exhausted(limit)))),
            false => Ok(()),
        }
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

    /// All units of the grid.
    fn units(&self) -> u64 {
        self.grid.units.all()
    }

    /// Units that have been neither started nor canceled.
    fn left(&self) -> u64 {
        self.grid.units.left()
    }

    fn ctas_of_unit(&self) -> u64 {
        self.grid.units.ctas()
    }

    fn warps_of_cta(&self) -> u64 {
        u64::from(self.grid.launch.shape.threads()).div_ceil(LANES as u64)
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
            // Whoever cancels a unit does its work.
            progress(done + self.grid.units.canceled() * self.ctas_of_unit(), self.units() * self.ctas_of_unit());
        }
    }

    /// Ends the grid; the first reason counts.
    fn end(&self, ended: Ended) {
        self.ended.lock().get_or_insert(ended);
        self.over.store(true, Relaxed);
    }
}

impl Meter for Shared<'_> {
    fn spend(&self, instructions: u64) -> Result<(), Stop> {
        match self.charge(instructions).and_then(|()| self.is_over()) {
            Ok(false) => Ok(()),
            Ok(true) => Err(over()),
            Err(ended) => {
                self.end(ended);
                Err(over())
            }
        }
    }
}

/// Ends a unit of a launch that has ended for another reason.
fn over() -> Stop {
    Stop::Exhausted(Exhausted("the launch has ended".into()))
}

fn exhausted(limit: u64) -> Exhausted {
    Exhausted(format!("the launch executed more than {limit} warp instructions"))
}

/// Runs a piece of a launch. A panic ends the launch, but not a thread that others wait for.
fn guarded<T>(piece: impl FnOnce() -> Result<T, Stop>) -> Result<T, Stop> {
    catch_unwind(AssertUnwindSafe(piece)).unwrap_or_else(|panic| Err(Stop::Bug(Bug::of_panic("an engine", &*panic))))
}
