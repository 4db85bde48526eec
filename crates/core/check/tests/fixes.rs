//! Every change that a message offers for any module of the tests: what it mends is mended, it leaves no new error on its line,
//! and where the module was right before, every instruction computes what it computed.

mod common;

use common::found;
use margay_check::{Checked, FuncId, Options, check};
use margay_syntax::{Diagnostic, LineIndex, Severity, diag::Suggestion, parse};
use std::path::{Path, PathBuf};

/// All modules below a folder of the repository.
fn modules(folder: &Path, out: &mut Vec<PathBuf>) {
    let mut inside: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    inside.sort();
    for path in inside {
        if path.is_dir() {
            modules(&path, out);
        } else if path.extension().is_some_and(|e| e == "ptx") {
            out.push(path);
        }
    }
}

/// The text with the edits, and where an offset of the old text has gone.
fn applied(text: &str, fix: &Suggestion, offset: u32) -> (String, u32) {
    let mut edits: Vec<_> = fix.edits.iter().collect();
    edits.sort_by_key(|e| e.0.start);
    let (mut new, mut at, mut moved) = (String::new(), 0, i64::from(offset));
    for (span, with) in edits {
        new += &text[at..span.start as usize];
        new += with;
        at = span.end as usize;
        if span.end <= offset {
            moved += with.len() as i64 - i64::from(span.len());
        }
    }
    new += &text[at..];
    (new, moved as u32)
}

/// Line, code and message of the errors.
fn errors(text: &str, found: &[Diagnostic]) -> Vec<(u32, &'static str, String)> {
    let lines = LineIndex::new(text);
    let errors = found.iter().filter(|d| d.severity == Severity::Error);
    errors.map(|d| (lines.line(d.span().start), d.code.info().number, d.message.clone())).collect()
}

/// What every instruction computes: its form, its guard, its operands without their places in the pool.
fn computed(checked: &Checked) -> Vec<String> {
    let mut out = Vec::new();
    for id in 0.. {
        let Some(function) = checked.module.funcs.get(id) else { return out };
        let Some(body) = checked.body(FuncId(id as u32)).filter(|_| function.defined) else { continue };
        for inst in &body.insts {
            let operands: Vec<String> = body.operands(inst.operands).iter().map(|o| format!("{o:?}")).collect();
            let places: String = operands
                .join(", ")
                .split("start: ")
                .map(|part| part.trim_start_matches(|c: char| c.is_ascii_digit()))
                .collect();
            out.push(format!("{} {:?} {places}", body.variant(inst), inst.guard));
        }
    }
    out
}

/// What is wrong with a fix.
fn wrong(text: &str, all: &[Diagnostic], d: &Diagnostic, fix: &Suggestion, options: &Options) -> Option<String> {
    let (new, at) = applied(text, fix, d.span().start);
    let (checked, after) = check(parse(&new), options);
    let line = LineIndex::new(&new).line(at);
    let before: Vec<String> = errors(text, all).into_iter().map(|e| e.2).filter(|m| *m != d.message).collect();
    let left = errors(&new, &after).into_iter().find(|(l, _, message)| *l == line && !before.contains(message));
    if let Some((_, code, message)) = left {
        return Some(format!("leaves {code} {message}"));
    }
    let (old, new) = (check(parse(text), options).0?, checked?);
    (computed(&old) != computed(&new)).then(|| "changes what is computed".to_owned())
}

#[test]
fn every_fix_removes_its_diagnostic_and_adds_none() {
    let mut files = Vec::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    modules(&root.join("tests"), &mut files);
    for folder in ["tests/check", "tests/mutants", "tests/run", "examples"] {
        modules(&root.join("../../..").join(folder), &mut files);
    }
    let (mut tried, mut bad) = (0, Vec::new());
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        let options = Options { relocatable: text.contains("//@ relocatable"), ..Options::default() };
        let all = found(&text, &options);
        for d in all.iter().take(200) {
            for fix in d.suggestions.iter().filter(|s| !s.edits.is_empty()) {
                tried += 1;
                if let Some(why) = wrong(&text, &all, d, fix, &options) {
                    let number = d.code.info().number;
                    bad.push(format!("{}: {number} {}\n  `{}` {why}", path.display(), d.message, fix.message));
                }
            }
        }
    }
    assert!(bad.is_empty(), "{} of {tried}:\n{}", bad.len(), bad.join("\n"));
    assert!(tried > 60, "only {tried} fixes were offered");
}
