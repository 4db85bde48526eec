//! Operands of instructions (chapter 6). All instructions share one grammar, except `call`, whose lists are in parentheses.

use super::{Parser, Reported, Result};
use crate::lex::T;
use crate::tree::{Expr, Kind, List, Operand, UnaryOp};
use crate::{Code, Diagnostic, Span};

/// Most names in a row that brackets hold.
const MAX_NAMES: usize = 4;

impl Parser<'_> {
    /// One operand.
    #[inline]
    pub(super) fn operand(&mut self) -> Result<Operand> {
        match self.t.kind {
            T::Ident => {
                let span = self.bump().span;
                match self.t.kind {
                    T::Comma | T::Semi => Ok(Operand { kind: Kind::Name, span }),
                    T::Dot => Ok(self.suffix(span)),
                    T::Plus => self.offset(Operand { kind: Kind::Name, span }),
                    T::Pipe => self.pair(Operand { kind: Kind::Name, span }),
                    T::LBrack => self.index(span),
                    T::Minus => self.minus(span),
                    _ => Ok(Operand { kind: Kind::Name, span }),
                }
            }
            T::LBrack => self.address(),
            T::LBrace => {
                let vector = self.vector()?;
                match self.t.kind {
                    T::Pipe => self.pair(vector),
                    _ => Ok(vector),
                }
            }
            T::Underscore => {
                let name = Operand { kind: Kind::Name, span: self.bump().span };
                if self.at(T::Pipe) { self.pair(name) } else { Ok(name) }
            }
            T::Not if self.second().kind == T::Ident => {
                let start = self.bump().span.start;
                let name = self.bump().span;
                let inner = self.keep(Operand { kind: Kind::Name, span: name });
                Ok(Operand { kind: Kind::Not(inner), span: Span::new(start, name.end) })
            }
            T::Minus if self.second().kind == T::Ident => {
                let start = self.bump().span.start;
                let span = self.bump().span;
                let name = if self.at(T::Dot) { self.suffix(span) } else { Operand { kind: Kind::Name, span } };
                let inner = self.keep(name);
                Ok(self.keep_expr(Expr::Unary(UnaryOp::Minus, inner), Span::new(start, name.span.end)))
            }
            T::Int | T::Float | T::Single | T::WarpSize | T::LParen | T::Plus | T::Minus | T::Not | T::Tilde => {
                self.constant()
            }
            _ => Err(self.no_operand()),
        }
    }

    #[cold]
    fn no_operand(&mut self) -> Reported {
        let help = match self.t.kind {
            T::Amp => "the name of a variable already is its address: `mov.u64 %rd, x;`",
            T::Percent => "inline assembly writes `%%` for `%`; in a file, write a single `%`",
            T::Star => "access memory with `ld` and `st`, with the address in brackets",
            _ => return self.expected("an operand"),
        };
        let message = format!("expected an operand, found {}", self.found());
        self.report(Diagnostic::new(Code::Syntax, self.t.span, message).here("expected an operand").help(help));
        Reported
    }

    /// `%tid.x`, `v.b0`: the dotted word after a name belongs to the name.
    fn suffix(&mut self, name: Span) -> Operand {
        let end = self.bump().span.end;
        Operand { kind: Kind::Name, span: Span::new(name.start, end) }
    }

    /// `base + constant`
    pub(super) fn offset(&mut self, base: Operand) -> Result<Operand> {
        self.bump();
        let offset = self.constant()?;
        let span = base.span.to(offset.span);
        let base = self.keep(base);
        let offset = self.keep(offset);
        Ok(Operand { kind: Kind::Sum { base, offset, minus: false }, span })
    }

    /// `name - constant`, which means something but is not PTX.
    #[cold]
    fn minus(&mut self, name: Span) -> Result<Operand> {
        let sign = self.bump().span;
        if matches!(self.t.kind, T::Ident | T::At | T::Dot | T::RBrace) && self.first_of_line() {
            return Err(self.nothing_follows("a constant"));
        }
        let offset = self.constant()?;
        let simple = matches!(offset.kind, Kind::Int { .. });
        let text = self.str(offset.span);
        let with = if simple { format!("+-{text}") } else { format!("+-({text})") };
        let d = Diagnostic::new(Code::Syntax, sign, "an offset can only be added, with `+`")
            .here("not allowed before an offset")
            .fix(sign.to(offset.span), with, "add the negative offset");
        self.report(d);
        let base = self.keep(Operand { kind: Kind::Name, span: name });
        let index = self.keep(offset);
        Ok(Operand { kind: Kind::Sum { base, offset: index, minus: true }, span: name.to(offset.span) })
    }

    /// `p|q`
    fn pair(&mut self, first: Operand) -> Result<Operand> {
        self.bump();
        let named = matches!(first.kind, Kind::Name) && self.str(first.span) != "_";
        let second = match self.t.kind {
            T::Ident => Operand { kind: Kind::Name, span: self.bump().span },
            T::Underscore if named => Operand { kind: Kind::Name, span: self.bump().span },
            T::At | T::Dot | T::RBrace if self.first_of_line() => return Err(self.nothing_follows("a name")),
            _ => return Err(self.expected("a name after `|`")),
        };
        let index = self.keep(first);
        self.keep(second);
        Ok(Operand { kind: Kind::Pair(index), span: first.span.to(second.span) })
    }

    /// `a[3]`, `a[i]`, `a[i+3]`
    fn index(&mut self, name: Span) -> Result<Operand> {
        let open = self.bump().span;
        let index = match self.t.kind {
            T::Ident => {
                let inner = Operand { kind: Kind::Name, span: self.bump().span };
                if self.at(T::Plus) { self.offset(inner)? } else { inner }
            }
            _ => self.constant()?,
        };
        self.close(T::RBrack, open)?;
        let base = self.keep(Operand { kind: Kind::Name, span: name });
        let index = self.keep(index);
        Ok(Operand { kind: Kind::Index { base, index }, span: name.to(self.prev) })
    }

    /// `[a]`, `[a+4]`, `[16]`, `[tex, {x, y}]`, `[a].unified`
    fn address(&mut self) -> Result<Operand> {
        let open = self.bump().span;
        let base = self.buffers.list.len();
        let result = self.address_parts(open);
        let list = self.list(base);
        result?;
        // The checker decides whether it is allowed here; the span records its presence.
        if self.at(T::Dot) && self.word() == ".unified" {
            self.bump();
        }
        Ok(Operand { kind: Kind::Brackets(list), span: open.to(self.prev) })
    }

    fn address_parts(&mut self, open: Span) -> Result<()> {
        if self.at(T::Ident) {
            let name = Operand { kind: Kind::Name, span: self.t.span };
            if self.bump_with(b']') {
                self.buffers.list.push(name);
                return Ok(());
            }
        }
        let first = self.address_base()?;
        let plain = matches!(first.kind, Kind::Name);
        self.buffers.list.push(first);
        if self.at(T::Comma) && !plain {
            return Err(self.wrong(
                self.t.span,
                "an address ends with `]`; only a plain name without an offset can be followed by coordinates",
                "expected `]`",
            ));
        }
        self.coordinates(first.span, open)
    }

    /// The first part of an address: a name or a constant, with its offset.
    fn address_base(&mut self) -> Result<Operand> {
        match self.t.kind {
            T::Ident => {
                let name = Operand { kind: Kind::Name, span: self.bump().span };
                match self.t.kind {
                    T::Plus => self.offset(name),
                    T::Minus => self.minus(name.span),
                    T::Star => Err(self.scaled_address()),
                    T::Dot => Err(self.wrong(
                        self.t.span,
                        format!("an address cannot have the suffix {}", self.found()),
                        "not expected",
                    )),
                    _ => Ok(name),
                }
            }
            T::RBrack => Err(self.expected("an address")),
            _ => self.constant(),
        }
    }

    #[cold]
    fn scaled_address(&mut self) -> Reported {
        let message = "an address is one register or symbol plus a constant";
        let d = Diagnostic::new(Code::Syntax, self.t.span, message).here("multiplication is not allowed here");
        self.report(d.help("compute it first: `mad.wide.u32 %rd, %r, 4, %base;`"));
        Reported
    }

    /// What follows the first part of an address, up to `]`: names, and coordinates in braces.
    fn coordinates(&mut self, first: Span, open: Span) -> Result<()> {
        let mut names = 1;
        while self.eat(T::Comma) {
            match self.t.kind {
                T::Ident if names < MAX_NAMES => {
                    let span = self.bump().span;
                    self.buffers.list.push(Operand { kind: Kind::Name, span });
                    names += 1;
                }
                T::LBrace => {
                    let vector = self.vector()?;
                    self.buffers.list.push(vector);
                    if names > 1 && self.eat(T::Comma) {
                        self.overrides()?;
                    }
                    return self.close(T::RBrack, open);
                }
                T::Int if names == 1 => return Err(self.offset_after_comma(first)),
                _ if names < MAX_NAMES => return Err(self.expected("a name or `{`")),
                _ => return Err(self.expected("`{`")),
            }
        }
        if names == MAX_NAMES {
            return Err(self.expected("`,` and coordinates in braces"));
        }
        self.close(T::RBrack, open)
    }

    /// `[a, 4]`, meant as `[a+4]`.
    #[cold]
    fn offset_after_comma(&mut self, base: Span) -> Reported {
        let message = "an offset is added to its base";
        let d = Diagnostic::new(Code::Syntax, self.t.span, message).here("not separated by a comma");
        let with = format!("+{}", self.str(self.t.span));
        let comma = Span::new(base.end, self.t.span.end);
        self.report(d.fix(comma, &with, format!("write `[{}{with}]`", self.str(base))));
        Reported
    }

    /// What follows the first vector of a tensor copy that replaces sizes, or sizes and strides, of the tensor map:
    /// `{x}` or `{lower}, upper, {x, y}`.
    fn overrides(&mut self) -> Result<()> {
        let vector = |p: &mut Self| {
            if !p.at(T::LBrace) {
                return Err(p.expected("`{`"));
            }
            let vector = p.vector()?;
            p.buffers.list.push(vector);
            Ok(())
        };
        vector(self)?;
        if !self.eat(T::Comma) {
            return Ok(());
        }
        if !self.at(T::Ident) {
            return Err(self.expected("a name"));
        }
        let span = self.bump().span;
        self.buffers.list.push(Operand { kind: Kind::Name, span });
        if !self.eat(T::Comma) {
            return Err(self.expected("`,`"));
        }
        vector(self)
    }

    /// `{a, b.x, 1, _}`
    fn vector(&mut self) -> Result<Operand> {
        let open = self.bump().span;
        let base = self.buffers.list.len();
        let result = self.vector_parts(open);
        let list = self.list(base);
        result?;
        Ok(Operand { kind: Kind::Braces(list), span: open.to(self.prev) })
    }

    fn vector_parts(&mut self, open: Span) -> Result<()> {
        loop {
            if self.at(T::Ident) {
                let name = Operand { kind: Kind::Name, span: self.t.span };
                if self.bump_with(b',') {
                    self.buffers.list.push(name);
                    continue;
                }
                if self.bump_with(b'}') {
                    self.buffers.list.push(name);
                    return Ok(());
                }
            }
            let part = match self.t.kind {
                T::Ident => {
                    let span = self.bump().span;
                    if self.at(T::Dot) { self.suffix(span) } else { Operand { kind: Kind::Name, span } }
                }
                T::Underscore => Operand { kind: Kind::Name, span: self.bump().span },
                T::RBrace | T::Semi | T::Eof => return Err(self.expected("an element of the vector")),
                _ => self.constant()?,
            };
            self.buffers.list.push(part);
            if !self.eat(T::Comma) {
                return self.close(T::RBrace, open);
            }
        }
    }

    /// The operands of `call` (section 9.7.12.5): `(ret), f, (args), prototype`.
    pub(super) fn call(&mut self) -> Result<()> {
        if self.at(T::LParen) {
            let rets = self.arguments()?;
            self.buffers.list.push(rets);
            self.comma("`,` and the function's name")?;
        }
        let callee = self.name("the name of a function")?;
        self.buffers.list.push(Operand { kind: Kind::Name, span: callee });
        if !self.call_comma()? {
            return Ok(());
        }
        if self.at(T::LParen) {
            let args = self.arguments()?;
            self.buffers.list.push(args);
            if !self.call_comma()? {
                return Ok(());
            }
        }
        if self.at(T::LParen) {
            return Err(self.second_list());
        }
        let targets = self.name("the label of a `.callprototype` or `.calltargets`")?;
        self.buffers.list.push(Operand { kind: Kind::Name, span: targets });
        Ok(())
    }

    /// `call f, (a), (r)`: the results are after the arguments.
    #[cold]
    fn second_list(&mut self) -> Reported {
        let d = Diagnostic::new(Code::Syntax, self.t.span, "a call has one argument list after the function's name")
            .here("expected the label of a `.callprototype` or `.calltargets`");
        self.report(d.help("results come first: `call (result), function, (arguments);`"));
        Reported
    }

    /// A comma inside a call; a forgotten one before `(` is put back.
    fn call_comma(&mut self) -> Result<bool> {
        if self.at(T::LParen) {
            self.missing_comma();
            return Ok(true);
        }
        Ok(self.eat(T::Comma))
    }

    fn comma(&mut self, what: &str) -> Result<()> {
        if self.eat(T::Comma) {
            return Ok(());
        }
        if self.at(T::Ident) {
            self.missing_comma();
            return Ok(());
        }
        Err(self.expected(what))
    }

    #[cold]
    pub(super) fn missing_comma(&mut self) {
        let place = self.prev.after();
        let d = Diagnostic::new(Code::Syntax, place, format!("expected `,` before {}", self.found()))
            .here("expected `,`")
            .fix(place, ",", "put a `,` here");
        self.report(d);
    }

    /// `(a, 5, _)`, `()`
    fn arguments(&mut self) -> Result<Operand> {
        let open = self.bump().span;
        let base = self.buffers.list.len();
        let result = self.argument_parts(open);
        let list: List<Operand> = self.list(base);
        result?;
        Ok(Operand { kind: Kind::Paren(list), span: open.to(self.prev) })
    }

    fn argument_parts(&mut self, open: Span) -> Result<()> {
        if self.eat(T::RParen) {
            return Ok(());
        }
        loop {
            let part = match self.t.kind {
                T::Ident | T::Underscore => Operand { kind: Kind::Name, span: self.bump().span },
                T::RParen | T::Semi | T::Eof => return Err(self.expected("an argument")),
                _ => self.constant()?,
            };
            self.buffers.list.push(part);
            if !self.eat(T::Comma) {
                return self.close(T::RParen, open);
            }
        }
    }
}
