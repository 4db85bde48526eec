//! The test runner of `tests/`: each file is a case, run on every engine and ABI. `tests/README.ptx` documents the
//! format.
#![forbid(unsafe_code)]

pub mod attack;
pub mod calls;
pub mod case;
pub mod check;
pub mod communicate;
pub mod expr;
pub mod golden;
pub mod kernels;
pub mod litmus;
pub mod mutate;
pub mod random;
pub mod run;

use std::path::{Path, PathBuf};

/// The repository's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3).map(Path::to_path_buf).unwrap_or_default()
}

/// All `.ptx` files under a folder of the repository, sorted; names are paths relative to the folder without extension.
pub fn files(folder: &str) -> Vec<(String, PathBuf)> {
    let top = root().join(folder);
    let (mut found, mut todo) = (Vec::new(), vec![top.clone()]);
    while let Some(dir) = todo.pop() {
        for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                todo.push(path);
            } else if path.extension().is_some_and(|e| e == "ptx") {
                let name = path.strip_prefix(&top).unwrap_or(&path).with_extension("").display().to_string();
                found.push((name, path));
            }
        }
    }
    found.sort();
    found
}
