//! Texture and surface references (CUDA Driver API, "Texture Reference Management", "Surface Reference Management"): variables of a module
//! that textures are bound to, instead of objects that kernels receive. Compilers emit them up to CUDA 11.

use crate::{
    api::{api, because},
    code::{Code, Outcome},
    driver::{current, driver},
    handle::Handle,
    memory::{
        DevicePtr,
        texture::{ArrayObject, Descriptor, Resource, TextureDescriptor, array, format, kind, surface, texture},
    },
    module::Module,
    raw::{In, Out, Text},
};
use margay_runtime::{Error, SurfaceObject, TextureObject};
use parking_lot::Mutex;

/// A texture reference.
pub struct TextureReference {
    /// Where the variable is; nowhere for a reference of `cuTexRefCreate`.
    place: Option<(Handle<Module>, String)>,
    state: Mutex<State>,
}

struct State {
    resource: Option<Resource>,
    /// `CUarray_format` and channels, for linear memory.
    format: (u32, u32),
    options: TextureDescriptor,
    object: Option<TextureObject>,
}

/// A surface reference.
pub struct SurfaceReference {
    place: (Handle<Module>, String),
    bound: Mutex<Option<(u64, SurfaceObject)>>,
}

/// `CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT`
const ALIGNMENT: u64 = 512;

impl TextureReference {
    fn new(place: Option<(Handle<Module>, String)>) -> TextureReference {
        /// `CU_AD_FORMAT_FLOAT`, and the initial values that the functions' documentation gives.
        const FLOAT: u32 = 0x20;
        let state = State { resource: None, format: (FLOAT, 1), options: TextureDescriptor::default(), object: None };
        TextureReference { place, state: Mutex::new(state) }
    }

    /// Changes the reference and rebinds the variable. Work that was submitted before uses what was bound before.
    fn change(&self, change: impl FnOnce(&mut State) -> Outcome) -> Outcome {
        current()?.settle();
        let state = &mut *self.state.lock();
        change(state)?;
        state.object = match &mut state.resource {
            Some(resource) => {
                if matches!(resource.kind, kind::LINEAR | kind::PITCHED) {
                    (resource.of.format, resource.of.channels) = state.format;
                }
                Some(texture(resource, &state.options, None)?)
            }
            None => None,
        };
        let Some((module, name)) = &self.place else { return Ok(()) };
        let module = driver()?.modules.get(*module)?;
        module.loaded.bind_texture_object(name, state.object.as_ref()).map_err(|_| Code::INVALID_VALUE)
    }

    fn set_options(&self, change: impl FnOnce(&mut TextureDescriptor)) -> Outcome {
        self.change(|state| {
            change(&mut state.options);
            Ok(())
        })
    }
}

/// A module lacks a reference of some name.
fn missing(error: &Error) -> Code {
    because(|| error.to_string());
    Code::NOT_FOUND
}

fn get(handle: Handle<TextureReference>) -> Result<std::sync::Arc<TextureReference>, Code> {
    driver()?.texture_references.get(handle)
}

fn set_array(handle: Handle<TextureReference>, from: u64, kind: u32) -> Outcome {
    get(handle)?.change(|state| {
        state.resource = if from == 0 { None } else { Some(Resource::of_array(kind, array(from).map(|_| from)?)) };
        Ok(())
    })
}

/// Binds linear memory; `offset` receives how far its address is from an aligned one, which the kernel has to add.
fn set_address(handle: Handle<TextureReference>, offset: Out<usize>, address: DevicePtr, bytes: usize) -> Outcome {
    let past = address % ALIGNMENT;
    if past != 0 && offset.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    get(handle)?.change(|state| {
        let linear = || Resource::linear(address - past, bytes.saturating_add(past as usize));
        state.resource = (address != 0).then(linear);
        Ok(())
    })?;
    offset.offer(past as usize);
    Ok(())
}

fn set_plane(handle: Handle<TextureReference>, of: In<Descriptor>, address: DevicePtr, pitch: usize) -> Outcome {
    let of = of.get()?;
    get(handle)?.change(|state| {
        let (format, channels) = of.texels();
        format_of(format, channels)?;
        state.format = (format, channels);
        let (width, height) = of.size();
        state.resource = Some(Resource::pitched(address, width, height, pitch));
        Ok(())
    })
}

fn format_of(number: u32, channels: u32) -> Outcome {
    format(number, channels).map(drop)
}

api! {
    2000 fn cuModuleGetTexRef(out: Out<Handle<TextureReference>>, module: Handle<Module>, name: Text) {
        let (driver, name) = (driver()?, name.text()?);
        let known = |r: &TextureReference| r.place.as_ref().is_some_and(|(m, n)| *m == module && *n == name);
        if let Some(known) = driver.texture_references.find(known) {
            return out.set(known);
        }
        let of = driver.modules.get(module)?;
        of.loaded.bind_texture_object(&name, None).map_err(|e| missing(&e))?;
        out.set(driver.texture_references.add(TextureReference::new(Some((module, name)))))
    }
    3000 fn cuModuleGetSurfRef(out: Out<Handle<SurfaceReference>>, module: Handle<Module>, name: Text) {
        let (driver, name) = (driver()?, name.text()?);
        if let Some(known) = driver.surface_references.find(|r| r.place.0 == module && r.place.1 == name) {
            return out.set(known);
        }
        let of = driver.modules.get(module)?;
        of.loaded.bind_surface_object(&name, None).map_err(|e| missing(&e))?;
        out.set(driver.surface_references.add(SurfaceReference { place: (module, name), bound: Mutex::default() }))
    }
    3000 fn cuSurfRefSetArray(reference: Handle<SurfaceReference>, from: Handle<ArrayObject>, _flags: u32) {
        current()?.settle();
        let reference = driver()?.surface_references.get(reference)?;
        let (number, (module, name)) = (from.number() as u64, &reference.place);
        let object = surface(array(number)?.as_ref())?;
        let module = driver()?.modules.get(*module)?;
        module.loaded.bind_surface_object(name, Some(&object)).map_err(|_| Code::INVALID_VALUE)?;
        *reference.bound.lock() = Some((number, object));
        Ok(())
    }
    3000 fn cuSurfRefGetArray(out: Out<Handle<ArrayObject>>, reference: Handle<SurfaceReference>) {
        let reference = driver()?.surface_references.get(reference)?;
        let bound = reference.bound.lock();
        out.set(Handle::of(bound.as_ref().ok_or(Code::INVALID_VALUE)?.0 as usize))
    }
    2000 fn cuTexRefCreate(out: Out<Handle<TextureReference>>) {
        out.set(driver()?.texture_references.add(TextureReference::new(None)))
    }
    2000 fn cuTexRefDestroy(reference: Handle<TextureReference>) {
        driver()?.texture_references.remove(reference).map(drop)
    }
    // Which references a kernel uses is in its code.
    2000 fn cuParamSetTexRef(_function: usize, _unit: i32, reference: Handle<TextureReference>) { get(reference).map(drop) }
    2000 fn cuTexRefSetArray(reference: Handle<TextureReference>, from: Handle<ArrayObject>, _flags: u32) {
        set_array(reference, from.number() as u64, kind::ARRAY)
    }
    5000 fn cuTexRefSetMipmappedArray(reference: Handle<TextureReference>, from: Handle<ArrayObject>, _flags: u32) {
        set_array(reference, from.number() as u64, kind::MIPMAPPED)
    }
    3020 fn cuTexRefSetAddress_v2(offset: Out<usize>, reference: Handle<TextureReference>, address: DevicePtr, bytes: usize) {
        set_address(reference, offset, address, bytes)
    }
    3020 fn cuTexRefSetAddress2D_v2(reference: Handle<TextureReference>, of: In<Descriptor>, address: DevicePtr, pitch: usize) {
        set_plane(reference, of, address, pitch)
    }
    4010 fn cuTexRefSetAddress2D_v3(reference: Handle<TextureReference>, of: In<Descriptor>, address: DevicePtr, pitch: usize) {
        set_plane(reference, of, address, pitch)
    }
    2000 fn cuTexRefSetFormat(reference: Handle<TextureReference>, format: u32, channels: i32) {
        let channels = u32::try_from(channels).map_err(|_| Code::INVALID_VALUE)?;
        format_of(format, channels)?;
        get(reference)?.change(|state| {
            state.format = (format, channels);
            Ok(())
        })
    }
    2000 fn cuTexRefSetAddressMode(reference: Handle<TextureReference>, dimension: i32, mode: u32) {
        let dimension = usize::try_from(dimension).ok().filter(|d| *d < 3).ok_or(Code::INVALID_VALUE)?;
        get(reference)?.set_options(|options| options.address[dimension] = mode)
    }
    2000 fn cuTexRefSetFilterMode(reference: Handle<TextureReference>, mode: u32) {
        get(reference)?.set_options(|options| options.filter = mode)
    }
    2000 fn cuTexRefSetFlags(reference: Handle<TextureReference>, flags: u32) {
        get(reference)?.set_options(|options| options.flags = flags)
    }
    5000 fn cuTexRefSetMaxAnisotropy(reference: Handle<TextureReference>, limit: u32) {
        get(reference)?.set_options(|options| options.anisotropy = limit)
    }
    5000 fn cuTexRefSetMipmapFilterMode(reference: Handle<TextureReference>, mode: u32) {
        get(reference)?.set_options(|options| options.level_filter = mode)
    }
    5000 fn cuTexRefSetMipmapLevelBias(reference: Handle<TextureReference>, bias: f32) {
        get(reference)?.set_options(|options| options.bias = bias)
    }
    5000 fn cuTexRefSetMipmapLevelClamp(reference: Handle<TextureReference>, least: f32, most: f32) {
        get(reference)?.set_options(|options| options.levels = [least, most])
    }
    8000 fn cuTexRefSetBorderColor(reference: Handle<TextureReference>, color: In<[f32; 4]>) {
        let color = color.get()?;
        get(reference)?.set_options(|options| options.border = color)
    }
    3020 fn cuTexRefGetAddress_v2(out: Out<DevicePtr>, reference: Handle<TextureReference>) {
        let of = get(reference)?;
        let resource = of.state.lock().resource.filter(|r| matches!(r.kind, kind::LINEAR | kind::PITCHED));
        out.set(resource.ok_or(Code::INVALID_VALUE)?.of.address)
    }
    2000 fn cuTexRefGetArray(out: Out<Handle<ArrayObject>>, reference: Handle<TextureReference>) {
        let of = get(reference)?;
        let resource = of.state.lock().resource.filter(|r| r.kind == kind::ARRAY);
        out.set(Handle::of(resource.ok_or(Code::INVALID_VALUE)?.of.address as usize))
    }
    5000 fn cuTexRefGetMipmappedArray(out: Out<Handle<ArrayObject>>, reference: Handle<TextureReference>) {
        let of = get(reference)?;
        let resource = of.state.lock().resource.filter(|r| r.kind == kind::MIPMAPPED);
        out.set(Handle::of(resource.ok_or(Code::INVALID_VALUE)?.of.address as usize))
    }
    2000 fn cuTexRefGetAddressMode(out: Out<u32>, reference: Handle<TextureReference>, dimension: i32) {
        let dimension = usize::try_from(dimension).ok().filter(|d| *d < 3).ok_or(Code::INVALID_VALUE)?;
        out.set(get(reference)?.state.lock().options.address[dimension])
    }
    2000 fn cuTexRefGetFilterMode(out: Out<u32>, reference: Handle<TextureReference>) {
        out.set(get(reference)?.state.lock().options.filter)
    }
    2000 fn cuTexRefGetFormat(format: Out<u32>, channels: Out<i32>, reference: Handle<TextureReference>) {
        let of = get(reference)?.state.lock().format;
        format.set(of.0)?;
        channels.set(of.1 as i32)
    }
    2000 fn cuTexRefGetFlags(out: Out<u32>, reference: Handle<TextureReference>) {
        out.set(get(reference)?.state.lock().options.flags)
    }
    5000 fn cuTexRefGetMaxAnisotropy(out: Out<i32>, reference: Handle<TextureReference>) {
        out.set(get(reference)?.state.lock().options.anisotropy as i32)
    }
    5000 fn cuTexRefGetMipmapFilterMode(out: Out<u32>, reference: Handle<TextureReference>) {
        out.set(get(reference)?.state.lock().options.level_filter)
    }
    5000 fn cuTexRefGetMipmapLevelBias(out: Out<f32>, reference: Handle<TextureReference>) {
        out.set(get(reference)?.state.lock().options.bias)
    }
    5000 fn cuTexRefGetMipmapLevelClamp(least: Out<f32>, most: Out<f32>, reference: Handle<TextureReference>) {
        let levels = get(reference)?.state.lock().options.levels;
        least.set(levels[0])?;
        most.set(levels[1])
    }
    8000 fn cuTexRefGetBorderColor(out: Out<[f32; 4]>, reference: Handle<TextureReference>) {
        out.set(get(reference)?.state.lock().options.border)
    }
}
