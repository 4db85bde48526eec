//! C programs beside margay's libraries, under the names that programs ask for. The tests of the other libraries include this file.

use std::{
    env,
    ffi::OsStr,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

/// Where cargo puts a library: beside the test or some folders above, as the version of cargo goes.
fn library(file: &str) -> PathBuf {
    let own = env::current_exe().unwrap();
    let places = own.ancestors().skip(1).take(5).map(|folder| folder.join(file));
    places.into_iter().find(|p| p.is_file()).expect("cargo builds the libraries before the tests")
}

/// A folder of this name with libraries, each a link of a name to a file that cargo has built.
pub fn folder(name: &str, libraries: &[(&str, &str)]) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).unwrap();
    for (name, file) in libraries {
        let _ = fs::remove_file(folder.join(name));
        symlink(library(file), folder.join(name)).unwrap();
    }
    folder
}

/// Builds a program or library from a source in `tests`, with more words for the compiler.
pub fn compile(source: &str, out: &Path, words: impl IntoIterator<Item = impl AsRef<OsStr>>) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(source);
    // A sanitizer's runtime comes with the program: `make asan` and `make tsan` say which, and whose.
    let flags = env::var("CFLAGS").unwrap_or_default();
    let mut cc = Command::new(env::var("CC").unwrap_or_else(|_| "cc".into()));
    let cc = cc.args(["-Wall", "-pthread"]).args(flags.split_whitespace());
    assert!(cc.arg("-o").arg(out).arg(source).args(words).arg("-ldl").status().unwrap().success());
}
