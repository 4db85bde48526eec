//! Execution contexts (CUDA Runtime API, "Execution Context Management"): the driver's green contexts, and the primary contexts of devices,
//! whose handles never coincide.

use crate::{
    api::{api, same},
    device::peer,
    driver,
    error::{Code, Outcome},
    raw::Ptr,
    stream::Stream,
};

/// Calls `green` for a green context, and `primary` for a primary one.
fn either(context: usize, green: impl FnOnce() -> Outcome, primary: impl FnOnce() -> Outcome) -> Outcome {
    if context == 0 {
        return Err(Code::INVALID_VALUE);
    }
    match green() {
        Err(Code::DEVICE_UNINITIALIZED) => primary(),
        other => other,
    }
}

/// Makes a context current while `work` runs.
fn within(context: usize, work: impl FnOnce() -> Outcome) -> Outcome {
    let mut before = 0usize;
    driver::cuCtxGetCurrent(Ptr::to(&mut before))?;
    driver::cuCtxSetCurrent(context)?;
    let outcome = work();
    driver::cuCtxSetCurrent(before)?;
    outcome
}

same! {
    cudaDeviceGetDevResource(device: i32, resource: Ptr, kind: u32) = cuDeviceGetDevResource;
    cudaDevSmResourceSplitByCount(
        result: Ptr, groups: Ptr, input: Ptr, rest: Ptr, flags: u32, least: u32
    ) = cuDevSmResourceSplitByCount;
    cudaDevSmResourceSplit(
        result: Ptr, count: u32, input: Ptr, rest: Ptr, flags: u32, groups: Ptr
    ) = cuDevSmResourceSplit;
    cudaDevResourceGenerateDesc(descriptor: Ptr, resources: Ptr, count: u32) = cuDevResourceGenerateDesc;
    + ptsz cudaStreamGetDevResource(stream: Stream, resource: Ptr, kind: u32) = cuStreamGetDevResource;
}

api! {
    fn cudaDeviceGetExecutionCtx(context: Ptr, device: i32) { context.write(0, peer(device)?) }
    fn cudaGreenCtxCreate(context: Ptr, descriptor: usize, device: i32, flags: u32) {
        match flags {
            0 => driver::cuGreenCtxCreate(context, descriptor, device, 1),
            _ => Err(Code::INVALID_VALUE),
        }
    }
    fn cudaExecutionCtxDestroy(context: usize) {
        // Those of devices are not the caller's.
        either(context, || driver::cuGreenCtxDestroy(context), || Err(Code::INVALID_VALUE))
    }
    fn cudaExecutionCtxGetDevResource(context: usize, resource: Ptr, kind: u32) {
        either(
            context,
            || driver::cuGreenCtxGetDevResource(context, resource, kind),
            || driver::cuCtxGetDevResource(context, resource, kind),
        )
    }
    fn cudaExecutionCtxGetDevice(device: Ptr, context: usize) {
        match context {
            0 => Err(Code::INVALID_VALUE),
            _ => within(context, || driver::cuCtxGetDevice(device)),
        }
    }
    fn cudaExecutionCtxGetId(context: usize, id: Ptr) {
        either(context, || driver::cuGreenCtxGetId(context, id), || driver::cuCtxGetId(context, id))
    }
    fn cudaExecutionCtxStreamCreate(stream: Ptr, context: usize, flags: u32, priority: i32) {
        const NON_BLOCKING: u32 = 1;
        either(
            context,
            || driver::cuGreenCtxStreamCreate(stream, context, flags | NON_BLOCKING, priority),
            || within(context, || driver::cuStreamCreateWithPriority(stream, flags, priority)),
        )
    }
    fn cudaExecutionCtxSynchronize(context: usize) {
        match context {
            0 => Err(Code::INVALID_VALUE),
            _ => driver::cuCtxSynchronize_v2(context),
        }
    }
    fn cudaExecutionCtxRecordEvent(context: usize, event: usize) {
        either(
            context,
            || driver::cuGreenCtxRecordEvent(context, event),
            || driver::cuCtxRecordEvent(context, event),
        )
    }
    fn cudaExecutionCtxWaitEvent(context: usize, event: usize) {
        either(context, || driver::cuGreenCtxWaitEvent(context, event), || driver::cuCtxWaitEvent(context, event))
    }
}
