//! Which functions a call site may enter (manual, sections 9.7.13.5, 11.2.3 and 11.2.4).

use crate::{CallSite, Callee, Func, FuncId};
use margay_check::FuncKind;
use std::fmt;

/// Why a call site may not enter a function whose address it was given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// It is a kernel.
    Kernel,
    /// `.calltargets` does not list it.
    NotListed,
    /// Its parameters or returns have other sizes, alignments or kinds than those of the call site.
    Signature,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::Kernel => "which is a kernel",
            Refusal::NotListed => "which is not in the list of targets",
            Refusal::Signature => "whose parameters are not those of the prototype",
        })
    }
}

/// Whether a call site may enter a function.
pub fn admits(site: &CallSite, id: FuncId, func: &Func) -> Result<(), Refusal> {
    let listed = match &site.callee {
        Callee::Direct(callee) => *callee == id,
        Callee::Indirect(_, list) => list.as_ref().is_none_or(|list| list.contains(&id)),
    };
    match () {
        _ if func.kind == FuncKind::Kernel => Err(Refusal::Kernel),
        _ if !listed => Err(Refusal::NotListed),
        _ if !site.sig.compatible(&func.sig) => Err(Refusal::Signature),
        _ => Ok(()),
    }
}
