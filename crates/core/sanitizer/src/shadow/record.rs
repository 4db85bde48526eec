//! Accesses of a word that a later one may race with.

use crate::clock::Time;
use margay_exec::LANES;

/// Limit of distinct sites.
pub const MAX_SITES: u32 = (1 << 28) - 2;
/// Set in [`Record::who`] for the agents of a warp's threads.
pub const AGENT: u32 = 1 << 31;
/// Set in [`Record::who`] for several warps of a CTA; the bits below hold the lanes of each (6 bits) and the CTA (24
/// bits).
pub(super) const JOINED: u32 = 1 << 30;
/// The limit of warps of a launch that can be distinguished.
pub const MAX_WARPS: u64 = (1 << 30) - 64;
/// The limit of CTAs whose warps can share a record.
pub(super) const MAX_CTAS: u32 = 1 << 24;

/// Accesses of some lanes of one warp (or of their agents), or of several warps of a CTA, by one instruction.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Record {
    /// The warp in the launch, or a CTA; with the flags [`AGENT`] and [`JOINED`].
    pub who: u32,
    /// The lanes (none in an empty record); in a joined record, the warps.
    pub lanes: u32,
    /// The time of the access, or a later one that no thread can distinguish from it.
    pub time: Time,
    /// The site, and in the upper four bits the mask of accessed bytes.
    pub(super) site: u32,
}

/// Lanes of a warp of a launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WarpLanes {
    /// Linear index of the CTA.
    pub cta: u32,
    /// Warp in the CTA.
    pub warp: u32,
    /// Lanes.
    pub lanes: u32,
}

/// The encoding of a set of lanes in a joined record: one lane, or all.
pub(super) fn pattern(lanes: u32) -> Option<u32> {
    match lanes {
        u32::MAX => Some(LANES as u32),
        _ if lanes.is_power_of_two() => Some(lanes.trailing_zeros()),
        _ => None,
    }
}

/// Whether two lanes have the same place in rows of 8 threads. In CTAs with short rows they often access the same word, as those of the other
/// warps do, with which each of them can share a record.
fn are_alike(one: u32, other: u32) -> bool {
    let lanes = one.is_power_of_two() && other.is_power_of_two() && one != other;
    lanes && one.trailing_zeros() % 8 == other.trailing_zeros() % 8
}

impl Record {
    pub(super) const NONE: Record = Record { who: 0, lanes: 0, time: 0, site: 0 };

    /// A record of an access to the bytes in a mask.
    #[inline]
    pub fn new((who, lanes): (u32, u32), time: Time, site: u32, bytes: u32) -> Record {
        Record { who, lanes, time, site: site | bytes << 28 }
    }

    /// Number of the site.
    #[inline]
    pub fn site(self) -> u32 {
        self.site & ((1 << 28) - 1)
    }

    /// The site and the bytes as one number other than 0.
    #[inline]
    pub fn form(self) -> u32 {
        self.site
    }

    /// Mask of the bytes accessed.
    #[inline]
    pub fn bytes(self) -> u32 {
        self.site >> 28
    }

    /// Removes bytes from it; whether any are left.
    #[inline]
    pub fn uncover(&mut self, bytes: u32) -> bool {
        self.site &= !(bytes << 28);
        self.bytes() != 0
    }

    /// Whether the accesses are by agents.
    #[inline]
    pub fn is_agent(self) -> bool {
        self.who & AGENT != 0
    }

    /// Whether the accesses are by several warps of a CTA.
    #[inline]
    pub fn is_joined(self) -> bool {
        self.who & JOINED != 0
    }

    /// The CTA, in a launch with `warps` warps per CTA.
    #[inline]
    pub fn cta(self, warps: u32) -> u32 {
        if self.is_joined() { self.who & (MAX_CTAS - 1) } else { (self.who & !AGENT) / warps }
    }

    /// The warps and lanes of the accesses.
    pub fn warp_lanes(self, warps: u32) -> impl Iterator<Item = WarpLanes> {
        let cta = self.cta(warps);
        let (mut left, lanes) = match self.is_joined() {
            true => {
                let pattern = self.who >> 24 & 0x3f;
                (self.lanes, if pattern == LANES as u32 { u32::MAX } else { 1 << pattern })
            }
            false => (1 << ((self.who & !AGENT) % warps), self.lanes),
        };
        std::iter::from_fn(move || {
            let warp = (left != 0).then(|| left.trailing_zeros())?;
            left &= left - 1;
            Some(WarpLanes { cta, warp, lanes })
        })
    }

    /// Merges an access of other lanes by the same instruction; false if they cannot share a record. They must not have
    /// released anything since the time of this record, and must not be agents.
    #[inline]
    pub fn join(&mut self, group: WarpLanes, warps: u32) -> bool {
        let own = group.cta * warps + group.warp;
        if self.who == own {
            let joins = !are_alike(self.lanes, group.lanes);
            self.lanes |= if joins { group.lanes } else { 0 };
            return joins;
        }
        let (Some(pattern), true) = (pattern(group.lanes), group.cta < MAX_CTAS && !self.is_agent()) else {
            return false;
        };
        let joined = JOINED | pattern << 24 | group.cta;
        if self.who == joined {
            self.lanes |= 1 << group.warp;
            return true;
        }
        if !self.is_joined() && self.lanes == group.lanes && self.who / warps == group.cta {
            (self.who, self.lanes) = (joined, 1 << (self.who % warps) | 1 << group.warp);
            return true;
        }
        false
    }

    /// Whether the record is not empty.
    #[inline(always)]
    pub fn is_some(self) -> bool {
        self.lanes != 0
    }

    /// The empty record.
    #[inline]
    pub const fn none() -> Record {
        Record::NONE
    }
}
