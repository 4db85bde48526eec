//! Graph nodes (CUDA Runtime API, "Graph Management"), forwarded to the driver. The runtime API identifies kernels by
//! host functions, variables by host variables, and describes copies by other structures.

use crate::{
    api::{api, same},
    array::Copy3d,
    driver,
    error::{Code, Outcome},
    memory::part,
    raw::Ptr,
    register::{host_of, kernel},
};
use bytemuck::AnyBitPattern;

/// `CUDA_KERNEL_NODE_PARAMS`, later versions.
#[repr(C)]
#[derive(Clone, Copy, Default, AnyBitPattern)]
struct KernelNode {
    function: usize,
    shape: [u32; 6],
    shared: u32,
    params: u64,
    extra: u64,
    kernel: usize,
    context: usize,
}

/// Converts `cudaKernelNodeParams`, which has the same members up to `extra`.
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

impl KernelNode {
    /// Writes the node as `cudaKernelNodeParams`.
    fn describe(&self, params: Ptr) -> Outcome {
        let function = if self.kernel == 0 { self.function } else { self.kernel };
        params.write(0, host_of(function))?;
        params.write(8, self.shape)?;
        params.write(32, u64::from(self.shared))?;
        params.write(40, self.params)?;
        params.write(48, self.extra)
    }
}

/// A copy of `count` bytes between two addresses.
fn bytes(to: Ptr, from: Ptr, count: usize) -> Copy3d {
    Copy3d::rows(to, 0, from, 0, count, 1)
}

fn add_copy(node: Ptr, graph: usize, after: Ptr, count: usize, copy: &Copy3d) -> Outcome {
    driver::cuGraphAddMemcpyNode(node, graph, after, count, Ptr::of(copy), 0)
}

fn set_copy(node: usize, copy: &Copy3d) -> Outcome {
    driver::cuGraphMemcpyNodeSetParams(node, Ptr::of(copy))
}

fn set_copy_in(exec: usize, node: usize, copy: &Copy3d) -> Outcome {
    driver::cuGraphExecMemcpyNodeSetParams(exec, node, Ptr::of(copy), 0)
}

/// `cudaGraphNodeParams` and the driver's structure: a type, a union of the structures of all types, reserved bytes.
type NodeParams = [u64; 32];
const UNION: usize = 16;
/// Flags and a context precede the copy.
const COPY: usize = UNION + 16;

/// `cudaGraphNodeType` of the nodes whose structures differ from the driver's.
mod kind {
    pub const KERNEL: u32 = 0;
    pub const COPY: u32 = 1;
}

fn at(params: Ptr, offset: usize) -> Ptr {
    Ptr::at(params.number() + offset as u64)
}

/// Calls `act` with the driver's structure for `cudaGraphNodeParams`, and copies back what the driver has written to
/// it.
fn with_params(params: Ptr, act: impl FnOnce(Ptr) -> Outcome) -> Outcome {
    let mut made: NodeParams = params.read(0)?;
    let to = Ptr::to(&mut made);
    match params.read::<u32>(0)? {
        kind::KERNEL => to.write(UNION, kernel_node(at(params, UNION))?)?,
        kind::COPY => to.write(COPY, Copy3d::from_params(at(params, COPY))?)?,
        _ => {
            act(to)?;
            return params.write(0, made); // the address of memory, the bodies of a condition
        }
    }
    act(to)
}

/// Adds a node of any type; the edges' `data` may be null.
#[cfg(not(cuda11))]
pub fn add(node: Ptr, graph: usize, after: Ptr, data: Ptr, count: usize, params: Ptr) -> Outcome {
    with_params(params, |made| driver::cuGraphAddNode_v2(node, graph, after, data, count, made))
}

fn describe(node: usize, params: Ptr) -> Outcome {
    let mut found: NodeParams = [0; 32];
    let from = Ptr::to(&mut found);
    driver::cuGraphNodeGetParams(node, from)?;
    match from.read::<u32>(0)? {
        kind::KERNEL => {
            let kernel: KernelNode = from.read(UNION)?;
            params.write(0, [0u64; 32])?;
            kernel.describe(at(params, UNION))
        }
        kind::COPY => {
            let copy: Copy3d = from.read(COPY)?;
            params.write(0, [0u64; 32])?;
            params.write(0, kind::COPY)?;
            copy.describe(at(params, COPY))
        }
        _ => params.write(0, found),
    }
}

#[rustfmt::skip]
same! {
    cudaGraphAddHostNode(node: Ptr, graph: usize, after: Ptr, count: usize, params: Ptr) = cuGraphAddHostNode;
    cudaGraphAddEmptyNode(node: Ptr, graph: usize, after: Ptr, count: usize) = cuGraphAddEmptyNode;
    cudaGraphAddChildGraphNode(
        node: Ptr, graph: usize, after: Ptr, count: usize, child: usize
    ) = cuGraphAddChildGraphNode;
    cudaGraphAddEventRecordNode(
        node: Ptr, graph: usize, after: Ptr, count: usize, event: usize
    ) = cuGraphAddEventRecordNode;
    cudaGraphAddEventWaitNode(
        node: Ptr, graph: usize, after: Ptr, count: usize, event: usize
    ) = cuGraphAddEventWaitNode;
    cudaGraphAddMemAllocNode(node: Ptr, graph: usize, after: Ptr, count: usize, params: Ptr) = cuGraphAddMemAllocNode;
    cudaGraphAddMemFreeNode(node: Ptr, graph: usize, after: Ptr, count: usize, address: Ptr) = cuGraphAddMemFreeNode;
    cudaGraphMemAllocNodeGetParams(node: usize, params: Ptr) = cuGraphMemAllocNodeGetParams;
    cudaGraphMemFreeNodeGetParams(node: usize, address: Ptr) = cuGraphMemFreeNodeGetParams;
    cudaGraphKernelNodeGetAttribute(node: usize, number: u32, value: Ptr) = cuGraphKernelNodeGetAttribute;
    cudaGraphKernelNodeSetAttribute(node: usize, number: u32, value: Ptr) = cuGraphKernelNodeSetAttribute;
    cudaGraphKernelNodeCopyAttributes(to: usize, from: usize) = cuGraphKernelNodeCopyAttributes;
    cudaGraphMemsetNodeGetParams(node: usize, params: Ptr) = cuGraphMemsetNodeGetParams;
    cudaGraphMemsetNodeSetParams(node: usize, params: Ptr) = cuGraphMemsetNodeSetParams;
    cudaGraphHostNodeGetParams(node: usize, params: Ptr) = cuGraphHostNodeGetParams;
    cudaGraphHostNodeSetParams(node: usize, params: Ptr) = cuGraphHostNodeSetParams;
    cudaGraphChildGraphNodeGetGraph(node: usize, graph: Ptr) = cuGraphChildGraphNodeGetGraph;
    cudaGraphEventRecordNodeGetEvent(node: usize, event: Ptr) = cuGraphEventRecordNodeGetEvent;
    cudaGraphEventRecordNodeSetEvent(node: usize, event: usize) = cuGraphEventRecordNodeSetEvent;
    cudaGraphEventWaitNodeGetEvent(node: usize, event: Ptr) = cuGraphEventWaitNodeGetEvent;
    cudaGraphEventWaitNodeSetEvent(node: usize, event: usize) = cuGraphEventWaitNodeSetEvent;
    cudaGraphExecHostNodeSetParams(exec: usize, node: usize, params: Ptr) = cuGraphExecHostNodeSetParams;
    cudaGraphExecChildGraphNodeSetParams(exec: usize, node: usize, child: usize) = cuGraphExecChildGraphNodeSetParams;
    cudaGraphExecEventRecordNodeSetEvent(exec: usize, node: usize, event: usize) = cuGraphExecEventRecordNodeSetEvent;
    cudaGraphExecEventWaitNodeSetEvent(exec: usize, node: usize, event: usize) = cuGraphExecEventWaitNodeSetEvent;
    cudaGraphNodeGetType(node: usize, kind: Ptr) = cuGraphNodeGetType;
    cudaGraphNodeFindInClone(node: Ptr, original: usize, clone: usize) = cuGraphNodeFindInClone;
    #[cfg(cuda13)]
    cudaGraphNodeGetDependencies(node: usize, nodes: Ptr, data: Ptr, count: Ptr) = cuGraphNodeGetDependencies_v2;
    #[cfg(cuda13)]
    cudaGraphNodeGetDependentNodes(node: usize, nodes: Ptr, data: Ptr, count: Ptr) = cuGraphNodeGetDependentNodes_v2;
    cudaGraphNodeSetEnabled(exec: usize, node: usize, enabled: u32) = cuGraphNodeSetEnabled;
    cudaGraphNodeGetEnabled(exec: usize, node: usize, enabled: Ptr) = cuGraphNodeGetEnabled;
    cudaGraphNodeGetContainingGraph(node: usize, graph: Ptr) = cuGraphNodeGetContainingGraph;
    cudaGraphNodeGetLocalId(node: usize, id: Ptr) = cuGraphNodeGetLocalId;
    cudaGraphNodeGetToolsId(node: usize, id: Ptr) = cuGraphNodeGetToolsId;
    cudaGraphDestroyNode(node: usize) = cuGraphDestroyNode;
}

api! {
    #[cfg(cuda13)]
    fn cudaGraphAddNode(node: Ptr, graph: usize, after: Ptr, data: Ptr, count: usize, params: Ptr) {
        add(node, graph, after, data, count, params)
    }
    fn cudaGraphNodeGetParams(node: usize, params: Ptr) { describe(node, params) }
    fn cudaGraphNodeSetParams(node: usize, params: Ptr) {
        with_params(params, |made| driver::cuGraphNodeSetParams(node, made))
    }
    fn cudaGraphExecNodeSetParams(exec: usize, node: usize, params: Ptr) {
        with_params(params, |made| driver::cuGraphExecNodeSetParams(exec, node, made))
    }

    fn cudaGraphAddKernelNode(node: Ptr, graph: usize, after: Ptr, count: usize, params: Ptr) {
        driver::cuGraphAddKernelNode_v2(node, graph, after, count, Ptr::of(&kernel_node(params)?))
    }
    fn cudaGraphKernelNodeGetParams(node: usize, params: Ptr) {
        let mut found = KernelNode::default();
        driver::cuGraphKernelNodeGetParams_v2(node, Ptr::to(&mut found))?;
        found.describe(params)
    }
    fn cudaGraphKernelNodeSetParams(node: usize, params: Ptr) {
        driver::cuGraphKernelNodeSetParams_v2(node, Ptr::of(&kernel_node(params)?))
    }
    fn cudaGraphExecKernelNodeSetParams(exec: usize, node: usize, params: Ptr) {
        driver::cuGraphExecKernelNodeSetParams_v2(exec, node, Ptr::of(&kernel_node(params)?))
    }

    fn cudaGraphAddMemcpyNode(node: Ptr, graph: usize, after: Ptr, count: usize, params: Ptr) {
        add_copy(node, graph, after, count, &Copy3d::from_params(params)?)
    }
    fn cudaGraphAddMemcpyNode1D(
        node: Ptr, graph: usize, after: Ptr, count: usize, to: Ptr, from: Ptr, size: usize, _direction: u32,
    ) {
        add_copy(node, graph, after, count, &bytes(to, from, size))
    }
    fn cudaGraphAddMemcpyNodeToSymbol(
        node: Ptr, graph: usize, after: Ptr, count: usize, symbol: Ptr, from: Ptr, size: usize, offset: usize,
        _direction: u32,
    ) {
        add_copy(node, graph, after, count, &bytes(part(symbol, offset, size)?, from, size))
    }
    fn cudaGraphAddMemcpyNodeFromSymbol(
        node: Ptr, graph: usize, after: Ptr, count: usize, to: Ptr, symbol: Ptr, size: usize, offset: usize,
        _direction: u32,
    ) {
        add_copy(node, graph, after, count, &bytes(to, part(symbol, offset, size)?, size))
    }
    fn cudaGraphMemcpyNodeGetParams(node: usize, params: Ptr) {
        let mut found = Copy3d::default();
        driver::cuGraphMemcpyNodeGetParams(node, Ptr::to(&mut found))?;
        found.describe(params)
    }
    fn cudaGraphMemcpyNodeSetParams(node: usize, params: Ptr) { set_copy(node, &Copy3d::from_params(params)?) }
    fn cudaGraphMemcpyNodeSetParams1D(node: usize, to: Ptr, from: Ptr, size: usize, _direction: u32) {
        set_copy(node, &bytes(to, from, size))
    }
    fn cudaGraphMemcpyNodeSetParamsToSymbol(
        node: usize, symbol: Ptr, from: Ptr, size: usize, offset: usize, _direction: u32,
    ) {
        set_copy(node, &bytes(part(symbol, offset, size)?, from, size))
    }
    fn cudaGraphMemcpyNodeSetParamsFromSymbol(
        node: usize, to: Ptr, symbol: Ptr, size: usize, offset: usize, _direction: u32,
    ) {
        set_copy(node, &bytes(to, part(symbol, offset, size)?, size))
    }
    fn cudaGraphExecMemcpyNodeSetParams(exec: usize, node: usize, params: Ptr) {
        set_copy_in(exec, node, &Copy3d::from_params(params)?)
    }
    fn cudaGraphExecMemcpyNodeSetParams1D(
        exec: usize, node: usize, to: Ptr, from: Ptr, size: usize, _direction: u32,
    ) {
        set_copy_in(exec, node, &bytes(to, from, size))
    }
    fn cudaGraphExecMemcpyNodeSetParamsToSymbol(
        exec: usize, node: usize, symbol: Ptr, from: Ptr, size: usize, offset: usize, _direction: u32,
    ) {
        set_copy_in(exec, node, &bytes(part(symbol, offset, size)?, from, size))
    }
    fn cudaGraphExecMemcpyNodeSetParamsFromSymbol(
        exec: usize, node: usize, to: Ptr, symbol: Ptr, size: usize, offset: usize, _direction: u32,
    ) {
        set_copy_in(exec, node, &bytes(to, part(symbol, offset, size)?, size))
    }

    fn cudaGraphAddMemsetNode(node: Ptr, graph: usize, after: Ptr, count: usize, params: Ptr) {
        driver::cuGraphAddMemsetNode(node, graph, after, count, params, 0)
    }
    fn cudaGraphExecMemsetNodeSetParams(exec: usize, node: usize, params: Ptr) {
        driver::cuGraphExecMemsetNodeSetParams(exec, node, params, 0)
    }
}
