//! Rows that depend on the indices of lanes and threads alone, computed without running a kernel.

use crate::{
    LANES, Row,
    lanes::{rows, set_u128s, u64s_mut},
    sem,
};
use margay_ir::{Func, Inst, Operand, VReg, operand_types};
use margay_isa::{Effect, Mod, Special, Type};

/// The known values of a function's registers.
pub trait Known {
    /// The function.
    fn func(&self) -> &Func;

    /// The only instruction that defines a register, if it has no guard.
    fn definition(&self, register: VReg) -> Option<&Inst>;

    /// The rows of a register that needs no definition.
    fn value(&self, _register: VReg) -> Option<Vec<Row>> {
        None
    }

    /// The row of a special register other than `%laneid`.
    fn special(&self, operand: &Operand) -> Option<Row>;

    /// The rows of an operand of a type (of a predicate: word 0 is the mask), if it depends on nothing but these. Definitions are followed
    /// through `depth` instructions.
    fn rows(&self, operand: &Operand, ty: Type, depth: u32) -> Option<Vec<Row>> {
        let r = match operand {
            Operand::Imm(v) if ty == Type::Pred => {
                return Some(vec![Row([if v & 1 == 1 { u32::MAX } else { 0 }; LANES])]);
            }
            Operand::Imm(v) => return Some(splat(*v, ty.bits())),
            Operand::Special(Special::LaneId, _) => return Some(vec![Row(std::array::from_fn(|lane| lane as u32))]),
            Operand::Not(r) => {
                let truth = self.rows(&Operand::Reg(*r), ty, depth)?;
                return Some(truth.into_iter().map(|row| Row(row.0.map(|word| !word))).collect());
            }
            Operand::Reg(r) if depth > 0 => *r,
            Operand::Reg(_) => return None,
            other => return self.special(other).map(|row| vec![row]),
        };
        if let Some(known) = self.value(r) {
            return Some(known);
        }
        let func = self.func();
        let inst = self.definition(r)?;
        let (variant, [_]) = (func.variant(inst), func.operands(inst.dsts)) else { return None };
        // Instructions that read or set the carry depend on others.
        if variant.op.row().effect != Effect::Pure || variant.has(Mod::Cc) {
            return None;
        }
        let types = operand_types(func, inst);
        let mut operands = Vec::new();
        for (src, ty) in func.operands(inst.srcs).iter().zip(&types.srcs) {
            operands.push(self.rows(src, *ty, depth - 1)?);
        }
        let bits = |types: &[Type]| types.iter().map(|ty| ty.bits()).collect::<Vec<_>>();
        let compute = sem::pure(variant, &bits(&types.srcs), &bits(&types.dsts))?;
        let sources: Vec<&[Row]> = operands.iter().map(|rows| &rows[..]).collect();
        let mut result = vec![Row::ZERO; rows(func.regs[r.0 as usize].bits())];
        compute(variant, u32::MAX, &sources, &mut result);
        Some(result)
    }

    /// [`Known::rows`] of an operand of at most 32 bits.
    fn row(&self, operand: &Operand, ty: Type, depth: u32) -> Option<Row> {
        match self.rows(operand, ty, depth)?[..] {
            [row] => Some(row),
            _ => None,
        }
    }
}

/// The rows of a register of `bits` bits that holds a value in all lanes.
pub fn splat(value: u64, bits: u32) -> Vec<Row> {
    let mut all = vec![Row::ZERO; rows(bits)];
    match all.len() {
        1 => all[0] = Row([value as u32 & u32::MAX >> (32 - bits.clamp(1, 32)); LANES]),
        2 => *u64s_mut(&mut all) = [value; LANES],
        _ => set_u128s(&mut all, &[value.into(); LANES]),
    }
    all
}
