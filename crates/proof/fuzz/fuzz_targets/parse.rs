//! Reading any text ends without a panic, and says only what lies in the text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use margay_syntax::{eval, parse};

fuzz_target!(|text: &str| {
    let parsed = parse(text);
    for d in &parsed.diagnostics {
        let edits = d.suggestions.iter().flat_map(|s| s.edits.iter().map(|e| e.0));
        for span in d.labels.iter().map(|l| l.span).chain(edits) {
            assert!(text.get(span.range()).is_some(), "{d:?}");
        }
    }
    for n in 0..parsed.tree.operands.len() {
        let _ = eval(&parsed.tree, n as u32);
    }
    let _ = parsed.tree.origins(text.len() as u32 / 2);
});
