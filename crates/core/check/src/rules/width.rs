//! 32-bit addresses in a module with 64-bit addresses (manual, section 11.1.3): ptxas treats such an instruction as 32-bit
//! compilation, which it no longer supports.

use crate::SymRef;
use crate::body::{Candidate, Inst, Operand, Walker};
use margay_isa::{Space, Type};
use margay_syntax::{
    Span,
    diag::{Code, Diagnostic},
    tree::Kind,
};

/// `cvta`: a generic address has all its bits.
pub(crate) fn generic(w: &mut Walker<'_, '_>, c: &Candidate, inst: &Inst) {
    if w.module.address_size == 64 && c.variant.t() == Type::U32 {
        let at = w.tree.instrs[inst.node as usize].mnemonic;
        let wide = c.variant.to_string().replace(".u32", ".u64");
        refuse(
            w,
            at,
            format!("`{}` is only for 32-bit addresses", c.variant),
            &format!("write `{wide}`, with 64-bit registers"),
        );
    }
}

/// `mov`: the address of a variable in global memory. ptxas overlooks those with an offset.
pub(crate) fn of_variable(w: &mut Walker<'_, '_>, c: &Candidate, inst: &Inst) {
    let [_, Operand::Symbol(symbol @ SymRef::Global(_), _)] = *w.body.operands(inst.operands) else { return };
    if w.module.address_size != 64 || c.variant.t().bits() != 32 || w.symbol_space(symbol) != Space::Global {
        return;
    }
    let operands = w.tree.operands(w.tree.instrs[inst.node as usize].operands);
    if let Some(at) = operands.get(1).filter(|o| !matches!(o.kind, Kind::Sum { .. })).map(|o| o.span) {
        let name = w.tree.str(at);
        let message = format!("the address of `{name}` has 64 bits, but `{}` has 32", c.variant);
        refuse(w, at, message, &format!("move it to a 64-bit register: `mov.u64 %rd, {name};`"));
    }
}

fn refuse(w: &mut Walker<'_, '_>, at: Span, message: String, help: &str) {
    let d = Diagnostic::new(Code::NarrowAddress, at, message).here("under `.address_size 64`").help(help);
    w.report.push(d.note("ptxas reports this as 32-bit compilation and rejects the module"));
}

#[cfg(test)]
mod tests {
    use crate::rules::testing::codes;

    /// Each as ptxas 13.5 has it when it compiles.
    #[test]
    fn narrow_addresses() {
        let body = |size: &str, text: &str| {
            codes(&format!(
                ".version 8.0 .target sm_80 .address_size {size} .global .b32 g[4]; .const .b32 c; .shared .b32 s;
                 .entry k() {{ .reg .b32 %r<4>; .reg .b64 %rd<4>; {text} ret; }}"
            ))
        };
        for bad in
            ["mov.u32 %r0, g;", "mov.b32 %r0, g[1];", "cvta.global.u32 %r0, %r1;", "cvta.to.shared.u32 %r0, %r1;"]
        {
            assert_eq!(body("64", bad), ["E0318"], "{bad}");
            assert!(body("32", bad).is_empty(), "{bad}");
        }
        for good in [
            "mov.u32 %r0, g+4;",
            "mov.u32 %r0, c;",
            "mov.u32 %r0, s;",
            "mov.u64 %rd0, g;",
            "cvta.global.u64 %rd0, %rd1;",
        ] {
            assert!(body("64", good).is_empty(), "{good}");
        }
    }
}
