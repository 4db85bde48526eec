//! Compares an access of a word with the records of earlier ones.

use super::{Hit, Missing, Row, side};
use crate::{
    clock::Side,
    shadow::{LIMIT, Record, WarpLanes},
    site::Kind,
    threads::{CtaThreads, WarpMask},
};
use margay_exec::Tensor;

/// An access of bytes of a word by some lanes of a row.
pub(super) struct WordAccess<'a> {
    pub row: &'a Row,
    pub cta: &'a CtaThreads,
    /// By the number of the site.
    pub kinds: &'a [Kind],
    pub lanes: u32,
    /// The word's address.
    pub word: u64,
    /// Its bytes.
    pub mask: u32,
}

impl WordAccess<'_> {
    /// Compares the access with the records in `list`, and updates the list to what later accesses must be compared with.
    pub fn record(&self, list: &mut Vec<Record>, hits: &mut Vec<Hit>) {
        let row = self.row;
        // Many reads are looked through for those that are over, but full lists only now and then.
        let sampled = || list.len() < LIMIT || row.now.wrapping_add(row.who()).is_multiple_of(16);
        let crowded = list.len() > 8 && list.len().is_power_of_two() && sampled();
        let mut joined = false;
        list.retain_mut(|r| {
            if r.bytes() & self.mask == 0 {
                return true;
            }
            if !joined && self.joins(r) {
                joined = true;
                return true;
            }
            self.keeps(r, crowded, hits)
        });
        if !joined {
            list.push(Record::new((row.who(), self.lanes), row.now, row.site, self.mask));
            if row.kind.writes {
                // The last write comes first: it is never dropped.
                let last = list.len() - 1;
                list.swap(0, last);
            }
        }
    }

    /// Whether a record is of the same bytes, by the same instruction.
    fn is_same(&self, r: &Record) -> bool {
        r.site() == self.row.site && r.bytes() == self.mask
    }

    /// Lets a record stand for the access too, if it can.
    fn joins(&self, r: &mut Record) -> bool {
        let Row { kind, agent, published, warps, cta, warp, .. } = *self.row;
        let stands = self.is_same(r) && (!kind.writes || kind.strong) && !agent && r.time > published;
        stands && r.join(WarpLanes { cta, warp, lanes: self.lanes }, warps)
    }

    /// Compares the access with an earlier one of some of its bytes; whether later accesses must be compared with the earlier one, too.
    fn keeps(&self, r: &mut Record, crowded: bool, hits: &mut Vec<Hit>) -> bool {
        let row = self.row;
        let Kind { writes, strong, scope, element, cached, .. } = row.kind;
        let earlier = self.kinds[r.site() as usize];
        if !writes && !earlier.writes {
            // Two reads: one of them may stand for both.
            let repeated = || self.is_same(r) && !row.agent && row.has_seen(*r, self.lanes);
            if strong == earlier.strong && !r.is_agent() && (repeated() || crowded && self.unordered(r).is_none()) {
                return false;
            }
            return row.agent || self.supersedes_part(r);
        }
        // Whoever these are, they do not race.
        if row.kind.is_morally_strong_with(earlier) {
            return !self.is_same(r) || row.agent || self.supersedes_part(r);
        }
        let before = self.unordered(r);
        let mut hit = |(lane, other), missing| {
            hits.push(Hit { earlier: *r, other, lane, word: self.word, mask: self.mask, missing });
        };
        if let Some(pair) = before {
            hit(pair, Missing::Order);
        } else {
            let proxied = row.kind.proxy && earlier.writes && !r.is_agent();
            if proxied && let Some(pair) = self.unproxied(r) {
                hit(pair, Missing::Proxy);
            }
            if let Some(group) = r.warp_lanes(row.warps).next().filter(|_| cached) {
                let first = WarpLanes { lanes: group.lanes & group.lanes.wrapping_neg(), ..group };
                hit((self.lanes.trailing_zeros(), first), Missing::Coherence);
            }
        }
        // A later access that races with the earlier one races with this one too.
        let like = earlier.strong && scope <= earlier.scope && element == earlier.element;
        let narrower = like && r.cta(row.warps) == row.cta;
        let covers = (writes || !earlier.writes) && (!strong || narrower);
        let overwritten = !strong && !earlier.strong && writes;
        !(covers && (before.is_none() || overwritten)) || r.uncover(self.mask)
    }

    /// Removes from an earlier record the lanes that now repeat the access by the same instruction; whether any are left.
    fn supersedes_part(&self, r: &mut Record) -> bool {
        let row = self.row;
        if !self.is_same(r) {
            return true;
        }
        let own = |c: WarpLanes| (c.cta, c.warp) == (row.cta, row.warp) && c.lanes & !self.lanes == 0;
        if r.who == row.who() {
            r.lanes &= !self.lanes;
        } else if !row.agent && r.is_joined() && r.cta(row.warps) == row.cta && r.warp_lanes(row.warps).any(own) {
            r.lanes &= !(1 << row.warp);
        }
        r.is_some()
    }

    /// A lane that did not see an earlier access by one of its lanes: the two, if there are any. What lanes do together, none of them must have
    /// seen.
    fn unordered(&self, earlier: &Record) -> Option<(u32, WarpLanes)> {
        // Most earlier accesses lie before a barrier, which one comparison shows.
        if self.row.has_seen(*earlier, self.lanes) {
            return None;
        }
        let kind = self.kinds[earlier.site() as usize];
        let pipelined = kind.tensor.precedes(self.row.kind.tensor);
        let side = if pipelined { Side::Program } else { side(earlier, kind) };
        self.pair(earlier, side, |now, others| self.cta.unseen(now, others, side, earlier.time))
    }

    /// A lane whose copy, or lanes whose product, comes after an access of a program, without a proxy fence in between: the two, if there are
    /// any.
    fn unproxied(&self, earlier: &Record) -> Option<(u32, WarpLanes)> {
        let side = Side::Proxied { shared: self.row.shared };
        self.pair(earlier, side, |now, others| self.cta.unproxied(now, others, (side, earlier.time)))
    }

    /// A lane of the access and one of an earlier access that `alone` finds, if each lane accesses memory for itself; if they do so together,
    /// one that none of them has seen.
    fn pair(
        &self,
        earlier: &Record,
        side: Side,
        alone: impl Fn(WarpMask, (u32, u32, u32)) -> Option<(u32, u32)>,
    ) -> Option<(u32, WarpLanes)> {
        let Row { warp, warps, kind, .. } = *self.row;
        let now = || WarpMask { warp, lanes: self.lanes };
        earlier.warp_lanes(warps).find_map(|group| {
            let others = (group.cta, group.warp, group.lanes);
            let together = || {
                let other = self.cta.unseen_together(now(), others, side, earlier.time);
                other.map(|other| (self.lanes.trailing_zeros(), other))
            };
            let found = if kind.tensor != Tensor::No { together() } else { alone(now(), others) };
            found.map(|(lane, other)| (lane, WarpLanes { lanes: 1 << other, ..group }))
        })
    }
}
