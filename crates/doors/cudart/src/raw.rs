//! Addresses that programs hand us. Most are only passed on; the few that this library reads and writes itself go through the
//! functions here.
#![allow(unsafe_code)]

use crate::error::{Code, Outcome};
use bytemuck::{AnyBitPattern, Zeroable};
use std::ffi::{CStr, c_void};

/// An address of the program: where a result goes, or what is read.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ptr(*mut c_void);

// SAFETY: addresses that programs give may be any: what is read through them is the caller's promise.
unsafe impl Zeroable for Ptr {}
// SAFETY: as above.
unsafe impl AnyBitPattern for Ptr {}

impl Ptr {
    /// None.
    pub const NULL: Ptr = Ptr(std::ptr::null_mut());

    /// A place of our own, while it lives.
    pub fn to<T>(place: &mut T) -> Ptr {
        Ptr(std::ptr::from_mut(place).cast())
    }

    /// Something of our own to be read, while it lives.
    pub fn of<T: ?Sized>(place: &T) -> Ptr {
        Ptr(std::ptr::from_ref(place).cast_mut().cast())
    }

    /// The address as a number.
    pub fn number(self) -> u64 {
        self.0.expose_provenance() as u64
    }

    /// The memory at an address that is known as a number.
    pub fn at(address: u64) -> Ptr {
        Ptr(std::ptr::with_exposed_provenance_mut(address as usize))
    }

    /// Whether there is none.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Reads a plain value at an offset; [`Code::INVALID_VALUE`] for null.
    pub fn read<T: AnyBitPattern>(self, offset: usize) -> Result<T, Code> {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the caller of the C function promises a structure of that layout, and any bits are a `T`.
        Ok(unsafe { self.0.byte_add(offset).cast::<T>().read_unaligned() })
    }

    /// Writes a plain value at an offset; [`Code::INVALID_VALUE`] for null.
    pub fn write<T: Copy>(self, offset: usize, value: T) -> Outcome {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the caller of the C function promises room for a structure of that layout.
        unsafe { self.0.byte_add(offset).cast::<T>().write_unaligned(value) };
        Ok(())
    }

    /// The string there.
    pub fn text(self) -> Result<String, Code> {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the caller promises a string that ends with a zero.
        Ok(unsafe { CStr::from_ptr(self.0.cast()) }.to_string_lossy().into_owned())
    }
}
