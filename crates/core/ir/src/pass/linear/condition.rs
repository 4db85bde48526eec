//! Bounds of linear values at an instruction, from its guard and from the branches that lead to it.

use super::{Linear, LinearValues};
use crate::{Operand, Terminator, VReg};
use margay_isa::{Kind, Mod, Opcode, Type};

/// How far definitions of predicates are followed.
const DEPTH: u32 = 6;

/// The bounds of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Condition {
    /// The value, which a thread never changes. Its constant is 0, and its factors have no common divisor.
    pub value: Linear,
    /// Its minimum.
    pub least: i64,
    /// Its maximum.
    pub most: i64,
}

/// The conditions under which an instruction is executed: its guard, and the branches that dominate its block.
pub fn of(values: &LinearValues<'_>, at: u32) -> Vec<Condition> {
    let func = values.func;
    let mut found = Vec::new();
    if let Some((p, negated)) = func.insts[at as usize].guard {
        add(values, p, !negated, DEPTH, &mut found);
    }
    let mut here = values.block_of[at as usize];
    while let Some(block) = here {
        here = values.cfg.idom[block.0 as usize];
        let Some(before) = here else { break };
        if let Terminator::Branch { pred, negated, then, other, .. } = func.blocks[before.0 as usize].term
            && then != other
            && values.cfg.preds[block.0 as usize] == [before]
        {
            add(values, pred, (block == then) != negated, DEPTH, &mut found);
        }
    }
    found
}

/// Adds the conditions that follow from a predicate being true (`holds`) or false.
fn add(values: &LinearValues<'_>, p: VReg, holds: bool, depth: u32, to: &mut Vec<Condition>) {
    let func = values.func;
    let Some(inst) = values.definition[p.0 as usize].filter(|_| depth > 0).map(|i| &func.insts[i as usize]) else {
        return;
    };
    let (variant, srcs) = (func.variant(inst), func.operands(inst.srcs));
    let mut follow = |o: &Operand, holds: bool| match o {
        Operand::Reg(q) => add(values, *q, holds, depth - 1, to),
        Operand::Not(q) => add(values, *q, !holds, depth - 1, to),
        _ => {}
    };
    // A true conjunction has two true operands, a false disjunction two false ones.
    let both = |and: bool| and == holds;
    match (variant.op, srcs) {
        (Opcode::And | Opcode::Or, [a, b]) if both(variant.op == Opcode::And) => {
            follow(a, holds);
            follow(b, holds);
        }
        (Opcode::Not, [a]) => follow(a, !holds),
        (Opcode::Mov, [a]) => follow(a, holds),
        (Opcode::Setp, [a, b, rest @ ..]) if !matches!(func.operands(inst.dsts), [_, Operand::Reg(_)]) => {
            let and = variant.has(Mod::And);
            if let [c] = rest {
                if variant.has(Mod::Xor) || !both(and) {
                    return;
                }
                follow(c, holds);
            }
            let compared =
                Comparison::of(|m| variant.has(m)).and_then(|c| c.condition(values, variant.t(), [a, b], holds));
            to.extend(compared);
        }
        _ => {}
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Less,
    AtMost,
    More,
    AtLeast,
    Equal,
    Unequal,
}

impl Comparison {
    fn of(has: impl Fn(Mod) -> bool) -> Option<Comparison> {
        Some(match () {
            _ if has(Mod::Lt) || has(Mod::Lo) => Comparison::Less,
            _ if has(Mod::Le) || has(Mod::Ls) => Comparison::AtMost,
            _ if has(Mod::Gt) || has(Mod::Hi) => Comparison::More,
            _ if has(Mod::Ge) || has(Mod::Hs) => Comparison::AtLeast,
            _ if has(Mod::Eq) => Comparison::Equal,
            _ if has(Mod::Ne) => Comparison::Unequal,
            _ => return None,
        })
    }

    /// The bounds of the difference of two linear values that follow from the outcome of this comparison.
    fn condition(self, values: &LinearValues<'_>, t: Type, [a, b]: [&Operand; 2], holds: bool) -> Option<Condition> {
        if !(t.is_int() || t.kind() == Kind::Bits) {
            return None;
        }
        let [a, b] = [a, b].map(|o| values.known(o, t.bits()).and_then(|v| values.widened(v, t)));
        let (a, b) = (a?, b?);
        let difference = a.plus(b.times(Linear::number(-1))?)?;
        if difference.period != 0 || a.period != 0 || b.period != 0 {
            return None;
        }
        let (least, most) = match (self, holds) {
            (Comparison::Less, true) | (Comparison::AtLeast, false) => (i64::MIN, -1),
            (Comparison::AtMost, true) | (Comparison::More, false) => (i64::MIN, 0),
            (Comparison::More, true) | (Comparison::AtMost, false) => (1, i64::MAX),
            (Comparison::AtLeast, true) | (Comparison::Less, false) => (0, i64::MAX),
            (Comparison::Equal, true) | (Comparison::Unequal, false) => (0, 0),
            (Comparison::Equal, false) | (Comparison::Unequal, true) => return None,
        };
        let shifted = |end: i64| end.saturating_sub(difference.constant);
        let (value, unit) = Linear { constant: 0, ..difference }.in_units()?;
        let (low, high) = value.range(&values.launch.extents())?;
        // Rounded up and down to multiples of the unit.
        let least = shifted(least).div_euclid(unit) + i64::from(shifted(least).rem_euclid(unit) != 0);
        Some(Condition { value, least: least.max(low), most: shifted(most).div_euclid(unit).min(high) })
    }
}
