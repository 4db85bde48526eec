//! Counters of what a launch executes: instructions, active lanes, access shapes, bytes.

use crate::LANES;
use margay_ir::MemSpace;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A counter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Count {
    /// Instructions, once per group of lanes that executes them.
    Instructions,
    /// Active lanes, summed over instructions.
    Lanes,
    /// Accesses in which all lanes, or all lanes of each row of 4 or more, use one address.
    Uniform,
    /// Accesses in which neighboring lanes (of such rows) use neighboring addresses: coalesced.
    Contiguous,
    /// All other accesses: gathers and scatters.
    Scattered,
    /// Bytes read and written in a space, as the instruction names it. Kernel parameters are not counted.
    Bytes(MemSpace),
}

/// Spaces for which [`Count::Bytes`] is counted.
pub const COUNTED_SPACES: [MemSpace; 6] =
    [MemSpace::Global, MemSpace::Shared, MemSpace::SharedCluster, MemSpace::Local, MemSpace::Const, MemSpace::Generic];

/// Number of counters in [`Counts`].
pub const COUNTS: usize = 5 + COUNTED_SPACES.len();

impl Count {
    /// The index of a counter; `None` for bytes of a space that is not counted.
    pub fn cell(self) -> Option<usize> {
        Some(match self {
            Count::Instructions => 0,
            Count::Lanes => 1,
            Count::Uniform => 2,
            Count::Contiguous => 3,
            Count::Scattered => 4,
            Count::Bytes(space) => 5 + COUNTED_SPACES.iter().position(|s| *s == space)?,
        })
    }
}

/// The counters of a launch, summed over host threads.
#[derive(Debug, Default)]
pub struct Counts([AtomicU64; COUNTS]);

impl Counts {
    /// The value of a counter.
    pub fn get(&self, count: Count) -> u64 {
        count.cell().map_or(0, |cell| self.0[cell].load(Relaxed))
    }

    /// Adds to a counter.
    pub fn add(&self, count: Count, n: u64) {
        if let Some(cell) = count.cell() {
            self.0[cell].fetch_add(n, Relaxed);
        }
    }

    /// Adds to all counters, by index.
    pub fn add_all(&self, cells: &[u64; COUNTS]) {
        for (sum, n) in self.0.iter().zip(cells) {
            sum.fetch_add(*n, Relaxed);
        }
    }

    /// Counts an access of `size` bytes by each lane of `lanes`.
    pub fn access(&self, space: MemSpace, lanes: u32, addresses: &[u64; LANES], size: u32) {
        let bytes = Count::Bytes(space);
        if bytes.cell().is_none() || lanes == 0 {
            return;
        }
        let all = |stride: u64| WIDTHS.iter().any(|width| in_rows(lanes, addresses, *width, stride));
        self.add(bytes, u64::from(lanes.count_ones()) * u64::from(size));
        self.add(
            match () {
                _ if all(0) => Count::Uniform,
                _ if all(size.into()) => Count::Contiguous,
                _ => Count::Scattered,
            },
            1,
        );
    }
}

/// Widths of the rows that the lanes of a warp form, depending on the block's shape.
const WIDTHS: [usize; 4] = [32, 16, 8, 4];

/// Whether the addresses of the lanes of each row are `stride` bytes apart.
fn in_rows(lanes: u32, addresses: &[u64; LANES], width: usize, stride: u64) -> bool {
    addresses.chunks(width).enumerate().all(|(row, addresses)| {
        let active = |lane: &usize| lanes >> (row * width + lane) & 1 == 1;
        let start = |lane: usize| addresses[lane].wrapping_sub(lane as u64 * stride);
        let first = (0..width).find(active).map(start);
        (0..width).filter(active).all(|lane| Some(start(lane)) == first)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_have_a_shape_and_bytes() {
        let counts = Counts::default();
        let lanes = |stride: u64| std::array::from_fn(|lane| 4096 + lane as u64 * stride);
        counts.access(MemSpace::Global, u32::MAX, &lanes(4), 4);
        counts.access(MemSpace::Global, 0b110, &lanes(4), 4);
        counts.access(MemSpace::Shared, u32::MAX, &lanes(0), 8);
        counts.access(MemSpace::Shared, u32::MAX, &lanes(64), 8);
        counts.access(MemSpace::KernelParam, u32::MAX, &lanes(0), 8);
        let of = |c| counts.get(c);
        let rows: [u64; LANES] = std::array::from_fn(|lane| 4096 + lane as u64 / 16 * 4096 + lane as u64 % 16 * 2);
        counts.access(MemSpace::Const, u32::MAX, &rows, 2);
        assert_eq!([of(Count::Uniform), of(Count::Contiguous), of(Count::Scattered)], [1, 3, 1]);
        assert_eq!([of(Count::Bytes(MemSpace::Global)), of(Count::Bytes(MemSpace::Shared))], [34 * 4, 64 * 8]);
    }
}
