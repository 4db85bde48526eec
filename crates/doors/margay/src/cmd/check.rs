//! `margay check`: checks files in parallel and prints findings in order.

use super::{Result, listing, name, options, read};
use crate::{
    args::{CheckArgs, MessageFormat},
    exit::{Failure, Outcome, complain},
    report::{self, Found, Style},
};
use margay::quantity::count;
use margay_check::Options;
use margay_runtime::{check_shared, examine_shared};
use margay_syntax::{Code, Diagnostic, Severity};
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

/// The result of checking one file.
struct Checked {
    /// Rendered findings, unless the format is SARIF.
    text: String,
    /// Kept for SARIF only: a tree may be large.
    found: Vec<Found>,
    errors: usize,
    warnings: usize,
}

/// Runs the command.
pub fn run(args: &CheckArgs, style: Style) -> Result {
    let (options, levels) = (options(&args.verdict)?, Levels::new(args)?);
    let results: Vec<Mutex<Option<Result<Checked>>>> = args.files.iter().map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    let workers = std::thread::available_parallelism().map_or(1, |n| n.get()).min(args.files.len());
    std::thread::scope(|scope| {
        for _ in 0..workers {
            let work = || loop {
                let index = next.fetch_add(1, Relaxed);
                let Some(path) = args.files.get(index) else { break };
                let result = check_file(path, args, &options, &levels, style);
                *results[index].lock() = Some(result);
            };
            let spawned = std::thread::Builder::new().stack_size(16 << 20).spawn_scoped(scope, work);
            // Without threads the work is done here, below.
            if spawned.is_err() {
                break;
            }
        }
    });
    let (mut errors, mut warnings, mut failed, mut logs) = (0, 0, Outcome::Clean, Vec::new());
    for (slot, path) in results.into_iter().zip(&args.files) {
        let result = slot.into_inner();
        match result.unwrap_or_else(|| check_file(path, args, &options, &levels, style)) {
            Ok(checked) => {
                report::emit(&checked.text);
                errors += checked.errors;
                warnings += checked.warnings;
                logs.extend(checked.found);
            }
            Err(e) => {
                complain(e.message);
                failed = failed.max(e.outcome);
            }
        }
    }
    match args.message_format {
        MessageFormat::Sarif => report::emit(&format!("{:#}\n", report::sarif(&logs))),
        MessageFormat::Human => summary(errors, warnings, args.files.len()),
        MessageFormat::Json | MessageFormat::Github => {}
    }
    Ok(failed.max(if errors > 0 { Outcome::Findings } else { Outcome::Clean }))
}

/// Not part of the output proper, so it goes to standard error.
fn summary(errors: usize, warnings: usize, files: usize) {
    if errors + warnings > 0 {
        let errors = count(errors as u64, "error", "errors");
        let warnings = count(warnings as u64, "warning", "warnings");
        complain(format_args!("{errors}, {warnings} in {}", count(files as u64, "file", "files")));
    }
}

fn check_file(path: &Path, args: &CheckArgs, options: &Options, levels: &Levels, style: Style) -> Result<Checked> {
    let (name, text) = (name(path), read(path)?);
    let Some(listed) = listing(&name, &text)? else {
        return check_text(path, &name, text, args, options, levels, style);
    };
    let mut all = Checked { text: String::new(), found: Vec::new(), errors: 0, warnings: 0 };
    for (name, text) in listed {
        let one = check_text(Path::new("-"), &name, text, args, options, levels, style)?;
        all.text += &one.text;
        all.found.extend(one.found);
        all.errors += one.errors;
        all.warnings += one.warnings;
    }
    Ok(all)
}

/// Checks one module; `path` is its file where fixes may be written.
fn check_text(
    path: &Path,
    name: &str,
    text: String,
    args: &CheckArgs,
    options: &Options,
    levels: &Levels,
    style: Style,
) -> Result<Checked> {
    let (mut source, mut diagnostics) = examine_shared(name, Arc::new(text), options);
    levels.apply(&mut diagnostics);
    let mut out = String::new();
    if args.fix && path.as_os_str() != "-" {
        let (fixed, fixes) = apply_fixes(&source.tree.text, &diagnostics);
        if fixes > 0 {
            std::fs::write(path, &fixed).map_err(|e| Failure::usage(format!("cannot write {name}: {e}")))?;
            complain(format_args!("{name}: {} applied", count(fixes as u64, "fix", "fixes")));
            (source, diagnostics) = examine_shared(name, Arc::new(fixed), options);
            levels.apply(&mut diagnostics);
        }
    }
    let of = |severity| diagnostics.iter().filter(|d| d.severity == severity).count();
    let (errors, warnings) = (of(Severity::Error), of(Severity::Warning));
    if args.message_format == MessageFormat::Human && args.error_limit > 0 {
        diagnostics = margay_syntax::diag::group(diagnostics, ALIKE, |at| source.lines().line(at));
    }
    let hidden = limit(&mut diagnostics, args.error_limit);
    let found = Found { source, diagnostics };
    out += &report::render(&found, args.message_format, style.out);
    if hidden > 0 && args.message_format == MessageFormat::Human {
        out += &format!("{name}: {hidden} more errors; `--error-limit 0` shows all\n\n");
    }
    if args.requirements
        && let (_, Some(checked), _) = check_shared(name, found.source.tree.text.clone(), options)
    {
        out += &margay::requirements::of(&checked, options).render(name, &found.source.tree.text);
    }
    let found = if args.message_format == MessageFormat::Sarif { vec![found] } else { Vec::new() };
    Ok(Checked { text: out, found, errors, warnings })
}

/// The number of findings with the same message that are shown in full; for the others only the locations are listed.
const ALIKE: usize = 5;

/// Drops errors beyond the limit, and everything after them. Returns the number of dropped errors.
fn limit(diagnostics: &mut Vec<Diagnostic>, limit: usize) -> usize {
    let errors = |d: &[Diagnostic]| d.iter().filter(|d| d.severity == Severity::Error).count();
    let position =
        diagnostics.iter().enumerate().filter(|(_, d)| d.severity == Severity::Error).nth(limit).map(|(i, _)| i);
    match position {
        Some(first) if limit > 0 => {
            let hidden = errors(&diagnostics[first..]);
            diagnostics.truncate(first);
            hidden
        }
        _ => 0,
    }
}

/// Applies machine-applicable suggestions, the first of each diagnostic, except those that overlap an earlier one.
fn apply_fixes(text: &str, diagnostics: &[Diagnostic]) -> (String, usize) {
    let mut fixes: Vec<&[(margay_syntax::Span, String)]> = diagnostics
        .iter()
        .filter_map(|d| d.suggestions.iter().find(|s| s.machine_applicable && !s.edits.is_empty()))
        .map(|s| s.edits.as_slice())
        .collect();
    fixes.sort_by_key(|edits| edits[0].0);
    let (mut out, mut at, mut count) = (String::with_capacity(text.len()), 0usize, 0);
    for edits in fixes {
        let inside = |(span, _): &(margay_syntax::Span, String)| text.get(span.range()).is_some();
        let ordered = edits.windows(2).all(|w| w[0].0.end <= w[1].0.start);
        if (edits[0].0.start as usize) < at || !ordered || !edits.iter().all(inside) {
            continue;
        }
        for (span, new) in edits {
            out.push_str(&text[at..span.start as usize]);
            out.push_str(new);
            at = span.end as usize;
        }
        count += 1;
    }
    out.push_str(&text[at..]);
    (out, count)
}

/// `-W`, `-D`, `-A`.
struct Levels {
    by_code: HashMap<Code, Option<Severity>>,
    /// The level of `warnings`, for all lints that are not named.
    others: Option<Severity>,
}

impl Levels {
    fn new(args: &CheckArgs) -> Result<Levels> {
        let mut levels = Levels { by_code: HashMap::new(), others: Some(Severity::Warning) };
        // The strictest level wins, in any order.
        for (names, level) in
            [(&args.allow, None), (&args.warn, Some(Severity::Warning)), (&args.deny, Some(Severity::Error))]
        {
            for name in names {
                if name == "warnings" {
                    levels.others = level;
                    continue;
                }
                let code = Code::find(name).ok_or_else(|| unknown_lint(name))?;
                if code.info().severity == Severity::Error {
                    let number = code.info().number;
                    return Err(Failure::usage(format!(
                        "{number} is an error, not a lint: its level cannot be changed"
                    )));
                }
                levels.by_code.insert(code, level);
            }
        }
        Ok(levels)
    }

    fn apply(&self, diagnostics: &mut Vec<Diagnostic>) {
        diagnostics.retain_mut(|d| match self.by_code.get(&d.code) {
            Some(None) => d.severity == Severity::Error,
            Some(Some(level)) => {
                d.severity = d.severity.max(*level);
                true
            }
            None if d.severity == Severity::Warning => {
                d.severity = self.others.unwrap_or(d.severity);
                self.others.is_some()
            }
            None => true,
        });
    }
}

fn unknown_lint(name: &str) -> Failure {
    let lints = Code::ALL.iter().map(|c| c.info()).filter(|i| i.severity != Severity::Error);
    let names: Vec<String> = lints.map(|i| format!("{} ({})", i.name, i.number)).collect();
    Failure::usage(format!("unknown lint `{name}`; expected one of {}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use margay_syntax::Span;

    fn fix(start: u32, end: u32, new: &str) -> Diagnostic {
        Diagnostic::new(Code::Syntax, Span::new(start, end), "").fix(Span::new(start, end), new, "")
    }

    #[test]
    fn overlapping_fixes_are_skipped() {
        let (text, count) = apply_fixes("abcdef", &[fix(1, 3, "X"), fix(2, 4, "Y"), fix(5, 5, "Z"), fix(90, 91, "?")]);
        assert_eq!((text.as_str(), count), ("aXdeZf", 2));
    }

    #[test]
    fn the_limit_counts_errors() {
        let mut all = vec![fix(0, 0, ""), fix(1, 1, ""), fix(2, 2, "")];
        all[1].severity = Severity::Warning;
        assert_eq!(limit(&mut all.clone(), 0), 0);
        assert_eq!(limit(&mut all, 1), 1);
        assert_eq!(all.len(), 2);
    }
}
