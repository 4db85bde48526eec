//! How a function becomes visible to C, and what every call passes through: the driver is made ready, errors are remembered.

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

/// Declares functions of the API. `quiet` ones leave the last error alone and need no device.
macro_rules! api {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block)*) => {
        $(
            $(#[$doc])*
            #[allow(unsafe_code, non_snake_case, clippy::too_many_arguments)]
            #[unsafe(no_mangle)]
            pub extern "C" fn $name($($arg: $ty),*) -> u32 {
                $crate::api::enter(stringify!($name), move || -> $crate::error::Outcome {
                    $crate::api::ready()?;
                    $body
                })
            }
        )*
    };
}

/// Declares functions that do the same as one of the driver, with the same arguments.
macro_rules! same {
    ($($name:ident($($arg:ident: $ty:ty),*) = $driver:ident;)*) => {
        $crate::api::api! { $(fn $name($($arg: $ty),*) { $crate::driver::$driver($($arg),*) })* }
    };
}

pub(crate) use {api, same};

thread_local! {
    static LAST: Cell<Code> = const { Cell::new(Code::SUCCESS) };
}

/// The last error of this thread; forgets it if asked.
pub fn last_error(forget: bool) -> Code {
    LAST.with(|last| if forget { last.replace(Code::SUCCESS) } else { last.get() })
}

/// Runs the body of a function and remembers its error. A panic is one.
pub fn enter(name: &'static str, body: impl FnOnce() -> Outcome) -> u32 {
    let outcome = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| {
        eprintln!("margay has a bug: `{name}` panicked; please report it");
        Err(Code::UNKNOWN)
    });
    match outcome {
        Ok(()) => 0,
        Err(code) => {
            if code != Code::NOT_READY {
                LAST.set(code);
            }
            code.number()
        }
    }
}

/// Makes the driver ready, and the primary context current in a thread that has none.
pub fn ready() -> Outcome {
    static READY: OnceLock<Outcome> = OnceLock::new();
    (*READY.get_or_init(|| driver::cuInit(0)))?;
    let mut current = 0usize;
    driver::cuCtxGetCurrent(Ptr::to(&mut current))?;
    if current == 0 {
        primary()?;
    }
    Ok(())
}

/// Makes the primary context current in this thread.
pub fn primary() -> Outcome {
    let mut context = 0usize;
    driver::cuDevicePrimaryCtxRetain(Ptr::to(&mut context), 0)?;
    driver::cuCtxSetCurrent(context)
}
