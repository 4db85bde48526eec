//! Compiled objects on disk, keyed by the content of the program ([`CacheKey`]) and the optimization effort.
//!
//! Files are written under a temporary name and renamed: concurrent processes see whole files or none and never lock
//! each other out (see [`Claim`]), and a process that is killed loses only the file it was writing. The folder is
//! `$MARGAY_CACHE_DIR`, else `$XDG_CACHE_HOME/margay`, else `$HOME/.cache/margay`; `MARGAY_CACHE=off` disables the
//! cache. When the folder exceeds its bound (`MARGAY_CACHE_SIZE`), the least recently used files are evicted. A cache
//! that cannot be read or written is ignored: it never fails a launch.

use crate::code::{claim::Claim, key::CacheKey};
use margay_exec::Effort;
use std::{
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed},
    time::{Duration, SystemTime},
};

/// Bound of the folder's size in bytes, unless `MARGAY_CACHE_SIZE` is set.
const BOUND: u64 = 256 << 20;

/// Magic number of every file; changes with the format.
const MAGIC: &[u8; 8] = b"margay03";

/// File extensions, by effort.
const ENDINGS: [&str; 2] = ["light", "full"];
/// Extension of a note that code would have paid ([`note_demand`]).
const DEMAND: &str = "demand";
/// Prefix of the names of files that are being written.
const TEMPORARY: &str = "tmp.";

/// A file last used within this time is not marked as used again.
const FRESH: Duration = Duration::from_secs(60);
/// A temporary file older than this has lost its writer.
const ABANDONED: Duration = Duration::from_secs(3600);
/// A note older than this is removed: its program is no longer in use.
const FORGOTTEN: Duration = Duration::from_secs(7 * 24 * 3600);

/// What the cache holds for a kernel: the serialized [`crate::code::compile::Facts`], and the object.
pub(crate) struct Entry {
    pub facts: Vec<u8>,
    pub object: Vec<u8>,
}

/// A file of the cache.
#[derive(Clone, Debug)]
pub struct File {
    /// Where it is.
    pub path: PathBuf,
    /// Size in bytes.
    pub size: u64,
    /// Time of the last use, to the minute.
    pub used: SystemTime,
    /// What it is.
    pub kind: FileKind,
}

/// What a file of the cache is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileKind {
    /// Code of an effort.
    Code(Effort),
    /// A note that code would have paid: the first process that finds it compiles at once.
    Demand,
    /// A file that is being written.
    Temporary,
}

fn variable(name: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(name).filter(|v| !v.is_empty())
}

/// The cache folder; `None` if the cache is off or no home directory is known.
pub fn folder() -> Option<PathBuf> {
    if variable("MARGAY_CACHE").is_some_and(|v| v == "0" || v == "off") {
        return None;
    }
    let explicit = variable("MARGAY_CACHE_DIR").map(PathBuf::from);
    let xdg = || variable("XDG_CACHE_HOME").map(|d| PathBuf::from(d).join("margay"));
    let home = || variable("HOME").map(|d| PathBuf::from(d).join(".cache/margay"));
    explicit.or_else(xdg).or_else(home)
}

/// Bound of the folder's size in bytes. A malformed `MARGAY_CACHE_SIZE` is ignored.
pub fn bound() -> u64 {
    variable("MARGAY_CACHE_SIZE").and_then(|v| parse_size(v.to_str()?)).unwrap_or(BOUND)
}

/// Parses a size in bytes such as `300`, `64K`, `64M` or `2G` (powers of 1024).
pub fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let shift = match text.chars().last()?.to_ascii_uppercase() {
        'K' => 10,
        'M' => 20,
        'G' => 30,
        _ => 0,
    };
    let digits = if shift > 0 { &text[..text.len() - 1] } else { text };
    digits.trim_end().parse::<u64>().ok()?.checked_mul(1 << shift)
}

fn name(key: CacheKey, effort: Effort) -> String {
    named(key, ENDINGS[effort as usize])
}

fn named(key: CacheKey, ending: &str) -> String {
    let [a, b] = key.0;
    format!("{a:016x}{b:016x}.{ending}")
}

/// Checksum against files that were truncated or overwritten.
fn check(bytes: &[u8]) -> u64 {
    let mut h = DefaultHasher::new();
    bytes.hash(&mut h);
    h.finish()
}

/// Looks up the result of an earlier compilation and marks it as used.
pub(crate) fn find(key: CacheKey, effort: Effort) -> Option<Entry> {
    let path = folder()?.join(name(key, effort));
    let bytes = fs::read(&path).ok()?;
    let (sum, rest) = bytes.strip_prefix(MAGIC.as_slice())?.split_first_chunk::<8>()?;
    if u64::from_le_bytes(*sum) != check(rest) {
        return None;
    }
    let (length, rest) = rest.split_first_chunk::<8>()?;
    let (facts, object) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    let entry = Entry { facts: facts.to_vec(), object: object.to_vec() };
    let now = SystemTime::now();
    let used = fs::metadata(&path).and_then(|m| m.modified()).ok()?;
    if now.duration_since(used).is_ok_and(|age| age > FRESH)
        && let Ok(file) = fs::File::options().append(true).open(&path)
    {
        let _ = file.set_modified(now);
    }
    Some(entry)
}

/// Notes that a process has run for so long without this code. Whether there is a note is all that counts, so several processes may write it
/// at once; it goes when the code is stored.
pub(crate) fn note_demand(key: CacheKey, effort: Effort, spent: Duration) {
    let Some(folder) = folder() else { return };
    let note = folder.join(named(key, DEMAND));
    if fs::create_dir_all(&folder).is_ok() && !folder.join(name(key, effort)).exists() {
        let _ = fs::write(note, format!("{} us\n", spent.as_micros()));
    }
}

/// Whether there is such a note.
pub(crate) fn has_demand(key: CacheKey) -> bool {
    folder().is_some_and(|folder| folder.join(named(key, DEMAND)).exists())
}

/// Claims a compilation among the processes that share the cache.
pub(crate) fn claim(key: CacheKey, effort: Effort) -> Claim {
    let Some(folder) = folder() else { return Claim::none(false) };
    if fs::create_dir_all(&folder).is_err() {
        return Claim::none(false);
    }
    let name = name(key, effort);
    Claim::new(folder.join(format!("{TEMPORARY}{name}")), &folder.join(name), effort)
}

/// Stores the result of a compilation.
pub(crate) fn store(key: CacheKey, effort: Effort, facts: &[u8], object: &[u8]) {
    let Some(folder) = folder() else { return };
    if fs::create_dir_all(&folder).is_err() {
        return;
    }
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let unique = format!("{TEMPORARY}{}.{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
    let temporary = folder.join(unique);
    let rest = [(facts.len() as u64).to_le_bytes().as_slice(), facts, object].concat();
    let bytes = [MAGIC.as_slice(), &check(&rest).to_le_bytes(), &rest].concat();
    if fs::write(&temporary, &bytes).is_err() || fs::rename(&temporary, folder.join(name(key, effort))).is_err() {
        let _ = fs::remove_file(&temporary);
        return;
    }
    let _ = fs::remove_file(folder.join(named(key, DEMAND)));
    // Listing the folder takes time: trim at this process's first write, and each time a sixteenth of the bound has
    // been written.
    static WRITTEN: AtomicU64 = AtomicU64::new(u64::MAX);
    let bound = bound();
    let written = WRITTEN.load(Relaxed).saturating_add(bytes.len() as u64);
    if written > bound / 16 {
        WRITTEN.store(0, Relaxed);
        trim(&folder, bound);
    } else {
        WRITTEN.store(written, Relaxed);
    }
}

/// The cache files in a folder, least recently used first. Other files in the folder are never listed, and so never
/// removed.
pub fn files(folder: &Path) -> Vec<File> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let file = |entry: fs::DirEntry| {
        let name = entry.file_name();
        let name = name.to_str()?;
        let kind = match name.split_once('.') {
            Some((key, ending)) if key.len() == 32 && key.bytes().all(|b| b.is_ascii_hexdigit()) => {
                let effort = ENDINGS.iter().position(|e| *e == ending).map(|i| [Effort::Light, Effort::Full][i]);
                effort.map(FileKind::Code).or_else(|| (ending == DEMAND).then_some(FileKind::Demand))?
            }
            _ if name.starts_with(TEMPORARY) => FileKind::Temporary,
            _ => return None,
        };
        let metadata = entry.metadata().ok().filter(fs::Metadata::is_file)?;
        Some(File { path: entry.path(), size: metadata.len(), used: metadata.modified().ok()?, kind })
    };
    let mut files: Vec<File> = entries.flatten().filter_map(file).collect();
    files.sort_by(|a, b| (a.used, &a.path).cmp(&(b.used, &b.path)));
    files
}

/// Evicts files until the folder holds at most `bound` bytes, and removes abandoned temporary files and old notes; returns the number
/// of files removed and their bytes. Code that a process has loaded stays usable.
pub fn trim(folder: &Path, bound: u64) -> (usize, u64) {
    let files = files(folder);
    let mut total: u64 = files.iter().map(|f| f.size).sum();
    let (mut count, mut bytes) = (0, 0);
    let now = SystemTime::now();
    for file in files {
        let kept = match file.kind {
            FileKind::Code(_) => Duration::MAX,
            FileKind::Demand => FORGOTTEN,
            FileKind::Temporary => ABANDONED,
        };
        let abandoned = now.duration_since(file.used).is_ok_and(|age| age > kept);
        let surplus = total > bound && (file.kind != FileKind::Temporary || bound == 0);
        // Another process may have removed it first.
        if (abandoned || surplus) && fs::remove_file(&file.path).is_ok() {
            (count, bytes) = (count + 1, bytes + file.size);
            total -= file.size;
        }
    }
    (count, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_parsed() {
        assert_eq!(parse_size("300"), Some(300));
        assert_eq!((parse_size("64k"), parse_size(" 2 G ")), (Some(64 << 10), Some(2 << 30)));
        assert_eq!(
            (parse_size("G"), parse_size(""), parse_size("-1"), parse_size("99999999999G")),
            (None, None, None, None)
        );
    }

    #[test]
    fn only_the_least_recently_used_files_are_evicted() {
        let folder = std::env::temp_dir().join(format!("margay-cache-test-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("lib-of-somebody")).unwrap();
        let put = |name: &str, age: u64| {
            fs::write(folder.join(name), [0; 100]).unwrap();
            let file = fs::File::options().append(true).open(folder.join(name)).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(age)).unwrap();
        };
        let key = |n: u64| name(CacheKey([n, n]), Effort::Light);
        put(&key(1), 300);
        put(&key(2), 100);
        put(&key(3), 200);
        put(&named(CacheKey([4, 4]), DEMAND), 8 * 24 * 3600);
        put("tmp.1.1", 7200);
        put("tmp.1.2", 10);
        put("notes.txt", 9000);
        assert_eq!(files(&folder).len(), 6);
        // 600 bytes: the abandoned file and the old note go in any case, then the least recently used one.
        assert_eq!(trim(&folder, 350), (3, 300));
        let left: Vec<String> =
            files(&folder).iter().map(|f| f.path.file_name().unwrap().to_str().unwrap().to_owned()).collect();
        assert_eq!(left, [key(3), key(2), "tmp.1.2".to_owned()]);
        assert_eq!(trim(&folder, 0), (3, 300));
        assert!(folder.join("notes.txt").is_file() && folder.join("lib-of-somebody").is_dir());
        fs::remove_dir_all(&folder).unwrap();
    }
}
