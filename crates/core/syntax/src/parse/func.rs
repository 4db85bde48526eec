//! Kernels, functions and prototypes: everything around the body (sections 11.2 to 11.4 and 11.7).

use super::var::Place;
use super::word::{self, Word};
use super::{Parser, Reported, Result};
use crate::lex::T;
use crate::tree::*;
use crate::{Code, Diagnostic, Span};

/// A function of which only the first word is read; its name is expected at a place.
fn unread(kind: FuncKind, linkage: List<Directive>, name: Span) -> Func {
    Func {
        linkage,
        kind,
        attribute: None,
        rets: None,
        name,
        params: None,
        directives: List::empty(),
        body: None,
        braces: (Span::default(), Span::default()),
        header: Span::default(),
        span: Span::default(),
    }
}

impl Parser<'_> {
    /// `.entry` or `.func`, from the word on.
    pub(super) fn function(&mut self, start: u32, linkage: List<Directive>, in_body: bool) -> Result<u32> {
        let kind = if self.word() == ".entry" { FuncKind::Entry } else { FuncKind::Func };
        self.bump();
        let mut func = unread(kind, linkage, self.prev.after());
        let header_is_ok = self.signature(&mut func).is_ok();
        if !header_is_ok {
            self.skip_header();
        }
        func.header = self.since(start);
        match self.t.kind {
            T::LBrace if !in_body && self.passing != super::outline::Passing::Never => {
                func.braces = self.pass_body();
                func.body = Some(List::empty());
            }
            T::LBrace if !in_body => {
                let open = self.bump().span;
                let (body, close) = self.body(open);
                func.body = Some(body);
                func.braces = (open, close);
            }
            T::Semi => {
                if kind == FuncKind::Entry && !func.directives.is_empty() && header_is_ok {
                    self.declaration_with_directives(&func);
                }
                self.bump();
            }
            _ if header_is_ok && !in_body && self.begins_body() => self.body_without_brace(&mut func),
            // ptxas takes a declaration of a function without its semicolon.
            _ if kind == FuncKind::Func && !in_body => {}
            T::LBrace => {
                return Err(self.wrong(self.t.span, "a function cannot be defined inside another", "expected `;`"));
            }
            _ if header_is_ok => self.neither_body_nor_end(in_body),
            _ => {}
        }
        func.span = self.since(start);
        self.tree.funcs.push(func);
        Ok(self.tree.funcs.len() as u32 - 1)
    }

    /// Skips the rest of a wrong header: the body is worth reading all the same.
    #[cold]
    fn skip_header(&mut self) {
        while !matches!(self.t.kind, T::LBrace | T::Semi | T::Eof | T::RBrace) {
            if self.at(T::Dot)
                && self.first_of_line()
                && matches!(word::classify(self.word()), Word::Entry | Word::Func | Word::Linkage)
            {
                break;
            }
            self.bump();
        }
    }

    #[cold]
    fn declaration_with_directives(&mut self, func: &Func) {
        let message = "expected the body of the kernel, `{`, found `;`";
        let found = Diagnostic::new(Code::Syntax, self.t.span, message).here("not expected");
        let at = self.tree.directives[func.directives.range()].first().map_or(func.name, |d| d.name);
        self.report(
            found
                .label(at, "directives are only allowed before a body")
                .help("a kernel declaration ends after its parameters"),
        );
    }

    #[cold]
    fn body_without_brace(&mut self, func: &mut Func) {
        let place = self.prev.after();
        let message = format!("expected `{{` before the body, found {}", self.found());
        let found = Diagnostic::new(Code::Syntax, place, message).here("expected `{`");
        self.report(found.fix(place, " {", "open the body with `{`"));
        let (body, close) = self.body(place);
        func.body = Some(body);
        func.braces = (place, close);
    }

    #[cold]
    fn neither_body_nor_end(&mut self, in_body: bool) {
        let place = self.prev.after();
        let what = match in_body {
            true => "expected `;` after the declaration",
            false => "expected the body of the kernel, `{`, or `;`",
        };
        let message = format!("{what}, found {}", self.found());
        self.report(
            Diagnostic::new(Code::Syntax, self.here(), message).here("not expected").label(place, "expected here"),
        );
        if self.at(T::LParen) && !in_body {
            self.skip_item();
        }
    }

    /// Whether the token after a header can only be in a body: an instruction, or a variable of a thread.
    #[cold]
    fn begins_body(&self) -> bool {
        match self.t.kind {
            T::Ident | T::At => true,
            T::Dot => matches!(self.word(), ".reg" | ".local" | ".param"),
            _ => false,
        }
    }

    fn signature(&mut self, func: &mut Func) -> Result<()> {
        let place = if func.kind == FuncKind::Entry { Place::Kernel } else { Place::Function };
        if self.at(T::Dot) && self.word() == ".attribute" {
            if func.kind == FuncKind::Entry {
                return Err(self.wrong(self.t.span, "a kernel cannot have an `.attribute`", "expected a name"));
            }
            func.attribute = Some(self.attribute(true)?);
        }
        if self.at(T::LParen) {
            if func.kind == FuncKind::Entry {
                self.wrong(self.t.span, "a kernel cannot return a value", "expected the kernel's name");
                let list = self.parameters(Place::Kernel)?;
                if !self.at(T::Ident) {
                    // Only the name is missing.
                    func.params = Some(list);
                    func.directives = self.notes(func.kind)?;
                    return Ok(());
                }
            } else {
                func.rets = Some(self.parameters(Place::Function)?);
            }
        }
        func.name = self.name(if func.kind == FuncKind::Entry {
            "the name of the kernel"
        } else {
            "the name of the function"
        })?;
        if self.at(T::LParen) {
            func.params = Some(self.parameters(place)?);
        }
        func.directives = self.notes(func.kind)?;
        Ok(())
    }

    /// Directives between the parameters and the body.
    fn notes(&mut self, kind: FuncKind) -> Result<List<Directive>> {
        let first = self.tree.directives.len() as u32;
        while self.at(T::Dot) {
            let word = word::classify(self.word());
            let count = self.tree.directives.len() as u32 - first;
            match (kind, word) {
                (_, Word::Language) => {
                    let name = self.bump().span;
                    let all = &self.tree.directives[first as usize..];
                    if kind != FuncKind::Entry
                        && let Some(earlier) = all.iter().map(|d| d.name).find(|d| self.str(*d) == ".language")
                    {
                        let d = Diagnostic::new(Code::Duplicate, name, "`.language` occurs once on a function");
                        self.report(d.label(earlier, "first here"));
                    }
                    self.languages(name)?;
                }
                (FuncKind::Entry, Word::Tuning) => self.tuning()?,
                // Not in the manual; ptxas takes it on functions, too.
                (FuncKind::Func, Word::Tuning) if self.word() == ".local_maxnreg" => self.tuning()?,
                (FuncKind::Entry, Word::Pragma) => {
                    self.pragma()?;
                }
                (FuncKind::Func | FuncKind::Prototype, Word::FuncNote) => {
                    if self.word() == ".noreturn" && count > 0 {
                        let earlier = self.tree.directives[first as usize];
                        let d = Diagnostic::new(
                            Code::WordOrder,
                            self.t.span,
                            "`.noreturn` must be the first directive after the parameters, and occur once",
                        )
                        .here("not here")
                        .label(earlier.name, "must come before it");
                        self.report(d);
                    }
                    self.func_note()?;
                }
                (FuncKind::Func | FuncKind::Prototype, Word::Tuning) => {
                    let message = format!("`{}` is only for kernels, not for functions", self.word());
                    self.report(
                        Diagnostic::new(Code::Syntax, self.t.span, message)
                            .here("allowed after the parameters of an `.entry`"),
                    );
                    self.tuning()?;
                }
                (FuncKind::Entry, Word::FuncNote) => {
                    let message = format!("`{}` is only for functions, not for kernels", self.word());
                    self.report(
                        Diagnostic::new(Code::Syntax, self.t.span, message)
                            .here("allowed after the parameters of a `.func`"),
                    );
                    self.func_note()?;
                }
                (_, Word::Unknown) => {
                    self.unknown_directive();
                    self.skip_unknown_note();
                }
                // A declaration without semicolon ends here; a kernel's does not, and is reported by the caller.
                _ => break,
            }
        }
        Ok(List::new(first, self.tree.directives.len() as u32 - first))
    }

    /// Goes past the arguments of an unknown directive of a header.
    fn skip_unknown_note(&mut self) {
        self.bump();
        while matches!(self.t.kind, T::Int | T::Comma | T::String | T::Ident | T::Float) && !self.first_of_line() {
            self.bump();
        }
    }

    #[cold]
    pub(super) fn unknown_directive(&mut self) {
        let word = self.word();
        let mut d = Diagnostic::new(Code::UnknownDirective, self.t.span, format!("unknown directive `{word}`"))
            .here("PTX has no such directive");
        if let Some(near) = word::suggest(word) {
            d.suggestions.push(crate::Suggestion {
                message: format!("`{near}`?"),
                edits: vec![(self.t.span, near.into())],
                machine_applicable: false,
            });
        }
        self.report(d);
    }

    /// `.maxntid 16, 4`, `.explicitcluster`
    fn tuning(&mut self) -> Result<()> {
        let word = self.word();
        let name = self.bump().span;
        let (least, most) = match word {
            ".maxntid" | ".reqntid" | ".reqnctapercluster" => (1, 3),
            ".explicitcluster" | ".blocksareclusters" => (0, 0),
            _ => (1, 1),
        };
        self.numbers(name, least, most)
    }

    /// `.noreturn`, `.abi_preserve 4`
    fn func_note(&mut self) -> Result<()> {
        let wanted = (self.word() != ".noreturn") as usize;
        let name = self.bump().span;
        self.numbers(name, wanted, wanted)
    }

    /// A directive whose arguments are integer literals.
    fn numbers(&mut self, name: Span, least: usize, most: usize) -> Result<()> {
        let base = self.buffers.list.len();
        let result = self.number_parts(name, least, most);
        let args = self.list(base);
        self.directive(name, args, name.to(self.prev));
        result
    }

    fn number_parts(&mut self, name: Span, least: usize, most: usize) -> Result<()> {
        let word = self.str(name);
        for n in 0..most {
            if n >= least.max(1) && !self.eat(T::Comma) {
                break;
            }
            let value = self.integer_operand(&format!("a number for `{word}`"))?;
            self.buffers.list.push(value);
        }
        if matches!(self.t.kind, T::Comma | T::Int | T::Plus | T::Minus | T::Star) {
            let message = match most {
                0 => format!("`{word}` takes no arguments"),
                1 => format!("`{word}` takes one integer literal"),
                _ => format!("`{word}` takes one to three integer literals, separated by `,`"),
            };
            return Err(self.wrong(self.t.span, message, "excess argument"));
        }
        Ok(())
    }

    /// `.language 1, 2` or `.language "name"`
    fn languages(&mut self, name: Span) -> Result<()> {
        let base = self.buffers.list.len();
        let mut result = Ok(());
        loop {
            match self.t.kind {
                T::Int | T::String => {
                    let token = self.bump();
                    let kind = if token.kind == T::String {
                        Operand { kind: Kind::String, span: token.span }
                    } else {
                        self.literal(token)
                    };
                    self.buffers.list.push(kind);
                }
                _ => {
                    result = Err(self.expected("a language's number or name"));
                    break;
                }
            }
            if !self.eat(T::Comma) {
                break;
            }
        }
        let args = self.list(base);
        self.directive(name, args, name.to(self.prev));
        result
    }

    /// `.pragma "nounroll";`
    pub(super) fn pragma(&mut self) -> Result<u32> {
        let name = self.bump().span;
        let base = self.buffers.list.len();
        let mut result = Ok(());
        loop {
            if !self.at(T::String) {
                result = Err(self.expected("a string"));
                break;
            }
            let span = self.bump().span;
            self.buffers.list.push(Operand { kind: Kind::String, span });
            if !self.eat(T::Comma) {
                break;
            }
        }
        let args = self.list(base);
        result?;
        if !self.eat(T::Semi) {
            let place = self.prev.after();
            let d = Diagnostic::new(
                Code::MissingSemicolon,
                place,
                format!("expected `;` after `.pragma`, found {}", self.found()),
            )
            .here("expected `;`")
            .fix(place, ";", "end the statement with `;`");
            self.report(d);
        }
        Ok(self.directive(name, args, name.to(self.prev)))
    }

    /// `.callprototype (.param .b32 _) _ (.param .b64 _) .noreturn;` (section 11.3.3), from the word on.
    pub(super) fn prototype(&mut self) -> Result<u32> {
        let start = self.bump().span.start;
        let mut func = unread(FuncKind::Prototype, List::empty(), self.prev.after());
        if self.at(T::LParen) {
            func.rets = Some(self.parameters(Place::Prototype)?);
        }
        if !self.at(T::Underscore) {
            if self.at(T::Ident) {
                let name = self.bump().span;
                self.report(
                    Diagnostic::new(Code::Syntax, name, "the name of a prototype must be `_`")
                        .here("expected `_`")
                        .fix(name, "_", "write `_`"),
                );
            } else {
                return Err(self.expected("`_`, the name of every prototype"));
            }
        } else {
            self.bump();
        }
        func.name = self.prev;
        if self.at(T::LParen) {
            func.params = Some(self.parameters(Place::Prototype)?);
        }
        func.directives = self.notes(FuncKind::Prototype)?;
        func.header = self.since(start);
        if !self.semicolon(super::recover::After::End) {
            return Err(Reported);
        }
        func.span = self.since(start);
        self.tree.funcs.push(func);
        Ok(self.tree.funcs.len() as u32 - 1)
    }
}
