//! How much memory programs may still allocate: as much as the device has, and no more than the host can give. Memory costs the host
//! nothing until it is written, so memory that was allocated but never written still counts against the host's free memory.

use crate::{
    code::{Code, Outcome},
    device::total_memory,
    driver::driver,
};
use margay_exec::{Memory, mem::Allocation};
use std::{
    fs::File,
    os::unix::fs::FileExt,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

/// Bytes that may be allocated between two looks at the host's memory.
const UNWATCHED: u64 = 32 << 20;
/// Allocations below this size do not count as unwritten.
const SMALL: usize = 1 << 20;
/// Pages of an allocation that are looked at.
const SAMPLES: usize = 32;
const PAGE: usize = 4096;

/// Bytes of `cuMemCreate` in use.
static PHYSICAL: AtomicU64 = AtomicU64::new(0);
/// Bytes allocated since the last look at the host's memory.
static SINCE: AtomicU64 = AtomicU64::new(0);

/// Records physical memory, which no allocation of the device's memory accounts for.
pub fn record_physical(bytes: usize) {
    PHYSICAL.fetch_add(bytes as u64, Relaxed);
}

/// Records its end.
pub fn record_physical_free(bytes: usize) {
    PHYSICAL.fetch_sub(bytes as u64, Relaxed);
}

/// Bytes in use on the device.
pub fn used(memory: &Memory) -> u64 {
    memory.usage().0 + PHYSICAL.load(Relaxed)
}

/// Bytes that can be allocated: for programs that ask before they allocate.
pub fn free(memory: &Memory) -> u64 {
    let on_device = total_memory().saturating_sub(used(memory));
    left(memory).map_or(on_device, |left| on_device.min(left))
}

/// Whether the device and the host have room for this many more bytes.
pub fn fits(memory: &Memory, bytes: u64) -> bool {
    if used(memory).saturating_add(bytes) > total_memory() {
        return false;
    }
    if SINCE.fetch_add(bytes, Relaxed).saturating_add(bytes) < UNWATCHED {
        return true;
    }
    SINCE.store(0, Relaxed);
    left(memory).is_none_or(|left| bytes <= left)
}

/// Tells why an allocation failed although the device has room for it.
pub fn explain(memory: &Memory, bytes: u64) {
    if used(memory).saturating_add(bytes) > total_memory() {
        return;
    }
    let left = left(memory).unwrap_or(0);
    crate::api::say(&format!(
        "margay: {bytes} bytes were not allocated: they fit on the device, but the host has only {left} bytes free"
    ));
}

/// Free host memory in bytes that is not reserved; `None` if the host does not report it.
fn left(memory: &Memory) -> Option<u64> {
    Some(margay::host::available()?.saturating_sub(unwritten(memory)))
}

/// Bytes of allocations that the host has given no memory for yet, from samples of their pages.
fn unwritten(memory: &Memory) -> u64 {
    let Ok(pages) = File::open("/proc/self/pagemap") else { return 0 };
    let large = memory.allocations().into_iter().filter(|a| a.block.is_owned() && a.block.len() >= SMALL);
    large.map(|a| unwritten_part(&pages, &a)).sum()
}

fn unwritten_part(pages: &File, allocation: &Allocation) -> u64 {
    const PRESENT: u64 = 1 << 63;
    const SWAPPED: u64 = 1 << 62;
    let (base, len) = (allocation.block.base() as usize, allocation.block.len());
    let missing = (0..SAMPLES).filter(|i| {
        let page = (base + len / SAMPLES * i) / PAGE;
        let mut entry = [0; 8];
        let read = pages.read_exact_at(&mut entry, 8 * page as u64);
        read.is_ok() && u64::from_ne_bytes(entry) & (PRESENT | SWAPPED) == 0
    });
    (len / SAMPLES * missing.count()) as u64
}

/// Checks that physical memory, which is not in the device's own table, may be created.
pub fn check_physical(bytes: usize) -> Outcome {
    let memory = driver()?.device.memory();
    if fits(memory, bytes as u64) {
        return Ok(());
    }
    explain(memory, bytes as u64);
    Err(Code::OUT_OF_MEMORY)
}
