//! Barriers and fences (manual, sections 9.7.13.1 to 9.7.13.4), and instructions that wait for other grids (9.7.13.13).

use super::class::*;
use crate::{Effect::*, Mod as M, Ty::*, Type::*, *};

/// Barrier number and thread count.
const A: Opnd = src(Is(U32)).named("a").range(0, 15);
const B: Opnd = src(Is(U32)).named("b").step(32);
/// Of threads that arrive and do not wait, there are some.
const SOME: Opnd = B.range(32, 0xffff_ffe0);
static CTA: Class = Class::new("scope", &[M::Cta]);
static RED_OP: Class = Class::new("reduction", &[M::And, M::Or]);
const CTA_NEED: &[Need] = &[m(M::Cta, 7, 8, 20)];

pub static BAR: Op = joined!("bar", Warp, "Synchronize the threads of a CTA.",
    rows("9.7.13.1", &[
        form(&[opt(&CTA), one(M::Sync)],                              &[A, B.opt()]).fixed(1).only(CTA_NEED),
        form(&[opt(&CTA), one(M::Arrive)],                            &[A, SOME]).fixed(2).ptx(2, 0).sm(20).only(CTA_NEED),
        form(&[opt(&CTA), one(M::Red), one(M::Popc), Var::T.of(&[U32])], &[d(Var::T), A, p_in()]).fixed(2).ptx(2, 0).sm(20).only(CTA_NEED),
        form(&[opt(&CTA), one(M::Red), one(M::Popc), Var::T.of(&[U32])], &[d(Var::T), A, B, p_in()]).fixed(2).ptx(2, 0).sm(20).only(CTA_NEED),
        form(&[opt(&CTA), one(M::Red), req(&RED_OP), Var::T.of(&[Pred])], &[p_out(), A, p_in()]).fixed(2).ptx(2, 0).sm(20).only(CTA_NEED),
        form(&[opt(&CTA), one(M::Red), req(&RED_OP), Var::T.of(&[Pred])], &[p_out(), A, B, p_in()]).fixed(2).ptx(2, 0).sm(20).only(CTA_NEED),
    ]),
    rows("9.7.13.2", &[
        form(&[one(M::Warp), one(M::Sync)],                           &[src(Is(U32)).named("membermask")]).fixed(1).ptx(6, 0).sm(30),
    ]));
pub static BARRIER: Op = joined!("barrier", Warp, "Synchronize the threads of a CTA or of a cluster.",
    rows("9.7.13.1", &[
        form(&[opt(&CTA), one(M::Sync), opt(&ALIGNED)],               &[A, B.opt()]).fixed(1).ptx(6, 0).sm(30).only(CTA_NEED),
        form(&[opt(&CTA), one(M::Arrive), opt(&ALIGNED)],             &[A, SOME]).fixed(2).ptx(6, 0).sm(30).only(CTA_NEED),
        form(&[opt(&CTA), one(M::Red), one(M::Popc), opt(&ALIGNED), Var::T.of(&[U32])], &[d(Var::T), A, p_in()]).fixed(2).ptx(6, 0).sm(30).only(CTA_NEED),
        form(&[opt(&CTA), one(M::Red), one(M::Popc), opt(&ALIGNED), Var::T.of(&[U32])], &[d(Var::T), A, B, p_in()]).fixed(2).ptx(6, 0).sm(30).only(CTA_NEED),
        form(&[opt(&CTA), one(M::Red), req(&RED_OP), opt(&ALIGNED), Var::T.of(&[Pred])], &[p_out(), A, p_in()]).fixed(2).ptx(6, 0).sm(30).only(CTA_NEED),
        form(&[opt(&CTA), one(M::Red), req(&RED_OP), opt(&ALIGNED), Var::T.of(&[Pred])], &[p_out(), A, B, p_in()]).fixed(2).ptx(6, 0).sm(30).only(CTA_NEED),
    ]),
    rows("9.7.13.3", &[
        form(&[one(M::Cluster), one(M::Arrive), opt(&CLUSTER_SEM), opt(&ALIGNED)], &[]).fixed(2).ptx(7, 8).sm(90).only(&[m(M::Release, 8, 0, 90), m(M::Relaxed, 8, 0, 90)]),
        form(&[one(M::Cluster), one(M::Wait), opt(&ACQUIRE), opt(&ALIGNED)], &[]).fixed(2).ptx(7, 8).sm(90).only(&[m(M::Acquire, 8, 0, 90)]),
    ]));
static CLUSTER_SEM: Class = Class::new("memory ordering", &[M::Release, M::Relaxed]);
static ACQUIRE: Class = Class::new("memory ordering", &[M::Acquire]);

static FENCE_SEM: Class = Class::new("memory ordering", &[M::Sc, M::AcqRel, M::Acquire, M::Release]);
static FABRIC: Class = Class::new("proxy kind", &[M::FabricGeneric, M::GenericFabric, M::FabricFabric]);
static ONE_WAY: Class = Class::new("memory ordering", &[M::Acquire, M::Release]);
static RELEASING: Class = Class::new("memory ordering", &[M::AcqRel, M::Release]);
static SYNC_RESTRICT: Class = Class::new("restriction", &[M::SyncRestrictSharedCta, M::SyncRestrictSharedCluster]);
static PROXY_SPACE: Class = Class::new("state space", &[M::Global, M::SharedCta, M::SharedCluster]);
pub static FENCE: Op = op("fence", "9.7.13.4", Memory, "Order memory accesses.", &[
    form(&[opt(&FENCE_SEM), req(&SCOPE)], &[]).ptx(6, 0).sm(70).only(&[m(M::Cluster, 7, 8, 90), m(M::Acquire, 8, 6, 90), m(M::Release, 8, 6, 90)]),
    form(&[one(M::Acquire), one(M::SyncRestrictSharedCluster), one(M::Cluster)], &[]).ptx(8, 6).sm(90),
    form(&[one(M::Release), one(M::SyncRestrictSharedCta), one(M::Cluster)], &[]).ptx(8, 6).sm(90),
    form(&[one(M::MbarrierInit), one(M::Release), one(M::Cluster)], &[]).ptx(8, 0).sm(90),
    form(&[one(M::Proxy), one(M::Alias)], &[]).fixed(1).ptx(7, 5).sm(70),
    form(&[one(M::Proxy), one(M::Async), opt(&PROXY_SPACE)], &[]).fixed(1).ptx(8, 0).sm(90),
    form(&[one(M::Proxy), one(M::TensormapGeneric), one(M::Release), req(&SCOPE)], &[]).fixed(1).ptx(8, 3).sm(90),
    form(&[one(M::Proxy), one(M::TensormapGeneric), one(M::Acquire), req(&SCOPE)], &[addr(), imm(Is(U32)).named("size").values(&[128])]).fixed(1).ptx(8, 3).sm(90),
    form(&[one(M::Proxy), one(M::AsyncGeneric), one(M::Acquire), one(M::SyncRestrictSharedCluster), one(M::Cluster)], &[]).fixed(1).ptx(8, 6).sm(90),
    form(&[one(M::Proxy), one(M::AsyncGeneric), one(M::Release), one(M::SyncRestrictSharedCta), one(M::Cluster)], &[]).fixed(1).ptx(8, 6).sm(90),
    form(&[one(M::Proxy), one(M::AsyncGeneric), req(&RELEASING), one(M::SyncRestrictSharedClusterRead), one(M::Cluster)], &[]).fixed(1).ptx(9, 4).sm(90),
    form(&[one(M::Proxy), one(M::Alias), req(&FABRIC), req(&ONE_WAY), one(M::Sys)], &[]).fixed(1).ptx(9, 3).sm(100),
    form(&[one(M::Proxy), one(M::Alias), req(&FABRIC), one(M::AcqRel), req(&SCOPE)], &[]).fixed(1).ptx(9, 3).sm(100), // not in the manual
    form(&[opt(&FENCE_SEM), one(M::Async), req(&SCOPE)], &[]).ptx(8, 0).sm(90).only(&[m(M::Acquire, 8, 6, 90), m(M::Release, 8, 6, 90)]), // not in the manual
    form(&[one(M::Proxy), one(M::Alias), req(&ONE_WAY), one(M::Sys)], &[]).fixed(1).ptx(9, 4).sm(90),
    form(&[one(M::Proxy), one(M::TensormapGeneric), one(M::AcqRel), req(&SCOPE)], &[]).fixed(1).ptx(8, 3).sm(90), // not in the manual
    form(&[one(M::Proxy), one(M::TensormapGeneric), one(M::AcqRel), req(&SCOPE)], &[addr(), imm(Is(U32)).named("size")]).fixed(1).ptx(8, 3).sm(90), // not in the manual
    form(&[one(M::Proxy), one(M::TensormapGeneric), one(M::SyncRestrictSharedCta), req(&RELEASING), req(&SCOPE)], &[]).fixed(1).ptx(8, 6).sm(90), // not in the manual
    form(&[one(M::Proxy), one(M::AsyncGeneric), opt(&SYNC_RESTRICT), one(M::AcqRel), req(&SCOPE)], &[]).fixed(1).ptx(8, 3).sm(90).only(&[m(M::SyncRestrictSharedCta, 8, 6, 90), m(M::SyncRestrictSharedCluster, 8, 6, 90)]), // not in the manual
    form(&[one(M::Proxy), one(M::AsyncGeneric), one(M::AcqRel), req(&SCOPE)], &[addr(), imm(Is(U32)).named("size")]).fixed(1).ptx(8, 3).sm(90), // not in the manual
]);
static LEVEL: Class = Class::new("level", &[M::Cta, M::Gl, M::Sys]);
pub static MEMBAR: Op = op("membar", "9.7.13.4", Memory, "Order memory accesses (older form of `fence`).", &[
    form(&[req(&LEVEL)], &[]).ptx(1, 4).only(&[m(M::Sys, 2, 0, 20)]),
    form(&[one(M::Proxy), one(M::Alias)], &[]).fixed(1).ptx(7, 5).sm(60),
    form(&[one(M::Proxy), one(M::Async)], &[]).fixed(1).ptx(8, 0).sm(90),
]);
static GRID_ACTION: Class = Class::new("action", &[M::LaunchDependents, M::Wait]);
pub static GRIDDEPCONTROL: Op = op("griddepcontrol", "9.7.13.13", Memory, "Start dependent grids, or wait for prerequisite grids.", &[
    form(&[req(&GRID_ACTION)], &[]).ptx(7, 8).sm(90),
]);
