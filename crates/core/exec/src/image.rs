//! A program in memory: its placed code and the addresses of its variables and functions.

use margay_ir::{FuncId, GlobalId, Ir, Placed};
use std::sync::Arc;

/// A program in memory: placed code, and the addresses of its variables.
#[derive(Clone, Debug)]
pub struct Image {
    /// The placed code.
    pub ir: Arc<Ir<Placed>>,
    /// By [`margay_ir::GlobalId`]: host address for `.global` and `.const`; offset in the CTA's window for `.shared`; handle
    /// for texture, sampler and surface references.
    pub addresses: Vec<u64>,
    /// Size of static shared memory in bytes, with the part reserved by the system.
    pub static_shared: u32,
    /// Bytes reserved by the system at the start of shared memory: [`RESERVED_SHARED`] for programs that ask for their
    /// location, else 0.
    pub reserved_shared: u32,
    /// The size of a CTA's window is a multiple of this number of bytes ([`crate::SharedLayout::unit`]).
    pub shared_unit: u32,
}

/// Bytes of shared memory that the system reserves in each CTA (manual, section 10.29; the programming guide's "1 KB").
pub const RESERVED_SHARED: u32 = 1 << 10;

impl Image {
    /// The same image with another program of the same functions and variables.
    pub fn with(&self, ir: Ir<Placed>) -> Image {
        Image { ir: Arc::new(ir), ..self.clone() }
    }

    /// The address of a function in a program with `address_size` bits to an address: the value of its name, and the operand of
    /// indirect calls. Never a valid data address.
    pub fn function_address(address_size: u32, func: FuncId) -> u64 {
        functions(address_size) + (u64::from(func.0) + 1) * 16
    }

    /// Bytes of a variable in shared memory, with those after its end that a vector of its last elements covers.
    pub fn shared_room(&self, global: GlobalId) -> u64 {
        crate::layout::room(self.ir.global(global), self.shared_unit)
    }

    /// The function at an address, if any.
    pub fn function_at(&self, address: u64) -> Option<FuncId> {
        let index = address.checked_sub(functions(self.ir.address_size))?;
        let id = (index / 16).checked_sub(1)?;
        (index % 16 == 0 && id < self.ir.funcs.len() as u64).then_some(FuncId(id as u32))
    }
}

/// Base of the addresses of functions.
fn functions(address_size: u32) -> u64 {
    if address_size == 32 { 0xf000_0000 } else { 0x0f00_0000_0000_0000 }
}
