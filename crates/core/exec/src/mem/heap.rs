//! The heap of device code: `malloc` and `free`.

use super::{
    Allocation, Arena, BadFree, Block, Initiator, Kind, Memory, Path, Reach, allocation::new_block, arena, take,
};
use crate::Exhausted;
use std::sync::{Arc, atomic::Ordering::Relaxed};

/// The least and the largest size in bytes of the memory for small objects: objects and what lies between them.
const ARENA: [u64; 2] = [1 << 20, 1 << 30];

impl Memory {
    /// `malloc` of device code: 16-byte aligned; 0 when the device heap is full.
    pub fn heap_alloc(&self, reach: Reach, size: u64) -> u64 {
        let size = size.max(1);
        let limit = self.heap_limit.load(Relaxed);
        if take(&self.heap_used, size, limit).is_err() {
            return 0;
        }
        match self.alloc_on_heap(reach, size, limit) {
            Ok(a) => a.block.base(),
            Err(_) => {
                self.heap_used.fetch_sub(size, Relaxed);
                0
            }
        }
    }

    /// Freed memory is reused only when there is much of it, so that stale pointers to it fault.
    fn alloc_on_heap(&self, reach: Reach, size: u64, limit: u64) -> Result<Arc<Allocation>, Exhausted> {
        let room = size.checked_next_power_of_two().unwrap_or(size);
        let old = self.launches.reuse(room, size as usize, limit.max(1 << 20));
        match old.filter(|b| reach == Reach::Full || b.base() + b.room() as u64 <= 1 << 32) {
            Some(block) => self.enter(size, |_| Ok(Arc::new(Allocation::of(block, Kind::Heap, "")))),
            None => self.enter(size, |_| {
                let slot = (reach == Reach::Full).then(|| self.slot(room, limit)).flatten();
                let block = slot.map_or_else(|| new_block(reach, room, 16), Ok)?;
                let mut a = Allocation::of(block, Kind::Heap, "");
                a.block.shorten(size as usize);
                Ok(Arc::new(a))
            }),
        }
    }

    /// Memory for a small object of the heap, which may have `limit` bytes.
    fn slot(&self, room: u64, limit: u64) -> Option<Block> {
        let room = usize::try_from(room).ok().filter(|room| *room <= arena::LARGEST)?;
        let arena = self.arena.get_or_init(|| Arena::new(limit.saturating_mul(4).clamp(ARENA[0], ARENA[1]) as usize));
        arena.as_ref()?.slot(room)
    }

    /// The small objects of the device heap, if there are any.
    pub fn heap_objects(&self) -> Option<&Arena> {
        self.arena.get()?.as_deref()
    }

    /// `free` of device code, called there: null is allowed; any other pointer that `malloc` did not return is an error.
    pub fn heap_free(&self, address: u64, by: Initiator, path: Path) -> Result<(), BadFree> {
        if address == 0 {
            return Ok(());
        }
        match self.remove(address, (by, path), |a| a.kind == Kind::Heap) {
            Ok(gone) => {
                self.origins.remove(address);
                // Beyond a bound, the memory is reused without waiting.
                let _ = self.keep(gone);
                Ok(())
            }
            Err(e) => {
                let twice = self.find(address).is_none() && self.history.is_freed_heap(address);
                Err(BadFree { twice, note: e.note })
            }
        }
    }

    /// Sets the bytes that `malloc` of device code may allocate.
    pub fn set_heap_limit(&self, bytes: u64) {
        self.heap_limit.store(bytes, Relaxed);
    }

    /// The bytes that `malloc` of device code may allocate.
    pub fn heap_limit(&self) -> u64 {
        self.heap_limit.load(Relaxed)
    }
}
