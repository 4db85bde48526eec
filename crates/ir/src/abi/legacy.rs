//! `legacy`: modules without the stack-based ABI: PTX 1.x, several returns, module-scope `.reg` and `.local` variables (manual,
//! section 7.1.1).
//!
//! Everything travels in 32-bit registers, word after word, sub-word values and predicates in a register of their own, as
//! many returns as there are. There is no stack, so what does not fit has no plan, and neither has recursion, an indirect
//! call, or a call of a function that is not in the program (ptxas refuses the same).

use super::{Abi, NoPlan, Piece, Place, Plan, Reg, Signature, Value};
use crate::{Callee, FuncId, Ir, Virtual};
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
            return Err(NoPlan::of(format!("{what}[{i}]"), "an array without size needs a stack"));
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
        "registers only, as without the stack-based ABI (PTX 1.x)"
    }

    fn plan(&self, sig: &Signature, _lanes: u32) -> Result<Plan, NoPlan> {
        let (args, rets) = (assign("args", &sig.params)?, assign("rets", &sig.rets)?);
        Ok(Plan { args, rets, stack: 0, clobbers: REGISTERS.clone() })
    }

    fn accepts(&self, program: &Ir<Virtual>) -> Result<(), NoPlan> {
        let mut callees: Vec<Vec<usize>> = vec![Vec::new(); program.funcs.len()];
        for (f, func) in program.funcs.iter().enumerate() {
            for call in &func.calls {
                match call.callee {
                    Callee::Indirect(..) => {
                        return Err(NoPlan::new(format!(
                            "`{}` calls through a register, which needs a stack",
                            func.name
                        )));
                    }
                    Callee::Direct(FuncId(id)) => callees[f].push(id as usize),
                }
            }
        }
        for func in callees.iter().flatten().map(|id| &program.funcs[*id]) {
            if func.blocks.is_empty() && func.builtin.is_none() {
                return Err(NoPlan::new(format!("`{}` is defined elsewhere, and calling it needs a stack", func.name)));
            }
        }
        match recursive(&callees) {
            Some(f) => Err(NoPlan::new(format!("`{}` is recursive, which needs a stack", program.funcs[f].name))),
            None => Ok(()),
        }
    }
}

/// A function that reaches itself: what is left when those that call nobody are taken away again and again.
fn recursive(callees: &[Vec<usize>]) -> Option<usize> {
    let mut callers: Vec<Vec<usize>> = vec![Vec::new(); callees.len()];
    let mut open: Vec<usize> = callees.iter().map(Vec::len).collect();
    for (f, list) in callees.iter().enumerate() {
        list.iter().for_each(|callee| callers[*callee].push(f));
    }
    let mut done: Vec<usize> = (0..callees.len()).filter(|f| open[*f] == 0).collect();
    let mut next = 0;
    while let Some(f) = done.get(next).copied() {
        next += 1;
        for caller in &callers[f] {
            open[*caller] -= 1;
            if open[*caller] == 0 {
                done.push(*caller);
            }
        }
    }
    // Those left either lie on a cycle or call into one; walking along the open ones ends on a cycle.
    let mut f = (0..callees.len()).find(|f| open[*f] > 0)?;
    for _ in 0..callees.len() {
        f = callees[f].iter().copied().find(|c| open[*c] > 0)?;
    }
    Some(f)
}
