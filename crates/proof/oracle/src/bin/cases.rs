//! `oracle-cases`: compares the verdicts of margay and ptxas on random modules about functions and parameters.
//!
//! ```text
//! MARGAY_PTXAS=/usr/local/cuda/bin oracle-cases [--count N] [--seed S] [--show N] [--keep FOLDER] [FILE.ptx...]
//! ```
//!
//! Compares whether a module is accepted, and for rejected ones whose error ptxas locates, whether margay's first error
//! is on that line. Files, if any are named, replace the random modules. Modules that crash ptxas do not count. Exits
//! with 1 if fewer than 98 % of the verdicts agree.

use margay_oracle::{
    Random,
    compare::Tally,
    modules::{self, Case},
    options::Options,
    tools::Tools,
};
use std::process::ExitCode;

fn run(options: &Options) -> Result<bool, String> {
    let work = options.folder("oracle-cases");
    let tools = Tools::find(&work).map_err(|e| format!("ptxas does not run ({e}); set MARGAY_PTXAS to its folder"))?;
    let mut random = Random::new(options.seed);
    let mut cases: Vec<Case> = Vec::new();
    for file in &options.files {
        let text = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
        cases.push(Case { text, relocatable: false, arch: "sm_80" });
    }
    if cases.is_empty() {
        cases = (0..options.count).map(|_| modules::module(&mut random)).collect();
    }
    let mut tally = Tally::default();
    for (i, case) in cases.iter().enumerate() {
        let arch = format!("-arch={}", case.arch);
        let arguments: &[&str] = if case.relocatable { &[&arch, "-c"] } else { &[&arch] };
        let verdict = tools.ptxas("case", &case.text, arguments).map_err(|e| e.to_string())?;
        tally.add(i, &case.text, case.relocatable, &verdict);
    }
    tally.print(options.show, |i| {
        if options.keep.is_some() {
            let _ = std::fs::write(work.join(format!("module{i}.ptx")), &cases[i].text);
        }
        format!("module {i}{}", if cases[i].relocatable { " (-c)" } else { "" })
    });
    options.clean(&work);
    Ok(tally.percent() >= 98.0)
}

fn main() -> ExitCode {
    match Options::of_process().and_then(|o| run(&o)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(message) => {
            eprintln!("oracle-cases: {message}");
            ExitCode::from(2)
        }
    }
}
