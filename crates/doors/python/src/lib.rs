//! The native half of the Python package `margay`: `python/margay` wraps what is here in the names that its users see.
//!
//! Everything is a plain function or class of `_margay`; there is no logic here that a user of the Rust library would miss.

use pyo3::prelude::*;

/// The native half of the package `margay`.
#[pymodule]
mod _margay {
    use super::*;

    /// The module's constants.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
