//! Arrays, and copies of two and three dimensions (CUDA Runtime API, "Memory Management").

use crate::{
    api::api,
    driver,
    error::{Code, Outcome},
    memory::check_kind,
    raw::Ptr,
    stream::Stream,
};
use bytemuck::AnyBitPattern;

/// `cudaExtent`
#[repr(C)]
#[derive(Clone, Copy, Debug, AnyBitPattern)]
pub struct Extent {
    /// Bytes, or elements of an array.
    pub width: usize,
    /// Number of rows.
    pub height: usize,
    /// Number of slices.
    pub depth: usize,
}

/// `cudaPitchedPtr`
#[repr(C)]
#[derive(Clone, Copy, Debug, AnyBitPattern)]
pub struct PitchedPtr {
    /// Address of the first byte.
    pub address: u64,
    /// Distance between rows in bytes.
    pub pitch: usize,
    /// Elements per row.
    pub width: usize,
    /// Rows per slice.
    pub height: usize,
}

/// One side of `CUDA_MEMCPY3D`.
#[repr(C)]
#[derive(Clone, Copy, Default, AnyBitPattern)]
struct Side {
    at: [usize; 3],
    level: usize,
    kind: u32,
    host: u64,
    device: u64,
    array: usize,
    reserved: u64,
    pitch: usize,
    height: usize,
}

/// `CUDA_MEMCPY3D`
#[repr(C)]
#[derive(Clone, Copy, Default, AnyBitPattern)]
pub struct Copy3d {
    from: Side,
    to: Side,
    extent: [usize; 3],
}

/// `CUmemorytype`: the driver determines the kind of memory from the address.
const UNIFIED: u32 = 4;
const ARRAY: u32 = 3;

impl Side {
    fn linear(address: u64, pitch: usize, height: usize) -> Side {
        Side { kind: UNIFIED, device: address, pitch, height, ..Side::default() }
    }

    fn array(array: usize, x: usize, y: usize) -> Side {
        Side { kind: ARRAY, array, at: [x, y, 0], ..Side::default() }
    }
}

impl Copy3d {
    /// A copy of rows between two ranges of linear memory.
    pub fn rows(to: Ptr, to_pitch: usize, from: Ptr, from_pitch: usize, width: usize, height: usize) -> Copy3d {
        let (from, to) = (Side::linear(from.number(), from_pitch, 0), Side::linear(to.number(), to_pitch, 0));
        Copy3d { from, to, extent: [width, height, 1] }
    }

    /// Refuses rows that are longer than the distance between them, and a distance that is longer than a device allows. Only a copy
    /// of three dimensions may leave the pitch of a single row out: "`width` must not exceed either `dpitch` or `spitch`"
    /// (`cudaMemcpy2D`).
    fn check_pitches(&self, needed: bool) -> Outcome {
        /// `cudaDeviceProp::memPitch`
        const LIMIT: usize = i32::MAX as usize;
        let [width, height, depth] = self.extent;
        let needed = needed || height > 1 || depth > 1;
        let refused = |side: &&Side| {
            let given = side.kind != ARRAY && (needed || side.pitch != 0);
            given && !(width..=LIMIT).contains(&side.pitch)
        };
        match width > 0 && [&self.from, &self.to].iter().any(refused) {
            true => Err(Code::INVALID_PITCH_VALUE),
            false => Ok(()),
        }
    }

    /// The copy of two dimensions, whose pitches have to be given.
    pub fn with_pitches(self) -> Result<Copy3d, Code> {
        self.check_pitches(true)?;
        Ok(self)
    }

    /// Submits the copy to the driver.
    pub fn submit(&self, stream: Stream) -> Outcome {
        self.check_pitches(false)?;
        driver::cuMemcpy3DAsync_v2(Ptr::of(self), stream)
    }

    /// The same in the default stream, and waits.
    pub fn submit_and_wait(&self) -> Outcome {
        self.submit(Stream::DEFAULT)?;
        Stream::DEFAULT.wait()
    }

    /// Converts `cudaMemcpy3DParms`: if an array is involved, widths and offsets are in its elements.
    pub fn from_params(params: Ptr) -> Result<Copy3d, Code> {
        Copy3d::between(params, [0, 64, 128])
    }

    /// Converts `cudaMemcpy3DPeerParms`, which has a device after each side.
    fn from_peer_params(params: Ptr) -> Result<Copy3d, Code> {
        Copy3d::between(params, [0, 72, 144])
    }

    /// Converts a structure with both sides and the extent at these offsets.
    fn between(params: Ptr, offsets: [usize; 3]) -> Result<Copy3d, Code> {
        let element = |array: usize| match array {
            0 => Ok(None),
            array => descriptor(array).map(|d| Some(d.element())),
        };
        let side = |offset: usize| -> Result<(usize, [usize; 3], PitchedPtr), Code> {
            Ok((params.read(offset)?, params.read(offset + 8)?, params.read(offset + 32)?))
        };
        let ((from_array, from_at, from), (to_array, to_at, to)) = (side(offsets[0])?, side(offsets[1])?);
        let extent: Extent = params.read(offsets[2])?;
        let (from_element, to_element) = (element(from_array)?, element(to_array)?);
        let place = |array: usize, at: [usize; 3], of: PitchedPtr, element: Option<usize>| match element {
            Some(bytes) => Side { at: [at[0] * bytes, at[1], at[2]], ..Side::array(array, 0, 0) },
            None => Side { at, ..Side::linear(of.address, of.pitch, of.height) },
        };
        Ok(Copy3d {
            from: place(from_array, from_at, from, from_element),
            to: place(to_array, to_at, to, to_element),
            extent: [extent.width * from_element.or(to_element).unwrap_or(1), extent.height, extent.depth],
        })
    }

    /// Writes the copy as `cudaMemcpy3DParms`.
    pub fn describe(&self, params: Ptr) -> Outcome {
        const DEFAULT: u32 = 4; // cudaMemcpyDefault: the addresses say which way
        let mut element = 1;
        for offset in (0..160).step_by(8) {
            params.write(offset, 0u64)?;
        }
        for (side, offset) in [(&self.from, 0), (&self.to, 64)] {
            let mut at = side.at;
            if side.kind == ARRAY {
                element = descriptor(side.array)?.element();
                at[0] /= element;
                params.write(offset, side.array)?;
            } else {
                let [width, ..] = self.extent;
                params.write(
                    offset + 32,
                    PitchedPtr { address: side.device, pitch: side.pitch, width, height: side.height },
                )?;
            }
            params.write(offset + 8, at)?;
        }
        let [width, height, depth] = self.extent;
        params.write(128, [width / element, height, depth])?;
        params.write(152, DEFAULT)
    }
}

/// `cudaChannelFormatDesc`
#[repr(C)]
#[derive(Clone, Copy, Debug, AnyBitPattern)]
pub struct Channels {
    bits: [i32; 4],
    kind: u32,
}

impl Channels {
    /// `CUarray_format` and the number of channels.
    pub fn format(&self) -> Result<(u32, u32), Code> {
        const SIGNED: u32 = 0;
        const UNSIGNED: u32 = 1;
        const FLOAT: u32 = 2;
        let channels = self.bits.iter().take_while(|b| **b != 0).count() as u32;
        let format = match (self.kind, self.bits[0]) {
            (UNSIGNED, 8) => 0x01,
            (UNSIGNED, 16) => 0x02,
            (UNSIGNED, 32) => 0x03,
            (SIGNED, 8) => 0x08,
            (SIGNED, 16) => 0x09,
            (SIGNED, 32) => 0x0a,
            (FLOAT, 16) => 0x10,
            (FLOAT, 32) => 0x20,
            _ => return Err(Code::INVALID_CHANNEL_DESCRIPTOR),
        };
        Ok((format, channels))
    }
}

/// `CUDA_ARRAY3D_DESCRIPTOR`
#[repr(C)]
#[derive(Clone, Copy, Default, AnyBitPattern)]
pub struct Descriptor {
    extent: [usize; 3],
    format: u32,
    channels: u32,
    flags: u32,
}

impl Descriptor {
    /// A descriptor of elements of a format, without extents.
    pub fn of_format(format: u32, channels: u32) -> Descriptor {
        Descriptor { format, channels, ..Descriptor::default() }
    }

    fn channel_bits(&self) -> i32 {
        match self.format {
            0x01 | 0x08 => 8,
            0x02 | 0x09 | 0x10 => 16,
            _ => 32,
        }
    }

    /// Size of an element in bytes.
    fn element(&self) -> usize {
        (self.channel_bits() as usize / 8) * self.channels as usize
    }

    /// Describes the elements as the runtime API does.
    pub fn describe(&self) -> Channels {
        let bits = std::array::from_fn(|i| if i < self.channels as usize { self.channel_bits() } else { 0 });
        let kind = match self.format {
            0x01..=0x03 => 1,
            0x08..=0x0a => 0,
            _ => 2,
        };
        Channels { bits, kind }
    }
}

fn descriptor(array: usize) -> Result<Descriptor, Code> {
    let mut found = Descriptor::default();
    driver::cuArray3DGetDescriptor_v2(Ptr::to(&mut found), array)?;
    Ok(found)
}

fn make(channels: Ptr, extent: Extent, flags: u32) -> Result<Descriptor, Code> {
    let (format, channels) = channels.read::<Channels>(0)?.format()?;
    Ok(Descriptor { extent: [extent.width, extent.height, extent.depth], format, channels, flags })
}

/// Size of an array's row in bytes.
fn row_bytes(array: usize) -> Result<usize, Code> {
    let found = descriptor(array)?;
    Ok((found.extent[0] * found.element()).max(1))
}

/// Copies bytes between an array and linear memory, continuing from the end of a row to the next row.
fn array_bytes(array: usize, x: usize, y: usize, linear: Ptr, to_array: bool, bytes: usize, stream: Stream) -> Outcome {
    let row = row_bytes(array)?;
    let first = bytes.min(row - x.min(row));
    let whole = (bytes - first) / row;
    let parts = [(x, y, first, 1), (0, y + 1, row, whole), (0, y + 1 + whole, (bytes - first) % row, 1)];
    let mut at = linear.number();
    for (x, y, width, height) in parts.into_iter().filter(|(.., width, height)| width * height > 0) {
        array_rows(Side::array(array, x, y), Side::linear(at, width, 0), to_array, width, height, stream)?;
        at += (width * height) as u64;
    }
    Ok(())
}

/// Copies bytes between arrays, in pieces within one row of each, since rows may differ in length.
fn bytes_between_arrays(to: (usize, usize, usize), from: (usize, usize, usize), bytes: usize) -> Outcome {
    let (to_row, from_row) = (row_bytes(to.0)?, row_bytes(from.0)?);
    let mut done = 0;
    while done < bytes {
        let (to_at, from_at) = (to.1 + done, from.1 + done);
        let (to_x, from_x) = (to_at % to_row, from_at % from_row);
        let width = (bytes - done).min(to_row - to_x).min(from_row - from_x);
        let to = Side::array(to.0, to_x, to.2 + to_at / to_row);
        let from = Side::array(from.0, from_x, from.2 + from_at / from_row);
        array_rows(to, from, true, width, 1, Stream::DEFAULT)?;
        done += width;
    }
    Ok(())
}

/// Copies rows between an array and linear memory.
fn array_rows(array: Side, linear: Side, to_array: bool, width: usize, height: usize, stream: Stream) -> Outcome {
    let (from, to) = if to_array { (linear, array) } else { (array, linear) };
    Copy3d { from, to, extent: [width, height, 1] }.with_pitches()?.submit(stream)
}

api! {
    fn cudaMallocArray(out: Ptr, channels: Ptr, width: usize, height: usize, flags: u32) {
        let made = make(channels, Extent { width, height, depth: 0 }, flags)?;
        driver::cuArray3DCreate_v2(out, Ptr::of(&made))
    }
    fn cudaMalloc3DArray(out: Ptr, channels: Ptr, extent: Extent, flags: u32) {
        driver::cuArray3DCreate_v2(out, Ptr::of(&make(channels, extent, flags)?))
    }
    fn cudaMallocMipmappedArray(out: Ptr, channels: Ptr, extent: Extent, levels: u32, flags: u32) {
        driver::cuMipmappedArrayCreate(out, Ptr::of(&make(channels, extent, flags)?), levels)
    }
    fn cudaGetMipmappedArrayLevel(out: Ptr, array: usize, level: u32) {
        driver::cuMipmappedArrayGetLevel(out, array, level)
    }
    fn cudaFreeArray(array: usize) {
        match array {
            0 => Ok(()),
            array => driver::cuArrayDestroy(array),
        }
    }
    fn cudaFreeMipmappedArray(array: usize) { driver::cuMipmappedArrayDestroy(array) }
    fn cudaArrayGetInfo(channels: Ptr, extent: Ptr, flags: Ptr, array: usize) {
        let found = descriptor(array)?;
        if !channels.is_null() {
            channels.write(0, found.describe())?;
        }
        if !extent.is_null() {
            extent.write(0, found.extent)?;
        }
        if !flags.is_null() {
            flags.write(0, found.flags)?;
        }
        Ok(())
    }
    fn cudaGetChannelDesc(channels: Ptr, array: usize) { channels.write(0, descriptor(array)?.describe()) }
    + ptds fn cudaMemcpy2DToArray(
        to: usize, x: usize, y: usize, from: Ptr, pitch: usize, width: usize, height: usize, direction: u32,
    ) {
        check_kind(direction)?;
        array_rows(Side::array(to, x, y), Side::linear(from.number(), pitch, 0), true, width, height, Stream::DEFAULT)?;
        Stream::DEFAULT.wait()
    }
    + ptsz fn cudaMemcpy2DToArrayAsync(
        to: usize, x: usize, y: usize, from: Ptr, pitch: usize, width: usize, height: usize, direction: u32,
        stream: Stream,
    ) {
        check_kind(direction)?;
        array_rows(Side::array(to, x, y), Side::linear(from.number(), pitch, 0), true, width, height, stream)
    }
    + ptds fn cudaMemcpy2DFromArray(
        to: Ptr, pitch: usize, from: usize, x: usize, y: usize, width: usize, height: usize, direction: u32,
    ) {
        check_kind(direction)?;
        array_rows(Side::array(from, x, y), Side::linear(to.number(), pitch, 0), false, width, height, Stream::DEFAULT)?;
        Stream::DEFAULT.wait()
    }
    + ptsz fn cudaMemcpy2DFromArrayAsync(
        to: Ptr, pitch: usize, from: usize, x: usize, y: usize, width: usize, height: usize, direction: u32,
        stream: Stream,
    ) {
        check_kind(direction)?;
        array_rows(Side::array(from, x, y), Side::linear(to.number(), pitch, 0), false, width, height, stream)
    }
    + ptds fn cudaMemcpyToArray(to: usize, x: usize, y: usize, from: Ptr, bytes: usize, direction: u32) {
        check_kind(direction)?;
        array_bytes(to, x, y, from, true, bytes, Stream::DEFAULT)?;
        Stream::DEFAULT.wait()
    }
    + ptsz fn cudaMemcpyToArrayAsync(
        to: usize, x: usize, y: usize, from: Ptr, bytes: usize, direction: u32, stream: Stream,
    ) {
        check_kind(direction)?;
        array_bytes(to, x, y, from, true, bytes, stream)
    }
    + ptds fn cudaMemcpyFromArray(to: Ptr, from: usize, x: usize, y: usize, bytes: usize, direction: u32) {
        check_kind(direction)?;
        array_bytes(from, x, y, to, false, bytes, Stream::DEFAULT)?;
        Stream::DEFAULT.wait()
    }
    + ptsz fn cudaMemcpyFromArrayAsync(
        to: Ptr, from: usize, x: usize, y: usize, bytes: usize, direction: u32, stream: Stream,
    ) {
        check_kind(direction)?;
        array_bytes(from, x, y, to, false, bytes, stream)
    }
    + ptds fn cudaMemcpyArrayToArray(
        to: usize, to_x: usize, to_y: usize, from: usize, x: usize, y: usize, bytes: usize, direction: u32,
    ) {
        check_kind(direction)?;
        bytes_between_arrays((to, to_x, to_y), (from, x, y), bytes)
    }
    + ptds fn cudaMemcpy2DArrayToArray(
        to: usize, to_x: usize, to_y: usize, from: usize, x: usize, y: usize, width: usize, height: usize, direction: u32,
    ) {
        check_kind(direction)?;
        array_rows(Side::array(to, to_x, to_y), Side::array(from, x, y), true, width, height, Stream::DEFAULT)?;
        Stream::DEFAULT.wait()
    }
    + ptds fn cudaMemcpy3DPeer(params: Ptr) { Copy3d::from_peer_params(params)?.submit_and_wait() }
    + ptsz fn cudaMemcpy3DPeerAsync(params: Ptr, stream: Stream) { Copy3d::from_peer_params(params)?.submit(stream) }
    + ptds fn cudaMemcpy3D(params: Ptr) { Copy3d::from_params(params)?.submit_and_wait() }
    + ptsz fn cudaMemcpy3DAsync(params: Ptr, stream: Stream) { Copy3d::from_params(params)?.submit(stream) }
}

/// `cudaCreateChannelDesc`, which returns a structure and cannot fail.
#[allow(unsafe_code, non_snake_case)]
#[unsafe(no_mangle)]
pub extern "C" fn cudaCreateChannelDesc(x: i32, y: i32, z: i32, w: i32, kind: u32) -> Channels {
    Channels { bits: [x, y, z, w], kind }
}
