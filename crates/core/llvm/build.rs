//! Names the engine by its sources, so that code on disk never outlives the engine that made it.

use std::{
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
};

/// What decides about code: emission here, analyses, the instruction table, what helpers do.
const SOURCES: [&str; 4] = ["src", "../ir/src", "../isa/src", "../exec/src"];

fn main() {
    let mut files = Vec::new();
    for folder in SOURCES {
        println!("cargo:rerun-if-changed={folder}");
        collect(Path::new(folder), &mut files);
    }
    files.sort();
    let mut hash = DefaultHasher::new();
    for file in files {
        (&file, fs::read(&file).unwrap_or_default()).hash(&mut hash);
    }
    println!("cargo:rustc-env=MARGAY_ENGINE={:016x}", hash.finish());
}

/// All files below a folder; none where a package stands alone.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.path() {
            path if path.is_dir() => collect(&path, files),
            path => files.push(path),
        }
    }
}
