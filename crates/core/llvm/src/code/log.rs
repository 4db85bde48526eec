//! Where the time goes until there is code.

use margay_exec::Work;
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

/// What was done for a kernel; clones share it.
#[derive(Clone, Default)]
pub struct Log {
    works: Arc<Mutex<Vec<Work>>>,
    background: bool,
}

impl Log {
    /// The same log for a thread that nobody waits for.
    pub fn in_background(&self) -> Log {
        Log { works: self.works.clone(), background: true }
    }

    /// Does something, and notes how long it took.
    pub fn time<T>(&self, what: &'static str, work: impl FnOnce() -> T) -> T {
        let started = Instant::now();
        let result = work();
        let done = Work { what, started, time: started.elapsed(), background: self.background };
        self.works.lock().unwrap_or_else(PoisonError::into_inner).push(done);
        result
    }

    /// All of it.
    pub fn works(&self) -> Vec<Work> {
        self.works.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
