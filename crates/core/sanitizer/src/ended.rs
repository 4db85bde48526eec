//! Accesses to the shared memory of a CTA of the cluster that may have ended: the memory exists as long as the CTA
//! executes (manual, section "Cooperative Thread Arrays": distributed shared memory), so some thread of it must come to its end
//! after the access.

use crate::{
    Finding, FindingKind, Party, Sanitizer, State,
    clock::{Clock, Side, Time},
    lanes, name, who,
};
use margay_exec::{AccessKind, Actor, MemoryEvent};

/// Accesses of a warp, by one instruction, to the shared memory of another CTA.
#[derive(Debug)]
pub struct Remote {
    site: u32,
    cta: u32,
    warp: u32,
    lanes: u32,
    /// The first lane's host address.
    address: u64,
    time: Time,
    side: Side,
    /// How often the first lane had arrived at the cluster's barrier.
    phase: u64,
}

/// What the threads of a CTA that have ended had seen.
#[derive(Default)]
pub struct End {
    clock: Clock,
    /// The latest phase of the cluster's barrier that one of them has waited for: it orders executions even if it is relaxed.
    phase: u64,
}

impl Sanitizer {
    /// Notes accesses to other CTAs of the cluster, and reports those to CTAs that have ended already.
    pub(crate) fn look_for_ended(&self, state: &mut State, e: &MemoryEvent<'_>, site: u32) {
        let own = self.index(e.actor.cta);
        let mut left = e.actor.lanes;
        for (base, size) in e.windows.iter().skip(1) {
            let inside = |lane: &u32| e.addresses[*lane as usize].wrapping_sub(*base) < *size;
            let mask = lanes(left).filter(inside).fold(0, |mask, lane| mask | 1 << lane);
            let Some(target) = state.windows.get(base).copied().filter(|_| mask != 0) else { continue };
            left &= !mask;
            let lane = mask.trailing_zeros();
            let side = match e.order.asynchronous {
                true if e.order.tensor.is_product() => Side::Products,
                true if e.access.writes() => Side::Agent,
                true => Side::AgentReads,
                false => Side::Program,
            };
            let phase = state.ctas.get(own).map_or(0, |cta| cta.threads.phase(e.actor.warp, lane));
            let (warp, time, address) = (e.actor.warp, state.threads.now, e.addresses[lane as usize]);
            let remote = Remote { site, cta: own, warp, lanes: mask, address, time, side, phase };
            if state.ctas.get(target).is_none() {
                self.report_ended(state, target, &remote, lane, None);
                continue;
            }
            let list = state.remotes.entry(target).or_default();
            match list.iter_mut().find(|r| (r.site, r.cta, r.warp, r.side) == (site, own, warp, side)) {
                Some(known) => *known = Remote { lanes: known.lanes | mask, ..remote },
                None => list.push(remote),
            }
        }
    }

    /// Notes that threads of a CTA of a cluster have ended; `last` if it has ended with them.
    pub(crate) fn end(&self, state: &mut State, actor: &Actor<'_>, last: bool) {
        let index = self.index(actor.cta);
        let now = state.threads.now;
        let Some(cta) = state.ctas.get_mut(index) else { return };
        cta.threads.gather(who(actor), now, &mut cta.end.clock);
        let passed = lanes(actor.lanes).map(|lane| cta.threads.passed(actor.warp, lane)).max();
        cta.end.phase = cta.end.phase.max(passed.unwrap_or(0));
        if !last {
            return;
        }
        let end = std::mem::take(&mut cta.end);
        for remote in state.remotes.remove(&index).unwrap_or_default() {
            let Remote { cta, warp, side, time, .. } = remote;
            let unseen = lanes(remote.lanes).find(|lane| end.clock.get((cta, warp, *lane), side) < time);
            if let Some(lane) = unseen.filter(|_| end.phase <= remote.phase) {
                self.report_ended(state, index, &remote, lane, Some(actor));
            }
        }
    }

    fn report_ended(&self, state: &mut State, target: u32, remote: &Remote, lane: u32, ends: Option<&Actor<'_>>) {
        let site = state.sites.get(remote.site);
        let [x, y, z] = self.cta_of(target);
        let verb = if site.access == AccessKind::Load { "reads" } else { "writes" };
        let base = state.windows.iter().filter(|(_, cta)| **cta == target).map(|(base, _)| *base);
        let what = match base.filter(|base| *base <= remote.address).max() {
            Some(base) => name::shared(&self.image, self.names, remote.address - base, site.element),
            None => "shared memory".to_owned(),
        };
        let access = Party {
            verb: verb.into(),
            thread: self.thread(remote.warp, lane),
            cta: self.cta_of(remote.cta),
            at: site.at,
            callers: site.callers.clone(),
        };
        let kind = FindingKind::Race;
        let mut parties = vec![access];
        parties.extend(
            ends.map(|actor| self.party(actor, actor.lanes.trailing_zeros(), "exits as the last thread of its CTA")),
        );
        state.report(kind, (parties[0].at, None), || Finding {
            kind,
            title: format!("race: {verb} {what} of CTA ({x}, {y}, {z}), which may have exited"),
            parties,
            notes: vec!["shared memory exists only while its CTA executes".into()],
            help: Some("`cluster.sync()` is missing after the last access to the other CTA's shared memory".into()),
            times: 1,
        });
    }
}
