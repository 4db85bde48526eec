//! Streams (CUDA Driver API, "Stream Management", "Stream synchronization behavior"). Work is queued ([`margay_runtime::Stream`]) and
//! executed concurrently with the caller. The default stream of a context waits for all streams that take turns with it, and they for
//! it. A stream that is being captured gathers its work in a graph instead.

pub mod functions;

use crate::{
    api::is_thread_stream,
    checks::order,
    code::{Code, Outcome},
    context::Context,
    driver::{current, driver},
    green::{self, Green},
    handle::Handle,
    work::{
        Work,
        graph::{Capture, capture},
        worker::{at_work, not_at_work},
    },
};
use bytemuck::AnyBitPattern;
use margay_runtime::{Mark, Stream as Queue};
use parking_lot::Mutex;
use std::{
    cell::RefCell,
    collections::HashMap,
    ops::RangeInclusive,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
        mpsc::{self, SendError},
    },
    time::Duration,
};

/// How long a call waits for its launch, so that it can report the launch's findings. The limit is for kernels that wait for the program's next
/// step.
const WATCHED: Duration = Duration::from_millis(500);

/// A stream.
pub struct Stream {
    /// Handle of its context.
    pub context: Handle<Context>,
    /// A unique number.
    pub id: u64,
    /// The green context that it belongs to, if any.
    pub green: Option<Handle<Green>>,
    flags: u32,
    priority: i32,
    /// What it has to do.
    pub queue: Queue,
    /// The capture state, if the stream is being captured.
    pub capture: Mutex<Option<Capture>>,
    /// Attributes that were set, by number: hints that change nothing.
    attributes: Mutex<HashMap<u32, Attribute>>,
}

/// `CUstreamAttrValue`
type Attribute = [u64; 8];

impl Stream {
    /// A stream of a context.
    pub fn new(context: Handle<Context>, queue: Queue, flags: u32, priority: i32) -> Stream {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Stream {
            context,
            id: NEXT.fetch_add(1, Relaxed),
            green: None,
            flags,
            priority,
            queue,
            capture: Mutex::default(),
            attributes: Mutex::default(),
        }
    }

    /// The stream as one of a green context.
    pub fn of_green(self, green: Option<Handle<Green>>) -> Stream {
        Stream { green, ..self }
    }

    /// The value of an attribute, initially the one that CUDA documents (`CUlaunchAttributeID`).
    fn attribute(&self, number: u32) -> Attribute {
        const SYNC_POLICY: u32 = 3;
        const PRIORITY: u32 = 8;
        const MEMORY_DOMAINS: u32 = 9;
        let initial = match number {
            SYNC_POLICY => 1, // automatic
            PRIORITY => u64::from(self.priority as u32),
            MEMORY_DOMAINS => u64::from_le_bytes([0, 1, 0, 0, 0, 0, 0, 0]), // the default one and the remote one
            _ => 0,
        };
        self.attributes.lock().get(&number).copied().unwrap_or([initial, 0, 0, 0, 0, 0, 0, 0])
    }
}

/// A stream as C names it: a handle, or null and two special values that denote streams of the current context.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, AnyBitPattern)]
pub struct StreamHandle(Handle<Stream>);

/// A resolved stream.
pub enum StreamRef {
    /// The default stream of a context: null or `CU_STREAM_LEGACY`.
    Default(Arc<Context>),
    /// A created stream, or the thread's own.
    Made(Arc<Context>, Arc<Stream>),
}

/// `CU_STREAM_PER_THREAD`
const THREAD: usize = 2;

thread_local! {
    /// The streams of this thread, one per context in which it used one.
    static OWN: RefCell<Vec<Arc<Stream>>> = const { RefCell::new(Vec::new()) };
}

/// This thread's stream in a context, created on first use.
fn thread_stream(context: &Context) -> Result<Arc<Stream>, Code> {
    let driver = driver()?;
    let of_thread = OWN.try_with(|own| {
        let mut own = own.borrow_mut();
        if let Some(found) = own.iter().find(|s| s.context == context.handle) {
            return Ok(found.clone());
        }
        let made = Arc::new(Stream::new(context.handle, context.queue(true), 0, 0));
        driver.streams.add_arc(made.clone()); // among the others, so that captures find it
        own.push(made.clone());
        Ok(made)
    });
    of_thread.unwrap_or(Err(Code::DEINITIALIZED)) // already destroyed while the thread exits
}

impl StreamHandle {
    /// The default stream.
    pub const NULL: StreamHandle = StreamHandle(Handle::NULL);

    /// The number passed to C.
    pub fn number(self) -> usize {
        self.0.number()
    }

    /// Resolves null to the default stream of the function that was called.
    fn resolve(self) -> StreamHandle {
        if self.0.is_null() && is_thread_stream() { StreamHandle(Handle::of(THREAD)) } else { self }
    }

    /// Resolves the stream and its context.
    pub fn get(self) -> Result<StreamRef, Code> {
        match self.resolve().0.number() {
            0 | 1 => {
                let context = current()?;
                match green::current() {
                    Some((_, green)) => Ok(StreamRef::Made(context, green.default_stream.clone())),
                    None => Ok(StreamRef::Default(context)),
                }
            }
            THREAD if green::current().is_some() => Err(Code::INVALID_HANDLE), // as `cuStreamGetCtx_v2` says
            THREAD => {
                let context = current()?;
                let stream = thread_stream(&context)?;
                Ok(StreamRef::Made(context, stream))
            }
            _ => {
                let stream = driver()?.streams.get(self.0)?;
                let context = driver()?.contexts.get(stream.context).map_err(|_| Code::CONTEXT_IS_DESTROYED)?;
                context.check()?;
                match stream.green.is_some_and(|green| driver().is_ok_and(|d| d.greens.get(green).is_err())) {
                    true => Err(Code::STREAM_DETACHED),
                    false => Ok(StreamRef::Made(context, stream)),
                }
            }
        }
    }

    /// Runs work, or adds it to the graph if the stream is captured.
    pub fn submit(self, work: Work) -> Outcome {
        self.submit_as(work, false)
    }

    /// The same, for a call that returns when the work is done.
    pub fn submit_and_wait(self, work: Work) -> Outcome {
        self.submit_as(work, true)
    }

    fn submit_as(self, work: Work, waits: bool) -> Outcome {
        let stream = self.get()?;
        let mut capture = stream.stream().capture.lock();
        if let Some(capture) = &mut *capture {
            return capture.add(work);
        }
        drop(capture);
        stream.check_capture()?;
        work.check(stream.context())?;
        let waited_for = work.is_waited_for(stream.context());
        let seen = waits || waited_for && !work.is_only_staged(stream.context());
        // Programs fill memory on the default stream and use it on others without waiting: on a GPU, the fill has long begun.
        let at_once = || matches!(work, Work::Fill(_)) && stream.is_free();
        let (waits, watched) = (seen || waited_for || at_once(), work.is_watched());
        let piece = order::submitted(&stream, || work.name()).map(|piece| piece.of_launch(work.is_programmatic()));
        let run = move |context: &_| order::perform(piece, || work.run(context));
        if !waits && watched {
            return stream.work_for(WATCHED, run);
        }
        if !waits {
            return order::host::submit(&stream, run);
        }
        let outcome = stream.work(run);
        if seen {
            order::seen_stream(&stream);
        }
        outcome
    }
}

impl StreamRef {
    /// The context of the stream.
    pub fn context(&self) -> &Arc<Context> {
        match self {
            StreamRef::Default(context) | StreamRef::Made(context, _) => context,
        }
    }

    /// The stream.
    pub fn stream(&self) -> &Stream {
        match self {
            StreamRef::Default(context) => &context.default_stream,
            StreamRef::Made(_, stream) => stream,
        }
    }
}

/// Priorities of streams, from the greatest to the least, as on every recent GPU. They are stored and reported, and have no other effect.
pub const PRIORITIES: RangeInclusive<i32> = -5..=0;

/// `CU_STREAM_NON_BLOCKING`
const NON_BLOCKING: u32 = 1;

impl StreamRef {
    /// Whether it waits for the work of the default stream, and that stream for its (CUDA Runtime API, "Stream synchronization behavior").
    pub fn takes_turns(&self) -> bool {
        self.stream().flags & NON_BLOCKING == 0
    }

    fn queue(&self) -> &Queue {
        &self.stream().queue
    }

    /// What work that is queued now must wait for in other streams.
    fn turn(&self) -> Vec<Mark> {
        match self {
            StreamRef::Default(context) => context.others(false),
            StreamRef::Made(..) if !self.takes_turns() => Vec::new(),
            StreamRef::Made(context, _) => match &context.default_stream.queue {
                queue if queue.is_idle() => Vec::new(),
                queue => vec![queue.mark()],
            },
        }
    }

    /// Whether the calling thread could do work in it without waiting for any other.
    fn is_free(&self) -> bool {
        self.queue().is_idle() && self.turn().iter().all(Mark::is_reached) && not_at_work().is_ok()
    }

    /// Queues work. After a fault of the context nothing is begun any more.
    pub fn work_later(&self, work: impl FnOnce(&Arc<Context>) -> Outcome + Send + 'static) {
        let context = self.context().clone();
        self.queue().push(self.turn(), move || {
            at_work(|| {
                if context.failure().is_none()
                    && let Err(code) = work(&context)
                {
                    context.fail_late(code);
                }
            })
        });
    }

    /// Does work in its turn, and waits for it.
    pub fn work(&self, work: impl FnOnce(&Arc<Context>) -> Outcome + Send + 'static) -> Outcome {
        not_at_work()?;
        let (context, (sender, receiver)) = (self.context().clone(), mpsc::channel());
        self.queue().run(self.turn(), move || {
            at_work(|| {
                let outcome = context.failure().map_or_else(|| work(&context), Err);
                let _ = sender.send(outcome); // the caller waits
            })
        });
        self.context().write_printed();
        receiver.recv().unwrap_or(Err(Code::UNKNOWN))
    }

    /// Queues work, and waits for it up to a limit of time; if it fails after that, a later call returns the error.
    pub fn work_for(&self, time: Duration, work: impl FnOnce(&Arc<Context>) -> Outcome + Send + 'static) -> Outcome {
        not_at_work()?;
        let (context, (sender, receiver)) = (self.context().clone(), mpsc::channel());
        self.queue().push(self.turn(), move || {
            at_work(|| {
                let outcome = context.failure().map_or_else(|| work(&context), Err);
                if let Err(SendError(Err(code))) = sender.send(outcome) {
                    context.fail_late(code);
                }
            })
        });
        let outcome = receiver.recv_timeout(time).or_else(|_| receiver.try_recv());
        self.context().write_printed();
        outcome.unwrap_or(Ok(()))
    }

    /// A marker after all its work, and, if it is the default stream, after the work of the streams that it synchronizes with.
    pub fn mark(&self) -> Mark {
        let turn = if let StreamRef::Default(context) = self { context.others(false) } else { Vec::new() };
        self.queue().mark_after(turn)
    }

    /// Executes internal work of the driver after a marker of this stream, even after a fault.
    pub fn after(&self, mark: Mark, work: impl FnOnce() + Send + 'static) {
        self.queue().push(vec![mark], work);
    }

    /// Makes it wait for a mark.
    pub fn wait_for(&self, mark: Mark) {
        if !mark.is_reached() {
            self.queue().push(vec![mark], || ());
        }
    }

    /// Refuses what depends on the work of a stream while that is captured, or, in the default stream, while another stream is that
    /// it waits for.
    pub fn check_capture(&self) -> Outcome {
        match self {
            StreamRef::Default(context) => capture::check_default_stream(context.handle),
            StreamRef::Made(_, stream) => match &*stream.capture.lock() {
                Some(capture) => {
                    capture.sequence.invalidate();
                    Err(Code::STREAM_CAPTURE_UNSUPPORTED)
                }
                None => Ok(()),
            },
        }
    }

    /// Refuses to say whether the default stream is captured while another stream is that it waits for.
    fn check_capture_query(&self) -> Outcome {
        match self {
            StreamRef::Default(context) => capture::check_query(context.handle),
            StreamRef::Made(..) => Ok(()),
        }
    }

    fn settle(&self) -> Outcome {
        self.check_capture()?;
        not_at_work()?;
        self.mark().wait();
        order::seen_stream(self);
        self.context().waited()
    }
}

/// At the end of the process: gives work that is queued some time, and stops what continues for longer.
pub fn end() {
    const GRACE: Duration = Duration::from_secs(1);
    let Ok(driver) = driver() else { return };
    let mut all = Vec::new();
    driver.contexts.each_shared(|context| all.push(context.clone()));
    for context in all {
        if !context.settle_for(GRACE) {
            context.cancel.cancel();
            context.give_up(Code::DEINITIALIZED);
            context.settle_for(GRACE);
        }
        context.write_printed();
    }
}

/// Creates a stream in a context, and in a green context of it.
pub fn create_in(
    context: &Context,
    green: Option<Handle<Green>>,
    flags: u32,
    priority: i32,
) -> Result<Handle<Stream>, Code> {
    if flags > 1 {
        return Err(Code::INVALID_VALUE);
    }
    let priority = priority.clamp(*PRIORITIES.start(), *PRIORITIES.end());
    let queue = context.queue(flags & NON_BLOCKING == 0);
    Ok(driver()?.streams.add(Stream::new(context.handle, queue, flags, priority).of_green(green)))
}
