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
    /// Bytes reserved by the system at the start, for programs that ask for their location.
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

/// How the special registers about a CTA's shared memory follow from the size of its window: both rounded up to the unit in which GPUs
/// of a target allocate it, without and with the part of the system (manual, sections 10.30 and 10.31).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SharedSizes {
    /// Bytes of the window that the system has reserved already, which do not count.
    pub reserved: u32,
    /// The unit, a power of two.
    pub unit: u64,
    /// Bytes that the system takes in addition to the program's.
    pub system: u32,
}

impl SharedSizes {
    /// For `%total_smem_size`, or `%aggr_smem_size` if `aggregate`.
    pub fn new(target: Target, reserved: u32, aggregate: bool) -> SharedSizes {
        let unit = if (30..80).contains(&target.sm) { 256 } else { 128 };
        SharedSizes { reserved, unit, system: if aggregate { RESERVED_SHARED } else { 0 } }
    }

    /// What to add to the window's size, the mask to apply, and what to add then: the register's value for an engine that computes it.
    pub fn steps(self) -> (u64, u64, u64) {
        (self.unit.wrapping_sub(1).wrapping_sub(self.reserved.into()), !(self.unit - 1), self.system.into())
    }

    /// The register's value for a window of `size` bytes.
    pub fn of(self, size: u64) -> u64 {
        let (up, mask, more) = self.steps();
        (size.wrapping_add(up) & mask) + more
    }
}
