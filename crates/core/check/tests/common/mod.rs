//! What the tests of messages share: reading `//~` expectations, checking a file, rendering findings as text.
#![allow(dead_code)] // each test file uses its part

use margay_check::{Options, Verdict, check};
use margay_isa::Target;
use margay_syntax::{
    LineIndex,
    diag::{Diagnostic, Severity},
    parse,
};
use std::path::{Path, PathBuf};

/// A test file: its text and what its `//@` and `//~` comments say.
pub struct Case {
    /// File name without directory.
    pub name: String,
    /// The text that is checked.
    pub text: String,
    /// `//@ title: ...`
    pub title: String,
    /// `//@ ptxas: ...`
    pub ptxas: Vec<String>,
    /// Options from `//@ arch: sm_80`, `//@ verdict: strict`, `//@ relocatable`.
    pub options: Options,
    /// Lines (from 1) and codes that `//~ E0302` comments expect, in order.
    pub expected: Vec<(u32, String)>,
}

/// All `.ptx` files of a directory of tests, in order of name.
pub fn cases(directory: &str) -> Vec<Case> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(directory);
    let mut files: Vec<PathBuf> = std::fs::read_dir(&root)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "ptx"))
        .collect();
    files.sort();
    files.iter().map(|p| case(p)).collect()
}

fn case(path: &Path) -> Case {
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    let text = std::fs::read_to_string(path).unwrap();
    let directive = |key: &str| -> Vec<String> {
        let lines = text.lines().filter_map(|l| l.strip_prefix("//@ ")?.strip_prefix(key)?.strip_prefix(':'));
        lines.map(|l| l.trim().to_owned()).collect()
    };
    let mut options = Options::default();
    if let Some(arch) = directive("arch").first() {
        options.arch = Some(Target::parse(arch).unwrap());
    }
    options.verdict = match directive("verdict").first().map(String::as_str) {
        Some("strict") => Verdict::Strict,
        Some("text") => Verdict::Text,
        _ => Verdict::Ptxas,
    };
    options.relocatable = text.lines().any(|l| l == "//@ relocatable");
    let text = match directive("repeat").first().and_then(|n| n.parse::<usize>().ok()) {
        Some(n) => {
            let repeated = |l: &str| {
                if l.ends_with(" repeat") {
                    format!("{}\n", l.trim_end_matches(" repeat")).repeat(n)
                } else {
                    format!("{l}\n")
                }
            };
            text.lines().map(repeated).collect()
        }
        None => text.clone(),
    };
    let mut expected = Vec::new();
    for (i, line) in text.lines().enumerate() {
        if let Some((_, codes)) = line.split_once("//~") {
            let codes = codes.split_whitespace().take_while(|c| c.starts_with(['E', 'W']) && c.len() == 5);
            expected.extend(codes.map(|c| (i as u32 + 1, c.to_owned())));
        }
    }
    let title = directive("title").first().cloned().unwrap_or_default();
    Case { name, title, ptxas: directive("ptxas"), options, expected, text }
}

/// What the check finds in a text.
pub fn found(text: &str, options: &Options) -> Vec<Diagnostic> {
    check(parse(text), options).1
}

/// Lines and codes of findings, in order.
pub fn places(text: &str, found: &[Diagnostic]) -> Vec<(u32, String)> {
    let lines = LineIndex::new(text);
    found.iter().map(|d| (lines.line(d.span().start), d.code.info().number.to_owned())).collect()
}

/// A finding as people read it, with the lines that its labels point to.
pub fn render(name: &str, text: &str, d: &Diagnostic) -> String {
    let lines = LineIndex::new(text);
    let severity = match d.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    };
    let (line, column) = lines.line_column(text, d.span().start);
    let mut out = format!("{severity}[{}]: {}\n  --> {name}:{line}:{column}\n", d.code.info().number, d.message);
    for (i, label) in d.labels.iter().enumerate() {
        let (line, column) = lines.line_column(text, label.span.start);
        let source = text.lines().nth(line as usize - 1).unwrap_or("");
        let shown = source.split("  //~").next().unwrap_or("").trim_end();
        let width =
            (label.span.len() as usize).clamp(1, shown.chars().count().saturating_sub(column as usize - 1).max(1));
        let mark = if i == 0 { "^" } else { "-" }.repeat(width);
        out += &format!("{line:4} | {shown}\n     | {}{mark} {}\n", " ".repeat(column as usize - 1), label.text);
    }
    let trimmed: Vec<&str> = out.lines().map(str::trim_end).collect();
    out = trimmed.join("\n") + "\n";
    d.notes.iter().for_each(|n| out += &format!("     = note: {n}\n"));
    d.suggestions.iter().for_each(|s| out += &format!("     = help: {}\n", s.message));
    out
}
