//! Value ranges of integer registers over all threads, and the power of two that divides the values: enough to prove that many
//! addresses in shared memory, which begin at constants, stay inside a CTA's window.
//!
//! The analysis is flow-insensitive: a register has the union of the ranges of its definitions wherever it is read. [`Ranges::at`] narrows
//! it by comparisons with constants in the branches that lead to a block, along its chain of single predecessors.

use crate::{
    BlockId, FormalHome, Func, Inst, Operand, VReg,
    pass::{
        Cfg, Liveness, Relation, WarpShape,
        liveness::{inst_reads, inst_writes, only_definitions},
    },
};
use margay_isa::{Component, Effect, Kind, Mod, Opcode, Special, Type, Var, Variant};
use std::collections::HashMap;

/// Widening: after this many changes, the bounds of a register become those of its type.
const WIDEN_AFTER: u8 = 4;

/// The known range of a value, as an unsigned number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// The minimum.
    pub least: u64,
    /// The maximum.
    pub most: u64,
    /// Log2 of a power of two that divides it; 64 for zero.
    pub align: u32,
}

/// The largest number of `bits` bits.
fn below(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

impl Bounds {
    fn any(bits: u32) -> Bounds {
        Bounds::up_to(below(bits))
    }

    fn up_to(most: u64) -> Bounds {
        Bounds { least: 0, most, align: 0 }
    }

    fn constant(v: u64) -> Bounds {
        Bounds { least: v, most: v, align: v.trailing_zeros() }
    }

    fn join(self, other: Bounds) -> Bounds {
        let least = self.least.min(other.least);
        Bounds { least, most: self.most.max(other.most), align: self.align.min(other.align) }
    }

    fn sum(self, other: Bounds, bits: u32) -> Option<Bounds> {
        let align = self.align.min(other.align);
        // A negative constant.
        if other.least == other.most && bits > 0 && other.most > below(bits - 1) {
            let less = (below(bits) - other.most).checked_add(1)?;
            let least = self.least.checked_sub(less)?;
            return Some(Bounds { least, most: self.most - less, align });
        }
        let most = self.most.checked_add(other.most).filter(|m| *m <= below(bits))?;
        Some(Bounds { least: self.least + other.least, most, align })
    }

    fn product(self, other: Bounds, bits: u32) -> Option<Bounds> {
        let most = self.most.checked_mul(other.most).filter(|m| *m <= below(bits))?;
        Some(Bounds { least: self.least * other.least, most, align: (self.align + other.align).min(64) })
    }

    /// Narrowed to ends that are multiples of the power of two that divides the value.
    fn tight(self) -> Bounds {
        let odd = below(self.align.min(63));
        let least = self.least.checked_add(odd).map_or(self.least, |l| l & !odd);
        Bounds { least, most: if self.align < 64 { self.most & !odd } else { 0 }, ..self }
    }

    /// Whether it is the same number signed and unsigned.
    fn positive(self, bits: u32) -> bool {
        bits > 0 && self.most <= below(bits - 1)
    }

    fn shifted(self, k: u32) -> Bounds {
        let align = if self.align == 64 { 64 } else { self.align.saturating_sub(k) };
        Bounds { least: self.least >> k, most: self.most >> k, align }
    }

    /// The bounds of `self | other` or, if equal bits `cancel`, of `self ^ other`.
    fn mixed(self, other: Bounds, cancel: bool) -> Bounds {
        let disjoint = |a: Bounds, b: Bounds| 64 - b.most.leading_zeros() <= a.align;
        if disjoint(self, other) || disjoint(other, self) {
            let (least, most) = (self.least + other.least, self.most.saturating_add(other.most));
            return Bounds { least, most, align: self.align.min(other.align) };
        }
        let most = below(64 - self.most.max(other.most).leading_zeros());
        let least = if cancel { 0 } else { self.least.max(other.least) };
        Bounds { least, most, align: self.align.min(other.align) }
    }
}

/// The bounds of a function's registers.
#[derive(Debug, Default)]
pub struct Ranges {
    /// By register; `None` while no definition is known.
    found: Vec<Option<Bounds>>,
    /// By register: its only definition, if every thread executes that once at most in a call of the function.
    definition: Vec<Option<u32>>,
    warp: WarpShape,
    /// By variable: its address, if known.
    addresses: Vec<Option<u64>>,
}

/// Length of the chains of definitions along which a condition on one register is traced to another.
const DEPTH: u32 = 6;
/// Number of branches before a block that are considered.
const BRANCHES: u32 = 64;

impl Ranges {
    /// Analyzes a function. `addresses` holds the known addresses of variables.
    pub fn new(func: &Func, cfg: &Cfg, live: &Liveness, warp: WarpShape, addresses: Vec<Option<u64>>) -> Ranges {
        let n = func.regs.len();
        let block_of = func.blocks_of_insts();
        let executed_once = |i: &u32| {
            let block = block_of[*i as usize].filter(|_| cfg.reducible && func.insts[*i as usize].guard.is_none());
            block.is_some_and(|b| cfg.innermost(cfg.position[b.0 as usize]).is_none())
        };
        let definition = only_definitions(func).into_iter().map(|d| d.filter(executed_once)).collect();
        let mut all = Ranges { found: vec![None; n], definition, warp, addresses };
        let mut unknown = |r: usize| {
            all.found[r] = Some(Bounds::any(func.regs[r].bits()));
            all.definition[r] = None;
        };
        for home in &func.params {
            if let FormalHome::Regs(regs) = home {
                regs.iter().for_each(|r| unknown(r.0 as usize));
            }
        }
        // Registers that may be read before they are written.
        live.live_in.first().iter().for_each(|set| set.iter().for_each(|r| unknown(r as usize)));
        all.join_definitions(func);
        all
    }

    fn join_definitions(&mut self, func: &Func) {
        let (mut moved, mut changed) = (vec![0u8; func.regs.len()], true);
        while changed {
            changed = false;
            for inst in &func.insts {
                let Some(result) = self.result(func, inst, &HashMap::new()) else { continue };
                inst_writes(func, inst, &mut |r| {
                    let (i, all) = (r.0 as usize, Bounds::any(func.regs[r.0 as usize].bits()));
                    let new = result.filter(|b| b.most <= all.most).unwrap_or(all);
                    let old = self.found[i];
                    let joined = old.map_or(new, |old| old.join(new));
                    if old != Some(joined) {
                        moved[i] += 1;
                        self.found[i] = Some(if moved[i] > WIDEN_AFTER { all } else { joined });
                        changed = true;
                    }
                });
            }
        }
    }

    /// The bounds of a register, wherever it is read.
    pub fn of(&self, r: VReg) -> Option<Bounds> {
        self.found.get(r.0 as usize).copied().flatten()
    }

    /// The bounds of a register in a block, which the branches that lead there may narrow.
    pub fn at(&self, func: &Func, cfg: &Cfg, block: BlockId, r: VReg) -> Option<Bounds> {
        let mut known = HashMap::new();
        let mut here = block;
        for _ in 0..BRANCHES {
            let [before] = cfg.preds[here.0 as usize][..] else { break };
            if let Some((p, value)) = func.blocks[before.0 as usize].term.condition(here)
                && let Some((r, bounds)) = self.condition(func, p, value, &known)
            {
                known.insert(r.0, bounds);
            }
            here = before;
        }
        if known.is_empty() {
            return self.of(r);
        }
        self.trace(func, r, DEPTH, &mut known);
        known.get(&r.0).copied().or_else(|| self.of(r))
    }

    /// Recomputes the bounds of a register from narrower bounds of others.
    fn trace(&self, func: &Func, r: VReg, depth: u32, known: &mut HashMap<u32, Bounds>) {
        let Some(i) = self.definition[r.0 as usize].filter(|_| depth > 0 && !known.contains_key(&r.0)) else { return };
        let inst = &func.insts[i as usize];
        inst_reads(func, inst, &mut |s| self.trace(func, s, depth - 1, known));
        if let Some(Some(found)) = self.result(func, inst, known) {
            known.insert(r.0, found);
        }
    }

    /// The register that a predicate compares with a constant, and its bounds given the outcome.
    fn condition(&self, func: &Func, p: VReg, holds: bool, known: &HashMap<u32, Bounds>) -> Option<(VReg, Bounds)> {
        let inst = &func.insts[self.definition[p.0 as usize]? as usize];
        let variant = func.variant(inst);
        let t = variant.t();
        let ([Operand::Reg(x), Operand::Imm(c)], [Operand::Reg(_)]) =
            (func.operands(inst.srcs), func.operands(inst.dsts))
        else {
            return None;
        };
        self.definition[x.0 as usize]?;
        let (bits, width) = (t.bits(), func.regs[x.0 as usize].bits());
        let b = known.get(&x.0).copied().or_else(|| self.of(*x))?;
        let c = c & below(bits);
        let same = !t.is_signed() || b.positive(bits) && c <= below(bits - 1);
        if variant.op != Opcode::Setp || !(t.is_int() || t.kind() == Kind::Bits) || width != bits || bits > 64 || !same
        {
            return None;
        }
        let relation = Relation::of(variant)?;
        let (least, most) = match if holds { relation } else { relation.inverse() } {
            Relation::Less => (0, c.checked_sub(1)?),
            Relation::AtMost => (0, c),
            Relation::Greater => (c.checked_add(1)?, u64::MAX),
            Relation::AtLeast => (c, u64::MAX),
            Relation::Equal => (c, c),
            Relation::Unequal => return None,
        };
        let (least, most) = (b.least.max(least), b.most.min(most));
        // Otherwise no thread reaches the block.
        (least <= most).then(|| (*x, Bounds { least, most, ..b }.tight()))
    }

    /// The bounds of an operand of `bits` bits; `None` while they are not known.
    fn operand(&self, o: &Operand, bits: u32, known: &HashMap<u32, Bounds>) -> Option<Bounds> {
        let found = match o {
            Operand::Reg(r) => known.get(&r.0).copied().or(self.found[r.0 as usize])?,
            Operand::Imm(v) => Bounds::constant(v & below(bits)),
            Operand::Special(s, c) => self.special(*s, *c),
            Operand::GlobalAddr(g, offset) => {
                let at =
                    self.addresses.get(g.0 as usize).copied().flatten().and_then(|a| a.checked_add_signed(*offset));
                at.map_or(Bounds::any(bits), Bounds::constant)
            }
            _ => Bounds::any(bits),
        };
        Some(if found.most > below(bits) { Bounds::any(bits) } else { found })
    }

    fn special(&self, special: Special, component: Component) -> Bounds {
        let block = self.warp.block;
        let size = |c: Component| match (c, block) {
            (Component::W, _) => Some(1),
            (c, Some(b)) => Some(u64::from(b[c as usize])),
            (_, None) => None,
        };
        match special {
            Special::Tid => Bounds::up_to(size(component).map_or(1023, |n| n.saturating_sub(1))),
            Special::Ntid => size(component).map_or(Bounds::up_to(1024), Bounds::constant),
            Special::LaneId => Bounds::up_to(31),
            Special::WarpId => {
                let threads = block.map_or(1024, |b| b.iter().map(|n| u64::from(*n)).product());
                Bounds::up_to(threads.div_ceil(32).saturating_sub(1))
            }
            Special::Ctaid | Special::Nctaid => Bounds::up_to(below(31)),
            other => Bounds::any(other.info().ty.bits()),
        }
    }

    /// The bounds of an instruction's result: `None` while its operands have none yet, `Some(None)` if nothing is known of the result.
    /// Bounds in `known` have precedence over those that hold everywhere.
    fn result(&self, func: &Func, inst: &Inst, known: &HashMap<u32, Bounds>) -> Option<Option<Bounds>> {
        let variant = func.variant(inst);
        let (t, srcs) = (variant.t(), func.operands(inst.srcs));
        if variant.op == Opcode::Ld {
            let known = !t.is_signed() && !t.is_float() && t.bits() <= 16;
            return Some(known.then(|| Bounds::any(t.bits())));
        }
        let whole = t.is_int() || t.kind() == Kind::Bits;
        let plain = whole && !variant.has(Mod::Sat) && !variant.has(Mod::Cc) && !variant.has(Mod::Hi);
        let bits = t.bits();
        let wide = if variant.has(Mod::Wide) { 2 * bits } else { bits };
        // Wider registers get the sign of the result.
        let fits = match func.operands(inst.dsts) {
            [Operand::Reg(d)] => func.regs[d.0 as usize].bits() == wide || !t.is_signed(),
            _ => false,
        };
        if !plain || !fits || wide > 64 || !matches!(variant.op.row().effect, Effect::Pure | Effect::Machine) {
            return Some(None);
        }
        let mut v = Vec::new();
        for (i, s) in srcs.iter().enumerate() {
            let width = match (variant.op, i) {
                (Opcode::Mad, 2) => wide,
                (Opcode::Cvt, _) => variant.ty(Var::U).map_or(64, Type::bits),
                (Opcode::Shl | Opcode::Shr, 1) | (Opcode::Bfe, 1 | 2) => 32,
                _ => bits,
            };
            v.push(self.operand(s, width, known)?);
        }
        Some(computed(variant, srcs, &v, wide).map(Bounds::tight))
    }
}

/// The bounds of a result of `wide` bits, from those of the operands; `None` if nothing is known of it.
fn computed(variant: &Variant, srcs: &[Operand], v: &[Bounds], wide: u32) -> Option<Bounds> {
    let t = variant.t();
    let bits = t.bits();
    let product = |a: Bounds, b: Bounds| {
        let signed = variant.has(Mod::Wide) && t.is_signed();
        (!signed || a.positive(bits) && b.positive(bits)).then(|| a.product(b, wide)).flatten()
    };
    let count = |o: &Operand| match o {
        Operand::Imm(k) if *k < u64::from(bits) => Some(*k as u32),
        _ => None,
    };
    let unsigned = |a: &Bounds| !t.is_signed() || a.positive(bits);
    match (variant.op, v) {
        (Opcode::Mov, [a]) => Some(*a),
        (Opcode::Add, [a, b]) => a.sum(*b, bits).or_else(|| b.sum(*a, bits)),
        (Opcode::Sub, [a, b]) => a.least.checked_sub(b.most).map(|least| Bounds {
            least,
            most: a.most - b.least,
            align: a.align.min(b.align),
        }),
        (Opcode::Mul, [a, b]) => product(*a, *b),
        (Opcode::Mad, [a, b, c]) => product(*a, *b).and_then(|p| p.sum(*c, wide).or_else(|| c.sum(p, wide))),
        (Opcode::Shl, [a, _]) => count(&srcs[1]).and_then(|k| a.product(Bounds::constant(1 << k), bits)),
        (Opcode::Shr, [a, _]) if unsigned(a) => count(&srcs[1]).map(|k| a.shifted(k)),
        (Opcode::And, [a, b]) => Some(Bounds { least: 0, most: a.most.min(b.most), align: a.align.max(b.align) }),
        (Opcode::Or | Opcode::Xor, [a, b]) => Some(a.mixed(*b, variant.op == Opcode::Xor)),
        (Opcode::Bfe, [a, from, length]) if !t.is_signed() && from.least == from.most && length.most < 64 => {
            let from = u32::try_from(from.least).ok().filter(|k| *k < bits);
            from.map(|k| a.shifted(k)).map(|f| Bounds::up_to(f.most.min(below(length.most as u32))))
        }
        (Opcode::Rem, [a, b]) if !t.is_signed() && b.least > 0 => Some(Bounds::up_to(a.most.min(b.most - 1))),
        (Opcode::Div, [a, b]) if !t.is_signed() && b.least > 0 => Some(Bounds::up_to(a.most / b.least)),
        (Opcode::Min, [a, b]) if unsigned(a) && unsigned(b) => {
            Some(Bounds { most: a.most.min(b.most), least: a.least.min(b.least), align: a.align.min(b.align) })
        }
        (Opcode::Max, [a, b]) if unsigned(a) && unsigned(b) => {
            Some(Bounds { most: a.most.max(b.most), least: a.least.max(b.least), align: a.align.min(b.align) })
        }
        (Opcode::Selp, [a, b, _]) => Some(a.join(*b)),
        (Opcode::Cvt, [a]) => variant
            .ty(Var::U)
            .filter(|u| u.is_int() || u.kind() == Kind::Bits)
            .and_then(|u| (!u.is_signed() || a.positive(u.bits())).then_some(*a).filter(|a| a.most <= below(bits))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sums, products and mixtures of random bounds hold for random members.
    #[test]
    fn bounds_hold() {
        let mut state = 7u64;
        let mut random = move |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        for round in 0..100_000 {
            let bits = if round % 2 == 0 { 32 } else { 64 };
            let mut value = || {
                let align = random(6) as u32;
                let sizes = [0; 2].map(|_| 1 << (1 + random(12)));
                let [a, b] = sizes.map(|size| random(size) << align);
                match random(8) {
                    0 => (Bounds::constant(below(bits) - a), below(bits) - a),
                    1 => (Bounds::constant(b), b),
                    _ => {
                        let (least, most) = (a.min(b), a.max(b));
                        let all = (most - least) >> align;
                        (Bounds { least, most, align }, least + (random(all + 1) << align))
                    }
                }
            };
            let ((a, x), (b, y)) = (value(), value());
            let holds = |b: Option<Bounds>, v: u64, what: &str| {
                let Some(b) = b else { return };
                let v = v & below(bits);
                assert!((b.least..=b.most).contains(&v), "{x:#x} {what} {y:#x} = {v:#x} is not in {b:?}");
                assert!(v.trailing_zeros() >= b.align, "{x:#x} {what} {y:#x} = {v:#x} is not as aligned as {b:?}");
            };
            holds(a.sum(b, bits), x.wrapping_add(y), "+");
            holds(a.product(b, bits), x.wrapping_mul(y), "*");
            holds(Some(a.mixed(b, false)), x | y, "|");
            holds(Some(a.mixed(b, true)), x ^ y, "^");
            holds(Some(a.join(b)), x, "or");
            holds(Some(a.shifted(3)), x >> 3, ">> 3 of");
            holds(Some(Bounds { least: a.least.saturating_sub(3), ..a }.tight()), x, "tight");
        }
    }
}
