//! Which registers are equal over the lanes that execute together, which are affine in the lane, and which blocks a part of a
//! warp may execute without the rest.
//!
//! The analysis is optimistic: everything begins uniform, and facts are taken back until nothing changes. A branch whose
//! predicate varies is *divergent*; the blocks between it and its immediate post-dominator are reached by part of a warp. For
//! each such block the analysis keeps which sides of which divergent branches lead to it. A register stays uniform only if all
//! its definitions and uses lie under the very same sides (one side of a branch): then the lanes that see one definition see
//! all of them together. This covers loops that lanes leave at different times: their uses outside lie under fewer sides.

use crate::{
    BlockId, Func, MemSpace, Operand, Terminator, VReg,
    pass::{
        Cfg,
        liveness::{BitSet, inst_reads, inst_writes, term_reads},
    },
};
use margay_isa::{Component, Effect, Mod, Opcode, Special, Type, Var};

/// How a value depends on the lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// Equal in all lanes that execute together.
    Uniform,
    /// Lane `i` holds the value of lane 0 plus `i` times this, in the arithmetic of the register's width.
    Affine(i64),
    /// Anything.
    Varying,
}

/// What is known of the block shape: threads in x, y, z, if the code is specialised for it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct WarpShape {
    /// `%ntid`, if known.
    pub block: Option<[u32; 3]>,
    /// Lanes may be at different iterations of a loop at the same time (an engine that lets lanes overtake others that spin):
    /// then nothing that a loop defines is shared by lanes.
    pub interleaved: bool,
    /// The question is about all threads of a CTA instead of the lanes of a warp: what is uniform is equal in all of them, and
    /// what is divergent is reached by a part of them. Threads of different warps are not in step, so only values that no
    /// memory but constants and parameters had a hand in count.
    pub cta: bool,
}

/// Result of the analysis.
#[derive(Clone, Debug)]
pub struct Uniformity {
    /// By register.
    pub shapes: Vec<Shape>,
    /// By block: a part of the lanes that are alive may execute it without the others.
    pub divergent: Vec<bool>,
    /// By block: its terminator sends lanes different ways.
    pub branches: Vec<bool>,
    /// By block: sides of divergent branches that lead to it; bit `2 * branch block + side`.
    sides: Vec<BitSet>,
}

fn join(a: Shape, b: Shape) -> Shape {
    if a == b { a } else { Shape::Varying }
}

impl WarpShape {
    fn tid(self, component: Component) -> Shape {
        let Some([x, y, _]) = self.block else { return Shape::Varying };
        match component {
            Component::X if x % 32 == 0 => Shape::Affine(1),
            Component::X => {
                if x == 1 {
                    Shape::Uniform
                } else {
                    Shape::Varying
                }
            }
            Component::Y if x % 32 == 0 || y == 1 => Shape::Uniform,
            Component::Z if x.wrapping_mul(y) % 32 == 0 => Shape::Uniform,
            Component::W => Shape::Uniform,
            Component::Y | Component::Z => {
                if self.block.is_some_and(|b| b[1] == 1 && b[2] == 1) {
                    Shape::Uniform
                } else {
                    Shape::Varying
                }
            }
        }
    }

    /// Shape of a special register.
    pub fn special(self, special: Special, component: Component) -> Shape {
        use Special::*;
        match special {
            Tid if self.cta => match self.block {
                Some(b) if component == Component::W || b[component as usize] == 1 => Shape::Uniform,
                _ => Shape::Varying,
            },
            Ntid | Ctaid | Nctaid | NwarpId | GridId | DynamicSmemSize | TotalSmemSize if self.cta => Shape::Uniform,
            _ if self.cta => Shape::Varying,
            Tid => self.tid(component),
            LaneId => Shape::Affine(1),
            LanemaskEq | LanemaskGe | LanemaskGt | LanemaskLe | LanemaskLt => Shape::Varying,
            _ => Shape::Uniform,
        }
    }
}

impl Uniformity {
    /// Whether lanes of one warp may be at both blocks at the same time, having taken different sides of a branch.
    pub fn apart(&self, a: BlockId, b: BlockId) -> bool {
        let (a, b) = (&self.sides[a.0 as usize], &self.sides[b.0 as usize]);
        a.iter().any(|bit| b.has(bit ^ 1))
    }
}

struct Analysis<'a> {
    func: &'a Func,
    cfg: &'a Cfg,
    warp: WarpShape,
    shapes: Vec<Shape>,
    branches: Vec<bool>,
    /// By block: sides of divergent branches that lead to it; bit `2 * branch block + side`.
    sides: Vec<BitSet>,
    /// By block: some branch leads to it by more than one side.
    mixed: Vec<bool>,
    defs: Vec<Vec<u32>>,
    uses: Vec<Vec<u32>>,
}

impl Uniformity {
    /// Analyses a function. Formals of device functions count as varying unless the signature says otherwise.
    pub fn new(func: &Func, cfg: &Cfg, warp: WarpShape) -> Uniformity {
        let (n, r) = (func.blocks.len(), func.regs.len());
        let mut a = Analysis {
            func,
            cfg,
            warp,
            shapes: vec![Shape::Uniform; r],
            branches: vec![false; n],
            sides: vec![BitSet::new(2 * n); n],
            mixed: vec![false; n],
            defs: vec![Vec::new(); r],
            uses: vec![Vec::new(); r],
        };
        a.collect();
        while a.round() {}
        let empty = BitSet::new(2 * n);
        let divergent = a.sides.iter().map(|s| *s != empty).collect();
        Uniformity { shapes: a.shapes, divergent, branches: a.branches, sides: a.sides }
    }
}

impl Analysis<'_> {
    fn collect(&mut self) {
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
        for (r, varying) in homes {
            self.defs[r.0 as usize].push(0);
            if varying {
                self.shapes[r.0 as usize] = Shape::Varying;
            }
        }
        self.defs.iter_mut().chain(self.uses.iter_mut()).for_each(|list| list.dedup());
    }

    fn round(&mut self) -> bool {
        let before = (self.shapes.clone(), self.branches.clone());
        let mut found: Vec<Option<Shape>> = vec![None; self.shapes.len()];
        for b in &self.cfg.order {
            let block = &self.func.blocks[b.0 as usize];
            for inst in self.func.insts(block) {
                let shape = self.result(inst);
                inst_writes(self.func, inst, &mut |r| {
                    let old = &mut found[r.0 as usize];
                    *old = Some(old.map_or(shape, |o| join(o, shape)));
                });
            }
        }
        for (r, shape) in found.into_iter().enumerate() {
            let Some(shape) = shape else { continue };
            if self.shapes[r] == Shape::Varying {
                continue;
            }
            let pinned = self.defs[r].contains(&0) && self.formal(VReg(r as u32));
            let shape = if pinned { join(shape, Shape::Uniform) } else { shape };
            self.shapes[r] = if self.together(r) { shape } else { Shape::Varying };
        }
        for b in &self.cfg.order {
            let varying = match &self.func.blocks[b.0 as usize].term {
                Terminator::Branch { pred, .. } => self.shapes[pred.0 as usize] != Shape::Uniform,
                Terminator::Switch { index, .. } => self.operand(index) != Shape::Uniform,
                _ => false,
            };
            if varying && !std::mem::replace(&mut self.branches[b.0 as usize], true) {
                self.diverge(*b);
            }
        }
        before != (self.shapes.clone(), self.branches.clone())
    }

    fn formal(&self, r: VReg) -> bool {
        self.func.params.iter().any(|h| matches!(h, crate::FormalHome::Regs(regs) if regs.contains(&r)))
    }

    /// Whether the lanes that see one definition of a register see all of its definitions and uses together.
    fn together(&self, r: usize) -> bool {
        if self.warp.interleaved
            && self.defs[r].iter().any(|b| self.cfg.innermost(self.cfg.position[*b as usize]).is_some())
        {
            return false;
        }
        let mut blocks = self.defs[r].iter().chain(&self.uses[r]);
        let Some(first) = blocks.next() else { return true };
        let single = self.defs[r].len() == 1;
        let sides = &self.sides[*first as usize];
        let same = |b: &u32| self.sides[*b as usize] == *sides && !self.mixed[*b as usize];
        if self.defs[r].len() + self.uses[r].len() == 1 {
            return true;
        }
        // A single definition is seen by every lane that uses it; it is only lost to lanes that left its loop earlier.
        if single && self.uses[r].iter().all(|u| !self.leaves_loop(*first, *u)) {
            return true;
        }
        !self.mixed[*first as usize] && blocks.all(same)
    }

    /// Whether a use lies outside a loop that holds the definition and that lanes leave at different times.
    fn leaves_loop(&self, def: u32, used: u32) -> bool {
        let (d, u) = (self.cfg.position[def as usize], self.cfg.position[used as usize]);
        if d == u32::MAX || u == u32::MAX {
            return false;
        }
        !self.cfg.reducible && self.sides[def as usize] != self.sides[used as usize]
            || self.cfg.loops.iter().any(|l| {
                let inside = |p: u32| l.first <= p && p <= l.last;
                let divergent = || (l.first..=l.last).any(|p| self.leaves(self.cfg.order[p as usize], *l));
                inside(d) && !inside(u) && divergent()
            })
    }

    fn leaves(&self, b: BlockId, l: crate::pass::Loop) -> bool {
        self.branches[b.0 as usize]
            && self.cfg.ipdom[b.0 as usize].is_none_or(|p| {
                let at = self.cfg.position[p.0 as usize];
                at < l.first || l.last < at
            })
    }

    /// Marks what each side of a divergent branch reaches before its post-dominator.
    fn diverge(&mut self, b: BlockId) {
        let stop = self.cfg.ipdom[b.0 as usize];
        let n = self.func.blocks.len();
        let mut reached = vec![0u8; n];
        for (side, s) in self.cfg.succs[b.0 as usize].iter().enumerate() {
            let mut work = vec![*s];
            let mut seen = BitSet::new(n);
            while let Some(x) = work.pop() {
                if Some(x) == stop || seen.has(x.0) {
                    continue;
                }
                seen.insert(x.0);
                self.sides[x.0 as usize].insert(2 * b.0 + (side as u32).min(1));
                reached[x.0 as usize] += 1;
                work.extend(self.cfg.succs[x.0 as usize].iter().copied());
            }
        }
        for (x, times) in reached.iter().enumerate() {
            self.mixed[x] |= *times > 1;
        }
    }

    fn operand(&self, o: &Operand) -> Shape {
        match o {
            Operand::Reg(r) | Operand::Not(r) => self.shapes[r.0 as usize],
            Operand::Special(s, c) => self.warp.special(*s, *c),
            Operand::Mem(crate::MemBase::Reg(r), _) => self.shapes[r.0 as usize],
            _ => Shape::Uniform,
        }
    }

    fn result(&self, inst: &crate::Inst) -> Shape {
        let func = self.func;
        let variant = func.variant(inst);
        if inst.guard.is_some_and(|(p, _)| self.shapes[p.0 as usize] != Shape::Uniform) {
            return Shape::Varying;
        }
        let srcs = func.operands(inst.srcs);
        let uniform = srcs.iter().all(|s| self.operand(s) == Shape::Uniform);
        let shape = match variant.op.row().effect {
            _ if variant.op == Opcode::Cvta => match (srcs, variant.has(Mod::Local)) {
                ([s, ..], false) => self.operand(s),
                _ => Shape::Varying,
            },
            Effect::Pure if uniform => Shape::Uniform,
            Effect::Pure => self.affine(variant, srcs),
            Effect::Memory if variant.op == Opcode::Ld && uniform => match inst.space {
                Some(MemSpace::Local) | Some(MemSpace::Generic) | None => Shape::Varying,
                Some(MemSpace::KernelParam | MemSpace::Const) => Shape::Uniform,
                Some(_) if self.warp.cta => Shape::Varying,
                Some(_) => Shape::Uniform,
            },
            // Votes are the same for all lanes that take part.
            Effect::Warp if matches!(variant.op, Opcode::Vote | Opcode::Activemask) && !self.warp.cta => Shape::Uniform,
            _ => Shape::Varying,
        };
        // A guarded definition merges with the old value, which `together` and the join over definitions see to; an affine
        // one would need the old value's base too.
        if inst.guard.is_some() && shape != Shape::Uniform { Shape::Varying } else { shape }
    }

    /// Affine results of the few operations that addresses are made of.
    fn affine(&self, variant: &margay_isa::Variant, srcs: &[Operand]) -> Shape {
        let stride = |o: &Operand| match self.operand(o) {
            Shape::Uniform => Some(0),
            Shape::Affine(s) => Some(s),
            Shape::Varying => None,
        };
        let constant = |o: &Operand| match o {
            Operand::Imm(v) if variant.t().bits() == 32 => Some(i64::from(*v as u32 as i32)),
            Operand::Imm(v) => Some(*v as i64),
            _ => None,
        };
        let product = |a: &Operand, b: &Operand| match (stride(a)?, stride(b)?, constant(a), constant(b)) {
            (0, 0, ..) => Some(0),
            (x, _, _, Some(k)) => x.checked_mul(k),
            (_, y, Some(k), _) => y.checked_mul(k),
            _ => None,
        };
        let wide = variant.t().bits();
        let t = variant.t();
        let integer = (t.is_int() || t.kind() == margay_isa::Kind::Bits) && (wide == 32 || wide == 64);
        let plain = !variant.has(Mod::Sat) && !variant.has(Mod::Cc) && !variant.has(Mod::Hi);
        let found = match (variant.op.row().name, srcs) {
            ("add", [a, b]) if integer && plain => stride(a).zip(stride(b)).and_then(|(x, y)| x.checked_add(y)),
            ("sub", [a, b]) if integer && plain => stride(a).zip(stride(b)).and_then(|(x, y)| x.checked_sub(y)),
            ("mul", [a, b]) if integer && plain => product(a, b),
            ("mad", [a, b, c]) if integer && plain => product(a, b).zip(stride(c)).and_then(|(x, y)| x.checked_add(y)),
            ("shl", [a, Operand::Imm(k)]) if integer && *k < 31 => stride(a).and_then(|x| x.checked_mul(1 << k)),
            ("mov", [a]) if integer => stride(a),
            ("cvt", [a]) => match variant.ty(Var::U) {
                Some(Type::S32 | Type::U32) if matches!(t, Type::S64 | Type::U64) => stride(a),
                _ => None,
            },
            _ => None,
        };
        match found {
            Some(0) | None => Shape::Varying,
            Some(s) => Shape::Affine(s),
        }
    }
}
