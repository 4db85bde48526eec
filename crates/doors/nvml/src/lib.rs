//! `libnvidia-ml.so.1`: the part of NVIDIA's Management Library (NVML API Reference) that describes devices: their number, names, UUIDs,
//! memory, compute capability and PCI addresses. Queries without a counterpart on a CPU (temperature, power, ECC, links) return
//! `NVML_ERROR_NOT_SUPPORTED`; other functions are not exported, which bindings report as `NVML_ERROR_FUNCTION_NOT_FOUND`.
//!
//! As on a GPU, `CUDA_VISIBLE_DEVICES` has no effect, no context is created, and a process may fork afterwards. Free memory is the amount
//! that this process can still allocate, and the rest counts as used. All facts come from margay's driver library ([`driver`]).

mod api;
mod code;
mod driver;
#[path = "../../cuda/src/facts.rs"]
mod facts;
mod raw;
