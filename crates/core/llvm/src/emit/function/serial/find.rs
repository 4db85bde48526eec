//! Which loops get a scalar version, and where it begins and ends.

use super::{Cost, Section};
use crate::ctx::SECTIONS;
use crate::emit::{
    function::{Options, prepare::Prepared, prepare::trivial_exit},
    memory::{atomic::is_native, atomic::is_result_read, is_weak},
};
use margay_check::FuncKind;
use margay_ir::{
    BlockId, Inst, MemBase, MemSpace, Operand, Terminator, VReg,
    pass::{
        BitSet, Liveness, Loop, Shape,
        cfg::successors,
        liveness::{inst_reads, inst_writes, term_reads},
    },
};
use margay_isa::{Effect, Mod, Opcode};
use std::collections::HashMap;

/// Instructions of a section beyond which a second version is not worth its compile time.
const LARGEST: usize = 200;

/// Sixths of a cycle. A row of scattered loads or stores, and any other instruction for a whole warp.
const SCATTERED_ROW: u32 = 600;
const ROW: u32 = 24;
/// The same for a single lane; the rest of an iteration, of which every other one is mispredicted; what a lane takes to begin and end.
const SCATTERED: u32 = 15;
const SINGLE: u32 = 2;
const ITERATION: u32 = 12;

/// Finds the sections of a function.
pub(in crate::emit) fn find(prepared: &Prepared, live: &Liveness, options: &Options) -> Vec<Section> {
    let Prepared { cfg, spins, divergent, .. } = prepared;
    let kernel = prepared.func.kind == FuncKind::Kernel;
    let plain = kernel && options.observe.is_none() && !options.count && !options.lean && !options.gathers;
    if !plain || *spins || *divergent || !cfg.reducible {
        return Vec::new();
    }
    let finder = Finder { prepared, live, options };
    let mut found: Vec<Section> = Vec::new();
    // Outer loops come first.
    for l in &cfg.loops {
        let header = cfg.order[l.first as usize];
        if found.len() < SECTIONS
            && !found.iter().any(|section| section.blocks.contains(&header))
            && finder.gathers(l)
            && let Some(section) = finder.around(l)
        {
            found.push(section);
        }
    }
    found
}

struct Finder<'a> {
    prepared: &'a Prepared,
    live: &'a Liveness,
    options: &'a Options,
}

impl Finder<'_> {
    fn shape(&self, r: VReg) -> Shape {
        self.prepared.uniformity.shapes[r.0 as usize]
    }

    /// Whether lanes may leave a loop at different times, and load from scattered addresses in it, or update them.
    fn gathers(&self, l: &Loop) -> bool {
        let Prepared { cfg, func, uniformity, .. } = self.prepared;
        let blocks = cfg.blocks(l);
        let leaves = |b: &BlockId| {
            let outside = |to: &BlockId| !l.holds(cfg.position[to.0 as usize]);
            uniformity.branches[b.0 as usize] && successors(&func.blocks[b.0 as usize].term).iter().any(outside)
        };
        let loads = |b: &BlockId| {
            let insts = func.insts(&func.blocks[b.0 as usize]);
            insts.iter().any(|i| func.variant(i).op != Opcode::St && self.is_scattered(i))
        };
        blocks.iter().any(leaves) && blocks.iter().any(loads)
    }

    /// Whether lanes access memory at addresses that follow no rule.
    fn is_scattered(&self, inst: &Inst) -> bool {
        let func = &self.prepared.func;
        let varies = |r: &VReg| {
            self.shape(*r) == Shape::Varying && self.prepared.uniformity.hints[r.0 as usize] == Shape::Varying
        };
        let mut operands = func.operands(inst.srcs).iter();
        operands.any(|o| matches!(o, Operand::Mem(MemBase::Reg(r), _) if varies(r)))
    }

    /// The largest section around a loop whose blocks may run lane by lane, without loads of rows outside of such loops.
    fn around(&self, l: &Loop) -> Option<Section> {
        let Prepared { cfg, func, .. } = self.prepared;
        let after = |b: BlockId| cfg.ipdom[b.0 as usize].filter(|exit| !trivial_exit(func, *exit));
        let largest = |entry: BlockId, before: Option<BlockId>| {
            let mut exit = after(entry);
            while let Some(b) = exit.filter(|b| cfg.position[b.0 as usize] <= l.last) {
                exit = after(b);
            }
            let mut best = None;
            while let Some(section) = self.section(entry, before, exit) {
                best = Some(section);
                let Some(next) = exit else { break };
                exit = after(next);
            }
            best
        };
        let header = cfg.order[l.first as usize];
        let mut entry = cfg.idom[header.0 as usize];
        let mut best = entry.and_then(|before| largest(header, Some(before)));
        while let Some(section) = entry.and_then(|entry| largest(entry, None)) {
            entry = cfg.idom[section.entry.0 as usize];
            best = Some(section);
        }
        best
    }

    /// Whether a block accesses rows, other than in a loop of the section from `entry` on that gathers.
    fn accesses_rows(&self, b: BlockId, entry: BlockId) -> bool {
        let Prepared { cfg, func, .. } = self.prepared;
        let position = |b: BlockId| cfg.position[b.0 as usize];
        let within = |l: &Loop| l.first >= position(entry) && l.holds(position(b)) && self.gathers(l);
        let mut insts = func.insts(&func.blocks[b.0 as usize]).iter();
        insts.any(|i| func.variant(i).op.row().effect == Effect::Memory && !self.is_scattered(i))
            && !cfg.loops.iter().any(within)
    }

    /// The section from a block to another one, or to the end of its threads.
    fn section(&self, entry: BlockId, before: Option<BlockId>, exit: Option<BlockId>) -> Option<Section> {
        let Prepared { cfg, func, .. } = self.prepared;
        let leaves = |b: &BlockId| Some(*b) == exit || trivial_exit(func, *b);
        let (mut blocks, mut next) = (vec![entry], 0);
        while let Some(b) = blocks.get(next) {
            let to = cfg.succs[b.0 as usize].iter().filter(|to| !leaves(to) && !blocks.contains(to));
            let to: Vec<BlockId> = to.copied().collect();
            blocks.extend(to);
            next += 1;
        }
        blocks.sort_by_key(|b| cfg.position[b.0 as usize]);
        let closed = |b: &BlockId| {
            let from = &cfg.preds[b.0 as usize];
            let inside = |b: &BlockId| blocks.contains(b);
            match before {
                _ if *b != entry => from.iter().all(inside),
                None => !from.iter().any(inside),
                Some(before) => from.iter().all(|b| *b == before || inside(b)) && cfg.succs[before.0 as usize] == [*b],
            }
        };
        let insts = || blocks.iter().flat_map(|b| func.insts(&func.blocks[b.0 as usize]));
        let able = |b: &BlockId| {
            let jumps = matches!(func.blocks[b.0 as usize].term, Terminator::Jump(_) | Terminator::Branch { .. });
            jumps
                && !self.accesses_rows(*b, entry)
                && self.prepared.barrier_at[b.0 as usize].is_none()
                && !self.prepared.exits_in_call[b.0 as usize]
        };
        // Where some threads exit, the others must not go on elsewhere.
        let ends = |b: &BlockId| successors(&func.blocks[b.0 as usize].term).iter().any(|to| trivial_exit(func, *to));
        let fits = insts().count() <= LARGEST
            && (exit.is_none() || !blocks.iter().any(ends))
            && blocks.iter().all(|b| closed(b) && able(b))
            && insts().all(|i| self.runs_alone(i));
        if fits { self.describe((entry, before, exit), blocks) } else { None }
    }

    /// Whether a lane may execute an instruction without the others.
    fn runs_alone(&self, inst: &Inst) -> bool {
        let func = &self.prepared.func;
        let variant = func.variant(inst);
        let space = inst.space.unwrap_or(MemSpace::Generic);
        let plain = match variant.op {
            Opcode::Ld | Opcode::St => {
                let known = matches!(
                    space,
                    MemSpace::Global | MemSpace::Generic | MemSpace::Const | MemSpace::Shared | MemSpace::KernelParam
                );
                known && is_weak(variant)
            }
            // Additions by all lanes are combined by address.
            Opcode::Atom | Opcode::Red => {
                let apart = !variant.has(Mod::Add) || variant.t().is_float() || is_result_read(func, inst);
                let known = matches!(space, MemSpace::Global | MemSpace::Generic | MemSpace::Shared);
                known && apart && is_native(variant)
            }
            // Their addresses are the same in both spaces.
            Opcode::Cvta => matches!(space, MemSpace::Global | MemSpace::Const | MemSpace::KernelParam),
            op => op.row().effect == Effect::Pure,
        };
        let same = |o: &Operand| match o {
            Operand::Special(s, c) => self.options.warp.special(*s, *c) == Shape::Uniform,
            Operand::FrameAddr(..) | Operand::Mem(MemBase::Frame(_), _) => false,
            _ => true,
        };
        plain && func.operands(inst.srcs).iter().chain(func.operands(inst.dsts)).all(same)
    }

    fn describe(
        &self,
        (entry, before, exit): (BlockId, Option<BlockId>, Option<BlockId>),
        blocks: Vec<BlockId>,
    ) -> Option<Section> {
        let Prepared { cfg, func, .. } = self.prepared;
        let (mut used, mut written) = (BitSet::new(func.regs.len()), BitSet::new(func.regs.len()));
        for b in &blocks {
            let block = &func.blocks[b.0 as usize];
            for inst in func.insts(block) {
                inst_reads(func, inst, &mut |r| used.insert(r.0));
                inst_writes(func, inst, &mut |r| written.insert(r.0));
            }
            term_reads(func, &block.term, &mut |r| used.insert(r.0));
        }
        used.union(&written);
        let list = |of: &mut dyn Iterator<Item = u32>| of.map(VReg).collect::<Vec<_>>();
        let nothing = BitSet::new(func.regs.len());
        let first = &self.live.live_in[entry.0 as usize];
        let after = exit.map_or(&nothing, |exit| &self.live.live_in[exit.0 as usize]);
        let outputs = list(&mut written.iter().filter(|r| after.has(*r)));
        let wide = used.iter().any(|r| func.regs[r as usize].bits() > 64);
        if wide || outputs.iter().any(|r| self.shape(*r) != Shape::Varying) {
            return None;
        }
        // A lane that leaves without having written an output leaves what it was.
        let inputs = list(&mut used.iter().filter(|r| first.has(*r) || after.has(*r) && written.has(*r)));
        let mut loops = HashMap::new();
        for l in &cfg.loops {
            let header = cfg.order[l.first as usize];
            if blocks.contains(&header) {
                loops.insert(header, self.cost(l));
            }
        }
        Some(Section { entry, before, exit, blocks, inputs, outputs, registers: list(&mut used.iter()), loops })
    }

    fn cost(&self, l: &Loop) -> Cost {
        let Prepared { cfg, func, .. } = self.prepared;
        let mut cost = Cost { together: 0, apart: ITERATION };
        for position in l.first..=l.last {
            let innermost = cfg.innermost(position).map(|i| cfg.loops[i]);
            if innermost != Some(*l) {
                continue;
            }
            let block = &func.blocks[cfg.order[position as usize].0 as usize];
            for inst in func.insts(block) {
                let scattered = self.is_scattered(inst);
                cost.together += if scattered { SCATTERED_ROW } else { ROW };
                cost.apart += if scattered { SCATTERED } else { SINGLE };
            }
        }
        cost
    }
}
