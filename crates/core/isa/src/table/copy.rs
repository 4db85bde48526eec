//! Asynchronous copies: `cp.async`, bulk and tensor copies, reductions and prefetches (manual, sections 9.7.9.25 to 9.7.9.27).
//!
//! The state spaces on these instructions are those of the destination and of the source, in this order, and every address row
//! here names its space. An operand that belongs to a modifier (`cache-policy`, `ctaMask`) is present exactly when the
//! modifier is.

use super::{class::*, target::*};
use crate::{Effect::Memory, Mod as M, Type::*, Var::{T}, *};

/// The CTA's own shared memory, as the older copies write it.
static SHARED: Class = Class::new("state space", &[M::Shared, M::SharedCta]);
static OPT_NOINC: Class = Class::new("pending count", &[M::Noinc]);
static READ: Class = Class::new("what to wait for", &[M::Read]);
static MULTICAST: Class = Class::new("multicast", &[M::MulticastCluster, M::MulticastCluster16b, M::MulticastCluster32b]);
/// The only one that allows other sizes.
static MULTICAST32: Class = Class::new("multicast", &[M::MulticastCluster32b]);
/// The report to the barrier (PTX ISA 9.4, section 9.7.10.28.4.1).
static REPORT: Class = Class::new("report", &[
    M::ReportDisabled, M::ReportPer16Bytes80000000, M::ReportPer16Bytes8000, M::ReportPer16Bytes80, M::ReportPer16Bytes8, M::ReportPerElementFf,
]);
static WEAK93: Class = Class::new("memory ordering", &[M::Weak]);
static ADDRESS: Class = Class::new("override", &[M::OverrideGlobalAddress]);
static NO_OFFSETS: Class = Class::new("load mode", &[M::Im2colNoOffs, M::Im2colNoOffsW]);
static CP_MASK: Class = Class::new("byte mask", &[M::CpMask]);
static CTA_GROUP: Class = Class::new("CTA group", &[M::CtaGroup1, M::CtaGroup2]);
static TILE: Class = Class::new("load mode", &[M::Tile]);
static IM2COL_W: Class = Class::new("load mode", &[M::Im2colW, M::Im2colW128]);
static SCATTER_TILE: Class = Class::new("store mode", &[M::Tile]);
pub static DIM: Class = Class::new("dimension", &[M::D1, M::D2, M::D3, M::D4, M::D5]);
static DIM2: Class = Class::new("dimension", &[M::D2, M::D3, M::D4, M::D5]);
static DIM3: Class = Class::new("dimension", &[M::D3, M::D4, M::D5]);
static BIT_OP: Class = Class::new("operation", &[M::And, M::Or, M::Xor]);
static MIN_MAX: Class = Class::new("operation", &[M::Min, M::Max]);
static INC_DEC: Class = Class::new("operation", &[M::Inc, M::Dec]);
static RED_OP: Class = Class::new("operation", &[M::Add, M::Min, M::Max, M::Inc, M::Dec, M::And, M::Or, M::Xor]);

/// Coordinates of a tensor copy: one a dimension.
pub static COORDS: &[(M, u8)] = &[(M::D2, 2), (M::D3, 3), (M::D4, 4), (M::D5, 5)];
/// Offsets of an `.im2col` copy: one a spatial dimension.
static OFFSETS: &[(M, u8)] = &[(M::D4, 2), (M::D5, 3)];

const fn at(name: &'static str, space: M) -> Opnd {
    addr().named(name).space(space)
}
const fn mbar() -> Opnd {
    at("mbar", M::SharedCta)
}
const fn policy() -> Opnd {
    src(Ty::Is(U64)).named("cache-policy").when(&[M::L2CacheHint])
}
/// The number of bytes of a bulk copy.
pub const fn size() -> Opnd {
    src(Ty::Is(U32)).named("size").range(0, 1_048_560).step(16)
}
const fn cta_mask() -> Opnd {
    src(Ty::Is(U16)).named("ctaMask").when(&[M::MulticastCluster, M::MulticastCluster16b]).range(0, 0xffff)
}
/// Clusters of more than 16 CTAs have masks of 32 bits.
const fn cta_mask32() -> Opnd {
    src(Ty::Is(U32)).named("ctaMask").when(&[M::MulticastCluster32b])
}
const fn byte_mask() -> Opnd {
    src(Ty::Is(U16)).named("byteMask").braced().when(&[M::CpMask])
}
const fn cp_size(values: &'static [i64]) -> Opnd {
    imm(Ty::Is(U32)).named("cp-size").values(values)
}
const fn src_size() -> Opnd {
    src(Ty::Is(U32)).named("src-size").range(0, 16)
}
const fn ignore_src() -> Opnd {
    p_in().named("ignore-src").reg()
}
/// The address that replaces the one in the tensor map (PTX ISA 9.4, section 9.7.10.28.5.2).
const fn new_address() -> Opnd {
    src(Ty::Is(U64)).named("gAddrToOverride").when(&[M::OverrideGlobalAddress])
}
/// Sizes of the dimensions, in place of those in the tensor map.
pub const fn new_sizes() -> Opnd {
    src(Ty::Is(B16)).named("tensorSizeToOverride").count(Count::Table(COORDS))
}
/// Strides of all dimensions but the first: their low words.
pub const fn new_strides() -> Opnd {
    static STRIDES: &[(M, u8)] = &[(M::D3, 2), (M::D4, 3), (M::D5, 4)];
    src(Ty::Is(B32)).named("tensorLowerStrideToOverride").count(Count::Table(STRIDES))
}
/// The bits of the strides beyond 32.
pub const fn upper_strides() -> Opnd {
    src(Ty::Is(B16)).named("tensorUpperStrideToOverride")
}
/// The map of a tensor: a generic address, or a variable in global memory, whatever space the instruction names first.
const fn tensor_map() -> Opnd {
    operand("tensorMap", Role::Var, Ty::Pointer).untyped().space(M::Global)
}
/// `[tensorMap, address, {size}, {c0}]`
const fn tensor_line() -> Opnd {
    static IN: &[Opnd] = &[tensor_map(), new_address(), new_sizes(), src(Ty::Is(S32)).named("tensorCoords").count(Count::Table(COORDS))];
    operand("tensor", Role::Group(IN), Ty::Any)
}
/// `[tensorMap, address, {sizes}, {low strides}, high strides, {c0, c1}]`
const fn tensor_shape() -> Opnd {
    static IN: &[Opnd] = &[
        tensor_map(), new_address(), new_sizes(), new_strides(), upper_strides(),
        src(Ty::Is(S32)).named("tensorCoords").count(Count::Table(COORDS)),
    ];
    operand("tensor", Role::Group(IN), Ty::Any)
}
/// `[tensorMap, {c0, c1}]`
pub const fn tensor() -> Opnd {
    static IN: &[Opnd] = &[tensor_map(), new_address(), src(Ty::Is(S32)).named("tensorCoords").count(Count::Table(COORDS))];
    operand("tensor", Role::Group(IN), Ty::Any)
}
/// `[tensorMap, {column, row0, row1, row2, row3}]`
const fn tensor4() -> Opnd {
    static IN: &[Opnd] = &[tensor_map(), new_address(), src(Ty::Is(S32)).named("tensorCoords").count(Count::Exactly(5))];
    operand("tensor", Role::Group(IN), Ty::Any)
}
const fn offsets() -> Opnd {
    src(Ty::Is(U16)).named("im2colInfo").count(Count::Table(OFFSETS))
}
const fn halo() -> Opnd {
    src(Ty::Is(U16)).named("im2colInfo").count(Count::Exactly(2))
}

pub static ASYNC: Rows = rows("9.7.9.25.3", &[
    form(&[one(M::Async), one(M::Ca), req(&SHARED), one(M::Global), opt(&HINT), opt(&PREFETCH)], &[at("dst", M::Shared), at("src", M::Global), cp_size(&[4, 8, 16]), policy()]).fixed(1).ptx(7, 0).sm(80).only(CP_ASYNC),
    form(&[one(M::Async), one(M::Cg), req(&SHARED), one(M::Global), opt(&HINT), opt(&PREFETCH)], &[at("dst", M::Shared), at("src", M::Global), cp_size(&[16]), policy()]).fixed(1).ptx(7, 0).sm(80).only(CP_ASYNC),
    form(&[one(M::Async), one(M::Ca), req(&SHARED), one(M::Global), opt(&HINT), opt(&PREFETCH)], &[at("dst", M::Shared), at("src", M::Global), cp_size(&[4, 8, 16]), src_size(), policy()]).fixed(1).ptx(7, 0).sm(80).only(CP_ASYNC).rules(&[Rule::CopySourceSize]),
    form(&[one(M::Async), one(M::Cg), req(&SHARED), one(M::Global), opt(&HINT), opt(&PREFETCH)], &[at("dst", M::Shared), at("src", M::Global), cp_size(&[16]), src_size(), policy()]).fixed(1).ptx(7, 0).sm(80).only(CP_ASYNC).rules(&[Rule::CopySourceSize]),
    form(&[one(M::Async), one(M::Ca), req(&SHARED), one(M::Global), opt(&HINT), opt(&PREFETCH)], &[at("dst", M::Shared), at("src", M::Global), cp_size(&[4, 8, 16]), ignore_src(), policy()]).fixed(1).ptx(7, 5).sm(80).only(CP_ASYNC),
    form(&[one(M::Async), one(M::Cg), req(&SHARED), one(M::Global), opt(&HINT), opt(&PREFETCH)], &[at("dst", M::Shared), at("src", M::Global), cp_size(&[16]), ignore_src(), policy()]).fixed(1).ptx(7, 5).sm(80).only(CP_ASYNC),
    form(&[one(M::Async), one(M::CommitGroup)],            &[]).fixed(2).ptx(7, 0).sm(80),
    form(&[one(M::Async), one(M::WaitGroup)],              &[imm(Ty::Is(U32)).named("N")]).fixed(2).ptx(7, 0).sm(80),
    form(&[one(M::Async), one(M::WaitAll)],                &[]).fixed(2).ptx(7, 0).sm(80),
]);
/// ptxas takes `.shared::cta` here from the first version on; the manual says 7.8.
static CP_ASYNC: &[Need] = &[m(M::SharedCta, 7, 0, 80), m(M::L2CacheHint, 7, 4, 80), m(M::L2B64, 7, 4, 80), m(M::L2B128, 7, 4, 80), m(M::L2B256, 7, 4, 80)];

pub static ARRIVE: Rows = rows("9.7.13.15.15", &[
    form(&[one(M::Async), one(M::Mbarrier), one(M::Arrive), opt(&OPT_NOINC), opt(&SHARED), T.of(&[B64])], &[addr()]).fixed(3).ptx(7, 0).sm(80).only(&[m(M::SharedCta, 7, 8, 80)]),
]);

/// From one CTA of a cluster to another.
static CLUSTER_SCOPE: Class = Class::new("scope", &[M::Cta, M::Cluster]);
/// Where ordered copies reach other CTAs.
static ORDERED: &[Target] = &[Target::arch(90), Target::family(100), Target::family(110)];
pub static BULK: Rows = rows("9.7.9.25.4.1", &[
    form(&[one(M::Async), one(M::Bulk), opt(&WEAK93), one(M::SharedCta), one(M::Global), one(M::MbarrierCompleteTxBytes), opt(&HINT), opt(&REPORT)], &[at("dstMem", M::SharedCta), at("srcMem", M::Global), size(), mbar(), policy()]).fixed(2).ptx(8, 6).sm(90).only(&[m(M::Weak, 9, 3, 90)]),
    form(&[one(M::Async), one(M::Bulk), one(M::Relaxed), req(&SCOPE), one(M::SharedCta), one(M::Global), one(M::MbarrierCompleteTxBytes), opt(&HINT), opt(&REPORT), T.of(&[B128])], &[at("dstMem", M::SharedCta), at("srcMem", M::Global), size(), mbar(), policy()]).fixed(2).ptx(9, 3).sm(90),
    form(&[one(M::Async), one(M::Bulk), one(M::SharedCta), one(M::Global), one(M::MbarrierCompleteTxBytes), opt(&HINT), one(M::IgnoreOob)], &[at("dstMem", M::SharedCta), at("srcMem", M::Global), size(), src(Ty::Is(U32)).named("ignoreBytesLeft").range(0, 15), src(Ty::Is(U32)).named("ignoreBytesRight").range(0, 15), mbar(), policy()]).fixed(2).ptx(9, 2).sm(90),
    form(&[one(M::Async), one(M::Bulk), opt(&WEAK93), one(M::SharedCluster), one(M::Global), one(M::MbarrierCompleteTxBytes), opt(&MULTICAST), opt(&HINT), opt(&REPORT)], &[at("dstMem", M::SharedCluster), at("srcMem", M::Global), size(), at("mbar", M::SharedCluster), cta_mask(), cta_mask32(), policy()]).fixed(2).ptx(8, 0).sm(90).only(&[m(M::Weak, 9, 3, 90)]),
    form(&[one(M::Async), one(M::Bulk), one(M::Relaxed), req(&SCOPE), one(M::SharedCluster), one(M::Global), one(M::MbarrierCompleteTxBytes), opt(&MULTICAST), opt(&HINT), opt(&REPORT), T.of(&[B128])], &[at("dstMem", M::SharedCluster), at("srcMem", M::Global), size(), at("mbar", M::SharedCluster), cta_mask(), cta_mask32(), policy()]).fixed(2).ptx(9, 3).targets(ORDERED),
    form(&[one(M::Async), one(M::Bulk), opt(&WEAK93), one(M::SharedCluster), one(M::SharedCta), one(M::MbarrierCompleteTxBytes)], &[at("dstMem", M::SharedCluster), at("srcMem", M::SharedCta), size(), at("mbar", M::SharedCluster)]).fixed(2).ptx(8, 0).sm(90).only(&[m(M::Weak, 9, 3, 90)]),
    form(&[one(M::Async), one(M::Bulk), one(M::Relaxed), req(&CLUSTER_SCOPE), one(M::SharedCluster), one(M::SharedCta), one(M::MbarrierCompleteTxBytes), T.of(&[B128])], &[at("dstMem", M::SharedCluster), at("srcMem", M::SharedCta), size(), at("mbar", M::SharedCluster)]).fixed(2).ptx(9, 3).sm(90),
    form(&[one(M::Async), one(M::Bulk), opt(&WEAK93), one(M::Global), one(M::SharedCta), one(M::BulkGroup), opt(&HINT), opt(&CP_MASK)], &[at("dstMem", M::Global), at("srcMem", M::SharedCta), size(), policy(), byte_mask()]).fixed(2).ptx(8, 0).sm(90).only(&[m(M::Weak, 9, 3, 90), m(M::CpMask, 8, 6, 100)]),
    form(&[one(M::Async), one(M::Bulk), one(M::Relaxed), req(&SCOPE), one(M::Global), one(M::SharedCta), one(M::BulkGroup), opt(&HINT), opt(&CP_MASK), T.of(&[B128])], &[at("dstMem", M::Global), at("srcMem", M::SharedCta), size(), policy(), byte_mask()]).fixed(2).ptx(9, 3).sm(90).only(&[m(M::CpMask, 8, 6, 100)]),
]);
pub static BULK_PREFETCH: Rows = rows("9.7.9.25.4.3", &[
    form(&[one(M::Async), one(M::Bulk), one(M::Prefetch), one(M::L2), one(M::Global), opt(&HINT)], &[at("srcMem", M::Global), size(), policy()]).fixed(3).ptx(8, 0).sm(90),
    form(&[one(M::Async), one(M::Bulk), one(M::Prefetch), one(M::L2), one(M::Global), one(M::L2EvictLast)], &[at("srcMem", M::Global), size()]).fixed(3).ptx(9, 4).targets(F107),
]);
pub static BULK_GROUPS: Rows = rows("9.7.9.27.2", &[
    form(&[one(M::Async), one(M::Bulk), one(M::CommitGroup)],          &[]).fixed(3).ptx(8, 0).sm(90),
    form(&[one(M::Async), one(M::Bulk), one(M::WaitGroup), opt(&READ)], &[imm(Ty::Is(U32)).named("N")]).fixed(3).ptx(8, 0).sm(90),
]);

macro_rules! reduce_rows {
    // to the shared memory of another CTA
    (cluster: $($op:expr => $types:expr;)*) => { &[$(
        form(&[one(M::Reduce), one(M::Async), one(M::Bulk), one(M::Relaxed), req(&CLUSTER_SCOPE), one(M::SharedCluster), one(M::SharedCta), one(M::MbarrierCompleteTxBytes), $op, T.of($types)],
             &[at("dstMem", M::SharedCluster), at("srcMem", M::SharedCta), size(), at("mbar", M::SharedCluster)]).fixed(3).ptx(9, 3).sm(90),
        form(&[one(M::Reduce), one(M::Async), one(M::Bulk), one(M::SharedCluster), one(M::SharedCta), one(M::MbarrierCompleteTxBytes), $op, T.of($types)],
             &[at("dstMem", M::SharedCluster), at("srcMem", M::SharedCta), size(), at("mbar", M::SharedCluster)]).fixed(3).ptx(8, 0).sm(90),
    )*] };
    // to global memory
    (global: $($op:expr $(, $noftz:expr)? => $types:expr;)*) => { &[$(
        form(&[one(M::Reduce), one(M::Async), one(M::Bulk), one(M::Relaxed), req(&SCOPE), one(M::Global), one(M::SharedCta), one(M::BulkGroup), opt(&HINT), $op, $($noftz,)? T.of($types)],
             &[at("dstMem", M::Global), at("srcMem", M::SharedCta), size(), policy()]).fixed(3).ptx(9, 3).sm(90),
        form(&[one(M::Reduce), one(M::Async), one(M::Bulk), one(M::Global), one(M::SharedCta), one(M::BulkGroup), opt(&HINT), $op, $($noftz,)? T.of($types)],
             &[at("dstMem", M::Global), at("srcMem", M::SharedCta), size(), policy()]).fixed(3).ptx(8, 0).sm(90),
    )*] };
    // to all replicas of multicast global memory
    (multimem: $($op:expr $(, $noftz:expr)? => $types:expr;)*) => { &[$(
        form(&[one(M::Cp), one(M::Reduce), one(M::Async), one(M::Bulk), one(M::Relaxed), req(&SCOPE), one(M::Global), one(M::SharedCta), one(M::BulkGroup), $op, $($noftz,)? T.of($types)],
             &[at("dstMem", M::Global), at("srcMem", M::SharedCta), size()]).fixed(4).ptx(9, 3).sm(90),
        form(&[one(M::Cp), one(M::Reduce), one(M::Async), one(M::Bulk), one(M::Global), one(M::SharedCta), one(M::BulkGroup), $op, $($noftz,)? T.of($types)],
             &[at("dstMem", M::Global), at("srcMem", M::SharedCta), size()]).fixed(4).ptx(9, 1).sm(90),
    )*] };
}
pub static REDUCE_CLUSTER: Rows = rows("9.7.9.25.4.2", reduce_rows! { cluster:
    one(M::Add) => &[U32, S32, U64];
    req(&MIN_MAX) => &[U32, S32];
    req(&INC_DEC) => &[U32];
    req(&BIT_OP) => &[B32];
});
pub static REDUCE_GLOBAL: Rows = rows("9.7.9.25.4.2", reduce_rows! { global:
    one(M::Add) => &[U32, S32, U64, F32, F64];
    one(M::Add), one(M::Noftz) => &[F16, Bf16];
    req(&MIN_MAX) => &[U32, S32, U64, S64, F16, Bf16];
    req(&INC_DEC) => &[U32];
    req(&BIT_OP) => &[B32, B64];
});
pub static MULTIMEM_BULK: Rows = rows("9.7.9.26", &[
    form(&[one(M::Cp), one(M::Async), one(M::Bulk), opt(&WEAK93), one(M::Global), one(M::SharedCta), one(M::BulkGroup), opt(&CP_MASK)], &[at("dstMem", M::Global), at("srcMem", M::SharedCta), size(), byte_mask()]).fixed(3).ptx(9, 1).sm(90).only(&[m(M::Weak, 9, 3, 90), m(M::CpMask, 9, 1, 100)]),
    form(&[one(M::Cp), one(M::Async), one(M::Bulk), one(M::Relaxed), req(&SCOPE), one(M::Global), one(M::SharedCta), one(M::BulkGroup), opt(&CP_MASK), T.of(&[B128])], &[at("dstMem", M::Global), at("srcMem", M::SharedCta), size(), byte_mask()]).fixed(3).ptx(9, 3).sm(90).only(&[m(M::CpMask, 9, 1, 100)]),
]);
pub static MULTIMEM_REDUCE: Rows = rows("9.7.9.27", reduce_rows! { multimem:
    one(M::Add) => &[U32, S32, U64, F32, F64];
    one(M::Add), one(M::Noftz) => &[F16, Bf16];
    req(&MIN_MAX) => &[U32, S32, U64, S64, F16, Bf16];
    req(&INC_DEC) => &[U32];
    req(&BIT_OP) => &[B32, B64];
});

/// What `.cta_group` and `.im2col::w::128` need.
static LOADS: &[Need] = &[need_on(Word::Mod(M::CtaGroup1), (8, 6), F100), need_on(Word::Mod(M::CtaGroup2), (8, 6), F100), need_on(Word::Mod(M::Im2colW128), (8, 6), F100)];
/// Sums of `.f32` that keep subnormal numbers.
pub static REDUCE_NOFTZ: Rows = rows("9.7.9.25.4.2", &[
    form(&[one(M::Reduce), one(M::Async), one(M::Bulk), one(M::Global), one(M::SharedCta), one(M::BulkGroup), opt(&HINT), one(M::Add), one(M::Noftz), T.of(&[F32])],
         &[at("dstMem", M::Global), at("srcMem", M::SharedCta), size(), policy()]).fixed(3).ptx(9, 4).sm(90),
]);
pub static MULTIMEM_NOFTZ: Rows = rows("9.7.9.27", &[
    form(&[one(M::Cp), one(M::Reduce), one(M::Async), one(M::Bulk), one(M::Global), one(M::SharedCta), one(M::BulkGroup), one(M::Add), one(M::Noftz), T.of(&[F32])],
         &[at("dstMem", M::Global), at("srcMem", M::SharedCta), size()]).fixed(4).ptx(9, 4).sm(90),
]);
pub static TENSOR: Rows = rows("9.7.9.27.1.2", &[
    // global -> shared::cta
    form(&[one(M::Async), one(M::Bulk), one(M::Tensor), req(&DIM), one(M::SharedCta), one(M::Global), opt(&TILE), one(M::MbarrierCompleteTxBytes), opt(&CTA_GROUP), opt(&HINT), opt(&REPORT), opt(&ADDRESS)],           &[at("dstMem", M::SharedCta), tensor(), mbar(), policy()]).fixed(3).ptx(8, 6).sm(90).only(LOADS),
    form(&[one(M::Async), one(M::Bulk), one(M::Tensor), one(M::D1), one(M::SharedCta), one(M::Global), opt(&TILE), one(M::MbarrierCompleteTxBytes), opt(&CTA_GROUP), opt(&HINT), opt(&REPORT), one(M::OverrideGlobalAddress), one(M::OverrideGlobalDim)],           &[at("dstMem", M::SharedCta), tensor_line(), mbar(), policy()]).fixed(3).ptx(9, 4).targets(F107).only(LOADS),
    form(&[one(M::Async), one(M::Bulk), one(M::Tensor), req(&DIM2), one(M::SharedCta), one(M::Global), opt(&TILE), one(M::MbarrierCompleteTxBytes), opt(&CTA_GROUP), opt(&HINT), opt(&REPORT), one(M::OverrideGlobalAddress), one(M::OverrideGlobalDimStride)],           &[at("dstMem", M::SharedCta), tensor_shape(), mbar(), policy()]).fixed(3).ptx(9, 4).targets(F107).only(LOADS),
    form(&[one(M::Async), one(M::Bulk), one(M::Tensor), one(M::D2), one(M::SharedCta), one(M::Global), one(M::TileGather4), one(M::MbarrierCompleteTxBytes), opt(&CTA_GROUP), opt(&HINT), opt(&REPORT), opt(&ADDRESS)], &[at("dstMem", M::SharedCta), tensor4(), mbar(), policy()]).fixed(3).ptx(8, 6).sm(100).only(LOADS),
    form(&[one(M::Async), one(M::Bulk), one(M::Tensor), req(&DIM3), one(M::SharedCta), one(M::Global), one(M::Im2col), one(M::MbarrierCompleteTxBytes), opt(&CTA_GROUP), opt(&HINT), opt(&REPORT), opt(&ADDRESS)],     &[at("dstMem", M::SharedCta), tensor(), mbar(), offsets(), policy()]).fixed(3).ptx(8, 6).sm(90).only(LOADS),
    form(&[one(M::Async), one(M::Bulk), one(M::Tensor), req(&DIM3), one(M::SharedCta), one(M::Global), req(&IM2COL_W), one(M::MbarrierCompleteTxBytes), opt(&CTA_GROUP), opt(&HINT), opt(&REPORT), opt(&ADDRESS)],     &[at("dstMem", M::SharedCta), tensor(), mbar(), halo(), policy()]).fixed(3).ptx(8, 6).sm(100).only(LOADS),
    // global -> shared::cluster
    form(&[one(M::Async), one(M::Bulk), one(M::Tensor), req(&DIM), one(M::SharedCluster), one(M::Global), opt(&TILE), one(M::MbarrierCompleteTxBytes), opt(&MULTICAST), opt(&CTA_GROUP), opt(&HINT), opt(&REPORT), opt(&ADDRESS)],           &[at("dstMem", M::SharedCluster), tensor(), at("mbar", M::SharedCluster), cta_mask(), cta_mask32(), policy()]).fixed(3).ptx(8, 0).sm(90).only(LOADS),
    form(&[one(M::Async), one(M::Bulk), one(M::Tensor), one(M::D1), one(M::SharedCluster), one(M::Global), opt(&TILE), one(M::MbarrierCompleteTxBytes), opt(&MULTICAST32), opt(&CTA_GROUP), opt(&HINT), opt(&REPORT), one(M::OverrideGlobalAddress), one(M::OverrideGlobalDim)],           &[at("dstMem", M::SharedCluster), tensor_line(), at("mbar", M::SharedCluster), cta_mask(), cta_mask32(), policy()]).fixed(3).ptx(9, 4).targets(F107).only(LOADS),
    form(&[one(M::Async), one(M::Bulk), one(M::Tensor), req(&DIM2), one(M::SharedCluster), one(M::Global), opt(&TILE), one(M::MbarrierCompleteTxBytes), opt(&MULTICAST32), opt(&CTA_GROUP), opt(&HINT), opt(&REPORT), one(M::OverrideGlobalAddress), one(M::OverrideGlobalDimStride)],           &[at("dstMem", M::SharedCluster), tensor_shape(), at("mbar", M::SharedCluster), cta_mask(), cta_mask32(), policy()]).fixed(3).ptx(9, 4).targets(F107).only(LOADS),
    form(&[one(M::Async), one(M::Bulk), one(M::Tensor), one(M::D2), one(M::SharedCluster), one(M::Global), one(M::TileGather4), one(M::MbarrierCompleteTxBytes), opt(&MULTICAST), opt(&CTA_GROUP), opt(&HINT), opt(&REPORT), opt(&ADDRESS)], &[at("dstMem", M::SharedCluster), tensor4(), at("mbar", M::SharedCluster), cta_mask(), cta_mask32(), policy()]).fixed(3).ptx(8, 6).targets(F100).only(LOADS),
    form(&[one(M::Async), one(M::Bulk), one(M::Tensor), req(&DIM3), one(M::SharedCluster), one(M::Global), one(M::Im2col), one(M::MbarrierCompleteTxBytes), opt(&MULTICAST), opt(&CTA_GROUP), opt(&HINT), opt(&REPORT), opt(&ADDRESS)],     &[at("dstMem", M::SharedCluster), tensor(), at("mbar", M::SharedCluster), offsets(), cta_mask(), cta_mask32(), policy()]).fixed(3).ptx(8, 0).sm(90).only(LOADS),
    form(&[one(M::Async), one(M::Bulk), one(M::Tensor), req(&DIM3), one(M::SharedCluster), one(M::Global), req(&IM2COL_W), one(M::MbarrierCompleteTxBytes), opt(&MULTICAST), opt(&CTA_GROUP), opt(&HINT), opt(&REPORT), opt(&ADDRESS)],     &[at("dstMem", M::SharedCluster), tensor(), at("mbar", M::SharedCluster), halo(), cta_mask(), cta_mask32(), policy()]).fixed(3).ptx(8, 6).targets(F100).only(LOADS),
    // shared::cta -> global
    form(&[one(M::Async), one(M::Bulk), one(M::Tensor), req(&DIM), one(M::Global), one(M::SharedCta), opt(&SCATTER_TILE), one(M::BulkGroup), opt(&HINT), opt(&ADDRESS)],   &[tensor(), at("srcMem", M::SharedCta), policy()]).fixed(3).ptx(8, 0).sm(90),
    form(&[one(M::Async), one(M::Bulk), one(M::Tensor), one(M::D1), one(M::Global), one(M::SharedCta), opt(&SCATTER_TILE), one(M::BulkGroup), opt(&HINT), one(M::OverrideGlobalAddress), one(M::OverrideGlobalDim)],   &[tensor_line(), at("srcMem", M::SharedCta), policy()]).fixed(3).ptx(9, 4).targets(F107),
    form(&[one(M::Async), one(M::Bulk), one(M::Tensor), req(&DIM2), one(M::Global), one(M::SharedCta), opt(&SCATTER_TILE), one(M::BulkGroup), opt(&HINT), one(M::OverrideGlobalAddress), one(M::OverrideGlobalDimStride)],   &[tensor_shape(), at("srcMem", M::SharedCta), policy()]).fixed(3).ptx(9, 4).targets(F107),
    form(&[one(M::Async), one(M::Bulk), one(M::Tensor), one(M::D2), one(M::Global), one(M::SharedCta), one(M::TileScatter4), one(M::BulkGroup), opt(&HINT), opt(&ADDRESS)], &[tensor4(), at("srcMem", M::SharedCta), policy()]).fixed(3).ptx(8, 6).targets(F100),
    form(&[one(M::Async), one(M::Bulk), one(M::Tensor), req(&DIM3), one(M::Global), one(M::SharedCta), req(&NO_OFFSETS), one(M::BulkGroup), opt(&HINT), opt(&ADDRESS)], &[tensor(), at("srcMem", M::SharedCta), policy()]).fixed(3).ptx(8, 0).sm(90),
]);
pub static TENSOR_REDUCE: Rows = rows("9.7.9.27.1.3", &[
    form(&[one(M::Reduce), one(M::Async), one(M::Bulk), one(M::Tensor), req(&DIM), one(M::Global), one(M::SharedCta), req(&RED_OP), opt(&SCATTER_TILE), one(M::BulkGroup), opt(&HINT), opt(&ADDRESS)],   &[tensor(), at("srcMem", M::SharedCta), policy()]).fixed(4).ptx(8, 0).sm(90),
    form(&[one(M::Reduce), one(M::Async), one(M::Bulk), one(M::Tensor), one(M::D1), one(M::Global), one(M::SharedCta), req(&RED_OP), opt(&SCATTER_TILE), one(M::BulkGroup), opt(&HINT), one(M::OverrideGlobalAddress), one(M::OverrideGlobalDim)],   &[tensor_line(), at("srcMem", M::SharedCta), policy()]).fixed(4).ptx(9, 4).targets(F107),
    form(&[one(M::Reduce), one(M::Async), one(M::Bulk), one(M::Tensor), req(&DIM2), one(M::Global), one(M::SharedCta), req(&RED_OP), opt(&SCATTER_TILE), one(M::BulkGroup), opt(&HINT), one(M::OverrideGlobalAddress), one(M::OverrideGlobalDimStride)],   &[tensor_shape(), at("srcMem", M::SharedCta), policy()]).fixed(4).ptx(9, 4).targets(F107),
    // not in the manual; ptxas takes it
    form(&[one(M::Reduce), one(M::Async), one(M::Bulk), one(M::Tensor), one(M::D2), one(M::Global), one(M::SharedCta), req(&RED_OP), one(M::TileScatter4), one(M::BulkGroup), opt(&HINT), opt(&ADDRESS)], &[tensor4(), at("srcMem", M::SharedCta), policy()]).fixed(4).ptx(8, 6).targets(F100),
    form(&[one(M::Reduce), one(M::Async), one(M::Bulk), one(M::Tensor), req(&DIM3), one(M::Global), one(M::SharedCta), req(&RED_OP), req(&NO_OFFSETS), one(M::BulkGroup), opt(&HINT), opt(&ADDRESS)], &[tensor(), at("srcMem", M::SharedCta), policy()]).fixed(4).ptx(8, 0).sm(90),
]);
pub static TENSOR_PREFETCH: Rows = rows("9.7.9.27.1.4", &[
    form(&[one(M::Async), one(M::Bulk), one(M::Prefetch), one(M::Tensor), req(&DIM), one(M::L2), one(M::Global), opt(&TILE), opt(&HINT), opt(&ADDRESS)],           &[tensor(), policy()]).fixed(4).ptx(8, 0).sm(90),
    form(&[one(M::Async), one(M::Bulk), one(M::Prefetch), one(M::Tensor), one(M::D1), one(M::L2), one(M::Global), opt(&TILE), opt(&HINT), one(M::OverrideGlobalAddress), one(M::OverrideGlobalDim)],           &[tensor_line(), policy()]).fixed(4).ptx(9, 4).targets(F107),
    form(&[one(M::Async), one(M::Bulk), one(M::Prefetch), one(M::Tensor), req(&DIM2), one(M::L2), one(M::Global), opt(&TILE), opt(&HINT), one(M::OverrideGlobalAddress), one(M::OverrideGlobalDimStride)],           &[tensor_shape(), policy()]).fixed(4).ptx(9, 4).targets(F107),
    form(&[one(M::Async), one(M::Bulk), one(M::Prefetch), one(M::Tensor), one(M::D2), one(M::L2), one(M::Global), one(M::TileGather4), opt(&HINT), opt(&ADDRESS)], &[tensor4(), policy()]).fixed(4).ptx(8, 6).targets(F100),
    form(&[one(M::Async), one(M::Bulk), one(M::Prefetch), one(M::Tensor), req(&DIM3), one(M::L2), one(M::Global), one(M::Im2col), opt(&HINT), opt(&ADDRESS)],      &[tensor(), offsets(), policy()]).fixed(4).ptx(8, 0).sm(90),
    form(&[one(M::Async), one(M::Bulk), one(M::Prefetch), one(M::Tensor), req(&DIM3), one(M::L2), one(M::Global), req(&IM2COL_W), opt(&HINT), opt(&ADDRESS)],      &[tensor(), halo(), policy()]).fixed(4).ptx(8, 6).targets(F100),
    form(&[one(M::Async), one(M::Bulk), one(M::Prefetch), one(M::Tensor), req(&DIM), one(M::L2), one(M::Global), opt(&TILE), one(M::L2EvictLast), opt(&ADDRESS)],  &[tensor()]).fixed(4).ptx(9, 4).targets(F107),
    form(&[one(M::Async), one(M::Bulk), one(M::Prefetch), one(M::Tensor), one(M::D1), one(M::L2), one(M::Global), opt(&TILE), one(M::L2EvictLast), one(M::OverrideGlobalAddress), one(M::OverrideGlobalDim)],  &[tensor_line()]).fixed(4).ptx(9, 4).targets(F107),
    form(&[one(M::Async), one(M::Bulk), one(M::Prefetch), one(M::Tensor), req(&DIM2), one(M::L2), one(M::Global), opt(&TILE), one(M::L2EvictLast), one(M::OverrideGlobalAddress), one(M::OverrideGlobalDimStride)],  &[tensor_shape()]).fixed(4).ptx(9, 4).targets(F107),
]);

pub static CP: Op = joined!("cp", Memory, "Copy, reduce or prefetch asynchronously; commit and wait for groups of copies.",
    ASYNC, ARRIVE, BULK, BULK_PREFETCH, BULK_GROUPS, REDUCE_CLUSTER, REDUCE_GLOBAL, REDUCE_NOFTZ, TENSOR, TENSOR_REDUCE, TENSOR_PREFETCH);
