//! Builds a C program against the library and runs it over margay's driver: the API as programs meet it.

#[path = "../../cuda/tests/common/mod.rs"]
mod common;

use std::process::Command;

/// Builds a program of this folder against the libraries; a command that runs it.
fn program(name: &str) -> Command {
    let folder = common::folder(name, &[("libcuda.so.1", "libcuda.so"), ("libcudart.so.13", "libcudart.so")]);
    let program = folder.join("program");
    common::compile(&format!("{name}.c"), &program, [folder.join("libcudart.so.13")]);
    let mut command = Command::new(program);
    command.env("LD_LIBRARY_PATH", folder);
    command
}

#[test]
fn a_c_program_runs() {
    let run = program("client").output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success(), "{out}{err}");
    assert!(!err.contains("no version information"), "symbols have the version that programs ask for:\n{err}");
}

#[test]
fn kernels_belong_to_no_device_and_survive_a_reset() {
    let run = program("devices").env("MARGAY_DEVICE", "count=2").output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success() && out == "right\n", "{out}{err}");
}

#[test]
fn the_error_of_a_failed_kernel_stays() {
    let run = program("sticky").output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success() && out == "right\n", "{out}{err}");
}

/// Many programs never ask whether a launch succeeded: one that did not begin must not look like success to CI.
#[test]
fn a_launch_without_code_fails_the_program() {
    let run = program("refused").env("MARGAY_FAULT_EXIT", "1").output().unwrap();
    let err = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(1), "{err}");
    assert!(err.contains("a module could not be loaded") && err.contains("1 launch did not begin"), "{err}");
    assert_eq!(program("refused").status().unwrap().code(), Some(0));
}

/// The same for a kernel that cannot be prepared.
#[test]
fn a_launch_of_an_unlinked_kernel_fails_the_program() {
    let run = program("unlinked").env("MARGAY_FAULT_EXIT", "1").output().unwrap();
    let err = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(1), "{err}");
    let said = ["`missing`, which no module defines", "margay: a kernel cannot run: ", "1 launch did not begin"];
    assert!(said.iter().all(|words| err.contains(words)), "{err}");
}
