//! How fast the reference engine is: kernels beside the same loops in scalar Rust, one core, one run.
//!
//! `cargo bench -p margay --bench reference [-- NAME]`. The goal is a ratio of at most 3 for loops that compute. Loops in Rust
//! go thread by thread, as an expert would write them for a CPU, and are compiled for this machine's baseline.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

const HEAD: &str = ".version 7.0\n.target sm_70\n.address_size 64\n";

/// Threads of every launch.
const THREADS: u32 = 128 * 256;

struct Case {
    name: &'static str,
    /// Declarations and body behind `%i` (thread), `%at` (address of its element of `out`) and `%in` (base of `input`).
    body: &'static str,
    natural: fn(u32, &[f32]) -> u32,
    /// Loop rounds of a thread, for the unit of the table.
    rounds: u32,
}

const CASES: &[Case] = &[
    Case {
        name: "integer hash",
        body: "mov.u32 %x, %i; mov.u32 %n, 0;
            L: mad.lo.u32 %x, %x, 1664525, 1013904223; shr.u32 %y, %x, 15; xor.b32 %x, %x, %y; add.u32 %n, %n, 1;
            setp.lt.u32 %p, %n, 512; @%p bra L;",
        natural: |i, _| {
            let mut x = i;
            for _ in 0..black_box(512) {
                x = x.wrapping_mul(1664525).wrapping_add(1013904223);
                x ^= x >> 15;
            }
            x
        },
        rounds: 512,
    },
    Case {
        name: "multiply and add",
        body: "cvt.rn.f32.u32 %f, %i; mul.f32 %f, %f, 0f38000000; mov.f32 %g, 0f3F000000; mov.u32 %n, 0;
            L: fma.rn.f32 %f, %f, %g, 0f3E800000; mul.f32 %g, %g, 0f3F7FBE77; add.f32 %f, %f, %g; add.u32 %n, %n, 1;
            setp.lt.u32 %p, %n, 512; @%p bra L; mov.b32 %x, %f;",
        natural: |i, _| {
            let (mut f, mut g) = (i as f32 * f32::from_bits(0x3800_0000), 0.5f32);
            for _ in 0..black_box(512) {
                f = f.mul_add(g, 0.25);
                g *= f32::from_bits(0x3f7f_be77);
                f += g;
            }
            f.to_bits()
        },
        rounds: 512,
    },
    Case {
        name: "mandelbrot",
        body: "and.b32 %x, %i, 255; shr.u32 %y, %i, 8; cvt.rn.f32.u32 %a, %x; cvt.rn.f32.u32 %b, %y;
            fma.rn.f32 %a, %a, 0f3C400000, 0fC0000000; fma.rn.f32 %b, %b, 0f3C800000, 0fBF800000;
            mov.f32 %f, 0f00000000; mov.f32 %g, 0f00000000; mov.u32 %x, 0;
            L: mul.f32 %c, %f, %f; mul.f32 %d, %g, %g; add.f32 %e, %c, %d; setp.gt.f32 %p, %e, 0f40800000; @%p bra E;
            mul.f32 %h, %f, %g; sub.f32 %f, %c, %d; add.f32 %f, %f, %a; fma.rn.f32 %g, %h, 0f40000000, %b;
            add.u32 %x, %x, 1; setp.lt.u32 %p, %x, 256; @%p bra L;
            E:",
        natural: |i, _| {
            let (a, b) = ((i & 255) as f32 * f32::from_bits(0x3c40_0000) - 2.0, (i >> 8) as f32 * f32::from_bits(0x3c80_0000) - 1.0);
            let (mut x, mut y, mut n) = (0f32, 0f32, 0);
            while n < 256 {
                let (xx, yy) = (x * x, y * y);
                if xx + yy > 4.0 {
                    break;
                }
                let xy = x * y;
                x = xx - yy + a;
                y = xy * 2.0 + b;
                n += 1;
            }
            n
        },
        rounds: 64,
    },
    Case {
        name: "sum of 256 loads",
        body: "mov.f32 %f, 0f00000000; mov.u32 %n, 0; mul.wide.u32 %q, %i, 4; add.u64 %q, %q, %in;
            L: ld.global.f32 %g, [%q]; add.f32 %f, %f, %g; add.u64 %q, %q, 4; add.u32 %n, %n, 1;
            setp.lt.u32 %p, %n, 256; @%p bra L; mov.b32 %x, %f;",
        natural: |i, input| {
            let mut f = 0f32;
            for v in &input[i as usize..i as usize + black_box(256)] {
                f += v;
            }
            f.to_bits()
        },
        rounds: 256,
    },
    Case {
        name: "distances",
        body: "cvt.rn.f32.u32 %a, %i; mov.f32 %f, 0f00000000; mov.u32 %n, 0; mov.u64 %q, %in;
            L: ld.global.f32 %g, [%q]; sub.f32 %g, %g, %a; fma.rn.f32 %g, %g, %g, 0f3F800000; rsqrt.approx.f32 %g, %g;
            add.f32 %f, %f, %g; add.u64 %q, %q, 4; add.u32 %n, %n, 1; setp.lt.u32 %p, %n, 256; @%p bra L; mov.b32 %x, %f;",
        natural: |i, input| {
            let mut f = 0f32;
            for v in &input[..black_box(256)] {
                let d = v - i as f32;
                f += 1.0 / (d * d + 1.0).sqrt();
            }
            f.to_bits()
        },
        rounds: 256,
    },
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let wanted = std::env::args().skip(1).find(|a| !a.starts_with('-')).unwrap_or_default();
    let engines = vec![margay::Engine::interpreted(std::sync::Arc::new(margay_exec::Reference))];
    let options = margay::DeviceOptions { threads: Some(1), engines, ..margay::DeviceOptions::default() };
    let device = margay::Device::with(options)?;
    let context = device.context();
    println!("{:20} {:>14} {:>14} {:>8}", "", "engine ns", "Rust ns", "ratio");
    for case in CASES.iter().filter(|c| c.name.contains(&wanted)) {
        let text = format!(
            "{HEAD}.visible .entry k(.param .u64 out, .param .u64 input) {{
            .reg .b32 %i, %t, %x, %y, %n; .reg .b64 %at, %in, %off, %q; .reg .f32 %f, %g, %h, %a, %b, %c, %d, %e; .reg .pred %p;
            mov.u32 %t, %ctaid.x; mov.u32 %i, %ntid.x; mad.lo.u32 %i, %t, %i, %i; mov.u32 %t, %ntid.x; sub.u32 %i, %i, %t;
            mov.u32 %t, %tid.x; add.u32 %i, %i, %t;
            ld.param.u64 %at, [out]; ld.param.u64 %in, [input]; mul.wide.u32 %off, %i, 4; add.u64 %at, %at, %off;
            {}
            st.global.u32 [%at], %x; ret; }}",
            case.body
        );
        let loaded = match margay::Module::parse(&text)?.check() {
            Ok(module) => module.load(&context)?,
            Err(e) => return Err(format!("{}: {:?}", case.name, e.diagnostics.first()).into()),
        };
        let kernel = loaded.kernel("k")?;
        let out = context.buffer(4 * u64::from(THREADS))?;
        let input = context.buffer(4 * u64::from(THREADS + 256))?;
        let values: Vec<f32> = (0..THREADS + 256).map(|i| (i % 97) as f32 * 0.5).collect();
        input.write(0, &values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>())?;
        let mut arguments = kernel.arguments();
        arguments.push_address(out.address())?.push_address(input.address())?;
        let block = arguments.finish()?;
        let config = margay::LaunchConfig::new([THREADS / 256, 1, 1], [256, 1, 1]);
        let (mut engine, mut rust) = (Duration::MAX, Duration::MAX);
        let mut results = vec![0; THREADS as usize];
        for _ in 0..5 {
            let start = Instant::now();
            kernel.launch(&config, &block)?;
            engine = engine.min(start.elapsed());
            let start = Instant::now();
            for (i, r) in results.iter_mut().enumerate() {
                *r = (case.natural)(black_box(i as u32), &values);
            }
            rust = rust.min(start.elapsed());
            black_box(&results);
        }
        let unit = f64::from(THREADS) * f64::from(case.rounds);
        let per = |d: Duration| d.as_secs_f64() * 1e9 / unit;
        let (e, r) = (per(engine), per(rust));
        println!("{:20} {e:14.3} {r:14.3} {:8.2}", case.name, e / r);
    }
    Ok(())
}
