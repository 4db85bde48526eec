//! Builds a C program against the library and runs it over margay's driver.

use std::{env, path::PathBuf, process::Command};

/// Where cargo puts a library: beside the test or a folder above.
fn library(name: &str) -> PathBuf {
    let own = env::current_exe().unwrap();
    let places = own.ancestors().skip(1).take(2).map(|folder| folder.join(name));
    places.into_iter().find(|p| p.is_file()).expect("cargo builds the libraries before the tests")
}

#[test]
fn programs_learn_what_the_driver_says_of_devices() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("nvml");
    std::fs::create_dir_all(&folder).unwrap();
    for (name, file) in [("libcuda.so.1", "libcuda.so"), ("libnvidia-ml.so.1", "libnvml.so")] {
        let _ = std::fs::remove_file(folder.join(name));
        std::os::unix::fs::symlink(library(file), folder.join(name)).unwrap();
    }
    let program = folder.join("program");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/client.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-Wall", "-o"]).arg(&program).arg(source).arg(folder.join("libnvidia-ml.so.1")).arg("-ldl");
    assert!(compiler.status().unwrap().success());
    let variables = [("MARGAY_DEVICE", "t4,count=2"), ("CUDA_VISIBLE_DEVICES", "0")];
    let run = Command::new(program).envs(variables).env("LD_LIBRARY_PATH", &folder).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success() && out == "right\n", "{out}{err}");
}
