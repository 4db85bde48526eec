//! CUDA's driver, loaded at run time, so that building needs nothing of it. The only `unsafe` of this crate.
//!
//! Functions and their types follow the CUDA Driver API reference; handles are pointers, and so are held as `usize`.
#![allow(unsafe_code)]

use std::{
    ffi::{CStr, CString, c_char, c_int, c_uint, c_void},
    ptr,
};

unsafe extern "C" {
    fn dlopen(file: *const c_char, mode: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

const RTLD_NOW: c_int = 2;
const MAJOR: c_int = 75;
const MINOR: c_int = 76;
const DYNAMIC_SHARED: c_int = 8;

type Code = c_int;
type Handle = *mut c_void;

/// Declares the table of functions, and how it is filled.
macro_rules! functions {
    ($($field:ident = $symbol:literal: fn($($arg:ty),*);)*) => {
        struct Functions {
            $($field: unsafe extern "C" fn($($arg),*) -> Code,)*
        }

        impl Functions {
            fn find(library: Handle) -> Result<Functions, String> {
                Ok(Functions {
                    $($field: {
                        let name = CString::new($symbol).unwrap_or_default();
                        // SAFETY: the library is open, and the name is NUL-terminated.
                        let at = unsafe { dlsym(library, name.as_ptr()) };
                        if at.is_null() {
                            return Err(format!("the driver has no `{}`", $symbol));
                        }
                        // SAFETY: the driver's function of this name has this type, according to its reference.
                        unsafe { std::mem::transmute::<Handle, unsafe extern "C" fn($($arg),*) -> Code>(at) }
                    },)*
                })
            }
        }
    };
}

functions! {
    init = "cuInit": fn(c_uint);
    version = "cuDriverGetVersion": fn(*mut c_int);
    error_name = "cuGetErrorName": fn(Code, *mut *const c_char);
    device = "cuDeviceGet": fn(*mut c_int, c_int);
    name = "cuDeviceGetName": fn(*mut c_char, c_int, c_int);
    attribute = "cuDeviceGetAttribute": fn(*mut c_int, c_int, c_int);
    retain = "cuDevicePrimaryCtxRetain": fn(*mut Handle, c_int);
    current = "cuCtxSetCurrent": fn(Handle);
    synchronize = "cuCtxSynchronize": fn();
    load = "cuModuleLoadData": fn(*mut Handle, *const c_void);
    unload = "cuModuleUnload": fn(Handle);
    function = "cuModuleGetFunction": fn(*mut Handle, Handle, *const c_char);
    set = "cuFuncSetAttribute": fn(Handle, c_int, c_int);
    allocate = "cuMemAlloc_v2": fn(*mut u64, usize);
    free = "cuMemFree_v2": fn(u64);
    upload = "cuMemcpyHtoD_v2": fn(u64, *const c_void, usize);
    download = "cuMemcpyDtoH_v2": fn(*mut c_void, u64, usize);
    launch = "cuLaunchKernel": fn(Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle, *mut Handle, *mut Handle);
}

/// The driver's first GPU, with at most one module loaded.
pub struct Gpu {
    functions: Functions,
    module: Handle,
    memory: Vec<u64>,
    /// The device's name.
    pub name: String,
    /// Compute capability: major and minor.
    pub capability: (i32, i32),
    /// CUDA version of the driver: 13050 for 13.5.
    pub driver: i32,
}

impl Gpu {
    /// Opens the driver library and its first device. The error says what is missing.
    pub fn open(library: &str) -> Result<Gpu, String> {
        let file = CString::new(library).map_err(|e| e.to_string())?;
        // SAFETY: the name is NUL-terminated; the library's initializers depend on nothing of ours.
        let opened = unsafe { dlopen(file.as_ptr(), RTLD_NOW) };
        if opened.is_null() {
            return Err(format!("there is no CUDA driver: {library} cannot be loaded"));
        }
        let functions = Functions::find(opened)?;
        let mut gpu = Gpu {
            functions,
            module: ptr::null_mut(),
            memory: Vec::new(),
            name: String::new(),
            capability: (0, 0),
            driver: 0,
        };
        gpu.begin().map_err(|e| format!("there is no GPU: {e}"))?;
        Ok(gpu)
    }

    fn begin(&mut self) -> Result<(), String> {
        let (mut device, mut context, mut name) = (0, ptr::null_mut(), [0 as c_char; 256]);
        let (mut driver, mut major, mut minor) = (0, 0, 0);
        let f = &self.functions;
        // SAFETY: all pointers are to variables of the types that the driver writes, and the name has the size passed.
        let name = unsafe {
            self.done("cuInit", (f.init)(0))?;
            self.done("cuDriverGetVersion", (f.version)(&mut driver))?;
            self.done("cuDeviceGet", (f.device)(&mut device, 0))?;
            self.done("cuDeviceGetName", (f.name)(name.as_mut_ptr(), name.len() as c_int, device))?;
            self.done("cuDeviceGetAttribute", (f.attribute)(&mut major, MAJOR, device))?;
            self.done("cuDeviceGetAttribute", (f.attribute)(&mut minor, MINOR, device))?;
            self.done("cuDevicePrimaryCtxRetain", (f.retain)(&mut context, device))?;
            self.done("cuCtxSetCurrent", (f.current)(context))?;
            name[name.len() - 1] = 0;
            CStr::from_ptr(name.as_ptr()).to_string_lossy().into_owned()
        };
        (self.name, self.capability, self.driver) = (name, (major, minor), driver);
        Ok(())
    }

    fn done(&self, what: &str, code: Code) -> Result<(), String> {
        if code == 0 {
            return Ok(());
        }
        let mut name = ptr::null();
        // SAFETY: the driver writes a pointer to a static string, or leaves null.
        let name = unsafe {
            (self.functions.error_name)(code, &mut name);
            if name.is_null() { String::new() } else { CStr::from_ptr(name).to_string_lossy().into_owned() }
        };
        Err(format!("{what} says {code} {name}"))
    }

    /// Loads PTX; frees the previous module and memory.
    pub fn load(&mut self, text: &str) -> Result<(), String> {
        self.clear();
        let text = CString::new(text).map_err(|e| e.to_string())?;
        // SAFETY: the text is NUL-terminated, as the driver requires for PTX; the handle is written.
        let code = unsafe { (self.functions.load)(&mut self.module, text.as_ptr().cast()) };
        self.done("cuModuleLoadData", code)
    }

    fn clear(&mut self) {
        // SAFETY: module and memory came from this driver and are freed once.
        unsafe {
            for m in self.memory.drain(..) {
                (self.functions.free)(m);
            }
            if !self.module.is_null() {
                (self.functions.unload)(self.module);
            }
        }
        self.module = ptr::null_mut();
    }

    /// Copies bytes to new device memory; returns its address.
    pub fn place(&mut self, bytes: &[u8]) -> Result<u64, String> {
        let mut address = 0;
        // SAFETY: the address is written; then the slice's bytes are read into memory of that size.
        unsafe {
            self.done("cuMemAlloc", (self.functions.allocate)(&mut address, bytes.len().max(1)))?;
            self.memory.push(address);
            self.done("cuMemcpyHtoD", (self.functions.upload)(address, bytes.as_ptr().cast(), bytes.len()))?;
        }
        Ok(address)
    }

    /// Reads device memory.
    pub fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), String> {
        // SAFETY: the driver writes as many bytes as the slice has.
        let code = unsafe { (self.functions.download)(bytes.as_mut_ptr().cast(), address, bytes.len()) };
        self.done("cuMemcpyDtoH", code)
    }

    /// Launches a kernel and waits for its end.
    pub fn launch(
        &mut self,
        kernel: &str,
        (grid, block, shared): ([u32; 3], [u32; 3], u32),
        arguments: &[Vec<u8>],
    ) -> Result<(), String> {
        let name = CString::new(kernel).map_err(|e| e.to_string())?;
        let mut function = ptr::null_mut();
        // The driver reads as many bytes as the kernel's parameter has: room for the largest.
        let mut room: Vec<Vec<u128>> =
            arguments.iter().map(|a| vec![0u128; 4096 / 16 + a.len().div_ceil(16)]).collect();
        for (to, from) in room.iter_mut().zip(arguments) {
            for (word, bytes) in to.iter_mut().zip(from.chunks(16)) {
                let mut all = [0; 16];
                all[..bytes.len()].copy_from_slice(bytes);
                *word = u128::from_ne_bytes(all);
            }
        }
        let mut pointers: Vec<Handle> = room.iter_mut().map(|r| r.as_mut_ptr().cast()).collect();
        let f = &self.functions;
        // SAFETY: the module is loaded, the name is NUL-terminated, and each pointer is to more bytes than a parameter
        // can have.
        unsafe {
            self.done("cuModuleGetFunction", (f.function)(&mut function, self.module, name.as_ptr()))?;
            if shared > 48 << 10 {
                self.done("cuFuncSetAttribute", (f.set)(function, DYNAMIC_SHARED, shared as c_int))?;
            }
            let ([x, y, z], [u, v, w]) = (grid, block);
            let none = ptr::null_mut();
            let code = (f.launch)(function, x, y, z, u, v, w, shared, none, pointers.as_mut_ptr(), ptr::null_mut());
            self.done("cuLaunchKernel", code)?;
            self.done("cuCtxSynchronize", (f.synchronize)())
        }
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        self.clear();
    }
}
