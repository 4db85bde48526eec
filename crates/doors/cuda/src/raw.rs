//! Pointers that C programs hand us: the room of this crate in which memory is touched through them.
//!
//! Values of these types come into being only as arguments of the functions that C calls, where the CUDA Driver API's
//! documentation says what they point to, or are read from what such an argument points to; null is checked here. Rust code cannot make
//! one out of thin air, except from an address that a program gave as a number ([`Host::unified`]). What is read is a type that any bits
//! are a value of ([`AnyBitPattern`]).
#![allow(unsafe_code)]

use crate::{
    code::{Code, Outcome},
    handle::Handle,
};
use bytemuck::{AnyBitPattern, Zeroable};
use margay_exec::mem::Block;
use std::{
    ffi::{CStr, c_char, c_int, c_void},
    sync::OnceLock,
};

/// Where a function puts a result.
#[repr(transparent)]
#[derive(Debug)]
pub struct Out<T>(*mut T);

impl<T> Clone for Out<T> {
    fn clone(&self) -> Out<T> {
        *self
    }
}

impl<T> Copy for Out<T> {}

impl<T: Copy> Out<T> {
    /// No place.
    pub fn null() -> Out<T> {
        Out(std::ptr::null_mut())
    }

    /// Writes the result; [`Code::INVALID_VALUE`] for null.
    pub fn set(self, value: T) -> Outcome {
        self.set_nth(0, value)
    }

    /// Writes an element of an array of results.
    pub fn set_nth(self, index: usize, value: T) -> Outcome {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the caller of the C function promises room for the results; alignment is not assumed.
        unsafe { self.0.add(index).write_unaligned(value) };
        Ok(())
    }

    /// Writes the result if it is wanted.
    pub fn offer(self, value: T) {
        if !self.is_null() {
            let _ = self.set(value); // cannot fail: it is not null
        }
    }

    /// Whether the result is not wanted.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }
}

impl<T: AnyBitPattern> Out<T> {
    /// Reads an element of an array that is read and written.
    pub fn nth(self, index: usize) -> Result<T, Code> {
        In(self.0.cast_const()).nth(index)
    }

    /// Reads what stands there, for arguments that are read and written.
    pub fn get(self) -> Result<T, Code> {
        self.nth(0)
    }
}

impl Out<c_char> {
    /// Writes a string with its final zero into a buffer of `len` bytes, cut where it does not fit.
    pub fn set_text(self, text: &str, len: usize) -> Outcome {
        let bytes = text.bytes().filter(|b| *b != 0).take(len.saturating_sub(1)).chain([0]);
        match len {
            0 => Err(Code::INVALID_VALUE),
            _ => bytes.enumerate().try_for_each(|(i, b)| self.set_nth(i, b as c_char)),
        }
    }
}

/// What a function reads: one value, or the first of several.
#[repr(transparent)]
#[derive(Debug)]
pub struct In<T>(*const T);

impl<T> Clone for In<T> {
    fn clone(&self) -> In<T> {
        *self
    }
}

impl<T> Copy for In<T> {}

// SAFETY: addresses that the program gives may be any: what is read through them is the caller's promise.
unsafe impl<T> Zeroable for In<T> {}
// SAFETY: as above.
unsafe impl<T: 'static> AnyBitPattern for In<T> {}
// SAFETY: a handle is a number; none is followed.
unsafe impl<T> Zeroable for Handle<T> {}
// SAFETY: as above.
unsafe impl<T: 'static> AnyBitPattern for Handle<T> {}

impl<T: Copy> In<T> {
    /// Values of our own, for the program, while they live.
    pub fn list_of(values: &[T]) -> In<T> {
        In(values.as_ptr())
    }

    /// No values.
    pub fn null() -> In<T> {
        In(std::ptr::null())
    }
}

impl<T: AnyBitPattern> In<T> {
    /// The value; [`Code::INVALID_VALUE`] for null.
    pub fn get(self) -> Result<T, Code> {
        self.nth(0)
    }

    /// An element of an array.
    pub fn nth(self, index: usize) -> Result<T, Code> {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the caller of the C function promises that many elements, and any bits are a `T`.
        Ok(unsafe { self.0.add(index).read_unaligned() })
    }

    /// An array; null is fine for none.
    pub fn list(self, len: usize) -> Result<Vec<T>, Code> {
        (0..len).map(|i| self.nth(i)).collect()
    }
}

impl<T> In<T> {
    /// Whether nothing is given.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// The address, as a number.
    pub fn address(self) -> u64 {
        self.0.expose_provenance() as u64
    }
}

impl In<u64> {
    /// Numbers of 64 bits that the program says are addresses.
    pub fn pointers(self) -> In<Host> {
        In(self.0.cast())
    }
}

/// A string that ends with a zero.
pub type Text = In<c_char>;

impl Text {
    /// The string; [`Code::INVALID_VALUE`] where it is null or no UTF-8.
    pub fn text(self) -> Result<String, Code> {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the caller promises a string that ends with a zero.
        let text = unsafe { CStr::from_ptr(self.0) };
        text.to_str().map(str::to_owned).map_err(|_| Code::INVALID_VALUE)
    }
}

/// Memory of the host program.
pub type Host = In<c_void>;

impl Host {
    /// Bytes of our own, while they live.
    pub fn of(bytes: &[u8]) -> Host {
        In(bytes.as_ptr().cast())
    }

    /// What lies so many bytes behind.
    pub fn offset(self, bytes: usize) -> Host {
        In(self.0.wrapping_byte_add(bytes))
    }

    /// The memory at an address that the program gave as a number, for functions that take addresses of the host and of the device alike.
    pub fn unified(address: u64) -> Host {
        In(std::ptr::with_exposed_provenance(address as usize))
    }

    /// The memory as a block of device memory.
    pub fn lend(self, len: usize) -> Result<Block, Code> {
        // SAFETY: the API's caller promises that the memory stays until it is unregistered or unmapped, which ends the loan, and
        // that nobody minds what kernels do with it.
        unsafe { Block::on_loan(self.address(), len) }.ok_or(Code::INVALID_VALUE)
    }

    /// Copies bytes from the program.
    pub fn read(self, to: &mut [u8]) -> Outcome {
        if self.0.is_null() && !to.is_empty() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the caller promises that so many bytes are readable; `copy` allows them to overlap with anything.
        unsafe { std::ptr::copy(self.0.cast::<u8>(), to.as_mut_ptr(), to.len()) };
        Ok(())
    }

    /// Copies bytes to the program.
    pub fn write(self, from: &[u8]) -> Outcome {
        if self.0.is_null() && !from.is_empty() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the caller promises that so many bytes are writable.
        unsafe { std::ptr::copy(from.as_ptr(), self.0.cast_mut().cast::<u8>(), from.len()) };
        Ok(())
    }

    /// A plain value at an offset.
    pub fn value<T: AnyBitPattern>(self, offset: usize) -> Result<T, Code> {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the caller promises an image or a block of at least that size, and any bits are a `T`.
        Ok(unsafe { self.0.cast::<u8>().add(offset).cast::<T>().read_unaligned() })
    }

    /// Writes a plain value at an offset.
    pub fn set_value<T: Copy>(self, offset: usize, value: T) -> Outcome {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the caller promises room for a structure that has such a member there.
        unsafe { self.0.cast_mut().cast::<u8>().add(offset).cast::<T>().write_unaligned(value) };
        Ok(())
    }

    /// So many bytes of the program, copied.
    pub fn bytes(self, offset: usize, len: usize) -> Result<Vec<u8>, Code> {
        let mut bytes = vec![0; len];
        self.offset(offset).read(&mut bytes)?;
        Ok(bytes)
    }

    /// The bytes before the first zero.
    pub fn until_zero(self) -> Result<Vec<u8>, Code> {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: images that have no length of their own are strings that end with a zero (`cuModuleLoadData`).
        Ok(unsafe { CStr::from_ptr(self.0.cast()) }.to_bytes().to_vec())
    }
}

/// A function of the program that we call back, with what it wants to be given.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub struct Callback(Option<unsafe extern "C" fn(*mut c_void)>);

/// What a [`Callback`] is given.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub struct UserData(*mut c_void);

// SAFETY: any bits are an address or none; whether it is one of a function is the program's promise.
unsafe impl Zeroable for Callback {}
// SAFETY: as above.
unsafe impl AnyBitPattern for Callback {}
// SAFETY: as above.
unsafe impl Zeroable for UserData {}
// SAFETY: as above.
unsafe impl AnyBitPattern for UserData {}

// SAFETY: these are the program's own addresses, and the API says that callbacks may run on any thread.
unsafe impl Send for UserData {}
// SAFETY: as above.
unsafe impl Sync for UserData {}

impl Callback {
    /// Calls it.
    pub fn call(self, data: UserData) -> Outcome {
        let function = self.0.ok_or(Code::INVALID_VALUE)?;
        // SAFETY: the program gave the function to be called with this data.
        unsafe { function(data.0) };
        Ok(())
    }
}

/// A callback of `cuStreamAddCallback`: stream, status, data.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub struct StreamCallback(Option<unsafe extern "C" fn(usize, u32, *mut c_void)>);

impl StreamCallback {
    /// Calls it.
    pub fn call(self, stream: usize, status: Code, data: UserData) -> Outcome {
        let function = self.0.ok_or(Code::INVALID_VALUE)?;
        // SAFETY: the program gave the function to be called with this data.
        unsafe { function(stream, status.number(), data.0) };
        Ok(())
    }
}

/// A callback of the occupancy calculator: block size to bytes of dynamic shared memory.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub struct SizeCallback(Option<unsafe extern "C" fn(i32) -> usize>);

impl SizeCallback {
    /// What it says for a block size; `None` where there is no callback.
    pub fn call(self, block: i32) -> Option<usize> {
        // SAFETY: the program gave the function to be asked.
        self.0.map(|function| unsafe { function(block) })
    }
}

unsafe extern "C" {
    fn on_exit(function: extern "C" fn(c_int, *mut c_void), data: *mut c_void) -> c_int;
    fn exit(status: c_int) -> !;
}

/// Has a function called with the program's exit code when the program ends (on_exit(3)). Only the first one counts.
pub fn when_it_ends(function: fn(i32)) {
    static FUNCTION: OnceLock<fn(i32)> = OnceLock::new();
    extern "C" fn ended(status: c_int, _data: *mut c_void) {
        if let Some(function) = FUNCTION.get() {
            // What unwinds here would end the program in another way than it chose.
            let _ = std::panic::catch_unwind(|| function(status));
        }
    }
    if FUNCTION.set(function).is_ok() {
        // SAFETY: the function stays as long as the library, which nobody unloads while the process has a driver.
        unsafe { on_exit(ended, std::ptr::null_mut()) };
    }
}

/// Ends the program with another code, from within [`when_it_ends`]: GNU's `exit` goes on with what is left to do.
pub fn end_with(status: i32) -> ! {
    // SAFETY: it takes any number.
    unsafe { exit(status) }
}

/// Memory that lives as long as the library, for addresses that the API hands out for ever (names, strings).
pub fn forever(text: &str) -> *const c_char {
    let mut bytes: Vec<u8> = text.bytes().filter(|b| *b != 0).collect();
    bytes.push(0);
    Box::leak(bytes.into_boxed_slice()).as_ptr().cast()
}
