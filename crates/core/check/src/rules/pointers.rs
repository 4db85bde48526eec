//! Addresses of parameters in registers (manual, sections 5.1.6.1 and 5.1.6.4): their state space, as far as plain
//! copies in straight-line code show it. ptxas does not check this; the manual requires it.

use crate::FuncKind;
use crate::FxHashMap;
use crate::body::{Inst, Operand, RegId, SymRef, Walker};
use margay_isa::{Mod, Opcode, Space};
use margay_syntax::{
    Span,
    diag::{Code, Diagnostic},
};

/// Whose address a register holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    /// A kernel's parameter: it lies in `.param`.
    Kernel,
    /// An input of a device function: it lies in `.local`.
    Input,
    /// A return parameter: it lies in `.local`, and may be written only.
    Return,
}

/// Registers that hold addresses of parameters.
pub(crate) type Origins = FxHashMap<RegId, Origin>;

/// Follows the addresses through one instruction. Cheap while no address was taken.
pub(crate) fn follow(w: &mut Walker<'_, '_>, inst: &Inst) {
    let operands = w.body.operands(inst.operands);
    let op = w.body.variants[inst.variant.0 as usize].op;
    let Some(&Operand::Reg(d)) = operands.first() else { return };
    let source = match (op, &operands[1..]) {
        (Opcode::Mov, [Operand::Symbol(symbol, _)]) => origin(w, *symbol),
        (Opcode::Mov, [Operand::Reg(a)]) => w.origins.get(a).copied(),
        (Opcode::Add | Opcode::Sub, [Operand::Reg(a), b]) => w.origins.get(a).copied().or(match b {
            Operand::Reg(b) => w.origins.get(b).copied(),
            _ => None,
        }),
        (Opcode::Cvta, [Operand::Reg(a)]) => {
            let variant = &w.body.variants[inst.variant.0 as usize];
            let param = variant.has(Mod::Param) || variant.has(Mod::ParamEntry);
            match w.origins.get(a) {
                Some(Origin::Input | Origin::Return) if param && !variant.has(Mod::To) => {
                    let span = w
                        .tree
                        .operands(w.tree.instrs[inst.node as usize].operands)
                        .get(1)
                        .map_or(Span::default(), |o| o.span);
                    window(w, span, "a parameter of a device function", "`.local`: use `cvta.local`");
                }
                _ => {}
            }
            None
        }
        (Opcode::St | Opcode::Red | Opcode::Bra | Opcode::Call, _) => return,
        _ => None,
    };
    match source {
        Some(origin) => drop(w.origins.insert(d, origin)),
        None => drop(w.origins.remove(&d)),
    }
}

fn origin(w: &Walker<'_, '_>, symbol: SymRef) -> Option<Origin> {
    match symbol {
        SymRef::Param(_) if w.func.kind == FuncKind::Kernel => Some(Origin::Kernel),
        SymRef::Param(_) => Some(Origin::Input),
        SymRef::Ret(_) => Some(Origin::Return),
        SymRef::Global(_) | SymRef::Local(_) | SymRef::Func(_) => None,
    }
}

/// An access through a register.
pub(crate) fn access(w: &mut Walker<'_, '_>, reg: RegId, space: Space, store: bool, span: Span) {
    if w.origins.is_empty() {
        return;
    }
    match (w.origins.get(&reg), space, store) {
        (Some(Origin::Kernel), Space::Param, true) => {
            w.report.text_only(
                Diagnostic::new(
                    Code::ParameterWrite,
                    span,
                    "a store to a parameter of the kernel, through its address",
                )
                .note("section 5.1.6.1: kernel parameters are read-only"),
            );
        }
        (Some(Origin::Input | Origin::Return), Space::Param, _) => {
            window(w, span, "a parameter of a device function", "`.local`: use `ld.local` and `st.local`");
        }
        (Some(Origin::Return), Space::Local, false) => {
            w.report.text_only(
                Diagnostic::new(Code::ParameterRead, span, "a load from a return parameter, through its address")
                    .note("section 5.1.6.4: return parameters are written only"),
            );
        }
        _ => {}
    }
}

#[cold]
fn window(w: &mut Walker<'_, '_>, span: Span, what: &str, lies: &str) {
    w.report.text_only(
        Diagnostic::new(Code::ParameterWindow, span, format!("this is the address of {what}, which is in {lies}"))
            .note("section 5.1.6.4: the address of a parameter of a device function is a local address"),
    );
}
