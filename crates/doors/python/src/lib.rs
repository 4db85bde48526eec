//! The native half of the Python package `margay`: `python/margay` wraps what is here in the names that its users see.
//!
//! Everything is a plain function or class of `_margay`; there is no logic here that a user of the Rust library would miss. Structured
//! values travel as JSON, in the form that the command line has for them, and Python makes its classes of that. A panic of the engine
//! is caught where Python calls, by PyO3, and becomes an exception.

mod device;
mod errors;
mod launch;
mod loans;
mod module;
mod raw;
mod text;

use pyo3::prelude::*;

/// The native half of the package `margay`.
#[pymodule]
mod _margay {
    use super::*;

    #[pymodule_export]
    use crate::{
        device::Device,
        module::{Kernel, Module},
        text::{abi, check, codes, explain, fmt, programs},
    };

    /// The module's constants.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
