//! The structure of the control-flow graph: predecessors, a layout in which loops are contiguous, loops, post-dominators.

use crate::{BlockId, Func, Terminator};

/// A loop in layout order: the blocks at positions `first..=last`. Its header comes first; a natural loop is entered only there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Loop {
    /// Layout position of the header.
    pub first: u32,
    /// Layout position of the last block.
    pub last: u32,
    /// It is entered at other blocks too, or holds retreating edges to other blocks than headers.
    pub irreducible: bool,
}

impl Loop {
    /// Whether a layout position is one of the loop's.
    pub fn holds(&self, position: u32) -> bool {
        (self.first..=self.last).contains(&position)
    }
}

/// The graph's shape.
#[derive(Clone, Debug)]
pub struct Cfg {
    /// Successors by block; duplicates kept out.
    pub succs: Vec<Vec<BlockId>>,
    /// Predecessors by block.
    pub preds: Vec<Vec<BlockId>>,
    /// Blocks in layout order: a reverse post-order in which every loop's blocks are contiguous.
    pub order: Vec<BlockId>,
    /// Layout position by block.
    pub position: Vec<u32>,
    /// Loops, outer before inner.
    pub loops: Vec<Loop>,
    /// False when some retreating edge does not lead to a header that dominates it, or a loop cannot be laid out contiguously.
    pub reducible: bool,
    /// By block: the nearest dominator; `None` for the entry, and for blocks that are never reached.
    pub idom: Vec<Option<BlockId>>,
    /// By block: the nearest post-dominator, where lanes that diverge at its end reconverge; `None` where that is only the end of the
    /// function.
    pub ipdom: Vec<Option<BlockId>>,
}

/// Where a terminator may go, without duplicates.
pub fn successors(term: &Terminator) -> Vec<BlockId> {
    let mut out = match term {
        Terminator::Jump(b) => vec![*b],
        Terminator::Branch { then, other, .. } => vec![*then, *other],
        Terminator::Switch { targets, .. } => targets.clone(),
        Terminator::Ret | Terminator::Exit => Vec::new(),
    };
    out.sort();
    out.dedup();
    out
}

impl Cfg {
    /// Analyses a function; `skip(from, to)` leaves an edge out (an engine that ends lanes at once where they branch to an
    /// empty returning block must not have this edge).
    pub fn new(func: &Func, skip: impl Fn(BlockId, BlockId) -> bool) -> Cfg {
        let n = func.blocks.len();
        let succs: Vec<Vec<BlockId>> = (0..n)
            .map(|b| {
                let from = BlockId(b as u32);
                successors(&func.blocks[b].term).into_iter().filter(|to| !skip(from, *to)).collect()
            })
            .collect();
        let mut preds = vec![Vec::new(); n];
        for (b, out) in succs.iter().enumerate() {
            out.iter().for_each(|s| preds[s.0 as usize].push(BlockId(b as u32)));
        }
        let rpo = reverse_post_order(&succs);
        let idom = dominators(&rpo, &preds, n);
        let (order, loops, reducible) = layout(&rpo, &succs, &preds, &idom);
        let mut position = vec![u32::MAX; n];
        order.iter().enumerate().for_each(|(i, b)| position[b.0 as usize] = i as u32);
        let ipdom = post_dominators(&succs, &preds, &order);
        let above = |b: usize| idom[b].filter(|d| *d != b as u32).map(BlockId);
        let idom = (0..n).map(above).collect();
        let mut cfg = Cfg { succs, preds, order, position, loops, reducible, idom, ipdom };
        cfg.ipdom = (0..n as u32).map(|b| cfg.reconvergence(BlockId(b))).collect();
        cfg
    }

    /// A guess how often the block at a layout position is executed: every loop is repeated eight times, up to five nested ones.
    pub fn frequency(&self, position: u32) -> u64 {
        8u64.pow(self.loops.iter().filter(|l| l.holds(position)).count().min(5) as u32)
    }

    /// The nearest post-dominator where lanes that diverge at the end of a block reconverge, if an engine repeats a loop for some lanes as
    /// soon as they return to its header, when other lanes have passed the blocks that follow in the loop. So it is in no loop to whose
    /// header some path returns first.
    fn reconvergence(&self, b: BlockId) -> Option<BlockId> {
        let mut stop = self.ipdom[b.0 as usize]?;
        if self.succs[b.0 as usize].len() < 2 {
            return Some(stop);
        }
        while self.returns_before(b, stop) {
            stop = self.ipdom[stop.0 as usize]?;
        }
        Some(stop)
    }

    /// Whether some path from a block leads to the header of a loop that contains both blocks before it reaches `stop`.
    fn returns_before(&self, b: BlockId, stop: BlockId) -> bool {
        let [here, there] = [b, stop].map(|x| self.position[x.0 as usize]);
        let headers: Vec<u32> =
            self.loops.iter().filter(|l| l.holds(here) && l.holds(there)).map(|l| l.first).collect();
        if headers.is_empty() {
            return false;
        }
        let mut seen = vec![false; self.succs.len()];
        let mut work = self.succs[b.0 as usize].clone();
        while let Some(x) = work.pop() {
            if x == stop || std::mem::replace(&mut seen[x.0 as usize], true) {
                continue;
            }
            if headers.contains(&self.position[x.0 as usize]) {
                return true;
            }
            work.extend(&self.succs[x.0 as usize]);
        }
        false
    }

    /// The blocks of a loop, in layout order.
    pub fn blocks(&self, l: &Loop) -> &[BlockId] {
        &self.order[l.first as usize..=l.last as usize]
    }

    /// The innermost loop that holds a layout position, if any.
    pub fn innermost(&self, position: u32) -> Option<usize> {
        (0..self.loops.len())
            .filter(|i| self.loops[*i].holds(position))
            .min_by_key(|i| self.loops[*i].last - self.loops[*i].first)
    }

    /// Whether a path leads from a loop's header through the loop back to it without an edge, from one block to another, that `stops` it.
    pub fn repeats_without(&self, l: &Loop, stops: impl Fn(BlockId, BlockId) -> bool) -> bool {
        let header = self.order[l.first as usize];
        let mut seen = vec![false; (l.last - l.first + 1) as usize];
        let mut work = vec![header];
        while let Some(b) = work.pop() {
            for to in self.succs[b.0 as usize].iter().filter(|to| !stops(b, **to)) {
                let at = self.position[to.0 as usize];
                if *to == header {
                    return true;
                }
                if l.holds(at) && !std::mem::replace(&mut seen[(at - l.first) as usize], true) {
                    work.push(*to);
                }
            }
        }
        false
    }
}

fn reverse_post_order(succs: &[Vec<BlockId>]) -> Vec<BlockId> {
    let mut seen = vec![false; succs.len()];
    let mut out = Vec::with_capacity(succs.len());
    if succs.is_empty() {
        return out;
    }
    seen[0] = true;
    let mut stack = vec![(0usize, 0usize)];
    while let Some((b, next)) = stack.last_mut() {
        // The last successor is visited first, so that it comes last in the reversed order: fall-through paths stay in front.
        let list = &succs[*b];
        if *next < list.len() {
            let s = list[list.len() - 1 - *next].0 as usize;
            *next += 1;
            if !seen[s] {
                seen[s] = true;
                stack.push((s, 0));
            }
        } else {
            out.push(BlockId(*b as u32));
            stack.pop();
        }
    }
    out.reverse();
    out
}

/// Immediate dominators by block (Cooper, Harvey, Kennedy: "A Simple, Fast Dominance Algorithm").
fn dominators(rpo: &[BlockId], preds: &[Vec<BlockId>], n: usize) -> Vec<Option<u32>> {
    let mut number = vec![u32::MAX; n];
    rpo.iter().enumerate().for_each(|(i, b)| number[b.0 as usize] = i as u32);
    let mut idom: Vec<Option<u32>> = vec![None; n];
    let Some(entry) = rpo.first() else { return idom };
    idom[entry.0 as usize] = Some(entry.0);
    let mut changed = true;
    while changed {
        changed = false;
        for b in &rpo[1..] {
            let known = preds[b.0 as usize].iter().map(|p| p.0).filter(|p| idom[*p as usize].is_some());
            let new = known.reduce(|mut x, mut y| {
                while x != y {
                    while number[x as usize] > number[y as usize] {
                        x = idom[x as usize].unwrap_or(x);
                    }
                    while number[y as usize] > number[x as usize] {
                        y = idom[y as usize].unwrap_or(y);
                    }
                }
                x
            });
            if new.is_some() && idom[b.0 as usize] != new {
                idom[b.0 as usize] = new;
                changed = true;
            }
        }
    }
    idom
}

fn dominates(idom: &[Option<u32>], a: u32, mut b: u32) -> bool {
    loop {
        if a == b {
            return true;
        }
        match idom[b as usize] {
            Some(up) if up != b => b = up,
            _ => return false,
        }
    }
}

/// The blocks of a loop.
struct Body {
    header: u32,
    blocks: Vec<bool>,
    irreducible: bool,
}

impl Body {
    /// Number of its blocks.
    fn size(&self) -> usize {
        self.blocks.iter().filter(|b| **b).count()
    }
}

/// Marks the blocks that are reachable from `work` through unmarked ones.
fn reach(marked: &mut [bool], mut work: Vec<u32>, next: impl Fn(u32) -> Vec<u32>) {
    while let Some(x) = work.pop() {
        if !std::mem::replace(&mut marked[x as usize], true) {
            work.extend(next(x));
        }
    }
}

/// Adds the blocks of a loop that control enters at several places: those that its header reaches and that reach the header,
/// without blocks that come before it. Lanes may wait at any of them, so nothing that follows may begin before all have left.
fn add_irreducible_body(body: &mut Body, succs: &[Vec<BlockId>], preds: &[Vec<BlockId>], number: &[u32]) {
    let header = body.header;
    let from_header = |edges: &[Vec<BlockId>]| {
        let mut marked = vec![false; number.len()];
        let within = |b: &BlockId| number[b.0 as usize] != u32::MAX && number[b.0 as usize] >= number[header as usize];
        reach(&mut marked, vec![header], |x| edges[x as usize].iter().filter(|b| within(b)).map(|b| b.0).collect());
        marked
    };
    for (block, (reached, reaching)) in from_header(succs).into_iter().zip(from_header(preds)).enumerate() {
        body.blocks[block] |= reached && reaching;
    }
}

/// Orders blocks so that loops are contiguous: a stable reordering of the reverse post-order in which, once a header is
/// placed, the blocks of its loop come before all others.
fn layout(
    rpo: &[BlockId],
    succs: &[Vec<BlockId>],
    preds: &[Vec<BlockId>],
    idom: &[Option<u32>],
) -> (Vec<BlockId>, Vec<Loop>, bool) {
    let (bodies, mut reducible) = loop_bodies(rpo, succs, preds, idom);
    let order = contiguous_order(rpo, &bodies);
    let mut position = vec![u32::MAX; succs.len()];
    order.iter().enumerate().for_each(|(i, b)| position[b.0 as usize] = i as u32);
    let mut loops = Vec::new();
    for body in &bodies {
        let places = order.iter().filter(|b| body.blocks[b.0 as usize]).map(|b| position[b.0 as usize]);
        let last = places.max().unwrap_or(0);
        let first = position[body.header as usize];
        if (last - first + 1) as usize != body.size() {
            reducible = false;
        }
        loops.push(Loop { first, last, irreducible: body.irreducible });
    }
    // Forward edges must lead forward in the new order, or sweeps would miss pending lanes.
    for b in &order {
        for s in &succs[b.0 as usize] {
            let (from, to) = (position[b.0 as usize], position[s.0 as usize]);
            let back = loops.iter().any(|l| l.first == to && l.holds(from));
            if to <= from && !back {
                reducible = false;
            }
        }
    }
    (order, loops, reducible)
}

/// The bodies of loops, merged by header, outer ones first; and whether all loops are natural.
fn loop_bodies(
    rpo: &[BlockId],
    succs: &[Vec<BlockId>],
    preds: &[Vec<BlockId>],
    idom: &[Option<u32>],
) -> (Vec<Body>, bool) {
    let n = succs.len();
    let mut number = vec![u32::MAX; n];
    rpo.iter().enumerate().for_each(|(i, b)| number[b.0 as usize] = i as u32);
    let mut reducible = true;
    let mut bodies: Vec<Body> = Vec::new();
    for b in rpo {
        for s in &succs[b.0 as usize] {
            if number[s.0 as usize] > number[b.0 as usize] {
                continue;
            }
            let natural = dominates(idom, s.0, b.0);
            reducible &= natural;
            let at = bodies.iter().position(|body| body.header == s.0).unwrap_or_else(|| {
                let mut blocks = vec![false; n];
                blocks[s.0 as usize] = true;
                bodies.push(Body { header: s.0, blocks, irreducible: false });
                bodies.len() - 1
            });
            let body = &mut bodies[at];
            if natural {
                reach(&mut body.blocks, vec![b.0], |x| preds[x as usize].iter().map(|p| p.0).collect());
            } else if !std::mem::replace(&mut body.irreducible, true) {
                add_irreducible_body(body, succs, preds, &number);
            }
        }
    }
    bodies.sort_by_key(|body| (std::cmp::Reverse(body.size()), number[body.header as usize]));
    (bodies, reducible)
}

/// Moves the blocks of each loop behind its header, outer loops first.
fn contiguous_order(rpo: &[BlockId], bodies: &[Body]) -> Vec<BlockId> {
    let mut order: Vec<BlockId> = rpo.to_vec();
    for body in bodies {
        let Some(at) = order.iter().position(|b| b.0 == body.header) else { continue };
        let (inside, outside): (Vec<BlockId>, Vec<BlockId>) =
            order[at..].iter().partition(|b| body.blocks[b.0 as usize]);
        order.truncate(at);
        order.extend(inside);
        order.extend(outside);
    }
    order
}

/// Blocks where paths end: those without successors, and then, for blocks from which none of them is reached (endless loops, or
/// loops left by skipped edges only), the last such block in layout order, until every block reaches one.
fn ends(succs: &[Vec<BlockId>], preds: &[Vec<BlockId>], order: &[BlockId]) -> Vec<BlockId> {
    let mut ends = Vec::new();
    let mut reaches = vec![false; succs.len()];
    let add = |b: BlockId, ends: &mut Vec<BlockId>, reaches: &mut Vec<bool>| {
        ends.push(b);
        let mut work = vec![b];
        while let Some(x) = work.pop() {
            if !std::mem::replace(&mut reaches[x.0 as usize], true) {
                work.extend(preds[x.0 as usize].iter().copied());
            }
        }
    };
    for b in order.iter().filter(|b| succs[b.0 as usize].is_empty()) {
        add(*b, &mut ends, &mut reaches);
    }
    for b in order.iter().rev() {
        if !reaches[b.0 as usize] {
            add(*b, &mut ends, &mut reaches);
        }
    }
    ends
}

fn post_dominators(succs: &[Vec<BlockId>], preds: &[Vec<BlockId>], order: &[BlockId]) -> Vec<Option<BlockId>> {
    // Dominators of the reversed graph with a virtual end node `n`.
    let n = succs.len();
    let mut reversed: Vec<Vec<BlockId>> = preds.to_vec();
    let ends = ends(succs, preds, order);
    reversed.push(ends.clone());
    let mut forward: Vec<Vec<BlockId>> = succs.to_vec();
    ends.iter().for_each(|e| forward[e.0 as usize].push(BlockId(n as u32)));
    forward.push(Vec::new());
    // Number from the virtual end: a reverse post-order of the reversed graph.
    let mut seen = vec![false; n + 1];
    let mut rpo = Vec::new();
    let mut stack = vec![(n, 0usize)];
    seen[n] = true;
    while let Some((b, next)) = stack.last_mut() {
        if *next < reversed[*b].len() {
            let s = reversed[*b][*next].0 as usize;
            *next += 1;
            if !seen[s] {
                seen[s] = true;
                stack.push((s, 0));
            }
        } else {
            rpo.push(BlockId(*b as u32));
            stack.pop();
        }
    }
    rpo.reverse();
    let idom = dominators(&rpo, &forward, n + 1);
    (0..n).map(|b| idom[b].filter(|d| *d != n as u32 && *d != b as u32).map(BlockId)).collect()
}
