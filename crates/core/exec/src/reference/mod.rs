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
mod spare;
mod state;
pub(crate) mod step;
mod tensor_memory;
mod uninitialized;

pub use step::{call::returned, special::MULTIPROCESSORS, warp::left_out};

use crate::{Cta, Engine, Grid, Image, Kernel, Stop};
use margay_ir::{
    Func, FuncId,
    pass::{Cfg, shares_work, spins, tests_and_sets},
};
use spare::Spare;
use state::Yields;
use std::sync::{Arc, OnceLock};

/// The reference engine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reference;

impl Engine for Reference {
    fn name(&self) -> &'static str {
        "reference"
    }

    fn prepare(&self, image: Arc<Image>, kernel: FuncId) -> Result<Arc<dyn Kernel>, Stop> {
        let code = decode::decode(image, kernel)?;
        Ok(Arc::new(ReferenceKernel { code, spare: Spare::default(), yields: OnceLock::new() }))
    }
}

/// A decoded kernel.
struct ReferenceKernel {
    code: code::Code,
    spare: Spare,
    yields: OnceLock<Yields>,
}

impl ReferenceKernel {
    /// When its warps and CTAs yield.
    fn yields(&self) -> Yields {
        let communicates = |func: &Func| {
            let cfg = Cfg::new(func, |_, _| false);
            spins(func, &cfg) || shares_work(func, &cfg)
        };
        *self.yields.get_or_init(|| {
            let funcs = || self.code.funcs.iter().flatten();
            Yields {
                publishes: funcs().any(|f| communicates(&f.func)),
                tested: funcs().any(|f| !tests_and_sets(&f.func).is_empty()),
            }
        })
    }
}

impl Kernel for ReferenceKernel {
    fn start<'a>(self: Arc<Self>, grid: &'a Grid<'a>, first: [u32; 3]) -> Result<Box<dyn Cta + 'a>, Stop> {
        Ok(Box::new(cluster::Cluster::new(self, grid, first)?))
    }
}
