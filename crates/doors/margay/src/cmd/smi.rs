//! `nvidia-smi` under `margay exec`: this command, called by that name.

use super::Result;
use crate::exit::{Failure, Outcome};
use margay::{profile::Profile, smi};

/// Prints the information that the command line requests.
pub fn run(words: &[String]) -> Result {
    let profile = Profile::from_environment().map_err(|e| Failure::usage(e.to_string()))?;
    crate::report::emit(&smi::run(words, &profile).map_err(Failure::usage)?);
    Ok(Outcome::Clean)
}
