//! Declarations of variables (section 5.4) and of parameters (section 5.1.6).

use super::word::{self, Word};
use super::{Parser, Reported, Result};
use crate::lex::T;
use crate::tree::*;
use crate::{Code, Diagnostic, Span};

/// The context of a declaration.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// At module level, in a body: ends in a semicolon, may declare several names.
    Statement,
    /// In the parameter list of a kernel, where `.ptr` and `.align` may follow the type.
    Kernel,
    /// In a list of a function.
    Function,
    /// In a list of a prototype, where `.align` may follow the type, too.
    Prototype,
}

impl Parser<'_> {
    /// Something else where a type belongs.
    #[cold]
    fn no_type(&mut self) -> Reported {
        let word = self.word();
        let dotted = format!(".{word}");
        let own = (word::classify(&dotted) == Word::Type).then_some(dotted);
        let Some(ty) = own.or_else(|| super::foreign::type_of(word).map(str::to_owned)) else {
            return self.expected("a type, such as `.u32`");
        };
        let d =
            Diagnostic::new(Code::Syntax, self.t.span, format!("expected a type, found `{word}`")).here("not a type");
        self.report(d.fix(self.t.span, &ty, format!("write `{ty}`")));
        Reported
    }

    /// `.global .align 4 .v2 .f32 a[2] = {...}, b;` from the first word after the linkage.
    pub(super) fn variable(&mut self, start: u32, linkage: List<Directive>) -> Result<u32> {
        let mut var = self.var_head(start, linkage, Place::Statement)?;
        let first = self.tree.declarators.len() as u32;
        // ptxas takes a declaration without names.
        if !self.at(T::Semi) {
            loop {
                let declarator = self.declarator(Place::Statement)?;
                self.tree.declarators.push(declarator);
                if !self.eat(T::Comma) {
                    break;
                }
            }
        }
        var.declarators = List::new(first, self.tree.declarators.len() as u32 - first);
        let done = self.semicolon(super::recover::After::Operand);
        var.span = self.since(start);
        self.tree.vars.push(var);
        let index = self.tree.vars.len() as u32 - 1;
        if !done {
            // Names without a comma between: reported; the rest is not worth guessing.
            self.skip_statement();
        }
        Ok(index)
    }

    /// Space, alignment, attribute, vector and type.
    pub(super) fn var_head(&mut self, start: u32, linkage: List<Directive>, place: Place) -> Result<Var> {
        let mut var = Var {
            linkage,
            space: Span::new(start, start),
            align: None,
            vector: None,
            ty: None,
            ptr: None,
            attribute: None,
            declarators: List::empty(),
            span: Span::default(),
        };
        while self.at(T::Dot) && var.ty.is_none() {
            match word::classify(self.word()) {
                Word::Space => {
                    if !var.space.is_empty() {
                        let d = Diagnostic::new(
                            Code::Syntax,
                            self.t.span,
                            format!("a second state space, {}", self.found()),
                        )
                        .here("duplicate")
                        .label(var.space, "the first one");
                        self.report(d);
                        return Err(Reported);
                    }
                    var.space = self.space()?;
                }
                Word::Align => {
                    self.bump();
                    self.alignment(&mut var.align)?;
                }
                Word::Attribute => var.attribute = Some(self.attribute(false)?),
                Word::Vector => {
                    var.vector = Some(self.bump().span);
                    match self.at(T::Dot).then(|| word::classify(self.word())) {
                        Some(Word::Type) => {}
                        Some(Word::Align | Word::Space | Word::Attribute) => {
                            let (from, vector) = (self.prev, self.str(self.prev));
                            self.misplaced_before(from, vector)?;
                        }
                        _ => return Err(self.expected("the type of the elements")),
                    }
                }
                Word::Type => var.ty = Some(self.bump().span),
                Word::Linkage => {
                    let word = self.word();
                    let message = format!("`{word}` must be first in a declaration");
                    let d = Diagnostic::new(Code::WordOrder, self.t.span, message).here("not here");
                    self.report(d);
                    self.bump();
                }
                _ => return Err(self.not_a_type()),
            }
        }
        let Some(ty) = var.ty else {
            return Err(self.no_type());
        };
        self.after_type(&mut var, ty, place)?;
        Ok(var)
    }

    /// Words that follow the type of a variable: `.ptr` and `.align` of parameters.
    fn after_type(&mut self, var: &mut Var, ty: Span, place: Place) -> Result<()> {
        let mut aligned = false;
        while self.at(T::Dot) {
            match word::classify(self.word()) {
                Word::Ptr if place != Place::Statement && var.ptr.is_none() => {
                    if aligned {
                        let d = Diagnostic::new(Code::WordOrder, self.t.span, "`.ptr` must directly follow the type")
                            .here("not after `.align`");
                        self.report(d);
                    }
                    var.ptr = Some(self.ptr()?);
                }
                // ptxas takes it in kernels and prototypes, without `.ptr` too.
                Word::Align if matches!(place, Place::Kernel | Place::Prototype) && var.ptr.is_none() => {
                    self.bump();
                    self.alignment(&mut var.align)?;
                    aligned = true;
                }
                Word::Align | Word::Vector | Word::Attribute | Word::Space | Word::Linkage => {
                    let from = var.vector.unwrap_or(ty);
                    self.misplaced(var, from)?;
                }
                _ => return Err(self.expected("a name")),
            }
        }
        Ok(())
    }

    /// A word that is neither a type nor what may precede one.
    #[cold]
    fn not_a_type(&mut self) -> Reported {
        let (found, span) = (self.word(), self.t.span);
        let d = Diagnostic::new(Code::Syntax, span, format!("expected a type, found `{found}`")).here("not a type");
        let types = [
            ".b8", ".b16", ".b32", ".b64", ".b128", ".u8", ".u16", ".u32", ".u64", ".s8", ".s16", ".s32", ".s64",
            ".f16", ".f32", ".f64", ".pred", ".v2", ".v4", ".align",
        ];
        let near = super::foreign::type_of(found.trim_start_matches('.'));
        let d = match near.or_else(|| crate::diag::nearest(found, types)) {
            Some(near) => d.help(format!("`{near}`?")),
            None => d,
        };
        self.report(d);
        Reported
    }

    /// The number after `.align`. If there are two, the larger one counts, as in ptxas, and both must be powers of two.
    fn alignment(&mut self, align: &mut Option<u32>) -> Result<()> {
        let found = self.integer("an alignment in bytes")?;
        let value = |index: u32| match self.tree.operands.get(index as usize).map(|o| o.kind) {
            Some(Kind::Int { value, .. }) => value.get(),
            _ => 0,
        };
        let counts = |before: u32| {
            let wrong = [found, before].map(|n| !value(n).is_power_of_two());
            !wrong[1] && (wrong[0] || value(found) > value(before))
        };
        if align.is_none_or(counts) {
            *align = Some(found);
        }
        Ok(())
    }

    /// `.b8 .align 8`: a word after the type that belongs before it. Reports it with the right order, and accepts it.
    #[cold]
    fn misplaced(&mut self, var: &mut Var, from: Span) -> Result<()> {
        let word = self.t.span;
        match word::classify(self.word()) {
            Word::Align => {
                self.bump();
                self.alignment(&mut var.align)?;
            }
            Word::Vector => var.vector = Some(self.bump().span),
            Word::Attribute => var.attribute = Some(self.attribute(false)?),
            Word::Space if var.space.is_empty() => var.space = self.space()?,
            _ => {
                self.bump();
            }
        }
        let behind = self.since(word.start);
        let before = Span::new(from.start, word.start);
        let right = format!("{} {}", self.str(behind), self.str(before).trim_end());
        let message = format!("`{}` must come before the type", self.str(word));
        let d = Diagnostic::new(Code::WordOrder, behind, message)
            .here("not after the type")
            .label(from, "the type")
            .fix(before.to(behind), right.clone(), format!("write `{right}`"));
        self.report(d);
        Ok(())
    }

    /// `.v4 .align 16 .b32`: the vector word must directly precede the type.
    #[cold]
    fn misplaced_before(&mut self, vector: Span, name: &str) -> Result<()> {
        let message = format!("`{name}` must directly precede the type");
        self.report(Diagnostic::new(Code::WordOrder, vector, message).here("not here"));
        Ok(())
    }

    /// A state space, with the bank of `.const[3]` (section 5.1.3.1), which must touch it.
    pub(super) fn space(&mut self) -> Result<Span> {
        let space = self.bump().span;
        if self.at(T::LBrack) && self.t.span.start == space.end && self.str(space) == ".const" {
            let open = self.bump().span;
            if !self.at(T::Int) {
                return Err(self.expected("the number of a constant bank"));
            }
            self.bump();
            self.close(T::RBrack, open)?;
            return Ok(space.to(self.prev));
        }
        Ok(space)
    }

    /// `.ptr .global .align 8` (section 5.1.6.3)
    fn ptr(&mut self) -> Result<Ptr> {
        let word = self.bump().span;
        let mut ptr = Ptr { word, space: None, align: None };
        if self.at(T::Dot) && matches!(self.word(), ".global" | ".shared" | ".local" | ".const") {
            ptr.space = Some(self.space()?);
        }
        if self.at(T::Dot) && self.word() == ".align" {
            self.bump();
            ptr.align = Some(self.integer("an alignment in bytes")?);
            if self.at(T::Dot)
                && ptr.space.is_none()
                && matches!(self.word(), ".global" | ".shared" | ".local" | ".const")
            {
                let space = self.bump().span;
                let behind = Span::new(word.end, space.end);
                let right = format!(" {}{}", self.str(space), self.str(Span::new(word.end, space.start)).trim_end());
                let d =
                    Diagnostic::new(Code::WordOrder, space, format!("`{}` must come before `.align`", self.str(space)))
                        .here("not after the alignment")
                        .fix(behind, right.clone(), format!("write `.ptr{right}`"));
                self.report(d);
                ptr.space = Some(space);
            }
        }
        Ok(ptr)
    }

    /// `.attribute(.managed, .unified(1, 2))` (section 5.4.8)
    pub(super) fn attribute(&mut self, of_function: bool) -> Result<u32> {
        let name = self.bump().span;
        if !self.at(T::LParen) {
            return Err(self.expected("`(`"));
        }
        let open = self.bump().span;
        let base = self.buffers.list.len();
        let result = self.attributes(open, of_function);
        let args = self.list(base);
        result?;
        Ok(self.directive(name, args, name.to(self.prev)))
    }

    fn attributes(&mut self, open: Span, of_function: bool) -> Result<()> {
        loop {
            let head = Operand { kind: Kind::Name, span: self.t.span };
            if !self.at(T::Dot) || !(self.word() == ".unified" || self.word() == ".managed" && !of_function) {
                return Err(self.expected(if of_function {
                    "`.unified(UUID, UUID)`"
                } else {
                    "`.managed` or `.unified(UUID, UUID)`"
                }));
            }
            let unified = self.word() == ".unified";
            self.bump();
            let mut attribute = head;
            if unified {
                if !self.at(T::LParen) {
                    return Err(self.expected("`(`"));
                }
                let paren = self.bump().span;
                let first = self.integer_operand("the upper half of the UUID")?;
                if !self.eat(T::Comma) {
                    return Err(self.expected("`,`"));
                }
                let second = self.integer_operand("the lower half of the UUID")?;
                self.close(T::RParen, paren)?;
                let base = self.buffers.list.len();
                self.buffers.list.extend([first, second]);
                let list = self.list(base);
                let head = self.keep(head);
                let argument = self.keep(Operand { kind: Kind::Paren(list), span: paren.to(self.prev) });
                attribute = Operand { kind: Kind::Apply { head, argument }, span: attribute.span.to(self.prev) };
            }
            self.buffers.list.push(attribute);
            if !self.eat(T::Comma) {
                return self.close(T::RParen, open);
            }
        }
    }

    /// An integer literal, by itself, kept.
    pub(super) fn integer(&mut self, what: &str) -> Result<u32> {
        let operand = self.integer_operand(what)?;
        Ok(self.keep(operand))
    }

    pub(super) fn integer_operand(&mut self, what: &str) -> Result<Operand> {
        // `WARP_SZ` is a literal to ptxas, at these places too.
        if self.at(T::WarpSize) {
            let span = self.bump().span;
            return Ok(Operand { kind: Kind::Name, span });
        }
        if !self.at(T::Int) {
            let what = format!("{what} (an integer literal)");
            return Err(self.expected(&what));
        }
        Ok(self.take_literal())
    }

    /// `%r<8>`, `a[2][3] = {...}`
    pub(super) fn declarator(&mut self, place: Place) -> Result<Declarator> {
        let name = match self.t.kind {
            // `check` says that a formal of a function must have a name.
            T::Underscore if place != Place::Statement => self.bump().span,
            T::Underscore => {
                return Err(self.wrong(self.t.span, "`_` cannot be declared", "it denotes a discarded result"));
            }
            T::WarpSize => {
                return Err(self.wrong(self.t.span, "`WARP_SZ` cannot be declared", "a predefined constant"));
            }
            T::Star => {
                let message = format!("expected a name, found {}", self.found());
                let d = Diagnostic::new(Code::Syntax, self.t.span, message).here("expected a name");
                self.report(d.help("a pointer is an integer as wide as an address: `.param .u64 .ptr .global a`"));
                return Err(Reported);
            }
            _ => self.name("a name")?,
        };
        let mut declarator = Declarator { name, count: None, dims: List::empty(), init: None, span: name };
        if self.at(T::Lt) && place == Place::Statement {
            let open = self.bump().span;
            declarator.count = Some(self.integer("the number of names")?);
            self.close(T::Gt, open)?;
        } else {
            if self.at(T::LBrack) {
                declarator.dims = self.dimensions(place)?;
            }
            if self.at(T::Assign) && place == Place::Statement {
                self.bump();
                let init = self.initializer(0)?;
                declarator.init = Some(self.keep(init));
            }
        }
        declarator.span = name.to(self.prev);
        Ok(declarator)
    }

    fn dimensions(&mut self, place: Place) -> Result<List<Operand>> {
        let base = self.buffers.list.len();
        let result = self.dimension_parts(base, place);
        let list = self.list(base);
        result.map(|()| list)
    }

    fn dimension_parts(&mut self, base: usize, place: Place) -> Result<()> {
        while self.at(T::LBrack) {
            let open = self.t.span;
            let first = self.buffers.list.len() == base;
            if !first && place != Place::Statement {
                return Err(self.wrong(open, "a parameter has at most one dimension", "a second dimension"));
            }
            self.bump();
            let dim = match self.t.kind {
                T::RBrack if first => Operand { kind: Kind::Error, span: self.prev.after() },
                T::RBrack => {
                    return Err(self.wrong(
                        open.to(self.t.span),
                        "only the first dimension may be omitted",
                        "expected a size",
                    ));
                }
                _ => self.integer_operand("the number of elements")?,
            };
            self.buffers.list.push(dim);
            self.close(T::RBrack, open)?;
        }
        Ok(())
    }
}
