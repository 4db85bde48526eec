//! Builds an [`Image`] from a placed program: gives every variable an address and its initial contents.
//!
//! Variables in `.global` and `.const` belong to the module and are allocated once, when the first kernel is prepared;
//! shared variables are laid out per kernel, and only those that the kernel reaches take space, as on a GPU.

use crate::{Context, Error, module::Variables};
use margay_exec::{
    Image, Memory, SharedLayout,
    mem::{Kind, Reach},
};
use margay_ir::{FuncId, Ir, Operand, Placed, pass};
use margay_isa::Special;
use std::sync::Arc;

/// Allocates zeroed memory with a size in bytes and an alignment.
pub(crate) fn allocate(
    memory: &Memory,
    reach: Reach,
    kind: Kind,
    name: &str,
    (bytes, align): (u64, u32),
) -> Result<u64, Error> {
    let made = memory.alloc_in(reach, bytes, align, kind, name).map_err(|_| Error::OutOfMemory { size: bytes })?;
    Ok(made.block.base())
}

impl Context {
    /// Copies host bytes to device memory inside an allocation.
    pub fn write(&self, address: u64, data: &[u8]) -> Result<(), Error> {
        let outside = |_| Error::BadAddress { address, size: data.len() as u64 };
        self.device().memory().write(address, data).map_err(outside)
    }

    /// Copies bytes of device memory inside an allocation to the host.
    pub fn read(&self, address: u64, data: &mut [u8]) -> Result<(), Error> {
        let size = data.len() as u64;
        self.device().memory().read(address, data).map_err(|_| Error::BadAddress { address, size })
    }
}

/// Builds the image for `kernel`, with addresses of all variables that it reaches. Also returns whether the kernel
/// reads the environment registers through which a cooperative grid finds its workspace.
pub(crate) fn build(ir: Ir<Placed>, kernel: FuncId, variables: &Variables) -> Result<(Image, bool), Error> {
    let reached = pass::reached(&ir, kernel);
    // Reads of the registers through which a cooperative grid finds its workspace.
    let reads = |o: &Operand| matches!(o, Operand::Special(Special::EnvReg(1 | 2), _));
    let cooperative = reached.funcs.iter().any(|f| ir.func(*f).operands.iter().any(reads));
    let layout = SharedLayout::new(&ir, &reached);
    let mut addresses = variables.addresses(&ir)?;
    for (address, offset) in addresses.iter_mut().zip(&layout.offsets) {
        offset.iter().for_each(|offset| *address = *offset);
    }
    let static_shared = u32::try_from(layout.size).map_err(|_| {
        Error::BadLaunch(format!("static shared variables take {} bytes, more than any CTA can have", layout.size))
    })?;
    variables.initialize(&ir, &addresses)?;
    let (reserved_shared, shared_unit) = (layout.reserved, layout.unit);
    Ok((Image { ir: Arc::new(ir), addresses, static_shared, reserved_shared, shared_unit }, cooperative))
}
