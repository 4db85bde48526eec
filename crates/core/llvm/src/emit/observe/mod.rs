//! Reports to the observer of a launch: accesses before they take effect, barriers, warp operations, the begin and end of CTAs.
//!
//! Only the events that the observer asks for are compiled in. Loads by rows of lanes are appended to a buffer, which the host reads before
//! it handles the next event of another kind: between two such events, the order of loads does not matter. Accesses are compared with
//! the bounds of what their address derives from by a range per site, as they are with allocations.
//!
//! Only kernels that loop over CTAs and warps themselves are compiled for an observer, and only device functions that concern no other
//! thread ([`is_quiet`]), which report nothing: the others stay on the reference engine. What is not reported here is executed by the
//! reference engine, which reports it: copies, matrices in memory, fences, operations of a part of a warp.

mod frame;
mod noted;

use crate::ctx::{Helper, at};
use crate::emit::{
    function::affine::{Row, rows},
    function::{Emitter, Mode, Result, Role},
    memory::address::Address,
    memory::group::{Grouped, Member},
    site::{Moment, SiteKind},
    text::{Elem, Ty, Val, int, named},
};
use margay_exec::{AccessKind, Interest, LineUse, Ordering, Semantics, exchanges_values};
use margay_ir::{Builtin, Inst, MemBase, MemSpace, Operand, explicit::Target, pass::is_quiet};
use margay_isa::{Effect, Mod, Opcode};

impl Emitter<'_> {
    /// Refuses kernels whose events compiled code cannot report.
    pub fn require_observable(&self) -> Result<()> {
        let fibers = !matches!(self.role, Role::Grid | Role::Device) || self.options.cluster.is_some();
        match self.options.observe.is_some() && fibers {
            true => self.refuse("checks of a kernel whose warps run on fibers"),
            false => Ok(()),
        }
    }

    /// Refuses calls whose effects are reported by the reference engine only. Bounds of local variables are those of the kernel's frame, so
    /// no functions are called where bounds are checked.
    pub fn require_observable_call(&self, target: &Target) -> Result<()> {
        let Some(Interest { bounds, .. }) = self.options.observe else { return Ok(()) };
        match target {
            Target::Builtin(Builtin::Free) => self.refuse("checks of a kernel that frees memory"),
            Target::Builtin(builtin) if builtin.queues() => self.refuse("checks of a kernel that launches others"),
            Target::Builtin(_) => Ok(()),
            Target::Function(f) if !bounds && is_quiet(self.ir, *f) => Ok(()),
            _ => self.refuse("checks of a kernel that calls functions"),
        }
    }

    /// Whether accesses to local memory need no report: no address of it becomes generic, so that no other thread has one.
    pub fn is_local_private(&self) -> bool {
        let Some(Interest { bounds, .. }) = self.options.observe else { return false };
        let leaks = |inst: &Inst| {
            let variant = self.func.variant(inst);
            variant.op == Opcode::Cvta && variant.has(Mod::Local) && !variant.has(Mod::To)
        };
        !bounds && !self.follows_threads() && !self.func.insts.iter().any(leaks)
    }

    /// Whether the observer learns where each thread was last, because some may end without coming to a barrier.
    fn follows_threads(&self) -> bool {
        let progress = self.options.observe.is_some_and(|interest| interest.progress);
        progress && !self.prepared.barriers.is_empty() && !self.grid_loop.together
    }

    /// Refuses shuffles that may read inactive lanes, other than those that all lanes were to execute: only the reference engine follows
    /// what they yield.
    pub fn require_observable_shuffle(&self, inst: &Inst) -> Result<()> {
        let progress = self.options.observe.is_some_and(|interest| interest.progress);
        let variant = self.func.variant(inst);
        match progress && variant.op == Opcode::Shfl && !(variant.has(Mod::Sync) && self.names_all(inst)) {
            true => self.refuse("checks of shuffles by a part of a warp"),
            false => Ok(()),
        }
    }

    /// Whether an instruction must be executed by the reference engine for the observer's sake, although it has native code.
    pub fn reported_elsewhere(&self, inst: &Inst) -> bool {
        let Some(Interest { order, progress, .. }) = self.options.observe else { return false };
        let variant = self.func.variant(inst);
        match (variant.op.row().effect, variant.op) {
            (Effect::Memory, Opcode::Ld | Opcode::Ldu | Opcode::St | Opcode::Atom | Opcode::Red) => false,
            (Effect::Memory, Opcode::Cp) => true,
            (Effect::Memory, Opcode::Membar | Opcode::Fence | Opcode::Griddepcontrol) => order,
            (Effect::Warp, Opcode::Ldmatrix | Opcode::Stmatrix) => true,
            (Effect::Warp, Opcode::Wmma) => variant.has(Mod::Load) || variant.has(Mod::Store),
            // Member masks are looked at there.
            (Effect::Warp, _) if !order && !progress => false,
            (Effect::Warp, Opcode::Bar | Opcode::Barrier) => variant.has(Mod::Warp) && !self.is_whole(inst),
            (Effect::Warp, op) => exchanges_values(op) && !self.is_whole(inst),
            _ => false,
        }
    }

    /// Whether all 32 lanes of a warp execute an operation, and its member mask names them all.
    fn is_whole(&self, inst: &Inst) -> bool {
        self.mode == Mode::Full && inst.guard.is_none() && self.names_all(inst)
    }

    /// Whether the member mask of a warp operation names all 32 lanes, or it has none.
    fn names_all(&self, inst: &Inst) -> bool {
        let variant = self.func.variant(inst);
        let members = match variant.has(Mod::Sync) || matches!(variant.op, Opcode::Bar | Opcode::Barrier) {
            true => self.func.operands(inst.srcs).last().copied(),
            false => Some(Operand::Imm(u32::MAX.into())),
        };
        matches!(members, Some(Operand::Imm(v)) if v as u32 == u32::MAX)
    }

    /// Reports a warp operation that has native code.
    pub fn observe_warp(&mut self, inst: &Inst) {
        let variant = self.func.variant(inst);
        if matches!(variant.op, Opcode::Bar | Opcode::Barrier) {
            self.observe(Moment::Warp);
        } else if exchanges_values(variant.op) {
            self.observe(Moment::Exchange);
        }
    }

    /// Reports something that the active lanes do at the current instruction.
    pub fn observe(&mut self, moment: Moment) {
        let Some(Interest { order, progress, .. }) = self.options.observe else { return };
        // Without barriers, no thread can skip one.
        let progress = progress && !self.prepared.barriers.is_empty();
        let wanted = match moment {
            // All threads of the CTA come to this barrier: reporting its completion suffices.
            Moment::Arrive if self.grid_loop.together && (self.region.lone_barrier || !progress) => order && progress,
            Moment::Begin | Moment::End | Moment::Arrive | Moment::Complete => order || progress,
            Moment::Warp | Moment::Exchange => order,
        };
        if wanted {
            let quick = moment == Moment::Complete && order && !progress && self.grid_loop.together;
            let met = if quick { Some(self.meet()) } else { None };
            let (site, lanes) = (self.site(SiteKind::Moment(moment)), self.active_bits());
            self.helper(Helper::Event, &[&int(Elem::I32, site as i128), &lanes]);
            if let Some((on, mark)) = met {
                self.w.jump(&on);
                self.w.join(&on, mark);
            }
        }
    }

    /// Reports an access by the active lanes of a mask; `values` are the elements that it stores.
    pub fn observe_access(
        &mut self,
        (inst, access): (&Inst, AccessKind),
        address: &Address,
        bytes: u32,
        values: &[Val],
        mask: Option<&Val>,
    ) {
        let space = inst.space.unwrap_or(MemSpace::Generic);
        let Some(Interest { order, bounds, .. }) = self.options.observe else { return };
        if space == MemSpace::KernelParam {
            return;
        }
        if space == MemSpace::Local && self.local.private || self.role == Role::Device {
            return;
        }
        if bounds && !matches!(space, MemSpace::Local | MemSpace::Const) {
            self.observe_bounds(access, address, bytes, mask);
        }
        if bounds {
            self.observe_frame((inst, access), address, bytes, mask);
        }
        let stride = match address {
            Address::Affine { stride, .. } => *stride as u64,
            Address::Lanes(_) => 0,
        };
        let kind = SiteKind::Observed { bytes, access, stride };
        if !order {
            if self.follows_threads() && !self.goes_on_to_access() {
                let (site, lanes) = (self.site(kind), self.lane_bits(mask));
                self.note_load(site, &lanes, &int(Elem::I64, 0));
            }
            return;
        }
        let site = self.site(kind);
        let weak = Ordering::of(self.func.variant(inst), access).semantics == Semantics::Weak;
        let away = matches!(space, MemSpace::Global | MemSpace::Generic) && weak && access != AccessKind::Atomic;
        let joined = if away && !self.follows_threads() {
            let outside = self.leaves(site, address, (31 * stride as i64).min(0));
            outside.map(|outside| self.unlikely(&outside, mask))
        } else {
            None
        };
        let noted = match weak {
            true => self.note_or_report((inst, access), site, address, bytes, mask),
            false => None,
        };
        if weak && access == AccessKind::Load && matches!(address, Address::Affine { .. }) && space != MemSpace::Global
        {
            let shared = self.ctx_pointer(at::LOADS_SHARED);
            self.w.store(&int(Elem::I32, 1), &shared, 4);
        }
        self.report_access((site, weak && access == AccessKind::Load), (address, bytes), stride, values, mask);
        for (on, mark) in [noted, joined].into_iter().flatten() {
            self.w.jump(&on);
            self.w.join(&on, mark);
        }
    }

    /// Reports an access that the observer must see; loads of rows are only noted.
    fn report_access(
        &mut self,
        (site, is_load): (usize, bool),
        (address, bytes): (&Address, u32),
        stride: u64,
        values: &[Val],
        mask: Option<&Val>,
    ) {
        let lanes = self.lane_bits(mask);
        if let Address::Affine { bases, width, .. } = address
            && is_load
        {
            for (row, base) in rows(*width).zip(bases) {
                let (lanes, first) = self.part(row, base, (stride, &lanes));
                self.note_load(site, &lanes, &first);
            }
            return;
        }
        let site = int(Elem::I32, site as i128);
        let stored = self.stored_rows(values);
        match address {
            Address::Affine { bases, width: 32, .. } => {
                let stride = int(Elem::I64, i128::from(stride as i64));
                self.helper(Helper::ObserveRow, &[&site, &lanes, &bases[0], &stride, &stored]);
            }
            Address::Affine { bases, width, .. } if !values.is_empty() && LineUse::are_apart(stride, bytes) => {
                let Some(overlap) = self.may_overlap(bases, u64::from(*width) * stride) else { return };
                let [all, each, on] = ["overlap", "apart", "observed"].map(|s| self.w.label(s));
                self.w.branch_unlikely(&overlap, &all, &each);
                self.diamond(
                    [&all, &each, &on],
                    |e| {
                        let list = e.listed(address);
                        e.helper(Helper::Observe, &[&site, &lanes, &list, &stored]);
                    },
                    |e| {
                        let step = int(Elem::I64, i128::from(stride as i64));
                        for (row, base) in rows(*width).zip(bases) {
                            let (lanes, first) = e.part(row, base, (stride, &lanes));
                            e.helper(Helper::ObserveRow, &[&site, &lanes, &first, &step, &stored]);
                        }
                    },
                );
            }
            _ => {
                let list = self.listed(address);
                self.helper(Helper::Observe, &[&site, &lanes, &list, &stored]);
            }
        }
    }

    /// The address of a variable with the values that an access stores, one row of lanes after another; null if there are none.
    fn stored_rows(&mut self, values: &[Val]) -> Val {
        let Some(first) = values.first() else { return named(Ty::scalar(Elem::Ptr), "null") };
        let size = u64::from(first.ty.elem.bits() / 8) * 32;
        let row = self.w.alloca(&format!("[{} x i8]", size * values.len() as u64), 64);
        for (k, v) in values.iter().enumerate() {
            let (v, p) = (self.w.splat(v), self.w.offset_const(&row, k as u64 * size));
            self.w.store(&v, &p, 8);
        }
        row
    }

    /// Whether some of these rows of `bytes` bytes begin before the end of the one before; `None` if there is only one row.
    fn may_overlap(&mut self, bases: &[Val], bytes: u64) -> Option<Val> {
        let mut overlap: Option<Val> = None;
        for pair in bases.windows(2) {
            let end = self.w.op_const("add", &pair[0], bytes.into());
            let behind = self.w.cmp("icmp ult", &pair[1], &end);
            overlap = Some(self.either(overlap, behind));
        }
        overlap
    }

    /// The lanes of one of several rows, and the address that lane 0 of the warp would have if the row went on there.
    fn part(&mut self, row: Row, base: &Val, (stride, lanes): (u64, &Val)) -> (Val, Val) {
        let here = ((1u64 << row.width) - 1) << (row.width * row.index);
        let before = u64::from(row.width * row.index).wrapping_mul(stride);
        let first = self.w.op_const("add", base, -i128::from(before as i64));
        (self.w.op_const("and", lanes, i128::from(here as u32 as i32)), first)
    }

    /// A buffer with the address of each lane.
    fn listed(&mut self, address: &Address) -> Val {
        let all = self.spread(address);
        let list = self.w.alloca(&Ty::lanes(Elem::I64).to_string(), 64);
        self.w.store(&all, &list, 64);
        list
    }

    /// Whether all lanes that are active here access memory once more, or arrive at a barrier, before the block ends.
    fn goes_on_to_access(&self) -> bool {
        let func = self.func;
        let block = func.blocks[self.here.0 as usize].insts.range();
        (self.inst as usize + 1..block.end).map(|i| &func.insts[i]).any(|inst| {
            let accesses = matches!(func.variant(inst).op, Opcode::Ld | Opcode::Ldu | Opcode::St)
                && !matches!(inst.space, Some(MemSpace::Const | MemSpace::KernelParam | MemSpace::Local));
            // A variable of the function itself may live in registers.
            let in_memory = |o: &Operand| matches!(o, Operand::Mem(MemBase::Reg(_) | MemBase::Global(_), _));
            inst.guard.is_none() && accesses && func.operands(inst.srcs).first().is_some_and(in_memory)
        })
    }

    /// Appends to the loads that the host will look at before the next other event.
    fn note_load(&mut self, site: usize, lanes: &Val, first: &Val) {
        self.append((at::LOADS, at::LOADS_END, Helper::Loads), site, lanes, first);
    }

    /// Whether an access may leave the range cached for a site; `least` is the distance from a row's first lane to what must come first in
    /// the range.
    fn leaves(&mut self, site: usize, address: &Address, least: i64) -> Option<Val> {
        let firsts = match address {
            Address::Affine { bases, .. } => bases.clone(),
            Address::Lanes(v) => vec![v.clone()],
        };
        let (low, limit) = self.cached(site);
        let mut outside: Option<Val> = None;
        for first in &firsts {
            let least = self.w.op_const("add", first, i128::from(least));
            let offset = self.w.op("sub", &least, &low);
            let beyond = self.w.cmp("icmp uge", &offset, &limit);
            outside = Some(self.either(outside, beyond));
        }
        outside
    }

    /// Reports an access if some lane leaves the range that the observer has set for its site. In a group of rows with one address register,
    /// the first access is compared for the whole group; if it fails, all of them are reported before the first is performed.
    fn observe_bounds(&mut self, access: AccessKind, address: &Address, bytes: u32, mask: Option<&Val>) {
        let own = Member { inst: self.inst, offset: 0, bytes };
        let members = match (address, self.accesses.groups.get(&self.inst)) {
            (Address::Affine { .. }, Some(Grouped::Later)) => return,
            (Address::Affine { .. }, Some(Grouped::First(group))) => group.members.clone(),
            _ => vec![own],
        };
        let origin = members[0].offset;
        let least = members.iter().map(|m| m.offset - origin).min().unwrap_or(0);
        let end = members.iter().map(|m| m.offset - origin + i64::from(m.bytes)).max().unwrap_or(0);
        let reach = match address {
            Address::Affine { width, stride, .. } => i64::from(width - 1) * stride,
            Address::Lanes(_) => 0,
        };
        let span = reach.unsigned_abs() + (end - least) as u64;
        let site = self.site(SiteKind::Bounded { bytes, access, span });
        let Some(outside) = self.leaves(site, address, reach.min(0) + least) else { return };
        let (on, mark) = self.unlikely(&outside, mask);
        let (lanes, firsts) = (self.lane_bits(mask), self.spread(address));
        for (i, member) in members.iter().enumerate() {
            let site = if i == 0 { site } else { self.bounded_site(*member, reach) };
            let addresses = self.w.op_const("add", &firsts, i128::from(member.offset - origin));
            let list = self.listed(&Address::Lanes(addresses));
            self.helper(Helper::Strays, &[&int(Elem::I32, site as i128), &lanes, &list]);
        }
        self.w.jump(&on);
        self.w.join(&on, mark);
    }

    /// The site of a later access of a group.
    fn bounded_site(&mut self, member: Member, reach: i64) -> usize {
        let (inst, at) = (self.inst, self.at);
        (self.inst, self.at) = (member.inst, self.func.insts[member.inst as usize].at);
        let access = if self.stores(member.inst) { AccessKind::Store } else { AccessKind::Load };
        let span = reach.unsigned_abs() + u64::from(member.bytes);
        let site = self.site(SiteKind::Bounded { bytes: member.bytes, access, span });
        (self.inst, self.at) = (inst, at);
        site
    }
}
