//! PTX text to a tree and back: lexer, parser, printer, spans, and the [`Diagnostic`] value with its rendering.
//!
//! Parsing never fails and never panics: [`parse()`] always returns a [`Tree`], with diagnostics for what it could not parse.
//! The grammar knows no instruction or modifier by name: every instruction is `guard mnemonic operands;`, so unknown
//! modifiers are left to `check`. The tree is flat: pools of small nodes addressed by `u32`, names as spans into the
//! text, comments kept by position. A tree costs a few bytes for each byte of text, and no nesting depth can overflow a stack.
#![forbid(unsafe_code)]

mod confusable;
pub mod diag;
mod eval;
mod lex;
mod origin;
mod parse;
mod print;
mod span;
pub mod tree;

pub use diag::{Code, Diagnostic, Label, Severity, Suggestion};
pub use eval::{EvalError, Value, eval};
pub use origin::Origin;
pub use parse::{Outline, Parsed, parse, parse_shared};
pub use print::{FormatOptions, Reorder, Unformatted, format};
pub use span::{LineIndex, Span};
pub use tree::Tree;

/// The type of PTX that another language's type of that name is: `.s32` for `int`.
pub fn foreign_type(name: &str) -> Option<&'static str> {
    parse::foreign::type_of(name)
}

/// How many tokens a text has: the lexer alone, for benchmarks.
#[doc(hidden)]
pub fn count_tokens(text: &str) -> usize {
    let mut lexer = lex::Lexer::new(text);
    let mut count = 0;
    while lexer.next().kind != lex::T::Eof {
        count += 1;
    }
    count
}
