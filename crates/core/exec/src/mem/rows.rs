//! The addresses of a warp's access, all at once.

use crate::{
    LANES,
    matrix::{Loops, vectorize},
};

/// The lanes whose address is at most `most` bytes after `start`.
#[inline]
pub fn lanes_within(addresses: &[u64; LANES], (start, most): (u64, u64)) -> u32 {
    vectorize(Within { addresses, start, step: 0, most })
}

/// The lanes whose address is at most `most` bytes after the start of its own window; lane 0's is at `start`, the others follow at
/// distances of `step`.
#[inline]
pub fn lanes_at_home(addresses: &[u64; LANES], (start, step): (u64, u64), most: u64) -> u32 {
    vectorize(Within { addresses, start, step, most })
}

/// The lanes whose address has ones among its bits `odd`, after `plus` is added.
#[inline]
pub fn lanes_misaligned(addresses: &[u64; LANES], plus: u64, odd: u64) -> u32 {
    vectorize(Misaligned { addresses, plus, odd })
}

struct Within<'a> {
    addresses: &'a [u64; LANES],
    start: u64,
    step: u64,
    most: u64,
}

impl Loops for Within<'_> {
    type Output = u32;

    #[inline(always)]
    fn run<const FUSED: bool>(self) -> u32 {
        let mut within = 0;
        for lane in 0..LANES {
            let start = self.start.wrapping_add(self.step.wrapping_mul(lane as u64));
            let offset = self.addresses[lane].wrapping_sub(start);
            // Without comparisons of unsigned numbers, which vectors lack: an offset that is too large, or negative, sets the highest bit
            // of one of two numbers.
            let outside = (offset | self.most.wrapping_sub(offset)) >> 63;
            within |= (!(outside as u32) & 1) << lane;
        }
        within
    }
}

struct Misaligned<'a> {
    addresses: &'a [u64; LANES],
    plus: u64,
    odd: u64,
}

impl Loops for Misaligned<'_> {
    type Output = u32;

    #[inline(always)]
    fn run<const FUSED: bool>(self) -> u32 {
        let mut found = 0;
        for lane in 0..LANES {
            found |= u32::from(self.addresses[lane].wrapping_add(self.plus) & self.odd != 0) << lane;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_outside() {
        let mut addresses: [u64; LANES] = std::array::from_fn(|lane| 0x1000 + 4 * lane as u64 % 0x44);
        let wrong = [(0xFFF, 0), (0x1041, 7), (0, 5), (u64::MAX, 6), (1 << 63, 8), (u64::MAX << 2, 9)];
        for (address, lane) in wrong {
            addresses[lane] = address;
        }
        let lanes = wrong.iter().fold(0, |lanes, (_, lane)| lanes | 1 << lane);
        assert_eq!(lanes_within(&addresses, (0x1000, 0x40)), !lanes);
    }

    #[test]
    fn lanes_in_windows_of_others() {
        let mut addresses: [u64; LANES] = std::array::from_fn(|lane| 0x1000 + 0x40 * lane as u64 + lane as u64);
        for (address, lane) in [(0x1040, 0), (0x1040 * 2, 3), (0, 31)] {
            addresses[lane] = address;
        }
        assert_eq!(lanes_at_home(&addresses, (0x1000, 0x40), 31), !(1 | 1 << 3 | 1 << 31));
        assert_eq!(lanes_at_home(&addresses, (0x1000, 0x40), 9), 0x3ff & !(1 | 1 << 3));
    }

    #[test]
    fn lanes_that_are_misaligned() {
        let addresses: [u64; LANES] = std::array::from_fn(|lane| 0x1002 + 2 * lane as u64);
        assert_eq!(lanes_misaligned(&addresses, 0, 3), 0x5555_5555);
        assert_eq!(lanes_misaligned(&addresses, 2, 3), 0xaaaa_aaaa);
        assert_eq!(lanes_misaligned(&addresses, u64::MAX - 1, 1), 0);
    }
}
