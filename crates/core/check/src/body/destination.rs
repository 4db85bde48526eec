//! Destination operands: registers, vectors, parts of registers, pairs `p|q`, sinks (manual, chapter 6 and sections 9.2 to 9.4).

use super::operand::Named;
use super::walk::Walker;
use super::{Candidate, Operand, Want};
use crate::compat;
use margay_syntax::{
    Span,
    diag::{Code, Diagnostic},
    tree::{self, Kind},
};

impl<'a> Walker<'a, '_> {
    pub(super) fn dst(&mut self, c: &Candidate, want: &Want, op: &'a tree::Operand) -> Operand {
        if want.opnd.paired && want.pair != 0 && !matches!(op.kind, Kind::Pair(_) | Kind::Error) {
            return self.missing_partner(want, op);
        }
        match op.kind {
            Kind::Name => {
                if op.span.len() == 1 && self.tree.str(op.span) == "_" {
                    return self.discard(want, op.span);
                }
                match self.named(op.span) {
                    Named::Reg(reg, decl) => {
                        self.wrote(reg);
                        let d = &self.body.regs[decl as usize];
                        if !compat::has(want.regs, d.ty) || want.count != Some(u32::from(d.vector)) {
                            self.whole_register(c, want, decl, op.span);
                        }
                        Operand::Reg(reg)
                    }
                    Named::Element(reg, decl, component) => {
                        self.wrote(reg);
                        self.vector_element(c, want, (reg, decl, component), op.span)
                    }
                    Named::Part(reg, decl, selector) => {
                        self.wrote(reg);
                        self.part(c, want, reg, decl, selector, false)
                    }
                    Named::Special(special, component) => {
                        let message = format!("`{}` is read-only", self.tree.str(op.span));
                        let found = Diagnostic::new(Code::SpecialRegister, op.span, message)
                            .here("special registers cannot be written");
                        // ptxas forgets to look at the elements of a vector.
                        if want.element && (component.is_some() || special.info().width == 1) {
                            self.report.text_only(found);
                            return Operand::Special(special, component);
                        }
                        self.report.push(found);
                        Operand::Error
                    }
                    Named::Faulty => Operand::Error,
                    Named::Unknown => self.unknown(op.span, "register"),
                    Named::Symbol(_) | Named::Label(_) | Named::Table(_) => self.no_destination(op),
                }
            }
            Kind::Braces(list) => self.vector(c, want, op, list, true),
            Kind::Pair(first) => self.pair(c, want, first, op.span),
            Kind::Error => Operand::Error,
            _ => self.no_destination(op),
        }
    }

    /// `p|q`
    fn pair(&mut self, c: &Candidate, want: &Want, first: u32, span: Span) -> Operand {
        let tree = self.tree;
        let sink = |o: &tree::Operand| matches!(o.kind, Kind::Name) && tree.str(o.span) == "_";
        if want.pair == 0 {
            // ptxas allows discarding a second result that does not exist.
            if let (Some(d), Some(q)) = (tree.operands.get(first as usize), tree.operands.get(first as usize + 1))
                && sink(q)
                && matches!(d.kind, Kind::Name)
            {
                let name = tree.str(self.mnemonic());
                let needless = Diagnostic::new(Code::OperandForm, span, format!("`{name}` has only one result here"));
                self.report.text_only(needless.fix(span, tree.str(d.span), "leave out `|_`"));
                return self.dst(c, want, d);
            }
            self.report.push(
                Diagnostic::new(
                    Code::OperandForm,
                    span,
                    format!("`{}` has only one result here", self.tree.str(self.mnemonic())),
                )
                .note("`p|q` is only for instructions with two results"),
            );
            return Operand::Error;
        }
        let (Some(p), Some(q)) = (tree.operands.get(first as usize), tree.operands.get(first as usize + 1)) else {
            return Operand::Error;
        };
        let one = Want { pair: 0, ..*want };
        let other = Want {
            pair: 0,
            count: Some(1),
            regs: want.pair,
            ty: want.opnd.pair.and_then(|t| c.variant.resolve_ty(t)),
            ..*want
        };
        let at = self.body.operands.len() as u32;
        self.body.operands.extend([Operand::Error, Operand::Error]);
        for (i, (want, op)) in [(&one, p), (&other, q)].into_iter().enumerate() {
            let operand = match sink(op) {
                true if i == 0 => self.discard(want, op.span),
                true if want.opnd.paired => self.no_predicate(op.span),
                true => Operand::Sink,
                false => self.dst(c, want, op),
            };
            self.body.operands[at as usize + i] = operand;
        }
        Operand::Pair(at)
    }

    /// `_` for the only result that an instruction is executed for.
    fn no_predicate(&mut self, span: Span) -> Operand {
        let message = format!("the predicate of `{}` cannot be discarded", self.tree.str(self.mnemonic()));
        self.report.push(Diagnostic::new(Code::Discard, span, message).help("name a predicate register"));
        Operand::Error
    }

    /// `_` as a destination.
    fn discard(&mut self, want: &Want, span: Span) -> Operand {
        if !want.opnd.sink {
            self.report.push(
                Diagnostic::new(
                    Code::Discard,
                    span,
                    format!("the result of `{}` cannot be discarded", self.tree.str(self.mnemonic())),
                )
                .help("name a register"),
            );
        }
        Operand::Sink
    }
}
