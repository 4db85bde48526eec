//! Texture references exist in the runtime of CUDA 11 only: a C program that registers and binds one, over margay's driver.

#[path = "../../cuda/tests/common/mod.rs"]
mod common;

use std::process::Command;

#[test]
fn texture_references_are_bound() {
    let libraries = [("libcuda.so.1", "libcuda.so"), ("libcudart.so.11.0", "libcudart11.so")];
    let folder = common::folder("references", &libraries);
    let program = folder.join("program");
    common::compile("references.c", &program, [folder.join("libcudart.so.11.0")]);
    let run = Command::new(program).env("LD_LIBRARY_PATH", folder).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success() && out == "right\n", "{out}{err}");
}
