//! Lints that need the complete body.

use crate::body::Walker;
use margay_syntax::diag::{Code, Diagnostic};

/// After the last statement.
pub(crate) fn finish(w: &mut Walker<'_, '_>) {
    if w.report.errors == 0 && !w.report.silent {
        never_written(w);
        super::barrier::finish(w);
        super::pair::note(w);
    }
}

/// Registers that are read and never written.
fn never_written(w: &mut Walker<'_, '_>) {
    for (reg, span) in std::mem::take(&mut w.reads) {
        if !w.report.may_warn() {
            return;
        }
        let word = w.written.get(reg.0 as usize / 64).copied().unwrap_or(0);
        if word >> (reg.0 % 64) & 1 == 0 {
            let name = w.tree.str(span);
            w.report.push(
                Diagnostic::new(
                    Code::NeverWritten,
                    span,
                    format!("`{name}` is read, but nothing in `{}` writes it", w.func.name),
                )
                .note("its value is undefined; ptxas does not warn"),
            );
        }
    }
}
