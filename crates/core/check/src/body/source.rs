//! Source operands: registers, vectors, constants, constant expressions, names as values
//! (manual, chapter 6 and sections 9.2 to 9.4).

use super::names::Binding;
use super::operand::Named;
use super::walk::Walker;
use super::{Candidate, Operand, RegId, SymRef, Want};
use crate::compat::{self, Constants};
use crate::consts::{self, Const};
use crate::module;
use margay_isa::{Count, Kind as TypeKind, Mod, Opcode, Role, Ty, Type, name};
use margay_syntax::{
    EvalError, Span,
    diag::{Code, Diagnostic},
    tree::{self, Expr, Kind, UnaryOp},
};

impl<'a> Walker<'a, '_> {
    pub(super) fn src(&mut self, c: &Candidate, want: &Want, op: &'a tree::Operand) -> Operand {
        match op.kind {
            Kind::Int { .. } | Kind::Float { .. } | Kind::Expr(_)
                if !want.element && want.count.is_some_and(|n| n > 1 || want.opnd.braces()) =>
            {
                if !spreads(c, want) {
                    return self.constant_for_vector(want, op);
                }
                let one = Want { count: Some(1), ..*want };
                match self.src(c, &one, op) {
                    Operand::Error => Operand::Error,
                    _ => {
                        let found = self.no_vector(want, op.span);
                        self.report.text_only(found);
                        Operand::Computed
                    }
                }
            }
            Kind::Name => match self.named(op.span) {
                Named::Reg(reg, decl) => {
                    self.reads(reg, op.span);
                    let d = &self.body.regs[decl as usize];
                    if compat::has(want.regs, d.ty) && want.count == Some(u32::from(d.vector)) {
                        return Operand::Reg(reg);
                    }
                    let single = d.vector == 1 && want.count.is_some_and(|n| n > 1);
                    self.whole_register(c, want, decl, op.span);
                    if single { Operand::Computed } else { Operand::Reg(reg) }
                }
                other => self.named_source(c, want, op, other),
            },
            Kind::Int { value, .. } => {
                let value = value.get() as i64;
                self.integer(c, want, value, op.span)
            }
            Kind::Float { bits, single } => {
                self.float(want, single, op.span);
                Operand::Float { bits: bits.get(), single }
            }
            Kind::Expr(index) => self.expression(c, want, op, index),
            Kind::Not(inner) => self.negated(c, want, op, inner),
            Kind::Braces(list) => self.vector(c, want, op, list, false),
            Kind::Sum { base, offset, minus } => self.sum(c, want, op, (base, offset, minus)),
            Kind::Index { base, index } if c.variant.op == Opcode::Mov => {
                self.element_address(c, want, (base, index), op.span)
            }
            Kind::Brackets(_) => self.needless_brackets(op),
            Kind::Error => Operand::Error,
            _ => self.wrong_kind(want, op, "a register or constant"),
        }
    }

    #[cold]
    fn named_source(&mut self, c: &Candidate, want: &Want, op: &'a tree::Operand, named: Named) -> Operand {
        let whole = needs_vector(c, want);
        match named {
            Named::Symbol(_) if whole => self.constant_for_vector(want, op),
            Named::Unknown if whole && self.tree.str(op.span) == "WARP_SZ" => self.constant_for_vector(want, op),
            Named::Reg(reg, _) => Operand::Reg(reg),
            Named::Element(reg, decl, component) => {
                self.reads(reg, op.span);
                self.vector_element(c, want, (reg, decl, component), op.span)
            }
            Named::Part(reg, decl, selector) => {
                self.reads(reg, op.span);
                self.part(c, want, reg, decl, selector, false)
            }
            Named::Special(special, component) => {
                self.special_fits(c, want, special, component, op.span);
                let single = component.is_some() || special.info().width == 1;
                if single && want.count.is_some_and(|n| n > 1) {
                    return Operand::Computed;
                }
                Operand::Special(special, component)
            }
            Named::Symbol(symbol) => self.symbol_value(c, want, symbol, None, op.span),
            Named::Label(_) | Named::Table(_) => self.wrong_kind(want, op, "a register or constant"),
            Named::Faulty => Operand::Error,
            Named::Unknown => match self.tree.str(op.span) {
                "WARP_SZ" => self.integer(c, want, 32, op.span),
                "_" => {
                    self.report.push(
                        Diagnostic::new(Code::Discard, op.span, "`_` has no value")
                            .here("`_` can only discard a result"),
                    );
                    Operand::Error
                }
                _ => self.unknown(op.span, if c.variant.op == Opcode::Mov { "name" } else { "register" }),
            },
        }
    }

    /// The address of a variable or function as a value. `mov` takes it; ptxas takes functions nearly wherever a constant may
    /// appear, and variables with an offset where an integer may.
    pub(super) fn symbol_value(
        &mut self,
        c: &Candidate,
        want: &Want,
        symbol: SymRef,
        offset: Option<i64>,
        span: Span,
    ) -> Operand {
        let integer =
            want.ty.is_none_or(|t| matches!(t.kind(), TypeKind::Bits | TypeKind::Signed | TypeKind::Unsigned));
        let fits = match (symbol, offset) {
            (SymRef::Func(_), Some(_)) => false,
            (SymRef::Func(_), None) => self.takes_function(c, want),
            (_, None) => c.variant.op == Opcode::Mov && integer,
            (_, Some(_)) => want.opnd.imm && integer && takes_address(c, want),
        };
        if !fits || want.element {
            if offset.is_none() && self.texel_coordinate(want, symbol) {
                let message =
                    format!("`{}` is a variable; coordinates are registers or constants", self.tree.str(span));
                self.report
                    .text_only(Diagnostic::new(Code::OperandKind, span, message).here("its value would not be loaded"));
                return Operand::Computed;
            }
            return self.no_symbol_here(c, want, symbol, span);
        }
        crate::rules::addresses::taken(self, c, symbol, span);
        Operand::Symbol(symbol, offset.unwrap_or(0))
    }

    /// Whether ptxas accepts a function's name as a source operand: where a constant is allowed whose type is that of the
    /// instruction, but not for counts, masks and positions, whose types are fixed. What it makes a call of takes names where the
    /// call passes 32 bits or a number of floating point.
    fn takes_function(&self, c: &Candidate, want: &Want) -> bool {
        let width = want.ty.map_or(0, Type::bits);
        match c.variant.op {
            Opcode::Div | Opcode::Rem => {
                want.opnd.imm && (width == 32 || width == 64 && want.ty.is_some_and(|t| t.kind() == TypeKind::Float))
            }
            Opcode::Shfl => want.opnd.name != name::MEMBERMASK && self.module.target.sm >= 90,
            Opcode::Fns => true,
            Opcode::Bar | Opcode::Barrier | Opcode::Setmaxnreg | Opcode::Isspacep | Opcode::Clmad => false,
            _ => want.opnd.imm && !matches!(want.opnd.ty, Ty::Is(_)),
        }
    }

    /// Whether ptxas accepts the variable as a coordinate in braces: any variable of 32 bits.
    fn texel_coordinate(&self, want: &Want, symbol: SymRef) -> bool {
        let variable = matches!(symbol, SymRef::Global(_) | SymRef::Local(_));
        let counted = matches!(want.opnd.count, Count::AtLeast(_));
        variable
            && want.element
            && counted
            && self.symbol_extent(symbol) == crate::Extent::Scalar
            && self.symbol_size(symbol).0 == 4
    }

    fn sum(
        &mut self,
        c: &Candidate,
        want: &Want,
        op: &'a tree::Operand,
        (base, offset, minus): (u32, u32, bool),
    ) -> Operand {
        let tree = self.tree;
        let Some(name) = tree.operands.get(base as usize).filter(|o| matches!(o.kind, Kind::Name)) else {
            return self.constant(c, want, op);
        };
        match self.named(name.span) {
            Named::Symbol(_) if needs_vector(c, want) => self.constant_for_vector(want, op),
            Named::Symbol(symbol) => {
                let offset = self.offset(offset, minus);
                self.symbol_value(c, want, symbol, Some(offset.unwrap_or(0)), op.span)
            }
            Named::Reg(reg, decl) if self.adds_offset(want, decl) => {
                self.reads(reg, name.span);
                let offset = self.offset(offset, minus).unwrap_or(0);
                match want.count.is_some_and(|n| n > 1) {
                    true => self.one_for_vector(c, want, decl, op.span),
                    false => Operand::Sum(reg, offset),
                }
            }
            Named::Unknown if tree.str(name.span) == "WARP_SZ" => self.constant(c, want, op),
            Named::Unknown => self.unknown(name.span, "variable"),
            Named::Faulty => Operand::Error,
            _ => self.wrong_kind(want, op, "a register or constant"),
        }
    }

    /// Whether ptxas accepts the register with an offset as this value: where the register alone would be valid, and any integer
    /// register where another type is required.
    fn adds_offset(&self, want: &Want, decl: u32) -> bool {
        let d = &self.body.regs[decl as usize];
        let integer = |t: Type| matches!(t.kind(), TypeKind::Bits | TypeKind::Signed | TypeKind::Unsigned);
        let fits = compat::has(want.regs, d.ty) || want.ty.is_some_and(integer) && integer(d.ty);
        want.opnd.imm && !want.element && fits && d.vector == 1
    }

    /// `a[3]` as a value: the address of an element.
    fn element_address(&mut self, c: &Candidate, want: &Want, (base, index): (u32, u32), span: Span) -> Operand {
        let tree = self.tree;
        let Some(name) = tree.operands.get(base as usize) else { return Operand::Error };
        if !self.is_array(name.span) {
            return Operand::Error;
        }
        let register = self.register_index(index);
        match self.named(name.span) {
            Named::Symbol(symbol) => {
                let offset = if register.is_some() { 0 } else { self.element_offset(symbol, index) };
                let address = self.symbol_value(c, want, symbol, Some(offset), span);
                if address == Operand::Error { address } else { self.indexed(symbol, register).unwrap_or(address) }
            }
            Named::Unknown => self.unknown(name.span, "variable"),
            _ => Operand::Error,
        }
    }

    /// The offset in bytes of `a[3]`: an index counts elements of the declared type, also where that is a vector or the array has several
    /// dimensions (measured: in `.v2.u64 a[4][2]`, ptxas has `a[3]` at byte 24).
    pub(super) fn element_offset(&mut self, symbol: SymRef, index: u32) -> i64 {
        let size = i64::from(self.type_of_symbol(symbol).0.bytes());
        self.offset(index, false).unwrap_or(0).wrapping_mul(size)
    }

    /// The element of an array whose index [`Self::register_index`] gave; `None` if it gave none.
    pub(super) fn indexed(&self, array: SymRef, index: Option<Operand>) -> Option<Operand> {
        Some(match index? {
            Operand::Sum(index, elements) => {
                let size = self.type_of_symbol(array).0.bytes();
                // ptxas computes with 32 bits.
                Operand::Indexed { array, index, size, offset: (elements as i32).wrapping_mul(size as i32) }
            }
            other => other,
        })
    }

    /// `a[%r1]`, `a[%r1+4]`: the index as [`Operand::Sum`]; `None` if it is constant. ptxas takes integers and bits of any width.
    pub(super) fn register_index(&mut self, index: u32) -> Option<Operand> {
        let tree = self.tree;
        let at = tree.operands.get(index as usize)?;
        let (name, plus) = match at.kind {
            Kind::Name => (at, None),
            Kind::Sum { base, offset, minus } => (tree.operands.get(base as usize)?, Some((offset, minus))),
            _ => return None,
        };
        if !matches!(name.kind, Kind::Name) || tree.str(name.span) == "WARP_SZ" {
            return None;
        }
        let Named::Reg(reg, decl) = self.named(name.span) else { return None };
        self.reads(reg, name.span);
        let d = &self.body.regs[decl as usize];
        if !d.ty.is_int() && d.ty.kind() != TypeKind::Bits || d.vector != 1 {
            let text = tree.str(name.span);
            let declared = d.name;
            self.report.push(
                Diagnostic::new(Code::OperandForm, name.span, format!("`{text}` cannot be an index"))
                    .here("an index is an integer")
                    .label(declared, "declared here"),
            );
            return Some(Operand::Error);
        }
        let elements = plus.and_then(|(offset, minus)| self.offset(offset, minus)).unwrap_or(0);
        Some(Operand::Sum(reg, elements))
    }

    /// The value of an offset; reports an offset that is not an integer constant.
    pub(super) fn offset(&mut self, index: u32, minus: bool) -> Option<i64> {
        match consts::eval_index(self.tree, index) {
            Ok(Const::Int { value, .. }) => Some(if minus { value.wrapping_neg() } else { value }),
            Ok(_) => {
                let span = self.tree.operands[index as usize].span;
                self.report.push(Diagnostic::new(
                    Code::ConstantType,
                    span,
                    "the offset of an address must be an integer",
                ));
                None
            }
            Err(e) => {
                module::constant_error(self.tree, e, self.report);
                None
            }
        }
    }

    fn expression(&mut self, c: &Candidate, want: &Want, op: &'a tree::Operand, index: u32) -> Operand {
        // `-r.h0` of the video instructions is an expression to the parser.
        if let (true, Some(Expr::Unary(UnaryOp::Minus, inner))) = (want.opnd.neg, self.tree.exprs.get(index as usize))
            && let Some(inner) = self.tree.operands.get(*inner as usize)
            && matches!(inner.kind, Kind::Name)
        {
            return match self.named(inner.span) {
                Named::Reg(reg, decl) => {
                    self.reads(reg, inner.span);
                    self.register_fits(c, want, want.regs, decl, inner.span);
                    Operand::Part { reg, part: None, neg: true }
                }
                Named::Part(reg, decl, selector) => {
                    self.reads(reg, inner.span);
                    self.part(c, want, reg, decl, selector, true)
                }
                Named::Unknown => self.unknown(inner.span, "register"),
                Named::Faulty => Operand::Error,
                _ => self.wrong_kind(want, op, "a register"),
            };
        }
        self.constant(c, want, op)
    }

    /// A constant expression as a value.
    fn constant(&mut self, c: &Candidate, want: &Want, op: &tree::Operand) -> Operand {
        match consts::eval(self.tree, op) {
            Ok(Const::Int { value, .. }) => self.integer(c, want, value, op.span),
            Ok(Const::Double(x)) => {
                self.float(want, false, op.span);
                Operand::Float { bits: x.to_bits(), single: false }
            }
            Ok(Const::Single(bits)) => {
                self.float(want, true, op.span);
                Operand::Float { bits: u64::from(bits), single: true }
            }
            Err(EvalError::NotConstant(span)) if self.is_register(span) => {
                self.report.push(
                    Diagnostic::new(
                        Code::Negation,
                        op.span,
                        "operands are registers or constants, not expressions over registers",
                    )
                    .label(span, "this is a register")
                    .help("compute it with a separate instruction"),
                );
                Operand::Error
            }
            Err(e) => {
                module::constant_error(self.tree, e, self.report);
                Operand::Error
            }
        }
    }

    fn is_register(&self, span: Span) -> bool {
        matches!(self.names.at(&self.tree.text, span), Some((Binding::Reg(_), _)))
    }

    pub(super) fn imm(&mut self, c: &Candidate, want: &Want, op: &'a tree::Operand) -> Operand {
        match op.kind {
            Kind::Int { value, .. } => {
                let value = value.get() as i64;
                self.integer(c, want, value, op.span)
            }
            Kind::Name if self.tree.str(op.span) != "WARP_SZ" => match self.named(op.span) {
                Named::Faulty => Operand::Error,
                Named::Unknown => self.unknown(op.span, "constant"),
                _ => self.wrong_kind(want, op, "a constant"),
            },
            Kind::Error => Operand::Error,
            Kind::Braces(_) | Kind::Brackets(_) | Kind::Pair(_) | Kind::Not(_) => {
                self.wrong_kind(want, op, "a constant")
            }
            _ => self.constant(c, want, op),
        }
    }

    /// An integer constant for an operand.
    pub(super) fn integer(&mut self, c: &Candidate, want: &Want, value: i64, span: Span) -> Operand {
        let fits = matches!(want.constants, Constants::Int | Constants::Bits | Constants::Any);
        if !fits || !want.opnd.imm {
            return self.no_integer(c, want, value, span);
        }
        let opnd = want.opnd;
        if !opnd.values.is_empty() || opnd.range.is_some() || opnd.step != 1 {
            self.in_range(c, want, value, span);
        }
        if let Some(ty) = want.ty
            && ty.bits() < 64
            && ty != Type::Pred
            && !(-(1i64 << (ty.bits() - 1).min(62))..1i64 << ty.bits().min(62)).contains(&value)
        {
            self.truncated(ty, value, span);
        }
        Operand::Int(value)
    }

    /// A floating-point constant for an operand; complains if it does not fit.
    pub(super) fn float(&mut self, want: &Want, single: bool, span: Span) {
        let exact = match want.ty.map(Type::bits) {
            Some(32) => single,
            Some(64) => !single,
            _ => false,
        };
        let fits = match want.constants {
            Constants::Float | Constants::Any => true,
            Constants::Bits => exact,
            Constants::Int | Constants::None => false,
        };
        if !fits || !want.opnd.imm {
            self.no_float(want, single, span);
        }
    }

    /// `!p`
    fn negated(&mut self, c: &Candidate, want: &Want, op: &'a tree::Operand, inner: u32) -> Operand {
        let tree = self.tree;
        let Some(inner) = tree.operands.get(inner as usize) else { return Operand::Error };
        if !matches!(inner.kind, Kind::Name) {
            return self.constant(c, want, op);
        }
        match self.named(inner.span) {
            Named::Reg(reg, decl) => {
                self.reads(reg, inner.span);
                let ty = self.body.regs[decl as usize].ty;
                if ty != Type::Pred {
                    self.no_negation(op.span, inner.span, decl);
                    return Operand::Error;
                }
                // ptxas takes `!p` wherever a predicate is read.
                self.register_fits(c, want, want.regs, decl, inner.span);
                Operand::Not(reg)
            }
            Named::Unknown => self.unknown(inner.span, "register"),
            Named::Faulty => Operand::Error,
            _ => self.wrong_kind(want, op, "a predicate"),
        }
    }

    pub(super) fn part(
        &mut self,
        c: &Candidate,
        want: &Want,
        reg: RegId,
        decl: u32,
        selector: Span,
        neg: bool,
    ) -> Operand {
        let text = self.tree.str(selector);
        let Some(parts) = want.opnd.parts else {
            self.bad_selector(selector, 0, 1);
            return Operand::Error;
        };
        let part = parts.parse(text);
        if part.is_none() {
            self.bad_part(parts, selector);
        }
        self.register_fits(c, want, want.regs, decl, selector);
        Operand::Part { reg, part, neg }
    }
}

/// Whether nothing but a vector will do for this operand.
fn needs_vector(c: &Candidate, want: &Want) -> bool {
    !want.element && want.count.is_some_and(|n| n > 1) && !spreads(c, want)
}

/// Whether ptxas accepts a variable with an offset as an integer: not in instructions that it turns into calls, if the call passes 64 bits.
fn takes_address(c: &Candidate, want: &Want) -> bool {
    match c.variant.op {
        Opcode::Div | Opcode::Rem => want.ty.is_none_or(|t| t.bits() != 64),
        Opcode::Clmad => false,
        _ => true,
    }
}

/// Whether ptxas accepts one value in place of a vector that is read, to which the manual gives no meaning.
pub(super) fn spreads(c: &Candidate, want: &Want) -> bool {
    let stored = c.variant.op == Opcode::St && c.variant.has(Mod::Async);
    let written = (stored || matches!(c.variant.op, Opcode::Mov | Opcode::Sust)) && want.opnd.count == Count::ByVec;
    want.opnd.role == Role::Src && !want.element && (written || matches!(want.opnd.count, Count::AtLeast(_)))
}
