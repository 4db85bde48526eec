//! Watching an execution: what sanitizers and tracers are told.

use crate::LANES;
use margay_ir::{FuncId, MemSpace, SourcePlace};

/// One memory instruction of (part of) a warp, before it takes effect.
#[derive(Clone, Copy, Debug)]
pub struct MemoryEvent<'a> {
    /// CTA index in the grid.
    pub cta: [u32; 3],
    /// Warp index in the CTA.
    pub warp: u32,
    /// Lanes that access.
    pub lanes: u32,
    /// Host addresses by lane.
    pub addresses: &'a [u64; LANES],
    /// Bytes that each lane accesses.
    pub size: u32,
    /// The instruction's space.
    pub space: MemSpace,
    /// What it does.
    pub access: AccessKind,
    /// Volatile or ordered: threads may talk through it.
    pub strong: bool,
    /// Host addresses of the shared memory of the CTA (first) and of the others of its cluster, with their sizes.
    pub windows: &'a [(u64, u64)],
    /// Host addresses of the local memory of the warp's threads, with its size.
    pub local: (u64, u64),
    /// Function and place.
    pub at: (FuncId, SourcePlace),
}

/// What an access does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AccessKind {
    /// Plain or ordered load.
    Load,
    /// Plain or ordered store.
    Store,
    /// Atomic read-modify-write.
    Atomic,
}

/// A point where threads wait for each other.
#[derive(Clone, Copy, Debug)]
pub struct SyncEvent {
    /// CTA index in the grid.
    pub cta: [u32; 3],
    /// Warp index in the CTA.
    pub warp: u32,
    /// Lanes that arrive.
    pub lanes: u32,
    /// What they arrive at.
    pub kind: SyncKind,
    /// Function and place.
    pub at: (FuncId, SourcePlace),
}

/// Kinds of synchronisation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SyncKind {
    /// `bar`/`barrier` of that number: arrival.
    Barrier(u32),
    /// A CTA barrier of that number completed.
    BarrierDone(u32),
    /// `barrier.cluster`
    Cluster,
    /// A `.sync` instruction of a warp with that member mask.
    Warp(u32),
    /// An operation on the barrier object at that host address.
    Object(u64),
    /// `fence`, `membar`
    Fence,
}

/// A use whose result the manual leaves undefined.
#[derive(Clone, Debug)]
pub struct UndefinedEvent {
    /// CTA index in the grid.
    pub cta: [u32; 3],
    /// Warp index in the CTA.
    pub warp: u32,
    /// The lane.
    pub lane: u32,
    /// What it does, with the operand.
    pub what: String,
    /// Function and place.
    pub at: (FuncId, SourcePlace),
}

/// Told about accesses and synchronisation by the engine. Calls come from several host threads when CTAs run in parallel.
pub trait Observer: Sync {
    /// Before an access that has passed all checks.
    fn memory(&self, event: &MemoryEvent<'_>);

    /// A use with an undefined result.
    fn undefined(&self, event: UndefinedEvent) {
        let _ = event;
    }

    /// At a synchronisation.
    fn sync(&self, event: &SyncEvent) {
        let _ = event;
    }
}
