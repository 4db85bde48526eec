//! Recurrences: how the value of a register changes from one iteration of a loop to the next.

use super::{Body, DEPTH, is_integer, mask, moved_constant, signed};
use crate::{Inst, MemBase, MemSpace, Operand, VReg};
use margay_isa::{Effect, Mod, Opcode, Special, Type, Var, Variant};

/// How a register changes from one iteration to the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Motion {
    /// It does not.
    Still,
    /// A constant is added.
    Step(i64),
    /// Something that the loop does not change is added.
    Stride,
    /// What a division or adjacent bits leave of a counter: it moves in one direction, if not with each step, until it wraps around.
    Drift,
    /// It approaches zero as an unsigned number, or as a signed one by division, until it is zero.
    Shrink,
    /// The same by arithmetic shifts, whose limit is -1 for negative numbers.
    ShrinkSigned,
    /// It is multiplied by a constant of at least two.
    Grow,
    /// It is the time, or what others have counted.
    Clock,
}

/// The behavior of a value inside a loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Value {
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

impl Body<'_> {
    pub(super) fn value(&self, o: &Operand, open: &mut Vec<VReg>) -> Value {
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
        moved_constant(self.all.func, inst).filter(|_| inst.guard.is_none())
    }

    /// What an instruction divides by a power of two, as compilers write signed division: `x + (x >> 31 >>> 32 - k) >> k`, where `>>>` shifts
    /// in zeros.
    fn divided<'i>(&'i self, inst: &'i Inst) -> Option<&'i Operand> {
        let func = self.all.func;
        let made_by = |o: &Operand, op: Opcode| match o {
            Operand::Reg(r) => self.definition(*r).filter(|i| func.variant(i).op == op),
            _ => None,
        };
        let shift = |i: &'i Inst, signed: bool| match func.operands(i.srcs) {
            [x, Operand::Imm(by)] if func.variant(i).t().is_signed() == signed => Some((x, *by)),
            _ => None,
        };
        let bits = u64::from(func.variant(inst).t().bits());
        if func.variant(inst).op != Opcode::Shr {
            return None;
        }
        let (sum, k) = shift(inst, true)?;
        let [x, correction] = func.operands(made_by(sum, Opcode::Add)?.srcs) else { return None };
        let (sign, by) = shift(made_by(correction, Opcode::Shr)?, false)?;
        let is_sign = || made_by(sign, Opcode::Shr).and_then(|i| shift(i, true)) == Some((x, bits - 1));
        (k > 0 && by + k == bits && (k == 1 && sign == x || is_sign())).then_some(x)
    }

    /// Whether a memory operand's address does not change.
    fn value_of_base(&self, srcs: &[Operand]) -> bool {
        !matches!(srcs.first(), Some(Operand::Mem(MemBase::Reg(r), _)) if self.inside(*r).next().is_some())
    }

    /// The behavior of an instruction's result in the loop.
    fn result(&self, inst: &Inst, open: &mut Vec<VReg>) -> Value {
        let func = self.all.func;
        let v = func.variant(inst);
        let (t, srcs) = (v.t(), func.operands(inst.srcs));
        if v.op == Opcode::Atom && (v.has(Mod::Add) || v.has(Mod::Inc)) && is_integer(t) {
            return if self.waits { Value::Moves(Motion::Clock) } else { Value::Unknown };
        }
        if v.op == Opcode::Ld && (self.quiet || matches!(inst.space, Some(MemSpace::KernelParam | MemSpace::Const))) {
            return if self.value_of_base(srcs) { Value::Invariant(None) } else { Value::Unknown };
        }
        if !is_integer(t) || v.has(Mod::Sat) || v.has(Mod::Cc) || srcs.len() > 3 || t.bits() > 64 {
            return Value::Unknown;
        }
        if let Some(x) = self.divided(inst) {
            return slowed(self.value(x, open), Motion::Shrink);
        }
        let mut values = [Value::Unknown; 3];
        for (to, o) in values.iter_mut().zip(srcs) {
            *to = self.value(o, open);
        }
        if values[..srcs.len()].iter().all(|v| matches!(v, Value::Invariant(_))) && is_function(v.op) {
            return Value::Invariant(None);
        }
        let [a, b, c] = values;
        match (v.op, srcs.len()) {
            (Opcode::Mov, 1) => a,
            (Opcode::Cvt, 1) if v.ty(Var::U).is_some_and(is_integer) && !matches!(a, Value::Wide(_)) => a,
            (Opcode::Add, 2) => sum(a, b, t),
            (Opcode::Sub, 2) => difference(a, b, t),
            (Opcode::Mul, 2) => product(a, b, v),
            (Opcode::Mad, 3) if !v.has(Mod::Hi) && matches!(c, Value::Invariant(_)) => match (a, b) {
                (x, Value::Invariant(Some(factor))) => match multiple(x, signed(factor, t.bits())) {
                    m @ Value::Moves(_) => m,
                    _ => Value::Unknown,
                },
                _ => Value::Unknown,
            },
            (Opcode::Shl, 2) => match b {
                Value::Invariant(Some(k)) if k > 0 && k < u64::from(t.bits().min(63)) => multiple(a, 1 << k),
                _ => Value::Unknown,
            },
            (Opcode::Shr, 2) => shifted_right(a, b, t),
            (Opcode::Div, 2) => match b {
                Value::Invariant(Some(c)) if signed(c, t.bits()).unsigned_abs() > 1 => slowed(a, Motion::Shrink),
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
                (x, Value::Invariant(Some(bits))) | (Value::Invariant(Some(bits)), x) => field(x, bits, t),
                _ => Value::Unknown,
            },
            _ => Value::Unknown,
        }
    }
}

/// A value divided.
fn slowed(value: Value, how: Motion) -> Value {
    match value {
        Value::Moves(Motion::Step(_) | Motion::Stride | Motion::Drift) => Value::Moves(Motion::Drift),
        value => moved(value, how),
    }
}

/// Adjacent bits of a value, if the steps of a counter change them.
fn field(value: Value, bits: u64, t: Type) -> Value {
    let bits = bits & mask(t.bits());
    let moves = match value {
        // What it adds below the field is carried into it in the end.
        Value::Moves(Motion::Step(step)) => step.trailing_zeros() < 64 - bits.leading_zeros(),
        Value::Moves(motion) => matches!(motion, Motion::Stride | Motion::Drift),
        _ => false,
    };
    let ones = bits >> (bits.trailing_zeros() % 64);
    if moves && ones & ones.wrapping_add(1) == 0 { Value::Moves(Motion::Drift) } else { Value::Unknown }
}

/// A value after one more change.
fn moved(value: Value, how: Motion) -> Value {
    match value {
        Value::Open(base, m) => join(m, how).map_or(Value::Unknown, |m| Value::Open(base, m)),
        Value::Moves(Motion::Step(_)) if how == Motion::Stride => value,
        Value::Moves(m) if matches!(how, Motion::Step(_) | Motion::Stride) => Value::Moves(m),
        _ => Value::Unknown,
    }
}

/// The addition of something that the loop does not change, with a sign.
fn step(c: Option<u64>, sign: i64, t: Type) -> Motion {
    match c {
        Some(c) => signed(c, t.bits()).checked_mul(sign).map_or(Motion::Stride, Motion::Step),
        None => Motion::Stride,
    }
}

fn sum(a: Value, b: Value, t: Type) -> Value {
    match (a, b) {
        (x, Value::Invariant(c)) | (Value::Invariant(c), x) => moved(x, step(c, 1, t)),
        (Value::Open(x, Motion::Still), Value::Open(y, Motion::Still)) if x == y => Value::Open(x, Motion::Grow),
        _ => Value::Unknown,
    }
}

fn difference(a: Value, b: Value, t: Type) -> Value {
    match (a, b) {
        (x, Value::Invariant(c)) => moved(x, step(c, -1, t)),
        (Value::Invariant(_), Value::Moves(Motion::Step(s))) => Value::Moves(Motion::Step(s.wrapping_neg())),
        (x @ Value::Moves(Motion::Clock), _) => x,
        _ => Value::Unknown,
    }
}

/// A product by `mul`: its higher half, both halves, or the lower one.
fn product(a: Value, b: Value, v: &Variant) -> Value {
    let unsigned = !v.t().is_signed();
    match (a, b) {
        (x, Value::Invariant(_)) | (Value::Invariant(_), x) if v.has(Mod::Hi) && unsigned => slowed(x, Motion::Shrink),
        _ if v.has(Mod::Hi) => Value::Unknown,
        (Value::Open(base, Motion::Still), Value::Invariant(_)) if v.has(Mod::Wide) && unsigned => Value::Wide(base),
        (x, Value::Invariant(Some(c))) | (Value::Invariant(Some(c)), x) => multiple(x, signed(c, v.t().bits())),
        // Such as the square of a divisor that is tried.
        (Value::Moves(Motion::Step(a)), Value::Moves(Motion::Step(b))) if a != 0 && b != 0 => {
            Value::Moves(Motion::Drift)
        }
        _ => Value::Unknown,
    }
}

fn shifted_right(a: Value, b: Value, t: Type) -> Value {
    match (a, b) {
        (Value::Wide(base), Value::Invariant(Some(k))) if k >= u64::from(t.bits() / 2) => {
            Value::Open(base, Motion::Shrink)
        }
        (x, Value::Invariant(Some(k))) if k > 0 => {
            slowed(x, if t.is_signed() { Motion::ShrinkSigned } else { Motion::Shrink })
        }
        _ => Value::Unknown,
    }
}

/// Whether an instruction computes a pure function of its operands, so that it repeats what does not change.
fn is_function(op: Opcode) -> bool {
    op.row().effect == Effect::Pure
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
        Value::Moves(Motion::Stride | Motion::Drift | Motion::Grow) if by >= 1 => x,
        _ => Value::Unknown,
    }
}
