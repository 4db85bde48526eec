//! A cache of the allocations that one warp or host thread accessed most recently.
//!
//! Most code accesses a few allocations again and again. Code that follows pointers to objects of the device heap, or to the rows of a
//! matrix that are allocated one by one, accesses a different allocation with nearly every lane, and would take [`Memory`]'s lock each time.

use super::{Allocation, Arena, Memory, RED_ZONE};
use std::sync::Arc;

/// Number of most recently accessed allocations that are compared first.
const RECENT: usize = 4;
/// Misses before there are lines.
const MISSES: u32 = 16;
/// The least and the largest number of lines.
const LINES: [usize; 2] = [256, 4096];
/// Most bytes of an allocation that lines keep after it was freed: a few megabytes in all.
const SMALL: usize = 4096;

/// Whether an allocation is one of the many that a program may use side by side.
pub fn is_small(bytes: u64) -> bool {
    bytes <= 16 * SMALL as u64
}

/// An allocation, and the epoch at which it was found.
type Line = (u64, Option<Arc<Allocation>>);

/// A cache of allocations for [`Memory::remember`]. A launch's own allocation (its parameters) must not stay in it for the next launch.
#[derive(Default, Debug)]
pub struct Lookaside {
    epoch: u64,
    recent: [Option<Arc<Allocation>>; RECENT],
    next: usize,
    /// Misses since the lines were made, or since something was freed while there were none.
    misses: u32,
    /// Allocations found in the lines since something was freed.
    hits: u32,
    /// Allocations by parts of their addresses; a power of two, or none until there were some misses.
    lines: Vec<Line>,
    /// Log2 of the part sizes that occur in `lines`, as a set of bits ([`part`]).
    parts: u64,
    /// Whether `lines` has had allocations that are not small.
    large: bool,
}

/// Log2 of the size of the parts of the address space by which an allocation is entered in the lines. It has some parts to itself, and
/// shares its first and last ones with its neighbors.
fn part(allocation: &Allocation) -> u32 {
    let least = if allocation.block.arena().is_some() { Arena::GRANULE } else { RED_ZONE };
    (allocation.block.len() / 2).max(least).ilog2()
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
            self.renew(epoch);
        }
        match self.recent.iter().position(|slot| holds(slot, address)) {
            Some(i) => self.recent[i].as_ref(),
            None => self.miss((memory, own), address),
        }
    }

    /// Something was freed. Small allocations stay until others take their lines, unless so much is freed that lines are of no use.
    #[cold]
    fn renew(&mut self, epoch: u64) {
        if self.large || self.hits < MISSES {
            *self = Lookaside::default();
        }
        (self.epoch, self.recent, self.hits) = (epoch, Default::default(), 0);
    }

    /// Index of an address's part in the lines.
    fn line(&self, address: u64, part: u32) -> usize {
        ((address >> part) as usize).wrapping_add(part as usize * 97) & (self.lines.len() - 1)
    }

    #[inline(never)]
    fn miss(&mut self, (memory, own): (&Memory, &Allocation), address: u64) -> Option<&Arc<Allocation>> {
        let mut parts = self.parts;
        while parts != 0 {
            let line = self.line(address, parts.trailing_zeros());
            let (epoch, slot) = &self.lines[line];
            if *epoch == self.epoch && holds(slot, address) {
                self.hits = self.hits.saturating_add(1);
                return self.lines[line].1.as_ref();
            }
            parts &= parts - 1;
        }
        let found = memory.remember(address, own)?;
        self.misses = self.misses.saturating_add(1);
        self.grow();
        if self.lines.is_empty() || std::ptr::eq(&*found, own) {
            self.next = (self.next + 1) % RECENT;
            self.recent[self.next] = Some(found);
            return self.recent[self.next].as_ref();
        }
        let part = part(&found);
        let line = self.line(address, part);
        self.parts |= 1 << part;
        self.large |= found.block.len() > SMALL;
        self.lines[line] = (self.epoch, Some(found));
        self.lines[line].1.as_ref()
    }

    /// Makes lines, or more lines, if there were many misses for their number.
    fn grow(&mut self) {
        let [least, most] = LINES;
        let (enough, len) = match self.lines.len() {
            0 => (MISSES, least),
            len => (4 * len as u32, 4 * len),
        };
        if self.misses > enough && len <= most {
            (self.misses, self.parts) = (0, 0);
            self.lines = vec![(0, None); len];
        }
    }
}
