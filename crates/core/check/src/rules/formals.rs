//! Parameters of kernels, functions and prototypes, and `.param` variables of bodies: their allowed state spaces, types and
//! alignments (manual, sections 5.1.6, 7.1, 7.1.1 and 11.2).

use super::stack_in_text;
use crate::module::{Shape, ShapeAt};
use crate::report::{Report, lacking, since};
use crate::{Extent, Formal, FormalSpace, FuncKind, Function, Linkage, Module};
use margay_isa::{Kind, Space, Type};
use margay_syntax::{
    Span, Tree,
    diag::{Code, Diagnostic},
    tree,
};

/// Largest alignment of a parameter that ptxas takes, and the largest that section 7.1 names.
const LARGEST: u32 = 128;
const LARGEST_IN_TEXT: u32 = 16;

/// `.align` of formals and of `.param` variables. Kernel parameters are laid out by the host and take any.
pub(crate) fn alignment(tree: &Tree, align: u32, span: Span, at: ShapeAt, space: Space, report: &mut Report) {
    if space != Space::Param || matches!(at, ShapeAt::Kernel | ShapeAt::Module) {
        return;
    }
    if align > LARGEST {
        let d = Diagnostic::new(
            Code::FormalAlignment,
            span,
            format!("a parameter can be aligned to at most {LARGEST} bytes, found {align}"),
        )
        .note("alignments of parameters are 1, 2, 4, 8, 16, 32, 64 and 128");
        if is_declared_only(tree, span) { report.text_only(d) } else { report.push(d) }
    } else if align > LARGEST_IN_TEXT {
        report.text_only(
            Diagnostic::new(Code::FormalAlignment, span, format!("a parameter aligned to {align} bytes"))
                .note("section 7.1: parameters are aligned to 1, 2, 4, 8 or 16 bytes"),
        );
    }
}

/// Whether a place lies in the header of a function without body or in a prototype: ptxas looks at much of a parameter only where it
/// lays it out.
fn is_declared_only(tree: &Tree, at: Span) -> bool {
    let holds = |f: &tree::Func| f.header.start <= at.start && at.end <= f.header.end;
    let kinds = |f: &tree::Func| matches!(f.kind, tree::FuncKind::Func | tree::FuncKind::Prototype);
    tree.funcs.iter().any(|f| f.body.is_none() && kinds(f) && holds(f))
}

/// Whether a place lies in a prototype (`.callprototype`).
pub(super) fn in_prototype(tree: &Tree, at: Span) -> bool {
    let holds = |f: &tree::Func| f.header.start <= at.start && at.end <= f.header.end;
    tree.funcs.iter().any(|f| f.kind == tree::FuncKind::Prototype && holds(f))
}

/// Space and type of the parameters that a declaration makes.
pub(crate) fn parameter(
    tree: &Tree,
    module: &Module,
    shape: &Shape,
    var: &tree::Var,
    at: ShapeAt,
    report: &mut Report,
) {
    let formal = at.is_formal();
    if at == ShapeAt::Module || !in_space(module, shape, var, at, report) {
        // `.param` at module level is faulted as such.
        return;
    }
    if let Some(attribute) = var.attribute.filter(|_| formal).and_then(|a| tree.directives.get(a as usize)) {
        let message = format!("`{}` is only for module variables, not for parameters", tree.str(attribute.span));
        let d = Diagnostic::new(Code::Attribute, attribute.span, message).here("not on a parameter");
        let unified = super::attribute::first_unified(tree, attribute);
        if !is_declared_only(tree, var.span) {
            report.push(d);
        } else if let (Some(at), Some(lack)) = (unified, lacking(module, &since(8, 0, 90))) {
            report.push(lack.diagnose(module, "`.unified`", at));
        } else {
            report.text_only(d);
        }
    }
    of_type(tree, module, shape, var, at, report);
}

/// Whether a parameter is in a space that parameters of its function may be in.
fn in_space(module: &Module, shape: &Shape, var: &tree::Var, at: ShapeAt, report: &mut Report) -> bool {
    let space = shape.space;
    if at == ShapeAt::Kernel && space != Space::Param {
        let message = format!("kernel parameters must be in .param, not in {space}");
        let d = Diagnostic::new(Code::FormalSpace, var.space, message);
        report.push(d.fix(var.space, ".param", "write `.param`"));
        return false;
    }
    if at.is_formal() && !matches!(space, Space::Param | Space::Reg) {
        let message = format!("function parameters must be in .reg or .param, not in {space}");
        report.push(Diagnostic::new(Code::FormalSpace, var.space, message));
        return false;
    }
    // `.param` in device functions came with the stack (section 5.1.6).
    if matches!(at, ShapeAt::Input | ShapeAt::Return)
        && space == Space::Param
        && let Some(lack) = lacking(module, &since(2, 0, 20))
    {
        let d = lack.diagnose(module, "a `.param` parameter of a function", var.space);
        report.push(Diagnostic { code: Code::FormalSpace, ..d }.help("use `.reg` parameters"));
        return false;
    }
    true
}

/// Whether a parameter, or a variable in `.param`, may have its type.
fn of_type(tree: &Tree, module: &Module, shape: &Shape, var: &tree::Var, at: ShapeAt, report: &mut Report) {
    let Shape { space, ty, ty_at, vector, .. } = *shape;
    let formal = at.is_formal();
    let scalar = tree.declarators(var).iter().any(|d| d.dims.is_empty());
    let what = if formal { "a parameter" } else { "a `.param` variable" };
    let refuse = |why: String| Diagnostic::new(Code::FormalType, ty_at, why).label(var.space, format!("in {space}"));
    let declared = || is_declared_only(tree, var.span);
    if ty == Type::Pred {
        if space == Space::Param {
            let d = refuse("a predicate can only be in a register".to_owned());
            let d = d.help("pass it as `.b32`: `selp.b32 r, 1, 0, p`");
            if declared() && scalar { report.text_only(d) } else { report.push(d) }
        }
    } else if ty.kind() == Kind::Opaque {
        if at == ShapeAt::Kernel
            && let Some(lack) = lacking(module, &since(1, 5, 0))
        {
            report.push(lack.diagnose(module, &format!("`{ty}`"), ty_at));
        } else if at != ShapeAt::Kernel {
            let d = refuse(format!("`{ty}` is only for module variables and kernel parameters"));
            let d = d.help("pass the handle as `.b64`");
            if declared() { report.text_only(d) } else { report.push(d) }
        } else if ty == Type::SamplerRef && scalar && !module.texmode_independent {
            report.push(crate::module::no_samplers(ty_at));
        }
    } else if !ty.is_register() {
        let d = refuse(format!("`{ty}` is an instruction type, not a variable type"))
            .help(format!("declare `.b{}`", ty.bits().max(8).next_power_of_two()));
        // ptxas looks at the type where a definition makes a variable of it. These three it does not even read.
        let read = !matches!(ty, Type::Bf16 | Type::Bf16x2 | Type::Tf32);
        let unused = declared() || (space == Space::Param && !scalar && at != ShapeAt::Kernel);
        if read && unused { report.text_only(d) } else { report.push(d) }
    } else if space == Space::Param && vector > 1 && scalar {
        let bytes = shape.element();
        if !declared() {
            let d = refuse(format!("{what} cannot be a vector"));
            report.ptxas_only(d.help(format!("declare an array: `.param .align {bytes} .b8 x[{bytes}]`")));
        }
    } else if space == Space::Param && ty == Type::F16x2 && scalar {
        let d = refuse(format!("{what} cannot be `.f16x2`")).help("declare `.b32`");
        match at {
            ShapeAt::Kernel => report.push(d),
            _ if declared() => {}
            _ => report.ptxas_only(d),
        }
    } else if let Some(lack) = crate::module::wide_type(module, shape) {
        let d = lack.diagnose(module, &format!("`{ty}`"), ty_at);
        // ptxas does not ask it of arrays of 128 bits.
        if scalar || ty != Type::B128 { report.push(d) } else { report.text_only(d) }
    }
}

/// One formal: its name and its extent.
pub(crate) fn formal(
    tree: &Tree,
    module: &Module,
    f: &Formal,
    at: ShapeAt,
    last: bool,
    prototype: bool,
    report: &mut Report,
) {
    let name = &f.name;
    if &**name == "_" && !prototype && at != ShapeAt::Kernel {
        report.push(
            Diagnostic::new(Code::FormalName, f.span, "a parameter requires a name")
                .note("`_` is only for prototypes (`.callprototype`) and discarded results"),
        );
    }
    match f.extent {
        Extent::Array(_) if f.space == FormalSpace::Reg => {
            let d = Diagnostic::new(Code::FormalType, f.span, format!("registers cannot form arrays: `{name}`"))
                .help("declare the array in .param");
            let text_only = f.ty != Type::Pred && is_declared_only(tree, f.span);
            if text_only { report.text_only(d) } else { report.push(d) }
        }
        Extent::Unsized => unsized_formal(module, f, at, last, report),
        Extent::Array(_) | Extent::Scalar => {}
    }
}

/// `.param .b8 a[]` (section 11.2.2): the last input of a device function.
fn unsized_formal(module: &Module, f: &Formal, at: ShapeAt, last: bool, report: &mut Report) {
    let refuse = |why: &str| Diagnostic::new(Code::UnsizedFormal, f.span, format!("`{}` has no size: {why}", f.name));
    match at {
        ShapeAt::Kernel => report.push(refuse("the host lays out the parameters of a kernel").help("give the size")),
        ShapeAt::Return => report.push(refuse("the size of a return value must be known").help("give the size")),
        _ if f.space == FormalSpace::Reg => report.push(refuse("only a `.param` array may be unsized")),
        _ if !last => report.push(refuse("only the last parameter may be unsized").help("move it to the end")),
        _ => {
            if let Some(lack) = lacking(module, &since(6, 0, 30)) {
                report.push(lack.diagnose(module, "an unsized array parameter", f.span));
            } else if f.ty != Type::B8 {
                report.text_only(
                    refuse(&format!("section 11.2.2 allows it for `.b8`, not for `{}`", f.ty)).help("declare it `.b8`"),
                );
            }
        }
    }
}

/// Everything about a header that looks at more than one formal.
pub(crate) fn header(module: &Module, func: &tree::Func, f: &Function, report: &mut Report) {
    if f.kind == FuncKind::Kernel
        && func.params.is_some_and(|p| !p.is_empty())
        && let Some(lack) = lacking(module, &since(1, 4, 0))
    {
        report.push(lack.diagnose(module, "the parameter list of a kernel", func.name));
    }
    if f.kind == FuncKind::Kernel
        && func.body.is_none()
        && let Some(lack) = lacking(module, &since(3, 0, 0))
    {
        report.push(lack.diagnose(module, "the declaration of a kernel", func.name));
    }
    if f.linkage == Linkage::Weak
        && let Some(lack) = lacking(module, &since(3, 1, 0))
    {
        report.push(lack.diagnose(module, "`.weak`", func.name));
    }
    returns(module, f, report);
}

/// One result at most, with the stack (section 7.1.1).
fn returns(module: &Module, f: &Function, report: &mut Report) {
    let [first, second, ..] = &f.rets[..] else { return };
    if let Some(p) = f.rets.iter().find(|r| r.space == FormalSpace::Param) {
        return report.push(
            Diagnostic::new(
                Code::ReturnCount,
                p.span,
                format!("`{}` returns {} values, which must all be in .reg", f.name, f.rets.len()),
            )
            .here("in .param")
            .help("return one `.param` array that contains all of them"),
        );
    }
    // Sub-word registers show that the module is meant for compilation without the ABI, where several results are fine.
    let narrow = |p: &Formal| p.space == FormalSpace::Reg && p.ty.bits() * u32::from(p.vector) < 32;
    if stack_in_text(module) && !f.rets.iter().chain(&f.params).any(narrow) {
        report.text_only(
            Diagnostic::new(Code::ReturnCount, second.span, format!("`{}` returns {} values", f.name, f.rets.len()))
                .label(first.span, "the first")
                .note("section 11.2.2: since PTX ISA 2.0 on sm_20, a function returns at most one value")
                .note("ptxas disables the stack-based ABI for the whole module: no recursion, no indirect calls"),
        );
    }
}

/// A `.param` variable of a body: since 2.0, where functions take them.
pub(crate) fn local(module: &Module, f: &Function, at: Span, report: &mut Report) {
    if let Some(lack) = lacking(module, &since(2, 0, 0)) {
        let d = lack.diagnose(module, "a `.param` variable in a body", at);
        let help =
            if f.kind == FuncKind::Kernel { "declare it in the parameter list of the kernel" } else { "use registers" };
        report.push(Diagnostic { code: Code::ParameterPlace, ..d }.help(help));
    }
}
