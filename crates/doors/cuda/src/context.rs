//! Contexts (CUDA Driver API, "Context Management" and "Primary Context Management").
//!
//! Work is queued in streams and executed concurrently with the caller. Its errors are kept in its context: a fault forever,
//! anything else until the next call that waits. What kernels print is written then too, in the program's own standard output.

use crate::{
    api::api,
    code::{Code, Outcome},
    driver::{current, current_even_failed, current_handle, driver, pop, push},
    handle::Handle,
    raw::{In, Out},
    work::stream::{PRIORITIES, Stream},
};
use bytemuck::AnyBitPattern;
use margay_runtime::{Cancel, Device, Error, Limits, Mark, Stream as Queue};
use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet},
    io::Write,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
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
    /// Allocations by address.
    memory: Mutex<BTreeMap<u64, Allocated>>,
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

thread_local! {
    /// Whether this thread does work of a stream: it must not wait for streams then.
    static AT_WORK: Cell<bool> = const { Cell::new(false) };
    /// Whether this thread is in a host function or callback of a stream.
    static CALLED_BACK: Cell<bool> = const { Cell::new(false) };
}

/// Does a piece of work of a stream.
pub fn at_work<T>(work: impl FnOnce() -> T) -> T {
    let before = AT_WORK.replace(true);
    let done = work();
    AT_WORK.set(before);
    done
}

/// Calls a function of the program on behalf of a stream.
pub fn calling_back<T>(function: impl FnOnce() -> T) -> T {
    let before = CALLED_BACK.replace(true);
    let done = function();
    CALLED_BACK.set(before);
    done
}

/// Whether this thread runs a function of the program on behalf of a stream.
pub fn is_called_back() -> bool {
    CALLED_BACK.get()
}

/// Whether a function of the API is refused because the thread is in a host function or callback of a stream ("Callbacks must not make any
/// CUDA API calls", `cuStreamAddCallback`): those that act on a context. What only asks is answered.
pub fn is_refused(name: &str) -> bool {
    const ACTING: [&str; 7] = ["cuMem", "cuLaunch", "cuStream", "cuEvent", "cuGraph", "cuModule", "cuCtxSynchronize"];
    const ASKING: [&str; 2] = ["cuEventQuery", "cuEventElapsedTime"];
    let starts = |all: &[&str]| all.iter().any(|start| name.starts_with(start));
    CALLED_BACK.get() && starts(&ACTING) && !starts(&ASKING)
}

/// Whether this thread does work of a stream.
pub fn is_at_work() -> bool {
    AT_WORK.get()
}

/// Refuses to wait on behalf of a stream's own work: it may wait for itself.
pub fn not_at_work() -> Outcome {
    if AT_WORK.get() { Err(Code::NOT_PERMITTED) } else { Ok(()) }
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

/// How long a kernel may poll in vain, and how long a stream waits before this is reported.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Bytes that are kept at the most (`CU_LIMIT_PRINTF_FIFO_SIZE`).
const MOST_PRINTED: usize = 1 << 20;

impl Write for Printer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut printed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        printed.extend(bytes);
        if printed.len() > MOST_PRINTED {
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
            memory: Mutex::default(),
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
        if let Some(set) = self.limits.lock().unwrap_or_else(PoisonError::into_inner).get(&number) {
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
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(code) = *failed else { return Ok(()) };
        if crate::process::reports::forgives() {
            *failed = None;
        }
        Err(code)
    }

    /// The error of a kernel that failed, for work that must not begin any more.
    pub fn failure(&self) -> Option<Code> {
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new queue for a stream, which takes turns with the default stream or not.
    pub fn queue(&self, takes_turns: bool) -> Queue {
        let queue = self.runtime.stream();
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        queues.retain(|q| !q.over || !q.queue.is_idle());
        queues.push(Queued { queue: queue.clone(), takes_turns, over: false });
        queue
    }

    /// Forgets the queue of a stream, once its work is done.
    pub fn forget(&self, queue: &Queue) {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        queues.iter_mut().filter(|q| q.queue.is_same(queue)).for_each(|q| q.over = true);
        queues.retain(|q| !q.over || !q.queue.is_idle());
    }

    /// What work in the default stream waits for: all streams that take turns with it. With `all` set, all others too.
    pub fn others(&self, all: bool) -> Vec<Mark> {
        let queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        let busy = queues.iter().filter(|q| (q.takes_turns || all) && !q.queue.is_idle());
        busy.map(|q| q.queue.mark()).collect()
    }

    /// Waits for all work of all streams.
    pub fn settle(&self) {
        if !AT_WORK.get() {
            self.finish();
            crate::checks::order::seen_context(self);
        }
    }

    /// Waits for all work, of which the program does not hear.
    pub fn finish(&self) {
        if !AT_WORK.get() {
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

    /// What a call tells that has waited: the error of work that failed meanwhile. What was printed is written first.
    pub fn waited(&self) -> Outcome {
        self.write_printed();
        self.check()?;
        self.late.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
    }

    /// Writes what kernels have printed.
    pub fn write_printed(&self) {
        let mut printed = self.printed.lock().unwrap_or_else(PoisonError::into_inner);
        if !printed.is_empty() {
            crate::raw::print(&std::mem::take(&mut *printed));
        }
    }

    /// Remembers the error of work of which the call returned long ago.
    pub fn fail_late(&self, code: Code) {
        self.late.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(code);
    }

    /// Records and reports a failure of device work; returns its code.
    pub fn fail(&self, error: &Error) -> Code {
        let code = Code::from(error);
        if matches!(error, Error::Cancelled) {
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

    /// Remembers an error for ever.
    pub fn give_up(&self, code: Code) {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(code);
    }

    /// The memory of the device.
    pub fn device_memory(&self) -> &margay_exec::Memory {
        self.runtime.device().memory()
    }

    /// The allocations of this context, by address.
    pub fn memory(&self) -> MutexGuard<'_, BTreeMap<u64, Allocated>> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Frees all allocations of the context.
    pub fn free_memory(&self) {
        crate::checks::watch::leaks(self);
        crate::checks::usage::left(self);
        // Without the lock, since freeing may wait for launches.
        let all = std::mem::take(&mut *self.memory());
        for address in all.into_keys() {
            let _ = self.device_memory().free(address); // it may already be freed
        }
    }
}

/// `CUctxCreateParams`: execution affinity and the like, ignored here.
#[repr(C)]
#[derive(Clone, Copy, AnyBitPattern)]
pub struct CreateParams([usize; 3]);

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

fn create(out: Out<Handle<Context>>, flags: u32, device: i32) -> Outcome {
    check_flags(flags)?;
    let driver = driver()?;
    crate::device::check(device)?;
    let (handle, _) = driver.contexts.add_with(|handle| Context::new(&driver.device, device, handle, flags));
    out.set(handle)?;
    push(handle);
    Ok(())
}

fn existing(handle: Handle<Context>) -> Result<Arc<Context>, Code> {
    driver()?.context(handle).map_err(|_| Code::INVALID_CONTEXT)
}

/// The context of a handle, or the current one for null.
fn named(handle: Handle<Context>) -> Result<Arc<Context>, Code> {
    if handle.is_null() { current() } else { existing(handle) }
}

/// Waits for the work of a context; null means the current one.
fn synchronize(handle: Handle<Context>) -> Outcome {
    let context = named(handle)?;
    let number = if handle.is_null() { current_handle() } else { handle }.number();
    if let Some(outcome) = crate::green::synchronize(Handle::of(number), &context) {
        return outcome;
    }
    crate::work::graph::capture::check_context(context.handle)?;
    not_at_work()?;
    context.settle();
    context.waited()
}

api! {
    2000 fn cuCtxCreate(context: Out<Handle<Context>>, flags: u32, device: i32) { create(context, flags, device) }
    3020 fn cuCtxCreate_v2(context: Out<Handle<Context>>, flags: u32, device: i32) { create(context, flags, device) }
    11040 fn cuCtxCreate_v3(context: Out<Handle<Context>>, _affinity: In<u64>, _n: i32, flags: u32, device: i32) {
        create(context, flags, device)
    }
    12050 fn cuCtxCreate_v4(context: Out<Handle<Context>>, _params: In<CreateParams>, flags: u32, device: i32) {
        create(context, flags, device)
    }
    2000 fn cuCtxDestroy(context: Handle<Context>) { destroy(context) }
    4000 fn cuCtxDestroy_v2(context: Handle<Context>) { destroy(context) }
    2000 fn cuCtxPushCurrent(context: Handle<Context>) { push_existing(context) }
    4000 fn cuCtxPushCurrent_v2(context: Handle<Context>) { push_existing(context) }
    2000 fn cuCtxPopCurrent(context: Out<Handle<Context>>) { pop_to(context) }
    4000 fn cuCtxPopCurrent_v2(context: Out<Handle<Context>>) { pop_to(context) }
    4000 fn cuCtxSetCurrent(context: Handle<Context>) {
        if !context.is_null() {
            existing(context)?;
        }
        driver()?;
        pop();
        if !context.is_null() {
            push(context);
        }
        Ok(())
    }
    4000 fn cuCtxGetCurrent(context: Out<Handle<Context>>) {
        driver()?;
        context.set(current_handle())
    }
    2000 fn cuCtxGetDevice(device: Out<i32>) {
        let known = || driver().ok()?.device_of_primary(current_handle()); // which need not be active
        match current_even_failed() {
            Ok(context) => device.set(context.device),
            Err(code) => device.set(known().ok_or(code)?),
        }
    }
    13000 fn cuCtxGetDevice_v2(device: Out<i32>, context: Handle<Context>) {
        device.set(named(context)?.device)
    }
    7000 fn cuCtxGetFlags(flags: Out<u32>) { flags.set(current()?.flags.load(Relaxed)) }
    12010 fn cuCtxSetFlags(flags: u32) {
        check_flags(flags)?;
        current()?.flags.store(flags, Relaxed);
        Ok(())
    }
    12000 fn cuCtxGetId(context: Handle<Context>, id: Out<u64>) { id.set(named(context)?.id) }
    2000 fn cuCtxSynchronize() { synchronize(Handle::NULL) }
    13000 fn cuCtxSynchronize_v2(context: Handle<Context>) { synchronize(context) }
    3010 fn cuCtxSetLimit(limit: u32, value: usize) {
        let context = current()?;
        context.settle();
        match limit {
            limit::STACK => {
                let given = u32::try_from(value).map_err(|_| Code::INVALID_VALUE)?;
                let stack = if value == DEFAULT_STACK { Limits::default().stack } else { given };
                context.runtime.set_limits(Limits { stack, ..context.runtime.limits() });
                context.limits.lock().unwrap_or_else(PoisonError::into_inner).insert(limit, value);
            }
            limit::HEAP => context.device_memory().set_heap_limit(value as u64),
            // The print buffer has a fixed size, and there are no queues whose length could be set.
            limit::PRINTF | limit::SYNC_DEPTH | limit::PENDING | limit::L2_FETCH | limit::L2_PERSISTING => {
                context.limits.lock().unwrap_or_else(PoisonError::into_inner).insert(limit, value);
            }
            _ => return Err(Code::UNSUPPORTED_LIMIT),
        }
        Ok(())
    }
    3010 fn cuCtxGetLimit(value: Out<usize>, limit: u32) {
        value.set(current()?.limit(limit)?)
    }
    3020 fn cuCtxGetCacheConfig(config: Out<u32>) { config.set(current()?.cache_config()) }
    3020 fn cuCtxSetCacheConfig(config: u32) {
        current()?.cache.store(config, Relaxed);
        Ok(())
    }
    4020 fn cuCtxGetSharedMemConfig(config: Out<u32>) {
        current()?;
        config.set(1) // banks of four bytes
    }
    4020 fn cuCtxSetSharedMemConfig(_config: u32) { current().map(drop) }
    3020 fn cuCtxGetApiVersion(context: Handle<Context>, version: Out<u32>) {
        named(context)?;
        version.set(3020)
    }
    5050 fn cuCtxGetStreamPriorityRange(least: Out<i32>, greatest: Out<i32>) {
        current()?;
        least.offer(*PRIORITIES.end());
        greatest.offer(*PRIORITIES.start());
        Ok(())
    }
    11000 fn cuCtxResetPersistingL2Cache() { current().map(drop) }
    4000 fn cuCtxEnablePeerAccess(peer: Handle<Context>, flags: u32) {
        let (own, peer) = (current()?, existing(peer)?);
        let mut peers = own.peers.lock().unwrap_or_else(PoisonError::into_inner);
        match () {
            () if flags != 0 => Err(Code::INVALID_VALUE),
            () if own.device == peer.device => Err(Code::PEER_ACCESS_UNSUPPORTED),
            () if peers.insert(peer.id) => Ok(()),
            () => Err(Code::PEER_ACCESS_ALREADY_ENABLED),
        }
    }
    4000 fn cuCtxDisablePeerAccess(peer: Handle<Context>) {
        let (own, peer) = (current()?, existing(peer)?);
        match own.peers.lock().unwrap_or_else(PoisonError::into_inner).remove(&peer.id) {
            true => Ok(()),
            false => Err(Code::PEER_ACCESS_NOT_ENABLED),
        }
    }
    2000 fn cuCtxAttach(context: Out<Handle<Context>>, _flags: u32) {
        current()?;
        context.set(current_handle())
    }
    2000 fn cuCtxDetach(context: Handle<Context>) { destroy(context) }
    12050 fn cuCtxRecordEvent(context: Handle<Context>, event: Handle<crate::work::event::Event>) {
        crate::work::event::record_all(event, &*named(context)?)
    }
    12050 fn cuCtxWaitEvent(context: Handle<Context>, event: Handle<crate::work::event::Event>) {
        let (context, event) = (named(context)?, driver()?.events.get(event)?);
        let Some(mark) = event.mark().filter(|mark| !mark.is_reached()) else { return Ok(()) };
        let queues = context.queues.lock().unwrap_or_else(PoisonError::into_inner);
        let others = queues.iter().map(|q| &q.queue);
        others.chain([&context.default_stream.queue]).for_each(|queue| queue.push(vec![mark.clone()], || ()));
        Ok(())
    }

    7000 fn cuDevicePrimaryCtxRetain(context: Out<Handle<Context>>, device: i32) {
        crate::device::check(device)?;
        context.set(driver()?.retain_primary(device)?)
    }
    7000 fn cuDevicePrimaryCtxRelease(device: i32) { release(device) }
    11000 fn cuDevicePrimaryCtxRelease_v2(device: i32) { release(device) }
    7000 fn cuDevicePrimaryCtxReset(device: i32) { reset(device) }
    11000 fn cuDevicePrimaryCtxReset_v2(device: i32) { reset(device) }
    7000 fn cuDevicePrimaryCtxSetFlags(device: i32, flags: u32) { set_flags(device, flags) }
    11000 fn cuDevicePrimaryCtxSetFlags_v2(device: i32, flags: u32) { set_flags(device, flags) }
    7000 fn cuDevicePrimaryCtxGetState(device: i32, flags: Out<u32>, active: Out<i32>) {
        crate::device::check(device)?;
        let (now, is_active) = driver()?.primary_state(device)?;
        flags.set(now)?;
        active.set(i32::from(is_active))
    }
}

fn destroy(context: Handle<Context>) -> Outcome {
    driver()?.destroy_context(context)?;
    if current_handle() == context {
        pop();
    }
    Ok(())
}

fn push_existing(context: Handle<Context>) -> Outcome {
    existing(context)?;
    push(context);
    Ok(())
}

fn pop_to(context: Out<Handle<Context>>) -> Outcome {
    driver()?;
    let popped = pop().ok_or(Code::INVALID_CONTEXT)?;
    context.offer(popped);
    Ok(())
}

fn release(device: i32) -> Outcome {
    crate::device::check(device)?;
    driver()?.release_primary(device)
}

fn reset(device: i32) -> Outcome {
    crate::device::check(device)?;
    driver()?.reset_primary(device)
}

/// Refuses unknown flags of a context, and more than one way to wait (`CU_CTX_SCHED_*`).
fn check_flags(flags: u32) -> Outcome {
    const ALL: u32 = 0xff;
    const SCHEDULING: u32 = 7;
    match flags & !ALL == 0 && matches!(flags & SCHEDULING, 0 | 1 | 2 | 4) {
        true => Ok(()),
        false => Err(Code::INVALID_VALUE),
    }
}

fn set_flags(device: i32, flags: u32) -> Outcome {
    crate::device::check(device)?;
    check_flags(flags)?;
    driver()?.set_primary_flags(device, flags)
}
