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

mod create;
mod plan;
#[cfg(test)]
mod tests;

pub use create::Tensor;
pub use plan::{Access, Halo, Plan, Refusal, Span};

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

    /// Changes elements on their way from global to shared memory: `.tf32` rounds to the nearest even number of ten bits of fraction, `.ftz`
    /// flushes subnormal ones to zeros of their sign. Infinities and NaNs stay.
    pub fn load(self, row: &mut [u8]) {
        let (rounds, flushes) = (matches!(self.0, 11 | 12), matches!(self.0, 8 | 12));
        if !rounds && !flushes {
            return;
        }
        const EXPONENT: u32 = 0x7f80_0000;
        let (elements, _) = row.as_chunks_mut::<4>();
        for element in elements {
            let mut bits = u32::from_le_bytes(*element);
            if flushes && bits & EXPONENT == 0 {
                bits &= 1 << 31;
            }
            if rounds && bits & EXPONENT != EXPONENT {
                bits = (bits + 0xfff + (bits >> 13 & 1)) & !0x1fff;
            }
            *element = bits.to_le_bytes();
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

/// The counterpart of the box in an im2col map.
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

impl TensorMap {
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
