//! Graphs (CUDA Driver API, "Graph Management"): work and what it waits for, made node by node or captured from streams, and
//! run as one.

mod capture;
mod functions;
mod object;

pub use capture::{Capture, CapturedAt};
pub use functions::ENTRIES;
pub use object::{ENTRIES as OBJECT_ENTRIES, UserObject};

use crate::{
    code::{Code, Outcome},
    context::Context,
    driver::driver,
    handle::Handle,
    work::Work,
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// A graph: its nodes in the order in which they were added.
#[derive(Default)]
pub struct Graph {
    nodes: Mutex<Vec<Handle<NodeRef>>>,
    /// Things of the program that must live as long.
    kept: Mutex<object::Kept>,
}

/// A node.
pub struct NodeRef {
    /// The graph that it belongs to.
    graph: Arc<Graph>,
    state: Mutex<Node>,
}

#[derive(Clone)]
struct Node {
    work: Work,
    after: Vec<Handle<NodeRef>>,
}

impl NodeRef {
    fn state(&self) -> MutexGuard<'_, Node> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Graph {
    fn nodes(&self) -> MutexGuard<'_, Vec<Handle<NodeRef>>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kept(&self) -> object::Kept {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Adds a node that waits for others of the same graph.
    pub fn add(self: &Arc<Graph>, work: Work, after: Vec<Handle<NodeRef>>) -> Result<Handle<NodeRef>, Code> {
        let driver = driver()?;
        for handle in &after {
            if !Arc::ptr_eq(&driver.nodes.get(*handle)?.graph, self) {
                return Err(Code::INVALID_VALUE);
            }
        }
        let node = driver.nodes.add(NodeRef { graph: self.clone(), state: Mutex::new(Node { work, after }) });
        self.nodes().push(node);
        Ok(node)
    }

    /// The nodes in an order in which each comes after those that it waits for; an error for a circle.
    fn sorted(&self) -> Result<Vec<(Handle<NodeRef>, Node)>, Code> {
        let driver = driver()?;
        let nodes = self.nodes().clone();
        let place: HashMap<usize, usize> = nodes.iter().enumerate().map(|(i, n)| (n.number(), i)).collect();
        let states =
            nodes.iter().map(|n| Ok(driver.nodes.get(*n)?.state().clone())).collect::<Result<Vec<_>, Code>>()?;
        let mut waits: Vec<usize> = states.iter().map(|s| s.after.len()).collect();
        let mut dependents = vec![Vec::new(); nodes.len()];
        for (i, state) in states.iter().enumerate() {
            for before in &state.after {
                dependents[*place.get(&before.number()).ok_or(Code::INVALID_VALUE)?].push(i);
            }
        }
        let mut ready: std::collections::BTreeSet<usize> = (0..nodes.len()).filter(|i| waits[*i] == 0).collect();
        let mut order = Vec::new();
        while let Some(next) = ready.pop_first() {
            order.push((nodes[next], states[next].clone()));
            for dependent in &dependents[next] {
                waits[*dependent] -= 1;
                if waits[*dependent] == 0 {
                    ready.insert(*dependent);
                }
            }
        }
        if order.len() == nodes.len() { Ok(order) } else { Err(Code::INVALID_VALUE) }
    }

    /// A copy with nodes of its own.
    fn copy(&self) -> Result<Arc<Graph>, Code> {
        let copy = Arc::new(Graph { kept: Mutex::new(self.kept()), ..Graph::default() });
        let mut new: HashMap<usize, Handle<NodeRef>> = HashMap::new();
        for (old, node) in self.sorted()? {
            let after = node.after.iter().filter_map(|a| new.get(&a.number()).copied()).collect();
            new.insert(old.number(), copy.add(node.work, after)?);
        }
        Ok(copy)
    }
}

/// A graph ready to run: its work in order. Steps are known by the node that they come from.
pub struct Exec {
    steps: Mutex<Vec<Step>>,
    /// Things of the program that must live as long.
    _kept: object::Kept,
}

#[derive(Clone)]
struct Step {
    node: Handle<NodeRef>,
    work: Work,
    enabled: bool,
}

impl Exec {
    /// What a graph looks like now.
    pub fn new(graph: &Graph) -> Result<Exec, Code> {
        let steps = graph.sorted()?.into_iter().map(|(node, Node { work, .. })| Step { node, work, enabled: true });
        Ok(Exec { steps: Mutex::new(steps.collect()), _kept: graph.kept() })
    }

    fn steps(&self) -> MutexGuard<'_, Vec<Step>> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs everything that is enabled.
    pub fn run(&self, context: &Arc<Context>) -> Outcome {
        let steps = self.steps().clone();
        steps.iter().filter(|s| s.enabled).try_for_each(|step| {
            step.work.run(context)?;
            context.check()
        })
    }

    fn with_step(&self, node: Handle<NodeRef>, change: impl FnOnce(&mut Step)) -> Outcome {
        self.steps().iter_mut().find(|s| s.node == node).map(change).ok_or(Code::INVALID_VALUE)
    }

    /// Takes over the work of a graph of the same shape.
    fn update(&self, graph: &Graph) -> Outcome {
        let new = graph.sorted()?;
        let mut steps = self.steps();
        let same = new.len() == steps.len()
            && new
                .iter()
                .zip(steps.iter())
                .all(|((_, n), s)| std::mem::discriminant(&n.work) == std::mem::discriminant(&s.work));
        if !same {
            return Err(Code::GRAPH_EXEC_UPDATE_FAILURE);
        }
        for (step, (_, node)) in steps.iter_mut().zip(new) {
            step.work = node.work;
        }
        Ok(())
    }
}
