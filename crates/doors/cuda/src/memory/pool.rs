//! Memory pools (CUDA Driver API, "Stream Ordered Memory Allocator"). All pools allocate from one memory; a pool only
//! stores its attributes and its usage.

use crate::{
    api::api,
    code::{Code, Outcome},
    context::Owner,
    driver::driver,
    handle::Handle,
    memory::{DevicePtr, Location, pages::Backing},
    raw::{Host, In, Out},
};
use bytemuck::AnyBitPattern;
use parking_lot::Mutex;
use std::collections::HashMap;

/// The content of the file that represents a pool to other processes.
const MARK: [u8; 16] = *b"margay's pool 1\0";

/// The memory of a pool. There is one default pool of each.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub enum Source {
    /// Memory of the device.
    #[default]
    Device,
    /// Pinned memory of the host.
    Host,
    /// Managed memory.
    Managed,
}

impl Source {
    /// All of them, in the order of [`Defaults`].
    pub const ALL: [Source; 3] = [Source::Device, Source::Host, Source::Managed];

    /// The memory at a location (`CUmemLocation`) of an allocation type (`CUmemAllocationType`: 1 pinned, 2 managed).
    fn of(location: Location, kind: u32) -> Result<Source, Code> {
        match (kind, location.kind) {
            (2, 0..=4) => Ok(Source::Managed),
            (1, 2..=4) => Ok(Source::Host),
            (1, 1) => Ok(Source::Device),
            _ => Err(Code::INVALID_VALUE),
        }
    }

    /// The owner of its allocations.
    pub fn owner(self) -> Owner {
        match self {
            Source::Device => Owner::Device,
            Source::Host => Owner::Host(0),
            Source::Managed => Owner::Managed,
        }
    }
}

/// A pool for each [`Source`].
pub type Defaults = [Handle<Pool>; Source::ALL.len()];

/// A memory pool.
#[derive(Default)]
pub struct Pool {
    /// Where its allocations are.
    pub source: Source,
    attributes: Mutex<HashMap<u32, u64>>,
    usage: Mutex<Usage>,
    /// What identifies a pool that other processes may use.
    pub token: Option<Backing>,
    /// The maximum number of bytes that its allocations may have together; none for a pool without a limit of its own.
    max_size: Option<u64>,
    /// A pool of another process: it yields that process's memory only.
    pub is_imported: bool,
}

/// `CUmemPoolProps` as far as it matters.
#[repr(C)]
#[derive(Clone, Copy, AnyBitPattern)]
pub struct Properties {
    kind: u32,
    /// Ways in which other processes get at it: a set of `CUmemAllocationHandleType`.
    handles: u32,
    location: Location,
    security: u64,
    /// The maximum number of bytes that it yields; 0 for no limit of its own.
    max_size: usize,
}

/// Amounts in bytes. No memory is kept for later allocations, but the amount that a device would keep is counted.
#[derive(Default)]
struct Usage {
    used: u64,
    most_used: u64,
    reserved: u64,
    most_reserved: u64,
}

impl Usage {
    fn take(&mut self, bytes: u64) {
        self.used += bytes;
        self.reserved = self.reserved.max(self.used);
        self.most_used = self.most_used.max(self.used);
        self.most_reserved = self.most_reserved.max(self.reserved);
    }

    /// Memory that is not used goes back to the system except for what the pool may keep.
    fn give_back(&mut self, bytes: u64, kept: u64) {
        self.used = self.used.saturating_sub(bytes);
        self.release(kept);
    }

    fn release(&mut self, kept: u64) {
        self.reserved = self.reserved.min(kept).max(self.used);
    }

    /// Sets a high-water mark to the current amount.
    fn reset(&mut self, mark: u32) {
        match mark {
            amount::MAX_RESERVED => self.most_reserved = self.reserved,
            _ => self.most_used = self.used,
        }
    }
}

/// Allocations from pools: pool and size in bytes, by address.
pub type Pooled = Mutex<HashMap<DevicePtr, (Handle<Pool>, usize)>>;

impl Pool {
    /// A default pool.
    pub fn default_of(source: Source) -> Pool {
        Pool { source, ..Pool::default() }
    }

    fn new(properties: Properties) -> Result<Pool, Code> {
        let source = Source::of(properties.location, properties.kind)?;
        let token = match properties.handles {
            0 => None,
            1 => Some(Backing::filled(MARK.len(), |_, to| {
                to.copy_from_slice(&MARK);
                Ok(())
            })?),
            _ => return Err(Code::NOT_SUPPORTED),
        };
        let max_size = (properties.max_size > 0).then_some(properties.max_size as u64);
        Ok(Pool { source, token, max_size, ..Pool::default() })
    }

    /// The pool of another process that a file represents.
    pub fn imported(token: Backing) -> Result<Pool, Code> {
        let mut mark = MARK;
        let read = rustix::io::pread(token.file(), &mut mark, 0);
        match read == Ok(mark.len()) && mark == MARK {
            true => Ok(Pool { is_imported: true, ..Pool::default() }),
            false => Err(Code::INVALID_VALUE),
        }
    }

    /// Whether it may allocate this many more bytes.
    pub fn has_room(&self, bytes: usize) -> bool {
        self.max_size.is_none_or(|most| self.usage.lock().used.saturating_add(bytes as u64) <= most)
    }

    /// The value of an attribute that the program sets. Reuse is allowed by default, and the release threshold is 0.
    fn attribute(&self, number: u32) -> u64 {
        let attributes = self.attributes.lock();
        attributes.get(&number).copied().unwrap_or(u64::from(number < RELEASE_THRESHOLD))
    }
}

/// The pool that memory came from.
pub fn of(address: DevicePtr) -> Option<Handle<Pool>> {
    let pooled = driver().ok()?.pooled.lock();
    pooled.get(&address).map(|(pool, _)| *pool)
}

/// Records an allocation from a pool.
pub fn record_allocation(pool: Handle<Pool>, address: DevicePtr, bytes: usize) -> Outcome {
    let driver = driver()?;
    let from = driver.pools.get(pool)?;
    driver.pooled.lock().insert(address, (pool, bytes));
    from.usage.lock().take(bytes as u64);
    Ok(())
}

/// Records that memory of any pool was freed.
pub fn record_free(address: DevicePtr) {
    let Ok(driver) = driver() else { return };
    let found = driver.pooled.lock().remove(&address);
    let Some((pool, bytes)) = found else { return };
    if let Ok(pool) = driver.pools.get(pool) {
        let kept = pool.attribute(RELEASE_THRESHOLD);
        pool.usage.lock().give_back(bytes as u64, kept);
    }
}

/// `CU_MEMPOOL_ATTR_RELEASE_THRESHOLD`: how many bytes the pool keeps at most when nothing uses them.
const RELEASE_THRESHOLD: u32 = 4;

/// `CUmemPool_attribute` for amounts.
mod amount {
    pub const RESERVED: u32 = 5;
    pub const MAX_RESERVED: u32 = 6;
    pub const USED: u32 = 7;
    pub const MAX_USED: u32 = 8;
}

/// Size of an attribute in bytes: reuse policies are ints; thresholds and amounts are 64 bits.
fn size(attribute: u32) -> usize {
    if attribute <= 3 { 4 } else { 8 }
}

/// The pool of allocations that do not name one.
pub fn current(source: Source) -> Result<Handle<Pool>, Code> {
    Ok(driver()?.current_pools.lock()[source as usize])
}

/// Sets the current pool.
pub fn set_current(source: Source, pool: Handle<Pool>) -> Outcome {
    let new = driver()?.pools.get(pool)?;
    if new.is_imported || new.source != source {
        return Err(Code::INVALID_VALUE);
    }
    driver()?.current_pools.lock()[source as usize] = pool;
    Ok(())
}

api! {
    11020 fn cuMemPoolCreate(pool: Out<Handle<Pool>>, properties: In<Properties>) {
        pool.set(driver()?.pools.add(Pool::new(properties.get()?)?))
    }
    11020 fn cuMemPoolDestroy(pool: Handle<Pool>) {
        let defaults = driver()?.default_pools;
        if defaults.contains(&pool) {
            return Err(Code::INVALID_VALUE);
        }
        driver()?.pools.remove(pool)?;
        let mut current = driver()?.current_pools.lock();
        for (current, default) in current.iter_mut().zip(defaults).filter(|(current, _)| **current == pool) {
            *current = default;
        }
        Ok(())
    }
    13000 fn cuMemGetDefaultMemPool(pool: Out<Handle<Pool>>, location: In<Location>, kind: u32) {
        let source = Source::of(location.get()?, kind)?;
        pool.set(driver()?.default_pools[source as usize])
    }
    13000 fn cuMemGetMemPool(pool: Out<Handle<Pool>>, location: In<Location>, kind: u32) {
        pool.set(current(Source::of(location.get()?, kind)?)?)
    }
    13000 fn cuMemSetMemPool(location: In<Location>, kind: u32, pool: Handle<Pool>) {
        set_current(Source::of(location.get()?, kind)?, pool)
    }
    11020 fn cuMemPoolTrimTo(pool: Handle<Pool>, bytes: usize) {
        driver()?.pools.get(pool)?.usage.lock().release(bytes as u64);
        Ok(())
    }
    11020 fn cuMemPoolSetAttribute(pool: Handle<Pool>, attribute: u32, value: Host) {
        let pool = driver()?.pools.get(pool)?;
        let mut bytes = [0; 8];
        value.read(&mut bytes[..size(attribute)])?;
        // A high-water mark can only be reset; the current amounts cannot be set.
        match attribute {
            amount::MAX_RESERVED | amount::MAX_USED if bytes == [0; 8] => pool.usage.lock().reset(attribute),
            1..=RELEASE_THRESHOLD => {
                let mut attributes = pool.attributes.lock();
                attributes.insert(attribute, u64::from_ne_bytes(bytes));
            }
            _ => return Err(Code::INVALID_VALUE),
        }
        Ok(())
    }
    11020 fn cuMemPoolGetAttribute(pool: Handle<Pool>, attribute: u32, value: Host) {
        let pool = driver()?.pools.get(pool)?;
        let amount = match attribute {
            amount::RESERVED => pool.usage.lock().reserved,
            amount::MAX_RESERVED => pool.usage.lock().most_reserved,
            amount::USED => pool.usage.lock().used,
            amount::MAX_USED => pool.usage.lock().most_used,
            _ => pool.attribute(attribute),
        };
        value.write(&amount.to_ne_bytes()[..size(attribute)])
    }
    11020 fn cuMemPoolSetAccess(pool: Handle<Pool>, _access: Host, _count: usize) { driver()?.pools.get(pool).map(drop) }
    11020 fn cuMemPoolGetAccess(flags: Out<u32>, pool: Handle<Pool>, _location: Host) {
        driver()?.pools.get(pool)?;
        flags.set(3) // read and write
    }
}
