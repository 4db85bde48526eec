//! Functions on contexts (CUDA Driver API, "Context Management" and "Primary Context Management").

use super::{Context, DEFAULT_STACK, limit};
use crate::{
    api::api,
    code::{Code, Outcome},
    driver::{current, current_even_failed, current_handle, driver, pop, push},
    handle::Handle,
    raw::{In, Out},
    work::{
        event::{Event, record_all},
        stream::PRIORITIES,
        worker::not_at_work,
    },
};
use bytemuck::AnyBitPattern;
use margay_runtime::Limits;
use std::sync::{Arc, atomic::Ordering::Relaxed};

/// `CUctxCreateParams`: execution affinity and the like, ignored here.
#[repr(C)]
#[derive(Clone, Copy, AnyBitPattern)]
pub struct CreateParams([usize; 3]);

fn create(out: Out<Handle<Context>>, flags: u32, device: i32) -> Outcome {
    check_flags(flags)?;
    let driver = driver()?;
    crate::device::check(device)?;
    let (handle, _) = driver.contexts.add_with(|handle| Context::new(&driver.device, device, handle, flags));
    out.set(handle)?;
    push(handle);
    Ok(())
}

fn existing(handle: Handle<Context>) -> Result<Arc<Context>, Code> {
    driver()?.context(handle).map_err(|_| Code::INVALID_CONTEXT)
}

/// The context of a handle, or the current one for null.
fn named(handle: Handle<Context>) -> Result<Arc<Context>, Code> {
    if handle.is_null() { current() } else { existing(handle) }
}

/// Waits for the work of a context; null means the current one.
fn synchronize(handle: Handle<Context>) -> Outcome {
    let context = named(handle)?;
    let number = if handle.is_null() { current_handle() } else { handle }.number();
    if let Some(outcome) = crate::green::synchronize(Handle::of(number), &context) {
        return outcome;
    }
    crate::work::graph::capture::check_context(context.handle)?;
    not_at_work()?;
    context.settle();
    context.waited()
}

api! {
    2000 fn cuCtxCreate(context: Out<Handle<Context>>, flags: u32, device: i32) { create(context, flags, device) }
    3020 fn cuCtxCreate_v2(context: Out<Handle<Context>>, flags: u32, device: i32) { create(context, flags, device) }
    11040 fn cuCtxCreate_v3(context: Out<Handle<Context>>, _affinity: In<u64>, _n: i32, flags: u32, device: i32) {
        create(context, flags, device)
    }
    12050 fn cuCtxCreate_v4(context: Out<Handle<Context>>, _params: In<CreateParams>, flags: u32, device: i32) {
        create(context, flags, device)
    }
    2000 fn cuCtxDestroy(context: Handle<Context>) { destroy(context) }
    4000 fn cuCtxDestroy_v2(context: Handle<Context>) { destroy(context) }
    2000 fn cuCtxPushCurrent(context: Handle<Context>) { push_existing(context) }
    4000 fn cuCtxPushCurrent_v2(context: Handle<Context>) { push_existing(context) }
    2000 fn cuCtxPopCurrent(context: Out<Handle<Context>>) { pop_to(context) }
    4000 fn cuCtxPopCurrent_v2(context: Out<Handle<Context>>) { pop_to(context) }
    4000 fn cuCtxSetCurrent(context: Handle<Context>) {
        if !context.is_null() {
            existing(context)?;
        }
        driver()?;
        pop();
        if !context.is_null() {
            push(context);
        }
        Ok(())
    }
    4000 fn cuCtxGetCurrent(context: Out<Handle<Context>>) {
        driver()?;
        context.set(current_handle())
    }
    2000 fn cuCtxGetDevice(device: Out<i32>) {
        let known = || driver().ok()?.device_of_primary(current_handle()); // which need not be active
        match current_even_failed() {
            Ok(context) => device.set(context.device),
            Err(code) => device.set(known().ok_or(code)?),
        }
    }
    13000 fn cuCtxGetDevice_v2(device: Out<i32>, context: Handle<Context>) {
        device.set(named(context)?.device)
    }
    7000 fn cuCtxGetFlags(flags: Out<u32>) { flags.set(current()?.flags.load(Relaxed)) }
    12010 fn cuCtxSetFlags(flags: u32) {
        check_flags(flags)?;
        current()?.flags.store(flags, Relaxed);
        Ok(())
    }
    12000 fn cuCtxGetId(context: Handle<Context>, id: Out<u64>) { id.set(named(context)?.id) }
    2000 fn cuCtxSynchronize() { synchronize(Handle::NULL) }
    13000 fn cuCtxSynchronize_v2(context: Handle<Context>) { synchronize(context) }
    3010 fn cuCtxSetLimit(limit: u32, value: usize) {
        let context = current()?;
        context.settle();
        match limit {
            limit::STACK => {
                let given = u32::try_from(value).map_err(|_| Code::INVALID_VALUE)?;
                let stack = if value == DEFAULT_STACK { Limits::default().stack } else { given };
                context.runtime.set_limits(Limits { stack, ..context.runtime.limits() });
                context.limits.lock().insert(limit, value);
            }
            limit::HEAP => context.device_memory().set_heap_limit(value as u64),
            // The print buffer has a fixed size, and there are no queues whose length could be set.
            limit::PRINTF | limit::SYNC_DEPTH | limit::PENDING | limit::L2_FETCH | limit::L2_PERSISTING => {
                context.limits.lock().insert(limit, value);
            }
            _ => return Err(Code::UNSUPPORTED_LIMIT),
        }
        Ok(())
    }
    3010 fn cuCtxGetLimit(value: Out<usize>, limit: u32) {
        value.set(current()?.limit(limit)?)
    }
    3020 fn cuCtxGetCacheConfig(config: Out<u32>) { config.set(current()?.cache_config()) }
    3020 fn cuCtxSetCacheConfig(config: u32) {
        current()?.cache.store(config, Relaxed);
        Ok(())
    }
    4020 fn cuCtxGetSharedMemConfig(config: Out<u32>) {
        current()?;
        config.set(1) // banks of four bytes
    }
    4020 fn cuCtxSetSharedMemConfig(_config: u32) { current().map(drop) }
    3020 fn cuCtxGetApiVersion(context: Handle<Context>, version: Out<u32>) {
        named(context)?;
        version.set(3020)
    }
    5050 fn cuCtxGetStreamPriorityRange(least: Out<i32>, greatest: Out<i32>) {
        current()?;
        least.offer(*PRIORITIES.end());
        greatest.offer(*PRIORITIES.start());
        Ok(())
    }
    11000 fn cuCtxResetPersistingL2Cache() { current().map(drop) }
    4000 fn cuCtxEnablePeerAccess(peer: Handle<Context>, flags: u32) {
        let (own, peer) = (current()?, existing(peer)?);
        let mut peers = own.peers.lock();
        match () {
            () if flags != 0 => Err(Code::INVALID_VALUE),
            () if own.device == peer.device => Err(Code::PEER_ACCESS_UNSUPPORTED),
            () if peers.insert(peer.id) => Ok(()),
            () => Err(Code::PEER_ACCESS_ALREADY_ENABLED),
        }
    }
    4000 fn cuCtxDisablePeerAccess(peer: Handle<Context>) {
        let (own, peer) = (current()?, existing(peer)?);
        match own.peers.lock().remove(&peer.id) {
            true => Ok(()),
            false => Err(Code::PEER_ACCESS_NOT_ENABLED),
        }
    }
    2000 fn cuCtxAttach(context: Out<Handle<Context>>, _flags: u32) {
        current()?;
        context.set(current_handle())
    }
    2000 fn cuCtxDetach(context: Handle<Context>) { destroy(context) }
    12050 fn cuCtxRecordEvent(context: Handle<Context>, event: Handle<Event>) {
        record_all(event, &*named(context)?)
    }
    12050 fn cuCtxWaitEvent(context: Handle<Context>, event: Handle<Event>) {
        let (context, event) = (named(context)?, driver()?.events.get(event)?);
        let Some(mark) = event.mark().filter(|mark| !mark.is_reached()) else { return Ok(()) };
        let queues = context.queues.lock();
        let others = queues.iter().map(|q| &q.queue);
        others.chain([&context.default_stream.queue]).for_each(|queue| queue.push(vec![mark.clone()], || ()));
        Ok(())
    }

    7000 fn cuDevicePrimaryCtxRetain(context: Out<Handle<Context>>, device: i32) {
        crate::device::check(device)?;
        context.set(driver()?.retain_primary(device)?)
    }
    7000 fn cuDevicePrimaryCtxRelease(device: i32) { release(device) }
    11000 fn cuDevicePrimaryCtxRelease_v2(device: i32) { release(device) }
    7000 fn cuDevicePrimaryCtxReset(device: i32) { reset(device) }
    11000 fn cuDevicePrimaryCtxReset_v2(device: i32) { reset(device) }
    7000 fn cuDevicePrimaryCtxSetFlags(device: i32, flags: u32) { set_flags(device, flags) }
    11000 fn cuDevicePrimaryCtxSetFlags_v2(device: i32, flags: u32) { set_flags(device, flags) }
    7000 fn cuDevicePrimaryCtxGetState(device: i32, flags: Out<u32>, active: Out<i32>) {
        crate::device::check(device)?;
        let (now, is_active) = driver()?.primary_state(device)?;
        flags.set(now)?;
        active.set(i32::from(is_active))
    }
}

fn destroy(context: Handle<Context>) -> Outcome {
    driver()?.destroy_context(context)?;
    if current_handle() == context {
        pop();
    }
    Ok(())
}

fn push_existing(context: Handle<Context>) -> Outcome {
    existing(context)?;
    push(context);
    Ok(())
}

fn pop_to(context: Out<Handle<Context>>) -> Outcome {
    driver()?;
    let popped = pop().ok_or(Code::INVALID_CONTEXT)?;
    context.offer(popped);
    Ok(())
}

fn release(device: i32) -> Outcome {
    crate::device::check(device)?;
    driver()?.release_primary(device)
}

fn reset(device: i32) -> Outcome {
    crate::device::check(device)?;
    driver()?.reset_primary(device)
}

/// Refuses unknown flags of a context, and more than one way to wait (`CU_CTX_SCHED_*`).
fn check_flags(flags: u32) -> Outcome {
    const ALL: u32 = 0xff;
    const SCHEDULING: u32 = 7;
    match flags & !ALL == 0 && matches!(flags & SCHEDULING, 0 | 1 | 2 | 4) {
        true => Ok(()),
        false => Err(Code::INVALID_VALUE),
    }
}

fn set_flags(device: i32, flags: u32) -> Outcome {
    crate::device::check(device)?;
    check_flags(flags)?;
    driver()?.set_primary_flags(device, flags)
}
