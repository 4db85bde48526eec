//! Constant propagation: readers of a register that is always the same constant get the constant.

use crate::{Func, Operand, pass::liveness::inst_writes};
use margay_isa::{Effect, Kind, Mod, Opcode};

/// Replaces registers whose only definition is an unguarded `mov` of a constant, wherever they are plain operands.
pub fn propagate_constants(func: &mut Func) {
    let mut times = vec![0u32; func.regs.len()];
    let mut value: Vec<Option<u64>> = vec![None; func.regs.len()];
    for inst in &func.insts {
        let variant = func.variant(inst);
        let plain = variant.op == Opcode::Mov && inst.guard.is_none() && variant.t().kind() != Kind::Pred;
        let constant = match (func.operands(inst.srcs), func.operands(inst.dsts)) {
            ([Operand::Imm(v)], [Operand::Reg(r)]) if plain && func.regs[r.0 as usize].bits() <= 64 => Some((*r, *v)),
            _ => None,
        };
        inst_writes(func, inst, &mut |r| times[r.0 as usize] += 1);
        if let Some((r, v)) = constant {
            let bits = func.regs[r.0 as usize].bits().min(variant.t().bits());
            value[r.0 as usize] = Some(if bits < 64 { v & ((1 << bits) - 1) } else { v });
        }
    }
    for home in &func.params {
        if let crate::FormalHome::Regs(regs) = home {
            regs.iter().for_each(|r| times[r.0 as usize] += 1);
        }
    }
    for i in 0..func.insts.len() {
        let inst = func.insts[i];
        let variant = func.variant(&inst);
        // Rows that an engine may hand to another one keep their registers.
        let takes = matches!(variant.op.row().effect, Effect::Pure | Effect::Machine)
            || matches!(variant.op, Opcode::Shfl | Opcode::Vote | Opcode::St)
            || variant.op == Opcode::Redux && !variant.t().is_float();
        if !takes || variant.has(Mod::Cc) {
            continue;
        }
        for at in inst.srcs.range() {
            if let Operand::Reg(r) = func.operands[at]
                && times[r.0 as usize] == 1
                && let Some(v) = value[r.0 as usize]
            {
                func.operands[at] = Operand::Imm(v);
            }
        }
    }
}
