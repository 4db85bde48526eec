//! Groups repeated diagnostics: the first few, and the number of the others.

use super::{Code, Diagnostic, Severity};
use std::collections::HashMap;

/// Lines that a note lists before it says "and N more".
const LISTED: usize = 8;

/// Keeps the first `each` findings of those that have the same code, severity and message, and notes on the last one kept how many
/// more there are and where. `line` gives the line of an offset.
pub fn group(diagnostics: Vec<Diagnostic>, each: usize, line: impl Fn(u32) -> u32) -> Vec<Diagnostic> {
    /// Index of the last one kept, number kept, lines of the others.
    struct Alike {
        last: usize,
        kept: usize,
        lines: Vec<u32>,
        more: usize,
    }
    let mut alike: HashMap<(Code, Severity, String), Alike> = HashMap::new();
    let mut kept: Vec<Diagnostic> = Vec::new();
    for d in diagnostics {
        let entry = alike.entry((d.code, d.severity, d.message.clone())).or_insert(Alike {
            last: 0,
            kept: 0,
            lines: Vec::new(),
            more: 0,
        });
        if entry.kept < each.max(1) {
            entry.kept += 1;
            entry.last = kept.len();
            kept.push(d);
        } else {
            entry.more += 1;
            if entry.lines.len() < LISTED {
                entry.lines.push(line(d.span().start));
            }
        }
    }
    for a in alike.into_values().filter(|a| a.more > 0) {
        let lines: Vec<String> = a.lines.iter().map(u32::to_string).collect();
        let rest = if a.more > a.lines.len() { ", ..." } else { "" };
        let plural = if a.more == 1 { "" } else { "s" };
        kept[a.last].notes.push(format!("{} more like this, on line{plural} {}{rest}", a.more, lines.join(", ")));
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Span;

    #[test]
    fn keeps_some_and_counts_the_rest() {
        let same = |n: u32| Diagnostic::new(Code::Syntax, Span::new(n, n), "same");
        let mut all: Vec<Diagnostic> = (0..20).map(same).collect();
        all.insert(7, Diagnostic::new(Code::Syntax, Span::new(7, 7), "other"));
        let kept = group(all, 3, |offset| offset + 1);
        assert_eq!(kept.len(), 4);
        assert_eq!(kept[2].notes, ["17 more like this, on lines 4, 5, 6, 7, 8, 9, 10, 11, ..."]);
        assert!(kept[3].notes.is_empty());
    }
}
