//! Residues of values modulo a power of two, as sums of other values: compilers unroll a loop by beginning its counter at
//! `(n - 2 & 3) + 2 - n`, say, which is a multiple of four whatever `n` is.

use super::{Body, DEPTH, Termination, comparison::Link, is_integer};
use crate::{BlockId, MemBase, Operand, VReg};
use margay_isa::{Mod, Opcode, Var};
use std::collections::HashMap;

/// Registers in an expression, to bound the work.
const MAX_TERMS: usize = 32;

/// A linear combination of registers plus a constant, modulo a power of two.
#[derive(Default)]
pub(super) struct Sum {
    constant: u64,
    factors: HashMap<Term, u64>,
}

/// A value in a sum.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Term {
    /// A register, as the instruction defines it, if only one does.
    Register(VReg, Option<u32>),
    /// The kernel parameter at an offset, which compilers load again instead of keeping it in a register.
    Parameter(i64),
}

/// A point of the function: a block, and the instruction before which it is.
type Point = (BlockId, u32);

impl Sum {
    /// Whether two to the power of `bits` divides it, whatever the registers hold.
    pub fn is_multiple(&self, bits: u32) -> bool {
        let divides = |v: u64| v.trailing_zeros() >= bits;
        divides(self.constant) && self.factors.values().all(|f| divides(*f))
    }

    fn add(&mut self, term: Term, factor: u64) -> bool {
        let own = self.factors.entry(term).or_default();
        *own = own.wrapping_add(factor);
        true
    }
}

impl Termination<'_> {
    /// Adds a multiple of an operand, as it is read at a point, to a sum modulo 2 to the power of `bits`; false if it has no such form.
    fn add_to(&self, sum: &mut Sum, o: &Operand, factor: u64, point: Point, bits: u32, depth: usize) -> bool {
        let r = match o {
            Operand::Imm(v) => {
                sum.constant = sum.constant.wrapping_add(v.wrapping_mul(factor));
                return true;
            }
            Operand::Reg(r) => *r,
            _ => return false,
        };
        if sum.factors.len() > MAX_TERMS || depth > DEPTH {
            return false;
        }
        let Some((at, i)) = self.only_definition(r, point) else {
            return sum.add(Term::Register(r, None), factor);
        };
        let term = || self.parameter(i, bits).unwrap_or(Term::Register(r, Some(i)));
        self.add_result(sum, (at, i), factor, bits, depth).unwrap_or_else(|| sum.add(term(), factor))
    }

    /// The parameter, if an instruction loads at least `bits` bits of one.
    fn parameter(&self, inst: u32, bits: u32) -> Option<Term> {
        let inst = &self.func.insts[inst as usize];
        let (v, srcs) = (self.func.variant(inst), self.func.operands(inst.srcs));
        let whole = v.op == Opcode::Ld && v.vec() == 1 && v.t().bits() >= bits && inst.guard.is_none();
        match srcs.first() {
            Some(Operand::Mem(MemBase::KernelParam, at)) if whole => Some(Term::Parameter(*at)),
            _ => None,
        }
    }

    /// The same for the result of the instruction at a point; `None` if that is not a sum.
    fn add_result(&self, sum: &mut Sum, point: Point, factor: u64, bits: u32, depth: usize) -> Option<bool> {
        let inst = &self.func.insts[point.1 as usize];
        let (v, srcs) = (self.func.variant(inst), self.func.operands(inst.srcs));
        let plain = is_integer(v.t()) && v.t().bits() >= bits && inst.guard.is_none() && inst.dsts.range().len() == 1;
        if !plain || [Mod::Sat, Mod::Cc, Mod::Hi].iter().any(|m| v.has(*m)) {
            return None;
        }
        let mut add = |o: &Operand, by: u64| self.add_to(sum, o, factor.wrapping_mul(by), point, bits, depth + 1);
        Some(match (v.op, srcs) {
            (Opcode::Mov, [a @ (Operand::Reg(_) | Operand::Imm(_))]) => add(a, 1),
            (Opcode::Cvt, [a]) if v.ty(Var::U).is_some_and(|t| is_integer(t) && t.bits() >= bits) => add(a, 1),
            (Opcode::Add, [a, b]) => add(a, 1) && add(b, 1),
            (Opcode::Sub, [a, b]) => add(a, 1) && add(b, u64::MAX),
            (Opcode::Neg, [a]) => add(a, u64::MAX),
            // -a - 1
            (Opcode::Not, [a]) => add(&Operand::Imm(1), u64::MAX) && add(a, u64::MAX),
            (Opcode::Mul, [a, Operand::Imm(c)]) => add(a, *c),
            (Opcode::Mad, [a, Operand::Imm(c), b]) => add(a, *c) && add(b, 1),
            (Opcode::Shl, [a, Operand::Imm(k)]) if *k < 64 => add(a, 1 << k),
            (Opcode::And, [a, Operand::Imm(m)]) if m.trailing_ones() >= bits => add(a, 1),
            _ => return None,
        })
    }

    /// The only definition of a register that reaches a point: the last one before it in its block; or the first one in the layout, if no
    /// loop leads from the other definitions back to the block, such as those in the remainder loop that follows an unrolled loop.
    fn only_definition(&self, r: VReg, (b, before): Point) -> Option<Point> {
        let guarded = |i: u32| self.func.insts[i as usize].guard.is_some();
        if let Some(i) = self.defined_before(r, b, before).filter(|i| !guarded(*i)) {
            return Some((b, i));
        }
        let at = |b: BlockId| self.cfg.position[b.0 as usize];
        let ((first, i), others) = self.defs[r.0 as usize].split_first()?;
        let looped = |from: BlockId| self.cfg.loops.iter().any(|l| l.first <= at(b) && at(from) <= l.last);
        let alone = at(*first) <= at(b)
            && self.cfg.reducible
            && !others.iter().any(|(other, _)| at(*other) <= at(b) || looped(*other));
        alone.then_some((*first, *i))
    }
}

impl Body<'_> {
    /// Whether two to the power of `bits` divides the difference between what a counter begins with and a bound.
    pub(super) fn begins_at_multiple(&self, moving: &Operand, bound: &Operand, bits: u32) -> bool {
        let Some(Link { register: start, added: Some(added), others }) = self.start(moving) else { return false };
        let header = self.all.cfg.order[self.l.first as usize];
        // Later definitions, of the register's next use, do not reach the loop.
        let before = |b: BlockId| self.all.cfg.position[b.0 as usize] < self.l.first;
        let mut starts = self.all.defs[start.0 as usize].iter().filter(|(b, _)| before(*b)).peekable();
        starts.peek().is_some()
            && starts.all(|(b, i)| {
                let mut sum = Sum { constant: added, ..Sum::default() };
                let begins = self.all.add_result(&mut sum, (*b, *i), 1, bits, 0) == Some(true);
                let at = (header, self.all.func.blocks[header.0 as usize].insts.range().start as u32);
                let mut add = |o: &Operand, factor: u64| self.all.add_to(&mut sum, o, factor, at, bits, 0);
                begins && add(bound, u64::MAX) && others.iter().all(|o| add(o, 1)) && sum.is_multiple(bits)
            })
    }
}
