//! A linked program: functions and variables of one or more modules.

use crate::{Func, abi};
use margay_isa::{Space, Target, Type, Version};
use std::{collections::HashMap, sync::Arc};

/// Index into [`Ir::funcs`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct FuncId(pub u32);

/// Index into [`Ir::globals`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct GlobalId(pub u32);

/// A variable with static storage: `.global`, `.const`, `.shared` (static or dynamic), texture, surface and sampler
/// references; those declared in bodies too.
#[derive(Clone, Debug)]
pub struct Global {
    /// Its name (for variables of bodies: `function::name`).
    pub name: Box<str>,
    /// `Global`, `Const`, `Shared` or `Tex`.
    pub space: Space,
    /// For references: [`Type::TexRef`], [`Type::SamplerRef`] or [`Type::SurfRef`].
    pub reference: Option<Type>,
    /// Bytes; 0 for `.extern .shared x[]`, which starts where static shared memory ends.
    pub size: u64,
    /// Alignment in bytes.
    pub align: u32,
    /// Initial contents; symbols are resolved to this program's ids.
    pub init: Vec<GlobalInit>,
    /// Visible to `cuModuleGetGlobal` and to other modules.
    pub visible: bool,
    /// `.extern` without a definition in the program.
    pub external: bool,
    /// `.attribute(.managed)`
    pub managed: bool,
}

/// A piece of initial contents.
#[derive(Clone, Debug)]
pub enum GlobalInit {
    /// Bytes at an offset.
    Bytes(u64, Vec<u8>),
    /// An address (see `margay_check::Init::Address` for the fields).
    Address {
        /// Offset into the variable.
        at: u64,
        /// Bytes written.
        size: u8,
        /// Right shift before the cut.
        shift: u8,
        /// What is pointed to.
        of: Pointee,
        /// Added to the address.
        offset: i64,
        /// Generic address wanted.
        generic: bool,
    },
    /// A property of a texture, sampler or surface: name and value.
    Property(Box<str>, Box<str>),
}

/// The target of an address in an initializer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pointee {
    /// A variable.
    Global(GlobalId),
    /// A function's entry.
    Func(FuncId),
}

/// The stage of an [`Ir`]: which facts are available.
pub trait Stage: Clone + std::fmt::Debug {
    /// The ABI's name, once there is one.
    fn abi(&self) -> Option<&'static str> {
        None
    }

    /// Places of a function, once there are such.
    fn places(&self, _func: FuncId) -> Option<&abi::FuncPlaces> {
        None
    }
}

/// Parameters and call arguments have no locations yet.
#[derive(Clone, Debug)]
pub struct Virtual;

/// Everything has a location under one ABI.
#[derive(Clone, Debug)]
pub struct Placed {
    /// The ABI's name.
    pub abi: &'static str,
    /// By [`FuncId`].
    pub funcs: Vec<Arc<abi::FuncPlaces>>,
}

impl Stage for Virtual {}
impl Stage for Placed {
    fn abi(&self) -> Option<&'static str> {
        Some(self.abi)
    }

    fn places(&self, func: FuncId) -> Option<&abi::FuncPlaces> {
        self.funcs.get(func.0 as usize).map(|places| &**places)
    }
}

/// The lowest bit of the rank of a CTA in addresses of shared memory ([`Ir::ranked_addresses`]); those below are the offset in its window.
pub const RANK_SHIFT: u32 = 24;

/// A program in one stage.
#[derive(Clone, Debug)]
pub struct Ir<S: Stage> {
    /// Functions and kernels; undefined externals have no blocks.
    pub funcs: Vec<Arc<Func>>,
    /// Variables.
    pub globals: Vec<Arc<Global>>,
    /// Device functions whose address the code of some function takes or some variable is initialized with, in ascending
    /// order: the possible targets of an indirect call without a list of targets, regardless of the kernel that stored the address.
    pub address_taken: Arc<[FuncId]>,
    /// Names of kernels and visible functions.
    pub func_names: Arc<HashMap<Box<str>, FuncId>>,
    /// Names of visible variables.
    pub global_names: Arc<HashMap<Box<str>, GlobalId>>,
    /// Highest `.target` of the modules.
    pub target: Target,
    /// Highest `.version` of the modules.
    pub version: Version,
    /// `.address_size`
    pub address_size: u32,
    /// Bytes at the bottom of every thread's local window (local addresses `0..thread_block`) that hold module-scope `.reg`
    /// and `.local` variables of old PTX; zero when a kernel starts. Accesses to them are [`crate::MemBase::Absolute`]. The
    /// stack lies above.
    pub thread_block: u32,
    /// Addresses of shared variables have the rank of the CTA in its cluster in bits 24 to 31, as on hardware (ptxas for sm_90 shifts
    /// `SR_CgaCtaId`), so that programs find the same variable of another CTA by changing these bits. True if the program names clusters.
    pub ranked_addresses: bool,
    /// Facts of the stage.
    pub stage: S,
}

impl Ir<Placed> {
    /// Where the first variable may be that a kernel's threads have in their local windows: those of the module lie below its frame.
    pub fn first_local(&self, kernel: FuncId) -> u32 {
        if self.thread_block > 0 { 0 } else { self.stage.funcs[kernel.0 as usize].base }
    }
}

impl<S: Stage> Ir<S> {
    /// A function.
    pub fn func(&self, id: FuncId) -> &Func {
        &self.funcs[id.0 as usize]
    }

    /// A variable.
    pub fn global(&self, id: GlobalId) -> &Global {
        &self.globals[id.0 as usize]
    }
}
