//! Accesses that share a check: those of one block that add different constants to one register.
//!
//! Before the first of them, the range of all is compared with the window; only if that fails is each one checked, in
//! program order, and all before the first is performed. So if two loads, stores or atomics of a block with different registers
//! fault, it may be the second of them that is reported. Whatever else may fault ends the groups.

use margay_exec::matrix;
use margay_ir::{Func, Inst, MemBase, MemSpace, Operand, VReg, pass::liveness::inst_writes};
use margay_isa::{Effect, Mod, Opcode, Variant};
use std::collections::HashMap;

/// Largest distance in bytes between accesses of a group outside shared memory, where one allocation must hold all.
const REACH: i64 = 1 << 20;

/// An access of a group.
#[derive(Clone, Copy, Debug)]
pub(in crate::emit) struct Member {
    /// Index into `Func::insts`.
    pub inst: u32,
    /// Constant that it adds to the register.
    pub offset: i64,
    /// Size in bytes per lane.
    pub bytes: u32,
}

impl Member {
    /// The address bits that must be zero for alignment.
    pub fn odd(self) -> i64 {
        i64::from(self.bytes.next_power_of_two().min(32)) - 1
    }
}

/// What the check before an access must prove.
#[derive(Clone, Debug)]
pub(in crate::emit) enum Grouped {
    /// The accesses of the whole group.
    First(Vec<Member>),
    /// Nothing: an earlier check covers it.
    Later,
}

/// Finds the groups of a function, by instruction.
pub(in crate::emit) fn find(func: &Func) -> HashMap<u32, Grouped> {
    let mut found = HashMap::new();
    for block in &func.blocks {
        let mut open: HashMap<(VReg, Option<MemSpace>), Vec<Member>> = HashMap::new();
        for i in block.insts.range() {
            let inst = &func.insts[i];
            let variant = func.variant(inst);
            if let Some((r, offset)) = plain(func, inst) {
                let member = Member { inst: i as u32, offset, bytes: variant.t().bytes() * variant.vec() };
                let group = open.entry((r, inst.space)).or_default();
                if !fits(group, member, inst.space == Some(MemSpace::Shared)) {
                    close(std::mem::take(group), &mut found);
                }
                group.push(member);
            }
            let ends = match variant.op.row().effect {
                Effect::Call | Effect::Control => true,
                // What may fault in ways of its own does so first: textures, bulk copies, matrices.
                Effect::Memory => !accesses_plainly(variant),
                Effect::Warp => matches!(variant.op, Opcode::Bar | Opcode::Barrier) || matrix::transfers(variant),
                Effect::Pure | Effect::Machine => false,
            };
            if ends {
                open.drain().for_each(|(_, group)| close(group, &mut found));
            }
            inst_writes(func, inst, &mut |r| {
                let keys: Vec<_> = open.keys().filter(|k| k.0 == r).copied().collect();
                for key in keys {
                    open.remove(&key).into_iter().for_each(|group| close(group, &mut found));
                }
            });
        }
        open.drain().for_each(|(_, group)| close(group, &mut found));
    }
    found
}

/// Whether an instruction accesses memory at one address per lane, or accesses none.
fn accesses_plainly(variant: &Variant) -> bool {
    use Opcode::{Atom, Cp, Fence, Ld, Ldu, Membar, Prefetch, Prefetchu, Red, St};
    match variant.op {
        Ld | Ldu | St | Atom | Red | Fence | Membar | Prefetch | Prefetchu => !variant.has(Mod::Async),
        Cp => !variant.has(Mod::Bulk),
        _ => false,
    }
}

/// Register and offset of an unguarded load or store.
fn plain(func: &Func, inst: &Inst) -> Option<(VReg, i64)> {
    let variant = func.variant(inst);
    let known = matches!(variant.op, Opcode::Ld | Opcode::Ldu | Opcode::St);
    if !known || inst.guard.is_some() || matches!(inst.space, Some(MemSpace::Local | MemSpace::SharedCluster)) {
        return None;
    }
    match func.operands(inst.srcs).first() {
        Some(Operand::Mem(MemBase::Reg(r), offset)) if variant.t().bytes() > 0 => Some((*r, *offset)),
        _ => None,
    }
}

/// Whether one comparison can cover the alignment of all members, and one window all their addresses.
fn fits(group: &[Member], new: Member, shared: bool) -> bool {
    let Some(widest) = group.iter().chain([&new]).max_by_key(|m| m.odd()) else { return true };
    let near = |m: &Member| shared || (m.offset - new.offset).abs() < REACH;
    let small = |m: &Member| m.offset.unsigned_abs() < 1 << 31;
    group.iter().chain([&new]).all(|m| (m.offset.wrapping_sub(widest.offset)) & m.odd() == 0 && near(m) && small(m))
}

fn close(group: Vec<Member>, found: &mut HashMap<u32, Grouped>) {
    if group.len() < 2 {
        return;
    }
    for later in &group[1..] {
        found.insert(later.inst, Grouped::Later);
    }
    found.insert(group[0].inst, Grouped::First(group));
}
