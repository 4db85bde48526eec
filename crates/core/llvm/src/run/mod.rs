//! Running compiled kernels: CTAs and their warps, fibers, barriers, what generated code asks of the host.

pub mod barrier_state;
pub mod batch;
pub mod cluster;
pub mod cta;
pub mod deadlock;
pub mod enter;
pub mod fiber;
pub mod host;
pub mod thunk;
pub mod windows;
