//! The SIMD engine: whole warps as vectors, compiled by LLVM.
//!
//! `emit` writes LLVM IR, `compile` turns it into code, `cta` runs it. Kernels that use what the engine has no code for run on
//! the engine that it was given as its fallback, so the two together take every kernel that the fallback takes.

mod code;
mod ctx;
pub mod emit;
mod run;

pub use code::target::Effort;

use code::compile::{Draft, Recipe};
use code::log::Log;
use code::tier::Tier;
use margay_exec::{Batch, Bug, Cta, Engine, Grid, Image, Kernel, Launch, Meter, Stop, Unsupported, Work};
use margay_ir::{FuncId, Ir, Placed, pass::WarpShape};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

/// The SIMD engine.
pub struct SimdEngine {
    fallback: Option<Arc<dyn Engine>>,
    effort: Effort,
}

impl SimdEngine {
    /// An engine that hands what it refuses to `fallback`; without one, a refusal ends a launch by name. With light effort it
    /// compiles quickly first, and again what runs for long.
    pub fn new(fallback: Option<Arc<dyn Engine>>, effort: Effort) -> SimdEngine {
        SimdEngine { fallback, effort }
    }

    /// The code of a kernel for a block shape, for people; an error says why there is none.
    pub fn show(&self, ir: &Ir<Placed>, kernel: FuncId, block: [u32; 3], form: Form) -> Result<String, String> {
        let warp = WarpShape { block: Some(block), ..WarpShape::default() };
        code::target::initialize()?;
        let mask_registers = code::target::mask_registers();
        let options = emit::Options {
            warp,
            mask_registers,
            half_floats: code::target::half_floats(),
            stacks: false,
            count: false,
            cluster: None,
        };
        let refused = |r: emit::Refused| {
            format!("the SIMD engine leaves this kernel to the reference engine, for {}", explain(ir, &r))
        };
        Draft::new(ir, kernel, &options).map_err(refused)?.show(form)
    }
}

/// What was refused, and where.
fn explain(ir: &Ir<Placed>, refused: &emit::Refused) -> String {
    let func = ir.func(refused.func);
    let line = func.places.get(refused.at as usize).map(|p| func.source.lines.line(p.span.start));
    let at = line.map(|l| format!(" in line {l}")).unwrap_or_default();
    format!("{}{at}", refused.what)
}

/// A form of compiled code that people can read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// LLVM IR as the engine writes it.
    Emitted,
    /// LLVM IR after LLVM's passes.
    Optimized,
    /// Instructions of the host.
    Assembly,
}

impl Engine for SimdEngine {
    fn name(&self) -> &'static str {
        match self.effort {
            Effort::Light => "simd",
            Effort::Full => "simd-full",
        }
    }

    fn prepare(&self, image: Arc<Image>, kernel: FuncId) -> Result<Arc<dyn Kernel>, Stop> {
        code::target::initialize().map_err(|what| Stop::Unsupported(Unsupported { what, func: None, at: None }))?;
        let fallback = OnceLock::new();
        let engine = self.fallback.clone();
        Ok(Arc::new(SimdKernel {
            image,
            kernel,
            mask_registers: code::target::mask_registers(),
            engine,
            fallback,
            refused: OnceLock::new(),
            stacks: run::cta::Stacks::default(),
            compiled: Mutex::default(),
            effort: self.effort,
            log: Log::default(),
        }))
    }
}

/// Code for a block shape, or why there is none.
type Outcome = Result<Arc<Tier>, emit::Refused>;

struct SimdKernel {
    image: Arc<Image>,
    kernel: FuncId,
    mask_registers: bool,
    engine: Option<Arc<dyn Engine>>,
    fallback: OnceLock<Arc<dyn Kernel>>,
    /// Why that was needed at first.
    refused: OnceLock<String>,
    stacks: run::cta::Stacks,
    compiled: Mutex<HashMap<Variant, Outcome>>,
    effort: Effort,
    log: Log,
}

/// What code is compiled for: block shape, cluster shape if there are clusters, whether warps are to have stacks, and whether
/// code counts.
type Variant = ([u32; 3], Option<[u32; 3]>, bool, bool);

impl SimdKernel {
    /// Code for a block shape: as a loop over CTAs where that can be, or, if `stacks`, warp by warp.
    fn code(&self, launch: &Launch, stacks: bool) -> Result<Outcome, Stop> {
        let (block, count) = (launch.block, launch.count);
        let cluster = Some(launch.cluster).filter(|c| *c != [1; 3]);
        let stacks = stacks || cluster.is_some();
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = compiled.get(&(block, cluster, stacks, count)) {
            return Ok(found.clone());
        }
        // A kernel that waits is called warp by warp in any case.
        if let Some(found @ Ok(tier)) = compiled.get(&(block, cluster, false, count))
            && tier.by_warp()
        {
            return Ok(found.clone());
        }
        let options = emit::Options {
            warp: WarpShape { block: Some(block), ..WarpShape::default() },
            mask_registers: self.mask_registers,
            half_floats: code::target::half_floats(),
            stacks,
            count,
            cluster,
        };
        let recipe = Recipe::new(self.image.clone(), self.kernel, options);
        let made = Tier::new(recipe, self.effort, &self.log)?;
        compiled.insert((block, cluster, stacks, count), made.clone());
        Ok(made)
    }

    /// The kernel on the other engine.
    fn fall_back(&self, refused: emit::Refused) -> Result<&Arc<dyn Kernel>, Stop> {
        let Some(engine) = &self.engine else {
            let at = self.image.ir.func(refused.func).places.get(refused.at as usize).copied();
            return Err(Stop::Unsupported(Unsupported { what: refused.what, func: Some(refused.func), at }));
        };
        self.refused.get_or_init(|| explain(&self.image.ir, &refused));
        if self.fallback.get().is_none() {
            let prepared = self.log.time("prepare", || engine.prepare(self.image.clone(), self.kernel))?;
            let _ = self.fallback.set(prepared);
        }
        self.fallback.get().ok_or_else(|| Stop::Bug(Bug("the fallback engine is gone".into())))
    }

    /// Code for a launch, or why it goes to the other engine. `stacks` as in [`SimdKernel::code`].
    fn way(&self, launch: &Launch, watched: bool, stacks: bool) -> Result<Outcome, Stop> {
        match () {
            _ if watched => Ok(Err(self.refused("a watched launch"))),
            _ => self.code(launch, stacks),
        }
    }

    fn refused(&self, what: &str) -> emit::Refused {
        emit::Refused { what: what.into(), func: self.kernel, at: u32::MAX }
    }
}

impl Kernel for SimdKernel {
    fn make_ready(&self, launch: &Launch) -> Result<(), Stop> {
        // One by one is how the scheduler runs CTAs that may wait for each other, and how it mixes them.
        let stacks = launch.cooperative || launch.seed != 0;
        match self.way(launch, false, stacks)? {
            Ok(tier) => {
                tier.begin();
                Ok(())
            }
            Err(refused) => self.fall_back(refused)?.make_ready(launch),
        }
    }

    fn works(&self) -> Vec<Work> {
        self.log.works()
    }

    fn start<'a>(&'a self, grid: &'a Grid<'a>, first: [u32; 3]) -> Result<Box<dyn Cta + 'a>, Stop> {
        match self.way(grid.launch, grid.observer.is_some(), true)? {
            Ok(tier) => Ok(Box::new(run::cluster::SimdCluster::new(tier, grid, &self.stacks, first)?)),
            Err(refused) => self.fall_back(refused)?.start(grid, first),
        }
    }

    fn fallback(&self) -> Option<String> {
        self.refused.get().cloned()
    }

    fn batch<'a>(&'a self, grid: &'a Grid<'a>, meter: &'a dyn Meter) -> Result<Option<Box<dyn Batch + 'a>>, Stop> {
        match self.way(grid.launch, grid.observer.is_some(), false)? {
            Ok(tier) if !tier.by_warp() && grid.launch.cluster == [1; 3] => {
                Ok(Some(Box::new(run::batch::Worker::new(tier, grid, meter)?)))
            }
            _ => Ok(None),
        }
    }
}
