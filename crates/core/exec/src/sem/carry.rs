//! Extended-precision arithmetic (manual, section 9.7.2). The condition code is an explicit predicate: the last source of a row
//! that reads it, the last destination of one that writes it. There is one flag, the adder's carry: `sub.cc` sets it where there is
//! *no* borrow (`a - b` is `a + ~b + 1`), and `subc` subtracts one more where it is clear. The manual calls it the borrow there, which
//! is the same for chains of `sub`; ptxas 13.5 makes `IADD3` with a carry predicate, and nvcc's 128-bit division reads it by `addc`.

use super::{
    PureFn,
    map::{self, Lane, Slot},
};
use crate::{LANES, Row, lanes::rows};
use margay_isa::{Mod, Opcode, Type, Variant};

/// Runs `f(a, b, carry in) -> (sum, carry out)` over the warp. `IN`, `OUT`: whether the row reads and writes the carry.
#[inline(always)]
fn chain<T: Lane, const IN: bool, const OUT: bool>(s: &[&[Row]], d: &mut [Row], f: impl Fn(T, T, bool) -> (T, bool)) {
    let (a, b) = (T::Slot::of(s[0]), T::Slot::of(s[1]));
    let carry = if IN { map::mask(s[2]) } else { 0 };
    let (d, flag) = d.split_at_mut(rows(8 * size_of::<T>() as u32));
    let d = T::Slot::of_mut(d);
    let mut out = 0;
    for i in 0..LANES {
        let (sum, over) = f(T::get(a[i]), T::get(b[i]), IN && carry & (1 << i) != 0);
        d[i] = sum.put();
        out |= if over { 1 << i } else { 0 };
    }
    if OUT {
        flag[0].0[0] = out;
    }
}

/// The same for `f(a, b, c, carry in)`.
#[inline(always)]
fn chain3<T: Lane, const IN: bool, const OUT: bool>(
    s: &[&[Row]],
    d: &mut [Row],
    f: impl Fn(T, T, T, bool) -> (T, bool),
) {
    let (a, b, c) = (T::Slot::of(s[0]), T::Slot::of(s[1]), T::Slot::of(s[2]));
    let carry = if IN { map::mask(s[3]) } else { 0 };
    let (d, flag) = d.split_at_mut(rows(8 * size_of::<T>() as u32));
    let d = T::Slot::of_mut(d);
    let mut out = 0;
    for i in 0..LANES {
        let (sum, over) = f(T::get(a[i]), T::get(b[i]), T::get(c[i]), IN && carry & (1 << i) != 0);
        d[i] = sum.put();
        out |= if over { 1 << i } else { 0 };
    }
    if OUT {
        flag[0].0[0] = out;
    }
}

/// Chooses the function for each combination of reading and writing the carry.
macro_rules! ways {
    ($reads:expr, $writes:expr, $chain:ident::<$T:ty>, $f:expr) => {
        match ($reads, $writes) {
            (false, false) => None,
            (false, true) => Some((|_, _, s, d| $chain::<$T, false, true>(s, d, $f)) as PureFn),
            (true, false) => Some((|_, _, s, d| $chain::<$T, true, false>(s, d, $f)) as PureFn),
            (true, true) => Some((|_, _, s, d| $chain::<$T, true, true>(s, d, $f)) as PureFn),
        }
    };
}

macro_rules! sums {
    ($v:expr, $T:ty, $W:ty) => {{
        let (reads, writes) = (matches!($v.op, Opcode::Addc | Opcode::Subc | Opcode::Madc), $v.has(Mod::Cc));
        match $v.op {
            Opcode::Add | Opcode::Addc => ways!(reads, writes, chain::<$T>, |a: $T, b: $T, carry: bool| {
                let (sum, first) = a.overflowing_add(b);
                let (sum, second) = sum.overflowing_add(carry as $T);
                (sum, first | second)
            }),
            Opcode::Sub => ways!(reads, writes, chain::<$T>, |a: $T, b: $T, _: bool| {
                let (rest, borrow) = a.overflowing_sub(b);
                (rest, !borrow)
            }),
            Opcode::Subc => ways!(reads, writes, chain::<$T>, |a: $T, b: $T, carry: bool| {
                let (rest, first) = a.overflowing_sub(b);
                let (rest, second) = rest.overflowing_sub(!carry as $T);
                (rest, !(first | second))
            }),
            Opcode::Mad | Opcode::Madc if !$v.has(Mod::Hi) => {
                ways!(reads, writes, chain3::<$T>, |a: $T, b: $T, c: $T, carry: bool| {
                    let (sum, first) = a.wrapping_mul(b).overflowing_add(c);
                    let (sum, second) = sum.overflowing_add(carry as $T);
                    (sum, first | second)
                })
            }
            Opcode::Mad | Opcode::Madc if $v.t().is_signed() => {
                ways!(reads, writes, chain3::<$T>, |a: $T, b: $T, c: $T, carry: bool| {
                    let high = ((a.cast_signed() as $W).wrapping_mul(b.cast_signed() as $W) >> <$T>::BITS) as $T;
                    let (sum, first) = high.overflowing_add(c);
                    let (sum, second) = sum.overflowing_add(carry as $T);
                    (sum, first | second)
                })
            }
            Opcode::Mad | Opcode::Madc => {
                ways!(reads, writes, chain3::<$T>, |a: $T, b: $T, c: $T, carry: bool| {
                    let high = ((a as $W).wrapping_mul(b as $W) >> <$T>::BITS) as $T;
                    let (sum, first) = high.overflowing_add(c);
                    let (sum, second) = sum.overflowing_add(carry as $T);
                    (sum, first | second)
                })
            }
            _ => None,
        }
    }};
}

/// `add.cc`, `addc`, `sub.cc`, `subc`, `mad.cc`, `madc`. Signed and unsigned products differ in the upper half only;
/// sums do not differ.
pub(super) fn carry(v: &Variant, t: Type) -> Option<PureFn> {
    match t {
        Type::U32 | Type::S32 => sums!(v, u32, i64),
        Type::U64 | Type::S64 => sums!(v, u64, i128),
        _ => None,
    }
}
