//! Decoded code: what a function becomes before it runs.
//!
//! An [`Op`] holds its handler, its semantics and the offsets of its registers' rows, so that executing one looks nothing up.
//! What does not fit an op lies in side tables of [`FuncCode`], indexed by [`Op::x`].

mod call;
mod memory;
mod register;
mod tensor;
mod warp;

pub use {call::*, memory::*, register::*, tensor::*, warp::*};

use super::{ctx::Ctx, uninitialised::Site};
use crate::{Image, Row, sem::PureFn};
use margay_ir::{Func, FuncId, SourcePlace};
use margay_isa::{Component, Special, Variant};
use std::sync::{Arc, OnceLock};

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
    pub args: Vec<Transfer>,
    /// Returns on the callee's side.
    pub rets: Vec<Transfer>,
    /// Registers with hidden pointers that the prologue keeps, in order of [`super::state::Frame::hidden`].
    pub hidden: Vec<u32>,
    /// Rows of the parameter block in which returns lie.
    pub space: u32,
    /// Where an unsized formal starts in the caller's outgoing area.
    pub start: u32,
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
    /// By function id; `None` for what the kernel does not reach, which may be thousands of functions.
    pub funcs: Vec<Option<Box<FuncCode>>>,
    /// Rows of the model register file of the ABI.
    pub registers: u32,
    /// Some code reached needs local memory.
    pub local: bool,
}
