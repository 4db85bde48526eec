//! Error reporting and recovery.

use super::{ERRORS, Parser, Reported, word};
use crate::lex::T;
use crate::{Code, Diagnostic, Span};

/// The token that a statement lacked at its end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    /// Operands may follow: a comma may be missing just as well.
    Operand,
    /// Nothing may follow but the semicolon.
    End,
}

impl Parser<'_> {
    #[cold]
    pub(super) fn report(&mut self, diagnostic: Diagnostic) {
        if self.diagnostics.len() < ERRORS {
            self.diagnostics.push(diagnostic);
        } else {
            self.lex.stop();
        }
    }

    /// How messages name the current token.
    pub(super) fn found(&self) -> String {
        match self.t.kind {
            T::Eof => "the end of the file".into(),
            T::Ident if self.word().len() > 40 => "a name".into(),
            T::String => "a string".into(),
            _ if self.word().len() > 40 => "a number".into(),
            _ => format!("`{}`", self.word()),
        }
    }

    /// `expected WHAT, found THE CURRENT TOKEN`
    #[cold]
    pub(super) fn expected(&mut self, what: &str) -> Reported {
        // The lexer has already reported stray characters and malformed numbers.
        let read = |d: &Diagnostic| d.code == Code::BadLiteral && d.span() == self.t.span;
        if !self.at(T::Bad) && !self.lex.diagnostics.iter().rev().take(2).any(read) {
            let message = format!("expected {what}, found {}", self.found());
            let d = Diagnostic::new(Code::Syntax, self.here(), message).here(format!("expected {what}"));
            self.report(d);
        }
        Reported
    }

    /// The current token's place; at the end of the file, the end of its last line.
    pub(super) fn here(&self) -> Span {
        if !self.at(T::Eof) {
            return self.t.span;
        }
        let end = self.text.strip_suffix('\n').map_or(self.text, |t| t.strip_suffix('\r').unwrap_or(t)).len() as u32;
        Span::new(end.max(self.prev.end), end.max(self.prev.end))
    }

    /// A fault at a place, with the words under it.
    #[cold]
    pub(super) fn wrong(&mut self, span: Span, message: impl Into<String>, here: &str) -> Reported {
        self.report(Diagnostic::new(Code::Syntax, span, message).here(here));
        Reported
    }

    /// An operand is missing, and a statement begins on the next line: the error is at the operator before it.
    #[cold]
    pub(super) fn nothing_follows(&mut self, what: &str) -> Reported {
        let message = format!("expected {what} after `{}`", self.str(self.prev));
        self.wrong(self.prev, message, "nothing follows on this line")
    }

    /// A bracket is not closed by its counterpart.
    #[cold]
    pub(super) fn unclosed(&mut self, close: T, open: Span) -> Reported {
        let sign = match close {
            T::RParen => ")",
            T::RBrack => "]",
            T::Gt => ">",
            _ => "}",
        };
        if self.at(T::Bad) {
            return Reported;
        }
        if matches!(self.t.kind, T::Semi | T::Eof | T::RBrace | T::LBrace) || self.first_of_line() {
            let message = format!("`{}` is not closed; expected `{sign}`, found {}", self.str(open), self.found());
            let d = Diagnostic::new(Code::Unclosed, self.here(), message)
                .here(format!("expected `{sign}`"))
                .label(open, "opened here");
            let d = d.fix(self.prev.after(), sign, format!("close it with `{sign}`"));
            self.report(d);
            return Reported;
        }
        self.expected(if sign == ">" {
            "`>`"
        } else {
            ["`,` or `)`", "`,` or `]`", "`,` or `}`"][(close != T::RParen) as usize + (close == T::RBrace) as usize]
        })
    }

    /// The semicolon at the end of a statement. Reports a missing one once; true if the statement is over.
    #[inline]
    pub(super) fn semicolon(&mut self, after: After) -> bool {
        if self.at(T::Semi) {
            self.bump();
            return true;
        }
        self.no_semicolon(after)
    }

    #[cold]
    fn no_semicolon(&mut self, after: After) -> bool {
        let starts_statement =
            matches!(self.t.kind, T::Ident | T::Dot | T::At | T::LBrace | T::RBrace | T::Eof | T::Dwarf);
        let ends = match self.t.kind {
            T::RBrace | T::Eof | T::At => true,
            T::Ident if !self.first_of_line() => {
                let second = self.second();
                !self.word().starts_with('%')
                    && (matches!(second.kind, T::Dot) || self.word() == "ret" || self.word() == "exit")
            }
            _ => starts_statement && self.first_of_line(),
        };
        if ends {
            let place = self.prev.after();
            let d = Diagnostic::new(Code::MissingSemicolon, place, format!("expected `;` before {}", self.found()))
                .here("expected `;`")
                .fix(place, ";", "end the statement with `;`");
            // ptxas reports the line of the next token, which is shown if blank lines or comments separate the two.
            let gap = self.text.as_bytes().get(place.end as usize..self.t.span.start as usize).unwrap_or_default();
            let apart = gap.iter().filter(|&&b| b == b'\n').count() > 1;
            self.report(if apart { d.label(self.here(), "before this") } else { d });
            return true;
        }
        let operand = matches!(
            self.t.kind,
            T::Ident
                | T::Underscore
                | T::WarpSize
                | T::Int
                | T::Float
                | T::Single
                | T::LBrack
                | T::LBrace
                | T::LParen
                | T::Not
                | T::Tilde
        );
        if after == After::Operand && operand {
            let place = self.prev.after();
            let d = Diagnostic::new(Code::Syntax, place, format!("expected `,` or `;` before {}", self.found()))
                .here("expected `,`")
                .fix(place, ",", "separate operands with `,`");
            self.report(d);
            return false;
        }
        self.expected(if after == After::Operand { "`,` or `;`" } else { "`;`" });
        self.skip_statement();
        true
    }

    /// A misplaced semicolon: after `}`, `.loc 1 2 3`, or alone.
    #[cold]
    pub(super) fn stray_semicolons(&mut self, message: &str) {
        let first = self.t.span;
        while self.at(T::Semi) {
            self.bump();
        }
        let span = first.to(self.prev);
        self.report(Diagnostic::new(Code::Syntax, span, message).here("not expected").fix(span, "", "remove it"));
    }

    /// Skips to the end of the statement: after its semicolon, or before a token that surely begins another statement.
    #[cold]
    pub(super) fn skip_statement(&mut self) {
        let mut depth = 0u32;
        let mut first = true;
        loop {
            match self.t.kind {
                T::Eof => return,
                T::Semi => {
                    self.bump();
                    return;
                }
                T::LBrace => depth += 1,
                // The end of a vector whose begin was lost; a block does not end so.
                T::RBrace
                    if depth == 0 && !self.first_of_line() && matches!(self.second().kind, T::Comma | T::Semi) => {}
                T::RBrace if depth == 0 => return,
                T::RBrace => depth -= 1,
                T::At if !first && self.first_of_line() => return,
                T::Dot if !first && self.first_of_line() && word::classify(self.word()) != word::Word::Unknown => {
                    return;
                }
                T::Ident
                    if !first
                        && depth == 0
                        && self.first_of_line()
                        && matches!(self.second().kind, T::Dot | T::Colon) =>
                {
                    return;
                }
                _ => {}
            }
            first = false;
            self.bump();
        }
    }

    /// Skips the rest of a body, which lies outside its braces: to a directive of the module at the start of a line, or past the brace that
    /// was to end the body.
    #[cold]
    pub(super) fn skip_body(&mut self) {
        let mut depth = 0u32;
        loop {
            use word::Word::*;
            match self.t.kind {
                T::Eof => return,
                T::LBrace => depth += 1,
                T::RBrace if depth == 0 => {
                    self.bump();
                    return;
                }
                T::RBrace => depth -= 1,
                T::Dot if self.first_of_line() => match word::classify(self.word()) {
                    Linkage | Entry | Func => return,
                    Section | File | Alias if depth == 0 => return,
                    Space if depth == 0 && matches!(self.word(), ".global" | ".const" | ".shared" | ".tex") => return,
                    _ => {}
                },
                _ => {}
            }
            self.bump();
        }
    }

    /// Skips to the next statement of the module: after a semicolon or a block, or before a directive at the start of a line.
    #[cold]
    pub(super) fn skip_item(&mut self) {
        let (mut depth, mut parentheses) = (0u32, 0u32);
        let mut first = true;
        loop {
            use word::Word::*;
            match self.t.kind {
                T::Eof => return,
                T::Semi if depth == 0 => {
                    self.bump();
                    return;
                }
                T::LParen => parentheses += 1,
                T::RParen => parentheses = parentheses.saturating_sub(1),
                T::LBrace => depth += 1,
                T::RBrace => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        self.bump();
                        return;
                    }
                }
                T::Dot if !first && self.first_of_line() => match word::classify(self.word()) {
                    Linkage | Entry | Func => return,
                    Alias | Section | File | Pragma if depth == 0 => return,
                    // In parentheses, it begins a parameter.
                    Space if depth == 0 && parentheses == 0 => return,
                    _ => {}
                },
                _ => {}
            }
            first = false;
            self.bump();
        }
    }
}
