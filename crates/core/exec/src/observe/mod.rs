//! Observation of an execution by sanitizers and tracers.
//!
//! A launch with an observer runs on one host thread, so calls come in execution order: an access is reported
//! immediately before it takes effect.

mod event;
mod order;
mod sync;
mod uses;

pub use event::{
    Actor, Concern, CtaEvent, MemoryEvent, RowEvent, RowLoad, RowLoads, RowPlace, SpreadEvent, TensorEvent, Undefined,
    UndefinedEvent,
};
pub use order::{AccessKind, Ordering, Scope, Semantics, Tensor};
pub use sync::{BarrierEvent, Grouped, ObjectStep, SyncEvent, SyncKind};
pub use uses::{LINE_BYTES, LineUse, LineUses};

use crate::Image;
use margay_ir::{FuncId, SourcePlace};

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
    /// before the completion of a barrier of the whole CTA may be left out.
    fn noted(&mut self, event: &RowLoads<'_>);

    /// An access that may lie outside the object from which its address derives; it is reported in addition to the others. Returns the first
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

    /// All threads of a CTA, given by warp in `live`, have passed `times` barriers of the whole CTA since the last event.
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

    /// Whether the events of compiled code suffice for a launch of `kernel`: accesses and synchronization, but not the values of registers
    /// or the ends of growing frames.
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
