//! How a function becomes visible to C: the `api!` list, and what every call passes through.

use crate::code::{Code, Outcome};
use margay::profile::Profile;
use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::OnceLock,
};

/// A function of the API, as `cuGetProcAddress` finds it.
#[derive(Clone, Copy)]
pub struct Entry {
    /// Its name in the library: `cuMemAlloc_v2`.
    pub name: &'static str,
    /// The CUDA version that brought it, as `cuGetProcAddress` counts: 11040 for 11.4.
    pub since: i32,
    /// Its address.
    pub address: fn() -> *const (),
}

/// Declares functions of the API: the version that brought each, its name and arguments, and a body that yields an
/// [`Outcome`]. Makes the C functions, and the list `ENTRIES` of the file. `+ ptsz` or `+ ptds` behind the version makes a second
/// function of that ending, to which the default stream is the thread's (`--default-stream per-thread`).
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

/// The address of a function's second form, for which the default stream is the thread's.
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

/// Whether the default stream is the thread's to the function that was called.
pub fn is_thread_stream() -> bool {
    THREAD_STREAM.get()
}

/// Calls a function to which the default stream is the thread's.
pub fn with_thread_stream(function: impl FnOnce() -> u32) -> u32 {
    let before = THREAD_STREAM.replace(true);
    let number = function();
    THREAD_STREAM.set(before);
    number
}

/// Runs the body of a function: a panic ends in an error, and `MARGAY_LOG=api` shows every call.
pub fn enter(name: &'static str, body: impl FnOnce() -> Outcome) -> u32 {
    let outcome = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| {
        eprintln!("margay has a bug: `{name}` panicked; please report it");
        Err(Code::UNKNOWN)
    });
    let code = outcome.err().unwrap_or(Code::SUCCESS);
    if logged() {
        eprintln!("margay: {name} = {}", code.name());
    }
    code.number()
}

/// Whether a variable of the environment names something in its list of words.
pub fn asked(variable: &str, wanted: &str) -> bool {
    std::env::var(variable).is_ok_and(|words| words.split(',').any(|word| word == wanted))
}

/// Variables of the environment that hold words, and the words that there are.
const WORDS: [(&str, &[&str]); 2] =
    [("MARGAY_CHECK", &["bounds", "memory", "races", "init", "sync", "all"]), ("MARGAY_LOG", &["api", "quiet"])];

/// Complains about variables of the environment that say what nobody understands.
pub fn check_environment() -> Result<(), String> {
    for (variable, known) in WORDS {
        let set = std::env::var(variable).unwrap_or_default();
        let unknown = set.split(',').map(str::trim).find(|word| !word.is_empty() && !known.contains(word));
        if let Some(word) = unknown {
            return Err(format!("{variable}: there is no `{word}`; there is {}", known.join(", ")));
        }
    }
    let engine = std::env::var("MARGAY_ENGINE").unwrap_or_default();
    let engines = margay::engines();
    if !engine.is_empty() && engines.iter().all(|e| e.name() != engine) {
        let names: Vec<&str> = engines.iter().map(|e| e.name()).collect();
        return Err(format!("MARGAY_ENGINE: there is no `{engine}`; there is {}", names.join(", ")));
    }
    Profile::from_environment().map(drop).map_err(|e| e.to_string())
}

/// Whether the environment asks for a log of calls.
pub fn logged() -> bool {
    static LOGGED: OnceLock<bool> = OnceLock::new();
    *LOGGED.get_or_init(|| asked("MARGAY_LOG", "api"))
}

/// Tells people what went wrong, where a number is all that the API lets through. `MARGAY_LOG=quiet` silences it.
pub fn tell(message: &str) {
    tell_as("error", message);
}

/// The same with a word for machines ([`crate::reports`]): `fault`, `finding` or `error`.
pub fn tell_as(kind: &str, message: &str) {
    crate::reports::note(kind, message);
    if !asked("MARGAY_LOG", "quiet") {
        eprintln!("{}", message.trim_end());
    }
}
