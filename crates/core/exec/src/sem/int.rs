//! Integer arithmetic (manual, section 9.7.1), packed integers included.
//!
//! Division by zero is "unspecified": here, as in ptxas's constant folding, quotient and remainder are all ones. The
//! most negative number divided by -1 wraps.

use super::{
    PureFn,
    map::{by_type, lift},
    mode::ty,
};
use margay_isa::{Mod, Type, Variant};

/// Applies `f` to each half of two words.
#[inline(always)]
pub(super) fn halves(a: u32, b: u32, f: impl Fn(u16, u16) -> u16) -> u32 {
    u32::from(f(a as u16, b as u16)) | u32::from(f((a >> 16) as u16, (b >> 16) as u16)) << 16
}

/// Applies `f` to each byte of two words.
#[inline(always)]
pub(super) fn bytes(a: u32, b: u32, f: impl Fn(u8, u8) -> u8) -> u32 {
    let (a, b) = (a.to_le_bytes(), b.to_le_bytes());
    u32::from_le_bytes(std::array::from_fn(|i| f(a[i], b[i])))
}

/// `add`
pub(super) fn add(v: &Variant, t: Type) -> Option<PureFn> {
    let sat = v.has(Mod::Sat);
    match t {
        Type::S32 if sat => lift!(a: i32, b: i32 => i32 { a.saturating_add(b) }),
        Type::U32 if sat => lift!(a: u32, b: u32 => u32 { a.saturating_add(b) }),
        Type::U16x2 | Type::S16x2 if !sat => lift!(a: u32, b: u32 => u32 { halves(a, b, u16::wrapping_add) }),
        Type::U16x2 => lift!(a: u32, b: u32 => u32 { halves(a, b, u16::saturating_add) }),
        Type::S16x2 => lift!(a: u32, b: u32 => u32 { halves(a, b, |a, b| (a as i16).saturating_add(b as i16) as u16) }),
        Type::U8x4 | Type::S8x4 if !sat => lift!(a: u32, b: u32 => u32 { bytes(a, b, u8::wrapping_add) }),
        Type::U8x4 => lift!(a: u32, b: u32 => u32 { bytes(a, b, u8::saturating_add) }),
        Type::S8x4 => lift!(a: u32, b: u32 => u32 { bytes(a, b, |a, b| (a as i8).saturating_add(b as i8) as u8) }),
        _ => by_type!(t; T in [U16: u16, S16: u16, U32: u32, S32: u32, U64: u64, S64: u64] => {
            lift!(a: T, b: T => T { a.wrapping_add(b) })
        }),
    }
}

/// `clmad`: the low or high half of a carry-less product, exclusive-or `c`.
pub(super) fn clmad(v: &Variant) -> Option<PureFn> {
    #[inline(always)]
    fn product(a: u64, b: u64) -> u128 {
        (0..64).filter(|i| b >> i & 1 != 0).fold(0, |sum, i| sum ^ u128::from(a) << i)
    }
    match v.has(Mod::Hi) {
        true => lift!(a: u64, b: u64, c: u64 => u64 { (product(a, b) >> 64) as u64 ^ c }),
        false => lift!(a: u64, b: u64, c: u64 => u64 { product(a, b) as u64 ^ c }),
    }
}

/// `sub`
pub(super) fn sub(v: &Variant, t: Type) -> Option<PureFn> {
    let sat = v.has(Mod::Sat);
    match t {
        Type::S32 if sat => lift!(a: i32, b: i32 => i32 { a.saturating_sub(b) }),
        Type::U16x2 | Type::S16x2 if !sat => lift!(a: u32, b: u32 => u32 { halves(a, b, u16::wrapping_sub) }),
        Type::U16x2 => lift!(a: u32, b: u32 => u32 { halves(a, b, u16::saturating_sub) }),
        Type::S16x2 => lift!(a: u32, b: u32 => u32 { halves(a, b, |a, b| (a as i16).saturating_sub(b as i16) as u16) }),
        Type::U8x4 | Type::S8x4 if !sat => lift!(a: u32, b: u32 => u32 { bytes(a, b, u8::wrapping_sub) }),
        Type::U8x4 => lift!(a: u32, b: u32 => u32 { bytes(a, b, u8::saturating_sub) }),
        Type::S8x4 => lift!(a: u32, b: u32 => u32 { bytes(a, b, |a, b| (a as i8).saturating_sub(b as i8) as u8) }),
        _ => by_type!(t; T in [U16: u16, S16: u16, U32: u32, S32: u32, U64: u64, S64: u64] => {
            lift!(a: T, b: T => T { a.wrapping_sub(b) })
        }),
    }
}

/// The upper half of a product.
macro_rules! high {
    ($a:expr, $b:expr, $T:ty, $W:ty) => {
        (($a as $W).wrapping_mul($b as $W) >> <$T>::BITS) as $T
    };
}

/// `mul`; `.lo` by default, though every form names `.lo`, `.hi` or `.wide`.
pub(super) fn mul(v: &Variant, t: Type) -> Option<PureFn> {
    if v.has(Mod::Wide) {
        return match t {
            Type::U16 => lift!(a: u16, b: u16 => u32 { u32::from(a) * u32::from(b) }),
            Type::S16 => lift!(a: i16, b: i16 => i32 { i32::from(a) * i32::from(b) }),
            Type::U32 => lift!(a: u32, b: u32 => u64 { u64::from(a) * u64::from(b) }),
            Type::S32 => lift!(a: i32, b: i32 => i64 { i64::from(a) * i64::from(b) }),
            Type::U64 => lift!(a: u64, b: u64 => u128 { u128::from(a) * u128::from(b) }),
            Type::S64 => lift!(a: i64, b: i64 => u128 { (i128::from(a) * i128::from(b)) as u128 }),
            _ => None,
        };
    }
    if v.has(Mod::Hi) {
        return match t {
            Type::U16 => lift!(a: u16, b: u16 => u16 { high!(a, b, u16, u32) }),
            Type::S16 => lift!(a: i16, b: i16 => i16 { high!(a, b, i16, i32) }),
            Type::U32 => lift!(a: u32, b: u32 => u32 { high!(a, b, u32, u64) }),
            Type::S32 => lift!(a: i32, b: i32 => i32 { high!(a, b, i32, i64) }),
            Type::U64 => lift!(a: u64, b: u64 => u64 { high!(a, b, u64, u128) }),
            Type::S64 => lift!(a: i64, b: i64 => i64 { high!(a, b, i64, i128) }),
            _ => None,
        };
    }
    by_type!(t; T in [U16: u16, S16: u16, U32: u32, S32: u32, U64: u64, S64: u64] => {
        lift!(a: T, b: T => T { a.wrapping_mul(b) })
    })
}

/// `mad`
pub(super) fn mad(v: &Variant, t: Type) -> Option<PureFn> {
    if v.has(Mod::Wide) {
        return match t {
            Type::U16 => lift!(a: u16, b: u16, c: u32 => u32 { (u32::from(a) * u32::from(b)).wrapping_add(c) }),
            Type::S16 => lift!(a: i16, b: i16, c: i32 => i32 { (i32::from(a) * i32::from(b)).wrapping_add(c) }),
            Type::U32 => lift!(a: u32, b: u32, c: u64 => u64 { (u64::from(a) * u64::from(b)).wrapping_add(c) }),
            Type::S32 => lift!(a: i32, b: i32, c: i64 => i64 { (i64::from(a) * i64::from(b)).wrapping_add(c) }),
            _ => None,
        };
    }
    if v.has(Mod::Hi) {
        return match t {
            Type::S32 if v.has(Mod::Sat) => lift!(a: i32, b: i32, c: i32 => i32 {
                high!(a, b, i32, i64).saturating_add(c)
            }),
            Type::U16 => lift!(a: u16, b: u16, c: u16 => u16 { high!(a, b, u16, u32).wrapping_add(c) }),
            Type::S16 => lift!(a: i16, b: i16, c: i16 => i16 { high!(a, b, i16, i32).wrapping_add(c) }),
            Type::U32 => lift!(a: u32, b: u32, c: u32 => u32 { high!(a, b, u32, u64).wrapping_add(c) }),
            Type::S32 => lift!(a: i32, b: i32, c: i32 => i32 { high!(a, b, i32, i64).wrapping_add(c) }),
            Type::U64 => lift!(a: u64, b: u64, c: u64 => u64 { high!(a, b, u64, u128).wrapping_add(c) }),
            Type::S64 => lift!(a: i64, b: i64, c: i64 => i64 { high!(a, b, i64, i128).wrapping_add(c) }),
            _ => None,
        };
    }
    by_type!(t; T in [U16: u16, S16: u16, U32: u32, S32: u32, U64: u64, S64: u64] => {
        lift!(a: T, b: T, c: T => T { a.wrapping_mul(b).wrapping_add(c) })
    })
}

/// The low 24 bits, zero-extended.
#[inline(always)]
fn u24(x: u32) -> u64 {
    u64::from(x & 0x00ff_ffff)
}

/// The low 24 bits, sign-extended.
#[inline(always)]
fn s24(x: i32) -> i64 {
    i64::from(x << 8 >> 8)
}

/// `mul24`: bits 47 to 16 for `.hi`, 31 to 0 for `.lo`.
pub(super) fn mul24(v: &Variant, t: Type) -> Option<PureFn> {
    match (t, v.has(Mod::Hi)) {
        (Type::U32, false) => lift!(a: u32, b: u32 => u32 { (u24(a) * u24(b)) as u32 }),
        (Type::U32, true) => lift!(a: u32, b: u32 => u32 { ((u24(a) * u24(b)) >> 16) as u32 }),
        (Type::S32, false) => lift!(a: i32, b: i32 => i32 { (s24(a) * s24(b)) as i32 }),
        (Type::S32, true) => lift!(a: i32, b: i32 => i32 { ((s24(a) * s24(b)) >> 16) as i32 }),
        _ => None,
    }
}

/// `mad24`
pub(super) fn mad24(v: &Variant, t: Type) -> Option<PureFn> {
    match (t, v.has(Mod::Hi)) {
        (Type::U32, false) => lift!(a: u32, b: u32, c: u32 => u32 { ((u24(a) * u24(b)) as u32).wrapping_add(c) }),
        (Type::U32, true) => {
            lift!(a: u32, b: u32, c: u32 => u32 { (((u24(a) * u24(b)) >> 16) as u32).wrapping_add(c) })
        }
        (Type::S32, true) if v.has(Mod::Sat) => lift!(a: i32, b: i32, c: i32 => i32 {
            (((s24(a) * s24(b)) >> 16) as i32).saturating_add(c)
        }),
        (Type::S32, false) => lift!(a: i32, b: i32, c: i32 => i32 { ((s24(a) * s24(b)) as i32).wrapping_add(c) }),
        (Type::S32, true) => {
            lift!(a: i32, b: i32, c: i32 => i32 { (((s24(a) * s24(b)) >> 16) as i32).wrapping_add(c) })
        }
        _ => None,
    }
}

/// `sad`: `c + |a - b|`.
pub(super) fn sad(t: Type) -> Option<PureFn> {
    match t {
        Type::U16 => lift!(a: u16, b: u16, c: u16 => u16 { c.wrapping_add(a.abs_diff(b)) }),
        Type::S16 => lift!(a: i16, b: i16, c: u16 => u16 { c.wrapping_add(a.abs_diff(b)) }),
        Type::U32 => lift!(a: u32, b: u32, c: u32 => u32 { c.wrapping_add(a.abs_diff(b)) }),
        Type::S32 => lift!(a: i32, b: i32, c: u32 => u32 { c.wrapping_add(a.abs_diff(b)) }),
        Type::U64 => lift!(a: u64, b: u64, c: u64 => u64 { c.wrapping_add(a.abs_diff(b)) }),
        Type::S64 => lift!(a: i64, b: i64, c: u64 => u64 { c.wrapping_add(a.abs_diff(b)) }),
        _ => None,
    }
}

/// `div`
pub(super) fn div(t: Type) -> Option<PureFn> {
    by_type!(t; T in [U16: u16, U32: u32, U64: u64, S16: i16, S32: i32, S64: i64] => {
        lift!(a: T, b: T => T { if b == 0 { !0 } else { a.wrapping_div(b) } })
    })
}

/// `rem`: the sign is the dividend's.
pub(super) fn rem(t: Type) -> Option<PureFn> {
    by_type!(t; T in [U16: u16, U32: u32, U64: u64, S16: i16, S32: i32, S64: i64] => {
        lift!(a: T, b: T => T { if b == 0 { !0 } else { a.wrapping_rem(b) } })
    })
}

/// `abs`: the most negative number is unchanged.
pub(super) fn abs(t: Type) -> Option<PureFn> {
    match t {
        Type::S16x2 => lift!(a: u32 => u32 { halves(a, 0, |a, _| (a as i16).wrapping_abs() as u16) }),
        Type::S8x4 => lift!(a: u32 => u32 { bytes(a, 0, |a, _| (a as i8).wrapping_abs() as u8) }),
        _ => by_type!(t; T in [S16: i16, S32: i32, S64: i64] => lift!(a: T => T { a.wrapping_abs() })),
    }
}

/// `neg`
pub(super) fn neg(t: Type) -> Option<PureFn> {
    match t {
        Type::S16x2 => lift!(a: u32 => u32 { halves(a, 0, |a, _| a.wrapping_neg()) }),
        Type::S8x4 => lift!(a: u32 => u32 { bytes(a, 0, |a, _| a.wrapping_neg()) }),
        _ => by_type!(t; T in [S16: i16, S32: i32, S64: i64] => lift!(a: T => T { a.wrapping_neg() })),
    }
}

/// `min` and `max`; `.relu` raises negative results to 0.
macro_rules! pick {
    ($name:ident, $pick:ident) => {
        #[doc = concat!("`", stringify!($pick), "`")]
        pub(super) fn $name(v: &Variant, t: Type) -> Option<PureFn> {
            match t {
                Type::S32 if v.has(Mod::Relu) => lift!(a: i32, b: i32 => i32 { a.$pick(b).max(0) }),
                Type::S16x2 if v.has(Mod::Relu) => lift!(a: u32, b: u32 => u32 {
                    halves(a, b, |a, b| (a as i16).$pick(b as i16).max(0) as u16)
                }),
                Type::S8x4 if v.has(Mod::Relu) => lift!(a: u32, b: u32 => u32 {
                    bytes(a, b, |a, b| (a as i8).$pick(b as i8).max(0) as u8)
                }),
                Type::S16x2 => lift!(a: u32, b: u32 => u32 { halves(a, b, |a, b| (a as i16).$pick(b as i16) as u16) }),
                Type::U16x2 => lift!(a: u32, b: u32 => u32 { halves(a, b, |a, b| a.$pick(b)) }),
                Type::S8x4 => lift!(a: u32, b: u32 => u32 { bytes(a, b, |a, b| (a as i8).$pick(b as i8) as u8) }),
                Type::U8x4 => lift!(a: u32, b: u32 => u32 { bytes(a, b, |a, b| a.$pick(b)) }),
                _ => by_type!(t; T in [U16: u16, U32: u32, U64: u64, S16: i16, S32: i32, S64: i64] => {
                    lift!(a: T, b: T => T { a.$pick(b) })
                }),
            }
        }
    };
}
pick!(min, min);
pick!(max, max);

/// `dp4a`: four products of bytes.
pub(super) fn dp4a(v: &Variant) -> Option<PureFn> {
    macro_rules! dot {
        ($A:ty, $B:ty) => {
            lift!(a: u32, b: u32, c: u32 => u32 {
                let (x, y) = (a.to_le_bytes(), b.to_le_bytes());
                let mut d = c;
                for i in 0..4 {
                    d = d.wrapping_add((i32::from(x[i] as $A) * i32::from(y[i] as $B)) as u32);
                }
                d
            })
        };
    }
    match (ty(v, 0)?, ty(v, 1)?) {
        (Type::U32, Type::U32) => dot!(u8, u8),
        (Type::U32, Type::S32) => dot!(u8, i8),
        (Type::S32, Type::U32) => dot!(i8, u8),
        (Type::S32, Type::S32) => dot!(i8, i8),
        _ => None,
    }
}

/// `dp2a`: two products of halves of `a` with bytes of one half of `b`.
pub(super) fn dp2a(v: &Variant) -> Option<PureFn> {
    macro_rules! dot {
        ($A:ty, $B:ty, $first:literal) => {
            lift!(a: u32, b: u32, c: u32 => u32 {
                let y = b.to_le_bytes();
                let low = i32::from(a as u16 as $A).wrapping_mul(i32::from(y[$first] as $B));
                let high = i32::from((a >> 16) as u16 as $A).wrapping_mul(i32::from(y[$first + 1] as $B));
                c.wrapping_add(low as u32).wrapping_add(high as u32)
            })
        };
    }
    match (ty(v, 0)?, ty(v, 1)?, v.has(Mod::Hi)) {
        (Type::U32, Type::U32, false) => dot!(u16, u8, 0),
        (Type::U32, Type::S32, false) => dot!(u16, i8, 0),
        (Type::S32, Type::U32, false) => dot!(i16, u8, 0),
        (Type::S32, Type::S32, false) => dot!(i16, i8, 0),
        (Type::U32, Type::U32, true) => dot!(u16, u8, 2),
        (Type::U32, Type::S32, true) => dot!(u16, i8, 2),
        (Type::S32, Type::U32, true) => dot!(i16, u8, 2),
        (Type::S32, Type::S32, true) => dot!(i16, i8, 2),
        _ => None,
    }
}
