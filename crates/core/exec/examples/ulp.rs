//! Measures the approximate instructions over all single-precision numbers (or every `STRIDE`th, the first argument): the largest
//! error of each, in the measure and beside the bound of the manual. The reference is the host's double precision.
//!
//! `cargo run --release -p margay-exec --example ulp [STRIDE]`

use margay_exec::{
    LANES, Row,
    sem::{PureFn, pure},
};
use margay_isa::{Opcode, Variant, Word, resolve};

use std::f64::consts::TAU;

/// How an error is measured.
enum Bound {
    /// Relative to the value.
    Relative(f64),
    /// As it is, for operands of at most this magnitude.
    Absolute(f64, f64),
    /// In units of the last place of the correctly rounded result.
    Ulp(f64),
    /// As it is between 1/2 and 2, else relative.
    Logarithm(f64),
}

struct Row32 {
    mnemonic: &'static str,
    reference: fn(f64) -> f64,
    bounds: &'static [Bound],
}

const ROWS: &[Row32] = &[
    Row32 { mnemonic: "rcp.approx.f32", reference: |x| 1.0 / x, bounds: &[Bound::Ulp(1.0)] },
    Row32 { mnemonic: "sqrt.approx.f32", reference: f64::sqrt, bounds: &[Bound::Relative(-23.0)] },
    Row32 { mnemonic: "rsqrt.approx.f32", reference: |x| 1.0 / x.sqrt(), bounds: &[Bound::Relative(-22.9)] },
    Row32 {
        mnemonic: "sin.approx.f32",
        reference: f64::sin,
        bounds: &[Bound::Absolute(-20.5, TAU), Bound::Absolute(-14.7, 50.0 * TAU)],
    },
    Row32 {
        mnemonic: "cos.approx.f32",
        reference: f64::cos,
        bounds: &[Bound::Absolute(-20.5, TAU), Bound::Absolute(-14.7, 50.0 * TAU)],
    },
    Row32 { mnemonic: "lg2.approx.f32", reference: f64::log2, bounds: &[Bound::Logarithm(-22.0)] },
    Row32 { mnemonic: "ex2.approx.f32", reference: f64::exp2, bounds: &[Bound::Ulp(2.0)] },
    Row32 { mnemonic: "tanh.approx.f32", reference: f64::tanh, bounds: &[Bound::Relative(-11.0)] },
];

fn variant(text: &str) -> Variant {
    let mut words = text.split('.');
    let op = words.next().and_then(Opcode::from_name).expect("an opcode of the table");
    let words: Vec<Word> = words.filter_map(Word::from_name).collect();
    resolve(op, &words, |_| true).expect("a row of the table").variant
}

/// One unit in the last place at a single-precision number.
fn unit(x: f32) -> f64 {
    let exp = (x.to_bits() >> 23 & 0xff).max(1) as i32;
    2_f64.powi(exp - 150)
}

impl Bound {
    /// The error of `got`, or nothing where the bound says nothing.
    fn error(&self, x: f32, got: f32, want: f64) -> Option<f64> {
        if !want.is_finite() || !got.is_finite() || !x.is_finite() {
            return None;
        }
        let error = (f64::from(got) - want).abs();
        match self {
            // A relative error below the smallest normal number would measure the format.
            Bound::Relative(_) => (want.abs() >= 2_f64.powi(-126)).then(|| error / want.abs()),
            Bound::Absolute(_, limit) => (f64::from(x.abs()) <= *limit).then_some(error),
            Bound::Ulp(_) => Some(error / unit(want as f32)),
            Bound::Logarithm(_) if x > 0.5 && x < 2.0 => Some(error),
            Bound::Logarithm(_) => (want != 0.0).then(|| error / want.abs()),
        }
    }

    fn limit(&self) -> f64 {
        match self {
            Bound::Relative(e) | Bound::Absolute(e, _) | Bound::Logarithm(e) => e.exp2(),
            Bound::Ulp(u) => *u,
        }
    }

    fn describe(&self, error: f64) -> String {
        match self {
            Bound::Ulp(limit) => format!("{error:.4} ulp (bound {limit})"),
            Bound::Relative(e) | Bound::Logarithm(e) => format!("2^{:.2} relative (bound 2^{e})", error.log2()),
            Bound::Absolute(e, limit) => format!("2^{:.2} absolute up to {limit:.1} (bound 2^{e})", error.log2()),
        }
    }
}

fn main() {
    let stride: u64 = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(1);
    let mut bad = false;
    for row in ROWS {
        let v = variant(row.mnemonic);
        let f: PureFn = pure(&v, &[32], &[32]).expect("every row of the table has semantics");
        let mut worst = vec![(0.0_f64, 0.0_f32); row.bounds.len()];
        let mut at: u64 = 0;
        while at < 1 << 32 {
            let input = Row(std::array::from_fn(|i| (at + i as u64 * stride) as u32));
            let mut out = [Row([0; LANES])];
            f(&v, u32::MAX, &[&[input]], &mut out);
            for (x, y) in input.0.into_iter().zip(out[0].0) {
                let (x, y) = (f32::from_bits(x), f32::from_bits(y));
                let want = (row.reference)(f64::from(x));
                for (bound, worst) in row.bounds.iter().zip(&mut worst) {
                    if let Some(e) = bound.error(x, y, want)
                        && e > worst.0
                    {
                        *worst = (e, x);
                    }
                }
            }
            at += LANES as u64 * stride;
        }
        for (bound, (error, x)) in row.bounds.iter().zip(&worst) {
            let mark = if *error <= bound.limit() { "" } else { "  EXCEEDED" };
            bad |= *error > bound.limit();
            println!("{:<18} {} at {x:e}{mark}", row.mnemonic, bound.describe(*error));
        }
    }
    if bad {
        std::process::exit(1);
    }
}
