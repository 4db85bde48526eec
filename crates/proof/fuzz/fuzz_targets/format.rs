//! Printing keeps every token, reads again, and is stable.
#![no_main]

use libfuzzer_sys::fuzz_target;
use margay_syntax::{FormatOptions, Parsed, Severity, format, parse};

/// Everything but blanks and comments.
fn tokens(parsed: &Parsed) -> String {
    let text = &parsed.tree.text;
    let (mut out, mut at) = (String::new(), 0);
    for comment in &parsed.tree.comments {
        out += &text[at..comment.start as usize];
        at = comment.end as usize;
    }
    out += &text[at..];
    out.retain(|c| !c.is_whitespace() && c != '\u{1a}');
    out
}

fuzz_target!(|text: &str| {
    let parsed = parse(text);
    let options = FormatOptions::default();
    let Ok(once) = format(&parsed, &options) else { return };
    let again = parse(&once);
    assert!(!again.diagnostics.iter().any(|d| d.severity == Severity::Error), "{once}");
    assert_eq!(tokens(&parsed), tokens(&again));
    assert_eq!(parsed.tree.comments.len(), again.tree.comments.len());
    assert_eq!(format(&again, &options).as_deref(), Ok(&*once), "not stable");
});
