//! The parameter block of a kernel, as cuLaunchKernel lays it out: parameters in order, each at the next multiple of its
//! alignment (manual, section 5.1.6.1), and the limits on its size (section 11.2.1).

use super::Signature;
use margay_isa::{Target, Version};

/// Layout of a kernel's parameter block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KernelLayout {
    /// Offset of each parameter in bytes.
    pub offsets: Vec<u32>,
    /// End of the last parameter.
    pub size: u32,
}

/// Lays out a kernel's parameters.
pub fn kernel_layout(sig: &Signature) -> KernelLayout {
    let mut size = 0u32;
    let mut offsets = Vec::with_capacity(sig.params.len());
    for p in &sig.params {
        size = size.checked_next_multiple_of(p.align.max(1)).unwrap_or(u32::MAX);
        offsets.push(size);
        size = size.saturating_add(p.size);
    }
    KernelLayout { offsets, size }
}

/// Most bytes of kernel parameters: 32764 from PTX 8.1 on sm_70 on, 4352 before, 256 in PTX 1.x.
pub fn kernel_limit(version: Version, target: Target) -> u32 {
    match () {
        _ if version >= Version::new(8, 1) && target.sm >= 70 => 32764,
        _ if version < Version::new(2, 0) => 256,
        _ => 4352,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::Value;

    #[test]
    fn parameters_are_naturally_aligned() {
        let sig = Signature {
            params: vec![Value::bytes(4, 4), Value::bytes(8, 8), Value::bytes(3, 1), Value::bytes(16, 16)],
            ..Default::default()
        };
        let layout = kernel_layout(&sig);
        assert_eq!(layout.offsets, [0, 8, 16, 32]);
        assert_eq!(layout.size, 48);
    }
}
