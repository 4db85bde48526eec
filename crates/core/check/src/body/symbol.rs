//! Properties of a symbol: its type, extent, space and size.

use super::SymRef;
use super::walk::Walker;
use crate::{Extent, Function};
use margay_isa::{Space, Type};
use margay_syntax::Span;

impl Walker<'_, '_> {
    /// A formal of the function.
    fn formal(&self, symbol: SymRef) -> Option<&crate::Formal> {
        let f: &Function = self.func;
        match symbol {
            SymRef::Param(i) => f.params.get(i as usize),
            SymRef::Ret(i) => f.rets.get(i as usize),
            SymRef::Global(_) | SymRef::Local(_) | SymRef::Func(_) => None,
        }
    }

    /// Element type of a symbol and where it is declared.
    pub(crate) fn type_of_symbol(&self, symbol: SymRef) -> (Type, Span) {
        match symbol {
            SymRef::Global(id) => (self.module.global(id).ty, self.module.global(id).span),
            SymRef::Local(i) => (self.body.locals[i as usize].ty, self.body.locals[i as usize].name),
            SymRef::Func(id) => (Type::B64, self.module.func(id).span),
            SymRef::Param(_) | SymRef::Ret(_) => {
                self.formal(symbol).map_or((Type::B32, Span::default()), |f| (f.ty, f.span))
            }
        }
    }

    /// Whether a symbol is an array.
    pub(crate) fn symbol_extent(&self, symbol: SymRef) -> Extent {
        match symbol {
            SymRef::Global(id) => self.module.global(id).extent,
            SymRef::Local(i) => self.body.locals[i as usize].extent,
            SymRef::Func(_) => Extent::Scalar,
            SymRef::Param(_) | SymRef::Ret(_) => self.formal(symbol).map_or(Extent::Scalar, |f| f.extent),
        }
    }

    /// State space of a symbol.
    pub(crate) fn symbol_space(&self, symbol: SymRef) -> Space {
        match symbol {
            SymRef::Global(id) => self.module.global(id).space,
            SymRef::Local(i) => self.body.locals[i as usize].space,
            SymRef::Param(_) | SymRef::Ret(_) => Space::Param,
            SymRef::Func(_) => Space::Generic,
        }
    }

    /// Size in bytes (0 for unsized) and alignment of a symbol.
    pub(crate) fn symbol_size(&self, symbol: SymRef) -> (u64, u32) {
        match symbol {
            SymRef::Global(id) => (self.module.global(id).size, self.module.global(id).align),
            SymRef::Local(i) => (self.body.locals[i as usize].size, self.body.locals[i as usize].align),
            SymRef::Func(_) => (0, 1),
            SymRef::Param(_) | SymRef::Ret(_) => self.formal(symbol).map_or((0, 1), |f| (u64::from(f.size), f.align)),
        }
    }
}
