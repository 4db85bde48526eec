//! `libcuda.so.1`: the documented CUDA driver API over margay's engines, so that CUDA programs which bring PTX run unmodified
//! where there is no GPU.
//!
//! ```text
//! C ── api! lists (thin functions) ── driver: device, objects by handle, current contexts ── margay_runtime
//!        raw: the pointers of C            handle: numbers, never followed
//! ```
//!
//! Three rules hold everywhere. A handle is a key into a table. Work is queued in streams and runs concurrently with the
//! caller ([`work`]); calls that wait for it do it themselves where no other thread has begun. A kernel's fault is
//! reported in full on standard error, and to the program as a sticky error of its context.
//!
//! Environment: `margay exec --help` lists the variables; [`api::check_environment`] rejects unknown words.
//!
//! Deliberately absent: the undocumented tables behind `cuGetExportTable`, by which NVIDIA's static runtime library
//! verifies NVIDIA's driver; machine code; graphics.

mod absent;
mod api;
mod checks;
mod code;
mod context;
mod device;
mod driver;
mod facts;
mod green;
mod handle;
mod lookup;
mod memory;
mod module;
mod process;
mod raw;
mod visible;
mod work;
