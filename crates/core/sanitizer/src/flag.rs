//! Flags that signal an access, without the fences that would make them order it: what is missing then is not the flag.

use crate::{
    Sanitizer, State,
    judge::Distance,
    name,
    row::Hit,
    shadow::{Record, WORD},
    threads::{CtaThreads, WarpMask},
};
use margay_exec::{LANES, MemoryEvent, Scope};
use std::cmp::Reverse;

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
        // What lies in global memory is there for other CTAs too, and so is its flag.
        let own = e.windows.iter().any(|(base, size)| hit.word.wrapping_sub(*base) < *size);
        let wide = distance > Distance::Cta || !own && self.grid.iter().product::<u32>() > 1;
        let fence = if wide { "`__threadfence()`" } else { "`__threadfence_block()`" };
        let needed = match distance {
            Distance::Grid => Scope::Gpu,
            Distance::Cluster => Scope::Cluster,
            _ => Scope::Cta,
        };
        let now = WarpMask { warp: e.actor.warp, lanes: 1 << hit.lane };
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
        let reader = |list: &crate::ticket::Tickets| {
            list.all().iter().rev().find(|t| t.time > time && t.precedes(cta, now)).map(|t| (t.site, t.time))
        };
        let mut flags: Vec<(u64, (u32, u32))> =
            tickets.iter().filter_map(|(at, list)| Some((*at, reader(list)?))).collect();
        // What was read last explains best why the thread continued; addresses differ from run to run.
        flags.sort_unstable_by_key(|(at, (_, when))| (Reverse(*when), *at));
        for (at, (read, when)) in flags {
            let sets = |r: &Record| {
                let kind = sites.kinds[r.site() as usize];
                let by =
                    |c: crate::shadow::WarpLanes| (c.cta, c.warp) == (other.0, other.1) && c.lanes >> other.2 & 1 == 1;
                kind.strong && kind.writes && r.time > time && r.time < when && r.warp_lanes(self.warps).any(by)
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
            let missing = match () {
                _ if set.order.scope.min(read.order.scope) < needed => {
                    "one of the two has a scope that does not include the other thread".into()
                }
                _ if threads.has_released(at, other, time) => {
                    "the fence before it is set, or the release, has a scope that does not include the other thread"
                        .into()
                }
                _ if set.order.semantics.releases() => {
                    "another thread's store to it in between has ended the release sequence, as an atomic update would not"
                        .into()
                }
                _ => format!("{fence} is missing before it is set (or set it by a release)"),
            };
            return Some(format!(
                "{what}, set at {} after the first access and read at {} before the second one, orders nothing: {missing}",
                lines.0, lines.1
            ));
        }
        if distance > Distance::Cta { self.untold(cta, now, other, hit) } else { None }
    }

    /// What is missing if another thread of one of the two CTAs takes part in a release and acquire pattern that would order the accesses.
    fn untold(&self, cta: &CtaThreads, now: WarpMask, other: (u32, u32, u32), hit: &Hit) -> Option<String> {
        let Record { time, .. } = hit.earlier;
        let thread = |(cta, warp, lane): (u32, u32, u32)| {
            let name = |[x, y, z]: [u32; 3]| format!("({x}, {y}, {z})");
            format!("thread {} of CTA {}", name(self.thread(warp, lane)), name(self.cta_of(cta)))
        };
        let all = || (0..self.warps).flat_map(|warp| (0..LANES as u32).map(move |lane| (warp, lane)));
        let me = (now.warp, now.lanes.trailing_zeros());
        if let Some((warp, lane)) = all().find(|mate| *mate != me && cta.knows(*mate, other, time)) {
            let mate = thread((cta.index, warp, lane));
            return Some(format!(
                "{mate} has acquired what precedes, but this thread has not: `__syncthreads()` is missing after that and before the second access"
            ));
        }
        let signaled = |(warp, lane): &(u32, u32)| cta.knows(me, (other.0, *warp, *lane), time);
        let mate = thread(all().find(signaled).map(|(warp, lane)| (other.0, warp, lane))?);
        Some(format!(
            "{mate} has released what it did itself, but not the first access: `__syncthreads()` is missing between that and the release"
        ))
    }
}
