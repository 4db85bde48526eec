//! Tensor maps from the arguments of the driver's functions (CUDA Driver API, "Tensor Map Object Management").

use super::{ElementKind, Im2col, TensorMap};

/// The arguments that both kinds of tensor maps share, numbered as in CUDA's enumerations.
#[derive(Clone, Copy, Default, Debug)]
pub struct Tensor<'a> {
    /// A `CUtensorMapDataType`.
    pub data_type: u32,
    /// Address of the first element.
    pub address: u64,
    /// Elements by dimension, the innermost first; their number is the rank, 1 to 5.
    pub sizes: &'a [u64],
    /// Bytes from one index to the next, from the second dimension on.
    pub strides: &'a [u64],
    /// Traversal strides, by dimension.
    pub steps: &'a [u32],
    /// A `CUtensorMapInterleave`.
    pub interleave: u32,
    /// A `CUtensorMapSwizzle`.
    pub swizzle: u32,
    /// A `CUtensorMapFloatOOBfill`.
    pub fill: u32,
}

impl Tensor<'_> {
    /// Creates a tiled map (`cuTensorMapEncodeTiled`) for a box with one size per dimension.
    ///
    /// # Errors
    /// The text names the invalid argument and says why.
    pub fn tiled(&self, bounds: &[u32]) -> Result<TensorMap, String> {
        let mut map = self.map()?;
        if bounds.len() != map.rank || bounds.iter().any(|b| *b == 0 || *b > 256) {
            return Err(format!("the box {bounds:?} must have one size between 1 and 256 per dimension"));
        }
        for (to, from) in map.bounds.iter_mut().zip(bounds) {
            *to = *from as u16;
        }
        let (per, _, shared) = map.element.unit().unwrap_or((1, 1, 1));
        let inner = u64::from(bounds[0]) / per * shared as u64;
        if map.interleave == 0 && !inner.is_multiple_of(16) {
            return Err(format!("the box's rows have {inner} bytes, which must be a multiple of 16"));
        }
        let span = [u64::MAX, 32, 64, 128, 96][usize::from(map.swizzle)];
        if map.interleave == 0 && inner > span {
            return Err(format!("the box's rows have {inner} bytes, more than the {span} of the swizzling mode"));
        }
        Ok(map)
    }

    /// Creates an im2col map (`cuTensorMapEncodeIm2col`) from the lower and upper corners of the bounding box, which have
    /// two elements fewer than the tensor has dimensions, the channels per pixel, and the pixels per column.
    ///
    /// # Errors
    /// As for [`Tensor::tiled`].
    pub fn im2col(
        &self,
        (lower, upper): (&[i32], &[i32]),
        (channels, pixels): (u32, u32),
    ) -> Result<TensorMap, String> {
        let mut map = self.map()?;
        if map.rank < 3 || lower.len() != map.rank - 2 || upper.len() != map.rank - 2 {
            return Err("an im2col map has three to five dimensions, and corners in two fewer".into());
        }
        if channels == 0 || channels > 256 || pixels == 0 || pixels > 1024 {
            return Err(format!("{channels} channels of {pixels} pixels: the limits are 256 and 1024"));
        }
        let corner = |from: &[i32]| std::array::from_fn(|i| from.get(i).map_or(0, |c| *c as i16));
        let (channels, pixels) = (channels as u16, pixels as u16);
        map.im2col = Some(Im2col { channels, pixels, lower: corner(lower), upper: corner(upper) });
        Ok(map)
    }

    /// The map without box or corners.
    fn map(&self) -> Result<TensorMap, String> {
        let Tensor { data_type, address, sizes, strides, steps, interleave, swizzle, fill } = *self;
        let element = ElementKind::from_cuda(data_type).ok_or(format!("unknown data type {data_type}"))?;
        let rank = sizes.len();
        if !(1..=5).contains(&rank) || strides.len() + 1 != rank || steps.len() != rank {
            return Err(format!("{rank} sizes, {} strides and {} traversal strides", strides.len(), steps.len()));
        }
        if !address.is_multiple_of(16) {
            return Err(format!("the address {address:#x} must be a multiple of 16"));
        }
        if let Some(s) = sizes.iter().find(|s| **s == 0 || **s > 1 << 32) {
            return Err(format!("a dimension of {s} elements"));
        }
        if let Some(s) = strides.iter().find(|s| !s.is_multiple_of(16) || **s >= 1 << 40) {
            return Err(format!("a stride of {s} bytes must be a multiple of 16 below 2^40"));
        }
        if let Some(s) = steps.iter().find(|s| **s == 0 || **s > 8) {
            return Err(format!("a traversal stride of {s} must be 1 to 8"));
        }
        if interleave > 2 || swizzle > 6 || fill > 1 {
            return Err(format!("interleave {interleave}, swizzle {swizzle}, fill {fill}: not a valid mode"));
        }
        let mut map = TensorMap {
            address,
            rank,
            element,
            interleave: interleave as u8,
            // CUDA numbers the atomicities of the 128-byte swizzle as further swizzle modes.
            swizzle: swizzle.min(3) as u8,
            atomicity: swizzle.saturating_sub(3) as u8,
            nan_fill: fill == 1,
            im2col: None,
            bounds: [1; 5],
            steps: [1; 5],
            sizes: [1; 5],
            strides: [0; 4],
        };
        map.sizes[..rank].copy_from_slice(sizes);
        map.strides[..rank - 1].copy_from_slice(strides);
        map.steps.iter_mut().zip(steps).for_each(|(to, from)| *to = *from as u16);
        Ok(map)
    }
}
