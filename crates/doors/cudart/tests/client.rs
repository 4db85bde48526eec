//! Builds a C program against the library and runs it over margay's driver: the API as programs meet it.

use std::{env, path::PathBuf, process::Command};

/// Where cargo puts a library: beside the test or a folder above.
fn library(name: &str) -> PathBuf {
    let own = env::current_exe().unwrap();
    let places = own.ancestors().skip(1).take(2).map(|folder| folder.join(name));
    places.into_iter().find(|p| p.is_file()).expect("cargo builds the libraries before the tests")
}

#[test]
fn a_c_program_runs() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    for (name, file) in [("libcuda.so.1", "libcuda.so"), ("libcudart.so.13", "libcudart.so")] {
        let _ = std::fs::remove_file(folder.join(name));
        std::os::unix::fs::symlink(library(file), folder.join(name)).unwrap();
    }
    let (client, runtime) = (folder.join("runtime-client"), folder.join("libcudart.so.13"));
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/client.c");
    let built = Command::new("cc").args(["-Wall", "-o"]).arg(&client).arg(source).arg(&runtime).status().unwrap();
    assert!(built.success());
    let run = Command::new(&client).env("LD_LIBRARY_PATH", &folder).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success(), "{out}{err}");
    assert!(!err.contains("no version information"), "symbols have the version that programs ask for:\n{err}");
}
