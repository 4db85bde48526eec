//! Loops that retry an update: `do { old = word; } while (atomicCAS(&word, old, f(old)) != old);`

use super::body::Body;
use crate::{
    BlockId, Func, Operand, Terminator, VReg,
    pass::{Cfg, Loop, cfg::successors, liveness::defines},
};
use margay_isa::{Mod, Opcode};

/// Whether a loop tries an update again that another thread's has overtaken: it is repeated only if an `atom.cas` of this iteration has found
/// another value than the word held when this thread looked last. Some thread's update succeeds each time, so none waits for another.
pub(super) fn retries(func: &Func, cfg: &Cfg, l: &Loop) -> bool {
    let blocks = cfg.blocks(l);
    let mut latches =
        blocks.iter().filter(|b| successors(&func.blocks[b.0 as usize].term).contains(&blocks[0])).peekable();
    latches.peek().is_some() && latches.all(|b| repeats_if_overtaken(func, cfg, *b, l))
}

/// Whether a block branches back to the header of a loop only if its own `atom.cas` has found another value than it expected, which is what
/// the word held before.
fn repeats_if_overtaken(func: &Func, cfg: &Cfg, b: BlockId, l: &Loop) -> bool {
    let header = cfg.blocks(l)[0];
    let block = &func.blocks[b.0 as usize];
    let Terminator::Branch { pred, negated, then, other, .. } = block.term else { return false };
    let insts = func.insts(block);
    let last_write = |r: VReg| insts.iter().rposition(|i| defines(func, i, r));
    let Some(test) = last_write(pred).filter(|_| then != other) else { return false };
    let variant = func.variant(&insts[test]);
    let unequal = variant.has(Mod::Ne);
    let compares = variant.op == Opcode::Setp && (unequal || variant.has(Mod::Eq)) && !variant.t().is_float();
    let repeats = (then == header) != negated;
    let ([Operand::Reg(x), Operand::Reg(y)], None) = (func.operands(insts[test].srcs), insts[test].guard) else {
        return false;
    };
    compares
        && repeats == unequal
        && insts[..test].iter().enumerate().any(|(at, inst)| {
            let v = func.variant(inst);
            let cas = v.op == Opcode::Atom && v.has(Mod::Cas) && inst.guard.is_none();
            let (dsts, srcs) = (func.operands(inst.dsts), func.operands(inst.srcs));
            let ([Operand::Reg(found)], [word, Operand::Reg(expected), _]) = (dsts, srcs) else { return false };
            let pair = [(x, y), (y, x)].contains(&(found, expected));
            let kept = |r: VReg| !insts[at + 1..test].iter().any(|i| defines(func, i, r));
            cas && pair && kept(*found) && kept(*expected) && looks_again(func, cfg, (*word, *expected, *found), l)
        })
}

/// Whether each iteration of a loop loads the expected value from the word that `atom.cas` updates, or takes what that has found.
fn looks_again(func: &Func, cfg: &Cfg, (word, expected, found): (Operand, VReg, VReg), l: &Loop) -> bool {
    let body = Body::new(func, cfg, l);
    let renews = |b: BlockId| func.insts(&func.blocks[b.0 as usize]).iter().any(|i| defines(func, i, expected));
    body.keeps(&word)
        && !cfg.repeats_without(l, |b, _| renews(b))
        && body.insts().filter(|i| defines(func, i, expected)).all(|i| {
            let from = func.operands(i.srcs).first();
            i.guard.is_none()
                && match func.variant(i).op {
                    Opcode::Mov => from == Some(&Operand::Reg(found)),
                    Opcode::Ld => from == Some(&word),
                    _ => false,
                }
        })
}
