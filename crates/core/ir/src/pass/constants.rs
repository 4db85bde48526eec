//! Constant propagation: readers of a register that is always the same constant get the constant.

use crate::{
    Func, Inst, Operand, VReg,
    pass::{
        Cfg,
        cfg::successors,
        liveness::{inst_writes, read_early},
    },
};
use margay_isa::{Effect, Kind, Mod, Opcode};
use std::collections::BTreeMap;

/// The register that an unguarded `mov` sets to a constant, and the constant.
fn constant(func: &Func, inst: &Inst) -> Option<(VReg, u64)> {
    let variant = func.variant(inst);
    let plain = variant.op == Opcode::Mov && inst.guard.is_none() && variant.t().kind() != Kind::Pred;
    let ([Operand::Imm(v)], [Operand::Reg(r)]) = (func.operands(inst.srcs), func.operands(inst.dsts)) else {
        return None;
    };
    let own = func.regs[r.0 as usize].bits();
    let bits = own.min(variant.t().bits());
    (plain && own <= 64).then(|| (*r, if bits < 64 { v & ((1 << bits) - 1) } else { *v }))
}

/// Work beyond which [`constants_at`] gives up: blocks times registers.
const MOST: usize = 1 << 16;

/// Registers that hold a constant where blocks begin, though they are assigned more than once: by block, the constants by register.
pub fn constants_at(func: &Func, cfg: &Cfg) -> Vec<BTreeMap<u32, u64>> {
    // `None`: different values, or one that is no constant. What is not in a map at all has not been reached yet.
    type Values = BTreeMap<u32, Option<u64>>;
    let join = |into: &mut Values, from: &Values| {
        let mut changed = false;
        for (r, v) in from {
            let old = *into.entry(*r).or_insert_with(|| {
                changed = true;
                *v
            });
            if old != *v && old.is_some() {
                (changed, _) = (true, into.insert(*r, None));
            }
        }
        changed
    };
    let mut at = vec![Values::new(); func.blocks.len()];
    let candidates: Values = func.insts.iter().filter_map(|i| Some((constant(func, i)?.0.0, None))).collect();
    if candidates.len().saturating_mul(func.blocks.len()) > MOST {
        return vec![BTreeMap::new(); func.blocks.len()];
    }
    // Before it is assigned, a register holds anything.
    at[0] = candidates;
    let mut changed = true;
    while changed {
        changed = false;
        for b in &cfg.order {
            let block = &func.blocks[b.0 as usize];
            let mut values = at[b.0 as usize].clone();
            for inst in func.insts(block) {
                inst_writes(func, inst, &mut |r| {
                    values.get_mut(&r.0).into_iter().for_each(|v| *v = None);
                });
                if let Some((r, v)) = constant(func, inst) {
                    values.insert(r.0, Some(v));
                }
            }
            for next in successors(&block.term) {
                changed |= join(&mut at[next.0 as usize], &values);
            }
        }
    }
    at.into_iter().map(|values| values.into_iter().filter_map(|(r, v)| Some((r, v?))).collect()).collect()
}

/// Replaces registers whose only definition is an unguarded `mov` of a constant, wherever they are plain operands; not those that may be
/// read before, when they hold nothing in particular.
pub fn propagate_constants(func: &mut Func) {
    let early = read_early(func, &Cfg::new(func, |_, _| false));
    let mut times = vec![0u32; func.regs.len()];
    let mut value: Vec<Option<u64>> = vec![None; func.regs.len()];
    for inst in &func.insts {
        inst_writes(func, inst, &mut |r| times[r.0 as usize] += 1);
        if let Some((r, v)) = constant(func, inst) {
            value[r.0 as usize] = Some(v);
        }
    }
    for home in &func.params {
        if let crate::FormalHome::Regs(regs) = home {
            regs.iter().for_each(|r| times[r.0 as usize] += 1);
        }
    }
    early.iter().for_each(|r| times[r as usize] += 1);
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
