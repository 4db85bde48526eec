//! The SIMD engine computes every pure row, and every product of matrices, bit for bit like its semantic function.
//!
//! Instructions come from the table's generator, some mnemonics of every form of every row with effect `Pure`. A kernel holds
//! some of them, with operands loaded from memory; it runs on the SIMD engine (native code where there is some) and on the
//! reference engine (semantic functions), over edge values and random bits: with operands that vary over lanes, in whole warps
//! and in a part of one, and with operands that are the same in all lanes, which take other paths. `MARGAY_NATIVE` asks for
//! another number of mnemonics of each form.

use margay_exec::{Effort, Reference, matrix, sem};
use margay_isa::{Effect, Opcode, Role, Shape, Target, Type, Variant, Version, Word, sample};
use margay_llvm::SimdEngine;
use margay_runtime::{Context, Device, DeviceOptions, Engine, LaunchConfig, LoadOptions, SourceText};
use std::{collections::BTreeMap, fmt::Write, sync::Arc};

/// Sets of operands; a CTA of so many threads has whole warps and a part of one.
const SETS: u32 = 240;

/// How instructions are tried.
#[derive(Clone, Copy)]
struct Plan {
    /// So many in a kernel.
    together: usize,
    /// Threads of its CTA.
    threads: u32,
    /// Mnemonics of each form.
    mnemonics: usize,
}

/// Rows of threads.
const PURE: Plan = Plan { together: 12, threads: SETS, mnemonics: 10 };
/// Rows of whole warps, with many operands.
const MATRIX: Plan = Plan { together: 3, threads: SETS / 32 * 32, mnemonics: 4 };

/// Where operand values begin for each source, and results for each destination, in bytes: 16 for each set.
const ROW: u32 = SETS * 16;

/// An instruction with names of its own for its registers.
struct Sample {
    text: String,
    variant: Variant,
    srcs: Vec<Type>,
    dsts: Vec<Type>,
}

/// Gives registers numbers of their own, one after another by role.
fn number(shape: &mut Shape, next: &mut u8, types: &mut Vec<Type>) -> bool {
    match shape {
        Shape::Reg(t, n) => {
            *n = *next;
            *next += 1;
            types.push(*t);
            true
        }
        Shape::Vector(inner) | Shape::Group(inner) => inner.iter_mut().all(|s| number(s, next, types)),
        Shape::Pair(a, b) => number(a, next, types) && number(b, next, types),
        Shape::Not(inner) => number(inner, next, types),
        Shape::Int(_) | Shape::Float { .. } | Shape::Sink => true,
        _ => false,
    }
}

/// The newest version with a target that has the instruction.
fn place(v: &Variant) -> Option<(Version, Target)> {
    let newest = Target::ALL.iter().rev().map(|(t, _)| (Version::LAST, *t));
    newest.into_iter().find(|(version, target)| v.available(*version, *target).is_ok())
}

fn make(variant: Variant, rng: &mut sample::Rng, next: &mut u8) -> Option<Sample> {
    let mut shapes = sample::operands(&variant, rng)?;
    let (mut srcs, mut dsts) = (Vec::new(), Vec::new());
    for (opnd, shape) in variant.operands().zip(&mut shapes) {
        let types = if opnd.role == Role::Dst { &mut dsts } else { &mut srcs };
        if !number(shape, next, types) {
            return None;
        }
    }
    let bits = |types: &[Type]| types.iter().map(|t| t.bits()).collect::<Vec<_>>();
    sem::pure(&variant, &bits(&srcs), &bits(&dsts)).or_else(|| matrix::pure(&variant))?;
    Some(Sample { text: sample::text(&variant.to_string(), &shapes), variant, srcs, dsts })
}

/// Registers of the instructions, in the order of their numbers.
fn registers(samples: &[Sample], of: impl Fn(&Sample) -> &[Type]) -> Vec<(Type, String)> {
    let mut out = Vec::new();
    for s in samples {
        // Numbers follow the order of operands, in which destinations come first everywhere.
        let base = s.text.match_indices('%').filter_map(|(at, _)| {
            let name: String = s.text[at..].chars().take_while(|c| c.is_alphanumeric() || "%_".contains(*c)).collect();
            name.rsplit('_').next().and_then(|n| n.parse::<u32>().ok()).map(|n| (n, name))
        });
        let mut names: Vec<(u32, String)> = base.collect();
        names.sort();
        let types = of(s);
        let skip = if std::ptr::eq(types.as_ptr(), s.srcs.as_ptr()) && !types.is_empty() { s.dsts.len() } else { 0 };
        out.extend(types.iter().copied().zip(names.into_iter().skip(skip).map(|(_, name)| name)));
    }
    out
}

/// A kernel that computes the samples for each set of operands; sets go by thread, or by CTA.
fn kernel(version: Version, target: Target, samples: &[Sample], by: &str) -> String {
    let (srcs, dsts) = (registers(samples, |s| &s.srcs), registers(samples, |s| &s.dsts));
    let mut out = format!(
        ".version {version}\n.target {target}\n.address_size 64\n.entry k(.param .u64 in, .param .u64 out) {{\n"
    );
    for t in Type::ALL.iter().filter(|t| t.is_register()) {
        let _ = writeln!(out, ".reg .{0} %{0}_<256>;", t.name());
    }
    let _ = writeln!(
        out,
        ".reg .b64 %in, %out, %set, %w, %x; .reg .u32 %i, %j;\nld.param.u64 %in, [in]; ld.param.u64 %out, [out];\n\
         mov.u32 %i, {by}; mul.wide.u32 %set, %i, 16; add.s64 %in, %in, %set; add.s64 %out, %out, %set;"
    );
    for (k, (t, name)) in srcs.iter().enumerate() {
        let at = k as u32 * ROW;
        let _ = match t.bits() {
            1 => writeln!(out, "ld.global.u32 %j, [%in+{at}]; and.b32 %j, %j, 1; setp.ne.u32 {name}, %j, 0;"),
            128 => writeln!(out, "ld.global.v2.b64 {{%w, %x}}, [%in+{at}]; mov.b128 {name}, {{%w, %x}};"),
            bits => writeln!(out, "ld.global.b{bits} {name}, [%in+{at}];"),
        };
    }
    for s in samples {
        if matches!(s.variant.op, Opcode::Addc | Opcode::Subc | Opcode::Madc) {
            let _ = writeln!(out, "ld.global.u32 %j, [%in]; add.cc.u32 %j, %j, %j;");
        }
        let _ = writeln!(out, "{};", s.text);
    }
    for (k, (t, name)) in dsts.iter().enumerate() {
        let at = k as u32 * ROW;
        let _ = match t.bits() {
            1 => writeln!(out, "selp.u32 %j, 1, 0, {name}; st.global.u32 [%out+{at}], %j;"),
            128 => writeln!(out, "mov.b128 {{%w, %x}}, {name}; st.global.v2.b64 [%out+{at}], {{%w, %x}};"),
            bits => writeln!(out, "st.global.b{bits} [%out+{at}], {name};"),
        };
    }
    out + "ret; }\n"
}

/// Bits to compute with: ends and special values of all formats, small numbers, random bits.
fn value(rng: &mut sample::Rng) -> u128 {
    const WORDS: [u32; 16] = [
        0,
        0x8000_0000,
        0x3f80_0000,
        0xbf80_0000,
        0x7f80_0000,
        0xff80_0000,
        0x7fc0_0000,
        0xffa0_0001,
        0x0000_0001,
        0x807f_ffff,
        0x7f7f_ffff,
        0x4f00_0000,
        0xcf00_0001,
        0xffff_ffff,
        0x7fff_ffff,
        0x4b7f_ffff,
    ];
    const HALVES: [u16; 12] =
        [0, 0x8000, 0x3c00, 0xbc00, 0x7c00, 0xfc00, 0x7e01, 0x0001, 0x83ff, 0x7bff, 0x3f80, 0x7f80];
    let halves = |rng: &mut sample::Rng| u32::from(HALVES[rng.below(12)]) << 16 | u32::from(HALVES[rng.below(12)]);
    let word = |rng: &mut sample::Rng| match rng.below(6) {
        0 => WORDS[rng.below(WORDS.len())],
        1 => rng.below(70) as u32,
        2 => (rng.below(70) as u32).wrapping_neg(),
        3 => halves(rng),
        // Floats of moderate size.
        4 => rng.bits() as u32 & 0x807f_ffff | (110 + rng.below(40) as u32) << 23,
        _ => rng.bits() as u32,
    };
    let double = |rng: &mut sample::Rng| match rng.below(6) {
        0 => f64::from(f32::from_bits(WORDS[rng.below(WORDS.len())])).to_bits(),
        1 => rng.below(70) as u64,
        2 => (rng.bits() & 0x800f_ffff_ffff_ffff) | (1000 + rng.below(50) as u64) << 52,
        3 => [0x7ff8_0000_0000_0001, 0xfff4_0000_0000_0000, 1, 0x8000_0000_0000_0000, u64::MAX, i64::MAX as u64]
            [rng.below(6)],
        _ => u64::from(word(rng)) << 32 | u64::from(word(rng)),
    };
    let low = if rng.once_in(2) { double(rng) } else { u64::from(word(rng)) << 32 | u64::from(word(rng)) };
    u128::from(double(rng)) << 64 | u128::from(low)
}

fn run(
    context: &Arc<Context>,
    engine: &str,
    text: &str,
    (cta, threads): (bool, u32),
    input: &[u8],
    rows: usize,
) -> Result<Vec<u8>, String> {
    let options = LoadOptions { engine: Some(engine.into()), ..LoadOptions::default() };
    let module = context.load(&[SourceText { name: "row", text }], &options).map_err(|e| format!("{e}"))?;
    let kernel = module.kernel("k").map_err(|e| format!("{e}"))?;
    let from = context.buffer(input.len() as u64).map_err(|e| format!("{e}"))?;
    let to = context.buffer(u64::from(ROW) * rows.max(1) as u64).map_err(|e| format!("{e}"))?;
    from.write(0, input).map_err(|e| format!("{e}"))?;
    to.write(0, &vec![0; to.len() as usize]).map_err(|e| format!("{e}"))?;
    let params: Vec<u8> = [from.address(), to.address()].into_iter().flat_map(u64::to_le_bytes).collect();
    let (grid, block) = if cta { ([SETS, 1, 1], [32, 1, 1]) } else { ([1; 3], [threads, 1, 1]) };
    kernel.launch(&LaunchConfig::new(grid, block), &params).map_err(|e| format!("{engine}: {e}"))?;
    to.to_vec().map_err(|e| format!("{e}"))
}

/// What differs, by instruction.
fn compare(
    context: &Arc<Context>,
    plan: Plan,
    place: (Version, Target),
    samples: &[Sample],
    wrong: &mut BTreeMap<String, String>,
) {
    let mut rng = sample::Rng(7);
    let srcs: usize = samples.iter().map(|s| s.srcs.len()).sum();
    let dsts: usize = samples.iter().map(|s| s.dsts.len()).sum();
    let input: Vec<u8> = (0..(srcs.max(1) as u32 * SETS)).flat_map(|_| value(&mut rng).to_le_bytes()).collect();
    for cta in [false, true] {
        let text = kernel(place.0, place.1, samples, if cta { "%ctaid.x" } else { "%tid.x" });
        let [want, got] = ["reference", context.device().engine_names()[1]]
            .map(|e| run(context, e, &text, (cta, plan.threads), &input, dsts));
        let (want, got) = match (want, got) {
            (Ok(want), Ok(got)) => (want, got),
            // A sample that the check refuses takes its neighbors with it: one by one then.
            (Err(_), _) if samples.len() > 1 => return single_step(context, plan, place, samples, wrong),
            (Err(_), _) => return,
            (Ok(_), Err(_)) if samples.len() > 1 => return single_step(context, plan, place, samples, wrong),
            (Ok(_), Err(why)) => {
                wrong.insert(samples[0].text.clone(), why);
                return;
            }
        };
        let (mut src, mut dst) = (0, 0);
        for s in samples {
            for (at, t) in (dst..).zip(&s.dsts) {
                let bytes = t.bits().div_ceil(8).max(1) as usize;
                for set in 0..SETS as usize {
                    let place = at * ROW as usize + set * 16;
                    let (w, g) = (&want[place..place + bytes], &got[place..place + bytes]);
                    let values = (src..src + s.srcs.len()).map(|k| &input[k * ROW as usize + set * 16..]);
                    if w != g && !(s.variant.t() == Type::F64 && another_nan(values, w, g)) {
                        let operands: Vec<String> = (src..src + s.srcs.len())
                            .zip(&s.srcs)
                            .map(|(k, t)| {
                                let from = k * ROW as usize + set * 16;
                                hex(&input[from..from + t.bits().div_ceil(8) as usize])
                            })
                            .collect();
                        let why = format!(
                            "of {}: {} expected, {} found (by CTA: {cta})",
                            operands.join(", "),
                            hex(w),
                            hex(g)
                        );
                        wrong.entry(s.text.clone()).or_insert(why);
                    }
                }
            }
            (src, dst) = (src + s.srcs.len(), dst + s.dsts.len());
        }
    }
}

/// Whether a double is the NaN of another operand than expected. IEEE 754 (section 6.2.3) leaves open which one a result preserves if
/// several are NaNs, the manual says nothing (section 9.7.3), and LLVM exchanges operands where the host's instructions allow it.
fn another_nan<'a>(values: impl Iterator<Item = &'a [u8]>, expected: &[u8], found: &[u8]) -> bool {
    const QUIET: u64 = 1 << 51;
    if expected.len() != 8 {
        return false;
    }
    let bits = |bytes: &[u8]| bytes.first_chunk().map_or(0, |b| u64::from_le_bytes(*b));
    let nans: Vec<u64> = values.map(bits).filter(|v| f64::from_bits(*v).is_nan()).map(|v| v | QUIET).collect();
    nans.contains(&bits(expected)) && nans.contains(&bits(found))
}

fn single_step(
    context: &Arc<Context>,
    plan: Plan,
    place: (Version, Target),
    samples: &[Sample],
    wrong: &mut BTreeMap<String, String>,
) {
    for s in samples {
        compare(context, plan, place, std::slice::from_ref(s), wrong);
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().rev().fold("0x".to_owned(), |mut s, b| {
        let _ = write!(s, "{b:02x}");
        s
    })
}

#[test]
fn pure_rows_agree_with_their_semantics() {
    sweep(PURE, &|op| matches!(op.row().effect, Effect::Pure | Effect::Machine));
}

#[test]
fn products_of_matrices_agree_with_their_semantics() {
    sweep(MATRIX, &|op| matches!(op, Opcode::Mma | Opcode::Wmma | Opcode::Movmatrix));
}

fn sweep(plan: Plan, wanted: &dyn Fn(Opcode) -> bool) {
    let limit = std::env::var("MARGAY_NATIVE").ok().and_then(|v| v.parse().ok()).unwrap_or(plan.mnemonics);
    let simd = Engine::compiled("simd-full", Arc::new(SimdEngine), Effort::Full, None);
    let engines = vec![Engine::interpreted(Arc::new(Reference)), simd];
    let options = DeviceOptions { threads: Some(1), engines, ..DeviceOptions::default() };
    let device = Device::with(options).expect("a device");
    let context = device.context();
    let mut groups: BTreeMap<String, ((Version, Target), Vec<Sample>)> = BTreeMap::new();
    let (mut tried, mut wrong) = (0, BTreeMap::new());
    for op in Opcode::ALL {
        if !wanted(*op) {
            continue;
        }
        // A seed of its own, so that a new row leaves the samples of the others as they are.
        let mut rng = sample::Rng(op.row().name.bytes().fold(1_u64, |seed, b| seed.wrapping_mul(31) + u64::from(b)));
        for (index, form) in op.row().forms.iter().enumerate() {
            let mnemonics: Vec<Vec<Word>> = sample::mnemonics(form, limit, &mut rng);
            for words in mnemonics {
                let Some(variant) = Variant::new(*op, index as u16, &words) else { continue };
                let Some(place) = place(&variant).filter(|_| variant.clash().is_none()) else { continue };
                let (_, group) = groups.entry(format!("{place:?}")).or_insert((place, Vec::new()));
                let mut next = group.iter().map(|s| s.srcs.len() + s.dsts.len()).sum::<usize>() as u8;
                let Some(sample) = make(variant, &mut rng, &mut next) else { continue };
                group.push(sample);
                tried += 1;
                if group.len() == plan.together {
                    compare(&context, plan, place, group, &mut wrong);
                    group.clear();
                }
            }
        }
    }
    for (place, group) in groups.values().filter(|(_, group)| !group.is_empty()) {
        compare(&context, plan, *place, group, &mut wrong);
    }
    println!("{tried} instructions tried");
    let list: Vec<String> = wrong.into_iter().map(|(text, why)| format!("{text}\n    {why}")).collect();
    assert!(list.is_empty(), "{} differ:\n{}", list.len(), list.join("\n"));
}
