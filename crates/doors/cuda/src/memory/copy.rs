//! Copies between host, device and arrays, of one to three dimensions (CUDA Driver API, "Memory Management").

use crate::{
    api::{api, because},
    checks::order,
    code::{Code, Outcome},
    context::Context,
    driver::driver,
    handle::Handle,
    memory::{DevicePtr, is_device, is_for_host, texture::ArrayObject, within},
    process::account,
    raw::{Host, In},
    work::{Work, stream::StreamHandle},
};
use bytemuck::AnyBitPattern;
use margay_exec::mem;
use std::sync::Arc;

/// A copy of up to three dimensions.
#[derive(Clone)]
pub struct Copy {
    /// Source.
    pub from: Side,
    /// Destination.
    pub to: Side,
    /// Bytes per row, rows per slice, number of slices.
    pub extent: [usize; 3],
}

/// Source or destination of a copy.
#[derive(Clone)]
pub struct Side {
    /// The memory.
    pub place: Place,
    /// Offset in bytes, rows, slices.
    pub at: [usize; 3],
}

/// The memory of a [`Side`].
#[derive(Clone)]
pub enum Place {
    /// Linear memory: pitch in bytes, rows per slice, and whether the caller guarantees that it is device memory.
    Linear { address: u64, pitch: usize, height: usize, device: bool },
    /// A level of an array.
    Array(Arc<ArrayObject>),
}

impl Side {
    /// Bytes that the caller guarantees to be in device memory.
    pub fn device(address: u64) -> Side {
        Side::linear(address, true)
    }

    /// Bytes wherever the address says that they are.
    pub fn unified(address: u64) -> Side {
        Side::linear(address, false)
    }

    fn linear(address: u64, device: bool) -> Side {
        Side { place: Place::Linear { address, pitch: 0, height: 0, device }, at: [0; 3] }
    }

    fn array(handle: Handle<ArrayObject>, offset: usize) -> Result<Side, Code> {
        Ok(Side { place: Place::Array(driver()?.arrays.get(handle)?), at: [offset, 0, 0] })
    }

    /// Whether it is memory that is neither the device's nor page-locked.
    fn is_pageable(&self, context: &Context) -> bool {
        match self.place {
            Place::Linear { address, .. } => !is_device(context, address),
            Place::Array(_) => false,
        }
    }

    /// The address of a row of `bytes` bytes.
    fn row(&self, context: &Arc<Context>, y: usize, z: usize, bytes: usize) -> Result<u64, Code> {
        let [x0, y0, z0] = self.at;
        match &self.place {
            Place::Array(array) => array.row(y0 + y, z0 + z, x0, bytes),
            Place::Linear { address, pitch, height, device } => {
                let rows = (z0 + z).wrapping_mul(*height).wrapping_add(y0 + y);
                let at = address.wrapping_add(rows.wrapping_mul(*pitch) as u64).wrapping_add(x0 as u64);
                if *device && !is_device(context, at) {
                    because(|| {
                        let freed = context.device_memory().freed(at).is_some();
                        let why = if freed { "it was freed" } else { "is the direction of the copy right?" };
                        format!("{at:#x} is no memory of the device, which the call says it is: {why}")
                    });
                    return Err(Code::INVALID_VALUE);
                }
                Ok(at)
            }
        }
    }
}

impl Copy {
    /// A copy of `count` bytes.
    pub fn bytes(to: Side, from: Side, count: usize) -> Copy {
        Copy { from, to, extent: [count, 1, 1] }
    }

    /// Whether there is memory for every row.
    pub fn check(&self, context: &Arc<Context>) -> Outcome {
        let [width, height, depth] = self.extent;
        if width == 0 {
            return Ok(());
        }
        for (y, z) in (0..depth).flat_map(|z| (0..height).map(move |y| (y, z))) {
            for side in [&self.from, &self.to] {
                let at = side.row(context, y, z, width)?;
                if is_device(context, at) {
                    within(context, at, width)?;
                }
            }
        }
        Ok(())
    }

    /// Whether it touches memory that is neither the device's nor page-locked.
    pub fn touches_pageable(&self, context: &Context) -> bool {
        self.from.is_pageable(context) || self.to.is_pageable(context)
    }

    /// Whether it copies pageable memory to a device.
    pub fn is_staged(&self, context: &Context) -> bool {
        self.from.is_pageable(context) && !self.to.is_pageable(context)
    }

    /// Whether it touches memory that the host may access.
    fn touches_host(&self, context: &Context) -> bool {
        [&self.from, &self.to].into_iter().any(|side| match side.place {
            Place::Linear { address, .. } => is_for_host(context, address),
            Place::Array(_) => false,
        })
    }

    /// Performs the copy, row by row.
    pub fn run(&self, context: &Arc<Context>) -> Outcome {
        let [width, height, depth] = self.extent;
        if width == 0 {
            return Ok(());
        }
        account::copied((width * height * depth) as u64);
        for z in 0..depth {
            for y in 0..height {
                let from = self.from.row(context, y, z, width)?;
                let to = self.to.row(context, y, z, width)?;
                row(context, to, from, width)?;
            }
        }
        Ok(())
    }
}

/// Copies a row. Addresses that the device does not know are memory of the program.
fn row(context: &Arc<Context>, to: u64, from: u64, count: usize) -> Outcome {
    let memory = context.device_memory();
    let refused = |_| Code::INVALID_VALUE;
    let sides = (is_device(context, to), is_device(context, from));
    for (address, _, writes) in
        [(to, sides.0, true), (from, sides.1, false)].into_iter().filter(|(_, device, _)| *device)
    {
        within(context, address, count)?;
        order::touches(address, count as u64, writes);
    }
    match sides {
        (true, true) => memory.copy(to, from, count as u64).map_err(refused),
        (true, false) => memory.write_from(to, &Host::unified(from).lend(count)?).map_err(refused),
        (false, true) => memory.read_to(from, &Host::unified(to).lend(count)?).map_err(refused),
        (false, false) => {
            let (target, source) = (Host::unified(to).lend(count)?, Host::unified(from).lend(count)?);
            mem::copy(&target, to, &source, from, count).ok_or(Code::INVALID_VALUE)
        }
    }
}

/// `CUmemorytype`
mod memory_type {
    pub const HOST: u32 = 1;
    pub const DEVICE: u32 = 2;
    pub const ARRAY: u32 = 3;
    pub const UNIFIED: u32 = 4;
}

/// `CUDA_MEMCPY2D`
#[repr(C)]
#[derive(Clone, Copy, AnyBitPattern)]
pub struct Copy2d {
    from: Side2d,
    to: Side2d,
    width: usize,
    height: usize,
}

#[repr(C)]
#[derive(Clone, Copy, AnyBitPattern)]
struct Side2d {
    x: usize,
    y: usize,
    kind: u32,
    host: u64,
    device: DevicePtr,
    array: Handle<ArrayObject>,
    pitch: usize,
}

/// `CUDA_MEMCPY3D`, and `CUDA_MEMCPY3D_PEER`, which has a context in place of each side's reserved member.
#[repr(C)]
#[derive(Clone, Copy, AnyBitPattern)]
pub struct Copy3d {
    from: Side3d,
    to: Side3d,
    width: usize,
    height: usize,
    depth: usize,
}

#[repr(C)]
#[derive(Clone, Copy, AnyBitPattern)]
struct Side3d {
    x: usize,
    y: usize,
    z: usize,
    level: usize,
    kind: u32,
    host: u64,
    device: DevicePtr,
    array: Handle<ArrayObject>,
    reserved: usize,
    pitch: usize,
    height: usize,
}

impl Side3d {
    /// Refuses a pitch that is shorter than the rows, or longer than a device allows. A pitch of zero is none (`cuMemcpy2D`: "if
    /// specified").
    fn check_pitch(&self, width: usize) -> Outcome {
        /// `CU_DEVICE_ATTRIBUTE_MAX_PITCH`
        const LIMIT: usize = i32::MAX as usize;
        let end = self.x.checked_add(width).ok_or(Code::INVALID_VALUE)?;
        let linear = self.kind != memory_type::ARRAY && self.pitch != 0 && width > 0;
        match linear && !(end..=LIMIT).contains(&self.pitch) {
            true => {
                let pitch = self.pitch;
                because(|| format!("a pitch of {pitch} bytes for rows that end at byte {end}"));
                Err(Code::INVALID_VALUE)
            }
            false => Ok(()),
        }
    }

    fn side(&self) -> Result<Side, Code> {
        let Side3d { x, y, z, pitch, height, .. } = *self;
        let linear = |address, device| Place::Linear { address, pitch, height, device };
        let place = match self.kind {
            memory_type::HOST => linear(self.host, false),
            memory_type::DEVICE => linear(self.device, true),
            memory_type::UNIFIED => linear(self.device, false),
            memory_type::ARRAY => Place::Array(driver()?.arrays.get(self.array)?),
            _ => return Err(Code::INVALID_VALUE),
        };
        Ok(Side { place, at: [x, y, z] })
    }
}

impl Copy2d {
    fn copy(&self) -> Result<Copy, Code> {
        let wide = |s: &Side2d| {
            let Side2d { x, y, kind, host, device, array, pitch } = *s;
            Side3d { x, y, z: 0, level: 0, kind, host, device, array, reserved: 0, pitch, height: 0 }
        };
        let (from, to) = (wide(&self.from), wide(&self.to));
        [from, to].iter().try_for_each(|side| side.check_pitch(self.width))?;
        Ok(Copy { from: from.side()?, to: to.side()?, extent: [self.width, self.height, 1] })
    }
}

impl Side3d {
    /// The structure of a side. Memory that may not be the device's is described as unified.
    fn of(side: &Side) -> Result<Side3d, Code> {
        let [x, y, z] = side.at;
        let nowhere = Side3d {
            x,
            y,
            z,
            level: 0,
            kind: 0,
            host: 0,
            device: 0,
            array: Handle::NULL,
            reserved: 0,
            pitch: 0,
            height: 0,
        };
        Ok(match &side.place {
            Place::Linear { address, pitch, height, device } => {
                let kind = if *device { memory_type::DEVICE } else { memory_type::UNIFIED };
                Side3d { kind, device: *address, pitch: *pitch, height: *height, ..nowhere }
            }
            Place::Array(array) => {
                let found = driver()?.arrays.find(|a| std::ptr::eq(a, &**array)).ok_or(Code::INVALID_HANDLE)?;
                Side3d { kind: memory_type::ARRAY, array: found, ..nowhere }
            }
        })
    }
}

impl Copy3d {
    /// The structure that describes a copy.
    pub fn of(copy: &Copy) -> Result<Copy3d, Code> {
        let [width, height, depth] = copy.extent;
        Ok(Copy3d { from: Side3d::of(&copy.from)?, to: Side3d::of(&copy.to)?, width, height, depth })
    }

    /// The copy that the structure describes.
    pub fn copy(&self) -> Result<Copy, Code> {
        [self.from, self.to].iter().try_for_each(|side| side.check_pitch(self.width))?;
        Ok(Copy { from: self.from.side()?, to: self.to.side()?, extent: [self.width, self.height, self.depth] })
    }
}

/// Submits a copy to a stream.
pub fn submit(stream: StreamHandle, copy: Copy) -> Outcome {
    stream.submit(Work::Copy(copy))
}

/// Copies between contexts: after all earlier and before all later work of both (CUDA Runtime API, `cudaMemcpyPeer`).
fn between(contexts: [Handle<Context>; 2], copy: Copy) -> Outcome {
    for handle in contexts {
        driver()?.context(handle).map_err(|_| Code::INVALID_CONTEXT)?.settle();
    }
    StreamHandle::NULL.submit_and_wait(Work::Copy(copy))
}

/// Copies like a synchronous call, which waits unless only device memory is involved.
fn now(copy: Copy) -> Outcome {
    let waits = copy.touches_host(StreamHandle::NULL.get()?.context());
    match waits {
        true => StreamHandle::NULL.submit_and_wait(Work::Copy(copy)),
        false => submit(StreamHandle::NULL, copy),
    }
}

api! {
    4000 + ptds fn cuMemcpy(to: DevicePtr, from: DevicePtr, count: usize) {
        now(Copy::bytes(Side::unified(to), Side::unified(from), count))
    }
    3020 + ptds fn cuMemcpyHtoD_v2(to: DevicePtr, from: Host, count: usize) {
        now(Copy::bytes(Side::device(to), Side::unified(from.address()), count))
    }
    3020 + ptds fn cuMemcpyDtoH_v2(to: Host, from: DevicePtr, count: usize) {
        now(Copy::bytes(Side::unified(to.address()), Side::device(from), count))
    }
    3020 + ptds fn cuMemcpyDtoD_v2(to: DevicePtr, from: DevicePtr, count: usize) {
        now(Copy::bytes(Side::device(to), Side::device(from), count))
    }
    4000 + ptds fn cuMemcpyPeer(
        to: DevicePtr, to_context: Handle<Context>, from: DevicePtr, from_context: Handle<Context>, count: usize,
    ) {
        between([to_context, from_context], Copy::bytes(Side::device(to), Side::device(from), count))
    }
    4000 + ptsz fn cuMemcpyAsync(to: DevicePtr, from: DevicePtr, count: usize, stream: StreamHandle) {
        submit(stream, Copy::bytes(Side::unified(to), Side::unified(from), count))
    }
    3020 + ptsz fn cuMemcpyHtoDAsync_v2(to: DevicePtr, from: Host, count: usize, stream: StreamHandle) {
        submit(stream, Copy::bytes(Side::device(to), Side::unified(from.address()), count))
    }
    3020 + ptsz fn cuMemcpyDtoHAsync_v2(to: Host, from: DevicePtr, count: usize, stream: StreamHandle) {
        submit(stream, Copy::bytes(Side::unified(to.address()), Side::device(from), count))
    }
    3020 + ptsz fn cuMemcpyDtoDAsync_v2(to: DevicePtr, from: DevicePtr, count: usize, stream: StreamHandle) {
        submit(stream, Copy::bytes(Side::device(to), Side::device(from), count))
    }
    4000 + ptsz fn cuMemcpyPeerAsync(
        to: DevicePtr, _to_context: Handle<Context>, from: DevicePtr, _from_context: Handle<Context>, count: usize,
        stream: StreamHandle,
    ) {
        submit(stream, Copy::bytes(Side::device(to), Side::device(from), count))
    }
    3020 + ptds fn cuMemcpyDtoA_v2(to: Handle<ArrayObject>, at: usize, from: DevicePtr, count: usize) {
        now(Copy::bytes(Side::array(to, at)?, Side::device(from), count))
    }
    3020 + ptds fn cuMemcpyAtoD_v2(to: DevicePtr, from: Handle<ArrayObject>, at: usize, count: usize) {
        now(Copy::bytes(Side::device(to), Side::array(from, at)?, count))
    }
    3020 + ptds fn cuMemcpyHtoA_v2(to: Handle<ArrayObject>, at: usize, from: Host, count: usize) {
        now(Copy::bytes(Side::array(to, at)?, Side::unified(from.address()), count))
    }
    3020 + ptds fn cuMemcpyAtoH_v2(to: Host, from: Handle<ArrayObject>, at: usize, count: usize) {
        now(Copy::bytes(Side::unified(to.address()), Side::array(from, at)?, count))
    }
    3020 + ptsz fn cuMemcpyHtoAAsync_v2(to: Handle<ArrayObject>, at: usize, from: Host, count: usize, stream: StreamHandle) {
        submit(stream, Copy::bytes(Side::array(to, at)?, Side::unified(from.address()), count))
    }
    3020 + ptsz fn cuMemcpyAtoHAsync_v2(to: Host, from: Handle<ArrayObject>, at: usize, count: usize, stream: StreamHandle) {
        submit(stream, Copy::bytes(Side::unified(to.address()), Side::array(from, at)?, count))
    }
    3020 + ptds fn cuMemcpyAtoA_v2(
        to: Handle<ArrayObject>, to_at: usize, from: Handle<ArrayObject>, from_at: usize, count: usize,
    ) {
        now(Copy::bytes(Side::array(to, to_at)?, Side::array(from, from_at)?, count))
    }
    3020 + ptds fn cuMemcpy2D_v2(copy: In<Copy2d>) { now(copy.get()?.copy()?) }
    3020 + ptds fn cuMemcpy2DUnaligned_v2(copy: In<Copy2d>) { now(copy.get()?.copy()?) }
    3020 + ptsz fn cuMemcpy2DAsync_v2(copy: In<Copy2d>, stream: StreamHandle) { submit(stream, copy.get()?.copy()?) }
    3020 + ptds fn cuMemcpy3D_v2(copy: In<Copy3d>) { now(copy.get()?.copy()?) }
    3020 + ptsz fn cuMemcpy3DAsync_v2(copy: In<Copy3d>, stream: StreamHandle) { submit(stream, copy.get()?.copy()?) }
    4000 + ptds fn cuMemcpy3DPeer(copy: In<Copy3d>) {
        let copy = copy.get()?;
        between([Handle::of(copy.to.reserved), Handle::of(copy.from.reserved)], copy.copy()?)
    }
    4000 + ptsz fn cuMemcpy3DPeerAsync(copy: In<Copy3d>, stream: StreamHandle) { submit(stream, copy.get()?.copy()?) }
}
