//! The list of ABIs. A new one takes a file and a line here.

use super::{Abi, Legacy, Ptx, Simd, Sm, SysV};

/// Every ABI, the identity first.
pub static REGISTRY: &[&dyn Abi] = &[
    &Ptx,    // everything in `.param` space
    &Sm,     // what ptxas does on the GPU
    &SysV,   // the host's C convention
    &Simd,   // whole warps in vector registers
    &Legacy, // registers only
];

/// The default ABI: the fastest one on the SIMD engine. Both engines implement it, so that
/// frames have the same sizes on both.
pub const DEFAULT: &str = "simd";

/// Every ABI.
pub fn registry() -> &'static [&'static dyn Abi] {
    REGISTRY
}

/// The ABI of that name.
pub fn by_name(name: &str) -> Option<&'static dyn Abi> {
    REGISTRY.iter().copied().find(|abi| abi.name() == name)
}
