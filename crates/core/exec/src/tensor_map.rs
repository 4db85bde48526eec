//! Tensor maps, which describe a tensor in global memory to bulk tensor copies (manual, section 5.5), and margay's
//! encoding of them in their opaque 128 bytes.
//!
//! NVIDIA does not publish the layout of the object. This one is margay's, little-endian. `tensormap.replace` writes
//! the same fields, also into 128 zero bytes, so zero in a field means what the instruction's zero means, and a
//! traversal stride of 0 counts as 1.
//!
//! | bytes | field |
//! |---|---|
//! | 0..8 | global address |
//! | 8 | rank less one |
//! | 9 | element type, as numbered by `tensormap.replace` ([`ElementKind`]) |
//! | 10, 11, 12, 13 | interleave layout, swizzle mode, swizzle atomicity, fill mode, numbered likewise |
//! | 14 | 0 tiled, 1 im2col |
//! | 16..26 | box: elements along dimensions 0 to 4, 16 bits each |
//! | 26..36 | traversal strides, 16 bits each |
//! | 36..38, 38..40 | im2col: channels per pixel, pixels per column |
//! | 40..46, 46..52 | im2col: lower and upper corner along dimensions 1 to 3, signed 16 bits each |
//! | 56..96 | size of dimensions 0 to 4, 64 bits each |
//! | 96..128 | bytes from one index to the next along dimensions 1 to 4, 64 bits each |

use margay_isa::{Mod, Type};

/// Size of a tensor map in bytes.
pub const SIZE: usize = 128;

/// An element type, as numbered by `tensormap.replace.elemtype`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ElementKind(pub u8);

impl ElementKind {
    /// Converts a `CUtensorMapDataType`, whose order differs.
    pub fn from_cuda(number: u32) -> Option<ElementKind> {
        // u8 u16 u32 s32 u64 s64 f16 f32 f64 bf16 f32.ftz tf32 tf32.ftz b4x16 b4x16_p64 b6x16_p32
        const KINDS: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 8, 11, 12, 13, 14, 15];
        KINDS.get(number as usize).copied().map(ElementKind)
    }

    /// Elements per unit of packing, and bytes of such a unit in global and in shared memory (section 5.5.1.1).
    pub fn unit(self) -> Option<(u64, usize, usize)> {
        Some(match self.0 {
            0 => (1, 1, 1),
            1 | 6 | 10 => (1, 2, 2),
            2 | 3 | 7 | 8 | 11 | 12 => (1, 4, 4),
            4 | 5 | 9 => (1, 8, 8),
            13 => (16, 8, 8),
            14 => (16, 8, 16),
            15 => (16, 12, 16),
            _ => return None,
        })
    }

    /// The type in which reductions compute.
    pub fn ty(self) -> Type {
        match self.0 {
            1 => Type::B16,
            2 => Type::U32,
            3 => Type::S32,
            4 => Type::U64,
            5 => Type::S64,
            6 => Type::F16,
            7 | 8 | 11 | 12 => Type::F32,
            9 => Type::F64,
            10 => Type::Bf16,
            _ => Type::B8,
        }
    }

    /// The bytes of the NaN that fills elements outside the tensor.
    fn nan(self) -> &'static [u8] {
        match self.0 {
            6 | 10 => &[0xff, 0x7f],
            7 | 8 | 11 | 12 => &[0xff, 0xff, 0xff, 0x7f],
            9 => &[0, 0, 0, 0, 0, 0, 0xf8, 0xff],
            _ => &[0],
        }
    }
}

/// A decoded tensor map. Dimension 0 is the innermost one, whose elements are contiguous in memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TensorMap {
    /// Address of the first element, a multiple of 16.
    pub address: u64,
    /// Number of dimensions, 1 to 5.
    pub rank: usize,
    /// Element type.
    pub element: ElementKind,
    /// 0 none, 1 of 16 bytes, 2 of 32 bytes.
    pub interleave: u8,
    /// 0 none, 1 32 bytes, 2 64 bytes, 3 128 bytes, 4 96 bytes.
    pub swizzle: u8,
    /// For 128 bytes: 0 16 bytes, 1 32 bytes, 2 32 bytes with a flip of 8, 3 64 bytes.
    pub atomicity: u8,
    /// Elements outside the tensor read as NaN, not zero.
    pub nan_fill: bool,
    /// The parameters of im2col mode, which replace the box.
    pub im2col: Option<Im2col>,
    /// Size of the box in elements, by dimension.
    pub bounds: [u16; 5],
    /// Traversal strides, by dimension.
    pub steps: [u16; 5],
    /// Size of the tensor in elements, by dimension.
    pub sizes: [u64; 5],
    /// Strides in bytes of dimensions 1 to 4.
    pub strides: [u64; 4],
}

/// What an im2col map has instead of a box.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Im2col {
    /// Channels copied per pixel.
    pub channels: u16,
    /// Number of pixels copied.
    pub pixels: u16,
    /// Lower corner of the bounding box, in dimensions 1 to 3.
    pub lower: [i16; 3],
    /// Upper corner, relative to the end of the dimension.
    pub upper: [i16; 3],
}

/// The elements that an instruction addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// The box at these coordinates.
    Tile([i32; 5]),
    /// A column, and four rows of a two-dimensional tensor.
    Rows(i32, [i32; 4]),
    /// Pixels starting at a base, with offsets in dimensions 1 to 3.
    Pixels([i32; 5], [u16; 3]),
    /// Pixels along dimension 1 only.
    Wide([i32; 5], Halo),
}

/// The additional parameters of an access along one dimension (sections 5.5.5.3 and 5.5.5.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Halo {
    /// Number of halo pixels, after all others or after every 32.
    pub pixels: u16,
    /// Offset of the bounding box and of the first pixel.
    pub offset: i16,
    /// `im2col::w::128`: 128 pixels, and a halo after every 32.
    pub grouped: bool,
}

/// Elements that are contiguous in both memories and inside the tensor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// Byte offset in shared memory, before swizzling.
    pub shared: usize,
    /// Address in global memory.
    pub global: u64,
    /// Number of units of packing.
    pub units: usize,
}

/// The memory that an access touches.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// Bytes written to or read from shared memory.
    pub bytes: usize,
    /// Bytes that count towards the transaction: elements without their padding.
    pub counted: usize,
    /// All parts inside the tensor.
    pub spans: Vec<Span>,
}

impl TensorMap {
    /// Creates a tiled map from the arguments of `cuTensorMapEncodeTiled`, numbered as in CUDA's enumerations. Sizes,
    /// box and traversal strides have `rank` elements, `strides` one less. The error names the invalid argument and
    /// says why.
    #[allow(clippy::too_many_arguments)]
    pub fn tiled(
        data_type: u32,
        address: u64,
        sizes: &[u64],
        strides: &[u64],
        bounds: &[u32],
        steps: &[u32],
        interleave: u32,
        swizzle: u32,
        fill: u32,
    ) -> Result<TensorMap, String> {
        let mut map = TensorMap::common(data_type, address, sizes, strides, steps, interleave, swizzle, fill)?;
        if bounds.len() != map.rank || bounds.iter().any(|b| *b == 0 || *b > 256) {
            return Err(format!("the box {bounds:?} must have one size between 1 and 256 per dimension"));
        }
        for (to, from) in map.bounds.iter_mut().zip(bounds) {
            *to = *from as u16;
        }
        let (per, _, shared) = map.element.unit().unwrap_or((1, 1, 1));
        let inner = u64::from(bounds[0]) / per * shared as u64;
        if interleave == 0 && !inner.is_multiple_of(16) {
            return Err(format!("the box's rows have {inner} bytes, which must be a multiple of 16"));
        }
        let span = [u64::MAX, 32, 64, 128, 96][usize::from(map.swizzle)];
        if interleave == 0 && inner > span {
            return Err(format!("the box's rows have {inner} bytes, more than the {span} of the swizzling mode"));
        }
        Ok(map)
    }

    /// Creates an im2col map from the arguments of `cuTensorMapEncodeIm2col`; the corners have `rank - 2` elements.
    #[allow(clippy::too_many_arguments)]
    pub fn im2col(
        data_type: u32,
        address: u64,
        sizes: &[u64],
        strides: &[u64],
        (lower, upper): (&[i32], &[i32]),
        (channels, pixels): (u32, u32),
        steps: &[u32],
        interleave: u32,
        swizzle: u32,
        fill: u32,
    ) -> Result<TensorMap, String> {
        let mut map = TensorMap::common(data_type, address, sizes, strides, steps, interleave, swizzle, fill)?;
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

    #[allow(clippy::too_many_arguments)]
    fn common(
        data_type: u32,
        address: u64,
        sizes: &[u64],
        strides: &[u64],
        steps: &[u32],
        interleave: u32,
        swizzle: u32,
        fill: u32,
    ) -> Result<TensorMap, String> {
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

    /// Encodes the map as 128 bytes.
    pub fn encode(&self) -> [u8; SIZE] {
        let mut out = [0; SIZE];
        let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &self.address.to_le_bytes());
        let mode = u8::from(self.im2col.is_some());
        let small = [
            self.rank.wrapping_sub(1) as u8,
            self.element.0,
            self.interleave,
            self.swizzle,
            self.atomicity,
            self.nan_fill.into(),
            mode,
        ];
        put(8, &small);
        for i in 0..5 {
            put(16 + 2 * i, &self.bounds[i].to_le_bytes());
            put(26 + 2 * i, &self.steps[i].to_le_bytes());
            put(56 + 8 * i, &self.sizes[i].to_le_bytes());
        }
        for (i, s) in self.strides.iter().enumerate() {
            put(96 + 8 * i, &s.to_le_bytes());
        }
        if let Some(m) = self.im2col {
            put(36, &m.channels.to_le_bytes());
            put(38, &m.pixels.to_le_bytes());
            for i in 0..3 {
                put(40 + 2 * i, &m.lower[i].to_le_bytes());
                put(46 + 2 * i, &m.upper[i].to_le_bytes());
            }
        }
        out
    }

    /// Decodes 128 bytes; the error names the invalid field.
    pub fn decode(bytes: &[u8; SIZE]) -> Result<TensorMap, String> {
        let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let long = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let [rank, element, interleave, swizzle, atomicity, fill, mode] = std::array::from_fn(|i| bytes[8 + i]);
        let corner = |at: usize| std::array::from_fn(|i| half(at + 2 * i) as i16);
        let im2col = Im2col { channels: half(36), pixels: half(38), lower: corner(40), upper: corner(46) };
        let map = TensorMap {
            address: long(0),
            rank: usize::from(rank) + 1,
            element: ElementKind(element),
            interleave,
            swizzle,
            atomicity,
            nan_fill: fill == 1,
            im2col: (mode == 1).then_some(im2col),
            bounds: std::array::from_fn(|i| half(16 + 2 * i)),
            steps: std::array::from_fn(|i| half(26 + 2 * i).max(1)),
            sizes: std::array::from_fn(|i| long(56 + 8 * i)),
            strides: std::array::from_fn(|i| long(96 + 8 * i)),
        };
        let known = rank < 5 && map.element.unit().is_some() && interleave < 3 && swizzle < 5 && atomicity < 4;
        if !known || fill > 1 || mode > 1 || map.bounds[..map.rank].contains(&0) && mode == 0 {
            return Err("these 128 bytes are not a tensor map".into());
        }
        Ok(map)
    }

    /// Resolves an access of `rank` dimensions. The error says what is invalid, or unsupported if the flag is set.
    pub fn plan(&self, rank: usize, access: Access) -> Result<Plan, (String, bool)> {
        let wrong = |what: String| Err((what, false));
        if rank != self.rank {
            return wrong(format!("the instruction has {rank} dimensions, but its tensor map has {}", self.rank));
        }
        let mut rows = Vec::new();
        let inner = match (access, self.im2col) {
            (Access::Tile(at), None) => {
                self.tile_rows(at, &mut rows);
                u64::from(self.bounds[0].div_ceil(self.steps[0]))
            }
            (Access::Rows(column, list), None) if rank == 2 => {
                rows.extend(list.map(|r| [column.into(), r.into(), 0, 0, 0]));
                self.bounds[0].into()
            }
            (Access::Pixels(at, offsets), Some(im2col)) => {
                self.pixels(at, offsets, im2col, &mut rows);
                im2col.channels.into()
            }
            (Access::Wide(at, halo), Some(im2col)) => {
                self.wide_pixels(at, halo, im2col, &mut rows)?;
                im2col.channels.into()
            }
            (Access::Tile(_) | Access::Rows(..), _) => {
                return wrong("a tile copy uses an im2col tensor map".into());
            }
            (Access::Pixels(..) | Access::Wide(..), None) => {
                return wrong("an im2col copy uses a tiled tensor map".into());
            }
        };
        let (per, global, shared) = self.element.unit().unwrap_or((1, 1, 1));
        if !inner.is_multiple_of(per) {
            return wrong(format!("rows of {inner} elements, which must be a multiple of {per}"));
        }
        let units = (inner / per) as usize;
        let mut plan =
            Plan { bytes: rows.len() * units * shared, counted: rows.len() * units * global, spans: Vec::new() };
        for (index, row) in rows.iter().enumerate() {
            let outside = (1..self.rank).any(|d| row[d] < 0 || row[d] as u64 >= self.sizes[d]);
            if outside {
                continue;
            }
            let first = (-row[0]).clamp(0, inner as i64) / per as i64;
            let last = (self.sizes[0] as i64 - row[0]).clamp(0, inner as i64) / per as i64;
            if first >= last {
                continue;
            }
            let offset =
                (1..self.rank).fold(0u64, |sum, d| sum.wrapping_add((row[d] as u64).wrapping_mul(self.strides[d - 1])));
            let column = (row[0] / per as i64 + first).wrapping_mul(global as i64) as u64;
            plan.spans.push(Span {
                shared: (index * units + first as usize) * shared,
                global: self.address.wrapping_add(offset).wrapping_add(column),
                units: (last - first) as usize,
            });
        }
        Ok(plan)
    }

    /// First elements of the rows of a box.
    fn tile_rows(&self, at: [i32; 5], rows: &mut Vec<[i64; 5]>) {
        let counts: [u64; 5] = std::array::from_fn(|d| match d {
            0 => 1,
            d if d < self.rank => self.bounds[d].div_ceil(self.steps[d]).into(),
            _ => 1,
        });
        for i in 0..counts.iter().product::<u64>() {
            let mut rest = i;
            let mut row = at.map(i64::from);
            for d in 1..self.rank {
                row[d] += (rest % counts[d]) as i64 * i64::from(self.steps[d]);
                rest /= counts[d];
            }
            rows.push(row);
        }
    }

    /// First elements of the pixels: W runs fastest and wraps to its lower corner, then H, D and N (section 5.5.4).
    fn pixels(&self, at: [i32; 5], offsets: [u16; 3], m: Im2col, rows: &mut Vec<[i64; 5]>) {
        let spatial = self.rank - 2;
        let mut base = at.map(i64::from);
        for _ in 0..m.pixels {
            let mut row = base;
            (0..spatial).for_each(|s| row[s + 1] += i64::from(offsets[s]));
            rows.push(row);
            for d in 1..self.rank {
                if d > spatial {
                    base[d] += 1;
                    break;
                }
                base[d] += i64::from(self.steps[d]);
                let last = self.sizes[d] as i64 - 1 + i64::from(m.upper[d - 1]);
                if base[d] <= last {
                    break;
                }
                base[d] = m.lower[d - 1].into();
            }
        }
    }

    /// First elements of pixels along W, wrapping to its lower corner in the next image: the bounding box is one pixel
    /// high and deep (section 5.5.5). A halo continues along W. Only figures of the manual define its contents beyond
    /// the box, so it must lie inside.
    fn wide_pixels(&self, at: [i32; 5], halo: Halo, m: Im2col, rows: &mut Vec<[i64; 5]>) -> Result<(), (String, bool)> {
        let (count, group) = if halo.grouped { (128, 32) } else { (m.pixels, m.pixels) };
        let (offset, step, images) = (i64::from(halo.offset), i64::from(self.steps[1]), self.rank - 1);
        let first = i64::from(m.lower[0]) + offset;
        let last = self.sizes[1] as i64 - 1 + i64::from(m.upper[0]) + offset;
        let mut base = at.map(i64::from);
        base[1] += offset;
        for i in 1..=count {
            rows.push(base);
            if i % group == 0 {
                for h in 1..=i64::from(halo.pixels) {
                    let mut row = base;
                    row[1] += h * step;
                    if row[1] > last {
                        let what = format!("a halo of {} pixels across the edge of the bounding box", halo.pixels);
                        return Err((what, true));
                    }
                    rows.push(row);
                }
            }
            base[1] += step;
            if base[1] > last {
                base[1] = first;
                base[images] += 1;
            }
        }
        Ok(())
    }

    /// The fill pattern for elements outside the tensor.
    pub fn fill(&self, bytes: usize) -> Vec<u8> {
        let pattern: &[u8] = if self.nan_fill { self.element.nan() } else { &[0] };
        pattern.iter().copied().cycle().take(bytes).collect()
    }

    /// The swizzled address of 16 bytes of shared memory (section 5.5.7), and whether their halves are exchanged.
    pub fn exchange(&self, address: u64) -> (u64, bool) {
        let line = address >> 7;
        match (self.swizzle, self.atomicity) {
            (0, _) => (address, false),
            (1 | 4, _) => (address ^ (line & 1) << 4, false),
            (2, _) => (address ^ (line & 3) << 4, false),
            (_, 0) => (address ^ (line & 7) << 4, false),
            (_, 1) => (address ^ (line & 3) << 5, false),
            (_, 2) => (address ^ (line & 3) << 5, line & 1 == 1),
            _ => (address ^ (line & 1) << 6, false),
        }
    }
}

/// The field of `tensormap.replace`: first byte, size, and the largest ordinal.
pub fn field(has: impl Fn(Mod) -> bool) -> Option<(usize, usize, u64)> {
    let fields = [
        (Mod::GlobalAddress, (0, 8, 0)),
        (Mod::Rank, (8, 1, 0)),
        (Mod::Elemtype, (9, 1, 0)),
        (Mod::InterleaveLayout, (10, 1, 0)),
        (Mod::SwizzleMode, (11, 1, 0)),
        (Mod::SwizzleAtomicity, (12, 1, 0)),
        (Mod::FillMode, (13, 1, 0)),
        (Mod::BoxDim, (16, 2, 4)),
        (Mod::ElementStride, (26, 2, 4)),
        (Mod::GlobalDim, (56, 8, 4)),
        // Maps have four strides. ptxas accepts ordinal 4 for `tcgen05`, which is past the end of the map.
        (Mod::GlobalStride, (96, 8, 4)),
    ];
    fields.into_iter().find(|(m, _)| has(*m)).map(|(_, f)| f)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn halves(sizes: &[u64], bounds: &[u32]) -> TensorMap {
        let strides: Vec<u64> = (1..sizes.len()).map(|d| 2 * sizes[..d].iter().product::<u64>()).collect();
        TensorMap::tiled(6, 4096, sizes, &strides, bounds, &vec![1; sizes.len()], 0, 0, 0).unwrap()
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        let mut map = halves(&[64, 9, 14, 64], &[8, 4, 2, 1]);
        assert_eq!(TensorMap::decode(&map.encode()), Ok(map.clone()));
        map.im2col = Some(Im2col { channels: 8, pixels: 64, lower: [-1, -1, 0], upper: [-1, -1, 0] });
        assert_eq!(TensorMap::decode(&map.encode()), Ok(map));
        assert!(TensorMap::decode(&[0xff; SIZE]).is_err());
        assert!(TensorMap::tiled(6, 8, &[64], &[], &[8], &[1], 0, 0, 0).unwrap_err().contains("multiple of 16"));
    }

    #[test]
    fn a_box_across_the_edge_leaves_out_what_lies_outside() {
        // 16 by 3 halves; a box of 8 by 2 at (12, -1): only row 0, columns 12 to 15.
        let plan = halves(&[16, 3], &[8, 2]).plan(2, Access::Tile([12, -1, 0, 0, 0])).unwrap();
        assert_eq!(plan.bytes, 32);
        assert_eq!(plan.spans, [Span { shared: 16, global: 4096 + 24, units: 4 }]);
        assert!(halves(&[16, 3], &[8, 2]).plan(3, Access::Tile([0; 5])).is_err());
    }

    /// Example 2 of section 5.5.4.1: positions from 0 to size - 3 along W and H, read at an offset of 2.
    #[test]
    fn pixels_wrap_at_the_corners() {
        let mut map = halves(&[64, 9, 14, 64], &[8, 1, 1, 1]);
        map.im2col = Some(Im2col { channels: 8, pixels: 64, lower: [0, 0, 0], upper: [-2, -2, 0] });
        let plan = map.plan(4, Access::Pixels([0, 4, 7, 7, 0], [2, 2, 0])).unwrap();
        assert_eq!(plan.bytes, 64 * 16);
        let at = |w: u64, h: u64, n: u64| 4096 + 2 * 64 * (w + 9 * (h + 14 * n));
        // W from 4 to 6, then from 0 on the next row; after row 11, row 0 of the next image.
        let (mut w, mut h, mut n) = (4, 7, 7);
        for span in &plan.spans {
            assert_eq!(span.global, at(w + 2, h + 2, n), "({w}, {h}, {n})");
            w += 1;
            if w > 6 {
                (w, h) = (0, h + 1);
            }
            if h > 11 {
                (h, n) = (0, n + 1);
            }
        }
        assert_eq!(plan.spans.len(), 64);
    }

    #[test]
    fn swizzling_as_in_the_tables_of_the_manual() {
        let mut map = halves(&[64, 8], &[64, 8]);
        for (mode, atomicity, row, chunks) in [
            (1, 0, 1, [1, 0, 3, 2, 5, 4, 7, 6]),
            (2, 0, 3, [3, 2, 1, 0, 7, 6, 5, 4]),
            (3, 0, 5, [5, 4, 7, 6, 1, 0, 3, 2]),
            (3, 1, 1, [2, 3, 0, 1, 6, 7, 4, 5]),
            (3, 3, 1, [4, 5, 6, 7, 0, 1, 2, 3]),
        ] {
            (map.swizzle, map.atomicity) = (mode, atomicity);
            for (at, source) in chunks.iter().enumerate() {
                assert_eq!(map.exchange(row * 128 + source * 16).0, row * 128 + at as u64 * 16, "mode {mode}");
            }
        }
    }
}
