//! Arrays, textures, samplers and surfaces, as created by `cuArrayCreate`, `cuTexObjectCreate` and
//! `cuSurfObjectCreate`, or bound to references of a module.
//!
//! ```text
//! Array   ── an image in device memory: extents, layers, levels, samples, a format
//! TextureObject, SurfaceObject ── a handle for kernels; freed when dropped
//! Module::bind_texture, bind_sampler, bind_surface ── the same for `.texref`, `.samplerref` and `.surfref` variables
//! ```

use crate::{Context, Error, Module};
use margay_exec::{
    mem::Kind as Memory,
    texture::{Address, Extent, Filter, Format, Kind, Object, Part, Sampler, Texels, Texture},
};
use std::sync::Arc;

/// An image in device memory. Freed on drop, but not before the textures and surfaces that use it.
#[derive(Clone, Debug)]
pub struct Array {
    held: Arc<Held>,
}

#[derive(Debug)]
struct Held {
    context: Arc<Context>,
    texels: Arc<Texels>,
    address: u64,
}

impl Drop for Held {
    fn drop(&mut self) {
        // Cannot fail: only this value frees the allocation; textures keep its bytes alive.
        let _ = self.context.device().memory().free(self.address);
    }
}

impl Array {
    /// The image.
    pub fn texels(&self) -> &Arc<Texels> {
        &self.held.texels
    }

    /// Size of a level in bytes, tightly packed: x first, then y, then planes or layers.
    pub fn level_bytes(&self, level: u32) -> u64 {
        let (row, rows, slices) = self.rows(level);
        row * rows * slices
    }

    /// Bytes per row, rows per slice, number of slices.
    fn rows(&self, level: u32) -> (u64, u64, u64) {
        let t = self.texels();
        let [w, h, d] = t.level(level).size.map(u64::from);
        let row = w * u64::from(t.format.bytes() * t.extent.samples);
        (row, h, d * u64::from(t.extent.layers.max(1)))
    }

    /// Bytes per row, and the address of every row of a level; an error unless `len` is the level's size.
    fn places(&self, level: u32, len: usize) -> Result<(u64, Vec<u64>), Error> {
        let (row, rows, slices) = self.rows(level);
        let t = self.texels();
        if level >= t.levels() || len as u64 != row * rows * slices {
            return Err(Error::BadAddress { address: self.held.address, size: len as u64 });
        }
        let at = |i: u64| t.row(t.level(level), (i % rows) as u32, (i / rows) as u32);
        Ok((row, (0..rows * slices).map(at).collect()))
    }

    /// Copies a level from the host: exactly [`Array::level_bytes`] bytes.
    pub fn write(&self, level: u32, data: &[u8]) -> Result<(), Error> {
        let (row, places) = self.places(level, data.len())?;
        places.iter().zip(data.chunks_exact(row as usize)).try_for_each(|(at, part)| self.held.context.write(*at, part))
    }

    /// Copies a level to the host.
    pub fn read(&self, level: u32) -> Result<Vec<u8>, Error> {
        let mut data = vec![0; self.level_bytes(level) as usize];
        let (row, places) = self.places(level, data.len())?;
        for (at, part) in places.iter().zip(data.chunks_exact_mut(row as usize)) {
            self.held.context.read(*at, part)?;
        }
        Ok(data)
    }
}

/// How a texture is read.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct TextureOptions {
    /// Addressing and filtering.
    pub sampler: Sampler,
    /// Coordinates are normalized to [0, 1].
    pub normalized: bool,
    /// 8- and 16-bit integers are read as normalized values.
    pub normalized_read: bool,
    /// Colors of 8-bit channels that are read as normalized values are sRGB, and are converted to linear values.
    pub srgb: bool,
}

/// A texture with a handle for kernels. Dropping it invalidates the handle.
#[derive(Debug)]
pub struct TextureObject(Handle);

/// A surface with a handle for kernels. Dropping it invalidates the handle.
#[derive(Debug)]
pub struct SurfaceObject(Handle);

#[derive(Debug)]
struct Handle {
    context: Arc<Context>,
    handle: u64,
    /// Keeps the array's memory registered.
    _array: Option<Array>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.context.device().memory().objects().remove(self.handle);
    }
}

impl Handle {
    fn object(&self) -> Option<Object> {
        self.context.device().memory().objects().get(self.handle)
    }
}

impl TextureObject {
    /// The handle, passed to kernels as a 64-bit parameter.
    pub fn handle(&self) -> u64 {
        self.0.handle
    }
}

impl SurfaceObject {
    /// The handle, passed to kernels as a 64-bit parameter.
    pub fn handle(&self) -> u64 {
        self.0.handle
    }
}

impl Context {
    /// Allocates a zeroed array of these extents.
    pub fn array(self: &Arc<Context>, format: Format, extent: Extent) -> Result<Array, Error> {
        let wrong =
            || Error::BadArray(format!("an array cannot have the format {format:?} and the extents {extent:?}"));
        let cube =
            !extent.cube || extent.width == extent.height && extent.layers > 0 && extent.layers.is_multiple_of(6);
        let (_, bytes) = Some(())
            .filter(|()| format.exists() && cube)
            .and_then(|()| Texels::layout(format, &extent))
            .ok_or_else(wrong)?;
        let memory = self.device().memory();
        let made = memory.alloc_as(bytes, 512, Memory::Array, "").map_err(|_| Error::OutOfMemory { size: bytes })?;
        let address = made.block.base();
        let texels = Arc::new(Texels::array(made, format, extent).ok_or_else(wrong)?);
        Ok(Array { held: Arc::new(Held { context: self.clone(), texels, address }) })
    }

    /// Views linear memory as an image with rows of `pitch` bytes; `height` is 0 for one dimension. Texels outside read
    /// as zero.
    pub fn linear_texels(
        &self,
        address: u64,
        format: Format,
        width: u32,
        height: u32,
        pitch: u64,
    ) -> Result<Arc<Texels>, Error> {
        let bad = Error::BadAddress { address, size: u64::from(width) * u64::from(format.bytes()) };
        let Some(found) = self.device().memory().find(address) else { return Err(bad) };
        Texels::linear(found, address, format, width, height, pitch).map(Arc::new).ok_or(bad)
    }

    /// Creates a texture of an array.
    pub fn texture(self: &Arc<Context>, array: &Array, options: &TextureOptions) -> TextureObject {
        TextureObject(self.handle(texture(array.texels(), options), Some(array.clone())))
    }

    /// Creates a texture of linear memory ([`Context::linear_texels`]).
    pub fn linear_texture(self: &Arc<Context>, texels: &Arc<Texels>, options: &TextureOptions) -> TextureObject {
        TextureObject(self.handle(texture(texels, options), None))
    }

    /// Creates a texture of a part of an array.
    pub fn texture_of(
        self: &Arc<Context>,
        array: &Array,
        part: &Part,
        options: &TextureOptions,
    ) -> Result<TextureObject, Error> {
        let none = || Error::BadArray(format!("the array has no part {part:?}"));
        let texels = array.texels().part(part).map(Arc::new).ok_or_else(none)?;
        Ok(TextureObject(self.handle(texture(&texels, options), Some(array.clone()))))
    }

    /// Creates a surface of a level of an array.
    pub fn surface(self: &Arc<Context>, array: &Array, level: u32) -> Result<SurfaceObject, Error> {
        let texels = surface(array, level)?;
        Ok(SurfaceObject(self.handle(Object::Surface(texels), Some(array.clone()))))
    }

    fn handle(self: &Arc<Context>, object: Object, array: Option<Array>) -> Handle {
        let handle = self.device().memory().objects().add([object]);
        Handle { context: self.clone(), handle, _array: array }
    }
}

fn texture(texels: &Arc<Texels>, o: &TextureOptions) -> Object {
    let TextureOptions { sampler, normalized, normalized_read, srgb } = *o;
    Object::Texture(Arc::new(Texture { texels: texels.clone(), normalized_read, srgb, normalized, sampler }))
}

fn surface(array: &Array, level: u32) -> Result<Arc<Texels>, Error> {
    let none = || Error::BadArray(format!("the array has no level {level}"));
    if level == 0 {
        Ok(array.texels().clone())
    } else {
        let texels = array.texels();
        texels.part(&texels.of_levels(level..level + 1)).map(Arc::new).ok_or_else(none)
    }
}

impl Module {
    /// Binds a texture to a `.texref` variable; `index` is the element of an array of references.
    pub fn bind_texture(
        &self,
        name: &str,
        index: u32,
        texels: &Arc<Texels>,
        options: &TextureOptions,
    ) -> Result<(), Error> {
        self.bind(name, index, texture(texels, options))
    }

    /// Binds a sampler to a `.samplerref` variable.
    pub fn bind_sampler(&self, name: &str, index: u32, sampler: Sampler) -> Result<(), Error> {
        self.bind(name, index, Object::Sampler(sampler))
    }

    /// Binds the memory and settings of a texture object to a `.texref` variable. `None` unbinds the variable, so that loads from it are faults.
    pub fn bind_texture_object(&self, name: &str, object: Option<&TextureObject>) -> Result<(), Error> {
        self.bind(name, 0, object.and_then(|o| o.0.object()).unwrap_or(Object::Unbound(Kind::Texture)))
    }

    /// Binds the memory of a surface object to a `.surfref` variable, or unbinds the variable.
    pub fn bind_surface_object(&self, name: &str, object: Option<&SurfaceObject>) -> Result<(), Error> {
        self.bind(name, 0, object.and_then(|o| o.0.object()).unwrap_or(Object::Unbound(Kind::Surface)))
    }

    /// Binds a level of an array to a `.surfref` variable.
    pub fn bind_surface(&self, name: &str, index: u32, array: &Array, level: u32) -> Result<(), Error> {
        self.bind(name, index, Object::Surface(surface(array, level)?))
    }
}

/// The object of an unbound reference variable; a sampler has the properties of its initializer (section 5.3).
pub(crate) fn initial(kind: Kind, properties: &[(&str, &str)]) -> Object {
    if kind != Kind::Sampler {
        return Object::Unbound(kind);
    }
    let mut sampler = Sampler::default();
    for (name, value) in properties {
        let address = match *value {
            "wrap" => Address::Wrap,
            "mirror" => Address::Mirror,
            "clamp_to_border" => Address::Border,
            _ => Address::Clamp,
        };
        match *name {
            "filter_mode" => sampler.filter = if *value == "linear" { Filter::Linear } else { Filter::Point },
            "force_unnormalized_coords" => sampler.force_unnormalized = !matches!(*value, "0" | "false" | "False"),
            "addr_mode_0" => sampler.address[0] = address,
            "addr_mode_1" => sampler.address[1] = address,
            "addr_mode_2" => sampler.address[2] = address,
            _ => {}
        }
    }
    Object::Sampler(sampler)
}

/// Creates handles for the elements of a reference variable.
pub(crate) fn handles(context: &Context, kind: Kind, size: u64, properties: &[(&str, &str)]) -> u64 {
    let elements = (size / 8).clamp(1, 1 << 16) as usize;
    let object = initial(kind, properties);
    context.device().memory().objects().add(std::iter::repeat_n(object, elements))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Device, SourceText};
    use margay_exec::texture::Scalar;

    const FORMAT: Format = Format { scalar: Scalar::Unsigned, bits: 8, channels: 1 };

    #[test]
    fn arrays_keep_what_is_written() {
        let context = Device::new().unwrap().context();
        let extent = Extent { layers: 2, levels: 2, ..Extent::new(5, 3, 0) };
        let array = context.array(FORMAT, extent).unwrap();
        let data: Vec<u8> = (0..30).collect();
        array.write(0, &data).unwrap();
        array.write(1, &[9, 8, 7, 6]).unwrap();
        assert_eq!((array.read(0).unwrap(), array.read(1).unwrap()), (data, vec![9, 8, 7, 6]));
        assert!(array.write(0, &[1]).is_err() && array.write(2, &[]).is_err());
        assert!(context.array(Format { channels: 3, ..FORMAT }, extent).is_err());
        assert!(context.array(FORMAT, Extent { cube: true, ..extent }).is_err());
    }

    #[test]
    fn references_are_bound_by_name() {
        let context = Device::new().unwrap().context();
        let text = ".version 4.3\n.target sm_30, texmode_independent\n.address_size 64\n.global .texref t[2];\n\
                    .global .samplerref s = { filter_mode = linear, addr_mode_0 = wrap };\n.global .surfref f;\n\
                    .visible .entry k() { .reg .b64 %r; mov.u64 %r, t; mov.u64 %r, s; mov.u64 %r, f; ret; }\n";
        let module = context.load(&[SourceText { name: "m", text }], &Default::default()).unwrap();
        let array = context.array(FORMAT, Extent::new(4, 4, 0)).unwrap();
        module.bind_texture("t", 1, array.texels(), &TextureOptions::default()).unwrap();
        module.bind_surface("f", 0, &array, 0).unwrap();
        assert!(module.bind_texture("t", 2, array.texels(), &TextureOptions::default()).is_err());
        assert!(module.bind_surface("t", 0, &array, 0).is_err());
        assert!(module.bind_sampler("u", 0, Sampler::default()).is_err());
        let sampler = initial(Kind::Sampler, &[("filter_mode", "linear"), ("addr_mode_0", "wrap")]);
        let Object::Sampler(sampler) = sampler else { panic!() };
        assert_eq!(
            (sampler.filter, sampler.address[0], sampler.address[1]),
            (Filter::Linear, Address::Wrap, Address::Clamp)
        );
    }
}
