//! Atomic operations, lane after lane.
//!
//! Their results are defined by [`margay_exec::sem::atomic`]. All warps of a CTA run on one thread, so operations on
//! shared memory need no locked instructions. Integer operations of all lanes at one address whose old values are
//! unused are reduced first. All others are acquire-release, regardless of the requested semantics: a locked instruction of
//! x86-64 is no weaker, and LLVM must not move weak accesses across it (manual, section 8.8).

mod inline;
mod operation;

use crate::ctx::at;
use crate::emit::{
    function::{Emitter, Result},
    memory::address::Address,
    memory::lanes::{lane_list, lane_loop},
    text::{Elem, Ty, Val, constant, int, per_lane},
};
use margay_exec::{
    AccessKind,
    sem::{
        atomic::{AtomicOp, Number, Rmw},
        fp,
    },
};
use margay_ir::{Inst, MemSpace, Operand, pass::liveness};
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
            Some(Operand::Reg(r)) if self.read_somewhere(r.0) => Some(*r),
            _ => None,
        };
        let locked = inst.space != Some(MemSpace::Shared);
        // Sums change memory if the operand is not neutral; of other operations, the old values tell.
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
            let one = match address {
                Address::Affine { bases, width: 32, stride: 0 } if !code.result => {
                    e.reduced(rmw, &operands, mask).map(|v| (bases[0].clone(), v))
                }
                _ => None,
            };
            let directly = |e: &mut Self| match &one {
                Some((at, v)) => {
                    let p = e.pointer(at);
                    e.once(code, &p, v);
                }
                None => _ = e.each(code, address, &operands, mask),
            };
            if e.combine(address, &operands, one.as_ref(), mask, directly) {
                return Ok(());
            }
            if one.is_some() {
                directly(e);
                return Ok(());
            }
            if let (Some(r), Address::Affine { bases, width: 32, stride: 0 }) = (dst, address)
                && e.counts(code, &operands)
            {
                if e.prepared.spins {
                    let changes = e.w.cmp("icmp ne", &operands[0], &constant(operands[0].ty, 0));
                    e.note_change_of(&changes, mask);
                }
                let old = e.count_up(code, &bases[0], &operands[0], mask);
                let old = e.w.resize(&old, e.slots[r.0 as usize].elem, false);
                e.write(r, &old, mask);
                return Ok(());
            }
            if e.in_line(code, (address, &srcs[0]), &operands, mask) {
                return Ok(());
            }
            let old = e.each(code, address, &operands, mask);
            if let Some(old) = old.as_ref().filter(|_| e.prepared.spins) {
                let changes = e.changes(rmw, flush == Flush::Always, old, &operands);
                e.note_change_of(&changes, mask);
            }
            if let (Some(r), Some(old)) = (dst, old) {
                let slot = e.slots[r.0 as usize].elem;
                let old = e.w.resize(&old, slot, false);
                e.write(r, &old, mask);
            }
            Ok(())
        })
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
        let used = matches!(self.func.operands(inst.dsts).first(), Some(Operand::Reg(r)) if self.read_somewhere(r.0));
        (op == Operation::Add && matches!(elem, Elem::I32 | Elem::I64) && !used).then_some(elem)
    }

    /// Whether any instruction reads a register.
    fn read_somewhere(&self, r: u32) -> bool {
        let func = self.func;
        let mut found = false;
        let mut look = |read: margay_ir::VReg| found |= read.0 == r;
        func.insts.iter().for_each(|inst| liveness::inst_reads(func, inst, &mut look));
        func.blocks.iter().for_each(|b| liveness::term_reads(func, &b.term, &mut look));
        found
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

    /// Whether an operation adds the same integer in all lanes and its old values are used, as counters do that give each thread a place.
    fn counts(&self, code: Code, operands: &[Val]) -> bool {
        let same = matches!(operands, [v] if !v.ty.vector);
        same && code.op == Operation::Add && code.result && matches!(code.elem, Elem::I32 | Elem::I64)
    }

    /// Adds an integer once for each lane at one address; returns the old values: those of lanes that add one after another, the lowest one
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

impl Code {
    /// Whether `atomicrmw` does not suffice: NaNs must be canonical, and subnormals may have to be flushed.
    fn sums(self) -> bool {
        self.locked && self.op == Operation::FAdd && self.elem == Elem::F32
    }

    fn function(self, all: bool, one: bool) -> String {
        let word = |on: bool, word: &'static str| if on { word } else { "" };
        format!(
            "margay.{}{}{}{}{}{}.{}",
            self.op.word(),
            word(all, ".all"),
            word(one, ".one"),
            word(self.locked, ".locked"),
            word(self.locked, self.flush.suffix()),
            word(self.result, ".old"),
            Ty::scalar(self.elem)
        )
    }

    /// The code of one lane; names end in `#`.
    fn step(self) -> String {
        let (i, t, align) = (Ty::scalar(self.integer), Ty::scalar(self.elem), self.elem.bits() / 8);
        if self.sums() {
            let window = if self.flush == Flush::OutsideShared { ", i64 %low, i64 %size" } else { "" };
            return format!("  %old# = call float @{}(ptr %p#, float %v#{window})\n", sum_name(self.flush));
        }
        if self.locked {
            return match self.op {
                Operation::Cas => format!(
                    "  %pair# = cmpxchg ptr %p#, {i} %v#, {i} %n# acq_rel acquire\n  %old# = extractvalue {{ {i}, i1 }} %pair#, 0\n"
                ),
                op => format!("  %old# = atomicrmw {} ptr %p#, {t} %v# acq_rel, align {align}\n", op.word()),
            };
        }
        let pick = |compare: &str| {
            format!("  %c# = icmp {compare} {i} %old#, %v#\n  %new# = select i1 %c#, {i} %old#, {i} %v#\n")
        };
        let new = match self.op {
            Operation::Cas => format!("  %c# = icmp eq {i} %old#, %v#\n  %new# = select i1 %c#, {i} %n#, {i} %old#\n"),
            Operation::Xchg => format!("  %new# = add {i} %v#, 0\n"),
            Operation::Min => pick("slt"),
            Operation::Max => pick("sgt"),
            Operation::UMin => pick("ult"),
            Operation::UMax => pick("ugt"),
            Operation::Inc => format!(
                "  %up# = add {i} %old#, 1\n  %c# = icmp uge {i} %old#, %v#\n  %new# = select i1 %c#, {i} 0, {i} %up#\n"
            ),
            Operation::Dec => format!(
                "  %down# = sub {i} %old#, 1\n  %z# = icmp eq {i} %old#, 0\n  %b# = icmp ugt {i} %old#, %v#\n  \
                 %c# = or i1 %z#, %b#\n  %new# = select i1 %c#, {i} %v#, {i} %down#\n"
            ),
            // The NaN is canonicalized.
            Operation::FAdd if self.elem == Elem::F32 => {
                format!(
                    "  %sum# = fadd float %old#, %v#\n  %bits# = bitcast float %sum# to i32\n  \
                     %size# = and i32 %bits#, 2147483647\n  %nan# = icmp ugt i32 %size#, 2139095040\n  \
                     %kept# = select i1 %nan#, i32 {}, i32 %bits#\n  %new# = bitcast i32 %kept# to float\n",
                    fp::NAN32
                )
            }
            Operation::Add | Operation::FAdd | Operation::And | Operation::Or | Operation::Xor => {
                format!("  %new# = {} {t} %old#, %v#\n", self.op.word())
            }
        };
        format!("  %old# = load {t}, ptr %p#, align {align}\n{new}  store {t} %new#, ptr %p#, align {align}\n")
    }

    /// Parameters that describe the shared window.
    fn window(self) -> &'static str {
        if self.flush == Flush::OutsideShared { ", i64 %low, i64 %size" } else { "" }
    }

    /// Loads the operands of lane `lane` from where they were spilled.
    fn operands(self, lane: &str) -> String {
        let (i, t, align) = (Ty::scalar(self.integer), Ty::scalar(self.elem), self.elem.bits() / 8);
        let mut text = format!(
            "  %ip# = getelementptr {t}, ptr %in, i32 {lane}\n  %v# = load volatile {t}, ptr %ip#, align {align}\n"
        );
        if self.op == Operation::Cas {
            text.push_str(&format!(
                "  %np# = getelementptr {i}, ptr %ins, i32 {lane}\n  %n# = load volatile {i}, ptr %np#, align {align}\n"
            ));
        }
        text
    }

    /// The helper for the lanes of a mask.
    fn walk(self) -> String {
        let (i, t, align) = (Ty::scalar(self.integer), Ty::scalar(self.elem), self.elem.bits() / 8);
        let cas = self.op == Operation::Cas;
        let mut before =
            format!("  %in = alloca <32 x {i}>, align 64\n  store volatile <32 x {i}> %values, ptr %in, align 64\n");
        if cas {
            before.push_str(&format!(
                "  %ins = alloca <32 x {i}>, align 64\n  store volatile <32 x {i}> %others, ptr %ins, align 64\n"
            ));
        }
        // A comparison that fails is only a load, which need not wait for the lanes before.
        let looks = cas && self.locked && self.elem.bits() <= 64;
        let one = if looks { self.look_and_swap() } else { self.step() };
        let mut step = format!("{}{one}", self.operands("%lane")).replace('#', "");
        let (result, after) = if self.result {
            before.push_str(&format!(
                "  %out = alloca <32 x {i}>, align 64\n  store <32 x {i}> zeroinitializer, ptr %out, align 64\n"
            ));
            step.push_str(&format!(
                "  %op = getelementptr {t}, ptr %out, i32 %lane\n  store {t} %old, ptr %op, align {align}\n"
            ));
            let after = format!("  %result = load <32 x {i}>, ptr %out, align 64\n  ret <32 x {i}> %result\n");
            (format!("<32 x {i}>"), after)
        } else {
            ("void".into(), "  ret void\n".into())
        };
        let others = if cas { format!(", <32 x {i}> %others") } else { String::new() };
        let header = format!(
            "{result} @{}(<32 x i64> %at, i32 %mask, <32 x {i}> %values{others}{})",
            self.function(false, false),
            self.window()
        );
        let text = lane_loop(&header, &before, &step, &after);
        if looks { text.replace("[ %rest, %each ]", "[ %rest, %next ]") } else { text }
    }

    /// A locked `cas` of one lane that looks before it locks: a failing one reads memory, with the order of an acquiring load.
    fn look_and_swap(self) -> String {
        let (i, align) = (Ty::scalar(self.integer), self.elem.bits() / 8);
        format!(
            "  %seen = load atomic {i}, ptr %p acquire, align {align}\n  %same = icmp eq {i} %seen, %v\n  \
             br i1 %same, label %try, label %next\ntry:\n  %pair = cmpxchg ptr %p, {i} %v, {i} %n acq_rel acquire\n  \
             %found = extractvalue {{ {i}, i1 }} %pair, 0\n  br label %next\nnext:\n  \
             %old = phi {i} [ %seen, %each ], [ %found, %try ]\n"
        )
    }

    /// The helper for all lanes, without results; with `one`, they share an operand.
    fn list(self, one: bool) -> String {
        let (i, t) = (Ty::scalar(self.integer), Ty::scalar(self.elem));
        let name = self.function(true, one);
        if one {
            let before = format!("  %v = bitcast {i} %value to {t}\n");
            let header = format!("void @{name}(<32 x i64> %at, {i} %value{})", self.window());
            return lane_list(&header, &before, &self.step().replace("%v#", "%v"), "  ret void\n");
        }
        let before =
            format!("  %in = alloca <32 x {i}>, align 64\n  store volatile <32 x {i}> %values, ptr %in, align 64\n");
        let header = format!("void @{name}(<32 x i64> %at, <32 x {i}> %values{})", self.window());
        lane_list(&header, &before, &format!("{}{}", self.operands("#"), self.step()), "  ret void\n")
    }
}

impl Flush {
    fn suffix(self) -> &'static str {
        match self {
            Flush::Never => "",
            Flush::Always => ".flush",
            Flush::OutsideShared => ".generic",
        }
    }
}

fn sum_name(flush: Flush) -> String {
    format!("margay.sum{}", flush.suffix())
}

/// A single-precision addition to a location that other threads may change concurrently.
fn sum(flush: Flush) -> String {
    let name = sum_name(flush);
    if flush == Flush::OutsideShared {
        let (inside, outside) = (sum_name(Flush::Never), sum_name(Flush::Always));
        return format!(
            "define internal float @{name}(ptr %p, float %v, i64 %low, i64 %size) #1 {{\n  %a = ptrtoint ptr %p to i64\n  \
             %at = sub i64 %a, %low\n  %shared = icmp ult i64 %at, %size\n  br i1 %shared, label %inside, label %outside\n\
             inside:\n  %kept = call float @{inside}(ptr %p, float %v)\n  ret float %kept\n\
             outside:\n  %flushed = call float @{outside}(ptr %p, float %v)\n  ret float %flushed\n}}"
        );
    }
    // Flushes to a zero of the same sign.
    let flushed = |name: &str| {
        format!(
            "  %{name}.size = and i32 %{name}, 2147483647\n  %{name}.small = icmp ult i32 %{name}.size, 8388608\n  \
             %{name}.zero = and i32 %{name}, -2147483648\n  \
             %{name}.flat = select i1 %{name}.small, i32 %{name}.zero, i32 %{name}\n"
        )
    };
    let (mut before, mut operands, mut after, mut new) = (String::new(), String::new(), String::new(), "kept");
    let (mut a, mut b) = ("seen", "bits");
    if flush == Flush::Always {
        (a, b, new) = ("seen.flat", "bits.flat", "kept.flat");
        before = flushed("bits");
        operands = flushed("seen");
        after = flushed("kept");
    }
    let nan = fp::NAN32;
    format!(
        "define internal float @{name}(ptr %p, float %v) #1 {{\nentry:\n  %bits = bitcast float %v to i32\n{before}  \
         %first = load atomic i32, ptr %p monotonic, align 4\n  br label %again\nagain:\n  \
         %seen = phi i32 [ %first, %entry ], [ %found, %again ]\n{operands}  %x = bitcast i32 %{a} to float\n  \
         %y = bitcast i32 %{b} to float\n  %sum = fadd float %x, %y\n  %raw = bitcast float %sum to i32\n  \
         %size = and i32 %raw, 2147483647\n  %nan = icmp ugt i32 %size, 2139095040\n  \
         %kept = select i1 %nan, i32 {nan}, i32 %raw\n{after}  \
         %pair = cmpxchg ptr %p, i32 %seen, i32 %{new} acq_rel acquire\n  \
         %found = extractvalue {{ i32, i1 }} %pair, 0\n  %done = extractvalue {{ i32, i1 }} %pair, 1\n  \
         br i1 %done, label %end, label %again\nend:\n  %old = bitcast i32 %seen to float\n  ret float %old\n}}"
    )
}

/// Whether an atomic operation has native code outside clusters.
pub(super) fn is_native(variant: &Variant) -> bool {
    native(variant).is_some()
}
