//! Checking any text ends without a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let (checked, diagnostics) = margay_check::check(margay_syntax::parse(text), &margay_check::Options::default());
    for d in &diagnostics {
        assert!(!d.labels.is_empty());
    }
    drop(checked);
});
