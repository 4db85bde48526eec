//! Cross-instruction rules, one file each.

pub(crate) mod addresses;
pub(crate) mod alias;
pub(crate) mod attribute;
pub(crate) mod body;
pub(crate) mod call;
pub(crate) mod copy;
pub(crate) mod formals;
pub(crate) mod globals;
pub(crate) mod header;
pub(crate) mod matrix;
pub(crate) mod mbarrier;
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
        Rule::CopySourceSize => copy::source_size(w, c, inst),
        Rule::SharedVariable => mbarrier::shared_variable(w, c, inst),
        Rule::SinkOnly => mbarrier::sink_only(w, c, inst),
        Rule::ScaleSelector => matrix::scale_selector(w, c, inst),
    }
}

#[cfg(test)]
pub(crate) mod testing {
    //! What the tests of rules share.

    use crate::Options;
    use margay_syntax::diag::Severity;

    /// A module with one kernel that holds the statements; `%p`, `%h` (16 bits), `%r`, `%rd`, `%f` and `%fd` are registers.
    pub(crate) fn kernel(version: &str, target: &str, body: &str) -> String {
        format!(
            ".version {version} .target {target}{}
             .entry k() {{
                .reg .pred %p<8>; .reg .b16 %h<16>; .reg .b32 %r<64>; .reg .b64 %rd<16>; .reg .f32 %f<64>; .reg .f64 %fd<16>;
                {body}
                exit;
             }}",
            if version < "2.3" { "" } else { " .address_size 64" },
        )
    }

    /// The numbers of the errors that a module earns.
    pub(crate) fn codes(text: &str) -> Vec<&'static str> {
        let (_, diagnostics) = crate::check(margay_syntax::parse(text), &Options::default());
        let errors = diagnostics.iter().filter(|d| d.severity == Severity::Error);
        errors.map(|d| d.code.info().number).collect()
    }
}
