//! `mbarrier` objects (manual, section 9.7.13.15).
//!
//! Without a state space the address is generic, but a named variable must be in `.shared`, except for `check_layout`.

use super::target::F107;
use crate::{Effect::Memory, Mod as M, Type::*, Var::T, *};

static SHARED: Class = Class::new("state space", &[M::Shared, M::SharedCta]);
static ANY_SHARED: Class = Class::new("state space", &[M::Shared, M::SharedCta, M::SharedCluster]);
static CLUSTER_SHARED: Class = Class::new("state space", &[M::SharedCluster]);
static RELAXED: Class = Class::new("memory ordering", &[M::Relaxed]);
static ARRIVAL: Class = Class::new("memory ordering", &[M::Release, M::Relaxed]);
static WAITING: Class = Class::new("memory ordering", &[M::Acquire, M::Relaxed]);
static CTA_CLUSTER: Class = Class::new("scope", &[M::Cta, M::Cluster]);

static LIMIT: (i64, i64) = (1, 0xf_ffff);

const fn state() -> Opnd {
    dst(Ty::Is(U64)).named("state").sink()
}
const fn expected() -> Opnd {
    src(Ty::Is(U32)).named("count").range(LIMIT.0, LIMIT.1)
}
const fn count() -> Opnd {
    expected().braced()
}
const fn tx_count() -> Opnd {
    src(Ty::Is(U32)).named("txCount")
}
const fn cta_mask() -> Opnd {
    src(Ty::Is(U32)).named("ctaMask")
}
const fn old_state() -> Opnd {
    src(Ty::Is(U64)).named("state")
}
const fn parity() -> Opnd {
    src(Ty::Is(U32)).named("phaseParity").range(0, 1)
}
const fn hint() -> Opnd {
    src(Ty::Is(U32)).named("suspendTimeHint")
}
const fn done() -> Opnd {
    p_out().named("waitComplete")
}

static LAYOUT: Class = Class::new("layout", &[M::LayoutV0, M::LayoutV1]);
/// States of the other layout have no pending count.
static LAYOUT0: Class = Class::new("layout", &[M::LayoutV0]);
static LAYOUTS: &[Need] = &[m(M::SharedCta, 7, 8, 80), m(M::LayoutV0, 9, 3, 90), m(M::LayoutV1, 9, 3, 90)];

static CTA: &[Need] = &[m(M::SharedCta, 7, 8, 80)];
static SEM: &[Need] = &[m(M::SharedCta, 7, 8, 80), m(M::Relaxed, 8, 6, 90), m(M::Cluster, 8, 0, 90)];

macro_rules! arrivals {
    ($name:ident, $section:literal, $word:ident) => {
        pub static $name: Rows = rows($section, &[
            form(&[one(M::$word), opt(&SHARED), T.of(&[B64])],                                                    &[state(), addr()]).fixed(1).ptx(7, 0).sm(80).only(CTA).rules(&[Rule::SharedVariable]),
            form(&[one(M::$word), opt(&SHARED), T.of(&[B64])],                                                    &[state(), addr(), count()]).fixed(1).ptx(7, 8).sm(90).rules(&[Rule::SharedVariable]),
            form(&[one(M::$word), req(&ARRIVAL), req(&CTA_CLUSTER), opt(&SHARED), T.of(&[B64])],                  &[state(), addr()]).fixed(1).ptx(8, 0).sm(80).only(SEM).rules(&[Rule::SharedVariable]),
            form(&[one(M::$word), req(&ARRIVAL), req(&CTA_CLUSTER), opt(&SHARED), T.of(&[B64])],                  &[state(), addr(), count()]).fixed(1).ptx(8, 0).sm(90).only(SEM).rules(&[Rule::SharedVariable]),
            form(&[one(M::$word), one(M::SharedCluster), T.of(&[B64])],                                           &[state(), addr(), count().opt()]).fixed(1).ptx(8, 0).sm(90).rules(&[Rule::SinkOnly]),
            form(&[one(M::$word), req(&ARRIVAL), req(&CTA_CLUSTER), one(M::SharedCluster), T.of(&[B64])],         &[state(), addr(), count().opt()]).fixed(1).ptx(8, 0).sm(90).only(SEM).rules(&[Rule::SinkOnly]),
            form(&[one(M::$word), one(M::ExpectTx), opt(&SHARED), T.of(&[B64])],                                  &[state(), addr(), tx_count()]).fixed(2).ptx(8, 0).sm(90).rules(&[Rule::SharedVariable]),
            form(&[one(M::$word), one(M::ExpectTx), req(&ARRIVAL), req(&CTA_CLUSTER), opt(&SHARED), T.of(&[B64])], &[state(), addr(), tx_count()]).fixed(2).ptx(8, 0).sm(90).only(SEM).rules(&[Rule::SharedVariable]),
            form(&[one(M::$word), one(M::ExpectTx), one(M::SharedCluster), T.of(&[B64])],                         &[state(), addr(), tx_count()]).fixed(2).ptx(8, 0).sm(90).rules(&[Rule::SinkOnly]),
            form(&[one(M::$word), one(M::ExpectTx), req(&ARRIVAL), req(&CTA_CLUSTER), one(M::SharedCluster), T.of(&[B64])], &[state(), addr(), tx_count()]).fixed(2).ptx(8, 0).sm(90).only(SEM).rules(&[Rule::SinkOnly]),
            form(&[one(M::$word), one(M::MulticastCluster32b), opt(&CLUSTER_SHARED), T.of(&[B64])],              &[state(), addr(), cta_mask()]).fixed(1).ptx(9, 4).targets(F107).rules(&[Rule::SinkOnly]),
            form(&[one(M::$word), one(M::MulticastCluster32b), opt(&CLUSTER_SHARED), T.of(&[B64])],              &[state(), addr(), count(), cta_mask()]).fixed(1).ptx(9, 4).targets(F107).rules(&[Rule::SinkOnly]),
            form(&[one(M::$word), req(&ARRIVAL), req(&CTA_CLUSTER), one(M::MulticastCluster32b), opt(&CLUSTER_SHARED), T.of(&[B64])], &[state(), addr(), cta_mask()]).fixed(1).ptx(9, 4).targets(F107).rules(&[Rule::SinkOnly]),
            form(&[one(M::$word), req(&ARRIVAL), req(&CTA_CLUSTER), one(M::MulticastCluster32b), opt(&CLUSTER_SHARED), T.of(&[B64])], &[state(), addr(), count(), cta_mask()]).fixed(1).ptx(9, 4).targets(F107).rules(&[Rule::SinkOnly]),
            form(&[one(M::$word), one(M::ExpectTx), one(M::MulticastCluster32b), opt(&CLUSTER_SHARED), T.of(&[B64])], &[state(), addr(), tx_count(), cta_mask()]).fixed(2).ptx(9, 4).targets(F107).rules(&[Rule::SinkOnly]),
            form(&[one(M::$word), one(M::ExpectTx), req(&ARRIVAL), req(&CTA_CLUSTER), one(M::MulticastCluster32b), opt(&CLUSTER_SHARED), T.of(&[B64])], &[state(), addr(), tx_count(), cta_mask()]).fixed(2).ptx(9, 4).targets(F107).rules(&[Rule::SinkOnly]),
            form(&[one(M::$word), one(M::NoComplete), opt(&SHARED), T.of(&[B64])],                                &[state(), addr(), count()]).fixed(1).ptx(7, 0).sm(80).only(CTA).rules(&[Rule::SharedVariable]),
            form(&[one(M::$word), one(M::NoComplete), one(M::Release), one(M::Cta), opt(&SHARED), T.of(&[B64])],  &[state(), addr(), count()]).fixed(1).ptx(8, 0).sm(80).rules(&[Rule::SharedVariable]),
        ]);
    };
}
arrivals!(ARRIVE, "9.7.13.15.13", Arrive);
arrivals!(ARRIVE_DROP, "9.7.13.15.14", ArriveDrop);

macro_rules! transactions {
    ($name:ident, $section:literal, $word:ident) => {
        pub static $name: Rows = rows($section, &[
            form(&[one(M::$word), opt(&ANY_SHARED), T.of(&[B64])],                                      &[addr(), tx_count()]).fixed(1).ptx(8, 0).sm(90).rules(&[Rule::SharedVariable]),
            form(&[one(M::$word), one(M::MulticastCluster32b), opt(&CLUSTER_SHARED), T.of(&[B64])],         &[addr(), tx_count(), cta_mask()]).fixed(1).ptx(9, 4).targets(F107).rules(&[Rule::SharedVariable]),
            form(&[one(M::$word), req(&RELAXED), req(&CTA_CLUSTER), one(M::MulticastCluster32b), opt(&CLUSTER_SHARED), T.of(&[B64])], &[addr(), tx_count(), cta_mask()]).fixed(1).ptx(9, 4).targets(F107).rules(&[Rule::SharedVariable]),
            form(&[one(M::$word), req(&RELAXED), req(&CTA_CLUSTER), opt(&ANY_SHARED), T.of(&[B64])],    &[addr(), tx_count()]).fixed(1).ptx(8, 0).sm(90).rules(&[Rule::SharedVariable]),
        ]);
    };
}
transactions!(EXPECT_TX, "9.7.13.15.11", ExpectTx);
transactions!(COMPLETE_TX, "9.7.13.15.12", CompleteTx);

pub static INIT: Rows = rows("9.7.13.15.9", &[
    form(&[one(M::Init), opt(&LAYOUT), opt(&SHARED), T.of(&[B64])],  &[addr(), expected()]).fixed(1).ptx(7, 0).sm(80).only(LAYOUTS).rules(&[Rule::SharedVariable]),
]);
pub static INVAL: Rows = rows("9.7.13.15.10", &[
    form(&[one(M::Inval), opt(&SHARED), T.of(&[B64])], &[addr()]).fixed(1).ptx(7, 0).sm(80).only(CTA).rules(&[Rule::SharedVariable]),
]);
pub static WAIT: Rows = rows("9.7.13.15.16", &[
    form(&[one(M::TestWait), opt(&SHARED), T.of(&[B64])],                                                 &[done(), addr(), old_state()]).fixed(1).ptx(7, 0).sm(80).only(CTA).rules(&[Rule::SharedVariable]),
    form(&[one(M::TestWait), req(&WAITING), req(&CTA_CLUSTER), opt(&SHARED), T.of(&[B64])],               &[done(), addr(), old_state()]).fixed(1).ptx(8, 0).sm(80).only(SEM).rules(&[Rule::SharedVariable]),
    form(&[one(M::TestWait), one(M::Parity), opt(&SHARED), T.of(&[B64])],                                 &[done(), addr(), parity()]).fixed(2).ptx(7, 1).sm(80).only(CTA).rules(&[Rule::SharedVariable]),
    form(&[one(M::TestWait), one(M::Parity), req(&WAITING), req(&CTA_CLUSTER), opt(&SHARED), T.of(&[B64])], &[done(), addr(), parity()]).fixed(2).ptx(8, 0).sm(80).only(SEM).rules(&[Rule::SharedVariable]),
    form(&[one(M::TryWait), opt(&SHARED), T.of(&[B64])],                                                  &[done(), addr(), old_state(), hint().opt()]).fixed(1).ptx(7, 8).sm(90).rules(&[Rule::SharedVariable]),
    form(&[one(M::TryWait), req(&WAITING), req(&CTA_CLUSTER), opt(&SHARED), T.of(&[B64])],                &[done(), addr(), old_state(), hint().opt()]).fixed(1).ptx(8, 0).sm(90).only(SEM).rules(&[Rule::SharedVariable]),
    form(&[one(M::TryWait), one(M::Parity), opt(&SHARED), T.of(&[B64])],                                  &[done(), addr(), parity(), hint().opt()]).fixed(2).ptx(7, 8).sm(90).rules(&[Rule::SharedVariable]),
    form(&[one(M::TryWait), one(M::Parity), req(&WAITING), req(&CTA_CLUSTER), opt(&SHARED), T.of(&[B64])], &[done(), addr(), parity(), hint().opt()]).fixed(2).ptx(8, 0).sm(90).only(SEM).rules(&[Rule::SharedVariable]),
]);
pub static PENDING_COUNT: Rows = rows("9.7.13.15.17", &[
    form(&[one(M::PendingCount), opt(&LAYOUT0), T.of(&[B64])], &[dst(Ty::Is(U32)).named("count"), old_state()]).fixed(1).ptx(7, 0).sm(80).only(LAYOUTS),
]);
/// Section 9.7.15.16.21 of the manual of PTX ISA 9.4.
pub static CHECK_LAYOUT: Rows = rows("9.7.15.16.21", &[
    form(&[one(M::CheckLayout), req(&LAYOUT), opt(&SHARED), T.of(&[B64])], &[p_out(), addr()]).fixed(1).ptx(9, 3).sm(90),
]);

/// Waits that name the kind of phase: with `.phase_type::primary` a predicate and a value may report an error.
macro_rules! phases {
    ($name:ident: $($word:ident [$($parity:ident)?] $fixed:literal [$($old:expr),*];)*) => {
        static $name: Rows = rows("9.7.15.16.19", &[$(
            form(&[one(M::$word), $(one(M::$parity),)? one(M::PhasePrimary), opt(&SHARED), T.of(&[B64])],                                     &[reported(), addr(), $($old),*]).fixed($fixed).ptx(9, 3).sm(90).rules(&[Rule::SharedVariable]),
            form(&[one(M::$word), $(one(M::$parity),)? one(M::PhasePrimary), req(&WAITING), req(&CTA_CLUSTER), opt(&SHARED), T.of(&[B64])],   &[reported(), addr(), $($old),*]).fixed($fixed).ptx(9, 3).sm(90).rules(&[Rule::SharedVariable]),
            form(&[one(M::$word), $(one(M::$parity),)? one(M::PhasePrimary), opt(&SHARED), T.of(&[B64])],                                     &[reported(), report(), addr(), $($old),*]).fixed($fixed).ptx(9, 3).sm(90).rules(&[Rule::SharedVariable]),
            form(&[one(M::$word), $(one(M::$parity),)? one(M::PhasePrimary), req(&WAITING), req(&CTA_CLUSTER), opt(&SHARED), T.of(&[B64])],   &[reported(), report(), addr(), $($old),*]).fixed($fixed).ptx(9, 3).sm(90).rules(&[Rule::SharedVariable]),
        )*]);
    };
}
const fn reported() -> Opnd {
    done().pair(Ty::Is(Pred))
}
const fn report() -> Opnd {
    dst(Ty::Is(B8)).named("reportValue")
}
phases! { PRIMARY:
    TestWait [] 1 [old_state()];
    TestWait [Parity] 2 [parity()];
    TryWait [] 1 [old_state(), hint().opt()];
    TryWait [Parity] 2 [parity(), hint().opt()];
}
static CONDITIONAL: Rows = rows("9.7.15.16.19", &[
    form(&[one(M::TestWait), one(M::Parity), one(M::PhaseConditional), opt(&SHARED), T.of(&[B64])],                                   &[done(), addr(), parity()]).fixed(2).ptx(9, 3).sm(90).rules(&[Rule::SharedVariable]),
    form(&[one(M::TestWait), one(M::Parity), one(M::PhaseConditional), req(&WAITING), req(&CTA_CLUSTER), opt(&SHARED), T.of(&[B64])], &[done(), addr(), parity()]).fixed(2).ptx(9, 3).sm(90).rules(&[Rule::SharedVariable]),
    form(&[one(M::TryWait), one(M::Parity), one(M::PhaseConditional), opt(&SHARED), T.of(&[B64])],                                    &[done(), addr(), parity(), hint().opt()]).fixed(2).ptx(9, 3).sm(90).rules(&[Rule::SharedVariable]),
    form(&[one(M::TryWait), one(M::Parity), one(M::PhaseConditional), req(&WAITING), req(&CTA_CLUSTER), opt(&SHARED), T.of(&[B64])],  &[done(), addr(), parity(), hint().opt()]).fixed(2).ptx(9, 3).sm(90).rules(&[Rule::SharedVariable]),
]);

pub static MBARRIER: Op = joined!("mbarrier", Memory, "Initialize, arrive at, and wait for barrier objects in shared memory.",
    INIT, INVAL, EXPECT_TX, COMPLETE_TX, ARRIVE, ARRIVE_DROP, WAIT, PENDING_COUNT, CHECK_LAYOUT, PRIMARY, CONDITIONAL);
