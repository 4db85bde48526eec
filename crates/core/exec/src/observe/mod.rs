//! Observation of an execution by sanitizers and tracers.
//!
//! A launch with an observer runs on one host thread, so calls come in execution order: an access is reported
//! immediately before it takes effect.

mod order;
mod uses;

pub use order::{AccessKind, Ordering, Scope, Semantics, Tensor};
pub use uses::{LINE_BYTES, LineUse, LineUses};

use crate::{Frame, Image, LANES, Memory, Row};
use margay_ir::{FuncId, MemSpace, SourcePlace, VReg};
use margay_isa::{Mod, Opcode, Variant};
use std::cell::Cell;

/// The lanes that execute an instruction, and where.
#[derive(Clone, Copy, Debug)]
pub struct Actor<'a> {
    /// CTA index in the grid.
    pub cta: [u32; 3],
    /// Warp index in the CTA.
    pub warp: u32,
    /// The executing lanes.
    pub lanes: u32,
    /// Function and place of the instruction.
    pub at: (FuncId, SourcePlace),
    /// Callers, innermost first.
    pub callers: &'a [Frame],
}

/// A memory instruction of a group of lanes, before it takes effect.
#[derive(Clone, Copy)]
pub struct MemoryEvent<'a> {
    /// Who executes it, and where.
    pub actor: Actor<'a>,
    /// Host addresses by lane.
    pub addresses: &'a [u64; LANES],
    /// Bytes accessed per lane.
    pub size: u32,
    /// Bytes per element: a vector access counts as several (manual, section 8.2.4).
    pub element: u32,
    /// The instruction's space.
    pub space: MemSpace,
    /// Load, store or atomic.
    pub access: AccessKind,
    /// Semantics and scope.
    pub order: Ordering,
    /// Host address and size of the shared windows: the own CTA's first, then those of the other CTAs of the cluster.
    pub windows: &'a [(u64, u64)],
    /// Host address and size of the local windows of the warp.
    pub local: (u64, u64),
    /// The stored values by lane and byte of the access, if they are in registers.
    pub values: Option<&'a dyn Fn(usize, usize) -> u8>,
    /// The lanes whose stored value is undefined, by element, and which were not reported: copies of padding, and values that
    /// stay in the thread's own memory.
    pub undefined: Undefined,
    /// Reads the current contents of memory at a host address; false if it is not accessible.
    pub peek: &'a dyn Fn(u64, &mut [u8]) -> bool,
    /// The device's memory.
    pub memory: &'a Memory,
    /// Whether the engine follows the loaded values: it asks [`Observer::undefined_lanes`] which are undefined, and reports
    /// their uses.
    pub tracked: bool,
    /// The address of lane 0, active or not, and the bytes from one lane to the next, if the engine knows that addresses are so.
    pub row: Option<(u64, u64)>,
    /// What the observer remembers of the place, at first 0. In a launch, it is of this place and its callers alone.
    pub memo: &'a Cell<u32>,
    /// The rows of the function's registers that are live, if the engine knows them; of a predicate, word 0 is the mask.
    pub registers: Option<&'a dyn Fn(VReg) -> Option<Vec<Row>>>,
}

/// A memory instruction whose addresses increase evenly from lane to lane, in short; before it takes effect.
#[derive(Clone, Copy)]
pub struct RowEvent<'a> {
    /// Who executes it, and where.
    pub actor: Actor<'a>,
    /// The address of lane 0, active or not, and the bytes from one lane to the next.
    pub row: (u64, u64),
    /// Bytes accessed per lane.
    pub size: u32,
    /// Host address and size of the local windows of the warp.
    pub local: (u64, u64),
    /// As in [`MemoryEvent`].
    pub memo: &'a Cell<u32>,
}

/// A memory instruction of lanes at addresses of any kind, in short; before it takes effect.
#[derive(Clone, Copy)]
pub struct SpreadEvent<'a> {
    /// Who executes it, and where.
    pub actor: Actor<'a>,
    /// Host addresses by lane.
    pub addresses: &'a [u64; LANES],
    /// Bytes accessed per lane.
    pub size: u32,
    /// Load, store or atomic.
    pub access: AccessKind,
    /// Semantics and scope.
    pub order: Ordering,
    /// As in [`MemoryEvent`].
    pub memo: &'a Cell<u32>,
}

/// A weak access by lanes whose addresses increase evenly, among [`RowLoads`].
#[derive(Clone, Copy, Default, Debug)]
#[repr(C)]
pub struct RowLoad {
    /// The address of lane 0, active or not.
    pub first: u64,
    /// Its place, by number.
    pub place: u32,
    /// The executing lanes.
    pub lanes: u32,
    /// Warp index in the CTA.
    pub warp: u32,
}

/// A place of [`RowLoad`]s.
#[derive(Clone, Debug)]
pub struct RowPlace {
    /// Function and place of the instruction.
    pub at: (FuncId, SourcePlace),
    /// Load or store, semantics and scope, and bytes per element.
    pub access: Option<(AccessKind, Ordering, u32)>,
    /// Bytes accessed per lane.
    pub size: u32,
    /// Bytes from one lane to the next.
    pub stride: u64,
    /// As in [`MemoryEvent`].
    pub memo: Cell<u32>,
}

/// Loads of a CTA's warps in the order of their execution, with no other event in between, and nothing that changed memory.
#[derive(Clone, Copy)]
pub struct RowLoads<'a> {
    /// CTA index in the grid.
    pub cta: [u32; 3],
    /// The loads.
    pub list: &'a [Cell<RowLoad>],
    /// The places that they refer to.
    pub places: &'a [RowPlace],
    /// Host address and size of the local windows of warp 0, which those of the other warps follow.
    pub local: (u64, u64),
}

/// An access to the tensor memory of a CTA, after it took effect.
#[derive(Clone, Copy, Debug)]
pub struct TensorEvent<'a> {
    /// Who executes it, and where. What all lanes of a warp do, they do together.
    pub actor: Actor<'a>,
    /// The CTA whose memory it is.
    pub cta: [u32; 3],
    /// What is accessed: lane, first column, number of columns.
    pub runs: &'a [(u32, u32, u32)],
    /// Load or store; [`AccessKind::Free`] for deallocation.
    pub access: AccessKind,
    /// Semantics and scope.
    pub order: Ordering,
}

/// What an observer wants compiled code to report.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Interest {
    /// All accesses and synchronization.
    pub order: bool,
    /// Barriers of a CTA, and where its threads were last.
    pub progress: bool,
    /// Accesses, until [`LockedObserver::strays`] knows from which addresses on it needs to see them.
    pub bounds: bool,
}

impl Interest {
    /// Everything; accesses that are reported anyway need no second report of their bounds.
    pub const ALL: Interest = Interest { order: true, progress: true, bounds: false };
}

/// Undefined lanes, by element of an access.
pub type Undefined = [u32; 8];

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
    /// Arrival at a `bar`/`barrier`. [`Observer::barrier`] reports its completion.
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

/// The start of a CTA.
#[derive(Clone, Copy, Debug)]
pub struct CtaEvent<'a> {
    /// CTA index in the grid.
    pub cta: [u32; 3],
    /// Host address and size of its shared memory.
    pub shared: (u64, u64),
    /// Host addresses and sizes of the local memory of its warps.
    pub locals: &'a [(u64, u64)],
}

/// The subject of an [`UndefinedEvent`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Concern {
    /// The use of an uninitialized value.
    Uninitialized,
    /// Inactive lanes in the member mask of a warp operation, or a product without its fence.
    Participants,
    /// A register that a product has not written yet.
    InFlight,
    /// An access beyond its variable, but within memory that the thread may access.
    Bounds,
}

/// A use that the manual leaves undefined.
#[derive(Clone, Debug)]
pub struct UndefinedEvent<'a> {
    /// Who (one lane), and where.
    pub actor: Actor<'a>,
    /// Its subject.
    pub concern: Concern,
    /// A description with the operand.
    pub what: String,
    /// The load that the undefined value comes from, if it was loaded, or the shuffle that has read it from an inactive lane.
    pub origin: Option<(FuncId, SourcePlace)>,
    /// How the value is used, if that is not the description.
    pub usage: Option<String>,
}

/// An [`Observer`] that one thread has locked, to report many events to it.
pub trait LockedObserver {
    /// An access in compact form. If it returns false, the engine reports it to [`LockedObserver::memory`] too.
    fn row(&mut self, event: &RowEvent<'_>) -> bool;

    /// As [`LockedObserver::row`], of other addresses.
    fn spread(&mut self, event: &SpreadEvent<'_>) -> bool;

    /// Loads in compact form; not those of a place whose memo is 0, or of no lane. Returns how many of them, from the first on, are
    /// dealt with. If it is not all, the engine reports the next one to [`LockedObserver::memory`].
    fn loads(&mut self, event: &RowLoads<'_>) -> usize;

    /// The uses of the CTA's shared memory, if weak accesses by rows of lanes may be noted instead of being reported: loads of lines that
    /// were only loaded from since the last barrier of the whole CTA, stores to lines that were not used since, and accesses by lanes that have
    /// [words of their own](LineUse::own). May change with every event.
    fn uses(&self, cta: [u32; 3]) -> Option<&LineUses>;

    /// The accesses that were noted since the last event, other than [loads](LockedObserver::loads), in the order of their execution. Those noted
    /// before the completion of a barrier of the whole CTA need not be told.
    fn noted(&mut self, event: &RowLoads<'_>);

    /// An access that may lie outside the object from which its address derives; it is reported besides the others. Returns the first
    /// and the last address of the memory in which accesses from this place need no further report of this kind.
    fn strays(&mut self, event: &MemoryEvent<'_>) -> (u64, u64);

    /// The first and the last address of the memory in which weak loads from a place with this [memo](MemoryEvent::memo) need
    /// not be reported, after one was reported in full; a range that ends before it begins if they must be.
    fn ignored(&self, memo: u32) -> (u64, u64);

    /// As [`Observer::memory`].
    fn memory(&mut self, event: &MemoryEvent<'_>);

    /// As [`Observer::sync`].
    fn sync(&mut self, event: &SyncEvent<'_>);

    /// As [`Observer::barrier`].
    fn barrier(&mut self, event: &BarrierEvent<'_>);

    /// All threads of a CTA, which are those, have met at so many barriers of the whole CTA since the last event.
    fn met(&mut self, cta: [u32; 3], live: &[u32], times: u32);

    /// As [`Observer::cta`].
    fn cta(&mut self, event: &CtaEvent<'_>);

    /// All threads of a CTA without a cluster exit: [`SyncKind::Exit`] of each of its warps.
    fn exit(&mut self, cta: [u32; 3]);
}

/// Receives accesses and synchronization events from the engine.
pub trait Observer: Sync {
    /// What compiled code must report; the reference engine reports everything.
    fn interest(&self) -> Interest {
        Interest::ALL
    }

    /// Locks the observer for a thread that has many events to report. Until the guard is dropped, the thread must report to
    /// it what it takes, and nothing to the observer itself.
    fn locked(&self) -> Option<Box<dyn LockedObserver + '_>> {
        None
    }

    /// Whether the events of compiled code suffice for a launch of `kernel`: accesses and synchronization, but neither the values of
    /// registers nor the ends of frames that grow.
    fn accepts_compiled_code(&self, image: &Image, kernel: FuncId) -> bool {
        let _ = (image, kernel);
        false
    }

    /// An access that has passed all checks, before it takes effect.
    fn memory(&self, event: &MemoryEvent<'_>);

    /// An access to tensor memory.
    fn tensor(&self, event: &TensorEvent<'_>) {
        let _ = event;
    }

    /// The lanes that load undefined values; only called after [`Observer::memory`], for loads that are
    /// [tracked](MemoryEvent::tracked).
    fn undefined_lanes(&self, event: &MemoryEvent<'_>) -> Undefined {
        let _ = event;
        Undefined::default()
    }

    /// The next memory event stores, as this element, undefined values that a load at `origin` has yielded.
    fn passes_on(&self, element: usize, origin: (FuncId, SourcePlace)) {
        let _ = (element, origin);
    }

    /// A use that the manual leaves undefined.
    fn undefined(&self, event: UndefinedEvent<'_>) {
        let _ = event;
    }

    /// A synchronization.
    fn sync(&self, event: &SyncEvent<'_>) {
        let _ = event;
    }

    /// The completion of a CTA barrier. If all threads participate, waited, and did nothing since they arrived, their arrivals need not
    /// have been reported.
    fn barrier(&self, event: &BarrierEvent<'_>) {
        let _ = event;
    }

    /// The start of a CTA.
    fn cta(&self, event: &CtaEvent<'_>) {
        let _ = event;
    }

    /// Device code allocated memory: host address and size.
    fn allocated(&self, at: u64, size: u64) {
        let _ = (at, size);
    }
}
