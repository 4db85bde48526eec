//! Approximate instructions: the manual's tables of special values, and its error bounds on a sample (`examples/ulp.rs` takes all).

use crate::harness::Case;

const INF: u32 = 0x7f80_0000;
const NEG_INF: u32 = 0xff80_0000;
const NAN: u32 = 0x7fff_ffff;
const ZERO: u32 = 0;
const NEG_ZERO: u32 = 0x8000_0000;
const ONE: u32 = 0x3f80_0000;

#[test]
fn special_values() {
    // In the order of the manual's tables: -inf, -1, -0, +0, +inf, NaN.
    let inputs = [NEG_INF, 0xbf80_0000, NEG_ZERO, ZERO, INF, 0x7fc0_1234];
    let tables: [(&str, [Option<u32>; 6]); 8] = [
        ("rcp.approx.f32", [Some(NEG_ZERO), Some(0xbf80_0000), Some(NEG_INF), Some(INF), Some(ZERO), Some(NAN)]),
        ("sqrt.approx.f32", [Some(NAN), Some(NAN), Some(NEG_ZERO), Some(ZERO), Some(INF), Some(NAN)]),
        ("rsqrt.approx.f32", [Some(NAN), Some(NAN), Some(NEG_INF), Some(INF), Some(ZERO), Some(NAN)]),
        ("sin.approx.f32", [Some(NAN), None, Some(NEG_ZERO), Some(ZERO), Some(NAN), Some(NAN)]),
        ("cos.approx.f32", [Some(NAN), None, Some(ONE), Some(ONE), Some(NAN), Some(NAN)]),
        ("lg2.approx.f32", [Some(NAN), Some(NAN), Some(NEG_INF), Some(NEG_INF), Some(INF), Some(NAN)]),
        ("ex2.approx.f32", [Some(ZERO), Some(0x3f00_0000), Some(ONE), Some(ONE), Some(INF), Some(NAN)]),
        ("tanh.approx.f32", [Some(0xbf80_0000), None, Some(NEG_ZERO), Some(ZERO), Some(ONE), Some(NAN)]),
    ];
    for (text, wants) in tables {
        for (x, want) in inputs.into_iter().zip(wants) {
            let got = Case::new(text, 1).one(&[x.into()]);
            if let Some(want) = want {
                assert_eq!(got, want.into(), "{text} of {x:08x}: {got:08x}");
            }
        }
    }
}

#[test]
fn subnormals_are_flushed_or_not() {
    let one = |text: &str, x: u32| Case::new(text, 1).one(&[x.into()]) as u32;
    assert_eq!(one("rcp.approx.ftz.f32", 0x8000_0001), NEG_INF);
    assert_eq!(one("rcp.approx.ftz.f32", 0x7f00_0000), ZERO);
    assert_eq!(one("rcp.approx.f32", 0x7f00_0000), 0x0040_0000);
    assert_eq!(one("sqrt.approx.ftz.f32", 0x8000_0001), NEG_ZERO);
    assert_eq!(one("rsqrt.approx.ftz.f32", 0x0000_0001), INF);
    assert_eq!(one("lg2.approx.ftz.f32", 0x0000_0001), NEG_INF);
    assert_eq!(one("lg2.approx.f32", 0x0000_0001), (-149.0_f32).to_bits());
    assert_eq!(one("ex2.approx.ftz.f32", (-127.0_f32).to_bits()), ZERO);
    assert_eq!(one("ex2.approx.f32", (-127.0_f32).to_bits()), 0x0040_0000);
    assert_eq!(one("ex2.approx.f32", (-149.0_f32).to_bits()), 1);
    assert_eq!(one("sin.approx.ftz.f32", 0x8000_0001), NEG_ZERO);
    assert_eq!(one("cos.approx.ftz.f32", 0x8000_0001), ONE);
    // "The subnormal inputs gets passed through to the output."
    for x in [0x0000_0001, 0x8012_3456, 0x007f_ffff] {
        assert_eq!(one("tanh.approx.f32", x), x);
    }
}

/// Every 4099th number.
fn sample() -> impl Iterator<Item = u32> {
    (0..=u32::MAX / 4099).map(|i| i * 4099)
}

fn check(text: &str, reference: fn(f64) -> f64, allowed: impl Fn(f32, f64) -> Option<f64>) {
    let case = Case::new(text, 1);
    let inputs: Vec<u32> = sample().collect();
    for chunk in inputs.chunks(32) {
        let tuples: Vec<Vec<u128>> = chunk.iter().map(|x| vec![u128::from(*x)]).collect();
        for (x, out) in chunk.iter().zip(case.warp(&tuples)) {
            let (x, y) = (f32::from_bits(*x), f32::from_bits(out[0] as u32));
            let want = reference(x.into());
            if let Some(allowed) = allowed(x, want).filter(|_| x.is_finite() && want.is_finite()) {
                let error = (f64::from(y) - want).abs();
                assert!(error <= allowed, "{text} of {x:e}: {y:e}, not {want:e}");
            }
        }
    }
}

/// A relative bound, where the result is a normal number.
fn relative(exponent: f64) -> impl Fn(f32, f64) -> Option<f64> {
    move |_, want| (want.abs() >= 2_f64.powi(-126)).then(|| want.abs() * exponent.exp2())
}

/// Units in the last place of the correctly rounded result; nothing where that overflows.
fn ulps(n: f64) -> impl Fn(f32, f64) -> Option<f64> {
    move |_, want| {
        let rounded = want as f32;
        rounded.is_finite().then(|| n * 2_f64.powi((rounded.to_bits() >> 23 & 0xff).max(1) as i32 - 150))
    }
}

#[test]
fn errors_stay_inside_the_bounds() {
    check("rcp.approx.f32", |x| 1.0 / x, ulps(1.0));
    check("sqrt.approx.f32", f64::sqrt, relative(-23.0));
    check("rsqrt.approx.f32", |x| 1.0 / x.sqrt(), relative(-22.9));
    let circular = |x: f32, _: f64| {
        let x = f64::from(x.abs());
        let pi = std::f64::consts::PI;
        if x <= 2.0 * pi {
            Some((-20.5_f64).exp2())
        } else if x <= 100.0 * pi {
            Some((-14.7_f64).exp2())
        } else {
            None
        }
    };
    check("sin.approx.f32", f64::sin, circular);
    check("cos.approx.f32", f64::cos, circular);
    check("lg2.approx.f32", f64::log2, |x, want| {
        Some(if x > 0.5 && x < 2.0 { (-22_f64).exp2() } else { want.abs() * (-22_f64).exp2() })
    });
    check("ex2.approx.f32", f64::exp2, ulps(2.0));
    check("tanh.approx.f32", f64::tanh, relative(-11.0));
}

/// Far outside the specified range results stay between -1 and 1.
#[test]
fn circular_functions_of_huge_angles_are_bounded() {
    for text in ["sin.approx.f32", "cos.approx.f32"] {
        let case = Case::new(text, 1);
        for x in sample().filter(|x| f32::from_bits(*x).is_finite()).step_by(7) {
            let y = f32::from_bits(case.one(&[x.into()]) as u32);
            assert!(y.abs() <= 1.0, "{text} of {x:08x}");
        }
    }
}

/// All halves: `tanh` within 2^-10.987 and 2^-8 absolutely, `ex2` within 2^-9.9 and 2^-7 relatively.
#[test]
fn halves_exhaustively() {
    for (t, tanh, ex2, smallest) in [("f16", -10.987_f64, -9.9_f64, -14), ("bf16", -8.0, -7.0, -126)] {
        let widen = Case::new(&format!("cvt.f32.{t}"), 1);
        let ftz = if t == "bf16" { ".ftz" } else { "" };
        let rows =
            [(Case::new(&format!("tanh.approx.{t}"), 1), true), (Case::new(&format!("ex2.approx{ftz}.{t}"), 1), false)];
        let all: Vec<Vec<u128>> = (0..1 << 16).map(|x| vec![x]).collect();
        for chunk in all.chunks(32) {
            let xs = widen.warp(chunk);
            for (case, is_tanh) in &rows {
                let out = case.warp(chunk);
                let ys = widen.warp(&out);
                for (x, y) in xs.iter().zip(&ys) {
                    let (x, y) = (f64::from(f32::from_bits(x[0] as u32)), f64::from(f32::from_bits(y[0] as u32)));
                    if x.is_nan() {
                        assert!(y.is_nan());
                        continue;
                    }
                    if *is_tanh {
                        assert!((y - x.tanh()).abs() <= tanh.exp2(), "tanh {x}: {y}");
                    } else {
                        let want = x.exp2();
                        let normal = want >= 2_f64.powi(smallest) && y.is_finite();
                        assert!(!normal || (y - want).abs() <= want * ex2.exp2(), "ex2 {x}: {y}");
                    }
                }
            }
        }
    }
}
