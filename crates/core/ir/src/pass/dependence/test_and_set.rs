//! Tests and sets in two steps: `if (!*taken) { *taken = 1; … }`, where `taken` points to something volatile or atomic.

use super::controls;
use crate::{Func, Inst, pass::shape::is_weak};
use margay_isa::Opcode;

/// Strong loads that decide whether the function writes to the same place by a strong store, if it never updates the place by an atomic
/// operation: as indices into [`Func::insts`]. Two threads may both find what only one of them should.
pub fn tests_and_sets(func: &Func) -> Vec<u32> {
    let op = |i: &Inst| func.variant(i).op;
    let place = |i: &Inst| (i.space, func.operands(i.srcs).first().copied());
    let strong = |i: &Inst, wanted: Opcode| {
        let v = func.variant(i);
        v.op == wanted && !is_weak(v)
    };
    let stores: Vec<u32> = (0..).zip(&func.insts).filter(|(_, i)| strong(i, Opcode::St)).map(|(at, _)| at).collect();
    let updates = |i: &Inst| matches!(op(i), Opcode::Atom | Opcode::Red);
    let tests = |at: &u32| {
        let load = &func.insts[*at as usize];
        if !strong(load, Opcode::Ld) {
            return false;
        }
        let here = |i: &Inst| place(i) == place(load);
        let sets = |s: &&u32| *s > at && here(&func.insts[**s as usize]);
        let set: Vec<u32> = stores.iter().filter(sets).copied().collect();
        !set.is_empty()
            && !func.insts.iter().any(|i| updates(i) && here(i))
            && set.iter().any(|store| controls(func, &[*at], *store))
    };
    if stores.is_empty() {
        return Vec::new();
    }
    (0..func.insts.len() as u32).filter(tests).collect()
}
