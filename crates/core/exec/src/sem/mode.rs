//! The modifiers of a variant: rounding, flushing, saturation, and types in the order of the mnemonic.

use super::soft::Rnd;
use margay_isa::{Mod, Type, Variant, Word};

/// The `n`th type word of a mnemonic: `cvt.rn.f32.s32` has `.f32` at 0 and `.s32` at 1.
pub(super) fn ty(v: &Variant, n: usize) -> Option<Type> {
    v.words
        .iter()
        .filter_map(|w| match w {
            Word::Type(t) => Some(*t),
            Word::Mod(_) => None,
        })
        .nth(n)
}

/// The number of type words in a mnemonic.
pub(super) fn types(v: &Variant) -> usize {
    v.words.iter().filter(|w| matches!(w, Word::Type(_))).count()
}

/// The rounding of floating-point results; `.rn` by default (section 6.5.2).
pub(super) fn rnd(v: &Variant) -> Rnd {
    for w in &v.words {
        match w {
            Word::Mod(Mod::Rn | Mod::Rni) => return Rnd::Nearest,
            Word::Mod(Mod::Rna) => return Rnd::Away,
            Word::Mod(Mod::Rz | Mod::Rzi) => return Rnd::Zero,
            Word::Mod(Mod::Rm | Mod::Rmi) => return Rnd::Down,
            Word::Mod(Mod::Rp | Mod::Rpi) => return Rnd::Up,
            _ => {}
        }
    }
    Rnd::Nearest
}

/// The `.ftz`, `.sat` and rounding of single-precision arithmetic; the rounding is used where it is not `.rn`.
#[derive(Clone, Copy)]
pub(super) struct Mode {
    pub rnd: Rnd,
    pub ftz: bool,
    pub sat: bool,
}

impl Mode {
    /// The modes of a variant.
    pub fn of(v: &Variant) -> Mode {
        Mode { rnd: rnd(v), ftz: v.has(Mod::Ftz), sat: v.has(Mod::Sat) }
    }
}

/// Whether a variant is a form of PTX ISA 1.0 to 1.3 with neither `.approx` nor a rounding mode: in single precision
/// that means `.approx.ftz`, in double precision `.rn`.
pub(super) fn legacy(v: &Variant) -> bool {
    v.words.iter().all(|w| matches!(w, Word::Type(_) | Word::Mod(Mod::Ftz)))
}
