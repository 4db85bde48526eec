//! The description of a device that the driver gives to margay's NVML, by a private function: both libraries are built with this file.

/// The clocks of multiprocessors and memory, in kHz: those of the driver (`margay::profile`), on which NVML does not depend.
pub const CLOCK: u32 = 1_000_000;

/// A device (`margayDescribe`).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// Its UUID as tools print it, `GPU-` first, which ends with a zero.
    pub uuid: [u8; 48],
    /// Its name, which ends with a zero: `NVML_DEVICE_NAME_V2_BUFFER_SIZE` bytes.
    pub name: [u8; 96],
    /// The release of the driver, which ends with a zero.
    pub release: [u8; 16],
    /// Major and minor number of the compute capability.
    pub capability: [u32; 2],
    /// The number of devices, visible to CUDA or not.
    pub count: u32,
    /// The version of the driver API: 13050 is 13.5.
    pub cuda: u32,
    /// Bytes of memory.
    pub total: u64,
    /// Bytes that this process can still allocate.
    pub free: u64,
    /// Bytes that this process has allocated.
    pub own: u64,
}

/// A string with zeros behind it, cut if it is too long.
pub fn text<const N: usize>(text: &str) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.iter_mut().zip(text.bytes().take(N - 1)).for_each(|(place, byte)| *place = byte);
    bytes
}
