//! Reads by all lanes of a warp at once, in the cases that most programs have: a flat image without levels, no comparison, no border.
//!
//! [`super::sample()`] defines the result of a read. Here, loops over lanes turn coordinates into indices and weights, and whatever is the same
//! for all lanes is done once.

use super::{
    Address, Filter, Format, Geometry, Level, Sampler, Scalar, Texels, Texture, bits_at,
    sample::{Footprint, mean_of_channels},
};
use crate::{
    LANES,
    matrix::{Loops, vectorize},
};

/// How a warp reads an image.
pub struct Reads<'a> {
    texels: &'a Texels,
    level: &'a Level,
    format: Format,
    /// Channels that the format lacks.
    absent: [u32; 4],
    dims: usize,
    modes: [Address; 3],
    /// Coordinates are fractions of the size.
    normalized: bool,
    /// Coordinates are integers.
    integer: bool,
    linear: bool,
}

/// The texels that the lanes read in one dimension, and the weight of the upper one.
struct Axis {
    low: [u32; LANES],
    high: [u32; LANES],
    weight: [f64; LANES],
}

impl Axis {
    #[inline(always)]
    fn pair(&self, lane: usize) -> [u32; 2] {
        [self.low[lane], self.high[lane]]
    }

    #[inline(always)]
    fn weights(&self, lane: usize) -> [f64; 2] {
        [1.0 - self.weight[lane], self.weight[lane]]
    }
}

impl<'a> Reads<'a> {
    /// `None` if lanes have to be sampled one by one.
    pub fn new(texture: &'a Texture, sampler: &Sampler, geometry: Geometry, integer: bool) -> Option<Reads<'a>> {
        let texels = &*texture.texels;
        let dims = usize::from(geometry.dims);
        let format = if texture.normalized_read { texels.format.normalized() } else { texels.format };
        let normalized = texture.normalized && !sampler.force_unnormalized;
        let mut modes = sampler.address;
        if !normalized {
            // Without a period there is nothing to repeat.
            let clamp = |m: &mut Address| *m = if *m == Address::Border { *m } else { Address::Clamp };
            modes.iter_mut().for_each(clamp);
        }
        let flat = !(geometry.cube || geometry.layered || geometry.samples || texture.srgb) && texels.levels() == 1;
        let level = texels.level(0);
        let large = level.size.iter().any(|size| *size > LARGEST);
        if !flat || large || texels.extent.samples != 1 || modes[..dims].contains(&Address::Border) && !integer {
            return None;
        }
        let linear = sampler.filter == Filter::Linear && format.is_float() && !integer;
        let absent = format.decode(&[0; 16]).channels;
        Some(Reads { texels, level, format, absent, dims, modes, normalized, integer, linear })
    }

    /// The channels that the active lanes read at coordinates, by dimension; those of other lanes are arbitrary.
    pub fn channels(&self, at: &[[u32; LANES]; 3], active: u32, out: &mut [[u32; LANES]; 4]) {
        let mut axes = [const { Axis { low: [0; LANES], high: [0; LANES], weight: [0.0; LANES] } }; 3];
        for (d, axis) in axes.iter_mut().enumerate().take(self.dims) {
            vectorize(Locate { at: &at[d], size: self.level.size[d], mode: self.modes[d], reads: self, axis });
        }
        let lanes = (0..LANES).filter(|lane| active >> lane & 1 != 0);
        let single = (self.format.scalar, self.format.bits, self.format.channels) == (Scalar::Float, 32, 1);
        match self.format.channels {
            1 if !self.linear && self.format.bits == 32 => self.words(&axes, lanes, out),
            _ if !self.linear => match self.format.bytes() {
                1 | 2 | 4 => self.nearest::<1>(&axes, active, out),
                8 => self.nearest::<2>(&axes, active, out),
                _ => self.nearest::<4>(&axes, active, out),
            },
            1 if single && self.dims < 3 => self.means(&axes, lanes, out),
            1 if single => lanes.for_each(|lane| self.mean(&axes, lane, |at| [self.float(at)], out)),
            1 => lanes.for_each(|lane| self.mean::<1>(&axes, lane, |at| self.floats(at), out)),
            2 => lanes.for_each(|lane| self.mean::<2>(&axes, lane, |at| self.floats(at), out)),
            _ => lanes.for_each(|lane| self.mean::<4>(&axes, lane, |at| self.floats(at), out)),
        }
    }

    /// A texel of one word, as a float.
    #[inline]
    fn float(&self, address: u64) -> f32 {
        f32::from_bits(bits_at::<4>(self.texels.block(), address) as u32)
    }

    #[inline]
    fn floats<const C: usize>(&self, address: u64) -> [f32; C] {
        self.format.floats(&self.texels.load(address))
    }

    /// The nearest texels of one word.
    fn words(&self, axes: &[Axis; 3], lanes: impl Iterator<Item = usize>, out: &mut [[u32; LANES]; 4]) {
        let [x, y, z] = axes;
        let [first, rest @ ..] = out;
        for (to, channel) in rest.iter_mut().zip(&self.absent[1..]) {
            to.fill(*channel);
        }
        for lane in lanes {
            let (x, y, z) = (x.low[lane], y.low[lane], z.low[lane]);
            if x == OUTSIDE || y == OUTSIDE || z == OUTSIDE {
                first[lane] = 0;
                rest.iter_mut().for_each(|to| to[lane] = 0);
            } else {
                first[lane] = self.float(self.texels.row(self.level, y, z) + 4 * u64::from(x)).to_bits();
            }
        }
    }

    /// The means of texels of one float in at most two dimensions, as [`mean_of_channels`] defines them: texels without weight are not read.
    fn means(&self, axes: &[Axis; 3], lanes: impl Iterator<Item = usize>, out: &mut [[u32; LANES]; 4]) {
        let [x, y, _] = axes;
        // By row and column; zeros take no part in a sum.
        let mut texels = [[[0.0; LANES]; 2]; 2];
        let mut between = false;
        for lane in lanes {
            let (right, up) = (x.weight[lane] != 0.0, y.weight[lane] != 0.0);
            let [low, high] = x.pair(lane);
            let (left_at, right_at) = (4 * u64::from(low), 4 * u64::from(high));
            let low = self.texels.row(self.level, y.low[lane], 0);
            texels[0][0][lane] = self.float(low + left_at);
            if !(right || up) {
                continue;
            }
            between = true;
            if right {
                texels[0][1][lane] = self.float(low + right_at);
            }
            if up {
                let high = self.texels.row(self.level, y.high[lane], 0);
                texels[1][0][lane] = self.float(high + left_at);
                if right {
                    texels[1][1][lane] = self.float(high + right_at);
                }
            }
        }
        let [first, rest @ ..] = out;
        // What formats lack.
        for (to, value) in rest.iter_mut().zip([0.0f32, 0.0, 1.0]) {
            to.fill(value.to_bits());
        }
        match between {
            // A sum begins with a positive zero.
            false => first.iter_mut().zip(&texels[0][0]).for_each(|(to, v)| *to = (0.0 + v).to_bits()),
            true => vectorize(Mix { texels: &texels, weights: [&x.weight, &y.weight], out: first }),
        }
    }

    /// Loads the texels of some lanes, by word and lane, at their places in each dimension.
    fn load<const WORDS: usize>(&self, at: [&[u32; LANES]; 3], lanes: u32, to: &mut [[u32; LANES]; WORDS]) {
        match self.format.bytes() {
            1 => self.each::<1, WORDS>(at, lanes, to),
            2 => self.each::<2, WORDS>(at, lanes, to),
            4 => self.each::<4, WORDS>(at, lanes, to),
            8 => self.each::<8, WORDS>(at, lanes, to),
            _ => self.each::<16, WORDS>(at, lanes, to),
        }
    }

    #[inline(always)]
    fn each<const BYTES: usize, const WORDS: usize>(
        &self,
        [x, y, z]: [&[u32; LANES]; 3],
        lanes: u32,
        to: &mut [[u32; LANES]; WORDS],
    ) {
        let block = self.texels.block();
        let mut left = lanes;
        while left != 0 {
            let lane = left.trailing_zeros() as usize;
            left &= left - 1;
            let address = self.texels.row(self.level, y[lane], z[lane]) + BYTES as u64 * u64::from(x[lane]);
            let texel = bits_at::<BYTES>(block, address);
            to.iter_mut().enumerate().for_each(|(i, word)| word[lane] = (texel >> (32 * i)) as u32);
        }
    }

    /// The nearest texels, of at most `WORDS` words.
    fn nearest<const WORDS: usize>(&self, axes: &[Axis; 3], active: u32, out: &mut [[u32; LANES]; 4]) {
        let [x, y, z] = axes;
        let is_outside = |lane: &usize| [x.low[*lane], y.low[*lane], z.low[*lane]].contains(&OUTSIDE);
        let outside = match self.integer {
            true => (0..LANES).filter(is_outside).fold(0u32, |all, lane| all | 1 << lane),
            false => 0,
        };
        let mut texels = [[0; LANES]; WORDS];
        self.load([&x.low, &y.low, &z.low], active & !outside, &mut texels);
        for (k, to) in out.iter_mut().enumerate() {
            match k < usize::from(self.format.channels) {
                true => vectorize(Decode { texels: &texels, format: self.format, channel: k, out: to }),
                false => to.fill(self.absent[k]),
            }
            (0..LANES).filter(|lane| outside >> lane & 1 != 0).for_each(|lane| to[lane] = 0);
        }
    }

    #[inline]
    fn mean<const C: usize>(
        &self,
        axes: &[Axis; 3],
        lane: usize,
        load: impl Fn(u64) -> [f32; C],
        out: &mut [[u32; LANES]; 4],
    ) {
        let [x, y, z] = axes;
        let footprint = Footprint {
            index: [x.pair(lane), y.pair(lane), z.pair(lane)],
            weights: [x.weights(lane), y.weights(lane), z.weights(lane)],
            dims: self.dims,
            slice: 0,
            sample: 0,
        };
        let mean = mean_of_channels(self.texels, self.level, &footprint, load);
        out.iter_mut().zip(mean).for_each(|(to, channel)| to[lane] = (channel as f32).to_bits());
    }
}

/// The index of texels outside an image.
const OUTSIDE: u32 = u32::MAX;
/// The largest size of an image all of whose indices are exact in single precision.
const LARGEST: u32 = 1 << 24;

/// The loops over lanes that find texels in one dimension.
struct Locate<'a> {
    at: &'a [u32; LANES],
    size: u32,
    mode: Address,
    reads: &'a Reads<'a>,
    axis: &'a mut Axis,
}

/// A coordinate as a double; that of no number is the first one.
#[inline(always)]
fn coordinate(bits: u32) -> f64 {
    let x = f32::from_bits(bits);
    f64::from(if x.is_nan() { 0.0 } else { x })
}

/// A number from 0 to 2^32 - 1 as an integer; a conversion, which checks, would not become vector instructions.
#[inline(always)]
fn integer(v: f64) -> u32 {
    const UNITS: f64 = (1_u64 << 52) as f64; // numbers of this size differ by one
    (v + UNITS).to_bits() as u32
}

/// The texel of a whole number that exists, where `last` is the last one. (`clamp` could panic, which would keep loops from becoming
/// vector instructions.)
#[inline(always)]
fn clamped(i: f64, last: f64) -> u32 {
    integer(i.max(0.0).min(last))
}

/// The same for neighbors of texels in an image that repeats.
#[inline(always)]
fn wrapped(i: f64, last: f64) -> u32 {
    let inside = i.max(0.0).min(last);
    let other = if i < 0.0 { last } else { 0.0 };
    integer(if i == inside { inside } else { other })
}

/// A normalized coordinate in texels, in an image of `size` texels. Where the image repeats, `part` maps the number of whole images before
/// the coordinate, and the fraction after them, to the place in the image.
#[inline(always)]
fn place(x: f64, size: f64, part: impl Fn(f64, f64) -> f64) -> f64 {
    let whole = x.floor();
    size * if x.is_finite() { part(whole, x - whole) } else { x }
}

/// The place within an image that is repeated, with every second copy mirrored.
#[inline(always)]
fn mirrored(whole: f64, rest: f64) -> f64 {
    if whole - 2.0 * (whole / 2.0).floor() == 0.0 { rest } else { 1.0 - rest }
}

impl Locate<'_> {
    /// Finds the texels of coordinates that `place` converts to texels; `index` is the texel of a whole number.
    #[inline(always)]
    fn find(self, place: impl Fn(f64) -> f64, index: impl Fn(f64) -> u32) {
        let Locate { at, axis, .. } = self;
        // Rows and columns of an image often have one coordinate for the whole warp.
        let same = at.iter().all(|bits| *bits == at[0]);
        let lanes = if same { 1 } else { LANES };
        // The loops are apart, so that each becomes vector instructions.
        let mut whole = [0.0; LANES];
        for lane in 0..lanes {
            whole[lane] = place(coordinate(at[lane]));
        }
        if self.reads.linear {
            for lane in 0..lanes {
                // Far outside any image, a rounded coordinate will do.
                let x = (whole[lane] - 0.5).clamp(-1e9, 1e9);
                let fixed = (x * 256.0).round_ties_even() / 256.0;
                whole[lane] = fixed.floor();
                axis.weight[lane] = fixed - whole[lane];
            }
            for lane in 0..lanes {
                axis.high[lane] = index(whole[lane] + 1.0);
            }
        } else {
            for lane in 0..lanes {
                whole[lane] = whole[lane].floor();
            }
        }
        for lane in 0..lanes {
            axis.low[lane] = index(whole[lane]);
        }
        if same {
            let Axis { low, high, weight } = *axis;
            *axis = Axis { low: [low[0]; LANES], high: [high[0]; LANES], weight: [weight[0]; LANES] };
        }
    }
}

impl Loops for Locate<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let (size, last) = (f64::from(self.size), f64::from(self.size - 1));
        match (self.reads.normalized, self.mode) {
            _ if self.reads.integer => {
                for lane in 0..LANES {
                    let index = self.at[lane];
                    self.axis.low[lane] = if index < self.size { index } else { OUTSIDE };
                }
            }
            (false, _) => self.find(|x| x, |i| clamped(i, last)),
            (true, Address::Wrap) => self.find(|x| place(x, size, |_, rest| rest), |i| wrapped(i, last)),
            (true, Address::Mirror) => self.find(|x| place(x, size, mirrored), |i| clamped(i, last)),
            (true, Address::Clamp | Address::Border) => self.find(|x| size * x, |i| clamped(i, last)),
        }
    }
}

/// The loop over lanes that decodes a channel.
struct Decode<'a, const WORDS: usize> {
    texels: &'a [[u32; LANES]; WORDS],
    format: Format,
    channel: usize,
    out: &'a mut [u32; LANES],
}

impl<const WORDS: usize> Loops for Decode<'_, WORDS> {
    type Output = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let Decode { texels, format, channel, out } = self;
        let at = channel * usize::from(format.bits);
        let (word, shift, mask) = (&texels[at / 32], at % 32, u32::MAX >> (32 - u32::from(format.bits)));
        for lane in 0..LANES {
            out[lane] = format.decode_one(word[lane] >> shift & mask);
        }
    }
}

/// The loop over lanes that weighs four texels, by row and column, with the weights of the right and upper ones.
struct Mix<'a> {
    texels: &'a [[[f32; LANES]; 2]; 2],
    weights: [&'a [f64; LANES]; 2],
    out: &'a mut [u32; LANES],
}

impl Loops for Mix<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let [x, y] = self.weights;
        for lane in 0..LANES {
            let mut sum = 0.0;
            for (row, of_row) in self.texels.iter().zip([1.0 - y[lane], y[lane]]) {
                for (texel, of_column) in row.iter().zip([1.0 - x[lane], x[lane]]) {
                    sum += of_column * of_row * f64::from(texel[lane]);
                }
            }
            self.out[lane] = (sum as f32).to_bits();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        mem,
        texture::{Extent, Lod, Query, sample},
    };
    use std::sync::Arc;

    fn image(format: Format, extent: Extent) -> Arc<Texels> {
        let (_, bytes) = Texels::layout(format, &extent).unwrap();
        let memory = mem::Memory::default().alloc_as(bytes, 512, mem::Kind::Array, "").unwrap();
        for i in 0..bytes / 4 {
            let value = if format.bits == 32 {
                (i as f32 * 1.25 - 7.0).to_bits()
            } else {
                (i as u32).wrapping_mul(0x9e37_79b9)
            };
            mem::store_bytes(&memory.block, memory.block.base() + 4 * i, &value.to_le_bytes()).unwrap();
        }
        Arc::new(Texels::array(memory, format, extent).unwrap())
    }

    /// Against reads of single lanes, whose rules are tested with them.
    #[test]
    fn all_lanes_read_what_each_one_would() {
        let scalars = [
            (Scalar::Float, 32, 1),
            (Scalar::Float, 32, 4),
            (Scalar::Unorm, 8, 4),
            (Scalar::Unsigned, 16, 2),
            (Scalar::Signed, 32, 1),
            (Scalar::Unsigned, 8, 1),
            (Scalar::Signed, 8, 2),
            (Scalar::Snorm, 16, 4),
            (Scalar::Unorm, 16, 1),
            (Scalar::Float, 16, 4),
            (Scalar::Float, 32, 2),
        ];
        let bits = [-3.0f32, -0.5, 0.0, 0.25, 0.4999, 1.0, 1.5, 2.751, 3.0, 6.99, 1e20, -1e20, f32::INFINITY, f32::NAN]
            .map(f32::to_bits);
        let integers = [0u32, 1, 2, 3, 6, 7, 100, u32::MAX, 0x8000_0000];
        let mut compared = 0;
        for (scalar, width, channels) in scalars {
            let format = Format { scalar, bits: width, channels };
            for dims in 1..=3u8 {
                let extent = Extent::new(7, if dims > 1 { 5 } else { 0 }, if dims > 2 { 3 } else { 0 });
                let texels = image(format, extent);
                for case in 0..32 {
                    let address = [Address::Wrap, Address::Mirror, Address::Clamp, Address::Border][case & 3];
                    let filter = if case & 4 == 0 { Filter::Point } else { Filter::Linear };
                    let (normalized, integer) = (case & 8 != 0, case & 16 != 0);
                    let sampler = Sampler { address: [address; 3], filter, ..Sampler::default() };
                    let texture =
                        Texture { texels: texels.clone(), normalized_read: false, srgb: false, normalized, sampler };
                    let geometry = Geometry { dims, cube: false, layered: false, samples: false };
                    let Some(reads) = Reads::new(&texture, &sampler, geometry, integer) else { continue };
                    let pick = |i: usize| if integer { integers[i % integers.len()] } else { bits[i % bits.len()] };
                    for turn in 0..bits.len() {
                        let at: [[u32; LANES]; 3] =
                            std::array::from_fn(|d| std::array::from_fn(|lane| pick(lane + (turn + 1) * d)));
                        let mut out = [[0; LANES]; 4];
                        reads.channels(&at, 0x7fff_ffff, &mut out);
                        for lane in 0..LANES - 1 {
                            let query = Query {
                                geometry,
                                at: [at[0][lane], at[1][lane], at[2][lane]],
                                integer,
                                layer: 0,
                                sample: 0,
                                offset: [0; 3],
                                depth: None,
                                lod: Lod::Base,
                            };
                            let want = sample(&texture, &sampler, &query).channels;
                            assert_eq!(out.map(|c| c[lane]), want, "{format:?} {case} {query:?}");
                            compared += 1;
                        }
                    }
                }
            }
        }
        assert!(compared > 50_000);
    }

    #[test]
    fn texels_of_linear_memory_may_be_misaligned() {
        let geometry = Geometry { dims: 1, cube: false, layered: false, samples: false };
        for (bits, channels) in [(16, 1), (32, 1), (16, 4), (32, 4)] {
            let format = Format { scalar: Scalar::Unsigned, bits, channels };
            let memory = mem::Memory::default().alloc_as(512, 512, mem::Kind::Array, "").unwrap();
            let base = memory.block.base();
            (0..512).for_each(|i| mem::store_bytes(&memory.block, base + i, &[i as u8]).unwrap());
            let texels = Arc::new(Texels::linear(memory, base + 1, format, LANES as u32 - 2, 0, 0).unwrap());
            let sampler = Sampler::default();
            let texture = Texture { texels, normalized_read: false, srgb: false, normalized: false, sampler };
            let reads = Reads::new(&texture, &sampler, geometry, true).unwrap();
            let (at, mut out) = (std::array::from_fn(|lane| lane as u32), [[0; LANES]; 4]);
            reads.channels(&[at, [0; LANES], [0; LANES]], u32::MAX, &mut out);
            let query = |lane| Query {
                geometry,
                at: [lane, 0, 0],
                integer: true,
                layer: 0,
                sample: 0,
                offset: [0; 3],
                depth: None,
                lod: Lod::Base,
            };
            for lane in 0..LANES {
                let want = sample(&texture, &sampler, &query(lane as u32)).channels;
                assert_eq!(out.map(|c| c[lane]), want, "{format:?}, texel {lane}");
            }
        }
    }
}
