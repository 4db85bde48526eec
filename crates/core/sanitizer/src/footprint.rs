//! What a piece of work has accessed in device memory, byte by byte: compared between pieces of work that nothing orders.

use crate::marks::Marks;
use margay_exec::{AccessKind, MemoryEvent, Ordering, Scope, Semantics, SpreadEvent};

/// The bytes that a launch or another piece of work has accessed. Strong accesses of the scope of the device or wider are kept apart: two
/// of them do not race (manual, section 8.7.1).
#[derive(Default)]
pub struct Footprint {
    reads: Marks,
    writes: Marks,
    strong_reads: Marks,
    strong_writes: Marks,
    /// It orders what it does with what the program does: by accesses or fences of the scope of the system.
    system: bool,
}

/// What two pieces of work without order between them do to the same bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Conflict {
    /// The first byte.
    pub address: u64,
    /// Number of bytes from there on that both access in this way.
    pub bytes: u64,
    /// Whether each writes; at least one does.
    pub writes: [bool; 2],
}

/// The ranges that accesses of this size make up together: those of neighboring lanes are often one.
fn ranges(starts: impl Iterator<Item = u64>, size: u64) -> impl Iterator<Item = (u64, u64)> {
    let mut starts = starts.peekable();
    std::iter::from_fn(move || {
        let first = starts.next()?;
        let mut bytes = size;
        // Wild addresses may wrap around.
        while starts.next_if_eq(&first.wrapping_add(bytes)).is_some() {
            bytes += size;
        }
        Some((first, bytes))
    })
}

impl Footprint {
    /// Nothing.
    pub const fn new() -> Footprint {
        const NONE: Marks = Marks::new();
        Footprint { reads: NONE, writes: NONE, strong_reads: NONE, strong_writes: NONE, system: false }
    }

    /// How many bytes of a range are accessed.
    pub fn accessed(&self, base: u64, bytes: u64) -> u64 {
        Marks::count(&[&self.reads, &self.writes, &self.strong_reads, &self.strong_writes], base, bytes)
    }

    /// Adds a range that is read, or written.
    pub fn add(&mut self, address: u64, bytes: u64, writes: bool) {
        if writes { &mut self.writes } else { &mut self.reads }.mark(address, bytes);
    }

    /// Adds an access of a launch, unless it is to shared or local memory.
    pub(crate) fn note(&mut self, e: &MemoryEvent<'_>) {
        let addresses = || crate::lanes(e.actor.lanes).map(|lane| e.addresses[lane as usize]);
        let (low, high) = addresses().fold((u64::MAX, 0), |(low, high), at| (low.min(at), high.max(at)));
        let windows = || e.windows.iter().chain([&e.local]);
        let near = windows().any(|(base, len)| low < base.saturating_add(*len) && *base <= high);
        let own = |at: u64| near && windows().any(|(base, len)| at.wrapping_sub(*base) < *len);
        self.note_all((e.access, e.order, e.size), || addresses().filter(|at| !own(*at)));
    }

    /// Adds an access of a launch to neither shared nor local memory.
    pub(crate) fn note_spread(&mut self, e: &SpreadEvent<'_>) {
        let addresses = || crate::lanes(e.actor.lanes).map(|lane| e.addresses[lane as usize]);
        self.note_all((e.access, e.order, e.size), addresses);
    }

    fn note_all<I: Iterator<Item = u64>>(
        &mut self,
        (access, order, size): (AccessKind, Ordering, u32),
        addresses: impl Fn() -> I,
    ) {
        let strong = order.semantics != Semantics::Weak && order.scope >= Scope::Gpu;
        let to: &mut [&mut Marks] = match (access, strong) {
            (AccessKind::Load, false) => &mut [&mut self.reads],
            (AccessKind::Load, true) => &mut [&mut self.strong_reads],
            (AccessKind::Store | AccessKind::Free, false) => &mut [&mut self.writes],
            (AccessKind::Store | AccessKind::Free, true) => &mut [&mut self.strong_writes],
            (AccessKind::Atomic, _) => &mut [&mut self.strong_reads, &mut self.strong_writes],
        };
        self.system |= strong && order.scope == Scope::Sys && addresses().next().is_some();
        to.iter_mut().for_each(|marks| marks.mark_all(ranges(addresses(), size.into())));
    }

    /// Adds everything of another footprint.
    pub fn join(&mut self, other: &Footprint) {
        self.reads.join(&other.reads);
        self.writes.join(&other.writes);
        self.strong_reads.join(&other.strong_reads);
        self.strong_writes.join(&other.strong_writes);
        self.system |= other.system;
    }

    /// Adds a fence of the scope of the system.
    pub(crate) fn note_system(&mut self) {
        self.system = true;
    }

    /// Whether it may be ordered with the program by something else than the end of the work.
    pub fn is_system(&self) -> bool {
        self.system
    }

    /// Whether all bytes of a range are written; `None` if not even all are accessed.
    pub fn whole(&self, base: u64, bytes: u64) -> Option<bool> {
        let written = Marks::count(&[&self.writes, &self.strong_writes], base, bytes) == bytes;
        (written || self.accessed(base, bytes) == bytes).then_some(written)
    }

    /// Forgets a range: it is a new allocation.
    pub fn forget(&mut self, base: u64, bytes: u64) {
        [&mut self.reads, &mut self.writes, &mut self.strong_reads, &mut self.strong_writes]
            .into_iter()
            .for_each(|marks| marks.forget(base, bytes));
    }

    /// Whether some of the bytes of a range are read, and written, by accesses that are not strong.
    pub(crate) fn plain(&self, base: u64, bytes: u64) -> [bool; 2] {
        [&self.reads, &self.writes].map(|marks| Marks::count(&[marks], base, bytes) > 0)
    }

    /// The bytes that are written.
    pub(crate) fn written(&self) -> impl Iterator<Item = (u64, u64)> {
        self.writes.ranges().chain(self.strong_writes.ranges())
    }

    /// Calls `visit` with ranges that both access, of which at least one writes; some come several times.
    pub(crate) fn conflicts(&self, other: &Footprint, visit: &mut dyn FnMut(u64, u64)) {
        let Footprint { reads, writes, strong_reads, strong_writes, .. } = self;
        for theirs in [&other.reads, &other.writes, &other.strong_reads, &other.strong_writes] {
            writes.common_ranges(theirs, visit);
        }
        for theirs in [&other.reads, &other.writes] {
            strong_writes.common_ranges(theirs, visit);
        }
        for ours in [reads, strong_reads] {
            ours.common_ranges(&other.writes, visit);
        }
        reads.common_ranges(&other.strong_writes, visit);
    }

    /// The first bytes on which the two conflict; writes against writes come first.
    pub fn conflict(&self, other: &Footprint) -> Option<Conflict> {
        let pairs = [
            (&self.writes, &other.writes, [true, true]),
            (&self.writes, &other.strong_writes, [true, true]),
            (&self.strong_writes, &other.writes, [true, true]),
            (&self.writes, &other.reads, [true, false]),
            (&self.reads, &other.writes, [false, true]),
            (&self.writes, &other.strong_reads, [true, false]),
            (&self.strong_reads, &other.writes, [false, true]),
            (&self.strong_writes, &other.reads, [true, false]),
            (&self.reads, &other.strong_writes, [false, true]),
        ];
        pairs.into_iter().find_map(|(own, others, writes)| {
            own.common(others).map(|(address, bytes)| Conflict { address, bytes, writes })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_conflicts_with_what_others_access() {
        let (mut a, mut b) = (Footprint::default(), Footprint::default());
        a.add(0x1000, 64, false);
        b.add(0x1000, 64, false);
        assert_eq!(a.conflict(&b), None, "reads do not conflict");
        b.add(0x1020, 0x2000, true);
        let found = Conflict { address: 0x1020, bytes: 0x20, writes: [false, true] };
        assert_eq!((a.conflict(&b), b.conflict(&a)), (Some(found), Some(Conflict { writes: [true, false], ..found })));
        // Neighboring bytes are no conflict.
        let mut c = Footprint::default();
        c.add(0x1000, 0x20, true);
        assert_eq!(c.conflict(&b), Some(Conflict { address: 0x1000, bytes: 0x20, writes: [true, false] }));
        assert_eq!((b.accessed(0x1000, 0x3000), b.accessed(0x1038, 16), b.accessed(0, 0x1000)), (0x2020, 16, 0));
        b.forget(0x1000, 0x20);
        assert_eq!(c.conflict(&b), None);
        assert_eq!(
            (c.whole(0x1000, 0x20), c.whole(0x1000, 0x21), a.whole(0x1000, 64)),
            (Some(true), None, Some(false))
        );
        // Across pages.
        c.add(0x1fff, 0x1002, true);
        assert_eq!(c.conflict(&b), Some(Conflict { address: 0x1fff, bytes: 0x1002, writes: [true, true] }));
    }
}
