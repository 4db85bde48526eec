//! What an engine is: it prepares a kernel of a placed program, and runs CTAs of it piece by piece.

use crate::{Memory, Stop};
use margay_ir::{FuncId, Ir, Placed, SourcePlace};
use std::sync::Arc;

/// A program in memory: placed code, and the addresses that its variables got.
#[derive(Debug)]
pub struct Image {
    /// The code.
    pub ir: Arc<Ir<Placed>>,
    /// By [`margay_ir::GlobalId`]: host address for `.global` and `.const`; offset in the CTA's window for `.shared`; handle
    /// for texture, sampler and surface references.
    pub addresses: Vec<u64>,
    /// Bytes of static shared memory.
    pub static_shared: u32,
}

impl Image {
    /// The address of a function: what `mov` of its name yields and what indirect calls take. Never a valid data address.
    pub fn function_address(func: FuncId) -> u64 {
        0x0f00_0000_0000_0000 + (u64::from(func.0) + 1) * 16
    }

    /// The function at an address.
    pub fn function_at(&self, address: u64) -> Option<FuncId> {
        let index = address.checked_sub(0x0f00_0000_0000_0000)?;
        let id = (index / 16).checked_sub(1)?;
        (index % 16 == 0 && id < self.ir.funcs.len() as u64).then_some(FuncId(id as u32))
    }
}

/// Margay lacks something: a construct, and where it stands.
#[derive(Clone, Debug)]
pub struct Unsupported {
    /// What: `tcgen05.mma.cta_group::1.kind::f16`.
    pub what: String,
    /// In which function.
    pub func: Option<FuncId>,
    /// Where.
    pub at: Option<SourcePlace>,
}

/// One launch of a kernel.
#[derive(Clone, Debug)]
pub struct Launch {
    /// CTAs in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a CTA in x, y, z.
    pub block: [u32; 3],
    /// CTAs of a cluster in x, y, z; all 1 without clusters.
    pub cluster: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub dynamic_shared: u32,
    /// The parameter block, laid out by offset.
    pub params: Vec<u8>,
    /// Scheduling seed: 0 is the natural order.
    pub seed: u64,
    /// Bytes of local memory of a thread.
    pub stack_limit: u32,
    /// CTAs may wait for each other: all must make progress.
    pub cooperative: bool,
}

/// What all CTAs of a launch share.
pub struct Grid<'a> {
    /// The launch.
    pub launch: &'a Launch,
    /// The program.
    pub image: &'a Image,
    /// The device's memory.
    pub memory: &'a Memory,
    /// Where `vprintf` writes.
    pub output: &'a (dyn Fn(&[u8]) + Sync),
}

/// How far a CTA got.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// All threads ended.
    Done,
    /// Fuel ran out; it can go on.
    More,
    /// It waits for another CTA (cluster barrier).
    Waiting,
}

/// A way of executing programs.
pub trait Engine: Send + Sync {
    /// `reference` or `simd`.
    fn name(&self) -> &'static str;

    /// Makes a kernel ready to run. An instruction that the engine lacks is an error here, not in the middle of a launch.
    fn prepare(&self, image: Arc<Image>, kernel: FuncId) -> Result<Arc<dyn Kernel>, Stop>;
}

/// A kernel ready to run.
pub trait Kernel: Send + Sync {
    /// Begins one CTA.
    fn start<'a>(&'a self, grid: &'a Grid<'a>, cta: [u32; 3]) -> Result<Box<dyn Cta + 'a>, Stop>;
}

/// A CTA in flight.
pub trait Cta: Send {
    /// Runs until done, waiting, or about `fuel` warp instructions were executed.
    fn run(&mut self, fuel: u64) -> Result<Progress, Stop>;
}
