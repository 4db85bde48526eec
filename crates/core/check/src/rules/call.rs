//! `call`: checks results and arguments against the callee's signature (manual, sections 7.1 and 9.7.12.5).

use super::prototypes::shape;
use crate::body::{Candidate, Inst, Operand, SymRef, TargetTable, Walker};
use crate::report::count;
use crate::{Extent, Formal, FormalSpace, FuncId, FuncKind, Function};
use margay_isa::{Kind, Space, Type};
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
            super::reach::indirect(w, site.callee);
            match std::mem::replace(&mut w.body.tables[id.0 as usize], TargetTable::Branch(Vec::new())) {
                TargetTable::Prototype(f) => {
                    signature(w, &site, &f, rets, args);
                    w.facts.prototypes.push((f.clone(), site.callee));
                    w.body.tables[id.0 as usize] = TargetTable::Prototype(f);
                }
                TargetTable::Calls(targets) => {
                    one_of(w, &site, &targets, rets, args);
                    w.body.tables[id.0 as usize] = TargetTable::Calls(targets);
                }
                TargetTable::Branch(labels) => {
                    w.body.tables[id.0 as usize] = TargetTable::Branch(labels);
                    w.report.push(
                        Diagnostic::new(
                            Code::CallTable,
                            site.table,
                            "an indirect call requires a prototype or a list of functions",
                        )
                        .here("this is a list of branch targets"),
                    );
                }
            }
        }
        _ => {}
    }
    super::sequence::call(w, rets, args);
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
            // The list promises that all targets are alike: one complaint says it.
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
        one(w, site.rets[i].span, w.body.operands[actual], formal, f, Way::Result(i));
    }
    for (i, (actual, formal)) in args.zip(&f.params).enumerate() {
        one(w, site.args[i].span, w.body.operands[actual], formal, f, Way::Argument(i));
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
fn written(f: &Formal) -> String {
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

/// Which way a value goes.
#[derive(Clone, Copy)]
enum Way {
    Argument(usize),
    Result(usize),
}

impl std::fmt::Display for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Way::Argument(i) => write!(f, "argument {}", i + 1),
            Way::Result(0) => write!(f, "the result"),
            Way::Result(i) => write!(f, "result {}", i + 1),
        }
    }
}

/// What is passed or receives: a register or a `.param` variable.
struct Actual {
    ty: Type,
    vector: u8,
    extent: Extent,
    align: u32,
    size: u64,
    reg: bool,
    at: Span,
}

/// One argument or result.
fn one(w: &mut Walker<'_, '_>, span: Span, actual: Operand, formal: &Formal, f: &Function, way: Way) {
    let result = matches!(way, Way::Result(_));
    let actual = match actual {
        Operand::Error => return,
        Operand::Sink if result => return,
        Operand::Sink => {
            let d = Diagnostic::new(Code::CallArgument, span, format!("{way} is `_`, which has no value"));
            return w
                .report
                .push(d.label(formal.span, "this parameter requires a value").help("`_` can only discard a result"));
        }
        Operand::Int(_) | Operand::Float { .. } if result => {
            let d = Diagnostic::new(
                Code::CallArgument,
                span,
                format!("{way} of `{}` cannot be received by a constant", f.name),
            );
            return w
                .report
                .push(d.help("receive it in a register, or discard it with `_`").note("ptxas crashes on this"));
        }
        Operand::Int(value) => return integer(w, span, value, formal, way),
        Operand::Float { bits, single } => return float(w, span, bits, single, formal, way),
        Operand::Reg(reg) => {
            let d = *w.body.decl(reg);
            let natural = (d.ty.bytes().max(1) * u32::from(d.vector)).next_power_of_two();
            let align = w.register_alignment(reg).unwrap_or(natural).max(natural);
            // Predicates count as one byte, as in formals.
            let size = u64::from(d.ty.bytes().max(1)) * u64::from(d.vector);
            Actual { ty: d.ty, vector: d.vector, extent: Extent::Scalar, align, size, reg: true, at: d.name }
        }
        Operand::Symbol(SymRef::Local(i), _) if w.body.locals[i as usize].space == Space::Param => {
            let l = &w.body.locals[i as usize];
            Actual {
                ty: l.ty,
                vector: l.vector,
                extent: l.extent,
                align: l.align,
                size: l.size,
                reg: false,
                at: l.name,
            }
        }
        other => return not_passable(w, span, other, way),
    };
    matches(w, span, &actual, formal, f, way);
}

/// Something that is neither register, `.param` variable of the caller, nor constant.
#[cold]
fn not_passable(w: &mut Walker<'_, '_>, span: Span, actual: Operand, way: Way) {
    let name = w.tree.str(span).to_owned();
    let d = match actual {
        Operand::Symbol(symbol @ (SymRef::Param(_) | SymRef::Ret(_)), _) => {
            let (_, at) = w.type_of_symbol(symbol);
            Diagnostic::new(
                Code::CallArgument,
                span,
                format!("{way}, `{name}`, is a parameter of `{}` itself", w.func.name),
            )
            .label(at, "declared here")
            .help("copy it to a register or to a `.param` variable of the body")
        }
        Operand::Symbol(SymRef::Func(_), _) => {
            Diagnostic::new(Code::CallArgument, span, format!("{way}, `{name}`, is a function"))
                .help(format!("take its address first: `mov.u64 r, {name};`"))
        }
        Operand::Symbol(symbol, _) => {
            let (_, at) = w.type_of_symbol(symbol);
            let space = w.symbol_space(symbol);
            Diagnostic::new(Code::CallArgument, span, format!("{way}, `{name}`, is in {space}"))
                .label(at, "declared here")
                .help("pass its address in a register, or its value in a register or `.param` variable")
        }
        Operand::Special(..) => {
            Diagnostic::new(Code::CallArgument, span, format!("{way}, `{name}`, is a special register"))
                .help(format!("move it to a register first: `mov.u32 r, {name};`"))
        }
        _ => Diagnostic::new(Code::CallArgument, span, format!("{way}, `{name}`, cannot be passed"))
            .note("arguments are registers, `.param` variables of the caller, and constants"),
    };
    w.report.push(d);
}

/// Whether two scalar types go together for ptxas: untyped bits with anything, integers with integers.
fn kinds(x: Type, y: Type) -> bool {
    let bits = |t: Type| t.kind() == Kind::Bits || t == Type::F16x2;
    let apart = |t: Type| t == Type::Pred || t.kind() == Kind::Opaque;
    if apart(x) || apart(y) {
        return x == y;
    }
    bits(x) || bits(y) || x == y || (x.is_int() && y.is_int())
}

fn matches(w: &mut Walker<'_, '_>, span: Span, a: &Actual, formal: &Formal, f: &Function, way: Way) {
    let arrays = (a.extent != Extent::Scalar, formal.extent != Extent::Scalar);
    let fits = match arrays {
        (false, false) => {
            let vectors = a.vector > 1 || formal.vector > 1;
            a.size == u64::from(formal.size) && (vectors || kinds(a.ty, formal.ty))
        }
        (true, true) => {
            let size = formal.extent == Extent::Unsized || a.size == u64::from(formal.size);
            let untyped = a.ty.kind() == Kind::Bits || formal.ty.kind() == Kind::Bits;
            // Formats that registers do not have, and pairs of halves, are not taken as bits.
            let plain = |t: Type| t.is_register() && t != Type::F16x2;
            size && (a.ty == formal.ty || untyped && plain(a.ty) && plain(formal.ty))
        }
        _ => false,
    };
    if !fits {
        return wrong_type(w, span, a, formal, f, way, arrays);
    }
    if a.align != formal.align {
        return wrong_alignment(w, span, a, formal, f, way);
    }
    // The manual requires equal types, except for bit-size types; ptxas requires equal sizes.
    let bits = a.ty.kind() == Kind::Bits || formal.ty.kind() == Kind::Bits;
    let strict = match arrays {
        (true, true) => a.ty == formal.ty,
        _ => a.vector == formal.vector && (bits || a.ty == formal.ty || a.ty == Type::F16x2),
    };
    if !strict {
        let name = w.tree.str(span);
        let d = Diagnostic::new(
            Code::CallType,
            span,
            format!(
                "{way} `{name}` is `{}`, but the parameter `{}` is `{}`",
                actual_shape(a),
                formal.name,
                shape(formal)
            ),
        )
        .label(a.at, "declared here")
        .label(formal.span, "the parameter")
        .note("section 7.1: type and size must match");
        w.report.text_only(d);
    }
}

fn actual_shape(a: &Actual) -> String {
    let vector = if a.vector > 1 { format!(".v{} ", a.vector) } else { String::new() };
    match a.extent {
        Extent::Array(n) => format!("{vector}{}[{n}]", a.ty),
        _ => format!("{vector}{}", a.ty),
    }
}

#[cold]
fn wrong_type(
    w: &mut Walker<'_, '_>,
    span: Span,
    a: &Actual,
    formal: &Formal,
    f: &Function,
    way: Way,
    arrays: (bool, bool),
) {
    let name = w.tree.str(span);
    let has = format!("`{}`", actual_shape(a));
    let sizes = a.size != u64::from(formal.size) && formal.extent != Extent::Unsized;
    let message = match way {
        _ if arrays.0 != arrays.1 && a.reg => {
            format!("{way} `{name}` is a register; `{}` expects the `.param` array `{}`", f.name, written(formal))
        }
        _ if sizes => {
            format!(
                "{way} `{name}` has {}; `{}` expects `{}` with {}",
                bytes(a.size),
                f.name,
                written(formal),
                bytes(formal.size.into())
            )
        }
        _ => format!("{way} `{name}` is {has}; `{}` expects `{}`", f.name, written(formal)),
    };
    let mut d = Diagnostic::new(Code::CallType, span, message)
        .label(a.at, format!("declared as {has}"))
        .label(formal.span, "the parameter");
    if arrays == (false, true) && !a.reg {
        d = d.help(format!("declare an array: `{}`", written(formal)));
    } else if sizes && !a.reg {
        d = d.help(format!("declare `{}`", written(formal)));
    }
    w.report.push(d.note(format!("`margay abi` shows how `{}` is called", f.name)));
}

fn bytes(n: u64) -> String {
    if n == 1 { "1 byte".to_owned() } else { format!("{n} bytes") }
}

#[cold]
fn wrong_alignment(w: &mut Walker<'_, '_>, span: Span, a: &Actual, formal: &Formal, f: &Function, way: Way) {
    let name = w.tree.str(span);
    let mut d = Diagnostic::new(
        Code::CallAlignment,
        span,
        format!("{way} `{name}` has alignment {}; `{}` expects {}", a.align, f.name, formal.align),
    )
    .label(a.at, format!("aligned to {}", a.align))
    .label(formal.span, format!("aligned to {}", formal.align))
    .note("section 7.1: an argument has the size and alignment of its parameter");
    if !a.reg {
        let array = match a.extent {
            Extent::Array(n) => format!("[{n}]"),
            _ => String::new(),
        };
        d = d.help(format!("declare `.param .align {} {} {name}{array}`", formal.align, a.ty));
    }
    w.report.push(d);
}

/// An integer constant as an argument.
fn integer(w: &mut Walker<'_, '_>, span: Span, value: i64, formal: &Formal, way: Way) {
    let ty = formal.ty;
    let vector = formal.vector > 1 && formal.size == 8;
    let fits = formal.extent == Extent::Scalar
        && (vector || (formal.vector == 1 && matches!(ty.kind(), Kind::Bits | Kind::Signed | Kind::Unsigned)));
    if !fits {
        return no_constant(w, span, formal, way);
    }
    let bits = ty.bits();
    let text = w.tree.str(span);
    // A literal beyond `.s64` is unsigned: its bits are all there is.
    let negative = value < 0 && text.trim_start().starts_with(['-', '(', '~']);
    let unsigned = u128::from(value as u64);
    let representable = match ty.kind() {
        _ if bits >= 128 || vector => true,
        Kind::Unsigned => !negative && unsigned < 1 << bits,
        Kind::Signed if negative => i128::from(value) >= -(1i128 << (bits - 1)),
        Kind::Signed => unsigned < 1 << (bits - 1),
        _ if negative => i128::from(value) >= -(1i128 << (bits - 1)),
        _ => unsigned < 1 << bits,
    };
    if !representable {
        w.report.text_only(
            Diagnostic::new(Code::CallConstant, span, format!("{way}, {text}, is not a value of `{ty}`"))
                .label(formal.span, "the parameter")
                .note("section 7.1: a constant argument must be representable in the parameter's type"),
        );
    }
}

/// A floating-point constant as an argument.
fn float(w: &mut Walker<'_, '_>, span: Span, _bits: u64, single: bool, formal: &Formal, way: Way) {
    let ty = formal.ty;
    // A vector of the constant's own size takes it.
    let vector = formal.vector > 1 && formal.size == if single { 4 } else { 8 };
    let fits = formal.extent == Extent::Scalar
        && (vector
            || formal.vector == 1
                && match ty {
                    Type::F16x2 => single,
                    _ => matches!(ty.kind(), Kind::Bits | Kind::Float),
                });
    if !fits {
        return no_constant(w, span, formal, way);
    }
    let text = w.tree.str(span);
    let double = text.starts_with("0d") || text.starts_with("0D");
    let wanted = match ty {
        Type::F32 => !double,
        Type::F64 => !single,
        _ => ty.is_float() && !single && !double,
    };
    if !wanted && !vector {
        w.report.text_only(
            Diagnostic::new(Code::CallConstant, span, format!("{way}, {text}, is not a value of `{ty}`"))
                .label(formal.span, "the parameter")
                .note("section 7.1: a constant argument must be representable in the parameter's type"),
        );
    }
}

#[cold]
fn no_constant(w: &mut Walker<'_, '_>, span: Span, formal: &Formal, way: Way) {
    let text = w.tree.str(span);
    let d = Diagnostic::new(
        Code::CallType,
        span,
        format!("{way} is the constant {text}, but the parameter is `{}`", written(formal)),
    )
    .label(formal.span, "the parameter");
    let d = if formal.extent != Extent::Scalar {
        d.help("store the value in a `.param` array and pass the array")
    } else if formal.ty == Type::F32 && crate::consts::is_decimal(text) {
        d.help(format!("write `{text}.0`"))
    } else {
        d.help("move it to a register of the right type first")
    };
    w.report.push(d);
}
