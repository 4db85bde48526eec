//! The common type of the elements of a vector in braces (manual, section 6.4.3), inferred as in ptxas: bit-size types absorb all types of
//! their width, and integers cannot be combined with floating point. The instruction must accept this type.

use super::vector::is_fragment;
use super::walk::Walker;
use super::{Candidate, Operand, Want};
use crate::compat::{self, Constants};
use margay_isa::{Kind as TypeKind, Mod, Opcode, Role, Special, Type};
use margay_syntax::{
    Span,
    diag::{Code, Diagnostic},
    tree,
};

/// The common properties of a vector's elements.
#[derive(Default)]
struct Join {
    /// Type of the first register.
    first: Option<Type>,
    /// An untyped register, which makes all of them untyped.
    bits: Option<Type>,
    int: bool,
    float: bool,
    /// A literal or a constant expression.
    constant: bool,
    /// A constant of double precision.
    double: bool,
    /// Where the last special register is.
    special: Option<Span>,
    /// `.f16x2`, which is compatible only with itself and bit-size types.
    pair: bool,
    pred: bool,
    signed: bool,
    unsigned: bool,
    /// Registers of different widths.
    widths: bool,
    /// An element of which nothing is known.
    unknown: bool,
    sinks: usize,
}

impl Join {
    fn register(&mut self, ty: Type) {
        match ty.kind() {
            TypeKind::Bits => {
                self.bits.get_or_insert(ty);
            }
            TypeKind::Float if ty == Type::F16x2 => self.pair = true,
            TypeKind::Float => self.float = true,
            TypeKind::Pred => self.pred = true,
            TypeKind::Signed => (self.int, self.signed) = (true, true),
            _ => (self.int, self.unsigned) = (true, true),
        }
        // ptxas counts a predicate as 32 bits.
        let bits = |t: Type| if t == Type::Pred { 32 } else { t.bits() };
        match self.first {
            None => self.first = Some(ty),
            Some(first) => self.widths |= bits(first) != bits(ty),
        }
    }

    /// Whether an operand takes elements of this type.
    fn fits(&self, c: &Candidate, strict: &Want) -> bool {
        let Some(first) = self.first else { return self.unknown };
        let joined = self.bits.or(self.mixed_signs()).unwrap_or(first);
        let as_bits = first.is_int() && moves_bits(c, strict, first);
        !self.widths && compat::has(strict.regs, if as_bits { joined.untyped() } else { joined })
    }

    /// The number of kinds of types that only an untyped register makes compatible.
    fn kinds(&self) -> usize {
        [self.int, self.float, self.pair, self.pred].into_iter().filter(|k| *k).count()
    }

    /// The common type of signed and unsigned registers.
    fn mixed_signs(&self) -> Option<Type> {
        self.first.filter(|_| self.signed && self.unsigned).map(Type::untyped)
    }
}

/// Whether ptxas accepts a vector of integers as one of floats, by their bits: in loads and stores of elements of the same size.
fn moves_bits(c: &Candidate, want: &Want, element: Type) -> bool {
    let Some(ty @ (Type::F32 | Type::F64)) = want.ty else { return false };
    let moves = match c.variant.op {
        Opcode::Ld | Opcode::Ldu | Opcode::St => true,
        Opcode::Multimem => want.opnd.role == Role::Dst && ty == Type::F32,
        _ => false,
    };
    moves && element.bits() == ty.bits()
}

/// The type of a special register in a vector: ptxas takes it as bits.
fn untyped(special: Special) -> Type {
    let ty = special.info().ty;
    if ty == Type::Pred { ty } else { ty.untyped() }
}

impl<'a> Walker<'a, '_> {
    /// The elements must have one type in common, and the instruction must take it.
    pub(super) fn joined(
        &mut self,
        c: &Candidate,
        strict: &Want,
        op: &tree::Operand,
        items: &'a [tree::Operand],
        start: usize,
    ) {
        if let Some(ty) = self.one_declaration(start, items.len())
            && compat::has(strict.regs, ty)
            && !(ty.is_int() && moves_bits(c, strict, ty))
        {
            return;
        }
        let Some(join) = self.join(items, start) else { return };
        if join.sinks == items.len() {
            self.report.push(
                Diagnostic::new(Code::Discard, op.span, "every element is discarded, so their type is unknown")
                    .help("use a register for one of them"),
            );
            return;
        }
        if let Some(at) = join.special.filter(|_| join.constant) {
            let text = format!("`{}` is in one vector with a constant", self.tree.str(at));
            let found = Diagnostic::new(Code::SpecialRegister, at, text).help("move it to a register first");
            return self.report.ptxas_only(found);
        }
        if join.constant && join.first.is_none() && !join.unknown && !self.constants_alone(c, strict, op, &join) {
            return;
        }
        if join.constant && self.constant_leads(c, strict, &items[0], start) {
            return;
        }
        if !join.fits(c, strict) {
            let errors = self.report.errors;
            self.explain_elements(c, strict, items, start);
            if self.report.errors == errors && (join.widths || join.kinds() > 1) {
                let what = if join.widths { "widths" } else { "kinds" };
                let message = format!("the elements of a vector have different {what}");
                let found = Diagnostic::new(Code::OperandWidth, op.span, message);
                self.report.push(found.note("all elements of a vector have the same type"));
            }
        } else if join.kinds() > 1 && join.bits.is_none() {
            let text = self.tree.str(self.mnemonic());
            let message = format!("the elements of a vector of `{text}` are of different kinds");
            let found = Diagnostic::new(Code::OperandType, op.span, message);
            let found = found.here(match join.pred {
                true => "predicates can only be combined with `.b32`",
                false => "integers and floating-point values cannot be mixed",
            });
            self.report
                .push(found.help("declare the registers as `.b32` (or `.b64`, `.b16`), which is compatible with both"));
        }
    }

    /// The common properties of the resolved elements; `None` after an error in one of them.
    fn join(&self, items: &[tree::Operand], start: usize) -> Option<Join> {
        let mut join = Join::default();
        for (item, operand) in items.iter().zip(&self.body.operands[start..]) {
            match *operand {
                Operand::Error => return None,
                Operand::Sink => join.sinks += 1,
                Operand::Int(_) => (join.int, join.constant) = (true, true),
                Operand::Float { single, .. } => {
                    (join.float, join.constant) = (true, true);
                    join.double |= !single;
                }
                Operand::Reg(reg) | Operand::Element(reg, _) => join.register(self.body.decl(reg).ty),
                // Untyped in a vector, as ptxas has it.
                Operand::Special(special, _) => {
                    join.special = Some(item.span);
                    join.register(untyped(special));
                }
                Operand::Computed => join.unknown = true,
                _ => {}
            }
        }
        Some(join)
    }

    /// The type of the elements if all are registers of one declaration, as they nearly always are.
    fn one_declaration(&self, start: usize, count: usize) -> Option<Type> {
        let elements = self.body.operands.get(start..start + count)?;
        let Some(Operand::Reg(first)) = elements.first() else { return None };
        let d = self.body.decl(*first);
        let own = |o: &Operand| matches!(o, Operand::Reg(reg) if reg.0.wrapping_sub(d.first.0) < d.count);
        elements.iter().all(own).then_some(d.ty)
    }

    /// Whether a vector that holds nothing but constants may stand here. ptxas gives it the type of its literals: integers are
    /// signed, and numbers with a decimal point have 64 bits.
    fn constants_alone(&mut self, c: &Candidate, strict: &Want, op: &tree::Operand, join: &Join) -> bool {
        let Some(ty) = strict.ty else { return true };
        let of = |t: Type| c.variant.words.contains(&margay_isa::Word::Type(t));
        let single = match c.variant.op {
            Opcode::Multimem => c.variant.has(Mod::St),
            _ => is_fragment(c) && (!of(Type::E4m3) && !of(Type::E5m2)),
        };
        let doubles = join.double && ty == Type::F32 && single;
        let addend = matches!(strict.opnd.name, "c" | "r") && ty == Type::S32;
        let integers = join.int && is_fragment(c) && ty.bits() == 32 && !addend;
        if !doubles && (!integers || strict.constants == Constants::None) {
            return true;
        }
        let text = self.tree.str(self.mnemonic());
        let d = Diagnostic::new(
            Code::ConstantType,
            op.span,
            format!(
                "operand {} (`{}`) of `{text}` consists of constants only",
                self.current.operand + 1,
                strict.opnd.name
            ),
        );
        self.report.ptxas_only(if doubles {
            d.here("constants of double precision").help("write them in single precision, such as `0f3F800000` for 1.0")
        } else {
            d.help("move one of them to a register")
        });
        false
    }

    /// Whether a constant is the first element of a vector that ptxas gives the type of its first element: that of halves in
    /// vector reductions.
    fn constant_leads(&mut self, c: &Candidate, strict: &Want, first: &tree::Operand, start: usize) -> bool {
        let reduces = matches!(c.variant.op, Opcode::Multimem | Opcode::Red | Opcode::Atom);
        let leads = match (strict.ty, self.body.operands[start]) {
            (Some(Type::F16x2 | Type::Bf16x2), Operand::Int(_) | Operand::Float { .. }) => reduces,
            (Some(Type::F16 | Type::Bf16), Operand::Float { .. }) => reduces,
            _ => false,
        };
        if let (true, Some(ty)) = (leads, strict.ty) {
            let message = format!("a vector of `{ty}` cannot begin with the constant {}", self.tree.str(first.span));
            let d = Diagnostic::new(Code::ConstantType, first.span, message).help("move it to a register first");
            self.report.ptxas_only(d);
        }
        leads
    }

    /// Reports the error of each element.
    #[cold]
    fn explain_elements(&mut self, c: &Candidate, strict: &Want, items: &'a [tree::Operand], start: usize) {
        for (i, item) in items.iter().enumerate() {
            match self.body.operands[start + i] {
                Operand::Reg(reg) | Operand::Element(reg, _) => {
                    let decl = self.body.regs.partition_point(|d| d.first <= reg) as u32 - 1;
                    self.register_fits(c, strict, strict.regs, decl, item.span);
                }
                Operand::Int(value)
                    if !matches!(strict.constants, Constants::Int | Constants::Bits | Constants::Any) =>
                {
                    let _ = self.no_integer(c, strict, value, item.span);
                }
                Operand::Float { single, .. } => self.float(strict, single, item.span),
                Operand::Special(special, _) => self.special_in_vector(strict, special, item.span),
                _ => {}
            }
        }
    }
}
