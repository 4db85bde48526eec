//! Accesses by lanes at addresses of any kind, in short.

use crate::{
    Checks, Sanitizer, State,
    deferred::{By, Spread},
    lanes,
    row::Scattered,
    shadow::LINE_BYTES,
    ticket,
};
use margay_exec::{AccessKind, Ordering, RowEvent, Semantics, SpreadEvent};

/// The first and the last byte of an access.
fn range(e: &SpreadEvent<'_>) -> (u64, u64) {
    let addresses = lanes(e.actor.lanes).map(|lane| e.addresses[lane as usize]);
    let (low, high) = addresses.fold((u64::MAX, 0), |(low, high), at| (low.min(at), high.max(at)));
    (low, high.saturating_add(u64::from(e.size) - 1))
}

/// Whether some lane accesses a window; all of them lie between the first and the last byte.
fn meets(e: &SpreadEvent<'_>, (low, high): (u64, u64), (base, size): (u64, u64)) -> bool {
    let within = |lane: u32| e.addresses[lane as usize].wrapping_sub(base) < size;
    low < base.saturating_add(size) && base <= high && lanes(e.actor.lanes).any(within)
}

impl Sanitizer {
    /// An access by lanes at addresses of any kind, in short: whether that is all there is to do, as [`Sanitizer::see_row`] says.
    pub(crate) fn see_spread(&self, state: &mut State, e: &SpreadEvent<'_>) -> bool {
        let Checks { init, races, .. } = self.what;
        let plain = matches!(e.order.semantics, Semantics::Weak | Semantics::Relaxed) && !e.order.asynchronous;
        let Some(site) = e.memo.get().checked_sub(1).filter(|_| races && !init && plain && state.clashes.is_empty())
        else {
            return false;
        };
        if state.over {
            return true;
        }
        let index = self.index(e.actor.cta);
        let Some(cta) = state.ctas.get(index).filter(|_| index.is_multiple_of(self.sample)) else { return false };
        if state.threads.any_released() || cta.threads.uncertain(e.actor.warp) != 0 {
            return false;
        }
        // Most that begin in shared memory are deferred.
        let first = e.addresses[e.actor.lanes.trailing_zeros() as usize & 31];
        if first.wrapping_sub(cta.shared.0) < cta.shared.1 {
            return self.defer_spread(state, e, (index, site));
        }
        let range = range(e);
        match () {
            _ if meets(e, range, cta.shared) => self.defer_spread(state, e, (index, site)),
            _ if meets(e, range, cta.locals) => false,
            _ if e.order.semantics == Semantics::Weak => self.scatter(state, e, (index, site), range),
            _ if e.access == AccessKind::Atomic => self.update(state, e, (index, site), range),
            _ => false,
        }
    }

    /// An atomic operation by lanes whose addresses increase evenly, as [`Sanitizer::see_spread`].
    pub(crate) fn see_updates(&self, state: &mut State, e: &RowEvent<'_>, order: Ordering) -> bool {
        let (first, stride) = e.row;
        let addresses = &std::array::from_fn(|lane| first.wrapping_add(stride.wrapping_mul(lane as u64)));
        let RowEvent { actor, size, memo, .. } = *e;
        self.see_spread(state, &SpreadEvent { actor, addresses, size, access: AccessKind::Atomic, order, memo })
    }

    /// An access to shared memory, if all of it is deferred.
    fn defer_spread(&self, state: &mut State, e: &SpreadEvent<'_>, (index, site): (u32, u32)) -> bool {
        let strong = e.order.semantics != Semantics::Weak;
        let State { ctas, sites, threads, yields, .. } = state;
        let Some(cta) = ctas.get_mut(index) else { return false };
        // What an atomic operation yields may depend on others.
        let depends = strong && !e.order.reduction && yields.get(site as usize).copied().flatten() != Some(false);
        let apart = strong && !cta.threads.are_alike(e.actor.warp);
        if depends || apart || e.access.writes() && !threads.advance() {
            return false;
        }
        let spread = Spread { addresses: e.addresses, size: e.size, lanes: e.actor.lanes, access: e.access };
        let who = By { warp: e.actor.warp, site, now: threads.now };
        if !cta.deferred.repeat(&spread, sites.kinds[site as usize], who) {
            return false;
        }
        if e.access.writes() && strong {
            threads.advance();
        }
        if self.what.sync {
            cta.arrivals.touch(&e.actor);
        }
        true
    }

    /// A plain access to global memory.
    fn scatter(&self, state: &mut State, e: &SpreadEvent<'_>, (index, site): (u32, u32), range: (u64, u64)) -> bool {
        let size = u64::from(e.size);
        let (all, writes) = (e.actor.lanes, e.access == AccessKind::Store);
        let scattered = Scattered { addresses: e.addresses, size: e.size, lanes: all };
        let odd = lanes(all).fold(0, |odd, lane| odd | e.addresses[lane as usize]) & (size - 1);
        let State { shadow, ctas, sites, threads, footprint, ignored, .. } = state;
        let kind = sites.kinds[site as usize];
        // The first access of a site is looked at in full.
        let Some(Some(known)) = ignored.get(site as usize) else { return false };
        if !e.size.is_power_of_two() || size > LINE_BYTES || odd != 0 || !writes && e.access != AccessKind::Load {
            return false;
        }
        let ignored = known.is_some_and(|(first, last)| first <= range.0 && range.1 <= last);
        // What lanes store to one place is compared.
        if writes && !scattered.are_distinct() {
            return false;
        }
        let Some(cta) = ctas.get_mut(index) else { return false };
        if self.footprints {
            footprint.note_spread(e);
        }
        if self.what.sync {
            cta.arrivals.touch(&e.actor);
        }
        if ignored {
            return true;
        }
        if writes && !threads.advance() {
            return false;
        }
        let row = self.row(&mut cta.threads, (site, kind), (e.actor.warp, all, false), threads.now);
        row.try_scattered(shadow, &sites.kinds, scattered)
    }

    /// A relaxed atomic operation on global memory.
    fn update(&self, state: &mut State, e: &SpreadEvent<'_>, (index, site): (u32, u32), range: (u64, u64)) -> bool {
        let size = u64::from(e.size);
        let odd = lanes(e.actor.lanes).fold(0, |odd, lane| odd | e.addresses[lane as usize]) & (size - 1);
        let State { shadow, ctas, sites, threads, footprint, yields, .. } = state;
        let kind = sites.kinds[site as usize];
        let Some(cta) = ctas.get_mut(index).filter(|cta| cta.threads.are_alike(e.actor.warp)) else { return false };
        let Some(Some(used)) = yields.get(site as usize).copied() else { return false };
        let alone = !self.updates && !threads.any_hints() && !threads.keeps_histories();
        if !alone || odd != 0 || !e.size.is_power_of_two() || size > LINE_BYTES || kind.element != e.size {
            return false;
        }
        if self.footprints {
            footprint.note_spread(e);
        }
        if self.what.sync {
            cta.arrivals.touch(&e.actor);
        }
        if !threads.advance() {
            return false;
        }
        let all = Scattered { addresses: e.addresses, size: e.size, lanes: e.actor.lanes };
        let same = range.1 - range.0 < size;
        let row = self.row(&mut cta.threads, (site, kind), (e.actor.warp, e.actor.lanes, false), threads.now);
        if !row.try_updates(shadow, &sites.kinds, all, same) {
            return false;
        }
        if used && !e.order.reduction {
            ticket::note(state, index, e.actor.warp, (e.addresses, e.actor.lanes), site);
        }
        // What comes next has another time.
        state.advance();
        true
    }
}
