//! Moves of many bytes, with the host's vector instructions: copies between host and device run at the speed of `memcpy`.
//!
//! The moves are in assembly, like the instructions of compiled kernels: the compiler sees no accesses of other threads to the same bytes,
//! and each byte is moved once. `memcpy` itself may not be called on memory that others write.

use super::Block;

/// Bytes below which the caller's own loop is as fast.
const LEAST: usize = 1 << 10;
/// From this size in bytes on, moves bypass the caches: more than a core's share of them.
const STREAM: usize = if cfg!(test) { 64 << 10 } else { 16 << 20 };

impl Block {
    /// Loads bytes in one go, if they are many and in bounds; whether it did.
    #[inline]
    pub fn load_bulk(&self, address: u64, to: &mut [u8]) -> bool {
        // SAFETY: the bytes are in bounds by the check, and `to` is borrowed.
        let load = |to: &mut [u8]| unsafe { move_bytes(to.as_mut_ptr(), self.pointer(address), to.len()) };
        to.len() >= LEAST && self.contains(address, to.len()) && load(to)
    }

    /// The same for a store.
    #[inline]
    pub fn store_bulk(&self, address: u64, from: &[u8]) -> bool {
        // SAFETY: the bytes are in bounds by the check, and `from` is borrowed.
        let store = || unsafe { move_bytes(self.pointer(address).cast_mut(), from.as_ptr(), from.len()) };
        from.len() >= LEAST && self.contains(address, from.len()) && store()
    }

    /// The same for a copy from a block; the two ranges may not overlap.
    #[inline]
    pub fn copy_bulk(&self, address: u64, from: &Block, from_address: u64, size: usize) -> bool {
        let inside = || self.contains(address, size) && from.contains(from_address, size);
        let apart = || address.abs_diff(from_address) >= size as u64;
        // SAFETY: the bytes are in bounds by the check.
        let copy = || unsafe { move_bytes(self.pointer(address).cast_mut(), from.pointer(from_address), size) };
        size >= LEAST && inside() && apart() && copy()
    }
}

/// Moves at least [`LEAST`] bytes; whether the host can.
///
/// # Safety
/// The bytes must be readable at `from` and writable at `to`, and must not overlap.
unsafe fn move_bytes(to: *mut u8, from: *const u8, len: usize) -> bool {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if is_x86_feature_detected!("avx") {
        // SAFETY: the caller's promise, and the processor has AVX.
        unsafe { avx::move_bytes(to, from, len) };
        return true;
    }
    let _ = (to, from, len);
    false
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod avx {
    use std::arch::asm;

    /// Bytes of an iteration.
    const LINE: usize = 128;

    /// Moves bytes upwards.
    ///
    /// # Safety
    /// As above; and there are at least [`super::LEAST`].
    #[target_feature(enable = "avx")]
    pub unsafe fn move_bytes(to: *mut u8, from: *const u8, len: usize) {
        // The lines begin where stores are aligned.
        let head = to.addr().wrapping_neg() % 32;
        let lines = (len - head) / LINE;
        let tail = len - head - lines * LINE;
        macro_rules! moves {
            ($store:literal, $fence:literal) => {
                asm!(
                    "rep movsb",
                    "2:",
                    "vmovdqu {a}, [rsi]",
                    "vmovdqu {b}, [rsi + 32]",
                    "vmovdqu {c}, [rsi + 64]",
                    "vmovdqu {d}, [rsi + 96]",
                    concat!($store, " [rdi], {a}"),
                    concat!($store, " [rdi + 32], {b}"),
                    concat!($store, " [rdi + 64], {c}"),
                    concat!($store, " [rdi + 96], {d}"),
                    "add rsi, 128",
                    "add rdi, 128",
                    "dec {lines}",
                    "jnz 2b",
                    $fence,
                    "mov rcx, {tail}",
                    "rep movsb",
                    lines = inout(reg) lines => _,
                    tail = in(reg) tail,
                    inout("rcx") head => _,
                    inout("rsi") from => _,
                    inout("rdi") to => _,
                    a = out(ymm_reg) _,
                    b = out(ymm_reg) _,
                    c = out(ymm_reg) _,
                    d = out(ymm_reg) _,
                    options(nostack),
                )
            };
        }
        // SAFETY: head, lines and tail are the bytes of the caller's promise, one after another; all registers are declared, and the direction
        // flag is clear, as the calling convention demands. The fence orders streaming stores before what follows.
        unsafe {
            if len >= super::STREAM {
                moves!("vmovntdq", "sfence");
            } else {
                moves!("vmovdqa", "");
            }
        }
    }
}
