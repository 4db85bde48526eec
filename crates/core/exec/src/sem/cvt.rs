//! `cvt` between scalar types, and `cvt.pack` (manual, sections 9.7.9.21 and 9.7.9.22).
//!
//! Common pairs have a lane function of their own. Every other pair and mode goes through [`Convert::one`], which is
//! exact for all of them. Sources and destinations may be in wider registers (section 9.4.1): sources are truncated,
//! destinations extended according to the signedness of the type.
//!
//! A NaN becomes the canonical NaN of its new format; between `.f32` and `.f64` it keeps sign and payload. A conversion
//! to the same format, without a modifier, is a move.

use super::{
    PureFn, fp,
    map::lift,
    mode::{rnd, ty},
    small,
    soft::{BF16, F16, F32, F64, Format, Num, Rnd, TF32},
};
use crate::{LANES, Row, lanes};
use margay_isa::{Mod, Type, Variant};

/// `cvt` of all kinds.
pub(super) fn cvt(v: &Variant, src_bits: &[u32], dst_bits: &[u32]) -> Option<PureFn> {
    let (d, s) = (ty(v, 0)?, ty(v, 1)?);
    if v.has(Mod::Pack) {
        let wide = src_bits.iter().chain(dst_bits).any(|bits| *bits > 32);
        return if wide { pack_wide(d) } else { pack(d) };
    }
    let (src, dst) = (*src_bits.first()?, *dst_bits.first()?);
    if Convert::of(v).is_none() {
        let words = src_bits.iter().chain(dst_bits).all(|bits| *bits <= 32);
        return small::cvt(v, d, s, words);
    }
    let natural = lanes::rows(src) == lanes::rows(s.bits());
    if natural && let Some(f) = int_to_int(v, d, s, dst).or_else(|| with_float(v, d, s, dst)) {
        return Some(f);
    }
    match dst {
        ..=8 => Some(|v, _, s, d| general(v, s, d, 8)),
        9..=16 => Some(|v, _, s, d| general(v, s, d, 16)),
        17..=32 => Some(|v, _, s, d| general(v, s, d, 32)),
        _ => Some(|v, _, s, d| general(v, s, d, 64)),
    }
}

/// Integers without saturation, by types and the destination's width: truncated, then extended twice.
fn int_to_int(v: &Variant, d: Type, s: Type, dst: u32) -> Option<PureFn> {
    if v.has(Mod::Sat) {
        return None;
    }
    macro_rules! to {
        ($S:ty) => {
            match (d, dst) {
                (Type::U8, ..=32) => lift!(a: $S => u32 { a as u8 as u32 }),
                (Type::U8, 64) => lift!(a: $S => u64 { a as u8 as u64 }),
                (Type::S8, 16) => lift!(a: $S => u16 { a as i8 as u16 }),
                (Type::S8, 32) => lift!(a: $S => u32 { a as i8 as u32 }),
                (Type::S8, 64) => lift!(a: $S => u64 { a as i8 as u64 }),
                (Type::U16, ..=32) => lift!(a: $S => u32 { a as u16 as u32 }),
                (Type::U16, 64) => lift!(a: $S => u64 { a as u16 as u64 }),
                (Type::S16, 16) => lift!(a: $S => u16 { a as i16 as u16 }),
                (Type::S16, 32) => lift!(a: $S => u32 { a as i16 as u32 }),
                (Type::S16, 64) => lift!(a: $S => u64 { a as i16 as u64 }),
                (Type::U32 | Type::S32, 32) => lift!(a: $S => u32 { a as u32 }),
                (Type::U32, 64) => lift!(a: $S => u64 { a as u32 as u64 }),
                (Type::S32, 64) => lift!(a: $S => u64 { a as i32 as u64 }),
                (Type::U64 | Type::S64, 64) => lift!(a: $S => u64 { a as u64 }),
                _ => None,
            }
        };
    }
    match s {
        Type::U8 => to!(u8),
        Type::S8 => to!(i8),
        Type::U16 => to!(u16),
        Type::S16 => to!(i16),
        Type::U32 => to!(u32),
        Type::S32 => to!(i32),
        Type::U64 => to!(u64),
        Type::S64 => to!(i64),
        _ => None,
    }
}

/// The result of a NaN as an integer of 64 bits, or from `.f64`: only the highest bit is set.
macro_rules! nan_to_top {
    ($a:expr, $T:ty, $U:ty) => {
        if $a.is_nan() { (1 as $U << (<$U>::BITS - 1)) as $T } else { $a as $T }
    };
}

/// The common conversions from and to floats, in registers of the types' own widths.
fn with_float(v: &Variant, d: Type, s: Type, dst: u32) -> Option<PureFn> {
    if dst != d.bits() || [Mod::Relu, Mod::Satfinite, Mod::Pzo].iter().any(|m| v.has(*m)) {
        return None;
    }
    match (d.is_int(), s.is_int()) {
        (true, false) => float_to_integer(v, d, s),
        (false, true) => integer_to_float(v, d, s),
        (false, false) if integral(v) && d == s => to_integral(v, d),
        (false, false) => between_floats(v, d, s),
        (true, true) => None,
    }
}

fn float_to_integer(v: &Variant, d: Type, s: Type) -> Option<PureFn> {
    let (ftz, r) = (v.has(Mod::Ftz), rnd(v));
    // Rounding to an integral value in the source's precision; the host's conversion to an integer then clamps.
    macro_rules! from32 {
        ($round:expr) => {
            match d {
                Type::U32 => lift!(a: f32 => u32 { $round(a) as u32 }),
                Type::S32 => lift!(a: f32 => i32 { $round(a) as i32 }),
                Type::U64 => lift!(a: f32 => u64 { let x: f32 = $round(a); nan_to_top!(x, u64, u64) }),
                Type::S64 => lift!(a: f32 => i64 { let x: f32 = $round(a); nan_to_top!(x, i64, u64) }),
                _ => None,
            }
        };
    }
    macro_rules! from64 {
        ($round:expr) => {
            match d {
                Type::U32 => lift!(a: f64 => u32 { let x: f64 = $round(a); nan_to_top!(x, u32, u32) }),
                Type::S32 => lift!(a: f64 => i32 { let x: f64 = $round(a); nan_to_top!(x, i32, u32) }),
                Type::U64 => lift!(a: f64 => u64 { let x: f64 = $round(a); nan_to_top!(x, u64, u64) }),
                Type::S64 => lift!(a: f64 => i64 { let x: f64 = $round(a); nan_to_top!(x, i64, u64) }),
                _ => None,
            }
        };
    }
    match s {
        // `.ftz` changes nothing where subnormals round to zero anyway.
        Type::F32 => match r {
            Rnd::Zero => from32!(std::convert::identity::<f32>),
            Rnd::Nearest => from32!(fp::rint),
            Rnd::Down if !ftz => from32!(fp::floor),
            Rnd::Up if !ftz => from32!(fp::ceil),
            _ => None,
        },
        Type::F64 => match r {
            Rnd::Zero => from64!(std::convert::identity::<f64>),
            Rnd::Nearest => from64!(fp::rint64),
            Rnd::Down => from64!(fp::floor64),
            Rnd::Up => from64!(fp::ceil64),
            Rnd::Away => None,
        },
        _ => None,
    }
}

fn integer_to_float(v: &Variant, d: Type, s: Type) -> Option<PureFn> {
    if rnd(v) != Rnd::Nearest || v.has(Mod::Sat) {
        return None;
    }
    macro_rules! to {
        ($T:tt) => {
            match s {
                Type::U8 => lift!(a: u8 => $T { a as $T }),
                Type::S8 => lift!(a: i8 => $T { a as $T }),
                Type::U16 => lift!(a: u16 => $T { a as $T }),
                Type::S16 => lift!(a: i16 => $T { a as $T }),
                Type::U32 => lift!(a: u32 => $T { a as $T }),
                Type::S32 => lift!(a: i32 => $T { a as $T }),
                Type::U64 => lift!(a: u64 => $T { a as $T }),
                Type::S64 => lift!(a: i64 => $T { a as $T }),
                _ => None,
            }
        };
    }
    match d {
        Type::F32 => to!(f32),
        Type::F64 => to!(f64),
        _ => None,
    }
}

/// Rounding to an integral value of the same type.
fn to_integral(v: &Variant, t: Type) -> Option<PureFn> {
    let (ftz, r) = (v.has(Mod::Ftz), rnd(v));
    if v.has(Mod::Sat) {
        return None;
    }
    match t {
        Type::F32 if !ftz => match r {
            Rnd::Nearest => lift!(a: f32 => f32 { fp::canon(fp::rint(a)) }),
            Rnd::Zero => lift!(a: f32 => f32 { fp::canon(fp::trunc(a)) }),
            Rnd::Down => lift!(a: f32 => f32 { fp::canon(fp::floor(a)) }),
            Rnd::Up => lift!(a: f32 => f32 { fp::canon(fp::ceil(a)) }),
            Rnd::Away => None,
        },
        Type::F64 => match r {
            Rnd::Nearest => lift!(a: f64 => f64 { fp::keep64(fp::rint64(a), a, a) }),
            Rnd::Zero => lift!(a: f64 => f64 { fp::keep64(fp::trunc64(a), a, a) }),
            Rnd::Down => lift!(a: f64 => f64 { fp::keep64(fp::floor64(a), a, a) }),
            Rnd::Up => lift!(a: f64 => f64 { fp::keep64(fp::ceil64(a), a, a) }),
            Rnd::Away => None,
        },
        _ => None,
    }
}

fn between_floats(v: &Variant, d: Type, s: Type) -> Option<PureFn> {
    let (ftz, sat, r) = (v.has(Mod::Ftz), v.has(Mod::Sat), rnd(v));
    match (d, s) {
        (Type::F64, Type::F32) if !sat && ftz => lift!(a: f32 => f64 { fp::widen(fp::flush(a)) }),
        (Type::F64, Type::F32) if !sat => lift!(a: f32 => f64 { fp::widen(a) }),
        (Type::F32, Type::F64) if r == Rnd::Nearest && !sat && ftz => lift!(a: f64 => f32 { fp::flush(fp::narrow(a)) }),
        (Type::F32, Type::F64) if r == Rnd::Nearest && !sat => lift!(a: f64 => f32 { fp::narrow(a) }),
        (Type::F32, Type::F32) if !sat && !ftz => lift!(a: u32 => u32 { a }),
        (Type::F64, Type::F64) if !sat => lift!(a: u64 => u64 { a }),
        (Type::F32, Type::F32) if !sat && ftz => lift!(a: f32 => f32 { fp::finish::<true, false>(a) }),
        (Type::F32, Type::F32) if sat && ftz => lift!(a: f32 => f32 { fp::finish::<true, true>(a) }),
        (Type::F32, Type::F32) if sat => lift!(a: f32 => f32 { fp::saturate(a) }),
        (Type::F32, Type::F16) if !sat => lift!(a: u16 => f32 { fp::from_f16(a) }),
        (Type::F32, Type::Bf16) if !sat && !ftz => lift!(a: u16 => f32 { fp::from_bf16(a) }),
        (Type::F16, Type::F32) if r == Rnd::Nearest && !sat && !ftz => lift!(a: f32 => u16 { fp::to_f16(a) }),
        (Type::Bf16, Type::F32) if r == Rnd::Nearest && !sat && !ftz => lift!(a: f32 => u16 { fp::to_bf16(a) }),
        (Type::F16, Type::F32) if !sat && !ftz => match r {
            Rnd::Zero => lift!(a: f32 => u16 { F16.pack_f32(a, Rnd::Zero, false) as u16 }),
            Rnd::Down => lift!(a: f32 => u16 { F16.pack_f32(a, Rnd::Down, false) as u16 }),
            Rnd::Up => lift!(a: f32 => u16 { F16.pack_f32(a, Rnd::Up, false) as u16 }),
            _ => None,
        },
        (Type::Bf16, Type::F32) if r == Rnd::Zero && !ftz => {
            lift!(a: f32 => u16 { BF16.pack_f32(a, Rnd::Zero, false) as u16 })
        }
        (Type::Tf32, Type::F32) => match r {
            Rnd::Away => lift!(a: f32 => f32 { tf32(a, Rnd::Away) }),
            Rnd::Nearest => lift!(a: f32 => f32 { tf32(a, Rnd::Nearest) }),
            Rnd::Zero => lift!(a: f32 => f32 { tf32(a, Rnd::Zero) }),
            _ => None,
        },
        _ => None,
    }
}

/// `.tf32` in its register: the upper bits of a single-precision number.
#[inline(always)]
fn tf32(x: f32, rnd: Rnd) -> f32 {
    fp::canon(f32::from_bits(TF32.pack_f32(x, rnd, false) << 13))
}

/// Whether the rounding is to an integral value.
fn integral(v: &Variant) -> bool {
    [Mod::Rni, Mod::Rzi, Mod::Rmi, Mod::Rpi].into_iter().any(|m| v.has(m))
}

/// A number's format in a conversion between scalars.
#[derive(Clone, Copy)]
enum Repr {
    /// Bits; whether signed.
    Int(u32, bool),
    Float(Format),
}

fn repr(t: Type) -> Option<Repr> {
    Some(match t {
        _ if t.is_int() => Repr::Int(t.bits(), t.is_signed()),
        Type::F16 => Repr::Float(F16),
        Type::Bf16 => Repr::Float(BF16),
        Type::F32 => Repr::Float(F32),
        Type::F64 => Repr::Float(F64),
        Type::Tf32 => Repr::Float(TF32),
        _ => return None,
    })
}

/// A conversion between two scalar types with all its modifiers.
#[derive(Clone, Copy)]
struct Convert {
    to: Repr,
    from: Repr,
    rnd: Rnd,
    integral: bool,
    ftz: bool,
    sat: bool,
    relu: bool,
    finite: bool,
    /// `.pzo`: -0 becomes +0.
    positive: bool,
}

impl Convert {
    /// `None` if a type is not scalar.
    fn of(v: &Variant) -> Option<Convert> {
        Some(Convert {
            to: repr(ty(v, 0)?)?,
            from: repr(ty(v, 1)?)?,
            rnd: rnd(v),
            integral: integral(v),
            ftz: v.has(Mod::Ftz),
            sat: v.has(Mod::Sat),
            relu: v.has(Mod::Relu),
            finite: v.has(Mod::Satfinite),
            positive: v.has(Mod::Pzo),
        })
    }

    /// Converts one value. Bits above the types' widths are ignored, and zero in the result.
    fn one(self, bits: u64) -> u64 {
        match (self.from, self.to) {
            // Nothing to do, also for NaNs: ptxas makes a move.
            (Repr::Float(from), Repr::Float(to)) if from == to && !self.integral && !self.ftz && !self.sat => {
                if to == TF32 { bits } else { cut(bits, to.bits()) }
            }
            (Repr::Int(from, signed), Repr::Int(to, to_signed)) => {
                let i = read_int(bits, from, signed);
                let (min, max) = range(to, to_signed);
                cut(if self.sat { i.clamp(min, max) } else { i } as u64, to)
            }
            (Repr::Int(from, signed), Repr::Float(to)) => {
                self.finish(Num::from_int(read_int(bits, from, signed)), bits, to)
            }
            (Repr::Float(from), Repr::Int(to, signed)) => {
                let (min, max) = range(to, signed);
                match self.read(bits, from).integral(self.rnd).to_int(min, max) {
                    Some(i) => cut(i as u64, to),
                    None if from == F64 || to == 64 => 1 << (to - 1),
                    None => 0,
                }
            }
            (Repr::Float(F32), Repr::Float(to)) if to.is_small() && !self.integral => {
                let x = f32::from_bits(if self.ftz { flush(bits) } else { bits } as u32);
                if x.is_nan() {
                    return self.finish(Num::Nan, bits, to);
                }
                self.modify(u64::from(to.pack_f32(x, self.rnd, self.finite)), x.is_sign_negative(), to)
            }
            (Repr::Float(from), Repr::Float(to)) => {
                let n = self.read(bits, from);
                self.finish(if self.integral { n.integral(self.rnd) } else { n }, bits, to)
            }
        }
    }

    /// Reads a float; flushes single-precision subnormals if requested.
    fn read(self, bits: u64, from: Format) -> Num {
        let bits = if self.ftz && from == F32 { flush(bits) } else { bits };
        from.unpack(bits)
    }

    /// Rounds to a format and applies the modifiers. `source` supplies the payload of NaNs.
    fn finish(self, n: Num, source: u64, to: Format) -> u64 {
        if n == Num::Nan {
            return match (self.from, to) {
                _ if self.sat => 0,
                (Repr::Float(F64), F64) if !self.relu => source | 1 << 51,
                (Repr::Float(F64), F32) if !self.relu => u64::from(fp::narrow_nan(f64::from_bits(source))),
                (Repr::Float(F32), F64) if !self.relu => fp::widen(f32::from_bits(source as u32)).to_bits(),
                (_, TF32) => u64::from(fp::NAN32),
                _ => to.nan(),
            };
        }
        self.modify(to.pack(n, self.rnd, self.finite), n.negative(), to)
    }

    /// Applies the modifiers to a rounded result that is not a NaN.
    fn modify(self, code: u64, negative: bool, to: Format) -> u64 {
        let code = if self.ftz && to == F32 { flush(code) } else { code };
        let one = to.pack(Num::from_int(1), Rnd::Nearest, false);
        let code = match () {
            _ if (self.sat || self.relu) && negative || self.positive && code == to.sign(true) => 0,
            _ if self.sat && code > one => one,
            _ => code,
        };
        if to == TF32 { code << 13 } else { code }
    }
}

/// Flushes the bits of a single-precision subnormal.
fn flush(bits: u64) -> u64 {
    if bits & 0x7f80_0000 == 0 { bits & 0x8000_0000 } else { bits }
}

fn cut(x: u64, bits: u32) -> u64 {
    if bits < 64 { x & ((1 << bits) - 1) } else { x }
}

fn read_int(x: u64, bits: u32, signed: bool) -> i128 {
    let up = 64 - bits;
    if signed { i128::from((x << up) as i64 >> up) } else { i128::from(x << up >> up) }
}

fn range(bits: u32, signed: bool) -> (i128, i128) {
    if signed { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
}

/// Any pair of scalar types, in registers of any width; `dst` is the destination's width.
fn general(v: &Variant, s: &[&[Row]], d: &mut [Row], dst: u32) {
    let Some(convert) = Convert::of(v) else { return };
    let read = |i: usize| match s[0].len() {
        1 => u64::from(lanes::u32s(s[0])[i]),
        2 => lanes::u64s(s[0])[i],
        _ => lanes::u128s(s[0])[i] as u64,
    };
    let extend = |x: u64| match convert.to {
        Repr::Int(bits, true) if bits < dst => cut(((x << (64 - bits)) as i64 >> (64 - bits)) as u64, dst),
        _ => x,
    };
    let out: [u64; LANES] = std::array::from_fn(|i| extend(convert.one(read(i))));
    match d.len() {
        1 => lanes::u32s_mut(d).iter_mut().zip(out).for_each(|(d, x)| *d = x as u32),
        2 => *lanes::u64s_mut(d) = out,
        _ => lanes::set_u128s(d, &out.map(u128::from)),
    }
}

/// `cvt.pack.sat` where a register is wider than a word: on copies of the words.
fn pack_wide(d: Type) -> Option<PureFn> {
    pack(d)?;
    Some(|v, active, src, dst| {
        let Some(narrow) = ty(v, 0).and_then(pack) else { return };
        let words: Vec<Row> = src
            .iter()
            .map(|rows| match rows.len() {
                1 => rows[0],
                _ => Row(lanes::u64s(rows).map(|x| x as u32)),
            })
            .collect();
        let slices: Vec<&[Row]> = words.iter().map(std::slice::from_ref).collect();
        let mut packed = [Row::ZERO];
        narrow(v, active, &slices, &mut packed);
        match dst.len() {
            1 => dst[0] = packed[0],
            _ => *lanes::u64s_mut(dst) = packed[0].0.map(u64::from),
        }
    })
}

/// `cvt.pack.sat`: `b` in the lowest bits, `a` above it, then the lowest bits of `c`.
fn pack(d: Type) -> Option<PureFn> {
    macro_rules! packed {
        ($bits:literal, $min:expr, $max:expr) => {
            lift!(a: i32, b: i32, c: u32 => u32 {
                let field = |x: i32| x.clamp($min, $max) as u32 & ((1 << $bits) - 1);
                field(b) | field(a) << $bits | c << (2 * $bits)
            })
        };
        (half $T:ty) => {
            lift!(a: i32, b: i32 => u32 {
                let field = |x: i32| (x.clamp(<$T>::MIN as i32, <$T>::MAX as i32) as u32) & 0xffff;
                field(b) | field(a) << 16
            })
        };
    }
    match d {
        Type::U16 => packed!(half u16),
        Type::S16 => packed!(half i16),
        Type::U8 => packed!(8, 0, 255),
        Type::S8 => packed!(8, -128, 127),
        Type::U4 => packed!(4, 0, 15),
        Type::S4 => packed!(4, -8, 7),
        Type::U2 => packed!(2, 0, 3),
        Type::S2 => packed!(2, -2, 1),
        _ => None,
    }
}
