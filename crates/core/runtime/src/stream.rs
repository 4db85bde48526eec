//! Streams and events: work in order, asynchronous to the caller.
//!
//! A stream is a thread with a queue, started with the first piece of work. The first error stops it: queued work is
//! dropped, and [`Stream::synchronize`] returns the error. Kernels on different streams share the device's threads.

use crate::{Error, Kernel, LaunchConfig};
use std::{
    sync::{Arc, Condvar, Mutex, PoisonError, mpsc},
    thread::JoinHandle,
    time::Instant,
};

type Work = Box<dyn FnOnce() -> Result<(), Error> + Send>;

/// A queue of work.
#[derive(Debug, Default)]
pub struct Stream {
    worker: Mutex<Option<Worker>>,
    error: Arc<Mutex<Option<Error>>>,
}

#[derive(Debug)]
struct Worker {
    queue: mpsc::Sender<Work>,
    thread: JoinHandle<()>,
}

impl Stream {
    pub(crate) fn new() -> Stream {
        Stream::default()
    }

    /// Queues host work.
    pub fn enqueue(&self, work: impl FnOnce() -> Result<(), Error> + Send + 'static) {
        let mut slot = self.worker.lock().unwrap_or_else(PoisonError::into_inner);
        let worker = slot.get_or_insert_with(|| self.begin());
        if worker.queue.send(Box::new(work)).is_err() {
            *slot = None; // the thread has gone; what it said stands in `error`
        }
    }

    /// Queues a launch. The parameter block is copied; buffers must live until the stream is synchronised.
    pub fn launch(&self, kernel: &Kernel, config: LaunchConfig<'static>, params: &[u8]) {
        let (kernel, params) = (kernel.clone(), params.to_vec());
        self.enqueue(move || kernel.launch(&config, &params).map(drop));
    }

    /// Queues an event, which occurs when all work before it is done.
    pub fn record(&self, event: &Event) {
        event.reset();
        // If the stream has failed, the work is dropped without being run; those who wait for the event must wake all
        // the same.
        let happens = WhenDropped(event.clone());
        self.enqueue(move || {
            drop(happens);
            Ok(())
        });
    }

    /// Makes the stream wait for an event of another stream.
    pub fn wait(&self, event: &Event) {
        let event = event.clone();
        self.enqueue(move || {
            event.synchronize();
            Ok(())
        });
    }

    /// Waits until all queued work is done; returns the first error since the last call.
    pub fn synchronize(&self) -> Result<(), Error> {
        let worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Worker { queue, thread }) = worker {
            drop(queue);
            // A panic in queued work is propagated to the one who waits for it.
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
        self.error.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
    }

    fn begin(&self) -> Worker {
        let (queue, work) = mpsc::channel::<Work>();
        let error = self.error.clone();
        let thread = std::thread::spawn(move || {
            for piece in work {
                let failed = error.lock().unwrap_or_else(PoisonError::into_inner).is_some();
                if failed {
                    continue;
                }
                if let Err(e) = piece() {
                    *error.lock().unwrap_or_else(PoisonError::into_inner) = Some(e);
                }
            }
        });
        Worker { queue, thread }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Worker { queue, thread }) = worker {
            drop(queue);
            let _ = thread.join(); // nobody is left to hear of a panic
        }
    }
}

struct WhenDropped(Event);

impl Drop for WhenDropped {
    fn drop(&mut self) {
        self.0.happen();
    }
}

/// A point in a stream. Clones refer to the same event.
#[derive(Clone, Debug, Default)]
pub struct Event(Arc<(Mutex<State>, Condvar)>);

#[derive(Clone, Copy, Debug, Default)]
enum State {
    /// Never recorded: counts as occurred.
    #[default]
    New,
    Pending,
    At(Instant),
}

impl Event {
    /// An event that was not recorded yet.
    pub fn new() -> Event {
        Event::default()
    }

    /// Whether all work before it is done.
    pub fn query(&self) -> bool {
        !matches!(*self.0.0.lock().unwrap_or_else(PoisonError::into_inner), State::Pending)
    }

    /// Waits until it has occurred.
    pub fn synchronize(&self) {
        let (state, changed) = &*self.0;
        let state = state.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = changed.wait_while(state, |s| matches!(s, State::Pending));
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Milliseconds from `start` to this event; `None` unless both have occurred.
    pub fn elapsed_ms(&self, start: &Event) -> Option<f64> {
        let at = |e: &Event| match *e.0.0.lock().unwrap_or_else(PoisonError::into_inner) {
            State::At(time) => Some(time),
            State::New | State::Pending => None,
        };
        let (from, to) = (at(start)?, at(self)?);
        Some(match to.checked_duration_since(from) {
            Some(d) => d.as_secs_f64() * 1e3,
            None => -(from - to).as_secs_f64() * 1e3,
        })
    }

    fn reset(&self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = State::Pending;
    }

    fn happen(&self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = State::At(Instant::now());
        self.0.1.notify_all();
    }
}
