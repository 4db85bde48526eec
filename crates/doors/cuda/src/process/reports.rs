//! Support for harnesses that run many tests in one process, such as margay's pytest plugin: a file to which reports are appended
//! (`MARGAY_REPORTS`), and errors that are returned once (`MARGAY_FORGIVE=1`), so that a kernel's fault fails only one test.

use parking_lot::Mutex;
use std::{
    env,
    fs::OpenOptions,
    io::Write,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

/// ASCII separators: a report is its kind, `\x1f`, its text, `\x1e`.
const BEHIND_KIND: char = '\u{1f}';
const END: char = '\u{1e}';

/// Appends a report to the file, if one is set. Failures are ignored, since the report is on standard error as well.
pub fn note(kind: &str, message: &str) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let Some(path) = env::var_os("MARGAY_REPORTS").filter(|path| !path.is_empty()) else { return };
    let _guard = ONE_AT_A_TIME.lock();
    let file = OpenOptions::new().append(true).create(true).open(path);
    let report = format!("{kind}{BEHIND_KIND}{}{END}", message.trim_end());
    let _ = file.and_then(|mut file| file.write_all(report.as_bytes()));
}

/// Whether a fault ends the kernel and leaves its context usable (`MARGAY_FAULT_ENDS=kernel`), so that the program continues as if nothing
/// had happened. On a device the context is lost.
pub fn ends_kernel_only() -> bool {
    env::var("MARGAY_FAULT_ENDS").is_ok_and(|value| value == "kernel")
}

/// Whether a context's error is cleared once a call has returned it, while on a GPU it would be sticky.
pub fn clears_errors() -> bool {
    env::var("MARGAY_FORGIVE").is_ok_and(|value| !value.is_empty() && value != "0")
}

/// A program asked for it ([`margayFreeAfterFaults`]).
static FREES_AFTER_FAULTS: AtomicBool = AtomicBool::new(false);

crate::api::function! {
    /// Has `cuMemFree` succeed from now on in contexts whose kernel failed, for allocators that call it in destructors. All other
    /// functions return the context's error.
    margayFreeAfterFaults() {
        FREES_AFTER_FAULTS.store(true, Relaxed);
        Ok(())
    }
}

/// Whether a context's error is not for calls of `cuMemFree`: if the program asked for it, or if the error is returned only once.
pub fn frees_after_faults() -> bool {
    FREES_AFTER_FAULTS.load(Relaxed) || clears_errors()
}
