//! The powers of two that divide the values of registers, by which a counter does not step over its bound.

use super::{Termination, is_integer};
use crate::{Inst, Operand, pass::liveness::inst_writes};
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
                    let found = self.result_align(inst);
                    inst_writes(self.func, inst, &mut |r| {
                        let own = &mut self.align[r.0 as usize];
                        changed |= found < *own;
                        *own = found.min(*own);
                    });
                }
            }
        }
    }

    /// The power of two that divides an operand in all threads.
    pub(in crate::pass) fn align_of(&self, o: &Operand) -> u32 {
        match o {
            Operand::Reg(r) => self.align[r.0 as usize],
            Operand::Imm(v) => v.trailing_zeros(),
            _ => 0,
        }
    }

    fn result_align(&self, inst: &Inst) -> u32 {
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
            Opcode::Add | Opcode::Sub | Opcode::Or | Opcode::Xor => a(0).min(a(1)),
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
}
