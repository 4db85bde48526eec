//! Recently freed allocations, for messages.

use super::{Allocation, Kind, allocation::describe};
use margay_ir::{Source, SourcePlace};
use parking_lot::Mutex;
use std::{collections::VecDeque, fmt, sync::Arc};

/// Number of allocations remembered.
const LIMIT: usize = 1 << 12;

/// Who frees an allocation, or queues work.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Initiator {
    /// The host.
    Host,
    /// A device thread: its index in its CTA, and the CTA's index in the grid.
    Thread([u32; 3], [u32; 3]),
}

/// Where device code called `free`, and the calls that led there, innermost first.
#[derive(Clone, Default, Debug)]
pub struct Path(pub Vec<(Arc<Source>, SourcePlace)>);

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (depth, (source, place)) in self.0.iter().enumerate() {
            let (file, line, column) = place.loc;
            f.write_str(if depth == 0 { " at " } else { ", called at " })?;
            match source.files.get(&file).filter(|_| line > 0) {
                Some(file) => write!(f, "{file}:{line}:{column}")?,
                None => write!(f, "{}:{}", source.name, source.lines().line(place.span.start))?,
            }
        }
        Ok(())
    }
}

/// A freed allocation.
#[derive(Debug)]
struct Freed {
    base: u64,
    len: usize,
    kind: Kind,
    name: Box<str>,
    by: Initiator,
    path: Path,
}

impl fmt::Display for Freed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        describe(f, self.kind, &self.name, self.len, self.base)?;
        match self.by {
            Initiator::Host => write!(f, ", which the host freed"),
            Initiator::Thread([x, y, z], [i, j, k]) => {
                write!(f, ", which thread ({x}, {y}, {z}) of CTA ({i}, {j}, {k}) freed{}", self.path)
            }
        }
    }
}

/// The latest freed allocations, oldest first.
#[derive(Default, Debug)]
pub struct History(Mutex<VecDeque<Freed>>);

impl History {
    /// Records that an allocation was freed.
    pub fn add(&self, a: &Allocation, by: Initiator, path: Path) {
        let mut all = self.0.lock();
        if all.len() == LIMIT {
            all.pop_front();
        }
        let (base, len) = (a.block.base(), a.block.len());
        all.push_back(Freed { base, len, kind: a.kind, name: a.name.clone(), by, path });
    }

    /// Describes the position of an address in the allocation that was freed last there.
    pub fn at(&self, address: u64) -> Option<String> {
        let all = self.0.lock();
        let gone = all.iter().rev().find(|g| address.wrapping_sub(g.base) < g.len as u64)?;
        Some(format!("{} bytes into the {gone}", address - gone.base))
    }

    /// Where the allocation that was freed last at an address began.
    pub fn base(&self, address: u64) -> Option<u64> {
        let all = self.0.lock();
        all.iter().rev().find(|g| address.wrapping_sub(g.base) < g.len as u64).map(|g| g.base)
    }

    /// Whether the allocation freed last at `address` was on the device heap and began there.
    pub fn is_freed_heap(&self, address: u64) -> bool {
        let all = self.0.lock();
        let gone = all.iter().rev().find(|g| address.wrapping_sub(g.base) < g.len as u64);
        gone.is_some_and(|g| g.kind == Kind::Heap && g.base == address)
    }
}
