//! The check that every active lane may access its own address: against the bounds of a window, and for alignment.
//!
//! Accesses are checked inline against a window: the CTA's for `.shared`, the lane's for `.local`, else the allocation
//! in which the last slow check at this site has found its address (`WarpCtx::sites`). An affine address is first
//! compared row by row, which may fail because of inactive lanes only; then lane by lane; then the helper decides
//! ([`super::failed`]).

use crate::ctx::{Helper, at};
use crate::emit::{
    function::Emitter,
    known::Mark,
    memory::address::{Address, LaneAccess, name},
    memory::group::{Member, Other},
    memory::slow,
    site::SiteKind,
    text::{Elem, Ty, Val, constant, int, named},
};
use margay_ir::{MemSpace, VReg, pass::Bounds};
use margay_isa::Opcode;

/// The memory that an access may touch.
pub(super) enum Window {
    /// `size` bytes from `low` on.
    Fixed { low: Val, size: Val },
    /// The range cached for the site.
    Cached,
}

/// How far the rows of lanes of a check extend.
#[derive(Clone)]
pub(super) struct Rows {
    /// Bytes from the address of a row's first lane to that of its last.
    reach: i64,
    /// Bytes from the start of a row's first access to the end of its last.
    span: u64,
    /// Log2 of the alignment of a row's start, where a rotation by it turns the offset of a misaligned access into a huge number, so that
    /// one comparison checks bounds and alignment.
    shift: u32,
}

impl Rows {
    fn of(address: &Address, check: &Check) -> Rows {
        let ((least, end), (odd, odd_at)) = (check.extent(), check.odd());
        let (reach, affine) = match address {
            Address::Affine { width, stride, .. } => (i64::from(width - 1) * stride, true),
            Address::Lanes(_) => (0, false),
        };
        let shift = if affine && (least + reach.min(0) - odd_at) & odd == 0 { odd.count_ones() } else { 0 };
        Rows { reach, span: reach.unsigned_abs() + (end - least) as u64, shift }
    }
}

/// The access whose cached range serves to check a whole group.
#[derive(Clone)]
pub(super) struct Lead {
    pub site: usize,
    /// Size in bytes per lane.
    pub bytes: u32,
}

/// What a check must prove.
#[derive(Clone)]
pub(super) struct Check {
    pub members: Vec<Member>,
    /// Accesses between them, which fault first.
    pub others: Vec<Other>,
    pub write: bool,
    pub space: &'static str,
    /// The offset from the register at which the checked address lies.
    pub origin: i64,
    /// In shared memory: all accesses are aligned and end at this offset at the latest.
    pub end: Option<u64>,
}

impl Check {
    /// Bytes from the checked address to the first access, and to the end of the last.
    pub fn extent(&self) -> (i64, i64) {
        let from = |m: &Member| m.offset.wrapping_sub(self.origin);
        let least = self.members.iter().map(from).min().unwrap_or(0);
        let end = self.members.iter().map(|m| from(m) + i64::from(m.bytes)).max().unwrap_or(0);
        (least, end)
    }

    /// The bits that must be zero for alignment, and the offset from the checked address to which that applies.
    pub fn odd(&self) -> (i64, i64) {
        let widest = self.members.iter().max_by_key(|m| m.odd());
        widest.map_or((0, 0), |m| (m.odd(), m.offset - self.origin))
    }
}

/// The check of a matrix's lines: its site, and the window that they must lie in, by its start and the number of starts of lines.
pub(in crate::emit) struct Lines {
    pub site: usize,
    pub low: Val,
    pub limit: Val,
}

impl Emitter<'_> {
    /// The offset in the shared window at which accesses through a register end, if they are known to be aligned.
    pub(super) fn shared_end(&self, r: VReg, members: &[Member]) -> Option<u64> {
        let everywhere = end(self.accesses.ranges.of(r)?, members);
        match everywhere.filter(|end| self.shared_reaches(*end)) {
            Some(end) => Some(end),
            None => end(self.bounds_here(r)?, members).or(everywhere),
        }
    }

    /// The bounds of a register in the current block.
    pub(super) fn bounds_here(&self, r: VReg) -> Option<Bounds> {
        self.accesses.ranges.at(self.func, &self.prepared.cfg, self.here, r)
    }

    /// Whether shared memory surely extends to an offset.
    pub(super) fn shared_reaches(&self, end: u64) -> bool {
        end <= self.reached.shared.size
    }

    /// Emits a check that is skipped at run time if the accesses are known to end within shared memory.
    pub(super) fn unless_within(&mut self, check: &Check, f: impl FnOnce(&mut Self)) {
        let Some(end) = check.end else { return f(self) };
        let size = self.ctx_value(Elem::I64, at::SHARED_SIZE);
        let short = self.w.cmp("icmp ult", &size, &int(Elem::I64, end.into()));
        let (near, within) = (self.w.label("near"), self.w.label("within"));
        self.w.branch_unlikely(&short, &near, &within);
        self.detour(&near, &within, f);
    }

    /// Checks that an access by name lies within what was passed through an unsized parameter.
    pub(super) fn check_passed(&mut self, frame: u32, what: &LaneAccess<'_>) {
        let passed = named(Ty::scalar(Elem::I32), "%passed");
        let passed = self.w.resize(&passed, Elem::I64, false);
        let end = i128::from(what.offset) + i128::from(what.bytes);
        let outside = match what.offset {
            0.. => self.w.cmp("icmp ult", &passed, &int(Elem::I64, end)),
            _ => int(Elem::I1, 1),
        };
        self.refuse_parameter_if(&outside, frame, (&passed, true), what);
    }

    /// Refuses an access by name that leaves its `.param` variable.
    pub(super) fn refuse_parameter(&mut self, frame: u32, what: &LaneAccess<'_>) {
        let size = int(Elem::I64, self.func.frame[frame as usize].size.into());
        self.refuse_parameter_if(&int(Elem::I1, 1), frame, (&size, false), what);
    }

    /// Refuses an access by name to a `.param` variable if it is `outside`; `size` is the variable's size in bytes, and whether the call
    /// determines it.
    fn refuse_parameter_if(&mut self, outside: &Val, frame: u32, (size, passed): (&Val, bool), what: &LaneAccess<'_>) {
        let (bad, good) = (self.w.label("outside"), self.w.label("inside"));
        self.w.branch_unlikely(outside, &bad, &good);
        self.leave(&bad, "stop", &good, |e| {
            let site = e.site(SiteKind::Parameter { size: what.bytes, write: what.write, passed });
            let site = int(Elem::I32, site as i128);
            let lanes = e.lane_bits(what.mask);
            let at = e.frame_address(frame, what.offset);
            let at = e.w.resize(&at, Elem::I64, false);
            e.helper(Helper::Refuse, &[&site, &lanes, &at, size, &int(Elem::I64, 0)]);
        });
    }

    /// Registers the sites of an access: one for rows, and the next one for single lanes.
    fn access_site(&mut self, member: Member, check: &Check, (span, shift): (u64, u32)) -> usize {
        let (inst, at) = (self.inst, self.at);
        (self.inst, self.at) = (member.inst, self.func.insts[member.inst as usize].at);
        let (write, space) = (check.write, check.space);
        let write = if check.members.len() > 1 { self.stores(member.inst) } else { write };
        let site = self.site(SiteKind::Access { size: member.bytes, write, space, span, shift });
        self.site(SiteKind::Lanes);
        (self.inst, self.at) = (inst, at);
        site
    }

    /// Whether an instruction is a store.
    pub(in crate::emit) fn stores(&self, inst: u32) -> bool {
        self.func.variant(&self.func.insts[inst as usize]).op == Opcode::St
    }

    /// The range cached for a site: the lowest start of an access, and the number of possible starts.
    pub(in crate::emit) fn cached(&mut self, site: usize) -> (Val, Val) {
        let sites = self.ctx_value(Elem::Ptr, at::SITES);
        let [low, limit] = [0, 8].map(|field| {
            let p = self.w.offset_const(&sites, site as u64 * 16 + field);
            self.w.value(Ty::scalar(Elem::I64), format_args!("load i64, ptr {p}, align 8, !noalias !3"))
        });
        (low, limit)
    }

    /// The CTA's shared memory.
    fn shared_window(&mut self, size: Val) -> Window {
        Window::Fixed { low: self.ctx_value(Elem::I64, at::SHARED), size }
    }

    /// Number of starts in a window of `size` bytes for an access of `span` bytes.
    pub(super) fn places(&mut self, size: &Val, span: u64) -> Val {
        let less = int(size.ty.elem, i128::from(span) - 1);
        self.w.intrinsic("llvm.usub.sat", size.ty, &[size, &less])
    }

    /// The same as 32 bits for a window whose size is a field of the context.
    fn places_of_window(&mut self, size: &Val, span: u64) -> Val {
        self.w.declared.insert("declare i64 @llvm.usub.sat.i64(i64, i64)".into());
        let wide = self.w.once(size.ty, format_args!("call i64 @llvm.usub.sat.i64(i64 {size}, i64 {})", span - 1));
        self.w.once(Ty::scalar(Elem::I32), format_args!("trunc i64 {wide} to i32"))
    }

    /// Branches to the slow path unless all (possibly active) lanes are aligned and inside their window; returns the condition for rows.
    pub(super) fn check(
        &mut self,
        address: &Address,
        check: &Check,
        space: MemSpace,
        mask: Option<&Val>,
    ) -> Option<(Rows, Lead)> {
        let window = match space {
            MemSpace::Shared => {
                let size = self.ctx_value(Elem::I64, at::SHARED_SIZE);
                self.shared_window(size)
            }
            _ => Window::Cached,
        };
        let rows = Rows::of(address, check);
        let lead = self.lead(check);
        let mut sites = Vec::new();
        for (i, m) in check.members.iter().enumerate() {
            let range = if i == lead { (rows.span, rows.shift) } else { (u64::from(m.bytes), 0) };
            sites.push(self.access_site(*m, check, range));
        }
        // Code for single lanes leaves all to the helper where it must be short.
        if let (Address::Lanes(lanes), true) = (address, self.in_one_call(check)) {
            self.check_members(lanes, check, &sites, mask, None);
            return None;
        }
        let lead = Lead { site: sites[lead], bytes: check.members[lead].bytes };
        let bad = self.outside(address, check, &rows, (&window, &lead))?;
        let (fast, mark) = self.unlikely(&bad, mask);
        let lanes = self.spread(address);
        if self.options.lean {
            self.check_members(&lanes, check, &sites, mask, Some((&fast, mark)));
            return None;
        }
        let bits = self.lane_bits(mask);
        let generic = space == MemSpace::Generic;
        if check.members.len() > 1 {
            self.check_together(&lanes, &window, (check, &lead), (&bits, generic), &fast);
        }
        self.check_one_by_one((&lanes, &bits), &window, (check, &sites), generic, (&fast, mark));
        Some((rows, lead))
    }

    /// Whether some rows of lanes leave their window, or are misaligned.
    pub(super) fn outside(
        &mut self,
        address: &Address,
        check: &Check,
        rows: &Rows,
        (window, lead): (&Window, &Lead),
    ) -> Option<Val> {
        let Rows { reach, span, shift } = *rows;
        let ((least, _), (odd, odd_at)) = (check.extent(), check.odd());
        let (low, limit) = match window {
            Window::Fixed { low, size } => {
                let places = self.places(size, span);
                let granules = self.w.op_const("add", &places, (1 << shift) - 1);
                (low.clone(), self.w.op_const("lshr", &granules, i128::from(shift)))
            }
            Window::Cached => self.cached(lead.site),
        };
        let firsts: Vec<Val> = match address {
            Address::Affine { bases, .. } => bases.clone(),
            Address::Lanes(v) => {
                let indexed = if self.options.lean { None } else { self.w.indexed(v) };
                if let Some(bad) = indexed.and_then(|at| self.outside_by_index(&at, check, (&low, &limit))) {
                    return Some(bad);
                }
                vec![v.clone()]
            }
        };
        let mut bad: Option<Val> = None;
        let mut all: Option<Val> = None;
        for first in &firsts {
            let least = self.w.op_const("add", first, i128::from(least + reach.min(0)));
            let mut within = self.w.op("sub", &least, &low);
            if shift > 0 {
                let amount = constant(within.ty, i128::from(shift));
                within = self.w.intrinsic("llvm.fshr", within.ty, &[&within, &within, &amount]);
            }
            let outside = self.w.cmp("icmp uge", &within, &limit);
            bad = Some(self.either(bad, outside));
            let aligned = self.w.op_const("add", first, i128::from(odd_at & odd));
            all = Some(self.either(all, aligned));
        }
        let (mut bad, all) = (bad?, all?);
        if odd > 0 && shift == 0 {
            let rest = self.w.op_const("and", &all, i128::from(odd));
            let misaligned = self.w.cmp("icmp ne", &rest, &int(Elem::I64, 0));
            bad = self.w.op("or", &bad, &misaligned);
        }
        match address {
            Address::Affine { stride, .. } if stride & odd != 0 => Some(int(Elem::I1, 1)),
            _ => Some(bad),
        }
    }

    /// How lines of a matrix are checked.
    pub(in crate::emit) fn lines(&mut self, space: MemSpace, bytes: u32, write: bool) -> Lines {
        let names = name(space).unwrap_or_default();
        let site = self.site(SiteKind::Access { size: bytes, write, space: names, span: bytes.into(), shift: 0 });
        self.site(SiteKind::Lanes);
        let (low, limit) = match space {
            MemSpace::Shared => {
                let size = self.ctx_value(Elem::I64, at::SHARED_SIZE);
                (self.ctx_value(Elem::I64, at::SHARED), self.places(&size, bytes.into()))
            }
            _ => self.cached(site),
        };
        self.w.declared.insert(slow::lines());
        Lines { site, low, limit }
    }

    /// Whether some lanes of a mask may not access `bytes` bytes from their addresses on, all of them in one allocation, or these are not
    /// aligned to 16 bytes.
    pub(in crate::emit) fn lines_apart(&mut self, lines: &Lines, starts: &Val, bytes: u32, mask: u32) -> Val {
        let Lines { site, low, limit } = lines;
        let mask = int(Elem::I32, mask.into());
        let apart = self.w.value(
            Ty::scalar(Elem::I32),
            format_args!(
                "call i32 @margay.lines(ptr %ctx, i32 {site}, i32 {mask}, <32 x i64> {starts}, i64 {low}, i64 {limit}, i64 {bytes})"
            ),
        );
        self.w.cmp("icmp ne", &apart, &int(Elem::I32, 0))
    }

    /// The access whose check covers the whole group: a store if there is one, since writable memory is readable.
    pub(super) fn lead(&self, check: &Check) -> usize {
        check.members.iter().position(|m| self.stores(m.inst)).unwrap_or(0)
    }

    pub(in crate::emit) fn either(&mut self, a: Option<Val>, b: Val) -> Val {
        match a {
            Some(a) => self.w.op("or", &a, &b),
            None => b,
        }
    }

    /// Begins the code for the case that the condition holds for an active lane; returns the label after it.
    pub(in crate::emit) fn unlikely(&mut self, bad: &Val, mask: Option<&Val>) -> (String, Mark) {
        let bad = match (bad.ty.vector, self.lanes(mask)) {
            (true, Some(m)) => self.w.op("and", bad, &m),
            _ => bad.clone(),
        };
        let bad = if bad.ty.vector { self.any(&bad) } else { bad };
        let (slow, fast) = (self.w.label("check"), self.w.label("checked"));
        self.w.branch_unlikely(&bad, &slow, &fast);
        let mark = self.w.mark();
        self.w.follow(&slow);
        (fast, mark)
    }

    /// Checks 32-bit offsets against a window of `size` bytes that begins at a multiple of 32 in every lane; `lanes`
    /// are the host addresses.
    pub(super) fn check_offsets(
        &mut self,
        (offsets, lanes): (&Val, &Val),
        (space, size): (MemSpace, &Val),
        check: &Check,
        mask: Option<&Val>,
    ) {
        let bytes = |m: &Member| u64::from(m.bytes);
        let sites: Vec<usize> = check.members.iter().map(|m| self.access_site(*m, check, (bytes(m), 0))).collect();
        if space == MemSpace::Shared && self.in_one_call(check) {
            return self.check_members(lanes, check, &sites, mask, None);
        }
        let (least, end) = check.extent();
        let limit = self.places_of_window(size, (end - least) as u64);
        let from = self.w.op_const("add", offsets, i128::from(least));
        let mut bad = self.w.cmp("icmp uge", &from, &limit);
        let (odd, odd_at) = check.odd();
        if odd > 0 {
            let aligned = self.w.op_const("add", offsets, i128::from(odd_at & odd));
            let rest = self.w.op_const("and", &aligned, i128::from(odd));
            let misaligned = self.w.cmp("icmp ne", &rest, &constant(rest.ty, 0));
            bad = self.w.op("or", &bad, &misaligned);
        }
        let (fast, mark) = self.unlikely(&bad, mask);
        if space == MemSpace::Shared && self.options.lean {
            return self.check_members(lanes, check, &sites, mask, Some((&fast, mark)));
        }
        let bits = self.lane_bits(mask);
        let earlier = self.earlier(check);
        self.declare_ask("@margay.ask", Helper::Check);
        for (i, (member, site)) in check.members.iter().zip(sites).enumerate() {
            let here = self.w.op_const("add", lanes, i128::from(member.offset - check.origin));
            let status = self.w.value(
                Ty::scalar(Elem::I32),
                format_args!("call i32 @margay.ask(ptr %ctx, i32 {site}, i32 {bits}, <32 x i64> {here})"),
            );
            let end = (i + 1 == check.members.len()).then_some(fast.as_str());
            self.branch_on_fault(&status, &Self::first_fault(check, i, &earlier), end);
        }
        self.check_earlier(check, &earlier, &bits, mark);
        self.w.join(&fast, mark);
    }
}

/// The end of accesses whose register has these bounds, as an offset, if they are aligned and do not begin below 0.
fn end(bounds: Bounds, members: &[Member]) -> Option<u64> {
    let end = |m: &Member| {
        let aligned = m.offset & m.odd() == 0 && bounds.align >= m.odd().count_ones();
        bounds.least.checked_add_signed(m.offset)?;
        let end = bounds.most.checked_add_signed(m.offset)?.checked_add(m.bytes.into())?;
        (aligned && end < 1 << 31).then_some(end)
    };
    members.iter().map(end).try_fold(0, |most, end| Some(most.max(end?)))
}
