//! The recorder with a mock driver, and without a driver.

use std::{path::Path, process::Command};

fn golden(library: &Path, folder: &Path) -> std::process::Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_golden"));
    command
        .env("MARGAY_LIBCUDA", library)
        .env("MARGAY_GOLDEN", folder)
        .arg("builtin/")
        .arg("cluster/")
        .arg("warp/redux");
    command.output().expect("the recorder runs")
}

#[test]
fn without_a_driver_it_says_so() {
    let output = golden(Path::new("/nowhere/libcuda.so.1"), Path::new("/nowhere"));
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("there is no CUDA driver"));
}

#[test]
fn what_the_driver_computes_is_recorded() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let library = folder.join("libpaper.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake.c");
    let compiled = Command::new("cc").args(["-shared", "-fPIC", "-w", "-o"]).arg(&library).arg(&source).status();
    if !compiled.is_ok_and(|s| s.success()) {
        eprintln!("there is no C compiler, so that the driver of paper cannot be made");
        return;
    }
    let output = golden(&library, &folder.join("golden"));
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("Paper GPU (compute capability 9.0), driver for CUDA 13.5"), "{said}");
    assert!(said.contains("cluster/phases: left out"), "{said}");
    // Sevens are not what the case expects.
    assert_eq!(output.status.code(), Some(1), "{said}");
    let text = std::fs::read_to_string(folder.join("golden/warp/redux.txt")).expect("a recording");
    assert!(text.starts_with("# Paper GPU") && text.contains("07070707070707070707070707070707"), "{text}");
}
