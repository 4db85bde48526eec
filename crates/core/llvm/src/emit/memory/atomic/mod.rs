//! Atomic operations, lane after lane.
//!
//! Their results are defined by [`margay_exec::sem::atomic`]. All warps of a CTA run on one thread, so operations on
//! shared memory need no locked instructions. Integer operations of all lanes at one address whose old values are
//! unused are reduced first. All others are acquire-release, regardless of the requested semantics: a locked instruction of
//! x86-64 is no weaker, and LLVM must not move weak accesses across it (manual, section 8.8).

mod helper;
mod inline;
mod operation;

use crate::ctx::at;
use crate::emit::{
    function::{Emitter, Result},
    memory::address::Address,
    text::{Elem, Ty, Val, constant, int, per_lane},
};
use helper::sum;
use margay_exec::{
    AccessKind,
    sem::atomic::{AtomicOp, Number, Rmw},
};
use margay_ir::{Func, Inst, MemSpace, Operand, VReg, pass::liveness};
use margay_isa::{Opcode, Variant};
use operation::{Operation, native, operation};

/// Where single-precision additions flush subnormals.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flush {
    Never,
    Always,
    /// At generic addresses outside the CTA's shared window, which is decided at run time.
    OutsideShared,
}

impl Flush {
    /// The flush mode of an operation in a state space.
    fn of(rmw: Rmw, space: Option<MemSpace>) -> Flush {
        match (rmw.flushes(true), rmw.flushes(false), space) {
            (true, true, _) | (true, false, Some(MemSpace::Shared)) | (false, true, Some(MemSpace::Global)) => {
                Flush::Always
            }
            (false, true, None | Some(MemSpace::Generic)) => Flush::OutsideShared,
            _ => Flush::Never,
        }
    }
}

/// An atomic operation in terms of LLVM.
#[derive(Clone, Copy)]
struct Code {
    rmw: Rmw,
    op: Operation,
    /// Type that it operates on.
    elem: Elem,
    /// Integer type of the same width.
    integer: Elem,
    /// Other host threads may access the location.
    locked: bool,
    flush: Flush,
    /// Old values are used.
    result: bool,
}

impl Emitter<'_> {
    /// `atom`, `red`.
    pub fn atomic(&mut self, inst: &Inst, mask: Option<&Val>) -> Result<()> {
        let variant = self.func.variant(inst).clone();
        let ty = variant.t();
        let (Some(rmw), Some((op, elem))) = (Rmw::of(&variant), native(&variant)) else { return self.effect(inst) };
        let flush = Flush::of(rmw, inst.space);
        if flush == Flush::OutsideShared && self.options.cluster.is_some() {
            // With clusters there are several shared windows.
            return self.effect(inst);
        }
        let integer = Elem::int(ty.bits());
        let dst = match self.func.operands(inst.dsts).first() {
            Some(Operand::Reg(r)) if is_read(self.func, *r) => Some(*r),
            _ => None,
        };
        let locked = inst.space != Some(MemSpace::Shared);
        // Sums change memory if the operand is not neutral; for other operations, the old values show it.
        let neutral = rmw.op.neutral(ty).filter(|_| matches!(rmw.op, AtomicOp::Add | AtomicOp::Xor));
        let result = dst.is_some() || self.prepared.spins && neutral.is_none();
        let code = Code { rmw, op, elem, integer, locked, flush, result };
        let srcs: Vec<Operand> = self.func.operands(inst.srcs).to_vec();
        let count = if op == Operation::Cas { 2 } else { 1 };
        let operands = srcs[1..].iter().take(count).map(|o| self.value(o, integer)).collect::<Result<Vec<_>>>()?;
        if let Some(neutral) = neutral.filter(|_| self.prepared.spins && !code.result) {
            let changes = self.w.cmp("icmp ne", &operands[0], &constant(operands[0].ty, neutral.into()));
            self.note_change_of(&changes, mask);
        }
        self.access(inst, &srcs[0], (ty.bytes(), true), mask, |e, address| {
            e.observe_access((inst, AccessKind::Atomic), address, ty.bytes(), &[], mask);
            e.update(code, (address, &srcs[0]), &operands, dst, mask);
            Ok(())
        })
    }

    /// Emits an operation at checked addresses, in the cheapest way; `dst` gets the old values. `operand` is the operand with the address.
    fn update(
        &mut self,
        code: Code,
        (address, operand): (&Address, &Operand),
        operands: &[Val],
        dst: Option<VReg>,
        mask: Option<&Val>,
    ) {
        if let (true, Address::Affine { bases, .. }) = (self.runs_single_lane(), address) {
            let old = self.alone(code, (address, &bases[0]), operands, mask);
            if let (Some(r), Some(old)) = (dst, old) {
                self.write_old(r, &old, mask);
            }
            return;
        }
        let one = match address {
            Address::Affine { bases, width: 32, stride: 0 } if !code.result => {
                self.reduced(code.rmw, operands, mask).map(|v| (bases[0].clone(), v))
            }
            _ => None,
        };
        let directly = |e: &mut Self| match &one {
            Some((at, v)) => {
                let p = e.pointer(at);
                e.once(code, &p, v);
            }
            None => _ = e.each(code, address, operands, mask),
        };
        if self.combine(address, operands, one.as_ref(), mask, directly) {
            return;
        }
        if one.is_some() {
            return directly(self);
        }
        if let (Some(r), Address::Affine { bases, width: 32, stride: 0 }) = (dst, address)
            && self.counts(code, operands)
        {
            if self.prepared.spins {
                let changes = self.w.cmp("icmp ne", &operands[0], &constant(operands[0].ty, 0));
                self.note_change_of(&changes, mask);
            }
            let old = self.count_up(code, &bases[0], &operands[0], mask);
            return self.write_old(r, &old, mask);
        }
        if self.in_line(code, (address, operand), operands, mask) {
            return;
        }
        let old = self.each(code, address, operands, mask);
        if let Some(old) = old.as_ref().filter(|_| self.prepared.spins) {
            let changes = self.changes(code.rmw, code.flush == Flush::Always, old, operands);
            self.note_change_of(&changes, mask);
        }
        if let (Some(r), Some(old)) = (dst, old) {
            self.write_old(r, &old, mask);
        }
    }

    /// Writes the old values of an operation to a register.
    fn write_old(&mut self, r: VReg, old: &Val, mask: Option<&Val>) {
        let old = self.w.resize(old, self.slots[r.0 as usize].elem, false);
        self.write(r, &old, mask);
    }

    /// Notes a change of memory if the condition holds for an active lane of the mask.
    fn note_change_of(&mut self, condition: &Val, mask: Option<&Val>) {
        let mut changes = condition.clone();
        if let Some(mask) = mask {
            let (wide, mask) = (self.w.splat(&changes), self.w.splat(mask));
            changes = self.w.op("and", &wide, &mask);
        }
        let lanes = self.active_among(&changes);
        let some = self.w.cmp("icmp ne", &lanes, &int(Elem::I32, 0));
        self.note_change(Some(&some));
    }

    /// The type of an integer addition whose old value is unused, of 32 or 64 bits.
    pub(super) fn unused_sum(&self, inst: &Inst) -> Option<Elem> {
        let variant = self.func.variant(inst);
        let atomic = matches!(variant.op, Opcode::Atom | Opcode::Red);
        let (op, elem) = native(variant).filter(|_| atomic)?;
        let sums = op == Operation::Add && matches!(elem, Elem::I32 | Elem::I64);
        (sums && !is_result_read(self.func, inst)).then_some(elem)
    }

    /// The operands of all lanes reduced to one, for operations that allow it.
    fn reduced(&mut self, rmw: Rmw, operands: &[Val], mask: Option<&Val>) -> Option<Val> {
        let [v] = operands else { return None };
        let Number::Integer { signed } = rmw.number() else { return None };
        let (elem, neutral) = (v.ty.elem, rmw.op.neutral(rmw.ty)?);
        let reduction = match rmw.op {
            AtomicOp::Min if signed => "smin",
            AtomicOp::Min => "umin",
            AtomicOp::Max if signed => "smax",
            AtomicOp::Max => "umax",
            _ => operation(rmw)?.0.word(),
        };
        if !v.ty.vector {
            match rmw.op {
                AtomicOp::And | AtomicOp::Or | AtomicOp::Min | AtomicOp::Max => return Some(v.clone()),
                AtomicOp::Add => {
                    let lanes = self.lane_bits(mask);
                    let count = self.w.intrinsic("llvm.ctpop", lanes.ty, &[&lanes]);
                    let count = self.w.resize(&count, elem, false);
                    return Some(self.w.op("mul", v, &count));
                }
                _ => {}
            }
        }
        let v = self.w.splat(v);
        let v = match self.lanes(mask) {
            Some(m) => self.w.select(&m, &v, &constant(v.ty, neutral.into())),
            None => v,
        };
        Some(self.w.intrinsic(&format!("llvm.vector.reduce.{reduction}"), Ty::scalar(elem), &[&v]))
    }

    /// One operation at one address; returns the old value.
    fn once(&mut self, code: Code, pointer: &Val, v: &Val) -> Val {
        let (i, align) = (Ty::scalar(code.integer), code.integer.bits() / 8);
        if code.locked {
            let text = format_args!("atomicrmw {} ptr {pointer}, {i} {v} acq_rel, align {align}", code.op.word());
            return self.w.value(i, text);
        }
        let old = self.w.load(i, pointer, align);
        let new = self.updated(code.rmw, false, &old, std::slice::from_ref(v));
        self.w.store(&new, pointer, align);
        old
    }

    /// The operation of a lane that runs alone, at this address; returns the old value if it is used.
    fn alone(
        &mut self,
        code: Code,
        (address, at): (&Address, &Val),
        operands: &[Val],
        mask: Option<&Val>,
    ) -> Option<Val> {
        if code.op == Operation::FAdd {
            let old = self.each(code, address, operands, mask);
            return old.map(|old| self.first_active(&old));
        }
        let p = self.pointer(at);
        let ([comparand, new], true) = (operands, code.op == Operation::Cas) else {
            return Some(self.once(code, &p, &operands[0]));
        };
        let (i, align) = (Ty::scalar(code.integer), code.integer.bits() / 8);
        if code.locked {
            let pair = format!("cmpxchg ptr {p}, {i} {comparand}, {i} {new} acq_rel acquire, align {align}");
            return Some(self.w.first_result(i, &pair));
        }
        let old = self.w.load(i, &p, align);
        let new = self.updated(code.rmw, false, &old, operands);
        self.w.store(&new, &p, align);
        Some(old)
    }

    /// Whether an operation adds the same integer in all lanes and its old values are used, as with a counter that assigns places to threads.
    fn counts(&self, code: Code, operands: &[Val]) -> bool {
        let same = matches!(operands, [v] if !v.ty.vector);
        same && code.op == Operation::Add && code.result && matches!(code.elem, Elem::I32 | Elem::I64)
    }

    /// Adds an integer once for each lane at one address. Returns the old values, as if the lanes added one after another, the lowest one
    /// first.
    fn count_up(&mut self, code: Code, at: &Val, v: &Val, mask: Option<&Val>) -> Val {
        let bits = self.lane_bits(mask);
        let count = self.w.intrinsic("llvm.ctpop", bits.ty, &[&bits]);
        let count = self.w.resize(&count, code.elem, false);
        let total = self.w.op("mul", v, &count);
        let p = self.pointer(at);
        let old = self.once(code, &p, &total);
        let below = per_lane(Elem::I32, |lane| (1 << lane) - 1);
        let earlier = self.w.op("and", &bits, &below);
        let places = self.w.intrinsic("llvm.ctpop", earlier.ty, &[&earlier]);
        let places = self.w.resize(&places, code.elem, false);
        let steps = self.w.op("mul", &places, v);
        self.w.op("add", &old, &steps)
    }

    /// Calls the helper that operates lane after lane; returns the old values if they are used.
    fn each(&mut self, code: Code, address: &Address, operands: &[Val], mask: Option<&Val>) -> Option<Val> {
        let addresses = self.spread(address);
        let lanes = self.lanes(mask);
        let all = lanes.is_none() && !self.options.lean && !code.result && code.op != Operation::Cas;
        let one = all && operands.iter().all(|v| !v.ty.vector);
        let operands: Vec<Val> = operands.iter().map(|v| if one { v.clone() } else { self.w.splat(v) }).collect();
        let ty = Ty::lanes(code.integer);
        let mut list: String = operands.iter().map(|v| format!(", {} {v}", v.ty)).collect();
        if code.flush == Flush::OutsideShared {
            let low = self.ctx_value(Elem::I64, at::SHARED);
            let size = self.ctx_value(Elem::I64, at::SHARED_SIZE);
            list.push_str(&format!(", i64 {low}, i64 {size}"));
        }
        self.w.declared.insert(if all { code.list(one) } else { code.walk() });
        if code.sums() {
            self.w.declared.extend([Flush::Never, Flush::Always, code.flush].map(sum));
        }
        let name = code.function(all, one);
        let bits = match lanes {
            _ if all => String::new(),
            Some(m) => format!(", i32 {}", self.bits(&m)),
            None => ", i32 -1".into(),
        };
        let call = format!("@{name}(<32 x i64> {addresses}{bits}{list})");
        if code.result {
            return Some(self.w.value(ty, format_args!("call {ty} {call}")));
        }
        self.w.line(format_args!("call void {call}"));
        None
    }
}

/// Whether any instruction reads a register.
fn is_read(func: &Func, r: VReg) -> bool {
    let mut found = false;
    let mut look = |read: VReg| found |= read == r;
    func.insts.iter().for_each(|inst| liveness::inst_reads(func, inst, &mut look));
    func.blocks.iter().for_each(|b| liveness::term_reads(func, &b.term, &mut look));
    found
}

/// Whether the old value of an atomic operation is used.
pub(in crate::emit) fn is_result_read(func: &Func, inst: &Inst) -> bool {
    matches!(func.operands(inst.dsts).first(), Some(Operand::Reg(r)) if is_read(func, *r))
}

/// Whether an atomic operation has native code outside clusters.
pub(in crate::emit) fn is_native(variant: &Variant) -> bool {
    native(variant).is_some()
}
