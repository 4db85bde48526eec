//! Constant propagation: readers of a register that is always the same constant get the constant, and accesses by a register that is always
//! the same place in a local variable get that place.

use crate::{
    FrameId, FrameRole, Func, Inst, MemBase, MemSpace, Operand, VReg,
    explicit::holds,
    pass::{
        Cfg,
        cfg::successors,
        liveness::{inst_writes, only_definitions, read_early},
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
const LIMIT: usize = 1 << 16;

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
    if candidates.len().saturating_mul(func.blocks.len()) > LIMIT {
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

/// Which registers have exactly one value: they are written by one instruction, and never read before. What others hold there is nothing in
/// particular.
fn written_once(func: &Func) -> Vec<bool> {
    let early = read_early(func, &Cfg::new(func, |_, _| false));
    let definitions = only_definitions(func).into_iter().enumerate();
    definitions.map(|(r, definition)| definition.is_some() && !early.has(r as u32)).collect()
}

/// Replaces registers whose only definition is an unguarded `mov` of a constant, wherever they are plain operands, and accesses to local
/// variables by registers whose only definition is an address there.
pub fn propagate_constants(func: &mut Func) {
    let once = written_once(func);
    propagate_numbers(func, &once);
    propagate_places(func, &once);
}

fn propagate_numbers(func: &mut Func, once: &[bool]) {
    let mut value: Vec<Option<u64>> = vec![None; func.regs.len()];
    for (r, v) in func.insts.iter().filter_map(|inst| constant(func, inst)) {
        value[r.0 as usize] = Some(v).filter(|_| once[r.0 as usize]);
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
                && let Some(v) = value[r.0 as usize]
            {
                func.operands[at] = Operand::Imm(v);
            }
        }
    }
}

/// Compilers load the address of a local variable once (`mov.u64 %SPL, __local_depot0`), and access it by sums of that and constants. What is
/// inside the variable needs no check then.
fn propagate_places(func: &mut Func, once: &[bool]) {
    let local = |id: FrameId| func.frame[id.0 as usize].role == FrameRole::Local;
    let mut places: BTreeMap<VReg, (FrameId, i64)> = BTreeMap::new();
    // Definitions may follow their uses in the order of blocks.
    loop {
        let known = places.len();
        for inst in func.insts.iter().filter(|inst| inst.guard.is_none()) {
            let variant = func.variant(inst);
            let [Operand::Reg(r)] = func.operands(inst.dsts) else { continue };
            let whole = !variant.t().is_float() && func.regs[r.0 as usize].bits() == variant.t().bits();
            if !whole || !once[r.0 as usize] || places.contains_key(r) {
                continue;
            }
            let place = match (variant.op, func.operands(inst.srcs)) {
                (Opcode::Mov, [Operand::FrameAddr(id, offset)]) if local(*id) => Some((*id, *offset)),
                (Opcode::Mov, [Operand::Reg(from)]) => places.get(from).copied(),
                (Opcode::Add, [Operand::Reg(from), Operand::Imm(by)])
                    if !variant.has(Mod::Cc) && !variant.has(Mod::Sat) =>
                {
                    let by = if variant.t().bits() == 32 { i64::from(*by as i32) } else { *by as i64 };
                    places.get(from).and_then(|(id, offset)| Some((*id, offset.checked_add(by)?)))
                }
                _ => None,
            };
            places.extend(place.map(|place| (*r, place)));
        }
        if places.len() == known {
            break;
        }
    }
    if places.is_empty() {
        return;
    }
    for i in 0..func.insts.len() {
        let inst = func.insts[i];
        let variant = func.variant(&inst);
        let bytes = variant.t().bytes() * variant.vec();
        if inst.space != Some(MemSpace::Local) || !matches!(variant.op, Opcode::Ld | Opcode::St) {
            continue;
        }
        for at in inst.srcs.range() {
            if let Operand::Mem(MemBase::Reg(r), more) = func.operands[at]
                && let Some((id, offset)) = places.get(&r)
                && let Some(offset) = offset.checked_add(more)
                && holds(&func.frame[id.0 as usize], offset, bytes)
            {
                func.operands[at] = Operand::Mem(MemBase::Frame(*id), offset);
            }
        }
    }
}
