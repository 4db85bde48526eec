//! Classes of modifiers and sets of types that more than one section uses.

use crate::{Class, Mod, Type};

/// IEEE rounding.
pub static RND: Class = Class::new("rounding", &[Mod::Rn, Mod::Rz, Mod::Rm, Mod::Rp]);
/// Flush subnormals to zero.
pub static FTZ: Class = Class::new("flush to zero", &[Mod::Ftz]);
/// Clamp to [0, 1], or to the integer range.
pub static SAT: Class = Class::new("saturation", &[Mod::Sat]);
/// Branches and calls that all threads take alike.
pub static UNI: Class = Class::new("uniformity", &[Mod::Uni]);
/// Spaces of `ld`.
pub static LD_SPACE: Class = Class::new(
    "state space",
    &[
        Mod::Const,
        Mod::Global,
        Mod::Local,
        Mod::Param,
        Mod::ParamEntry,
        Mod::ParamFunc,
        Mod::Shared,
        Mod::SharedCta,
        Mod::SharedCluster,
    ],
);
/// Spaces of `st`.
pub static ST_SPACE: Class = Class::new(
    "state space",
    &[Mod::Global, Mod::Local, Mod::Param, Mod::ParamFunc, Mod::Shared, Mod::SharedCta, Mod::SharedCluster],
);
/// `.weak`
pub static WEAK: Class = Class::new("memory ordering", &[Mod::Weak]);
/// Vector width.
pub static VEC: Class = Class::new("vector width", &[Mod::V2, Mod::V4, Mod::V8]);

/// Integer types of 16 bits and more.
pub static INT: &[Type] = &[Type::U16, Type::U32, Type::U64, Type::S16, Type::S32, Type::S64];
/// What `ld` and `st` move.
pub static DATA: &[Type] = &[
    Type::B8,
    Type::B16,
    Type::B32,
    Type::B64,
    Type::B128,
    Type::U8,
    Type::U16,
    Type::U32,
    Type::U64,
    Type::S8,
    Type::S16,
    Type::S32,
    Type::S64,
    Type::F32,
    Type::F64,
];
