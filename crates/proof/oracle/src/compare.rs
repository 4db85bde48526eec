//! Comparison of verdicts: whether both tools reject a module, and at which line first.

use crate::tools::Verdict;
use margay_check::{Options, check};
use margay_syntax::{LineIndex, Severity, parse, tree::Whole};
use std::collections::BTreeMap;

/// A rejection: line of the first error, if known, and its text.
pub type Refusal = (Option<u32>, String);

/// Agreement statistics.
#[derive(Debug, Default)]
pub struct Tally {
    /// Modules with a verdict of both.
    pub judged: usize,
    /// Equal verdicts.
    pub agree: usize,
    /// Modules that both rejected.
    pub refused: usize,
    /// Those of them whose error ptxas locates.
    pub placed: usize,
    /// Those of them for which margay's first error is on the same line.
    pub same_line: usize,
    /// Those of them for which it is within one line.
    pub near: usize,
    /// Modules that ptxas crashed on, or failed at by an error of its own; they count for nothing.
    pub crashes: usize,
    differences: BTreeMap<String, Vec<(usize, String)>>,
}

impl Tally {
    /// Checks module `i` and compares the verdict with ptxas's.
    pub fn add(&mut self, i: usize, text: &str, relocatable: bool, ptxas: &Verdict) {
        if !ptxas.accepted && gave_up(&ptxas.messages) {
            self.crashes += 1;
            return;
        }
        self.judged += 1;
        match (ptxas.accepted, margay(text, relocatable)) {
            (true, None) => self.agree += 1,
            (true, Some((line, text))) => {
                self.differ(i, format!("refused by margay: {}", shape(&text)), format!("line {line:?}: {text}"));
            }
            (false, None) => {
                let (line, text) = first_error(&ptxas.messages);
                self.differ(i, format!("accepted by margay: {}", shape(&text)), format!("line {line:?}: {text}"));
            }
            (false, Some((line, text))) => {
                self.agree += 1;
                self.refused += 1;
                let (their_line, their_text) = first_error(&ptxas.messages);
                if let (Some(lines), Some(theirs)) = (&line, their_line) {
                    self.placed += 1;
                    let ours = lines[0];
                    self.same_line += usize::from(ours == theirs);
                    let near = lines.iter().any(|l| l.abs_diff(theirs) <= 1);
                    self.near += usize::from(near);
                    if !near {
                        let what = format!("margay {ours}: {text}\n      ptxas {theirs}: {their_text}");
                        self.differ(i, format!("another line: {} / {}", shape(&text), shape(&their_text)), what);
                    }
                }
            }
        }
    }

    fn differ(&mut self, i: usize, kind: String, what: String) {
        self.differences.entry(kind).or_default().push((i, what));
    }

    /// Prints the differences by frequency, with `show` examples each, named by `name`; then the statistics.
    pub fn print(&self, show: usize, mut name: impl FnMut(usize) -> String) {
        let mut groups: Vec<_> = self.differences.iter().collect();
        groups.sort_by_key(|(_, list)| std::cmp::Reverse(list.len()));
        for (kind, list) in &groups {
            println!("{} x {kind}", list.len());
            for (i, what) in list.iter().take(show) {
                println!("    {}: {what}", name(*i));
            }
        }
        println!(
            "{} of {} verdicts agree ({:.2} %), {} of them refusals",
            self.agree,
            self.judged,
            self.percent(),
            self.refused
        );
        println!(
            "the first error stands on ptxas's line in {} of {} that it places, within one line in {} ({:.2} %)",
            self.same_line,
            self.placed,
            self.near,
            self.near_percent()
        );
        if self.crashes > 0 {
            println!("ptxas failed by itself on {} more", self.crashes);
        }
    }

    /// Percentage of equal verdicts.
    pub fn percent(&self) -> f64 {
        100.0 * self.agree as f64 / self.judged.max(1) as f64
    }

    /// Percentage of first errors within one line.
    pub fn near_percent(&self) -> f64 {
        100.0 * self.near as f64 / self.placed.max(1) as f64
    }
}

/// Whether ptxas failed at its own work: it died without a message, or a list of its own (of debugging information that a fault
/// has changed, say) was asked for what it does not have.
fn gave_up(messages: &str) -> bool {
    let internal = ["Attempted to Dereference Out of Bounds", "Attempted to truncate larger than current size"];
    !messages.contains("error") && (!messages.contains("fatal") || internal.iter().any(|i| messages.contains(i)))
}

/// Margay's verdict: nothing, or the first error, with its line. Margay points at what is wrong; where ptxas knows only that something
/// in a declaration, header or instruction is, the line that it names follows: the last of a declaration or a header, the first of
/// an instruction, and the last of the function for what it finds out when it has read that whole.
fn margay(text: &str, relocatable: bool) -> Option<(Option<Vec<u32>>, String)> {
    let parsed = parse(text);
    let tree = parsed.tree.clone();
    let (_, messages) = check(parsed, &Options { relocatable, ..Options::default() });
    let errors = messages.into_iter().filter(|m| m.severity == Severity::Error);
    let error = errors.min_by_key(|m| m.span().start)?;
    let (lines, at) = (LineIndex::new(text), error.span().start);
    let others = match tree.whole(at) {
        Some(Whole::Header(header, all)) => vec![header.end, all.end],
        Some(Whole::Declaration(d)) => vec![d.end],
        Some(Whole::Instruction(i)) => vec![i.start],
        None => Vec::new(),
    };
    let text = format!("{} {}", error.code.info().number, error.message);
    Some((Some(std::iter::once(at).chain(others).map(|at| lines.line(at)).collect()), text))
}

/// The first error in ptxas's output by line; else the first one without a line. (ptxas does not print errors in order
/// of lines, and some refer to lines of its own text.)
fn first_error(log: &str) -> Refusal {
    let errors = log.lines().filter(|l| l.contains("error") || l.contains("fatal"));
    let parts = errors.map(|line| match line.split_once(", line ").and_then(|(_, rest)| rest.split_once(';')) {
        Some((number, text)) if !line.contains("<macro util>") => (number.parse().ok(), text.trim().to_owned()),
        _ => (None, line.trim().to_owned()),
    });
    let found: Vec<Refusal> = parts.collect();
    let placed = found.iter().filter(|r| r.0.is_some()).min_by_key(|r| r.0);
    placed.or(found.first()).cloned().unwrap_or((None, log.trim().to_owned()))
}

/// The message without names and numbers, for grouping.
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
