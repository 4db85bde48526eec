//! Error logs (CUDA Driver API, "Error Log Management Functions"): the messages that margay prints to standard error, for programs that
//! show them with their own errors, as PyTorch does.

use crate::{
    api::api,
    code::{Code, Outcome},
    raw::{LogCallback, Out, Text, UserData},
};
use parking_lot::{Mutex, MutexGuard};
use std::{
    collections::{BTreeMap, VecDeque},
    ffi::c_char,
    fs,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

/// The documented size of the log in bytes.
const LIMIT: usize = 25_600;
/// Messages that wait for a call that fails.
const MAX_PENDING: usize = 64;
/// The first line if older messages are missing.
const TRUNCATED: &str = "margay: older messages were dropped\n";

#[derive(Default)]
struct Logs {
    callbacks: BTreeMap<usize, (LogCallback, UserData)>,
    /// The latest handle of a callback.
    handle: usize,
    /// The newest messages, each with a newline at its end.
    messages: VecDeque<String>,
    /// Number of messages that were dropped before them.
    dropped: u32,
    /// Messages that callbacks have not seen yet.
    pending: VecDeque<String>,
    /// Whether the process is exiting: data that a callback uses may be gone.
    closed: bool,
}

fn logs() -> MutexGuard<'static, Logs> {
    static LOGS: Mutex<Logs> = Mutex::new(Logs {
        callbacks: BTreeMap::new(),
        handle: 0,
        messages: VecDeque::new(),
        dropped: 0,
        pending: VecDeque::new(),
        closed: false,
    });
    LOGS.lock()
}

/// Whether there are pending messages.
static PENDING: AtomicBool = AtomicBool::new(false);

/// Stores a message. Callbacks get it with the error that the program gets ([`deliver`]): programs relate messages to the call that fails,
/// in its thread, while a kernel's fault may precede that call, in whichever thread ran the launch.
pub fn log(message: &str) {
    let message = message.trim_end();
    let mut logs = logs();
    logs.messages.push_back(format!("{message}\n"));
    let mut size: usize = logs.messages.iter().map(String::len).sum();
    while size > LIMIT && logs.messages.len() > 1 {
        size -= logs.messages.pop_front().map_or(0, |m| m.len());
        logs.dropped += 1;
    }
    if logs.callbacks.is_empty() || logs.closed {
        return;
    }
    if logs.pending.len() == MAX_PENDING {
        logs.pending.pop_front();
    }
    logs.pending.push_back(message.into());
    PENDING.store(true, Relaxed);
}

/// Passes pending messages to the callbacks, in the thread of a call that fails.
pub fn deliver() {
    if !PENDING.swap(false, Relaxed) {
        return;
    }
    let (messages, callbacks): (_, Vec<_>) = {
        let mut logs = logs();
        let callbacks = if logs.closed { Vec::new() } else { logs.callbacks.values().copied().collect() };
        (std::mem::take(&mut logs.pending), callbacks)
    };
    // Without the lock: a callback may call the driver.
    for message in messages {
        callbacks.iter().for_each(|(callback, data)| callback.call(*data, &message));
    }
}

/// Calls no callback from now on.
pub fn close() {
    logs().closed = true;
}

/// The messages from an iterator on, or all of them, in at most `room` bytes; advances the iterator. `None` if none of them fits.
fn dump(iterator: Out<u32>, room: usize) -> Result<Option<String>, Code> {
    let logs = logs();
    let from = if iterator.is_null() { logs.dropped } else { iterator.get()? };
    iterator.offer(logs.dropped + logs.messages.len() as u32);
    let skipped = from.saturating_sub(logs.dropped) as usize;
    let wanted: Vec<&str> = logs.messages.iter().skip(skipped).map(String::as_str).collect();
    let fits = |count: usize| {
        let text = wanted[wanted.len() - count..].concat();
        let all = count == wanted.len() && (from >= logs.dropped || iterator.is_null());
        let text = if all { text } else { TRUNCATED.to_string() + &text };
        (text.len() <= room).then_some(text)
    };
    Ok(match wanted.len() {
        0 => Some(String::new()),
        most => (1..=most).rev().find_map(fits),
    })
}

fn no_flags(flags: u32) -> Outcome {
    if flags == 0 { Ok(()) } else { Err(Code::INVALID_VALUE) }
}

api! {
    /// Of margay's own: the runtime API has refused a call itself. Its name, the name and the meaning of the error, and why.
    0 fn margayRuntimeFailed(function: Text, error: Text, meaning: Text, why: Text) {
        crate::checks::watch::runtime_failed(&function.text()?, (&error.text()?, &meaning.text()?), why.text()?);
        Ok(())
    }
    12090 fn cuLogsRegisterCallback(callback: LogCallback, data: UserData, handle: Out<usize>) {
        callback.check()?;
        let mut logs = logs();
        logs.handle += 1;
        let number = logs.handle;
        logs.callbacks.insert(number, (callback, data));
        handle.offer(number);
        Ok(())
    }
    12090 fn cuLogsUnregisterCallback(handle: usize) {
        logs().callbacks.remove(&handle).map(drop).ok_or(Code::INVALID_VALUE)
    }
    12090 fn cuLogsCurrent(iterator: Out<u32>, flags: u32) {
        no_flags(flags)?;
        let logs = logs();
        iterator.set(logs.dropped + logs.messages.len() as u32)
    }
    12090 fn cuLogsDumpToFile(iterator: Out<u32>, path: Text, flags: u32) {
        no_flags(flags)?;
        let path = path.text()?;
        let text = dump(iterator, usize::MAX)?.unwrap_or_default();
        fs::write(path, text).map_err(|_| Code::INVALID_VALUE)
    }
    12090 fn cuLogsDumpToMemory(iterator: Out<u32>, buffer: Out<c_char>, size: Out<usize>, flags: u32) {
        no_flags(flags)?;
        let room = size.get()?;
        let text = dump(iterator, room.saturating_sub(1))?;
        size.set(text.as_ref().map_or(0, String::len))?;
        match text {
            Some(text) if !text.is_empty() => buffer.set_text(&text, room),
            Some(_) => Ok(()),
            None => Err(Code::INVALID_VALUE),
        }
    }
}
