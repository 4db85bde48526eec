//! How a command ends: exit codes, and the report of a bug.

use std::{io::Write, process::ExitCode};

/// How a command ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Outcome {
    /// No findings.
    Clean,
    /// The module or the run has findings.
    Findings,
    /// The command line is wrong, or a file could not be read or written.
    Usage,
    /// The module uses a feature that margay does not support.
    Unsupported,
    /// margay has a bug.
    Bug,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> ExitCode {
        ExitCode::from(match outcome {
            Outcome::Clean => 0,
            Outcome::Findings => 1,
            Outcome::Usage => 2,
            Outcome::Unsupported => 3,
            Outcome::Bug => 101,
        })
    }
}

/// The failure of a command: what to print, and the exit code.
#[derive(Debug)]
pub struct Failure {
    /// Printed to standard error; complete, with its prefix. Empty if everything has been printed.
    pub message: String,
    /// How to end.
    pub outcome: Outcome,
}

impl Failure {
    /// The command line is wrong, or a file could not be read or written.
    pub fn usage(message: impl std::fmt::Display) -> Failure {
        Failure { message: format!("error: {message}"), outcome: Outcome::Usage }
    }

    /// margay lacks something.
    pub fn unsupported(message: impl std::fmt::Display) -> Failure {
        Failure { message: format!("unsupported: {message}"), outcome: Outcome::Unsupported }
    }
}

/// Writes a line to standard error. A closed pipe (`margay ... 2>&1 | head`) is not a failure.
pub fn complain(line: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Makes panics end as a short report.
pub fn report_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let what = margay_exec::panic_message(panic.payload());
        let place = panic
            .location()
            .map_or_else(|| "an unknown location".to_string(), |l| format!("{}:{}", l.file(), l.line()));
        complain(format_args!("margay has a bug: {what}"));
        complain(format_args!("  at {place}, margay {}", env!("CARGO_PKG_VERSION")));
        complain("  please report it with the command line and the PTX file");
    }));
}
