//! Constants as bits of an operand's type (manual, section 4.5; mismatched ones as in ptxas).

use margay_isa::{Kind, Ty, Type, Variant};

/// The bits of an integer constant in a place of type `ty`: cut to its width; any non-zero value is a true predicate.
pub(super) fn int_bits(ty: Type, value: i64) -> u64 {
    match ty.kind() {
        Kind::Pred => u64::from(value != 0),
        _ => mask(ty, value as u64),
    }
}

/// The bits of a floating constant in a place of type `ty`. In a 32-bit floating place a double is rounded to nearest even.
/// Everywhere else the literal's own bits count: `0f3FC00000` in an `.f64` place is the double with these low bits, and a
/// double in a `.b32` place leaves its low half (both measured with ptxas 13.5).
pub(super) fn float_bits(ty: Type, bits: u64, single: bool) -> u64 {
    if ty.is_float() && ty.bits() == 32 && !single {
        let value = f64::from_bits(bits);
        return if value.is_nan() { 0x7fc0_0000 } else { u64::from((value as f32).to_bits()) };
    }
    mask(ty, bits)
}

fn mask(ty: Type, bits: u64) -> u64 {
    match ty.bits() {
        n @ 0..64 => bits & ((1 << n) - 1),
        _ => bits,
    }
}

/// The type that an immediate must take in an operand.
pub(crate) fn immediate_type(variant: &Variant, ty: Ty) -> Type {
    match ty {
        Ty::Of(v) => variant.ty(v).unwrap_or_else(|| variant.t()),
        Ty::Is(t) | Ty::Untyped(t) => t,
        Ty::Wide(v) => match variant.ty(v).unwrap_or_else(|| variant.t()).bits() {
            0..=8 => Type::B16,
            9..=16 => Type::B32,
            17..=32 => Type::B64,
            _ => Type::B128,
        },
        Ty::Size(v) | Ty::Int(v) => match variant.ty(v).unwrap_or_else(|| variant.t()).bits() {
            1 => Type::Pred,
            0 | 2..=8 => Type::B8,
            9..=16 => Type::B16,
            17..=32 => Type::B32,
            33..=64 => Type::B64,
            _ => Type::B128,
        },
        Ty::Pointer => Type::B64,
        Ty::Any => variant.t(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_cut_to_the_type() {
        assert_eq!(int_bits(Type::U8, -1), 0xff);
        assert_eq!(int_bits(Type::S16, -2), 0xfffe);
        assert_eq!(int_bits(Type::B64, i64::MIN), 1 << 63);
        assert_eq!(int_bits(Type::Pred, 2), 1);
    }

    #[test]
    fn floats_follow_ptxas() {
        assert_eq!(float_bits(Type::F32, 0.1f64.to_bits(), false), 0x3dcc_cccd);
        assert_eq!(float_bits(Type::F32, 1e300f64.to_bits(), false), 0x7f80_0000);
        assert_eq!(float_bits(Type::F32, 0x7ff0_0000_0000_0001, false), 0x7fc0_0000);
        assert_eq!(float_bits(Type::F32, 0x7f80_0001, true), 0x7f80_0001);
        assert_eq!(float_bits(Type::F64, 0x3fc0_0000, true), 0x3fc0_0000);
        assert_eq!(float_bits(Type::B32, 1.5f64.to_bits(), false), 0);
        assert_eq!(float_bits(Type::B64, 1.5f64.to_bits(), false), 0x3ff8 << 48);
    }
}
