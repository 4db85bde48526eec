//! Zeroing memory without touching pages that nobody has touched: the system gives them as zeros, and programs allocate, and zero, more than
//! they use.

use super::{Block, access};

/// Fewer bytes are zeroed faster than the system is asked about them.
const LEAST: usize = 4 << 20;
/// Bytes that are left alone, or zeroed, together: a large page.
const CHUNK: usize = 2 << 20;

/// Zeroes `size` bytes; `None` if some are out of bounds, or if it is not worth asking which pages are untouched, or impossible.
pub fn zero(block: &Block, address: u64, size: usize) -> Option<()> {
    if size < LEAST || !block.contains(address, size) {
        return None;
    }
    let pages = Pages::open()?;
    let end = address + size as u64;
    let mut at = address;
    while at < end {
        let next = (at + 1).next_multiple_of(CHUNK as u64).min(end);
        let len = (next - at) as usize;
        // Asked last: in the meantime, the pages may have become a file's, of which this process has touched none.
        let fresh = len == CHUNK && pages.untouched(at) && block.has_private_pages();
        if !fresh {
            access::fill_bytes(block, at, 0, len)?;
        }
        at = next;
    }
    Some(())
}

/// The system's record of this process's pages.
struct Pages {
    #[cfg(target_os = "linux")]
    record: std::fs::File,
    page: usize,
}

#[cfg(all(target_os = "linux", not(miri)))]
impl Pages {
    fn open() -> Option<Pages> {
        let page = rustix::param::page_size();
        Some(Pages { record: std::fs::File::open("/proc/self/pagemap").ok()?, page })
            .filter(|_| CHUNK.is_multiple_of(page))
    }

    /// Whether the chunk at an address has no page in memory or in swap space.
    fn untouched(&self, chunk: u64) -> bool {
        use std::os::unix::fs::FileExt;
        /// Of an entry: the page is present, or swapped out.
        const HELD: u64 = 0b11 << 62;
        let mut entries = [0; CHUNK / 4096 * 8];
        let Some(entries) = entries.get_mut(..CHUNK / self.page * 8) else { return false };
        self.record.read_exact_at(entries, chunk / self.page as u64 * 8).is_ok()
            && entries.as_chunks::<8>().0.iter().all(|e| u64::from_ne_bytes(*e) & HELD == 0)
    }
}

/// Other systems are not asked.
#[cfg(not(all(target_os = "linux", not(miri))))]
impl Pages {
    fn open() -> Option<Pages> {
        None
    }

    fn untouched(&self, _: u64) -> bool {
        self.page == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_zeroed() {
        let block = Block::new(5 * CHUNK, 256).unwrap();
        let (base, len) = (block.base(), block.len());
        let written = [0, 1, CHUNK + 5, 3 * CHUNK - 1, 4 * CHUNK, len - 1].map(|i| base + i as u64);
        for at in written {
            access::store(&block, at, 7u8).unwrap();
        }
        access::fill(&block, base + 1, &[0, 0], len - 2).unwrap();
        let kept = written.map(|at| access::load::<u8>(&block, at).unwrap());
        assert_eq!(kept, [7, 0, 0, 0, 0, 7]);
    }

    #[test]
    #[cfg(all(target_os = "linux", not(miri)))]
    fn pages_that_nobody_has_touched_stay_untouched() {
        let block = Block::new(8 * CHUNK, 256).unwrap();
        let chunk = (block.base() + 4 * CHUNK as u64).next_multiple_of(CHUNK as u64);
        access::fill(&block, block.base(), &[0], block.len()).unwrap();
        let Some(pages) = Pages::open() else { return };
        assert!(pages.untouched(chunk));
        access::store(&block, chunk + 4096, 0u8).unwrap();
        assert!(!pages.untouched(chunk));
    }

    #[test]
    fn ranges_out_of_bounds_are_refused() {
        let block = Block::new(2 * LEAST, 256).unwrap();
        assert!(access::fill(&block, block.base() + 1, &[0], 2 * LEAST).is_none());
    }
}
