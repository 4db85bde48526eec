//! Printing keeps every token, reads again, and is stable.
#![no_main]

#[allow(dead_code)]
#[path = "../claims.rs"]
mod claims;

libfuzzer_sys::fuzz_target!(|text: &str| claims::prints(text));
