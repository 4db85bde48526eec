//! Statements of a body: instructions, labels, blocks, declarations, and the directives allowed there.

use super::recover::After;
use super::word::{self, Word};
use super::{NESTED_BLOCKS, Parser, Reported, Result};
use crate::lex::{T, Token};
use crate::tree::*;
use crate::{Code, Diagnostic, Span};

impl Parser<'_> {
    /// Everything between a function's braces, and the closing one.
    pub(super) fn body(&mut self, open: Span) -> (List<Stmt>, Span) {
        let first = self.tree.stmts.len() as u32;
        let mut blocks: Vec<Span> = Vec::new();
        let mut label = false;
        // The number of errors before the previous statement, and before this one.
        let mut errors = (0, 0);
        let close = loop {
            let labeled = std::mem::take(&mut label);
            errors = (errors.1, self.diagnostics.len());
            match self.t.kind {
                T::Ident => label = self.label_or_instruction(),
                T::At => {
                    if self.guarded().is_err() {
                        self.skip_statement();
                    }
                }
                T::Dot => {
                    let word = word::classify(self.word());
                    if self.leaves_body(word) {
                        self.report_unclosed(blocks.last().copied().unwrap_or(open));
                        break self.prev.after();
                    }
                    if self.dotted(word, labeled).is_err() {
                        self.skip_statement();
                    }
                }
                T::LBrace => {
                    let span = self.bump().span;
                    if blocks.len() == NESTED_BLOCKS {
                        let message = format!("blocks are nested more than {NESTED_BLOCKS} deep");
                        self.report(Diagnostic::new(Code::TooDeep, span, message).here("exceeds the limit here"));
                    }
                    blocks.push(span);
                    self.tree.stmts.push(Stmt::Open(span));
                }
                T::RBrace => {
                    let span = self.bump().span;
                    if blocks.pop().is_none() {
                        break span;
                    }
                    self.tree.stmts.push(Stmt::Close(span));
                }
                T::Semi => self.stray_semicolons("PTX has no empty statements"),
                T::Eof => {
                    self.report_unclosed(blocks.last().copied().unwrap_or(open));
                    break self.prev.after();
                }
                T::Bad => {
                    self.bump();
                }
                _ => {
                    // It may also be the rest of a statement that an error has broken off.
                    if errors.0 == errors.1 || first == self.tree.stmts.len() as u32 {
                        self.expected("a statement");
                    }
                    self.skip_statement();
                }
            }
        };
        // Blocks stay balanced even if a brace is missing.
        for _ in blocks {
            self.tree.stmts.push(Stmt::Close(close));
        }
        (List::new(first, self.tree.stmts.len() as u32 - first), close)
    }

    /// A statement that begins with a name; true for a label.
    fn label_or_instruction(&mut self) -> bool {
        let name = self.bump_dotted();
        if self.at(T::Colon) && self.prev == name.span {
            self.bump();
            self.tree.stmts.push(Stmt::Label(name.span));
            return true;
        }
        if matches!(self.t.kind, T::Ident | T::LParen | T::Assign) && self.is_foreign(name) {
            self.skip_statement();
        } else {
            self.instruction(name.span.start, None, name);
        }
        false
    }

    /// Whether a statement of another language begins here; if so, that is said.
    fn is_foreign(&mut self, first: Token) -> bool {
        let word = self.str(first.span);
        let (message, help) = match super::foreign::statement(word) {
            Some(help) => (format!("PTX has no `{word}`"), help),
            None if self.at(T::Assign) => {
                ("PTX has no assignments".to_owned(), "the destination is the first operand: `add.s32 %r1, %r2, %r3;`")
            }
            None => return false,
        };
        let at = if self.at(T::Assign) { self.t.span } else { first.span };
        self.report(Diagnostic::new(Code::Syntax, at, message).here("not PTX").help(help));
        true
    }

    /// Whether a directive shows that the body should have ended before it.
    fn leaves_body(&mut self, word: Word) -> bool {
        match word {
            Word::Entry | Word::Section | Word::File => self.first_of_line(),
            Word::Linkage => {
                self.first_of_line() && {
                    let mut ahead = self.lex.ahead();
                    let next = ahead.next();
                    match (next.kind, word::classify(self.str(next.span))) {
                        (T::Dot, Word::Entry | Word::Space | Word::Align) => true,
                        (T::Dot, Word::Func) => self.defines(),
                        _ => false,
                    }
                }
            }
            Word::Func => self.first_of_line() && self.defines(),
            _ => false,
        }
    }

    /// Whether the header at the current token is followed by a body.
    fn defines(&self) -> bool {
        let mut ahead = self.lex.ahead();
        for _ in 0..256 {
            match ahead.next().kind {
                T::LBrace => return true,
                T::Semi | T::RBrace | T::Eof => return false,
                _ => {}
            }
        }
        true
    }

    #[cold]
    fn report_unclosed(&mut self, open: Span) {
        if self.at(T::Eof) && (self.lex.cut_off || self.lex.stopped) {
            return;
        }
        let at = self.here();
        let what = if self.at(T::Eof) { "the file ends".into() } else { format!("{} follows", self.found()) };
        let d = Diagnostic::new(Code::Unclosed, at, format!("`{{` is never closed: {what} inside the body"))
            .here("expected `}`")
            .label(open, "opened here");
        self.report(d);
    }

    /// `@p` or `@!p`, and its instruction.
    fn guarded(&mut self) -> Result<()> {
        let start = self.bump().span.start;
        let negated = self.eat(T::Not);
        let name = self.name("the predicate of the guard")?;
        if !self.at(T::Ident) {
            return Err(self.expected("an instruction after the guard"));
        }
        let opcode = self.bump_dotted();
        if self.at(T::Colon) && self.prev == opcode.span {
            return Err(self.wrong(opcode.span, "a label must come before the guard", "expected an instruction"));
        }
        self.instruction(start, Some(Guard { name, negated }), opcode);
        Ok(())
    }

    /// The rest of an instruction, after its first words. More dotted words may follow.
    #[inline]
    fn instruction(&mut self, start: u32, guard: Option<Guard>, opcode: Token) {
        while self.t.kind == T::Dot || self.t.kind == T::LBrack && self.names_bank() {
            self.bump();
        }
        let mnemonic = Span::new(opcode.span.start, self.prev.end);
        let base = self.buffers.list.len();
        let result = if opcode.span.len() == 4 && self.str(opcode.span) == "call" {
            self.call().map(|()| {
                let errors = self.diagnostics.len();
                self.semicolon(After::End);
                if self.diagnostics.get(errors).is_some_and(|d| d.code == Code::Syntax) {
                    // Its arguments may be what could not be read.
                    self.buffers.list.push(Operand { kind: Kind::Error, span: self.here() });
                }
            })
        } else if self.t.kind == T::Semi {
            self.bump();
            Ok(())
        } else if self.ends_early() {
            if guard.is_none() && self.names_label(opcode) {
                return self.label_without_colon(opcode.span);
            }
            // `ret` without its semicolon.
            self.semicolon(After::End);
            Ok(())
        } else if guard.is_none() && self.follows_label(opcode) {
            return self.label_without_colon(opcode.span);
        } else {
            self.operands()
        };
        if result.is_err() {
            // Whoever resolves instructions leaves one with an unreadable operand alone.
            self.buffers.list.push(Operand { kind: Kind::Error, span: self.here() });
            self.skip_statement();
        }
        let operands = self.list(base);
        let span = self.since(start);
        self.tree.instrs.push(Instr { guard, mnemonic, operands, span });
        self.tree.stmts.push(Stmt::Instr(self.tree.instrs.len() as u32 - 1));
    }

    /// Whether the bracket belongs to the mnemonic: the number of a bank, as in `ld.const[2].b32` (section 5.1.3.1).
    /// It is read up to the number.
    #[cold]
    fn names_bank(&mut self) -> bool {
        let mut ahead = self.lex.ahead();
        let found = self.str(self.prev).ends_with(".const")
            && self.prev.end == self.t.span.start
            && ahead.next().kind == T::Int
            && ahead.next().kind == T::RBrack;
        if found {
            self.bump();
            self.bump();
        }
        found
    }

    /// Whether the next statement, or the end of the body, follows the mnemonic.
    #[inline]
    fn ends_early(&self) -> bool {
        matches!(self.t.kind, T::RBrace | T::Eof | T::At)
            || (self.t.kind == T::Ident && self.first_of_line() && self.word_starts_statement())
    }

    /// Whether a word alone before another statement is a label rather than an instruction without operands.
    #[cold]
    fn names_label(&self, opcode: Token) -> bool {
        let word = self.str(opcode.span);
        self.prev == opcode.span
            && !matches!(word, "ret" | "exit" | "trap" | "brkpt" | "membar")
            && matches!(self.t.kind, T::At | T::Ident)
    }

    /// Whether a word without dots is followed by what can only be an instruction: `L1 add.u32 %r1, ...`.
    #[inline]
    fn follows_label(&self, opcode: Token) -> bool {
        if self.t.kind != T::Ident || self.prev != opcode.span {
            return false;
        }
        let mut ahead = self.lex.ahead();
        let mut next = ahead.next();
        let mut dotted = self.str(self.t.span).contains('.');
        while next.kind == T::Dot {
            dotted = true;
            next = ahead.next();
        }
        dotted && !self.str(self.t.span).starts_with('%') && matches!(next.kind, T::Ident | T::LBrace | T::LBrack)
    }

    #[cold]
    fn label_without_colon(&mut self, name: Span) {
        // Compilers begin the names of registers with this sign, and not those of labels.
        if self.str(name).starts_with('%') {
            let message = format!("expected an instruction, found `{}`", self.str(name));
            return self.report(Diagnostic::new(Code::Syntax, name, message).here("no instruction"));
        }
        let message = format!("expected `:` after the label `{}`", self.str(name));
        let found = Diagnostic::new(Code::Syntax, name, message).here("no instruction");
        // Before an instruction on the same line, it may also be a word too many.
        self.report(match self.first_of_line() {
            true => found.fix(name.after(), ":", "end the label with `:`"),
            false => found.help("end a label with `:`"),
        });
        self.tree.stmts.push(Stmt::Label(name));
    }

    /// Operands and the semicolon.
    #[inline]
    fn operands(&mut self) -> Result<()> {
        loop {
            if self.at(T::Ident) {
                let name = Operand { kind: Kind::Name, span: self.t.span };
                if self.bump_with(b',') {
                    self.buffers.list.push(name);
                    continue;
                }
                if self.bump_with(b';') {
                    self.buffers.list.push(name);
                    return Ok(());
                }
            }
            let operand = self.operand()?;
            self.buffers.list.push(operand);
            match self.t.kind {
                T::Comma => {
                    self.bump();
                }
                T::Semi => {
                    self.bump();
                    return Ok(());
                }
                _ => {
                    if self.semicolon(After::Operand) {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Whether the current name, the first of its line, is followed by modifiers or a colon.
    #[cold]
    fn word_starts_statement(&self) -> bool {
        let next = self.second().kind;
        !self.word().starts_with('%')
            && (matches!(next, T::Dot | T::Colon | T::Semi)
                || next == T::Ident && matches!(self.word(), "bra" | "call"))
    }

    /// A statement that begins with a dotted word.
    fn dotted(&mut self, word: Word, labeled: bool) -> Result<()> {
        let start = self.t.span.start;
        let stmt = match word {
            Word::Space | Word::Align | Word::Attribute | Word::Type | Word::Vector => {
                Stmt::Var(self.variable(start, List::empty())?)
            }
            Word::Loc => Stmt::Directive(self.loc()?),
            Word::Pragma => Stmt::Directive(self.pragma()?),
            Word::CallPrototype => {
                self.want_label(labeled);
                Stmt::Prototype(self.prototype()?)
            }
            Word::CallTargets | Word::BranchTargets => {
                self.want_label(labeled);
                Stmt::Directive(self.targets()?)
            }
            // ptxas takes declarations of functions and aliases in bodies; they belong to the module.
            Word::Alias => {
                let alias = self.alias()?;
                self.tree.items.push(Item::Directive(alias));
                return Ok(());
            }
            Word::Func => return self.function_in_body(start, List::empty()),
            Word::Linkage => {
                let linkage = self.linkage()?;
                if self.at(T::Dot) && self.word() == ".func" {
                    return self.function_in_body(start, linkage);
                }
                let message =
                    format!("`{}` is only for module variables, not for variables in a body", self.str(self.prev));
                self.report(Diagnostic::new(Code::Syntax, self.prev, message).here("not allowed in a body"));
                if !self.at(T::Dot) {
                    return Ok(());
                }
                Stmt::Var(self.variable(start, linkage)?)
            }
            Word::Unknown => {
                self.unknown_directive();
                return Err(Reported);
            }
            // ptxas takes a target anywhere in a body; the last one of the module counts.
            Word::Head if self.word() == ".target" => return self.head_directive(),
            Word::Head
            | Word::Entry
            | Word::File
            | Word::Section
            | Word::Ptr
            | Word::Tuning
            | Word::FuncNote
            | Word::Language => {
                return self.not_in_a_body(word);
            }
        };
        self.tree.stmts.push(stmt);
        Ok(())
    }

    /// A directive of the module or of a function's header.
    #[cold]
    fn not_in_a_body(&mut self, word: Word) -> Result<()> {
        let message = format!("`{}` is not allowed in a body", self.word());
        let d = Diagnostic::new(Code::Syntax, self.t.span, message).here("not here");
        self.report(match word {
            Word::Tuning => d.help("write it between the parameters of the kernel and `{`"),
            Word::Head => d.help("write it at the start of the module"),
            _ => d,
        });
        if !matches!(word, Word::Head | Word::Tuning | Word::FuncNote | Word::Language | Word::File) {
            return Err(Reported);
        }
        // These end with their arguments, not with a semicolon.
        self.bump();
        while matches!(self.t.kind, T::Int | T::Float | T::Comma | T::String) {
            self.bump();
        }
        self.eat(T::Semi);
        Ok(())
    }

    fn function_in_body(&mut self, start: u32, linkage: List<Directive>) -> Result<()> {
        let func = self.function(start, linkage, true)?;
        self.tree.items.push(Item::Func(func));
        Ok(())
    }

    fn want_label(&mut self, labeled: bool) {
        if !labeled {
            let message = format!("`{}` requires a label before it", self.word());
            self.report(Diagnostic::new(Code::Syntax, self.t.span, message).here("expected `NAME:` before it"));
        }
    }

    /// `.branchtargets L1, L2;`, `.calltargets f, g;`, `.branchtargets L<3>;` (sections 11.3.1, 11.3.2)
    fn targets(&mut self) -> Result<u32> {
        let name = self.bump().span;
        let base = self.buffers.list.len();
        let result = self.target_parts();
        let args = self.list(base);
        result?;
        self.semicolon(After::End);
        Ok(self.directive(name, args, name.to(self.prev)))
    }

    fn target_parts(&mut self) -> Result<()> {
        loop {
            let span = self.name("a label or the name of a function")?;
            let mut target = Operand { kind: Kind::Name, span };
            if self.at(T::Lt) {
                let open = self.bump().span;
                let count = self.integer_operand("the number of names")?;
                self.close(T::Gt, open)?;
                let head = self.keep(target);
                let argument = self.keep(count);
                target = Operand { kind: Kind::Apply { head, argument }, span: span.to(self.prev) };
            }
            self.buffers.list.push(target);
            if !self.eat(T::Comma) {
                return Ok(());
            }
        }
    }

    /// `.loc 1 7 3`, `.loc 1 7 3, function_name NAME, inlined_at 1 9 5` (section 11.5.4), and ptxas's `.loc_intermediate 1 7 3`.
    /// They end without a semicolon.
    fn loc(&mut self) -> Result<u32> {
        let whole = self.word() == ".loc";
        let name = self.bump().span;
        let base = self.buffers.list.len();
        let result = if whole { self.loc_parts() } else { self.position() };
        let args = self.list(base);
        let index = self.directive(name, args, name.to(self.prev));
        result?;
        if self.at(T::Semi) {
            let message = format!("`{}` takes no semicolon", self.str(name));
            self.stray_semicolons(&message);
        }
        Ok(index)
    }

    fn loc_parts(&mut self) -> Result<()> {
        self.position()?;
        if !self.eat(T::Comma) {
            return Ok(());
        }
        self.keyword("function_name")?;
        let place = Operand { kind: Kind::Name, span: self.t.span };
        if !matches!(self.t.kind, T::Ident | T::Dot) {
            return Err(self.expected("a label or a section"));
        }
        self.bump();
        let place = if self.at(T::Plus) {
            self.bump();
            let offset = self.integer_operand("an offset")?;
            let span = place.span.to(offset.span);
            let base = self.keep(place);
            let offset = self.keep(offset);
            Operand { kind: Kind::Sum { base, offset, minus: false }, span }
        } else {
            place
        };
        self.buffers.list.push(place);
        if !self.eat(T::Comma) {
            return Err(self.expected("`, inlined_at FILE LINE COLUMN`"));
        }
        self.keyword("inlined_at")?;
        self.position()
    }

    fn keyword(&mut self, word: &str) -> Result<()> {
        if self.at(T::Ident) && self.word() == word {
            let span = self.bump().span;
            self.buffers.list.push(Operand { kind: Kind::Name, span });
            return Ok(());
        }
        let what = format!("`{word}`");
        Err(self.expected(&what))
    }

    fn position(&mut self) -> Result<()> {
        for what in ["a file's number", "a line", "a column"] {
            let value = self.integer_operand(what)?;
            self.buffers.list.push(value);
        }
        Ok(())
    }
}
