//! Instructions executed by the reference engine, one at a time: operands are stored as rows of lanes, results loaded
//! back.

use crate::ctx::{Helper, at};
use crate::emit::{
    function::reach::polls,
    function::{Emitter, Result},
    site::SiteKind,
    text::{Elem, Ty, Val, constant, int},
};
use margay_exec::single_step;
use margay_ir::{FormalHome, Inst, Operand, VReg, pass::Shape};
use margay_isa::Opcode;

/// An instruction whose operands have been stored for the reference engine.
pub(in crate::emit) struct Spilled {
    /// Number of the site.
    pub site: Val,
    /// Buffer with the rows of the registers that it reads.
    pub input: Val,
    /// Registers that it writes, and the number of their rows.
    pub writes: Vec<VReg>,
    pub written: usize,
}

impl Emitter<'_> {
    /// Lets the reference engine execute an instruction, if it can do so in isolation.
    pub fn effect(&mut self, inst: &Inst) -> Result<()> {
        self.single_step(inst, false)
    }

    /// The same for a path that is taken only if the program does what PTX leaves undefined.
    pub fn cold_effect(&mut self, inst: &Inst) -> Result<()> {
        self.single_step(inst, true)
    }

    fn single_step(&mut self, inst: &Inst, seldom: bool) -> Result<()> {
        let func = self.ir.func(self.id);
        let original = &func.insts[self.inst as usize];
        if !single_step::executes_alone(func, original) {
            return self.refuse(func.variant(inst).to_string());
        }
        let Spilled { site, input, writes, written } = self.spill(seldom)?;
        let [_, output] = self.buffers(0, written);
        let (live, mask) = (self.alive_bits(), self.active_bits());
        self.helper(Helper::Effect, &[&site, &live, &mask, &input, &output]);
        let guard = self.guard(inst);
        self.fill(&writes, &output, guard.as_ref());
        self.yield_unless(inst);
        Ok(())
    }

    /// Yields to other warps if an instruction [`polls`] and has not found what it looks for in some lane.
    pub fn yield_unless(&mut self, inst: &Inst) {
        let func = self.func;
        if let Some(Operand::Reg(r)) = func.operands(inst.dsts).first().filter(|_| polls(func, inst)) {
            self.wait_if_not(*r);
        }
    }

    /// Stores the registers that the original instruction reads as rows: with its guard, and with registers that are
    /// constants in the prepared copy.
    pub fn spill(&mut self, seldom: bool) -> Result<Spilled> {
        let func = self.ir.func(self.id);
        let (reads, writes) = single_step::registers(func, &func.insts[self.inst as usize]);
        let rows = |list: &[VReg]| list.iter().map(|r| single_step::rows_of(func.regs[r.0 as usize])).sum::<usize>();
        let (read, written) = (rows(&reads), rows(&writes));
        let [input, _] = self.buffers(read, 0);
        let mut at = 0;
        for r in &reads {
            let p = self.w.offset_const(&input, at * 128);
            let ty = func.regs[r.0 as usize];
            if ty.bits() == 1 {
                let v = self.value(&self.constant_or(*r), Elem::I1)?;
                let v = self.bits(&v);
                self.w.store(&v, &p, 64);
            } else {
                let v = self.value(&self.constant_or(*r), self.slots[r.0 as usize].elem)?;
                let v = self.w.resize(&v, Elem::int(ty.bits().next_power_of_two().max(32)), false);
                let v = self.w.splat(&v);
                self.w.store(&v, &p, 64);
            }
            at += single_step::rows_of(ty) as u64;
        }
        let site = self.site(SiteKind::Effect { reads: read, writes: written, seldom });
        Ok(Spilled { site: int(Elem::I32, site as i128), input, writes, written })
    }

    /// A register, or the constant that it holds: what else reads it reads that.
    pub fn constant_or(&self, r: VReg) -> Operand {
        let func = self.func;
        let formal = |home: &FormalHome| matches!(home, FormalHome::Regs(regs) if regs.contains(&r));
        let definition = self.spills.definition[r.0 as usize].map(|i| &func.insts[i as usize]);
        let constant = definition.filter(|i| func.variant(i).op == Opcode::Mov && !func.params.iter().any(formal));
        match constant.map(|i| func.operands(i.srcs)) {
            Some([Operand::Imm(bits)]) => Operand::Imm(*bits),
            _ => Operand::Reg(r),
        }
    }

    /// Writes registers from rows, in lanes of a mask if there is one.
    pub fn fill(&mut self, writes: &[VReg], output: &Val, mask: Option<&Val>) {
        let func = self.ir.func(self.id);
        let mut at = 0;
        for r in writes {
            let p = self.w.offset_const(output, at * 128);
            let (ty, elem) = (func.regs[r.0 as usize], self.slots[r.0 as usize].elem);
            let v = if ty.bits() == 1 {
                let v = self.w.load(Ty::scalar(Elem::I32), &p, 64);
                self.unpack_bits(&v)
            } else {
                let v = self.w.load(Ty::lanes(Elem::int(ty.bits().next_power_of_two().max(32))), &p, 64);
                self.w.resize(&v, elem, false)
            };
            let same = self.slots[r.0 as usize].shape == Shape::Uniform;
            let v = if same { self.first_active(&v) } else { v };
            self.write(*r, &v, mask);
            at += single_step::rows_of(ty) as u64;
        }
    }

    /// Records that lanes poll memory, for deadlock reports.
    pub fn note_poll(&mut self, lanes: &Val) {
        let site = self.site(SiteKind::Poll) as i128 + 1;
        let p = self.ctx_pointer(at::POLLS);
        self.w.store(&int(Elem::I32, site), &p, 4);
        let p = self.ctx_pointer(at::POLLED);
        let (ty, lanes) = (Ty::lanes(Elem::I32), self.unpack_bits(lanes));
        let before = self.w.load(ty, &p, 4);
        let now = self.w.select(&lanes, &constant(ty, site), &before);
        self.w.store(&now, &p, 4);
    }

    /// Records that a warp whose loops may wait for others has changed memory, where a condition holds if there is one: then it does not
    /// only poll.
    pub fn note_change(&mut self, some: Option<&Val>) {
        let p = self.ctx_pointer(at::CHANGED);
        let one = match some {
            Some(some) => {
                let (old, some) = (self.w.load(Ty::scalar(Elem::I32), &p, 4), self.w.resize(some, Elem::I32, false));
                self.w.op("or", &old, &some)
            }
            None => int(Elem::I32, 1),
        };
        self.w.store(&one, &p, 4);
    }

    /// Yields to other warps if a lane's poll has failed.
    fn wait_if_not(&mut self, done: VReg) {
        let v = self.read(done);
        let no = self.w.op_const("xor", &v, 1);
        let no = self.w.splat(&no);
        let no = self.w.op("and", &self.active.clone(), &no);
        let some = self.any(&no);
        let (wait, on) = (self.w.label("poll"), self.w.label("polled"));
        self.w.branch(&some, &wait, &on);
        self.w.block(&wait);
        let lanes = self.bits(&no);
        self.note_poll(&lanes);
        // Polling again would change nothing. Where lanes may diverge, the others run at the next back edge, since they may be the ones
        // waited for.
        if self.prepared.spins {
            self.let_others_run();
        } else {
            self.refill();
        }
        self.helper(Helper::Yield, &[]);
        self.w.jump(&on);
        self.w.block(&on);
    }
}
