//! Initial values of variables (manual, section 5.4.4).

use super::{NESTED_BRACES, Parser, Reported, Result};
use crate::lex::T;
use crate::tree::*;
use crate::{Code, Diagnostic, Span};

impl Parser<'_> {
    /// The initializer after `=` (section 5.4.4).
    pub(super) fn initializer(&mut self, depth: u32) -> Result<Operand> {
        match self.t.kind {
            T::LBrace => {
                if depth == NESTED_BRACES {
                    let message = "the initializer is nested too deeply";
                    self.report(Diagnostic::new(Code::TooDeep, self.t.span, message).here("exceeds the limit here"));
                    return Err(Reported);
                }
                let open = self.bump().span;
                let base = self.buffers.list.len();
                let result = self.initializers(open, depth);
                let list = self.list(base);
                result?;
                Ok(Operand { kind: Kind::Braces(list), span: open.to(self.prev) })
            }
            T::Ident => {
                let span = self.bump().span;
                let name = Operand { kind: Kind::Name, span };
                match self.t.kind {
                    T::LParen if self.str(span) == "generic" => {
                        let apply = self.generic(span)?;
                        if self.at(T::Plus) { self.offset(apply) } else { Ok(apply) }
                    }
                    T::Plus => self.offset(name),
                    T::Assign if depth > 0 => {
                        self.bump();
                        let value = match self.t.kind {
                            T::Ident => Operand { kind: Kind::Name, span: self.bump().span },
                            _ => self.constant()?,
                        };
                        let name = self.keep(name);
                        let value = self.keep(value);
                        Ok(Operand { kind: Kind::Field(name, value), span: span.to(self.prev) })
                    }
                    _ => Ok(name),
                }
            }
            T::Int => {
                let second = self.lex.ahead().next();
                if second.kind != T::LParen {
                    return self.constant();
                }
                let token = self.bump();
                let mask = self.literal(token);
                self.mask(mask)
            }
            _ => self.constant(),
        }
    }

    fn initializers(&mut self, open: Span, depth: u32) -> Result<()> {
        if self.eat(T::RBrace) {
            return Ok(());
        }
        loop {
            // Tables of plain numbers are long.
            let element = if matches!(self.t.kind, T::Int | T::Single | T::Float) {
                let integer = self.at(T::Int);
                let value = self.take_literal();
                match self.t.kind {
                    T::Comma | T::RBrace => value,
                    T::LParen if integer => self.mask(value)?,
                    _ => self.constant_from(value)?,
                }
            } else if matches!(self.t.kind, T::RBrace | T::Semi | T::Eof) {
                return Err(self.expected("an element"));
            } else {
                self.initializer(depth + 1)?
            };
            self.buffers.list.push(element);
            if !self.eat(T::Comma) {
                return self.close(T::RBrace, open);
            }
        }
    }

    /// `generic(x)`
    fn generic(&mut self, head: Span) -> Result<Operand> {
        let open = self.bump().span;
        let name = self.name("the name of a variable")?;
        self.close(T::RParen, open)?;
        let head = self.keep(Operand { kind: Kind::Name, span: head });
        let argument = self.keep(Operand { kind: Kind::Name, span: name });
        let span = Span::new(self.tree.operands[head as usize].span.start, self.prev.end);
        Ok(Operand { kind: Kind::Apply { head, argument }, span })
    }

    /// `0xFF00(x)`, `0xFF00(generic(x) + 4)`
    fn mask(&mut self, mask: Operand) -> Result<Operand> {
        let open = self.bump().span;
        let span = self.name("a name, or `generic(NAME)`")?;
        let inner = if self.at(T::LParen) && self.str(span) == "generic" {
            self.generic(span)?
        } else {
            Operand { kind: Kind::Name, span }
        };
        let inner = if self.at(T::Plus) { self.offset(inner)? } else { inner };
        self.close(T::RParen, open)?;
        let head = self.keep(mask);
        let argument = self.keep(inner);
        Ok(Operand { kind: Kind::Apply { head, argument }, span: mask.span.to(self.prev) })
    }
}
