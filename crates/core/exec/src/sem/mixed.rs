//! Mixed precision (manual, section 9.7.5): halves among single-precision numbers, each operand taken exactly and each result
//! rounded once. The packed forms are those of PTX ISA 9.4.

use super::{
    PureFn, fp,
    map::lift_mode,
    mode::{Mode, ty, types},
    soft::BF16,
};
use margay_isa::{Mod, Opcode, Type, Variant};

/// Whether the operands of an arithmetic instruction have other types than its result.
pub(super) fn is_mixed(v: &Variant, t: Type) -> bool {
    types(v) > 1
        && matches!(t, Type::F32 | Type::F32x2 | Type::Bf16x2)
        && matches!(v.op, Opcode::Add | Opcode::Sub | Opcode::Mul | Opcode::Fma)
}

/// Rounding of single-precision results, and the format of the halves.
#[derive(Clone, Copy)]
struct Mixed {
    mode: Mode,
    bf16: bool,
    minus: bool,
}

impl Mixed {
    fn of(v: &Variant) -> Mixed {
        let bf16 = matches!(ty(v, 1), Some(Type::Bf16 | Type::Bf16x2));
        Mixed { mode: Mode::of(v), bf16, minus: v.op == Opcode::Sub }
    }

    #[inline(always)]
    fn half(self, bits: u16) -> f64 {
        f64::from(if self.bf16 { fp::from_bf16(bits) } else { fp::from_f16(bits) })
    }

    /// The last operand, which `sub` takes away.
    #[inline(always)]
    fn last(self, c: f32) -> f64 {
        f64::from(if self.minus { -c } else { c })
    }

    #[inline(always)]
    fn fma(self, a: f64, b: f64, c: f64) -> f32 {
        let x = fp::narrow_to(fp::fma_odd_in(a, b, c, self.mode.rnd), self.mode.rnd);
        if self.mode.sat { fp::saturate(x) } else { fp::canon(x) }
    }

    /// Cut to half: `x` is exact or rounded to odd.
    #[inline(always)]
    fn cut(self, x: f64) -> u32 {
        BF16.pack_f32(fp::narrow_odd(x), self.mode.rnd, false)
    }
}

fn single(x: u64, i: u32) -> f32 {
    f32::from_bits((x >> (32 * i)) as u32)
}

#[inline(always)]
fn singles(f: impl Fn(u32) -> f32) -> u64 {
    u64::from(f(0).to_bits()) | u64::from(f(1).to_bits()) << 32
}

/// `add`, `sub`, `mul` and `fma`
pub(super) fn mixed(v: &Variant, t: Type) -> Option<PureFn> {
    let fused = v.op == Opcode::Fma;
    match t {
        Type::F32 if fused => lift_mode!(m = Mixed::of; a: u16, b: u16, c: f32 => f32 {
            m.fma(m.half(a), m.half(b), m.last(c))
        }),
        Type::F32 => lift_mode!(m = Mixed::of; a: u16, c: f32 => f32 { m.fma(m.half(a), 1.0, m.last(c)) }),
        Type::F32x2 if fused => lift_mode!(m = Mixed::of; a: u32, b: u64, c: u64 => u64 {
            singles(|i| m.fma(m.half((a >> (16 * i)) as u16), f64::from(single(b, i)), m.last(single(c, i))))
        }),
        Type::F32x2 => lift_mode!(m = Mixed::of; a: u32, c: u64 => u64 {
            singles(|i| m.fma(m.half((a >> (16 * i)) as u16), 1.0, m.last(single(c, i))))
        }),
        // The only rounding is `.rz`.
        _ if v.op == Opcode::Mul && v.has(Mod::Rz) => lift_mode!(m = Mixed::of; a: u64, b: u64 => u32 {
            let half = |i| m.cut(f64::from(single(a, i)) * f64::from(single(b, i)));
            half(0) | half(1) << 16
        }),
        _ if v.has(Mod::Rz) => lift_mode!(m = Mixed::of; a: u64, c: u64 => u32 {
            let half = |i| m.cut(fp::fma_odd(f64::from(single(a, i)), 1.0, m.last(single(c, i))));
            half(0) | half(1) << 16
        }),
        _ => None,
    }
}
