//! Finds the *lazy* registers: those that may hold the host's NaNs until their bits become visible (see `float.rs`).

use crate::emit::arithmetic::float::arithmetic;
use margay_ir::Operand;
use margay_isa::{Mod, Opcode, Type, Variant};

/// What a register is defined by, as far as NaNs are concerned.
#[derive(Clone, Default)]
struct Definitions {
    arithmetic: bool,
    /// By an instruction that may yield any NaN.
    other: bool,
    /// By copies of these registers.
    copies: Vec<u32>,
}

/// The operands that a 32-bit row copies bit by bit.
pub(super) fn copied<'o>(variant: &Variant, srcs: &'o [Operand]) -> Option<&'o [Operand]> {
    let word = matches!(variant.t(), Type::F32 | Type::B32);
    match (variant.op, srcs) {
        (Opcode::Mov, [_]) if word => Some(srcs),
        (Opcode::Selp, [_, _, _]) if word => Some(&srcs[..2]),
        (Opcode::Shfl, [_, ..]) => Some(&srcs[..1]),
        _ => None,
    }
}

/// The lazy registers: defined only by arithmetic, constants and copies of lazy registers.
pub(in crate::emit) fn lazy_registers(func: &margay_ir::Func) -> Vec<bool> {
    let mut found = vec![Definitions::default(); func.regs.len()];
    for inst in &func.insts {
        let variant = func.variant(inst);
        let arithmetic = arithmetic(variant) && !variant.has(Mod::Sat);
        let (mut copies, mut other) = (Vec::new(), !arithmetic);
        if let Some(operands) = copied(variant, func.operands(inst.srcs)) {
            other = false;
            for o in operands {
                match o {
                    Operand::Imm(v) => other |= f32::from_bits(*v as u32).is_nan(),
                    Operand::Reg(r) if func.regs[r.0 as usize].bits() == 32 => copies.push(r.0),
                    _ => other = true,
                }
            }
        }
        let mut first = true;
        margay_ir::pass::liveness::inst_writes(func, inst, &mut |r| {
            let d = &mut found[r.0 as usize];
            d.arithmetic |= arithmetic;
            // The second destination of a shuffle is a predicate.
            d.other |= other || !std::mem::take(&mut first) || func.regs[r.0 as usize].bits() != 32;
            d.copies.extend(&copies);
        });
    }
    for home in func.params.iter() {
        if let margay_ir::FormalHome::Regs(regs) = home {
            regs.iter().for_each(|r| found[r.0 as usize].other = true);
        }
    }
    let defined = |d: &Definitions| d.arithmetic || !d.copies.is_empty();
    let mut lazy: Vec<bool> = found.iter().map(|d| !d.other && defined(d)).collect();
    let mut changed = true;
    while changed {
        changed = false;
        for (r, d) in found.iter().enumerate() {
            if lazy[r] && d.copies.iter().any(|c| !lazy[*c as usize]) {
                lazy[r] = false;
                changed = true;
            }
        }
    }
    lazy
}
