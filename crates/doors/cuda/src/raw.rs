//! Pointers passed by C programs; with `pages.rs` and `faults.rs` the only file of this crate with `unsafe`.
//!
//! Values of these types are created only as arguments of functions that C calls, for which the CUDA Driver API
//! specifies what they point to, or are read through such arguments; null is checked here. Rust code cannot create one
//! otherwise, except from an address that a program passed as a number ([`Host::unified`]). Types that are read are
//! valid for any bits ([`AnyBitPattern`]).
#![allow(unsafe_code)]

use crate::{
    code::{Code, Outcome},
    handle::Handle,
};
use bytemuck::{AnyBitPattern, Zeroable};
use margay_exec::mem::Block;
use std::{
    ffi::{CStr, c_char, c_int, c_void},
    sync::{
        OnceLock,
        atomic::{AtomicBool, AtomicI32, Ordering::Relaxed},
    },
};

/// A pointer to a result.
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
    /// The null pointer.
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
        // SAFETY: the C caller guarantees room for the results; alignment is not assumed.
        unsafe { self.0.add(index).write_unaligned(value) };
        Ok(())
    }

    /// Writes the result unless the pointer is null.
    pub fn offer(self, value: T) {
        if !self.is_null() {
            let _ = self.set(value); // cannot fail: it is not null
        }
    }

    /// Whether the pointer is null.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }
}

impl<T: AnyBitPattern> Out<T> {
    /// The address, for [`Host::unified`].
    pub fn address(self) -> u64 {
        self.0.expose_provenance() as u64
    }

    /// Reads an element of an in/out array.
    pub fn nth(self, index: usize) -> Result<T, Code> {
        In(self.0.cast_const()).nth(index)
    }

    /// Reads an in/out argument.
    pub fn get(self) -> Result<T, Code> {
        self.nth(0)
    }
}

impl Out<c_char> {
    /// Writes a NUL-terminated string to a buffer of `len` bytes, truncated if necessary.
    pub fn set_text(self, text: &str, len: usize) -> Outcome {
        let bytes = text.bytes().filter(|b| *b != 0).take(len.saturating_sub(1)).chain([0]);
        match len {
            0 => Err(Code::INVALID_VALUE),
            _ => bytes.enumerate().try_for_each(|(i, b)| self.set_nth(i, b as c_char)),
        }
    }
}

/// A pointer to an argument: one value, or the first of an array.
#[repr(transparent)]
#[derive(Debug)]
pub struct In<T>(*const T);

impl<T> Clone for In<T> {
    fn clone(&self) -> In<T> {
        *self
    }
}

impl<T> Copy for In<T> {}

// SAFETY: any bits are a valid raw pointer; it is dereferenced only under the C caller's guarantee.
unsafe impl<T> Zeroable for In<T> {}
// SAFETY: as above.
unsafe impl<T: 'static> AnyBitPattern for In<T> {}
// SAFETY: a handle is a plain number.
unsafe impl<T> Zeroable for Handle<T> {}
// SAFETY: as above.
unsafe impl<T: 'static> AnyBitPattern for Handle<T> {}

impl<T: Copy> In<T> {
    /// A pointer to values of our own, valid while they live.
    pub fn list_of(values: &[T]) -> In<T> {
        In(values.as_ptr())
    }

    /// The null pointer.
    pub fn null() -> In<T> {
        In(std::ptr::null())
    }
}

impl<T: AnyBitPattern> In<T> {
    /// Reads the value; [`Code::INVALID_VALUE`] for null.
    pub fn get(self) -> Result<T, Code> {
        self.nth(0)
    }

    /// Reads an element of an array.
    pub fn nth(self, index: usize) -> Result<T, Code> {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the C caller guarantees that many elements, and any bits are a valid `T`.
        Ok(unsafe { self.0.add(index).read_unaligned() })
    }

    /// Reads an array; may be null if it is empty.
    pub fn list(self, len: usize) -> Result<Vec<T>, Code> {
        (0..len).map(|i| self.nth(i)).collect()
    }
}

impl<T> In<T> {
    /// Whether the pointer is null.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// The address as a number.
    pub fn address(self) -> u64 {
        self.0.expose_provenance() as u64
    }
}

impl In<u64> {
    /// Reinterprets 64-bit numbers as addresses.
    pub fn pointers(self) -> In<Host> {
        In(self.0.cast())
    }
}

/// A NUL-terminated string.
pub type Text = In<c_char>;

impl Text {
    /// The string; [`Code::INVALID_VALUE`] if it is null or not UTF-8.
    pub fn text(self) -> Result<String, Code> {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the C caller guarantees a NUL-terminated string.
        let text = unsafe { CStr::from_ptr(self.0) };
        text.to_str().map(str::to_owned).map_err(|_| Code::INVALID_VALUE)
    }
}

/// A pointer to memory of the program.
pub type Host = In<c_void>;

impl Host {
    /// A pointer to bytes of our own, valid while they live.
    pub fn of(bytes: &[u8]) -> Host {
        In(bytes.as_ptr().cast())
    }

    /// The pointer `bytes` bytes further on.
    pub fn offset(self, bytes: usize) -> Host {
        In(self.0.wrapping_byte_add(bytes))
    }

    /// The memory at an address passed as a number, by functions that take host and device addresses alike.
    pub fn unified(address: u64) -> Host {
        In(std::ptr::with_exposed_provenance(address as usize))
    }

    /// Lends the memory as a block of device memory.
    pub fn lend(self, len: usize) -> Result<Block, Code> {
        // SAFETY: the C caller guarantees that the memory stays valid until it is unregistered or unmapped, or the call has copied it,
        // which ends the loan, and tolerates concurrent writes by kernels.
        unsafe { Block::on_loan(self.address(), len) }.ok_or(Code::INVALID_VALUE)
    }

    /// Copies bytes from the program.
    pub fn read(self, to: &mut [u8]) -> Outcome {
        if self.0.is_null() && !to.is_empty() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the C caller guarantees that many readable bytes; `copy` allows overlap.
        unsafe { std::ptr::copy(self.0.cast::<u8>(), to.as_mut_ptr(), to.len()) };
        Ok(())
    }

    /// Copies bytes to the program.
    pub fn write(self, from: &[u8]) -> Outcome {
        if self.0.is_null() && !from.is_empty() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the C caller guarantees that many writable bytes.
        unsafe { std::ptr::copy(from.as_ptr(), self.0.cast_mut().cast::<u8>(), from.len()) };
        Ok(())
    }

    /// Reads a value at an offset in bytes.
    pub fn value<T: AnyBitPattern>(self, offset: usize) -> Result<T, Code> {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the C caller guarantees memory of at least that size, and any bits are a valid `T`.
        Ok(unsafe { self.0.cast::<u8>().add(offset).cast::<T>().read_unaligned() })
    }

    /// Writes a value at an offset in bytes.
    pub fn set_value<T: Copy>(self, offset: usize, value: T) -> Outcome {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the C caller guarantees a structure with such a member there.
        unsafe { self.0.cast_mut().cast::<u8>().add(offset).cast::<T>().write_unaligned(value) };
        Ok(())
    }

    /// Copies `len` bytes at an offset.
    pub fn bytes(self, offset: usize, len: usize) -> Result<Vec<u8>, Code> {
        let mut bytes = vec![0; len];
        self.offset(offset).read(&mut bytes)?;
        Ok(bytes)
    }

    /// The bytes before the first NUL.
    pub fn until_zero(self) -> Result<Vec<u8>, Code> {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: images without an explicit length are NUL-terminated strings (`cuModuleLoadData`).
        Ok(unsafe { CStr::from_ptr(self.0.cast()) }.to_bytes().to_vec())
    }
}

/// A callback of the program that takes its user data.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub struct Callback(Option<unsafe extern "C" fn(*mut c_void)>);

/// The user data of a [`Callback`].
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub struct UserData(*mut c_void);

// SAFETY: any bits are null or an address; that it is a function's is the C caller's guarantee.
unsafe impl Zeroable for Callback {}
// SAFETY: as above.
unsafe impl AnyBitPattern for Callback {}
// SAFETY: as above.
unsafe impl Zeroable for UserData {}
// SAFETY: as above.
unsafe impl AnyBitPattern for UserData {}

// SAFETY: an address of the program's own; the API allows callbacks on any thread.
unsafe impl Send for UserData {}
// SAFETY: as above.
unsafe impl Sync for UserData {}

impl Callback {
    /// Whether there is one.
    pub fn check(self) -> Outcome {
        self.0.map(drop).ok_or(Code::INVALID_VALUE)
    }

    /// Calls the function.
    pub fn call(self, data: UserData) -> Outcome {
        let function = self.0.ok_or(Code::INVALID_VALUE)?;
        // SAFETY: the program passed the function to be called with this data.
        unsafe { function(data.0) };
        Ok(())
    }
}

/// A callback of `cuLogsRegisterCallback`: data, level, message, its length.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub struct LogCallback(Option<unsafe extern "C" fn(*mut c_void, u32, *const c_char, usize)>);

impl LogCallback {
    /// Whether there is one.
    pub fn check(self) -> Outcome {
        self.0.map(drop).ok_or(Code::INVALID_VALUE)
    }

    /// Calls the function with an error message (level 0).
    pub fn call(self, data: UserData, message: &str) {
        let text: Vec<u8> = message.bytes().filter(|b| *b != 0).chain([0]).collect();
        if let Some(function) = self.0 {
            // SAFETY: the program registered the function to be called with this data; the text ends with NUL.
            unsafe { function(data.0, 0, text.as_ptr().cast(), text.len() - 1) };
        }
    }
}

/// A callback of `cuStreamAddCallback`: stream, status, data.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub struct StreamCallback(Option<unsafe extern "C" fn(usize, u32, *mut c_void)>);

impl StreamCallback {
    /// Whether the program passed none.
    pub fn is_null(self) -> bool {
        self.0.is_none()
    }

    /// Calls the function, if there is one.
    pub fn call(self, stream: usize, status: Code, data: UserData) {
        if let Some(function) = self.0 {
            // SAFETY: the program passed the function to be called with this data.
            unsafe { function(stream, status.number(), data.0) };
        }
    }
}

/// A callback of the occupancy calculator: block size to bytes of dynamic shared memory.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub struct SizeCallback(Option<unsafe extern "C" fn(i32) -> usize>);

impl SizeCallback {
    /// The result for a block size; `None` if the callback is null.
    pub fn call(self, block: i32) -> Option<usize> {
        // SAFETY: the program passed the function to be called.
        self.0.map(|function| unsafe { function(block) })
    }
}

unsafe extern "C" {
    fn on_exit(function: extern "C" fn(c_int, *mut c_void), data: *mut c_void) -> c_int;
    fn exit(status: c_int) -> !;
}

// The unwinder that Rust's own panics use (Itanium C++ ABI: Exception Handling, "Base ABI").
unsafe extern "C" {
    fn _Unwind_Backtrace(each: extern "C" fn(*mut c_void, *mut c_void) -> c_int, data: *mut c_void) -> c_int;
    fn _Unwind_GetIP(frame: *mut c_void) -> usize;
}

unsafe extern "C" {
    static stdout: *mut c_void;
    fn fwrite(from: *const c_void, size: usize, count: usize, stream: *mut c_void) -> usize;
    fn fflush(stream: *mut c_void) -> c_int;
    fn pthread_atfork(
        prepare: Option<extern "C" fn()>,
        parent: Option<extern "C" fn()>,
        child: Option<extern "C" fn()>,
    ) -> c_int;
}

/// Writes to the program's standard output, after what the program has written there through C's functions.
pub fn print(bytes: &[u8]) {
    // SAFETY: the stream is C's own, and there are as many bytes. A closed output is not a reason to stop.
    unsafe {
        fwrite(bytes.as_ptr().cast(), 1, bytes.len(), stdout);
        fflush(stdout);
    }
}

static FORKED: AtomicBool = AtomicBool::new(false);

/// Whether this process is a copy of the one that made the driver: it has none of its threads.
pub fn is_forked() -> bool {
    FORKED.load(Relaxed)
}

/// Sees to it that [`is_forked`] knows.
pub fn watch_forks() {
    extern "C" fn child() {
        FORKED.store(true, Relaxed);
    }
    // SAFETY: the function stays as long as the library, and does nothing but store a flag.
    unsafe { pthread_atfork(None, None, Some(child)) };
}

/// Registers a function to be called with the exit code when the process exits (on_exit(3)). Only the first call has an
/// effect.
pub fn when_it_ends(function: fn(i32)) {
    static FUNCTION: OnceLock<fn(i32)> = OnceLock::new();
    extern "C" fn ended(status: c_int, _data: *mut c_void) {
        if let Some(function) = FUNCTION.get() {
            // A panic must not replace the program's exit code.
            let _ = std::panic::catch_unwind(|| function(status));
        }
    }
    if FUNCTION.set(function).is_ok() {
        // SAFETY: the function lives as long as the library, which is never unloaded while the process has a driver.
        unsafe { on_exit(ended, std::ptr::null_mut()) };
    }
}

/// Exits with another code from within [`when_it_ends`]: GNU's `exit` continues with the remaining handlers.
pub fn end_with(status: i32) -> ! {
    // SAFETY: `exit` accepts any number.
    unsafe { exit(status) }
}

/// Where [`note`] writes to, and whether it has.
static SIGNALS: AtomicI32 = AtomicI32::new(-1);
static NOTED: AtomicBool = AtomicBool::new(false);
/// Whether the reader has reported everything, so that the handler may return.
static TOLD: AtomicBool = AtomicBool::new(false);

/// Handles a signal that would end the process: writes its number to the pipe, and waits while the reader reports what there is to report and
/// ends the process. Interrupted calls must not return: programs would continue. Calls only functions that signal-safety(7) permits.
extern "C" fn note(signal: c_int) {
    let number = signal as u8;
    let moment = libc::timespec { tv_sec: 0, tv_nsec: 10_000_000 };
    // SAFETY: one byte of this frame is written; what is raised is delivered as the handler returns.
    unsafe {
        if !is_forked() && !NOTED.swap(true, Relaxed) {
            libc::write(SIGNALS.load(Relaxed), (&raw const number).cast(), 1);
            // Longer than the reader ever takes, unless it waits for a lock of the interrupted thread.
            for _ in 0..200 {
                if TOLD.load(Relaxed) {
                    break;
                }
                libc::nanosleep(&moment, std::ptr::null_mut());
            }
        }
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

/// Makes a signal that would end the process write its number to a pipe instead. A handler of the program stays, and so does a signal
/// that is ignored.
pub fn note_signal(signal: i32, pipe: i32) {
    SIGNALS.store(pipe, Relaxed);
    // SAFETY: all zeros are a valid action, which the call fills in; the handler stays as long as the library.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(signal, std::ptr::null(), &mut action) == 0 && action.sa_sigaction == libc::SIG_DFL {
            action.sa_sigaction = note as extern "C" fn(c_int) as usize;
            action.sa_flags = 0;
            libc::sigaction(signal, &action, std::ptr::null_mut());
        }
    }
}

/// Ends the process by a signal that was noted.
pub fn end_by(signal: i32) {
    TOLD.store(true, Relaxed);
    // SAFETY: neither call has requirements.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::kill(libc::getpid(), signal);
    }
}

/// The return addresses of the calls that led here, innermost first, up to the first function without unwinding tables.
pub fn callers() -> Vec<u64> {
    extern "C" fn note(frame: *mut c_void, found: *mut c_void) -> c_int {
        // SAFETY: the unwinder passes a frame of its own, and the vector below, which lives until it returns.
        unsafe { (*found.cast::<Vec<u64>>()).push(_Unwind_GetIP(frame) as u64) };
        0
    }
    let mut found = Vec::<u64>::new();
    // SAFETY: the function does not unwind, except when memory runs out, which ends the process.
    unsafe { _Unwind_Backtrace(note, (&raw mut found).cast()) };
    found
}

/// Leaks a NUL-terminated copy of a string, for addresses that the API returns and that stay valid.
pub fn forever(text: &str) -> *const c_char {
    let mut bytes: Vec<u8> = text.bytes().filter(|b| *b != 0).collect();
    bytes.push(0);
    Box::leak(bytes.into_boxed_slice()).as_ptr().cast()
}
