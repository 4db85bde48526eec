//! Modules whose signatures are needed but not their code: for tables of calling conventions and for bindings of kernels.

use crate::{SourceText, check};
use margay_check::{Checked, Options, Verdict};
use margay_ir::{Ir, LowerError, LowerOptions, Source, Virtual, declare, lower_with};
use margay_syntax::Diagnostic;
use std::sync::Arc;

/// Parses and checks a file as relocatable code. A module that only the manual accepts is accepted, too: a header declares functions without
/// defining them, which ptxas rejects. A module that neither accepts gets ptxas's diagnostics.
pub fn check_signatures(text: &SourceText<'_>) -> (Arc<Source>, Option<Checked>, Vec<Diagnostic>) {
    let by = |verdict| check(text, &Options { verdict, relocatable: true, ..Options::default() });
    let found = by(Verdict::Ptxas);
    if found.1.is_some() {
        return found;
    }
    let other = by(Verdict::Text);
    if other.1.is_some() { other } else { found }
}

/// Links modules, and lowers them for their call sites. Signatures do not depend on bodies, so a module that cannot be lowered still has
/// its functions, without call sites.
pub fn signatures(modules: &[(Arc<Source>, Checked)]) -> Result<Ir<Virtual>, LowerError> {
    match lower_with(modules, &LowerOptions { kernel: None, relocatable: true }) {
        Err(e) if e.unsupported => declare(modules),
        other => other,
    }
}
