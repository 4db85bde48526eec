//! Redeclared functions: prototypes and definition must agree (manual, sections 11.2.2 and 11.6).

use crate::{
    Extent, Formal, FormalSpace, FuncKind, Function, Linkage,
    report::{Report, count},
};
use margay_syntax::{
    Span,
    diag::{Code, Diagnostic},
};

/// The first declaration of a name.
pub(crate) fn first(f: &Function, report: &mut Report) {
    if f.defined && f.linkage == Linkage::Extern {
        report.push(
            Diagnostic::new(Code::FunctionLinkage, f.span, format!("`{}` is `.extern` but defined here", f.name))
                .help("`.extern` is for definitions in other modules: write `.visible`, or remove the body"),
        );
    }
}

/// The second and later declarations of a name.
pub(crate) fn again(before: &Function, later: &Function, report: &mut Report) {
    let name = &later.name;
    let what = |f: &Function| if f.kind == FuncKind::Kernel { "a kernel" } else { "a function" };
    if before.kind != later.kind {
        return report.push(
            Diagnostic::new(
                Code::PrototypeMismatch,
                later.span,
                format!("`{name}` is {} here and {} there", what(later), what(before)),
            )
            .label(before.span, format!("declared as {}", what(before))),
        );
    }
    if before.defined {
        let message = if later.defined { "is defined twice" } else { "is declared after its definition" };
        return report.push(
            Diagnostic::new(Code::FunctionRedefined, later.span, format!("`{name}` {message}"))
                .label(before.span, "defined here"),
        );
    }
    if let Some(why) = linkage(before, later) {
        report.push(
            Diagnostic::new(Code::FunctionLinkage, later.span, format!("`{name}` {why}"))
                .label(before.span, format!("declared {} here", word(before.linkage)))
                .help("give all declarations of a function the same linkage"),
        );
    }
    if !before.faulty && !later.faulty {
        agree(before, later, report);
    }
}

fn word(linkage: Linkage) -> &'static str {
    match linkage {
        Linkage::Internal => "without linkage",
        Linkage::Visible => "`.visible`",
        Linkage::Extern => "`.extern`",
        Linkage::Weak => "`.weak`",
        Linkage::Common => "`.common`",
    }
}

/// Why two linkages do not go together. A definition may leave out the `.visible` or `.weak` of its prototype.
fn linkage(before: &Function, later: &Function) -> Option<String> {
    match (before.linkage, later.linkage) {
        (Linkage::Extern, Linkage::Extern) if later.defined => Some("is `.extern` but defined here".to_owned()),
        (a, b) if a == b => None,
        (Linkage::Visible | Linkage::Weak, Linkage::Internal) => None,
        (Linkage::Extern, _) if later.defined => Some("is defined here, but was declared `.extern`".to_owned()),
        (_, b) => Some(format!("is {} here", word(b))),
    }
}

/// Formals and directives must be equal.
fn agree(before: &Function, later: &Function, report: &mut Report) {
    let name = &later.name;
    let mut differ = |at: Span, first: Span, what: String| {
        report.push(
            Diagnostic::new(Code::PrototypeMismatch, at, format!("the declarations of `{name}` differ: {what}"))
                .label(first, "declared differently here"),
        );
    };
    for (what, xs, ys) in [("result", &before.rets, &later.rets), ("parameter", &before.params, &later.params)] {
        if xs.len() != ys.len() {
            differ(later.span, before.span, format!("{} here, {} there", count(ys.len(), what), xs.len()));
            continue;
        }
        for (x, y) in xs.iter().zip(ys) {
            if let Some(why) = difference(x, y) {
                differ(y.span, x.span, why);
            }
        }
    }
    let numbers = [
        (".noreturn", u32::from(before.noreturn).into(), u32::from(later.noreturn).into()),
        (".abi_preserve", before.abi_preserve, later.abi_preserve),
        (".abi_preserve_control", before.abi_preserve_control, later.abi_preserve_control),
    ];
    for (what, x, y) in numbers {
        if x != y {
            let say = |v: Option<u32>| match v {
                Some(n) if what != ".noreturn" => format!("`{what} {n}`"),
                Some(1) => format!("`{what}`"),
                _ => format!("no `{what}`"),
            };
            differ(later.span, before.span, format!("{} here, {} there", say(y), say(x)));
        }
    }
    match (before.unified, later.unified) {
        (Some(x), Some(y)) if x != y => differ(later.span, before.span, "a different `.unified` identifier".to_owned()),
        (Some(_), None) | (None, Some(_)) => report.text_only(
            Diagnostic::new(
                Code::PrototypeMismatch,
                later.span,
                format!("only one of the declarations of `{name}` is `.unified`"),
            )
            .label(before.span, "the other declaration"),
        ),
        _ => {}
    }
}

/// The difference between two formals, if there is one.
pub(super) fn difference(x: &Formal, y: &Formal) -> Option<String> {
    let space = |f: &Formal| if f.space == FormalSpace::Reg { ".reg" } else { ".param" };
    if x.space != y.space {
        return Some(format!("`{}` is in {} here, in {} there", y.name, space(y), space(x)));
    }
    if x.ty != y.ty || x.vector != y.vector || x.extent != y.extent {
        return Some(format!("`{}` is `{}` here, `{}` there", y.name, shape(y), shape(x)));
    }
    (x.align != y.align).then(|| format!("`{}` is aligned to {} here, to {} there", y.name, y.align, x.align))
}

/// A formal's type as it is written: `.align 8 .b8 x[12]`.
pub(super) fn shape(f: &Formal) -> String {
    let vector = if f.vector > 1 { format!(".v{} ", f.vector) } else { String::new() };
    let array = match f.extent {
        Extent::Scalar => String::new(),
        Extent::Array(n) => format!("[{n}]"),
        Extent::Unsized => "[]".to_owned(),
    };
    format!("{vector}{}{array}", f.ty)
}
