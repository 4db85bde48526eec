//! Comparisons of a recurrence with a bound: whether their outcome changes eventually.

use super::{
    Body, DEPTH, is_integer, mask, moved_constant,
    recurrence::{Motion, Value},
    signed,
};
use crate::{Inst, Operand, VReg, pass::Relation};
use margay_isa::{Mod, Opcode, Type};

/// A loop of this many iterations counts as endless.
const ENDLESS: i128 = 1 << 40;

/// A register from which another one is computed.
pub(super) struct Link {
    pub register: VReg,
    /// What is added to it, if that is all that is done.
    pub added: Option<u64>,
    /// And values that the loop does not change.
    pub others: Vec<Operand>,
}

/// A recurrence on the left, compared with a bound.
struct Comparison<'a> {
    motion: Motion,
    relation: Relation,
    /// The bound if it is constant.
    c: Option<u64>,
    bits: u32,
    signed: bool,
    moving: &'a Operand,
    bound: &'a Operand,
}

impl Body<'_> {
    /// Whether a predicate cannot have a value in all iterations.
    pub(super) fn fails(&self, p: VReg, value: bool, depth: usize) -> bool {
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
        let Some(relation) = Relation::of(v) else { return false };
        if matches!(t, Type::F32 | Type::F64) {
            return value && (self.float_passes(x, relation, y, t) || self.float_passes(y, relation.mirrored(), x, t));
        }
        if !is_integer(t) {
            return false;
        }
        let relation = if value { relation } else { relation.inverse() };
        if let (Relation::Unequal, Some((moving, bound))) = (relation, self.exclusive_or(x)) {
            // `i ^ n != c` is `i != n ^ c`.
            return match (self.value(moving, &mut Vec::new()), self.value(y, &mut Vec::new())) {
                (Value::Moves(Motion::Step(s)), Value::Invariant(_)) => {
                    s != 0 && self.may_meet(moving, bound, s) && self.all.align_of(y) >= s.trailing_zeros()
                }
                _ => false,
            };
        }
        let (a, b) = (self.value(x, &mut Vec::new()), self.value(y, &mut Vec::new()));
        let sides = match (a, b) {
            (Value::Moves(m), Value::Invariant(c)) => Some((x, m, relation, y, c)),
            (Value::Invariant(c), Value::Moves(m)) => Some((y, m, relation.mirrored(), x, c)),
            _ => None,
        };
        if let Some((moving, motion, relation, bound, c)) = sides {
            let (bits, signed) = (t.bits(), t.is_signed());
            return self.leaves(Comparison { motion, relation, c, bits, signed, moving, bound });
        }
        match (a, b, relation) {
            // Two that approach each other.
            (Value::Moves(Motion::Step(a)), Value::Moves(Motion::Step(b)), Relation::Less | Relation::AtMost) => a > b,
            (Value::Moves(Motion::Step(a)), Value::Moves(Motion::Step(b)), Relation::Greater | Relation::AtLeast) => {
                a < b
            }
            (Value::Moves(Motion::Clock), _, _) | (_, Value::Moves(Motion::Clock), _) => true,
            _ => false,
        }
    }

    /// Whether a counter in floating point passes a bound in the end, such as that of `for (float f = -3; f <= 3; f++)`. Where it begins and
    /// the bound must be known: numbers that are too large for the step stay as they are when it is added.
    fn float_passes(&self, counter: &Operand, relation: Relation, bound: &Operand, t: Type) -> bool {
        let Operand::Reg(r) = *counter else { return false };
        let Some(step) = self.float_step(r, t) else { return false };
        let ahead = match relation {
            Relation::Less | Relation::AtMost => step > 0.0,
            Relation::Greater | Relation::AtLeast => step < 0.0,
            Relation::Equal | Relation::Unequal => false,
        };
        // So that each step of the way is exact to a small part of it.
        const STEPS: f64 = (1 << 20) as f64;
        let near = |v: Option<u64>| v.is_some_and(|bits| float(bits, t).abs() < step.abs() * STEPS);
        let known = |o: &Operand| match self.value(o, &mut Vec::new()) {
            Value::Invariant(constant) => constant,
            _ => None,
        };
        let begins = |i: u32| {
            let inst = &self.all.func.insts[i as usize];
            match (self.all.func.variant(inst).op, self.all.func.operands(inst.srcs), inst.guard) {
                (Opcode::Mov, [o], None) => known(o),
                _ => None,
            }
        };
        let mut starts = self.all.defs[r.0 as usize].iter().filter(|(b, _)| !self.holds(*b)).peekable();
        ahead && near(known(bound)) && starts.peek().is_some() && starts.all(|(_, i)| near(begins(*i)))
    }

    /// What each iteration adds to a register in floating point, if that is one constant.
    fn float_step(&self, counter: VReg, t: Type) -> Option<f64> {
        let (mut r, mut step) = (counter, 0.0);
        for _ in 0..DEPTH {
            let inst = self.definition(r)?;
            let v = self.all.func.variant(inst);
            r = match (v.op, self.all.func.operands(inst.srcs)) {
                (Opcode::Mov, [Operand::Reg(from)]) => *from,
                (Opcode::Add, [Operand::Reg(from), Operand::Imm(c)] | [Operand::Imm(c), Operand::Reg(from)])
                    if v.t() == t =>
                {
                    step += float(*c, t);
                    *from
                }
                _ => return None,
            };
            if r == counter {
                return Some(step);
            }
        }
        None
    }

    /// The operands of an exclusive or in the loop; the second one is loop-invariant.
    fn exclusive_or(&self, o: &Operand) -> Option<(&Operand, &Operand)> {
        let Operand::Reg(r) = o else { return None };
        let inst = self.definition(*r).filter(|i| self.all.func.variant(i).op == Opcode::Xor)?;
        let [a, b] = self.all.func.operands(inst.srcs) else { return None };
        let fixed = |o: &Operand| matches!(self.value(o, &mut Vec::new()), Value::Invariant(_));
        match (fixed(a), fixed(b)) {
            (false, true) => Some((a, b)),
            (true, false) => Some((b, a)),
            _ => None,
        }
    }

    /// Whether a recurrence ends up where a comparison with a bound does not hold.
    fn leaves(&self, c: Comparison<'_>) -> bool {
        let ordered = !matches!(c.relation, Relation::Equal | Relation::Unequal);
        match c.motion {
            Motion::Still => false,
            Motion::Clock => true,
            Motion::Step(s) if ordered => c.is_passed(s) && self.soon(&c, s),
            Motion::Step(s) => c.relation == Relation::Equal && s != 0 || self.is_hit(&c, s),
            // A stride of zero is not looked for.
            Motion::Stride | Motion::Drift => ordered || c.relation == Relation::Equal,
            Motion::Grow => {
                matches!(c.relation, Relation::Less | Relation::AtMost)
                    && c.c != Some(mask(c.bits))
                    && self.first(c.moving) != Some(0)
            }
            Motion::Shrink | Motion::ShrinkSigned => match (c.relation, c.c) {
                (Relation::Unequal, Some(0)) => c.motion == Motion::Shrink,
                (Relation::Greater, c0) => c0.is_none_or(|v| !c.signed || signed(v, c.bits) >= 0),
                (Relation::AtLeast, c0) => c0.is_none_or(|v| if c.signed { signed(v, c.bits) > 0 } else { v > 0 }),
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

    /// Whether a counter that starts at a constant passes a constant bound in fewer iterations than count as endless.
    fn soon(&self, c: &Comparison<'_>, step: i64) -> bool {
        let (Some(first), Some(end)) = (self.first(c.moving), c.c) else { return true };
        let number = |v: u64| if c.signed { i128::from(signed(v, c.bits)) } else { i128::from(v & mask(c.bits)) };
        (number(end) - number(first)).unsigned_abs() / u128::from(step.unsigned_abs()) < ENDLESS.unsigned_abs()
    }

    /// Whether a counter's steps are such that no value is skipped: by the power of two in the step.
    fn may_meet(&self, moving: &Operand, bound: &Operand, step: i64) -> bool {
        let needed = step.trailing_zeros();
        self.all.align_of(moving) >= needed && self.all.align_of(bound) >= needed
            || self.begins_at_multiple(moving, bound, needed)
    }

    /// The constant at which a register starts that is a recurrence, or differs from one by a constant.
    fn first(&self, o: &Operand) -> Option<u64> {
        let (path, start) = self.cycle(o)?;
        let cycle = &path[start..];
        let mut starts = cycle.iter().filter_map(|link| Some((self.initial(link.register)?, link)));
        let (Some((initial, link)), None) = (starts.next(), starts.next()) else { return None };
        match link.added {
            Some(added) if link.others.is_empty() => Some(initial?.wrapping_add(added)),
            Some(_) => None,
            None => initial.filter(|_| cycle.len() == path.len()),
        }
    }

    /// The register with which a recurrence begins, if that is one, and what an operand adds to it.
    pub(super) fn start(&self, o: &Operand) -> Option<Link> {
        let (mut path, start) = self.cycle(o)?;
        let mut starts = (start..path.len()).filter(|i| self.initial(path[*i].register).is_some());
        let (Some(i), None) = (starts.next(), starts.next()) else { return None };
        Some(path.swap_remove(i))
    }

    /// The registers from which a register is computed, up to a recurrence, and where the recurrence begins among them.
    fn cycle(&self, o: &Operand) -> Option<(Vec<Link>, usize)> {
        let Operand::Reg(register) = *o else { return None };
        let mut path = vec![Link { register, added: Some(0), others: Vec::new() }];
        loop {
            let last = &path[path.len() - 1];
            let inst = self.definition(last.register).filter(|_| path.len() < DEPTH)?;
            let fixed = |o: &Operand| matches!(o, Operand::Reg(r) if self.inside(*r).next().is_none());
            let (added, mut others) = (last.added, last.others.clone());
            let (register, added) = match (self.all.func.variant(inst).op, self.all.func.operands(inst.srcs)) {
                (Opcode::Mov, [Operand::Reg(r)]) => (*r, added),
                (Opcode::Add, [Operand::Reg(r), Operand::Imm(v)]) => (*r, added.map(|a| a.wrapping_add(*v))),
                (Opcode::Sub, [Operand::Reg(r), Operand::Imm(v)]) => (*r, added.map(|a| a.wrapping_sub(*v))),
                (Opcode::Add, [Operand::Reg(r), other] | [other, Operand::Reg(r)]) if fixed(other) => {
                    others.push(*other);
                    (*r, added)
                }
                (Opcode::Shl | Opcode::Mul, [Operand::Reg(r), Operand::Imm(_)]) => (*r, None),
                _ => return None,
            };
            match path.iter().position(|link| link.register == register) {
                Some(start) => return Some((path, start)),
                None => path.push(Link { register, added, others }),
            }
        }
    }

    /// The value that a register has before the loop; none if it has no definition there, and no constant if that is not known.
    fn initial(&self, r: VReg) -> Option<Option<u64>> {
        let func = self.all.func;
        let outside = self.all.defs[r.0 as usize].iter().filter(|(b, _)| !self.holds(*b));
        let mut found: Option<Option<u64>> = None;
        for (_, i) in outside {
            let inst = &func.insts[*i as usize];
            let value = moved_constant(func, inst).filter(|_| inst.guard.is_none());
            found = Some(value.filter(|v| found.is_none_or(|f| f == Some(*v))));
            if found == Some(None) {
                break;
            }
        }
        found
    }
}

/// A constant of type `.f32` or `.f64`.
fn float(bits: u64, t: Type) -> f64 {
    if t == Type::F32 { f32::from_bits(bits as u32).into() } else { f64::from_bits(bits) }
}

impl Comparison<'_> {
    /// Whether a counter passes the bound in the end, and does not jump over the values beyond it.
    fn is_passed(&self, step: i64) -> bool {
        let up = matches!(self.relation, Relation::Less | Relation::AtMost);
        // Unsigned counters that go down leave `i < n` below zero.
        let ahead = if up { step > 0 || !self.signed && step < 0 } else { step < 0 };
        let Some(c) = self.c.filter(|_| ahead) else { return ahead };
        let all = i128::from(mask(self.bits));
        let (least, most) = if self.signed { (-(all + 1) / 2, all / 2) } else { (0, all) };
        let c = if self.signed { i128::from(signed(c, self.bits)) } else { i128::from(c & mask(self.bits)) };
        let beyond = match self.relation {
            Relation::Less => most - c + 1,
            Relation::AtMost => most - c,
            Relation::Greater => c - least + 1,
            Relation::AtLeast => c - least,
            Relation::Equal | Relation::Unequal => return false,
        };
        beyond >= i128::from(step.unsigned_abs())
    }
}
