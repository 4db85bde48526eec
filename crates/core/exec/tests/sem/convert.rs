//! `cvt`: every pair of scalar types in every mode against `rustc_apfloat`; the small formats against all their values.

use crate::{
    float::{ROUNDS, edges, flush},
    harness::{self, Case, Random, cut, value},
};
use rustc_apfloat::{
    Float, FloatConvert, Round,
    ieee::{BFloat, Double, Half, Single},
};

const INTS: [(&str, u32, bool); 8] = [
    ("u8", 8, false),
    ("s8", 8, true),
    ("u16", 16, false),
    ("s16", 16, true),
    ("u32", 32, false),
    ("s32", 32, true),
    ("u64", 64, false),
    ("s64", 64, true),
];
const INTEGRAL: [(&str, Round); 4] = [
    ("rni", Round::NearestTiesToEven),
    ("rzi", Round::TowardZero),
    ("rmi", Round::TowardNegative),
    ("rpi", Round::TowardPositive),
];

fn range(bits: u32, signed: bool) -> (i128, i128) {
    if signed { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
}

/// 8-bit types live in 16-bit registers here.
fn register(bits: u32) -> u32 {
    bits.max(16)
}

#[test]
fn integers_to_integers() {
    for (d, to, to_signed) in INTS {
        for (s, from, from_signed) in INTS {
            let inputs = || harness::edges(register(from)).into_iter().map(|x| vec![x]);
            let (min, max) = range(to, to_signed);
            for (src, dst) in [(register(from), register(to)), (64, 64), (register(from), 64), (64, register(to))] {
                Case::sized(&format!("cvt.{d}.{s}"), &[src], &[dst])
                    .check(inputs(), |x| cut(value(cut(value(x[0], from, from_signed), to), to, to_signed), dst));
                if let Some(case) = Case::optional(&format!("cvt.sat.{d}.{s}"), &[src], &[dst]) {
                    case.check(inputs(), |x| cut(value(x[0], from, from_signed).clamp(min, max), dst));
                }
            }
        }
    }
}

fn int_to_float<F: Float>(t: &str) {
    for (s, from, signed) in INTS {
        let mut random = Random(23);
        let mut inputs: Vec<Vec<u128>> = harness::edges(from).into_iter().map(|x| vec![x]).collect();
        inputs.extend((0..500).map(|i| vec![u128::from(random.next()) >> (i % from) & ((1 << from) - 1)]));
        for (name, round) in ROUNDS {
            let case = Case::sized(&format!("cvt.{name}.{t}.{s}"), &[register(from)], &[F::BITS as u32]);
            case.check(inputs.clone(), |x| F::from_i128_r(value(x[0], from, signed), round).value.to_bits());
            let sat = format!("cvt.{name}.sat.{t}.{s}");
            if let Some(case) = Case::optional(&sat, &[register(from)], &[F::BITS as u32]) {
                case.check(inputs.clone(), |x| {
                    F::from_i128_r(value(x[0], from, signed).clamp(0, 1), round).value.to_bits()
                });
            }
        }
    }
}

#[test]
fn integers_to_floats() {
    int_to_float::<Half>("f16");
    int_to_float::<BFloat>("bf16");
    int_to_float::<Single>("f32");
    int_to_float::<Double>("f64");
}

/// Edges, halves of integers near the ends of the integer types, random numbers.
fn numbers<F: Float>() -> Vec<u128> {
    let mut list = edges::<F>();
    for (_, bits, signed) in INTS {
        let (min, max) = range(bits, signed);
        for i in [min, max] {
            let x = F::from_i128_r(i, Round::NearestTiesToEven).value.to_bits();
            list.extend([x, x - u128::from(x != 0), x + 1]);
        }
    }
    let half = F::from_i128(2).value.to_bits() - (1 << (F::PRECISION - 1)) * 2;
    for i in 1..20 {
        let x = F::from_i128(i).value;
        let y = (x + F::from_bits(half)).value.to_bits();
        list.extend([y, y + 1, y - 1, y | 1 << (F::BITS - 1)]);
    }
    let mut random = Random(29);
    for i in 0..2000 {
        let any = u128::from(random.next()) & (u128::MAX >> (128 - F::BITS));
        let one = F::from_u128(1).value.to_bits() >> (F::PRECISION - 1);
        let exp = one + u128::from(random.next() % 68) - 3;
        let near =
            exp << (F::PRECISION - 1) | any & ((1 << (F::PRECISION - 1)) - 1) | any >> (F::BITS - 1) << (F::BITS - 1);
        list.push(if i % 4 == 0 { any } else { near & (u128::MAX >> (128 - F::BITS)) });
    }
    list
}

fn float_to_int<F: Float>(t: &str) {
    let inputs: Vec<Vec<u128>> = numbers::<F>().into_iter().map(|x| vec![x]).collect();
    for (d, to, signed) in INTS {
        let (min, max) = range(to, signed);
        for (name, round) in INTEGRAL {
            for ftz in if F::BITS == 32 { vec!["", ".ftz"] } else { vec![""] } {
                let case = Case::sized(&format!("cvt.{name}{ftz}.{d}.{t}"), &[F::BITS as u32], &[register(to)]);
                case.check(inputs.clone(), |x| {
                    let f = F::from_bits(x[0]);
                    let f = if ftz.is_empty() { f } else { flush(f) };
                    if f.is_nan() {
                        // Zero, or the highest bit alone from or to 64 bits.
                        let top = F::BITS == 64 || to == 64;
                        return if top { cut(value(1 << (to - 1), to, signed), register(to)) } else { 0 };
                    }
                    let mut exact = false;
                    let i = f.to_i128_r(127, round, &mut exact).value;
                    cut(i.clamp(min, max), register(to))
                });
            }
        }
    }
}

#[test]
fn floats_to_integers() {
    float_to_int::<Half>("f16");
    float_to_int::<BFloat>("bf16");
    float_to_int::<Single>("f32");
    float_to_int::<Double>("f64");
}

fn nan<F: Float>() -> u128 {
    if F::BITS == 16 { 0x7fff } else { 0x7fff_ffff }
}

/// What a NaN becomes: canonical, but between `.f32` and `.f64` with sign and payload.
fn nan_of<S: Float, D: Float>(x: u128) -> u128 {
    match (S::BITS, D::BITS) {
        (64, 64) => x | 1 << 51,
        (32, 64) => (x >> 31) << 63 | 0x7ff8 << 48 | (x & 0x7f_ffff) << 29,
        (64, 32) => (x >> 63) << 31 | 0x7fc0_0000 | x >> 29 & 0x3f_ffff,
        (_, 64) => 0x7fff_ffff_ffff_ffff,
        _ => nan::<D>(),
    }
}

fn saturated<D: Float>(y: D) -> u128 {
    let one = D::from_u128(1).value;
    if y.is_nan() || y.is_negative() {
        0
    } else if y > one {
        one.to_bits()
    } else {
        y.to_bits()
    }
}

/// A float-to-float conversion with the modifiers that are in the mnemonic.
fn float_to_float<S: Float + FloatConvert<D>, D: Float>(d: &str, s: &str, rounds: &[(&str, Round)], suffixes: &[&str]) {
    let inputs: Vec<Vec<u128>> = numbers::<S>().into_iter().map(|x| vec![x]).collect();
    let mut rows = 0;
    for (name, round) in rounds {
        for suffix in suffixes {
            let dot = if name.is_empty() { "" } else { "." };
            let text = format!("cvt{dot}{name}{suffix}.{d}.{s}");
            let Some(case) = Case::optional(&text, &[S::BITS as u32], &[D::BITS as u32]) else { continue };
            rows += 1;
            let (ftz, sat) = (suffix.contains("ftz"), suffix.contains(".sat") && !suffix.contains("satf"));
            let (relu, finite) = (suffix.contains("relu"), suffix.contains("satfinite"));
            case.check(inputs.clone(), |x| {
                let a = S::from_bits(x[0]);
                let a = if ftz && S::BITS == 32 { flush(a) } else { a };
                let mut loses = false;
                let mut y: D = a.convert_r(*round, &mut loses).value;
                if a.is_nan() {
                    return if sat { 0 } else { nan_of::<S, D>(x[0]) };
                }
                if finite && y.is_infinite() {
                    y = D::largest().copy_sign(y);
                }
                let y = if ftz && D::BITS == 32 { flush(y) } else { y };
                match () {
                    _ if sat => saturated(y),
                    _ if relu && y.is_negative() => 0,
                    _ => y.to_bits(),
                }
            });
        }
    }
    assert!(rows > 0, "no row from {s} to {d}");
}

#[test]
fn floats_to_floats() {
    let none = [("", Round::NearestTiesToEven)];
    float_to_float::<Half, Single>("f32", "f16", &none, &["", ".ftz", ".sat"]);
    float_to_float::<BFloat, Single>("f32", "bf16", &none, &["", ".ftz"]);
    float_to_float::<Half, Double>("f64", "f16", &none, &["", ".sat"]);
    float_to_float::<BFloat, Double>("f64", "bf16", &none, &["", ".sat"]);
    float_to_float::<Single, Double>("f64", "f32", &none, &["", ".ftz", ".sat", ".ftz.sat"]);
    float_to_float::<Single, Single>("f32", "f32", &none, &[".ftz", ".sat", ".ftz.sat"]);
    float_to_float::<Double, Double>("f64", "f64", &none, &[".sat"]);
    float_to_float::<Double, Single>("f32", "f64", &ROUNDS, &["", ".ftz", ".sat", ".ftz.sat"]);
    float_to_float::<Single, Half>("f16", "f32", &ROUNDS, &["", ".ftz", ".sat", ".ftz.sat"]);
    float_to_float::<Single, Half>("f16", "f32", &ROUNDS[..2], &[".relu", ".satfinite", ".relu.satfinite"]);
    float_to_float::<Single, BFloat>("bf16", "f32", &ROUNDS[..2], &["", ".relu", ".satfinite", ".relu.satfinite"]);
    float_to_float::<Double, Half>("f16", "f64", &ROUNDS, &["", ".sat"]);
    float_to_float::<Double, BFloat>("bf16", "f64", &ROUNDS, &["", ".sat"]);
    float_to_float::<Half, BFloat>("bf16", "f16", &ROUNDS, &["", ".sat"]);
    float_to_float::<BFloat, Half>("f16", "bf16", &ROUNDS, &["", ".sat"]);
}

/// Without a modifier, a conversion of a type to itself is a move for ptxas: bits of NaNs stay.
#[test]
fn floats_to_themselves() {
    let width = [32];
    let inputs: Vec<Vec<u128>> = numbers::<Single>().into_iter().map(|x| vec![x]).collect();
    Case::optional("cvt.f32.f32", &width, &width).unwrap().check(inputs, |x| x[0]);
    let width = [64];
    let inputs: Vec<Vec<u128>> = numbers::<Double>().into_iter().map(|x| vec![x]).collect();
    Case::optional("cvt.f64.f64", &width, &width).unwrap().check(inputs, |x| x[0]);
}

fn to_integral<F: Float>(t: &str, suffixes: &[&str]) {
    let inputs: Vec<Vec<u128>> = numbers::<F>().into_iter().map(|x| vec![x]).collect();
    for (name, round) in INTEGRAL {
        for suffix in suffixes {
            let width = [F::BITS as u32];
            let Some(case) = Case::optional(&format!("cvt.{name}{suffix}.{t}.{t}"), &width, &width) else { continue };
            case.check(inputs.clone(), |x| {
                let a = F::from_bits(x[0]);
                let a = if suffix.contains("ftz") { flush(a) } else { a };
                let sat = suffix.contains("sat");
                if a.is_nan() {
                    return if sat {
                        0
                    } else if F::BITS == 64 {
                        x[0] | 1 << 51
                    } else {
                        nan::<F>()
                    };
                }
                let y = a.round_to_integral(round).value;
                if sat { saturated(y) } else { y.to_bits() }
            });
        }
    }
}

#[test]
fn floats_to_integral_floats() {
    to_integral::<Single>("f32", &["", ".ftz", ".sat"]);
    to_integral::<Double>("f64", &["", ".sat"]);
    to_integral::<Half>("f16", &["", ".sat"]);
    to_integral::<BFloat>("bf16", &["", ".sat"]);
}

/// Every bit pattern of 16 bits to single precision and back.
#[test]
fn halves_to_singles_and_back_exhaustively() {
    let all = (0..1 << 16).map(|x| vec![x]);
    for (t, widen) in [
        (
            "f16",
            (|b| {
                let mut loses = false;
                FloatConvert::<Single>::convert(Half::from_bits(b), &mut loses).value
            }) as fn(u128) -> Single,
        ),
        ("bf16", |b| {
            let mut loses = false;
            FloatConvert::<Single>::convert(BFloat::from_bits(b), &mut loses).value
        }),
    ] {
        let up = Case::new(&format!("cvt.f32.{t}"), 1);
        up.check(all.clone(), |x| {
            let y = widen(x[0]);
            if y.is_nan() { 0x7fff_ffff } else { y.to_bits() }
        });
        let down = Case::new(&format!("cvt.rn.{t}.f32"), 1);
        down.check(all.clone().map(|x| vec![widen(x[0]).to_bits(), x[0]]).map(|x| vec![x[0]]), |x| {
            let mut loses = false;
            let f = Single::from_bits(x[0]);
            if f.is_nan() {
                return 0x7fff;
            }
            match t {
                "f16" => FloatConvert::<Half>::convert(f, &mut loses).value.to_bits(),
                _ => FloatConvert::<BFloat>::convert(f, &mut loses).value.to_bits(),
            }
        });
    }
}

#[test]
fn tf32_keeps_ten_bits_of_mantissa() {
    // (input, .rna, .rn, .rz)
    let cases: [(u128, u128, u128, u128); 6] = [
        (0x3f80_1000, 0x3f80_2000, 0x3f80_0000, 0x3f80_0000),
        (0x3f80_3000, 0x3f80_4000, 0x3f80_4000, 0x3f80_2000),
        (0xbf80_0fff, 0xbf80_0000, 0xbf80_0000, 0xbf80_0000),
        (0x7f7f_ffff, 0x7f80_0000, 0x7f80_0000, 0x7f7f_e000),
        (0x7fc0_0001, 0x7fff_ffff, 0x7fff_ffff, 0x7fff_ffff),
        (0x0000_1000, 0x0000_2000, 0x0000_0000, 0x0000_0000),
    ];
    for (x, rna, rn, rz) in cases {
        assert_eq!(Case::new("cvt.rna.tf32.f32", 1).one(&[x]), rna, "rna {x:x}");
        assert_eq!(Case::new("cvt.rn.tf32.f32", 1).one(&[x]), rn, "rn {x:x}");
        assert_eq!(Case::new("cvt.rz.tf32.f32", 1).one(&[x]), rz, "rz {x:x}");
    }
    assert_eq!(Case::new("cvt.rn.satfinite.tf32.f32", 1).one(&[0xff80_0000]), 0xff7f_e000);
    assert_eq!(Case::new("cvt.rz.relu.tf32.f32", 1).one(&[0xc000_0000]), 0);
}

/// A small format, described by its values alone.
struct Small {
    name: &'static str,
    /// Bits of a code.
    bits: u32,
    /// Value of a code; NaN for NaN.
    value: fn(u32) -> f64,
    /// The code of NaN inputs.
    nan: u32,
}

fn decode(code: u32, exp: u32, man: u32) -> f64 {
    let sign = if code >> (exp + man) & 1 != 0 { -1.0 } else { 1.0 };
    let (e, m) = (code >> man & ((1 << exp) - 1), f64::from(code & ((1 << man) - 1)) / f64::from(1 << man));
    let bias = (1 << (exp - 1)) - 1;
    sign * if e == 0 { m * 2_f64.powi(1 - bias) } else { (1.0 + m) * 2_f64.powi(e as i32 - bias) }
}

const SMALL: [Small; 5] = [
    Small { name: "e4m3", bits: 8, value: |c| if c & 0x7f == 0x7f { f64::NAN } else { decode(c, 4, 3) }, nan: 0x7f },
    Small {
        name: "e5m2",
        bits: 8,
        value: |c| match c & 0x7f {
            0x7c => f64::INFINITY * if c >> 7 != 0 { -1.0 } else { 1.0 },
            x if x > 0x7c => f64::NAN,
            _ => decode(c, 5, 2),
        },
        nan: 0x7f,
    },
    Small { name: "e3m2", bits: 6, value: |c| decode(c, 3, 2), nan: 0x1f },
    Small { name: "e2m3", bits: 6, value: |c| decode(c, 2, 3), nan: 0x1f },
    Small { name: "e2m1", bits: 4, value: |c| decode(c, 2, 1), nan: 0x7 },
];

impl Small {
    /// The nearest code, ties to even codes, never beyond the largest finite one.
    fn nearest(&self, x: f64) -> u32 {
        if x.is_nan() {
            return self.nan;
        }
        let sign = u32::from(x.is_sign_negative()) << (self.bits - 1);
        let magnitudes = (0..1 << (self.bits - 1)).filter(|c| (self.value)(*c).is_finite());
        let distance = |c: u32| ((self.value)(c) - x.abs().min(1e9)).abs();
        let best = magnitudes.min_by(|a, b| distance(*a).total_cmp(&distance(*b)).then((a & 1).cmp(&(b & 1))));
        best.unwrap() | sign
    }

    /// Bits that an element takes in a packed register.
    fn slot(&self) -> u32 {
        if self.bits == 4 { 4 } else { 8 }
    }
}

fn half_value(bits: u128) -> f64 {
    f64::from(f32::from_bits(Case::new("cvt.f32.f16", 1).one(&[bits]) as u32))
}

#[test]
fn small_formats_from_all_halves() {
    let up = Case::new("cvt.f32.f16", 1);
    let all: Vec<Vec<u128>> = (0..1 << 16).map(|x| vec![x]).collect();
    let values: Vec<f64> =
        all.chunks(32).flat_map(|c| up.warp(c)).map(|v| f64::from(f32::from_bits(v[0] as u32))).collect();
    for small in &SMALL {
        let slot = small.slot();
        let name = small.name;
        let nearest: Vec<u32> = values.iter().map(|x| small.nearest(*x)).collect();
        let relu = |c: u32| if c >> (small.bits - 1) != 0 { 0 } else { c };
        // Both elements of a pair of halves; the upper one is another number.
        let pairs: Vec<Vec<u128>> = (0..1_u128 << 16).map(|x| vec![x | ((x * 40503) & 0xffff) << 16]).collect();
        let want = |x: u128, f: &dyn Fn(u32) -> u32| {
            u128::from(f(nearest[(x & 0xffff) as usize]) | f(nearest[(x >> 16) as usize]) << slot)
        };
        let dst = if slot == 4 { 8 } else { 16 };
        Case::sized(&format!("cvt.rn.satfinite.{name}x2.f16x2"), &[32], &[dst])
            .check(pairs.clone(), |x| want(x[0], &|c| c));
        Case::sized(&format!("cvt.rn.satfinite.relu.{name}x2.f16x2"), &[32], &[dst])
            .check(pairs.iter().step_by(3).cloned(), |x| want(x[0], &relu));
        // The same numbers as singles.
        let singles: Vec<Vec<u128>> = pairs
            .iter()
            .step_by(5)
            .map(|p| {
                let single = |h: u128| u128::from((values[h as usize] as f32).to_bits());
                vec![single(p[0] >> 16), single(p[0] & 0xffff), p[0]]
            })
            .collect();
        let case = Case::sized(&format!("cvt.rn.satfinite.{name}x2.f32"), &[32, 32], &[dst]);
        for x in &singles {
            assert_eq!(case.one(&x[..2]), want(x[2], &|c| c), "{name} of {x:x?}");
        }
        // Every code back to halves.
        let back = Case::sized(&format!("cvt.rn.f16x2.{name}x2"), &[dst], &[32]);
        for code in 0..1 << small.bits {
            let out = back.one(&[u128::from(code | (code << slot))]);
            let x = (small.value)(code);
            let (low, high) = (out & 0xffff, out >> 16);
            assert_eq!(low, high);
            assert!(
                if x.is_nan() { low == 0x7fff } else { half_value(low).to_bits() == x.to_bits() },
                "{name} {code:x}"
            );
        }
    }
}

#[test]
fn small_formats_from_singles_between_their_values() {
    let mut random = Random(31);
    for small in &SMALL {
        let dst = if small.slot() == 4 { 8 } else { 16 };
        let case = Case::sized(&format!("cvt.rn.satfinite.{}x2.f32", small.name), &[32, 32], &[dst]);
        for _ in 0..4000 {
            let max = (0..1_u32 << (small.bits - 1)).map(small.value).filter(|x| x.is_finite()).fold(0.0, f64::max);
            let x = (random.next() as f64 / u64::MAX as f64 * 2.2 - 1.1) * max;
            let x = (x * if random.flip() { 1.0 } else { 0.01 }) as f32;
            let got = case.one(&[u128::from(x.to_bits()), 0]) >> small.slot();
            assert_eq!(got, u128::from(small.nearest(x.into())), "{} of {x}", small.name);
        }
    }
    // Infinities become the largest number.
    assert_eq!(Case::new("cvt.rn.satfinite.e5m2x2.f32", 2).one(&[0x7f80_0000, 0xff80_0000]), 0x7bfb);
}

#[test]
fn powers_of_two_as_ue8m0() {
    let down =
        |mode: &str, x: f32| Case::new(&format!("cvt.{mode}.ue8m0x2.f32"), 2).one(&[0x3f80_0000, x.to_bits().into()]);
    for (x, rz, rp) in [
        (1.0, 127, 127),
        (1.5, 127, 128),
        (-1.5, 127, 128),
        (0.0, 0, 0),
        (f32::from_bits(1), 0, 0),
        (f32::from_bits(0x0040_0000), 0, 0),
        (f32::from_bits(0x0040_0001), 0, 1),
        (f32::from_bits(0x0080_0000), 1, 1),
        (f32::MAX, 254, 255),
        (f32::INFINITY, 255, 255),
        (f32::NAN, 255, 255),
    ] {
        assert_eq!(down("rz", x), 127 << 8 | rz, "rz {x}");
        assert_eq!(down("rp", x), 127 << 8 | rp, "rp {x}");
        let finite = |c: u128| if x.is_nan() { c } else { c.min(254) };
        assert_eq!(down("rz.satfinite", x), 127 << 8 | finite(rz));
        assert_eq!(down("rp.satfinite", x), 127 << 8 | finite(rp));
    }
    assert_eq!(Case::new("cvt.rz.ue8m0x2.bf16x2", 1).one(&[0x3fc0_4000]), 127 << 8 | 128);
    let up = Case::new("cvt.rn.bf16x2.ue8m0x2", 1);
    assert_eq!(up.one(&[0x7f80]), 0x3f80_4000);
    assert_eq!(up.one(&[0x0001]), 0x0040_0080);
    assert_eq!(up.one(&[0xfeff]), 0x7f00_7fff);
}

#[test]
fn fixed_point_s2f6() {
    let down = Case::new("cvt.rn.satfinite.s2f6x2.f32", 2);
    let f = |x: f32| u128::from(x.to_bits());
    // 64ths, ties to even, clamped; NaN is the largest.
    assert_eq!(down.one(&[f(1.0), f(-2.0)]), 0x4080);
    assert_eq!(down.one(&[f(5.0), f(-5.0)]), 0x7f80);
    assert_eq!(down.one(&[f(f32::NAN), f(0.5 / 64.0)]), 0x7f00);
    assert_eq!(down.one(&[f(1.5 / 64.0), f(-1.5 / 64.0)]), 0x02fe);
    assert_eq!(Case::new("cvt.rn.satfinite.relu.s2f6x2.f32", 2).one(&[f(-1.0), f(1.0)]), 0x0040);
    // Scales divide on the way down (here by 2 and by 1/2) and multiply on the way up.
    let scaled = Case::new("cvt.rn.satfinite.scaled::n2::ue8m0.s2f6x2.f32", 3);
    assert_eq!(scaled.one(&[f(1.0), f(0.25), 0x807e]), 0x2020);
    let up = Case::new("cvt.rn.bf16x2.s2f6x2", 1);
    assert_eq!(up.one(&[0x40c0]), 0x3f80_bf80);
    assert_eq!(Case::new("cvt.rn.scaled::n2::ue8m0.bf16x2.s2f6x2", 2).one(&[0x4040, 0x807e]), 0x4000_3f00);
    assert_eq!(Case::new("cvt.rn.satfinite.s2f6x2.bf16x2", 1).one(&[0x3f80_c000]), 0x4080);
}

/// Stochastic rounding adds the random bits to what is cut off, and carries.
#[test]
fn stochastic_rounding() {
    let mut random = Random(37);
    let (bf16, f16) = (Case::new("cvt.rs.bf16x2.f32", 3), Case::new("cvt.rs.f16x2.f32", 3));
    for _ in 0..4000 {
        let number = |r: u64| (0x3880_0000 + r as u32 % 0x0e00_0000) | (r >> 32) as u32 & 0x8000_0000;
        let (a, b, rbits) = (number(random.next()), number(random.next()), random.next() as u32);
        let input = [u128::from(a), u128::from(b), u128::from(rbits)];
        let brain = |x: u32, r: u32| x.wrapping_add(r & 0xffff) >> 16;
        assert_eq!(bf16.one(&input), u128::from(brain(a, rbits >> 16) << 16 | brain(b, rbits)));
        let half = |x: u32, r: u32| {
            let sum = (x & 0x7fff_ffff) + (r & 0x1fff);
            (sum - 0x3800_0000) >> 13 | x >> 31 << 15
        };
        assert_eq!(f16.one(&input), u128::from(half(a, rbits >> 16) << 16 | half(b, rbits)), "{input:x?}");
    }
    // Four elements: a, b with the upper half of the random bits, e, f with the lower; no bits, no rounding up.
    let e4m3 = Case::new("cvt.rs.satfinite.e4m3x4.f32", 5);
    let x = u128::from(1.9999_f32.to_bits());
    assert_eq!(e4m3.one(&[x, x, x, x, 0]), 0x3f3f_3f3f);
    assert_eq!(e4m3.one(&[x, x, x, x, 0xffff_0000]), 0x4040_3f3f);
    assert_eq!(e4m3.one(&[x, x, x, x, 0x0000_ffff]), 0x3f3f_4040);
    let e2m1 = Case::new("cvt.rs.satfinite.e2m1x4.f32", 5);
    assert_eq!(e2m1.one(&[x, x, x, x, 0xff00_ff00]), 0x4433);
    assert_eq!(e2m1.one(&[x, x, x, x, 0x00ff_00ff]), 0x3344);
}

#[test]
fn packs_of_halves_and_integers() {
    let f = |x: f32| u128::from(x.to_bits());
    assert_eq!(Case::new("cvt.rn.f16x2.f32", 2).one(&[f(1.0), f(-2.0)]), 0x3c00_c000);
    assert_eq!(Case::new("cvt.rz.bf16x2.f32", 2).one(&[f(1.99999), f(-2.0)]), 0x3fff_c000);
    assert_eq!(Case::new("cvt.rn.relu.satfinite.f16x2.f32", 2).one(&[f(1e9), f(-2.0)]), 0x7bff_0000);
    // The manual's pseudocode: a above b, then the low bits of c.
    let s32 = |x: i32| u128::from(x as u32);
    assert_eq!(Case::new("cvt.pack.sat.s16.s32", 2).one(&[s32(-40000), s32(7)]), 0x8000_0007);
    assert_eq!(Case::new("cvt.pack.sat.u16.s32", 2).one(&[s32(70000), s32(-7)]), 0xffff_0000);
    assert_eq!(Case::new("cvt.pack.sat.u8.s32.b32", 3).one(&[s32(300), s32(-1), 0x1234_5678]), 0x5678_ff00);
    assert_eq!(Case::new("cvt.pack.sat.s8.s32.b32", 3).one(&[s32(-300), s32(5), 0x1234_5678]), 0x5678_8005);
    assert_eq!(Case::new("cvt.pack.sat.s4.s32.b32", 3).one(&[s32(-9), s32(9), 1]), 0x0000_0187);
    assert_eq!(Case::new("cvt.pack.sat.u2.s32.b32", 3).one(&[s32(2), s32(9), 1]), 0x0000_001b);
}
