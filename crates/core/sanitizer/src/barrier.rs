//! Barriers that only a part of a CTA reaches.
//!
//! * Threads of a warp, or of a CTA, that wait at different `bar.sync` (`.aligned`) for the same completion: all must
//!   be at the same one (manual, section 9.7.13.1).
//! * Threads that have skipped a barrier and exited, which completes it. That is correct for threads that exit early,
//!   so the place of their last memory access or barrier decides: a thread has skipped the barrier if that place follows the
//!   barrier and cannot lead back to it, or if all ways from there to the kernel's end that avoid the barrier lead through
//!   such places. After a barrier that nothing follows there are none, so all threads must reach it: it is of no use to those
//!   that remain when others exit early, and so it stands in a condition. If nothing follows the loop
//!   of a barrier, a thread that was in the loop and has exited has left it before the others: their numbers of iterations differ.

use crate::{Finding, FindingKind, Sanitizer, State, lanes, site::Place};
use margay_exec::{Actor, BarrierEvent, Frame, LANES};
use margay_ir::{Func, FuncId, Inst, SourcePlace, Terminator};
use margay_isa::Effect;
use std::collections::HashMap;

/// An arrival at a barrier that has not completed.
#[derive(Clone)]
pub struct Arrival {
    warp: u32,
    lanes: u32,
    at: Place,
    callers: Vec<Frame>,
    aligned: bool,
    /// The instruction gives the number of participating threads: different instructions may arrive at the same barrier.
    counted: bool,
}

impl Arrival {
    fn in_kernel(&self) -> Place {
        self.callers.last().map_or(self.at, |f| (f.func, f.at))
    }
}

/// The arrivals at a CTA's barriers, and each thread's last memory access or arrival.
pub struct Arrivals {
    /// By number.
    open: Vec<(u32, Vec<Arrival>)>,
    /// By warp: where in the kernel its lanes last accessed memory or arrived. Each lane is in one entry.
    last: Vec<Vec<(u32, Place)>>,
}

impl Arrivals {
    /// Creates the state of a CTA with `warps` warps.
    pub fn new(warps: u32) -> Arrivals {
        Arrivals { open: Vec::new(), last: vec![Vec::new(); warps as usize] }
    }

    /// That of another CTA, which begins when this one has ended.
    pub fn restart(&mut self) {
        self.open.clear();
        self.last.iter_mut().for_each(Vec::clear);
    }

    /// Records a memory access or an arrival.
    pub fn touch(&mut self, actor: &Actor<'_>) {
        self.pass((actor.warp, actor.lanes), actor.callers.last().map_or(actor.at, |f| (f.func, f.at)));
    }

    /// Records that lanes of a warp were at a place in the kernel.
    #[inline]
    pub fn pass(&mut self, (warp, lanes): (u32, u32), place: Place) {
        let last = &mut self.last[warp as usize];
        if let [(mask, at)] = &mut last[..]
            && *mask & !lanes == 0
        {
            (*mask, *at) = (lanes, place);
            return;
        }
        last.retain_mut(|(mask, _)| {
            *mask &= !lanes;
            *mask != 0
        });
        last.push((lanes, place));
    }

    fn last(&self, warp: usize, lane: u32) -> Option<Place> {
        self.last[warp].iter().find(|(mask, _)| mask >> lane & 1 == 1).map(|(_, at)| *at)
    }

    /// Records an arrival; returns a conflicting one from another place, if all threads must be at the same barrier.
    pub fn arrive(&mut self, actor: &Actor<'_>, id: u32, (aligned, counted): (bool, bool)) -> Option<Arrival> {
        self.touch(actor);
        let place = self.open.iter().position(|(known, _)| *known == id).unwrap_or_else(|| {
            self.open.push((id, Vec::new()));
            self.open.len() - 1
        });
        let list = &mut self.open[place].1;
        let differs = |a: &&Arrival| {
            a.aligned
                && aligned
                && a.warp == actor.warp
                && (a.at.0, a.at.1.span.start) != (actor.at.0, actor.at.1.span.start)
        };
        let apart = list.iter().find(differs).cloned();
        let callers = actor.callers.to_vec();
        list.push(Arrival { warp: actor.warp, lanes: actor.lanes, at: actor.at, callers, aligned, counted });
        apart
    }

    /// Takes the arrivals at a completed barrier.
    pub fn complete(&mut self, id: u32) -> Vec<Arrival> {
        let list = self.open.iter_mut().find(|(known, _)| *known == id);
        list.map_or(Vec::new(), |(_, list)| std::mem::take(list))
    }

    /// Gives the memory of a list of arrivals back.
    pub fn recycle(&mut self, id: u32, mut list: Vec<Arrival>) {
        list.clear();
        if let Some((_, open)) = self.open.iter_mut().find(|(known, open)| *known == id && open.is_empty()) {
            *open = list;
        }
    }
}

/// How a thread that has ended came past a barrier.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Skip {
    /// It left the barrier's loop before other threads did.
    LeftLoop,
    /// It took another way, and executed code that follows the barrier, or had to.
    WentPast,
}

impl Skip {
    fn help(self) -> &'static str {
        match self {
            Skip::LeftLoop => {
                "all threads of the CTA must reach `__syncthreads()` equally often: those that have nothing left to do must stay in the loop"
            }
            Skip::WentPast => {
                "`__syncthreads()` must be reached by all threads of the CTA or by none: move it out of the condition"
            }
        }
    }
}

/// Reachability between the blocks of each function.
#[derive(Default)]
pub struct Reach(HashMap<FuncId, Graph>);

struct Graph {
    /// Block of the instruction at a source position.
    blocks: HashMap<u32, u32>,
    next: Vec<Vec<u32>>,
    /// Whether a block does more than to lead to the kernel's end.
    acts: Vec<bool>,
    /// By block: where its last instruction is that accesses memory or concerns other threads.
    last_act: Vec<Option<u32>>,
    /// Answers of [`Graph::skip`], by the positions of the barrier and of the last event.
    known: HashMap<(u32, u32), Option<Skip>>,
}

impl Graph {
    fn new(func: &Func) -> Graph {
        let mut blocks = HashMap::new();
        let (mut next, mut acts, mut last_act) = (Vec::new(), Vec::new(), Vec::new());
        for (i, block) in func.blocks.iter().enumerate() {
            for inst in func.insts(block) {
                blocks.insert(func.places[inst.at as usize].span.start, i as u32);
            }
            let acting = |inst: &Inst| {
                matches!(func.variant(inst).op.row().effect, Effect::Memory | Effect::Call | Effect::Warp)
            };
            let last = func.insts(block).iter().rev().find(|inst| acting(inst));
            last_act.push(last.map(|inst| func.places[inst.at as usize].span.start));
            acts.push(last.is_some() || matches!(block.term, Terminator::Branch { .. } | Terminator::Switch { .. }));
            next.push(match &block.term {
                Terminator::Jump(to) => vec![to.0],
                Terminator::Branch { then, other, .. } => vec![then.0, other.0],
                Terminator::Switch { targets, .. } => targets.iter().map(|t| t.0).collect(),
                Terminator::Ret | Terminator::Exit => Vec::new(),
            });
        }
        Graph { blocks, next, acts, last_act, known: HashMap::new() }
    }

    /// The blocks that can follow one, by ways whose blocks `may_pass`.
    fn reachable(&self, from: u32, may_pass: impl Fn(u32) -> bool) -> Vec<bool> {
        let (mut seen, mut todo) = (vec![false; self.next.len()], self.next[from as usize].clone());
        while let Some(block) = todo.pop() {
            if may_pass(block) && !std::mem::replace(&mut seen[block as usize], true) {
                todo.extend(&self.next[block as usize]);
            }
        }
        seen
    }

    fn is_reachable(&self, from: u32, to: u32) -> bool {
        self.reachable(from, |_| true)[to as usize]
    }

    /// Whether the kernel only ends after a barrier.
    fn is_last(&self, barrier: SourcePlace) -> bool {
        let Some(b) = self.blocks.get(&barrier.span.start) else { return false };
        let behind = self.reachable(*b, |_| true);
        let ends = |block: &u32| !matches!(self.next[*block as usize][..], [_, _, ..]);
        let acts = (0..behind.len()).any(|block| behind[block] && self.acts[block]);
        self.last_act[*b as usize] == Some(barrier.span.start) && ends(b) && !acts
    }

    /// Whether and how a thread that has ended, and did something at `last` before, has skipped a barrier.
    fn skip(&mut self, (barrier, last): (SourcePlace, SourcePlace)) -> Option<Skip> {
        let key = (barrier.span.start, last.span.start);
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let skip = if self.has_left_the_last_loop((barrier, last)) {
            Some(Skip::LeftLoop)
        } else {
            (self.follows((barrier, last)) || self.is_skipped((barrier, last))).then_some(Skip::WentPast)
        };
        self.known.insert(key, skip);
        skip
    }

    /// Whether a thread that goes from `last` to the kernel's end and not to a barrier must pass code that strictly follows the
    /// barrier: the barrier is in a condition or loop that has ended. Otherwise it may have exited early.
    fn is_skipped(&self, (barrier, last): (SourcePlace, SourcePlace)) -> bool {
        let (Some(b), Some(l)) = (self.blocks.get(&barrier.span.start), self.blocks.get(&last.span.start)) else {
            return false;
        };
        let behind = self.reachable(*b, |_| true);
        let joins = |block: u32| {
            self.acts[block as usize] && behind[block as usize] && !self.is_reachable(block, *b) && block != *b
        };
        let ways = self.reachable(*l, |block| block != *b && !joins(block));
        let ends = |block: usize| self.next[block].is_empty();
        !(0..self.next.len()).any(|block| ends(block) && (ways[block] || block == *l as usize))
    }

    /// Whether a thread that has ended was in the loop of a barrier, and nothing follows the loop. A thread that returns early
    /// leaves out something that follows.
    fn has_left_the_last_loop(&self, (barrier, last): (SourcePlace, SourcePlace)) -> bool {
        let (Some(b), Some(l)) = (self.blocks.get(&barrier.span.start), self.blocks.get(&last.span.start)) else {
            return false;
        };
        let behind = self.reachable(*b, |_| true);
        let in_loop = |block: u32| behind[block as usize] && self.is_reachable(block, *b);
        in_loop(*l) && !(0..behind.len() as u32).any(|i| self.acts[i as usize] && behind[i as usize] && !in_loop(i))
    }

    /// Whether `after` strictly follows `before`: it is reachable from there, but not the other way round.
    fn follows(&self, (before, after): (SourcePlace, SourcePlace)) -> bool {
        let (Some(b), Some(a)) = (self.blocks.get(&before.span.start), self.blocks.get(&after.span.start)) else {
            return false;
        };
        if a == b {
            return after.span.start > before.span.start && !self.is_reachable(*a, *a);
        }
        self.is_reachable(*b, *a) && !self.is_reachable(*a, *b)
    }
}

impl Sanitizer {
    /// Reports threads of a warp that wait at different barriers.
    pub(crate) fn report_apart(&self, state: &mut State, actor: &Actor<'_>, other: &Arrival) {
        let kind = FindingKind::Synchronization;
        let lane = actor.lanes.trailing_zeros();
        let first = crate::Party {
            verb: "waits".into(),
            thread: self.thread(other.warp, other.lanes.trailing_zeros()),
            cta: actor.cta,
            at: other.at,
            callers: other.callers.clone(),
        };
        state.report(kind, (actor.at, Some(other.at)), || Finding {
            kind,
            title: "barrier: threads of one warp wait at different barriers in divergent code".into(),
            parties: vec![self.party(actor, lane, "waits"), first],
            notes: Vec::new(),
            help: Some(Skip::WentPast.help().into()),
            times: 1,
        });
    }

    /// Reports threads that should have arrived at a barrier of all threads, which has completed.
    pub(crate) fn look_for_skipped(&self, state: &mut State, e: &BarrierEvent<'_>, arrived: &[Arrival]) {
        let Some(first) = arrived.first() else { return };
        let must_meet = |a: &Arrival| a.aligned && !a.counted;
        let elsewhere = arrived.iter().find(|a| {
            must_meet(a) && must_meet(first) && (a.at.0, a.at.1.span.start) != (first.at.0, first.at.1.span.start)
        });
        let party = |a: &Arrival, verb: &str| crate::Party {
            verb: verb.into(),
            thread: self.thread(a.warp, a.lanes.trailing_zeros()),
            cta: e.cta,
            at: a.at,
            callers: a.callers.clone(),
        };
        let kind = FindingKind::Synchronization;
        if let Some(other) = elsewhere.filter(|o| o.warp != first.warp) {
            state.report(kind, (first.at, Some(other.at)), || Finding {
                kind,
                title: "barrier: threads of one CTA wait at different barriers in divergent code".into(),
                parties: vec![party(other, "waits"), party(first, "waits")],
                notes: Vec::new(),
                help: Some(Skip::WentPast.help().into()),
                times: 1,
            });
        }
        let skipped = self.find_skipped(state, e, first);
        let Some((warp, lane, last, skip)) = skipped else { return };
        let other = last.map(|at| crate::Party {
            verb: "exits without it, after".into(),
            thread: self.thread(warp, lane),
            cta: e.cta,
            at,
            callers: Vec::new(),
        });
        let [x, y, z] = self.thread(warp, lane);
        state.report(kind, (first.at, None), || Finding {
            kind,
            title: "barrier: some threads of the CTA wait at this barrier, and others skip it".into(),
            parties: std::iter::once(party(first, "waits")).chain(other).collect(),
            notes: vec![format!("the barrier completed because thread ({x}, {y}, {z}) and perhaps others had exited")],
            help: Some(skip.help().into()),
            times: 1,
        });
    }

    /// A lane that has exited without arriving at the barrier at which `first` waits: its warp and number, where it was last seen, and
    /// how it may have come by.
    fn find_skipped(
        &self,
        state: &mut State,
        e: &BarrierEvent<'_>,
        first: &Arrival,
    ) -> Option<(u32, u32, Option<Place>, Skip)> {
        let threads = self.block.iter().product::<u32>();
        let place = first.in_kernel();
        let State { ctas, barriers, .. } = state;
        let cta = ctas.get(self.index(e.cta))?;
        e.arrived.iter().enumerate().find_map(|(warp, here)| {
            let left = threads - (warp as u32 * LANES as u32).min(threads);
            let born = if left >= LANES as u32 { u32::MAX } else { (1 << left) - 1 };
            let gone = born & !here & !e.live[warp];
            if gone == 0 {
                return None;
            }
            let graph = barriers.0.entry(place.0).or_insert_with(|| Graph::new(self.image.ir.func(place.0)));
            let is_last = first.callers.is_empty() && graph.is_last(place.1);
            lanes(gone).find_map(|lane| {
                let last = cta.arrivals.last(warp, lane).filter(|l| l.0 == place.0);
                let was_there = last.is_some_and(|(_, at)| at.span.start == place.1.span.start);
                let skip = last.and_then(|last| graph.skip((place.1, last.1)));
                let skip = skip.or((is_last && !was_there).then_some(Skip::WentPast))?;
                Some((warp as u32, lane, last, skip))
            })
        })
    }
}
