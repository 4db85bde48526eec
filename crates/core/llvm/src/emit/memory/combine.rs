//! Additions to global memory whose old values are unused, combined by address before they are performed.
//!
//! A locked addition takes some 20 cycles, and histograms and counters consist of little else. A relaxed addition with a
//! scope of at most the GPU orders no access to any other location (manual, section 8.9), so it may be performed later: but
//! before its thread accesses the location in another way, and before the host thread turns to other work. So this is
//! done in kernels that loop over CTAs (none of which waits for others), have no callees, and order nothing themselves: no
//! fences, no strong loads and stores. A table in the frame of the kernel's function holds one pending sum for each hash
//! of an address. If another address occupies that place, its sum is performed first. Every other access to global memory
//! compares its addresses with the range of those in the table, and has all sums performed if they overlap; so does the end
//! of the function. Where additions rarely share an address, or sums are needed too often, operations are no longer combined.

use super::{
    address::Address,
    atomic::is_native,
    copy,
    lanes::{Lane, lane_list, lane_loop},
    unit::{Strength, strength},
};
use crate::emit::{
    function::{Emitter, Role},
    text::{Elem, Ty, Val, fill, int},
};
use margay_exec::exchanges_values;
use margay_ir::{Inst, MemSpace};
use margay_isa::{Effect, Mod, Opcode};
use std::collections::HashSet;

/// Places of the table.
const PLACES: u64 = 1024;
/// Offset in the table of the end of the highest pending address; the lowest one comes first.
const HIGH: u64 = 8;
/// Offset of the balance, which shows whether combining pays.
const BALANCE: u64 = 16;
/// Offset of the addresses by place, 0 for none.
const KEYS: u64 = 64;
/// Offset of the sums by place.
const SUMS: u64 = KEYS + 8 * PLACES;
/// The largest balance, which is the first one. A new address costs 1, so the table can be filled some times over.
const RICH: u64 = 4 * PLACES;
/// Added to the balance for each warp operation: combining pays if less than a quarter of the lanes have new addresses.
const GAIN: u64 = 8;
/// Taken from the balance when another access has all sums performed.
const SETTLED: u64 = PLACES / 2;

/// The operations of a kernel that are combined.
pub(in crate::emit) struct Combined {
    table: Val,
    /// Their type.
    elem: Elem,
    insts: HashSet<u32>,
}

/// Whether an instruction does not access memory that others see, or is an access that [`Emitter::settle`] precedes.
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
        (Effect::Memory, Opcode::Ld | Opcode::Ldu | Opcode::St) => {
            near && !ordered && strength(variant) == Strength::Weak
        }
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
    fill(
        include_str!("combine/begin.ll"),
        &[("keys", &KEYS), ("size", &(8 * PLACES)), ("high", &HIGH), ("balance", &BALANCE), ("rich", &RICH)],
    )
}

/// Performs all sums.
fn flush(elem: Elem) -> String {
    let (t, align) = (Ty::scalar(elem), elem.bits() / 8);
    fill(
        include_str!("combine/flush.ll"),
        &[("t", &t), ("align", &align), ("keys", &KEYS), ("sums", &SUMS), ("high", &HIGH), ("places", &PLACES)],
    )
}

/// Performs all sums at the request of another access.
fn settle(elem: Elem) -> String {
    let t = Ty::scalar(elem);
    fill(include_str!("combine/settle.ll"), &[("t", &t), ("balance", &BALANCE), ("settled", &SETTLED)])
}

/// Gives a place to a new address.
fn insert(elem: Elem) -> String {
    let (t, align) = (Ty::scalar(elem), elem.bits() / 8);
    fill(
        include_str!("combine/insert.ll"),
        &[("t", &t), ("align", &align), ("keys", &KEYS), ("sums", &SUMS), ("high", &HIGH), ("balance", &BALANCE)],
    )
}

/// Adds `v` to the sum for the address `%a…`; `n` ends the names.
fn step(elem: Elem, n: &str, v: &str) -> String {
    let (t, align) = (Ty::scalar(elem), elem.bits() / 8);
    fill(
        include_str!("combine/step.ll"),
        &[
            ("t", &t),
            ("align", &align),
            ("n", &n),
            ("v", &v),
            ("shift", &align.trailing_zeros()),
            ("last", &(PLACES - 1)),
        ],
    )
}

/// The addresses and the sums of the table.
fn parts() -> String {
    fill(include_str!("combine/parts.ll"), &[("keys", &KEYS), ("sums", &SUMS)])
}

/// Notes that an operation of a warp was combined.
fn gain() -> String {
    fill(include_str!("combine/gain.ll"), &[("balance", &BALANCE), ("gain", &GAIN), ("rich", &RICH)])
}

/// Adds to the sum for one address.
fn one(elem: Elem) -> String {
    let t = Ty::scalar(elem);
    fill(include_str!("combine/one.ll"), &[("t", &t), ("parts", &parts()), ("step", &step(elem, "", "%v"))])
}

/// Adds the operands of all lanes, or one operand for each lane.
fn all(elem: Elem, same: bool) -> String {
    let (t, align) = (Ty::scalar(elem), elem.bits() / 8);
    let (name, operand) = if same { ("same", format!("{t} %v")) } else { ("all", format!("<32 x {t}> %values")) };
    let header = format!("void @margay.combine.{name}.{t}(<32 x i64> %at, {operand}, ptr %table)");
    let before = match same {
        true => String::new(),
        false => {
            format!("  %in = alloca <32 x {t}>, align 64\n  store volatile <32 x {t}> %values, ptr %in, align 64\n")
        }
    };
    let step = |Lane { n, .. }: Lane<'_>| match same {
        true => step(elem, n, "%v"),
        false => {
            let operand = fill(include_str!("combine/operand.ll"), &[("t", &t), ("align", &align), ("n", &n)]);
            operand + &step(elem, n, &format!("%v{n}"))
        }
    };
    lane_list(&header, &(before + &parts()), step, &gain()) + "declare i64 @llvm.smin.i64(i64, i64)"
}

/// Adds the operands of the lanes of a mask.
fn some(elem: Elem) -> String {
    let (t, align) = (Ty::scalar(elem), elem.bits() / 8);
    let header = format!("void @margay.combine.some.{t}(<32 x i64> %at, i32 %mask, <32 x {t}> %values, ptr %table)");
    let before = format!("  %in = alloca <32 x {t}>, align 64\n  store <32 x {t}> %values, ptr %in, align 64\n");
    let step = |_: Lane<'_>| fill(include_str!("combine/some.ll"), &[("t", &t), ("align", &align)]);
    lane_loop(&header, &before, step, &gain()) + "declare i64 @llvm.smin.i64(i64, i64)"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emit::text::assert_names;

    #[test]
    fn helpers_define_what_they_use() {
        assert_names(&begin());
        for elem in [Elem::I32, Elem::I64] {
            for text in
                [flush(elem), settle(elem), insert(elem), one(elem), all(elem, false), all(elem, true), some(elem)]
            {
                assert_names(&text);
            }
        }
    }
}
