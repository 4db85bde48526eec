//! Texel formats, and conversion to and from registers (CUDA C++ Programming Guide, "Texture Object API": read modes;
//! manual, section 9.7.11.2: `sust.p`).

use crate::sem::fp;

/// The interpretation of a channel's bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Scalar {
    /// Unsigned integers.
    Unsigned,
    /// Signed integers.
    Signed,
    /// Floats of 16 or 32 bits.
    Float,
    /// Unsigned normalized integers in [0, 1].
    Unorm,
    /// Signed normalized integers in [-1, 1]; the smallest two values are -1.
    Snorm,
}

/// The format of a texel: channels of one type, red first.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Format {
    /// Interpretation of a channel's bits.
    pub scalar: Scalar,
    /// Bits per channel: 8, 16 or 32.
    pub bits: u8,
    /// Number of channels: 1, 2 or 4.
    pub channels: u8,
}

/// A texel in registers: bits of red, green, blue, alpha. Channels that an image lacks read as 0, alpha as 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Texel {
    /// The bits are single-precision floats rather than integers.
    pub float: bool,
    /// Bits by channel.
    pub channels: [u32; 4],
}

impl Texel {
    /// A texel of floats.
    #[inline]
    pub fn floats(v: [f32; 4]) -> Texel {
        let [r, g, b, a] = v;
        Texel { float: true, channels: [r.to_bits(), g.to_bits(), b.to_bits(), a.to_bits()] }
    }

    /// The channels reinterpreted as floats.
    pub fn as_floats(&self) -> [f32; 4] {
        self.channels.map(f32::from_bits)
    }

    /// The texel with linear colors, if it is one of floats in sRGB (IEC 61966-2-1). Alpha is linear in both.
    pub fn to_linear(&self) -> Texel {
        let [colors @ .., alpha] = self.as_floats();
        let [r, g, b] = colors.map(|c| match f64::from(c) {
            c if c <= 0.04045 => c / 12.92,
            c => ((c + 0.055) / 1.055).powf(2.4),
        });
        Texel::floats([r as f32, g as f32, b as f32, alpha])
    }
}

impl Format {
    /// Whether the format is valid: 8, 16 or 32 bits (floats 16 or 32, normalized 8 or 16) and 1, 2 or 4 channels.
    pub fn exists(&self) -> bool {
        let widths: &[u8] = match self.scalar {
            Scalar::Unsigned | Scalar::Signed => &[8, 16, 32],
            Scalar::Float => &[16, 32],
            Scalar::Unorm | Scalar::Snorm => &[8, 16],
        };
        widths.contains(&self.bits) && matches!(self.channels, 1 | 2 | 4)
    }

    /// Size of a texel in bytes.
    pub const fn bytes(&self) -> u32 {
        self.bits as u32 / 8 * self.channels as u32
    }

    /// The same bits read as normalized integers, for integers of at most 16 bits.
    pub fn normalized(self) -> Format {
        let scalar = match self.scalar {
            Scalar::Unsigned if self.bits <= 16 => Scalar::Unorm,
            Scalar::Signed if self.bits <= 16 => Scalar::Snorm,
            other => other,
        };
        Format { scalar, ..self }
    }

    /// Whether its texels are read as floats.
    pub fn is_float(&self) -> bool {
        !matches!(self.scalar, Scalar::Unsigned | Scalar::Signed)
    }

    /// Decodes a texel.
    pub fn decode(&self, bytes: &[u8; 16]) -> Texel {
        let float = self.is_float();
        let mut channels = [0, 0, 0, if float { 1.0f32.to_bits() } else { 1 }];
        for (k, channel) in channels.iter_mut().enumerate().take(self.channels.into()) {
            *channel = self.decode_one(self.raw(bytes, k));
        }
        Texel { float, channels }
    }

    /// The first `C` channels of a texel of floats.
    #[inline]
    pub fn floats<const C: usize>(&self, bytes: &[u8; 16]) -> [f32; C] {
        let mut values = [0.0; C];
        for (k, value) in values.iter_mut().enumerate() {
            *value = f32::from_bits(self.decode_one(self.raw(bytes, k)));
        }
        values
    }

    /// The bits of a channel, zero-extended.
    #[inline]
    fn raw(&self, bytes: &[u8; 16], channel: usize) -> u32 {
        match self.bits {
            8 => bytes[channel].into(),
            16 => u16::from_le_bytes([bytes[2 * channel], bytes[2 * channel + 1]]).into(),
            _ => {
                let at = 4 * channel;
                u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
            }
        }
    }

    /// A channel in a register, from its bits, zero-extended.
    #[inline(always)]
    pub(super) fn decode_one(&self, raw: u32) -> u32 {
        let up = 32 - u32::from(self.bits);
        let signed = (raw << up) as i32 >> up;
        match self.scalar {
            Scalar::Unsigned => raw,
            Scalar::Signed => signed as u32,
            Scalar::Float if self.bits == 16 => fp::from_f16(raw as u16).to_bits(),
            Scalar::Float => raw,
            // A quotient of two integers below 2^16, rounded once.
            Scalar::Unorm => (raw as f32 / (u32::MAX >> up) as f32).to_bits(),
            Scalar::Snorm => (signed as f32 / (u32::MAX >> up >> 1) as f32).max(-1.0).to_bits(),
        }
    }

    /// Encodes a texel as `sust.p` does: the values are floats for [`Scalar::Float`] and normalized channels, else
    /// integers, which saturate to the channel's width. Missing values are zero.
    pub fn encode(&self, values: &[u32]) -> [u8; 16] {
        let mut bytes = [0; 16];
        for k in 0..usize::from(self.channels) {
            let raw = self.encode_one(values.get(k).copied().unwrap_or(0)).to_le_bytes();
            let n = usize::from(self.bits / 8);
            bytes[k * n..(k + 1) * n].copy_from_slice(&raw[..n]);
        }
        bytes
    }

    fn encode_one(&self, value: u32) -> u32 {
        let up = 32 - u32::from(self.bits);
        let (most, most_signed) = (u32::MAX >> up, (u32::MAX >> up >> 1) as i32);
        let x = f32::from_bits(value);
        // Rounds to nearest even, in double precision, where the product is exact. NaN becomes 0.
        let fraction = |low: f32, most: f64| fp::rint64(f64::from(x.clamp(low, 1.0)) * most);
        match self.scalar {
            Scalar::Unsigned => value.min(most),
            Scalar::Signed => (value as i32).clamp(-most_signed - 1, most_signed) as u32,
            Scalar::Float if self.bits == 16 => fp::to_f16(x).into(),
            Scalar::Float => value,
            Scalar::Unorm => fraction(0.0, most.into()) as u32,
            Scalar::Snorm => fraction(-1.0, most_signed.into()) as i32 as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn format(scalar: Scalar, bits: u8) -> Format {
        Format { scalar, bits, channels: 1 }
    }

    #[test]
    fn fractions_of_every_byte() {
        for raw in 0..=255u8 {
            let mut bytes = [0; 16];
            bytes[0] = raw;
            let unorm = format(Scalar::Unorm, 8).decode(&bytes);
            assert_eq!(unorm.channels, [(f32::from(raw) / 255.0).to_bits(), 0, 0, 1.0f32.to_bits()]);
            assert_eq!(format(Scalar::Unorm, 8).encode(&unorm.channels)[0], raw);
            let snorm = format(Scalar::Snorm, 8).decode(&bytes).as_floats()[0];
            assert_eq!(snorm, (f32::from(raw as i8) / 127.0).max(-1.0));
        }
    }

    #[test]
    fn colors_in_srgb_become_linear() {
        let linear = Texel::floats([0.0, 1.0, 0.5, 0.5]).to_linear().as_floats();
        assert_eq!((linear[0], linear[1], linear[3]), (0.0, 1.0, 0.5));
        // IEC 61966-2-1: ((0.5 + 0.055) / 1.055) ^ 2.4 = 0.214041140..., and C / 12.92 below 0.04045.
        assert!((linear[2] - 0.214_041_14).abs() < 1e-7);
        assert_eq!(
            Texel::floats([0.04, 0.0, 0.0, 0.0]).to_linear().as_floats()[0],
            (f64::from(0.04f32) / 12.92) as f32
        );
    }

    #[test]
    fn stores_saturate_and_round() {
        let one = |f: Format, v: u32| f.encode(&[v])[..4].to_vec();
        assert_eq!(one(format(Scalar::Unsigned, 8), 300), [255, 0, 0, 0]);
        assert_eq!(one(format(Scalar::Signed, 8), -300i32 as u32), [0x80, 0, 0, 0]);
        assert_eq!(one(format(Scalar::Unorm, 8), 0.5f32.to_bits()), [128, 0, 0, 0], "127.5 to even");
        assert_eq!(one(format(Scalar::Unorm, 16), 7.0f32.to_bits()), [0xff, 0xff, 0, 0]);
        assert_eq!(one(format(Scalar::Snorm, 8), (-1.0f32).to_bits()), [0x81, 0, 0, 0]);
        assert_eq!(one(format(Scalar::Unorm, 8), f32::NAN.to_bits()), [0, 0, 0, 0]);
        assert_eq!(one(format(Scalar::Float, 16), 1.0f32.to_bits()), [0, 0x3c, 0, 0]);
    }
}
