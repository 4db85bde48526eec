//! Classes of modifiers and sets of types that more than one section uses.

use crate::{Class, Mod as M, Type, Type::*};

/// IEEE rounding.
pub static RND: Class = Class::new("rounding", &[M::Rn, M::Rz, M::Rm, M::Rp]);
/// Rounding to nearest even, the only one for half precision.
pub static RN: Class = Class::new("rounding", &[M::Rn]);
/// Flush subnormals to zero.
pub static FTZ: Class = Class::new("flush to zero", &[M::Ftz]);
/// Clamp to [0, 1], or to the integer range.
pub static SAT: Class = Class::new("saturation", &[M::Sat]);
/// Clamp negative results to zero.
pub static RELU: Class = Class::new("rectification", &[M::Relu]);
/// NaN inputs give NaN.
pub static NAN: Class = Class::new("NaN propagation", &[M::PropagateNan]);
/// Compare magnitudes.
pub static ABS: Class = Class::new("absolute value", &[M::Abs]);
/// Branches and calls that all threads take alike.
pub static UNI: Class = Class::new("uniformity", &[M::Uni]);
/// Which half of a product.
pub static HI_LO: Class = Class::new("product half", &[M::Hi, M::Lo]);
/// Which part of a product.
pub static HI_LO_WIDE: Class = Class::new("product part", &[M::Hi, M::Lo, M::Wide]);
/// Write the carry flag.
pub static CC: Class = Class::new("carry out", &[M::Cc]);
/// What happens beyond 32.
pub static CLAMP_WRAP: Class = Class::new("clamping", &[M::Clamp, M::Wrap]);
/// Comparisons of signed integers and bits.
pub static CMP: Class = Class::new("comparison", &[M::Eq, M::Ne, M::Lt, M::Le, M::Gt, M::Ge]);
/// Equality, all there is for untyped bits.
pub static CMP_EQ: Class = Class::new("comparison", &[M::Eq, M::Ne]);
/// Comparisons of unsigned integers.
pub static CMP_UNSIGNED: Class =
    Class::new("comparison", &[M::Eq, M::Ne, M::Lt, M::Le, M::Gt, M::Ge, M::Lo, M::Ls, M::Hi, M::Hs]);
/// Comparisons of floating-point numbers, ordered and unordered.
pub static CMP_FLOAT: Class = Class::new(
    "comparison",
    &[M::Eq, M::Ne, M::Lt, M::Le, M::Gt, M::Ge, M::Equ, M::Neu, M::Ltu, M::Leu, M::Gtu, M::Geu, M::Num, M::Nan],
);
/// How the comparison meets the third predicate.
pub static BOOL: Class = Class::new("combination", &[M::And, M::Or, M::Xor]);

/// Spaces of `ld`.
pub static LD_SPACE: Class = Class::new(
    "state space",
    &[M::Const, M::Global, M::Local, M::Param, M::ParamEntry, M::ParamFunc, M::Shared, M::SharedCta, M::SharedCluster],
);
/// Spaces of `st`.
pub static ST_SPACE: Class = Class::new(
    "state space",
    &[M::Global, M::Local, M::Param, M::ParamFunc, M::Shared, M::SharedCta, M::SharedCluster],
);
/// Global and shared memory.
pub static ATOM_SPACE: Class = Class::new("state space", &[M::Global, M::Shared, M::SharedCta, M::SharedCluster]);
/// Global memory, or unnamed.
pub static GLOBAL: Class = Class::new("state space", &[M::Global]);
/// The shared memory of the cluster.
pub static SHARED_CLUSTER: Class = Class::new("state space", &[M::SharedCluster]);
/// `.weak`
pub static WEAK: Class = Class::new("memory ordering", &[M::Weak]);
/// Who observes an ordered access.
pub static SCOPE: Class = Class::new("scope", &[M::Cta, M::Cluster, M::Gpu, M::Sys]);
/// `.L2::cache_hint`
pub static HINT: Class = Class::new("cache hint", &[M::L2CacheHint]);
/// How much to prefetch.
pub static PREFETCH: Class = Class::new("prefetch size", &[M::L2B64, M::L2B128, M::L2B256]);
/// Eviction priority in the first level.
pub static L1_EVICT: Class = Class::new(
    "L1 eviction priority",
    &[M::L1EvictNormal, M::L1EvictUnchanged, M::L1EvictFirst, M::L1EvictLast, M::L1NoAllocate],
);
/// Eviction priority in the second level.
pub static L2_EVICT: Class = Class::new("L2 eviction priority", &[M::L2EvictNormal, M::L2EvictFirst, M::L2EvictLast]);
/// Vector width.
pub static VEC: Class = Class::new("vector width", &[M::V2, M::V4, M::V8]);
/// Vector width up to four.
pub static VEC4: Class = Class::new("vector width", &[M::V2, M::V4]);
/// All threads of the warp participate.
pub static ALIGNED: Class = Class::new("alignment", &[M::Aligned]);

/// Integer types of 16 bits and more.
pub static INT: &[Type] = &[U16, U32, U64, S16, S32, S64];
/// Integers of 32 bits.
pub static INT32: &[Type] = &[U32, S32];
/// Integers of 32 bits, signed first, as the manual has them for the extended-precision instructions.
pub static INT64: &[Type] = &[U64, S64];
/// Signed integers.
pub static SIGNED: &[Type] = &[S16, S32, S64];
/// Words of bits.
pub static BITS: &[Type] = &[B16, B32, B64];
/// 32 and 64 bits.
pub static BITS32: &[Type] = &[B32, B64];
/// Addresses.
pub static POINTER: &[Type] = &[U32, U64];
/// What `selp` and `slct` choose between.
pub static SELECT: &[Type] = &[B16, B32, B64, U16, U32, U64, S16, S32, S64, F32, F64];
/// What `ld` and `st` move.
pub static DATA: &[Type] = &[B8, B16, B32, B64, B128, U8, U16, U32, U64, S8, S16, S32, S64, F32, F64];
