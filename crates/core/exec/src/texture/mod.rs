//! Textures, samplers and surfaces as the device knows them (manual, sections 5.3, 9.7.10 and 9.7.11; CUDA C++ Programming
//! Guide, "Texture and Surface Memory" and "Texture Fetching").
//!
//! [`Texels`] is an image in device memory: a CUDA array with its levels and layers, or linear memory seen as one. A
//! [`Texture`] adds how it is read, a surface does not. [`Objects`] holds them by handle: what `.texref`, `.samplerref` and
//! `.surfref` variables stand for and what 64-bit registers carry. A variable has a handle from the beginning, and an object
//! once the host binds one.

mod format;
mod sample;

pub use format::{Format, Scalar, Texel};
pub use sample::{Compare, Geometry, Lod, Query, gather, sample};

use crate::mem::{self, Allocation, Block};
use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError, RwLock},
};

/// What is done with coordinates outside of the image.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Address {
    /// The image repeats. Normalised coordinates only; else as [`Address::Clamp`].
    Wrap,
    /// The image repeats, every second time mirrored. Normalised coordinates only; else as [`Address::Clamp`].
    Mirror,
    /// The texel at the edge.
    #[default]
    Clamp,
    /// The border colour.
    Border,
}

/// Which texel, or how many.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Filter {
    /// The texel that the coordinate lies in.
    #[default]
    Point,
    /// The weighted mean of the nearest two texels in each dimension.
    Linear,
}

/// How a texture is sampled.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sampler {
    /// By dimension.
    pub address: [Address; 3],
    /// Inside of a level.
    pub filter: Filter,
    /// Between levels.
    pub level_filter: Filter,
    /// Added to the level of detail.
    pub bias: f32,
    /// Lowest and highest level of detail.
    pub levels: (f32, f32),
    /// Colour outside of the image with [`Address::Border`].
    pub border: [f32; 4],
    /// How a depth is compared: `reference OP texel`.
    pub compare: Compare,
    /// Coordinates count texels, whatever the texture says (`.samplerref` only).
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

/// Extents of an image.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Extent {
    /// Texels in x.
    pub width: u32,
    /// Texels in y; 0 for one dimension.
    pub height: u32,
    /// Texels in z; 0 for fewer than three dimensions.
    pub depth: u32,
    /// Layers; 0 for none. Cubes have six each, their faces in order +x, -x, +y, -y, +z, -z.
    pub layers: u32,
    /// Layers are faces of cubes.
    pub cube: bool,
    /// Levels of detail, at least 1.
    pub levels: u32,
    /// Samples of a texel, at least 1.
    pub samples: u32,
}

impl Extent {
    /// An image of one, two or three dimensions (absent ones 0), one level, one sample, no layers.
    pub const fn new(width: u32, height: u32, depth: u32) -> Extent {
        Extent { width, height, depth, layers: 0, cube: false, levels: 1, samples: 1 }
    }

    /// Texels of a level in each dimension, at least 1.
    pub fn size(&self, level: u32) -> [u32; 3] {
        [self.width, self.height, self.depth].map(|n| n.checked_shr(level).unwrap_or(0).max(1))
    }
}

/// A level of detail in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Level {
    /// Bytes from the image's first.
    pub offset: u64,
    /// Texels in each dimension, at least 1.
    pub size: [u32; 3],
    /// Bytes from row to row.
    pub pitch: u64,
    /// Bytes from layer to layer, or from plane to plane.
    pub slice: u64,
}

/// An image in device memory.
#[derive(Debug)]
pub struct Texels {
    memory: Arc<Allocation>,
    base: u64,
    /// How a texel is stored.
    pub format: Format,
    /// Extents.
    pub extent: Extent,
    /// Linear memory and no array: what lies outside reads as zero.
    pub linear: bool,
    levels: Vec<Level>,
}

impl Texels {
    /// The levels of an array of that format and extents, and the bytes that it takes; `None` for extents of zero or too large.
    pub fn layout(format: Format, extent: &Extent) -> Option<(Vec<Level>, u64)> {
        let most = 32 - extent.width.max(extent.height).max(extent.depth).leading_zeros();
        if extent.width == 0 || extent.levels == 0 || extent.levels > most || !(1..=64).contains(&extent.samples) {
            return None;
        }
        let (mut levels, mut end) = (Vec::new(), 0u64);
        for i in 0..extent.levels {
            let size = extent.size(i);
            let texel = u64::from(format.bytes() * extent.samples);
            // Rows begin where any access is aligned.
            let pitch = u64::from(size[0]).checked_mul(texel)?.checked_next_multiple_of(16)?;
            let slice = pitch.checked_mul(size[1].into())?;
            levels.push(Level { offset: end, size, pitch, slice });
            let slices = u64::from(size[2]).checked_mul(extent.layers.max(1).into())?;
            end = end.checked_add(slice.checked_mul(slices)?)?.checked_next_multiple_of(16)?;
        }
        (end < 1 << 46).then_some((levels, end))
    }

    /// An array that fills an allocation as [`Texels::layout`] says.
    pub fn array(memory: Arc<Allocation>, format: Format, extent: Extent) -> Option<Texels> {
        let (levels, bytes) = Texels::layout(format, &extent)?;
        let base = memory.block.base();
        (bytes <= memory.block.len() as u64).then_some(Texels { memory, base, format, extent, linear: false, levels })
    }

    /// Linear memory from an address on, as rows of `pitch` bytes.
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

    /// The same image seen from one of its levels on: what a surface of a mipmapped array is.
    pub fn from_level(&self, level: u32) -> Option<Texels> {
        let levels = self.levels.get(level as usize..).filter(|l| !l.is_empty())?.to_vec();
        let less = |n: u32| if n == 0 { 0 } else { (n >> level).max(1) };
        let Extent { width, height, depth, .. } = self.extent;
        let extent = Extent {
            width: less(width),
            height: less(height),
            depth: less(depth),
            levels: levels.len() as u32,
            ..self.extent
        };
        let Texels { base, format, linear, .. } = *self;
        Some(Texels { memory: self.memory.clone(), base, format, extent, linear, levels })
    }

    /// Its memory.
    pub fn block(&self) -> &Block {
        &self.memory.block
    }

    /// A level; the last one for numbers beyond.
    pub fn level(&self, level: u32) -> &Level {
        &self.levels[(level as usize).min(self.levels.len() - 1)]
    }

    /// How many levels it has.
    pub fn levels(&self) -> u32 {
        self.levels.len() as u32
    }

    /// The address of a texel inside of the image; `slice` is the plane or the layer.
    pub fn address(&self, level: &Level, x: u32, y: u32, slice: u32, sample: u32) -> u64 {
        let column = u64::from(x) * u64::from(self.extent.samples) + u64::from(sample.min(self.extent.samples - 1));
        self.row(level, y, slice) + column * u64::from(self.format.bytes())
    }

    /// The address of a row.
    pub fn row(&self, level: &Level, y: u32, slice: u32) -> u64 {
        self.base + level.offset + u64::from(slice) * level.slice + u64::from(y) * level.pitch
    }

    /// The bytes of a texel, in the first places.
    pub(crate) fn load(&self, address: u64) -> [u8; 16] {
        let mut bytes = [0; 16];
        // Levels lie inside of the allocation by construction.
        let _ = mem::load_bytes(self.block(), address, &mut bytes[..self.format.bytes() as usize]);
        bytes
    }
}

/// A texture: an image and how it is read.
#[derive(Clone, Debug)]
pub struct Texture {
    /// The image.
    pub texels: Arc<Texels>,
    /// Integers of 8 and 16 bits are read as fractions of their largest value.
    pub normalized_read: bool,
    /// Coordinates run from 0 to 1.
    pub normalized: bool,
    /// Its sampler, where no other is named.
    pub sampler: Sampler,
}

/// Which kind of object a handle is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// `.texref`
    Texture,
    /// `.samplerref`
    Sampler,
    /// `.surfref`
    Surface,
}

/// What a handle stands for.
#[derive(Clone, Debug)]
pub enum Object {
    /// A texture.
    Texture(Arc<Texture>),
    /// A sampler of its own.
    Sampler(Sampler),
    /// An image to read and write.
    Surface(Arc<Texels>),
    /// A variable that nothing is bound to.
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

/// Handles are far from every address of memory, and 8 apart like the elements of an array of references.
const FIRST: u64 = 0x0e00_0000_0000_0000;

/// The objects of a device by handle.
#[derive(Debug, Default)]
pub struct Objects {
    table: RwLock<BTreeMap<u64, Object>>,
}

impl Objects {
    /// Handles for these objects, one after the other at a distance of 8; the first one.
    pub fn add(&self, objects: impl IntoIterator<Item = Object>) -> u64 {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        let first = table.last_key_value().map_or(FIRST, |(last, _)| last + 8);
        table.extend(objects.into_iter().enumerate().map(|(i, o)| (first + 8 * i as u64, o)));
        first
    }

    /// Puts another object in the place of one; false where there is none, or one of another kind.
    pub fn bind(&self, handle: u64, object: Object) -> bool {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        match table.get_mut(&handle) {
            Some(old) if old.kind() == object.kind() => {
                *old = object;
                true
            }
            _ => false,
        }
    }

    /// What a handle stands for.
    pub fn get(&self, handle: u64) -> Option<Object> {
        self.table.read().unwrap_or_else(PoisonError::into_inner).get(&handle).cloned()
    }

    /// Forgets a handle; false where it is none.
    pub fn remove(&self, handle: u64) -> bool {
        self.table.write().unwrap_or_else(PoisonError::into_inner).remove(&handle).is_some()
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
