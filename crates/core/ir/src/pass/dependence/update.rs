//! Updates in several steps: `*p = *p + 1`, where `p` points to something volatile.

use crate::{
    Func, Inst, MemBase, Operand, VReg,
    pass::{liveness::position_of_only_definition, shape::is_weak},
};
use margay_isa::Opcode;

/// Definitions through which a value is traced.
const DEPTH: u32 = 8;

/// The strong load of a place to which the strong store at `store` writes a value computed from the loaded one by arithmetic; both are indices
/// into [`Func::insts`]. A value that another thread writes between the two is lost.
///
/// A minimum, a maximum or a selection does not count as arithmetic: programs that repeat these until nothing changes lose nothing in the end.
pub fn recomputes(func: &Func, store: u32) -> Option<u32> {
    let inst = &func.insts[store as usize];
    let [Operand::Mem(base, offset), Operand::Reg(value)] = func.operands(inst.srcs) else { return None };
    let v = func.variant(inst);
    if v.op != Opcode::St || is_weak(v) {
        return None;
    }
    // The register holds one address while the value is computed.
    if let MemBase::Reg(r) = base {
        position_of_only_definition(func, *r)?;
    }
    let bits = v.t().bits();
    let is_source = |load: &Inst| {
        let v = func.variant(load);
        let here = func.operands(load.srcs) == [Operand::Mem(*base, *offset)];
        v.op == Opcode::Ld && !is_weak(v) && here && load.space == inst.space && v.t().bits() == bits
    };
    source(func, *value, &is_source, false, DEPTH)
}

/// The load from which a register was computed, if `changed` by arithmetic.
fn source(func: &Func, r: VReg, is_source: &dyn Fn(&Inst) -> bool, changed: bool, depth: u32) -> Option<u32> {
    let at = position_of_only_definition(func, r)?;
    let inst = &func.insts[at];
    if changed && is_source(inst) {
        return Some(at as u32);
    }
    let changed = match func.variant(inst).op {
        Opcode::Add | Opcode::Sub | Opcode::Mul | Opcode::Mad | Opcode::Fma => true,
        Opcode::Mov | Opcode::Cvt => changed,
        _ => return None,
    };
    let next = depth.checked_sub(1)?;
    let regs = func.operands(inst.srcs).iter().filter_map(|o| if let Operand::Reg(r) = o { Some(*r) } else { None });
    regs.into_iter().find_map(|r| source(func, r, is_source, changed, next))
}
