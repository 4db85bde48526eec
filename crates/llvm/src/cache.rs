//! Compiled objects on disk, keyed by the LLVM IR, the engine's version, the optimisation effort and the host's CPU.
//!
//! Files are written under a temporary name and renamed, so concurrent processes see whole files or none. The folder is
//! `$MARGAY_CACHE_DIR`, else `$XDG_CACHE_HOME/margay`, else `$HOME/.cache/margay`; `MARGAY_CACHE=0` turns it off. When it grows
//! beyond its bound, the files that were not used for longest go first. A cache that cannot be read or written is as good as
//! none: it never fails a launch.

use crate::machine::{self, Effort};
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
const MAGIC: &[u8; 8] = b"margay01";

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

/// Name of the file for some IR.
fn key(text: &str, effort: Effort) -> String {
    let hash = |salt: u64| {
        let mut h = DefaultHasher::new();
        (salt, env!("CARGO_PKG_VERSION"), effort, machine::host(), text).hash(&mut h);
        h.finish()
    };
    format!("{:016x}{:016x}.o", hash(1), hash(2))
}

/// The object for some IR, if it is there.
pub fn find(text: &str, effort: Effort) -> Option<Vec<u8>> {
    let path = folder()?.join(key(text, effort));
    let bytes = fs::read(&path).ok()?;
    let object = bytes.strip_prefix(MAGIC.as_slice())?;
    // The length guards against files that a full disk cut short.
    let (length, object) = object.split_first_chunk::<8>()?;
    if u64::from_le_bytes(*length) != object.len() as u64 {
        return None;
    }
    if let Ok(file) = fs::File::options().append(true).open(&path) {
        let _ = file.set_modified(SystemTime::now());
    }
    Some(object.to_vec())
}

/// Keeps an object.
pub fn keep(text: &str, effort: Effort, object: &[u8]) {
    let Some(folder) = folder() else { return };
    if fs::create_dir_all(&folder).is_err() {
        return;
    }
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let unique = format!("tmp.{}.{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let temporary = folder.join(unique);
    let mut bytes = MAGIC.to_vec();
    bytes.extend((object.len() as u64).to_le_bytes());
    bytes.extend(object);
    if fs::write(&temporary, bytes).is_err() || fs::rename(&temporary, folder.join(key(text, effort))).is_err() {
        let _ = fs::remove_file(&temporary);
    }
    trim(&folder);
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
