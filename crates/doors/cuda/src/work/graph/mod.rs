//! Graphs (CUDA Driver API, "Graph Management"): work with its dependencies, built node by node or captured from
//! streams, and run as a whole.

pub mod capture;
mod conditional;
mod device;
mod dot;
mod functions;
mod memory;
mod nodes;
mod object;
mod params;
mod update;

pub use capture::{Capture, CapturedAt};
pub use conditional::{Branch, Condition, Conditional};
pub use device::{current, launch_later};
pub use memory::{GraphMemories, GraphMemory};
pub use object::UserObject;
pub use update::change;

/// The API functions of this folder.
pub const LISTS: [&[crate::api::Entry]; 6] =
    [conditional::ENTRIES, dot::ENTRIES, functions::ENTRIES, memory::ENTRIES, nodes::ENTRIES, object::ENTRIES];

use crate::{
    api::because,
    checks::order,
    code::{Code, Outcome},
    context::Context,
    driver::{self, Driver, driver},
    handle::Handle,
    work::{Work, event::Event},
};
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    sync::{Arc, Weak, atomic::AtomicBool},
};

/// A graph: its nodes in the order of their creation.
#[derive(Default)]
pub struct Graph {
    nodes: Mutex<Vec<Handle<NodeRef>>>,
    /// User objects that it retains.
    kept: Mutex<object::Kept>,
    /// Its last instantiation, if there is one at a time.
    instance: Mutex<Weak<Exec>>,
}

/// A node of a graph.
pub struct NodeRef {
    /// Its graph.
    graph: Arc<Graph>,
    /// In a cloned graph: the node that it was copied from.
    original: Option<Handle<NodeRef>>,
    state: Mutex<Node>,
    /// A kernel's arguments in the form returned to C, created on request.
    arguments: Mutex<Option<params::Arguments>>,
    /// Device code may change it.
    updatable: AtomicBool,
}

#[derive(Clone)]
struct Node {
    work: Work,
    after: Vec<Handle<NodeRef>>,
}

impl Graph {
    fn kept(&self) -> object::Kept {
        self.kept.lock().clone()
    }

    /// Adds a node with dependencies in the same graph.
    pub fn add(self: &Arc<Graph>, work: Work, after: Vec<Handle<NodeRef>>) -> Result<Handle<NodeRef>, Code> {
        self.add_copy(work, after, None)
    }

    fn add_copy(
        self: &Arc<Graph>,
        work: Work,
        after: Vec<Handle<NodeRef>>,
        original: Option<Handle<NodeRef>>,
    ) -> Result<Handle<NodeRef>, Code> {
        let driver = driver()?;
        for handle in &after {
            if !Arc::ptr_eq(&driver.nodes.get(*handle)?.graph, self) {
                return Err(Code::INVALID_VALUE);
            }
        }
        let state = Mutex::new(Node { work, after });
        let (graph, arguments, updatable) = (self.clone(), Mutex::default(), AtomicBool::default());
        let node = driver.nodes.add(NodeRef { graph, original, state, arguments, updatable });
        self.nodes.lock().push(node);
        Ok(node)
    }

    /// The nodes in topological order; an error if there is a cycle.
    fn sorted(&self) -> Result<Vec<(Handle<NodeRef>, Node)>, Code> {
        let driver = driver()?;
        let nodes = self.nodes.lock().clone();
        let place: HashMap<usize, usize> = nodes.iter().enumerate().map(|(i, n)| (n.number(), i)).collect();
        let states =
            nodes.iter().map(|n| Ok(driver.nodes.get(*n)?.state.lock().clone())).collect::<Result<Vec<_>, Code>>()?;
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

    /// Whether it has nodes that allocate or free memory, itself or in child graphs.
    fn manages_memory(&self) -> Result<bool, Code> {
        self.has_node(&|node| matches!(node.state.lock().work, Work::Alloc(_) | Work::Free(_)))
    }

    /// Refuses operations that graphs with memory nodes do not support: cloning, and removing nodes and edges (`cuGraphAddMemAllocNode`).
    fn check_without_memory(&self) -> Outcome {
        if self.manages_memory()? {
            because(|| {
                "a graph with memory allocation or free nodes can neither be cloned nor lose nodes or edges".into()
            });
            return Err(Code::INVALID_VALUE);
        }
        Ok(())
    }

    /// Instantiates the graph; an error if another instantiation exists and it has nodes that manage memory or that device code may change.
    fn instantiate(&self, flags: u64) -> Result<Arc<Exec>, Code> {
        if !self.manages_memory()? && !self.is_updatable()? {
            return Exec::new(self, flags);
        }
        let driver = driver()?;
        let mut instance = self.instance.lock();
        // A launch may hold what the program has destroyed.
        if instance.upgrade().is_some_and(|exec| driver.execs.find(|e| std::ptr::eq(e, &*exec)).is_some()) {
            because(|| {
                "a graph with memory allocation, free or device-updatable nodes has one instantiation at a time".into()
            });
            return Err(Code::INVALID_VALUE);
        }
        let made = Exec::new(self, flags)?;
        *instance = Arc::downgrade(&made);
        Ok(made)
    }

    /// Clones the graph with new nodes.
    fn copy(&self) -> Result<Arc<Graph>, Code> {
        self.check_without_memory()?;
        let copy = Arc::new(Graph { kept: Mutex::new(self.kept()), ..Graph::default() });
        let mut new: HashMap<usize, Handle<NodeRef>> = HashMap::new();
        for (old, node) in self.sorted()? {
            let after = node.after.iter().filter_map(|a| new.get(&a.number()).copied()).collect();
            new.insert(old.number(), copy.add_copy(node.work.copy()?, after, Some(old))?);
        }
        Ok(copy)
    }

    /// The copy of a node, in this graph or a child graph.
    fn clone_of(&self, original: Handle<NodeRef>) -> Result<Option<Handle<NodeRef>>, Code> {
        let driver = driver()?;
        for handle in self.nodes.lock().clone() {
            let node = driver.nodes.get(handle)?;
            if node.original == Some(original) {
                return Ok(Some(handle));
            }
            let inner = match &node.state.lock().work {
                Work::Inner(inner) => vec![inner.clone()],
                Work::Conditional(conditional) => conditional.bodies.clone(),
                _ => Vec::new(),
            };
            for graph in inner {
                if let Some(found) = graph.graph.clone_of(original)? {
                    return Ok(Some(found));
                }
            }
        }
        Ok(None)
    }

    /// Removes the nodes from the driver's table.
    fn forget_nodes(&self, driver: &Driver) {
        let nodes = std::mem::take(&mut *self.nodes.lock());
        nodes.into_iter().for_each(|node| drop(driver.nodes.remove(node))); // a node can be gone already
    }
}

/// A child graph, owned by a node of another graph.
pub struct Inner {
    /// Its handle.
    pub handle: Handle<Graph>,
    graph: Arc<Graph>,
}

impl Inner {
    fn new(graph: Arc<Graph>) -> Result<Arc<Inner>, Code> {
        Ok(Arc::new(Inner { handle: driver()?.graphs.add_arc(graph.clone()), graph }))
    }

    /// A child graph that is a copy of the program's graph.
    fn copied(of: Handle<Graph>) -> Result<Arc<Inner>, Code> {
        Inner::new(driver()?.graphs.get(of)?.copy()?)
    }

    /// A child graph that takes over the program's graph.
    fn adopt(handle: Handle<Graph>) -> Result<Arc<Inner>, Code> {
        Ok(Arc::new(Inner { handle, graph: driver()?.graphs.get(handle)? }))
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Ok(driver) = driver() {
            let _ = driver.graphs.remove(self.handle); // the program may have destroyed it
            self.graph.forget_nodes(driver);
        }
    }
}

impl Work {
    /// Copies the work for a cloned graph, with child graphs.
    fn copy(&self) -> Result<Work, Code> {
        Ok(match self {
            Work::Inner(inner) => Work::Inner(Inner::new(inner.graph.copy()?)?),
            Work::Conditional(conditional) => Work::Conditional(Arc::new(conditional.copy()?)),
            other => other.clone(),
        })
    }

    /// Instantiates child graphs.
    fn ready(self) -> Result<Work, Code> {
        Ok(match self {
            Work::Inner(inner) => Work::Graph(Exec::new(&inner.graph, 0)?),
            Work::Conditional(conditional) => Work::Branch(Arc::new(conditional.branch()?)),
            other => other,
        })
    }
}

/// `CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH`
const AUTO_FREE: u64 = 1;

/// An executable graph: its steps in order, identified by the nodes that they come from.
pub struct Exec {
    /// Instantiation flags.
    pub flags: u64,
    steps: Mutex<Vec<Step>>,
    /// User objects that it retains.
    _kept: object::Kept,
}

#[derive(Clone)]
struct Step {
    node: Handle<NodeRef>,
    work: Work,
    enabled: bool,
    /// Indices of the steps that it depends on.
    after: Vec<usize>,
}

impl Step {
    /// The nodes of a graph in topological order.
    fn of(graph: &Graph) -> Result<Vec<Step>, Code> {
        let sorted = graph.sorted()?;
        let place: HashMap<usize, usize> = sorted.iter().enumerate().map(|(i, (n, _))| (n.number(), i)).collect();
        let step = |(node, Node { work, after }): (Handle<NodeRef>, Node)| {
            let mut after: Vec<usize> = after.iter().filter_map(|n| place.get(&n.number()).copied()).collect();
            after.sort_unstable();
            Ok(Step { node, work: work.ready()?, enabled: true, after })
        };
        sorted.into_iter().map(step).collect()
    }

    /// The executable child graphs.
    fn within(&self) -> Vec<Arc<Exec>> {
        match &self.work {
            Work::Graph(exec) => vec![exec.clone()],
            Work::Branch(branch) => branch.bodies.clone(),
            _ => Vec::new(),
        }
    }
}

impl Exec {
    /// Instantiates a graph.
    pub fn new(graph: &Graph, flags: u64) -> Result<Arc<Exec>, Code> {
        let made = Arc::new(Exec { flags, steps: Mutex::new(Step::of(graph)?), _kept: graph.kept() });
        made.register()?;
        Ok(made)
    }

    /// A call launches it: it allocates and frees memory as far as later calls know.
    fn claim_memory(&self) -> Outcome {
        let work = self.memory_work();
        if self.flags & AUTO_FREE != 0 {
            work.iter().for_each(|step| {
                if let Work::Alloc(memory) = step {
                    memory.forget();
                }
            });
        }
        driver()?.graph_memories.claim(&work)
    }

    /// The steps that allocate or free memory, with those of child graphs, in order.
    fn memory_work(&self) -> Vec<Work> {
        let steps = self.steps.lock().clone();
        let work = steps.into_iter().filter(|step| step.enabled).flat_map(|step| match step.work {
            Work::Alloc(_) | Work::Free(_) => vec![step.work],
            Work::Graph(inner) => inner.memory_work(),
            _ => Vec::new(),
        });
        work.collect()
    }

    /// Resets the graph's conditions and runs it.
    fn launch(&self, context: &Arc<Context>) -> Outcome {
        self.reset(context)?;
        self.run(context)
    }

    fn reset(&self, context: &Arc<Context>) -> Outcome {
        let steps = self.steps.lock().clone();
        steps.iter().try_for_each(|step| match &step.work {
            Work::Branch(branch) => branch.reset(context),
            Work::Graph(inner) => inner.reset(context),
            _ => Ok(()),
        })
    }

    /// The events that its steps record, and those that they wait for.
    fn events(&self) -> (Vec<Arc<Event>>, Vec<Arc<Event>>) {
        let (mut recorded, mut awaited) = (Vec::new(), Vec::new());
        for step in self.steps.lock().iter().filter(|step| step.enabled) {
            match &step.work {
                Work::Record(event) => recorded.push(event.clone()),
                Work::Wait(event) => awaited.push(event.clone()),
                Work::Graph(inner) => {
                    let (more_recorded, more_awaited) = inner.events();
                    recorded.extend(more_recorded);
                    awaited.extend(more_awaited);
                }
                _ => {}
            }
        }
        (recorded, awaited)
    }

    /// Runs all enabled steps; kernels may change later ones.
    pub fn run(&self, context: &Arc<Context>) -> Outcome {
        let mut done = 0;
        let mut nodes = order::Nodes::default();
        loop {
            let step = self.steps.lock().get(done).cloned();
            let Some(Step { work, enabled, after, .. }) = step else { return Ok(()) };
            // A disabled node still orders its successors after its dependencies.
            let run = || if enabled { work.run(context) } else { Ok(()) };
            nodes.perform(&after, work.is_programmatic(), || work.name(), run)?;
            if enabled {
                context.failure().map_or(Ok(()), Err)?;
            }
            done += 1;
        }
    }

    /// Changes the step of a node, here or in a child graph.
    fn with_step(&self, node: Handle<NodeRef>, change: impl FnOnce(&mut Step)) -> Outcome {
        // Launches that are queued stay as they are.
        driver::current()?.settle();
        if let Some(step) = self.steps.lock().iter_mut().find(|s| s.node == node) {
            change(step);
            return Ok(());
        }
        let within: Vec<Arc<Exec>> = self.steps.lock().iter().flat_map(Step::within).collect();
        let holder = within.into_iter().find(|exec| exec.holds(node)).ok_or(Code::INVALID_VALUE)?;
        holder.with_step(node, change)
    }

    /// Whether a node has a step, here or in a child graph.
    fn holds(&self, node: Handle<NodeRef>) -> bool {
        let steps = self.steps.lock().clone();
        steps.iter().any(|s| s.node == node || s.within().iter().any(|exec| exec.holds(node)))
    }

    /// Takes over the work of a graph of the same topology; else returns what differs (`CUgraphExecUpdateResult`).
    fn update(&self, graph: &Graph) -> Result<u32, Code> {
        const SUCCESS: u32 = 0;
        const TOPOLOGY_CHANGED: u32 = 2;
        const NODE_TYPE_CHANGED: u32 = 3;
        const NOT_SUPPORTED: u32 = 6;
        if self.is_updatable() || graph.is_updatable()? {
            return Ok(NOT_SUPPORTED);
        }
        driver::current()?.settle();
        let new = Step::of(graph)?;
        let mut steps = self.steps.lock();
        if new.len() != steps.len() || new.iter().zip(steps.iter()).any(|(n, s)| n.after != s.after) {
            return Ok(TOPOLOGY_CHANGED);
        }
        if new.iter().zip(steps.iter()).any(|(n, s)| params::kind_of(&n.work) != params::kind_of(&s.work)) {
            return Ok(NODE_TYPE_CHANGED);
        }
        for (step, new) in steps.iter_mut().zip(new) {
            step.work = new.work;
        }
        Ok(SUCCESS)
    }
}
