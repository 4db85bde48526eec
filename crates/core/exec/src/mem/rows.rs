//! The addresses of a warp's access, all at once.

use crate::{
    LANES,
    matrix::{Loops, vectorize},
};

/// Whether every active lane's address is at most `most` bytes after `start`, with zeros in its `low` bits.
#[inline]
pub fn row_is_within(addresses: &[u64; LANES], active: u32, (start, most): (u64, u64), low: u64) -> bool {
    vectorize(Row { addresses, active, start, most, low })
}

struct Row<'a> {
    addresses: &'a [u64; LANES],
    active: u32,
    start: u64,
    most: u64,
    low: u64,
}

impl Loops for Row<'_> {
    type Output = bool;

    #[inline(always)]
    fn run<const FUSED: bool>(self) -> bool {
        // Without comparisons of unsigned numbers, which vectors lack: an offset that is too large, or negative, sets the highest bit of
        // one of two numbers.
        let (mut outside, mut misaligned) = (0, 0);
        for lane in 0..LANES {
            let active = u64::from(self.active >> lane & 1).wrapping_neg();
            let offset = self.addresses[lane].wrapping_sub(self.start) & active;
            outside |= offset | self.most.wrapping_sub(offset);
            misaligned |= self.addresses[lane] & active;
        }
        outside >> 63 == 0 && misaligned & self.low == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_active_lanes_count() {
        let mut addresses = [0x1000; LANES];
        let within = |addresses: &[u64; LANES], active| row_is_within(addresses, active, (0x1000, 0x40), 3);
        assert!(within(&addresses, u32::MAX));
        for (wrong, lane) in [(0xFFF, 0), (0x1044, 7), (0x1002, 31), (0, 5), (u64::MAX, 6), (1 << 63, 8)] {
            addresses[lane] = wrong;
            assert!(!within(&addresses, u32::MAX) && !within(&addresses, 1 << lane), "{wrong:#x}");
            assert!(within(&addresses, !(1 << lane)));
            addresses[lane] = 0x1040;
            assert!(within(&addresses, u32::MAX));
        }
    }
}
