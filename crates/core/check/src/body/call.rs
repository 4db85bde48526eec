//! `call`: return arguments, callee, arguments and table, always in these four positions (manual, section 9.7.12.5).
//! `rules/call.rs` checks them against the callee's signature.

use super::operand::Named;
use super::walk::Walker;
use super::{Binding, Candidate, Operand, SymRef};
use crate::consts::{self, Const};
use crate::module;
use margay_isa::Kind as TypeKind;
use margay_syntax::{
    Span,
    diag::{Code, Diagnostic},
    tree::{self, Instr, Kind, List},
};

impl<'a> Walker<'a, '_> {
    /// Resolves the operands of a call.
    pub(super) fn call(&mut self, _c: &Candidate, instr: &'a Instr, ops: &'a [tree::Operand]) -> List<Operand> {
        let start = self.body.operands.len();
        let list = List::new(start as u32, 4);
        let empty = Operand::List(List::new(start as u32, 0));
        self.body.operands.extend([empty, Operand::Error, empty, Operand::Sink]);
        // A call that could not be read has its error.
        if ops.last().is_none_or(|o| matches!(o.kind, Kind::Error)) {
            return List::new(start as u32, 0);
        }
        let mut rest = ops;
        if let Some((tree::Operand { kind: Kind::Paren(rets), .. }, tail)) = rest.split_first() {
            self.body.operands[start] = self.arguments(*rets, true);
            rest = tail;
        }
        let Some((callee, mut rest)) = rest.split_first() else { return List::new(start as u32, 0) };
        self.body.operands[start + 1] = self.callee(callee.span);
        if let Some((tree::Operand { kind: Kind::Paren(args), .. }, tail)) = rest.split_first() {
            self.body.operands[start + 2] = self.arguments(*args, false);
            rest = tail;
        }
        if let Some(table) = rest.first() {
            self.body.operands[start + 3] = self.call_table(table.span);
        } else if matches!(self.body.operands[start + 1], Operand::Reg(_)) {
            self.report.push(
                Diagnostic::new(Code::OperandForm, callee.span, "an indirect call requires a prototype")
                    .here("this register holds the address of a function")
                    .help("declare `P: .callprototype (...) _ (...);` before the call and name it as the last operand: `call (...), r, (...), P;`"),
            );
            self.body.operands[start + 1] = Operand::Error;
        }
        let _ = instr;
        list
    }

    fn callee(&mut self, span: Span) -> Operand {
        let name = self.tree.str(span);
        match self.names.get(name) {
            Some((Binding::Reg(decl), number)) => {
                let d = self.body.regs[decl as usize];
                let reg = super::RegId(d.first.0.saturating_add(number));
                self.reads(reg, span);
                let ok = matches!(d.ty.kind(), TypeKind::Bits | TypeKind::Unsigned | TypeKind::Signed)
                    && matches!(d.ty.bits(), 32 | 64)
                    && d.vector == 1;
                if !ok {
                    self.no_callee(span, Some(decl));
                    return Operand::Error;
                }
                self.facts.indirect.get_or_insert(span);
                Operand::Reg(reg)
            }
            Some((Binding::Faulty, _)) => Operand::Error,
            Some((other, _)) if !matches!(other, Binding::Label(id) if self.means_other(id, span).is_some()) => {
                self.no_callee(span, None);
                Operand::Error
            }
            _ => match self.module_register(span) {
                Some(reg) => {
                    self.facts.indirect.get_or_insert(span);
                    reg
                }
                None => match self.function_named(span) {
                    Some(f) => {
                        if !self.facts.calls.iter().any(|c| c.0 == f) {
                            self.facts.calls.push((f, span));
                        }
                        Operand::Symbol(SymRef::Func(f), 0)
                    }
                    None => Operand::Error,
                },
            },
        }
    }

    fn arguments(&mut self, list: List<tree::Operand>, rets: bool) -> Operand {
        let tree = self.tree;
        let items = tree.operands(list);
        let start = self.body.operands.len();
        self.body.operands.resize(start + items.len(), Operand::Error);
        for (i, item) in items.iter().enumerate() {
            let operand = self.argument(item, rets);
            self.body.operands[start + i] = operand;
        }
        Operand::List(List::new(start as u32, items.len() as u32))
    }

    fn argument(&mut self, item: &tree::Operand, ret: bool) -> Operand {
        match item.kind {
            Kind::Name => match self.tree.str(item.span) {
                "_" => Operand::Sink,
                "WARP_SZ" => Operand::Int(32),
                _ => match self.named(item.span) {
                    Named::Reg(reg, _) => {
                        if ret {
                            self.wrote(reg)
                        } else {
                            self.reads(reg, item.span)
                        }
                        Operand::Reg(reg)
                    }
                    Named::Symbol(symbol) => Operand::Symbol(symbol, 0),
                    Named::Faulty => Operand::Error,
                    Named::Unknown => self.unknown(item.span, "argument"),
                    Named::Element(reg, _, component) => Operand::Element(reg, component),
                    Named::Special(special, component) => Operand::Special(special, component),
                    Named::Label(label) => Operand::Label(label),
                    Named::Table(table) => Operand::Table(table),
                    Named::Part(..) => Operand::Error,
                },
            },
            Kind::Error => Operand::Error,
            _ => match consts::eval(self.tree, item) {
                Ok(Const::Int { value, .. }) => Operand::Int(value),
                Ok(Const::Double(x)) => Operand::Float { bits: x.to_bits(), single: false },
                Ok(Const::Single(bits)) => Operand::Float { bits: u64::from(bits), single: true },
                Err(e) => {
                    module::constant_error(self.tree, e, self.report);
                    Operand::Error
                }
            },
        }
    }
}
