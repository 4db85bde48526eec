//! Spills across barriers, in kernels that run every warp up to a barrier before any continues.
//!
//! Only live values cross, in one of three ways. Constants, and values computed from constants, parameters and thread indices
//! by a few integer operations, are rematerialized. Values uniform over the CTA are kept once, in variables of the function. All
//! others are spilled to an array indexed by warp.

use crate::ctx::at;
use crate::emit::{
    function::affine::affine_form,
    function::{Emitter, Result},
    text::{Elem, Ty, Val, constant, int},
};
use margay_ir::{
    Func, Inst, MemBase, MemSpace, Operand, VReg,
    pass::{
        BitSet, Cfg, Cut, Liveness, Shape, Uniformity, constants_at, live_frame,
        liveness::{inst_reads, inst_writes, only_definitions, term_reads},
    },
};
use margay_isa::{Effect, Kind, Mod, Opcode, Special, Type};
use std::collections::{BTreeMap, HashMap};

/// Vector operations up to which rematerializing is cheaper than storing and loading a word per lane.
const FEW: u32 = 4;
/// The same bound for scalar operations.
const FEW_SCALAR: u32 = 24;

/// Cost of rematerializing a register, in vector and in scalar operations; `None` if that is impossible.
type Cost = Option<(u32, u32)>;

/// How registers and frame variables cross the barriers of a function.
pub struct SpillPlan {
    /// Size of the spill area in bytes, for all warps of a CTA.
    pub size: u64,
    offsets: HashMap<u32, u64>,
    /// By register: the instruction that defines it, if only one does, without a guard.
    pub definition: Vec<Option<u32>>,
    cost: HashMap<u32, Cost>,
    /// Uniformity over the threads of the CTA, of kernels split into regions.
    pub cta: Option<Uniformity>,
    /// Per register that is uniform over the CTA: the variable that holds it between regions.
    once: HashMap<u32, Val>,
    frame_live: Vec<BitSet>,
    /// Per block: the registers that hold constants where it begins.
    constants: Vec<BTreeMap<u32, u64>>,
    /// Per register: its shape over the warp.
    shapes: Vec<Shape>,
    /// The registers that the current region reads or writes: only these must be restored.
    touched: BitSet,
    /// The registers that lie in their places in the spill area when the current region begins, and that it does not write.
    kept: BitSet,
}

impl SpillPlan {
    /// Prepares the plan of a function; `cta` is set for kernels split into regions.
    pub fn new(
        func: &Func,
        (cfg, live): (&Cfg, &Liveness),
        barriers: &[Cut],
        warp: &Uniformity,
        cta: Option<Uniformity>,
    ) -> SpillPlan {
        let mut definition = only_definitions(func);
        for d in &mut definition {
            *d = d.filter(|i| func.insts[*i as usize].guard.is_none());
        }
        // A register that may be read before it is written does not always hold what its definition computes.
        if let Some(early) = live.live_in.first() {
            early.iter().for_each(|r| definition[r as usize] = None);
        }
        let frame_live = if cta.is_some() { live_frame(func, cfg) } else { Vec::new() };
        let constants = if cta.is_some() && !barriers.is_empty() { constants_at(func, cfg) } else { Vec::new() };
        let shapes = warp.shapes.clone();
        SpillPlan {
            size: 0,
            offsets: HashMap::new(),
            definition,
            cost: HashMap::new(),
            cta,
            once: HashMap::new(),
            frame_live,
            constants,
            shapes,
            touched: BitSet::new(func.regs.len()),
            kept: BitSet::new(func.regs.len()),
        }
    }

    fn cost(&mut self, func: &Func, r: VReg) -> Cost {
        if let Some(known) = self.cost.get(&r.0) {
            return *known;
        }
        // A register computed from itself cannot be rematerialized.
        self.cost.insert(r.0, None);
        let cost = self.definition[r.0 as usize].and_then(|i| self.cost_of(func, &func.insts[i as usize], r));
        self.cost.insert(r.0, cost);
        cost
    }

    fn cost_of(&mut self, func: &Func, inst: &Inst, r: VReg) -> Cost {
        let variant = func.variant(inst);
        let srcs = func.operands(inst.srcs);
        let ty = func.regs[r.0 as usize];
        let varying = self.shapes[r.0 as usize] == Shape::Varying;
        if func.operands(inst.dsts).len() != 1 {
            return None;
        }
        let operations = match variant.op {
            Opcode::Ld => {
                let parameter = inst.space == Some(MemSpace::KernelParam);
                return (parameter && matches!(srcs, [Operand::Mem(MemBase::KernelParam, _)])).then_some((0, 1));
            }
            Opcode::Cvta if !variant.has(Mod::Local) => 1,
            _ if variant.op.row().effect != Effect::Pure || variant.has(Mod::Cc) => return None,
            Opcode::Mov
            | Opcode::Add
            | Opcode::Sub
            | Opcode::And
            | Opcode::Or
            | Opcode::Xor
            | Opcode::Shl
            | Opcode::Shr => 1,
            Opcode::Mul | Opcode::Mad | Opcode::Setp | Opcode::Selp => 2,
            Opcode::Cvt => 1,
            _ => return None,
        };
        let whole =
            |t: Type| matches!(t.kind(), Kind::Signed | Kind::Unsigned | Kind::Bits | Kind::Pred) && t.bits() <= 64;
        if !variant.words.iter().all(|w| match w {
            margay_isa::Word::Type(t) => whole(*t) || variant.op == Opcode::Mov,
            margay_isa::Word::Mod(m) => !matches!(m, Mod::Sat),
        }) {
            return None;
        }
        let width = if ty.bits() > 32 { 2 } else { 1 };
        let mut sum = if varying { (operations * width, 0) } else { (0, operations) };
        for operand in srcs {
            let (v, s) = match operand {
                Operand::Reg(r) | Operand::Not(r) => self.cost(func, *r)?,
                Operand::Imm(_) | Operand::GlobalAddr(..) | Operand::ParamAddr(_) | Operand::Func(_) => (0, 0),
                Operand::Special(Special::Tid, _) => (1, 1),
                Operand::Special(s, _) if is_index(*s) => (0, 1),
                _ => return None,
            };
            sum = (sum.0 + v, sum.1 + s);
        }
        (sum.0 <= FEW * width && sum.1 <= FEW_SCALAR).then_some(sum)
    }

    fn once(&self, r: u32) -> bool {
        self.shapes[r as usize] == Shape::Uniform
            && self.cta.as_ref().is_some_and(|c| c.shapes[r as usize] == Shape::Uniform)
    }

    /// Offset in the spill area of a value with `bytes` bytes per warp.
    fn place(&mut self, key: u32, bytes: u64, warps: u64) -> u64 {
        let next = self.size;
        let offset = *self.offsets.entry(key).or_insert(next);
        if offset == next {
            self.size += (bytes * warps).next_multiple_of(64);
        }
        offset
    }
}

/// Where a value is copied: to its spill slot, or back to the register or promoted frame variable.
#[derive(Clone, Copy, PartialEq, Eq)]
enum To {
    Spill,
    Register,
}

fn is_index(s: Special) -> bool {
    use Special::*;
    matches!(s, Ntid | Ctaid | Nctaid | LaneId | WarpId | NwarpId | DynamicSmemSize | TotalSmemSize)
}

impl Emitter<'_> {
    /// Registers that are live after a barrier and not rematerialized.
    fn spilled(&mut self, barrier: u32) -> Vec<u32> {
        let next = self.prepared.barriers[barrier as usize].next;
        let live: Vec<u32> = self.live.live_in[next.0 as usize].iter().collect();
        let func = self.func;
        live.into_iter()
            .filter(|r| self.spills.cost(func, VReg(*r)).is_none() && self.constant_after(barrier, *r).is_none())
            .collect()
    }

    /// Finds what the current region, which begins after a barrier, reads and writes.
    pub fn find_touched(&mut self, before: Option<u32>) {
        let func = self.func;
        let (mut touched, mut written) = (BitSet::new(func.regs.len()), BitSet::new(func.regs.len()));
        for b in &self.region.blocks {
            let block = &func.blocks[b.0 as usize];
            for inst in func.insts(block) {
                inst_reads(func, inst, &mut |r| touched.insert(r.0));
                inst_writes(func, inst, &mut |r| written.insert(r.0));
            }
            term_reads(func, &block.term, &mut |r| touched.insert(r.0));
        }
        // The barrier's reduction is written where the region begins.
        let barrier = before.map(|b| &func.blocks[self.prepared.barriers[b as usize].block.0 as usize]);
        if let Some(inst) = barrier.and_then(|b| func.insts(b).last()) {
            inst_writes(func, inst, &mut |r| written.insert(r.0));
        }
        touched.union(&written);
        let mut kept = BitSet::new(func.regs.len());
        let held = before.map_or(Vec::new(), |b| self.spilled(b));
        held.into_iter().filter(|r| !written.has(*r)).for_each(|r| kept.insert(r));
        (self.spills.touched, self.spills.kept) = (touched, kept);
    }

    /// Spilled registers that the region after a barrier restores.
    fn restored(&mut self, barrier: u32) -> Vec<u32> {
        let mut spilled = self.spilled(barrier);
        spilled.retain(|r| self.spills.touched.has(*r));
        spilled
    }

    /// The constant that a register holds after a barrier.
    fn constant_after(&self, barrier: u32, r: u32) -> Option<u64> {
        let next = self.prepared.barriers[barrier as usize].next;
        self.spills.constants.get(next.0 as usize)?.get(&r).copied()
    }

    fn spilled_frame(&self, barrier: u32) -> Vec<u32> {
        let next = self.prepared.barriers[barrier as usize].next;
        self.spills.frame_live[next.0 as usize].iter().filter(|f| self.local.frame[*f as usize].is_some()).collect()
    }

    /// Address of the current warp's spill slot for `key`.
    fn spill_slot(&mut self, key: u32, bytes: u64) -> Val {
        let warps = u64::from(self.warps());
        let offset = self.spills.place(key, bytes, warps);
        let arrays = self.ctx_value(Elem::Ptr, at::SPILLS);
        let warp = self.warp_index();
        let step = self.w.op_const("mul", &warp, i128::from(bytes));
        let here = self.w.offset(&arrays, &step);
        self.w.offset_const(&here, offset)
    }

    /// The parts of a register's slot: a vector, or scalars. The slot, where in it they are, and bytes of all.
    fn slot_parts(&mut self, r: u32) -> (Ty, Val, Vec<u64>, u64) {
        let slot = self.slots[r as usize].clone();
        let bytes = |ty: Ty| u64::from(ty.elem.bits().div_ceil(8)) * if ty.vector { 32 } else { 1 };
        match affine_form(slot.shape) {
            Some((width, _)) => {
                let ty = Ty::scalar(slot.elem);
                let parts: Vec<u64> = (0..u64::from(32 / width)).map(|i| i * bytes(ty)).collect();
                let size = parts.len() as u64 * bytes(ty);
                (ty, slot.pointer, parts, size)
            }
            None => {
                let ty = if slot.elem == Elem::I1 { self.packed_type() } else { Ty::lanes(slot.elem) };
                (ty, slot.pointer, vec![0], bytes(ty))
            }
        }
    }

    /// Copies a register to its spill slot, or back.
    fn move_slot(&mut self, r: u32, to: To) {
        let (ty, slot, parts, bytes) = self.slot_parts(r);
        let place = self.spill_slot(r, bytes);
        let align = if ty.vector { (bytes as u32).min(64) } else { 1 };
        let step = bytes / parts.len() as u64;
        for (i, part) in parts.iter().enumerate() {
            let p = self.w.offset_const(&place, i as u64 * step);
            if to == To::Spill {
                let v = self.w.get(ty, &slot, *part, align);
                self.w.store(&v, &p, align);
            } else {
                let v = self.w.load(ty, &p, align);
                self.w.set(&v, &slot, *part, align);
            }
        }
        if to == To::Register {
            self.restore_shadow(r);
        }
    }

    /// Spills the registers that are live after a barrier.
    pub fn spill_registers(&mut self, barrier: u32) {
        let mut spilled = self.spilled(barrier);
        spilled.retain(|r| !self.spills.kept.has(*r));
        for r in spilled {
            if self.spills.once(r) {
                let once = self.shared_variable(r);
                let slot = self.slots[r as usize].clone();
                let v = self.w.get(Ty::scalar(slot.elem), &slot.pointer, 0, 1);
                self.w.store(&v, &once, 1);
            } else {
                self.move_slot(r, To::Spill);
            }
        }
        for f in self.spilled_frame(barrier) {
            self.move_frame(f, To::Spill);
        }
    }

    fn shared_variable(&mut self, r: u32) -> Val {
        if let Some(v) = self.spills.once.get(&r) {
            return v.clone();
        }
        let ty = Ty::scalar(self.slots[r as usize].elem);
        let v = self.w.alloca(&ty.to_string(), 8);
        self.spills.once.insert(r, v.clone());
        v
    }

    /// Before the loop over warps: loads the values that are uniform over the CTA.
    pub fn shared_values(&mut self, barrier: u32) -> Vec<(u32, Val)> {
        let mut values = Vec::new();
        for r in self.restored(barrier) {
            if self.spills.once(r) {
                let (once, elem) = (self.shared_variable(r), self.slots[r as usize].elem);
                values.push((r, self.w.load(Ty::scalar(elem), &once, 1)));
            }
        }
        values
    }

    /// Reloads or rematerializes the registers that are live after a barrier.
    pub fn restore_registers(&mut self, barrier: u32, shared: &[(u32, Val)]) -> Result<()> {
        for (r, v) in shared {
            let pointer = self.slots[*r as usize].pointer.clone();
            self.w.set(v, &pointer, 0, 1);
        }
        for r in self.restored(barrier) {
            if !self.spills.once(r) {
                self.move_slot(r, To::Register);
            }
        }
        for f in self.spilled_frame(barrier) {
            self.move_frame(f, To::Register);
        }
        let next = self.prepared.barriers[barrier as usize].next;
        let live: Vec<u32> = self.live.live_in[next.0 as usize].iter().collect();
        let mut done = BitSet::new(self.func.regs.len());
        let func = self.func;
        for r in live.into_iter().filter(|r| self.spills.touched.has(*r)).collect::<Vec<_>>() {
            if self.spills.cost(func, VReg(r)).is_some() {
                self.recompute(VReg(r), &mut done)?;
            } else if let Some(v) = self.constant_after(barrier, r) {
                let elem = self.slots[r as usize].elem;
                self.write(VReg(r), &int(elem, i128::from(v as i64)), None);
            }
        }
        Ok(())
    }

    /// Whether a register is rematerialized rather than spilled.
    pub fn rematerializes(&mut self, r: VReg) -> bool {
        let func = self.func;
        self.spills.cost(func, r).is_some()
    }

    /// Rematerializes a register, and those that it is computed from, unless they are `done`.
    pub fn recompute(&mut self, r: VReg, done: &mut BitSet) -> Result<()> {
        let Some(i) = self.spills.definition[r.0 as usize].filter(|_| !done.has(r.0)) else { return Ok(()) };
        done.insert(r.0);
        let func = self.func;
        let inst = func.insts[i as usize];
        for operand in func.operands(inst.srcs) {
            if let Operand::Reg(s) | Operand::Not(s) = operand {
                self.recompute(*s, done)?;
            }
        }
        (self.inst, self.at) = (i, inst.at);
        self.instruction(&inst)
    }

    /// Copies a promoted frame variable to its spill slot, or back.
    fn move_frame(&mut self, f: u32, to: To) {
        let Some(words) = self.local.frame[f as usize].clone() else { return };
        let size = u64::from(self.func.frame[f as usize].size.div_ceil(4)) * 128;
        let p = self.spill_slot(u32::MAX - f, size);
        let (to, from) = if to == To::Spill { (&p, &words) } else { (&words, &p) };
        self.w.declared.insert("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)".into());
        self.w.line(format_args!(
            "call void @llvm.memcpy.p0.p0.i64(ptr align 64 {to}, ptr align 64 {from}, i64 {size}, i1 false)"
        ));
    }

    /// Zeroes registers that the program may read before writing them, as the reference engine does, so that no `undef`
    /// reaches a branch or an address.
    pub fn clear_uninitialized(&mut self) {
        for (variable, bytes) in self.local.uninitialized.clone() {
            self.w.declared.insert("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)".into());
            self.w.line(format_args!(
                "call void @llvm.memset.p0.i64(ptr align 64 {variable}, i8 0, i64 {bytes}, i1 false)"
            ));
        }
        for r in self.live.live_in[0].iter().collect::<Vec<u32>>() {
            let shadow = self.slots[r as usize].shadow.clone();
            let (ty, slot, parts, _) = self.slot_parts(r);
            for p in parts {
                self.w.set(&constant(ty, 0), &slot, p, if ty.vector { 4 } else { 1 });
            }
            if let Some(shadow) = shadow {
                self.w.set(&int(Elem::I32, 0), &shadow.valid, 0, 4);
            }
        }
    }

    /// Resets the state of a warp that enters the region behind barrier `before`: the values of an earlier warp become poison. In the first
    /// region, which has no barrier before it, registers that may be read uninitialized become zero.
    pub fn reset_registers(&mut self, before: Option<u32>) {
        let first = before.is_none();
        // Values of an earlier warp in registers that are defined here are dead; LLVM must see that.
        let mut defined = BitSet::new(self.func.regs.len());
        let func = self.func;
        for b in &self.region.blocks {
            for inst in func.insts(&func.blocks[b.0 as usize]) {
                inst_writes(func, inst, &mut |r| defined.insert(r.0));
            }
        }
        for r in 0..self.slots.len() as u32 {
            let varying = self.slots[r as usize].shape == Shape::Varying;
            if varying && self.masks && defined.has(r) && !(first && self.live.live_in[0].has(r)) {
                let (ty, slot, ..) = self.slot_parts(r);
                self.w.line(format_args!("store {ty} poison, ptr {slot}, align 4"));
            }
        }
        if first {
            self.clear_uninitialized();
        }
        if self.masks {
            let ty = self.packed_type();
            for b in self.region.blocks.clone() {
                let p = self.lane_sets.pending[b.0 as usize].clone();
                self.w.set(&constant(ty, 0), &p, 0, 4);
            }
        }
        if let Some(alive) = self.lane_sets.alive.clone() {
            self.w.store(&int(Elem::I32, -1), &alive, 4);
        }
    }
}
