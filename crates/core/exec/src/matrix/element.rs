//! Element types of matrices: their encoding in registers, and their values.

use super::{
    blocked::{self, Loops},
    dense::Matrix,
    fixed,
};
use crate::sem::{fp, soft};
use margay_isa::{Mod, Type, Variant};
use std::sync::LazyLock;

/// An element type with its container.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Element {
    /// The type.
    pub ty: Type,
    /// The bits of a register that one element takes.
    pub bits: u32,
    /// The unused bits below the element in its container.
    shift: u32,
}

impl Element {
    /// The element as this instruction stores a type: narrow floats have containers of 8 bits, with `.e2m1` in the
    /// middle, unless they are packed (`.kind::mxf4` and the like).
    pub fn of(ty: Type, v: &Variant) -> Element {
        let packed = ty == Type::E2m1 && (v.has(Mod::KindMxf4) || v.has(Mod::KindMxf4nvf4));
        if packed { Element { ty, bits: 4, shift: 0 } } else { Element::unpacked(ty) }
    }

    /// The element of a type that fills its container.
    pub fn unpacked(ty: Type) -> Element {
        let (bits, shift) = match ty {
            Type::E2m1 => (8, 2),
            Type::E3m2 | Type::E2m3 => (8, 0),
            Type::Tf32 => (32, 0),
            _ => (ty.bits(), 0),
        };
        Element { ty, bits, shift }
    }

    /// Elements per register: 1 for those of 32 and 64 bits.
    pub fn per_register(self) -> usize {
        (32 / self.bits.min(32)) as usize
    }

    /// The bits of element `i` of a register.
    pub fn extract(self, register: u32, i: usize) -> u32 {
        if self.bits >= 32 {
            return register;
        }
        register >> (self.bits * i as u32) & ((1 << self.bits) - 1)
    }

    /// The exact value of a floating-point element.
    pub fn float(self, bits: u32) -> f64 {
        match self.ty {
            Type::F16 => f64::from(fp::from_f16(bits as u16)),
            Type::Bf16 => f64::from(fp::from_bf16(bits as u16)),
            // The low bits of the register are ignored.
            Type::Tf32 => f64::from(f32::from_bits(bits & 0xffff_e000)),
            _ => match self.small() {
                Some(values) => values[bits as usize & 255],
                None => f64::from(f32::from_bits(bits)),
            },
        }
    }

    /// A table of the values of all bytes that may hold such an element; `None` for types of more than 8 bits.
    pub fn small(self) -> Option<&'static [f64; 256]> {
        type Values = LazyLock<[f64; 256]>;
        static E4M3: Values = LazyLock::new(|| values(soft::E4M3, 0));
        static E5M2: Values = LazyLock::new(|| values(soft::E5M2, 0));
        static E3M2: Values = LazyLock::new(|| values(soft::E3M2, 0));
        static E2M3: Values = LazyLock::new(|| values(soft::E2M3, 0));
        static E2M1: [Values; 2] = [LazyLock::new(|| values(soft::E2M1, 0)), LazyLock::new(|| values(soft::E2M1, 2))];
        Some(match self.ty {
            Type::E4m3 => &E4M3,
            Type::E5m2 => &E5M2,
            Type::E3m2 => &E3M2,
            Type::E2m3 => &E2M3,
            Type::E2m1 => &E2M1[usize::from(self.shift > 0)],
            _ => return None,
        })
    }

    /// The exact values of floating-point elements, negated by the sign.
    pub fn floats(self, from: &Matrix<u32>, sign: f64) -> Matrix<f64> {
        let mut to = Matrix::new(from.rows(), from.columns());
        blocked::vectorize(Decode { element: self, sign, from: from.cells(), to: to.cells_mut() });
        to
    }

    /// The value of an integer element.
    pub fn integer(self, bits: u32) -> i64 {
        let unused = 32 - self.bits.min(32);
        if self.ty.is_signed() { i64::from((bits << unused) as i32 >> unused) } else { i64::from(bits) }
    }
}

/// The loops of [`Element::floats`].
struct Decode<'a> {
    element: Element,
    sign: f64,
    from: &'a [u32],
    to: &'a mut [f64],
}

impl Decode<'_> {
    #[inline(always)]
    fn each(self, value: impl Fn(u32) -> f64) {
        self.to.iter_mut().zip(self.from).for_each(|(to, bits)| *to = self.sign * value(*bits));
    }
}

impl Loops for Decode<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        match (self.element.ty, self.element.small()) {
            (Type::F16, _) => self.each(|bits| f64::from(fixed::half(bits as u16))),
            (Type::Bf16, _) => self.each(|bits| f64::from(f32::from_bits(bits << 16))),
            (Type::Tf32, _) => self.each(|bits| f64::from(f32::from_bits(bits & 0xffff_e000))),
            (_, Some(values)) => self.each(|bits| values[bits as usize & 255]),
            (_, None) => self.each(|bits| f64::from(f32::from_bits(bits))),
        }
    }
}

/// A table of the values of all bytes whose element starts at a given bit.
fn values(f: soft::Format, shift: u32) -> [f64; 256] {
    std::array::from_fn(|byte| f64::from(f.widen_small(byte as u32 >> shift & ((1 << f.bits()) - 1))))
}

/// The value of a scale factor: `.ue8m0` is a power of two, `.ue4m3` an `.e4m3` without sign.
pub fn scale(ty: Type, bits: u8) -> f64 {
    match ty {
        Type::Ue8m0 if bits == 0xff => f64::NAN,
        Type::Ue8m0 => f64::from_bits((u64::from(bits) + 1023 - 127) << 52),
        _ => f64::from(soft::E4M3.widen_small(u32::from(bits & 0x7f))),
    }
}

/// A sum as `.f32`, rounded to nearest even; NaNs are canonicalized.
#[inline(always)]
pub fn to_f32(sum: f64) -> u32 {
    if sum.is_nan() { fp::NAN32 } else { (sum as f32).to_bits() }
}

/// A sum as `.f16`, rounded to odd first, so that the second rounding is correct.
#[inline(always)]
pub fn to_f16(sum: f64) -> u16 {
    fp::to_f16(fp::narrow_odd(sum))
}
