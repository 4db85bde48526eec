//! The device and the driver itself (CUDA Driver API, "Initialization", "Version Management", "Device Management",
//! "Error Handling").

use crate::{
    api::{api, check_environment},
    code::{Code, Outcome},
    driver::{driver, initialize},
    facts::{self, Facts},
    handle::Handle,
    memory::pool::{Pool, Source},
    raw::{Host, In, Out, Text, forever},
    visible::{count, visible, why_none},
};
use bytemuck::AnyBitPattern;
use margay::profile::{CLOCK, CUDA, DRIVER, Profile, bus_place, uuid, uuid_text};
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    ffi::c_char,
    sync::{Once, OnceLock},
};

// NVML and `nvidia-smi` say the same.
const _: () = assert!(crate::facts::CLOCK == CLOCK);

/// The device profile that programs see: margay's own unless the environment selects another one.
pub fn profile() -> &'static Profile {
    static PROFILE: OnceLock<Profile> = OnceLock::new();
    PROFILE.get_or_init(|| Profile::from_environment().unwrap_or_default())
}

/// The compute capability that programs see. PTX for newer devices is accepted all the same.
pub fn capability() -> (i32, i32) {
    let (major, minor) = profile().capability;
    (major as i32, minor as i32)
}

/// Number of multiprocessors that programs see: one per host thread unless the profile sets it.
pub fn multiprocessors() -> i32 {
    let own = || driver().map_or(1, |d| d.device.threads() as i32);
    profile().multiprocessors.map_or_else(own, |n| n as i32)
}

/// Checks a device number.
pub fn check(device: i32) -> Outcome {
    driver()?;
    if (0..count()).contains(&device) { Ok(()) } else { Err(Code::INVALID_DEVICE) }
}

/// Size of device memory in bytes, and the limit of allocations.
pub fn total_memory() -> u64 {
    static TOTAL: OnceLock<u64> = OnceLock::new();
    *TOTAL.get_or_init(|| profile().total_memory())
}

/// The device in a line, for people.
pub fn described() -> String {
    let (major, minor) = capability();
    format!("{} ({major}.{minor}, {} multiprocessors)", profile().shown_name(), multiprocessors())
}

/// `CUdevice_attribute`. Programs size their launches by some of the values, which are those of a current device; attributes
/// without a counterpart are 0.
pub fn attribute(number: u32, device: i32) -> Option<i32> {
    let limits = profile().limits;
    Some(match number {
        1 => 1024,                                 // threads per block
        2 | 3 => 1024,                             // block x, y
        4 => 64,                                   // block z
        5 => i32::MAX,                             // grid x
        6 | 7 => 65535,                            // grid y, z
        8 => 48 << 10,                             // shared memory per block, without opting in
        9 => 64 << 10,                             // constant memory
        10 => 32,                                  // warp
        11 => i32::MAX,                            // pitch
        12 | 82 => 65536,                          // registers per block, per multiprocessor
        13 | 36 => CLOCK as i32,                   // clock rates, kHz
        14 | 30 => 512,                            // alignment of textures and surfaces
        15 => 1,                                   // copies concurrent with kernels
        16 => multiprocessors(),                   // multiprocessors: one a thread of the host
        18 => i32::from(profile().name.is_none()), // integrated: the memory is the host's, but GPUs by name have their own
        19 | 41 | 83 => 1,                         // mapped memory, unified addressing, managed memory
        21 | 69 | 77 => 131_072,                   // texture 1-D
        22 | 23 | 70 | 71 => 131_072,              // texture 2-D
        24..=26 | 47..=49 => 16_384,               // texture 3-D
        27 | 28 => 32_768,                         // layered 2-D
        29 | 43 | 62 | 65 => 2048,                 // layers
        31 => 1,                                   // concurrent kernels
        37 => 384,                                 // bus width, bits
        38 => limits.cache as i32,                 // L2
        39 => limits.threads as i32,               // threads per multiprocessor
        40 => 1,                                   // copy engines
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
        78..=80 => 1, // priorities, caches
        81 => profile().shown_shared() as i32,
        86 => 1,                  // atomics with the host
        87 => 2,                  // single to double precision
        89 => 1,                  // managed memory may be used by both at once
        90 => 1,                  // preemption
        95 => 1,                  // cooperative launch
        92..=94 | 122 | 123 => 1, // stream memory operations, of 64 bits too, all comparisons
        97 => limits.shared_of_cta as i32,
        91 | 99 => 1, // registered host memory, under the host's addresses
        101 => 1,
        102 | 103 => 1, // virtual memory management, by file descriptors too
        106 => limits.ctas as i32,
        111 => 1 << 10,                        // reserved shared memory
        115 | 144 => 1,                        // memory pools: of the device, of the host
        120 => i32::from(capability().0 >= 9), // clusters
        127 => i32::from(capability().0 >= 9), // tensor maps
        126 => 1,
        130 => 0,
        131 | 134 => -1,                                                 // NUMA nodes: none
        34 => visible().get(device as usize).copied().unwrap_or(device), // on the bus
        17 | 20 | 32 | 33 | 35 | 50 | 84 | 85 | 88 | 96 | 98 | 100 | 104 | 105 | 107..=110 | 112..=114 => 0,
        119 | 125 => 1, // memory pools for other processes by file descriptors; events for other processes
        116..=118 | 121 | 124 | 128 | 129 | 132 | 133 | 135..=160 => 0,
        _ => return None,
    })
}

/// `CUuuid`
type Uuid = [u8; 16];

/// The address on the bus, with a domain of four digits.
fn bus_id(device: i32) -> String {
    format!("0000:{}", bus_place(visible()[device as usize] as u32))
}

/// Domain, bus, device and function in a PCI bus id: hexadecimal numbers of any width; domain and function may be omitted.
fn bus_numbers(id: &str) -> Option<[u32; 4]> {
    let number = |digits: &str| u32::from_str_radix(digits, 16).ok();
    let (place, function) = id.split_once('.').unwrap_or((id, "0"));
    let numbers = place.split(':').map(number).collect::<Option<Vec<u32>>>()?;
    match *numbers {
        [bus, device] => Some([0, bus, device, number(function)?]),
        [domain, bus, device] => Some([domain, bus, device, number(function)?]),
        _ => None,
    }
}

/// `CUdevprop`
#[repr(C)]
#[derive(Clone, Copy, AnyBitPattern)]
pub struct Properties([i32; 14]);

crate::api::function! {
    /// Describes a device to margay's NVML, by its number without `CUDA_VISIBLE_DEVICES`. Needs no `cuInit`, and starts nothing.
    margayDescribe(device: u32, out: Out<Facts>) {
        if device >= profile().count {
            return Err(Code::INVALID_DEVICE);
        }
        let (free, own) = match driver() {
            Ok(driver) => (crate::memory::room::free(driver.device.memory()), crate::memory::room::used(driver.device.memory())),
            Err(_) => (profile().free_memory(), 0),
        };
        out.set(Facts {
            uuid: facts::text(&format!("GPU-{}", uuid_text(device))),
            name: facts::text(&profile().shown_name()),
            release: facts::text(DRIVER),
            capability: [profile().capability.0, profile().capability.1],
            count: profile().count,
            cuda: CUDA as u32,
            total: total_memory(),
            free,
            own,
        })
    }
}

/// A static string of the API, as an address.
fn constant(number: u32, which: fn((&'static str, &'static str)) -> &'static str) -> Option<usize> {
    static KNOWN: OnceLock<Mutex<HashMap<&'static str, usize>>> = OnceLock::new();
    let text = which(Code::of(number)?);
    let mut known = KNOWN.get_or_init(Mutex::default).lock();
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
        if let Err(error) = check_environment() {
            crate::api::report_error(&format!("margay: {error}"));
            return Err(Code::NO_DEVICE);
        }
        if let Some(why) = why_none() {
            static TOLD: Once = Once::new();
            TOLD.call_once(|| crate::api::report_error(&format!("margay: {why}")));
            return Err(Code::NO_DEVICE);
        }
        initialize()
    }
    2020 fn cuDriverGetVersion(version: Out<i32>) { version.set(CUDA) }
    6000 fn cuGetErrorName(error: u32, name: Out<usize>) { set_constant(name, constant(error, |(name, _)| name)) }
    6000 fn cuGetErrorString(error: u32, text: Out<usize>) { set_constant(text, constant(error, |(_, text)| text)) }

    2000 fn cuDeviceGet(device: Out<i32>, ordinal: i32) {
        check(ordinal)?;
        device.set(ordinal)
    }
    2000 fn cuDeviceGetCount(number: Out<i32>) {
        driver()?;
        number.set(count())
    }
    2000 fn cuDeviceGetName(out: Out<c_char>, len: i32, device: i32) {
        check(device)?;
        out.set_text(&profile().shown_name(), usize::try_from(len).map_err(|_| Code::INVALID_VALUE)?)
    }
    9020 fn cuDeviceGetUuid(out: Out<Uuid>, device: i32) {
        check(device)?;
        out.set(uuid(visible()[device as usize] as u32))
    }
    11040 fn cuDeviceGetUuid_v2(out: Out<Uuid>, device: i32) {
        check(device)?;
        out.set(uuid(visible()[device as usize] as u32))
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
        value.set(attribute(number, device).ok_or(Code::INVALID_VALUE)?)
    }
    2000 fn cuDeviceComputeCapability(major: Out<i32>, minor: Out<i32>, device: i32) {
        check(device)?;
        major.set(capability().0)?;
        minor.set(capability().1)
    }
    2000 fn cuDeviceGetProperties(properties: Out<Properties>, device: i32) {
        check(device)?;
        let of = |n| attribute(n, device).unwrap_or(0);
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
        can.set(i32::from(device != peer))
    }
    8000 fn cuDeviceGetP2PAttribute(value: Out<i32>, number: u32, from: i32, to: i32) {
        check(from)?;
        check(to)?;
        if from == to {
            value.set(0)?;
            return Err(Code::INVALID_DEVICE); // a device has no attributes towards itself
        }
        // Performance rank, access supported, native atomics, CUDA array access.
        value.set(match number {
            1 => 0,
            2..=4 => 1,
            _ => return Err(Code::INVALID_VALUE),
        })
    }
    4010 fn cuDeviceGetPCIBusId(id: Out<c_char>, len: i32, device: i32) {
        check(device)?;
        id.set_text(&bus_id(device), usize::try_from(len).map_err(|_| Code::INVALID_VALUE)?)
    }
    4010 fn cuDeviceGetByPCIBusId(device: Out<i32>, id: Text) {
        driver()?;
        let place = bus_numbers(&id.text()?).ok_or(Code::INVALID_VALUE)?;
        let found = (0..count()).find(|number| bus_numbers(&bus_id(*number)) == Some(place)).ok_or(Code::INVALID_DEVICE)?;
        device.set(found)
    }
    11020 fn cuDeviceGetDefaultMemPool(pool: Out<Handle<Pool>>, device: i32) {
        check(device)?;
        pool.set(driver()?.default_pools[Source::Device as usize])
    }
    11020 fn cuDeviceGetMemPool(pool: Out<Handle<Pool>>, device: i32) {
        check(device)?;
        pool.set(crate::memory::pool::current(Source::Device)?)
    }
    11020 fn cuDeviceSetMemPool(device: i32, pool: Handle<Pool>) {
        check(device)?;
        crate::memory::pool::set_current(Source::Device, pool)
    }
    11030 fn cuFlushGPUDirectRDMAWrites(_target: u32, _scope: u32) { Err(Code::NOT_SUPPORTED) }

    /// These tables are not documented. Programs that can do without them continue; NVIDIA's own runtime
    /// cannot, and if one is linked into the program, that is reported once.
    3000 fn cuGetExportTable(table: Out<usize>, _id: In<Uuid>) {
        crate::module::image::foreign_runtimes().iter().for_each(|words| crate::api::report_error(words));
        table.offer(0);
        Err(Code::NOT_FOUND)
    }

    4000 fn cuProfilerInitialize(_config: Host, _output: Host, _mode: u32) { driver().map(drop) }
    4000 fn cuProfilerStart() { driver().map(drop) }
    4000 fn cuProfilerStop() { driver().map(drop) }
}
