//! Memory and events of other processes (CUDA Driver API, "Memory Management", `cuIpc…`, and "Stream Ordered Memory Allocator",
//! `cuMemPoolExport…`).
//!
//! Device memory is private memory of the process until a handle to it is requested. Then a file replaces its pages, with the same bytes at
//! the same addresses. A handle says which process has the file open, and its descriptor there. Other processes of the same
//! user map it from there. An event is a pair of counters in such a file.

use crate::{
    api::{api, because},
    code::Code,
    context::{Allocated, Context, Owner},
    driver::{current, driver},
    handle::Handle,
    memory::{
        DevicePtr,
        pages::{Backing, FileAddress, PAGE, Reserved, SharedWords},
        pool::{self, Pool},
    },
    raw::{Host, In, Out},
    work::event::{self, Event},
};
use bytemuck::AnyBitPattern;
use margay_exec::mem::{Allocation, Kind};
use parking_lot::MutexGuard;
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Weak,
        atomic::Ordering::{AcqRel, Acquire},
    },
    time::{Duration, Instant},
};

/// `CUipcMemHandle`, `CUipcEventHandle` and `CUmemPoolPtrExportData`: where to find a file, what it is, and how many of its bytes.
#[repr(C)]
#[derive(Clone, Copy, AnyBitPattern)]
pub struct Shareable([u64; 8]);

/// Marks handles made by margay.
const MARK: u64 = u64::from_le_bytes(*b"margay1\0");

/// The object of a handle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SharedObject {
    Memory = 1,
    Event = 2,
    Pointer = 3,
}

impl Shareable {
    fn new(what: SharedObject, at: FileAddress, len: usize) -> Shareable {
        let place = u64::from(at.process) << 32 | at.descriptor as u64;
        Shareable([MARK, what as u64, place, at.device, at.file, len as u64, 0, 0])
    }

    /// The file and the number of bytes; an error for a handle of another kind.
    fn get(self, what: SharedObject) -> Result<(FileAddress, usize), Code> {
        let Shareable([mark, kind, place, device, file, len, ..]) = self;
        if mark != MARK || kind != what as u64 {
            return Err(Code::INVALID_HANDLE);
        }
        let at = FileAddress { process: (place >> 32) as u32, descriptor: place as u32 as i32, device, file };
        Ok((at, len as usize))
    }
}

/// Memory of this process that others share, and of others that this one maps.
#[derive(Default)]
pub struct Ipc {
    exported: BTreeMap<DevicePtr, Exported>,
    imported: BTreeMap<DevicePtr, Imported>,
}

struct Exported {
    /// The allocation, since its address may belong to another one later.
    of: Weak<Allocation>,
    backing: Backing,
}

struct Imported {
    /// Keeps the memory mapped.
    _pages: Reserved,
    at: FileAddress,
    /// Number of its context.
    context: u64,
    /// How often it was opened.
    users: u32,
}

fn ipc() -> Result<MutexGuard<'static, Ipc>, Code> {
    Ok(driver()?.ipc.lock())
}

/// A handle of the allocation that contains an address.
fn export(context: &Context, address: DevicePtr, what: SharedObject) -> Result<Shareable, Code> {
    let allocation = context.device_memory().find(address).ok_or(Code::INVALID_VALUE)?;
    let (base, len) = (allocation.block.base(), allocation.block.len());
    if !matches!(context.allocations.lock().get(&base), None | Some(Allocated { owner: Owner::Device, .. }))
        || allocation.kind != Kind::Global
        || !allocation.block.is_owned()
    {
        because(|| "only memory from `cuMemAlloc` can be shared with other processes".into());
        return Err(Code::INVALID_VALUE);
    }
    let mut ipc = ipc()?;
    ipc.exported.retain(|_, e| e.of.strong_count() > 0);
    if let Some(known) = ipc.exported.get(&base).filter(|e| e.of.as_ptr() == Arc::as_ptr(&allocation)) {
        return Ok(Shareable::new(what, known.backing.address()?, len));
    }
    if !allocation.block.has_own_pages() {
        crate::api::say(
            "margay: an allocation below 4096 bytes cannot be shared with other processes if the program has tens of thousands of them; \
             allocate at least 4096 bytes",
        );
        return Err(Code::NOT_SUPPORTED);
    }
    let memory = context.device_memory();
    let backing =
        Backing::filled(len, |at, part| memory.read(base + at as u64, part).map_err(|_| Code::INVALID_VALUE))?;
    allocation.block.share(backing.file()).ok_or(Code::MAP_FAILED)?;
    memory.writes().mark(base, len as u64); // others write to it
    let handle = Shareable::new(what, backing.address()?, len);
    ipc.exported.insert(base, Exported { of: Arc::downgrade(&allocation), backing });
    Ok(handle)
}

/// Maps memory of another process.
fn import(handle: Shareable, what: SharedObject) -> Result<DevicePtr, Code> {
    let context = current()?;
    let (at, len) = handle.get(what)?;
    if what == SharedObject::Memory && at.process == std::process::id() {
        because(|| "memory cannot be opened by the process that owns it".into());
        return Err(Code::INVALID_CONTEXT);
    }
    let mut ipc = ipc()?;
    let known = ipc.imported.iter_mut().find(|(_, known)| known.at == at && known.context == context.id);
    if let Some((address, known)) = known {
        known.users += 1;
        return Ok(*address);
    }
    let backing = Backing::find(at).inspect_err(|_| {
        because(|| format!("process {} has freed the memory or belongs to another user", at.process));
    })?;
    let whole = backing.len;
    if len == 0 || len > whole || whole % PAGE != 0 {
        return Err(Code::INVALID_HANDLE);
    }
    let pages = Reserved::new(whole, 2 << 20)?;
    pages.map(pages.start(), whole, &backing, 0)?;
    pages.grant(pages.start(), whole, true)?;
    let (address, block) = (pages.start() as u64, pages.lend(pages.start(), len)?);
    let memory = context.device_memory();
    memory.adopt(block, Kind::Global).map_err(|_| Code::MAP_FAILED)?;
    memory.writes().mark(address, len as u64);
    context.allocations.lock().insert(address, Allocated { owner: Owner::Device, len });
    ipc.imported.insert(address, Imported { _pages: pages, at, context: context.id, users: 1 });
    Ok(address)
}

/// Closes memory of another process at an address; whether there was some.
pub fn close_unless_own(context: &Context, address: DevicePtr) -> Result<bool, Code> {
    let gone = {
        let mut ipc = ipc()?;
        let Some(known) = ipc.imported.get_mut(&address) else { return Ok(false) };
        known.users -= 1;
        match known.users {
            0 => ipc.imported.remove(&address),
            _ => return Ok(true),
        }
    };
    context.allocations.lock().remove(&address);
    // Waits for launches that may use it; then it may be unmapped.
    let freed = context.device_memory().free(address);
    drop(gone);
    freed.map(|()| true).map_err(|_| Code::INVALID_VALUE)
}

/// The part of an event that processes share: how often it was recorded, and the last of these records that has happened.
#[derive(Debug)]
pub struct SharedEvent(SharedWords);

impl SharedEvent {
    /// A new event.
    pub fn new() -> Result<SharedEvent, Code> {
        SharedWords::new(Backing::new(PAGE)?).map(SharedEvent)
    }

    /// Counts a record; returns its number.
    pub fn record(&self) -> u64 {
        self.0.word(0).fetch_add(1, AcqRel) + 1
    }

    /// The number of the last record.
    pub fn recorded(&self) -> u64 {
        self.0.word(0).load(Acquire)
    }

    /// A record has happened.
    pub fn reach(&self, number: u64) {
        self.0.word(1).fetch_max(number, AcqRel);
    }

    /// Whether a record has happened, or a later one.
    pub fn is_reached(&self, number: u64) -> bool {
        self.0.word(1).load(Acquire) >= number
    }

    /// Waits until a record has happened, or `over` reports that this is no longer needed.
    pub fn wait(&self, number: u64, over: impl Fn() -> bool) {
        let start = Instant::now();
        while !self.is_reached(number) && !over() {
            let long = start.elapsed() > Duration::from_millis(100);
            std::thread::sleep(Duration::from_micros(if long { 1000 } else { 20 }));
        }
    }
}

/// `CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR`
const DESCRIPTOR: u32 = 1;

api! {
    4010 fn cuIpcGetMemHandle(handle: Out<Shareable>, address: DevicePtr) {
        let context = current()?;
        if pool::of(address).is_some() {
            because(|| "memory of a pool is shared through the pool (`cuMemPoolExportPointer`)".into());
            return Err(Code::INVALID_VALUE);
        }
        context.settle();
        handle.set(export(&context, address, SharedObject::Memory)?)
    }
    4010 fn cuIpcOpenMemHandle(address: Out<DevicePtr>, handle: Shareable, _flags: u32) {
        address.set(import(handle, SharedObject::Memory)?)
    }
    11000 fn cuIpcOpenMemHandle_v2(address: Out<DevicePtr>, handle: Shareable, _flags: u32) {
        address.set(import(handle, SharedObject::Memory)?)
    }
    4010 fn cuIpcCloseMemHandle(address: DevicePtr) {
        let context = current()?;
        context.settle();
        if close_unless_own(&context, address)? { Ok(()) } else { Err(Code::INVALID_VALUE) }
    }
    4010 fn cuIpcGetEventHandle(handle: Out<Shareable>, event: Handle<Event>) {
        let shared = event::export(event)?;
        handle.set(Shareable::new(SharedObject::Event, shared.0.backing.address()?, PAGE))
    }
    4010 fn cuIpcOpenEventHandle(event: Out<Handle<Event>>, handle: Shareable) {
        let (at, _) = handle.get(SharedObject::Event)?;
        event.set(event::import(SharedEvent(SharedWords::new(Backing::find(at)?)?))?)
    }

    11020 fn cuMemPoolExportToShareableHandle(descriptor: Out<i32>, pool: Handle<Pool>, kind: u32, _flags: u64) {
        let pool = driver()?.pools.get(pool)?;
        match (&pool.token, kind) {
            (Some(token), DESCRIPTOR) => descriptor.set(token.export()?),
            (Some(_), _) => Err(Code::NOT_SUPPORTED),
            (None, _) => {
                because(|| "the pool was not created for file descriptors (`handleTypes`)".into());
                Err(Code::INVALID_VALUE)
            }
        }
    }
    11020 fn cuMemPoolImportFromShareableHandle(pool: Out<Handle<Pool>>, descriptor: Host, kind: u32, _flags: u64) {
        if kind != DESCRIPTOR {
            return Err(Code::NOT_SUPPORTED);
        }
        let descriptor = i32::try_from(descriptor.address()).map_err(|_| Code::INVALID_VALUE)?;
        pool.set(driver()?.pools.add(Pool::imported(Backing::import(descriptor)?)?))
    }
    11020 fn cuMemPoolExportPointer(handle: Out<Shareable>, address: DevicePtr) {
        let context = current()?;
        let from = driver()?.pools.get(pool::of(address).ok_or(Code::INVALID_VALUE)?)?;
        if from.token.is_none() {
            return Err(Code::INVALID_VALUE);
        }
        context.settle();
        handle.set(export(&context, address, SharedObject::Pointer)?)
    }
    11020 fn cuMemPoolImportPointer(address: Out<DevicePtr>, pool: Handle<Pool>, handle: In<Shareable>) {
        if !driver()?.pools.get(pool)?.is_imported {
            return Err(Code::INVALID_VALUE);
        }
        address.set(import(handle.get()?, SharedObject::Pointer)?)
    }
}
