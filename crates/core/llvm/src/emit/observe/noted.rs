//! Accesses to shared memory by rows of lanes that need no report if a barrier comes before any conflicting access. They are appended to a
//! buffer (*noted*), and each line of memory keeps how it was used since the last barrier ([`margay_exec::LineUses`]); an access that
//! does not fit that use is reported, after those that were noted.
//!
//! Loads of a region are not even noted if all threads of the CTA run it between two barriers and nothing in it writes shared memory.

use crate::ctx::{Helper, at};
use crate::emit::{
    function::affine::{Row, rows},
    function::{Emitter, GridLoop},
    known::Mark,
    memory::address::Address,
    text::{Elem, Ty, Val, constant, int},
};
use margay_exec::{AccessKind, LINE_BYTES, LineUse, RowLoad};
use margay_ir::{BlockId, Func, Inst, MemSpace, pass::conditions_of_use};
use margay_isa::{Effect, Mod, Opcode};
use std::mem::offset_of;

/// The maximum number of barriers that complete before a report to the observer: its count of intervals must not overflow.
const MAX_MEETINGS: u32 = 1 << 20;

/// An access by a row of lanes whose addresses increase evenly.
struct Run {
    /// The address of lane 0 of the warp, if the row went on there.
    origin: Val,
    /// The first and the last byte that its lanes access.
    ends: [Val; 2],
    /// The largest distance between these, in bytes.
    reach: u64,
    /// Its lanes that access memory.
    lanes: Val,
}

impl Run {
    /// The maximum number of lines that it may extend over; an aligned access to one address lies in one.
    fn lines(&self) -> u64 {
        if self.reach < 16 { 1 } else { 2 + self.reach.saturating_sub(1) / LINE_BYTES }
    }
}

impl Emitter<'_> {
    /// Whether a store or load need not be reported if the lines allow it.
    fn may_be_noted(&self, (inst, access): (&Inst, AccessKind), address: &Address, bytes: u32) -> bool {
        let evenly = match (access, address) {
            (AccessKind::Load, Address::Affine { stride, .. }) => (0..=16).contains(stride),
            // What asynchronous copies read must have been seen by their proxy too.
            (AccessKind::Store, Address::Affine { stride, .. }) => {
                LineUse::are_apart(*stride as u64, bytes) && self.grid_loop.synchronous
            }
            _ => false,
        };
        !self.follows_threads()
            && evenly
            && bytes <= 16
            && inst.space == Some(MemSpace::Shared)
            && !self.is_ahead(access)
    }

    /// Whether an access is a load whose value is used under conditions, so that the observer wants to know whether they hold.
    fn is_ahead(&self, access: AccessKind) -> bool {
        access == AccessKind::Load && conditions_of_use(self.func, self.inst).is_some()
    }

    /// Notes a weak access if the uses of its lines allow that, and branches to the returned label; the code emitted next reports it
    /// otherwise. `None` if it must be reported in any case.
    pub(super) fn note_or_report(
        &mut self,
        (inst, access): (&Inst, AccessKind),
        site: usize,
        address: &Address,
        bytes: u32,
        mask: Option<&Val>,
    ) -> Option<(String, Mark)> {
        let Address::Affine { bases, width, stride } = address else { return None };
        if !self.may_be_noted((inst, access), address, bytes) {
            return None;
        }
        let (report, on) = (self.w.label("report"), self.w.label("noted"));
        let count = self.ctx_value(Elem::I64, at::LINE_COUNT);
        let only_loads = access == AccessKind::Load && self.region.only_loads;
        if only_loads {
            let all = self.w.cmp("icmp eq", &count, &int(Elem::I64, 0));
            self.w.branch_unlikely(&all, &report, &on);
            let mark = self.w.mark();
            self.w.follow(&report);
            return Some((on, mark));
        }
        let mark = self.w.mark();
        if access == AccessKind::Store {
            // Loads that were not looked at yet come first, if they may be of the same memory.
            let waiting = self.ctx_value(Elem::I32, at::LOADS_SHARED);
            let waiting = self.w.cmp("icmp ne", &waiting, &int(Elem::I32, 0));
            self.report_unless_not(&waiting, &report);
        }
        let (all, whole) = (self.lane_bits(mask), self.lanes(mask).is_none());
        let runs: Vec<Run> =
            rows(*width).zip(bases).map(|(row, base)| self.run(row, base, (*stride, bytes), &all)).collect();
        // Lanes of several runs may store to the same place.
        for pair in runs.windows(2).filter(|_| access == AccessKind::Store) {
            let behind = self.w.cmp("icmp ule", &pair[1].ends[0], &pair[0].ends[1]);
            self.report_unless_not(&behind, &report);
        }
        let read = self.ctx_value(Elem::I64, at::LINE_READ);
        match &runs[..] {
            [run] => {
                let own = LineUse::are_apart(*stride as u64, bytes).then(|| self.own_use(&read, run, bytes));
                self.use_lines((access, run), [&count, &read], own.as_ref(), (whole, &report));
            }
            _ => {
                let mut uses = Vec::new();
                for run in &runs {
                    for i in 0..run.lines() {
                        let [low, high] = self.lines_of(run, &count, Some(&report));
                        let place = self.use_of(&low, &high, i);
                        uses.push((place.clone(), self.use_line(access, &place, &read, None, &report)));
                    }
                }
                // A store may use a line twice.
                uses.iter().for_each(|(place, new)| self.w.store(new, place, 8));
            }
        }
        for run in &runs {
            self.append((at::NOTES, at::NOTES_END, Helper::Notes), site, &run.lanes, &run.origin);
        }
        self.w.jump(&on);
        self.w.join(&report, mark);
        Some((on, mark))
    }

    /// The accesses of `bytes` bytes by a row of lanes, `stride` bytes apart from `base` on; `active` has the bits of the warp's lanes.
    fn run(&mut self, row: Row, base: &Val, (stride, bytes): (i64, u32), active: &Val) -> Run {
        let here = ((1u64 << row.width) - 1) << (row.width * row.index);
        let before = i64::from(row.width * row.index) * stride;
        let lanes = self.w.op_const("and", active, i128::from(here as u32 as i32));
        let origin = self.w.op_const("add", base, -i128::from(before));
        let reach = (u64::from(row.width) - 1) * stride as u64 + u64::from(bytes) - 1;
        let ends = self.ends_of(&origin, &lanes, (stride as u64, bytes));
        Run { origin, ends, reach, lanes }
    }

    /// The use of lines by a row whose lanes have words of their own, while they only load.
    fn own_use(&mut self, read: &Val, run: &Run, bytes: u32) -> Val {
        let warp = self.warp_index();
        let warp = self.w.cast("zext", &warp, Elem::I64);
        let warp = self.w.op_const("shl", &warp, LineUse::WARP.into());
        let threads = self.w.op_const("or", &warp, LineUse::threads(bytes).into());
        let origin = self.w.op_const("shl", &run.origin, LineUse::ORIGIN.into());
        let origin = self.w.op_const("and", &origin, 0xffff_ff00);
        let way = self.w.op("or", &origin, &threads);
        self.w.op("or", read, &way)
    }

    /// Whether an access must be reported because of the last use of a line and, if not, the use after it ([`LineUse`]). `read` is the use for
    /// loads by any lanes, `own` the one for loads by lanes that have words of their own.
    fn next_use(&mut self, access: AccessKind, known: &Val, read: &Val, own: Option<&Val>) -> (Val, Val) {
        let changed = i128::from(LineUse::CHANGED);
        let fresh = self.w.cmp("icmp ult", known, read);
        let mine = own.map(|own| {
            let [a, b] = [known, own].map(|v| self.w.op_const("or", v, changed));
            self.w.cmp("icmp eq", &a, &b)
        });
        let (good, new) = match (access, mine, own) {
            (AccessKind::Store, Some(mine), Some(own)) => {
                (self.w.op("or", &fresh, &mine), self.w.op_const("or", own, changed))
            }
            (AccessKind::Store, ..) => (fresh, self.w.op_const("add", read, LineUse::WRITTEN.into())),
            (_, mine, own) => {
                let changes = self.w.op_const("and", known, changed);
                let loaded = self.w.cmp("icmp eq", &changes, &int(Elem::I64, 0));
                let mut good = self.w.op("or", &fresh, &loaded);
                let mut new = read.clone();
                if let (Some(mine), Some(own)) = (mine, own) {
                    good = self.w.op("or", &good, &mine);
                    new = self.w.select(&mine, known, &new);
                    new = self.w.select(&fresh, own, &new);
                }
                (good, new)
            }
        };
        (self.w.op("xor", &good, &constant(Ty::scalar(Elem::I1), 1)), new)
    }

    /// All threads of the CTA have arrived at a barrier: empties the buffer and branches to the returned label; the code emitted next reports
    /// the barrier where that does not suffice.
    pub(super) fn meet(&mut self) -> (String, Mark) {
        let (report, on) = (self.w.label("report"), self.w.label("met"));
        let mark = self.w.mark();
        let count = self.ctx_value(Elem::I64, at::LINE_COUNT);
        let all = self.w.cmp("icmp eq", &count, &int(Elem::I64, 0));
        let [next, first] = [at::LOADS, at::LOADS_BEGIN].map(|offset| self.ctx_value(Elem::I64, offset));
        let waiting = self.w.cmp("icmp ne", &next, &first);
        let met = self.ctx_value(Elem::I32, at::MET);
        let many = self.w.cmp("icmp uge", &met, &int(Elem::I32, MAX_MEETINGS.into()));
        let must = self.w.op("or", &all, &waiting);
        let must = self.w.op("or", &must, &many);
        self.report_unless_not(&must, &report);
        let notes = self.ctx_value(Elem::I64, at::NOTES_BEGIN);
        let read = self.ctx_value(Elem::I64, at::LINE_READ);
        let read = self.w.op_const("add", &read, LineUse::new(1, LineUse::READ).0.into());
        let met = self.w.op_const("add", &met, 1);
        for (offset, value, size) in [(at::NOTES, notes, 8), (at::LINE_READ, read, 8), (at::MET, met, 4)] {
            let place = self.ctx_pointer(offset);
            self.w.store(&value, &place, size);
        }
        self.w.jump(&on);
        self.w.join(&report, mark);
        (on, mark)
    }

    /// The first and the last byte that lanes access; the last one lies far off if there are no lanes.
    fn ends_of(&mut self, origin: &Val, lanes: &Val, (stride, bytes): (u64, u32)) -> [Val; 2] {
        let defined_for_zero = constant(Ty::scalar(Elem::I1), 0);
        let offset = |e: &mut Self, lane: &Val| {
            let wide = e.w.cast("zext", lane, Elem::I64);
            e.w.op_const("mul", &wide, i128::from(stride))
        };
        let first = self.w.intrinsic_named("llvm.cttz.i32", lanes.ty, &[lanes, &defined_for_zero]);
        let spare = self.w.intrinsic_named("llvm.ctlz.i32", lanes.ty, &[lanes, &defined_for_zero]);
        let last = self.w.op("sub", &int(Elem::I32, 31), &spare);
        let [first, last] = [first, last].map(|lane| offset(self, &lane));
        let low = self.w.op("add", origin, &first);
        let high = self.w.op("add", origin, &last);
        [low, self.w.op_const("add", &high, i128::from(bytes) - 1)]
    }

    /// Goes on here unless the access must be reported.
    fn report_unless_not(&mut self, must: &Val, report: &str) {
        let look = self.w.label("look");
        self.w.branch_unlikely(must, report, &look);
        self.w.follow(&look);
    }

    /// The first and the last line of a run; branches to `report`, if given, unless both are lines of the CTA.
    fn lines_of(&mut self, run: &Run, count: &Val, report: Option<&str>) -> [Val; 2] {
        let before = self.ctx_value(Elem::I64, at::FIRST_LINE);
        let [low, high] = [0, 1].map(|end| {
            let line = self.w.op_const("lshr", &run.ends[end], i128::from(LINE_BYTES.trailing_zeros()));
            self.w.op("sub", &line, &before)
        });
        if let Some(report) = report {
            let [starts, ends] = [&low, &high].map(|line| self.w.cmp("icmp uge", line, count));
            let beyond = self.w.op("or", &starts, &ends);
            self.report_unless_not(&beyond, report);
        }
        [low, high]
    }

    /// Address of the use of line `low + i`, or of line `high` if that is lower.
    fn use_of(&mut self, low: &Val, high: &Val, i: u64) -> Val {
        let line = self.w.op_const("add", low, i128::from(i));
        let line = if i == 0 { low.clone() } else { self.w.intrinsic("llvm.umin", line.ty, &[&line, high]) };
        let table = self.ctx_value(Elem::I64, at::USES);
        let table = self.w.value(Ty::scalar(Elem::Ptr), format_args!("inttoptr i64 {table} to ptr"));
        let offset = self.w.op_const("shl", &line, 3);
        self.w.offset(&table, &offset)
    }

    /// The use of a line after an access; goes to `report` if the access must be reported.
    fn use_line(&mut self, access: AccessKind, place: &Val, read: &Val, own: Option<&Val>, report: &str) -> Val {
        let known = self.w.load(Ty::scalar(Elem::I64), place, 8);
        let (bad, new) = self.next_use(access, &known, read, own);
        self.report_unless_not(&bad, report);
        new
    }

    /// Uses the lines of a run, one after the other; all its lanes access memory if it is `whole`. Most runs lie in one line.
    fn use_lines(
        &mut self,
        (access, run): (AccessKind, &Run),
        [count, read]: [&Val; 2],
        own: Option<&Val>,
        (whole, report): (bool, &str),
    ) {
        // Lanes access shared memory by now, unless there are none.
        if whole {
            let all = self.w.cmp("icmp eq", count, &int(Elem::I64, 0));
            self.report_unless_not(&all, report);
        }
        let [low, high] = self.lines_of(run, count, if whole { None } else { Some(report) });
        let done = self.w.label("used");
        let mark = self.w.mark();
        for i in 0..run.lines() {
            if i > 0 {
                let line = self.w.op_const("add", &low, i128::from(i));
                let over = self.w.cmp("icmp ugt", &line, &high);
                let more = self.w.label("line");
                self.w.branch(&over, &done, &more);
                self.w.follow(&more);
            }
            let place = self.use_of(&low, &high, i);
            let new = self.use_line(access, &place, read, own, report);
            self.w.store(&new, &place, 8);
        }
        self.w.jump(&done);
        self.w.join(&done, mark);
    }

    /// Appends an access by lanes of a row to a buffer; the helper empties it.
    pub(super) fn append(&mut self, (next, end, empty): (u64, u64, Helper), site: usize, lanes: &Val, first: &Val) {
        const SIZE: usize = size_of::<RowLoad>();
        let wide = Ty::scalar(Elem::I64);
        let next = self.ctx_pointer(next);
        let here = self.w.value(wide, format_args!("load i64, ptr {next}, align 8, !noalias !3"));
        let entry = self.w.value(Ty::scalar(Elem::Ptr), format_args!("inttoptr i64 {here} to ptr"));
        let warp = self.warp_index();
        let fields = [
            (offset_of!(RowLoad, first), first.clone()),
            (offset_of!(RowLoad, place), int(Elem::I32, site as i128)),
            (offset_of!(RowLoad, lanes), lanes.clone()),
            (offset_of!(RowLoad, warp), warp),
        ];
        for (offset, v) in fields {
            let p = self.w.offset_const(&entry, offset as u64);
            self.w.line(format_args!("store {} {v}, ptr {p}, align 4, !noalias !3", v.ty));
        }
        let after = self.w.value(wide, format_args!("add i64 {here}, {SIZE}"));
        self.w.line(format_args!("store i64 {after}, ptr {next}, align 8, !noalias !3"));
        let end = self.ctx_value(Elem::I64, end);
        let full = self.w.cmp("icmp eq", &after, &end);
        let (flush, on) = (self.w.label("full"), self.w.label("appended"));
        self.w.branch_unlikely(&full, &flush, &on);
        self.detour(&flush, &on, |e| e.helper(empty, &[]));
    }

    /// Whether all instructions of the kernel are over when the next one begins: no asynchronous copy continues in other regions.
    pub fn is_synchronous(&self) -> bool {
        self.func.insts.iter().all(|inst| is_synchronous(self.func, inst))
    }

    /// Whether loads from shared memory in a region cannot race with anything that the CTA's threads do there: all threads execute the region
    /// between two barriers, and it does not write shared memory.
    pub fn only_loads_shared(&self, blocks: &[BlockId]) -> bool {
        let func = self.func;
        let GridLoop { together, synchronous, .. } = self.grid_loop;
        let of = |block: &BlockId| func.insts(&func.blocks[block.0 as usize]);
        together && synchronous && !blocks.iter().flat_map(of).any(|inst| may_write_shared(func, inst))
    }
}

/// Whether an instruction is over when the next one begins, and accesses memory by itself if at all.
fn is_synchronous(func: &Func, inst: &Inst) -> bool {
    let variant = func.variant(inst);
    match (variant.op.row().effect, variant.op) {
        (Effect::Pure | Effect::Machine | Effect::Control, _) => true,
        (Effect::Memory, Opcode::Ld | Opcode::Ldu | Opcode::Membar | Opcode::Fence) => true,
        (Effect::Memory, Opcode::St | Opcode::Atom | Opcode::Red) => !variant.has(Mod::Async),
        (Effect::Warp, Opcode::Bar | Opcode::Barrier | Opcode::Shfl | Opcode::Vote | Opcode::Match) => true,
        (Effect::Warp, Opcode::Redux | Opcode::Activemask | Opcode::Elect | Opcode::Mma) => true,
        _ => false,
    }
}

fn may_write_shared(func: &Func, inst: &Inst) -> bool {
    let elsewhere =
        matches!(inst.space, Some(MemSpace::Global | MemSpace::Local | MemSpace::Const | MemSpace::KernelParam));
    matches!(func.variant(inst).op, Opcode::St | Opcode::Atom | Opcode::Red) && !elsewhere
}
