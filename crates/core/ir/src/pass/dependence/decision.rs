//! Reads whose value decides a branch and nothing else, as in `while (*flag < n);` and `if (!*flag)`: other values with which a thread takes the
//! same branch make no difference to it.

use crate::{
    Func, Operand, Terminator, VReg,
    pass::{
        BitSet, Cfg, changes_nothing,
        liveness::{inst_reads, inst_writes, term_reads},
    },
};
use margay_isa::{Effect, Kind, Opcode};
use std::ops::Range;

/// What becomes of the value that an instruction reads.
#[derive(Debug)]
pub struct Decision {
    /// The register that holds the value.
    pub value: VReg,
    /// The predicate of the branch.
    pub predicate: VReg,
    /// If the branch may leave a loop: with which value of it the thread does.
    pub leaves_if: Option<bool>,
    /// The instructions between the two, which compute the one from the other: indices into [`Func::insts`].
    pub between: Range<usize>,
}

impl Decision {
    /// Of a load, or of an atomic that changes nothing: if its value, of at most 64 bits, reaches the branch at the end of its block by way of
    /// pure instructions, and nothing else.
    pub fn of(func: &Func, cfg: &Cfg, read: u32) -> Option<Decision> {
        let inst = &func.insts[read as usize];
        let v = func.variant(inst);
        let reads = v.op == Opcode::Ld || v.op == Opcode::Atom && changes_nothing(func, inst);
        let [Operand::Reg(value)] = func.operands(inst.dsts) else { return None };
        let bits = func.regs[value.0 as usize].bits();
        let extends = v.t().kind() == Kind::Signed && v.t().bits() < bits;
        if !reads || extends || inst.guard.is_some() || bits > 64 {
            return None;
        }
        let number = func.blocks.iter().position(|b| b.insts.range().contains(&(read as usize)))?;
        let block = &func.blocks[number];
        let Terminator::Branch { pred: predicate, negated, then, other, .. } = block.term else { return None };
        let innermost = cfg.innermost(cfg.position[number]);
        let leaves_if = innermost.and_then(|l| {
            let inside = cfg.blocks(&cfg.loops[l]);
            match [then, other].map(|to| inside.contains(&to)) {
                [false, true] => Some(!negated),
                [true, false] => Some(negated),
                _ => None,
            }
        });
        let between = read as usize + 1..block.insts.range().end;
        let mut holds = BitSet::new(func.regs.len());
        holds.insert(value.0);
        for inst in &func.insts[between.clone()] {
            let mut uses = false;
            inst_reads(func, inst, &mut |r| uses |= holds.has(r.0));
            if uses && (func.variant(inst).op.row().effect != Effect::Pure || inst.guard.is_some()) {
                return None;
            }
            if uses {
                inst_writes(func, inst, &mut |r| holds.insert(r.0));
            }
        }
        let mut elsewhere = false;
        let others = func.insts[..=read as usize].iter().chain(&func.insts[between.end..]);
        others.for_each(|inst| inst_reads(func, inst, &mut |r| elsewhere |= holds.has(r.0)));
        let ends = func.blocks.iter().filter(|b| !std::ptr::eq(*b, block));
        ends.for_each(|b| term_reads(func, &b.term, &mut |r| elsewhere |= holds.has(r.0)));
        (holds.has(predicate.0) && !elsewhere).then_some(Decision { value: *value, predicate, leaves_if, between })
    }
}
