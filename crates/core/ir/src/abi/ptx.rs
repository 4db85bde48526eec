//! `ptx`: everything in `.param` space, PTX's own view (manual, sections 5.1.6.4 and 7.1).
//!
//! A call has a parameter block: inputs in order at their natural alignment, then return values, then the unsized array if there is
//! one. There are no registers. This is the identity ABI: a program must compute the same results under every other one.

use super::{Abi, NoPlan, Piece, Place, Plan, Reg, Signature, Value};

/// The `ptx` ABI.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ptx;

/// The next offset in a block for a value, and the end of the value.
pub(super) fn place_next(end: &mut u32, value: &Value) -> Result<u32, NoPlan> {
    let too_large = || NoPlan::new("the parameters are larger than 4 GiB");
    let at = end.checked_next_multiple_of(value.align.max(1)).ok_or_else(too_large)?;
    *end = at.checked_add(value.size).ok_or_else(too_large)?;
    Ok(at)
}

impl Abi for Ptx {
    fn name(&self) -> &'static str {
        "ptx"
    }

    fn registers(&self) -> &[Reg] {
        &[]
    }

    fn about(&self) -> &'static str {
        "everything in `.param` space, as in PTX itself"
    }

    fn plan(&self, sig: &Signature, _lanes: u32) -> Result<Plan, NoPlan> {
        let mut end = 0;
        let mut plan = Plan { args: vec![Vec::new(); sig.params.len()], ..Plan::default() };
        let piece = |end: &mut u32, value: &Value| {
            let offset = place_next(end, value)?;
            Ok(vec![Piece { bytes: 0..value.size, at: Place::Space { offset } }])
        };
        for (value, pieces) in sig.params.iter().zip(&mut plan.args).filter(|(v, _)| !v.is_unsized) {
            *pieces = piece(&mut end, value)?;
        }
        plan.rets = sig.rets.iter().map(|value| piece(&mut end, value)).collect::<Result<_, _>>()?;
        for (value, pieces) in sig.params.iter().zip(&mut plan.args).filter(|(v, _)| v.is_unsized) {
            *pieces = piece(&mut end, value)?;
        }
        plan.stack = end;
        Ok(plan)
    }
}
