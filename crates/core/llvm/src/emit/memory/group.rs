//! Accesses that share a check: those of one block that add different constants to one register.
//!
//! Before the first of them, the range of all is compared with the window; only if that fails is each one checked, in
//! program order, and all before the first is performed. If a later one faults, the accesses with other registers that come before it
//! are checked too, so that the first fault in program order is reported: a group ends at an access whose address is not known yet where
//! the group begins. Whatever else may fault ends the groups.

use super::address::NEAR;
use margay_exec::matrix;
use margay_ir::{Func, Inst, MemBase, MemSpace, Operand, VReg, pass::liveness::inst_writes};
use margay_isa::{Effect, Mod, Opcode, Variant};
use std::collections::HashMap;

/// Accesses with other registers in a group, to bound the code.
const MAX_OTHERS: usize = 16;
/// Accesses of a group outside shared memory are less than this apart, since one allocation must hold all.
const REACH: u64 = 1 << 20;

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

/// An access with another register between those of a group.
#[derive(Clone, Copy, Debug)]
pub(in crate::emit) struct Other {
    /// Index into `Func::insts`.
    pub inst: u32,
    /// The register of its address, which has the same value where the group begins.
    pub base: VReg,
    /// Constant that it adds to the register.
    pub offset: i64,
    /// Size in bytes per lane.
    pub bytes: u32,
    /// Number of the group's accesses before it.
    pub after: usize,
}

/// A group, in program order.
#[derive(Clone, Default, Debug)]
pub(in crate::emit) struct Group {
    /// Its accesses.
    pub members: Vec<Member>,
    /// Those between them that no check before the group covers.
    pub others: Vec<Other>,
}

impl Group {
    fn first(&self) -> Option<u32> {
        self.members.first().map(|m| m.inst)
    }
}

/// The accesses that the check before an access covers.
#[derive(Clone, Debug)]
pub(in crate::emit) enum Grouped {
    /// Those of the whole group.
    First(Group),
    /// None: an earlier check covers the access.
    Later,
}

/// The groups of a block that may still grow, by register and space.
type Open = HashMap<(VReg, Option<MemSpace>), Group>;

/// Finds the groups of a function, by instruction.
pub(in crate::emit) fn find(func: &Func) -> HashMap<u32, Grouped> {
    let mut found = HashMap::new();
    for block in &func.blocks {
        let mut open = Open::new();
        // Where registers were last written in the block.
        let mut written: HashMap<VReg, u32> = HashMap::new();
        for i in block.insts.range() {
            let inst = &func.insts[i];
            let variant = func.variant(inst);
            let address = plain(func, inst);
            if let Some((r, offset)) = address {
                let member = Member { inst: i as u32, offset, bytes: variant.t().bytes() * variant.vec() };
                let group = open.entry((r, inst.space)).or_default();
                if !fits(&group.members, member, inst.space == Some(MemSpace::Shared)) {
                    close(std::mem::take(group), &mut found);
                }
                let checked = group.first();
                group.members.push(member);
                let known = |since: u32| written.get(&r).is_none_or(|at| *at < since);
                come_between(&mut open, (r, inst.space), (member, checked), known, &mut found);
            }
            let ends = match variant.op.row().effect {
                Effect::Call | Effect::Control => true,
                // Instructions with faults of their own must report them first: textures, bulk copies, matrices, accesses that are not plain.
                Effect::Memory => !accesses_plainly(variant) || address.is_none() && has_address(func, inst),
                Effect::Warp => {
                    let op = variant.op;
                    matches!(op, Opcode::Bar | Opcode::Barrier | Opcode::Wgmma | Opcode::Tcgen05)
                        || matrix::transfers(variant)
                }
                // The rank of a CTA that the cluster does not have.
                Effect::Machine => variant.op == Opcode::Mapa,
                Effect::Pure => false,
            };
            if ends {
                open.drain().for_each(|(_, group)| close(group, &mut found));
            }
            inst_writes(func, inst, &mut |r| {
                written.insert(r, i as u32);
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

/// Notes an access with the register of `key` in the groups of other registers. An earlier access of its own group may have `checked` it;
/// `known` says whether its register has not been written since an instruction.
fn come_between(
    open: &mut Open,
    key: (VReg, Option<MemSpace>),
    (member, checked): (Member, Option<u32>),
    known: impl Fn(u32) -> bool,
    found: &mut HashMap<u32, Grouped>,
) {
    let Member { inst, offset, bytes } = member;
    for (_, group) in open.iter_mut().filter(|(k, _)| **k != key) {
        let Some(first) = group.first() else { continue };
        if checked.is_some_and(|at| at < first) {
            continue;
        }
        if known(first) && group.others.len() < MAX_OTHERS {
            group.others.push(Other { inst, base: key.0, offset, bytes, after: group.members.len() });
        } else {
            close(std::mem::take(group), found);
        }
    }
}

/// Whether an instruction accesses memory through a register, in a way that may fault.
fn has_address(func: &Func, inst: &Inst) -> bool {
    use Opcode::{Atom, Cp, Ld, Ldu, Red, St};
    let operands = || func.operands(inst.srcs).iter().chain(func.operands(inst.dsts));
    matches!(func.variant(inst).op, Ld | Ldu | St | Atom | Red | Cp)
        && operands().any(|o| matches!(o, Operand::Mem(MemBase::Reg(_), _)))
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
    // Offsets in shared memory wrap around at 32 bits, but not from one of these accesses to another.
    let reach = if shared { NEAR } else { REACH };
    let near = |m: &Member| m.offset.abs_diff(new.offset) < reach;
    let small = |m: &Member| m.offset.unsigned_abs() < 1 << 31;
    group.iter().chain([&new]).all(|m| (m.offset.wrapping_sub(widest.offset)) & m.odd() == 0 && near(m) && small(m))
}

fn close(group: Group, found: &mut HashMap<u32, Grouped>) {
    let Some((first, later @ [_, ..])) = group.members.split_first() else { return };
    for later in later {
        found.insert(later.inst, Grouped::Later);
    }
    found.insert(first.inst, Grouped::First(group));
}
