//! Textures, samplers and surfaces of a device (manual, sections 5.3, 9.7.10 and 9.7.11; CUDA C++ Programming Guide,
//! "Texture and Surface Memory" and "Texture Fetching").
//!
//! [`Texels`] is an image in device memory: a CUDA array with its levels and layers, or linear memory viewed as one. A
//! [`Texture`] adds how it is sampled; a surface is a plain image. [`Objects`] holds them by handle: the value of
//! `.texref`, `.samplerref` and `.surfref` variables and of 64-bit texture objects. A variable has a handle from the
//! beginning, and an object once the host has bound one.

mod format;
mod rows;
mod sample;
mod seen;

pub use format::{Format, Scalar, Texel};
pub use rows::Reads;
pub use sample::{Compare, Geometry, Lod, Query, gather, sample};
pub use seen::Seen;

use crate::mem::{self, Allocation, Block};
use parking_lot::RwLock;
use std::{
    collections::BTreeMap,
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed},
    },
};

/// The address mode: how coordinates outside the image are treated.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Address {
    /// Repeats the image. With normalized coordinates only, else as [`Address::Clamp`].
    Wrap,
    /// Repeats the image, mirrored every second time. With normalized coordinates only, else as [`Address::Clamp`].
    Mirror,
    /// Clamps to the edge.
    #[default]
    Clamp,
    /// Reads the border color.
    Border,
}

/// The filter mode.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Filter {
    /// The texel that contains the coordinate.
    #[default]
    Point,
    /// The weighted mean of the two nearest texels in each dimension.
    Linear,
}

/// The sampling parameters of a texture.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sampler {
    /// Address mode by dimension.
    pub address: [Address; 3],
    /// Filter within a level.
    pub filter: Filter,
    /// Filter between levels.
    pub level_filter: Filter,
    /// Added to the level of detail.
    pub bias: f32,
    /// Lowest and highest level of detail.
    pub levels: (f32, f32),
    /// Color outside the image with [`Address::Border`].
    pub border: [f32; 4],
    /// Comparison of depths: `reference OP texel`.
    pub compare: Compare,
    /// Coordinates are unnormalized, regardless of the texture (`.samplerref` only).
    pub force_unnormalized: bool,
}

impl Default for Sampler {
    fn default() -> Sampler {
        Sampler {
            address: [Address::Clamp; 3],
            filter: Filter::Point,
            level_filter: Filter::Point,
            bias: 0.0,
            levels: (0.0, f32::MAX),
            border: [0.0; 4],
            compare: Compare::LessEqual,
            force_unnormalized: false,
        }
    }
}

/// The extents of an image.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Extent {
    /// Texels in x.
    pub width: u32,
    /// Texels in y; 0 for one-dimensional images.
    pub height: u32,
    /// Texels in z; 0 for images of fewer than three dimensions.
    pub depth: u32,
    /// Number of layers; 0 for none. Cubes have six each: +x, -x, +y, -y, +z, -z.
    pub layers: u32,
    /// The layers are faces of cubes.
    pub cube: bool,
    /// Number of mipmap levels, at least 1.
    pub levels: u32,
    /// Samples per texel, at least 1.
    pub samples: u32,
}

impl Extent {
    /// An image of one, two or three dimensions (absent ones 0), one level, one sample, no layers.
    pub const fn new(width: u32, height: u32, depth: u32) -> Extent {
        Extent { width, height, depth, layers: 0, cube: false, levels: 1, samples: 1 }
    }

    /// Texels per dimension of a level, at least 1.
    pub fn size(&self, level: u32) -> [u32; 3] {
        [self.width, self.height, self.depth].map(|n| n.checked_shr(level).unwrap_or(0).max(1))
    }
}

/// A mipmap level in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Level {
    /// Offset from the image's start in bytes.
    pub offset: u64,
    /// Texels in each dimension, at least 1.
    pub size: [u32; 3],
    /// Distance between rows in bytes.
    pub pitch: u64,
    /// Distance between layers or planes in bytes.
    pub slice: u64,
}

/// The part of an array that a texture or surface shows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    /// Mipmap levels.
    pub levels: Range<u32>,
    /// Layers; `0..0` for an array without layers.
    pub layers: Range<u32>,
    /// How texels are interpreted; of the same size as the array's format.
    pub format: Format,
}

/// An image in device memory.
#[derive(Debug)]
pub struct Texels {
    memory: Arc<Allocation>,
    base: u64,
    /// Format of a texel.
    pub format: Format,
    /// Extents.
    pub extent: Extent,
    /// Linear memory rather than an array: reads outside return zero.
    pub linear: bool,
    levels: Vec<Level>,
}

impl Texels {
    /// The levels of an array and its size in bytes; `None` if an extent is zero or too large.
    pub fn layout(format: Format, extent: &Extent) -> Option<(Vec<Level>, u64)> {
        let most = 32 - extent.width.max(extent.height).max(extent.depth).leading_zeros();
        if extent.width == 0 || extent.levels == 0 || extent.levels > most || !(1..=64).contains(&extent.samples) {
            return None;
        }
        let (mut levels, mut end) = (Vec::new(), 0u64);
        for i in 0..extent.levels {
            let size = extent.size(i);
            let texel = u64::from(format.bytes() * extent.samples);
            // Rows are aligned for any access.
            let pitch = u64::from(size[0]).checked_mul(texel)?.checked_next_multiple_of(16)?;
            let slice = pitch.checked_mul(size[1].into())?;
            levels.push(Level { offset: end, size, pitch, slice });
            let slices = u64::from(size[2]).checked_mul(extent.layers.max(1).into())?;
            end = end.checked_add(slice.checked_mul(slices)?)?.checked_next_multiple_of(16)?;
        }
        (end < 1 << 46).then_some((levels, end))
    }

    /// An array in an allocation, laid out by [`Texels::layout`].
    pub fn array(memory: Arc<Allocation>, format: Format, extent: Extent) -> Option<Texels> {
        let (levels, bytes) = Texels::layout(format, &extent)?;
        let base = memory.block.base();
        (bytes <= memory.block.len() as u64).then_some(Texels { memory, base, format, extent, linear: false, levels })
    }

    /// Linear memory at an address, with rows of `pitch` bytes.
    pub fn linear(
        memory: Arc<Allocation>,
        base: u64,
        format: Format,
        width: u32,
        height: u32,
        pitch: u64,
    ) -> Option<Texels> {
        let row = u64::from(width).checked_mul(format.bytes().into())?;
        let rows = u64::from(height.max(1));
        let bytes = pitch.checked_mul(rows - 1)?.checked_add(row)?;
        let inside = memory.block.contains(base, usize::try_from(bytes).ok()?);
        let slice = pitch.checked_mul(rows)?;
        let level = Level { offset: 0, size: [width, height.max(1), 1], pitch, slice };
        let extent = Extent::new(width, height, 0);
        let fits = width > 0 && inside && (height <= 1 || pitch >= row);
        fits.then_some(Texels { memory, base, format, extent, linear: true, levels: vec![level] })
    }

    /// A part of an array as an image of its own; `None` if the array has no such levels or layers, or if a texel of the
    /// format has another size.
    pub fn part(&self, part: &Part) -> Option<Texels> {
        let Part { levels: range, layers, format } = part;
        let first = range.start;
        let mut levels = self.levels.get(first as usize..range.end as usize).filter(|l| !l.is_empty())?.to_vec();
        if format.bytes() != self.format.bytes() || !format.exists() {
            return None;
        }
        let mut extent = self.extent;
        if extent.layers > 0 {
            extent.layers = layers.end.checked_sub(layers.start).filter(|n| *n > 0 && layers.end <= extent.layers)?;
            extent.cube &= extent.layers.is_multiple_of(6);
            levels.iter_mut().for_each(|level| level.offset += u64::from(layers.start) * level.slice);
        } else if *layers != (0..0) {
            return None;
        }
        let less = |n: u32| if n == 0 { 0 } else { (n >> first).max(1) };
        let Extent { width, height, depth, .. } = extent;
        let extent = Extent {
            width: less(width),
            height: less(height),
            depth: less(depth),
            levels: levels.len() as u32,
            ..extent
        };
        let Texels { base, linear, .. } = *self;
        Some(Texels { memory: self.memory.clone(), base, format: *format, extent, linear, levels })
    }

    /// The part with every layer of these levels, as they are.
    pub fn of_levels(&self, levels: Range<u32>) -> Part {
        Part { levels, layers: 0..self.extent.layers, format: self.format }
    }

    /// The memory of the image.
    pub fn block(&self) -> &Block {
        &self.memory.block
    }

    /// A level; numbers beyond the last one give the last one.
    #[inline]
    pub fn level(&self, level: u32) -> &Level {
        &self.levels[(level as usize).min(self.levels.len() - 1)]
    }

    /// Number of levels.
    pub fn levels(&self) -> u32 {
        self.levels.len() as u32
    }

    /// Address of a texel within the image; `slice` is the plane or the layer.
    #[inline]
    pub fn address(&self, level: &Level, x: u32, y: u32, slice: u32, sample: u32) -> u64 {
        let column = u64::from(x) * u64::from(self.extent.samples) + u64::from(sample.min(self.extent.samples - 1));
        self.row(level, y, slice) + column * u64::from(self.format.bytes())
    }

    /// Address of a row.
    #[inline]
    pub fn row(&self, level: &Level, y: u32, slice: u32) -> u64 {
        self.base + level.offset + u64::from(slice) * level.slice + u64::from(y) * level.pitch
    }

    /// The bytes of a texel, padded with zeros.
    #[inline]
    pub(crate) fn load(&self, address: u64) -> [u8; 16] {
        let block = self.block();
        let bits = match self.format.bytes() {
            1 => bits_at::<1>(block, address),
            2 => bits_at::<2>(block, address),
            4 => bits_at::<4>(block, address),
            8 => bits_at::<8>(block, address),
            _ => bits_at::<16>(block, address),
        };
        bits.to_le_bytes()
    }
}

/// The bits of a texel of 1, 2, 4, 8 or 16 bytes.
#[inline(always)]
fn bits_at<const BYTES: usize>(block: &Block, address: u64) -> u128 {
    let double = |at: u64| block.cell::<AtomicU64>(at).map(|cell| u128::from(u64::from_le(cell.load(Relaxed))));
    // Texels of arrays are aligned; other addresses have no cell.
    let aligned = match BYTES {
        1 => block.cell::<AtomicU8>(address).map(|cell| cell.load(Relaxed).into()),
        2 => block.cell::<AtomicU16>(address).map(|cell| u16::from_le(cell.load(Relaxed)).into()),
        4 => block.cell::<AtomicU32>(address).map(|cell| u32::from_le(cell.load(Relaxed)).into()),
        8 => double(address),
        _ => double(address).zip(double(address + 8)).map(|(low, high)| low | high << 64),
    };
    aligned.unwrap_or_else(|| {
        let mut bytes = [0; 16];
        // Levels lie within the allocation by construction.
        let _ = mem::load_bytes(block, address, &mut bytes[..BYTES]);
        u128::from_le_bytes(bytes)
    })
}

/// A texture: an image with the parameters by which it is read.
#[derive(Clone, Debug)]
pub struct Texture {
    /// The image.
    pub texels: Arc<Texels>,
    /// 8- and 16-bit integers are read as normalized values.
    pub normalized_read: bool,
    /// Colors of 8-bit unsigned channels are read as sRGB and converted to linear values; alpha is linear anyway.
    pub srgb: bool,
    /// Coordinates are normalized to [0, 1].
    pub normalized: bool,
    /// The sampler used where the instruction names none.
    pub sampler: Sampler,
}

/// The kind of object that a handle refers to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// `.texref`
    Texture,
    /// `.samplerref`
    Sampler,
    /// `.surfref`
    Surface,
}

/// The object that a handle refers to.
#[derive(Clone, Debug)]
pub enum Object {
    /// A texture.
    Texture(Arc<Texture>),
    /// A separate sampler.
    Sampler(Sampler),
    /// A surface.
    Surface(Arc<Texels>),
    /// A reference variable that nothing is bound to.
    Unbound(Kind),
}

impl Object {
    /// Its kind.
    pub fn kind(&self) -> Kind {
        match self {
            Object::Texture(_) => Kind::Texture,
            Object::Sampler(_) => Kind::Sampler,
            Object::Surface(_) => Kind::Surface,
            Object::Unbound(kind) => *kind,
        }
    }
}

/// Handles lie far from every memory address, and 8 apart like elements of an array of references.
const FIRST: u64 = 0x0e00_0000_0000_0000;

/// The texture, sampler and surface objects of a device, by handle.
#[derive(Debug, Default)]
pub struct Objects {
    table: RwLock<BTreeMap<u64, Object>>,
}

impl Objects {
    /// Adds objects with consecutive handles, 8 apart; returns the first.
    pub fn add(&self, objects: impl IntoIterator<Item = Object>) -> u64 {
        let mut table = self.table.write();
        let first = table.last_key_value().map_or(FIRST, |(last, _)| last + 8);
        table.extend(objects.into_iter().enumerate().map(|(i, o)| (first + 8 * i as u64, o)));
        first
    }

    /// Rebinds a handle; false if it is invalid or the kind differs.
    pub fn bind(&self, handle: u64, object: Object) -> bool {
        let mut table = self.table.write();
        match table.get_mut(&handle) {
            Some(old) if old.kind() == object.kind() => {
                *old = object;
                true
            }
            _ => false,
        }
    }

    /// The object of a handle.
    pub fn get(&self, handle: u64) -> Option<Object> {
        self.table.read().get(&handle).cloned()
    }

    /// Removes a handle; false if it is invalid.
    pub fn remove(&self, handle: u64) -> bool {
        self.table.write().remove(&handle).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_halve_and_lie_one_behind_the_other() {
        let format = Format { scalar: Scalar::Unsigned, bits: 16, channels: 2 };
        let extent = Extent { levels: 3, layers: 2, ..Extent::new(6, 5, 0) };
        let (levels, bytes) = Texels::layout(format, &extent).unwrap();
        assert_eq!(levels.iter().map(|l| l.size).collect::<Vec<_>>(), [[6, 5, 1], [3, 2, 1], [1, 1, 1]]);
        assert_eq!((levels[0].pitch, levels[0].slice), (32, 160));
        assert_eq!((levels[1].offset, levels[2].offset, bytes), (320, 384, 416));
        assert!(Texels::layout(format, &Extent { levels: 4, ..extent }).is_none(), "6 has three levels");
        assert!(Texels::layout(format, &Extent::new(0, 0, 0)).is_none());
        assert!(Texels::layout(format, &Extent::new(u32::MAX, u32::MAX, u32::MAX)).is_none());
    }

    #[test]
    fn parts_are_levels_and_layers_in_another_format_of_the_same_size() {
        let format = Format { scalar: Scalar::Unsigned, bits: 16, channels: 2 };
        let extent = Extent { levels: 3, layers: 12, cube: true, ..Extent::new(8, 8, 0) };
        let (_, bytes) = Texels::layout(format, &extent).unwrap();
        let memory = mem::Memory::default().alloc_as(bytes, 512, mem::Kind::Array, "").unwrap();
        let whole = Texels::array(memory, format, extent).unwrap();
        let word = Format { scalar: Scalar::Float, bits: 32, channels: 1 };
        let part = Part { levels: 1..3, layers: 6..12, format: word };
        let seen = whole.part(&part).unwrap();
        assert_eq!(seen.extent, Extent { levels: 2, layers: 6, cube: true, ..Extent::new(4, 4, 0) });
        assert_eq!(seen.row(seen.level(1), 1, 2), whole.row(whole.level(2), 1, 8));
        assert!(!whole.part(&Part { layers: 2..4, ..part.clone() }).unwrap().extent.cube);
        assert!(whole.part(&Part { levels: 2..4, ..part.clone() }).is_none(), "three levels");
        assert!(whole.part(&Part { layers: 6..13, ..part.clone() }).is_none(), "twelve layers");
        assert!(whole.part(&Part { format: Format { channels: 2, ..word }, ..part }).is_none(), "eight bytes");
    }

    #[test]
    fn handles_keep_their_kind() {
        let objects = Objects::default();
        let first = objects.add([Object::Unbound(Kind::Texture), Object::Unbound(Kind::Sampler)]);
        assert!(!objects.bind(first, Object::Sampler(Sampler::default())));
        assert!(objects.bind(first + 8, Object::Sampler(Sampler::default())));
        assert!(matches!(objects.get(first + 8), Some(Object::Sampler(_))));
        assert!(objects.remove(first) && !objects.remove(first) && objects.get(first).is_none());
        assert_eq!(objects.add([Object::Unbound(Kind::Surface)]), first + 16);
    }
}
