//! `libnvidia-ml.so.1`: the part of NVIDIA's Management Library (NVML API Reference) that describes devices: their number, names, UUIDs,
//! memory, compute capability and PCI addresses. What a CPU has no counterpart of (temperature, power, clocks, ECC, links) is
//! `NVML_ERROR_NOT_SUPPORTED`; functions that are not here are not exported, which bindings report as `NVML_ERROR_FUNCTION_NOT_FOUND`.
//!
//! As on a GPU, `CUDA_VISIBLE_DEVICES` has no effect, nothing is started, and a process may fork afterwards. Memory is that of this
//! process: what it can still allocate is free, and the rest is used. All facts come from margay's driver library ([`driver`]).

mod api;
mod code;
mod driver;
#[path = "../../cuda/src/facts.rs"]
mod facts;
mod raw;
