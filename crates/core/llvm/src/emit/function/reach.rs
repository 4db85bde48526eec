//! Properties of what a kernel reaches: whether device functions wait for other threads and whether threads exit in them, where
//! shared variables lie.

use crate::emit::{
    function::Options,
    function::prepare::{Prepared, waits_in_warp},
};
use margay_check::FuncKind;
use margay_exec::SharedLayout;
use margay_ir::{
    Callee, Func, FuncId, Inst, Ir, Operand, Placed, Terminator,
    pass::{self, Cfg, is_cta_barrier, observes_others, spins},
};
use margay_isa::{Mod, Opcode};

/// How a function waits for other threads; if it does, warps of kernels that call it run on fibers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Waits {
    /// Not at all.
    Never,
    /// In loops.
    Spinning,
    /// At barriers.
    AtBarriers,
}

/// What the device functions that a kernel calls may do, and where its shared variables lie.
pub struct Reached {
    /// The strongest way in which any of them waits.
    pub waits: Waits,
    /// Per function: whether it is compiled.
    pub compiled: Vec<bool>,
    /// Some calls run on fibers of their own.
    pub fibers: bool,
    /// Per function: threads may exit in it or in its callees.
    exits: Vec<bool>,
    /// Threads may exit in some of them.
    some_exit: bool,
    /// Per function: lanes may wait, in it or in its callees, for lanes that have not called it.
    blocking: Vec<bool>,
    /// Lanes may so wait in some of them.
    some_blocking: bool,
    /// Per function: lanes of a warp may return from it at different times.
    staggered: Vec<bool>,
    /// Where the kernel's shared variables lie.
    pub shared: SharedLayout,
}

impl Reached {
    /// Analyses `functions`, one of which is `kernel`.
    pub fn new(ir: &Ir<Placed>, functions: &[FuncId], kernel: FuncId, options: &Options) -> Reached {
        let callees: Vec<FuncId> = functions.iter().copied().filter(|f| *f != kernel).collect();
        let n = ir.funcs.len();
        let waits = callees.iter().map(|f| waits(ir.func(*f))).max().unwrap_or(Waits::Never);
        let ends = |f: &Func| f.kind != FuncKind::Kernel && f.blocks.iter().any(|b| b.term == Terminator::Exit);
        let exits = ir.funcs.iter().map(|f| ends(f)).collect();
        let (blocking, staggered) = (vec![false; n], vec![false; n]);
        let mut compiled = vec![false; n];
        functions.iter().for_each(|f| compiled[f.0 as usize] = true);
        let mut reached = Reached {
            waits,
            compiled,
            exits,
            some_exit: false,
            fibers: false,
            blocking,
            some_blocking: false,
            staggered,
            shared: SharedLayout::new(ir, &pass::reached(ir, kernel)),
        };
        reached.some_exit = callees.iter().any(|f| reached.exits[f.0 as usize]);
        reached.extend(
            &callees,
            |reached| &mut reached.exits,
            |reached, f| ir.func(f).calls.iter().any(|c| reached.may_end(&c.callee)),
        );
        reached.find_fibers(ir, functions, &callees, options);
        reached
    }

    /// Adds functions to a set of them until no more belong to it, given those that are in it.
    fn extend(
        &mut self,
        functions: &[FuncId],
        set: fn(&mut Reached) -> &mut Vec<bool>,
        belongs: impl Fn(&Reached, FuncId) -> bool,
    ) {
        let mut more = true;
        while std::mem::take(&mut more) {
            for f in functions {
                more |= belongs(self, *f) && !std::mem::replace(&mut set(self)[f.0 as usize], true);
            }
        }
    }

    /// Finds the functions in which lanes wait for others, and whether calls of them need fibers.
    fn find_fibers(&mut self, ir: &Ir<Placed>, functions: &[FuncId], callees: &[FuncId], options: &Options) {
        let waits = |func: &Func| func.insts.iter().any(|i| waits_in_warp(func, i) || waits_at_barrier(func, i));
        let may_wait =
            |func: &Func| waits(func) || func.insts.iter().any(|i| observes_others(func, i) || polls(func, i));
        if self.waits == Waits::Never && !callees.iter().any(|f| may_wait(ir.func(*f))) {
            return;
        }
        let mut prepared: Vec<Option<Prepared>> = ir.funcs.iter().map(|_| None).collect();
        for f in functions {
            prepared[f.0 as usize] = Some(Prepared::new(*f, ir.func(*f), options, self));
        }
        let made = |f: FuncId| prepared[f.0 as usize].as_ref();
        for f in callees {
            self.blocking[f.0 as usize] = waits(ir.func(*f)) || made(*f).is_some_and(|p| p.spins);
        }
        self.some_blocking = callees.iter().any(|f| self.blocking[f.0 as usize]);
        self.extend(
            callees,
            |reached| &mut reached.blocking,
            |reached, f| ir.func(f).calls.iter().any(|c| reached.may_block(&c.callee)),
        );
        self.extend(
            callees,
            |reached| &mut reached.staggered,
            |reached, f| reached.blocking[f.0 as usize] && made(f).is_some_and(|p| p.returns_divergent(reached)),
        );
        self.fibers = functions.iter().any(|f| made(*f).is_some_and(|p| p.needs_call_fibers(self)));
        if self.fibers {
            self.waits = self.waits.max(Waits::Spinning);
        }
    }

    /// Whether lanes may wait in a callee for lanes that have not called it.
    pub fn may_block(&self, callee: &Callee) -> bool {
        match callee {
            Callee::Direct(f) => self.blocking[f.0 as usize],
            Callee::Indirect(..) => self.some_blocking,
        }
    }

    /// Whether lanes of a warp may return from a function at different times.
    pub fn returns_divergent(&self, f: FuncId) -> bool {
        self.staggered[f.0 as usize]
    }

    /// Whether lanes of a warp may return from a callee at different times.
    pub fn may_diverge(&self, callee: &Callee) -> bool {
        match callee {
            Callee::Direct(f) => self.returns_divergent(*f),
            Callee::Indirect(..) => true,
        }
    }

    /// Whether lanes may wait in a function, or in calls in it, for lanes that have not called it. They leave it group by group, so that the
    /// sweep passes blocks more than once.
    pub fn is_blocking(&self, id: FuncId, func: &Func) -> bool {
        self.fibers && (self.blocking[id.0 as usize] || func.calls.iter().any(|c| self.may_block(&c.callee)))
    }

    fn may_end(&self, callee: &Callee) -> bool {
        match callee {
            Callee::Direct(f) => self.exits[f.0 as usize],
            Callee::Indirect(..) => self.some_exit,
        }
    }

    /// Whether an instruction is a call in which threads may exit.
    pub fn may_exit(&self, func: &Func, inst: &Inst) -> bool {
        match (func.variant(inst).op, func.operands(inst.srcs).last()) {
            (Opcode::Call, Some(Operand::Call(site))) => self.may_end(&func.calls[*site as usize].callee),
            _ => false,
        }
    }
}

/// How a function waits for other threads.
fn waits(func: &Func) -> Waits {
    match () {
        _ if func.insts.iter().any(|i| waits_at_barrier(func, i)) => Waits::AtBarriers,
        // Those that only arrive at the cluster's barrier need its state.
        _ if func.insts.iter().any(|i| polls(func, i) || is_cluster_barrier(func, i)) => Waits::Spinning,
        _ if spins(func, &Cfg::new(func, |_, _| false)) => Waits::Spinning,
        _ => Waits::Never,
    }
}

/// Whether an instruction arrives or waits at the cluster's barrier.
pub fn is_cluster_barrier(func: &Func, inst: &Inst) -> bool {
    let v = func.variant(inst);
    v.op == Opcode::Barrier && v.has(Mod::Cluster)
}

/// Whether an instruction waits at the cluster's barrier.
pub fn waits_in_cluster(func: &Func, inst: &Inst) -> bool {
    is_cluster_barrier(func, inst) && func.variant(inst).has(Mod::Wait)
}

/// Whether an instruction waits at a barrier of the CTA or of the cluster.
pub fn waits_at_barrier(func: &Func, inst: &Inst) -> bool {
    is_cta_barrier(func, inst) || waits_in_cluster(func, inst)
}

/// Whether an instruction tests for progress of other threads, so that the warp yields after a failed test: phases of
/// barrier objects, columns of tensor memory.
pub fn polls(func: &Func, inst: &Inst) -> bool {
    let v = func.variant(inst);
    match v.op {
        Opcode::Mbarrier => v.has(Mod::TestWait) || v.has(Mod::TryWait),
        Opcode::Tcgen05 => v.has(Mod::Alloc),
        _ => false,
    }
}
