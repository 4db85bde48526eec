//! Lifts scalar functions to lane functions: the encoding of values in rows, and loops that rustc vectorizes.
//!
//! A lane function is a plain `fn`, so nothing is decoded when it runs. The macro [`lift!`] makes one from an
//! expression over typed scalars; [`lift_mode!`] makes one that reads its mode from the variant once per warp.

use super::fp;
use crate::{LANES, Row};

/// The word type of a register: one, two or four 32-bit words per lane.
pub(super) trait Slot: bytemuck::Pod {
    /// The register's lanes.
    fn of(rows: &[Row]) -> &[Self; LANES];
    /// The register's lanes, mutably.
    fn of_mut(rows: &mut [Row]) -> &mut [Self; LANES];
}

macro_rules! slots {
    ($($t:ty),*) => {$(
        impl Slot for $t {
            #[inline(always)]
            fn of(rows: &[Row]) -> &[Self; LANES] {
                bytemuck::from_bytes(&bytemuck::cast_slice::<Row, u8>(rows)[..LANES * size_of::<$t>()])
            }

            #[inline(always)]
            fn of_mut(rows: &mut [Row]) -> &mut [Self; LANES] {
                bytemuck::from_bytes_mut(&mut bytemuck::cast_slice_mut::<Row, u8>(rows)[..LANES * size_of::<$t>()])
            }
        }
    )*};
}
slots!(u32, u64, u128);

/// A typed value of one lane. Reading truncates to the type's width; writing zero-extends.
pub(super) trait Lane: Copy {
    /// The word type of the register that holds it.
    type Slot: Slot;
    /// Decodes a value.
    fn get(slot: Self::Slot) -> Self;
    /// Encodes a value.
    fn put(self) -> Self::Slot;
}

macro_rules! lanes_of {
    ($($t:ty, $unsigned:ty, $slot:ty;)*) => {$(
        impl Lane for $t {
            type Slot = $slot;
            #[inline(always)]
            fn get(slot: $slot) -> $t { slot as $t }
            #[inline(always)]
            fn put(self) -> $slot { self as $unsigned as $slot }
        }
    )*};
}
lanes_of! {
    u8, u8, u32; u16, u16, u32; u32, u32, u32; u64, u64, u64; u128, u128, u128;
    i8, u8, u32; i16, u16, u32; i32, u32, u32; i64, u64, u64;
}

impl Lane for f32 {
    type Slot = u32;
    #[inline(always)]
    fn get(slot: u32) -> f32 {
        f32::from_bits(slot)
    }
    #[inline(always)]
    fn put(self) -> u32 {
        self.to_bits()
    }
}

impl Lane for f64 {
    type Slot = u64;
    #[inline(always)]
    fn get(slot: u64) -> f64 {
        f64::from_bits(slot)
    }
    #[inline(always)]
    fn put(self) -> u64 {
        self.to_bits()
    }
}

/// `d = f(a)` in every lane.
#[inline(always)]
pub(super) fn one<A: Lane, D: Lane>(s: &[&[Row]], d: &mut [Row], f: impl Fn(A) -> D) {
    let (a, d) = (A::Slot::of(s[0]), D::Slot::of_mut(d));
    for i in 0..LANES {
        d[i] = f(A::get(a[i])).put();
    }
}

/// `d = f(a, b)` in every lane.
#[inline(always)]
pub(super) fn two<A: Lane, B: Lane, D: Lane>(s: &[&[Row]], d: &mut [Row], f: impl Fn(A, B) -> D) {
    let (a, b, d) = (A::Slot::of(s[0]), B::Slot::of(s[1]), D::Slot::of_mut(d));
    for i in 0..LANES {
        d[i] = f(A::get(a[i]), B::get(b[i])).put();
    }
}

/// `d = f(a, b, c)` in every lane.
#[inline(always)]
pub(super) fn three<A: Lane, B: Lane, C: Lane, D: Lane>(s: &[&[Row]], d: &mut [Row], f: impl Fn(A, B, C) -> D) {
    let (a, b, c, d) = (A::Slot::of(s[0]), B::Slot::of(s[1]), C::Slot::of(s[2]), D::Slot::of_mut(d));
    for i in 0..LANES {
        d[i] = f(A::get(a[i]), B::get(b[i]), C::get(c[i])).put();
    }
}

/// `d = f(a, b, c, e)` in every lane.
#[inline(always)]
pub(super) fn four<A: Lane, B: Lane, C: Lane, E: Lane, D: Lane>(
    s: &[&[Row]],
    d: &mut [Row],
    f: impl Fn(A, B, C, E) -> D,
) {
    let (a, b, c, e) = (A::Slot::of(s[0]), B::Slot::of(s[1]), C::Slot::of(s[2]), E::Slot::of(s[3]));
    let d = D::Slot::of_mut(d);
    for i in 0..LANES {
        d[i] = f(A::get(a[i]), B::get(b[i]), C::get(c[i]), E::get(e[i])).put();
    }
}

/// The halves of a row: elements of packed types, two per lane.
#[inline(always)]
fn halves(rows: &[Row]) -> &[u16; 2 * LANES] {
    bytemuck::cast_ref(&rows[0].0)
}

/// `d = f(a)` in every half.
#[inline(always)]
pub(super) fn one_packed(s: &[&[Row]], d: &mut [Row], f: impl Fn(u16) -> u16) {
    let (a, d): (_, &mut [u16; 2 * LANES]) = (halves(s[0]), bytemuck::cast_mut(&mut d[0].0));
    for i in 0..2 * LANES {
        d[i] = f(a[i]);
    }
}

/// `d = f(a, b)` in every half.
#[inline(always)]
pub(super) fn two_packed(s: &[&[Row]], d: &mut [Row], f: impl Fn(u16, u16) -> u16) {
    let (a, b, d): (_, _, &mut [u16; 2 * LANES]) = (halves(s[0]), halves(s[1]), bytemuck::cast_mut(&mut d[0].0));
    for i in 0..2 * LANES {
        d[i] = f(a[i], b[i]);
    }
}

/// `d = f(a, b, c)` in every half.
#[inline(always)]
pub(super) fn three_packed(s: &[&[Row]], d: &mut [Row], f: impl Fn(u16, u16, u16) -> u16) {
    let (a, b, c) = (halves(s[0]), halves(s[1]), halves(s[2]));
    let d: &mut [u16; 2 * LANES] = bytemuck::cast_mut(&mut d[0].0);
    for i in 0..2 * LANES {
        d[i] = f(a[i], b[i], c[i]);
    }
}

/// `d = f(a, b)` in double precision. NaNs are corrected in a second pass if there are any.
#[inline(always)]
pub(super) fn two_f64(s: &[&[Row]], d: &mut [Row], f: impl Fn(f64, f64) -> f64) {
    let (a, b, d) = (u64::of(s[0]), u64::of(s[1]), u64::of_mut(d));
    let mut nan = 0;
    for i in 0..LANES {
        let r = f(f64::from_bits(a[i]), f64::from_bits(b[i]));
        nan |= if r.is_nan() { u64::MAX } else { 0 };
        d[i] = r.to_bits();
    }
    if nan != 0 {
        for i in 0..LANES {
            d[i] = fp::keep64(f64::from_bits(d[i]), f64::from_bits(a[i]), f64::from_bits(b[i])).to_bits();
        }
    }
}

/// The mask of a predicate operand.
#[inline(always)]
pub(super) fn mask(rows: &[Row]) -> u32 {
    rows[0].0[0]
}

/// The mask of lanes for which `f(a, b)` holds.
#[inline(always)]
pub(super) fn mask_two<A: Lane>(s: &[&[Row]], f: impl Fn(A, A) -> bool) -> u32 {
    let (a, b) = (A::Slot::of(s[0]), A::Slot::of(s[1]));
    let mut m = 0;
    for i in 0..LANES {
        m |= if f(A::get(a[i]), A::get(b[i])) { 1 << i } else { 0 };
    }
    m
}

/// The mask of lanes for which `f(a)` holds.
#[inline(always)]
pub(super) fn mask_one<A: Lane>(s: &[&[Row]], f: impl Fn(A) -> bool) -> u32 {
    let a = A::Slot::of(s[0]);
    let mut m = 0;
    for i in 0..LANES {
        m |= if f(A::get(a[i])) { 1 << i } else { 0 };
    }
    m
}

/// A lane function from an expression over typed scalars: `lift!(a: u32, b: u32 => u32 { a & b })`.
macro_rules! lift {
    ($a:ident: $A:ty => $D:ty $body:block) => {
        Some((|_, _, s, d| $crate::sem::map::one::<$A, $D>(s, d, |$a| $body)) as $crate::sem::PureFn)
    };
    ($a:ident: $A:ty, $b:ident: $B:ty => $D:ty $body:block) => {
        Some((|_, _, s, d| $crate::sem::map::two::<$A, $B, $D>(s, d, |$a, $b| $body)) as $crate::sem::PureFn)
    };
    ($a:ident: $A:ty, $b:ident: $B:ty, $c:ident: $C:ty => $D:ty $body:block) => {
        Some((|_, _, s, d| $crate::sem::map::three::<$A, $B, $C, $D>(s, d, |$a, $b, $c| $body)) as $crate::sem::PureFn)
    };
    ($a:ident: $A:ty, $b:ident: $B:ty, $c:ident: $C:ty, $e:ident: $E:ty => $D:ty $body:block) => {
        Some(
            (|_, _, s, d| $crate::sem::map::four::<$A, $B, $C, $E, $D>(s, d, |$a, $b, $c, $e| $body))
                as $crate::sem::PureFn,
        )
    };
}

/// As [`lift!`], with a mode that is computed from the variant once per warp:
/// `lift_mode!(r = Rnd::of; a: f32, b: f32 => f32 { add(a, b, r) })`.
macro_rules! lift_mode {
    ($m:ident = $of:expr; $a:ident: $A:ty => $D:ty $body:block) => {
        Some(
            (|v, _, s, d| {
                let $m = ($of)(v);
                $crate::sem::map::one::<$A, $D>(s, d, |$a| $body)
            }) as $crate::sem::PureFn,
        )
    };
    ($m:ident = $of:expr; $a:ident: $A:ty, $b:ident: $B:ty => $D:ty $body:block) => {
        Some(
            (|v, _, s, d| {
                let $m = ($of)(v);
                $crate::sem::map::two::<$A, $B, $D>(s, d, |$a, $b| $body)
            }) as $crate::sem::PureFn,
        )
    };
    ($m:ident = $of:expr; $a:ident: $A:ty, $b:ident: $B:ty, $c:ident: $C:ty => $D:ty $body:block) => {
        Some(
            (|v, _, s, d| {
                let $m = ($of)(v);
                $crate::sem::map::three::<$A, $B, $C, $D>(s, d, |$a, $b, $c| $body)
            }) as $crate::sem::PureFn,
        )
    };
}

/// An expression for each of several types, with a name bound to the host's type:
/// `by_type!(t; T in [U32: u32, S32: i32] => lift!(a: T => T { a.wrapping_neg() }))`.
macro_rules! by_type {
    ($t:expr; $T:ident in [$($ptx:ident: $host:ty),* $(,)?] => $e:expr) => {
        match $t {
            $(margay_isa::Type::$ptx => {
                type $T = $host;
                $e
            })*
            _ => None,
        }
    };
}

pub(super) use {by_type, lift, lift_mode};
