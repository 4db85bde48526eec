//! The `api!` macro, by which functions are exported to C, and the wrapper around every call.

use crate::code::{Code, Outcome};
use margay::profile::Profile;
use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::OnceLock,
};

/// An exported function, for `cuGetProcAddress`.
#[derive(Clone, Copy)]
pub struct Entry {
    /// Its symbol: `cuMemAlloc_v2`.
    pub name: &'static str,
    /// The CUDA version that introduced it, as `cuGetProcAddress` counts: 11040 for 11.4.
    pub since: i32,
    /// Its address.
    pub address: fn() -> *const (),
}

/// Declares functions of the API: the version that introduced each, its name, arguments, and a body that returns an
/// [`Outcome`]. Defines the C functions, and the list `ENTRIES` of the file. `+ ptsz` or `+ ptds` after the version
/// defines a second function with that suffix, whose default stream is the thread's (`--default-stream per-thread`).
macro_rules! api {
    ($($(#[$doc:meta])* $since:literal $(+ $ending:ident)? fn $name:ident $arguments:tt $body:block)*) => {
        $($crate::api::function! { $(#[$doc])* $name $arguments $body })*

        /// The functions of this file.
        pub const ENTRIES: &[$crate::api::Entry] = &[
            $(
                $crate::api::Entry { name: stringify!($name), since: $since, address: || $name as *const () },
                $(
                    $crate::api::Entry {
                        name: concat!(stringify!($name), "_", stringify!($ending)),
                        since: $since,
                        address: || $crate::api::per_thread!($name $ending $arguments),
                    },
                )?
            )*
        ];
    };
}

/// One function of [`api!`].
macro_rules! function {
    ($(#[$doc:meta])* $name:ident ($($arg:ident: $ty:ty),* $(,)?) $body:block) => {
        $(#[$doc])*
        #[allow(unsafe_code, non_snake_case, clippy::too_many_arguments)]
        #[unsafe(no_mangle)]
        pub extern "C" fn $name($($arg: $ty),*) -> u32 {
            $crate::api::enter(stringify!($name), move || -> $crate::code::Outcome { $body })
        }
    };
}

/// The address of a function's second form, whose default stream is the thread's.
macro_rules! per_thread {
    ($name:ident $ending:ident ($($arg:ident: $ty:ty),* $(,)?)) => {{
        #[allow(unsafe_code, clippy::too_many_arguments)]
        #[unsafe(export_name = concat!(stringify!($name), "_", stringify!($ending)))]
        extern "C" fn per_thread($($arg: $ty),*) -> u32 {
            $crate::api::with_thread_stream(move || $name($($arg),*))
        }
        per_thread as *const ()
    }};
}

pub(crate) use {api, function, per_thread};

thread_local! {
    static THREAD_STREAM: Cell<bool> = const { Cell::new(false) };
}

thread_local! {
    static REASON: Cell<Option<String>> = const { Cell::new(None) };
}

/// Records why the current call is about to fail, for reports of failed calls (`--check api`).
pub fn because(why: impl FnOnce() -> String) {
    if crate::checks::watch::wanted().is_some_and(|what| what.api) {
        let _ = REASON.try_with(|reason| reason.set(Some(why()))); // destroyed while the thread exits
    }
}

/// Whether the default stream of the function that was called is the thread's.
pub fn is_thread_stream() -> bool {
    THREAD_STREAM.get()
}

/// Calls a function with the thread's default stream.
pub fn with_thread_stream(function: impl FnOnce() -> u32) -> u32 {
    let before = THREAD_STREAM.replace(true);
    let number = function();
    THREAD_STREAM.set(before);
    number
}

/// Runs the body of a function: a panic becomes an error, and `MARGAY_LOG=api` logs the call.
pub fn enter(name: &'static str, body: impl FnOnce() -> Outcome) -> u32 {
    let outcome = if crate::work::worker::is_refused(name) {
        because(|| "a host function or callback of a stream must not call the API".to_string());
        Err(Code::NOT_PERMITTED)
    } else {
        crate::checks::order::host::inside(|| catch_unwind(AssertUnwindSafe(body))).unwrap_or_else(|_| {
            eprintln!("margay has a bug: `{name}` panicked; please report it");
            Err(Code::UNKNOWN)
        })
    };
    let code = outcome.err().unwrap_or(Code::SUCCESS);
    let why = REASON.try_with(Cell::take).ok().flatten();
    if code != Code::SUCCESS {
        crate::checks::watch::failed(name, code, why);
        if code != Code::NOT_READY {
            crate::process::logs::deliver();
        }
    }
    if logged() {
        eprintln!("margay: {name} = {}", code.name());
    }
    code.number()
}

/// Whether an environment variable contains a word in its comma-separated list.
pub fn asked(variable: &str, wanted: &str) -> bool {
    std::env::var(variable).is_ok_and(|words| words.split(',').any(|word| word == wanted))
}

/// Environment variables with lists of words, and the words allowed.
const WORDS: [(&str, &[&str]); 1] = [("MARGAY_LOG", &["api", "quiet"])];

/// Rejects environment variables with unknown words.
pub fn check_environment() -> Result<(), String> {
    for (variable, known) in WORDS {
        let set = std::env::var(variable).unwrap_or_default();
        let unknown = set.split(',').map(str::trim).find(|word| !word.is_empty() && !known.contains(word));
        if let Some(word) = unknown {
            return Err(format!("{variable}: unknown value `{word}`; expected one of {}", known.join(", ")));
        }
    }
    crate::checks::watch::check_environment()?;
    let engine = std::env::var("MARGAY_ENGINE").unwrap_or_default();
    let engines = margay::engines();
    if !engine.is_empty() && engines.iter().all(|e| e.name() != engine) {
        let names: Vec<&str> = engines.iter().map(|e| e.name()).collect();
        return Err(format!("MARGAY_ENGINE: unknown engine `{engine}`; expected one of {}", names.join(", ")));
    }
    Profile::from_environment().map(drop).map_err(|e| e.to_string())
}

/// Whether calls are logged.
pub fn logged() -> bool {
    static LOGGED: OnceLock<bool> = OnceLock::new();
    *LOGGED.get_or_init(|| asked("MARGAY_LOG", "api"))
}

/// Reports an error on standard error, since the API returns a mere number. `MARGAY_LOG=quiet` silences it.
pub fn report_error(message: &str) {
    report_as("error", message);
}

/// The same with a word for machines ([`crate::process::reports`]): `fault`, `finding` or `error`.
pub fn report_as(kind: &str, message: &str) {
    record_as(kind, message);
    if !asked("MARGAY_LOG", "quiet") {
        eprintln!("{}", message.trim_end());
    }
}

/// The same without printing it.
pub fn record_as(kind: &str, message: &str) {
    crate::process::reports::note(kind, message);
    crate::process::logs::log(message);
}

/// Prints a message that is not an error.
pub fn say(message: &str) {
    if !asked("MARGAY_LOG", "quiet") {
        eprintln!("{message}");
    }
}
