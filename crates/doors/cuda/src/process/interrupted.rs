//! Signals that end the process before its exit handlers run, such as those of `timeout` and Ctrl-C: the account of the process is
//! written first. The handlers only write to a pipe, which a thread reads; the process then ends by the same signal.

use std::{
    io::{self, Read},
    os::fd::IntoRawFd,
    sync::{Once, mpsc},
    thread,
    time::Duration,
};

/// Signals that are meant for a process and end it by default: `timeout` and `kill`, Ctrl-C, `abort` (an uncaught C++ exception).
const SIGNALS: [i32; 3] = [libc::SIGTERM, libc::SIGINT, libc::SIGABRT];
/// How long the summary may take.
const LIMIT: Duration = Duration::from_millis(1500);

/// From now on, calls a function with the signal's name before one of the signals ends the process. Only the first call has an effect.
pub fn before_termination(report: fn(&'static str)) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Without a pipe or a thread, signals end the process as they always do.
        let Ok((mut reader, writer)) = io::pipe() else { return };
        let waits = move || {
            let mut signal = [0];
            if reader.read_exact(&mut signal).is_ok() {
                let signal = i32::from(signal[0]);
                let (done, ended) = mpsc::channel();
                let summarize = move || {
                    report(name(signal));
                    let _ = done.send(());
                };
                if thread::Builder::new().name("margay-summary".into()).spawn(summarize).is_ok() {
                    let _ = ended.recv_timeout(LIMIT);
                }
                crate::raw::end_by(signal);
            }
        };
        if thread::Builder::new().name("margay-signals".into()).spawn(waits).is_ok() {
            let pipe = writer.into_raw_fd();
            SIGNALS.iter().for_each(|signal| crate::raw::note_signal(*signal, pipe));
        }
    });
}

fn name(signal: i32) -> &'static str {
    match signal {
        libc::SIGTERM => "SIGTERM",
        libc::SIGINT => "SIGINT",
        _ => "SIGABRT",
    }
}
