//! The barriers of a CTA whose warps run on fibers: which lanes have arrived, wait, or were released.

use margay_exec::barrier::{Barrier, expected};
use margay_isa::Mod;

/// Lanes of a warp that a barrier has released but that were not resumed yet, and the result of its reduction.
#[derive(Clone, Copy, Debug)]
struct Release {
    lanes: u32,
    reduced: u32,
}

/// One of a CTA's barriers.
struct Slot {
    barrier: Barrier,
    /// Lanes that wait, without lanes that only arrived (`bar.arrive`): warp, site of the arrival, lanes.
    waiting: Vec<(usize, usize, u32)>,
    /// The reduction that some lane asked for since it was released last.
    reduces: Option<Mod>,
}

/// The state of a CTA's barriers and of its share in the cluster's barrier.
#[derive(Default)]
pub struct BarrierState {
    /// The barriers up to the highest number that was used: most CTAs use one or none.
    slots: Vec<Slot>,
    /// Per warp: released lanes that have not been resumed.
    released: Vec<Vec<Release>>,
    /// The same of the current turn: they are resumed in the next one.
    opened: Vec<(usize, Release)>,
    /// Per warp: lanes that have arrived at the cluster's barrier, lanes that wait at it, and the site where they wait.
    cluster: Vec<(u32, u32, usize)>,
    /// Per warp: lanes that had not exited in the last turn.
    live: Vec<u32>,
    block: [u32; 3],
}

impl BarrierState {
    /// Creates the barriers of a CTA with this block shape.
    pub fn new(block: [u32; 3]) -> BarrierState {
        let warps = block.iter().product::<u32>().div_ceil(32) as usize;
        BarrierState {
            slots: Vec::new(),
            released: vec![Vec::new(); warps],
            opened: Vec::new(),
            cluster: vec![(0, 0, 0); warps],
            live: vec![0; warps],
            block,
        }
    }

    /// Lanes of a warp arrive at the barriers `ids`; `live` lanes of it have not exited. An error gives the lane that broke a rule and what
    /// it did. A barrier that is complete is ready for its next use at once: lanes that do not wait may come to it again.
    pub fn arrive(
        &mut self,
        (warp, site): (usize, usize),
        (lanes, live): (u32, u32),
        ids: &[u32; 32],
        counts: Option<&[u32; 32]>,
        truth: Option<u32>,
        (reduces, waits): (Option<Mod>, bool),
    ) -> Result<(), (usize, String)> {
        let mut left = lanes;
        while left != 0 {
            let lane = left.trailing_zeros() as usize;
            let (id, count) = (ids[lane], counts.map(|c| c[lane]));
            let agrees = |i: &usize| left >> i & 1 == 1 && ids[*i] == id && counts.is_none_or(|c| Some(c[*i]) == count);
            let same = (0..32).filter(agrees).fold(0u32, |m, i| m | 1 << i);
            let wanted = expected(id, count, self.block).map_err(|what| (lane, what))?;
            let slot = self.slot(id as usize);
            slot.barrier.arrive(id, warp, same, wanted, truth)?;
            slot.reduces = reduces.or(slot.reduces);
            if waits {
                slot.waiting.push((warp, site, same));
            }
            self.live[warp] = live;
            self.open(id as usize);
            left &= !same;
        }
        Ok(())
    }

    /// The barrier of a valid number.
    fn slot(&mut self, id: usize) -> &mut Slot {
        if id >= self.slots.len() {
            let warps = self.live.len();
            let unused = || Slot { barrier: Barrier::new(warps), waiting: Vec::new(), reduces: None };
            self.slots.resize_with(id + 1, unused);
        }
        &mut self.slots[id]
    }

    /// Whether any of these lanes has arrived at the cluster's barrier in the current phase.
    pub fn has_arrived_in_cluster(&self, warp: usize, lanes: u32) -> bool {
        self.cluster[warp].0 & lanes != 0
    }

    /// Lanes arrive at the cluster's barrier; an error names a lane that arrives twice in one phase.
    pub fn arrive_in_cluster(&mut self, warp: usize, lanes: u32) -> Result<(), (usize, String)> {
        let (arrived, ..) = &mut self.cluster[warp];
        let again = (*arrived & lanes).trailing_zeros() as usize;
        if again < 32 {
            let what = format!("lane {again} arrives at the cluster barrier again before it has completed");
            return Err((again, what));
        }
        *arrived |= lanes;
        Ok(())
    }

    /// Lanes wait at the cluster's barrier; those whose phase has already completed are released at once.
    pub fn wait_in_cluster(&mut self, (warp, site): (usize, usize), lanes: u32) {
        let (arrived, waiting, place) = &mut self.cluster[warp];
        (*waiting, *place) = (*waiting | lanes & *arrived, site);
        let past = lanes & !*arrived;
        if past != 0 {
            self.released[warp].push(Release { lanes: past, reduced: 0 });
        }
    }

    /// Returns whether any lane has arrived at the cluster's barrier, and whether all lanes of `live` have.
    pub fn cluster_arrivals(&self, live: impl Iterator<Item = u32>) -> (bool, bool) {
        let some = self.cluster.iter().any(|c| c.0 != 0);
        (some, self.cluster.iter().zip(live).all(|(c, live)| live & !c.0 == 0))
    }

    /// Completes the phase of the cluster's barrier: releases all lanes that wait at it.
    pub fn open_cluster_barrier(&mut self) {
        for ((arrived, waiting, _), released) in self.cluster.iter_mut().zip(&mut self.released) {
            *arrived = 0;
            let lanes = std::mem::take(waiting);
            if lanes != 0 {
                released.push(Release { lanes, reduced: 0 });
            }
        }
    }

    /// Releases every barrier that is complete; `live` holds the lanes of each warp that have not exited.
    pub fn release_complete(&mut self, live: impl Iterator<Item = u32>) {
        self.live.clear();
        self.live.extend(live);
        (0..self.slots.len()).for_each(|id| self.open(id));
        for (warp, release) in self.opened.drain(..) {
            self.released[warp].push(release);
        }
    }

    /// Releases a barrier if it is complete.
    fn open(&mut self, id: usize) {
        let Slot { barrier, waiting, reduces } = &mut self.slots[id];
        if !barrier.is_complete(self.live.iter().copied()) {
            return;
        }
        let reduced = reduces.take().map_or(0, |mode| barrier.reduction(mode));
        // One release per warp: all of its lanes continue together.
        let first = self.opened.len();
        for (warp, _, lanes) in waiting.drain(..) {
            match self.opened[first..].iter_mut().find(|(w, _)| *w == warp) {
                Some((_, release)) => release.lanes |= lanes,
                None => self.opened.push((warp, Release { lanes, reduced })),
            }
        }
        barrier.reset();
    }

    /// Takes released lanes of a warp out of `lanes`, all of one barrier, with the result of its reduction.
    pub fn take(&mut self, warp: usize, lanes: u32) -> Option<(u32, u32)> {
        let list = &mut self.released[warp];
        let at = list.iter().position(|r| r.lanes & lanes != 0)?;
        let found = list[at];
        match found.lanes & !lanes {
            0 => drop(list.swap_remove(at)),
            rest => list[at].lanes = rest,
        }
        Some((found.lanes & lanes, found.reduced))
    }

    /// Whether a warp has released lanes that were not resumed yet.
    pub fn has_released(&self, warp: usize) -> bool {
        !self.released[warp].is_empty()
    }

    /// Whether lanes of a warp wait at a barrier.
    pub fn has_waiting(&self, warp: usize) -> bool {
        self.slots.iter().any(|s| s.waiting.iter().any(|w| w.0 == warp)) || self.cluster[warp].1 != 0
    }

    /// Lanes that wait: warp, lanes, site, and a description of the barrier.
    pub fn waiters(&self) -> Vec<(usize, u32, usize, String)> {
        let mut out = Vec::new();
        for (id, slot) in self.slots.iter().enumerate() {
            let what = || format!("wait {}", slot.barrier.describe(id));
            let first = out.len();
            out.extend(slot.waiting.iter().map(|(warp, site, lanes)| (*warp, *lanes, *site, what())));
            out[first..].sort_by_key(|(warp, ..)| *warp);
        }
        for (warp, (_, lanes, site)) in self.cluster.iter().enumerate().filter(|(_, c)| c.1 != 0) {
            out.push((warp, *lanes, *site, "wait at the cluster barrier".into()));
        }
        out
    }
}
