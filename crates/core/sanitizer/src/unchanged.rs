//! Atomic operations that leave memory as it is: an `atom.or` of bits that are set, a maximum that is not greater, a comparison that fails.

use crate::{instructions, site::of_site};
use margay_exec::{AccessKind, Image, LANES, MemoryEvent, sem::atomic::Rmw};
use margay_ir::{Func, Inst, MemSpace, Operand};

/// By site, once it is known: the atomic instruction on one element, an index into [`Func::insts`].
pub type Atomics = Vec<Option<Option<u32>>>;

/// Whether a lane's access is an atomic operation on one element that changes nothing; false if its operands are not known. It has not taken
/// effect yet.
pub fn changes_nothing(known: &mut Atomics, image: &Image, (e, lane): (&MemoryEvent<'_>, u32), site: u32) -> bool {
    if e.access != AccessKind::Atomic || e.size > 8 || e.size != e.element {
        return false;
    }
    let func = image.ir.func(e.actor.at.0);
    let only = || {
        let mut here = instructions(func, e.actor.at.1);
        here.next().filter(|_| here.next().is_none())
    };
    let inst = *of_site(known, site).get_or_insert_with(only);
    inst.is_some_and(|i| keeps(func, &func.insts[i as usize], e, lane) == Some(true))
}

fn keeps(func: &Func, inst: &Inst, e: &MemoryEvent<'_>, lane: u32) -> Option<bool> {
    let rmw = Rmw::of(func.variant(inst))?;
    let [_, operands @ ..] = func.operands(inst.srcs) else { return None };
    let value = |o: Option<&Operand>| match o {
        None => Some(0),
        Some(Operand::Imm(value)) => Some(*value),
        Some(Operand::Reg(r)) => {
            let rows = e.registers?(*r)?;
            let word = |i: usize| rows.get(i).map_or(0, |row| u64::from(row.0[lane as usize % LANES]));
            Some(word(0) | word(1) << 32)
        }
        Some(_) => None,
    };
    let (b, c) = (value(operands.first())?, value(operands.get(1))?);
    let mut held = [0; 8];
    let (to, mask) = (&mut held[..e.size as usize], u64::MAX >> (64 - 8 * e.size));
    let known = (e.peek)(e.addresses[lane as usize], to);
    let flush = rmw.flushes(e.space == MemSpace::Shared);
    known.then(|| !rmw.changes(flush, u64::from_le_bytes(held), b & mask, c & mask))
}
