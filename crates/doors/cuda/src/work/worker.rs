//! What the current thread does for streams: whether it executes their work, and whether it is in a function of the program that such work calls.

use crate::code::{Code, Outcome};
use std::cell::Cell;

thread_local! {
    /// Whether this thread does work of a stream: it must not wait for streams then.
    static AT_WORK: Cell<bool> = const { Cell::new(false) };
    /// Whether this thread is in a host function or callback of a stream.
    static CALLED_BACK: Cell<bool> = const { Cell::new(false) };
}

/// Does a piece of work of a stream.
pub fn at_work<T>(work: impl FnOnce() -> T) -> T {
    let before = AT_WORK.replace(true);
    let done = work();
    AT_WORK.set(before);
    done
}

/// Calls a function of the program on behalf of a stream.
pub fn calling_back<T>(function: impl FnOnce() -> T) -> T {
    let before = CALLED_BACK.replace(true);
    let done = function();
    CALLED_BACK.set(before);
    done
}

/// Whether this thread runs a function of the program on behalf of a stream.
pub fn is_called_back() -> bool {
    CALLED_BACK.get()
}

/// Whether a function of the API is refused because the thread is in a host function or callback of a stream ("Callbacks must not make any
/// CUDA API calls", `cuStreamAddCallback`): those that act on a context. What only asks is answered.
pub fn is_refused(name: &str) -> bool {
    const ACTING: [&str; 7] = ["cuMem", "cuLaunch", "cuStream", "cuEvent", "cuGraph", "cuModule", "cuCtxSynchronize"];
    const ASKING: [&str; 2] = ["cuEventQuery", "cuEventElapsedTime"];
    let starts = |all: &[&str]| all.iter().any(|start| name.starts_with(start));
    CALLED_BACK.get() && starts(&ACTING) && !starts(&ASKING)
}

/// Whether this thread does work of a stream.
pub fn is_at_work() -> bool {
    AT_WORK.get()
}

/// Refuses to wait on behalf of a stream's own work: it may wait for itself.
pub fn not_at_work() -> Outcome {
    if AT_WORK.get() { Err(Code::NOT_PERMITTED) } else { Ok(()) }
}
