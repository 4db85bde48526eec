//! Debugging data: `.file`, `.section` and the contents of sections (manual, section 11.5).

use super::word::{self, Word};
use super::{Parser, Result};
use crate::lex::T;
use crate::tree::*;
use crate::{Code, Diagnostic, Span};

impl Parser<'_> {
    /// `.file 1 "k.cu", 1234567, 890` (section 11.5.3). It ends without a semicolon.
    pub(super) fn file(&mut self) -> Result<u32> {
        let name = self.bump().span;
        let index = self.integer_operand("the file's number")?;
        if !self.at(T::String) {
            return Err(self.expected("the file's path, in quotes"));
        }
        let path = self.bump().span;
        let base = self.buffers.list.len();
        self.buffers.list.extend([index, Operand { kind: Kind::String, span: path }]);
        let mut result = Ok(());
        for what in ["a time", "a size"] {
            if !self.eat(T::Comma) {
                break;
            }
            match self.integer_operand(what) {
                Ok(value) => self.buffers.list.push(value),
                Err(e) => {
                    result = Err(e);
                    break;
                }
            }
        }
        let args = self.list(base);
        let index = self.directive(name, args, name.to(self.prev));
        result?;
        if self.at(T::Comma) {
            return Err(self.wrong(
                self.t.span,
                "`.file` takes an index, a path, a timestamp and a size",
                "excess argument",
            ));
        }
        if self.at(T::Semi) {
            self.stray_semicolons("`.file` takes no semicolon");
        }
        Ok(index)
    }

    /// `.section .debug_info { ... }` (section 11.5.2). The operands are its name, what it holds besides plain numbers (the labels
    /// that it defines, the sections that it points to, sums, differences and negative numbers), and the raw body, including braces.
    pub(super) fn section(&mut self) -> Result<u32> {
        let name = self.bump().span;
        if !self.at(T::Dot) {
            return Err(self.expected("a section's name, such as `.debug_info`"));
        }
        let base = self.buffers.list.len();
        self.section_name();
        if !self.at(T::LBrace) {
            self.buffers.list.truncate(base);
            return Err(self.expected("`{`"));
        }
        let open = self.bump().span;
        while !self.at(T::RBrace) {
            if let Err(stop) = self.section_line(open) {
                self.buffers.list.truncate(base);
                return Err(stop);
            }
        }
        self.bump();
        self.buffers.list.push(Operand { kind: Kind::String, span: open.to(self.prev) });
        let args = self.list(base);
        Ok(self.directive(name, args, name.to(self.prev)))
    }

    /// `.debug_info`; not a word that means something else.
    fn section_name(&mut self) {
        let taken = word::classify(self.word()) != Word::Unknown;
        let span = self.bump().span;
        if taken {
            let message = format!("`{}` is a PTX keyword, not the name of a section", self.str(span));
            self.report(Diagnostic::new(Code::Syntax, span, message).here("not a section"));
        } else {
            self.buffers.list.push(Operand { kind: Kind::Name, span });
        }
    }

    /// `label:`, `.b32 1, 2`, `.b32 label+3`, `.b32 a-b` or `.b32 .debug_info+4`
    fn section_line(&mut self, open: Span) -> Result<()> {
        if self.at(T::Eof) {
            return Err(self.unclosed(T::RBrace, open));
        }
        if self.at(T::Ident) {
            let span = self.bump().span;
            self.buffers.list.push(Operand { kind: Kind::Name, span });
            return if self.eat(T::Colon) { Ok(()) } else { Err(self.expected("`:`")) };
        }
        let ty = self.t.span;
        let bits = match self.word() {
            ".b8" => 8,
            ".b16" => 16,
            ".b32" => 32,
            ".b64" => 64,
            name if word::classify(name) == Word::Type => {
                let message = format!("debugging data has type `.b8`, `.b16`, `.b32` or `.b64`, found `{name}`");
                self.report(Diagnostic::new(Code::Syntax, ty, message).here("not here"));
                64
            }
            _ => return Err(self.expected("`.b8`, `.b16`, `.b32`, `.b64`, a label or `}`")),
        };
        self.bump();
        let mut first = true;
        loop {
            match self.t.kind {
                T::Minus => {
                    let minus = self.bump().span;
                    let number = self.integer_operand("a number")?;
                    self.section_value(number, Some(minus), bits);
                    let span = minus.to(number.span);
                    let number = self.keep(number);
                    let negative = self.keep_expr(Expr::Unary(UnaryOp::Minus, number), span);
                    self.buffers.list.push(negative);
                }
                T::Int => {
                    let number = self.integer_operand("a number")?;
                    self.section_value(number, None, bits);
                }
                T::Dot if matches!(word::classify(self.word()), Word::Type) => {
                    return Err(self.expected("a number or a label"));
                }
                T::Ident | T::Dot if first => return self.section_address(ty, bits),
                T::Ident | T::Dot => {
                    let message = format!("`{}` holds numbers or one address, not both", self.str(ty));
                    return Err(self.wrong(self.t.span, message, "this is an address"));
                }
                _ => return Err(self.expected("a number or a label")),
            }
            first = false;
            if !self.eat(T::Comma) {
                return Ok(());
            }
        }
    }

    /// `label`, `label+3`, `a-b`, `.debug_info` or `.debug_info+4`: all that its directive holds.
    fn section_address(&mut self, ty: Span, bits: u32) -> Result<()> {
        let (name, section) = (self.t.span, self.at(T::Dot));
        if section {
            self.section_name();
        } else {
            self.bump();
        }
        if bits < 32 {
            let message = format!("`{}` is an address, which requires `.b32` or `.b64`", self.str(name));
            let d = Diagnostic::new(Code::Syntax, name, message).here("too large for its type");
            self.report(d.label(ty, "the type of the data"));
        }
        let minus = self.at(T::Minus);
        if minus || self.at(T::Plus) {
            let sign = self.bump().span;
            let offset = match minus {
                false => self.integer_operand("a number")?,
                true if section => {
                    let message = "numbers are added to sections, and nothing is subtracted from them";
                    return Err(self.wrong(sign, message, "not here"));
                }
                true if !self.at(T::Ident) => {
                    return Err(self.wrong(self.t.span, "only labels are subtracted from labels", "expected a label"));
                }
                true => Operand { kind: Kind::Name, span: self.bump().span },
            };
            let span = name.to(offset.span);
            let (base, offset) = (self.keep(Operand { kind: Kind::Name, span: name }), self.keep(offset));
            self.buffers.list.push(Operand { kind: Kind::Sum { base, offset, minus }, span });
        }
        if self.at(T::Comma) {
            let message = format!("`{}` holds numbers or one address, not a list of addresses", self.str(ty));
            return Err(self.wrong(self.t.span, message, "write another directive for the next one"));
        }
        Ok(())
    }

    /// A number in debugging data must fit its type by ptxas's rules: only the low 32 bits of numbers that are not negative are checked, so large
    /// ones pass as `.b32` and `.b64`; a negative number has at most 63 bits.
    fn section_value(&mut self, number: Operand, minus: Option<Span>, bits: u32) {
        let Kind::Int { value, .. } = number.kind else { return };
        let fits = match minus {
            None => bits >= 32 || value.get() & 0xffff_ffff < 1 << bits,
            Some(_) if bits >= 64 => value.get() < 1 << 63,
            Some(_) => value.get() <= 1 << (bits - 1),
        };
        if !fits {
            let span = minus.map_or(number.span, |m| m.to(number.span));
            let message = format!("`{}` does not fit in {bits} bits", self.str(span));
            self.report(Diagnostic::new(Code::BadLiteral, span, message).here("out of range"));
        }
    }

    /// `@@DWARF .byte 1`: a line of the old way of debugging information, kept raw (section 11.5.1).
    pub(super) fn dwarf(&mut self) -> u32 {
        let name = self.bump().span;
        let line_end =
            self.text[name.end as usize..].find('\n').map_or(self.text.len(), |n| name.end as usize + n) as u32;
        let start = self.t.span.start;
        let known = [".byte", ".4byte", ".quad", ".section"].contains(&self.word());
        if !known || start >= line_end {
            self.expected("`.byte`, `.4byte`, `.quad` or `.section`");
        }
        while !self.at(T::Eof) && self.t.span.start < line_end {
            self.bump();
        }
        let base = self.buffers.list.len();
        if self.prev != name {
            self.buffers.list.push(Operand { kind: Kind::String, span: Span::new(start, self.prev.end) });
        }
        let args = self.list(base);
        self.directive(name, args, name.to(self.prev))
    }
}
