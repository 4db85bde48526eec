//! `oracle-abi`: compares the plans of the `sm` ABI with code of ptxas for random signatures, compiled as relocatable code.
//!
//! ```text
//! MARGAY_PTXAS=/usr/local/cuda/bin oracle-abi [--count N] [--seed S] [--keep FOLDER]
//! ```
//!
//! Each signature becomes a function that writes every byte of every formal to a shared address of its own and fills
//! its return value from shared memory. The machine code shows in which register or stack slot each byte arrives. The
//! plan must have the same location for every byte, and the return address must be where `.abi_preserve` places it.
//! Exits with 1 below 99 % agreement.

use margay_check::FormalSpace;
use margay_ir::abi::{Abi, Piece, Place, Plan, Signature, Sm, Value, return_address};
use margay_isa::Type;
use margay_oracle::{
    Random,
    sass::{self, Byte, Effects},
    tools::Tools,
};
use std::{collections::BTreeMap, fmt::Write, path::PathBuf, process::ExitCode};

/// Functions per module.
const BATCH: usize = 50;
/// Shared address from which return values are filled.
const RETURNS: i64 = 0x4000;
/// Bytes of shared memory per formal.
const STRIDE: i64 = 512;

fn random_value(random: &mut Random, returns: bool) -> Value {
    use Type::*;
    let (param, reg) = (FormalSpace::Param, FormalSpace::Reg);
    match random.below(10) {
        0..4 => {
            let types = [B8, B16, F16, B32, U32, S32, F32, B64, U64, S64, F64, B128];
            Value::scalar(*random.pick(&types), param)
        }
        // Without `.reg .b128`, since ptxas 13.5 loses the upper half of such a formal.
        4..6 => Value::scalar(*random.pick(&[B8, B16, F16, B32, U32, S32, F32, B64, S64, F64]), reg),
        6 => {
            let (ty, vector) = *random.pick(&[(F32, 2u8), (F32, 4), (U32, 4), (F64, 2), (B64, 2), (B16, 4), (B16, 2)]);
            let size = ty.bytes() * u32::from(vector);
            Value { vector, size, align: size, ..Value::scalar(ty, reg) }
        }
        _ => {
            let align = 1 << random.below(if returns { 5 } else { 6 });
            let size = if random.chance(75) { 1 + random.below(48) } else { 1 + random.below(160) };
            Value::bytes(size as u32, align)
        }
    }
}

fn random_signature(random: &mut Random) -> Signature {
    let count = if random.chance(50) { random.below(6) } else { random.below(18) };
    let mut params: Vec<Value> = (0..count).map(|_| random_value(random, false)).collect();
    if random.chance(8) {
        params.push(Value { is_unsized: true, ..Value::bytes(0, 1 << random.below(5)) });
    }
    let rets = if random.chance(60) { vec![random_value(random, true)] } else { Vec::new() };
    let sig = Signature { params, rets, ..Signature::default() };
    let preserve = random.chance(20).then(|| 2 + random.below(120) as u32);
    let preserving = Signature { preserve, ..sig.clone() };
    if Sm.plan(&preserving, 32).is_ok() { preserving } else { sig }
}

/// The declaration of a formal.
fn declare(value: &Value, name: &str) -> String {
    let space = match value.space {
        FormalSpace::Reg => ".reg",
        FormalSpace::Param => ".param",
    };
    match value {
        _ if value.is_unsized => format!("{space} .align {} .b8 {name}[]", value.align),
        _ if value.array => format!("{space} .align {} .b8 {name}[{}]", value.align, value.size),
        _ if value.vector > 1 => format!("{space} .v{} {} {name}", value.vector, value.ty),
        _ => format!("{space} {} {name}", value.ty),
    }
}

/// Bytes of a formal to compare: all, or the first ones of an unsized array.
fn looked_at(value: &Value) -> u32 {
    if value.is_unsized { 16 } else { value.size }
}

/// Copies a formal to shared memory (`out`) or fills a return value from it, in the largest aligned pieces.
fn probe(text: &mut String, value: &Value, name: &str, at: i64, out: bool) {
    let line = |text: &mut String, ty: &str, there: &str, here: i64, reg: &str| {
        let _ = match (value.space, out) {
            (FormalSpace::Param, true) => {
                writeln!(text, " ld.param.{ty} {reg}, {there}; st.volatile.shared.{ty} [%z+{here}], {reg};")
            }
            (FormalSpace::Param, false) => {
                writeln!(text, " ld.volatile.shared.{ty} {reg}, [%z+{here}]; st.param.{ty} {there}, {reg};")
            }
            (FormalSpace::Reg, true) => writeln!(text, " st.volatile.shared.{ty} [%z+{here}], {there};"),
            (FormalSpace::Reg, false) => writeln!(text, " ld.volatile.shared.{ty} {there}, [%z+{here}];"),
        };
    };
    if value.space == FormalSpace::Param {
        let unit = value.align.min(4);
        let mut offset = 0;
        while offset < looked_at(value) {
            let left = looked_at(value) - offset;
            let (ty, size, reg) = match unit {
                4 if left >= 4 => ("b32", 4, "%r"),
                2 | 4 if left >= 2 => ("b16", 2, "%h"),
                _ => ("b8", 1, "%h"),
            };
            line(text, ty, &format!("[{name}+{offset}]"), at + i64::from(offset), reg);
            offset += size;
        }
        return;
    }
    let bits = value.ty.bits();
    match (bits, value.vector) {
        (128, _) if out => {
            let _ = writeln!(text, " mov.b128 {{%d, %e}}, {name};");
            line(text, "b64", "%d", at, "");
            line(text, "b64", "%e", at + 8, "");
        }
        (128, _) => {
            line(text, "b64", "%d", at, "");
            line(text, "b64", "%e", at + 8, "");
            let _ = writeln!(text, " mov.b128 {name}, {{%d, %e}};");
        }
        (_, 1) => line(text, &format!("b{bits}"), name, at, ""),
        (_, n) => {
            for i in 0..n {
                let element = ['x', 'y', 'z', 'w'][usize::from(i)];
                line(
                    text,
                    &format!("b{bits}"),
                    &format!("{name}.{element}"),
                    at + i64::from(u32::from(i) * bits / 8),
                    "",
                );
            }
        }
    }
}

fn function(name: &str, sig: &Signature) -> String {
    let rets: Vec<String> = sig.rets.iter().map(|v| declare(v, "ret")).collect();
    let params: Vec<String> = sig.params.iter().enumerate().map(|(i, v)| declare(v, &format!("a{i}"))).collect();
    let mut text = String::from(".visible .func ");
    if !rets.is_empty() {
        let _ = write!(text, "({}) ", rets.join(", "));
    }
    let preserve = sig.preserve.map(|n| format!(" .abi_preserve {n}")).unwrap_or_default();
    let _ = writeln!(text, "{name}({}){preserve} {{", params.join(", "));
    text += " .reg .b16 %h; .reg .b32 %r, %z; .reg .b64 %d, %e; mov.b32 %z, 0;\n";
    for (i, value) in sig.params.iter().enumerate() {
        probe(&mut text, value, &format!("a{i}"), STRIDE * i as i64, true);
    }
    for value in &sig.rets {
        probe(&mut text, value, "ret", RETURNS, false);
    }
    text + " ret;\n}\n"
}

/// The piece that contains a byte.
fn carrier(pieces: &[Piece], byte: u32) -> Option<&Piece> {
    pieces.iter().find(|p| p.bytes.contains(&byte)).or_else(|| pieces.iter().find(|p| p.bytes.is_empty()))
}

/// Reports the first byte at another location than planned.
fn compare(sig: &Signature, plan: &Plan, seen: &Effects) -> Result<(), String> {
    for (i, (value, pieces)) in sig.params.iter().zip(&plan.args).enumerate() {
        for byte in 0..looked_at(value) {
            let piece = carrier(pieces, byte).ok_or("no piece")?;
            let behind = byte - piece.bytes.start;
            let wanted = match piece.at {
                Place::Reg(r) => Byte::Entry { reg: r.index, byte: behind as u8 },
                Place::Stack { offset } => Byte::Stack(i64::from(offset + behind)),
                Place::Space { .. } | Place::Behind(_) => return Err("a place that the GPU does not have".into()),
            };
            let found = seen.shared.get(&(STRIDE * i as i64 + i64::from(byte)));
            if found != Some(&wanted) {
                return Err(format!("a{i} byte {byte}: planned {wanted:?}, found {found:?}"));
            }
        }
    }
    let wanted = return_address(sig.preserve);
    if seen.return_address.map(u32::from) != Some(wanted) {
        return Err(format!("return address: planned R{wanted}, found {:?}", seen.return_address));
    }
    for (value, pieces) in sig.rets.iter().zip(&plan.rets) {
        for byte in 0..value.size {
            let piece = carrier(pieces, byte).ok_or("no piece")?;
            let wanted = Byte::Shared(RETURNS + i64::from(byte));
            let found = match piece.at {
                Place::Reg(r) => seen.at_return.get(&r.index).map(|w| w[(byte - piece.bytes.start) as usize]),
                Place::Behind(r) => seen.behind.get(&(r.index, i64::from(byte))).copied(),
                Place::Stack { .. } | Place::Space { .. } => None,
            };
            if found != Some(wanted) {
                return Err(format!("ret byte {byte}: not at {:?}, found {found:?}", piece.at));
            }
        }
    }
    Ok(())
}

struct Options {
    count: usize,
    seed: u64,
    keep: Option<PathBuf>,
}

fn options() -> Result<Options, String> {
    let mut options = Options { count: 1000, seed: 1, keep: None };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--count" => options.count = value()?.parse().map_err(|e| format!("--count: {e}"))?,
            "--seed" => options.seed = value()?.parse().map_err(|e| format!("--seed: {e}"))?,
            "--keep" => options.keep = Some(value()?.into()),
            _ => return Err(format!("unknown argument {word}")),
        }
    }
    Ok(options)
}

/// The effects of each signature's function; `None` where ptxas crashes. It crashes on some modules whose functions it
/// compiles one by one, so a failing module is split until its parts compile.
fn compile(tools: &Tools, sigs: &[Signature]) -> Result<Vec<Option<Effects>>, String> {
    let mut text = String::from(".version 9.0\n.target sm_80\n.address_size 64\n");
    for (i, sig) in sigs.iter().enumerate() {
        text += &function(&format!("f{i}"), sig);
    }
    let verdict = tools.ptxas("probe", &text, &["-c", "-arch=sm_80"]).map_err(|e| e.to_string())?;
    if verdict.accepted {
        let mut seen = sass::functions(&tools.sass("probe").map_err(|e| e.to_string())?);
        return Ok((0..sigs.len()).map(|i| seen.remove(&format!("f{i}"))).collect());
    }
    match sigs.len() {
        _ if !verdict.messages.trim().is_empty() => Err(format!("ptxas refuses a module: {}", verdict.messages)),
        0 | 1 => Ok(vec![None; sigs.len()]),
        n => Ok([compile(tools, &sigs[..n / 2])?, compile(tools, &sigs[n / 2..])?].concat()),
    }
}

fn run(options: &Options) -> Result<bool, String> {
    let work =
        options.keep.clone().unwrap_or_else(|| std::env::temp_dir().join(format!("oracle-abi-{}", std::process::id())));
    let tools = Tools::find(&work).map_err(|e| format!("ptxas does not run ({e}); set MARGAY_PTXAS to its folder"))?;
    let mut random = Random::new(options.seed);
    let signatures: Vec<Signature> = (0..options.count).map(|_| random_signature(&mut random)).collect();
    let (mut agree, mut unreadable, mut crashes) = (0, 0, 0);
    let mut differences: BTreeMap<usize, String> = BTreeMap::new();
    for (batch, sigs) in signatures.chunks(BATCH).enumerate() {
        let seen = compile(&tools, sigs)?;
        for (i, (sig, effects)) in sigs.iter().zip(&seen).enumerate() {
            let Some(effects) = effects else {
                crashes += 1;
                continue;
            };
            match Sm.plan(sig, 32).map_err(|e| e.to_string()).and_then(|plan| compare(sig, &plan, effects)) {
                Ok(()) => agree += 1,
                Err(why) => {
                    unreadable += usize::from(!effects.unknown.is_empty());
                    let unknown =
                        effects.unknown.first().map(|u| format!(" (not understood: {u})")).unwrap_or_default();
                    differences.insert(batch * BATCH + i, format!("{}\n    {why}{unknown}", head(sig)));
                }
            }
        }
    }
    for (i, difference) in differences.iter().take(20) {
        println!("signature {i}: {difference}");
    }
    let compiled = options.count - crashes;
    let percent = 100.0 * agree as f64 / compiled.max(1) as f64;
    println!("{agree} of {compiled} signatures agree ({percent:.1} %), {unreadable} of the others not readable");
    if crashes > 0 {
        println!("ptxas crashed on {crashes} more");
    }
    if options.keep.is_none() {
        let _ = std::fs::remove_dir_all(&work);
    }
    Ok(percent >= 99.0)
}

fn head(sig: &Signature) -> String {
    function("f", sig).lines().next().unwrap_or_default().to_string()
}

fn main() -> ExitCode {
    match options().and_then(|o| run(&o)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(message) => {
            eprintln!("oracle-abi: {message}");
            ExitCode::from(2)
        }
    }
}
