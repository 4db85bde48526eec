//! The device heap's small objects: side by side in one block, with a table of what lies where.
//!
//! Code that follows pointers accesses another object with each lane. Here the object at an address is found by one read of a table without
//! a lock, and objects lie closer together than blocks of their own could.

use super::{Block, RED_ZONE};
use crate::LANES;
use parking_lot::Mutex;
use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{
            AtomicU64,
            Ordering::{AcqRel, Acquire, Release},
        },
    },
};

/// Size in bytes of the largest objects.
pub const LARGEST: usize = 64 << 10;
/// Least number of bytes without an object behind a slot.
const LEAST_GAP: usize = 64;
/// Bytes of freed slots before one is used again, so that stale pointers to them fault.
const MAX_FREE: usize = 1 << 20;
/// In the entry of an object's first granule: code may have cached its range.
const CACHED: u64 = 1 << 63;

/// The object that an entry is of.
#[derive(Clone, Copy)]
struct Entry(u64);

impl Entry {
    /// Granule `index` of an object of `len` bytes.
    fn new(index: usize, len: usize) -> Entry {
        Entry((index as u64) << 32 | len as u64)
    }

    /// Number of granules since the object's first.
    fn index(self) -> u64 {
        self.0 >> 32 & Arena::INDEX
    }

    /// Size of the object in bytes; 0 if there is none.
    fn len(self) -> u64 {
        self.0 & Arena::LENGTH
    }
}

/// Memory for small objects.
#[derive(Debug)]
pub struct Arena {
    memory: Block,
    /// An [`Entry`] for each granule.
    table: Block,
    slots: Mutex<Slots>,
}

#[derive(Default, Debug)]
struct Slots {
    /// Bytes that were used at some time.
    used: usize,
    /// Freed slots by the logarithm of their capacity, oldest first, and their size together.
    free: [VecDeque<u64>; LARGEST.ilog2() as usize + 1],
    free_bytes: usize,
}

impl Arena {
    /// Bytes for which the table has one entry. Objects begin at multiples of it, and share none.
    pub const GRANULE: usize = 32;
    /// The bits of an entry that are the object's size in bytes; 0 if there is none.
    pub const LENGTH: u64 = u32::MAX as u64;
    /// The bits of an entry, shifted right by 32, that are the number of granules since the object's first.
    pub const INDEX: u64 = !CACHED >> 32;

    /// Address and size of the memory, and the address of the table, for generated code: by granule an entry of 64 bits.
    pub fn place(&self) -> [u64; 3] {
        [self.memory.base(), self.memory.len() as u64, self.table.base()]
    }

    /// An arena of `len` bytes; `None` if the host is out of memory. Its pages cost nothing until they are used.
    pub fn new(len: usize) -> Option<Arc<Arena>> {
        let memory = Block::new(len, Self::GRANULE)?;
        let table = Block::new(len.div_ceil(Self::GRANULE) * size_of::<u64>(), size_of::<u64>())?;
        Some(Arc::new(Arena { memory, table, slots: Mutex::default() }))
    }

    pub(super) fn memory(&self) -> &Block {
        &self.memory
    }

    /// A zeroed slot of `room` bytes, a power of two up to [`LARGEST`]; `None` if the arena is full. Some granules behind each slot have no
    /// object, so that accesses past the end fault.
    pub fn slot(self: &Arc<Arena>, room: usize) -> Option<Block> {
        let mut slots = self.slots.lock();
        let slots = &mut *slots;
        let size = room.next_multiple_of(Self::GRANULE) + room.clamp(LEAST_GAP, RED_ZONE);
        let fresh = self.memory.len() - slots.used;
        if slots.free_bytes > MAX_FREE || fresh < size {
            let list = slots.free.get_mut(room.ilog2() as usize)?;
            if let Some(base) = list.pop_front() {
                slots.free_bytes -= room;
                let mut block = Block::slot(self, base, room)?;
                block.renew(room);
                return Some(block);
            }
        }
        if fresh < size {
            return None;
        }
        let base = self.memory.base() + slots.used as u64;
        slots.used += size;
        Block::slot(self, base, room)
    }

    /// Takes back a slot whose block is gone.
    pub(super) fn take_back(&self, base: u64, room: usize) {
        let mut slots = self.slots.lock();
        if let Some(list) = slots.free.get_mut(room.ilog2() as usize) {
            list.push_back(base);
            slots.free_bytes += room;
        }
    }

    /// The entries of the granules from an address on.
    fn entries(&self, address: u64, count: usize) -> Option<&[AtomicU64]> {
        let offset = address.checked_sub(self.memory.base())?;
        self.table.cells(self.table.base() + offset / Self::GRANULE as u64 * size_of::<u64>() as u64, count)
    }

    /// Enters an object of `len` bytes at the start of a slot.
    pub fn enter(&self, base: u64, len: usize) {
        for (i, entry) in self.entries(base, len.div_ceil(Self::GRANULE)).into_iter().flatten().enumerate() {
            entry.store(Entry::new(i, len).0, Release);
        }
    }

    /// Removes an object; returns whether its range may be cached.
    pub fn remove(&self, base: u64, len: usize) -> bool {
        let entries = self.entries(base, len.div_ceil(Self::GRANULE)).unwrap_or_default();
        entries.iter().fold(false, |cached, entry| cached | (entry.swap(0, AcqRel) & CACHED != 0))
    }

    /// Start and length of the object at an address.
    #[inline]
    pub fn find(&self, address: u64) -> Option<[u64; 2]> {
        let entry = Entry(self.entries(address, 1)?[0].load(Acquire));
        let start = (address - entry.index() * Self::GRANULE as u64) & !(Self::GRANULE as u64 - 1);
        (address - start < entry.len()).then(|| [start, entry.len()])
    }

    /// Notes that the range of the object that begins at an address gets cached; false if it was freed meanwhile.
    pub fn note_cached(&self, base: u64) -> bool {
        self.entries(base, 1).is_some_and(|e| Entry(e[0].fetch_or(CACHED, AcqRel)).len() != 0)
    }

    /// Those of some lanes that access `bytes` bytes inside one object.
    pub fn lanes_within(&self, addresses: &[u64; LANES], lanes: u32, bytes: u64) -> u32 {
        let within = |lane: &usize| {
            let address = addresses[*lane];
            self.find(address).is_some_and(|[start, len]| bytes <= len - (address - start))
        };
        (0..LANES).filter(|lane| lanes >> lane & 1 != 0).filter(within).fold(0, |found, lane| found | 1 << lane)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arena() -> Arc<Arena> {
        Arena::new(1 << 16).unwrap()
    }

    #[test]
    fn an_object_is_found_at_each_of_its_bytes() {
        let arena = arena();
        let slots = [1, 32, 128].map(|room| arena.slot(room).unwrap());
        for (slot, len) in slots.iter().zip([1, 31, 100]) {
            arena.enter(slot.base(), len);
        }
        for (slot, len) in slots.iter().zip([1, 31, 100]) {
            let (base, len) = (slot.base(), len as u64);
            let found = |address| arena.find(address) == Some([base, len]);
            assert!((0..len).all(|i| found(base + i)) && !found(base + len) && !found(base - 1));
        }
        assert_eq!(arena.find(arena.memory.base() - 1), None);
        assert_eq!(arena.find(arena.memory.base() + (1 << 16)), None);
        let at = slots[2].base();
        let addresses = std::array::from_fn(|lane| at + 90 + lane as u64);
        assert_eq!(arena.lanes_within(&addresses, 0xffff, 4), 0x7f, "bytes 90 to 99 are left");
        assert!(!arena.remove(slots[1].base(), 31) && arena.find(slots[1].base()).is_none());
    }

    #[test]
    fn removal_tells_whether_a_range_was_cached() {
        let arena = arena();
        let slot = arena.slot(64).unwrap();
        arena.enter(slot.base(), 64);
        assert!(arena.note_cached(slot.base()));
        assert_eq!(arena.find(slot.base() + 63), Some([slot.base(), 64]));
        assert!(arena.remove(slot.base(), 64));
        assert!(!arena.note_cached(slot.base()), "it is gone");
    }

    #[test]
    fn slots_are_reused_only_when_no_others_are_left() {
        let arena = arena();
        let slots: Vec<Block> = std::iter::from_fn(|| arena.slot(1 << 10)).collect();
        assert_eq!(slots.len(), (1 << 16) / (1024 + RED_ZONE));
        let bases: Vec<u64> = slots.iter().map(Block::base).collect();
        drop(slots);
        let again: Vec<Block> = std::iter::from_fn(|| arena.slot(1 << 10)).collect();
        assert_eq!(again.iter().map(Block::base).collect::<Vec<_>>(), bases);
    }
}
