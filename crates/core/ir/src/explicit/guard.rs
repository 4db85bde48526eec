//! The functions that a call site may call (manual, sections 9.7.12.5, 11.3.2 and 11.3.3).

use crate::{Builtin, CallSite, Callee, Func, FuncId, Ir, Stage, abi::Shape};
use margay_check::FuncKind;
use std::{collections::HashMap, fmt, sync::Arc};

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
            Refusal::NotListed => "which is not in its list of targets",
            Refusal::Signature => "whose parameters do not match the prototype",
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

/// Who is called at a site.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Target {
    /// A function with a body.
    Function(FuncId),
    /// A function of the device library.
    Builtin(Builtin),
    /// A function without a definition: the call is a fault.
    Undefined(FuncId),
    /// Through a register: one of these, in ascending order; any other is a fault.
    Admitted(Arc<[FuncId]>),
}

/// The properties of an indirect call site that decide which functions it admits: its signature's shape and its list.
type Admission = (Shape, Option<Vec<FuncId>>);

/// The functions that indirect call sites admit; sites of the same shape share a list.
#[derive(Default)]
pub(crate) struct Admitted(HashMap<Admission, Arc<[FuncId]>>);

impl Admitted {
    /// The target of a call site.
    pub fn target<S: Stage>(&mut self, ir: &Ir<S>, site: &CallSite) -> Target {
        let list = match &site.callee {
            Callee::Direct(id) => {
                let func = ir.func(*id);
                return match func.builtin {
                    Some(builtin) => Target::Builtin(builtin),
                    None if func.blocks.is_empty() => Target::Undefined(*id),
                    None => Target::Function(*id),
                };
            }
            Callee::Indirect(_, list) => list,
        };
        let ids = || (0..ir.funcs.len() as u32).map(FuncId);
        let find = || ids().filter(|f| admits(site, *f, ir.func(*f)).is_ok()).collect();
        Target::Admitted(self.0.entry((site.sig.shape(), list.clone())).or_insert_with(find).clone())
    }
}
