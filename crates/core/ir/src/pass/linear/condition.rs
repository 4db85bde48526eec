//! Bounds of linear values at an instruction, from its guard and from the branches that lead to it.

use super::{Linear, LinearValues};
use crate::{Operand, VReg, pass::Relation};
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
        if let Some((p, value)) = func.blocks[before.0 as usize].term.condition(block)
            && values.cfg.preds[block.0 as usize] == [before]
        {
            add(values, p, value, DEPTH, &mut found);
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
            let relation = Relation::of(variant).map(|r| if holds { r } else { r.inverse() });
            to.extend(relation.and_then(|r| compared(values, variant.t(), a, r, b)));
        }
        _ => {}
    }
}

/// The bounds of the difference of two linear operands of type `t` that follow from this relation between them.
fn compared(values: &LinearValues<'_>, t: Type, a: &Operand, relation: Relation, b: &Operand) -> Option<Condition> {
    if !(t.is_int() || t.kind() == Kind::Bits) {
        return None;
    }
    let [a, b] = [a, b].map(|o| values.known(o, t.bits()).and_then(|v| values.widened(v, t)));
    let (a, b) = (a?, b?);
    let difference = a.plus(b.times(Linear::number(-1))?)?;
    if difference.period != 0 || a.period != 0 || b.period != 0 {
        return None;
    }
    let (least, most) = match relation {
        Relation::Less => (i64::MIN, -1),
        Relation::AtMost => (i64::MIN, 0),
        Relation::Greater => (1, i64::MAX),
        Relation::AtLeast => (0, i64::MAX),
        Relation::Equal => (0, 0),
        Relation::Unequal => return None,
    };
    let shifted = |end: i64| end.saturating_sub(difference.constant);
    let (value, unit) = Linear { constant: 0, ..difference }.in_units()?;
    let (low, high) = value.range(&values.launch.extents())?;
    // Rounded up and down to multiples of the unit.
    let least = shifted(least).div_euclid(unit) + i64::from(shifted(least).rem_euclid(unit) != 0);
    Some(Condition { value, least: least.max(low), most: shifted(most).div_euclid(unit).min(high) })
}
