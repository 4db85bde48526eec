//! Warp-level matrix instructions on rows of registers (manual, section 9.7.14): products, transposition, and moves between
//! fragments and memory.
//!
//! ```text
//! registers → [fragment.rs: which lane holds which element] → dense matrices → [product.rs] → registers
//! registers → [fixed.rs: the common shapes without decisions] → registers; both on the loops of blocked.rs
//! memory    → [transfer.rs: ldmatrix, stmatrix, movmatrix; wmma.rs: wmma.load, wmma.store] ↔ registers
//! ```
//!
//! Sources and destinations are as for [`crate::sem::PureFn`]: one slice of rows per register, in the order of the
//! instruction, with fragments split into registers. All 32 lanes participate, as `.aligned` requires.
//!
//! **Precision.** The manual leaves the order of accumulation and the precision of intermediate sums open. Here floating-point
//! products are exact, sums run over k upwards from C in double precision, and the result is rounded once, to nearest even
//! (`.f64` products instead are a chain of fused multiply-adds over k upwards in the rounding mode of the instruction).
//! Integer sums are exact; the result wraps, or is clamped with `.satfinite`.

mod blocked;
mod dense;
pub mod descriptor;
mod element;
mod fixed;
mod fragment;
mod product;
pub mod tcgen05;
mod transfer;
pub mod warpgroup;
pub mod wmma;

#[cfg(test)]
mod tests;

pub(crate) use blocked::{Loops, vectorize};
pub use element::Element;
pub use product::{Operands, operands};
pub use transfer::{Memory, alignment, ldmatrix, stmatrix, unpack};
pub use wmma::{wmma_load, wmma_store};

use crate::{Row, sem::PureFn};
use margay_isa::{Mod, Opcode, Variant, Word};

/// The function of a product or transposition over a warp's registers; `None` for other instructions, and for
/// unsupported forms.
pub fn pure(v: &Variant) -> Option<PureFn> {
    match v.op {
        Opcode::Mma => fixed::find(v).or(Some(run_product)),
        Opcode::Wmma if v.has(Mod::Mma) => fixed::find(v).or(Some(run_product)),
        Opcode::Movmatrix => Some(|_, _, src, dst| transfer::movmatrix(src, dst)),
        _ => None,
    }
}

/// Whether [`ldmatrix`], [`stmatrix`], [`wmma_load`] or [`wmma_store`] executes the variant.
pub fn transfers(v: &Variant) -> bool {
    match v.op {
        Opcode::Ldmatrix | Opcode::Stmatrix => true,
        Opcode::Wmma => !v.has(Mod::Mma),
        _ => false,
    }
}

fn run_product(v: &Variant, _active: u32, src: &[&[Row]], dst: &mut [Row]) {
    product::run(v, src, dst);
}

/// Rows, columns and depth of a product.
fn shape(v: &Variant) -> Option<(usize, usize, usize)> {
    v.words.iter().find_map(|w| match w {
        Word::Mod(m) => m.matrix_shape().map(|[m, n, k]| (m, n, k)),
        Word::Type(_) => None,
    })
}
