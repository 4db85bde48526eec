//! Registration of fat binaries, kernels and variables by code that nvcc generates and that runs before `main`. A fat
//! binary is loaded when one of its kernels or variables is first used.

use crate::{
    api::{current_device, enter, primary, ready},
    driver,
    error::{Code, Outcome},
    raw::Ptr,
};
use parking_lot::{Mutex, MutexGuard};
use std::{collections::HashMap, sync::LazyLock};

/// A fat binary of the program.
struct Binary {
    image: u64,
    /// The driver's library, once loaded.
    library: Option<usize>,
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
    /// The driver's kernel handles by host address. Code that nvcc generates keeps them too, so they must stay valid for all devices and
    /// after a reset.
    handles: HashMap<u64, usize>,
    next: u64,
}

fn registry() -> MutexGuard<'static, Registry> {
    static REGISTRY: LazyLock<Mutex<Registry>> = LazyLock::new(Mutex::default);
    REGISTRY.lock()
}

impl Binary {
    /// Stores the addresses of managed variables where the program reads them.
    fn place_managed(&self, library: usize) -> Outcome {
        self.managed.iter().try_for_each(|(name, place)| Ptr::at(*place).write(0, address(library, name)?.0))
    }
}

impl Registry {
    /// The driver's library of a binary, loaded on first use.
    fn library(&mut self, handle: u64) -> Result<usize, Code> {
        let binary = self.binaries.get_mut(&handle).ok_or(Code::INVALID_SYMBOL)?;
        if let Some(library) = binary.library {
            return Ok(library);
        }
        let mut library = 0usize;
        let none = Ptr::NULL;
        driver::cuLibraryLoadData(Ptr::to(&mut library), Ptr::at(binary.image), none, none, 0, none, none, 0)?;
        binary.library = Some(library);
        binary.place_managed(library)?;
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

/// The driver's kernel for a host function, or a handle that is one.
pub fn kernel(host: Ptr) -> Result<usize, Code> {
    let mut registry = registry();
    if let Some(handle) = registry.handles.get(&host.number()) {
        return Ok(*handle);
    }
    let Some(Symbol { binary, name }) = registry.kernels.get(&host.number()).cloned() else {
        // Handles from `cudaGetKernel` and `cudaLibraryGetKernel` may be passed instead of host functions.
        let handle = host.number() as usize;
        return function_of(handle).map(|_| handle).map_err(|_| Code::INVALID_DEVICE_FUNCTION);
    };
    let library = registry.library(binary)?;
    let mut handle = 0usize;
    let name = format!("{name}\0");
    driver::cuLibraryGetKernel(Ptr::to(&mut handle), library, Ptr::of(name.as_bytes()))
        .map_err(|_| Code::INVALID_DEVICE_FUNCTION)?;
    registry.handles.insert(host.number(), handle);
    Ok(handle)
}

/// The driver's function for a host function or a kernel handle on the current device.
pub fn function(host: Ptr) -> Result<usize, Code> {
    function_of(kernel(host)?)
}

fn function_of(kernel: usize) -> Result<usize, Code> {
    let mut function = 0usize;
    driver::cuKernelGetFunction(Ptr::to(&mut function), kernel)?;
    Ok(function)
}

/// The host function of a driver's kernel, or the handle if there is none.
pub fn host_of(handle: usize) -> Ptr {
    let registry = registry();
    let found = registry.handles.iter().find(|(_, h)| **h == handle);
    Ptr::at(found.map_or(handle as u64, |(host, _)| *host))
}

/// Address and size of the device variable of a host variable, on the current device.
pub fn variable(host: Ptr) -> Result<(u64, usize), Code> {
    let mut registry = registry();
    let Symbol { binary, name } = registry.variables.get(&host.number()).cloned().ok_or(Code::INVALID_SYMBOL)?;
    let library = registry.library(binary)?;
    address(library, &name).map_err(|_| Code::INVALID_SYMBOL)
}

/// The driver's module of a fat binary, on the current device.
#[cfg(cuda11)]
pub fn module(binary: u64) -> Result<usize, Code> {
    let library = registry().library(binary)?;
    let mut module = 0usize;
    driver::cuLibraryGetModule(Ptr::to(&mut module), library)?;
    Ok(module)
}

/// Resets the primary context of the current device.
pub fn reset() -> Outcome {
    let device = current_device();
    driver::cuDevicePrimaryCtxReset_v2(device)?;
    primary(device)?;
    // The host reads the addresses of managed variables without a call.
    let registry = registry();
    let managed = registry.binaries.values().filter(|b| !b.managed.is_empty());
    managed.filter_map(|b| Some((b, b.library?))).try_for_each(|(b, library)| b.place_managed(library))
}

/// Runs a registration, whose error can only be recorded.
pub fn recording_errors(name: &'static str, body: impl FnOnce() -> Outcome) {
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
    // Most programs register in the main thread, whose end the driver must see before LLVM's own destructors run; it sees the end of
    // a thread that loads it.
    driver::load();
    let mut registry = registry();
    registry.next += 16;
    let handle = registry.next;
    registry.binaries.insert(handle, Binary { image: image.number(), library: None, managed: Vec::new() });
    Ptr::at(handle)
}

#[allow(unsafe_code)]
#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterFatBinaryEnd(_handle: Ptr) {}

#[allow(unsafe_code)]
#[unsafe(no_mangle)]
extern "C" fn __cudaUnregisterFatBinary(handle: Ptr) {
    // The process ends, where the driver frees its own resources, or a library is closed, whose addresses may be used again.
    let mut registry = registry();
    let Registry { binaries, kernels, variables, handles, .. } = &mut *registry;
    binaries.remove(&handle.number());
    handles.retain(|host, _| kernels.get(host).is_none_or(|kernel| kernel.binary != handle.number()));
    kernels.retain(|_, kernel| kernel.binary != handle.number());
    variables.retain(|_, variable| variable.binary != handle.number());
    #[cfg(cuda11)]
    crate::references::forget(handle.number());
}

#[allow(unsafe_code)]
#[unsafe(no_mangle)]
extern "C" fn __cudaInitModule(handle: Ptr) -> u8 {
    enter("__cudaInitModule", || {
        ready()?;
        registry().library(handle.number()).map(drop)
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
