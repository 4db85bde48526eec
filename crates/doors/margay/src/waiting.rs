//! The line on the terminal that says that a launch waits for the compiler.

use margay_runtime::Waiting;
use std::{
    io::{IsTerminal, Write},
    sync::Arc,
};

/// Maximum length of a kernel's name in full: names of C++ templates can be very long.
const LONGEST: usize = 40;

/// Writes the line to standard error and removes it again; does nothing if that is not a terminal.
pub fn on_terminal() -> Option<Waiting> {
    if !std::io::stderr().is_terminal() {
        return None;
    }
    Some(Arc::new(|kernel, step, waited| {
        let mut to = std::io::stderr();
        let _ = match step {
            Some(step) => {
                let short: String = kernel.chars().take(LONGEST).collect();
                let dots = if short.len() < kernel.len() { "..." } else { "" };
                let seconds = waited.as_secs_f64();
                write!(to, "\r\x1b[Kmargay compiles `{short}{dots}`: {step}, {seconds:.1} s").and_then(|()| to.flush())
            }
            None => write!(to, "\r\x1b[K").and_then(|()| to.flush()),
        };
    }))
}
