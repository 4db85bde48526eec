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
pub mod instructions;
pub mod kernels;
pub mod litmus;
pub mod mutate;
pub mod races;
pub mod random;
pub mod run;
pub mod variant;

use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

/// The repository's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3).map(Path::to_path_buf).unwrap_or_default()
}

/// The number in an environment variable, for tests whose length and seeds can be set; `None` if it is unset or no number.
pub fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
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

/// Does the same for all items, on all cores of the machine; the results are in the items' order. For tests that are one test.
pub fn parallel<T: Sync, R: Send>(items: &[T], f: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut done = Vec::new();
        while let Some((i, item)) = Some(next.fetch_add(1, Relaxed)).and_then(|i| Some((i, items.get(i)?))) {
            done.push((i, f(item)));
        }
        done
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut all: Vec<(usize, R)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().flat_map(|w| w.join().unwrap_or_else(|why| std::panic::resume_unwind(why))).collect()
    });
    all.sort_by_key(|(i, _)| *i);
    all.into_iter().map(|(_, r)| r).collect()
}
