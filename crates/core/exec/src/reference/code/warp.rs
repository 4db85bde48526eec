//! What the lanes of a warp or the warps of a CTA do together: votes, shuffles, matrices, barriers.

use super::{Address, Dst, Src};
use crate::sem::PureFn;
use margay_isa::{Mod, Type};

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

/// An instruction of the tcgen05 generation of tensor cores, with the names of its operands.
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
