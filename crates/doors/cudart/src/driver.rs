//! The functions of the driver API that the runtime calls, resolved in `libcuda.so.1` by name.
#![allow(unsafe_code)]

use crate::{
    error::{Code, Outcome},
    raw::Ptr,
    stream::Stream,
};
use std::{
    ffi::{CStr, c_char, c_int, c_void},
    sync::OnceLock,
};

unsafe extern "C" {
    fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

const RTLD_NOW: c_int = 2;
const RTLD_GLOBAL: c_int = 0x100;

/// Loads the driver's library, which starts nothing, unless it is loaded; its address, 0 if there is none.
pub fn load() -> usize {
    static LIBRARY: OnceLock<usize> = OnceLock::new();
    *LIBRARY.get_or_init(|| {
        // SAFETY: the name is NUL-terminated; the library's initializers depend on nothing of ours.
        unsafe { dlopen(c"libcuda.so.1".as_ptr(), RTLD_NOW | RTLD_GLOBAL) }.expose_provenance()
    })
}

/// The address of a driver function; 0 if there is none.
fn find(name: &CStr) -> usize {
    let library = load();
    if library == 0 {
        return 0;
    }
    // SAFETY: the library is never unloaded, and the name is NUL-terminated.
    unsafe { dlsym(std::ptr::with_exposed_provenance_mut(library), name.as_ptr()) }.expose_provenance()
}

/// `cudaIpcMemHandle_t` and `cudaIpcEventHandle_t`, which travel by value.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct IpcHandle([u64; 8]);

/// Conversion of arguments for the driver: a default stream becomes the one meant by the function that was called.
trait Crossing: Sized {
    fn crossing(self) -> Self {
        self
    }
}

impl Crossing for Ptr {}
impl Crossing for usize {}
impl Crossing for u64 {}
impl Crossing for u32 {}
impl Crossing for i32 {}
impl Crossing for f32 {}
impl Crossing for u8 {}
impl Crossing for IpcHandle {}
impl Crossing for Stream {
    fn crossing(self) -> Stream {
        self.driver_handle()
    }
}

macro_rules! driver {
    ($($name:ident($($arg:ident: $ty:ty),* $(,)?);)*) => {
        $(
            // No release calls every function.
            #[allow(non_snake_case, dead_code, clippy::too_many_arguments)]
            pub fn $name($($arg: $ty),*) -> Outcome {
                static ADDRESS: OnceLock<usize> = OnceLock::new();
                let name = concat!(stringify!($name), "\0");
                let address = *ADDRESS.get_or_init(|| CStr::from_bytes_with_nul(name.as_bytes()).map_or(0, find));
                if address == 0 {
                    return Err(Code::INSUFFICIENT_DRIVER);
                }
                // SAFETY: the driver exports the function with these arguments (CUDA Driver API).
                let function = unsafe { std::mem::transmute::<usize, unsafe extern "C" fn($($ty),*) -> u32>(address) };
                // SAFETY: pointers come from the caller of the runtime API, who guarantees the same as the driver API
                // requires.
                Code::outcome(unsafe { function($($arg.crossing()),*) })
            }
        )*
    };
}

driver! {
    cuInit(flags: u32);
    cuDriverGetVersion(version: Ptr);
    margayRuntimeFailed(function: Ptr, error: Ptr, meaning: Ptr, why: Ptr);
    cuGetProcAddress_v2(name: Ptr, address: Ptr, version: i32, flags: u64, status: Ptr);
    cuDeviceGetCount(count: Ptr);
    cuDeviceGetName(name: Ptr, len: i32, device: i32);
    cuDeviceGetUuid_v2(uuid: Ptr, device: i32);
    cuDeviceTotalMem_v2(bytes: Ptr, device: i32);
    cuDeviceGetAttribute(value: Ptr, attribute: u32, device: i32);
    cuDeviceGetPCIBusId(id: Ptr, len: i32, device: i32);
    cuDeviceGetByPCIBusId(device: Ptr, id: Ptr);
    cuDeviceCanAccessPeer(can: Ptr, device: i32, peer: i32);
    cuDeviceGetP2PAttribute(value: Ptr, attribute: u32, from: i32, to: i32);
    cuDevicePrimaryCtxRetain(context: Ptr, device: i32);
    cuDevicePrimaryCtxReset_v2(device: i32);
    cuDevicePrimaryCtxSetFlags_v2(device: i32, flags: u32);
    cuDevicePrimaryCtxGetState(device: i32, flags: Ptr, active: Ptr);
    cuCtxGetCurrent(context: Ptr);
    cuCtxSetCurrent(context: usize);
    cuCtxGetDevice(device: Ptr);
    cuCtxEnablePeerAccess(context: usize, flags: u32);
    cuCtxDisablePeerAccess(context: usize);
    cuCtxSynchronize();
    cuCtxSynchronize_v2(context: usize);
    cuCtxGetId(context: usize, id: Ptr);
    cuCtxGetDevResource(context: usize, resource: Ptr, kind: u32);
    cuCtxRecordEvent(context: usize, event: usize);
    cuCtxWaitEvent(context: usize, event: usize);
    cuDeviceGetDevResource(device: i32, resource: Ptr, kind: u32);
    cuDevSmResourceSplitByCount(result: Ptr, groups: Ptr, input: Ptr, rest: Ptr, flags: u32, least: u32);
    cuDevSmResourceSplit(result: Ptr, count: u32, input: Ptr, rest: Ptr, flags: u32, groups: Ptr);
    cuDevResourceGenerateDesc(descriptor: Ptr, resources: Ptr, count: u32);
    cuGreenCtxCreate(context: Ptr, descriptor: usize, device: i32, flags: u32);
    cuGreenCtxDestroy(context: usize);
    cuGreenCtxGetDevResource(context: usize, resource: Ptr, kind: u32);
    cuGreenCtxGetId(context: usize, id: Ptr);
    cuGreenCtxStreamCreate(stream: Ptr, context: usize, flags: u32, priority: i32);
    cuGreenCtxRecordEvent(context: usize, event: usize);
    cuGreenCtxWaitEvent(context: usize, event: usize);
    cuStreamGetDevResource(stream: Stream, resource: Ptr, kind: u32);
    cuCtxSetLimit(limit: u32, value: usize);
    cuCtxGetLimit(value: Ptr, limit: u32);
    cuCtxSetCacheConfig(config: u32);
    cuCtxGetCacheConfig(config: Ptr);
    cuCtxGetSharedMemConfig(config: Ptr);
    cuCtxSetSharedMemConfig(config: u32);
    cuCtxGetStreamPriorityRange(least: Ptr, greatest: Ptr);
    cuLibraryLoadData(
        library: Ptr, image: Ptr, options: Ptr, values: Ptr, count: u32, library_options: Ptr, library_values: Ptr,
        library_count: u32,
    );
    cuLibraryLoadFromFile(
        library: Ptr, name: Ptr, options: Ptr, values: Ptr, count: u32, library_options: Ptr, library_values: Ptr,
        library_count: u32,
    );
    cuLibraryUnload(library: usize);
    margayLaunchRefused();
    cuLibraryGetKernel(kernel: Ptr, library: usize, name: Ptr);
    cuLibraryGetKernelCount(count: Ptr, library: usize);
    cuLibraryEnumerateKernels(kernels: Ptr, room: u32, library: usize);
    cuLibraryGetGlobal(address: Ptr, bytes: Ptr, library: usize, name: Ptr);
    cuLibraryGetManaged(address: Ptr, bytes: Ptr, library: usize, name: Ptr);
    cuKernelGetFunction(function: Ptr, kernel: usize);
    cuKernelSetAttribute(attribute: u32, value: i32, kernel: usize, device: i32);
    cuFuncSetSharedMemConfig(function: usize, config: u32);
    cuFuncGetAttribute(value: Ptr, attribute: u32, function: usize);
    cuFuncSetAttribute(function: usize, attribute: u32, value: i32);
    cuFuncGetName(name: Ptr, function: usize);
    cuFuncGetParamInfo(function: usize, index: usize, offset: Ptr, size: Ptr);
    cuFuncGetParamCount(function: usize, count: Ptr);
    cuLaunchKernel(
        function: usize, gx: u32, gy: u32, gz: u32, bx: u32, by: u32, bz: u32, shared: u32, stream: Stream, params: Ptr,
        extra: Ptr,
    );
    cuLaunchKernelEx(config: Ptr, function: usize, params: Ptr, extra: Ptr);
    cuLaunchCooperativeKernel(
        function: usize, gx: u32, gy: u32, gz: u32, bx: u32, by: u32, bz: u32, shared: u32, stream: Stream, params: Ptr,
    );
    cuLaunchHostFunc_v2(stream: Stream, function: Ptr, data: Ptr, mode: u32);
    cuLaunchHostFunc(stream: Stream, function: Ptr, data: Ptr);
    cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        count: Ptr, function: usize, block: i32, dynamic: usize, flags: u32,
    );
    cuOccupancyAvailableDynamicSMemPerBlock(bytes: Ptr, function: usize, ctas: i32, block: i32);
    cuOccupancyMaxPotentialClusterSize(size: Ptr, function: usize, config: Ptr);
    cuOccupancyMaxActiveClusters(count: Ptr, function: usize, config: Ptr);
    cuMemGetInfo_v2(free: Ptr, total: Ptr);
    cuMemAlloc_v2(address: Ptr, bytes: usize);
    cuMemAllocPitch_v2(address: Ptr, pitch: Ptr, width: usize, height: usize, element: u32);
    cuMemFree_v2(address: u64);
    cuMemAllocManaged(address: Ptr, bytes: usize, flags: u32);
    cuMemHostAlloc(address: Ptr, bytes: usize, flags: u32);
    cuMemFreeHost(address: Ptr);
    cuMemHostRegister_v2(address: Ptr, bytes: usize, flags: u32);
    cuMemHostUnregister(address: Ptr);
    cuMemHostGetDevicePointer_v2(device: Ptr, address: Ptr, flags: u32);
    cuMemHostGetFlags(flags: Ptr, address: Ptr);
    cuMemAllocAsync(address: Ptr, bytes: usize, stream: Stream);
    cuMemAllocFromPoolAsync(address: Ptr, bytes: usize, pool: usize, stream: Stream);
    cuMemFreeAsync(address: u64, stream: Stream);
    cuMemcpyAsync(to: u64, from: u64, bytes: usize, stream: Stream);
    cuMemcpyHtoDAsync_v2(to: u64, from: Ptr, bytes: usize, stream: Stream);
    cuMemcpyDtoHAsync_v2(to: Ptr, from: u64, bytes: usize, stream: Stream);
    cuMemcpyDtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: Stream);
    cuMemcpyPeer(to: u64, to_context: usize, from: u64, from_context: usize, bytes: usize);
    cuMemcpy3DAsync_v2(copy: Ptr, stream: Stream);
    cuMemsetD2D8Async(to: u64, pitch: usize, value: u8, width: usize, height: usize, stream: Stream);
    cuMemsetD8Async(to: u64, value: u8, count: usize, stream: Stream);
    cuPointerGetAttribute(value: Ptr, attribute: u32, address: u64);
    cuDeviceGetDefaultMemPool(pool: Ptr, device: i32);
    cuDeviceGetMemPool(pool: Ptr, device: i32);
    cuDeviceSetMemPool(device: i32, pool: usize);
    cuDeviceGetTexture1DLinearMaxWidth(width: Ptr, format: u32, channels: u32, device: i32);
    cuDeviceGetGraphMemAttribute(device: i32, attribute: u32, value: Ptr);
    cuDeviceSetGraphMemAttribute(device: i32, attribute: u32, value: Ptr);
    cuDeviceGraphMemTrim(device: i32);
    cuMemGetDefaultMemPool(pool: Ptr, location: Ptr, kind: u32);
    cuMemGetMemPool(pool: Ptr, location: Ptr, kind: u32);
    cuMemSetMemPool(location: Ptr, kind: u32, pool: usize);
    cuMemPoolSetAccess(pool: usize, rights: Ptr, count: usize);
    cuMemPoolGetAccess(flags: Ptr, pool: usize, location: Ptr);
    cuMemAdvise_v2(address: Ptr, bytes: usize, advice: u32, location: u64);
    cuMemPrefetchAsync_v2(address: Ptr, bytes: usize, location: u64, flags: u32, stream: Stream);
    cuMemRangeGetAttribute(data: Ptr, size: usize, attribute: u32, address: Ptr, bytes: usize);
    cuMemRangeGetAttributes(data: Ptr, sizes: Ptr, attributes: Ptr, count: usize, address: Ptr, bytes: usize);
    cuMemcpyBatchAsync_v2(
        to: Ptr, from: Ptr, sizes: Ptr, count: usize, attributes: Ptr, which: Ptr, attribute_count: usize, stream: Stream,
    );
    cuMemcpy3DBatchAsync_v2(count: usize, copies: Ptr, flags: u64, stream: Stream);
    cuMemcpyWithAttributesAsync(to: Ptr, from: Ptr, bytes: usize, attributes: Ptr, stream: Stream);
    cuMemcpy3DWithAttributesAsync(copy: Ptr, flags: u64, stream: Stream);
    cuMemPrefetchBatchAsync(
        addresses: Ptr, sizes: Ptr, count: usize, locations: Ptr, which: Ptr, location_count: usize, flags: u64,
        stream: Stream,
    );
    cuMemDiscardBatchAsync(addresses: Ptr, sizes: Ptr, count: usize, flags: u64, stream: Stream);
    cuMemDiscardAndPrefetchBatchAsync(
        addresses: Ptr, sizes: Ptr, count: usize, locations: Ptr, which: Ptr, location_count: usize, flags: u64,
        stream: Stream,
    );
    cuMemPoolCreate(pool: Ptr, properties: Ptr);
    cuMemPoolExportToShareableHandle(handle: Ptr, pool: usize, kind: u32, flags: u64);
    cuMemPoolImportFromShareableHandle(pool: Ptr, handle: Ptr, kind: u32, flags: u64);
    cuMemPoolExportPointer(handle: Ptr, address: Ptr);
    cuMemPoolImportPointer(address: Ptr, pool: usize, handle: Ptr);
    cuIpcGetMemHandle(handle: Ptr, address: Ptr);
    cuIpcOpenMemHandle_v2(address: Ptr, handle: IpcHandle, flags: u32);
    cuIpcCloseMemHandle(address: Ptr);
    cuIpcGetEventHandle(handle: Ptr, event: usize);
    cuIpcOpenEventHandle(event: Ptr, handle: IpcHandle);
    cuMemPoolDestroy(pool: usize);
    cuMemPoolTrimTo(pool: usize, bytes: usize);
    cuMemPoolSetAttribute(pool: usize, attribute: u32, value: Ptr);
    cuMemPoolGetAttribute(pool: usize, attribute: u32, value: Ptr);
    cuArray3DCreate_v2(array: Ptr, descriptor: Ptr);
    cuArray3DGetDescriptor_v2(descriptor: Ptr, array: usize);
    cuArrayDestroy(array: usize);
    cuMipmappedArrayCreate(array: Ptr, descriptor: Ptr, levels: u32);
    cuMipmappedArrayGetLevel(level: Ptr, array: usize, number: u32);
    cuMipmappedArrayDestroy(array: usize);
    cuTexObjectCreate(object: Ptr, resource: Ptr, options: Ptr, view: Ptr);
    cuTexObjectDestroy(object: u64);
    cuTexObjectGetResourceDesc(resource: Ptr, object: u64);
    cuTexObjectGetTextureDesc(options: Ptr, object: u64);
    cuTexObjectGetResourceViewDesc(view: Ptr, object: u64);
    cuSurfObjectGetResourceDesc(resource: Ptr, object: u64);
    cuSurfObjectCreate(object: Ptr, resource: Ptr);
    cuSurfObjectDestroy(object: u64);
    cuLibraryGetModule(module: Ptr, library: usize);
    cuMemGetAddressRange_v2(base: Ptr, bytes: Ptr, address: u64);
    cuModuleGetTexRef(reference: Ptr, module: usize, name: Ptr);
    cuModuleGetSurfRef(reference: Ptr, module: usize, name: Ptr);
    cuSurfRefSetArray(reference: usize, array: usize, flags: u32);
    cuTexRefSetArray(reference: usize, array: usize, flags: u32);
    cuTexRefSetMipmappedArray(reference: usize, array: usize, flags: u32);
    cuTexRefSetAddress_v2(offset: Ptr, reference: usize, address: u64, bytes: usize);
    cuTexRefSetAddress2D_v3(reference: usize, plane: Ptr, address: u64, pitch: usize);
    cuTexRefSetFormat(reference: usize, format: u32, channels: i32);
    cuTexRefSetAddressMode(reference: usize, dimension: i32, mode: u32);
    cuTexRefSetFilterMode(reference: usize, mode: u32);
    cuTexRefSetFlags(reference: usize, flags: u32);
    cuTexRefSetMaxAnisotropy(reference: usize, limit: u32);
    cuTexRefSetMipmapFilterMode(reference: usize, mode: u32);
    cuTexRefSetMipmapLevelBias(reference: usize, bias: f32);
    cuTexRefSetMipmapLevelClamp(reference: usize, least: f32, most: f32);
    cuLogsRegisterCallback(callback: Ptr, data: Ptr, handle: Ptr);
    cuLogsUnregisterCallback(handle: usize);
    cuLogsCurrent(iterator: Ptr, flags: u32);
    cuLogsDumpToFile(iterator: Ptr, path: Ptr, flags: u32);
    cuLogsDumpToMemory(iterator: Ptr, buffer: Ptr, size: Ptr, flags: u32);
    cuStreamCreateWithPriority(stream: Ptr, flags: u32, priority: i32);
    cuStreamDestroy_v2(stream: Stream);
    cuStreamSynchronize(stream: Stream);
    cuStreamQuery(stream: Stream);
    cuStreamWaitEvent(stream: Stream, event: usize, flags: u32);
    cuStreamAddCallback(stream: Stream, callback: Ptr, data: Ptr, flags: u32);
    cuStreamGetPriority(stream: Stream, priority: Ptr);
    cuStreamGetFlags(stream: Stream, flags: Ptr);
    cuStreamGetId(stream: Stream, id: Ptr);
    cuStreamAttachMemAsync(stream: Stream, address: Ptr, bytes: usize, flags: u32);
    cuStreamCopyAttributes(to: Stream, from: Stream);
    cuStreamGetAttribute(stream: Stream, attribute: u32, value: Ptr);
    cuStreamSetAttribute(stream: Stream, attribute: u32, value: Ptr);
    cuStreamGetDevice(stream: Stream, device: Ptr);
    cuThreadExchangeStreamCaptureMode(mode: Ptr);
    cuStreamUpdateCaptureDependencies_v2(stream: Stream, nodes: Ptr, data: Ptr, count: usize, flags: u32);
    cuStreamBeginCapture_v2(stream: Stream, mode: u32);
    cuStreamBeginCaptureToGraph(stream: Stream, graph: usize, after: Ptr, edges: Ptr, count: usize, mode: u32);
    cuStreamEndCapture(stream: Stream, graph: Ptr);
    cuStreamIsCapturing(stream: Stream, status: Ptr);
    cuStreamGetCaptureInfo_v3(stream: Stream, status: Ptr, id: Ptr, graph: Ptr, after: Ptr, edges: Ptr, count: Ptr);
    cuEventCreate(event: Ptr, flags: u32);
    cuEventRecordWithFlags(event: usize, stream: Stream, flags: u32);
    cuEventQuery(event: usize);
    cuEventSynchronize(event: usize);
    cuEventDestroy_v2(event: usize);
    cuEventElapsedTime(ms: Ptr, start: usize, end: usize);
    cuMemAdvise(address: Ptr, bytes: usize, advice: u32, device: i32);
    cuMemPrefetchAsync(address: Ptr, bytes: usize, device: i32, stream: Stream);
    cuMemcpyBatchAsync(
        to: Ptr, from: Ptr, sizes: Ptr, count: usize, attributes: Ptr, which: Ptr, attribute_count: usize, failed: Ptr,
        stream: Stream,
    );
    cuMemcpy3DBatchAsync(count: usize, copies: Ptr, failed: Ptr, flags: u64, stream: Stream);
    cuStreamGetCaptureInfo(stream: Stream, status: Ptr, id: Ptr);
    cuStreamGetCaptureInfo_v2(stream: Stream, status: Ptr, id: Ptr, graph: Ptr, after: Ptr, count: Ptr);
    cuStreamUpdateCaptureDependencies(stream: Stream, nodes: Ptr, count: usize, flags: u32);
    cuGraphGetEdges(graph: usize, from: Ptr, to: Ptr, count: Ptr);
    cuGraphAddDependencies(graph: usize, from: Ptr, to: Ptr, count: usize);
    cuGraphRemoveDependencies(graph: usize, from: Ptr, to: Ptr, count: usize);
    cuGraphNodeGetDependencies(node: usize, nodes: Ptr, count: Ptr);
    cuGraphNodeGetDependentNodes(node: usize, nodes: Ptr, count: Ptr);
    cuGraphExecUpdate(exec: usize, graph: usize, node: Ptr, result: Ptr);
    cuGraphCreate(graph: Ptr, flags: u32);
    cuGraphDestroy(graph: usize);
    cuGraphAddKernelNode_v2(node: Ptr, graph: usize, after: Ptr, count: usize, params: Ptr);
    cuGraphAddMemcpyNode(node: Ptr, graph: usize, after: Ptr, count: usize, params: Ptr, context: usize);
    cuGraphAddMemsetNode(node: Ptr, graph: usize, after: Ptr, count: usize, params: Ptr, context: usize);
    cuGraphAddHostNode(node: Ptr, graph: usize, after: Ptr, count: usize, params: Ptr);
    cuGraphAddEmptyNode(node: Ptr, graph: usize, after: Ptr, count: usize);
    cuGraphAddChildGraphNode(node: Ptr, graph: usize, after: Ptr, count: usize, child: usize);
    cuGraphAddEventRecordNode(node: Ptr, graph: usize, after: Ptr, count: usize, event: usize);
    cuGraphAddEventWaitNode(node: Ptr, graph: usize, after: Ptr, count: usize, event: usize);
    cuGraphAddNode_v2(node: Ptr, graph: usize, after: Ptr, data: Ptr, count: usize, params: Ptr);
    cuGraphNodeGetParams(node: usize, params: Ptr);
    cuGraphNodeSetParams(node: usize, params: Ptr);
    cuGraphExecNodeSetParams(exec: usize, node: usize, params: Ptr);
    cuGraphAddMemAllocNode(node: Ptr, graph: usize, after: Ptr, count: usize, params: Ptr);
    cuGraphAddMemFreeNode(node: Ptr, graph: usize, after: Ptr, count: usize, address: Ptr);
    cuGraphMemAllocNodeGetParams(node: usize, params: Ptr);
    cuGraphMemFreeNodeGetParams(node: usize, address: Ptr);
    cuGraphKernelNodeGetParams_v2(node: usize, params: Ptr);
    cuGraphKernelNodeGetAttribute(node: usize, attribute: u32, value: Ptr);
    cuGraphKernelNodeSetAttribute(node: usize, attribute: u32, value: Ptr);
    cuGraphKernelNodeCopyAttributes(to: usize, from: usize);
    cuGraphMemcpyNodeGetParams(node: usize, params: Ptr);
    cuGraphMemcpyNodeSetParams(node: usize, params: Ptr);
    cuGraphMemsetNodeGetParams(node: usize, params: Ptr);
    cuGraphMemsetNodeSetParams(node: usize, params: Ptr);
    cuGraphHostNodeGetParams(node: usize, params: Ptr);
    cuGraphHostNodeSetParams(node: usize, params: Ptr);
    cuGraphChildGraphNodeGetGraph(node: usize, graph: Ptr);
    cuGraphEventRecordNodeGetEvent(node: usize, event: Ptr);
    cuGraphEventRecordNodeSetEvent(node: usize, event: usize);
    cuGraphEventWaitNodeGetEvent(node: usize, event: Ptr);
    cuGraphEventWaitNodeSetEvent(node: usize, event: usize);
    cuGraphExecMemcpyNodeSetParams(exec: usize, node: usize, params: Ptr, context: usize);
    cuGraphExecMemsetNodeSetParams(exec: usize, node: usize, params: Ptr, context: usize);
    cuGraphExecHostNodeSetParams(exec: usize, node: usize, params: Ptr);
    cuGraphExecChildGraphNodeSetParams(exec: usize, node: usize, child: usize);
    cuGraphExecEventRecordNodeSetEvent(exec: usize, node: usize, event: usize);
    cuGraphExecEventWaitNodeSetEvent(exec: usize, node: usize, event: usize);
    cuGraphNodeFindInClone(node: Ptr, original: usize, clone: usize);
    cuGraphNodeGetDependencies_v2(node: usize, nodes: Ptr, data: Ptr, count: Ptr);
    cuGraphNodeGetDependentNodes_v2(node: usize, nodes: Ptr, data: Ptr, count: Ptr);
    cuGraphNodeSetEnabled(exec: usize, node: usize, enabled: u32);
    cuGraphNodeGetEnabled(exec: usize, node: usize, enabled: Ptr);
    cuGraphNodeGetContainingGraph(node: usize, graph: Ptr);
    cuGraphNodeGetLocalId(node: usize, id: Ptr);
    cuGraphNodeGetToolsId(node: usize, id: Ptr);
    cuGraphGetId(graph: usize, id: Ptr);
    cuGraphExecGetId(exec: usize, id: Ptr);
    cuGraphExecGetFlags(exec: usize, flags: Ptr);
    cuGraphInstantiateWithParams(exec: Ptr, graph: usize, params: Ptr);
    cuGraphDebugDotPrint(graph: usize, path: Ptr, flags: u32);
    cuGraphConditionalHandleCreate(handle: Ptr, graph: usize, context: usize, default: u32, flags: u32);
    cuUserObjectCreate(object: Ptr, data: Ptr, destroy: Ptr, references: u32, flags: u32);
    cuUserObjectRetain(object: usize, count: u32);
    cuUserObjectRelease(object: usize, count: u32);
    cuGraphRetainUserObject(graph: usize, object: usize, count: u32, flags: u32);
    cuGraphReleaseUserObject(graph: usize, object: usize, count: u32);
    cuGraphKernelNodeSetParams_v2(node: usize, params: Ptr);
    cuGraphExecKernelNodeSetParams_v2(exec: usize, node: usize, params: Ptr);
    cuGraphClone(copy: Ptr, graph: usize);
    cuGraphNodeGetType(node: usize, kind: Ptr);
    cuGraphGetNodes(graph: usize, nodes: Ptr, count: Ptr);
    cuGraphGetRootNodes(graph: usize, nodes: Ptr, count: Ptr);
    cuGraphGetEdges_v2(graph: usize, from: Ptr, to: Ptr, edges: Ptr, count: Ptr);
    cuGraphAddDependencies_v2(graph: usize, from: Ptr, to: Ptr, edges: Ptr, count: usize);
    cuGraphRemoveDependencies_v2(graph: usize, from: Ptr, to: Ptr, edges: Ptr, count: usize);
    cuGraphDestroyNode(node: usize);
    cuGraphInstantiateWithFlags(exec: Ptr, graph: usize, flags: u64);
    cuGraphExecUpdate_v2(exec: usize, graph: usize, result: Ptr);
    cuGraphUpload(exec: usize, stream: Stream);
    cuGraphLaunch(exec: usize, stream: Stream);
    cuGraphExecDestroy(exec: usize);
}
