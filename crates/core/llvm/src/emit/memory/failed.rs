//! The code after a failed comparison of [`super::bounds`], which need not be a fault: it checks single lanes, by functions of
//! [`super::slow`] or by the host, and in a group of accesses, it finds the one that faults first.

use super::{
    address::name,
    bounds::{Check, Lead, Window},
    group::Other,
    slow::{self, ask},
};
use crate::ctx::Helper;
use crate::emit::{
    function::Emitter,
    known::Mark,
    mask::Masks,
    site::{GroupSite, SiteKind},
    text::{Elem, Ty, Val, int},
};
use margay_ir::MemSpace;

impl Emitter<'_> {
    /// Checks the accesses of all lanes one after another, and continues at a label that a point dominates.
    pub(super) fn check_one_by_one(
        &mut self,
        (lanes, bits): (&Val, &Val),
        window: &Window,
        (check, sites): (&Check, &[usize]),
        generic: bool,
        (fast, mark): (&str, Mark),
    ) {
        self.declare_check();
        let earlier = self.earlier(check);
        for (i, (member, site)) in check.members.iter().zip(sites).enumerate() {
            let (low, limit) = match window {
                Window::Fixed { low, size } => (low.clone(), self.places(size, u64::from(member.bytes))),
                Window::Cached => self.cached(site + 1),
            };
            let (plus, odd) = (member.offset - check.origin, member.odd());
            let bytes = member.bytes;
            let status = self.w.value(
                Ty::scalar(Elem::I32),
                format_args!(
                    "call i32 @margay.check(ptr %ctx, i32 {site}, i32 {bits}, <32 x i64> {lanes}, i64 {plus}, i64 {low}, i64 {limit}, i64 {odd}, i64 {bytes}, i1 {generic})"
                ),
            );
            let end = (i + 1 == check.members.len()).then_some(fast);
            self.branch_on_fault(&status, &Self::first_fault(check, i, &earlier), end);
        }
        self.check_earlier(check, &earlier, bits, mark);
        self.w.join(fast, mark);
    }

    fn declare_check(&mut self) {
        self.w.declared.extend(slow::check());
        self.declare_ask("@margay.ask", Helper::Check);
    }

    /// Checks the accesses of a group together, and continues at a label if that succeeds; code for the single ones follows.
    pub(super) fn check_together(
        &mut self,
        lanes: &Val,
        window: &Window,
        (check, lead): (&Check, &Lead),
        (bits, generic): (&Val, bool),
        fast: &str,
    ) {
        self.w.declared.extend(slow::together());
        let (least, end) = check.extent();
        let (odd, odd_at) = check.odd();
        let span = (end - least) as u64;
        let (low, limit) = match window {
            Window::Fixed { low, size } => (low.clone(), self.places(size, span)),
            Window::Cached => {
                let (low, limit) = self.cached(lead.site + 1);
                let longer = int(Elem::I64, i128::from(span) - i128::from(lead.bytes));
                (low, self.w.intrinsic("llvm.usub.sat", limit.ty, &[&limit, &longer]))
            }
        };
        let apart = self.w.value(
            Ty::scalar(Elem::I32),
            format_args!(
                "call i32 @margay.together(ptr %ctx, i32 {}, i32 {bits}, <32 x i64> {lanes}, i64 {least}, i64 {low}, i64 {limit}, i64 {odd}, \
                 i64 {}, i64 {span}, i1 {generic})",
                lead.site,
                odd_at - least
            ),
        );
        let apart = self.w.cmp("icmp ne", &apart, &int(Elem::I32, 0));
        let single = self.w.label("single");
        self.w.branch_unlikely(&apart, &single, fast);
        self.w.follow(&single);
    }

    /// Whether code for single lanes leaves a group to the helper. Groups with others between their accesses are long, and worth a
    /// comparison, where that does not take the compiler as long as the rest of the group.
    pub(super) fn in_one_call(&self, check: &Check) -> bool {
        self.options.lean && (check.others.is_empty() || self.options.masks() == Masks::Calls)
    }

    pub(super) fn declare_ask(&mut self, name: &str, helper: Helper) {
        self.w.declared.insert(ask(name, helper));
    }

    /// Checks the accesses of all lanes one by one, in one call: `lanes` are the addresses, `sites` those of the accesses. Goes on
    /// at a label that a point dominates, if one is given.
    pub(super) fn check_members(
        &mut self,
        lanes: &Val,
        check: &Check,
        sites: &[usize],
        mask: Option<&Val>,
        on: Option<(&str, Mark)>,
    ) {
        let bits = self.lane_bits(mask);
        let ((least, end), (odd, odd_at)) = (check.extent(), check.odd());
        let members = check.members.iter().zip(sites).map(|(m, site)| (*site, m.offset - check.origin)).collect();
        let (lead, span) = (sites[self.lead(check)], (end - least) as u64);
        let group = GroupSite { members, lead, least, span, odd: odd as u64, odd_at };
        let site = self.site(SiteKind::Group(group));
        // Shared memory has no range in the table.
        let (name, text, known) = if check.space == ".shared" {
            ("@margay.ask.group", ask("@margay.ask.group", Helper::CheckGroup), String::new())
        } else {
            let (place, more) = ((lead + 1) * 16, span - u64::from(check.members[self.lead(check)].bytes));
            let known = format!(", i64 {place}, i64 {least}, i64 {more}, i64 {odd}, i64 {odd_at}");
            ("@margay.check.group", slow::group(), known)
        };
        let (end, addresses) = self.call_at(lanes, text);
        let failed = self.w.value(
            Ty::scalar(Elem::I32),
            format_args!("call i32 {name}{end}(ptr %ctx, i32 {site}, i32 {bits}, {addresses}{known})"),
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

    /// Emits the code after the check of a group has failed; `failed` is the number of the failing access, counted from 1.
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

    /// Goes to a label if a status is that of a fault, else on, after the last check to `end`.
    pub(super) fn branch_on_fault(&mut self, status: &Val, stop: &str, end: Option<&str>) {
        let stopped = self.w.cmp("icmp ne", status, &int(Elem::I32, 0));
        if let Some(end) = end {
            return self.w.branch_unlikely(&stopped, stop, end);
        }
        let good = self.w.label("good");
        self.w.branch_unlikely(&stopped, stop, &good);
        self.w.follow(&good);
    }

    /// The target of the failed check of a member: the checks of the accesses before it, the last of which is `earlier[0]`.
    pub(super) fn first_fault(check: &Check, member: usize, earlier: &[String]) -> String {
        let before = check.others.iter().filter(|o| o.after <= member).count();
        earlier[check.others.len() - before].clone()
    }

    /// Labels for [`Emitter::check_earlier`]: one for each other access of the group, the last one first, and where to go then.
    pub(super) fn earlier(&mut self, check: &Check) -> Vec<String> {
        let labels = check.others.iter().map(|_| self.w.label("earlier"));
        labels.chain(["stop".into()]).collect()
    }

    /// Emits the code after a failed check: the checks of the accesses before it, from the last to the first. The last failure is the one
    /// that is reported.
    pub(super) fn check_earlier(&mut self, check: &Check, earlier: &[String], bits: &Val, mark: Mark) {
        if check.others.is_empty() {
            return;
        }
        for (other, label) in check.others.iter().rev().zip(earlier.windows(2)) {
            self.w.join(&label[0], mark);
            self.check_before(other, bits);
            self.w.jump(&label[1]);
        }
    }

    /// Replaces the fault that was found by the fault of an earlier access, if that fails too.
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
        // The access that has failed ends the launch in any case.
        self.w.line(format_args!("call i32 @margay.ask.earlier{at}(ptr %ctx, i32 {site}, i32 {bits}, {addresses})"));
    }
}
