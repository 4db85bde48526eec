//! `nvcc` under `margay exec`: this command, called by the name of NVIDIA's compiler driver.

use super::Result;
use crate::exit::Failure;
pub use margay::nvcc::NAME;
use margay::nvcc::{REAL, behind, places, translated};
use std::{env, ffi::OsString, os::unix::process::CommandExt, path::PathBuf, process::Command};

/// Replaces this process with the next compiler in PATH, the toolkit's, or the one that `margay exec` found.
pub fn run(words: &[OsString]) -> Result {
    let own = env::current_exe().unwrap_or_default();
    let named = env::var_os(REAL).map(PathBuf::from).filter(|compiler| compiler.is_file());
    let compiler = behind(&places(), &own)
        .or(named)
        .ok_or_else(|| Failure::usage("no `nvcc` in PATH other than margay's own, which calls it"))?;
    let error = Command::new(&compiler).args(translated(words)).exec(); // returns only on failure
    Err(Failure::usage(format!("cannot run {}: {error}", compiler.display())))
}
