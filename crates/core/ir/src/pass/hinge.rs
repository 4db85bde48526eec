//! Dependences that order a read before an access (control and address dependences from the read's last execution on), as opposed to an
//! access that takes place in the same way whatever was read. See `dependence.rs` for control dependence alone.

use crate::{
    BlockId, Func, Inst, MemSpace, Operand, VReg,
    pass::{
        BitSet, Cfg,
        liveness::{inst_reads, inst_writes, reads, term_reads},
        spin::observes_others,
    },
};
use margay_isa::{Effect, Opcode};

/// Blocks beyond which everything counts as depending on everything.
const MOST_BLOCKS: usize = 2000;

/// Whether the instruction at `target` hinges on the values that those at `sources` have yielded when they were executed last: with other
/// values it might not be executed, only after waiting for other threads, or at another address. All are numbers in [`Func::insts`].
///
/// A branch on the values matters if it lies between the two. What lies behind the next execution of a source hinges on what that one
/// yields.
pub fn hinges(func: &Func, sources: &[u32], target: u32) -> bool {
    if func.blocks.len() > MOST_BLOCKS {
        return true;
    }
    let cfg = Cfg::new(func, |_, _| false);
    let block_of = |i: u32| func.blocks.iter().position(|b| b.insts.range().contains(&(i as usize)));
    let Some(to) = block_of(target) else { return true };
    let from: Vec<usize> = sources.iter().filter_map(|s| block_of(*s)).collect();
    let mut paths = Paths { func, cfg: &cfg, from: &from, to, target, sources, waits: BitSet::new(func.blocks.len()) };
    paths.find_waits();
    let mut values = Values { regs: BitSet::new(func.regs.len()), memory: false };
    let mut apart = BitSet::new(func.blocks.len());
    loop {
        values.follow(func, sources, &apart);
        let mut more = false;
        for b in paths.between() {
            let mut depends = false;
            term_reads(func, &func.blocks[b].term, &mut |r| depends |= values.regs.has(r.0));
            if !depends {
                continue;
            }
            let sides: Vec<BitSet> = cfg.succs[b].iter().map(|s| paths.reach(s.0 as usize, false)).collect();
            if cfg.succs[b].iter().any(|s| !paths.gets_there(s.0 as usize)) {
                return true;
            }
            // What only one side executes may write other values.
            for c in 0..func.blocks.len() as u32 {
                if sides.iter().any(|s| s.has(c)) && !sides.iter().all(|s| s.has(c)) && !apart.has(c) {
                    apart.insert(c);
                    more = true;
                }
            }
        }
        if !more {
            break;
        }
    }
    let mut depends = false;
    address_reads(func, &func.insts[target as usize], &mut |r| depends |= values.regs.has(r.0));
    let strong = observes_others(func, &func.insts[target as usize]);
    depends || !strong && is_selected(func, &values.regs, target)
}

/// Whether what a weak load yields is used only if the values say so: compilers load in advance from variables that always exist, and select
/// afterwards.
fn is_selected(func: &Func, values: &BitSet, target: u32) -> bool {
    let mut loaded = BitSet::new(func.regs.len());
    inst_writes(func, &func.insts[target as usize], &mut |r| loaded.insert(r.0));
    let (mut selected, mut more) = (false, true);
    while std::mem::take(&mut more) {
        for inst in &func.insts {
            let mut reads = false;
            inst_reads(func, inst, &mut |r| reads |= loaded.has(r.0));
            if !reads {
                continue;
            }
            let by_value = |p: VReg| values.has(p.0) && !loaded.has(p.0);
            let variant = func.variant(inst);
            let selects = variant.op == Opcode::Selp
                && matches!(func.operands(inst.srcs).last(), Some(Operand::Reg(p) | Operand::Not(p)) if by_value(*p));
            if selects || inst.guard.is_some_and(|(p, _)| by_value(p)) {
                selected = true;
                continue;
            }
            if variant.op.row().effect != Effect::Pure {
                return false;
            }
            inst_writes(func, inst, &mut |r| {
                more |= !loaded.has(r.0);
                loaded.insert(r.0);
            });
        }
    }
    let mut used = false;
    func.blocks.iter().for_each(|block| term_reads(func, &block.term, &mut |r| used |= loaded.has(r.0)));
    selected && !used
}

/// The registers that decide whether and where an instruction accesses memory: not what it stores.
fn address_reads(func: &Func, inst: &Inst, f: &mut impl FnMut(VReg)) {
    inst.guard.iter().for_each(|(p, _)| f(*p));
    if func.variant(inst).op.row().effect == Effect::Call {
        return inst_reads(func, inst, f);
    }
    let addresses = func.operands(inst.srcs).iter().filter(|o| matches!(o, Operand::Mem(..)));
    addresses.for_each(|o| reads(o, f));
}

/// Ways from the sources to the target that execute no source again.
struct Paths<'a> {
    func: &'a Func,
    cfg: &'a Cfg,
    from: &'a [usize],
    to: usize,
    target: u32,
    sources: &'a [u32],
    /// Blocks in which a thread may wait for others.
    waits: BitSet,
}

impl Paths<'_> {
    /// Blocks that call or synchronize, and those of loops that poll memory.
    fn find_waits(&mut self) {
        for b in 0..self.func.blocks.len() {
            let ops = || self.func.insts(&self.func.blocks[b]).iter().map(|i| self.func.variant(i).op);
            let stops = |op: Opcode| {
                matches!(op.row().effect, Effect::Call | Effect::Warp)
                    || matches!(op, Opcode::Mbarrier | Opcode::Griddepcontrol)
            };
            let polls = self.func.insts(&self.func.blocks[b]).iter().any(|i| observes_others(self.func, i));
            if ops().any(stops) {
                self.waits.insert(b as u32);
            }
            if polls || ops().any(|op| op == Opcode::Atom) {
                let behind = reached(&self.cfg.succs, b);
                let before = reached(&self.cfg.preds, b);
                behind.iter().filter(|c| before.has(*c)).for_each(|c| self.waits.insert(c));
            }
        }
    }

    /// The blocks that may be executed from the start of a block on until a source is; without waiting, if that is asked for.
    fn reach(&self, start: usize, freely: bool) -> BitSet {
        let mut seen = BitSet::new(self.func.blocks.len());
        let mut next = vec![start];
        while let Some(b) = next.pop() {
            // The target may come before a source in its block.
            let source = self.from.contains(&b);
            if seen.has(b as u32) || source && !(b == self.to && self.target_comes_first()) {
                continue;
            }
            if freely && self.waits.has(b as u32) && b != self.to {
                continue;
            }
            seen.insert(b as u32);
            if !source {
                next.extend(self.cfg.succs[b].iter().map(|s| s.0 as usize));
            }
        }
        seen
    }

    /// Whether the target precedes all sources of its block.
    fn target_comes_first(&self) -> bool {
        let range = self.func.blocks[self.to].insts.range();
        self.sources.iter().filter(|s| range.contains(&(**s as usize))).all(|s| *s > self.target)
    }

    /// Whether a thread at the start of a block may get to the target without waiting and without executing a source again.
    fn gets_there(&self, start: usize) -> bool {
        self.reach(start, true).has(self.to as u32)
    }

    /// The blocks at whose end a thread has passed a source, and may still come to the target.
    fn between(&self) -> Vec<usize> {
        let mut after = BitSet::new(self.func.blocks.len());
        for b in self.from {
            after.insert(*b as u32);
            for s in &self.cfg.succs[*b] {
                after.union(&self.reach(s.0 as usize, false));
            }
        }
        // In the block of a source, what follows it leads straight to the target.
        let straight = self.from.contains(&self.to) && !self.target_comes_first();
        let leads = |b: &usize| {
            !straight && self.cfg.succs[*b].iter().any(|s| self.reach(s.0 as usize, false).has(self.to as u32))
        };
        after.iter().map(|b| b as usize).filter(leads).collect()
    }
}

/// The blocks that the edges from a block lead to.
fn reached(edges: &[Vec<BlockId>], b: usize) -> BitSet {
    let mut seen = BitSet::new(edges.len());
    let mut next: Vec<BlockId> = edges[b].clone();
    while let Some(c) = next.pop() {
        if !seen.has(c.0) {
            seen.insert(c.0);
            next.extend(&edges[c.0 as usize]);
        }
    }
    seen
}

/// What is computed from the sources' values.
struct Values {
    regs: BitSet,
    /// Something in shared or local memory is.
    memory: bool,
}

impl Values {
    /// Follows them through the function; blocks in `apart` are executed depending on them.
    fn follow(&mut self, func: &Func, sources: &[u32], apart: &BitSet) {
        let mut more = true;
        while std::mem::take(&mut more) {
            for (b, block) in func.blocks.iter().enumerate() {
                for i in block.insts.range() {
                    let inst = &func.insts[i];
                    let variant = func.variant(inst);
                    let calls = variant.op.row().effect == Effect::Call;
                    let near = matches!(inst.space, Some(MemSpace::Shared | MemSpace::SharedCluster | MemSpace::Local));
                    let mut depends =
                        sources.contains(&(i as u32)) || apart.has(b as u32) || self.memory && (calls || near);
                    inst_reads(func, inst, &mut |r| depends |= self.regs.has(r.0));
                    if !depends {
                        continue;
                    }
                    inst_writes(func, inst, &mut |r| {
                        more |= !self.regs.has(r.0);
                        self.regs.insert(r.0);
                    });
                    if calls || variant.op != Opcode::Ld && near {
                        more |= !std::mem::replace(&mut self.memory, true);
                    }
                }
            }
        }
    }
}
