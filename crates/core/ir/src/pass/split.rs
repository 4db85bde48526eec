//! Splits blocks, on an engine's own copy: where some instructions must end a block, and where a guard
//! must be a branch. Instructions keep their numbers.

use crate::{BlockId, Func, Inst, Terminator};
use margay_syntax::tree::List;

/// An instruction that ends a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cut {
    /// The block whose last instruction it is.
    pub block: BlockId,
    /// Where threads continue; the only successor.
    pub next: BlockId,
}

/// Splits a block after an instruction; returns the block with the rest.
fn cut(func: &mut Func, block: usize, inst: usize) -> BlockId {
    cut_at(func, block, inst as u32 + 1)
}

/// Cuts a block before the instruction `start`; gives the block that begins with it.
fn cut_at(func: &mut Func, block: usize, start: u32) -> BlockId {
    let next = BlockId(func.blocks.len() as u32);
    let mut rest = func.blocks[block].clone();
    let end = rest.insts.start + rest.insts.len;
    rest.insts = List::new(start, end - start);
    rest.label = None;
    let first = &mut func.blocks[block];
    first.insts = List::new(first.insts.start, start - first.insts.start);
    first.term = Terminator::Jump(next);
    func.blocks.push(rest);
    next
}

/// Splits blocks so that every instruction in `ends` ends a block.
pub fn split_after(func: &mut Func, ends: impl Fn(&Func, &Inst) -> bool) -> Vec<Cut> {
    let mut cuts = Vec::new();
    for b in 0..func.blocks.len() {
        let mut here = b;
        for i in func.blocks[b].insts.range() {
            if ends(func, &func.insts[i]) {
                let next = cut(func, here, i);
                cuts.push(Cut { block: BlockId(here as u32), next });
                here = next.0 as usize;
            }
        }
    }
    cuts
}

/// Has every instruction that `begins` names begin a block that only the code before it leads to.
pub fn split_before(func: &mut Func, begins: impl Fn(&Func, &Inst) -> bool) {
    for b in 0..func.blocks.len() {
        let mut here = b;
        for i in func.blocks[b].insts.range() {
            if begins(func, &func.insts[i]) {
                here = cut_at(func, here, i as u32).0 as usize;
            }
        }
    }
}

/// Has lanes whose guard is false branch around the instructions that `chosen` names.
pub fn branch_around(func: &mut Func, chosen: impl Fn(&Func, &Inst) -> bool) {
    for b in 0..func.blocks.len() {
        let mut here = b;
        for i in func.blocks[b].insts.range() {
            let inst = func.insts[i];
            let Some((pred, negated)) = inst.guard.filter(|_| chosen(func, &inst)) else { continue };
            func.insts[i].guard = None;
            let rest = cut(func, here, i);
            // The instruction gets a block of its own, between the preceding instructions and the rest.
            let alone = BlockId(func.blocks.len() as u32);
            let mut block = func.blocks[here].clone();
            block.insts = List::new(i as u32, 1);
            block.label = None;
            func.blocks.push(block);
            let before = &mut func.blocks[here];
            before.insts = List::new(before.insts.start, i as u32 - before.insts.start);
            before.term = Terminator::Branch { pred, negated, then: alone, other: rest, uniform: false };
            here = rest.0 as usize;
        }
    }
}
