//! The allocations that one warp or host thread has accessed last.
//!
//! Most code accesses a few allocations again and again. Code that follows pointers to objects of the device heap accesses another one
//! with nearly every lane, and would take [`Memory`]'s lock each time.

use super::{Allocation, Memory, RED_ZONE};
use std::sync::Arc;

/// Allocations accessed last, whatever their size.
const RECENT: usize = 4;
/// Small allocations, by a line of their addresses.
const LINES: usize = 1024;
/// Most bytes of a small allocation: what the lines keep from being freed is no more than four megabytes.
const SMALL: usize = 4096;
/// Misses before there are lines.
const MISSES: u32 = 16;

/// Whether an allocation is one of the many small ones that a program may have.
pub fn is_small(bytes: u64) -> bool {
    bytes <= SMALL as u64
}

/// A cache of allocations for [`Memory::remember`]. One of the launch's own (its parameters) must not be in it in the next launch.
#[derive(Default, Debug)]
pub struct Lookaside {
    epoch: u64,
    recent: [Option<Arc<Allocation>>; RECENT],
    next: usize,
    misses: u32,
    /// Allocations and the epochs at which they were found; empty until there were some misses.
    lines: Vec<(u64, Option<Arc<Allocation>>)>,
}

/// Index of an address in the lines. With a red zone on each side, small allocations are further apart than lines.
fn line(address: u64) -> usize {
    address as usize / RED_ZONE % LINES
}

fn holds(slot: &Option<Arc<Allocation>>, address: u64) -> bool {
    slot.as_ref().is_some_and(|a| a.block.contains(address, 1))
}

impl Lookaside {
    /// The allocation that contains an address; `own` is the launch's.
    #[inline]
    pub fn find(&mut self, (memory, own): (&Memory, &Allocation), address: u64) -> Option<&Arc<Allocation>> {
        let epoch = memory.epoch();
        if epoch != self.epoch {
            (self.epoch, self.recent) = (epoch, Default::default());
        }
        match self.recent.iter().position(|slot| holds(slot, address)) {
            Some(i) => self.recent[i].as_ref(),
            None => self.miss((memory, own), address),
        }
    }

    #[inline(never)]
    fn miss(&mut self, (memory, own): (&Memory, &Allocation), address: u64) -> Option<&Arc<Allocation>> {
        let line = line(address);
        let hit = self.lines.get(line).is_some_and(|(epoch, slot)| *epoch == self.epoch && holds(slot, address));
        if hit {
            return self.lines[line].1.as_ref();
        }
        let found = memory.remember(address, own)?;
        self.misses = self.misses.saturating_add(1);
        if self.misses > MISSES && is_small(found.block.len() as u64) && !std::ptr::eq(&*found, own) {
            if self.lines.is_empty() {
                self.lines.resize(LINES, (0, None));
            }
            self.lines[line] = (self.epoch, Some(found));
            return self.lines[line].1.as_ref();
        }
        self.next = (self.next + 1) % RECENT;
        self.recent[self.next] = Some(found);
        self.recent[self.next].as_ref()
    }
}
