//! Properties that hold for any text, for the fuzz targets of this folder and for the harness, which runs them without
//! libFuzzer.

use margay_check::Options;
use margay_syntax::{FormatOptions, Parsed, Severity, eval, format, parse};

/// Parsing terminates, and its diagnostics lie within the text.
pub fn reads(text: &str) {
    let parsed = parse(text);
    for d in &parsed.diagnostics {
        let edits = d.suggestions.iter().flat_map(|s| s.edits.iter().map(|e| e.0));
        for span in d.labels.iter().map(|l| l.span).chain(edits) {
            assert!(text.get(span.range()).is_some(), "{d:?}");
        }
    }
    for operand in &parsed.tree.operands {
        let _ = eval(&parsed.tree, operand);
    }
    let _ = parsed.tree.origins(text.len() as u32 / 2);
}

/// Printing preserves every token, its result parses, and printing that again changes nothing.
pub fn prints(text: &str) {
    let parsed = parse(text);
    let options = FormatOptions::default();
    let Ok(once) = format(&parsed, &options) else { return };
    let again = parse(&once);
    assert!(!again.diagnostics.iter().any(|d| d.severity == Severity::Error), "{once}");
    assert_eq!(tokens(&parsed), tokens(&again));
    assert_eq!(parsed.tree.comments.len(), again.tree.comments.len());
    assert_eq!(format(&again, &options).as_deref(), Ok(&*once), "not stable");
}

/// The text without blanks and comments.
fn tokens(parsed: &Parsed) -> String {
    let text = &parsed.tree.text;
    let (mut out, mut at) = (String::new(), 0);
    for comment in &parsed.tree.comments {
        out += &text[at..comment.start as usize];
        at = comment.end as usize;
    }
    out += &text[at..];
    // A backslash before an opcode is a blank, to ptxas as to the lexer.
    out.retain(|c| !c.is_whitespace() && !matches!(c, '\u{1a}' | '\\'));
    out
}

/// Checking terminates.
pub fn checks(text: &str) {
    let (checked, diagnostics) = margay_check::check(parse(text), &Options::default());
    for d in &diagnostics {
        assert!(!d.labels.is_empty());
    }
    drop(checked);
}
