//! Claims: if several processes need the same code at the same time, one of them compiles it and the others wait.
//!
//! A claim is a file in the cache folder that holds the ID of its process. It is not a lock: a process that has waited long enough, or finds
//! that the claiming process has ended, compiles too, and the result is the same.

use margay_exec::Effort;
use std::{
    fs,
    io::{ErrorKind, Write},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// How long to wait for the claim of another process, by effort: somewhat longer than most compilations take.
const LONGEST_WAIT: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(6)];
/// Time between two looks at the claim.
const PAUSE: Duration = Duration::from_millis(4);

/// A compilation that this process has claimed, or that could not be claimed. The claim ends with this value.
pub(crate) struct Claim {
    file: Option<PathBuf>,
    /// Another process had the claim: what it has compiled may be in the cache.
    pub waited: bool,
}

impl Claim {
    /// Compiles without a claim.
    pub fn none(waited: bool) -> Claim {
        Claim { file: None, waited }
    }

    /// Claims the compilation that will leave a file `result`; waits while another process has the claim `file`.
    pub fn new(file: PathBuf, result: &Path, effort: Effort) -> Claim {
        Claim::within(file, result, LONGEST_WAIT[effort as usize])
    }

    fn within(file: PathBuf, result: &Path, longest: Duration) -> Claim {
        let started = Instant::now();
        let mut waited = false;
        loop {
            match fs::File::options().write(true).create_new(true).open(&file) {
                Ok(mut new) => {
                    let _ = new.write_all(std::process::id().to_string().as_bytes());
                    return Claim { file: Some(file), waited };
                }
                Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
                // No file can be created in the folder.
                Err(_) => return Claim::none(waited),
            }
            if !holds(&file) {
                let _ = fs::remove_file(&file);
            }
            if result.exists() || started.elapsed() >= longest {
                return Claim::none(true);
            }
            waited = true;
            std::thread::sleep(PAUSE);
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            let _ = fs::remove_file(file);
        }
    }
}

/// Whether the process that wrote a claim still runs. A process in another container seems to have ended.
fn holds(file: &Path) -> bool {
    let Ok(text) = fs::read_to_string(file) else { return false };
    // The process has not written its ID yet.
    text.is_empty() || Path::new("/proc").join(text).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_process_claims_and_the_others_wait() {
        let folder = std::env::temp_dir().join(format!("margay-claim-test-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let (file, result) = (folder.join("tmp.a"), folder.join("a"));
        let longest = Duration::from_millis(50);
        let claim = |longest| Claim::within(file.clone(), &result, longest);
        let first = claim(longest);
        assert!(first.file.is_some() && !first.waited);
        // Whoever has waited for long enough continues without a claim, and the claim stays.
        let started = Instant::now();
        let second = claim(longest);
        assert!(second.file.is_none() && second.waited && started.elapsed() >= longest);
        drop(second);
        assert!(file.exists());
        // What the first one leaves ends the wait.
        fs::write(&result, "code").unwrap();
        assert!(claim(Duration::from_secs(60)).waited);
        fs::remove_file(&result).unwrap();
        // So does the end of its claim.
        drop(first);
        assert!(!file.exists());
        // A process that is gone has no claim: no process has this number.
        fs::write(&file, u32::MAX.to_string()).unwrap();
        assert!(claim(Duration::from_secs(60)).file.is_some());
        // A folder that is not there takes none.
        assert!(Claim::within(folder.join("b/c"), &result, longest).file.is_none());
        fs::remove_dir_all(&folder).unwrap();
    }
}
