//! Devices: engines, threads, memory. Everything else holds a reference to one.

use crate::{
    Context, Error,
    engine::Engine,
    stream::Executor,
    tiers::{Waiting, queue::Queue},
};
use margay_exec::Memory;
use std::sync::Arc;

/// Stack of a thread that runs CTAs, in bytes: frames of compiled kernels can be large, and pages never touched cost
/// nothing.
const STACK: usize = 16 << 20;

/// Limit of threads that run CTAs. More threads than processors only help CTAs that wait, and since each thread looks for work among all
/// others, many thousands of them take minutes to start.
const MAX_THREADS: usize = 1024;

/// Parameters of a [`Device`].
#[derive(Default)]
pub struct DeviceOptions {
    /// Number of threads that run CTAs, at most 1024; `None` for one per processor.
    pub threads: Option<usize>,
    /// The engines to choose from; the first is the default.
    pub engines: Vec<Engine>,
    /// Called when a launch waits for the compiler for more than a second.
    pub waiting: Option<Waiting>,
}

/// A device that runs kernels on the host's processors.
pub struct Device {
    engines: Vec<Engine>,
    waiting: Option<Waiting>,
    memory: Memory,
    queue: Arc<Queue>,
    executor: Arc<Executor>,
    pool: rayon::ThreadPool,
}

impl Device {
    /// A device with the reference engine and one thread per processor.
    pub fn new() -> Result<Arc<Device>, Error> {
        Device::with(DeviceOptions {
            engines: vec![Engine::interpreted(Arc::new(margay_exec::Reference))],
            ..DeviceOptions::default()
        })
    }

    /// Creates a device from options.
    pub fn with(options: DeviceOptions) -> Result<Arc<Device>, Error> {
        let threads = options.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get()));
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads.clamp(1, MAX_THREADS))
            .thread_name(|i| format!("margay-{i}"))
            .stack_size(STACK)
            .build()
            .map_err(|_| Error::OutOfMemory { size: 0 })?;
        let DeviceOptions { engines, waiting, .. } = options;
        Ok(Arc::new(Device {
            engines,
            waiting,
            memory: Memory::default(),
            queue: Arc::default(),
            executor: Arc::default(),
            pool,
        }))
    }

    /// Creates a context with default limits.
    pub fn context(self: &Arc<Device>) -> Arc<Context> {
        Context::new(self.clone())
    }

    /// The engine of this name; the default one for `None`.
    pub fn engine(&self, name: Option<&str>) -> Result<&Engine, Error> {
        let found = match name {
            Some(name) => self.engines.iter().find(|e| e.name() == name),
            None => self.engines.first(),
        };
        found.ok_or_else(|| Error::NoSuch {
            what: "engine",
            name: name.unwrap_or_default().into(),
            known: self.engines.iter().map(|e| e.name().into()).collect(),
        })
    }

    /// Names of the engines, the default one first.
    pub fn engine_names(&self) -> Vec<&'static str> {
        self.engines.iter().map(|e| e.name()).collect()
    }

    /// Number of threads that run CTAs.
    pub fn threads(&self) -> usize {
        self.pool.current_num_threads()
    }

    /// The device's memory, shared by all contexts.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    pub(crate) fn queue(&self) -> Arc<Queue> {
        self.queue.clone()
    }

    pub(crate) fn executor(&self) -> Arc<Executor> {
        self.executor.clone()
    }

    pub(crate) fn waiting(&self) -> Option<Waiting> {
        self.waiting.clone()
    }

    pub(crate) fn pool(&self) -> &rayon::ThreadPool {
        &self.pool
    }
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Device").field("engines", &self.engine_names()).field("threads", &self.threads()).finish()
    }
}
