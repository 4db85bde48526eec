//! Watching an execution: what checkers and tracers are told.
//!
//! A launch with an observer runs on one host thread, so that calls come in the order in which things happen: an access is told of
//! right before it takes effect, and nothing comes between.

use crate::{Frame, LANES, Memory};
use margay_ir::{FuncId, MemSpace, SourcePlace};

/// (Part of) a warp at an instruction.
#[derive(Clone, Copy, Debug)]
pub struct Actor<'a> {
    /// CTA index in the grid.
    pub cta: [u32; 3],
    /// Warp index in the CTA.
    pub warp: u32,
    /// Lanes that act.
    pub lanes: u32,
    /// Function and place.
    pub at: (FuncId, SourcePlace),
    /// Callers, innermost first.
    pub callers: &'a [Frame],
}

/// One memory instruction of (part of) a warp, before it takes effect.
#[derive(Clone, Copy)]
pub struct MemoryEvent<'a> {
    /// Who, and where in the program.
    pub actor: Actor<'a>,
    /// Host addresses by lane.
    pub addresses: &'a [u64; LANES],
    /// Bytes that each lane accesses.
    pub size: u32,
    /// Bytes of one element: a vector access is several (manual, section 8.2.4).
    pub element: u32,
    /// The instruction's space.
    pub space: MemSpace,
    /// What it does.
    pub access: AccessKind,
    /// How it is ordered.
    pub order: Ordering,
    /// Host addresses of the shared memory of the CTA (first) and of the others of its cluster, with their sizes.
    pub windows: &'a [(u64, u64)],
    /// Host addresses of the local memory of the warp's threads, with its size.
    pub local: (u64, u64),
    /// Values that lanes store, where the instruction has them in registers: lane, byte of the access.
    pub values: Option<&'a dyn Fn(usize, usize) -> u8>,
    /// Reads what memory holds now, at a host address that a lane may access; false where there is nothing.
    pub peek: &'a dyn Fn(u64, &mut [u8]) -> bool,
    /// The device's memory.
    pub memory: &'a Memory,
}

/// What an access does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AccessKind {
    /// Load.
    Load,
    /// Store.
    Store,
    /// Atomic read-modify-write.
    Atomic,
}

impl AccessKind {
    /// Whether it writes.
    pub fn writes(self) -> bool {
        self != AccessKind::Load
    }
}

/// Semantics of an access or a fence (manual, section 8.4).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Semantics {
    /// `.weak`, or nothing.
    Weak,
    /// `.relaxed`, `.volatile`, `.mmio`, an atomic without semantics
    Relaxed,
    /// `.acquire`
    Acquire,
    /// `.release`
    Release,
    /// `.acq_rel`, `.sc`
    AcquireRelease,
}

impl Semantics {
    /// Begins or is an acquire pattern.
    pub fn acquires(self) -> bool {
        matches!(self, Semantics::Acquire | Semantics::AcquireRelease)
    }

    /// Ends or is a release pattern.
    pub fn releases(self) -> bool {
        matches!(self, Semantics::Release | Semantics::AcquireRelease)
    }
}

/// Scopes, from narrow to wide (manual, section 8.5).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Scope {
    /// `.cta`
    Cta,
    /// `.cluster`
    Cluster,
    /// `.gpu`
    Gpu,
    /// `.sys`
    Sys,
}

/// How an operation is ordered.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Ordering {
    /// Its semantics.
    pub semantics: Semantics,
    /// Its scope; of no meaning for weak ones.
    pub scope: Scope,
    /// `.volatile`
    pub volatile: bool,
    /// Made by an asynchronous copy or reduction, which is no part of the thread's program order (manual, section 8.9.1.1).
    pub asynchronous: bool,
    /// A reduction: what it reads makes no acquire pattern (manual, section 8.11.1).
    pub reduction: bool,
}

/// A point where order between threads arises.
#[derive(Clone, Copy, Debug)]
pub struct SyncEvent<'a> {
    /// Who, and where in the program.
    pub actor: Actor<'a>,
    /// What they do.
    pub kind: SyncKind,
}

/// Kinds of synchronisation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SyncKind {
    /// `bar`/`barrier`: arrival. [`Observer::barrier`] tells when it completes.
    Barrier {
        /// Its number.
        id: u32,
        /// All threads of a warp must execute the same instruction.
        aligned: bool,
    },
    /// `barrier.cluster.arrive`; without release semantics it is `.relaxed`.
    ClusterArrive(Semantics),
    /// Lanes have passed `barrier.cluster.wait`.
    ClusterPassed,
    /// `bar.warp.sync` completed: the lanes are all that took part.
    Warp,
    /// Another `.sync` instruction of a warp completed: the lanes are all that took part. It orders no memory.
    Exchange,
    /// An operation on the barrier object at that host address.
    Object {
        /// The address.
        at: u64,
        /// What was done.
        done: ObjectStep,
        /// The phase completed.
        completes: bool,
        /// Its ordering.
        order: Ordering,
    },
    /// `fence`, `membar`
    Fence(Semantics, Scope),
    /// `fence.mbarrier_init`
    FenceObjects,
    /// `cp.async.commit_group` and `cp.async.bulk.commit_group`
    Commit {
        /// Bulk copies.
        bulk: bool,
    },
    /// `cp.async.wait_group N` and the like: all but the last so many groups are complete.
    Wait {
        /// Bulk copies.
        bulk: bool,
        /// Groups that may be pending still; `None` for `wait_all`, which waits for copies without a group too.
        pending: Option<u32>,
    },
    /// The threads end.
    Exit,
}

/// What is done with a barrier object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ObjectStep {
    /// Initialised or made invalid.
    Initialise,
    /// An arrival.
    Arrive,
    /// An arrival that happens when the copies before it (`cp.async`) are complete.
    ArriveAfterCopies,
    /// Transactions of an asynchronous operation are complete.
    Complete,
    /// Transactions are expected.
    Expect,
    /// A test or wait that saw the phase complete.
    Waited,
    /// A test or wait that did not.
    Pending,
}

/// A CTA barrier completed.
#[derive(Clone, Copy, Debug)]
pub struct BarrierEvent<'a> {
    /// CTA index in the grid.
    pub cta: [u32; 3],
    /// Its number.
    pub id: u32,
    /// All threads that have not ended take part, and not a number of them.
    pub all: bool,
    /// Lanes that arrived, by warp.
    pub arrived: &'a [u32],
    /// Those of them that waited and go on now, by warp.
    pub waited: &'a [u32],
    /// Lanes that have not ended, by warp.
    pub live: &'a [u32],
}

/// A CTA begins.
#[derive(Clone, Copy, Debug)]
pub struct CtaEvent<'a> {
    /// CTA index in the grid.
    pub cta: [u32; 3],
    /// Host address and size of its shared memory.
    pub shared: (u64, u64),
    /// Host addresses and sizes of the local memory of its warps.
    pub locals: &'a [(u64, u64)],
}

/// What is reported of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Concern {
    /// A value that nobody wrote is used.
    Uninitialised,
    /// An instruction of a warp counts on lanes that do not take part.
    Participants,
    /// An access leaves its variable, and stays in memory that the thread may access.
    Bounds,
}

/// A use whose result the manual leaves undefined.
#[derive(Clone, Debug)]
pub struct UndefinedEvent<'a> {
    /// Who (one lane), and where in the program.
    pub actor: Actor<'a>,
    /// Of what sort.
    pub concern: Concern,
    /// What it does, with the operand.
    pub what: String,
}

/// Told about accesses and synchronisation by the engine.
pub trait Observer: Sync {
    /// Before an access that has passed all checks.
    fn memory(&self, event: &MemoryEvent<'_>);

    /// A use with an undefined result.
    fn undefined(&self, event: UndefinedEvent<'_>) {
        let _ = event;
    }

    /// At a synchronisation.
    fn sync(&self, event: &SyncEvent<'_>) {
        let _ = event;
    }

    /// A CTA barrier completed.
    fn barrier(&self, event: &BarrierEvent<'_>) {
        let _ = event;
    }

    /// A CTA begins.
    fn cta(&self, event: &CtaEvent<'_>) {
        let _ = event;
    }

    /// Device code allocated memory: host address and size.
    fn allocated(&self, at: u64, size: u64) {
        let _ = (at, size);
    }
}
