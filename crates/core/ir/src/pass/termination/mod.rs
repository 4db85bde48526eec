//! Loops that terminate, as far as their counters show.
//!
//! A loop terminates if a branch that every iteration executes eventually leaves it, because it compares a *recurrence*, a register that
//! each iteration changes in the same way (a counter, a value that is halved, a remainder of itself), with a value that the loop does
//! not change. An unknown bound is assumed to be reached, as in the loops that compilers generate. A known bound must be reached without
//! wrapping around and, in a test for equality, be hit exactly.

mod alignment;
mod comparison;
mod recurrence;
mod residue;

use crate::{
    BlockId, Func, Inst, Operand, Terminator, VReg,
    pass::{
        Cfg, Loop,
        liveness::{inst_reads, inst_writes, term_reads},
    },
};
use margay_isa::{Effect, Kind, Mod, Opcode, Type};
use recurrence::{Motion, Value};
use std::collections::HashSet;

/// What the branches that leave loops say of whether they are left.
pub struct Termination<'a> {
    func: &'a Func,
    cfg: &'a Cfg,
    /// By register: the instructions that define it, with their blocks, in the order of the layout.
    defs: Vec<Vec<(BlockId, u32)>>,
    /// By register: two to this divides all its values.
    align: Vec<u32>,
}

/// Whether a loop ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ends {
    /// It does.
    Always,
    /// Nothing suggests it: the tests that could leave it never change their outcome, or none of them depends on input.
    Never,
    /// It may, depending on the values that the loop computes from its input.
    Unknown,
}

/// How a block leaves a loop.
enum Exit {
    /// It always does.
    Always,
    /// The loop continues while a predicate has a value.
    While(VReg, bool),
    Unknown,
}

/// Definitions through which a value is traced.
const DEPTH: usize = 24;

/// Places at which the inputs of a loop are looked for.
const MAX_STEPS: usize = 1 << 14;

fn mask(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

fn signed(v: u64, bits: u32) -> i64 {
    let unused = 64 - bits.clamp(1, 64);
    ((v << unused) as i64) >> unused
}

fn is_integer(t: Type) -> bool {
    t.is_int() || t.kind() == Kind::Bits
}

impl<'a> Termination<'a> {
    /// Prepares the questions about a function's loops.
    pub fn new(func: &'a Func, cfg: &'a Cfg) -> Termination<'a> {
        let mut defs = vec![Vec::new(); func.regs.len()];
        for b in &cfg.order {
            for i in func.blocks[b.0 as usize].insts.range() {
                inst_writes(func, &func.insts[i], &mut |r| defs[r.0 as usize].push((*b, i as u32)));
            }
        }
        let mut all = Termination { func, cfg, defs, align: Vec::new() };
        all.find_alignment();
        all
    }

    /// The last definition of a register in a block before an instruction.
    fn defined_before(&self, r: VReg, b: BlockId, before: u32) -> Option<u32> {
        let (defs, place) = (&self.defs[r.0 as usize], |b: BlockId| self.cfg.position[b.0 as usize]);
        let later = defs.partition_point(|(at, i)| (place(*at), *i) < (place(b), before));
        defs[..later].last().filter(|(at, _)| *at == b).map(|(_, i)| *i)
    }

    /// Whether a counter of its own ends a loop, provided that its loads from one address always return the same value, such as a bound that it
    /// reloads after its stores.
    pub fn counts(&self, l: &Loop) -> bool {
        self.ends(&Body { quiet: true, waits: false, ..Body::new(self, l) }) == Ends::Always
    }

    /// What is known of a loop.
    pub fn of(&self, l: &Loop) -> Ends {
        self.ends(&Body::new(self, l))
    }

    fn ends(&self, body: &Body<'_>) -> Ends {
        let l = body.l;
        let mut hopeless = true;
        for b in body.blocks() {
            let Some(exit) = body.exit(*b) else { continue };
            let passed = !l.irreducible && body.always(*b);
            match exit {
                Exit::Always if passed => return Ends::Always,
                Exit::While(p, value) if passed && body.fails(p, value, 0) => return Ends::Always,
                Exit::While(p, _) => hopeless &= passed && body.never_changes(p, 0),
                Exit::Always | Exit::Unknown => hopeless = false,
            }
        }
        if hopeless || !body.has_input() { Ends::Never } else { Ends::Unknown }
    }
}

/// A loop whose recurrences are looked for.
struct Body<'a> {
    all: &'a Termination<'a>,
    l: &'a Loop,
    /// It only computes and loads, so loads from one address return the same value unless other threads write.
    quiet: bool,
    /// What others count by atomics counts as a clock, for which it waits.
    waits: bool,
}

impl<'a> Body<'a> {
    fn new(all: &'a Termination<'a>, l: &'a Loop) -> Body<'a> {
        let body = Body { all, l, quiet: false, waits: true };
        let only_loads = |i: &Inst| {
            let op = all.func.variant(i).op;
            op == Opcode::Ld || op.row().effect == Effect::Pure
        };
        let quiet = body.blocks().iter().all(|b| all.func.insts(&all.func.blocks[b.0 as usize]).iter().all(only_loads));
        Body { quiet, ..body }
    }

    fn blocks(&self) -> &[BlockId] {
        self.all.cfg.blocks(self.l)
    }

    fn holds(&self, b: BlockId) -> bool {
        let at = self.all.cfg.position[b.0 as usize];
        self.l.holds(at)
    }

    /// How a block leaves the loop, if it may.
    fn exit(&self, b: BlockId) -> Option<Exit> {
        let term = &self.all.func.blocks[b.0 as usize].term;
        match term {
            Terminator::Branch { pred, negated, then, other, .. } => match (self.holds(*then), self.holds(*other)) {
                (true, true) => None,
                (true, false) => Some(Exit::While(*pred, !negated)),
                (false, true) => Some(Exit::While(*pred, *negated)),
                (false, false) => Some(Exit::Always),
            },
            Terminator::Jump(to) => (!self.holds(*to)).then_some(Exit::Always),
            Terminator::Switch { targets, .. } => targets.iter().any(|t| !self.holds(*t)).then_some(Exit::Unknown),
            Terminator::Ret | Terminator::Exit => Some(Exit::Always),
        }
    }

    /// Whether the outcome of some branch of the loop depends on memory, parameters, indices, the time, callees or the values of an enclosing
    /// loop. Follows the definitions that reach a read, because the register may hold other values elsewhere. A long search counts as one
    /// that finds such an input.
    fn has_input(&self) -> bool {
        let (func, cfg) = (self.all.func, self.all.cfg);
        let end = |b: BlockId| func.blocks[b.0 as usize].insts.range().end as u32;
        let formals = func.params.iter().filter_map(|home| match home {
            crate::FormalHome::Regs(regs) => Some(regs),
            _ => None,
        });
        let formals: HashSet<VReg> = formals.flatten().copied().collect();
        // Registers as they are before an instruction of a block.
        let mut work: Vec<(VReg, BlockId, u32)> = Vec::new();
        let mut seen = HashSet::new();
        for b in self.blocks() {
            term_reads(func, &func.blocks[b.0 as usize].term, &mut |r| work.push((r, *b, end(*b))));
        }
        while let Some((r, b, before)) = work.pop() {
            if !seen.insert((r, b.0, before)) {
                continue;
            }
            if seen.len() > MAX_STEPS {
                return true;
            }
            let Some(i) = self.all.defined_before(r, b, before) else {
                if Some(&b) == cfg.order.first() && formals.contains(&r) {
                    return true;
                }
                work.extend(cfg.preds[b.0 as usize].iter().map(|from| (r, *from, end(*from))));
                continue;
            };
            let inst = &func.insts[i as usize];
            let given = |o: &Operand| matches!(o, Operand::Special(..));
            if matches!(func.variant(inst).op.row().effect, Effect::Memory | Effect::Call)
                || func.operands(inst.srcs).iter().any(given)
                || self.is_around(b) && moved_constant(func, inst).is_none()
            {
                return true;
            }
            inst_reads(func, inst, &mut |s| work.push((s, b, i)));
            if inst.guard.is_some() {
                work.push((r, b, i));
            }
        }
        false
    }

    /// Whether a predicate is known to keep its value after the first iteration: its operands do not change, or it tests a counter that is
    /// known to miss its bound.
    fn never_changes(&self, p: VReg, depth: usize) -> bool {
        if self.inside(p).next().is_none() {
            return true;
        }
        let Some(inst) = self.definition(p).filter(|_| depth < DEPTH) else { return false };
        let func = self.all.func;
        let equality = [Mod::Eq, Mod::Ne].iter().any(|m| func.variant(inst).has(*m));
        let mut some = |o: &Operand| match o {
            Operand::Reg(r) | Operand::Not(r) if func_is_pred(self.all.func, *r) => self.never_changes(*r, depth + 1),
            Operand::Imm(_) => true,
            o => match self.value(o, &mut Vec::new()) {
                Value::Invariant(_) => true,
                // Where a loop around this one computes the start, it may be such that the bound is hit.
                Value::Moves(Motion::Step(_) | Motion::Stride) => !(equality && self.starts_around(o)),
                _ => false,
            },
        };
        func.variant(inst).op.row().effect == Effect::Pure && func.operands(inst.srcs).iter().all(&mut some)
    }

    /// Whether a block is not of the loop, but of one around it.
    fn is_around(&self, b: BlockId) -> bool {
        let (at, own) = (self.all.cfg.position[b.0 as usize], self.l);
        let around = |l: &Loop| l.holds(own.first) && l.holds(own.last) && l.holds(at);
        !self.holds(b) && self.all.cfg.loops.iter().any(around)
    }

    /// Whether a recurrence begins with a value that an enclosing loop computes.
    fn starts_around(&self, o: &Operand) -> bool {
        let Some(start) = self.start(o) else { return false };
        let outside = self.all.defs[start.register.0 as usize].iter();
        outside
            .filter(|(b, _)| self.is_around(*b))
            .any(|(_, i)| moved_constant(self.all.func, &self.all.func.insts[*i as usize]).is_none())
    }

    /// Whether every iteration passes a block, exactly once.
    fn always(&self, b: BlockId) -> bool {
        let (cfg, l) = (self.all.cfg, self.l);
        let at = cfg.position[b.0 as usize];
        if cfg.innermost(at).map(|i| cfg.loops[i]) != Some(*l) {
            return false;
        }
        if at == l.first {
            return true;
        }
        !cfg.repeats_without(l, |x, _| x == b)
    }

    /// The definitions of a register in the loop.
    fn inside(&self, r: VReg) -> std::slice::Iter<'_, (BlockId, u32)> {
        let (defs, place) = (&self.all.defs[r.0 as usize], |d: &(BlockId, u32)| self.all.cfg.position[d.0.0 as usize]);
        let from = defs.partition_point(|d| place(d) < self.l.first);
        let to = defs.partition_point(|d| place(d) <= self.l.last);
        defs[from..to].iter()
    }

    /// The only definition of a register in the loop, if every iteration executes it.
    fn definition(&self, r: VReg) -> Option<&Inst> {
        let mut inside = self.inside(r);
        let ((b, i), None) = (inside.next()?, inside.next()) else { return None };
        let inst = &self.all.func.insts[*i as usize];
        (inst.guard.is_none() && self.always(*b)).then_some(inst)
    }
}

/// The constant that an instruction moves, if it does.
fn moved_constant(func: &Func, inst: &Inst) -> Option<u64> {
    match (func.variant(inst).op, func.operands(inst.srcs)) {
        (Opcode::Mov, [Operand::Imm(v)]) => Some(*v),
        _ => None,
    }
}

fn func_is_pred(func: &Func, r: VReg) -> bool {
    func.regs[r.0 as usize].kind() == Kind::Pred
}
