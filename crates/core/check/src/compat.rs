//! The register types that an operand of an instruction type accepts (manual, sections 9.4, 9.4.1 and 5.2), as sets: the answers of the
//! instruction table ([`Type::takes`]), cached per mnemonic.

use margay_isa::{Kind, Type};

/// A set of types: bit `t as u8`.
pub(crate) type Types = u64;

/// The set of one.
pub(crate) const fn only(t: Type) -> Types {
    1 << (t as u8)
}

/// Whether the set holds the type.
pub(crate) const fn has(set: Types, t: Type) -> bool {
    set >> (t as u8) & 1 != 0
}

/// The register types for which a condition holds.
pub(crate) fn those(holds: impl Fn(Type) -> bool) -> Types {
    Type::ALL.iter().filter(|r| r.is_register() && holds(**r)).fold(0, |set, r| set | only(*r))
}

/// Register types that an operand of type `ty` takes.
pub(crate) fn registers(ty: Type, wider: bool) -> Types {
    those(|r| ty.takes(r, wider))
}

/// Register types that may hold an address.
pub(crate) fn addresses() -> Types {
    those(Type::holds_address)
}

/// The constants that an operand of a type takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Constants {
    /// None at all (`.f16` and the packed formats).
    None,
    /// Whatever: a rule decides.
    Any,
    /// Integers.
    Int,
    /// Floating point.
    Float,
    /// Integers and floating-point literals of exactly this width (`.b32` takes `0f`, `.b64` takes doubles).
    Bits,
}

/// Constants that an operand of that type takes.
pub(crate) fn constants(ty: Type) -> Constants {
    match ty.kind() {
        Kind::Bits => Constants::Bits,
        Kind::Signed | Kind::Unsigned | Kind::Pred => Constants::Int,
        Kind::Float => match ty {
            Type::F32 | Type::F64 => Constants::Float,
            _ => Constants::None,
        },
        Kind::Packed | Kind::Opaque => Constants::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(set: Types) -> Vec<&'static str> {
        Type::ALL.iter().filter(|t| has(set, **t)).map(|t| t.name()).collect()
    }

    /// As ptxas 13.5 answers for `add`, `and` and `ld`.
    #[test]
    fn as_ptxas_has_it() {
        assert_eq!(names(registers(Type::S32, false)), ["b32", "u32", "s32", "f16x2"]);
        assert_eq!(names(registers(Type::F32, false)), ["b32", "f32"]);
        assert_eq!(names(registers(Type::F16x2, false)), ["b32", "f16x2"]);
        assert_eq!(names(registers(Type::Bf16, false)), ["b16"]);
        assert_eq!(names(registers(Type::B16, false)), ["b16", "u16", "s16", "f16"]);
        assert_eq!(names(registers(Type::F64, true)), ["b64", "b128", "f64"]);
        assert_eq!(names(registers(Type::U64, true)), ["b64", "b128", "u64", "s64"]);
        assert_eq!(
            names(registers(Type::B32, true)),
            ["b32", "b64", "b128", "u32", "u64", "s32", "s64", "f16x2", "f32", "f64"]
        );
    }
}
