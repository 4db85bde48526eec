//! Functions whose signature changed in CUDA 12 or 13, in their earlier form: without edge data, with a device number
//! instead of a location, with an index of the failed operation. In CUDA 12, the newer forms have names of their own.

use crate::{
    api::{api, same},
    raw::Ptr,
    register,
    stream::Stream,
};

// Newer forms that CUDA 12 has in addition to the older ones.
#[cfg(cuda12)]
same! {
    cudaEventElapsedTime_v2(ms: Ptr, start: usize, end: usize) = cuEventElapsedTime;
    cudaMemAdvise_v2(address: Ptr, bytes: usize, advice: u32, location: u64) = cuMemAdvise_v2;
    + ptsz cudaMemPrefetchAsync_v2(
        address: Ptr, bytes: usize, location: u64, flags: u32, stream: Stream
    ) = cuMemPrefetchAsync_v2;
    + ptsz cudaStreamGetCaptureInfo_v3(
        stream: Stream, status: Ptr, id: Ptr, graph: Ptr, after: Ptr, edges: Ptr, count: Ptr
    ) = cuStreamGetCaptureInfo_v3;
    + ptsz cudaStreamUpdateCaptureDependencies_v2(
        stream: Stream, nodes: Ptr, data: Ptr, count: usize, flags: u32
    ) = cuStreamUpdateCaptureDependencies_v2;
    cudaGraphGetEdges_v2(graph: usize, from: Ptr, to: Ptr, edges: Ptr, count: Ptr) = cuGraphGetEdges_v2;
    cudaGraphAddDependencies_v2(
        graph: usize, from: Ptr, to: Ptr, edges: Ptr, count: usize
    ) = cuGraphAddDependencies_v2;
    cudaGraphRemoveDependencies_v2(
        graph: usize, from: Ptr, to: Ptr, edges: Ptr, count: usize
    ) = cuGraphRemoveDependencies_v2;
    cudaGraphNodeGetDependencies_v2(node: usize, nodes: Ptr, data: Ptr, count: Ptr) = cuGraphNodeGetDependencies_v2;
    cudaGraphNodeGetDependentNodes_v2(
        node: usize, nodes: Ptr, data: Ptr, count: Ptr
    ) = cuGraphNodeGetDependentNodes_v2;
    + ptsz cudaMemcpyBatchAsync(
        to: Ptr, from: Ptr, sizes: Ptr, count: usize, attributes: Ptr, which: Ptr, attribute_count: usize, failed: Ptr,
        stream: Stream
    ) = cuMemcpyBatchAsync;
    + ptsz cudaMemcpy3DBatchAsync(
        count: usize, copies: Ptr, failed: Ptr, flags: u64, stream: Stream
    ) = cuMemcpy3DBatchAsync;
}

same! {
    cudaMemAdvise(address: Ptr, bytes: usize, advice: u32, device: i32) = cuMemAdvise;
    + ptsz cudaMemPrefetchAsync(address: Ptr, bytes: usize, device: i32, stream: Stream) = cuMemPrefetchAsync;
    + ptsz cudaStreamGetCaptureInfo(stream: Stream, status: Ptr, id: Ptr) = cuStreamGetCaptureInfo;
    + ptsz cudaStreamGetCaptureInfo_v2(
        stream: Stream, status: Ptr, id: Ptr, graph: Ptr, after: Ptr, count: Ptr
    ) = cuStreamGetCaptureInfo_v2;
    + ptsz cudaStreamUpdateCaptureDependencies(
        stream: Stream, nodes: Ptr, count: usize, flags: u32
    ) = cuStreamUpdateCaptureDependencies;
    cudaGraphGetEdges(graph: usize, from: Ptr, to: Ptr, count: Ptr) = cuGraphGetEdges;
    cudaGraphAddDependencies(graph: usize, from: Ptr, to: Ptr, count: usize) = cuGraphAddDependencies;
    cudaGraphRemoveDependencies(graph: usize, from: Ptr, to: Ptr, count: usize) = cuGraphRemoveDependencies;
    cudaGraphNodeGetDependencies(node: usize, nodes: Ptr, count: Ptr) = cuGraphNodeGetDependencies;
    cudaGraphNodeGetDependentNodes(node: usize, nodes: Ptr, count: Ptr) = cuGraphNodeGetDependentNodes;
    #[cfg(cuda11)]
    cudaGraphExecUpdate(exec: usize, graph: usize, node: Ptr, result: Ptr) = cuGraphExecUpdate;
    cudaThreadSynchronize() = cuCtxSynchronize;
    cudaThreadSetLimit(limit: u32, value: usize) = cuCtxSetLimit;
    cudaThreadGetLimit(value: Ptr, limit: u32) = cuCtxGetLimit;
    cudaThreadSetCacheConfig(config: u32) = cuCtxSetCacheConfig;
    cudaThreadGetCacheConfig(config: Ptr) = cuCtxGetCacheConfig;
}

api! {
    fn cudaThreadExit() { register::reset() }
    // For devices without double precision.
    fn cudaSetDoubleForDevice(_value: Ptr) { Ok(()) }
    fn cudaSetDoubleForHost(_value: Ptr) { Ok(()) }
    #[cfg(cuda11)]
    fn cudaProfilerInitialize(_config: Ptr, _output: Ptr, _mode: u32) { Ok(()) }
    #[cfg(cuda11)]
    fn cudaGraphInstantiate(exec: Ptr, graph: usize, node: Ptr, log: Ptr, size: usize) {
        if !node.is_null() {
            node.write(0, 0usize)?;
        }
        if size > 0 && !log.is_null() {
            log.write(0, 0u8)?;
        }
        crate::driver::cuGraphInstantiateWithFlags(exec, graph, 0)
    }
    #[cfg(cuda12)]
    fn cudaGraphAddNode(node: Ptr, graph: usize, after: Ptr, count: usize, params: Ptr) {
        crate::graph_node::add(node, graph, after, Ptr::NULL, count, params)
    }
    #[cfg(cuda12)]
    fn cudaGraphAddNode_v2(node: Ptr, graph: usize, after: Ptr, data: Ptr, count: usize, params: Ptr) {
        crate::graph_node::add(node, graph, after, data, count, params)
    }
}
