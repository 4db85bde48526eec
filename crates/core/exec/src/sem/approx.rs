//! The approximate functions `sin`, `cos`, `lg2`, `ex2`, `tanh` (manual, sections 9.7.3.18 to 9.7.3.22, 9.7.4.9 and 9.7.4.10).
//!
//! Each is a short polynomial: a sequence of additions, multiplications and selections that gives the same bits on every host and
//! can be emitted as vector code as well. That of `ex2` is in single precision, the others are in double precision and rounded once at
//! the end. Errors are below the manual's bounds (`examples/ulp.rs` measures them over all single-precision numbers). No
//! operation may be fused or reordered.

use super::{
    PureFn, fp,
    map::{self, lift},
    mode::legacy,
};
use margay_isa::{Mod, Opcode, Type, Variant};

/// The constants of the polynomials, shared with the emitted vector code; coefficients from the highest power down.
pub mod constants {
    /// Adding and subtracting it rounds a number below 2^51 to an integer.
    pub const ROUND: f64 = 6_755_399_441_055_744.0;
    /// The same for single precision and numbers below 2^22.
    pub const ROUND_SINGLE: f32 = 12_582_912.0;
    /// The bounds of the argument of [`super::ex2`]: beyond them, the result is zero or infinite.
    pub const EX2_BOUND: f32 = 160.0;
    /// 2^t for |t| at most 1/2. With every step rounded, [`super::ex2`] is at most one unit in the last place from the correctly
    /// rounded result. Found by interpolation of (2^t - 1) / t at Chebyshev's nodes.
    pub const EX2: [f32; 7] = [
        f32::from_bits(0x3922_09c5),
        f32::from_bits(0x3aaf_8448),
        f32::from_bits(0x3c1d_952a),
        f32::from_bits(0x3d63_57b6),
        f32::from_bits(0x3e75_fdf0),
        f32::from_bits(0x3f31_7218),
        1.0,
    ];
    /// The bounds of the argument of [`super::exp2`], far outside the range of single precision.
    pub const EXP2_BOUND: f64 = 200.0;
    /// e^t to t^9 / 9!, for |t| below 0.35.
    pub const EXP: [f64; 10] = [
        1.0 / 362_880.0,
        1.0 / 40_320.0,
        1.0 / 5_040.0,
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
        1.0,
        1.0,
    ];
    /// The bits of sqrt(1/2): mantissas are taken between it and sqrt(2).
    pub const ROOT_HALF: u64 = 0x3fe6_a09e_667f_3bcd;
    /// log2 m = 2 / ln 2 * s * p(s^2) with s = (m - 1) / (m + 1), |s| below 0.172.
    pub const LOG: [f64; 7] = [1.0 / 13.0, 1.0 / 11.0, 1.0 / 9.0, 1.0 / 7.0, 1.0 / 5.0, 1.0 / 3.0, 1.0];
    /// The factor before it.
    pub const LOG_SCALE: f64 = 2.0 * std::f64::consts::LOG2_E;
    /// Turns per radian.
    pub const TURNS: f64 = 0.5 / std::f64::consts::PI;
    /// From this many turns on, the result is that of angle 0.
    pub const MAX_TURNS: f64 = 2_251_799_813_685_248.0;
    /// sin t = t * p(t^2), for |t| at most an eighth of a turn.
    pub const SIN: [f64; 6] = [-1.0 / 39_916_800.0, 1.0 / 362_880.0, -1.0 / 5_040.0, 1.0 / 120.0, -1.0 / 6.0, 1.0];
    /// cos t = p(t^2) there.
    pub const COS: [f64; 7] =
        [1.0 / 479_001_600.0, -1.0 / 3_628_800.0, 1.0 / 40_320.0, -1.0 / 720.0, 1.0 / 24.0, -0.5, 1.0];
    /// Beyond this, tanh is 1 in single precision.
    pub const TANH_BOUND: f64 = 20.0;
    /// Below this, tanh is t - t^3 / 3: the quotient of exponentials would suffer from cancellation.
    pub const TANH_SERIES: f64 = 0.000_244_140_625;
}

use constants::*;

/// A polynomial by Horner's rule, every step rounded twice.
#[inline(always)]
fn polynomial<const N: usize>(x: f64, coefficients: &[f64; N]) -> f64 {
    let mut p = coefficients[0];
    for c in &coefficients[1..] {
        p = p * x + c;
    }
    p
}

/// `2^x`, clamped to 2^-200 and 2^200, far outside the range of single precision. NaN gives NaN.
#[inline(always)]
pub fn exp2(x: f64) -> f64 {
    let x = if x < -EXP2_BOUND { -EXP2_BOUND } else { x };
    let x = if x > EXP2_BOUND { EXP2_BOUND } else { x };
    let shifted = x + ROUND;
    let n = shifted.to_bits() << 52;
    let t = (x - (shifted - ROUND)) * std::f64::consts::LN_2;
    let p = polynomial(t, &EXP);
    // The lowest bits of `shifted` are the integer, in two's complement; they are added to the exponent of `p`.
    f64::from_bits(p.to_bits().wrapping_add(n))
}

/// `log2 x` for a positive finite `x` that is normal in double precision.
#[inline(always)]
pub fn log2(x: f64) -> f64 {
    // Mantissa between sqrt(1/2) and sqrt(2), and exponent.
    let b = x.to_bits().wrapping_sub(ROOT_HALF).wrapping_add(1024 << 52);
    let m = f64::from_bits((b & 0x000f_ffff_ffff_ffff) + ROOT_HALF);
    let e = f64::from((b >> 52) as i32 - 1024);
    let s = (m - 1.0) / (m + 1.0);
    let z = s * s;
    e + s * LOG_SCALE * polynomial(z, &LOG)
}

/// Sine (`quarter` 0) or cosine (`quarter` 1) of a single-precision angle. The angle is reduced in turns, which is
/// exact enough below about 2^20; beyond 2^53 turns the result is that of angle 0.
#[inline(always)]
fn circular(x: f32, quarter: u64) -> f64 {
    let turns = f64::from(x) * TURNS;
    let turns = if turns.abs() < MAX_TURNS { turns } else { turns * 0.0 };
    // In quarter turns: the nearest integer, and the remainder, at most half a quarter.
    let quarters = 4.0 * turns;
    let shifted = quarters + ROUND;
    let n = shifted.to_bits().wrapping_add(quarter);
    let t = (quarters - (shifted - ROUND)) * std::f64::consts::FRAC_PI_2;
    let z = t * t;
    // A product, so that the sign of a zero is kept.
    let s = t * polynomial(z, &SIN);
    let c = polynomial(z, &COS);
    let magnitude = if n & 1 == 0 { s } else { c };
    if n & 2 == 0 { magnitude } else { -magnitude }
}

/// `sin.approx.f32`
#[inline(always)]
pub fn sin(x: f32) -> f32 {
    fp::canon(circular(x, 0) as f32)
}

/// `cos.approx.f32`
#[inline(always)]
pub fn cos(x: f32) -> f32 {
    fp::canon(circular(x, 1) as f32)
}

/// `lg2.approx.f32`
#[inline(always)]
pub fn lg2(x: f32) -> f32 {
    let y = (log2(f64::from(x)) as f32).to_bits();
    let y = if x == f32::INFINITY { x.to_bits() } else { y };
    let y = if x == 0.0 { f32::NEG_INFINITY.to_bits() } else { y };
    f32::from_bits(if x >= 0.0 { y } else { fp::NAN32 })
}

/// `ex2.approx.f32`
#[inline(always)]
pub fn ex2(x: f32) -> f32 {
    let x = if x < -EX2_BOUND { -EX2_BOUND } else { x };
    let x = if x > EX2_BOUND { EX2_BOUND } else { x };
    let shifted = x + ROUND_SINGLE;
    let n = shifted.to_bits().wrapping_sub(ROUND_SINGLE.to_bits()) as i32;
    let t = x - (shifted - ROUND_SINGLE);
    let mut p = EX2[0];
    for c in &EX2[1..] {
        p = p * t + c;
    }
    // 2^n as two factors, since it may be out of range; only the last product is rounded.
    let half = n >> 1;
    let power = |n: i32| f32::from_bits((n.wrapping_add(127) as u32) << 23);
    fp::canon(p * power(half) * power(n.wrapping_sub(half)))
}

/// `tanh.approx.f32`
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    let t = f64::from(x.abs());
    // 1 beyond 20 (NaN is kept); the series where the quotient would suffer from cancellation.
    let t = if t > TANH_BOUND { TANH_BOUND } else { t };
    let e = exp2(t * LOG_SCALE);
    let quotient = (e - 1.0) / (e + 1.0);
    let series = t - t * t * t * (1.0 / 3.0);
    let y = if t < TANH_SERIES { series } else { quotient };
    fp::canon((y as f32).copysign(x))
}

/// Applies a single-precision function to both halves of a word.
macro_rules! pairs {
    ($from:path, $to:path, $f:expr) => {
        Some(|_, _, s, d| map::one_packed(s, d, |a| $to($f($from(a)))))
    };
}

/// `ex2.approx.ftz.bf16`: subnormal operands and results are zeros.
fn ex2_bf16_ftz(x: f32) -> f32 {
    fp::flush(ex2(fp::flush(x)))
}

/// The approximate functions of one operand. `.f16` and `.bf16` go through single precision.
pub(super) fn approx(v: &Variant, t: Type) -> Option<PureFn> {
    let ftz = v.has(Mod::Ftz) || legacy(v);
    macro_rules! single {
        ($f:ident) => {
            if ftz {
                lift!(a: f32 => f32 { fp::flush($f(fp::flush(a))) })
            } else {
                lift!(a: f32 => f32 { $f(a) })
            }
        };
    }
    match (v.op, t) {
        (Opcode::Sin, Type::F32) => single!(sin),
        (Opcode::Cos, Type::F32) => single!(cos),
        (Opcode::Lg2, Type::F32) => single!(lg2),
        (Opcode::Ex2, Type::F32) => single!(ex2),
        (Opcode::Tanh, Type::F32) => lift!(a: f32 => f32 { tanh(a) }),
        (Opcode::Ex2, Type::F16) => lift!(a: u16 => u16 { fp::to_f16(ex2(fp::from_f16(a))) }),
        (Opcode::Ex2, Type::F16x2) => pairs!(fp::from_f16, fp::to_f16, ex2),
        (Opcode::Ex2, Type::Bf16) => lift!(a: u16 => u16 { fp::to_bf16(ex2_bf16_ftz(fp::from_bf16(a))) }),
        (Opcode::Ex2, Type::Bf16x2) => pairs!(fp::from_bf16, fp::to_bf16, ex2_bf16_ftz),
        (Opcode::Tanh, Type::F16) => lift!(a: u16 => u16 { fp::to_f16(tanh(fp::from_f16(a))) }),
        (Opcode::Tanh, Type::F16x2) => pairs!(fp::from_f16, fp::to_f16, tanh),
        (Opcode::Tanh, Type::Bf16) => lift!(a: u16 => u16 { fp::to_bf16(tanh(fp::from_bf16(a))) }),
        (Opcode::Tanh, Type::Bf16x2) => pairs!(fp::from_bf16, fp::to_bf16, tanh),
        _ => None,
    }
}
