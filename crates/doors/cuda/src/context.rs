//! Contexts (CUDA Driver API, "Context Management" and "Primary Context Management").
//!
//! Work is queued in streams and executed concurrently with the caller. Its errors are kept in its context: a fault forever,
//! other errors until the next call that waits. The output of kernels is also written then, to the program's standard output.

pub mod functions;

use crate::{
    code::{Code, Outcome},
    handle::Handle,
    work::{stream::Stream, worker::is_at_work},
};
use margay_runtime::{Cancel, Device, Error, Limits, Mark, Stream as Queue};
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

/// The kind of an allocation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// `cuMemAlloc` and its like.
    Device,
    /// `cuMemAllocManaged`.
    Managed,
    /// `cuMemHostAlloc`, with its flags.
    Host(u32),
    /// `cuMemHostRegister`, with its flags: memory of the program.
    Registered(u32),
}

impl Owner {
    /// The function that such memory comes from; none for the program's own.
    pub fn allocator(self) -> Option<&'static str> {
        match self {
            Owner::Device => Some("`cudaMalloc` (`cuMemAlloc`)"),
            Owner::Managed => Some("`cudaMallocManaged` (`cuMemAllocManaged`)"),
            Owner::Host(_) => Some("`cudaMallocHost` (`cuMemHostAlloc`)"),
            Owner::Registered(_) => None,
        }
    }
}

/// A context's record of an allocation.
#[derive(Clone, Copy, Debug)]
pub struct Allocated {
    /// Its kind.
    pub owner: Owner,
    /// The size that the program requested, in bytes.
    pub len: usize,
}

/// A context.
pub struct Context {
    /// The runtime context in which kernels run.
    pub runtime: Arc<margay_runtime::Context>,
    /// Its own handle.
    pub handle: Handle<Context>,
    /// Number of its device.
    pub device: i32,
    /// A unique number.
    pub id: u64,
    /// Creation flags.
    pub flags: AtomicU32,
    /// The stream denoted by null.
    pub default_stream: Stream,
    /// The allocations of this context, by address.
    pub allocations: Mutex<BTreeMap<u64, Allocated>>,
    cache: AtomicU32,
    /// Limits set by the program that have no effect here.
    limits: Mutex<BTreeMap<u32, usize>>,
    /// Contexts of other devices whose memory it may access. All memory is the host's, so this matters for error codes
    /// only.
    peers: Mutex<BTreeSet<u64>>,
    failed: Mutex<Option<Code>>,
    /// An error of work that has not been reported yet.
    late: Mutex<Option<Code>>,
    /// The queues of its other streams.
    queues: Mutex<Vec<Queued>>,
    /// Stops its launches.
    pub cancel: Cancel,
    printed: Arc<Mutex<Vec<u8>>>,
}

/// The queue of a stream.
struct Queued {
    queue: Queue,
    /// It takes turns with the default stream.
    takes_turns: bool,
    /// The stream was destroyed.
    over: bool,
}

/// Output of kernels that has not been written yet.
struct Printer(Arc<Mutex<Vec<u8>>>);

/// How long a kernel may poll unchanged memory, and how long a stream waits before this is reported.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Bytes that are kept at most (`CU_LIMIT_PRINTF_FIFO_SIZE`).
const MAX_PRINTED: usize = 1 << 20;

impl Write for Printer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut printed = self.0.lock();
        printed.extend(bytes);
        if printed.len() > MAX_PRINTED {
            crate::raw::print(&std::mem::take(&mut *printed));
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A number that no other context has.
pub fn unique() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Relaxed)
}

impl Context {
    /// Creates a context on a device.
    pub fn new(device: &Arc<Device>, number: i32, handle: Handle<Context>, flags: u32) -> Context {
        let what = crate::checks::watch::wanted();
        if what.is_some_and(|what| what.init) {
            device.memory().track_writes();
        }
        if what.is_some_and(|what| what.leaks) {
            device.memory().origins().start();
        }
        let (runtime, printed) = (device.context(), Arc::default());
        runtime.set_output(Box::new(Printer(Arc::clone(&printed))));
        // What a kernel polls for may come from the program, which runs concurrently.
        runtime.set_limits(Limits { stall: PATIENCE, ..runtime.limits() });
        let default_stream = Stream::new(handle, runtime.stream(), 0, 0);
        Context {
            runtime,
            handle,
            device: number,
            id: unique(),
            flags: AtomicU32::new(flags),
            default_stream,
            allocations: Mutex::default(),
            cache: AtomicU32::new(0),
            limits: Mutex::default(),
            peers: Mutex::default(),
            failed: Mutex::default(),
            late: Mutex::default(),
            queues: Mutex::default(),
            cancel: Cancel::default(),
            printed,
        }
    }

    /// A limit by its number.
    pub fn limit(&self, number: u32) -> Result<usize, Code> {
        if let Some(set) = self.limits.lock().get(&number) {
            return Ok(*set);
        }
        Ok(match number {
            limit::STACK => DEFAULT_STACK,
            limit::PRINTF => 1 << 20,
            limit::HEAP => self.device_memory().heap_limit() as usize,
            limit::SYNC_DEPTH => 2,
            limit::PENDING => 2048,
            limit::L2_FETCH => 128,
            limit::L2_PERSISTING => 0,
            _ => return Err(Code::UNSUPPORTED_LIMIT),
        })
    }

    /// The preferred split of the first cache.
    pub fn cache_config(&self) -> u32 {
        self.cache.load(Relaxed)
    }

    /// Returns the sticky error, if a kernel of the context has failed; only once where tests must be independent.
    pub fn check(&self) -> Outcome {
        let mut failed = self.failed.lock();
        let Some(code) = *failed else { return Ok(()) };
        if crate::process::reports::clears_errors() {
            *failed = None;
        }
        Err(code)
    }

    /// The error of a kernel that failed, for work that must not begin any more.
    pub fn failure(&self) -> Option<Code> {
        *self.failed.lock()
    }

    /// A new queue for a stream, which takes turns with the default stream or not.
    pub fn queue(&self, takes_turns: bool) -> Queue {
        let queue = self.runtime.stream();
        let mut queues = self.queues.lock();
        queues.retain(|q| !q.over || !q.queue.is_idle());
        queues.push(Queued { queue: queue.clone(), takes_turns, over: false });
        queue
    }

    /// Forgets the queue of a stream, once its work is done.
    pub fn forget(&self, queue: &Queue) {
        let mut queues = self.queues.lock();
        queues.iter_mut().filter(|q| q.queue.is_same(queue)).for_each(|q| q.over = true);
        queues.retain(|q| !q.over || !q.queue.is_idle());
    }

    /// What work in the default stream waits for: all streams that take turns with it. With `all` set, all others too.
    pub fn others(&self, all: bool) -> Vec<Mark> {
        let queues = self.queues.lock();
        let busy = queues.iter().filter(|q| (q.takes_turns || all) && !q.queue.is_idle());
        busy.map(|q| q.queue.mark()).collect()
    }

    /// Waits for all work of all streams.
    pub fn settle(&self) {
        if !is_at_work() {
            self.finish();
            crate::checks::order::seen_context(self);
        }
    }

    /// Waits for all work, without the program being able to rely on it.
    pub fn finish(&self) {
        if !is_at_work() {
            self.others(true).iter().for_each(Mark::wait);
            self.default_stream.queue.settle();
        }
    }

    /// Waits for all work of all streams for a time at most, without doing any of it.
    pub fn settle_for(&self, time: Duration) -> bool {
        let end = Instant::now() + time;
        let mut marks = self.others(true);
        marks.push(self.default_stream.queue.mark());
        marks.iter().all(|mark| mark.wait_for(end.saturating_duration_since(Instant::now())))
    }

    /// What a call returns that has waited: the error of work that failed meanwhile. What was printed is written first.
    pub fn waited(&self) -> Outcome {
        self.write_printed();
        self.check()?;
        self.late.lock().take().map_or(Ok(()), Err)
    }

    /// Writes what kernels have printed.
    pub fn write_printed(&self) {
        let mut printed = self.printed.lock();
        if !printed.is_empty() {
            crate::raw::print(&std::mem::take(&mut *printed));
        }
    }

    /// Remembers the error of work of which the call returned long ago.
    pub fn fail_late(&self, code: Code) {
        self.late.lock().get_or_insert(code);
    }

    /// Records and reports a failure of device work; returns its code.
    pub fn fail(&self, error: &Error) -> Code {
        let code = Code::from(error);
        if matches!(error, Error::Canceled) {
            return code; // the process ends
        }
        self.write_printed();
        let words = crate::module::image::words(error);
        // Other errors are the call's own, which the program may expect.
        let stopped = if let Error::Stopped(report) = error { Some(report) } else { None };
        crate::api::report_as(if stopped.is_some() { "fault" } else { "error" }, &words);
        if let Some(report) = stopped {
            crate::process::account::failed(&words);
            crate::checks::watch::stopped(report);
        }
        if code.is_sticky() && !crate::process::reports::ends_kernel_only() {
            self.give_up(code);
        }
        code
    }

    /// Makes an error sticky: every later call returns it.
    pub fn give_up(&self, code: Code) {
        self.failed.lock().get_or_insert(code);
    }

    /// The memory of the device.
    pub fn device_memory(&self) -> &margay_exec::Memory {
        self.runtime.device().memory()
    }

    /// Frees all allocations of the context.
    pub fn free_memory(&self) {
        crate::checks::watch::leaks(self);
        crate::checks::usage::left(self);
        // Without the lock, since freeing may wait for launches.
        let all = std::mem::take(&mut *self.allocations.lock());
        for address in all.into_keys() {
            let _ = self.device_memory().free(address); // it may already be freed
        }
    }
}

/// The stack limit of a thread that programs read before they set one, as on every GPU. Nobody relies on an overflow at it, and functions
/// of PTX need more than those of machine code, so the engines' own default is in force until another limit is set.
const DEFAULT_STACK: usize = 1 << 10;

/// `CUlimit`
mod limit {
    pub const STACK: u32 = 0;
    pub const PRINTF: u32 = 1;
    pub const HEAP: u32 = 2;
    pub const SYNC_DEPTH: u32 = 3;
    pub const PENDING: u32 = 4;
    pub const L2_FETCH: u32 = 5;
    pub const L2_PERSISTING: u32 = 6;
}
