//! `.alias` (manual, section 11.2.3).

use crate::module::add_alias;
use crate::{Module, Symbol, report::Report};
use margay_syntax::{
    Tree,
    diag::{Code, Diagnostic},
    tree::Directive,
};

/// `.alias a, b;`
pub(crate) fn declare(tree: &Tree, module: &mut Module, d: &Directive, report: &mut Report) {
    let [name, of] = tree.operands(d.args) else { return };
    match module.symbol(tree.str(of.span)) {
        Some(Symbol::Func(f)) => add_alias(module, tree.str(name.span), f, name.span),
        _ => report.push(Diagnostic::new(
            Code::UnknownFunction,
            of.span,
            format!("unknown function `{}`", tree.str(of.span)),
        )),
    }
}
