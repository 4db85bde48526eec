//! Arrays, textures and surfaces (CUDA Driver API, "Memory Management", "Texture Object Management", "Surface Object
//! Management").

use crate::{
    api::{api, because},
    code::{Code, Outcome},
    driver::{current, driver},
    handle::Handle,
    raw::{In, Out},
};
use bytemuck::AnyBitPattern;
use margay_exec::texture::{Address, Extent, Filter, Format, Part, Sampler, Scalar};
use margay_runtime::{Array, SurfaceObject, TextureObject, TextureOptions};
use std::sync::Arc;

/// An array, or a level of a mipmapped array.
pub struct ArrayObject {
    array: Array,
    level: u32,
    descriptor: Descriptor3d,
}

impl ArrayObject {
    /// Size of an element in bytes.
    pub fn element(&self) -> usize {
        self.array.texels().format.bytes() as usize
    }

    /// The address of `bytes` bytes in a row.
    pub fn row(&self, y: usize, z: usize, x: usize, bytes: usize) -> Result<u64, Code> {
        let texels = self.array.texels();
        let level = texels.level(self.level);
        let [width, height, depth] = level.size.map(|n| n as usize);
        let slices = depth * texels.extent.layers.max(1) as usize;
        let row = width * (texels.format.bytes() * texels.extent.samples) as usize;
        if x.checked_add(bytes).is_none_or(|end| end > row) || y >= height || z >= slices {
            return Err(Code::INVALID_VALUE);
        }
        Ok(texels.row(level, y as u32, z as u32) + x as u64)
    }
}

/// A texture object with its parameters.
pub struct Texture {
    _object: TextureObject,
    resource: Resource,
    options: TextureDescriptor,
    view: Option<View>,
}

/// A surface object with its parameters.
pub struct Surface {
    _object: SurfaceObject,
    resource: Resource,
}

/// `CUDA_ARRAY_DESCRIPTOR`
#[repr(C)]
#[derive(Clone, Copy, AnyBitPattern)]
pub struct Descriptor {
    width: usize,
    height: usize,
    format: u32,
    channels: u32,
}

impl Descriptor {
    /// `CUarray_format` and channels.
    pub fn texels(&self) -> (u32, u32) {
        (self.format, self.channels)
    }

    /// Width and height in texels.
    pub fn size(&self) -> (usize, usize) {
        (self.width, self.height)
    }
}

/// `CUDA_ARRAY3D_DESCRIPTOR`
#[repr(C)]
#[derive(Clone, Copy, AnyBitPattern)]
pub struct Descriptor3d {
    width: usize,
    height: usize,
    depth: usize,
    format: u32,
    channels: u32,
    flags: u32,
}

/// `CUDA_ARRAY3D_*`
mod flag {
    pub const LAYERED: u32 = 1;
    /// `CUDA_ARRAY3D_SURFACE_LDST`
    pub const SURFACE: u32 = 2;
    pub const CUBE: u32 = 4;
}

/// `CUarray_format`
pub fn format(number: u32, channels: u32) -> Result<Format, Code> {
    let (scalar, bits) = match number {
        0x01 => (Scalar::Unsigned, 8),
        0x02 => (Scalar::Unsigned, 16),
        0x03 => (Scalar::Unsigned, 32),
        0x08 => (Scalar::Signed, 8),
        0x09 => (Scalar::Signed, 16),
        0x0a => (Scalar::Signed, 32),
        0x10 => (Scalar::Float, 16),
        0x20 => (Scalar::Float, 32),
        _ => return Err(Code::NOT_SUPPORTED),
    };
    let channels = u8::try_from(channels).map_err(|_| Code::INVALID_VALUE)?;
    Ok(Format { scalar, bits, channels })
}

impl Descriptor3d {
    fn extent(&self, levels: u32) -> Result<Extent, Code> {
        let number = |n: usize| u32::try_from(n).map_err(|_| Code::INVALID_VALUE);
        let (width, height, depth) = (number(self.width)?, number(self.height)?, number(self.depth)?);
        let cube = self.flags & flag::CUBE != 0;
        Ok(match self.flags & (flag::LAYERED | flag::CUBE) {
            0 => Extent { levels, ..Extent::new(width, height, depth) },
            _ => Extent { layers: depth, cube, levels, ..Extent::new(width, height, 0) },
        })
    }

    fn make(&self, levels: u32) -> Result<Array, Code> {
        let context = current()?;
        let (format, extent) = (format(self.format, self.channels)?, self.extent(levels)?);
        context.runtime.array(format, extent).map_err(|e| Code::from(&e))
    }
}

/// `CUDA_RESOURCE_DESC`: a kind, and a union.
#[repr(C)]
#[derive(Clone, Copy, AnyBitPattern)]
pub struct Resource {
    pub kind: u32,
    pub of: Union,
    flags: u32,
}

impl Resource {
    fn new(kind: u32, address: u64, width: usize, height: usize, pitch: usize) -> Resource {
        let of = Union { address, format: 0, channels: 0, width, height, pitch, rest: [0; 11] };
        Resource { kind, of, flags: 0 }
    }

    /// An array, or a mipmapped one.
    pub fn of_array(kind: u32, array: u64) -> Resource {
        Resource::new(kind, array, 0, 0, 0)
    }

    /// Linear memory whose texels have no format yet.
    pub fn linear(address: u64, bytes: usize) -> Resource {
        Resource::new(kind::LINEAR, address, bytes, 0, 0)
    }

    /// The same in two dimensions: the width is in texels, the pitch in bytes.
    pub fn pitched(address: u64, width: usize, height: usize, pitch: usize) -> Resource {
        Resource::new(kind::PITCHED, address, width, height, pitch)
    }
}

/// The longest member of the union; arrays have their handle in `address`.
#[repr(C)]
#[derive(Clone, Copy, AnyBitPattern)]
pub struct Union {
    pub address: u64,
    pub format: u32,
    pub channels: u32,
    width: usize,
    height: usize,
    pitch: usize,
    rest: [u64; 11],
}

/// `CUresourcetype`
pub mod kind {
    pub const ARRAY: u32 = 0;
    pub const MIPMAPPED: u32 = 1;
    pub const LINEAR: u32 = 2;
    pub const PITCHED: u32 = 3;
}

/// `CUDA_RESOURCE_VIEW_DESC`
#[repr(C)]
#[derive(Clone, Copy, AnyBitPattern)]
pub struct View {
    /// `CUresourceViewFormat`
    format: u32,
    width: usize,
    height: usize,
    depth: usize,
    levels: [u32; 2],
    layers: [u32; 2],
    reserved: [u32; 16],
}

impl View {
    /// The part of an array that it shows. Levels count from the level that the object is; the extents are those of the array, and
    /// ranges that do not apply are zero (`cuTexObjectCreate`).
    fn part(&self, of: &ArrayObject) -> Result<Part, Code> {
        let Descriptor3d { width, height, depth, .. } = of.descriptor;
        let format = view_format(self.format)?;
        let layers = of.array.texels().extent.layers;
        let same = |own: usize, original: usize| own.max(1) == original.max(1);
        // The depth of a layered array is no extent of its texels.
        if !same(self.width, width) || !same(self.height, height) || layers == 0 && !same(self.depth, depth) {
            because(|| "the view has other extents than the array".to_string());
            return Err(Code::INVALID_VALUE);
        }
        let range = |[first, last]: [u32; 2]| Some(first..last.checked_add(1)?).filter(|range| !range.is_empty());
        let levels = range(self.levels).ok_or(Code::INVALID_VALUE)?;
        let layers = match layers {
            0 => (self.layers == [0, 0]).then_some(0..0),
            _ => range(self.layers),
        };
        Ok(Part {
            levels: of.level.saturating_add(levels.start)..of.level.saturating_add(levels.end),
            layers: layers.ok_or(Code::INVALID_VALUE)?,
            format,
        })
    }
}

/// Texels of a `CUresourceViewFormat`: numbered by scalar and size, with 1, 2 and 4 channels each. Those after them are compressed.
fn view_format(number: u32) -> Result<Format, Code> {
    const KINDS: [(Scalar, u8); 8] = [
        (Scalar::Unsigned, 8),
        (Scalar::Signed, 8),
        (Scalar::Unsigned, 16),
        (Scalar::Signed, 16),
        (Scalar::Unsigned, 32),
        (Scalar::Signed, 32),
        (Scalar::Float, 16),
        (Scalar::Float, 32),
    ];
    let index = number.checked_sub(1).ok_or(Code::INVALID_VALUE)?;
    let Some(&(scalar, bits)) = KINDS.get(index as usize / 3) else {
        because(|| "margay does not support resource views of compressed formats".to_string());
        return Err(Code::NOT_SUPPORTED);
    };
    Ok(Format { scalar, bits, channels: 1 << (index % 3) })
}

/// `CUDA_TEXTURE_DESC`
#[repr(C)]
#[derive(Clone, Copy, Default, AnyBitPattern)]
pub struct TextureDescriptor {
    pub address: [u32; 3],
    pub filter: u32,
    pub flags: u32,
    pub anisotropy: u32,
    pub level_filter: u32,
    pub bias: f32,
    pub levels: [f32; 2],
    pub border: [f32; 4],
    reserved: [i32; 12],
}

impl TextureDescriptor {
    fn options(&self) -> TextureOptions {
        const AS_INTEGER: u32 = 1;
        const NORMALIZED: u32 = 2;
        const SRGB: u32 = 16;
        let filter = |n: u32| if n == 1 { Filter::Linear } else { Filter::Point };
        let address = self.address.map(|n| match n {
            0 => Address::Wrap,
            2 => Address::Mirror,
            3 => Address::Border,
            _ => Address::Clamp,
        });
        let sampler = Sampler {
            address,
            filter: filter(self.filter),
            level_filter: filter(self.level_filter),
            bias: self.bias,
            levels: (self.levels[0], self.levels[1]),
            border: self.border,
            ..Sampler::default()
        };
        TextureOptions {
            sampler,
            normalized: self.flags & NORMALIZED != 0,
            normalized_read: self.flags & AS_INTEGER == 0,
            srgb: self.flags & SRGB != 0,
        }
    }
}

/// The array of a handle.
pub fn array(number: u64) -> Result<Arc<ArrayObject>, Code> {
    driver()?.arrays.find_number(number as usize)
}

/// Refuses linear memory that is not aligned for textures, and texels that do not fit their pitch (`cuTexObjectCreate`).
fn check_linear(of: &Union, texel: usize, pitched: bool) -> Outcome {
    /// `CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT`
    const ALIGNMENT: u64 = 512;
    /// `CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT`
    const PITCH_ALIGNMENT: usize = 32;
    if !of.address.is_multiple_of(ALIGNMENT) {
        because(|| format!("the address of a texture in linear memory must be a multiple of {ALIGNMENT}"));
        return Err(Code::INVALID_VALUE);
    }
    let row = of.width.checked_mul(texel).ok_or(Code::INVALID_VALUE)?;
    if pitched && (!of.pitch.is_multiple_of(PITCH_ALIGNMENT) || of.pitch < row) {
        because(|| {
            format!("the pitch of a texture must be a multiple of {PITCH_ALIGNMENT} and hold a row of {row} bytes")
        });
        return Err(Code::INVALID_VALUE);
    }
    Ok(())
}

/// Makes a texture.
pub fn texture(resource: &Resource, options: &TextureDescriptor, view: Option<&View>) -> Result<TextureObject, Code> {
    let (context, of) = (current()?, &resource.of);
    let mut options = options.options();
    let number = |n: usize| u32::try_from(n).map_err(|_| Code::INVALID_VALUE);
    let linear = |width: u32, height: u32, pitch: u64| {
        let texels = context.runtime.linear_texels(of.address, format(of.format, of.channels)?, width, height, pitch);
        texels.map_err(|e| Code::from(&e))
    };
    match resource.kind {
        kind::ARRAY | kind::MIPMAPPED => {
            let from = array(of.address)?;
            let texels = from.array.texels();
            let levels = if resource.kind == kind::ARRAY { from.level..from.level + 1 } else { 0..texels.levels() };
            let part = view.map_or_else(|| Ok(texels.of_levels(levels)), |view| view.part(&from))?;
            options.normalized_read &= part.format.scalar != Scalar::Float;
            context.runtime.texture_of(&from.array, &part, &options).map_err(|_| Code::INVALID_VALUE)
        }
        kind::LINEAR => {
            let texel = format(of.format, of.channels)?.bytes() as usize;
            check_linear(of, texel, false)?;
            let texels = linear(number(of.width / texel.max(1))?, 0, 0)?;
            Ok(context.runtime.linear_texture(&texels, &options))
        }
        kind::PITCHED => {
            check_linear(of, format(of.format, of.channels)?.bytes() as usize, true)?;
            let texels = linear(number(of.width)?, number(of.height)?, of.pitch as u64)?;
            Ok(context.runtime.linear_texture(&texels, &options))
        }
        _ => Err(Code::INVALID_VALUE),
    }
}

/// Makes a surface of an array.
pub fn surface(from: &ArrayObject) -> Result<SurfaceObject, Code> {
    if from.descriptor.flags & flag::SURFACE == 0 {
        because(|| "the array was made without `cudaArraySurfaceLoadStore` (`CUDA_ARRAY3D_SURFACE_LDST`)".to_string());
        return Err(Code::INVALID_VALUE);
    }
    current()?.runtime.surface(&from.array, from.level).map_err(|e| Code::from(&e))
}

fn create(out: Out<Handle<ArrayObject>>, descriptor: Descriptor3d, levels: u32) -> Outcome {
    let made = descriptor.make(levels)?;
    out.set(driver()?.arrays.add(ArrayObject { array: made, level: 0, descriptor }))
}

/// Forgets an array when the work is done that may use it.
fn destroy(array: Handle<ArrayObject>) -> Outcome {
    current()?.settle();
    driver()?.arrays.remove(array).map(drop)
}

api! {
    3020 fn cuArrayCreate_v2(out: Out<Handle<ArrayObject>>, descriptor: In<Descriptor>) {
        let Descriptor { width, height, format, channels } = descriptor.get()?;
        create(out, Descriptor3d { width, height, depth: 0, format, channels, flags: 0 }, 1)
    }
    3020 fn cuArrayGetDescriptor_v2(out: Out<Descriptor>, array: Handle<ArrayObject>) {
        let Descriptor3d { width, height, format, channels, .. } = driver()?.arrays.get(array)?.descriptor;
        out.set(Descriptor { width, height, format, channels })
    }
    3020 fn cuArray3DCreate_v2(out: Out<Handle<ArrayObject>>, descriptor: In<Descriptor3d>) {
        create(out, descriptor.get()?, 1)
    }
    3020 fn cuArray3DGetDescriptor_v2(out: Out<Descriptor3d>, array: Handle<ArrayObject>) {
        out.set(driver()?.arrays.get(array)?.descriptor)
    }
    2000 fn cuArrayDestroy(array: Handle<ArrayObject>) { destroy(array) }
    5000 fn cuMipmappedArrayCreate(out: Out<Handle<ArrayObject>>, descriptor: In<Descriptor3d>, levels: u32) {
        create(out, descriptor.get()?, levels)
    }
    5000 fn cuMipmappedArrayGetLevel(out: Out<Handle<ArrayObject>>, array: Handle<ArrayObject>, level: u32) {
        let whole = driver()?.arrays.get(array)?;
        if level >= whole.array.texels().levels() {
            return Err(Code::INVALID_VALUE);
        }
        let size = whole.array.texels().level(level).size.map(|n| n as usize);
        let mut descriptor = whole.descriptor;
        descriptor.width = size[0];
        descriptor.height = descriptor.height.min(size[1]);
        if descriptor.flags & (flag::LAYERED | flag::CUBE) == 0 {
            descriptor.depth = descriptor.depth.min(size[2]);
        }
        out.set(driver()?.arrays.add(ArrayObject { array: whole.array.clone(), level, descriptor }))
    }
    5000 fn cuMipmappedArrayDestroy(array: Handle<ArrayObject>) { destroy(array) }

    5000 fn cuTexObjectCreate(out: Out<u64>, resource: In<Resource>, options: In<TextureDescriptor>, view: In<View>) {
        let (resource, options) = (resource.get()?, options.get()?);
        let view = if view.is_null() { None } else { Some(view.get()?) };
        if view.is_some() && !matches!(resource.kind, kind::ARRAY | kind::MIPMAPPED) {
            return Err(Code::INVALID_VALUE);
        }
        let object = texture(&resource, &options, view.as_ref())?;
        let handle = object.handle();
        let made = Texture { _object: object, resource, options, view };
        driver()?.textures.lock().insert(handle, made);
        out.set(handle)
    }
    5000 fn cuTexObjectDestroy(handle: u64) {
        current()?.settle();
        let gone = driver()?.textures.lock().remove(&handle);
        gone.map(drop).ok_or(Code::INVALID_HANDLE)
    }
    5000 fn cuTexObjectGetResourceDesc(out: Out<Resource>, handle: u64) {
        let textures = driver()?.textures.lock();
        out.set(textures.get(&handle).ok_or(Code::INVALID_HANDLE)?.resource)
    }
    5000 fn cuTexObjectGetResourceViewDesc(out: Out<View>, handle: u64) {
        let textures = driver()?.textures.lock();
        out.set(textures.get(&handle).ok_or(Code::INVALID_HANDLE)?.view.ok_or(Code::INVALID_VALUE)?)
    }
    5000 fn cuTexObjectGetTextureDesc(out: Out<TextureDescriptor>, handle: u64) {
        let textures = driver()?.textures.lock();
        out.set(textures.get(&handle).ok_or(Code::INVALID_HANDLE)?.options)
    }
    5000 fn cuSurfObjectCreate(out: Out<u64>, resource: In<Resource>) {
        let resource = resource.get()?;
        if resource.kind != kind::ARRAY {
            return Err(Code::INVALID_VALUE);
        }
        let object = surface(array(resource.of.address)?.as_ref())?;
        let handle = object.handle();
        let made = Surface { _object: object, resource };
        driver()?.surfaces.lock().insert(handle, made);
        out.set(handle)
    }
    5000 fn cuSurfObjectDestroy(handle: u64) {
        current()?.settle();
        let gone = driver()?.surfaces.lock().remove(&handle);
        gone.map(drop).ok_or(Code::INVALID_HANDLE)
    }
    5000 fn cuSurfObjectGetResourceDesc(out: Out<Resource>, handle: u64) {
        let surfaces = driver()?.surfaces.lock();
        out.set(surfaces.get(&handle).ok_or(Code::INVALID_HANDLE)?.resource)
    }
}
