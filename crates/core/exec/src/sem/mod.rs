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
    let single = matches!(t, Type::F32 | Type::F64 | Type::F32x2);
    let halves = matches!(t, Type::F16 | Type::F16x2 | Type::Bf16 | Type::Bf16x2);
    let carries = v.has(Mod::Cc) || matches!(v.op, Opcode::Addc | Opcode::Subc | Opcode::Madc);
    match v.op {
        Opcode::Add | Opcode::Addc | Opcode::Sub | Opcode::Subc | Opcode::Mad | Opcode::Madc if carries => {
            carry::carry(v, t)
        }
        _ if mixed::is_mixed(v, t) => mixed::mixed(v, t),
        Opcode::Add | Opcode::Sub | Opcode::Mul | Opcode::Fma if halves => half::arithmetic(v, t),
        Opcode::Add if single => float::add(v, t),
        Opcode::Sub if single => float::sub(v, t),
        Opcode::Mul if single => float::mul(v, t),
        Opcode::Fma | Opcode::Mad if single => float::fma(v, t),
        Opcode::Add => int::add(v, t),
        Opcode::Sub => int::sub(v, t),
        Opcode::Mul => int::mul(v, t),
        Opcode::Mad => int::mad(v, t),
        Opcode::Clmad => int::clmad(v),
        Opcode::Mul24 => int::mul24(v, t),
        Opcode::Mad24 => int::mad24(v, t),
        Opcode::Sad => int::sad(t),
        Opcode::Div if single => float::div(v, t),
        Opcode::Div => int::div(t),
        Opcode::Rem => int::rem(t),
        Opcode::Abs if halves => half::abs(v, t),
        Opcode::Abs if single => float::abs(v, t),
        Opcode::Abs => int::abs(t),
        Opcode::Neg if halves => half::neg(v, t),
        Opcode::Neg if single => float::neg(v, t),
        Opcode::Neg => int::neg(t),
        Opcode::Min | Opcode::Max if halves => half::min_max(v, t),
        Opcode::Min | Opcode::Max if single => float::min_max(v, t, src_bits.len(), v.op == Opcode::Max),
        Opcode::Min => int::min(v, t),
        Opcode::Max => int::max(v, t),
        Opcode::Popc => bits::popc(t),
        Opcode::Clz => bits::clz(t),
        Opcode::Bfind => bits::bfind(v, t),
        Opcode::Fns => bits::fns(),
        Opcode::Brev => bits::brev(t),
        Opcode::Bfe => bits::bfe(t),
        Opcode::Bfi => bits::bfi(t),
        Opcode::Szext => bits::szext(v, t),
        Opcode::Bmsk => bits::bmsk(v),
        Opcode::Dp4a => int::dp4a(v),
        Opcode::Dp2a => int::dp2a(v),
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
        Opcode::Vadd
        | Opcode::Vadd2
        | Opcode::Vadd4
        | Opcode::Vsub
        | Opcode::Vsub2
        | Opcode::Vsub4
        | Opcode::Vavrg2
        | Opcode::Vavrg4
        | Opcode::Vabsdiff
        | Opcode::Vabsdiff2
        | Opcode::Vabsdiff4
        | Opcode::Vmin
        | Opcode::Vmin2
        | Opcode::Vmin4
        | Opcode::Vmax
        | Opcode::Vmax2
        | Opcode::Vmax4
        | Opcode::Vshl
        | Opcode::Vshr
        | Opcode::Vset
        | Opcode::Vset2
        | Opcode::Vset4
        | Opcode::Vmad => video::video(v, src_bits.len()),
        // A pure instruction without an arm here fails `every_pure_variant_has_a_total_function`.
        _ => None,
    }
}
