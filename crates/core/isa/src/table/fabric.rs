//! Fabric instructions: copies, reductions and atomics between shared memory and the memory of other devices
//! (section 9.7.11 of the manual of PTX ISA 9.4).
//!
//! A *handle* names the place: a logical endpoint and an offset, with `.counted::bytes` the offset of a counter too.

use super::{class::{HINT, BITS32}, copy::DIM, target::*};
use crate::{Effect::Memory, Mod as M, Type::*, Var::T, *};

static MULTIMEM: Class = Class::new("multicast", &[M::Multimem]);
static TILE: Class = Class::new("load mode", &[M::Tile]);
static BIT_OP: Class = Class::new("operation", &[M::And, M::Xor, M::Or]);
static MIN_MAX: Class = Class::new("operation", &[M::Min, M::Max]);
static SWAP: Class = Class::new("operation", &[M::Exch, M::Cas]);
static ANY_OP: Class = Class::new("operation", &[M::And, M::Xor, M::Or, M::Add, M::Min, M::Max]);
static FETCHING: Class = Class::new("restriction", &[M::OpRestrictFetching]);
static READS: Class = Class::new("restriction", &[M::SyncRestrictReads, M::SyncRestrictRead]);
static DIM2: Class = Class::new("dimension", &[M::D2, M::D3, M::D4, M::D5]);

const fn endpoint() -> Opnd {
    src(Ty::Is(U32)).named("leId").reg()
}
const fn offset(name: &'static str) -> Opnd {
    src(Ty::Is(U64)).named(name).reg()
}
/// `[leId, dataOff]`
pub const fn handle() -> Opnd {
    static IN: &[Opnd] = &[endpoint(), offset("dataOff")];
    operand("handle", Role::Group(IN), Ty::Any)
}
/// `[leId, dataOff, counterOff]`
const fn counted() -> Opnd {
    static IN: &[Opnd] = &[endpoint(), offset("dataOff"), offset("counterOff")];
    operand("handle", Role::Group(IN), Ty::Any)
}
const fn shared(name: &'static str) -> Opnd {
    addr().named(name).space(M::SharedCta)
}
const fn size() -> Opnd {
    src(Ty::Is(U32)).named("size").step(16)
}
const fn policy() -> Opnd {
    src(Ty::Is(U64)).named("cache-policy").when(&[M::L2CacheHint])
}
const fn byte_mask() -> Opnd {
    src(Ty::Is(B16)).named("bytemask").range(0, 0xffff)
}
const fn members() -> Opnd {
    imm(Ty::Is(U32)).named("membermask").values(&[0xffff_ffff])
}

/// Where 8-bit floats are reduced, and halves in single precision.
static NARROW: &[Target] = &[Target::family(100), Target::family(110), Target::family(120)];

static GET: Rows = rows("9.7.11.5.1", &[
    form(&[one(M::TryGet), one(M::Async), one(M::SharedCta), one(M::MbarrierCompleteTxBytes), one(M::MbarrierReportFabric), opt(&HINT), one(M::Relaxed), one(M::Sys), T.of(&[B128])],
         &[shared("dst"), handle(), size(), shared("bar"), policy()]).fixed(2).ptx(9, 3).sm(100),
]);
static PUT: Rows = rows("9.7.11.5.2", &[
    form(&[one(M::TryPut), one(M::Async), opt(&MULTIMEM), one(M::SharedCta), one(M::MbarrierCompleteTx16B), one(M::MbarrierReportFabric), opt(&HINT), one(M::Relaxed), one(M::Sys), T.of(&[B128])],
         &[handle(), shared("src"), size(), shared("bar"), policy()]).fixed(2).ptx(9, 3).sm(100),
    form(&[one(M::TryPut), one(M::Async), opt(&MULTIMEM), one(M::SharedCta), one(M::MbarrierCompleteTx16B), one(M::MbarrierReportFabric), opt(&HINT), one(M::CpMask), one(M::Relaxed), one(M::Sys), T.of(&[B128])],
         &[handle(), shared("src"), size(), shared("bar"), byte_mask(), policy()]).fixed(2).ptx(9, 3).sm(100),
    form(&[one(M::TryPut), one(M::Async), opt(&MULTIMEM), one(M::SharedCta), one(M::MbarrierCompleteTx16B), one(M::MbarrierReportFabric), one(M::CountedBytes), opt(&HINT), one(M::Relaxed), one(M::Sys), T.of(&[B128])],
         &[counted(), shared("src"), size(), shared("bar"), policy()]).fixed(2).ptx(9, 3).sm(100),
]);

macro_rules! reductions {
    ($($op:expr => $types:expr;)*) => { &[$(
        form(&[one(M::TryRed), one(M::Async), opt(&MULTIMEM), one(M::SharedCta), one(M::MbarrierCompleteTx16B), one(M::MbarrierReportFabric), opt(&HINT), one(M::Relaxed), one(M::Sys), $op, T.of($types)],
             &[handle(), shared("src"), size(), shared("bar"), policy()]).fixed(2).ptx(9, 3).sm(100),
        form(&[one(M::TryRed), one(M::Async), opt(&MULTIMEM), one(M::SharedCta), one(M::MbarrierCompleteTx16B), one(M::MbarrierReportFabric), one(M::CountedBytes), opt(&HINT), one(M::Relaxed), one(M::Sys), $op, T.of($types)],
             &[counted(), shared("src"), size(), shared("bar"), policy()]).fixed(2).ptx(9, 3).sm(100),
    )*] };
}
static RED: Rows = rows("9.7.11.5.3", reductions! {
    req(&BIT_OP) => BITS32;
    req(&MIN_MAX) => &[U32, S32, U64, S64, F16, Bf16];
    one(M::Add) => &[U32, U64, F16, Bf16, F32, F64];
});

macro_rules! pulls {
    ($($op:expr $(, $acc:expr)? => $types:expr, $narrow:expr;)*) => { &[$(
        form(&[one(M::TryPullred), one(M::Async), one(M::Multimem), one(M::SharedCta), one(M::MbarrierCompleteTxBytes), one(M::MbarrierReportFabric), one(M::Relaxed), one(M::Sys), $op, $($acc,)? T.of($types), one(M::Sync)],
             &[shared("dst"), handle(), size(), shared("bar"), members()]).fixed(2).ptx(9, 3).sm(100).targets($narrow),
    )*] };
}
static PULL: Rows = rows("9.7.11.5.4", pulls! {
    req(&BIT_OP) => BITS32, &[];
    req(&MIN_MAX) => &[U32, S32, U64, S64, Bf16, F16], &[];
    req(&MIN_MAX) => &[E4m3, E5m2], NARROW;
    one(M::Add) => &[U32, U64, F16, Bf16, F32], &[];
    one(M::Add), one(M::AccF16) => &[E4m3, E5m2], NARROW;
    one(M::Add), one(M::AccF32) => &[F16, Bf16], NARROW;
});

static GROUPS: Rows = rows("9.7.11.5.5", &[
    form(&[one(M::Submit), opt(&FETCHING)],       &[]).fixed(1).ptx(9, 3).sm(100),
    form(&[one(M::Submit), one(M::CommitGroup)],  &[]).fixed(2).ptx(9, 5).sm(100),
    form(&[one(M::Wait), one(M::SyncRestrictReads)], &[]).fixed(1).ptx(9, 3).sm(100),
    form(&[one(M::Wait), req(&READS)],            &[imm(Ty::Is(U32)).named("N")]).fixed(1).ptx(9, 3).sm(100).only(&[m(M::SyncRestrictRead, 9, 5, 100)]),
]);

/// Where tensors are copied: the tensor map, the handle that replaces its address, its sizes and strides if they are replaced
/// too, and coordinates.
macro_rules! place {
    ([$($counter:expr)?] $($attribute:expr),*) => {{
        static IN: &[Opnd] = &[
            operand("tensorMap", Role::Var, Ty::Pointer), endpoint(), offset("tensorMapOff"), $($counter,)? $($attribute,)*
            src(Ty::Is(S32)).named("tensorCoords").count(Count::Table(super::copy::COORDS)),
        ];
        operand("tensor", Role::Group(IN), Ty::Any)
    }};
}
macro_rules! tensors {
    ($name:ident, $section:literal: $(($($word:expr),*) [$($counter:expr)?] ($($end:expr),*) [$($before:expr)?] [$($after:expr),*];)*) => {
        static $name: Rows = rows($section, &[$(
            form(&[$($word,)* req(&DIM), one(M::SharedCta), opt(&TILE), $($end,)* opt(&HINT), one(M::OverrideGlobalAddress)],
                 &[$($before,)? const { place!([$($counter)?]) }, $($after,)* policy()]).fixed(3).ptx(9, 4).targets(F107),
            form(&[$($word,)* one(M::D1), one(M::SharedCta), opt(&TILE), $($end,)* opt(&HINT), one(M::OverrideGlobalAddress), one(M::OverrideGlobalDim)],
                 &[$($before,)? const { place!([$($counter)?] super::copy::new_sizes()) }, $($after,)* policy()]).fixed(3).ptx(9, 4).targets(F107),
            form(&[$($word,)* req(&DIM2), one(M::SharedCta), opt(&TILE), $($end,)* opt(&HINT), one(M::OverrideGlobalAddress), one(M::OverrideGlobalDimStride)],
                 &[$($before,)? const { place!([$($counter)?] super::copy::new_sizes(), super::copy::new_strides(), super::copy::upper_strides()) }, $($after,)* policy()]).fixed(3).ptx(9, 4).targets(F107),
        )*]);
    };
}
tensors! { GET_TENSOR, "9.7.11.5.7":
    (one(M::TryGet), one(M::Async), one(M::Tensor)) [] (one(M::MbarrierCompleteTxBytes), one(M::MbarrierReportFabric), one(M::Relaxed), one(M::Sys), T.of(&[B128])) [shared("dstMem")] [shared("mbar")];
}
tensors! { PUT_TENSOR, "9.7.11.5.8":
    (one(M::TryPut), one(M::Async), one(M::Tensor), opt(&MULTIMEM)) [] (one(M::MbarrierCompleteTx16B), one(M::MbarrierReportFabric), one(M::Relaxed), one(M::Sys), T.of(&[B128])) [] [shared("src"), size(), shared("mbar")];
    (one(M::TryPut), one(M::Async), one(M::Tensor), opt(&MULTIMEM)) [offset("counterOff")] (one(M::MbarrierCompleteTx16B), one(M::MbarrierReportFabric), one(M::CountedBytes), one(M::Relaxed), one(M::Sys), T.of(&[B128])) [] [shared("src"), size(), shared("mbar")];
}
tensors! { RED_TENSOR, "9.7.11.5.9":
    (one(M::TryRed), one(M::Async), one(M::Tensor), opt(&MULTIMEM)) [] (one(M::MbarrierCompleteTx16B), one(M::MbarrierReportFabric), one(M::Relaxed), one(M::Sys), req(&ANY_OP)) [] [shared("src"), size(), shared("mbar")];
    (one(M::TryRed), one(M::Async), one(M::Tensor), opt(&MULTIMEM)) [offset("counterOff")] (one(M::MbarrierCompleteTx16B), one(M::MbarrierReportFabric), one(M::CountedBytes), one(M::Relaxed), one(M::Sys), req(&ANY_OP)) [] [shared("src"), size(), shared("mbar")];
}

macro_rules! atomics {
    ($($op:expr => $types:expr;)*) => { &[$(
        form(&[one(M::TryAtom), one(M::Async), one(M::SharedCta), one(M::MbarrierCompleteTx16B), one(M::MbarrierReportFabric), opt(&HINT), one(M::Relaxed), one(M::Sys), $op, T.of($types)],
             &[handle(), shared("smem_dst"), shared("smem_src"), shared("mbar"), policy()]).fixed(2).ptx(9, 4).sm(100),
    )*] };
}
static ATOM: Rows = rows("9.7.11.5.10", atomics! {
    req(&BIT_OP) => BITS32;
    req(&SWAP) => &[B32, B64, B128];
    req(&MIN_MAX) => &[U32, U64, F16x2, Bf16x2];
    one(M::Add) => &[U32, U64, F16x2, Bf16x2, F32, F64];
});

pub static FABRIC: Op = joined!("fabric", Memory, "Copy, reduce and swap between shared memory and other devices.",
    GET, PUT, RED, PULL, GROUPS, GET_TENSOR, PUT_TENSOR, RED_TENSOR, ATOM);
