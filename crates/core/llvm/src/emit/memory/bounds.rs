//! The check that every active lane may access its own address: against the bounds of a window, and for alignment.
//!
//! Accesses are checked inline against a window: the CTA's for `.shared`, the lane's for `.local`, else the allocation
//! in which the last slow check at this site has found its address (`WarpCtx::sites`). An affine address is first
//! compared row by row, which may fail because of inactive lanes only; then lane by lane; then the helper decides.

use crate::ctx::{Helper, at};
use crate::emit::{
    function::Emitter,
    known::Mark,
    mask::Masks,
    memory::address::Address,
    memory::address::name,
    memory::group::{Member, Other},
    site::SiteKind,
    text::{Elem, Ty, Val, constant, int, named, per_lane},
};
use margay_ir::{MemSpace, VReg, pass::Bounds};
use margay_isa::Opcode;

/// The memory that an access may touch.
enum Window {
    /// `size` bytes from `low` on.
    Fixed { low: Val, size: Val },
    /// The range cached for the site.
    Cached,
}

/// What a check must prove.
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
    fn extent(&self) -> (i64, i64) {
        let from = |m: &Member| m.offset.wrapping_sub(self.origin);
        let least = self.members.iter().map(from).min().unwrap_or(0);
        let end = self.members.iter().map(|m| from(m) + i64::from(m.bytes)).max().unwrap_or(0);
        (least, end)
    }

    /// The bits that must be zero for alignment, and the offset from the checked address to which that applies.
    fn odd(&self) -> (i64, i64) {
        let widest = self.members.iter().max_by_key(|m| m.odd());
        widest.map_or((0, 0), |m| (m.odd(), m.offset - self.origin))
    }
}

/// Slow path of a check: compares lane by lane, with a range and, if `own` is the size of a generic access, with each
/// lane's local window; calls the helper for lanes that fail.
const CHECK: &str = "\
define internal i32 @margay.check(ptr %ctx, i32 %site, i32 %mask, <32 x i64> %from, i64 %plus, i64 %low, i64 %limit, i64 %odd, i64 %own) #2 {
  %plus.1 = insertelement <32 x i64> poison, i64 %plus, i32 0
  %pluses = shufflevector <32 x i64> %plus.1, <32 x i64> poison, <32 x i32> zeroinitializer
  %at = add <32 x i64> %from, %pluses
  %low.1 = insertelement <32 x i64> poison, i64 %low, i32 0
  %lows = shufflevector <32 x i64> %low.1, <32 x i64> poison, <32 x i32> zeroinitializer
  %limit.1 = insertelement <32 x i64> poison, i64 %limit, i32 0
  %limits = shufflevector <32 x i64> %limit.1, <32 x i64> poison, <32 x i32> zeroinitializer
  %odd.1 = insertelement <32 x i64> poison, i64 %odd, i32 0
  %odds = shufflevector <32 x i64> %odd.1, <32 x i64> poison, <32 x i32> zeroinitializer
  %offset = sub <32 x i64> %at, %lows
  %outside = icmp uge <32 x i64> %offset, %limits
  %rest = and <32 x i64> %at, %odds
  %misaligned = icmp ne <32 x i64> %rest, zeroinitializer
  %bad = or <32 x i1> %outside, %misaligned
  %bits = bitcast <32 x i1> %bad to i32
  %active = and i32 %bits, %mask
  %any = icmp ne i32 %active, 0
  br i1 %any, label %again, label %fine
again:
  %generic = icmp ne i64 %own, 0
  br i1 %generic, label %local, label %ask
local:
  %window.p = getelementptr i8, ptr %ctx, i64 WINDOW
  %window = load i64, ptr %window.p, align 8
  %stride.p = getelementptr i8, ptr %ctx, i64 STRIDE
  %stride = load i64, ptr %stride.p, align 8
  %size.p = getelementptr i8, ptr %ctx, i64 SIZE
  %size = load i64, ptr %size.p, align 8
  %narrow = icmp ult i64 %size, %stride
  %room = select i1 %narrow, i64 %size, i64 %stride
  %fits = icmp uge i64 %room, %own
  %rest.1 = sub i64 %room, %own
  %rest.2 = add i64 %rest.1, 1
  %places = select i1 %fits, i64 %rest.2, i64 0
  %window.1 = insertelement <32 x i64> poison, i64 %window, i32 0
  %windows = shufflevector <32 x i64> %window.1, <32 x i64> poison, <32 x i32> zeroinitializer
  %stride.1 = insertelement <32 x i64> poison, i64 %stride, i32 0
  %strides = shufflevector <32 x i64> %stride.1, <32 x i64> poison, <32 x i32> zeroinitializer
  %places.1 = insertelement <32 x i64> poison, i64 %places, i32 0
  %placess = shufflevector <32 x i64> %places.1, <32 x i64> poison, <32 x i32> zeroinitializer
  %behind = mul <32 x i64> %strides, LANES
  %starts = add <32 x i64> %windows, %behind
  %within = sub <32 x i64> %at, %starts
  %foreign = icmp uge <32 x i64> %within, %placess
  %wrong = or <32 x i1> %foreign, %misaligned
  %neither = and <32 x i1> %wrong, %bad
  %left = bitcast <32 x i1> %neither to i32
  %last = and i32 %left, %mask
  %some = icmp ne i32 %last, 0
  br i1 %some, label %ask, label %fine
ask:
  %status = call i32 @margay.ask(ptr %ctx, i32 %site, i32 %mask, <32 x i64> %at)
  ret i32 %status
fine:
  ret i32 0
}";

/// The same for each of the accesses that a table lists: a site, the size of an access, its distance from the checked address, the
/// bits that must be zero, and the size in a lane's own window. `size` is that of the window, or -1 for the ranges cached for the
/// sites. Returns the number of the access that fails, from 1 on, or 0.
const CHECKS: &str = "\
define internal i32 @margay.checks(ptr %ctx, i32 %mask, <32 x i64> %at, i64 %start, i64 %size, ptr %members, i32 %count) #2 {
  %cached = icmp eq i64 %size, -1
  %sites.p = getelementptr i8, ptr %ctx, i64 SITES
  %sites = load ptr, ptr %sites.p, align 8
  br label %each
each:
  %i = phi i32 [ 0, %0 ], [ %next, %good ]
  %next = add i32 %i, 1
  %entry = getelementptr MEMBER, ptr %members, i32 %i
  %site = load i32, ptr %entry, align 8
  %bytes.p = getelementptr i8, ptr %entry, i64 4
  %bytes.4 = load i32, ptr %bytes.p, align 4
  %bytes = zext i32 %bytes.4 to i64
  %plus.p = getelementptr i8, ptr %entry, i64 8
  %plus = load i64, ptr %plus.p, align 8
  %odd.p = getelementptr i8, ptr %entry, i64 16
  %odd = load i64, ptr %odd.p, align 8
  %own.p = getelementptr i8, ptr %entry, i64 24
  %own = load i64, ptr %own.p, align 8
  br i1 %cached, label %range, label %window
range:
  %lanes = add i32 %site, 1
  %range.p = getelementptr [2 x i64], ptr %sites, i32 %lanes
  %range.low = load i64, ptr %range.p, align 8
  %limit.p = getelementptr i8, ptr %range.p, i64 8
  %range.limit = load i64, ptr %limit.p, align 8
  br label %check
window:
  %last = sub i64 %bytes, 1
  %places = call i64 @llvm.usub.sat.i64(i64 %size, i64 %last)
  br label %check
check:
  %low = phi i64 [ %range.low, %range ], [ %start, %window ]
  %limit = phi i64 [ %range.limit, %range ], [ %places, %window ]
  %status = call i32 @margay.check(ptr %ctx, i32 %site, i32 %mask, <32 x i64> %at, i64 %plus, i64 %low, i64 %limit, i64 %odd, i64 %own)
  %stopped = icmp ne i32 %status, 0
  br i1 %stopped, label %end, label %good
good:
  %more = icmp ult i32 %next, %count
  br i1 %more, label %each, label %end
end:
  %failed = phi i32 [ %next, %check ], [ 0, %good ]
  ret i32 %failed
}";

/// Asks a helper of the host about all lanes of one access; a template for `@margay.ask`, which asks [`Helper::Check`] about an access that
/// may fail, and `@margay.ask.earlier`, which asks [`Helper::CheckEarlier`] about one before an access that has failed.
const ASK: &str = "\
define internal i32 NAME(ptr %ctx, i32 %site, i32 %mask, <32 x i64> %at) #2 {
  %buffer = alloca <32 x i64>, align 64
  store <32 x i64> %at, ptr %buffer, align 64
  %table.p = getelementptr i8, ptr %ctx, i64 HELPERS
  %table = load ptr, ptr %table.p, align 8
  %entry = getelementptr i8, ptr %table, i64 ENTRY
  %helper = load ptr, ptr %entry, align 8
  %status = call i32 %helper(ptr %ctx, i32 %site, i32 %mask, ptr %buffer)
  ret i32 %status
}";

/// LLVM's type of an entry of a table for [`CHECKS`].
const MEMBER: &str = "{ i32, i32, i64, i64, i64 }";

impl Emitter<'_> {
    /// The offset in the shared window at which accesses through a register end, if they are known to be aligned.
    pub(super) fn shared_end(&self, r: VReg, members: &[Member]) -> Option<u64> {
        let everywhere = end(self.ranges.of(r)?, members);
        match everywhere.filter(|end| self.shared_reaches(*end)) {
            Some(end) => Some(end),
            None => end(self.ranges.at(self.func, &self.cfg, self.here, r)?, members).or(everywhere),
        }
    }

    /// Whether shared memory surely extends to an offset.
    pub(super) fn shared_reaches(&self, end: u64) -> bool {
        end <= self.reached.shared.size
    }

    /// Emits a check, skipped where shared memory extends to where the accesses are known to end.
    pub(super) fn unless_within(&mut self, check: &Check, f: impl FnOnce(&mut Self)) {
        let Some(end) = check.end else { return f(self) };
        let size = self.ctx_fixed(Elem::I64, at::SHARED_SIZE);
        let short = self.w.cmp("icmp ult", &size, &int(Elem::I64, end.into()));
        let (near, within) = (self.w.label("near"), self.w.label("within"));
        self.w.branch_unlikely(&short, &near, &within);
        let mark = self.w.mark();
        self.w.follow(&near);
        f(self);
        self.w.jump(&within);
        self.w.join(&within, mark);
    }

    /// Checks that an access by name lies within what was passed through an unsized parameter.
    pub(super) fn check_passed(&mut self, frame: u32, offset: i64, bytes: u32, mask: Option<&Val>) {
        let passed = named(Ty::scalar(Elem::I32), "%passed");
        let last = self.w.resize(&passed, Elem::I64, false);
        let end = i128::from(offset) + i128::from(bytes);
        let outside = match offset {
            0.. => self.w.cmp("icmp ult", &last, &int(Elem::I64, end)),
            _ => int(Elem::I1, 1),
        };
        let (bad, good) = (self.w.label("outside"), self.w.label("inside"));
        self.w.branch_unlikely(&outside, &bad, &good);
        let mark = self.w.mark();
        self.w.follow(&bad);
        let site = int(Elem::I32, self.site(SiteKind::Passed { size: bytes }) as i128);
        let lanes = self.lane_bits(mask);
        let at = self.frame_address(frame, offset);
        let at = self.w.resize(&at, Elem::I64, false);
        self.helper(Helper::Refuse, &[&site, &lanes, &at, &last, &int(Elem::I64, 0)], true);
        self.w.jump("stop");
        self.w.join(&good, mark);
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

    pub(super) fn stores(&self, inst: u32) -> bool {
        self.func.variant(&self.func.insts[inst as usize]).op == Opcode::St
    }

    /// The range cached for a site: the lowest start of an access, and the number of possible starts.
    pub(in crate::emit) fn cached(&mut self, site: usize) -> (Val, Val) {
        let sites = self.ctx_fixed(Elem::Ptr, at::SITES);
        let [low, limit] = [0, 8].map(|field| {
            let p = self.w.offset_const(&sites, site as u64 * 16 + field);
            self.w.value(Ty::scalar(Elem::I64), format_args!("load i64, ptr {p}, align 8, !noalias !3"))
        });
        (low, limit)
    }

    /// The CTA's shared memory.
    fn shared_window(&mut self, size: Val) -> Window {
        Window::Fixed { low: self.ctx_fixed(Elem::I64, at::SHARED), size }
    }

    /// Number of starts in a window of `size` bytes for an access of `span` bytes.
    fn places(&mut self, size: &Val, span: u64) -> Val {
        let less = int(size.ty.elem, i128::from(span) - 1);
        self.w.intrinsic("llvm.usub.sat", size.ty, &[size, &less])
    }

    /// Branches to the slow path unless all (possibly active) lanes are aligned and inside their window.
    pub(super) fn check(&mut self, address: &Address, check: &Check, space: MemSpace, mask: Option<&Val>) {
        let window = match space {
            MemSpace::Shared => {
                let size = self.ctx_fixed(Elem::I64, at::SHARED_SIZE);
                self.shared_window(size)
            }
            _ => Window::Cached,
        };
        let reach = match address {
            Address::Affine { width, stride, .. } => i64::from(width - 1) * stride,
            Address::Lanes(_) => 0,
        };
        let (least, end) = check.extent();
        let span = reach.unsigned_abs() + (end - least) as u64;
        let (odd, odd_at) = check.odd();
        // A rotation turns the offset of a misaligned access into a huge number, so that one comparison checks bounds
        // and alignment.
        let shift = match address {
            Address::Affine { .. } if (least + reach.min(0) - odd_at) & odd == 0 => odd.count_ones(),
            _ => 0,
        };
        // Writable memory is readable, so the check of a store covers loads.
        let lead = check.members.iter().position(|m| self.stores(m.inst)).unwrap_or(0);
        let mut sites = Vec::new();
        for (i, m) in check.members.iter().enumerate() {
            let range = if i == lead { (span, shift) } else { (u64::from(m.bytes), 0) };
            sites.push(self.access_site(*m, check, range));
        }
        // Code for single lanes leaves all to the helper where it must be short.
        if let (Address::Lanes(lanes), true) = (address, self.in_one_call(check)) {
            return self.check_members(lanes, &window, check, (&sites, space), mask, None);
        }
        let (low, limit) = match &window {
            Window::Fixed { low, size } => {
                let places = self.places(size, span);
                let granules = self.w.op_const("add", &places, (1 << shift) - 1);
                (low.clone(), self.w.op_const("lshr", &granules, i128::from(shift)))
            }
            Window::Cached => self.cached(sites[lead]),
        };
        let firsts: Vec<Val> = match address {
            Address::Affine { bases, .. } => bases.clone(),
            Address::Lanes(v) => vec![v.clone()],
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
        let (Some(mut bad), Some(all)) = (bad, all) else { return };
        if odd > 0 {
            if shift == 0 {
                let rest = self.w.op_const("and", &all, i128::from(odd));
                let misaligned = self.w.cmp("icmp ne", &rest, &int(Elem::I64, 0));
                bad = self.w.op("or", &bad, &misaligned);
            }
            if let Address::Affine { stride, .. } = address
                && stride & odd != 0
            {
                bad = int(Elem::I1, 1);
            }
        }
        let (fast, mark) = self.unlikely(&bad, mask);
        let lanes = self.spread(address);
        if self.options.lean {
            return self.check_members(&lanes, &window, check, (&sites, space), mask, Some((&fast, mark)));
        }
        let bits = self.lane_bits(mask);
        self.declare_check();
        let earlier = self.earlier(check);
        for (i, (member, site)) in check.members.iter().zip(&sites).enumerate() {
            let (low, limit) = match &window {
                Window::Fixed { low, size } => (low.clone(), self.places(size, u64::from(member.bytes))),
                Window::Cached => self.cached(site + 1),
            };
            let (plus, odd) = (member.offset - check.origin, member.odd());
            let own = if space == MemSpace::Generic { member.bytes } else { 0 };
            let status = self.w.value(
                Ty::scalar(Elem::I32),
                format_args!(
                    "call i32 @margay.check(ptr %ctx, i32 {site}, i32 {bits}, <32 x i64> {lanes}, i64 {plus}, i64 {low}, i64 {limit}, i64 {odd}, i64 {own})"
                ),
            );
            let end = (i + 1 == check.members.len()).then_some(fast.as_str());
            self.stop_unless_good(&status, &Self::first_fault(check, i, &earlier), end);
        }
        self.check_earlier(check, &earlier, &bits, mark);
        self.w.join(&fast, mark);
    }

    fn declare_check(&mut self) {
        let text = CHECK
            .replace("WINDOW", &at::LOCAL.to_string())
            .replace("STRIDE", &at::LOCAL_STRIDE.to_string())
            .replace("SIZE", &at::LOCAL_SIZE.to_string())
            .replace("LANES", &per_lane(Elem::I64, i128::from).to_string());
        self.w.declared.insert(text);
        self.declare_ask("@margay.ask", Helper::Check);
    }

    /// Whether code for single lanes leaves a group to the helper. Groups with others between their accesses are long, and worth a
    /// comparison, where that does not take the compiler as long as the rest of the group.
    fn in_one_call(&self, check: &Check) -> bool {
        self.options.lean && (check.others.is_empty() || self.options.masks() == Masks::Calls)
    }

    fn declare_ask(&mut self, name: &str, helper: Helper) {
        self.w.declared.insert(ask(name, helper));
    }

    /// Checks the accesses of all lanes one by one, in one call: `lanes` are the addresses, `sites` those of the accesses. Goes on
    /// at a label that a point dominates, if one is given.
    fn check_members(
        &mut self,
        lanes: &Val,
        window: &Window,
        check: &Check,
        (sites, space): (&[usize], MemSpace),
        mask: Option<&Val>,
        on: Option<(&str, Mark)>,
    ) {
        self.declare_check();
        let bits = self.lane_bits(mask);
        let (count, table) = (check.members.len(), format!("@margay.members.{}", sites[0]));
        let entries: Vec<String> = check
            .members
            .iter()
            .zip(sites)
            .map(|(m, site)| {
                let (plus, own) = (m.offset - check.origin, if space == MemSpace::Generic { m.bytes } else { 0 });
                format!("{MEMBER} {{ i32 {site}, i32 {}, i64 {plus}, i64 {}, i64 {own} }}", m.bytes, m.odd())
            })
            .collect();
        let entries = entries.join(", ");
        self.w.declared.extend([
            "declare i64 @llvm.usub.sat.i64(i64, i64)".into(),
            format!("{table} = internal constant [{count} x {MEMBER}] [{entries}], align 8"),
        ]);
        let (low, size) = match window {
            Window::Fixed { low, size } => (low.clone(), size.clone()),
            Window::Cached => (int(Elem::I64, 0), int(Elem::I64, -1)),
        };
        let text = CHECKS.replace("SITES", &at::SITES.to_string()).replace("MEMBER", MEMBER);
        let (end, addresses) = self.call_at(lanes, text);
        let failed = self.w.value(
            Ty::scalar(Elem::I32),
            format_args!(
                "call i32 @margay.checks{end}(ptr %ctx, i32 {bits}, {addresses}, i64 {low}, i64 {size}, ptr {table}, i32 {count})"
            ),
        );
        let stopped = self.w.cmp("icmp ne", &failed, &int(Elem::I32, 0));
        let (good, mark) =
            on.map_or_else(|| (self.w.label("good"), self.w.mark()), |(label, mark)| (label.into(), mark));
        if check.others.is_empty() {
            self.w.branch_unlikely(&stopped, "stop", &good);
        } else {
            let which = self.w.label("which");
            self.w.branch_unlikely(&stopped, &which, &good);
            self.w.follow(&which);
            self.find_first_fault(check, &failed, &bits, mark);
        }
        self.w.join(&good, mark);
    }

    /// Emits what follows the check of a group whose access number `failed`, from 1 on, fails.
    fn find_first_fault(&mut self, check: &Check, failed: &Val, bits: &Val, mark: Mark) {
        let earlier = self.earlier(check);
        let otherwise = Self::first_fault(check, check.members.len() - 1, &earlier);
        let cases: Vec<String> = (0..check.members.len())
            .map(|i| (i + 1, Self::first_fault(check, i, &earlier)))
            .filter(|(_, label)| *label != otherwise)
            .map(|(number, label)| format!("i32 {number}, label %{label}"))
            .collect();
        if cases.is_empty() {
            self.w.jump(&otherwise);
        } else {
            self.w.line(format_args!("switch i32 {failed}, label %{otherwise} [ {} ]", cases.join(" ")));
        }
        self.check_earlier(check, &earlier, bits, mark);
    }

    /// Goes to a label if a status tells of a fault, else on, after the last check to `end`.
    fn stop_unless_good(&mut self, status: &Val, stop: &str, end: Option<&str>) {
        let stopped = self.w.cmp("icmp ne", status, &int(Elem::I32, 0));
        if let Some(end) = end {
            return self.w.branch_unlikely(&stopped, stop, end);
        }
        let good = self.w.label("good");
        self.w.branch_unlikely(&stopped, stop, &good);
        self.w.follow(&good);
    }

    /// Where the check of a member leads that has failed: to the accesses before it, the last of which is `earlier[0]`.
    fn first_fault(check: &Check, member: usize, earlier: &[String]) -> String {
        let before = check.others.iter().filter(|o| o.after <= member).count();
        earlier[check.others.len() - before].clone()
    }

    /// Labels for [`Emitter::check_earlier`]: one for each other access of the group, the last one first, and where to go then.
    fn earlier(&mut self, check: &Check) -> Vec<String> {
        let labels = check.others.iter().map(|_| self.w.label("earlier"));
        labels.chain(["stop".into()]).collect()
    }

    /// Emits what follows a check that has failed: those of the accesses before it, from the last to the first, the last to fail being
    /// the one that is reported.
    fn check_earlier(&mut self, check: &Check, earlier: &[String], bits: &Val, mark: Mark) {
        if check.others.is_empty() {
            return;
        }
        for (other, label) in check.others.iter().rev().zip(earlier.windows(2)) {
            self.w.join(&label[0], mark);
            self.check_before(other, bits);
            self.w.jump(&label[1]);
        }
    }

    /// Replaces the fault that was found by that of an access before it, if this one fails too.
    fn check_before(&mut self, other: &Other, bits: &Val) {
        let inst = &self.func.insts[other.inst as usize];
        let (space, line) = (inst.space.unwrap_or(MemSpace::Generic), inst.at);
        let Some(name) = name(space) else { return };
        let v = self.read(other.base);
        let elem = if space == MemSpace::Shared { Elem::I32 } else { Elem::I64 };
        let v = self.w.resize(&v, elem, false);
        let v = self.w.op_const("add", &v, i128::from(other.offset));
        let lanes = self.host_lanes(space, &v);
        let lanes = self.w.splat(&lanes);
        let write = self.stores(other.inst);
        let here = (self.inst, self.at);
        (self.inst, self.at) = (other.inst, line);
        let kind = SiteKind::Access { size: other.bytes, write, space: name, span: other.bytes.into(), shift: 0 };
        let site = self.site(kind);
        self.site(SiteKind::Lanes);
        (self.inst, self.at) = here;
        let (at, addresses) = self.call_at(&lanes, ask("@margay.ask.earlier", Helper::CheckEarlier));
        // The access that has failed ends the launch whatever this one does.
        self.w.line(format_args!("call i32 @margay.ask.earlier{at}(ptr %ctx, i32 {site}, i32 {bits}, {addresses})"));
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
            let window = self.shared_window(size.clone());
            return self.check_members(lanes, &window, check, (&sites, space), mask, None);
        }
        let (least, end) = check.extent();
        let limit = self.places(size, (end - least) as u64);
        let limit = self.w.resize(&limit, Elem::I32, false);
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
            let window = self.shared_window(size.clone());
            return self.check_members(lanes, &window, check, (&sites, space), mask, Some((&fast, mark)));
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
            self.stop_unless_good(&status, &Self::first_fault(check, i, &earlier), end);
        }
        self.check_earlier(check, &earlier, &bits, mark);
        self.w.join(&fast, mark);
    }
}

/// The text of [`ASK`] for a helper.
fn ask(name: &str, helper: Helper) -> String {
    let entry = (helper as u64 * 8).to_string();
    ASK.replace("NAME", name).replace("HELPERS", &at::HELPERS.to_string()).replace("ENTRY", &entry)
}

/// The offset at which accesses end whose register has these bounds, if they are aligned and begin at no less than 0.
fn end(bounds: Bounds, members: &[Member]) -> Option<u64> {
    let end = |m: &Member| {
        let aligned = m.offset & m.odd() == 0 && bounds.align >= m.odd().count_ones();
        bounds.least.checked_add_signed(m.offset)?;
        let end = bounds.most.checked_add_signed(m.offset)?.checked_add(m.bytes.into())?;
        (aligned && end < 1 << 31).then_some(end)
    };
    members.iter().map(end).try_fold(0, |most, end| Some(most.max(end?)))
}
