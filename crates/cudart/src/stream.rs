//! Streams (CUDA Runtime API, "Stream Management") and libraries ("Library Management").

use crate::{
    api::{api, same},
    driver,
    raw::Ptr,
};

same! {
    cudaStreamCreateWithPriority(stream: Ptr, flags: u32, priority: i32) = cuStreamCreateWithPriority;
    cudaStreamDestroy(stream: usize) = cuStreamDestroy_v2;
    cudaStreamSynchronize(stream: usize) = cuStreamSynchronize;
    cudaStreamQuery(stream: usize) = cuStreamQuery;
    cudaStreamWaitEvent(stream: usize, event: usize, flags: u32) = cuStreamWaitEvent;
    cudaStreamAddCallback(stream: usize, callback: Ptr, data: Ptr, flags: u32) = cuStreamAddCallback;
    cudaLaunchHostFunc(stream: usize, function: Ptr, data: Ptr) = cuLaunchHostFunc;
    cudaStreamGetPriority(stream: usize, priority: Ptr) = cuStreamGetPriority;
    cudaStreamGetFlags(stream: usize, flags: Ptr) = cuStreamGetFlags;
    cudaStreamGetId(stream: usize, id: Ptr) = cuStreamGetId;
    cudaStreamBeginCapture(stream: usize, mode: u32) = cuStreamBeginCapture_v2;
    cudaStreamBeginCaptureToGraph(stream: usize, graph: usize, after: Ptr, edges: Ptr, count: usize, mode: u32) = cuStreamBeginCaptureToGraph;
    cudaStreamEndCapture(stream: usize, graph: Ptr) = cuStreamEndCapture;
    cudaStreamIsCapturing(stream: usize, status: Ptr) = cuStreamIsCapturing;
    cudaStreamGetCaptureInfo(stream: usize, status: Ptr, id: Ptr, graph: Ptr, after: Ptr, edges: Ptr, count: Ptr) = cuStreamGetCaptureInfo_v3;
    cudaLibraryLoadData(library: Ptr, image: Ptr, options: Ptr, values: Ptr, count: u32, library_options: Ptr, library_values: Ptr, library_count: u32) = cuLibraryLoadData;
    cudaLibraryLoadFromFile(library: Ptr, name: Ptr, options: Ptr, values: Ptr, count: u32, library_options: Ptr, library_values: Ptr, library_count: u32) = cuLibraryLoadFromFile;
    cudaLibraryUnload(library: usize) = cuLibraryUnload;
    cudaLibraryGetKernel(kernel: Ptr, library: usize, name: Ptr) = cuLibraryGetKernel;
    cudaLibraryGetKernelCount(count: Ptr, library: usize) = cuLibraryGetKernelCount;
    cudaLibraryEnumerateKernels(kernels: Ptr, room: u32, library: usize) = cuLibraryEnumerateKernels;
    cudaLibraryGetGlobal(address: Ptr, bytes: Ptr, library: usize, name: Ptr) = cuLibraryGetGlobal;
    cudaLibraryGetManaged(address: Ptr, bytes: Ptr, library: usize, name: Ptr) = cuLibraryGetManaged;
}

api! {
    fn cudaStreamCreate(stream: Ptr) { driver::cuStreamCreateWithPriority(stream, 0, 0) }
    fn cudaStreamCreateWithFlags(stream: Ptr, flags: u32) { driver::cuStreamCreateWithPriority(stream, flags, 0) }
    fn cudaStreamGetDevice(_stream: usize, device: Ptr) { device.write(0, 0i32) }
    fn cudaStreamAttachMemAsync(_stream: usize, _address: Ptr, _bytes: usize, _flags: u32) { Ok(()) }
    fn cudaStreamCopyAttributes(_to: usize, _from: usize) { Ok(()) }
    fn cudaStreamGetAttribute(_stream: usize, _number: u32, value: Ptr) { value.write(0, [0u64; 8]) }
    fn cudaStreamSetAttribute(_stream: usize, _number: u32, _value: Ptr) { Ok(()) }
    fn cudaThreadExchangeStreamCaptureMode(mode: Ptr) { mode.write(0, 0u32) }
}
