//! What threads have read of release patterns, and no fence has acquired.

use super::{CtaThreads, Release, WarpMask, uncertain::Read};
use crate::lanes;
use margay_exec::Scope;
use std::sync::Arc;

/// Limit of clocks that wait for an acquire fence, per thread.
const MAX_PENDING: usize = 64;

/// A clock read from a release pattern that awaits an acquire fence.
#[derive(Clone)]
pub(super) struct Pending {
    pub(super) release: Release,
    /// The scope of the read.
    pub(super) scope: Scope,
    /// Which read found it, if that is in the kernel itself.
    pub(super) read: Option<Read>,
    /// A thread has waited for it.
    pub(super) awaited: bool,
}

/// The clocks that await a thread's acquire fence. Threads that shuffle all have the same ones, which they then share: kernels whose groups
/// of lanes read a tree by relaxed loads, and shuffle what they find, do so all the time.
#[derive(Clone, Default)]
pub(super) struct Unacquired(Option<Arc<Vec<Pending>>>);

impl Pending {
    /// Whether no instruction uses the value.
    pub(super) fn is_vain(&self) -> bool {
        self.read.is_some_and(|read| read.discarded)
    }

    /// Whether it is the same clock, read with the same scope.
    fn is(&self, other: &Pending) -> bool {
        Arc::ptr_eq(&self.release.clock, &other.release.clock) && self.scope == other.scope
    }
}

impl Unacquired {
    fn list(&self) -> &[Pending] {
        self.0.as_deref().map_or(&[], Vec::as_slice)
    }

    fn list_mut(&mut self) -> &mut Vec<Pending> {
        Arc::make_mut(self.0.get_or_insert_default())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list().is_empty()
    }

    pub(super) fn iter(&self) -> std::slice::Iter<'_, Pending> {
        self.list().iter()
    }

    /// Whether both are one list.
    fn shares(&self, other: &Unacquired) -> bool {
        match (&self.0, &other.0) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (None, None) => true,
            _ => false,
        }
    }

    /// Threads that poll read the same again and again, which must not copy a list that others share.
    pub(super) fn push(&mut self, new: Pending) {
        let list = self.list();
        if let Some(place) = list.iter().position(|p| p.is(&new)) {
            let known = &list[place];
            if known.is_vain() || known.awaited && !new.awaited {
                let known = &mut self.list_mut()[place];
                // What was read before and discarded counts now.
                if known.is_vain() {
                    known.read = new.read;
                }
                known.awaited &= new.awaited;
            }
            return;
        }
        if list.len() < MAX_PENDING {
            return self.list_mut().push(new);
        }
        // Merged: too much order only hides races, and never invents any.
        let first = &list[0];
        let changes = first.read.is_some() || first.awaited && !new.awaited;
        if !changes && self.is_shared() && first.release.clock.covers(&new.release.clock) {
            return;
        }
        let first = &mut self.list_mut()[0];
        Arc::make_mut(&mut first.release.clock).join(&new.release.clock);
        first.read = None;
        first.awaited &= new.awaited;
    }

    /// Whether changes copy the list.
    fn is_shared(&self) -> bool {
        self.0.as_ref().is_some_and(|list| Arc::strong_count(list) > 1)
    }

    pub(super) fn extend(&mut self, all: &Unacquired) {
        if self.is_empty() {
            *self = all.clone();
        } else {
            all.iter().for_each(|p| self.push(p.clone()));
        }
    }

    /// Adds what another thread has read, other than into discarded values.
    fn gather(&mut self, other: &Unacquired) {
        if self.is_empty() && other.iter().all(|p| p.read.is_none()) {
            *self = other.clone();
            return;
        }
        for (place, p) in other.iter().enumerate().filter(|(_, p)| !p.is_vain()) {
            // Lists that were shared until now differ in few places.
            let known = self.list().get(place).is_some_and(|known| known.is(p) && known.awaited <= p.awaited);
            if !known {
                self.push(Pending { read: None, ..p.clone() });
            }
        }
    }

    /// Replaces what was gathered from this thread and others.
    fn share(&mut self, all: &Unacquired) {
        let vain: Vec<Pending> = self.iter().filter(|p| p.is_vain()).cloned().collect();
        self.0.clone_from(&all.0);
        vain.into_iter().for_each(|p| self.push(p));
    }
}

impl CtaThreads {
    /// Adds what lanes have read of release patterns, other than into discarded values, and no fence has acquired.
    pub(super) fn gather_pending(&self, who: WarpMask, to: &mut Unacquired) {
        let warp = self.warp(who.warp);
        let mut last: Option<&Unacquired> = None;
        for lane in lanes(warp.differing(who.lanes)) {
            let list = &warp.thread(lane).pending;
            if last.is_none_or(|last| !last.shares(list)) {
                to.gather(list);
                last = Some(list);
            }
        }
    }

    /// One lane reads a flag, and informs the warp: the fences of the others acquire it, too.
    pub(super) fn pass_pending(&mut self, who: WarpMask) {
        if self.are_alike(who.warp) || self.has_passed_pending(who) {
            return;
        }
        let mut all = Unacquired::default();
        self.gather_pending(who, &mut all);
        for lane in lanes(if all.is_empty() { 0 } else { who.lanes }) {
            self.thread(who.warp, lane).pending.share(&all);
        }
    }

    /// Whether lanes have read nothing since they last informed each other.
    fn has_passed_pending(&self, who: WarpMask) -> bool {
        let first = &self.look(who.warp, who.lanes.trailing_zeros()).pending;
        lanes(who.lanes).all(|lane| self.look(who.warp, lane).pending.shares(first))
            && first.iter().all(|p| p.read.is_none() || p.is_vain())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        clock::{Clock, Copies, Side, Time},
        threads::Fence,
    };

    fn pending(time: Time) -> Pending {
        let mut clock = Clock::default();
        clock.raise((0, 0, 1), Side::Program, time);
        let clock = Arc::new(clock);
        let fence = Fence { clock: clock.clone(), copies: Copies::default(), time };
        let release = Release { cta: 0, cluster: 0, scope: Scope::Gpu, clock, by: (0, 0), fence };
        Pending { release, scope: Scope::Gpu, read: None, awaited: false }
    }

    /// Threads that poll read the same again and again.
    #[test]
    fn what_is_known_is_not_copied() {
        let all: Vec<Pending> = (1..=2 * MAX_PENDING as Time).map(pending).collect();
        let mut list = Unacquired::default();
        all.iter().for_each(|p| list.push(p.clone()));
        assert_eq!(list.list().len(), MAX_PENDING);
        let shared = list.clone();
        all.iter().for_each(|p| list.push(p.clone()));
        assert!(list.shares(&shared));
        // What was merged is acquired, too.
        assert!(list.iter().any(|p| p.release.clock.covers(&all[all.len() - 1].release.clock)));
    }

    #[test]
    fn gathered_lists_are_shared() {
        let (mut a, mut b) = (Unacquired::default(), Unacquired::default());
        a.push(pending(1));
        b.push(pending(2));
        let mut all = Unacquired::default();
        [&a, &b].into_iter().for_each(|list| all.gather(list));
        a.share(&all);
        b.share(&all);
        assert!(a.shares(&b) && a.list().len() == 2);
    }
}
