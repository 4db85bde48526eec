//! The operations of atomic instructions (manual, sections 9.7.13.5 and 9.7.13.6), by their names; what they compute is defined in
//! `exec::sem::atomic`.

use margay_isa::{Mod, Type, Variant, Word};

/// The operation of an atomic instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
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

impl AtomicOp {
    /// All operations.
    pub const ALL: [AtomicOp; 10] = [
        AtomicOp::And,
        AtomicOp::Or,
        AtomicOp::Xor,
        AtomicOp::Exch,
        AtomicOp::Cas,
        AtomicOp::Add,
        AtomicOp::Inc,
        AtomicOp::Dec,
        AtomicOp::Min,
        AtomicOp::Max,
    ];

    /// The operation of a variant; `None` if it has none.
    pub fn of(v: &Variant) -> Option<AtomicOp> {
        v.words.iter().find_map(|w| match w {
            Word::Mod(m) => Some(match m {
                Mod::And => AtomicOp::And,
                Mod::Or => AtomicOp::Or,
                Mod::Xor => AtomicOp::Xor,
                Mod::Exch => AtomicOp::Exch,
                Mod::Cas => AtomicOp::Cas,
                Mod::Add => AtomicOp::Add,
                Mod::Inc => AtomicOp::Inc,
                Mod::Dec => AtomicOp::Dec,
                Mod::Min => AtomicOp::Min,
                Mod::Max => AtomicOp::Max,
                _ => return None,
            }),
            Word::Type(_) => None,
        })
    }

    /// The operand with which the operation leaves every integer of a type as it is, such as 0 for a sum; `None` if there is none, and
    /// for other types than integers of up to 64 bits.
    pub fn neutral(self, ty: Type) -> Option<u64> {
        if ty.is_float() || ty.bits() > 64 {
            return None;
        }
        let all = u64::MAX >> (64 - ty.bits());
        let (least, greatest) = if ty.is_signed() { (all - all / 2, all / 2) } else { (0, all) };
        match self {
            AtomicOp::Add | AtomicOp::Or | AtomicOp::Xor => Some(0),
            AtomicOp::And => Some(all),
            AtomicOp::Max => Some(least),
            AtomicOp::Min => Some(greatest),
            AtomicOp::Exch | AtomicOp::Cas | AtomicOp::Inc | AtomicOp::Dec => None,
        }
    }
}
