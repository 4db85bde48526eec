//! A function is declared again: prototypes and definition must agree (manual, section 11.2.2).

use crate::{Function, report::Report};
use margay_syntax::{
    Tree,
    diag::{Code, Diagnostic},
};

/// The second and later declarations of a name.
pub(crate) fn again(_tree: &Tree, before: &Function, later: &Function, report: &mut Report) {
    if before.defined {
        report.push(
            Diagnostic::new(Code::Duplicate, later.span, format!("`{}` is defined already", later.name))
                .label(before.span, "defined here"),
        );
    }
}
