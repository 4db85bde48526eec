//! Devices and versions (CUDA Runtime API, "Device Management", "Version Management", "Driver Entry Point Access").

use crate::{
    api::{api, is_thread_stream, primary, same},
    driver,
    error::{Code, Outcome},
    raw::Ptr,
    register,
};

/// The version of the API that this library speaks.
const VERSION: i32 = 13050;

fn check(device: i32) -> Outcome {
    if device == 0 { Ok(()) } else { Err(Code::INVALID_DEVICE) }
}

fn attribute(number: u32) -> Result<i32, Code> {
    let mut value = 0i32;
    driver::cuDeviceGetAttribute(Ptr::to(&mut value), number, 0)?;
    Ok(value)
}

/// Fields of `cudaDeviceProp` of 32 bits: byte offset, attribute of the driver.
#[rustfmt::skip]
const FIELDS: &[(usize, u32)] = &[
    (304, 12), (308, 10), (320, 1), (324, 2), (328, 3), (332, 4), (336, 5), (340, 6), (344, 7),
    (360, 75), (364, 76), (384, 16), (388, 18), (392, 19),
    (396, 21), (400, 77), (404, 22), (408, 23), (412, 73), (416, 74), (420, 70), (424, 71), (428, 72), (432, 45), (436, 46),
    (440, 24), (444, 25), (448, 26), (452, 47), (456, 48), (460, 49), (464, 52), (468, 42), (472, 43),
    (476, 27), (480, 28), (484, 29), (488, 53), (492, 54), (496, 55), (500, 56), (504, 57), (508, 58), (512, 59), (516, 60),
    (520, 61), (524, 62), (528, 63), (532, 64), (536, 65), (540, 66), (544, 67), (548, 68),
    (560, 31), (564, 32), (568, 33), (572, 34), (576, 50), (580, 35), (584, 40), (588, 41), (592, 37), (596, 38), (600, 108),
    (604, 39), (608, 78), (612, 79), (616, 80), (632, 82), (636, 83), (640, 84), (644, 85), (648, 86), (652, 88), (656, 89),
    (660, 90), (664, 91), (668, 95), (680, 100), (684, 101), (688, 106), (692, 109), (704, 99), (708, 112), (712, 113),
    (716, 114), (720, 115), (724, 116), (728, 117), (732, 118), (736, 119), (740, 121), (744, 125), (748, 120), (752, 129),
    (756, 130), (760, 131), (764, 133), (768, 134), (772, 139), (776, 140),
];

/// The same, of 64 bits.
const LONG_FIELDS: &[(usize, u32)] =
    &[(296, 8), (312, 11), (352, 9), (368, 14), (376, 51), (552, 30), (624, 81), (672, 97), (696, 111)];

/// Bytes of `cudaDeviceProp` of CUDA 13; name, UUID and memory stand at 0, 256 and 288.
const SIZE: usize = 1008;

fn properties(out: Ptr) -> Outcome {
    for offset in (0..SIZE).step_by(8) {
        out.write(offset, 0u64)?;
    }
    driver::cuDeviceGetName(out, 256, 0)?;
    driver::cuDeviceGetUuid_v2(Ptr::at(out.number() + 256), 0)?;
    driver::cuDeviceTotalMem_v2(Ptr::at(out.number() + 288), 0)?;
    for (offset, number) in FIELDS {
        out.write(*offset, attribute(*number)?)?;
    }
    for (offset, number) in LONG_FIELDS {
        out.write(*offset, attribute(*number)? as u64)?;
    }
    Ok(())
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
    fn cudaGetDevice(device: Ptr) { device.write(0, 0i32) }
    fn cudaSetDevice(device: i32) {
        check(device)?;
        primary()
    }
    fn cudaInitDevice(device: i32, _device_flags: u32, _flags: u32) { check(device) }
    fn cudaSetValidDevices(_devices: Ptr, _count: i32) { Ok(()) }
    fn cudaChooseDevice(device: Ptr, _properties: Ptr) { device.write(0, 0i32) }
    fn cudaSetDeviceFlags(flags: u32) { driver::cuDevicePrimaryCtxSetFlags_v2(0, flags) }
    fn cudaGetDeviceFlags(flags: Ptr) {
        let mut active = 0i32;
        driver::cuDevicePrimaryCtxGetState(0, flags, Ptr::to(&mut active))
    }
    fn cudaGetDeviceProperties(out: Ptr, device: i32) {
        check(device)?;
        properties(out)
    }
    fn cudaDeviceReset() {
        register::unload();
        driver::cuDevicePrimaryCtxReset_v2(0)?;
        primary()
    }
    fn cudaDeviceEnablePeerAccess(_peer: i32, _flags: u32) { Err(Code::INVALID_DEVICE) }
    fn cudaDeviceDisablePeerAccess(_peer: i32) { Err(Code::INVALID_DEVICE) }
    fn cudaCtxResetPersistingL2Cache() { Ok(()) }
    fn cudaProfilerStart() { Ok(()) }
    fn cudaProfilerStop() { Ok(()) }
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
