//! The device and the driver itself (CUDA Driver API, "Initialization", "Version Management", "Device Management",
//! "Error Handling").

use crate::{
    api::api,
    code::{Code, Outcome},
    driver::{driver, initialise},
    handle::Handle,
    pool::Pool,
    raw::{Host, In, Out, Text, forever},
};
use std::{
    collections::HashMap,
    ffi::c_char,
    sync::{Mutex, Once, OnceLock, PoisonError},
};

/// The version of the API that this library speaks: 13.5.
const VERSION: i32 = 13050;

/// The compute capability that programs see. PTX for newer devices is taken all the same. `MARGAY_COMPUTE_CAPABILITY=9.0`
/// changes it.
pub fn capability() -> (i32, i32) {
    static CAPABILITY: OnceLock<(i32, i32)> = OnceLock::new();
    *CAPABILITY.get_or_init(|| {
        let wanted = std::env::var("MARGAY_COMPUTE_CAPABILITY").ok();
        let parsed = wanted.as_deref().and_then(|v| v.split_once('.')).map(|(a, b)| (a.parse(), b.parse()));
        match parsed {
            Some((Ok(major), Ok(minor))) => (major, minor),
            _ => (8, 9),
        }
    })
}

/// Whether there is a device of that number.
pub fn check(device: i32) -> Outcome {
    driver()?;
    if device == 0 { Ok(()) } else { Err(Code::INVALID_DEVICE) }
}

/// Bytes of memory of the host, which the device shares.
pub fn total_memory() -> u64 {
    static TOTAL: OnceLock<u64> = OnceLock::new();
    *TOTAL.get_or_init(|| {
        let info = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let kib = info
            .lines()
            .find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix("kB")?.trim().parse().ok());
        kib.unwrap_or(8u64 << 20) << 10
    })
}

/// The processor's name.
fn processor() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':').map(|(_, name)| name.trim()));
    model.unwrap_or(std::env::consts::ARCH).to_string()
}

/// `CUdevice_attribute`: numbers that programs size their launches by are those of a current device; what margay has no
/// counterpart of is 0.
fn attribute(number: u32) -> Option<i32> {
    let multiprocessors = || driver().map_or(1, |d| d.device.threads() as i32);
    Some(match number {
        1 => 1024,                    // threads per block
        2 | 3 => 1024,                // block x, y
        4 => 64,                      // block z
        5 => i32::MAX,                // grid x
        6 | 7 => 65535,               // grid y, z
        8 => 48 << 10,                // shared memory per block, without opting in
        9 => 64 << 10,                // constant memory
        10 => 32,                     // warp
        11 => i32::MAX,               // pitch
        12 | 82 => 65536,             // registers per block, per multiprocessor
        13 | 36 => 1_000_000,         // clock rates, kHz
        14 | 30 => 512,               // alignment of textures and surfaces
        15 => 1,                      // copies beside kernels
        16 => multiprocessors(),      // multiprocessors: one a thread of the host
        18 => 1,                      // integrated: the memory is the host's
        19 | 41 | 83 => 1,            // mapped memory, unified addressing, managed memory
        21 | 69 | 77 => 131_072,      // texture 1-D
        22 | 23 | 70 | 71 => 131_072, // texture 2-D
        24..=26 | 47..=49 => 16_384,  // texture 3-D
        27 | 28 => 32_768,            // layered 2-D
        29 | 43 | 62 | 65 => 2048,    // layers
        31 => 1,                      // concurrent kernels
        37 => 384,                    // bus width, bits
        38 => 32 << 20,               // L2
        39 => 2048,                   // threads per multiprocessor
        40 => 1,                      // copy engines
        42 | 52 | 53 | 66 | 67 => 32_768,
        44 => 1, // texture gather
        45 | 46 => 32_768,
        51 => 32, // texture pitch alignment
        54 | 68 => 2046,
        55..=57 | 61 | 63 | 64 => 32_768,
        58..=60 => 16_384,
        72 => 2_097_120,
        73 | 74 => 32_768,
        75 => capability().0,
        76 => capability().1,
        78..=80 => 1,    // priorities, caches
        81 => 228 << 10, // shared memory per multiprocessor
        86 => 1,         // atomics with the host
        87 => 2,         // single to double precision
        89 => 1,         // managed memory may be used by both at once
        90 => 1,         // preemption
        95 => 1,         // cooperative launch
        97 => 227 << 10, // shared memory per block, opting in
        91 | 99 => 1,    // registered host memory, under the host's addresses
        101 => 1,
        102 | 103 => 1,                        // virtual memory management, by file descriptors too
        106 => 32,                             // blocks per multiprocessor
        111 => 1 << 10,                        // reserved shared memory
        115 => 1,                              // memory pools
        120 => i32::from(capability().0 >= 9), // clusters
        127 => i32::from(capability().0 >= 9), // tensor maps
        126 => 1,
        130 => 0,
        131 | 134 => -1, // NUMA nodes: none
        17 | 20 | 32..=35 | 50 | 84 | 85 | 88 | 92..=94 | 96 | 98 | 100 | 104 | 105 | 107..=110 | 112..=114 => 0,
        116..=119 | 121..=125 | 128 | 129 | 132 | 133 | 135..=160 => 0,
        _ => return None,
    })
}

/// `CUuuid`
type Uuid = [u8; 16];

/// Says who made it; the same on every machine.
const UUID: Uuid = *b"margay-cpu-0\0\0\0\0";

/// `CUdevprop`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Properties([i32; 14]);

/// A string of the API that lives for ever.
fn constant(number: u32, which: fn((&'static str, &'static str)) -> &'static str) -> Option<usize> {
    static KNOWN: OnceLock<Mutex<HashMap<&'static str, usize>>> = OnceLock::new();
    let text = which(Code::of(number)?);
    let mut known = KNOWN.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    Some(*known.entry(text).or_insert_with(|| forever(text).expose_provenance()))
}

fn set_constant(out: Out<usize>, address: Option<usize>) -> Outcome {
    out.set(address.unwrap_or(0))?;
    address.map(drop).ok_or(Code::INVALID_VALUE)
}

api! {
    2000 fn cuInit(flags: u32) {
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        initialise()
    }
    2020 fn cuDriverGetVersion(version: Out<i32>) { version.set(VERSION) }
    6000 fn cuGetErrorName(error: u32, name: Out<usize>) { set_constant(name, constant(error, |(name, _)| name)) }
    6000 fn cuGetErrorString(error: u32, text: Out<usize>) { set_constant(text, constant(error, |(_, text)| text)) }

    2000 fn cuDeviceGet(device: Out<i32>, ordinal: i32) {
        check(ordinal)?;
        device.set(ordinal)
    }
    2000 fn cuDeviceGetCount(count: Out<i32>) {
        driver()?;
        count.set(1)
    }
    2000 fn cuDeviceGetName(name: Out<c_char>, len: i32, device: i32) {
        check(device)?;
        name.set_text(&format!("margay ({})", processor()), usize::try_from(len).map_err(|_| Code::INVALID_VALUE)?)
    }
    9020 fn cuDeviceGetUuid(uuid: Out<Uuid>, device: i32) {
        check(device)?;
        uuid.set(UUID)
    }
    11040 fn cuDeviceGetUuid_v2(uuid: Out<Uuid>, device: i32) {
        check(device)?;
        uuid.set(UUID)
    }
    10000 fn cuDeviceGetLuid(_luid: Out<c_char>, _mask: Out<u32>, device: i32) {
        check(device)?;
        Err(Code::NOT_SUPPORTED)
    }
    2000 fn cuDeviceTotalMem(bytes: Out<u32>, device: i32) {
        check(device)?;
        bytes.set(total_memory().min(u32::MAX.into()) as u32)
    }
    3020 fn cuDeviceTotalMem_v2(bytes: Out<usize>, device: i32) {
        check(device)?;
        bytes.set(total_memory() as usize)
    }
    2000 fn cuDeviceGetAttribute(value: Out<i32>, number: u32, device: i32) {
        check(device)?;
        value.set(attribute(number).ok_or(Code::INVALID_VALUE)?)
    }
    2000 fn cuDeviceComputeCapability(major: Out<i32>, minor: Out<i32>, device: i32) {
        check(device)?;
        major.set(capability().0)?;
        minor.set(capability().1)
    }
    2000 fn cuDeviceGetProperties(properties: Out<Properties>, device: i32) {
        check(device)?;
        let of = |n| attribute(n).unwrap_or(0);
        properties.set(Properties([
            of(1), of(2), of(3), of(4), of(5), of(6), of(7), of(8), of(9), of(10), of(11), of(12), of(13), of(14),
        ]))
    }
    11010 fn cuDeviceGetTexture1DLinearMaxWidth(width: Out<usize>, _format: u32, _channels: u32, device: i32) {
        check(device)?;
        width.set(1 << 28)
    }
    11040 fn cuDeviceGetExecAffinitySupport(supported: Out<i32>, _kind: u32, device: i32) {
        check(device)?;
        supported.set(0)
    }
    4000 fn cuDeviceCanAccessPeer(can: Out<i32>, device: i32, peer: i32) {
        check(device)?;
        check(peer)?;
        can.set(0)
    }
    8000 fn cuDeviceGetP2PAttribute(value: Out<i32>, _attribute: u32, from: i32, to: i32) {
        check(from)?;
        check(to)?;
        value.set(0)?;
        Err(Code::INVALID_DEVICE) // a device has no attributes towards itself
    }
    4010 fn cuDeviceGetPCIBusId(id: Out<c_char>, len: i32, device: i32) {
        check(device)?;
        id.set_text("0000:00:00.0", usize::try_from(len).map_err(|_| Code::INVALID_VALUE)?)
    }
    4010 fn cuDeviceGetByPCIBusId(device: Out<i32>, id: Text) {
        driver()?;
        match id.text()?.as_str() {
            "0000:00:00.0" | "00:00.0" | "0000:00:00" => device.set(0),
            _ => Err(Code::INVALID_DEVICE),
        }
    }
    11020 fn cuDeviceGetDefaultMemPool(pool: Out<Handle<Pool>>, device: i32) {
        check(device)?;
        pool.set(driver()?.default_pool)
    }
    11020 fn cuDeviceGetMemPool(pool: Out<Handle<Pool>>, device: i32) {
        check(device)?;
        pool.set(crate::pool::current()?)
    }
    11020 fn cuDeviceSetMemPool(device: i32, pool: Handle<Pool>) {
        check(device)?;
        crate::pool::set_current(pool)
    }
    11030 fn cuFlushGPUDirectRDMAWrites(_target: u32, _scope: u32) { Err(Code::NOT_SUPPORTED) }

    /// The tables behind this are not documented; programs that can do without them go on. NVIDIA's own runtime cannot, and where it
    /// is inside a program, people are told so once.
    3000 fn cuGetExportTable(table: Out<usize>, _id: In<Uuid>) {
        static TOLD: Once = Once::new();
        TOLD.call_once(|| crate::image::foreign_runtimes().iter().for_each(|words| crate::api::tell(words)));
        table.offer(0);
        Err(Code::NOT_FOUND)
    }

    4000 fn cuProfilerInitialize(_config: Host, _output: Host, _mode: u32) { driver().map(drop) }
    4000 fn cuProfilerStart() { driver().map(drop) }
    4000 fn cuProfilerStop() { driver().map(drop) }
}
