//! Devices, contexts, modules, streams, events and buffers as plain Rust values, and the scheduler that runs grids.
//!
//! ```text
//! Device ── engines by name, a pool of threads, memory
//!   └ Context ── limits, where `vprintf` writes
//!       ├ Module ── checked files linked together; variables in memory; kernels lowered when first asked for
//!       │   └ Kernel ── parameters by offset, limits; launch(config, params)
//!       ├ Buffer ── an allocation, freed when dropped
//!       └ Stream, Event ── ordered work, concurrent with the caller
//! ```
//!
//! There are no globals: two devices in one process are independent. Nothing here is `unsafe`, and nothing here
//! knows an instruction: engines come in as values ([`Engine`]).
#![forbid(unsafe_code)]

mod buffer;
mod context;
mod device;
mod engine;
mod error;
mod image;
mod kernel;
mod launch;
mod module;
mod params;
mod queued;
mod schedule;
mod signatures;
mod stream;
mod texture;
mod tiers;

pub use buffer::Buffer;

pub use context::{Context, Limits, Output};
pub use device::{Device, DeviceOptions};
pub use engine::Engine;
pub use error::{Error, Rejected, StopReport};
pub use kernel::{Kernel, Param};
pub use launch::{LaunchConfig, LaunchStats};
pub use margay_exec::LaunchShape;
pub use module::{LoadOptions, Module, SourceText, Variable, check, check_shared, examine_shared, find_abi};
pub use params::{Params, ParamsError};
pub use queued::{By, Launcher};
pub use schedule::{Cancel, Progress, Span, Spans};
pub use signatures::{check_signatures, signatures};
pub use stream::{Event, Mark, Stream, milliseconds};
pub use texture::{Array, SurfaceObject, TextureObject, TextureOptions};
pub use tiers::{Tier, TierTime, Waiting};
