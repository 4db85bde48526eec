//! The [`Diagnostic`] type: a code, locations and suggestions. Rendering is elsewhere.

mod code;
mod group;
mod nearest;
mod pages;

pub use code::{Code, CodeInfo};
pub use group::group;
pub use nearest::nearest;

use crate::Span;

/// The severity of a diagnostic.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Severity {
    /// Additional information.
    Note,
    /// Accepted by ptxas, but forbidden by the manual or probably a mistake.
    Warning,
    /// Rejected by ptxas (or by the manual, under `--text` and `--strict`).
    Error,
}

/// A location with a short text. The first label of a diagnostic is the primary one (the caret).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Label {
    /// Where.
    pub span: Span,
    /// A description, such as "this is `.f32`"; may be empty for the primary location.
    pub text: String,
}

/// A suggested change to the text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Suggestion {
    /// "write `.ftz`"
    pub message: String,
    /// Replacements, in order of position, not overlapping.
    pub edits: Vec<(Span, String)>,
    /// True if it is safe, so that `--fix` applies it.
    pub machine_applicable: bool,
}

/// One finding: its cause, reported once, at its location.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// The code.
    pub code: Code,
    /// Its severity here; lints may be raised or lowered.
    pub severity: Severity,
    /// One line: the operand, what was found, what was expected.
    pub message: String,
    /// Locations; the first is the primary one and always exists.
    pub labels: Vec<Label>,
    /// Further facts, one line each.
    pub notes: Vec<String>,
    /// Suggestions.
    pub suggestions: Vec<Suggestion>,
}

impl Diagnostic {
    /// A finding at a location, with the default severity of its code.
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

    /// Adds a text at the primary location.
    pub fn here(mut self, text: impl Into<String>) -> Diagnostic {
        self.labels[0].text = text.into();
        self
    }

    /// Adds a second location.
    pub fn label(mut self, span: Span, text: impl Into<String>) -> Diagnostic {
        self.labels.push(Label { span, text: text.into() });
        self
    }

    /// Adds a further fact.
    pub fn note(mut self, text: impl Into<String>) -> Diagnostic {
        self.notes.push(text.into());
        self
    }

    /// Adds advice without an edit.
    pub fn help(mut self, text: impl Into<String>) -> Diagnostic {
        self.suggestions.push(Suggestion { message: text.into(), edits: Vec::new(), machine_applicable: false });
        self
    }

    /// Adds a safe replacement.
    pub fn fix(mut self, span: Span, with: impl Into<String>, message: impl Into<String>) -> Diagnostic {
        let edits = vec![(span, with.into())];
        self.suggestions.push(Suggestion { message: message.into(), edits, machine_applicable: true });
        self
    }

    /// The primary location.
    pub fn span(&self) -> Span {
        self.labels[0].span
    }
}
