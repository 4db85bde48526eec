//! Limits of the ABI: formals that it cannot pass, recursion without a stack, and features that need it in modules that disable it.

use super::Graph;
use crate::report::Report;
use crate::rules::stack_in_text;
use crate::{Abi, Extent, Formal, FormalSpace, FuncKind, Function, Module};
use margay_isa::Type;
use margay_syntax::{
    Span,
    diag::{Code, Diagnostic},
};

impl Graph<'_> {
    /// Formals narrower than 32 bits: the text refuses them in registers, ptxas by their type where they are used.
    pub(super) fn formals(&self, report: &mut Report) {
        for (i, f) in self.module.funcs.iter().enumerate().filter(|(_, f)| f.kind == FuncKind::Device) {
            let reached = self.reached[i] && (f.defined || self.used[i].is_some());
            self.narrow(f, reached, report);
        }
        for (_, _, facts) in self.reached() {
            for (prototype, at) in &facts.prototypes {
                self.narrow(prototype, true, report);
                if let [_, _, ..] = prototype.rets[..] {
                    report.push(
                        Diagnostic::new(Code::NeedsAbi, *at, "an indirect call with several results")
                            .note("several results disable the ABI, which indirect calls require"),
                    );
                }
            }
        }
    }

    fn narrow(&self, f: &Function, reached: bool, report: &mut Report) {
        if self.module.abi == Abi::Off {
            return;
        }
        let text = stack_in_text(self.module);
        for (formal, ret) in f.rets.iter().map(|r| (r, true)).chain(f.params.iter().map(|p| (p, false))) {
            if formal.extent != Extent::Scalar {
                continue;
            }
            let bits = formal.ty.bits() * u32::from(formal.vector);
            let refused =
                formal.vector == 1 && matches!(formal.ty, Type::U8 | Type::S8 | Type::U16 | Type::S16 | Type::Pred);
            let reg = formal.space == FormalSpace::Reg;
            let in_text = reg && bits < 32 && text;
            let d = || narrow_formal(f, formal, bits, ret, reg);
            match (refused && reached, in_text) {
                (true, true) => report.push(d()),
                (true, false) => report.ptxas_only(d()),
                (false, true) => {
                    report.text_only(d().note("section 7.1: `.reg` parameters must have at least 32 bits"))
                }
                (false, false) => {}
            }
        }
    }

    /// Cycles of calls without a stack.
    pub(super) fn recursion(&self, report: &mut Report) {
        let off = self.module.abi == Abi::Off;
        if !off && stack_in_text(self.module) {
            return;
        }
        if let Some((f, at)) = self.cycle(off) {
            let f = &self.module.funcs[f];
            let d = Diagnostic::new(Code::Recursion, at, format!("`{}` is recursive, but there is no stack", f.name))
                .label(f.span, "this function");
            if off {
                report.push(d.note(disabled_reason(self.module)));
            } else {
                report.text_only(d.note("section 7.1.1: recursion requires PTX ISA 2.0 and sm_20"));
            }
        }
    }

    /// A function that calls itself by way of others, and the call that closes the circle.
    fn cycle(&self, reached_only: bool) -> Option<(usize, Span)> {
        #[derive(Clone, Copy, PartialEq)]
        enum Mark {
            New,
            Open,
            Done,
        }
        let mut marks = vec![Mark::New; self.facts.len()];
        for root in 0..self.facts.len() {
            if marks[root] != Mark::New || (reached_only && !self.reached[root]) {
                continue;
            }
            let mut path = vec![(root, 0usize)];
            marks[root] = Mark::Open;
            while let Some((f, next)) = path.last_mut() {
                let Some((callee, at)) = self.facts[*f].calls.get(*next) else {
                    marks[*f] = Mark::Done;
                    path.pop();
                    continue;
                };
                *next += 1;
                let callee = callee.0 as usize;
                match marks.get(callee) {
                    Some(Mark::Open) => return Some((callee, *at)),
                    Some(Mark::New) => {
                        marks[callee] = Mark::Open;
                        path.push((callee, 0));
                    }
                    Some(Mark::Done) | None => {}
                }
            }
        }
        None
    }

    /// Reports features that need the stack-based ABI in a module that disables it.
    pub(super) fn without_abi(&self, report: &mut Report) {
        if self.module.abi != Abi::Off {
            return;
        }
        let refuse = |at: Span, what: String| {
            Diagnostic::new(Code::NeedsAbi, at, format!("{what} requires the stack-based ABI"))
                .note(disabled_reason(self.module))
        };
        if self.options.relocatable {
            let at = self.module.version_at.unwrap_or_default();
            return report.push(refuse(at, "relocatable compilation (`-c`)".to_owned()));
        }
        for (_, _, facts) in self.reached() {
            let external = facts.calls.iter().find(|(f, _)| !self.module.func(*f).defined);
            if let Some((f, at)) = external {
                return report
                    .push(refuse(*at, format!("a call of the external function `{}`", self.module.func(*f).name)));
            }
            if let Some(at) = facts.indirect {
                return report.push(refuse(at, "an indirect call".to_owned()));
            }
            let function = facts.taken.iter().find(|(f, _)| self.module.func(*f).kind == FuncKind::Device);
            if let Some((f, at)) = function {
                return report
                    .push(refuse(*at, format!("the address of the function `{}`", self.module.func(*f).name)));
            }
        }
    }
}

fn narrow_formal(f: &Function, formal: &Formal, bits: u32, ret: bool, reg: bool) -> Diagnostic {
    let (name, ty) = (&formal.name, formal.ty);
    let message = match ret {
        true => format!("`{}` returns {bits} bits in `{name}`, which the ABI does not support", f.name),
        false => format!("`{name}` of `{}` has {bits} bits, which the ABI does not pass", f.name),
    };
    let d = Diagnostic::new(Code::NarrowFormal, formal.span, message).here(format!("`{ty}`"));
    match (ty, reg) {
        (Type::Pred, _) => d.help("pass `.b32` and compare in the callee"),
        (_, true) => d.help("widen it to 32 bits"),
        (_, false) => d.help(format!("declare `.b{bits}`, or widen it to 32 bits")),
    }
}

fn disabled_reason(module: &Module) -> String {
    match module.funcs.iter().find(|f| f.rets.len() > 1) {
        Some(f) => format!("`{}` returns several values, which disables the ABI for the whole module", f.name),
        None => "module-scope variables in .reg or .local disable the ABI for the whole module".to_owned(),
    }
}
