//! The blocks of a loop, and what its iterations have in common.

use crate::{
    BlockId, Func, Inst, MemBase, Operand, VReg,
    pass::{
        Cfg, Liveness, Loop,
        cfg::successors,
        liveness::{self, defines},
    },
};
use std::collections::HashSet;

/// The body of a loop.
#[derive(Clone, Copy)]
pub(super) struct Body<'a> {
    pub func: &'a Func,
    pub blocks: &'a [BlockId],
}

impl<'a> Body<'a> {
    pub fn new(func: &'a Func, cfg: &'a Cfg, l: &Loop) -> Body<'a> {
        Body { func, blocks: cfg.blocks(l) }
    }

    pub fn insts(self) -> impl Iterator<Item = &'a Inst> {
        self.blocks.iter().flat_map(move |b| self.func.insts(&self.func.blocks[b.0 as usize]))
    }

    pub fn any(self, is: impl Fn(&Inst) -> bool) -> bool {
        self.insts().any(is)
    }

    /// Whether an instruction accesses one place in all iterations.
    pub fn stays(self, inst: &Inst) -> bool {
        self.func.operands(inst.srcs).first().is_none_or(|place| self.keeps(place))
    }

    /// Whether an operand that is a place in memory is the same in all iterations.
    pub fn keeps(self, place: &Operand) -> bool {
        match place {
            Operand::Mem(MemBase::Reg(base), _) => !self.any(|i| defines(self.func, i, *base)),
            _ => true,
        }
    }

    /// The registers that depend on what some of the instructions write.
    pub fn affected_by(self, some: impl Fn(&Inst) -> bool) -> HashSet<VReg> {
        let mut found: HashSet<VReg> = HashSet::new();
        for inst in self.insts().filter(|i| some(i)) {
            liveness::inst_writes(self.func, inst, &mut |r| _ = found.insert(r));
        }
        let mut before = 0;
        while before != found.len() {
            before = found.len();
            for inst in self.insts() {
                let mut follows = false;
                liveness::inst_reads(self.func, inst, &mut |r| follows |= found.contains(&r));
                if follows {
                    liveness::inst_writes(self.func, inst, &mut |r| _ = found.insert(r));
                }
            }
        }
        found
    }

    /// Whether some branch depends on a register of a set.
    pub fn branches_on(self, found: &HashSet<VReg>) -> bool {
        self.blocks.iter().any(|b| self.ends_with_branch_on(*b, found))
    }

    /// Whether some branch that may leave the loop depends on a register of a set.
    pub fn leaves_on(self, found: &HashSet<VReg>) -> bool {
        self.blocks.iter().any(|b| self.leaves(*b) && self.ends_with_branch_on(*b, found))
    }

    fn ends_with_branch_on(self, b: BlockId, found: &HashSet<VReg>) -> bool {
        let mut follows = false;
        let term = &self.func.blocks[b.0 as usize].term;
        liveness::term_reads(self.func, term, &mut |r| follows |= found.contains(&r));
        follows
    }

    /// Whether some branch leads out of the loop.
    pub fn has_exit(self) -> bool {
        self.blocks.iter().any(|b| self.leaves(*b))
    }

    fn leaves(self, b: BlockId) -> bool {
        successors(&self.func.blocks[b.0 as usize].term).iter().any(|to| !self.blocks.contains(to))
    }

    /// Whether a register is carried from one iteration to the next.
    pub fn carries(self, live: &Liveness) -> bool {
        let entry = &live.live_in[self.blocks[0].0 as usize];
        self.any(|inst| {
            let mut kept = false;
            liveness::inst_writes(self.func, inst, &mut |r| kept |= entry.has(r.0));
            kept
        })
    }
}
