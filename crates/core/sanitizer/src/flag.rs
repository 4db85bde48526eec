//! Flags that signal an access, without the fences that would make them order it: what is missing then is not the flag.

use crate::{
    Sanitizer, State,
    clock::Time,
    judge::Distance,
    name,
    row::Hit,
    shadow::{Record, WORD, WarpLanes},
    threads::{CtaThreads, WarpMask},
};
use margay_exec::{LANES, MemoryEvent, Scope};
use std::cmp::Reverse;

/// The address of a flag, and where and when it was read.
type Flag = (u64, (u32, Time));

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
        let cta = &state.ctas.get(self.index(e.actor.cta))?.threads;
        if cta.awaits_fence((e.actor.warp, hit.lane), other, time) {
            return Some(format!(
                "a flag that was set after the first access is read before the second one, and {fence} is missing after it is read \
                 (or read it by an acquire)"
            ));
        }
        let State { ctas, tickets, .. } = state;
        let cta = &ctas.get(self.index(e.actor.cta))?.threads;
        let reader = |list: &crate::ticket::Tickets| {
            list.all().iter().rev().find(|t| t.time > time && t.precedes(cta, now)).map(|t| (t.site, t.time))
        };
        let mut flags: Vec<Flag> = tickets.iter().filter_map(|(at, list)| Some((*at, reader(list)?))).collect();
        // What was read last explains best why the thread continued; addresses differ from run to run.
        flags.sort_unstable_by_key(|(at, (_, when))| (Reverse(*when), *at));
        let itself = |c: WarpLanes| (c.cta, c.warp) == (other.0, other.1) && c.lanes >> other.2 & 1 == 1;
        if let Some(set) = flags.iter().find_map(|flag| Some((*flag, self.setter(state, *flag, (time, &itself))?))) {
            return Some(self.orders_nothing(state, e, set, (other, time), (needed, fence)));
        }
        let cta = &state.ctas.get(self.index(e.actor.cta))?.threads;
        if let Some(untold) = self.untold(cta, now, other, (time, distance)) {
            return Some(untold);
        }
        // A thread sets a flag for its CTA or its warp, and another one waits for it.
        flags.retain(|(_, (read, _))| Sanitizer::awaits(state, *read));
        let mate = |c: WarpLanes| c.cta == other.0 && (distance > Distance::Cta || c.warp == other.1);
        let set = flags.iter().find_map(|flag| Some((*flag, self.setter(state, *flag, (time, &mate))?)))?;
        Some(self.orders_nothing(state, e, set, (other, time), (needed, fence)))
    }

    /// Where a flag was set by some threads after a time and before it was read.
    fn setter(
        &self,
        state: &mut State,
        (at, (_, when)): Flag,
        (time, by): (Time, &dyn Fn(WarpLanes) -> bool),
    ) -> Option<u32> {
        let State { shadow, sites, buffer, .. } = state;
        let sets = |r: &Record| {
            let kind = sites.kinds[r.site() as usize];
            kind.strong && kind.writes && r.time > time && r.time < when && r.warp_lanes(self.warps).any(by)
        };
        let mut set = None;
        shadow.update(at / WORD * WORD, |list| set = list.iter().find(|r| sets(r)).map(|r| r.site()), buffer);
        set
    }

    /// Why a flag, which was set at a site, does not order what a thread did at a time before the second access.
    fn orders_nothing(
        &self,
        state: &State,
        e: &MemoryEvent<'_>,
        ((at, (read, _)), set): (Flag, u32),
        (other, time): ((u32, u32, u32), Time),
        (needed, fence): (Scope, &str),
    ) -> String {
        let (set, read) = (state.sites.get(set), state.sites.get(read));
        let what = match e.windows.iter().find(|(base, size)| at.wrapping_sub(*base) < *size) {
            Some((base, _)) => name::shared(&self.image, self.names, at - base, set.element),
            None => name::global(e.memory, self.names, at, set.element),
        };
        let lines = (self.line(set.in_kernel()), self.line(read.in_kernel()));
        let missing = match () {
            _ if set.order.scope.min(read.order.scope) < needed => {
                "one of the two has a scope that does not include the other thread".into()
            }
            _ if state.threads.has_released(at, other, time) => {
                "the fence before it is set, or the release, has a scope that does not include the other thread".into()
            }
            _ if set.order.semantics.releases() => {
                "another thread's store to it in between has ended the release sequence, as an atomic update would not"
                    .into()
            }
            _ => format!("{fence} is missing before it is set (or set it by a release)"),
        };
        format!(
            "{what}, set at {} after the first access and read at {} before the second one, orders nothing: {missing}",
            lines.0, lines.1
        )
    }

    /// What is missing if another thread of one of the two CTAs, or warps of a CTA, takes part in a release and acquire pattern that would order
    /// the accesses.
    fn untold(
        &self,
        cta: &CtaThreads,
        now: WarpMask,
        other: (u32, u32, u32),
        (time, distance): (Time, Distance),
    ) -> Option<String> {
        let thread = |(cta, warp, lane): (u32, u32, u32)| {
            let name = |[x, y, z]: [u32; 3]| format!("({x}, {y}, {z})");
            format!("thread {} of CTA {}", name(self.thread(warp, lane)), name(self.cta_of(cta)))
        };
        let far = distance > Distance::Cta;
        let barrier = if far { "`__syncthreads()`" } else { "`__syncwarp()`" };
        // The mates of a thread of a warp.
        let mates = |of: u32| {
            let warps = if far { 0..self.warps } else { of..of + 1 };
            warps.flat_map(|warp| (0..LANES as u32).map(move |lane| (warp, lane)))
        };
        let me = (now.warp, now.lanes.trailing_zeros());
        let acquired = |mate: &(u32, u32)| *mate != me && cta.knows(*mate, other, time);
        if let Some((warp, lane)) = mates(me.0).find(acquired) {
            let mate = thread((cta.index, warp, lane));
            return Some(format!(
                "{mate} has acquired what precedes, but this thread has not: {barrier} is missing after that and before the second access"
            ));
        }
        let signaled = |(warp, lane): &(u32, u32)| cta.knows(me, (other.0, *warp, *lane), time);
        let mate = thread(mates(other.1).find(signaled).map(|(warp, lane)| (other.0, warp, lane))?);
        Some(format!(
            "{mate} has released what it did itself, but not the first access: {barrier} is missing between that and the release"
        ))
    }
}
