//! Programs and libraries with stand-ins for a CUDA runtime inside, under the environment that `margay exec` makes.
#![cfg(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu"))]

#[path = "../../cuda/tests/common/mod.rs"]
mod common;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::OnceLock,
};

/// A folder with margay's libraries under the names that programs ask for.
fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let libraries = [
            ("libcuda.so.1", "libcuda.so"),
            ("libcudart.so.13", "libcudart.so"),
            ("libcudart.so.12", "libcudart12.so"),
            ("libcudart.so.11.0", "libcudart11.so"),
            ("libmargay_redirect.so", "libmargay_redirect.so"),
        ];
        common::folder("libraries", &libraries)
    })
}

fn compile(name: &str, source: &str, words: &[&str]) -> PathBuf {
    let out = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    common::compile(source, &out, words);
    out
}

/// Runs a program as `margay exec` does.
fn run(program: &Path, words: &[&Path]) -> Output {
    run_with(program, words, &[])
}

fn run_with(program: &Path, words: &[&Path], environment: &[(&str, &str)]) -> Output {
    let at = |name: &str| folder().join(name).display().to_string();
    let preload = ["libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"].map(at).join(":");
    let mut command = Command::new(program);
    command
        .args(words)
        .envs(environment.iter().copied())
        .env("LD_AUDIT", at("libmargay_redirect.so"))
        .env("LD_PRELOAD", preload);
    command.env("LD_LIBRARY_PATH", folder()).env("MARGAY_DOORS", "1").output().unwrap()
}

fn check(output: &Output, wanted: &[&str]) {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out == "right\n", "{:?}\n{out}{err}", output.status);
    for words in wanted {
        assert!(err.contains(words), "`{words}` is missing:\n{err}");
    }
}

#[test]
fn a_program_runs_on_the_runtime_of_its_release() {
    for (release, led) in [(13, 9), (12, 10), (11, 11)] {
        let program = compile(&format!("program{release}"), "standin.c", &[&format!("-DRELEASE={release}")]);
        let words =
            format!("a static CUDA {release} runtime, {led} functions redirected to margay's; holds compute_50");
        check(&run(&program, &[]), &[&words]);
    }
}

#[test]
fn functions_shorter_than_a_jump_are_redirected_from_their_padding() {
    let program = compile("short", "standin.c", &["-DRELEASE=13", "-DSHORT"]);
    check(&run(&program, &[]), &["9 functions redirected"]);
}

#[test]
fn a_library_that_is_opened_later_runs_before_its_constructors() {
    let host = compile("host", "host.c", &[]);
    for release in [13, 12] {
        let words = ["-DLIBRARY", "-shared", "-fPIC", &format!("-DRELEASE={release}")];
        let library = compile(&format!("library{release}.so"), "standin.c", &words);
        check(&run(&host, &[&library]), &[&format!("library{release}.so: a static CUDA {release} runtime")]);
    }
}

#[test]
fn child_processes_are_redirected() {
    let program = compile("started", "standin.c", &["-DRELEASE=13"]);
    check(&run(Path::new("/bin/sh"), &[Path::new("-c"), &program]), &["started: a static CUDA 13 runtime"]);
}

#[test]
fn a_stripped_runtime_is_reported_with_a_remedy() {
    let program = compile("stripped", "standin.c", &["-DRELEASE=13", "-DASKS", "-s"]);
    let output = run(&program, &[]);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(err.contains("/stripped contains a CUDA runtime without symbols"), "{err}");
    assert!(err.contains("NVCC_APPEND_FLAGS='-cudart shared'"), "{err}");
}

#[test]
fn a_runtime_without_symbols_in_a_binding_is_reported_when_it_asks_the_driver() {
    let binding = compile("binding.so", "binding.c", &["-DLIBRARY", "-shared", "-fPIC"]);
    let program = compile("beside", "binding.c", &[]);
    let told = |output: &Output| String::from_utf8_lossy(&output.stderr).matches("contains a CUDA runtime").count();
    let beside = run(&program, &[&binding]);
    check(&beside, &[]);
    assert_eq!(told(&beside), 0);
    let asking = run(&program, &[&binding, Path::new("through")]);
    check(&asking, &["/binding.so contains a CUDA runtime without symbols"]);
    assert_eq!(told(&asking), 1);
}

#[test]
fn without_margay_exec_the_message_names_the_command() {
    let program = compile("alone", "standin.c", &["-DRELEASE=13", "-DASKS"]);
    let output = Command::new(&program).env("LD_LIBRARY_PATH", folder()).output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(err.contains("alone contains a static CUDA runtime; start the program with `margay exec`"), "{err}");
}

#[test]
fn libraries_of_other_folders_are_not_mistaken_for_margays() {
    // Its own libcudart would answer 0 to everything; margay's says which release it is.
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("theirs");
    fs::create_dir_all(&folder).unwrap();
    let theirs = folder.join("libcudart.so.12");
    let source = folder.join("theirs.c");
    fs::write(&source, "int cudaRuntimeGetVersion(int *version) { *version = 1; return 0; }").unwrap();
    let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&theirs).arg(&source).status().unwrap();
    assert!(built.success());
    let main = folder.join("main.c");
    let text = "#include <dlfcn.h>\n#include <stdio.h>\nint main(int count, char **words) {\n\
        int version = 0, (*get)(int *) = dlsym(dlopen(words[1], RTLD_NOW), \"cudaRuntimeGetVersion\");\n\
        get(&version);\nputs(version / 1000 == 12 ? \"right\" : \"theirs\");\nreturn 0; }";
    fs::write(&main, text).unwrap();
    let program = folder.join("main");
    assert!(Command::new("cc").arg("-o").arg(&program).arg(&main).arg("-ldl").status().unwrap().success());
    check(&run(&program, &[&theirs]), &[]);
}

#[test]
fn a_fault_fails_a_program_that_ignores_errors() {
    let program = compile("fault", "standin.c", &["-DRELEASE=13", "-DFAULT"]);
    let failed = run_with(&program, &[], &[("MARGAY_FAULT_EXIT", "7")]);
    let err = String::from_utf8_lossy(&failed.stderr);
    assert_eq!(failed.status.code(), Some(7), "{err}");
    assert!(err.contains("1 launch failed: out of bounds") && err.contains("changed it to 7"), "{err}");
    let kept = run(&program, &[]);
    assert_eq!(kept.status.code(), Some(0), "{}", String::from_utf8_lossy(&kept.stderr));
}

#[test]
fn the_summary_of_checks_counts_launches_whose_bounds_the_engine_checks() {
    let program = compile("checked", "standin.c", &["-DRELEASE=13"]);
    let output = run_with(&program, &[], &[("MARGAY_CHECK", "memory")]);
    check(&output, &["margay: no findings in 1 checked launch"]);
}

#[test]
fn the_summary_lists_what_ran() {
    let program = compile("counted", "standin.c", &["-DRELEASE=13"]);
    let output = run_with(&program, &[], &[("MARGAY_STATS", "1")]);
    // One launch of one kernel; 32 numbers of four bytes, there and back.
    check(&output, &["1 launch of 1 kernel ", "256 bytes in 2 copies", "1 × twice on the "]);
}
