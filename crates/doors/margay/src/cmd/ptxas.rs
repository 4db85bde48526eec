//! `margay ptxas`: replaces NVIDIA's ptxas for tools that call it (Triton, by `TRITON_PTXAS_PATH`). It checks the PTX, and
//! writes the PTX itself in place of machine code, which margay's `libcuda.so.1` loads.

use super::{Result, name, read};
use crate::{
    args::PtxasArgs,
    exit::{Failure, Outcome},
    report::{self, Style},
};
use margay_check::Options;
use margay_isa::Target;
use margay_runtime::SourceText;
use margay_syntax::Severity;
use std::path::{Path, PathBuf};

/// Options of ptxas that take a value and have no effect here.
const WITH_VALUE: [&str; 9] = [
    "--maxrregcount",
    "-maxrregcount",
    "--opt-level",
    "-O",
    "--def-load-cache",
    "--def-store-cache",
    "--split-compile",
    "--machine",
    "-m",
];

/// The parsed command line.
#[derive(Default)]
struct Call {
    files: Vec<PathBuf>,
    output: Option<PathBuf>,
    target: Option<String>,
    relocatable: bool,
    version: bool,
}

/// Runs the command.
pub fn run(args: &PtxasArgs, style: Style) -> Result {
    let call = parse(&args.words)?;
    if call.version {
        // Tools read the number after "release".
        report::emit(&format!(
            "ptxas: margay {} in place of NVIDIA's optimizing assembler\nCuda compilation tools, release 13.0, V13.0.0\n",
            env!("CARGO_PKG_VERSION")
        ));
        return Ok(Outcome::Clean);
    }
    let arch = call.target.as_deref().map(target).transpose()?;
    let options = Options { relocatable: call.relocatable, arch, ..Options::default() };
    let mut image = String::new();
    let mut refused = false;
    for path in &call.files {
        let text = read(path)?;
        let (source, checked, diagnostics) =
            margay_runtime::check(&SourceText { name: &name(path), text: &text }, &options);
        for d in diagnostics.iter().filter(|d| d.severity == Severity::Error) {
            eprint!("{}", report::human(&source, d, style.err));
        }
        refused |= checked.is_none();
        image += &text;
    }
    if refused {
        return Err(Failure {
            message: "ptxas fatal   : Ptx assembly aborted due to errors".into(),
            outcome: Outcome::Findings,
        });
    }
    let output = call.output.unwrap_or_else(|| "elf.o".into());
    // Drivers read text up to a zero byte.
    image.push('\0');
    std::fs::write(&output, image).map_err(|e| Failure::usage(format!("cannot write {}: {e}", output.display())))?;
    Ok(Outcome::Clean)
}

fn target(text: &str) -> Result<Target> {
    let name = text.replace("compute_", "sm_");
    Target::parse(&name).ok_or_else(|| Failure::usage(format!("`{text}` is not an architecture")))
}

/// Parses arguments as ptxas does; options without an effect here are ignored.
fn parse(words: &[String]) -> Result<Call> {
    let mut call = Call::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let (key, joined) = match word.split_once('=') {
            Some((key, value)) if word.starts_with('-') => (key, Some(value.to_string())),
            _ => (word.as_str(), None),
        };
        let mut value = || {
            let next = joined.clone().or_else(|| words.next().cloned());
            next.ok_or_else(|| Failure::usage(format!("`{key}` requires a value")))
        };
        match key {
            "-o" | "--output-file" => call.output = Some(value()?.into()),
            "-arch" | "--gpu-name" => call.target = Some(value()?),
            "-c" | "--compile-only" => call.relocatable = true,
            "-V" | "--version" => call.version = true,
            _ if WITH_VALUE.contains(&key) => drop(value()?),
            _ if word.starts_with('-') && word != "-" => {}
            _ => call.files.push(Path::new(word).into()),
        }
    }
    match call.files.is_empty() && !call.version {
        true => Err(Failure::usage("missing PTX file")),
        false => Ok(call),
    }
}
