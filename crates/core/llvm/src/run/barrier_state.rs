//! Who waits at which barrier, among the warps of a CTA that have stacks of their own.

use margay_exec::barrier::{BARRIERS, Barrier, expected};
use margay_isa::Mod;

/// Lanes of a warp that a barrier has released and that have not gone on yet, and what its reduction came to.
#[derive(Clone, Copy, Debug)]
struct Release {
    lanes: u32,
    reduced: u32,
}

/// Barriers of a CTA, and the lanes that wait at them.
#[derive(Default)]
pub struct BarrierState {
    barriers: Vec<Barrier>,
    /// By barrier and warp: lanes that wait, without those that only arrived.
    waiting: Vec<Vec<u32>>,
    /// By barrier and warp: the site at which lanes arrived last.
    sites: Vec<Vec<usize>>,
    reduces: Vec<Option<Mod>>,
    /// By warp.
    released: Vec<Vec<Release>>,
    /// By warp: lanes that have arrived at the cluster's barrier, those that wait there, and where.
    cluster: Vec<(u32, u32, usize)>,
    block: [u32; 3],
}

impl BarrierState {
    /// For a CTA of that shape.
    pub fn new(block: [u32; 3]) -> BarrierState {
        let warps = block.iter().product::<u32>().div_ceil(32) as usize;
        BarrierState {
            barriers: vec![Barrier::new(warps); BARRIERS],
            waiting: vec![vec![0; warps]; BARRIERS],
            sites: vec![vec![0; warps]; BARRIERS],
            reduces: vec![None; BARRIERS],
            released: vec![Vec::new(); warps],
            cluster: vec![(0, 0, 0); warps],
            block,
        }
    }

    /// Lanes arrive; an error names the lane and what it did wrong.
    pub fn arrive(
        &mut self,
        (warp, site): (usize, usize),
        lanes: u32,
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
            self.barriers[id as usize].arrive(id, warp, same, wanted, truth)?;
            self.reduces[id as usize] = reduces;
            if waits {
                self.waiting[id as usize][warp] |= same;
                self.sites[id as usize][warp] = site;
            }
            left &= !same;
        }
        Ok(())
    }

    /// Lanes arrive at the cluster's barrier; an error names one that had arrived before.
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

    /// Lanes wait at the cluster's barrier: those whose arrival it has used up go on at once.
    pub fn wait_in_cluster(&mut self, (warp, site): (usize, usize), lanes: u32) {
        let (arrived, waiting, place) = &mut self.cluster[warp];
        (*waiting, *place) = (*waiting | lanes & *arrived, site);
        let past = lanes & !*arrived;
        if past != 0 {
            self.released[warp].push(Release { lanes: past, reduced: 0 });
        }
    }

    /// Whether some lane has arrived at the cluster's barrier, and whether all of `live` have.
    pub fn cluster_arrivals(&self, live: &[u32]) -> (bool, bool) {
        let some = self.cluster.iter().any(|c| c.0 != 0);
        (some, self.cluster.iter().zip(live).all(|(c, live)| live & !c.0 == 0))
    }

    /// The phase of the cluster's barrier is over.
    pub fn open_cluster_barrier(&mut self) {
        for ((arrived, waiting, _), released) in self.cluster.iter_mut().zip(&mut self.released) {
            *arrived = 0;
            let lanes = std::mem::take(waiting);
            if lanes != 0 {
                released.push(Release { lanes, reduced: 0 });
            }
        }
    }

    /// Opens barriers at which enough threads are; `live` gives the lanes of each warp that have not ended.
    pub fn settle(&mut self, live: &[u32]) {
        for (id, barrier) in self.barriers.iter_mut().enumerate() {
            if !barrier.is_complete(live.iter().copied()) {
                continue;
            }
            let reduced = self.reduces[id].map_or(0, |mode| barrier.reduction(mode));
            for (lanes, released) in self.waiting[id].iter_mut().zip(&mut self.released) {
                let lanes = std::mem::take(lanes);
                if lanes != 0 {
                    released.push(Release { lanes, reduced });
                }
            }
            barrier.reset();
        }
    }

    /// Some of the lanes of a warp that were released, all by one barrier, and what its reduction came to.
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

    /// Whether a warp has lanes that were released.
    pub fn can_go_on(&self, warp: usize) -> bool {
        !self.released[warp].is_empty()
    }

    /// Who waits where: warp, lanes, site, and what for.
    pub fn waiters(&self) -> Vec<(usize, u32, usize, String)> {
        let mut out = Vec::new();
        for (id, by_warp) in self.waiting.iter().enumerate() {
            for (warp, lanes) in by_warp.iter().enumerate().filter(|(_, lanes)| **lanes != 0) {
                let what = format!("wait {}", self.barriers[id].describe(id));
                out.push((warp, *lanes, self.sites[id][warp], what));
            }
        }
        for (warp, (_, lanes, site)) in self.cluster.iter().enumerate().filter(|(_, c)| c.1 != 0) {
            out.push((warp, *lanes, *site, "wait at the cluster barrier".into()));
        }
        out
    }
}
