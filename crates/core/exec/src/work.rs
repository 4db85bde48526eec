//! A log of the time spent on compilation.

use parking_lot::Mutex;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// A step of compilation with its duration, for `--stats` and traces.
#[derive(Clone, Debug)]
pub struct Work {
    /// Name of the step: `emit`, `optimize`.
    pub what: &'static str,
    /// When it started.
    pub started: Instant,
    /// Its duration.
    pub time: Duration,
    /// Done on a background thread, so no launch waited for it.
    pub background: bool,
}

/// The steps of a kernel's compilation; clones share the log.
#[derive(Clone, Default)]
pub struct Log {
    state: Arc<Mutex<State>>,
    background: bool,
}

#[derive(Default)]
struct State {
    works: Vec<Work>,
    /// The current step of a thread that a launch waits for.
    now: Option<&'static str>,
}

impl Log {
    /// The same log for a background thread.
    pub fn in_background(&self) -> Log {
        Log { state: self.state.clone(), background: true }
    }

    /// Runs a step and logs its duration.
    pub fn time<T>(&self, what: &'static str, work: impl FnOnce() -> T) -> T {
        let started = Instant::now();
        let before = if self.background { None } else { self.state.lock().now.replace(what) };
        let result = work();
        let done = Work { what, started, time: started.elapsed(), background: self.background };
        let mut state = self.state.lock();
        if !self.background {
            state.now = before;
        }
        state.works.push(done);
        result
    }

    /// All completed steps, in the order of completion.
    pub fn works(&self) -> Vec<Work> {
        self.state.lock().works.clone()
    }

    /// The step that a launch is waiting for, if any.
    pub fn now(&self) -> Option<&'static str> {
        self.state.lock().now
    }
}
