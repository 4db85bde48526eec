//! Rules for the whole module, applied to what kernels reach (or to everything, with `-c`): unresolved functions, parameters that
//! the ABI cannot pass, recursion, features that need the ABI, and limits (manual, sections 7.1, 7.1.1, 11.2 and 11.6).
//!
//! ptxas reports these from its back end without a line; margay gives the location.

mod abi;
mod space;

use crate::body::{Facts, Walker};
use crate::report::{Report, lacking, since};
use crate::{Extent, Formal, FuncId, FuncKind, Function, Global, GlobalId, Init, Linkage, Module, Options, Symbol};
use margay_isa::Space;
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
    graph.library_addresses(report);
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
    /// Functions whose address a body or a variable holds.
    addressed: Vec<usize>,
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
        let reached = vec![false; n];
        let mut graph = Graph { module, facts, options, reached, used: vec![None; n], addressed: Vec::new() };
        for f in facts {
            for (callee, at) in &f.calls {
                graph.used[callee.0 as usize].get_or_insert(*at);
            }
            for (callee, at) in &f.taken {
                graph.used[callee.0 as usize].get_or_insert(*at);
                graph.addressed.push(callee.0 as usize);
            }
        }
        for index in 0..module.globals.len() {
            let id = GlobalId(index as u32);
            for f in held(module, id) {
                graph.used[f.0 as usize].get_or_insert(module.global(id).span);
                graph.addressed.push(f.0 as usize);
            }
        }
        graph.addressed.sort_unstable();
        graph.addressed.dedup();
        let roots = |f: &Function| f.defined && (options.relocatable || f.kind == FuncKind::Kernel);
        let mut open: Vec<usize> = (0..n).filter(|i| roots(&module.funcs[*i])).collect();
        while let Some(i) = open.pop() {
            if !std::mem::replace(&mut graph.reached[i], true) {
                open.extend(graph.next(i).into_iter().filter(|j| !graph.reached[*j]));
            }
        }
        graph
    }

    /// Functions that a function calls or may call. One that calls indirectly, or holds the address of any function, may call all
    /// whose address is held anywhere, also by variables and functions that no kernel reaches: so ptxas has it.
    fn next(&self, i: usize) -> Vec<usize> {
        let Some(f) = self.facts.get(i) else { return Vec::new() };
        let tables = || f.globals.iter().any(|(g, _)| held(self.module, *g).next().is_some());
        let any = f.indirect.is_some() || !f.taken.is_empty() || tables();
        let direct = f.calls.iter().map(|(f, _)| f.0 as usize);
        direct.chain(self.addressed.iter().copied().filter(|_| any)).collect()
    }

    fn reached(&self) -> impl Iterator<Item = (usize, &'a Function, &'a Facts)> + '_ {
        let all = self.module.funcs.iter().zip(self.facts).enumerate();
        all.filter(|(i, _)| self.reached[*i]).map(|(i, (f, facts))| (i, f, facts))
    }

    /// A kernel and the functions that it reaches must share tensor memory in one way.
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

    /// Addresses of functions of the device's library, which have none: calls of them are replaced.
    fn library_addresses(&self, report: &mut Report) {
        let bodies = self.facts.iter().flat_map(|f| f.taken.iter().copied());
        let variables = (0..self.module.globals.len() as u32).map(GlobalId);
        let variables = variables.flat_map(|g| held(self.module, g).map(move |f| (f, self.module.global(g).span)));
        let mut reported = vec![false; self.module.funcs.len()];
        for (id, at) in bodies.chain(variables) {
            let f = self.module.func(id);
            if f.defined || !is_library(&f.name) || std::mem::replace(&mut reported[id.0 as usize], true) {
                continue;
            }
            let message = format!("the address of `{}`, a function of the device's library, cannot be taken", f.name);
            report.ptxas_only(Diagnostic::new(Code::UnresolvedExtern, at, message).label(f.span, "declared here"));
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
}
