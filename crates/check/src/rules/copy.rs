//! `cp.async`: how much is read (manual, section 9.7.9.25.3.1).

use crate::body::{Candidate, Inst, Operand, Walker};
use margay_syntax::diag::{Code, Diagnostic};

/// A constant `src-size` is at most `cp-size`; the rest of the destination is filled with zeros.
pub(crate) fn source_size(w: &mut Walker<'_, '_>, _c: &Candidate, inst: &Inst) {
    let [_, _, Operand::Int(copied), Operand::Int(read), ..] = *w.body.operands(inst.operands) else { return };
    if read <= copied || !(0..=16).contains(&read) {
        return;
    }
    let operands = w.tree.operands(w.tree.instrs[inst.node as usize].operands);
    let (Some(size), Some(at)) = (operands.get(2), operands.get(3)) else { return };
    w.report.push(
        Diagnostic::new(
            Code::ConstantRange,
            at.span,
            format!("`src-size` is {read}, more than the {copied} bytes copied"),
        )
        .label(size.span, "this many bytes are written"),
    );
}

#[cfg(test)]
mod tests {
    use crate::rules::testing::{codes, kernel};

    #[test]
    fn more_is_read_than_written() {
        let module =
            |size: &str| kernel("8.0", "sm_80", &format!("cp.async.ca.shared.global [%rd0], [%rd1], 8, {size};"));
        assert_eq!(codes(&module("8")), [""; 0]);
        assert_eq!(codes(&module("9")), ["E0315"]);
        assert_eq!(codes(&module("%r0")), [""; 0]);
    }
}
