//! Graphs (CUDA Runtime API, "Graph Management"). Nodes are the driver's; kernels are named by host functions here.

use crate::{
    api::{api, same},
    driver,
    error::{Code, Outcome},
    raw::Ptr,
    register::kernel,
};

/// `CUDA_KERNEL_NODE_PARAMS`, second version.
#[repr(C)]
struct KernelNode {
    function: usize,
    shape: [u32; 6],
    shared: u32,
    params: u64,
    extra: u64,
    kernel: usize,
    context: usize,
}

/// From `cudaKernelNodeParams`, which has the same members up to `extra`.
fn kernel_node(params: Ptr) -> Result<KernelNode, Code> {
    Ok(KernelNode {
        function: kernel(Ptr::at(params.read(0)?))?,
        shape: params.read(8)?,
        shared: params.read(32)?,
        params: params.read(40)?,
        extra: params.read(48)?,
        kernel: 0,
        context: 0,
    })
}

fn instantiate(out: Ptr, graph: usize) -> Outcome {
    driver::cuGraphInstantiateWithFlags(out, graph, 0)
}

same! {
    cudaGraphCreate(graph: Ptr, flags: u32) = cuGraphCreate;
    cudaGraphDestroy(graph: usize) = cuGraphDestroy;
    cudaGraphAddHostNode(node: Ptr, graph: usize, after: Ptr, count: usize, params: Ptr) = cuGraphAddHostNode;
    cudaGraphAddEmptyNode(node: Ptr, graph: usize, after: Ptr, count: usize) = cuGraphAddEmptyNode;
    cudaGraphAddChildGraphNode(node: Ptr, graph: usize, after: Ptr, count: usize, child: usize) = cuGraphAddChildGraphNode;
    cudaGraphAddEventRecordNode(node: Ptr, graph: usize, after: Ptr, count: usize, event: usize) = cuGraphAddEventRecordNode;
    cudaGraphAddEventWaitNode(node: Ptr, graph: usize, after: Ptr, count: usize, event: usize) = cuGraphAddEventWaitNode;
    cudaGraphClone(copy: Ptr, graph: usize) = cuGraphClone;
    cudaGraphNodeGetType(node: usize, kind: Ptr) = cuGraphNodeGetType;
    cudaGraphGetNodes(graph: usize, nodes: Ptr, count: Ptr) = cuGraphGetNodes;
    cudaGraphGetRootNodes(graph: usize, nodes: Ptr, count: Ptr) = cuGraphGetRootNodes;
    cudaGraphGetEdges(graph: usize, from: Ptr, to: Ptr, edges: Ptr, count: Ptr) = cuGraphGetEdges_v2;
    cudaGraphAddDependencies(graph: usize, from: Ptr, to: Ptr, edges: Ptr, count: usize) = cuGraphAddDependencies_v2;
    cudaGraphRemoveDependencies(graph: usize, from: Ptr, to: Ptr, edges: Ptr, count: usize) = cuGraphRemoveDependencies_v2;
    cudaGraphDestroyNode(node: usize) = cuGraphDestroyNode;
    cudaGraphExecUpdate(exec: usize, graph: usize, result: Ptr) = cuGraphExecUpdate_v2;
    cudaGraphUpload(exec: usize, stream: usize) = cuGraphUpload;
    cudaGraphLaunch(exec: usize, stream: usize) = cuGraphLaunch;
    cudaGraphExecDestroy(exec: usize) = cuGraphExecDestroy;
}

api! {
    fn cudaGraphAddKernelNode(node: Ptr, graph: usize, after: Ptr, count: usize, params: Ptr) {
        driver::cuGraphAddKernelNode_v2(node, graph, after, count, Ptr::of(&kernel_node(params)?))
    }
    fn cudaGraphKernelNodeSetParams(node: usize, params: Ptr) {
        driver::cuGraphKernelNodeSetParams_v2(node, Ptr::of(&kernel_node(params)?))
    }
    fn cudaGraphExecKernelNodeSetParams(exec: usize, node: usize, params: Ptr) {
        driver::cuGraphExecKernelNodeSetParams_v2(exec, node, Ptr::of(&kernel_node(params)?))
    }
    fn cudaGraphAddMemcpyNode(node: Ptr, graph: usize, after: Ptr, count: usize, params: Ptr) {
        let copy = crate::array::Copy3d::from_params(params)?;
        driver::cuGraphAddMemcpyNode(node, graph, after, count, Ptr::of(&copy), 0)
    }
    fn cudaGraphAddMemcpyNode1D(
        node: Ptr, graph: usize, after: Ptr, count: usize, to: Ptr, from: Ptr, bytes: usize, _direction: u32,
    ) {
        let copy = crate::array::Copy3d::rows(to, 0, from, 0, bytes, 1);
        driver::cuGraphAddMemcpyNode(node, graph, after, count, Ptr::of(&copy), 0)
    }
    fn cudaGraphAddMemsetNode(node: Ptr, graph: usize, after: Ptr, count: usize, params: Ptr) {
        driver::cuGraphAddMemsetNode(node, graph, after, count, params, 0)
    }
    fn cudaGraphInstantiate(out: Ptr, graph: usize, _flags: u64) { instantiate(out, graph) }
    fn cudaGraphInstantiateWithFlags(out: Ptr, graph: usize, _flags: u64) { instantiate(out, graph) }
    fn cudaDeviceGraphMemTrim(_device: i32) { Ok(()) }
}
