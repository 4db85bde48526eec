//! Registration of fat binaries, kernels and variables by code that nvcc generates and that runs before `main`. A fat
//! binary is loaded on first use of something in it.

use crate::{
    api::{current_device, enter, primary, ready},
    driver,
    error::{Code, Outcome},
    raw::Ptr,
};
use std::{
    collections::HashMap,
    sync::{LazyLock, Mutex, MutexGuard, PoisonError},
};

/// A fat binary of the program.
struct Binary {
    image: u64,
    /// The driver's library per device number, once loaded: each has variables of its own.
    libraries: HashMap<i32, usize>,
    /// Names of managed variables, and where the program stores their addresses.
    managed: Vec<(String, u64)>,
}

/// A kernel or variable: its binary and its name there.
#[derive(Clone)]
struct Symbol {
    binary: u64,
    name: String,
}

#[derive(Default)]
struct Registry {
    binaries: HashMap<u64, Binary>,
    kernels: HashMap<u64, Symbol>,
    variables: HashMap<u64, Symbol>,
    /// The driver's kernel handles, by host address and device.
    handles: HashMap<(u64, i32), usize>,
    next: u64,
}

fn registry() -> MutexGuard<'static, Registry> {
    static REGISTRY: LazyLock<Mutex<Registry>> = LazyLock::new(Mutex::default);
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Registry {
    /// The driver's library of a binary on a device, loaded on first use.
    fn library(&mut self, handle: u64, device: i32) -> Result<usize, Code> {
        let binary = self.binaries.get_mut(&handle).ok_or(Code::INVALID_SYMBOL)?;
        // A managed variable is shared by all devices.
        let device = if binary.managed.is_empty() { device } else { 0 };
        if let Some(library) = binary.libraries.get(&device) {
            return Ok(*library);
        }
        let mut library = 0usize;
        let none = Ptr::NULL;
        driver::cuLibraryLoadData(Ptr::to(&mut library), Ptr::at(binary.image), none, none, 0, none, none, 0)?;
        binary.libraries.insert(device, library);
        for (name, place) in &binary.managed {
            let address = address(library, name)?.0;
            Ptr::at(*place).write(0, address)?;
        }
        Ok(library)
    }
}

/// Address and size of a variable of a library.
fn address(library: usize, name: &str) -> Result<(u64, usize), Code> {
    let (mut address, mut size) = (0u64, 0usize);
    let name = format!("{name}\0");
    driver::cuLibraryGetGlobal(Ptr::to(&mut address), Ptr::to(&mut size), library, Ptr::of(name.as_bytes()))?;
    Ok((address, size))
}

/// The driver's function for a host function or for a kernel handle.
pub fn kernel(host: Ptr) -> Result<usize, Code> {
    let device = current_device();
    let mut registry = registry();
    if let Some(handle) = registry.handles.get(&(host.number(), device)) {
        return Ok(*handle);
    }
    let Some(Symbol { binary, name }) = registry.kernels.get(&host.number()).cloned() else {
        // Handles from `cudaGetKernel` and `cudaLibraryGetKernel` may be passed instead of host functions.
        let mut handle = host.number() as usize;
        return match driver::cuKernelGetFunction(Ptr::to(&mut handle), handle) {
            Ok(()) => Ok(handle),
            Err(_) => Err(Code::INVALID_DEVICE_FUNCTION),
        };
    };
    let library = registry.library(binary, device)?;
    let mut handle = 0usize;
    let name = format!("{name}\0");
    driver::cuLibraryGetKernel(Ptr::to(&mut handle), library, Ptr::of(name.as_bytes()))
        .map_err(|_| Code::INVALID_DEVICE_FUNCTION)?;
    registry.handles.insert((host.number(), device), handle);
    Ok(handle)
}

/// The host function of a driver function, or the driver's handle if there is none.
pub fn host_of(handle: usize) -> Ptr {
    let registry = registry();
    let found = registry.handles.iter().find(|(_, h)| **h == handle);
    Ptr::at(found.map_or(handle as u64, |((host, _), _)| *host))
}

/// Address and size of the device variable of a host variable.
pub fn variable(host: Ptr) -> Result<(u64, usize), Code> {
    let device = current_device();
    let mut registry = registry();
    let Symbol { binary, name } = registry.variables.get(&host.number()).cloned().ok_or(Code::INVALID_SYMBOL)?;
    let library = registry.library(binary, device)?;
    address(library, &name).map_err(|_| Code::INVALID_SYMBOL)
}

/// Drops what was loaded on a device, so that it is loaded anew after a reset.
fn unload(device: i32) {
    let mut registry = registry();
    registry.handles.retain(|(_, of), _| *of != device);
    for binary in registry.binaries.values_mut() {
        binary.libraries.remove(&device);
    }
}

/// Resets the primary context of the current device.
pub fn reset() -> Outcome {
    let device = current_device();
    unload(device);
    driver::cuDevicePrimaryCtxReset_v2(device)?;
    primary(device)
}

/// Runs a registration, whose error can only be recorded.
fn recording_errors(name: &'static str, body: impl FnOnce() -> Outcome) {
    enter(name, body);
}

/// The release of the API; its presence identifies margay's libraries.
#[allow(unsafe_code)]
#[unsafe(no_mangle)]
extern "C" fn margay_runtime_release() -> u32 {
    if cfg!(cuda11) {
        11
    } else if cfg!(cuda12) {
        12
    } else {
        13
    }
}

#[allow(unsafe_code)]
#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterFatBinary(image: Ptr) -> Ptr {
    let mut registry = registry();
    registry.next += 16;
    let handle = registry.next;
    registry.binaries.insert(handle, Binary { image: image.number(), libraries: HashMap::new(), managed: Vec::new() });
    Ptr::at(handle)
}

#[allow(unsafe_code)]
#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterFatBinaryEnd(_handle: Ptr) {}

#[allow(unsafe_code)]
#[unsafe(no_mangle)]
extern "C" fn __cudaUnregisterFatBinary(handle: Ptr) {
    // The process is ending; the driver frees its own resources.
    registry().binaries.remove(&handle.number());
}

#[allow(unsafe_code)]
#[unsafe(no_mangle)]
extern "C" fn __cudaInitModule(handle: Ptr) -> u8 {
    enter("__cudaInitModule", || {
        ready()?;
        let device = current_device();
        registry().library(handle.number(), device).map(drop)
    });
    1
}

#[allow(unsafe_code, clippy::too_many_arguments)]
#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterFunction(
    handle: Ptr,
    host: Ptr,
    _device: Ptr,
    name: Ptr,
    _threads: i32,
    _tid: Ptr,
    _bid: Ptr,
    _block: Ptr,
    _grid: Ptr,
    _warp: Ptr,
) {
    recording_errors("__cudaRegisterFunction", || {
        let symbol = Symbol { binary: handle.number(), name: name.text()? };
        registry().kernels.insert(host.number(), symbol);
        Ok(())
    });
}

#[allow(unsafe_code, clippy::too_many_arguments)]
#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterVar(
    handle: Ptr,
    host: Ptr,
    _device: Ptr,
    name: Ptr,
    _external: i32,
    _size: usize,
    _constant: i32,
    _global: i32,
) {
    recording_errors("__cudaRegisterVar", || {
        let symbol = Symbol { binary: handle.number(), name: name.text()? };
        registry().variables.insert(host.number(), symbol);
        Ok(())
    });
}

#[allow(unsafe_code, clippy::too_many_arguments)]
#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterManagedVar(
    handle: Ptr,
    host: Ptr,
    _device: Ptr,
    name: Ptr,
    _external: i32,
    _size: usize,
    _constant: i32,
    _global: i32,
) {
    recording_errors("__cudaRegisterManagedVar", || {
        let (binary, name) = (handle.number(), name.text()?);
        let mut registry = registry();
        if let Some(found) = registry.binaries.get_mut(&binary) {
            found.managed.push((name.clone(), host.number()));
        }
        registry.variables.insert(host.number(), Symbol { binary, name });
        Ok(())
    });
}
