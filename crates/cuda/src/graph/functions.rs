//! The functions on graphs, and the structures that describe nodes.

use super::{Exec, Graph, NodeRef};
use crate::{
    api::api,
    code::{Code, Outcome},
    context::Context,
    copy::Copy3d,
    driver::{current, driver},
    event::Event,
    function::Function,
    handle::Handle,
    launch::{Launch, Shape},
    raw::{Callback, Host, In, Out, UserData},
    stream::StreamHandle,
    work::{Fill, Work},
};
use std::{
    ffi::c_char,
    sync::{Arc, PoisonError},
};

type Node = Handle<NodeRef>;

/// `CUDA_KERNEL_NODE_PARAMS`, first version.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct KernelNode {
    function: Handle<Function>,
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
    params: In<u64>,
    extra: In<u64>,
}

/// `CUDA_KERNEL_NODE_PARAMS`, second version: a kernel may stand for the function.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct KernelNode2 {
    first: KernelNode,
    kernel: Handle<Function>,
    context: Handle<Context>,
}

impl KernelNode {
    fn work(&self) -> Result<Work, Code> {
        let shape = Shape::new(self.grid, self.block, self.shared);
        Ok(Work::Kernel(Launch::new(self.function, shape, self.params, self.extra)?))
    }
}

impl KernelNode2 {
    fn work(&self) -> Result<Work, Code> {
        let function = if self.first.function.is_null() { self.kernel } else { self.first.function };
        KernelNode { function, ..self.first }.work()
    }
}

/// `CUDA_MEMSET_NODE_PARAMS`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct FillNode {
    to: u64,
    pitch: usize,
    value: u32,
    element: u32,
    width: usize,
    height: usize,
}

impl FillNode {
    fn work(&self) -> Result<Work, Code> {
        let FillNode { to, pitch, value, element, width, height } = *self;
        if !matches!(element, 1 | 2 | 4) {
            return Err(Code::INVALID_VALUE);
        }
        let pattern = value.to_le_bytes()[..element as usize].into();
        Ok(Work::Fill(Fill { to, pattern, pitch: pitch as u64, width: width as u64, height: height as u64 }))
    }
}

/// `CUDA_HOST_NODE_PARAMS`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct HostNode {
    function: Callback,
    data: UserData,
}

impl HostNode {
    fn work(&self) -> Work {
        Work::Host(self.function, self.data)
    }
}

/// `CUgraphExecUpdateResultInfo`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct UpdateResult {
    result: u32,
    node: Node,
    from: Node,
}

/// `CUDA_GRAPH_INSTANTIATE_PARAMS`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct InstantiateParams {
    flags: u64,
    upload: StreamHandle,
    error: Node,
    result: u32,
}

/// `CUgraphNodeType`
fn kind(work: &Work) -> u32 {
    match work {
        Work::Kernel(_) => 0,
        Work::Copy(_) => 1,
        Work::Fill(_) => 2,
        Work::Host(..) => 3,
        Work::Graph(_) => 4,
        Work::Nothing => 5,
        Work::Record(_) => 7,
    }
}

fn graph(handle: Handle<Graph>) -> Result<Arc<Graph>, Code> {
    driver()?.graphs.get(handle)
}

fn exec(handle: Handle<Exec>) -> Result<Arc<Exec>, Code> {
    driver()?.execs.get(handle)
}

fn add(out: Out<Node>, to: Handle<Graph>, after: In<Node>, count: usize, work: Work) -> Outcome {
    out.set(graph(to)?.add(work, after.list(count)?)?)
}

fn set(node: Node, work: Work) -> Outcome {
    let node = driver()?.nodes.get(node)?;
    node.state().work = work;
    Ok(())
}

fn set_in(of: Handle<Exec>, node: Node, work: Work) -> Outcome {
    exec(of)?.with_step(node, |step| step.work = work)
}

fn instantiate(out: Out<Handle<Exec>>, of: Handle<Graph>) -> Outcome {
    out.set(driver()?.execs.add(Exec::new(&*graph(of)?)?))
}

/// A list for C: how many there are when there is no array, else as many as fit, and null for the rest.
fn list(out: Out<Node>, count: Out<usize>, nodes: &[Node]) -> Outcome {
    if !out.is_null() {
        let room = count.get()?;
        for i in 0..room {
            out.set_nth(i, nodes.get(i).copied().unwrap_or(Node::NULL))?;
        }
        return count.set(room.min(nodes.len()));
    }
    count.set(nodes.len())
}

fn dependents(of: Node) -> Result<Vec<Node>, Code> {
    let driver = driver()?;
    let all = driver.nodes.get(of)?.graph.nodes().clone();
    let waits = |n: &Node| driver.nodes.get(*n).is_ok_and(|n| n.state().after.contains(&of));
    Ok(all.into_iter().filter(waits).collect())
}

/// Nodes of a graph that wait for nothing.
fn roots(of: &Graph) -> Result<Vec<Node>, Code> {
    let driver = driver()?;
    let all = of.nodes().clone();
    Ok(all.into_iter().filter(|n| driver.nodes.get(*n).is_ok_and(|n| n.state().after.is_empty())).collect())
}

fn edges(of: Handle<Graph>, from: Out<Node>, to: Out<Node>, count: Out<usize>) -> Outcome {
    let driver = driver()?;
    let mut pairs = Vec::new();
    for node in graph(of)?.nodes().iter() {
        pairs.extend(driver.nodes.get(*node)?.state().after.iter().map(|before| (*before, *node)));
    }
    if from.is_null() || to.is_null() {
        return count.set(pairs.len());
    }
    let room = count.get()?;
    for (i, (before, after)) in pairs.iter().take(room).enumerate() {
        from.set_nth(i, *before)?;
        to.set_nth(i, *after)?;
    }
    count.set(room.min(pairs.len()))
}

fn connect(from: In<Node>, to: In<Node>, count: usize, connected: bool) -> Outcome {
    let driver = driver()?;
    for i in 0..count {
        let (before, after) = (from.nth(i)?, driver.nodes.get(to.nth(i)?)?);
        driver.nodes.get(before)?;
        let waits = &mut after.state().after;
        match (connected, waits.iter().position(|n| *n == before)) {
            (true, None) => waits.push(before),
            (false, Some(at)) => drop(waits.remove(at)),
            _ => return Err(Code::INVALID_VALUE),
        }
    }
    Ok(())
}

fn updated(of: Handle<Exec>, from: Handle<Graph>) -> (Outcome, u32) {
    let done = exec(of).and_then(|e| e.update(&*graph(from)?));
    // CU_GRAPH_EXEC_UPDATE_SUCCESS, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED
    (done, if done.is_ok() { 0 } else { 2 })
}

api! {
    10000 fn cuGraphCreate(out: Out<Handle<Graph>>, _flags: u32) { out.set(driver()?.graphs.add(Graph::default())) }
    10000 fn cuGraphDestroy(of: Handle<Graph>) {
        let gone = driver()?.graphs.remove(of)?;
        for node in gone.nodes().drain(..) {
            driver()?.nodes.remove(node)?;
        }
        Ok(())
    }
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
        let child = Arc::new(Exec::new(&*graph(child)?)?);
        add(out, to, after, count, Work::Graph(child))
    }
    11010 fn cuGraphAddEventRecordNode(
        out: Out<Node>, to: Handle<Graph>, after: In<Node>, count: usize, event: Handle<Event>,
    ) {
        add(out, to, after, count, Work::Record(driver()?.events.get(event)?))
    }
    11010 fn cuGraphAddEventWaitNode(
        out: Out<Node>, to: Handle<Graph>, after: In<Node>, count: usize, event: Handle<Event>,
    ) {
        driver()?.events.get(event)?;
        add(out, to, after, count, Work::Nothing)
    }
    10000 fn cuGraphKernelNodeSetParams(node: Node, params: In<KernelNode>) { set(node, params.get()?.work()?) }
    12000 fn cuGraphKernelNodeSetParams_v2(node: Node, params: In<KernelNode2>) { set(node, params.get()?.work()?) }
    10000 fn cuGraphMemcpyNodeSetParams(node: Node, params: In<Copy3d>) { set(node, Work::Copy(params.get()?.copy()?)) }
    10000 fn cuGraphMemsetNodeSetParams(node: Node, params: In<FillNode>) { set(node, params.get()?.work()?) }
    10000 fn cuGraphHostNodeSetParams(node: Node, params: In<HostNode>) { set(node, params.get()?.work()) }
    10000 fn cuGraphClone(out: Out<Handle<Graph>>, of: Handle<Graph>) {
        let copy = graph(of)?.copy()?;
        out.set(driver()?.graphs.add_arc(copy))
    }
    10000 fn cuGraphNodeGetType(node: Node, out: Out<u32>) { out.set(kind(&driver()?.nodes.get(node)?.state().work)) }
    10000 fn cuGraphGetNodes(of: Handle<Graph>, nodes: Out<Node>, count: Out<usize>) {
        list(nodes, count, &graph(of)?.nodes().clone())
    }
    10000 fn cuGraphGetRootNodes(of: Handle<Graph>, nodes: Out<Node>, count: Out<usize>) {
        list(nodes, count, &roots(&*graph(of)?)?)
    }
    10000 fn cuGraphGetEdges(of: Handle<Graph>, from: Out<Node>, to: Out<Node>, count: Out<usize>) {
        edges(of, from, to, count)
    }
    12030 fn cuGraphGetEdges_v2(of: Handle<Graph>, from: Out<Node>, to: Out<Node>, _edges: Host, count: Out<usize>) {
        edges(of, from, to, count)
    }
    10000 fn cuGraphNodeGetDependencies(node: Node, nodes: Out<Node>, count: Out<usize>) {
        let after = driver()?.nodes.get(node)?.state().after.clone();
        list(nodes, count, &after)
    }
    12030 fn cuGraphNodeGetDependencies_v2(node: Node, nodes: Out<Node>, _edges: Host, count: Out<usize>) {
        let after = driver()?.nodes.get(node)?.state().after.clone();
        list(nodes, count, &after)
    }
    10000 fn cuGraphNodeGetDependentNodes(node: Node, nodes: Out<Node>, count: Out<usize>) {
        list(nodes, count, &dependents(node)?)
    }
    12030 fn cuGraphNodeGetDependentNodes_v2(node: Node, nodes: Out<Node>, _edges: Host, count: Out<usize>) {
        list(nodes, count, &dependents(node)?)
    }
    10000 fn cuGraphAddDependencies(of: Handle<Graph>, from: In<Node>, to: In<Node>, count: usize) {
        graph(of)?;
        connect(from, to, count, true)
    }
    12030 fn cuGraphAddDependencies_v2(of: Handle<Graph>, from: In<Node>, to: In<Node>, _edges: Host, count: usize) {
        graph(of)?;
        connect(from, to, count, true)
    }
    10000 fn cuGraphRemoveDependencies(of: Handle<Graph>, from: In<Node>, to: In<Node>, count: usize) {
        graph(of)?;
        connect(from, to, count, false)
    }
    12030 fn cuGraphRemoveDependencies_v2(of: Handle<Graph>, from: In<Node>, to: In<Node>, _edges: Host, count: usize) {
        graph(of)?;
        connect(from, to, count, false)
    }
    10000 fn cuGraphDestroyNode(node: Node) {
        for dependent in dependents(node)? {
            driver()?.nodes.get(dependent)?.state().after.retain(|n| *n != node);
        }
        let gone = driver()?.nodes.remove(node)?;
        gone.graph.nodes.lock().unwrap_or_else(PoisonError::into_inner).retain(|n| *n != node);
        Ok(())
    }
    10000 fn cuGraphInstantiate(
        out: Out<Handle<Exec>>, of: Handle<Graph>, _error: Out<Node>, _log: Out<c_char>, _size: usize,
    ) {
        instantiate(out, of)
    }
    11000 fn cuGraphInstantiate_v2(
        out: Out<Handle<Exec>>, of: Handle<Graph>, _error: Out<Node>, _log: Out<c_char>, _size: usize,
    ) {
        instantiate(out, of)
    }
    11040 fn cuGraphInstantiateWithFlags(out: Out<Handle<Exec>>, of: Handle<Graph>, _flags: u64) { instantiate(out, of) }
    12000 fn cuGraphInstantiateWithParams(out: Out<Handle<Exec>>, of: Handle<Graph>, params: Out<InstantiateParams>) {
        let mut given = params.get()?;
        instantiate(out, of)?;
        given.result = 0;
        params.set(given)
    }
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
    11060 fn cuGraphNodeSetEnabled(of: Handle<Exec>, node: Node, enabled: u32) {
        exec(of)?.with_step(node, |step| step.enabled = enabled != 0)
    }
    11060 fn cuGraphNodeGetEnabled(of: Handle<Exec>, node: Node, enabled: Out<u32>) {
        let steps = exec(of)?.steps().clone();
        let step = steps.iter().find(|s| s.node == node).ok_or(Code::INVALID_VALUE)?;
        enabled.set(u32::from(step.enabled))
    }
    10020 fn cuGraphExecUpdate(of: Handle<Exec>, from: Handle<Graph>, node: Out<Node>, result: Out<u32>) {
        let (done, number) = updated(of, from);
        node.offer(Node::NULL);
        result.offer(number);
        done
    }
    12000 fn cuGraphExecUpdate_v2(of: Handle<Exec>, from: Handle<Graph>, result: Out<UpdateResult>) {
        let (done, number) = updated(of, from);
        result.offer(UpdateResult { result: number, node: Node::NULL, from: Node::NULL });
        done
    }
    12000 fn cuGraphExecGetFlags(of: Handle<Exec>, flags: Out<u64>) {
        exec(of)?;
        flags.set(0)
    }
    11010 fn cuGraphUpload(of: Handle<Exec>, stream: StreamHandle) {
        exec(of)?;
        stream.get().map(drop)
    }
    10000 fn cuGraphLaunch(of: Handle<Exec>, stream: StreamHandle) {
        current()?;
        stream.submit(Work::Graph(exec(of)?))
    }
    10000 fn cuGraphExecDestroy(of: Handle<Exec>) { driver()?.execs.remove(of).map(drop) }
    11040 fn cuDeviceGraphMemTrim(device: i32) { crate::device::check(device) }
}
