//! Headers of functions, kernels and prototypes: parameters, linkage, performance directives (manual, sections 11.2 and 11.4).

use super::decl::{self, ShapeAt};
use super::{Extent, Formal, FormalSpace, FuncKind, Function, Linkage, Module};
use crate::report::{Report, lacking, since};
use crate::{consts, consts::Const, rules, rules::pragma::Place};
use margay_isa::{Since, Space, Type, Version};
use margay_syntax::{
    Span, Tree,
    diag::{Code, Diagnostic},
    tree::{self, Directive, List},
};

/// Reads a header. Formals that could not be read are there with type `.b32`, so that counts stay right.
pub(crate) fn signature(tree: &Tree, module: &Module, node: u32, report: &mut Report) -> Function {
    let func = &tree.funcs[node as usize];
    let kind = match func.kind {
        tree::FuncKind::Entry => FuncKind::Kernel,
        tree::FuncKind::Func | tree::FuncKind::Prototype => FuncKind::Device,
    };
    let mut f = Function {
        name: tree.str(func.name).into(),
        kind,
        linkage: linkage(tree, func.linkage),
        rets: Vec::new(),
        params: Vec::new(),
        noreturn: false,
        abi_preserve: None,
        abi_preserve_control: None,
        reqntid: None,
        maxntid: None,
        reqnctapercluster: None,
        maxnreg: None,
        minnctapersm: None,
        maxclusterrank: None,
        explicitcluster: false,
        blocksareclusters: false,
        unified: None,
        node,
        defined: func.body.is_some(),
        faulty: report.is_broken(func.header),
        span: func.name,
        first: func.name,
    };
    let prototype = func.kind == tree::FuncKind::Prototype;
    let before = report.errors;
    if let Some(list) = func.rets {
        f.rets = formals(tree, module, list, ShapeAt::Return, prototype, report);
    }
    if let Some(list) = func.params {
        let at = if kind == FuncKind::Kernel { ShapeAt::Kernel } else { ShapeAt::Input };
        f.params = formals(tree, module, list, at, prototype, report);
    }
    if kind == FuncKind::Kernel
        && rules::old_kernel_parameters(module)
        && let Some(body) = func.body
    {
        // Kernels of the first versions declare their parameters in the body.
        let vars = tree.stmts(body).iter().filter_map(|s| match s {
            tree::Stmt::Var(v) if tree.str(tree.vars[*v as usize].space) == ".param" => Some(*v),
            _ => None,
        });
        for v in vars {
            let list = List::new(v, 1);
            f.params.extend(formals(tree, module, list, ShapeAt::Kernel, prototype, report));
        }
    }
    f.faulty |= report.errors > before;
    if let Some(attribute) = func.attribute.and_then(|a| tree.directives.get(a as usize)) {
        rules::attribute::function(tree, module, attribute, &mut f, report);
    }
    for d in tree.directives(func.directives) {
        directive(tree, module, func, d, &mut f, report);
    }
    if kind == FuncKind::Kernel {
        together(tree, func, &f, report);
    }
    rules::formals::header(module, func, &f, report);
    if kind == FuncKind::Kernel && f.defined {
        rules::limits::kernel_parameters(module, &f, report);
    }
    f
}

/// The linkage word before a function or variable. The parser has complained about a second one.
pub(super) fn linkage(tree: &Tree, words: List<Directive>) -> Linkage {
    let Some(d) = tree.directives(words).first() else { return Linkage::Internal };
    match tree.str(d.name) {
        ".visible" => Linkage::Visible,
        ".extern" => Linkage::Extern,
        ".weak" => Linkage::Weak,
        ".common" => Linkage::Common,
        _ => Linkage::Internal,
    }
}

fn formals(
    tree: &Tree,
    module: &Module,
    list: List<tree::Var>,
    at: ShapeAt,
    prototype: bool,
    report: &mut Report,
) -> Vec<Formal> {
    let vars = tree.vars(list);
    let mut out = Vec::with_capacity(vars.len());
    for (index, var) in vars.iter().enumerate() {
        let shape = decl::declare(tree, module, var, at, report);
        for d in tree.declarators(var) {
            let name: Box<str> = tree.str(d.name).into();
            let Some(shape) = shape else {
                out.push(unknown(name, d.name));
                continue;
            };
            let space = if shape.space == Space::Reg { FormalSpace::Reg } else { FormalSpace::Param };
            let (extent, _) = decl::extent(tree, d, shape.element(), report).unwrap_or((Extent::Scalar, Vec::new()));
            let element = shape.element().max(u64::from(shape.ty == Type::Pred));
            let size = extent.bytes(element);
            if u32::try_from(size).is_err() {
                report.push(Diagnostic::new(Code::DeclarationTooLarge, d.span, format!("a parameter of {size} bytes")));
            }
            let ptr = var.ptr.map(|p| rules::pointer::attribute(tree, module, &p, at, report));
            let formal = Formal {
                name,
                space,
                ty: shape.ty,
                vector: shape.vector,
                extent,
                align: shape.align,
                size: u32::try_from(size).unwrap_or(u32::MAX),
                ptr,
                span: d.name,
            };
            rules::formals::formal(tree, module, &formal, at, index + 1 == vars.len(), prototype, report);
            out.push(formal);
        }
    }
    out
}

fn unknown(name: Box<str>, span: Span) -> Formal {
    Formal {
        name,
        space: FormalSpace::Param,
        ty: Type::B32,
        vector: 1,
        extent: Extent::Scalar,
        align: 4,
        size: 4,
        ptr: None,
        span,
    }
}

/// A directive of a header and what it needs.
struct Known {
    name: &'static str,
    since: Since,
    /// Values must not be 0.
    positive: bool,
}

const KNOWN: &[Known] = &[
    Known { name: ".maxntid", since: since(1, 3, 0), positive: true },
    Known { name: ".reqntid", since: since(2, 1, 0), positive: true },
    Known { name: ".maxnreg", since: since(1, 3, 0), positive: true },
    Known { name: ".minnctapersm", since: since(2, 0, 20), positive: true },
    Known { name: ".maxnctapersm", since: since(1, 3, 0), positive: true },
    Known { name: ".reqnctapercluster", since: since(7, 8, 90), positive: false },
    Known { name: ".explicitcluster", since: since(7, 8, 90), positive: false },
    // Not in the manual.
    Known { name: LOCAL_MAXNREG, since: since(8, 8, 0), positive: true },
    Known { name: ".minperctamemory", since: since(9, 4, 80), positive: false },
    Known { name: ".maxclusterrank", since: since(7, 8, 90), positive: false },
    Known { name: ".blocksareclusters", since: since(9, 0, 90), positive: false },
];

const LOCAL_MAXNREG: &str = ".local_maxnreg";

fn directive(tree: &Tree, module: &Module, func: &tree::Func, d: &Directive, f: &mut Function, report: &mut Report) {
    let name = tree.str(d.name);
    match name {
        ".noreturn" | ".abi_preserve" | ".abi_preserve_control" => {
            return rules::header::directive(tree, module, func, d, f, report);
        }
        ".pragma" => return rules::pragma::check(tree, module, d, Place::Header, report),
        ".language" => return language(tree, module, d, report),
        _ => {}
    }
    // The parser has complained about others, and about these where they do not belong.
    let belongs = f.kind == FuncKind::Kernel || name == LOCAL_MAXNREG;
    let Some(known) = KNOWN.iter().find(|k| k.name == name).filter(|_| belongs) else { return };
    let args = tree.operands(d.args);
    let mut values = [1u32; 3];
    for (value, arg) in values.iter_mut().zip(args) {
        match number(tree, arg, name, known.positive, report) {
            Some(v) => *value = v,
            None => return,
        }
    }
    if name == ".maxnctapersm" && module.version >= Version::new(2, 1) && module.version_at.is_some() {
        report.push(Diagnostic::new(Code::Removed, d.name, "`.maxnctapersm` was removed in PTX ISA 2.1").fix(
            d.name,
            ".minnctapersm",
            "write `.minnctapersm`",
        ));
    } else if let Some(lack) = lacking(module, &known.since) {
        report.push(lack.diagnose(module, &format!("`{name}`"), d.span));
    }
    match name {
        ".maxntid" => f.maxntid = Some(values),
        ".reqntid" => f.reqntid = Some(values),
        ".maxnreg" => f.maxnreg = Some(values[0]),
        ".minnctapersm" => f.minnctapersm = Some(values[0]),
        ".reqnctapercluster" => f.reqnctapercluster = Some(values),
        ".explicitcluster" => f.explicitcluster = true,
        ".maxclusterrank" => f.maxclusterrank = Some(values[0]),
        ".blocksareclusters" => f.blocksareclusters = true,
        _ => {}
    }
}

/// The languages that ptxas knows, in any case; the manual lacks `.language`. Their numbers are from 0 to 10.
const LANGUAGES: [&str; 10] =
    ["cuda c++", "cuda c++ tile", "fortran", "nvsal", "nvvm", "optix", "ptx", "python-cutile", "tile ir", "unknown"];

/// `.language "cuda c++"` or `.language 1, 2`
fn language(tree: &Tree, module: &Module, d: &Directive, report: &mut Report) {
    if let Some(lack) = lacking(module, &since(9, 2, 0)) {
        report.push(lack.diagnose(module, "`.language`", d.span));
    }
    for arg in tree.operands(d.args) {
        let text = tree.str(arg.span);
        if matches!(arg.kind, tree::Kind::String) {
            let name = text.trim_matches('"');
            if !LANGUAGES.iter().any(|known| known.eq_ignore_ascii_case(name)) {
                report.push(
                    Diagnostic::new(Code::DirectiveValue, arg.span, format!("unknown language {text}"))
                        .note(format!("ptxas knows {}", LANGUAGES.map(|l| format!("\"{l}\"")).join(", "))),
                );
            }
        } else if let Some(value) = number(tree, arg, ".language", false, report)
            && value > 10
        {
            let message = format!("the numbers of languages are 0 to 10, found {text}");
            report.push(Diagnostic::new(Code::DirectiveValue, arg.span, message));
        }
    }
}

fn number(tree: &Tree, arg: &tree::Operand, name: &str, positive: bool, report: &mut Report) -> Option<u32> {
    match consts::eval(tree, arg) {
        Ok(Const::Int { value, .. }) => {
            let value = narrow(tree, arg.span, value as u64, report)?;
            if positive && value == 0 {
                let text = format!("`{name}` requires positive numbers, found {}", tree.str(arg.span));
                report.push(Diagnostic::new(Code::DirectiveValue, arg.span, text));
                return None;
            }
            Some(value)
        }
        Ok(_) => None,
        Err(e) => {
            decl::constant_error(tree, e, report);
            None
        }
    }
}

/// The number of a directive in 32 bits; complains if it has more. What is negative as a 64-bit number is cut off, as ptxas
/// cuts it off.
pub(crate) fn narrow(tree: &Tree, span: Span, value: u64, report: &mut Report) -> Option<u32> {
    if (i64::from(u32::MAX) + 1..=i64::MAX).contains(&(value as i64)) {
        let text = format!("{} does not fit in 32 bits", tree.str(span));
        report.push(Diagnostic::new(Code::DirectiveValue, span, text));
        return None;
    }
    Some(value as u32)
}

/// Directives that exclude or need each other.
fn together(tree: &Tree, func: &tree::Func, f: &Function, report: &mut Report) {
    let place = |name: &str| tree.directives(func.directives).iter().find(|d| tree.str(d.name) == name).map(|d| d.name);
    let exclude = |a: &str, b: &str, report: &mut Report| {
        if let (Some(x), Some(y)) = (place(a), place(b)) {
            report.push(
                Diagnostic::new(Code::DirectiveConflict, x.max(y), format!("`{a}` and `{b}` exclude each other"))
                    .label(x.min(y), "the other is here"),
            );
        }
    };
    exclude(".maxntid", ".reqntid", report);
    exclude(".reqnctapercluster", ".maxclusterrank", report);
    if let Some(at) = place(".blocksareclusters").filter(|_| f.reqntid.is_none() || f.reqnctapercluster.is_none()) {
        report.push(Diagnostic::new(
            Code::DirectiveConflict,
            at,
            "`.blocksareclusters` requires `.reqntid` and `.reqnctapercluster`",
        ));
    }
    if let Some(at) = place(".minnctapersm").filter(|_| f.maxntid.is_none() && f.reqntid.is_none()) {
        report.push(
            Diagnostic::new(Code::IgnoredDirective, at, "`.minnctapersm` is ignored without `.maxntid` or `.reqntid`")
                .help("add the number of threads per CTA: `.maxntid 256`"),
        );
    }
}
