//! Guards, special registers and parts of vectors.

use super::*;

/// Whether an instruction of that type reads the special register. Before PTX ISA 2.0 the oldest ones had 16 bits, and such instructions
/// still read their lower halves (manual, sections 10.1, 10.2, 10.6 and 10.7); `%gridid` has had 16, 32 and 64 (section 10.10).
fn width_fits(special: Special, ty: Type) -> bool {
    let narrower: &[u32] = match special {
        Special::Tid | Special::Ntid | Special::Ctaid | Special::Nctaid => &[16],
        Special::GridId => &[16, 32],
        _ => &[],
    };
    ty.bits() == special.info().ty.bits() || narrower.contains(&ty.bits())
}

impl<'a> Walker<'a, '_> {
    #[cold]
    pub(in crate::body) fn no_guard(&mut self, span: Span, found: Option<Binding>) {
        let name = self.tree.str(span);
        match found {
            Some(Binding::Faulty) => {}
            Some(Binding::Reg(decl)) => {
                let d = self.body.regs[decl as usize];
                self.report.push(
                    Diagnostic::new(
                        Code::GuardPredicate,
                        span,
                        format!("a guard is a predicate; `{name}` is `{}`", d.ty),
                    )
                    .label(d.name, "declared here")
                    .help(format!("compare first: `setp.ne.b{} p, {name}, 0;`", d.ty.bits().clamp(16, 64))),
                );
            }
            Some(_) => self.report.push(Diagnostic::new(
                Code::GuardPredicate,
                span,
                format!("a guard is a predicate register, which `{name}` is not"),
            )),
            None => {
                if Special::from_name(name).is_some() || self.module.symbol(name).is_some() {
                    self.report.push(Diagnostic::new(
                        Code::GuardPredicate,
                        span,
                        format!("a guard is a predicate register, which `{name}` is not"),
                    ));
                } else {
                    let _ = self.unknown(span, "register");
                }
            }
        }
    }

    #[cold]
    pub(in crate::body) fn no_negation(&mut self, span: Span, name: Span, decl: u32) {
        let d = self.body.regs[decl as usize];
        self.report.push(
            Diagnostic::new(
                Code::Negation,
                span,
                format!("`!` negates only predicates; `{}` is `{}`", self.tree.str(name), d.ty),
            )
            .label(d.name, "declared here")
            .help(format!("`not.b{}` inverts the bits of a register", d.ty.bits().max(16))),
        );
    }

    /// Availability of a special register.
    pub(in crate::body) fn check_special(&mut self, special: Special, name: &str, span: Span) {
        let info = special.info();
        let since = Since { ptx: info.since, sm: info.sm, ..Since::ALWAYS };
        if let Some(lack) = lacking(self.module, &since) {
            let d = lack.diagnose(self.module, &format!("`{name}`"), span);
            self.report.push(d);
        }
    }

    /// A special register as a source: allowed at all, and of a type that fits?
    pub(in crate::body) fn special_fits(
        &mut self,
        c: &Candidate,
        want: &Want,
        special: Special,
        component: Option<Component>,
        span: Span,
    ) {
        let name = self.tree.str(span);
        let info = special.info();
        let text = self.tree.str(self.mnemonic());
        let allowed = if want.element { reads_specials(c, want) } else { want.opnd.special };
        if !allowed {
            let d = Diagnostic::new(Code::SpecialRegister, span, format!("`{text}` does not read special registers"))
                .help(format!("move it first: `mov{} t, {name};`", info.ty));
            // ptxas reads them in nearly any vector.
            if !want.element || matches!(c.variant.op, Opcode::Tcgen05 | Opcode::Wmma) {
                return self.report.push(d);
            }
            self.report.text_only(d);
        }
        let whole = component.is_none() && info.width > 1;
        let n = want.count.unwrap_or(1);
        if whole && n != u32::from(info.width) {
            let d = Diagnostic::new(Code::VectorSize, span, format!("`{name}` is a vector of {}", info.width));
            return self.report.push(d.help(format!("name one element: `{name}.x`")));
        }
        if !whole && n > 1 {
            let text = format!("`{name}` is a scalar, `{text}` moves {n} values");
            let d = Diagnostic::new(Code::VectorSize, span, text);
            let alike = want.ty.is_none_or(|ty| width_fits(special, ty)) && info.ty != Type::Pred;
            return if alike && spreads(c, want) { self.report.text_only(d) } else { self.report.push(d) };
        }
        // The type of a vector is that of all its elements.
        if let Some(ty) = want.ty.filter(|_| !want.element) {
            let kind = match info.ty {
                Type::Pred => ty == Type::Pred,
                _ => !ty.is_float() && ty != Type::Pred,
            };
            let fits = width_fits(special, ty) || want.opnd.wider && ty.bits() <= info.ty.bits();
            if !kind {
                self.report.push(Diagnostic::new(
                    Code::SpecialRegister,
                    span,
                    format!("`{name}` is `{}`; `{text}` reads `{ty}`", info.ty),
                ));
            } else if !fits && !self.merge_width_error(info.ty.bits(), span) {
                self.report.push(
                    Diagnostic::new(
                        Code::OperandWidth,
                        span,
                        format!("`{name}` is {} bits wide; `{text}` reads {}", info.ty.bits(), ty.bits()),
                    )
                    .help(format!("write `mov{}`", info.ty)),
                );
            }
        }
    }

    /// A special register in a vector whose type does not fit.
    #[cold]
    pub(in crate::body) fn special_in_vector(&mut self, want: &Want, special: Special, span: Span) {
        let Some(ty) = want.ty else { return };
        let (name, text, info) = (self.tree.str(span), self.tree.str(self.mnemonic()), special.info());
        if info.ty == Type::Pred {
            let message = format!("`{name}` is `.pred`; `{text}` reads `{ty}`");
            self.report.push(Diagnostic::new(Code::SpecialRegister, span, message));
        } else if info.ty.bits() != ty.bits() {
            let message = format!("`{name}` is {} bits wide; `{text}` takes elements of {}", info.ty.bits(), ty.bits());
            self.report.push(Diagnostic::new(Code::OperandWidth, span, message));
        }
    }

    #[cold]
    pub(in crate::body) fn bad_selector(&mut self, span: Span, dot: u32, width: u8) {
        let name = self.tree.str(span);
        let selector = Span::new(span.start + dot, span.end);
        let d = if width > 1 {
            Diagnostic::new(
                Code::VectorSelector,
                selector,
                format!("`{}` is not an element of a vector of {width}", self.tree.str(selector)),
            )
            .note(if width == 2 {
                "elements are .x and .y (or .r and .g)"
            } else {
                "elements are .x .y .z .w (or .r .g .b .a)"
            })
        } else {
            Diagnostic::new(
                Code::VectorSelector,
                selector,
                format!("`{name}` selects from an operand that is not a vector"),
            )
        };
        self.report.push(d);
    }

    #[cold]
    pub(in crate::body) fn bad_part(&mut self, parts: Parts, selector: Span) {
        let examples = match parts {
            Parts::One => ".b0 to .b3, .h0, .h1",
            Parts::Halves => "two halves, .h00 to .h33",
            Parts::Bytes => "four bytes, .b0000 to .b7777",
            Parts::HalfMask => ".h0, .h1, .h10",
            Parts::ByteMask => ".b0 to .b3210, in descending order",
        };
        self.report.push(
            Diagnostic::new(
                Code::VectorSelector,
                selector,
                format!("`.{}` cannot be selected here", self.tree.str(selector)),
            )
            .note(format!("parts are {examples}")),
        );
    }
}
