//! Sampling: from coordinates to texels and their weighted mean (CUDA C++ Programming Guide, "Texture Fetching"; manual,
//! sections 9.7.10.2 to 9.7.10.4).
//!
//! Weights are fixed-point numbers with 8 fractional bits, as the guide says; for them, a coordinate is rounded to the
//! nearest 1/256 of a texel. Means are computed in double precision and rounded once. Integer coordinates address
//! texels: no filtering, and reads outside the image return zero. Where the manual is silent: the depth comparison
//! is `reference <= texel` unless the sampler says otherwise; a point between levels rounds to the nearest; layer and
//! face indices are clamped.

use super::{Address, Filter, Format, Level, Sampler, Scalar, Texel, Texels, Texture};
use crate::sem::fp;

/// The geometry of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Geometry {
    /// Number of coordinates within a layer: 1, 2 or 3; the three of a cube are a direction.
    pub dims: u8,
    /// Cube map.
    pub cube: bool,
    /// Layered: the layer is an operand.
    pub layered: bool,
    /// Multisampled: the sample is an operand.
    pub samples: bool,
}

/// A depth comparison.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum Compare {
    Never,
    Less,
    Equal,
    LessEqual,
    Greater,
    NotEqual,
    GreaterEqual,
    Always,
}

impl Compare {
    fn passes(self, reference: f32, texel: f32) -> bool {
        match self {
            Compare::Never => false,
            Compare::Less => reference < texel,
            Compare::Equal => reference == texel,
            Compare::LessEqual => reference <= texel,
            Compare::Greater => reference > texel,
            Compare::NotEqual => reference != texel,
            Compare::GreaterEqual => reference >= texel,
            Compare::Always => true,
        }
    }
}

/// The selection of the level of detail.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Lod {
    /// The finest level.
    Base,
    /// An explicit level of detail.
    Level(f32),
    /// An explicit level number.
    Number(i32),
    /// From the derivatives of the coordinates in x and in y.
    Gradient([f32; 3], [f32; 3]),
}

/// The operands of a texture instruction in one lane.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Query {
    /// The geometry.
    pub geometry: Geometry,
    /// Coordinates as bits of floats or integers.
    pub at: [u32; 3],
    /// Coordinates are integers.
    pub integer: bool,
    /// Index of the layer or cube.
    pub layer: u32,
    /// Index of the sample.
    pub sample: u32,
    /// Texel offsets added to the coordinates.
    pub offset: [i32; 3],
    /// Reference depth to compare with.
    pub depth: Option<f32>,
    /// The level of detail.
    pub lod: Lod,
}

/// The resolved parameters of a read, except level and texel indices.
struct View<'a> {
    texels: &'a Texels,
    format: Format,
    sampler: &'a Sampler,
    srgb: bool,
    /// Dimensions, layer and sample.
    dims: usize,
    layer: u32,
    sample: u32,
    depth: Option<f32>,
}

impl View<'_> {
    /// The texel with these indices; outside the image, the border color with address mode `border`, else zero.
    fn texel(&self, level: &Level, index: [Option<u32>; 3]) -> Texel {
        let texel = match index {
            [Some(x), Some(y), Some(z)] => {
                let slice = if self.dims == 3 { z } else { self.layer };
                let texel = self.format.decode(&self.texels.load(self.texels.address(level, x, y, slice, self.sample)));
                if self.srgb { texel.to_linear() } else { texel }
            }
            _ => {
                let float = self.format.is_float();
                let border = self.sampler.border;
                let channels = if float { border.map(f32::to_bits) } else { border.map(|c| c as i64 as u32) };
                Texel { float, channels }
            }
        };
        let Some(reference) = self.depth else { return texel };
        let mut out = Texel::floats([0.0, 0.0, 0.0, 1.0]);
        for k in 0..usize::from(self.format.channels) {
            let value = match self.format.is_float() {
                true => f32::from_bits(texel.channels[k]),
                false => texel.channels[k] as f32,
            };
            out.channels[k] = f32::from(u8::from(self.sampler.compare.passes(reference, value))).to_bits();
        }
        out
    }
}

/// Coordinates in texels of a level, wrapped or mirrored, with what is needed to find neighbors outside.
struct SamplePosition {
    at: [f64; 3],
    modes: [Address; 3],
    size: [u32; 3],
}

#[inline]
fn floor(x: f64) -> f64 {
    fp::floor64(x)
}

#[inline]
fn locate(view: &View<'_>, level: &Level, at: [f64; 3], offset: [i32; 3], normalized: bool) -> SamplePosition {
    let mut place = SamplePosition { at: [0.0; 3], modes: view.sampler.address, size: level.size };
    for d in 0..view.dims {
        let n = f64::from(level.size[d]);
        let mut x = if at[d].is_nan() { 0.0 } else { at[d] };
        if !normalized {
            if matches!(place.modes[d], Address::Wrap | Address::Mirror) {
                place.modes[d] = Address::Clamp;
            }
            place.at[d] = x + f64::from(offset[d]);
            continue;
        }
        // Offsets are in texels and apply before wrapping.
        x += f64::from(offset[d]) / n;
        x = match place.modes[d] {
            Address::Wrap if x.is_finite() => x - floor(x),
            Address::Mirror if x.is_finite() => {
                let (whole, part) = (floor(x), x - floor(x));
                if whole - 2.0 * floor(whole / 2.0) == 0.0 { part } else { 1.0 - part }
            }
            _ => x,
        };
        place.at[d] = n * x;
    }
    place
}

impl SamplePosition {
    /// The texel index of a coordinate in one dimension; `None` for the border.
    #[inline]
    fn index(&self, d: usize, i: i64) -> Option<u32> {
        let last = self.size[d] - 1;
        match self.modes[d] {
            _ if (0..=i64::from(last)).contains(&i) => Some(i as u32),
            Address::Border => None,
            // Only neighbors of a wrapped coordinate get here, one step outside.
            Address::Wrap => Some(if i < 0 { last } else { 0 }),
            Address::Mirror | Address::Clamp => Some(if i < 0 { 0 } else { last }),
        }
    }

    /// The lower of the two nearest texels, and the weight of the upper one in 1/256.
    #[inline]
    fn between(&self, d: usize) -> (i64, i64) {
        // Far outside any image, a rounded coordinate will do.
        let x = (self.at[d] - 0.5).clamp(-1e9, 1e9);
        let fixed = fp::rint64(x * 256.0) as i64;
        (fixed >> 8, fixed & 255)
    }
}

/// The texel that contains the coordinates.
fn point(view: &View<'_>, level: &Level, place: &SamplePosition) -> Texel {
    let mut index = [Some(0); 3];
    for d in 0..view.dims {
        index[d] = place.index(d, floor(place.at[d]) as i64);
    }
    view.texel(level, index)
}

/// The weighted mean of the nearest texels.
fn linear(view: &View<'_>, level: &Level, place: &SamplePosition) -> [f64; 4] {
    // By dimension, the indices and weights of the lower and of the upper texel.
    let (mut index, mut weights, mut is_plain) =
        ([[Some(0); 2]; 3], [[1.0, 0.0]; 3], view.depth.is_none() && !view.srgb);
    for d in 0..view.dims {
        let (low, upper) = place.between(d);
        index[d] = [place.index(d, low), place.index(d, low + 1)];
        weights[d] = [(256 - upper) as f64 / 256.0, upper as f64 / 256.0];
        is_plain &= index[d][0].is_some() && index[d][1].is_some();
    }
    if is_plain {
        let (dims, slice, sample) = (view.dims, view.layer, view.sample);
        let index = index.map(|pair| pair.map(Option::unwrap_or_default));
        let footprint = Footprint { index, weights, dims, slice, sample };
        let (texels, format) = (view.texels, view.format);
        return match format.channels {
            1 => mean_of_channels::<1>(texels, level, &footprint, |at| format.floats(&texels.load(at))),
            2 => mean_of_channels::<2>(texels, level, &footprint, |at| format.floats(&texels.load(at))),
            _ => mean_of_channels::<4>(texels, level, &footprint, |at| format.floats(&texels.load(at))),
        };
    }
    let mut sum = [0.0; 4];
    for corner in 0..1usize << view.dims {
        let [x, y, z] = [corner & 1, corner >> 1 & 1, corner >> 2];
        let weight = weights[0][x] * weights[1][y] * weights[2][z];
        if weight != 0.0 {
            let texel = view.texel(level, [index[0][x], index[1][y], index[2][z]]).as_floats();
            for k in 0..4 {
                sum[k] += weight * f64::from(texel[k]);
            }
        }
    }
    sum
}

/// The texels of a mean, all inside the image.
pub(super) struct Footprint {
    /// By dimension, the lower and the upper index, and their weights.
    pub index: [[u32; 2]; 3],
    pub weights: [[f64; 2]; 3],
    pub dims: usize,
    /// The layer of an image of fewer than three dimensions.
    pub slice: u32,
    pub sample: u32,
}

/// [`linear`] inside of an image with `C` channels whose texels are taken as they are: row by row, without what is the same for all
/// texels. `load` loads the texel at an address.
#[inline]
pub(super) fn mean_of_channels<const C: usize>(
    texels: &Texels,
    level: &Level,
    footprint: &Footprint,
    load: impl Fn(u64) -> [f32; C],
) -> [f64; 4] {
    let Footprint { index, weights, dims, slice, sample } = footprint;
    let bytes = u64::from(texels.format.bytes()) * u64::from(texels.extent.samples);
    let mut all = [0.0, 0.0, 0.0, 1.0];
    let mut sum = [0.0; C];
    for corner in 0..if *dims == 3 { 4 } else { 2 } {
        let (y, z) = (corner & 1, corner >> 1);
        let of_row = weights[1][y] * weights[2][z];
        if of_row == 0.0 {
            continue;
        }
        let slice = if *dims == 3 { index[2][z] } else { *slice };
        let row = texels.address(level, 0, index[1][y], slice, *sample);
        let mut add = |x: usize| {
            let weight = weights[0][x] * of_row;
            let texel = load(row + u64::from(index[0][x]) * bytes);
            for k in 0..C {
                sum[k] += weight * f64::from(texel[k]);
            }
        };
        add(0);
        if weights[0][1] != 0.0 {
            add(1);
        }
    }
    // The weights add up to exactly 1, so channels that the image lacks keep their values.
    all[..C].copy_from_slice(&sum);
    all
}

/// The face of a cube that a direction hits, and the coordinates there in [0, 1] (CUDA C++ Programming Guide, "Cubemap
/// Textures").
fn face([x, y, z]: [f32; 3]) -> (u32, [f64; 3]) {
    let (ax, ay, az) = (x.abs(), y.abs(), z.abs());
    let (face, m, s, t) = match () {
        _ if ax >= ay && ax >= az => {
            if x >= 0.0 {
                (0, ax, -z, -y)
            } else {
                (1, ax, z, -y)
            }
        }
        _ if ay >= az => {
            if y >= 0.0 {
                (2, ay, x, z)
            } else {
                (3, ay, x, -z)
            }
        }
        _ => {
            if z >= 0.0 {
                (4, az, x, -y)
            } else {
                (5, az, -x, -y)
            }
        }
    };
    let unit = |v: f32| (f64::from(v) / f64::from(m) + 1.0) / 2.0;
    (face, [unit(s), unit(t), 0.0])
}

/// Resolves the parameters of a read: the view, the coordinates, and whether they are normalized.
#[inline]
fn view<'a>(texture: &'a Texture, sampler: &'a Sampler, q: &Query) -> (View<'a>, [f64; 3], bool) {
    let texels = &*texture.texels;
    let format = if texture.normalized_read { texels.format.normalized() } else { texels.format };
    let srgb = texture.srgb && format.scalar == Scalar::Unorm && format.bits == 8;
    let layers = texels.extent.layers.max(1);
    let coordinates = |v: u32| if q.integer { f64::from(v as i32) } else { f64::from(f32::from_bits(v)) };
    let [x, y, z] = q.at;
    let mut at = [coordinates(x), coordinates(y), coordinates(z)];
    let (mut layer, mut dims) = (q.layer.min(layers - 1), usize::from(q.geometry.dims));
    if q.geometry.cube {
        let (face, place) = face(q.at.map(f32::from_bits));
        let cube = if q.geometry.layered { q.layer.min(layers.div_ceil(6) - 1) } else { 0 };
        (at, layer, dims) = (place, (6 * cube + face).min(layers - 1), 2);
    }
    let normalized = q.geometry.cube || texture.normalized && !sampler.force_unnormalized;
    let layer = if q.geometry.layered || q.geometry.cube { layer } else { 0 };
    (View { texels, format, sampler, srgb, dims, layer, sample: q.sample, depth: q.depth }, at, normalized)
}

/// The level of detail, with the sampler's bias and clamps applied.
#[inline]
fn level_of_detail(texture: &Texture, sampler: &Sampler, q: &Query, normalized: bool) -> f64 {
    let texels = &texture.texels;
    let last = f64::from(texels.levels() - 1);
    let wanted = match q.lod {
        Lod::Base => return 0.0,
        Lod::Number(n) => return f64::from(n).clamp(0.0, last),
        Lod::Level(lod) => f64::from(lod),
        Lod::Gradient(dx, dy) => {
            let size = texels.level(0).size;
            let scale = |d: usize| match () {
                // Half a face corresponds to one unit of the direction's largest component.
                _ if q.geometry.cube => {
                    let most = q.at.map(|b| f64::from(f32::from_bits(b)).abs()).into_iter().fold(0.0, f64::max);
                    f64::from(size[0]) / (2.0 * most)
                }
                _ if normalized => f64::from(size[d]),
                _ => 1.0,
            };
            let length = |v: [f32; 3]| {
                let part = |d: usize| f64::from(v[d]) * scale(d);
                (0..usize::from(q.geometry.dims)).map(|d| part(d) * part(d)).sum::<f64>()
            };
            // The square root of the larger squared length, as a power of two.
            log2(length(dx).max(length(dy))) / 2.0
        }
    };
    let wanted = wanted + f64::from(sampler.bias);
    let (low, high) = (f64::from(sampler.levels.0), f64::from(sampler.levels.1));
    if wanted.is_nan() { 0.0 } else { wanted.min(high).max(low).clamp(0.0, last) }
}

/// Binary logarithm by exponent and series; more precise than weights of 1/256 need.
fn log2(x: f64) -> f64 {
    if x.is_nan() || x <= 0.0 || x < f64::MIN_POSITIVE {
        return f64::NEG_INFINITY;
    }
    if x.is_infinite() {
        return x;
    }
    let bits = x.to_bits();
    let exponent = (bits >> 52) as i64 - 1023;
    let m = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52);
    // ln(m) = 2 atanh((m - 1) / (m + 1)), and the quotient is below 1/3.
    let t = (m - 1.0) / (m + 1.0);
    let (mut term, mut sum) = (t, 0.0);
    for k in 0..16 {
        sum += term / f64::from(2 * k + 1);
        term *= t * t;
    }
    exponent as f64 + 2.0 * sum * std::f64::consts::LOG2_E
}

/// The nearest texel, in the case that most programs have: one flat image, texels addressed by their numbers, no filter, and the edge
/// repeated outside.
#[inline]
fn nearest(texture: &Texture, sampler: &Sampler, q: &Query) -> Option<Texel> {
    let (texels, geometry) = (&*texture.texels, q.geometry);
    let is_plain = !(geometry.cube || geometry.layered || geometry.samples || q.integer || texture.srgb)
        && sampler.filter == Filter::Point
        && (!texture.normalized || sampler.force_unnormalized)
        && q.depth.is_none()
        && q.offset == [0; 3]
        && texels.levels.len() == 1;
    if !is_plain {
        return None;
    }
    let (level, mut index) = (&texels.levels[0], [0; 3]);
    for d in 0..usize::from(geometry.dims) {
        let at = f32::from_bits(q.at[d]);
        if sampler.address[d] == Address::Border && !(at >= 0.0 && at < level.size[d] as f32) {
            return None;
        }
        // Truncation is the floor of what is positive; NaN and the rest become 0, and large numbers the last texel.
        index[d] = (at as u32).min(level.size[d] - 1);
    }
    let format = if texture.normalized_read { texels.format.normalized() } else { texels.format };
    let [x, y, z] = index;
    Some(format.decode(&texels.load(texels.address(level, x, y, z, 0))))
}

/// Samples a texture (`tex`).
pub fn sample(texture: &Texture, sampler: &Sampler, q: &Query) -> Texel {
    if let Some(texel) = nearest(texture, sampler, q) {
        return texel;
    }
    let (view, at, normalized) = view(texture, sampler, q);
    let lod = level_of_detail(texture, sampler, q, normalized);
    if q.integer {
        let level = texture.texels.level(lod as u32);
        let mut index = [Some(0); 3];
        for d in 0..view.dims {
            let i = at[d] + f64::from(q.offset[d]);
            index[d] = (i >= 0.0 && i < f64::from(level.size[d])).then_some(i as u32);
        }
        if index.contains(&None) {
            return Texel { channels: [0; 4], ..view.format.decode(&[0; 16]) };
        }
        return view.texel(level, index);
    }
    let filtered = q.depth.is_some() || view.format.is_float();
    let one = |number: u32| -> Result<[f64; 4], Texel> {
        let level = texture.texels.level(number);
        let place = locate(&view, level, at, q.offset, normalized);
        match sampler.filter {
            Filter::Linear if filtered => Ok(linear(&view, level, &place)),
            _ => Err(point(&view, level, &place)),
        }
    };
    if sampler.level_filter == Filter::Linear && filtered {
        let fixed = fp::rint64(lod * 256.0);
        let low = floor(fixed / 256.0);
        let part = (fixed - 256.0 * low) / 256.0;
        if part > 0.0 {
            let value = |number| one(number).unwrap_or_else(|texel| texel.as_floats().map(f64::from));
            let (a, b) = (value(low as u32), value(low as u32 + 1));
            return Texel::floats(std::array::from_fn(|k| ((1.0 - part) * a[k] + part * b[k]) as f32));
        }
    }
    match one(floor(lod + 0.5) as u32) {
        Ok([r, g, b, a]) => Texel::floats([r as f32, g as f32, b as f32, a as f32]),
        Err(texel) => texel,
    }
}

/// The four texels of a bilinear footprint, one channel of each, counter-clockwise from the lower left (`tld4`).
pub fn gather(texture: &Texture, sampler: &Sampler, q: &Query, channel: usize) -> Texel {
    let (view, at, normalized) = view(texture, sampler, q);
    let level = texture.texels.level(0);
    let place = locate(&view, level, at, q.offset, normalized);
    let ((x, _), (y, _)) = (place.between(0), place.between(1));
    let mut out = Texel { float: true, channels: [0; 4] };
    // Rows are numbered downwards, so the lower ones have the larger index.
    for (slot, (i, j)) in out.channels.iter_mut().zip([(0, 1), (1, 1), (1, 0), (0, 0)]) {
        let texel = view.texel(level, [place.index(0, x + i), place.index(1, y + j), Some(0)]);
        out.float = texel.float;
        *slot = texel.channels[channel & 3];
    }
    out
}
