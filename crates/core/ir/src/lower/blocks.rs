//! The blocks of a body (manual, sections 9.3 and 9.7.12).
//!
//! They begin at labels that are jump targets and after `bra`, `brx.idx`, `ret` and `exit`. Guards on these become
//! branches. Falling off the end of a body returns. Unreachable blocks are dropped; the rest are in reverse post-order,
//! with the block that follows in the text first where there is a choice.

use super::{
    LowerError,
    body::{Builder, Place},
};
use crate::{Block, BlockId, Operand, Terminator};
use margay_check::{self as check, Function, LabelId, TargetTable};
use margay_isa::{Mod, Opcode, Type, Variant};
use margay_syntax::{Span, tree::List};
use std::collections::HashMap;

/// A block before unreachable ones are dropped; targets are indices of such blocks.
struct Raw {
    /// Instructions of the body that stay instructions.
    insts: std::ops::Range<u32>,
    /// The instruction that ends the block; `None` where it falls through.
    end: Option<u32>,
    next: Next,
    label: Option<Span>,
}

enum Next {
    Jump(usize),
    Branch { then: usize, other: usize },
    Switch(Vec<usize>),
    Ret,
    Exit,
}

impl Next {
    /// Successors; the one that should follow directly comes last.
    fn targets(&self) -> Vec<usize> {
        match self {
            Next::Jump(t) => vec![*t],
            Next::Branch { then, other } => vec![*then, *other],
            Next::Switch(targets) => targets.iter().rev().copied().collect(),
            Next::Ret | Next::Exit => Vec::new(),
        }
    }
}

/// Which instructions end a block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ends {
    Bra,
    Brx,
    Ret,
    Exit,
}

fn ends(variant: &Variant) -> Option<Ends> {
    match variant.op {
        Opcode::Bra => Some(Ends::Bra),
        Opcode::Ret => Some(Ends::Ret),
        Opcode::Exit => Some(Ends::Exit),
        Opcode::Brx => Some(Ends::Brx),
        _ => None,
    }
}

impl Builder<'_> {
    /// Lowers the instructions of the body, block by block.
    pub(super) fn blocks(&mut self, function: &Function) -> Result<(), LowerError> {
        let count = self.body.insts.len();
        self.func.insts.reserve(count);
        self.func.places.reserve(count);
        self.func.operands.reserve(3 * count);
        let raws = self.raw_blocks()?;
        let order = reverse_post_order(&raws);
        let mut ids = vec![BlockId(u32::MAX); raws.len()];
        for (i, raw) in order.iter().enumerate() {
            ids[*raw] = BlockId(i as u32);
        }
        let close = self.tree.funcs.get(function.node as usize).map_or(function.span, |f| f.braces.1);
        let end = self.body.insts.len() as u32;
        for raw in order.iter().map(|i| &raws[*i]) {
            let first = self.func.insts.len() as u32;
            for i in raw.insts.clone() {
                if !self.does_nothing(i) {
                    let at = self.place(i);
                    self.inst(i, at)?;
                }
            }
            let at = match raw.end {
                Some(i) => self.place(i),
                None if matches!(raw.next, Next::Ret) => self.place_at(end, close),
                None => self.place(raw.insts.end.saturating_sub(1).max(raw.insts.start)),
            };
            let term = self.terminator(raw, &ids, at)?;
            let insts = List::new(first, self.func.insts.len() as u32 - first);
            let label = raw.label.map(|l| self.tree.str(l).into());
            self.func.blocks.push(Block { insts, term, at: at.index, label });
        }
        self.func.types = crate::types::row_types(&self.func);
        Ok(())
    }

    /// Whether ptxas makes no instruction of one that it accepts: `testp` without a property, whose predicate keeps its value.
    fn does_nothing(&self, i: u32) -> bool {
        let variant = self.body.variant(&self.body.insts[i as usize]);
        variant.op == Opcode::Testp && variant.words.len() == 1
    }

    fn terminator(&mut self, raw: &Raw, ids: &[BlockId], at: Place) -> Result<Terminator, LowerError> {
        let inst = raw.end.map(|i| self.body.insts[i as usize]);
        let uniform = inst.is_some_and(|i| self.body.variant(&i).has(Mod::Uni));
        Ok(match &raw.next {
            Next::Jump(t) => Terminator::Jump(ids[*t]),
            Next::Ret => Terminator::Ret,
            Next::Exit => Terminator::Exit,
            Next::Branch { then, other } => {
                let Some(guard) = inst.and_then(|i| i.guard) else {
                    return Err(self.error(at.span, "a branch without predicate has two ways"));
                };
                let pred = self.read_scalar(guard.reg, at)?;
                Terminator::Branch { pred, negated: guard.negated, then: ids[*then], other: ids[*other], uniform }
            }
            Next::Switch(targets) => {
                let operand = inst.and_then(|i| self.body.operands(i.operands).first().copied());
                let Some(operand) = operand else { return Err(self.error(at.span, "`brx.idx` without index")) };
                let mut values = Vec::new();
                self.value(operand, Type::U32, false, &mut values, at)?;
                let index = values.first().copied().unwrap_or(Operand::Imm(0));
                Terminator::Switch { index, targets: targets.iter().map(|t| ids[*t]).collect(), uniform }
            }
        })
    }

    /// The instruction after a label.
    fn label_at(&self, label: LabelId) -> u32 {
        self.body.labels.get(label.0 as usize).map_or(0, |l| l.0)
    }

    /// Labels that an instruction may jump to.
    fn jump_labels(&self, inst: &check::Inst, what: Ends) -> Vec<LabelId> {
        let operands = self.body.operands(inst.operands);
        match what {
            Ends::Bra => {
                operands.iter().filter_map(|o| if let check::Operand::Label(l) = o { Some(*l) } else { None }).collect()
            }
            Ends::Brx => {
                let table =
                    operands.iter().find_map(|o| if let check::Operand::Table(t) = o { Some(*t) } else { None });
                match table.and_then(|t| self.body.tables.get(t.0 as usize)) {
                    Some(TargetTable::Branch(labels)) => labels.clone(),
                    _ => Vec::new(),
                }
            }
            Ends::Ret | Ends::Exit => Vec::new(),
        }
    }

    /// Where an instruction leads whose guard is true. `targets` are the blocks of the labels that it names.
    fn taken(&self, inst: &check::Inst, what: Ends, targets: Vec<usize>) -> Result<Next, LowerError> {
        match (what, targets.first()) {
            (Ends::Bra, Some(target)) => Ok(Next::Jump(*target)),
            (Ends::Bra, None) => Err(self.unsupported(self.span_of(inst), "a branch to something that is not a label")),
            (Ends::Brx, Some(_)) => Ok(Next::Switch(targets)),
            (Ends::Brx, None) => Err(self.unsupported(self.span_of(inst), "`brx.idx` without a list of targets")),
            (Ends::Ret, _) => Ok(Next::Ret),
            (Ends::Exit, _) => Ok(Next::Exit),
        }
    }

    /// The body as blocks in the order of the text, then blocks of a single `brx.idx`, `ret` or `exit` whose guard has become a branch.
    fn raw_blocks(&self) -> Result<Vec<Raw>, LowerError> {
        let count = self.body.insts.len() as u32;
        let mut leader = vec![false; count as usize + 1];
        leader[0] = true;
        leader[count as usize] = true;
        for (i, inst) in self.body.insts.iter().enumerate() {
            if let Some(what) = ends(self.body.variant(inst)) {
                leader[i + 1] = true;
                for label in self.jump_labels(inst, what) {
                    leader[self.label_at(label).min(count) as usize] = true;
                }
            }
        }
        let starts: Vec<u32> = (0..=count).filter(|i| leader[*i as usize]).collect();
        // The block that begins at an instruction which is a leader.
        let block_at = |inst: u32| starts.partition_point(|s| *s < inst.min(count));
        let mut names: HashMap<u32, Span> = HashMap::new();
        for (at, name) in self.body.labels.iter().rev() {
            names.insert(*at, *name);
        }
        let mut raws = Vec::with_capacity(starts.len());
        let mut extra = Vec::new();
        for (k, start) in starts.iter().copied().enumerate() {
            let label = names.get(&start).copied();
            let Some(stop) = starts.get(k + 1).copied() else {
                raws.push(Raw { insts: count..count, end: None, next: Next::Ret, label });
                break;
            };
            let last = &self.body.insts[stop as usize - 1];
            let Some(what) = ends(self.body.variant(last)) else {
                raws.push(Raw { insts: start..stop, end: None, next: Next::Jump(k + 1), label });
                continue;
            };
            let targets = self.jump_labels(last, what).into_iter().map(|l| block_at(self.label_at(l))).collect();
            let taken = self.taken(last, what, targets)?;
            let end = Some(stop - 1);
            let next = match (last.guard, taken) {
                (None, taken) => taken,
                (Some(_), Next::Jump(t)) if t == k + 1 => Next::Jump(t),
                (Some(_), Next::Jump(t)) => Next::Branch { then: t, other: k + 1 },
                (Some(_), taken) => {
                    extra.push(Raw { insts: stop - 1..stop - 1, end, next: taken, label: None });
                    Next::Branch { then: starts.len() + extra.len() - 1, other: k + 1 }
                }
            };
            raws.push(Raw { insts: start..stop - 1, end, next, label });
        }
        raws.append(&mut extra);
        Ok(raws)
    }

    fn span_of(&self, inst: &check::Inst) -> Span {
        self.tree.instrs.get(inst.node as usize).map_or(Span::default(), |n| n.span)
    }
}

/// Reachable blocks in reverse post-order, without recursion: bodies can have a hundred thousand blocks.
fn reverse_post_order(raws: &[Raw]) -> Vec<usize> {
    let mut seen = vec![false; raws.len()];
    let mut post = Vec::new();
    let mut stack: Vec<(usize, std::vec::IntoIter<usize>)> = Vec::new();
    if let Some(first) = raws.first() {
        seen[0] = true;
        stack.push((0, first.next.targets().into_iter()));
    }
    while let Some((block, targets)) = stack.last_mut() {
        // Taken targets are visited first, so that the fall-through finishes last and directly follows.
        match targets.next() {
            Some(next) if seen[next] => {}
            Some(next) => {
                seen[next] = true;
                stack.push((next, raws[next].next.targets().into_iter()));
            }
            None => {
                post.push(*block);
                stack.pop();
            }
        }
    }
    post.reverse();
    post
}
