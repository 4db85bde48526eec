//! Operands by their roles, and what names stand for (manual, chapter 6). Destination operands are in `destination`, source operands in
//! `source`, addresses in `address`; labels, tables and handles are here.

use super::names::Binding;
use super::walk::Walker;
use super::{Candidate, Operand, RegId, SymRef, TargetTable, Want};
use crate::{Extent, Symbol};
use margay_isa::{Component, Role, Space, Special, Type};
use margay_syntax::{
    Span,
    tree::{self, Kind},
};

/// The meaning of a name.
#[derive(Clone, Copy, Debug)]
pub(super) enum Named {
    /// A register: its id and declaration.
    Reg(RegId, u32),
    /// An element of a vector register.
    Element(RegId, u32, Component),
    /// A part of a register: `r.b0`. The text after the dot.
    Part(RegId, u32, Span),
    /// A special register.
    Special(Special, Option<Component>),
    /// A variable, formal or function.
    Symbol(SymRef),
    /// A label.
    Label(super::LabelId),
    /// A table.
    Table(super::TableId),
    /// A mistake that has its diagnostic, or must not get one.
    Faulty,
    /// Nothing of that name.
    Unknown,
}

impl<'a> Walker<'a, '_> {
    /// Resolves and checks one operand.
    pub(super) fn operand(&mut self, c: &Candidate, want: &Want, op: &'a tree::Operand) -> Operand {
        if want.opnd.braces() && want.count == Some(1) && !matches!(op.kind, Kind::Braces(_) | Kind::Error) {
            self.needs_braces(want, op);
        }
        match want.opnd.role {
            Role::Dst => self.dst(c, want, op),
            Role::Src => self.src(c, want, op),
            Role::Imm => self.imm(c, want, op),
            Role::Addr => self.address(c, want, op),
            Role::Var => self.var_operand(c, want, op),
            Role::Group(_) => self.group(c, want, op),
            Role::Label => match op.kind {
                Kind::Name => self.label_named(op.span).map_or(Operand::Error, Operand::Label),
                Kind::Error => Operand::Error,
                _ => self.wrong_kind(want, op, "a label"),
            },
            Role::Table => match op.kind {
                Kind::Name => self.table_named(op.span),
                Kind::Error => Operand::Error,
                _ => self.wrong_kind(want, op, "the label of a table"),
            },
            Role::Handle(ty) => self.handle(want, ty, op),
            // Only `call` has these, and it does not come here.
            Role::Callee | Role::Rets | Role::Args => Operand::Error,
        }
    }

    /// The meaning of a name.
    pub(super) fn named(&mut self, span: Span) -> Named {
        match self.names.at(&self.tree.text, span) {
            Some((Binding::Label(id), _)) if self.means_other(id, span).is_some() => self.other_name(span),
            Some((binding, number)) => self.bound(binding, number),
            None => self.other_name(span),
        }
    }

    /// The meaning of a name that is not declared in the body: a special register, a part of a register, a symbol of the module.
    fn other_name(&mut self, span: Span) -> Named {
        let name = self.tree.str(span);
        if name.as_bytes().first() == Some(&b'%') {
            let (base, selector) = match name.find('.') {
                Some(dot) => (name[..dot].trim_end(), Some(&name[dot + 1..])),
                None => (name, None),
            };
            // A variable of the body may have the name of a special register, and hides it.
            let hidden =
                selector.is_some() && self.names.get(base).is_some_and(|(b, _)| !matches!(b, Binding::Label(_)));
            if let Some(special) = Special::from_name(base).filter(|_| !hidden) {
                return self.special(special, base, selector, span);
            }
        }
        if let Some(dot) = name.find('.') {
            return self.selected(span, dot);
        }
        self.module_name(span, name)
    }

    fn bound(&self, binding: Binding, number: u32) -> Named {
        match binding {
            Binding::Reg(decl) => Named::Reg(RegId(self.body.regs[decl as usize].first.0.saturating_add(number)), decl),
            Binding::Local(first) => Named::Symbol(SymRef::Local(first + number)),
            Binding::Param(i) => Named::Symbol(SymRef::Param(i)),
            Binding::Ret(i) => Named::Symbol(SymRef::Ret(i)),
            Binding::Label(id) => Named::Label(id),
            Binding::Table(id) => Named::Table(id),
            Binding::Faulty => Named::Faulty,
        }
    }

    #[cold]
    fn module_name(&mut self, span: Span, name: &str) -> Named {
        match self.module.symbol(name) {
            Some(Symbol::Global(id)) if self.module.global(id).first.start <= span.start => {
                let global = self.module.global(id);
                match global.space {
                    Space::Reg => match self.module_register(span) {
                        Some(Operand::Reg(reg)) => {
                            let decl = self.body.regs.partition_point(|d| d.first <= reg) as u32 - 1;
                            Named::Reg(reg, decl)
                        }
                        _ => Named::Faulty,
                    },
                    // The declaration could not be read.
                    Space::Generic => Named::Faulty,
                    _ => {
                        // A name that is used repeatedly is mostly used again soon; `examine` drops the other duplicates.
                        if !self.facts.globals.iter().rev().take(8).any(|g| g.0 == id) {
                            self.facts.globals.push((id, span));
                        }
                        Named::Symbol(SymRef::Global(id))
                    }
                }
            }
            Some(Symbol::Func(id)) if self.module.func(id).first.start <= span.start => {
                self.facts.taken.push((id, span));
                Named::Symbol(SymRef::Func(id))
            }
            Some(Symbol::Alias(a)) if self.module.aliases[a as usize].first.start <= span.start => {
                let of = self.module.aliases[a as usize].of;
                self.facts.taken.push((of, span));
                Named::Symbol(SymRef::Func(of))
            }
            Some(Symbol::Global(id)) => {
                self.too_early(span, self.module.global(id).first);
                Named::Faulty
            }
            Some(Symbol::Func(id)) => {
                self.too_early(span, self.module.func(id).first);
                Named::Faulty
            }
            _ => Named::Unknown,
        }
    }

    /// A register of module scope (PTX before 3.0): its declaration follows those of the body.
    pub(super) fn module_register(&mut self, span: Span) -> Option<Operand> {
        let Some(Symbol::Global(id)) = self.module.symbol(self.tree.str(span)) else { return None };
        let global = self.module.global(id);
        if global.space != Space::Reg || global.first.start > span.start {
            return None;
        }
        if let Some(reg) = self.module_registers.get(&id) {
            return Some(Operand::Reg(*reg));
        }
        let decl = self.register(global.ty, global.vector, 1, false, global.span, Some(id));
        let reg = self.body.regs[decl as usize].first;
        self.module_registers.insert(id, reg);
        // Others may write it.
        self.wrote(reg);
        Some(Operand::Reg(reg))
    }

    fn special(&mut self, special: Special, base: &str, selector: Option<&str>, span: Span) -> Named {
        let info = special.info();
        self.check_special(special, base, span);
        let component = match selector {
            None => None,
            Some(text) => match component(text) {
                Some(c) if info.width > 1 => Some(c),
                _ => {
                    self.bad_selector(span, base.len() as u32, info.width);
                    return Named::Faulty;
                }
            },
        };
        Named::Special(special, component)
    }

    /// `v.x`, `r.b0`, or a name that no declaration knows.
    fn selected(&mut self, span: Span, dot: usize) -> Named {
        let name = self.tree.str(span);
        let base = name[..dot].trim_end();
        let binding = match self.names.get(base) {
            Some((Binding::Reg(decl), number)) => Some((decl, number)),
            Some((Binding::Faulty, _)) => return Named::Faulty,
            Some(_) => None,
            None => None,
        };
        let Some((decl, number)) = binding else {
            return match self.names.get(base) {
                Some(_) => {
                    self.bad_selector(span, dot as u32, 1);
                    Named::Faulty
                }
                None => {
                    self.unknown(Span::new(span.start, span.start + dot as u32), "register");
                    Named::Faulty
                }
            };
        };
        let d = &self.body.regs[decl as usize];
        let reg = RegId(d.first.0.saturating_add(number));
        match component(&name[dot + 1..]) {
            Some(c) if (c as u8) < d.vector && d.vector > 1 => Named::Element(reg, decl, c),
            _ if d.vector == 1 => Named::Part(reg, decl, Span::new(span.start + dot as u32 + 1, span.end)),
            _ => {
                let width = d.vector;
                self.bad_selector(span, dot as u32, width);
                Named::Faulty
            }
        }
    }

    fn table_named(&mut self, span: Span) -> Operand {
        match self.named(span) {
            Named::Table(id) if matches!(self.body.tables[id.0 as usize], TargetTable::Branch(_)) => Operand::Table(id),
            Named::Faulty => Operand::Error,
            Named::Unknown => self.unknown(span, "table"),
            _ => {
                self.not_a_table(span);
                Operand::Error
            }
        }
    }

    /// A texture, sampler or surface: a variable, a kernel parameter, or a register with its handle.
    fn handle(&mut self, want: &Want, ty: Type, op: &'a tree::Operand) -> Operand {
        if !matches!(op.kind, Kind::Name) {
            return if matches!(op.kind, Kind::Error) {
                Operand::Error
            } else {
                self.wrong_kind(want, op, "a texture, sampler or surface")
            };
        }
        match self.named(op.span) {
            Named::Reg(reg, decl) => {
                self.reads(reg, op.span);
                let d = &self.body.regs[decl as usize];
                if d.ty.bits() != 64 || d.vector != 1 || d.ty.is_float() {
                    self.no_handle(op.span, decl);
                }
                Operand::Reg(reg)
            }
            Named::Symbol(symbol) => {
                let (found, declared) = self.type_of_symbol(symbol);
                if found != ty && !(found == Type::B8 || self.symbol_space(symbol) == Space::Tex) {
                    self.other_handle(ty, found, op.span, declared);
                } else if found == ty && self.symbol_extent(symbol) != Extent::Scalar {
                    self.array_of_handles(ty, op.span, declared);
                }
                Operand::Symbol(symbol, 0)
            }
            Named::Unknown => self.unknown(op.span, "variable"),
            Named::Faulty => Operand::Error,
            _ => self.wrong_kind(want, op, "a texture, sampler or surface"),
        }
    }
}

fn component(text: &str) -> Option<Component> {
    Some(match text {
        "x" | "r" => Component::X,
        "y" | "g" => Component::Y,
        "z" | "b" => Component::Z,
        "w" | "a" => Component::W,
        _ => return None,
    })
}
