//! `cvt` with packed types: pairs of halves, and the formats of eight, six and four bits (manual, section 9.7.9.21; formats of
//! sections 5.2.3 and 5.2.4).
//!
//! A conversion takes its elements from the highest to the lowest: one from each source operand, or the parts of one
//! packed source. Where the manual is silent, CUDA's headers are followed: `.ue8m0` and `.ue5m3` encode magnitudes, and
//! overflow of `.ue5m3` gives NaN unless `.satfinite` or `.rz` says otherwise. With `.rs`, the random bits are added at
//! the top of the discarded bits; of four elements, two share a half of `rbits`, and the first of them takes its bits
//! in reverse order (as others measured on sm_100).
//!
//! A scale multiplies on conversion from a small format and divides on conversion to it. With `.scaled::n1::ue8m0`, one
//! scale applies to both elements, and subnormal sources count as zero.

use super::{
    PureFn, fp,
    map::lift,
    mode::{rnd, ty},
    soft::{self, Exact, Format, Num, Rnd},
};
use crate::{LANES, Row, lanes};
use margay_isa::{Mod, Type, Variant};

/// The format of an element.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Element {
    Float(Format),
    /// A power of two: an exponent with a bias of 127; all ones is NaN.
    Ue8m0,
    /// Two's complement, in units of 2^-6.
    S2f6,
    /// Five bits of exponent, three of mantissa, no sign.
    Ue5m3,
}

/// The elements of a packed type: their format, their number, and the bits of each.
#[derive(Clone, Copy)]
struct Layout {
    element: Element,
    count: usize,
    bits: u32,
}

fn layout(t: Type) -> Option<Layout> {
    let (element, count, bits) = match t {
        Type::F32 => (Element::Float(soft::F32), 1, 32),
        Type::F16x2 => (Element::Float(soft::F16), 2, 16),
        Type::Bf16x2 => (Element::Float(soft::BF16), 2, 16),
        Type::E4m3x2 => (Element::Float(soft::E4M3), 2, 8),
        Type::E5m2x2 => (Element::Float(soft::E5M2), 2, 8),
        Type::E3m2x2 => (Element::Float(soft::E3M2), 2, 8),
        Type::E2m3x2 => (Element::Float(soft::E2M3), 2, 8),
        Type::E2m1x2 => (Element::Float(soft::E2M1), 2, 4),
        Type::E4m3x4 => (Element::Float(soft::E4M3), 4, 8),
        Type::E5m2x4 => (Element::Float(soft::E5M2), 4, 8),
        Type::E3m2x4 => (Element::Float(soft::E3M2), 4, 8),
        Type::E2m3x4 => (Element::Float(soft::E2M3), 4, 8),
        Type::E2m1x4 => (Element::Float(soft::E2M1), 4, 4),
        Type::Ue8m0x2 => (Element::Ue8m0, 2, 8),
        Type::S2f6x2 => (Element::S2f6, 2, 8),
        Type::Ue5m3x2 => (Element::Ue5m3, 2, 8),
        _ => return None,
    };
    Some(Layout { element, count, bits })
}

impl Element {
    fn unpack(self, bits: u32) -> Num {
        match self {
            Element::Float(f) => f.unpack(u64::from(bits)),
            Element::Ue8m0 => match bits & 0xff {
                0xff => Num::Nan,
                exp => Num::Val(Exact { neg: false, exp: exp as i32 - 127, sig: 1 }),
            },
            Element::S2f6 => Num::from_int(i128::from(bits as u8 as i8)).scale(-6),
            Element::Ue5m3 => soft::E5M3.unpack(u64::from(bits & 0xff)),
        }
    }

    /// The value in single precision, for the fast path: exact for all formats but the largest exponents of `.ue8m0`.
    #[inline(always)]
    fn widen(self, bits: u32) -> Option<f32> {
        match self {
            Element::Float(soft::F32) => Some(f32::from_bits(bits)),
            Element::Float(soft::F16) => Some(fp::from_f16(bits as u16)),
            Element::Float(soft::BF16) => Some(fp::from_bf16(bits as u16)),
            Element::Float(f) => Some(f.widen_small(bits)),
            Element::Ue8m0 | Element::S2f6 | Element::Ue5m3 => None,
        }
    }

    /// Whether bits encode a subnormal number.
    fn subnormal(self, bits: u32) -> bool {
        match self {
            Element::Float(f) => bits >> f.man & ((1 << f.exp) - 1) == 0 && bits & ((1 << f.man) - 1) != 0,
            Element::Ue8m0 | Element::S2f6 | Element::Ue5m3 => false,
        }
    }

    /// Encodes a value; `random` holds the bits for stochastic rounding and their number.
    fn pack(self, n: Num, m: &Convert, random: Option<(u32, u32)>) -> u32 {
        match self {
            Element::Float(f) => {
                let code = match (n, random) {
                    (Num::Val(x), Some((bits, width))) => f.round_stochastic(x, bits, width, m.finite),
                    _ => f.pack(n, m.rnd, m.finite),
                };
                if m.relu && n.negative() || m.positive && code == f.sign(true) { 0 } else { code as u32 }
            }
            Element::Ue5m3 => soft::E5M3.pack(n.magnitude(), m.rnd, m.finite) as u32,
            Element::Ue8m0 => ue8m0(n, m),
            Element::S2f6 => {
                let min = if m.relu { 0 } else { -128 };
                n.scale(6).integral(m.rnd).to_int(min, 127).unwrap_or(127) as u8 as u32
            }
        }
    }
}

/// The exponent of a magnitude, rounded down or up; numbers below 2^-127 become 2^-127.
fn ue8m0(n: Num, m: &Convert) -> u32 {
    let code = match n {
        Num::Nan => return 0xff,
        Num::Zero(_) => 0,
        Num::Inf(_) => 0xff,
        Num::Val(x) => {
            let msb = 127 - x.sig.leading_zeros() as i32;
            let up = m.rnd == Rnd::Up && !x.sig.is_power_of_two();
            (x.exp + msb + 127 + i32::from(up)).clamp(0, 255) as u32
        }
    };
    if m.finite { code.min(0xfe) } else { code }
}

/// The modifiers.
struct Convert {
    to: Layout,
    from: Layout,
    rnd: Rnd,
    stochastic: bool,
    relu: bool,
    finite: bool,
    scaled: Option<Scaled>,
    /// `.pzo`: -0 becomes +0.
    positive: bool,
}

/// The assignment of scales to the two elements.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scaled {
    /// `.scaled::n1`: one for both.
    Both,
    /// `.scaled::n2`: one for each.
    Each,
}

impl Convert {
    fn of(v: &Variant) -> Option<Convert> {
        Some(Convert {
            to: layout(ty(v, 0)?)?,
            from: layout(ty(v, 1)?)?,
            rnd: rnd(v),
            stochastic: v.has(Mod::Rs),
            relu: v.has(Mod::Relu),
            finite: v.has(Mod::Satfinite),
            scaled: match (v.has(Mod::ScaledN1Ue8m0), v.has(Mod::ScaledN2Ue8m0)) {
                (true, _) => Some(Scaled::Both),
                (_, true) => Some(Scaled::Each),
                _ => None,
            },
            positive: v.has(Mod::Pzo),
        })
    }

    /// The random bits of element `e` (0 is the highest), and their number.
    fn random(&self, e: usize, rbits: u32) -> (u32, u32) {
        let half = |high: bool| if high { rbits >> 16 } else { rbits & 0xffff };
        let first = 2 * e < self.to.count;
        let bits = match self.to.element {
            Element::Float(soft::F16) => return (half(first) & 0x1fff, 13),
            Element::Float(soft::E2M1) => {
                let byte = |x: u32| if first { x >> 8 & 0xff } else { x & 0xff };
                byte(half(true)) << 8 | byte(half(false))
            }
            _ => half(first),
        };
        let reversed = self.to.count == 4 && e.is_multiple_of(2);
        (if reversed { u32::from((bits as u16).reverse_bits()) } else { bits }, 16)
    }
}

/// `cvt` with packed types; `words` if no register is wider than 32 bits.
pub(super) fn cvt(v: &Variant, d: Type, s: Type, words: bool) -> Option<PureFn> {
    Convert::of(v)?;
    let narrow = words && ![Mod::Rs, Mod::Relu, Mod::Pzo, Mod::ScaledN1Ue8m0].iter().any(|m| v.has(*m));
    let plain = narrow && rnd(v) == Rnd::Nearest && !v.has(Mod::Satfinite);
    let zero = narrow && rnd(v) == Rnd::Zero && !v.has(Mod::Satfinite);
    let finite = narrow && rnd(v) == Rnd::Nearest && v.has(Mod::Satfinite);
    // The common conversions, with formats known at compile time.
    macro_rules! from_singles {
        ($format:expr, $bits:literal, $rnd:expr, $finite:literal) => {
            lift!(a: f32, b: f32 => u32 {
                $format.pack_f32(a, $rnd, $finite) << $bits | $format.pack_f32(b, $rnd, $finite)
            })
        };
    }
    macro_rules! from_halves {
        ($format:expr) => {
            lift!(a: u32 => u32 {
                let pack = |half: u16| $format.pack_f32(fp::from_f16(half), Rnd::Nearest, true);
                pack((a >> 16) as u16) << 8 | pack(a as u16)
            })
        };
    }
    macro_rules! to_halves {
        ($format:expr) => {
            lift!(a: u32 => u32 {
                let widen = |code: u32| u32::from(fp::to_f16($format.widen_small(code)));
                widen(a >> 8 & 0xff) << 16 | widen(a & 0xff)
            })
        };
    }
    match (d, s) {
        (Type::F16x2, Type::F32) if plain => lift!(a: f32, b: f32 => u32 {
            u32::from(fp::to_f16(a)) << 16 | u32::from(fp::to_f16(b))
        }),
        (Type::Bf16x2, Type::F32) if plain => lift!(a: f32, b: f32 => u32 {
            u32::from(fp::to_bf16(a)) << 16 | u32::from(fp::to_bf16(b))
        }),
        (Type::F16x2, Type::F32) if zero => from_singles!(soft::F16, 16, Rnd::Zero, false),
        (Type::Bf16x2, Type::F32) if zero => from_singles!(soft::BF16, 16, Rnd::Zero, false),
        (Type::E4m3x2, Type::F32) if finite => from_singles!(soft::E4M3, 8, Rnd::Nearest, true),
        (Type::E5m2x2, Type::F32) if finite => from_singles!(soft::E5M2, 8, Rnd::Nearest, true),
        (Type::E4m3x2, Type::F16x2) if finite => from_halves!(soft::E4M3),
        (Type::E5m2x2, Type::F16x2) if finite => from_halves!(soft::E5M2),
        (Type::F16x2, Type::E4m3x2) if plain => to_halves!(soft::E4M3),
        (Type::F16x2, Type::E5m2x2) if plain => to_halves!(soft::E5M2),
        _ => Some(convert),
    }
}

fn convert(v: &Variant, _: u32, s: &[&[Row]], d: &mut [Row]) {
    let Some(m) = Convert::of(v) else { return };
    let word = |k: usize, lane: usize| match s.get(k) {
        None => 0,
        Some(rows) if rows.len() == 1 => rows[0].0[lane],
        Some(rows) => lanes::u64s(rows)[lane] as u32,
    };
    // One source per element, or all elements in the first one; then random bits or scales.
    let values = if m.from.count == 1 { m.to.count } else { 1 };
    let out: [u32; LANES] = std::array::from_fn(|lane| {
        let extra = word(values, lane);
        (0..m.to.count).fold(0, |packed, e| {
            let place = (m.to.count - 1 - e) as u32;
            let bits = if m.from.count == 1 { word(e, lane) } else { word(0, lane) >> (place * m.from.bits) };
            let bits = bits & (u32::MAX >> (32 - m.from.bits));
            let plain = !m.stochastic && m.scaled.is_none();
            if let (Element::Float(to), Some(x), true) = (m.to.element, m.from.element.widen(bits), plain) {
                let code = to.pack_f32(x, m.rnd, m.finite);
                let cleared =
                    m.relu && x.is_sign_negative() && !x.is_nan() || m.positive && u64::from(code) == to.sign(true);
                return packed << m.to.bits | if cleared { 0 } else { code };
            }
            let n = match m.scaled {
                Some(Scaled::Both) if m.from.element.subnormal(bits) => m.scale(Num::Zero(false), extra & 0xff),
                Some(Scaled::Both) => m.scale(m.from.element.unpack(bits), extra & 0xff),
                Some(Scaled::Each) => m.scale(m.from.element.unpack(bits), extra >> (8 * place) & 0xff),
                None => m.from.element.unpack(bits),
            };
            let random = m.stochastic.then(|| m.random(e, extra));
            packed << m.to.bits | m.to.element.pack(n, &m, random)
        })
    });
    match d.len() {
        1 => d[0].0 = out,
        2 => *lanes::u64s_mut(d) = out.map(u64::from),
        _ => lanes::set_u128s(d, &out.map(u128::from)),
    }
}

impl Convert {
    /// Divides by a scale on conversion to a small format, multiplies on conversion from it.
    fn scale(&self, n: Num, code: u32) -> Num {
        match (code, self.to.bits) {
            (0xff, _) => Num::Nan,
            (exp, ..=8) => n.scale(127 - exp as i32),
            (exp, _) => n.scale(exp as i32 - 127),
        }
    }
}
