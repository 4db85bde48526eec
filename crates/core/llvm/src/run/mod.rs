//! Execution of compiled kernels: CTAs and clusters, fibers, barriers, and the helpers that generated code calls.

pub mod barrier_state;
pub mod batch;
pub mod cluster;
pub mod cta;
pub mod deadlock;
pub mod enter;
pub mod fiber;
pub mod host;
pub mod observe;
pub mod thunk;
pub mod windows;
