//! Bit counting, searching and bit fields (manual, sections 9.7.1.14 to 9.7.1.22).

use super::{PureFn, map::lift};
use margay_isa::{Mod, Type, Variant};

/// `popc`
pub(super) fn popc(t: Type) -> Option<PureFn> {
    match t {
        Type::B32 => lift!(a: u32 => u32 { a.count_ones() }),
        Type::B64 => lift!(a: u64 => u32 { a.count_ones() }),
        _ => None,
    }
}

/// `clz`
pub(super) fn clz(t: Type) -> Option<PureFn> {
    match t {
        Type::B32 => lift!(a: u32 => u32 { a.leading_zeros() }),
        Type::B64 => lift!(a: u64 => u32 { a.leading_zeros() }),
        _ => None,
    }
}

/// `brev`
pub(super) fn brev(t: Type) -> Option<PureFn> {
    match t {
        Type::B32 => lift!(a: u32 => u32 { a.reverse_bits() }),
        Type::B64 => lift!(a: u64 => u64 { a.reverse_bits() }),
        _ => None,
    }
}

/// `bfind`: the position of the highest bit that differs from the sign, or its distance from the top; all ones if there
/// is none.
pub(super) fn bfind(v: &Variant, t: Type) -> Option<PureFn> {
    macro_rules! find {
        ($T:ty, $U:ty, $I:ty) => {{
            fn magnitude(a: $T) -> $U {
                // All ones for a negative number of a signed type, else zero.
                let sign = if <$T>::MIN == 0 { 0 } else { ((a as $I) >> (<$T>::BITS - 1)) as $U };
                a as $U ^ sign
            }
            if v.has(Mod::Shiftamt) {
                lift!(a: $T => u32 { let x = magnitude(a); if x == 0 { !0 } else { x.leading_zeros() } })
            } else {
                lift!(a: $T => u32 { let x = magnitude(a); if x == 0 { !0 } else { <$T>::BITS - 1 - x.leading_zeros() } })
            }
        }};
    }
    match t {
        Type::U32 => find!(u32, u32, i32),
        Type::S32 => find!(i32, u32, i32),
        Type::U64 => find!(u64, u64, i64),
        Type::S64 => find!(i64, u64, i64),
        _ => None,
    }
}

/// `fns`: the `offset`th set bit from `base` on, upwards or downwards. A `base` above 31 (undefined) finds nothing.
pub(super) fn fns() -> Option<PureFn> {
    lift!(mask: u32, base: u32, offset: i32 => u32 { find_nth(mask, base, offset) })
}

fn find_nth(mask: u32, base: u32, offset: i32) -> u32 {
    let set = |at: u32| at < 32 && mask >> at & 1 != 0;
    if offset == 0 {
        return if set(base) { base } else { !0 };
    }
    let mut left = offset.unsigned_abs();
    let mut at = base;
    while at < 32 {
        if set(at) {
            left -= 1;
            if left == 0 {
                return at;
            }
        }
        at = if offset > 0 { at + 1 } else { at.wrapping_sub(1) };
    }
    !0
}

/// `bfe`
pub(super) fn bfe(t: Type) -> Option<PureFn> {
    match t {
        Type::U32 => lift!(a: u32, b: u32, c: u32 => u32 { extract(u64::from(a), b, c) as u32 }),
        Type::U64 => lift!(a: u64, b: u32, c: u32 => u64 { extract(a, b, c) }),
        Type::S32 => lift!(a: i32, b: u32, c: u32 => u32 { extract_signed(i64::from(a), b, c, 32) as u32 }),
        Type::S64 => lift!(a: i64, b: u32, c: u32 => u64 { extract_signed(a, b, c, 64) as u64 }),
        _ => None,
    }
}

/// A field of a number whose upper bits are zero.
#[inline(always)]
fn extract(a: u64, pos: u32, len: u32) -> u64 {
    let (pos, len) = (pos & 0xff, len & 0xff);
    let shifted = if pos < 64 { a >> pos } else { 0 };
    if len < 64 { shifted & ((1 << len) - 1) } else { shifted }
}

/// A field of a number whose upper bits repeat its sign, also beyond the width of the number.
#[inline(always)]
fn extract_signed(a: i64, pos: u32, len: u32, bits: u32) -> i64 {
    let (pos, len) = (pos & 0xff, len & 0xff);
    let shifted = a >> pos.min(63);
    match len {
        0 => 0,
        // A field that reaches past the top has the sign of the number, which `shifted` repeats.
        _ if pos + len > bits || len >= 64 => shifted,
        _ => shifted << (64 - len) >> (64 - len),
    }
}

/// `bfi`
pub(super) fn bfi(t: Type) -> Option<PureFn> {
    match t {
        Type::B32 => lift!(a: u32, b: u32, c: u32, d: u32 => u32 {
            insert(u64::from(a), u64::from(b), c, d) as u32
        }),
        Type::B64 => lift!(a: u64, b: u64, c: u32, d: u32 => u64 { insert(a, b, c, d) }),
        _ => None,
    }
}

#[inline(always)]
fn insert(a: u64, b: u64, pos: u32, len: u32) -> u64 {
    let (pos, len) = (pos & 0xff, len & 0xff);
    if pos >= 64 {
        return b;
    }
    let mask = if len < 64 { (1 << len) - 1 } else { u64::MAX } << pos;
    a << pos & mask | b & !mask
}

/// `szext`
pub(super) fn szext(v: &Variant, t: Type) -> Option<PureFn> {
    match (t, v.has(Mod::Clamp)) {
        (Type::U32, true) => lift!(a: u32, n: u32 => u32 { if n >= 32 { a } else { a & ((1 << n) - 1) } }),
        (Type::U32, false) => lift!(a: u32, n: u32 => u32 { a & ((1 << (n & 31)) - 1) }),
        (Type::S32, true) => lift!(a: i32, n: u32 => i32 { if n >= 32 { a } else { sign_extend(a, n) } }),
        (Type::S32, false) => lift!(a: i32, n: u32 => i32 { sign_extend(a, n & 31) }),
        _ => None,
    }
}

/// The low `n` bits as a signed number, for `n` below 32.
#[inline(always)]
fn sign_extend(a: i32, n: u32) -> i32 {
    if n == 0 { 0 } else { a << (32 - n) >> (32 - n) }
}

/// `bmsk`
pub(super) fn bmsk(v: &Variant) -> Option<PureFn> {
    if v.has(Mod::Clamp) {
        lift!(a: u32, b: u32 => u32 {
            let width = if b < 32 { (1u32 << b) - 1 } else { !0 };
            if a < 32 { width << a } else { 0 }
        })
    } else {
        lift!(a: u32, b: u32 => u32 { ((1u32 << (b & 31)) - 1) << (a & 31) })
    }
}
