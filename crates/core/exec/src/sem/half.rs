//! Half-precision arithmetic (manual, section 9.7.4) on `.f16`, `.f16x2`, `.bf16`, `.bf16x2`.
//!
//! Results are rounded once: they are computed in single or double precision, exactly or rounded to odd, which leaves
//! enough bits for a correct second rounding (see [`fp::fma_odd`]).

use super::{
    PureFn, fp,
    map::{self, lift, lift_mode},
    mode::{rnd, ty},
    soft::{self, Format, Rnd},
};
use margay_isa::{Mod, Opcode, Type, Variant};

/// A half format, and its conversions.
trait Half {
    /// The format in [`soft`], for directed rounding.
    const FORMAT: Format;
    /// Widens to single precision, exactly.
    fn read(bits: u16) -> f32;
    /// Narrows from single precision, to nearest even.
    fn write(x: f32) -> u16;
    /// Flushes a subnormal to a zero of its sign.
    fn flush(bits: u16) -> u16;
    /// A product, exact or rounded to odd.
    fn product(a: f32, b: f32) -> f32;
    /// `a * b + c`, exact or rounded to odd.
    fn fused(a: f32, b: f32, c: f32) -> f32;
}

struct Ieee;
struct Bfloat;

impl Half for Ieee {
    const FORMAT: Format = soft::F16;
    #[inline(always)]
    fn read(bits: u16) -> f32 {
        fp::from_f16(bits)
    }
    #[inline(always)]
    fn write(x: f32) -> u16 {
        fp::to_f16(x)
    }
    #[inline(always)]
    fn flush(bits: u16) -> u16 {
        if bits & 0x7c00 == 0 { bits & 0x8000 } else { bits }
    }
    #[inline(always)]
    fn product(a: f32, b: f32) -> f32 {
        a * b
    }
    #[inline(always)]
    fn fused(a: f32, b: f32, c: f32) -> f32 {
        // From 2^32 down to 2^-48 a sum can have more bits than double precision, but then it overflows anyway.
        fp::narrow_odd(f64::from(a) * f64::from(b) + f64::from(c))
    }
}

impl Half for Bfloat {
    const FORMAT: Format = soft::BF16;
    #[inline(always)]
    fn read(bits: u16) -> f32 {
        fp::from_bf16(bits)
    }
    #[inline(always)]
    fn write(x: f32) -> u16 {
        fp::to_bf16(x)
    }
    #[inline(always)]
    fn flush(bits: u16) -> u16 {
        if bits & 0x7f80 == 0 { bits & 0x8000 } else { bits }
    }
    #[inline(always)]
    fn product(a: f32, b: f32) -> f32 {
        // The product of small numbers is below the range of single precision.
        fp::narrow_odd(f64::from(a) * f64::from(b))
    }
    #[inline(always)]
    fn fused(a: f32, b: f32, c: f32) -> f32 {
        fp::narrow_odd(fp::fma_odd(f64::from(a), f64::from(b), f64::from(c)))
    }
}

/// The modifiers `.ftz`, `.sat`, `.relu` and `.oob`, and the rounding.
#[derive(Clone, Copy)]
struct Post {
    ftz: bool,
    sat: bool,
    relu: bool,
    oob: bool,
    rnd: Rnd,
}

/// No modifiers, the common case: its loops have no branches.
const PLAIN: Post = Post { ftz: false, sat: false, relu: false, oob: false, rnd: Rnd::Nearest };

/// The NaN that tensor copies write for out-of-bounds elements.
const OOB: u16 = 0x7fff;

impl Post {
    fn of(v: &Variant) -> Post {
        Post { ftz: v.has(Mod::Ftz), sat: v.has(Mod::Sat), relu: v.has(Mod::Relu), oob: v.has(Mod::Oob), rnd: rnd(v) }
    }

    #[inline(always)]
    fn read<H: Half>(self, bits: u16) -> f32 {
        H::read(if self.ftz { H::flush(bits) } else { bits })
    }

    /// Rounds a result in single precision, which is exact, rounded to odd, or the nearest to a sum of halves, and
    /// applies the modifiers.
    #[inline(always)]
    fn write<H: Half>(self, x: f32) -> u16 {
        let x = if self.sat { fp::saturate(x) } else { x };
        let x = if self.relu && x <= 0.0 { 0.0 } else { x };
        let bits = match self.rnd {
            Rnd::Nearest => H::write(x),
            rnd => H::FORMAT.pack_f32(x, rnd, false) as u16,
        };
        if self.ftz { H::flush(bits) } else { bits }
    }

    // Single precision has more than twice the bits of either format plus two, so that double rounding of a sum is
    // innocuous (Figueroa, 1995); small sums are exact.
    #[inline(always)]
    fn add<H: Half>(self, a: u16, b: u16) -> u16 {
        self.write::<H>(self.read::<H>(a) + self.read::<H>(b))
    }

    #[inline(always)]
    fn sub<H: Half>(self, a: u16, b: u16) -> u16 {
        self.write::<H>(self.read::<H>(a) - self.read::<H>(b))
    }

    #[inline(always)]
    fn mul<H: Half>(self, a: u16, b: u16) -> u16 {
        self.write::<H>(H::product(self.read::<H>(a), self.read::<H>(b)))
    }

    #[inline(always)]
    fn fma<H: Half>(self, a: u16, b: u16, c: u16) -> u16 {
        if self.oob && (a == OOB || b == OOB || c == OOB) {
            return 0;
        }
        let (a, b, c) = (self.read::<H>(a), self.read::<H>(b), self.read::<H>(c));
        let x = H::fused(a, b, c);
        // Exact cancellation gives +0, but -0 when rounding down.
        let cancels = x == 0.0 && (a * b).is_sign_negative() != c.is_sign_negative();
        self.write::<H>(if cancels && self.rnd == Rnd::Down { -0.0 } else { x })
    }
}

/// `add`, `sub`, `mul`, `fma`.
pub(super) fn arithmetic(v: &Variant, t: Type) -> Option<PureFn> {
    let plain = [Mod::Ftz, Mod::Sat, Mod::Relu, Mod::Oob].into_iter().all(|m| !v.has(m)) && rnd(v) == Rnd::Nearest;
    macro_rules! row {
        ($f:ident, $scalar:ident, $packed:ident, ($($arg:ident),+), ($($bits:ty),+)) => {
            match t {
                Type::F16 if plain => {
                    Some(|_, _, s, d| map::$scalar::<$($bits),+, u16>(s, d, |$($arg),+| PLAIN.$f::<Ieee>($($arg),+)))
                }
                Type::Bf16 if plain => {
                    Some(|_, _, s, d| map::$scalar::<$($bits),+, u16>(s, d, |$($arg),+| PLAIN.$f::<Bfloat>($($arg),+)))
                }
                Type::F16x2 if plain => {
                    Some(|_, _, s, d| map::$packed(s, d, |$($arg),+| PLAIN.$f::<Ieee>($($arg),+)))
                }
                Type::Bf16x2 if plain => {
                    Some(|_, _, s, d| map::$packed(s, d, |$($arg),+| PLAIN.$f::<Bfloat>($($arg),+)))
                }
                Type::F16 => Some(|v, _, s, d| {
                    let m = Post::of(v);
                    map::$scalar::<$($bits),+, u16>(s, d, |$($arg),+| m.$f::<Ieee>($($arg),+));
                }),
                Type::Bf16 => Some(|v, _, s, d| {
                    let m = Post::of(v);
                    map::$scalar::<$($bits),+, u16>(s, d, |$($arg),+| m.$f::<Bfloat>($($arg),+));
                }),
                Type::F16x2 => Some(|v, _, s, d| {
                    let m = Post::of(v);
                    map::$packed(s, d, |$($arg),+| m.$f::<Ieee>($($arg),+));
                }),
                Type::Bf16x2 => Some(|v, _, s, d| {
                    let m = Post::of(v);
                    map::$packed(s, d, |$($arg),+| m.$f::<Bfloat>($($arg),+));
                }),
                _ => None,
            }
        };
    }
    match v.op {
        Opcode::Add => row!(add, two, two_packed, (a, b), (u16, u16)),
        Opcode::Sub => row!(sub, two, two_packed, (a, b), (u16, u16)),
        Opcode::Mul => row!(mul, two, two_packed, (a, b), (u16, u16)),
        Opcode::Fma => row!(fma, three, three_packed, (a, b, c), (u16, u16, u16)),
        _ => None,
    }
}

/// `abs`: clears the sign, also of NaNs.
pub(super) fn abs(v: &Variant, t: Type) -> Option<PureFn> {
    match t {
        Type::F16 if v.has(Mod::Ftz) => lift!(a: u16 => u16 { Ieee::flush(a & 0x7fff) }),
        Type::F16x2 if v.has(Mod::Ftz) => Some(|_, _, s, d| map::one_packed(s, d, |a| Ieee::flush(a & 0x7fff))),
        Type::F16 | Type::Bf16 => lift!(a: u16 => u16 { a & 0x7fff }),
        _ => lift!(a: u32 => u32 { a & 0x7fff_7fff }),
    }
}

/// `neg`: flips the sign, also of NaNs.
pub(super) fn neg(v: &Variant, t: Type) -> Option<PureFn> {
    match t {
        Type::F16 if v.has(Mod::Ftz) => lift!(a: u16 => u16 { Ieee::flush(a ^ 0x8000) }),
        Type::F16x2 if v.has(Mod::Ftz) => Some(|_, _, s, d| map::one_packed(s, d, |a| Ieee::flush(a ^ 0x8000))),
        Type::F16 | Type::Bf16 => lift!(a: u16 => u16 { a ^ 0x8000 }),
        _ => lift!(a: u32 => u32 { a ^ 0x8000_8000 }),
    }
}

/// `min` and `max` with their modifiers.
#[derive(Clone, Copy)]
struct Pick {
    /// The code of infinity: greater codes are NaNs.
    infinity: u16,
    bf16: bool,
    max: bool,
    ftz: bool,
    nan: bool,
    xorsign: bool,
}

impl Pick {
    fn of(v: &Variant) -> Pick {
        let bf16 = matches!(ty(v, 0), Some(Type::Bf16 | Type::Bf16x2));
        Pick {
            infinity: if bf16 { 0x7f80 } else { 0x7c00 },
            bf16,
            max: v.op == Opcode::Max,
            ftz: v.has(Mod::Ftz),
            nan: v.has(Mod::PropagateNan),
            xorsign: v.has(Mod::Xorsign),
        }
    }

    #[inline(always)]
    fn pick(self, a: u16, b: u16) -> u16 {
        let sign = (a ^ b) & 0x8000;
        let read = |x: u16| {
            let x = match (self.ftz, self.bf16) {
                (false, _) => x,
                (true, false) => Ieee::flush(x),
                (true, true) => Bfloat::flush(x),
            };
            if self.xorsign { x & 0x7fff } else { x }
        };
        let (a, b) = (read(a), read(b));
        let (a_nan, b_nan) = (a & 0x7fff > self.infinity, b & 0x7fff > self.infinity);
        if a_nan && b_nan || self.nan && (a_nan || b_nan) {
            return fp::NAN16;
        }
        // Codes in the order of their values, -0 just below +0.
        let key = |x: u16| if x & 0x8000 != 0 { !x } else { x | 0x8000 };
        let first = if self.max { key(a) > key(b) } else { key(a) < key(b) };
        let d = if b_nan || !a_nan && first { a } else { b };
        if self.xorsign { d & 0x7fff | sign } else { d }
    }
}

/// `min`, `max`
pub(super) fn min_max(_: &Variant, t: Type) -> Option<PureFn> {
    match t {
        Type::F16 | Type::Bf16 => lift_mode!(m = Pick::of; a: u16, b: u16 => u16 { m.pick(a, b) }),
        _ => Some(|v, _, s, d| {
            let m = Pick::of(v);
            map::two_packed(s, d, |a, b| m.pick(a, b));
        }),
    }
}
