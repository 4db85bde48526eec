//! Functions that add nodes, and that get and set their parameters: by type, and generic ones (`CUgraphNodeParams`).

use super::{
    Exec, Graph, Inner, NodeRef,
    params::{self, FillNode, HostNode, KernelNode, KernelNode2, copy_of, event_of, kind, kind_of},
};
use crate::{
    api::api,
    code::{Code, Outcome},
    context::Context,
    driver::driver,
    handle::Handle,
    memory::copy::Copy3d,
    raw::{Host, In, Out},
    work::{
        Work,
        event::Event,
        launch::{Launch, attribute, set_attribute},
        memory_operation::Batch,
    },
};
use std::sync::{Arc, atomic::Ordering::Relaxed};

type Node = Handle<NodeRef>;

fn graph(handle: Handle<Graph>) -> Result<Arc<Graph>, Code> {
    driver()?.graphs.get(handle)
}

fn node(handle: Node) -> Result<Arc<NodeRef>, Code> {
    driver()?.nodes.get(handle)
}

/// Adds a node to a graph.
pub fn add(out: Out<Node>, to: Handle<Graph>, after: In<Node>, count: usize, work: Work) -> Outcome {
    out.set(graph(to)?.add(work, after.list(count)?)?)
}

/// Adds a node that allocates memory, by its `CUDA_MEM_ALLOC_NODE_PARAMS`, and returns the address there.
pub fn add_allocation(out: Out<Node>, to: Handle<Graph>, after: In<Node>, count: usize, params: Host) -> Outcome {
    let (graph, after) = (graph(to)?, after.list(count)?);
    let work = params::allocation(params, &graph, &after)?;
    out.set(graph.add(work, after)?)
}

/// Adds a node of any type, by its `CUgraphNodeParams`.
fn add_any(out: Out<Node>, to: Handle<Graph>, after: In<Node>, count: usize, params: Host) -> Outcome {
    match params::allocated_by(params)? {
        Some(allocation) => add_allocation(out, to, after, count, allocation),
        None => add(out, to, after, count, params::work(params)?),
    }
}

/// The work of a node.
pub fn work_of(handle: Node) -> Result<Work, Code> {
    Ok(node(handle)?.state.lock().work.clone())
}

/// Changes the work of a node; its type must not change.
fn set(handle: Node, work: Work) -> Outcome {
    let node = node(handle)?;
    let mut state = node.state.lock();
    if kind_of(&state.work) != kind_of(&work) {
        return Err(Code::INVALID_VALUE);
    }
    let old = std::mem::replace(&mut state.work, work);
    drop(state);
    drop(old);
    *node.arguments.lock() = None;
    Ok(())
}

/// Changes the work of a node in an executable graph.
fn set_in(of: Handle<Exec>, node: Node, work: Work) -> Outcome {
    let mut changed = Err(Code::INVALID_VALUE);
    driver()?.execs.get(of)?.with_step(node, |step| {
        if kind_of(&step.work) == kind_of(&work) {
            (step.work, changed) = (work, Ok(()));
        }
    })?;
    changed
}

fn inner(handle: Node) -> Result<Arc<Inner>, Code> {
    match work_of(handle)? {
        Work::Inner(inner) => Ok(inner),
        _ => Err(Code::INVALID_VALUE),
    }
}

fn event(handle: Handle<Event>) -> Result<Arc<Event>, Code> {
    driver()?.events.get(handle)
}

/// Accesses the launch of a kernel node.
fn with_launch<T>(handle: Node, change: impl FnOnce(&mut Launch) -> T) -> Result<T, Code> {
    match &mut node(handle)?.state.lock().work {
        Work::Kernel(launch) => Ok(change(launch)),
        _ => Err(Code::INVALID_VALUE),
    }
}

api! {
    10000 fn cuGraphAddKernelNode(out: Out<Node>, to: Handle<Graph>, after: In<Node>, count: usize, node: In<KernelNode>) {
        add(out, to, after, count, node.get()?.work()?)
    }
    12000 fn cuGraphAddKernelNode_v2(
        out: Out<Node>, to: Handle<Graph>, after: In<Node>, count: usize, node: In<KernelNode2>,
    ) {
        add(out, to, after, count, node.get()?.work()?)
    }
    10000 fn cuGraphAddMemcpyNode(
        out: Out<Node>, to: Handle<Graph>, after: In<Node>, count: usize, node: In<Copy3d>, _context: Handle<Context>,
    ) {
        add(out, to, after, count, Work::Copy(node.get()?.copy()?))
    }
    10000 fn cuGraphAddMemsetNode(
        out: Out<Node>, to: Handle<Graph>, after: In<Node>, count: usize, node: In<FillNode>, _context: Handle<Context>,
    ) {
        add(out, to, after, count, node.get()?.work()?)
    }
    10000 fn cuGraphAddHostNode(out: Out<Node>, to: Handle<Graph>, after: In<Node>, count: usize, node: In<HostNode>) {
        add(out, to, after, count, node.get()?.work())
    }
    10000 fn cuGraphAddEmptyNode(out: Out<Node>, to: Handle<Graph>, after: In<Node>, count: usize) {
        add(out, to, after, count, Work::Nothing)
    }
    10000 fn cuGraphAddChildGraphNode(
        out: Out<Node>, to: Handle<Graph>, after: In<Node>, count: usize, child: Handle<Graph>,
    ) {
        add(out, to, after, count, Work::Inner(Inner::copied(child)?))
    }
    11010 fn cuGraphAddEventRecordNode(
        out: Out<Node>, to: Handle<Graph>, after: In<Node>, count: usize, recorded: Handle<Event>,
    ) {
        add(out, to, after, count, Work::Record(event(recorded)?))
    }
    11010 fn cuGraphAddEventWaitNode(
        out: Out<Node>, to: Handle<Graph>, after: In<Node>, count: usize, awaited: Handle<Event>,
    ) {
        add(out, to, after, count, Work::Wait(event(awaited)?))
    }
    11070 fn cuGraphAddBatchMemOpNode(out: Out<Node>, to: Handle<Graph>, after: In<Node>, count: usize, node: In<Batch>) {
        add(out, to, after, count, node.get()?.work()?)
    }
    11070 fn cuGraphBatchMemOpNodeGetParams(of: Node, params: Out<Batch>) { params.set(Batch::of(&work_of(of)?)?) }
    11070 fn cuGraphBatchMemOpNodeSetParams(of: Node, params: In<Batch>) { set(of, params.get()?.work()?) }
    11070 fn cuGraphExecBatchMemOpNodeSetParams(of: Handle<Exec>, node: Node, params: In<Batch>) {
        set_in(of, node, params.get()?.work()?)
    }
    12020 fn cuGraphAddNode(out: Out<Node>, to: Handle<Graph>, after: In<Node>, count: usize, params: Host) {
        add_any(out, to, after, count, params)
    }
    12030 fn cuGraphAddNode_v2(
        out: Out<Node>, to: Handle<Graph>, after: In<Node>, _edges: Host, count: usize, params: Host,
    ) {
        add_any(out, to, after, count, params)
    }
    13020 fn cuGraphAddNode_v3(
        out: Out<Node>, to: Handle<Graph>, after: In<Node>, _edges: Host, count: usize, params: Host,
    ) {
        add_any(out, to, after, count, params)
    }

    10000 fn cuGraphKernelNodeGetParams(of: Node, params: Out<KernelNode>) { params.set(KernelNode::of(&*node(of)?)?) }
    12000 fn cuGraphKernelNodeGetParams_v2(of: Node, params: Out<KernelNode2>) { params.set(KernelNode2::of(&*node(of)?)?) }
    10000 fn cuGraphKernelNodeSetParams(node: Node, params: In<KernelNode>) { set(node, params.get()?.work()?) }
    12000 fn cuGraphKernelNodeSetParams_v2(node: Node, params: In<KernelNode2>) { set(node, params.get()?.work()?) }
    10000 fn cuGraphMemcpyNodeGetParams(of: Node, params: Out<Copy3d>) { params.set(copy_of(&work_of(of)?)?) }
    10000 fn cuGraphMemcpyNodeSetParams(node: Node, params: In<Copy3d>) { set(node, Work::Copy(params.get()?.copy()?)) }
    10000 fn cuGraphMemsetNodeGetParams(of: Node, params: Out<FillNode>) { params.set(FillNode::of(&work_of(of)?)?) }
    10000 fn cuGraphMemsetNodeSetParams(node: Node, params: In<FillNode>) { set(node, params.get()?.work()?) }
    10000 fn cuGraphHostNodeGetParams(of: Node, params: Out<HostNode>) { params.set(HostNode::of(&work_of(of)?)?) }
    10000 fn cuGraphHostNodeSetParams(node: Node, params: In<HostNode>) { set(node, params.get()?.work()) }
    10000 fn cuGraphChildGraphNodeGetGraph(of: Node, out: Out<Handle<Graph>>) { out.set(inner(of)?.handle) }
    11010 fn cuGraphEventRecordNodeGetEvent(of: Node, out: Out<Handle<Event>>) {
        out.set(event_of(&work_of(of)?, kind::RECORD)?)
    }
    11010 fn cuGraphEventRecordNodeSetEvent(of: Node, recorded: Handle<Event>) { set(of, Work::Record(event(recorded)?)) }
    11010 fn cuGraphEventWaitNodeGetEvent(of: Node, out: Out<Handle<Event>>) {
        out.set(event_of(&work_of(of)?, kind::WAIT)?)
    }
    11010 fn cuGraphEventWaitNodeSetEvent(of: Node, awaited: Handle<Event>) { set(of, Work::Wait(event(awaited)?)) }
    13020 fn cuGraphNodeGetParams(of: Node, params: Host) { params::describe(&*node(of)?, params) }
    12020 fn cuGraphNodeSetParams(of: Node, params: Host) { set(of, params::work(params)?) }
    13020 fn cuGraphNodeSetParams_v2(of: Node, params: Host) { set(of, params::work(params)?) }

    10010 fn cuGraphExecKernelNodeSetParams(of: Handle<Exec>, node: Node, params: In<KernelNode>) {
        set_in(of, node, params.get()?.work()?)
    }
    12000 fn cuGraphExecKernelNodeSetParams_v2(of: Handle<Exec>, node: Node, params: In<KernelNode2>) {
        set_in(of, node, params.get()?.work()?)
    }
    10020 fn cuGraphExecMemcpyNodeSetParams(
        of: Handle<Exec>, node: Node, params: In<Copy3d>, _context: Handle<Context>,
    ) {
        set_in(of, node, Work::Copy(params.get()?.copy()?))
    }
    10020 fn cuGraphExecMemsetNodeSetParams(
        of: Handle<Exec>, node: Node, params: In<FillNode>, _context: Handle<Context>,
    ) {
        set_in(of, node, params.get()?.work()?)
    }
    10020 fn cuGraphExecHostNodeSetParams(of: Handle<Exec>, node: Node, params: In<HostNode>) {
        set_in(of, node, params.get()?.work())
    }
    11010 fn cuGraphExecChildGraphNodeSetParams(of: Handle<Exec>, node: Node, child: Handle<Graph>) {
        set_in(of, node, Work::Graph(Exec::new(&*graph(child)?, 0)?))
    }
    11010 fn cuGraphExecEventRecordNodeSetEvent(of: Handle<Exec>, node: Node, recorded: Handle<Event>) {
        set_in(of, node, Work::Record(event(recorded)?))
    }
    11010 fn cuGraphExecEventWaitNodeSetEvent(of: Handle<Exec>, node: Node, awaited: Handle<Event>) {
        set_in(of, node, Work::Wait(event(awaited)?))
    }
    12020 fn cuGraphExecNodeSetParams(of: Handle<Exec>, node: Node, params: Host) {
        set_in(of, node, params::work(params)?.ready()?)
    }

    11000 fn cuGraphKernelNodeGetAttribute(of: Node, number: u32, value: Out<[u32; 16]>) {
        let shape = with_launch(of, |launch| launch.shape)?;
        let mut words = [0; 16];
        match number {
            attribute::DEVICE_UPDATABLE => {
                words[0] = u32::from(node(of)?.updatable.load(Relaxed));
                if words[0] == 1 {
                    (words[2], words[3]) = (of.number() as u32, (of.number() as u64 >> 32) as u32);
                }
            }
            attribute::COOPERATIVE => words[0] = u32::from(shape.cooperative),
            attribute::CLUSTER_DIMENSION => words[..3].copy_from_slice(&shape.cluster.unwrap_or([1; 3])),
            _ => {} // hints, of which there are none
        }
        value.set(words)
    }
    11000 fn cuGraphKernelNodeSetAttribute(of: Node, number: u32, value: In<[u32; 16]>) {
        let given = value.get()?;
        if number == attribute::DEVICE_UPDATABLE {
            node(of)?.make_updatable(given[0])?;
            return of.write_device_node(Host::unified(value.address()));
        }
        with_launch(of, |launch| set_attribute(&mut launch.shape, number, given))
    }
    11000 fn cuGraphKernelNodeCopyAttributes(to: Node, from: Node) {
        if node(to)?.updatable.load(Relaxed) || node(from)?.updatable.load(Relaxed) {
            return Err(Code::INVALID_VALUE);
        }
        let from = with_launch(from, |launch| launch.shape)?;
        with_launch(to, |launch| {
            (launch.shape.cooperative, launch.shape.cluster) = (from.cooperative, from.cluster);
        })
    }

    10000 fn cuGraphNodeGetType(of: Node, out: Out<u32>) { out.set(kind_of(&work_of(of)?)) }
    10000 fn cuGraphNodeFindInClone(out: Out<Node>, original: Node, clone: Handle<Graph>) {
        out.set(graph(clone)?.clone_of(original)?.ok_or(Code::INVALID_VALUE)?)
    }
    13010 fn cuGraphNodeGetContainingGraph(of: Node, out: Out<Handle<Graph>>) {
        let node = node(of)?;
        out.set(driver()?.graphs.find(|g| std::ptr::eq(g, &*node.graph)).ok_or(Code::INVALID_VALUE)?)
    }
    13010 fn cuGraphNodeGetLocalId(of: Node, id: Out<u32>) {
        node(of)?;
        id.set(of.ordinal())
    }
    13010 fn cuGraphNodeGetToolsId(of: Node, id: Out<u64>) {
        node(of)?;
        id.set(of.ordinal().into())
    }
    13010 fn cuGraphGetId(of: Handle<Graph>, id: Out<u32>) {
        graph(of)?;
        id.set(of.ordinal())
    }
    13010 fn cuGraphExecGetId(of: Handle<Exec>, id: Out<u32>) {
        driver()?.execs.get(of)?;
        id.set(of.ordinal())
    }
}
