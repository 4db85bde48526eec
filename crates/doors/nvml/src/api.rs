//! The functions (NVML API Reference, "Initialization and Cleanup", "Error reporting", "System Queries", "Device Queries").
#![allow(unsafe_code, non_snake_case)]

use crate::{
    code::{Code, Outcome},
    driver,
    facts::{CLOCK, Facts, text},
    raw::{Out, Text},
};
use std::{
    ffi::{CStr, c_char},
    sync::atomic::{AtomicU32, Ordering::SeqCst},
};

/// How often the library was initialized and not shut down.
static USERS: AtomicU32 = AtomicU32::new(0);

/// `nvmlDevice_t`: the number of a device, and one more, since null is no device.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Device(usize);

impl Device {
    fn number(self) -> Result<u32, Code> {
        let number = self.0.checked_sub(1).and_then(|n| u32::try_from(n).ok()).ok_or(Code::INVALID_ARGUMENT)?;
        facts(number).map(|_| number)
    }

    fn facts(self) -> Result<Facts, Code> {
        facts(self.number()?)
    }

    /// Writes a clock in MHz: for every kind (`nvmlClockType_t`), the rate that the driver's attributes give.
    fn clock(self, kind: u32, clock: &Out<u32>) -> Outcome {
        self.number()?;
        if kind > 3 {
            return Err(Code::INVALID_ARGUMENT);
        }
        clock.set(CLOCK / 1000)
    }
}

fn facts(device: u32) -> Result<Facts, Code> {
    initialized()?;
    driver::facts(device)
}

fn initialized() -> Outcome {
    if USERS.load(SeqCst) == 0 { Err(Code::UNINITIALIZED) } else { Ok(()) }
}

/// The device that a test selects.
fn find(chosen: impl Fn(u32, &Facts) -> bool) -> Result<Device, Code> {
    let found = (0..facts(0)?.count).find(|number| facts(*number).is_ok_and(|facts| chosen(*number, &facts)));
    found.map(|number| Device(number as usize + 1)).ok_or(Code::NOT_FOUND)
}

/// A string up to its zero.
fn string(bytes: &[u8]) -> String {
    CStr::from_bytes_until_nul(bytes).unwrap_or_default().to_string_lossy().into_owned()
}

/// `nvmlDeviceArchitecture_t`
fn architecture([major, minor]: [u32; 2]) -> u32 {
    match (major, minor) {
        (5, _) => 3,        // Maxwell
        (6, _) => 4,        // Pascal
        (7, 5..) => 6,      // Turing
        (7, _) => 5,        // Volta
        (8, 9..) => 8,      // Ada
        (8, _) => 7,        // Ampere
        (9, _) => 9,        // Hopper
        (10..=12, _) => 10, // Blackwell
        _ => u32::MAX,
    }
}

/// `nvmlMemory_t`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Memory {
    total: u64,
    free: u64,
    used: u64,
}

/// `nvmlMemory_v2_t`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Memory2 {
    version: u32,
    total: u64,
    reserved: u64,
    free: u64,
    used: u64,
}

/// `nvmlMemory_v2`: the version in the upper byte, the size below.
const MEMORY_2: u32 = size_of::<Memory2>() as u32 | 2 << 24;

/// `nvmlPciInfo_t`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Pci {
    legacy: [u8; 16],
    domain: u32,
    bus: u32,
    device: u32,
    id: u32,
    subsystem: u32,
    text: [u8; 32],
}

/// `nvmlProcessInfo_t` of the second and third version of the functions.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Process {
    pid: u32,
    used: u64,
    instance: u32,
    compute_instance: u32,
}

/// `nvmlProcessInfo_v1_t`, of the function without a version.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Process1 {
    pid: u32,
    used: u64,
}

macro_rules! api {
    ($($name:ident ($($arg:ident: $ty:ty),* $(,)?) $body:block)*) => {
        $(
            /// See the NVML API Reference.
            #[unsafe(no_mangle)]
            pub extern "C" fn $name($($arg: $ty),*) -> u32 {
                let body = move || -> Outcome { $body };
                body().err().map_or(0, |code| code.0)
            }
        )*
    };
}

/// Functions without a counterpart on a CPU. The arguments are not looked at. Programs that resolve functions when they start fail if one of
/// theirs is missing: torch, NCCL and NVSHMEM look for those here.
macro_rules! not_supported {
    ($($name:ident)*) => { api! { $($name() { initialized()?; Err(Code::NOT_SUPPORTED) })* } };
}

/// `nvmlErrorString`
#[unsafe(no_mangle)]
pub extern "C" fn nvmlErrorString(code: u32) -> *const c_char {
    Code::text(code).as_ptr()
}

fn initialize() -> Outcome {
    driver::facts(0)?;
    USERS.fetch_add(1, SeqCst);
    Ok(())
}

fn compute_capability(device: Device) -> Result<[u32; 2], Code> {
    Ok(device.facts()?.capability)
}

/// The address on the bus: the devices have consecutive numbers there, as in the driver.
fn bus_id(number: u32) -> String {
    format!("00000000:00:{number:02X}.0")
}

/// The device at an address on the bus, whose domain has four digits or eight.
fn on_bus(id: &str) -> Result<Device, Code> {
    let id = id.to_uppercase();
    find(|number, _| bus_id(number).trim_start_matches("0000") == id.trim_start_matches("0000"))
}

/// The processes that use a device's memory: this one, or none. `count` holds the room of the array; `describe` makes an entry of the
/// identifier of the process and its bytes.
fn processes<T: Copy>(device: Device, count: &Out<u32>, infos: &Out<T>, describe: impl Fn(u32, u64) -> T) -> Outcome {
    let facts = device.facts()?;
    let room = count.get()?;
    count.set(u32::from(facts.own > 0))?;
    if facts.own == 0 {
        return Ok(());
    }
    if room == 0 || infos.is_null() {
        return Err(Code::INSUFFICIENT_SIZE);
    }
    infos.set(describe(std::process::id(), facts.own))
}

/// An entry of a device that is not partitioned.
fn process(pid: u32, used: u64) -> Process {
    Process { pid, used, instance: u32::MAX, compute_instance: u32::MAX }
}

api! {
    nvmlInit() { initialize() }
    nvmlInit_v2() { initialize() }
    nvmlInitWithFlags(_flags: u32) { initialize() }
    nvmlShutdown() {
        let down = USERS.fetch_update(SeqCst, SeqCst, |users| users.checked_sub(1));
        down.map(drop).map_err(|_| Code::UNINITIALIZED)
    }

    nvmlSystemGetDriverVersion(version: Out<c_char>, len: u32) {
        version.set_text(&string(&facts(0)?.release), len)
    }
    nvmlSystemGetNVMLVersion(version: Out<c_char>, len: u32) {
        let facts = driver::facts(0)?;
        version.set_text(&format!("{}.{}", facts.cuda / 1000, string(&facts.release)), len)
    }
    nvmlSystemGetCudaDriverVersion(version: Out<u32>) { version.set(driver::facts(0)?.cuda) }
    nvmlSystemGetCudaDriverVersion_v2(version: Out<u32>) { version.set(driver::facts(0)?.cuda) }
    nvmlSystemGetProcessName(pid: u32, name: Out<c_char>, len: u32) {
        initialized()?;
        let path = std::fs::read_link(format!("/proc/{pid}/exe")).map_err(|_| Code::NOT_FOUND)?;
        name.set_text(&path.to_string_lossy(), len)
    }

    nvmlDeviceGetCount(count: Out<u32>) { count.set(facts(0)?.count) }
    nvmlDeviceGetCount_v2(count: Out<u32>) { count.set(facts(0)?.count) }
    nvmlDeviceGetHandleByIndex(index: u32, device: Out<Device>) {
        facts(index)?;
        device.set(Device(index as usize + 1))
    }
    nvmlDeviceGetHandleByIndex_v2(index: u32, device: Out<Device>) {
        facts(index)?;
        device.set(Device(index as usize + 1))
    }
    nvmlDeviceGetHandleByUUID(id: Text, device: Out<Device>) {
        let id = id.text()?;
        device.set(find(|_, facts| string(&facts.uuid) == id)?)
    }
    nvmlDeviceGetHandleByPciBusId(id: Text, device: Out<Device>) {
        device.set(on_bus(&id.text()?)?)
    }
    nvmlDeviceGetHandleByPciBusId_v2(id: Text, device: Out<Device>) {
        device.set(on_bus(&id.text()?)?)
    }

    nvmlDeviceGetName(device: Device, name: Out<c_char>, len: u32) {
        name.set_text(&string(&device.facts()?.name), len)
    }
    nvmlDeviceGetUUID(device: Device, out: Out<c_char>, len: u32) { out.set_text(&string(&device.facts()?.uuid), len) }
    nvmlDeviceGetIndex(device: Device, index: Out<u32>) { index.set(device.number()?) }
    nvmlDeviceGetMinorNumber(device: Device, minor: Out<u32>) { minor.set(device.number()?) }
    nvmlDeviceGetBrand(device: Device, brand: Out<u32>) {
        device.number()?;
        brand.set(0) // unknown
    }
    nvmlDeviceGetArchitecture(device: Device, out: Out<u32>) { out.set(architecture(compute_capability(device)?)) }
    nvmlDeviceGetCudaComputeCapability(device: Device, major: Out<i32>, minor: Out<i32>) {
        let capability = compute_capability(device)?;
        major.set(capability[0] as i32)?;
        minor.set(capability[1] as i32)
    }
    nvmlDeviceGetMemoryInfo(device: Device, memory: Out<Memory>) {
        let Facts { total, free, .. } = device.facts()?;
        memory.set(Memory { total, free, used: total - free.min(total) })
    }
    nvmlDeviceGetMemoryInfo_v2(device: Device, memory: Out<Memory2>) {
        let Facts { total, free, .. } = device.facts()?;
        if memory.first::<u32>().get()? != MEMORY_2 {
            return Err(Code::ARGUMENT_VERSION_MISMATCH);
        }
        memory.set(Memory2 { version: MEMORY_2, total, reserved: 0, free, used: total - free.min(total) })
    }
    nvmlDeviceGetPciInfo_v3(device: Device, pci: Out<Pci>) {
        let number = device.number()?;
        let id = bus_id(number);
        let legacy = text(&id[4..]);
        pci.set(Pci { legacy, domain: 0, bus: 0, device: number, id: 0, subsystem: 0, text: text(&id) })
    }
    nvmlDeviceGetComputeMode(device: Device, mode: Out<u32>) {
        device.number()?;
        mode.set(0) // default: any number of processes
    }
    nvmlDeviceGetPersistenceMode(device: Device, mode: Out<u32>) {
        device.number()?;
        mode.set(0) // nothing stays between processes
    }
    nvmlDeviceGetComputeRunningProcesses(device: Device, count: Out<u32>, infos: Out<Process1>) {
        processes(device, &count, &infos, |pid, used| Process1 { pid, used })
    }
    nvmlDeviceGetComputeRunningProcesses_v2(device: Device, count: Out<u32>, infos: Out<Process>) {
        processes(device, &count, &infos, process)
    }
    nvmlDeviceGetComputeRunningProcesses_v3(device: Device, count: Out<u32>, infos: Out<Process>) {
        processes(device, &count, &infos, process)
    }
    nvmlDeviceGetGraphicsRunningProcesses_v2(device: Device, count: Out<u32>, _infos: Out<Process>) {
        device.number()?;
        count.set(0)
    }
    nvmlDeviceGetGraphicsRunningProcesses_v3(device: Device, count: Out<u32>, _infos: Out<Process>) {
        device.number()?;
        count.set(0)
    }
    nvmlDeviceGetApplicationsClock(device: Device, kind: u32, clock: Out<u32>) {
        device.clock(kind, &clock)
    }
    nvmlDeviceGetClock(device: Device, kind: u32, which: u32, clock: Out<u32>) {
        if which > 3 {
            return Err(Code::INVALID_ARGUMENT);
        }
        device.clock(kind, &clock)
    }
    nvmlDeviceGetClockInfo(device: Device, kind: u32, clock: Out<u32>) {
        device.clock(kind, &clock)
    }
    nvmlDeviceGetMaxClockInfo(device: Device, kind: u32, clock: Out<u32>) {
        device.clock(kind, &clock)
    }
    nvmlDeviceGetP2PStatus(from: Device, to: Device, capability: u32, status: Out<u32>) {
        from.number()?;
        to.number()?;
        // Reading, writing and atomic operations, as `cuDeviceGetP2PAttribute` says, but no NVLink.
        status.set(if capability == 2 { 5 } else { 0 })
    }
}

not_supported! {
    nvmlDeviceGetBAR1MemoryInfo
    nvmlDeviceGetBoardPartNumber
    nvmlDeviceGetCpuAffinity
    nvmlDeviceGetCurrPcieLinkGeneration
    nvmlDeviceGetCurrPcieLinkWidth
    nvmlDeviceGetCurrentClocksEventReasons
    nvmlDeviceGetCurrentClocksThrottleReasons
    nvmlDeviceGetDecoderUtilization
    nvmlDeviceGetDisplayActive
    nvmlDeviceGetDisplayMode
    nvmlDeviceGetEccMode
    nvmlDeviceGetEncoderUtilization
    nvmlDeviceGetEnforcedPowerLimit
    nvmlDeviceGetFanSpeed
    nvmlDeviceGetFieldValues
    nvmlDeviceGetGpuFabricInfo
    nvmlDeviceGetGpuFabricInfoV
    nvmlDeviceGetMaxMigDeviceCount
    nvmlDeviceGetMaxPcieLinkGeneration
    nvmlDeviceGetMaxPcieLinkWidth
    nvmlDeviceGetMemoryAffinity
    nvmlDeviceGetMemoryErrorCounter
    nvmlDeviceGetMigMode
    nvmlDeviceGetNumaNodeId
    nvmlDeviceGetNvLinkCapability
    nvmlDeviceGetNvLinkRemoteDeviceType
    nvmlDeviceGetNvLinkRemotePciInfo
    nvmlDeviceGetNvLinkRemotePciInfo_v2
    nvmlDeviceGetNvLinkState
    nvmlDeviceGetPcieLinkMaxSpeed
    nvmlDeviceGetPcieThroughput
    nvmlDeviceGetPerformanceState
    nvmlDeviceGetPlatformInfo
    nvmlDeviceGetPowerManagementDefaultLimit
    nvmlDeviceGetPowerManagementLimit
    nvmlDeviceGetPowerManagementLimitConstraints
    nvmlDeviceGetPowerState
    nvmlDeviceGetPowerUsage
    nvmlDeviceGetProcessUtilization
    nvmlDeviceGetRetiredPages
    nvmlDeviceGetSerial
    nvmlDeviceGetTemperature
    nvmlDeviceGetTemperatureThreshold
    nvmlDeviceGetTemperatureV
    nvmlDeviceGetTopologyCommonAncestor
    nvmlDeviceGetTotalEccErrors
    nvmlDeviceGetTotalEnergyConsumption
    nvmlDeviceGetUtilizationRates
    nvmlDeviceGetVbiosVersion
    nvmlSystemGetConfComputeSettings
    nvmlSystemGetConfComputeState
}
