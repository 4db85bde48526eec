//! Reads by all lanes of a warp at once, in the cases that most programs have: a flat image without levels, no comparison, no border.
//!
//! What a read gives, [`super::sample()`] defines; here, coordinates become indices and weights by loops over lanes, and the rest is done
//! without what is the same for all lanes.

use super::{
    Address, Filter, Format, Geometry, Level, Sampler, Scalar, Texels, Texture,
    sample::{Footprint, mean_of_channels},
};
use crate::{
    LANES,
    matrix::{Loops, vectorize},
};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

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
        let axis = |d: usize| {
            let size = self.level.size[d];
            match d < self.dims {
                true => vectorize(Locate { at: &at[d], size, mode: self.modes[d], reads: self }),
                false => Axis { low: [0; LANES], high: [0; LANES], weight: [0.0; LANES] },
            }
        };
        let axes = [axis(0), axis(1), axis(2)];
        let lanes = (0..LANES).filter(|lane| active >> lane & 1 != 0);
        let single = (self.format.scalar, self.format.bits, self.format.channels) == (Scalar::Float, 32, 1);
        match self.format.channels {
            1 if !self.linear && self.format.bits == 32 => self.words(&axes, lanes, out),
            _ if !self.linear => lanes.for_each(|lane| self.nearest(&axes, lane, out)),
            1 if single => lanes.for_each(|lane| self.mean(&axes, lane, |at| [self.float(at)], out)),
            1 => lanes.for_each(|lane| self.mean::<1>(&axes, lane, |at| self.floats(at), out)),
            2 => lanes.for_each(|lane| self.mean::<2>(&axes, lane, |at| self.floats(at), out)),
            _ => lanes.for_each(|lane| self.mean::<4>(&axes, lane, |at| self.floats(at), out)),
        }
    }

    /// A texel of one word, as a float; those of linear memory may be misaligned.
    #[inline]
    fn float(&self, address: u64) -> f32 {
        match self.texels.block().cell::<AtomicU32>(address) {
            Some(cell) => f32::from_bits(u32::from_le(cell.load(Relaxed))),
            None => {
                let [a, b, c, d, ..] = self.texels.load(address);
                f32::from_bits(u32::from_le_bytes([a, b, c, d]))
            }
        }
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

    fn nearest(&self, axes: &[Axis; 3], lane: usize, out: &mut [[u32; LANES]; 4]) {
        let [x, y, z] = [axes[0].low[lane], axes[1].low[lane], axes[2].low[lane]];
        let outside = [x, y, z].contains(&OUTSIDE);
        let bytes = if outside { [0; 16] } else { self.texels.load(self.texels.address(self.level, x, y, z, 0)) };
        let channels = if outside { [0; 4] } else { self.format.decode(&bytes).channels };
        out.iter_mut().zip(channels).for_each(|(to, channel)| to[lane] = channel);
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
/// The largest size of which all indices are floats.
const LARGEST: u32 = 1 << 24;

/// The loops over lanes that find texels in one dimension.
struct Locate<'a> {
    at: &'a [u32; LANES],
    size: u32,
    mode: Address,
    reads: &'a Reads<'a>,
}

impl Locate<'_> {
    /// The nearest texel of a coordinate in texels.
    #[inline(always)]
    fn nearest(&self, bits: u32) -> u32 {
        let inside = f32::from_bits(bits).floor().max(0.0).min((self.size - 1) as f32);
        inside as i32 as u32
    }

    /// A normalized coordinate, in texels.
    #[inline(always)]
    fn place(&self, bits: u32) -> f64 {
        let x = f64::from(f32::from_bits(bits));
        let x = if x.is_nan() { 0.0 } else { x };
        if !self.reads.normalized {
            return x;
        }
        let whole = x.floor();
        let part = x - whole;
        let repeated = match self.mode {
            Address::Wrap => part,
            Address::Mirror if whole - 2.0 * (whole / 2.0).floor() == 0.0 => part,
            Address::Mirror => 1.0 - part,
            Address::Clamp | Address::Border => x,
        };
        f64::from(self.size) * if x.is_finite() { repeated } else { x }
    }

    /// The index of a texel, also for neighbors outside.
    #[inline(always)]
    fn index(&self, i: f64) -> u32 {
        let last = f64::from(self.size - 1);
        // `clamp` could panic, which would keep the loops from becoming vector instructions.
        let inside = i.max(0.0).min(last);
        let wrapped = if i < 0.0 { last } else { 0.0 };
        let found = if self.mode == Address::Wrap && i != inside { wrapped } else { inside };
        found as i32 as u32
    }
}

impl Loops for Locate<'_> {
    type Output = Axis;

    #[inline(always)]
    fn run<const FUSED: bool>(self) -> Axis {
        let mut axis = Axis { low: [0; LANES], high: [0; LANES], weight: [0.0; LANES] };
        let Reads { integer, linear, normalized, .. } = *self.reads;
        // The loops are apart, so that each becomes vector instructions.
        if integer {
            for lane in 0..LANES {
                let index = self.at[lane];
                axis.low[lane] = if index < self.size { index } else { OUTSIDE };
            }
        } else if !linear && !normalized {
            for lane in 0..LANES {
                axis.low[lane] = self.nearest(self.at[lane]);
            }
        } else if !linear {
            for lane in 0..LANES {
                axis.low[lane] = self.index(self.place(self.at[lane]).floor());
            }
        } else {
            for lane in 0..LANES {
                // Far outside any image, a rounded coordinate will do.
                let x = (self.place(self.at[lane]) - 0.5).clamp(-1e9, 1e9);
                let fixed = (x * 256.0).round_ties_even();
                let low = (fixed / 256.0).floor();
                axis.weight[lane] = fixed / 256.0 - low;
                axis.low[lane] = self.index(low);
                axis.high[lane] = self.index(low + 1.0);
            }
        }
        axis
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
}
