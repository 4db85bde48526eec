//! Loops that claim a free word, such as an insertion into a hash table with open addressing:
//! `do { found = atomicCAS(&table[at], FREE, key); at = next(at); } while (found != FREE && found != key);`
//!
//! Such a loop continues only after it has found a word that is not free. If the launch never makes a word free again, the loop waits for no other
//! thread: these can only take words that it has yet to read, and if one of them writes the key that ends the loop, the free word would have
//! ended it there as well. So a thread that runs alone leaves the loop at least as soon. In a full table it never leaves it, on a GPU either.
//!
//! Any other write of the kernel may make words free again (a lock has the same loop), except a write
//! * that expects a free word as well, and thus takes it;
//! * to another state space;
//! * next to the words, such as to the value that belongs to a key: at an address that differs from the loop's by a multiple of the words'
//!   distance plus a constant that keeps the two apart.

use crate::{
    AtomicOp, BlockId, Func, Inst, MemBase, MemSpace, Operand, VReg,
    pass::{Cfg, Loop, Termination, liveness::position_of_only_definition},
};
use margay_check::FuncKind;
use margay_isa::{Effect, Mod, Opcode, Type};

/// Definitions through which an address is traced.
const DEPTH: u32 = 8;

/// A value that is the same whenever a thread of the launch reads it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fixed {
    Number(u64),
    /// The kernel parameter at an offset.
    Param(i64),
}

/// An address: a parameter, a number, and a multiple of two to `align`.
#[derive(Clone, Copy, Debug)]
struct Place {
    param: i64,
    offset: i64,
    align: u32,
}

/// The word that a loop claims.
struct Claim<'a> {
    func: &'a Func,
    /// Index of its `atom.cas`, which stands in this block.
    cas: usize,
    header: BlockId,
    ty: Type,
    found: VReg,
    free: Fixed,
}

/// Whether a loop claims a free word, and nothing in the kernel makes words free.
pub(super) fn claims_free_words(func: &Func, cfg: &Cfg, l: &Loop, termination: &Termination<'_>) -> bool {
    Claim::of(func, cfg, l).is_some_and(|claim| claim.repeats_if_taken(cfg, l) && claim.stays_taken(termination))
}

/// The only instruction that defines a register, if it is executed whenever its block is.
fn definition(func: &Func, r: VReg) -> Option<(usize, &Inst)> {
    let at = position_of_only_definition(func, r)?;
    Some((at, &func.insts[at])).filter(|(_, inst)| inst.guard.is_none())
}

/// The value of an operand of `bits` bits, if it is the same in all threads at all times.
fn fixed(func: &Func, o: &Operand, bits: u32) -> Option<Fixed> {
    let number = |v: u64| Fixed::Number(v & (u64::MAX >> (64 - bits)));
    match o {
        Operand::Imm(v) => Some(number(*v)),
        Operand::Reg(r) => {
            let (_, inst) = definition(func, *r)?;
            let v = func.variant(inst);
            match (v.op, func.operands(inst.srcs)) {
                (Opcode::Mov, [Operand::Imm(n)]) => Some(number(*n)),
                (Opcode::Ld, [Operand::Mem(MemBase::KernelParam, at)]) if v.vec() == 1 && v.t().bits() == bits => {
                    Some(Fixed::Param(*at))
                }
                _ => None,
            }
        }
        _ => None,
    }
}

impl<'a> Claim<'a> {
    /// The claim of a loop that begins with an `atom.cas` in every iteration, and accesses no other memory that may change.
    fn of(func: &'a Func, cfg: &Cfg, l: &Loop) -> Option<Claim<'a>> {
        // Device functions may be called by others, which write where this one cannot see.
        if func.kind != FuncKind::Kernel || l.irreducible {
            return None;
        }
        let header = cfg.order[l.first as usize];
        let effect = |i: usize| func.variant(&func.insts[i]).op.row().effect;
        let of_loop = cfg.blocks(l).iter();
        let mut acts = of_loop.flat_map(|b| func.blocks[b.0 as usize].insts.range()).filter(|i| {
            let inst = &func.insts[*i];
            let constant = matches!(inst.space, Some(MemSpace::KernelParam | MemSpace::Const));
            effect(*i) != Effect::Pure && !(func.variant(inst).op == Opcode::Ld && constant)
        });
        let (cas, None) = (acts.next()?, acts.next()) else { return None };
        let (inst, variant) = (&func.insts[cas], func.variant(&func.insts[cas]));
        let in_header = func.blocks[header.0 as usize].insts.range().contains(&cas);
        let ([Operand::Reg(found)], [_, free, _]) = (func.operands(inst.dsts), func.operands(inst.srcs)) else {
            return None;
        };
        let (ty, found) = (variant.t(), *found);
        let plain = variant.op == Opcode::Atom && variant.has(Mod::Cas) && variant.vec() == 1 && ty.bits() <= 64;
        if !plain || !in_header || definition(func, found)?.0 != cas {
            return None;
        }
        let free = fixed(func, free, ty.bits())?;
        Some(Claim { func, cas, header, ty, found, free })
    }

    /// Whether the loop is repeated only if the word was not free.
    fn repeats_if_taken(&self, cfg: &Cfg, l: &Loop) -> bool {
        !cfg.repeats_without(l, |b, to| {
            let condition = self.func.blocks[b.0 as usize].term.condition(to);
            condition.is_some_and(|(p, value)| self.means_taken(b, &Operand::Reg(p), value, DEPTH))
        })
    }

    /// Whether a predicate with a value at the end of a block means that the word found in this iteration was not free.
    fn means_taken(&self, b: BlockId, predicate: &Operand, holds: bool, depth: u32) -> bool {
        let func = self.func;
        let r = match predicate {
            Operand::Reg(r) => *r,
            Operand::Not(r) => return self.means_taken(b, &Operand::Reg(*r), !holds, depth),
            _ => return false,
        };
        let Some((at, inst)) = definition(func, r).filter(|_| depth > 0) else { return false };
        // Executed in this iteration, after `atom.cas`.
        let within = |b: BlockId| func.blocks[b.0 as usize].insts.range().contains(&at);
        if !(within(self.header) && at > self.cas || b != self.header && within(b)) {
            return false;
        }
        let variant = func.variant(inst);
        let (dsts, srcs) = (func.operands(inst.dsts), func.operands(inst.srcs));
        let means = |o: &Operand| self.means_taken(b, o, holds, depth - 1);
        match (variant.op, srcs) {
            (Opcode::Setp, [x, y]) if dsts.len() == 1 => {
                let differ = variant.has(Mod::Eq) != holds && variant.has(Mod::Ne) == holds;
                let is_found = |o: &Operand| *o == Operand::Reg(self.found);
                let is_free = |o: &Operand| fixed(func, o, self.ty.bits()) == Some(self.free);
                let same_bits = !variant.t().is_float() && variant.t().bits() == self.ty.bits();
                differ && same_bits && (is_found(x) && is_free(y) || is_found(y) && is_free(x))
            }
            (Opcode::And | Opcode::Or, [x, y]) if variant.t() == Type::Pred => {
                let one_suffices = (variant.op == Opcode::And) == holds;
                if one_suffices { means(x) || means(y) } else { means(x) && means(y) }
            }
            (Opcode::Not, [x]) if variant.t() == Type::Pred => self.means_taken(b, x, !holds, depth - 1),
            _ => false,
        }
    }

    /// Whether no other instruction of the kernel makes a word free.
    fn stays_taken(&self, termination: &Termination<'_>) -> bool {
        let own = self.place(self.cas, termination);
        (0..self.func.insts.len()).filter(|i| *i != self.cas).all(|i| {
            let inst = &self.func.insts[i];
            let variant = self.func.variant(inst);
            let in_memory = |o: &Operand| matches!(o, Operand::Mem(..));
            match variant.op.row().effect {
                Effect::Pure => return true,
                // Matrices are stored by warps.
                Effect::Warp | Effect::Control | Effect::Machine => {
                    return !self.func.operands(inst.srcs).iter().any(in_memory);
                }
                Effect::Call => return false,
                Effect::Memory => {}
            }
            use Opcode::{Atom, Fence, Ld, Ldu, Membar, Prefetch, Prefetchu, Red, St};
            match variant.op {
                Ld | Ldu | Fence | Membar | Prefetch | Prefetchu => return true,
                Atom | Red | St => {}
                _ => return false,
            }
            let elsewhere = match self.func.insts[self.cas].space {
                Some(MemSpace::Global) => matches!(inst.space, Some(MemSpace::Shared | MemSpace::Local)),
                Some(MemSpace::Shared) => matches!(inst.space, Some(MemSpace::Global | MemSpace::Local)),
                _ => false,
            };
            elsewhere || self.takes_too(inst) || {
                let (bytes, others) = (self.ty.bytes(), variant.t().bytes() * variant.vec());
                own.zip(self.place(i, termination)).is_some_and(|(a, b)| apart((a, bytes), (b, others)))
            }
        })
    }

    /// Whether an instruction takes free words of the same size.
    fn takes_too(&self, inst: &Inst) -> bool {
        let variant = self.func.variant(inst);
        AtomicOp::of(variant) == Some(AtomicOp::Cas)
            && variant.t().bits() == self.ty.bits()
            && self.func.operands(inst.srcs).get(1).and_then(|o| fixed(self.func, o, self.ty.bits())) == Some(self.free)
    }

    /// Where an instruction accesses memory.
    fn place(&self, inst: usize, termination: &Termination<'_>) -> Option<Place> {
        match self.func.operands(self.func.insts[inst].srcs).first()? {
            Operand::Mem(MemBase::Reg(r), offset) => {
                let place = self.address(&Operand::Reg(*r), termination, DEPTH)?;
                Some(Place { offset: place.offset.checked_add(*offset)?, ..place })
            }
            _ => None,
        }
    }

    fn address(&self, o: &Operand, termination: &Termination<'_>, depth: u32) -> Option<Place> {
        if let Some(Fixed::Param(param)) = fixed(self.func, o, 64) {
            return Some(Place { param, offset: 0, align: 63 });
        }
        let Operand::Reg(r) = o else { return None };
        let (_, inst) = definition(self.func, *r).filter(|_| depth > 0)?;
        let variant = self.func.variant(inst);
        let at = |o: &Operand| self.address(o, termination, depth - 1);
        let plain = !variant.t().is_float() && !variant.has(Mod::Sat) && !variant.has(Mod::Cc);
        match (variant.op, self.func.operands(inst.srcs)) {
            (Opcode::Mov, [a]) => at(a),
            (Opcode::Cvta, [a]) if variant.has(Mod::Global) => at(a),
            (Opcode::Add, [a, b]) if plain && variant.t().bits() == 64 => {
                let (base, more) = at(a).map(|p| (p, b)).or_else(|| at(b).map(|p| (p, a)))?;
                match more {
                    Operand::Imm(n) => Some(Place { offset: base.offset.checked_add(*n as i64)?, ..base }),
                    _ => Some(Place { align: base.align.min(termination.align_of(more)), ..base }),
                }
            }
            (Opcode::Mad, [a, b, c]) if plain && variant.has(Mod::Wide) && variant.t().bits() == 32 => {
                let (base, factors) = (at(c)?, termination.align_of(a) + termination.align_of(b));
                Some(Place { align: base.align.min(factors), ..base })
            }
            _ => None,
        }
    }
}

/// Whether accesses of these sizes, in bytes, never overlap.
fn apart((a, a_bytes): (Place, u32), (b, b_bytes): (Place, u32)) -> bool {
    let step = 1i64 << a.align.min(b.align).min(20);
    let [at, other] = [a, b].map(|p| p.offset.rem_euclid(step));
    let (end, other_end) = (at + i64::from(a_bytes), other + i64::from(b_bytes));
    a.param == b.param && end <= step && other_end <= step && (end <= other || other_end <= at)
}
