//! Cases of `tests/check`: modules that must pass without errors, and modules whose lines name the errors that they
//! must cause: ``add.sat.u32 %r3, %r1, %r2;   //~ E0203 takes no `.sat` `` (a code, and a part of the message).

use margay::{Code, Options, Severity, SourceText};
use std::path::Path;

/// A module of `tests/check/pass`.
pub fn pass(path: &Path) -> Result<(), String> {
    let (errors, _) = check(path)?;
    match errors.first() {
        Some((line, code, message)) => Err(format!("line {line}: {code} {message}")),
        None => Ok(()),
    }
}

/// A module of `tests/check/fail`.
pub fn fail(path: &Path) -> Result<(), String> {
    let (mut found, text) = check(path)?;
    let mut missing = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for marker in line.split("//~").skip(1) {
            let number = index as u32 + 1;
            let (code, wanted) = marker.trim().split_once(' ').unwrap_or((marker.trim(), ""));
            if Code::find(code).is_none() {
                return Err(format!("line {number}: unknown code `{code}`"));
            }
            match found.iter().position(|(l, c, m)| *l == number && c == code && m.contains(wanted.trim())) {
                Some(at) => drop(found.remove(at)),
                None => missing.push(format!("line {number}: {code} {wanted}")),
            }
        }
    }
    let extra: Vec<String> = found.iter().map(|(l, c, m)| format!("line {l}: {c} {m}")).collect();
    match (missing.is_empty(), extra.is_empty()) {
        (true, true) => Ok(()),
        _ => Err(format!("missing:\n  {}\nnot expected:\n  {}", missing.join("\n  "), extra.join("\n  "))),
    }
}

type Found = Vec<(u32, String, String)>;

/// The errors, and warnings if the file expects any: line, code, message.
fn check(path: &Path) -> Result<(Found, String), String> {
    let text = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
    let options = Options { relocatable: text.contains("//@ relocatable"), ..Options::default() };
    let name = path.display().to_string();
    let (source, _, diagnostics) = margay_runtime::check(&SourceText { name: &name, text: &text }, &options);
    let warnings = text.contains("//~ W");
    let found = diagnostics
        .iter()
        .filter(|d| d.severity == Severity::Error || warnings)
        .map(|d| (source.lines().line(d.span().start), d.code.info().number.to_string(), d.message.clone()))
        .collect();
    Ok((found, text))
}
