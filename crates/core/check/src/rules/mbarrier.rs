//! `mbarrier`: the location of the object, and which arrivals return a state (manual, section 9.7.13.15).

use crate::body::{Base, Candidate, Inst, Operand, Walker};
use margay_isa::Space;
use margay_syntax::diag::{Code, Diagnostic};

/// Without a space word the address is generic, yet a variable that is named must lie in `.shared`.
pub(crate) fn shared_variable(w: &mut Walker<'_, '_>, c: &Candidate, inst: &Inst) {
    if c.space.is_some() {
        return;
    }
    let operands = w.tree.operands(w.tree.instrs[inst.node as usize].operands);
    let found = w.body.operands(inst.operands).iter().zip(operands).find_map(|(o, at)| match o {
        Operand::Address(Base::Sym(symbol), _) => Some((*symbol, at.span)),
        _ => None,
    });
    let Some((symbol, at)) = found else { return };
    let space = w.symbol_space(symbol);
    if space == Space::Shared {
        return;
    }
    let (_, declared) = w.type_of_symbol(symbol);
    w.report.push(
        Diagnostic::new(Code::AddressSpace, at, format!("`{}` requires an object in `.shared`", c.variant))
            .label(declared, format!("this variable is in `{space}`")),
    );
}

/// An arrival at a barrier of another CTA has no state: the destination is `_`.
pub(crate) fn sink_only(w: &mut Walker<'_, '_>, c: &Candidate, inst: &Inst) {
    if matches!(w.body.operands(inst.operands).first(), None | Some(Operand::Sink | Operand::Error)) {
        return;
    }
    let operands = w.tree.operands(w.tree.instrs[inst.node as usize].operands);
    let Some(at) = operands.first().map(|o| o.span) else { return };
    w.report.push(
        Diagnostic::new(Code::OperandForm, at, format!("`{}` has no state to return", c.variant))
            .note("the barrier may belong to another CTA of the cluster")
            .help("write `_` here"),
    );
}

#[cfg(test)]
mod tests {
    use crate::rules::testing::{codes, kernel};

    fn verdict(text: &str) -> Vec<&'static str> {
        codes(&kernel("8.0", "sm_90", &format!(".shared .b64 bar; .local .b64 spot; {text}")))
    }

    #[test]
    fn objects_lie_in_shared_memory() {
        assert_eq!(verdict("mbarrier.init.b64 [bar], 1;"), [""; 0]);
        assert_eq!(verdict("mbarrier.init.b64 [spot], 1;"), ["E0308"]);
        assert_eq!(verdict("mbarrier.init.b64 [bar], 0;"), ["E0315"]);
    }

    #[test]
    fn a_remote_arrival_has_no_state() {
        assert_eq!(verdict("mbarrier.arrive.shared::cluster.b64 _, [%rd0];"), [""; 0]);
        assert_eq!(verdict("mbarrier.arrive.shared::cluster.b64 %rd1, [%rd0];"), ["E0319"]);
        assert_eq!(verdict("mbarrier.arrive.shared::cta.b64 %rd1, [%rd0];"), [""; 0]);
    }
}
