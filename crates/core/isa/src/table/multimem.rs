//! Accesses to multicast memory (manual, section 9.7.9.14), and the bulk copies to it (sections 9.7.9.26 and 9.7.9.27).
//!
//! A vector of packed or narrow floats has 32, 64 or 128 bits in total; integers and `.f64` are scalar.

use super::{class::*, copy::{MULTIMEM_BULK, MULTIMEM_NOFTZ, MULTIMEM_REDUCE}, target::*};
use crate::{Effect::Memory, Mod as M, Type::*, Var::T, *};

static ACQUIRE: Class = Class::new("memory ordering", &[M::Relaxed, M::Acquire]);
static RELEASE: Class = Class::new("memory ordering", &[M::Relaxed, M::Release]);
static MIN_MAX: Class = Class::new("operation", &[M::Min, M::Max]);
static BIT_OP: Class = Class::new("operation", &[M::And, M::Or, M::Xor]);
static ACC_F32: Class = Class::new("accumulation", &[M::AccF32]);
static ACC_F16: Class = Class::new("accumulation", &[M::AccF16]);
static V2_V4_V8: Class = Class::new("vector width", &[M::V2, M::V4, M::V8]);
static V4_V8: Class = Class::new("vector width", &[M::V4, M::V8]);

static HALVES: &[Type] = &[F16, Bf16];
static PAIRS: &[Type] = &[F16x2, Bf16x2];
static BYTES: &[Type] = &[E5m2, E4m3];
static BYTE_PAIRS: &[Type] = &[E5m2x2, E4m3x2];
static BYTE_QUADS: &[Type] = &[E5m2x4, E4m3x4];

/// What 8-bit floats and accumulation in halves need.
static F8: &[Target] = &[Target::family(100), Target::family(110), Target::arch(120), Target::arch(121)];
static ACC: &[Need] = &[m(M::AccF32, 8, 2, 90), need_on(Word::Mod(M::AccF16), (8, 6), F8)];

static BRACED: &[Rule] = &[Rule::BracedVector];

const fn value() -> Opnd {
    a(T).named("b").count(Count::ByVec)
}

/// The three ways to order an access: not at all, `.weak`, with a scope; then operation, accumulation, vector and types.
macro_rules! loads {
    ($($op:expr, [$($acc:expr)?] [$($vec:expr)?] $types:expr, ($major:literal, $minor:literal) $targets:expr;)*) => { &[$(
        form(&[one(M::LdReduce), opt(&GLOBAL), $op, $($acc,)? $($vec,)? T.of($types)],                            &[d(T).count(Count::ByVec), addr()]).fixed(1).ptx($major, $minor).sm(90).targets($targets).only(ACC).rules(BRACED),
        form(&[one(M::LdReduce), one(M::Weak), opt(&GLOBAL), $op, $($acc,)? $($vec,)? T.of($types)],              &[d(T).count(Count::ByVec), addr()]).fixed(1).ptx($major, $minor).sm(90).targets($targets).only(ACC).rules(BRACED),
        form(&[one(M::LdReduce), req(&ACQUIRE), req(&SCOPE), opt(&GLOBAL), $op, $($acc,)? $($vec,)? T.of($types)], &[d(T).count(Count::ByVec), addr()]).fixed(1).ptx($major, $minor).sm(90).targets($targets).only(ACC).rules(BRACED),
    )*] };
}
static LD_REDUCE: Rows = rows("9.7.9.14", loads! {
    one(M::Add),       [] [] &[U32, S32, U64], (8, 1) &[];
    req(&MIN_MAX),     [] [] &[U32, S32, U64, S64], (8, 1) &[];
    req(&BIT_OP),      [] [] &[B32, B64], (8, 1) &[];
    one(M::Add),       [] [opt(&VEC4)] &[F32], (8, 1) &[];
    one(M::Add),       [] [] &[F64], (8, 1) &[];
    one(M::Add),       [opt(&ACC_F32)] [req(&V2_V4_V8)] HALVES, (8, 1) &[];
    one(M::Add),       [opt(&ACC_F32)] [opt(&VEC4)] PAIRS, (8, 1) &[];
    req(&MIN_MAX),     [] [req(&V2_V4_V8)] HALVES, (8, 1) &[];
    req(&MIN_MAX),     [] [opt(&VEC4)] PAIRS, (8, 1) &[];
    one(M::Add),       [opt(&ACC_F16)] [req(&V4_V8)] BYTES, (8, 6) F8;
    one(M::Add),       [opt(&ACC_F16)] [req(&V2_V4_V8)] BYTE_PAIRS, (8, 6) F8;
    one(M::Add),       [opt(&ACC_F16)] [opt(&VEC4)] BYTE_QUADS, (8, 6) F8;
    req(&MIN_MAX),     [] [req(&V4_V8)] BYTES, (8, 6) F8;
    req(&MIN_MAX),     [] [req(&V2_V4_V8)] BYTE_PAIRS, (8, 6) F8;
    req(&MIN_MAX),     [] [opt(&VEC4)] BYTE_QUADS, (8, 6) F8;
});

macro_rules! stores {
    ($([$($vec:expr)?] $types:expr, ($major:literal, $minor:literal) $targets:expr;)*) => { &[$(
        form(&[one(M::St), opt(&GLOBAL), $($vec,)? T.of($types)],                            &[addr(), value()]).fixed(1).ptx($major, $minor).sm(90).targets($targets).rules(BRACED),
        form(&[one(M::St), one(M::Weak), opt(&GLOBAL), $($vec,)? T.of($types)],              &[addr(), value()]).fixed(1).ptx($major, $minor).sm(90).targets($targets).rules(BRACED),
        form(&[one(M::St), req(&RELEASE), req(&SCOPE), opt(&GLOBAL), $($vec,)? T.of($types)], &[addr(), value()]).fixed(1).ptx($major, $minor).sm(90).targets($targets).rules(BRACED),
    )*] };
}
static ST: Rows = rows("9.7.9.14", stores! {
    [] &[B32, B64, U32, S32, U64, S64, F64], (8, 1) &[];
    [opt(&VEC4)] &[F32], (8, 1) &[];
    [req(&V2_V4_V8)] HALVES, (8, 1) &[];
    [opt(&VEC4)] PAIRS, (8, 1) &[];
    [req(&V4_V8)] BYTES, (8, 6) F8;
    [req(&V2_V4_V8)] BYTE_PAIRS, (8, 6) F8;
    [opt(&VEC4)] BYTE_QUADS, (8, 6) F8;
});

macro_rules! reductions {
    ($($op:expr, [$($vec:expr)?] $types:expr;)*) => { &[$(
        form(&[one(M::Red), opt(&GLOBAL), $op, $($vec,)? T.of($types)],                            &[addr(), value()]).fixed(1).ptx(8, 1).sm(90).rules(BRACED),
        form(&[one(M::Red), req(&RELEASE), req(&SCOPE), opt(&GLOBAL), $op, $($vec,)? T.of($types)], &[addr(), value()]).fixed(1).ptx(8, 1).sm(90).rules(BRACED),
    )*] };
}
static RED: Rows = rows("9.7.9.14", reductions! {
    one(M::Add),   [] &[U32, S32, U64, F64];
    req(&MIN_MAX), [] &[U32, S32, U64, S64];
    req(&BIT_OP),  [] &[B32, B64];
    one(M::Add),   [opt(&VEC4)] &[F32];
    one(M::Add),   [req(&V2_V4_V8)] HALVES;
    one(M::Add),   [opt(&VEC4)] PAIRS;
});

/// Ordered asynchronous stores and reductions (PTX ISA 9.3, sections 9.7.10.13 and 9.7.15.17).
static ASYNC: Rows = rows("9.7.10.13", &[
    form(&[one(M::St), one(M::Async), one(M::Release), req(&GPU_SYS), opt(&GLOBAL), T.of(&[B32, B64, U32, S32, U64, S64, F32, F64])], &[addr(), value()]).fixed(2).ptx(9, 3).sm(100),
    form(&[one(M::Red), one(M::Async), one(M::Release), req(&GPU_SYS), opt(&GLOBAL), one(M::Add), T.of(&[U32, S32, U64])],   &[addr(), value()]).fixed(2).ptx(9, 3).sm(100),
]);
static GPU_SYS: Class = Class::new("scope", &[M::Gpu, M::Sys]);

pub static MULTIMEM: Op = joined!("multimem", Memory, "Load a reduction of, store to, or reduce into the replicas of multicast memory.",
    LD_REDUCE, ST, RED, ASYNC, MULTIMEM_BULK, MULTIMEM_REDUCE, MULTIMEM_NOFTZ);

/// Targets of `tensormap.replace`.
static REPLACE: &[Target] = &[Target::arch(90), Target::family(100), Target::family(110), Target::family(120)];
static REPLACE_SPACE: Class = Class::new("state space", &[M::Global, M::SharedCta]);
static DIMENSION: Class = Class::new("field", &[M::BoxDim, M::GlobalDim, M::ElementStride]);
const fn new_val(ty: Type) -> Opnd {
    src(Ty::Is(ty)).named("new_val")
}
const fn choice(last: i64) -> Opnd {
    imm(Ty::Is(U32)).named("new_val").range(0, last)
}
const fn ord() -> Opnd {
    imm(Ty::Is(U32)).named("ord").range(0, 4)
}
static REPLACE_ROWS: Rows = rows("9.7.9.28", &[
    form(&[one(M::Replace), one(M::Tile), one(M::GlobalAddress), opt(&REPLACE_SPACE), one(M::B1024), T.of(&[B64])],     &[addr(), new_val(B64)]).fixed(1).ptx(8, 3).targets(REPLACE),
    form(&[one(M::Replace), one(M::Tile), one(M::Rank), opt(&REPLACE_SPACE), one(M::B1024), T.of(&[B32])],              &[addr(), new_val(B32)]).fixed(1).ptx(8, 3).targets(REPLACE),
    form(&[one(M::Replace), one(M::Tile), req(&DIMENSION), opt(&REPLACE_SPACE), one(M::B1024), T.of(&[B32])],           &[addr(), ord(), new_val(B32)]).fixed(1).ptx(8, 3).targets(REPLACE),
    form(&[one(M::Replace), one(M::Tile), one(M::GlobalStride), opt(&REPLACE_SPACE), one(M::B1024), T.of(&[B64])],      &[addr(), ord(), new_val(B64)]).fixed(1).ptx(8, 3).targets(REPLACE),
    form(&[one(M::Replace), one(M::Tile), one(M::Elemtype), opt(&REPLACE_SPACE), one(M::B1024), T.of(&[B32])],          &[addr(), choice(15)]).fixed(1).ptx(8, 3).targets(REPLACE).rules(&[Rule::TensorMapValue]),
    form(&[one(M::Replace), one(M::Tile), one(M::InterleaveLayout), opt(&REPLACE_SPACE), one(M::B1024), T.of(&[B32])],  &[addr(), choice(2)]).fixed(1).ptx(8, 3).targets(REPLACE),
    form(&[one(M::Replace), one(M::Tile), one(M::SwizzleMode), opt(&REPLACE_SPACE), one(M::B1024), T.of(&[B32])],       &[addr(), choice(4)]).fixed(1).ptx(8, 3).targets(REPLACE).rules(&[Rule::TensorMapValue]),
    form(&[one(M::Replace), one(M::Tile), one(M::SwizzleAtomicity), opt(&REPLACE_SPACE), one(M::B1024), T.of(&[B32])],  &[addr(), choice(3)]).fixed(1).ptx(8, 6).targets(F100_F120),
    form(&[one(M::Replace), one(M::Tile), one(M::FillMode), opt(&REPLACE_SPACE), one(M::B1024), T.of(&[B32])],          &[addr(), choice(1)]).fixed(1).ptx(8, 3).targets(REPLACE),
]);
static FENCEPROXY: Rows = rows("9.7.13.16", &[
    form(&[one(M::CpFenceproxy), one(M::Global), one(M::SharedCta), one(M::TensormapGeneric), one(M::Release), req(&SCOPE), one(M::Sync), one(M::Aligned)],
         &[addr().named("dst").space(M::Global), addr().named("src").space(M::SharedCta), imm(Ty::Is(U32)).named("size").values(&[128])]).fixed(1).ptx(8, 3).sm(90),
]);
pub static TENSORMAP: Op = joined!("tensormap", Memory, "Change a field of a tensor map; copy a tensor map and fence.", REPLACE_ROWS, FENCEPROXY);

static SHARED_CTA: Class = Class::new("state space", &[M::SharedCta]);
static MULTICAST_ALL: Class = Class::new("multicast", &[M::MulticastClusterAll]);
static FIRST_CTAID: Class = Class::new("coordinate", &[M::GetFirstCtaidX, M::GetFirstCtaidY, M::GetFirstCtaidZ]);
const fn response_register() -> Opnd {
    src(Ty::Is(B128)).named("try_cancel_response").reg()
}
const fn response() -> Opnd {
    response_register().braced()
}
static TRY_CANCEL: Rows = rows("9.7.13.17", &[
    form(&[one(M::TryCancel), one(M::Async), opt(&SHARED_CTA), one(M::MbarrierCompleteTxBytes), opt(&MULTICAST_ALL), T.of(&[B128])], &[addr(), addr().named("mbar")]).fixed(2).ptx(8, 6).sm(100)
        .only(&[need_on(Word::Mod(M::MulticastClusterAll), (8, 6), F100_F120)]),
]);
static QUERY_CANCEL: Rows = rows("9.7.13.18", &[
    form(&[one(M::QueryCancel), one(M::IsCanceled), T.of(&[Pred]), Var::U.of(&[B128])],                  &[p_out(), response_register()]).fixed(2).glued(1).ptx(8, 6).sm(100),
    form(&[one(M::QueryCancel), one(M::GetFirstCtaid), one(M::V4), T.of(&[B32]), Var::U.of(&[B128])],    &[d(T).count(Count::Exactly(4)).sink(), response_register()]).fixed(2).glued(1).ptx(8, 6).sm(100),
    form(&[one(M::QueryCancel), req(&FIRST_CTAID), T.of(&[B32]), Var::U.of(&[B128])],                    &[d(T), response()]).fixed(2).glued(1).ptx(8, 6).sm(100),
]);
pub static CLUSTERLAUNCHCONTROL: Op = joined!("clusterlaunchcontrol", Memory, "Try to cancel the launch of a cluster, and query the result.", TRY_CANCEL, QUERY_CANCEL);
