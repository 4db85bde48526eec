//! `.attribute` of functions and variables (manual, sections 5.4.8 and 11.2.2).

use crate::{Function, Module, report::Report};
use margay_syntax::{Tree, tree::Directive};

/// The attribute of a function.
pub(crate) fn function(_tree: &Tree, _module: &Module, _d: &Directive, _f: &mut Function, _report: &mut Report) {}

/// The attributes of a variable; true if it is managed.
pub(crate) fn variable(
    tree: &Tree,
    _module: &Module,
    d: &Directive,
    _var: &margay_syntax::tree::Var,
    _space: Option<margay_isa::Space>,
    _report: &mut Report,
) -> bool {
    tree.operands(d.args).iter().any(|o| tree.str(o.span) == ".managed")
}
