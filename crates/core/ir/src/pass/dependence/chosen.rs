//! Speculative loads. Compilers load from a variable that always exists before they know whether the program reads it, and select
//! afterwards: `ready ? data : 0` becomes a load of `data` and a `selp`.

use crate::{
    Func, Inst, Operand, VReg,
    pass::{
        BitSet,
        liveness::{inst_reads, inst_writes, term_reads},
    },
};
use margay_isa::{Effect, Opcode};

/// The conditions under which the program uses the value of a load, an index into [`Func::insts`]: at least one of these predicates has the
/// value beside it. All readers of the value follow the load in its block. `None` if the value may be used in other ways, or is not used
/// at all.
pub fn conditions_of_use(func: &Func, load: u32) -> Option<Vec<(VReg, bool)>> {
    let block = func.blocks.iter().map(|b| b.insts.range()).find(|range| range.contains(&(load as usize)))?;
    let mut loaded = BitSet::new(func.regs.len());
    inst_writes(func, &func.insts[load as usize], &mut |r| loaded.insert(r.0));
    // One walk reaches all readers in the block, as they follow what they read.
    let mut conditions = Vec::new();
    for inst in &func.insts[load as usize + 1..block.end] {
        let mut reads = false;
        inst_reads(func, inst, &mut |r| reads |= loaded.has(r.0));
        if !reads {
            continue;
        }
        match condition(func, inst, &loaded) {
            Some(condition) => conditions.push(condition),
            None if func.variant(inst).op.row().effect == Effect::Pure => {
                inst_writes(func, inst, &mut |r| loaded.insert(r.0));
            }
            None => return None,
        }
    }
    let mut elsewhere = false;
    let others = func.insts[..=load as usize].iter().chain(&func.insts[block.end..]);
    others.for_each(|inst| inst_reads(func, inst, &mut |r| elsewhere |= loaded.has(r.0)));
    func.blocks.iter().for_each(|b| term_reads(func, &b.term, &mut |r| elsewhere |= loaded.has(r.0)));
    (!elsewhere && !conditions.is_empty()).then_some(conditions)
}

/// The condition under which an instruction uses those of its operands that are in a set, if it has one that is not in it.
fn condition(func: &Func, inst: &Inst, loaded: &BitSet) -> Option<(VReg, bool)> {
    let has = |o: &Operand| matches!(o, Operand::Reg(r) | Operand::Not(r) if loaded.has(r.0));
    if let Some((p, negated)) = inst.guard.filter(|(p, _)| !loaded.has(p.0)) {
        return Some((p, !negated));
    }
    let (Opcode::Selp, [a, b, c]) = (func.variant(inst).op, func.operands(inst.srcs)) else { return None };
    let (p, value) = match c {
        Operand::Reg(p) => (*p, true),
        Operand::Not(p) => (*p, false),
        _ => return None,
    };
    match (has(a), has(b)) {
        _ if loaded.has(p.0) || inst.guard.is_some() => None,
        (true, false) => Some((p, value)),
        (false, true) => Some((p, !value)),
        _ => None,
    }
}
