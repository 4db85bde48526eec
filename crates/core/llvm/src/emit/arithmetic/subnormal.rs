//! Finds the registers that never hold a subnormal of single precision. Instructions with `.ftz`, of which code compiled with
//! `-use_fast_math` consists, flush their operands; those that others with `.ftz` have computed need none of it, which is most of the work
//! of a sum or product.

use crate::emit::arithmetic::{float::arithmetic, nan::copied};
use margay_ir::Operand;
use margay_isa::{Mod, Opcode, Type, Var, Variant};

/// Whether the result of a row is never subnormal.
fn flushes(variant: &Variant) -> bool {
    let picks = matches!(variant.op, Opcode::Neg | Opcode::Abs | Opcode::Min | Opcode::Max);
    if arithmetic(variant) || picks && variant.t() == Type::F32 && variant.ty(Var::U).is_none() {
        return variant.has(Mod::Ftz);
    }
    // An integer that is not 0 is at least 1.
    variant.op == Opcode::Cvt && variant.t() == Type::F32 && variant.ty(Var::U).is_some_and(Type::is_int)
}

/// By register: defined only by rows that flush, by other constants than subnormals, and by copies of such registers.
pub(in crate::emit) fn normal_registers(func: &margay_ir::Func) -> Vec<bool> {
    let count = func.regs.len();
    let (mut normal, mut copies) = (vec![true; count], Vec::new());
    for inst in &func.insts {
        let variant = func.variant(inst);
        let operands = copied(variant, func.operands(inst.srcs));
        let is_word = |o: &Operand| match o {
            Operand::Imm(v) => !f32::from_bits(*v as u32).is_subnormal(),
            Operand::Reg(r) => func.regs[r.0 as usize].bits() == 32,
            _ => false,
        };
        let good = operands.map_or_else(|| flushes(variant), |operands| operands.iter().all(is_word));
        let mut first = true;
        margay_ir::pass::liveness::inst_writes(func, inst, &mut |r| {
            let to = r.0 as usize;
            // The second destination of a shuffle is a predicate.
            normal[to] &= good && std::mem::take(&mut first) && func.regs[to].bits() == 32;
            for from in operands.into_iter().flatten() {
                if let Operand::Reg(from) = from {
                    copies.push((from.0 as usize, to));
                }
            }
        });
    }
    for home in func.params.iter() {
        if let margay_ir::FormalHome::Regs(regs) = home {
            regs.iter().for_each(|r| normal[r.0 as usize] = false);
        }
    }
    let mut changed = true;
    while changed {
        changed = false;
        for (from, to) in &copies {
            if normal[*to] && !normal[*from] {
                normal[*to] = false;
                changed = true;
            }
        }
    }
    normal
}
