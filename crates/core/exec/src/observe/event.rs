//! Events of an execution other than synchronization: accesses, starts of CTAs, uses that the manual leaves undefined.

use super::{AccessKind, Ordering};
use crate::{Frame, LANES, Memory, Row};
use margay_ir::{FuncId, MemSpace, SourcePlace, VReg};
use std::cell::Cell;

/// The lanes that execute an instruction, and where.
#[derive(Clone, Copy, Debug)]
pub struct Actor<'a> {
    /// CTA index in the grid.
    pub cta: [u32; 3],
    /// Warp index in the CTA.
    pub warp: u32,
    /// The executing lanes.
    pub lanes: u32,
    /// Function and place of the instruction.
    pub at: (FuncId, SourcePlace),
    /// Callers, innermost first.
    pub callers: &'a [Frame],
}

/// A memory instruction of a group of lanes, before it takes effect.
#[derive(Clone, Copy)]
pub struct MemoryEvent<'a> {
    /// Who executes it, and where.
    pub actor: Actor<'a>,
    /// Host addresses by lane.
    pub addresses: &'a [u64; LANES],
    /// Bytes accessed per lane.
    pub size: u32,
    /// Bytes per element: a vector access counts as several (manual, section 8.2.4).
    pub element: u32,
    /// The instruction's space.
    pub space: MemSpace,
    /// Load, store or atomic.
    pub access: AccessKind,
    /// Semantics and scope.
    pub order: Ordering,
    /// Host address and size of the shared windows: the own CTA's first, then those of the other CTAs of the cluster.
    pub windows: &'a [(u64, u64)],
    /// Host address and size of the local windows of the warp.
    pub local: (u64, u64),
    /// The stored values by lane and byte of the access, if they are in registers.
    pub values: Option<&'a dyn Fn(usize, usize) -> u8>,
    /// The lanes whose stored value is undefined, by element, and which were not reported: copies of padding, and values that
    /// stay in the thread's own memory.
    pub undefined: Undefined,
    /// Reads the current contents of memory at a host address; false if it is not accessible.
    pub peek: &'a dyn Fn(u64, &mut [u8]) -> bool,
    /// The device's memory.
    pub memory: &'a Memory,
    /// Whether the engine follows the loaded values: it asks [`super::Observer::undefined_lanes`] which are undefined, and reports
    /// their uses.
    pub tracked: bool,
    /// The address of lane 0, active or not, and the bytes from one lane to the next, if the engine knows that addresses are so.
    pub row: Option<(u64, u64)>,
    /// What the observer remembers of the place, at first 0. In a launch, it is of this place and its callers alone.
    pub memo: &'a Cell<u32>,
    /// The rows of the function's registers that are live, if the engine knows them; of a predicate, word 0 is the mask.
    pub registers: Option<&'a dyn Fn(VReg) -> Option<Vec<Row>>>,
}

/// A memory instruction whose addresses increase evenly from lane to lane, in short; before it takes effect.
#[derive(Clone, Copy)]
pub struct RowEvent<'a> {
    /// Who executes it, and where.
    pub actor: Actor<'a>,
    /// The address of lane 0, active or not, and the bytes from one lane to the next.
    pub row: (u64, u64),
    /// Bytes accessed per lane.
    pub size: u32,
    /// Host address and size of the local windows of the warp.
    pub local: (u64, u64),
    /// As in [`MemoryEvent`].
    pub memo: &'a Cell<u32>,
}

/// A memory instruction of lanes at addresses of any kind, in short; before it takes effect.
#[derive(Clone, Copy)]
pub struct SpreadEvent<'a> {
    /// Who executes it, and where.
    pub actor: Actor<'a>,
    /// Host addresses by lane.
    pub addresses: &'a [u64; LANES],
    /// Bytes accessed per lane.
    pub size: u32,
    /// Load, store or atomic.
    pub access: AccessKind,
    /// Semantics and scope.
    pub order: Ordering,
    /// As in [`MemoryEvent`].
    pub memo: &'a Cell<u32>,
}

/// A weak access by lanes whose addresses increase evenly, among [`RowLoads`].
#[derive(Clone, Copy, Default, Debug)]
#[repr(C)]
pub struct RowLoad {
    /// The address of lane 0, active or not.
    pub first: u64,
    /// Its place, by number.
    pub place: u32,
    /// The executing lanes.
    pub lanes: u32,
    /// Warp index in the CTA.
    pub warp: u32,
}

/// A place of [`RowLoad`]s.
#[derive(Clone, Debug)]
pub struct RowPlace {
    /// Function and place of the instruction.
    pub at: (FuncId, SourcePlace),
    /// Load or store, semantics and scope, and bytes per element.
    pub access: Option<(AccessKind, Ordering, u32)>,
    /// Bytes accessed per lane.
    pub size: u32,
    /// Bytes from one lane to the next.
    pub stride: u64,
    /// As in [`MemoryEvent`].
    pub memo: Cell<u32>,
}

/// Loads of a CTA's warps in the order of their execution, with no other event in between, and nothing that changed memory.
#[derive(Clone, Copy)]
pub struct RowLoads<'a> {
    /// CTA index in the grid.
    pub cta: [u32; 3],
    /// The loads.
    pub list: &'a [Cell<RowLoad>],
    /// The places that they refer to.
    pub places: &'a [RowPlace],
    /// Host address and size of the local windows of warp 0, which those of the other warps follow.
    pub local: (u64, u64),
}

/// An access to the tensor memory of a CTA, after it took effect.
#[derive(Clone, Copy, Debug)]
pub struct TensorEvent<'a> {
    /// Who executes it, and where. What all lanes of a warp do, they do together.
    pub actor: Actor<'a>,
    /// The CTA whose memory it is.
    pub cta: [u32; 3],
    /// What is accessed: lane, first column, number of columns.
    pub runs: &'a [(u32, u32, u32)],
    /// Load or store; [`AccessKind::Free`] for deallocation.
    pub access: AccessKind,
    /// Semantics and scope.
    pub order: Ordering,
}

/// Undefined lanes, by element of an access.
pub type Undefined = [u32; 8];

/// The start of a CTA.
#[derive(Clone, Copy, Debug)]
pub struct CtaEvent<'a> {
    /// CTA index in the grid.
    pub cta: [u32; 3],
    /// Host address and size of its shared memory.
    pub shared: (u64, u64),
    /// Host addresses and sizes of the local memory of its warps.
    pub locals: &'a [(u64, u64)],
}

/// The subject of an [`UndefinedEvent`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Concern {
    /// The use of an uninitialized value.
    Uninitialized,
    /// Inactive lanes in the member mask of a warp operation, or a product without its fence.
    Participants,
    /// A register that a product has not written yet.
    InFlight,
    /// An access beyond its variable, but within memory that the thread may access.
    Bounds,
}

/// A use that the manual leaves undefined.
#[derive(Clone, Debug)]
pub struct UndefinedEvent<'a> {
    /// Who (one lane), and where.
    pub actor: Actor<'a>,
    /// Its subject.
    pub concern: Concern,
    /// A description with the operand.
    pub what: String,
    /// The load that the undefined value comes from, if it was loaded, or the shuffle that has read it from an inactive lane.
    pub origin: Option<(FuncId, SourcePlace)>,
    /// How the value is used, if that is not the description.
    pub usage: Option<String>,
}
