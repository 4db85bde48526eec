//! Additions to global memory whose old values are unused, combined by address before they are performed.
//!
//! A locked addition takes some 20 cycles, and histograms and counters consist of little else. A relaxed addition with a
//! scope of at most the GPU orders no access to any other location (manual, section 8.9), so it may be performed later: but
//! before its thread accesses the location in another way, and before the host thread goes on to other work. So this is
//! done in kernels that loop over CTAs (none of which waits for others), have no callees, and order nothing themselves: no
//! fences, no strong loads and stores. A table in the frame of the kernel's function holds one pending sum for each hash
//! of an address. An address whose place is taken has the sum there performed. Every other access to global memory
//! compares its addresses with the range of those in the table, and has all sums performed if they overlap; and so has the
//! end of the function. Where sums meet too seldom, or are asked for too often, operations are no longer combined.

use super::{
    address::Address,
    atomic::is_native,
    copy,
    lanes::{lane_list, lane_loop},
    unit::{Kind, kind},
};
use crate::emit::{
    function::{Emitter, Role},
    text::{Elem, Ty, Val, int},
};
use margay_exec::exchanges_values;
use margay_ir::{Inst, MemSpace};
use margay_isa::{Effect, Mod, Opcode};
use std::collections::HashSet;

/// Places of the table.
const PLACES: u64 = 1024;
/// Offset in the table of the end of the highest pending address; the lowest one comes first.
const HIGH: u64 = 8;
/// Offset of the balance of gain and loss.
const BALANCE: u64 = 16;
/// Offset of the addresses by place, 0 for none.
const KEYS: u64 = 64;
/// Offset of the sums by place.
const SUMS: u64 = KEYS + 8 * PLACES;
/// The largest balance, which is the first one. A new address costs 1, so the table can be filled some times over.
const RICH: u64 = 4 * PLACES;
/// What an operation of a warp adds to the balance: it pays if less than a quarter of the lanes have new addresses.
const GAIN: u64 = 8;
/// What it costs to perform all sums at the request of another access.
const SETTLED: u64 = PLACES / 2;

/// The operations of a kernel that are combined.
pub(in crate::emit) struct Combined {
    table: Val,
    /// Their type.
    elem: Elem,
    insts: HashSet<u32>,
}

/// Whether an instruction leaves memory alone that others see, or is an access that [`Emitter::settle`] precedes.
fn allows_combining(e: &Emitter<'_>, inst: &Inst) -> bool {
    let variant = e.func.variant(inst);
    let near = inst.space != Some(MemSpace::SharedCluster);
    let ordered =
        [Mod::Acquire, Mod::Release, Mod::AcqRel, Mod::Sc, Mod::Async, Mod::Bulk, Mod::MbarrierCompleteTxBytes]
            .iter()
            .any(|m| variant.has(*m));
    match (variant.op.row().effect, variant.op) {
        (Effect::Pure | Effect::Machine, _) => true,
        (Effect::Control, op) => matches!(op, Opcode::Trap | Opcode::Nanosleep | Opcode::Pmevent),
        (Effect::Memory, _) if copy::is_idle(variant) => true,
        (Effect::Memory, Opcode::Ld | Opcode::Ldu | Opcode::St) => near && !ordered && kind(variant) == Kind::Weak,
        (Effect::Memory, Opcode::Atom | Opcode::Red) => near && !ordered && is_native(variant),
        (Effect::Memory | Effect::Call, _) => false,
        (Effect::Warp, Opcode::Bar | Opcode::Barrier) => !variant.has(Mod::Cluster),
        (Effect::Warp, op) => op == Opcode::Activemask || exchanges_values(op),
    }
}

impl Emitter<'_> {
    /// Finds the operations to combine, and prepares the table.
    pub fn begin_combining(&mut self) {
        let func = self.func;
        if self.role != Role::Grid || self.options.lean || self.options.observe.is_some() || !func.calls.is_empty() {
            return;
        }
        let found: Vec<(u32, Elem)> = func
            .insts
            .iter()
            .enumerate()
            .filter(|(_, inst)| inst.space == Some(MemSpace::Global) && !func.variant(inst).has(Mod::Sys))
            .filter_map(|(i, inst)| Some((i as u32, self.unused_sum(inst)?)))
            .collect();
        let Some((_, elem)) = found.first().copied() else { return };
        if !func.insts.iter().all(|inst| allows_combining(self, inst)) {
            return;
        }
        let insts = found.iter().filter(|(_, e)| *e == elem).map(|(i, _)| *i).collect();
        let size = SUMS + PLACES * u64::from(elem.bits() / 8);
        let table = self.w.alloca(&format!("[{size} x i8]"), 64);
        self.w.declared.extend([begin(), flush(elem), settle(elem), insert(elem), one(elem)]);
        self.w.line(format_args!("call void @margay.combine.begin(ptr {table})"));
        self.accesses.combined = Some(Combined { table, elem, insts });
    }

    /// Performs all sums, where the kernel's function ends.
    pub fn end_combining(&mut self) {
        if let Some(Combined { table, elem, .. }) = &self.accesses.combined {
            let elem = Ty::scalar(*elem);
            self.w.line(format_args!("call void @margay.combine.flush.{elem}(ptr {table})"));
        }
    }

    /// Performs all sums if one of them may be at an address that another access is about to use.
    pub(in crate::emit) fn settle(&mut self, space: MemSpace, bytes: u32, address: &Address, mask: Option<&Val>) {
        let Some(Combined { table, elem, insts }) = &self.accesses.combined else { return };
        if insts.contains(&self.inst) || !matches!(space, MemSpace::Global | MemSpace::Generic) {
            return;
        }
        let (table, elem) = (table.clone(), Ty::scalar(*elem));
        let [low, high] = [0, HIGH].map(|at| {
            let p = self.w.offset_const(&table, at);
            self.w.load(Ty::scalar(Elem::I64), &p, 8)
        });
        let (firsts, reach) = match address {
            Address::Affine { bases, width, stride } => (bases.clone(), i64::from(width - 1) * stride),
            Address::Lanes(v) => (vec![v.clone()], 0),
        };
        let mut overlap: Option<Val> = None;
        for first in firsts {
            let start = self.w.op_const("add", &first, i128::from(reach.min(0)));
            let end = self.w.op_const("add", &first, i128::from(reach.max(0)) + i128::from(bytes));
            let (below, above) = (self.w.cmp("icmp ult", &start, &high), self.w.cmp("icmp ugt", &end, &low));
            let both = self.w.op("and", &below, &above);
            overlap = Some(match overlap {
                Some(others) => self.w.op("or", &others, &both),
                None => both,
            });
        }
        let Some(mut overlap) = overlap else { return };
        if overlap.ty.vector {
            if let Some(m) = self.lanes(mask) {
                overlap = self.w.op("and", &overlap, &m);
            }
            overlap = self.any(&overlap);
        }
        let (meets, apart) = (self.w.label("settle"), self.w.label("settled"));
        self.w.branch_unlikely(&overlap, &meets, &apart);
        self.detour(&meets, &apart, |e| {
            e.w.line(format_args!("call void @margay.combine.settle.{elem}(ptr {table})"));
        });
    }

    /// Adds the operand of each lane to its sum, or has `direct` perform the operation; returns false if the current
    /// instruction is not combined. `reduced` is the sum of all lanes if they have one address.
    pub(super) fn combine(
        &mut self,
        address: &Address,
        operands: &[Val],
        reduced: Option<&(Val, Val)>,
        mask: Option<&Val>,
        direct: impl FnOnce(&mut Self),
    ) -> bool {
        let (Some(Combined { table, elem, insts }), [v]) = (&self.accesses.combined, operands) else { return false };
        if !insts.contains(&self.inst) {
            return false;
        }
        let (table, elem) = (table.clone(), *elem);
        let p = self.w.offset_const(&table, BALANCE);
        let balance = self.w.load(Ty::scalar(Elem::I64), &p, 8);
        let poor = self.w.cmp("icmp slt", &balance, &int(Elem::I64, 0));
        let [apart, together, done] = ["apart", "together", "combined"].map(|l| self.w.label(l));
        self.w.branch(&poor, &apart, &together);
        self.diamond(
            [&together, &apart, &done],
            |e| match reduced {
                Some((at, sum)) => {
                    let t = Ty::scalar(elem);
                    e.w.line(format_args!("call void @margay.combine.one.{t}(ptr {table}, i64 {at}, {t} {sum})"));
                }
                None => e.add_to_sums(&table, v, address, mask),
            },
            direct,
        );
        true
    }

    /// Adds the operand of each lane to the sum of its address.
    fn add_to_sums(&mut self, table: &Val, v: &Val, address: &Address, mask: Option<&Val>) {
        let elem = v.ty.elem;
        let addresses = self.spread(address);
        let lanes = self.lanes(mask);
        let same = lanes.is_none() && !v.ty.vector;
        let v = if same { v.clone() } else { self.w.splat(v) };
        let (name, bits) = match &lanes {
            Some(m) => ("some", format!(", i32 {}", self.bits(m))),
            None => (if same { "same" } else { "all" }, String::new()),
        };
        self.w.declared.insert(if lanes.is_some() { some(elem) } else { all(elem, same) });
        let (t, values) = (Ty::scalar(elem), v.ty);
        self.w.line(format_args!(
            "call void @margay.combine.{name}.{t}(<32 x i64> {addresses}{bits}, {values} {v}, ptr {table})"
        ));
    }
}

/// Empties the table.
fn begin() -> String {
    format!(
        "define internal void @margay.combine.begin(ptr %table) #1 {{\n  %keys = getelementptr i8, ptr %table, i64 {KEYS}\n  \
         call void @llvm.memset.p0.i64(ptr %keys, i8 0, i64 {}, i1 false)\n  store i64 -1, ptr %table, align 8\n  \
         %high = getelementptr i8, ptr %table, i64 {HIGH}\n  store i64 0, ptr %high, align 8\n  \
         %balance = getelementptr i8, ptr %table, i64 {BALANCE}\n  store i64 {RICH}, ptr %balance, align 8\n  ret void\n}}\n\
         declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
        8 * PLACES
    )
}

/// Performs all sums.
fn flush(elem: Elem) -> String {
    let (t, align) = (Ty::scalar(elem), elem.bits() / 8);
    format!(
        "define internal void @margay.combine.flush.{t}(ptr %table) #2 {{\nentry:\n  \
         %keys = getelementptr i8, ptr %table, i64 {KEYS}\n  %sums = getelementptr i8, ptr %table, i64 {SUMS}\n  \
         %high.p = getelementptr i8, ptr %table, i64 {HIGH}\n  %high = load i64, ptr %high.p, align 8\n  \
         %none = icmp eq i64 %high, 0\n  br i1 %none, label %end, label %group\n\
         group:\n  %first = phi i64 [ 0, %entry ], [ %following, %skip ]\n  \
         %group.p = getelementptr i64, ptr %keys, i64 %first\n  %group.keys = load <8 x i64>, ptr %group.p, align 64\n  \
         %taken = icmp ne <8 x i64> %group.keys, zeroinitializer\n  %bits = bitcast <8 x i1> %taken to i8\n  \
         %some = icmp ne i8 %bits, 0\n  br i1 %some, label %each, label %skip\n\
         each:\n  %i = phi i64 [ %first, %group ], [ %next, %done ]\n  %key.p = getelementptr i64, ptr %keys, i64 %i\n  \
         %key = load i64, ptr %key.p, align 8\n  %used = icmp ne i64 %key, 0\n  br i1 %used, label %perform, label %done\n\
         perform:\n  %sum.p = getelementptr {t}, ptr %sums, i64 %i\n  %sum = load {t}, ptr %sum.p, align {align}\n  \
         %p = inttoptr i64 %key to ptr\n  %old = atomicrmw add ptr %p, {t} %sum acq_rel, align {align}\n  \
         store i64 0, ptr %key.p, align 8\n  br label %done\n\
         done:\n  %next = add i64 %i, 1\n  %within = and i64 %next, 7\n  %more = icmp ne i64 %within, 0\n  \
         br i1 %more, label %each, label %skip\n\
         skip:\n  %following = add i64 %first, 8\n  %again = icmp ult i64 %following, {PLACES}\n  \
         br i1 %again, label %group, label %reset\n\
         reset:\n  store i64 -1, ptr %table, align 8\n  store i64 0, ptr %high.p, align 8\n  br label %end\n\
         end:\n  ret void\n}}"
    )
}

/// Performs all sums at the request of another access.
fn settle(elem: Elem) -> String {
    let t = Ty::scalar(elem);
    format!(
        "define internal void @margay.combine.settle.{t}(ptr %table) #2 {{\n  \
         %balance.p = getelementptr i8, ptr %table, i64 {BALANCE}\n  %balance = load i64, ptr %balance.p, align 8\n  \
         %less = sub i64 %balance, {SETTLED}\n  store i64 %less, ptr %balance.p, align 8\n  \
         call void @margay.combine.flush.{t}(ptr %table)\n  ret void\n}}"
    )
}

/// Gives a place to a new address.
fn insert(elem: Elem) -> String {
    let (t, align) = (Ty::scalar(elem), elem.bits() / 8);
    format!(
        "define internal void @margay.combine.insert.{t}(ptr %table, i64 %i, i64 %a) #2 {{\nentry:\n  \
         %keys = getelementptr i8, ptr %table, i64 {KEYS}\n  %sums = getelementptr i8, ptr %table, i64 {SUMS}\n  \
         %key.p = getelementptr i64, ptr %keys, i64 %i\n  %sum.p = getelementptr {t}, ptr %sums, i64 %i\n  \
         %key = load i64, ptr %key.p, align 8\n  %used = icmp ne i64 %key, 0\n  br i1 %used, label %perform, label %free\n\
         perform:\n  %sum = load {t}, ptr %sum.p, align {align}\n  %p = inttoptr i64 %key to ptr\n  \
         %old = atomicrmw add ptr %p, {t} %sum acq_rel, align {align}\n  br label %free\n\
         free:\n  store i64 %a, ptr %key.p, align 8\n  store {t} 0, ptr %sum.p, align {align}\n  \
         %low = load i64, ptr %table, align 8\n  %low.new = call i64 @llvm.umin.i64(i64 %low, i64 %a)\n  \
         store i64 %low.new, ptr %table, align 8\n  %end = add i64 %a, {align}\n  \
         %high.p = getelementptr i8, ptr %table, i64 {HIGH}\n  %high = load i64, ptr %high.p, align 8\n  \
         %high.new = call i64 @llvm.umax.i64(i64 %high, i64 %end)\n  store i64 %high.new, ptr %high.p, align 8\n  \
         %balance.p = getelementptr i8, ptr %table, i64 {BALANCE}\n  %balance = load i64, ptr %balance.p, align 8\n  \
         %less = sub i64 %balance, 1\n  store i64 %less, ptr %balance.p, align 8\n  ret void\n}}\n\
         declare i64 @llvm.umin.i64(i64, i64)\ndeclare i64 @llvm.umax.i64(i64, i64)"
    )
}

/// Adds `%v#` to the sum for the address `%a#`; names end in `#`.
fn step(elem: Elem) -> String {
    let (t, align) = (Ty::scalar(elem), elem.bits() / 8);
    format!(
        "  %hash# = lshr i64 %a#, {}\n  %i# = and i64 %hash#, {}\n  %key.p# = getelementptr i64, ptr %keys, i64 %i#\n  \
         %key# = load i64, ptr %key.p#, align 8\n  %new# = icmp ne i64 %key#, %a#\n  \
         br i1 %new#, label %insert#, label %add#, !prof !0\n\
         insert#:\n  call void @margay.combine.insert.{t}(ptr %table, i64 %i#, i64 %a#)\n  br label %add#\n\
         add#:\n  %sum.p# = getelementptr {t}, ptr %sums, i64 %i#\n  %sum# = load {t}, ptr %sum.p#, align {align}\n  \
         %sum.new# = add {t} %sum#, %v#\n  store {t} %sum.new#, ptr %sum.p#, align {align}\n",
        align.trailing_zeros(),
        PLACES - 1
    )
}

/// The addresses and the sums of the table.
fn parts() -> String {
    format!("  %keys = getelementptr i8, ptr %table, i64 {KEYS}\n  %sums = getelementptr i8, ptr %table, i64 {SUMS}\n")
}

/// Notes that an operation of a warp was combined.
fn gain() -> String {
    format!(
        "  %balance.p = getelementptr i8, ptr %table, i64 {BALANCE}\n  %balance = load i64, ptr %balance.p, align 8\n  \
         %more.0 = add i64 %balance, {GAIN}\n  %more.1 = call i64 @llvm.smin.i64(i64 %more.0, i64 {RICH})\n  \
         store i64 %more.1, ptr %balance.p, align 8\n  ret void\n"
    )
}

/// Adds to the sum for one address.
fn one(elem: Elem) -> String {
    let t = Ty::scalar(elem);
    format!(
        "define internal void @margay.combine.one.{t}(ptr %table, i64 %a, {t} %v) #1 {{\nentry:\n{}{}  ret void\n}}",
        parts(),
        step(elem).replace('#', "")
    )
}

/// Adds the operands of all lanes, or one operand for each lane.
fn all(elem: Elem, same: bool) -> String {
    let (t, align) = (Ty::scalar(elem), elem.bits() / 8);
    let (name, operand) = if same { ("same", format!("{t} %v")) } else { ("all", format!("<32 x {t}> %values")) };
    let header = format!("void @margay.combine.{name}.{t}(<32 x i64> %at, {operand}, ptr %table)");
    let (before, step) = match same {
        true => (String::new(), step(elem).replace("%v#", "%v")),
        false => (
            format!("  %in = alloca <32 x {t}>, align 64\n  store volatile <32 x {t}> %values, ptr %in, align 64\n"),
            format!(
                "  %in.p# = getelementptr {t}, ptr %in, i32 #\n  %v# = load volatile {t}, ptr %in.p#, align {align}\n{}",
                step(elem)
            ),
        ),
    };
    let text = lane_list(&header, &(before + &parts()), &step, &gain());
    text + "\ndeclare i64 @llvm.smin.i64(i64, i64)"
}

/// Adds the operands of the lanes of a mask.
fn some(elem: Elem) -> String {
    let (t, align) = (Ty::scalar(elem), elem.bits() / 8);
    let header = format!("void @margay.combine.some.{t}(<32 x i64> %at, i32 %mask, <32 x {t}> %values, ptr %table)");
    let before = format!("  %in = alloca <32 x {t}>, align 64\n  store <32 x {t}> %values, ptr %in, align 64\n");
    let step = format!(
        "  %in.p = getelementptr {t}, ptr %in, i32 %lane\n  %v = load {t}, ptr %in.p, align {align}\n  \
         call void @margay.combine.one.{t}(ptr %table, i64 %a, {t} %v)\n"
    );
    lane_loop(&header, &before, &step, &gain()) + "\ndeclare i64 @llvm.smin.i64(i64, i64)"
}
