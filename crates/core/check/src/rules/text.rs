//! Syntax that the manual allows but ptxas rejects: such parser errors are warnings under `--text`.

use margay_syntax::{
    Diagnostic, Tree,
    diag::{Code, Severity},
};

/// Turns errors for syntax that the manual allows into warnings. Returns the number of remaining errors.
pub(crate) fn parser(tree: &Tree, diagnostics: &mut [Diagnostic]) -> usize {
    for d in &mut *diagnostics {
        // Section 7.1 itself writes `.param .b8 .align 8 py[12];`.
        if d.code == Code::WordOrder && tree.str(d.span()).starts_with(".align") {
            d.severity = Severity::Warning;
            d.notes.push("the manual allows this, but ptxas rejects it".to_owned());
        }
    }
    diagnostics.iter().filter(|d| d.severity == Severity::Error).count()
}
