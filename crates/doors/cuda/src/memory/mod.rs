//! Memory: allocation and filling (CUDA Driver API, "Memory Management" and "Unified Addressing").
//!
//! Device addresses are host addresses, so memory that the host may access too (managed, page-locked) is ordinary
//! device memory with a record of its kind.

pub mod advice;
pub mod attributes;
pub mod batch;
pub mod copy;
pub mod ipc;
pub mod pages;
pub mod pool;
pub mod references;
pub mod room;
pub mod tensor;
pub mod texture;
pub mod virtual_memory;

use crate::{
    api::{api, because},
    code::{Code, Outcome},
    context::{Allocated, Context, Owner},
    device::total_memory,
    driver::{current, driver},
    handle::Handle,
    memory::{
        pages::PAGE,
        pool::{Pool, Source},
    },
    raw::{Host, Out},
    work::{Fill, Work, graph::capture::check_unsafe_call, stream::StreamHandle},
};
use bytemuck::AnyBitPattern;
use margay_exec::mem::Kind;
use std::sync::{Arc, OnceLock};

/// A device address.
pub type DevicePtr = u64;

/// The number of allocations up to which small ones get pages of their own too. Each then takes two pages of the host's memory; together,
/// they take at most a 32nd of what the device has.
fn few() -> usize {
    static FEW: OnceLock<usize> = OnceLock::new();
    *FEW.get_or_init(|| (total_memory() / 32 / (2 * PAGE as u64)).max(4096) as usize)
}

/// Alignment of an allocation. `cuMemAlloc` guarantees 256 bytes; GPUs map large allocations in large pages, and some
/// programs rely on page-aligned addresses.
fn alignment(bytes: usize, owner: Owner, few: bool) -> u32 {
    match bytes {
        0x20_0000.. => 0x20_0000,
        0x1000.. => 0x1000,
        // Memory with pages of its own can be shared with other processes, but costs too much if there are many allocations.
        _ if owner == Owner::Device && !few => 512,
        _ => 0x1000,
    }
}

/// The bytes of an allocation that a program may access. Devices check addresses by pages, so real programs overrun
/// small allocations by a few bytes unnoticed: accesses up to the alignment are permitted, unless exact bounds are
/// requested.
fn accessible(bytes: usize, alignment: u32) -> usize {
    if crate::checks::watch::wanted().is_some_and(|what| what.memory) {
        bytes
    } else {
        bytes.checked_next_multiple_of(alignment.min(512) as usize).unwrap_or(bytes)
    }
}

/// Allocates memory in the current context.
pub fn allocate(bytes: usize, owner: Owner) -> Result<DevicePtr, Code> {
    allocate_in(&*current()?, bytes, owner)
}

fn allocate_in(context: &Context, bytes: usize, owner: Owner) -> Result<DevicePtr, Code> {
    if bytes == 0 {
        return Err(Code::INVALID_VALUE);
    }
    let is_full = || !room::fits(context.device_memory(), bytes as u64);
    if is_full() {
        context.settle(); // work that is queued may free some
        if is_full() {
            room::explain(context.device_memory(), bytes as u64);
            return Err(Code::OUT_OF_MEMORY);
        }
    }
    let few = context.allocations.lock().len() < few();
    let alignment = alignment(bytes, owner, few);
    let made = context.device_memory().alloc_as(accessible(bytes, alignment) as u64, alignment, Kind::Global, "");
    let address = made.map_err(|_| Code::OUT_OF_MEMORY)?.block.base();
    if owner != Owner::Device {
        // The host writes to it without API calls.
        context.device_memory().writes().mark(address, bytes as u64);
    }
    context.allocations.lock().insert(address, Allocated { owner, len: bytes });
    crate::checks::order::allocated(address, bytes as u64);
    crate::checks::stacks::allocated(address);
    Ok(address)
}

/// Allocates on behalf of a call that captures do not see.
fn allocate_at_once(bytes: usize, owner: Owner) -> Result<DevicePtr, Code> {
    check_unsafe_call()?;
    allocate(bytes, owner)
}

/// Allocates in stream order: in a captured stream, as a node of the graph.
fn allocate_in_order(bytes: usize, pool: Handle<Pool>, stream: StreamHandle) -> Result<DevicePtr, Code> {
    let stream = stream.get()?;
    match &mut *stream.stream().capture.lock() {
        None => {
            // The stream's context need not be current.
            let context = stream.context();
            context.check()?;
            let from = driver()?.pools.get(pool)?;
            if from.is_imported {
                return Err(Code::INVALID_VALUE); // its memory comes from its own process only
            }
            if !from.has_room(bytes) {
                context.settle(); // frees that are queued may make some
                if !from.has_room(bytes) {
                    return Err(Code::OUT_OF_MEMORY);
                }
            }
            let address = allocate_in(context, bytes, from.source.owner())?;
            crate::memory::pool::record_allocation(pool, address, bytes)?;
            crate::checks::order::allocated_in(&stream, address, bytes as u64)?;
            Ok(address)
        }
        Some(capture) => capture.allocate(bytes),
    }
}

/// Makes memory of the program accessible to kernels under its own addresses.
fn register(memory: Host, bytes: usize, flags: u32) -> Outcome {
    /// `CU_MEMHOSTREGISTER_PORTABLE`, `DEVICEMAP`, `IOMEMORY` and `READ_ONLY`
    const FLAGS: u32 = 0xf;
    let context = current()?;
    if bytes == 0 || flags & !FLAGS != 0 {
        return Err(Code::INVALID_VALUE);
    }
    let block = memory.lend(bytes)?;
    let address = block.base();
    context.device_memory().adopt(block, Kind::Global).map_err(|_| Code::HOST_MEMORY_ALREADY_REGISTERED)?;
    context.allocations.lock().insert(address, Allocated { owner: Owner::Registered(flags), len: bytes });
    Ok(())
}

fn unregister(address: u64) -> Outcome {
    let context = current()?;
    take_back(&context, "cuMemHostUnregister", address);
    {
        let mut memory = context.allocations.lock();
        match memory.get(&address) {
            Some(Allocated { owner: Owner::Registered(_), .. }) => memory.remove(&address),
            _ => return Err(Code::HOST_MEMORY_NOT_REGISTERED),
        };
    }
    // Waits for launches that may use it, since the program may reuse it afterwards.
    context.device_memory().free(address).map_err(|_| Code::HOST_MEMORY_NOT_REGISTERED)
}

/// Waits for all work before page-locked memory is freed or unregistered, which the program must not rely on.
fn take_back(context: &Arc<Context>, by: &str, address: u64) {
    context.finish();
    let known = context.allocations.lock().get(&address).copied();
    if let Some(Allocated { owner: Owner::Host(_) | Owner::Registered(_), len }) = known {
        crate::checks::order::taken_back(context, by, address, len as u64);
    }
    context.settle();
}

/// Frees what some context allocated, when the work is done that may use it.
fn free(address: DevicePtr) -> Outcome {
    if address == 0 {
        return Ok(());
    }
    // Allocators free in destructors, where an exception ends the process.
    let context = match crate::driver::current_even_failed() {
        // The address says whose memory it is.
        Err(Code::INVALID_CONTEXT) => owner(address).ok_or(Code::INVALID_CONTEXT)?,
        context => context?,
    };
    if !crate::process::reports::frees_after_faults() {
        context.check()?;
    }
    accept_free(&context, address)?;
    context.settle();
    free_now(&context, address)
}

/// Accepts a call that frees the allocation at an address, if there is one.
pub fn accept_free(context: &Context, address: DevicePtr) -> Outcome {
    if let Some(freed) = driver()?.graph_memories.release(address) {
        return freed;
    }
    let found = address == 0 || context.device_memory().find(address).is_some_and(|a| a.block.base() == address);
    if found {
        return Ok(());
    }
    because(|| {
        let stack = crate::checks::stacks::free(address).join(", ");
        let nearby = context.device_memory().describe(address);
        format!("{address:#x} cannot be freed: {nearby}{}{stack}", if stack.is_empty() { "" } else { "; " })
    });
    Err(Code::INVALID_VALUE)
}

/// Frees at once what some context allocated. The caller has waited for the work that may use it.
pub fn free_now(context: &Context, address: DevicePtr) -> Outcome {
    if address == 0 {
        return Ok(());
    }
    if driver()?.graph_memories.free(address) {
        return Ok(());
    }
    if crate::memory::ipc::close_unless_own(context, address)? {
        return Ok(());
    }
    let known = {
        let mut memory = context.allocations.lock();
        if matches!(memory.get(&address), Some(Allocated { owner: Owner::Registered(_), .. })) {
            return Err(Code::INVALID_VALUE);
        }
        memory.remove(&address)
    };
    if let Some(Allocated { owner, len }) = known {
        crate::checks::usage::freed(address, len as u64, owner);
    }
    // Memory may be freed from another context than its own, but only memory that an allocation owns.
    let freed = context
        .device_memory()
        .find(address)
        .filter(|a| known.is_some() || a.kind == Kind::Global && a.block.is_owned());
    let freed = freed.ok_or(Code::INVALID_VALUE)?;
    crate::memory::advice::forget(address, freed.block.len());
    crate::memory::pool::record_free(address);
    crate::checks::stacks::freed(address);
    crate::checks::order::frees(address, freed.block.len() as u64);
    context.device_memory().free(address).map_err(|_| Code::INVALID_VALUE)
}

/// The allocation that contains an address: first byte, size, kind.
fn around(context: &Context, address: DevicePtr) -> Result<(DevicePtr, usize, Owner), Code> {
    let found = context.device_memory().find(address).ok_or(Code::INVALID_VALUE)?;
    let base = found.block.base();
    let managed = matches!(found.kind, Kind::Variable { managed: true });
    let owner = if managed { Owner::Managed } else { Owner::Device };
    let unknown = Allocated { owner, len: found.block.len() };
    let Allocated { owner, len } = context.allocations.lock().get(&base).copied().unwrap_or(unknown);
    Ok((base, len, owner))
}

/// Whether a range is managed memory: of `cuMemAllocManaged`, or a managed variable of a module.
pub fn is_managed(context: &Context, address: DevicePtr, bytes: usize) -> bool {
    let end = address.saturating_add(bytes as u64);
    let managed = around(context, address).ok().filter(|(.., owner)| *owner == Owner::Managed);
    managed.is_some_and(|(base, len, _)| end <= base + len as u64)
}

/// The context that owns the allocation at an address.
fn owner(base: DevicePtr) -> Option<Arc<Context>> {
    let contexts = &driver().ok()?.contexts;
    contexts.get(contexts.find(|c| c.allocations.lock().contains_key(&base))?).ok()
}

fn fill(to: DevicePtr, pattern: &[u8], pitch: usize, width: usize, height: usize, stream: StreamHandle) -> Outcome {
    if width == 0 || height == 0 {
        return current().map(drop);
    }
    if height > 1 && width.checked_mul(pattern.len()).is_none_or(|row| row > pitch) {
        return Err(Code::INVALID_VALUE);
    }
    let fill = Fill { to, pattern: pattern.into(), pitch: pitch as u64, width: width as u64, height: height as u64 };
    stream.submit(Work::Fill(fill))
}

/// `CUmemLocation`
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, AnyBitPattern)]
pub struct Location {
    /// `CUmemLocationType`
    pub kind: u32,
    /// Number of the device or node.
    pub id: i32,
}

impl Location {
    /// The device.
    pub const DEVICE: Location = Location { kind: 1, id: 0 };
}

crate::api::function! {
    /// None of CUDA's functions: the program has written device memory without a call, as it can since device pointers are addresses of
    /// the host. `--check init` then takes the bytes for initialized.
    margayNoteWrite(address: DevicePtr, bytes: u64) {
        current()?.device_memory().writes().mark(address, bytes);
        Ok(())
    }
}

api! {
    2000 fn cuMemGetInfo(free: Out<u32>, total: Out<u32>) {
        current()?;
        free.offer(u32::MAX);
        total.offer(u32::MAX);
        Ok(())
    }
    3020 fn cuMemGetInfo_v2(free: Out<usize>, total: Out<usize>) {
        free.offer(room::free(current()?.device_memory()) as usize);
        total.offer(total_memory() as usize);
        Ok(())
    }
    3020 fn cuMemAlloc_v2(address: Out<DevicePtr>, bytes: usize) { address.set(allocate_at_once(bytes, Owner::Device)?) }
    3020 fn cuMemAllocPitch_v2(address: Out<DevicePtr>, pitch: Out<usize>, width: usize, height: usize, element: u32) {
        if !matches!(element, 4 | 8 | 16) {
            return Err(Code::INVALID_VALUE);
        }
        let row = width.checked_next_multiple_of(512).ok_or(Code::OUT_OF_MEMORY)?;
        let bytes = row.checked_mul(height).ok_or(Code::OUT_OF_MEMORY)?;
        address.set(allocate_at_once(bytes, Owner::Device)?)?;
        pitch.set(row)
    }
    3020 fn cuMemFree_v2(address: DevicePtr) { free(address) }
    3020 fn cuMemGetAddressRange_v2(base: Out<DevicePtr>, size: Out<usize>, address: DevicePtr) {
        let (start, len, _) = around(&*current()?, address).map_err(|_| Code::NOT_FOUND)?;
        base.offer(start);
        size.offer(len);
        Ok(())
    }
    3020 fn cuMemAllocHost_v2(address: Out<u64>, bytes: usize) { address.set(allocate_at_once(bytes, Owner::Host(0))?) }
    2000 fn cuMemFreeHost(address: DevicePtr) {
        let of_device = |a: &Allocated| matches!(a.owner, Owner::Device | Owner::Managed);
        if current()?.allocations.lock().get(&address).is_some_and(of_device) {
            because(|| format!("{address:#x} is memory of the device, which `cudaFree` (`cuMemFree`) frees"));
            return Err(Code::INVALID_VALUE);
        }
        take_back(&current()?, "cuMemFreeHost", address);
        free(address)
    }
    2020 fn cuMemHostAlloc(address: Out<u64>, bytes: usize, flags: u32) {
        /// `CU_MEMHOSTALLOC_PORTABLE`, `DEVICEMAP` and `WRITECOMBINED`
        const FLAGS: u32 = 7;
        if flags & !FLAGS != 0 {
            return Err(Code::INVALID_VALUE);
        }
        address.set(allocate_at_once(bytes, Owner::Host(flags))?)
    }
    3020 fn cuMemHostGetDevicePointer_v2(device: Out<DevicePtr>, address: DevicePtr, _flags: u32) {
        around(&*current()?, address)?;
        device.set(address)
    }
    2030 fn cuMemHostGetFlags(flags: Out<u32>, address: DevicePtr) {
        match around(&*current()?, address)?.2 {
            Owner::Host(given) | Owner::Registered(given) => flags.set(given),
            Owner::Device | Owner::Managed => Err(Code::INVALID_VALUE),
        }
    }
    4000 fn cuMemHostRegister(memory: Host, bytes: usize, flags: u32) { register(memory, bytes, flags) }
    6050 fn cuMemHostRegister_v2(memory: Host, bytes: usize, flags: u32) { register(memory, bytes, flags) }
    4000 fn cuMemHostUnregister(memory: Host) { unregister(memory.address()) }
    6000 fn cuMemAllocManaged(address: Out<DevicePtr>, bytes: usize, flags: u32) {
        const GLOBAL: u32 = 1;
        const HOST: u32 = 2;
        if !matches!(flags, GLOBAL | HOST) {
            return Err(Code::INVALID_VALUE);
        }
        address.set(allocate_at_once(bytes, Owner::Managed)?)
    }
    11020 + ptsz fn cuMemAllocAsync(address: Out<DevicePtr>, bytes: usize, stream: StreamHandle) {
        address.set(allocate_in_order(bytes, crate::memory::pool::current(Source::Device)?, stream)?)
    }
    11020 + ptsz fn cuMemAllocFromPoolAsync(address: Out<DevicePtr>, bytes: usize, pool: Handle<Pool>, stream: StreamHandle) {
        address.set(allocate_in_order(bytes, pool, stream)?)
    }
    11020 + ptsz fn cuMemFreeAsync(address: DevicePtr, stream: StreamHandle) {
        crate::checks::stacks::will_free(address);
        // What follows in the stream may use the memory again, so the pool does not count it any more.
        if stream.get()?.stream().capture.lock().is_none() {
            pool::record_free(address);
        }
        stream.submit(Work::Free(address))
    }

    3020 + ptds fn cuMemsetD8_v2(to: DevicePtr, value: u8, count: usize) { fill(to, &[value], 0, count, 1, StreamHandle::NULL) }
    3020 + ptds fn cuMemsetD16_v2(to: DevicePtr, value: u16, count: usize) {
        fill(to, &value.to_ne_bytes(), 0, count, 1, StreamHandle::NULL)
    }
    3020 + ptds fn cuMemsetD32_v2(to: DevicePtr, value: u32, count: usize) {
        fill(to, &value.to_ne_bytes(), 0, count, 1, StreamHandle::NULL)
    }
    3020 + ptds fn cuMemsetD2D8_v2(to: DevicePtr, pitch: usize, value: u8, width: usize, height: usize) {
        fill(to, &[value], pitch, width, height, StreamHandle::NULL)
    }
    3020 + ptds fn cuMemsetD2D16_v2(to: DevicePtr, pitch: usize, value: u16, width: usize, height: usize) {
        fill(to, &value.to_ne_bytes(), pitch, width, height, StreamHandle::NULL)
    }
    3020 + ptds fn cuMemsetD2D32_v2(to: DevicePtr, pitch: usize, value: u32, width: usize, height: usize) {
        fill(to, &value.to_ne_bytes(), pitch, width, height, StreamHandle::NULL)
    }
    3020 + ptsz fn cuMemsetD8Async(to: DevicePtr, value: u8, count: usize, stream: StreamHandle) {
        fill(to, &[value], 0, count, 1, stream)
    }
    3020 + ptsz fn cuMemsetD16Async(to: DevicePtr, value: u16, count: usize, stream: StreamHandle) {
        fill(to, &value.to_ne_bytes(), 0, count, 1, stream)
    }
    3020 + ptsz fn cuMemsetD32Async(to: DevicePtr, value: u32, count: usize, stream: StreamHandle) {
        fill(to, &value.to_ne_bytes(), 0, count, 1, stream)
    }
    3020 + ptsz fn cuMemsetD2D8Async(
        to: DevicePtr, pitch: usize, value: u8, width: usize, height: usize, stream: StreamHandle,
    ) {
        fill(to, &[value], pitch, width, height, stream)
    }
    3020 + ptsz fn cuMemsetD2D16Async(
        to: DevicePtr, pitch: usize, value: u16, width: usize, height: usize, stream: StreamHandle,
    ) {
        fill(to, &value.to_ne_bytes(), pitch, width, height, stream)
    }
    3020 + ptsz fn cuMemsetD2D32Async(
        to: DevicePtr, pitch: usize, value: u32, width: usize, height: usize, stream: StreamHandle,
    ) {
        fill(to, &value.to_ne_bytes(), pitch, width, height, stream)
    }
}

/// Whether the host may copy or fill `count` bytes of device memory: only within the size that the program requested.
pub fn within(context: &Context, address: DevicePtr, count: usize) -> Outcome {
    let (base, len, _) = around(context, address)?;
    let offset = (address - base) as usize;
    if offset <= len && count <= len - offset {
        return Ok(());
    }
    because(|| {
        let beyond = offset.saturating_add(count) - len;
        format!("{count} bytes at {address:#x} end {beyond} bytes past the allocation of {len} bytes at {base:#x}")
    });
    Err(Code::INVALID_VALUE)
}

/// The allocation that contains an address, to decide whether it is device memory.
pub fn is_device(context: &Context, address: u64) -> bool {
    context.device_memory().find(address).is_some()
}

/// Whether the host may access what lies at an address.
pub fn is_for_host(context: &Context, address: u64) -> bool {
    around(context, address).is_ok_and(|(.., owner)| owner != Owner::Device) || !is_device(context, address)
}
