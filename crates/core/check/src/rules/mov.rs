//! `mov`: packing and unpacking of vectors (manual, section 9.7.9.4).

use crate::body::{Candidate, Inst, Operand, Walker};
use margay_isa::Type;
use margay_syntax::diag::{Code, Diagnostic};

/// The type of one of `n` elements that share the bits of `ty`; nothing if they do not come out even.
pub(crate) fn element(ty: Type, n: usize) -> Option<Type> {
    match (ty.bits(), n) {
        (_, 1) => Some(ty),
        (16, 2) | (32, 4) => Some(Type::B8),
        (32, 2) | (64, 4) => Some(Type::B16),
        (64, 2) | (128, 4) => Some(Type::B32),
        (128, 2) => Some(Type::B64),
        _ => None,
    }
}

/// The operands of a `mov` together: one side at most is a vector; an address fits.
pub(crate) fn check(w: &mut Walker<'_, '_>, c: &Candidate, inst: &Inst) {
    super::width::of_variable(w, c, inst);
    let sides = w.body.operands(inst.operands);
    // A vector by its name is moved as it is where the instruction says so, and else packed or unpacked as well.
    let packs = c.variant.vec() == 1;
    let vector = |o: &Operand| match o {
        Operand::Vector(list) => list.len > 1,
        Operand::Reg(reg) => packs && w.body.decl(*reg).vector > 1,
        _ => false,
    };
    if let [d, a] = sides
        && vector(d)
        && vector(a)
    {
        let instr = &w.tree.instrs[inst.node as usize];
        w.report.push(
            Diagnostic::new(Code::OperandForm, instr.span, "`mov` cannot pack and unpack a vector at the same time")
                .help("move the elements one by one"),
        );
    }
}
