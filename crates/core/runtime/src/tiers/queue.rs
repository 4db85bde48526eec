//! Background compilation: a queue of kernels, and threads that take the most worthwhile one first.
//!
//! Threads start when there is work and end when there is none left, so a device that compiles nothing has no threads. A process
//! that ends does not wait for them (see the compiler).

use margay_exec::Effort;
use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

/// Stack of a compiler thread in bytes.
const STACK: usize = 16 << 20;
/// Initial estimate of compile time in nanoseconds per instruction, by effort.
const GUESS: [u64; 2] = [220_000, 1_200_000];
/// Constant part of the compile time, most of it for loading LLVM.
const FIXED: Duration = Duration::from_millis(12);
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
    /// Measured compile time in nanoseconds per instruction, by effort.
    rates: [AtomicU64; 2],
    /// Nanoseconds spent on compiling, and on running CTAs.
    compiled: AtomicU64,
    ran: AtomicU64,
}

#[derive(Default)]
struct State {
    jobs: Vec<Job>,
    threads: usize,
}

impl Default for Queue {
    fn default() -> Queue {
        let processors = std::thread::available_parallelism().map_or(1, |n| n.get());
        Queue {
            state: Mutex::default(),
            most: (processors / 2).clamp(1, 4),
            rates: GUESS.map(AtomicU64::new),
            compiled: AtomicU64::new(0),
            ran: AtomicU64::new(0),
        }
    }
}

impl Queue {
    /// Estimated time to compile `instructions` instructions, in nanoseconds.
    pub fn estimate(&self, effort: Effort, instructions: usize) -> u64 {
        FIXED.as_nanos() as u64 + self.rates[effort as usize].load(Relaxed).saturating_mul(instructions as u64)
    }

    /// Updates the estimate by a measurement.
    pub fn learn(&self, effort: Effort, instructions: usize, took: Duration) {
        self.compiled.fetch_add(took.as_nanos() as u64, Relaxed);
        let one = took.saturating_sub(FIXED).as_nanos() as u64 / instructions.max(1) as u64;
        let rate = &self.rates[effort as usize];
        // Small kernels carry little weight.
        let weight = (instructions as u64).min(256);
        let old = rate.load(Relaxed);
        rate.store((old * 256 + one * weight) / (256 + weight), Relaxed);
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
    pub fn is_free(&self) -> bool {
        self.lock().threads < self.most
    }

    /// Queues a compilation.
    pub fn push(self: &Arc<Queue>, job: Job) {
        let mut state = self.lock();
        state.jobs.push(job);
        if state.threads < self.most {
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
            let job = {
                let mut state = self.lock();
                let best = (0..state.jobs.len()).min_by_key(|i| {
                    let Job { worth, effort, .. } = state.jobs[*i];
                    (effort, u64::MAX - worth)
                });
                match best {
                    Some(best) => state.jobs.swap_remove(best),
                    None => {
                        state.threads -= 1;
                        return;
                    }
                }
            };
            (job.work)();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
