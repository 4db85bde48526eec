//! `oracle-cases`: the verdicts of margay and of ptxas on random modules about functions and parameters.
//!
//! ```text
//! MARGAY_PTXAS=/usr/local/cuda/bin oracle-cases [--count N] [--seed S] [--show N] [--keep FOLDER] [FILE.ptx...]
//! ```
//!
//! Compares whether a module is accepted, and for refused ones whose error ptxas places, whether margay's first error stands on
//! that line. Files are compared instead of random modules where any are named. Modules that ptxas crashes on count for
//! nothing. Exits with 1 where fewer than 98 % of the verdicts agree.

use margay_check::{Options as CheckOptions, check};
use margay_oracle::{
    Random,
    modules::{self, Case},
    tools::Tools,
};
use margay_syntax::{LineIndex, Severity, parse};
use std::{collections::BTreeMap, path::PathBuf, process::ExitCode};

struct Options {
    count: usize,
    seed: u64,
    show: usize,
    keep: Option<PathBuf>,
    files: Vec<PathBuf>,
}

fn options() -> Result<Options, String> {
    let mut options = Options { count: 1000, seed: 1, show: 3, keep: None, files: Vec::new() };
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
            _ => options.files.push(word.clone().into()),
        }
    }
    Ok(options)
}

/// The first error: its line, if it has one, and its text.
type Refusal = (Option<u32>, String);

fn margay(case: &Case) -> Option<Refusal> {
    let options = CheckOptions { relocatable: case.relocatable, ..CheckOptions::default() };
    let (_, messages) = check(parse(&case.text), &options);
    let error = messages.into_iter().find(|m| m.severity == Severity::Error)?;
    let line = LineIndex::new(&case.text).line(error.span().start);
    Some((Some(line), format!("{} {}", error.code.info().number, error.message)))
}

/// The first line with an error in what ptxas printed.
fn first_error(log: &str) -> Refusal {
    let errors = log.lines().filter(|l| l.contains("error") || l.contains("fatal"));
    let mut first = None;
    for line in errors {
        let place = line.split_once(", line ").and_then(|(_, rest)| rest.split_once(';'));
        let number = place.and_then(|(n, _)| n.parse().ok());
        let text = place.map_or(line, |(_, text)| text).trim();
        if number.is_some() {
            return (number, text.to_owned());
        }
        first.get_or_insert((None, text.to_owned()));
    }
    first.unwrap_or((None, log.trim().to_owned()))
}

/// The message without names and numbers, to group by.
fn shape(message: &str) -> String {
    let mut out = String::new();
    let mut quoted = false;
    for c in message.chars() {
        match c {
            '\'' | '`' => quoted = !quoted,
            _ if quoted => {}
            '0'..='9' => out.push('#'),
            c => out.push(c),
        }
    }
    out
}

fn run(options: &Options) -> Result<bool, String> {
    let work = options
        .keep
        .clone()
        .unwrap_or_else(|| std::env::temp_dir().join(format!("oracle-cases-{}", std::process::id())));
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
    let (mut agree, mut refused, mut placed, mut lines, mut crashes) = (0, 0, 0, 0, 0);
    let mut differences: BTreeMap<String, Vec<(usize, String)>> = BTreeMap::new();
    for (i, case) in cases.iter().enumerate() {
        let arch = format!("-arch={}", case.arch);
        let arguments: &[&str] = if case.relocatable { &[&arch, "-c"] } else { &[&arch] };
        let verdict = tools.ptxas("case", &case.text, arguments).map_err(|e| e.to_string())?;
        let crashed = !verdict.accepted && !verdict.messages.contains("error") && !verdict.messages.contains("fatal");
        if crashed {
            crashes += 1;
            continue;
        }
        let ours = margay(case);
        let mut differ = |kind: String, what: String| differences.entry(kind).or_default().push((i, what));
        match (verdict.accepted, ours) {
            (true, None) => agree += 1,
            (true, Some((line, text))) => {
                differ(format!("refused by margay: {}", shape(&text)), format!("line {line:?}: {text}"))
            }
            (false, None) => {
                let (line, text) = first_error(&verdict.messages);
                differ(format!("accepted by margay: {}", shape(&text)), format!("line {line:?}: {text}"));
            }
            (false, Some((line, text))) => {
                agree += 1;
                refused += 1;
                let (their_line, their_text) = first_error(&verdict.messages);
                if their_line.is_some() {
                    placed += 1;
                    if line == their_line {
                        lines += 1;
                    } else {
                        let what = format!("margay {line:?}: {text}\n      ptxas {their_line:?}: {their_text}");
                        differ(format!("another line: {} / {}", shape(&text), shape(&their_text)), what);
                    }
                }
            }
        }
    }
    let mut groups: Vec<_> = differences.into_iter().collect();
    groups.sort_by_key(|(_, list)| std::cmp::Reverse(list.len()));
    for (kind, list) in &groups {
        println!("{} x {kind}", list.len());
        for (i, what) in list.iter().take(options.show) {
            println!("    module {i}{}: {what}", if cases[*i].relocatable { " (-c)" } else { "" });
            if options.keep.is_some() {
                let _ = std::fs::write(work.join(format!("module{i}.ptx")), &cases[*i].text);
            }
        }
    }
    let judged = cases.len() - crashes;
    let percent = 100.0 * f64::from(agree) / judged.max(1) as f64;
    println!("{agree} of {judged} verdicts agree ({percent:.1} %), {refused} of them refusals");
    println!("the first error stands on ptxas's line in {lines} of {placed} that it places");
    if crashes > 0 {
        println!("ptxas crashed on {crashes} more");
    }
    if options.keep.is_none() {
        let _ = std::fs::remove_dir_all(&work);
    }
    Ok(percent >= 98.0)
}

fn main() -> ExitCode {
    match options().and_then(|o| run(&o)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(message) => {
            eprintln!("oracle-cases: {message}");
            ExitCode::from(2)
        }
    }
}
