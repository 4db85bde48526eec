//! Memory (CUDA Runtime API, "Memory Management", "Unified Addressing", "Stream Ordered Memory Allocator").

use crate::{
    api::{api, because, same},
    array::{Copy3d, Extent, PitchedPtr},
    device::peer,
    driver::{self, IpcHandle},
    error::{Code, Outcome},
    raw::Ptr,
    register::variable,
    stream::Stream,
};

/// `cudaMemcpyKind`
mod kind {
    pub const HOST_TO_HOST: u32 = 0;
    pub const HOST_TO_DEVICE: u32 = 1;
    pub const DEVICE_TO_HOST: u32 = 2;
    pub const DEVICE_TO_DEVICE: u32 = 3;
    pub const DEFAULT: u32 = 4;
}

/// Copies bytes in the direction that the program specifies.
pub fn copy(to: Ptr, from: Ptr, bytes: usize, direction: u32, stream: Stream) -> Outcome {
    let (to_address, from_address) = (to.number(), from.number());
    match direction {
        _ if bytes == 0 => Ok(()),
        // "Device" memory in the runtime API may be managed or page-locked, which the driver knows.
        kind::HOST_TO_DEVICE => driver::cuMemcpyHtoDAsync_v2(to_address, from, bytes, stream),
        kind::DEVICE_TO_HOST => driver::cuMemcpyDtoHAsync_v2(to, from_address, bytes, stream),
        kind::DEVICE_TO_DEVICE => driver::cuMemcpyDtoDAsync_v2(to_address, from_address, bytes, stream),
        kind::HOST_TO_HOST | kind::DEFAULT => driver::cuMemcpyAsync(to_address, from_address, bytes, stream),
        _ => Err(Code::INVALID_MEMCPY_DIRECTION),
    }
}

/// Refuses numbers that are not a `cudaMemcpyKind`. The kind itself is not needed: the driver copies by what it knows of the addresses.
pub fn check_kind(direction: u32) -> Outcome {
    if direction <= kind::DEFAULT { Ok(()) } else { Err(Code::INVALID_MEMCPY_DIRECTION) }
}

/// Refuses a direction that does not lead to a variable, or from one (`kind`: host to device, or device to host).
fn check_symbol_copy(direction: u32, kind: u32) -> Outcome {
    match direction {
        kind::DEVICE_TO_DEVICE | kind::DEFAULT => Ok(()),
        other if other == kind => Ok(()),
        _ => {
            because(|| match kind {
                kind::HOST_TO_DEVICE => "a copy to a variable goes from the host or the device to the device".into(),
                _ => "a copy from a variable goes from the device to the host or the device".into(),
            });
            Err(Code::INVALID_MEMCPY_DIRECTION)
        }
    }
}

/// Copies like a synchronous call, which waits unless only device memory is involved.
fn copy_now(to: Ptr, from: Ptr, bytes: usize, direction: u32) -> Outcome {
    copy(to, from, bytes, direction, Stream::DEFAULT)?;
    match direction {
        kind::DEVICE_TO_DEVICE => Ok(()),
        _ => Stream::DEFAULT.wait(),
    }
}

/// The address of a part of a variable.
pub fn part(symbol: Ptr, offset: usize, bytes: usize) -> Result<Ptr, Code> {
    let (address, size) = variable(symbol)?;
    match offset.checked_add(bytes) {
        Some(end) if end <= size => Ok(Ptr::at(address + offset as u64)),
        _ => {
            because(|| format!("{bytes} bytes from byte {offset} of a variable of {size} bytes"));
            Err(Code::INVALID_VALUE)
        }
    }
}

fn free(address: Ptr) -> Outcome {
    driver::cuMemFree_v2(address.number())
}

/// Allocates; zero bytes are not an error here and give a null pointer.
fn allocate(out: Ptr, bytes: usize, by: impl FnOnce() -> Outcome) -> Outcome {
    match bytes {
        0 => out.write(0, 0u64),
        _ => by(),
    }
}

/// `cudaPointerAttributes`: kind, device, device address, host address. Unknown host memory is not an error.
fn attributes(out: Ptr, address: Ptr) -> Outcome {
    const UNKNOWN: u32 = 0;
    const HOST: u32 = 1;
    const DEVICE: u32 = 2;
    const MANAGED: u32 = 3;
    // CUDA 13 has reserved bytes after them.
    const SIZE: usize = if cfg!(cuda13) { 88 } else { 24 };
    for offset in (0..SIZE).step_by(8) {
        out.write(offset, 0u64)?;
    }
    let at = address.number();
    let (mut of, mut managed) = (0u32, 0u32);
    let known = driver::cuPointerGetAttribute(Ptr::to(&mut of), 2, at).is_ok();
    let _ = known && driver::cuPointerGetAttribute(Ptr::to(&mut managed), 8, at).is_ok();
    let kind = match (known, managed, of) {
        (false, ..) => UNKNOWN,
        (_, 1, _) => MANAGED,
        (_, _, 1) => HOST,
        _ => DEVICE,
    };
    out.write(0, kind)?;
    const DEVICE_ORDINAL: u32 = 9;
    let mut device = -2i32;
    if known {
        driver::cuPointerGetAttribute(Ptr::to(&mut device), DEVICE_ORDINAL, at)?;
    }
    out.write(4, device)?;
    out.write(8, if known { at } else { 0 })?;
    out.write(16, if kind == DEVICE { 0 } else { at })
}

same! {
    cudaMemGetInfo(free: Ptr, total: Ptr) = cuMemGetInfo_v2;
    cudaHostRegister(address: Ptr, bytes: usize, flags: u32) = cuMemHostRegister_v2;
    cudaHostUnregister(address: Ptr) = cuMemHostUnregister;
    cudaHostGetDevicePointer(device: Ptr, address: Ptr, flags: u32) = cuMemHostGetDevicePointer_v2;
    cudaHostGetFlags(flags: Ptr, address: Ptr) = cuMemHostGetFlags;
    cudaFreeHost(address: Ptr) = cuMemFreeHost;
    cudaMemPoolCreate(pool: Ptr, properties: Ptr) = cuMemPoolCreate;
    cudaMemPoolExportPointer(handle: Ptr, address: Ptr) = cuMemPoolExportPointer;
    cudaMemPoolImportPointer(address: Ptr, pool: usize, handle: Ptr) = cuMemPoolImportPointer;
    cudaIpcGetMemHandle(handle: Ptr, address: Ptr) = cuIpcGetMemHandle;
    cudaIpcOpenMemHandle(address: Ptr, handle: IpcHandle, flags: u32) = cuIpcOpenMemHandle_v2;
    cudaIpcCloseMemHandle(address: Ptr) = cuIpcCloseMemHandle;
    cudaMemPoolDestroy(pool: usize) = cuMemPoolDestroy;
    cudaMemPoolTrimTo(pool: usize, bytes: usize) = cuMemPoolTrimTo;
    cudaMemPoolSetAttribute(pool: usize, number: u32, value: Ptr) = cuMemPoolSetAttribute;
    #[cfg(cuda13)]
    + ptsz cudaMemPrefetchAsync(
        address: Ptr, bytes: usize, location: u64, flags: u32, stream: Stream
    ) = cuMemPrefetchAsync_v2;
    #[cfg(cuda13)]
    cudaMemAdvise(address: Ptr, bytes: usize, advice: u32, location: u64) = cuMemAdvise_v2;
    cudaMemRangeGetAttribute(data: Ptr, size: usize, number: u32, address: Ptr, bytes: usize) = cuMemRangeGetAttribute;
    cudaMemRangeGetAttributes(
        data: Ptr, sizes: Ptr, numbers: Ptr, count: usize, address: Ptr, bytes: usize
    ) = cuMemRangeGetAttributes;
    #[cfg(cuda13)]
    + ptsz cudaMemcpyBatchAsync(
        to: Ptr, from: Ptr, sizes: Ptr, count: usize, attributes: Ptr, which: Ptr, attribute_count: usize,
        stream: Stream
    ) = cuMemcpyBatchAsync_v2;
    #[cfg(cuda13)]
    + ptsz cudaMemcpy3DBatchAsync(count: usize, copies: Ptr, flags: u64, stream: Stream) = cuMemcpy3DBatchAsync_v2;
    + ptsz cudaMemcpyWithAttributesAsync(
        to: Ptr, from: Ptr, bytes: usize, attributes: Ptr, stream: Stream
    ) = cuMemcpyWithAttributesAsync;
    + ptsz cudaMemcpy3DWithAttributesAsync(copy: Ptr, flags: u64, stream: Stream) = cuMemcpy3DWithAttributesAsync;
    + ptsz cudaMemPrefetchBatchAsync(
        addresses: Ptr, sizes: Ptr, count: usize, locations: Ptr, which: Ptr, location_count: usize, flags: u64,
        stream: Stream
    ) = cuMemPrefetchBatchAsync;
    + ptsz cudaMemDiscardBatchAsync(
        addresses: Ptr, sizes: Ptr, count: usize, flags: u64, stream: Stream
    ) = cuMemDiscardBatchAsync;
    + ptsz cudaMemDiscardAndPrefetchBatchAsync(
        addresses: Ptr, sizes: Ptr, count: usize, locations: Ptr, which: Ptr, location_count: usize, flags: u64,
        stream: Stream
    ) = cuMemDiscardAndPrefetchBatchAsync;
    cudaMemGetDefaultMemPool(pool: Ptr, location: Ptr, kind: u32) = cuMemGetDefaultMemPool;
    cudaMemGetMemPool(pool: Ptr, location: Ptr, kind: u32) = cuMemGetMemPool;
    cudaMemSetMemPool(location: Ptr, kind: u32, pool: usize) = cuMemSetMemPool;
    cudaMemPoolSetAccess(pool: usize, rights: Ptr, count: usize) = cuMemPoolSetAccess;
    cudaMemPoolGetAccess(flags: Ptr, pool: usize, location: Ptr) = cuMemPoolGetAccess;
    cudaMemPoolGetAttribute(pool: usize, number: u32, value: Ptr) = cuMemPoolGetAttribute;
}

api! {
    fn cudaMemPoolExportToShareableHandle(handle: Ptr, pool: usize, kind: u32, flags: u32) {
        driver::cuMemPoolExportToShareableHandle(handle, pool, kind, flags.into())
    }
    fn cudaMemPoolImportFromShareableHandle(pool: Ptr, handle: Ptr, kind: u32, flags: u32) {
        driver::cuMemPoolImportFromShareableHandle(pool, handle, kind, flags.into())
    }
    fn cudaMalloc(out: Ptr, bytes: usize) { allocate(out, bytes, || driver::cuMemAlloc_v2(out, bytes)) }
    fn cudaMallocManaged(out: Ptr, bytes: usize, flags: u32) { driver::cuMemAllocManaged(out, bytes, flags) }
    fn cudaMallocHost(out: Ptr, bytes: usize) { allocate(out, bytes, || driver::cuMemHostAlloc(out, bytes, 0)) }
    fn cudaHostAlloc(out: Ptr, bytes: usize, flags: u32) {
        allocate(out, bytes, || driver::cuMemHostAlloc(out, bytes, flags))
    }
    fn cudaMallocPitch(out: Ptr, pitch: Ptr, width: usize, height: usize) {
        driver::cuMemAllocPitch_v2(out, pitch, width, height, 4)
    }
    fn cudaMalloc3D(out: Ptr, extent: Extent) {
        let (mut address, mut pitch) = (0u64, 0usize);
        let rows = extent.height.max(1).checked_mul(extent.depth.max(1)).ok_or(Code::INVALID_VALUE)?;
        driver::cuMemAllocPitch_v2(Ptr::to(&mut address), Ptr::to(&mut pitch), extent.width, rows, 4)?;
        out.write(0, PitchedPtr { address, pitch, width: extent.width, height: extent.height })
    }
    + ptsz fn cudaMallocAsync(out: Ptr, bytes: usize, stream: Stream) {
        allocate(out, bytes, || driver::cuMemAllocAsync(out, bytes, stream))
    }
    + ptsz fn cudaMallocFromPoolAsync(out: Ptr, bytes: usize, pool: usize, stream: Stream) {
        allocate(out, bytes, || driver::cuMemAllocFromPoolAsync(out, bytes, pool, stream))
    }
    fn cudaFree(address: Ptr) { free(address) }
    + ptsz fn cudaFreeAsync(address: Ptr, stream: Stream) { driver::cuMemFreeAsync(address.number(), stream) }

    + ptds fn cudaMemcpy(to: Ptr, from: Ptr, bytes: usize, direction: u32) {
        copy_now(to, from, bytes, direction)
    }
    + ptsz fn cudaMemcpyAsync(to: Ptr, from: Ptr, bytes: usize, direction: u32, stream: Stream) {
        copy(to, from, bytes, direction, stream)
    }
    fn cudaMemcpyPeer(to: Ptr, to_device: i32, from: Ptr, from_device: i32, bytes: usize) {
        // The work of both devices precedes it, and their later work follows it: the driver has to know them.
        let (to_context, from_context) = (peer(to_device)?, peer(from_device)?);
        driver::cuMemcpyPeer(to.number(), to_context, from.number(), from_context, bytes)
    }
    fn cudaMemcpyPeerAsync(to: Ptr, _to_device: i32, from: Ptr, _from_device: i32, bytes: usize, stream: Stream) {
        copy(to, from, bytes, kind::DEVICE_TO_DEVICE, stream)
    }
    + ptds fn cudaMemcpyToSymbol(symbol: Ptr, from: Ptr, bytes: usize, offset: usize, direction: u32) {
        check_symbol_copy(direction, kind::HOST_TO_DEVICE)?;
        copy_now(part(symbol, offset, bytes)?, from, bytes, direction)
    }
    + ptsz fn cudaMemcpyToSymbolAsync(symbol: Ptr, from: Ptr, bytes: usize, offset: usize, direction: u32, stream: Stream) {
        check_symbol_copy(direction, kind::HOST_TO_DEVICE)?;
        copy(part(symbol, offset, bytes)?, from, bytes, direction, stream)
    }
    + ptds fn cudaMemcpyFromSymbol(to: Ptr, symbol: Ptr, bytes: usize, offset: usize, direction: u32) {
        check_symbol_copy(direction, kind::DEVICE_TO_HOST)?;
        copy_now(to, part(symbol, offset, bytes)?, bytes, direction)
    }
    + ptsz fn cudaMemcpyFromSymbolAsync(to: Ptr, symbol: Ptr, bytes: usize, offset: usize, direction: u32, stream: Stream) {
        check_symbol_copy(direction, kind::DEVICE_TO_HOST)?;
        copy(to, part(symbol, offset, bytes)?, bytes, direction, stream)
    }
    fn cudaGetSymbolAddress(out: Ptr, symbol: Ptr) { out.write(0, variable(symbol)?.0) }
    fn cudaGetSymbolSize(out: Ptr, symbol: Ptr) { out.write(0, variable(symbol)?.1) }

    + ptds fn cudaMemcpy2D(
        to: Ptr, to_pitch: usize, from: Ptr, from_pitch: usize, width: usize, height: usize, direction: u32,
    ) {
        check_kind(direction)?;
        Copy3d::rows(to, to_pitch, from, from_pitch, width, height).with_pitches()?.submit_and_wait()
    }
    + ptsz fn cudaMemcpy2DAsync(
        to: Ptr, to_pitch: usize, from: Ptr, from_pitch: usize, width: usize, height: usize, direction: u32,
        stream: Stream,
    ) {
        check_kind(direction)?;
        Copy3d::rows(to, to_pitch, from, from_pitch, width, height).with_pitches()?.submit(stream)
    }
    + ptds fn cudaMemset(to: Ptr, value: i32, bytes: usize) {
        driver::cuMemsetD8Async(to.number(), value as u8, bytes, Stream::DEFAULT)
    }
    + ptsz fn cudaMemsetAsync(to: Ptr, value: i32, bytes: usize, stream: Stream) {
        driver::cuMemsetD8Async(to.number(), value as u8, bytes, stream)
    }
    + ptds fn cudaMemset2D(to: Ptr, pitch: usize, value: i32, width: usize, height: usize) {
        driver::cuMemsetD2D8Async(to.number(), pitch, value as u8, width, height, Stream::DEFAULT)
    }
    + ptsz fn cudaMemset2DAsync(to: Ptr, pitch: usize, value: i32, width: usize, height: usize, stream: Stream) {
        driver::cuMemsetD2D8Async(to.number(), pitch, value as u8, width, height, stream)
    }
    + ptds fn cudaMemset3D(to: PitchedPtr, value: i32, extent: Extent) { fill(to, value, extent, Stream::DEFAULT) }
    + ptsz fn cudaMemset3DAsync(to: PitchedPtr, value: i32, extent: Extent, stream: Stream) {
        fill(to, value, extent, stream)
    }
    fn cudaPointerGetAttributes(out: Ptr, address: Ptr) { attributes(out, address) }
}

fn fill(to: PitchedPtr, value: i32, extent: Extent, stream: Stream) -> Outcome {
    if extent.width == 0 || extent.height == 0 {
        return Ok(());
    }
    let slice_pitch = to.pitch.checked_mul(to.height).ok_or(Code::INVALID_VALUE)?;
    (0..extent.depth).try_for_each(|z| {
        let offset = z.checked_mul(slice_pitch).ok_or(Code::INVALID_VALUE)?;
        let slice = to.address.checked_add(offset as u64).ok_or(Code::INVALID_VALUE)?;
        driver::cuMemsetD2D8Async(slice, to.pitch, value as u8, extent.width, extent.height, stream)
    })
}
