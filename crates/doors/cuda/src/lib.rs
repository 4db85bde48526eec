//! `libcuda.so.1`: the documented CUDA driver API over margay's engines, so that CUDA programs which bring PTX run unmodified
//! where there is no GPU.
//!
//! ```text
//! C ── api! lists (thin functions) ── driver: device, objects by handle, current contexts ── margay_runtime
//!        raw: the pointers of C            handle: numbers, never followed
//! ```
//!
//! Three rules hold everywhere. A handle is a key into a table. Work is queued in streams and runs concurrently with the
//! caller ([`stream`], [`work`]); calls that wait for it do it themselves where no other thread has begun. A kernel's fault is
//! reported in full on standard error, and to the program as a sticky error of its context.
//!
//! Environment: `margay exec --help` lists the variables; [`api::check_environment`] rejects unknown words.
//!
//! Deliberately absent: the undocumented tables behind `cuGetExportTable`, by which NVIDIA's static runtime library
//! verifies NVIDIA's driver; machine code; memory of other processes; graphics.

mod absent;
mod account;
mod advice;
mod api;
mod batch;
mod capture;
mod code;
mod context;
mod copy;
mod device;
mod driver;
mod event;
mod facts;
mod faults;
mod function;
mod graph;
mod green;
mod handle;
mod hints;
mod image;
mod interrupted;
mod ipc;
mod launch;
mod library;
mod link;
mod logs;
mod lookup;
mod memory;
mod memory_operation;
mod module;
mod old_launch;
mod order;
mod pages;
mod pool;
mod questions;
mod raw;
mod references;
mod reports;
mod room;
mod stacks;
mod stream;
mod tensor;
mod texture;
mod threads;
mod usage;
mod virtual_memory;
mod visible;
mod watch;
mod work;
