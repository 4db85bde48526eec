//! Matrices in shared memory, as addressed by 64-bit descriptors (manual, sections 9.7.15.5.1.2, 9.7.16.3 and
//! 9.7.16.4.1).
//!
//! The unit is 16 bytes: adjacent elements along the *major* axis (K, or M and N). Groups of eight units extend along
//! the other axis; the two strides of the descriptor are the distances between groups. Swizzling permutes the units
//! within 128 bytes (64, 32): address bits 4 and up are combined by exclusive or with bits 7 and up.

/// The swizzling mode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Swizzle {
    /// No swizzling.
    None,
    /// Within 32 bytes.
    B32,
    /// Within 64 bytes.
    B64,
    /// Within 128 bytes.
    B128,
    /// Within 128 bytes, in pieces of 32 bytes.
    B128By32,
}

/// A decoded matrix descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Descriptor {
    /// Byte address in the CTA's shared window.
    pub start: u64,
    /// Leading dimension byte offset.
    pub leading: u64,
    /// Stride dimension byte offset.
    pub stride: u64,
    /// The row of 128 bytes in which the swizzling pattern starts.
    pub base: u64,
    /// The swizzling mode.
    pub swizzle: Swizzle,
    /// Whether `leading` is the address of the second half of rows that exceed 128 bytes.
    pub absolute: bool,
}

/// The mask of shared addresses in descriptors: 18 bits.
const ADDRESS: u64 = 0x3_ffff;

impl Descriptor {
    fn common(bits: u64, swizzle: Swizzle) -> Descriptor {
        let field = |at: u32| (bits >> at & 0x3fff) << 4;
        let base = bits >> 49 & 7;
        Descriptor { start: field(0), leading: field(16), stride: field(32), base, swizzle, absolute: false }
    }

    /// Decodes a descriptor of `wgmma`.
    pub fn wgmma(bits: u64) -> Descriptor {
        let swizzle = match bits >> 62 {
            0 => Swizzle::None,
            1 => Swizzle::B128,
            2 => Swizzle::B64,
            _ => Swizzle::B32,
        };
        Descriptor::common(bits, swizzle)
    }

    /// Decodes a descriptor of `tcgen05`; `None` if its mode is invalid.
    pub fn tcgen05(bits: u64) -> Option<Descriptor> {
        let swizzle = match bits >> 61 {
            0 => Swizzle::None,
            1 => Swizzle::B128By32,
            2 => Swizzle::B128,
            4 => Swizzle::B64,
            6 => Swizzle::B32,
            _ => return None,
        };
        Some(Descriptor { absolute: bits >> 52 & 1 == 1, ..Descriptor::common(bits, swizzle) })
    }

    /// Units in a swizzled row.
    fn width(&self) -> u64 {
        match self.swizzle {
            Swizzle::None => 1,
            Swizzle::B32 => 2,
            Swizzle::B64 => 4,
            Swizzle::B128 | Swizzle::B128By32 => 8,
        }
    }

    /// The address of unit `unit` along the major axis, at index `across` of the other axis.
    pub fn address(&self, major_is_k: bool, unit: usize, across: usize) -> u64 {
        let (unit, across) = (unit as u64, across as u64);
        let width = self.width();
        let rows = if self.swizzle == Swizzle::B128By32 && !major_is_k { 4 } else { 8 };
        let (row, group) = (across % rows, across / rows);
        let start = self.start;
        let linear = match (self.swizzle, major_is_k) {
            (Swizzle::None, true) => start + row * 16 + group * self.stride + unit * self.leading,
            (Swizzle::None, false) => start + row * 16 + group * self.leading + unit * self.stride,
            (_, true) => {
                let rows = row * 16 * width + group * self.stride;
                // With absolute addresses units beyond the row of 128 bytes lie in the second chunk.
                match (start % 128 / 16 + unit).checked_sub(8).filter(|_| self.absolute) {
                    Some(over) => self.leading + rows + over * 16,
                    None => start + rows + unit * 16,
                }
            }
            (_, false) => {
                start + unit % width * 16 + unit / width * self.leading + row * 16 * width + group * self.stride
            }
        };
        self.exchange(linear & ADDRESS)
    }

    /// The address after swizzling.
    fn exchange(&self, address: u64) -> u64 {
        let phase = (address >> 7).wrapping_sub(self.base);
        address
            ^ match self.swizzle {
                Swizzle::None => 0,
                Swizzle::B32 => (phase & 1) << 4,
                Swizzle::B64 => (phase & 3) << 4,
                Swizzle::B128 => (phase & 7) << 4,
                Swizzle::B128By32 => (phase & 3) << 5,
            }
    }

    /// Reads `across.len()` rows (or columns) of `depth` elements along K. An element of a unit takes `bits` bits; a
    /// unit has `per_unit` elements. `put` receives runs of elements along the major axis, with the index across and
    /// the depth of the first one.
    pub fn read<E>(
        &self,
        major_is_k: bool,
        (bits, per_unit): (u32, usize),
        across: std::ops::Range<usize>,
        depth: usize,
        memory: &mut impl FnMut(u64) -> Result<[u8; 16], E>,
        mut put: impl FnMut(usize, usize, &[u32]),
    ) -> Result<(), E> {
        let (majors, minors) = if major_is_k { (0..depth, across.clone()) } else { (across.clone(), 0..depth) };
        for minor in minors {
            for unit in majors.start / per_unit..majors.end.div_ceil(per_unit) {
                let elements = elements(memory(self.address(major_is_k, unit, minor))?, bits);
                let first = unit * per_unit;
                let (from, to) = (first.max(majors.start), (first + per_unit).min(majors.end));
                let elements = &elements[from - first..to - first];
                match major_is_k {
                    true => put(minor, from, elements),
                    false => put(from, minor, elements),
                }
            }
        }
        Ok(())
    }
}

/// The elements of a unit; only those that fit into 16 bytes are meaningful.
fn elements(unit: [u8; 16], bits: u32) -> [u32; 128] {
    let mut found = [0; 128];
    let bytes = unit.as_chunks::<2>().0;
    match bits {
        8 => found.iter_mut().zip(unit).for_each(|(f, b)| *f = b.into()),
        16 => found.iter_mut().zip(bytes).for_each(|(f, b)| *f = u16::from_le_bytes(*b).into()),
        32 => found.iter_mut().zip(unit.as_chunks::<4>().0).for_each(|(f, b)| *f = u32::from_le_bytes(*b)),
        _ => {
            let all = u128::from_le_bytes(unit);
            let fit = (128 / bits) as usize;
            (0..fit).for_each(|i| found[i] = (all >> (i as u32 * bits)) as u32 & ((1 << bits) - 1));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encode(start: u64, leading: u64, stride: u64, mode: u64) -> u64 {
        start >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | mode << 62
    }

    /// The examples of section 9.7.15.5.1.2.1.3: offsets of the layouts as written there, times the size of an element.
    #[test]
    fn canonical_layouts_of_the_manual() {
        // K major, no swizzling, tf32: ((8,2),(4,4)):((4,32),(1,64))
        let d = Descriptor::wgmma(encode(0, 64 * 4, 32 * 4, 0));
        for (row, unit) in [(0, 0), (1, 0), (8, 0), (9, 3), (15, 2)] {
            assert_eq!(d.address(true, unit, row), 4 * (row % 8 * 4 + row / 8 * 32 + unit * 64) as u64);
        }
        // MN major, no swizzling, bf16: ((8,1,2),(8,2)):((1,8,64),(8,128))
        let d = Descriptor::wgmma(encode(0, 128 * 2, 64 * 2, 0));
        for (k, unit) in [(0, 0), (1, 0), (8, 0), (9, 1), (15, 1)] {
            assert_eq!(d.address(false, unit, k), 2 * (unit * 64 + k % 8 * 8 + k / 8 * 128) as u64);
        }
        // MN major, 64 bytes, bf16: Swizzle<2,4,3> o ((8,4,2),(8,2)):((1,8,256),(32,512))
        let d = Descriptor::wgmma(encode(0, 256 * 2, 512 * 2, 2));
        for (k, unit) in [(0, 0), (3, 1), (8, 5), (9, 7), (15, 2)] {
            let plain = 2 * (unit % 4 * 8 + unit / 4 * 256 + k % 8 * 32 + k / 8 * 512) as u64;
            assert_eq!(d.address(false, unit, k), plain ^ (plain >> 7 & 3) << 4);
        }
        // K major, 32 bytes, tf32: Swizzle<1,4,3> o ((8,2),(4,4)):((8,64),(1,4))
        let d = Descriptor::wgmma(encode(0, 16, 64 * 4, 3));
        for (row, unit) in [(0, 0), (5, 1), (8, 0), (13, 1)] {
            let plain = 4 * (row % 8 * 8 + row / 8 * 64 + unit * 4) as u64;
            assert_eq!(d.address(true, unit, row), plain ^ (plain >> 7 & 1) << 4);
        }
    }

    #[test]
    fn a_start_inside_the_pattern_keeps_its_phase() {
        let at = |start| Descriptor::wgmma(encode(start, 16, 1024, 1));
        // The next 32 bytes of K of the same tile.
        assert_eq!(at(1024 + 32).address(true, 0, 3), at(1024).address(true, 2, 3));
        // A pattern that begins at 256 instead of a multiple of 1024.
        let moved = Descriptor { base: 2, ..at(256) };
        assert_eq!(moved.address(true, 1, 5), at(0).address(true, 1, 5) + 256);
    }
}
