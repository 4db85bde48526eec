//! Formals: which spaces, types and alignments they take (manual, sections 5.1.6, 7.1 and 11.2).

use crate::module::{Shape, ShapeAt};
use crate::{Function, Module, report::Report};
use margay_isa::{Kind, Space, Type};
use margay_syntax::{
    Span, Tree,
    diag::{Code, Diagnostic},
    tree,
};

/// `.align` of formals and of `.param` variables.
pub(crate) fn alignment(_align: u32, _span: Span, _at: ShapeAt, _space: Space, _report: &mut Report) {}

/// Space and type of a formal.
pub(crate) fn formal_type(_module: &Module, shape: &Shape, var: &tree::Var, at: ShapeAt, report: &mut Report) {
    if at == ShapeAt::Kernel && shape.space != Space::Param {
        report.push(
            Diagnostic::new(
                Code::VariableSpace,
                var.space,
                format!("parameters of a kernel live in .param, not in {}", shape.space),
            )
            .fix(var.space, ".param", "write `.param`"),
        );
    } else if !matches!(shape.space, Space::Param | Space::Reg) {
        report.push(Diagnostic::new(
            Code::VariableSpace,
            var.space,
            format!("parameters of a function live in .reg or .param, not in {}", shape.space),
        ));
    } else if shape.ty == Type::Pred && shape.space != Space::Reg {
        report.push(Diagnostic::new(Code::VariableType, shape.ty_at, "a predicate lives in a register only"));
    } else if !shape.ty.is_register() && shape.ty.kind() != Kind::Opaque {
        report.push(Diagnostic::new(
            Code::VariableType,
            shape.ty_at,
            format!("`{}` is a type of instructions, not of variables", shape.ty),
        ));
    }
}

/// Everything about a header that looks at more than one formal.
pub(crate) fn header(_tree: &Tree, _module: &Module, _func: &tree::Func, _f: &Function, _report: &mut Report) {}
