//! `setp`, `set`, `selp`, `slct`: every operator on every type, by section 9.3.1.

use crate::{
    float::{edges, flush},
    harness::{self, Case, pairs},
};
use rustc_apfloat::{
    Float,
    ieee::{BFloat, Double, Half, Single},
};
use std::cmp::Ordering;

const INT: [&str; 6] = ["eq", "ne", "lt", "le", "gt", "ge"];
const FLOAT: [&str; 14] = ["eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"];

/// What an operator says of an order (`None` for unordered).
fn holds(op: &str, order: Option<Ordering>) -> bool {
    let Some(order) = order else { return op.ends_with('u') || op == "nan" };
    match op {
        "eq" | "equ" => order.is_eq(),
        "ne" | "neu" => order.is_ne(),
        "lt" | "ltu" | "lo" => order.is_lt(),
        "le" | "leu" | "ls" => order.is_le(),
        "gt" | "gtu" | "hi" => order.is_gt(),
        "ge" | "geu" | "hs" => order.is_ge(),
        "num" => true,
        _ => false,
    }
}

/// All forms of `setp` with one operator on one type.
fn check_setp(op: &str, ftz: &str, t: &str, inputs: &[Vec<u128>], order: &dyn Fn(u128, u128) -> Option<Ordering>) {
    let want = |x: &[u128]| holds(op, order(x[0], x[1]));
    let v = harness::variant(&format!("setp.{op}{ftz}.{t}"), 2);
    let (src, _) = harness::widths(&v);
    // With one destination, and with two.
    Case::with(v.clone(), &src, &[1]).check(inputs.to_vec(), |x| want(x).into());
    // Comparisons of scalar halves have no second destination.
    let two = v.operands().next().is_some_and(|p| p.pair.is_some());
    let both = Case::with(v, &src, &[1, 1]);
    for chunk in inputs.chunks(32) {
        for (x, out) in chunk.iter().zip(both.warp(chunk)) {
            assert_eq!(out, [u128::from(want(x)), u128::from(!want(x))], "setp.{op}{ftz}.{t} {x:x?}");
        }
    }
    for (name, f) in BOOL {
        for c in [false, true] {
            let case = Case::new(&format!("setp.{op}.{name}{ftz}.{t}"), 3);
            let with_c: Vec<Vec<u128>> = inputs.iter().map(|x| vec![x[0], x[1], c.into()]).collect();
            for chunk in with_c.chunks(32) {
                for (x, out) in chunk.iter().zip(case.warp(chunk)) {
                    let both = [u128::from(f(want(x), c)), u128::from(f(!want(x), c))];
                    assert_eq!(out, both[..1 + usize::from(two)], "setp.{op}.{name} {x:x?}");
                }
            }
        }
    }
}

type Combine = fn(bool, bool) -> bool;

const BOOL: [(&str, Combine); 3] = [("and", |a, b| a & b), ("or", |a, b| a | b), ("xor", |a, b| a ^ b)];

fn float_order<F: Float>(ftz: bool) -> impl Fn(u128, u128) -> Option<Ordering> {
    move |a, b| {
        let read = |x| if ftz { flush(F::from_bits(x)) } else { F::from_bits(x) };
        read(a).partial_cmp(&read(b))
    }
}

#[test]
fn setp_of_integers() {
    for (t, bits, signed) in [
        ("u16", 16, false),
        ("s16", 16, true),
        ("b16", 16, false),
        ("u32", 32, false),
        ("s32", 32, true),
        ("b32", 32, false),
        ("u64", 64, false),
        ("s64", 64, true),
        ("b64", 64, false),
    ] {
        let value = |x: u128| if signed { (x << (128 - bits)) as i128 >> (128 - bits) } else { x as i128 };
        let ops: Vec<&str> = match &t[..1] {
            "b" => vec!["eq", "ne"],
            "u" => INT.into_iter().chain(["lo", "ls", "hi", "hs"]).collect(),
            _ => INT.to_vec(),
        };
        for op in ops {
            check_setp(op, "", t, &pairs(&harness::edges(bits)), &|a, b| Some(value(a).cmp(&value(b))));
        }
    }
}

#[test]
fn setp_of_floats() {
    for op in FLOAT {
        check_setp(op, "", "f32", &pairs(&edges::<Single>()), &float_order::<Single>(false));
        check_setp(op, ".ftz", "f32", &pairs(&edges::<Single>()), &float_order::<Single>(true));
        check_setp(op, "", "f64", &pairs(&edges::<Double>()), &float_order::<Double>(false));
        check_setp(op, "", "f16", &pairs(&edges::<Half>()), &float_order::<Half>(false));
        check_setp(op, ".ftz", "f16", &pairs(&edges::<Half>()), &float_order::<Half>(true));
        check_setp(op, "", "bf16", &pairs(&edges::<BFloat>()), &float_order::<BFloat>(false));
    }
}

/// For packed types `p` is the first element's result, `q` the second's; neither is complemented.
#[test]
fn setp_of_packed_halves() {
    for op in FLOAT {
        for (t, order) in [
            ("f16x2", Box::new(float_order::<Half>(false)) as Box<dyn Fn(u128, u128) -> Option<Ordering>>),
            ("bf16x2", Box::new(float_order::<BFloat>(false))),
        ] {
            let case = Case::new(&format!("setp.{op}.or.{t}"), 3);
            let list: Vec<u128> = [0x3c00, 0x7e01, 0x8000, 0, 0xfc00, 0x0001, 0x3f80].to_vec();
            for x in pairs(&list) {
                for y in pairs(&list[..4]) {
                    let out = case.all(&[x[0] | y[0] << 16, x[1] | y[1] << 16, 0]);
                    let want = [holds(op, order(x[0], x[1])), holds(op, order(y[0], y[1]))].map(u128::from);
                    assert_eq!(out, want, "setp.{op}.{t} {x:x?} {y:x?}");
                }
            }
        }
    }
}

#[test]
fn set_writes_ones_or_one() {
    let f32s = pairs(&edges::<Single>());
    for (d, one) in [("u32", 0xffff_ffff), ("s32", 0xffff_ffff), ("f32", 0x3f80_0000)] {
        for op in FLOAT {
            let order = float_order::<Single>(false);
            Case::new(&format!("set.{op}.{d}.f32"), 2)
                .check(f32s.clone(), |x| if holds(op, order(x[0], x[1])) { one } else { 0 });
        }
        for op in INT {
            Case::new(&format!("set.{op}.{d}.s64"), 2).check(pairs(&harness::edges(64)), |x| {
                if holds(op, Some((x[0] as i64).cmp(&(x[1] as i64)))) { one } else { 0 }
            });
        }
    }
    let order = float_order::<Half>(false);
    for (d, one) in [("u16", 0xffff), ("s16", 0xffff), ("u32", 0xffff_ffff), ("f16", 0x3c00)] {
        Case::new(&format!("set.ltu.xor.{d}.f16"), 3).check(
            pairs(&edges::<Half>()).into_iter().map(|x| vec![x[0], x[1], 1]),
            |x| {
                if holds("ltu", order(x[0], x[1])) { 0 } else { one }
            },
        );
    }
    assert_eq!(Case::new("set.gt.bf16.f32", 2).one(&[0x4000_0000, 0x3f80_0000]), 0x3f80);
    // Packed sources: each half its own truth.
    assert_eq!(Case::new("set.lt.f16x2.f16x2", 2).one(&[0x3c00_4000, 0x4000_3c00]), 0x3c00_0000);
    assert_eq!(Case::new("set.ge.u32.bf16x2", 2).one(&[0x3f80_4000, 0x4000_3f80]), 0x0000_ffff);
    assert_eq!(Case::new("set.neu.and.bf16x2.bf16x2", 3).one(&[0x3f80_7fff, 0x3f80_3f80, 1]), 0x0000_3f80);
    // A wider destination repeats a signed truth's sign.
    assert_eq!(Case::sized("set.eq.s32.u32", &[32, 32], &[64]).one(&[1, 1]), u128::from(u64::MAX));
    assert_eq!(Case::sized("set.eq.u32.u32", &[32, 32], &[64]).one(&[1, 1]), 0xffff_ffff);
}

#[test]
fn selections() {
    for (t, a, b) in
        [("b16", 0x1234, 0x8765), ("f32", 0x7fc0_0001, 1), ("u64", 1 << 63, 2), ("f64", 3, 0x7ff0_0000_0000_0001)]
    {
        Case::new(&format!("selp.{t}"), 3).check([vec![a, b, 0], vec![a, b, 1]], |x| if x[2] != 0 { a } else { b });
        let signed = [0, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff];
        Case::new(&format!("slct.{t}.s32"), 3)
            .check(signed.map(|c| vec![a, b, c]), |x| if x[2] >> 31 == 0 { a } else { b });
        // -0 counts as zero, a NaN selects b, a flushed subnormal selects a.
        let floats = [
            (0, true),
            (0x8000_0000, true),
            (0x8000_0001, false),
            (0x7fc0_0000, false),
            (0x7f80_0000, true),
            (0xff80_0000, false),
        ];
        for (c, first) in floats {
            assert_eq!(Case::new(&format!("slct.{t}.f32"), 3).one(&[a, b, c]), if first { a } else { b });
        }
        assert_eq!(Case::new(&format!("slct.ftz.{t}.f32"), 3).one(&[a, b, 0x8000_0001]), a);
    }
}
