//! Builds an [`Image`] from a placed program: gives every variable an address and its initial contents.
//!
//! Variables in `.global` and `.const` belong to the module and are allocated once, when the first kernel is prepared;
//! shared variables are laid out per kernel, and only those that the kernel reaches take space, as on a GPU.

use crate::{Context, Error, module::Variables};
use margay_exec::{
    Image, Memory, RESERVED_SHARED,
    mem::{Kind, Reach},
};
use margay_ir::{
    FuncId, Global, GlobalId, Ir, Operand, Placed,
    pass::{self, Reached},
};
use margay_isa::{Space, Special};
use std::{collections::HashSet, sync::Arc};

/// Allocates so many zeroed bytes at a multiple of the alignment.
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
    let (used, [cooperative, reserves]) = reached(&ir, kernel);
    let mut addresses = variables.addresses(&ir)?;
    // The reserved part comes first; only programs that ask for its location can observe it.
    let reserved_shared = if reserves { RESERVED_SHARED } else { 0 };
    let (mut shared, mut dynamic_align) = (u64::from(reserved_shared), 16);
    for (i, global) in ir.globals.iter().enumerate() {
        let is_used = used.contains(&GlobalId(i as u32));
        match global.space {
            Space::Shared if is_used && global.size == 0 => dynamic_align = dynamic_align.max(u64::from(global.align)),
            Space::Shared if is_used => {
                addresses[i] = shared.next_multiple_of(u64::from(global.align.max(1)));
                shared = addresses[i] + global.size;
            }
            _ => {}
        }
    }
    let static_shared = match used.iter().any(|g| is_dynamic(ir.global(*g))) {
        true => shared.next_multiple_of(dynamic_align),
        false => shared,
    };
    for (i, global) in ir.globals.iter().enumerate().filter(|(_, g)| is_dynamic(g)) {
        debug_assert_eq!(global.space, Space::Shared);
        addresses[i] = static_shared;
    }
    let static_shared = u32::try_from(static_shared).map_err(|_| {
        Error::BadLaunch(format!("static shared variables take {static_shared} bytes, more than any CTA can have"))
    })?;
    variables.initialise(&ir, &addresses)?;
    Ok((Image { ir: Arc::new(ir), addresses, static_shared, reserved_shared }, cooperative))
}

fn is_dynamic(global: &Global) -> bool {
    global.space == Space::Shared && global.size == 0
}

/// The variables that a kernel reaches, whether it may wait for the grid, and whether it reads the location of reserved shared memory.
fn reached(ir: &Ir<Placed>, kernel: FuncId) -> (HashSet<GlobalId>, [bool; 2]) {
    let Reached { funcs, globals } = pass::reached(ir, kernel);
    let reads = |wanted: fn(Special) -> bool| {
        let is = |o: &Operand| matches!(o, Operand::Special(special, _) if wanted(*special));
        funcs.iter().any(|f| ir.func(*f).operands.iter().any(is))
    };
    let cooperative = reads(|s| matches!(s, Special::EnvReg(1 | 2)));
    let reserves = reads(|s| {
        use Special::{ReservedSmemOffset0, ReservedSmemOffset1, ReservedSmemOffsetCap, ReservedSmemOffsetEnd};
        matches!(s, ReservedSmemOffset0 | ReservedSmemOffset1 | ReservedSmemOffsetCap | ReservedSmemOffsetEnd)
    });
    (globals, [cooperative, reserves])
}
