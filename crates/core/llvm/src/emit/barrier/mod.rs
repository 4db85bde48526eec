//! Barriers of kernels that run one fiber per warp: in divergent code, in device functions, with counts, arrivals and guards.
//!
//! Lanes that arrive are parked outside the sweep, so that other lanes of the warp can arrive elsewhere. When no lane
//! is left to run, the fiber suspends until some of its lanes are released; those resume after their barrier.

pub(in crate::emit) mod kernel;
pub(in crate::emit) mod spill;

use crate::ctx::{Helper, at};
use crate::emit::{
    call::{call_number, call_site},
    function::prepare::is_rendezvous,
    function::reach::waits_in_cluster,
    function::{Emitter, Mode, Result, Role},
    site::SiteKind,
    text::{Elem, Ty, Val, constant, int, named},
};
use margay_exec::barrier::Operands;
use margay_ir::{BlockId, Inst, Operand};
use margay_isa::Mod;

/// What a fiber does if none of the lanes that it waits for has been released.
#[derive(Clone, Copy, PartialEq, Eq)]
enum IfNone {
    /// It suspends until there are some.
    Suspend,
    /// It continues with other lanes.
    Continue,
}

impl Emitter<'_> {
    /// The instruction at which lanes wait at a cut.
    pub fn barrier_inst(&self, barrier: u32) -> Option<Inst> {
        let block = self.prepared.barriers[barrier as usize].block;
        self.func.insts(&self.func.blocks[block.0 as usize]).last().copied()
    }

    /// The active lanes arrive at a barrier, at a rendezvous or at a call on a fiber of its own.
    pub fn wait_at(&mut self, barrier: u32) -> Result<()> {
        let Some(inst) = self.barrier_inst(barrier) else { return self.refuse("a barrier") };
        if is_rendezvous(self.func, &inst) {
            return self.arrive_at_rendezvous(barrier, &inst);
        }
        if let Some(call) = call_number(self.func, &inst) {
            return self.call_on_fiber(barrier, call);
        }
        if waits_in_cluster(self.func, &inst) {
            return self.wait_in_cluster(barrier);
        }
        self.wait_in_cta(barrier, &inst)
    }

    /// The active lanes arrive at a barrier of the CTA.
    fn wait_in_cta(&mut self, barrier: u32, inst: &Inst) -> Result<()> {
        let variant = self.func.variant(inst).clone();
        let Some(operands) = Operands::of(&variant, self.func.operands(inst.srcs)) else {
            return self.refuse("a barrier without a number");
        };
        let Operands { id, count, predicate, arrives, reduction: reduces, .. } = operands;
        let (id, mut alike) = self.row_in_memory(&id)?;
        let count = match count {
            Some(count) => {
                let (count, uniform) = self.row_in_memory(&count)?;
                alike &= uniform;
                Some(count)
            }
            None => None,
        };
        let truth = match &predicate {
            Some(p) => {
                let p = self.value(p, Elem::I1)?;
                self.bits(&p)
            }
            None => int(Elem::I32, 0),
        };
        let (here, past) = self.split_by_guard(inst);
        let bits = self.bits(&here);
        let site = self.site(SiteKind::Barrier { counted: count.is_some(), reduces, arrives });
        let count = count.unwrap_or(id.clone());
        self.helper(Helper::Arrive, &[&int(Elem::I32, site as i128), &bits, &id, &count, &truth]);
        let next = self.prepared.barriers[barrier as usize].next;
        let position = self.prepared.cfg.position[self.prepared.barriers[barrier as usize].block.0 as usize];
        let stays = !arrives;
        if self.mode == Mode::Full && past.is_none() && (!stays || alike) {
            // All 32 lanes arrive at one barrier: they wait and resume together.
            if stays {
                self.released(&bits, None, IfNone::Suspend);
                self.write_reduction(inst, None);
            }
            let on = self.full_label(next);
            self.w.jump(&on);
            return Ok(());
        }
        if stays {
            self.park(barrier, &bits);
        }
        if let Some(lanes) = if stays { past } else { Some(self.active.clone()) } {
            self.join_pending(next.0, &lanes);
        }
        self.continue_masked(next, position);
        Ok(())
    }

    /// Stores an operand of 32 bits as a row of lanes; returns its address, and whether the operand is uniform.
    fn row_in_memory(&mut self, operand: &Operand) -> Result<(Val, bool)> {
        let v = self.value(operand, Elem::I32)?;
        let uniform = !v.ty.vector;
        let v = self.w.splat(&v);
        let row = self.w.alloca("<32 x i32>", 64);
        self.w.store(&v, &row, 64);
        Ok((row, uniform))
    }

    /// The active lanes for which the guard of an instruction holds, and the others, if there is a guard.
    fn split_by_guard(&mut self, inst: &Inst) -> (Val, Option<Val>) {
        let active = self.active.clone();
        let Some(guard) = self.guard(inst) else { return (active, None) };
        let guard = self.w.splat(&guard);
        let here = self.w.op("and", &active, &guard);
        let not = self.w.op_const("xor", &guard, 1);
        let past = self.w.op("and", &active, &not);
        (here, Some(past))
    }

    /// Adds lanes to the mask of those parked at a cut.
    pub fn park(&mut self, place: u32, lanes: &Val) {
        let waiting = self.lane_sets.waiting[place as usize].clone();
        let old = self.w.load(lanes.ty, &waiting, 4);
        let all = self.w.op("or", &old, lanes);
        self.w.store(&all, &waiting, 4);
    }

    /// Ends a block at which lanes were parked: what is left of a full warp continues in the masked version.
    pub fn continue_masked(&mut self, next: BlockId, position: u32) {
        match self.mode {
            Mode::Full => {
                let on = self.masked_label(next);
                self.w.jump(&on);
            }
            Mode::Masked => self.next(position),
        }
    }

    fn wait_in_cluster(&mut self, barrier: u32) -> Result<()> {
        self.cluster_barrier(SiteKind::Cluster { waits: true });
        let bits = self.active_bits();
        self.park(barrier, &bits);
        let position = self.prepared.cfg.position[self.prepared.barriers[barrier as usize].block.0 as usize];
        self.continue_masked(self.prepared.barriers[barrier as usize].next, position);
        Ok(())
    }

    /// The active lanes arrive at the cluster's barrier, or wait at it: a [`SiteKind::Cluster`].
    pub fn cluster_barrier(&mut self, kind: SiteKind) {
        let site = int(Elem::I32, self.site(kind) as i128);
        let bits = self.active_bits();
        self.helper(Helper::Cluster, &[&site, &bits]);
    }

    /// Takes the released lanes out of `lanes`.
    fn released(&mut self, lanes: &Val, output: Option<&Val>, if_none: IfNone) -> Val {
        let place = self.w.alloca("i32", 4);
        let output = output.cloned().unwrap_or(named(Ty::scalar(Elem::Ptr), "null"));
        let suspends = int(Elem::I32, (if_none == IfNone::Suspend).into());
        self.helper(Helper::Wait, &[lanes, &place, &output, &suspends]);
        self.w.load(lanes.ty, &place, 4)
    }

    /// Writes the result of a barrier's reduction in the released lanes.
    fn write_reduction(&mut self, inst: &Inst, lanes: Option<&Val>) {
        let variant = self.func.variant(inst);
        let Some(Operand::Reg(r)) = self.func.operands(inst.dsts).first().copied() else { return };
        let popc = variant.has(Mod::Popc);
        let v = self.ctx_value(Elem::I32, at::REDUCED);
        let v = if popc { v } else { self.w.cmp("icmp ne", &v, &int(Elem::I32, 0)) };
        self.write(r, &v, lanes);
    }

    /// The parked lanes: all of them, and those parked elsewhere than in calls.
    fn waiting_lanes(&mut self) -> [Val; 2] {
        let [mut all, mut here] = [0, 0].map(|none| int(Elem::I32, none));
        for (k, p) in self.lane_sets.waiting.clone().into_iter().enumerate() {
            let lanes = self.w.load(Ty::scalar(Elem::I32), &p, 4);
            all = self.w.op("or", &all, &lanes);
            if self.barrier_inst(k as u32).is_some_and(|i| call_site(self.func, &i).is_none()) {
                here = self.w.op("or", &here, &lanes);
            }
        }
        [all, here]
    }

    /// End of the sweep: suspends while lanes are parked or held, else jumps to `done`.
    pub fn await_barriers(&mut self, first: &str, done: &str) -> Result<()> {
        if self.lane_sets.waiting.is_empty() && self.lane_sets.held.is_none() {
            self.w.jump(done);
            return Ok(());
        }
        let [mut all, here] = self.waiting_lanes();
        if let Some(held) = self.held_lanes() {
            all = self.w.op("or", &all, &held);
        }
        let some = self.w.cmp("icmp ne", &all, &int(Elem::I32, 0));
        let wait = self.w.label("wait");
        self.w.branch(&some, &wait, done);
        self.w.block(&wait);
        self.finish_others(&all);
        self.report_held();
        let output = self.rendezvous_rows();
        let released = self.released(&here, output.as_ref(), IfNone::Suspend);
        self.resume(&released, output.as_ref())?;
        self.w.jump(first);
        Ok(())
    }

    /// Lanes are still pending in a loop that polls: yields to other warps, then restarts the sweep.
    pub fn yield_to_others(&mut self) -> Result<()> {
        self.w.block("overtake");
        let first = self.masked_label(self.region.blocks[0]);
        let [mut all, here] = self.waiting_lanes();
        if self.role == Role::Device && self.reached.fibers {
            for b in self.region.blocks.clone() {
                let mask = self.get_pending(b.0);
                let bits = self.bits(&mask);
                all = self.w.op("or", &all, &bits);
            }
            self.finish_others(&all);
        }
        self.report_held();
        self.refill();
        self.helper(Helper::Yield, &[]);
        if !self.lane_sets.waiting.is_empty() {
            let output = self.rendezvous_rows();
            let released = self.released(&here, output.as_ref(), IfNone::Continue);
            self.resume(&released, output.as_ref())?;
        }
        self.w.jump(&first);
        Ok(())
    }

    /// Returns lanes that have finished the function, while others are still parked in it.
    fn finish_others(&mut self, here: &Val) {
        if self.role != Role::Device || !self.reached.fibers {
            return;
        }
        let gone = self.w.op_const("xor", here, -1);
        let gone = self.w.op("and", &named(gone.ty, "%mask"), &gone);
        self.helper(Helper::Finish, &[&gone]);
    }

    /// Resumes released lanes after their barriers.
    fn resume(&mut self, released: &Val, output: Option<&Val>) -> Result<()> {
        let (mode, active) = (self.mode, self.active.clone());
        (self.mode, self.active) = (Mode::Full, constant(Ty::lanes(Elem::I1), 1));
        for (k, p) in self.lane_sets.waiting.clone().into_iter().enumerate() {
            let lanes = self.w.load(Ty::scalar(Elem::I32), &p, 4);
            let mut go = self.w.op("and", &lanes, released);
            let stay = self.w.op("xor", &lanes, &go);
            self.w.store(&stay, &p, 4);
            let Some(inst) = self.barrier_inst(k as u32) else { continue };
            let call = call_number(self.func, &inst);
            if call.is_some() {
                // Threads may have exited in the call.
                let alive = self.alive_bits();
                go = self.w.op("and", &go, &alive);
            }
            let go = self.unpack_bits(&go);
            match (call, output) {
                (Some(call), _) => self.return_from_call(k as u32, call, &go)?,
                (None, Some(output)) if is_rendezvous(self.func, &inst) => self.write_rendezvous(&inst, output, &go),
                (None, _) => self.write_reduction(&inst, Some(&go)),
            }
            let next = self.prepared.barriers[k].next;
            self.join_pending(next.0, &go);
        }
        (self.mode, self.active) = (mode, active);
        Ok(())
    }
}
