//! The tensor memory of a CTA: 128 lanes of 512 words, allocated by columns (manual, sections 9.7.16.1 and 9.7.16.7).

/// Number of lanes.
pub const LANES: usize = 128;
/// Number of columns.
pub const COLUMNS: usize = 512;
/// Allocation granularity in columns.
const UNIT: usize = 32;

/// The tensor memory of one CTA.
#[derive(Default)]
pub struct TensorMemory {
    /// Words, lane by lane; empty before the first allocation.
    cells: Vec<u32>,
    /// By unit of columns: first column and size of the allocation.
    owners: [Option<(u16, u16)>; COLUMNS / UNIT],
    /// The CTA has given up the right to allocate.
    pub relinquished: bool,
}

impl TensorMemory {
    /// Allocates contiguous columns; `None` if there are not enough.
    pub fn allocate(&mut self, columns: u32) -> Option<u32> {
        let units = columns as usize / UNIT;
        let first = (0..=self.owners.len().checked_sub(units)?)
            .find(|first| self.owners[*first..first + units].iter().all(Option::is_none))?;
        let start = (first * UNIT) as u16;
        self.owners[first..first + units].fill(Some((start, columns as u16)));
        if self.cells.is_empty() {
            self.cells = vec![0; LANES * COLUMNS];
        }
        Some(start.into())
    }

    /// Frees an allocation; false if there is none of this address and size.
    pub fn free(&mut self, address: u32, columns: u32) -> bool {
        let mine = Some((address as u16, columns as u16));
        let known = address < COLUMNS as u32 && self.owners[address as usize / UNIT] == mine;
        self.owners.iter_mut().filter(|o| known && **o == mine).for_each(|o| *o = None);
        known
    }

    fn index(&self, lane: usize, column: usize) -> Option<usize> {
        let inside = lane < LANES && column < COLUMNS && self.owners[column / UNIT].is_some();
        inside.then_some(lane * COLUMNS + column)
    }

    /// Loads a word; `None` outside allocations.
    pub fn load(&self, lane: usize, column: usize) -> Option<u32> {
        self.cells.get(self.index(lane, column)?).copied()
    }

    /// Stores a word; `None` outside allocations.
    pub fn store(&mut self, lane: usize, column: usize, value: u32) -> Option<()> {
        let at = self.index(lane, column)?;
        self.cells.get_mut(at).map(|c| *c = value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_allocated_and_freed() {
        let mut t = TensorMemory::default();
        assert_eq!((t.allocate(256), t.allocate(128), t.allocate(256)), (Some(0), Some(256), None));
        assert_eq!(t.store(127, 383, 7), Some(()));
        assert_eq!((t.load(127, 383), t.load(0, 384), t.load(128, 0)), (Some(7), None, None));
        assert!(!t.free(256, 64) && !t.free(32, 256) && t.free(0, 256));
        assert_eq!((t.load(0, 0), t.allocate(64), t.allocate(256)), (None, Some(0), None));
    }
}
