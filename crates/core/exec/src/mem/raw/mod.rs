//! Host memory that device programs address; with `bulk.rs` the only file of this crate that may use `unsafe`.
//!
//! A [`Block`] owns zeroed host memory, or borrows memory on loan. It hands out references to std *atomics* inside its
//! memory only, after a check of bounds and alignment; all other code is safe. A device program that races with itself
//! (two CTAs on two host threads) then reads some mixture of values, as on hardware, without undefined behavior of the
//! host.
//!
//! Two cases lie outside Rust's memory model. Racing accesses of *different size* to the same bytes: x86 and AArch64
//! define them (each naturally aligned access is single-copy atomic), and the compiler cannot see them across the
//! opaque addresses of a device program. And accesses by other code: compiled kernels access blocks with instructions
//! of their own, and so may the lender of memory. rustc compiles neither together with this crate, so the guarantees of
//! the processor apply.
#![allow(unsafe_code)]

use super::arena::Arena;
use parking_lot::{Mutex, MutexGuard};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::cell::UnsafeCell;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Bytes reserved on either side of a block, so that no two blocks touch and an access past the end hits nothing.
pub const RED_ZONE: usize = 256;

/// A range of host memory, addressed by host addresses.
#[derive(Debug)]
pub struct Block {
    start: NonNull<u8>,
    base: u64,
    /// Number of accessible bytes, at most the capacity.
    len: AtomicUsize,
    /// Capacity.
    room: usize,
    owner: Owner,
    /// Its pages are a file's ([`Block::share`]).
    shared: AtomicBool,
}

/// Who gets a block's memory back.
#[derive(Debug)]
enum Owner {
    /// The system's allocator.
    Allocator(Layout),
    /// The system: pages of its own, below 4 GiB ([`Block::low`]).
    Pages(Layout),
    /// The arena that the block is a slot of.
    Arena(Arc<Arena>),
    /// Someone else, who has lent it.
    Lender,
}

// SAFETY: a block owns its memory, or has it on loan until `end_loan` or its drop. Shared references access it through
// atomics only (`cell`, `cells`), and its other fields are constant or atomic.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

/// The atomic types through which memory is accessed.
pub trait Cell: sealed::Sealed + Sync + 'static {}

mod sealed {
    /// Restricted to types that are valid for any bits and may be written through shared references.
    pub trait Sealed {}
}

macro_rules! cells {
    ($($t:ty)*) => { $(impl sealed::Sealed for $t {} impl Cell for $t {})* };
}

cells! { AtomicU8 AtomicU16 AtomicU32 AtomicU64 AtomicU128 }

/// 16 bytes with atomic load, store and compare-exchange.
///
/// Uses the best that the host has: aligned 16-byte moves, which every x86-64 processor with AVX performs atomically
/// (Intel's manual, volume 3, "Guaranteed Atomic Operations"; AMD's says the same); `cmpxchg16b`; or a lock, which only
/// accesses of this type take, so that a narrower access may see half of a write. Loads acquire, stores release,
/// exchanges are sequentially consistent.
#[repr(C, align(16))]
pub struct AtomicU128(UnsafeCell<u128>);

// SAFETY: all accesses go through the methods below, which are atomic with respect to each other.
unsafe impl Sync for AtomicU128 {}

impl AtomicU128 {
    /// Loads the value.
    #[inline]
    pub fn load(&self) -> u128 {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if is_x86_feature_detected!("avx") {
            let out: std::arch::x86_64::__m128i;
            // SAFETY: the pointer is valid and 16-byte aligned. In assembly, since the compiler may split any other
            // load.
            unsafe {
                std::arch::asm!("movdqa {}, xmmword ptr [{}]", lateout(xmm_reg) out, in(reg) self.0.get(), options(nostack, preserves_flags));
                return std::mem::transmute::<std::arch::x86_64::__m128i, u128>(out);
            }
        }
        // Leaves the value as it is: at worst it exchanges zero for zero.
        self.compare_exchange(0, 0)
    }

    /// Stores a value.
    #[inline]
    pub fn store(&self, value: u128) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if is_x86_feature_detected!("avx") {
            // SAFETY: as in `load`.
            unsafe {
                let value = std::mem::transmute::<u128, std::arch::x86_64::__m128i>(value);
                std::arch::asm!("movdqa xmmword ptr [{}], {}", in(reg) self.0.get(), in(xmm_reg) value, options(nostack, preserves_flags));
            }
            return;
        }
        self.update(|_| value);
    }

    /// Stores `new` if the value is `old`; returns the previous value.
    #[inline]
    pub fn compare_exchange(&self, old: u128, new: u128) -> u128 {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if is_x86_feature_detected!("cmpxchg16b") {
            let (mut low, mut high) = (old as u64, (old >> 64) as u64);
            // SAFETY: the pointer is valid and aligned, and the host has the instruction. `rbx` is reserved by the
            // compiler, so it holds the low half of `new` only in between. In assembly, since the compiler may turn the
            // intrinsic into a library call.
            unsafe {
                std::arch::asm!(
                    "xchg {new}, rbx",
                    "lock cmpxchg16b xmmword ptr [rdi]",
                    "mov rbx, {new}",
                    new = inout(reg) new as u64 => _,
                    in("rcx") (new >> 64) as u64,
                    inout("rax") low,
                    inout("rdx") high,
                    in("rdi") self.0.get(),
                    options(nostack),
                );
            }
            return u128::from(high) << 64 | u128::from(low);
        }
        let _held = wide_lock();
        // SAFETY: on this host, all accesses hold the lock.
        unsafe {
            let found = self.0.get().read();
            if found == old {
                self.0.get().write(new);
            }
            found
        }
    }

    /// Replaces the value by `f` of it; returns the previous value.
    #[inline]
    pub fn update(&self, f: impl Fn(u128) -> u128) -> u128 {
        let mut seen = self.compare_exchange(0, 0);
        loop {
            match self.compare_exchange(seen, f(seen)) {
                found if found == seen => return seen,
                found => seen = found,
            }
        }
    }
}

impl std::fmt::Debug for AtomicU128 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.load().fmt(f)
    }
}

/// Held during 16-byte accesses on a host without such instructions.
fn wide_lock() -> MutexGuard<'static, ()> {
    static WIDE: Mutex<()> = Mutex::new(());
    WIDE.lock()
}

/// The page size of the processors that blocks can be shared on.
const PAGE: usize = 4096;
/// The alignment that the system's allocator guarantees.
const OWN_ALIGN: usize = 16;

impl Block {
    /// Allocates `len` zeroed bytes aligned to `align`, a power of two; `None` if the host is out of memory.
    pub fn new(len: usize, align: usize) -> Option<Block> {
        // Whole large pages, from the first byte on.
        let block = Block::sparse(len, if len >= LARGE { align.max(LARGE_PAGE) } else { align })?;
        if let Owner::Allocator(layout) = &block.owner {
            prefer_large_pages(block.start, layout.size());
        }
        Some(block)
    }

    /// The same for a block that is accessed sparsely, so that large pages would fill the host's memory.
    pub fn sparse(len: usize, align: usize) -> Option<Block> {
        // More than the allocator's own alignment would make it write the zeros itself, and touch every page; the system's fresh pages
        // are zero, and cost nothing until they are used.
        let front = RED_ZONE.checked_add(align.max(OWN_ALIGN))?;
        // Aligned to pages, it has its pages to itself, so that they can be replaced (`share`).
        let rounded = if align >= PAGE { len.checked_next_multiple_of(PAGE)? } else { len };
        let size = rounded.checked_add(front)?.checked_add(RED_ZONE)?;
        let layout = Layout::from_size_align(size, OWN_ALIGN).ok()?;
        // SAFETY: the layout's size is at least the red zones', so not zero.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        let base = (start.as_ptr().expose_provenance() + RED_ZONE).next_multiple_of(align.max(OWN_ALIGN)) as u64;
        Some(Block::at(start, base, len, Owner::Allocator(layout)))
    }

    fn at(start: NonNull<u8>, base: u64, len: usize, owner: Owner) -> Block {
        Block { start, base, len: AtomicUsize::new(len), room: len, owner, shared: AtomicBool::new(false) }
    }

    /// A slot of an arena, which takes it back when the block is dropped; `None` if its memory does not contain the slot.
    pub(super) fn slot(arena: &Arc<Arena>, base: u64, room: usize) -> Option<Block> {
        let whole = arena.memory();
        whole.contains(base, room).then(|| Block::at(whole.start, base, room, Owner::Arena(arena.clone())))
    }

    /// The arena that the block is a slot of.
    pub(super) fn arena(&self) -> Option<&Arc<Arena>> {
        match &self.owner {
            Owner::Arena(arena) => Some(arena),
            _ => None,
        }
    }

    /// The same below 4 GiB, where addresses of 32 bits reach; `None` where the system has no such place.
    pub fn low(len: usize, align: usize) -> Option<Block> {
        let align = align.max(low::PAGE);
        let front = RED_ZONE.next_multiple_of(align);
        let size = len.checked_add(front)?.checked_add(RED_ZONE)?.checked_next_multiple_of(low::PAGE)?;
        let layout = Layout::from_size_align(size, align).ok()?;
        let start = low::map(layout)?;
        let base = start.as_ptr().expose_provenance() as u64 + front as u64;
        Some(Block::at(start, base, len, Owner::Pages(layout)))
    }

    /// Capacity: the largest length that it can have.
    pub fn room(&self) -> usize {
        self.room
    }

    /// Reduces the length.
    pub fn shorten(&mut self, len: usize) {
        *self.len.get_mut() = len.min(self.len());
    }

    /// Zeroes the block and sets its length to `len`, at most the capacity; memory on loan is left alone.
    pub fn renew(&mut self, len: usize) {
        if self.is_owned() {
            let len = len.min(self.room());
            *self.len.get_mut() = len;
            // SAFETY: `room` bytes from `base` on lie inside the allocation, and the reference to the block is unique.
            unsafe { self.pointer(self.base).cast_mut().write_bytes(0, len) };
        }
    }

    /// Ends a loan: makes the memory inaccessible through this block.
    pub fn end_loan(&self) {
        if !self.is_owned() {
            self.len.store(0, Relaxed);
        }
    }

    /// Borrows memory with another owner, starting at `base`; `None` if that is null.
    ///
    /// # Safety
    /// The `len` bytes must be readable, writable and initialized until [`Block::end_loan`] was called and no
    /// access is in progress, or until the block is dropped; and other users of the memory must tolerate concurrent
    /// writes by device programs.
    pub unsafe fn on_loan(base: u64, len: usize) -> Option<Block> {
        let start = NonNull::new(std::ptr::with_exposed_provenance_mut(usize::try_from(base).ok()?))?;
        Some(Block::at(start, base, len, Owner::Lender))
    }

    /// Whether the block has its pages to itself, as owned blocks do that are aligned to pages.
    pub fn has_own_pages(&self) -> bool {
        let end = (self.base as usize).saturating_add(self.room.next_multiple_of(PAGE));
        self.base.is_multiple_of(PAGE as u64)
            && match &self.owner {
                Owner::Allocator(layout) => end <= self.start.as_ptr().addr() + layout.size(),
                Owner::Pages(_) => true,
                Owner::Arena(_) | Owner::Lender => false,
            }
    }

    /// Puts a file's pages in the place of the block's, from then on: what other processes map that file, they share. The file holds the
    /// block's bytes already, and is as long as its pages. `None` if the block does not have its pages to itself, or the system refuses.
    #[cfg(target_os = "linux")]
    pub fn share(&self, file: std::os::fd::BorrowedFd<'_>) -> Option<()> {
        use rustix::mm::{MapFlags, ProtFlags, mmap};
        if !self.has_own_pages() {
            return None;
        }
        let (at, len) = (self.pointer(self.base).cast_mut().cast(), self.room.next_multiple_of(PAGE));
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::FIXED);
        self.shared.store(true, Relaxed);
        // SAFETY: whole pages of which every byte belongs to this block; they stay readable, writable and initialized.
        unsafe { mmap(at, len, access, flags, file, 0) }.ok().map(drop)
    }

    /// Puts private pages back, so that the allocator gets what it gave; whether that was possible.
    fn unshare(&self) -> bool {
        #[cfg(target_os = "linux")]
        if self.shared.load(Relaxed) && matches!(self.owner, Owner::Allocator(_)) {
            use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
            let (at, len) = (self.pointer(self.base).cast_mut().cast(), self.room.next_multiple_of(PAGE));
            let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::FIXED);
            // SAFETY: as in `share`; nothing borrows the block any more.
            return unsafe { mmap_anonymous(at, len, access, flags) }.is_ok();
        }
        true
    }

    /// Whether the block's memory is from the system's allocator and not shared: only this process's pages hold its contents.
    pub fn has_private_pages(&self) -> bool {
        matches!(self.owner, Owner::Allocator(_)) && !self.shared.load(Relaxed)
    }

    /// Whether the block owns its memory.
    pub fn is_owned(&self) -> bool {
        !matches!(self.owner, Owner::Lender)
    }

    /// Address of the first byte.
    #[inline]
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Length in bytes.
    #[inline]
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.len.load(Relaxed)
    }

    /// Whether `size` bytes at `address` lie within the block.
    #[inline]
    pub fn contains(&self, address: u64, size: usize) -> bool {
        let (offset, len) = (address.wrapping_sub(self.base), self.len());
        size <= len && offset <= (len - size) as u64
    }

    /// The cell at an address; `None` if it is not entirely inside, or misaligned.
    #[inline]
    pub fn cell<C: Cell>(&self, address: u64) -> Option<&C> {
        let size = size_of::<C>();
        if !self.contains(address, size) || !address.is_multiple_of(size as u64) {
            return None;
        }
        // SAFETY: in bounds and aligned by the check above; the memory is initialized (zeroed, or by its lender) and
        // lives as long as `self`; Rust code accesses it through atomics only.
        Some(unsafe { &*self.pointer(address).cast::<C>() })
    }

    /// `count` cells at an address; zero cells are valid at any address.
    #[inline]
    pub fn cells<C: Cell>(&self, address: u64, count: usize) -> Option<&[C]> {
        if count == 0 {
            return Some(&[]);
        }
        let size = size_of::<C>();
        if !self.contains(address, size.checked_mul(count)?) || !address.is_multiple_of(size as u64) {
            return None;
        }
        // SAFETY: as in `cell`, for `count` cells.
        Some(unsafe { std::slice::from_raw_parts(self.pointer(address).cast::<C>(), count) })
    }

    #[inline]
    fn pointer(&self, address: u64) -> *const u8 {
        let offset = (address - self.start.as_ptr().addr() as u64) as usize;
        // SAFETY: callers have checked that the address lies in `base..=base + len`, inside the allocation.
        unsafe { self.start.as_ptr().add(offset) }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        match &self.owner {
            // SAFETY: mapped in `low` with this size, and nothing borrows it any more.
            Owner::Pages(layout) => unsafe { low::unmap(self.start, layout.size()) },
            // SAFETY: allocated in `new` with this layout, and nothing borrows it any more.
            Owner::Allocator(layout) if self.unshare() => unsafe { dealloc(self.start.as_ptr(), *layout) },
            Owner::Arena(arena) => arena.take_back(self.base, self.room),
            Owner::Allocator(_) | Owner::Lender => {}
        }
    }
}

/// From this size on, blocks ask for large pages.
const LARGE: usize = 4 << 20;
/// The size of those.
const LARGE_PAGE: usize = 2 << 20;

/// Asks the system for large pages, as a GPU's memory has: kernels that walk through columns touch a page per lane, and would spend their
/// time in the processor's page tables.
fn prefer_large_pages(start: NonNull<u8>, size: usize) {
    #[cfg(all(target_os = "linux", not(miri)))]
    if size >= LARGE {
        use rustix::mm::{Advice, madvise};
        let skipped = start.as_ptr().addr().next_multiple_of(PAGE) - start.as_ptr().addr();
        let whole = (size - skipped) / PAGE * PAGE;
        // SAFETY: whole pages inside a new allocation; the advice changes no contents. A system without large pages refuses, which does
        // no harm.
        let _ = unsafe { madvise(start.as_ptr().add(skipped).cast(), whole, Advice::LinuxHugepage) };
    }
    let _ = (start, size);
}

/// Pages below 4 GiB. The host's allocators do not use that range, so in a position-independent executable all of it is free.
#[cfg(target_os = "linux")]
mod low {
    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
    use std::{
        alloc::Layout,
        ptr::{NonNull, with_exposed_provenance_mut},
        sync::atomic::{AtomicUsize, Ordering::Relaxed},
    };

    /// The largest page size of common systems.
    pub const PAGE: usize = 64 << 10;
    /// Executables with fixed addresses lie below.
    const LOWEST: usize = 0x1000_0000;
    /// Addresses of functions lie above ([`crate::Image::function_address`]).
    const HIGHEST: usize = 0xf000_0000;
    /// Where to look for room next. Unmapped ranges are reused as late as possible, so that stale addresses fault.
    static NEXT: AtomicUsize = AtomicUsize::new(LOWEST);

    /// Zeroed pages.
    pub fn map(layout: Layout) -> Option<NonNull<u8>> {
        let (size, align) = (layout.size(), layout.align());
        let (mut at, mut wrapped) = (NEXT.load(Relaxed), false);
        loop {
            at = at.next_multiple_of(align);
            if at.checked_add(size)? > HIGHEST {
                if std::mem::replace(&mut wrapped, true) {
                    return None;
                }
                at = LOWEST;
                continue;
            }
            let (flags, access) = (MapFlags::PRIVATE | MapFlags::FIXED_NOREPLACE, ProtFlags::READ | ProtFlags::WRITE);
            // SAFETY: new pages, which replace nothing that is mapped.
            match unsafe { mmap_anonymous(with_exposed_provenance_mut(at), size, access, flags) } {
                Ok(p) if p.addr() == at => {
                    NEXT.store(at + size, Relaxed);
                    return NonNull::new(p.cast());
                }
                // Linux before 4.17 takes the address for a hint.
                // SAFETY: mapped just now.
                Ok(p) => drop(unsafe { munmap(p, size) }),
                Err(_) => {}
            }
            at += size.next_multiple_of(1 << 20);
        }
    }

    /// Gives pages back.
    ///
    /// # Safety
    /// They are from [`map`], of this size, and unused.
    pub unsafe fn unmap(start: NonNull<u8>, size: usize) {
        // SAFETY: as above. It fails for no pages that are mapped.
        let _ = unsafe { munmap(start.as_ptr().cast(), size) };
    }
}

/// Not implemented for other systems.
#[cfg(not(target_os = "linux"))]
mod low {
    use std::{alloc::Layout, ptr::NonNull};

    pub const PAGE: usize = 64 << 10;

    pub fn map(_: Layout) -> Option<NonNull<u8>> {
        None
    }

    pub unsafe fn unmap(_: NonNull<u8>, _: usize) {}
}

/// A block's memory on loan, for tests; must be dropped before its owner.
#[cfg(test)]
pub fn lent(owner: &Block) -> Block {
    // SAFETY: the owner's bytes; the tests drop what was lent, or end the loan, before they drop the owner.
    unsafe { Block::on_loan(owner.base(), owner.len()) }.expect("a block has an address")
}

mod bulk;
#[cfg(test)]
mod tests;
