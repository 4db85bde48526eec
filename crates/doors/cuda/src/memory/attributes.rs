//! Attributes of pointers (CUDA Driver API, "Unified Addressing").

use super::{DevicePtr, around, owner};
use crate::{
    api::api,
    code::{Code, Outcome},
    context::{Context, Owner},
    driver::current,
    handle::Handle,
    raw::{Host, In},
};

/// `CUpointer_attribute`
mod pointer {
    pub const CONTEXT: u32 = 1;
    pub const MEMORY_TYPE: u32 = 2;
    pub const DEVICE_POINTER: u32 = 3;
    pub const HOST_POINTER: u32 = 4;
    pub const SYNC_MEMOPS: u32 = 6;
    pub const BUFFER_ID: u32 = 7;
    pub const IS_MANAGED: u32 = 8;
    pub const DEVICE_ORDINAL: u32 = 9;
    pub const IS_LEGACY_IPC: u32 = 10;
    pub const RANGE_START: u32 = 11;
    pub const RANGE_SIZE: u32 = 12;
    pub const MAPPED: u32 = 13;
    pub const HANDLE_TYPES: u32 = 14;
    pub const IS_RDMA: u32 = 15;
    pub const ACCESS_FLAGS: u32 = 16;
    pub const MEMPOOL: u32 = 17;
}

/// Writes an attribute of the memory at an address, in the attribute's size.
fn attribute(out: Host, number: u32, address: DevicePtr) -> Outcome {
    let context = current()?;
    let (base, size, owner) = around(&context, address)?;
    let word = |value: u32| out.write(&value.to_ne_bytes());
    let long = |value: u64| out.write(&value.to_ne_bytes());
    let byte = |value: bool| out.write(&[u8::from(value)]);
    let flag = |value: bool| word(u32::from(value));
    let on_host = matches!(owner, Owner::Host(_) | Owner::Registered(_));
    match number {
        pointer::CONTEXT => long(owner_context(&context, base).0.number() as u64),
        pointer::MEMORY_TYPE => word(if on_host { 1 } else { 2 }),
        pointer::DEVICE_POINTER => long(address),
        pointer::HOST_POINTER if owner != Owner::Device => long(address),
        pointer::HOST_POINTER => Err(Code::INVALID_VALUE),
        pointer::SYNC_MEMOPS => flag(true),
        pointer::BUFFER_ID => long(base),
        pointer::IS_MANAGED => flag(owner == Owner::Managed),
        pointer::DEVICE_ORDINAL => word(owner_context(&context, base).1 as u32),
        pointer::IS_LEGACY_IPC | pointer::IS_RDMA => byte(false),
        pointer::RANGE_START => long(base),
        pointer::RANGE_SIZE => long(size as u64),
        pointer::MAPPED => byte(true),
        pointer::HANDLE_TYPES => long(0),
        pointer::ACCESS_FLAGS => word(3),
        pointer::MEMPOOL => long(crate::memory::pool::of(base).map_or(0, |pool| pool.number() as u64)),
        _ => Err(Code::INVALID_VALUE),
    }
}

/// Handle and device of the context that owns an allocation.
fn owner_context(current: &Context, base: DevicePtr) -> (Handle<Context>, i32) {
    let owner = if current.allocations.lock().contains_key(&base) { None } else { owner(base) };
    owner.map_or((current.handle, current.device), |context| (context.handle, context.device))
}

/// Size of an attribute in bytes, to return zero for unknown memory.
fn attribute_size(number: u32) -> usize {
    match number {
        pointer::MEMORY_TYPE | pointer::DEVICE_ORDINAL | pointer::ACCESS_FLAGS => 4,
        // CUDA's samples and its guide to GPUDirect RDMA pass an `unsigned int` for these two.
        pointer::SYNC_MEMOPS | pointer::IS_MANAGED => 4,
        pointer::IS_LEGACY_IPC | pointer::MAPPED | pointer::IS_RDMA => 1,
        _ => 8,
    }
}

api! {
    4000 fn cuPointerGetAttribute(out: Host, number: u32, address: DevicePtr) { attribute(out, number, address) }
    7000 fn cuPointerGetAttributes(count: u32, numbers: In<u32>, outs: In<Host>, address: DevicePtr) {
        let known = current()?.device_memory().find(address).is_some();
        for i in 0..count as usize {
            let (number, out) = (numbers.nth(i)?, outs.nth(i)?);
            let written = if known { attribute(out, number, address) } else { Err(Code::INVALID_VALUE) };
            if written.is_err() {
                out.write(&[0; 8][..attribute_size(number)])?;
            }
        }
        Ok(())
    }
    6000 fn cuPointerSetAttribute(_value: Host, _number: u32, address: DevicePtr) {
        around(&*current()?, address).map(drop)
    }
}
