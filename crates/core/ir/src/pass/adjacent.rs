//! Loads and stores of adjacent elements, which compilers generate for copies of structures, including their padding.
//! Only arithmetic may be in between.

use crate::{FrameId, Func, GlobalId, Inst, MemBase, Operand, VReg};
use margay_isa::{Effect, Opcode};
use std::collections::HashMap;

/// A load or store of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Adjacent {
    /// First byte of the run, relative to the address of this instruction.
    pub from: i64,
    /// End of the run, relative to the address of this instruction.
    pub to: i64,
    /// Indices of the run's instructions, this one included.
    pub members: Vec<u32>,
}

/// The value that an address derives from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
enum Base {
    Reg(u32),
    Global(u32),
    Frame(u32),
}

/// Offset, end and index of the loads and of the stores at each base.
type Found = HashMap<(Base, bool), Vec<(i64, i64, u32)>>;

/// The runs of two or more loads, or stores, of one block at one base: by the index of the instruction.
pub fn adjacent(func: &Func) -> HashMap<u32, Adjacent> {
    let mut made: Vec<(u32, Option<&Inst>)> = vec![(0, None); func.regs.len()];
    for inst in &func.insts {
        for dst in func.operands(inst.dsts) {
            if let Operand::Reg(VReg(r)) = dst {
                let (times, by) = &mut made[*r as usize];
                (*times, *by) = (*times + 1, Some(inst));
            }
        }
    }
    let mut all = HashMap::new();
    for block in &func.blocks {
        let mut found = Found::new();
        for (index, inst) in block.insts.range().zip(func.insts(block)) {
            let index = index as u32;
            let variant = func.variant(inst);
            if !matches!(variant.op, Opcode::Ld | Opcode::St) {
                if !matches!(variant.op.row().effect, Effect::Pure | Effect::Machine) {
                    join(std::mem::take(&mut found), &mut all);
                }
                continue;
            }
            let load = variant.op == Opcode::Ld;
            let operands = func.operands(inst.srcs);
            let Some((base, offset)) = operands.iter().find_map(|o| match o {
                Operand::Mem(base, offset) => resolve(func, &made, *base, *offset),
                _ => None,
            }) else {
                continue;
            };
            let count = if load { func.operands(inst.dsts).len() } else { operands.len() - 1 };
            let size = i64::from(variant.t().bits() / 8) * count as i64;
            found.entry((base, load)).or_default().push((offset, offset + size, index));
        }
        join(found, &mut all);
    }
    all
}

/// Adds the runs of what was found. Accesses that overlap are not parts of one copy.
fn join(found: Found, all: &mut HashMap<u32, Adjacent>) {
    for mut list in found.into_values() {
        list.sort_unstable();
        let mut rest = &list[..];
        while let [(start, first_end, _), ..] = rest {
            let (mut end, mut count) = (*first_end, 1);
            while let Some((_, next, _)) = rest.get(count).filter(|(at, _, _)| *at == end) {
                (end, count) = (*next, count + 1);
            }
            let (run, others) = rest.split_at(count);
            rest = others;
            if count > 1 {
                let members: Vec<u32> = run.iter().map(|(_, _, index)| *index).collect();
                for (at, _, index) in run {
                    let one = Adjacent { from: start - at, to: end - at, members: members.clone() };
                    all.insert(*index, one);
                }
            }
        }
    }
}

/// The base and offset of an address; `None` if the base has several values.
fn resolve(func: &Func, made: &[(u32, Option<&Inst>)], base: MemBase, mut offset: i64) -> Option<(Base, i64)> {
    let mut reg = match base {
        MemBase::Reg(VReg(r)) => r,
        MemBase::Global(GlobalId(id)) => return Some((Base::Global(id), offset)),
        MemBase::Frame(FrameId(id)) => return Some((Base::Frame(id), offset)),
        MemBase::KernelParam | MemBase::Absolute => return None,
    };
    // Sums of constants, as far as they go.
    for _ in 0..8 {
        let (times, by) = made[reg as usize];
        if times > 1 {
            return None;
        }
        let Some(inst) = by.filter(|inst| inst.guard.is_none() && func.variant(inst).op == Opcode::Add) else { break };
        match func.operands(inst.srcs) {
            [Operand::Reg(VReg(r)), Operand::Imm(by)] => (reg, offset) = (*r, offset.wrapping_add(*by as i64)),
            _ => break,
        }
    }
    (made[reg as usize].0 <= 1).then_some((Base::Reg(reg), offset))
}
