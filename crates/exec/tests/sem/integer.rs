//! Integer arithmetic, extended precision, bit fields, logic, shifts: the manual's own definitions, bit by bit.

use crate::harness::{Case, edges, pairs, triples};

/// A number of a width as a signed or unsigned value.
fn value(x: u128, bits: u32, signed: bool) -> i128 {
    if signed { (x << (128 - bits)) as i128 >> (128 - bits) } else { x as i128 }
}

fn cut(x: i128, bits: u32) -> u128 {
    x as u128 & ((1 << bits) - 1)
}

const TYPES: [(&str, u32, bool); 6] = [
    ("u16", 16, false),
    ("s16", 16, true),
    ("u32", 32, false),
    ("s32", 32, true),
    ("u64", 64, false),
    ("s64", 64, true),
];

#[test]
fn sums_products_and_extremes() {
    for (t, bits, signed) in TYPES {
        let val = |x: u128| value(x, bits, signed);
        let two = || pairs(&edges(bits));
        let case = |name: &str| Case::new(&format!("{name}.{t}"), 2);
        case("add").check(two(), |x| cut(val(x[0]) + val(x[1]), bits));
        case("sub").check(two(), |x| cut(val(x[0]) - val(x[1]), bits));
        case("min").check(two(), |x| cut(val(x[0]).min(val(x[1])), bits));
        case("max").check(two(), |x| cut(val(x[0]).max(val(x[1])), bits));
        // The product of two unsigned 64-bit numbers fits 128 bits as bits.
        let product = |x: &[u128]| if signed { (val(x[0]) * val(x[1])) as u128 } else { x[0] * x[1] };
        case("mul.lo").check(two(), |x| product(x) & ((1 << bits) - 1));
        case("mul.hi").check(two(), |x| product(x) >> bits & ((1 << bits) - 1));
        if bits < 64 {
            case("mul.wide").check(two(), |x| product(x) & ((1 << (2 * bits)) - 1));
        }
        case("div").check(two(), |x| if x[1] == 0 { (1 << bits) - 1 } else { cut(val(x[0]) / val(x[1]), bits) });
        case("rem").check(two(), |x| if x[1] == 0 { (1 << bits) - 1 } else { cut(val(x[0]) % val(x[1]), bits) });
        let three = || triples(&edges(bits));
        let case3 = |name: &str| Case::new(&format!("{name}.{t}"), 3);
        case3("sad").check(three(), |x| cut(val(x[2]) + (val(x[0]) - val(x[1])).abs(), bits));
        case3("mad.lo").check(three(), |x| product(x).wrapping_add(x[2]) & ((1 << bits) - 1));
        case3("mad.hi").check(three(), |x| (product(x) >> bits).wrapping_add(x[2]) & ((1 << bits) - 1));
        if signed {
            let one = || edges(bits).into_iter().map(|x| vec![x]);
            Case::new(&format!("abs.{t}"), 1).check(one(), |x| cut(val(x[0]).abs(), bits));
            Case::new(&format!("neg.{t}"), 1).check(one(), |x| cut(-val(x[0]), bits));
        }
    }
}
