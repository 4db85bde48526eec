//! Devices and versions (CUDA Runtime API, "Device Management", "Version Management", "Driver Entry Point Access").

use crate::{
    api::{api, current_device, is_thread_stream, primary, same},
    driver,
    error::{Code, Outcome},
    properties::Layout,
    raw::Ptr,
    register,
};

/// The API version of this library: the last one of its release.
const VERSION: i32 = if cfg!(cuda11) {
    11080
} else if cfg!(cuda12) {
    12090
} else {
    13050
};
/// The layout for `cudaGetDeviceProperties`: CUDA 12 has a second function for its own layout.
const LAYOUT: Layout = if cfg!(cuda13) { Layout::Cuda13 } else { Layout::Cuda11 };

fn check(device: i32) -> Outcome {
    let mut count = 0i32;
    driver::cuDeviceGetCount(Ptr::to(&mut count))?;
    if (0..count).contains(&device) { Ok(()) } else { Err(Code::INVALID_DEVICE) }
}

/// The primary context of a device, by which the driver identifies peers.
pub fn peer(device: i32) -> Result<usize, Code> {
    check(device)?;
    let mut context = 0usize;
    driver::cuDevicePrimaryCtxRetain(Ptr::to(&mut context), device)?;
    Ok(context)
}

/// An attribute of a device, by the driver's number.
pub fn attribute(number: u32, device: i32) -> Result<i32, Code> {
    let mut value = 0i32;
    driver::cuDeviceGetAttribute(Ptr::to(&mut value), number, device)?;
    Ok(value)
}

fn entry_point(name: Ptr, address: Ptr, version: i32, flags: u64, status: Ptr) -> Outcome {
    const PER_THREAD: u64 = 2; // cudaEnablePerThreadDefaultStream
    let flags = if flags == 0 && is_thread_stream() { PER_THREAD } else { flags };
    driver::cuGetProcAddress_v2(name, address, version, flags, status)
}

same! {
    cudaDriverGetVersion(version: Ptr) = cuDriverGetVersion;
    cudaGetDeviceCount(count: Ptr) = cuDeviceGetCount;
    cudaDeviceGetAttribute(value: Ptr, number: u32, device: i32) = cuDeviceGetAttribute;
    cudaDeviceGetPCIBusId(id: Ptr, len: i32, device: i32) = cuDeviceGetPCIBusId;
    cudaDeviceGetByPCIBusId(device: Ptr, id: Ptr) = cuDeviceGetByPCIBusId;
    cudaDeviceCanAccessPeer(can: Ptr, device: i32, peer: i32) = cuDeviceCanAccessPeer;
    cudaDeviceGetP2PAttribute(value: Ptr, number: u32, from: i32, to: i32) = cuDeviceGetP2PAttribute;
    cudaDeviceSynchronize() = cuCtxSynchronize;
    cudaDeviceSetLimit(limit: u32, value: usize) = cuCtxSetLimit;
    cudaDeviceGetLimit(value: Ptr, limit: u32) = cuCtxGetLimit;
    cudaDeviceSetCacheConfig(config: u32) = cuCtxSetCacheConfig;
    cudaDeviceGetCacheConfig(config: Ptr) = cuCtxGetCacheConfig;
    cudaDeviceGetStreamPriorityRange(least: Ptr, greatest: Ptr) = cuCtxGetStreamPriorityRange;
    cudaDeviceGetDefaultMemPool(pool: Ptr, device: i32) = cuDeviceGetDefaultMemPool;
    cudaDeviceGetMemPool(pool: Ptr, device: i32) = cuDeviceGetMemPool;
    cudaDeviceSetMemPool(device: i32, pool: usize) = cuDeviceSetMemPool;
    cudaDeviceGetSharedMemConfig(config: Ptr) = cuCtxGetSharedMemConfig;
    cudaDeviceSetSharedMemConfig(config: u32) = cuCtxSetSharedMemConfig;
    cudaDeviceGetGraphMemAttribute(device: i32, number: u32, value: Ptr) = cuDeviceGetGraphMemAttribute;
    cudaDeviceSetGraphMemAttribute(device: i32, number: u32, value: Ptr) = cuDeviceSetGraphMemAttribute;
    cudaDeviceGraphMemTrim(device: i32) = cuDeviceGraphMemTrim;
}

api! {
    fn cudaRuntimeGetVersion(version: Ptr) { version.write(0, VERSION) }
    fn cudaGetDevice(device: Ptr) { device.write(0, current_device()) }
    fn cudaSetDevice(device: i32) {
        check(device)?;
        primary(device)
    }
    fn cudaInitDevice(device: i32, _device_flags: u32, _flags: u32) { check(device) }
    fn cudaSetValidDevices(_devices: Ptr, _count: i32) { Ok(()) }
    fn cudaChooseDevice(device: Ptr, _properties: Ptr) { device.write(0, 0i32) }
    fn cudaSetDeviceFlags(flags: u32) { driver::cuDevicePrimaryCtxSetFlags_v2(current_device(), flags) }
    fn cudaGetDeviceFlags(flags: Ptr) {
        let mut active = 0i32;
        driver::cuDevicePrimaryCtxGetState(current_device(), flags, Ptr::to(&mut active))
    }
    fn cudaGetDeviceProperties(out: Ptr, device: i32) {
        check(device)?;
        LAYOUT.fill(out, device)
    }
    fn cudaDeviceReset() {
        register::reset()
    }
    fn cudaDeviceEnablePeerAccess(device: i32, flags: u32) {
        driver::cuCtxEnablePeerAccess(peer(device)?, flags).map_err(|code| match code {
            Code::PEER_ACCESS_UNSUPPORTED => Code::INVALID_DEVICE, // as it documents
            other => other,
        })
    }
    fn cudaDeviceDisablePeerAccess(device: i32) { driver::cuCtxDisablePeerAccess(peer(device)?) }
    fn cudaCtxResetPersistingL2Cache() { Ok(()) }
    fn cudaProfilerStart() { Ok(()) }
    fn cudaProfilerStop() { Ok(()) }
    #[cfg(cuda12)]
    fn cudaGetDeviceProperties_v2(out: Ptr, device: i32) {
        check(device)?;
        Layout::Cuda12.fill(out, device)
    }
    #[cfg(cuda11)]
    + ptsz fn cudaGetDriverEntryPoint(name: Ptr, address: Ptr, flags: u64) {
        entry_point(name, address, VERSION, flags, Ptr::NULL)
    }
    #[cfg(not(cuda11))]
    + ptsz fn cudaGetDriverEntryPoint(name: Ptr, address: Ptr, flags: u64, status: Ptr) {
        entry_point(name, address, VERSION, flags, status)
    }
    + ptsz fn cudaGetDriverEntryPointByVersion(name: Ptr, address: Ptr, version: u32, flags: u64, status: Ptr) {
        entry_point(name, address, version as i32, flags, status)
    }
    fn cudaGetExportTable(table: Ptr, _id: Ptr) {
        table.write(0, 0u64)?;
        Err(Code::NOT_SUPPORTED)
    }
}
