//! Errors of the runtime, by cause.

use margay_exec::{Image, Stop};
use margay_ir::{LowerError, Source, abi::NoPlan};
use margay_syntax::Diagnostic;
use std::{fmt, sync::Arc};

/// A file that failed the check.
#[derive(Clone, Debug)]
pub struct Rejected {
    /// The file, with its text and lines.
    pub source: Arc<Source>,
    /// Its diagnostics.
    pub diagnostics: Vec<Diagnostic>,
}

/// An execution that stopped early, with its program.
#[derive(Clone, Debug)]
pub struct StopReport {
    /// Why it stopped.
    pub stop: Stop,
    /// The program, for function names and sources.
    pub image: Arc<Image>,
}

/// Why a request failed.
#[derive(Clone, Debug)]
pub enum Error {
    /// Modules that failed the check.
    Rejected(Vec<Rejected>),
    /// Modules that do not link, or need what margay lacks.
    Lower(Box<LowerError>),
    /// The ABI has no plan for a signature of the module.
    NoPlan(NoPlan),
    /// The engine, ABI, kernel or variable does not exist.
    NoSuch {
        /// `engine`, `ABI`, `kernel`, `variable`.
        what: &'static str,
        /// The name requested.
        name: String,
        /// The existing names.
        known: Vec<String>,
    },
    /// A launch whose parameters are invalid, and why.
    BadLaunch(String),
    /// A range that lies in no allocation.
    BadAddress {
        /// First byte.
        address: u64,
        /// Size in bytes.
        size: u64,
    },
    /// An array, texture or surface that cannot be created or bound, and why.
    BadArray(String),
    /// The host is out of memory.
    OutOfMemory {
        /// Bytes requested.
        size: u64,
    },
    /// The execution stopped early.
    Stopped(Box<StopReport>),
    /// The launch was canceled.
    Canceled,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Rejected(files) => {
                let names: Vec<&str> = files.iter().map(|r| r.source.name.as_str()).collect();
                write!(f, "{} did not pass the check", names.join(", "))
            }
            Error::Lower(e) if e.unsupported => write!(f, "margay does not support {}", e.message),
            Error::Lower(e) => write!(f, "{}", e.message),
            Error::NoPlan(e) => match &e.value {
                Some(value) => write!(f, "the ABI cannot pass {value}: {}", e.reason),
                None => write!(f, "the ABI does not support a signature: {}", e.reason),
            },
            Error::NoSuch { what, name, known } if known.is_empty() => {
                write!(f, "no {what} `{name}`; the module has none")
            }
            Error::NoSuch { what, name, known } => write!(f, "no {what} `{name}`; there is {}", abbreviate(known)),
            Error::BadLaunch(why) | Error::BadArray(why) => write!(f, "{why}"),
            Error::BadAddress { address, size } => {
                write!(f, "{size} bytes at {address:#x} are outside every allocation")
            }
            Error::OutOfMemory { size } => write!(f, "the host cannot provide {size} bytes of memory"),
            Error::Stopped(report) => match &report.stop {
                Stop::Fault(fault) => write!(f, "the kernel stopped with a fault: {:?}", fault.kind),
                Stop::Unsupported(what) => write!(f, "margay does not support {}", what.what),
                Stop::Exhausted(what) => write!(f, "out of resources: {}", what.0),
                Stop::Bug(what) => write!(f, "margay has a bug: {}", what.0),
            },
            Error::Canceled => write!(f, "the launch was canceled"),
        }
    }
}

impl std::error::Error for Error {}

impl From<LowerError> for Error {
    fn from(e: LowerError) -> Error {
        Error::Lower(Box::new(e))
    }
}

impl From<NoPlan> for Error {
    fn from(e: NoPlan) -> Error {
        Error::NoPlan(e)
    }
}

/// "`a`, `b` and 7 more"
fn abbreviate(names: &[String]) -> String {
    const SHOWN: usize = 8;
    let shown: Vec<String> = names.iter().take(SHOWN).map(|n| format!("`{n}`")).collect();
    match names.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
