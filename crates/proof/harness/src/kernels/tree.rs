//! The trees of random kernels, and how they are drawn.

use super::{BLOCKS, GRIDS, graph::Graph, straight};
use crate::random::Random;

/// A node of a function's body.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Node {
    /// Pieces of straight-line code.
    Straight(Vec<String>),
    /// A branch. `test` sets the predicate `%q` of its depth.
    If { test: Vec<String>, then: Vec<Node>, other: Vec<Node> },
    /// A loop. `bound` sets `%n` of its depth, the trip count.
    Loop { bound: Vec<String>, tail: bool, body: Vec<Node> },
    /// Leaves a loop, or continues with its next iteration, if `test` sets `%q9`: the innermost one, or one that many further out.
    Leave { test: Vec<String>, next: bool, out: usize },
    /// A `brx.idx`; `select` sets `%n` of its depth to the number of a case. A case falls through to the next one if
    /// its flag is set.
    Switch { select: Vec<String>, cases: Vec<(Vec<Node>, bool)> },
    /// Irreducible control flow: blocks that branch to each other depending on their values, until a budget is spent.
    Tangle { blocks: Vec<(Vec<Node>, Vec<String>, usize)> },
    /// Control flow of any shape.
    Graph(Graph),
    /// Exits some threads, if `test` sets `%q9`; the others vote anew.
    Exit { test: Vec<String> },
    /// Returns from a device function, if `test` sets `%q9`.
    Return { test: Vec<String> },
    /// A call of a device function, or of one of two by address, depending on the predicate `%q9` that the code in `other` sets. Threads
    /// call only if `when` sets `%q9`.
    Call { callee: usize, other: Option<(usize, Vec<String>)>, when: Option<Vec<String>> },
}

/// A device function; all have the same signature.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its body.
    pub body: Vec<Node>,
    /// Calls itself up to a depth.
    pub recursive: bool,
}

/// A module with the kernel `k`.
#[derive(Clone, Debug)]
pub struct Module {
    /// Device functions; each may call those before it.
    pub functions: Vec<Function>,
    /// The kernel's body.
    pub kernel: Vec<Node>,
    /// The grid.
    pub grid: [u32; 3],
    /// The block.
    pub block: [u32; 3],
    /// Scalar arguments of the kernel.
    pub scalars: [u32; 2],
    /// All state of the kernel is in registers and shared memory, and it has a long loop, so that compiled code can take its CTAs over.
    pub movable: bool,
}

/// What is known at a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    /// Nesting of branches and loops.
    pub depth: usize,
    /// All threads of the CTA are here together.
    pub cta: bool,
    /// `%m` of the depth names the active lanes.
    pub warp: bool,
    /// Enclosing loops that may be left early.
    pub leave: usize,
    /// At the outermost level of the kernel.
    pub top: bool,
    /// Threads may return individually.
    pub returns: bool,
    /// Number of functions that may be called.
    pub callees: usize,
    /// All state is in registers and shared memory, so that compiled code can take the CTA over.
    pub movable: bool,
}

/// Which threads call a function together, which limits what it may do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Callers {
    /// Individual threads.
    Threads,
    /// All lanes of `%m`.
    Warps,
    /// All threads of the CTA.
    Ctas,
}

impl Callers {
    /// The callers of the function with this index.
    pub fn of(function: usize) -> Callers {
        [Callers::Threads, Callers::Warps, Callers::Ctas][function % 3]
    }
}

/// Lines of a module, if leaving out nodes of the kernel and functions suffices. An empty one takes 180.
const LINES: usize = 800;
/// Maximum nesting.
pub(super) const DEPTH: usize = 5;

impl Module {
    /// The module of a seed.
    pub fn new(seed: u64) -> Module {
        let mut random = Random::new(seed);
        let r = &mut random;
        let movable = r.chance(25);
        let count = if movable { 0 } else { r.below(5) };
        let functions = (0..count)
            .map(|i| {
                let callers = Callers::of(i);
                let (cta, warp) = (callers == Callers::Ctas, callers >= Callers::Warps);
                let at = At { depth: 0, cta, warp, leave: 0, top: false, returns: !warp, callees: i, movable };
                let size = 1 + r.below(2);
                Function { body: nodes(r, at, size), recursive: r.chance(25) }
            })
            .collect();
        let at = At { depth: 0, cta: true, warp: true, leave: 0, top: true, returns: false, callees: count, movable };
        let kernel = if movable {
            let mut kernel = nodes(r, at, 1);
            kernel.push(long_loop(r, at));
            kernel.extend(nodes(r, at, 1));
            kernel
        } else {
            let size = 2 + r.below(4);
            nodes(r, at, size)
        };
        let grid = r.pick(GRIDS);
        let scalars = [r.bits() as u32, r.below(9) as u32];
        let mut module = Module { functions, kernel, grid, block: r.pick(BLOCKS), scalars, movable };
        // Large modules take as long as many small ones, and show no more.
        while module.text().lines().count() > LINES && (module.kernel.len() > 1 || module.functions.len() > 1) {
            if module.kernel.len() < 2 || module.functions.len() > 1 && module.kernel.len() < 3 {
                module.functions.pop();
            } else {
                module.kernel.pop();
            }
        }
        module
    }

    /// Places where code can be planted: those at the outermost level of the kernel, and then those within its nodes and functions.
    pub fn places(&self) -> usize {
        let mut all = 0;
        self.clone().visit(&mut |body| all += body.len() + 1);
        all
    }

    /// Plants a node at one of these places.
    pub fn plant(&mut self, place: usize, node: Node) {
        let (mut left, mut node) = (place.min(self.places() - 1), Some(node));
        self.visit(&mut |body| match left.checked_sub(body.len() + 1) {
            Some(less) => left = less,
            None => body.splice(left..left, node.take()).for_each(drop),
        });
    }

    /// Visits the lists of nodes, the kernel's first.
    fn visit(&mut self, f: &mut impl FnMut(&mut Vec<Node>)) {
        f(&mut self.kernel);
        self.kernel.iter_mut().for_each(|node| within(node, f));
        for function in &mut self.functions {
            f(&mut function.body);
            function.body.iter_mut().for_each(|node| within(node, f));
        }
    }

    /// Smaller variants of the module.
    pub fn smaller(&self) -> Vec<Module> {
        let mut out: Vec<Module> =
            less(&self.kernel).into_iter().map(|kernel| Module { kernel, ..self.clone() }).collect();
        for i in 0..self.functions.len() {
            for body in less(&self.functions[i].body) {
                let mut m = self.clone();
                m.functions[i].body = body;
                out.push(m);
            }
        }
        if self.grid != [1; 3] {
            out.push(Module { grid: [1; 3], ..self.clone() });
        }
        out
    }
}

/// Visits the lists of nodes within a node.
fn within(node: &mut Node, f: &mut impl FnMut(&mut Vec<Node>)) {
    let lists: Vec<&mut Vec<Node>> = match node {
        Node::If { then, other, .. } => vec![then, other],
        Node::Loop { body, .. } => vec![body],
        Node::Switch { cases, .. } => cases.iter_mut().map(|(body, _)| body).collect(),
        Node::Tangle { blocks } => blocks.iter_mut().map(|(body, _, _)| body).collect(),
        Node::Graph(graph) => graph.blocks.iter_mut().map(|b| &mut b.body).collect(),
        Node::Straight(_) | Node::Leave { .. } | Node::Exit { .. } | Node::Return { .. } | Node::Call { .. } => {
            Vec::new()
        }
    };
    for list in lists {
        f(list);
        list.iter_mut().for_each(|node| within(node, f));
    }
}

/// Bodies with one node left out, replaced by its children, or made smaller; the largest reductions first.
pub(super) fn less(body: &[Node]) -> Vec<Vec<Node>> {
    let mut out = Vec::new();
    let replaced = |i: usize, with: Vec<Node>| [&body[..i], &with, &body[i + 1..]].concat();
    if body.len() > 3 {
        out.push(body[body.len() / 2..].to_vec());
        out.push(body[..body.len() / 2].to_vec());
    }
    for i in 0..body.len() {
        out.push(replaced(i, Vec::new()));
    }
    for (i, node) in body.iter().enumerate() {
        match node {
            Node::Straight(lines) if lines.len() > 1 => {
                for k in 0..lines.len() {
                    let mut fewer = lines.clone();
                    fewer.remove(k);
                    out.push(replaced(i, vec![Node::Straight(fewer)]));
                }
            }
            Node::If { test, then, other } => {
                for then in less(then) {
                    out.push(replaced(i, vec![Node::If { test: test.clone(), then, other: other.clone() }]));
                }
                for other in less(other) {
                    out.push(replaced(i, vec![Node::If { test: test.clone(), then: then.clone(), other }]));
                }
            }
            Node::Loop { bound, tail, body } => {
                for body in less(body) {
                    out.push(replaced(i, vec![Node::Loop { bound: bound.clone(), tail: *tail, body }]));
                }
            }
            Node::Switch { select, cases } => {
                for k in 0..cases.len() {
                    for body in less(&cases[k].0) {
                        let mut cases = cases.clone();
                        cases[k].0 = body;
                        out.push(replaced(i, vec![Node::Switch { select: select.clone(), cases }]));
                    }
                }
            }
            Node::Tangle { blocks } => {
                for k in 0..blocks.len() {
                    for body in less(&blocks[k].0) {
                        let mut blocks = blocks.clone();
                        blocks[k].0 = body;
                        out.push(replaced(i, vec![Node::Tangle { blocks }]));
                    }
                }
            }
            Node::Graph(graph) => {
                out.extend(graph.smaller().into_iter().map(|g| replaced(i, vec![Node::Graph(g)])));
            }
            Node::Call { callee, other: Some(_), .. } | Node::Call { callee, when: Some(_), .. } => {
                out.push(replaced(i, vec![Node::Call { callee: *callee, other: None, when: None }]));
            }
            _ => {}
        }
    }
    out
}

pub(super) fn nodes(r: &mut Random, at: At, size: usize) -> Vec<Node> {
    (0..size.max(1)).map(|_| node(r, at, size)).collect()
}

fn node(r: &mut Random, at: At, size: usize) -> Node {
    let within = At { depth: at.depth + 1, top: false, ..at };
    let smaller = (size * 2 / 3).min(3);
    if at.depth >= DEPTH || size <= 1 {
        return Node::Straight(straight::lines(r, at));
    }
    match r.below(20) {
        0..4 => {
            // With a uniform condition, or not.
            let cta = at.cta && r.chance(40);
            let within = At { cta, ..within };
            let then = nodes(r, within, smaller);
            let other = if r.chance(50) { nodes(r, within, smaller) } else { Vec::new() };
            Node::If { test: straight::test(r, at.depth, cta), then, other }
        }
        4..7 => {
            let cta = at.cta && r.chance(60);
            let tail = cta && r.chance(50);
            // The loop header cannot count lanes that leave early.
            let leave = match at.leave {
                0 => usize::from(!cta && r.chance(40)),
                n => n + 1,
            };
            let within = At { cta, leave, warp: at.warp && leave == 0, ..within };
            Node::Loop { bound: straight::bound(r, at.depth, cta), tail, body: nodes(r, within, smaller) }
        }
        7 => {
            let count = 2 + r.below(5);
            let within = At { cta: false, warp: false, ..within };
            let cases = (0..count).map(|_| (nodes(r, within, smaller), r.chance(30))).collect();
            Node::Switch { select: straight::select(r, at.depth, count), cases }
        }
        8 => {
            let count = 2 + r.below(4);
            let within = At { cta: false, warp: false, leave: 0, ..within };
            let blocks = (0..count)
                .map(|_| (nodes(r, within, smaller.min(2)), straight::test(r, at.depth, false), r.below(count)))
                .collect();
            Node::Tangle { blocks }
        }
        9..11 if at.leave > 0 => {
            Node::Leave { test: straight::test(r, 9, false), next: r.chance(50), out: r.below(at.leave) }
        }
        11 if at.top => Node::Exit { test: straight::rare(r) },
        12..15 if at.callees > 0 => {
            let here = match (at.cta, at.warp) {
                (true, _) => Callers::Ctas,
                (false, true) => Callers::Warps,
                (false, false) => Callers::Threads,
            };
            let known = |most: Callers| (0..at.callees).filter(|f| Callers::of(*f) <= most).collect::<Vec<_>>();
            let callee = r.pick(&known(here));
            // The choice between two functions may vary.
            let other = (Callers::of(callee) < Callers::Ctas && r.chance(30))
                .then(|| (r.pick(&known(here.min(Callers::Warps))), straight::test(r, 9, false)));
            let parts = Callers::of(callee) < Callers::Ctas && other.is_none() && r.chance(30);
            Node::Call { callee, other, when: parts.then(|| straight::test(r, 9, false)) }
        }
        15 if at.returns => Node::Return { test: straight::rare(r) },
        16..19 => Node::Graph(Graph::draw(r, at, smaller)),
        _ => Node::Straight(straight::lines(r, at)),
    }
}

/// A loop that takes so long on the reference engine that compiled code can take it over.
fn long_loop(r: &mut Random, at: At) -> Node {
    let cta = r.chance(60);
    let leave = usize::from(!cta && r.chance(40));
    let within = At { depth: at.depth + 1, top: false, cta, leave, warp: at.warp && leave == 0, ..at };
    let turns = 200 + r.below(300);
    let bound = match cta {
        true => vec![format!("and.b32 %x0, %u1, 63;"), format!("add.u32 %n{}, %x0, {turns};", at.depth)],
        false => vec![format!("and.b32 %x0, %v{}, 63;", r.below(8)), format!("add.u32 %n{}, %x0, {turns};", at.depth)],
    };
    let body = (0..1 + r.below(3)).map(|_| node(r, within, 2)).collect();
    Node::Loop { bound, tail: cta && r.chance(50), body }
}
