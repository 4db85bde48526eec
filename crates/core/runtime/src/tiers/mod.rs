//! Tiers of a kernel: interpreted by the reference engine, compiled with light effort, compiled with full effort.
//!
//! ```text
//! Tiers      of a kernel: its form for the reference engine, the program to compile, a slot for each shape of launches
//!   └ Slot   code for launches of a shape, run times by tier; asks the queue for better code when that pays
//! Ready      a launch: the code on which a CTA starts. Whole CTAs move; one that has started can be taken over.
//! Queue      of the device: threads that compile
//! ```
//!
//! A launch never waits for code that another engine can appear in for. It stays on one engine where its CTAs could
//! observe a change: on the reference engine if it has a seed or an observer that needs it; on the best code at its start if it is
//! cooperative, since all its CTAs start at once.

pub(crate) mod queue;
mod slot;
mod takeover;

pub use slot::Tier;
pub(crate) use takeover::{Attempt, Moved};

use crate::engine::{Engine, Policy};
use margay_exec::{Bug, CodeShape, Cta, Effort, Image, Kernel, Launch, Log, NoCode, Program, Stop, Unsupported, Work};
use margay_ir::FuncId;
use parking_lot::{Condvar, Mutex};
use queue::Queue;
use slot::Slot;
use std::{
    collections::BTreeMap,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    time::Duration,
};

/// Called repeatedly while a launch waits for the compiler, from one second on: with the kernel, the compiler's current
/// step, and the time waited so far. The step is `None` when the wait is over.
pub type Waiting = Arc<dyn Fn(&str, Option<&'static str>, Duration) + Send + Sync>;

/// Run time of a kernel's CTAs on a tier.
#[derive(Clone, Copy, Debug)]
pub struct TierTime {
    /// The tier.
    pub tier: Tier,
    /// Units (CTAs, or clusters) that ran to their end.
    pub units: u64,
    /// Sum over all host threads.
    pub time: Duration,
}

/// A kernel with its code in all tiers.
pub(crate) struct Tiers {
    image: Arc<Image>,
    kernel: FuncId,
    engine: Engine,
    base: OnceLock<Arc<dyn Kernel>>,
    program: Option<Arc<dyn Program>>,
    queue: Arc<Queue>,
    waiting: Option<Waiting>,
    slots: Mutex<BTreeMap<CodeShape, Arc<Slot>>>,
    forms: takeover::Forms,
    /// Why launches ran on the reference engine although compiled code was requested.
    refused: OnceLock<String>,
    /// Run times of launches without a slot.
    alone: slot::Account,
    log: Log,
}

/// A launch that can start.
pub(crate) struct Ready<'a> {
    tiers: &'a Tiers,
    /// Code for launches of this shape; `None` if nothing is compiled.
    slot: Option<Arc<Slot>>,
    /// The best code when the launch starts.
    first: (Arc<dyn Kernel>, Tier),
    /// Whether CTAs that have not started move to better code.
    moves: bool,
    /// Whether compiled code may take over CTAs that run on the reference engine.
    takes_over: bool,
    /// For the alternating policy: counts version checks, and the engine's turns.
    turns: Option<[AtomicU32; 2]>,
}

impl Tiers {
    pub fn new(
        image: Arc<Image>,
        kernel: FuncId,
        engine: &Engine,
        queue: Arc<Queue>,
        waiting: Option<Waiting>,
    ) -> Result<Tiers, Stop> {
        let tiers = Tiers {
            program: engine.compiler.as_ref().map(|c| c.program(image.clone(), kernel)),
            image,
            kernel,
            engine: engine.clone(),
            base: OnceLock::new(),
            queue,
            waiting,
            slots: Mutex::default(),
            forms: takeover::Forms::default(),
            refused: OnceLock::new(),
            alone: slot::Account::default(),
            log: Log::default(),
        };
        // What the reference engine lacks is reported before the first launch.
        if !matches!(engine.policy, Policy::Before(_)) {
            tiers.base(None)?;
        }
        Ok(tiers)
    }

    /// Whether compiled code may run the kernel.
    pub fn compiles(&self) -> bool {
        self.program.is_some()
    }

    /// The code on which a launch starts, or why there is none. Waits for the compiler only if the policy requires it. If `interpreted`,
    /// its observer needs the reference engine.
    pub fn ready(&self, launch: &Launch, interpreted: bool) -> Result<Ready<'_>, Stop> {
        let alone = |why: Option<&NoCode>| {
            let first = (self.base(why)?, Tier::Reference);
            Ok(Ready { tiers: self, slot: None, first, moves: false, takes_over: false, turns: None })
        };
        let Some(program) = &self.program else { return alone(None) };
        if let Policy::Before(effort) = self.engine.policy {
            if interpreted {
                let what = "checks that need the reference engine".into();
                return alone(Some(&NoCode::Refused(Unsupported { what, func: Some(self.kernel), at: None })));
            }
            let slot = self.slot(CodeShape::of(launch), program);
            let code = match slot.code().filter(|(_, tier)| *tier >= Tier::from(effort)) {
                Some(code) => Ok(code),
                None => self.run_observed(|| slot.make(effort, &self.log)),
            };
            return match code {
                Ok(first) => {
                    Ok(Ready { tiers: self, slot: Some(slot), first, moves: true, takes_over: false, turns: None })
                }
                Err(why) => alone(Some(&why)),
            };
        }
        if interpreted || launch.seed != 0 {
            return alone(None);
        }
        let slot = self.slot(CodeShape::of(launch), program);
        let alternate = self.engine.policy == Policy::Alternate && !launch.shape.cooperative;
        if alternate && let Err(why @ NoCode::Bug(_)) = slot.make(Effort::Light, &self.log) {
            return alone(Some(&why));
        }
        let interprets = alternate || self.engine.policy == Policy::TakeOver;
        let first = match slot.code().filter(|_| !interprets) {
            Some(code) => code,
            None => (self.base(None)?, Tier::Reference),
        };
        if first.1 == Tier::Reference && self.engine.policy != Policy::TakeOver {
            slot.begins();
        }
        let turns = alternate.then(Default::default);
        let able = self.engine.compiler.as_ref().is_some_and(|c| c.takes_over());
        let takes_over = able && !alternate && !launch.shape.cooperative && first.1 == Tier::Reference;
        let moves = !launch.shape.cooperative && self.engine.policy != Policy::TakeOver;
        Ok(Ready { tiers: self, slot: Some(slot), first, moves, takes_over, turns })
    }

    fn slot(&self, shape: CodeShape, program: &Arc<dyn Program>) -> Arc<Slot> {
        let mut slots = self.slots.lock();
        if let Some(slot) = slots.get(&shape) {
            return slot.clone();
        }
        // Code that runs CTAs one by one also serves launches whose CTAs take turns.
        let plain = CodeShape { turns: false, ..shape };
        if let Some(slot) = slots.get(&plain)
            && slot.code().is_some_and(|(kernel, _)| !kernel.by_range())
        {
            return slot.clone();
        }
        let slot = Arc::new(Slot::new(shape, program.clone(), self.queue.clone(), &self.log, self.engine.policy));
        slot.load_cached(&self.log);
        slots.insert(shape, slot.clone());
        slot
    }

    /// The kernel on the reference engine; `why` says why compiled code is missing.
    fn base(&self, why: Option<&NoCode>) -> Result<Arc<dyn Kernel>, Stop> {
        let Some(engine) = &self.engine.base else {
            return Err(match why {
                Some(NoCode::Bug(why)) => Stop::Bug(Bug(why.clone())),
                Some(NoCode::Refused(what)) => Stop::Unsupported(what.clone()),
                Some(NoCode::Unavailable(what)) => self.unavailable(what),
                None => Stop::Bug(Bug("an engine that neither compiles nor runs kernels".into())),
            });
        };
        match why {
            // Whoever requests compiled code gets an error, not another engine, if a bug or the machine is the cause.
            Some(NoCode::Bug(why)) => return Err(Stop::Bug(Bug(why.clone()))),
            Some(NoCode::Unavailable(what)) => return Err(self.unavailable(what)),
            Some(why) => _ = self.refused.get_or_init(|| self.explain(why)),
            None => {}
        }
        if let Some(base) = self.base.get() {
            return Ok(base.clone());
        }
        let prepared = self.log.time("prepare", || engine.prepare(self.image.clone(), self.kernel))?;
        Ok(self.base.get_or_init(|| prepared).clone())
    }

    fn unavailable(&self, what: &str) -> Stop {
        Stop::Unsupported(Unsupported { what: what.into(), func: None, at: None })
    }

    fn explain(&self, why: &NoCode) -> String {
        match why {
            NoCode::Unavailable(what) | NoCode::Bug(what) => what.clone(),
            NoCode::Refused(Unsupported { what, func, at }) => {
                let line = func.zip(*at).map(|(f, at)| self.image.ir.func(f).source.lines().line(at.span.start));
                format!("{what}{}", line.map(|l| format!(" in line {l}")).unwrap_or_default())
            }
        }
    }

    /// Does work that a launch waits for, and calls the observer of waits if it takes long.
    fn run_observed<T>(&self, work: impl FnOnce() -> T) -> T {
        const FIRST: Duration = Duration::from_secs(1);
        const EVERY: Duration = Duration::from_millis(250);
        let Some(waiting) = &self.waiting else { return work() };
        let done = (Mutex::new(false), Condvar::new());
        let started = std::time::Instant::now();
        std::thread::scope(|scope| {
            let watch = || {
                let name = &self.image.ir.func(self.kernel).name;
                let (mut patience, mut reported) = (FIRST, false);
                let mut over = done.0.lock();
                while !*over {
                    done.1.wait_for(&mut over, patience);
                    if !*over && started.elapsed() >= FIRST {
                        waiting(name, Some(self.log.now().unwrap_or("compile")), started.elapsed());
                        (patience, reported) = (EVERY, true);
                    }
                }
                if reported {
                    waiting(name, None, started.elapsed());
                }
            };
            // Without a thread, there is no notification.
            let _ = std::thread::Builder::new().spawn_scoped(scope, watch);
            let result = work();
            *done.0.lock() = true;
            done.1.notify_all();
            result
        })
    }

    /// All steps of compilation so far.
    pub fn works(&self) -> Vec<Work> {
        self.log.works()
    }

    /// Why launches ran on the reference engine, although compiled code was requested or would have paid.
    pub fn fallback(&self) -> Option<String> {
        if let Some(why) = self.refused.get() {
            return Some(why.clone());
        }
        let slots = self.slots.lock();
        slots.values().find_map(|s| s.failed().map(|why| self.explain(why)))
    }

    /// Run times by tier, for tiers that were used.
    pub fn times(&self) -> Vec<TierTime> {
        let slots = self.slots.lock();
        let sum = |tier: Tier| {
            let accounts = slots.values().map(|s| &s.accounts()[tier as usize]);
            let accounts = accounts.chain((tier == Tier::Reference).then_some(&self.alone));
            let add =
                |(units, time), a: &slot::Account| (units + a.units.load(Relaxed), time + a.nanoseconds.load(Relaxed));
            let (units, time) = accounts.fold((0, 0), add);
            TierTime { tier, units, time: Duration::from_nanos(time) }
        };
        let all = [Tier::Reference, Tier::Light, Tier::Full].map(sum);
        all.into_iter().filter(|t| t.units > 0 || !t.time.is_zero()).collect()
    }

    /// Mnemonics of instructions that compiled code leaves to the reference engine.
    pub fn single_steps(&self) -> Vec<String> {
        let slots = self.slots.lock();
        let mut all: Vec<String> =
            slots.values().filter_map(|s| s.code()).flat_map(|(kernel, _)| kernel.single_steps()).collect();
        all.sort();
        all.dedup();
        all
    }
}

/// Provides the scheduler with code.
pub(crate) trait CodeSource: Sync {
    /// Changes whenever [`CodeSource::best`] does.
    fn version(&self) -> u32;

    /// The best code for CTAs that have not started.
    fn best(&self) -> (Arc<dyn Kernel>, Tier);

    /// Accounts for CTAs run on a tier: `units` have ended, and `left` of the launch have not been started by its `workers`.
    fn ran(&self, tier: Tier, units: u64, time: Duration, left: u64, workers: usize);

    /// Whether one of the workers should leave its processor to the compiler for a while.
    fn holds_back(&self, left: u64, workers: usize) -> bool;

    /// Waits for the first compiled code, but no longer than `most`.
    fn wait(&self, most: Duration) {
        std::thread::sleep(most);
    }

    /// Compiled code for the rest of a CTA that the reference engine has run for a while, if there is some.
    fn take_over(&self, _: &mut Attempt, _: &mut dyn Cta) -> Result<Option<Moved<'_>>, Stop> {
        Ok(None)
    }

    /// Waits for the code that a CTA is held for, but no longer than `most`.
    fn wait_for(&self, _: &Attempt, most: Duration) {
        std::thread::sleep(most);
    }

    /// Whether the first compiled code for CTAs that have not started is being made.
    fn is_coming(&self) -> bool {
        false
    }

    /// Whether CTAs should stop early, to be taken over.
    fn in_short_slices(&self) -> bool {
        false
    }
}

impl CodeSource for Ready<'_> {
    fn version(&self) -> u32 {
        if let Some([versions, _]) = &self.turns {
            return versions.fetch_add(1, Relaxed);
        }
        self.slot.as_ref().filter(|_| self.moves).map_or(0, |slot| slot.version())
    }

    fn best(&self) -> (Arc<dyn Kernel>, Tier) {
        let own_turn = self.turns.as_ref().is_some_and(|[_, turns]| turns.fetch_add(1, Relaxed) % 2 == 1);
        let slot = self.slot.as_ref().filter(|_| self.moves && !own_turn);
        slot.and_then(|slot| slot.code()).unwrap_or_else(|| self.first.clone())
    }

    fn ran(&self, tier: Tier, units: u64, time: Duration, left: u64, workers: usize) {
        let nanoseconds = time.as_nanos() as u64;
        match &self.slot {
            Some(slot) => slot.ran(tier, units, nanoseconds, left, workers),
            None => {
                self.tiers.alone.units.fetch_add(units, Relaxed);
                self.tiers.alone.nanoseconds.fetch_add(nanoseconds, Relaxed);
            }
        }
    }

    fn wait(&self, most: Duration) {
        match &self.slot {
            Some(slot) => slot.wait(most),
            None => std::thread::sleep(most),
        }
    }

    fn take_over(&self, attempt: &mut Attempt, cta: &mut dyn Cta) -> Result<Option<Moved<'_>>, Stop> {
        self.try_take_over(attempt, cta)
    }

    fn wait_for(&self, attempt: &Attempt, most: Duration) {
        self.wait_for_form(attempt, most);
    }

    fn is_coming(&self) -> bool {
        self.moves && self.slot.as_ref().is_some_and(|slot| slot.is_coming())
    }

    fn in_short_slices(&self) -> bool {
        self.tiers.engine.policy == Policy::TakeOver
    }

    fn holds_back(&self, left: u64, workers: usize) -> bool {
        self.moves && self.slot.as_ref().is_some_and(|s| s.holds_back(left, workers))
    }
}
