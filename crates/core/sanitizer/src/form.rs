//! How the addresses of a warp's lanes follow from one another.

use crate::{lanes, shadow::LINE_BYTES, site::Kind};
use margay_exec::{AccessKind, LANES, MemoryEvent};

/// An access by lanes whose addresses increase, or decrease, evenly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Strided {
    /// The address of lane 0, active or not, and the bytes from one lane to the next.
    pub base: u64,
    pub stride: u64,
    /// Bytes of a lane.
    pub size: u32,
    pub lanes: u32,
}

impl Strided {
    /// The address of a lane.
    #[inline(always)]
    pub fn at(&self, lane: u32) -> u64 {
        self.base.wrapping_add(self.stride.wrapping_mul(lane.into()))
    }

    /// The address of the first lane that executes it.
    #[inline(always)]
    pub fn first(&self) -> u64 {
        self.at(self.lanes.trailing_zeros())
    }

    /// The first and the last byte. Addresses may decrease from lane to lane. Wild ones may wrap around the end of the address
    /// space: then the last byte is below the first one.
    #[inline(always)]
    pub fn range(&self) -> (u64, u64) {
        let (one, other) = match self.lanes {
            u32::MAX => (self.base, self.at(31)),
            lanes => (self.at(lanes.trailing_zeros()), self.at(31 - lanes.leading_zeros())),
        };
        let (first, last) = if self.stride as i64 >= 0 { (one, other) } else { (other, one) };
        (first, last.wrapping_add(u64::from(self.size) - 1))
    }

    /// Whether each lane accesses bytes of its own, aligned to their number.
    #[inline(always)]
    pub fn is_row(&self) -> bool {
        let size = u64::from(self.size);
        let apart = self.stride.min(self.stride.wrapping_neg()) >= size;
        apart && size.is_power_of_two() && size <= LINE_BYTES && (self.base | self.stride) & (size - 1) == 0
    }

    /// Whether spans tell all of it: a plain access of a row, or a load from the same aligned address.
    #[inline(always)]
    pub fn has_spans(&self, kind: Kind) -> bool {
        let size = u64::from(self.size);
        let same = || self.stride == 0 && !kind.writes && size <= LINE_BYTES && is_aligned(self.base, size);
        !kind.strong && (self.is_row() || same())
    }

    /// Whether its lanes are beside each other.
    #[inline(always)]
    pub fn has_no_gaps(&self) -> bool {
        let run = self.lanes >> self.lanes.trailing_zeros();
        run & run.wrapping_add(1) == 0
    }

    /// The bytes that are accessed from the address of the first lane on, if there is no gap between them.
    #[inline(always)]
    pub fn adjoining(&self) -> Option<u64> {
        match self.stride {
            0 => Some(self.size.into()),
            stride if stride == u64::from(self.size) && self.has_no_gaps() => {
                Some(u64::from(self.lanes.count_ones() * self.size))
            }
            _ => None,
        }
    }
}

/// Whether an address is a multiple of a size, which is a power of two.
#[inline(always)]
pub fn is_aligned(address: u64, size: u64) -> bool {
    size.is_power_of_two() && address & (size - 1) == 0
}

/// How the addresses of lanes follow from one another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// Evenly, so that each lane has bytes of its own.
    Row(Strided),
    /// All lanes access this address.
    Same(u64),
    /// In another way.
    Lanes,
}

impl Form {
    #[inline(always)]
    pub fn of(e: &MemoryEvent<'_>) -> Form {
        let mask = e.actor.lanes;
        let first = mask.trailing_zeros();
        let address = e.addresses[first as usize & 31];
        let rest = mask & mask.wrapping_sub(1);
        let (base, stride) = match e.row {
            _ if rest == 0 => (address, 0),
            Some(row) => row,
            None => match even(e.addresses, mask) {
                Some(row) => row,
                None => return Form::Lanes,
            },
        };
        let row = Strided { base, stride, size: e.size, lanes: mask };
        match stride {
            0 => Form::Same(address),
            _ if row.is_row() => Form::Row(row),
            _ => Form::Lanes,
        }
    }

    /// Whether lanes at the same address are one access: those of a load, or of an atomic operation. Stores are performed one after another.
    pub fn is_shared(self, access: AccessKind) -> bool {
        access == AccessKind::Load || matches!(self, Form::Same(_)) && access != AccessKind::Store
    }
}

/// The address of lane 0, and the bytes from one lane to the next, if the addresses of two or more lanes increase or decrease evenly.
#[inline(always)]
fn even(addresses: &[u64; LANES], mask: u32) -> Option<(u64, u64)> {
    let first = mask.trailing_zeros();
    let second = (mask & mask.wrapping_sub(1)).trailing_zeros();
    let apart = addresses[second as usize & 31].wrapping_sub(addresses[first as usize & 31]) as i64;
    let between = i64::from(second - first);
    let stride = if between == 1 { apart } else { apart / between } as u64;
    let base = addresses[first as usize & 31].wrapping_sub(u64::from(first).wrapping_mul(stride));
    let differs = |lane: usize| addresses[lane] ^ base.wrapping_add((lane as u64).wrapping_mul(stride));
    let odd = |lane: usize| differs(lane) & 0u64.wrapping_sub(u64::from(mask >> lane & 1));
    // Most that are no row show it in the last lane.
    let even = differs(31 - mask.leading_zeros() as usize) == 0 && (0..LANES).fold(0, |all, lane| all | odd(lane)) == 0;
    even.then_some((base, stride))
}

/// The lanes from `first` on, of those in a mask, that access the same address.
pub fn same_address(addresses: &[u64; LANES], mask: u32, first: u32) -> u32 {
    let address = addresses[first as usize];
    let same = |lane: &u32| addresses[*lane as usize] == address;
    lanes(mask).skip_while(|lane| *lane < first).take_while(same).fold(0, |group, lane| group | 1 << lane)
}

/// So many lanes beside each other make up a row.
pub const FEW: u32 = 4;

/// Lanes beside each other that begin with `first`, are in `left`, and access elements that adjoin. `None` if there are few of them. A CTA with
/// rows of 16 threads accesses two rows of a matrix at once.
pub fn part_of_row(e: &MemoryEvent<'_>, left: u32, first: u32) -> Option<Strided> {
    let stride = u64::from(e.size);
    let base = e.addresses[first as usize].wrapping_sub(u64::from(first) * stride);
    let beside = (left >> first).trailing_ones();
    let adjoins = |lane: &u32| e.addresses[*lane as usize] == base.wrapping_add(u64::from(*lane) * stride);
    let count = (first..first + beside).take_while(adjoins).count() as u32;
    let lanes = ((u64::MAX >> (64 - count)) as u32) << first;
    Some(Strided { base, stride, size: e.size, lanes }).filter(|row| count >= FEW && row.is_row())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_may_wrap_around() {
        let row = |base: i64, stride: i64, lanes| {
            Strided { base: base as u64, stride: stride as u64, size: 4, lanes }.range()
        };
        assert_eq!(row(4096, 8, u32::MAX), (4096, 4096 + 31 * 8 + 3));
        assert_eq!(row(4096, -8, u32::MAX), (4096 - 31 * 8, 4099));
        assert_eq!(row(4096, -8, 0b110), (4096 - 16, 4096 - 5));
        assert_eq!(row(4096, 0, 0b110), (4096, 4099));
        assert_eq!(row(-64, 4, u32::MAX), (64u64.wrapping_neg(), 63));
        assert_eq!(row(60, -4, u32::MAX), (64u64.wrapping_neg(), 63));
        assert_eq!(row(-128, 4, u32::MAX), (128u64.wrapping_neg(), u64::MAX));
    }

    #[test]
    fn rows_go_up_or_down() {
        let mut addresses = [0; LANES];
        let mut of = |mask: u32, at: &dyn Fn(u64) -> u64| {
            (0..LANES).for_each(|lane| addresses[lane] = if mask >> lane & 1 == 1 { at(lane as u64) } else { 7 });
            even(&addresses, mask)
        };
        assert_eq!(of(u32::MAX, &|lane| 4096 + 24 * lane), Some((4096, 24)));
        assert_eq!(of(u32::MAX << 8, &|lane| 4096 - 4 * lane), Some((4096, 4u64.wrapping_neg())));
        assert_eq!(of(0b1010_1000, &|lane| 4096 + lane), Some((4096, 1)));
        assert_eq!(of(0b1011, &|lane| 4096 + 4 * (lane % 3)), None);
        assert_eq!(of(0b11, &|_| 4096), Some((4096, 0)));
    }
}
