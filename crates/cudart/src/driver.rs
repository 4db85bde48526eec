//! The driver API's functions that the runtime calls, found in `libcuda.so.1` by name.
#![allow(unsafe_code)]

use crate::{
    error::{Code, Outcome},
    raw::Ptr,
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

/// The address of a function of the driver; 0 where there is none.
fn find(name: &CStr) -> usize {
    static LIBRARY: OnceLock<usize> = OnceLock::new();
    let library = *LIBRARY.get_or_init(|| {
        // SAFETY: the name ends with a zero; the library's initialisers are the driver's business.
        unsafe { dlopen(c"libcuda.so.1".as_ptr(), RTLD_NOW | RTLD_GLOBAL) }.expose_provenance()
    });
    if library == 0 {
        return 0;
    }
    // SAFETY: the library stays loaded, and the name ends with a zero.
    unsafe { dlsym(std::ptr::with_exposed_provenance_mut(library), name.as_ptr()) }.expose_provenance()
}

macro_rules! driver {
    ($($name:ident($($arg:ident: $ty:ty),* $(,)?);)*) => {
        $(
            #[allow(non_snake_case, clippy::too_many_arguments)]
            pub fn $name($($arg: $ty),*) -> Outcome {
                static ADDRESS: OnceLock<usize> = OnceLock::new();
                let name = concat!(stringify!($name), "\0");
                let address = *ADDRESS.get_or_init(|| CStr::from_bytes_with_nul(name.as_bytes()).map_or(0, find));
                if address == 0 {
                    return Err(Code::INSUFFICIENT_DRIVER);
                }
                // SAFETY: the driver exports the function with these arguments (CUDA Driver API).
                let function = unsafe { std::mem::transmute::<usize, unsafe extern "C" fn($($ty),*) -> u32>(address) };
                // SAFETY: addresses come from the runtime's caller, who promises the same of them as of the driver's.
                Code::outcome(unsafe { function($($arg),*) })
            }
        )*
    };
}

driver! {
    cuInit(flags: u32);
    cuDriverGetVersion(version: Ptr);
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
    cuCtxSynchronize();
    cuCtxSetLimit(limit: u32, value: usize);
    cuCtxGetLimit(value: Ptr, limit: u32);
    cuCtxSetCacheConfig(config: u32);
    cuCtxGetCacheConfig(config: Ptr);
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
    cuLibraryGetKernel(kernel: Ptr, library: usize, name: Ptr);
    cuLibraryGetKernelCount(count: Ptr, library: usize);
    cuLibraryEnumerateKernels(kernels: Ptr, room: u32, library: usize);
    cuLibraryGetGlobal(address: Ptr, bytes: Ptr, library: usize, name: Ptr);
    cuLibraryGetManaged(address: Ptr, bytes: Ptr, library: usize, name: Ptr);
    cuFuncGetAttribute(value: Ptr, attribute: u32, function: usize);
    cuFuncSetAttribute(function: usize, attribute: u32, value: i32);
    cuFuncGetName(name: Ptr, function: usize);
    cuFuncGetParamInfo(function: usize, index: usize, offset: Ptr, size: Ptr);
    cuFuncGetParamCount(function: usize, count: Ptr);
    cuLaunchKernel(
        function: usize, gx: u32, gy: u32, gz: u32, bx: u32, by: u32, bz: u32, shared: u32, stream: usize, params: Ptr,
        extra: Ptr,
    );
    cuLaunchKernelEx(config: Ptr, function: usize, params: Ptr, extra: Ptr);
    cuLaunchCooperativeKernel(
        function: usize, gx: u32, gy: u32, gz: u32, bx: u32, by: u32, bz: u32, shared: u32, stream: usize, params: Ptr,
    );
    cuLaunchHostFunc(stream: usize, function: Ptr, data: Ptr);
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
    cuMemAllocAsync(address: Ptr, bytes: usize, stream: usize);
    cuMemAllocFromPoolAsync(address: Ptr, bytes: usize, pool: usize, stream: usize);
    cuMemFreeAsync(address: u64, stream: usize);
    cuMemcpyAsync(to: u64, from: u64, bytes: usize, stream: usize);
    cuMemcpyHtoDAsync_v2(to: u64, from: Ptr, bytes: usize, stream: usize);
    cuMemcpyDtoHAsync_v2(to: Ptr, from: u64, bytes: usize, stream: usize);
    cuMemcpyDtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: usize);
    cuMemcpy3DAsync_v2(copy: Ptr, stream: usize);
    cuMemsetD2D8Async(to: u64, pitch: usize, value: u8, width: usize, height: usize, stream: usize);
    cuMemsetD8Async(to: u64, value: u8, count: usize, stream: usize);
    cuPointerGetAttribute(value: Ptr, attribute: u32, address: u64);
    cuDeviceGetDefaultMemPool(pool: Ptr, device: i32);
    cuMemPoolCreate(pool: Ptr, properties: Ptr);
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
    cuSurfObjectCreate(object: Ptr, resource: Ptr);
    cuSurfObjectDestroy(object: u64);
    cuStreamCreateWithPriority(stream: Ptr, flags: u32, priority: i32);
    cuStreamDestroy_v2(stream: usize);
    cuStreamSynchronize(stream: usize);
    cuStreamQuery(stream: usize);
    cuStreamWaitEvent(stream: usize, event: usize, flags: u32);
    cuStreamAddCallback(stream: usize, callback: Ptr, data: Ptr, flags: u32);
    cuStreamGetPriority(stream: usize, priority: Ptr);
    cuStreamGetFlags(stream: usize, flags: Ptr);
    cuStreamGetId(stream: usize, id: Ptr);
    cuStreamBeginCapture_v2(stream: usize, mode: u32);
    cuStreamBeginCaptureToGraph(stream: usize, graph: usize, after: Ptr, edges: Ptr, count: usize, mode: u32);
    cuStreamEndCapture(stream: usize, graph: Ptr);
    cuStreamIsCapturing(stream: usize, status: Ptr);
    cuStreamGetCaptureInfo_v3(stream: usize, status: Ptr, id: Ptr, graph: Ptr, after: Ptr, edges: Ptr, count: Ptr);
    cuEventCreate(event: Ptr, flags: u32);
    cuEventRecordWithFlags(event: usize, stream: usize, flags: u32);
    cuEventQuery(event: usize);
    cuEventSynchronize(event: usize);
    cuEventDestroy_v2(event: usize);
    cuEventElapsedTime(ms: Ptr, start: usize, end: usize);
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
    cuGraphUpload(exec: usize, stream: usize);
    cuGraphLaunch(exec: usize, stream: usize);
    cuGraphExecDestroy(exec: usize);
}
