//! Member masks of warp operations: whether all lanes that a mask names execute the operation in the same sweep, with the same mask.
//!
//! Where that cannot be shown, lanes may have to wait for others of their warp, and the function is prepared for this
//! ([`super::prepare`]). It can be shown for
//! * a uniform mask, in code that all lanes of the warp reach together;
//! * a function of the lane's number (the masks of tiles), likewise, computed here for all lanes;
//! * the result of `activemask`, `vote.ballot` or `match`, if all lanes that took part in these reach the operation together; and the result
//!   of `vote.ballot`, behind a branch that exactly the lanes with a true predicate take.

use margay_exec::{Known, LANES, Row};
use margay_ir::{
    BlockId, Func, Inst, Operand, Terminator, VReg,
    pass::{Cfg, Relation, Uniformity, liveness::only_definitions},
};
use margay_isa::{Mod, Opcode, Type};

/// How far definitions are followed.
const DEPTH: u32 = 24;

/// Definitions of registers, for tracing masks to their origin.
pub(super) struct Members<'a> {
    func: &'a Func,
    cfg: &'a Cfg,
    uniformity: &'a Uniformity,
    /// By register: its only definition.
    definition: Vec<Option<u32>>,
    /// By instruction: its block.
    block_of: Vec<Option<BlockId>>,
}

impl<'a> Members<'a> {
    pub fn new(func: &'a Func, cfg: &'a Cfg, uniformity: &'a Uniformity) -> Members<'a> {
        let (definition, block_of) = (only_definitions(func), func.blocks_of_insts());
        Members { func, cfg, uniformity, definition, block_of }
    }

    /// Whether the masks of an operation in `block` name only lanes that execute it together, each with the same mask.
    pub fn come_together(&self, block: BlockId, index: usize) -> bool {
        let inst = &self.func.insts[index];
        let Some(members) = self.func.operands(inst.srcs).last() else { return true };
        if !self.uniformity.divergent[block.0 as usize]
            && (self.uniformity.is_uniform(members)
                || self.row(members, Type::B32, DEPTH).is_some_and(|rows| agree(&rows.0)))
        {
            return true;
        }
        self.took_part(members, (block, index as u32), DEPTH)
    }

    /// The definition of a register: its block, its number and itself, unless it is guarded.
    fn defined(&self, r: VReg) -> Option<(BlockId, u32, &'a Inst)> {
        let index = self.definition[r.0 as usize]?;
        let inst = &self.func.insts[index as usize];
        inst.guard.is_none().then_some((self.block_of[index as usize]?, index, inst))
    }

    /// Whether a mask names only lanes that come to a use together, each with the same mask.
    fn took_part(&self, members: &Operand, use_at: (BlockId, u32), depth: u32) -> bool {
        let Operand::Reg(r) = members else { return false };
        let Some((block, index, inst)) = self.defined(*r).filter(|_| depth > 0) else { return false };
        let variant = self.func.variant(inst);
        let srcs = self.func.operands(inst.srcs);
        let result = || matches!(self.func.operands(inst.dsts).first(), Some(Operand::Reg(d)) if d == r);
        match variant.op {
            Opcode::Mov if srcs.len() == 1 => self.took_part(&srcs[0], use_at, depth - 1),
            // A part of such a mask, the same part for all lanes in it.
            Opcode::And => {
                let [a, b] = srcs else { return false };
                let part = |o: &Operand| self.uniformity.is_uniform(o) || self.took_part(o, use_at, depth - 1);
                self.took_part(a, use_at, depth - 1) && part(b) || self.took_part(b, use_at, depth - 1) && part(a)
            }
            Opcode::Activemask => self.reaches((block, index), use_at),
            Opcode::Match if result() => self.reaches((block, index), use_at),
            Opcode::Vote if variant.has(Mod::Ballot) => {
                self.reaches((block, index), use_at) || self.chosen(&srcs[0], (block, index), use_at)
            }
            _ => false,
        }
    }

    /// Whether all lanes that execute one instruction together also execute a later one together, unless they exit before.
    fn reaches(&self, (from, i): (BlockId, u32), (to, k): (BlockId, u32)) -> bool {
        (from != to || i < k) && self.equivalent(from, to)
    }

    /// Whether lanes that execute one block together execute another one together, once each time and after it.
    fn equivalent(&self, from: BlockId, to: BlockId) -> bool {
        if from == to {
            return true;
        }
        let innermost = |b: BlockId| self.cfg.innermost(self.cfg.position[b.0 as usize]);
        if !self.cfg.reducible || innermost(from) != innermost(to) {
            return false;
        }
        let mut at = from;
        while let Some(next) = self.cfg.ipdom[at.0 as usize] {
            if next == to {
                return self.dominates(from, to);
            }
            at = next;
        }
        false
    }

    /// Whether every path to a block leads through another one.
    fn dominates(&self, above: BlockId, below: BlockId) -> bool {
        let Some(entry) = self.cfg.order.first().copied() else { return false };
        let mut seen = vec![false; self.func.blocks.len()];
        let mut work = if entry == above { Vec::new() } else { vec![entry] };
        while let Some(b) = work.pop() {
            if b == below {
                return false;
            }
            if !std::mem::replace(&mut seen[b.0 as usize], true) {
                work.extend(self.cfg.succs[b.0 as usize].iter().copied().filter(|s| *s != above));
            }
        }
        true
    }

    /// Whether the lanes whose predicate was true at a vote reach a use together: a branch after the vote sends just
    /// these there.
    fn chosen(&self, pred: &Operand, (vote, _): (BlockId, u32), (to, _): (BlockId, u32)) -> bool {
        let Some((voted, inverted)) = self.predicate(pred, DEPTH) else { return false };
        // The nearest branch above, through blocks that all lanes pass together.
        self.cfg.order.iter().any(|b| {
            let Terminator::Branch { pred, negated, then, other, .. } = &self.func.blocks[b.0 as usize].term else {
                return false;
            };
            let Some((tested, odd)) = self.predicate(&Operand::Reg(*pred), DEPTH) else { return false };
            let taken = if (odd != *negated) == inverted { *then } else { *other };
            self.are_same(&tested, &voted)
                && then != other
                && self.cfg.preds[taken.0 as usize] == [*b]
                && self.equivalent(vote, *b)
                && self.equivalent(taken, to)
        })
    }

    /// What a predicate tells, and whether it is inverted: `selp` and `setp.ne` make integers of predicates and predicates of those.
    fn predicate(&self, o: &Operand, depth: u32) -> Option<(Test<'a>, bool)> {
        let (r, inverted) = match o {
            Operand::Reg(r) => (*r, false),
            Operand::Not(r) => (*r, true),
            _ => return None,
        };
        let (block, index, inst) = self.defined(r).filter(|_| depth > 0)?;
        let (variant, srcs) = (self.func.variant(inst), self.func.operands(inst.srcs));
        let inner = match (variant.op, srcs, self.func.operands(inst.dsts)) {
            (Opcode::Mov, [p], [_]) => self.predicate(p, depth - 1),
            (Opcode::Not, [p], [_]) => self.predicate(p, depth - 1).map(|(p, inverted)| (p, !inverted)),
            (Opcode::Setp, [n, Operand::Imm(0)], [_]) if self.selected(n).is_some() => {
                let p = self.selected(n).and_then(|p| self.predicate(p, depth - 1));
                let equal = variant.has(Mod::Eq);
                p.filter(|_| equal || variant.has(Mod::Ne)).map(|(p, inverted)| (p, inverted != equal))
            }
            (Opcode::Setp, [_, _], [_]) => {
                // Each relation and its inverse are one test.
                let found = Relation::of(variant).filter(|_| !variant.t().is_float()).map(|relation| match relation {
                    Relation::Equal | Relation::Less | Relation::Greater => (relation, false),
                    Relation::Unequal | Relation::AtLeast | Relation::AtMost => (relation.inverse(), true),
                });
                found.map(|(relation, inverted)| (Test::Comparison { relation, inst, at: (block, index) }, inverted))
            }
            _ => None,
        };
        let (p, odd) = inner.unwrap_or((Test::Register(r), false));
        Some((p, odd != inverted))
    }

    /// The predicate that an integer is made of.
    fn selected(&self, n: &Operand) -> Option<&'a Operand> {
        let Operand::Reg(n) = n else { return None };
        let (_, _, inst) = self.defined(*n).filter(|(_, _, i)| self.func.variant(i).op == Opcode::Selp)?;
        match self.func.operands(inst.srcs) {
            [Operand::Imm(1), Operand::Imm(0), p] => Some(p),
            _ => None,
        }
    }

    /// Whether two predicates are equal in every lane.
    fn are_same(&self, one: &Test<'_>, other: &Test<'_>) -> bool {
        match (one, other) {
            (Test::Register(a), Test::Register(b)) => a == b,
            (Test::Comparison { relation, inst, at }, Test::Comparison { relation: other, inst: i, at: a }) => {
                let operands = self.func.operands(inst.srcs);
                let types = |inst: &Inst| self.func.variant(inst).t();
                let together = self.equivalent(at.0, a.0) || self.equivalent(a.0, at.0);
                let alike = relation == other && types(inst) == types(i) && operands == self.func.operands(i.srcs);
                alike && together && operands.iter().all(|o| self.is_settled(o, *at) && self.is_settled(o, *a))
            }
            _ => false,
        }
    }

    /// Whether an operand is computed before an instruction wherever that is executed.
    fn is_settled(&self, o: &Operand, (block, index): (BlockId, u32)) -> bool {
        match o {
            Operand::Imm(_) => true,
            Operand::Reg(r) => self.defined(*r).is_some_and(|(b, i, _)| match b == block {
                true => i < index,
                false => self.dominates(b, block),
            }),
            _ => false,
        }
    }
}

/// The condition that a predicate stands for.
enum Test<'a> {
    /// The content of a register.
    Register(VReg),
    /// Whether this relation holds for the operands of a comparison of integers.
    Comparison { relation: Relation, inst: &'a Inst, at: (BlockId, u32) },
}

impl Known for Members<'_> {
    fn func(&self) -> &Func {
        self.func
    }

    fn definition(&self, register: VReg) -> Option<&Inst> {
        self.defined(register).map(|(_, _, inst)| inst)
    }

    /// All that a mask may depend on is the lane's number.
    fn special(&self, _: &Operand) -> Option<Row> {
        None
    }
}

/// Whether every lane that a mask names has the same mask.
fn agree(masks: &[u32; LANES]) -> bool {
    let named = |lane: usize| (0..LANES).filter(move |other| masks[lane] >> other & 1 == 1);
    (0..LANES).all(|lane| named(lane).all(|other| masks[other] == masks[lane]))
}
