//! `mov`: packing and unpacking of vectors (manual, section 9.7.9.4).

use crate::body::{Candidate, Inst, Walker};
use margay_isa::Type;

/// The type of one of `n` elements that share the bits of `ty`; nothing if they do not come out even.
pub(crate) fn element(ty: Type, n: usize) -> Option<Type> {
    match (ty.bits(), n) {
        (_, 1) => Some(ty),
        (16, 2) | (32, 4) => Some(Type::B8),
        (32, 2) | (64, 4) => Some(Type::B16),
        (64, 2) | (128, 4) => Some(Type::B32),
        (128, 2) => Some(Type::B64),
        _ => None,
    }
}

/// The operands of a `mov` together.
pub(crate) fn check(_w: &mut Walker<'_, '_>, _c: &Candidate, _inst: &Inst) {}
