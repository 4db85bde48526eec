//! Collects findings, and decides which of them are errors.

use crate::{Module, Options, Verdict};
use margay_isa::{Since, Target, Version};
use margay_syntax::{
    Span, Tree,
    diag::{Code, Diagnostic, Severity},
};

/// Further findings are dropped, to bound memory.
const LIMIT: usize = 10_000;
/// The number of warnings that are kept.
const WARNINGS: usize = 1_000;

/// The findings of a check.
#[derive(Debug)]
pub(crate) struct Report {
    /// In order of discovery.
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// Whose verdict counts.
    pub(crate) verdict: Verdict,
    /// True while findings are discarded: a body that has passed is resolved again.
    pub(crate) silent: bool,
    /// Number of errors so far.
    pub(crate) errors: usize,
    /// Number of warnings kept so far.
    warnings: usize,
    /// Where the parser found errors, in order: names may be missing near them.
    pub(crate) broken: Vec<u32>,
    /// Their lines, in order.
    broken_lines: Vec<Span>,
    /// Suggestions ("did you mean") are costly; they stop after a while.
    pub(crate) suggestions_left: u32,
    /// Explanations of invalid mnemonics, which are found by trial; they also stop after a while.
    explanations_left: u32,
}

impl Report {
    /// An empty report.
    pub(crate) fn new(options: &Options) -> Report {
        Report {
            diagnostics: Vec::new(),
            verdict: options.verdict,
            silent: false,
            errors: 0,
            warnings: 0,
            broken: Vec::new(),
            broken_lines: Vec::new(),
            suggestions_left: 100,
            explanations_left: 1000,
        }
    }

    /// A report that keeps nothing.
    pub(crate) fn silent() -> Report {
        Report { silent: true, suggestions_left: 0, ..Report::new(&Options::default()) }
    }

    /// Remembers where the parser found errors, in order.
    pub(crate) fn set_broken(&mut self, tree: &Tree, places: Vec<u32>) {
        for at in &places {
            let at = *at as usize;
            let (before, behind) = tree.text.split_at_checked(at).unwrap_or((&tree.text, ""));
            let start = before.rfind('\n').map_or(0, |n| n + 1);
            let end = at + behind.find('\n').unwrap_or(behind.len());
            if self.broken_lines.last().is_none_or(|l| (l.start as usize) < start) {
                self.broken_lines.push(Span::new(start as u32, end as u32));
            }
        }
        self.broken = places;
    }

    /// Whether the parser found an error on the line of that place: other errors there are taken for consequences of it.
    fn follows(&self, at: u32) -> bool {
        let next = self.broken_lines.partition_point(|l| l.end < at);
        self.broken_lines.get(next).is_some_and(|l| l.start <= at)
    }

    /// Whether a line on which the parser found an error has a name with that stem, which may have been declared there.
    pub(crate) fn may_have_lost(&self, tree: &Tree, stem: &str) -> bool {
        const MAX: usize = 100;
        let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%');
        let lines = self.broken_lines.iter().take(MAX).map(|l| tree.str(*l));
        let mut words = lines.flat_map(|l| l.split(|c| !word(c)));
        words.any(|w| !w.is_empty() && w.trim_end_matches(|c: char| c.is_ascii_digit()) == stem)
    }

    /// Adds a finding.
    #[cold]
    pub(crate) fn push(&mut self, mut d: Diagnostic) {
        let error = d.severity == Severity::Error;
        if error && self.follows(d.span().start) {
            return;
        }
        self.errors += usize::from(error);
        if self.silent || self.diagnostics.len() >= LIMIT || !error && !self.may_warn() {
            return;
        }
        if !error {
            self.warnings += 1;
            if self.warnings == WARNINGS {
                d.notes.push("more warnings are not shown".to_owned());
            }
        }
        self.diagnostics.push(d);
    }

    /// Whether another warning would be kept.
    pub(crate) fn may_warn(&self) -> bool {
        !self.silent && self.warnings < WARNINGS
    }

    /// Adds a finding about code that the manual forbids and ptxas accepts.
    #[cold]
    pub(crate) fn text_only(&mut self, mut d: Diagnostic) {
        if self.verdict == Verdict::Ptxas {
            d.severity = Severity::Warning;
            d.notes.push("the manual forbids this, but ptxas accepts it".to_owned());
        }
        self.push(d);
    }

    /// Adds a finding about code that ptxas rejects and the manual allows.
    #[cold]
    pub(crate) fn ptxas_only(&mut self, mut d: Diagnostic) {
        d.notes.push("the manual allows this, but ptxas rejects it".to_owned());
        if self.verdict == Verdict::Text {
            d.severity = Severity::Warning;
        }
        self.push(d);
    }

    /// Whether the parser found an error in there.
    pub(crate) fn is_broken(&self, span: Span) -> bool {
        let next = self.broken.partition_point(|at| *at < span.start);
        self.broken.get(next).is_some_and(|at| *at <= span.end)
    }

    /// Whether another finding may be explained at length.
    pub(crate) fn may_explain(&mut self) -> bool {
        let may = !self.silent && self.explanations_left > 0;
        self.explanations_left = self.explanations_left.saturating_sub(1);
        may
    }

    /// Whether another costly suggestion may be computed.
    pub(crate) fn may_suggest(&mut self) -> bool {
        let may = !self.silent && self.suggestions_left > 0;
        self.suggestions_left = self.suggestions_left.saturating_sub(1);
        may
    }
}

/// What a feature needs and the module does not offer: one finding for version and target, with a label on each directive.
/// Nothing if the module has it, or if its version or target is unknown.
pub(crate) fn lacking(module: &Module, since: &Since) -> Option<Lack> {
    let known = (module.version_at.is_some(), module.target_at.is_some());
    let version = if known.0 { module.version } else { Version::LAST };
    let target = if known.1 { module.target } else { Target::arch(u16::MAX) };
    since.check(version, target).err()?;
    let specific = known.1 && !since.only.is_empty() && !since.only.iter().any(|t| target.provides(*t));
    let lack = Lack {
        version: (version < since.ptx).then_some(since.ptx),
        sm: (target.sm < since.sm).then_some(since.sm),
        only: if specific { since.only } else { &[] },
    };
    (lack.version.is_some() || lack.sm.is_some() || specific).then_some(lack)
}

/// A version and a lowest target, for features that no table holds.
pub(crate) const fn since(major: u16, minor: u16, sm: u16) -> Since {
    Since::new(major, minor, sm)
}

/// The version or target that a module lacks for a feature.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Lack {
    version: Option<Version>,
    sm: Option<u16>,
    only: &'static [Target],
}

impl Lack {
    /// The lowest target that has the feature: of the same generation if there is one, else a later one.
    fn nearest(&self, target: Target) -> Option<Target> {
        let Some(_) = self.only.first() else { return self.sm.map(Target::sm) };
        let later = self.only.iter().copied().filter(|t| t.sm >= target.sm);
        let same = later.clone().filter(|t| t.sm / 10 == target.sm / 10).min_by_key(|t| t.sm);
        same.or_else(|| later.filter(|t| t.sm / 10 > target.sm / 10).min_by_key(|t| t.sm))
    }

    /// The finding: `what` needs this, at `span`.
    pub(crate) fn diagnose(&self, module: &Module, what: &str, span: Span) -> Diagnostic {
        let mut wants = Vec::new();
        if let Some(v) = self.version {
            wants.push(format!("PTX ISA {v} (`.version {v}`)"));
        }
        if !self.only.is_empty() {
            let names: Vec<String> = self.only.iter().map(|t| format!("`{t}`")).collect();
            wants.push(format!("target {}", list(&names, "or")));
        } else if let Some(sm) = self.sm {
            wants.push(format!("`sm_{sm}` or later"));
        }
        let code = if self.only.is_empty() { Code::TooNew } else { Code::SpecificTarget };
        let mut d = Diagnostic::new(code, span, format!("{what} needs {}", wants.join(" and ")));
        let mut edits = Vec::new();
        if let (Some(v), Some(at)) = (self.version, module.version_at) {
            d = d.label(at, format!("the module has {}", module.version));
            edits.push((at, v.to_string()));
        }
        if let (true, Some(at)) = (self.sm.is_some() || !self.only.is_empty(), module.target_at) {
            d = d.label(at, format!("the module has `{}`", module.target));
            match self.nearest(module.target) {
                Some(target) => edits.push((at, target.to_string())),
                // Another chip: no version of this target has it.
                None => edits.clear(),
            }
        }
        if !edits.is_empty() {
            d.suggestions.push(margay_syntax::diag::Suggestion {
                message: "raise `.version` or `.target`".to_owned(),
                edits,
                machine_applicable: false,
            });
        }
        d
    }
}

/// `a`, `b` or `c`
pub(crate) fn list(items: &[String], word: &str) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [init @ .., last] => format!("{} {word} {last}", init.join(", ")),
    }
}

/// `1 operand`, `2 operands`
pub(crate) fn count(n: usize, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}
