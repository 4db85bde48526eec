//! The subcommands, one file each, and what several of them use.

pub mod abi;
pub mod bindgen;
pub mod cache;
pub mod check;
pub mod doc;
pub mod exec;
pub mod explain;
pub mod extract;
pub mod fmt;
pub mod ir;
pub mod nvcc;
pub mod ptxas;
pub mod replay;
pub mod run;
pub mod sanitize;
pub mod smi;

use crate::{
    args::{Cli, CompletionsArgs, VerdictArgs},
    exit::{Failure, Outcome},
    report::{self, Style},
};
use clap::CommandFactory;
use margay_check::{Options, Verdict};
use margay_isa::{Target, Version};
use margay_runtime::{Context, Device, Error, LoadOptions, Module, SourceText};
use std::{io::Read, path::Path, sync::Arc};

/// How a command ends.
pub type Result<T = Outcome> = std::result::Result<T, Failure>;

/// `margay completions`
pub fn completions(args: &CompletionsArgs) -> Result {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "margay", &mut script);
    report::emit(&String::from_utf8_lossy(&script));
    Ok(Outcome::Clean)
}

/// Reads a file, or standard input for `-`. Invalid UTF-8 becomes U+FFFD, which the check reports.
pub fn read(path: &Path) -> Result<String> {
    let mut bytes = Vec::new();
    let read = match path.as_os_str() == "-" {
        true => std::io::stdin().lock().read_to_end(&mut bytes).map(drop),
        false => std::fs::read(path).map(|b| bytes = b),
    };
    read.map_err(|e| Failure::usage(format!("cannot read {}: {e}", path.display())))?;
    if bytes.len() > u32::MAX as usize {
        return Err(Failure::unsupported(format!("{}: files larger than 4 GiB", path.display())));
    }
    while bytes.last() == Some(&0) {
        bytes.pop(); // images passed to a driver end in a zero byte
    }
    Ok(match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(e) => String::from_utf8_lossy(e.as_bytes()).into_owned(),
    })
}

/// The modules that a file of `cuobjdump -ptx` lists, each with a name of its own; `None` for other files.
pub fn listing(name: &str, text: &str) -> Result<Option<Vec<(String, String)>>> {
    let Some(found) = margay_image::dump::modules(text) else { return Ok(None) };
    if found.is_empty() {
        let why = "lists machine code only, no PTX; of relocatable code, cuobjdump shows no PTX, but `margay extract PROGRAM` does";
        return Err(Failure { message: format!("{name}: {why}"), outcome: Outcome::Findings });
    }
    let named = |(i, m): (usize, &margay_image::dump::Module<'_>)| {
        (format!("{name}#{}:sm_{}", i + 1, m.architecture), m.text.to_string() + "\n")
    };
    Ok(Some(found.iter().enumerate().map(named).collect()))
}

/// The modules of a program in a file, with their names: the file itself or, of a listing, the modules for the newest architecture.
pub fn modules(path: &Path) -> Result<Vec<(String, String)>> {
    let (name, text) = (name(path), read(path)?);
    Ok(match listing(&name, &text)? {
        Some(listed) => newest(listed),
        None => vec![(name, text)],
    })
}

/// The modules for the newest architecture, of a program that was compiled for several.
fn newest(listed: Vec<(String, String)>) -> Vec<(String, String)> {
    let architecture = |name: &str| name.rsplit_once(":sm_").and_then(|(_, n)| n.parse::<u32>().ok());
    let best = listed.iter().filter_map(|(name, _)| architecture(name)).max();
    let listed = listed.into_iter().filter(|(name, _)| architecture(name) == best).collect();
    margay_image::fatbin::of_one_target(listed, |(_, text)| text, true)
}

/// The name under which a file is reported.
pub fn name(path: &Path) -> String {
    if path.as_os_str() == "-" { "<stdin>".into() } else { path.display().to_string() }
}

/// The options of the check, from the command line.
pub fn options(args: &VerdictArgs) -> Result<Options> {
    let verdict = match (args.strict, args.text) {
        (true, _) => Verdict::Strict,
        (_, true) => Verdict::Text,
        _ => Verdict::Ptxas,
    };
    let target = args.target.as_deref().map(parse_target).transpose()?;
    let version = args.ptx_version.as_deref().map(parse_version).transpose()?;
    Ok(Options { verdict, relocatable: args.relocatable, target, version, ..Options::default() })
}

fn parse_target(text: &str) -> Result<Target> {
    let found = Target::parse(text).or_else(|| Target::parse(&format!("sm_{text}")));
    found.ok_or_else(|| Failure::usage(format!("`{text}` is not a target such as sm_80 or sm_90a")))
}

fn parse_version(text: &str) -> Result<Version> {
    let numbers = text.split_once('.').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    let known = numbers.and_then(|(major, minor): (u16, u16)| {
        Version::ALL.iter().copied().find(|v| (v.major(), v.minor()) == (major, minor))
    });
    known.ok_or_else(|| Failure::usage(format!("`{text}` is not a PTX ISA version such as 8.3")))
}

/// A device with every engine that this build has.
pub fn device(threads: Option<usize>) -> Result<Arc<Device>> {
    Device::with(margay::device_options(threads)).map_err(Failure::usage)
}

/// Reads, checks and links files; diagnostics of a refused module are printed.
pub fn load(
    context: &Arc<Context>,
    files: &[std::path::PathBuf],
    options: &LoadOptions,
    style: Style,
) -> Result<Module> {
    let mut texts: Vec<(String, String)> = Vec::new();
    for path in files {
        texts.extend(modules(path)?);
    }
    let sources: Vec<SourceText<'_>> = texts.iter().map(|(name, text)| SourceText { name, text }).collect();
    context.load(&sources, options).map_err(|e| failure(e, style))
}

/// The requested kernel, or the module's only one.
pub fn kernel_name<'a>(module: &'a Module, asked: Option<&'a str>) -> Result<&'a str> {
    match (asked, &module.kernel_names()[..]) {
        (Some(name), _) => Ok(name),
        (None, [only]) => Ok(only),
        (None, []) => Err(Failure::usage("the module has no kernel (`.entry`)")),
        (None, many) => Err(Failure::usage(format!(
            "the module has {} kernels; choose one with `--kernel`: {}",
            many.len(),
            many.join(", ")
        ))),
    }
}

/// The exit of a command with an error of the runtime.
pub fn failure(error: Error, style: Style) -> Failure {
    match error {
        Error::Rejected(files) => {
            let mut message = String::new();
            for file in &files {
                let errors = file.diagnostics.iter().filter(|d| d.severity == margay_syntax::Severity::Error);
                message.extend(errors.take(20).map(|d| report::human(&file.source, d, style.err)));
                message += &format!("error: {} did not pass the check\n", file.source.name);
            }
            Failure { message, outcome: Outcome::Findings }
        }
        Error::Lower(e) => {
            let outcome = if e.unsupported { Outcome::Unsupported } else { Outcome::Findings };
            let what = if e.unsupported { "unsupported" } else { "error" };
            Failure { message: format!("{what}: {}: {}", e.file, e.message), outcome }
        }
        Error::Stopped(report) => report::stopped(&report, style.err),
        Error::NoPlan(_) => Failure::unsupported(error),
        Error::OutOfMemory { .. }
        | Error::Canceled
        | Error::NoSuch { .. }
        | Error::BadLaunch(_)
        | Error::BadArray(_)
        | Error::BadAddress { .. } => Failure::usage(error),
    }
}
