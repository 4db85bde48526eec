//! Pointers passed by programs.
#![allow(unsafe_code)]

use crate::code::{Code, Outcome};
use std::ffi::{CStr, c_char};

/// A pointer to a result; it may be null.
#[repr(transparent)]
pub struct Out<T>(*mut T);

impl<T: Copy> Out<T> {
    /// Writes the result; [`Code::INVALID_ARGUMENT`] for null.
    pub fn set(&self, value: T) -> Outcome {
        self.set_nth(0, value)
    }

    /// Writes an element of an array of results.
    pub fn set_nth(&self, index: usize, value: T) -> Outcome {
        if self.0.is_null() {
            return Err(Code::INVALID_ARGUMENT);
        }
        // SAFETY: the C caller guarantees room for the results; alignment is not assumed.
        unsafe { self.0.add(index).write_unaligned(value) };
        Ok(())
    }

    /// The pointer to the first member of a structure, such as its version.
    pub fn first<U>(&self) -> Out<U> {
        Out(self.0.cast())
    }

    /// Whether the pointer is null.
    pub fn is_null(&self) -> bool {
        self.0.is_null()
    }
}

impl Out<u32> {
    /// Reads the number that the caller put there.
    pub fn get(&self) -> Result<u32, Code> {
        if self.0.is_null() {
            return Err(Code::INVALID_ARGUMENT);
        }
        // SAFETY: the C caller guarantees a number at the address; alignment is not assumed.
        Ok(unsafe { self.0.read_unaligned() })
    }
}

impl Out<c_char> {
    /// Writes a string into a buffer of `len` bytes.
    pub fn set_text(&self, text: &str, len: u32) -> Outcome {
        if text.len() >= len as usize {
            return Err(Code::INSUFFICIENT_SIZE);
        }
        text.bytes().chain([0]).enumerate().try_for_each(|(i, byte)| self.set_nth(i, byte as c_char))
    }
}

/// A string argument; it may be null.
#[repr(transparent)]
pub struct Text(*const c_char);

impl Text {
    /// The string; [`Code::INVALID_ARGUMENT`] for null.
    pub fn text(&self) -> Result<String, Code> {
        if self.0.is_null() {
            return Err(Code::INVALID_ARGUMENT);
        }
        // SAFETY: the C caller guarantees a NUL-terminated string.
        Ok(unsafe { CStr::from_ptr(self.0) }.to_string_lossy().into_owned())
    }
}
