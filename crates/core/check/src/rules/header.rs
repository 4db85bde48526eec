//! `.noreturn`, `.abi_preserve`, `.abi_preserve_control` (manual, sections 11.4.6, 11.4.8 and 11.4.9).

use crate::consts::{self, Const};
use crate::report::{Report, lacking, since};
use crate::{Function, Module};
use margay_syntax::{
    Tree,
    diag::{Code, Diagnostic},
    tree::{self, Directive},
};

/// General registers that a function may preserve: ptxas reserves the rest of the 256 for the return address and itself.
const PRESERVED: u32 = 239;
/// Control registers (predicates and barriers) that a function may preserve.
const PRESERVED_CONTROL: u32 = 11;
/// Larger numbers are not registers; ptxas reports this for declarations too.
const REGISTERS: u32 = 255;

/// A directive after the parameters of a function.
pub(crate) fn directive(
    tree: &Tree,
    module: &Module,
    func: &tree::Func,
    d: &Directive,
    f: &mut Function,
    report: &mut Report,
) {
    let name = tree.str(d.name);
    if name == ".noreturn" {
        return noreturn(module, d, f, report);
    }
    let control = name == ".abi_preserve_control";
    if let Some(lack) = lacking(module, &since(9, 0, 80)) {
        report.push(lack.diagnose(module, &format!("`{name}`"), d.span));
    }
    let before = if control { f.abi_preserve_control } else { f.abi_preserve };
    if before.is_some() {
        let first =
            tree.directives(func.directives).iter().find(|x| tree.str(x.name) == name).map_or(d.name, |x| x.name);
        report.push(
            Diagnostic::new(Code::AbiPreserve, d.name, format!("`{name}` twice")).label(first, "the first is here"),
        );
        return;
    }
    if !control && f.abi_preserve_control.is_some() {
        let first = tree.directives(func.directives).first().map_or(d.name, |x| x.name);
        report.text_only(
            Diagnostic::new(Code::HeaderOrder, d.name, "`.abi_preserve` must come before `.abi_preserve_control`")
                .label(first, "must come before it"),
        );
    }
    let Some(arg) = tree.operands(d.args).first() else { return };
    let Ok(Const::Int { value, .. }) = consts::eval(tree, arg) else { return };
    let most = match control {
        true => PRESERVED_CONTROL,
        false if func.body.is_some() => PRESERVED,
        false => REGISTERS,
    };
    match u32::try_from(value).ok().filter(|v| *v <= most) {
        Some(v) => {
            *(if control { &mut f.abi_preserve_control } else { &mut f.abi_preserve }) = Some(v);
        }
        None => report.push(Diagnostic::new(
            Code::AbiPreserve,
            arg.span,
            format!("`{name}` takes 0 to {most}, found {}", tree.str(arg.span)),
        )),
    }
}

fn noreturn(module: &Module, d: &Directive, f: &mut Function, report: &mut Report) {
    f.noreturn = true;
    if let Some(lack) = lacking(module, &since(6, 4, 30)) {
        report.push(lack.diagnose(module, "`.noreturn`", d.span));
    }
    if let Some(ret) = f.rets.first() {
        report.push(
            Diagnostic::new(Code::Noreturn, d.span, format!("`{}` returns a value and is `.noreturn`", f.name))
                .label(ret.span, "this is returned"),
        );
    }
}
