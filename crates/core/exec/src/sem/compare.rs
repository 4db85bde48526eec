//! Comparison and selection (manual, sections 9.7.6 and 9.7.7; operators of section 9.3.1).

use super::{
    PureFn, fp, int,
    map::{self, Lane, Slot, lift},
    mode::{self, ty},
};
use crate::{LANES, Row};
use margay_isa::{Mod, Type, Variant, Word};

/// Compares two sources over the warp.
type MaskFn = fn(&[&[Row]]) -> u32;

/// The comparison operator of a variant: its first modifier.
fn operator(v: &Variant) -> Option<Mod> {
    v.words.iter().find_map(|w| match w {
        Word::Mod(m) => Some(*m),
        Word::Type(_) => None,
    })
}

macro_rules! int_cmp {
    ($cmp:expr, $T:ty) => {{
        let f: MaskFn = match $cmp {
            Mod::Eq => |s| map::mask_two::<$T>(s, |a, b| a == b),
            Mod::Ne => |s| map::mask_two::<$T>(s, |a, b| a != b),
            Mod::Lt | Mod::Lo => |s| map::mask_two::<$T>(s, |a, b| a < b),
            Mod::Le | Mod::Ls => |s| map::mask_two::<$T>(s, |a, b| a <= b),
            Mod::Gt | Mod::Hi => |s| map::mask_two::<$T>(s, |a, b| a > b),
            Mod::Ge | Mod::Hs => |s| map::mask_two::<$T>(s, |a, b| a >= b),
            _ => return None,
        };
        Some(f)
    }};
}

/// `$T` is the type in the register; `$read` converts it to a host float.
macro_rules! float_cmp {
    ($cmp:expr, $T:ty, $read:expr) => {{
        let f: MaskFn = match $cmp {
            Mod::Eq => |s| map::mask_two::<$T>(s, |a, b| $read(a) == $read(b)),
            Mod::Ne => |s| map::mask_two::<$T>(s, |a, b| $read(a) < $read(b) || $read(a) > $read(b)),
            Mod::Lt => |s| map::mask_two::<$T>(s, |a, b| $read(a) < $read(b)),
            Mod::Le => |s| map::mask_two::<$T>(s, |a, b| $read(a) <= $read(b)),
            Mod::Gt => |s| map::mask_two::<$T>(s, |a, b| $read(a) > $read(b)),
            Mod::Ge => |s| map::mask_two::<$T>(s, |a, b| $read(a) >= $read(b)),
            Mod::Equ => |s| !map::mask_two::<$T>(s, |a, b| $read(a) < $read(b) || $read(a) > $read(b)),
            Mod::Neu => |s| map::mask_two::<$T>(s, |a, b| $read(a) != $read(b)),
            Mod::Ltu => |s| !map::mask_two::<$T>(s, |a, b| $read(a) >= $read(b)),
            Mod::Leu => |s| !map::mask_two::<$T>(s, |a, b| $read(a) > $read(b)),
            Mod::Gtu => |s| !map::mask_two::<$T>(s, |a, b| $read(a) <= $read(b)),
            Mod::Geu => |s| !map::mask_two::<$T>(s, |a, b| $read(a) < $read(b)),
            Mod::Num => |s| map::mask_two::<$T>(s, |a, b| !$read(a).is_nan() && !$read(b).is_nan()),
            Mod::Nan => |s| map::mask_two::<$T>(s, |a, b| $read(a).is_nan() || $read(b).is_nan()),
            _ => return None,
        };
        Some(f)
    }};
}

/// The upper half of a word: the second element of a packed type.
#[derive(Clone, Copy)]
struct Upper(u16);

impl Lane for Upper {
    type Slot = u32;
    #[inline(always)]
    fn get(slot: u32) -> Upper {
        Upper((slot >> 16) as u16)
    }
    #[inline(always)]
    fn put(self) -> u32 {
        u32::from(self.0) << 16
    }
}

/// Flushes an `.f16` held in single precision, where its subnormals are normal.
#[inline(always)]
fn flush_f16(x: f32) -> f32 {
    if x.abs() < f32::from_bits(0x3880_0000) { 0.0 } else { x }
}

/// The comparison of a variant on sources of a type; `upper` selects the second element of a packed type.
fn comparison(v: &Variant, t: Type, upper: bool) -> Option<MaskFn> {
    let cmp = operator(v)?;
    let ftz = v.has(Mod::Ftz);
    match t {
        Type::B16 | Type::U16 => int_cmp!(cmp, u16),
        Type::B32 | Type::U32 => int_cmp!(cmp, u32),
        Type::B64 | Type::U64 => int_cmp!(cmp, u64),
        Type::S16 => int_cmp!(cmp, i16),
        Type::S32 => int_cmp!(cmp, i32),
        Type::S64 => int_cmp!(cmp, i64),
        Type::F32 if ftz => float_cmp!(cmp, f32, fp::flush),
        Type::F32 => float_cmp!(cmp, f32, std::convert::identity),
        Type::F64 => float_cmp!(cmp, f64, std::convert::identity),
        Type::F16 | Type::F16x2 if ftz && !upper => float_cmp!(cmp, u16, |x| flush_f16(fp::from_f16(x))),
        Type::F16 | Type::F16x2 if !upper => float_cmp!(cmp, u16, fp::from_f16),
        Type::Bf16 | Type::Bf16x2 if !upper => float_cmp!(cmp, u16, fp::from_bf16),
        Type::F16x2 if ftz => float_cmp!(cmp, Upper, |x: Upper| flush_f16(fp::from_f16(x.0))),
        Type::F16x2 => float_cmp!(cmp, Upper, |x: Upper| fp::from_f16(x.0)),
        Type::Bf16x2 => float_cmp!(cmp, Upper, |x: Upper| fp::from_bf16(x.0)),
        _ => None,
    }
}

/// Combines the result of a comparison with predicate `c` (source 2, if there is one).
fn combine(v: &Variant, m: u32, s: &[&[Row]]) -> u32 {
    match s.get(2) {
        None => m,
        Some(c) if v.has(Mod::And) => m & map::mask(c),
        Some(c) if v.has(Mod::Or) => m | map::mask(c),
        Some(c) => m ^ map::mask(c),
    }
}

/// Lane functions of plain comparisons, for the common operators and types.
macro_rules! plain_setp {
    ($v:expr, $t:expr, [$($ptx:ident: $T:ty),*], [$($cmp:ident: $op:tt),*]) => {
        plain_setp!(@types $v, $t, [$($ptx: $T),*], [$($cmp: $op),*])
    };
    (@types $v:expr, $t:expr, [$($ptx:ident: $T:ty),*], $ops:tt) => {
        match $t {
            $(Type::$ptx => plain_setp!(@ops $v, $T, $ops),)*
            _ => None,
        }
    };
    (@ops $v:expr, $T:ty, [$($cmp:ident: $op:tt),*]) => {
        match operator($v)? {
            $(Mod::$cmp => Some((|_, _, s, d| d[0].0[0] = map::mask_two::<$T>(s, |a, b| a $op b)) as PureFn),)*
            _ => None,
        }
    };
}

/// `setp`: `p = (a cmp b) op c`, and `q` likewise for the complement, or for the second element of packed types.
pub(super) fn setp(v: &Variant, t: Type, sources: usize, destinations: usize) -> Option<PureFn> {
    if sources == 2 && destinations == 1 && !v.has(Mod::Ftz) {
        let plain = plain_setp!(
            v, t, [B32: u32, U32: u32, S32: i32, B64: u64, U64: u64, S64: i64, F32: f32, F64: f64],
            [Eq: ==, Lt: <, Le: <=, Gt: >, Ge: >=]
        );
        if plain.is_some() {
            return plain;
        }
    }
    comparison(v, t, false)?;
    let packed = matches!(t, Type::F16x2 | Type::Bf16x2);
    if packed {
        return Some(|v, _, s, d| {
            let t = v.t();
            if let (Some(low), Some(high)) = (comparison(v, t, false), comparison(v, t, true)) {
                d[0].0[0] = combine(v, low(s), s);
                if let Some(q) = d.get_mut(1) {
                    q.0[0] = combine(v, high(s), s);
                }
            }
        });
    }
    Some(|v, _, s, d| {
        if let Some(compare) = comparison(v, v.t(), false) {
            let m = compare(s);
            d[0].0[0] = combine(v, m, s);
            if let Some(q) = d.get_mut(1) {
                q.0[0] = combine(v, !m, s);
            }
        }
    })
}

/// The value of true in `set`: all ones for integers, 1.0 for floats.
fn truth(d: Type) -> Option<u32> {
    Some(match d {
        Type::U32 | Type::S32 => u32::MAX,
        Type::U16 | Type::S16 => 0xffff,
        Type::F32 => 0x3f80_0000,
        Type::F16 | Type::F16x2 => 0x3c00,
        Type::Bf16 | Type::Bf16x2 => 0x3f80,
        _ => return None,
    })
}

/// `set` of packed integers: all ones in each element for which the comparison holds.
fn set_packed(v: &Variant, t: Type) -> Option<PureFn> {
    macro_rules! each {
        ([$($cmp:ident: $op:tt),*], $map:path, $T:ty, $U:ty) => {
            match operator(v)? {
                $(Mod::$cmp => lift!(a: u32, b: u32 => u32 {
                    $map(a, b, |a, b| if (a as $T) $op (b as $T) { <$U>::MAX } else { 0 })
                }),)*
                _ => None,
            }
        };
    }
    macro_rules! every {
        ($map:path, $T:ty, $U:ty) => {
            each!([Eq: ==, Ne: !=, Lt: <, Lo: <, Le: <=, Ls: <=, Gt: >, Hi: >, Ge: >=, Hs: >=], $map, $T, $U)
        };
    }
    match t {
        Type::U8x4 => every!(int::bytes, u8, u8),
        Type::S8x4 => every!(int::bytes, i8, u8),
        Type::U16x2 => every!(int::halves, u16, u16),
        Type::S16x2 => every!(int::halves, i16, u16),
        _ => None,
    }
}

/// `set`
pub(super) fn set(v: &Variant, dst_bits: &[u32]) -> Option<PureFn> {
    if mode::types(v) == 1 {
        return set_packed(v, ty(v, 0)?);
    }
    let (dst, src) = (ty(v, 0)?, ty(v, 1)?);
    truth(dst)?;
    comparison(v, src, false)?;
    if matches!(src, Type::F16x2 | Type::Bf16x2) {
        return Some(|v, _, s, d| {
            if let (Some(dst), Some(src)) = (ty(v, 0), ty(v, 1))
                && let (Some(low), Some(high)) = (comparison(v, src, false), comparison(v, src, true))
            {
                let one = truth(dst).unwrap_or(0) & 0xffff;
                let (low, high) = (combine(v, low(s), s), combine(v, high(s), s));
                for (i, d) in d[0].0.iter_mut().enumerate() {
                    *d = (if low >> i & 1 != 0 { one } else { 0 }) | if high >> i & 1 != 0 { one << 16 } else { 0 };
                }
            }
        });
    }
    // A destination may be wider than its type: a signed true is then sign-extended.
    let wide = dst_bits.first().is_some_and(|bits| *bits > 32);
    Some(if wide { |v, _, s, d| write_truth::<u64>(v, s, d) } else { |v, _, s, d| write_truth::<u32>(v, s, d) })
}

/// `set` of scalars into slots of one or two words.
fn write_truth<S: Slot + From<u32> + std::ops::Not<Output = S>>(v: &Variant, s: &[&[Row]], d: &mut [Row]) {
    let (Some(dst), Some(src)) = (ty(v, 0), ty(v, 1)) else { return };
    let Some(compare) = comparison(v, src, false) else { return };
    let zero = S::from(0);
    let one = if dst == Type::S32 { !zero } else { S::from(truth(dst).unwrap_or(0)) };
    let m = combine(v, compare(s), s);
    for (i, d) in S::of_mut(d).iter_mut().enumerate() {
        *d = if m & (1 << i) != 0 { one } else { zero };
    }
}

#[inline(always)]
fn select<S: Slot>(m: u32, s: &[&[Row]], d: &mut [Row]) {
    let (a, b, d) = (S::of(s[0]), S::of(s[1]), S::of_mut(d));
    for i in 0..LANES {
        d[i] = if m & (1 << i) != 0 { a[i] } else { b[i] };
    }
}

/// `selp`
pub(super) fn selp(t: Type) -> Option<PureFn> {
    match t.bits() {
        16 | 32 => Some(|_, _, s, d| select::<u32>(map::mask(s[2]), s, d)),
        64 => Some(|_, _, s, d| select::<u64>(map::mask(s[2]), s, d)),
        _ => None,
    }
}

/// `slct`: `a` where `c >= 0`, so `b` where `c` is a NaN.
pub(super) fn slct(v: &Variant) -> Option<PureFn> {
    macro_rules! by {
        ($S:ty) => {
            match ty(v, 1)? {
                Type::S32 => lift!(a: $S, b: $S, c: i32 => $S { if c >= 0 { a } else { b } }),
                Type::F32 if v.has(Mod::Ftz) => lift!(a: $S, b: $S, c: f32 => $S { if fp::flush(c) >= 0.0 { a } else { b } }),
                Type::F32 => lift!(a: $S, b: $S, c: f32 => $S { if c >= 0.0 { a } else { b } }),
                _ => None,
            }
        };
    }
    match ty(v, 0)?.bits() {
        16 | 32 => by!(u32),
        64 => by!(u64),
        _ => None,
    }
}
