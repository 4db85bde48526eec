//! Events (CUDA Runtime API, "Event Management").

use crate::{
    api::{api, same},
    driver::{self, IpcHandle},
    raw::Ptr,
    stream::Stream,
};

same! {
    cudaEventCreateWithFlags(event: Ptr, flags: u32) = cuEventCreate;
    + ptsz cudaEventRecordWithFlags(event: usize, stream: Stream, flags: u32) = cuEventRecordWithFlags;
    cudaIpcGetEventHandle(handle: Ptr, event: usize) = cuIpcGetEventHandle;
    cudaIpcOpenEventHandle(event: Ptr, handle: IpcHandle) = cuIpcOpenEventHandle;
    cudaEventQuery(event: usize) = cuEventQuery;
    cudaEventSynchronize(event: usize) = cuEventSynchronize;
    cudaEventDestroy(event: usize) = cuEventDestroy_v2;
    cudaEventElapsedTime(ms: Ptr, start: usize, end: usize) = cuEventElapsedTime;
}

api! {
    fn cudaEventCreate(event: Ptr) { driver::cuEventCreate(event, 0) }
    + ptsz fn cudaEventRecord(event: usize, stream: Stream) { driver::cuEventRecordWithFlags(event, stream, 0) }
}
