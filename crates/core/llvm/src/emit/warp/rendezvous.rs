//! Warp operations whose lanes arrive on different sides of a branch.
//!
//! Lanes that arrive while other members are elsewhere are parked, as at a barrier. The reference engine keeps their
//! operands and computes the results when the last member has arrived; then the lanes resume after their instructions. Lanes that arrive
//! together but with different member masks are parked too: each waits for those with its own mask.

use crate::ctx::Helper;
use crate::emit::{
    function::{Emitter, Mode, Result, prepare::is_rendezvous},
    text::{Elem, Ty, Val, constant},
    warp::single_step::Spilled,
};
use margay_exec::single_step;
use margay_ir::{Inst, Operand, pass::liveness::inst_writes};
use margay_isa::Opcode;

impl Emitter<'_> {
    /// The active lanes arrive at a warp operation.
    pub fn arrive_at_rendezvous(&mut self, k: u32, inst: &Inst) -> Result<()> {
        let next = self.prepared.barriers[k as usize].next;
        let position = self.prepared.cfg.position[self.prepared.barriers[k as usize].block.0 as usize];
        let park = self.w.label("park");
        if let Some(waits) = self.waits_for_members(inst)? {
            let go = self.w.label("met");
            self.w.branch_unlikely(&waits, &park, &go);
            self.w.block(&go);
        } else {
            self.instruction(inst)?;
            let on = self.full_label(next);
            self.w.jump(&on);
            return Ok(());
        }
        self.instruction(inst)?;
        match self.mode {
            Mode::Full => {
                let on = self.full_label(next);
                self.w.jump(&on);
            }
            Mode::Masked => {
                let active = self.active.clone();
                self.join_pending(next.0, &active);
                self.next(position);
            }
        }
        self.w.block(&park);
        let Spilled { site, input, .. } = self.spill(false)?;
        let (live, lanes) = (self.alive_bits(), self.active_bits());
        self.helper(Helper::Park, &[&site, &live, &lanes, &input]);
        self.park(k, &lanes);
        self.continue_masked(next, position);
        Ok(())
    }

    /// Whether some active lane's member mask, the last operand, names an inactive lane, or an active one with another mask; `None`
    /// if that cannot be. (Lanes that their own mask leaves out are released by the host.)
    fn waits_for_members(&mut self, inst: &Inst) -> Result<Option<Val>> {
        let members = match self.func.operands(inst.srcs).last().copied() {
            None | Some(Operand::Sink) => constant(Ty::scalar(Elem::I32), -1),
            Some(o) => self.value(&o, Elem::I32)?,
        };
        let differ = members.ty.vector.then(|| self.masks_differ(&members));
        if self.mode == Mode::Full {
            return Ok(differ);
        }
        let (here, alive) = (self.active_bits(), self.alive_bits());
        let away = self.w.op_const("xor", &here, -1);
        let away = self.w.op("and", &away, &alive);
        let waited = self.w.op("and", &members, &away);
        let some = self.w.cmp("icmp ne", &waited, &constant(waited.ty, 0));
        let some = self.w.splat(&some);
        let active = self.active.clone();
        let some = self.w.op("and", &active, &some);
        let missing = self.any(&some);
        Ok(Some(match differ {
            Some(differ) => self.w.op("or", &missing, &differ),
            None => missing,
        }))
    }

    /// A buffer for the results of any operation at which lanes may be parked; `None` if there is no such operation.
    pub fn rendezvous_rows(&mut self) -> Option<Val> {
        let func = self.ir.func(self.id);
        let rows = |k: u32| {
            let block = self.prepared.barriers[k as usize].block;
            let inst = self.func.blocks[block.0 as usize].insts.range().last()?;
            let parks = is_rendezvous(self.func, &self.func.insts[inst]);
            let (_, writes) = single_step::registers(func, &func.insts[inst]);
            parks.then(|| writes.iter().map(|r| single_step::rows_of(func.regs[r.0 as usize])).sum::<usize>())
        };
        let most = (0..self.prepared.barriers.len() as u32).filter_map(rows).max()?;
        Some(self.buffers(0, most.max(1))[1].clone())
    }

    /// Writes the results of lanes that were parked at an operation.
    pub fn write_rendezvous(&mut self, inst: &Inst, output: &Val, lanes: &Val) {
        if matches!(self.func.variant(inst).op, Opcode::Bar | Opcode::Barrier) {
            return;
        }
        let mut writes = Vec::new();
        inst_writes(self.func, inst, &mut |r| writes.push(r));
        writes.sort();
        writes.dedup();
        self.fill(&writes, output, Some(lanes));
    }
}
