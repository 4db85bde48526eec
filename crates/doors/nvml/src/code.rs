//! `nvmlReturn_t`.

use std::ffi::CStr;

/// An error code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Code(pub u32);

/// The outcome of a function.
pub type Outcome = Result<(), Code>;

impl Code {
    pub const UNINITIALIZED: Code = Code(1);
    pub const INVALID_ARGUMENT: Code = Code(2);
    pub const NOT_SUPPORTED: Code = Code(3);
    pub const NOT_FOUND: Code = Code(6);
    pub const INSUFFICIENT_SIZE: Code = Code(7);
    pub const DRIVER_NOT_LOADED: Code = Code(9);
    pub const ARGUMENT_VERSION_MISMATCH: Code = Code(25);

    /// What `nvmlErrorString` says of a number.
    pub fn text(number: u32) -> &'static CStr {
        match number {
            0 => c"Success",
            1 => c"Uninitialized",
            2 => c"Invalid Argument",
            3 => c"Not Supported",
            6 => c"Not Found",
            7 => c"Insufficient Size",
            9 => c"Driver Not Loaded",
            25 => c"Argument Version Mismatch",
            _ => c"Unknown Error",
        }
    }
}
