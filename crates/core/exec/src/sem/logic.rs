//! Logic and shifts (manual, section 9.7.8), and `prmt` (9.7.9.7).

use super::{
    PureFn,
    map::{self, Lane, Slot, lift},
};
use crate::{LANES, Row};
use margay_isa::{Mod, Opcode, Type, Variant};

/// Applies `f` to every word of the operands: registers of any width, and predicates, whose word 0 is their mask.
#[inline(always)]
fn words(s: &[&[Row]], d: &mut [Row], f: impl Fn(u32, u32) -> u32) {
    for (d, (a, b)) in d.iter_mut().zip(s[0].iter().zip(s[1])) {
        for i in 0..LANES {
            d.0[i] = f(a.0[i], b.0[i]);
        }
    }
}

/// `and`, `or`, `xor` of any size, predicates included.
pub(super) fn bitwise(op: Opcode, t: Type) -> Option<PureFn> {
    let pred = t == Type::Pred;
    match op {
        Opcode::And if pred => Some(|_, _, s, d| d[0].0[0] = map::mask(s[0]) & map::mask(s[1])),
        Opcode::Or if pred => Some(|_, _, s, d| d[0].0[0] = map::mask(s[0]) | map::mask(s[1])),
        Opcode::Xor if pred => Some(|_, _, s, d| d[0].0[0] = map::mask(s[0]) ^ map::mask(s[1])),
        Opcode::And => Some(|_, _, s, d| words(s, d, |a, b| a & b)),
        Opcode::Or => Some(|_, _, s, d| words(s, d, |a, b| a | b)),
        Opcode::Xor => Some(|_, _, s, d| words(s, d, |a, b| a ^ b)),
        _ => None,
    }
}

/// `not`
pub(super) fn not(t: Type) -> Option<PureFn> {
    match t {
        Type::Pred => Some(|_, _, s, d| d[0].0[0] = !map::mask(s[0])),
        Type::B16 => lift!(a: u16 => u16 { !a }),
        Type::B32 => lift!(a: u32 => u32 { !a }),
        Type::B64 => lift!(a: u64 => u64 { !a }),
        _ => None,
    }
}

/// `cnot`
pub(super) fn cnot(t: Type) -> Option<PureFn> {
    match t {
        Type::B16 => lift!(a: u16 => u16 { u16::from(a == 0) }),
        Type::B32 => lift!(a: u32 => u32 { u32::from(a == 0) }),
        Type::B64 => lift!(a: u64 => u64 { u64::from(a == 0) }),
        _ => None,
    }
}

/// Shifts. A uniform amount, the usual case, compiles to one vector instruction, so it is checked for first.
#[inline(always)]
fn shift<T: Lane>(s: &[&[Row]], d: &mut [Row], f: impl Fn(T, u32) -> T) {
    let (a, by, d) = (T::Slot::of(s[0]), u32::of(s[1]), T::Slot::of_mut(d));
    let first = by[0];
    if by.iter().fold(0, |differ, b| differ | (b ^ first)) == 0 {
        for i in 0..LANES {
            d[i] = f(T::get(a[i]), first).put();
        }
    } else {
        for i in 0..LANES {
            d[i] = f(T::get(a[i]), by[i]).put();
        }
    }
}

/// `shl`: amounts beyond the width give 0.
pub(super) fn shl(t: Type) -> Option<PureFn> {
    macro_rules! left {
        ($T:ty) => {
            Some(|_, _, s, d| shift::<$T>(s, d, |a, b| if b < <$T>::BITS { a << b } else { 0 }))
        };
    }
    match t {
        Type::B16 => left!(u16),
        Type::B32 => left!(u32),
        Type::B64 => left!(u64),
        _ => None,
    }
}

/// `shr`: amounts beyond the width give 0, or the sign for signed types.
pub(super) fn shr(t: Type) -> Option<PureFn> {
    macro_rules! right {
        (unsigned $T:ty) => {
            Some(|_, _, s, d| shift::<$T>(s, d, |a, b| if b < <$T>::BITS { a >> b } else { 0 }))
        };
        (signed $T:ty) => {
            Some(|_, _, s, d| shift::<$T>(s, d, |a, b| a >> b.min(<$T>::BITS - 1)))
        };
    }
    match t {
        Type::B16 | Type::U16 => right!(unsigned u16),
        Type::B32 | Type::U32 => right!(unsigned u32),
        Type::B64 | Type::U64 => right!(unsigned u64),
        Type::S16 => right!(signed i16),
        Type::S32 => right!(signed i32),
        Type::S64 => right!(signed i64),
        _ => None,
    }
}

/// `shf`: funnel shift of the 64 bits `b:a`.
pub(super) fn shf(v: &Variant) -> Option<PureFn> {
    macro_rules! funnel {
        ($n:ident = $limit:expr) => {
            if v.has(Mod::L) {
                lift!(a: u32, b: u32, $n: u32 => u32 { ((u64::from(b) << 32 | u64::from(a)) << $limit >> 32) as u32 })
            } else {
                lift!(a: u32, b: u32, $n: u32 => u32 { ((u64::from(b) << 32 | u64::from(a)) >> $limit) as u32 })
            }
        };
    }
    if v.has(Mod::Clamp) { funnel!(c = c.min(32)) } else { funnel!(c = (c & 31)) }
}

/// `lop3`: any function of three bits, by its truth table; `.or` and `.and` also combine "not zero" with a predicate.
pub(super) fn lop3(v: &Variant) -> Option<PureFn> {
    if v.has(Mod::Or) {
        Some(|_, _, s, d| {
            table3(s, d);
            d[1].0[0] = not_zero(&d[0]) | map::mask(s[4]);
        })
    } else if v.has(Mod::And) {
        Some(|_, _, s, d| {
            table3(s, d);
            d[1].0[0] = not_zero(&d[0]) & map::mask(s[4]);
        })
    } else {
        Some(|_, _, s, d| table3(s, d))
    }
}

fn table3(s: &[&[Row]], d: &mut [Row]) {
    let lut = s[3][0].0[0];
    let all = |bit: u32| if lut >> bit & 1 != 0 { u32::MAX } else { 0 };
    let k: [u32; 8] = std::array::from_fn(|i| all(i as u32));
    // A tree of multiplexers: `c` selects within a pair, `b` between pairs, `a` between the halves.
    let choose = |by: u32, zero: u32, one: u32| zero ^ (by & (zero ^ one));
    map::three::<u32, u32, u32, u32>(s, d, |a, b, c| {
        let low = choose(b, choose(c, k[0], k[1]), choose(c, k[2], k[3]));
        let high = choose(b, choose(c, k[4], k[5]), choose(c, k[6], k[7]));
        choose(a, low, high)
    });
}

fn not_zero(row: &Row) -> u32 {
    map::mask_one::<u32>(&[std::slice::from_ref(row)], |a| a != 0)
}

/// `prmt`: selects four of eight bytes.
pub(super) fn prmt(v: &Variant) -> Option<PureFn> {
    /// Byte `i` of `b:a`.
    #[inline(always)]
    fn byte(a: u32, b: u32, i: u32) -> u32 {
        (u64::from(b) << 32 | u64::from(a)).wrapping_shr(8 * i) as u32 & 0xff
    }
    /// The four bytes selected by `at(0)` (lowest) to `at(3)`.
    #[inline(always)]
    fn gather(a: u32, b: u32, at: impl Fn(u32) -> u32) -> u32 {
        byte(a, b, at(0)) | byte(a, b, at(1)) << 8 | byte(a, b, at(2)) << 16 | byte(a, b, at(3)) << 24
    }
    match () {
        _ if v.has(Mod::F4e) => lift!(a: u32, b: u32, c: u32 => u32 { gather(a, b, |i| (c & 3) + i) }),
        _ if v.has(Mod::B4e) => lift!(a: u32, b: u32, c: u32 => u32 { gather(a, b, |i| (c & 3).wrapping_sub(i) & 7) }),
        _ if v.has(Mod::Rc8) => lift!(a: u32, b: u32, c: u32 => u32 { gather(a, b, |_| c & 3) }),
        _ if v.has(Mod::Ecl) => lift!(a: u32, b: u32, c: u32 => u32 { gather(a, b, |i| i.max(c & 3)) }),
        _ if v.has(Mod::Ecr) => lift!(a: u32, b: u32, c: u32 => u32 { gather(a, b, |i| i.min(c & 3)) }),
        _ if v.has(Mod::Rc16) => lift!(a: u32, b: u32, c: u32 => u32 { gather(a, b, |i| (c & 1) * 2 + (i & 1)) }),
        _ => Some(|_, _, s, d| {
            // The control is usually a constant: then the shifts are the same in all lanes.
            let first = s[2][0].0[0];
            if s[2][0].0.iter().fold(0, |differ, c| differ | (c ^ first)) == 0 {
                map::two::<u32, u32, u32>(s, d, |a, b| permute(a, b, first));
            } else {
                map::three::<u32, u32, u32, u32>(s, d, permute);
            }
        }),
    }
}

/// The generic form of `prmt`: a control of four bits for each byte; its highest bit requests the sign, repeated eight
/// times.
#[inline(always)]
fn permute(a: u32, b: u32, control: u32) -> u32 {
    let source = u64::from(b) << 32 | u64::from(a);
    let pick = |i: u32| {
        let control = control >> (4 * i);
        let x = (source >> (8 * (control & 7))) as u32;
        let sign = if x & 0x80 != 0 { 0xff } else { 0 };
        (if control & 8 != 0 { sign } else { x & 0xff }) << (8 * i)
    };
    pick(0) | pick(1) | pick(2) | pick(3)
}
