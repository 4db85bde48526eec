//! Synchronization events: what instructions, barriers and barrier objects order (manual, chapter 8 and section 9.7.13).

use super::{Actor, Ordering, Scope, Semantics};
use margay_isa::{Mod, Opcode, Variant};

/// An operation that synchronizes threads.
#[derive(Clone, Copy, Debug)]
pub struct SyncEvent<'a> {
    /// Who executes it, and where.
    pub actor: Actor<'a>,
    /// The operation.
    pub kind: SyncKind,
}

/// Kinds of synchronization.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SyncKind {
    /// Arrival at a `bar`/`barrier`. [`super::Observer::barrier`] reports its completion.
    Barrier {
        /// Barrier number.
        id: u32,
        /// `.aligned`: all threads of a warp must execute the same instruction.
        aligned: bool,
        /// The instruction gives the number of participating threads: different instructions may arrive at the same barrier.
        counted: bool,
    },
    /// `barrier.cluster.arrive`; `.relaxed` has no release semantics.
    ClusterArrive(Semantics),
    /// Lanes returned from `barrier.cluster.wait`.
    ClusterPassed,
    /// `bar.warp.sync` completed among these lanes.
    Warp,
    /// Another `.sync` instruction of a warp completed among these lanes. It does not order memory.
    Exchange,
    /// An operation on a barrier object (`mbarrier`).
    Object {
        /// Host address of the object.
        at: u64,
        /// The operation.
        done: ObjectStep,
        /// Whether it completes the phase.
        completes: bool,
        /// Memory ordering.
        order: Ordering,
    },
    /// `fence`, `membar`
    Fence(Semantics, Scope),
    /// `fence.mbarrier_init`
    FenceObjects,
    /// `fence.proxy.async`: what a thread has seen is seen by the async proxy, too.
    FenceProxy {
        /// Of shared memory.
        shared: bool,
        /// Of all other memory.
        global: bool,
    },
    /// `cp.async.commit_group` and the like
    Commit {
        /// Of what.
        of: Grouped,
    },
    /// `cp.async.wait_group N` and the like: all but the latest N groups are complete.
    Wait {
        /// For what.
        of: Grouped,
        /// Number of groups that may be pending; `None` for `wait_all`, which also waits for copies outside groups.
        pending: Option<u32>,
        /// `.read`: only until the copies have read their sources.
        read: bool,
    },
    /// `tcgen05.wait`: the loads from tensor memory, or the stores to it, of the warp are complete.
    WaitTensor {
        /// The stores.
        stores: bool,
    },
    /// `griddepcontrol.launch_dependents`: the next grid of the stream may begin.
    LaunchDependents,
    /// `griddepcontrol.wait`: the grids before this one in the stream have ended.
    WaitPrerequisites,
    /// Each lane tries to queue a piece of work ([`crate::device::Origin`]), in the order of the lanes.
    Queue,
    /// Threads exit.
    Exit,
}

impl SyncKind {
    /// What a `fence` or `membar` does if it orders accesses by the generic and the async proxy (manual, section 9.7.13.4). A state
    /// space restricts it to accesses of that space.
    pub fn of_proxy_fence(v: &Variant) -> Option<SyncKind> {
        const SHARED: [Mod; 5] = [
            Mod::SharedCta,
            Mod::SharedCluster,
            Mod::SyncRestrictSharedCta,
            Mod::SyncRestrictSharedCluster,
            Mod::SyncRestrictSharedClusterRead,
        ];
        let fences = v.has(Mod::Proxy) && (v.has(Mod::Async) || v.has(Mod::AsyncGeneric));
        let of_shared = SHARED.iter().any(|space| v.has(*space));
        fences.then(|| SyncKind::FenceProxy { shared: !v.has(Mod::Global), global: !of_shared })
    }

    /// What a `fence` or `membar` does; proxy fences alone do not order threads.
    pub fn of_fence(v: &Variant) -> Option<SyncKind> {
        if v.has(Mod::MbarrierInit) {
            return Some(SyncKind::FenceObjects);
        }
        // `membar.level` is `fence.sc` (manual, section 9.7.13.4).
        let semantics = match v.op {
            Opcode::Membar => Some(Semantics::AcquireRelease),
            // `fence.cta` and the like are `.acq_rel`.
            _ => Semantics::of(v).or(Scope::of(v).map(|_| Semantics::AcquireRelease)),
        };
        let proxy = v.has(Mod::Proxy) && semantics == Some(Semantics::AcquireRelease) && !v.has(Mod::AcqRel);
        let scope = Scope::of(v).unwrap_or(Scope::Sys);
        semantics.filter(|_| !proxy).map(|semantics| SyncKind::Fence(semantics, scope))
    }
}

/// Asynchronous operations that threads commit to groups and wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Grouped {
    /// `cp.async`
    Small,
    /// `cp.async.bulk`
    Bulk,
    /// `wgmma.mma_async`, whose groups are those of a warp (manual, section 9.7.15.7).
    Products,
}

/// An operation on a barrier object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ObjectStep {
    /// Initialization.
    Initialize,
    /// Invalidation.
    Invalidate,
    /// An arrival.
    Arrive,
    /// An arrival triggered by the completion of earlier copies (`cp.async`).
    ArriveAfterCopies,
    /// An arrival triggered by the completion of earlier products and copies of the tensor cores (`tcgen05.commit`).
    ArriveAfterProducts,
    /// An asynchronous operation has completed its transactions.
    Complete,
    /// Raises the expected transaction count.
    Expect,
    /// A test or wait that found the phase complete.
    Waited {
        /// As in [`ObjectStep::Pending`].
        parity: bool,
    },
    /// A test or wait that found the phase incomplete.
    Pending {
        /// It names the phase by its parity, which the phase before the previous one shares.
        parity: bool,
    },
}

/// The completion of a CTA barrier. If all threads participate, waited, and did nothing since they arrived, their arrivals need not
/// have been reported.
#[derive(Clone, Copy, Debug)]
pub struct BarrierEvent<'a> {
    /// CTA index in the grid.
    pub cta: [u32; 3],
    /// Barrier number.
    pub id: u32,
    /// All threads that have not exited participate, rather than a given number.
    pub all: bool,
    /// Lanes that arrived, by warp.
    pub arrived: &'a [u32],
    /// Lanes that waited and are now released, by warp.
    pub waited: &'a [u32],
    /// Lanes that have not exited, by warp.
    pub live: &'a [u32],
}
