//! Every file of `tests/` as a test of its own; `cargo test -p margay-harness --test cases functions/` runs a part, and
//! `MARGAY_TEST_ENGINE=simd MARGAY_TEST_ABI=sysv` before it one engine and one ABI. With `MARGAY_TEST_TIMES=FILE` the seconds that each
//! took are added to a file.

use libtest_mimic::{Arguments, Failed, Trial};
use margay_harness::{check, files, root, run};
use std::{
    io::Write,
    path::PathBuf,
    time::{Duration, Instant},
};

type Runner = fn(&std::path::Path) -> Result<(), String>;

/// A group: prefix of test names, named files, runner.
type Group = (&'static str, Vec<(String, PathBuf)>, Runner);

fn main() {
    let arguments = Arguments::from_args();
    let readme = ("README".to_string(), root().join("tests/README.ptx"));
    let groups: [Group; 4] = [
        ("", vec![readme], run::run),
        ("run/", files("tests/run").into_iter().filter(|(name, _)| !name.ends_with("_linked")).collect(), run::run),
        ("check/pass/", files("tests/check/pass"), check::pass),
        ("check/fail/", files("tests/check/fail"), check::fail),
    ];
    let mut trials = Vec::new();
    for (group, files, runner) in groups {
        for (name, path) in files {
            let name = format!("{group}{name}");
            let known = name.clone();
            trials.push(Trial::test(name, move || {
                let began = Instant::now();
                let result = runner(&path).map_err(Failed::from);
                note(&known, began.elapsed());
                result
            }));
        }
    }
    libtest_mimic::run(&arguments, trials).exit();
}

/// Adds a line with the seconds that a case took to the file that the environment names, if it does.
fn note(name: &str, took: Duration) {
    let Some(file) = std::env::var_os("MARGAY_TEST_TIMES") else { return };
    if let Ok(mut file) = std::fs::OpenOptions::new().append(true).create(true).open(file) {
        let _ = writeln!(file, "{:.3} cases {name}", took.as_secs_f64()); // times are for people; no test waits for them
    }
}
