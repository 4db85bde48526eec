//! Blocks with pages of their own, loans, and atomic operations of 16 bytes.

use super::*;
use crate::mem::{copy, fill, load_bytes, store_bytes};

#[test]
#[cfg(all(target_os = "linux", not(miri)))]
fn blocks_with_pages_of_their_own_can_be_shared() {
    use std::os::fd::AsFd;
    let file = rustix::fs::memfd_create("test", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    rustix::fs::ftruncate(&file, 8192).unwrap();
    rustix::io::pwrite(&file, &[5; 5000], 0).unwrap();
    for block in [Block::new(5000, 4096).unwrap(), Block::low(5000, 16).unwrap()] {
        assert!(block.has_own_pages());
        block.share(file.as_fd()).unwrap();
        let last = block.cell::<AtomicU8>(block.base() + 4999).unwrap();
        assert_eq!(last.swap(5, Relaxed), 5);
        let mut seen = [0; 2];
        last.store(7, Relaxed);
        rustix::io::pread(&file, &mut seen, 4998).unwrap();
        assert_eq!(seen, [5, 7]);
        last.store(5, Relaxed);
    }
    let small = Block::new(100, 256).unwrap();
    assert!(small.has_own_pages() || small.share(file.as_fd()).is_none());
}

#[test]
#[cfg(all(target_os = "linux", not(miri)))]
fn low_blocks() {
    let blocks: Vec<Block> = [1, 300, 70_000, 5 << 20].map(|len| Block::low(len, 1 << 18).unwrap()).into();
    for (i, b) in blocks.iter().enumerate() {
        let end = b.base() + b.len() as u64;
        assert!(b.base().is_multiple_of(1 << 18) && end <= 1 << 32 && b.room() >= b.len());
        assert!(blocks[..i].iter().all(|a| a.base() + a.len() as u64 <= b.base() || end <= a.base()));
        let last = b.cell::<AtomicU8>(end - 1).unwrap();
        assert_eq!(last.swap(7, Relaxed), 0);
    }
}

#[test]
fn accesses_of_16_bytes_do_not_tear() {
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
fn a_block_can_be_resized_within_its_room() {
    let mut b = Block::new(64, 16).unwrap();
    b.shorten(10);
    assert_eq!((b.len(), b.room()), (10, 64));
    b.cell::<AtomicU8>(b.base() + 9).unwrap().store(7, Relaxed);
    b.renew(64);
    assert!(b.cells::<AtomicU8>(b.base(), 64).unwrap().iter().all(|c| c.load(Relaxed) == 0));
    b.renew(1000);
    assert_eq!(b.len(), 64);
}

#[test]
fn bulk_moves_of_every_alignment() {
    let blocks = [0, 1].map(|_| Block::new(1 << 20, 4096).unwrap());
    let [a, b] = &blocks;
    let byte = |i: usize| (i.wrapping_mul(0x9e37_79b9) >> 11) as u8;
    // The largest size bypasses the caches.
    for (len, at, other) in
        [(1023, 5, 9), (1024, 0, 31), (1151, 31, 0), (5000, 7, 3), (70_001, 33, 64), (600_000, 3, 40)]
    {
        let data: Vec<u8> = (0..len).map(byte).collect();
        assert!(store_bytes(a, a.base() + at, &data).is_some());
        assert!(copy(b, b.base() + other, a, a.base() + at, len).is_some());
        let mut back = vec![0; len + 2];
        assert!(load_bytes(b, b.base() + other - u64::from(other > 0), &mut back).is_some());
        let before = usize::from(other > 0);
        assert!(back[before..before + len] == data[..], "{len} bytes from {at} to {other}");
        // Nothing around them is written.
        assert!(fill(b, b.base(), &[0], len + 100).is_some());
        assert_eq!((back[0], back[len + before]), (if before == 1 { 0 } else { data[0] }, 0));
    }
    // Overlapping ranges move as if by way of a copy.
    let data: Vec<u8> = (0..9000).map(byte).collect();
    for (from, to) in [(100, 0), (0, 100), (0, 4097)] {
        assert!(store_bytes(a, a.base() + from, &data).is_some());
        assert!(copy(a, a.base() + to, a, a.base() + from, data.len()).is_some());
        let mut back = vec![0; data.len()];
        assert!(load_bytes(a, a.base() + to, &mut back).is_some());
        assert!(back == data, "from {from} to {to}");
    }
    let mut room = vec![0; 2048];
    assert!(load_bytes(a, a.base() + (1 << 20) - 2047, &mut room).is_none(), "it ends outside");
    assert!(store_bytes(a, a.base() - 1, &room).is_none());
}
