//! `libcudart.so.13`: the documented CUDA runtime API over the driver API, for programs that nvcc made with `-cudart shared`, and
//! for those whose own runtime margay takes the place of. The packages `margay-cudart12` and `margay-cudart11` make
//! `libcudart.so.12` and `libcudart.so.11.0` of the same sources: `cfg(cuda13)`, `cfg(cuda12)` and `cfg(cuda11)` mark names and layouts
//! that differ.
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
#[cfg(not(cuda13))]
mod older;
mod properties;
mod raw;
mod register;
mod stream;
mod texture;
