//! Assigns rows to virtual registers by linear scan over the layout, so that frames are small and stay in the cache.
//!
//! Divergent lanes may be at different ops with different live registers. They never clobber each other, since writes
//! reach only the executing lanes, unless all lanes of the frame execute.

use super::super::code::Shape;
use margay_ir::{
    FormalHome, Func,
    pass::{Cfg, Liveness, liveness},
};
use std::{cmp::Reverse, collections::BinaryHeap};

/// The first row per register (`u32::MAX` for unused ones), and the number of rows.
pub fn assign(func: &Func, cfg: &Cfg) -> (Vec<u32>, u32) {
    let n = func.regs.len();
    let live = Liveness::new(func, cfg);
    let mut range = vec![(u32::MAX, 0u32); n];
    let mut touch = |r: u32, at: u32| {
        let (first, last) = &mut range[r as usize];
        *first = (*first).min(at);
        *last = (*last).max(at);
    };
    // Formals are live from before the first op.
    for home in func.params.iter().chain(&func.rets) {
        if let FormalHome::Regs(regs) = home {
            regs.iter().for_each(|r| touch(r.0, 0));
        }
    }
    let mut at = 1;
    for b in &cfg.order {
        let block = &func.blocks[b.0 as usize];
        live.live_in[b.0 as usize].iter().for_each(|r| touch(r, at));
        for inst in func.insts(block) {
            liveness::inst_reads(func, inst, &mut |r| touch(r.0, at));
            liveness::inst_writes(func, inst, &mut |r| touch(r.0, at));
            at += 1;
        }
        liveness::term_reads(func, &block.term, &mut |r| touch(r.0, at));
        for s in &cfg.succs[b.0 as usize] {
            live.live_in[s.0 as usize].iter().for_each(|r| touch(r, at));
        }
        at += 1;
    }
    let mut order: Vec<u32> = (0..n as u32).filter(|r| range[*r as usize].0 != u32::MAX).collect();
    order.sort_unstable_by_key(|r| range[*r as usize]);
    let mut rows = vec![u32::MAX; n];
    // Free rows per class, lowest first.
    let mut free: [BinaryHeap<Reverse<u32>>; 4] = Default::default();
    let mut active: BinaryHeap<Reverse<(u32, u32)>> = BinaryHeap::new();
    let mut end = 0;
    for r in order {
        let (first, last) = range[r as usize];
        while let Some(Reverse((ends, old))) = active.peek().copied().filter(|Reverse((ends, _))| *ends < first) {
            debug_assert!(ends < first);
            active.pop();
            free[class(func, old)].push(Reverse(rows[old as usize]));
        }
        let c = class(func, r);
        rows[r as usize] = match free[c].pop() {
            Some(Reverse(row)) => row,
            None => {
                let row = end;
                end += Shape::of(func.regs[r as usize]).rows() as u32;
                row
            }
        };
        active.push(Reverse((last, r)));
    }
    (rows, end)
}

/// The class of a register; registers of one class may share rows: those of 1, 2 and 4 rows, and predicates. A
/// predicate's word 0 holds the bits of all lanes, so lane 0 of a word register in that row would clobber predicates of
/// divergent lanes.
fn class(func: &Func, r: u32) -> usize {
    match Shape::of(func.regs[r as usize]) {
        Shape::Pred => 3,
        shape => shape.rows().trailing_zeros() as usize,
    }
}
