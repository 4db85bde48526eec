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
            message: brief(message.into()),
            labels: vec![Label { span, text: String::new() }],
            notes: Vec::new(),
            suggestions: Vec::new(),
        }
    }

    /// Adds a text at the primary location.
    pub fn here(mut self, text: impl Into<String>) -> Diagnostic {
        self.labels[0].text = brief(text.into());
        self
    }

    /// Adds a second location.
    pub fn label(mut self, span: Span, text: impl Into<String>) -> Diagnostic {
        self.labels.push(Label { span, text: brief(text.into()) });
        self
    }

    /// Adds a further fact.
    pub fn note(mut self, text: impl Into<String>) -> Diagnostic {
        self.notes.push(brief(text.into()));
        self
    }

    /// Adds advice without an edit.
    pub fn help(mut self, text: impl Into<String>) -> Diagnostic {
        self.suggestions.push(Suggestion { message: brief(text.into()), edits: Vec::new(), machine_applicable: false });
        self
    }

    /// Adds a safe replacement.
    pub fn fix(mut self, span: Span, with: impl Into<String>, message: impl Into<String>) -> Diagnostic {
        let edits = vec![(span, with.into())];
        self.suggestions.push(Suggestion { message: brief(message.into()), edits, machine_applicable: true });
        self
    }

    /// The primary location.
    pub fn span(&self) -> Span {
        self.labels[0].span
    }
}

/// Longest word that a text quotes in full, in characters.
const LONGEST: usize = 120;

/// The text with the middle of overlong words left out: names of templates may have thousands of characters, and generated ones more.
fn brief(text: String) -> String {
    if text.len() <= LONGEST || text.split_whitespace().all(|w| w.chars().count() <= LONGEST) {
        return text;
    }
    let shorten = |word: &str| {
        let length = word.chars().count();
        if length <= LONGEST {
            return word.to_owned();
        }
        let start: String = word.chars().take(LONGEST / 2).collect();
        let end: String = word.chars().skip(length - LONGEST / 4).collect();
        format!("{start}…{end}")
    };
    text.split(' ').map(shorten).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlong_names_are_shortened() {
        let d = Diagnostic::new(
            Code::UnknownRegister,
            Span::new(0, 1),
            format!("unknown register `{}é`", "x".repeat(5000)),
        );
        assert!(d.message.chars().count() < 150, "{}", d.message);
        assert!(d.message.starts_with("unknown register `xxx") && d.message.ends_with("xxé`"), "{}", d.message);
        let usual = "f".repeat(100);
        assert_eq!(Diagnostic::new(Code::UnknownRegister, Span::new(0, 1), usual.clone()).message, usual);
    }
}
