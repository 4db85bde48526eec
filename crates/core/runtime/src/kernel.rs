//! A kernel of a module, ready to be launched.

use crate::{
    Context, Error, LaunchConfig, LaunchStats, Params, launch,
    tiers::{TierTime, Tiers},
};
use margay_exec::Image;
use margay_ir::{FormalHome, FuncId};
use margay_isa::Type;
use std::{sync::Arc, time::Duration};

/// A kernel parameter as the host sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Param {
    /// Name in the text.
    pub name: Box<str>,
    /// Element type.
    pub ty: Type,
    /// An array (a struct passed by value, as a rule).
    pub array: bool,
    /// Byte offset in the parameter block.
    pub offset: u32,
    /// Bytes.
    pub size: u32,
    /// Alignment in bytes.
    pub align: u32,
}

/// A kernel lowered, placed and prepared by an engine. Cheap to clone.
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
    /// It synchronises the grid through the workspace that only cooperative launches have.
    pub cooperative: bool,
    /// What a CTA cost in earlier launches.
    pub cost: crate::schedule::Cost,
    /// Keeps the module's variables in memory.
    pub _variables: Arc<crate::module::Variables>,
}

impl Kernel {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.inner.image.ir.func(self.inner.func).name
    }

    /// Its parameters, in order.
    pub fn params(&self) -> &[Param] {
        &self.inner.params
    }

    /// The program that it is a part of.
    pub fn image(&self) -> &Arc<Image> {
        &self.inner.image
    }

    /// Its function in [`Kernel::image`].
    pub fn func(&self) -> FuncId {
        self.inner.func
    }

    /// The engine that runs it.
    pub fn engine(&self) -> &'static str {
        self.inner.engine
    }

    /// What its CTAs did on each tier that any ran on.
    pub fn tiers(&self) -> Vec<TierTime> {
        self.inner.code.times()
    }

    /// Mnemonics that compiled code leaves to the reference engine, one instruction of a warp at a time.
    pub fn single_steps(&self) -> Vec<String> {
        self.inner.code.single_steps()
    }

    /// Why launches so far ran on the reference engine, although there should be compiled code for them.
    pub fn fallback(&self) -> Option<String> {
        self.inner.code.fallback()
    }

    /// How long lowering, placing and preparing took.
    pub fn prepare_time(&self) -> Duration {
        self.inner.prepare_time
    }

    /// What the engine has done to make code, so far.
    pub fn works(&self) -> Vec<margay_exec::Work> {
        self.inner.code.works()
    }

    /// Bytes of static shared memory of a CTA.
    pub fn static_shared(&self) -> u32 {
        self.inner.image.static_shared - self.inner.image.reserved_shared
    }

    /// A parameter block to fill.
    pub fn arguments(&self) -> Params<'_> {
        Params::new(&self.inner.params)
    }

    /// Runs the kernel on a grid and waits for its end. `params` is a block as [`Params::finish`] makes it.
    pub fn launch(&self, config: &LaunchConfig<'_>, params: &[u8]) -> Result<LaunchStats, Error> {
        launch::launch(&self.inner, config, params)
    }
}

impl std::fmt::Debug for Kernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kernel").field("name", &self.name()).field("params", &self.inner.params).finish_non_exhaustive()
    }
}

/// The host's view of the parameters of a kernel.
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
