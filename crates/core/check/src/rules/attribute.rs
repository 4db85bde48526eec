//! `.attribute` of functions and variables (manual, sections 5.4.8 and 11.2.2).

use crate::consts;
use crate::report::{Report, lacking, since};
use crate::{Function, Module};
use margay_isa::Space;
use margay_syntax::{
    Span, Tree,
    diag::{Code, Diagnostic},
    tree::{self, Directive, Kind, Operand},
};

/// The two halves of `.unified(a, b)`.
fn unified(tree: &Tree, o: &Operand) -> Option<(u64, u64)> {
    let Kind::Apply { argument, .. } = o.kind else { return None };
    let Kind::Paren(list) = tree.operands.get(argument as usize)?.kind else { return None };
    let [a, b] = tree.operands(list) else { return None };
    let value = |o| consts::eval(tree, o).ok().and_then(|c| c.as_int()).map(|v| v as u64);
    Some((value(a)?, value(b)?))
}

/// The first `.unified(a, b)` of an attribute.
pub(crate) fn first_unified(tree: &Tree, d: &Directive) -> Option<Span> {
    tree.operands(d.args).iter().find(|o| tree.str(o.span).starts_with(".unified")).map(|o| o.span)
}

/// The attributes of a function: `.unified` since 8.0 on sm_90.
pub(crate) fn function(tree: &Tree, module: &Module, d: &Directive, f: &mut Function, report: &mut Report) {
    for o in tree.operands(d.args) {
        match unified(tree, o) {
            Some(ids) => {
                f.unified = Some(ids);
                if let Some(lack) = lacking(module, &since(8, 0, 90)) {
                    report.push(lack.diagnose(module, "`.unified`", o.span));
                }
            }
            None => report.push(
                Diagnostic::new(Code::Attribute, o.span, format!("`{}` is not a function attribute", tree.str(o.span)))
                    .help("functions accept `.unified(A, B)`"),
            ),
        }
    }
}

/// The attributes of a variable; true if it is managed.
pub(crate) fn variable(
    tree: &Tree,
    module: &Module,
    d: &Directive,
    var: &tree::Var,
    space: Option<Space>,
    report: &mut Report,
) -> bool {
    let mut managed = false;
    for o in tree.operands(d.args) {
        let name = tree.str(o.span);
        let unified = unified(tree, o).is_some();
        managed |= !unified;
        let needs = if unified { since(8, 0, 90) } else { since(4, 0, 30) };
        if let Some(lack) = lacking(module, &needs) {
            report.push(lack.diagnose(module, if unified { "`.unified`" } else { "`.managed`" }, o.span));
        }
        if space.is_some_and(|s| s != Space::Global) {
            let d = Diagnostic::new(Code::Attribute, o.span, format!("`{name}` is only for variables in .global"))
                .label(var.space, "not in this space");
            // ptxas does not look at the attribute of names with a count.
            match !unified && tree.declarators(var).iter().all(|d| d.count.is_some()) {
                true => report.text_only(d),
                false => report.push(d),
            }
        }
    }
    managed
}

#[cfg(test)]
mod tests {
    use crate::Options;
    use crate::rules::testing::codes;
    use margay_syntax::Severity;

    /// Each as ptxas 13.5 has it.
    #[test]
    fn variables() {
        let module = |outside: &str, inside: &str| {
            format!(".version 9.0 .target sm_90 .address_size 64\n{outside}\n.entry k() {{ {inside} ret; }}")
        };
        assert!(codes(&module(".global .attribute(.managed) .u32 v = 5;", "")).is_empty());
        assert_eq!(codes(&module(".shared .attribute(.managed) .u32 v;", "")), ["E0129"]);
        assert_eq!(codes(&module("", ".local .attribute(.managed) .u32 v;")), ["E0129"]);
        assert_eq!(codes(&module("", ".attribute(.unified(1, 2)) .reg .b32 %r<4>;")), ["E0129"]);
        for counted in [".attribute(.managed) .reg .b32 %r<4>;", ".shared .attribute(.managed) .b32 s<4>;"] {
            let (_, found) = crate::check(margay_syntax::parse(&module("", counted)), &Options::default());
            assert_eq!(found.first().map(|d| d.severity), Some(Severity::Warning));
        }
        let unified = module(".global .attribute(.unified(1, 2)) .u32 v;", "");
        assert_eq!(codes(&unified), ["E0129"]);
        let inside = module("", ".global .attribute(.unified(1, 2)) .u32 v;");
        assert_eq!(codes(&inside), ["E0129"]);
        let relocatable = Options { relocatable: true, ..Options::default() };
        assert!(crate::check(margay_syntax::parse(&unified), &relocatable).1.is_empty());
    }
}
