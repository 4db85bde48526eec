//! Every file of `tests/` as a test; `cargo test -p margay-harness --test cases functions/` runs a part.

use libtest_mimic::{Arguments, Failed, Trial};
use margay_harness::{check, files, root, run};
use std::path::PathBuf;

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
            trials.push(Trial::test(format!("{group}{name}"), move || runner(&path).map_err(Failed::from)));
        }
    }
    libtest_mimic::run(&arguments, trials).exit();
}
