//! `margay extract PROGRAM`: lists the GPU code in a program, library, object file, wheel or output of cuobjdump, and writes its PTX.

use super::Result;
use crate::{
    args::ExtractArgs,
    exit::{Failure, Outcome},
    report,
};
use margay::render::demangled;
use margay_image::{
    archive, dump,
    fatbin::{self, Entry, Kind},
};
use std::path::Path;

/// Kernels that are named in one line of the list.
const NAMED: usize = 3;

/// Runs the command.
pub fn run(args: &ExtractArgs) -> Result {
    let (mut found, mut any) = (String::new(), false);
    for path in &args.files {
        let bytes = std::fs::read(path).map_err(|e| Failure::usage(format!("cannot read {}: {e}", path.display())))?;
        let inner = archive::files(&bytes);
        let packed = inner.iter().flatten().filter_map(|f| Some((path.join(&f.name), f.bytes()?)));
        let whole = inner.is_none().then(|| (path.clone(), bytes.clone()));
        for (name, bytes) in whole.into_iter().chain(packed) {
            any |= one(&name, &bytes, args.output.as_deref(), &mut found)?;
        }
    }
    report::emit(&found);
    if any {
        return Ok(Outcome::Clean);
    }
    let all: Vec<String> = args.files.iter().map(|p| p.display().to_string()).collect();
    Err(Failure { message: format!("{}: no PTX inside", all.join(", ")), outcome: Outcome::Findings })
}

/// Lists one file, and writes its PTX if a folder is given; whether it contains any GPU code.
fn one(name: &Path, bytes: &[u8], folder: Option<&Path>, found: &mut String) -> Result<bool> {
    let binaries = fatbin::inside(bytes);
    let listed = std::str::from_utf8(bytes).ok().and_then(dump::modules).unwrap_or_default();
    if binaries.is_empty() && listed.is_empty() {
        return Ok(false);
    }
    let mut any = false;
    *found += &format!("{}\n", name.display());
    for (number, entries) in (1..).zip(&binaries) {
        for (place, entry) in (1..).zip(entries) {
            let text = if entry.kind == Kind::Ptx { entry.text() } else { None };
            let what = match &text {
                Some(text) => about(text),
                None => kind(entry).to_string(),
            };
            let (place, entry) = (format!("{number}.{place}"), architecture(entry, text.as_deref()));
            *found += &line(&place, &entry, &what);
            any |= text.is_some();
            if let (Some(text), Some(folder)) = (text, folder) {
                write(folder, name, &format!("{place}.{entry}"), &text)?;
            }
        }
    }
    for (number, module) in (1..).zip(&listed) {
        let (place, entry) = (format!("{number}"), format!("compute_{}", module.architecture));
        *found += &line(&place, &entry, &about(module.text));
        if let Some(folder) = folder {
            write(folder, name, &format!("{place}.{entry}"), module.text)?;
        }
    }
    Ok(any || !listed.is_empty())
}

/// The architecture of an entry; for PTX taken from its text, which distinguishes `sm_90a` from `sm_90`.
fn architecture(entry: &Entry<'_>, text: Option<&str>) -> String {
    let target = text.and_then(fatbin::target).and_then(|t| t.strip_prefix("sm_"));
    target.map_or_else(|| entry.to_string(), |t| format!("compute_{t}"))
}

fn line(place: &str, entry: &str, what: &str) -> String {
    let (number, place) = place.split_once('.').map_or((place, String::new()), |(n, p)| (n, format!(".{p}")));
    format!("  {number:>3}{place:<4} {entry:<12} {what}\n")
}

fn about(text: &str) -> String {
    format!("PTX, {} bytes{}", text.len(), kernels(text))
}

/// Writes `DIR/NAME.1.2.compute_80.ptx`.
fn write(folder: &Path, name: &Path, what: &str, text: &str) -> Result<()> {
    let stem = name.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let file = folder.join(format!("{stem}.{what}.ptx"));
    let failed = |e: std::io::Error| Failure::usage(format!("cannot write {}: {e}", file.display()));
    std::fs::create_dir_all(folder).map_err(failed)?;
    std::fs::write(&file, text).map_err(failed)
}

fn kind(entry: &Entry<'_>) -> &'static str {
    match entry.kind {
        Kind::Ptx => "damaged PTX",
        Kind::Code => "machine code",
        Kind::Lto => "intermediate code for link-time optimization",
        Kind::Other(_) => "something else",
    }
}

/// The names of the first kernels of a module, and the number of others.
fn kernels(text: &str) -> String {
    let names: Vec<String> = text
        .lines()
        .filter_map(|line| line.split_once(".entry ").map(|(_, rest)| rest))
        .map(|rest| demangled(rest.split(['(', ' ', '{']).next().unwrap_or(rest)))
        .collect();
    match names.len() {
        0 => String::new(),
        n if n > NAMED => format!(": {} and {} more", names[..NAMED].join(", "), n - NAMED),
        _ => format!(": {}", names.join(", ")),
    }
}
