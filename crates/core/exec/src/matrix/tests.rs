//! Whole products against plain loops; layouts against the manual's formulas.

mod memory;

use super::{element::Element, fragment, *};
use crate::{
    LANES,
    lanes::{u64s, u64s_mut},
    sem::soft,
};
use margay_isa::{Type, Var, resolve, sample};

fn variant(text: &str) -> Variant {
    let (op, words) = text.split_once('.').unwrap();
    let words: Vec<Word> = words.split('.').map(|w| Word::from_name(w).unwrap()).collect();
    resolve(Opcode::from_name(op).unwrap(), &words, |_| true).unwrap().variant
}

/// Every `mma` of the table, or only those whose mnemonic contains a text.
fn all(containing: &str) -> Vec<Variant> {
    let mut rng = sample::Rng(1);
    let mut found = Vec::new();
    for form in Opcode::Mma.row().forms {
        for words in sample::mnemonics(form, 4000, &mut rng) {
            let v = resolve(Opcode::Mma, &words, |_| true).unwrap().variant;
            if v.to_string().contains(containing) {
                found.push(v);
            }
        }
    }
    assert!(!found.is_empty());
    found
}

/// A small value that every type of element has, and its bits.
fn value(e: Element, rng: &mut sample::Rng) -> (f64, u32) {
    match e.ty {
        Type::S8 | Type::S4 => {
            let limit = if e.ty == Type::S8 { 256 } else { 16 };
            let v = rng.below(limit) as i64 - limit as i64 / 2;
            (v as f64, v as u32 & ((1 << e.bits) - 1))
        }
        Type::U8 | Type::U4 | Type::B1 => {
            let v = rng.below(1 << e.bits) as u32;
            (f64::from(v), v)
        }
        Type::S32 => {
            let v = rng.below(2001) as i32 - 1000;
            (f64::from(v), v as u32)
        }
        ty => {
            // Halves between -3 and 3 are exact in all formats, `.e2m1` included.
            let v = [-3.0, -2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0][rng.below(11)];
            let format = match ty {
                Type::F16 => soft::F16,
                Type::Bf16 => soft::BF16,
                Type::E4m3 => soft::E4M3,
                Type::E5m2 => soft::E5M2,
                Type::E3m2 => soft::E3M2,
                Type::E2m3 => soft::E2M3,
                Type::E2m1 => soft::E2M1,
                _ => return (v, (v as f32).to_bits()),
            };
            let bits = format.pack(soft::F64.unpack(v.to_bits()), soft::Rnd::Nearest, true) as u32;
            (v, if e.bits == 8 && ty == Type::E2m1 { bits << 2 } else { bits })
        }
    }
}

/// Puts the bits of a matrix into registers.
fn pack(
    e: Element,
    count: usize,
    place: impl Fn(usize, usize) -> fragment::Coord,
    bits: impl Fn(fragment::Coord) -> u32,
) -> Vec<Row> {
    let per = e.per_register();
    let mut registers = vec![Row::ZERO; count];
    for (r, register) in registers.iter_mut().enumerate() {
        for lane in 0..LANES {
            for i in 0..per {
                register.0[lane] |= bits(place(lane, r * per + i)) << (e.bits % 32 * i as u32);
            }
        }
    }
    registers
}

fn counts(v: &Variant) -> Vec<usize> {
    v.operands().map(|o| v.count(o).unwrap() as usize).collect()
}

/// Runs a product on registers; `extra` are the operands after C.
fn run(v: &Variant, fragments: [&[Row]; 3], extra: &[Row]) -> Vec<Row> {
    let src: Vec<&[Row]> = fragments.iter().flat_map(|f| f.chunks(1)).chain(extra.chunks(1)).collect();
    let mut dst = vec![Row::ZERO; counts(v)[0]];
    pure(v).unwrap()(v, u32::MAX, &src, &mut dst);
    dst
}

/// D as numbers.
fn unpack(v: &Variant, dst: &[Row]) -> Vec<Vec<f64>> {
    let (m, n, _) = shape(v).unwrap();
    let e = Element::of(v.ty(Var::T).unwrap(), v);
    let mut d = vec![vec![f64::NAN; n]; m];
    for (r, register) in dst.iter().enumerate() {
        for lane in 0..LANES {
            for i in 0..e.per_register() {
                let (row, column) = fragment::c(lane, r * e.per_register() + i);
                let bits = e.extract(register.0[lane], i);
                d[row][column] = if e.ty == Type::S32 { e.integer(bits) as f64 } else { e.float(bits) };
            }
        }
    }
    d
}

#[test]
fn dense_products_equal_plain_loops() {
    let mut rng = sample::Rng(7);
    for v in all("sync") {
        let (m, n, k) = shape(&v).unwrap();
        let sparse = v.has(Mod::Sp) || v.has(Mod::SpOrderedMetadata);
        if v.t() == Type::F64 || sparse || v.has(Mod::BlockScale) || (m, n, k) == (8, 8, 4) {
            continue;
        }
        let (ea, eb) = (Element::of(v.ty(Var::U).unwrap(), &v), Element::of(v.ty(Var::V).unwrap(), &v));
        let ec = Element::of(v.ty(Var::W).unwrap(), &v);
        let mut matrix = |rows: usize, columns: usize, e: Element| -> Vec<(f64, u32)> {
            (0..rows * columns).map(|_| value(e, &mut rng)).collect()
        };
        let (a, b, c) = (matrix(m, k, ea), matrix(k, n, eb), matrix(m, n, ec));
        let count = counts(&v);
        let fa = pack(ea, count[1], |l, i| fragment::a(m, ea.per_register(), l, i), |(r, c)| a[r * k + c].1);
        let fb = pack(eb, count[2], |l, i| fragment::b(eb.per_register(), l, i), |(r, c)| b[r * n + c].1);
        let fc = pack(ec, count[3], fragment::c, |(r, x)| c[r * n + x].1);
        let d = unpack(&v, &run(&v, [&fa, &fb, &fc], &[]));
        for row in 0..m {
            for column in 0..n {
                let sum: f64 = (0..k)
                    .map(|i| (a[row * k + i].0, b[i * n + column].0))
                    .map(|(x, y)| if ea.ty == Type::B1 && v.has(Mod::Xor) { f64::from(x != y) } else { x * y })
                    .sum();
                assert_eq!(d[row][column], sum + c[row * n + column].0, "{v} at {row}, {column}");
            }
        }
    }
}

#[test]
fn sparse_products_equal_plain_loops() {
    let mut rng = sample::Rng(11);
    for v in all("sp") {
        if !(v.has(Mod::Sp) || v.has(Mod::SpOrderedMetadata)) || v.has(Mod::BlockScale) {
            continue;
        }
        let (m, n, k) = shape(&v).unwrap();
        let (ea, eb) = (Element::of(v.ty(Var::U).unwrap(), &v), Element::of(v.ty(Var::V).unwrap(), &v));
        let ec = Element::of(v.ty(Var::W).unwrap(), &v);
        let selectors = v.operands().nth(5).and_then(|o| o.range).unwrap().1;
        // Where pairs of threads hold the metadata, ptxas takes 2 and 3 too; the manual knows 0 and 1.
        let pairs = ea.bits >= 16 && k * ea.bits as usize > 256;
        let selector = rng.below(if pairs { 2 } else { selectors as usize + 1 });
        // A is made chunk by chunk: of four neighbors (or pairs of neighbors) two are kept, of two `.tf32` one.
        let mut a = vec![0.0; m * k];
        let mut stored = vec![0; m * k / 2];
        let mut meta = Row::ZERO;
        for row in 0..m {
            let (group, lower) = (row % 8, row / 8);
            let columns_a_nibble = if ea.bits == 32 {
                2
            } else if ea.bits == 4 {
                8
            } else {
                4
            };
            for chunk in 0..k / columns_a_nibble {
                let nibble = if ea.bits == 32 { [4, 14][rng.below(2)] } else { [4, 8, 9, 12, 13, 14][rng.below(6)] };
                // The manual: one thread, a pair or all four hold the metadata of a group's two rows. With 16- and 32-bit
                // elements the lower half of a register belongs to the upper row; else rows alternate over threads.
                let (thread, at) = match (ea.bits >= 16, k / columns_a_nibble) {
                    (true, 4) => (selector, 16 * lower + 4 * chunk),
                    (true, _) => (2 * selector + chunk / 4, 16 * lower + chunk % 4 * 4),
                    (false, 8) => (2 * selector + lower, 4 * chunk),
                    (false, _) => (chunk / 8 * 2 + lower, chunk % 8 * 4),
                };
                meta.0[4 * group + thread] |= (nibble as u32) << at;
                let kept: Vec<usize> = match ea.bits {
                    32 => vec![2 * chunk + nibble % 4 / 2],
                    4 => [nibble & 3, nibble >> 2]
                        .iter()
                        .flat_map(|i| [8 * chunk + 2 * i, 8 * chunk + 2 * i + 1])
                        .collect(),
                    _ => vec![4 * chunk + (nibble & 3), 4 * chunk + (nibble >> 2)],
                };
                for (i, column) in kept.iter().enumerate() {
                    let (x, bits) = value(ea, &mut rng);
                    a[row * k + column] = x;
                    stored[row * k / 2 + chunk * kept.len() + i] = bits;
                }
            }
        }
        let b: Vec<_> = (0..k * n).map(|_| value(eb, &mut rng)).collect();
        let c: Vec<_> = (0..m * n).map(|_| value(ec, &mut rng)).collect();
        let count = counts(&v);
        let fa = pack(ea, count[1], |l, i| fragment::a(m, ea.per_register(), l, i), |(r, x)| stored[r * k / 2 + x]);
        let fb = pack(eb, count[2], |l, i| fragment::b(eb.per_register(), l, i), |(r, x)| b[r * n + x].1);
        let fc = pack(ec, count[3], fragment::c, |(r, x)| c[r * n + x].1);
        let d = unpack(&v, &run(&v, [&fa, &fb, &fc], &[meta, Row([selector as u32; LANES])]));
        for row in 0..m {
            for column in 0..n {
                let sum: f64 = (0..k).map(|i| a[row * k + i] * b[i * n + column].0).sum();
                assert_eq!(d[row][column], sum + c[row * n + column].0, "{v} at {row}, {column}");
            }
        }
    }
}

#[test]
fn double_products() {
    let mut rng = sample::Rng(3);
    for v in all("f64.f64.f64.f64") {
        let (m, n, k) = shape(&v).unwrap();
        let count = counts(&v);
        let mut fill = |registers: usize| -> Vec<Row> {
            let mut rows = vec![Row::ZERO; 2 * registers];
            for pair in rows.chunks_exact_mut(2) {
                u64s_mut(pair).iter_mut().for_each(|x| *x = (rng.below(64) as f64 - 32.0).to_bits());
            }
            rows
        };
        let (fa, fb, fc) = (fill(count[1]), fill(count[2]), fill(count[3]));
        let src: Vec<&[Row]> = [&fa, &fb, &fc].into_iter().flat_map(|f| f.chunks(2)).collect();
        let mut dst = vec![Row::ZERO; 2 * count[0]];
        pure(&v).unwrap()(&v, u32::MAX, &src, &mut dst);
        let at = |f: &[Row], lane: usize, i: usize| f64::from_bits(u64s(&f[2 * i..2 * i + 2])[lane]);
        // Section 9.7.14.5.8 gives A of `.m16n8k16` by another formula than ours; look elements up the slow way.
        let find = |f: &[Row], registers: usize, place: &dyn Fn(usize, usize) -> fragment::Coord, wanted| {
            (0..LANES)
                .flat_map(|l| (0..registers).map(move |i| (l, i)))
                .find(|(l, i)| place(*l, *i) == wanted)
                .map(|(l, i)| at(f, l, i))
                .unwrap()
        };
        let manual_a = |lane: usize, i: usize| match m {
            8 => (lane >> 2, lane % 4),
            _ if i.is_multiple_of(2) => (lane >> 2, i * 2 + lane % 4),
            _ => ((lane >> 2) + 8, i * 2 - 2 + lane % 4),
        };
        for row in 0..m {
            for column in [0, n - 1] {
                let c = find(&fc, count[3], &fragment::c, (row, column));
                let sum: f64 = (0..k)
                    .map(|i| {
                        find(&fa, count[1], &manual_a, (row, i))
                            * find(&fb, count[2], &|l, r| fragment::b(1, l, r), (i, column))
                    })
                    .sum();
                assert_eq!(find(&dst, count[0], &fragment::c, (row, column)), sum + c, "{v}");
            }
        }
    }
}

#[test]
fn directed_rounding_of_doubles() {
    // 1 + 2^-60 is not a double: up it becomes the next one, elsewhere 1.
    let run = |rounding: &str| {
        let v = variant(&format!("mma.sync.aligned.m8n8k4.row.col{rounding}.f64.f64.f64.f64"));
        let splat = |x: f64| {
            let mut rows = vec![Row::ZERO; 2];
            *u64s_mut(&mut rows) = [x.to_bits(); LANES];
            rows
        };
        let (a, b, c) = (splat(2f64.powi(-31)), splat(2f64.powi(-31)), splat(1.0));
        let mut dst = vec![Row::ZERO; 4];
        pure(&v).unwrap()(&v, u32::MAX, &[&a, &b, &c, &c], &mut dst);
        f64::from_bits(u64s(&dst[..2])[0])
    };
    assert_eq!(run(""), 1.0);
    assert_eq!(run(".rz"), 1.0);
    assert_eq!(run(".rm"), 1.0);
    assert_eq!(run(".rp"), 1.0 + 4.0 * f64::EPSILON);
}

#[test]
fn four_quads() {
    let mut rng = sample::Rng(5);
    for v in all("m8n8k4") {
        if v.t() == Type::F64 {
            continue;
        }
        let e = Element::of(Type::F16, &v);
        let count = counts(&v);
        let mut values = vec![];
        let mut fill = |registers: usize, e: Element| -> Vec<Row> {
            let mut lanes = vec![vec![]; LANES];
            let mut rows = vec![Row::ZERO; registers];
            for row in &mut rows {
                for lane in 0..LANES {
                    for i in 0..e.per_register() {
                        let (x, bits) = value(e, &mut rng);
                        row.0[lane] |= bits << (16 * i as u32 % 32);
                        lanes[lane].push(x);
                    }
                }
            }
            values.push(lanes);
            rows
        };
        let (fa, fb) = (fill(count[1], e), fill(count[2], e));
        let fc = fill(count[3], Element::of(v.ty(Var::W).unwrap(), &v));
        let dst = run(&v, [&fa, &fb, &fc], &[]);
        let mut layouts = v.words.iter().filter(|w| matches!(w, Word::Mod(Mod::Row | Mod::Col)));
        let a_column = layouts.next() == Some(&Word::Mod(Mod::Col));
        let b_column = layouts.next() == Some(&Word::Mod(Mod::Col));
        // Formulas of section 9.7.14.5.1, element by element.
        let a = |q: usize, row: usize, k: usize| {
            let (lane, i) = if a_column { (k, row % 4) } else { (row % 4, k) };
            values[0][4 * q + lane + if row < 4 { 0 } else { 16 }][i]
        };
        let b = |q: usize, k: usize, column: usize| {
            let (lane, i) = if b_column { (column % 4, k) } else { (k, column % 4) };
            values[1][4 * q + lane + if column < 4 { 0 } else { 16 }][i]
        };
        let (single_c, single_d) = (v.ty(Var::W) == Some(Type::F32), v.t() == Type::F32);
        let place = |single: bool, lane: usize, i: usize| {
            let high = if lane < 16 { 0 } else { 4 };
            if single { ((lane & 1) + (i & 2) + high, (i & 4) + (lane & 2) + (i & 1)) } else { (lane % 4 + high, i) }
        };
        for lane in 0..LANES {
            let q = lane % 16 / 4;
            for i in 0..8 {
                let (row, column) = place(single_d, lane, i);
                let bits = if single_d { dst[i].0[lane] } else { dst[i / 2].0[lane] >> (16 * (i % 2)) & 0xffff };
                let got = if single_d { f64::from(f32::from_bits(bits)) } else { e.float(bits) };
                let c = (0..LANES)
                    .filter(|l| l % 16 / 4 == q)
                    .flat_map(|l| (0..8).map(move |j| (l, j)))
                    .find(|(l, j)| place(single_c, *l, *j) == (row, column))
                    .map(|(l, j)| values[2][l][j])
                    .unwrap();
                let sum: f64 = (0..4).map(|k| a(q, row, k) * b(q, k, column)).sum();
                assert_eq!(got, sum + c, "{v} lane {lane} element {i}");
            }
        }
    }
}

#[test]
fn layouts_are_the_manuals() {
    for lane in 0..LANES {
        let (group, thread) = (lane >> 2, lane % 4);
        // `.m16n8k16` of 16-bit elements.
        for i in 0..8 {
            let row = if i < 2 || (4..6).contains(&i) { group } else { group + 8 };
            let column = thread * 2 + (i & 1) + if i < 4 { 0 } else { 8 };
            assert_eq!(fragment::a(16, 2, lane, i), (row, column));
        }
        for i in 0..4 {
            let row = thread * 2 + (i & 1) + if i < 2 { 0 } else { 8 };
            assert_eq!(fragment::b(2, lane, i), (row, group));
        }
        // `.m16n8k32` of 8-bit elements.
        for i in 0..16 {
            let row = if i < 4 || (8..12).contains(&i) { group } else { group + 8 };
            let column = thread * 4 + (i & 3) + if i < 8 { 0 } else { 16 };
            assert_eq!(fragment::a(16, 4, lane, i), (row, column));
        }
        // `.m16n8k8` of `.tf32`.
        for i in 0..4 {
            let row = if i % 2 == 0 { group } else { group + 8 };
            assert_eq!(fragment::a(16, 1, lane, i), (row, if i < 2 { thread } else { thread + 4 }));
        }
        // `.m8n8k32` of 4-bit elements, and accumulators.
        for i in 0..8 {
            assert_eq!(fragment::a(8, 8, lane, i), (group, thread * 8 + i));
            assert_eq!(fragment::b(8, lane, i), (thread * 8 + i, group));
        }
        for i in 0..4 {
            assert_eq!(fragment::c(lane, i), (if i < 2 { group } else { group + 8 }, thread * 2 + (i & 1)));
        }
    }
}

#[test]
fn scale_factors_come_from_the_selected_lanes() {
    let v = variant("mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0");
    // All elements 1 (0b0010), C zero; factors 2^(row) for the lower half of k, 2^(row + 1) for the upper one.
    let ones = [Row([0x2222_2222; LANES]); 4];
    let zero = [Row::ZERO; 4];
    let (mut data_a, mut data_b) = (Row::ZERO, Row([127 | 127 << 8; LANES]));
    for row in 0..16u32 {
        // Thread pair 1 (lanes 2 and 3 of a group), upper byte pair.
        let lane = (row % 8 * 4 + 2 + row / 8) as usize;
        data_a.0[lane] = (127 + row) << 16 | (128 + row) << 24;
    }
    data_b.0[3] = 127 | 129 << 8;
    let splat = |x| Row([x; LANES]);
    let extra = [data_a, splat(2), splat(1), data_b, splat(0), splat(3)];
    let d = unpack(&v, &run(&v, [&ones, &ones[..2], &zero], &extra));
    for row in 0..16 {
        let scale = f64::from(1 << row);
        assert_eq!(d[row][1], 32.0 * scale + 32.0 * 2.0 * scale);
        // Column 0 has the factor 4 for the upper half.
        assert_eq!(d[row][0], 32.0 * scale + 32.0 * 2.0 * scale * 4.0);
    }
}

#[test]
fn saturation_and_wrapping() {
    let run_with = |sat: &str, c: i32| {
        let v = variant(&format!("mma.sync.aligned.m8n8k16.row.col{sat}.s32.u8.u8.s32"));
        let ones = [Row([0x0101_0101; LANES])];
        run(&v, [&ones, &ones, &[Row([c as u32; LANES]); 2]], &[])[0].0[0] as i32
    };
    assert_eq!(run_with("", i32::MAX), i32::MIN + 15);
    assert_eq!(run_with(".satfinite", i32::MAX), i32::MAX);
    assert_eq!(run_with(".satfinite", 3), 19);
}

#[test]
fn halves_are_rounded_once() {
    // 2048 + 1 + 2^-10 rounds up to 2050; by way of single precision it could not be distinguished from the tie at 2049.
    let v = variant("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16");
    let half = |x: f64| soft::F16.pack(soft::F64.unpack(x.to_bits()), soft::Rnd::Nearest, false) as u32;
    let mut a = [Row::ZERO; 2];
    let b = [Row([half(1.0) | half(1.0) << 16; LANES])];
    // Row 0: k = 0 holds 1, k = 1 holds 2^-10.
    a[0].0[0] = half(1.0) | half(2f64.powi(-10)) << 16;
    let c = [Row([half(2048.0) | half(2048.0) << 16; LANES]); 2];
    assert_eq!(run(&v, [&a, &b, &c], &[])[0].0[0] & 0xffff, half(2050.0));
}

/// Products of fixed shapes against the general ones: all types, edge values and random bits, in fragments of every layout.
#[test]
fn fixed_shapes_are_the_general_product() {
    let mut rng = sample::Rng(3);
    let mut found = 0;
    let mut mnemonics = all("mma");
    for form in Opcode::Wmma.row().forms {
        let words = sample::mnemonics(form, 4000, &mut rng);
        mnemonics.extend(words.iter().filter_map(|w| Some(resolve(Opcode::Wmma, w, |_| true).ok()?.variant)));
    }
    for v in mnemonics {
        let Some(fast) = fixed::find(&v) else { continue };
        found += 1;
        let counts: Vec<usize> = v.operands().map(|o| v.count(o).unwrap_or(1) as usize).collect();
        let rows = if v.ty(Var::T) == Some(Type::F64) { 2 } else { 1 };
        for round in 0..6 {
            let word = |rng: &mut sample::Rng| match (round, rng.below(4)) {
                // Small numbers, whose sums round; special values; anything.
                (0..=2, _) if rows == 2 => rng.bits() as u32 & 0x800f_ffff | (1020 + rng.below(8) as u32) << 20,
                (0..=2, _) => rng.bits() as u32 & 0xbfff_bfff,
                (3, 0) => [0, 0x7c00_fc00, 0x7f80_0000, 0xff80_7f80, 0x7fff_ffff, 0x8000_8000][rng.below(6)],
                _ => rng.bits() as u32,
            };
            let registers: usize = counts[1..4].iter().sum();
            let data: Vec<Row> = (0..registers * rows).map(|_| Row(std::array::from_fn(|_| word(&mut rng)))).collect();
            let src: Vec<&[Row]> = data.chunks(rows).collect();
            let [mut want, mut got] = [0, 1].map(|_| vec![Row::ZERO; counts[0] * rows]);
            product::run(&v, &src, &mut want);
            fast(&v, u32::MAX, &src, &mut got);
            assert_eq!(want, got, "{v}, round {round}");
        }
    }
    assert!(found > 100, "{found} variants");
}
