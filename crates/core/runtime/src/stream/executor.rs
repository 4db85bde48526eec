//! Threads that work on streams. Work may wait for other work, for the program or for the compiler, so there are always as many
//! threads as there are streams with pending work. An idle thread exits after a while.
//!
//! Waking a thread costs the program more than a small kernel. So a thread that has recently had work polls for more for a short while; a
//! program that waits for every launch does the work itself and wakes no thread.

use super::Inner;
use parking_lot::{Condvar, Mutex};
use std::{collections::VecDeque, sync::Arc, thread, time::Duration};

/// How long a thread waits for work before it leaves.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a thread that had work sleeps between looks for more.
const NAP: Duration = Duration::from_micros(100);
/// Looks before it has to be woken.
const LOOKS: u32 = 20;
/// Bytes of stack of a thread that works on streams: it runs CTAs too.
const STACK: usize = 16 << 20;

/// The threads of a device that work on streams.
#[derive(Default)]
pub(crate) struct Executor {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    /// Streams with pending work and no thread.
    ready: VecDeque<Arc<Inner>>,
    /// Threads that wait.
    idle: usize,
    /// Those of them that look by themselves.
    looking: usize,
}

impl Executor {
    /// Has a thread work on a stream.
    pub(super) fn list(self: &Arc<Executor>, stream: Arc<Inner>) {
        let mut state = self.state.lock();
        state.ready.push_back(stream);
        let (enough, seen) = (state.ready.len() <= state.idle, state.ready.len() <= state.looking);
        drop(state);
        if enough {
            if !seen {
                self.wake.notify_one();
            }
            return;
        }
        let own = self.clone();
        let spawned = thread::Builder::new().name("margay-stream".into()).stack_size(STACK).spawn(move || own.work());
        // Without a thread of their own, streams are worked on by those that wait for them.
        drop(spawned);
    }

    fn work(&self) {
        let mut state = self.state.lock();
        let mut looks = 0;
        loop {
            if let Some(stream) = state.ready.pop_front() {
                drop(state);
                stream.queue.lock().listed = false;
                stream.work(|| false);
                drop(stream);
                state = self.state.lock();
                looks = 0;
                continue;
            }
            let looking = looks < LOOKS;
            looks += 1;
            state.idle += 1;
            state.looking += usize::from(looking);
            let time = if looking { NAP } else { PATIENCE };
            let out = self.wake.wait_for(&mut state, time);
            state.idle -= 1;
            state.looking -= usize::from(looking);
            if !looking && out.timed_out() && state.ready.is_empty() {
                return;
            }
        }
    }
}
