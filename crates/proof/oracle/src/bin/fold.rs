//! `oracle-fold`: compares the reference engine with ptxas's constant folding of pure instructions.
//!
//! ```text
//! MARGAY_PTXAS=/usr/local/cuda/bin oracle-fold [--rounds N] [--seed S] [--op NAME] [--keep FOLDER]
//! ```
//!
//! Each round takes some mnemonics of every pure row with interesting constants. What ptxas does not fold does not
//! count. Prints the differences, one per mnemonic, and exits with 1 if there are any.

use margay_exec::Stop;
use margay_isa::{Effect, Opcode, Target, Variant, Version, sample};
use margay_oracle::{
    fold::{self, Probe, SLOT, SLOTS},
    tools::Tools,
};
use margay_runtime::{Context, Device, Error, LaunchConfig, LoadOptions, SourceText};
use std::{collections::BTreeMap, path::PathBuf, process::ExitCode, sync::Arc};

/// Kernels per module.
const KERNELS: usize = 60;

struct Options {
    rounds: usize,
    seed: u64,
    op: Option<String>,
    keep: Option<PathBuf>,
}

fn options() -> Result<Options, String> {
    let mut options = Options { rounds: 4, seed: 1, op: None, keep: None };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().ok_or(format!("{word} needs a value"))?;
        let number = || value.parse::<u64>().map_err(|e| format!("{word}: {e}"));
        match word.as_str() {
            "--rounds" => options.rounds = number()? as usize,
            "--seed" => options.seed = number()?,
            "--op" => options.op = Some(value),
            "--keep" => options.keep = Some(value.into()),
            _ => return Err(format!("unknown argument {word}")),
        }
    }
    Ok(options)
}

/// The newest version, and a target that has the instruction and that ptxas compiles for.
fn place(v: &Variant) -> Option<(Version, Target)> {
    // The first one has only 32-bit moves, whose constants are easy to read.
    let preferred = [Target::arch(90), Target::arch(100), Target::arch(120), Target::arch(107)];
    let fits = |t: &Target| v.available(Version::LAST, *t).is_ok();
    preferred.into_iter().find(fits).map(|t| (Version::LAST, t))
}

/// Probes compiled together: version and target, and the instructions with their kernels' names.
type Batch = ((Version, Target), Vec<(String, Probe)>);

/// What the reference engine stores, per kernel.
fn compute(context: &Arc<Context>, text: &str, probes: &[Probe]) -> Result<Vec<Option<Vec<u8>>>, String> {
    let module = context
        .load(
            &[SourceText { name: "fold", text }],
            &LoadOptions { abi: None, engine: Some("reference".into()), ..LoadOptions::default() },
        )
        .map_err(|e| e.to_string())?;
    let mut results = Vec::new();
    for i in 0..probes.len() {
        let out = context.buffer(SLOT * SLOTS as u64).map_err(|e| e.to_string())?;
        let run = module
            .kernel(&format!("k{i}"))
            .and_then(|kernel| kernel.launch(&LaunchConfig::new([1; 3], [1; 3]), &out.address().to_le_bytes()));
        results.push(match run {
            Ok(_) => Some(out.to_vec().map_err(|e| e.to_string())?),
            Err(Error::Stopped(report)) if matches!(report.stop, Stop::Unsupported(_)) => None,
            Err(e) => return Err(format!("{}: {e}", probes[i].instruction)),
        });
    }
    Ok(results)
}

#[derive(Default)]
struct Tally {
    folded: usize,
    tried: usize,
    wrong: BTreeMap<String, String>,
    refused: BTreeMap<String, String>,
}

fn compare(
    tools: &Tools,
    context: &Arc<Context>,
    place: (Version, Target),
    batch: &[(String, Probe)],
    tally: &mut Tally,
) {
    let head = format!(".version {}\n.target {}\n.address_size 64\n", place.0, place.1);
    let probes: Vec<Probe> = batch.iter().map(|(_, p)| p.clone()).collect();
    let text = fold::module(&head, &probes);
    let verdict = tools.ptxas("fold", &text, &[&format!("-arch={}", place.1)]);
    if !verdict.as_ref().is_ok_and(|v| v.accepted) {
        if let [(name, probe)] = batch {
            let why = verdict.map_or_else(|e| e.to_string(), |v| v.messages);
            tally
                .refused
                .insert(name.clone(), format!("{}: {}", probe.instruction, why.lines().next().unwrap_or_default()));
        } else {
            // Isolates probes that ptxas rejects.
            let (a, b) = batch.split_at(batch.len() / 2);
            compare(tools, context, place, a, tally);
            compare(tools, context, place, b, tally);
        }
        return;
    }
    let listing = tools.sass("fold").unwrap_or_default();
    let folded = fold::folded(&listing);
    let ours = match compute(context, &text, &probes) {
        Ok(ours) => ours,
        Err(what) => {
            tally.wrong.insert(batch[0].0.clone(), what);
            return;
        }
    };
    for (i, ((name, probe), ours)) in batch.iter().zip(ours).enumerate() {
        tally.tried += 1;
        let (Some(stores), Some(ours)) = (folded.get(&format!("k{i}")), ours) else { continue };
        let mut all = true;
        for (slot, size) in probe.sizes.iter().enumerate() {
            for word in (0..*size).step_by(4) {
                let at = slot as u64 * SLOT + word as u64;
                let Some(theirs) = stores.get(&at) else {
                    all = false;
                    continue;
                };
                let mask = if *size == 2 { 0xffff } else { u32::MAX };
                let at = at as usize;
                let mine = u32::from_le_bytes([ours[at], ours[at + 1], ours[at + 2], ours[at + 3]]) & mask;
                if mine != theirs & mask {
                    let sources: Vec<String> = probe.sources.iter().map(|(n, v)| format!("{n} = {v:#x}")).collect();
                    let what = format!(
                        "{} with {}: destination {slot} word {} is {mine:#x}, ptxas says {:#x}",
                        probe.instruction,
                        sources.join(", "),
                        word / 4,
                        theirs & mask
                    );
                    tally.wrong.entry(name.clone()).or_insert(what);
                }
            }
        }
        tally.folded += usize::from(all);
    }
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(what) => {
            eprintln!("{what}");
            return ExitCode::from(2);
        }
    };
    let work = options.keep.clone().unwrap_or_else(|| std::env::temp_dir().join("margay-fold"));
    let (Ok(tools), Ok(device)) = (Tools::find(&work), Device::new()) else {
        eprintln!("ptxas not found: set MARGAY_PTXAS to its folder");
        return ExitCode::from(2);
    };
    let context = device.context();
    let mut rng = sample::Rng(options.seed);
    let mut batches: BTreeMap<String, Batch> = BTreeMap::new();
    let mut tally = Tally::default();
    for _ in 0..options.rounds {
        for op in Opcode::ALL.iter().filter(|op| op.row().effect == Effect::Pure) {
            if options.op.as_ref().is_some_and(|only| op.row().name != only) {
                continue;
            }
            for (index, form) in op.row().forms.iter().enumerate() {
                for words in sample::mnemonics(form, 12, &mut rng) {
                    let Some(variant) = Variant::new(*op, index as u16, &words) else { continue };
                    let Some(place) = place(&variant).filter(|_| variant.clash().is_none()) else { continue };
                    let Some(probe) = fold::probe(&variant, &mut rng) else { continue };
                    let (_, batch) = batches.entry(place.1.to_string()).or_insert((place, Vec::new()));
                    batch.push((variant.to_string(), probe));
                    if batch.len() == KERNELS {
                        let batch = std::mem::take(batch);
                        compare(&tools, &context, place, &batch, &mut tally);
                    }
                }
            }
        }
    }
    for (place, batch) in batches.into_values().filter(|(_, b)| !b.is_empty()) {
        compare(&tools, &context, place, &batch, &mut tally);
    }
    for (name, why) in &tally.refused {
        println!("ptxas refuses {name}: {why}");
    }
    for what in tally.wrong.values() {
        println!("{what}");
    }
    println!("{} of {} instructions folded; {} mnemonics differ", tally.folded, tally.tried, tally.wrong.len());
    if tally.wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
