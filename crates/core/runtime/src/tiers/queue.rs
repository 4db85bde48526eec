//! Background compilation: a queue of kernels, and threads that take the most worthwhile one first.
//!
//! Threads start when there is work and end when there is none left, so a device that compiles nothing has no threads. A process
//! that ends does not wait for them (see the compiler). First compilations do not wait for recompilations: if all threads recompile, one
//! more starts.

use margay_exec::Effort;
use parking_lot::Mutex;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

/// Stack of a compiler thread in bytes.
const STACK: usize = 16 << 20;
/// A scale of 1.
const UNIT: u64 = 1024;
/// Limits of a scale: one measurement may have been taken on a busy host.
const LEAST: u64 = UNIT / 4;
const LIMIT: u64 = UNIT * 8;
/// Memory that compiling a kernel of some hundred instructions takes.
const ARENA: usize = 4 << 20;

/// A compilation.
pub(crate) struct Job {
    /// Run time in nanoseconds that it may save.
    pub worth: u64,
    /// Its effort; first compilations go before recompilations.
    pub effort: Effort,
    /// The work.
    pub work: Box<dyn FnOnce() + Send>,
}

/// The compile queue of a device.
pub(crate) struct Queue {
    state: Mutex<State>,
    most: usize,
    /// Measured compile time over what the compiler estimates, by effort, in units of [`UNIT`].
    scales: [AtomicU64; 2],
    /// Nanoseconds spent on compiling, and on running CTAs.
    compiled: AtomicU64,
    ran: AtomicU64,
}

#[derive(Default)]
struct State {
    jobs: Vec<Job>,
    threads: usize,
    /// Threads that recompile.
    recompiling: usize,
}

impl State {
    /// Limit of threads, of which there are `most` by default, for work of this effort.
    fn limit(&self, effort: Effort, most: usize) -> usize {
        most + usize::from(effort == Effort::Light && self.recompiling >= most)
    }
}

impl Default for Queue {
    fn default() -> Queue {
        let processors = std::thread::available_parallelism().map_or(1, |n| n.get());
        Queue {
            state: Mutex::default(),
            most: (processors / 2).clamp(1, 4),
            scales: [UNIT; 2].map(AtomicU64::new),
            compiled: AtomicU64::new(0),
            ran: AtomicU64::new(0),
        }
    }
}

impl Queue {
    /// Time that a compilation probably takes, in nanoseconds, by the compiler's estimate and what others took.
    pub fn cost(&self, effort: Effort, estimate: Duration) -> u64 {
        (estimate.as_nanos() as u64).saturating_mul(self.scales[effort as usize].load(Relaxed)) / UNIT
    }

    /// Corrects later estimates by a measurement.
    pub fn learn(&self, effort: Effort, estimate: Duration, took: Duration) {
        self.compiled.fetch_add(took.as_nanos() as u64, Relaxed);
        let measured = took.as_nanos() as u64 * UNIT / (estimate.as_nanos() as u64).max(1);
        let scale = &self.scales[effort as usize];
        // Short compilations carry little weight.
        let weight = (estimate.as_millis() as u64).clamp(1, 100);
        let old = scale.load(Relaxed);
        scale.store((old * 100 + measured.clamp(LEAST, LIMIT) * weight) / (100 + weight), Relaxed);
    }

    /// Accounts for run time of CTAs.
    pub fn ran(&self, nanoseconds: u64) {
        self.ran.fetch_add(nanoseconds, Relaxed);
    }

    /// Whether `compiling` more nanoseconds of compilation leave CTAs, expected to run for `running` more, a fair share
    /// of processor time.
    pub fn affords(&self, compiling: u64, running: u64) -> bool {
        const SMALL: u64 = 100_000_000;
        let all = self.compiled.load(Relaxed).saturating_add(compiling);
        all <= SMALL.max(self.ran.load(Relaxed).saturating_add(running).saturating_mul(2))
    }

    /// Whether a compilation that is queued now starts at once.
    pub fn is_free(&self, effort: Effort) -> bool {
        let state = self.state.lock();
        state.threads < state.limit(effort, self.most)
    }

    /// Queues a compilation.
    pub fn push(self: &Arc<Queue>, job: Job) {
        let mut state = self.state.lock();
        let limit = state.limit(job.effort, self.most);
        state.jobs.push(job);
        if state.threads < limit {
            let queue = self.clone();
            let thread = std::thread::Builder::new().name("margay-compile".into()).stack_size(STACK);
            // Without a thread, the kernel is not compiled but still runs.
            if thread.spawn(move || queue.work()).is_ok() {
                state.threads += 1;
            }
        }
    }

    fn work(&self) {
        reserve_memory();
        loop {
            let Some(job) = self.next() else { return };
            (job.work)();
            self.state.lock().recompiling -= usize::from(job.effort == Effort::Full);
        }
    }

    /// The next compilation for a thread; `None` if it should end.
    fn next(&self) -> Option<Job> {
        let mut state = self.state.lock();
        let best = (0..state.jobs.len()).min_by_key(|i| {
            let Job { worth, effort, .. } = state.jobs[*i];
            (effort, u64::MAX - worth)
        });
        let Some(best) = best.filter(|best| state.threads <= state.limit(state.jobs[*best].effort, self.most)) else {
            state.threads -= 1;
            return None;
        };
        let job = state.jobs.swap_remove(best);
        state.recompiling += usize::from(job.effort == Effort::Full);
        Some(job)
    }
}

/// Has the C library reserve memory for this thread in one go. It extends the heap of a thread by a page at a time otherwise, for which it
/// locks the address space, where other threads run into page faults at the same time.
fn reserve_memory() {
    // An allocation of this size has a mapping of its own; once it was freed, the next one comes from the heap, and stays there.
    for _ in 0..2 {
        std::hint::black_box(Vec::<u8>::with_capacity(ARENA));
    }
}
