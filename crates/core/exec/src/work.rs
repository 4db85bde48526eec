//! Where the time goes until there is code.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Something that was done to make code, for people who want to know where the time went.
#[derive(Clone, Debug)]
pub struct Work {
    /// What: `emit`, `optimise`.
    pub what: &'static str,
    /// When it began.
    pub started: Instant,
    /// How long it took.
    pub time: Duration,
    /// On a thread that no launch waited for.
    pub background: bool,
}

/// What was done for a kernel; clones share it.
#[derive(Clone, Default)]
pub struct Log {
    state: Arc<Mutex<State>>,
    background: bool,
}

#[derive(Default)]
struct State {
    works: Vec<Work>,
    /// What is being done at the moment, and for somebody who waits.
    now: Option<&'static str>,
}

impl Log {
    /// The same log for a thread that nobody waits for.
    pub fn in_background(&self) -> Log {
        Log { state: self.state.clone(), background: true }
    }

    /// Does something, and notes how long it took.
    pub fn time<T>(&self, what: &'static str, work: impl FnOnce() -> T) -> T {
        let started = Instant::now();
        let before = if self.background { None } else { self.lock().now.replace(what) };
        let result = work();
        let done = Work { what, started, time: started.elapsed(), background: self.background };
        let mut state = self.lock();
        if !self.background {
            state.now = before;
        }
        state.works.push(done);
        result
    }

    /// All of it, in the order of its end.
    pub fn works(&self) -> Vec<Work> {
        self.lock().works.clone()
    }

    /// What somebody waits for at the moment.
    pub fn now(&self) -> Option<&'static str> {
        self.lock().now
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
