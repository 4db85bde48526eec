//! `vmad`: what may be negated (manual, section 9.7.18.2).

use crate::body::{Candidate, Inst, Walker};

/// One instruction.
pub(crate) fn check(_w: &mut Walker<'_, '_>, _c: &Candidate, _inst: &Inst) {}
