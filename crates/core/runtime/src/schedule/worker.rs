//! A worker: a thread that runs units of a launch.

use super::{
    Ended, IDLE, RUNS, Schedule, Shared,
    current::CurrentCode,
    guarded,
    stall::{Stall, StallLimits},
};
use crate::tiers::{Attempt, Tier};
use margay_exec::{Bug, Cta, Progress as Step, Slice, Stop};
use std::{
    collections::VecDeque,
    sync::atomic::Ordering::{Relaxed, SeqCst},
    time::{Duration, Instant},
};

/// Fuel of a slice in warp instructions: a few milliseconds.
const SLICE: u64 = 1 << 16;
/// The same for the first slices of CTAs that are to be taken over early, and their number.
const SHORT_SLICE: u64 = 1 << 8;
const MANY_SLICES: u32 = 64;
/// The limit of a random slice is a power of two with an exponent below this.
const RANDOM_MAGNITUDES: u64 = 11;
/// One random pick in this many may be of a unit that waits, as long as others do not.
const TIMES_READY: u64 = 8;
/// Slices after which a unit is suspected to wait for another one; times the worker's live units if it does more than poll, since most such
/// units are just long.
const SUSPECT_AFTER: u32 = 16;
/// Times as many slices, if better code for the units that have not started is being made, or is ready but runs ranges.
const FACTOR_FOR_CODE: u32 = 64;
/// A worker with this many live units waits for units that run on other workers before it starts another one...
const FEW_LIVE: usize = 3;
/// ... for this long.
const WAIT_FOR_OTHERS: Duration = Duration::from_micros(500);
/// Limits of a worker's live units, except for cooperative grids: in general, and for a worker that picks units at random, until all of them
/// wait.
const MAX_LIVE: usize = 256;
const MAX_LIVE_RANDOM: usize = 8;
/// Limits where all of these wait, for units that have not started: the units of a worker and the threads of all workers. Grids that fit
/// into the largest GPUs at once, whose CTAs may wait for each other there, are smaller.
const MAX_WAITING: usize = 8192;
const MAX_WAITING_THREADS: u64 = 1 << 19;

/// A cluster in flight.
struct Unit<'a> {
    cta: Box<dyn Cta + 'a>,
    /// Linear index of its first CTA.
    first: u64,
    slices: u32,
    /// It only polled in its last slice, or goes in circles.
    waits: bool,
    tier: Tier,
    /// The attempts to have compiled code take it over.
    attempt: Attempt,
}

impl Unit<'_> {
    /// Whether it does not run until compiled code takes it over.
    fn is_held(&self) -> bool {
        self.attempt.is_held()
    }
}

/// A thread that runs units and ranges of a launch.
pub(super) struct Worker<'a> {
    shared: &'a Shared<'a>,
    /// Its index; 0 is the caller.
    index: usize,
    /// Number of workers.
    workers: usize,
    current: CurrentCode<'a>,
    /// The units that it has started, the next one first.
    live: VecDeque<Unit<'a>>,
    /// Picks units and lengths of slices, in launches with a seed.
    random: Option<Random>,
    /// The last unit that ran has yielded to others.
    yielded: bool,
    /// All units that it had started have waited at the same time.
    all_waited: bool,
    /// Since when every slice was one of a unit that only polled.
    waiting_since: Option<Instant>,
    stall: Option<Stall>,
}

impl<'a> Worker<'a> {
    pub fn new(shared: &'a Shared<'a>, current: CurrentCode<'a>, index: usize, workers: usize) -> Worker<'a> {
        let random = Some(shared.grid.launch.seed).filter(|seed| *seed != 0).map(Random);
        Worker {
            shared,
            index,
            workers,
            current,
            live: VecDeque::new(),
            random,
            yielded: false,
            all_waited: false,
            waiting_since: None,
            stall: None,
        }
    }

    /// Runs units and ranges until none are left.
    pub fn run(mut self) {
        let waits = &self.shared.waits[self.index];
        waits.store(RUNS, SeqCst);
        if let Err(ended) = self.run_units() {
            self.shared.end(ended);
        }
        waits.store(IDLE, SeqCst);
    }

    fn run_units(&mut self) -> Result<(), Ended> {
        let shared = self.shared;
        loop {
            // Units that are held have nothing in flight.
            if self.live.iter().all(Unit::is_held) {
                if self.current.version != shared.code.version() {
                    self.current = CurrentCode::new(shared, Instant::now())?;
                }
                if self.current.batch.is_some() {
                    match self.current.next_range(shared, self.index, self.workers)? {
                        true => continue,
                        false if self.live.is_empty() => return Ok(()),
                        false => {}
                    }
                }
                if self.live.is_empty() && self.hold_back() {
                    continue;
                }
            }
            self.renew()?;
            if self.wants_unit() {
                // Code that came while units were held may run ranges, and then cannot start units.
                if self.current.batch.is_some() {
                    if self.current.next_range(shared, self.index, self.workers)? {
                        continue;
                    }
                } else {
                    match self.start()? {
                        Some(unit) => self.live.push_front(unit),
                        None if self.live.is_empty() => return Ok(()),
                        None => {}
                    }
                }
                let cooperative = shared.grid.launch.shape.cooperative && self.random.is_none();
                if cooperative && self.live.len() < self.max_live() && shared.left() > 0 {
                    continue; // a cooperative grid starts as a whole
                }
            }
            if shared.is_over()? {
                return Ok(());
            }
            if let Some(random) = &mut self.random {
                let pick = random.unit(&self.live);
                self.live.swap(0, pick);
            }
            let Some(unit) = self.live.pop_front() else { return Ok(()) };
            match unit.is_held() {
                true => self.wait_for_code(unit)?,
                false => self.run_slice(unit)?,
            }
        }
    }

    /// Has compiled code run the rest of a unit that is held for it. Waits for a moment if all units are.
    fn wait_for_code(&mut self, mut unit: Unit<'a>) -> Result<(), Ended> {
        if self.take_over(&mut unit, Duration::ZERO)? {
            self.shared.epoch.fetch_add(1, Relaxed);
            self.shared.units_done(1);
            return Ok(());
        }
        if self.live.iter().all(Unit::is_held) {
            self.shared.code.wait_for(&unit.attempt, Duration::from_millis(1));
        }
        self.live.push_back(unit);
        Ok(())
    }

    /// Leaves the processor to the compiler while the launch gains by that, as the last worker of several on the reference
    /// engine; returns whether it did.
    fn hold_back(&self) -> bool {
        let shared = self.shared;
        let last = self.index > 0 && self.index + 1 == self.workers;
        let saturated = self.workers >= shared.schedule.pool.current_num_threads();
        if !last || !saturated || self.current.tier != Tier::Reference {
            return false;
        }
        let stays = || self.current.version == shared.code.version() && !shared.over.load(Relaxed);
        let mut held = false;
        while shared.code.holds_back(shared.left(), self.workers) && stays() {
            shared.code.wait(Duration::from_millis(1));
            held = true;
        }
        held
    }

    /// Has better code run the units that have not started although others are in flight, which may wait for them. Not if it runs
    /// ranges: those would end before the units in flight continue.
    fn renew(&mut self) -> Result<(), Stop> {
        let shared = self.shared;
        let idle = self.live.is_empty() || shared.left() == 0;
        if idle || self.current.batch.is_some() || self.current.version == shared.code.version() {
            return Ok(());
        }
        if !shared.code.best().0.by_range() {
            self.current = CurrentCode::new(shared, Instant::now())?;
        }
        Ok(())
    }

    fn max_live(&self) -> usize {
        let shared = self.shared;
        let stuck = || {
            self.live.len() >= MAX_LIVE
                && shared.left() > 0
                && shared.running.load(Relaxed) == 0
                && self.live.iter().all(|unit| unit.waits)
        };
        let most = match shared.grid.launch.shape.cooperative {
            true => usize::MAX,
            false if stuck() => self.max_waiting(),
            false => MAX_LIVE,
        };
        let few = self.random.is_some() && !self.all_waited;
        if few { most.min(MAX_LIVE_RANDOM) } else { most }
    }

    /// The limit of live units that all wait.
    fn max_waiting(&self) -> usize {
        let threads = u64::from(self.shared.grid.launch.shape.threads()) * self.shared.ctas_of_unit();
        let share = MAX_WAITING_THREADS / (threads * self.workers as u64).max(1);
        usize::try_from(share).unwrap_or(MAX_WAITING).clamp(MAX_LIVE, MAX_WAITING)
    }

    /// Whether to start another unit. The unit that a waiting one waits for may have started already, on another worker.
    fn wants_unit(&self) -> bool {
        let Some(front) = self.live.front() else { return true };
        if self.live.len() >= self.max_live() {
            return false;
        }
        if self.live.iter().all(Unit::is_held) {
            return self.current.tier != Tier::Reference && self.shared.left() > 0;
        }
        let eager = self.shared.grid.launch.shape.cooperative || self.random.is_some();
        let waits_for_others = self.waiting_since.is_some_and(|since| {
            self.live.len() >= FEW_LIVE && self.shared.running.load(Relaxed) > 0 && since.elapsed() <= WAIT_FOR_OTHERS
        });
        let outdated = self.current.version != self.shared.code.version();
        // What an observer finds should not depend on how long code takes to compile.
        let better = self.shared.grid.observer.is_none() && (outdated || self.shared.code.is_coming());
        let times = if better { FACTOR_FOR_CODE } else { 1 };
        let enough =
            if front.waits { SUSPECT_AFTER } else { (SUSPECT_AFTER * times).saturating_mul(self.live.len() as u32) };
        let makes_room = self.yielded && self.live.len() < MAX_LIVE_RANDOM;
        eager || makes_room || front.slices >= enough && !waits_for_others
    }

    /// Starts the next unit; `None` if all were started. Workers take them one by one, since units may wait for those before them
    /// (decoupled look-back), which should be under way then.
    fn start(&self) -> Result<Option<Unit<'a>>, Stop> {
        let shared = self.shared;
        let Some(index) = shared.grid.units.take(1).next() else { return Ok(None) };
        let first = shared.grid.units.first_cta(index);
        if self.current.kernel.by_range() {
            return Err(Stop::Bug(Bug("code for ranges of CTAs was asked to start one".into())));
        }
        let cta = self.current.kernel.clone().start(shared.grid, first)?;
        let [x, y, z] = first.map(u64::from);
        let [width, height, _] = shared.grid.launch.shape.grid.map(u64::from);
        Ok(Some(Unit {
            cta,
            first: x + width * (y + height * z),
            slices: 0,
            waits: false,
            tier: self.current.tier,
            attempt: Attempt::default(),
        }))
    }

    /// The warp instructions that a unit may execute in its next slice.
    fn fuel(&mut self, unit: &Unit<'_>) -> u64 {
        let limit = self.shared.schedule.instructions.unwrap_or(u64::MAX);
        match &mut self.random {
            None if unit.slices < MANY_SLICES && self.shared.code.in_short_slices() => SHORT_SLICE.min(limit),
            None => SLICE.min(limit),
            Some(random) => random.slice(RANDOM_MAGNITUDES),
        }
    }

    /// Runs a unit for a slice, and puts it at the end of the queue if it is not done.
    fn run_slice(&mut self, mut unit: Unit<'a>) -> Result<(), Ended> {
        let shared = self.shared;
        let fuel = self.fuel(&unit);
        let started = Instant::now();
        let runs = u64::from(!unit.waits);
        shared.running.fetch_add(runs, Relaxed);
        let slice = guarded(|| unit.cta.run(fuel));
        shared.running.fetch_sub(runs, Relaxed);
        let step = slice.as_ref().map(|slice| slice.progress);
        self.yielded = matches!(step, Ok(Step::Yielded));
        unit.waits = matches!(step, Ok(Step::Waiting { .. } | Step::Circling));
        self.all_waited |= unit.waits && self.live.iter().all(|other| other.waits);
        match unit.waits {
            true => _ = self.waiting_since.get_or_insert(started),
            false => self.waiting_since = None,
        }
        let took = started.elapsed();
        shared.ran(unit.tier, u64::from(matches!(step, Ok(Step::Done))), took);
        shared.span(self.index, unit.first, shared.ctas_of_unit(), started);
        let Slice { progress: step, executed } = slice?;
        let goes_on = matches!(step, Step::More | Step::Circling);
        if step == Step::Done || goes_on && self.take_over(&mut unit, took)? {
            shared.epoch.fetch_add(1, Relaxed);
            shared.units_done(1);
            return shared.charge(executed);
        }
        let executed = match step {
            Step::Waiting { repeats } => self.waited(&mut unit, repeats, executed.min(fuel / 64))?,
            _ => {
                shared.epoch.fetch_add(1, Relaxed);
                executed
            }
        };
        unit.slices = unit.slices.saturating_add(1);
        // A single thread has other work as long as not all units wait.
        let busy = self.workers == 1 && (shared.left() > 0 || self.live.iter().any(|other| !other.waits));
        if unit.waits && unit.slices >= SUSPECT_AFTER && !busy {
            // The unit that it waits for may need the processor.
            std::thread::yield_now();
        }
        self.live.push_back(unit);
        shared.charge(executed)
    }

    /// Has compiled code run the rest of a unit that has just run for a slice, if it can; returns whether it did.
    fn take_over(&self, unit: &mut Unit<'a>, took: Duration) -> Result<bool, Stop> {
        let shared = self.shared;
        if unit.tier != Tier::Reference {
            return Ok(false);
        }
        unit.attempt.ran += took;
        let Some(rest) = guarded(|| shared.code.take_over(&mut unit.attempt, unit.cta.as_mut()))? else {
            return Ok(false);
        };
        let started = Instant::now();
        let times = guarded(|| rest.run(shared.grid, shared, unit.first))?;
        for (i, (tier, time)) in (1..).zip(&times) {
            shared.ran(*tier, u64::from(i == times.len()), *time);
        }
        shared.span(self.index, unit.first, 1, started);
        Ok(true)
    }

    /// A unit has only polled in its slice: ends the launch if all units have for too long, else returns how many
    /// instructions that counts for.
    fn waited(&mut self, unit: &mut Unit<'_>, repeats: bool, executed: u64) -> Result<u64, Ended> {
        let shared = self.shared;
        // A worker that may start no more units has started all.
        let all_started = shared.left() == 0 || self.live.len() + 1 >= self.max_waiting();
        let epoch = shared.epoch.load(Relaxed);
        let Schedule { stall, instructions, .. } = *shared.schedule;
        let limits = StallLimits { stall, limited: instructions.is_some() };
        let period = self.stall.get_or_insert_with(Stall::default);
        let too_long = period.waited(epoch, repeats, self.live.len() + 1, limits);
        // What a unit executes whose state repeats does not count.
        let executed = if period.repeats { 0 } else { executed };
        if too_long && all_started && shared.all_wait(self.index, epoch) {
            return Err(Ended::Stopped(unit.cta.stuck()));
        }
        Ok(executed)
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15).max(1);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ z >> 31) % n.max(1)
    }

    /// The index of the unit to run next: any, but rarely one that waits if others do not.
    fn unit(&mut self, live: &VecDeque<Unit<'_>>) -> usize {
        let ready = live.iter().filter(|unit| !unit.waits).count() as u64;
        if ready == 0 || self.below(TIMES_READY) == 0 {
            return self.below(live.len() as u64) as usize;
        }
        let nth = self.below(ready) as usize;
        (0..live.len()).filter(|i| !live[*i].waits).nth(nth).unwrap_or(0)
    }

    /// The length of a slice, from 1 to a power of two, whose exponent is equally likely to be any number below `magnitudes`: some
    /// threads are overtaken within a few instructions, and others run far ahead.
    fn slice(&mut self, magnitudes: u64) -> u64 {
        let magnitude = self.below(magnitudes);
        1 + self.below(1 << magnitude)
    }
}
