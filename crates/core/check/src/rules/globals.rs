//! Variables at module scope: state spaces, linkage, initial values, redeclaration
//! (manual, sections 5.1, 5.4.4, 7.1.1 and 11.6).

use crate::module::Shape;
use crate::report::{Report, lacking, since};
use crate::{Abi, Extent, Global, Linkage, Module};
use margay_isa::{Kind, Space, Type, Version};
use margay_syntax::{
    Span, Tree,
    diag::{Code, Diagnostic},
    tree::Declarator,
};

/// Whether a variable of this state space is allowed at module scope.
pub(crate) fn space(module: &mut Module, at: Span, space: Space, linkage: Linkage, report: &mut Report) {
    match space {
        Space::Reg | Space::Local if module.version < Version::new(3, 0) && module.version_at.is_some() => {
            module.abi = Abi::Off;
        }
        Space::Reg | Space::Local => {
            let d = Diagnostic::new(Code::VariableSpace, at, format!("`{space}` variables are declared in functions"))
                .note("before PTX ISA 3.0 they were allowed at module scope (without the stack-based ABI)");
            if super::stack_in_text(module) { report.push(d) } else { report.ptxas_only(d) }
        }
        Space::Param => report.push(
            Diagnostic::new(
                Code::VariableSpace,
                at,
                "`.param` variables are parameters or local variables of a function",
            )
            .help("declare it in the body of the calling function"),
        ),
        _ => {}
    }
    let needs = match linkage {
        Linkage::Weak => Some((since(3, 1, 0), "`.weak`")),
        Linkage::Common => Some((since(5, 0, 20), "`.common`")),
        _ => None,
    };
    if let Some((since, what)) = needs
        && let Some(lack) = lacking(module, &since)
    {
        report.push(lack.diagnose(module, what, at));
    }
    if linkage == Linkage::Common && space != Space::Global {
        report.push(Diagnostic::new(
            Code::VariableLinkage,
            at,
            format!("`.common` is only for variables in .global, not in {space}"),
        ));
    }
}

/// Whether a variable may have an initial value.
pub(crate) fn may_initialize(
    tree: &Tree,
    shape: &Shape,
    name: Span,
    at: Span,
    linkage: Linkage,
    report: &mut Report,
) -> bool {
    let text = tree.str(name);
    if !matches!(shape.space, Space::Global | Space::Const) {
        report.push(
            Diagnostic::new(
                Code::InitializerNotAllowed,
                at,
                format!("`{text}` is in {}, which cannot be initialized", shape.space),
            )
            .note("only variables in .global and .const can be initialized"),
        );
        return false;
    }
    if linkage == Linkage::Extern {
        report.push(Diagnostic::new(
            Code::InitializerNotAllowed,
            at,
            format!("`{text}` is external: initialize it where it is defined"),
        ));
        return false;
    }
    true
}

/// Whether the extent fits the space.
pub(crate) fn extent(
    tree: &Tree,
    shape: &Shape,
    extent: Extent,
    d: &Declarator,
    linkage: Linkage,
    report: &mut Report,
) {
    let name = tree.str(d.name);
    if shape.space == Space::Reg && extent != Extent::Scalar {
        report.push(
            Diagnostic::new(Code::ArrayExtent, d.span, format!("registers cannot form arrays: `{name}`"))
                .help("declare several registers with `%r<8>`, or an array in .local or .shared"),
        );
    } else if extent == Extent::Unsized && linkage != Linkage::Extern {
        report.push(
            Diagnostic::new(Code::ArrayExtent, d.span, format!("`{name}` has no size"))
                .help("only `.extern` arrays and arrays with an initializer may be unsized"),
        );
    }
}

/// Whether the type of a module variable fits its space and linkage. ptxas rejects arrays and vectors in `.tex` (the manual only says that
/// variables there are `.u32` or `.u64`, section 5.1.8). It also rejects opaque variables as `.common`, but not arrays of them.
pub(crate) fn ty(tree: &Tree, shape: &Shape, extent: Extent, d: &Declarator, linkage: Linkage, report: &mut Report) {
    let (name, scalar) = (tree.str(d.name), extent == Extent::Scalar);
    let plain = matches!(shape.ty, Type::U32 | Type::U64) && shape.vector == 1 && scalar;
    if shape.space == Space::Tex && !plain {
        report.push(
            Diagnostic::new(Code::VariableType, d.name, format!("`{name}` is in .tex and must be `.u32` or `.u64`"))
                .label(shape.ty_at, "not an array, a vector or another type"),
        );
    } else if linkage == Linkage::Common && shape.ty.kind() == Kind::Opaque && scalar {
        let d = Diagnostic::new(Code::VariableLinkage, shape.ty_at, format!("a `{}` cannot be `.common`", shape.ty));
        report.push(d.help("declare it `.weak`, or `.visible` here and `.extern` elsewhere"));
    }
}

/// A second declaration of a variable. True if it takes the place of the first.
pub(crate) fn redeclare(before: &Global, later: &Global, report: &mut Report) -> bool {
    let both =
        |code, message: String| Diagnostic::new(code, later.span, message).label(before.span, "declared here first");
    let name = &later.name;
    let external = (before.linkage == Linkage::Extern, later.linkage == Linkage::Extern);
    if external == (false, false) {
        report.push(both(Code::Duplicate, format!("`{name}` is declared twice")));
        return false;
    }
    let extents = before.extent == later.extent
        || matches!(
            (before.extent, later.extent),
            (Extent::Unsized, Extent::Array(_)) | (Extent::Array(_), Extent::Unsized)
        );
    if before.ty != later.ty || before.vector != later.vector || !extents {
        let say = |g: &Global| {
            let vector = if g.vector > 1 { format!(".v{} ", g.vector) } else { String::new() };
            let array = match g.extent {
                Extent::Scalar => String::new(),
                Extent::Array(n) => format!("[{n}]"),
                Extent::Unsized => "[]".to_owned(),
            };
            format!("`{vector}{}{array}`", g.ty)
        };
        let d = both(Code::Redeclared, format!("`{name}` is {} here and {} there", say(later), say(before)));
        report.push(d);
        return false;
    }
    if external == (true, false) && later.linkage == Linkage::Internal {
        let d =
            both(Code::Redeclared, format!("`{name}` was declared `.extern`, but is not visible outside this module"));
        report.push(d.help("define it as `.visible`"));
        return false;
    }
    external.0
}
