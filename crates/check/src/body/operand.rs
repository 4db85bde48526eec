//! Operands that are values: registers, vectors, constants, predicates, special registers, labels, tables, handles
//! (manual, chapter 6 and sections 9.2 to 9.4).

use super::names::Binding;
use super::walk::Walker;
use super::{Candidate, Operand, RegId, SymRef, TargetTable, Want};
use crate::compat::{self, Constants};
use crate::consts::{self, Const};
use crate::{Extent, Function, Symbol, module};
use margay_isa::{Component, Kind as TypeKind, Role, Rule, Space, Special, Type};
use margay_syntax::{
    Span,
    diag::{Code, Diagnostic},
    tree::{self, Expr, Kind, UnaryOp},
};

/// What a name turned out to be.
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

    /// What a name stands for.
    pub(super) fn named(&mut self, span: Span) -> Named {
        let name = self.tree.str(span);
        if let Some((binding, number)) = self.names.get(name) {
            return self.bound(binding, number);
        }
        if name.as_bytes().first() == Some(&b'%') {
            let (base, selector) = match name.find('.') {
                Some(dot) => (&name[..dot], Some(&name[dot + 1..])),
                None => (name, None),
            };
            if let Some(special) = Special::from_name(base) {
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
                        // What is named again and again is mostly named again soon; `examine` drops the other doubles.
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

    /// A register of module scope (PTX before 3.0): it gets a declaration behind those of the body.
    pub(super) fn module_register(&mut self, span: Span) -> Option<Operand> {
        let Some(Symbol::Global(id)) = self.module.symbol(self.tree.str(span)) else { return None };
        let global = self.module.global(id);
        if global.space != Space::Reg || global.first.start > span.start {
            return None;
        }
        if let Some(decl) = self.body.regs.iter().find(|d| d.global == Some(id)) {
            return Some(Operand::Reg(decl.first));
        }
        let decl = self.register(global.ty, global.vector, 1, false, global.span, Some(id));
        let reg = self.body.regs[decl as usize].first;
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
        let base = &name[..dot];
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

    pub(super) fn dst(&mut self, c: &Candidate, want: &Want, op: &'a tree::Operand) -> Operand {
        if want.opnd.paired && want.pair != 0 && !matches!(op.kind, Kind::Pair(_) | Kind::Error) {
            return self.missing_partner(want, op);
        }
        match op.kind {
            Kind::Name => {
                if self.tree.str(op.span) == "_" {
                    return self.discard(want, op.span);
                }
                match self.named(op.span) {
                    Named::Reg(reg, decl) => {
                        let d = &self.body.regs[decl as usize];
                        if compat::has(want.regs, d.ty) && want.count == Some(u32::from(d.vector)) {
                            self.wrote(reg);
                            return Operand::Reg(reg);
                        }
                        self.wrote(reg);
                        self.whole_register(c, want, decl, op.span);
                        Operand::Reg(reg)
                    }
                    Named::Element(reg, decl, component) => {
                        self.wrote(reg);
                        self.register_fits(c, want, want.regs, decl, op.span);
                        Operand::Element(reg, component)
                    }
                    Named::Part(reg, decl, selector) => {
                        self.wrote(reg);
                        self.part(c, want, reg, decl, selector, false)
                    }
                    Named::Special(..) => {
                        self.report.push(
                            Diagnostic::new(
                                Code::SpecialRegister,
                                op.span,
                                format!("`{}` is read-only", self.tree.str(op.span)),
                            )
                            .here("special registers cannot be written"),
                        );
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
            // ptxas lets a second result that nobody has be discarded.
            if let (Some(d), Some(q)) = (tree.operands.get(first as usize), tree.operands.get(first as usize + 1))
                && sink(q)
                && matches!(d.kind, Kind::Name)
            {
                let name = tree.str(self.mnemonic());
                let needless = Diagnostic::new(Code::OperandForm, span, format!("`{name}` has one result here"));
                self.report.text_only(needless.fix(span, tree.str(d.span), "leave out `|_`"));
                return self.dst(c, want, d);
            }
            self.report.push(
                Diagnostic::new(
                    Code::OperandForm,
                    span,
                    format!("`{}` has one result here", self.tree.str(self.mnemonic())),
                )
                .note("`p|q` is for instructions that write two results"),
            );
            return Operand::Error;
        }
        let (Some(p), Some(q)) = (tree.operands.get(first as usize), tree.operands.get(first as usize + 1)) else {
            return Operand::Error;
        };
        let one = Want { pair: 0, ..want.clone() };
        let other = Want {
            pair: 0,
            count: Some(1),
            regs: want.pair,
            ty: want.opnd.pair.and_then(|t| super::memo::type_of(&c.variant, t)),
            ..want.clone()
        };
        let at = self.body.operands.len() as u32;
        self.body.operands.extend([Operand::Error, Operand::Error]);
        for (i, (want, op)) in [(&one, p), (&other, q)].into_iter().enumerate() {
            let operand = match sink(op) {
                true if i == 0 => self.discard(want, op.span),
                true => Operand::Sink,
                false => self.dst(c, want, op),
            };
            self.body.operands[at as usize + i] = operand;
        }
        Operand::Pair(at)
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

    pub(super) fn src(&mut self, c: &Candidate, want: &Want, op: &'a tree::Operand) -> Operand {
        match op.kind {
            Kind::Int { .. } | Kind::Float { .. } | Kind::Expr(_)
                if !want.element && want.count.is_some_and(|n| n > 1 || want.opnd.braces()) =>
            {
                self.constant_for_vector(want, op)
            }
            Kind::Name => match self.named(op.span) {
                Named::Reg(reg, decl) => {
                    self.reads(reg, op.span);
                    let d = &self.body.regs[decl as usize];
                    if compat::has(want.regs, d.ty) && want.count == Some(u32::from(d.vector)) {
                        return Operand::Reg(reg);
                    }
                    self.whole_register(c, want, decl, op.span);
                    Operand::Reg(reg)
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
            Kind::Index { base, index } if c.rules.contains(&Rule::MovOperand) => {
                self.element_address(base, index, op.span)
            }
            Kind::Brackets(_) => self.needless_brackets(op),
            Kind::Error => Operand::Error,
            _ => self.wrong_kind(want, op, "a register or constant"),
        }
    }

    #[cold]
    fn named_source(&mut self, c: &Candidate, want: &Want, op: &'a tree::Operand, named: Named) -> Operand {
        match named {
            Named::Reg(reg, _) => Operand::Reg(reg),
            Named::Element(reg, decl, component) => {
                self.reads(reg, op.span);
                self.register_fits(c, want, want.regs, decl, op.span);
                Operand::Element(reg, component)
            }
            Named::Part(reg, decl, selector) => {
                self.reads(reg, op.span);
                self.part(c, want, reg, decl, selector, false)
            }
            Named::Special(special, component) => {
                self.special_fits(c, want, special, component, op.span);
                Operand::Special(special, component)
            }
            Named::Symbol(symbol) => self.symbol_value(c, want, symbol, 0, op.span),
            Named::Label(_) | Named::Table(_) => self.wrong_kind(want, op, "a register or constant"),
            Named::Faulty => Operand::Error,
            Named::Unknown => match self.tree.str(op.span) {
                "WARP_SZ" => self.integer(c, want, 32, op.span),
                "_" => {
                    self.report.push(
                        Diagnostic::new(Code::Discard, op.span, "`_` has no value")
                            .here("only results can be discarded"),
                    );
                    Operand::Error
                }
                _ => self.unknown(op.span, if c.rules.contains(&Rule::MovOperand) { "name" } else { "register" }),
            },
        }
    }

    /// The address of a variable or function as a value. `mov` takes it.
    pub(super) fn symbol_value(
        &mut self,
        c: &Candidate,
        want: &Want,
        symbol: SymRef,
        offset: i64,
        span: Span,
    ) -> Operand {
        let integer =
            want.ty.is_none_or(|t| matches!(t.kind(), TypeKind::Bits | TypeKind::Signed | TypeKind::Unsigned));
        if !c.rules.contains(&Rule::MovOperand) || !integer || want.element {
            return self.no_symbol_here(c, want, symbol, span);
        }
        crate::rules::addresses::taken(self, symbol, span);
        Operand::Symbol(symbol, offset)
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
            Named::Symbol(symbol) => {
                let offset = self.offset(offset, minus);
                self.symbol_value(c, want, symbol, offset.unwrap_or(0), op.span)
            }
            Named::Unknown if tree.str(name.span) == "WARP_SZ" => self.constant(c, want, op),
            Named::Unknown => self.unknown(name.span, "variable"),
            Named::Faulty => Operand::Error,
            _ => self.wrong_kind(want, op, "a register or constant"),
        }
    }

    /// `a[3]` as a value: the address of an element, by bytes as ptxas has it.
    fn element_address(&mut self, base: u32, index: u32, span: Span) -> Operand {
        let tree = self.tree;
        let Some(name) = tree.operands.get(base as usize) else { return Operand::Error };
        if !self.is_array(name.span) {
            return Operand::Error;
        }
        match self.named(name.span) {
            Named::Symbol(symbol) => {
                let offset = self.offset(index, false).unwrap_or(0);
                crate::rules::addresses::taken(self, symbol, span);
                Operand::Symbol(symbol, offset)
            }
            Named::Unknown => self.unknown(name.span, "variable"),
            _ => Operand::Error,
        }
    }

    /// The value of an offset; complains if it is no integer constant.
    pub(super) fn offset(&mut self, index: u32, minus: bool) -> Option<i64> {
        match consts::eval_index(self.tree, index) {
            Ok(Const::Int { value, .. }) => Some(if minus { value.wrapping_neg() } else { value }),
            Ok(_) => {
                let span = self.tree.operands[index as usize].span;
                self.report.push(Diagnostic::new(Code::ConstantType, span, "the offset of an address is an integer"));
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
            Err(consts::ConstError::NotConstant(span)) if self.is_register(span) => {
                self.report.push(
                    Diagnostic::new(
                        Code::Negation,
                        op.span,
                        "operands are registers or constants, not expressions over registers",
                    )
                    .label(span, "this is a register")
                    .help("compute it with an instruction of its own"),
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
        matches!(self.names.get(self.tree.str(span)), Some((Binding::Reg(_), _)))
    }

    fn imm(&mut self, c: &Candidate, want: &Want, op: &'a tree::Operand) -> Operand {
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
            self.in_range(want, value, span);
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

    fn part(&mut self, c: &Candidate, want: &Want, reg: RegId, decl: u32, selector: Span, neg: bool) -> Operand {
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
                }
                Operand::Symbol(symbol, 0)
            }
            Named::Unknown => self.unknown(op.span, "variable"),
            Named::Faulty => Operand::Error,
            _ => self.wrong_kind(want, op, "a texture, sampler or surface"),
        }
    }

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

fn component(text: &str) -> Option<Component> {
    Some(match text {
        "x" | "r" => Component::X,
        "y" | "g" => Component::Y,
        "z" | "b" => Component::Z,
        "w" | "a" => Component::W,
        _ => return None,
    })
}
