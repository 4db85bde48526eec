//! For a harness that runs many tests in one process, as margay's pytest plugin does: a file that hears of what went wrong
//! (`MARGAY_REPORTS`), and errors that only one call reports (`MARGAY_FORGIVE=1`), so that a kernel's fault is the fault of one test.

use std::{
    env,
    fs::OpenOptions,
    io::Write,
    sync::{Mutex, PoisonError},
};

/// ASCII's separators: a report is its kind, the first, its text and the second.
const BEHIND_KIND: char = '\u{1f}';
const END: char = '\u{1e}';

/// Appends a report to the file, if there is to be one. Where that fails, people have been told on standard error all the same.
pub fn note(kind: &str, message: &str) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let Some(path) = env::var_os("MARGAY_REPORTS").filter(|path| !path.is_empty()) else { return };
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let file = OpenOptions::new().append(true).create(true).open(path);
    let report = format!("{kind}{BEHIND_KIND}{}{END}", message.trim_end());
    let _ = file.and_then(|mut file| file.write_all(report.as_bytes()));
}

/// Whether a context forgets the error of a kernel when a call has reported it. On a GPU it would be of no use any more.
pub fn forgives() -> bool {
    env::var("MARGAY_FORGIVE").is_ok_and(|value| !value.is_empty() && value != "0")
}
