//! `mov`: packs and unpacks, first element lowest; and the widths of registers around `cvt`.

use crate::harness::Case;

#[test]
fn packs_and_unpacks_in_every_shape() {
    let whole: u128 = 0x0123_4567_89ab_cdef_fedc_ba98_7654_3210;
    for (total, parts) in [(16, 2), (32, 2), (32, 4), (64, 2), (64, 4), (64, 8), (128, 2), (128, 4), (128, 8)] {
        let width = total / parts;
        let mask = (1u128 << width) - 1;
        let value = if total == 128 { whole } else { whole & ((1 << total) - 1) };
        let pieces: Vec<u128> = (0..parts).map(|i| value >> (width * i) & mask).collect();
        let elements = vec![width; parts as usize];
        // The mnemonic is that of a scalar move; the operands make it a pack or an unpack.
        let v = crate::harness::variant(&format!("mov.b{total}"), 1);
        let pack = Case::with(v.clone(), &elements, &[total]);
        assert_eq!(pack.one(&pieces), value, "pack {parts} into {total}");
        let unpack = Case::with(v, &[total], &elements);
        assert_eq!(unpack.all(&[value]), pieces, "unpack {total} into {parts}");
    }
}

#[test]
fn copies() {
    for (t, bits) in [("b16", 16), ("u32", 32), ("f32", 32), ("f64", 64), ("b128", 128), ("pred", 1)] {
        let value = 0x0123_4567_89ab_cdef_fedc_ba98_7654_3211 & if bits == 128 { u128::MAX } else { (1 << bits) - 1 };
        assert_eq!(Case::new(&format!("mov.{t}"), 1).one(&[value]), value);
    }
}

#[test]
fn registers_wider_than_the_type() {
    let garbage = 0xdead_beef_cafe_ff80;
    // (mnemonic, source register, destination register, source, result): section 9.4.1 and note 1 of section 6.5.1.
    let cases: [(&str, u32, u32, u128, u128); 15] = [
        ("cvt.u32.u8", 32, 32, garbage & 0xffff_ffff, 0x80),
        ("cvt.s32.s8", 32, 32, garbage & 0xffff_ffff, 0xffff_ff80),
        ("cvt.s32.s8", 64, 32, garbage, 0xffff_ff80),
        ("cvt.s16.u32", 32, 32, 0x0001_8000, 0xffff_8000),
        ("cvt.s16.u32", 32, 16, 0x0001_8000, 0x8000),
        ("cvt.u16.u32", 32, 64, 0x0001_8000, 0x8000),
        ("cvt.s8.s32", 32, 16, 0x1ff, 0xffff),
        ("cvt.s8.s32", 32, 64, 0x180, 0xffff_ffff_ffff_ff80),
        ("cvt.u8.s32", 32, 32, 0x180, 0x80),
        ("cvt.s64.s32", 32, 64, 0x8000_0000, 0xffff_ffff_8000_0000),
        ("cvt.u64.u32", 64, 64, garbage, 0xcafe_ff80),
        ("cvt.sat.s8.s32", 32, 32, 0xffff_0000, 0xffff_ff80),
        ("cvt.rzi.s16.f32", 32, 32, 0xc000_0000, 0xffff_fffe),
        ("cvt.f32.f16", 64, 32, 0xdead_beef_cafe_3c00, 0x3f80_0000),
        ("cvt.rn.f32.u8", 32, 32, 0xffff_ff03, 0x4040_0000),
    ];
    for (text, src, dst, input, want) in cases {
        let got = Case::sized(text, &[src], &[dst]).one(&[input]);
        assert_eq!(got, want, "{text} from {src} to {dst} bits: {got:#x}");
    }
}

#[test]
fn packed_conversions_take_wider_registers() {
    let one = 0xdead_beef_3f80_0000;
    assert_eq!(Case::sized("cvt.rn.f16x2.f32", &[64, 32], &[32]).one(&[one, 0x4000_0000]), 0x3c00_4000);
    assert_eq!(Case::sized("cvt.rn.bf16x2.f32", &[64, 64], &[32]).one(&[one, one]), 0x3f80_3f80);
}
