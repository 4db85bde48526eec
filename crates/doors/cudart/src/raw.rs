//! Pointers passed by programs. Most are only forwarded; the few that this library dereferences itself go through these
//! functions.
#![allow(unsafe_code)]

use crate::error::{Code, Outcome};
use bytemuck::{AnyBitPattern, Zeroable};
use std::ffi::{CStr, c_void};

/// A pointer to a result or an argument.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ptr(*mut c_void);

// SAFETY: any bits are a valid raw pointer; it is dereferenced only under the C caller's guarantee.
unsafe impl Zeroable for Ptr {}
// SAFETY: as above.
unsafe impl AnyBitPattern for Ptr {}

impl Ptr {
    /// The null pointer.
    pub const NULL: Ptr = Ptr(std::ptr::null_mut());

    /// A pointer to a variable of our own, valid while it lives.
    pub fn to<T>(place: &mut T) -> Ptr {
        Ptr(std::ptr::from_mut(place).cast())
    }

    /// A read-only pointer to a variable of our own, valid while it lives.
    pub fn of<T: ?Sized>(place: &T) -> Ptr {
        Ptr(std::ptr::from_ref(place).cast_mut().cast())
    }

    /// The address as a number.
    pub fn number(self) -> u64 {
        self.0.expose_provenance() as u64
    }

    /// The pointer with this address.
    pub fn at(address: u64) -> Ptr {
        Ptr(std::ptr::with_exposed_provenance_mut(address as usize))
    }

    /// Whether the pointer is null.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Reads a value at an offset in bytes; [`Code::INVALID_VALUE`] for null.
    pub fn read<T: AnyBitPattern>(self, offset: usize) -> Result<T, Code> {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the C caller guarantees a structure of that layout, and any bits are a valid `T`.
        Ok(unsafe { self.0.byte_add(offset).cast::<T>().read_unaligned() })
    }

    /// Writes a value at an offset in bytes; [`Code::INVALID_VALUE`] for null.
    pub fn write<T: Copy>(self, offset: usize, value: T) -> Outcome {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the C caller guarantees room for a structure of that layout.
        unsafe { self.0.byte_add(offset).cast::<T>().write_unaligned(value) };
        Ok(())
    }

    /// The NUL-terminated string at the address.
    pub fn text(self) -> Result<String, Code> {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the C caller guarantees a NUL-terminated string.
        Ok(unsafe { CStr::from_ptr(self.0.cast()) }.to_string_lossy().into_owned())
    }
}
