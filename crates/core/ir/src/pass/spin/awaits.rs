//! Reads by which threads wait for others: for a lock, a flag or a count.

use super::{body::Body, observes_others, update::retries};
use crate::{Func, Inst, pass::Cfg};

/// Whether a thread repeats a read, by its index into [`Func::insts`], until another thread has written what it waits for: the read observes
/// others, and its value decides whether the thread leaves the innermost loop around it. Not an update that is tried again because another
/// thread's has come first.
///
/// Compilers move the first iteration of such a loop before it, so a read in the same way of the same place counts, too.
pub fn awaits(func: &Func, cfg: &Cfg, read: u32) -> bool {
    let inst = &func.insts[read as usize];
    let alike = |other: &Inst| {
        func.variant(other) == func.variant(inst) && func.operands(other.srcs) == func.operands(inst.srcs)
    };
    observes_others(func, inst) && (0..func.insts.len()).any(|i| alike(&func.insts[i]) && repeats(func, cfg, i))
}

/// Whether the value that an instruction reads decides whether threads leave the innermost loop around it.
fn repeats(func: &Func, cfg: &Cfg, read: usize) -> bool {
    let Some(block) = func.blocks.iter().position(|b| b.insts.range().contains(&read)) else { return false };
    let Some(l) = cfg.innermost(cfg.position[block]).map(|l| &cfg.loops[l]) else { return false };
    let body = Body::new(func, cfg, l);
    let is_it = |i: &Inst| std::ptr::eq(i, &func.insts[read]);
    body.leaves_on(&body.affected_by(is_it)) && !retries(func, cfg, l)
}
