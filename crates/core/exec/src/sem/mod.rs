//! Semantics of the pure instructions, defined once: scalar functions on bits, mapped over lanes.
//!
//! [`pure`] returns the lane function of a variant. The reference engine calls it with the registers' rows; the SIMD
//! engine calls the same function through a thunk for every instruction that it has no native code for. Hot
//! instructions have loops of their own, without branches; all others read their modes from the variant once per warp.
//!
//! Results are exact: integers and rounded floating point bit for bit, in every rounding mode, with subnormals and
//! signed zeros as the manual defines them. NaNs are described in [`fp`]. Approximate instructions are deterministic
//! and within the manual's bounds (see [`approx`]); they do not call the host's mathematical library.

// Lane loops index several arrays at once, which is the most readable form.
#![allow(clippy::needless_range_loop)]

pub mod approx;
pub mod atomic;
mod bits;
mod carry;
mod compare;
mod cvt;
mod float;
pub mod fp;
mod half;
mod int;
mod logic;
mod map;
mod mixed;
mod mode;
mod mov;
mod small;
pub mod soft;
mod video;

use crate::Row;
use margay_isa::{Effect, Mod, Opcode, Type, Variant};

/// Semantics of one pure variant over a warp.
///
/// `src[i]` holds the rows of source operand `i` (sources in the order of [`margay_ir::Inst::srcs`]; immediates are
/// splatted; inverted predicates are inverted already). `dst` holds the rows of all destinations in sequence (in the
/// order of [`margay_ir::Inst::dsts`]), each with as many rows as [`crate::lanes::rows`] says; a sink has as many as
/// the register that it replaces. A predicate is one row whose word 0 is the mask of lanes. The contents of
/// lanes outside `active` are unspecified afterwards. The function is total and never panics. `variant` must be the
/// variant that was passed to [`pure`].
pub type PureFn = fn(variant: &Variant, active: u32, src: &[&[Row]], dst: &mut [Row]);

/// The lane function of a variant whose instruction has effect `Pure`, given the widths in bits of its sources and
/// destinations (they matter where an instruction moves between shapes, such as `mov.b64 {a, b}, c`, and where
/// registers may be wider than the type). `None` if the effect is another one, or the variant is unsupported.
pub fn pure(v: &Variant, src_bits: &[u32], dst_bits: &[u32]) -> Option<PureFn> {
    if v.op.row().effect != Effect::Pure || crate::unmodeled(v) {
        return None;
    }
    let t = mode::ty(v, 0).unwrap_or(Type::B32);
    let carries = v.has(Mod::Cc) || matches!(v.op, Opcode::Addc | Opcode::Subc | Opcode::Madc);
    match v.op {
        Opcode::Add | Opcode::Addc | Opcode::Sub | Opcode::Subc | Opcode::Mad | Opcode::Madc if carries => {
            carry::carry(v, t)
        }
        _ if mixed::is_mixed(v, t) => mixed::mixed(v, t),
        Opcode::Add
        | Opcode::Sub
        | Opcode::Mul
        | Opcode::Fma
        | Opcode::Mad
        | Opcode::Div
        | Opcode::Abs
        | Opcode::Neg
        | Opcode::Min
        | Opcode::Max => arithmetic(v, t, src_bits.len()),
        Opcode::Rem => int::rem(t),
        Opcode::Clmad => int::clmad(v),
        Opcode::Mul24 => int::mul24(v, t),
        Opcode::Mad24 => int::mad24(v, t),
        Opcode::Sad => int::sad(t),
        Opcode::Dp4a => int::dp4a(v),
        Opcode::Dp2a => int::dp2a(v),
        Opcode::Popc => bits::popc(t),
        Opcode::Clz => bits::clz(t),
        Opcode::Bfind => bits::bfind(v, t),
        Opcode::Fns => bits::fns(),
        Opcode::Brev => bits::brev(t),
        Opcode::Bfe => bits::bfe(t),
        Opcode::Bfi => bits::bfi(t),
        Opcode::Szext => bits::szext(v, t),
        Opcode::Bmsk => bits::bmsk(v),
        Opcode::Testp => float::testp(v, t),
        Opcode::Copysign => float::copysign(t),
        Opcode::Rcp => float::rcp(v, t),
        Opcode::Sqrt => float::sqrt(v, t),
        Opcode::Rsqrt => float::rsqrt(v, t),
        Opcode::Sin | Opcode::Cos | Opcode::Lg2 | Opcode::Ex2 | Opcode::Tanh => approx::approx(v, t),
        Opcode::Set => compare::set(v, dst_bits),
        Opcode::Setp => compare::setp(v, t, src_bits.len(), dst_bits.len()),
        Opcode::Selp => compare::selp(t),
        Opcode::Slct => compare::slct(v),
        Opcode::And | Opcode::Or | Opcode::Xor => logic::bitwise(v.op, t),
        Opcode::Not => logic::not(t),
        Opcode::Cnot => logic::cnot(t),
        Opcode::Lop3 => logic::lop3(v),
        Opcode::Shf => logic::shf(v),
        Opcode::Shl => logic::shl(t),
        Opcode::Shr => logic::shr(t),
        Opcode::Prmt => logic::prmt(v),
        Opcode::Mov => mov::mov(v, src_bits, dst_bits),
        Opcode::Cvt => cvt::cvt(v, src_bits, dst_bits),
        // A pure instruction that is no video instruction either fails `every_pure_variant_has_a_total_function`.
        _ => video::video(v, src_bits.len()),
    }
}

/// Arithmetic that exists for integers, single and double precision, and most of it for half precision: one opcode, three sections of the
/// manual (9.7.1, 9.7.3, 9.7.4).
fn arithmetic(v: &Variant, t: Type, sources: usize) -> Option<PureFn> {
    match t {
        Type::F32 | Type::F64 | Type::F32x2 => match v.op {
            Opcode::Add => float::add(v, t),
            Opcode::Sub => float::sub(v, t),
            Opcode::Mul => float::mul(v, t),
            Opcode::Fma | Opcode::Mad => float::fma(v, t),
            Opcode::Div => float::div(v, t),
            Opcode::Abs => float::abs(v, t),
            Opcode::Neg => float::neg(v, t),
            Opcode::Min | Opcode::Max => float::min_max(v, t, sources, v.op == Opcode::Max),
            _ => None,
        },
        Type::F16 | Type::F16x2 | Type::Bf16 | Type::Bf16x2 => match v.op {
            Opcode::Add | Opcode::Sub | Opcode::Mul | Opcode::Fma => half::arithmetic(v, t),
            Opcode::Abs => half::abs(v, t),
            Opcode::Neg => half::neg(v, t),
            Opcode::Min | Opcode::Max => half::min_max(v, t),
            _ => None,
        },
        _ => match v.op {
            Opcode::Add => int::add(v, t),
            Opcode::Sub => int::sub(v, t),
            Opcode::Mul => int::mul(v, t),
            Opcode::Mad => int::mad(v, t),
            Opcode::Div => int::div(t),
            Opcode::Abs => int::abs(t),
            Opcode::Neg => int::neg(t),
            Opcode::Min => int::min(v, t),
            Opcode::Max => int::max(v, t),
            _ => None,
        },
    }
}
