//! Data movement, except conversion and the asynchronous copies (manual, section 9.7.9).

use super::class::*;
use crate::{Effect::*, Mod as M, Ty::*, Type::*, Var::*, *};

pub static MOV: Op = joined!("mov", Pure, "Move a value or an address; pack and unpack vectors.",
    rows("9.7.9.3", &[
        form(&[T.of(&[Pred, U16, U32, U64, S16, S32, S64, F32, F64])], &[d(T), a(T).special()]).rules(&[Rule::MovOperand]),
    ]),
    rows("9.7.9.4", &[
        form(&[T.of(&[B16, B32, B64, B128])], &[d(T).count(Count::Free), a(T).count(Count::Free).special()])
            .rules(&[Rule::MovOperand]).only(&[t(B128, 8, 3, 70)]),
        // not in the manual; ptxas copies element by element
        form(&[req(&VEC4), T.of(&[B16, B32, B64, U16, U32, U64, S16, S32, S64, F32, F64])],
             &[d(T).count(Count::ByVec), a(T).count(Count::ByVec).special()]).rules(&[Rule::NarrowVector]),
    ]));

static SHFL_MODE: Class = Class::new("shuffle mode", &[M::Up, M::Down, M::Bfly, M::Idx]);
pub static SHFL: Op = joined!("shfl", Warp, "Exchange values between the lanes of a warp.",
    rows("9.7.9.6", &[
        form(&[one(M::Sync), req(&SHFL_MODE), T.of(&[B32])],
             &[d(T).pair(Is(Pred)), a(T), src(Is(B32)).named("b"), src(Is(B32)).named("c"), src(Is(U32)).named("membermask")]).ptx(6, 0).sm(30),
    ]),
    rows("9.7.9.5", &[
        form(&[req(&SHFL_MODE), T.of(&[B32])],
             &[d(T).pair(Is(Pred)), a(T), src(Is(B32)).named("b"), src(Is(B32)).named("c")]).ptx(3, 0).sm(30).until(6, 4, 70),
    ]));

static PRMT_MODE: Class = Class::new("permutation", &[M::F4e, M::B4e, M::Rc8, M::Ecl, M::Ecr, M::Rc16]);
pub static PRMT: Op = op("prmt", "9.7.9.7", Pure, "Select bytes from a register pair.", &[
    form(&[T.of(&[B32]), opt(&PRMT_MODE)], &[d(T), a(T), b(T), c(T)]).ptx(2, 0).sm(20),
]);

/// The policy that `.L2::cache_hint` asks for.
const POLICY: Opnd = src(Is(U64)).named("cache-policy").when(&[M::L2CacheHint]);
const LD_D: Opnd = d(T).count(Count::ByVec).wider();
const LD_A: Opnd = addr().unified();
const ASYNC_B: Opnd = a(T).count(Count::ByVec).named("b");
/// Forms without `.v2` take no braces around a single value.
const ASYNC_ONE: Opnd = a(T).named("b");
static ASYNC_DATA: &[Type] = &[B8, B16, B32, B64, U8, U16, U32, U64, S8, S16, S32, S64, F32, F64];
const ST_B: Opnd = a(T).count(Count::ByVec).wider().named("b");
static LD_COP: Class = Class::new("cache operator", &[M::Ca, M::Cg, M::Cs, M::Lu, M::Cv]);
static NC_COP: Class = Class::new("cache operator", &[M::Ca, M::Cg, M::Cs]);
static ST_COP: Class = Class::new("cache operator", &[M::Wb, M::Cg, M::Cs, M::Wt]);
static VOLATILE_SPACE: Class = Class::new("state space", &[M::Global, M::Local, M::Shared, M::SharedCta, M::SharedCluster]);
static MMIO_SPACE: Class = Class::new("state space", &[M::Global]);
/// What binds width, space and hints of every load and store.
const ACCESS: &[Rule] = &[Rule::VectorWidth, Rule::GlobalHint, Rule::WideEviction];
const WINDOW_ACCESS: &[Rule] = &[Rule::VectorWidth, Rule::GlobalHint, Rule::WideEviction, Rule::ParamWindow];
/// Needs of words that `ld` and `st` share.
const NEEDS: &[Need] = &[
    t(B128, 8, 3, 70),
    m(M::Weak, 6, 0, 70), m(M::ParamEntry, 8, 3, 0), m(M::ParamFunc, 8, 3, 0), m(M::Volatile, 9, 1, 0).with(&[Word::Mod(M::Local)]),
    m(M::Ca, 2, 0, 20), m(M::Cg, 2, 0, 20), m(M::Cs, 2, 0, 20), m(M::Lu, 2, 0, 20), m(M::Cv, 2, 0, 20), m(M::Wb, 2, 0, 20), m(M::Wt, 2, 0, 20),
    m(M::L1EvictNormal, 7, 4, 70), m(M::L1EvictUnchanged, 7, 4, 70), m(M::L1EvictFirst, 7, 4, 70), m(M::L1EvictLast, 7, 4, 70), m(M::L1NoAllocate, 7, 4, 70),
    m(M::L2EvictNormal, 8, 8, 100), m(M::L2EvictFirst, 8, 8, 100), m(M::L2EvictLast, 8, 8, 100),
    m(M::L2B64, 7, 4, 75), m(M::L2B128, 7, 4, 75), m(M::L2B256, 7, 4, 80),
    m(M::V8, 8, 8, 100).with(&[Word::Type(B32)]), m(M::V8, 8, 8, 100).with(&[Word::Type(U32)]), m(M::V8, 8, 8, 100).with(&[Word::Type(S32)]),
    m(M::V8, 8, 8, 100).with(&[Word::Type(F32)]), m(M::V4, 8, 8, 100).with(&[Word::Type(B64)]), m(M::V4, 8, 8, 100).with(&[Word::Type(U64)]),
    m(M::V4, 8, 8, 100).with(&[Word::Type(S64)]), m(M::V4, 8, 8, 100).with(&[Word::Type(F64)]),
];
/// What `ld.proxy::readonly` moves: all but `.b128`.
static READONLY: &[Type] = &[B8, B16, B32, B64, U8, U16, U32, U64, S8, S16, S32, S64, F32, F64];
static LD_SEM: Class = Class::new("memory ordering", &[M::Relaxed, M::Acquire]);
static ST_SEM: Class = Class::new("memory ordering", &[M::Relaxed, M::Release]);

pub static LD: Op = joined!("ld", Memory, "Load from a state space.",
    rows("9.7.9.8", &[
        form(&[opt(&WEAK), opt(&LD_SPACE), opt(&LD_COP), opt(&HINT), opt(&PREFETCH), opt(&VEC), T.of(DATA)],
             &[LD_D, LD_A, POLICY]).only(NEEDS).rules(WINDOW_ACCESS),
        form(&[opt(&WEAK), opt(&GLOBAL), req(&L1_EVICT), opt(&L2_EVICT), opt(&HINT), opt(&PREFETCH), opt(&VEC), T.of(DATA)],
             &[LD_D, LD_A, POLICY]).ptx(7, 4).sm(70).only(NEEDS).rules(ACCESS),
        form(&[opt(&WEAK), opt(&GLOBAL), req(&L2_EVICT), opt(&HINT), opt(&PREFETCH), opt(&VEC), T.of(DATA)],
             &[LD_D, LD_A, POLICY]).ptx(8, 8).sm(100).only(NEEDS).rules(ACCESS), // not in the manual
        form(&[one(M::ProxyReadonly), opt(&GLOBAL), opt(&L2_EVICT), opt(&VEC), T.of(READONLY)],
             &[LD_D, LD_A]).ptx(9, 4).sm(90).only(NEEDS).rules(ACCESS),
        form(&[one(M::ProxyReadonly), one(M::Global), one(M::Nc), opt(&L2_EVICT), opt(&VEC), T.of(READONLY)],
             &[LD_D, LD_A]).ptx(9, 4).sm(90).only(NEEDS).rules(ACCESS),
        form(&[one(M::Volatile), opt(&VOLATILE_SPACE), opt(&PREFETCH), opt(&VEC), T.of(DATA)],
             &[LD_D, addr()]).ptx(1, 1).only(NEEDS).rules(ACCESS),
        form(&[req(&LD_SEM), req(&SCOPE), opt(&ATOM_SPACE), opt(&L1_EVICT), opt(&L2_EVICT), opt(&HINT), opt(&PREFETCH), opt(&VEC), T.of(DATA)],
             &[LD_D, addr(), POLICY]).ptx(6, 0).sm(70).only(NEEDS).rules(ACCESS),
        form(&[one(M::Mmio), one(M::Relaxed), one(M::Sys), opt(&MMIO_SPACE), T.of(DATA)], &[LD_D, addr()]).ptx(8, 2).sm(70).only(NEEDS),
        form(&[one(M::Mmio), one(M::Acquire), one(M::Sys), opt(&MMIO_SPACE), T.of(DATA)], &[LD_D, addr()]).ptx(9, 3).sm(70).only(NEEDS),
        form(&[opt(&WEAK), opt(&GLOBAL), req(&LD_COP), req(&L2_EVICT), opt(&HINT), opt(&PREFETCH), opt(&VEC), T.of(DATA)],
             &[LD_D, LD_A, POLICY]).ptx(8, 8).sm(100).only(NEEDS).rules(ACCESS), // not in the manual
    ]),
    rows("9.7.9.9", &[
        form(&[one(M::Global), opt(&NC_COP), one(M::Nc), opt(&HINT), opt(&PREFETCH), opt(&VEC), T.of(DATA)],
             &[LD_D, addr(), POLICY]).ptx(3, 1).sm(32).only(NEEDS).rules(ACCESS),
        form(&[one(M::Global), one(M::Nc), req(&L1_EVICT), opt(&L2_EVICT), opt(&HINT), opt(&PREFETCH), opt(&VEC), T.of(DATA)],
             &[LD_D, addr(), POLICY]).ptx(7, 4).sm(70).only(NEEDS).rules(ACCESS),
        form(&[one(M::Global), one(M::Nc), req(&L2_EVICT), opt(&HINT), opt(&PREFETCH), opt(&VEC), T.of(DATA)],
             &[LD_D, addr(), POLICY]).ptx(8, 8).sm(100).only(NEEDS).rules(ACCESS),
    ]));
pub static LDU: Op = op("ldu", "9.7.9.10", Memory, "Load read-only data that all lanes read from the same address.", &[
    form(&[opt(&GLOBAL), opt(&VEC4), T.of(DATA)], &[LD_D, addr()]).ptx(2, 0).sm(20).only(&[t(B128, 8, 3, 70)]).rules(&[Rule::NarrowVector]),
]);
pub static ST: Op = joined!("st", Memory, "Store to a state space.",
    rows("9.7.9.11", &[
        form(&[opt(&WEAK), opt(&ST_SPACE), opt(&ST_COP), opt(&HINT), opt(&VEC), T.of(DATA)],
             &[addr(), ST_B, POLICY]).only(NEEDS).rules(WINDOW_ACCESS),
        form(&[opt(&WEAK), opt(&GLOBAL), req(&L1_EVICT), opt(&L2_EVICT), opt(&HINT), opt(&VEC), T.of(DATA)],
             &[addr(), ST_B, POLICY]).ptx(7, 4).sm(70).only(NEEDS).rules(ACCESS),
        form(&[opt(&WEAK), opt(&GLOBAL), req(&L2_EVICT), opt(&HINT), opt(&VEC), T.of(DATA)],
             &[addr(), ST_B, POLICY]).ptx(8, 8).sm(100).only(NEEDS).rules(ACCESS), // not in the manual
        form(&[one(M::Volatile), opt(&VOLATILE_SPACE), opt(&VEC), T.of(DATA)],
             &[addr(), ST_B]).ptx(1, 1).only(NEEDS).rules(ACCESS),
        form(&[req(&ST_SEM), req(&SCOPE), opt(&ATOM_SPACE), opt(&L1_EVICT), opt(&L2_EVICT), opt(&HINT), opt(&VEC), T.of(DATA)],
             &[addr(), ST_B, POLICY]).ptx(6, 0).sm(70).only(NEEDS).rules(ACCESS),
        form(&[one(M::Mmio), one(M::Relaxed), one(M::Sys), opt(&MMIO_SPACE), T.of(DATA)], &[addr(), ST_B]).ptx(8, 2).sm(70).only(NEEDS),
        form(&[one(M::Mmio), one(M::Release), one(M::Sys), opt(&MMIO_SPACE), T.of(DATA)], &[addr(), ST_B]).ptx(9, 3).sm(70).only(NEEDS),
        form(&[opt(&WEAK), opt(&GLOBAL), req(&ST_COP), req(&L2_EVICT), opt(&HINT), opt(&VEC), T.of(DATA)],
             &[addr(), ST_B, POLICY]).ptx(8, 8).sm(100).only(NEEDS).rules(ACCESS), // not in the manual
    ]),
    rows("9.7.9.12", &[
        form(&[one(M::Async), opt(&WEAK), opt(&SHARED_CLUSTER), one(M::MbarrierCompleteTxBytes), opt(&VEC4), T.of(&[B32, B64, B128, U32, U64, S32, S64, F32, F64])],
             &[addr(), ASYNC_B, addr().named("mbar").space(M::SharedCluster)]).fixed(1).ptx(8, 1).sm(90).rules(&[Rule::NarrowVector]).only(ASYNC128),
        form(&[one(M::Async), opt(&CLUSTER), opt(&SHARED_CLUSTER), one(M::MbarrierCompleteTxBytes), opt(&VEC4), T.of(&[B32, B64, U32, U64, S32, S64, F32, F64])],
             &[addr(), ASYNC_B, addr().named("mbar").space(M::SharedCluster)]).fixed(1).ptx(8, 1).sm(90).rules(&[Rule::NarrowVector]), // not in the manual
        form(&[one(M::Async), one(M::Release), req(&GPU_SYS), opt(&GLOBAL), T.of(ASYNC_DATA)], &[addr(), ASYNC_ONE]).fixed(1).ptx(8, 7).sm(100),
        form(&[one(M::Async), one(M::Mmio), one(M::Release), one(M::Sys), opt(&GLOBAL), T.of(ASYNC_DATA)], &[addr(), ASYNC_ONE]).fixed(1).ptx(8, 7).sm(100),
        form(&[one(M::Async), opt(&GPU_SYS), opt(&GLOBAL), T.of(ASYNC_DATA)], &[addr(), ASYNC_ONE]).fixed(1).ptx(8, 1).sm(90).only(&[m(M::Global, 8, 7, 100)]), // not in the manual
        form(&[one(M::Async), opt(&WEAK), req(&SHARED_OWN), opt(&COMPLETION), opt(&VEC4), T.of(&[B32, B64, U32, U64, S32, S64, F32, F64])],
             &[addr(), ASYNC_B, addr().named("mbar").space(M::SharedCluster)]).fixed(1).ptx(8, 1).sm(90).rules(&[Rule::NarrowVector]), // not in the manual
    ]),
    rows("9.7.9.13", &[
        form(&[one(M::Bulk), opt(&WEAK), opt(&SHARED_CTA)],
             &[addr(), src(Pointer).named("size").step(8).range(0, 1 << 24), imm(Is(U64)).named("initval").values(&[0])]).fixed(1).ptx(8, 6).sm(100),
    ]));
const ASYNC128: &[Need] = &[t(B128, 9, 2, 90)];
static SHARED_OWN: Class = Class::new("state space", &[M::Shared, M::SharedCta]);
static COMPLETION: Class = Class::new("completion", &[M::MbarrierCompleteTxBytes]);
static CLUSTER: Class = Class::new("scope", &[M::Cluster]);
static GPU_SYS: Class = Class::new("scope", &[M::Gpu, M::Sys]);
static SHARED_CTA: Class = Class::new("state space", &[M::SharedCta]);

static CACHE_LEVEL: Class = Class::new("cache level", &[M::L1, M::L2]);
static PREFETCH_SPACE: Class = Class::new("state space", &[M::Global, M::Local]);
static PREFETCH_EVICT: Class = Class::new("L2 eviction priority", &[M::L2EvictLast, M::L2EvictNormal]);
static TENSORMAP_SPACE: Class = Class::new("state space", &[M::Const, M::Param]);
pub static PREFETCH_: Op = op("prefetch", "9.7.9.15", Memory, "Prefetch a line into a cache.", &[
    form(&[opt(&PREFETCH_SPACE), req(&CACHE_LEVEL)], &[addr()]).ptx(2, 0).sm(20),
    form(&[one(M::Global), req(&PREFETCH_EVICT)],    &[addr()]).ptx(7, 4).sm(80),
    form(&[req(&PREFETCH_EVICT)],                    &[addr()]).ptx(7, 4).sm(80), // not in the manual
    form(&[opt(&GLOBAL), one(M::L1B32), one(M::ValidAddr)], &[addr()]).ptx(9, 4).sm(90),
    form(&[opt(&TENSORMAP_SPACE), one(M::Tensormap)], &[addr()]).ptx(8, 0).sm(90),
]);
pub static PREFETCHU: Op = op("prefetchu", "9.7.9.15", Memory, "Prefetch a line into the uniform cache.", &[
    form(&[one(M::L1)], &[addr()]).ptx(2, 0).sm(20),
]);
pub static APPLYPRIORITY: Op = op("applypriority", "9.7.9.16", Memory, "Change the eviction priority of a cache line.", &[
    form(&[opt(&GLOBAL), one(M::L2EvictNormal)], &[addr(), imm(Is(U32)).named("size").values(&[128])]).ptx(7, 4).sm(80),
    form(&[one(M::Async), one(M::Bulk), opt(&GLOBAL), one(M::BulkGroup), one(M::L2EvictNormal)], &[addr(), super::copy::size()])
        .fixed(2).ptx(9, 4).targets(&[Target::family(107)]),
    form(&[one(M::Async), one(M::Bulk), one(M::Tensor), req(&super::copy::DIM), opt(&GLOBAL), one(M::BulkGroup), one(M::L2EvictNormal)], &[super::copy::tensor()])
        .fixed(3).ptx(9, 4).targets(&[Target::family(107)]),
]);
pub static DISCARD: Op = op("discard", "9.7.9.17", Memory, "Discard a cache line without writing it back.", &[
    form(&[opt(&GLOBAL), one(M::L2)], &[addr(), imm(Is(U32)).named("size").values(&[128])]).ptx(7, 4).sm(80),
]);
static PRIMARY: Class = Class::new("primary priority", &[M::L2EvictLast, M::L2EvictNormal, M::L2EvictFirst, M::L2EvictUnchanged]);
static SECONDARY: Class = Class::new("secondary priority", &[M::L2EvictFirst, M::L2EvictUnchanged]);
pub static CREATEPOLICY: Op = op("createpolicy", "9.7.9.18", Effect::Machine, "Make a cache policy for `.L2::cache_hint`.", &[
    form(&[one(M::Range), opt(&GLOBAL), req(&PRIMARY), opt(&SECONDARY), T.of(&[B64])],
         &[dst(Is(U64)).named("cache-policy"), addr(), src(Is(U32)).named("primary-size"), src(Is(U32)).named("total-size")]).fixed(1).ptx(7, 4).sm(80).rules(&[Rule::PolicyRange]),
    form(&[one(M::Range), one(M::Fabric), req(&PRIMARY), opt(&SECONDARY), T.of(&[B64])],
         &[dst(Is(U64)).named("cache-policy"), super::fabric::handle(), src(Is(U32)).named("primary-size"), src(Is(U32)).named("total-size")]).fixed(1).ptx(9, 4).sm(100).rules(&[Rule::PolicyRange]),
    form(&[one(M::Fractional), req(&PRIMARY), opt(&SECONDARY), T.of(&[B64])],
         &[dst(Is(U64)).named("cache-policy"), src(Is(F32)).named("fraction").opt()]).fixed(1).ptx(7, 4).sm(80).rules(&[Rule::PolicyFraction]),
    form(&[one(M::Cvt), one(M::L2), T.of(&[B64])], &[dst(Is(U64)).named("cache-policy"), src(Is(U64)).named("access-property")]).fixed(1).ptx(7, 4).sm(80),
]);
static WINDOW: Class = Class::new(
    "state space",
    &[M::Const, M::Global, M::Local, M::Shared, M::SharedCta, M::SharedCluster, M::Param, M::ParamEntry],
);
const WINDOW_NEEDS: &[Need] = &[
    m(M::Const, 3, 1, 0), m(M::Param, 7, 7, 70), m(M::ParamEntry, 8, 3, 70)
];
pub static ISSPACEP: Op = op("isspacep", "9.7.9.19", Effect::Machine, "Whether a generic address lies in a space.", &[
    form(&[req(&WINDOW)], &[p_out(), src(Pointer)]).ptx(2, 0).sm(20).only(WINDOW_NEEDS),
]);
pub static CVTA: Op = op("cvta", "9.7.9.20", Effect::Machine, "Convert an address to or from the generic space.", &[
    form(&[req(&WINDOW), T.of(POINTER)],             &[d(T).named("p"), operand("a", Role::Var, Of(T))]).ptx(2, 0).sm(20).only(WINDOW_NEEDS).rules(&[Rule::GenericWidth]),
    form(&[one(M::To), req(&WINDOW), T.of(POINTER)], &[d(T).named("p"), a(T)]).fixed(1).ptx(2, 0).sm(20).only(WINDOW_NEEDS).rules(&[Rule::GenericWidth]),
]);
pub static MAPA: Op = op("mapa", "9.7.9.23", Effect::Machine, "The address of the same shared variable in another CTA of the cluster.", &[
    form(&[opt(&SHARED_CLUSTER), T.of(POINTER)], &[d(T), operand("a", Role::Var, Of(T)), src(Is(U32)).named("b")]).ptx(7, 8).sm(90),
]);
pub static GETCTARANK: Op = op("getctarank", "9.7.9.24", Effect::Machine, "The rank of the CTA that a shared address belongs to.", &[
    form(&[opt(&SHARED_CLUSTER), T.of(POINTER)], &[dst(Is(U32)), operand("a", Role::Var, Of(T))]).ptx(7, 8).sm(90),
]);
