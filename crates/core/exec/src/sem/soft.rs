//! Exact arithmetic on floating-point bits of any format, in integers only: the ground truth of every rounding mode.
//!
//! A finite number is `sig * 2^exp` with a 128-bit `sig`. An operation returns its exact result, or one whose lowest
//! bit is *sticky*: it represents all lower bits that were dropped. [`Format::round`] rounds that to a format once.
//! Formats are those of sections 5.2.1 and 5.2.3; rounding is that of section 6.5.2.

use super::fp;

/// The rounding mode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rnd {
    /// `.rn`: to nearest, ties to even.
    Nearest,
    /// `.rna`: to nearest, ties away from zero.
    Away,
    /// `.rz`
    Zero,
    /// `.rm`: towards negative infinity.
    Down,
    /// `.rp`: towards positive infinity.
    Up,
}

/// The meaning of the highest exponent codes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Special {
    /// Infinities and NaNs, as in IEEE 754.
    Ieee,
    /// One NaN, all ones; no infinity (`e4m3`).
    NanOnly,
    /// Numbers only (`e3m2`, `e2m3`, `e2m1`).
    None,
}

/// A binary floating-point format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Format {
    /// Bits of the exponent.
    pub exp: u32,
    /// Bits of the mantissa, without the hidden one.
    pub man: u32,
    /// Its special values.
    pub special: Special,
}

const fn ieee(exp: u32, man: u32) -> Format {
    Format { exp, man, special: Special::Ieee }
}

/// `.f16`
pub const F16: Format = ieee(5, 10);
/// `.bf16`
pub const BF16: Format = ieee(8, 7);
/// `.f32`
pub const F32: Format = ieee(8, 23);
/// `.f64`
pub const F64: Format = ieee(11, 52);
/// `.tf32`, the upper 19 bits of its register.
pub const TF32: Format = ieee(8, 10);
/// `.e5m2`
pub const E5M2: Format = ieee(5, 2);
/// `.e4m3`
pub const E4M3: Format = Format { exp: 4, man: 3, special: Special::NanOnly };
/// Five bits of exponent, three of mantissa, one NaN: `.ue5m3` with the sign bit that it lacks.
pub const E5M3: Format = Format { exp: 5, man: 3, special: Special::NanOnly };
/// `.e3m2`
pub const E3M2: Format = Format { exp: 3, man: 2, special: Special::None };
/// `.e2m3`
pub const E2M3: Format = Format { exp: 2, man: 3, special: Special::None };
/// `.e2m1`
pub const E2M1: Format = Format { exp: 2, man: 1, special: Special::None };

/// A finite number that is not zero: `sig * 2^exp`, negative if `neg`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exact {
    /// Whether it is negative.
    pub neg: bool,
    /// The exponent of the lowest bit of `sig`.
    pub exp: i32,
    /// The significand; not zero.
    pub sig: u128,
}

/// A value of any format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Num {
    /// NaN.
    Nan,
    /// Infinity; negative if set.
    Inf(bool),
    /// Zero; negative if set.
    Zero(bool),
    /// Any other value.
    Val(Exact),
}

impl Format {
    /// Bits of a value.
    pub const fn bits(self) -> u32 {
        1 + self.exp + self.man
    }

    const fn bias(self) -> i32 {
        (1 << (self.exp - 1)) - 1
    }

    /// The code of the largest finite number, without sign.
    pub const fn max_finite(self) -> u64 {
        match self.special {
            Special::Ieee => (((1 << self.exp) - 1) << self.man) - 1,
            Special::NanOnly => (1 << (self.exp + self.man)) - 2,
            Special::None => (1 << (self.exp + self.man)) - 1,
        }
    }

    /// The code of infinity, or of its substitute on overflow.
    const fn infinity(self) -> u64 {
        match self.special {
            Special::Ieee => ((1 << self.exp) - 1) << self.man,
            Special::NanOnly => (1 << (self.exp + self.man)) - 1,
            Special::None => self.max_finite(),
        }
    }

    /// The canonical NaN: positive, all ones; for formats without NaN, the largest number.
    pub const fn nan(self) -> u64 {
        (1 << (self.exp + self.man)) - 1
    }

    /// The sign bit of a sign.
    pub const fn sign(self, neg: bool) -> u64 {
        (neg as u64) << (self.exp + self.man)
    }

    /// Decodes bits (those above the format's width are ignored).
    pub fn unpack(self, bits: u64) -> Num {
        let neg = bits >> (self.exp + self.man) & 1 != 0;
        let man = bits & ((1 << self.man) - 1);
        let exp = (bits >> self.man & ((1 << self.exp) - 1)) as i32;
        let top = (1 << self.exp) - 1;
        match self.special {
            Special::Ieee if exp == top => return if man == 0 { Num::Inf(neg) } else { Num::Nan },
            Special::NanOnly if exp == top && man == (1 << self.man) - 1 => return Num::Nan,
            _ => {}
        }
        let min = 1 - self.bias() - self.man as i32;
        match exp {
            0 if man == 0 => Num::Zero(neg),
            0 => Num::Val(Exact { neg, exp: min, sig: u128::from(man) }),
            _ => Num::Val(Exact { neg, exp: min + exp - 1, sig: u128::from(man | 1 << self.man) }),
        }
    }

    /// Encodes a value, rounding it. Overflow gives infinity or the largest number, depending on the mode; with
    /// `finite` always the largest number. NaNs are canonicalized.
    pub fn pack(self, n: Num, rnd: Rnd, finite: bool) -> u64 {
        match n {
            Num::Nan => self.nan(),
            Num::Inf(neg) => self.sign(neg) | if finite { self.max_finite() } else { self.infinity() },
            Num::Zero(neg) => self.sign(neg),
            Num::Val(x) => self.sign(x.neg) | self.round(x, rnd, finite),
        }
    }

    /// The code, without sign, of a number rounded to this format.
    fn round(self, x: Exact, rnd: Rnd, finite: bool) -> u64 {
        let (code, dropped, half) = self.truncate(x);
        let up = match rnd {
            Rnd::Nearest => dropped > half || dropped == half && code & 1 != 0,
            Rnd::Away => dropped >= half,
            Rnd::Zero => false,
            Rnd::Down => x.neg && dropped != 0,
            Rnd::Up => !x.neg && dropped != 0,
        };
        let code = code + u64::from(up);
        if code <= self.max_finite() {
            return code;
        }
        let to_infinity = match rnd {
            Rnd::Nearest | Rnd::Away => true,
            Rnd::Zero => false,
            Rnd::Down => x.neg,
            Rnd::Up => !x.neg,
        };
        if to_infinity && !finite { self.infinity() } else { self.max_finite() }
    }

    /// Whether [`Format::pack_f32`] supports this format.
    pub const fn is_small(self) -> bool {
        self.man <= 10
    }

    /// Converts a single-precision number to a small format, as unpacking and packing would, but in words only.
    #[inline(always)]
    pub fn pack_f32(self, x: f32, rnd: Rnd, finite: bool) -> u32 {
        let a = x.to_bits() & 0x7fff_ffff;
        let neg = x.to_bits() >> 31 != 0;
        let sign = self.sign(neg) as u32;
        if a >= 0x7f80_0000 {
            return self.pack(if a > 0x7f80_0000 { Num::Nan } else { Num::Inf(neg) }, rnd, finite) as u32;
        }
        let exp = (a >> 23).max(1) as i32;
        let sig = if a >= 1 << 23 { a & 0x7f_ffff | 1 << 23 } else { a };
        // The exponent, relative to that of the smallest normal number; below it, fewer bits are kept.
        let above = exp - 127 - (1 - self.bias());
        // From 26 on nothing is kept, and less than half a unit dropped.
        let shift = (23 - self.man as i32 - above.min(0)).min(26) as u32;
        let (kept, dropped, half) = (sig >> shift, sig & ((1 << shift) - 1), 1 << (shift - 1));
        let up = match rnd {
            Rnd::Nearest => dropped > half || dropped == half && kept & 1 != 0,
            Rnd::Away => dropped >= half,
            Rnd::Zero => false,
            Rnd::Down => neg && dropped != 0,
            Rnd::Up => !neg && dropped != 0,
        };
        let code = if above >= 0 { ((above as u32) << self.man) + kept } else { kept } + u32::from(up);
        if u64::from(code) <= self.max_finite() {
            return sign | code;
        }
        let outward = match rnd {
            Rnd::Nearest | Rnd::Away => true,
            Rnd::Zero => false,
            Rnd::Down => neg,
            Rnd::Up => !neg,
        };
        sign | if outward && !finite { self.infinity() } else { self.max_finite() } as u32
    }

    /// A number of a format of at most 8 bits in single precision, exactly.
    #[inline(always)]
    pub fn widen_small(self, bits: u32) -> f32 {
        let all = (1 << (self.exp + self.man)) - 1;
        let magnitude = bits & all;
        if self.special == Special::NanOnly && magnitude == all {
            return f32::from_bits(fp::NAN32);
        }
        // The same fields in an `.f16` represent the value times a power of two, subnormals included.
        let half = magnitude << (10 - self.man);
        let power = f32::from_bits(((15 - self.bias() + 127) as u32) << 23);
        let x = fp::from_f16(half as u16) * power;
        if bits >> (self.exp + self.man) & 1 != 0 { -x } else { x }
    }

    /// Rounds stochastically: adds `random`, a fraction of `width` bits, to the discarded bits, and truncates.
    pub fn round_stochastic(self, x: Exact, random: u32, width: u32, finite: bool) -> u64 {
        let (code, dropped, half) = self.truncate(x);
        // The discarded part as a fraction of 64 bits, then its highest `width` bits: the hardware adds at that
        // position.
        let fraction = scale_fraction(dropped, half, width);
        let sum = fraction + u64::from(random & ((1u64 << width) - 1) as u32);
        let up = sum >> width != 0;
        let code = code + u64::from(up);
        self.sign(x.neg)
            | if code <= self.max_finite() {
                code
            } else if finite {
                self.max_finite()
            } else {
                self.infinity()
            }
    }

    /// The code of the number truncated towards zero (possibly beyond the largest), the discarded part, and half a unit
    /// in its scale (1 if nothing was discarded).
    fn truncate(self, x: Exact) -> (u64, u128, u128) {
        let msb = 127 - x.sig.leading_zeros() as i32;
        let exp = x.exp + msb;
        let min = 1 - self.bias();
        // The exponent of a unit in the last place of the result.
        let unit = exp.max(min) - self.man as i32;
        let shift = unit - x.exp;
        let (kept, dropped, half) = match shift {
            // Most numbers fit into a word, which is faster.
            1..=63 if x.sig >> 64 == 0 => {
                let sig = x.sig as u64;
                (sig >> shift, u128::from(sig & ((1 << shift) - 1)), 1 << (shift - 1))
            }
            ..=0 => ((x.sig << -shift) as u64, 0, 1),
            1..=127 => ((x.sig >> shift) as u64, x.sig & ((1 << shift) - 1), 1 << (shift - 1)),
            // Always below half a unit.
            _ => (0, 1, 2),
        };
        let code = if exp < min { kept } else { (((exp - min) as u64) << self.man) + kept };
        (code, dropped, half)
    }
}

/// The highest `width` bits of the fraction `dropped / (2 half)`.
fn scale_fraction(dropped: u128, half: u128, width: u32) -> u64 {
    let bits = half.trailing_zeros() + 1;
    if dropped == 0 {
        0
    } else if bits >= width {
        (dropped >> (bits - width)) as u64
    } else {
        (dropped as u64) << (width - bits)
    }
}

impl Num {
    /// An integer.
    pub fn from_int(i: i128) -> Num {
        match i {
            0 => Num::Zero(false),
            _ => Num::Val(Exact { neg: i < 0, exp: 0, sig: i.unsigned_abs() }),
        }
    }

    /// Whether the sign is set; false for NaN.
    pub fn negative(self) -> bool {
        match self {
            Num::Nan => false,
            Num::Inf(neg) | Num::Zero(neg) => neg,
            Num::Val(x) => x.neg,
        }
    }

    /// The value without its sign.
    pub fn magnitude(self) -> Num {
        if self.negative() { self.negate() } else { self }
    }

    /// The value with the sign turned.
    pub fn negate(self) -> Num {
        match self {
            Num::Nan => Num::Nan,
            Num::Inf(neg) => Num::Inf(!neg),
            Num::Zero(neg) => Num::Zero(!neg),
            Num::Val(x) => Num::Val(Exact { neg: !x.neg, ..x }),
        }
    }

    /// The value times a power of two.
    pub fn scale(self, by: i32) -> Num {
        match self {
            Num::Val(x) => Num::Val(Exact { exp: x.exp + by, ..x }),
            other => other,
        }
    }

    /// Rounds to an integral value; zero keeps the sign.
    pub fn integral(self, rnd: Rnd) -> Num {
        let Num::Val(x) = self else { return self };
        if x.exp >= 0 {
            return self;
        }
        let shift = -x.exp as u32;
        let (kept, dropped, half) = match shift {
            1..=127 => (x.sig >> shift, x.sig & ((1 << shift) - 1), 1 << (shift - 1)),
            _ => (0, 1, 2),
        };
        let up = match rnd {
            Rnd::Nearest => dropped > half || dropped == half && kept & 1 != 0,
            Rnd::Away => dropped >= half,
            Rnd::Zero => false,
            Rnd::Down => x.neg && dropped != 0,
            Rnd::Up => !x.neg && dropped != 0,
        };
        match kept + u128::from(up) {
            0 => Num::Zero(x.neg),
            sig => Num::Val(Exact { neg: x.neg, exp: 0, sig }),
        }
    }

    /// The integer that an integral value is, clamped to a range that includes 0; `None` for NaN.
    pub fn to_int(self, min: i128, max: i128) -> Option<i128> {
        let limit = |neg| if neg { min } else { max };
        Some(match self {
            Num::Nan => return None,
            Num::Inf(neg) => limit(neg),
            Num::Zero(_) => 0,
            Num::Val(x) if x.exp < 0 => {
                let sig = if x.exp > -128 { x.sig >> -x.exp } else { 0 };
                let i = sig as i128;
                (if x.neg { -i } else { i }).clamp(min, max)
            }
            Num::Val(x) => {
                if x.exp as u32 >= x.sig.leading_zeros() {
                    return Some(limit(x.neg));
                }
                let i = (x.sig << x.exp) as i128;
                (if x.neg { -i } else { i }).clamp(min, max)
            }
        })
    }
}

/// Shifts right; what falls off leaves a one in the lowest bit.
fn shift_sticky(sig: u128, by: u32) -> u128 {
    match by {
        0 => sig,
        1..=127 => sig >> by | u128::from(sig & ((1 << by) - 1) != 0),
        _ => 1,
    }
}

/// The place of the highest bit of a sum's larger term: room for a carry above, for guard bits below a 106-bit product.
const TOP: u32 = 124;

fn add_exact(x: Exact, y: Exact, rnd: Rnd) -> Num {
    let lift = |x: Exact| {
        let by = x.sig.leading_zeros() - (127 - TOP);
        Exact { exp: x.exp - by as i32, sig: x.sig << by, ..x }
    };
    let (x, y) = (lift(x), lift(y));
    let (big, small) = if (x.exp, x.sig) >= (y.exp, y.sig) { (x, y) } else { (y, x) };
    let shifted = shift_sticky(small.sig, (big.exp - small.exp) as u32);
    let sig = if big.neg == small.neg { big.sig + shifted } else { big.sig - shifted };
    match sig {
        0 => Num::Zero(rnd == Rnd::Down),
        _ => Num::Val(Exact { neg: big.neg, exp: big.exp, sig }),
    }
}

/// `a + b`. Terms have at most 107 significant bits. The sum of zeros of both signs, or of opposite numbers, is +0, but -0 under
/// `.rm`.
pub fn add(a: Num, b: Num, rnd: Rnd) -> Num {
    match (a, b) {
        (Num::Nan, _) | (_, Num::Nan) => Num::Nan,
        (Num::Inf(x), Num::Inf(y)) if x != y => Num::Nan,
        (Num::Inf(x), _) | (_, Num::Inf(x)) => Num::Inf(x),
        (Num::Zero(x), Num::Zero(y)) => Num::Zero(if x == y { x } else { rnd == Rnd::Down }),
        (Num::Zero(_), v) | (v, Num::Zero(_)) => v,
        (Num::Val(x), Num::Val(y)) => add_exact(x, y, rnd),
    }
}

/// `a * b`, exact for factors of up to 64 significant bits.
pub fn mul(a: Num, b: Num) -> Num {
    let neg = a.negative() != b.negative();
    match (a, b) {
        (Num::Nan, _) | (_, Num::Nan) => Num::Nan,
        (Num::Inf(_), Num::Zero(_)) | (Num::Zero(_), Num::Inf(_)) => Num::Nan,
        (Num::Inf(_), _) | (_, Num::Inf(_)) => Num::Inf(neg),
        (Num::Zero(_), _) | (_, Num::Zero(_)) => Num::Zero(neg),
        (Num::Val(x), Num::Val(y)) => Num::Val(Exact { neg, exp: x.exp + y.exp, sig: x.sig * y.sig }),
    }
}

/// `a * b + c` with nothing lost in between.
pub fn fma(a: Num, b: Num, c: Num, rnd: Rnd) -> Num {
    add(mul(a, b), c, rnd)
}

/// `a / b` for operands of up to 53 significant bits; at least 72 bits and a sticky one.
pub fn div(a: Num, b: Num) -> Num {
    let neg = a.negative() != b.negative();
    match (a, b) {
        (Num::Nan, _) | (_, Num::Nan) => Num::Nan,
        (Num::Inf(_), Num::Inf(_)) | (Num::Zero(_), Num::Zero(_)) => Num::Nan,
        (Num::Inf(_), _) | (_, Num::Zero(_)) => Num::Inf(neg),
        (Num::Zero(_), _) | (_, Num::Inf(_)) => Num::Zero(neg),
        (Num::Val(x), Num::Val(y)) => {
            let by = x.sig.leading_zeros() - 1;
            let (top, exp) = (x.sig << by, x.exp - by as i32 - y.exp);
            let sig = (top / y.sig) << 1 | u128::from(top % y.sig != 0);
            Num::Val(Exact { neg, exp: exp - 1, sig })
        }
    }
}

/// The square root, with at least 61 bits and a sticky one.
pub fn sqrt(a: Num) -> Num {
    match a {
        Num::Nan | Num::Inf(true) => Num::Nan,
        Num::Inf(false) | Num::Zero(_) => a,
        Num::Val(x) if x.neg => Num::Nan,
        Num::Val(x) => {
            let mut by = x.sig.leading_zeros() - 1;
            if (x.exp - by as i32) % 2 != 0 {
                by -= 1;
            }
            let wide = x.sig << by;
            let root = wide.isqrt();
            let sig = root << 1 | u128::from(root * root != wide);
            Num::Val(Exact { neg: false, exp: (x.exp - by as i32) / 2 - 1, sig })
        }
    }
}
