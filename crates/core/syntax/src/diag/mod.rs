//! What margay says about a module: [`Diagnostic`], a value with a code, places and suggestions. Rendering is elsewhere.

mod code;
mod group;
mod nearest;
mod pages;

pub use code::{Code, CodeInfo};
pub use group::group;
pub use nearest::nearest;

use crate::Span;

/// How bad it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Severity {
    /// Additional fact, changes nothing.
    Note,
    /// Legal for ptxas, but forbidden by the text or probably a mistake.
    Warning,
    /// ptxas would refuse the module (or the text does, under `--text` and `--strict`).
    Error,
}

/// A place with a few words about it. The first label of a diagnostic is the primary one (the caret).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Label {
    /// Where.
    pub span: Span,
    /// What is there: "this is `.f32`"; may be empty for the primary place.
    pub text: String,
}

/// A change of the text that would help.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Suggestion {
    /// "write `.ftz`"
    pub message: String,
    /// Replacements, in order of position, not overlapping.
    pub edits: Vec<(Span, String)>,
    /// True if `--fix` may apply it without asking.
    pub machine_applicable: bool,
}

/// One finding: the cause, said once, at its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// The published code.
    pub code: Code,
    /// Its severity here; lints may be raised or lowered.
    pub severity: Severity,
    /// One line: the operand, what was found, what was wanted.
    pub message: String,
    /// Places; the first is the primary one and always exists.
    pub labels: Vec<Label>,
    /// Further facts, one line each.
    pub notes: Vec<String>,
    /// What to do about it.
    pub suggestions: Vec<Suggestion>,
}

impl Diagnostic {
    /// A finding at a place, with the severity that its code has by default.
    pub fn new(code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            code,
            severity: code.info().severity,
            message: message.into(),
            labels: vec![Label { span, text: String::new() }],
            notes: Vec::new(),
            suggestions: Vec::new(),
        }
    }

    /// Words at the primary place.
    pub fn here(mut self, text: impl Into<String>) -> Diagnostic {
        self.labels[0].text = text.into();
        self
    }

    /// A second place.
    pub fn label(mut self, span: Span, text: impl Into<String>) -> Diagnostic {
        self.labels.push(Label { span, text: text.into() });
        self
    }

    /// A further fact.
    pub fn note(mut self, text: impl Into<String>) -> Diagnostic {
        self.notes.push(text.into());
        self
    }

    /// Advice without an edit.
    pub fn help(mut self, text: impl Into<String>) -> Diagnostic {
        self.suggestions.push(Suggestion { message: text.into(), edits: Vec::new(), machine_applicable: false });
        self
    }

    /// A replacement that is surely right.
    pub fn fix(mut self, span: Span, with: impl Into<String>, message: impl Into<String>) -> Diagnostic {
        let edits = vec![(span, with.into())];
        self.suggestions.push(Suggestion { message: message.into(), edits, machine_applicable: true });
        self
    }

    /// The primary place.
    pub fn span(&self) -> Span {
        self.labels[0].span
    }
}
