//! Control flow: the two versions of each block, terminators, and the dispatch of instructions by effect.

use crate::ctx::{Helper, at};
use crate::emit::{
    function::prepare::trivial_exit,
    function::{Emitter, Mode, Result, Role, serial::Point},
    site::SiteKind,
    text::{Elem, Ty, Val, constant, int},
};
use margay_ir::{
    BlockId, Inst, Operand, Terminator, VReg,
    pass::{Shape, observes_others},
};
use margay_isa::{Effect, Mod, Opcode};

impl Emitter<'_> {
    /// Emits a block in the current mode.
    pub fn block(&mut self, b: BlockId) -> Result<()> {
        match self.mode {
            Mode::Full => {
                let label = self.full_label(b);
                self.w.block(&label);
            }
            Mode::Masked => {
                if !self.enter_masked(b) {
                    return Ok(());
                }
            }
        }
        let func = self.func;
        self.here = b;
        self.count_together(b);
        self.enter_serial(b, Point::Start);
        let block = &func.blocks[b.0 as usize];
        let barrier = self.prepared.barrier_at[b.0 as usize];
        self.count_block(block.insts.len as usize + usize::from(!matches!(block.term, Terminator::Jump(_))));
        for i in block.insts.range() {
            let inst = func.insts[i];
            (self.inst, self.at) = (i as u32, inst.at);
            if barrier.is_some() && i + 1 == block.insts.range().end {
                break;
            }
            self.instruction(&inst)?;
        }
        if let Some(k) = barrier {
            return match self.role {
                Role::Grid => self.leave_region(k),
                Role::Warp(_) | Role::Device => self.wait_at(k),
            };
        }
        (self.inst, self.at) = (u32::MAX, block.at);
        if self.prepared.exits_in_call[b.0 as usize] {
            self.drop_lost(&block.term);
        }
        self.enter_serial(b, Point::End);
        self.terminator(b, &block.term)
    }

    /// Begins the masked version of a block: activates the lanes pending there, skips the block if there are none, and goes to the full
    /// version if there are 32. Returns false if the masked version ends here.
    fn enter_masked(&mut self, b: BlockId) -> bool {
        let position = self.prepared.cfg.position[b.0 as usize];
        let label = self.masked_label(b);
        self.w.block(&label);
        let waiting = self.get_pending(b.0);
        let any = self.any(&waiting);
        let go = self.w.label("go");
        if self.ending_loops(position).is_empty() {
            let skip = self.following_label(position);
            self.w.branch(&any, &go, &skip);
            self.w.follow(&go);
        } else {
            let skip = self.w.label("skip");
            self.w.branch(&any, &go, &skip);
            let mark = self.w.mark();
            self.w.follow(&skip);
            self.next(position);
            self.w.join(&go, mark);
        }
        let whole = self.prepared.holds[b.0 as usize] && self.hold(b, &waiting);
        let none = constant(Ty::lanes(Elem::I1), 0);
        self.set_pending(b.0, &none);
        if whole && !self.only_masked() {
            let full = self.full_label(b);
            self.w.jump(&full);
            return false;
        }
        self.active = if whole { constant(Ty::lanes(Elem::I1), 1) } else { waiting };
        if self.prepared.cfg.preds[b.0 as usize].len() > 1 && !self.only_masked() {
            let all = self.all_active();
            let (full, stay) = (self.full_label(b), self.w.label("part"));
            self.w.branch(&all, &full, &stay);
            self.w.follow(&stay);
        }
        true
    }

    /// Threads may have exited in a device function: drops their lanes.
    fn drop_lost(&mut self, term: &Terminator) {
        let p = self.ctx_pointer(at::ALIVE);
        let alive = self.w.load(Ty::scalar(Elem::I32), &p, 4);
        let left = self.unpack_bits(&alive);
        match (self.mode, term) {
            (Mode::Full, Terminator::Jump(next)) => {
                let all = self.w.cmp("icmp eq", &alive, &int(Elem::I32, -1));
                let (go_on, lost) = (self.w.label("kept"), self.w.label("lost"));
                self.w.branch(&all, &go_on, &lost);
                self.w.block(&lost);
                if let Some(own) = self.lane_sets.alive.clone() {
                    self.w.store(&alive, &own, 4);
                }
                self.set_pending(next.0, &left);
                let label = self.masked_label(*next);
                self.w.jump(&label);
                self.w.block(&go_on);
            }
            _ => {
                let active = self.active.clone();
                self.active = self.w.op("and", &active, &left);
                if let Some(own) = self.lane_sets.alive.clone() {
                    self.w.store(&alive, &own, 4);
                }
            }
        }
    }

    fn terminator(&mut self, b: BlockId, term: &Terminator) -> Result<()> {
        let position = self.prepared.cfg.position[b.0 as usize];
        match term {
            Terminator::Jump(to) => self.go(position, &[(*to, None)]),
            Terminator::Branch { pred, negated, then, other, .. } => {
                if self.mode == Mode::Full && self.slots[pred.0 as usize].shape == Shape::Varying {
                    let (yes, no) = if *negated { (*other, *then) } else { (*then, *other) };
                    self.branch_by_extremes(b, *pred, yes, no)?;
                }
                let p = self.read(*pred);
                let p = if *negated { self.w.op_const("xor", &p, 1) } else { p };
                let q = self.w.op_const("xor", &p, 1);
                self.go(position, &[(*then, Some(p)), (*other, Some(q))])
            }
            Terminator::Switch { index, targets, .. } => {
                let arms = self.switch_arms(index, targets)?;
                self.go(position, &arms)
            }
            Terminator::Ret => {
                if self.func.noreturn {
                    self.note_if(&int(Elem::I1, 1), SiteKind::Returned);
                }
                self.store_returns()?;
                self.end(position)
            }
            Terminator::Exit => {
                if self.role == Role::Device {
                    let lanes = self.active.clone();
                    self.exit_threads(&lanes);
                }
                self.end(position)
            }
        }
    }

    /// In the full version, branches at once where the smallest and the largest operand of a comparison decide it for the whole warp. Otherwise
    /// emits the comparison lane by lane. `yes` and `no` are the targets by the value of the predicate.
    fn branch_by_extremes(&mut self, b: BlockId, pred: VReg, yes: BlockId, no: BlockId) -> Result<()> {
        let Some(decided) = self.decide_by_extremes(b, pred)? else { return Ok(()) };
        let position = self.prepared.cfg.position[b.0 as usize];
        // Few warps exit at once, so that arm is tested last.
        let mut arms = [(yes, decided.all), (no, decided.none)];
        if trivial_exit(self.func, yes) {
            arms.swap(0, 1);
        }
        for (to, certain) in arms {
            let Some(certain) = certain else { continue };
            let next = self.w.label("perhaps");
            self.branch_full(position, to, Some(&certain), &next);
            self.w.block(&next);
        }
        if let Some(warp) = &decided.warp {
            self.assume_warp(warp);
        }
        self.instruction(&decided.inst)
    }

    /// The targets of a jump through a table, each with the lanes that go there. Faults if the index is beyond the table.
    fn switch_arms(&mut self, index: &Operand, targets: &[BlockId]) -> Result<Vec<(BlockId, Option<Val>)>> {
        let i = self.value(index, Elem::I32)?;
        let mut arms: Vec<(BlockId, Option<Val>)> = Vec::new();
        for (n, t) in targets.iter().enumerate() {
            let hit = self.w.cmp("icmp eq", &i, &int(Elem::I32, n as i128));
            match arms.iter_mut().find(|(b, _)| b == t) {
                Some((_, Some(old))) => *old = self.w.op("or", old, &hit),
                _ => arms.push((*t, Some(hit))),
            }
        }
        let count = int(Elem::I32, targets.len() as i128);
        let beyond = self.w.cmp("icmp uge", &i, &count);
        let numbers = [&i, &count, &count].map(|v| self.w.resize(v, Elem::I64, false));
        self.refuse_if(&beyond, SiteKind::Jump, numbers.each_ref());
        Ok(arms)
    }

    /// The active lanes end.
    pub(super) fn end(&mut self, position: u32) -> Result<()> {
        match self.mode {
            Mode::Full => {
                let done = self.done_label();
                self.w.jump(&done);
            }
            Mode::Masked => {
                let active = self.active.clone();
                self.retire(&active);
                self.next(position);
            }
        }
        Ok(())
    }

    /// Sends lanes to blocks: each arm has a scalar condition or a mask; the last one takes the rest.
    pub(super) fn go(&mut self, position: u32, arms: &[(BlockId, Option<Val>)]) -> Result<()> {
        let uniform = arms.iter().all(|(_, c)| c.as_ref().is_none_or(|c| !c.ty.vector));
        match (self.mode, uniform) {
            (Mode::Full, true) => self.go_uniform(position, arms),
            (Mode::Full, false) => self.diverge(position, arms),
            (Mode::Masked, _) => {
                let active = self.active.clone();
                for (to, condition) in arms {
                    if let Some(c) = condition
                        && trivial_exit(self.func, *to)
                    {
                        let c = self.w.splat(c);
                        let lanes = self.w.op("and", &active, &c);
                        self.retire(&lanes);
                        continue;
                    }
                    match condition {
                        Some(c) if c.ty.vector => {
                            let lanes = self.w.op("and", &active, c);
                            self.join_pending(to.0, &lanes);
                        }
                        Some(c) => self.join_pending_if(to.0, c, &active),
                        None => self.join_pending(to.0, &active),
                    }
                }
                self.next(position);
            }
        }
        Ok(())
    }

    fn go_uniform(&mut self, position: u32, arms: &[(BlockId, Option<Val>)]) {
        let Some(((last, _), firsts)) = arms.split_last() else { return };
        for (to, c) in firsts {
            let next = self.w.label("else");
            let mark = self.w.mark();
            self.branch_full(position, *to, c.as_ref(), &next);
            self.w.join(&next, mark);
        }
        self.branch_full(position, *last, None, "");
    }

    /// Branches to a block in the full version if the condition holds, else to `next`. Back edges are counted.
    fn branch_full(&mut self, position: u32, to: BlockId, condition: Option<&Val>, next: &str) {
        let target = if trivial_exit(self.func, to) { self.done_label() } else { self.full_label(to) };
        let back = self.prepared.cfg.position[to.0 as usize] <= position;
        let label = if back { self.w.label("back") } else { target.clone() };
        match condition {
            Some(c) => self.w.branch(c, &label, next),
            None => self.w.jump(&label),
        }
        if !back {
            return;
        }
        self.w.block(&label);
        if !self.prepared.spins {
            return self.count_back_edge(&target);
        }
        let fuel_left = self.spend();
        let tired = self.w.label("tired");
        self.w.branch(&fuel_left, &target, &tired);
        self.w.block(&tired);
        let all = constant(Ty::lanes(Elem::I1), 1);
        self.set_pending(to.0, &all);
        self.w.jump("overtake");
    }

    /// A branch of all 32 lanes that may diverge: stays in the full version if all agree, else enters the masked one.
    fn diverge(&mut self, position: u32, arms: &[(BlockId, Option<Val>)]) {
        // Lanes that go back to a loop's header wait there until the loop is repeated, when the others in the loop have reached its end.
        let waits = arms.iter().any(|(to, _)| {
            let to = self.prepared.cfg.position[to.0 as usize];
            to <= position && !self.ending_loops(position).iter().any(|l| l.first == to)
        });
        // The first block, in layout order, that has lanes; the sweep begins there.
        let mut lowest: Option<u32> = None;
        let mut masks = Vec::new();
        // An arm that exits is tested last, since most warps take the other one.
        let mut arms = arms.to_vec();
        arms.sort_by_key(|(to, _)| trivial_exit(self.func, *to));
        for (to, c) in &arms {
            let mask = c.clone().unwrap_or_else(|| constant(Ty::lanes(Elem::I1), 1));
            let bits = self.bits(&mask);
            let all = self.w.cmp("icmp eq", &bits, &int(Elem::I32, -1));
            let next = self.w.label("apart");
            let mark = self.w.mark();
            self.branch_full(position, *to, Some(&all), &next);
            self.w.join(&next, mark);
            masks.push((*to, mask));
        }
        for (to, mask) in masks {
            if trivial_exit(self.func, to) {
                self.retire(&mask);
                continue;
            }
            self.join_pending(to.0, &mask);
            let to = self.prepared.cfg.position[to.0 as usize];
            lowest = Some(lowest.map_or(to, |l| l.min(to)));
        }
        match lowest {
            Some(_) if waits => self.next(position),
            Some(first) => {
                let label = self.masked_label(self.prepared.cfg.order[first as usize]);
                self.w.jump(&label);
            }
            None => {
                let done = self.done_label();
                self.w.jump(&done);
            }
        }
    }

    /// Faults in the active lanes for which the condition holds.
    pub fn fault_if(&mut self, condition: &Val, what: &'static str) {
        self.stop_if(condition, SiteKind::Fault(what.into()));
    }

    fn stop_if(&mut self, condition: &Val, kind: SiteKind) {
        self.report_if(condition, kind, "stop");
    }

    /// Notes an undefined use in the active lanes for which the condition holds; execution continues.
    pub fn note_if(&mut self, condition: &Val, kind: SiteKind) {
        let on = self.w.label("noted");
        self.report_if(condition, kind, &on);
        self.w.jump(&on);
        self.w.block(&on);
    }

    /// Reports active lanes for which the condition holds to the host, and goes to the label `reported`; otherwise execution continues.
    fn report_if(&mut self, condition: &Val, kind: SiteKind, reported: &str) {
        let bits = self.active_among(condition);
        let any = self.w.cmp("icmp ne", &bits, &int(Elem::I32, 0));
        let (bad, good) = (self.w.label("fault"), self.w.label("fine"));
        self.w.branch_unlikely(&any, &bad, &good);
        self.leave(&bad, reported, &good, |e| {
            let site = e.site(kind);
            e.helper(Helper::Fault, &[&int(Elem::I32, site as i128), &bits]);
        });
    }

    /// The active lanes for which the condition holds, as 32 bits.
    pub fn active_among(&mut self, condition: &Val) -> Val {
        let lanes = self.w.splat(condition);
        let active = self.active.clone();
        let lanes = if self.mode == Mode::Masked { self.w.op("and", &active, &lanes) } else { lanes };
        self.bits(&lanes)
    }

    /// Emits one instruction, by the effect of its row.
    pub fn instruction(&mut self, inst: &Inst) -> Result<()> {
        let atomic = matches!(self.func.variant(inst).op, Opcode::Atom | Opcode::Red);
        if self.prepared.spins && (observes_others(self.func, inst) || atomic) {
            let lanes = self.active_bits();
            self.note_poll(&lanes);
        }
        if self.prepared.spins && self.func.variant(inst).op == Opcode::St {
            self.note_change(None);
        }
        let variant = self.func.variant(inst);
        let op = variant.op;
        if margay_exec::unmodeled(variant) {
            return self.refuse(variant.to_string());
        }
        self.require_observable_shuffle(inst)?;
        if self.reported_elsewhere(inst) {
            return self.effect(inst);
        }
        self.observe_warp(inst);
        match (variant.op.row().effect, op) {
            (_, Opcode::Bar | Opcode::Barrier) if variant.has(Mod::Warp) => self.warp_barrier(inst),
            (_, Opcode::Barrier) if variant.has(Mod::Cluster) => {
                self.cluster_barrier(SiteKind::Cluster { waits: false });
                Ok(())
            }
            (_, Opcode::Tcgen05) if self.options.cluster.is_some() => self.refuse("tensor memory in a cluster launch"),
            (_, Opcode::Alloca | Opcode::Stacksave | Opcode::Stackrestore) => self.stack_op(inst),
            (Effect::Machine, Opcode::Cvta) => self.cvta(inst),
            (Effect::Machine, Opcode::Isspacep) => self.isspacep(inst),
            (Effect::Machine, _) => self.effect(inst),
            (Effect::Call, _) => self.call(inst),
            (Effect::Memory, _) => self.memory(inst),
            (Effect::Pure, _) => self.pure(inst),
            (Effect::Warp, _) => self.warp_op(inst),
            (Effect::Control, _) => self.control(inst),
        }
    }

    fn control(&mut self, inst: &Inst) -> Result<()> {
        match self.func.variant(inst).op {
            Opcode::Trap => {
                let all = self.guard(inst).unwrap_or_else(|| int(Elem::I1, 1));
                self.fault_if(&all, "trap");
                Ok(())
            }
            Opcode::Nanosleep | Opcode::Pmevent => Ok(()),
            _ => self.effect(inst),
        }
    }
}
