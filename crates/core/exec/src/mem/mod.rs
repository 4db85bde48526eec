//! Device memory: allocations whose addresses are host addresses (manual, section 5.1; chapter 8 for its consistency).
//!
//! [`Memory`] holds every allocation that generic and global addresses may point into. The windows of CTAs (`.shared`)
//! and threads (`.local`) are [`Allocation`]s too, but belong to their engine and are not registered here.
//!
//! Freeing an allocation while a kernel uses it is a fault of the program and never of the host: engines drop its range
//! at once, so that the next access is out of bounds, and its bytes go back to the host only when all launches that ran
//! at the time have ended ([`launches`]). Until then, an access in progress is harmless.

mod access;
mod allocation;
mod arena;
mod heap;
mod history;
mod launches;
mod lookaside;
mod origins;
mod ranges;
mod raw;
mod rows;
mod untouched;
mod written;

pub use access::{Scalar, copy, fill, load, load_bytes, store, store_bytes};
pub use allocation::{Allocation, Kind, Reach, nearest};
pub use arena::Arena;
pub use history::{Initiator, Path};
pub use launches::Running;
pub use lookaside::{Lookaside, is_small};
pub use origins::Origins;
pub use ranges::Ranges;
pub use raw::{AtomicU128, Block, Cell, RED_ZONE};
pub use rows::{lanes_at_home, lanes_misaligned, lanes_within};
pub use written::{Writes, Written};

use crate::{Exhausted, texture::Objects};
use history::History;
use launches::Launches;
use parking_lot::RwLock;
use std::{
    collections::BTreeMap,
    sync::{
        Arc, OnceLock,
        atomic::{
            AtomicU64,
            Ordering::{Relaxed, SeqCst},
            fence,
        },
    },
};

/// Distance in bytes past an allocation within which an access is probably an overrun.
const JUST_BEHIND: u64 = 512;

/// Why an access or `free` by the host was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryError {
    /// The address.
    pub address: u64,
    /// Size of the access in bytes.
    pub size: u64,
    /// A description of the memory near the address.
    pub note: String,
}

impl std::fmt::Display for MemoryError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes at {:#x} are outside every allocation: {}", self.size, self.address, self.note)
    }
}

impl std::error::Error for MemoryError {}

/// Why a `free` by device code was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadFree {
    /// It was freed before.
    pub twice: bool,
    /// A description of the memory near the address.
    pub note: String,
}

/// Memory on loan that is no longer accessible to new accesses ([`Memory::exchange`]).
#[derive(Debug)]
#[must_use = "its owner must not take it back before it is settled"]
pub struct Retracted(Arc<Allocation>);

/// Device memory: allocations, and checked access to them. Shared between threads.
#[derive(Debug)]
pub struct Memory {
    blocks: RwLock<BTreeMap<u64, Arc<Allocation>>>,
    launches: Launches,
    history: History,
    /// Counts frees of allocations whose range may be cached, so that holders can detect them.
    epoch: AtomicU64,
    used: AtomicU64,
    limit: AtomicU64,
    heap_used: AtomicU64,
    heap_limit: AtomicU64,
    /// Small objects of the heap, from its first use on; `None` if the host has no room for it.
    arena: OnceLock<Option<Arc<Arena>>>,
    objects: Objects,
    writes: Writes,
    origins: Origins,
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
            launches: Launches::default(),
            history: History::default(),
            epoch: AtomicU64::new(0),
            used: AtomicU64::new(0),
            limit: AtomicU64::new(limit),
            heap_used: AtomicU64::new(0),
            heap_limit: AtomicU64::new(8 << 20),
            arena: OnceLock::new(),
            objects: Objects::default(),
            writes: Writes::default(),
            origins: Origins::default(),
        }
    }

    /// Allocates `size` zeroed bytes (at least one), aligned to `align`, a power of two.
    pub fn alloc(&self, size: u64, align: u32) -> Result<u64, Exhausted> {
        self.alloc_as(size, align, Kind::Global, "").map(|a| a.block.base())
    }

    /// Allocates with a kind and a name for messages.
    pub fn alloc_as(&self, size: u64, align: u32, kind: Kind, name: &str) -> Result<Arc<Allocation>, Exhausted> {
        self.alloc_in(Reach::Full, size, align, kind, name)
    }

    /// The same in reach of a program.
    pub fn alloc_in(
        &self,
        reach: Reach,
        size: u64,
        align: u32,
        kind: Kind,
        name: &str,
    ) -> Result<Arc<Allocation>, Exhausted> {
        self.enter(size.max(1), |size| Allocation::new(reach, size, align, kind, name))
    }

    /// Accounts for an allocation and registers it.
    fn enter(
        &self,
        size: u64,
        make: impl FnOnce(u64) -> Result<Arc<Allocation>, Exhausted>,
    ) -> Result<Arc<Allocation>, Exhausted> {
        let limit = self.limit.load(Relaxed);
        take(&self.used, size, limit).map_err(|before| {
            Exhausted(format!("device memory is full: {size} bytes requested, {before} of {limit} in use"))
        })?;
        match make(size) {
            Ok(a) => {
                self.blocks.write().insert(a.block.base(), a.clone());
                if let Some(arena) = a.block.arena() {
                    arena.enter(a.block.base(), a.block.len());
                }
                if matches!(a.kind, Kind::Global | Kind::Heap) {
                    self.writes.allocated(a.block.base(), size);
                }
                Ok(a)
            }
            Err(e) => {
                self.used.fetch_sub(size, Relaxed);
                Err(e)
            }
        }
    }

    /// Registers memory with another owner, until [`Memory::free`] or [`Memory::exchange`]; it does not count
    /// towards the limit. The error is an allocation that it would overlap.
    pub fn adopt(&self, block: Block, kind: Kind) -> Result<(), Arc<Allocation>> {
        self.adopt_as(block, kind, "")
    }

    /// The same with a name for messages.
    pub fn adopt_as(&self, block: Block, kind: Kind, name: &str) -> Result<(), Arc<Allocation>> {
        adopt(&mut self.blocks.write(), block, kind, name)
    }

    /// Frees the allocation that begins at `address`. Waits for the running launches if the memory is on loan
    /// ([`Memory::adopt`]), so that its owner may reuse it, or if very much was freed during launches.
    ///
    /// Must not be called from a thread that executes a launch, which would wait for itself.
    pub fn free(&self, address: u64) -> Result<(), MemoryError> {
        let gone = self.remove(address, (Initiator::Host, Path::default()), |_| true)?;
        if !gone.block.is_owned() {
            self.settle(vec![Retracted(gone)]);
        } else if self.keep(gone) {
            self.launches.wait();
        }
        Ok(())
    }

    /// Atomically replaces loans: removes those at the addresses `gone` and adopts `blocks`. Does not wait for accesses
    /// in progress to the removed memory, which its owner must leave alone until [`Memory::settle`] has. The error is
    /// an allocation that a new block would overlap; the blocks before it are registered.
    pub fn exchange(
        &self,
        gone: &[u64],
        blocks: Vec<Block>,
        kind: Kind,
    ) -> (Vec<Retracted>, Result<(), Arc<Allocation>>) {
        let mut all = self.blocks.write();
        let on_loan = |a: &u64| all.get(a).is_some_and(|a| !a.block.is_owned());
        let gone: Vec<u64> = gone.iter().copied().filter(on_loan).collect();
        let gone: Vec<Retracted> = gone.iter().filter_map(|a| all.remove(a).map(Retracted)).collect();
        let made = blocks.into_iter().try_for_each(|block| adopt(&mut all, block, kind, ""));
        drop(all);
        gone.iter().for_each(|r| self.forget(&r.0));
        (gone, made)
    }

    /// Waits until no launch can access retracted memory. Objects that still refer to it (a texture, say) see no bytes
    /// from then on.
    pub fn settle(&self, retracted: Vec<Retracted>) {
        if retracted.iter().any(|r| r.0.remembered.load(Relaxed)) {
            self.launches.wait();
        }
        retracted.iter().for_each(|r| r.0.block.end_loan());
    }

    /// Starts a launch: until the guard is dropped, freed memory whose range may be cached stays allocated.
    pub fn begin(&self) -> Running<'_> {
        self.launches.begin()
    }

    /// Frees memory that the launch allocated for itself, without waiting.
    pub(crate) fn free_own(&self, address: u64) {
        // Nobody else frees it, so it is registered.
        if let Ok(gone) = self.remove(address, (Initiator::Host, Path::default()), |_| true) {
            let _ = self.keep(gone);
        }
    }

    /// Unregisters an allocation that `may` accepts, and drops its range from all caches.
    fn remove(
        &self,
        address: u64,
        (by, path): (Initiator, Path),
        may: impl FnOnce(&Allocation) -> bool,
    ) -> Result<Arc<Allocation>, MemoryError> {
        let gone = {
            let mut blocks = self.blocks.write();
            match blocks.get(&address) {
                Some(a) if may(a) => blocks.remove(&address),
                _ => None,
            }
        };
        let Some(gone) = gone else { return Err(self.error(address, 0)) };
        if let Some(arena) = gone.block.arena()
            && arena.remove(address, gone.block.len())
        {
            gone.remembered.store(true, Relaxed);
        }
        self.writes.freed(address);
        let size = if gone.block.is_owned() { gone.block.len() as u64 } else { 0 };
        self.used.fetch_sub(size, Relaxed);
        if gone.kind == Kind::Heap {
            self.heap_used.fetch_sub(size, Relaxed);
        }
        // Parameter blocks are recreated for every launch; no addresses of old ones remain.
        if gone.kind != Kind::Param || gone.remembered.load(Relaxed) {
            self.history.add(&gone, by, path);
        }
        self.forget(&gone);
        Ok(gone)
    }

    /// Drops the range of an unregistered allocation from all caches.
    fn forget(&self, gone: &Allocation) {
        if gone.remembered.load(Relaxed) {
            self.epoch.fetch_add(1, SeqCst);
            // Whoever has found the allocation either entered its range before this fence, or sees the new epoch after
            // entering it.
            fence(SeqCst);
            self.launches.forget(gone.block.base());
        }
    }

    /// Keeps freed memory until no code can have its range cached; returns whether the host holds too much of it.
    fn keep(&self, gone: Arc<Allocation>) -> bool {
        // Objects of the arena are found without leaving a trace.
        (gone.remembered.load(Relaxed) || gone.block.arena().is_some()) && self.launches.keep(gone)
    }

    /// The textures, samplers and surfaces, by handle.
    pub fn objects(&self) -> &Objects {
        &self.objects
    }

    /// Starts tracking which bytes of new host and heap allocations are written.
    pub fn track_writes(&self) {
        self.writes.start();
    }

    /// Where device code has allocated what it has not freed, if that is remembered.
    pub fn origins(&self) -> &Origins {
        &self.origins
    }

    /// The tracked writes.
    pub fn writes(&self) -> &Writes {
        &self.writes
    }

    /// Bytes allocated, and the limit.
    pub fn usage(&self) -> (u64, u64) {
        (self.used.load(Relaxed), self.limit.load(Relaxed))
    }

    /// The allocation that contains an address.
    pub fn find(&self, address: u64) -> Option<Arc<Allocation>> {
        let blocks = self.blocks.read();
        let (_, a) = blocks.range(..=address).next_back()?;
        a.block.contains(address, 1).then(|| a.clone())
    }

    /// Like [`Memory::find`], for engines that cache the range. They must drop it when [`Memory::epoch`] changes, or
    /// keep it in [`Ranges`] that are registered with the launch ([`Running::watch`]). The launch's `own` allocation
    /// may be cached during the launch.
    pub fn remember(&self, address: u64, own: &Allocation) -> Option<Arc<Allocation>> {
        let blocks = self.blocks.read();
        let (_, a) = blocks.range(..=address).next_back()?;
        if !a.block.contains(address, 1) {
            return None;
        }
        // Under the lock: it must be unregistered before it is freed.
        if !std::ptr::eq(&**a, own) && !a.remembered.load(Relaxed) {
            a.remembered.store(true, Relaxed);
        }
        Some(a.clone())
    }

    /// Changes whenever an allocation whose range may be cached was freed.
    #[inline]
    pub fn epoch(&self) -> u64 {
        self.epoch.load(SeqCst)
    }

    /// Copies device memory to the host.
    pub fn read(&self, address: u64, to: &mut [u8]) -> Result<(), MemoryError> {
        let a = self.at(address, to.len())?;
        load_bytes(&a.block, address, to).ok_or_else(|| self.error(address, to.len()))
    }

    /// Copies host memory to the device.
    pub fn write(&self, address: u64, from: &[u8]) -> Result<(), MemoryError> {
        let a = self.at(address, from.len())?;
        self.writes.mark_until_end(address, from.len() as u64);
        store_bytes(&a.block, address, from).ok_or_else(|| self.error(address, from.len()))
    }

    /// Copies from the device to all of a block that does not belong to it.
    pub fn read_to(&self, address: u64, to: &Block) -> Result<(), MemoryError> {
        let a = self.at(address, to.len())?;
        copy(to, to.base(), &a.block, address, to.len()).ok_or_else(|| self.error(address, to.len()))
    }

    /// Copies all of such a block to the device.
    pub fn write_from(&self, address: u64, from: &Block) -> Result<(), MemoryError> {
        let a = self.at(address, from.len())?;
        self.writes.mark_until_end(address, from.len() as u64);
        copy(&a.block, address, from, from.base(), from.len()).ok_or_else(|| self.error(address, from.len()))
    }

    /// Copies within device memory; the ranges may overlap.
    pub fn copy(&self, to: u64, from: u64, size: u64) -> Result<(), MemoryError> {
        let size = usize::try_from(size).map_err(|_| self.error(to, usize::MAX))?;
        let (t, f) = (self.at(to, size)?, self.at(from, size)?);
        self.writes.copy(to, from, size as u64);
        copy(&t.block, to, &f.block, from, size).ok_or_else(|| self.error(to, size))
    }

    /// Fills `count` elements with a pattern of 1, 2, 4 or 8 bytes.
    pub fn fill(&self, address: u64, pattern: &[u8], count: u64) -> Result<(), MemoryError> {
        let size = usize::try_from(count).ok().and_then(|n| n.checked_mul(pattern.len()));
        let size = size.ok_or_else(|| self.error(address, usize::MAX))?;
        let a = self.at(address, size)?;
        self.writes.mark_until_end(address, size as u64);
        fill(&a.block, address, pattern, size).ok_or_else(|| self.error(address, size))
    }

    /// Describes the surroundings of an address.
    pub fn describe(&self, address: u64) -> String {
        self.describe_among(address, &[])
    }

    /// The same, also considering windows.
    pub fn describe_among(&self, address: u64, windows: &[Arc<Allocation>]) -> String {
        let blocks = self.blocks.read();
        // Nobody means to point at a parameter block or an array: they are neighbors by chance.
        let likely =
            |a: &&Arc<Allocation>| a.block.contains(address, 1) || !matches!(a.kind, Kind::Param | Kind::Array);
        let below = blocks.range(..=address).rev().map(|(_, a)| a).find(likely);
        if below.is_none_or(|a| !a.block.contains(address, 1))
            && let Some(freed) = self.history.at(address)
        {
            // The host reuses freed addresses, so an overrun of what lies just below is as likely.
            return match below.filter(|a| address - a.end() < JUST_BEHIND) {
                Some(a) => format!("{}, and {freed}", nearest(address, std::iter::once(&**a))),
                None => freed,
            };
        }
        let above = blocks.range(address..).map(|(_, a)| a).find(likely);
        let windows = windows.iter().filter(|w| w.block.len() > 0);
        nearest(address, windows.chain(below).chain(above).map(|a| &**a))
    }

    /// Where the allocation began that an address belonged to until it was freed; none if the address belongs to another one now, or
    /// lies so close behind one that the access may as well be an overrun of that.
    pub fn freed(&self, address: u64) -> Option<u64> {
        let blocks = self.blocks.read();
        let below = blocks.range(..=address).next_back().map(|(_, a)| a);
        let near = below.is_some_and(|a| a.block.contains(address, 1) || address - a.end() < JUST_BEHIND);
        self.history.base(address).filter(|_| !near)
    }

    /// All allocations, in order of address.
    pub fn allocations(&self) -> Vec<Arc<Allocation>> {
        self.blocks.read().values().cloned().collect()
    }

    fn at(&self, address: u64, size: usize) -> Result<Arc<Allocation>, MemoryError> {
        let found =
            self.find(address).or_else(|| if size == 0 { self.blocks.read().values().next().cloned() } else { None });
        found.filter(|a| size == 0 || a.block.contains(address, size)).ok_or_else(|| self.error(address, size))
    }

    fn error(&self, address: u64, size: usize) -> MemoryError {
        MemoryError { address, size: size as u64, note: self.describe(address) }
    }
}

/// Adds `size` to the bytes in use unless that exceeds the limit; the error is the number of bytes in use. A request that is refused is never
/// counted, not even for a moment: others would find no room.
fn take(used: &AtomicU64, size: u64, limit: u64) -> Result<(), u64> {
    let add = |used: u64| used.checked_add(size).filter(|total| *total <= limit);
    used.fetch_update(Relaxed, Relaxed, add).map(drop)
}

fn adopt(
    blocks: &mut BTreeMap<u64, Arc<Allocation>>,
    block: Block,
    kind: Kind,
    name: &str,
) -> Result<(), Arc<Allocation>> {
    let end = block.base() + block.len() as u64;
    if let Some((_, other)) = blocks.range(..end).next_back()
        && other.end() > block.base()
    {
        return Err(other.clone());
    }
    blocks.insert(block.base(), Arc::new(Allocation::of(block, kind, name)));
    Ok(())
}

#[cfg(test)]
mod tests;
