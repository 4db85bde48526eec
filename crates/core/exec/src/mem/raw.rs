//! The one file of this crate that may use `unsafe`: host memory that device programs address.
//!
//! A [`Block`] is zeroed host memory of its own, or memory that somebody else lends. What leaves this file are references to std *atomics* inside it, after a check of
//! bounds and alignment; so everything else is safe code. A device program that races with itself (two CTAs on two host
//! threads) then reads some mixture of values, as on the hardware, and is no undefined behaviour of the host.
//!
//! Two things lie outside Rust's model. Racing accesses of *different size* to the same bytes: x86 and AArch64 define them (each
//! naturally aligned access is single-copy atomic), and the compiler cannot see them across the opaque addresses of a device program. And
//! accesses by others than this crate: compiled kernels access blocks with instructions of their own, and whoever lent memory uses it as
//! it likes. rustc compiles neither together with this crate, so what holds for them is what the processor promises.
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::cell::UnsafeCell;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes kept free on either side of a block, so that no two blocks touch and an access past the end hits nothing.
pub const RED_ZONE: usize = 256;

/// Host memory, addressed by host addresses.
#[derive(Debug)]
pub struct Block {
    start: NonNull<u8>,
    base: u64,
    /// Bytes that may be accessed: never more than there are.
    len: AtomicUsize,
    /// How it was allocated; `None` for memory on loan.
    layout: Option<Layout>,
}

// SAFETY: a block owns its memory, or has it on loan until `end_loan` or its own end. Shared references reach it through atomics only
// (`cell`, `cells`), and its other fields do not change or are atomic.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

/// The atomics that memory is accessed through.
pub trait Cell: sealed::Sealed + Sync + 'static {}

mod sealed {
    /// Only types that are valid for any bits, and that may be written through shared references.
    pub trait Sealed {}
}

macro_rules! cells {
    ($($t:ty)*) => { $(impl sealed::Sealed for $t {} impl Cell for $t {})* };
}

cells! { AtomicU8 AtomicU16 AtomicU32 AtomicU64 AtomicU128 }

/// 16 bytes that are read, written and exchanged at once.
///
/// Three ways, the first that the host has: aligned moves of 16 bytes, which every x86-64 processor with AVX does atomically (Intel's
/// manual, volume 3, "Guaranteed Atomic Operations"; AMD's says the same); `cmpxchg16b`; a lock, which only accesses of this type
/// take, so that a narrower one may then see half of a write. Loads acquire, stores release, exchanges are sequentially consistent.
#[repr(C, align(16))]
pub struct AtomicU128(UnsafeCell<u128>);

// SAFETY: all access goes through the methods below, which are atomic to each other.
unsafe impl Sync for AtomicU128 {}

impl AtomicU128 {
    /// The value.
    #[inline]
    pub fn load(&self) -> u128 {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if is_x86_feature_detected!("avx") {
            let out: std::arch::x86_64::__m128i;
            // SAFETY: the pointer is valid and aligned to 16 bytes. Written in assembly, for the compiler may part any other load.
            unsafe {
                std::arch::asm!("movdqa {}, xmmword ptr [{}]", lateout(xmm_reg) out, in(reg) self.0.get(), options(nostack, preserves_flags));
                return std::mem::transmute::<std::arch::x86_64::__m128i, u128>(out);
            }
        }
        // Exchanges nothing for nothing at worst.
        self.compare_exchange(0, 0)
    }

    /// Another value.
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

    /// Writes `new` if the value is `old`; gives what it was.
    #[inline]
    pub fn compare_exchange(&self, old: u128, new: u128) -> u128 {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if is_x86_feature_detected!("cmpxchg16b") {
            let (mut low, mut high) = (old as u64, (old >> 64) as u64);
            // SAFETY: the pointer is valid and aligned, and the host has the instruction. `rbx` belongs to the compiler, so it only holds
            // the low half of `new` meanwhile. Written in assembly, for the compiler may make a call of a library of the intrinsic.
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
        // SAFETY: whoever gets here on this host holds the lock.
        unsafe {
            let found = self.0.get().read();
            if found == old {
                self.0.get().write(new);
            }
            found
        }
    }

    /// Makes of the value what `f` says; gives what it was.
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

/// Held while 16 bytes are accessed on a host that has no instruction for that.
fn wide_lock() -> MutexGuard<'static, ()> {
    static WIDE: Mutex<()> = Mutex::new(());
    WIDE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Block {
    /// `len` zeroed bytes at a multiple of `align` (a power of two); `None` when the host has no memory left.
    pub fn new(len: usize, align: usize) -> Option<Block> {
        let align = align.max(16);
        let front = RED_ZONE.next_multiple_of(align);
        let size = len.checked_add(front)?.checked_add(RED_ZONE)?;
        let layout = Layout::from_size_align(size, align).ok()?;
        // SAFETY: the layout's size is at least the red zones', so not zero.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        let base = start.as_ptr().expose_provenance() as u64 + front as u64;
        Some(Block { start, base, len: AtomicUsize::new(len), layout: Some(layout) })
    }

    /// Bytes that it could have: those that it was made with.
    pub fn room(&self) -> usize {
        let front = self.base as usize - self.start.as_ptr().addr();
        self.layout.map_or(self.len(), |layout| layout.size() - front - RED_ZONE)
    }

    /// Makes its end come earlier.
    pub fn shorten(&mut self, len: usize) {
        *self.len.get_mut() = len.min(self.len());
    }

    /// Makes it a block of `len` zero bytes, or as many as it has room for; memory on loan stays as it is.
    pub fn renew(&mut self, len: usize) {
        if self.is_owned() {
            let len = len.min(self.room());
            *self.len.get_mut() = len;
            // SAFETY: `room` bytes from `base` on lie inside the allocation, and nobody else has a reference to the block.
            unsafe { self.pointer(self.base).cast_mut().write_bytes(0, len) };
        }
    }

    /// Ends a loan: from now on nothing of it can be accessed.
    pub fn end_loan(&self) {
        if !self.is_owned() {
            self.len.store(0, Relaxed);
        }
    }

    /// Memory that somebody else owns, from `base` on; `None` where that is null.
    ///
    /// # Safety
    /// The `len` bytes are readable, writable and initialised until [`Block::end_loan`] was called and no access is under way, or until the
    /// block is dropped; whoever else uses them in that time does not mind that device programs change them.
    pub unsafe fn on_loan(base: u64, len: usize) -> Option<Block> {
        let start = NonNull::new(std::ptr::with_exposed_provenance_mut(usize::try_from(base).ok()?))?;
        Some(Block { start, base, len: AtomicUsize::new(len), layout: None })
    }

    /// Whether the memory belongs to the block.
    pub fn is_owned(&self) -> bool {
        self.layout.is_some()
    }

    /// Address of the first byte.
    #[inline]
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Bytes.
    #[inline]
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.len.load(Relaxed)
    }

    /// Whether `size` bytes at `address` lie inside.
    #[inline]
    pub fn contains(&self, address: u64, size: usize) -> bool {
        let (offset, len) = (address.wrapping_sub(self.base), self.len());
        size <= len && offset <= (len - size) as u64
    }

    /// The cell at an address; `None` when it lies outside, in part too, or is misaligned.
    #[inline]
    pub fn cell<C: Cell>(&self, address: u64) -> Option<&C> {
        let size = size_of::<C>();
        if !self.contains(address, size) || !address.is_multiple_of(size as u64) {
            return None;
        }
        // SAFETY: in bounds and aligned by the check above; the memory is initialised (zeroed, or by its lender) and lives as long as
        // `self`; Rust code accesses it through atomics only.
        Some(unsafe { &*self.pointer(address).cast::<C>() })
    }

    /// `count` cells at an address; none are anywhere.
    #[inline]
    pub fn cells<C: Cell>(&self, address: u64, count: usize) -> Option<&[C]> {
        if count == 0 {
            return Some(&[]);
        }
        let size = size_of::<C>();
        if !self.contains(address, size.checked_mul(count)?) || !address.is_multiple_of(size as u64) {
            return None;
        }
        // SAFETY: as in `cell`, for `count` of them.
        Some(unsafe { std::slice::from_raw_parts(self.pointer(address).cast::<C>(), count) })
    }

    #[inline]
    fn pointer(&self, address: u64) -> *const u8 {
        let offset = (address - self.start.as_ptr().addr() as u64) as usize;
        // SAFETY: callers checked that the address lies between `base` and `base + len`, inside the allocation.
        unsafe { self.start.as_ptr().add(offset) }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if let Some(layout) = self.layout {
            // SAFETY: allocated in `new` with this layout, and nothing borrows it any more.
            unsafe { dealloc(self.start.as_ptr(), layout) }
        }
    }
}

/// A block's bytes on loan, for tests: they must go before it does.
#[cfg(test)]
pub fn lent(owner: &Block) -> Block {
    // SAFETY: the owner's bytes; the tests drop what was lent, or end the loan, before they drop the owner.
    unsafe { Block::on_loan(owner.base(), owner.len()) }.expect("a block has an address")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixteen_bytes_are_never_seen_in_parts() {
        let b = Block::new(16, 16).unwrap();
        let cell = b.cell::<AtomicU128>(b.base()).unwrap();
        let pair = |n: u64| u128::from(n) << 64 | u128::from(n);
        let rounds = if cfg!(miri) { 20 } else { 20_000 };
        std::thread::scope(|s| {
            s.spawn(|| (1..=rounds).for_each(|n| cell.store(pair(n))));
            s.spawn(|| {
                (1..=rounds).for_each(|_| {
                    cell.update(|v| v);
                })
            });
            for _ in 0..rounds {
                let seen = cell.load();
                assert_eq!(seen as u64, (seen >> 64) as u64);
            }
        });
        assert_eq!(cell.compare_exchange(pair(rounds), 5), pair(rounds));
        assert_eq!(cell.compare_exchange(pair(rounds), 6), 5);
        assert!(b.cell::<AtomicU128>(b.base() + 8).is_none(), "misaligned");
    }

    #[test]
    fn cells_are_in_bounds_and_aligned_or_none() {
        let b = Block::new(10, 64).unwrap();
        assert!(b.base().is_multiple_of(64));
        assert!(b.cell::<AtomicU64>(b.base()).is_some());
        assert!(b.cell::<AtomicU64>(b.base() + 8).is_none(), "two bytes are left");
        assert!(b.cell::<AtomicU16>(b.base() + 8).is_some());
        assert!(b.cell::<AtomicU16>(b.base() + 9).is_none(), "misaligned");
        assert!(b.cell::<AtomicU8>(b.base() - 1).is_none());
        assert!(b.cell::<AtomicU8>(u64::MAX).is_none());
        assert_eq!(b.cells::<AtomicU8>(b.base(), 10).unwrap().iter().map(|c| c.load(Relaxed)).sum::<u8>(), 0);
        assert!(b.cells::<AtomicU32>(b.base(), usize::MAX).is_none());
    }

    #[test]
    fn a_block_is_renewed_within_its_room() {
        let mut b = Block::new(64, 16).unwrap();
        b.shorten(10);
        assert_eq!((b.len(), b.room()), (10, 64));
        b.cell::<AtomicU8>(b.base() + 9).unwrap().store(7, Relaxed);
        b.renew(64);
        assert!(b.cells::<AtomicU8>(b.base(), 64).unwrap().iter().all(|c| c.load(Relaxed) == 0));
        b.renew(1000);
        assert_eq!(b.len(), 64);
    }
}
