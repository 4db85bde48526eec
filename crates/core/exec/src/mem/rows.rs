//! The addresses of a warp's access, all at once.

use crate::{
    LANES,
    matrix::{Loops, vectorize},
};

/// The lanes whose address is at most `most` bytes after `start`, with zeros in its `low` bits.
#[inline]
pub fn lanes_within(addresses: &[u64; LANES], (start, most): (u64, u64), low: u64) -> u32 {
    vectorize(Row { addresses, start, most, low })
}

struct Row<'a> {
    addresses: &'a [u64; LANES],
    start: u64,
    most: u64,
    low: u64,
}

impl Loops for Row<'_> {
    type Output = u32;

    #[inline(always)]
    fn run<const FUSED: bool>(self) -> u32 {
        let mut within = 0;
        for lane in 0..LANES {
            let offset = self.addresses[lane].wrapping_sub(self.start);
            // Without comparisons of unsigned numbers, which vectors lack: an offset that is too large, or negative, sets the highest bit
            // of one of two numbers.
            let outside = (offset | self.most.wrapping_sub(offset)) >> 63;
            let aligned = self.addresses[lane] & self.low == 0;
            within |= (u32::from(aligned) & !(outside as u32)) << lane;
        }
        within
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_outside_or_misaligned() {
        let mut addresses: [u64; LANES] = std::array::from_fn(|lane| 0x1000 + 4 * lane as u64 % 0x44);
        let wrong = [(0xFFC, 0), (0x1044, 7), (0x1002, 31), (0, 5), (u64::MAX, 6), (1 << 63, 8), (u64::MAX << 2, 9)];
        for (address, lane) in wrong {
            addresses[lane] = address;
        }
        let lanes = wrong.iter().fold(0, |lanes, (_, lane)| lanes | 1 << lane);
        assert_eq!(lanes_within(&addresses, (0x1000, 0x40), 3), !lanes);
    }
}
