//! The possible targets of an indirect call: the label of a `.callprototype` or `.calltargets`, or a call table, which is an array
//! initialized with functions (manual, section 9.7.12.5).

use super::operand::Named;
use super::walk::Walker;
use super::{Operand, SymRef, TableId, TargetTable};
use crate::{FuncId, Init, Symbol};
use margay_isa::{Space, Type};
use margay_syntax::{
    Span,
    diag::{Code, Diagnostic},
};

impl Walker<'_, '_> {
    pub(super) fn call_table(&mut self, span: Span) -> Operand {
        match self.named(span) {
            Named::Table(id) => Operand::Table(id),
            Named::Symbol(symbol @ (SymRef::Global(_) | SymRef::Local(_))) => self.array_of_functions(symbol, span),
            Named::Faulty => Operand::Error,
            Named::Unknown => self.unknown(span, "table"),
            _ => {
                self.not_a_table(span);
                Operand::Error
            }
        }
    }

    /// An array as the list of functions that it is initialized with.
    fn array_of_functions(&mut self, symbol: SymRef, span: Span) -> Operand {
        let module = self.module;
        let (space, ty, vector, dimensions, declared) = match symbol {
            SymRef::Global(id) => {
                let g = module.global(id);
                (g.space, g.ty, g.vector, g.dimensions, g.span)
            }
            SymRef::Local(i) => {
                let l = &self.body.locals[i as usize];
                (l.space, l.ty, l.vector, l.dimensions, l.name)
            }
            SymRef::Param(_) | SymRef::Ret(_) | SymRef::Func(_) => return Operand::Error,
        };
        let holds = matches!(ty, Type::U8 | Type::U32 | Type::U64) && vector == 1 && dimensions == 1;
        if !holds || !matches!(space, Space::Global | Space::Const) {
            self.not_a_table(span);
            return Operand::Error;
        }
        let init = match symbol {
            SymRef::Global(id) => &module.global(id).init,
            SymRef::Local(i) => &self.body.locals[i as usize].init,
            SymRef::Param(_) | SymRef::Ret(_) | SymRef::Func(_) => return Operand::Error,
        };
        let functions: Option<Vec<FuncId>> = init.iter().map(|i| function(i, &module.aliases)).collect();
        let fault = match functions {
            Some(mut functions) if !functions.is_empty() => {
                // An address may be initialized byte by byte.
                functions.dedup();
                self.body.tables.push(TargetTable::Calls(functions));
                return Operand::Table(TableId(self.body.tables.len() as u32 - 1));
            }
            Some(_) => "is not initialized, so what it calls is unknown",
            None => "has initial values that are not functions",
        };
        let message = format!("the call table `{}` {fault}", self.tree.str(span));
        let found = Diagnostic::new(Code::CallTable, span, message).label(declared, "declared here");
        self.report.push(found.note("what follows the functions of its initializer is zero"));
        Operand::Error
    }
}

/// The function whose address a part of an initializer is.
fn function(init: &Init, aliases: &[crate::module::Alias]) -> Option<FuncId> {
    match init {
        Init::Address { of: Symbol::Func(f), .. } => Some(*f),
        Init::Address { of: Symbol::Alias(a), .. } => aliases.get(*a as usize).map(|a| a.of),
        Init::Address { of: Symbol::Global(_), .. } | Init::Bytes { .. } | Init::Property { .. } => None,
    }
}
