//! Stream capture: streams that add their work to a graph. A stream that waits for an event of a captured stream is
//! captured too, so forks and joins of streams become edges of the graph.

use super::{Graph, NodeRef, memory::GraphMemory};
use crate::{
    code::{Code, Outcome},
    context::Context,
    driver::{Driver, driver},
    handle::Handle,
    memory::DevicePtr,
    raw::Host,
    work::{
        Work,
        stream::{Stream, StreamHandle, StreamRef},
    },
};
use parking_lot::Mutex;
use std::{
    cell::Cell,
    collections::HashSet,
    sync::{
        Arc,
        atomic::{
            AtomicBool, AtomicU64, AtomicUsize,
            Ordering::{Acquire, Relaxed, Release},
        },
    },
    thread::{self, ThreadId},
};

/// `CUstreamCaptureMode`
pub mod mode {
    pub const GLOBAL: u32 = 0;
    pub const THREAD_LOCAL: u32 = 1;
    pub const RELAXED: u32 = 2;
}

/// The capture state of a stream.
pub struct Capture {
    /// Handle of the graph under construction.
    pub handle: Handle<Graph>,
    /// The capture, shared by its streams.
    pub sequence: Arc<Sequence>,
    graph: Arc<Graph>,
    /// Dependencies of the next node.
    last: Vec<Handle<NodeRef>>,
}

/// A capture from beginning to end.
pub struct Sequence {
    /// A unique number.
    pub id: u64,
    /// The stream in which it began.
    pub origin: usize,
    /// How it restricts other calls ([`mode`]).
    mode: u32,
    /// The thread that began it.
    thread: ThreadId,
    /// The context of the stream in which it began, if that takes turns with the default stream, which is unusable meanwhile.
    blocked: Option<Handle<Context>>,
    /// The graph is the capture's own, not one of the program.
    owns_graph: bool,
    /// A call that captures do not permit has been made.
    invalid: AtomicBool,
    ended: AtomicBool,
}

/// The captures that have not ended, and their number.
static ONGOING: Mutex<Vec<Arc<Sequence>>> = Mutex::new(Vec::new());
static COUNT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The calls that captures permit to this thread (`cuThreadExchangeStreamCaptureMode`).
    static MODE: Cell<u32> = const { Cell::new(mode::GLOBAL) };
}

/// Sets the mode of this thread; returns the former one.
pub fn exchange_mode(new: u32) -> Result<u32, Code> {
    if new > mode::RELAXED { Err(Code::INVALID_VALUE) } else { Ok(MODE.replace(new)) }
}

/// Invalidates the captures that a predicate selects; the error of the call if there are any.
fn conflict(code: Code, with: impl Fn(&Sequence) -> bool) -> Outcome {
    if COUNT.load(Acquire) == 0 {
        return Ok(());
    }
    let mut outcome = Ok(());
    for sequence in ONGOING.lock().iter().filter(|s| with(s)) {
        sequence.invalidate();
        outcome = Err(code);
    }
    outcome
}

/// Refuses a call that is not observed by captures, such as `cuMemAlloc`, as `cuThreadExchangeStreamCaptureMode` describes it.
pub fn check_unsafe_call() -> Outcome {
    let (own, mode) = (thread::current().id(), MODE.get());
    conflict(Code::STREAM_CAPTURE_UNSUPPORTED, |s| match (mode, s.thread == own) {
        (mode::RELAXED, _) => false,
        (_, true) => s.mode != mode::RELAXED,
        (mode::THREAD_LOCAL, false) => false,
        (_, false) => s.mode == mode::GLOBAL,
    })
}

/// Refuses work of a context's default stream, which would depend on captured work.
pub fn check_default_stream(context: Handle<Context>) -> Outcome {
    conflict(Code::STREAM_CAPTURE_IMPLICIT, |s| s.blocked == Some(context))
}

/// Refuses to query a context's default stream for captures, which changes nothing.
pub fn check_query(context: Handle<Context>) -> Outcome {
    let is_blocked = COUNT.load(Acquire) > 0 && ONGOING.lock().iter().any(|s| s.blocked == Some(context));
    if is_blocked { Err(Code::STREAM_CAPTURE_IMPLICIT) } else { Ok(()) }
}

/// Refuses to wait for all streams of a context.
pub fn check_context(context: Handle<Context>) -> Outcome {
    let mut ids = HashSet::new();
    if COUNT.load(Acquire) > 0 {
        driver()?.streams.each(|stream| {
            ids.extend(stream.capture.lock().as_ref().filter(|_| stream.context == context).map(|c| c.sequence.id));
        });
    }
    conflict(Code::STREAM_CAPTURE_UNSUPPORTED, |s| ids.contains(&s.id))
}

impl Sequence {
    /// Makes the capture fail.
    pub fn invalidate(&self) {
        self.invalid.store(true, Release);
    }

    /// Whether it was invalidated.
    pub fn is_invalid(&self) -> bool {
        self.invalid.load(Acquire)
    }

    /// Whether it has ended.
    fn is_over(&self) -> bool {
        self.ended.load(Acquire)
    }

    fn check(&self) -> Outcome {
        if self.is_invalid() { Err(Code::STREAM_CAPTURE_INVALIDATED) } else { Ok(()) }
    }
}

/// A place in a captured stream, stored in events.
#[derive(Clone)]
pub struct CapturedAt {
    handle: Handle<Graph>,
    sequence: Arc<Sequence>,
    graph: Arc<Graph>,
    last: Vec<Handle<NodeRef>>,
}

static NEXT: AtomicU64 = AtomicU64::new(1);

impl Capture {
    /// Starts a capture in a stream into a new graph, or into an existing one after some of its nodes.
    pub fn begin(
        stream: &StreamRef,
        origin: StreamHandle,
        mode: u32,
        into: Option<(Handle<Graph>, Vec<Handle<NodeRef>>)>,
    ) -> Result<Capture, Code> {
        if mode > mode::RELAXED {
            return Err(Code::INVALID_VALUE);
        }
        let (driver, owns_graph) = (driver()?, into.is_none());
        let (handle, graph, last) = match into {
            Some((handle, last)) => (handle, driver.graphs.get(handle)?, last),
            None => {
                let (handle, graph) = driver.graphs.add_with(|_| Graph::default());
                (handle, graph, Vec::new())
            }
        };
        let sequence = Arc::new(Sequence {
            id: NEXT.fetch_add(1, Relaxed),
            origin: origin.number(),
            mode,
            thread: thread::current().id(),
            blocked: stream.takes_turns().then_some(stream.context().handle),
            owns_graph,
            invalid: AtomicBool::new(false),
            ended: AtomicBool::new(false),
        });
        let mut ongoing = ONGOING.lock();
        ongoing.push(sequence.clone());
        COUNT.store(ongoing.len(), Release);
        Ok(Capture { handle, sequence, graph, last })
    }

    /// Whether the calling thread may end the capture in a stream.
    pub fn check_end(&self, stream: StreamHandle) -> Outcome {
        match &*self.sequence {
            s if s.origin != stream.number() => Err(Code::STREAM_CAPTURE_UNMATCHED),
            s if s.mode != mode::RELAXED && s.thread != thread::current().id() => {
                Err(Code::STREAM_CAPTURE_WRONG_THREAD)
            }
            _ => Ok(()),
        }
    }

    /// Ends the capture, which has left its first stream: returns its graph, or the error that invalidated it.
    pub fn end(self, driver: &Driver) -> Result<Handle<Graph>, Code> {
        let others = self.leave_others(driver);
        let outcome = self.sequence.check().and_then(|()| match self.joins(driver, &others)? {
            true => Ok(self.handle),
            false => Err(Code::STREAM_CAPTURE_UNJOINED),
        });
        if outcome.is_err() && self.sequence.owns_graph {
            let _ = driver.graphs.remove(self.handle); // the program may have destroyed it
            self.graph.forget_nodes(driver);
        }
        outcome
    }

    /// Whether nodes are among those on which its next node would depend.
    fn joins(&self, driver: &Driver, nodes: &[Handle<NodeRef>]) -> Result<bool, Code> {
        let mut reached: HashSet<usize> = HashSet::new();
        let mut open = self.last.clone();
        while let Some(node) = open.pop() {
            if reached.insert(node.number()) {
                open.extend(driver.nodes.get(node)?.state.lock().after.iter().copied());
            }
        }
        Ok(nodes.iter().all(|n| reached.contains(&n.number())))
    }

    /// Adds work as a node.
    pub fn add(&mut self, work: Work) -> Outcome {
        self.sequence.check()?;
        let node = self.graph.add(work, std::mem::take(&mut self.last))?;
        self.last = vec![node];
        Ok(())
    }

    /// Lets device code change the last node, as an attribute's value wants.
    pub fn make_last_updatable(&self, value: Host) -> Outcome {
        let [node] = *self.last else { return Err(Code::INVALID_VALUE) };
        driver()?.nodes.get(node)?.make_updatable(value.value(0)?)?;
        node.write_device_node(value)
    }

    /// Adds an allocation as a node, and returns its address.
    pub fn allocate(&mut self, bytes: usize) -> Result<DevicePtr, Code> {
        let memory = GraphMemory::for_node(&self.graph, &self.last, bytes)?;
        let address = memory.address;
        self.add(Work::Alloc(memory))?;
        Ok(address)
    }

    /// Adds to or replaces (`alone`) the dependencies of the next node.
    pub fn wait_for(&mut self, nodes: Vec<Handle<NodeRef>>, alone: bool) -> Outcome {
        let driver = driver()?;
        for node in &nodes {
            if !Arc::ptr_eq(&driver.nodes.get(*node)?.graph, &self.graph) {
                return Err(Code::INVALID_VALUE);
            }
        }
        if alone {
            self.last.clear();
        }
        for node in nodes {
            if !self.last.contains(&node) {
                self.last.push(node);
            }
        }
        Ok(())
    }

    /// The current place, for events.
    pub fn here(&self) -> CapturedAt {
        let Capture { handle, sequence, graph, last } = self;
        CapturedAt { handle: *handle, sequence: sequence.clone(), graph: graph.clone(), last: last.clone() }
    }

    /// The dependencies of the next node as a C array, valid until the stream gets more work.
    pub fn last_for_c(&self) -> (u64, usize) {
        (self.last.as_ptr().expose_provenance() as u64, self.last.len())
    }

    /// Ends the capture in the streams that have joined it; returns their last nodes.
    fn leave_others(&self, driver: &Driver) -> Vec<Handle<NodeRef>> {
        self.sequence.ended.store(true, Release);
        let mut nodes = Vec::new();
        driver.streams.each(|stream| {
            let mut capture = stream.capture.lock();
            if let Some(other) = capture.take_if(|c| c.sequence.id == self.sequence.id) {
                nodes.extend(other.last);
            }
        });
        let mut ongoing = ONGOING.lock();
        ongoing.retain(|s| s.id != self.sequence.id);
        COUNT.store(ongoing.len(), Release);
        nodes
    }
}

impl CapturedAt {
    /// Refuses to use the event outside of its capture, which it invalidates.
    pub fn refuse(&self) -> Code {
        self.sequence.invalidate();
        Code::CAPTURED_EVENT
    }

    /// Makes a stream wait for this place: it joins the capture, or gets an edge.
    pub fn join(self, stream: &Stream) -> Outcome {
        if self.sequence.is_over() {
            return Err(Code::CAPTURED_EVENT);
        }
        self.sequence.check()?;
        let CapturedAt { handle, sequence, graph, last } = self;
        let mut capture = stream.capture.lock();
        match &mut *capture {
            None => *capture = Some(Capture { handle, sequence, graph, last }),
            Some(other) if other.sequence.id != sequence.id => {
                other.sequence.invalidate();
                sequence.invalidate();
                return Err(Code::STREAM_CAPTURE_MERGE);
            }
            Some(own) => {
                for node in last {
                    if !own.last.contains(&node) {
                        own.last.push(node);
                    }
                }
            }
        }
        Ok(())
    }
}
