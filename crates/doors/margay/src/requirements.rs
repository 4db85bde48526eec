//! The lowest `.version` and `.target` that a module needs, and why: which drivers and GPUs accept it.
//!
//! Determined by the check itself, so that every rule counts: the module is checked with lower and lower values until it is
//! rejected.

use margay_check::{Checked, Options, check};
use margay_isa::{Suffix, Target, Version};
use margay_syntax::{Diagnostic, LineIndex, Severity, Span, parse};

/// A requirement of a module, with the location that causes it.
#[derive(Clone, Debug)]
pub struct Requirements {
    /// The lowest version, and what the next lower one lacks.
    pub version: (Version, Option<Reason>),
    /// The lowest target, and what the next lower one lacks.
    pub target: (Target, Option<Reason>),
}

/// A use of a later feature.
#[derive(Clone, Debug)]
pub struct Reason {
    /// The message of the check.
    pub what: String,
    /// The place.
    pub span: Span,
}

/// Determines the requirements of a module that passed the check.
pub fn of(checked: &Checked, options: &Options) -> Requirements {
    let (version, target) = (checked.module.version, checked.module.target);
    let refused = |version: Option<Version>, target: Option<Target>| {
        let options = Options { version, target, ..options.clone() };
        let (_, diagnostics) = check(parse(&checked.tree.text), &options);
        diagnostics.into_iter().find(|d| d.severity == Severity::Error).map(reason)
    };
    let plain = |t: &Target| {
        t.suffix == Suffix::None && (t.sm < target.sm || target.suffix != Suffix::None && t.sm == target.sm)
    };
    let mut targets: Vec<Target> = Target::ALL.iter().map(|(t, _)| *t).filter(plain).collect();
    targets.sort();
    let lowest_target = lowest(&targets, |t| refused(Some(version), Some(t)));
    // Targets need versions too, so the version is that of the lowest target.
    let on = lowest_target.0.unwrap_or(target);
    let versions: Vec<Version> = Version::ALL.iter().copied().filter(|v| *v < version).collect();
    let lowest_version = lowest(&versions, |v| refused(Some(v), Some(on)));
    Requirements {
        version: (lowest_version.0.unwrap_or(version), lowest_version.1),
        target: (lowest_target.0.unwrap_or(target), lowest_target.1),
    }
}

fn reason(d: Diagnostic) -> Reason {
    Reason { span: d.span(), what: d.message }
}

/// The first of some ascending candidates that is accepted, and the reason why the one before it is not. All candidates after an accepted
/// one are accepted.
fn lowest<T: Copy>(candidates: &[T], refused: impl Fn(T) -> Option<Reason>) -> (Option<T>, Option<Reason>) {
    let (mut low, mut high, mut why) = (0, candidates.len(), None);
    while low < high {
        let middle = (low + high) / 2;
        match refused(candidates[middle]) {
            Some(reason) => (low, why) = (middle + 1, Some(reason)),
            None => high = middle,
        }
    }
    (candidates.get(low).copied(), why)
}

impl Requirements {
    /// As text, one line each.
    pub fn render(&self, name: &str, text: &str) -> String {
        let lines = LineIndex::new(text);
        let why = |reason: &Option<Reason>| match reason {
            Some(r) => format!("line {}: {}", lines.line(r.span.start), r.what),
            None => "nothing requires more".into(),
        };
        let (version, target) = (&self.version, &self.target);
        format!(
            "{name}: needs .version {} ({})\n{name}: needs .target {} ({})\n",
            version.0,
            why(&version.1),
            target.0,
            why(&target.1)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(body: &str) -> (String, String) {
        let text = format!(".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() {{\n{body}\nret;\n}}\n");
        let options = Options::default();
        let (checked, _) = check(parse(&text), &options);
        let r = of(&checked.unwrap(), &options);
        (r.version.0.to_string(), r.target.0.to_string())
    }

    #[test]
    fn requirements_follow_the_manual() {
        // redux.sync: PTX ISA 7.0, sm_80 (section 9.7.13.12); shfl.sync: 6.0, sm_30 (9.7.9.6).
        assert_eq!(needs(".reg .b32 %r;\nredux.sync.add.u32 %r, %r, 0xffffffff;").0, "7.0");
        assert_eq!(needs(".reg .b32 %r;\nredux.sync.add.u32 %r, %r, 0xffffffff;").1, "sm_80");
        assert_eq!(needs(".reg .b32 %r;\nshfl.sync.bfly.b32 %r, %r, 1, 31, 0xffffffff;").1, "sm_30");
    }
}
