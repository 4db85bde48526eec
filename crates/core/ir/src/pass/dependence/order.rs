//! Order by dependence: whether address or control dependences order the last execution of a read before an access. They do not if the
//! access takes place in the same way whatever was read.

use super::Slice;
use crate::{
    BlockId, Func, Inst, Operand, VReg,
    pass::{
        BitSet, Cfg,
        liveness::{inst_reads, inst_writes, reads, term_reads},
        spin::observes_others,
    },
};
use margay_isa::{Effect, Opcode};

/// Functions of more blocks are not analyzed: every access counts as dependent.
const MAX_BLOCKS: usize = 2000;

/// Whether the access at `access` depends on the results of the last executions of the instructions at `sources`: with other results it
/// might not be executed, or only after waiting for other threads, or at another address. All are indices into [`Func::insts`].
///
/// A branch on the results counts if it is executed between source and access. After a source has been executed again, only its new
/// result counts.
pub fn depends_on_reads(func: &Func, sources: &[u32], access: u32) -> bool {
    if func.blocks.len() > MAX_BLOCKS {
        return true;
    }
    let cfg = Cfg::new(func, |_, _| false);
    let block_of = |i: u32| func.blocks.iter().position(|b| b.insts.range().contains(&(i as usize)));
    let Some(to) = block_of(access) else { return true };
    let from: Vec<usize> = sources.iter().filter_map(|s| block_of(*s)).collect();
    let mut paths = Paths { func, cfg: &cfg, from: &from, to, access, sources, waits: BitSet::new(func.blocks.len()) };
    paths.find_waits();
    let between = paths.between();
    let mut slice = Slice::new(func, &cfg, sources);
    let mut more = true;
    while std::mem::take(&mut more) {
        slice.extend();
        for b in between.iter().map(|b| BlockId(*b as u32)) {
            if !slice.has_branch(b) {
                continue;
            }
            let succs = &cfg.succs[b.0 as usize];
            let sides: Vec<BitSet> = succs.iter().map(|s| paths.reach(s.0 as usize, Waiting::Allowed)).collect();
            if succs.iter().any(|s| !paths.reach(s.0 as usize, Waiting::Excluded).has(to as u32)) {
                return true;
            }
            // What only one side executes may write other values.
            for c in 0..func.blocks.len() as u32 {
                if sides.iter().any(|s| s.has(c)) && !sides.iter().all(|s| s.has(c)) && !slice.controlled.has(c) {
                    slice.controlled.insert(c);
                    more = true;
                }
            }
        }
    }
    let inst = &func.insts[access as usize];
    let mut depends = false;
    address_reads(func, inst, &mut |r| depends |= slice.regs.has(r.0));
    depends || !observes_others(func, inst) && is_selected(func, &slice.regs, access)
}

/// Whether the value of a weak load is used only if the slice's values select it: compilers load in advance from variables that always exist,
/// and select afterwards.
fn is_selected(func: &Func, values: &BitSet, access: u32) -> bool {
    let mut loaded = BitSet::new(func.regs.len());
    inst_writes(func, &func.insts[access as usize], &mut |r| loaded.insert(r.0));
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

/// The registers that decide whether and where an instruction accesses memory, but not those that it stores.
fn address_reads(func: &Func, inst: &Inst, f: &mut impl FnMut(VReg)) {
    inst.guard.iter().for_each(|(p, _)| f(*p));
    if func.variant(inst).op.row().effect == Effect::Call {
        return inst_reads(func, inst, f);
    }
    let addresses = func.operands(inst.srcs).iter().filter(|o| matches!(o, Operand::Mem(..)));
    addresses.for_each(|o| reads(o, f));
}

/// Paths from the sources to the access that execute no source again.
struct Paths<'a> {
    func: &'a Func,
    cfg: &'a Cfg,
    from: &'a [usize],
    to: usize,
    access: u32,
    sources: &'a [u32],
    /// Blocks in which a thread may wait for others.
    waits: BitSet,
}

/// Whether paths may lead through blocks in which a thread may wait for others.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waiting {
    Allowed,
    Excluded,
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

    /// The blocks that may be executed from the start of a block until a source is.
    fn reach(&self, start: usize, waiting: Waiting) -> BitSet {
        let mut seen = BitSet::new(self.func.blocks.len());
        let mut next = vec![start];
        while let Some(b) = next.pop() {
            let source = self.from.contains(&b);
            if seen.has(b as u32) || source && !(b == self.to && self.access_precedes_sources()) {
                continue;
            }
            if waiting == Waiting::Excluded && self.waits.has(b as u32) && b != self.to {
                continue;
            }
            seen.insert(b as u32);
            if !source {
                next.extend(self.cfg.succs[b].iter().map(|s| s.0 as usize));
            }
        }
        seen
    }

    /// Whether the access precedes all sources of its block.
    fn access_precedes_sources(&self) -> bool {
        let range = self.func.blocks[self.to].insts.range();
        self.sources.iter().filter(|s| range.contains(&(**s as usize))).all(|s| *s > self.access)
    }

    /// The blocks at the end of which a thread has executed a source and may still reach the access.
    fn between(&self) -> Vec<usize> {
        let mut after = BitSet::new(self.func.blocks.len());
        for b in self.from {
            after.insert(*b as u32);
            for s in &self.cfg.succs[*b] {
                after.union(&self.reach(s.0 as usize, Waiting::Allowed));
            }
        }
        // In the block of a source, what follows it leads straight to the access.
        let straight = self.from.contains(&self.to) && !self.access_precedes_sources();
        let leads = |b: &usize| {
            !straight
                && self.cfg.succs[*b].iter().any(|s| self.reach(s.0 as usize, Waiting::Allowed).has(self.to as u32))
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
