//! Control-flow graphs of any shape: loops that share a header, loops with several exits or several back edges, branches into the middle
//! of a loop, tables with cases that fall through or repeat a loop, threads that end in the middle.
//!
//! The blocks of a graph stand in order, and each may go to any block of its part. A part begins at a block that *gathers*: all lanes of
//! the mask, or all threads of the CTA, come there equally often, so it may hold warp operations or barriers, and from there all may go
//! together to any block of the graph, also into the middle of a part. Each thread leaves a part after a number of turns: edges that lead
//! back count as turns and are closed when these are spent, so blocks have no other edge to the end, which would be every block's
//! post-dominator then.

use super::{
    straight,
    text::Writer,
    tree::{At, Node, less, nodes},
};
use crate::random::Random;

/// A graph.
#[derive(Clone, Debug)]
pub struct Graph {
    /// Its blocks, the first of which it begins with; it ends behind the last.
    pub blocks: Vec<Block>,
    /// Edges back that a thread takes in a part.
    pub turns: usize,
    /// Edges back that all take together.
    pub rounds: usize,
    /// All threads of the CTA gather, not only those of a warp.
    pub cta: bool,
}

/// A block of a graph.
#[derive(Clone, Debug)]
pub struct Block {
    /// Begins a part: all come here equally often.
    pub gathers: bool,
    /// What it executes.
    pub body: Vec<Node>,
    /// Where it goes.
    pub edge: Edge,
}

/// Where a block goes, by the numbers of blocks; [`Graph::goal`] makes them valid.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Edge {
    /// To the next block.
    Next,
    /// To a later block.
    Jump(usize),
    /// To a block if `test` sets the predicate `%q` of the graph's depth, else to the next one.
    Branch { test: Vec<String>, unless: bool, to: usize },
    /// The same, but all that gather decide alike.
    Together { test: Vec<String>, to: usize },
    /// A `brx.idx`; `select` sets `%n` of the depth to the number of a case.
    Table { select: Vec<String>, to: Vec<usize> },
    /// Ends some threads, if `test` sets `%q9`.
    End { test: Vec<String>, how: &'static str },
}

impl Graph {
    /// Draws a graph for a place.
    pub(super) fn draw(r: &mut Random, at: At, size: usize) -> Graph {
        let count = 2 + r.below(6);
        let cta = at.cta && r.chance(60);
        let within = At { depth: at.depth + 1, top: false, ..at };
        let apart = At { cta: false, warp: false, ..within };
        let together = At { cta, warp: at.warp, leave: 0, ..within };
        let mut blocks = Vec::new();
        for i in 0..count {
            let gathers = at.warp && r.chance(30);
            // Some headers hold nothing else than a branch.
            let size = if r.chance(30) { None } else { Some(1 + size.min(2) * r.below(2)) };
            let body = size.map_or_else(Vec::new, |size| nodes(r, if gathers { together } else { apart }, size));
            let to = |r: &mut Random| if r.chance(55) { r.below(i + 1) } else { i + 1 + r.below(count - i) };
            let edge = match r.below(20) {
                _ if gathers && r.chance(70) => Edge::Together { test: agreed(r, at.depth, cta), to: to(r) },
                0..3 => Edge::Next,
                3 => Edge::Jump(to(r)),
                4..7 => {
                    let cases = 2 + r.below(4);
                    Edge::Table {
                        select: straight::select(r, at.depth, cases),
                        to: (0..cases).map(|_| to(r)).collect(),
                    }
                }
                7 if at.top => Edge::End { test: straight::rare(r), how: r.pick(&["exit", "ret"]) },
                _ => Edge::Branch { test: parting(r, at.depth), unless: r.chance(20), to: to(r) },
            };
            blocks.push(Block { gathers, body, edge });
        }
        Graph { blocks, turns: 2 + r.below(6), rounds: 1 + r.below(4), cta }
    }

    /// Smaller variants.
    pub(super) fn smaller(&self) -> Vec<Graph> {
        let mut out = Vec::new();
        for i in 0..self.blocks.len() {
            let mut less = self.clone();
            less.blocks.remove(i);
            let later = |to: &mut usize| *to -= usize::from(*to > i);
            for block in &mut less.blocks {
                match &mut block.edge {
                    Edge::Jump(to) | Edge::Branch { to, .. } | Edge::Together { to, .. } => later(to),
                    Edge::Table { to, .. } => to.iter_mut().for_each(later),
                    Edge::Next | Edge::End { .. } => {}
                }
            }
            out.push(less);
        }
        for (i, block) in self.blocks.iter().enumerate() {
            let changed = |change: &dyn Fn(&mut Block)| {
                let mut g = self.clone();
                change(&mut g.blocks[i]);
                g
            };
            for body in less(&block.body) {
                out.push(changed(&|b| b.body.clone_from(&body)));
            }
            if !matches!(block.edge, Edge::Next) {
                out.push(changed(&|b| b.edge = Edge::Next));
            }
        }
        for (turns, rounds) in [(1, self.rounds), (self.turns, 1), (self.turns / 2, self.rounds)] {
            if (turns, rounds) != (self.turns, self.rounds) && turns > 0 {
                out.push(Graph { turns, rounds, ..self.clone() });
            }
        }
        out
    }

    /// The first block of a part that threads may go to on their own, and the block behind the part.
    fn part(&self, block: usize) -> (usize, usize) {
        let first = (0..=block).rev().find(|b| self.blocks[*b].gathers).map_or(0, |b| b + 1);
        let behind = (block + 1..self.blocks.len()).find(|b| self.blocks[*b].gathers);
        (first, behind.unwrap_or(self.blocks.len()))
    }

    /// Where a thread on its own goes from a block.
    fn goal(&self, block: usize, to: usize) -> usize {
        let (first, behind) = self.part(block);
        to.clamp(first.min(behind), behind)
    }

    /// Some threads may end here.
    pub(super) fn ends(&self) -> bool {
        self.blocks.iter().any(|b| matches!(b.edge, Edge::End { .. }))
    }

    /// Its nodes need the mask of active lanes.
    pub(super) fn counted(&self, nodes: impl Fn(&[Node]) -> bool) -> bool {
        let votes = |e: &Edge| match e {
            Edge::Together { test, .. } => test.iter().any(|l| l.contains("%m")),
            _ => false,
        };
        self.ends() || self.blocks.iter().any(|b| votes(&b.edge) || nodes(&b.body))
    }
}

/// A condition that parts the lanes, and that changes with the turns.
fn parting(r: &mut Random, depth: usize) -> Vec<String> {
    match r.below(10) {
        0..3 => vec![
            format!("and.b32 %x0, %lane, {};", r.pick(&[1, 3, 5, 7])),
            format!("setp.{}.u32 %q{depth}, %l{depth}, %x0;", r.pick(&["lt", "le", "ge", "ne"])),
        ],
        3..5 => vec![
            format!("xor.b32 %x0, %l{depth}, %v{};", r.below(8)),
            format!("and.b32 %x0, %x0, {};", r.pick(&[1, 3, 7])),
            format!("setp.{}.u32 %q{depth}, %x0, {};", r.pick(&["lt", "eq", "gt"]), r.below(3)),
        ],
        5 => vec![
            format!("add.u32 %x0, %lin, %k{depth};"),
            format!("and.b32 %x0, %x0, {};", r.pick(&[1, 3, 6])),
            format!("setp.ne.u32 %q{depth}, %x0, {};", r.below(3)),
        ],
        _ => straight::test(r, depth, false),
    }
}

/// A condition that is the same in all lanes of `%m` of the next depth, or in all threads of the CTA.
fn agreed(r: &mut Random, depth: usize, cta: bool) -> Vec<String> {
    let m = format!("%m{}", depth + 1);
    let op = r.pick(&["lt", "ne", "eq", "ge"]);
    let test = |out: &mut Vec<String>, r: &mut Random| {
        out.push(format!("and.b32 %x0, %x0, {};", r.pick(&[1, 3, 7])));
        out.push(format!("setp.{op}.u32 %q{depth}, %x0, {};", r.below(3)));
    };
    let mut out = Vec::new();
    match if cta { 0 } else { r.below(4) } {
        0 => {
            out.push(format!("add.u32 %x0, %u{}, %k{depth};", r.below(4)));
            test(&mut out, r);
        }
        1 => {
            out.push(format!("vote.sync.ballot.b32 %x0, %p{}, {m};", r.below(4)));
            out.push("popc.b32 %x0, %x0;".into());
            test(&mut out, r);
        }
        2 => {
            out.push(format!("redux.sync.{}.u32 %x0, %v{}, {m};", r.pick(&["min", "add"]), r.below(8)));
            out.push(format!("add.u32 %x0, %x0, %k{depth};"));
            test(&mut out, r);
        }
        _ => out.push(format!("vote.sync.{}.pred %q{depth}, %p{}, {m};", r.pick(&["any", "all"]), r.below(4))),
    }
    out
}

impl Writer {
    /// Emits a graph. `%l` of the depth counts the turns of the thread in a part, `%k` those of all.
    pub(super) fn graph(&mut self, g: &Graph, counted: bool, depth: usize) {
        let inner = depth + 1;
        let labels: Vec<String> = (0..=g.blocks.len()).map(|_| self.label()).collect();
        self.line(&format!("mov.u32 %l{depth}, 0; mov.u32 %k{depth}, 0;"));
        if counted {
            self.line(&format!("mov.u32 %m{inner}, %m{depth};"));
        }
        for (i, block) in g.blocks.iter().enumerate() {
            self.set(&labels[i]);
            if block.gathers {
                self.line(&format!("mov.u32 %l{depth}, 0;"));
                if g.ends() {
                    self.remaining(inner, inner);
                }
            }
            self.nodes(&block.body, inner);
            self.edge(g, i, &labels, depth);
        }
        self.set(&labels[g.blocks.len()]);
        if g.ends() {
            self.remaining(inner, depth);
        }
    }

    /// Sets the mask of a depth to the lanes of another one that have not ended.
    fn remaining(&mut self, from: usize, to: usize) {
        self.line("setp.eq.u32 %q9, 0, 0;");
        self.line(&format!("vote.sync.ballot.b32 %m{to}, %q9, %m{from};"));
    }

    fn edge(&mut self, g: &Graph, i: usize, labels: &[String], depth: usize) {
        let once_more = |w: &mut Writer, count: &str, most: usize| {
            w.line(&format!("add.u32 %{count}{depth}, %{count}{depth}, 1;"));
            w.line(&format!("setp.le.and.u32 %q{depth}, %{count}{depth}, {most}, %q{depth};"));
        };
        match &g.blocks[i].edge {
            Edge::Next => {}
            Edge::Jump(to) => {
                let to = g.goal(i, (*to).max(i + 1));
                self.line(&format!("bra {};", labels[to]));
            }
            Edge::Branch { test, unless, to } => {
                let to = g.goal(i, *to);
                self.all(test);
                if to <= i {
                    once_more(self, "l", g.turns);
                }
                let not = if *unless && to > i { "!" } else { "" };
                self.line(&format!("@{not}%q{depth} bra {};", labels[to]));
            }
            Edge::Together { test, to } => {
                self.all(test);
                if *to <= i {
                    once_more(self, "k", g.rounds);
                }
                self.line(&format!("@%q{depth} bra {};", labels[(*to).min(g.blocks.len())]));
            }
            Edge::Table { select, to } => {
                let mut to: Vec<usize> = to.iter().map(|t| g.goal(i, *t)).collect();
                to[0] = g.goal(i, to[0].max(i + 1));
                self.all(select);
                if to.iter().any(|t| *t <= i) {
                    self.line(&format!("add.u32 %l{depth}, %l{depth}, 1;"));
                    self.line(&format!("setp.gt.u32 %q{depth}, %l{depth}, {};", g.turns));
                    self.line(&format!("@%q{depth} mov.u32 %n{depth}, 0;"));
                }
                let table = self.label();
                let to: Vec<&str> = to.iter().map(|t| labels[*t].as_str()).collect();
                self.line(&format!("{table}: .branchtargets {};", to.join(", ")));
                self.line(&format!("brx.idx %n{depth}, {table};"));
            }
            Edge::End { test, how } => {
                self.all(test);
                self.line(&format!("@%q9 {how};"));
            }
        }
    }
}
