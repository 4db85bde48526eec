//! Registers that may hold the host's NaNs where PTX has canonical ones, until somebody looks at their bits.

use crate::emit::arithmetic::float::arithmetic;
use margay_ir::Operand;
use margay_isa::{Mod, Opcode, Type, Variant};

/// How instructions define a register, as far as NaNs go.
#[derive(Clone, Default)]
struct Definitions {
    arithmetic: bool,
    /// Something that may yield any NaN.
    other: bool,
    /// Copies of these registers.
    copies: Vec<u32>,
}

/// Operands that a row passes on bit by bit, for rows of one word.
fn copied<'o>(variant: &Variant, srcs: &'o [Operand]) -> Option<&'o [Operand]> {
    let word = matches!(variant.t(), Type::F32 | Type::B32);
    match (variant.op, srcs) {
        (Opcode::Mov, [_]) if word => Some(srcs),
        (Opcode::Selp, [_, _, _]) if word => Some(&srcs[..2]),
        (Opcode::Shfl, [_, ..]) => Some(&srcs[..1]),
        _ => None,
    }
}

/// Registers that hold canonical values up to NaNs: written by arithmetic, by constants, and by copies of such registers.
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
            // A shuffle's second destination is a predicate.
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
