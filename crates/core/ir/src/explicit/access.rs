//! Static bounds of memory accesses: a proof that an access is in bounds, or that each address must be checked.

use crate::{FormalHome, FrameId, FrameRole, FrameVar, Func, GlobalId, Ir, MemBase, Operand, Stage};

/// The check that an engine must perform for an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// None: it is at a constant offset inside an object, with sufficient alignment.
    Proven(Object),
    /// It is at a constant offset inside a `.param` variable whose address is never taken, but misaligned. On the GPU, such
    /// variables are registers, so this is not a fault: its bytes are moved one by one.
    Straddling,
    /// It accesses an unsized parameter by name: it must lie inside the argument, whose size the callee receives, and inside the
    /// thread's window.
    Passed(FrameId),
    /// It accesses memory outside the `.param` variable that it names: a fault.
    Outside(FrameId),
    /// Every address must be checked.
    Checked,
}

/// The memory that a proven access lies in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Object {
    /// The kernel's parameter block.
    Parameters,
    /// A variable of the module.
    Global(GlobalId),
    /// A variable of the frame.
    Variable(FrameId),
}

/// The alignment in bytes that an access of `bytes` bytes per lane requires.
pub fn alignment(bytes: u32) -> u32 {
    bytes.next_power_of_two().min(32)
}

/// Classifies an access of `bytes` bytes per lane through a memory operand.
pub fn access<S: Stage>(ir: &Ir<S>, func: &Func, operand: &Operand, bytes: u32) -> Access {
    let Operand::Mem(base, offset) = operand else { return Access::Checked };
    let inside = |size: u64| {
        let end = offset.checked_add(i64::from(bytes));
        *offset >= 0 && end.is_some_and(|end| end as u64 <= size)
    };
    let aligned = |align: u32| align >= alignment(bytes) && offset % i64::from(alignment(bytes)) == 0;
    let proven = match base {
        MemBase::Reg(_) | MemBase::Absolute => return Access::Checked,
        // The block itself is aligned as much as any access needs.
        MemBase::KernelParam => {
            let aligned = offset % i64::from(alignment(bytes)) == 0;
            (aligned && inside(parameter_bytes(func))).then_some(Object::Parameters)
        }
        MemBase::Global(id) => {
            let global = ir.global(*id);
            (!global.external && inside(global.size) && aligned(global.align)).then_some(Object::Global(*id))
        }
        MemBase::Frame(id) => {
            let var = &func.frame[id.0 as usize];
            if let FrameRole::Formal(f) = var.role
                && func.sig.params[f as usize].is_unsized
            {
                return Access::Passed(*id);
            }
            if !inside(var.size.into()) && var.role != FrameRole::Local {
                return Access::Outside(*id);
            }
            if inside(var.size.into()) && !aligned(var.align) && var.role != FrameRole::Local && !var.address_taken {
                return Access::Straddling;
            }
            holds(var, *offset, bytes).then_some(Object::Variable(*id))
        }
    };
    proven.map_or(Access::Checked, Access::Proven)
}

/// Whether an access of `bytes` bytes per lane at an offset is inside a variable of the frame, and sufficiently aligned.
pub fn holds(var: &FrameVar, offset: i64, bytes: u32) -> bool {
    let align = alignment(bytes);
    let end = offset.checked_add(i64::from(bytes));
    let inside = offset >= 0 && end.is_some_and(|end| end <= i64::from(var.size));
    inside && var.align >= align && offset % i64::from(align) == 0
}

/// Bytes of a kernel's parameters; nothing is known of them in other functions.
pub fn parameter_bytes(func: &Func) -> u64 {
    let end = |(home, value): (&FormalHome, &crate::abi::Value)| match home {
        FormalHome::Kernel(at) => u64::from(*at) + u64::from(value.size),
        FormalHome::Regs(_) | FormalHome::Frame(_) => 0,
    };
    func.params.iter().zip(&func.sig.params).map(end).max().unwrap_or(0)
}
