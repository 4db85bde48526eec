//! Contexts: limits of launches, the destination of `vprintf`, and the creation of modules, buffers and streams.

use crate::{Buffer, Device, Error, LoadOptions, Module, SourceText, Stream};
use margay_check::Checked;
use margay_exec::{LaunchShape, mem::Reach};
use margay_ir::Source;
use parking_lot::Mutex;
use std::{
    io::Write,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

/// Limits of launches, as `cuCtxSetLimit` and the device's attributes name them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Stack size of a thread in bytes, beyond the frame of the kernel itself.
    pub stack: u32,
    /// Maximum number of threads of a CTA.
    pub threads_per_block: u32,
    /// Maximum of a CTA's shared memory in bytes, static and dynamic together.
    pub shared_per_block: u32,
    /// Warp instructions after which a launch counts as hanging; `None` for no limit.
    pub instructions: Option<u64>,
    /// How long all threads of a launch may only poll memory before that counts as a deadlock.
    pub stall: Duration,
}

impl Default for Limits {
    /// The limits of a current data-center GPU, with a larger stack (64 KiB), since pages that are never touched cost
    /// nothing.
    fn default() -> Limits {
        Limits {
            stack: 64 << 10,
            threads_per_block: LaunchShape::MAX_THREADS,
            shared_per_block: 227 << 10,
            instructions: None,
            stall: Duration::from_secs(1),
        }
    }
}

/// The destination of the device's `vprintf`.
pub type Output = Box<dyn Write + Send>;

/// A context on a device.
pub struct Context {
    device: Arc<Device>,
    limits: Mutex<Limits>,
    output: Mutex<Output>,
    /// A module with addresses of 32 bits was loaded.
    narrow: AtomicBool,
}

impl Context {
    pub(crate) fn new(device: Arc<Device>) -> Arc<Context> {
        let output: Output = Box::new(std::io::stdout());
        Arc::new(Context {
            device,
            limits: Mutex::default(),
            output: Mutex::new(output),
            narrow: AtomicBool::new(false),
        })
    }

    /// The device of the context.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// The limits of future launches.
    pub fn limits(&self) -> Limits {
        *self.limits.lock()
    }

    /// Sets the limits of future launches.
    pub fn set_limits(&self, limits: Limits) {
        *self.limits.lock() = limits;
    }

    /// Redirects the output of kernels, which goes to standard output by default.
    pub fn set_output(&self, output: Output) {
        *self.output.lock() = output;
    }

    pub(crate) fn print(&self, bytes: &[u8]) {
        let mut output = self.output.lock();
        // A closed pipe does not stop a kernel.
        let _ = output.write_all(bytes).and_then(|()| output.flush());
    }

    /// Checks and links files into a module.
    pub fn load(self: &Arc<Context>, files: &[SourceText<'_>], options: &LoadOptions) -> Result<Module, Error> {
        Module::load(self.clone(), files, options)
    }

    /// Links checked files into a module.
    pub fn load_checked(self: &Arc<Context>, files: Vec<(Arc<Source>, Checked)>, options: &LoadOptions) -> Module {
        Module::load_checked(self.clone(), files, options)
    }

    /// Places buffers below 4 GiB from now on.
    pub(crate) fn narrow(&self) {
        self.narrow.store(true, Relaxed);
    }

    /// Where buffers may be placed.
    pub(crate) fn reach(&self) -> Reach {
        if self.narrow.load(Relaxed) { Reach::Low } else { Reach::Full }
    }

    /// Allocates `bytes` zeroed bytes, below 4 GiB once a module with `.address_size 32` has been loaded.
    pub fn buffer(self: &Arc<Context>, bytes: u64) -> Result<Buffer, Error> {
        Buffer::new(self.clone(), "buffer", bytes)
    }

    /// Allocates `bytes` zeroed bytes under a name for messages ("12 bytes behind `argument 3`").
    pub fn named_buffer(self: &Arc<Context>, name: &str, bytes: u64) -> Result<Buffer, Error> {
        Buffer::new(self.clone(), name, bytes)
    }

    /// Creates a stream, which runs work asynchronously.
    pub fn stream(self: &Arc<Context>) -> Stream {
        Stream::new(self.device.executor())
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("device", &self.device).field("limits", &self.limits()).finish_non_exhaustive()
    }
}
