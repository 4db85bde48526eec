//! Loops that terminate, as far as their counters show.
//!
//! A loop terminates if a branch that every iteration passes leaves it in the end: because it compares a *recurrence*, a register
//! that each iteration changes in the same way (a counter, a value that is halved, a remainder of itself), with something that the
//! loop does not change. A comparison with an unknown bound counts as one that the recurrence reaches, as in the loops that compilers
//! generate; one with a known bound must be reached without wrapping around, and one that is tested for equality must be hit.

use crate::{
    BlockId, Func, Inst, MemBase, MemSpace, Operand, Terminator, VReg,
    pass::{
        BitSet, Cfg, Liveness, Loop,
        cfg::successors,
        liveness::{inst_reads, inst_writes, term_reads},
    },
};
use margay_isa::{Effect, Kind, Mod, Opcode, Special, Type, Var};
use std::{cell::OnceCell, collections::HashSet};

/// What the branches that leave loops say of whether they are left.
pub struct Termination<'a> {
    func: &'a Func,
    cfg: &'a Cfg,
    /// By register: the instructions that define it, with their blocks.
    defs: Vec<Vec<(BlockId, u32)>>,
    /// By register: two to this divides all its values.
    align: Vec<u32>,
    live: OnceCell<Liveness>,
}

/// What is known of whether a loop ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ends {
    /// It does.
    Always,
    /// Nothing suggests it: no test changes or comes out otherwise in the end, or all depend on no input.
    Never,
    /// It may, depending on what the loop computes from its input.
    Unknown,
}

/// How a block leaves a loop.
enum Exit {
    /// It always does.
    Always,
    /// The loop goes on while a predicate has a value.
    While(VReg, bool),
    Unknown,
}

/// How a register changes from one iteration to the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Motion {
    /// It does not.
    Still,
    /// A constant is added.
    Step(i64),
    /// Something that the loop does not change is added.
    Stride,
    /// It approaches zero as an unsigned number, or as a signed one by division, until it is zero.
    Shrink,
    /// The same by arithmetic shifts, whose limit is -1 for negative numbers.
    ShrinkSigned,
    /// It is multiplied by a constant of at least two.
    Grow,
    /// It is the time, or what others have counted.
    Clock,
}

/// What is known of a value inside a loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Value {
    /// The loop does not change it; its value if that is known.
    Invariant(Option<u64>),
    /// A recurrence that is being traced: a register's value of an iteration before, changed.
    Open(VReg, Motion),
    /// A recurrence.
    Moves(Motion),
    /// The double-width product of a recurrence with a constant of the single width.
    Wide(VReg),
    Unknown,
}

/// Whether a comparison holds: `Lt` and its like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Test {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl Test {
    fn inverse(self) -> Test {
        match self {
            Test::Eq => Test::Ne,
            Test::Ne => Test::Eq,
            Test::Lt => Test::Ge,
            Test::Le => Test::Gt,
            Test::Gt => Test::Le,
            Test::Ge => Test::Lt,
        }
    }

    /// With its operands exchanged.
    fn mirrored(self) -> Test {
        match self {
            Test::Lt => Test::Gt,
            Test::Le => Test::Ge,
            Test::Gt => Test::Lt,
            Test::Ge => Test::Le,
            same => same,
        }
    }
}

/// Definitions through which a value is traced.
const DEPTH: usize = 24;

/// Iterations that nobody waits for.
const ENDLESS: i128 = 1 << 40;

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
        let mut all = Termination { func, cfg, defs, align: Vec::new(), live: OnceCell::new() };
        all.find_alignment();
        all
    }

    /// What is known of a loop.
    pub fn of(&self, l: &Loop) -> Ends {
        let body = Body::new(self, l);
        let mut hopeless = true;
        for b in body.blocks() {
            let Some(exit) = body.exit(*b) else { continue };
            let passed = !l.tangled && body.always(*b);
            match exit {
                Exit::Always if passed => return Ends::Always,
                Exit::While(p, value) if passed && body.fails(p, value, 0) => return Ends::Always,
                Exit::While(p, _) => hopeless &= passed && body.never_changes(p, 0),
                Exit::Always | Exit::Unknown => hopeless = false,
            }
        }
        if hopeless || !body.has_input() { Ends::Never } else { Ends::Unknown }
    }

    /// The greatest alignment that all definitions of a register have in common.
    fn find_alignment(&mut self) {
        let written: Vec<bool> = self.defs.iter().map(|d| !d.is_empty()).collect();
        // Parameters and what is never written may hold anything.
        self.align = written.iter().map(|w| if *w { 64 } else { 0 }).collect();
        for home in &self.func.params {
            if let crate::FormalHome::Regs(regs) = home {
                regs.iter().for_each(|r| self.align[r.0 as usize] = 0);
            }
        }
        let mut changed = true;
        while changed {
            changed = false;
            for b in &self.cfg.order {
                for inst in self.func.insts(&self.func.blocks[b.0 as usize]) {
                    let found = self.result_align(*b, inst);
                    inst_writes(self.func, inst, &mut |r| {
                        let own = &mut self.align[r.0 as usize];
                        changed |= found < *own;
                        *own = found.min(*own);
                    });
                }
            }
        }
    }

    fn align_of(&self, o: &Operand) -> u32 {
        match o {
            Operand::Reg(r) => self.align[r.0 as usize],
            Operand::Imm(v) => v.trailing_zeros(),
            _ => 0,
        }
    }

    fn result_align(&self, b: BlockId, inst: &Inst) -> u32 {
        let v = self.func.variant(inst);
        let srcs = self.func.operands(inst.srcs);
        let a = |i: usize| srcs.get(i).map_or(0, |o| self.align_of(o));
        let plain = is_integer(v.t()) && !v.has(Mod::Sat) && !v.has(Mod::Cc) && !v.has(Mod::Hi);
        if !plain || inst.dsts.range().len() != 1 {
            return 0;
        }
        match v.op {
            Opcode::Mov if srcs.len() == 1 => a(0),
            Opcode::Neg => a(0),
            Opcode::Cvt if srcs.len() == 1 && v.ty(Var::U).is_some_and(is_integer) => a(0),
            Opcode::Add | Opcode::Or | Opcode::Xor => a(0).min(a(1)),
            Opcode::Sub => a(0).min(a(1)).max(self.without_remainder(b, srcs)),
            Opcode::And => a(0).max(a(1)),
            Opcode::Mul => (a(0) + a(1)).min(64),
            Opcode::Mad => (a(0) + a(1)).min(64).min(a(2)),
            Opcode::Shl => match srcs {
                [_, Operand::Imm(k)] => a(0).saturating_add(u32::try_from(*k).unwrap_or(64)).min(64),
                _ => a(0),
            },
            Opcode::Selp => a(0).min(a(1)),
            _ => 0,
        }
    }

    /// The alignment of `x - (x & 3)` in a block, by which compilers round down.
    fn without_remainder(&self, b: BlockId, srcs: &[Operand]) -> u32 {
        let [Operand::Reg(x), Operand::Reg(low)] = srcs else { return 0 };
        // The first definition in the layout is the only one that reaches the block if no loop leads from the others back to it; those
        // count what is left down.
        let at = |b: BlockId| self.cfg.position[b.0 as usize];
        let Some(((first, i), others)) = self.defs[low.0 as usize].split_first() else { return 0 };
        let looped = |from: BlockId| self.cfg.loops.iter().any(|l| l.first <= at(b) && at(from) <= l.last);
        if at(*first) > at(b)
            || others.iter().any(|(other, _)| at(*other) <= at(b) || looped(*other))
            || !self.cfg.reducible
        {
            return 0;
        }
        let i = *i;
        let inst = &self.func.insts[i as usize];
        match (self.func.variant(inst).op, self.func.operands(inst.srcs)) {
            (Opcode::And, [Operand::Reg(y), Operand::Imm(m)]) if x == y && inst.guard.is_none() => m.trailing_ones(),
            _ => 0,
        }
    }
}

/// A loop whose recurrences are looked for.
struct Body<'a> {
    all: &'a Termination<'a>,
    l: &'a Loop,
    /// It only computes and loads, so loads from one address repeat what they found unless other threads write.
    quiet: bool,
}

impl<'a> Body<'a> {
    fn new(all: &'a Termination<'a>, l: &'a Loop) -> Body<'a> {
        let body = Body { all, l, quiet: false };
        let only_loads = |i: &Inst| {
            let op = all.func.variant(i).op;
            op == Opcode::Ld || op.row().effect == Effect::Pure
        };
        let quiet = body.blocks().iter().all(|b| all.func.insts(&all.func.blocks[b.0 as usize]).iter().all(only_loads));
        Body { quiet, ..body }
    }

    fn blocks(&self) -> &[BlockId] {
        &self.all.cfg.order[self.l.first as usize..=self.l.last as usize]
    }

    fn holds(&self, b: BlockId) -> bool {
        let at = self.all.cfg.position[b.0 as usize];
        self.l.first <= at && at <= self.l.last
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

    /// Whether the outcome of some branch of the loop depends on memory, parameters, the time or callees.
    fn has_input(&self) -> bool {
        let func = self.all.func;
        let mut seen = BitSet::new(func.regs.len());
        let mut work = Vec::new();
        for b in self.blocks() {
            term_reads(func, &func.blocks[b.0 as usize].term, &mut |r| work.push(r));
        }
        let formals = func.params.iter().filter_map(|home| match home {
            crate::FormalHome::Regs(regs) => Some(regs),
            _ => None,
        });
        let formals: HashSet<VReg> = formals.flatten().copied().collect();
        let live = self.all.live.get_or_init(|| Liveness::new(func, self.all.cfg));
        let enters = &live.live_in[self.all.cfg.order[self.l.first as usize].0 as usize];
        while let Some(r) = work.pop() {
            if seen.has(r.0) {
                continue;
            }
            seen.insert(r.0);
            let own = self.inside(r).next().is_some() && !enters.has(r.0);
            if formals.contains(&r) && !own {
                return true;
            }
            for (_, i) in self.all.defs[r.0 as usize].iter().filter(|(b, _)| !own || self.holds(*b)) {
                let inst = &func.insts[*i as usize];
                let srcs = func.operands(inst.srcs);
                let timed = srcs.iter().any(|o| self.value(o, &mut vec![r]) == Value::Moves(Motion::Clock));
                if timed || matches!(func.variant(inst).op.row().effect, Effect::Memory | Effect::Call) {
                    return true;
                }
                inst_reads(func, inst, &mut |s| work.push(s));
            }
        }
        false
    }

    /// Whether a predicate has one value after the first iteration as far as one can see: what it compares does not change, or it is
    /// a counter's test that is known to miss.
    fn never_changes(&self, p: VReg, depth: usize) -> bool {
        if self.inside(p).next().is_none() {
            return true;
        }
        let Some(inst) = self.definition(p).filter(|_| depth < DEPTH) else { return false };
        let (func, mut some) = (self.all.func, |o: &Operand| match o {
            Operand::Reg(r) | Operand::Not(r) if func_is_pred(self.all.func, *r) => self.never_changes(*r, depth + 1),
            Operand::Imm(_) => true,
            o => matches!(
                self.value(o, &mut Vec::new()),
                Value::Invariant(_) | Value::Moves(Motion::Step(_) | Motion::Stride)
            ),
        });
        func.variant(inst).op.row().effect == Effect::Pure && func.operands(inst.srcs).iter().all(&mut some)
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
        // Whether the header reaches itself without it.
        let header = cfg.order[l.first as usize];
        let mut seen = vec![false; (l.last - l.first + 1) as usize];
        let mut work = vec![header];
        while let Some(x) = work.pop() {
            for to in successors(&self.all.func.blocks[x.0 as usize].term) {
                if to == header {
                    return false;
                }
                if to != b
                    && self.holds(to)
                    && !std::mem::replace(&mut seen[(cfg.position[to.0 as usize] - l.first) as usize], true)
                {
                    work.push(to);
                }
            }
        }
        true
    }

    /// The definitions of a register in the loop.
    fn inside(&self, r: VReg) -> impl Iterator<Item = &(BlockId, u32)> {
        self.all.defs[r.0 as usize].iter().filter(|(b, _)| self.holds(*b))
    }

    /// The only definition of a register in the loop, if every iteration executes it.
    fn definition(&self, r: VReg) -> Option<&Inst> {
        let mut inside = self.inside(r);
        let ((b, i), None) = (inside.next()?, inside.next()) else { return None };
        let inst = &self.all.func.insts[*i as usize];
        (inst.guard.is_none() && self.always(*b)).then_some(inst)
    }

    /// Whether a predicate cannot have a value in all iterations.
    fn fails(&self, p: VReg, value: bool, depth: usize) -> bool {
        let Some(inst) = self.definition(p).filter(|_| depth < DEPTH) else { return false };
        let func = self.all.func;
        let (v, srcs) = (func.variant(inst), func.operands(inst.srcs));
        let of = |o: &Operand, value: bool| match o {
            Operand::Reg(r) => self.fails(*r, value, depth + 1),
            Operand::Not(r) => self.fails(*r, !value, depth + 1),
            _ => false,
        };
        match (v.op, srcs) {
            (Opcode::Mov, [a]) => of(a, value),
            (Opcode::Not, [a]) => of(a, !value),
            // While both hold, or while neither does: one that changes suffices.
            (Opcode::And, [a, b]) if value => of(a, true) || of(b, true),
            (Opcode::Or, [a, b]) if !value => of(a, false) || of(b, false),
            (Opcode::And, [a, b]) => of(a, false) && of(b, false),
            (Opcode::Or, [a, b]) => of(a, true) && of(b, true),
            (Opcode::Setp, [x, y]) => {
                let second = func.operands(inst.dsts).get(1) == Some(&Operand::Reg(p));
                self.comparison_fails(inst, x, y, value != second)
            }
            (Opcode::Setp, [x, y, q]) if func.operands(inst.dsts).first() == Some(&Operand::Reg(p)) => {
                let own = || self.comparison_fails(inst, x, y, value);
                match () {
                    () if v.has(Mod::And) && value || v.has(Mod::Or) && !value => own() || of(q, value),
                    () if v.has(Mod::And) || v.has(Mod::Or) => own() && of(q, value),
                    () => false,
                }
            }
            _ => false,
        }
    }

    /// Whether a comparison cannot have one result in all iterations.
    fn comparison_fails(&self, inst: &Inst, x: &Operand, y: &Operand, value: bool) -> bool {
        let v = self.all.func.variant(inst);
        let t = v.t();
        let has = |m: Mod| v.has(m);
        let (test, unsigned) = match () {
            () if has(Mod::Eq) => (Test::Eq, false),
            () if has(Mod::Ne) => (Test::Ne, false),
            () if has(Mod::Lt) => (Test::Lt, false),
            () if has(Mod::Le) => (Test::Le, false),
            () if has(Mod::Gt) => (Test::Gt, false),
            () if has(Mod::Ge) => (Test::Ge, false),
            () if has(Mod::Lo) => (Test::Lt, true),
            () if has(Mod::Ls) => (Test::Le, true),
            () if has(Mod::Hi) => (Test::Gt, true),
            () if has(Mod::Hs) => (Test::Ge, true),
            () => return false,
        };
        if !is_integer(t) {
            return false;
        }
        let test = if value { test } else { test.inverse() };
        let (a, b) = (self.value(x, &mut Vec::new()), self.value(y, &mut Vec::new()));
        let sides = match (a, b) {
            (Value::Moves(m), Value::Invariant(c)) => Some((x, m, test, y, c)),
            (Value::Invariant(c), Value::Moves(m)) => Some((y, m, test.mirrored(), x, c)),
            _ => None,
        };
        if let Some((moving, motion, test, bound, c)) = sides {
            let (bits, signed) = (t.bits(), t.is_signed() && !unsigned);
            return self.leaves(Comparison { motion, test, c, bits, signed, moving, bound });
        }
        match (a, b, test) {
            // Two that approach each other.
            (Value::Moves(Motion::Step(a)), Value::Moves(Motion::Step(b)), Test::Lt | Test::Le) => a > b,
            (Value::Moves(Motion::Step(a)), Value::Moves(Motion::Step(b)), Test::Gt | Test::Ge) => a < b,
            (Value::Moves(Motion::Clock), _, _) | (_, Value::Moves(Motion::Clock), _) => true,
            _ => false,
        }
    }

    /// Whether a recurrence ends up where a comparison with a bound does not hold.
    fn leaves(&self, c: Comparison<'_>) -> bool {
        let relation = !matches!(c.test, Test::Eq | Test::Ne);
        match c.motion {
            Motion::Still => false,
            Motion::Clock => true,
            Motion::Step(s) if relation => c.is_passed(s) && self.soon(&c, s),
            Motion::Step(s) => c.test == Test::Eq && s != 0 || self.is_hit(&c, s),
            // A stride of zero is not looked for.
            Motion::Stride => relation || c.test == Test::Eq,
            Motion::Grow => {
                matches!(c.test, Test::Lt | Test::Le) && c.c != Some(mask(c.bits)) && self.first(c.moving) != Some(0)
            }
            Motion::Shrink | Motion::ShrinkSigned => match (c.test, c.c) {
                (Test::Ne, Some(0)) => c.motion == Motion::Shrink,
                (Test::Gt, c0) => c0.is_none_or(|v| !c.signed || signed(v, c.bits) >= 0),
                (Test::Ge, c0) => c0.is_none_or(|v| if c.signed { signed(v, c.bits) > 0 } else { v > 0 }),
                _ => false,
            },
        }
    }

    /// Whether a counter comes to equal a bound.
    fn is_hit(&self, c: &Comparison<'_>, step: i64) -> bool {
        if step == 0 {
            return false;
        }
        let Some(end) = c.c.map(|v| signed(v, c.bits)) else {
            return self.may_meet(c.moving, c.bound, step);
        };
        match self.first(c.moving) {
            // It starts at a constant: the bound lies ahead at a multiple of the step.
            Some(first) => {
                let way = i128::from(end) - i128::from(signed(first, c.bits));
                way % i128::from(step) == 0 && (0..ENDLESS).contains(&(way / i128::from(step)))
            }
            None => self.may_meet(c.moving, c.bound, step),
        }
    }

    /// Whether a counter that starts at a constant passes a constant bound in a number of iterations that somebody could wait for.
    fn soon(&self, c: &Comparison<'_>, step: i64) -> bool {
        let (Some(first), Some(end)) = (self.first(c.moving), c.c) else { return true };
        let number = |v: u64| if c.signed { i128::from(signed(v, c.bits)) } else { i128::from(v & mask(c.bits)) };
        (number(end) - number(first)).unsigned_abs() / u128::from(step.unsigned_abs()) < ENDLESS.unsigned_abs()
    }

    /// Whether a counter's steps are such that no value is skipped: by the power of two in the step.
    fn may_meet(&self, moving: &Operand, bound: &Operand, step: i64) -> bool {
        let needed = step.trailing_zeros();
        self.all.align_of(moving) >= needed && self.all.align_of(bound) >= needed
    }

    /// The constant at which a recurrence starts, if it is added to in one place only.
    fn first(&self, o: &Operand) -> Option<u64> {
        let mut r = *o;
        let mut found = None;
        for _ in 0..DEPTH {
            let Operand::Reg(at) = r else { return None };
            for (b, i) in &self.all.defs[at.0 as usize] {
                if self.holds(*b) {
                    continue;
                }
                let inst = &self.all.func.insts[*i as usize];
                let ([Operand::Imm(v)], Opcode::Mov, None) =
                    (self.all.func.operands(inst.srcs), self.all.func.variant(inst).op, inst.guard)
                else {
                    return None;
                };
                if found.is_some_and(|f| f != *v) {
                    return None;
                }
                found = Some(*v);
            }
            let inst = self.definition(at)?;
            match (self.all.func.variant(inst).op, self.all.func.operands(inst.srcs)) {
                (Opcode::Mov, [a]) => r = *a,
                (Opcode::Add | Opcode::Sub | Opcode::Shl | Opcode::Mul, [a @ Operand::Reg(_), Operand::Imm(_)]) => {
                    r = *a
                }
                _ => return None,
            }
            if r == *o {
                return found;
            }
        }
        None
    }

    fn value(&self, o: &Operand, open: &mut Vec<VReg>) -> Value {
        match o {
            Operand::Imm(v) => Value::Invariant(Some(*v)),
            Operand::Special(Special::Clock | Special::ClockHi | Special::Clock64 | Special::GlobalTimer, _)
            | Operand::Special(Special::GlobalTimerLo | Special::GlobalTimerHi, _) => Value::Moves(Motion::Clock),
            Operand::Special(..) | Operand::GlobalAddr(..) | Operand::FrameAddr(..) | Operand::ParamAddr(_) => {
                Value::Invariant(None)
            }
            Operand::Reg(r) => self.register(*r, open),
            _ => Value::Unknown,
        }
    }

    fn register(&self, r: VReg, open: &mut Vec<VReg>) -> Value {
        if open.contains(&r) {
            return Value::Open(r, Motion::Still);
        }
        if self.inside(r).next().is_none() {
            return Value::Invariant(self.constant(r));
        }
        let Some(inst) = self.definition(r).filter(|_| open.len() < DEPTH) else { return Value::Unknown };
        open.push(r);
        let value = self.result(inst, open);
        open.pop();
        match value {
            Value::Open(base, Motion::Still) if base == r => Value::Unknown,
            Value::Open(base, motion) if base == r => Value::Moves(motion),
            value => value,
        }
    }

    /// The constant that a register holds wherever it is read.
    fn constant(&self, r: VReg) -> Option<u64> {
        let [(_, i)] = self.all.defs[r.0 as usize][..] else { return None };
        let inst = &self.all.func.insts[i as usize];
        match (self.all.func.variant(inst).op, self.all.func.operands(inst.srcs)) {
            (Opcode::Mov, [Operand::Imm(v)]) if inst.guard.is_none() => Some(*v),
            _ => None,
        }
    }

    /// Whether a memory operand's address does not change.
    fn value_of_base(&self, srcs: &[Operand]) -> bool {
        !matches!(srcs.first(), Some(Operand::Mem(MemBase::Reg(r), _)) if self.inside(*r).next().is_some())
    }

    /// What an instruction of the loop defines.
    fn result(&self, inst: &Inst, open: &mut Vec<VReg>) -> Value {
        let func = self.all.func;
        let v = func.variant(inst);
        let (t, srcs) = (v.t(), func.operands(inst.srcs));
        if v.op == Opcode::Atom && (v.has(Mod::Add) || v.has(Mod::Inc)) && is_integer(t) {
            return Value::Moves(Motion::Clock);
        }
        if v.op == Opcode::Ld && (self.quiet || matches!(inst.space, Some(MemSpace::KernelParam | MemSpace::Const))) {
            return if self.value_of_base(srcs) { Value::Invariant(None) } else { Value::Unknown };
        }
        if !is_integer(t) || v.has(Mod::Sat) || v.has(Mod::Cc) || srcs.len() > 3 || t.bits() > 64 {
            return Value::Unknown;
        }
        let mut values = [Value::Unknown; 3];
        for (to, o) in values.iter_mut().zip(srcs) {
            *to = self.value(o, open);
        }
        let bits = t.bits();
        let (high, wide) = (v.has(Mod::Hi), v.has(Mod::Wide));
        let [a, b, _] = values;
        use Value::Invariant;
        let moved = |value: Value, how: Motion| match value {
            Value::Open(base, m) => join(m, how).map_or(Value::Unknown, |m| Value::Open(base, m)),
            Value::Moves(Motion::Step(_)) if how == Motion::Stride => value,
            Value::Moves(m) if matches!(how, Motion::Step(_) | Motion::Stride) => Value::Moves(m),
            _ => Value::Unknown,
        };
        let step = |c: Option<u64>, sign: i64| match c {
            Some(c) => signed(c, bits).checked_mul(sign).map_or(Motion::Stride, Motion::Step),
            None => Motion::Stride,
        };
        match (v.op, srcs.len()) {
            _ if values[..srcs.len()].iter().all(|v| matches!(v, Invariant(_))) && is_function(v.op) => Invariant(None),
            (Opcode::Mov, 1) => a,
            (Opcode::Cvt, 1) if v.ty(Var::U).is_some_and(is_integer) => match a {
                Value::Wide(_) => Value::Unknown,
                a => a,
            },
            (Opcode::Add, 2) => match (a, b) {
                (x, Invariant(c)) | (Invariant(c), x) => moved(x, step(c, 1)),
                (Value::Open(x, Motion::Still), Value::Open(y, Motion::Still)) if x == y => {
                    Value::Open(x, Motion::Grow)
                }
                _ => Value::Unknown,
            },
            (Opcode::Sub, 2) => match (a, b) {
                (x, Invariant(c)) => moved(x, step(c, -1)),
                (Invariant(_), Value::Moves(Motion::Step(s))) => Value::Moves(Motion::Step(s.wrapping_neg())),
                (x @ Value::Moves(Motion::Clock), _) => x,
                _ => Value::Unknown,
            },
            (Opcode::Mul, 2) if high && !t.is_signed() => match (a, b) {
                (x, Invariant(_)) | (Invariant(_), x) => moved(x, Motion::Shrink),
                _ => Value::Unknown,
            },
            (Opcode::Mul, 2)
                if wide && !t.is_signed() && matches!((a, b), (Value::Open(_, Motion::Still), Invariant(_))) =>
            {
                let Value::Open(base, _) = a else { return Value::Unknown };
                Value::Wide(base)
            }
            (Opcode::Mul, 2) if !high => match (a, b) {
                (x, Invariant(Some(c))) | (Invariant(Some(c)), x) => multiple(x, signed(c, bits)),
                _ => Value::Unknown,
            },
            (Opcode::Mad, 3) if !high => match (a, b, values[2]) {
                (x, Invariant(Some(c)), Invariant(_)) => match multiple(x, signed(c, bits)) {
                    m @ Value::Moves(_) => m,
                    _ => Value::Unknown,
                },
                _ => Value::Unknown,
            },
            (Opcode::Shl, 2) => match b {
                Invariant(Some(k)) if k > 0 && k < u64::from(bits.min(63)) => multiple(a, 1 << k),
                _ => Value::Unknown,
            },
            (Opcode::Shr, 2) => match (a, b) {
                (Value::Wide(base), Invariant(Some(k))) if k >= u64::from(bits / 2) => {
                    Value::Open(base, Motion::Shrink)
                }
                (x, Invariant(Some(k))) if k > 0 => {
                    moved(x, if t.is_signed() { Motion::ShrinkSigned } else { Motion::Shrink })
                }
                _ => Value::Unknown,
            },
            (Opcode::Div, 2) => match b {
                Invariant(Some(c)) if signed(c, bits).unsigned_abs() > 1 => moved(a, Motion::Shrink),
                _ => Value::Unknown,
            },
            // A remainder is less than what divides.
            (Opcode::Rem, 2) => moved(b, Motion::Shrink),
            // `x & (x - 1)`
            (Opcode::And, 2) => match (a, b) {
                (Value::Open(x, Motion::Still), Value::Open(y, Motion::Step(-1)))
                | (Value::Open(y, Motion::Step(-1)), Value::Open(x, Motion::Still))
                    if x == y =>
                {
                    Value::Open(x, Motion::Shrink)
                }
                _ => Value::Unknown,
            },
            _ => Value::Unknown,
        }
    }
}

/// Whether an instruction computes a pure function of its operands, so that it repeats what does not change.
fn is_function(op: Opcode) -> bool {
    op.row().effect == Effect::Pure
}

fn func_is_pred(func: &Func, r: VReg) -> bool {
    func.regs[r.0 as usize].kind() == Kind::Pred
}

/// A change after a change.
fn join(first: Motion, then: Motion) -> Option<Motion> {
    use Motion::*;
    Some(match (first, then) {
        (Still, m) | (m, Still) => m,
        (Step(a), Step(b)) => Step(a.checked_add(b)?),
        (Step(_) | Stride, Stride) | (Stride, Step(_)) => Stride,
        (Shrink, Shrink) => Shrink,
        (ShrinkSigned, ShrinkSigned) => ShrinkSigned,
        (Grow, Grow) => Grow,
        _ => return None,
    })
}

/// A constant multiple.
fn multiple(x: Value, by: i64) -> Value {
    match x {
        Value::Open(base, m) if by >= 2 => join(m, Motion::Grow).map_or(Value::Unknown, |m| Value::Open(base, m)),
        Value::Moves(Motion::Step(s)) => s.checked_mul(by).map_or(Value::Unknown, |s| Value::Moves(Motion::Step(s))),
        Value::Moves(Motion::Stride | Motion::Grow) if by >= 1 => x,
        _ => Value::Unknown,
    }
}

/// A recurrence on the left, compared with a bound.
struct Comparison<'a> {
    motion: Motion,
    test: Test,
    /// The bound if it is constant.
    c: Option<u64>,
    bits: u32,
    signed: bool,
    moving: &'a Operand,
    bound: &'a Operand,
}

impl Comparison<'_> {
    /// Whether a counter passes the bound in the end, and does not jump over the values beyond it.
    fn is_passed(&self, step: i64) -> bool {
        let up = matches!(self.test, Test::Lt | Test::Le);
        // Unsigned counters that go down leave `i < n` below zero.
        let ahead = if up { step > 0 || !self.signed && step < 0 } else { step < 0 };
        let Some(c) = self.c.filter(|_| ahead) else { return ahead };
        let all = i128::from(mask(self.bits));
        let (least, most) = if self.signed { (-(all + 1) / 2, all / 2) } else { (0, all) };
        let c = if self.signed { i128::from(signed(c, self.bits)) } else { i128::from(c & mask(self.bits)) };
        let beyond = match self.test {
            Test::Lt => most - c + 1,
            Test::Le => most - c,
            Test::Gt => c - least + 1,
            Test::Ge => c - least,
            Test::Eq | Test::Ne => return false,
        };
        beyond >= i128::from(step.unsigned_abs())
    }
}
