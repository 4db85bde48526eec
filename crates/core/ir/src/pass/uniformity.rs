//! Which registers are the same in all lanes that execute together, which are affine in the lane, and which blocks part of a
//! warp may execute without the rest.
//!
//! The analysis is optimistic: everything starts uniform, and facts are withdrawn until nothing changes. A branch whose
//! predicate varies is *divergent*; the blocks between it and its immediate post-dominator are reached by part of a warp. For
//! each such block, the analysis records which sides of which divergent branches lead to it. A register stays uniform only if all
//! its definitions and uses are under exactly the same sides (one side of a branch): then the lanes that see one definition see
//! all of them together. This covers loops that lanes leave at different times: their uses outside are under fewer sides.

use crate::{
    Arg, BlockId, Func, MemBase, Operand, Terminator, VReg,
    pass::{
        Cfg,
        interface::{ResultVariable, result_variables, uniform_variables},
        liveness::{BitSet, inst_reads, inst_writes, read_early, term_reads},
        shape::{self, Fact, Shape, WarpShape},
    },
};
use margay_isa::{Effect, Mod, Opcode, Var};

/// Result of the analysis.
#[derive(Clone, Debug)]
pub struct Uniformity {
    /// By register.
    pub shapes: Vec<Shape>,
    /// By register: the rows that a varying one forms too unless an index wrapped around; `Varying` if none.
    pub hints: Vec<Shape>,
    /// By register: the hint holds only as long as all lanes execute together.
    pub whole: Vec<bool>,
    /// By block: a part of the lanes that are alive may execute it without the others.
    pub divergent: Vec<bool>,
    /// By block: its terminator sends lanes different ways.
    pub branches: Vec<bool>,
    /// By block: sides of divergent branches that lead to it.
    sides: Vec<BitSet>,
    /// By block: the number of its first side, see [`number_sides`].
    first_sides: Vec<u32>,
    warp: WarpShape,
}

impl Uniformity {
    /// Whether an operand other than a memory operand is the same in all lanes that execute together.
    pub fn is_uniform(&self, o: &Operand) -> bool {
        match o {
            Operand::Reg(r) | Operand::Not(r) => self.shapes[r.0 as usize] == Shape::Uniform,
            Operand::Special(s, c) => self.warp.special(*s, *c) == Shape::Uniform,
            Operand::Imm(_)
            | Operand::GlobalAddr(..)
            | Operand::FrameAddr(..)
            | Operand::ParamAddr(_)
            | Operand::Func(_)
            | Operand::Sink => true,
            Operand::Mem(..) | Operand::Call(_) => false,
        }
    }

    /// Whether lanes of one warp may be at both blocks at the same time, having taken different sides of a branch.
    pub fn may_diverge_between(&self, a: BlockId, b: BlockId) -> bool {
        let (a, b) = (&self.sides[a.0 as usize], &self.sides[b.0 as usize]);
        parted(&self.first_sides, a, b)
    }
}

/// Whether some branch leads to two blocks by different sides, given the sides that lead to each.
fn parted(first_sides: &[u32], a: &BitSet, b: &BitSet) -> bool {
    a.iter().any(|side| {
        let next = first_sides.partition_point(|first| *first <= side);
        (first_sides[next - 1]..first_sides[next]).any(|other| other != side && b.has(other))
    })
}

/// By block: the number of the first of its sides, which are its successors; and at the end, the number of all sides.
fn number_sides(cfg: &Cfg) -> Vec<u32> {
    let mut firsts = vec![0];
    let mut all = 0;
    for succs in &cfg.succs {
        all += succs.len() as u32;
        firsts.push(all);
    }
    firsts
}

struct Analysis<'a> {
    func: &'a Func,
    cfg: &'a Cfg,
    warp: WarpShape,
    /// Lanes never diverge.
    whole: bool,
    /// By register; `None` until the first definition was seen.
    facts: Vec<Option<Fact>>,
    branches: Vec<bool>,
    /// By block: sides of divergent branches that lead to it.
    sides: Vec<BitSet>,
    /// By block: the number of its first side, see [`number_sides`].
    first_sides: Vec<u32>,
    /// By block: some branch leads to it by more than one side.
    mixed: Vec<bool>,
    defs: Vec<Vec<u32>>,
    uses: Vec<Vec<u32>>,
    /// By frame variable: whether it is a formal that is the same in all lanes and never changes.
    formals: Vec<bool>,
    /// By frame variable: the call whose result it holds.
    results: Vec<Option<ResultVariable>>,
}

impl Uniformity {
    /// Analyses a function. Formals of device functions count as varying unless the signature says otherwise.
    pub fn new(func: &Func, cfg: &Cfg, warp: WarpShape) -> Uniformity {
        let mut a = Analysis::new(func, cfg, warp, false);
        let mut together = Analysis::new(func, cfg, warp, true);
        let early = read_early(func, cfg);
        for a in [&mut a, &mut together] {
            a.collect(&early);
            while a.round() || a.settle() {}
        }
        let divergent = a.sides.iter().map(|s| s.iter().next().is_some()).collect();
        let (mut shapes, mut hints, mut whole) = (Vec::new(), Vec::new(), Vec::new());
        for (own, other) in a.facts.iter().zip(&together.facts) {
            let (own, other) = (own.unwrap_or(Fact::UNIFORM), other.unwrap_or(Fact::UNIFORM));
            shapes.push(if own.sure { own.shape } else { Shape::Varying });
            let varies = own.shape == Shape::Varying;
            let hint = match own.sure {
                _ if varies => other.shape,
                true => Shape::Varying,
                false => own.shape,
            };
            hints.push(warp.wide_enough_to_hint(hint));
            whole.push(varies);
        }
        let Analysis { branches, sides, first_sides, .. } = a;
        Uniformity { shapes, hints, whole, divergent, branches, sides, first_sides, warp }
    }
}

impl<'a> Analysis<'a> {
    fn new(func: &'a Func, cfg: &'a Cfg, warp: WarpShape, whole: bool) -> Analysis<'a> {
        let (n, r) = (func.blocks.len(), func.regs.len());
        let first_sides = number_sides(cfg);
        let all = first_sides.last().copied().unwrap_or(0);
        Analysis {
            func,
            cfg,
            warp,
            whole,
            facts: vec![None; r],
            branches: vec![false; n],
            sides: vec![BitSet::new(all as usize); n],
            first_sides,
            mixed: vec![false; n],
            defs: vec![Vec::new(); r],
            uses: vec![Vec::new(); r],
            formals: uniform_variables(func),
            results: result_variables(func),
        }
    }
}

impl Analysis<'_> {
    fn collect(&mut self, early: &BitSet) {
        let func = self.func;
        for (b, block) in func.blocks.iter().enumerate() {
            let b = b as u32;
            for inst in func.insts(block) {
                inst_writes(func, inst, &mut |r| self.defs[r.0 as usize].push(b));
                inst_reads(func, inst, &mut |r| self.uses[r.0 as usize].push(b));
            }
            term_reads(func, &block.term, &mut |r| self.uses[r.0 as usize].push(b));
        }
        let mut homes = Vec::new();
        for (home, value) in func.params.iter().zip(&func.sig.params) {
            if let crate::FormalHome::Regs(regs) = home {
                homes.extend(regs.iter().map(|r| (*r, value.varying)));
            }
        }
        // Registers that are read before they are written are zero in all lanes.
        homes.extend(early.iter().map(|r| (VReg(r), false)));
        for (r, varying) in homes {
            self.defs[r.0 as usize].push(0);
            self.facts[r.0 as usize] = Some(if varying { Fact::VARYING } else { Fact::UNIFORM });
        }
        self.defs.iter_mut().chain(self.uses.iter_mut()).for_each(|list| list.dedup());
    }

    /// One pass over all instructions; definitions only take facts back. Returns whether anything changed.
    fn round(&mut self) -> bool {
        let mut changed = false;
        for b in &self.cfg.order {
            let block = &self.func.blocks[b.0 as usize];
            for inst in self.func.insts(block) {
                if let [Operand::Call(c)] = self.func.operands(inst.srcs) {
                    changed |= self.call(inst, *c);
                    continue;
                }
                let Some(fact) = self.result(inst) else { continue };
                let fact = self.warp.wide_enough(fact);
                inst_writes(self.func, inst, &mut |r| changed |= define(&mut self.facts, r, fact));
            }
        }
        for r in 0..self.facts.len() {
            if self.facts[r].is_some_and(|f| f.shape != Shape::Varying) && !self.together(r) {
                self.facts[r] = Some(Fact::VARYING);
                changed = true;
            }
        }
        if self.whole {
            return changed;
        }
        for b in &self.cfg.order {
            let varying = match &self.func.blocks[b.0 as usize].term {
                Terminator::Branch { pred, .. } => self.varies(self.facts[pred.0 as usize]),
                Terminator::Switch { index, .. } => self.varies(self.operand(index)),
                _ => false,
            };
            if varying && !std::mem::replace(&mut self.branches[b.0 as usize], true) {
                self.diverge(*b);
                changed = true;
            }
        }
        changed
    }

    /// Defines the results of a call. Returns whether anything changed.
    fn call(&mut self, inst: &crate::Inst, call: u32) -> bool {
        let together = inst.guard.is_none_or(|(p, _)| !self.varies(self.facts[p.0 as usize]));
        let site = &self.func.calls[call as usize];
        let mut changed = false;
        for (i, ret) in site.rets.iter().enumerate() {
            let fact = if together && self.returns_uniform(call, i) { Fact::UNIFORM } else { Fact::VARYING };
            if let Arg::Values(values) = ret {
                for value in values {
                    if let Operand::Reg(r) = value {
                        changed |= define(&mut self.facts, *r, fact);
                    }
                }
            }
        }
        changed
    }

    /// Whether a call returns one value to all lanes that call. Where lanes are not in step, a function may be called for some of
    /// them after the others, and read memory each time.
    fn returns_uniform(&self, call: u32, ret: usize) -> bool {
        !self.warp.cta && !self.warp.divergent && !self.func.calls[call as usize].sig.rets[ret].varying
    }

    /// Whether a load from a frame variable reads the result of a call that is the same in all lanes.
    fn loads_result(&self, variable: usize, offset: i64, bytes: u32) -> bool {
        let Some(v) = &self.results[variable] else { return false };
        let size = self.func.calls[v.call as usize].sig.rets[v.ret].size;
        let inside = offset >= 0 && offset.saturating_add(bytes.into()) <= size.into();
        inside && self.returns_uniform(v.call, v.ret) && self.see_together(&[v.block], &v.uses)
    }

    /// What no definition reached holds nothing in particular, the same in all lanes.
    fn settle(&mut self) -> bool {
        let mut changed = false;
        for fact in self.facts.iter_mut().filter(|f| f.is_none()) {
            *fact = Some(Fact::UNIFORM);
            changed = true;
        }
        changed
    }

    /// Unknown values count as uniform until more is known.
    fn varies(&self, fact: Option<Fact>) -> bool {
        fact.is_some_and(|f| f.shape != Shape::Uniform)
    }

    /// Whether the lanes that see one definition of a register see all of its definitions and uses together.
    fn together(&self, r: usize) -> bool {
        self.see_together(&self.defs[r], &self.uses[r])
    }

    /// The same for any value that is defined and used in these blocks.
    fn see_together(&self, defs: &[u32], uses: &[u32]) -> bool {
        if self.whole {
            return true;
        }
        let looped = |b: &u32| self.cfg.innermost(self.cfg.position[*b as usize]).is_some();
        if self.warp.divergent && (defs.len() > 1 || defs.iter().any(looped)) {
            return false;
        }
        if self.warp.interleaved && defs.iter().any(looped) {
            return false;
        }
        let mut blocks = defs.iter().chain(uses);
        let Some(first) = blocks.next() else { return true };
        let single = defs.len() == 1;
        let sides = &self.sides[*first as usize];
        let same = |b: &u32| self.sides[*b as usize] == *sides && !self.mixed[*b as usize];
        if defs.len() + uses.len() == 1 {
            return true;
        }
        // A single definition is seen by every lane that uses it; it is only lost to lanes that left its loop earlier.
        if single && uses.iter().all(|u| !self.leaves_loop(*first, *u)) {
            return true;
        }
        // Lanes in step wait for each other behind a branch before they come to another definition, unless one of its sides leads there:
        // out of a loop, whose other lanes continue.
        let in_step = !self.warp.divergent && !self.warp.interleaved && self.cfg.reducible;
        let waits = |at: &BitSet| at.contains(sides) && !parted(&self.first_sides, sides, at);
        let below = |b: &u32| same(b) || in_step && waits(&self.sides[*b as usize]);
        !self.mixed[*first as usize] && defs.iter().all(same) && uses.iter().all(below)
    }

    /// Whether a use lies outside a loop that holds the definition and that lanes leave at different times.
    fn leaves_loop(&self, def: u32, used: u32) -> bool {
        let (d, u) = (self.cfg.position[def as usize], self.cfg.position[used as usize]);
        if d == u32::MAX || u == u32::MAX {
            return false;
        }
        !self.cfg.reducible && self.sides[def as usize] != self.sides[used as usize]
            || self.cfg.loops.iter().any(|l| {
                let divergent = || (l.first..=l.last).any(|p| self.leaves(self.cfg.order[p as usize], *l));
                l.holds(d) && !l.holds(u) && divergent()
            })
    }

    fn leaves(&self, b: BlockId, l: crate::pass::Loop) -> bool {
        self.branches[b.0 as usize]
            && self.cfg.ipdom[b.0 as usize].is_none_or(|p| !l.holds(self.cfg.position[p.0 as usize]))
    }

    /// Marks what each side of a divergent branch reaches before its post-dominator.
    fn diverge(&mut self, b: BlockId) {
        let stop = self.cfg.ipdom[b.0 as usize];
        let n = self.func.blocks.len();
        let mut reached = vec![0u8; n];
        for (side, s) in (self.first_sides[b.0 as usize]..).zip(&self.cfg.succs[b.0 as usize]) {
            let mut work = vec![*s];
            let mut seen = BitSet::new(n);
            while let Some(x) = work.pop() {
                if Some(x) == stop || seen.has(x.0) {
                    continue;
                }
                seen.insert(x.0);
                self.sides[x.0 as usize].insert(side);
                reached[x.0 as usize] += 1;
                work.extend(self.cfg.succs[x.0 as usize].iter().copied());
            }
        }
        for (x, times) in reached.iter().enumerate() {
            self.mixed[x] |= *times > 1;
        }
    }

    /// What is known of an operand; `None` for a register before its first definition was seen.
    fn operand(&self, o: &Operand) -> Option<Fact> {
        match o {
            Operand::Reg(r) | Operand::Not(r) | Operand::Mem(MemBase::Reg(r), _) => self.facts[r.0 as usize],
            Operand::Special(s, c) => Some(self.warp.fact(*s, *c)),
            Operand::Imm(v) => Some(Fact::constant(*v)),
            _ => Some(Fact::UNIFORM),
        }
    }

    /// What an instruction defines; `None` while an operand is not known.
    fn result(&self, inst: &crate::Inst) -> Option<Fact> {
        let func = self.func;
        let variant = func.variant(inst);
        if inst.guard.is_some_and(|(p, _)| self.varies(self.facts[p.0 as usize])) {
            return Some(Fact::VARYING);
        }
        let ops = func.operands(inst.srcs);
        let known: Option<Vec<Fact>> = ops.iter().map(|s| self.operand(s)).collect();
        let srcs = known?;
        let bits = variant.t().bits();
        let written = match variant.op {
            Opcode::Setp => 1,
            _ if variant.has(Mod::Wide) => 2 * bits,
            _ => bits,
        };
        let width = |o: &Operand, bits: u32| match o {
            Operand::Reg(r) => func.regs[r.0 as usize].bits() == bits,
            _ => true,
        };
        let exact = match variant.op {
            Opcode::Cvt => variant.ty(Var::U).is_some_and(|u| width(&ops[0], u.bits())),
            _ => true,
        };
        let plain = exact && matches!(func.operands(inst.dsts), [d] if width(d, written));
        if let ([Operand::Mem(MemBase::Frame(f), offset)], Opcode::Ld) = (ops, variant.op) {
            let (variable, bytes) = (f.0 as usize, variant.t().bytes() * variant.vec());
            if self.formals[variable] || self.loads_result(variable, *offset, bytes) {
                return Some(Fact::UNIFORM);
            }
        }
        let fact = shape::result(self.warp, inst.space, variant, &srcs, ops, plain);
        // A guarded definition merges with the old value, which `together` and the join over definitions see to; one in rows
        // would need the old value's base too.
        let merged = inst.guard.is_some() && fact.shape != Shape::Uniform;
        let call = variant.op.row().effect == Effect::Call;
        Some(if merged || call { Fact::VARYING } else { fact })
    }
}

/// Joins a definition to what is known of a register. Returns whether that changed anything.
fn define(facts: &mut [Option<Fact>], r: crate::VReg, fact: Fact) -> bool {
    let old = &mut facts[r.0 as usize];
    let new = old.map_or(fact, |o| o.join(fact).widened(o));
    old.replace(new) != Some(new)
}
