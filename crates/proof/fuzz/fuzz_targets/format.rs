//! Printing preserves every token, its result parses, and printing that again changes nothing.
#![no_main]

#[allow(dead_code)]
#[path = "../claims.rs"]
mod claims;

libfuzzer_sys::fuzz_target!(|text: &str| claims::prints(text));
