//! `ld.param` and `st.param`: which parameter may be read or written where (manual, sections 5.1.6 and 7.1).

use crate::body::{Candidate, Inst, Walker};

/// One access.
pub(crate) fn check(_w: &mut Walker<'_, '_>, _c: &Candidate, _inst: &Inst) {}
