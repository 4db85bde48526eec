//! Fundamental, packed and alternate types (manual, sections 5.2 and 5.2.3 to 5.2.5).

/// The meaning of the bits of a [`Type`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// Untyped bits (`.b8` to `.b128`): compatible with anything of the same size.
    Bits,
    /// Unsigned integer.
    Unsigned,
    /// Signed integer.
    Signed,
    /// Floating point, scalar or packed, alternate formats included.
    Float,
    /// Packed integers (`.u16x2`, `.s16x2`, `.u8x4`, `.s8x4`).
    Packed,
    /// `.pred`.
    Pred,
    /// `.texref`, `.samplerref`, `.surfref`.
    Opaque,
}

macro_rules! types {
    ($($variant:ident = $name:literal, $bits:literal, $kind:ident;)*) => {
        /// A type as written after a dot: `.s32`, `.f16x2`, `.e4m3x2`.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        #[repr(u8)]
        pub enum Type { $(#[doc = concat!("`.", $name, "`")] $variant,)* }

        impl Type {
            /// Every type, in declaration order.
            pub const ALL: &'static [Type] = &[$(Type::$variant,)*];

            /// The name without its dot.
            pub const fn name(self) -> &'static str { match self { $(Type::$variant => $name,)* } }

            /// Width in bits of one value (a packed type counts as a whole); 1 for `.pred`, 64 for opaque types.
            #[inline]
            pub const fn bits(self) -> u32 { match self { $(Type::$variant => $bits,)* } }

            /// The meaning of the bits.
            #[inline]
            pub const fn kind(self) -> Kind { match self { $(Type::$variant => Kind::$kind,)* } }

            /// The type of that name (no dot).
            pub fn from_name(name: &str) -> Option<Type> { match name { $($name => Some(Type::$variant),)* _ => None } }
        }
    };
}

types! {
    B8 = "b8", 8, Bits; B16 = "b16", 16, Bits; B32 = "b32", 32, Bits; B64 = "b64", 64, Bits; B128 = "b128", 128, Bits;
    U8 = "u8", 8, Unsigned; U16 = "u16", 16, Unsigned; U32 = "u32", 32, Unsigned; U64 = "u64", 64, Unsigned;
    S8 = "s8", 8, Signed; S16 = "s16", 16, Signed; S32 = "s32", 32, Signed; S64 = "s64", 64, Signed;
    F16 = "f16", 16, Float; F16x2 = "f16x2", 32, Float; F32 = "f32", 32, Float; F64 = "f64", 64, Float;
    Bf16 = "bf16", 16, Float; Bf16x2 = "bf16x2", 32, Float; Tf32 = "tf32", 32, Float; F32x2 = "f32x2", 64, Float;
    U16x2 = "u16x2", 32, Packed; S16x2 = "s16x2", 32, Packed; U8x4 = "u8x4", 32, Packed; S8x4 = "s8x4", 32, Packed;
    E4m3 = "e4m3", 8, Float; E5m2 = "e5m2", 8, Float; E3m2 = "e3m2", 8, Float; E2m3 = "e2m3", 8, Float; E2m1 = "e2m1", 4, Float;
    E4m3x2 = "e4m3x2", 16, Float; E5m2x2 = "e5m2x2", 16, Float; E3m2x2 = "e3m2x2", 16, Float; E2m3x2 = "e2m3x2", 16, Float;
    E2m1x2 = "e2m1x2", 8, Float; Ue8m0 = "ue8m0", 8, Float; Ue4m3 = "ue4m3", 8, Float; Ue8m0x2 = "ue8m0x2", 16, Float; Ue5m3x2 = "ue5m3x2", 16, Float;
    S2f6x2 = "s2f6x2", 16, Float; E4m3x4 = "e4m3x4", 32, Float; E5m2x4 = "e5m2x4", 32, Float; E3m2x4 = "e3m2x4", 32, Float;
    E2m3x4 = "e2m3x4", 32, Float; E2m1x4 = "e2m1x4", 16, Float;
    Ue8m0x4 = "ue8m0x4", 32, Float; E2m1p4x4 = "e2m1p4x4", 32, Float;
    B1 = "b1", 1, Bits; B2 = "b2", 2, Bits; B4 = "b4", 4, Bits; U4 = "u4", 4, Unsigned; S4 = "s4", 4, Signed; U2 = "u2", 2, Unsigned; S2 = "s2", 2, Signed;
    Pred = "pred", 1, Pred;
    TexRef = "texref", 64, Opaque; SamplerRef = "samplerref", 64, Opaque; SurfRef = "surfref", 64, Opaque;
}

impl Type {
    /// The narrowest untyped `.bN` of at least `bits` bits, else the widest.
    pub const fn of_bits(bits: u32) -> Type {
        match bits {
            0..=8 => Type::B8,
            9..=16 => Type::B16,
            17..=32 => Type::B32,
            33..=64 => Type::B64,
            _ => Type::B128,
        }
    }

    /// Bytes that one value takes in memory, rounded up; 0 for `.pred`, which has no memory form.
    #[inline]
    pub const fn bytes(self) -> u32 {
        if matches!(self, Type::Pred) { 0 } else { self.bits().div_ceil(8) }
    }

    /// True for signed integers.
    pub const fn is_signed(self) -> bool {
        matches!(self.kind(), Kind::Signed)
    }

    /// True for signed and unsigned integers (not for bits).
    #[inline]
    pub const fn is_int(self) -> bool {
        matches!(self.kind(), Kind::Signed | Kind::Unsigned)
    }

    /// True for floating point of any format.
    #[inline]
    pub const fn is_float(self) -> bool {
        matches!(self.kind(), Kind::Float)
    }

    /// Types that `.reg` may declare (section 5.2.1; `.b8`-sized registers exist for `ld`/`st`/`cvt`).
    #[inline]
    pub const fn is_register(self) -> bool {
        use Type::*;
        matches!(
            self,
            B8 | B16 | B32 | B64 | B128 | U8 | U16 | U32 | U64 | S8 | S16 | S32 | S64 | F16 | F16x2 | F32 | F64 | Pred
        )
    }
}

impl std::fmt::Display for Type {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, ".{}", self.name())
    }
}
