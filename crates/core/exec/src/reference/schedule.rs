//! The choice of the group of a warp that runs next.
//!
//! The group deepest in calls goes first, and among those the one earliest in the layout: loops are contiguous in the
//! layout, so groups that have left a loop wait for those inside, and lanes reconverge where their paths join. That
//! order alone could starve a lane for which another one of its warp polls a lock, so a group that has waited long, or
//! whose warp keeps polling, is favored for a while.

use super::state::{Group, Warp};

/// Polling ops after which another group or warp runs.
pub const SPINS: u32 = 48;
/// Picks after which a waiting group is overdue.
const OVERDUE: u64 = 1 << 14;
/// Picks for which an overdue group is favored.
const FAVORED: u32 = 256;

/// A small random generator (SplitMix64), so that a seed reproduces an interleaving.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator for a seed and a stream; `None` for seed 0, the natural order.
    pub fn new(seed: u64, stream: u64) -> Option<Random> {
        (seed != 0).then(|| Random(seed ^ stream.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    /// A random number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ z >> 31) % n.max(1)
    }

    /// The length of a turn, from 1 to a power of two, whose exponent is equally likely to be any number below `magnitudes`: some
    /// threads are overtaken within a few instructions, and others run far ahead.
    pub fn slice(&mut self, magnitudes: u64) -> u64 {
        let magnitude = self.below(magnitudes);
        1 + self.below(1 << magnitude)
    }
}

/// Takes the group that runs next, merged with all other groups at the same place.
pub fn pick(warp: &mut Warp, random: &mut Option<Random>) -> Option<Group> {
    warp.turn += 1;
    let chosen = match warp.ready.len() {
        0 => return None,
        1 => return warp.ready.pop(),
        _ => choose(warp, random),
    };
    let mut group = warp.ready.swap_remove(chosen);
    warp.ready.retain(|g| {
        let same = (g.frame, g.pc) == (group.frame, group.pc);
        if same {
            group.mask |= g.mask;
        }
        !same
    });
    Some(group)
}

fn choose(warp: &mut Warp, random: &mut Option<Random>) -> usize {
    let groups = &warp.ready;
    if let Some(random) = random.as_mut()
        && random.below(8) == 0
    {
        return random.below(groups.len() as u64) as usize;
    }
    let oldest = (0..groups.len()).min_by_key(|i| groups[*i].since).unwrap_or(0);
    if warp.spins >= SPINS || warp.slept || groups[oldest].since + OVERDUE < warp.turn {
        (warp.spins, warp.slept) = (0, false);
        warp.favored = (groups[oldest].mask.trailing_zeros(), FAVORED);
        return oldest;
    }
    if warp.favored.1 > 0 {
        warp.favored.1 -= 1;
        if let Some(i) = groups.iter().position(|g| g.mask >> warp.favored.0 & 1 == 1) {
            return i;
        }
    }
    let key = |g: &Group| (std::cmp::Reverse(warp.frames[g.frame as usize].depth), g.pc, g.frame);
    (0..groups.len()).min_by_key(|i| key(&groups[*i])).unwrap_or(0)
}
