//! Times parsing and checking of a file: `cargo run --release --example speed -- big.ptx`.

use margay_check::{Options, check};
use margay_syntax::parse;
use std::time::Instant;

fn main() {
    for file in std::env::args().skip(1) {
        let Ok(text) = std::fs::read_to_string(&file) else { continue };
        let megabytes = text.len() as f64 / 1e6;
        let (mut best_parse, mut best_check) = (f64::MAX, f64::MAX);
        for _ in 0..7 {
            let start = Instant::now();
            let parsed = parse(&text);
            best_parse = best_parse.min(start.elapsed().as_secs_f64());
            let start = Instant::now();
            let (checked, found) = check(parsed, &Options::default());
            best_check = best_check.min(start.elapsed().as_secs_f64());
            std::hint::black_box((checked, found));
        }
        println!(
            "{file}: {megabytes:.2} MB, parse {:.0} MB/s, check {:.0} MB/s, both {:.0} MB/s",
            megabytes / best_parse,
            megabytes / best_check,
            megabytes / (best_parse + best_check)
        );
    }
}
