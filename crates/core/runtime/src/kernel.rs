//! Kernels, ready to launch.

use crate::{
    Context, Error, LaunchConfig, LaunchStats, Params, launch,
    tiers::{TierTime, Tiers},
};
use margay_exec::{Image, LaunchShape};
use margay_ir::{FormalHome, FuncId};
use margay_isa::Type;
use std::{sync::Arc, time::Duration};

/// A kernel parameter in the parameter block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Param {
    /// Name in the module.
    pub name: Box<str>,
    /// Element type.
    pub ty: Type,
    /// Whether it is an array (usually a struct passed by value).
    pub array: bool,
    /// Offset in the parameter block in bytes.
    pub offset: u32,
    /// Size in bytes.
    pub size: u32,
    /// Alignment in bytes.
    pub align: u32,
}

/// A kernel prepared for an engine. Cheap to clone.
#[derive(Clone)]
pub struct Kernel {
    pub(crate) inner: Arc<Prepared>,
}

pub(crate) struct Prepared {
    pub context: Arc<Context>,
    pub image: Arc<Image>,
    pub func: FuncId,
    pub code: Tiers,
    pub params: Vec<Param>,
    pub prepare_time: Duration,
    pub engine: &'static str,
    /// Uses the grid workspace that only cooperative launches have.
    pub cooperative: bool,
    /// The cost of a CTA in earlier launches.
    pub cost: crate::schedule::Cost,
    /// Keeps the module's variables in memory.
    pub _variables: Arc<crate::module::Variables>,
}

impl Kernel {
    /// The kernel's name.
    pub fn name(&self) -> &str {
        &self.inner.image.ir.func(self.inner.func).name
    }

    /// The kernel's parameters, in order.
    pub fn params(&self) -> &[Param] {
        &self.inner.params
    }

    /// The program that contains the kernel.
    pub fn image(&self) -> &Arc<Image> {
        &self.inner.image
    }

    /// The kernel's function in [`Kernel::image`].
    pub fn func(&self) -> FuncId {
        self.inner.func
    }

    /// Name of the engine that runs it.
    pub fn engine(&self) -> &'static str {
        self.inner.engine
    }

    /// Run times per tier, for tiers that were used.
    pub fn tiers(&self) -> Vec<TierTime> {
        self.inner.code.times()
    }

    /// Mnemonics of instructions that compiled code leaves to the reference engine.
    pub fn single_steps(&self) -> Vec<String> {
        self.inner.code.single_steps()
    }

    /// Why launches so far ran on the reference engine although compiled code was wanted; `None` if they did not.
    pub fn fallback(&self) -> Option<String> {
        self.inner.code.fallback()
    }

    /// Time spent on lowering, placing and preparing.
    pub fn prepare_time(&self) -> Duration {
        self.inner.prepare_time
    }

    /// The steps of compilation so far, with durations.
    pub fn works(&self) -> Vec<margay_exec::Work> {
        self.inner.code.works()
    }

    /// Size of a CTA's static shared memory in bytes.
    pub fn static_shared(&self) -> u32 {
        self.inner.image.static_shared - self.inner.image.reserved_shared
    }

    /// A parameter block to be filled.
    pub fn arguments(&self) -> Params<'_> {
        Params::new(&self.inner.params)
    }

    /// A launch's shape with the kernel's own cluster shape where none is given.
    pub fn shape_of(&self, shape: LaunchShape) -> LaunchShape {
        LaunchShape { cluster: shape.cluster.or(self.inner.image.ir.func(self.inner.func).reqnctapercluster), ..shape }
    }

    /// Whether a device would take the launch: [`Error::BadLaunch`] says why not.
    pub fn check(&self, config: &LaunchConfig<'_>, params: &[u8]) -> Result<(), Error> {
        launch::check(&self.inner, config, params, &self.inner.context.limits()).map(drop).map_err(Error::BadLaunch)
    }

    /// Launches the kernel and waits for its end. `params` is a block from [`Params::finish`].
    pub fn launch(&self, config: &LaunchConfig<'_>, params: &[u8]) -> Result<LaunchStats, Error> {
        launch::launch(&self.inner, config, params)
    }
}

impl std::fmt::Debug for Kernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kernel").field("name", &self.name()).field("params", &self.inner.params).finish_non_exhaustive()
    }
}

/// The parameters of a kernel.
pub(crate) fn params(image: &Image, func: FuncId, names: &[Box<str>]) -> Vec<Param> {
    let func = image.ir.func(func);
    let homes = func.params.iter().zip(&func.sig.params).enumerate();
    homes
        .filter_map(|(i, (home, value))| {
            let FormalHome::Kernel(offset) = home else { return None };
            Some(Param {
                name: names.get(i).cloned().unwrap_or_default(),
                ty: value.ty,
                array: value.array,
                offset: *offset,
                size: value.size,
                align: value.align,
            })
        })
        .collect()
}
