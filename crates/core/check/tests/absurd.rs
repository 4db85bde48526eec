//! Modules that nobody writes are checked in time that grows with their length, and without a panic. A quadratic step takes
//! minutes here, not seconds.

use margay_check::{Options, check};
use margay_syntax::parse;
use std::time::{Duration, Instant};

fn module(body: &str) -> String {
    format!(".version 8.0\n.target sm_80\n.address_size 64\n.entry k() {{\n{body}\nret;\n}}\n")
}

/// One text for each number below `n`.
fn many(n: usize, text: impl Fn(usize) -> String) -> String {
    (0..n).map(text).collect()
}

#[track_caller]
fn soon(text: &str) {
    let start = Instant::now();
    let (checked, found) = check(parse(text), &Options::default());
    assert!(checked.is_some() || !found.is_empty());
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

#[test]
fn long_mnemonics() {
    soon(&module(&format!("add{} a, b, c;", ".u32".repeat(100_000))));
    soon(&module(&many(5_000, |i| format!("add.x{i} a, b;"))));
}

#[test]
fn many_names() {
    soon(&module(&many(100_000, |i| format!(".reg .b32 r{i};\n"))));
    soon(&module(&many(50_000, |i| format!("{{ bra M{i}; L{i}: }}\n"))));
    let variables = many(50_000, |i| format!(".shared .b32 s{i};\n"));
    soon(&(variables + &module(&many(50_000, |i| format!("ld.shared.u32 r{i}, [s{i}];\n")))));
    let later = many(50_000, |i| format!(".global .u64 a{i} = a{};\n", i + 1));
    soon(&(format!(".version 8.0\n.target sm_80\n.address_size 64\n{later}")));
}

#[test]
fn deep_nesting() {
    for (open, close) in [("{", "}"), ("(", ")"), ("[", "]"), ("-", "")] {
        let nested = format!("{}1{}", open.repeat(100_000), close.repeat(100_000));
        soon(&module(&nested));
        soon(&module(&format!("mov.u32 a, {nested};")));
        soon(&format!(".version 8.0\n.target sm_80\n.global .b32 a = {nested};\n"));
    }
}

#[test]
fn huge_numbers() {
    soon(&module(&many(50, |i| format!(".reg .b32 %a{i}_<4000000000>;"))));
    soon(".version 8.0\n.target sm_80\n.global .b8 a[99999999999999999999];\n.global .b32 c[65536][65536][65536];\n");
    soon(&format!(".version 8.0\n.target sm_80\n.global .u64 a = {};\n", "9".repeat(1_000_000)));
}
