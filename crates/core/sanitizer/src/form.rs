//! How the addresses of a warp's lanes follow from one another.

use crate::{lanes, shadow::WORD, site::Kind};
use margay_exec::{AccessKind, LANES, MemoryEvent};

/// The words of so many bytes as a power of two; `None` if they are not 1, 2 or 4 words.
#[inline(always)]
pub fn whole_words(size: u32) -> Option<u8> {
    match size {
        4 => Some(0),
        8 => Some(1),
        16 => Some(2),
        _ => None,
    }
}

/// How the addresses of lanes follow from one another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// Lane after lane accesses whole words that adjoin, `1 << shift` of them; lane 0 would begin at this address.
    Row(u64, u8),
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
        let size = u64::from(e.size);
        let (base, stride) = match e.row {
            _ if rest == 0 => (address, 0),
            Some(row) => row,
            None => {
                let second = rest.trailing_zeros();
                let apart = e.addresses[second as usize].wrapping_sub(address);
                let stride = if apart == 0 { 0 } else { size };
                let base = address.wrapping_sub(u64::from(first) * stride);
                let differs = |lane: usize| e.addresses[lane] ^ base.wrapping_add(lane as u64 * stride);
                let odd = |lane: usize| differs(lane) & 0u64.wrapping_sub(u64::from(mask >> lane & 1));
                // Most that are no row show it in the last lane.
                if differs(31 - mask.leading_zeros() as usize) != 0
                    || (0..LANES).fold(0, |all, lane| all | odd(lane)) != 0
                {
                    return Form::Lanes;
                }
                (base, stride)
            }
        };
        match (stride, whole_words(e.size)) {
            (0, _) => Form::Same(address),
            (_, Some(shift)) if stride == size && base.is_multiple_of(WORD) => Form::Row(base, shift),
            _ => Form::Lanes,
        }
    }

    /// Whether lanes at the same address are one access: those of a load, or of an atomic operation. Stores are performed one after another.
    pub fn is_shared(self, access: AccessKind) -> bool {
        access == AccessKind::Load || matches!(self, Form::Same(_)) && access != AccessKind::Store
    }
}

/// The lanes from `first` on, of those in a mask, that access the same address.
pub fn same_address(e: &MemoryEvent<'_>, mask: u32, first: u32) -> u32 {
    let address = e.addresses[first as usize];
    let same = |lane: &u32| e.addresses[*lane as usize] == address;
    lanes(mask).skip_while(|lane| *lane < first).take_while(same).fold(0, |group, lane| group | 1 << lane)
}

/// Lanes beside each other that begin with `first`, are in `left`, and access whole words that adjoin: the lanes, the address where lane 0
/// would begin, and the words of a lane as a power of two. `None` if there are few of them. A CTA with rows of 16 threads accesses two rows
/// of a matrix at once.
pub fn part_of_row(e: &MemoryEvent<'_>, left: u32, first: u32) -> Option<(u32, u64, u8)> {
    const FEW: u32 = 4;
    let shift = whole_words(e.size)?;
    let size = u64::from(e.size);
    let base = e.addresses[first as usize].wrapping_sub(u64::from(first) * size);
    let beside = (left >> first).trailing_ones();
    let adjoins = |lane: &u32| e.addresses[*lane as usize] == base.wrapping_add(u64::from(*lane) * size);
    let count = (first..first + beside).take_while(adjoins).count() as u32;
    let lanes = (u64::MAX >> (64 - count)) as u32;
    (count >= FEW && base.is_multiple_of(WORD)).then_some((lanes << first, base, shift))
}

/// How a plain access by lanes whose addresses increase evenly lies in lines.
pub struct RowForm {
    /// The address of lane 0.
    pub base: u64,
    /// The address of the first lane that executes it.
    pub first: u64,
    /// The lanes.
    pub lanes: u32,
    /// Words of a lane, as a power of two; `None` if all lanes access the same address.
    pub shift: Option<u8>,
    /// Bytes of a lane.
    pub size: u32,
    /// Bytes that are accessed from the first address on, if there is no gap between lanes.
    pub bytes: Option<u64>,
}

impl RowForm {
    /// `None` if it must be looked at lane by lane.
    #[inline(always)]
    pub fn of((base, stride): (u64, u64), (size, lanes): (u32, u32), kind: Kind) -> Option<RowForm> {
        let first = base.wrapping_add(stride.wrapping_mul(lanes.trailing_zeros().into()));
        let shift = whole_words(size)?;
        let run = lanes >> lanes.trailing_zeros();
        let (shift, bytes) = match stride {
            _ if kind.strong => return None,
            0 if !kind.writes && base.is_multiple_of(size.into()) => (None, Some(size.into())),
            _ if stride == u64::from(size) && base.is_multiple_of(WORD) => {
                let whole = run & run.wrapping_add(1) == 0;
                (Some(shift), whole.then(|| u64::from(run.count_ones() * size)))
            }
            _ => return None,
        };
        Some(RowForm { base, first, lanes, shift, size, bytes })
    }
}
