//! The code of a kernel for launches of one shape: what exists, what is being compiled, and whether more would pay.

use super::queue::{Job, Queue};
use crate::engine::Policy;
use margay_exec::{CodeShape, Effort, Kernel, Log, NoCode, Program};
use parking_lot::{Condvar, Mutex};
use std::{
    sync::{
        Arc, OnceLock,
        atomic::{
            AtomicBool, AtomicU8, AtomicU32, AtomicU64,
            Ordering::{Acquire, Relaxed, Release},
        },
    },
    time::{Duration, Instant},
};

/// Run time on light code, in nanoseconds, beyond which recompilation is considered.
const HOT: u64 = 2_000_000;
/// Run time on the reference engine, in nanoseconds, below which compilation is never considered.
const TINY: u64 = 1_000_000;

/// The tiers, in the order of increasing code quality and compile time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Tier {
    /// The reference engine.
    Reference,
    /// Compiled with light effort.
    Light,
    /// Compiled with full effort.
    Full,
}

impl From<Effort> for Tier {
    fn from(effort: Effort) -> Tier {
        match effort {
            Effort::Light => Tier::Light,
            Effort::Full => Tier::Full,
        }
    }
}

/// Run times of CTAs on one tier.
#[derive(Default)]
pub(super) struct Account {
    /// Clusters that have ended.
    pub units: AtomicU64,
    pub nanoseconds: AtomicU64,
}

impl Account {
    /// Nanoseconds so far, of all launches.
    fn spent(&self) -> u64 {
        self.nanoseconds.load(Relaxed)
    }

    /// Expected nanoseconds of `left` more units, while each of `workers` has one in flight.
    fn rest(&self, left: u64, workers: usize) -> u64 {
        // Units in flight are half done on average; before any has ended, each has cost at least its share of what was spent.
        let (ended, workers) = (self.units.load(Relaxed), workers as u64);
        let halves = if ended == 0 { 2 * workers } else { 2 * ended + workers };
        (self.spent().saturating_mul(2) / halves.max(1)).saturating_mul(left)
    }
}

/// The code of a kernel for launches of one shape.
pub(super) struct Slot {
    shape: CodeShape,
    program: Arc<dyn Program>,
    queue: Arc<Queue>,
    policy: Policy,
    /// The kernel's log, for background compilation.
    log: Log,
    code: Mutex<Option<(Arc<dyn Kernel>, Tier)>>,
    /// Incremented with every change of the code.
    version: AtomicU32,
    /// The best tier requested so far, as a [`Tier`].
    asked: AtomicU8,
    /// The code was in the cache on disk, so it was worth compiling before.
    recurs: AtomicBool,
    /// An earlier process ended before the code that would have paid was there, so it is made whatever this one seems to need.
    demanded: OnceLock<Effort>,
    /// The best tier whose code would have paid, as noted for later processes, as a [`Tier`].
    noted: AtomicU8,
    /// Notified when the code changes.
    changed: Condvar,
    /// Since when a background thread has been compiling, if one is, or is about to.
    busy: Mutex<Option<Instant>>,
    /// Held by the launch that compiles while others wait.
    making: Mutex<()>,
    /// Why there will be no code, if that is settled.
    failed: OnceLock<NoCode>,
    accounts: [Account; 3],
}

impl Slot {
    pub fn new(shape: CodeShape, program: Arc<dyn Program>, queue: Arc<Queue>, log: &Log, policy: Policy) -> Slot {
        Slot {
            shape,
            program,
            queue,
            policy,
            log: log.in_background(),
            code: Mutex::default(),
            changed: Condvar::new(),
            version: AtomicU32::new(0),
            asked: AtomicU8::new(Tier::Reference as u8),
            recurs: AtomicBool::new(false),
            demanded: OnceLock::new(),
            noted: AtomicU8::new(Tier::Reference as u8),
            busy: Mutex::default(),
            making: Mutex::default(),
            failed: OnceLock::new(),
            accounts: Default::default(),
        }
    }

    /// Loads code from the cache on disk, if there is some.
    pub fn load_cached(&self, log: &Log) {
        let demand = self.program.demand(&self.shape).filter(|_| self.policy == Policy::WhenItPays);
        // Light code runs a CTA to its end, which took long if full code is demanded; the reference engine's CTAs move to it.
        let least = if demand == Some(Effort::Full) { Effort::Full } else { Effort::Light };
        if let Some((kernel, effort)) = self.program.find(&self.shape, least, log) {
            self.recurs.store(true, Relaxed);
            self.put(kernel, effort.into());
        } else if let Some(effort) = demand {
            _ = self.demanded.set(effort);
        }
    }

    /// Time that a compilation probably takes, in nanoseconds.
    pub fn cost(&self, effort: Effort) -> u64 {
        self.queue.cost(effort, self.program.estimate(effort))
    }

    /// The best code, if there is some.
    pub fn code(&self) -> Option<(Arc<dyn Kernel>, Tier)> {
        self.code.lock().clone()
    }

    /// The shape of its launches.
    pub fn shape(&self) -> CodeShape {
        self.shape
    }

    /// Changes whenever the code does.
    pub fn version(&self) -> u32 {
        self.version.load(Acquire)
    }

    /// Why there is no code and never will be.
    pub fn failed(&self) -> Option<&NoCode> {
        self.failed.get()
    }

    /// Run times by tier.
    pub fn accounts(&self) -> &[Account; 3] {
        &self.accounts
    }

    /// Nanoseconds on the reference engine, of all launches.
    pub fn spent_interpreting(&self) -> u64 {
        self.accounts[Tier::Reference as usize].spent()
    }

    /// Compiles on this thread, unless there is code already that is as good.
    pub fn make(&self, effort: Effort, log: &Log) -> Result<(Arc<dyn Kernel>, Tier), NoCode> {
        let _making = self.making.lock();
        if let Some(code) = self.code().filter(|(_, tier)| *tier >= Tier::from(effort)) {
            return Ok(code);
        }
        if let Some(why) = self.failed() {
            return Err(why.clone());
        }
        self.asked.fetch_max(Tier::from(effort) as u8, Relaxed);
        match self.program.compile(&self.shape, effort, log) {
            Ok(kernel) => {
                self.put(kernel.clone(), effort.into());
                Ok((kernel, effort.into()))
            }
            Err(why) => Err(self.failed.get_or_init(|| why).clone()),
        }
    }

    /// Accounts for CTAs run on a tier: `units` have ended, and `left` of the launch have not been started by its `workers`.
    /// Requests compilation if it pays.
    pub fn ran(self: &Arc<Slot>, tier: Tier, units: u64, nanoseconds: u64, left: u64, workers: usize) {
        let account = &self.accounts[tier as usize];
        account.units.fetch_add(units, Relaxed);
        account.nanoseconds.fetch_add(nanoseconds, Relaxed);
        self.queue.ran(nanoseconds);
        if self.policy == Policy::TakeOver {
            return;
        }
        if tier == Tier::Reference {
            let spent = account.spent();
            if spent > TINY.max(self.cost(Effort::Light) / 2) && self.code().is_none() {
                self.note_demand(Effort::Light, spent);
            }
        }
        let Some(next) = self.next(tier) else { return };
        let cost = self.cost(next);
        let rest = account.rest(left, workers);
        let pays = match tier {
            // CTAs that cannot move before the launch ends gain nothing. Beside workers, the compiler takes about 1.4 times as long as alone
            // where two hardware threads share a core.
            Tier::Reference => account.spent() > TINY && rest / workers.max(1) as u64 > cost + 3 * cost / 8,
            _ => self.pays_again(account.spent().saturating_add(rest), cost),
        };
        if pays {
            self.ask(next, account.spent().saturating_add(rest));
        }
    }

    /// Tells later processes once that launches take so long that code of an effort would have paid. Processes that take longer than the
    /// compiler leave the code itself.
    pub fn note_demand(&self, effort: Effort, spent: u64) {
        let tier = Tier::from(effort) as u8;
        if self.policy == Policy::WhenItPays && self.noted.fetch_max(tier, Relaxed) < tier {
            self.program.note_demand(&self.shape, effort, Duration::from_nanos(spent));
        }
    }

    /// A launch begins. Requests compilation if earlier launches or processes say that it pays: launches are assumed to recur as often
    /// as they have so far.
    pub fn begins(self: &Arc<Slot>) {
        let spent = self.spent_interpreting();
        if let Some(effort) = self.demanded.get() {
            self.ask(*effort, spent);
        }
        let Some(next) = self.next(Tier::Reference) else { return };
        if spent > self.cost(next) {
            self.ask(next, spent);
        }
    }

    /// The effort of a recompilation of code of a tier, unless it was requested already.
    fn next(&self, tier: Tier) -> Option<Effort> {
        let next = [Effort::Light, Effort::Full].into_iter().find(|e| Tier::from(*e) > tier)?;
        (self.asked.load(Relaxed) < Tier::from(next) as u8).then_some(next)
    }

    /// Whether code that is expected to run for so long should be recompiled at this cost, both in nanoseconds.
    fn pays_again(&self, expected: u64, cost: u64) -> bool {
        if self.policy != Policy::WhenItPays {
            return expected > HOT;
        }
        // The best code is some tens of percent faster, for this process and later ones.
        let needed = if self.recurs.load(Relaxed) { cost / 10 } else { cost / 2 };
        expected > HOT.max(needed) && self.queue.affords(cost, expected)
    }

    /// Requests full code for what has run for so long on light code, in nanoseconds, if it pays should that run as long again; whether it does.
    pub fn ask_full(self: &Arc<Slot>, spent: u64) -> bool {
        let pays = self.pays_again(spent.saturating_mul(2), self.cost(Effort::Full));
        if pays {
            self.ask(Effort::Full, spent);
        }
        pays
    }

    /// Requests a background compilation with `effort`, once.
    pub fn ask(self: &Arc<Slot>, effort: Effort, worth: u64) {
        let tier = Tier::from(effort);
        if self.asked.fetch_max(tier as u8, Relaxed) >= tier as u8 {
            return;
        }
        // Kernels that were dropped meanwhile are not compiled.
        let slot = Arc::downgrade(self);
        let work = move || {
            let Some(slot) = slot.upgrade() else { return };
            slot.set_busy(true);
            slot.improve(effort);
            slot.set_busy(false);
        };
        // The new thread may need a processor that a worker leaves to it.
        if self.queue.is_free(effort) {
            self.set_busy(true);
        }
        self.queue.push(Job { worth, effort, work: Box::new(work) });
    }

    fn set_busy(&self, busy: bool) {
        *self.busy.lock() = busy.then(Instant::now);
    }

    fn improve(&self, effort: Effort) {
        // Another process, or a kernel with equal contents, may have compiled it already.
        if let Some((kernel, found)) = self.program.find(&self.shape, effort, &self.log) {
            return self.put(kernel, found.into());
        }
        let started = Instant::now();
        match self.program.compile(&self.shape, effort, &self.log) {
            Ok(kernel) => {
                self.queue.learn(effort, self.program.estimate(effort), started.elapsed());
                self.put(kernel, effort.into());
            }
            // Existing code remains in use: it computes the same.
            Err(why) if self.code().is_none() => _ = self.failed.set(why),
            Err(_) => {}
        }
    }

    /// Whether a launch with `left` units to go gains if one of its `workers` leaves its processor to the compiler.
    pub fn holds_back(&self, left: u64, workers: usize) -> bool {
        let cost = self.cost(Effort::Light);
        let since = *self.busy.lock();
        // If compilation takes longer than estimated, do not wait any longer; longer if an earlier process lost its code.
        let demanded = self.demanded.get() == Some(&Effort::Light);
        let patience = if demanded { 3 * cost } else { cost + cost / 2 };
        let Some(elapsed) = since.map(|s| s.elapsed().as_nanos() as u64).filter(|e| *e <= patience) else {
            return false;
        };
        let rest = self.accounts[Tier::Reference as usize].rest(left, workers) / workers.max(1) as u64;
        let gains = rest > cost.saturating_sub(elapsed).max(cost / 8) || demanded;
        self.code().is_none() && gains
    }

    /// Whether there is code or will be some.
    pub fn is_wanted(&self) -> bool {
        self.asked.load(Relaxed) > Tier::Reference as u8 && self.failed().is_none()
    }

    /// Whether the first code is being made.
    pub fn is_coming(&self) -> bool {
        self.busy.lock().is_some() && self.code().is_none()
    }

    /// Waits for the first code, but no longer than `most`.
    pub fn wait(&self, most: Duration) {
        let mut code = self.code.lock();
        if code.is_none() {
            self.changed.wait_for(&mut code, most);
        }
    }

    fn put(&self, kernel: Arc<dyn Kernel>, tier: Tier) {
        let mut code = self.code.lock();
        if code.as_ref().is_none_or(|(_, old)| *old < tier) {
            *code = Some((kernel, tier));
            self.asked.fetch_max(tier as u8, Relaxed);
            self.version.fetch_add(1, Release);
            self.changed.notify_all();
        }
    }
}
