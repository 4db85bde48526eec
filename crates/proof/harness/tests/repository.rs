//! Checks that the repository has no links out of it, no paths of a particular machine and no large files.

use margay_harness::root;
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Folders ignored by git, and git's own.
const SKIPPED: [&str; 6] = [".git", "target", ".oracle", ".opencl", "out", "__pycache__"];

/// Collects files and links below a folder, without following links.
fn walk(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() && !SKIPPED.iter().any(|s| name == *s) {
            walk(&entry.path(), found);
        } else if !kind.is_dir() && name != ".git" {
            found.push(entry.path());
        }
    }
}

fn everything() -> Vec<PathBuf> {
    let mut found = Vec::new();
    walk(&root(), &mut found);
    assert!(found.len() > 500, "{} files are not the repository", found.len());
    found
}

#[test]
fn no_links() {
    let links: Vec<_> = everything().into_iter().filter(|p| p.is_symlink()).collect();
    assert!(links.is_empty(), "{links:?}");
}

#[test]
fn no_paths_of_one_machine() {
    // Split, so that this file does not contain them.
    let homes = [("/ho", "me/"), ("/Us", "ers/"), ("/roo", "t/"), ("/wo", "rk/")].map(|(a, b)| format!("{a}{b}"));
    let mut bad = Vec::new();
    for path in everything() {
        // Binary files contain no paths.
        let Ok(text) = fs::read_to_string(&path) else { continue };
        for (i, line) in text.lines().enumerate() {
            if homes.iter().any(|h| line.contains(h.as_str())) {
                bad.push(format!("{}:{}: {line}", path.display(), i + 1));
            }
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

#[test]
fn no_large_files() {
    // Only git knows which files are tracked: the others are build outputs.
    let Ok(list) = Command::new("git").arg("-C").arg(root()).args(["ls-files", "-z"]).output() else { return };
    let list = String::from_utf8_lossy(&list.stdout);
    let size = |name: &str| fs::metadata(root().join(name)).map_or(0, |m| m.len());
    let large: Vec<_> = list.split('\0').filter(|name| !name.is_empty() && size(name) > 1 << 20).collect();
    assert!(large.is_empty(), "tracked files of more than 1 MiB: {large:?}");
}
