//! Floating-point arithmetic (manual, section 9.7.3) on `.f32`, `.f64` and `.f32x2`.
//!
//! Round-to-nearest uses the host's operations, which IEEE 754 defines exactly. Directed rounding goes through double precision
//! where that is exact enough, else through [`soft`]. Where the manual leaves a NaN open, see [`fp`].

use super::{
    PureFn, fp,
    map::{self, lift, lift_mode},
    mode::{Mode, legacy, rnd},
    soft::{self, F64, Num, Rnd},
};
use crate::Row;
use margay_isa::{Mod, Type, Variant};

/// Chooses among four functions by `.ftz` and `.sat`.
macro_rules! by_mode {
    ($v:expr, $f:ident) => {
        match ($v.has(Mod::Ftz), $v.has(Mod::Sat)) {
            (false, false) => $f!(false, false),
            (true, false) => $f!(true, false),
            (false, true) => $f!(false, true),
            (true, true) => $f!(true, true),
        }
    };
}

/// A single-precision operand in double precision.
#[inline(always)]
fn wide(m: Mode, x: f32) -> f64 {
    f64::from(if m.ftz { fp::flush(x) } else { x })
}

/// A single-precision result in a rounding mode other than to nearest; [`fp::narrow_to`] says what `x` may be.
#[inline(always)]
fn directed(m: Mode, x: f64) -> f32 {
    let x = fp::narrow_to(x, m.rnd);
    let x = if m.ftz { fp::flush(x) } else { x };
    if m.sat { fp::saturate(x) } else { fp::canon(x) }
}

/// `a * b + c` in single precision, in a rounding mode other than to nearest.
#[inline(always)]
fn directed_fma(m: Mode, a: f64, b: f64, c: f64) -> f32 {
    directed(m, fp::fma_odd_in(a, b, c, m.rnd))
}

/// A lane function in single precision, instantiated for each directed rounding mode, which is then constant in its
/// loop.
macro_rules! in_mode {
    ($v:expr, $m:ident; $($arg:ident),+ => $body:expr) => {
        match rnd($v) {
            Rnd::Zero => lift_mode!($m = |v| Mode { rnd: Rnd::Zero, ..Mode::of(v) }; $($arg: f32),+ => f32 { $body }),
            Rnd::Down => lift_mode!($m = |v| Mode { rnd: Rnd::Down, ..Mode::of(v) }; $($arg: f32),+ => f32 { $body }),
            _ => lift_mode!($m = |v| Mode { rnd: Rnd::Up, ..Mode::of(v) }; $($arg: f32),+ => f32 { $body }),
        }
    };
}

fn num64(x: f64) -> Num {
    F64.unpack(x.to_bits())
}

/// Rounds to double precision in a mode other than to nearest.
fn soft64(r: Rnd, n: Num) -> f64 {
    f64::from_bits(F64.pack(n, r, false))
}

/// Applies `f` to two pairs of single-precision values in 64 bits.
#[inline(always)]
fn pairwise(a: u64, b: u64, f: impl Fn(f32, f32) -> f32) -> u64 {
    let half = |s: u32| f(f32::from_bits((a >> s) as u32), f32::from_bits((b >> s) as u32)).to_bits();
    u64::from(half(0)) | u64::from(half(32)) << 32
}

/// See [`pairwise`].
#[inline(always)]
fn pairwise3(a: u64, b: u64, c: u64, f: impl Fn(f32, f32, f32) -> f32) -> u64 {
    let part = |x: u64, s: u32| f32::from_bits((x >> s) as u32);
    let half = |s: u32| f(part(a, s), part(b, s), part(c, s)).to_bits();
    u64::from(half(0)) | u64::from(half(32)) << 32
}

/// `add`, `sub`, `mul`: one function per operator and mode.
macro_rules! binary {
    ($name:ident, $op:tt, $wide:expr, $soft:expr) => {
        /// The lane function of this operator.
        pub(super) fn $name(v: &Variant, t: Type) -> Option<PureFn> {
            let nearest = rnd(v) == Rnd::Nearest;
            match t {
                Type::F32 if nearest => {
                    macro_rules! of {
                        ($ftz:literal, $sat:literal) => {
                            lift!(a: f32, b: f32 => f32 {
                                fp::finish::<$ftz, $sat>(fp::flush_if::<$ftz>(a) $op fp::flush_if::<$ftz>(b))
                            })
                        };
                    }
                    by_mode!(v, of)
                }
                Type::F32 => in_mode!(v, m; a, b => $wide(m, wide(m, a), wide(m, b))),
                Type::F32x2 if nearest => {
                    macro_rules! of {
                        ($ftz:literal, $sat:literal) => {
                            lift!(a: u64, b: u64 => u64 { pairwise(a, b, |a, b| {
                                fp::finish::<$ftz, $sat>(fp::flush_if::<$ftz>(a) $op fp::flush_if::<$ftz>(b))
                            }) })
                        };
                    }
                    by_mode!(v, of)
                }
                Type::F32x2 => lift_mode!(m = Mode::of; a: u64, b: u64 => u64 {
                    pairwise(a, b, |a, b| $wide(m, wide(m, a), wide(m, b)))
                }),
                Type::F64 if nearest => Some(|_, _, s, d| map::two_f64(s, d, |a, b| a $op b)),
                Type::F64 => lift_mode!(r = rnd; a: f64, b: f64 => f64 {
                    let x = soft64(r, $soft(num64(a), num64(b), r));
                    fp::keep64(x, a, b)
                }),
                _ => None,
            }
        }
    };
}
binary!(add, +, |m, a, b| directed_fma(m, a, 1.0, b), soft::add);
binary!(sub, -, |m, a, b: f64| directed_fma(m, a, 1.0, -b), |a: Num, b: Num, r| soft::add(a, b.negate(), r));
binary!(mul, *, |m, a: f64, b: f64| directed(m, a * b), |a, b, _| soft::mul(a, b));

/// `fma`, and `mad` on floating point, which is the same since `sm_20`.
pub(super) fn fma(v: &Variant, t: Type) -> Option<PureFn> {
    let nearest = rnd(v) == Rnd::Nearest;
    match t {
        Type::F32 if nearest => {
            macro_rules! of {
                ($ftz:literal, $sat:literal) => {
                    Some((|_, _, s, d| fma32::<$ftz, $sat>(s, d)) as PureFn)
                };
            }
            by_mode!(v, of)
        }
        Type::F32 => in_mode!(v, m; a, b, c => directed_fma(m, wide(m, a), wide(m, b), wide(m, c))),
        Type::F32x2 if nearest => {
            macro_rules! of {
                ($ftz:literal, $sat:literal) => {
                    lift!(a: u64, b: u64, c: u64 => u64 { pairwise3(a, b, c, |a, b, c| {
                        fp::finish::<$ftz, $sat>(fma_f32(
                            fp::flush_if::<$ftz>(a), fp::flush_if::<$ftz>(b), fp::flush_if::<$ftz>(c),
                        ))
                    }) })
                };
            }
            by_mode!(v, of)
        }
        Type::F32x2 => lift_mode!(m = Mode::of; a: u64, b: u64, c: u64 => u64 {
            pairwise3(a, b, c, |a, b, c| directed_fma(m, wide(m, a), wide(m, b), wide(m, c)))
        }),
        Type::F64 if nearest => Some(|_, _, s, d| fma64(s, d)),
        Type::F64 => lift_mode!(r = rnd; a: f64, b: f64, c: f64 => f64 {
            let x = soft64(r, soft::fma(num64(a), num64(b), num64(c), r));
            fp::keep64_of3(x, a, b, c)
        }),
        _ => None,
    }
}

/// `a * b + c`, rounded once, without the host's instruction.
#[inline(always)]
fn fma_f32(a: f32, b: f32, c: f32) -> f32 {
    fp::fma_odd(f64::from(a), f64::from(b), f64::from(c)) as f32
}

/// `fma.rn.f32` over a warp, to be compiled with the host's fused multiply-add.
#[cfg(target_arch = "x86_64")]
struct Fma32<'a, const FTZ: bool, const SAT: bool>(&'a [&'a [Row]], &'a mut [Row]);

#[cfg(target_arch = "x86_64")]
impl<const FTZ: bool, const SAT: bool> pulp::NullaryFnOnce for Fma32<'_, FTZ, SAT> {
    type Output = ();
    #[inline(always)]
    fn call(self) {
        fused32::<FTZ, SAT>(self.0, self.1);
    }
}

/// `fma.rn.f64` over a warp, to be compiled with the host's fused multiply-add.
#[cfg(target_arch = "x86_64")]
struct Fma64<'a>(&'a [&'a [Row]], &'a mut [Row]);

#[cfg(target_arch = "x86_64")]
impl pulp::NullaryFnOnce for Fma64<'_> {
    type Output = ();
    #[inline(always)]
    fn call(self) {
        fused64(self.0, self.1);
    }
}

#[inline(always)]
fn fused32<const FTZ: bool, const SAT: bool>(s: &[&[Row]], d: &mut [Row]) {
    map::three::<f32, f32, f32, f32>(s, d, |a, b, c| {
        let (a, b, c) = (fp::flush_if::<FTZ>(a), fp::flush_if::<FTZ>(b), fp::flush_if::<FTZ>(c));
        fp::finish::<FTZ, SAT>(a.mul_add(b, c))
    });
}

#[inline(always)]
fn fused64(s: &[&[Row]], d: &mut [Row]) {
    map::three::<f64, f64, f64, f64>(s, d, |a, b, c| fp::keep64_of3(a.mul_add(b, c), a, b, c));
}

/// Whether every host of this architecture has fused multiply-add, so that `mul_add` is an instruction rather than a
/// library call.
const ALWAYS_FUSED: bool = cfg!(any(target_arch = "aarch64", target_feature = "fma"));

fn fma32<const FTZ: bool, const SAT: bool>(s: &[&[Row]], d: &mut [Row]) {
    if ALWAYS_FUSED {
        return fused32::<FTZ, SAT>(s, d);
    }
    #[cfg(target_arch = "x86_64")]
    if let Some(host) = pulp::x86::V3::try_new() {
        return host.vectorize(Fma32::<FTZ, SAT>(s, d));
    }
    map::three::<f32, f32, f32, f32>(s, d, |a, b, c| {
        let (a, b, c) = (fp::flush_if::<FTZ>(a), fp::flush_if::<FTZ>(b), fp::flush_if::<FTZ>(c));
        fp::finish::<FTZ, SAT>(fma_f32(a, b, c))
    });
}

fn fma64(s: &[&[Row]], d: &mut [Row]) {
    if ALWAYS_FUSED {
        return fused64(s, d);
    }
    #[cfg(target_arch = "x86_64")]
    if let Some(host) = pulp::x86::V3::try_new() {
        return host.vectorize(Fma64(s, d));
    }
    map::three::<f64, f64, f64, f64>(s, d, |a, b, c| {
        let x = soft64(Rnd::Nearest, soft::fma(num64(a), num64(b), num64(c), Rnd::Nearest));
        fp::keep64_of3(x, a, b, c)
    });
}

/// `div`: approximate (`.approx`, `.full`) or rounded. The approximate ones are rounded as well, except where the
/// manual defines `.approx` by a subnormal `1/b`.
pub(super) fn div(v: &Variant, t: Type) -> Option<PureFn> {
    let (ftz, nearest) = (v.has(Mod::Ftz) || legacy(v), rnd(v) == Rnd::Nearest);
    match t {
        Type::F32 if (v.has(Mod::Approx) || legacy(v)) && ftz => {
            lift!(a: f32, b: f32 => f32 { approx_div::<true>(a, b) })
        }
        Type::F32 if v.has(Mod::Approx) => lift!(a: f32, b: f32 => f32 { approx_div::<false>(a, b) }),
        Type::F32 if nearest && ftz => lift!(a: f32, b: f32 => f32 {
            fp::finish::<true, false>(fp::flush(a) / fp::flush(b))
        }),
        Type::F32 if nearest => lift!(a: f32, b: f32 => f32 { fp::canon(a / b) }),
        Type::F32 => in_mode!(v, m; a, b => directed(m, wide(m, a) / wide(m, b))),
        Type::F64 if nearest => Some(|_, _, s, d| map::two_f64(s, d, |a, b| a / b)),
        Type::F64 => lift_mode!(r = rnd; a: f64, b: f64 => f64 {
            fp::keep64(soft64(r, soft::div(num64(a), num64(b))), a, b)
        }),
        _ => None,
    }
}

/// `a * (1/b)`, where `1/b` is zero for `|b|` above 2^126.
#[inline(always)]
fn approx_div<const FTZ: bool>(a: f32, b: f32) -> f32 {
    let (a, b) = (fp::flush_if::<FTZ>(a), fp::flush_if::<FTZ>(b));
    let q = if b.abs() > f32::from_bits(0x7e80_0000) { a * 0.0_f32.copysign(b) } else { a / b };
    fp::finish::<FTZ, false>(q)
}

/// `rcp`: `.approx` is rounded to nearest as well (the manual allows one unit).
pub(super) fn rcp(v: &Variant, t: Type) -> Option<PureFn> {
    let (ftz, nearest) = (v.has(Mod::Ftz) || legacy(v), rnd(v) == Rnd::Nearest);
    const ONE: Num = Num::Val(soft::Exact { neg: false, exp: 0, sig: 1 });
    match t {
        Type::F32 if nearest && ftz => lift!(a: f32 => f32 { fp::finish::<true, false>(1.0 / fp::flush(a)) }),
        Type::F32 if nearest => lift!(a: f32 => f32 { fp::canon(1.0 / a) }),
        Type::F32 => in_mode!(v, m; a => directed(m, 1.0 / wide(m, a))),
        Type::F64 if v.has(Mod::Approx) => lift!(a: f64 => f64 { gross(a, |x| 1.0 / x) }),
        Type::F64 if nearest => lift!(a: f64 => f64 { fp::keep64(1.0 / a, a, a) }),
        Type::F64 => lift_mode!(r = rnd; a: f64 => f64 { fp::keep64(soft64(r, soft::div(ONE, num64(a))), a, a) }),
        _ => None,
    }
}

/// `sqrt`: `.approx` is rounded to nearest as well.
pub(super) fn sqrt(v: &Variant, t: Type) -> Option<PureFn> {
    let (ftz, nearest) = (v.has(Mod::Ftz) || legacy(v), rnd(v) == Rnd::Nearest);
    match t {
        Type::F32 if nearest && ftz => lift!(a: f32 => f32 { fp::finish::<true, false>(fp::flush(a).sqrt()) }),
        Type::F32 if nearest => lift!(a: f32 => f32 { fp::canon(a.sqrt()) }),
        Type::F32 => in_mode!(v, m; a => directed(m, wide(m, a).sqrt())),
        Type::F64 if nearest => lift!(a: f64 => f64 { fp::keep64_root(a.sqrt(), a) }),
        Type::F64 => lift_mode!(r = rnd; a: f64 => f64 { fp::keep64_root(soft64(r, soft::sqrt(num64(a))), a) }),
        _ => None,
    }
}

/// `rsqrt.approx`: two correctly rounded steps in double precision, well inside the manual's 2^-22.9.
pub(super) fn rsqrt(v: &Variant, t: Type) -> Option<PureFn> {
    match t {
        Type::F32 if v.has(Mod::Ftz) || legacy(v) => {
            lift!(a: f32 => f32 { fp::finish::<true, false>(rsqrt32(fp::flush(a))) })
        }
        Type::F32 => lift!(a: f32 => f32 { fp::canon(rsqrt32(a)) }),
        Type::F64 if v.has(Mod::Ftz) => lift!(a: f64 => f64 { gross(a, |x| 1.0 / x.sqrt()) }),
        Type::F64 => lift!(a: f64 => f64 { fp::keep64_root(1.0 / a.sqrt(), a) }),
        _ => None,
    }
}

#[inline(always)]
fn rsqrt32(a: f32) -> f32 {
    (1.0 / f64::from(a).sqrt()) as f32
}

/// The gross double-precision approximations (9.7.3.14, 9.7.3.17): only the upper words of operand and result count;
/// subnormals are flushed; NaN is `0x7fffffff00000000`.
#[inline(always)]
fn gross(a: f64, f: impl Fn(f64) -> f64) -> f64 {
    let flush = |bits: u64| if bits & 0x7ff0_0000_0000_0000 == 0 { bits & 1 << 63 } else { bits };
    let upper = 0xffff_ffff_0000_0000;
    let x = f(f64::from_bits(flush(a.to_bits() & upper)));
    if fp::is_nan64(a.to_bits()) || fp::is_nan64(x.to_bits()) {
        return f64::from_bits(0x7fff_ffff_0000_0000);
    }
    f64::from_bits(flush(x.to_bits() & upper))
}

/// `abs`: clears the sign, also of NaNs.
pub(super) fn abs(v: &Variant, t: Type) -> Option<PureFn> {
    match t {
        Type::F32 if v.has(Mod::Ftz) => lift!(a: f32 => f32 { fp::flush(a.abs()) }),
        Type::F32 => lift!(a: u32 => u32 { a & 0x7fff_ffff }),
        Type::F64 => lift!(a: u64 => u64 { a & !(1 << 63) }),
        Type::F32x2 => lift!(a: u64 => u64 { a & 0x7fff_ffff_7fff_ffff }),
        _ => None,
    }
}

/// `neg`: flips the sign, also of NaNs.
pub(super) fn neg(v: &Variant, t: Type) -> Option<PureFn> {
    match t {
        Type::F32 if v.has(Mod::Ftz) => lift!(a: f32 => f32 { fp::flush(-a) }),
        Type::F32 => lift!(a: u32 => u32 { a ^ 0x8000_0000 }),
        Type::F64 => lift!(a: u64 => u64 { a ^ 1 << 63 }),
        Type::F32x2 => lift!(a: u64 => u64 { a ^ 0x8000_0000_8000_0000 }),
        _ => None,
    }
}

/// The magnitude of `b` with the sign of `a`.
pub(super) fn copysign(t: Type) -> Option<PureFn> {
    match t {
        Type::F32 => lift!(a: u32, b: u32 => u32 { a & 0x8000_0000 | b & 0x7fff_ffff }),
        Type::F64 => lift!(a: u64, b: u64 => u64 { a & 1 << 63 | b & !(1 << 63) }),
        _ => None,
    }
}

/// The smaller of two numbers, -0 below +0; a NaN only if both are.
#[inline(always)]
fn min32(a: f32, b: f32) -> f32 {
    let less = a < b || a == b && a.is_sign_negative();
    let x = if less || b.is_nan() { a } else { b };
    fp::canon(x)
}

/// See [`min32`].
#[inline(always)]
fn max32(a: f32, b: f32) -> f32 {
    let more = a > b || a == b && a.is_sign_positive();
    let x = if more || b.is_nan() { a } else { b };
    fp::canon(x)
}

/// The modifiers of `min` and `max`: `.ftz`, `.NaN`, `.abs` and `.xorsign`.
#[derive(Clone, Copy)]
struct Pick {
    ftz: bool,
    nan: bool,
    abs: bool,
    xorsign: bool,
    max: bool,
}

impl Pick {
    fn of(v: &Variant, max: bool) -> Pick {
        Pick {
            ftz: v.has(Mod::Ftz),
            nan: v.has(Mod::PropagateNan),
            abs: v.has(Mod::Abs),
            xorsign: v.has(Mod::Xorsign),
            max,
        }
    }

    #[inline(always)]
    fn read(self, x: f32) -> f32 {
        let x = if self.ftz { fp::flush(x) } else { x };
        if self.abs { x.abs() } else { x }
    }

    #[inline(always)]
    fn pick(self, a: f32, b: f32) -> f32 {
        if self.nan && (a.is_nan() || b.is_nan()) {
            f32::from_bits(fp::NAN32)
        } else if self.max {
            max32(a, b)
        } else {
            min32(a, b)
        }
    }

    #[inline(always)]
    fn two(self, a: f32, b: f32) -> f32 {
        let sign = (a.to_bits() ^ b.to_bits()) & 0x8000_0000;
        let d = self.pick(self.read(a), self.read(b));
        if self.xorsign && !d.is_nan() { f32::from_bits(d.to_bits() & 0x7fff_ffff | sign) } else { d }
    }
}

/// `min` and `max` of two or three values.
pub(super) fn min_max(v: &Variant, t: Type, sources: usize, max: bool) -> Option<PureFn> {
    let plain = !v.has(Mod::PropagateNan) && !v.has(Mod::Abs) && sources == 2;
    match (t, max, v.has(Mod::Ftz)) {
        (Type::F32, false, false) if plain => lift!(a: f32, b: f32 => f32 { min32(a, b) }),
        (Type::F32, true, false) if plain => lift!(a: f32, b: f32 => f32 { max32(a, b) }),
        (Type::F32, false, true) if plain => lift!(a: f32, b: f32 => f32 { min32(fp::flush(a), fp::flush(b)) }),
        (Type::F32, true, true) if plain => lift!(a: f32, b: f32 => f32 { max32(fp::flush(a), fp::flush(b)) }),
        (Type::F32, false, _) if sources == 2 => {
            lift_mode!(m = |v| Pick::of(v, false); a: f32, b: f32 => f32 { m.two(a, b) })
        }
        (Type::F32, true, _) if sources == 2 => {
            lift_mode!(m = |v| Pick::of(v, true); a: f32, b: f32 => f32 { m.two(a, b) })
        }
        (Type::F32, false, _) => lift_mode!(m = |v| Pick::of(v, false); a: f32, b: f32, c: f32 => f32 {
            m.pick(m.pick(m.read(a), m.read(b)), m.read(c))
        }),
        (Type::F32, true, _) => lift_mode!(m = |v| Pick::of(v, true); a: f32, b: f32, c: f32 => f32 {
            m.pick(m.pick(m.read(a), m.read(b)), m.read(c))
        }),
        (Type::F64, false, _) => Some(|_, _, s, d| {
            map::two_f64(s, d, |a, b| if a < b || a == b && a.is_sign_negative() || b.is_nan() { a } else { b });
        }),
        (Type::F64, true, _) => Some(|_, _, s, d| {
            map::two_f64(s, d, |a, b| if a > b || a == b && a.is_sign_positive() || b.is_nan() { a } else { b });
        }),
        _ => None,
    }
}

/// `testp`: zero counts as normal.
pub(super) fn testp(v: &Variant, t: Type) -> Option<PureFn> {
    macro_rules! tests {
        ($f:ty) => {{
            macro_rules! test {
                ($a:ident => $e:expr) => {
                    Some((|_, _, s, d| d[0].0[0] = map::mask_one::<$f>(s, |$a| $e)) as PureFn)
                };
            }
            match () {
                _ if v.has(Mod::Finite) => test!(a => a.is_finite()),
                _ if v.has(Mod::Infinite) => test!(a => a.is_infinite()),
                _ if v.has(Mod::Number) => test!(a => !a.is_nan()),
                _ if v.has(Mod::Notanumber) => test!(a => a.is_nan()),
                _ if v.has(Mod::Normal) => test!(a => a.is_normal() || a == 0.0),
                _ if v.has(Mod::Subnormal) => test!(a => a.is_subnormal()),
                _ => None,
            }
        }};
    }
    match t {
        Type::F32 => tests!(f32),
        Type::F64 => tests!(f64),
        _ => None,
    }
}
