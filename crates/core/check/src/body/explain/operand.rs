//! Operands of a different kind than the row requires: brackets, groups, destinations.

use super::*;

impl<'a> Walker<'a, '_> {
    /// A destination operand that is not a register.
    #[cold]
    pub(in crate::body) fn no_destination(&mut self, op: &tree::Operand) -> Operand {
        let text = self.tree.str(op.span);
        let what = match op.kind {
            Kind::Int { .. } | Kind::Float { .. } | Kind::Expr(_) => "a constant",
            Kind::Brackets(_) => "an address",
            Kind::Not(_) => "a negated predicate",
            _ => "no register",
        };
        let loads = matches!(self.opcode(), Some(Opcode::Ld | Opcode::Ldu)) && matches!(op.kind, Kind::Brackets(_));
        let d = Diagnostic::new(
            Code::DestinationRegister,
            op.span,
            format!("the destination of `{}` must be a register, found `{text}`", self.tree.str(self.mnemonic())),
        )
        .here(format!("this is {what}"));
        self.report.push(match loads {
            true => d.help("the destination is the first operand: `ld.global.u32 %r, [%rd];`; `st` writes to memory"),
            false => d,
        });
        Operand::Error
    }

    /// The opcode of the instruction that is looked at.
    fn opcode(&self) -> Option<Opcode> {
        Opcode::from_name(words(self.tree.str(self.mnemonic())).first()?.1)
    }

    /// The operands of `st.global.u32 %r1, [%rd1]`, which are swapped.
    fn reversed(&self) -> Option<(Span, Span)> {
        let instr = &self.tree.instrs[self.current.node as usize];
        let [value, address] = self.tree.operands(instr.operands) else { return None };
        let reversed = matches!(value.kind, Kind::Name) && matches!(address.kind, Kind::Brackets(_));
        (reversed && matches!(self.opcode(), Some(Opcode::St | Opcode::Red))).then_some((value.span, address.span))
    }

    #[cold]
    pub(in crate::body) fn wrong_kind(&mut self, want: &Want, op: &tree::Operand, wanted: &str) -> Operand {
        let text = self.tree.str(op.span);
        let d = Diagnostic::new(
            Code::OperandKind,
            op.span,
            format!(
                "operand {} (`{}`) of `{}` is {wanted}, found `{text}`",
                self.current.operand + 1,
                want.opnd.name,
                self.tree.str(self.mnemonic())
            ),
        )
        .here(format!("expected {wanted}"));
        self.report.push(d);
        Operand::Error
    }

    #[cold]
    pub(in crate::body) fn missing_brackets(&mut self, want: &Want, op: &tree::Operand) -> Operand {
        let text = self.tree.str(op.span);
        if let Some((value, address)) = self.reversed() {
            let name = self.tree.str(self.mnemonic());
            let mut d =
                Diagnostic::new(Code::MissingBrackets, value, format!("the address is the first operand of `{name}`"))
                    .here("this is the value")
                    .label(address, "this is the address");
            d.suggestions.push(Suggestion {
                message: "swap them".to_owned(),
                edits: vec![(value, self.tree.str(address).to_owned()), (address, self.tree.str(value).to_owned())],
                machine_applicable: true,
            });
            self.report.push(d);
            let _ = self.named(op.span);
            return Operand::Error;
        }
        let mut d = Diagnostic::new(
            Code::MissingBrackets,
            op.span,
            format!(
                "operand {} (`{}`) of `{}` is an address and must be in brackets",
                self.current.operand + 1,
                want.opnd.name,
                self.tree.str(self.mnemonic())
            ),
        )
        .here("expected `[`");
        let found = self.names.at(&self.tree.text, op.span);
        let narrow = matches!(found, Some((Binding::Reg(decl), _)) if self.body.regs[decl as usize].ty.bits() != self.module.address_size);
        if matches!(op.kind, Kind::Name | Kind::Sum { .. }) && !narrow {
            d = d.fix(op.span, format!("[{text}]"), format!("write `[{text}]`"));
        }
        if let Kind::Index { base, index } = op.kind
            && let (Some(base), Some(index)) =
                (self.tree.operands.get(base as usize), self.tree.operands.get(index as usize))
            && matches!(index.kind, Kind::Int { .. })
        {
            let address = format!("[{}+{}]", self.tree.str(base.span), self.tree.str(index.span));
            d = d.fix(op.span, &address, format!("write `{address}`: the offset is in bytes"));
        }
        self.report.push(d);
        if matches!(op.kind, Kind::Name) {
            // An unknown name is another fault, and a known one is read.
            let _ = self.named(op.span);
        }
        Operand::Error
    }

    #[cold]
    pub(in crate::body) fn needless_brackets(&mut self, op: &tree::Operand) -> Operand {
        let text = self.tree.str(self.mnemonic());
        if self.reversed().is_some() {
            // Said of the other operand.
            return Operand::Error;
        }
        self.report.push(
            Diagnostic::new(Code::MissingBrackets, op.span, format!("`{text}` reads registers, not memory"))
                .here("expected a register or constant")
                .help("load the value with `ld` first"),
        );
        Operand::Error
    }

    #[cold]
    pub(in crate::body) fn wrong_group(
        &mut self,
        wants: &[Want],
        op: &tree::Operand,
        found: usize,
        min: usize,
    ) -> Operand {
        let names: Vec<&str> = wants.iter().map(|w| w.opnd.name).collect();
        let wants = if min == names.len() { format!("{min}") } else { format!("{min} to {}", names.len()) };
        self.report.push(
            Diagnostic::new(
                Code::OperandCount,
                op.span,
                format!(
                    "expected {wants} operands inside the brackets of `{}`, found {found}",
                    self.tree.str(self.mnemonic())
                ),
            )
            .note(format!("they are [{}]", names.join(", "))),
        );
        Operand::Error
    }
}
