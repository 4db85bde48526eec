//! Which masked writes must preserve the inactive lanes.
//!
//! While a block runs for some lanes, others are pending at blocks that the sweep reaches later, or at the header of an enclosing loop. If
//! a register is live at none of these, no inactive lane needs its old value. So a value that a loop carries from one iteration to the
//! next is blended with that of the lanes that have left the loop only if it is live after it.

use crate::emit::function::{Emitter, Role, prepare::Prepared};
use margay_ir::{
    BlockId, FormalHome, VReg,
    pass::{BitSet, Cfg, Loop},
};

/// Where writes must preserve inactive lanes.
#[derive(Default)]
pub(in crate::emit) struct Blend {
    /// Registers whose inactive lanes some masked write must preserve.
    pub registers: Vec<bool>,
    /// By block: those that lanes pending elsewhere may still need.
    pub needed: Vec<BitSet>,
}

impl Emitter<'_> {
    /// Whether a write of a register by the current block, in its masked version, must keep the inactive lanes.
    pub(super) fn blends(&self, r: VReg) -> bool {
        self.blend.registers[r.0 as usize]
            && self.blend.needed.get(self.here.0 as usize).is_none_or(|kept| kept.has(r.0))
    }

    /// Registers whose masked writes must keep inactive lanes: of those that live across blocks, those with several definitions, those that
    /// lanes which left the loop of their definition still need, and those that lanes may carry past their definition in a later iteration.
    pub(super) fn find_blended(&self) -> Vec<bool> {
        let Prepared { cfg, spins, divergent, .. } = self.prepared;
        let n = self.func.regs.len();
        let (mut defs, mut def_block) = (vec![0u32; n], vec![0u32; n]);
        for (b, block) in self.func.blocks.iter().enumerate() {
            for inst in self.func.insts(block) {
                margay_ir::pass::liveness::inst_writes(self.func, inst, &mut |r| {
                    defs[r.0 as usize] += 1 + u32::from(inst.guard.is_some());
                    def_block[r.0 as usize] = b as u32;
                });
            }
        }
        for home in self.func.params.iter().chain(&self.func.rets) {
            if let FormalHome::Regs(regs) = home {
                regs.iter().for_each(|r| defs[r.0 as usize] += 2);
            }
        }
        // Within a block the active lanes are the same.
        let mut outlives = BitSet::new(n);
        cfg.order.iter().for_each(|b| _ = outlives.union(&self.live.live_in[b.0 as usize]));
        for home in &self.func.rets {
            if let FormalHome::Regs(regs) = home {
                regs.iter().for_each(|r| outlives.insert(r.0));
            }
        }
        (0..n)
            .map(|r| {
                if !outlives.has(r as u32) {
                    return false;
                }
                let position = cfg.position[def_block[r] as usize];
                let live = |p: u32| self.live.live_in[cfg.order[p as usize].0 as usize].has(r as u32);
                let outlasts = || {
                    let around = |l: &Loop| (0..cfg.order.len() as u32).filter(|p| !l.holds(*p)).any(live);
                    cfg.loops.iter().filter(|l| l.holds(position)).any(|l| live(l.first) || around(l))
                };
                defs[r] > 1 || !cfg.reducible || *spins || *divergent || outlasts()
            })
            .collect()
    }

    /// By block: the registers that lanes may still need that are pending at other blocks while it runs. Empty if they may be anywhere.
    pub(super) fn find_kept(&self) -> Vec<BitSet> {
        let parks = !self.prepared.barriers.is_empty() && self.role != Role::Grid;
        let irreducible = !self.prepared.cfg.reducible || self.prepared.cfg.loops.iter().any(|l| l.irreducible);
        if !self.masks
            || self.prepared.spins
            || self.prepared.divergent
            || parks
            || irreducible
            || self.prepared.holds.contains(&true)
        {
            return Vec::new();
        }
        let live = |position: u32| &self.live.live_in[self.prepared.cfg.order[position as usize].0 as usize];
        let mut spans = Spans::new(self.prepared.cfg.order.len(), self.func.regs.len());
        pending(&self.prepared.cfg, &mut |at, first, last| spans.add(first, last, live(at)));
        let by_position = spans.finish();
        let none = BitSet::new(self.func.regs.len());
        let kept = |b: &u32| by_position.get(*b as usize).unwrap_or(&none).clone();
        self.prepared.cfg.position.iter().map(kept).collect()
    }
}

/// Calls `f(at, first, last)` for spans of layout positions: while one of their blocks runs, lanes may be pending at the block at `at`, and
/// there are no others. The sweep runs pending blocks in the order of their positions, and repeats a loop while lanes are pending at its
/// header.
fn pending(cfg: &Cfg, f: &mut impl FnMut(u32, u32, u32)) {
    let position = |b: &BlockId| cfg.position[b.0 as usize];
    for (at, b) in (0..).zip(&cfg.order) {
        let from = || cfg.preds[b.0 as usize].iter().map(position).filter(|p| *p != u32::MAX);
        // From a block before it, until the sweep comes to it.
        if let Some(first) = from().filter(|p| *p < at).min() {
            f(at, first + 1, at - 1);
        }
        // Back from a block of a loop that it heads, until the loop is repeated.
        if let Some(first) = from().filter(|p| *p >= at).min() {
            let last = cfg.loops.iter().filter(|l| l.first == at).map(|l| l.last).max().unwrap_or(at);
            f(at, first + 1, last);
        }
    }
    // Out of a loop, while it is repeated for others.
    for l in &cfg.loops {
        for from in l.first..=l.last {
            let out = cfg.succs[cfg.order[from as usize].0 as usize].iter().map(position).filter(|to| !l.holds(*to));
            out.for_each(|to| f(to, l.first, l.last));
        }
    }
}

/// Sets of registers for all numbers below a limit, by spans: a tree over the numbers, whose nodes have what all numbers below them have.
struct Spans {
    /// The root is node 1, and the children of node `i` are `2 i` and `2 i + 1`.
    nodes: Vec<Option<BitSet>>,
    leaves: usize,
    registers: usize,
}

impl Spans {
    fn new(limit: usize, registers: usize) -> Spans {
        let leaves = limit.next_power_of_two();
        Spans { nodes: vec![None; 2 * leaves], leaves, registers }
    }

    /// Adds a set for all numbers from `first` to `last`, if there are any.
    fn add(&mut self, first: u32, last: u32, set: &BitSet) {
        let (mut from, mut to) = (first as usize + self.leaves, last as usize + 1 + self.leaves);
        while from < to {
            if from % 2 == 1 {
                self.join(from, set);
                from += 1;
            }
            if to % 2 == 1 {
                to -= 1;
                self.join(to, set);
            }
            (from, to) = (from / 2, to / 2);
        }
    }

    fn join(&mut self, node: usize, set: &BitSet) {
        self.nodes[node].get_or_insert_with(|| BitSet::new(self.registers)).union(set);
    }

    /// The set of each number.
    fn finish(mut self) -> Vec<BitSet> {
        for node in 2..self.nodes.len() {
            if let Some(above) = self.nodes[node / 2].clone() {
                self.join(node, &above);
            }
        }
        let leaves = self.nodes.split_off(self.leaves);
        leaves.into_iter().map(|set| set.unwrap_or_else(|| BitSet::new(self.registers))).collect()
    }
}
