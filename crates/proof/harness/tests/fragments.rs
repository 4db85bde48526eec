//! Products of fragments with random bits and special values, on all engines: compiled code must give what the semantic functions define, which
//! `exec` compares with plain loops.

use margay::{Device, DeviceOptions, LaunchConfig, LoadOptions, SourceText};
use margay_harness::random::Random;
use std::fmt::Write;

/// CTAs of one warp, each with fragments of its own.
const CTAS: u32 = 48;
/// Lanes of a warp.
const LANES: u32 = 32;

/// An instruction, and the words of a lane that are A, B, C and D.
type Product = (String, [u32; 4]);

/// Words of a lane's fragment of `elements` elements.
fn words_of(elements: u32, ty: &str) -> u32 {
    let bits = match ty {
        "f16" | "bf16" => 16,
        "tf32" | "f32" | "s32" => 32,
        "f64" => 64,
        _ => 8,
    };
    elements * bits / 32 / LANES
}

/// `mma` of 16 by 8 elements.
fn mma(k: u32, [d, a, b, c]: [&str; 4]) -> Product {
    let counts = [words_of(16 * k, a), words_of(8 * k, b), words_of(128, c), words_of(128, d)];
    (format!("mma.sync.aligned.m16n8k{k}.row.col.{d}.{a}.{b}.{c}"), counts)
}

/// The forms with code of their own, and some without.
fn products() -> Vec<Product> {
    let halves = [8, 16].map(|k| ["f16", "f32"].map(|sum| mma(k, [sum, "f16", "f16", sum])));
    let mut all: Vec<Product> = halves.into_iter().flatten().collect();
    all.push(mma(16, ["f32", "bf16", "bf16", "f32"]));
    all.push(mma(8, ["f32", "tf32", "tf32", "f32"]));
    let pairs = |types: [&'static str; 2]| types.into_iter().flat_map(move |a| types.map(|b| (a, b)));
    for (a, b) in pairs(["e4m3", "e5m2"]) {
        all.extend(["f16", "f32"].map(|sum| mma(32, [sum, a, b, sum])));
    }
    all.extend(pairs(["s8", "u8"]).map(|(a, b)| mma(32, ["s32", a, b, "s32"])));
    all.extend([4, 8, 16].map(|k| mma(k, ["f64"; 4])));
    all.push(("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64".into(), [2, 2, 4, 4]));
    all.push(("wmma.mma.sync.aligned.row.col.m8n8k4.f64.f64.f64.f64".into(), [2, 2, 4, 4]));
    for shape in ["m16n16k16", "m32n8k16", "m8n32k16"] {
        for (d, c) in pairs(["f16", "f32"]) {
            let counts = [8, 8, words_of(256, c), words_of(256, d)];
            all.push((format!("wmma.mma.sync.aligned.row.col.{shape}.{d}.{c}"), counts));
        }
    }
    all
}

/// Registers of `words` words each with a common name, as an operand.
fn list(name: &str, count: u32, words: u32) -> String {
    let names: Vec<String> = (0..count / words).map(|i| format!("%{name}{i}")).collect();
    format!("{{{}}}", names.join(", "))
}

/// A kernel that loads the registers of all operands, word by word, and stores those of the result.
fn module((instruction, [a, b, c, d]): &Product) -> String {
    let size = if instruction.contains("f64") { 2 } else { 1 };
    let bits = 32 * size;
    let mut text = format!(
        ".version 8.7\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out) {{\n\
         .reg .b{bits} %a<{a}>, %b<{b}>, %c<{c}>, %d<{d}>; .reg .b32 %lane, %cta, %i; .reg .b64 %in, %out, %offset;\n\
         ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; mov.u32 %lane, %tid.x; mov.u32 %cta, %ctaid.x;\n"
    );
    for (base, count) in [("in", a + b + c), ("out", *d)] {
        let _ = writeln!(
            text,
            "mad.lo.u32 %i, %cta, {}, %lane; mul.wide.u32 %offset, %i, {}; add.u64 %{base}, %{base}, %offset;",
            count / size * LANES,
            4 * size
        );
    }
    let names =
        [("a", *a), ("b", *b), ("c", *c)].into_iter().flat_map(|(name, n)| (0..n / size).map(move |i| (name, i)));
    for (at, (name, i)) in names.enumerate() {
        let _ = writeln!(text, "ld.global.b{bits} %{name}{i}, [%in+{}];", at as u32 * 4 * size * LANES);
    }
    let [a, b, c, result] = [("a", a), ("b", b), ("c", c), ("d", d)].map(|(name, count)| list(name, *count, size));
    let _ = writeln!(text, "{instruction} {result}, {a}, {b}, {c};");
    (0..d / size).for_each(|i| _ = writeln!(text, "st.global.b{bits} [%out+{}], %d{i};", i * 4 * size * LANES));
    text + "ret;\n}\n"
}

/// Words of the operands: of small numbers, whose sums round, of special values, or of anything, by CTA.
fn words(rng: &mut Random, per_cta: u32) -> Vec<u8> {
    let specials = [0, 0x7c00_fc00, 0x7f80_0000, 0xff80_7f80, 0x7fff_ffff, 0x8000_8000, 0x0001_8001, 0x7bff_fbff];
    let word = |cta: u32, rng: &mut Random| match (cta % 4, rng.below(4)) {
        (0..=1, _) => rng.bits() as u32 & 0xbbff_bbff,
        (2, 0) => rng.pick(&specials),
        (2, _) => rng.bits() as u32 & 0xbfff_bfff,
        _ => rng.bits() as u32,
    };
    let words = (0..CTAS).flat_map(|cta| (0..per_cta).map(move |_| cta));
    words.flat_map(|cta| word(cta, rng).to_le_bytes()).collect()
}

fn run(engine: &str, product: &Product, input: &[u8]) -> Vec<u8> {
    let options = DeviceOptions { threads: Some(1), engines: margay::engines(), ..DeviceOptions::default() };
    let context = Device::with(options).expect("a device").context();
    let options = LoadOptions { engine: Some(engine.into()), ..LoadOptions::default() };
    let text = module(product);
    let module = context.load(&[SourceText { name: "k", text: &text }], &options).expect("a module");
    let kernel = module.kernel("k").expect("the kernel");
    let mut output = vec![0; (CTAS * product.1[3] * LANES * 4) as usize];
    let [from, to] = [input.len(), output.len()].map(|bytes| context.buffer(bytes as u64).expect("memory"));
    from.write(0, input).expect("a copy");
    let mut arguments = kernel.arguments();
    for buffer in [&from, &to] {
        arguments.push_address(buffer.address()).expect("an argument");
    }
    let block = arguments.finish().expect("all arguments");
    kernel.launch(&LaunchConfig::new([CTAS, 1, 1], [LANES, 1, 1]), &block).expect("a launch");
    to.read(0, &mut output).expect("a copy");
    output
}

#[test]
fn products_are_the_same_on_all_engines() {
    let mut rng = Random::new(5);
    for product in products() {
        let input = words(&mut rng, product.1[..3].iter().sum::<u32>() * LANES);
        let want = run("reference", &product, &input);
        assert!(want.iter().any(|byte| *byte != 0), "{}", product.0);
        for engine in ["simd", "simd-full"] {
            if margay::engines().iter().any(|e| e.name() == engine) {
                assert!(run(engine, &product, &input) == want, "{} on {engine}", product.0);
            }
        }
    }
}
