//! Times lane functions: nanoseconds for a warp of 32 lanes, best of several rounds. Words after `--` choose rows by prefix.
//!
//! `cargo run --release -p margay-exec --example lanes [-- PREFIX…]`

use margay_exec::{LANES, Row, lanes, sem::pure};
use margay_isa::{Opcode, Role, Ty, Type, Variant, Word, resolve};
use std::{hint::black_box, time::Instant};

const ROWS: &[(&str, usize)] = &[
    ("add.s32", 2),
    ("mul.lo.s32", 2),
    ("mad.lo.s32", 3),
    ("mul.wide.s32", 2),
    ("mul.hi.u32", 2),
    ("add.s64", 2),
    ("mul.lo.s64", 2),
    ("mad.lo.s64", 3),
    ("min.s32", 2),
    ("div.s32", 2),
    ("rem.u32", 2),
    ("div.u64", 2),
    ("and.b32", 2),
    ("xor.b64", 2),
    ("shl.b32", 2),
    ("shr.s32", 2),
    ("shl.b64", 2),
    ("shf.l.wrap.b32", 3),
    ("lop3.b32", 4),
    ("prmt.b32", 3),
    ("bfe.u32", 3),
    ("popc.b32", 1),
    ("clz.b32", 1),
    ("setp.lt.s32", 2),
    ("setp.lt.u64", 2),
    ("setp.gt.f32", 2),
    ("setp.lt.f64", 2),
    ("setp.neu.f32", 2),
    ("setp.lt.and.s32", 3),
    ("selp.b32", 3),
    ("selp.b64", 3),
    ("mov.u32", 1),
    ("mov.u64", 1),
    ("add.f32", 2),
    ("add.rn.ftz.f32", 2),
    ("mul.f32", 2),
    ("add.sat.f32", 2),
    ("add.rz.f32", 2),
    ("fma.rn.f32", 3),
    ("fma.rn.ftz.f32", 3),
    ("fma.rn.f64", 3),
    ("fma.rm.f32", 3),
    ("add.f64", 2),
    ("mul.f64", 2),
    ("div.rn.f32", 2),
    ("div.rn.f64", 2),
    ("div.full.f32", 2),
    ("sqrt.rn.f32", 1),
    ("rsqrt.approx.f32", 1),
    ("rcp.approx.ftz.f32", 1),
    ("min.f32", 2),
    ("max.f64", 2),
    ("neg.f32", 1),
    ("abs.f32", 1),
    ("sin.approx.f32", 1),
    ("cos.approx.f32", 1),
    ("lg2.approx.f32", 1),
    ("ex2.approx.ftz.f32", 1),
    ("tanh.approx.f32", 1),
    ("cvt.u64.u32", 1),
    ("cvt.s64.s32", 1),
    ("cvt.u32.u64", 1),
    ("cvt.rn.f32.s32", 1),
    ("cvt.rn.f32.u32", 1),
    ("cvt.rn.f64.s32", 1),
    ("cvt.rzi.s32.f32", 1),
    ("cvt.rzi.u32.f32", 1),
    ("cvt.rzi.s32.f64", 1),
    ("cvt.rni.s32.f32", 1),
    ("cvt.rmi.f32.f32", 1),
    ("cvt.f64.f32", 1),
    ("cvt.rn.f32.f64", 1),
    ("cvt.f32.f16", 1),
    ("cvt.rn.f16.f32", 1),
    ("cvt.rn.bf16.f32", 1),
    ("cvt.sat.u8.s32", 1),
    ("cvt.rz.f16.f32", 1),
    ("cvt.rz.bf16.f32", 1),
    ("cvt.rn.satfinite.e4m3x2.f32", 2),
    ("cvt.rn.f16x2.e4m3x2", 1),
    ("add.f16", 2),
    ("mul.f16x2", 2),
    ("fma.rn.f16", 3),
    ("fma.rn.f16x2", 3),
    ("fma.rn.bf16x2", 3),
    ("add.cc.u32", 2),
    ("dp4a.s32.s32", 3),
];

fn variant(text: &str, sources: usize) -> Option<Variant> {
    let mut words = text.split('.');
    let op = words.next().and_then(Opcode::from_name)?;
    let words: Vec<Word> = words.filter_map(Word::from_name).collect();
    let fits = |v: &Variant| v.operands().filter(|o| o.role != Role::Dst).count() == sources;
    resolve(op, &words, fits).ok().map(|found| found.variant)
}

fn bits(v: &Variant, ty: Ty) -> u32 {
    let of = |t: Type| if t == Type::Pred { 1 } else { t.bits() };
    match ty {
        Ty::Of(var) => v.ty(var).map_or(32, of),
        Ty::Is(t) => of(t),
        Ty::Wide(var) => 2 * v.ty(var).map_or(32, of),
        _ => 32,
    }
}

/// Ordinary values of a width: floats around one in single and double precision, small integers elsewhere.
fn operand(v: &Variant, bits: u32, k: usize) -> Vec<Row> {
    let mut rows = vec![Row::ZERO; lanes::rows(bits)];
    let float = v.t().is_float() || v.words.iter().any(|w| matches!(w, Word::Type(t) if t.is_float()));
    for i in 0..LANES {
        let x = 1.0 + 0.25 * k as f64 + i as f64 * 0.03125;
        match bits {
            1 => rows[0].0[0] = 0x5a5a_a5a5,
            ..=16 if float => rows[0].0[i] = 0x3c00 + 5 * i as u32,
            ..=32 if float => rows[0].0[i] = (x as f32).to_bits(),
            ..=32 => rows[0].0[i] = 3 + k as u32,
            _ => lanes::u64s_mut(&mut rows)[i] = if float { x.to_bits() } else { 3 + k as u64 },
        }
    }
    rows
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    for (text, sources) in ROWS {
        if !wanted.is_empty() && !wanted.iter().any(|w| text.starts_with(w.as_str())) {
            continue;
        }
        let Some(v) = variant(text, *sources) else {
            println!("{text:<22} not in the table");
            continue;
        };
        let (mut src, mut dst) = (Vec::new(), Vec::new());
        for o in v.operands() {
            if o.role == Role::Dst { &mut dst } else { &mut src }.push(bits(&v, o.ty));
        }
        if text.contains(".cc") {
            dst.push(1);
        }
        let Some(f) = pure(&v, &src, &dst) else {
            println!("{text:<22} has no lane function");
            continue;
        };
        let rows: Vec<Vec<Row>> = src.iter().enumerate().map(|(k, b)| operand(&v, *b, k)).collect();
        let slices: Vec<&[Row]> = rows.iter().map(Vec::as_slice).collect();
        let mut out = vec![Row::ZERO; dst.iter().map(|b| lanes::rows(*b)).sum()];
        let mut best = f64::INFINITY;
        for _ in 0..7 {
            const N: u32 = 20_000;
            let start = Instant::now();
            for _ in 0..N {
                black_box(f)(&v, u32::MAX, black_box(&slices), black_box(&mut out));
            }
            best = best.min(start.elapsed().as_secs_f64() / f64::from(N) * 1e9);
        }
        println!("{text:<22} {best:8.1} ns");
    }
}
