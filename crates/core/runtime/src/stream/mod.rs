//! Streams: ordered work, concurrent with the caller and with other streams.
//!
//! A stream is a queue of pieces of work. Whoever has a thread to spare works on it, one thread at a time: a thread of the device
//! ([`executor`]), or a thread that waits for the stream and would have nothing else to do. A piece may wait for marks in other
//! streams. What it waits for was queued before it, so streams never wait for each other in a circle.

mod executor;

pub(crate) use executor::Executor;

use crate::{Error, Kernel, LaunchConfig};
use parking_lot::{Condvar, Mutex};
use std::{
    any::Any,
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

/// Looks at a mark before a thread goes to sleep for it.
const LOOKS: u32 = 64;
/// How long it looks at most: on a busy machine, other processes may run for milliseconds between two looks.
const LOOKING: Duration = Duration::from_micros(100);

/// A queue of work. Clones are the same stream. Queued work is done even if the stream is dropped.
#[derive(Clone)]
pub struct Stream(Arc<Inner>);

struct Inner {
    queue: Mutex<Queue>,
    /// Pieces that were queued; it changes under the queue's lock.
    queued: AtomicU64,
    /// Completed pieces. This number alone decides whether the stream is idle and which markers are reached, so the two always agree.
    done: AtomicU64,
    executor: Arc<Executor>,
    ended: Mutex<Ended>,
}

#[derive(Default)]
struct Queue {
    pieces: VecDeque<Piece>,
    /// The marker after the running piece, if it still exists.
    mark: Option<Mark>,
    /// A thread works on it.
    taken: bool,
    /// The executor is to look at it.
    listed: bool,
}

struct Piece {
    /// What it waits for.
    after: Vec<Mark>,
    work: Box<dyn FnOnce() + Send>,
    /// The marker after it, if it still exists.
    mark: Option<Mark>,
}

/// How work ended that did not end well.
#[derive(Default)]
struct Ended {
    error: Option<Error>,
    panic: Option<Box<dyn Any + Send>>,
}

impl Stream {
    pub(crate) fn new(executor: Arc<Executor>) -> Stream {
        Stream(Arc::new(Inner {
            queue: Mutex::default(),
            queued: AtomicU64::new(0),
            done: AtomicU64::new(0),
            executor,
            ended: Mutex::default(),
        }))
    }

    /// Queues work that comes after marks in other streams, and after everything queued here before.
    pub fn push(&self, after: Vec<Mark>, work: impl FnOnce() + Send + 'static) {
        let mut queue = self.0.queue.lock();
        self.0.queued.fetch_add(1, SeqCst);
        queue.pieces.push_back(Piece { after, work: Box::new(work), mark: None });
        drop(queue);
        self.0.list();
    }

    /// Does work when all is done that was queued before, and waits for its end. The calling thread does it if it can.
    pub fn run(&self, after: Vec<Mark>, work: impl FnOnce() + Send + 'static) {
        self.put(after, work).wait();
    }

    /// Adds a piece followed by a marker. The caller ensures that it is executed.
    fn put(&self, after: Vec<Mark>, work: impl FnOnce() + Send + 'static) -> Mark {
        let mut queue = self.0.queue.lock();
        let mark = Mark::new(Arc::downgrade(&self.0), self.0.queued.fetch_add(1, SeqCst) + 1);
        queue.pieces.push_back(Piece { after, work: Box::new(work), mark: Some(mark.clone()) });
        mark
    }

    /// Whether it is the same stream.
    pub fn is_same(&self, other: &Stream) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Whether all queued work is done.
    pub fn is_idle(&self) -> bool {
        // In this order, because work is queued before it is done.
        let done = self.0.done.load(SeqCst);
        done == self.0.queued.load(SeqCst)
    }

    /// A marker after all queued work; if there is none, it is already reached.
    pub fn mark(&self) -> Mark {
        self.mark_after(Vec::new())
    }

    /// The same, after markers in other streams too.
    pub fn mark_after(&self, after: Vec<Mark>) -> Mark {
        let unreached: Vec<Mark> = after.into_iter().filter(|mark| !mark.is_reached()).collect();
        if !unreached.is_empty() {
            let mark = self.put(unreached, || ());
            self.0.list();
            return mark;
        }
        // No piece of its own, so asking leaves a stream as it is.
        let mut queue = self.0.queue.lock();
        if self.is_idle() {
            return Mark::now();
        }
        let new = || Mark::new(Arc::downgrade(&self.0), self.0.queued.load(SeqCst));
        let Queue { pieces, mark, .. } = &mut *queue;
        pieces.back_mut().map_or(mark, |last| &mut last.mark).get_or_insert_with(new).clone()
    }

    /// Waits until everything is done that was queued before.
    pub fn settle(&self) {
        self.mark().wait();
    }

    /// Queues a piece of host work. After an error, work queued later is not started.
    pub fn enqueue(&self, work: impl FnOnce() -> Result<(), Error> + Send + 'static) {
        let inner = Arc::downgrade(&self.0);
        self.push(Vec::new(), move || {
            let Some(inner) = inner.upgrade() else { return };
            let failed = inner.ended.lock().error.is_some();
            if failed {
                return;
            }
            match catch_unwind(AssertUnwindSafe(work)) {
                Ok(Ok(())) => {}
                Ok(Err(error)) => inner.ended.lock().error = Some(error),
                Err(panic) => inner.ended.lock().panic = Some(panic),
            }
        });
    }

    /// Queues a launch. The parameter block is copied; buffers must live until the stream is synchronized.
    pub fn launch(&self, kernel: &Kernel, config: LaunchConfig<'static>, params: &[u8]) {
        let (kernel, params) = (kernel.clone(), params.to_vec());
        self.enqueue(move || kernel.launch(&config, &params).map(drop));
    }

    /// Queues an event: it happens when everything before it is done.
    pub fn record(&self, event: &Event) {
        *event.0.lock() = Some(self.mark());
    }

    /// Makes the stream wait for an event, as it was recorded last.
    pub fn wait(&self, event: &Event) {
        if let Some(mark) = event.mark().filter(|mark| !mark.is_reached()) {
            self.push(vec![mark], || ());
        }
    }

    /// Waits until everything queued is done, and yields the first error since the last call.
    pub fn synchronize(&self) -> Result<(), Error> {
        self.settle();
        let Ended { error, panic } = std::mem::take(&mut *self.0.ended.lock());
        // A panic in queued work is the panic of the one who waits for it.
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
        error.map_or(Ok(()), Err)
    }
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Inner { queued, done, .. } = &*self.0;
        f.debug_struct("Stream").field("queued", queued).field("done", done).finish_non_exhaustive()
    }
}

impl Inner {
    /// Works on the stream until `enough` holds or nothing is left, unless another thread works on it.
    fn work(self: &Arc<Inner>, enough: impl Fn() -> bool) {
        let mut queue = self.queue.lock();
        if queue.taken {
            return;
        }
        queue.taken = true;
        while !enough() {
            let Some(Piece { after, work, mark }) = queue.pieces.pop_front() else { break };
            queue.mark = mark;
            drop(queue);
            after.iter().for_each(Mark::wait);
            // A caller that needs to know of a panic catches it.
            let _ = catch_unwind(AssertUnwindSafe(work));
            queue = self.queue.lock();
            let mark = queue.mark.take();
            if let Some(mark) = &mark {
                let _ = mark.0.time.set(Instant::now()); // nobody else does
            }
            self.done.fetch_add(1, SeqCst);
            if let Some(mark) = &mark {
                drop(queue);
                mark.wake();
                queue = self.queue.lock();
            }
        }
        queue.taken = false;
        drop(queue);
        self.list();
    }

    /// Notifies the executor if there is pending work without a thread.
    fn list(self: &Arc<Inner>) {
        let mut queue = self.queue.lock();
        if !queue.taken && !queue.listed && !queue.pieces.is_empty() {
            queue.listed = true;
            drop(queue);
            self.executor.list(self.clone());
        }
    }
}

/// A place in a stream: reached when everything before it is done. Clones are the same place.
#[derive(Clone)]
pub struct Mark(Arc<Place>);

struct Place {
    /// The stream; none for a mark that was reached from the beginning.
    stream: Weak<Inner>,
    /// It is reached when this number of pieces of the stream are done.
    number: u64,
    /// When it was reached; set just before.
    time: OnceLock<Instant>,
    sleepers: Mutex<()>,
    wake: Condvar,
}

impl Mark {
    fn new(stream: Weak<Inner>, number: u64) -> Mark {
        let (time, sleepers, wake) = (OnceLock::new(), Mutex::default(), Condvar::new());
        Mark(Arc::new(Place { stream, number, time, sleepers, wake }))
    }

    /// A mark that is reached now.
    pub fn now() -> Mark {
        let mark = Mark::new(Weak::new(), 0);
        let _ = mark.0.time.set(Instant::now()); // it is new
        mark
    }

    /// Whether everything before it is done.
    pub fn is_reached(&self) -> bool {
        // A stream that is gone has done everything.
        self.0.stream.upgrade().is_none_or(|stream| stream.done.load(SeqCst) >= self.0.number)
    }

    /// When it was reached.
    pub fn time(&self) -> Option<Instant> {
        self.0.time.get().copied().filter(|_| self.is_reached())
    }

    /// Wakes those who sleep until it is reached.
    fn wake(&self) {
        drop(self.0.sleepers.lock());
        self.0.wake.notify_all();
    }

    /// Waits for it. If no thread works on its stream, this thread does.
    pub fn wait(&self) {
        if self.is_reached() {
            return;
        }
        if let Some(stream) = self.0.stream.upgrade() {
            stream.work(|| self.is_reached());
        }
        self.sleep(None);
    }

    /// Waits for it, for a time, without working on its stream; whether it was reached.
    pub fn wait_for(&self, time: Duration) -> bool {
        self.sleep(Some(Instant::now() + time));
        self.is_reached()
    }

    fn sleep(&self, until: Option<Instant>) {
        let begin = Instant::now();
        for _ in 0..LOOKS {
            if self.is_reached() {
                return;
            }
            if begin.elapsed() > LOOKING {
                break;
            }
            std::thread::yield_now();
        }
        let mut guard = self.0.sleepers.lock();
        while !self.is_reached() {
            match until {
                None => self.0.wake.wait(&mut guard),
                Some(until) => {
                    let Some(left) = until.checked_duration_since(Instant::now()) else { return };
                    self.0.wake.wait_for(&mut guard, left);
                }
            }
        }
    }
}

impl std::fmt::Debug for Mark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Mark").field(&self.time()).finish()
    }
}

/// A point in a stream, where it was recorded last. Clones are the same event.
#[derive(Clone, Debug, Default)]
pub struct Event(Arc<Mutex<Option<Mark>>>);

impl Event {
    /// An event that no stream has recorded yet: it counts as happened.
    pub fn new() -> Event {
        Event::default()
    }

    fn mark(&self) -> Option<Mark> {
        self.0.lock().clone()
    }

    /// Whether everything before it is done.
    pub fn query(&self) -> bool {
        self.mark().is_none_or(|mark| mark.is_reached())
    }

    /// Waits for it.
    pub fn synchronize(&self) {
        if let Some(mark) = self.mark() {
            mark.wait();
        }
    }

    /// Milliseconds from `start` to this event; `None` until both have happened.
    pub fn elapsed_ms(&self, start: &Event) -> Option<f64> {
        Some(milliseconds(start.mark()?.time()?, self.mark()?.time()?))
    }
}

/// Milliseconds from one time to another, which may be earlier.
pub fn milliseconds(from: Instant, to: Instant) -> f64 {
    match to.checked_duration_since(from) {
        Some(later) => later.as_secs_f64() * 1e3,
        None => -(from - to).as_secs_f64() * 1e3,
    }
}

#[cfg(test)]
mod tests;
