//! Addresses: `[r+4]`, `[variable]`, `variable[3]`, bracketed lists, and names without brackets (manual, section 6.4.1).

use super::operand::Named;
use super::walk::Walker;
use super::{Base, Candidate, Operand, SymRef, Want, space_of};
use crate::consts::{self, Const};
use crate::{Extent, compat};
use margay_isa::{Mod, Opcode, Space, Ty, Type, name};
use margay_syntax::{
    Span,
    diag::{Code, Diagnostic},
    tree::{self, Kind, List},
};

impl<'a> Walker<'a, '_> {
    /// A bracketed address in the space of the instruction.
    pub(super) fn address(&mut self, c: &Candidate, want: &Want, op: &'a tree::Operand) -> Operand {
        let tree = self.tree;
        match op.kind {
            Kind::Brackets(list) => match tree.operands(list) {
                [inner] => {
                    if tree.text.as_bytes().get(op.span.end as usize - 1) != Some(&b']') {
                        self.unified(c, op.span, inner);
                    }
                    self.inside(c, want, inner)
                }
                _ => self.wrong_kind(want, op, "one address"),
            },
            // `variable[3]` is already an address.
            Kind::Index { base, index } if takes_elements(c) => self.element(c, want, op, base, index),
            Kind::Error => Operand::Error,
            _ => self.missing_brackets(want, op),
        }
    }

    /// `[r].unified`: of loads through registers, from global memory (section 9.7.9.8); ptxas takes it from atomics, too.
    #[cold]
    fn unified(&mut self, c: &Candidate, at: Span, inner: &tree::Operand) {
        let place = Span::new(at.end - ".unified".len() as u32, at.end);
        let name = match inner.kind {
            Kind::Sum { base, .. } => self.tree.operands.get(base as usize),
            _ => Some(inner),
        };
        let register =
            name.is_some_and(|n| matches!(n.kind, Kind::Name) && matches!(self.named(n.span), Named::Reg(..)));
        let why = match c.variant.op {
            Opcode::Ld | Opcode::Ldu | Opcode::Atom => match c.variant.space() {
                Space::Global | Space::Generic if register => return,
                Space::Global | Space::Generic => "the address is in a register",
                _ => "only global memory can be unified",
            },
            _ => "only loads and atomics accept it",
        };
        let message = format!("`.unified` cannot be combined with `{}` here", c.variant);
        self.report.push(Diagnostic::new(Code::OperandForm, place, message).here("not here").note(why));
    }

    /// The operand in brackets.
    fn inside(&mut self, c: &Candidate, want: &Want, inner: &'a tree::Operand) -> Operand {
        let tree = self.tree;
        match inner.kind {
            Kind::Name => self.based(c, want, inner.span, 0, inner.span),
            Kind::Sum { base, offset, minus } => {
                let Some(name) = tree.operands.get(base as usize) else { return Operand::Error };
                if !matches!(name.kind, Kind::Name) || tree.str(name.span) == "WARP_SZ" {
                    return self.absolute(c, want, inner);
                }
                let offset = self.offset(offset, minus).unwrap_or(0);
                self.based(c, want, name.span, offset, inner.span)
            }
            Kind::Int { .. } | Kind::Expr(_) | Kind::Float { .. } => self.absolute(c, want, inner),
            Kind::Index { base, index } => self.element(c, want, inner, base, index),
            Kind::Error => Operand::Error,
            _ => self.wrong_kind(want, inner, "a register or variable"),
        }
    }

    fn element(&mut self, c: &Candidate, want: &Want, op: &'a tree::Operand, base: u32, index: u32) -> Operand {
        let tree = self.tree;
        let Some(name) = tree.operands.get(base as usize) else {
            return Operand::Error;
        };
        let register = self.register_index(index);
        if !self.is_array(name.span) {
            return Operand::Error;
        }
        let offset = match (register, self.named(name.span)) {
            (None, Named::Symbol(symbol)) => self.element_offset(symbol, index),
            (None, _) => self.offset(index, false).unwrap_or(0),
            (Some(_), _) => 0,
        };
        // The variable must fit all the same.
        match self.based(c, want, name.span, offset, op.span) {
            Operand::Address(Base::Sym(symbol), _) if register.is_some() => {
                self.indexed(symbol, register).unwrap_or(Operand::Error)
            }
            other => other,
        }
    }

    /// Whether a name may be indexed; reports names that are not arrays.
    pub(super) fn is_array(&mut self, name: Span) -> bool {
        let (what, declared) = match self.named(name) {
            Named::Reg(_, decl) => ("a register", Some(self.body.regs[decl as usize].name)),
            Named::Symbol(symbol) => match self.symbol_extent(symbol) {
                Extent::Scalar => ("no array", Some(self.type_of_symbol(symbol).1)),
                Extent::Array(_) | Extent::Unsized => return true,
            },
            _ => return true,
        };
        let text = self.tree.str(name);
        let d = Diagnostic::new(Code::OperandForm, name, format!("`{text}` is {what} and cannot be indexed"))
            .help(format!("write an offset in bytes: `[{text}+4]`"));
        self.report.push(match declared {
            Some(at) => d.label(at, "declared here"),
            None => d,
        });
        false
    }

    /// An address that starts from a name.
    fn based(&mut self, c: &Candidate, want: &Want, name: Span, offset: i64, span: Span) -> Operand {
        match self.named(name) {
            Named::Reg(reg, decl) => {
                self.reads(reg, name);
                let d = &self.body.regs[decl as usize];
                if d.ty.bits() == 16 && completes_copy(c, want) {
                    return self.short_barrier(decl, name);
                }
                let packed = d.ty == Type::F16x2 && want.opnd.ty == Ty::Pointer;
                if !compat::has(want.regs, d.ty) || d.vector != 1 || packed {
                    self.no_address(want, decl, name);
                } else if d.ty.bits() == 32 && self.module.address_size == 64 && want.opnd.ty == Ty::Pointer {
                    // Tensor memory has addresses of a type of their own.
                    self.narrow_address(c, want, decl, name);
                }
                Operand::Address(Base::Reg(reg), offset)
            }
            Named::Symbol(_) if want.opnd.ty != Ty::Pointer => {
                self.no_address_name(name);
                Operand::Error
            }
            Named::Symbol(symbol) => {
                self.symbol_address(c, want, symbol, offset, span);
                Operand::Address(Base::Sym(symbol), offset)
            }
            Named::Faulty => Operand::Error,
            Named::Unknown => {
                let what = if want_space(c, want) == Some(Space::Param) { "parameter" } else { "variable" };
                self.unknown(name, what)
            }
            Named::Element(..) | Named::Part(..) | Named::Special(..) | Named::Label(_) | Named::Table(_) => {
                self.no_address_name(name);
                Operand::Error
            }
        }
    }

    /// A register of 16 bits for the barrier of a bulk copy; ptxas widens one in all other addresses.
    #[cold]
    fn short_barrier(&mut self, decl: u32, name: Span) -> Operand {
        let declared = self.body.regs[decl as usize].name;
        let message = format!("`{}` has 16 bits, too few for the address of a barrier", self.tree.str(name));
        let found = Diagnostic::new(Code::AddressType, name, message).label(declared, "declared here");
        self.report.ptxas_only(found.help("move the address to a wider register first"));
        Operand::Error
    }

    /// A constant address.
    fn absolute(&mut self, c: &Candidate, want: &Want, inner: &tree::Operand) -> Operand {
        match consts::eval(self.tree, inner) {
            Ok(Const::Int { value, .. }) => {
                if want_space(c, want) != Some(Space::Local) {
                    self.constant_address(c, want, inner.span);
                }
                Operand::Address(Base::Absolute, value)
            }
            Ok(_) => {
                self.report.push(Diagnostic::new(Code::ConstantType, inner.span, "an address is an integer"));
                Operand::Error
            }
            Err(e) => {
                crate::module::constant_error(self.tree, e, self.report);
                Operand::Error
            }
        }
    }

    /// The symbol's space must be the instruction's; sizes and alignments are lints.
    fn symbol_address(&mut self, c: &Candidate, want: &Want, symbol: SymRef, offset: i64, span: Span) {
        let found = self.symbol_space(symbol);
        let wanted = want_space(c, want);
        let fits = match wanted {
            None if c.variant.op == Opcode::Prefetchu => found == Space::Global,
            // Constant memory has generic addresses (since 3.1), but variables in it must be accessed with an explicit state space.
            None => !matches!(found, Space::Param | Space::Reg | Space::Const),
            Some(space) => space == found,
        };
        if !fits || matches!(symbol, SymRef::Func(_)) {
            return self.wrong_space(c, want, symbol, span);
        }
        let (ty, declared) = self.type_of_symbol(symbol);
        let moves = match c.variant.op {
            Opcode::Multimem => c.variant.has(Mod::St),
            Opcode::Wmma => true,
            _ => c.access > 0,
        };
        if moves && ty.kind() == margay_isa::Kind::Opaque {
            return self.opaque_access(ty, span, declared);
        }
        if c.variant.op == Opcode::St && c.variant.has(Mod::Bulk) && wanted.is_some() {
            let text = format!("`{}` names a variable", self.tree.str(self.mnemonic()));
            let found = Diagnostic::new(Code::OperandForm, span, text).help("move its address to a register first");
            return self.report.ptxas_only(found);
        }
        if c.variant.op == Opcode::Prefetch && wanted == Some(Space::Param) {
            // It is for a generic access of the tensor map, whose address is therefore taken.
            return crate::rules::addresses::taken(self, c, symbol, span);
        }
        if c.access > 0 && wanted.is_some() {
            crate::rules::addresses::constant(self, c, symbol, offset, span);
        }
    }

    /// `[tex, sampler, {x, y}]`
    pub(super) fn group(&mut self, c: &Candidate, want: &Want, op: &'a tree::Operand) -> Operand {
        let tree = self.tree;
        let Kind::Brackets(list) = op.kind else {
            return if matches!(op.kind, Kind::Error) { Operand::Error } else { self.missing_brackets(want, op) };
        };
        let items = tree.operands(list);
        if let ([inner, ..], false) = (items, tree.str(op.span).ends_with(']')) {
            self.unified(c, op.span, inner);
        }
        let wants = c.inside(want);
        let min = wants.iter().position(|w| w.opnd.optional).unwrap_or(wants.len());
        if items.len() < min || items.len() > wants.len() {
            return self.wrong_group(wants, op, items.len(), min);
        }
        let start = self.body.operands.len() as u32;
        self.body.operands.resize(start as usize + items.len(), Operand::Error);
        for (i, (want, item)) in wants.iter().zip(items).enumerate() {
            // The brackets of an address are those of the list.
            let operand = match want.opnd.role {
                margay_isa::Role::Addr if !matches!(item.kind, Kind::Brackets(_)) => self.inside(c, want, item),
                _ => self.operand(c, want, item),
            };
            self.body.operands[start as usize + i] = operand;
        }
        Operand::Group(List::new(start, items.len() as u32))
    }

    /// A variable with or without offset, or a register with its address, without brackets (`cvta`, `mapa`).
    pub(super) fn var_operand(&mut self, c: &Candidate, want: &Want, op: &'a tree::Operand) -> Operand {
        let tree = self.tree;
        let (name, offset, minus) = match op.kind {
            Kind::Name => (op.span, None, false),
            Kind::Index { base, index } => {
                let Some(name) = tree.operands.get(base as usize) else { return Operand::Error };
                if !self.is_array(name.span) {
                    return Operand::Error;
                }
                let register = self.register_index(index);
                if let Named::Symbol(symbol) = self.named(name.span) {
                    let offset = if register.is_some() { 0 } else { self.element_offset(symbol, index) };
                    let address = self.symbol_of_var(c, want, symbol, offset, op.span);
                    return self.indexed(symbol, register).unwrap_or(address);
                }
                (name.span, Some(index), false)
            }
            Kind::Sum { base, offset, minus } => match tree.operands.get(base as usize) {
                Some(o) if matches!(o.kind, Kind::Name) => (o.span, Some(offset), minus),
                _ => return self.wrong_kind(want, op, "a variable or register"),
            },
            Kind::Error => return Operand::Error,
            // ptxas accepts a number as an address, and a register with an offset.
            Kind::Int { .. } | Kind::Expr(_) => return self.number_for_address(op),
            _ => return self.wrong_kind(want, op, "a variable or register"),
        };
        match self.named(name) {
            Named::Reg(reg, decl) if offset.is_some() && compat::has(want.regs, self.body.regs[decl as usize].ty) => {
                self.reads(reg, name);
                offset.and_then(|o| self.offset(o, minus));
                self.report.text_only(self.no_variable(op.span));
                Operand::Computed
            }
            Named::Reg(reg, decl) if offset.is_none() => {
                self.reads(reg, name);
                if want.opnd.untyped && self.forgotten_type(want, decl, name) {
                    return Operand::Computed;
                }
                self.whole_register(c, want, decl, name);
                Operand::Reg(reg)
            }
            Named::Element(reg, decl, component) if offset.is_none() => {
                self.reads(reg, name);
                self.register_fits(c, want, want.regs, decl, name);
                Operand::Element(reg, component)
            }
            Named::Symbol(symbol) => {
                let offset = offset.and_then(|o| self.offset(o, minus)).unwrap_or(0);
                self.symbol_of_var(c, want, symbol, offset, op.span)
            }
            Named::Faulty => Operand::Error,
            Named::Unknown if self.tree.str(name) == "WARP_SZ" => self.number_for_address(op),
            Named::Unknown => self.unknown(name, "name"),
            _ => self.wrong_kind(want, op, "a variable or register"),
        }
    }

    /// A variable with an offset in bytes, without brackets.
    fn symbol_of_var(&mut self, c: &Candidate, want: &Want, symbol: SymRef, offset: i64, at: Span) -> Operand {
        // Generic, too, `mapa` and `getctarank` are about shared memory.
        let cluster = matches!(c.variant.op, Opcode::Mapa | Opcode::Getctarank).then_some(Space::Shared);
        let wanted = want_space(c, want).or(cluster);
        if wanted.is_some_and(|w| w != self.symbol_space(symbol)) {
            self.wrong_space(c, want, symbol, at);
        } else {
            crate::rules::addresses::taken(self, c, symbol, at);
        }
        Operand::Symbol(symbol, offset)
    }

    /// A number where a variable or a register with an address is wanted.
    #[cold]
    fn number_for_address(&mut self, op: &tree::Operand) -> Operand {
        match consts::eval(self.tree, op) {
            Ok(Const::Int { .. }) => {
                self.report.text_only(self.no_variable(op.span));
                Operand::Computed
            }
            Ok(_) => {
                self.report.push(Diagnostic::new(Code::ConstantType, op.span, "an address is an integer"));
                Operand::Error
            }
            Err(e) => {
                crate::module::constant_error(self.tree, e, self.report);
                Operand::Error
            }
        }
    }

    fn no_variable(&self, span: Span) -> Diagnostic {
        let (text, found) = (self.tree.str(self.mnemonic()), self.tree.str(span));
        let message =
            format!("`{text}` converts the address of a variable or an address in a register; found `{found}`");
        Diagnostic::new(Code::OperandKind, span, message).help("move the address to a register first")
    }
}

/// Whether the operand is the barrier at which `cp.async.bulk` completes, other than with multicast or of tensors.
fn completes_copy(c: &Candidate, want: &Want) -> bool {
    let v = &c.variant;
    let bulk = v.op == Opcode::Cp && v.has(Mod::Bulk) && want.opnd.name == name::MBAR;
    bulk && !v.has(Mod::Tensor) && !v.has(Mod::MulticastCluster) && !v.has(Mod::Reduce)
}

/// Whether ptxas reads `variable[3]` as an address: in plain loads and stores.
fn takes_elements(c: &Candidate) -> bool {
    let v = &c.variant;
    match v.op {
        Opcode::Ld | Opcode::Ldu => true,
        Opcode::St => !v.has(Mod::Async) && !v.has(Mod::Bulk),
        Opcode::Multimem => v.has(Mod::Red),
        _ => false,
    }
}

/// The space that an address must be in: that of the operand, or of the instruction.
pub(super) fn want_space(c: &Candidate, want: &Want) -> Option<Space> {
    want.opnd.space.or(c.space).and_then(space_of)
}
