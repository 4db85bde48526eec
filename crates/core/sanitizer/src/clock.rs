//! Vector clocks: up to when a thread has seen the actions of every other thread of the launch.
//!
//! There is one time for the whole launch. It advances at every synchronization and at every store, so that actions of
//! a thread can be distinguished by their time, and "everything before this barrier" is one number for a whole CTA. A
//! clock is a sparse tree: CTAs, each with a floor that holds for all its threads, then warps, then lanes. Subtrees are
//! shared between the clocks of threads.
//!
//! Each thread has an *agent* besides, since its asynchronous copies are not in its program order (manual, section
//! 8.9.1.1).

use margay_exec::LANES;
use std::sync::Arc;

/// A time of a launch; 0 is before its start.
pub type Time = u32;

/// A thread or its agent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The instructions of the thread.
    Program,
    /// Its asynchronous copies.
    Agent,
    /// What these read: it is over when they are complete, or when a `.read` wait says so.
    AgentReads,
    /// What products of the tensor cores read that it takes part in, or starts.
    Products,
    /// What its warp loads from tensor memory or stores there.
    Moves,
    /// The instructions of the thread, as far as the async proxy sees what they have written in shared memory, or elsewhere.
    Proxied {
        /// In shared memory.
        shared: bool,
    },
}

/// Up to when a thread's own asynchronous copies are over.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Copies {
    /// Those that are complete.
    pub complete: Time,
    /// Those that have read their sources, besides.
    pub read: Time,
}

impl Copies {
    /// Whether a side of its agent is over up to a time.
    pub fn cover(self, side: Side, time: Time) -> bool {
        match side {
            Side::Program | Side::Proxied { .. } => true,
            Side::Agent => self.complete >= time,
            Side::AgentReads => self.complete.max(self.read) >= time,
            // Lanes wait for products together, as their clocks show.
            Side::Products | Side::Moves => false,
        }
    }
}

/// Times of the threads of a warp.
#[derive(Clone, Default, Debug)]
struct Lanes {
    /// Lower bound for all lanes.
    floor: Time,
    /// Time per lane, where it exceeds the floor.
    each: Option<Arc<[Time; LANES]>>,
}

impl Lanes {
    fn get(&self, lane: u32) -> Time {
        self.each.as_ref().map_or(0, |each| each[lane as usize]).max(self.floor)
    }

    /// Seen of all.
    fn all(&self) -> Time {
        self.each.as_ref().and_then(|each| each.iter().min().copied()).unwrap_or(0).max(self.floor)
    }

    fn raise(&mut self, mask: u32, time: Time) {
        if mask == u32::MAX {
            self.floor = self.floor.max(time);
            if self.each.as_ref().is_some_and(|each| each.iter().all(|t| *t <= self.floor)) {
                self.each = None;
            }
            return;
        }
        let each = Arc::make_mut(self.each.get_or_insert_with(|| Arc::new([0; LANES])));
        (0..LANES).filter(|l| mask >> l & 1 == 1).for_each(|l| each[l] = each[l].max(time));
    }

    /// Whether joining the other would change nothing.
    fn covers(&self, other: &Lanes) -> bool {
        let each = |theirs: &Arc<[Time; LANES]>| {
            self.each.as_ref().is_some_and(|mine| Arc::ptr_eq(mine, theirs))
                || (0..).zip(theirs.iter()).all(|(lane, time)| *time <= self.get(lane))
        };
        other.floor <= self.floor && other.each.as_ref().is_none_or(each)
    }

    fn join(&mut self, other: &Lanes) {
        if self.covers(other) {
            return;
        }
        self.floor = self.floor.max(other.floor);
        let Some(theirs) = &other.each else { return };
        match &mut self.each {
            Some(mine) if Arc::ptr_eq(mine, theirs) => {}
            Some(mine) => {
                let mine = Arc::make_mut(mine);
                mine.iter_mut().zip(theirs.iter()).for_each(|(m, t)| *m = (*m).max(*t));
            }
            none => *none = Some(theirs.clone()),
        }
    }
}

/// Times of the threads of a CTA.
#[derive(Clone, Default, Debug)]
struct Cta {
    /// Lower bound for all threads, but not for their agents.
    floor: Time,
    warps: Vec<Lanes>,
    agents: Vec<Lanes>,
    /// Where what agents have read is known to be over later than they are.
    agent_reads: Vec<Lanes>,
    /// Of products, and of accesses to tensor memory.
    products: Vec<Lanes>,
    moves: Vec<Lanes>,
    /// Behind a proxy fence for other memory, and for shared memory.
    proxied: [Proxied; 2],
}

/// What the async proxy sees of the threads of a CTA.
#[derive(Clone, Default, Debug)]
struct Proxied {
    /// Lower bound for all threads.
    floor: Time,
    warps: Vec<Lanes>,
}

impl Proxied {
    fn join(&mut self, floor: Time, warps: &[Lanes]) {
        self.floor = self.floor.max(floor);
        join_lists(&mut self.warps, warps);
    }
}

fn lanes_of(list: &mut Vec<Lanes>, warp: u32) -> &mut Lanes {
    if list.len() <= warp as usize {
        list.resize(warp as usize + 1, Lanes::default());
    }
    &mut list[warp as usize]
}

fn join_lists(mine: &mut Vec<Lanes>, theirs: &[Lanes]) {
    for (warp, lanes) in theirs.iter().enumerate() {
        lanes_of(mine, warp as u32).join(lanes);
    }
}

/// Whether joining the other list would change nothing.
fn covers_list(mine: &[Lanes], theirs: &[Lanes]) -> bool {
    theirs.iter().enumerate().all(|(warp, lanes)| match mine.get(warp) {
        Some(mine) => mine.covers(lanes),
        None => Lanes::default().covers(lanes),
    })
}

impl Cta {
    fn lists(&self) -> [&[Lanes]; 5] {
        [&self.warps, &self.agents, &self.agent_reads, &self.products, &self.moves]
    }

    /// Whether joining the other would change nothing.
    fn covers(&self, other: &Cta) -> bool {
        let proxied = || self.proxied.iter().zip(&other.proxied);
        other.floor <= self.floor
            && self.lists().into_iter().zip(other.lists()).all(|(mine, theirs)| covers_list(mine, theirs))
            && proxied().all(|(mine, theirs)| theirs.floor <= mine.floor && covers_list(&mine.warps, &theirs.warps))
    }

    fn join(&mut self, other: &Cta) {
        self.floor = self.floor.max(other.floor);
        join_lists(&mut self.warps, &other.warps);
        join_lists(&mut self.agents, &other.agents);
        join_lists(&mut self.agent_reads, &other.agent_reads);
        join_lists(&mut self.products, &other.products);
        join_lists(&mut self.moves, &other.moves);
        self.proxied.iter_mut().zip(&other.proxied).for_each(|(mine, theirs)| mine.join(theirs.floor, &theirs.warps));
    }
}

/// A vector clock.
#[derive(Clone, Default, Debug)]
pub struct Clock {
    /// Sorted by CTA.
    ctas: Vec<(u32, Arc<Cta>)>,
}

impl Clock {
    fn find(&self, cta: u32) -> Option<&Cta> {
        let at = self.ctas.binary_search_by_key(&cta, |(c, _)| *c).ok()?;
        Some(&self.ctas[at].1)
    }

    fn entry(&mut self, cta: u32) -> &mut Cta {
        let at = match self.ctas.binary_search_by_key(&cta, |(c, _)| *c) {
            Ok(at) => at,
            Err(at) => {
                self.ctas.insert(at, (cta, Arc::default()));
                at
            }
        };
        Arc::make_mut(&mut self.ctas[at].1)
    }

    /// The time up to which a thread was seen.
    pub fn get(&self, (cta, warp, lane): (u32, u32, u32), side: Side) -> Time {
        let Some(c) = self.find(cta) else { return 0 };
        let of = |list: &[Lanes]| list.get(warp as usize).map_or(0, |w| w.get(lane));
        match side {
            Side::Program => of(&c.warps).max(c.floor),
            Side::Agent => of(&c.agents),
            Side::AgentReads => of(&c.agents).max(of(&c.agent_reads)),
            Side::Products => of(&c.products),
            Side::Moves => of(&c.moves),
            Side::Proxied { shared } => {
                let seen = &c.proxied[usize::from(shared)];
                of(&seen.warps).max(seen.floor)
            }
        }
    }

    /// Until when all threads of a CTA were seen, and all of one of its warps.
    pub fn floors(&self, cta: u32, warp: u32) -> (Time, Time) {
        let Some(c) = self.find(cta) else { return (0, 0) };
        (c.floor, c.warps.get(warp as usize).map_or(0, Lanes::all))
    }

    /// Raises the times of some threads to `time`.
    pub fn raise(&mut self, (cta, warp, mask): (u32, u32, u32), side: Side, time: Time) {
        let c = self.entry(cta);
        let list = match side {
            Side::Program => &mut c.warps,
            Side::Agent => &mut c.agents,
            Side::AgentReads => &mut c.agent_reads,
            Side::Products => &mut c.products,
            Side::Moves => &mut c.moves,
            Side::Proxied { shared } => &mut c.proxied[usize::from(shared)].warps,
        };
        lanes_of(list, warp).raise(mask, time);
    }

    /// Raises the times of a thread's copies.
    pub fn raise_copies(&mut self, (cta, warp, lane): (u32, u32, u32), copies: Copies) {
        for (side, time) in [(Side::Agent, copies.complete), (Side::AgentReads, copies.read)] {
            if time > 0 {
                self.raise((cta, warp, 1 << lane), side, time);
            }
        }
    }

    /// Raises the times of all threads of a CTA to `time`.
    pub fn raise_all(&mut self, cta: u32, time: Time) {
        let c = self.entry(cta);
        c.floor = c.floor.max(time);
        c.warps.clear();
    }

    /// A proxy fence for shared memory, or for other memory: all that was seen of programs there, the async proxy sees as well.
    pub fn pass_proxy_fence(&mut self, shared: bool) {
        for (_, cta) in &mut self.ctas {
            let Cta { floor, warps, proxied, .. } = Arc::make_mut(cta);
            proxied[usize::from(shared)].join(*floor, warps);
        }
    }

    /// Whether joining another clock would change nothing: threads that poll acquire the same one again and again.
    pub fn covers(&self, other: &Clock) -> bool {
        other.ctas.iter().all(|(cta, theirs)| {
            let known = self.ctas.binary_search_by_key(cta, |(c, _)| *c).ok();
            known.is_some_and(|at| Arc::ptr_eq(&self.ctas[at].1, theirs) || self.ctas[at].1.covers(theirs))
        })
    }

    /// Joins a clock into a shared one, which is copied only if that changes it.
    pub fn join_into(shared: &mut Arc<Clock>, other: &Clock) {
        if !shared.covers(other) {
            Arc::make_mut(shared).join(other);
        }
    }

    /// Raises every time to that of another clock.
    pub fn join(&mut self, other: &Clock) {
        for (cta, theirs) in &other.ctas {
            match self.ctas.binary_search_by_key(cta, |(c, _)| *c) {
                Ok(at) if Arc::ptr_eq(&self.ctas[at].1, theirs) || self.ctas[at].1.covers(theirs) => {}
                Ok(at) => Arc::make_mut(&mut self.ctas[at].1).join(theirs),
                Err(at) => self.ctas.insert(at, (*cta, theirs.clone())),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_join_by_the_latest_of_each_thread() {
        let (mut a, mut b) = (Clock::default(), Clock::default());
        a.raise((0, 1, 0b11), Side::Program, 5);
        b.raise((0, 1, 0b10), Side::Program, 9);
        b.raise((3, 0, u32::MAX), Side::Program, 4);
        b.raise((0, 0, 1), Side::Agent, 7);
        b.raise_copies((0, 0, 2), Copies { complete: 3, read: 8 });
        a.join(&b);
        let at = |c: &Clock, cta, warp, lane| c.get((cta, warp, lane), Side::Program);
        assert_eq!([at(&a, 0, 1, 0), at(&a, 0, 1, 1), at(&a, 0, 1, 2), at(&a, 3, 0, 31)], [5, 9, 0, 4]);
        assert_eq!((at(&a, 0, 0, 0), a.get((0, 0, 0), Side::Agent)), (0, 7));
        a.raise_all(0, 20);
        assert_eq!([Side::Agent, Side::AgentReads].map(|side| a.get((0, 0, 2), side)), [3, 8]);
        assert_eq!(a.get((0, 0, 0), Side::AgentReads), 7, "complete copies have read what they copy");
        assert_eq!((at(&a, 0, 7, 3), a.get((0, 0, 0), Side::Agent)), (20, 7));
        assert_eq!(at(&b, 0, 1, 0), 0, "the other one is as it was");
    }
}
