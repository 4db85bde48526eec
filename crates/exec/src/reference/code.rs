//! Decoded code: what a function becomes before it runs.
//!
//! An [`Op`] holds its handler, its semantics and the offsets of its registers' rows, so that executing one looks nothing up.
//! What does not fit an op lies in side tables of [`FuncCode`], indexed by [`Op::x`].

use super::{ctx::Ctx, step::Home, unwritten::Site};
use crate::{
    Image, Row,
    sem::PureFn,
    texture::{Geometry, Kind},
};
use margay_ir::{Builtin, Func, FuncId, MemSpace, SourcePlace};
use margay_isa::{Component, Mod, Special, Type, Variant};
use std::sync::{Arc, OnceLock};

/// How a register lies in rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Shape {
    /// One row, 32 bits a lane or fewer.
    Word,
    /// Two rows, 64 bits a lane.
    Double,
    /// Four rows, 128 bits a lane.
    Quad,
    /// One row whose word 0 is a mask of lanes.
    Pred,
}

impl Shape {
    /// The shape of a register of a type.
    pub const fn of(ty: Type) -> Shape {
        match ty.bits() {
            1 if matches!(ty, Type::Pred) => Shape::Pred,
            0..=32 => Shape::Word,
            33..=64 => Shape::Double,
            _ => Shape::Quad,
        }
    }

    /// Rows that it takes.
    #[inline(always)]
    pub const fn rows(self) -> usize {
        match self {
            Shape::Word | Shape::Pred => 1,
            Shape::Double => 2,
            Shape::Quad => 4,
        }
    }
}

/// A register or a splatted constant that is read: index of its first row, number of rows, and which of both.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Src(u32);

const CONST: u32 = 1 << 31;
const PRED: u32 = 1 << 29;
const ROWS_AT: u32 = 26;
const INDEX: u32 = (1 << ROWS_AT) - 1;

impl Src {
    /// A register.
    pub const fn reg(row: u32, shape: Shape) -> Src {
        let pred = if matches!(shape, Shape::Pred) { PRED } else { 0 };
        Src(row | (shape.rows() as u32) << ROWS_AT | pred)
    }

    /// A constant.
    pub const fn constant(row: u32, shape: Shape) -> Src {
        Src(Src::reg(row, shape).0 | CONST)
    }

    /// Whether it is a constant.
    #[inline(always)]
    pub const fn is_const(self) -> bool {
        self.0 & CONST != 0
    }

    /// First row.
    #[inline(always)]
    pub const fn row(self) -> usize {
        (self.0 & INDEX) as usize
    }

    /// Its shape.
    #[inline(always)]
    pub const fn shape(self) -> Shape {
        match self.rows() {
            1 if self.0 & PRED != 0 => Shape::Pred,
            1 => Shape::Word,
            2 => Shape::Double,
            _ => Shape::Quad,
        }
    }

    /// Number of rows.
    #[inline(always)]
    pub const fn rows(self) -> usize {
        (self.0 >> ROWS_AT & 7) as usize
    }

    /// Its rows.
    #[inline(always)]
    pub fn of<'r>(self, regs: &'r [Row], consts: &'r [Row]) -> &'r [Row] {
        let from = if self.is_const() { consts } else { regs };
        &from[self.row()..self.row() + self.rows()]
    }
}

/// A register that is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dst {
    /// First row; [`NOWHERE`] for `_`.
    pub row: u32,
    /// Its shape.
    pub shape: Shape,
    /// Bits of the register.
    pub bits: u8,
}

/// No register.
pub const NOWHERE: u32 = u32::MAX;

/// How execution goes on after an op.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flow {
    /// With the next op.
    Next,
    /// With that op of the current function.
    Jump(u32),
    /// The scheduler decides: the handler has put away the group.
    Park,
    /// [`Ctx::stop`] says why not.
    Stop,
}

/// What executes an op.
pub type Handler = for<'c, 'o> fn(&'c mut Ctx<'_>, &'o Op) -> Flow;

/// No guard.
pub const UNGUARDED: u32 = u32::MAX;
/// Set in [`Op::guard`] when the predicate is negated.
pub const NEGATED: u32 = 1 << 31;

/// A decoded instruction.
#[derive(Clone, Copy)]
pub struct Op {
    /// What executes it.
    pub run: Handler,
    /// Semantics of a pure row.
    pub pure: PureFn,
    /// Row of the guard's predicate, [`NEGATED`] or not; or [`UNGUARDED`].
    pub guard: u32,
    /// First row of the destination.
    pub dst: u32,
    /// The first sources.
    pub src: [Src; 3],
    /// A side table's index, a branch's target, or whatever the handler wants.
    pub x: u32,
    /// Index into the function's variants.
    pub variant: u32,
    /// Shape of the destination.
    pub shape: Shape,
    /// Another small number of the handler's.
    pub y: u8,
}

/// A pure row with more than three sources or more than one destination.
pub struct WideOp {
    /// Sources.
    pub src: Vec<Src>,
    /// Destinations.
    pub dst: Vec<Dst>,
}

/// Base of a memory operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Base {
    /// A register of 32 or 64 bits.
    Reg(Src),
    /// The same address in all lanes.
    Fixed,
    /// The frame: local address of every lane's frame.
    Frame,
    /// What the caller put where the unsized formal starts.
    Incoming,
}

/// A memory operand.
#[derive(Clone, Copy, Debug)]
pub struct Address {
    /// Where it goes.
    pub space: MemSpace,
    /// The base.
    pub base: Base,
    /// Added to the base.
    pub offset: i64,
}

/// Operation of an atomic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum AtomicOp {
    And,
    Or,
    Xor,
    Exch,
    Cas,
    Add,
    Inc,
    Dec,
    Min,
    Max,
}

/// Memory ordering of an access, as far as the host must know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// Weak, relaxed, volatile.
    Relaxed,
    /// Acquire.
    Acquire,
    /// Release.
    Release,
}

/// A load, a store, an atomic, or anything else with an address.
pub struct MemOp {
    /// Where.
    pub address: Address,
    /// Element type.
    pub ty: Type,
    /// Bytes of an element in memory.
    pub size: u32,
    /// Elements.
    pub count: u32,
    /// Destinations, one an element.
    pub dst: Vec<Dst>,
    /// Values: one an element; for atomics `b` of all elements, then `c`.
    pub src: Vec<Src>,
    /// Ordering.
    pub order: Order,
    /// For atomics: what they do.
    pub atomic: AtomicOp,
    /// An access to a `.param` variable by name, whose address nobody takes: on the GPU such a variable is registers, and an
    /// access that straddles elements is harmless. ptxas says nothing about it.
    pub straddles: bool,
}

/// An instruction that the lanes of a warp execute together.
pub struct WarpOp {
    /// Destinations.
    pub dst: Vec<Dst>,
    /// Sources as they stand; inverted predicates are inverted.
    pub src: Vec<Src>,
    /// Type.
    pub ty: Type,
    /// Which.
    pub kind: WarpKind,
    /// Instructions with the same number can complete each other: same qualifiers.
    pub class: u32,
}

/// Which warp instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WarpKind {
    /// `shfl`
    Shuffle(Mod),
    /// `vote` with all, any, uni, ballot
    Vote(Mod),
    /// `match.any`
    MatchAny,
    /// `match.all`
    MatchAll,
    /// `redux` with an operation; with `.abs`, with `.NaN`
    Redux(Mod, bool, bool),
    /// `elect`
    Elect,
    /// `bar.warp.sync`
    Barrier,
}

/// `bar`, `barrier`.
pub struct BarrierOp {
    /// Number.
    pub id: Src,
    /// Threads; `None` for all.
    pub count: Option<Src>,
    /// The predicate of `.red`.
    pub pred: Option<Src>,
    /// Result of `.red`.
    pub dst: Option<Dst>,
    /// What it does.
    pub kind: BarrierKind,
}

/// What a barrier instruction does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BarrierKind {
    /// Arrive and wait.
    Sync,
    /// Arrive.
    Arrive,
    /// Arrive, wait and combine predicates: `.popc`, `.and`, `.or`.
    Red(Mod),
}

/// A value that travels in a call: where it lives on this side, and its plan.
pub struct Travel {
    /// Bytes.
    pub size: u32,
    /// Where it lives on this side.
    pub home: Home,
    /// Its pieces.
    pub pieces: Vec<Piece>,
    /// An unsized array: it lies at this offset of the outgoing area, `size` bytes of it.
    pub at: Option<u32>,
}

/// A piece of a plan, with registers numbered.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// First byte of the value.
    pub start: u32,
    /// Bytes.
    pub len: u32,
    /// Where it is.
    pub at: Wire,
}

/// A place, with registers numbered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wire {
    /// First row of the register in the model register file.
    Reg(u32),
    /// Offset in the caller's outgoing area.
    Area(u32),
    /// Behind the 32-bit pointer in that register.
    Behind(u32),
}

/// A call site.
pub struct CallOp {
    /// Who is called.
    pub callee: Target,
    /// Index of the site in the function.
    pub site: u32,
    /// Inputs on the caller's side.
    pub args: Vec<Travel>,
    /// Returns on the caller's side.
    pub rets: Vec<Travel>,
    /// For returns behind pointers: register and offset of the buffer in the caller's frame.
    pub buffers: Vec<(u32, u32)>,
}

/// A copy that is asynchronous by the text. It is done at once here: nothing may count on its being late.
pub struct CopyOp {
    /// To where.
    pub to: Address,
    /// From where; for [`CopyKind::Zero`] and values from registers, nowhere.
    pub from: Option<Address>,
    /// The barrier object that hears of it.
    pub mbarrier: Option<Address>,
    /// Bytes.
    pub size: Src,
    /// Fewer bytes to read than to write (the rest is zero), the mask of destination CTAs, or the mask of bytes.
    pub extra: Option<Src>,
    /// What it does.
    pub kind: CopyKind,
}

/// What a copy does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CopyKind {
    /// `cp.async`; `extra` is the number of bytes that are read.
    Small,
    /// `cp.async` with a predicate as `extra`: nothing is read where it is true.
    SmallIgnored,
    /// Bulk copy.
    Bulk,
    /// Bulk copy to the CTAs of the mask `extra`.
    Multicast,
    /// Bulk copy of the bytes of each 16 that the mask `extra` names.
    Masked,
    /// Bulk copy less `extra` bytes at the front and those at the end, which are left as they are.
    Trimmed {
        /// Bytes at the end.
        right: Src,
    },
    /// Bulk reduction.
    Reduce(AtomicOp, Type),
    /// `st.bulk`
    Zero,
}

/// An operation on barrier objects in shared memory.
pub struct ObjectOp {
    /// Where the object lies.
    pub address: Address,
    /// Its operand: count, transaction count, state or parity.
    pub operand: Option<Src>,
    /// Mask of the CTAs of the cluster whose objects are meant, instead of the one at the address.
    pub ctas: Option<Src>,
    /// Where the result goes.
    pub dst: Option<Dst>,
    /// What it does.
    pub kind: ObjectKind,
}

/// What an operation on a barrier object does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ObjectKind {
    /// `mbarrier.init`
    Init,
    /// `mbarrier.inval`
    Inval,
    /// `mbarrier.expect_tx`
    Expect,
    /// `mbarrier.complete_tx`
    Complete,
    /// `mbarrier.arrive` (with `.noComplete`, too)
    Arrive,
    /// `mbarrier.arrive_drop`
    Drop,
    /// `mbarrier.arrive.expect_tx`
    ArriveExpect,
    /// `mbarrier.arrive_drop.expect_tx`
    DropExpect,
    /// `mbarrier.test_wait`, `mbarrier.try_wait`
    Wait,
    /// The same with `.parity`
    WaitParity,
    /// `mbarrier.pending_count`; the operand is the state, and there is no object.
    Pending,
    /// `cp.async.mbarrier.arrive`: the copies are done, so it arrives; with `.noinc` that counts.
    AfterCopies(bool),
}

/// A copy of a part of a tensor, done at once as [`CopyOp`].
pub struct TensorOp {
    /// The tensor map.
    pub map: Address,
    /// Coordinates of the first element, innermost dimension first; a column and four rows for [`TensorMode::Rows`].
    pub coordinates: Vec<Src>,
    /// The place in shared memory.
    pub shared: Address,
    /// The barrier object that hears of it.
    pub mbarrier: Option<Address>,
    /// Offsets of [`TensorMode::Pixels`].
    pub offsets: Vec<Src>,
    /// CTAs that get it.
    pub mask: Option<Src>,
    /// What it does.
    pub kind: TensorKind,
    /// Which elements.
    pub mode: TensorMode,
    /// `.cta_group::2`: one barrier object for a pair of CTAs.
    pub pair: bool,
}

/// What a copy of a tensor does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TensorKind {
    /// To shared memory.
    Load,
    /// To global memory.
    Store,
    /// Into global memory.
    Reduce(AtomicOp),
}

/// Which elements a copy of a tensor moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TensorMode {
    /// A box.
    Tile,
    /// Four rows (`.tile::gather4`, `.tile::scatter4`).
    Rows,
    /// `.im2col`, `.im2col_no_offs`
    Pixels,
    /// `.im2col::w`, `.im2col_no_offs::w`, and `.im2col::w::128`
    Wide {
        /// In groups of 32.
        grouped: bool,
    },
}

/// `tensormap.replace`
pub struct MapOp {
    /// The tensor map.
    pub address: Address,
    /// The new value.
    pub value: Src,
    /// First byte of the field.
    pub at: u64,
    /// Bytes of the field.
    pub size: usize,
}

/// An instruction of the fifth generation of tensor cores, with the names of its operands.
pub struct FifthOp {
    /// Registers written.
    pub dst: Vec<Dst>,
    /// Values read.
    pub values: Vec<(&'static str, Src)>,
    /// Addresses, of shared or tensor memory.
    pub addresses: Vec<(&'static str, Address)>,
}

/// A matrix instruction: fragments taken apart.
pub struct MatrixOp {
    /// Registers written.
    pub dst: Vec<Dst>,
    /// Registers and constants read, less the address.
    pub src: Vec<Src>,
    /// The memory operand.
    pub address: Option<Address>,
    /// Of a product or transposition.
    pub pure: Option<PureFn>,
}

/// How `tex` chooses the level of detail.
#[derive(Clone, Debug)]
pub enum LodOp {
    /// The finest.
    Base,
    /// Operand of the coordinates' type.
    Level(Src),
    /// Gradients in x and in y.
    Gradient(Vec<Src>, Vec<Src>),
}

/// `tex`, `tld4`.
pub struct TextureOp {
    /// The texture.
    pub handle: Src,
    /// A sampler of its own.
    pub sampler: Option<Src>,
    /// Shape.
    pub geometry: Geometry,
    /// Coordinates; sample and layer stand before them.
    pub at: Vec<Src>,
    /// Coordinates are integers.
    pub integer: bool,
    /// Offsets in texels.
    pub offset: Vec<Src>,
    /// Depth to compare with.
    pub depth: Option<Src>,
    /// Level of detail.
    pub lod: LodOp,
    /// `tld4` of that channel.
    pub gather: Option<usize>,
    /// Four elements, or two pairs of halves.
    pub dst: Vec<Dst>,
    /// Whether the texel is resident.
    pub resident: Option<Dst>,
    /// Type of the elements.
    pub ty: Type,
}

/// `suld`, `sust`, `sured`.
pub struct SurfaceOp {
    /// The surface.
    pub handle: Src,
    /// Coordinates inside of a layer.
    pub dims: usize,
    /// A layer stands before them.
    pub layered: bool,
    /// Coordinates.
    pub at: Vec<Src>,
    /// What is done outside: `.trap`, `.clamp`, `.zero`.
    pub clamp: Mod,
    /// x counts samples, and stores convert (`.p`).
    pub formatted: bool,
    /// Type of an element.
    pub ty: Type,
    /// Destinations of a load.
    pub dst: Vec<Dst>,
    /// Values that are stored or reduced.
    pub src: Vec<Src>,
    /// The reduction.
    pub reduce: Option<AtomicOp>,
}

/// `txq`, `suq`, `istypep`.
pub struct QueryOp {
    /// Texture, sampler or surface.
    pub handle: Src,
    /// The level that is asked about.
    pub level: Option<Src>,
    /// What is asked; for `istypep` nothing.
    pub what: Option<Mod>,
    /// Which kind of object it must be.
    pub kind: Kind,
    /// Where the answer goes.
    pub dst: Dst,
}

/// Who is called.
#[derive(Clone, Debug)]
pub enum Target {
    /// A function with a body.
    Func(FuncId),
    /// A function of the device library.
    Builtin(Builtin),
    /// A function without a body.
    Undefined(FuncId),
    /// Through a register.
    Indirect(Src, Option<Vec<FuncId>>),
}

/// A decoded function.
pub struct FuncCode {
    /// Which.
    pub id: FuncId,
    /// Its ops; control never runs off the end.
    pub ops: Vec<Op>,
    /// Index into [`Func::places`] by op.
    pub at: Vec<u32>,
    /// Ops of an instruction: the first, and the one behind the last.
    pub by_inst: Vec<(u32, u32)>,
    /// First op of a block's terminator, by block; `u32::MAX` for blocks that are not reached.
    pub by_term: Vec<u32>,
    /// What begins at each op, when somebody has asked.
    pub sites: OnceLock<Vec<Site>>,
    /// First row by register; `u32::MAX` for those that are never read and never written.
    pub row_of: Vec<u32>,
    /// Splatted constants.
    pub consts: Vec<Row>,
    /// Rows of a frame's registers.
    pub rows: u32,
    /// The function.
    pub func: Arc<Func>,
    /// Its variants, one step nearer.
    pub variants: Vec<Variant>,
    /// Side tables.
    pub wides: Vec<WideOp>,
    /// See [`FuncCode::wides`].
    pub mems: Vec<MemOp>,
    /// See [`FuncCode::wides`].
    pub warps: Vec<WarpOp>,
    /// See [`FuncCode::wides`].
    pub barriers: Vec<BarrierOp>,
    /// See [`FuncCode::wides`].
    pub copies: Vec<CopyOp>,
    /// See [`FuncCode::wides`].
    pub objects: Vec<ObjectOp>,
    /// See [`FuncCode::wides`].
    pub matrices: Vec<MatrixOp>,
    /// See [`FuncCode::wides`].
    pub tensors: Vec<TensorOp>,
    /// See [`FuncCode::wides`].
    pub fifths: Vec<FifthOp>,
    /// See [`FuncCode::wides`].
    pub maps: Vec<MapOp>,
    pub textures: Vec<TextureOp>,
    /// See [`FuncCode::wides`].
    pub surfaces: Vec<SurfaceOp>,
    /// See [`FuncCode::wides`].
    pub queries: Vec<QueryOp>,
    /// See [`FuncCode::wides`].
    pub calls: Vec<CallOp>,
    /// See [`FuncCode::wides`].
    pub specials: Vec<(Special, Component)>,
    /// Tables of branch targets.
    pub switches: Vec<Vec<u32>>,
    /// Inputs on the callee's side.
    pub args: Vec<Travel>,
    /// Returns on the callee's side.
    pub rets: Vec<Travel>,
    /// Registers with hidden pointers that the prologue keeps, in order of [`super::state::Frame::hidden`].
    pub hidden: Vec<u32>,
    /// Bytes of a frame in local memory.
    pub frame_size: u32,
    /// Its alignment.
    pub frame_align: u32,
    /// Offset of the outgoing area.
    pub outgoing: u32,
    /// It takes memory from the stack (`alloca`).
    pub local: bool,
}

impl FuncCode {
    /// The variant of an op.
    pub fn variant(&self, op: &Op) -> &Variant {
        &self.variants[op.variant as usize]
    }

    /// Where an op stands.
    pub fn place(&self, pc: u32) -> SourcePlace {
        let at = self.at.get(pc as usize).copied().unwrap_or_default();
        self.func.places.get(at as usize).copied().unwrap_or_default()
    }
}

/// A kernel and everything that it reaches, decoded.
pub struct Code {
    /// The program.
    pub image: Arc<Image>,
    /// The kernel.
    pub kernel: FuncId,
    /// By function id; `None` for what the kernel does not reach.
    pub funcs: Vec<Option<FuncCode>>,
    /// Rows of the model register file of the ABI.
    pub wires: u32,
    /// Some code reached needs local memory.
    pub local: bool,
    /// The ABI is `ptx`: values go straight from home to home.
    pub direct: bool,
}
