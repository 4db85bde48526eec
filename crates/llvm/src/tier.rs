//! Code of a kernel for one block shape, and how it gets better.
//!
//! A kernel that is not in the cache is first compiled with little effort, so that it can begin. When it has run for a while, or
//! is launched again, it is compiled again on a thread of its own; workers take up the better code at their next range of CTAs,
//! and the third launch waits for it.

use crate::{
    compile::{Compiled, Draft},
    ffi,
    machine::Effort,
    windows::Pool,
};
use margay_exec::alone::Alone;
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
    pub alone: Option<Arc<Alone>>,
}

/// A kernel for one block shape.
pub struct Tier {
    draft: Arc<Draft>,
    code: Mutex<Arc<Code>>,
    /// Nanoseconds that light code has run for.
    spent: AtomicU64,
    /// Workers that have begun.
    begun: AtomicU64,
    /// Nothing better is to be had, or somebody is at it.
    settled: AtomicBool,
    job: Mutex<Option<JoinHandle<()>>>,
}

fn code(draft: &Arc<Draft>, object: &[u8], alone: Option<Arc<Alone>>) -> Result<Arc<Code>, String> {
    Ok(Arc::new(Code { compiled: draft.link(object)?, pool: Pool::default(), alone }))
}

impl Tier {
    /// Compiles a draft, or takes it from the cache. With `effort` full that is the end of it.
    pub fn new(draft: Draft, effort: Effort, alone: Option<Arc<Alone>>) -> Result<Arc<Tier>, String> {
        let draft = Arc::new(draft);
        let cached = |effort| draft.cached(effort).map(|object| (object, effort == Effort::Full));
        let (object, settled) = match cached(Effort::Full).or_else(|| cached(effort)) {
            Some(found) => found,
            None => (draft.compile(effort)?, effort == Effort::Full),
        };
        let code = Mutex::new(code(&draft, &object, alone)?);
        let (spent, begun, settled) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(settled));
        Ok(Arc::new(Tier { draft, code, spent, begun, settled, job: Mutex::default() }))
    }

    /// The best code there is.
    pub fn code(&self) -> Arc<Code> {
        self.code.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether warps must be called one by one.
    pub fn by_warp(&self) -> bool {
        self.draft.by_warp
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

    /// A worker begins: a kernel that is launched again is compiled again.
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
        let (weak, draft, alone) = (Arc::downgrade(self), self.draft.clone(), self.code().alone.clone());
        let improve = move || {
            let _leave = leave;
            let better = draft.compile(Effort::Full).and_then(|object| code(&draft, &object, alone));
            // Without it the light code goes on: it computes the same.
            if let (Ok(better), Some(tier)) = (better, weak.upgrade()) {
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
