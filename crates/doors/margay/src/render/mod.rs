//! Diagnostics and faults as text, in the style of rustc.

mod fault;
pub(crate) mod human;
pub mod json;
mod source_files;

pub use fault::{demangled, short_name, title as fault_title};
pub use source_files::Files;

use margay_ir::Source;
use margay_runtime::StopReport;
use margay_syntax::Diagnostic;

/// A diagnostic with its places, in color if asked for; ends with an empty line.
pub fn diagnostic(source: &Source, diagnostic: &Diagnostic, color: bool) -> String {
    human::diagnostic(source, diagnostic, color)
}

/// The first use of an undefined value in a launch that continued: like [`stop`], as a warning.
pub fn undefined(report: &StopReport, color: bool) -> String {
    fault::undefined(report, color)
}

/// Why an execution stopped: the PTX line, who, where, the CUDA line, the call stack.
pub fn stop(report: &StopReport, color: bool) -> String {
    fault::stop(report, color)
}
