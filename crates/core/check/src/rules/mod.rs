//! Cross-instruction rules, one file each.

pub(crate) mod addresses;
pub(crate) mod alias;
pub(crate) mod arguments;
pub(crate) mod attribute;
pub(crate) mod barrier;
pub(crate) mod body;
pub(crate) mod call;
pub(crate) mod copy;
pub(crate) mod expanded;
pub(crate) mod formals;
pub(crate) mod globals;
pub(crate) mod header;
pub(crate) mod limits;
pub(crate) mod matrix;
pub(crate) mod mbarrier;
pub(crate) mod memory;
pub(crate) mod mov;
pub(crate) mod pair;
pub(crate) mod param;
pub(crate) mod pointer;
pub(crate) mod pointers;
pub(crate) mod pragma;
pub(crate) mod prototypes;
pub(crate) mod reach;
pub(crate) mod sequence;
pub(crate) mod stack;
pub(crate) mod text;
pub(crate) mod texture;
pub(crate) mod vmad;
pub(crate) mod width;

use crate::Module;
use crate::body::{Candidate, Inst, Walker};
use margay_isa::{Rule, Version};

/// Whether the manual's text gives the module a stack (section 7.1.1): PTX ISA 2.0 and later on sm_20 and later.
pub(crate) fn stack_in_text(module: &Module) -> bool {
    (module.version_at.is_none() || module.version >= Version::new(2, 0))
        && (module.target_at.is_none() || module.target.sm >= 20)
}

/// Whether kernels of this version declare their parameters in the body (before PTX ISA 1.4).
pub(crate) fn old_kernel_parameters(module: &Module) -> bool {
    module.version_at.is_some() && module.version < Version::new(1, 4)
}

/// The rules that a row of the table names.
pub(crate) fn instruction(rule: Rule, w: &mut Walker<'_, '_>, c: &Candidate, inst: &Inst) {
    match rule {
        Rule::MovOperand => mov::check(w, c, inst),
        Rule::ParamWindow => param::check(w, c, inst),
        Rule::CallSignature => call::check(w, c, inst),
        Rule::VectorWidth => memory::vector_width(w, c, inst),
        Rule::NarrowVector => memory::narrow_vector(w, c, inst),
        Rule::BracedVector => memory::braced_vector(w, inst),
        Rule::GlobalHint => memory::global_hint(w, c, inst),
        Rule::WideEviction => memory::wide_eviction(w, c, inst),
        Rule::StackAlignment => stack::alignment(w, inst),
        Rule::VmadNegation => vmad::check(w, c, inst),
        Rule::HandleRegister => texture::handle_register(w, c, inst),
        Rule::ResidentPredicate => texture::resident_predicate(w, c, inst),
        Rule::ShortCoordinates => texture::short_coordinates(w, inst),
        Rule::UnifiedMode => texture::mode(w, c, inst, false),
        Rule::IndependentMode => texture::mode(w, c, inst, true),
        Rule::CopySourceSize => copy::source_size(w, c, inst),
        Rule::GenericWidth => width::generic(w, c, inst),
        Rule::SharedVariable => mbarrier::shared_variable(w, c, inst),
        Rule::SinkOnly => mbarrier::sink_only(w, c, inst),
        Rule::TensorMapValue => copy::tensor_map_value(w, c, inst),
        Rule::PolicyFraction => memory::policy_fraction(w, inst),
        Rule::PolicyRange => memory::policy_range(w, inst),
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
