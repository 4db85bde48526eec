//! `alloca` (manual, section 9.7.17.3).

use crate::body::{Inst, Operand, Walker};
use margay_syntax::diag::{Code, Diagnostic};

/// Largest alignment of what `alloca` returns; ptxas checks it.
const LARGEST: i64 = 1 << 23;

/// The alignment is a power of two, and not too large.
pub(crate) fn alignment(w: &mut Walker<'_, '_>, inst: &Inst) {
    let Some(&Operand::Int(align)) = w.body.operands(inst.operands).get(2) else { return };
    let power = align > 0 && align & (align - 1) == 0;
    if power && align <= LARGEST {
        return;
    }
    let instr = &w.tree.instrs[inst.node as usize];
    let at = w.tree.operands(instr.operands).get(2).map_or(instr.span, |o| o.span);
    let why = if power { format!("at most {LARGEST}") } else { "a power of two".to_owned() };
    w.report.push(Diagnostic::new(Code::Alignment, at, format!("the alignment of `alloca` is {why}, found {align}")));
}
