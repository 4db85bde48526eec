//! Floating-point arithmetic of all formats against `rustc_apfloat`, in every rounding mode, with `.ftz`, `.sat`, `.relu`.

use crate::harness::{Case, Random};
use rustc_apfloat::{
    Float, Round,
    ieee::{BFloat, Double, Half, Single},
};

pub const ROUNDS: [(&str, Round); 4] = [
    ("rn", Round::NearestTiesToEven),
    ("rz", Round::TowardZero),
    ("rm", Round::TowardNegative),
    ("rp", Round::TowardPositive),
];

/// Bits at which something changes: zeros, subnormals, around one, the largest, infinities, NaNs; of both signs.
pub fn edges<F: Float>() -> Vec<u128> {
    let bits = F::BITS as u32;
    let man = F::PRECISION as u32 - 1;
    let one = F::from_u128(1).value.to_bits();
    let inf = F::INFINITY.to_bits();
    let third = F::from_u128(1).value.to_bits() - (1 << man) * 2 + ((1 << man) / 3);
    let small = 1 << man;
    let mut list = vec![
        0,
        1,
        2,
        small / 2,
        small - 1,
        small,
        small + 1,
        third,
        one - 1,
        one,
        one + 1,
        one + (1 << man) / 2,
        one + small,
        one + 3 * small + 5,
        inf - 1,
        inf - 2,
        inf - small,
        inf,
        inf + 1,
        inf + small / 2 + 3,
        one + (man as u128) * small,
        one - (man as u128) * small + 1,
        one + small - 1,
        3 * small,
    ];
    let signs: Vec<u128> = list.iter().map(|x| x | 1 << (bits - 1)).collect();
    list.extend(signs);
    list
}

/// The canonical NaN of a result.
fn nan<F: Float>() -> u128 {
    match F::BITS {
        16 => 0x7fff,
        _ => 0x7fff_ffff,
    }
}

pub fn flush<F: Float>(x: F) -> F {
    if x.is_denormal() { F::ZERO.copy_sign(x) } else { x }
}

fn saturate<F: Float>(x: F) -> F {
    let one = F::from_u128(1).value;
    if x.is_nan() || x.is_negative() || x.is_zero() {
        F::ZERO
    } else if x > one {
        one
    } else {
        x
    }
}

/// Bits of a result, given the operands (for payloads of double precision).
fn bits<F: Float>(x: F, operands: &[u128]) -> u128 {
    if !x.is_nan() {
        return x.to_bits();
    }
    if F::BITS == 64 {
        let first = operands.iter().find(|b| F::from_bits(**b).is_nan());
        return first.map_or(0xfff8_0000_0000_0000, |b| b | 1 << 51);
    }
    nan::<F>()
}

/// The modifiers of a mnemonic.
struct Modes {
    round: Round,
    ftz: bool,
    sat: bool,
}

fn run<F: Float>(text: &str, m: &Modes, inputs: &[Vec<u128>], f: impl Fn(&[F], Round) -> F) {
    let case = Case::new(text, inputs[0].len());
    case.check(inputs.to_vec(), |x| {
        let read = |b: &u128| if m.ftz { flush(F::from_bits(*b)) } else { F::from_bits(*b) };
        let operands: Vec<F> = x.iter().map(read).collect();
        let y = f(&operands, m.round);
        let y = if m.ftz { flush(y) } else { y };
        if m.sat { saturate(y).to_bits() } else { bits(y, x) }
    });
}

fn two<F: Float>() -> Vec<Vec<u128>> {
    let list = edges::<F>();
    let mut all = crate::harness::pairs(&list);
    let mut random = Random(11);
    for _ in 0..3000 {
        all.push(vec![near::<F>(&mut random, 3), near::<F>(&mut random, 3)]);
    }
    for _ in 0..2000 {
        all.push(vec![any::<F>(&mut random), any::<F>(&mut random)]);
    }
    all
}

fn three<F: Float>() -> Vec<Vec<u128>> {
    let list = edges::<F>();
    let mut random = Random(13);
    let mut all = Vec::new();
    for a in &list {
        for b in &list {
            for _ in 0..4 {
                all.push(vec![*a, *b, list[random.next() as usize % list.len()]]);
            }
        }
    }
    // Halves are cheap, and all their cases can be met.
    for _ in 0..if F::BITS == 16 { 40_000 } else { 6000 } {
        all.push(vec![near::<F>(&mut random, 2), near::<F>(&mut random, 2), near::<F>(&mut random, 30)]);
        all.push(vec![any::<F>(&mut random), any::<F>(&mut random), any::<F>(&mut random)]);
        // A sum that nearly cancels the product, or that is a tiny part of it.
        let (a, b) = (near::<F>(&mut random, 2), near::<F>(&mut random, 2));
        let p = (F::from_bits(a) * F::from_bits(b)).value.to_bits();
        all.push(vec![a, b, (p ^ 1 << (F::BITS - 1)) + u128::from(random.next() % 3)]);
        all.push(vec![a, b, edges::<F>()[random.next() as usize % 8]]);
    }
    all
}

/// Any bits.
fn any<F: Float>(random: &mut Random) -> u128 {
    u128::from(random.next()) & (u128::MAX >> (128 - F::BITS))
}

/// A number of either sign with an exponent near one, often with few bits set.
fn near<F: Float>(random: &mut Random, spread: u64) -> u128 {
    let man = F::PRECISION as u32 - 1;
    let one = F::from_u128(1).value.to_bits() >> man;
    let exp = (one + u128::from(random.next() % (2 * spread + 1))).saturating_sub(spread.into());
    let fraction = u128::from(random.next()) & ((1 << man) - 1);
    let fraction = match random.next() % 4 {
        0 => fraction & !((1 << (man / 2)) - 1),
        1 => fraction >> (man / 2),
        _ => fraction,
    };
    u128::from(random.next() & 1) << (F::BITS - 1) | exp << man | fraction
}

fn arithmetic<F: Float>(t: &str, rounds: &[(&str, Round)], suffixes: &[&str], with_div: bool) {
    let (two, three) = (two::<F>(), three::<F>());
    for (name, round) in rounds {
        for suffix in suffixes {
            let m = Modes { round: *round, ftz: suffix.contains("ftz"), sat: suffix.contains("sat") };
            run::<F>(&format!("add.{name}{suffix}.{t}"), &m, &two, |x, r| x[0].add_r(x[1], r).value);
            run::<F>(&format!("sub.{name}{suffix}.{t}"), &m, &two, |x, r| x[0].sub_r(x[1], r).value);
            run::<F>(&format!("mul.{name}{suffix}.{t}"), &m, &two, |x, r| x[0].mul_r(x[1], r).value);
            run::<F>(&format!("fma.{name}{suffix}.{t}"), &m, &three, |x, r| fma(x, r));
            if with_div && !m.sat {
                run::<F>(&format!("div.{name}{suffix}.{t}"), &m, &two, |x, r| x[0].div_r(x[1], r).value);
                let one: Vec<Vec<u128>> = two.iter().map(|x| vec![x[0]]).collect();
                run::<F>(&format!("rcp.{name}{suffix}.{t}"), &m, &one, |x, r| {
                    F::from_u128(1).value.div_r(x[0], r).value
                });
                sqrt::<F>(&format!("sqrt.{name}{suffix}.{t}"), &m, &one);
            }
        }
    }
}

fn fma<F: Float>(x: &[F], r: Round) -> F {
    // An infinite product with a zero is invalid whatever is added; a NaN operand is met first.
    if x.iter().any(|x| x.is_nan()) {
        return F::NAN;
    }
    x[0].mul_add_r(x[1], x[2], r).value
}

/// Checks a square root by squaring it: exact, with integers.
fn sqrt<F: Float>(text: &str, m: &Modes, inputs: &[Vec<u128>]) {
    let case = Case::new(text, 1);
    for chunk in inputs.chunks(32) {
        for (x, out) in chunk.iter().zip(case.warp(chunk)) {
            let a = if m.ftz { flush(F::from_bits(x[0])) } else { F::from_bits(x[0]) };
            let r = F::from_bits(out[0]);
            let what = || format!("{text} of {:x} is {:x}", x[0], out[0]);
            if a.is_nan() || a.is_negative() && !a.is_zero() {
                assert!(r.is_nan(), "{}", what());
                if F::BITS == 32 {
                    assert_eq!(out[0], 0x7fff_ffff, "{}", what());
                }
                continue;
            }
            if a.is_zero() || a.is_infinite() {
                assert_eq!(out[0], a.to_bits(), "{}", what());
                continue;
            }
            let (sig, exp) = parts::<F>(a.to_bits());
            let (root, half) = parts::<F>(out[0]);
            // Compare `(2 root + d)^2 * 4^(half - 1)` with the operand, for d = -2, -1, 0, 1, 2 (halves of a unit).
            let order = |d: i128| {
                let square = (2 * root as i128 + d).pow(2) as u128;
                let shift = exp - 2 * (half - 1);
                let (left, right) = if shift >= 0 { (square, sig << shift) } else { (square << -shift, sig) };
                left.cmp(&right)
            };
            let good = match m.round {
                Round::TowardPositive => order(-2).is_lt() && order(0).is_ge(),
                Round::TowardZero | Round::TowardNegative => order(0).is_le() && order(2).is_gt(),
                _ => order(-1).is_le() && order(1).is_ge(),
            };
            assert!(good, "{}", what());
        }
    }
}

/// Significand and exponent of a positive number.
fn parts<F: Float>(bits: u128) -> (u128, i32) {
    let man = F::PRECISION as u32 - 1;
    let exp = (bits >> man) as i32;
    let bias = F::MAX_EXP;
    let fraction = bits & ((1 << man) - 1);
    if exp == 0 { (fraction, 1 - bias - man as i32) } else { (fraction | 1 << man, exp - bias - man as i32) }
}

#[test]
fn single_precision() {
    arithmetic::<Single>("f32", &ROUNDS, &["", ".ftz", ".sat", ".ftz.sat"], true);
}

#[test]
fn double_precision() {
    arithmetic::<Double>("f64", &ROUNDS, &[""], true);
}

#[test]
fn half_precision() {
    arithmetic::<Half>("f16", &ROUNDS[..1], &["", ".ftz", ".sat", ".ftz.sat"], false);
    arithmetic::<BFloat>("bf16", &ROUNDS[..1], &[""], false);
}

/// Packed rows do what the scalar ones do, in each element.
#[test]
fn packed_rows_equal_scalar_ones() {
    let mut random = Random(17);
    let rows: [(&str, &str, u32, usize); 22] = [
        ("add.rn.f32", "add.rn.f32x2", 32, 2),
        ("sub.rz.ftz.f32", "sub.rz.ftz.f32x2", 32, 2),
        ("mul.rp.f32", "mul.rp.f32x2", 32, 2),
        ("fma.rn.f32", "fma.rn.f32x2", 32, 3),
        ("fma.rn.ftz.f32", "fma.rn.ftz.f32x2", 32, 3),
        ("fma.rm.f32", "fma.rm.f32x2", 32, 3),
        ("add.f16", "add.f16x2", 16, 2),
        ("sub.ftz.f16", "sub.ftz.f16x2", 16, 2),
        ("mul.sat.f16", "mul.sat.f16x2", 16, 2),
        ("fma.rn.f16", "fma.rn.f16x2", 16, 3),
        ("fma.rn.relu.f16", "fma.rn.relu.f16x2", 16, 3),
        ("add.bf16", "add.bf16x2", 16, 2),
        ("mul.bf16", "mul.bf16x2", 16, 2),
        ("fma.rn.bf16", "fma.rn.bf16x2", 16, 3),
        ("fma.rn.relu.bf16", "fma.rn.relu.bf16x2", 16, 3),
        ("min.f16", "min.f16x2", 16, 2),
        ("max.NaN.bf16", "max.NaN.bf16x2", 16, 2),
        ("min.xorsign.abs.f16", "min.xorsign.abs.f16x2", 16, 2),
        ("abs.f16", "abs.f16x2", 16, 1),
        ("neg.bf16", "neg.bf16x2", 16, 1),
        ("tanh.approx.f16", "tanh.approx.f16x2", 16, 1),
        ("ex2.approx.ftz.bf16", "ex2.approx.ftz.bf16x2", 16, 1),
    ];
    for (scalar, packed, width, n) in rows {
        let (one, both) = (Case::new(scalar, n), Case::new(packed, n));
        let cut = (1_u128 << width) - 1;
        for _ in 0..200 {
            let input: Vec<u128> =
                (0..n).map(|_| u128::from(random.next()) & (u128::MAX >> (128 - 2 * width))).collect();
            let low = one.one(&input.iter().map(|x| x & cut).collect::<Vec<_>>());
            let high = one.one(&input.iter().map(|x| x >> width).collect::<Vec<_>>());
            assert_eq!(both.one(&input), low | high << width, "{packed} {input:x?}");
        }
    }
}

#[test]
fn fma_of_halves_with_relu_and_out_of_bounds() {
    for (t, inputs) in [("f16", three::<Half>()), ("bf16", three::<BFloat>())] {
        let plain = Case::new(&format!("fma.rn.{t}"), 3);
        let negative = |x: u128| x & 0x8000 != 0;
        Case::new(&format!("fma.rn.relu.{t}"), 3).check(inputs.iter().take(3000).cloned(), |x| {
            let y = plain.one(x);
            if negative(y) { 0 } else { y }
        });
        Case::new(&format!("fma.rn.oob.{t}"), 3)
            .check(inputs.into_iter().take(3000), |x| if x.contains(&0x7fff) { 0 } else { plain.one(x) });
    }
}

#[test]
fn mixed_precision() {
    let mut random = Random(19);
    let mut inputs = Vec::new();
    let singles = edges::<Single>();
    for _ in 0..4000 {
        let c = if random.flip() {
            singles[random.next() as usize % singles.len()]
        } else {
            near::<Single>(&mut random, 20)
        };
        inputs.push(vec![any::<Half>(&mut random), any::<Half>(&mut random), c]);
    }
    for (half, t) in [(true, "f16"), (false, "bf16")] {
        let widen = |b: u128| {
            let mut loses = false;
            use rustc_apfloat::FloatConvert;
            if half {
                FloatConvert::<Single>::convert(Half::from_bits(b), &mut loses).value
            } else {
                FloatConvert::<Single>::convert(BFloat::from_bits(b), &mut loses).value
            }
        };
        for (name, round) in ROUNDS {
            for sat in [false, true] {
                let end = |y: Single| if sat { saturate(y).to_bits() } else { bits(y, &[]) };
                let suffix = if sat { ".sat" } else { "" };
                let pairs: Vec<Vec<u128>> = inputs.iter().map(|x| vec![x[0], x[2]]).collect();
                Case::new(&format!("add.{name}{suffix}.f32.{t}"), 2)
                    .check(pairs.clone(), |x| end(widen(x[0]).add_r(Single::from_bits(x[1]), round).value));
                Case::new(&format!("sub.{name}{suffix}.f32.{t}"), 2)
                    .check(pairs, |x| end(widen(x[0]).sub_r(Single::from_bits(x[1]), round).value));
                Case::new(&format!("fma.{name}{suffix}.f32.{t}"), 3)
                    .check(inputs.clone(), |x| end(fma(&[widen(x[0]), widen(x[1]), Single::from_bits(x[2])], round)));
            }
        }
    }
}

/// `min` and `max` by the manual's pseudocode: a NaN loses unless `.NaN`; -0 is below +0.
fn extreme<F: Float>(t: &str, suffixes: &[&str]) {
    let inputs = crate::harness::pairs(&edges::<F>());
    let sign = 1 << (F::BITS - 1);
    for (name, max) in [("min", false), ("max", true)] {
        for suffix in suffixes {
            let (nan_wins, xorsign) = (suffix.contains("NaN"), suffix.contains("xorsign"));
            Case::new(&format!("{name}{suffix}.{t}"), 2).check(inputs.clone(), |x| {
                let read = |b: u128| {
                    let f = F::from_bits(b);
                    let f = if suffix.contains("ftz") { flush(f) } else { f };
                    if xorsign { F::from_bits(f.to_bits() & !sign) } else { f }
                };
                let (a, b) = (read(x[0]), read(x[1]));
                if a.is_nan() && b.is_nan() || nan_wins && (a.is_nan() || b.is_nan()) {
                    return bits(F::NAN, x);
                }
                let smaller = |a: F, b: F| a < b || a == b && a.is_negative();
                let d = if a.is_nan() {
                    b
                } else if b.is_nan() || smaller(a, b) != max {
                    a
                } else {
                    b
                };
                if xorsign { d.to_bits() & !sign | (x[0] ^ x[1]) & sign } else { d.to_bits() }
            });
        }
    }
}

#[test]
fn extremes() {
    extreme::<Single>("f32", &["", ".ftz", ".NaN", ".ftz.NaN", ".xorsign.abs", ".NaN.xorsign.abs"]);
    extreme::<Double>("f64", &[""]);
    extreme::<Half>("f16", &["", ".ftz", ".NaN", ".xorsign.abs"]);
    extreme::<BFloat>("bf16", &["", ".NaN", ".xorsign.abs"]);
    let three = Case::new("max.f32", 3);
    assert_eq!(three.one(&[0x3f80_0000, 0x7fc0_0000, 0x4000_0000]), 0x4000_0000);
    assert_eq!(Case::new("min.NaN.f32", 3).one(&[0x3f80_0000, 0x7fc0_0000, 0x4000_0000]), 0x7fff_ffff);
    assert_eq!(Case::new("max.abs.f32", 3).one(&[0x3f80_0000, 0xc040_0000, 0x4000_0000]), 0x4040_0000);
}

#[test]
fn signs_and_properties() {
    for (t, list, bits) in [("f32", edges::<Single>(), 32_u32), ("f64", edges::<Double>(), 64)] {
        let one = || list.iter().map(|x| vec![*x]);
        let sign = 1 << (bits - 1);
        Case::new(&format!("abs.{t}"), 1).check(one(), |x| x[0] & !sign);
        Case::new(&format!("neg.{t}"), 1).check(one(), |x| x[0] ^ sign);
        Case::new(&format!("copysign.{t}"), 2).check(crate::harness::pairs(&list), |x| x[0] & sign | x[1] & !sign);
        let is = |b: u128, what: &str| {
            let test = |nan: bool, inf: bool, sub: bool| match what {
                "finite" => !nan && !inf,
                "infinite" => inf,
                "number" => !nan,
                "notanumber" => nan,
                "subnormal" => sub,
                _ => !nan && !inf && !sub,
            };
            if bits == 32 {
                let f = Single::from_bits(b);
                test(f.is_nan(), f.is_infinite(), f.is_denormal())
            } else {
                let f = Double::from_bits(b);
                test(f.is_nan(), f.is_infinite(), f.is_denormal())
            }
        };
        for what in ["finite", "infinite", "number", "notanumber", "normal", "subnormal"] {
            Case::new(&format!("testp.{what}.{t}"), 1).check(one(), |x| u128::from(is(x[0], what)));
        }
    }
    let subnormals = [1, 0x8000_0001, 0x007f_ffff];
    Case::new("abs.ftz.f32", 1).check(subnormals.map(|x| vec![x]), |_| 0);
    Case::new("neg.ftz.f32", 1).check(subnormals.map(|x| vec![x]), |x| !x[0] & 0x8000_0000);
}

#[test]
fn division_approximate() {
    // 9.7.3.8: for 2^126 < |b| < 2^128 an infinite dividend gives NaN, any other a zero of the quotient's sign.
    let case = Case::new("div.approx.f32", 2);
    assert_eq!(case.one(&[0x7f80_0000, 0x7e80_0001]), 0x7fff_ffff);
    assert_eq!(case.one(&[0xc000_0000, 0x7f00_0000]), 0x8000_0000);
    assert_eq!(case.one(&[0x7f00_0000, 0x7e80_0000]), 0x4000_0000);
    let full = Case::new("div.full.f32", 2);
    assert_eq!(full.one(&[0x7f00_0000, 0x7f00_0000]), 0x3f80_0000);
    // Forms without `.approx` are those of PTX ISA 1.0 to 1.3, which flush.
    assert_eq!(Case::new("rcp.f32", 1).one(&[0x0000_0001]), 0x7f80_0000);
    assert_eq!(Case::new("div.f32", 2).one(&[0x3f80_0000, 0x0000_0001]), 0x7f80_0000);
}

#[test]
fn gross_approximations() {
    let hi = |x: u32| u128::from(x) << 32;
    let rcp = Case::new("rcp.approx.ftz.f64", 1);
    for (input, want) in [
        (hi(0xfff0_0000), hi(0x8000_0000)),
        (hi(0x8000_0000), hi(0xfff0_0000)),
        (hi(0x8000_0001) | 5, hi(0xfff0_0000)),
        (hi(0x0000_0000), hi(0x7ff0_0000)),
        (hi(0x000f_ffff), hi(0x7ff0_0000)),
        (hi(0x7ff0_0000), 0),
        (hi(0x7ff8_0000) | 77, hi(0x7fff_ffff)),
        (hi(0x4000_0000) | 0xffff_ffff, hi(0x3fe0_0000)),
        (hi(0x7fe0_0000), 0),
    ] {
        assert_eq!(rcp.one(&[input]), want, "rcp of {input:x}");
    }
    let rsqrt = Case::new("rsqrt.approx.ftz.f64", 1);
    for (input, want) in [
        (hi(0xfff0_0000), hi(0x7fff_ffff)),
        (hi(0x8000_0001), hi(0xfff0_0000)),
        (hi(0x8000_0000), hi(0xfff0_0000)),
        (hi(0x0000_0001), hi(0x7ff0_0000)),
        (hi(0x7ff0_0000), 0),
        (hi(0x7ff0_0000) | 1, hi(0x7fff_ffff)),
        (hi(0x4010_0000), hi(0x3fe0_0000)),
    ] {
        assert_eq!(rsqrt.one(&[input]), want, "rsqrt of {input:x}");
    }
}
