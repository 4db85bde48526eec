//! Textures and surfaces (CUDA Runtime API, "Texture Object Management", "Surface Object Management").

use crate::{
    api::api,
    array::{Channels, Descriptor},
    driver,
    error::{Code, Outcome},
    raw::Ptr,
};
use bytemuck::AnyBitPattern;

/// `cudaResourceType`
const LINEAR: u32 = 2;
const PITCHED: u32 = 3;

/// Converts `cudaResourceDesc` to the driver's structure, which differs in the format of linear memory only.
fn resource(of: Ptr) -> Result<[u64; 18], Code> {
    let mut made = [0u64; 18];
    let kind: u32 = of.read(0)?;
    (made[0], made[1]) = (u64::from(kind), of.read(8)?);
    if matches!(kind, LINEAR | PITCHED) {
        let (format, channels) = of.read::<Channels>(16)?.format()?;
        made[2] = u64::from(format) | u64::from(channels) << 32;
        made[3] = of.read(40)?;
    }
    if kind == PITCHED {
        (made[4], made[5]) = (of.read(48)?, of.read(56)?);
    }
    Ok(made)
}

/// Converts the driver's structure to `cudaResourceDesc`.
fn describe_resource(of: Ptr, found: &[u64; 18]) -> Outcome {
    // CUDA 13 has reserved bytes after the members.
    const WORDS: usize = if cfg!(cuda13) { 18 } else { 8 };
    (0..WORDS).try_for_each(|i| of.write(8 * i, 0u64))?;
    of.write(0, found[0] as u32)?;
    of.write(8, found[1])?;
    if matches!(found[0] as u32, LINEAR | PITCHED) {
        let channels = Descriptor::of_format(found[2] as u32, (found[2] >> 32) as u32).describe();
        of.write(16, channels)?;
        of.write(40, found[3])?;
    }
    if found[0] as u32 == PITCHED {
        of.write(48, found[4])?;
        of.write(56, found[5])?;
    }
    Ok(())
}

/// `CUDA_TEXTURE_DESC`
#[repr(C)]
#[derive(Clone, Copy, Default, AnyBitPattern)]
struct TextureOptions {
    address: [u32; 3],
    filter: u32,
    flags: u32,
    anisotropy: u32,
    level_filter: u32,
    bias_and_levels: [f32; 3],
    border: [f32; 4],
    reserved: [i32; 12],
}

/// Texture flags.
const AS_INTEGER: u32 = 1;
const NORMALIZED: u32 = 2;
const SRGB: u32 = 16;

/// Converts `cudaTextureDesc`.
fn texture_options(of: Ptr) -> Result<TextureOptions, Code> {
    let bit = |set: bool, flag: u32| if set { flag } else { 0 };
    let as_integer = bit(of.read::<u32>(16)? == 0, AS_INTEGER); // cudaReadModeElementType
    let normalized = bit(of.read::<u32>(40)? != 0, NORMALIZED);
    let srgb = bit(of.read::<u32>(20)? != 0, SRGB);
    Ok(TextureOptions {
        address: of.read(0)?,
        filter: of.read(12)?,
        flags: as_integer | normalized | srgb,
        anisotropy: of.read(44)?,
        level_filter: of.read(48)?,
        bias_and_levels: of.read(52)?,
        border: of.read(24)?,
        reserved: [0; 12],
    })
}

/// Converts the driver's structure to `cudaTextureDesc`.
fn describe_options(of: Ptr, found: &TextureOptions) -> Outcome {
    // CUDA 11 lacks a member, except in the second form of its function.
    const SIZE: usize = if cfg!(cuda11) { 68 } else { 72 };
    for offset in (0..SIZE).step_by(4) {
        of.write(offset, 0u32)?;
    }
    of.write(0, found.address)?;
    of.write(12, found.filter)?;
    of.write(16, u32::from(found.flags & AS_INTEGER == 0))?;
    of.write(20, u32::from(found.flags & SRGB != 0))?;
    of.write(24, found.border)?;
    of.write(40, u32::from(found.flags & NORMALIZED != 0))?;
    of.write(44, found.anisotropy)?;
    of.write(48, found.level_filter)?;
    of.write(52, found.bias_and_levels)
}

/// `CUDA_RESOURCE_VIEW_DESC`
type View = [u64; 14];
/// Size of `cudaResourceViewDesc` in words: CUDA 13 has reserved ones after the members.
const VIEW_WORDS: usize = if cfg!(cuda13) { 14 } else { 6 };

fn create(out: Ptr, of: Ptr, options: Ptr, view: Ptr) -> Outcome {
    let mut whole: View = [0; 14];
    let view = if view.is_null() {
        view
    } else {
        (0..VIEW_WORDS).try_for_each(|i| view.read(8 * i).map(|word| whole[i] = word))?;
        Ptr::of(&whole)
    };
    driver::cuTexObjectCreate(out, Ptr::of(&resource(of)?), Ptr::of(&texture_options(options)?), view)
}

api! {
    fn cudaCreateTextureObject(out: Ptr, of: Ptr, options: Ptr, view: Ptr) {
        create(out, of, options, view)
    }
    #[cfg(cuda11)]
    fn cudaCreateTextureObject_v2(out: Ptr, of: Ptr, options: Ptr, view: Ptr) { create(out, of, options, view) }
    #[cfg(cuda11)]
    fn cudaGetTextureObjectTextureDesc_v2(of: Ptr, object: u64) {
        let mut found = TextureOptions::default();
        driver::cuTexObjectGetTextureDesc(Ptr::to(&mut found), object)?;
        of.write(68, 0u32)?;
        describe_options(of, &found)
    }
    fn cudaDestroyTextureObject(object: u64) { driver::cuTexObjectDestroy(object) }
    fn cudaGetTextureObjectResourceDesc(of: Ptr, object: u64) {
        let mut found = [0u64; 18];
        driver::cuTexObjectGetResourceDesc(Ptr::to(&mut found), object)?;
        describe_resource(of, &found)
    }
    fn cudaGetTextureObjectTextureDesc(of: Ptr, object: u64) {
        let mut found = TextureOptions::default();
        driver::cuTexObjectGetTextureDesc(Ptr::to(&mut found), object)?;
        describe_options(of, &found)
    }
    fn cudaGetTextureObjectResourceViewDesc(of: Ptr, object: u64) {
        let mut found: View = [0; 14];
        driver::cuTexObjectGetResourceViewDesc(Ptr::to(&mut found), object)?;
        (0..VIEW_WORDS).try_for_each(|i| of.write(8 * i, found[i]))
    }
    fn cudaCreateSurfaceObject(out: Ptr, of: Ptr) { driver::cuSurfObjectCreate(out, Ptr::of(&resource(of)?)) }
    fn cudaDestroySurfaceObject(object: u64) { driver::cuSurfObjectDestroy(object) }
    fn cudaGetSurfaceObjectResourceDesc(of: Ptr, object: u64) {
        let mut found = [0u64; 18];
        driver::cuSurfObjectGetResourceDesc(Ptr::to(&mut found), object)?;
        describe_resource(of, &found)
    }
    fn cudaDeviceGetTexture1DLinearMaxWidth(width: Ptr, channels: Ptr, device: i32) {
        let (format, channels) = channels.read::<Channels>(0)?.format()?;
        driver::cuDeviceGetTexture1DLinearMaxWidth(width, format, channels, device)
    }
}
