//! Reads that only decide a branch, for which [earlier values](crate::threads) may do as well.

use crate::{
    Sanitizer, State, instructions,
    site::{Place, of_site},
    unused::DEPTH,
};
use margay_exec::{AccessKind, Frame, Image, Known, MemoryEvent, Row, Semantics, SyncKind, splat};
use margay_ir::{
    Func, Inst, Operand, VReg,
    pass::{self, Cfg, Decision, changes_nothing, liveness::defines, observes_others},
};
use margay_isa::{Opcode, Type, Variant};
use std::{cell::LazyCell, sync::Arc};

/// By site, once it is known: what its value decides, if that is all that it does.
pub type Decisions = Vec<Option<Option<Arc<Decision>>>>;

/// A read that has yielded a value, and what its lanes' registers hold.
struct Outcome<'a> {
    func: &'a Func,
    decision: &'a Decision,
    value: u64,
    registers: &'a dyn Fn(VReg) -> Option<Vec<Row>>,
}

impl Outcome<'_> {
    fn definitions(&self, r: VReg) -> impl Iterator<Item = &Inst> {
        let code = &self.func.insts[self.decision.between.clone()];
        code.iter().filter(move |inst| defines(self.func, inst, r))
    }
}

impl Known for Outcome<'_> {
    fn func(&self) -> &Func {
        self.func
    }

    fn definition(&self, r: VReg) -> Option<&Inst> {
        let mut all = self.definitions(r);
        all.next().filter(|inst| inst.guard.is_none() && all.next().is_none())
    }

    fn value(&self, r: VReg) -> Option<Vec<Row>> {
        match r == self.decision.value {
            true => Some(splat(self.value, self.func.regs[r.0 as usize].bits())),
            false if self.definitions(r).next().is_some() => None,
            false => (self.registers)(r),
        }
    }

    fn special(&self, _: &Operand) -> Option<Row> {
        None
    }
}

/// Whether a program contains such reads, and something that releases, so that it matters what they find.
pub fn has_decisions(image: &Image) -> bool {
    let observes = |func: &Func, i: u32| {
        let inst = &func.insts[i as usize];
        func.variant(inst).op == Opcode::Ld && observes_others(func, inst) || changes_nothing(func, inst)
    };
    let releases = |v: &Variant| {
        let accesses = matches!(v.op, Opcode::St | Opcode::Atom | Opcode::Red);
        SyncKind::of_fence(v).is_some() || accesses && Semantics::of(v).is_some_and(Semantics::releases)
    };
    let any = image.ir.funcs.iter().any(|func| func.insts.iter().any(|i| releases(func.variant(i))));
    any && image.ir.funcs.iter().any(|func| {
        let cfg = LazyCell::new(|| Cfg::new(func, |_, _| false));
        (0..func.insts.len() as u32).any(|i| observes(func, i) && Decision::of(func, &cfg, i).is_some())
    })
}

impl Sanitizer {
    /// What the value of a site decides, if that is all that it does.
    pub(crate) fn decision(state: &mut State, site: u32) -> Option<Arc<Decision>> {
        let State { decisions, sites, image, .. } = state;
        let of = || {
            let (site, image) = (sites.get(site), image.as_ref()?);
            let func = image.ir.func(site.at.0);
            let mut here = instructions(func, site.at.1);
            let (Some(read), None) = (here.next(), here.next()) else { return None };
            let cfg = (site.access != AccessKind::Store).then(|| Cfg::new(func, |_, _| false))?;
            Decision::of(func, &cfg, read).map(Arc::new)
        };
        of_site(decisions, site).get_or_insert_with(of).clone()
    }

    /// Whether threads repeat the read of a site until another thread has written what they wait for.
    pub(crate) fn awaits(state: &mut State, site: u32) -> bool {
        let State { awaits, sites, image, .. } = state;
        let of = || {
            let (site, Some(image)) = (sites.get(site), image.as_ref()) else { return false };
            let func = image.ir.func(site.at.0);
            let cfg = LazyCell::new(|| Cfg::new(func, |_, _| false));
            let here = || instructions(func, site.at.1).any(|i| pass::awaits(func, &cfg, i));
            let observes = || instructions(func, site.at.1).any(|i| observes_others(func, &func.insts[i as usize]));
            // Without optimization, functions that read a flag are called.
            let in_caller = |frame: &Frame| {
                let caller = image.ir.func(frame.func);
                let cfg = Cfg::new(caller, |_, _| false);
                instructions(caller, frame.at).any(|i| pass::awaits_result(caller, &cfg, i))
            };
            site.access != AccessKind::Store && (here() || observes() && site.callers.iter().any(in_caller))
        };
        *of_site(awaits, site).get_or_insert_with(of)
    }

    /// Unless a lane that reads a value stays in a loop because of it: which other values would have made it take the same branch.
    pub(crate) fn goes_on<'e>(
        &'e self,
        decision: &'e Decision,
        e: &'e MemoryEvent<'_>,
        (lane, value): (u32, u64),
    ) -> Option<impl Fn(u64) -> bool + use<'e>> {
        let registers = e.registers?;
        let func = self.image.ir.func(e.actor.at.0);
        let truth = move |value: u64| {
            let outcome = Outcome { func, decision, value, registers };
            let truth = outcome.row(&Operand::Reg(decision.predicate), Type::Pred, DEPTH);
            truth.map(|row| row.0[0] >> lane & 1 == 1)
        };
        let found = truth(value)?;
        let stays = decision.leaves_if.is_some_and(|leaves| leaves != found);
        (!stays).then_some(move |value: u64| truth(value) == Some(found))
    }

    /// What is wrong where a thread may continue before another one has released what it did.
    pub(crate) fn ends_early(&self, read: Place) -> String {
        format!(
            "the thread goes on after {} with an earlier value, too, which it may find before the other thread has released what it did: \
             wait for the value that the last of them leaves",
            self.line(read)
        )
    }
}
