//! Flags that tell of an access, without the fences that would make them order it: what is missing then is not the flag.

use crate::{
    Sanitizer, State,
    judge::Distance,
    name,
    row::Hit,
    shadow::{Record, WORD},
    threads::Who,
};
use margay_exec::MemoryEvent;

impl Sanitizer {
    /// What is missing between two unordered accesses if the thread of the later one has read, by a strong operation, what that of the earlier
    /// one had written after its access.
    pub(crate) fn incomplete_flag(
        &self,
        state: &mut State,
        e: &MemoryEvent<'_>,
        hit: &Hit,
        distance: Distance,
    ) -> Option<String> {
        let fence = if distance > Distance::Cta { "`__threadfence()`" } else { "`__threadfence_block()`" };
        let now = Who { warp: e.actor.warp, lanes: 1 << hit.lane };
        let other = (hit.other.cta, hit.other.warp, hit.other.lanes.trailing_zeros());
        let time = hit.earlier.time;
        let State { ctas, tickets, shadow, sites, threads, buffer, .. } = state;
        let cta = &ctas.get(self.index(e.actor.cta))?.threads;
        if cta.awaits_fence((e.actor.warp, hit.lane), other, time) {
            return Some(format!(
                "a flag that was set after the first access is read before the second one, and {fence} is missing after it is read \
                 (or read it by an acquire)"
            ));
        }
        let reader = |list: &[crate::ticket::Ticket]| {
            list.iter().rev().find(|t| t.time > time && t.precedes(cta, now)).map(|t| (t.site, t.time))
        };
        let mut flags: Vec<(u64, (u32, u32))> =
            tickets.iter().filter_map(|(at, list)| Some((*at, reader(list)?))).collect();
        flags.sort_unstable();
        for (at, (read, when)) in flags {
            let sets = |r: &Record| {
                let kind = sites.kinds[r.site() as usize];
                let by = |c: crate::shadow::Crew| (c.cta, c.warp) == (other.0, other.1) && c.lanes >> other.2 & 1 == 1;
                kind.strong && kind.writes && r.time > time && r.time < when && r.crews(self.warps).any(by)
            };
            let mut set = None;
            shadow.update(at / WORD * WORD, |list| set = list.iter().find(|r| sets(r)).map(|r| r.site()), buffer);
            let Some(set) = set else { continue };
            let (set, read) = (sites.get(set), sites.get(read));
            let what = match e.windows.iter().find(|(base, size)| at.wrapping_sub(*base) < *size) {
                Some((base, _)) => name::shared(&self.image, self.names, at - base, set.element),
                None => name::global(e.memory, self.names, at, set.element),
            };
            let lines = (self.line(set.in_kernel()), self.line(read.in_kernel()));
            let missing = match threads.has_released(at, other, time) {
                true => {
                    "the fence before it is set, or the release, has a scope that does not include the other thread"
                        .into()
                }
                false => format!("{fence} is missing before it is set (or set it by a release)"),
            };
            return Some(format!(
                "{what}, set at {} after the first access and read at {} before the second one, orders nothing: {missing}",
                lines.0, lines.1
            ));
        }
        None
    }
}
