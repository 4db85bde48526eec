//! `call`: checks results and arguments against the callee's signature (manual, sections 7.1 and 9.7.12.5).

use super::arguments::{self, Direction};
use crate::body::{Candidate, Inst, Operand, SymRef, TargetTable, Walker};
use crate::report::count;
use crate::{Extent, Formal, FormalSpace, FuncId, FuncKind, Function};
use margay_syntax::{
    Span, Tree,
    diag::{Code, Diagnostic},
    tree::{self, Kind as Node, List},
};

/// One call.
pub(crate) fn check(w: &mut Walker<'_, '_>, _c: &Candidate, inst: &Inst) {
    let &[rets, callee, args, table] = w.body.operands(inst.operands) else { return };
    let site = Site::new(w.tree, inst);
    match (callee, table) {
        (Operand::Symbol(SymRef::Func(f), _), _) => {
            let module = w.module;
            let function = module.func(f);
            if function.kind == FuncKind::Kernel {
                return kernel(w, &site, function);
            }
            signature(w, &site, function, rets, args);
            if matches!(table, Operand::Table(_)) {
                let message = format!("`{}` is called directly, so its prototype is known", function.name);
                let found = Diagnostic::new(Code::CallTable, site.table, message)
                    .here("a prototype or a list of functions is only for indirect calls");
                w.report.push(found.help("omit it"));
            }
        }
        (Operand::Reg(_), Operand::Table(id)) => {
            // Taken out meanwhile, because the walker changes.
            let unread = TargetTable::Branch(Vec::new());
            let table = std::mem::replace(&mut w.body.tables[id.0 as usize], unread);
            indirect(w, &site, &table, rets, args);
            w.body.tables[id.0 as usize] = table;
        }
        _ => {}
    }
    super::sequence::call(w, rets, args);
}

/// A call through a register, whose callees the label in its last operand describes.
fn indirect(w: &mut Walker<'_, '_>, site: &Site<'_>, table: &TargetTable, rets: Operand, args: Operand) {
    super::reach::indirect(w, site.callee);
    match table {
        TargetTable::Prototype(f) => {
            signature(w, site, f, rets, args);
            w.facts.prototypes.push((f.clone(), site.callee));
        }
        TargetTable::Calls(targets) => one_of(w, site, targets, rets, args),
        TargetTable::Branch(_) => {
            let message = "an indirect call requires a prototype or a list of functions";
            let found = Diagnostic::new(Code::CallTable, site.table, message);
            w.report.push(found.here("this is a list of branch targets"));
        }
    }
}

/// The places of a call in the text.
struct Site<'a> {
    rets: &'a [tree::Operand],
    callee: Span,
    args: &'a [tree::Operand],
    args_list: Option<Span>,
    table: Span,
}

impl<'a> Site<'a> {
    fn new(tree: &'a Tree, inst: &Inst) -> Site<'a> {
        let ops = tree.operands(tree.instrs[inst.node as usize].operands);
        let list = |o: Option<&tree::Operand>| match o?.kind {
            Node::Paren(list) => Some(tree.operands(list)),
            _ => None,
        };
        let mut rest = ops;
        let mut site = Site { rets: &[], callee: Span::default(), args: &[], args_list: None, table: Span::default() };
        if let Some(rets) = list(rest.first()) {
            site.rets = rets;
            rest = &rest[1..];
        }
        if let Some((callee, tail)) = rest.split_first() {
            site.callee = callee.span;
            rest = tail;
        }
        if let Some(args) = list(rest.first()) {
            site.args = args;
            site.args_list = Some(rest[0].span);
            rest = &rest[1..];
        }
        site.table = rest.first().map_or(site.callee, |o| o.span);
        site
    }
}

#[cold]
fn kernel(w: &mut Walker<'_, '_>, site: &Site<'_>, function: &Function) {
    w.report.push(
        Diagnostic::new(Code::CallKernel, site.callee, format!("`{}` is a kernel and cannot be called", function.name))
            .label(function.span, "an `.entry`")
            .help("move the shared code into a `.func`"),
    );
}

/// Every target of a list must take the call.
fn one_of(w: &mut Walker<'_, '_>, site: &Site<'_>, targets: &[FuncId], rets: Operand, args: Operand) {
    let module = w.module;
    w.facts.listed.extend(targets.iter().map(|t| (*t, site.callee)));
    for target in targets {
        let before = w.report.errors;
        let function = module.func(*target);
        signature(w, site, function, rets, args);
        if w.report.errors > before {
            // All targets have the same signature, so one message suffices.
            return;
        }
    }
}

fn elements(list: Operand) -> List<Operand> {
    match list {
        Operand::List(list) => list,
        _ => List::empty(),
    }
}

/// Results and arguments against formals.
fn signature(w: &mut Walker<'_, '_>, site: &Site<'_>, f: &Function, rets: Operand, args: Operand) {
    if f.faulty {
        return;
    }
    let (rets, args) = (elements(rets).range(), elements(args).range());
    if rets.len() != f.rets.len() {
        return wrong_results(w, site, f, rets.len());
    }
    let open = f.params.last().is_some_and(|p| p.extent == Extent::Unsized);
    let fewest = f.params.len() - usize::from(open && site.args_list.is_some());
    if args.len() < fewest || args.len() > f.params.len() {
        return wrong_arguments(w, site, f, args.len());
    }
    for (i, (actual, formal)) in rets.zip(&f.rets).enumerate() {
        arguments::check(w, site.rets[i].span, w.body.operands[actual], formal, f, Direction::Result(i));
    }
    for (i, (actual, formal)) in args.zip(&f.params).enumerate() {
        arguments::check(w, site.args[i].span, w.body.operands[actual], formal, f, Direction::Argument(i));
    }
}

#[cold]
fn wrong_results(w: &mut Walker<'_, '_>, site: &Site<'_>, f: &Function, given: usize) {
    let name = callee_name(w, site, f);
    let at = site.rets.iter().map(|o| o.span).reduce(Span::to).unwrap_or(site.callee);
    let returns = match &f.rets[..] {
        [] => "nothing".to_owned(),
        [r] => format!("`{}`", written(r)),
        many => count(many.len(), "value"),
    };
    let mut d = Diagnostic::new(
        Code::CallCount,
        at,
        format!(
            "{name} returns {returns}, but the call receives {}",
            if given == 0 { "nothing".to_owned() } else { given.to_string() }
        ),
    )
    .label(f.span, "declared here");
    if given == 0 {
        let places: Vec<&str> = f.rets.iter().map(|_| "_").collect();
        d = d.help(format!(
            "receive it, or discard it with `_`: `call ({}), {}, ...`",
            places.join(", "),
            w.tree.str(site.callee)
        ));
    }
    w.report.push(d);
}

#[cold]
fn wrong_arguments(w: &mut Walker<'_, '_>, site: &Site<'_>, f: &Function, given: usize) {
    let name = callee_name(w, site, f);
    let wants = count(f.params.len(), "argument");
    let formals: Vec<String> = f.params.iter().map(written).collect();
    let mut d = if given < f.params.len() {
        let at = site.args_list.unwrap_or(site.callee);
        let missing: Vec<String> = formals[given..].iter().map(|p| format!("`{p}`")).collect();
        Diagnostic::new(Code::CallCount, at, format!("{name} takes {wants}, found {given}"))
            .here(format!("missing: {}", missing.join(", ")))
    } else {
        let extra = site.args[f.params.len()].span.to(site.args[given - 1].span);
        Diagnostic::new(Code::CallCount, extra, format!("{name} takes {wants}, found {given}")).here("too many")
    };
    d = d.label(f.span, "declared here");
    if !formals.is_empty() {
        d = d.note(format!("its parameters are ({})", formals.join(", ")));
    }
    w.report.push(d);
}

fn callee_name(w: &Walker<'_, '_>, site: &Site<'_>, f: &Function) -> String {
    if &*f.name == "_" { format!("the prototype of `{}`", w.tree.str(site.callee)) } else { format!("`{}`", f.name) }
}

/// A formal as it is written.
pub(super) fn written(f: &Formal) -> String {
    let space = if f.space == FormalSpace::Reg { ".reg" } else { ".param" };
    let array = match f.extent {
        Extent::Scalar => String::new(),
        Extent::Array(n) => format!("[{n}]"),
        Extent::Unsized => "[]".to_owned(),
    };
    let natural = (f.ty.bytes().max(1) * u32::from(f.vector)).next_power_of_two();
    let align = if f.align > natural { format!(" .align {}", f.align) } else { String::new() };
    let vector = if f.vector > 1 { format!(" .v{}", f.vector) } else { String::new() };
    format!("{space}{align}{vector} {} {}{array}", f.ty, f.name)
}
