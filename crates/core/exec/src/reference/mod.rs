//! The reference engine: exact, deterministic and observable.
//!
//! It executes warps: a register is a row of 32 lanes, and an instruction is one call that works on rows, so that 32
//! threads share the cost of interpretation. A kernel is decoded once (`decode`) into compact ops with their rows
//! resolved (`code`). Groups of lanes at the same op run together (`state`, `schedule`); handlers (`step`) perform the
//! instructions; pure rows are functions of [`crate::sem`]. One host thread runs a cluster of CTAs (`cluster`); clusters
//! run in parallel. A CTA can be stopped for another engine (`pause`).
//!
//! Nothing here panics because of what a program does: wrong programs end in a [`crate::Fault`].

mod builtin;
mod cluster;
mod code;
mod ctx;
mod decode;
mod in_flight;
mod pause;
mod polling;
pub mod rendezvous;
mod schedule;
pub mod single_step;
mod state;
pub(crate) mod step;
mod tensor_memory;
mod uninitialized;

pub use step::{call::returned, special::MULTIPROCESSORS, warp::left_out};

use crate::{Cta, Engine, Grid, Image, Kernel, Stop, mem::Allocation};
use margay_ir::FuncId;
use std::sync::{Arc, Mutex, PoisonError};

/// The reference engine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reference;

impl Engine for Reference {
    fn name(&self) -> &'static str {
        "reference"
    }

    fn prepare(&self, image: Arc<Image>, kernel: FuncId) -> Result<Arc<dyn Kernel>, Stop> {
        let code = decode::decode(image, kernel)?;
        Ok(Arc::new(ReferenceKernel { code, spare: Mutex::default() }))
    }
}

/// Memory of CTAs that have ended, for reuse.
#[derive(Default)]
struct Memories {
    warps: Vec<state::Warp>,
    shared: Option<Arc<Allocation>>,
    /// The local windows of all threads, `stride` bytes apart.
    local: Option<Arc<Allocation>>,
    stride: u64,
}

/// A decoded kernel.
struct ReferenceKernel {
    code: code::Code,
    spare: Mutex<Vec<Memories>>,
}

impl ReferenceKernel {
    /// Takes memory of an ended CTA of the same shape, if there is some.
    fn take(&self, shared: u64, stride: u64, warps: usize) -> Memories {
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |m: &Memories| {
            m.stride == stride
                && m.warps.len() == warps
                && m.shared.as_ref().is_some_and(|s| s.block.len() as u64 == shared)
        };
        match spare.iter().position(fits) {
            Some(i) => spare.swap_remove(i),
            None => {
                spare.clear();
                Memories::default()
            }
        }
    }

    fn give(&self, mut memories: Memories) {
        memories.warps.iter_mut().for_each(|w| cluster::clean(w, memories.stride));
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        if spare.len() < 64 {
            spare.push(memories);
        }
    }
}

impl Kernel for ReferenceKernel {
    fn start<'a>(self: Arc<Self>, grid: &'a Grid<'a>, first: [u32; 3]) -> Result<Box<dyn Cta + 'a>, Stop> {
        Ok(Box::new(cluster::Cluster::new(self, grid, first)?))
    }
}
