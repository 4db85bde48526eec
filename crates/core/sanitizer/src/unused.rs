//! Loads whose value a thread does not use.
//!
//! Where a value belongs to several threads of a CTA, Triton has all of them load it and one of them store what becomes of it: the store has
//! a guard that depends on the thread's index and is false for the others. What these have loaded goes nowhere, so it does not
//! matter that the store may come first.

use crate::{
    Sanitizer, State,
    clock::Side,
    lanes,
    row::{Hit, Missing},
    shadow::WarpLanes,
    threads::WarpMask,
};
use margay_exec::{AccessKind, Known, LANES, MemoryEvent, Row};
use margay_ir::{
    Func, Inst, Operand, VReg,
    pass::{
        BitSet,
        liveness::{inst_reads, inst_writes, term_reads},
    },
};
use margay_isa::{Component, Effect, Opcode, Special, Type};
use std::borrow::Cow;

/// Definitions through which a guard is traced.
pub(crate) const DEPTH: u32 = 24;

/// A function, for one warp of a CTA.
pub(crate) struct Code<'a> {
    pub func: &'a Func,
    /// The indices of the threads in their CTA, by lane.
    pub threads: [[u32; 3]; LANES],
    /// Numbers of threads of a CTA.
    pub block: [u32; 3],
    /// By register: the instruction that defines it, if there is only one.
    pub defs: Cow<'a, [Option<u32>]>,
    /// Registers whose values are known otherwise.
    pub values: Vec<(VReg, Row)>,
}

/// By register: the instruction that defines it, if there is only one, without a guard.
pub(crate) fn definitions(func: &Func) -> Vec<Option<u32>> {
    let (mut defs, mut seen) = (vec![None; func.regs.len()], BitSet::new(func.regs.len()));
    for (i, inst) in func.insts.iter().enumerate() {
        inst_writes(func, inst, &mut |r| {
            let again = seen.has(r.0);
            seen.insert(r.0);
            defs[r.0 as usize] = (!again && inst.guard.is_none()).then_some(i as u32);
        });
    }
    defs
}

impl Known for Code<'_> {
    fn func(&self) -> &Func {
        self.func
    }

    fn definition(&self, register: VReg) -> Option<&Inst> {
        self.defs[register.0 as usize].map(|i| &self.func.insts[i as usize])
    }

    fn value(&self, register: VReg) -> Option<Vec<Row>> {
        self.values.iter().find(|(known, _)| *known == register).map(|(_, row)| vec![*row])
    }

    /// The thread's index in its CTA, and the numbers of threads.
    fn special(&self, operand: &Operand) -> Option<Row> {
        let Operand::Special(special @ (Special::Tid | Special::Ntid), component) = operand else { return None };
        let axis = [Component::X, Component::Y, Component::Z].iter().position(|axis| axis == component)?;
        Some(match special {
            Special::Tid => Row(self.threads.map(|thread| thread[axis])),
            _ => Row([self.block[axis]; LANES]),
        })
    }
}

impl<'a> Code<'a> {
    fn new(func: &'a Func, threads: [[u32; 3]; LANES], block: [u32; 3]) -> Code<'a> {
        Code { func, threads, block, defs: Cow::Owned(definitions(func)), values: Vec::new() }
    }

    /// The lanes for which a predicate certainly has a value.
    pub fn certain(&self, o: &Operand, value: bool, depth: u32) -> u32 {
        if let Some(row) = self.row(o, Type::Pred, depth) {
            return if value { row.0[0] } else { !row.0[0] };
        }
        let r = match o {
            Operand::Not(r) => return self.certain(&Operand::Reg(*r), !value, depth),
            Operand::Reg(r) if depth > 0 => *r,
            _ => return 0,
        };
        let Some(inst) = self.definition(r) else { return 0 };
        match (self.func.variant(inst).op, self.func.operands(inst.srcs)) {
            (Opcode::Mov, [p]) => self.certain(p, value, depth - 1),
            (Opcode::Not, [p]) => self.certain(p, !value, depth - 1),
            (op @ (Opcode::And | Opcode::Or), [a, b]) => {
                let (a, b) = (self.certain(a, value, depth - 1), self.certain(b, value, depth - 1));
                if (op == Opcode::And) == value { a & b } else { a | b }
            }
            _ => 0,
        }
    }

    /// The lanes that do not use what the instruction that begins there loads: it only reaches instructions whose guard is false for
    /// them, by way of others that compute.
    fn unused(&self, load: u32) -> u32 {
        let func = self.func;
        let begins = |inst: &&Inst| func.places[inst.at as usize].span.start == load;
        let mut loads = func.insts.iter().filter(begins);
        let (Some(inst), None) = (loads.next(), loads.next()) else { return 0 };
        if func.variant(inst).op != Opcode::Ld {
            return 0;
        }
        let mut regs = BitSet::new(func.regs.len());
        inst_writes(func, inst, &mut |r| regs.insert(r.0));
        let (mut unused, mut exchanges, mut used) = (u32::MAX, false, false);
        let mut more = true;
        while std::mem::take(&mut more) && unused != 0 {
            for inst in &func.insts {
                let mut reads = false;
                inst_reads(func, inst, &mut |r| reads |= regs.has(r.0));
                if !reads {
                    continue;
                }
                let op = func.variant(inst).op;
                let exchange = matches!(op, Opcode::Shfl | Opcode::Redux);
                if op.row().effect == Effect::Pure || exchange {
                    exchanges |= exchange;
                    inst_writes(func, inst, &mut |r| {
                        more |= !regs.has(r.0);
                        regs.insert(r.0);
                    });
                    continue;
                }
                used = true;
                unused &= match inst.guard {
                    Some((p, negated)) => self.certain(&Operand::Reg(p), negated, DEPTH),
                    None => 0,
                };
            }
        }
        func.blocks.iter().for_each(|block| {
            term_reads(func, &block.term, &mut |r| unused &= if regs.has(r.0) { 0 } else { u32::MAX });
        });
        // Another lane of the warp may use what came by an exchange. What nobody uses at all says nothing of what was meant.
        if !used || exchanges && unused != u32::MAX { 0 } else { unused }
    }
}

impl Sanitizer {
    /// The lanes of a warp that do not use what a plain load yields.
    fn unused(&self, state: &mut State, site: u32, warp: u32) -> u32 {
        let load = state.sites.get(site);
        if load.access != AccessKind::Load || load.is_strong() || load.order.asynchronous || !load.callers.is_empty() {
            return 0;
        }
        let (func, at) = load.at;
        let compute = || {
            let threads = std::array::from_fn(|lane| self.thread(warp, lane as u32));
            Code::new(self.image.ir.func(func), threads, self.block).unused(at.span.start)
        };
        *state.unused.entry((func.0, at.span.start, warp)).or_insert_with(compute)
    }

    /// Whether one of two unordered accesses is a load, and all threads whose loads these may be either do not use the value or are ordered
    /// with the other access.
    pub(crate) fn is_unused(&self, state: &mut State, e: &MemoryEvent<'_>, hit: &Hit, site: u32) -> bool {
        if matches!(hit.missing, Missing::Proxy) {
            return false;
        }
        let at = e.addresses[hit.lane as usize];
        let index = self.index(e.actor.cta);
        let side = Side::Program;
        if e.access == AccessKind::Load {
            let unused = self.unused(state, site, e.actor.warp);
            if matches!(hit.missing, Missing::Wait(_) | Missing::Coherence) {
                return unused >> hit.lane & 1 == 1;
            }
            let Some(cta) = state.ctas.get(index) else { return false };
            let unordered = |lane: &u32| {
                let who = WarpMask { warp: e.actor.warp, lanes: 1 << lane };
                let WarpLanes { cta: other, warp, lanes } = hit.other;
                e.addresses[*lane as usize] == at
                    && cta.threads.unseen(who, (other, warp, lanes), side, hit.earlier.time).is_some()
            };
            return !hit.earlier.is_agent()
                && lanes(e.actor.lanes).filter(unordered).all(|lane| unused >> lane & 1 == 1);
        }
        let earlier = hit.earlier.site();
        if hit.earlier.is_agent() || !matches!(hit.missing, Missing::Order) {
            return false;
        }
        hit.earlier.warp_lanes(self.warps).all(|group| {
            let unused = self.unused(state, earlier, group.warp);
            let who = WarpMask { warp: e.actor.warp, lanes: 1 << hit.lane };
            let left = group.lanes & !unused;
            let Some(cta) = state.ctas.get(index).filter(|_| left != 0) else { return left == 0 };
            cta.threads.unseen(who, (group.cta, group.warp, left), side, hit.earlier.time).is_none()
        })
    }
}
