//! The powers of two that divide the values of registers, by which a counter does not step over its bound.

use super::{Termination, is_integer};
use crate::{BlockId, Inst, Operand, VReg, pass::liveness::inst_writes};
use margay_isa::{Mod, Opcode, Var};

impl Termination<'_> {
    /// The greatest alignment that all definitions of a register have in common.
    pub(super) fn find_alignment(&mut self) {
        let written: Vec<bool> = self.defs.iter().map(|d| !d.is_empty()).collect();
        // Parameters and what is never written may hold anything.
        self.align = written.iter().map(|w| if *w { 64 } else { 0 }).collect();
        for home in &self.func.params {
            if let crate::FormalHome::Regs(regs) = home {
                regs.iter().for_each(|r| self.align[r.0 as usize] = 0);
            }
        }
        let mut changed = true;
        while changed {
            changed = false;
            for b in &self.cfg.order {
                for inst in self.func.insts(&self.func.blocks[b.0 as usize]) {
                    let found = self.result_align(*b, inst);
                    inst_writes(self.func, inst, &mut |r| {
                        let own = &mut self.align[r.0 as usize];
                        changed |= found < *own;
                        *own = found.min(*own);
                    });
                }
            }
        }
    }

    /// Two to this divides all values of a register.
    pub fn alignment(&self, r: VReg) -> u32 {
        self.align[r.0 as usize]
    }

    pub(super) fn align_of(&self, o: &Operand) -> u32 {
        match o {
            Operand::Reg(r) => self.align[r.0 as usize],
            Operand::Imm(v) => v.trailing_zeros(),
            _ => 0,
        }
    }

    fn result_align(&self, b: BlockId, inst: &Inst) -> u32 {
        let v = self.func.variant(inst);
        let srcs = self.func.operands(inst.srcs);
        let a = |i: usize| srcs.get(i).map_or(0, |o| self.align_of(o));
        let plain = is_integer(v.t()) && !v.has(Mod::Sat) && !v.has(Mod::Cc) && !v.has(Mod::Hi);
        if !plain || inst.dsts.range().len() != 1 {
            return 0;
        }
        match v.op {
            Opcode::Mov if srcs.len() == 1 => a(0),
            Opcode::Neg => a(0),
            Opcode::Cvt if srcs.len() == 1 && v.ty(Var::U).is_some_and(is_integer) => a(0),
            Opcode::Add | Opcode::Or | Opcode::Xor => a(0).min(a(1)),
            Opcode::Sub => a(0).min(a(1)).max(self.without_remainder(b, srcs)),
            Opcode::And => a(0).max(a(1)),
            Opcode::Mul => (a(0) + a(1)).min(64),
            Opcode::Mad => (a(0) + a(1)).min(64).min(a(2)),
            Opcode::Shl => match srcs {
                [_, Operand::Imm(k)] => a(0).saturating_add(u32::try_from(*k).unwrap_or(64)).min(64),
                _ => a(0),
            },
            Opcode::Selp => a(0).min(a(1)),
            _ => 0,
        }
    }

    /// The alignment of `x - (x & 3)` in a block, by which compilers round down, or of `(x & 3) - x`.
    fn without_remainder(&self, b: BlockId, srcs: &[Operand]) -> u32 {
        let [Operand::Reg(x), Operand::Reg(y)] = srcs else { return 0 };
        self.remainder(b, *x, *y).max(self.remainder(b, *y, *x))
    }

    /// `n` if `low` is the lowest `n` bits of `x` in a block, else 0.
    fn remainder(&self, b: BlockId, x: VReg, low: VReg) -> u32 {
        // The first definition in the layout is the only one that reaches the block if no loop leads from the others back to it; those
        // count what is left down.
        let at = |b: BlockId| self.cfg.position[b.0 as usize];
        let Some(((first, i), others)) = self.defs[low.0 as usize].split_first() else { return 0 };
        let looped = |from: BlockId| self.cfg.loops.iter().any(|l| l.first <= at(b) && at(from) <= l.last);
        if at(*first) > at(b)
            || others.iter().any(|(other, _)| at(*other) <= at(b) || looped(*other))
            || !self.cfg.reducible
        {
            return 0;
        }
        let i = *i;
        let inst = &self.func.insts[i as usize];
        match (self.func.variant(inst).op, self.func.operands(inst.srcs)) {
            (Opcode::And, [Operand::Reg(y), Operand::Imm(m)]) if x == *y && inst.guard.is_none() => m.trailing_ones(),
            _ => 0,
        }
    }
}
