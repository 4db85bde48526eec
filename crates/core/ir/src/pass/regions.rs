//! Barrier regions: the code between the CTA barriers of a kernel (manual, section 9.7.13.1).
//!
//! If every thread of a CTA reaches the same barriers in the same order, the code between two barriers can be run for one
//! warp after another: a kernel becomes a sequence of loops over warps (loop fission at barriers). If barriers end their
//! blocks, [`Regions`] lists the blocks that a warp can execute after a barrier before it reaches the next.

use crate::{
    Arg, BlockId, Func, Inst, MemBase, Operand,
    pass::{BitSet, Cfg, Cut},
};
use margay_isa::{Mod, Opcode};

/// Whether an instruction is a barrier of the CTA: not `bar.warp.sync`, not `barrier.cluster`.
pub fn is_cta_barrier(func: &Func, inst: &Inst) -> bool {
    let variant = func.variant(inst);
    matches!(variant.op, Opcode::Bar | Opcode::Barrier) && !variant.has(Mod::Warp) && !variant.has(Mod::Cluster)
}

/// The code that threads execute from the beginning or from a barrier on, until they end or reach the next barriers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Region {
    /// Its first block.
    pub entry: BlockId,
    /// Its blocks, by layout position.
    pub blocks: Vec<BlockId>,
    /// The barriers at which it ends, by number.
    pub barriers: Vec<u32>,
}

/// The regions of a kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Regions {
    /// Region 0 begins the kernel, region `k + 1` continues after barrier `k`.
    pub list: Vec<Region>,
}

impl Regions {
    /// Finds the regions of a function whose barriers end blocks.
    pub fn new(cfg: &Cfg, barriers: &[Cut]) -> Regions {
        let n = cfg.succs.len();
        let mut ends = vec![None; n];
        for (k, barrier) in barriers.iter().enumerate() {
            ends[barrier.block.0 as usize] = Some(k as u32);
        }
        let entries = std::iter::once(BlockId(0)).chain(barriers.iter().map(|b| b.next));
        let region = |entry: BlockId| {
            let mut seen = BitSet::new(n);
            let (mut blocks, mut reached, mut work) = (Vec::new(), Vec::new(), vec![entry]);
            while let Some(b) = work.pop() {
                if seen.has(b.0) || cfg.position[b.0 as usize] == u32::MAX {
                    continue;
                }
                seen.insert(b.0);
                blocks.push(b);
                match ends[b.0 as usize] {
                    Some(k) => reached.push(k),
                    None => work.extend(cfg.succs[b.0 as usize].iter().copied()),
                }
            }
            blocks.sort_by_key(|b| cfg.position[b.0 as usize]);
            reached.sort_unstable();
            Region { entry, blocks, barriers: reached }
        };
        Regions { list: entries.map(region).collect() }
    }

    /// Blocks of all regions together: how often code is written.
    pub fn size(&self) -> usize {
        self.list.iter().map(|r| r.blocks.len()).sum()
    }
}

/// Frame variables that are read before they are overwritten, where blocks begin.
pub fn live_frame(func: &Func, cfg: &Cfg) -> Vec<BitSet> {
    let n = func.frame.len();
    let mut live = vec![BitSet::new(n); func.blocks.len()];
    // By block: what it reads first, and what it overwrites as a whole before any read.
    let effects: Vec<(BitSet, BitSet)> = (0..func.blocks.len()).map(|b| block_frame(func, b)).collect();
    let mut changed = n > 0;
    while changed {
        changed = false;
        for b in cfg.order.iter().rev() {
            let (read, written) = &effects[b.0 as usize];
            let mut now = read.clone();
            for s in crate::pass::cfg::successors(&func.blocks[b.0 as usize].term) {
                live[s.0 as usize].iter().filter(|f| !written.has(*f)).for_each(|f| now.insert(f));
            }
            changed |= live[b.0 as usize].union(&now);
        }
    }
    live
}

fn block_frame(func: &Func, block: usize) -> (BitSet, BitSet) {
    let n = func.frame.len();
    let (mut read, mut written) = (BitSet::new(n), BitSet::new(n));
    let mut stored: Vec<Vec<bool>> = vec![Vec::new(); n];
    for inst in func.insts(&func.blocks[block]) {
        let variant = func.variant(inst);
        let plain = variant.op == Opcode::St && inst.guard.is_none();
        for operand in func.operands(inst.srcs) {
            match operand {
                Operand::Mem(MemBase::Frame(f), offset) if plain => {
                    let bytes = &mut stored[f.0 as usize];
                    let size = func.frame[f.0 as usize].size as usize;
                    bytes.resize(size, false);
                    let from = usize::try_from(*offset).unwrap_or(size).min(size);
                    let to = (from + (variant.t().bytes() * variant.vec()) as usize).min(size);
                    bytes[from..to].fill(true);
                    if !read.has(f.0) && bytes.iter().all(|b| *b) {
                        written.insert(f.0);
                    }
                }
                Operand::Call(site) => {
                    let site = &func.calls[*site as usize];
                    let args = site.args.iter().filter_map(Arg::frame_variable);
                    args.filter(|f| !written.has(f.0)).for_each(|f| read.insert(f.0));
                    let rets = site.rets.iter().filter_map(Arg::frame_variable);
                    rets.filter(|f| !read.has(f.0) && inst.guard.is_none()).for_each(|f| written.insert(f.0));
                }
                _ => {
                    let used = operand.frame_variable().filter(|f| !written.has(f.0));
                    used.into_iter().for_each(|f| read.insert(f.0));
                }
            }
        }
    }
    (read, written)
}
