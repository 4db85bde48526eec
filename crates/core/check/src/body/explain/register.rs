//! Registers and vectors of a different type or width than the row requires.

use super::*;

impl<'a> Walker<'a, '_> {
    /// Complains if a register does not have a type that the operand takes.
    pub(in crate::body) fn register_fits(
        &mut self,
        c: &Candidate,
        want: &Want,
        takes: compat::Types,
        decl: u32,
        span: Span,
    ) {
        if !compat::has(takes, self.body.regs[decl as usize].ty) {
            self.wrong_register(c, want, takes, decl, span);
        }
    }

    #[cold]
    pub(super) fn wrong_register(&mut self, c: &Candidate, want: &Want, takes: compat::Types, decl: u32, span: Span) {
        let d = self.body.regs[decl as usize];
        let name = self.tree.str(span);
        let text = self.tree.str(self.mnemonic());
        let verb = if want.opnd.role == Role::Dst { "writes" } else { "reads" };
        let ty = want.ty.unwrap_or(Type::B64);
        let width = if takes == compat::addresses() { 64 } else { ty.bits() };
        let addresses = takes == compat::addresses();
        let narrow = want.opnd.wider && d.ty.bits() < width;
        let same_width = d.ty.bits() == width || (want.opnd.wider && d.ty.bits() >= width) || addresses;
        let place = format!("operand {} (`{}`)", self.current.operand + 1, want.opnd.name);
        let declared = if d.numbered {
            format!("`.reg {} {}<{}>`", d.ty, self.tree.str(d.name), d.count)
        } else {
            format!("`.reg {} {}`", d.ty, self.tree.str(d.name))
        };
        let pred = (d.ty == Type::Pred, ty == Type::Pred);
        let (code, message) = match pred {
            (true, false) => {
                (Code::OperandType, format!("`{name}` is a predicate; {place} of `{text}` is {}", wanted(want, takes)))
            }
            (false, true) => (Code::OperandType, format!("`{name}` is `{}`; {place} of `{text}` is a predicate", d.ty)),
            _ if same_width => {
                (Code::OperandType, format!("`{name}` is `{}`; {place} of `{text}` is {}", d.ty, wanted(want, takes)))
            }
            _ => (
                Code::OperandWidth,
                format!(
                    "`{name}` is {} bits wide; {place} of `{text}` {verb} {}{width}",
                    d.ty.bits(),
                    if narrow { "at least " } else { "" }
                ),
            ),
        };
        // The elements of a vector mostly have one declaration, and the error of the first one names it.
        let instr = &self.tree.instrs[self.current.node as usize];
        let whole = self.tree.operands(instr.operands).get(self.current.operand).map(|o| o.span);
        let within = |d: &Diagnostic| whole.is_some_and(|w| w.start <= d.span().start && d.span().end <= w.end);
        if whole.is_some_and(|w| w != span)
            && self.report.diagnostics.last().is_some_and(|d| d.code == code && d.span() != span && within(d))
        {
            return;
        }
        if code == Code::OperandWidth && self.merge_width_error(d.ty.bits(), span) {
            return;
        }
        let mut e = Diagnostic::new(code, span, message)
            .here(format!("expected {}", registers(takes)))
            .label(d.name, format!("declared as {declared}"));
        if c.variant.op == Opcode::Selp && pred == (true, false) && want.opnd.role == Role::Src {
            e.suggestions.push(self.predicate_last());
        } else {
            for help in self.conversions(c, want, ty, d.ty, span) {
                e = e.help(help);
            }
        }
        self.report.push(e);
    }

    /// If an error of the same instruction already reports operands of this width, adds this place to it, since both have one cause: the
    /// type of the instruction. Returns whether it did.
    pub(super) fn merge_width_error(&mut self, bits: u32, span: Span) -> bool {
        if self.current.width_error.replace(bits) != Some(bits) {
            return false;
        }
        match self.report.diagnostics.last_mut() {
            Some(d) if d.code == Code::OperandWidth => {
                d.labels.push(margay_syntax::diag::Label { span, text: format!("also {bits} bits wide") });
                true
            }
            _ => false,
        }
    }

    /// `selp d, p, a, b` with the predicate where it belongs.
    fn predicate_last(&self) -> Suggestion {
        let instr = &self.tree.instrs[self.current.node as usize];
        let message = "the predicate is the last operand".to_owned();
        let edits = match self.tree.operands(instr.operands) {
            [_, p, a, b] => {
                let text = |o: &tree::Operand| self.tree.str(o.span).to_owned();
                vec![(p.span, text(a)), (a.span, text(b)), (b.span, text(p))]
            }
            _ => Vec::new(),
        };
        Suggestion { message, edits, machine_applicable: false }
    }

    /// Suggestions for a register of type `have` where `want` is expected: a conversion, another form of the instruction.
    pub(super) fn conversions(&self, c: &Candidate, want: &Want, ty: Type, have: Type, span: Span) -> Vec<String> {
        let dst = want.opnd.role == Role::Dst;
        let mut out = Vec::from_iter(conversion(c, dst, ty, have, self.tree.str(span)));
        if let (true, Ty::Wide(_), TypeKind::Bits | TypeKind::Signed | TypeKind::Unsigned) =
            (dst, want.opnd.ty, have.kind())
        {
            out.push(format!(
                "the product has {} bits: use a register of this width, or `.lo` for the lower half",
                ty.bits()
            ));
        }
        let fixed = matches!(want.opnd.ty, Ty::Is(Type::Pred));
        if !fixed && (have != Type::Pred || dst) {
            out.extend(other_type(c, want, ty, have));
        }
        out
    }

    /// Complains if a register's vector size is not the operand's.
    pub(in crate::body) fn vector_fits(&mut self, c: &Candidate, want: &Want, decl: u32, span: Span) {
        let d = self.body.regs[decl as usize];
        let Some(n) = want.count else { return };
        if n == u32::from(d.vector) {
            return;
        }
        let name = self.tree.str(span);
        let text = self.tree.str(self.mnemonic());
        let (message, help) = if d.vector > 1 && n == 1 {
            (
                format!(
                    "`{name}` is a vector of {}; operand {} of `{text}` is a scalar",
                    d.vector,
                    self.current.operand + 1
                ),
                format!("name one element: `{name}.x`"),
            )
        } else if d.vector == 1 {
            (
                format!("`{text}` moves {n} values here, `{name}` holds one"),
                format!("write a vector: `{{{name}, ...}}`"),
            )
        } else {
            (format!("`{text}` moves {n} values here, `{name}` holds {}", d.vector), format!("use `.v{}`", d.vector))
        };
        let found = Diagnostic::new(Code::VectorSize, span, message).label(d.name, "declared here").help(help);
        if d.vector == 1 && spreads(c, want) || d.vector > 1 && !want.element && ignores_rest(c, want) {
            self.report.text_only(found);
        } else {
            self.report.push(found);
        }
    }

    /// A load or store of a texture, sampler or surface.
    #[cold]
    pub(in crate::body) fn opaque_access(&mut self, ty: margay_isa::Type, span: Span, declared: Span) {
        let (name, text) = (self.tree.str(span), self.tree.str(self.mnemonic()));
        self.report.push(
            Diagnostic::new(Code::OperandType, span, format!("`{name}` is `{ty}`; `{text}` accesses plain data"))
                .label(declared, "declared here")
                .help("only texture and surface instructions access it by name; `mov.u64` gets its handle"),
        );
    }

    /// A constant where a vector is wanted.
    #[cold]
    pub(in crate::body) fn constant_for_vector(&mut self, want: &Want, op: &tree::Operand) -> Operand {
        let found = self.no_vector(want, op.span);
        self.report.push(found);
        Operand::Error
    }

    /// The error for a scalar where a vector is expected.
    #[cold]
    pub(in crate::body) fn no_vector(&mut self, want: &Want, span: Span) -> Diagnostic {
        let (text, n) = (self.tree.str(self.mnemonic()), count(want.count.unwrap_or(1) as usize, "register"));
        let operand = format!("operand {} (`{}`)", self.current.operand + 1, want.opnd.name);
        let found = self.tree.str(span);
        let found =
            if self.module.symbol(found).is_some() { format!("`{found}`") } else { format!("the constant {found}") };
        let message = format!("{operand} of `{text}` is a vector of {n}, found {found}");
        Diagnostic::new(Code::VectorSize, span, message).help("name the registers in braces")
    }

    /// A vector in braces has another number of elements.
    #[cold]
    pub(in crate::body) fn wrong_vector(
        &mut self,
        c: &Candidate,
        want: &Want,
        op: &tree::Operand,
        found: usize,
    ) -> Operand {
        if let Kind::Braces(list) = op.kind
            && self.tree.operands(list).iter().any(|o| matches!(o.kind, Kind::Error))
        {
            return Operand::Error;
        }
        let text = self.tree.str(self.mnemonic());
        let vec = c.variant.vec();
        let operand = format!("operand {} (`{}`)", self.current.operand + 1, want.opnd.name);
        let d = match want.count {
            Some(1) if found == 1 => {
                let inner = self.tree.str(op.span).trim_matches(['{', '}', ' ']).to_owned();
                Diagnostic::new(
                    Code::VectorSize,
                    op.span,
                    format!("{operand} of `{text}` is a scalar and takes no braces"),
                )
                .fix(op.span, inner, "remove the braces")
            }
            Some(1) => Diagnostic::new(
                Code::VectorSize,
                op.span,
                format!("{operand} of `{text}` is a scalar, not a vector of {found}"),
            )
            .help(if matches!(c.variant.op, Opcode::Ld | Opcode::St) {
                format!("use `.v{found}` to move {found} values")
            } else {
                "name one register".to_owned()
            }),
            Some(n) if vec == n && vec > 1 => {
                Diagnostic::new(Code::VectorSize, op.span, format!("`.v{n}` moves {n} values, found {found}"))
                    .here(format!("expected {}", count(n as usize, "element")))
            }
            Some(n) => {
                let ty = want.ty.map(|t| format!(" `{t}`")).unwrap_or_default();
                let others: Vec<String> = c
                    .wants
                    .iter()
                    .filter_map(|w| w.count.filter(|n| *n > 1).map(|n| format!("{} {n}", w.opnd.name)))
                    .collect();
                let d = Diagnostic::new(
                    Code::VectorSize,
                    op.span,
                    format!("{operand} of `{text}` has {n}{ty} registers, found {found}"),
                )
                .here(format!("expected {}", count(n as usize, "register")));
                if others.len() > 1 { d.note(format!("registers of each operand: {}", others.join(", "))) } else { d }
            }
            None => Diagnostic::new(
                Code::VectorSize,
                op.span,
                format!("`{text}` cannot be split into {} of equal width", count(found, "element")),
            ),
        };
        if matches!(found, 2 | 4) && ignores_rest(c, want) {
            self.report.text_only(d);
            return Operand::Computed;
        }
        self.report.push(d);
        Operand::Error
    }

    /// Braces around a single value that is not a vector, which ptxas ignores.
    #[cold]
    pub(in crate::body) fn needless_braces(&self, want: &Want, braces: Span, inner: Span) -> Diagnostic {
        let place = format!("operand {} (`{}`)", self.current.operand + 1, want.opnd.name);
        let message = format!("{place} of `{}` is a scalar and takes no braces", self.tree.str(self.mnemonic()));
        Diagnostic::new(Code::VectorSize, braces, message).fix(braces, self.tree.str(inner), "remove the braces")
    }

    /// The partner after `|` is missing.
    #[cold]
    pub(in crate::body) fn missing_partner(&mut self, want: &Want, op: &tree::Operand) -> Operand {
        let text = self.tree.str(self.mnemonic());
        let partner = want.opnd.pair.map_or(String::new(), |_| registers(want.pair));
        self.report.push(
            Diagnostic::new(
                Code::OperandForm,
                op.span,
                format!("`{text}` writes two results, `{}|...`", want.opnd.name),
            )
            .here(format!("expected `{}|p` with a register of type {partner}", self.tree.str(op.span))),
        );
        Operand::Error
    }
}

/// A conversion of a register of type `have`, called `name`, to `ty`.
fn conversion(c: &Candidate, dst: bool, ty: Type, have: Type, name: &str) -> Option<String> {
    Some(match (ty, have) {
        (Type::Pred, _) if c.variant.op == Opcode::Setp => {
            format!("`setp` writes `.pred`; `set` writes a number: `set.{}...`", rest_of(c, "u32"))
        }
        (Type::Pred, _) if !dst => format!("compare first: `setp.ne.b{} p, {name}, 0;`", have.bits().max(16)),
        (_, Type::Pred) if !dst => {
            let ty = if ty.is_int() { ty } else { Type::B32 };
            format!("convert it to a number: `selp{ty} t, 1, 0, {name};`")
        }
        (_, Type::Pred) => return None,
        _ if c.variant.op == Opcode::Cvt && !dst && have.bits() == ty.bits() => {
            "the first type is the destination's, the second the source's".to_owned()
        }
        _ if dst || c.variant.op == Opcode::Cvt => return None,
        (Type::F16x2 | Type::Bf16x2, _) if have.bits() == 16 => {
            "pack two values in one register: `mov.b32 %r, {%h0, %h1};`".to_owned()
        }
        _ if ty.kind() != TypeKind::Float && have.is_float() => {
            let int = if ty.is_int() { ty } else { Type::S32 };
            format!("convert the value: `cvt.rni{int}{have}`")
        }
        _ if ty.is_float() && (have.is_int() || have.kind() == TypeKind::Bits) && have.bits() >= 16 => {
            let int = if have.is_int() { have } else { as_signed(have) };
            format!("convert the value: `cvt.rn{ty}{int}`")
        }
        _ if ty.is_float() && have.is_float() => {
            let rn = if ty.bits() < have.bits() { ".rn" } else { "" };
            format!("convert the value: `cvt{rn}{ty}{have}`")
        }
        _ if ty.bits() != have.bits() && have.bits() <= 64 && ty.bits() <= 64 => {
            format!("convert the value: `cvt{}{}`", unsigned(ty), unsigned(have))
        }
        _ => return None,
    })
}

/// The instruction on another type that takes a register of type `have` in place of one of type `ty`.
fn other_type(c: &Candidate, want: &Want, ty: Type, have: Type) -> Option<String> {
    let slot = c.variant.words.iter().rposition(|w| matches!(w, Word::Type(_)))?;
    let typed = if have.kind() == TypeKind::Bits && have.bits() >= 16 && ty.is_int() {
        [if ty.is_signed() { as_signed(have) } else { unsigned(have) }, have]
    } else {
        [have, have]
    };
    let mut words: Vec<Word> = c.variant.words.to_vec();
    typed.into_iter().find_map(|t| {
        words[slot] = Word::Type(t);
        let found = resolve(c.variant.op, &words, |_| true).ok()?;
        let fits = found.variant.row().operands.len() == c.variant.row().operands.len()
            && found.variant.words != c.variant.words
            && (t == have || !matches!(want.opnd.ty, Ty::Wide(_)));
        fits.then(|| format!("or use `{}`", found.variant))
    })
}
