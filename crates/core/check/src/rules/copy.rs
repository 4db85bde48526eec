//! `cp.async`: the size of the source (manual, section 9.7.9.25.3.1); `tensormap.replace`: values of later versions (9.7.9.28).

use crate::body::{Candidate, Inst, Operand, Walker};
use crate::report::lacking;
use margay_isa::{Mod, Since, Target};
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
            format!("`src-size` is {read}, but only {copied} bytes are copied"),
        )
        .label(size.span, "this many bytes are written"),
    );
}

/// `.elemtype` 13 to 15 and `.swizzle_mode` 4 exist on later architectures only.
pub(crate) fn tensor_map_value(w: &mut Walker<'_, '_>, c: &Candidate, inst: &Inst) {
    static NARROW: Since = Since::on(8, 7, &[Target::family(100), Target::family(110), Target::family(120)]);
    static SWIZZLE: Since = Since::on(8, 8, &[Target::arch(103), Target::arch(107)]);
    let Some(Operand::Int(value)) = w.body.operands(inst.operands).last().copied() else { return };
    let needs = match value {
        13..=15 if c.variant.has(Mod::Elemtype) => &NARROW,
        4 if c.variant.has(Mod::SwizzleMode) => &SWIZZLE,
        _ => return,
    };
    let operands = w.tree.operands(w.tree.instrs[inst.node as usize].operands);
    if let (Some(lack), Some(at)) = (lacking(w.module, needs), operands.last()) {
        let d = lack.diagnose(w.module, &format!("the value {value}"), at.span);
        w.report.push(d);
    }
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

    #[test]
    fn later_values_of_tensor_maps() {
        let verdict = |target: &str, version: &str, field: &str, value: u32| {
            let text = format!("tensormap.replace.tile.{field}.global.b1024.b32 [%rd0], {value};");
            codes(&kernel(version, target, &text)).len()
        };
        assert_eq!(verdict("sm_90a", "8.3", "elemtype", 12), 0);
        assert_eq!(verdict("sm_90a", "9.0", "elemtype", 13), 1);
        assert_eq!(verdict("sm_100a", "8.7", "elemtype", 15), 0);
        assert_eq!(verdict("sm_100a", "8.7", "elemtype", 16), 1);
        assert_eq!(verdict("sm_100a", "9.0", "swizzle_mode", 4), 1);
        assert_eq!(verdict("sm_103a", "8.8", "swizzle_mode", 4), 0);
    }
}
