//! Code of a kernel for one block shape, and how it gets better.
//!
//! A kernel that is not in the cache is first compiled with little effort, so that it can begin. When it has run for a while, or
//! is launched again, it is compiled again on a thread of its own; workers take up the better code at their next range of CTAs,
//! and the third launch waits for it.

use crate::{
    code::compile::{Compiled, Draft, Object, Recipe},
    code::ffi,
    code::log::Log,
    code::target::Effort,
    emit::Refused,
    run::windows::Pool,
};
use margay_exec::{Bug, Stop, single_step::SingleStep};
use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread::JoinHandle,
    time::Duration,
};

/// Run time after which a kernel is worth full effort.
const HOT: Duration = Duration::from_millis(2);

/// Compiled code, and windows for those who run it.
pub struct Code {
    /// The code.
    pub compiled: Compiled,
    /// Windows that nobody uses.
    pub pool: Pool,
    /// Executes the instructions that there is no code for.
    pub single_step: Option<Arc<SingleStep>>,
}

/// A kernel for one block shape.
pub struct Tier {
    recipe: Arc<Recipe>,
    /// What the code was made from, while it may be needed again.
    draft: Mutex<Option<Draft>>,
    log: Log,
    by_warp: bool,
    code: Mutex<Arc<Code>>,
    /// Nanoseconds that light code has run for.
    spent: AtomicU64,
    /// Launches that have begun.
    begun: AtomicU64,
    /// Nothing better is to be had, or somebody is at it.
    settled: AtomicBool,
    job: Mutex<Option<JoinHandle<()>>>,
}

impl Code {
    fn new(
        recipe: &Recipe,
        object: &Object,
        single_step: Option<Arc<SingleStep>>,
        log: &Log,
    ) -> Result<Arc<Code>, String> {
        let compiled = log.time("link", || recipe.link(object))?;
        Ok(Arc::new(Code { compiled, pool: Pool::default(), single_step }))
    }
}

impl Tier {
    /// Code from the cache, or compiled. With `effort` full that is the end of it. The inner error says why there is none.
    pub fn new(recipe: Recipe, effort: Effort, log: &Log) -> Result<Result<Arc<Tier>, Refused>, Stop> {
        let bug = |why| Stop::Bug(Bug(why));
        let found = log.time("look up", || {
            recipe.cached(Effort::Full).map(|o| (o, true)).or_else(|| Some((recipe.cached(effort)?, false)))
        });
        let (object, draft, settled) = match found {
            Some((object, settled)) => (object, None, settled),
            None => {
                let draft = match log.time("emit", || recipe.emit()) {
                    Ok(draft) => draft,
                    Err(refused) => return Ok(Err(refused)),
                };
                let object = recipe.compile(&draft, effort, log).map_err(bug)?;
                (object, Some(draft), effort == Effort::Full)
            }
        };
        let single_step = match object.facts.leaves_effects() {
            true => Some(Arc::new(SingleStep::new(recipe.image.clone(), recipe.kernel)?)),
            false => None,
        };
        let code = Code::new(&recipe, &object, single_step, log).map_err(bug)?;
        Ok(Ok(Arc::new(Tier {
            recipe: Arc::new(recipe),
            draft: Mutex::new(draft.filter(|_| !settled)),
            log: log.in_background(),
            by_warp: object.facts.by_warp,
            code: Mutex::new(code),
            spent: AtomicU64::new(0),
            begun: AtomicU64::new(0),
            settled: AtomicBool::new(settled),
            job: Mutex::default(),
        })))
    }

    /// The best code there is.
    pub fn code(&self) -> Arc<Code> {
        self.code.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether warps must be called one by one.
    pub fn by_warp(&self) -> bool {
        self.by_warp
    }

    /// Whether better code may come.
    pub fn may_improve(&self) -> bool {
        !self.settled.load(Relaxed) || self.job.lock().is_ok_and(|j| j.as_ref().is_some_and(|j| !j.is_finished()))
    }

    /// The code has run for that long; a kernel that runs much is compiled again.
    pub fn ran(self: &Arc<Tier>, time: Duration) {
        if self.settled.load(Relaxed) {
            return;
        }
        let spent = self.spent.fetch_add(time.as_nanos() as u64, Relaxed) + time.as_nanos() as u64;
        if u128::from(spent) >= HOT.as_nanos() {
            self.improve();
        }
    }

    /// A launch begins: a kernel that is launched again is compiled again.
    pub fn begin(self: &Arc<Tier>) {
        match self.begun.fetch_add(1, Relaxed) {
            0 => {}
            1 => self.improve(),
            _ => self.wait(),
        }
    }

    fn wait(&self) {
        let job = self.job.lock().unwrap_or_else(PoisonError::into_inner).take();
        // The job itself may be the last to know this tier.
        if let Some(job) = job.filter(|job| job.thread().id() != std::thread::current().id()) {
            let _ = job.join();
        }
    }

    fn improve(self: &Arc<Tier>) {
        if self.settled.swap(true, Relaxed) {
            return;
        }
        let Some(leave) = ffi::Busy::enter() else { return };
        let draft = self.draft.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (weak, recipe, log) = (Arc::downgrade(self), self.recipe.clone(), self.log.clone());
        let single_step = self.code().single_step.clone();
        let improve = move || {
            let _leave = leave;
            let better = || {
                let again = || log.time("emit", || recipe.emit()).map_err(|refused| refused.what);
                let draft = draft.map_or_else(again, Ok)?;
                Code::new(&recipe, &recipe.compile(&draft, Effort::Full, &log)?, single_step, &log)
            };
            // Without it the light code goes on: it computes the same.
            if let (Ok(better), Some(tier)) = (better(), weak.upgrade()) {
                *tier.code.lock().unwrap_or_else(PoisonError::into_inner) = better;
            }
        };
        let thread = std::thread::Builder::new().name("margay-compile".into()).stack_size(16 << 20).spawn(improve);
        *self.job.lock().unwrap_or_else(PoisonError::into_inner) = thread.ok();
    }
}

impl Drop for Tier {
    fn drop(&mut self) {
        self.wait();
    }
}
