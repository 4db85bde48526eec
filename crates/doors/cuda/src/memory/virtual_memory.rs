//! Virtual memory management (CUDA Driver API, "Virtual Memory Management"): reserved address ranges, physical memory,
//! and mappings of the latter into the former.
//!
//! Kernels see contiguous mapped and accessible pages as one allocation, so that memory which a program grows piece by
//! piece is one array to them, as on a GPU.

use crate::{
    api::api,
    code::{Code, Outcome},
    driver::{current, driver},
    handle::Handle,
    memory::{
        DevicePtr, Location,
        pages::{Backing, Reserved},
        room,
    },
    raw::{Host, In, Out},
};
use bytemuck::AnyBitPattern;
use margay_exec::{
    Memory,
    mem::{Kind, Retracted},
};
use parking_lot::MutexGuard;
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

/// Granularity of sizes, addresses and offsets in bytes.
const GRANULARITY: usize = 2 << 20;
/// `CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR`
const DESCRIPTOR: u32 = 1;
/// `CU_MEM_ACCESS_FLAGS_PROT_READ`, `CU_MEM_ACCESS_FLAGS_PROT_READWRITE`
const READ: u32 = 1;
const READ_WRITE: u32 = 3;

/// `CUmemAllocationProp`
#[repr(C)]
#[derive(Clone, Copy, AnyBitPattern)]
pub struct Properties {
    kind: u32,
    handles: u32,
    location: Location,
    win32: u64,
    flags: [u8; 8],
}

/// `CUmemAccessDesc`
#[repr(C)]
#[derive(Clone, Copy, AnyBitPattern)]
pub struct AccessRight {
    location: Location,
    flags: u32,
}

/// Physical memory (`CUmemGenericAllocationHandle`).
pub struct Physical {
    backing: Backing,
    properties: Properties,
    /// Of this process.
    own: bool,
    /// How often its handle has to be released.
    references: AtomicUsize,
}

impl Drop for Physical {
    fn drop(&mut self) {
        if self.own {
            room::record_physical_free(self.backing.len);
        }
    }
}

struct Mapping {
    len: usize,
    of: Arc<Physical>,
    accessible: bool,
}

/// Reserved ranges and mappings, by first address.
#[derive(Default)]
pub struct AddressSpace {
    reserved: BTreeMap<usize, Reserved>,
    mapped: BTreeMap<usize, Mapping>,
    /// First addresses of the contiguous runs registered with the device's memory.
    runs: Vec<u64>,
    /// Former runs; some of their pages may still be mapped.
    retracted: Vec<Retracted>,
}

fn space() -> Result<MutexGuard<'static, AddressSpace>, Code> {
    Ok(driver()?.address_space.lock())
}

impl AddressSpace {
    fn around(&self, address: usize) -> Result<&Reserved, Code> {
        let found = self.reserved.range(..=address).next_back().filter(|(start, r)| address - **start < r.len());
        found.map(|(_, r)| r).ok_or(Code::INVALID_VALUE)
    }

    /// The mapping that contains an address.
    fn mapping(&self, address: usize) -> Result<&Mapping, Code> {
        let found = self.mapped.range(..=address).next_back().filter(|(at, m)| address - **at < m.len);
        found.map(|(_, m)| m).ok_or(Code::INVALID_VALUE)
    }

    /// The mappings that exactly cover a range.
    fn filling(&self, start: usize, len: usize) -> Result<Vec<usize>, Code> {
        let end = start.checked_add(len).ok_or(Code::INVALID_VALUE)?;
        let mut at = start;
        let mut found = Vec::new();
        while at < end {
            found.push(at);
            at += self.mapped.get(&at).ok_or(Code::INVALID_VALUE)?.len;
        }
        if at == end && len > 0 { Ok(found) } else { Err(Code::INVALID_VALUE) }
    }

    fn map(&mut self, start: usize, len: usize, offset: usize, of: Arc<Physical>) -> Outcome {
        let fits = len > 0 && offset.checked_add(len).is_some_and(|end| end <= of.backing.len);
        if !fits || [start, len, offset].iter().any(|n| n % GRANULARITY != 0) {
            return Err(Code::INVALID_VALUE);
        }
        let taken =
            self.mapped.range(..start.saturating_add(len)).next_back().is_some_and(|(at, m)| at + m.len > start);
        if taken {
            return Err(Code::ALREADY_MAPPED);
        }
        self.around(start)?.map(start, len, &of.backing, offset)?;
        self.mapped.insert(start, Mapping { len, of, accessible: false });
        Ok(())
    }

    fn unmap(&mut self, memory: &Memory, start: usize, len: usize) -> Outcome {
        let gone = self.filling(start, len)?;
        for at in &gone {
            self.mapped.remove(at);
        }
        self.show(memory)?;
        memory.settle(std::mem::take(&mut self.retracted));
        self.around(start)?.unmap(start, len)
    }

    fn grant(&mut self, memory: &Memory, start: usize, len: usize, access: bool) -> Outcome {
        let parts = self.filling(start, len)?;
        if access {
            self.around(start)?.grant(start, len, true)?;
        }
        for at in parts {
            self.mapped.entry(at).and_modify(|m| m.accessible = access);
        }
        self.show(memory)?;
        if access {
            return Ok(());
        }
        memory.settle(std::mem::take(&mut self.retracted));
        self.around(start)?.grant(start, len, false)
    }

    /// Registers the contiguous runs with the device's memory.
    fn show(&mut self, memory: &Memory) -> Outcome {
        let mut runs: Vec<(usize, usize)> = Vec::new();
        for (at, mapping) in self.mapped.iter().filter(|(_, m)| m.accessible) {
            let reserved = self.around(*at)?.start();
            match runs.last_mut() {
                Some((start, len)) if *start + *len == *at && *start >= reserved => *len += mapping.len,
                _ => runs.push((*at, mapping.len)),
            }
        }
        let lend = |(start, len): &(usize, usize)| self.around(*start)?.lend(*start, *len);
        let blocks = runs.iter().map(lend).collect::<Result<Vec<_>, Code>>()?;
        let (gone, made) = memory.exchange(&self.runs, blocks, Kind::Global);
        self.retracted.extend(gone);
        self.runs = runs.iter().map(|(start, _)| *start as u64).collect();
        made.map_err(|_| Code::MAP_FAILED)
    }
}

/// Waits for the work of all contexts: addresses belong to the device, and functions that change them need no current context.
fn settle() -> Outcome {
    match current() {
        Ok(_) | Err(Code::INVALID_CONTEXT) => {}
        Err(failed) => return Err(failed),
    }
    let mut all = Vec::new();
    driver()?.contexts.each_shared(|context| all.push(context.clone()));
    all.iter().for_each(|context| context.settle());
    Ok(())
}

fn physical(handle: Handle<Physical>) -> Result<Arc<Physical>, Code> {
    driver()?.physical.get(handle)
}

api! {
    10020 fn cuMemGetAllocationGranularity(granularity: Out<usize>, _properties: In<Properties>, _option: u32) {
        driver()?;
        granularity.set(GRANULARITY)
    }
    10020 fn cuMemCreate(handle: Out<Handle<Physical>>, size: usize, properties: In<Properties>, flags: u64) {
        let properties = properties.get()?;
        if size == 0 || !size.is_multiple_of(GRANULARITY) || flags != 0 || properties.handles & !DESCRIPTOR != 0 {
            return Err(Code::INVALID_VALUE);
        }
        room::check_physical(size)?;
        let made = Physical { backing: Backing::new(size)?, properties, own: true, references: AtomicUsize::new(1) };
        room::record_physical(size);
        handle.set(driver()?.physical.add(made))
    }
    10020 fn cuMemRelease(handle: Handle<Physical>) {
        // Mapped memory stays until it is unmapped.
        let of = physical(handle).map_err(|_| Code::INVALID_VALUE)?;
        if of.references.fetch_sub(1, Relaxed) == 1 {
            drop(driver()?.physical.remove(handle)); // another thread may have released it too
        }
        Ok(())
    }
    10020 fn cuMemAddressReserve(address: Out<DevicePtr>, size: usize, align: usize, _wish: DevicePtr, flags: u64) {
        let align = align.max(GRANULARITY);
        if size == 0 || !size.is_multiple_of(GRANULARITY) || !align.is_power_of_two() || flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let reserved = Reserved::new(size, align)?;
        address.set(reserved.start() as u64)?;
        space()?.reserved.insert(reserved.start(), reserved);
        Ok(())
    }
    10020 fn cuMemAddressFree(address: DevicePtr, size: usize) {
        settle()?;
        let (mut space, start) = (space()?, address as usize);
        let whole = space.reserved.get(&start).is_some_and(|r| r.len() == size);
        if !whole || space.mapped.range(start..start + size).next().is_some() {
            return Err(Code::INVALID_VALUE);
        }
        space.reserved.remove(&start);
        Ok(())
    }
    10020 fn cuMemMap(address: DevicePtr, size: usize, offset: usize, handle: Handle<Physical>, flags: u64) {
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        space()?.map(address as usize, size, offset, physical(handle)?)
    }
    10020 fn cuMemUnmap(address: DevicePtr, size: usize) {
        settle()?;
        space()?.unmap(driver()?.device.memory(), address as usize, size)
    }
    10020 fn cuMemSetAccess(address: DevicePtr, size: usize, rights: In<AccessRight>, count: usize) {
        let rights = rights.list(count)?;
        // Read-only access is read-write: no page is protected against kernels.
        let access = rights.iter().any(|r| matches!(r.flags, READ | READ_WRITE));
        if !access {
            settle()?;
        }
        space()?.grant(driver()?.device.memory(), address as usize, size, access)
    }
    10020 fn cuMemGetAccess(flags: Out<u64>, _location: In<Location>, address: DevicePtr) {
        flags.set(if space()?.mapping(address as usize)?.accessible { READ_WRITE.into() } else { 0 })
    }
    10020 fn cuMemGetAllocationPropertiesFromHandle(properties: Out<Properties>, handle: Handle<Physical>) {
        properties.set(physical(handle)?.properties)
    }
    11000 fn cuMemRetainAllocationHandle(handle: Out<Handle<Physical>>, address: Host) {
        let of = space()?.mapping(address.address() as usize)?.of.clone();
        let table = &driver()?.physical;
        of.references.fetch_add(1, Relaxed);
        // The same handle, unless it was released.
        let known = table.find(|known| std::ptr::eq(known, &*of));
        handle.set(known.unwrap_or_else(|| table.add_arc(of)))
    }
    10020 fn cuMemExportToShareableHandle(to: Out<i32>, handle: Handle<Physical>, kind: u32, _flags: u64) {
        if kind != DESCRIPTOR {
            return Err(Code::NOT_SUPPORTED);
        }
        to.set(physical(handle)?.backing.export()?)
    }
    10020 fn cuMemImportFromShareableHandle(handle: Out<Handle<Physical>>, from: Host, kind: u32) {
        if kind != DESCRIPTOR {
            return Err(Code::NOT_SUPPORTED);
        }
        // The descriptor is passed in place of an address.
        let backing = Backing::import(from.address() as i32)?;
        let properties = Properties {
            kind: 1, // pinned
            handles: DESCRIPTOR,
            location: Location::DEVICE,
            win32: 0,
            flags: [0; 8],
        };
        handle.set(driver()?.physical.add(Physical { backing, properties, own: false, references: AtomicUsize::new(1) }))
    }
}
