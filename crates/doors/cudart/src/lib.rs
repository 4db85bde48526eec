//! `libcudart.so.13`: the documented CUDA runtime API over the driver API, for programs that nvcc made with `-cudart shared`.
//!
//! It is a layer of translation and keeps little: which host function stands for which kernel ([`register`]), the last error
//! of each thread ([`api`]), and launches between `<<<` and the stub of the kernel ([`launch`]). Everything else is asked of
//! `libcuda.so.1`, found by the dynamic linker when the first function is called ([`driver`]), as NVIDIA's library does.
//!
//! Addresses, handles and structures are passed on as they came: what they must point to is the caller's promise to the
//! runtime API, and the same as the driver API asks for.

mod absent;
mod api;
mod array;
mod device;
mod driver;
mod error;
mod event;
mod graph;
mod graph_node;
mod launch;
mod memory;
mod raw;
mod register;
mod stream;
mod texture;
