//! Functions on graphs, edges and executable graphs.

use super::{Exec, Graph, NodeRef, device};
use crate::{
    api::{api, because},
    checks::order,
    code::{Code, Outcome},
    driver::{current, driver},
    handle::Handle,
    raw::{In, Out},
    work::{Work, stream::StreamHandle},
};
use bytemuck::AnyBitPattern;
use std::{
    ffi::c_char,
    sync::{Arc, atomic::Ordering::Relaxed},
};

type Node = Handle<NodeRef>;

/// `CUgraphExecUpdateResultInfo`
#[repr(C)]
#[derive(Clone, Copy, AnyBitPattern)]
pub struct UpdateResult {
    result: u32,
    node: Node,
    from: Node,
}

/// `CUDA_GRAPH_INSTANTIATE_PARAMS`
#[repr(C)]
#[derive(Clone, Copy, AnyBitPattern)]
pub struct InstantiateParams {
    flags: u64,
    upload: StreamHandle,
    error: Node,
    result: u32,
}

fn graph(handle: Handle<Graph>) -> Result<Arc<Graph>, Code> {
    driver()?.graphs.get(handle)
}

fn exec(handle: Handle<Exec>) -> Result<Arc<Exec>, Code> {
    driver()?.execs.get(handle)
}

fn instantiate(out: Out<Handle<Exec>>, of: Handle<Graph>, flags: u64) -> Outcome {
    out.set(driver()?.execs.add_arc(graph(of)?.instantiate(flags)?))
}

/// Edges carry no data: callers that ask for it get zeros, the data of an ordinary edge.
fn plain(data: Out<u64>, count: Out<usize>) -> Outcome {
    let written = if data.is_null() { 0 } else { count.get()? };
    (0..written).try_for_each(|i| data.set_nth(i, 0))
}

/// Returns a list to C: its length if there is no array, else as many elements as fit, padded with null.
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
    let all = driver.nodes.get(of)?.graph.nodes.lock().clone();
    let waits = |n: &Node| driver.nodes.get(*n).is_ok_and(|n| n.state.lock().after.contains(&of));
    Ok(all.into_iter().filter(waits).collect())
}

/// Nodes without dependencies.
fn roots(of: &Graph) -> Result<Vec<Node>, Code> {
    let driver = driver()?;
    let all = of.nodes.lock().clone();
    Ok(all.into_iter().filter(|n| driver.nodes.get(*n).is_ok_and(|n| n.state.lock().after.is_empty())).collect())
}

fn edges(of: Handle<Graph>, from: Out<Node>, to: Out<Node>, count: Out<usize>) -> Outcome {
    let driver = driver()?;
    let mut pairs = Vec::new();
    for node in graph(of)?.nodes.lock().iter() {
        pairs.extend(driver.nodes.get(*node)?.state.lock().after.iter().map(|before| (*before, *node)));
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
        let waits = &mut after.state.lock().after;
        match (connected, waits.iter().position(|n| *n == before)) {
            (true, None) => waits.push(before),
            (false, Some(at)) => drop(waits.remove(at)),
            _ => return Err(Code::INVALID_VALUE),
        }
    }
    Ok(())
}

/// Updates an executable graph; also returns the `CUgraphExecUpdateResult`.
fn updated(of: Handle<Exec>, from: Handle<Graph>) -> (Outcome, u32) {
    const ERROR: u32 = 1;
    match exec(of).and_then(|e| e.update(&*graph(from)?)) {
        Ok(0) => (Ok(()), 0),
        Ok(differs) => (Err(Code::GRAPH_EXEC_UPDATE_FAILURE), differs),
        Err(code) => (Err(code), ERROR),
    }
}

api! {
    10000 fn cuGraphCreate(out: Out<Handle<Graph>>, flags: u32) {
        match flags {
            0 => out.set(driver()?.graphs.add(Graph::default())),
            _ => Err(Code::INVALID_VALUE),
        }
    }
    10000 fn cuGraphDestroy(of: Handle<Graph>) {
        driver()?.graphs.remove(of)?.forget_nodes(driver()?);
        Ok(())
    }
    10000 fn cuGraphClone(out: Out<Handle<Graph>>, of: Handle<Graph>) {
        let copy = graph(of)?.copy()?;
        out.set(driver()?.graphs.add_arc(copy))
    }
    10000 fn cuGraphGetNodes(of: Handle<Graph>, nodes: Out<Node>, count: Out<usize>) {
        list(nodes, count, &graph(of)?.nodes.lock().clone())
    }
    10000 fn cuGraphGetRootNodes(of: Handle<Graph>, nodes: Out<Node>, count: Out<usize>) {
        list(nodes, count, &roots(&*graph(of)?)?)
    }
    10000 fn cuGraphGetEdges(of: Handle<Graph>, from: Out<Node>, to: Out<Node>, count: Out<usize>) {
        edges(of, from, to, count)
    }
    12030 fn cuGraphGetEdges_v2(of: Handle<Graph>, from: Out<Node>, to: Out<Node>, data: Out<u64>, count: Out<usize>) {
        edges(of, from, to, count)?;
        plain(data, count)
    }
    10000 fn cuGraphNodeGetDependencies(node: Node, nodes: Out<Node>, count: Out<usize>) {
        let after = driver()?.nodes.get(node)?.state.lock().after.clone();
        list(nodes, count, &after)
    }
    12030 fn cuGraphNodeGetDependencies_v2(node: Node, nodes: Out<Node>, data: Out<u64>, count: Out<usize>) {
        let after = driver()?.nodes.get(node)?.state.lock().after.clone();
        list(nodes, count, &after)?;
        plain(data, count)
    }
    10000 fn cuGraphNodeGetDependentNodes(node: Node, nodes: Out<Node>, count: Out<usize>) {
        list(nodes, count, &dependents(node)?)
    }
    12030 fn cuGraphNodeGetDependentNodes_v2(node: Node, nodes: Out<Node>, data: Out<u64>, count: Out<usize>) {
        list(nodes, count, &dependents(node)?)?;
        plain(data, count)
    }
    10000 fn cuGraphAddDependencies(of: Handle<Graph>, from: In<Node>, to: In<Node>, count: usize) {
        graph(of)?;
        connect(from, to, count, true)
    }
    12030 fn cuGraphAddDependencies_v2(of: Handle<Graph>, from: In<Node>, to: In<Node>, _data: In<u64>, count: usize) {
        graph(of)?;
        connect(from, to, count, true)
    }
    10000 fn cuGraphRemoveDependencies(of: Handle<Graph>, from: In<Node>, to: In<Node>, count: usize) {
        graph(of)?.check_without_memory()?;
        connect(from, to, count, false)
    }
    12030 fn cuGraphRemoveDependencies_v2(of: Handle<Graph>, from: In<Node>, to: In<Node>, _data: In<u64>, count: usize) {
        graph(of)?.check_without_memory()?;
        connect(from, to, count, false)
    }
    10000 fn cuGraphDestroyNode(node: Node) {
        let going = driver()?.nodes.get(node)?;
        going.graph.check_without_memory()?;
        if going.updatable.load(Relaxed) {
            because(|| "a node that device code may change cannot be removed from its graph".into());
            return Err(Code::INVALID_VALUE);
        }
        for dependent in dependents(node)? {
            driver()?.nodes.get(dependent)?.state.lock().after.retain(|n| *n != node);
        }
        let gone = driver()?.nodes.remove(node)?;
        gone.graph.nodes.lock().retain(|n| *n != node);
        Ok(())
    }
    10000 fn cuGraphInstantiate(
        out: Out<Handle<Exec>>, of: Handle<Graph>, _error: Out<Node>, _log: Out<c_char>, _size: usize,
    ) {
        instantiate(out, of, 0)
    }
    11000 fn cuGraphInstantiate_v2(
        out: Out<Handle<Exec>>, of: Handle<Graph>, _error: Out<Node>, _log: Out<c_char>, _size: usize,
    ) {
        instantiate(out, of, 0)
    }
    11040 fn cuGraphInstantiateWithFlags(out: Out<Handle<Exec>>, of: Handle<Graph>, flags: u64) { instantiate(out, of, flags) }
    12000 + ptsz fn cuGraphInstantiateWithParams(out: Out<Handle<Exec>>, of: Handle<Graph>, params: Out<InstantiateParams>) {
        let mut given = params.get()?;
        instantiate(out, of, given.flags)?;
        given.result = 0;
        params.set(given)
    }
    11060 fn cuGraphNodeSetEnabled(of: Handle<Exec>, node: Node, enabled: u32) {
        exec(of)?.with_step(node, |step| step.enabled = enabled != 0)
    }
    11060 fn cuGraphNodeGetEnabled(of: Handle<Exec>, node: Node, enabled: Out<u32>) {
        let steps = exec(of)?.steps.lock().clone();
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
        flags.set(exec(of)?.flags)
    }
    11010 + ptsz fn cuGraphUpload(of: Handle<Exec>, stream: StreamHandle) {
        exec(of)?;
        stream.get().map(drop)
    }
    10000 + ptsz fn cuGraphLaunch(of: Handle<Exec>, stream: StreamHandle) {
        current()?;
        let (exec, stream_ref) = (exec(of)?, stream.get()?);
        let captured = stream_ref.stream().capture.lock().is_some();
        if captured {
            return stream.submit(Work::Graph(exec));
        }
        exec.claim_memory()?;
        let (recorded, awaited) = exec.events();
        awaited.iter().filter_map(|event| event.end()).for_each(|end| stream_ref.wait_for(end));
        recorded.iter().for_each(|event| event.announce());
        let piece = order::submitted(&stream_ref, || "a graph".into());
        order::host::submit(&stream_ref, move |context| order::perform(piece, || device::launch(of, exec, context)))?;
        if !recorded.is_empty() {
            let end = stream_ref.mark();
            recorded.iter().for_each(|event| event.launched(&end));
        }
        Ok(())
    }
    10000 fn cuGraphExecDestroy(of: Handle<Exec>) { driver()?.execs.remove(of).map(drop) }
}
