//! The grid scheduler: which CTA runs where and when.
//!
//! The unit of work is a *cluster* (one CTA where there are no clusters), since CTAs of a cluster wait for each other. Every
//! worker takes chunks of units from one counter and keeps a queue of *live* ones. The unit in front runs a slice; if it is
//! not done it goes to the back. A worker starts another unit when its queue is empty, or once a round when the unit in front
//! has had many slices: so a CTA that spins until a later one has done something gets what it waits for, although nothing
//! promises that on a GPU. Cooperative grids start all units at once. With a seed, one worker picks units and lengths of
//! slices at random, the same way for the same seed.

use margay_exec::{Cta, Exhausted, Grid, Kernel, Progress as Step, Stop};
use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
};

/// Warp instructions of a slice: a few milliseconds.
const SLICE: u64 = 1 << 16;
/// Slices after which a unit is suspected of waiting for another one.
const PATIENCE: u32 = 16;
/// Live units of a worker, unless the grid is cooperative.
const MAX_LIVE: usize = 256;

/// A switch that stops launches; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Stops the launches that were given this switch, soon.
    pub fn cancel(&self) {
        self.0.store(true, Relaxed);
    }

    /// Whether it was thrown.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Relaxed)
    }
}

/// Called with CTAs done and CTAs in all, from any thread, whenever a unit is done.
pub type Progress<'a> = &'a (dyn Fn(u64, u64) + Sync);

/// How a grid is to be run.
pub(crate) struct Schedule<'a> {
    /// Threads to run CTAs on.
    pub pool: &'a rayon::ThreadPool,
    /// How many of them at most.
    pub workers: usize,
    /// Warp instructions that all CTAs together may execute, within a slice for each live unit.
    pub instructions: Option<u64>,
    /// Stops the launch.
    pub cancel: Option<&'a Cancel>,
    /// Hears of CTAs that are done.
    pub progress: Option<Progress<'a>>,
}

/// Why a grid did not run to its end.
pub(crate) enum Ended {
    Stopped(Stop),
    Cancelled,
}

/// What the workers of a launch share.
struct Shared<'a> {
    kernel: &'a dyn Kernel,
    grid: &'a Grid<'a>,
    schedule: &'a Schedule<'a>,
    clusters: [u32; 3],
    units: u64,
    next: AtomicU64,
    chunk: u64,
    done: AtomicU64,
    spent: AtomicU64,
    over: AtomicBool,
    ended: Mutex<Option<Ended>>,
}

/// A cluster in flight.
struct Unit<'a> {
    cta: Box<dyn Cta + 'a>,
    slices: u32,
}

/// Runs every CTA of a grid.
pub(crate) fn run(kernel: &dyn Kernel, grid: &Grid<'_>, schedule: &Schedule<'_>) -> Result<(), Ended> {
    let launch = grid.launch;
    let clusters: [u32; 3] = std::array::from_fn(|i| launch.grid[i] / launch.cluster[i].max(1));
    let units = clusters.iter().map(|n| u64::from(*n)).product();
    let workers = match launch.seed {
        0 => schedule.workers.clamp(1, usize::try_from(units).unwrap_or(usize::MAX).max(1)),
        _ => 1,
    };
    let shared = Shared {
        kernel,
        grid,
        schedule,
        clusters,
        units,
        next: AtomicU64::new(0),
        chunk: if launch.cooperative { 1 } else { (units / (workers as u64 * 8)).clamp(1, 64) },
        done: AtomicU64::new(0),
        spent: AtomicU64::new(0),
        over: AtomicBool::new(false),
        ended: Mutex::new(None),
    };
    if workers == 1 {
        shared.work();
    } else {
        schedule.pool.in_place_scope(|scope| {
            for _ in 1..workers {
                scope.spawn(|_| shared.work());
            }
            shared.work();
        });
    }
    match shared.ended.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(ended) => Err(ended),
        None => Ok(()),
    }
}

impl<'a> Shared<'a> {
    fn work(&self) {
        let mut random = Random(self.grid.launch.seed);
        let mut live = VecDeque::new();
        let mut chunk = 0..0;
        let max_live = if self.grid.launch.cooperative { usize::MAX } else { MAX_LIVE };
        let eager = self.grid.launch.cooperative || random.0 != 0;
        loop {
            let front_waits = live.front().is_some_and(|u: &Unit<'_>| u.slices >= PATIENCE);
            let room = live.len() < max_live.min(if random.0 != 0 { 8 } else { usize::MAX });
            if live.is_empty() || (room && (eager || front_waits)) {
                match self.start(&mut chunk) {
                    Ok(Some(unit)) => live.push_front(unit),
                    Ok(None) if live.is_empty() => return,
                    Ok(None) => {}
                    Err(stop) => return self.end(Ended::Stopped(stop)),
                }
                if eager && live.len() < max_live && chunk_left(&chunk, self) && random.0 == 0 {
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
            let fuel = if random.0 != 0 { 1 + random.below(1000) } else { SLICE.min(limit) };
            match unit.cta.run(fuel) {
                Ok(Step::Done) => self.unit_done(),
                Ok(Step::More) => {
                    unit.slices = unit.slices.saturating_add(1);
                    live.push_back(unit);
                    if self.spent.fetch_add(fuel, Relaxed) + fuel > limit {
                        let why = format!("the launch executed more than {limit} warp instructions");
                        return self.end(Ended::Stopped(Stop::Exhausted(Exhausted(why))));
                    }
                }
                Err(stop) => return self.end(Ended::Stopped(stop)),
            }
        }
    }

    /// Starts the next unit; `None` when all were started.
    fn start(&self, chunk: &mut std::ops::Range<u64>) -> Result<Option<Unit<'a>>, Stop> {
        if chunk.is_empty() {
            let first = self.next.fetch_add(self.chunk, Relaxed).min(self.units);
            *chunk = first..(first + self.chunk).min(self.units);
        }
        let Some(index) = chunk.next() else { return Ok(None) };
        let [x, y, _] = self.clusters.map(u64::from);
        let (at, size) = ([index % x, index / x % y, index / (x * y)], self.grid.launch.cluster);
        let first = std::array::from_fn(|i| at[i] as u32 * size[i].max(1));
        Ok(Some(Unit { cta: self.kernel.start(self.grid, first)?, slices: 0 }))
    }

    fn unit_done(&self) {
        let ctas = u64::from(self.grid.launch.cluster.iter().map(|n| (*n).max(1)).product::<u32>());
        let done = self.done.fetch_add(ctas, Relaxed) + ctas;
        if let Some(progress) = self.schedule.progress {
            progress(done, self.units * ctas);
        }
    }

    /// The first end counts.
    fn end(&self, ended: Ended) {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(ended);
        self.over.store(true, Relaxed);
    }
}

fn chunk_left(chunk: &std::ops::Range<u64>, shared: &Shared<'_>) -> bool {
    !chunk.is_empty() || shared.next.load(Relaxed) < shared.units
}

/// SplitMix64; state 0 stands for "no seed" and is never used.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15).max(1);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ z >> 31) % n.max(1)
    }
}
