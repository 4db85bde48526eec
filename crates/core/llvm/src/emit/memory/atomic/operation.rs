//! Atomic operations as LLVM names them.

use crate::emit::text::Elem;
use margay_exec::sem::atomic::{AtomicOp, Number, Rmw};
use margay_isa::Variant;

/// An operation of LLVM: of `atomicrmw`, or a compare-and-swap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Operation {
    Add,
    FAdd,
    And,
    Or,
    Xor,
    Min,
    Max,
    UMin,
    UMax,
    Inc,
    Dec,
    Xchg,
    Cas,
}

impl Operation {
    /// LLVM's word; for compare-and-swap, that in the names of helpers.
    pub fn word(self) -> &'static str {
        match self {
            Operation::Add => "add",
            Operation::FAdd => "fadd",
            Operation::And => "and",
            Operation::Or => "or",
            Operation::Xor => "xor",
            Operation::Min => "min",
            Operation::Max => "max",
            Operation::UMin => "umin",
            Operation::UMax => "umax",
            Operation::Inc => "uinc_wrap",
            Operation::Dec => "udec_wrap",
            Operation::Xchg => "xchg",
            Operation::Cas => "cas",
        }
    }
}

/// The operation and type of a variant with native code.
pub(super) fn native(variant: &Variant) -> Option<(Operation, Elem)> {
    operation(Rmw::of(variant).filter(|_| variant.vec() == 1)?)
}

/// The `atomicrmw` operation and its type; `None` where the reference engine executes it.
pub(super) fn operation(rmw: Rmw) -> Option<(Operation, Elem)> {
    let integer = Elem::int(rmw.ty.bits());
    let signed = match rmw.number() {
        Number::Single => return Some((Operation::FAdd, Elem::F32)),
        Number::Double => return Some((Operation::FAdd, Elem::F64)),
        Number::Half { .. } => return None,
        Number::Integer { signed } => signed,
    };
    if !matches!(rmw.ty.bits(), 16 | 32 | 64) {
        return None;
    }
    let op = match rmw.op {
        AtomicOp::Add => Operation::Add,
        AtomicOp::Min if signed => Operation::Min,
        AtomicOp::Min => Operation::UMin,
        AtomicOp::Max if signed => Operation::Max,
        AtomicOp::Max => Operation::UMax,
        AtomicOp::And => Operation::And,
        AtomicOp::Or => Operation::Or,
        AtomicOp::Xor => Operation::Xor,
        AtomicOp::Exch => Operation::Xchg,
        AtomicOp::Cas => Operation::Cas,
        AtomicOp::Inc => Operation::Inc,
        AtomicOp::Dec => Operation::Dec,
    };
    Some((op, integer))
}
