//! Lists of parameters (manual, sections 7.1 and 11.2), and what may go wrong in them.

use super::var::Place;
use super::word::{self, Word};
use super::{Parser, Reported, Result};
use crate::lex::T;
use crate::tree::*;
use crate::{Code, Diagnostic, Span};

impl Parser<'_> {
    /// `(.param .b32 a, .reg .f32 b)`, at the parenthesis. Continues after errors.
    pub(super) fn parameters(&mut self, place: Place) -> Result<List<Var>> {
        let open = self.bump().span;
        let first = self.tree.vars.len() as u32;
        if !self.eat(T::RParen) {
            loop {
                let start = self.t.span;
                match self.parameter(place) {
                    Ok(var) => {
                        self.tree.vars.push(var);
                        if !matches!(self.t.kind, T::Comma | T::RParen) && self.lacks_comma(open) {
                            continue;
                        }
                    }
                    Err(Reported) => {
                        // A directive amid the parameters is the fault itself, not the end of the list.
                        if self.t.span == start && self.ends_parameters() {
                            self.bump();
                        } else if self.t.span == start && word::classify(self.word()) == Word::Section {
                            self.skip_section();
                            if self.eat(T::RParen) || self.at(T::Eof) {
                                break;
                            }
                            continue;
                        }
                        self.skip_parameter();
                    }
                }
                if !self.eat(T::Comma) {
                    self.eat(T::RParen);
                    break;
                }
                if self.at(T::RParen) {
                    self.trailing_comma();
                    break;
                }
            }
        }
        Ok(List::new(first, self.tree.vars.len() as u32 - first))
    }

    /// What follows a parameter is neither a comma nor the closing parenthesis; true if the next parameter follows at once.
    #[cold]
    fn lacks_comma(&mut self, open: Span) -> bool {
        match self.t.kind {
            T::Dot if !self.ends_parameters() => {
                self.missing_comma();
                return true;
            }
            T::Assign => self.initialized_parameter(),
            _ => {
                self.unclosed(T::RParen, open);
                self.skip_parameter();
            }
        }
        false
    }

    /// A comma before the closing parenthesis.
    fn trailing_comma(&mut self) {
        let comma = self.prev;
        let d = Diagnostic::new(Code::Syntax, self.t.span, "expected a parameter, found `)`");
        self.report(d.here("expected a parameter").fix(comma, "", "remove the comma"));
        self.bump();
    }

    /// Skips to the comma or parenthesis after a parameter, or to a token that surely ends the list.
    fn skip_parameter(&mut self) {
        loop {
            match self.t.kind {
                T::Comma | T::RParen | T::LBrace | T::RBrace | T::Semi | T::Eof => return,
                _ if self.ends_parameters() => return,
                _ => {
                    self.bump();
                }
            }
        }
    }

    /// An initial value of a parameter.
    #[cold]
    fn initialized_parameter(&mut self) {
        self.wrong(self.t.span, "a parameter has no initial value", "the caller gives its value");
        self.bump();
        if self.at(T::LBrace) {
            self.skip_braces();
        }
        self.skip_parameter();
        self.eat(T::Semi);
    }

    /// Skips to the end of the text in braces, at or before the first of which the parser is.
    #[cold]
    fn skip_braces(&mut self) {
        let mut depth = 0u32;
        loop {
            match self.bump().kind {
                T::LBrace => depth += 1,
                T::RBrace if depth <= 1 => return,
                T::RBrace => depth -= 1,
                T::Eof => return,
                _ => {}
            }
        }
    }

    /// Skips a debugging section amid the parameters, with the braces of its contents.
    #[cold]
    fn skip_section(&mut self) {
        while !matches!(self.t.kind, T::LBrace | T::Comma | T::RParen | T::Eof) {
            self.bump();
        }
        if self.at(T::LBrace) {
            self.skip_braces();
            self.eat(T::Comma);
        }
    }

    /// Whether a word that can only come after a list of parameters is next.
    fn ends_parameters(&self) -> bool {
        self.at(T::Dot)
            && matches!(word::classify(self.word()), Word::Entry | Word::Func | Word::Tuning | Word::FuncNote)
    }

    fn parameter(&mut self, place: Place) -> Result<Var> {
        let start = self.t.span.start;
        if !self.at(T::Dot) {
            return Err(self.expected("a parameter, `.param .TYPE NAME`"));
        }
        let mut var = self.var_head(start, List::empty(), place)?;
        let declarator = self.declarator(place)?;
        self.tree.declarators.push(declarator);
        var.declarators = List::new(self.tree.declarators.len() as u32 - 1, 1);
        var.span = self.since(start);
        Ok(var)
    }
}
