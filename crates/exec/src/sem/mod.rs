//! Semantics of the pure rows, written once: scalar functions on bits, mapped over lanes here.
//!
//! [`pure`] gives the lane function of a variant. The reference engine calls it with the registers' rows; the SIMD engine
//! calls the same function through a thunk for every row that it has no native code for.

use crate::Row;
use margay_isa::Variant;

/// Semantics of one pure variant over a warp.
///
/// `src[i]` holds the rows of source operand `i` (sources in the order of [`margay_ir::Inst::srcs`]; immediates are splatted);
/// `dst` holds the rows of all destinations one after another (in the order of [`margay_ir::Inst::dsts`]).
/// A predicate is one row whose word 0 is the mask of lanes. Lanes outside `active` may be left with anything; total, never
/// panics. `variant` is the variant that [`pure`] was asked for.
pub type PureFn = fn(variant: &Variant, active: u32, src: &[&[Row]], dst: &mut [Row]);

/// The lane function of a variant whose row has effect `Pure`, given the widths in bits of its sources and destinations
/// (they matter where a row moves between shapes, such as `mov.b64 {a, b}, c`). `None`: not supported yet.
pub fn pure(variant: &Variant, src_bits: &[u32], dst_bits: &[u32]) -> Option<PureFn> {
    let _ = (variant, src_bits, dst_bits);
    None
}
