//! Rows that follow from the numbers of lanes and threads alone, computed without running a kernel.

use crate::{LANES, Row, sem};
use margay_ir::{Func, Inst, Operand, VReg, operand_types};
use margay_isa::{Effect, Mod, Special, Type};

/// What is known of a function's registers.
pub trait Known {
    /// The function.
    fn func(&self) -> &Func;

    /// The only instruction that defines a register, if it has no guard.
    fn definition(&self, register: VReg) -> Option<&Inst>;

    /// The row of a register that needs no definition.
    fn value(&self, _register: VReg) -> Option<Row> {
        None
    }

    /// The row of a special register other than `%laneid`.
    fn special(&self, operand: &Operand) -> Option<Row>;

    /// The row of an operand of at most 32 bits, or of a predicate (word 0 is the mask), if it depends on nothing but these. Definitions are
    /// followed through `depth` instructions.
    fn row(&self, operand: &Operand, depth: u32) -> Option<Row> {
        let r = match operand {
            Operand::Imm(v) => return Some(Row([*v as u32; LANES])),
            Operand::Special(Special::LaneId, _) => return Some(Row(std::array::from_fn(|lane| lane as u32))),
            Operand::Not(r) => return self.row(&Operand::Reg(*r), depth).map(|row| Row(row.0.map(|word| !word))),
            Operand::Reg(r) if depth > 0 => *r,
            Operand::Reg(_) => return None,
            other => return self.special(other),
        };
        if let Some(row) = self.value(r) {
            return Some(row);
        }
        let func = self.func();
        let inst = self.definition(r)?;
        let (variant, [_]) = (func.variant(inst), func.operands(inst.dsts)) else { return None };
        // What reads or sets the carry depends on other instructions.
        if variant.op.row().effect != Effect::Pure || variant.has(Mod::Cc) {
            return None;
        }
        let types = operand_types(func, inst);
        if types.dsts.iter().chain(&types.srcs).any(|ty| ty.bits() > 32) {
            return None;
        }
        let mut rows = Vec::new();
        for (src, ty) in func.operands(inst.srcs).iter().zip(&types.srcs) {
            rows.push([match src {
                Operand::Imm(v) if *ty == Type::Pred => Row([if v & 1 == 1 { u32::MAX } else { 0 }; LANES]),
                Operand::Imm(v) if ty.bits() < 32 => Row([*v as u32 & !(u32::MAX << ty.bits()); LANES]),
                src => self.row(src, depth - 1)?,
            }]);
        }
        let bits = |types: &[Type]| types.iter().map(|ty| ty.bits()).collect::<Vec<_>>();
        let compute = sem::pure(variant, &bits(&types.srcs), &bits(&types.dsts))?;
        let sources: Vec<&[Row]> = rows.iter().map(|row| &row[..]).collect();
        let mut result = [Row::ZERO; 1];
        compute(variant, u32::MAX, &sources, &mut result);
        Some(result[0])
    }
}
