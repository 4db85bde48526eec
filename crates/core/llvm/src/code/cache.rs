//! Compiled objects on disk, keyed by the content of the program ([`CacheKey`]) and the optimisation effort.
//!
//! Files are written under a temporary name and renamed, so concurrent processes see whole files or none. The folder is
//! `$MARGAY_CACHE_DIR`, else `$XDG_CACHE_HOME/margay`, else `$HOME/.cache/margay`; `MARGAY_CACHE=0` turns it off. When it grows
//! beyond its bound, the files that were not used for longest go first. A cache that cannot be read or written is as good as
//! none: it never fails a launch.

use crate::{code::key::CacheKey, code::target::Effort};
use std::{
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::PathBuf,
    sync::atomic::{AtomicU32, Ordering},
    time::SystemTime,
};

/// Bytes that the folder may hold.
const BOUND: u64 = 256 << 20;

/// First bytes of every file; changes with its format.
const MAGIC: &[u8; 8] = b"margay02";

/// What is kept for a kernel: what the host must know, and the object.
pub struct Entry {
    pub facts: Vec<u8>,
    pub object: Vec<u8>,
}

fn folder() -> Option<PathBuf> {
    let var = |name| std::env::var_os(name).filter(|v| !v.is_empty());
    if var("MARGAY_CACHE").is_some_and(|v| v == "0") {
        return None;
    }
    let explicit = var("MARGAY_CACHE_DIR").map(PathBuf::from);
    let xdg = || var("XDG_CACHE_HOME").map(|d| PathBuf::from(d).join("margay"));
    let home = || var("HOME").map(|d| PathBuf::from(d).join(".cache/margay"));
    explicit.or_else(xdg).or_else(home)
}

fn name(content: CacheKey, effort: Effort) -> String {
    let [a, b] = content.0;
    let effort = match effort {
        Effort::Light => "light",
        Effort::Full => "full",
    };
    format!("{a:016x}{b:016x}.{effort}")
}

/// Guards against files that a full disk cut short, or that somebody wrote into.
fn check(bytes: &[u8]) -> u64 {
    let mut h = DefaultHasher::new();
    bytes.hash(&mut h);
    h.finish()
}

/// What an earlier compilation left.
pub fn find(content: CacheKey, effort: Effort) -> Option<Entry> {
    let path = folder()?.join(name(content, effort));
    let bytes = fs::read(&path).ok()?;
    let (sum, rest) = bytes.strip_prefix(MAGIC.as_slice())?.split_first_chunk::<8>()?;
    if u64::from_le_bytes(*sum) != check(rest) {
        return None;
    }
    let (length, rest) = rest.split_first_chunk::<8>()?;
    let (facts, object) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    if let Ok(file) = fs::File::options().append(true).open(&path) {
        let _ = file.set_modified(SystemTime::now());
    }
    Some(Entry { facts: facts.to_vec(), object: object.to_vec() })
}

/// Keeps what was compiled.
pub fn keep(content: CacheKey, effort: Effort, facts: &[u8], object: &[u8]) {
    let Some(folder) = folder() else { return };
    if fs::create_dir_all(&folder).is_err() {
        return;
    }
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let unique = format!("tmp.{}.{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let temporary = folder.join(unique);
    let rest = [(facts.len() as u64).to_le_bytes().as_slice(), facts, object].concat();
    let bytes = [MAGIC.as_slice(), &check(&rest).to_le_bytes(), &rest].concat();
    if fs::write(&temporary, bytes).is_err() || fs::rename(&temporary, folder.join(name(content, effort))).is_err() {
        let _ = fs::remove_file(&temporary);
    }
    // Looking through the folder takes time, so not everybody does.
    if content.0[0].is_multiple_of(16) {
        trim(&folder);
    }
}

fn trim(folder: &PathBuf) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut files: Vec<(SystemTime, u64, PathBuf)> = entries
        .flatten()
        .filter_map(|e| e.metadata().ok().and_then(|m| Some((m.modified().ok()?, m.len(), e.path()))))
        .collect();
    let mut total: u64 = files.iter().map(|f| f.1).sum();
    files.sort();
    for (_, size, path) in files {
        if total <= BOUND {
            break;
        }
        if fs::remove_file(path).is_ok() {
            total -= size;
        }
    }
}
