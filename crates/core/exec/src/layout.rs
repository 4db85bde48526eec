//! Where the shared variables of a kernel lie in the window of a CTA.

use crate::RESERVED_SHARED;
use margay_ir::{Func, Global, GlobalId, Inst, Ir, MemSpace, Operand, Placed, pass::Reached};
use margay_isa::{Opcode, Space, Special, Target};

/// The layout of a kernel's shared window. Only the variables that the kernel reaches take space, as on a GPU.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SharedLayout {
    /// By [`GlobalId`]: offsets of the shared variables that the kernel reaches. Those without a size lie where dynamic
    /// shared memory begins.
    pub offsets: Vec<Option<u64>>,
    /// Where dynamic shared memory begins, if there is any: bytes of all static variables and of the reserved part.
    pub size: u64,
    /// Bytes reserved by the system at the start, of which only programs that ask for their location know.
    pub reserved: u32,
    /// The kernel reaches a variable without a size.
    pub dynamic: bool,
    /// Bytes of the widest vector that the kernel loads from shared memory, or 1. Compilers read three words at the end of a variable as an
    /// aligned vector of four, since GPUs allocate shared memory in larger units: so the window ends at a multiple of this, and
    /// no other variable begins in a variable's last vector.
    pub unit: u32,
}

impl SharedLayout {
    /// The layout for a kernel that reaches these functions and variables.
    pub fn new(ir: &Ir<Placed>, reached: &Reached) -> SharedLayout {
        use Special::{ReservedSmemOffset0, ReservedSmemOffset1, ReservedSmemOffsetCap, ReservedSmemOffsetEnd};
        let asks = |o: &Operand| match o {
            Operand::Special(s, _) => {
                matches!(s, ReservedSmemOffset0 | ReservedSmemOffset1 | ReservedSmemOffsetCap | ReservedSmemOffsetEnd)
            }
            _ => false,
        };
        let reserves = reached.funcs.iter().any(|f| ir.func(*f).operands.iter().any(asks));
        let reserved = if reserves { RESERVED_SHARED } else { 0 };
        let (mut size, mut align, mut dynamic) = (u64::from(reserved), 16, false);
        let mut offsets = vec![None; ir.globals.len()];
        let loads = reached.funcs.iter().flat_map(|f| ir.func(*f).insts.iter().map(|i| vector_load(ir.func(*f), i)));
        let unit = loads.max().unwrap_or(1);
        let shared = || {
            ir.globals
                .iter()
                .enumerate()
                .filter(|(i, g)| g.space == Space::Shared && reached.globals.contains(&GlobalId(*i as u32)))
        };
        for (i, global) in shared() {
            if global.size == 0 {
                (dynamic, align) = (true, align.max(u64::from(global.align)));
                continue;
            }
            let offset = size.next_multiple_of(u64::from(global.align.max(1)));
            offsets[i] = Some(offset);
            size = offset + room(global, unit);
        }
        if dynamic {
            size = size.next_multiple_of(align);
        }
        shared().filter(|(_, g)| g.size == 0).for_each(|(i, _)| offsets[i] = Some(size));
        SharedLayout { offsets, size, reserved, dynamic, unit }
    }

    /// The offset of a shared variable in the window; `None` for others.
    pub fn offset(&self, global: GlobalId) -> Option<u64> {
        self.offsets.get(global.0 as usize).copied().flatten()
    }
}

/// Bytes from the start of a shared variable in which no other variable begins, in a layout with this [`SharedLayout::unit`].
pub(crate) fn room(global: &Global, unit: u32) -> u64 {
    global.size.next_multiple_of(u64::from(global.align.clamp(1, unit)))
}

/// Bytes of a vector that an instruction loads from shared memory, else 1.
fn vector_load(func: &Func, inst: &Inst) -> u32 {
    let v = func.variant(inst);
    if v.op == Opcode::Ld && inst.space == Some(MemSpace::Shared) && v.vec() > 1 {
        return v.vec() * v.t().bits().div_ceil(8);
    }
    1
}

/// The multiple of bytes in which GPUs of a target allocate shared memory (manual, section 10.30).
pub fn shared_allocation_unit(target: Target) -> u64 {
    if (30..80).contains(&target.sm) { 256 } else { 128 }
}
