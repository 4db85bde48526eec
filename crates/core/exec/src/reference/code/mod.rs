//! Decoded code, the form in which functions run.
//!
//! An [`Op`] holds its handler, its semantic function and the rows of its registers, so that executing it looks nothing
//! up. What does not fit into an op is in side tables of [`FuncCode`], indexed by [`Op::x`].

mod call;
mod memory;
mod register;
mod tensor;
mod warp;

pub use {call::*, memory::*, register::*, tensor::*, warp::*};

use super::{ctx::Ctx, single_step, uninitialized::Sites};
use crate::{Image, Ordering, Row, sem::PureFn};
use margay_ir::{Func, FuncId, SourcePlace, VReg, pass::tests_and_sets};
use margay_isa::{Component, Special, Variant};
use std::{
    ops::Range,
    sync::{Arc, OnceLock},
};

/// Where execution continues after an op.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flow {
    /// At the next op.
    Next,
    /// At this op of the current function.
    Jump(u32),
    /// The scheduler picks a group; the handler has already put this one away.
    Park,
    /// The execution stops, for the reason in [`Ctx::stop`].
    Stop,
}

impl Flow {
    /// At the next op, unless an error says where.
    pub fn after(done: Result<(), Flow>) -> Flow {
        done.err().unwrap_or(Flow::Next)
    }
}

/// A function that executes an op.
pub type Handler = for<'c, 'o> fn(&'c mut Ctx<'_>, &'o Op) -> Flow;

/// The guard of an unguarded op.
pub const UNGUARDED: u32 = u32::MAX;

/// Flag in [`Op::guard`]: the predicate is negated.
pub const NEGATED: u32 = 1 << 31;

/// A decoded instruction.
#[derive(Clone, Copy)]
pub struct Op {
    /// The handler.
    pub run: Handler,
    /// The semantic function of a pure row.
    pub pure: PureFn,
    /// Row of the guard's predicate, perhaps with [`NEGATED`]; or [`UNGUARDED`].
    pub guard: u32,
    /// First row of the destination.
    pub dst: u32,
    /// The first sources.
    pub src: [Src; 3],
    /// Index into a side table, target of a branch, or another operand of the handler.
    pub x: u32,
    /// Index into the function's variants.
    pub variant: u32,
    /// Shape of the destination.
    pub shape: Shape,
    /// Another operand of the handler.
    pub y: u8,
}

/// A pure row with more than three sources or more than one destination.
pub struct OperandList {
    /// Sources.
    pub src: Vec<Src>,
    /// Destinations.
    pub dst: Vec<Dst>,
}

/// A decoded function.
pub struct FuncCode {
    /// Function id.
    pub id: FuncId,
    /// Its ops; the last one never falls through.
    pub ops: Vec<Op>,
    /// Index into [`Func::places`] by op.
    pub at: Vec<u32>,
    /// Per instruction: its first op, and the one after its last.
    pub by_inst: Vec<(u32, u32)>,
    /// Per block: the first op of its terminator; `u32::MAX` for unreachable blocks.
    pub by_term: Vec<u32>,
    /// Per op: the instruction that begins there; computed on demand.
    pub sites: OnceLock<Sites>,
    /// Per variant: the memory orderings of its loads, stores and atomics; computed on demand.
    pub orders: OnceLock<Vec<[Ordering; 3]>>,
    /// The ops that test a place before the function sets it, in ascending order; computed on demand.
    pub tests: OnceLock<Vec<u32>>,
    /// First row per register; `u32::MAX` for registers that are never accessed.
    pub row_of: Vec<u32>,
    /// Splatted constants.
    pub consts: Vec<Row>,
    /// Number of rows of a frame's registers.
    pub rows: u32,
    /// The function.
    pub func: Arc<Func>,
    /// The variants of the function, in one vector.
    pub variants: Vec<Variant>,
    /// Pure rows with many operands: the first of the side tables that [`Op::x`] indexes.
    pub operand_lists: Vec<OperandList>,
    /// Loads, stores, atomics.
    pub mems: Vec<MemOp>,
    /// Shuffles, votes and other warp operations.
    pub warps: Vec<WarpOp>,
    /// Barriers of the CTA.
    pub barriers: Vec<BarrierOp>,
    /// Asynchronous copies.
    pub copies: Vec<CopyOp>,
    /// Operations on barrier objects.
    pub mbarriers: Vec<MbarrierOp>,
    /// Matrix instructions.
    pub matrices: Vec<MatrixOp>,
    /// Tensor copies.
    pub tensors: Vec<TensorOp>,
    /// `tcgen05` instructions.
    pub tcgen05s: Vec<Tcgen05Op>,
    /// Updates of tensor maps.
    pub maps: Vec<MapOp>,
    /// Texture instructions.
    pub textures: Vec<TextureOp>,
    /// Surface instructions.
    pub surfaces: Vec<SurfaceOp>,
    /// Queries of textures, samplers and surfaces.
    pub queries: Vec<QueryOp>,
    /// Call sites.
    pub calls: Vec<CallOp>,
    /// Special registers.
    pub specials: Vec<(Special, Component)>,
    /// Tables of branch targets (`brx.idx`).
    pub switches: Vec<Vec<u32>>,
    /// Formals.
    pub args: Vec<Transfer>,
    /// Return values.
    pub rets: Vec<Transfer>,
    /// Registers with hidden result pointers that the prologue saves, in the order of [`super::state::Frame::hidden`].
    pub hidden: Vec<u32>,
    /// Size in rows of the parameter block that holds results.
    pub space: u32,
    /// Offset of an unsized parameter in the caller's outgoing area.
    pub start: u32,
    /// Size of a frame in local memory, in bytes.
    pub frame_size: u32,
    /// Alignment of the frame.
    pub frame_align: u32,
    /// Offset of the outgoing area in the frame.
    pub outgoing: u32,
    /// Uses the stack beyond its frame (`alloca`).
    pub local: bool,
}

impl FuncCode {
    /// The variant that an op was decoded from.
    pub fn variant(&self, op: &Op) -> &Variant {
        &self.variants[op.variant as usize]
    }

    /// Whether an op tests a place that the function sets then ([`tests_and_sets`]).
    pub fn tests_before_setting(&self, pc: u32) -> bool {
        let ops_of = |i: u32| self.by_inst[i as usize].0..self.by_inst[i as usize].1;
        let ops = || {
            let mut ops: Vec<u32> = tests_and_sets(&self.func).into_iter().flat_map(ops_of).collect();
            ops.sort_unstable();
            ops
        };
        self.tests.get_or_init(ops).binary_search(&pc).is_ok()
    }

    /// The place in the source of an op.
    pub fn place(&self, pc: u32) -> SourcePlace {
        let at = self.at.get(pc as usize).copied().unwrap_or_default();
        self.func.places.get(at as usize).copied().unwrap_or_default()
    }

    /// The rows of a frame that hold a register; `None` if nothing accesses it.
    pub fn rows_of(&self, register: VReg) -> Option<Range<usize>> {
        let first = *self.row_of.get(register.0 as usize).filter(|row| **row != u32::MAX)? as usize;
        Some(first..first + single_step::rows_of(self.func.regs[register.0 as usize]))
    }

    /// The lanes in which a predicate register is true.
    pub fn truth(&self, registers: &[Row], predicate: VReg) -> u32 {
        self.rows_of(predicate).map_or(0, |rows| registers[rows.start].0[0])
    }
}

/// A kernel and all functions that it may call, decoded.
pub struct Code {
    /// The program.
    pub image: Arc<Image>,
    /// The kernel.
    pub kernel: FuncId,
    /// By function id; `None` for functions that the kernel does not reach, which may be thousands.
    pub funcs: Vec<Option<Box<FuncCode>>>,
    /// Size of the ABI's model register file in rows.
    pub registers: u32,
    /// Whether some function needs local memory.
    pub local: bool,
}
