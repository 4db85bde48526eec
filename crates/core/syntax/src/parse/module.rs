//! Statements of the module: its head, functions, variables, aliases, debugging sections (chapter 11).

use super::word::{self, Word};
use super::{Parser, Reported, Result};
use crate::lex::T;
use crate::tree::*;
use crate::{Code, Diagnostic, Span};

impl Parser<'_> {
    /// The whole file.
    pub(super) fn module(&mut self) {
        self.head();
        loop {
            match self.t.kind {
                T::Eof => return,
                T::Dot => {
                    if self.item().is_err() {
                        self.skip_item();
                    }
                }
                T::Dwarf => {
                    let dwarf = self.dwarf();
                    self.tree.items.push(Item::Directive(dwarf));
                }
                T::Semi => {
                    self.stray_semicolons("a semicolon without a statement before it");
                    self.skip_statements_left();
                }
                T::RBrace => {
                    let first = self.bump().span;
                    while self.at(T::RBrace) {
                        self.bump();
                    }
                    self.wrong(first.to(self.prev), "`}` without its `{`", "no matching opening bracket");
                    self.skip_statements_left();
                }
                T::Bad => {
                    self.bump();
                }
                T::Ident | T::At | T::LBrace => self.statement_outside(),
                _ => {
                    self.expected("a directive");
                    self.skip_item();
                }
            }
        }
    }

    /// A statement where only directives are allowed. The body before it has probably ended too early; then all that is left of it
    /// stands here as well, which one error says.
    #[cold]
    fn statement_outside(&mut self) {
        let message = if self.at(T::Ident) {
            format!("{} is outside any function", self.found())
        } else {
            format!("expected a directive, found {}", self.found())
        };
        let mut d = Diagnostic::new(Code::Syntax, self.t.span, message).here("expected a directive");
        if let Some(Item::Func(func)) = self.tree.items.last()
            && let Some(func) = self.tree.funcs.get(*func as usize)
            && func.body.is_some()
        {
            d = d.label(func.braces.1, format!("the body of `{}` ends here", self.str(func.name)));
        }
        self.report(d);
        if self.at(T::LBrace) {
            self.skip_item()
        } else {
            self.bump();
        }
        self.skip_body();
    }

    /// Skips what is left of a body that has ended, if statements follow; an error has said that it ended too early.
    fn skip_statements_left(&mut self) {
        if matches!(self.t.kind, T::Ident | T::At) {
            self.skip_body();
        }
    }

    /// `.version`, `.target` and `.address_size`, which open every module in that order (section 11.1).
    fn head(&mut self) {
        let mut version = false;
        let mut target = false;
        let mut size = false;
        let mut complained = false;
        while self.at(T::Dot) && word::classify(self.word()) == Word::Head || self.at(T::Bad) {
            if self.at(T::Bad) {
                self.bump();
                continue;
            }
            let name = self.word();
            let wanted = match (version, target, name) {
                (false, _, ".target" | ".address_size") => Some(".version"),
                (true, false, ".address_size") => Some(".target"),
                _ => None,
            };
            if let Some(wanted) = wanted
                && !complained
            {
                complained = true;
                let d = Diagnostic::new(Code::ModuleHead, self.t.span, format!("`{name}` comes before `{wanted}`"))
                    .here(format!("expected `{wanted}`"))
                    .note("a module begins with `.version`, `.target` and `.address_size`, in that order");
                self.report(d);
            }
            let again = match name {
                ".version" => std::mem::replace(&mut version, true),
                ".target" => {
                    target = true;
                    size
                }
                _ => std::mem::replace(&mut size, true),
            };
            if again {
                let message = if name == ".target" {
                    "`.target` comes after `.address_size`".into()
                } else {
                    format!("a second `{name}`")
                };
                self.wrong(self.t.span, message, "not here");
            }
            if self.head_directive().is_err() {
                self.skip_head();
            }
            if self.at(T::Semi) {
                let message = format!("`{name}` takes no semicolon");
                self.stray_semicolons(&message);
            }
        }
        for (there, name, example) in [(version, ".version", ".version 8.0\n"), (target, ".target", ".target sm_80\n")]
        {
            if !there && !complained {
                complained = true;
                let place = Span::new(self.here().start, self.here().start);
                let mut d = Diagnostic::new(Code::ModuleHead, place, format!("missing `{name}`"))
                    .here(format!("expected `{name}` before this"))
                    .note("a module begins with `.version`, `.target` and `.address_size`, in that order");
                d.suggestions.push(crate::Suggestion {
                    message: format!("for example `{}`", example.trim_end()),
                    edits: vec![(place, example.into())],
                    machine_applicable: false,
                });
                self.report(d);
            }
        }
    }

    fn skip_head(&mut self) {
        while !matches!(self.t.kind, T::Eof | T::Dot) && !self.first_of_line() {
            self.bump();
        }
    }

    pub(super) fn head_directive(&mut self) -> Result<()> {
        let word = self.word();
        let name = self.bump().span;
        let base = self.scratch.len();
        let result = match word {
            ".version" => self.version(name),
            ".target" => self.target(),
            _ => self.integer_operand("32 or 64").map(|size| self.scratch.push(size)),
        };
        let args = self.list(base);
        let directive = self.directive(name, args, name.to(self.prev));
        self.tree.items.push(Item::Directive(directive));
        result
    }

    /// `8.0`; ptxas requires it on the line of `.version`, without a comment in between.
    fn version(&mut self, name: Span) -> Result<()> {
        let text = self.word();
        let plain = self.at(T::Float)
            && text.bytes().all(|b| b.is_ascii_digit() || b == b'.')
            && !text.starts_with('.')
            && !text.ends_with('.');
        if !plain {
            return Err(self.expected("a version, such as `8.0`"));
        }
        let gap = self.str(Span::new(name.end, self.t.span.start));
        if gap.is_empty() || !gap.bytes().all(|b| matches!(b, b' ' | b'\t')) {
            let d = Diagnostic::new(
                Code::ModuleHead,
                self.t.span,
                "the version must be on the same line as `.version`, separated by spaces",
            )
            .here("not here")
            .fix(Span::new(name.end, self.t.span.start), " ", "move it after `.version`");
            self.report(d);
        }
        let token = self.bump();
        let version = self.literal(token);
        self.scratch.push(version);
        Ok(())
    }

    /// `sm_80, debug`
    fn target(&mut self) -> Result<()> {
        loop {
            let name = self.name("a target, such as `sm_80`")?;
            self.scratch.push(Operand { kind: Kind::Name, span: name });
            if !self.eat(T::Comma) {
                return Ok(());
            }
        }
    }

    fn item(&mut self) -> Result<()> {
        let start = self.t.span.start;
        let item = match word::classify(self.word()) {
            Word::Entry | Word::Func => Item::Func(self.function(start, List::empty(), false)?),
            Word::Linkage => {
                let linkage = self.linkage()?;
                match (self.at(T::Dot), word::classify(self.word())) {
                    (true, Word::Entry | Word::Func) => {
                        let common = self.tree.directives[linkage.start as usize].name;
                        if self.str(common) == ".common" {
                            self.wrong(common, "`.common` is only for variables", "not for kernels and functions");
                        }
                        Item::Func(self.function(start, linkage, false)?)
                    }
                    (true, Word::Space | Word::Align | Word::Attribute | Word::Vector | Word::Type) => {
                        Item::Var(self.variable(start, linkage)?)
                    }
                    (true, Word::Unknown) => {
                        self.unknown_directive();
                        return Err(Reported);
                    }
                    _ => return Err(self.expected("`.entry`, `.func` or a state space")),
                }
            }
            Word::Space | Word::Align | Word::Attribute | Word::Vector | Word::Type => {
                Item::Var(self.variable(start, List::empty())?)
            }
            Word::Alias => Item::Directive(self.alias()?),
            Word::Pragma => Item::Directive(self.pragma()?),
            Word::File => Item::Directive(self.file()?),
            Word::Section => Item::Directive(self.section()?),
            Word::Unknown => {
                self.unknown_directive();
                return Err(Reported);
            }
            Word::Head => {
                let name = self.word();
                self.wrong(self.t.span, format!("`{name}` is only allowed at the start of the module"), "too late");
                if self.head_directive().is_err() {
                    self.skip_head();
                }
                return Ok(());
            }
            Word::Tuning | Word::FuncNote | Word::Language => {
                self.wrong(
                    self.t.span,
                    format!("`{}` is only allowed after the parameters of a kernel or function", self.word()),
                    "not here",
                );
                self.bump();
                while matches!(self.t.kind, T::Int | T::Comma) {
                    self.bump();
                }
                return Ok(());
            }
            Word::Loc | Word::CallPrototype | Word::CallTargets | Word::BranchTargets | Word::Ptr => {
                self.wrong(self.t.span, format!("`{}` is not allowed outside a body", self.word()), "not here");
                self.bump();
                self.skip_body();
                return Ok(());
            }
        };
        self.tree.items.push(item);
        Ok(())
    }

    /// One word of linkage (section 11.6); a second one is a fault.
    pub(super) fn linkage(&mut self) -> Result<List<Directive>> {
        let first = self.bump().span;
        let index = self.directive(first, List::empty(), first);
        while self.at(T::Dot) && word::classify(self.word()) == Word::Linkage {
            let second = self.bump().span;
            let d = Diagnostic::new(
                Code::Syntax,
                second,
                format!("`{}` after `{}`: a declaration has one linkage", self.str(second), self.str(first)),
            )
            .here("duplicate")
            .label(first, "the first one");
            self.report(d);
        }
        Ok(List::new(index, 1))
    }

    /// `.alias a, b;` (section 11.2.3)
    pub(super) fn alias(&mut self) -> Result<u32> {
        let name = self.bump().span;
        let alias = self.name("the alias")?;
        if !self.eat(T::Comma) {
            return Err(self.expected("`,` and the name of a function"));
        }
        let of = self.name("the name of a function")?;
        let base = self.scratch.len();
        self.scratch.extend([alias, of].map(|span| Operand { kind: Kind::Name, span }));
        let args = self.list(base);
        self.semicolon(super::recover::After::End);
        Ok(self.directive(name, args, name.to(self.prev)))
    }

    /// `.file 1 "k.cu", 1234567, 890` (section 11.5.3). It ends without a semicolon.
    fn file(&mut self) -> Result<u32> {
        let name = self.bump().span;
        let index = self.integer_operand("the file's number")?;
        if !self.at(T::String) {
            return Err(self.expected("the file's path, in quotes"));
        }
        let path = self.bump().span;
        let base = self.scratch.len();
        self.scratch.extend([index, Operand { kind: Kind::String, span: path }]);
        let mut result = Ok(());
        for what in ["a time", "a size"] {
            if !self.eat(T::Comma) {
                break;
            }
            match self.integer_operand(what) {
                Ok(value) => self.scratch.push(value),
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

    /// `.section .debug_info { ... }` (section 11.5.2). The operands are its name, the names of the sections that it points to,
    /// and finally the raw body, including braces.
    fn section(&mut self) -> Result<u32> {
        let name = self.bump().span;
        if !self.at(T::Dot) {
            return Err(self.expected("a section's name, such as `.debug_info`"));
        }
        let base = self.scratch.len();
        self.section_name();
        if !self.at(T::LBrace) {
            self.scratch.truncate(base);
            return Err(self.expected("`{`"));
        }
        let open = self.bump().span;
        while !self.at(T::RBrace) {
            if let Err(stop) = self.section_line(open) {
                self.scratch.truncate(base);
                return Err(stop);
            }
        }
        self.bump();
        self.scratch.push(Operand { kind: Kind::String, span: open.to(self.prev) });
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
            self.scratch.push(Operand { kind: Kind::Name, span });
        }
    }

    /// `label:`, `.b32 1, 2`, `.b32 label+3`, `.b32 a-b` or `.b32 .debug_info+4`
    fn section_line(&mut self, open: Span) -> Result<()> {
        if self.at(T::Eof) {
            return Err(self.unclosed(T::RBrace, open));
        }
        if self.eat(T::Ident) {
            return if self.eat(T::Colon) { Ok(()) } else { Err(self.expected("`:`")) };
        }
        if !self.at(T::Dot) || word::classify(self.word()) != Word::Type {
            return Err(self.expected("`.b8`, `.b16`, `.b32`, `.b64`, a label or `}`"));
        }
        let ty = self.bump().span;
        let bits = match self.str(ty) {
            ".b8" => 8,
            ".b16" => 16,
            ".b32" => 32,
            ".b64" => 64,
            name => {
                let message = format!("debugging data has type `.b8`, `.b16`, `.b32` or `.b64`, found `{name}`");
                self.report(Diagnostic::new(Code::Syntax, ty, message).here("not here"));
                64
            }
        };
        let mut first = true;
        loop {
            match self.t.kind {
                T::Minus => {
                    let minus = self.bump().span;
                    let number = self.integer_operand("a number")?;
                    self.section_value(number, Some(minus), bits);
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
        if self.eat(T::Plus) {
            if !self.eat(T::Int) {
                return Err(self.expected("a number"));
            }
        } else if self.at(T::Minus) {
            let minus = self.bump().span;
            if section {
                let message = "numbers are added to sections, and nothing is subtracted from them";
                return Err(self.wrong(minus, message, "not here"));
            }
            if !self.eat(T::Ident) {
                return Err(self.wrong(self.t.span, "only labels are subtracted from labels", "expected a label"));
            }
        }
        if self.at(T::Comma) {
            let message = format!("`{}` holds numbers or one address, not a list of addresses", self.str(ty));
            return Err(self.wrong(self.t.span, message, "write another directive for the next one"));
        }
        Ok(())
    }

    /// A number of debugging data must fit its type, as ptxas has it: it looks at the low 32 bits of what is not negative, so large
    /// numbers pass as `.b32` and `.b64`; a negative one has at most 63 bits.
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
    fn dwarf(&mut self) -> u32 {
        let name = self.bump().span;
        let line_end =
            self.text[name.end as usize..].find('\n').map_or(self.text.len(), |n| name.end as usize + n) as u32;
        let start = self.t.span.start;
        if !self.at(T::Dot) || start >= line_end {
            self.expected("an assembler directive, such as `.byte`");
        }
        while !self.at(T::Eof) && self.t.span.start < line_end {
            self.bump();
        }
        let base = self.scratch.len();
        if self.prev != name {
            self.scratch.push(Operand { kind: Kind::String, span: Span::new(start, self.prev.end) });
        }
        let args = self.list(base);
        self.directive(name, args, name.to(self.prev))
    }
}
