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
    if !super::texture::address(w, c, inst) {
        super::width::of_variable(w, c, inst);
    }
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

#[cfg(test)]
mod tests {
    use crate::rules::testing::{codes, kernel};

    /// Sections 10.1, 10.2, 10.6, 10.7 and 10.10, and ptxas 13.5.
    #[test]
    fn narrow_reads_of_special_registers() {
        let on = |text: &str| codes(&kernel("8.0", "sm_90", text));
        for good in
            ["mov.u16 %h0, %tid.x;", "mov.b16 %h0, %nctaid.z;", "mov.u16 %h0, %gridid;", "mov.u32 %r0, %gridid;"]
        {
            assert_eq!(on(good), [""; 0], "{good}");
        }
        for bad in ["mov.u16 %h0, %clusterid.x;", "mov.u16 %h0, %laneid;", "mov.u32 %r0, %clock64;"] {
            assert_eq!(on(bad), ["E0303"], "{bad}");
        }
    }

    /// ptxas 13.5 fills a vector with a special register of the width of an element: "Arguments mismatch for instruction 'mov'" else.
    #[test]
    fn special_registers_for_vectors() {
        let on = |text: &str| codes(&kernel("8.0", "sm_90", text));
        for good in ["mov.v2.u32 {%r0,%r1}, %laneid;", "mov.v4.u32 {%r0,%r1,%r2,%r3}, %gridid;"] {
            assert_eq!(on(good), [""; 0], "{good}");
        }
        for bad in ["mov.v2.u32 {%r0,%r1}, %clock64;", "mov.v2.u32 {%r0,%r1}, %is_explicit_cluster;"] {
            assert_eq!(on(bad), ["E0307"], "{bad}");
        }
    }
}
