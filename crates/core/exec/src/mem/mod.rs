//! Device memory: allocations whose addresses are host addresses (manual, section 5.1; chapter 8 for its consistency).
//!
//! [`Memory`] knows every allocation that generic and global addresses may point into. The windows of CTAs (`.shared`) and
//! threads (`.local`) are [`Allocation`]s too, held by their engine and not registered here. An allocation is kept alive by
//! those who use it, so freeing one under a running kernel is a fault of the program and never of the host.

mod access;
mod raw;

pub use access::{Scalar, copy, fill, load, load_bytes, store, store_bytes, wide_lock};
pub use raw::{Block, Cell, RED_ZONE};

use crate::{Exhausted, texture::Objects};
use std::{
    collections::BTreeMap,
    sync::{
        Arc, RwLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

/// What an allocation is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// Allocated by the host.
    Global,
    /// A `.global` variable of a module.
    Variable,
    /// A `.const` variable of a module: device code may not write it.
    Const,
    /// A launch's parameter block: device code may not write it.
    Param,
    /// `malloc` of device code.
    Heap,
    /// A CTA's shared window.
    Shared,
    /// The local windows of a warp.
    Local,
    /// An array: the image of textures and surfaces. It has no address for device code.
    Array,
}

impl Kind {
    /// Whether device code may write there.
    pub const fn writable(self) -> bool {
        !matches!(self, Kind::Const | Kind::Param)
    }
}

/// An allocation.
#[derive(Debug)]
pub struct Allocation {
    /// Its bytes.
    pub block: Block,
    /// What it is for.
    pub kind: Kind,
    /// Name of the variable, or empty.
    pub name: Box<str>,
}

impl Allocation {
    /// An allocation outside of any [`Memory`]: a window.
    pub fn new(size: u64, align: u32, kind: Kind, name: &str) -> Result<Arc<Allocation>, Exhausted> {
        let block = usize::try_from(size).ok().and_then(|size| Block::new(size, align as usize));
        let block = block.ok_or_else(|| Exhausted(format!("the host has no {size} bytes for device memory")))?;
        Ok(Arc::new(Allocation { block, kind, name: name.into() }))
    }

    /// Address after the last byte.
    pub fn end(&self) -> u64 {
        self.block.base() + self.block.len() as u64
    }
}

impl std::fmt::Display for Allocation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let what = match self.kind {
            Kind::Global => "allocation",
            Kind::Variable => "variable",
            Kind::Const => "constant variable",
            Kind::Param => "parameter block",
            Kind::Heap => "device-heap allocation",
            Kind::Shared => "shared window",
            Kind::Local => "local window",
            Kind::Array => "array",
        };
        write!(f, "{what} ")?;
        if !self.name.is_empty() {
            write!(f, "`{}` ", self.name)?;
        }
        write!(f, "of {} bytes at {:#x}", self.block.len(), self.block.base())
    }
}

/// Why the host's access or `free` was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryError {
    /// The address.
    pub address: u64,
    /// Bytes wanted.
    pub size: u64,
    /// What is near it.
    pub note: String,
}

impl std::fmt::Display for MemoryError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes at {:#x} are in no allocation: {}", self.size, self.address, self.note)
    }
}

impl std::error::Error for MemoryError {}

/// The device's memory: what is allocated, and checked access to it. Shared between threads.
#[derive(Debug)]
pub struct Memory {
    blocks: RwLock<BTreeMap<u64, Arc<Allocation>>>,
    /// Counts frees, so that whoever remembers an allocation can see that it may be gone. Parameter blocks do not count: they
    /// go with their launch, and nobody may remember one for longer.
    epoch: AtomicU64,
    used: AtomicU64,
    limit: AtomicU64,
    heap_used: AtomicU64,
    heap_limit: AtomicU64,
    objects: Objects,
}

impl Default for Memory {
    fn default() -> Memory {
        Memory::new(u64::MAX)
    }
}

impl Memory {
    /// A memory of at most `limit` bytes, with CUDA's default device heap of 8 MiB.
    pub fn new(limit: u64) -> Memory {
        Memory {
            blocks: RwLock::default(),
            epoch: AtomicU64::new(0),
            used: AtomicU64::new(0),
            limit: AtomicU64::new(limit),
            heap_used: AtomicU64::new(0),
            heap_limit: AtomicU64::new(8 << 20),
            objects: Objects::default(),
        }
    }

    /// Allocates `size` zeroed bytes (at least one) at a multiple of `align`, a power of two.
    pub fn alloc(&self, size: u64, align: u32) -> Result<u64, Exhausted> {
        self.alloc_as(size, align, Kind::Global, "").map(|a| a.block.base())
    }

    /// Allocates with a kind and a name for messages.
    pub fn alloc_as(&self, size: u64, align: u32, kind: Kind, name: &str) -> Result<Arc<Allocation>, Exhausted> {
        let size = size.max(1);
        let before = self.used.fetch_add(size, Relaxed);
        let limit = self.limit.load(Relaxed);
        let made = match before.checked_add(size) {
            Some(total) if total <= limit => Allocation::new(size, align, kind, name),
            _ => Err(Exhausted(format!("device memory is full: {size} bytes wanted, {before} of {limit} in use"))),
        };
        match made {
            Ok(a) => {
                self.write_lock().insert(a.block.base(), a.clone());
                Ok(a)
            }
            Err(e) => {
                self.used.fetch_sub(size, Relaxed);
                Err(e)
            }
        }
    }

    /// Takes in memory that somebody else owns; [`Memory::free`] gives it back. It counts nothing. The error is the allocation that it
    /// would overlap.
    pub fn adopt(&self, block: Block, kind: Kind) -> Result<(), Arc<Allocation>> {
        let mut blocks = self.write_lock();
        let end = block.base() + block.len() as u64;
        if let Some((_, other)) = blocks.range(..end).next_back()
            && other.end() > block.base()
        {
            return Err(other.clone());
        }
        blocks.insert(block.base(), Arc::new(Allocation { block, kind, name: "".into() }));
        Ok(())
    }

    /// Frees the allocation that begins at `address`.
    pub fn free(&self, address: u64) -> Result<(), MemoryError> {
        let gone = self.write_lock().remove(&address);
        let Some(gone) = gone else { return Err(self.error(address, 0)) };
        let size = if gone.block.is_owned() { gone.block.len() as u64 } else { 0 };
        self.used.fetch_sub(size, Relaxed);
        if gone.kind == Kind::Heap {
            self.heap_used.fetch_sub(size, Relaxed);
        }
        if gone.kind != Kind::Param {
            self.epoch.fetch_add(1, Relaxed);
        }
        Ok(())
    }

    /// `malloc` of device code: 16-byte aligned, 0 when the device heap is full.
    pub fn heap_alloc(&self, size: u64) -> u64 {
        let size = size.max(1);
        let before = self.heap_used.fetch_add(size, Relaxed);
        if before.checked_add(size).is_some_and(|total| total <= self.heap_limit.load(Relaxed))
            && let Ok(a) = self.alloc_as(size, 16, Kind::Heap, "")
        {
            return a.block.base();
        }
        self.heap_used.fetch_sub(size, Relaxed);
        0
    }

    /// `free` of device code: null is fine, anything that `malloc` did not return is an error.
    pub fn heap_free(&self, address: u64) -> Result<(), MemoryError> {
        match self.find(address) {
            _ if address == 0 => Ok(()),
            Some(a) if a.kind == Kind::Heap && a.block.base() == address => self.free(address),
            _ => Err(self.error(address, 0)),
        }
    }

    /// Bytes that `malloc` of device code may hand out.
    pub fn set_heap_limit(&self, bytes: u64) {
        self.heap_limit.store(bytes, Relaxed);
    }

    /// See [`Memory::set_heap_limit`].
    pub fn heap_limit(&self) -> u64 {
        self.heap_limit.load(Relaxed)
    }

    /// Textures, samplers and surfaces by handle.
    pub fn objects(&self) -> &Objects {
        &self.objects
    }

    /// Bytes allocated, and the most that can be.
    pub fn usage(&self) -> (u64, u64) {
        (self.used.load(Relaxed), self.limit.load(Relaxed))
    }

    /// The allocation that an address lies in.
    pub fn find(&self, address: u64) -> Option<Arc<Allocation>> {
        let blocks = self.read_lock();
        let (_, a) = blocks.range(..=address).next_back()?;
        a.block.contains(address, 1).then(|| a.clone())
    }

    /// Changes whenever an allocation was freed that more than one launch may use.
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Relaxed)
    }

    /// Copies device memory to the host.
    pub fn read(&self, address: u64, to: &mut [u8]) -> Result<(), MemoryError> {
        let a = self.at(address, to.len())?;
        load_bytes(&a.block, address, to).ok_or_else(|| self.error(address, to.len()))
    }

    /// Copies host memory to the device.
    pub fn write(&self, address: u64, from: &[u8]) -> Result<(), MemoryError> {
        let a = self.at(address, from.len())?;
        store_bytes(&a.block, address, from).ok_or_else(|| self.error(address, from.len()))
    }

    /// Copies inside device memory; the ranges may overlap.
    pub fn copy(&self, to: u64, from: u64, size: u64) -> Result<(), MemoryError> {
        let size = usize::try_from(size).map_err(|_| self.error(to, usize::MAX))?;
        let (t, f) = (self.at(to, size)?, self.at(from, size)?);
        copy(&t.block, to, &f.block, from, size).ok_or_else(|| self.error(to, size))
    }

    /// Fills `count` elements with a pattern of 1, 2, 4 or 8 bytes.
    pub fn fill(&self, address: u64, pattern: &[u8], count: u64) -> Result<(), MemoryError> {
        let size = usize::try_from(count).ok().and_then(|n| n.checked_mul(pattern.len()));
        let size = size.ok_or_else(|| self.error(address, usize::MAX))?;
        let a = self.at(address, size)?;
        fill(&a.block, address, pattern, size).ok_or_else(|| self.error(address, size))
    }

    /// In words, what an address is near to.
    pub fn describe(&self, address: u64) -> String {
        let blocks = self.read_lock();
        let below = blocks.range(..=address).next_back().map(|(_, a)| a);
        let above = blocks.range(address..).next().map(|(_, a)| a);
        nearest(address, below.into_iter().chain(above).map(|a| &**a))
    }

    /// All allocations, by address.
    pub fn allocations(&self) -> Vec<Arc<Allocation>> {
        self.read_lock().values().cloned().collect()
    }

    fn at(&self, address: u64, size: usize) -> Result<Arc<Allocation>, MemoryError> {
        let found =
            self.find(address).or_else(|| if size == 0 { self.read_lock().values().next().cloned() } else { None });
        found.filter(|a| size == 0 || a.block.contains(address, size)).ok_or_else(|| self.error(address, size))
    }

    fn error(&self, address: u64, size: usize) -> MemoryError {
        MemoryError { address, size: size as u64, note: self.describe(address) }
    }

    // A panic while the lock was held cannot leave the map half changed, so a poisoned lock is as good as a whole one.
    fn read_lock(&self) -> std::sync::RwLockReadGuard<'_, BTreeMap<u64, Arc<Allocation>>> {
        self.blocks.read().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn write_lock(&self) -> std::sync::RwLockWriteGuard<'_, BTreeMap<u64, Arc<Allocation>>> {
        self.blocks.write().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// In words, how an address lies relative to the nearest of some allocations.
pub fn nearest<'a>(address: u64, among: impl Iterator<Item = &'a Allocation>) -> String {
    let distance = |a: &Allocation| match () {
        _ if address < a.block.base() => a.block.base() - address,
        _ if address >= a.end() => address - a.end() + 1,
        _ => 0,
    };
    match among.min_by_key(|a| distance(a)) {
        None => "nothing is allocated".into(),
        Some(a) if address < a.block.base() => format!("{} bytes before the {a}", a.block.base() - address),
        Some(a) if address >= a.end() => format!("{} bytes after the end of the {a}", address - a.end()),
        Some(a) => format!("{} bytes into the {a}", address - a.block.base()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_was_written_and_refuses_the_rest() {
        let m = Memory::new(1000);
        let a = m.alloc(13, 1).unwrap();
        let data: Vec<u8> = (0..13).collect();
        m.write(a, &data).unwrap();
        let mut back = [0; 9];
        m.read(a + 3, &mut back).unwrap();
        assert_eq!(back, [3, 4, 5, 6, 7, 8, 9, 10, 11]);
        assert!(m.write(a + 5, &data).is_err());
        assert!(m.alloc(988, 8).is_err(), "13 bytes are in use");
        assert!(m.describe(a + 20).contains("7 bytes after the end"), "{}", m.describe(a + 20));
        let epoch = m.epoch();
        m.free(a).unwrap();
        assert_ne!(m.epoch(), epoch);
        assert!(m.free(a).is_err());
        assert!(m.read(a, &mut back).is_err());
        assert_eq!(m.usage().0, 0);
    }

    #[test]
    fn copies_overlapping_ranges_both_ways() {
        let m = Memory::default();
        let a = m.alloc(64, 16).unwrap();
        let data: Vec<u8> = (0..64).collect();
        for (to, from) in [(3, 0), (0, 3), (8, 16), (17, 16)] {
            m.write(a, &data).unwrap();
            m.copy(a + to, a + from, 40).unwrap();
            let mut want = data.clone();
            want.copy_within(from as usize..from as usize + 40, to as usize);
            let mut got = vec![0; 64];
            m.read(a, &mut got).unwrap();
            assert_eq!(got, want, "{from} to {to}");
        }
        m.fill(a + 1, &[0xab, 0xcd], 3).unwrap();
        let mut got = [0; 8];
        m.read(a, &mut got).unwrap();
        assert_eq!(got[1..7], [0xab, 0xcd, 0xab, 0xcd, 0xab, 0xcd]);
    }

    #[test]
    fn the_device_heap_has_its_limit() {
        let m = Memory::default();
        m.set_heap_limit(100);
        let a = m.heap_alloc(60);
        assert!(a != 0 && a % 16 == 0);
        assert_eq!(m.heap_alloc(60), 0);
        assert!(m.heap_free(a + 16).is_err());
        m.heap_free(0).unwrap();
        m.heap_free(a).unwrap();
        assert!(m.heap_free(a).is_err(), "freed twice");
        assert_ne!(m.heap_alloc(100), 0);
    }
}
