//! Events (CUDA Runtime API, "Event Management").

use crate::{
    api::{api, same},
    driver,
    raw::Ptr,
};

same! {
    cudaEventCreateWithFlags(event: Ptr, flags: u32) = cuEventCreate;
    cudaEventRecordWithFlags(event: usize, stream: usize, flags: u32) = cuEventRecordWithFlags;
    cudaEventQuery(event: usize) = cuEventQuery;
    cudaEventSynchronize(event: usize) = cuEventSynchronize;
    cudaEventDestroy(event: usize) = cuEventDestroy_v2;
    cudaEventElapsedTime(ms: Ptr, start: usize, end: usize) = cuEventElapsedTime;
}

api! {
    fn cudaEventCreate(event: Ptr) { driver::cuEventCreate(event, 0) }
    fn cudaEventRecord(event: usize, stream: usize) { driver::cuEventRecordWithFlags(event, stream, 0) }
}
