//! The macros by which functions are exported to C, and the wrapper around every call, which initializes the driver and
//! records errors.

use crate::{
    driver,
    error::{Code, Outcome},
    raw::Ptr,
};
use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::OnceLock,
};

/// Declares functions of the API. A leading attribute such as `#[cfg(cuda13)]` says which releases have that form. `+
/// ptsz` or `+ ptds` before the `fn` defines a second function with that suffix, whose default stream is the thread's
/// (`--default-stream per-thread`).
macro_rules! api {
    ($($(#[$doc:meta])* $(+ $ending:ident)? fn $name:ident $arguments:tt $body:block)*) => {
        $(
            $crate::api::function! { $(#[$doc])* [$($ending)?] $name $arguments $body }
        )*
    };
}

/// One function of [`api!`], with its second form if it has one.
macro_rules! function {
    ($(#[$doc:meta])* [$ending:ident] $name:ident $arguments:tt $body:block) => {
        $crate::api::function! { $(#[$doc])* [] $name $arguments $body }
        $crate::api::per_thread! { $(#[$doc])* $name $ending $arguments }
    };
    ($(#[$doc:meta])* [] $name:ident ($($arg:ident: $ty:ty),* $(,)?) $body:block) => {
        $(#[$doc])*
        #[allow(unsafe_code, non_snake_case, clippy::too_many_arguments)]
        #[unsafe(no_mangle)]
        pub extern "C" fn $name($($arg: $ty),*) -> u32 {
            $crate::api::enter(stringify!($name), move || -> $crate::error::Outcome {
                $crate::api::ready()?;
                $body
            })
        }
    };
}

/// The second form of a function.
macro_rules! per_thread {
    ($(#[$doc:meta])* $name:ident $ending:ident ($($arg:ident: $ty:ty),* $(,)?)) => {
        $(#[$doc])*
        const _: () = {
            #[allow(unsafe_code, clippy::too_many_arguments)]
            #[unsafe(export_name = concat!(stringify!($name), "_", stringify!($ending)))]
            extern "C" fn per_thread($($arg: $ty),*) -> u32 {
                $crate::api::with_thread_stream(move || $name($($arg),*))
            }
        };
    };
}

/// Declares functions that forward to a driver function with the same arguments.
macro_rules! same {
    ($($(#[$doc:meta])* $(+ $ending:ident)? $name:ident($($arg:ident: $ty:ty),*) = $driver:ident;)*) => {
        $crate::api::api! {
            $($(#[$doc])* $(+ $ending)? fn $name($($arg: $ty),*) { $crate::driver::$driver($($arg),*) })*
        }
    };
}

pub(crate) use {api, function, per_thread, same};

thread_local! {
    static LAST: Cell<Code> = const { Cell::new(Code::SUCCESS) };
    static THREAD_STREAM: Cell<bool> = const { Cell::new(false) };
    /// The last error of a call of the driver since the current call began: the driver has reported it.
    static DRIVER_ERROR: Cell<Code> = const { Cell::new(Code::SUCCESS) };
    /// Why the current call is about to fail.
    static REASON: Cell<Option<String>> = const { Cell::new(None) };
}

/// A call of the driver has failed. The driver itself reports it if failing calls are checked (`--check api`).
pub fn driver_failed(code: Code) {
    DRIVER_ERROR.set(code);
}

/// Records why the current call is about to fail, for reports of failing calls.
pub fn because(why: impl FnOnce() -> String) {
    static WANTED: OnceLock<bool> = OnceLock::new();
    if *WANTED.get_or_init(|| std::env::var_os("MARGAY_CHECK").is_some()) {
        let _ = REASON.try_with(|reason| reason.set(Some(why()))); // destroyed while the thread exits
    }
}

/// Lets the driver report an error that is not its own.
fn report_to_driver(name: &'static str, code: Code) {
    let why = REASON.try_with(Cell::take).ok().flatten().unwrap_or_default();
    if DRIVER_ERROR.get() == code || code == Code::NOT_READY || code.is_sticky() {
        return;
    }
    let (error, meaning) = Code::words(code.number());
    let [function, why] = [name, &why].map(|text| format!("{text}\0"));
    let [function, error, meaning, why] = [&function, error, meaning, &why].map(Ptr::of);
    let _ = driver::margayRuntimeFailed(function, error, meaning, why); // an error that cannot be reported is still returned
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

/// The last error of this thread; resets it if `forget`. The error of a context whose kernel failed stays as long as the context
/// ("any further CUDA work will return the same error").
pub fn last_error(forget: bool) -> Code {
    let last = LAST.get();
    if forget {
        LAST.set(if last.is_sticky() { context_error() } else { Code::SUCCESS });
    }
    last
}

/// The error of the thread's context.
fn context_error() -> Code {
    let mut unused = 0u32;
    match driver::cuCtxGetCacheConfig(Ptr::to(&mut unused)) {
        Err(code) if code.is_sticky() => code,
        _ => Code::SUCCESS,
    }
}

/// Runs the body of a function and records its error. A panic counts as an error.
pub fn enter(name: &'static str, body: impl FnOnce() -> Outcome) -> u32 {
    DRIVER_ERROR.set(Code::SUCCESS);
    let outcome = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| {
        eprintln!("margay has a bug: `{name}` panicked; please report it");
        Err(Code::UNKNOWN)
    });
    match outcome {
        Ok(()) => 0,
        Err(code) => {
            report_to_driver(name, code);
            // "Not considered an error and therefore not reported" (CUDA C++ Programming Guide, "Error Checking").
            if code != Code::NOT_READY {
                LAST.set(code);
            }
            code.number()
        }
    }
}

/// Initializes the driver, and makes the primary context current in a thread without a context.
pub fn ready() -> Outcome {
    static READY: OnceLock<Outcome> = OnceLock::new();
    (*READY.get_or_init(|| driver::cuInit(0)))?;
    let mut current = 0usize;
    driver::cuCtxGetCurrent(Ptr::to(&mut current))?;
    if current == 0 {
        primary(0)?;
    }
    Ok(())
}

/// Makes the primary context of a device current in this thread.
pub fn primary(device: i32) -> Outcome {
    let mut context = 0usize;
    driver::cuDevicePrimaryCtxRetain(Ptr::to(&mut context), device)?;
    driver::cuCtxSetCurrent(context)
}

/// The device of the thread's current context; device 0 if there is none.
pub fn current_device() -> i32 {
    let mut device = 0i32;
    match driver::cuCtxGetDevice(Ptr::to(&mut device)) {
        Ok(()) => device,
        Err(_) => 0,
    }
}
