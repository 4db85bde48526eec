//! Operands of another kind than the row wants: brackets, groups, destinations.

use super::*;

impl<'a> Walker<'a, '_> {
    /// Something that is no register where a result goes.
    #[cold]
    pub(in crate::body) fn no_destination(&mut self, op: &tree::Operand) -> Operand {
        let text = self.tree.str(op.span);
        let what = match op.kind {
            Kind::Int { .. } | Kind::Float { .. } | Kind::Expr(_) => "a constant",
            Kind::Brackets(_) => "an address",
            Kind::Not(_) => "a negated predicate",
            _ => "no register",
        };
        let d = Diagnostic::new(
            Code::DestinationRegister,
            op.span,
            format!("the destination of `{}` must be a register, found `{text}`", self.tree.str(self.mnemonic())),
        )
        .here(format!("this is {what}"));
        self.report.push(d);
        Operand::Error
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
        let mut d = Diagnostic::new(
            Code::MissingBrackets,
            op.span,
            format!(
                "operand {} (`{}`) of `{}` is an address, in brackets",
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
            d = d.fix(op.span, &address, format!("write `{address}`: the offset counts bytes"));
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
        self.report.push(
            Diagnostic::new(Code::MissingBrackets, op.span, format!("`{text}` reads registers, not memory"))
                .here("expected a register or constant")
                .help("load the value first, with `ld`"),
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
                format!("the brackets of `{}` hold {wants} things, found {found}", self.tree.str(self.mnemonic())),
            )
            .note(format!("they are [{}]", names.join(", "))),
        );
        Operand::Error
    }
}
