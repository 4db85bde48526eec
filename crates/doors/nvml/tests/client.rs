//! Builds a C program against the library and runs it over margay's driver.

#[path = "../../cuda/tests/common/mod.rs"]
mod common;

use std::process::Command;

#[test]
fn programs_learn_what_the_driver_says_of_devices() {
    let folder = common::folder("nvml", &[("libcuda.so.1", "libcuda.so"), ("libnvidia-ml.so.1", "libnvml.so")]);
    let program = folder.join("program");
    common::compile("client.c", &program, [folder.join("libnvidia-ml.so.1")]);
    let variables = [("MARGAY_DEVICE", "t4,count=2"), ("CUDA_VISIBLE_DEVICES", "0")];
    let run = Command::new(program).envs(variables).env("LD_LIBRARY_PATH", &folder).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success() && out == "right\n", "{out}{err}");
}
