//! `.noreturn`, `.abi_preserve`, `.abi_preserve_control` (manual, sections 11.4.6, 11.4.8 and 11.4.9).

use crate::{Function, Module, report::Report};
use margay_syntax::{
    Tree,
    tree::{self, Directive},
};

/// A directive behind the formals of a function.
pub(crate) fn directive(
    tree: &Tree,
    _module: &Module,
    _func: &tree::Func,
    d: &Directive,
    f: &mut Function,
    _report: &mut Report,
) {
    match tree.str(d.name) {
        ".noreturn" => f.noreturn = true,
        _ => {
            let value = tree.operands(d.args).first().and_then(|o| crate::consts::eval(tree, o).ok()?.as_int());
            let value = value.and_then(|v| u32::try_from(v).ok());
            if tree.str(d.name) == ".abi_preserve" { f.abi_preserve = value } else { f.abi_preserve_control = value }
        }
    }
}
