//! Integer arithmetic, extended precision, bit fields, logic, shifts: the manual's own definitions, bit by bit.

use crate::harness::{Case, Random, cut, edges, pairs, triples, value};

fn ones(bits: u32) -> u128 {
    (1 << bits) - 1
}

fn singles(values: Vec<u128>) -> Vec<Vec<u128>> {
    values.into_iter().map(|x| vec![x]).collect()
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
        case("mul.lo").check(two(), |x| product(x) & ones(bits));
        case("mul.hi").check(two(), |x| product(x) >> bits & ones(bits));
        // "Unspecified" for zero: what ptxas folds.
        case("div").check(two(), |x| if x[1] == 0 { ones(bits) } else { cut(val(x[0]) / val(x[1]), bits) });
        case("rem").check(two(), |x| if x[1] == 0 { ones(bits) } else { cut(val(x[0]) % val(x[1]), bits) });
        let three = || triples(&edges(bits));
        let case3 = |name: &str| Case::new(&format!("{name}.{t}"), 3);
        case3("sad").check(three(), |x| cut(val(x[2]) + (val(x[0]) - val(x[1])).abs(), bits));
        case3("mad.lo").check(three(), |x| product(x).wrapping_add(x[2]) & ones(bits));
        case3("mad.hi").check(three(), |x| (product(x) >> bits).wrapping_add(x[2]) & ones(bits));
        if bits < 64 {
            case("mul.wide").check(two(), |x| product(x) & ones(2 * bits));
            case3("mad.wide").check(three(), |x| product(x).wrapping_add(x[2]) & ones(2 * bits));
        }
        if signed {
            let one = || singles(edges(bits));
            Case::new(&format!("abs.{t}"), 1).check(one(), |x| cut(val(x[0]).abs(), bits));
            Case::new(&format!("neg.{t}"), 1).check(one(), |x| cut(-val(x[0]), bits));
        }
    }
}

#[test]
fn saturation() {
    let clamp = |x: i128| cut(x.clamp(i32::MIN.into(), i32::MAX.into()), 32);
    let val = |x: u128| value(x, 32, true);
    Case::new("add.sat.s32", 2).check(pairs(&edges(32)), |x| clamp(val(x[0]) + val(x[1])));
    Case::new("sub.sat.s32", 2).check(pairs(&edges(32)), |x| clamp(val(x[0]) - val(x[1])));
    Case::new("mad.hi.sat.s32", 3).check(triples(&edges(32)), |x| clamp(((val(x[0]) * val(x[1])) >> 32) + val(x[2])));
    Case::new("min.relu.s32", 2).check(pairs(&edges(32)), |x| cut(val(x[0]).min(val(x[1])).max(0), 32));
    Case::new("max.relu.s32", 2).check(pairs(&edges(32)), |x| cut(val(x[0]).max(val(x[1])).max(0), 32));
}

#[test]
fn products_of_24_bits() {
    for (t, signed) in [("u32", false), ("s32", true)] {
        let val = |x: u128| value(x & 0xff_ffff, 24, signed);
        let name = |op: &str| format!("{op}.{t}");
        let product = |x: &[u128]| val(x[0]) * val(x[1]);
        Case::new(&name("mul24.lo"), 2).check(pairs(&edges(32)), |x| cut(product(x), 32));
        Case::new(&name("mul24.hi"), 2).check(pairs(&edges(32)), |x| cut(product(x) >> 16, 32));
        Case::new(&name("mad24.lo"), 3).check(triples(&edges(32)), |x| cut(product(x) + x[2] as i128, 32));
        Case::new(&name("mad24.hi"), 3).check(triples(&edges(32)), |x| cut((product(x) >> 16) + x[2] as i128, 32));
    }
    Case::new("mad24.hi.sat.s32", 3).check(triples(&edges(32)), |x| {
        let val = |x: u128| value(x & 0xff_ffff, 24, true);
        let sum = ((val(x[0]) * val(x[1])) >> 16) + value(x[2], 32, true);
        cut(sum.clamp(i32::MIN.into(), i32::MAX.into()), 32)
    });
}

#[test]
fn packed_halves() {
    let halves = |f: &dyn Fn(i128, i128) -> i128, signed: bool, x: &[u128]| {
        let part = |k: usize, s: u32| value(x[k] >> s & 0xffff, 16, signed);
        cut(f(part(0, 0), part(1, 0)), 16) | cut(f(part(0, 16), part(1, 16)), 16) << 16
    };
    for (t, signed) in [("u16x2", false), ("s16x2", true)] {
        let case = |op: &str| Case::new(&format!("{op}.{t}"), 2);
        case("add").check(pairs(&edges(32)), |x| halves(&|a, b| a + b, signed, x));
        case("min").check(pairs(&edges(32)), |x| halves(&|a, b| a.min(b), signed, x));
        case("max").check(pairs(&edges(32)), |x| halves(&|a, b| a.max(b), signed, x));
    }
    Case::new("min.relu.s16x2", 2).check(pairs(&edges(32)), |x| halves(&|a, b| a.min(b).max(0), true, x));
    Case::new("max.relu.s16x2", 2).check(pairs(&edges(32)), |x| halves(&|a, b| a.max(b).max(0), true, x));
}

#[test]
fn carries_chain() {
    for (t, bits, signed) in [("u32", 32, false), ("s32", 32, true), ("u64", 64, false), ("s64", 64, true)] {
        let mut inputs = pairs(&edges(bits));
        let mut random = Random(7);
        inputs.extend(
            (0..500).map(|_| vec![u128::from(random.next()) & ones(bits), u128::from(random.next()) & ones(bits)]),
        );
        let product = |x: &[u128], high: bool| {
            let p = if signed { (value(x[0], bits, true) * value(x[1], bits, true)) as u128 } else { x[0] * x[1] };
            if high { p >> bits & ones(bits) } else { p & ones(bits) }
        };
        for x in inputs {
            let (a, b) = (x[0], x[1]);
            let sum = a + b;
            // The carry that is read counts as no operand of the mnemonic.
            let check = |name: &str, sources: &[u128], want: u128, out: bool| {
                let reads = ["addc", "subc", "madc"].iter().any(|c| name.starts_with(c));
                let case = Case::new(&format!("{name}.{t}"), sources.len() - usize::from(reads));
                let got = case.all(sources);
                assert_eq!(got[0], want & ones(bits), "{name}.{t} {sources:x?}");
                if out {
                    assert_eq!(got[1], want >> bits & 1, "carry of {name}.{t} {sources:x?}");
                }
            };
            check("add.cc", &[a, b], sum, true);
            // The flag of a subtraction is the adder's carry: a + ~b + 1, as ptxas 13.5 compiles it (IADD3 with a predicate).
            let minus_b = b ^ ones(bits);
            check("sub.cc", &[a, b], a + minus_b + 1, true);
            for carry in [0, 1] {
                check("addc", &[a, b, carry], sum + carry, false);
                check("addc.cc", &[a, b, carry], sum + carry, true);
                check("subc", &[a, b, carry], a + minus_b + carry, false);
                check("subc.cc", &[a, b, carry], a + minus_b + carry, true);
                for (half, high) in [("lo", false), ("hi", true)] {
                    let c = b ^ a >> 1;
                    let p = product(&x, high) + c;
                    check(&format!("mad.{half}.cc"), &[a, b, c], p, true);
                    check(&format!("madc.{half}"), &[a, b, c, carry], p + carry, false);
                    check(&format!("madc.{half}.cc"), &[a, b, c, carry], p + carry, true);
                }
            }
        }
    }
}

/// The manual's loop for `bfe`.
fn bfe(a: u128, b: u128, c: u128, bits: u32, signed: bool) -> u128 {
    let (msb, pos, len) = (bits - 1, (b & 0xff) as u32, (c & 0xff) as u32);
    let bit = |i: u32| a >> i & 1;
    let sign = if !signed || len == 0 { 0 } else { bit((pos + len - 1).min(msb)) };
    (0..bits).fold(0, |d, i| d | (if i < len && pos + i <= msb { bit(pos + i) } else { sign }) << i)
}

#[test]
fn bit_fields() {
    let amounts = [0, 1, 5, 16, 31, 32, 33, 63, 64, 65, 200, 255, 256, 0x1_0004];
    let inputs = |bits| -> Vec<Vec<u128>> {
        let list = edges(bits);
        list.iter().flat_map(|a| pairs(&amounts).into_iter().map(move |p| vec![*a, p[0], p[1]])).collect()
    };
    for (t, bits, signed) in [("u32", 32, false), ("s32", 32, true), ("u64", 64, false), ("s64", 64, true)] {
        Case::new(&format!("bfe.{t}"), 3).check(inputs(bits), |x| bfe(x[0], x[1], x[2], bits, signed));
        Case::new(&format!("bfind.{t}"), 1).check(singles(edges(bits)), |x| {
            let a = if signed && x[0] >> (bits - 1) != 0 { !x[0] & ones(bits) } else { x[0] };
            (0..bits).rev().find(|i| a >> i & 1 != 0).map_or(0xffff_ffff, u128::from)
        });
        Case::new(&format!("bfind.shiftamt.{t}"), 1).check(singles(edges(bits)), |x| {
            let a = if signed && x[0] >> (bits - 1) != 0 { !x[0] & ones(bits) } else { x[0] };
            (0..bits).rev().find(|i| a >> i & 1 != 0).map_or(0xffff_ffff, |i| u128::from(bits - 1 - i))
        });
    }
    for bits in [32, 64] {
        let background = 0x5a5a_a5a5_0ff0_3cc3 & ones(bits);
        let with_b = inputs(bits).into_iter().map(|x| vec![x[0], background, x[1], x[2]]);
        Case::new(&format!("bfi.b{bits}"), 4).check(with_b, |x| {
            let (pos, len) = ((x[2] & 0xff) as u32, (x[3] & 0xff) as u32);
            (0..len)
                .take_while(|i| pos + i < bits)
                .fold(x[1], |f, i| f & !(1 << (pos + i)) | (x[0] >> i & 1) << (pos + i))
        });
        let one = || singles(edges(bits));
        Case::new(&format!("popc.b{bits}"), 1).check(one(), |x| u128::from(x[0].count_ones()));
        Case::new(&format!("clz.b{bits}"), 1).check(one(), |x| u128::from(x[0].leading_zeros() - (128 - bits)));
        Case::new(&format!("brev.b{bits}"), 1)
            .check(one(), |x| (0..bits).fold(0, |d, i| d | (x[0] >> (bits - 1 - i) & 1) << i));
    }
}

/// The manual's definition of `fns`.
fn fns(mask: u128, base: u128, offset: u128) -> u128 {
    let (base, offset) = (base as i64, i64::from(offset as u32 as i32));
    if offset == 0 {
        return if mask >> base & 1 != 0 { base as u128 } else { 0xffff_ffff };
    }
    let (mut pos, mut count, inc) = (base, offset.abs() - 1, offset.signum());
    while (0..32).contains(&pos) {
        if mask >> pos & 1 != 0 {
            if count == 0 {
                return pos as u128;
            }
            count -= 1;
        }
        pos += inc;
    }
    0xffff_ffff
}

#[test]
fn searching_and_masks() {
    let masks = [0, 1, 0xaaaa_aaaa, 0x8000_0000, 0xffff_ffff, 0x0010_0400];
    let mut inputs = Vec::new();
    for mask in masks {
        for base in [0, 1, 2, 3, 15, 30, 31] {
            for offset in [0, 1, 2, 3, 16, 32, 33, 0xffff_ffff, 0xffff_fffe, 0xffff_fff0, 0x8000_0000] {
                inputs.push(vec![mask, base, offset]);
            }
        }
    }
    Case::new("fns.b32", 3).check(inputs, |x| fns(x[0], x[1], x[2]));
    let two = || pairs(&edges(32));
    // The manual's formulas for `szext` and `bmsk`.
    for (mode, clamp) in [("clamp", true), ("wrap", false)] {
        for (t, signed) in [("u32", false), ("s32", true)] {
            Case::new(&format!("szext.{mode}.{t}"), 2).check(two(), |x| {
                let (a, b) = (x[0] as u32, x[1] as u32);
                let b1 = b & 0x1f;
                let too_large = b >= 32 && clamp;
                let mask = if too_large { 0 } else { u32::MAX << b1 };
                let sign_pos = b1.wrapping_sub(1) & 0x1f;
                let sign = b1 != 0 && !too_large && signed && a >> sign_pos & 1 != 0;
                u128::from(a & !mask | if sign { mask } else { 0 })
            });
        }
        Case::new(&format!("bmsk.{mode}.b32"), 2).check(two(), |x| {
            let (a, b) = (x[0] as u32, x[1] as u32);
            let (a1, b1) = (a & 0x1f, b & 0x1f);
            let sum = a1 + b1;
            let position = clamp && a >= 32;
            let mask0 = if position { 0 } else { u32::MAX << a1 };
            let over = sum >= 32 || position || clamp && b >= 32;
            let mask1 = if over {
                0
            } else if b1 == 0 {
                u32::MAX
            } else {
                u32::MAX << sum
            };
            u128::from(mask0 & !mask1)
        });
    }
}

#[test]
fn dot_products() {
    let inputs = triples(&[0, 1, 0x7f80_ff01, 0x8000_7fff, 0xffff_ffff, 0x0102_0304, 0x80ff_7f81]);
    for (ta, sa) in [("u32", false), ("s32", true)] {
        for (tb, sb) in [("u32", false), ("s32", true)] {
            let byte = |x: u128, i: u32, s: bool| value(x >> (8 * i) & 0xff, 8, s);
            let half = |x: u128, i: u32, s: bool| value(x >> (16 * i) & 0xffff, 16, s);
            Case::new(&format!("dp4a.{ta}.{tb}"), 3).check(inputs.clone(), |x| {
                cut(x[2] as i128 + (0..4).map(|i| byte(x[0], i, sa) * byte(x[1], i, sb)).sum::<i128>(), 32)
            });
            for (mode, first) in [("lo", 0), ("hi", 2)] {
                Case::new(&format!("dp2a.{mode}.{ta}.{tb}"), 3).check(inputs.clone(), |x| {
                    cut(x[2] as i128 + (0..2).map(|i| half(x[0], i, sa) * byte(x[1], first + i, sb)).sum::<i128>(), 32)
                });
            }
        }
    }
}

#[test]
fn logic() {
    for bits in [16, 32, 64] {
        let two = || pairs(&edges(bits));
        let one = || singles(edges(bits));
        Case::new(&format!("and.b{bits}"), 2).check(two(), |x| x[0] & x[1]);
        Case::new(&format!("or.b{bits}"), 2).check(two(), |x| x[0] | x[1]);
        Case::new(&format!("xor.b{bits}"), 2).check(two(), |x| x[0] ^ x[1]);
        Case::new(&format!("not.b{bits}"), 1).check(one(), |x| !x[0] & ones(bits));
        Case::new(&format!("cnot.b{bits}"), 1).check(one(), |x| u128::from(x[0] == 0));
    }
    let bits = pairs(&[0, 1]);
    Case::new("and.pred", 2).check(bits.clone(), |x| x[0] & x[1]);
    Case::new("or.pred", 2).check(bits.clone(), |x| x[0] | x[1]);
    Case::new("xor.pred", 2).check(bits, |x| x[0] ^ x[1]);
    Case::new("not.pred", 1).check(singles(vec![0, 1]), |x| 1 - x[0]);
    // Every truth table, on the words that define it.
    for lut in 0..256 {
        let case = Case::new("lop3.b32", 4);
        assert_eq!(case.one(&[0xf0, 0xcc, 0xaa, lut]) & 0xff, lut);
        for (op, or) in [("or", true), ("and", false)] {
            let case = Case::new(&format!("lop3.{op}.b32"), 5);
            for q in [0, 1] {
                let d = lut as u32;
                let nonzero = case.all(&[0xf0, 0xcc, 0xaa, lut, q]);
                let p = nonzero[0] != 0;
                assert_eq!(nonzero[0] as u32 & 0xff, d);
                assert_eq!(nonzero[1], u128::from(if or { p || q != 0 } else { p && q != 0 }));
            }
        }
    }
}

#[test]
fn shifts() {
    let amounts = [0, 1, 7, 15, 16, 17, 31, 32, 33, 63, 64, 65, 0x8000_0000, 0xffff_ffff];
    for (t, bits, signed) in TYPES.into_iter().chain([("b16", 16, false), ("b32", 32, false), ("b64", 64, false)]) {
        let inputs = || edges(bits).into_iter().flat_map(|a| amounts.map(|n| vec![a, n]));
        let by = |n: u128| n.min(u128::from(bits)) as u32;
        Case::new(&format!("shr.{t}"), 2).check(inputs(), |x| cut(value(x[0], bits, signed) >> by(x[1]), bits));
        if t.starts_with('b') {
            Case::new(&format!("shl.{t}"), 2).check(inputs(), |x| x[0] << by(x[1]) & ones(bits));
            // The same amount in all lanes takes another way.
            for n in amounts {
                let same = edges(bits).into_iter().map(|a| vec![a, n]);
                Case::new(&format!("shl.{t}"), 2).check(same, |x| x[0] << by(x[1]) & ones(bits));
            }
        }
    }
    let inputs = || pairs(&edges(32)).into_iter().flat_map(|p| amounts.map(|n| vec![p[0], p[1], n]));
    for (mode, clamp) in [("clamp", true), ("wrap", false)] {
        let n = |x: &[u128]| if clamp { x[2].min(32) } else { x[2] & 31 } as u32;
        let wide = |x: &[u128]| x[1] << 32 | x[0];
        Case::new(&format!("shf.l.{mode}.b32"), 3).check(inputs(), |x| wide(x) << n(x) >> 32 & ones(32));
        Case::new(&format!("shf.r.{mode}.b32"), 3).check(inputs(), |x| wide(x) >> n(x) & ones(32));
    }
}

#[test]
fn permutations() {
    // The manual's table: sources of d.b3 to d.b0 for selectors 0 to 3.
    let table: [(&str, [[u32; 4]; 4]); 6] = [
        ("f4e", [[3, 2, 1, 0], [4, 3, 2, 1], [5, 4, 3, 2], [6, 5, 4, 3]]),
        ("b4e", [[5, 6, 7, 0], [6, 7, 0, 1], [7, 0, 1, 2], [0, 1, 2, 3]]),
        ("rc8", [[0; 4], [1; 4], [2; 4], [3; 4]]),
        ("ecl", [[3, 2, 1, 0], [3, 2, 1, 1], [3, 2, 2, 2], [3, 3, 3, 3]]),
        ("ecr", [[0, 0, 0, 0], [1, 1, 1, 0], [2, 2, 1, 0], [3, 2, 1, 0]]),
        ("rc16", [[1, 0, 1, 0], [3, 2, 3, 2], [1, 0, 1, 0], [3, 2, 3, 2]]),
    ];
    let (a, b) = (0x8311_7fa2_u128, 0x00ff_9d44_u128);
    let source = b << 32 | a;
    for (mode, rows) in table {
        let case = Case::new(&format!("prmt.b32.{mode}"), 3);
        for (selector, bytes) in rows.iter().enumerate() {
            let want = bytes.iter().fold(0, |d, i| d << 8 | (source >> (8 * i) & 0xff));
            assert_eq!(case.one(&[a, b, 0xffff_fff0 | selector as u128]), want, "{mode} {selector}");
        }
    }
    let case = Case::new("prmt.b32", 3);
    let mut random = Random(3);
    for _ in 0..2000 {
        let c = u128::from(random.next() as u32);
        let byte = |i: u32| {
            let control = c >> (4 * i);
            let x = source >> (8 * (control & 7)) & 0xff;
            if control & 8 != 0 { if x & 0x80 != 0 { 0xff } else { 0 } } else { x }
        };
        let want = (0..4).fold(0, |d, i| d | byte(i) << (8 * i));
        assert_eq!(case.one(&[a, b, c]), want, "{c:x}");
    }
}
