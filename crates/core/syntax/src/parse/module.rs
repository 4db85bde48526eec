//! Statements of the module: functions, variables, aliases, pragmas (manual, chapter 11).

use super::word::{self, Word};
use super::{Parser, Reported, Result};
use crate::lex::T;
use crate::tree::*;
use crate::{Code, Diagnostic};

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
                // If the head is known to be faulty, this is where it went.
                if !self.headless {
                    self.wrong(self.t.span, format!("`{name}` is only allowed at the start of the module"), "too late");
                }
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
        let base = self.buffers.list.len();
        self.buffers.list.extend([alias, of].map(|span| Operand { kind: Kind::Name, span }));
        let args = self.list(base);
        self.semicolon(super::recover::After::End);
        Ok(self.directive(name, args, name.to(self.prev)))
    }
}
