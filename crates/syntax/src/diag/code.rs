//! THE list of codes. A code is a published thing: a number that never changes its meaning, a name, a page in `docs/codes/`.
//!
//! Ranges: 00xx lexing and parsing, 01xx module and directives, 02xx instructions and modifiers, 03xx operands and types,
//! 04xx names and scopes, 05xx functions, calls and parameters, 06xx availability (version and target), 07xx limits,
//! 08xx linking, 09xx lints (`W`).

use super::Severity;

/// What the list knows of a code.
#[derive(Clone, Copy, Debug)]
pub struct CodeInfo {
    /// `E0231` or `W0901`.
    pub number: &'static str,
    /// `unknown-modifier`: for `-W`, `-D`, `-A`.
    pub name: &'static str,
    /// Severity unless changed.
    pub severity: Severity,
    /// One sentence.
    pub summary: &'static str,
}

macro_rules! codes {
    ($($variant:ident = $number:literal, $name:literal, $severity:ident, $summary:literal;)*) => {
        /// A published code of a diagnostic.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub enum Code { $(#[doc = $summary] $variant,)* }

        impl Code {
            /// Every code, in order of number.
            pub const ALL: &'static [Code] = &[$(Code::$variant,)*];

            /// The code's entry.
            pub const fn info(self) -> CodeInfo {
                match self { $(Code::$variant => CodeInfo { number: $number, name: $name, severity: Severity::$severity, summary: $summary },)* }
            }

            /// The code with that number or name.
            pub fn find(text: &str) -> Option<Code> {
                Code::ALL.iter().copied().find(|c| c.info().number.eq_ignore_ascii_case(text) || c.info().name == text)
            }
        }
    };
}

codes! {
    UnexpectedCharacter = "E0001", "unexpected-character", Error, "A character that PTX has no use for.";
    Syntax = "E0002", "syntax", Error, "Something else was expected here.";
    MissingSemicolon = "E0003", "missing-semicolon", Error, "A statement does not end in `;`.";
    BadLiteral = "E0004", "bad-literal", Error, "A number is not written as PTX writes numbers.";
    Unclosed = "E0005", "unclosed", Error, "A bracket, brace, parenthesis, comment or string is never closed.";
    ModuleHead = "E0006", "module-head", Error, "A module does not begin with `.version` and `.target`.";
    WordOrder = "E0007", "word-order", Error, "A word of a declaration stands in the wrong place.";
    TooDeep = "E0008", "too-deep", Error, "Blocks, parentheses or braces are nested too deeply.";
    TooLarge = "E0009", "too-large", Error, "The file is too large.";
    LiteralWraps = "W0010", "literal-wraps", Warning, "An integer literal does not fit 64 bits and loses its upper bits.";
    UnknownDirective = "E0101", "unknown-directive", Error, "A directive that PTX does not have.";
}
