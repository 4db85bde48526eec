//! Graphs (CUDA Runtime API, "Graph Management"), forwarded to the driver.

use crate::{
    api::{api, same},
    driver,
    raw::Ptr,
    stream::Stream,
};

same! {
    cudaGraphCreate(graph: Ptr, flags: u32) = cuGraphCreate;
    cudaGraphDestroy(graph: usize) = cuGraphDestroy;
    cudaGraphInstantiateWithFlags(exec: Ptr, graph: usize, flags: u64) = cuGraphInstantiateWithFlags;
    + ptsz cudaGraphInstantiateWithParams(exec: Ptr, graph: usize, params: Ptr) = cuGraphInstantiateWithParams;
    cudaGraphExecGetFlags(exec: usize, flags: Ptr) = cuGraphExecGetFlags;
    cudaGraphGetId(graph: usize, id: Ptr) = cuGraphGetId;
    cudaGraphExecGetId(exec: usize, id: Ptr) = cuGraphExecGetId;
    cudaGraphDebugDotPrint(graph: usize, path: Ptr, flags: u32) = cuGraphDebugDotPrint;
    cudaGraphConditionalHandleCreate_v2(
        handle: Ptr, graph: usize, context: usize, default: u32, flags: u32
    ) = cuGraphConditionalHandleCreate;
    cudaUserObjectCreate(object: Ptr, data: Ptr, destroy: Ptr, references: u32, flags: u32) = cuUserObjectCreate;
    cudaUserObjectRetain(object: usize, count: u32) = cuUserObjectRetain;
    cudaUserObjectRelease(object: usize, count: u32) = cuUserObjectRelease;
    cudaGraphRetainUserObject(graph: usize, object: usize, count: u32, flags: u32) = cuGraphRetainUserObject;
    cudaGraphReleaseUserObject(graph: usize, object: usize, count: u32) = cuGraphReleaseUserObject;
    cudaGraphClone(copy: Ptr, graph: usize) = cuGraphClone;
    cudaGraphGetNodes(graph: usize, nodes: Ptr, count: Ptr) = cuGraphGetNodes;
    cudaGraphGetRootNodes(graph: usize, nodes: Ptr, count: Ptr) = cuGraphGetRootNodes;
    #[cfg(cuda13)]
    cudaGraphGetEdges(graph: usize, from: Ptr, to: Ptr, edges: Ptr, count: Ptr) = cuGraphGetEdges_v2;
    #[cfg(cuda13)]
    cudaGraphAddDependencies(graph: usize, from: Ptr, to: Ptr, edges: Ptr, count: usize) = cuGraphAddDependencies_v2;
    #[cfg(cuda13)]
    cudaGraphRemoveDependencies(
        graph: usize, from: Ptr, to: Ptr, edges: Ptr, count: usize
    ) = cuGraphRemoveDependencies_v2;
    #[cfg(not(cuda11))]
    cudaGraphExecUpdate(exec: usize, graph: usize, result: Ptr) = cuGraphExecUpdate_v2;
    + ptsz cudaGraphUpload(exec: usize, stream: Stream) = cuGraphUpload;
    + ptsz cudaGraphLaunch(exec: usize, stream: Stream) = cuGraphLaunch;
    cudaGraphExecDestroy(exec: usize) = cuGraphExecDestroy;
}

api! {
    #[cfg(not(cuda11))]
    fn cudaGraphInstantiate(out: Ptr, graph: usize, flags: u64) { driver::cuGraphInstantiateWithFlags(out, graph, flags) }
    fn cudaGraphConditionalHandleCreate(handle: Ptr, graph: usize, default: u32, flags: u32) {
        driver::cuGraphConditionalHandleCreate(handle, graph, 0, default, flags)
    }
}
