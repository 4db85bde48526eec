//! Rules for the whole module, applied to what kernels reach (or to everything, with `-c`): unresolved functions, parameters that
//! the ABI cannot pass, recursion, features that need the ABI, and limits (manual, sections 7.1, 7.1.1, 11.2 and 11.6).
//!
//! ptxas reports these from its back end without a line; margay gives the location.

use super::stack_in_text;
use crate::body::{Facts, Walker};
use crate::report::{Report, lacking, since};
use crate::{
    Abi, Extent, Formal, FormalSpace, FuncId, FuncKind, Function, Global, GlobalId, Init, Linkage, Module, Options,
    Symbol,
};
use margay_isa::{Space, Type};
use margay_syntax::{
    Span,
    diag::{Code, Diagnostic},
};

/// An indirect call: since PTX ISA 2.1 on sm_20.
pub(crate) fn indirect(w: &mut Walker<'_, '_>, at: Span) {
    if let Some(lack) = lacking(w.module, &since(2, 1, 20)) {
        let d = lack.diagnose(w.module, "an indirect call", at);
        w.report.push(d);
    }
}

/// `.callprototype`, `.calltargets`: since PTX ISA 2.1 on sm_20.
pub(crate) fn directive(w: &mut Walker<'_, '_>, at: Span, what: &str) {
    if let Some(lack) = lacking(w.module, &since(2, 1, 20)) {
        let d = lack.diagnose(w.module, what, at);
        w.report.push(d);
    }
}

/// Functions of the device's own library, which ptxas knows without a definition.
fn is_library(name: &str) -> bool {
    const NAMES: [&str; 11] = [
        "vprintf",
        "vfprintf",
        "malloc",
        "free",
        "__assertfail",
        "cudaGraphLaunch",
        "cudaGraphSetConditional",
        "cudaGraphKernelNodeSetParam",
        "cudaGraphKernelNodeSetGridDim",
        "cudaGraphKernelNodeSetEnabled",
        "cudaGraphKernelNodeUpdatesApply",
    ];
    NAMES.contains(&name) || name.starts_with("__cuda_syscall_")
}

/// All rules of this file.
pub(crate) fn whole(module: &Module, facts: &[Facts], options: &Options, report: &mut Report) {
    let graph = Graph::new(module, facts, options);
    graph.relocatable(report);
    graph.unresolved(report);
    graph.open_arrays(report);
    graph.formals(report);
    graph.recursion(report);
    graph.without_abi(report);
    graph.target_lists(report);
    graph.results(report);
    graph.constant_pointers(report);
    graph.unified(report);
    graph.shared(report);
    graph.constant_space(report);
    graph.tensor_memory(report);
}

struct Graph<'a> {
    module: &'a Module,
    facts: &'a [Facts],
    options: &'a Options,
    /// Functions that a kernel reaches, or all of them with `-c`.
    reached: Vec<bool>,
    /// Where a function is first used.
    used: Vec<Option<Span>>,
}

/// Functions whose addresses a variable's initial value holds.
fn held(module: &Module, id: GlobalId) -> impl Iterator<Item = FuncId> + '_ {
    module.global(id).init.iter().filter_map(|i| match i {
        Init::Address { of: Symbol::Func(f), .. } => Some(*f),
        Init::Address { of: Symbol::Alias(a), .. } => Some(module.aliases[*a as usize].of),
        Init::Address { of: Symbol::Global(_), .. } | Init::Bytes { .. } | Init::Property { .. } => None,
    })
}

impl<'a> Graph<'a> {
    fn new(module: &'a Module, facts: &'a [Facts], options: &'a Options) -> Graph<'a> {
        let n = module.funcs.len();
        let mut graph = Graph { module, facts, options, reached: vec![false; n], used: vec![None; n] };
        for f in facts {
            for (callee, at) in &f.calls {
                graph.used[callee.0 as usize].get_or_insert(*at);
            }
            for (callee, at) in &f.taken {
                graph.used[callee.0 as usize].get_or_insert(*at);
            }
        }
        for index in 0..module.globals.len() {
            let id = GlobalId(index as u32);
            for f in held(module, id) {
                graph.used[f.0 as usize].get_or_insert(module.global(id).span);
            }
        }
        let roots = |f: &Function| f.defined && (options.relocatable || f.kind == FuncKind::Kernel);
        let mut open: Vec<usize> = (0..n).filter(|i| roots(&module.funcs[*i])).collect();
        while let Some(i) = open.pop() {
            if !std::mem::replace(&mut graph.reached[i], true) {
                open.extend(graph.next(i).into_iter().filter(|j| !graph.reached[*j]));
            }
        }
        graph
    }

    /// Functions that a function calls or whose addresses it may get.
    fn next(&self, i: usize) -> Vec<usize> {
        let Some(f) = self.facts.get(i) else { return Vec::new() };
        let direct = f.calls.iter().chain(&f.taken).map(|(f, _)| f.0 as usize);
        let tables = f.globals.iter().flat_map(|(g, _)| held(self.module, *g)).map(|f| f.0 as usize);
        direct.chain(tables).collect()
    }

    fn reached(&self) -> impl Iterator<Item = (usize, &'a Function, &'a Facts)> + '_ {
        let all = self.module.funcs.iter().zip(self.facts).enumerate();
        all.filter(|(i, _)| self.reached[*i]).map(|(i, (f, facts))| (i, f, facts))
    }

    /// A kernel and what it reaches share tensor memory in one way.
    fn tensor_memory(&self, report: &mut Report) {
        if self.facts.iter().all(|f| f.groups == [None; 2]) {
            return;
        }
        for (i, f, _) in self.reached().filter(|(_, f, _)| f.kind == FuncKind::Kernel) {
            let (mut seen, mut open) = (vec![false; self.facts.len()], vec![i]);
            while let Some(i) = open.pop() {
                if !std::mem::replace(&mut seen[i], true) {
                    open.extend(self.next(i).into_iter().filter(|j| !seen[*j]));
                }
            }
            let reached = seen.iter().zip(self.facts).filter(|(seen, _)| **seen).map(|(_, facts)| facts);
            super::pair::mixed(&f.name, reached).into_iter().for_each(|d| report.push(d));
        }
    }

    /// Relocatable compilation came with PTX ISA 3.1.
    fn relocatable(&self, report: &mut Report) {
        if self.options.relocatable
            && let Some(lack) = lacking(self.module, &since(3, 1, 0))
        {
            let at = self.module.version_at.unwrap_or_default();
            report.ptxas_only(lack.diagnose(self.module, "relocatable compilation (`-c`)", at));
        }
    }

    /// Targets of a list that keep other registers than the default: the call cannot know.
    fn target_lists(&self, report: &mut Report) {
        for (_, _, facts) in self.reached() {
            for (target, at) in &facts.listed {
                let f = self.module.func(*target);
                let directive = match (f.abi_preserve, f.abi_preserve_control) {
                    (Some(_), _) => ".abi_preserve",
                    (None, Some(_)) => ".abi_preserve_control",
                    (None, None) => continue,
                };
                report.push(
                    Diagnostic::new(
                        Code::CallTable,
                        *at,
                        format!("`{}` has `{directive}`, which a call with `.calltargets` cannot respect", f.name),
                    )
                    .label(f.span, "declared here")
                    .help(format!("call it with a `.callprototype` that has the same `{directive}`")),
                );
            }
        }
    }

    /// Functions that are declared and never defined.
    fn unresolved(&self, report: &mut Report) {
        for (i, f) in self.module.funcs.iter().enumerate() {
            let alias = matches!(self.module.symbol(&f.name), Some(Symbol::Alias(_)));
            if f.defined || alias || is_library(&f.name) || f.linkage == Linkage::Extern && self.options.relocatable {
                continue;
            }
            match self.used[i] {
                Some(at) => report.push(
                    Diagnostic::new(Code::UnresolvedExtern, at, format!("`{}` is used but never defined", f.name))
                        .label(f.span, "declared here")
                        .help(match f.linkage {
                            Linkage::Extern => "check it with `-c` if another module defines it, or define it here",
                            _ => "define it, or declare it `.extern`, compile with `-c`, and link the module that defines it",
                        }),
                ),
                None if f.linkage == Linkage::Extern => {}
                None => report.ptxas_only(
                    Diagnostic::new(
                        Code::UnresolvedExtern,
                        f.span,
                        format!("`{}` is declared but never defined", f.name),
                    )
                    .help("declare it `.extern`, or remove the declaration"),
                ),
            }
        }
    }

    /// Unsized arrays that are never defined: without `-c`, ptxas requires their size. It defines other extern variables itself.
    fn open_arrays(&self, report: &mut Report) {
        // The driver provides what is in banks of constant memory (section 5.1.3.1).
        let open = |g: &&Global| {
            let provided = g.space == Space::Shared || g.bank.is_some_and(|b| b > 0);
            g.linkage == Linkage::Extern && g.extent == Extent::Unsized && !provided
        };
        if !self.options.relocatable {
            for g in self.module.globals.iter().filter(open) {
                let text = format!("`{}` is declared but never defined", g.name);
                report.ptxas_only(
                    Diagnostic::new(Code::UnresolvedExtern, g.span, text)
                        .help("define it, or compile with `-c` and link the module that defines it"),
                );
            }
        }
    }

    /// Formals narrower than 32 bits: the text refuses them in registers, ptxas by their type where they are used.
    fn formals(&self, report: &mut Report) {
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
    fn recursion(&self, report: &mut Report) {
        let off = self.module.abi == Abi::Off;
        if !off && stack_in_text(self.module) {
            return;
        }
        if let Some((f, at)) = self.cycle(off) {
            let f = &self.module.funcs[f];
            let d = Diagnostic::new(Code::Recursion, at, format!("`{}` is recursive, but there is no stack", f.name))
                .label(f.span, "this function");
            if off {
                report.push(d.note(why_off(self.module)));
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

    /// What needs the stack-based ABI in a module that has switched it off.
    fn without_abi(&self, report: &mut Report) {
        if self.module.abi != Abi::Off {
            return;
        }
        let refuse = |at: Span, what: String| {
            Diagnostic::new(Code::NeedsAbi, at, format!("{what} requires the stack-based ABI"))
                .note(why_off(self.module))
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

    /// Results that are loaded before any call has made them.
    fn results(&self, report: &mut Report) {
        for (_, _, facts) in self.reached() {
            if let Some((at, declared)) = facts.stray_load {
                report.push(
                    Diagnostic::new(Code::StrayResult, at, "no preceding call has produced the value that is loaded")
                        .label(declared, "the `.param` variable")
                        .note("locally scoped `.param` variables hold arguments and results of calls")
                        .note("other data belongs in registers or in `.local`"),
                );
            }
        }
    }

    /// `cvta.const` in a module whose kernels take pointers to constant memory (section 5.1.6.1).
    fn constant_pointers(&self, report: &mut Report) {
        let pointer = self.module.funcs.iter().filter(|f| f.kind == FuncKind::Kernel && f.defined).find_map(|f| {
            let constant = |p: &&Formal| p.ptr.is_some_and(|ptr| ptr.space == Some(Space::Const));
            f.params.iter().find(constant).map(|p| p.span)
        });
        let used = self.facts.iter().find_map(|f| f.cvta_const);
        if let (Some(pointer), Some(at)) = (pointer, used) {
            report.push(
                Diagnostic::new(
                    Code::ConstantPointer,
                    at,
                    "`cvta` of constant addresses in a module whose kernels take pointers to constant memory",
                )
                .label(pointer, "a pointer to constant memory")
                .note("section 5.1.6.1: such a module cannot have generic addresses of constant memory"),
            );
        }
    }

    /// Unified functions and variables are for relocatable compilation.
    fn unified(&self, report: &mut Report) {
        if self.options.relocatable {
            return;
        }
        if let Some(at) = self.module.unified_at.or_else(|| self.facts.iter().find_map(|f| f.unified)) {
            let message = "`.unified` requires relocatable compilation";
            report.ptxas_only(Diagnostic::new(Code::Attribute, at, message).help("compile with `-c`"));
        }
        if let Some(f) = self.module.funcs.iter().find(|f| f.unified.is_some()) {
            report.ptxas_only(
                Diagnostic::new(
                    Code::Attribute,
                    f.span,
                    format!("`{}` is `.unified`, which requires relocatable compilation", f.name),
                )
                .help("compile with `-c`"),
            );
        }
    }

    /// Static shared memory of each kernel (what it and the functions it reaches declare or name).
    fn shared(&self, report: &mut Report) {
        // With `-c` the linker counts.
        if self.options.relocatable {
            return;
        }
        const LIMIT: u64 = 48 << 10;
        const OLD_LIMIT: u64 = 16 << 10;
        let limit = if self.module.target_at.is_some() && self.module.target.sm < 20 { OLD_LIMIT } else { LIMIT };
        // With what alignment may add to each.
        let local = self.facts.iter().flat_map(|f| &f.shared).map(|s| (s.1, s.2));
        let globals = self.module.globals.iter().filter(|g| g.space == Space::Shared).map(|g| (g.size, g.align));
        let most = |total: u64, (size, align): (u64, u32)| total.saturating_add(size).saturating_add(align.into());
        if local.chain(globals).fold(0, most) <= limit {
            return;
        }
        for (i, f) in self.module.funcs.iter().enumerate().filter(|(_, f)| f.kind == FuncKind::Kernel && f.defined) {
            let (mut seen, mut open) = (vec![false; self.facts.len()], vec![i]);
            let mut vars: Vec<(Span, u64, u32)> = Vec::new();
            let mut named: Vec<GlobalId> = Vec::new();
            while let Some(j) = open.pop() {
                if j >= seen.len() || std::mem::replace(&mut seen[j], true) {
                    continue;
                }
                vars.extend(&self.facts[j].shared);
                named.extend(self.facts[j].globals.iter().map(|g| g.0));
                open.extend(self.next(j));
            }
            named.sort();
            named.dedup();
            let globals = named.iter().map(|g| self.module.global(*g)).filter(|g| g.space == Space::Shared);
            vars.extend(globals.map(|g| (g.span, g.size, g.align)));
            let end = vars
                .iter()
                .fold(0u64, |at, (_, size, align)| at.next_multiple_of(u64::from(*align)).saturating_add(*size));
            if end > limit {
                report.push(too_much_shared(f, &mut vars, end, limit));
            }
        }
    }

    /// Constant memory of the module, variables of bodies included.
    fn constant_space(&self, report: &mut Report) {
        const LIMIT: u64 = 64 << 10;
        let counted = |g: &&crate::Global| {
            let external = g.linkage == Linkage::Extern && self.options.relocatable;
            g.space == Space::Const && g.bank.is_none_or(|b| b == 0) && !external
        };
        let mut vars: Vec<(Span, u64, u32)> =
            self.module.globals.iter().filter(counted).map(|g| (g.span, g.size, g.align)).collect();
        vars.extend(self.facts.iter().flat_map(|f| &f.constants));
        let end = vars.iter().fold(0u64, |at, v| at.next_multiple_of(u64::from(v.2)).saturating_add(v.1));
        vars.sort_by_key(|v| (std::cmp::Reverse(v.1), v.0));
        let Some(largest) = vars.first().filter(|_| end > LIMIT) else { return };
        let mut d = Diagnostic::new(
            Code::ConstantSpace,
            largest.0,
            format!("the module has {end} bytes of constant memory; the limit is {LIMIT}"),
        )
        .here(format!("{} bytes", largest.1));
        for (at, size, _) in vars.iter().skip(1).take(7) {
            d = d.label(*at, format!("{size} bytes"));
        }
        report.push(d.help("keep large tables in `.global`"));
    }
}

fn too_much_shared(f: &Function, vars: &mut [(Span, u64, u32)], end: u64, limit: u64) -> Diagnostic {
    vars.sort_by_key(|v| (std::cmp::Reverse(v.1), v.0));
    let mut d = Diagnostic::new(
        Code::SharedSpace,
        f.span,
        format!("`{}` has {end} bytes of static shared memory; the limit is {limit}", f.name),
    );
    for (at, size, _) in vars.iter().filter(|v| v.1 > 0).take(8) {
        d = d.label(*at, format!("{size} bytes"));
    }
    d.help("use dynamic shared memory: `.extern .shared .align 16 .b8 s[];`")
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

fn why_off(module: &Module) -> String {
    match module.funcs.iter().find(|f| f.rets.len() > 1) {
        Some(f) => format!("`{}` returns several values, which disables the ABI for the whole module", f.name),
        None => "module-scope variables in .reg or .local disable the ABI for the whole module".to_owned(),
    }
}
