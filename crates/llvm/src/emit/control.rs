//! Control flow: blocks in their two versions, terminators, barriers, calls, and which emitter takes which row.

use super::{
    func::{Emitter, Mode, PATIENCE, Result, elem_of, symbol, trivial_exit},
    site::SiteKind,
    text::{Elem, Ty, Val, constant, int, named},
};
use crate::ctx::{Helper, at, status};
use margay_ir::{Arg, BlockId, Callee, FormalHome, Inst, Operand, Terminator, pass::Shape};
use margay_isa::{Effect, Mod};

/// Bytes of a value in the save area.
fn type_size(ty: Ty) -> u64 {
    u64::from(ty.elem.bits().div_ceil(8)) * if ty.vector { 32 } else { 1 }
}

impl Emitter<'_> {
    fn full_label(&self, b: BlockId) -> String {
        format!("b{}.full", b.0)
    }

    fn masked_label(&self, b: BlockId) -> String {
        format!("b{}.masked", b.0)
    }

    /// Where the sweep goes after the block at a layout position: back to a header whose loop ends here while lanes wait
    /// there, else on.
    fn next(&mut self, position: u32) {
        let mut ending: Vec<_> = self.cfg.loops.iter().filter(|l| l.last == position).copied().collect();
        ending.sort_by_key(|l| std::cmp::Reverse(l.first));
        for l in ending {
            let header = self.cfg.order[l.first as usize];
            let waiting = self.get_pending(header.0);
            let mut any = self.any(&waiting);
            if self.spins {
                let patient = self.spend();
                any = self.w.op("and", &any, &patient);
            }
            let (back, on) = (self.masked_label(header), self.w.label("left"));
            self.w.branch(&any, &back, &on);
            self.w.block(&on);
        }
        match self.cfg.order.get(position as usize + 1) {
            Some(b) => {
                let label = self.masked_label(*b);
                self.w.jump(&label);
            }
            None => self.w.jump("swept"),
        }
    }

    /// After the last block: done, unless an irreducible graph left lanes waiting behind the sweep.
    pub fn finish_sweep(&mut self) {
        if self.cfg.reducible && !self.spins {
            return self.w.jump("done");
        }
        let mut waiting = int(Elem::I1, 0);
        for b in 0..self.pending.len() as u32 {
            let mask = self.get_pending(b);
            let any = self.any(&mask);
            waiting = self.w.op("or", &waiting, &any);
        }
        let again = if self.spins { "overtake".to_string() } else { self.masked_label(self.cfg.order[0]) };
        self.w.branch(&waiting, &again, "done");
    }

    /// Takes one of the back edges that are left; whether one was. The count begins anew after the last.
    fn spend(&mut self) -> Val {
        let Some(fuel) = self.fuel.clone() else { return int(Elem::I1, 1) };
        let left = self.w.load(Ty::scalar(Elem::I32), &fuel, 4);
        let less = self.w.op_const("sub", &left, 1);
        let some = self.w.cmp("icmp ne", &less, &int(Elem::I32, 0));
        let kept = self.w.select(&some, &less, &int(Elem::I32, i128::from(PATIENCE)));
        self.w.store(&kept, &fuel, 4);
        some
    }

    /// Lanes wait behind the sweep: in a kernel other warps get their turn first, then the sweep begins anew.
    pub fn let_others_go_on(&mut self) {
        self.w.block("overtake");
        let first = self.masked_label(self.cfg.order[0]);
        if self.func.kind != margay_check::FuncKind::Kernel {
            return self.w.jump(&first);
        }
        let registers: Vec<u32> = (0..self.slots.len() as u32).collect();
        let save = self.ctx_value(Elem::Ptr, at::SAVE);
        self.save_state(&save, &registers, true);
        let label = self.w.label("resume");
        self.resumes.push(label.clone());
        let p = self.ctx_pointer(at::RESUME);
        self.w.store(&int(Elem::I32, self.resumes.len() as i128), &p, 4);
        self.w.line(format_args!("ret i32 {}", status::YIELD));
        self.w.block(&label);
        let save = self.ctx_value(Elem::Ptr, at::SAVE);
        self.save_state(&save, &registers, false);
        self.w.jump(&first);
    }

    /// Registers, promoted variables and waiting lanes to or from the save area.
    fn save_state(&mut self, save: &Val, registers: &[u32], out: bool) {
        for r in registers {
            self.move_slot(*r, save, out);
        }
        self.save_frame(save, out);
        for b in 0..self.pending.len() {
            let key = u32::MAX / 2 + b as u32;
            let (ty, pointer) = (self.packed_type(), self.pending[b].clone());
            self.move_saved(key, &ty.to_string(), type_size(ty), &pointer, save, out);
        }
    }

    /// One block in the current mode.
    pub fn block(&mut self, b: BlockId) -> Result<()> {
        let position = self.cfg.position[b.0 as usize];
        match self.mode {
            Mode::Full => {
                let label = self.full_label(b);
                self.w.block(&label);
            }
            Mode::Masked => {
                let label = self.masked_label(b);
                self.w.block(&label);
                let waiting = self.get_pending(b.0);
                let any = self.any(&waiting);
                let (go, skip) = (self.w.label("go"), self.w.label("skip"));
                self.w.branch(&any, &go, &skip);
                self.w.block(&skip);
                self.next(position);
                self.w.block(&go);
                let none = constant(Ty::lanes(Elem::I1), 0);
                self.set_pending(b.0, &none);
                self.active = waiting;
                if self.cfg.preds[b.0 as usize].len() > 1 {
                    let bits = self.active_bits();
                    let all = self.w.cmp("icmp eq", &bits, &int(Elem::I32, -1));
                    let (full, stay) = (self.full_label(b), self.w.label("part"));
                    self.w.branch(&all, &full, &stay);
                    self.w.block(&stay);
                }
            }
        }
        let func = self.func;
        let block = &func.blocks[b.0 as usize];
        for i in block.insts.range() {
            let inst = func.insts[i];
            (self.inst, self.at) = (i as u32, inst.at);
            self.instruction(b, &inst)?;
        }
        (self.inst, self.at) = (u32::MAX, block.at);
        self.terminator(b, &block.term)
    }

    fn terminator(&mut self, b: BlockId, term: &Terminator) -> Result<()> {
        let position = self.cfg.position[b.0 as usize];
        match term {
            Terminator::Jump(to) => self.go(position, &[(*to, None)]),
            Terminator::Branch { pred, negated, then, other, .. } => {
                let p = self.read(*pred);
                let p = if *negated { self.w.op_const("xor", &p, 1) } else { p };
                let q = self.w.op_const("xor", &p, 1);
                self.go(position, &[(*then, Some(p)), (*other, Some(q))])
            }
            Terminator::Switch { index, targets, .. } => {
                let i = self.value(index, Elem::I32)?;
                let mut arms: Vec<(BlockId, Option<Val>)> = Vec::new();
                for (n, t) in targets.iter().enumerate() {
                    let hit = self.w.cmp("icmp eq", &i, &int(Elem::I32, n as i128));
                    match arms.iter_mut().find(|(b, _)| b == t) {
                        Some((_, Some(old))) => *old = self.w.op("or", old, &hit),
                        _ => arms.push((*t, Some(hit))),
                    }
                }
                let beyond = self.w.cmp("icmp uge", &i, &int(Elem::I32, targets.len() as i128));
                self.fault_if(&beyond, "brx.idx beyond its table");
                self.go(position, &arms)
            }
            Terminator::Ret => {
                self.store_returns()?;
                self.end(position)
            }
            Terminator::Exit => {
                if self.func.kind != margay_check::FuncKind::Kernel {
                    return self.refuse("`exit` in a device function");
                }
                self.end(position)
            }
        }
    }

    fn end(&mut self, position: u32) -> Result<()> {
        match self.mode {
            Mode::Full => self.w.jump("done"),
            Mode::Masked => self.next(position),
        }
        Ok(())
    }

    /// Sends lanes to blocks: each arm has a condition (a scalar, or a mask), the last one takes what is left.
    fn go(&mut self, position: u32, arms: &[(BlockId, Option<Val>)]) -> Result<()> {
        let uniform = arms.iter().all(|(_, c)| c.as_ref().is_none_or(|c| !c.ty.vector));
        match (self.mode, uniform) {
            (Mode::Full, true) => self.go_uniform(position, arms),
            (Mode::Full, false) => self.part(position, arms),
            (Mode::Masked, _) => {
                let active = self.active.clone();
                for (to, condition) in arms {
                    if trivial_exit(self.func, *to) && condition.is_some() {
                        continue;
                    }
                    let lanes = match condition {
                        Some(c) => {
                            let c = self.w.splat(c);
                            self.w.op("and", &active, &c)
                        }
                        None => active.clone(),
                    };
                    let waiting = self.get_pending(to.0);
                    let joined = self.w.op("or", &waiting, &lanes);
                    self.set_pending(to.0, &joined);
                }
                self.next(position);
            }
        }
        Ok(())
    }

    fn go_uniform(&mut self, position: u32, arms: &[(BlockId, Option<Val>)]) {
        let Some(((last, _), firsts)) = arms.split_last() else { return self.w.jump("done") };
        for (to, c) in firsts {
            let next = self.w.label("else");
            self.go_full(position, *to, c.as_ref(), &next);
            self.w.block(&next);
        }
        self.go_full(position, *last, None, "");
    }

    /// All lanes go to a block if the condition holds, else control goes to `next`. Back edges of loops that may wait for other
    /// threads end in a yield now and then.
    fn go_full(&mut self, position: u32, to: BlockId, condition: Option<&Val>, next: &str) {
        let target = self.target_full(to);
        let back = self.spins && self.cfg.position[to.0 as usize] <= position;
        let label = if back { self.w.label("back") } else { target.clone() };
        match condition {
            Some(c) => self.w.branch(c, &label, next),
            None => self.w.jump(&label),
        }
        if back {
            self.w.block(&label);
            let patient = self.spend();
            let tired = self.w.label("tired");
            self.w.branch(&patient, &target, &tired);
            self.w.block(&tired);
            let all = constant(Ty::lanes(Elem::I1), 1);
            self.set_pending(to.0, &all);
            self.w.jump("overtake");
        }
    }

    fn target_full(&self, to: BlockId) -> String {
        if trivial_exit(self.func, to) { "done".into() } else { self.full_label(to) }
    }

    /// All 32 lanes may part here: together if they agree, else on to the masked version.
    fn part(&mut self, position: u32, arms: &[(BlockId, Option<Val>)]) {
        let mut lowest: Option<BlockId> = None;
        let mut masks = Vec::new();
        for (to, c) in arms {
            let mask = c.clone().unwrap_or_else(|| constant(Ty::lanes(Elem::I1), 1));
            let bits = self.bits(&mask);
            let all = self.w.cmp("icmp eq", &bits, &int(Elem::I32, -1));
            let next = self.w.label("apart");
            self.go_full(position, *to, Some(&all), &next);
            self.w.block(&next);
            masks.push((*to, mask));
        }
        for (to, mask) in masks {
            if trivial_exit(self.func, to) {
                continue;
            }
            let waiting = self.get_pending(to.0);
            let mask = self.w.splat(&mask);
            let joined = self.w.op("or", &waiting, &mask);
            self.set_pending(to.0, &joined);
            let before = |l: BlockId| self.cfg.position[to.0 as usize] < self.cfg.position[l.0 as usize];
            if lowest.is_none_or(before) {
                lowest = Some(to);
            }
        }
        match lowest {
            Some(b) => {
                let label = self.masked_label(b);
                self.w.jump(&label);
            }
            None => self.w.jump("done"),
        }
    }

    /// A fault of the active lanes for which the condition holds.
    pub fn fault_if(&mut self, condition: &Val, what: &'static str) {
        let lanes = self.w.splat(condition);
        let active = self.active.clone();
        let lanes = if self.mode == Mode::Masked { self.w.op("and", &active, &lanes) } else { lanes };
        let bits = self.bits(&lanes);
        let any = self.w.cmp("icmp ne", &bits, &int(Elem::I32, 0));
        let (bad, good) = (self.w.label("fault"), self.w.label("fine"));
        self.w.branch_unlikely(&any, &bad, &good);
        self.w.block(&bad);
        let site = self.site(SiteKind::Fault(what));
        self.helper(Helper::Fault, &[&int(Elem::I32, site as i128), &bits], true);
        self.w.jump("stop");
        self.w.block(&good);
    }

    /// One instruction, by the effect of its row.
    fn instruction(&mut self, block: BlockId, inst: &Inst) -> Result<()> {
        let variant = self.func.variant(inst);
        let name = variant.op.row().name;
        match (variant.op.row().effect, name) {
            (_, "bar" | "barrier") => self.barrier(block, inst),
            (_, "cvta") => self.cvta(inst),
            (_, "isspacep") => self.isspacep(inst),
            (Effect::Call, _) => self.call(inst),
            (Effect::Memory, _) => self.memory(inst),
            (Effect::Pure, _) => self.pure(inst),
            (Effect::Warp, _) => self.warp_op(inst),
            (Effect::Control, _) => self.control(inst),
        }
    }

    fn control(&mut self, inst: &Inst) -> Result<()> {
        match self.func.variant(inst).op.row().name {
            "trap" => {
                let all = self.guard(inst).unwrap_or_else(|| int(Elem::I1, 1));
                self.fault_if(&all, "trap");
                Ok(())
            }
            "nanosleep" | "pmevent" => Ok(()),
            other => self.refuse(other),
        }
    }

    // ---- barriers ----

    /// A barrier that all lanes of the warp reach together: save what lives, leave, and come back when it opens.
    fn barrier(&mut self, block: BlockId, inst: &Inst) -> Result<()> {
        let variant = self.func.variant(inst);
        if variant.has(Mod::Warp) {
            return Ok(());
        }
        let plain = variant.op.row().name == "bar" || variant.op.row().name == "barrier";
        if !plain
            || variant.has(Mod::Red)
            || variant.has(Mod::Arrive)
            || variant.has(Mod::Cluster)
            || inst.guard.is_some()
        {
            return self.refuse(format!("{variant} with a guard, a reduction, arrival or clusters"));
        }
        if self.func.kind != margay_check::FuncKind::Kernel {
            return self.refuse("a barrier in a device function");
        }
        if self.spins {
            return self.refuse("a barrier beside loops that wait for other threads");
        }
        if self.uniformity.divergent[block.0 as usize] || !self.cfg.reducible {
            return self.refuse("a barrier in divergent code");
        }
        let srcs: Vec<Operand> = self.func.operands(inst.srcs).to_vec();
        for (i, slot) in [0usize, 1].into_iter().zip([at::BARRIER, at::BARRIER + 4]) {
            let v = match srcs.get(i) {
                Some(Operand::Sink) | None => int(Elem::I32, 0),
                Some(o) => self.value(o, Elem::I32)?,
            };
            let v = if v.ty.vector { self.w.extract(&v, &int(Elem::I32, 0)) } else { v };
            let p = self.ctx_pointer(slot);
            self.w.store(&v, &p, 4);
        }
        let live: Vec<u32> = self.live_after(block, self.inst).iter().collect();
        let save = self.ctx_value(Elem::Ptr, at::SAVE);
        for r in &live {
            self.move_slot(*r, &save, true);
        }
        self.save_frame(&save, true);
        if self.mode == Mode::Masked {
            let bits = self.active_bits();
            let p = self.ctx_pointer(at::ALIVE);
            self.w.store(&bits, &p, 4);
        }
        let label = self.w.label("resume");
        self.resumes.push(label.clone());
        let p = self.ctx_pointer(at::RESUME);
        self.w.store(&int(Elem::I32, self.resumes.len() as i128), &p, 4);
        self.w.line(format_args!("ret i32 {}", status::BARRIER));
        self.w.block(&label);
        let save = self.ctx_value(Elem::Ptr, at::SAVE);
        for r in &live {
            self.move_slot(*r, &save, false);
        }
        self.save_frame(&save, false);
        if self.mode == Mode::Masked {
            let alive = self.ctx_value(Elem::I32, at::ALIVE);
            self.active = self.unpack_bits(&alive);
        }
        Ok(())
    }

    fn move_slot(&mut self, r: u32, save: &Val, out: bool) {
        let slot = self.slots[r as usize].clone();
        let ty = self.slot_type(slot.shape, slot.elem);
        let size = match (slot.shape, slot.elem) {
            (Shape::Varying, Elem::I1) => type_size(self.packed_type()),
            (Shape::Varying, e) => type_size(Ty::lanes(e)),
            (_, e) => 8 * type_size(Ty::scalar(e)),
        };
        self.move_saved(r, &ty, size, &slot.pointer, save, out);
        if !out {
            self.restore_shadow(r);
        }
    }

    /// Moves a variable between its `alloca` and its place in the save area, which `key` names.
    fn move_saved(&mut self, key: u32, ty: &str, size: u64, pointer: &Val, save: &Val, out: bool) {
        let next = self.save_size;
        let offset = *self.save_offsets.entry(key).or_insert(next);
        if offset == next {
            self.save_size += size.next_multiple_of(64);
        }
        let p = self.w.offset_const(save, offset);
        let (from, to) = if out { (pointer, &p) } else { (&p, pointer) };
        let v = self.w.value(Ty::scalar(Elem::I32), format_args!("load {ty}, ptr {from}, align 4"));
        self.w.line(format_args!("store {ty} {v}, ptr {to}, align 4"));
    }

    // ---- functions ----

    /// Loads the formals from the argument block, before the two versions part.
    pub fn load_formals(&mut self) -> Result<()> {
        if self.func.kind == margay_check::FuncKind::Kernel {
            return Ok(());
        }
        let args = named(Ty::scalar(Elem::Ptr), "%args");
        let mut word = 0u64;
        let homes = self.func.params.clone();
        for (home, value) in homes.iter().zip(&self.func.sig.clone().params) {
            if value.is_unsized {
                return self.refuse("an unsized array parameter");
            }
            match home {
                FormalHome::Regs(regs) => {
                    for r in regs {
                        let slot = self.slots[r.0 as usize].clone();
                        let p = self.w.offset_const(&args, word * 128);
                        let bits = slot.elem.bits().max(32);
                        let v = self.load_words(&p, bits);
                        let v = self.w.resize(&v, slot.elem, false);
                        let packed = if slot.elem == Elem::I1 { self.pack(&v) } else { v };
                        self.w.store(&packed, &slot.pointer, 4);
                        word += u64::from(bits / 32);
                    }
                }
                FormalHome::Frame(f) => {
                    let words = u64::from(value.size.div_ceil(4));
                    let p = self.w.offset_const(&args, word * 128);
                    self.frame_copy(f.0, value.size, &p, true)?;
                    word += words;
                }
                FormalHome::Kernel(_) => return self.refuse("a kernel as a function"),
            }
        }
        Ok(())
    }

    /// Puts the returns of the active lanes into the caller's block.
    fn store_returns(&mut self) -> Result<()> {
        if self.func.kind == margay_check::FuncKind::Kernel {
            return Ok(());
        }
        let rets = named(Ty::scalar(Elem::Ptr), "%rets");
        let mut word = 0u64;
        let homes = self.func.rets.clone();
        for (home, value) in homes.iter().zip(&self.func.sig.clone().rets) {
            match home {
                FormalHome::Regs(regs) => {
                    for r in regs {
                        let v = self.read(*r);
                        let bits = v.ty.elem.bits().max(32);
                        let v = self.w.resize(&v, Elem::int(bits), false);
                        let v = self.w.splat(&v);
                        let p = self.w.offset_const(&rets, word * 128);
                        self.store_words(&v, &p);
                        word += u64::from(bits / 32);
                    }
                }
                FormalHome::Frame(f) => {
                    let p = self.w.offset_const(&rets, word * 128);
                    self.frame_copy(f.0, value.size, &p, false)?;
                    word += u64::from(value.size.div_ceil(4));
                }
                FormalHome::Kernel(_) => {}
            }
        }
        Ok(())
    }

    /// Stores integers to a block of lanes: one row of 32 lanes for each word of 32 bits, low words first, as formals that live in
    /// the frame are read.
    fn store_words(&mut self, v: &Val, pointer: &Val) {
        if v.ty.elem.bits() <= 32 {
            return self.store_lanes(v, pointer);
        }
        for word in 0..u64::from(v.ty.elem.bits() / 32) {
            let part = self.w.op_const("lshr", v, i128::from(word * 32));
            let part = self.w.cast("trunc", &part, Elem::I32);
            let p = self.w.offset_const(pointer, word * 128);
            self.store_lanes(&part, &p);
        }
    }

    /// Loads integers of so many bits (32 at least) from a block of lanes.
    fn load_words(&mut self, pointer: &Val, bits: u32) -> Val {
        let mut whole = self.w.load(Ty::lanes(Elem::I32), pointer, 64);
        if bits > 32 {
            whole = self.w.cast("zext", &whole, Elem::int(bits));
            for word in 1..u64::from(bits / 32) {
                let p = self.w.offset_const(pointer, word * 128);
                let part = self.w.load(Ty::lanes(Elem::I32), &p, 64);
                let part = self.w.cast("zext", &part, Elem::int(bits));
                let part = self.w.op_const("shl", &part, i128::from(word * 32));
                whole = self.w.op("or", &whole, &part);
            }
        }
        whole
    }

    /// Stores a vector to a block of lanes, keeping inactive ones.
    pub fn store_lanes(&mut self, v: &Val, pointer: &Val) {
        let v = if self.mode == Mode::Masked {
            let old = self.w.load(v.ty, pointer, 64);
            let active = self.active.clone();
            self.w.select(&active, v, &old)
        } else {
            v.clone()
        };
        self.w.store(&v, pointer, 64);
    }

    fn words_of(values: &[margay_ir::abi::Value]) -> u64 {
        values.iter().map(|v| u64::from(v.size.div_ceil(4)).max(1)).sum::<u64>().max(1)
    }

    /// A call: arguments into a block of lanes, the callee, returns out of a block of lanes.
    fn call(&mut self, inst: &Inst) -> Result<()> {
        let Some(Operand::Call(index)) = self.func.operands(inst.srcs).last().copied() else {
            return self.refuse("a call without a call site");
        };
        let site = self.func.calls[index as usize].clone();
        let sig = site.sig.clone();
        if let Callee::Direct(f) = &site.callee
            && self.ir.func(*f).blocks.is_empty()
        {
            return self.effect(inst);
        }
        let words = |v: &[margay_ir::abi::Value]| Self::words_of(v) + 2 * v.len() as u64;
        let args = self.w.alloca(&format!("[{} x <32 x i32>]", words(&sig.params)), 64);
        let rets = self.w.alloca(&format!("[{} x <32 x i32>]", words(&sig.rets)), 64);
        let mut word = 0u64;
        for (arg, value) in site.args.iter().zip(&sig.params) {
            let p = self.w.offset_const(&args, word * 128);
            match arg {
                Arg::Values(values) => {
                    let elem = elem_of(value.ty);
                    let mut at = 0;
                    for v in values {
                        let v = self.value(v, elem)?;
                        let wide = Elem::int(elem.bits().max(32));
                        let v = self.w.resize(&v, wide, false);
                        let v = self.w.splat(&v);
                        let q = self.w.offset_const(&p, at * 128);
                        self.store_words(&v, &q);
                        at += u64::from(wide.bits() / 32);
                    }
                    word += at;
                }
                Arg::Frame(f) => {
                    self.frame_copy(f.0, value.size, &p, false)?;
                    word += u64::from(value.size.div_ceil(4));
                }
                Arg::Omitted => return self.refuse("a call without its unsized argument"),
            }
        }
        let guard = self.guard(inst);
        let mask = match guard {
            Some(g) => {
                let g = self.w.splat(&g);
                let active = self.active.clone();
                let m = self.w.op("and", &active, &g);
                self.bits(&m)
            }
            None => self.active_bits(),
        };
        let frame = {
            let size = i128::from(self.ir.stage.funcs[self.id.0 as usize].frame_size.next_multiple_of(16));
            if self.func.kind == margay_check::FuncKind::Kernel {
                int(Elem::I32, size)
            } else {
                self.w.op_const("add", &named(Ty::scalar(Elem::I32), "%frame"), size)
            }
        };
        self.check_stack();
        let callee_frame = match &site.callee {
            Callee::Direct(f) => self.ir.stage.funcs[f.0 as usize].frame_size,
            Callee::Indirect(..) => 0,
        };
        self.check_window(&frame, callee_frame);
        let some = self.w.cmp("icmp ne", &mask, &int(Elem::I32, 0));
        let (go, skip) = (self.w.label("call"), self.w.label("called"));
        self.w.branch(&some, &go, &skip);
        self.w.block(&go);
        match &site.callee {
            Callee::Direct(f) => {
                let callee = format!("@{}", symbol(*f));
                self.invoke(&callee, &mask, &frame, &args, &rets);
            }
            Callee::Indirect(r, _) => {
                let target = self.read(*r);
                let target = self.w.resize(&target, Elem::I64, false);
                self.invoke_each(&target, &mask, &frame, &args, &rets)?;
            }
        }
        self.w.jump(&skip);
        self.w.block(&skip);
        let lanes = self.unpack_bits(&mask);
        let mut word = 0u64;
        for (ret, value) in site.rets.iter().zip(&sig.rets) {
            let p = self.w.offset_const(&rets, word * 128);
            match ret {
                Arg::Values(values) => {
                    let elem = elem_of(value.ty);
                    let wide = Elem::int(elem.bits().max(32));
                    let mut at = 0;
                    for v in values {
                        let q = self.w.offset_const(&p, at * 128);
                        if let Operand::Reg(r) = v {
                            let loaded = self.load_words(&q, wide.bits());
                            let slot = self.slots[r.0 as usize].elem;
                            let loaded = self.w.resize(&loaded, slot, false);
                            self.write(*r, &loaded, Some(&lanes));
                        }
                        at += u64::from(wide.bits() / 32);
                    }
                }
                Arg::Frame(f) => self.frame_copy(f.0, value.size, &p, true)?,
                Arg::Omitted => {}
            }
            word += u64::from(value.size.div_ceil(4)).max(1);
        }
        Ok(())
    }

    /// Does the callee's frame fit into the thread's local window (if threads have one)?
    fn check_window(&mut self, frame: &Val, size: u32) {
        let stride = self.ctx_value(Elem::I64, at::LOCAL_STRIDE);
        let end = self.w.resize(frame, Elem::I64, false);
        let end = self.w.op_const("add", &end, i128::from(size));
        let beyond = self.w.cmp("icmp ugt", &end, &stride);
        let windows = self.w.cmp("icmp ne", &stride, &int(Elem::I64, 0));
        let full = self.w.op("and", &beyond, &windows);
        self.fault_if(&full, "stack overflow");
    }

    /// Native stack left? A device recursion that is too deep is a fault, not a crash.
    fn check_stack(&mut self) {
        let here = self.w.intrinsic_named("llvm.frameaddress.p0", Ty::scalar(Elem::Ptr), &[&int(Elem::I32, 0)]);
        let here = self.w.cast("ptrtoint", &here, Elem::I64);
        let end = self.ctx_value(Elem::I64, at::STACK_END);
        let deep = self.w.cmp("icmp ult", &here, &end);
        self.fault_if(&deep, "stack overflow");
    }

    fn invoke(&mut self, callee: &str, mask: &Val, frame: &Val, args: &Val, rets: &Val) {
        let result = self.w.value(
            Ty::scalar(Elem::I32),
            format_args!("call i32 {callee}(ptr %ctx, i32 {mask}, i32 {frame}, ptr {args}, ptr {rets})"),
        );
        let bad = self.w.cmp("icmp ne", &result, &int(Elem::I32, 0));
        let go_on = self.w.label("back");
        self.w.branch_unlikely(&bad, "stop", &go_on);
        self.w.block(&go_on);
    }

    /// An indirect call: lanes grouped by target.
    fn invoke_each(&mut self, target: &Val, mask: &Val, frame: &Val, args: &Val, rets: &Val) -> Result<()> {
        let left = self.w.alloca("i32", 4);
        self.w.store(mask, &left, 4);
        let target = self.w.splat(target);
        let (head, go, end) = (self.w.label("each"), self.w.label("group"), self.w.label("grouped"));
        self.w.jump(&head);
        self.w.block(&head);
        let remaining = self.w.load(Ty::scalar(Elem::I32), &left, 4);
        let some = self.w.cmp("icmp ne", &remaining, &int(Elem::I32, 0));
        self.w.branch(&some, &go, &end);
        self.w.block(&go);
        let lane = self.w.intrinsic_named("llvm.cttz.i32", Ty::scalar(Elem::I32), &[&remaining, &int(Elem::I1, 1)]);
        let address = self.w.extract(&target, &lane);
        let same = self.w.cmp("icmp eq", &target, &address);
        let same = self.bits(&same);
        let group = self.w.op("and", &same, &remaining);
        let rest = self.w.op("xor", &remaining, &group);
        self.w.store(&rest, &left, 4);
        // Code addresses are numbered: base + (id + 1) * 16.
        let base = i128::from(margay_exec::Image::function_address(margay_ir::FuncId(0)));
        let off = self.w.op_const("sub", &address, base);
        let id = self.w.op_const("lshr", &off, 4);
        let aligned = self.w.op_const("and", &off, 15);
        let crooked = self.w.cmp("icmp ne", &aligned, &int(Elem::I64, 0));
        let beyond = self.w.cmp("icmp uge", &id, &int(Elem::I64, self.ir.funcs.len() as i128));
        let bad = self.w.op("or", &crooked, &beyond);
        self.fault_if(&bad, "an indirect call to no function");
        let table = self.ctx_value(Elem::Ptr, at::FUNCTIONS);
        let entry = self.w.value(Ty::scalar(Elem::Ptr), format_args!("getelementptr ptr, ptr {table}, i64 {id}"));
        let f = self.w.load(Ty::scalar(Elem::Ptr), &entry, 8);
        let null = self.w.cmp("icmp eq", &f, &named(Ty::scalar(Elem::Ptr), "null"));
        self.fault_if(&null, "an indirect call to a function that is not compiled");
        self.invoke(&f.to_string(), &group, frame, args, rets);
        self.w.jump(&head);
        self.w.block(&end);
        Ok(())
    }
}
