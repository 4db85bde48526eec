//! Streams (CUDA Runtime API, "Stream Management") and libraries ("Library Management").

use crate::{
    api::{api, is_thread_stream, same},
    driver,
    error::Outcome,
    raw::Ptr,
};
use bytemuck::AnyBitPattern;

/// A stream handle as passed by the program.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, AnyBitPattern)]
pub struct Stream(usize);

impl Stream {
    /// The default stream, whose meaning depends on the function that was called.
    pub const DEFAULT: Stream = Stream(0);
    /// `cudaStreamPerThread`
    const PER_THREAD: Stream = Stream(2);

    /// Waits for its work.
    pub fn wait(self) -> Outcome {
        driver::cuStreamSynchronize(self)
    }

    /// The handle to be passed to the driver.
    pub fn driver_handle(self) -> Stream {
        if self == Stream::DEFAULT && is_thread_stream() { Stream::PER_THREAD } else { self }
    }
}

same! {
    cudaStreamCreateWithPriority(stream: Ptr, flags: u32, priority: i32) = cuStreamCreateWithPriority;
    cudaStreamDestroy(stream: Stream) = cuStreamDestroy_v2;
    + ptsz cudaStreamSynchronize(stream: Stream) = cuStreamSynchronize;
    + ptsz cudaStreamQuery(stream: Stream) = cuStreamQuery;
    + ptsz cudaStreamWaitEvent(stream: Stream, event: usize, flags: u32) = cuStreamWaitEvent;
    + ptsz cudaStreamAddCallback(stream: Stream, callback: Ptr, data: Ptr, flags: u32) = cuStreamAddCallback;
    + ptsz cudaLaunchHostFunc(stream: Stream, function: Ptr, data: Ptr) = cuLaunchHostFunc;
    + ptsz cudaLaunchHostFunc_v2(stream: Stream, function: Ptr, data: Ptr, mode: u32) = cuLaunchHostFunc_v2;
    + ptsz cudaStreamGetDevice(stream: Stream, device: Ptr) = cuStreamGetDevice;
    + ptsz cudaStreamAttachMemAsync(stream: Stream, address: Ptr, bytes: usize, flags: u32) = cuStreamAttachMemAsync;
    + ptsz cudaStreamCopyAttributes(to: Stream, from: Stream) = cuStreamCopyAttributes;
    + ptsz cudaStreamGetAttribute(stream: Stream, number: u32, value: Ptr) = cuStreamGetAttribute;
    + ptsz cudaStreamSetAttribute(stream: Stream, number: u32, value: Ptr) = cuStreamSetAttribute;
    #[cfg(cuda13)]
    + ptsz cudaStreamUpdateCaptureDependencies(
        stream: Stream, nodes: Ptr, data: Ptr, count: usize, flags: u32
    ) = cuStreamUpdateCaptureDependencies_v2;
    cudaThreadExchangeStreamCaptureMode(mode: Ptr) = cuThreadExchangeStreamCaptureMode;
    + ptsz cudaStreamGetPriority(stream: Stream, priority: Ptr) = cuStreamGetPriority;
    + ptsz cudaStreamGetFlags(stream: Stream, flags: Ptr) = cuStreamGetFlags;
    + ptsz cudaStreamGetId(stream: Stream, id: Ptr) = cuStreamGetId;
    + ptsz cudaStreamBeginCapture(stream: Stream, mode: u32) = cuStreamBeginCapture_v2;
    + ptsz cudaStreamBeginCaptureToGraph(
        stream: Stream, graph: usize, after: Ptr, edges: Ptr, count: usize, mode: u32
    ) = cuStreamBeginCaptureToGraph;
    + ptsz cudaStreamEndCapture(stream: Stream, graph: Ptr) = cuStreamEndCapture;
    + ptsz cudaStreamIsCapturing(stream: Stream, status: Ptr) = cuStreamIsCapturing;
    #[cfg(cuda13)]
    + ptsz cudaStreamGetCaptureInfo(
        stream: Stream, status: Ptr, id: Ptr, graph: Ptr, after: Ptr, edges: Ptr, count: Ptr
    ) = cuStreamGetCaptureInfo_v3;
    cudaLogsRegisterCallback(callback: Ptr, data: Ptr, handle: Ptr) = cuLogsRegisterCallback;
    cudaLogsUnregisterCallback(handle: usize) = cuLogsUnregisterCallback;
    cudaLogsCurrent(iterator: Ptr, flags: u32) = cuLogsCurrent;
    cudaLogsDumpToFile(iterator: Ptr, path: Ptr, flags: u32) = cuLogsDumpToFile;
    cudaLogsDumpToMemory(iterator: Ptr, buffer: Ptr, size: Ptr, flags: u32) = cuLogsDumpToMemory;
    cudaLibraryLoadData(
        library: Ptr, image: Ptr, options: Ptr, values: Ptr, count: u32, library_options: Ptr, library_values: Ptr,
        library_count: u32
    ) = cuLibraryLoadData;
    cudaLibraryLoadFromFile(
        library: Ptr, name: Ptr, options: Ptr, values: Ptr, count: u32, library_options: Ptr, library_values: Ptr,
        library_count: u32
    ) = cuLibraryLoadFromFile;
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
}
