//! `.alias` (manual, section 11.2.3): a declared function that is another name of a defined one.

use super::prototypes::difference;
use crate::module::add_alias;
use crate::report::{Report, lacking, since};
use crate::{FuncKind, Function, Linkage, Module, Symbol};
use margay_syntax::{
    Span, Tree,
    diag::{Code, Diagnostic},
    tree::Directive,
};

/// `.alias a, b;`
pub(crate) fn declare(tree: &Tree, module: &mut Module, d: &Directive, report: &mut Report) {
    let [name, of] = tree.operands(d.args) else { return };
    if let Some(lack) = lacking(module, &since(6, 3, 30)) {
        return report.push(lack.diagnose(module, "`.alias`", d.span));
    }
    let (name, of) = (name.span, of.span);
    let Some((_, alias)) = function(tree, module, name, false, report) else { return };
    // An alias of an alias is one of the same function.
    let Some((id, aliasee)) = function(tree, module, of, true, report) else { return };
    let (text, target) = (tree.str(name), tree.str(of));
    let refuse = |at: Span, why: String| Diagnostic::new(Code::Alias, at, why);
    if text == target {
        return report.push(refuse(of, format!("`{text}` cannot be an alias of itself")));
    }
    if alias.defined {
        return report.push(
            refuse(name, format!("`{text}` has a body, so it cannot be an alias")).label(alias.span, "defined here"),
        );
    }
    for (at, f) in [(of, aliasee), (name, alias)] {
        if f.kind == FuncKind::Kernel {
            let d = refuse(at, format!("`{}` is a kernel; only functions can have aliases", f.name));
            return report.push(d.label(f.span, "declared here"));
        }
    }
    if aliasee.linkage == Linkage::Weak {
        let d = refuse(of, format!("`{target}` is `.weak`, so another definition may replace it"));
        return report.push(d.label(aliasee.span, "declared here"));
    }
    if aliasee.linkage == Linkage::Extern && !aliasee.defined {
        let d = refuse(of, format!("`{target}` is `.extern`: its definition is in another module"));
        return report.push(d.label(aliasee.span, "declared here"));
    }
    if let Some(why) = mismatch(alias, aliasee) {
        return report.push(
            refuse(name, format!("`{text}` and `{target}` have different prototypes: {why}"))
                .label(alias.span, "the alias")
                .label(aliasee.span, "the aliased function"),
        );
    }
    let first = alias.first;
    add_alias(module, text, id, d.span, first);
}

fn function<'m>(
    tree: &Tree,
    module: &'m Module,
    at: Span,
    aliases: bool,
    report: &mut Report,
) -> Option<(crate::FuncId, &'m Function)> {
    let name = tree.str(at);
    match module.symbol(name) {
        Some(Symbol::Func(f)) => Some((f, module.func(f))),
        Some(Symbol::Alias(a)) if aliases => {
            let id = module.aliases[a as usize].of;
            Some((id, module.func(id)))
        }
        Some(Symbol::Alias(a)) => {
            let alias = &module.aliases[a as usize];
            let d = Diagnostic::new(Code::Alias, at, format!("`{name}` is already an alias"));
            report.push(d.label(alias.span, "declared here"));
            None
        }
        Some(Symbol::Global(id)) => {
            let d =
                Diagnostic::new(Code::Alias, at, format!("`{name}` is a variable; only functions can have aliases"));
            report.push(d.label(module.global(id).span, "declared here"));
            None
        }
        None => {
            let d = Diagnostic::new(Code::UnknownFunction, at, format!("unknown function `{name}`"));
            report.push(d.note("declare both functions before the alias"));
            None
        }
    }
}

fn mismatch(alias: &Function, aliasee: &Function) -> Option<String> {
    if alias.rets.len() != aliasee.rets.len() || alias.params.len() != aliasee.params.len() {
        return Some("the numbers of parameters differ".to_owned());
    }
    let formals = alias.rets.iter().chain(&alias.params).zip(aliasee.rets.iter().chain(&aliasee.params));
    if let Some(why) = formals.clone().find_map(|(x, y)| difference(y, x)) {
        return Some(why);
    }
    if alias.noreturn != aliasee.noreturn {
        return Some("one is `.noreturn`".to_owned());
    }
    (alias.abi_preserve != aliasee.abi_preserve || alias.abi_preserve_control != aliasee.abi_preserve_control)
        .then(|| "the `.abi_preserve` values differ".to_owned())
}

#[cfg(test)]
mod tests {
    use crate::rules::testing::codes;

    /// Each as ptxas 13.5 has it.
    #[test]
    fn aliases_of_aliases() {
        let module = |aliases: &str| {
            codes(&format!(".version 9.0 .target sm_90\n.func g();\n.func h();\n.func f() {{ ret; }}\n{aliases}"))
        };
        assert!(module(".alias g, f;\n.alias h, g;").is_empty());
        assert_eq!(module(".alias g, f;\n.alias g, f;").len(), 1);
        assert_eq!(module(".alias f, g;").len(), 1);
    }
}
