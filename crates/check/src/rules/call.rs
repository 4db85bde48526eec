//! `call`: the callee's signature against the arguments (manual, sections 7.1 and 9.7.13.5).

use crate::body::{Candidate, Inst, Walker};

/// One call.
pub(crate) fn check(_w: &mut Walker<'_, '_>, _c: &Candidate, _inst: &Inst) {}
