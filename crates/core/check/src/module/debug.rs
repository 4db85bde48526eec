//! Debugging information that ptxas checks: the origin of inlined code, and the presence of sections (manual, section 11.5).

use super::Module;
use crate::report::{Report, lacking, since};
use margay_isa::Word;
use margay_syntax::{
    Span, Tree,
    diag::{Code, Diagnostic},
    tree::{Directive, Kind, Operand},
};
use rustc_hash::FxHashSet;

/// `inlined_at` names a place that a `.loc` before it names too, and `function_name` a label of a section.
/// (The manual has both from PTX ISA 7.2 on; ptxas from 7.0.) `directives` are those of the module or of one body, and `labels` those of
/// the sections.
pub(super) fn locations(
    (tree, directives): (&Tree, &[Directive]),
    labels: &FxHashSet<&str>,
    module: &Module,
    report: &mut Report,
) {
    // A `.loc` of inlined code has more operands than its place.
    let mut inlining = directives.iter().filter(|d| d.args.len > 3 && tree.is(d.name, ".loc")).peekable();
    if inlining.peek().is_none() {
        return;
    }
    // A module has many more places than functions are inlined at.
    let wanted: FxHashSet<_> = inlining.filter_map(|d| place(tree.operands(d.args).get(6..)?)).collect();
    let (mut seen, mut reported) = (FxHashSet::default(), false);
    for d in directives.iter().filter(|d| tree.is(d.name, ".loc")) {
        let args = tree.operands(d.args);
        if let [_, _, _, _, name, _, at @ ..] = args {
            if let Some(lack) = lacking(module, &since(7, 0, 0)).filter(|_| !reported) {
                report.push(lack.diagnose(module, "the location of inlined code", d.span));
                reported = true;
            }
            if let Some(place) = place(at)
                && !seen.contains(&place)
            {
                let span = at[0].span.to(at[at.len() - 1].span);
                let (file, line, column) = place;
                report.push(
                    Diagnostic::new(
                        Code::DirectiveValue,
                        span,
                        format!("no `.loc {file} {line} {column}` precedes this"),
                    )
                    .here("an inlining location must have been named by a `.loc`"),
                );
            }
            let label = match name.kind {
                Kind::Sum { base, .. } => tree.operands.get(base as usize).map_or(name.span, |o| o.span),
                _ => name.span,
            };
            // Sections (`.debug_str+12`) are resolved by the linker.
            if report.broken.is_empty() && !tree.str(label).starts_with('.') && !labels.contains(tree.str(label)) {
                let message = format!("no section has a label `{}`", tree.str(label));
                report.push(
                    Diagnostic::new(Code::DirectiveValue, label, message).here("not the location of a function's name"),
                );
            }
        }
        seen.extend(place(args).filter(|place| wanted.contains(place)));
    }
}

/// File, line and column.
fn place(args: &[Operand]) -> Option<(u64, u64, u64)> {
    let number = |o: &Operand| match o.kind {
        Kind::Int { value, .. } => Some(value.get()),
        _ => None,
    };
    match args {
        [file, line, column, ..] => Some((number(file)?, number(line)?, number(column)?)),
        _ => None,
    }
}

/// What the sections hold besides plain numbers.
fn contents(tree: &Tree) -> impl Iterator<Item = &Operand> {
    let sections = tree.directives.iter().filter(|d| tree.is(d.name, ".section"));
    sections.flat_map(|d| tree.operands(d.args).iter().skip(1))
}

/// The labels that the sections define, as they stand in the text.
pub(super) fn label_names<'t>(tree: &Tree, text: &'t str) -> FxHashSet<&'t str> {
    labels(tree).filter_map(|s| text.get(s.range())).collect()
}

/// The labels that the sections define.
fn labels(tree: &Tree) -> impl Iterator<Item = Span> {
    let names = contents(tree).filter(|o| matches!(o.kind, Kind::Name)).map(|o| o.span);
    names.filter(|s| !tree.str(*s).starts_with('.'))
}

/// Modifiers that ptxas knows only after their instruction, and treats as names elsewhere. This includes most that have
/// `::` in them.
#[rustfmt::skip]
const FREE: &[&str] = &[
    "full", "oob", "wide", "l", "r", "xorsign", "pack", "pzo", "v8", "proxy", "range", "fractional", "cvt", "arrive", "wait",
    "red", "warp", "launch_dependents", "mask", "to", "fabric", "try_get", "try_put", "try_red", "try_pullred", "try_atom",
    "submit", "spcompress", "base", "level", "grad", "g", "b", "a", "p", "async", "bulk", "tensor", "commit_group", "wait_group",
    "wait_all", "read", "prefetch", "reduce", "cp_mask", "tile", "im2col", "im2col_no_offs", "init", "inval", "expect_tx",
    "complete_tx", "arrive_drop", "test_wait", "try_wait", "parity", "pending_count", "check_layout", "ld_reduce", "st", "cp",
    "replace", "cp_fenceproxy", "try_cancel", "query_cancel", "is_canceled", "get_first_ctaid", "load", "store", "mma", "c", "d",
    "b8x16", "b6x16_p32", "b4x16_p64", "block_scale", "mma_async", "fence", "alloc", "dealloc", "relinquish_alloc_permit", "ld",
    "commit", "shift", "ws", "warpx4", "ashift",
];

/// What sections may hold depends on the version (section 11.5.2). They have names of their own, not those of modifiers; the
/// parser has said so of directives.
pub(super) fn sections(tree: &Tree, module: &Module, report: &mut Report) {
    let first = tree.directives.iter().find(|d| tree.is(d.name, ".section"));
    if let (Some(d), Some(lack)) = (first, lacking(module, &since(2, 0, 0))) {
        report.push(lack.diagnose(module, "`.section`", d.name));
    }
    for o in contents(tree) {
        let (major, minor, what) = match o.kind {
            Kind::Sum { minus: false, .. } => (3, 2, "an offset in `.section`"),
            Kind::Sum { minus: true, .. } => (7, 5, "the difference of labels"),
            Kind::Expr(_) => (7, 5, "a negative number in `.section`"),
            _ => continue,
        };
        if let Some(lack) = lacking(module, &since(major, minor, 0)) {
            report.push(lack.diagnose(module, what, o.span));
        }
    }
    let names =
        tree.directives.iter().filter(|d| tree.is(d.name, ".section")).filter_map(|d| tree.operands(d.args).first());
    for name in names.chain(contents(tree)).filter(|o| matches!(o.kind, Kind::Name)) {
        let text = tree.str(name.span);
        let Some(word) = text.strip_prefix('.') else { continue };
        let scoped = word.contains("::") && !word.starts_with("L1::") && !word.starts_with("L2::");
        if !scoped && !FREE.contains(&word) && Word::from_name(word).is_some() {
            let message = format!("`{text}` is a modifier, not the name of a section");
            report.push(Diagnostic::new(Code::Syntax, name.span, message).here("not a section"));
        }
    }
}

/// A label belongs to one place of all sections.
pub(super) fn twice(tree: &Tree, report: &mut Report) {
    let mut first = rustc_hash::FxHashMap::default();
    for span in labels(tree) {
        if let Some(before) = first.insert(tree.str(span), span) {
            let message = format!("the label `{}` is defined twice in the debugging sections", tree.str(span));
            report.push(Diagnostic::new(Code::Duplicate, span, message).label(before, "first here"));
        }
    }
}

/// Labels in sections came with PTX ISA 7.0.
pub(super) fn labeled(tree: &Tree, module: &Module, report: &mut Report) {
    let Some(lack) = lacking(module, &since(7, 0, 0)) else { return };
    if let Some(span) = labels(tree).next() {
        report.push(lack.diagnose(module, "a label in `.section`", span));
    }
}

/// `.target ..., debug` promises debugging information.
pub(super) fn promised(tree: &Tree, module: &Module, report: &mut Report) {
    let Some(at) = module.debug_at else { return };
    if tree.directives.iter().all(|d| !tree.is(d.name, ".section")) {
        report.push(
            Diagnostic::new(
                Code::TargetOption,
                at,
                "`.target debug` requires debugging information, which the module lacks",
            )
            .help("remove `debug`, or add the sections: `.section .debug_info { ... }`"),
        );
    }
}

/// `@@DWARF` lines were the debugging information of PTX 1.x.
pub(super) fn old(module: &Module, span: Span, report: &mut Report) {
    if module.version_at.is_some() && module.version >= margay_isa::Version::new(2, 0) {
        report.push(
            Diagnostic::new(Code::Removed, span, "`@@DWARF` was replaced in PTX ISA 2.0")
                .help("write `.section .debug_info { ... }`"),
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::rules::testing::codes;

    /// Each as ptxas 13.5 has it.
    #[test]
    fn names_of_sections() {
        let section = |name: &str, data: &str| {
            codes(&format!(".version 9.0 .target sm_90\n.section {name} {{\n{data}\n}}\n.entry k() {{ ret; }}"))
        };
        for good in [".debug_abbrev", ".foo", ".foo+4", ".text", ".x", ".sm", ".bulk", ".kind::f16", "l", "l+4", "l-l"]
        {
            assert!(section(".debug_info", &format!("l: .b32 {good}")).is_empty(), "{good}");
        }
        for bad in [".v4", ".reg", ".L1::no_allocate", ".rn", ".global", ".align", ".f32", ".section", ".add", "l+l"] {
            assert_eq!(section(".debug_info", &format!("l: .b32 {bad}")), ["E0002"], "{bad}");
        }
        assert!(section(".foo", ".b8 1").is_empty());
        assert_eq!(section(".cas", ".b8 1"), ["E0002"]);
        assert_eq!(section(".reg", ".b8 1"), ["E0002"]);
    }
}
