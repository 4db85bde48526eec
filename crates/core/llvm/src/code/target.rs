//! The host, or the processor that `MARGAY_CPU` names, as LLVM's target: CPU, features, pass pipelines.

use crate::code::load;
use inkwell::{
    OptimizationLevel,
    module::Module,
    passes::PassBuilderOptions,
    targets::{CodeModel, FileType, InitializationConfig, RelocMode, Target, TargetMachine},
};
use margay_exec::Effort;
use std::{
    fs::File,
    io::{BufRead, BufReader},
    sync::{LazyLock, Once},
};

/// Identifies hosts for the cache key: code for one runs on every host with the same text. Needs no LLVM, which is not
/// loaded for cached code.
pub fn host() -> &'static str {
    static HOST: LazyLock<String> = LazyLock::new(|| {
        let first = cpuinfo();
        let names = ["vendor_id", "cpu family", "model", "flags"];
        let line = |line: &&str| line.split_once(':').is_some_and(|(name, _)| names.contains(&name.trim()));
        let known =
            [mask_registers(), gathers(), half_floats(), half_arithmetic(), fused(), wide_atomics(), wide_integers()];
        format!("{:?} {known:?} {}", processor(), first.lines().filter(line).collect::<Vec<_>>().join(";"))
    });
    &HOST
}

/// Identifies the LLVM library for the cache key.
pub fn library() -> (&'static str, Option<std::ffi::OsString>) {
    (load::NAMES[0], std::env::var_os("MARGAY_LLVM"))
}

/// The processor that code is compiled for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Processor {
    /// A level of the x86-64 psABI, with the features that all processors of the level have.
    V2,
    V3,
    V4,
    /// This one.
    Native,
}

/// The levels and what LLVM calls them.
const LEVELS: [(Processor, &str); 3] =
    [(Processor::V2, "x86-64-v2"), (Processor::V3, "x86-64-v3"), (Processor::V4, "x86-64-v4")];

/// The processor that `MARGAY_CPU` names, or what is wrong with it.
fn processor() -> Result<Processor, String> {
    static NAMED: LazyLock<Result<Processor, String>> = LazyLock::new(|| {
        let name = std::env::var("MARGAY_CPU").unwrap_or_default();
        if matches!(name.as_str(), "" | "native") {
            return Ok(Processor::Native);
        }
        let Some((processor, _)) = LEVELS.into_iter().find(|(_, level)| *level == name) else {
            let names = LEVELS.map(|(_, name)| name).join("`, `");
            return Err(format!("`MARGAY_CPU` is `{name}`; it may be `native`, `{names}`"));
        };
        match processor <= highest() {
            true => Ok(processor),
            false => Err(format!("`MARGAY_CPU` is `{name}`, but this processor lacks some of its features")),
        }
    });
    NAMED.clone()
}

/// The highest level whose features this processor has.
fn highest() -> Processor {
    let v3 = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("f16c")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("movbe");
    let v4 = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512cd")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl");
    match (v3, v4) {
        (true, true) => Processor::V4,
        (true, false) => Processor::V3,
        _ => Processor::V2,
    }
}

/// Whether code may use a feature that processors have from a level on, and that this one has or not.
fn has(detected: bool, level: Processor) -> bool {
    detected && processor().is_ok_and(|p| p >= level)
}

/// Loads LLVM and registers the host's target; must succeed before anything else here. An error says why LLVM is
/// unavailable.
pub fn initialize() -> Result<(), String> {
    static INIT: Once = Once::new();
    processor()?;
    load::ready()?;
    INIT.call_once(|| Target::initialize_x86(&InitializationConfig::default()));
    Ok(())
}

/// Whether the host has mask registers (AVX-512VL), and classifies numbers (AVX-512DQ).
pub fn mask_registers() -> bool {
    has(is_x86_feature_detected!("avx512vl") && is_x86_feature_detected!("avx512dq"), Processor::V4)
}

/// Whether the host's gathers and scatters of AVX-512 are faster than loops over lanes: on Intel's processors except those whose
/// microcode mitigates gather data sampling, and on AMD's from Zen 5 on (family 26), where half a row of random words takes
/// 11 ns instead of 14 and all of it 12 instead of 20. Before, AMD's take longer than a loop.
pub fn gathers() -> bool {
    static GATHERS: LazyLock<bool> = LazyLock::new(|| {
        let text = cpuinfo();
        let words = |name| words(text, name);
        let vendor = |name| words("vendor_id").any(|w| w == name);
        let family =
            || text.lines().find_map(|line| line.strip_prefix("cpu family")?.rsplit(':').next()?.trim().parse().ok());
        let intel = vendor("GenuineIntel") && !words("bugs").any(|w| w == "gds");
        mask_registers() && (intel || vendor("AuthenticAMD") && family().is_some_and(|f: u32| f >= 26))
    });
    *GATHERS
}

/// The words of a line of `cpuinfo`.
fn words<'a>(cpuinfo: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let line = cpuinfo.lines().find(|line| line.split(':').next().is_some_and(|n| n.trim() == name));
    line.map(|line| line.split_whitespace().skip(1)).into_iter().flatten()
}

/// What the kernel says of the first processor; all have the same features. It takes long to describe the others.
fn cpuinfo() -> &'static str {
    static FIRST: LazyLock<String> = LazyLock::new(|| {
        let Ok(file) = File::open("/proc/cpuinfo") else { return String::new() };
        let lines = BufReader::new(file).lines().map_while(Result::ok).take_while(|line| !line.is_empty());
        lines.collect::<Vec<_>>().join("\n")
    });
    &FIRST
}

/// Whether the host converts between half and single precision (F16C).
pub fn half_floats() -> bool {
    has(is_x86_feature_detected!("f16c"), Processor::V3)
}

/// Whether the host computes in half precision (AVX512-FP16), which no level of the psABI includes.
pub fn half_arithmetic() -> bool {
    static HALVES: LazyLock<bool> =
        LazyLock::new(|| mask_registers() && words(cpuinfo(), "flags").any(|flag| flag == "avx512_fp16"));
    *HALVES && processor() == Ok(Processor::Native)
}

/// Whether the host multiplies and adds vectors of 32 bytes at once (AVX2 and FMA).
pub fn fused() -> bool {
    has(is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"), Processor::V3)
}

/// Whether the host multiplies vectors of 32 bytes of integers (AVX2).
pub fn wide_integers() -> bool {
    has(is_x86_feature_detected!("avx2"), Processor::V3)
}

/// Whether the host has 16-byte atomic operations (`cmpxchg16b`).
pub fn wide_atomics() -> bool {
    has(is_x86_feature_detected!("cmpxchg16b"), Processor::V2)
}

/// The host's target machine.
pub fn machine(effort: Effort) -> Result<TargetMachine, String> {
    let triple = TargetMachine::get_default_triple();
    let target = Target::from_triple(&triple).map_err(|e| e.to_string())?;
    let processor = processor()?;
    let (cpu, features) = match LEVELS.into_iter().find(|(level, _)| *level == processor) {
        Some((_, name)) => (name.to_owned(), String::new()),
        None => (TargetMachine::get_host_cpu_name().to_string(), TargetMachine::get_host_cpu_features().to_string()),
    };
    let level = match effort {
        Effort::Light => OptimizationLevel::None,
        Effort::Full => OptimizationLevel::Default,
    };
    target
        .create_target_machine(&triple, &cpu, &features, level, RelocMode::PIC, CodeModel::Small)
        .ok_or_else(|| format!("LLVM has no machine for {triple}"))
}

/// Bytes of LLVM IR up to which all passes run. Global value numbering takes most of the time in larger functions, and
/// finds little there that common-subexpression elimination does not.
const MODEST: usize = 1 << 20;

/// Whether `narrow` divides vectors between LLVM's passes and its code generator.
pub fn narrows(effort: Effort) -> bool {
    effort == Effort::Full && !mask_registers()
}

/// Runs the pass pipeline of an effort on a module of `size` bytes of text; names all values if `named`.
pub fn optimize(module: &Module<'_>, effort: Effort, size: usize, named: bool) -> Result<TargetMachine, String> {
    let machine = machine(effort)?;
    module.set_triple(&machine.get_triple());
    module.set_data_layout(&machine.get_target_data().get_data_layout());
    let passes = match effort {
        Effort::Light => "function(sroa,early-cse,instcombine<no-verify-fixpoint>,simplifycfg)",
        Effort::Full if size > MODEST => {
            "function(sroa,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg,loop-mssa(licm),early-cse<memssa>,dse)"
        }
        Effort::Full => {
            "function(sroa,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg,loop-mssa(licm),gvn,instcombine<no-verify-fixpoint>,simplifycfg,dse)"
        }
    };
    let passes = if named { format!("{passes},function(instnamer)") } else { passes.into() };
    module.run_passes(&passes, &machine, PassBuilderOptions::create()).map_err(|e| e.to_string())?;
    Ok(machine)
}

/// Compiles an optimized module to an object.
pub fn emit_object(module: &Module<'_>, machine: &TargetMachine) -> Result<Vec<u8>, String> {
    let buffer = machine.write_to_memory_buffer(module, FileType::Object).map_err(|e| e.to_string())?;
    Ok(buffer.as_slice().to_vec())
}

/// Compiles an optimized module to assembly text.
pub fn emit_assembly(module: &Module<'_>, machine: &TargetMachine) -> Result<String, String> {
    let buffer = machine.write_to_memory_buffer(module, FileType::Assembly).map_err(|e| e.to_string())?;
    Ok(String::from_utf8_lossy(buffer.as_slice()).into_owned())
}
