//! `vmad`: which operands can be negated (manual, section 9.7.18.1.3).

use crate::body::{Candidate, Inst, Operand, Walker};
use margay_syntax::diag::{Code, Diagnostic};

/// The product is negated when exactly one factor is; the product and `c` are not both negated.
pub(crate) fn check(w: &mut Walker<'_, '_>, _c: &Candidate, inst: &Inst) {
    let [_, a, b, c] = *w.body.operands(inst.operands) else { return };
    let negated = |o: Operand| matches!(o, Operand::Part { neg: true, .. });
    if !(negated(a) != negated(b) && negated(c)) {
        return;
    }
    let operands = w.tree.operands(w.tree.instrs[inst.node as usize].operands);
    let (Some(product), Some(at)) = (operands.get(if negated(a) { 1 } else { 2 }), operands.get(3)) else { return };
    w.report.push(
        Diagnostic::new(Code::Negation, at.span, "the product and `c` cannot both be negated")
            .label(product.span, "this negates the product")
            .help("negate the result of the positive sum with `neg`"),
    );
}

#[cfg(test)]
mod tests {
    use crate::rules::testing::{codes, kernel};

    #[test]
    fn one_side_at_most() {
        let verdict = |operands: &str| codes(&kernel("2.0", "sm_20", &format!("vmad.s32.s32.u32 %r0, {operands};")));
        assert_eq!(verdict("-%r1, %r2, %r3"), [""; 0]);
        assert_eq!(verdict("%r1.h1, %r2.b0, -%r3"), [""; 0]);
        assert_eq!(verdict("-%r1, -%r2, -%r3"), [""; 0]);
        assert_eq!(verdict("-%r1, %r2, -%r3"), ["E0314"]);
        assert_eq!(verdict("%r1, -%r2.h0, -%r3"), ["E0314"]);
    }
}
