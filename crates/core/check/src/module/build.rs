//! Walks the module: header, then items in order (names are known from their declaration on), then bodies, then limits.

use super::decl::{self, ShapeAt};
use super::{
    Abi, Alias, Extent, FuncId, Function, Global, GlobalId, Linkage, Module, Symbol, debug, func, header, init,
};
use crate::body::{self, Facts};
use crate::report::{Report, lacking, since};
use crate::rules::pragma::Place;
use crate::{Checked, Examined, Options, Verdict, rules};
use margay_isa::{Space, Special, Target, Version};
use margay_syntax::{
    Outline, Parsed, Span, Tree,
    diag::{Code, Diagnostic, Label, Severity},
    tree::{self, Directive, Item, Kind},
};
use std::collections::HashMap;
use std::sync::Arc;

/// Most names that one family may declare in memory or at module level; each is a variable of its own.
const FAMILY: u32 = 65_536;

/// Checks a parsed module.
pub(crate) fn check(parsed: Parsed, options: &Options) -> (Option<Checked>, Vec<Diagnostic>) {
    let Parsed { tree, mut diagnostics } = parsed;
    let mut report = Report::new(options);
    report.errors = match options.verdict {
        Verdict::Text => rules::text::parser(&tree, &mut diagnostics),
        Verdict::Ptxas | Verdict::Strict => diagnostics.iter().filter(|d| d.severity == Severity::Error).count(),
    };
    let errors = diagnostics.iter().filter(|d| d.severity == Severity::Error);
    let mut broken: Vec<u32> = errors.map(|d| d.span().start).collect();
    broken.sort_unstable();
    report.set_broken(&tree, broken);
    let mut module = declarations(&tree, options, &mut report);
    debug::locations((&tree, &tree.directives), &debug::label_names(&tree, &tree.text), &module, &mut report);
    debug::sections(&tree, &module, &mut report);
    debug::twice(&tree, &mut report);
    let (facts, memo) = bodies(&tree, &module, &mut report);
    // As in ptxas, what concerns the whole module comes after everything else is right.
    if report.errors == 0 {
        rules::reach::whole(&module, &facts, options, &mut report);
        debug::labeled(&tree, &module, &mut report);
        debug::promised(&tree, &module, &mut report);
    }
    module.address_taken = facts.iter().flat_map(|f| f.taken.iter().map(|t| t.0)).collect();
    module.address_taken.sort_unstable();
    module.address_taken.dedup();
    let passed = report.errors == 0;
    report.diagnostics.iter_mut().for_each(|d| begin_at_mnemonic(&tree, d));
    diagnostics.append(&mut report.diagnostics);
    diagnostics.sort_by_key(Diagnostic::span);
    let checked = passed.then(|| Checked { tree: tree.clone(), module: Arc::new(module), memo: Arc::new(memo) });
    (checked, diagnostics)
}

/// The module without its bodies.
fn declarations(tree: &Tree, options: &Options, report: &mut Report) -> Module {
    let mut builder = Builder { tree, module: empty(), report, files: HashMap::new() };
    header::read(tree, &mut builder.module, options, builder.report);
    for item in &tree.items {
        match *item {
            Item::Var(v) => builder.var(&tree.vars[v as usize]),
            Item::Func(f) => builder.func(f),
            Item::Directive(d) => builder.directive(&tree.directives[d as usize]),
        }
    }
    let mut module = builder.module;
    if module.funcs.iter().any(|f| f.rets.len() > 1) {
        module.abi = Abi::Off;
    }
    module
}

/// The findings of a text without errors, with one body in memory at a time. `None` if it has errors, or if it needs all bodies at once:
/// for parameters of kernels of the first versions, code whose inlining another body locates.
pub(crate) fn examine(text: &Arc<String>, options: &Options) -> Option<Examined> {
    let mut outline = Outline::new(text.clone())?;
    let mut report = Report::new(options);
    let module = declarations(outline.tree(), options, &mut report);
    debug::sections(outline.tree(), &module, &mut report);
    debug::twice(outline.tree(), &mut report);
    if report.errors > 0 || rules::old_kernel_parameters(&module) {
        return None;
    }
    let labels = debug::label_names(outline.tree(), text);
    let (mut memo, mut scratch) = (body::Memo::default(), body::Scratch::default());
    let mut facts = Vec::with_capacity(module.funcs.len());
    for (index, func) in module.funcs.iter().enumerate() {
        let before = report.diagnostics.len();
        if func.defined {
            if !outline.body(func.node) {
                return None;
            }
            debug::locations((outline.tree(), outline.directives()), &labels, &module, &mut report);
        }
        let tree = outline.tree();
        facts.push(body::examine(tree, &module, FuncId(index as u32), &mut memo, &mut scratch, &mut report));
        if report.errors > 0 {
            return None;
        }
        report.diagnostics[before..].iter_mut().for_each(|d| begin_at_mnemonic(tree, d));
    }
    let before = report.diagnostics.len();
    rules::reach::whole(&module, &facts, options, &mut report);
    debug::labeled(outline.tree(), &module, &mut report);
    debug::promised(outline.tree(), &module, &mut report);
    if report.errors > 0 || report.diagnostics.len() > before {
        return None;
    }
    let mut diagnostics = report.diagnostics;
    diagnostics.sort_by_key(Diagnostic::span);
    Some(Examined { tree: Arc::new(outline.into_tree()), files: module.files, diagnostics })
}

/// An instruction that goes over several lines is wrong where it begins, as for ptxas; the operand on a later line stays as the
/// second place.
fn begin_at_mnemonic(tree: &Tree, d: &mut Diagnostic) {
    let at = d.span();
    let next = tree.instrs.partition_point(|i| i.span.start <= at.start);
    let Some(instr) = next.checked_sub(1).map(|i| &tree.instrs[i]).filter(|i| at.start < i.span.end) else { return };
    let mnemonic = instr.mnemonic;
    if at.start < mnemonic.end || !tree.str(Span::new(mnemonic.end, at.start)).contains('\n') {
        return;
    }
    if d.labels[0].text.is_empty() {
        d.labels[0].text.push_str("this one");
    }
    d.labels.insert(0, Label { span: mnemonic, text: String::new() });
}

fn bodies(tree: &Tree, module: &Module, report: &mut Report) -> (Vec<Facts>, body::Memo) {
    let mut memo = body::Memo::default();
    let mut scratch = body::Scratch::default();
    let mut facts = Vec::with_capacity(module.funcs.len());
    for index in 0..module.funcs.len() {
        let id = FuncId(index as u32);
        facts.push(body::examine(tree, module, id, &mut memo, &mut scratch, report));
    }
    (facts, memo)
}

fn empty() -> Module {
    Module {
        version: Version::LAST,
        target: Target::sm(121),
        version_at: None,
        target_at: None,
        address_size: 64,
        texmode_independent: false,
        debug: false,
        debug_at: None,
        unified_at: None,
        abi: Abi::Stack,
        globals: Vec::new(),
        funcs: Vec::new(),
        aliases: Vec::new(),
        address_taken: Vec::new(),
        names: Default::default(),
        files: HashMap::new(),
    }
}

struct Builder<'a> {
    tree: &'a Tree,
    module: Module,
    report: &'a mut Report,
    /// `.file` index to the directive that gave it.
    files: HashMap<u32, (Span, Box<str>)>,
}

impl Builder<'_> {
    fn directive(&mut self, d: &Directive) {
        let tree = self.tree;
        match tree.str(d.name) {
            ".file" => self.file(d),
            "@@DWARF" => debug::old(&self.module, d.span, self.report),
            ".alias" => rules::alias::declare(tree, &mut self.module, d, self.report),
            ".pragma" => rules::pragma::check(tree, &self.module, d, Place::Module, self.report),
            // The header is already processed; debugging information is not needed here.
            _ => {}
        }
    }

    fn file(&mut self, d: &Directive) {
        let tree = self.tree;
        let [index, path, rest @ ..] = tree.operands(d.args) else { return };
        let (Kind::Int { value, .. }, Kind::String) = (index.kind, path.kind) else { return };
        if let ([time, ..], Some(lack)) = (rest, lacking(&self.module, &since(3, 2, 0))) {
            self.report.push(lack.diagnose(&self.module, "the time and size in `.file`", time.span));
        }
        let Some(index_value) = func::narrow(tree, index.span, value.get(), self.report) else { return };
        let text: Box<str> = tree.str(path.span).trim_matches('"').into();
        if let Some((first, before)) = self.files.get(&index_value) {
            self.report.push(
                Diagnostic::new(Code::DuplicateFile, index.span, format!("file {index_value} is declared twice"))
                    .label(*first, format!("first as \"{before}\"")),
            );
            return;
        }
        self.files.insert(index_value, (index.span, text.clone()));
        self.module.files.insert(index_value, text);
    }

    fn var(&mut self, var: &tree::Var) {
        let tree = self.tree;
        let linkage = func::linkage(tree, var.linkage);
        let shape = decl::declare(tree, &self.module, var, ShapeAt::Module, self.report);
        if let Some(shape) = &shape {
            rules::globals::space(&mut self.module, var.space, shape.space, linkage, self.report);
        }
        let managed = var.attribute.and_then(|a| tree.directives.get(a as usize)).is_some_and(|a| {
            self.module.unified_at = self.module.unified_at.or(rules::attribute::first_unified(tree, a));
            rules::attribute::variable(tree, &self.module, a, var, shape.map(|s| s.space), self.report)
        });
        for d in tree.declarators(var) {
            let name = tree.str(d.name);
            // A declaration without a readable shape still makes its names known, so that their uses are not faulted.
            let (space, ty, vector, align, bank) = match &shape {
                Some(s) => (s.space, s.ty, s.vector, s.align, s.bank),
                None => (Space::Generic, margay_isa::Type::B8, 1, 1, None),
            };
            let element = shape.map_or(1, |s| s.element());
            let Some((count, numbered)) = decl::family(tree, d, FAMILY, self.report) else { continue };
            let (mut extent, mut dims) =
                decl::extent(tree, d, element, self.report).unwrap_or_else(|| (Extent::Array(0), vec![1]));
            let mut contents = Vec::new();
            if let (Some(value), Some(shape)) = (d.init, &shape) {
                let at = tree.operands.get(value as usize).map_or(d.span, |o| o.span);
                if rules::globals::may_initialize(tree, shape, d.name, at, linkage, self.report) {
                    // An address may be the variable's own, so its name comes first.
                    let probe = self.probe(name, space, d.name);
                    let (init, open) = init::evaluate(tree, &self.module, shape, &dims, d.name, value, self.report);
                    if probe {
                        self.module.names.remove(name);
                        self.module.globals.pop();
                    }
                    contents = init;
                    if extent == Extent::Unsized {
                        dims[0] = open;
                        extent = Extent::Array(dims.iter().product());
                    }
                }
            }
            if let Some(shape) = &shape {
                rules::globals::extent(tree, shape, extent, d, linkage, self.report);
                rules::globals::ty(tree, shape, extent, d, linkage, self.report);
            }
            let global = Global {
                name: name.into(),
                space,
                bank,
                ty,
                vector,
                extent,
                dimensions: if extent == Extent::Scalar { 0 } else { dims.len() as u32 },
                align,
                size: extent.bytes(element),
                linkage,
                managed,
                init: contents,
                span: d.name,
                first: d.name,
            };
            if numbered {
                for i in 0..count {
                    self.global(Global { name: format!("{name}{i}").into(), ..global.clone() });
                }
            } else {
                self.global(global);
            }
        }
    }

    /// Makes a name known for its own initializer. False if it is known already.
    fn probe(&mut self, name: &str, space: Space, span: Span) -> bool {
        if self.module.names.contains_key(name) {
            return false;
        }
        let id = GlobalId(self.module.globals.len() as u32);
        self.module.globals.push(Global {
            name: name.into(),
            space,
            bank: None,
            ty: margay_isa::Type::B8,
            vector: 1,
            extent: Extent::Scalar,
            dimensions: 0,
            align: 1,
            size: 1,
            linkage: Linkage::Internal,
            managed: false,
            init: Vec::new(),
            span,
            first: span,
        });
        self.module.names.insert(name.into(), Symbol::Global(id));
        true
    }

    /// The module's own names are in the scope that special registers are in; names of bodies hide those.
    fn special(&mut self, name: &str, span: Span) {
        if Special::from_name(name).is_some() {
            let d = Diagnostic::new(Code::Duplicate, span, format!("`{name}` is a special register"))
                .here("reserved at module scope")
                .help("use another name; only variables of a function body may have this name, and hide the register there");
            self.report.push(d);
        }
    }

    fn global(&mut self, global: Global) {
        self.special(&global.name, global.span);
        match self.module.symbol(&global.name) {
            None => {
                let id = GlobalId(self.module.globals.len() as u32);
                self.module.names.insert(global.name.clone(), Symbol::Global(id));
                self.module.globals.push(global);
            }
            Some(Symbol::Global(id)) => {
                let before = &mut self.module.globals[id.0 as usize];
                if rules::globals::redeclare(before, &global, self.report) {
                    let first = before.first;
                    *before = Global { first, ..global };
                }
            }
            Some(Symbol::Func(id)) => {
                let f = self.module.func(id);
                self.report.push(duplicate(&global.name, global.span, f.span, "a function"));
            }
            Some(Symbol::Alias(a)) => {
                let at = self.module.aliases[a as usize].span;
                self.report.push(duplicate(&global.name, global.span, at, "an alias"));
            }
        }
    }

    fn func(&mut self, node: u32) {
        let function = func::signature(self.tree, &self.module, node, self.report);
        self.special(&function.name, function.span);
        match self.module.symbol(&function.name) {
            None => {
                rules::prototypes::first(&function, self.report);
                let id = FuncId(self.module.funcs.len() as u32);
                self.module.names.insert(function.name.clone(), Symbol::Func(id));
                self.module.funcs.push(function);
            }
            Some(Symbol::Func(id)) => {
                let before = &mut self.module.funcs[id.0 as usize];
                rules::prototypes::again(before, &function, self.report);
                merge(before, function);
            }
            Some(Symbol::Global(id)) => {
                let at = self.module.global(id).span;
                self.report.push(duplicate(&function.name, function.span, at, "a variable"));
                self.orphan(function);
            }
            Some(Symbol::Alias(a)) => {
                let at = self.module.aliases[a as usize].span;
                if function.defined {
                    self.report.push(duplicate(&function.name, function.span, at, "an alias"));
                    self.orphan(function);
                }
            }
        }
    }

    /// Keeps a function whose name is taken, so that its body is checked too.
    fn orphan(&mut self, function: Function) {
        self.module.funcs.push(function);
    }
}

fn duplicate(name: &str, span: Span, first: Span, what: &str) -> Diagnostic {
    Diagnostic::new(Code::Duplicate, span, format!("`{name}` is declared twice"))
        .label(first, format!("first as {what}"))
}

/// Merges a later declaration, or the definition, into the first one.
fn merge(before: &mut Function, later: Function) {
    if before.defined {
        return;
    }
    let linkage = if later.linkage == Linkage::Internal { before.linkage } else { later.linkage };
    let linkage = if later.defined && linkage == Linkage::Extern { Linkage::Visible } else { linkage };
    *before = Function {
        linkage,
        noreturn: before.noreturn || later.noreturn,
        abi_preserve: later.abi_preserve.or(before.abi_preserve),
        abi_preserve_control: later.abi_preserve_control.or(before.abi_preserve_control),
        unified: later.unified.or(before.unified),
        first: before.first,
        faulty: before.faulty || later.faulty,
        ..later
    };
}

/// The alias that a directive makes.
pub(crate) fn add_alias(module: &mut Module, name: &str, of: FuncId, span: Span, first: Span) {
    let index = module.aliases.len() as u32;
    module.aliases.push(Alias { name: name.into(), of, span, first });
    module.names.insert(name.into(), Symbol::Alias(index));
}
