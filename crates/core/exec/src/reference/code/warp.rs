//! Decoded instructions that communicate within a warp or a CTA: votes, shuffles, matrices, barriers.

use super::{Address, Dst, Src};
use crate::sem::PureFn;
use margay_isa::{Mod, Type, Variant};

/// A warp operation.
pub struct WarpOp {
    /// Destinations.
    pub dst: Vec<Dst>,
    /// Sources in order; negated predicates are already inverted.
    pub src: Vec<Src>,
    /// Type.
    pub ty: Type,
    /// Kind.
    pub kind: WarpKind,
    /// Hash of opcode and qualifiers: lanes wait for each other only at instructions of the same class.
    pub class: u32,
}

/// The kind of a warp operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WarpKind {
    /// `shfl`
    Shuffle(Mod),
    /// `vote` with `.all`, `.any`, `.uni` or `.ballot`
    Vote(Mod),
    /// `match.any`
    MatchAny,
    /// `match.all`
    MatchAll,
    /// `redux`
    Redux(Reduction),
    /// `elect`
    Elect,
    /// `bar.warp.sync`
    Barrier,
}

/// The reduction of `redux` and `tcgen05.ld.red`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reduction {
    /// The operation: `.add`, `.min`, `.max`, `.and`, `.or`, `.xor`.
    pub op: Mod,
    /// `.abs`: of absolute values.
    pub abs: bool,
    /// `.NaN`: the result is NaN if an input is.
    pub propagate_nan: bool,
}

impl Reduction {
    /// The reduction of an instruction.
    pub fn of(v: &Variant) -> Reduction {
        let ops = [Mod::Add, Mod::Min, Mod::Max, Mod::And, Mod::Or];
        let op = ops.into_iter().find(|m| v.has(*m)).unwrap_or(Mod::Xor);
        Reduction { op, abs: v.has(Mod::Abs), propagate_nan: v.has(Mod::PropagateNan) }
    }
}

/// `bar`, `barrier`.
pub struct BarrierOp {
    /// Barrier number.
    pub id: Src,
    /// Thread count; `None` for all threads.
    pub count: Option<Src>,
    /// The predicate of `.red`.
    pub pred: Option<Src>,
    /// Result of `.red`.
    pub dst: Option<Dst>,
    /// Kind.
    pub kind: BarrierKind,
    /// All threads of a warp must execute the same instruction.
    pub aligned: bool,
}

/// The kind of a barrier instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BarrierKind {
    /// Arrive and wait.
    Sync,
    /// Arrive.
    Arrive,
    /// Arrive, wait and reduce predicates: `.popc`, `.and`, `.or`.
    Red(Mod),
}

/// A `tcgen05` instruction with the names of its operands.
pub struct Tcgen05Op {
    /// Destinations.
    pub dst: Vec<Dst>,
    /// Register and immediate operands.
    pub values: Vec<(&'static str, Src)>,
    /// Addresses in shared or tensor memory.
    pub addresses: Vec<(&'static str, Address)>,
}

/// A matrix instruction, with its fragments as single registers.
pub struct MatrixOp {
    /// Destinations.
    pub dst: Vec<Dst>,
    /// Registers and immediates read, without the address.
    pub src: Vec<Src>,
    /// The memory operand.
    pub address: Option<Address>,
    /// The function of a product or transposition.
    pub pure: Option<PureFn>,
}
