//! Texture references exist in the runtime of CUDA 11 only: a C program that registers and binds one, over margay's driver.

use std::{env, path::PathBuf, process::Command};

/// Where cargo puts a library: beside the test or a folder above.
fn library(name: &str) -> PathBuf {
    let own = env::current_exe().unwrap();
    let places = own.ancestors().skip(1).take(2).map(|folder| folder.join(name));
    places.into_iter().find(|p| p.is_file()).expect("cargo builds the libraries before the tests")
}

#[test]
fn texture_references_are_bound() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("references");
    std::fs::create_dir_all(&folder).unwrap();
    for (name, file) in [("libcuda.so.1", "libcuda.so"), ("libcudart.so.11.0", "libcudart11.so")] {
        let _ = std::fs::remove_file(folder.join(name));
        std::os::unix::fs::symlink(library(file), folder.join(name)).unwrap();
    }
    let (program, runtime) = (folder.join("program"), folder.join("libcudart.so.11.0"));
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/references.c");
    let built = Command::new("cc").args(["-Wall", "-o"]).arg(&program).arg(source).arg(&runtime).status().unwrap();
    assert!(built.success());
    let run = Command::new(program).env("LD_LIBRARY_PATH", folder).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success() && out == "right\n", "{out}{err}");
}
