//! Support for the exit of a Python process. Before Python 3.14, a thread that requests the interpreter lock during finalization is
//! ended by `pthread_exit`, which terminates the process if it unwinds through a `noexcept` function of C++
//! (<https://docs.python.org/3.14/c-api/init.html#cautions-regarding-runtime-finalization>).

use crate::{
    api::function,
    raw::{In, Out},
};
use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

/// Time between two samples, and how many consecutive samples must find all threads asleep.
const EVERY: Duration = Duration::from_millis(1);
const SAMPLES: u32 = 3;

function! {
    /// Waits until all threads of the process except the caller, margay's own and the `count` listed thread ids are asleep, for at most
    /// `limit` milliseconds. Writes 1 if they are, else 0.
    margayAwaitThreads(limit: u32, except: In<u32>, count: usize, quiet: Out<u32>) {
        let except = except.list(count)?;
        let (begin, limit) = (Instant::now(), Duration::from_millis(limit.into()));
        let mut asleep = 0;
        while asleep < SAMPLES && begin.elapsed() < limit {
            std::thread::sleep(EVERY);
            asleep = if busy(&except) { 0 } else { asleep + 1 };
        }
        quiet.offer(u32::from(asleep == SAMPLES));
        Ok(())
    }
}

function! {
    /// Never returns.
    margayRest() {
        loop {
            std::thread::park();
        }
    }
}

/// Whether another thread is running, ready to run, or waiting for a disk (proc_pid_stat(5)).
fn busy(except: &[u32]) -> bool {
    let own = fs::read_link("/proc/thread-self").ok();
    let own = own.as_deref().and_then(Path::file_name).map(ToOwned::to_owned);
    let Ok(threads) = fs::read_dir("/proc/self/task") else { return false };
    threads.flatten().any(|thread| {
        let name = thread.file_name();
        let number = name.to_str().and_then(|n| n.parse().ok());
        let counts = Some(&name) != own.as_ref() && number.is_some_and(|n| !except.contains(&n));
        counts && fs::read_to_string(thread.path().join("stat")).is_ok_and(|stat| is_busy(&stat))
    })
}

/// Parses a line of `/proc/PID/task/TID/stat`: number, name in parentheses, state.
fn is_busy(stat: &str) -> bool {
    let Some((name, rest)) = stat.rsplit_once(") ") else { return false };
    let own = name.split_once('(').is_some_and(|(_, name)| name.starts_with("margay-"));
    !own && rest.starts_with(['R', 'D'])
}

#[cfg(test)]
mod tests {
    use super::is_busy;

    #[test]
    fn the_state_follows_the_name() {
        assert!(is_busy("12 (python3) R 1 2 3"));
        assert!(is_busy("12 (a) S (b) D 1 2 3"));
        assert!(!is_busy("12 (pt_autograd_0) S 1 2 3"));
        assert!(!is_busy("12 (margay-0) R 1 2 3"));
        assert!(!is_busy(""));
    }
}
