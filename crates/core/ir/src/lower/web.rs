//! Registers that a body uses for several unrelated values become several registers: one for each web, a maximal set of definitions and
//! uses that reach each other (Muchnick, Advanced Compiler Design and Implementation, 1997, section 16.3.3).
//!
//! Compilers write PTX in which most registers have one definition; people and macros use one `%p` for every branch. Facts about a single
//! value (uniform, constant, bounded) would be lost if several values shared a register.

use crate::{
    Arg, Callee, FormalHome, Func, Inst, MemBase, Operand, Terminator, VReg,
    pass::{
        BitSet,
        cfg::successors,
        liveness::{inst_reads, inst_writes, term_reads},
    },
};
use margay_isa::Opcode;

/// Renames registers so that each has one web. A register that is read before it is written keeps its number there.
pub(super) fn split(func: &mut Func) {
    // What asynchronous products may not touch are the registers of the text.
    if func.variants.iter().any(|v| v.op == Opcode::Wgmma) {
        return;
    }
    let candidates = Candidates::new(func);
    if !candidates.registers.is_empty() {
        Webs::new(func, candidates).rename(func);
    }
}

/// The registers with several definitions, numbered.
struct Candidates {
    registers: Vec<VReg>,
    /// By register: its number, or [`NONE`].
    numbers: Vec<u32>,
}

const NONE: u32 = u32::MAX;

impl Candidates {
    fn new(func: &Func) -> Candidates {
        let mut definitions = vec![0u32; func.regs.len()];
        func.insts.iter().for_each(|i| inst_writes(func, i, &mut |r| definitions[r.0 as usize] += 1));
        // Callers know the homes of formals.
        for home in func.params.iter().chain(&func.rets) {
            if let FormalHome::Regs(regs) = home {
                regs.iter().for_each(|r| definitions[r.0 as usize] = 0);
            }
        }
        let mut numbers = vec![NONE; func.regs.len()];
        let mut registers = Vec::new();
        for (r, _) in definitions.iter().enumerate().filter(|(_, n)| **n > 1) {
            numbers[r] = registers.len() as u32;
            registers.push(VReg(r as u32));
        }
        Candidates { registers, numbers }
    }

    fn number(&self, r: VReg) -> Option<u32> {
        self.numbers.get(r.0 as usize).copied().filter(|n| *n != NONE)
    }

    /// By block: the candidates that are live where it begins. A guarded write does not end a life.
    fn live(&self, func: &Func) -> Vec<BitSet> {
        let mut live = vec![BitSet::new(self.registers.len()); func.blocks.len()];
        let mut changed = true;
        while changed {
            changed = false;
            for (b, block) in func.blocks.iter().enumerate().rev() {
                let mut now = BitSet::new(self.registers.len());
                for to in successors(&block.term) {
                    now.union(&live[to.0 as usize]);
                }
                let read = |now: &mut BitSet, r: VReg| self.number(r).into_iter().for_each(|n| now.insert(n));
                term_reads(func, &block.term, &mut |r| read(&mut now, r));
                for inst in func.insts(block).iter().rev() {
                    inst_writes(func, inst, &mut |r| match (self.number(r), inst.guard) {
                        (Some(n), None) => now.remove(n),
                        (Some(n), Some(_)) => now.insert(n),
                        (None, _) => {}
                    });
                    inst_reads(func, inst, &mut |r| read(&mut now, r));
                }
                changed |= live[b].union(&now);
            }
        }
        live
    }
}

/// Sets of values. Values are numbered in the order of [`Webs::begin`] and [`Webs::write`]: those that blocks find, then definitions.
struct Webs {
    candidates: Candidates,
    /// By value: another one of its set, or itself.
    parents: Vec<u32>,
    /// By block: candidates that are live where it begins, and the first of their values.
    begins: Vec<(Vec<u32>, u32)>,
    /// By candidate: its value at the place that a walk has come to.
    now: Vec<u32>,
    next: u32,
}

impl Webs {
    fn new(func: &Func, candidates: Candidates) -> Webs {
        let mut count = 0;
        let mut begins = Vec::new();
        for live in candidates.live(func) {
            let live: Vec<u32> = live.iter().collect();
            let first = count;
            count += live.len() as u32;
            begins.push((live, first));
        }
        let now = vec![NONE; candidates.registers.len()];
        let mut webs = Webs { candidates, parents: (0..count).collect(), begins, now, next: count };
        for (b, block) in func.blocks.iter().enumerate() {
            webs.begin(b);
            for inst in func.insts(block) {
                let first = webs.next;
                inst_writes(func, inst, &mut |r| webs.write(r, inst, first));
            }
            webs.parents.extend(webs.parents.len() as u32..webs.next);
            for to in successors(&block.term) {
                let (live, first) = &webs.begins[to.0 as usize];
                for (n, value) in live.iter().zip(*first..) {
                    let (a, b) = (find(&mut webs.parents, webs.now[*n as usize]), find(&mut webs.parents, value));
                    webs.parents[a as usize] = b;
                }
            }
        }
        webs.next = count;
        webs
    }

    /// A walk begins a block.
    fn begin(&mut self, block: usize) {
        let (live, first) = &self.begins[block];
        for (n, value) in live.iter().zip(*first..) {
            self.now[*n as usize] = value;
        }
    }

    /// Visits a write by an instruction whose first value is `first`.
    fn write(&mut self, r: VReg, inst: &Inst, first: u32) {
        let Some(n) = self.candidates.number(r) else { return };
        let now = &mut self.now[n as usize];
        // Where the guard is false, the value stays; of a register that an instruction writes twice, the values are one.
        if inst.guard.is_none() && !(first..self.next).contains(now) {
            *now = self.next;
            self.next += 1;
        }
    }

    /// Renames the registers of a function.
    fn rename(self, func: &mut Func) {
        let mut renaming = Renaming::new(self, func);
        for b in 0..func.blocks.len() {
            renaming.webs.begin(b);
            for i in func.blocks[b].insts.range() {
                renaming.reads(func, i);
                let inst = func.insts[i];
                let first = renaming.webs.next;
                inst_writes(func, &inst, &mut |r| renaming.webs.write(r, &inst, first));
                renaming.writes(func, &inst);
            }
            match &mut func.blocks[b].term {
                Terminator::Branch { pred, .. } => renaming.register(pred),
                Terminator::Switch { index, .. } => renaming.operand(index),
                Terminator::Jump(_) | Terminator::Ret | Terminator::Exit => {}
            }
        }
        for r in renaming.added {
            func.regs.push(func.regs[r.0 as usize]);
            func.reg_names.push(func.reg_names[r.0 as usize].clone());
        }
    }
}

/// A walk over a function that gives each web its register.
struct Renaming {
    webs: Webs,
    /// By value that stands for its set: the register.
    registers: Vec<Option<VReg>>,
    /// By candidate: some web has its number.
    kept: Vec<bool>,
    /// The number of registers so far, and what each new one stands for in the text.
    count: u32,
    added: Vec<VReg>,
}

impl Renaming {
    fn new(mut webs: Webs, func: &Func) -> Renaming {
        let mut registers = vec![None; webs.parents.len()];
        let mut kept = vec![false; webs.candidates.registers.len()];
        let (live, first) = &webs.begins[0];
        for (n, value) in live.iter().zip(*first..) {
            registers[find(&mut webs.parents, value) as usize] = Some(webs.candidates.registers[*n as usize]);
            kept[*n as usize] = true;
        }
        Renaming { webs, registers, kept, count: func.regs.len() as u32, added: Vec::new() }
    }

    /// Renames the registers that an instruction reads.
    fn reads(&mut self, func: &mut Func, i: usize) {
        let inst = &mut func.insts[i];
        if let Some((p, _)) = &mut inst.guard {
            self.register(p);
        }
        for operand in &mut func.operands[inst.srcs.range()] {
            self.operand(operand);
            if let Operand::Call(site) = operand {
                let call = &mut func.calls[*site as usize];
                self.values(&mut call.args);
                if let Callee::Indirect(r, _) = &mut call.callee {
                    self.register(r);
                }
            }
        }
    }

    /// Renames the registers that an instruction writes, when the walk reaches them.
    fn writes(&mut self, func: &mut Func, inst: &Inst) {
        func.operands[inst.dsts.range()].iter_mut().for_each(|o| self.operand(o));
        for operand in &func.operands[inst.srcs.range()] {
            if let Operand::Call(site) = operand {
                self.values(&mut func.calls[*site as usize].rets);
            }
        }
    }

    fn values(&mut self, args: &mut [Arg]) {
        for arg in args {
            if let Arg::Values(values) = arg {
                values.iter_mut().for_each(|o| self.operand(o));
            }
        }
    }

    fn operand(&mut self, operand: &mut Operand) {
        if let Operand::Reg(r) | Operand::Not(r) | Operand::Mem(MemBase::Reg(r), _) = operand {
            self.register(r);
        }
    }

    /// Renames a register by the web that it belongs to at the place of the walk.
    fn register(&mut self, r: &mut VReg) {
        let Some(n) = self.webs.candidates.number(*r) else { return };
        let set = find(&mut self.webs.parents, self.webs.now[n as usize]);
        *r = *self.registers[set as usize].get_or_insert_with(|| {
            if !std::mem::replace(&mut self.kept[n as usize], true) {
                return *r;
            }
            self.added.push(*r);
            VReg(self.count + self.added.len() as u32 - 1)
        });
    }
}

/// The value that stands for a set.
fn find(parents: &mut [u32], mut value: u32) -> u32 {
    while parents[value as usize] != value {
        let parent = parents[value as usize];
        parents[value as usize] = parents[parent as usize];
        value = parents[value as usize];
    }
    value
}
