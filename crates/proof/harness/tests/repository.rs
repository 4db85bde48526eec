//! Checks that the repository has no links out of it, no paths of a particular machine and no large files, and that what its documents
//! say about files is true.

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

/// What stands between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Whether the path ends with these components.
fn ends_with(path: &Path, end: &str) -> bool {
    path.ends_with(end.trim_end_matches('/'))
}

#[test]
fn documents_name_files_that_exist() {
    const ENDINGS: [&str; 10] = [".rs", ".ptx", ".py", ".sh", ".txt", ".md", ".cu", ".c", ".toml", "/"];
    // A file to be written by the reader, and one that margay could have.
    const EXAMPLES: [&str; 2] = ["crates/core/ir/src/abi/NAME.rs", "crates/core/ir/src/abi/riscv.rs"];
    let files = everything();
    let documents = ["ARCHITECTURE.md", "CONTRIBUTING.md", "ADDING-AN-INSTRUCTION.md", "ABIS.md"];
    let mut missing = Vec::new();
    let mut named = 0;
    for document in documents {
        let text = fs::read_to_string(root().join(document)).unwrap();
        let is_path = |word: &&str| {
            let plain = !word.starts_with(['.', '/']) && !word.contains(['<', ' ', '{', '(']);
            plain && ENDINGS.iter().any(|e| word.ends_with(e))
        };
        for path in quoted(&text).filter(is_path).filter(|p| !EXAMPLES.contains(p)) {
            named += 1;
            // Paths begin at a folder that is clear where they stand.
            let exists = |file: &PathBuf| file.ancestors().any(|part| ends_with(part, path));
            if !files.iter().any(exists) {
                missing.push(format!("{document}: {path}"));
            }
        }
    }
    assert!(named > 100, "{named} paths");
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn unsafe_code_is_where_the_architecture_says() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let rule = text.split("\n* ").find(|rule| rule.starts_with("`unsafe`")).expect("the rule about `unsafe`");
    let allowed: Vec<&str> = quoted(rule).filter(|word| word.contains("/src/")).collect();
    let crates = everything().into_iter().filter(|p| p.starts_with(root().join("crates")));
    let uses = ["{", "fn ", "impl", "extern ", "trait "].map(|what| ["unsafe", what].join(" "));
    let mut found = Vec::new();
    for path in crates.filter(|p| p.extension().is_some_and(|e| e == "rs")) {
        let text = fs::read_to_string(&path).unwrap();
        let code = |line: &str| line.split("//").next().is_some_and(|code| uses.iter().any(|u| code.contains(u)));
        if text.lines().any(code) {
            found.push(path);
        }
    }
    let elsewhere: Vec<_> = found.iter().filter(|p| !allowed.iter().any(|a| ends_with(p, a))).collect();
    let without: Vec<_> = allowed.iter().filter(|a| !found.iter().any(|p| ends_with(p, a))).collect();
    assert!(elsewhere.is_empty() && without.is_empty(), "also in {elsewhere:#?}, not in {without:#?}");
}
