//! Linked code of a kernel for launches of one shape, with the pools that its runs draw from.

use crate::{
    code::compile::{Compiled, Object, Recipe},
    emit::{Site, SiteKind},
    run::{batch::Worker, cluster::SimdCluster, cta::Stacks, windows::Pool},
};
use margay_exec::{
    Batch, Cta, CtaWindows, Grid, Kernel, Log, Meter, Progress, Stop, coordinates, single_step::SingleStep,
};
use std::{collections::BTreeSet, sync::Arc};

/// Warp instructions that a CTA on fibers runs between reports to the meter.
const SLICE: u64 = 1 << 16;

/// Callable code of a kernel.
pub struct Code {
    /// The code.
    pub compiled: Compiled,
    /// Windows that are not in use.
    pub pool: Pool,
    /// Fiber stacks that are not in use.
    pub stacks: Stacks,
    /// The reference engine's form of the kernel, if some instructions have no native code.
    pub single_step: Option<Arc<SingleStep>>,
    /// Mnemonics of these instructions.
    single_steps: Vec<String>,
    /// The entry runs a range of CTAs rather than one warp.
    by_range: bool,
}

impl Code {
    /// Links an object; an error is a bug of the engine.
    pub fn new(recipe: &Recipe, object: &Object, log: &Log) -> Result<Arc<Code>, String> {
        let mut single_steps = BTreeSet::new();
        let often = |s: &&Site| !matches!(s.kind, SiteKind::Effect { seldom: true, .. });
        for site in object.facts.single_steps().filter(often) {
            let func = &recipe.image.ir.funcs[site.func as usize];
            single_steps.insert(func.variant(&func.insts[site.inst as usize]).to_string());
        }
        let single_step = match object.facts.single_steps().next().is_none() {
            true => None,
            false => {
                let made = SingleStep::new(recipe.image.clone(), recipe.kernel);
                Some(Arc::new(made.map_err(|stop| format!("single steps: {stop:?}"))?))
            }
        };
        let compiled = log.time("link", || recipe.link(object))?;
        Ok(Arc::new(Code {
            by_range: !compiled.by_warp && recipe.options.cluster.is_none(),
            compiled,
            pool: Pool::default(),
            stacks: Stacks::default(),
            single_step,
            single_steps: single_steps.into_iter().collect(),
        }))
    }
}

impl Kernel for Code {
    fn start<'a>(self: Arc<Self>, grid: &'a Grid<'a>, first: [u32; 3]) -> Result<Box<dyn Cta + 'a>, Stop> {
        Ok(Box::new(SimdCluster::new(self, grid, first)?))
    }

    fn by_range(&self) -> bool {
        self.by_range
    }

    fn batch<'a>(
        self: Arc<Self>,
        grid: &'a Grid<'a>,
        meter: &'a dyn Meter,
    ) -> Result<Option<Box<dyn Batch + 'a>>, Stop> {
        match self.by_range {
            true => Ok(Some(Box::new(Worker::new(self, grid, meter)?))),
            false => Ok(None),
        }
    }

    fn take_over(
        self: Arc<Self>,
        grid: &Grid<'_>,
        meter: &dyn Meter,
        cta: u64,
        windows: CtaWindows,
    ) -> Result<(), Stop> {
        if self.by_range {
            return Worker::with_windows(self, grid, meter, windows)?.run(cta..cta + 1);
        }
        let at = coordinates(cta, grid.launch.shape.grid);
        let mut rest = SimdCluster::taken_over(self, grid, at, windows)?;
        loop {
            let slice = rest.run(SLICE)?;
            meter.spend(slice.executed)?;
            // It waits for no other CTA: such kernels are not paused.
            if slice.progress == Progress::Done {
                return Ok(());
            }
        }
    }

    fn single_steps(&self) -> Vec<String> {
        self.single_steps.clone()
    }
}
