//! Atomic operations and reductions (manual, sections 9.7.13.5 to 9.7.13.7).

use super::class::*;
use crate::{Effect::*, Mod as M, Ty::*, Type::*, Var::*, *};

static ATOM_SEM: Class = Class::new("memory ordering", &[M::Relaxed, M::Acquire, M::Release, M::AcqRel]);
static RED_SEM: Class = Class::new("memory ordering", &[M::Relaxed, M::Release]);
static BITWISE: Class = Class::new("operation", &[M::And, M::Or, M::Xor]);
static EXTREME: Class = Class::new("operation", &[M::Min, M::Max]);
static COUNTING: Class = Class::new("operation", &[M::Inc, M::Dec]);
static ADD_MIN_MAX: Class = Class::new("operation", &[M::Add, M::Min, M::Max]);
static NOFTZ: Class = Class::new("subnormals", &[M::Noftz]);
static VEC16: Class = Class::new("vector width", &[M::V2, M::V4, M::V8]);
const POLICY: Opnd = src(Is(U64)).named("cache-policy").when(&[M::L2CacheHint]);
const D: Opnd = d(T).sink();
const B: Opnd = a(T).named("b");
const C: Opnd = a(T).named("c");
const VD: Opnd = d(T).count(Count::ByVec).sink();
const VB: Opnd = a(T).count(Count::ByVec).named("b");
const HINTED: &[Rule] = &[Rule::GlobalHint];
/// Scopes, orders and spaces that came later, and types of some operations.
macro_rules! needs {
    ($($type:expr),*) => { &[
        m(M::Relaxed, 6, 0, 70), m(M::Acquire, 6, 0, 70), m(M::Release, 6, 0, 70), m(M::AcqRel, 6, 0, 70),
        m(M::Cta, 5, 0, 60), m(M::Gpu, 5, 0, 60), m(M::Sys, 5, 0, 60), m(M::Shared, 1, 2, 12), $($type),*
    ] };
}
const NEEDS: &[Need] = needs!();
const NEEDS32: &[Need] = needs!(m(M::Noftz, 9, 4, 90));
const IN_SHARED: &[Word] = &[Word::Mod(M::Shared)];
const NEEDS_BITS: &[Need] = needs!(t(B64, 3, 1, 32));
const NEEDS_SWAP: &[Need] = needs!(t(B64, 1, 2, 12), t(B64, 2, 0, 20).with(IN_SHARED));
const NEEDS_SUM: &[Need] = needs!(t(U64, 1, 2, 12), t(U64, 2, 0, 20).with(IN_SHARED), t(F32, 2, 0, 20), t(F64, 5, 0, 60));
const NEEDS_EXTREME: &[Need] = needs!(t(U64, 3, 1, 32), t(S64, 3, 1, 32));

pub static ATOM: Op = op("atom", "9.7.13.5", Memory, "Atomically read, modify and write memory; return the old value.", &[
    form(&[opt(&ATOM_SEM), opt(&SCOPE), opt(&ATOM_SPACE), req(&BITWISE), opt(&HINT), T.of(BITS32)], &[D, addr(), B, POLICY]).ptx(1, 1).sm(11).only(NEEDS_BITS).rules(HINTED),
    form(&[opt(&ATOM_SEM), opt(&SCOPE), opt(&ATOM_SPACE), one(M::Exch), opt(&HINT), T.of(BITS32)], &[D, addr(), B, POLICY]).ptx(1, 1).sm(11).only(NEEDS_SWAP).rules(HINTED),
    form(&[opt(&ATOM_SEM), opt(&SCOPE), opt(&ATOM_SPACE), one(M::Cas), T.of(BITS32)], &[D, addr(), B, C]).ptx(1, 1).sm(11).only(NEEDS_SWAP).rules(HINTED),
    form(&[opt(&ATOM_SEM), opt(&SCOPE), opt(&ATOM_SPACE), one(M::Add), opt(&HINT), T.of(&[U32, S32, U64, F32, F64])], &[D, addr(), B, POLICY]).ptx(1, 1).sm(11).only(NEEDS_SUM).rules(HINTED),
    form(&[opt(&ATOM_SEM), opt(&SCOPE), opt(&ATOM_SPACE), one(M::Add), one(M::Noftz), opt(&HINT), T.of(&[F32])], &[D, addr(), B, POLICY]).ptx(9, 4).sm(90).only(NEEDS).rules(HINTED),
    form(&[opt(&ATOM_SEM), opt(&SCOPE), opt(&ATOM_SPACE), req(&COUNTING), opt(&HINT), T.of(&[U32])], &[D, addr(), B, POLICY]).ptx(1, 1).sm(11).only(NEEDS).rules(HINTED),
    form(&[opt(&ATOM_SEM), opt(&SCOPE), opt(&ATOM_SPACE), req(&EXTREME), opt(&HINT), T.of(&[U32, S32, U64, S64])], &[D, addr(), B, POLICY]).ptx(1, 1).sm(11).only(NEEDS_EXTREME).rules(HINTED),
    form(&[opt(&ATOM_SEM), opt(&SCOPE), opt(&ATOM_SPACE), one(M::Cas), T.of(&[B16])], &[D, addr(), B, C]).ptx(6, 3).sm(70).only(NEEDS).rules(HINTED),
    form(&[opt(&ATOM_SEM), opt(&SCOPE), opt(&ATOM_SPACE), one(M::Cas), T.of(&[B128])], &[D, addr(), B, C]).ptx(8, 3).sm(90).only(NEEDS).rules(HINTED),
    form(&[opt(&ATOM_SEM), opt(&SCOPE), opt(&ATOM_SPACE), one(M::Exch), opt(&HINT), T.of(&[B128])], &[D, addr(), B, POLICY]).ptx(8, 3).sm(90).only(NEEDS).rules(HINTED),
    form(&[opt(&ATOM_SEM), opt(&SCOPE), opt(&ATOM_SPACE), one(M::Add), one(M::Noftz), opt(&HINT), T.of(&[F16x2])], &[D, addr(), B, POLICY]).ptx(6, 2).sm(60).only(NEEDS).rules(HINTED),
    form(&[opt(&ATOM_SEM), opt(&SCOPE), opt(&ATOM_SPACE), one(M::Add), one(M::Noftz), opt(&HINT), T.of(&[F16])], &[D, addr(), B, POLICY]).ptx(6, 3).sm(70).only(NEEDS).rules(HINTED),
    form(&[opt(&ATOM_SEM), opt(&SCOPE), opt(&ATOM_SPACE), one(M::Add), one(M::Noftz), opt(&HINT), T.of(&[Bf16, Bf16x2])], &[D, addr(), B, POLICY]).ptx(7, 8).sm(90).only(NEEDS).rules(HINTED),
    form(&[opt(&ATOM_SEM), opt(&SCOPE), opt(&GLOBAL), one(M::Add), opt(&NOFTZ), opt(&HINT), req(&VEC4), T.of(&[F32])], &[VD, addr(), VB, POLICY]).ptx(8, 1).sm(90).only(NEEDS32).rules(HINTED),
    form(&[opt(&ATOM_SEM), opt(&SCOPE), opt(&GLOBAL), req(&ADD_MIN_MAX), one(M::Noftz), opt(&HINT), req(&VEC16), T.of(&[F16, Bf16])], &[VD, addr(), VB, POLICY]).ptx(8, 1).sm(90).only(NEEDS).rules(HINTED),
    form(&[opt(&ATOM_SEM), opt(&SCOPE), opt(&GLOBAL), req(&ADD_MIN_MAX), one(M::Noftz), opt(&HINT), req(&VEC4), T.of(&[F16x2, Bf16x2])], &[VD, addr(), VB, POLICY]).ptx(8, 1).sm(90).only(NEEDS).rules(HINTED),
]);
pub static RED: Op = joined!("red", Memory, "Atomically read, modify and write memory.",
    rows("9.7.13.6", &[
        form(&[opt(&RED_SEM), opt(&SCOPE), opt(&ATOM_SPACE), req(&BITWISE), opt(&HINT), T.of(BITS32)], &[addr(), B, POLICY]).ptx(1, 2).sm(11).only(NEEDS_BITS).rules(HINTED),
        form(&[opt(&RED_SEM), opt(&SCOPE), opt(&ATOM_SPACE), one(M::Add), opt(&HINT), T.of(&[U32, S32, U64, F32, F64])], &[addr(), B, POLICY]).ptx(1, 2).sm(11).only(NEEDS_SUM).rules(HINTED),
        form(&[opt(&RED_SEM), opt(&SCOPE), opt(&ATOM_SPACE), one(M::Add), one(M::Noftz), opt(&HINT), T.of(&[F32])], &[addr(), B, POLICY]).ptx(9, 4).sm(90).only(NEEDS).rules(HINTED),
        form(&[opt(&RED_SEM), opt(&SCOPE), opt(&ATOM_SPACE), req(&COUNTING), opt(&HINT), T.of(&[U32])], &[addr(), B, POLICY]).ptx(1, 2).sm(11).only(NEEDS).rules(HINTED),
        form(&[opt(&RED_SEM), opt(&SCOPE), opt(&ATOM_SPACE), req(&EXTREME), opt(&HINT), T.of(&[U32, S32, U64, S64])], &[addr(), B, POLICY]).ptx(1, 2).sm(11).only(NEEDS_EXTREME).rules(HINTED),
        form(&[opt(&RED_SEM), opt(&SCOPE), opt(&ATOM_SPACE), one(M::Add), one(M::Noftz), opt(&HINT), T.of(&[F16x2])], &[addr(), B, POLICY]).ptx(6, 2).sm(60).only(NEEDS).rules(HINTED),
        form(&[opt(&RED_SEM), opt(&SCOPE), opt(&ATOM_SPACE), one(M::Add), one(M::Noftz), opt(&HINT), T.of(&[F16])], &[addr(), B, POLICY]).ptx(6, 3).sm(70).only(NEEDS).rules(HINTED),
        form(&[opt(&RED_SEM), opt(&SCOPE), opt(&ATOM_SPACE), one(M::Add), one(M::Noftz), opt(&HINT), T.of(&[Bf16, Bf16x2])], &[addr(), B, POLICY]).ptx(7, 8).sm(90).only(NEEDS).rules(HINTED),
        form(&[opt(&RED_SEM), opt(&SCOPE), opt(&GLOBAL), one(M::Add), opt(&NOFTZ), opt(&HINT), req(&VEC4), T.of(&[F32])], &[addr(), VB, POLICY]).ptx(8, 1).sm(90).only(NEEDS32).rules(HINTED),
        form(&[opt(&RED_SEM), opt(&SCOPE), opt(&GLOBAL), req(&ADD_MIN_MAX), one(M::Noftz), opt(&HINT), req(&VEC16), T.of(&[F16, Bf16])], &[addr(), VB, POLICY]).ptx(8, 1).sm(90).only(NEEDS).rules(HINTED),
        form(&[opt(&RED_SEM), opt(&SCOPE), opt(&GLOBAL), req(&ADD_MIN_MAX), one(M::Noftz), opt(&HINT), req(&VEC4), T.of(&[F16x2, Bf16x2])], &[addr(), VB, POLICY]).ptx(8, 1).sm(90).only(NEEDS).rules(HINTED),
    ]),
    rows("9.7.13.7", &[
        form(&[one(M::Async), one(M::Relaxed), one(M::Cluster), opt(&SHARED_CLUSTER), one(M::MbarrierCompleteTxBytes), req(&COUNTING), T.of(&[U32])], &[addr(), B, MBAR]).fixed(1).ptx(8, 1).sm(90),
        form(&[one(M::Async), one(M::Relaxed), one(M::Cluster), opt(&SHARED_CLUSTER), one(M::MbarrierCompleteTxBytes), req(&EXTREME), T.of(INT32)], &[addr(), B, MBAR]).fixed(1).ptx(8, 1).sm(90),
        form(&[one(M::Async), one(M::Relaxed), one(M::Cluster), opt(&SHARED_CLUSTER), one(M::MbarrierCompleteTxBytes), req(&BITWISE), T.of(&[B32])], &[addr(), B, MBAR]).fixed(1).ptx(8, 1).sm(90),
        form(&[one(M::Async), one(M::Relaxed), one(M::Cluster), opt(&SHARED_CLUSTER), one(M::MbarrierCompleteTxBytes), one(M::Add), T.of(&[U32, S32, U64])], &[addr(), B, MBAR]).fixed(1).ptx(8, 1).sm(90),
        form(&[one(M::Async), one(M::Relaxed), one(M::Cluster), opt(&SHARED_CLUSTER), one(M::MbarrierCompleteTxBytes), one(M::Add), T.of(&[S64])], &[addr(), B, MBAR]).fixed(1).ptx(8, 1).sm(90), // not in the manual
        form(&[one(M::Async), one(M::Release), req(&GPU_SYS), opt(&GLOBAL), one(M::Add), T.of(&[U32, S32, U64, S64])], &[addr(), B]).fixed(1).ptx(8, 7).sm(100),
        form(&[one(M::Async), one(M::Mmio), one(M::Release), one(M::Sys), opt(&GLOBAL), one(M::Add), T.of(&[U32, S32, U64, S64])], &[addr(), B]).fixed(1).ptx(8, 7).sm(100),
        // in global memory ptxas takes every operation, and `.relaxed`
        form(&[one(M::Async), one(M::Relaxed), req(&GPU_SYS), opt(&GLOBAL), one(M::Add), T.of(&[U32, S32, U64, S64])], &[addr(), B]).fixed(1).ptx(8, 1).sm(90).only(RELEASE_GLOBAL), // not in the manual
        form(&[one(M::Async), req(&RED_SEM), req(&GPU_SYS), opt(&GLOBAL), req(&COUNTING), T.of(&[U32])], &[addr(), B]).fixed(1).ptx(8, 1).sm(90).only(RELEASE_GLOBAL), // not in the manual
        form(&[one(M::Async), req(&RED_SEM), req(&GPU_SYS), opt(&GLOBAL), req(&EXTREME), T.of(INT32)], &[addr(), B]).fixed(1).ptx(8, 1).sm(90).only(RELEASE_GLOBAL), // not in the manual
        form(&[one(M::Async), req(&RED_SEM), req(&GPU_SYS), opt(&GLOBAL), req(&BITWISE), T.of(&[B32])], &[addr(), src(Int(T)).named("b")]).fixed(1).ptx(8, 1).sm(90).only(RELEASE_GLOBAL), // not in the manual
    ]));
const MBAR: Opnd = addr().named("mbar").space(M::SharedCluster);
const RELEASE_GLOBAL: &[Need] = &[m(M::Release, 8, 7, 100), m(M::Global, 8, 7, 100)];
static GPU_SYS: Class = Class::new("scope", &[M::Gpu, M::Sys]);
