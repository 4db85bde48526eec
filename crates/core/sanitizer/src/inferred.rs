//! Events of accesses that no memory instruction performs, such as those of barrier objects and of tensor memory.

use margay_exec::{AccessKind, Actor, LANES, Memory, MemoryEvent, Ordering};
use margay_ir::MemSpace;
use std::cell::Cell;

/// The place of such an access, the same for all lanes, whose contents are not known.
pub struct Inferred {
    addresses: [u64; LANES],
    memory: Memory,
    memo: Cell<u32>,
}

impl Inferred {
    pub fn at(address: u64) -> Inferred {
        Inferred { addresses: [address; LANES], memory: Memory::new(0), memo: Cell::new(0) }
    }

    /// An access to `size` bytes.
    pub fn event<'a>(&'a self, actor: Actor<'a>, access: AccessKind, order: Ordering, size: u32) -> MemoryEvent<'a> {
        MemoryEvent {
            actor,
            addresses: &self.addresses,
            size,
            element: size,
            space: MemSpace::Shared,
            access,
            order,
            windows: &[],
            local: (0, 0),
            values: None,
            undefined: Default::default(),
            peek: &|_, _| false,
            memory: &self.memory,
            tracked: false,
            row: None,
            memo: &self.memo,
            registers: None,
        }
    }
}
