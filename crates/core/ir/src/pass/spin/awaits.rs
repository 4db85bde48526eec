//! Reads by which threads wait for others: for a lock, a flag or a count.

use super::{body::Body, calls, observes_others, update::retries};
use crate::{
    Block, Func, Inst,
    pass::{Cfg, Loop, liveness::inst_reads},
};
use margay_isa::{Effect, Opcode};

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

/// Whether a thread repeats a call, by its index into [`Func::insts`], until what it returns lets the thread leave the innermost loop around it: the
/// function observes others, and its result is no argument of the next call, as what another thread's update has left is when an update is
/// tried again.
pub fn awaits_result(func: &Func, cfg: &Cfg, call: u32) -> bool {
    let inst = &func.insts[call as usize];
    let Some((block, l)) = around(func, cfg, call as usize).filter(|_| calls::observes(func, inst)) else {
        return false;
    };
    let calls = |i: &&Inst| func.variant(i).op.row().effect == Effect::Call;
    let behind = &func.insts[call as usize + 1..block.insts.range().end];
    let results = &behind[..behind.iter().position(|i| calls(&i)).unwrap_or(behind.len())];
    let loads = |i: &Inst| func.variant(i).op == Opcode::Ld && calls::is_passed(func, i);
    let body = Body::new(func, cfg, l);
    let found = body
        .affected_by(|i| std::ptr::eq(i, inst) || results.as_ptr_range().contains(&std::ptr::from_ref(i)) && loads(i));
    let stores = |i: &&Inst| func.variant(i).op == Opcode::St && calls::is_passed(func, i);
    let passed_on = body.insts().filter(|i| stores(i) || calls(i)).any(|i| {
        let mut passed = false;
        inst_reads(func, i, &mut |r| passed |= found.contains(&r));
        passed
    });
    body.leaves_on(&found) && !passed_on
}

/// The block of an instruction, and the innermost loop around it.
fn around<'a>(func: &'a Func, cfg: &'a Cfg, inst: usize) -> Option<(&'a Block, &'a Loop)> {
    let block = func.blocks.iter().position(|b| b.insts.range().contains(&inst))?;
    let innermost = cfg.innermost(cfg.position[block])?;
    Some((&func.blocks[block], &cfg.loops[innermost]))
}

/// Whether the value that an instruction reads decides whether threads leave the innermost loop around it.
fn repeats(func: &Func, cfg: &Cfg, read: usize) -> bool {
    let Some((_, l)) = around(func, cfg, read) else { return false };
    let body = Body::new(func, cfg, l);
    let is_it = |i: &Inst| std::ptr::eq(i, &func.insts[read]);
    body.leaves_on(&body.affected_by(is_it)) && !retries(func, cfg, l)
}
