//! Texture and surface references of CUDA 11 (CUDA Runtime API 11.8, "Texture Reference Management" and "Surface Reference Management"):
//! variables of the program whose attributes take effect when a texture is bound.

use crate::{
    api::api,
    array::Channels,
    driver,
    error::{Code, Outcome},
    raw::Ptr,
    register::{self, recording_errors},
};
use parking_lot::{Mutex, MutexGuard};
use std::{collections::HashMap, sync::LazyLock};

/// A reference that the program registered.
#[derive(Clone)]
struct Reference {
    binary: u64,
    name: String,
    /// Whether reads of integers are converted to floating point (`cudaReadModeNormalizedFloat`).
    normalized_read: bool,
    /// Distance in bytes of the bound memory from an aligned address; `None` if nothing is bound.
    offset: Option<usize>,
}

type References = HashMap<u64, Reference>;

fn references() -> MutexGuard<'static, References> {
    static REFERENCES: LazyLock<Mutex<References>> = LazyLock::new(Mutex::default);
    REFERENCES.lock()
}

/// Flags of `cuTexRefSetFlags`.
const AS_INTEGER: u32 = 1;
const NORMALIZED: u32 = 2;
const SRGB: u32 = 16;

fn find(host: Ptr, missing: Code) -> Result<Reference, Code> {
    references().get(&host.number()).cloned().ok_or(missing)
}

/// The driver's handle of a reference, by the function that finds it.
fn handle(reference: &Reference, get: impl FnOnce(Ptr, usize, Ptr) -> Outcome, missing: Code) -> Result<usize, Code> {
    let module = register::module(reference.binary)?;
    let (mut handle, name) = (0usize, format!("{}\0", reference.name));
    get(Ptr::to(&mut handle), module, Ptr::of(name.as_bytes())).map_err(|_| missing)?;
    Ok(handle)
}

fn texture(reference: &Reference) -> Result<usize, Code> {
    handle(reference, driver::cuModuleGetTexRef, Code::INVALID_TEXTURE)
}

/// Gives the driver the attributes of `struct textureReference`; nothing may be bound meanwhile, which would be bound again each time.
fn set_attributes(handle: usize, host: Ptr, normalized_read: bool) -> Outcome {
    driver::cuTexRefSetAddress_v2(Ptr::NULL, handle, 0, 0)?;
    let bit = |set: bool, flag: u32| if set { flag } else { 0 };
    let normalized = bit(host.read::<i32>(0)? != 0, NORMALIZED);
    let srgb = bit(host.read::<i32>(40)? != 0, SRGB);
    driver::cuTexRefSetFlags(handle, bit(!normalized_read, AS_INTEGER) | normalized | srgb)?;
    driver::cuTexRefSetFilterMode(handle, host.read(4)?)?;
    for dimension in 0..3 {
        driver::cuTexRefSetAddressMode(handle, dimension, host.read(8 + 4 * dimension as usize)?)?;
    }
    driver::cuTexRefSetMaxAnisotropy(handle, host.read(44)?)?;
    driver::cuTexRefSetMipmapFilterMode(handle, host.read(48)?)?;
    driver::cuTexRefSetMipmapLevelBias(handle, host.read(52)?)?;
    driver::cuTexRefSetMipmapLevelClamp(handle, host.read(56)?, host.read(60)?)
}

/// Binds memory or an array to a texture reference; `bind` returns the offset.
fn bind(host: Ptr, bind: impl FnOnce(usize) -> Result<usize, Code>) -> Result<usize, Code> {
    let reference = find(host, Code::INVALID_TEXTURE)?;
    let handle = texture(&reference)?;
    set_attributes(handle, host, reference.normalized_read)?;
    let offset = bind(handle)?;
    if let Some(reference) = references().get_mut(&host.number()) {
        reference.offset = Some(offset);
    }
    Ok(offset)
}

/// The part of an allocation from an address on, in bytes: programs may leave out the size.
fn rest(address: u64) -> usize {
    let (mut base, mut size) = (0u64, 0usize);
    match driver::cuMemGetAddressRange_v2(Ptr::to(&mut base), Ptr::to(&mut size), address) {
        Ok(()) => (base + size as u64).saturating_sub(address) as usize,
        Err(_) => usize::MAX,
    }
}

fn of_array(host: Ptr, set: impl FnOnce(usize) -> Outcome) -> Outcome {
    bind(host, |handle| set(handle).map(|()| 0)).map(drop)
}

/// `CUDA_ARRAY_DESCRIPTOR`
#[repr(C)]
struct Plane {
    size: [usize; 2],
    format: u32,
    channels: u32,
}

/// `CU_TRSA_OVERRIDE_FORMAT`, which the functions require.
const OVERRIDE_FORMAT: u32 = 1;

api! {
    fn cudaBindTexture(offset: Ptr, host: Ptr, address: u64, channels: Ptr, bytes: usize) {
        let (format, count) = channels.read::<Channels>(0)?.format()?;
        let found = bind(host, |handle| {
            let mut found = 0usize;
            driver::cuTexRefSetFormat(handle, format, count as i32)?;
            driver::cuTexRefSetAddress_v2(Ptr::to(&mut found), handle, address, bytes.min(rest(address)))?;
            // The program cannot add an offset that it does not ask for.
            if found == 0 || !offset.is_null() { Ok(found) } else { Err(Code::INVALID_VALUE) }
        })?;
        if offset.is_null() { Ok(()) } else { offset.write(0, found) }
    }
    fn cudaBindTexture2D(
        offset: Ptr, host: Ptr, address: u64, channels: Ptr, width: usize, height: usize, pitch: usize
    ) {
        let (format, channels) = channels.read::<Channels>(0)?.format()?;
        let plane = Plane { size: [width, height], format, channels };
        bind(host, |handle| driver::cuTexRefSetAddress2D_v3(handle, Ptr::of(&plane), address, pitch).map(|()| 0))?;
        if offset.is_null() { Ok(()) } else { offset.write(0, 0usize) }
    }
    fn cudaBindTextureToArray(host: Ptr, array: usize, _channels: Ptr) {
        of_array(host, |handle| driver::cuTexRefSetArray(handle, array, OVERRIDE_FORMAT))
    }
    fn cudaBindTextureToMipmappedArray(host: Ptr, array: usize, _channels: Ptr) {
        of_array(host, |handle| driver::cuTexRefSetMipmappedArray(handle, array, OVERRIDE_FORMAT))
    }
    fn cudaUnbindTexture(host: Ptr) {
        let reference = find(host, Code::INVALID_TEXTURE)?;
        driver::cuTexRefSetAddress_v2(Ptr::NULL, texture(&reference)?, 0, 0)?;
        if let Some(reference) = references().get_mut(&host.number()) {
            reference.offset = None;
        }
        Ok(())
    }
    fn cudaGetTextureAlignmentOffset(offset: Ptr, host: Ptr) {
        let reference = find(host, Code::INVALID_TEXTURE)?;
        offset.write(0, reference.offset.ok_or(Code::INVALID_TEXTURE_BINDING)?)
    }
    fn cudaGetTextureReference(out: Ptr, host: Ptr) {
        find(host, Code::INVALID_TEXTURE)?;
        out.write(0, host.number())
    }
    fn cudaBindSurfaceToArray(host: Ptr, array: usize, _channels: Ptr) {
        let reference = find(host, Code::INVALID_SURFACE)?;
        let handle = handle(&reference, driver::cuModuleGetSurfRef, Code::INVALID_SURFACE)?;
        driver::cuSurfRefSetArray(handle, array, 0)
    }
    fn cudaGetSurfaceReference(out: Ptr, host: Ptr) {
        find(host, Code::INVALID_SURFACE)?;
        out.write(0, host.number())
    }
}

/// Forgets the references of a fat binary.
pub fn forget(binary: u64) {
    references().retain(|_, reference| reference.binary != binary);
}

fn register(function: &'static str, binary: Ptr, host: Ptr, name: Ptr, normalized_read: bool) {
    recording_errors(function, || {
        let reference = Reference { binary: binary.number(), name: name.text()?, normalized_read, offset: None };
        references().insert(host.number(), reference);
        Ok(())
    });
}

#[allow(unsafe_code)]
#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterTexture(
    binary: Ptr,
    host: Ptr,
    name: Ptr,
    _source_name: Ptr,
    _dimensions: i32,
    normalized: i32,
    _external: i32,
) {
    register("__cudaRegisterTexture", binary, host, name, normalized != 0);
}

#[allow(unsafe_code)]
#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterSurface(
    binary: Ptr,
    host: Ptr,
    name: Ptr,
    _source_name: Ptr,
    _dimensions: i32,
    _external: i32,
) {
    register("__cudaRegisterSurface", binary, host, name, false);
}
