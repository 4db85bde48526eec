//! Element types of host arrays, and their values as text, as numbers and as bytes.

use margay_isa::{Kind, Type};
use std::fmt;

/// The type of an array's elements on the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Element {
    /// A type of PTX with a whole number of bytes.
    Ptx(Type),
    /// A byte that is 0 or 1.
    Bool,
    /// Two floats: real and imaginary part. 8 or 16 bytes.
    Complex(u32),
    /// Bytes without meaning.
    Void(u32),
}

/// A value as a number.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Number {
    /// An integer of any width.
    Int(i128),
    /// A float, widened without loss.
    Float(f64),
}

impl Number {
    /// As a double; integers beyond 2^53 are rounded.
    pub fn as_f64(self) -> f64 {
        match self {
            Number::Int(v) => v as f64,
            Number::Float(v) => v,
        }
    }
}

impl Element {
    /// The element type of that name: PTX's (`s32`, `f16`, `b64`), `i32`-like ones, numpy's (`int32`, `float64`), `bool`.
    pub fn from_name(name: &str) -> Option<Element> {
        let numpy = [("uint", "u"), ("int", "s"), ("bfloat", "bf"), ("float", "f"), ("i", "s")];
        if name == "bool" {
            return Some(Element::Bool);
        }
        if let Some(ty) = Type::from_name(name).filter(|t| t.bits() % 8 == 0 && t.kind() != Kind::Opaque) {
            return Some(Element::Ptx(ty));
        }
        let (prefix, digits) = name.split_at(name.find(|c: char| c.is_ascii_digit())?);
        let (_, short) = numpy.iter().find(|(long, _)| *long == prefix)?;
        Type::from_name(&format!("{short}{digits}")).filter(|t| t.bits() >= 8).map(Element::Ptx)
    }

    /// The element type of an npy `descr` such as `<f4`, or why it is refused.
    pub fn from_descr(descr: &str) -> Result<Element, String> {
        let (order, kind) = descr.split_at(descr.len().min(1));
        if order == ">" {
            return Err(format!("it is big-endian (`{descr}`); save it as little-endian"));
        }
        let ptx = |name| Ok(Element::Ptx(name));
        match kind {
            "b1" => Ok(Element::Bool),
            "u1" => ptx(Type::U8),
            "u2" => ptx(Type::U16),
            "u4" => ptx(Type::U32),
            "u8" => ptx(Type::U64),
            "i1" => ptx(Type::S8),
            "i2" => ptx(Type::S16),
            "i4" => ptx(Type::S32),
            "i8" => ptx(Type::S64),
            "f2" => ptx(Type::F16),
            "f4" => ptx(Type::F32),
            "f8" => ptx(Type::F64),
            "c8" => Ok(Element::Complex(8)),
            "c16" => Ok(Element::Complex(16)),
            _ => match kind.strip_prefix(['V', 'S']).and_then(|n| n.parse().ok()).filter(|n| *n > 0) {
                Some(n) => Ok(Element::Void(n)),
                None => Err(format!(
                    "its elements are `{descr}`; expected integers, floats, complex numbers, `bool` or bytes"
                )),
            },
        }
    }

    /// The `descr` that numpy reads. Formats that numpy lacks are written as unsigned integers of their size.
    pub fn descr(self) -> String {
        let ty = match self {
            Element::Bool => return "|b1".into(),
            Element::Complex(n) => return format!("<c{n}"),
            Element::Void(n) => return format!("|V{n}"),
            Element::Ptx(ty) => ty,
        };
        let (order, bytes) = (if ty.bytes() == 1 { '|' } else { '<' }, ty.bytes());
        match ty {
            Type::F16 | Type::F32 | Type::F64 => format!("<f{bytes}"),
            _ if ty.is_signed() => format!("{order}i{bytes}"),
            _ if bytes > 8 => format!("|V{bytes}"),
            _ => format!("{order}u{bytes}"),
        }
    }

    /// Bytes of one element.
    pub fn bytes(self) -> usize {
        match self {
            Element::Ptx(ty) => ty.bytes() as usize,
            Element::Bool => 1,
            Element::Complex(n) | Element::Void(n) => n as usize,
        }
    }

    /// Whether values of another element type can be compared with this one's by [`Element::number`].
    pub fn is_number(self) -> bool {
        match self {
            Element::Bool => true,
            Element::Complex(_) | Element::Void(_) => false,
            Element::Ptx(ty) => ty.bits() <= 64 && (self.is_float() || !ty.is_float() && ty.kind() != Kind::Packed),
        }
    }

    fn is_float(self) -> bool {
        matches!(self, Element::Ptx(Type::F16 | Type::Bf16 | Type::F32 | Type::F64 | Type::Tf32))
    }

    /// The value of an element's bytes. Formats without one number read as unsigned integers.
    pub fn number(self, bytes: &[u8]) -> Number {
        let mut word = [0; 16];
        let n = bytes.len().min(16);
        word[..n].copy_from_slice(&bytes[..n]);
        let bits = u128::from_le_bytes(word);
        match self {
            Element::Ptx(Type::F16) => Number::Float(small_to_f64(bits as u32, 5, 10)),
            Element::Ptx(Type::Bf16) => Number::Float(f64::from(f32::from_bits((bits as u32) << 16))),
            Element::Ptx(Type::F32 | Type::Tf32) => Number::Float(f64::from(f32::from_bits(bits as u32))),
            Element::Ptx(Type::F64) => Number::Float(f64::from_bits(bits as u64)),
            Element::Ptx(ty) if ty.is_signed() => {
                let unused = 128 - ty.bits();
                Number::Int((bits << unused) as i128 >> unused)
            }
            _ => Number::Int(bits as i128),
        }
    }

    /// The bytes of a literal: `3`, `-1.5`, `0x10`, `inf`, `nan`, `0f3F800000`, `true`. Integers may use the whole range of
    /// the signed and of the unsigned type of their width. Bits take floats too, if the width is that of a float.
    pub fn parse(self, text: &str) -> Result<Vec<u8>, String> {
        let wanted = || format!("`{text}` is not a value of type `{self}`");
        match self {
            Element::Bool => match text {
                "true" | "1" => Ok(vec![1]),
                "false" | "0" => Ok(vec![0]),
                _ => Err(wanted()),
            },
            Element::Complex(_) | Element::Void(_) => {
                Err(format!("values of type `{self}` cannot be given as numbers; use `hex:`"))
            }
            Element::Ptx(ty) if self.is_float() => self.parse_float(ty, text).ok_or_else(wanted),
            Element::Ptx(ty) if ty.is_float() || ty.kind() == Kind::Packed => {
                let bits = parse_int(text).filter(|v| *v >= 0).ok_or_else(wanted)?;
                self.int_bytes(bits)
            }
            Element::Ptx(ty) => match parse_int(text) {
                Some(v) => self.int_bytes(v),
                None if ty.kind() == Kind::Bits => {
                    let float = match ty {
                        Type::B16 => Type::F16,
                        Type::B32 => Type::F32,
                        Type::B64 => Type::F64,
                        _ => return Err(wanted()),
                    };
                    Element::Ptx(float).parse_float(float, text).ok_or_else(wanted)
                }
                None if parse_f64(text).is_some() => Err(format!("{}: it takes an integer", wanted())),
                None => Err(wanted()),
            },
        }
    }

    fn parse_float(self, ty: Type, text: &str) -> Option<Vec<u8>> {
        let bits = |prefix: [char; 2], digits: usize| {
            let hex = text
                .strip_prefix(prefix[0])
                .and_then(|t| t.strip_prefix([prefix[1], prefix[1].to_ascii_uppercase()]))?;
            (hex.len() == digits).then(|| u64::from_str_radix(hex, 16).ok()).flatten()
        };
        let exact = match ty {
            Type::F32 => bits(['0', 'f'], 8),
            Type::F64 => bits(['0', 'd'], 16),
            _ => None,
        };
        if let Some(exact) = exact {
            return Some(exact.to_le_bytes()[..self.bytes()].to_vec());
        }
        if ty == Type::F32 {
            // Rounded once, from the text.
            return parse_float_text::<f32>(text)
                .map(|v| v.to_le_bytes().to_vec())
                .or_else(|| Some(self.float_bytes(parse_f64(text)?)));
        }
        parse_f64(text).map(|v| self.float_bytes(v))
    }

    fn int_bytes(self, value: i128) -> Result<Vec<u8>, String> {
        let bits = self.bytes() as u32 * 8;
        let fits = bits >= 127 || (-(1i128 << (bits - 1))..1i128 << bits).contains(&value);
        match fits {
            true => Ok(value.to_le_bytes()[..self.bytes()].to_vec()),
            false => Err(format!("{value} does not fit in the {bits} bits of `{self}`")),
        }
    }

    fn float_bytes(self, value: f64) -> Vec<u8> {
        match self {
            Element::Ptx(Type::F16) => (f64_to_small(value, 5, 10) as u16).to_le_bytes().to_vec(),
            Element::Ptx(Type::Bf16) => (f64_to_small(value, 8, 7) as u16).to_le_bytes().to_vec(),
            Element::Ptx(Type::F64) => value.to_le_bytes().to_vec(),
            _ => (value as f32).to_le_bytes().to_vec(),
        }
    }

    /// Element `index` of `iota`: the index itself, wrapped or rounded.
    pub fn iota(self, index: u64) -> Vec<u8> {
        match self {
            _ if self.is_float() => self.float_bytes(index as f64),
            Element::Bool => vec![(index % 2) as u8],
            _ => {
                let mut bytes = index.to_le_bytes().to_vec();
                bytes.resize(self.bytes(), 0);
                bytes
            }
        }
    }

    /// Element `index` of `rand:SEED`, from SplitMix64's word: integers take its low bits, floats its top ones as a
    /// number of `[0, 1)` (24 of `f32`, 53 of `f64`, 11 of `f16`, 8 of `bf16`: all such numbers are representable).
    pub fn random(self, seed: u64, index: u64) -> Vec<u8> {
        let state = seed.wrapping_add(0x9e37_79b9_7f4a_7c15u64.wrapping_mul(index.wrapping_add(1)));
        let z = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        let word = z ^ z >> 31;
        let digits = match self {
            Element::Ptx(Type::F64) => 53,
            Element::Ptx(Type::F16) => 11,
            Element::Ptx(Type::Bf16) => 8,
            _ => 24,
        };
        match self {
            _ if self.is_float() => self.float_bytes((word >> (64 - digits)) as f64 / (1u64 << digits) as f64),
            Element::Bool => vec![(word % 2) as u8],
            _ => word.to_le_bytes().into_iter().cycle().take(self.bytes()).collect(),
        }
    }

    /// An element's value as text: the shortest that parses to the same value.
    pub fn show(self, bytes: &[u8]) -> String {
        match self {
            Element::Bool => (if bytes.first() == Some(&0) { "false" } else { "true" }).into(),
            Element::Complex(n) => {
                let half = (n / 2) as usize;
                let part = if n == 8 { Element::Ptx(Type::F32) } else { Element::Ptx(Type::F64) };
                format!("{}{}j", part.show(&bytes[..half]), plus(&part.show(&bytes[half..])))
            }
            Element::Ptx(Type::F32 | Type::Tf32) => show_float(f32::from_bits(self.low_word(bytes))),
            Element::Ptx(ty) if self.is_number() && (ty.kind() != Kind::Bits) => match self.number(bytes) {
                Number::Int(v) => v.to_string(),
                Number::Float(v) => show_float(v),
            },
            _ => format!("0x{}", bytes.iter().rev().map(|b| format!("{b:02x}")).collect::<String>()),
        }
    }

    fn low_word(self, bytes: &[u8]) -> u32 {
        bytes.get(..4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_le_bytes)
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Element::Ptx(ty) => f.write_str(ty.name()),
            Element::Bool => f.write_str("bool"),
            Element::Complex(n) => write!(f, "complex{}", n * 8),
            Element::Void(n) => write!(f, "bytes{n}"),
        }
    }
}

/// An integer literal: decimal, `0x`, `0b`, `0o`, with sign and `_`.
pub fn parse_int(text: &str) -> Option<i128> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let digits: String = digits.chars().filter(|c| *c != '_').collect();
    let prefixed = |a, b| digits.strip_prefix(a).or_else(|| digits.strip_prefix(b)).map(str::to_string);
    let value = match (prefixed("0x", "0X"), prefixed("0b", "0B"), prefixed("0o", "0O")) {
        (Some(hex), ..) => i128::from_str_radix(&hex, 16).ok()?,
        (_, Some(binary), _) => i128::from_str_radix(&binary, 2).ok()?,
        (.., Some(octal)) => i128::from_str_radix(&octal, 8).ok()?,
        _ => digits.parse().ok()?,
    };
    Some(if negative { -value } else { value })
}

/// A number as a double: `1.5`, `-inf`, `nan`, `1e-5`, or an integer in any notation.
pub fn parse_f64(text: &str) -> Option<f64> {
    parse_float_text(text).or_else(|| parse_int(text).map(|v| v as f64))
}

/// Rust's float syntax, less the names that look like words of something else.
fn parse_float_text<T: std::str::FromStr>(text: &str) -> Option<T> {
    let body = text.strip_prefix(['-', '+']).unwrap_or(text);
    let named = ["inf", "infinity", "nan"].iter().any(|n| body.eq_ignore_ascii_case(n));
    let digits = body.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    if named || digits { text.parse().ok() } else { None }
}

fn show_float<T: fmt::Display + fmt::LowerExp + Copy + Into<f64>>(v: T) -> String {
    let wide: f64 = v.into();
    match wide.abs() {
        a if a.is_nan() => "nan".into(),
        a if a != 0.0 && !(1e-5..1e16).contains(&a) && a.is_finite() => format!("{v:e}"),
        _ => format!("{v}"),
    }
}

fn plus(text: &str) -> String {
    if text.starts_with('-') { text.into() } else { format!("+{text}") }
}

/// A small IEEE format (sign, `e` exponent bits, `m` fraction bits) as a double.
fn small_to_f64(bits: u32, e: u32, m: u32) -> f64 {
    let sign = if bits >> (e + m) & 1 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = ((bits >> m & ((1 << e) - 1)) as i32, f64::from(bits & ((1 << m) - 1)));
    let (bias, unit) = ((1 << (e - 1)) - 1, 2f64.powi(-(m as i32)));
    sign * match exponent {
        0 => fraction * unit * 2f64.powi(1 - bias),
        top if top == (1 << e) - 1 => {
            if fraction == 0.0 {
                f64::INFINITY
            } else {
                f64::NAN
            }
        }
        _ => (1.0 + fraction * unit) * 2f64.powi(exponent - bias),
    }
}

/// A double in a small IEEE format, rounded to nearest even.
fn f64_to_small(value: f64, e: u32, m: u32) -> u32 {
    let sign = u32::from(value.is_sign_negative()) << (e + m);
    let (bias, top) = ((1i32 << (e - 1)) - 1, ((1u32 << e) - 1) << m);
    if value.is_nan() {
        return sign | top | 1 << (m - 1);
    }
    let magnitude = value.abs();
    // The quantum of the result's binade; multiplying by its inverse is exact.
    let exponent = if magnitude == 0.0 { 1 - bias } else { (magnitude.to_bits() >> 52) as i32 - 1023 };
    let exponent = exponent.max(1 - bias);
    if exponent > bias {
        return sign | top;
    }
    let steps = (magnitude * 2f64.powi(m as i32 - exponent)).round_ties_even() as u32;
    // `steps` has the hidden bit for normal numbers; a carry moves into the exponent by itself, up to infinity.
    sign | ((((exponent + bias - 1) as u32) << m) + steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ptx(ty: Type) -> Element {
        Element::Ptx(ty)
    }

    #[test]
    fn small_floats_round_to_nearest_even() {
        // IEEE 754 binary16: largest finite 65504, smallest subnormal 2^-24, ties at 2049 and 65520.
        let f16 = |v| f64_to_small(v, 5, 10);
        assert_eq!(f16(1.0), 0x3c00);
        assert_eq!(f16(-2.0), 0xc000);
        assert_eq!(f16(65504.0), 0x7bff);
        assert_eq!(f16(65519.9), 0x7bff);
        assert_eq!(f16(65520.0), 0x7c00);
        assert_eq!(f16(2f64.powi(-24)), 1);
        assert_eq!(f16(2f64.powi(-25)), 0);
        assert_eq!(f16(2049.0), 0x6800);
        assert_eq!(f16(f64::NEG_INFINITY), 0xfc00);
        assert_eq!(f64_to_small(1.0 + 1.0 / 256.0, 8, 7), 0x3f80);
        for bits in 0..0x7c00u32 {
            assert_eq!(f16(small_to_f64(bits, 5, 10)), bits);
        }
    }

    #[test]
    fn literals_fill_the_width_of_their_type() {
        assert_eq!(ptx(Type::U32).parse("-5"), Ok(vec![0xfb, 0xff, 0xff, 0xff]));
        assert_eq!(ptx(Type::S8).parse("255"), Ok(vec![255]));
        assert!(ptx(Type::S8).parse("256").is_err());
        assert_eq!(ptx(Type::F32).parse("0x10"), Ok(16f32.to_le_bytes().to_vec()));
        assert_eq!(ptx(Type::F32).parse("0f3F800000"), Ok(1f32.to_le_bytes().to_vec()));
        assert_eq!(ptx(Type::B32).parse("1.5"), Ok(1.5f32.to_le_bytes().to_vec()));
        assert_eq!(ptx(Type::F64).parse("-inf"), Ok(f64::NEG_INFINITY.to_le_bytes().to_vec()));
        assert!(ptx(Type::U32).parse("1.5").unwrap_err().contains("integer"));
        assert!(ptx(Type::F32).parse("info").is_err());
    }

    #[test]
    fn names_and_descriptions() {
        assert_eq!(Element::from_name("i32"), Some(ptx(Type::S32)));
        assert_eq!(Element::from_name("float16"), Some(ptx(Type::F16)));
        assert_eq!(Element::from_name("b1"), None);
        assert_eq!(Element::from_descr("<f2").map(Element::descr), Ok("<f2".into()));
        assert!(Element::from_descr(">i4").unwrap_err().contains("big-endian"));
        assert_eq!(ptx(Type::Bf16).descr(), "<u2");
    }

    #[test]
    fn the_random_sequence_is_splitmix64() {
        // First two outputs for seed 0, as published with the generator.
        assert_eq!(ptx(Type::U64).random(0, 0), 0xe220_a839_7b1d_cdafu64.to_le_bytes());
        assert_eq!(ptx(Type::U64).random(0, 1), 0x6e78_9e6a_a1b9_65f4u64.to_le_bytes());
    }

    #[test]
    fn printed_floats_parse_to_the_same_value() {
        assert_eq!(ptx(Type::F32).show(&0.1f32.to_le_bytes()), "0.1");
        assert_eq!(ptx(Type::F64).show(&1e300f64.to_le_bytes()), "1e300");
        assert_eq!(ptx(Type::B16).show(&[0x34, 0x12]), "0x1234");
    }
}
