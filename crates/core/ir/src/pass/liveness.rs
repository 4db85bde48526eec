//! Live registers at the beginning of blocks: a backward data-flow analysis over bit sets.

use crate::{Arg, Callee, FormalHome, Func, Inst, MemBase, Operand, Terminator, VReg, pass::Cfg};
use margay_isa::Type;

/// A set of small numbers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BitSet(Vec<u64>);

impl BitSet {
    /// The empty set over `0..n`.
    pub fn new(n: usize) -> BitSet {
        BitSet(vec![0; n.div_ceil(64)])
    }

    /// Whether `i` is in it.
    pub fn has(&self, i: u32) -> bool {
        self.0[i as usize / 64] >> (i % 64) & 1 == 1
    }

    /// Adds `i`.
    pub fn insert(&mut self, i: u32) {
        self.0[i as usize / 64] |= 1 << (i % 64);
    }

    /// Takes `i` out.
    pub fn remove(&mut self, i: u32) {
        self.0[i as usize / 64] &= !(1 << (i % 64));
    }

    /// Adds all of `other`; true if that changed anything.
    pub fn union(&mut self, other: &BitSet) -> bool {
        let mut changed = false;
        for (a, b) in self.0.iter_mut().zip(&other.0) {
            changed |= *b & !*a != 0;
            *a |= b;
        }
        changed
    }

    /// Whether all of `other` are in it.
    pub fn contains(&self, other: &BitSet) -> bool {
        self.0.iter().zip(&other.0).all(|(a, b)| *b & !*a == 0)
    }

    /// The members in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().enumerate().filter(|(_, bits)| **bits != 0).flat_map(|(w, bits)| {
            let mut left = *bits;
            std::iter::from_fn(move || {
                let lowest = left.trailing_zeros();
                left &= left.wrapping_sub(1);
                (lowest < 64).then_some(w as u32 * 64 + lowest)
            })
        })
    }
}

/// Registers live where blocks begin.
#[derive(Clone, Debug)]
pub struct Liveness {
    /// By block.
    pub live_in: Vec<BitSet>,
}

/// Registers that an operand reads.
pub fn reads(operand: &Operand, f: &mut impl FnMut(VReg)) {
    match operand {
        Operand::Reg(r) | Operand::Not(r) | Operand::Mem(MemBase::Reg(r), _) => f(*r),
        _ => {}
    }
}

/// Registers that an instruction reads, those of its call site and its guard included.
pub fn inst_reads(func: &Func, inst: &Inst, f: &mut impl FnMut(VReg)) {
    if let Some((p, _)) = inst.guard {
        f(p);
    }
    // The accumulator is added to.
    if func.variant(inst).op == margay_isa::Opcode::Wgmma {
        func.operands(inst.dsts).iter().for_each(|d| reads(d, f));
    }
    for operand in func.operands(inst.srcs) {
        reads(operand, f);
        if let Operand::Call(site) = operand {
            let site = &func.calls[*site as usize];
            for arg in &site.args {
                if let Arg::Values(values) = arg {
                    values.iter().for_each(|v| reads(v, f));
                }
            }
            if let Callee::Indirect(r, _) = &site.callee {
                f(*r);
            }
        }
    }
}

/// Registers that an instruction writes, those of its call site included.
pub fn inst_writes(func: &Func, inst: &Inst, f: &mut impl FnMut(VReg)) {
    let mut write = |o: &Operand| {
        if let Operand::Reg(r) = o {
            f(*r);
        }
    };
    func.operands(inst.dsts).iter().for_each(&mut write);
    for operand in func.operands(inst.srcs) {
        if let Operand::Call(site) = operand {
            for ret in &func.calls[*site as usize].rets {
                if let Arg::Values(values) = ret {
                    values.iter().for_each(&mut write);
                }
            }
        }
    }
}

/// Whether an instruction writes a register.
pub fn defines(func: &Func, inst: &Inst, r: VReg) -> bool {
    let mut found = false;
    inst_writes(func, inst, &mut |w| found |= w == r);
    found
}

/// The instruction that writes a register, if there is just one.
pub fn only_definition(func: &Func, r: VReg) -> Option<&Inst> {
    position_of_only_definition(func, r).map(|at| &func.insts[at])
}

/// The index of that instruction.
pub fn position_of_only_definition(func: &Func, r: VReg) -> Option<usize> {
    let mut defining = (0..func.insts.len()).filter(|at| defines(func, &func.insts[*at], r));
    defining.next().filter(|_| defining.next().is_none())
}

/// By register: the index of the instruction that writes it, if there is just one. Parameters in registers are written by the caller.
pub fn only_definitions(func: &Func) -> Vec<Option<u32>> {
    let (mut times, mut definition) = (vec![0u32; func.regs.len()], vec![None; func.regs.len()]);
    for home in &func.params {
        if let FormalHome::Regs(regs) = home {
            regs.iter().for_each(|r| times[r.0 as usize] += 1);
        }
    }
    for (i, inst) in func.insts.iter().enumerate() {
        inst_writes(func, inst, &mut |r| {
            times[r.0 as usize] += 1;
            definition[r.0 as usize] = Some(i as u32);
        });
    }
    definition.iter_mut().zip(times).filter(|(_, n)| *n != 1).for_each(|(d, _)| *d = None);
    definition
}

/// Registers that a terminator reads; `ret` reads the registers of `.reg` returns.
pub fn term_reads(func: &Func, term: &Terminator, f: &mut impl FnMut(VReg)) {
    match term {
        Terminator::Branch { pred, .. } => f(*pred),
        Terminator::Switch { index, .. } => reads(index, f),
        Terminator::Ret => {
            for home in &func.rets {
                if let crate::FormalHome::Regs(regs) = home {
                    regs.iter().for_each(|r| f(*r));
                }
            }
        }
        Terminator::Jump(_) | Terminator::Exit => {}
    }
}

/// Registers that may be read before they are written, without the formals, which the caller writes.
pub fn read_early(func: &Func, cfg: &Cfg) -> BitSet {
    let live = Liveness::new(func, cfg).live_in;
    let mut early = live.into_iter().next().unwrap_or_else(|| BitSet::new(func.regs.len()));
    for home in &func.params {
        if let FormalHome::Regs(regs) = home {
            regs.iter().for_each(|r| early.remove(r.0));
        }
    }
    early
}

impl Liveness {
    /// Analyses a function. A guarded write does not end a register's life.
    pub fn new(func: &Func, cfg: &Cfg) -> Liveness {
        let n = func.regs.len();
        let mut live_in = vec![BitSet::new(n); func.blocks.len()];
        let mut changed = true;
        while changed {
            changed = false;
            for b in cfg.order.iter().rev() {
                let mut live = BitSet::new(n);
                for s in crate::pass::cfg::successors(&func.blocks[b.0 as usize].term) {
                    live.union(&live_in[s.0 as usize]);
                }
                Self::block(func, b.0, &mut live);
                changed |= live_in[b.0 as usize].union(&live);
            }
        }
        Liveness { live_in }
    }

    /// Walks a block backwards from what is live at its end.
    fn block(func: &Func, block: u32, live: &mut BitSet) {
        let block = &func.blocks[block as usize];
        term_reads(func, &block.term, &mut |r| live.insert(r.0));
        for inst in func.insts(block).iter().rev() {
            Self::step(func, inst, live);
        }
    }

    /// The 32-bit registers that a function needs if no value is ever kept elsewhere: those of the values that live at once, at the
    /// fullest place. Predicates have registers of their own.
    pub fn pressure(&self, func: &Func) -> u32 {
        let words =
            |r: u32| if func.regs[r as usize] == Type::Pred { 0 } else { func.regs[r as usize].bits().div_ceil(32) };
        let mut most = self.live_in.first().map_or(0, |live| live.iter().map(words).sum());
        for (number, block) in func.blocks.iter().enumerate() {
            let insts = func.insts(block);
            let Some(last) = insts.len().checked_sub(1) else { continue };
            let mut live = self.after(func, number as u32, last);
            let mut now: u32 = live.iter().map(words).sum();
            for inst in insts.iter().rev() {
                // Its destinations have places even if they are never read.
                let mut written = 0;
                inst_writes(func, inst, &mut |r| written += if live.has(r.0) { 0 } else { words(r.0) });
                most = most.max(now + written);
                Self::step(func, inst, &mut live);
                now = live.iter().map(words).sum();
                most = most.max(now);
            }
        }
        most
    }

    /// From what is live after an instruction to what is live before it.
    pub fn step(func: &Func, inst: &Inst, live: &mut BitSet) {
        if inst.guard.is_none() {
            inst_writes(func, inst, &mut |r| live.remove(r.0));
        }
        inst_reads(func, inst, &mut |r| live.insert(r.0));
    }

    /// Registers live right after instruction `index` of a block.
    pub fn after(&self, func: &Func, block: u32, index: usize) -> BitSet {
        let mut live = BitSet::new(func.regs.len());
        let b = &func.blocks[block as usize];
        for s in crate::pass::cfg::successors(&b.term) {
            live.union(&self.live_in[s.0 as usize]);
        }
        term_reads(func, &b.term, &mut |r| live.insert(r.0));
        for inst in func.insts(b)[index + 1..].iter().rev() {
            Self::step(func, inst, &mut live);
        }
        live
    }
}
