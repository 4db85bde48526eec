//! `legacy`: modules without the stack-based ABI: PTX 1.x, multiple return values, module-scope `.reg` and `.local` variables (manual,
//! section 7.1.1).
//!
//! Everything is passed in 32-bit registers, word by word, sub-word values and predicates in a register of their own, with
//! any number of return values. There is no stack, so values that do not fit have no plan, and neither have recursion, indirect
//! calls, and calls to functions outside the program (ptxas rejects the same).

use super::{Abi, NoPlan, Piece, Place, Plan, Reg, Signature, Value};
use crate::{Callee, FuncId, Ir, Virtual, pass::recursive};
use std::sync::LazyLock;

/// The `legacy` ABI.
#[derive(Clone, Copy, Debug, Default)]
pub struct Legacy;

/// Registers that a thread can have on targets without the ABI.
const COUNT: u16 = 124;

static REGISTERS: LazyLock<Vec<Reg>> =
    LazyLock::new(|| (0..COUNT).map(|index| Reg { class: 'R', index, bytes: 4 }).collect());

fn assign(what: &str, values: &[Value]) -> Result<Vec<Vec<Piece>>, NoPlan> {
    let mut next = REGISTERS.iter();
    let mut places = Vec::with_capacity(values.len());
    for (i, value) in values.iter().enumerate() {
        if value.is_unsized {
            return Err(NoPlan::of(format!("{what}[{i}]"), "an unsized array needs a stack"));
        }
        let mut pieces = Vec::new();
        for start in (0..value.size).step_by(4) {
            let Some(reg) = next.next() else {
                let reason = format!("more than {COUNT} words of parameters need a stack");
                return Err(NoPlan::of(format!("{what}[{i}]"), reason));
            };
            pieces.push(Piece { bytes: start..(start + 4).min(value.size), at: Place::Reg(*reg) });
        }
        places.push(pieces);
    }
    Ok(places)
}

impl Abi for Legacy {
    fn name(&self) -> &'static str {
        "legacy"
    }

    fn registers(&self) -> &[Reg] {
        &REGISTERS
    }

    fn about(&self) -> &'static str {
        "registers only, without the stack-based ABI (PTX 1.x)"
    }

    fn plan(&self, sig: &Signature, _lanes: u32) -> Result<Plan, NoPlan> {
        let (args, rets) = (assign("args", &sig.params)?, assign("rets", &sig.rets)?);
        Ok(Plan { args, rets, stack: 0, clobbers: REGISTERS.clone() })
    }

    fn accepts(&self, program: &Ir<Virtual>) -> Result<(), NoPlan> {
        for func in &program.funcs {
            for call in &func.calls {
                let Callee::Direct(callee) = call.callee else {
                    let caller = &func.name;
                    return Err(NoPlan::new(format!("`{caller}` makes an indirect call, which needs a stack")));
                };
                let callee = program.func(callee);
                if callee.blocks.is_empty() && callee.builtin.is_none() {
                    let name = &callee.name;
                    return Err(NoPlan::new(format!("`{name}` is defined elsewhere, and calling it needs a stack")));
                }
            }
        }
        let all: Vec<FuncId> = (0..program.funcs.len() as u32).map(FuncId).collect();
        match recursive(program, &all) {
            Some(f) => Err(NoPlan::new(format!("`{}` is recursive, which needs a stack", program.func(f).name))),
            None => Ok(()),
        }
    }
}
