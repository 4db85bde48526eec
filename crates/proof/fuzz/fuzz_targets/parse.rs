//! Reading any text ends without a panic, and says only what lies in the text.
#![no_main]

#[allow(dead_code)]
#[path = "../claims.rs"]
mod claims;

libfuzzer_sys::fuzz_target!(|text: &str| claims::reads(text));
