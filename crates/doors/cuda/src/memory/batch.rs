//! Batches of copies, prefetches and discards (CUDA Driver API, "Memory Management" and "Unified Addressing").

use crate::{
    api::api,
    code::{Code, Outcome},
    driver::{current, driver},
    memory::{
        DevicePtr, Location,
        advice::prefetch,
        copy::{Copy, Place, Side, submit},
    },
    raw::{Host, In, Out},
    work::stream::StreamHandle,
};
use bytemuck::AnyBitPattern;

/// `CUmemcpy3DOperand`: a type, and either an address with row length and layer height in elements and rows, or an
/// array with an offset in elements.
#[repr(C)]
#[derive(Clone, Copy, AnyBitPattern)]
struct Operand {
    kind: u32,
    of: u64,
    numbers: [usize; 3],
}

/// `CUDA_MEMCPY3D_BATCH_OP`
#[repr(C)]
#[derive(Clone, Copy, AnyBitPattern)]
pub struct BoxCopy {
    from: Operand,
    to: Operand,
    extent: [usize; 3],
    order: u32,
    flags: u32,
}

impl Operand {
    const POINTER: u32 = 1;
    const ARRAY: u32 = 2;

    /// Size of an element in bytes; `None` for pointers.
    fn element(&self) -> Result<Option<usize>, Code> {
        match self.kind {
            Operand::POINTER => Ok(None),
            Operand::ARRAY => Ok(Some(driver()?.arrays.find_number(self.of as usize)?.element())),
            _ => Err(Code::INVALID_VALUE),
        }
    }

    fn side(&self, element: usize, extent: [usize; 3]) -> Result<Side, Code> {
        let [a, b, c] = self.numbers;
        if self.kind == Operand::ARRAY {
            let array = driver()?.arrays.find_number(self.of as usize)?;
            return Ok(Side { place: Place::Array(array), at: [a * element, b, c] });
        }
        // A row length or layer height of zero means tightly packed.
        let (row, height) = (if a == 0 { extent[0] } else { a }, if b == 0 { extent[1] } else { b });
        let place = Place::Linear { address: self.of, pitch: row * element, height, device: false };
        Ok(Side { place, at: [0; 3] })
    }
}

impl BoxCopy {
    fn submit(&self, stream: StreamHandle) -> Outcome {
        let element = self.from.element()?.or(self.to.element()?).unwrap_or(1);
        let [width, height, depth] = self.extent;
        let (from, to) = (self.from.side(element, self.extent)?, self.to.side(element, self.extent)?);
        submit(stream, Copy { from, to, extent: [width * element, height, depth] })
    }
}

fn bytes(to: DevicePtr, from: DevicePtr, count: usize, stream: StreamHandle) -> Outcome {
    current()?;
    submit(stream, Copy::bytes(Side::unified(to), Side::unified(from), count))
}

fn nth_bytes(to: In<DevicePtr>, from: In<DevicePtr>, sizes: In<usize>, i: usize, stream: StreamHandle) -> Outcome {
    bytes(to.nth(i)?, from.nth(i)?, sizes.nth(i)?, stream)
}

/// Prefetches ranges; `which` holds the index of the first range of each location.
fn prefetch_all(
    addresses: In<DevicePtr>,
    sizes: In<usize>,
    count: usize,
    locations: In<Location>,
    which: In<usize>,
    location_count: usize,
    stream: StreamHandle,
) -> Outcome {
    stream.get()?;
    let starts = which.list(location_count)?;
    if count == 0 || starts.first() != Some(&0) {
        return Err(Code::INVALID_VALUE);
    }
    (0..count).try_for_each(|i| {
        let location = starts.partition_point(|start| *start <= i) - 1;
        prefetch(addresses.nth(i)?, sizes.nth(i)?, locations.nth(location)?)
    })
}

api! {
    12080 + ptsz fn cuMemcpyBatchAsync(
        to: In<DevicePtr>, from: In<DevicePtr>, sizes: In<usize>, count: usize, _attributes: Host, _which: Host,
        _attribute_count: usize, failed: Out<usize>, stream: StreamHandle,
    ) {
        (0..count).try_for_each(|i| nth_bytes(to, from, sizes, i, stream).inspect_err(|_| failed.offer(i)))
    }
    13000 + ptsz fn cuMemcpyBatchAsync_v2(
        to: In<DevicePtr>, from: In<DevicePtr>, sizes: In<usize>, count: usize, _attributes: Host, _which: Host,
        _attribute_count: usize, stream: StreamHandle,
    ) {
        (0..count).try_for_each(|i| nth_bytes(to, from, sizes, i, stream))
    }
    12080 + ptsz fn cuMemcpy3DBatchAsync(
        count: usize, copies: In<BoxCopy>, failed: Out<usize>, _flags: u64, stream: StreamHandle,
    ) {
        (0..count).try_for_each(|i| copies.nth(i)?.submit(stream).inspect_err(|_| failed.offer(i)))
    }
    13000 + ptsz fn cuMemcpy3DBatchAsync_v2(count: usize, copies: In<BoxCopy>, _flags: u64, stream: StreamHandle) {
        (0..count).try_for_each(|i| copies.nth(i)?.submit(stream))
    }
    13020 + ptsz fn cuMemcpyWithAttributesAsync(
        to: DevicePtr, from: DevicePtr, count: usize, _attributes: Host, stream: StreamHandle,
    ) {
        bytes(to, from, count, stream)
    }
    13020 + ptsz fn cuMemcpy3DWithAttributesAsync(copy: In<BoxCopy>, _flags: u64, stream: StreamHandle) {
        copy.get()?.submit(stream)
    }
    13000 + ptsz fn cuMemPrefetchBatchAsync(
        addresses: In<DevicePtr>, sizes: In<usize>, count: usize, locations: In<Location>, which: In<usize>,
        location_count: usize, _flags: u64, stream: StreamHandle,
    ) {
        prefetch_all(addresses, sizes, count, locations, which, location_count, stream)
    }
    13000 + ptsz fn cuMemDiscardBatchAsync(
        _addresses: In<DevicePtr>, _sizes: In<usize>, _count: usize, _flags: u64, stream: StreamHandle,
    ) {
        stream.get().map(drop) // contents are undefined afterwards, so they may as well stay
    }
    13000 + ptsz fn cuMemDiscardAndPrefetchBatchAsync(
        addresses: In<DevicePtr>, sizes: In<usize>, count: usize, locations: In<Location>, which: In<usize>,
        location_count: usize, _flags: u64, stream: StreamHandle,
    ) {
        prefetch_all(addresses, sizes, count, locations, which, location_count, stream)
    }
}
