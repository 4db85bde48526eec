//! Parsing any text terminates without a panic, with diagnostics within the text.
#![no_main]

#[allow(dead_code)]
#[path = "../claims.rs"]
mod claims;

libfuzzer_sys::fuzz_target!(|text: &str| claims::reads(text));
