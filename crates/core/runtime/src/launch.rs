//! Launches: checks limits, lays out parameters, runs the grid.

use crate::{
    Cancel, Error, Limits, StopReport,
    kernel::Prepared,
    params::block_size,
    schedule::{self, Ended, Progress, Schedule, Spans},
};
use margay_exec::{
    Counts, Fault, Grid, Launch, LaunchShape, Observer, Stop,
    device::{Driver, Pieces},
};
use margay_ir::Func;
use std::time::{Duration, Instant};

/// The configuration of a launch.
#[derive(Clone)]
pub struct LaunchConfig<'a> {
    /// Its shape. Kernels that use the grid's workspace (`cooperative_groups::this_grid().sync()`) are cooperative in any case.
    pub shape: LaunchShape,
    /// Scheduling seed: 0 for the natural order on all threads, else one reproducible interleaving.
    pub seed: u64,
    /// Limit of threads that run CTAs; `None` for all of the device.
    pub threads: Option<usize>,
    /// Cancels the launch.
    pub cancel: Option<Cancel>,
    /// Receives progress in CTAs.
    pub progress: Option<Progress<'a>>,
    /// Receives the time spans of host threads.
    pub spans: Option<Spans<'a>>,
    /// Counters; counting costs time.
    pub counts: Option<&'a Counts>,
    /// Receives every access; the launch runs on one host thread.
    pub observer: Option<&'a dyn Observer>,
    /// Answers what device code asks a driver.
    pub driver: Option<&'a dyn Driver>,
    /// The handle of the executable graph that the launch is part of; 0 if there is none.
    pub graph: u64,
}

impl LaunchConfig<'static> {
    /// A launch of `grid` CTAs of `block` threads with default settings.
    pub fn new(grid: [u32; 3], block: [u32; 3]) -> LaunchConfig<'static> {
        LaunchConfig::of(LaunchShape::new(grid, block))
    }

    /// A launch of that shape with default settings.
    pub fn of(shape: LaunchShape) -> LaunchConfig<'static> {
        LaunchConfig {
            shape,
            seed: 0,
            threads: None,
            cancel: None,
            progress: None,
            spans: None,
            counts: None,
            observer: None,
            driver: None,
            graph: 0,
        }
    }
}

impl std::fmt::Debug for LaunchConfig<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let LaunchConfig { shape, seed, .. } = self;
        write!(f, "LaunchConfig {{ shape: {shape:?}, seed: {seed} .. }}")
    }
}

/// The cost of a launch.
#[derive(Clone, Debug)]
pub struct LaunchStats {
    /// Time spent compiling for the launch's shape.
    pub compile: Duration,
    /// Time from when the launch was prepared to the end of the last CTA.
    pub time: Duration,
    /// The first use that PTX leaves undefined and that the launch tolerated, as GPUs do. Not an error.
    pub undefined: Option<Box<StopReport>>,
    /// What the grid has queued. [`crate::Module::perform`] performs it.
    pub queued: Pieces,
}

/// Callers that a fault's call stack keeps.
const MAX_CALLERS: usize = 64;

pub(crate) fn launch(kernel: &Prepared, config: &LaunchConfig<'_>, params: &[u8]) -> Result<LaunchStats, Error> {
    let limits = kernel.context.limits();
    let launch = check(kernel, config, params, &limits).map_err(Error::BadLaunch)?;
    let device = kernel.context.device();
    let print = |bytes: &[u8]| kernel.context.print(bytes);
    let stopped = |stop| Error::Stopped(Box::new(StopReport { stop, image: kernel.image.clone() }));
    let asked = Instant::now();
    let interpreted = config.observer.is_some_and(|o| !o.accepts_compiled_code(&kernel.image, kernel.func));
    let code = kernel.code.ready(&launch, interpreted).map_err(stopped)?;
    let grid = Grid::new(&launch, &kernel.image, device.memory(), &print).map_err(stopped)?;
    let grid = grid.counted(config.counts).with_driver(config.driver);
    let grid = match config.observer {
        Some(observer) => grid.observed(observer),
        None => grid,
    };
    let schedule = Schedule {
        pool: device.pool(),
        workers: match config.observer {
            // Events must be reported in execution order.
            Some(_) => 1,
            None => config.threads.unwrap_or(usize::MAX).min(device.threads()),
        },
        instructions: limits.instructions,
        stall: limits.stall,
        cancel: config.cancel.as_ref(),
        progress: config.progress,
        spans: config.spans,
        cost: &kernel.cost,
    };
    let compile = grid.started - asked;
    match schedule::run(&code, &grid, &schedule) {
        Ok(()) => {
            let report = |f: &Fault| StopReport { stop: Stop::Fault(Box::new(f.clone())), image: kernel.image.clone() };
            let undefined = grid.undefined().map(|f| Box::new(report(f)));
            Ok(LaunchStats { compile, time: grid.started.elapsed(), undefined, queued: grid.queued.take() })
        }
        Err(Ended::Canceled) => Err(Error::Canceled),
        Err(Ended::Stopped(Stop::Fault(fault))) => {
            Err(stopped(Stop::Fault(Box::new(fault.with_cycle_once().with_callers(MAX_CALLERS)))))
        }
        Err(Ended::Stopped(stop)) => Err(stopped(stop)),
    }
}

/// The rules of a launch (CUDA C++ Programming Guide, "Compute Capabilities"; manual, section 11.4).
pub(crate) fn check(
    kernel: &Prepared,
    config: &LaunchConfig<'_>,
    params: &[u8],
    limits: &Limits,
) -> Result<Launch, String> {
    let func = kernel.image.ir.func(kernel.func);
    check_sizes(&config.shape, limits)?;
    check_bounds(func, config.shape.block)?;
    let cluster = config.shape.cluster.or(func.reqnctapercluster).unwrap_or([1; 3]);
    check_cluster(cluster, config.shape.grid)?;
    let (fixed, dynamic) = (kernel.image.static_shared - kernel.image.reserved_shared, config.shape.shared);
    let shared = u64::from(fixed) + u64::from(dynamic);
    if shared > u64::from(limits.shared_per_block) {
        let most = limits.shared_per_block;
        return Err(format!(
            "{fixed} static and {dynamic} dynamic bytes of shared memory exceed the limit of {most} per CTA"
        ));
    }
    let size = block_size(&kernel.params);
    if params.len() < size {
        return Err(format!(
            "found a parameter block of {} bytes for a kernel with {size} bytes of parameters",
            params.len()
        ));
    }
    Ok(Launch {
        shape: LaunchShape {
            cluster: Some(cluster),
            cooperative: config.shape.cooperative || kernel.cooperative,
            ..config.shape
        },
        params: params.to_vec(),
        seed: config.seed,
        real_time: config.seed == 0 && config.observer.is_none() && kernel.code.compiles(),
        stack_limit: limits.stack,
        count: config.counts.is_some(),
        observe: config.observer.map(|o| o.interest()),
        graph: config.graph,
    })
}

/// The limits of a device on grids and CTAs.
fn check_sizes(shape: &LaunchShape, limits: &Limits) -> Result<(), String> {
    let LaunchShape { grid, block, .. } = *shape;
    if grid.contains(&0) || block.contains(&0) {
        return Err(format!("grid {} of CTAs {} has a size of zero", by(grid), by(block)));
    }
    let exceeds = |size: [u32; 3], most: [u32; 3]| (0..3).any(|i| size[i] > most[i]);
    if exceeds(grid, LaunchShape::LARGEST_GRID) {
        return Err(format!("grid {} is larger than {}", by(grid), by(LaunchShape::LARGEST_GRID)));
    }
    let (threads, most) = (count(block), limits.threads_per_block);
    if threads > u128::from(most) || exceeds(block, LaunchShape::LARGEST_BLOCK) {
        let largest = by(LaunchShape::LARGEST_BLOCK);
        return Err(format!("a CTA of {} has {threads} threads; the limit is {most}, in at most {largest}", by(block)));
    }
    Ok(())
}

/// What a kernel requires of its CTAs.
fn check_bounds(func: &Func, block: [u32; 3]) -> Result<(), String> {
    if let Some(required) = func.reqntid.filter(|r| *r != block) {
        return Err(format!(
            "the kernel requires `.reqntid {}`, but the launch has CTAs of {}",
            by(required),
            by(block)
        ));
    }
    let threads = count(block);
    match func.maxntid.map(count) {
        Some(most) if threads > most => Err(format!(
            "the kernel's `.maxntid` (`__launch_bounds__`) allows {most} threads, but the launch has CTAs of {threads}"
        )),
        _ => Ok(()),
    }
}

fn check_cluster(cluster: [u32; 3], grid: [u32; 3]) -> Result<(), String> {
    let most = LaunchShape::LARGEST_CLUSTER;
    if cluster.contains(&0) || count(cluster) > u128::from(most) {
        return Err(format!("a cluster of {} CTAs is not one of 1 to {most}", by(cluster)));
    }
    if (0..3).any(|i| !grid[i].is_multiple_of(cluster[i])) {
        return Err(format!("clusters of {} CTAs do not divide a grid of {}", by(cluster), by(grid)));
    }
    Ok(())
}

/// The number of elements of a box, which may be too large for 64 bits.
fn count(size: [u32; 3]) -> u128 {
    size.iter().map(|n| u128::from(*n)).product()
}

/// A size for messages.
fn by(size: [u32; 3]) -> String {
    format!("{} x {} x {}", size[0], size[1], size[2])
}
