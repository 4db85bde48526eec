//! Builds a C program against the library and runs it: the API as programs meet it.

use std::{env, path::PathBuf, process::Command};

/// Where cargo puts the library: beside the test or a folder above.
fn library() -> PathBuf {
    let own = env::current_exe().unwrap();
    let places = own.ancestors().skip(1).take(2).map(|folder| folder.join("libcuda.so"));
    places.into_iter().find(|p| p.is_file()).expect("cargo builds the library before its tests")
}

#[test]
fn a_c_program_runs() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (client, soname) = (folder.join("client"), folder.join("libcuda.so.1"));
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/client.c");
    let _ = std::fs::remove_file(&soname);
    std::os::unix::fs::symlink(library(), &soname).unwrap();
    let built = Command::new("cc").args(["-Wall", "-o"]).arg(&client).arg(source).arg(&soname).status().unwrap();
    assert!(built.success());
    for engine in margay::engines().iter().map(|e| e.name()).filter(|name| *name != "simd-full") {
        let mut run = Command::new(&client);
        let run = run.env("LD_LIBRARY_PATH", &folder).env("MARGAY_ENGINE", engine).output().unwrap();
        let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
        assert!(run.status.success(), "{engine}:\n{out}{err}");
        assert!(err.contains("out of bounds") && err.contains("[%d1]"), "the fault is told with its place:\n{err}");
    }
}
