//! `libcudart.so.13`: the documented CUDA runtime API over the driver API, for programs linked with `-cudart shared`,
//! and for those whose own runtime margay replaces. The packages `margay-cudart12` and `margay-cudart11` build
//! `libcudart.so.12` and `libcudart.so.11.0` from the same sources: `cfg(cuda13)`, `cfg(cuda12)` and `cfg(cuda11)` mark
//! names and layouts that differ.
//!
//! It is a thin layer with little state: the kernels by host function ([`register`]), the last error of each thread
//! ([`api`]), and launches between `<<<` and the kernel's stub ([`launch`]). Everything else is forwarded to
//! `libcuda.so.1`, resolved by the dynamic linker on the first call ([`driver`]), as in NVIDIA's library.
//!
//! Addresses, handles and structures are passed on unchanged: their validity is guaranteed by the caller of the runtime
//! API, as the driver API requires.

mod absent;
mod api;
mod array;
mod device;
mod driver;
mod error;
mod event;
mod execution;
mod graph;
mod graph_node;
mod launch;
mod memory;
#[cfg(not(cuda13))]
mod older;
mod properties;
mod raw;
#[cfg(cuda11)]
mod references;
mod register;
mod stream;
mod texture;
