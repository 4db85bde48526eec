//! Scalar helpers of floating-point instructions: NaNs, flushing, saturation, and the half formats on the host's
//! floats.
//!
//! **NaNs** (introduction of section 9.7.3): single-precision instructions return "an unspecified NaN"; here it is
//! always the hardware's `0x7fffffff`. Half-precision instructions return `0x7fff`. Double-precision instructions keep
//! payloads: the result is the first operand that is a NaN, made quiet; an invalid operation gives
//! `0xfff8000000000000`.

use super::soft::Rnd;

/// The NaN of single-precision instructions.
pub const NAN32: u32 = 0x7fff_ffff;
/// The NaN of `.f16` and `.bf16` instructions.
pub const NAN16: u16 = 0x7fff;
/// The NaN of invalid double-precision operations.
pub const NAN64: u64 = 0xfff8_0000_0000_0000;
/// The bit that makes a double-precision NaN quiet.
const QUIET64: u64 = 1 << 51;

/// Canonicalizes NaNs. The test is on bits: LLVM drops a selection of NaNs after a square root of a negative number,
/// since it treats all NaNs alike.
#[inline(always)]
pub fn canon(x: f32) -> f32 {
    let b = x.to_bits();
    f32::from_bits(if b & 0x7fff_ffff > 0x7f80_0000 { NAN32 } else { b })
}

/// Whether bits encode a double-precision NaN (see [`canon`]).
#[inline(always)]
pub fn is_nan64(b: u64) -> bool {
    b & 0x7fff_ffff_ffff_ffff > 0x7ff0_0000_0000_0000
}

/// Flushes a subnormal to a zero of its sign.
#[inline(always)]
pub fn flush(x: f32) -> f32 {
    let b = x.to_bits();
    f32::from_bits(if b & 0x7f80_0000 == 0 { b & 0x8000_0000 } else { b })
}

/// [`flush`] if `FTZ` is set.
#[inline(always)]
pub fn flush_if<const FTZ: bool>(x: f32) -> f32 {
    if FTZ { flush(x) } else { x }
}

/// `.sat`: clamps to [+0.0, 1.0]; NaN becomes +0.0.
#[inline(always)]
pub fn saturate(x: f32) -> f32 {
    // Both comparisons fail for NaN; the first also turns -0.0 into +0.0.
    let low = if x > 0.0 { x } else { 0.0 };
    if low < 1.0 { low } else { 1.0 }
}

/// The final step of every single-precision result: `.ftz`, then `.sat` or canonicalization.
#[inline(always)]
pub fn finish<const FTZ: bool, const SAT: bool>(x: f32) -> f32 {
    let x = flush_if::<FTZ>(x);
    if SAT { saturate(x) } else { canon(x) }
}

/// `.sat` in double precision.
#[inline(always)]
pub fn saturate64(x: f64) -> f64 {
    let low = if x > 0.0 { x } else { 0.0 };
    if low < 1.0 { low } else { 1.0 }
}

/// The NaN of a double-precision instruction with operands `a` and `b`, given that its result is a NaN.
#[inline(always)]
pub fn nan64(a: f64, b: f64) -> f64 {
    let second = if b.is_nan() { b.to_bits() | QUIET64 } else { NAN64 };
    f64::from_bits(if a.is_nan() { a.to_bits() | QUIET64 } else { second })
}

/// A double-precision result `r` of `a` and `b`, with its NaN corrected.
#[inline(always)]
pub fn keep64(r: f64, a: f64, b: f64) -> f64 {
    if r.is_nan() { nan64(a, b) } else { r }
}

/// The result `r` of a function with square roots of `a`, with its NaN corrected.
#[inline(always)]
pub fn keep64_root(r: f64, a: f64) -> f64 {
    let (r, a) = (r.to_bits(), a.to_bits());
    let nan = if is_nan64(a) { a | QUIET64 } else { NAN64 };
    f64::from_bits(if is_nan64(r) { nan } else { r })
}

/// A double-precision result `r` of `a`, `b` and `c`, with its NaN corrected.
#[inline(always)]
pub fn keep64_of3(r: f64, a: f64, b: f64, c: f64) -> f64 {
    if !r.is_nan() {
        r
    } else if a.is_nan() || b.is_nan() {
        nan64(a, b)
    } else {
        nan64(c, c)
    }
}

/// A single-precision value in double precision; a NaN keeps sign and payload and becomes quiet.
#[inline(always)]
pub fn widen(x: f32) -> f64 {
    let b = u64::from(x.to_bits());
    let nan = (b & 0x8000_0000) << 32 | 0x7ff8_0000_0000_0000 | (b & 0x007f_ffff) << 29;
    if x.is_nan() { f64::from_bits(nan) } else { f64::from(x) }
}

/// A double-precision value in single precision, to nearest; a NaN keeps its sign and the upper payload and becomes quiet.
#[inline(always)]
pub fn narrow(x: f64) -> f32 {
    if x.is_nan() { f32::from_bits(narrow_nan(x)) } else { x as f32 }
}

/// The bits of a double-precision NaN, narrowed to single precision.
#[inline(always)]
pub fn narrow_nan(x: f64) -> u32 {
    let b = x.to_bits();
    (b >> 32) as u32 & 0x8000_0000 | 0x7fc0_0000 | (b >> 29) as u32 & 0x003f_ffff
}

/// `a * b + c` for factors of up to 26 bits, rounded *to odd* in double precision: exact, or with the lowest bit set as
/// a sticky bit. Rounding it to a format with at least two bits less is then correct in any mode.
#[inline(always)]
pub fn fma_odd(a: f64, b: f64, c: f64) -> f64 {
    // The product is exact; Knuth's TwoSum gives the error of the sum.
    let p = a * b;
    let s = p + c;
    let back = s - p;
    let error = (p - (s - back)) + (c - back);
    let (bits, toward) = (s.to_bits(), error.to_bits());
    let step = if (bits ^ toward) >> 63 == 0 { 1 } else { u64::MAX };
    let inexact = error != 0.0 && !error.is_nan();
    f64::from_bits(if inexact && bits & 1 == 0 { bits.wrapping_add(step) } else { bits })
}

/// [`fma_odd`] with the sign of an exact zero in a rounding mode: under `.rm` only the sum of positive zeros is
/// positive.
#[inline(always)]
pub fn fma_odd_in(a: f64, b: f64, c: f64, rnd: Rnd) -> f64 {
    let x = fma_odd(a, b, c);
    let positive = (a * b).to_bits() == 0 && c.to_bits() == 0;
    if rnd == Rnd::Down && x == 0.0 && !positive { -0.0 } else { x }
}

/// Rounds `x` to single precision in any mode. `x` is exact, or rounded to odd, or it is a quotient or root of
/// single-precision numbers rounded to nearest: such a number, unless it is a single-precision number itself, is
/// farther from all of them than its error (2^-49 against 2^-53 of its size), so it is on the correct side of each.
#[inline(always)]
pub fn narrow_to(x: f64, rnd: Rnd) -> f32 {
    let y = x as f32;
    let back = f64::from(y);
    let bits = y.to_bits();
    let negative = bits >> 31 != 0;
    // One unit away from zero or towards it; the sign of `y` is that of `x`, also for zeros.
    let (away, toward) = (bits.wrapping_add(1), bits.wrapping_sub(1));
    let below = if negative { away } else { toward };
    let above = if negative { toward } else { away };
    let fixed = match rnd {
        Rnd::Nearest | Rnd::Away => bits,
        Rnd::Zero => {
            if back.abs() > x.abs() {
                toward
            } else {
                bits
            }
        }
        Rnd::Down => {
            if back > x {
                below
            } else {
                bits
            }
        }
        Rnd::Up => {
            if back < x {
                above
            } else {
                bits
            }
        }
    };
    f32::from_bits(fixed)
}

/// Double to single precision, rounded to odd.
#[inline(always)]
pub fn narrow_odd(x: f64) -> f32 {
    let y = x as f32;
    let back = f64::from(y);
    let too_big = back.abs() > x.abs();
    let inexact = back != x && !x.is_nan();
    f32::from_bits(y.to_bits().wrapping_sub(u32::from(too_big)) | u32::from(inexact))
}

/// An `.f16` in single precision, exactly; NaNs are canonicalized.
#[inline(always)]
pub fn from_f16(h: u16) -> f32 {
    let h = u32::from(h);
    let sign = (h & 0x8000) << 16;
    let shifted = (h & 0x7fff) << 13;
    let normal = f32::from_bits(shifted + ((127 - 15) << 23));
    // A subnormal: its mantissa with the exponent of the smallest normal number, minus that number.
    let smallest = f32::from_bits(113 << 23);
    let small = f32::from_bits(shifted + (113 << 23)) - smallest;
    let special = if h & 0x03ff == 0 { 0x7f80_0000 } else { NAN32 };
    let finite = if h & 0x7c00 == 0 { small.to_bits() } else { normal.to_bits() };
    let magnitude = if h & 0x7c00 == 0x7c00 { special } else { finite };
    // The canonical NaN is positive.
    f32::from_bits(if magnitude == NAN32 { NAN32 } else { magnitude | sign })
}

/// A single-precision value as `.f16`, rounded to nearest even; NaNs are canonicalized.
#[inline(always)]
pub fn to_f16(x: f32) -> u16 {
    let b = x.to_bits();
    let sign = (b >> 16) as u16 & 0x8000;
    let a = b & 0x7fff_ffff;
    // Below the smallest normal number: adding 0.5 aligns the unit in the last place with the bit at which the host
    // rounds.
    let small = (f32::from_bits(a) + 0.5).to_bits().wrapping_sub(0x3f00_0000);
    let normal = a.wrapping_add(0xc800_0fff).wrapping_add(a >> 13 & 1) >> 13;
    let finite = if a < 0x3880_0000 { small } else { normal };
    let magnitude = if a >= 0x4780_0000 { 0x7c00 } else { finite };
    if a > 0x7f80_0000 { NAN16 } else { sign | magnitude as u16 }
}

/// A `.bf16` in single precision, exactly; NaNs are canonicalized.
#[inline(always)]
pub fn from_bf16(h: u16) -> f32 {
    canon(f32::from_bits(u32::from(h) << 16))
}

/// A single-precision value as `.bf16`, rounded to nearest even; NaNs are canonicalized.
#[inline(always)]
pub fn to_bf16(x: f32) -> u16 {
    let b = x.to_bits();
    if x.is_nan() { NAN16 } else { (b.wrapping_add(0x7fff + (b >> 16 & 1)) >> 16) as u16 }
}

/// The integral value nearest to `x`, ties to even; keeps the sign of zero. NaNs stay NaNs.
#[inline(always)]
pub fn rint(x: f32) -> f32 {
    // Adding 2^23 leaves no bits for a fraction; beyond it every number is integral.
    let magic = 8_388_608.0_f32.copysign(x);
    let r = (x + magic) - magic;
    if x.abs() < 8_388_608.0 { r.copysign(x) } else { x }
}

/// See [`rint`]: towards negative infinity.
#[inline(always)]
pub fn floor(x: f32) -> f32 {
    let r = rint(x);
    (r - if r > x { 1.0 } else { 0.0 }).copysign(x)
}

/// See [`rint`]: towards positive infinity.
#[inline(always)]
pub fn ceil(x: f32) -> f32 {
    let r = rint(x);
    (r + if r < x { 1.0 } else { 0.0 }).copysign(x)
}

/// See [`rint`]: towards zero.
#[inline(always)]
pub fn trunc(x: f32) -> f32 {
    let r = rint(x);
    let over = r.abs() > x.abs();
    (r - if over { 1.0_f32.copysign(x) } else { 0.0 }).copysign(x)
}

/// See [`rint`].
#[inline(always)]
pub fn rint64(x: f64) -> f64 {
    let magic = 4_503_599_627_370_496.0_f64.copysign(x);
    let r = (x + magic) - magic;
    if x.abs() < 4_503_599_627_370_496.0 { r.copysign(x) } else { x }
}

/// See [`floor`].
#[inline(always)]
pub fn floor64(x: f64) -> f64 {
    let r = rint64(x);
    (r - if r > x { 1.0 } else { 0.0 }).copysign(x)
}

/// See [`ceil`].
#[inline(always)]
pub fn ceil64(x: f64) -> f64 {
    let r = rint64(x);
    (r + if r < x { 1.0 } else { 0.0 }).copysign(x)
}

/// See [`trunc`].
#[inline(always)]
pub fn trunc64(x: f64) -> f64 {
    let r = rint64(x);
    let over = r.abs() > x.abs();
    (r - if over { 1.0_f64.copysign(x) } else { 0.0 }).copysign(x)
}
