//! Loads and stores of any size and alignment inside a block, in terms of the block's atomic cells.

use super::{
    Block,
    raw::{AtomicU128, Cell},
    untouched,
};
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

/// A plain type with an atomic cell of the same size.
pub trait Scalar: Copy + 'static {
    /// The atomic type.
    type Cell: Cell;
    /// Relaxed load.
    fn get(cell: &Self::Cell) -> Self;
    /// Relaxed store.
    fn set(cell: &Self::Cell, value: Self);
}

macro_rules! scalars {
    ($($t:ty = $c:ty;)*) => { $(impl Scalar for $t {
        type Cell = $c;
        #[inline] fn get(cell: &$c) -> $t { cell.load(Relaxed) }
        #[inline] fn set(cell: &$c, value: $t) { cell.store(value, Relaxed) }
    })* };
}

scalars! { u8 = AtomicU8; u16 = AtomicU16; u32 = AtomicU32; u64 = AtomicU64; }

impl Scalar for u128 {
    type Cell = AtomicU128;
    #[inline]
    fn get(cell: &AtomicU128) -> u128 {
        cell.load()
    }
    #[inline]
    fn set(cell: &AtomicU128, value: u128) {
        cell.store(value);
    }
}

/// Loads a value; `None` if out of bounds or misaligned.
#[inline]
pub fn load<T: Scalar>(block: &Block, address: u64) -> Option<T> {
    block.cell(address).map(T::get)
}

/// Stores a value; `None` if out of bounds or misaligned.
#[inline]
pub fn store<T: Scalar>(block: &Block, address: u64, value: T) -> Option<()> {
    block.cell(address).map(|c| T::set(c, value))
}

/// Splits `size` bytes at an address into leading bytes, 8-byte words, and trailing bytes.
fn split(address: u64, size: usize) -> (usize, usize, usize) {
    let head = (address.wrapping_neg() % 8) as usize;
    if head >= size {
        return (size, 0, 0);
    }
    (head, (size - head) / 8, (size - head) % 8)
}

/// Loads bytes; `None` if some are out of bounds.
pub fn load_bytes(block: &Block, address: u64, to: &mut [u8]) -> Option<()> {
    if block.load_bulk(address, to) {
        return Some(());
    }
    let (head, words, tail) = split(address, to.len());
    let (first, rest) = to.split_at_mut(head);
    let (middle, last) = rest.as_chunks_mut::<8>();
    for (b, c) in first.iter_mut().zip(block.cells::<AtomicU8>(address, head)?) {
        *b = c.load(Relaxed);
    }
    let address = address + head as u64;
    for (b, c) in middle.iter_mut().zip(block.cells::<AtomicU64>(address, words)?) {
        *b = c.load(Relaxed).to_ne_bytes();
    }
    let address = address + 8 * words as u64;
    for (b, c) in last.iter_mut().zip(block.cells::<AtomicU8>(address, tail)?) {
        *b = c.load(Relaxed);
    }
    Some(())
}

/// Stores bytes; `None` if some are out of bounds, in which case some may have been stored.
pub fn store_bytes(block: &Block, address: u64, from: &[u8]) -> Option<()> {
    if block.store_bulk(address, from) {
        return Some(());
    }
    let (head, words, tail) = split(address, from.len());
    let (first, rest) = from.split_at(head);
    let (middle, last) = rest.as_chunks::<8>();
    for (b, c) in first.iter().zip(block.cells::<AtomicU8>(address, head)?) {
        c.store(*b, Relaxed);
    }
    let address = address + head as u64;
    for (b, c) in middle.iter().zip(block.cells::<AtomicU64>(address, words)?) {
        c.store(u64::from_ne_bytes(*b), Relaxed);
    }
    let address = address + 8 * words as u64;
    for (b, c) in last.iter().zip(block.cells::<AtomicU8>(address, tail)?) {
        c.store(*b, Relaxed);
    }
    Some(())
}

/// Copies between blocks, or within one with overlap; `None` if some bytes are out of bounds.
pub fn copy(to: &Block, to_address: u64, from: &Block, from_address: u64, size: usize) -> Option<()> {
    if !to.contains(to_address, size) || !from.contains(from_address, size) {
        return None;
    }
    if to.copy_bulk(to_address, from, from_address, size) {
        return Some(());
    }
    const CHUNK: usize = 4096;
    let mut buffer = [0; CHUNK];
    let chunks = size.div_ceil(CHUNK);
    let backwards = to_address > from_address && to_address - from_address < size as u64;
    for i in 0..chunks {
        let at = if backwards { chunks - 1 - i } else { i } * CHUNK;
        let part = &mut buffer[..CHUNK.min(size - at)];
        load_bytes(from, from_address + at as u64, part)?;
        store_bytes(to, to_address + at as u64, part)?;
    }
    Some(())
}

/// Fills `size` bytes with a repeated pattern; `None` if some are out of bounds.
pub fn fill(block: &Block, address: u64, pattern: &[u8], size: usize) -> Option<()> {
    if !block.contains(address, size) || pattern.is_empty() {
        return None;
    }
    if pattern.iter().all(|b| *b == 0) {
        return untouched::zero(block, address, size).or_else(|| fill_bytes(block, address, 0, size));
    }
    if let [byte] = pattern {
        return fill_bytes(block, address, *byte, size);
    }
    let most = pattern.len() * (4096 / pattern.len()).max(1);
    let chunk: Vec<u8> = pattern.iter().copied().cycle().take(most.min(size)).collect();
    let mut at = 0;
    while at < size {
        let part = &chunk[..chunk.len().min(size - at)];
        store_bytes(block, address + at as u64, part)?;
        at += part.len();
    }
    Some(())
}

/// Fills with a single byte, without a buffer: windows of CTAs and threads are many, small, and cleared this way.
pub(super) fn fill_bytes(block: &Block, address: u64, byte: u8, size: usize) -> Option<()> {
    let (head, words, tail) = split(address, size);
    let (middle, last) = (address + head as u64, address + (head + 8 * words) as u64);
    block.cells::<AtomicU8>(address, head)?.iter().for_each(|c| c.store(byte, Relaxed));
    let word = u64::from_ne_bytes([byte; 8]);
    block.cells::<AtomicU64>(middle, words)?.iter().for_each(|c| c.store(word, Relaxed));
    block.cells::<AtomicU8>(last, tail)?.iter().for_each(|c| c.store(byte, Relaxed));
    Some(())
}
