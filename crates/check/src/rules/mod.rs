//! Cross-instruction rules, one file each.

pub(crate) mod addresses;
pub(crate) mod alias;
pub(crate) mod attribute;
pub(crate) mod body;
pub(crate) mod call;
pub(crate) mod formals;
pub(crate) mod globals;
pub(crate) mod header;
pub(crate) mod memory;
pub(crate) mod mov;
pub(crate) mod param;
pub(crate) mod pointer;
pub(crate) mod prototypes;
pub(crate) mod vmad;

use crate::body::{Candidate, Facts, Inst, Walker};
use crate::{Module, Options, report::Report};
use margay_isa::Rule;
use margay_syntax::Tree;

/// Rules that look at the whole module: what is reachable, what is missing, what is too large.
pub(crate) fn whole(_tree: &Tree, _module: &Module, _facts: &[Facts], _options: &Options, _report: &mut Report) {}

/// The rules that a row of the table names.
pub(crate) fn instruction(rule: Rule, w: &mut Walker<'_, '_>, c: &Candidate, inst: &Inst) {
    match rule {
        Rule::MovOperand => mov::check(w, c, inst),
        Rule::ParamWindow => param::check(w, c, inst),
        Rule::CallSignature => call::check(w, c, inst),
        Rule::VectorWidth => memory::vector_width(w, c, inst),
        Rule::NarrowVector => memory::narrow_vector(w, c, inst),
        Rule::GlobalHint => memory::global_hint(w, c, inst),
        Rule::WideEviction => memory::wide_eviction(w, c, inst),
        Rule::VmadNegation => vmad::check(w, c, inst),
    }
}
