//! Video instructions, by hand from the manual's pseudocode.

use crate::harness::{Case, variant, widths};
use margay_isa::{Parts, Variant};

/// The constant for a selector such as `b2`, `h10`; 0 for none.
fn sel(parts: Parts, text: &str) -> u128 {
    if text.is_empty() { 0 } else { u128::from(parts.parse(text).unwrap().code()) }
}

const A: u128 = 0x80ff_7f01;
const B: u128 = 0x0102_fe80;
const C: u128 = 0x1122_3344;

/// A row by mnemonic and the number of its plain operands.
fn case(text: &str, operands: usize) -> Case {
    let v: Variant = variant(text, operands);
    let (src, dst) = widths(&v);
    Case::with(v, &src, &dst)
}

#[test]
fn scalar_with_selectors() {
    let one = |t: &str| sel(Parts::One, t);
    let plain = |text: &str, a: &str, b: &str| case(text, 2).one(&[A, one(a), B, one(b)]);
    // b3 of A is -128, h0 of B is -384.
    assert_eq!(plain("vadd.s32.s32.s32", "b3", "h0"), 0xffff_fe00);
    // 128 + 65152.
    assert_eq!(plain("vadd.s32.u32.u32", "b3", "h0"), 128 + 65152);
    // -128 - 1 does not fit an unsigned destination.
    assert_eq!(plain("vsub.u32.s32.s32.sat", "b3", "b3"), 0);
    assert_eq!(plain("vabsdiff.s32.s32.s32", "b3", "b0"), 0);
    assert_eq!(plain("vmin.s32.u32.s32", "b3", "b0"), 0xffff_ff80);
    assert_eq!(plain("vmax.s32.u32.s32", "b3", "b0"), 0x80);
    // Words are extended to 33 bits, so that a sum saturates.
    assert_eq!(case("vadd.s32.u32.u32.sat", 2).one(&[0xffff_ffff, 0, 1, 0]), 0x7fff_ffff);
    assert_eq!(case("vshl.u32.u32.u32.sat.clamp", 2).one(&[3, 0, 31, 0]), 0xffff_ffff);
    assert_eq!(case("vshl.u32.u32.u32.clamp", 2).one(&[3, 0, 31, 0]), 0x8000_0000);
    assert_eq!(case("vshr.s32.s32.u32.clamp", 2).one(&[0x8000_0000, 0, 40, 0]), 0xffff_ffff);
    assert_eq!(case("vshr.s32.s32.u32.wrap", 2).one(&[0x8000_0000, 0, 33, 0]), 0xc000_0000);
    assert_eq!(plain("vset.s32.u32.lt", "b3", "b0"), 1);
    assert_eq!(plain("vset.u32.u32.lt", "b3", "b0"), 0);
}

#[test]
fn second_operation_and_merge() {
    let one = |t: &str| sel(Parts::One, t);
    let second = |text: &str| case(text, 3).one(&[A, one("b3"), B, one("b3"), C]);
    assert_eq!(second("vadd.s32.s32.s32.add"), C - 127);
    assert_eq!(second("vadd.s32.s32.s32.min"), 0xffff_ff81);
    assert_eq!(second("vadd.s32.s32.s32.max"), C);
    let merge = |text: &str, d: &str| {
        let v = merged(text);
        let (src, dst) = widths(&v);
        assert_eq!(src.len(), 6);
        Case::with(v, &src, &dst).one(&[one(d), A, one("b3"), B, one("h0"), C])
    };
    // -128 + -384 = -512.
    assert_eq!(merge("vadd.s32.s32.s32", "b1"), 0x1122_0044);
    assert_eq!(merge("vadd.s32.s32.s32.sat", "b1"), 0x1122_8044);
    assert_eq!(merge("vadd.s32.s32.s32", "h1"), 0xfe00_3344);
    assert_eq!(merge("vadd.s32.s32.s32", ""), 0xffff_fe00);
}

/// The form with a selector on the destination, which the words alone do not distinguish from the plain one.
fn merged(text: &str) -> Variant {
    let (name, words) = text.split_once('.').unwrap();
    let op = margay_isa::Opcode::from_name(name).unwrap();
    let words: Vec<_> = words.split('.').map(|w| margay_isa::Word::from_name(w).unwrap()).collect();
    margay_isa::resolve(op, &words, |v| v.operands().next().is_some_and(|d| d.parts.is_some())).unwrap().variant
}

#[test]
fn multiply_and_add() {
    let minus = 1 << 31;
    let mad =
        |text: &str, a: [u128; 2], b: [u128; 2], c: [u128; 2]| case(text, 3).one(&[a[0], a[1], b[0], b[1], c[0], c[1]]);
    assert_eq!(mad("vmad.u32.u32.u32", [7, 0], [9, 0], [5, 0]), 68);
    assert_eq!(mad("vmad.s32.s32.s32", [7, minus], [9, 0], [5, 0]), 0xffff_ffff - 57);
    assert_eq!(mad("vmad.s32.s32.s32", [7, minus], [9, minus], [5, 0]), 68);
    assert_eq!(mad("vmad.s32.u32.u32", [7, 0], [9, 0], [5, minus]), 58);
    assert_eq!(mad("vmad.s32.s32.s32.sat", [0x7fff_ffff, 0], [2, 0], [0, 0]), 0x7fff_ffff);
    assert_eq!(mad("vmad.u32.u32.u32.shr15", [0x8000, 0], [5, 0], [0x8000, 0]), 6);
    // Without a sign on any operand the plus-one form has no constant after `c`.
    assert_eq!(case("vmad.u32.u32.u32.po.shr7", 3).one(&[127, 0, 1, 0, 0]), 1);
}

#[test]
fn pairs_and_quads() {
    let simd2 = |text: &str, d: &str, a: &str, b: &str| {
        case(text, 3).one(&[sel(Parts::HalfMask, d), A, sel(Parts::Halves, a), B, sel(Parts::Halves, b), C])
    };
    // A = (-32513, 32513), B = (258, -384).
    assert_eq!(simd2("vadd2.s32.s32.s32", "", "", ""), 0x8201_7d81);
    assert_eq!(simd2("vadd2.s32.s32.s32", "h0", "", ""), 0x1122_7d81);
    assert_eq!(simd2("vsub2.s32.s32.s32.sat", "", "", ""), 0x8000_7fff);
    assert_eq!(simd2("vmax2.s32.s32.s32", "", "h00", "h33"), 0x7f01_7f01);
    assert_eq!(simd2("vadd2.s32.s32.s32.add", "", "", ""), C - 126);
    // The average of -1 and -2 rounds down; that of 1 and 2 rounds up.
    let average = case("vavrg2.s32.s32.s32", 3);
    assert_eq!(average.one(&[0, 0xffff_0001, 0, 0xfffe_0002, 0, 0]), 0xfffe_0002);
    let simd4 = |text: &str, d: &str, a: &str, b: &str| {
        case(text, 3).one(&[sel(Parts::ByteMask, d), A, sel(Parts::Bytes, a), B, sel(Parts::Bytes, b), C])
    };
    assert_eq!(simd4("vadd4.u32.u32.u32", "", "", ""), 0x8101_7d81);
    assert_eq!(simd4("vadd4.u32.u32.u32.sat", "b20", "", ""), 0x11ff_3381);
    assert_eq!(simd4("vset4.u32.u32.gt", "", "", ""), 0x0101_0000);
    assert_eq!(simd4("vset4.u32.u32.gt.add", "", "", ""), C + 2);
    assert_eq!(simd4("vabsdiff4.s32.s32.s32", "", "b7777", "b0123"), simd4_by_hand());
}

/// |1 - byte i of A|, bytes of A taken in the other order: 1, 127, -1, -128 from the lowest element's `b3` on.
fn simd4_by_hand() -> u128 {
    let elements = [-128_i64, -1, 127, 1];
    elements.iter().enumerate().fold(0, |d, (i, x)| d | (((1 - x).unsigned_abs() as u128 & 0xff) << (8 * i)))
}
