//! The description of devices by margay's driver library.
#![allow(unsafe_code)]

use crate::{code::Code, facts::Facts};
use std::{
    ffi::{c_char, c_int, c_void},
    mem::MaybeUninit,
    sync::OnceLock,
};

unsafe extern "C" {
    fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

const RTLD_NOW: c_int = 2;

/// Describes a device, by its number without `CUDA_VISIBLE_DEVICES`; [`Code::DRIVER_NOT_LOADED`] if the driver library is another one.
pub fn facts(device: u32) -> Result<Facts, Code> {
    static DESCRIBE: OnceLock<usize> = OnceLock::new();
    let address = *DESCRIBE.get_or_init(|| {
        // SAFETY: the name is NUL-terminated; loading margay's driver library starts nothing.
        let library = unsafe { dlopen(c"libcuda.so.1".as_ptr(), RTLD_NOW) };
        if library.is_null() {
            return 0;
        }
        // SAFETY: the library is never unloaded, and the name is NUL-terminated.
        unsafe { dlsym(library, c"margayDescribe".as_ptr()) }.expose_provenance()
    });
    if address == 0 {
        return Err(Code::DRIVER_NOT_LOADED);
    }
    // SAFETY: margay's driver library exports the function with these arguments.
    let describe = unsafe { std::mem::transmute::<usize, extern "C" fn(u32, *mut Facts) -> u32>(address) };
    let mut facts = MaybeUninit::uninit();
    match describe(device, facts.as_mut_ptr()) {
        // SAFETY: the function has written the structure.
        0 => Ok(unsafe { facts.assume_init() }),
        _ => Err(Code::INVALID_ARGUMENT),
    }
}
