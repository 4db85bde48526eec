//! Random functions that call each other return the correct results on every engine under every ABI.
//!
//! `MARGAY_CALLS=1000` runs more modules.

use margay_harness::{calls, number, run};
use std::path::Path;

#[test]
fn random_calls_carry_every_byte() {
    let count = number("MARGAY_CALLS").unwrap_or(12);
    for seed in 0..count {
        let text = calls::case(seed);
        if let Err(why) = run::run_text(Path::new("calls.ptx"), text.clone()) {
            panic!("module {seed}: {why}\n{text}");
        }
    }
}
