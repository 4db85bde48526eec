//! Vectors in braces, and registers declared as vectors (manual, sections 5.4.2, 6.4.3 and 9.7.9.4).
//! `join` determines the common type of the elements of a vector in braces.

use super::walk::Walker;
use super::{Access, Candidate, Operand, RegId, Want};
use crate::compat::{self, Constants, Types};
use margay_isa::{Component, Count, Kind as TypeKind, Mod, Opcode, Type};
use margay_syntax::{
    Span,
    diag::{Code, Diagnostic},
    tree::{self, Kind, List},
};

impl<'a> Walker<'a, '_> {
    /// A register as a whole where it does not fit at first sight: a vector, or one of a wrong type.
    pub(super) fn whole_register(&mut self, c: &Candidate, want: &Want, decl: u32, span: Span) {
        let d = self.body.regs[decl as usize];
        if d.vector == 1 {
            self.register_fits(c, want, want.regs, decl, span);
            return self.vector_fits(c, want, decl, span);
        }
        match (want.count, want.ty) {
            // The whole vector is packed into one value.
            (None, Some(ty)) if d.ty.bits() * u32::from(d.vector) == ty.bits() => {}
            (None, Some(ty)) => self.packed_width(decl, ty, span),
            (Some(n), Some(ty)) if n == u32::from(d.vector) && reinterprets(d.ty, ty) => {}
            // Coordinates beyond their number are ignored.
            (Some(n), _)
                if !want.element && matches!(want.opnd.count, Count::AtLeast(_)) && n < u32::from(d.vector) =>
            {
                self.register_fits(c, want, want.regs, decl, span);
            }
            (Some(n), _) if n != u32::from(d.vector) => self.vector_fits(c, want, decl, span),
            _ => self.register_fits(c, want, want.regs, decl, span),
        }
    }

    /// An element of a vector, `v.x`, as an operand.
    pub(super) fn vector_element(
        &mut self,
        c: &Candidate,
        want: &Want,
        (reg, decl, component): (RegId, u32, Component),
        span: Span,
    ) -> Operand {
        if !want.element && want.count.is_some_and(|n| n > 1) {
            return self.one_for_vector(c, want, decl, span);
        }
        // The selectors of video instructions mean bytes and halves, and no operand of theirs is an element of a vector.
        if c.wants.iter().any(|w| w.opnd.parts.is_some()) {
            let dot = self.tree.str(span).find('.').unwrap_or(0) as u32;
            match want.opnd.parts {
                Some(parts) => self.bad_part(parts, Span::new(span.start + dot + 1, span.end)),
                None => self.bad_selector(span, dot, 1),
            }
            return Operand::Error;
        }
        self.register_fits(c, want, want.regs, decl, span);
        Operand::Element(reg, component)
    }

    /// A single value, `v.x` or `r+1`, where a vector is wanted.
    #[cold]
    pub(super) fn one_for_vector(&mut self, c: &Candidate, want: &Want, decl: u32, span: Span) -> Operand {
        let n = want.count.unwrap_or(1);
        let (name, text) = (self.tree.str(span), self.tree.str(self.mnemonic()));
        let declared = self.body.regs[decl as usize].name;
        let found = Diagnostic::new(Code::VectorSize, span, format!("`{text}` moves {n} values here, `{name}` is one"))
            .label(declared, "declared here")
            .help("name the registers in braces");
        if super::source::spreads(c, want) {
            self.report.text_only(found);
            return Operand::Computed;
        }
        self.report.push(found);
        Operand::Error
    }

    /// A vector by its name where its elements share the bits of one value, and are too many or too few.
    #[cold]
    fn packed_width(&mut self, decl: u32, ty: Type, span: Span) {
        let d = self.body.regs[decl as usize];
        let (name, text) = (self.tree.str(span), self.tree.str(self.mnemonic()));
        let bits = d.ty.bits() * u32::from(d.vector);
        let message =
            format!("`{name}` has {} elements of {} bits; `{text}` moves {} bits", d.vector, d.ty.bits(), ty.bits());
        let found = Diagnostic::new(Code::OperandWidth, span, message)
            .here(format!("{bits} bits"))
            .label(d.name, "declared here");
        self.report.push(found);
    }

    /// A vector in braces.
    pub(super) fn vector(
        &mut self,
        c: &Candidate,
        want: &Want,
        op: &tree::Operand,
        list: List<tree::Operand>,
        dst: bool,
    ) -> Operand {
        let tree = self.tree;
        let items = tree.operands(list);
        if let ([one], true) = (items, want.opnd.braced) {
            let found = self.needless_braces(want, op.span, one.span);
            self.report.text_only(found);
            return self.operand(c, want, one);
        }
        // Coordinates beyond their number are ignored.
        let spare = matches!(want.opnd.count, Count::AtLeast(_)) && matches!(items.len(), 2 | 4);
        if let Some(n) = want.count
            && n as usize != items.len()
            && !(spare && items.len() > n as usize)
        {
            if ignores_rest(c, want) && matches!(items.len(), 2 | 4) {
                // Its elements must fit all the same.
                let whole = Want { count: Some(items.len() as u32), ..*want };
                if self.vector(c, &whole, op, list, dst) == Operand::Error {
                    return Operand::Error;
                }
            }
            return self.wrong_vector(c, want, op, items.len());
        }
        if items.len() == 1 && !braces_allowed(c, want) {
            return self.wrong_vector(c, want, op, 1);
        }
        let Some(strict) = element(want, items.len()) else { return self.wrong_vector(c, want, op, items.len()) };
        let leading = usize::from(want.opnd.lead.is_some()).min(items.len());
        let start = self.elements(c, (&strict, leading), items, dst);
        let alone = match self.body.operands[start..].first() {
            Some(Operand::Sink | Operand::Special(..)) => true,
            Some(Operand::Int(_)) => is_fragment(c),
            _ => false,
        };
        if items.len() > 1 || alone {
            self.joined(c, &strict, op, &items[leading..], start + leading);
        }
        if dst || !reads_specials(c, want) {
            for operand in &mut self.body.operands[start..] {
                if matches!(operand, Operand::Special(..)) {
                    *operand = Operand::Computed;
                }
            }
        }
        let used = if spare { want.count.unwrap_or(0).min(items.len() as u32) } else { items.len() as u32 };
        Operand::Vector(List::new(start as u32, used))
    }

    /// Resolves the elements of a vector, whose first `leading` ones are a layer or an index. Returns the index of their first operand.
    fn elements(
        &mut self,
        c: &Candidate,
        (strict, leading): (&Want, usize),
        items: &'a [tree::Operand],
        dst: bool,
    ) -> usize {
        // One element is not a vector; those of others are compared together (`joined`).
        let loose =
            if items.len() > 1 { Want { regs: Types::MAX, constants: Constants::Any, ..*strict } } else { *strict };
        let start = self.body.operands.len();
        self.body.operands.resize(start + items.len(), Operand::Error);
        let access = if dst { Access::Written } else { Access::Read };
        for (i, item) in items.iter().enumerate() {
            if i >= leading
                && let Some(register) = self.plain_register(access, &loose, item)
            {
                self.body.operands[start + i] = Operand::Reg(register);
                continue;
            }
            let operand = match (dst, item.kind) {
                (true, Kind::Name) if self.tree.str(item.span) == "_" => self.discarded_element(c, item.span),
                (true, _) => self.dst(c, &loose, item),
                (false, _) if i < leading => self.src(c, &lead(c, strict), item),
                (false, _) => self.src(c, &loose, item),
            };
            self.body.operands[start + i] = operand;
        }
        start
    }

    /// `_` for an element that is written. The accumulators of `wgmma` are read as well (section 9.7.15.5.2), and ptxas wants all
    /// that is loaded from tensor memory.
    fn discarded_element(&mut self, c: &Candidate, span: Span) -> Operand {
        match c.variant.op {
            Opcode::Wgmma => {
                let found = Diagnostic::new(Code::Discard, span, "`_` has no value");
                self.report.push(found.here("`wgmma` adds to this register"));
            }
            // These targets have no such product; ptxas adds up those of halves, and an addition has no result to discard.
            Opcode::Mma if (90..120).contains(&self.module.target.sm) && of_small_floats(c) => {
                let message = format!("`{}` cannot discard a part of its result on this target", c.variant);
                self.report.ptxas_only(Diagnostic::new(Code::Discard, span, message).help("name a register"));
            }
            Opcode::Tcgen05 if !c.variant.has(Mod::Ld) => return Operand::Sink,
            Opcode::Tcgen05 | Opcode::Spcompress | Opcode::Spdecompress => {
                let message = format!("`{}` cannot discard a part of its result", self.tree.str(self.mnemonic()));
                self.report.ptxas_only(Diagnostic::new(Code::Discard, span, message).help("name a register"));
            }
            _ => return Operand::Sink,
        }
        Operand::Error
    }
}

/// Whether the operands in braces are fragments of matrices, or go to tensor memory.
pub(super) fn is_fragment(c: &Candidate) -> bool {
    matches!(c.variant.op, Opcode::Mma | Opcode::Wmma | Opcode::Stmatrix | Opcode::Tcgen05)
}

/// Whether the matrices consist of floating-point numbers of eight bits.
fn of_small_floats(c: &Candidate) -> bool {
    [Type::E4m3, Type::E5m2].iter().any(|t| c.variant.words.contains(&margay_isa::Word::Type(*t)))
}

/// Whether the operand, or an element of it, may be a special register.
pub(super) fn reads_specials(c: &Candidate, want: &Want) -> bool {
    want.opnd.special || want.opnd.is_coordinate() || matches!(c.variant.op, Opcode::St | Opcode::Cvt)
}

/// Whether an instruction of type `ty` accepts vectors of this element type: of the same width, except vectors of floats in place of integers.
fn reinterprets(element: Type, ty: Type) -> bool {
    let integer = matches!(ty.kind(), TypeKind::Signed | TypeKind::Unsigned);
    let float = matches!(element, Type::F16 | Type::F32 | Type::F64);
    let halves = matches!((element, ty), (Type::F16x2, Type::F32) | (Type::F32, Type::F16x2));
    element.bits() == ty.bits() && !(integer && float) && !halves
}

/// The requirements on each of `count` elements; `None` if the bits of the vector's type cannot be divided among that many.
fn element(want: &Want, count: usize) -> Option<Want> {
    let one = Want { count: Some(1), element: true, pair: 0, ..*want };
    let Some(ty) = want.ty.filter(|_| want.count.is_none() && count > 0) else { return Some(one) };
    // Where the table leaves the count open, a vector is packed.
    let packed = crate::rules::mov::element(ty, count)?;
    Some(Want { ty: Some(packed), regs: compat::registers(packed, false), constants: compat::constants(packed), ..one })
}

/// The requirements on the first element, where it has a type of its own.
fn lead(c: &Candidate, want: &Want) -> Want {
    let ty = want.opnd.lead.and_then(|t| c.variant.resolve_ty(t));
    Want {
        ty,
        regs: ty.map_or(Types::MAX, |t| compat::registers(t, false)),
        constants: ty.map_or(Constants::Any, compat::constants),
        ..*want
    }
}

/// Whether ptxas accepts a vector in place of a single element of a surface, and ignores its other elements.
pub(super) fn ignores_rest(c: &Candidate, want: &Want) -> bool {
    matches!(c.variant.op, Opcode::Suld | Opcode::Sust) && want.opnd.count == Count::ByVec && want.count == Some(1)
}

/// Whether a single register may be in braces: where vectors are possible, on loads, stores (of surfaces, too) and `mov`; where they are
/// counted by the shape of a fragment or the coordinates of a texel.
fn braces_allowed(c: &Candidate, want: &Want) -> bool {
    match want.opnd.count {
        Count::One => false,
        Count::ByVec => c.variant.op.moves_vectors(),
        Count::Exactly(_) | Count::Free | Count::Table(_) | Count::AtLeast(_) => true,
    }
}
