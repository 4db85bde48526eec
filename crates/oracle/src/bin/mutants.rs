//! `oracle-mutants`: the verdicts of margay and of ptxas on modules with a single random fault.
//!
//! ```text
//! MARGAY_PTXAS=/usr/local/cuda/bin oracle-mutants [--count N] [--seed S] [--show N] [--keep FOLDER] FILE.ptx|FOLDER...
//! ```
//!
//! The modules are drawn from the files named, the faults from [`margay_oracle::mutate`]; a seed tells the whole run. Modules
//! longer than 24 kB are left out: a fault in them is a fault in one of their functions. Exits with 1 where fewer than 98 % of
//! the verdicts agree, or fewer than 95 % of the first errors stand within one line of each other.

use margay_isa::{Suffix, Target};
use margay_oracle::{
    Random,
    compare::Tally,
    mutate::mutant,
    tools::{Tools, Verdict},
};
use std::{
    io,
    path::{Path, PathBuf},
    process::ExitCode,
};

struct Options {
    count: usize,
    seed: u64,
    show: usize,
    keep: Option<PathBuf>,
    from: Vec<PathBuf>,
}

/// Longest module that is mutated, in bytes.
const LONGEST: usize = 24_000;

fn options() -> Result<Options, String> {
    let mut options = Options { count: 1000, seed: 1, show: 3, keep: None, from: Vec::new() };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        let number = |v: String| v.parse::<u64>().map_err(|e| format!("{word}: {e}"));
        match word.as_str() {
            "--count" => options.count = number(value()?)? as usize,
            "--seed" => options.seed = number(value()?)?,
            "--show" => options.show = number(value()?)? as usize,
            "--keep" => options.keep = Some(value()?.into()),
            _ if word.starts_with('-') => return Err(format!("unknown argument {word}")),
            _ => options.from.push(word.clone().into()),
        }
    }
    Ok(options)
}

/// Modules in the files and folders, in the order of their names.
fn modules(from: &Path, out: &mut Vec<(String, String)>) -> io::Result<()> {
    if from.is_dir() {
        let mut inside: Vec<PathBuf> = from.read_dir()?.map(|e| e.map(|e| e.path())).collect::<Result<_, _>>()?;
        inside.sort();
        return inside.iter().try_for_each(|f| modules(f, out));
    }
    if from.extension().is_some_and(|e| e == "ptx") {
        let text = std::fs::read_to_string(from)?;
        if text.len() <= LONGEST {
            out.push((from.display().to_string(), text));
        }
    }
    Ok(())
}

/// The architecture that ptxas compiles a module for: its own, or the oldest that ptxas still has.
fn architecture(text: &str) -> String {
    let word =
        text.split_once(".target").and_then(|(_, rest)| rest.split([',', '\n', ' ', '\t']).find(|w| !w.is_empty()));
    let target = match word.and_then(|w| Target::parse(w.trim())) {
        Some(t) if t.sm >= 75 && t.sm != 82 => t,
        _ => Target::sm(80),
    };
    let sm = if target.sm == 101 { 110 } else { target.sm };
    let suffix = if sm < 90 { Suffix::None } else { target.suffix };
    Target { sm, suffix }.to_string()
}

/// Parsed and checked first; what passes is compiled.
fn ptxas(tools: &Tools, text: &str) -> io::Result<Verdict> {
    let arch = architecture(text);
    let checked = tools.ptxas("mutant", text, &[&format!("-arch={}", arch.replace("sm_", "compute_"))])?;
    if !checked.accepted {
        return Ok(checked);
    }
    let compiled = tools.ptxas("mutant", text, &[&format!("-arch={arch}")])?;
    // Modules of 32 bits are checked by ptxas 13 and compiled by older ones.
    let old = compiled.messages.contains("32-Bit") && !text.contains(".address_size 64");
    Ok(if old { checked } else { compiled })
}

fn run(options: &Options) -> Result<bool, String> {
    let work = options
        .keep
        .clone()
        .unwrap_or_else(|| std::env::temp_dir().join(format!("oracle-mutants-{}", std::process::id())));
    let tools = Tools::find(&work).map_err(|e| format!("ptxas does not run ({e}); set MARGAY_PTXAS to its folder"))?;
    let mut seeds = Vec::new();
    for from in &options.from {
        modules(from, &mut seeds).map_err(|e| format!("{}: {e}", from.display()))?;
    }
    if seeds.is_empty() {
        return Err("name files or folders with modules".to_owned());
    }
    let mut random = Random::new(options.seed);
    let mut mutants = Vec::with_capacity(options.count);
    while mutants.len() < options.count {
        let (name, text) = random.pick(&seeds);
        if let Some((fault, text)) = mutant(text, &mut random) {
            mutants.push((format!("{name} ({fault:?})"), text));
        }
    }
    let mut tally = Tally::default();
    for (i, (_, text)) in mutants.iter().enumerate() {
        let verdict = ptxas(&tools, text).map_err(|e| e.to_string())?;
        tally.add(i, text, false, &verdict);
    }
    tally.print(options.show, |i| {
        if options.keep.is_some() {
            let _ = std::fs::write(work.join(format!("mutant{i}.ptx")), &mutants[i].1);
        }
        format!("mutant {i} of {}", mutants[i].0)
    });
    if options.keep.is_none() {
        let _ = std::fs::remove_dir_all(&work);
    }
    Ok(tally.percent() >= 98.0 && tally.near_percent() >= 95.0)
}

fn main() -> ExitCode {
    match options().and_then(|o| run(&o)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(message) => {
            eprintln!("oracle-mutants: {message}");
            ExitCode::from(2)
        }
    }
}
