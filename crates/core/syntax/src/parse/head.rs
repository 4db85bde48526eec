//! The head of a module: `.version`, `.target` and `.address_size` (manual, section 11.1).

use super::word::{self, Word};
use super::{Parser, Result};
use crate::lex::T;
use crate::tree::*;
use crate::{Code, Diagnostic, Span};

/// The note of messages about the order of directives.
const ORDER: &str = "a module begins with `.version`, `.target` and `.address_size`, in that order";

impl Parser<'_> {
    /// `.version`, `.target` and `.address_size`, which open every module in that order (section 11.1).
    pub(super) fn head(&mut self) {
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
                    .note(ORDER);
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
                self.missing_directive(name, example);
            }
        }
        self.headless = complained;
    }

    #[cold]
    fn missing_directive(&mut self, name: &str, example: &str) {
        let place = Span::new(self.here().start, self.here().start);
        let mut d = Diagnostic::new(Code::ModuleHead, place, format!("missing `{name}`"))
            .here(format!("expected `{name}` before this"))
            .note(ORDER);
        let later = format!("\n{name}");
        if let Some(at) = self.text.get(place.start as usize..).and_then(|rest| rest.find(&later)) {
            let start = place.start + at as u32 + 1;
            d = d.label(Span::new(start, start + name.len() as u32), "this comes too late");
        } else {
            d.suggestions.push(crate::Suggestion {
                message: format!("for example `{}`", example.trim_end()),
                edits: vec![(place, example.into())],
                machine_applicable: false,
            });
        }
        self.report(d);
    }

    pub(super) fn skip_head(&mut self) {
        while !matches!(self.t.kind, T::Eof | T::Dot) && !self.first_of_line() {
            self.bump();
        }
    }

    pub(super) fn head_directive(&mut self) -> Result<()> {
        let word = self.word();
        let name = self.bump().span;
        let base = self.buffers.list.len();
        let result = match word {
            ".version" => self.version(name),
            ".target" => self.target(),
            _ => self.integer_operand("32 or 64").map(|size| self.buffers.list.push(size)),
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
        self.buffers.list.push(version);
        Ok(())
    }

    /// `sm_80, debug`
    fn target(&mut self) -> Result<()> {
        loop {
            let name = self.name("a target, such as `sm_80`")?;
            self.buffers.list.push(Operand { kind: Kind::Name, span: name });
            if !self.eat(T::Comma) {
                return Ok(());
            }
        }
    }
}
