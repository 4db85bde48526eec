//! Launches: `kernel<<<grid, block, shared, stream>>>(...)` pushes a configuration and calls the kernel's stub, which
//! pops it and launches (CUDA Runtime API, "Execution Control" and "Occupancy").

use crate::{
    api::{api, enter, last_error},
    driver,
    error::{Code, Outcome},
    raw::Ptr,
    register::{function, kernel},
    stream::Stream,
};
use bytemuck::AnyBitPattern;
use std::cell::RefCell;

/// `dim3`
#[repr(C)]
#[derive(Clone, Copy, Debug, AnyBitPattern)]
pub struct Dim3 {
    x: u32,
    y: u32,
    z: u32,
}

#[derive(Clone, Copy)]
struct Configuration {
    grid: Dim3,
    block: Dim3,
    shared: usize,
    stream: Stream,
}

thread_local! {
    /// Configurations whose stubs have not been entered yet; nested, since arguments may launch kernels too.
    static PUSHED: RefCell<Vec<Configuration>> = const { RefCell::new(Vec::new()) };
}

/// `cudaErrorCudartUnloading`
const UNLOADING: u32 = 4;

/// Translates the driver's error about a launch shape; errors about shared memory keep their code.
fn shape_error(code: Code, function: usize, shared: u32) -> Code {
    /// `cudaErrorInvalidConfiguration`
    const CONFIGURATION: u32 = 9;
    /// `CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES`
    const MAX_SHARED: u32 = 8;
    let fits = || attribute(function, MAX_SHARED).is_ok_and(|most| i64::from(shared) <= i64::from(most));
    match code {
        Code::INVALID_VALUE if fits() => Code::outcome(CONFIGURATION).err().unwrap_or(code),
        other => other,
    }
}

fn launch(function: usize, grid: Dim3, block: Dim3, params: Ptr, shared: usize, stream: Stream) -> Outcome {
    let shared = u32::try_from(shared).map_err(|_| Code::INVALID_VALUE)?;
    let (g, b) = (grid, block);
    driver::cuLaunchKernel(function, g.x, g.y, g.z, b.x, b.y, b.z, shared, stream, params, Ptr::NULL)
        .map_err(|code| shape_error(code, function, shared))
}

/// The driver's kernel for a launch. A launch that cannot begin is reported to the driver, since many programs ignore the error.
fn kernel_to_launch(host: Ptr) -> Result<usize, Code> {
    kernel(host).inspect_err(|code| {
        if [Code::NO_BINARY_FOR_GPU, Code::INVALID_PTX].contains(code) {
            // Another driver than margay's keeps no account.
            let _ = driver::margayLaunchRefused();
        }
    })
}

fn attribute(function: usize, number: u32) -> Result<i32, Code> {
    let mut value = 0i32;
    driver::cuFuncGetAttribute(Ptr::to(&mut value), number, function)?;
    Ok(value)
}

#[allow(unsafe_code)]
#[unsafe(no_mangle)]
extern "C" fn __cudaPushCallConfiguration(grid: Dim3, block: Dim3, shared: usize, stream: Stream) -> u32 {
    let pushed = PUSHED.try_with(|pushed| pushed.borrow_mut().push(Configuration { grid, block, shared, stream }));
    pushed.map_or(UNLOADING, |()| 0)
}

#[allow(unsafe_code)]
#[unsafe(no_mangle)]
extern "C" fn __cudaPopCallConfiguration(grid: Ptr, block: Ptr, shared: Ptr, stream: Ptr) -> u32 {
    enter("__cudaPopCallConfiguration", || {
        let popped = PUSHED.try_with(|pushed| pushed.borrow_mut().pop()).ok().flatten();
        let popped = popped.ok_or(Code::MISSING_CONFIGURATION)?;
        grid.write(0, popped.grid)?;
        block.write(0, popped.block)?;
        shared.write(0, popped.shared)?;
        stream.write(0, popped.stream)
    })
}

/// The driver takes a structure of the same layout, but its function is a driver handle, not a host function.
fn ex(config: Ptr, host: Ptr, params: Ptr) -> Outcome {
    // Grid and block: 24 bytes; then shared memory (`size_t`), stream, attributes, number of attributes. The driver has
    // 32 bits of shared memory directly after the block.
    #[repr(C)]
    #[derive(Clone, Copy, AnyBitPattern)]
    struct Runtime {
        shape: [u32; 6],
        shared: usize,
        stream: Stream,
        attributes: u64,
        count: u32,
    }
    #[repr(C)]
    struct Driver {
        shape: [u32; 6],
        shared: u32,
        stream: Stream,
        attributes: u64,
        count: u32,
    }
    let Runtime { shape, shared, stream, attributes, count } = config.read(0)?;
    let shared = u32::try_from(shared).map_err(|_| Code::INVALID_VALUE)?;
    let config = Driver { shape, shared, stream: stream.driver_handle(), attributes, count };
    let function = kernel_to_launch(host)?;
    driver::cuLaunchKernelEx(Ptr::of(&config), function, params, Ptr::NULL)
        .map_err(|code| shape_error(code, function, shared))
}

/// `cudaFuncAttributes`: three sizes, then ints; the driver's attributes in the order of the structure.
fn attributes(out: Ptr, function: usize) -> Outcome {
    const SIZES: [u32; 3] = [1, 2, 3]; // shared, constant, local
    const NUMBERS: &[u32] = &[0, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 14];
    // CUDA 11 has only the first seven ints.
    let (size, numbers) = if cfg!(cuda11) { (56, &NUMBERS[..7]) } else { (144, NUMBERS) };
    for offset in (0..size).step_by(8) {
        out.write(offset, 0u64)?;
    }
    for (i, number) in SIZES.into_iter().enumerate() {
        out.write(8 * i, attribute(function, number)? as usize)?;
    }
    for (i, number) in numbers.iter().enumerate() {
        out.write(24 + 4 * i, attribute(function, *number)?)?;
    }
    Ok(())
}

api! {
    + ptsz fn cudaLaunchKernel(host: Ptr, grid: Dim3, block: Dim3, params: Ptr, shared: usize, stream: Stream) {
        launch(kernel_to_launch(host)?, grid, block, params, shared, stream)
    }
    + ptsz fn __cudaLaunchKernel(function: usize, grid: Dim3, block: Dim3, params: Ptr, shared: usize, stream: Stream) {
        match function {
            0 => Err(Code::INVALID_DEVICE_FUNCTION), // `__cudaGetKernel` said why
            function => launch(function, grid, block, params, shared, stream),
        }
    }
    fn __cudaGetKernel(out: Ptr, host: Ptr) { out.write(0, kernel_to_launch(host)?) }
    fn cudaGetKernel(out: Ptr, host: Ptr) { out.write(0, kernel(host)?) }
    fn cudaGetFuncBySymbol(out: Ptr, host: Ptr) { out.write(0, function(host)?) }
    + ptsz fn cudaLaunchKernelExC(config: Ptr, host: Ptr, params: Ptr) { ex(config, host, params) }
    + ptsz fn cudaLaunchCooperativeKernel(host: Ptr, grid: Dim3, block: Dim3, params: Ptr, shared: usize, stream: Stream) {
        let (g, b, shared) = (grid, block, u32::try_from(shared).map_err(|_| Code::INVALID_VALUE)?);
        let function = kernel_to_launch(host)?;
        driver::cuLaunchCooperativeKernel(function, g.x, g.y, g.z, b.x, b.y, b.z, shared, stream, params)
            .map_err(|code| shape_error(code, function, shared))
    }
    fn cudaFuncGetAttributes(out: Ptr, host: Ptr) { attributes(out, kernel(host)?) }
    fn cudaFuncSetAttribute(host: Ptr, number: u32, value: i32) {
        driver::cuFuncSetAttribute(kernel(host)?, number, value)
    }
    fn cudaFuncSetCacheConfig(host: Ptr, _config: u32) { kernel(host).map(drop) }
    fn cudaFuncSetSharedMemConfig(host: Ptr, config: u32) { driver::cuFuncSetSharedMemConfig(kernel(host)?, config) }
    fn cudaKernelSetAttributeForDevice(kernel: usize, number: u32, value: i32, device: i32) {
        driver::cuKernelSetAttribute(number, value, kernel, device)
    }
    fn cudaFuncGetName(out: Ptr, host: Ptr) { driver::cuFuncGetName(out, kernel(host)?) }
    fn cudaFuncGetParamInfo(host: Ptr, index: usize, offset: Ptr, size: Ptr) {
        driver::cuFuncGetParamInfo(kernel(host)?, index, offset, size)
    }
    fn cudaFuncGetParamCount(host: Ptr, count: Ptr) { driver::cuFuncGetParamCount(kernel(host)?, count) }
    fn cudaOccupancyMaxActiveBlocksPerMultiprocessor(count: Ptr, host: Ptr, block: i32, dynamic: usize) {
        driver::cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(count, kernel(host)?, block, dynamic, 0)
    }
    fn cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        count: Ptr, host: Ptr, block: i32, dynamic: usize, flags: u32,
    ) {
        driver::cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(count, kernel(host)?, block, dynamic, flags)
    }
    fn cudaOccupancyAvailableDynamicSMemPerBlock(bytes: Ptr, host: Ptr, ctas: i32, block: i32) {
        driver::cuOccupancyAvailableDynamicSMemPerBlock(bytes, kernel(host)?, ctas, block)
    }
    fn cudaOccupancyMaxPotentialClusterSize(size: Ptr, host: Ptr, _config: Ptr) {
        driver::cuOccupancyMaxPotentialClusterSize(size, kernel(host)?, Ptr::NULL)
    }
    fn cudaOccupancyMaxActiveClusters(count: Ptr, host: Ptr, _config: Ptr) {
        driver::cuOccupancyMaxActiveClusters(count, kernel(host)?, Ptr::NULL)
    }
}

/// Returns and resets the last error; the sticky error of a context whose kernel failed remains.
#[allow(unsafe_code, non_snake_case)]
#[unsafe(no_mangle)]
pub extern "C" fn cudaGetLastError() -> u32 {
    last_error(true).number()
}

/// Returns the last error.
#[allow(unsafe_code, non_snake_case)]
#[unsafe(no_mangle)]
pub extern "C" fn cudaPeekAtLastError() -> u32 {
    last_error(false).number()
}

/// The name of an error.
#[allow(unsafe_code, non_snake_case)]
#[unsafe(no_mangle)]
pub extern "C" fn cudaGetErrorName(error: u32) -> Ptr {
    Ptr::of(Code::words(error).0.as_bytes())
}

/// The description of an error.
#[allow(unsafe_code, non_snake_case)]
#[unsafe(no_mangle)]
pub extern "C" fn cudaGetErrorString(error: u32) -> Ptr {
    Ptr::of(Code::words(error).1.as_bytes())
}
