//! The state of the emission of one function.

use super::{
    Options,
    affine::{Row, Shadow},
    blend::Blend,
    prepare::Prepared,
    reach::Reached,
    serial::Serial,
};
use crate::emit::{
    barrier::{kernel::Current, spill::SpillPlan},
    call::Blocks,
    memory::{ahead::ChecksAhead, combine::Combined, fused::Part, group::Grouped, interleaved::Interleaved},
    site::Site,
    text::{Elem, Ty, Val, Writer},
    warp::{held::Held, product::Side, rows::Buffers},
};
use margay_ir::{
    BlockId, Func, FuncId, Ir, Placed,
    pass::{Liveness, Ranges, Shape},
};
use std::collections::{HashMap, HashSet};

/// Where a register lives: a variable on the native stack, of a type that depends on its shape.
#[derive(Clone, Debug)]
pub(in crate::emit) struct Slot {
    pub pointer: Val,
    pub shape: Shape,
    pub elem: Elem,
    /// The affine form of a varying register, if addresses depend on it.
    pub shadow: Option<Shadow>,
}

/// The version of a block that is being emitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::emit) enum Mode {
    Full,
    Masked,
}

/// How a function is called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::emit) enum Role {
    /// A device function, called for the lanes of a mask.
    Device,
    /// A kernel called once per warp, on a fiber on which it can suspend; why it cannot loop over CTAs and warps.
    Warp(&'static str),
    /// A kernel that loops over CTAs and warps itself.
    Grid,
}

/// The emission of one function: its analyses, and the state of what has been written so far.
pub(in crate::emit) struct Emitter<'a> {
    /// The program.
    pub ir: &'a Ir<Placed>,
    /// The function.
    pub id: FuncId,
    /// The suffix of its symbol, if it has several bodies.
    pub suffix: &'static str,
    /// The prepared copy of the function, with the results of analyses.
    pub prepared: &'a Prepared,
    /// [`Prepared::func`].
    pub func: &'a Func,
    pub options: &'a Options,
    pub role: Role,
    /// Properties of the device functions that the kernel reaches.
    pub reached: &'a Reached,
    pub live: Liveness,
    /// The text.
    pub w: Writer,
    /// By register.
    pub slots: Vec<Slot>,
    /// There is a masked version.
    pub masks: bool,
    /// Budget of back edges until the next yield or safepoint: a variable of 32 bits.
    pub fuel: Option<Val>,
    /// The version that is being emitted.
    pub mode: Mode,
    /// Active lanes, `<32 x i1>`; all in the full version.
    pub active: Val,
    pub lane_sets: LaneSets,
    pub grid_loop: GridLoop,
    /// The part of the function that is being emitted.
    pub region: Region,
    /// The block that is being emitted.
    pub here: BlockId,
    /// The instruction that is being emitted, an index into [`Func::insts`].
    pub inst: u32,
    /// Its location, an index into [`Func::places`].
    pub at: u32,
    /// The row of lanes for which affine operands are read as scalars.
    pub row: Option<Row>,
    /// The values that cross barriers, and how they do.
    pub spills: SpillPlan,
    /// The sites of all functions of the kernel so far.
    pub sites: &'a mut Vec<Site>,
    /// Values that the entry block provides.
    pub entry: Entry,
    /// Where writes must preserve inactive lanes.
    pub blend: Blend,
    /// The masks of pending lanes are pinned in memory.
    pub(super) pins_masks: bool,
    pub floats: Floats,
    pub accesses: Accesses,
    pub local: Local,
    pub calls: Calls,
    pub(super) serial: Serial,
}

/// Sets of lanes, each in a variable.
#[derive(Default)]
pub(in crate::emit) struct LaneSets {
    /// Lanes that have not exited: a variable of 32 bits.
    pub alive: Option<Val>,
    /// Per block: the lanes pending there.
    pub pending: Vec<Val>,
    /// Per cut ([`Prepared::barriers`]): the lanes parked there, where warps run on fibers.
    pub waiting: Vec<Val>,
    /// The held lanes, if lanes may be held.
    pub held: Option<Held>,
}

/// In kernels that loop over CTAs and warps.
#[derive(Default)]
pub(in crate::emit) struct GridLoop {
    /// The current warp and CTA.
    pub current: Option<Current>,
    /// All threads of a CTA reach every barrier, in full warps.
    pub together: bool,
    /// Threads reach the same barriers only if what they load from one place is the same, so code checks that they do.
    pub unless_racing: bool,
    /// Every instruction is over when the next one begins.
    pub synchronous: bool,
    /// Per barrier with a reduction: variables that count true predicates and all predicates.
    pub sums: HashMap<u32, [Val; 2]>,
}

/// State for floating-point instructions.
pub(in crate::emit) struct Floats {
    /// By register: its NaNs are canonicalized late (see `arithmetic/nan.rs`).
    pub lazy_nans: Vec<bool>,
    /// By register: it never holds a subnormal of single precision (see `arithmetic/subnormal.rs`).
    pub normal: Vec<bool>,
    /// The function takes square roots.
    pub roots: bool,
}

/// State that accesses to memory share.
pub(in crate::emit) struct Accesses {
    /// Bounds of registers, in functions that access shared memory through them.
    pub ranges: Ranges,
    /// Accesses that share a check, by instruction.
    pub groups: HashMap<u32, Grouped>,
    /// Accesses that are performed as one, by instruction.
    pub fused: HashMap<u32, Part>,
    /// The alignment of the access that is being emitted, if it is less than its size.
    pub aligned: Option<u32>,
    /// The additions that are combined, if there are any.
    pub combined: Option<Combined>,
    /// The number of loads that prefetch for later iterations.
    pub prefetched: u32,
    /// The number of accesses that were unrolled over the lanes.
    pub unrolled: u32,
    /// The checks before the loop over warps.
    pub ahead: ChecksAhead,
}

/// The function's local memory.
#[derive(Default)]
pub(in crate::emit) struct Local {
    /// By frame variable: the array of `<32 x i32>` to which it is promoted.
    pub frame: Vec<Option<Val>>,
    /// Promoted frame variables that may be read uninitialized, with their sizes in bytes.
    pub uninitialized: Vec<(Val, u64)>,
    /// Whether an observer need not see accesses to it.
    pub private: bool,
    /// The frame's place, if its lanes are interleaved.
    pub interleaved: Option<Interleaved>,
    /// Some code accesses the local windows.
    pub used: bool,
    /// Lines that keep the address of the warp's local windows in the context.
    pub address_lines: HashSet<String>,
}

/// The part of a function that is emitted at a time: all of it, or what lies between two barriers.
#[derive(Default)]
pub(in crate::emit) struct Region {
    /// Its blocks in layout order.
    pub blocks: Vec<BlockId>,
    /// The prefix of their labels.
    pub tag: String,
    /// It ends at one barrier at most.
    pub lone_barrier: bool,
    /// Its loads from shared memory race with nothing, see [`Emitter::only_loads_shared`](super::Emitter::only_loads_shared).
    pub only_loads: bool,
}

/// Values that the entry block loads or allocates once for all uses.
#[derive(Default)]
pub(in crate::emit) struct Entry {
    /// Addresses of values of MXCSR, by rounding mode.
    pub modes: HashMap<u32, Val>,
    /// Fields of the context, by offset and element type.
    pub context: HashMap<(u64, Elem), Val>,
    /// Kernel parameters, by offset and element type.
    pub parameters: HashMap<(u64, Elem), Val>,
    /// Buffers for the rows that helpers read and write; shared, since their uses do not overlap.
    pub buffers: HashMap<(usize, bool), Val>,
    /// Buffers for factors of matrix products, by side and type; the one filled last is last.
    pub factors: HashMap<(Side, String), Vec<Val>>,
    /// Buffers for registers of fragments.
    pub rows: Buffers,
}

/// State for calls, and for the function's own return.
#[derive(Default)]
pub(in crate::emit) struct Calls {
    /// Memory of call sites, by instruction.
    pub blocks: HashMap<u32, Blocks>,
    /// Types and variables of the function's results.
    pub results: Vec<(Ty, Val)>,
    /// The lanes' stack ends, if some instruction moves them.
    pub stack_ends: Option<Val>,
}
