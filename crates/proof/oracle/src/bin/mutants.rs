//! `oracle-mutants`: compares the verdicts of margay and ptxas on modules with a single random fault.
//!
//! ```text
//! MARGAY_PTXAS=/usr/local/cuda/bin oracle-mutants [--declarations] [--count N] [--seed S] [--show N] [--keep FOLDER] FILE.ptx|FOLDER...
//! ```
//!
//! `--declarations` restricts faults to declarations, headers and directives: spaces, types, alignments, sizes,
//! parameters, and earlier versions and targets. The modules come from the named files, the faults from
//! [`margay_oracle::mutate`]; the seed determines the whole run. Modules longer than 48 kB are skipped, since a fault
//! in them is a fault in one of their functions. Exits with 1 if fewer than 98 % of the verdicts agree, or fewer than
//! 95 % of the first errors are within one line of each other.

use margay_isa::{Suffix, Target};
use margay_oracle::{
    Random,
    compare::Tally,
    mutate::{mutant, mutant_of_declarations},
    options::Options,
    tools::{Tools, Verdict},
};
use std::{
    io,
    path::{Path, PathBuf},
    process::ExitCode,
};

/// Size limit of mutated modules in bytes.
const LONGEST: usize = 48_000;

/// The modules in the files and folders, in order of their names.
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

/// The architecture that ptxas compiles a module for: the highest that it names, or the oldest that ptxas still has.
fn architecture(text: &str) -> String {
    let word =
        |rest: &str| rest.split([',', '\n', ' ', '\t']).find(|w| !w.is_empty()).and_then(|w| Target::parse(w.trim()));
    let target = match text.split(".target").skip(1).filter_map(word).max_by_key(|t| t.sm) {
        Some(t) if t.sm == 82 => Target::sm(86),
        Some(t) if t.sm >= 75 => t,
        _ => Target::sm(80),
    };
    let sm = if target.sm == 101 { 110 } else { target.sm };
    let suffix = if sm < 90 { Suffix::None } else { target.suffix };
    Target { sm, suffix }.to_string()
}

/// ptxas's verdict: the module is checked first, and compiled if it passes.
fn ptxas(tools: &Tools, text: &str) -> io::Result<Verdict> {
    let arch = architecture(text);
    let ask = |arch: &str| {
        let arch = format!("-arch={arch}");
        let arguments = [arch.as_str(), "-c"];
        tools.ptxas("mutant", text, &arguments[..1 + usize::from(relocatable(text))])
    };
    let checked = ask(&arch.replace("sm_", "compute_"))?;
    if !checked.accepted {
        return Ok(checked);
    }
    let compiled = ask(&arch)?;
    // Modules of 32 bits are checked by ptxas 13 and compiled by older ones.
    let old = compiled.messages.contains("32-Bit") && !text.contains(".address_size 64");
    Ok(if old { checked } else { compiled })
}

/// Modules with this directive are parts of a program, for ptxas `-c`.
fn relocatable(text: &str) -> bool {
    text.contains("//@ relocatable")
}

fn run(options: &Options) -> Result<bool, String> {
    let work = options.folder("oracle-mutants");
    let tools = Tools::find(&work).map_err(|e| format!("ptxas does not run ({e}); set MARGAY_PTXAS to its folder"))?;
    let mut seeds = Vec::new();
    for from in &options.files {
        modules(from, &mut seeds).map_err(|e| format!("{}: {e}", from.display()))?;
    }
    if seeds.is_empty() {
        return Err("name files or folders with modules".to_owned());
    }
    let mut random = Random::new(options.seed);
    let mut mutants = Vec::with_capacity(options.count);
    while mutants.len() < options.count {
        let (name, text) = random.pick(&seeds);
        let made = match options.declarations {
            true => mutant_of_declarations(text, &mut random),
            false => mutant(text, &mut random),
        };
        if let Some((fault, text)) = made {
            mutants.push((format!("{name} ({fault:?})"), text));
        }
    }
    let mut tally = Tally::default();
    for (i, (_, text)) in mutants.iter().enumerate() {
        let verdict = ptxas(&tools, text).map_err(|e| e.to_string())?;
        tally.add(i, text, relocatable(text), &verdict);
    }
    tally.print(options.show, |i| {
        if options.keep.is_some() {
            let _ = std::fs::write(work.join(format!("mutant{i}.ptx")), &mutants[i].1);
        }
        format!("mutant {i} of {}", mutants[i].0)
    });
    options.clean(&work);
    Ok(tally.percent() >= 98.0 && tally.near_percent() >= 95.0)
}

fn main() -> ExitCode {
    match Options::of_process().and_then(|o| run(&o)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(message) => {
            eprintln!("oracle-mutants: {message}");
            ExitCode::from(2)
        }
    }
}
