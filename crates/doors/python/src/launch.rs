//! A launch: Python's lock is free while it runs, Ctrl-C ends it, and what kernels print appears where Python prints.

use crate::{device::Device, errors, loans::Range};
use margay_exec::Observer;
use margay_runtime::{Cancel, Error, Kernel, LaunchConfig, LaunchShape, LaunchStats};
use margay_sanitizer::{Checks, Sanitizer};
use pyo3::{exceptions::PyRuntimeError, prelude::*, types::PyBytes};
use serde_json::Value;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::mpsc::{RecvTimeoutError, channel},
    time::Duration,
};

/// Interval at which a long launch lets Python handle Ctrl-C, and prints the output of its kernels.
pub const LOOK: Duration = Duration::from_millis(50);

/// The parts of a launch.
pub struct Arguments<'a> {
    pub shape: LaunchShape,
    /// The bytes of each parameter.
    pub params: Vec<Vec<u8>>,
    /// Memory that the kernel may use, and the object that keeps it alive.
    pub ranges: Vec<Range>,
    pub owner: Py<PyAny>,
    pub seed: u64,
    pub threads: Option<usize>,
    /// Python's signals are this thread's to look after.
    pub watch: bool,
    /// Words of [`What`]; the launch runs on one thread of the host then.
    pub checks: Option<&'a str>,
}

/// Seconds of compiling and of running, the findings as JSON, and a use with an undefined result, in words.
pub type Ended = (f64, f64, String, Option<String>);

/// Runs a kernel.
pub fn run(py: Python<'_>, device: &Device, kernel: &Kernel, a: Arguments<'_>) -> PyResult<Ended> {
    let what = a.checks.map(Checks::parse).transpose().map_err(errors::value)?;
    let mut block = kernel.arguments();
    for bytes in &a.params {
        block.push(bytes).map_err(errors::value)?;
    }
    let block = block.finish().map_err(errors::value)?;
    let context = device.context.clone();
    if what.is_some_and(|what| what.init) {
        context.device().memory().track_writes();
    }
    let sanitizer = what.map(|what| {
        let shape = kernel.shape_of(a.shape);
        Sanitizer::new(what, kernel.image().clone(), margay::render::short_name, shape).with_params(&block)
    });
    let cancel = Cancel::default();
    let config = LaunchConfig {
        seed: a.seed,
        threads: a.threads,
        cancel: Some(cancel.clone()),
        observer: sanitizer.as_ref().map(|c| c as &dyn Observer),
        ..LaunchConfig::of(a.shape)
    };
    // Waiting for another launch's loans must not hold Python's lock: that launch may need it to end.
    let lent = py.detach(|| device.loans.take(context.device(), a.ranges, a.owner))?;
    let launch = || kernel.launch(&config, &block);
    let ended = py.detach(|| if a.watch { watched(device, &cancel, launch) } else { caught(launch) });
    py.detach(|| drop(lent));
    flush(py, device)?;
    let stats = ended?.map_err(|e| errors::raise(&e))?;
    let mut files = margay::findings::Files::default();
    let found = sanitizer.map(|c| c.findings()).unwrap_or_default();
    let found: Value = found.iter().map(|f| errors::finding(kernel.image(), f, &mut files)).collect();
    // A sanitizer of synchronization has told of it.
    let undefined = stats.undefined.filter(|_| !what.is_some_and(|what| what.sync));
    let undefined = undefined.map(|report| margay::render::undefined(&report, false).trim_end().to_owned());
    Ok((stats.compile.as_secs_f64(), stats.time.as_secs_f64(), found.to_string(), undefined))
}

const PANICKED: &str = "margay has a bug: a launch panicked; please report it";

/// Runs a launch on this thread.
fn caught(launch: impl FnOnce() -> Result<LaunchStats, Error>) -> PyResult<Result<LaunchStats, Error>> {
    catch_unwind(AssertUnwindSafe(launch)).map_err(|_| PyRuntimeError::new_err(PANICKED))
}

/// Runs a launch on a thread of its own, while this one handles Python's signals. An exception of a signal handler ends the launch and is
/// returned.
fn watched(
    device: &Device,
    cancel: &Cancel,
    launch: impl FnOnce() -> Result<LaunchStats, Error> + Send,
) -> PyResult<Result<LaunchStats, Error>> {
    let (done, ends) = channel();
    std::thread::scope(|scope| {
        let worker = move || {
            let ended = catch_unwind(AssertUnwindSafe(launch));
            let _ = done.send(ended); // who asked is waiting
        };
        if let Err(error) = std::thread::Builder::new().name("margay-launch".into()).spawn_scoped(scope, worker) {
            return Err(PyRuntimeError::new_err(format!("the host cannot create a thread: {error}")));
        }
        let mut interrupted = None;
        loop {
            match ends.recv_timeout(LOOK) {
                Ok(Ok(result)) => return interrupted.map_or(Ok(result), Err),
                Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => {
                    return Err(PyRuntimeError::new_err(PANICKED));
                }
                Err(RecvTimeoutError::Timeout) => {
                    let looked = Python::attach(|py| flush(py, device).and_then(|()| py.check_signals()));
                    if let Err(error) = looked {
                        cancel.cancel();
                        interrupted.get_or_insert(error);
                    }
                }
            }
        }
    })
}

/// Hands what kernels printed to Python's standard output.
fn flush(py: Python<'_>, device: &Device) -> PyResult<()> {
    let bytes = device.printed.take();
    if !bytes.is_empty() {
        py.import("margay._module")?.getattr("_print")?.call1((PyBytes::new(py, &bytes),))?;
    }
    Ok(())
}
